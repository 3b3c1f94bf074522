// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit: half-receive writes, whose packets go into frames of the receive FIFO: each packet gets
 * exactly one frame, even if the FIFO or the CQ is full at times, and packets are lost, repeated
 * and reordered.
 */
#include <linux/prandom.h>

#include "frame_reader.h"

#define BOTH		(NHCA_NOTIFY_INITIATOR | NHCA_NOTIFY_TARGET)
#define WR_WRITE	NHCA_WR_CH_WRITE

/*
 * Post a half-receive write of @total bytes. @again: the write was posted before; repeat its bytes
 * from offset @from to @to - 1.
 */
static void post(struct chan *a, u32 tid, u32 total, bool again, u32 from, u32 to)
{
	struct nhca_send_wqe *wqe = chan_wqe(a, WR_WRITE);
	struct nhca_rcxt_wr *wr = wqe->rcxt;

	wr->tid = tid;
	wr->total = total;
	wr->offset = from;
	wr->length = to - from;
	wr->notify = BOTH;
	wr->remote_pvo = 0;
	wr->flags = NHCA_RCXT_WR_FRAMES | (again ? NHCA_RCXT_WR_RETRANSMIT : 0);
	wqe->flags = 0;
	chan_bell(a);
}

/* A write of any length gets one frame for each packet, and changes no memory of the target. */
static void half_frames(struct kunit *test)
{
	static const u32 lengths[] = {
		0, 1, PAIR_SEG - 1, PAIR_SEG, PAIR_SEG + 1, 5 * PAIR_SEG + 7, 16 * PAIR_SEG,
	};
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan, *b = p->end[1].chan;
	struct reader *r = reader_new(test, b, NHCA_FRAME_WRITE);
	struct pair_packet *pk;
	struct nhca_cqe cqe;
	u32 i, len, n;

	for (i = 0; i < ARRAY_SIZE(lengths); i++) {
		len = lengths[i];
		n = nhca_rcxt_packets(len, PAIR_SEG);
		p->batch = i % 2 ? 4 : 0;
		reader_begin(r, i + 1, len);
		post(a, i + 1, len, false, 0, len);
		KUNIT_EXPECT_EQ(test, pair_count(test, NHCA_RX_HALF_WRITE), n);
		list_for_each_entry(pk, &p->wire, list)
			KUNIT_EXPECT_EQ(test, pk->hdr.rx.pvo, pk->hdr.rx.offset);
		pair_settle(test);
		reader_run(test, r, n);
		reader_run(test, r, 1);
		KUNIT_EXPECT_EQ(test, r->frames, n);
		KUNIT_EXPECT_EQ(test, r->done, 1);
		cqe = chan_expect(test, a, NHCA_WC_CH_WRITE, IB_WC_SUCCESS);
		KUNIT_EXPECT_EQ(test, cqe.byte_len, len);
		KUNIT_EXPECT_TRUE(test, chan_idle(a) && chan_idle(b));
		KUNIT_EXPECT_TRUE(test, pair_clear(b->end, 0, 0));
	}
	KUNIT_EXPECT_EQ(test, chan_count(b, NHCA_CH_DROP_FIFO), 0);
}

/*
 * A packet that arrives while the FIFO is full counts as not received: a later repetition gets a
 * frame.
 */
static void half_full_fifo(struct kunit *test)
{
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan, *b = p->end[1].chan;
	struct reader *r = reader_new(test, b, NHCA_FRAME_WRITE);
	const u32 len = 100 * PAIR_SEG;
	u32 turns;

	reader_begin(r, 1, len);
	post(a, 1, len, false, 0, len);
	pair_settle(test);
	KUNIT_EXPECT_EQ(test, chan_count(b, NHCA_CH_DROP_FIFO), 84);
	KUNIT_EXPECT_EQ(test, chan_rcxt(b, 0)->missing, 84);
	/* a repetition of packets that have frames is dropped before a frame is needed */
	post(a, 1, len, true, 0, 10 * PAIR_SEG);
	pair_settle(test);
	KUNIT_EXPECT_EQ(test, chan_count(b, NHCA_CH_DROP_DUPLICATE), 10);
	for (turns = 0; !r->done && turns < 20; turns++) {
		reader_run(test, r, 100);
		post(a, 1, len, true, 0, len);
		pair_settle(test);
	}
	KUNIT_EXPECT_LE(test, turns, 8);
	reader_run(test, r, 100);
	KUNIT_EXPECT_EQ(test, r->frames, 100);
	KUNIT_EXPECT_EQ(test, r->done, 1);
	chan_expect(test, a, NHCA_WC_CH_WRITE, IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(test, pair_clear(b->end, 0, 0));
}

static struct chan *remake(struct kunit *test, struct pair_end *end, u32 qpn, u32 frames, u32 cqes)
{
	const struct nhca_create_channel_cmd cmd = { .job = PAIR_JOB, .frames = frames };
	struct chan *c = chan_new(test, end, qpn, cqes);

	KUNIT_ASSERT_EQ(test, chan_create(c, &cmd), 0);
	KUNIT_ASSERT_EQ(test, nhca_channel_acquire(c->ch, c->ids, CHAN_IDS), 0);
	return c;
}

/* A channel without a receive FIFO drops payload for frames. */
static void half_no_fifo(struct kunit *test)
{
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan, *b = remake(test, &p->end[1], PAIR_QPN + 8, 0, 64);

	a->peer = b;
	b->peer = a;
	post(a, 1, 3 * PAIR_SEG, false, 0, 3 * PAIR_SEG);
	pair_settle(test);
	KUNIT_EXPECT_EQ(test, chan_count(b, NHCA_CH_DROP_FIFO), 3);
	KUNIT_EXPECT_EQ(test, chan_rcxt(b, 0)->missing, 3);
	KUNIT_EXPECT_EQ(test, (u32)chan_rcxt(b, 0)->copies, 0u);
	KUNIT_EXPECT_TRUE(test, chan_idle(a) && chan_idle(b));
}

/*
 * A peer can repeat a packet that gets no frame without end, and each repetition counts a copy on
 * the rCxt. So while a work request of the target's channel waits for the rCxt, the target drops
 * packets for frames.
 */
static void half_wanted(struct kunit *test)
{
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan, *b = p->end[1].chan;

	post(a, 1, 3 * PAIR_SEG, false, 0, 3 * PAIR_SEG);
	pair_deliver(test);
	nhca_rcxt_want(chan_rcxt(b, 0), -EBUSY);
	pair_deliver(test);
	KUNIT_EXPECT_EQ(test, chan_count(b, NHCA_CH_DROP_BUSY), 1);
	KUNIT_EXPECT_EQ(test, chan_rcxt(b, 0)->missing, 2);
	nhca_rcxt_want(chan_rcxt(b, 0), 0);
	pair_settle(test);
	KUNIT_EXPECT_EQ(test, chan_count(b, NHCA_CH_DROP_BUSY), 1);
	KUNIT_EXPECT_EQ(test, chan_rcxt(b, 0)->missing, 1);
}

/*
 * A packet that gets no frame counts as missing again, even if all other packets have arrived. If
 * the write was canceled during the copy, the bitmap is freed already, and is not changed.
 */
static void half_not_framed(struct kunit *test)
{
	struct pair *p = test->priv;
	struct chan *b = p->end[1].chan;
	struct nhca_rcxt_pool *pool = &b->ch->rd->pool;
	struct nhca_rcxt *rc = chan_rcxt(b, 0);
	struct nhca_rxeth x = {
		.tid = 3, .total = 2 * PAIR_SEG, .segment = PAIR_SEG, .half = true,
	}, y = x;

	y.offset = PAIR_SEG;
	y.pvo = PAIR_SEG;
	KUNIT_ASSERT_EQ(test, nhca_rcxt_payload(pool, rc, &x, false), NHCA_RCXT_ACCEPT);
	KUNIT_ASSERT_EQ(test, nhca_rcxt_payload(pool, rc, &y, false), NHCA_RCXT_ACCEPT);
	KUNIT_EXPECT_FALSE(test, nhca_rcxt_copied(pool, rc, true));
	nhca_rcxt_not_framed(rc, &x);
	KUNIT_EXPECT_EQ(test, rc->missing, 1);
	KUNIT_EXPECT_EQ(test, nhca_rcxt_payload(pool, rc, &y, false), NHCA_RCXT_DUPLICATE);
	KUNIT_EXPECT_EQ(test, nhca_rcxt_payload(pool, rc, &x, false), NHCA_RCXT_ACCEPT);
	KUNIT_EXPECT_TRUE(test, nhca_rcxt_copied(pool, rc, true));
	KUNIT_EXPECT_EQ(test, nhca_rcxt_payload(pool, rc, &x, false), NHCA_RCXT_DUPLICATE);

	/* so many packets that the bitmap of the write is allocated */
	x.tid = 4;
	x.total = 100 * PAIR_SEG;
	KUNIT_ASSERT_EQ(test, nhca_rcxt_payload(pool, rc, &x, false), NHCA_RCXT_ACCEPT);
	KUNIT_EXPECT_EQ(test, nhca_rcxt_cancel(pool, rc, 4), 0);
	KUNIT_EXPECT_EQ(test, atomic_long_read(&pool->map_bytes), 0);
	nhca_rcxt_not_framed(rc, &x);
	KUNIT_EXPECT_EQ(test, rc->missing, 99);
	KUNIT_EXPECT_EQ(test, (u32)rc->copies, 0u);
	KUNIT_EXPECT_EQ(test, nhca_rcxt_payload(pool, rc, &x, false), NHCA_RCXT_STALE);
}

/* While the CQ is full, a packet counts as not received, because its completion is lost. */
static void half_full_cq(struct kunit *test)
{
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan, *b = remake(test, &p->end[1], PAIR_QPN + 8, 16, 4);
	struct reader *r = reader_new(test, b, NHCA_FRAME_WRITE);
	const u32 len = 11 * PAIR_SEG;
	u32 turns;

	a->peer = b;
	b->peer = a;
	reader_begin(r, 1, len);
	post(a, 1, len, false, 0, len);
	pair_settle(test);
	KUNIT_EXPECT_EQ(test, chan_count(b, NHCA_CH_DROP_CQ), 7);
	KUNIT_EXPECT_EQ(test, chan_rcxt(b, 0)->missing, 7);
	for (turns = 0; chan_rcxt(b, 0)->state != NHCA_RCXT_DONE && turns < 9; turns++) {
		reader_run(test, r, 3);
		post(a, 1, len, true, 0, len);
		pair_settle(test);
	}
	KUNIT_EXPECT_LT(test, turns, 9);
	reader_run(test, r, 100);
	KUNIT_EXPECT_EQ(test, r->frames, 11);
	chan_expect(test, a, NHCA_WC_CH_WRITE, IB_WC_SUCCESS);
}

/* All packets of a tid are of one kind, so a packet of another kind is dropped. */
static void half_kinds(struct kunit *test)
{
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan, *b = p->end[1].chan;
	struct pair_packet *pk;

	post(a, 1, 2 * PAIR_SEG, false, 0, 2 * PAIR_SEG);
	pair_deliver(test);
	pk = pair_first(test, NHCA_RX_HALF_WRITE);
	pk->hdr.opcode = NHCA_RX_WRITE;
	pair_rx(test, pk);
	KUNIT_EXPECT_EQ(test, chan_count(b, NHCA_CH_DROP_MISMATCH), 1);
	pair_drop(pk);

	chan_transfer(a, WR_WRITE, 2, 2 * PAIR_SEG, BOTH);
	pair_deliver(test);
	pk = pair_first(test, NHCA_RX_WRITE);
	pk->hdr.opcode = NHCA_RX_HALF_WRITE;
	pk->hdr.rx.pvo = pk->hdr.rx.offset;
	pair_rx(test, pk);
	KUNIT_EXPECT_EQ(test, chan_count(b, NHCA_CH_DROP_MISMATCH), 2);
	pair_drop(pk);
	KUNIT_EXPECT_EQ(test, chan_rcxt(b, 0)->missing, 1);

	/* a read of @b accepts no packets of a half-receive write */
	chan_transfer(b, NHCA_WR_CH_READ, 3, 2 * PAIR_SEG, BOTH);
	pair_drop(pair_first(test, NHCA_RX_READ_REQUEST));
	post(a, 3, 2 * PAIR_SEG, false, 0, 2 * PAIR_SEG);
	pair_deliver(test);
	KUNIT_EXPECT_EQ(test, chan_count(b, NHCA_CH_DROP_MISMATCH), 3);
	/* a write with a higher tid does not end the read either */
	pk = pair_first(test, NHCA_RX_HALF_WRITE);
	pk->hdr.rx.tid = 4;
	pair_rx(test, pk);
	KUNIT_EXPECT_EQ(test, chan_count(b, NHCA_CH_DROP_BUSY), 1);
}

/* A fence ends the write, and no later packet gets a frame. */
static void half_fence(struct kunit *test)
{
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan, *b = p->end[1].chan;
	const struct nhca_frame *frame;
	struct pair_packet *fence;
	struct nhca_cqe cqe;

	post(a, 7, 2 * PAIR_SEG, false, 0, 2 * PAIR_SEG);
	pair_deliver(test);
	chan_expect(test, b, NHCA_WC_CH_FRAME, IB_WC_SUCCESS);
	chan_wqe(a, NHCA_WR_CH_FENCE)->rcxt[0].tid = 7;
	chan_bell(a);
	chan_expect(test, a, NHCA_WC_CH_LOCAL, IB_WC_SUCCESS);
	fence = list_last_entry(&p->wire, struct pair_packet, list);
	pair_rx(test, fence);
	pair_drop(fence);
	KUNIT_EXPECT_EQ(test, chan_count(b, NHCA_CH_FENCED), 1);
	pair_rx(test, pair_first(test, NHCA_RX_HALF_WRITE));
	KUNIT_EXPECT_EQ(test, chan_count(b, NHCA_CH_DROP_STALE), 1);
	pair_settle(test);
	cqe = chan_expect(test, a, NHCA_WC_CH_FRAME, IB_WC_SUCCESS);
	frame = nhca_ring_slot(&a->ch->fifo.ring, cqe.chan.frame);
	KUNIT_EXPECT_EQ(test, frame->status, NHCA_TRANSFER_FENCED);
	KUNIT_EXPECT_TRUE(test, chan_idle(a) && chan_idle(b));
}

/*
 * nhca_rxeth_fits() refuses headers that payload for a frame cannot have, before the rCxt is looked
 * up.
 */
static void half_wire(struct kunit *test)
{
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan, *b = p->end[1].chan;
	struct pair_packet *pk;

	post(a, 1, 2 * PAIR_SEG, false, 0, 2 * PAIR_SEG);
	pk = pair_first(test, NHCA_RX_HALF_WRITE);
	pk->hdr.rx.pvo = 4;
	pair_rx(test, pk);
	pk->hdr.rx.pvo = 0;
	pk->hdr.rx.segment = 1988;
	pk->hdr.rx.total = PAIR_SEG;
	pair_rx(test, pk);
	pk->hdr.rx.segment = PAIR_SEG - 4;
	pk->hdr.rx.total = 2 * PAIR_SEG;
	pair_rx(test, pk);
	KUNIT_EXPECT_EQ(test, pair_dev_count(b->end, NHCA_CNT_RX_BAD_LENGTH), 3);
	KUNIT_EXPECT_TRUE(test, chan_idle(b));
	KUNIT_EXPECT_EQ(test, chan_rcxt(b, 0)->tid, 0);
}

/* If the program lets the kernel choose the segment, each packet fits into a frame. */
static void half_segment(struct kunit *test)
{
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan, *b = p->end[1].chan;
	struct nhca_rcxt_wr *wr;
	u32 i;

	a->end->netdev->mtu = 9000;
	wr = chan_wqe(a, WR_WRITE)->rcxt;
	wr->total = 4000;
	wr->length = 4000;
	wr->segment = 0;
	wr->remote_pvo = 0;
	wr->flags = NHCA_RCXT_WR_FRAMES;
	chan_bell(a);
	KUNIT_EXPECT_EQ(test, pair_first(test, NHCA_RX_HALF_WRITE)->payload, NHCA_FRAME_DATA);
	pair_settle(test);
	for (i = 0; i < 3; i++)
		chan_expect(test, b, NHCA_WC_CH_FRAME, IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(test, chan_idle(b));
}

/* A malformed work request puts the channel into the error state, and no packet is sent. */
static void half_malformed(struct kunit *test)
{
	static const u8 others[] = {
		NHCA_WR_CH_READ, NHCA_WR_CH_PROBE, NHCA_WR_CH_MOVE, NHCA_WR_CH_CANCEL,
		NHCA_WR_CH_FENCE,
	};
	struct pair *p = test->priv;
	struct chan *a;
	struct nhca_rcxt_wr *wr;
	u32 i;

	for (i = 0; i < 2 + ARRAY_SIZE(others); i++) {
		a = remake(test, &p->end[0], PAIR_QPN + 16 + i, 16, 64);
		a->peer = p->end[1].chan;
		wr = chan_wqe(a, i < 2 ? WR_WRITE : others[i - 2])->rcxt;
		wr->flags = NHCA_RCXT_WR_FRAMES;
		if (i < 2) {
			wr->total = PAIR_SEG;
			wr->length = PAIR_SEG;
			wr->remote_pvo = !i;
			wr->segment = i ? NHCA_FRAME_DATA + 4 : PAIR_SEG;
		}
		chan_bell(a);
		KUNIT_EXPECT_EQ_MSG(test, a->ch->reason, NHCA_CH_ERR_WQE, "case %u", i);
		KUNIT_EXPECT_EQ(test, p->sent, 0);
		chan_destroy(a);
	}
}

/*
 * Random writes to a FIFO that is often full, on a network that loses, repeats and reorders
 * packets: each packet gets exactly one frame, and each write completes once.
 */
static void half_random(struct kunit *test)
{
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan, *b = p->end[1].chan;
	struct reader *r = reader_new(test, b, NHCA_FRAME_WRITE);
	struct rnd_state rnd;
	struct nhca_cqe cqe;
	u32 tid, n, len, turn;

	prandom_seed_state(&rnd, 290);
	p->batch = 5;
	for (tid = 1; tid <= 300; tid++) {
		len = prandom_u32_state(&rnd) % (64 * PAIR_SEG);
		n = nhca_rcxt_packets(len, PAIR_SEG);
		reader_begin(r, tid, len);
		post(a, tid, len, false, 0, len);
		for (turn = 0; !r->done; turn++) {
			KUNIT_ASSERT_LT(test, turn, 200);
			if (turn)
				post(a, tid, len, true, 0, len);
			while (pair_lossy(test, &rnd)) {
				if (prandom_u32_state(&rnd) % 8 == 0)
					reader_run(test, r, prandom_u32_state(&rnd) % 8);
			}
			reader_run(test, r, prandom_u32_state(&rnd) % 32);
			while (chan_poll(a, false, &cqe))
				KUNIT_ASSERT_EQ(test, cqe.status, IB_WC_SUCCESS);
		}
		reader_run(test, r, 1);
		KUNIT_ASSERT_EQ(test, r->frames, n);
		KUNIT_ASSERT_EQ(test, r->done, 1);
		KUNIT_ASSERT_EQ(test, (u32)chan_rcxt(b, 0)->copies, 0u);
	}
	KUNIT_EXPECT_GT(test, chan_count(b, NHCA_CH_DROP_FIFO), 100);
	KUNIT_EXPECT_TRUE(test, pair_clear(b->end, 0, 0));
}

static struct kunit_case half_cases[] = {
	KUNIT_CASE(half_frames),
	KUNIT_CASE(half_full_fifo),
	KUNIT_CASE(half_no_fifo),
	KUNIT_CASE(half_wanted),
	KUNIT_CASE(half_not_framed),
	KUNIT_CASE(half_full_cq),
	KUNIT_CASE(half_kinds),
	KUNIT_CASE(half_fence),
	KUNIT_CASE(half_wire),
	KUNIT_CASE(half_segment),
	KUNIT_CASE(half_malformed),
	KUNIT_CASE(half_random),
	{}
};

static struct kunit_suite half_suite = {
	.name = "nhca_rcxt_half",
	.init = pair_init,
	.exit = pair_exit,
	.test_cases = half_cases,
};

kunit_test_suite(half_suite);
