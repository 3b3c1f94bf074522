// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit: the segment size that fits the MTU, the cost of a packet, and the completion of a transfer
 * after its notice: a write completes only when no packet refers to its pages.
 */
#include <kunit/test.h>
#include <linux/ipv6.h>
#include <linux/udp.h>

#include "../rcxt/notice.h"

/*
 * For every MTU from 1280 on, the wire format allows the segment of a channel, and a packet with a
 * whole segment fits the MTU.
 */
static void rcxt_segment_fits_mtu(struct kunit *test)
{
	const u32 around = sizeof(struct ipv6hdr) + sizeof(struct udphdr) + NHCA_BTH_LEN +
			   NHCA_RXETH_LEN + NHCA_ICRC_LEN;
	struct net_device *netdev = kunit_kzalloc(test, sizeof(*netdev), GFP_KERNEL);
	struct nhca_dev *dev = kunit_kzalloc(test, sizeof(*dev), GFP_KERNEL);
	u32 mtu, segment, before = 0;

	KUNIT_ASSERT_NOT_NULL(test, netdev);
	KUNIT_ASSERT_NOT_NULL(test, dev);
	dev->netdev = netdev;
	for (mtu = 1280; mtu <= 65535; mtu++) {
		netdev->mtu = mtu;
		segment = nhca_channel_segment(dev);
		KUNIT_ASSERT_TRUE_MSG(test, nhca_rcxt_sizes_ok(segment, segment), "MTU %u: %u", mtu,
				      segment);
		KUNIT_ASSERT_LE_MSG(test, around + segment, mtu, "MTU %u: %u", mtu, segment);
		/* the largest transfer has few enough packets */
		KUNIT_ASSERT_TRUE_MSG(test, nhca_rcxt_sizes_ok(NHCA_RCXT_MAX_LEN, segment),
				      "MTU %u: %u", mtu, segment);
		KUNIT_ASSERT_GE(test, segment, before);
		if (segment > PAGE_SIZE)
			KUNIT_ASSERT_EQ(test, segment % PAGE_SIZE, 0);
		before = segment;
	}
}

/*
 * A packet costs one unit of a quantum for each NHCA_CH_SHARE bytes of payload, rounded up, and at
 * least one unit. So long packets give a channel no advantage.
 */
static void rcxt_shares_count_bytes(struct kunit *test)
{
	u32 len;

	KUNIT_EXPECT_EQ(test, nhca_send_shares(0), 1);
	for (len = 1; len <= NHCA_RCXT_MAX_SEGMENT; len++) {
		KUNIT_ASSERT_GE(test, nhca_send_shares(len) * NHCA_CH_SHARE, len);
		KUNIT_ASSERT_LT(test, (nhca_send_shares(len) - 1) * NHCA_CH_SHARE, len);
	}
}

/* ---- notices: a channel without a device and a peer ---- */

#define WR_ID		0x57a7e
#define PEER_QPN	0x1234
#define TOTAL		8192u
#define SEGMENT		4096u

/**
 * struct fixture - a channel with one rCxt
 * @ch:     the channel, with the members that notices need
 * @rd:     the pool
 * @txq:    packets of the device in the network stack; the channel's flow belongs to it
 * @cq:     CQ of all completions
 * @ibqp:   queue pair whose CQ is @cq
 * @rc:     the rCxt
 * @id:     id of @rc
 * @kicked: number of kicks of the channel by a release
 */
struct fixture {
	struct nhca_channel ch;
	struct nhca_rcxt_dev rd;
	struct nhca_txq *txq;
	struct nhca_cq cq;
	struct ib_qp ibqp;
	struct nhca_rcxt *rc;
	struct nhca_rcxt_id id;
	int kicked;
};

static void fixture_kick(void *arg)
{
	(*(int *)arg)++;
}

static void fixture_completed(struct ib_cq *ibcq, void *context)
{
}

static struct fixture *fixture_make(struct kunit *test)
{
	struct fixture *f = kunit_kzalloc(test, sizeof(*f), GFP_KERNEL);
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, f);
	nhca_cq_init(&f->cq, true);
	KUNIT_ASSERT_EQ(test, nhca_ring_alloc(&f->cq.ring, 16, sizeof(struct nhca_cqe), NULL), 0);
	f->cq.ibcq.comp_handler = fixture_completed;
	f->ibqp.send_cq = &f->cq.ibcq;
	f->ibqp.recv_cq = &f->cq.ibcq;
	f->txq = nhca_txq_create();
	KUNIT_ASSERT_NOT_NULL(test, f->txq);
	for (i = 0; i < NHCA_RCXT_LOCKS; i++)
		spin_lock_init(&f->rd.rcxt_locks[i]);
	KUNIT_ASSERT_EQ(test, nhca_rcxt_pool_init(&f->rd.pool, 1), 0);
	f->ch.rd = &f->rd;
	f->ch.ibqp = &f->ibqp;
	f->ch.qpn = 0x4711;
	spin_lock_init(&f->ch.lock);
	f->ch.noticed.first = NHCA_RCXT_NONE;
	f->ch.noticed.last = NHCA_RCXT_NONE;
	f->ch.rcxts = (struct nhca_rcxt_list)NHCA_RCXT_LIST_INIT;
	f->ch.counts = alloc_percpu(struct nhca_channel_counts);
	KUNIT_ASSERT_NOT_NULL(test, f->ch.counts);
	f->ch.flow = nhca_flow_create(f->txq, fixture_kick, &f->kicked);
	KUNIT_ASSERT_NOT_NULL(test, f->ch.flow);
	KUNIT_ASSERT_EQ(test, nhca_rcxt_acquire(&f->rd.pool, f->ch.qpn, &f->ch.rcxts, 1, &f->id),
			0);
	f->rc = &f->rd.pool.rcxts[f->id.index];
	return f;
}

static void fixture_free(struct fixture *f)
{
	nhca_rcxt_release(&f->rd.pool, &f->ch.rcxts, f->rc);
	nhca_flow_close(f->ch.flow);
	nhca_txq_put(f->txq);
	free_percpu(f->ch.counts);
	nhca_rcxt_pool_destroy(&f->rd.pool);
	nhca_cq_stop(&f->cq);
	nhca_ring_free(&f->cq.ring);
}

/* Return: a notice or status of the peer for transfer @tid. */
static struct nhca_rx peer_says(const struct fixture *f, u32 tid)
{
	return (struct nhca_rx) {
		.hdr.rx = {
			.rcxt = f->id, .tid = tid, .total = TOTAL, .segment = SEGMENT,
			.src_channel = PEER_QPN, .cookie = ~WR_ID, .status = NHCA_RX_ST_DONE,
		},
	};
}

static void notice(struct fixture *f, u32 tid)
{
	struct nhca_rx rx = peer_says(f, tid);

	local_bh_disable();
	rcu_read_lock();
	nhca_notice_rx(&f->ch, &rx);
	rcu_read_unlock();
	local_bh_enable();
}

static bool early(struct fixture *f, u32 tid)
{
	struct nhca_rx rx = peer_says(f, tid);
	spinlock_t *lock = nhca_rcxt_lock(&f->rd, &rx.hdr.rx.rcxt);
	bool is_early;

	spin_lock_bh(lock);
	is_early = nhca_notice_early(&f->ch, f->rc, &rx.hdr.rx);
	spin_unlock_bh(lock);
	return is_early;
}

/* Begin a write of the channel. Return: the zero-copy reference of its packets. */
static struct nhca_zcopy *write(struct kunit *test, struct fixture *f, u32 tid)
{
	struct nhca_zcopy *z;

	KUNIT_ASSERT_EQ(test, nhca_rcxt_begin_write(&f->rd.pool, f->rc, tid, TOTAL, SEGMENT,
						    NHCA_RX_NOTIFY_INITIATOR, WR_ID), 0);
	z = nhca_zcopy_new(f->ch.flow);
	KUNIT_ASSERT_NOT_NULL(test, z);
	return z;
}

static bool sent(struct fixture *f, u32 tid)
{
	bool noticed;

	f->rc->zcopy = nhca_zcopy_seq(f->ch.flow);
	noticed = nhca_rcxt_sent(f->rc, tid);
	if (noticed)
		nhca_notice_wait(&f->ch, f->rc);
	return noticed;
}

/* Poll one completion. Return: false if the CQ has no completion. */
static bool completed(struct fixture *f, struct nhca_cqe *cqe)
{
	if (f->cq.cons == f->cq.prod)
		return false;
	*cqe = *(struct nhca_cqe *)nhca_ring_slot(&f->cq.ring, f->cq.cons++);
	return true;
}

/*
 * A write does not complete while a packet refers to its pages, even if its notice has arrived, and
 * until then a status NHCA_RX_ST_DONE is too early. After the last of these packets was freed, the
 * write completes once.
 */
static void rcxt_notice_waits_for_pages(struct kunit *test)
{
	struct fixture *f = fixture_make(test);
	struct nhca_zcopy *z;
	struct nhca_cqe cqe;
	u32 tid;

	for (tid = 1; tid <= 2; tid++) {
		z = write(test, f, tid);
		KUNIT_EXPECT_TRUE(test, early(f, tid));
		/* tid 1: the notice arrives after the last packet was made; tid 2: before that */
		if (tid == 1)
			KUNIT_EXPECT_FALSE(test, sent(f, tid));
		KUNIT_EXPECT_TRUE(test, early(f, tid));
		notice(f, tid);
		if (tid == 2)
			KUNIT_EXPECT_TRUE(test, sent(f, tid));
		KUNIT_EXPECT_FALSE(test, nhca_notice_complete(&f->ch, &(u32){ 0 }));
		KUNIT_EXPECT_FALSE(test, completed(f, &cqe));
		KUNIT_EXPECT_TRUE(test, early(f, tid));
		KUNIT_EXPECT_EQ(test, nhca_rcxt_begin_again(f->rc, tid, TOTAL, SEGMENT), -EBUSY);
		KUNIT_EXPECT_EQ(test, nhca_rcxt_cancel(&f->rd.pool, f->rc, tid), -EBUSY);
		f->kicked = 0;
		nhca_zcopy_put(z);
		KUNIT_EXPECT_EQ(test, f->kicked, 1);
		KUNIT_EXPECT_FALSE(test, nhca_notice_complete(&f->ch, &(u32){ 0 }));
		KUNIT_ASSERT_TRUE(test, completed(f, &cqe));
		KUNIT_EXPECT_EQ(test, cqe.wr_id, WR_ID);
		KUNIT_EXPECT_EQ(test, (u32)cqe.opcode, (u32)NHCA_WC_CH_WRITE);
		KUNIT_EXPECT_EQ(test, cqe.byte_len, TOTAL);
		KUNIT_EXPECT_EQ(test, cqe.src_qp, PEER_QPN);
		KUNIT_EXPECT_EQ(test, cqe.chan.tid, tid);
		KUNIT_EXPECT_FALSE(test, early(f, tid));
		notice(f, tid);
		KUNIT_EXPECT_FALSE(test, completed(f, &cqe));
	}
	fixture_free(f);
}

/* If no packet refers to the pages of a write, the write completes when its notice arrives. */
static void rcxt_notice_completes_immediately(struct kunit *test)
{
	struct fixture *f = fixture_make(test);
	struct nhca_cqe cqe;

	nhca_zcopy_put(write(test, f, 1));
	sent(f, 1);
	KUNIT_EXPECT_FALSE(test, early(f, 1));
	notice(f, 1);
	KUNIT_EXPECT_TRUE(test, completed(f, &cqe));
	KUNIT_EXPECT_EQ(test, (u32)f->rc->state, (u32)NHCA_RCXT_DONE);
	KUNIT_EXPECT_FALSE(test, f->rc->wrote);
	fixture_free(f);
}

/*
 * If the rCxt of a write is released while packets refer to the pages of the write, the write does
 * not complete.
 */
static void rcxt_notice_after_release(struct kunit *test)
{
	struct fixture *f = fixture_make(test);
	struct nhca_zcopy *z = write(test, f, 1);
	struct nhca_cqe cqe;

	sent(f, 1);
	notice(f, 1);
	nhca_notice_forget(&f->ch, f->rc);
	nhca_rcxt_end(&f->rd.pool, f->rc, NHCA_RCXT_IDLE);
	nhca_zcopy_put(z);
	KUNIT_EXPECT_FALSE(test, nhca_notice_complete(&f->ch, &(u32){ 0 }));
	KUNIT_EXPECT_FALSE(test, completed(f, &cqe));
	KUNIT_EXPECT_EQ(test, f->ch.noticed.last, NHCA_RCXT_NONE);
	fixture_free(f);
}

/*
 * The target of a read gets its completion only after all packets of the answer are made, even if
 * the notice arrives earlier.
 */
static void rcxt_read_target_completes_last(struct kunit *test)
{
	struct fixture *f = fixture_make(test);
	struct nhca_rx rx = peer_says(f, 1);
	struct nhca_cqe cqe;

	rx.hdr.rx.notify = NHCA_RX_NOTIFY_TARGET;
	KUNIT_ASSERT_EQ(test, (u32)nhca_rcxt_request(f->rc, &rx.hdr.rx), (u32)NHCA_RCXT_ACCEPT);
	notice(f, 1);
	KUNIT_EXPECT_FALSE(test, completed(f, &cqe));
	KUNIT_ASSERT_TRUE(test, nhca_rcxt_sent(f->rc, 1));
	nhca_notice_answered(&f->ch, &f->id, &rx.hdr.rx, PEER_QPN);
	KUNIT_ASSERT_TRUE(test, completed(f, &cqe));
	KUNIT_EXPECT_EQ(test, (u32)cqe.opcode, (u32)NHCA_WC_CH_REMOTE_READ);
	notice(f, 1);
	KUNIT_EXPECT_FALSE(test, completed(f, &cqe));
	fixture_free(f);
}

static struct kunit_case rcxt_channel_cases[] = {
	KUNIT_CASE(rcxt_notice_waits_for_pages),
	KUNIT_CASE(rcxt_notice_completes_immediately),
	KUNIT_CASE(rcxt_notice_after_release),
	KUNIT_CASE(rcxt_read_target_completes_last),
	KUNIT_CASE(rcxt_segment_fits_mtu),
	KUNIT_CASE(rcxt_shares_count_bytes),
	{}
};

static struct kunit_suite rcxt_channel_suite = {
	.name = "nhca_rcxt_channel",
	.test_cases = rcxt_channel_cases,
};

kunit_test_suite(rcxt_channel_suite);
