// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit: a requester and a responder on a path that drops, duplicates and reorders packets. Each
 * message of the requester, and each reply of the responder, is executed exactly once, in order,
 * with the right bytes, and completes once.
 */
#include <linux/prandom.h>

#include "qp_fixture.h"

#define MTU		256	/* bytes */
#define MESSAGES	600
#define SLOTS		4	/* maximum number of outstanding messages */
#define SLOT		1024	/* maximum bytes of a message */
#define PACKETS		64	/* maximum packets on the path; further packets are lost */
#define STEPS		200000	/* more than any test needs */

#define REPLIES		8	/* receives of the requester, for replies */
#define REPLY		8	/* bytes of a reply */

/* Pages of the region. */
enum { SOURCE, RECEIVE, WRITTEN, REST, PAGES };
#define AT(page, slot)	((page) * PAGE_SIZE + (slot) * SLOT)
#define CONSTANT	AT(REST, 0)	/* source of READs */
#define COUNTER		AT(REST, 1)	/* target of atomics */
/*
 * Source and destination of reply @n. The sources have 64 slots, more than the send queue has
 * entries, so that no reply in progress is overwritten. There is one destination for each receive.
 */
#define REPLY_FROM(n)	(AT(REST, 2) + (n) % 64 * REPLY)
#define REPLY_TO(n)	(AT(REST, 3) + (n) % REPLIES * REPLY)

struct packet {
	struct nhca_hdr hdr;
	u32 payload;
	bool to_b;
	u8 bytes[MTU];
};

/**
 * struct net_path - the two ends and the path between them
 * @a:        requester
 * @b:        responder
 * @b_cq:     completions of @b
 * @pages:    memory of @mr
 * @mr:       region of both ends
 * @rnd:      random numbers
 * @loss:     number of packets in a thousand that are lost; as many are duplicated, and as many
 *            overtaken
 * @caps:     packets have their capability bits, and @b replies to each SEND
 * @n:        number of @packets
 * @packets:  packets on the path
 * @posted:   messages that @a has posted
 * @done:     messages that have completed
 * @sends:    SENDs that were posted
 * @received: messages that @b has received by SEND
 * @receives: receives that @b has posted
 * @expected: for each SEND: number of its message
 * @added:    atomics that were posted
 * @orig:     for each message that is an atomic: the value that it must return
 * @replies:  replies that @b has posted
 * @replied:  replies that @a has received
 */
struct net_path {
	struct nhca_qp *a, *b;
	struct nhca_cq *b_cq;
	struct page *pages[PAGES];
	struct nhca_mr *mr;
	struct rnd_state rnd;
	u32 loss;
	bool caps;
	u32 n;
	struct packet packets[PACKETS];
	u32 posted, done;
	u32 sends, received, receives;
	u32 expected[MESSAGES];
	u64 added;
	u64 orig[MESSAGES];
	u32 replies, replied;
};

static struct net_path *path;

static u32 rnd(u32 below)
{
	return prandom_u32_state(&path->rnd) % below;
}

static u8 *at(u32 offset)
{
	return (u8 *)page_address(path->pages[offset / PAGE_SIZE]) + offset % PAGE_SIZE;
}

/* Return: the operation of message @i. */
static enum ib_wr_opcode kind(u32 i)
{
	static const enum ib_wr_opcode kinds[] = {
		IB_WR_SEND, IB_WR_RDMA_WRITE, IB_WR_RDMA_READ, IB_WR_ATOMIC_FETCH_AND_ADD,
		IB_WR_SEND, IB_WR_RDMA_WRITE, IB_WR_SEND,
	};

	return kinds[i % ARRAY_SIZE(kinds)];
}

static u32 length(u32 i)
{
	return kind(i) == IB_WR_ATOMIC_FETCH_AND_ADD ? 8 : i * 97 % (SLOT + 1);
}

/*
 * No two packets of a message have the same bytes, so the test detects a packet in the place of
 * another packet.
 */
static u8 byte(u32 i, u32 off)
{
	return i * 31 + off * 7 + off / MTU * 101;
}

/* Return: true if @len bytes at @offset are bytes of message @i. */
static bool right(u32 offset, u32 i, u32 len)
{
	u32 off;

	for (off = 0; off < len; off++)
		if (at(offset)[off] != byte(i, off))
			return false;
	return true;
}

/* Called with each packet that an end has sent, with a lock of this end held. */
static void on_wire(struct qp_fixture *f, const struct nhca_tx *tx, const u8 *payload)
{
	struct packet *p = &path->packets[path->n];

	if (path->n == PACKETS || rnd(1000) < path->loss)
		return;
	p->hdr = *tx->hdr;
	p->payload = tx->payload;
	p->to_b = tx->who == &path->a->who;
	p->hdr.qpn = p->to_b ? path->b->qpn : path->a->qpn;
	if (!path->caps)
		p->hdr.caps = 0;
	memcpy(p->bytes, payload, tx->payload);
	path->n++;
	if (path->n < PACKETS && rnd(1000) < path->loss) {
		path->packets[path->n] = *p;
		path->n++;
	}
}

/* Deliver the first packet on the path, or a later packet that overtakes it. */
static void deliver(struct kunit *test)
{
	struct qp_fixture *f = test->priv;
	static struct packet p;
	u32 i = rnd(1000) < path->loss ? rnd(path->n) : 0;

	p = path->packets[i];
	path->n--;
	memmove(&path->packets[i], &path->packets[i + 1], (path->n - i) * sizeof(p));
	f->data = p.bytes;
	fix_deliver(test, p.hdr, p.payload);
	f->data = NULL;
}

static void post(struct kunit *test)
{
	u32 i = path->posted++, slot = i % SLOTS, len = length(i), off;
	enum ib_wr_opcode what = kind(i);
	u32 local = AT(SOURCE, slot);
	int flags = IB_SEND_SIGNALED;

	if (what == IB_WR_ATOMIC_FETCH_AND_ADD) {
		path->orig[i] = path->added++;
		KUNIT_ASSERT_EQ(test, fix_post_atomic(path->a, path->mr, what, local, COUNTER, 1,
						      0), 0);
	} else {
		for (off = 0; off < len; off++)
			at(local)[off] = what == IB_WR_RDMA_READ ? 0 : byte(i, off);
		if (what == IB_WR_SEND)
			path->expected[path->sends++] = i;
		KUNIT_ASSERT_EQ(test, fix_post_rdma(path->a, path->mr, what, local, len,
						    what == IB_WR_RDMA_READ ? CONSTANT :
						    AT(WRITTEN, slot), flags), 0);
	}
	nhca_send_doorbell(path->a);
}

/* Check that a reply has come in order, and post a receive for a later reply. */
static void check_reply(struct kunit *test, const struct nhca_cqe *cqe)
{
	u32 n = path->replied++;

	KUNIT_ASSERT_LT(test, n, path->replies);
	KUNIT_ASSERT_EQ_MSG(test, cqe->status, IB_WC_SUCCESS, "reply %u", n);
	KUNIT_ASSERT_EQ_MSG(test, cqe->wr_id, REPLY_TO(n), "reply %u", n);
	KUNIT_ASSERT_EQ_MSG(test, cqe->byte_len, REPLY, "reply %u", n);
	KUNIT_ASSERT_EQ(test, *(u64 *)at(REPLY_TO(n)), n);
	fix_post_recv(test, &path->a->rq.wq, path->mr, REPLY_TO(n), REPLY);
}

/* Reply to the SENDs that were received, as far as the send queue has room. */
static void reply(struct kunit *test)
{
	while (path->caps && path->replies < path->received) {
		*(u64 *)at(REPLY_FROM(path->replies)) = path->replies;
		if (fix_post_rdma(path->b, path->mr, IB_WR_SEND, REPLY_FROM(path->replies), REPLY,
				  0, 0))
			return;
		path->replies++;
		nhca_send_doorbell(path->b);
	}
}

/* Check the completions of the requester. */
static void check_done(struct kunit *test)
{
	struct qp_fixture *f = test->priv;
	struct nhca_cqe cqe;
	u32 i, slot;

	while (fix_poll(f->cq, &cqe)) {
		if (cqe.opcode == IB_WC_RECV) {
			check_reply(test, &cqe);
			continue;
		}
		i = path->done++;
		slot = i % SLOTS;
		KUNIT_ASSERT_EQ_MSG(test, cqe.status, IB_WC_SUCCESS, "message %u", i);
		KUNIT_ASSERT_EQ_MSG(test, cqe.wr_id, AT(SOURCE, slot), "message %u", i);
		switch (kind(i)) {
		case IB_WR_RDMA_WRITE:
			KUNIT_ASSERT_TRUE(test, right(AT(WRITTEN, slot), i, length(i)));
			break;
		case IB_WR_RDMA_READ:
			KUNIT_ASSERT_TRUE(test, right(AT(SOURCE, slot), MESSAGES, length(i)));
			break;
		case IB_WR_ATOMIC_FETCH_AND_ADD:
			KUNIT_ASSERT_EQ(test, *(u64 *)at(AT(SOURCE, slot)), path->orig[i]);
			break;
		default:
			break;
		}
	}
}

/* Check the messages that the responder has received, in order. */
static void check_received(struct kunit *test)
{
	struct nhca_cqe cqe;
	u32 i, to;

	while (fix_poll(path->b_cq, &cqe)) {
		to = AT(RECEIVE, path->received % SLOTS);
		KUNIT_ASSERT_LT(test, path->received, path->sends);
		i = path->expected[path->received++];
		KUNIT_ASSERT_EQ_MSG(test, cqe.status, IB_WC_SUCCESS, "message %u", i);
		KUNIT_ASSERT_EQ_MSG(test, cqe.wr_id, to, "message %u", i);
		KUNIT_ASSERT_EQ_MSG(test, cqe.byte_len, length(i), "message %u", i);
		KUNIT_ASSERT_TRUE(test, right(to, i, length(i)));
	}
}

/* Return: true if messages or replies are outstanding. */
static bool unfinished(void)
{
	return path->posted > path->done || path->replies > path->replied;
}

/* If an ACK waits for a request that could carry it, let the timer of the ACK expire. */
static void time_out_ack(struct nhca_piggyback *piggyback)
{
	local_bh_disable();
	if (atomic_read(&piggyback->pending)) {
		piggyback->req_at = 0;
		nhca_piggyback_timer(&piggyback->timer);
	}
	local_bh_enable();
}

/* No packet is on the path, so only timers can detect a loss. Let the timers expire. */
static void time_out(void)
{
	time_out_ack(path->a->piggyback);
	time_out_ack(path->b->piggyback);
	if (!path->n)
		fix_expire(path->a);
	if (!path->n)
		fix_expire(path->b);
}

/*
 * Stop the retransmission timers: while a timer is pending, nhca_sq_timer() ignores an expiry in an
 * RNR wait.
 */
static void stop_timers(void)
{
	timer_delete(&path->a->sq.timer);
	timer_delete(&path->b->sq.timer);
}

/* Check what both ends have received, and post replies. */
static void check(struct kunit *test)
{
	check_received(test);
	check_done(test);
	reply(test);
}

static void step(struct kunit *test)
{
	if (path->posted < MESSAGES && path->posted - path->done < SLOTS && !rnd(3))
		post(test);
	/* receives are often posted too late, so that the responder sends RNR NAKs */
	if (path->receives - path->received < SLOTS && !rnd(6))
		fix_post_recv(test, &path->b->rq.wq, path->mr,
			      AT(RECEIVE, path->receives++ % SLOTS), SLOT);
	if (path->n)
		deliver(test);
	else if (unfinished())
		time_out();
	stop_timers();
	check(test);
	stop_timers();
}

static void psns(struct nhca_qp *qp)
{
	/* PSNs wrap soon */
	qp->sq.psn = 0xffff80;
	qp->sq.una = qp->sq.psn;
	qp->sq.nxt = qp->sq.psn;
	qp->rq.psn = qp->sq.psn;
	qp->mtu = MTU;
	qp->attr.retry_cnt = 255;
	qp->sq.rtx->retries = 255;
	/* 0: the longest RNR timer */
	qp->attr.min_rnr_timer = 0;
	fix_timeout(qp);
	/*
	 * keep the timer pending until after the test, so that the driver does not start the timer;
	 * time_out() calls its function
	 */
	mod_timer(&qp->piggyback->timer, jiffies + 1000 * HZ);
}

/* Replaces nhca_piggyback_clock(): each reply is quick, however long the test takes. */
static u32 still_clock(void)
{
	return 1;
}

static void path_init(struct kunit *test)
{
	struct qp_fixture *f = test->priv;
	u32 i;

	kunit_activate_static_stub(test, nhca_piggyback_clock, still_clock);
	path = kunit_kzalloc(test, sizeof(*path), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, path);
	for (i = 0; i < PAGES; i++) {
		path->pages[i] = alloc_page(GFP_KERNEL | __GFP_ZERO);
		KUNIT_ASSERT_NOT_NULL(test, path->pages[i]);
	}
	path->mr = nhca_mr_alloc(f->dev, f->pd, IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_READ |
				 IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_ATOMIC);
	KUNIT_ASSERT_FALSE(test, IS_ERR(path->mr));
	KUNIT_ASSERT_EQ(test, nhca_mr_map_pages(path->mr, path->pages, PAGES, 0, true), 0);
	nhca_mr_start(path->mr, 0, PAGES * PAGE_SIZE);
	for (i = 0; i < SLOT; i++)
		at(CONSTANT)[i] = byte(MESSAGES, i);
	path->b_cq = fix_cq(test, 64);
	path->a = f->qp;
	path->b = fix_qp_on(test, IB_QPT_RC, NULL, path->b_cq, 32);
	fix_connect(test, path->b);
	psns(path->a);
	psns(path->b);
	for (i = 0; i < REPLIES; i++)
		fix_post_recv(test, &path->a->rq.wq, path->mr, REPLY_TO(i), REPLY);
	f->wire = on_wire;
}

static void path_exit(struct kunit *test)
{
	struct qp_fixture *f = test->priv;
	u32 i;

	f->wire = NULL;
	fix_destroy(&f->qp);
	fix_destroy(&path->b);
	nhca_cq_stop(path->b_cq);
	nhca_ring_free(&path->b_cq->ring);
	nhca_mr_free(path->mr);
	for (i = 0; i < PAGES; i++)
		__free_page(path->pages[i]);
}

/* Exchange MESSAGES messages. @loss, @caps: as in struct net_path. */
static void run(struct kunit *test, u64 seed, u32 loss, bool caps)
{
	struct qp_fixture *f = test->priv;
	u32 steps = 0;
	u64 lost;

	path_init(test);
	prandom_seed_state(&path->rnd, seed);
	path->loss = loss;
	path->caps = caps;
	while ((path->done < MESSAGES || unfinished()) && steps++ < STEPS)
		step(test);
	KUNIT_EXPECT_EQ(test, path->done, MESSAGES);
	KUNIT_EXPECT_EQ(test, path->replied, caps ? path->sends : 0);
	/* packets that are still on the path change nothing */
	while (path->n) {
		deliver(test);
		stop_timers();
		check(test);
		stop_timers();
	}
	KUNIT_EXPECT_EQ(test, path->done, MESSAGES);
	KUNIT_EXPECT_EQ(test, path->received, path->sends);
	KUNIT_EXPECT_EQ(test, *(u64 *)at(COUNTER), path->added);
	KUNIT_EXPECT_EQ(test, path->a->state, IB_QPS_RTS);
	KUNIT_EXPECT_EQ(test, path->b->state, IB_QPS_RTS);
	KUNIT_EXPECT_EQ(test, path->a->sq.una, path->b->rq.psn);
	KUNIT_EXPECT_EQ(test, fix_count(f, NHCA_CNT_ACKS_PIGGYBACKED) > 0, caps);
	KUNIT_EXPECT_EQ(test, path->a->sq.rd_atomic, 0);
	lost = fix_count(f, NHCA_CNT_TIMEOUT) + fix_count(f, NHCA_CNT_PROBE) +
	       fix_count(f, NHCA_CNT_RCVD_SEQ_NAK);
	KUNIT_EXPECT_EQ(test, lost > 0, loss > 0);
	path_exit(test);
}

static void perfect_path_test(struct kunit *test)
{
	run(test, 1, 0, false);
}

static void lossy_path_test(struct kunit *test)
{
	run(test, 2, 30, false);
}

static void bad_path_test(struct kunit *test)
{
	run(test, 3, 150, false);
}

/*
 * Two ends that are nhca, on a lossy path: after the ends have exchanged capability bits, packets
 * have no ICRC, and replies may carry ACKs.
 */
static void nhca_path_test(struct kunit *test)
{
	run(test, 4, 30, true);
}

static struct kunit_case peer_cases[] = {
	KUNIT_CASE(perfect_path_test),
	KUNIT_CASE(lossy_path_test),
	KUNIT_CASE(bad_path_test),
	KUNIT_CASE(nhca_path_test),
	{}
};

static struct kunit_suite peer_suite = {
	.name = "nhca_peer",
	.init = qp_fixture_init,
	.exit = qp_fixture_exit,
	.test_cases = peer_cases,
};

kunit_test_suite(peer_suite);
