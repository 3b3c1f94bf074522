// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit: packets that wait for on-demand pages: their copies, and the limits of their number and
 * memory.
 */
#include "qp_fixture.h"

#define SEND_ONLY	(NHCA_SVC_RC | NHCA_OP_SEND_ONLY)
/* limits of one queue pair: packets and bytes that it defers */
#define QP_PACKETS	256
#define QP_BYTES	(2 << 20)

static int defer_init(struct kunit *test)
{
	struct qp_fixture *f;
	int err = qp_fixture_init(test);

	if (err)
		return err;
	f = test->priv;
	nhca_users_init(&f->dev->users);
	return 0;
}

static void defer_exit(struct kunit *test)
{
	struct qp_fixture *f = test->priv;

	qp_fixture_exit(test);
	if (!f)
		return;
	KUNIT_EXPECT_EQ(test, atomic_long_read(&f->dev->users.used[NHCA_POOL_DEFERRED]), 0);
	nhca_users_destroy(&f->dev->users);
}

/* Return: packet @index of a batch, as nhca_rx_packet() decodes it. */
static struct nhca_rx rx_of(struct kunit *test, struct sk_buff *skb, const struct nhca_hdr *h,
			    u32 payload, u32 index)
{
	u32 len = h->info->hdr_len + ALIGN(payload, 4) + NHCA_ICRC_LEN;
	struct qp_fixture *f = test->priv;
	struct nhca_rx rx = {
		.ip = {
			.nn = f->dev->nn,
			.v4 = true,
			.hdr = skb_network_header(skb),
		},
		.skb = skb,
		.hdr = *h,
		.payload = payload,
		.udp_off = index * len,
		.udp_len = len,
		.off = index * len + h->info->hdr_len,
		.index = index,
	};

	rx.hdr.psn = nhca_psn_add(FIX_RQ_PSN, index);
	nhca_cursor_init(&rx.at, skb);
	return rx;
}

/* Defer @count packets of one batch, then overwrite and free the batch while they wait. */
static void defer(struct kunit *test, u32 payload, u32 count)
{
	struct qp_fixture *f = test->priv;
	struct nhca_hdr h = fix_hdr(f->qp, SEND_ONLY, FIX_RQ_PSN), first = h;
	struct sk_buff *skb = fix_skb(test, &h, payload, count);
	struct nhca_rx *rx = kunit_kzalloc(test, sizeof(*rx), GFP_KERNEL);
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, rx);
	for (i = 0; i < count; i++) {
		*rx = rx_of(test, skb, &first, payload, i);
		rx->alike.set = true;
		spin_lock_bh(&f->qp->rq.lock);
		nhca_defer(f->qp, rx);
		spin_unlock_bh(&f->qp->rq.lock);
	}
	/* no deferred packet refers to the batch, so the netdev driver can reuse the buffer */
	KUNIT_EXPECT_EQ(test, refcount_read(&skb->users), 1);
	KUNIT_EXPECT_FALSE(test, skb_cloned(skb));
	memset(skb_network_header(skb), 0xee, skb_tail_pointer(skb) - skb_network_header(skb));
	kfree_skb(skb);
}

static void run(struct nhca_qp *qp)
{
	rcu_read_lock();
	spin_lock_bh(&qp->rq.lock);
	nhca_defer_run(qp);
	spin_unlock_bh(&qp->rq.lock);
	rcu_read_unlock();
}

/*
 * Defer three packets. Expect that each is executed once, with the payload that it had on arrival.
 */
static void wait_of(struct kunit *test, u32 payload)
{
	struct qp_fixture *f = test->priv;
	struct nhca_cqe cqe;
	u32 i, at;
	u8 *to;

	for (i = 0; i < 3; i++)
		fix_post_recv(test, &f->qp->rq.wq, f->mr, i * FIX_MTU, FIX_MTU);
	defer(test, payload, 3);
	KUNIT_EXPECT_EQ(test, f->qp->rq.ndeferred, 3);
	KUNIT_EXPECT_FALSE(test, fix_poll(f->cq, &cqe));
	run(f->qp);
	KUNIT_EXPECT_EQ(test, f->qp->rq.ndeferred, 0);
	to = page_address(f->page);
	for (i = 0; i < 3; i++) {
		KUNIT_ASSERT_TRUE(test, fix_poll(f->cq, &cqe));
		KUNIT_EXPECT_EQ(test, cqe.status, IB_WC_SUCCESS);
		KUNIT_EXPECT_EQ(test, cqe.wr_id, i * FIX_MTU);
		KUNIT_EXPECT_EQ(test, cqe.byte_len, payload);
		for (at = 0; at < payload; at++)
			if (to[i * FIX_MTU + at] != fix_byte(at))
				break;
		KUNIT_EXPECT_EQ(test, at, payload);
	}
	KUNIT_EXPECT_FALSE(test, fix_poll(f->cq, &cqe));
	KUNIT_EXPECT_EQ(test, fix_count(f, NHCA_CNT_DUP_REQUEST), 0);
}

/* Short packets are executed from copies, whose payload is in the linear bytes. */
static void short_packets_test(struct kunit *test)
{
	wait_of(test, 100);
}

/* Long packets are executed from copies, whose payload is in pages. */
static void long_packets_test(struct kunit *test)
{
	wait_of(test, FIX_MTU);
}

/* The copy of a packet has its own IP header, from which the GRH of a datagram is made. */
static void header_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;
	struct nhca_hdr h = fix_hdr(f->qp, SEND_ONLY, FIX_RQ_PSN), first = h;
	struct sk_buff *skb = fix_skb(test, &h, 1000, 2);
	struct nhca_rx *rx = kunit_kzalloc(test, 2 * sizeof(*rx), GFP_KERNEL);
	u8 byte;

	KUNIT_ASSERT_NOT_NULL(test, rx);
	rx[0] = rx_of(test, skb, &first, 1000, 1);
	KUNIT_ASSERT_EQ(test, nhca_rx_copy_deferred(&rx[0], &rx[1], NULL, GFP_KERNEL), 0);
	KUNIT_EXPECT_PTR_NE(test, rx[1].ip.hdr, rx[0].ip.hdr);
	KUNIT_EXPECT_EQ(test, memcmp(rx[1].ip.hdr, rx[0].ip.hdr, sizeof(struct iphdr)), 0);
	KUNIT_EXPECT_EQ(test, rx[1].skb->len, sizeof(struct iphdr) + 1000);
	KUNIT_ASSERT_EQ(test, skb_copy_bits(rx[1].skb, rx[1].off + 999, &byte, 1), 0);
	KUNIT_EXPECT_EQ(test, byte, fix_byte(999));
	kfree_skb(rx[1].skb);
	/* a payload that is longer than the skb cannot be copied */
	rx[0].payload = 5000;
	KUNIT_EXPECT_EQ(test, nhca_rx_copy_deferred(&rx[0], &rx[1], NULL, GFP_KERNEL), -EFAULT);
	kfree_skb(skb);
}

/* A queue pair defers a limited number of packets, and drops further packets. */
static void packets_of_qp_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;
	u32 i;

	for (i = 0; i < QP_PACKETS / 8 + 1; i++)
		defer(test, 100, 8);
	KUNIT_EXPECT_EQ(test, f->qp->rq.ndeferred, QP_PACKETS);
	KUNIT_EXPECT_EQ(test, fix_count(f, NHCA_CNT_RX_NO_BUFFER), 8);
	fix_state(test, f->qp, IB_QPS_ERR);
	KUNIT_EXPECT_EQ(test, f->qp->rq.ndeferred, 0);
	KUNIT_EXPECT_EQ(test, f->qp->rq.deferred_bytes, 0);
}

/*
 * The byte limit of a queue pair counts all memory of the deferred copies, not only their payload.
 */
static void bytes_of_qp_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;
	long *used = (long *)&f->dev->users.used[NHCA_POOL_DEFERRED];
	u32 i;

	for (i = 0; i < 40; i++)
		defer(test, 60000, 1);
	KUNIT_EXPECT_LE(test, f->qp->rq.deferred_bytes, QP_BYTES);
	KUNIT_EXPECT_GE(test, f->qp->rq.deferred_bytes, f->qp->rq.ndeferred * 15 * PAGE_SIZE);
	KUNIT_EXPECT_GE(test, f->qp->rq.ndeferred, QP_BYTES / (17 * PAGE_SIZE));
	KUNIT_EXPECT_EQ(test, *used, f->qp->rq.deferred_bytes);
	KUNIT_EXPECT_EQ(test, fix_count(f, NHCA_CNT_RX_NO_BUFFER), 40 - f->qp->rq.ndeferred);
	fix_state(test, f->qp, IB_QPS_ERR);
	KUNIT_EXPECT_EQ(test, *used, 0);
}

/*
 * A user who has used up the user's share of the memory for deferred packets (half) gets no more.
 * Another user gets some.
 */
static void bytes_of_user_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;
	struct nhca_users *users = &f->dev->users;
	struct nhca_user *a = nhca_user_get(users, 4711), *b = nhca_user_get(users, 4712);

	KUNIT_ASSERT_FALSE(test, IS_ERR(a) || IS_ERR(b));
	KUNIT_ASSERT_EQ(test, nhca_pool_charge(users, a, NHCA_POOL_DEFERRED, NHCA_MAX_DEFERRED / 2),
			0);
	f->qp->owner = a;
	defer(test, 100, 1);
	KUNIT_EXPECT_EQ(test, f->qp->rq.ndeferred, 0);
	KUNIT_EXPECT_EQ(test, f->qp->rq.deferred_bytes, 0);
	KUNIT_EXPECT_EQ(test, fix_count(f, NHCA_CNT_RX_NO_BUFFER), 1);
	f->qp->owner = b;
	defer(test, 100, 1);
	KUNIT_EXPECT_EQ(test, f->qp->rq.ndeferred, 1);
	fix_state(test, f->qp, IB_QPS_ERR);
	f->qp->owner = NULL;
	nhca_pool_uncharge(users, a, NHCA_POOL_DEFERRED, NHCA_MAX_DEFERRED / 2);
	nhca_user_put(a);
	nhca_user_put(b);
}

static struct kunit_case defer_cases[] = {
	KUNIT_CASE(short_packets_test),
	KUNIT_CASE(long_packets_test),
	KUNIT_CASE(header_test),
	KUNIT_CASE(packets_of_qp_test),
	KUNIT_CASE(bytes_of_qp_test),
	KUNIT_CASE(bytes_of_user_test),
	{}
};

static struct kunit_suite defer_suite = {
	.name = "nhca_defer",
	.init = defer_init,
	.exit = defer_exit,
	.test_cases = defer_cases,
};

kunit_test_suite(defer_suite);
