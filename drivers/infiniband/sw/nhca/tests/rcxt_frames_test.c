// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit: half-receive reads, whose payload goes into frames of the reader's receive FIFO: each
 * packet gets exactly one frame, the reader requests missing parts again, and the responder
 * executes each request at most once.
 */
#include <linux/prandom.h>

#include "frame_reader.h"

#define BOTH		(NHCA_NOTIFY_INITIATOR | NHCA_NOTIFY_TARGET)

/* Post a half-receive read of @total bytes: request the bytes from offset @from to @to - 1. */
static void post(struct chan *a, u32 tid, u32 total, bool again, u32 from, u32 to)
{
	struct nhca_send_wqe *wqe = chan_wqe(a, NHCA_WR_CH_READ);
	struct nhca_rcxt_wr *wr = wqe->rcxt;

	wr->tid = tid;
	wr->total = total;
	wr->offset = from;
	wr->length = to - from;
	wr->notify = BOTH;
	wr->local_pvo = 0;
	wr->flags = NHCA_RCXT_WR_FRAMES | (again ? NHCA_RCXT_WR_RETRANSMIT : 0);
	wqe->flags = 0;
	chan_bell(a);
}

/* Begin a read of @total bytes. The first request is for the first @length bytes. */
static void begin(struct reader *r, u32 tid, u32 total, u32 length)
{
	reader_begin(r, tid, total);
	post(r->c, tid, total, false, 0, length);
}

/* A read of any length gets one frame for each packet, and changes no memory of the reader. */
static void frames_bytes(struct kunit *test)
{
	static const u32 lengths[] = {
		0, 1, PAIR_SEG - 1, PAIR_SEG, PAIR_SEG + 1, 5 * PAIR_SEG + 7, 16 * PAIR_SEG,
	};
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan, *b = p->end[1].chan;
	struct reader *r = reader_new(test, a, NHCA_FRAME_READ);
	struct pair_packet *pk;
	struct nhca_cqe cqe;
	u32 i, n;

	for (i = 0; i < ARRAY_SIZE(lengths); i++) {
		n = nhca_rcxt_packets(lengths[i], PAIR_SEG);
		p->batch = i % 2 ? 4 : 0;
		begin(r, i + 1, lengths[i], lengths[i]);
		/* only the first request has no token */
		if (!i) {
			pair_deliver(test);
			KUNIT_EXPECT_EQ(test, pair_count(test, NHCA_RX_FRAMES_CHALLENGE), 1);
			pair_deliver(test);
			KUNIT_EXPECT_TRUE(test, pair_first(test, NHCA_RX_FRAMES_REQUEST)->
					  hdr.rx.again);
		}
		pair_deliver(test);
		KUNIT_EXPECT_EQ(test, pair_count(test, NHCA_RX_FRAMES_DATA), n);
		KUNIT_EXPECT_EQ(test, pair_count(test, 0), n);
		list_for_each_entry(pk, &p->wire, list)
			KUNIT_EXPECT_EQ(test, pk->hdr.rx.pvo, pk->hdr.rx.offset);
		pair_settle(test);
		reader_run(test, r, n);
		KUNIT_EXPECT_EQ(test, r->frames, n);
		KUNIT_EXPECT_EQ(test, r->done, 1);
		cqe = chan_expect(test, b, NHCA_WC_CH_REMOTE_READ, IB_WC_SUCCESS);
		KUNIT_EXPECT_EQ(test, cqe.byte_len, lengths[i]);
		KUNIT_EXPECT_TRUE(test, chan_idle(a) && chan_idle(b));
		KUNIT_EXPECT_TRUE(test, pair_clear(a->end, 0, 0));
	}
	KUNIT_EXPECT_EQ(test, chan_count(a, NHCA_CH_DROP_FIFO), 0);
}

/* If a reader requests only as many packets as its FIFO has room for, no packet is dropped. */
static void frames_window(struct kunit *test)
{
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan, *b = p->end[1].chan;
	struct reader *r = reader_new(test, a, NHCA_FRAME_READ);
	const u32 len = 40 * PAIR_SEG + 9;

	begin(r, 1, len, 16 * PAIR_SEG);
	pair_settle(test);
	reader_run(test, r, 16);
	KUNIT_EXPECT_EQ(test, r->frames, 16);
	/* the responder has sent all bytes of the first request, and waits for the next one */
	KUNIT_EXPECT_EQ(test, (u32)chan_rcxt(b, 0)->state, (u32)NHCA_RCXT_ANSWERED);
	post(a, 1, len, true, 16 * PAIR_SEG, 32 * PAIR_SEG);
	pair_settle(test);
	reader_run(test, r, 16);
	post(a, 1, len, true, 32 * PAIR_SEG, len);
	pair_settle(test);
	reader_run(test, r, 16);
	KUNIT_EXPECT_EQ(test, r->frames, 41);
	KUNIT_EXPECT_EQ(test, r->done, 1);
	KUNIT_EXPECT_EQ(test, chan_count(a, NHCA_CH_DROP_FIFO), 0);
	chan_expect(test, b, NHCA_WC_CH_REMOTE_READ, IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(test, chan_idle(a) && chan_idle(b));
	/* the read is complete, so no request is sent */
	post(a, 1, len, true, 0, len);
	KUNIT_EXPECT_EQ(test, pair_count(test, 0), 0);
	KUNIT_EXPECT_TRUE(test, chan_idle(a));
}

/*
 * A packet that arrives while the FIFO is full counts as not received: a later repetition gets a
 * frame.
 */
static void frames_full_fifo(struct kunit *test)
{
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan, *b = p->end[1].chan;
	struct reader *r = reader_new(test, a, NHCA_FRAME_READ);
	const u32 len = 100 * PAIR_SEG;
	u32 turns;

	begin(r, 1, len, len);
	pair_settle(test);
	KUNIT_EXPECT_EQ(test, chan_count(a, NHCA_CH_DROP_FIFO), 84);
	KUNIT_EXPECT_EQ(test, chan_rcxt(a, 0)->missing, 84);
	post(a, 1, len, true, 0, 10 * PAIR_SEG);
	pair_settle(test);
	KUNIT_EXPECT_EQ(test, chan_count(a, NHCA_CH_DROP_DUPLICATE), 10);
	for (turns = 0; !r->done && turns < 20; turns++) {
		reader_run(test, r, 100);
		if (!r->done)
			post(a, 1, len, true, 0, len);
		pair_settle(test);
	}
	KUNIT_EXPECT_LE(test, turns, 8);
	KUNIT_EXPECT_EQ(test, r->frames, 100);
	chan_expect(test, b, NHCA_WC_CH_REMOTE_READ, IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(test, pair_clear(a->end, 0, 0));
}

/* The responder sends nothing for a request that it has received before, even after the read. */
static void frames_replay(struct kunit *test)
{
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan, *b = p->end[1].chan;
	struct reader *r = reader_new(test, a, NHCA_FRAME_READ);
	const u32 len = 4 * PAIR_SEG;
	struct pair_packet *pk;
	u32 sent;

	begin(r, 1, len, len);
	pair_settle(test);
	reader_run(test, r, 4);
	KUNIT_EXPECT_EQ(test, r->done, 1);

	begin(r, 2, len, 2 * PAIR_SEG);
	pk = pair_first(test, NHCA_RX_FRAMES_REQUEST);
	list_del_init(&pk->list);
	pair_rx(test, pk);
	KUNIT_EXPECT_EQ(test, pair_count(test, NHCA_RX_FRAMES_DATA), 2);
	pair_settle(test);
	sent = p->sent;
	pair_rx(test, pk);
	KUNIT_EXPECT_EQ(test, chan_count(b, NHCA_CH_DROP_DUPLICATE), 1);
	post(a, 2, len, true, 2 * PAIR_SEG, len);
	pair_settle(test);
	KUNIT_EXPECT_GT(test, p->sent, sent);
	reader_run(test, r, 4);
	KUNIT_EXPECT_EQ(test, r->done, 1);
	/* the first request again, after the read is complete */
	sent = p->sent;
	pair_rx(test, pk);
	KUNIT_EXPECT_EQ(test, chan_count(b, NHCA_CH_DROP_STALE), 1);
	KUNIT_EXPECT_EQ(test, p->sent, sent);
	list_add(&pk->list, &p->wire);
	pair_drop(pk);
}

/* The tid rules of the responder, with several requests in execution at a time. */
static void frames_rules(struct kunit *test)
{
	struct nhca_rxeth x = { .tid = 5, .total = 1 << 16, .segment = 1024, .pvo = 77 }, y;
	struct pair *p = test->priv;
	struct chan *b = p->end[1].chan;
	struct nhca_rcxt *rc = chan_rcxt(b, 0);
	u32 i;

	x.notify = BOTH;
	KUNIT_EXPECT_EQ(test, nhca_rcxt_frames_request(rc, &x), NHCA_RCXT_ACCEPT);
	KUNIT_EXPECT_EQ(test, nhca_rcxt_frames_request(rc, &x), NHCA_RCXT_DUPLICATE);
	for (i = 1; i < NHCA_RCXT_PARTS; i++) {
		x.number = 2 * i;
		KUNIT_EXPECT_EQ(test, nhca_rcxt_frames_request(rc, &x), NHCA_RCXT_ACCEPT);
		x.number = 2 * i - 1;
		KUNIT_EXPECT_EQ(test, nhca_rcxt_frames_request(rc, &x), NHCA_RCXT_DUPLICATE);
	}
	x.number = 1000;
	KUNIT_EXPECT_EQ(test, nhca_rcxt_frames_request(rc, &x), NHCA_RCXT_BUSY);
	KUNIT_EXPECT_FALSE(test, nhca_rcxt_sent(rc, 5));
	nhca_rcxt_want(rc, -EBUSY);
	KUNIT_EXPECT_EQ(test, nhca_rcxt_frames_may(rc, &x), NHCA_RCXT_BUSY);
	nhca_rcxt_want(rc, 0);
	KUNIT_EXPECT_EQ(test, nhca_rcxt_frames_request(rc, &x), NHCA_RCXT_ACCEPT);
	x.number++;
	y = x;
	y.pvo++;
	KUNIT_EXPECT_EQ(test, nhca_rcxt_frames_may(rc, &y), NHCA_RCXT_MISMATCH);
	y = x;
	y.total--;
	KUNIT_EXPECT_EQ(test, nhca_rcxt_frames_may(rc, &y), NHCA_RCXT_MISMATCH);
	y = x;
	y.tid++;
	KUNIT_EXPECT_EQ(test, nhca_rcxt_frames_may(rc, &y), NHCA_RCXT_BUSY);
	/* an ordinary read request of the same tid would be another transfer */
	KUNIT_EXPECT_EQ(test, nhca_rcxt_request(rc, &x), NHCA_RCXT_BUSY);

	/* the notice comes while NHCA_RCXT_PARTS requests are in execution */
	KUNIT_EXPECT_EQ(test, nhca_rcxt_notice(rc, &x), NHCA_RCXT_LATER);
	KUNIT_EXPECT_EQ(test, nhca_rcxt_frames_may(rc, &x), NHCA_RCXT_DUPLICATE);
	for (i = 1; i < NHCA_RCXT_PARTS; i++)
		KUNIT_EXPECT_FALSE(test, nhca_rcxt_sent(rc, 5));
	KUNIT_EXPECT_TRUE(test, nhca_rcxt_sent(rc, 5));
	KUNIT_EXPECT_EQ(test, (u32)rc->state, (u32)NHCA_RCXT_DONE);
	KUNIT_EXPECT_EQ(test, nhca_rcxt_frames_may(rc, &x), NHCA_RCXT_STALE);

	/* a reader may request parts again even if this end gets no notice */
	x.tid = 6;
	x.notify = NHCA_NOTIFY_INITIATOR;
	KUNIT_EXPECT_EQ(test, nhca_rcxt_frames_request(rc, &x), NHCA_RCXT_ACCEPT);
	KUNIT_EXPECT_FALSE(test, nhca_rcxt_sent(rc, 6));
	x.number++;
	KUNIT_EXPECT_EQ(test, nhca_rcxt_frames_request(rc, &x), NHCA_RCXT_ACCEPT);
	KUNIT_EXPECT_FALSE(test, nhca_rcxt_sent(rc, 6));
	KUNIT_EXPECT_EQ(test, (u32)rc->state, (u32)NHCA_RCXT_ANSWERED);
}

/*
 * A challenge is dropped if it does not fit the kind of the read, or the latest request of the
 * read.
 */
static void frames_challenge(struct kunit *test)
{
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan, *b = p->end[1].chan;
	struct pair_packet *old, *pk;
	const u32 len = 2 * PAIR_SEG;

	post(a, 1, len, false, 0, len);
	pair_deliver(test);
	old = pair_first(test, NHCA_RX_FRAMES_CHALLENGE);
	list_del_init(&old->list);
	post(a, 1, len, true, 0, len);
	pair_deliver(test);
	pk = pair_first(test, NHCA_RX_FRAMES_CHALLENGE);
	KUNIT_EXPECT_EQ(test, pk->hdr.rx.number, 1);
	pair_rx(test, old);
	KUNIT_EXPECT_EQ(test, chan_count(a, NHCA_CH_DROP_MISMATCH), 1);
	pk->hdr.opcode = NHCA_RX_READ_CHALLENGE;
	pair_rx(test, pk);
	KUNIT_EXPECT_EQ(test, chan_count(a, NHCA_CH_DROP_UNSOLICITED), 1);
	pk->hdr.opcode = NHCA_RX_FRAMES_CHALLENGE;
	KUNIT_EXPECT_EQ(test, pair_count(test, 0), 1);
	pair_settle(test);
	KUNIT_EXPECT_EQ(test, (u32)chan_rcxt(a, 0)->state, (u32)NHCA_RCXT_DONE);

	/* an ordinary read drops a challenge of a half-receive read */
	chan_transfer(b, NHCA_WR_CH_READ, 2, len, BOTH);
	pair_deliver(test);
	pk = pair_first(test, NHCA_RX_READ_CHALLENGE);
	pk->hdr.opcode = NHCA_RX_FRAMES_CHALLENGE;
	pk->hdr.rx.part = len;
	pair_rx(test, pk);
	KUNIT_EXPECT_EQ(test, chan_count(b, NHCA_CH_DROP_UNSOLICITED), 1);
	list_add(&old->list, &p->wire);
	pair_drop(old);
}

/* All packets of a tid are of one kind, and payload of a read begins no transfer. */
static void frames_kinds(struct kunit *test)
{
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan;
	const u32 len = 2 * PAIR_SEG;
	struct pair_packet *pk;

	post(a, 3, len, false, 0, len);
	pair_deliver(test);
	pair_deliver(test);
	pair_deliver(test);
	pk = pair_first(test, NHCA_RX_FRAMES_DATA);
	pk->hdr.opcode = NHCA_RX_READ_DATA;
	pair_rx(test, pk);
	pk->hdr.opcode = NHCA_RX_HALF_WRITE;
	pair_rx(test, pk);
	pk->hdr.opcode = NHCA_RX_WRITE;
	pair_rx(test, pk);
	KUNIT_EXPECT_EQ(test, chan_count(a, NHCA_CH_DROP_MISMATCH), 3);
	pk->hdr.opcode = NHCA_RX_FRAMES_DATA;
	pk->hdr.rx.tid = 4;
	pair_rx(test, pk);
	KUNIT_EXPECT_EQ(test, chan_count(a, NHCA_CH_DROP_UNSOLICITED), 1);
	pk->hdr.rx.tid = 3;
	/*
	 * payload for a frame must have its offset as its PVO: nhca_rxeth_fits() refuses other PVOs
	 * before the rCxt is looked up
	 */
	pk->hdr.rx.pvo = 4;
	pair_rx(test, pk);
	KUNIT_EXPECT_EQ(test, pair_dev_count(a->end, NHCA_CNT_RX_BAD_LENGTH), 1);
	pk->hdr.rx.pvo = 0;
	KUNIT_EXPECT_TRUE(test, chan_idle(a));
	/* while a work request waits for the rCxt, packets get no frames */
	nhca_rcxt_want(chan_rcxt(a, 0), -EBUSY);
	pair_rx(test, pk);
	KUNIT_EXPECT_EQ(test, chan_count(a, NHCA_CH_DROP_BUSY), 1);
	nhca_rcxt_want(chan_rcxt(a, 0), 0);
	/* a read that was canceled gets no frames */
	chan_wqe(a, NHCA_WR_CH_CANCEL)->rcxt[0].tid = 3;
	chan_bell(a);
	chan_expect(test, a, NHCA_WC_CH_LOCAL, IB_WC_SUCCESS);
	pair_rx(test, pk);
	KUNIT_EXPECT_EQ(test, chan_count(a, NHCA_CH_DROP_STALE), 1);
	KUNIT_EXPECT_TRUE(test, chan_idle(a));
}

/*
 * A read beyond the end of the responder's memory ends with an error at the responder. The status
 * that answers a probe reports the error to the reader.
 */
static void frames_violated(struct kunit *test)
{
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan, *b = p->end[1].chan;
	const u32 len = 2 * PAIR_SEG;
	struct nhca_rcxt_wr *wr;
	struct nhca_cqe cqe;

	wr = chan_wqe(a, NHCA_WR_CH_READ)->rcxt;
	wr->total = len;
	wr->length = len;
	wr->local_pvo = 0;
	wr->remote_pvo += PAIR_BYTES - PAIR_SEG;
	wr->flags = NHCA_RCXT_WR_FRAMES;
	chan_bell(a);
	chan_expect(test, a, NHCA_WC_CH_LOCAL, IB_WC_SUCCESS);
	pair_settle(test);
	KUNIT_EXPECT_EQ(test, chan_count(b, NHCA_CH_DROP_PVO_RANGE), 1);
	KUNIT_EXPECT_EQ(test, (u32)chan_rcxt(b, 0)->state, (u32)NHCA_RCXT_VIOLATED);
	chan_expect(test, a, NHCA_WC_CH_FRAME, IB_WC_SUCCESS);
	wr = chan_wqe(a, NHCA_WR_CH_PROBE)->rcxt;
	wr->total = len;
	chan_bell(a);
	chan_expect(test, a, NHCA_WC_CH_LOCAL, IB_WC_SUCCESS);
	pair_settle(test);
	cqe = chan_expect(test, a, NHCA_WC_CH_FRAME, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, ((struct nhca_frame *)nhca_ring_slot(&a->ch->fifo.ring,
								   cqe.chan.frame))->status,
			NHCA_TRANSFER_PROT_ERR);
}

/* A malformed work request puts the channel into the error state, and no packet is sent. */
static void frames_malformed(struct kunit *test)
{
	const struct nhca_create_channel_cmd cmd = { .job = PAIR_JOB, .frames = 16 };
	struct pair *p = test->priv;
	struct nhca_rcxt_wr *wr;
	struct chan *a;
	u32 i;

	for (i = 0; i < 7; i++) {
		a = chan_new(test, &p->end[0], PAIR_QPN + 16 + i, 64);
		KUNIT_ASSERT_EQ(test, chan_create(a, &cmd), 0);
		KUNIT_ASSERT_EQ(test, nhca_channel_acquire(a->ch, a->ids, CHAN_IDS), 0);
		a->peer = p->end[1].chan;
		wr = chan_wqe(a, NHCA_WR_CH_READ)->rcxt;
		wr->total = 2 * PAIR_SEG;
		wr->length = 2 * PAIR_SEG;
		wr->local_pvo = 0;
		wr->flags = NHCA_RCXT_WR_FRAMES;
		switch (i) {
		case 0:
			wr->local_pvo = 8;
			break;
		case 1:
			wr->segment = NHCA_FRAME_DATA + 4;
			break;
		case 2:
			wr->offset = PAIR_SEG;
			wr->length = PAIR_SEG;
			break;
		case 3:
			wr->length = PAIR_SEG + 4;
			break;
		case 4:
			wr->length = 0;
			break;
		case 5:
			wr->flags |= NHCA_RCXT_WR_RETRANSMIT;
			wr->offset = 2 * PAIR_SEG;
			break;
		case 6:
			wr->flags |= NHCA_RCXT_WR_PROGRAM;
			break;
		}
		chan_bell(a);
		KUNIT_EXPECT_EQ_MSG(test, a->ch->reason, NHCA_CH_ERR_WQE, "case %u", i);
		KUNIT_EXPECT_EQ(test, p->sent, 0);
		chan_destroy(a);
	}
}

/*
 * Random reads into a FIFO that is often full, on a network that loses, repeats and reorders
 * packets: each packet gets exactly one frame, and each read completes once.
 */
static void frames_random(struct kunit *test)
{
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan, *b = p->end[1].chan;
	struct reader *r = reader_new(test, a, NHCA_FRAME_READ);
	struct rnd_state rnd;
	struct nhca_cqe cqe;
	u32 tid, n, len, turn, told;

	prandom_seed_state(&rnd, 2910);
	p->batch = 5;
	for (tid = 1; tid <= 300; tid++) {
		len = prandom_u32_state(&rnd) % (64 * PAIR_SEG);
		n = nhca_rcxt_packets(len, PAIR_SEG);
		told = 0;
		begin(r, tid, len, len);
		for (turn = 0; !r->done; turn++) {
			KUNIT_ASSERT_LT(test, turn, 200);
			if (turn)
				post(a, tid, len, true, find_first_zero_bit(r->got, n) * PAIR_SEG,
				     len);
			while (pair_lossy(test, &rnd)) {
				if (prandom_u32_state(&rnd) % 8 == 0)
					reader_run(test, r, prandom_u32_state(&rnd) % 8);
			}
			reader_run(test, r, 32);
			while (chan_poll(b, true, &cqe)) {
				KUNIT_ASSERT_EQ(test, cqe.opcode, NHCA_WC_CH_REMOTE_READ);
				told += cqe.chan.tid == tid;
			}
		}
		KUNIT_ASSERT_EQ(test, r->frames, n);
		KUNIT_ASSERT_EQ(test, r->done, 1);
		KUNIT_ASSERT_LE(test, told, 1);
		KUNIT_ASSERT_EQ(test, (u32)chan_rcxt(a, 0)->copies, 0u);
	}
	KUNIT_EXPECT_GT(test, chan_count(a, NHCA_CH_DROP_FIFO), 100);
	KUNIT_EXPECT_TRUE(test, pair_clear(a->end, 0, 0));
}

static struct kunit_case frames_cases[] = {
	KUNIT_CASE(frames_bytes),
	KUNIT_CASE(frames_window),
	KUNIT_CASE(frames_full_fifo),
	KUNIT_CASE(frames_replay),
	KUNIT_CASE(frames_rules),
	KUNIT_CASE(frames_challenge),
	KUNIT_CASE(frames_kinds),
	KUNIT_CASE(frames_violated),
	KUNIT_CASE(frames_malformed),
	KUNIT_CASE(frames_random),
	{}
};

static struct kunit_suite frames_suite = {
	.name = "nhca_rcxt_frames",
	.init = pair_init,
	.exit = pair_exit,
	.test_cases = frames_cases,
};

kunit_test_suite(frames_suite);
