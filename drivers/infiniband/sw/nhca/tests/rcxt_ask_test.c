// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit: half-send reads: the peer gets the request in a frame, exactly once, and the peer's
 * program answers. This program posts a work request for each packet of the answer.
 */
#include <linux/prandom.h>

#include "channel_pair.h"

#define BOTH		(NHCA_NOTIFY_INITIATOR | NHCA_NOTIFY_TARGET)
#define PART		NHCA_WR_CH_PART
#define NAME		0xfeedfacecafef00dull	/* remote_pvo, for the peer's program */

/* Create a channel again, with room for the payload of a packet in its work requests. */
static void remake(struct kunit *test, struct chan *c)
{
	const struct nhca_create_channel_cmd cmd = { .job = PAIR_JOB, .frames = 16 };

	chan_destroy(c);
	c->cap.max_inline_data = NHCA_FRAME_DATA;
	KUNIT_ASSERT_EQ(test, chan_create(c, &cmd), 0);
	KUNIT_ASSERT_EQ(test, nhca_channel_acquire(c->ch, c->ids, CHAN_IDS), 0);
}

static int ask_init(struct kunit *test)
{
	int err = pair_init(test);
	struct pair *p = test->priv;

	if (!err)
		remake(test, p->end[1].chan);
	return err;
}

/* Post a half-send read of @total bytes. @again: the read has begun; repeat its request. */
static void ask(struct chan *a, u32 tid, u32 total, bool again)
{
	struct nhca_rcxt_wr *wr = chan_wqe(a, NHCA_WR_CH_READ)->rcxt;

	wr->tid = tid;
	wr->total = total;
	wr->notify = BOTH;
	wr->remote_pvo = NAME;
	wr->flags = NHCA_RCXT_WR_PROGRAM | (again ? NHCA_RCXT_WR_RETRANSMIT : 0);
	chan_bell(a);
}

/* Expect the frame of a request, and release it. Return: PVO of the destination of the payload. */
static u64 expect_request(struct kunit *test, struct chan *b, u32 tid, u32 total)
{
	struct nhca_cqe cqe = chan_expect(test, b, NHCA_WC_CH_FRAME, IB_WC_SUCCESS);
	const struct nhca_frame *frame = nhca_ring_slot(&b->ch->fifo.ring, cqe.chan.frame);
	struct nhca_frame_request request;

	KUNIT_EXPECT_EQ(test, frame->kind, NHCA_FRAME_REQUEST);
	KUNIT_EXPECT_EQ(test, frame->length, sizeof(request));
	KUNIT_EXPECT_EQ(test, cqe.byte_len, sizeof(request));
	KUNIT_EXPECT_EQ(test, frame->tid, tid);
	KUNIT_EXPECT_EQ(test, frame->total, total);
	KUNIT_EXPECT_EQ(test, frame->segment, PAIR_SEG);
	KUNIT_EXPECT_EQ(test, frame->rcxt, b->ids[0]);
	KUNIT_EXPECT_EQ(test, frame->src_rcxt, b->peer->ids[0]);
	KUNIT_EXPECT_EQ(test, frame->src_channel, b->peer->who.qpn);
	KUNIT_EXPECT_EQ(test, frame->src_key, lower_32_bits(b->peer->resp.key));
	memcpy(&request, frame->data, sizeof(request));
	KUNIT_EXPECT_EQ(test, request.remote_pvo, NAME);
	KUNIT_EXPECT_EQ(test, request.reply_pvo, b->peer->end->mem->pvo);
	nhca_ring_release(&b->ch->fifo.ring, cqe.chan.frame + 1);
	return request.reply_pvo;
}

/* Fill in a work request with packet @i of the answer; the payload is a copy of @b's memory. */
static struct nhca_rcxt_wr *answer(struct chan *b, u32 tid, u32 total, u32 i, u64 to)
{
	struct nhca_send_wqe *wqe = chan_wqe(b, PART);
	struct nhca_rcxt_wr *wr = wqe->rcxt;

	wr->tid = tid;
	wr->total = total;
	wr->offset = i * PAIR_SEG;
	wr->length = nhca_rcxt_packet_len(total, PAIR_SEG, wr->offset);
	wr->local_pvo = 0;
	wr->remote_pvo = to;
	wr->flags = NHCA_RCXT_WR_PROGRAM;
	wqe->flags |= NHCA_SEND_INLINE;
	wqe->inline_len = wr->length;
	memcpy(wr + 1, b->end->bytes + wr->offset, wr->length);
	return wr;
}

/*
 * Post packet @i of the answer, and expect a completion with @status. Return: its vendor_err (an
 * errno, or 0).
 */
static u32 reply(struct kunit *test, struct chan *b, u32 tid, u32 total, u32 i, u64 to, u8 status)
{
	answer(b, tid, total, i, to);
	chan_bell(b);
	return chan_expect(test, b, NHCA_WC_CH_LOCAL, status).vendor_err;
}

/* A read of any length gets the bytes that the peer's program sends, and completes at both ends. */
static void ask_bytes(struct kunit *test)
{
	static const u32 lengths[] = {
		0, 1, PAIR_SEG, PAIR_SEG + 1, 5 * PAIR_SEG + 7, 40 * PAIR_SEG,
	};
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan, *b = p->end[1].chan;
	struct nhca_cqe cqe;
	u32 i, j, len, n;
	u64 to;

	for (i = 0; i < ARRAY_SIZE(lengths); i++) {
		len = lengths[i];
		n = nhca_rcxt_packets(len, PAIR_SEG);
		pair_fill(b->end->bytes, len, i);
		ask(a, i + 1, len, false);
		chan_expect(test, a, NHCA_WC_CH_LOCAL, IB_WC_SUCCESS);
		KUNIT_EXPECT_EQ(test, pair_count(test, NHCA_RX_HALF_REQUEST), 1);
		/* the receive engine of @b sends nothing: the program of @b has to answer */
		pair_settle(test);
		to = expect_request(test, b, i + 1, len);
		for (j = 0; j < n; j++)
			KUNIT_EXPECT_EQ(test, reply(test, b, i + 1, len, (j * 7 + 3) % n, to,
						    IB_WC_SUCCESS), 0);
		KUNIT_EXPECT_EQ(test, pair_count(test, NHCA_RX_READ_DATA), n);
		pair_settle(test);
		cqe = chan_expect(test, a, NHCA_WC_CH_READ, IB_WC_SUCCESS);
		KUNIT_EXPECT_EQ(test, cqe.wr_id, chan_wr_id(i));
		KUNIT_EXPECT_EQ(test, cqe.byte_len, len);
		cqe = chan_expect(test, b, NHCA_WC_CH_REMOTE_READ, IB_WC_SUCCESS);
		KUNIT_EXPECT_EQ(test, cqe.byte_len, len);
		KUNIT_EXPECT_TRUE(test, chan_idle(a) && chan_idle(b));
		KUNIT_EXPECT_TRUE(test, pair_is(a->end->bytes, len, i));
		KUNIT_EXPECT_TRUE(test, pair_clear(a->end, 0, len));
	}
}

/* A request gets exactly one frame: a repetition of a request that has a frame is dropped. */
static void ask_once(struct kunit *test)
{
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan, *b = p->end[1].chan;
	u32 i;

	ask(a, 1, PAIR_SEG, false);
	pair_drop(pair_first(test, NHCA_RX_HALF_REQUEST));
	ask(a, 1, PAIR_SEG, true);
	pair_rx(test, pair_first(test, NHCA_RX_HALF_REQUEST));
	pair_settle(test);
	ask(a, 1, PAIR_SEG, true);
	pair_settle(test);
	KUNIT_EXPECT_EQ(test, chan_count(b, NHCA_CH_DROP_STALE), 2);
	expect_request(test, b, 1, PAIR_SEG);
	KUNIT_EXPECT_TRUE(test, chan_idle(b));
	for (i = 0; i < 3; i++)
		chan_expect(test, a, NHCA_WC_CH_LOCAL, IB_WC_SUCCESS);
	reply(test, b, 1, PAIR_SEG, 0, a->end->mem->pvo, IB_WC_SUCCESS);
	pair_settle(test);
	chan_expect(test, a, NHCA_WC_CH_READ, IB_WC_SUCCESS);
	/* the read is complete, so it cannot be requested again */
	ask(a, 1, PAIR_SEG, true);
	KUNIT_EXPECT_EQ(test, chan_expect(test, a, NHCA_WC_CH_LOCAL, IB_WC_SUCCESS).vendor_err,
			EALREADY);
	KUNIT_EXPECT_EQ(test, pair_count(test, 0), 0);
}

/* A request is dropped while the FIFO is full. A repetition is accepted when the FIFO has room. */
static void ask_full_fifo(struct kunit *test)
{
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan, *b = p->end[1].chan;
	u32 i;

	for (i = 0; i < 16; i++) {
		chan_wqe(a, NHCA_WR_CH_PACKET);
		chan_bell(a);
	}
	ask(a, 9, PAIR_SEG, false);
	pair_settle(test);
	KUNIT_EXPECT_EQ(test, chan_count(b, NHCA_CH_DROP_FIFO), 1);
	KUNIT_EXPECT_LT(test, chan_rcxt(b, 0)->tid, 9);
	KUNIT_EXPECT_EQ(test, reply(test, b, 9, PAIR_SEG, 0, a->end->mem->pvo,
				    IB_WC_LOC_QP_OP_ERR), EINVAL);
	for (i = 0; i < 16; i++)
		chan_expect(test, b, NHCA_WC_CH_FRAME, IB_WC_SUCCESS);
	nhca_ring_release(&b->ch->fifo.ring, 16);
	ask(a, 9, PAIR_SEG, true);
	pair_settle(test);
	expect_request(test, b, 9, PAIR_SEG);
}

/* A request is dropped while the CQ is full. A repetition is accepted when the CQ has room. */
static void ask_full_cq(struct kunit *test)
{
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan, *b = p->end[1].chan;
	struct nhca_ring *r = &b->cq[1].ring;
	struct nhca_cqe cqe;
	u32 i;

	/* fill the CQ */
	for (i = 0; i < nhca_ring_entries(r); i++)
		KUNIT_ASSERT_TRUE(test, nhca_channel_complete(b->ch, true, &(struct nhca_cqe) {},
							      false));
	ask(a, 9, PAIR_SEG, false);
	pair_settle(test);
	KUNIT_EXPECT_EQ(test, chan_count(b, NHCA_CH_DROP_CQ), 1);
	KUNIT_EXPECT_LT(test, chan_rcxt(b, 0)->tid, 9);
	while (chan_poll(b, true, &cqe))
		;
	ask(a, 9, PAIR_SEG, true);
	pair_settle(test);
	expect_request(test, b, 9, PAIR_SEG);
	KUNIT_EXPECT_TRUE(test, chan_idle(b));
}

/*
 * nhca_rcxt_not_asked() undoes a request that gets no frame, unless the rCxt has another transfer.
 */
static void ask_forget(struct kunit *test)
{
	struct pair *p = test->priv;
	struct chan *b = p->end[1].chan;
	struct nhca_rcxt *rc = chan_rcxt(b, 0);
	struct nhca_rxeth x = { .tid = 5, .total = 8, .segment = 64 }, y = x;
	enum nhca_rx_status status;
	u32 have;

	y.tid = 6;
	KUNIT_EXPECT_EQ(test, nhca_rcxt_ask(rc, &x), NHCA_RCXT_ACCEPT);
	KUNIT_EXPECT_EQ(test, nhca_rcxt_ask(rc, &y), NHCA_RCXT_ACCEPT);
	nhca_rcxt_not_asked(rc, &x);
	KUNIT_EXPECT_EQ(test, (u32)rc->state, (u32)NHCA_RCXT_ANSWERED);
	KUNIT_EXPECT_EQ(test, rc->tid, 6);
	/* nhca_rcxt_not_asked() does not undo a fence of the reader */
	nhca_rcxt_fence(&b->ch->rd->pool, rc, &y, &status, &have);
	nhca_rcxt_not_asked(rc, &y);
	KUNIT_EXPECT_EQ(test, rc->tid, 6);
	KUNIT_EXPECT_EQ(test, nhca_rcxt_ask(rc, &y), NHCA_RCXT_STALE);
	/* a request is accepted only while no work request of the channel waits for the rCxt */
	x.tid = 7;
	nhca_rcxt_want(rc, -EBUSY);
	KUNIT_EXPECT_EQ(test, nhca_rcxt_ask(rc, &x), NHCA_RCXT_BUSY);
	nhca_rcxt_want(rc, 0);
	KUNIT_EXPECT_EQ(test, nhca_rcxt_ask(rc, &x), NHCA_RCXT_ACCEPT);
	nhca_rcxt_not_asked(rc, &x);
	KUNIT_EXPECT_EQ(test, nhca_rcxt_ask(rc, &x), NHCA_RCXT_ACCEPT);
}

/* A work request whose packet answers no request fails, and the channel stays in RTS. */
static void ask_refused(struct kunit *test)
{
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan, *b = p->end[1].chan;
	const u32 len = 2 * PAIR_SEG;
	u64 to = a->end->mem->pvo;

	KUNIT_EXPECT_EQ(test, reply(test, b, 1, len, 0, to, IB_WC_LOC_QP_OP_ERR), EINVAL);
	ask(a, 2, len, false);
	chan_expect(test, a, NHCA_WC_CH_LOCAL, IB_WC_SUCCESS);
	pair_settle(test);
	expect_request(test, b, 2, len);
	KUNIT_EXPECT_EQ(test, reply(test, b, 1, len, 0, to, IB_WC_LOC_QP_OP_ERR), EINVAL);
	KUNIT_EXPECT_EQ(test, reply(test, b, 3, len, 0, to, IB_WC_LOC_QP_OP_ERR), EINVAL);
	KUNIT_EXPECT_EQ(test, reply(test, b, 2, len + 1, 0, to, IB_WC_LOC_QP_OP_ERR), EINVAL);
	KUNIT_EXPECT_EQ(test, reply(test, b, 2, len, 0, to, IB_WC_SUCCESS), 0);
	/* the reader drops a packet of the answer that names other memory */
	KUNIT_EXPECT_EQ(test, reply(test, b, 2, len, 1, to + 4, IB_WC_SUCCESS), 0);
	pair_settle(test);
	KUNIT_EXPECT_EQ(test, chan_count(a, NHCA_CH_DROP_MISMATCH), 1);
	/* the reader cancels the read at both ends; after that, no packet of the answer is sent */
	chan_wqe(a, NHCA_WR_CH_CANCEL)->rcxt[0].tid = 2;
	chan_bell(a);
	chan_expect(test, a, NHCA_WC_CH_LOCAL, IB_WC_SUCCESS);
	chan_wqe(a, NHCA_WR_CH_FENCE)->rcxt[0].tid = 2;
	chan_bell(a);
	chan_expect(test, a, NHCA_WC_CH_LOCAL, IB_WC_SUCCESS);
	pair_settle(test);
	KUNIT_EXPECT_EQ(test, chan_count(b, NHCA_CH_FENCED), 1);
	KUNIT_EXPECT_EQ(test, reply(test, b, 2, len, 1, to, IB_WC_LOC_QP_OP_ERR), EINVAL);
	KUNIT_EXPECT_EQ(test, pair_count(test, 0), 0);
	/* the driver answers an ordinary read, so a packet of the program of @b is refused */
	chan_transfer(a, NHCA_WR_CH_READ, 5, len, BOTH);
	pair_deliver(test);
	pair_deliver(test);
	pair_deliver(test);
	KUNIT_ASSERT_EQ(test, (u32)chan_rcxt(b, 0)->state, (u32)NHCA_RCXT_ANSWERED);
	KUNIT_EXPECT_EQ(test, reply(test, b, 5, len, 1, to, IB_WC_LOC_QP_OP_ERR), EINVAL);
	KUNIT_EXPECT_EQ(test, nhca_channel_state(b->ch), IB_QPS_RTS);
}

/* A malformed work request puts the channel into the error state, and no packet is sent. */
static void ask_malformed(struct kunit *test)
{
	struct pair *p = test->priv;
	struct chan *b = p->end[1].chan;
	struct nhca_rcxt_wr *wr;
	u32 i;

	for (i = 0; i < 8; i++) {
		remake(test, b);
		switch (i) {
		case 0:
			answer(b, 1, PAIR_SEG, 0, 0)->notify = NHCA_NOTIFY_INITIATOR;
			break;
		case 1:
			answer(b, 1, PAIR_SEG, 0, 0)->flags |= NHCA_RCXT_WR_RETRANSMIT;
			break;
		case 2:
			answer(b, 1, PAIR_SEG, 0, 0)->local_pvo = 8;
			break;
		case 3:
			wr = chan_wqe(b, NHCA_WR_CH_READ)->rcxt;
			wr->flags = NHCA_RCXT_WR_RETRANSMIT;
			break;
		case 4:
			wr = chan_wqe(b, NHCA_WR_CH_WRITE)->rcxt;
			wr->flags = NHCA_RCXT_WR_PROGRAM;
			break;
		case 5:
			wr = chan_wqe(b, NHCA_WR_CH_READ)->rcxt;
			wr->flags = NHCA_RCXT_WR_PROGRAM | NHCA_RCXT_WR_FRAMES;
			break;
		case 6:
			/* a half-send read requests all bytes: length and offset must be 0 */
			wr = chan_wqe(b, NHCA_WR_CH_READ)->rcxt;
			wr->flags = NHCA_RCXT_WR_PROGRAM;
			wr->total = 2 * PAIR_SEG;
			wr->length = PAIR_SEG;
			break;
		case 7:
			wr = chan_wqe(b, NHCA_WR_CH_READ)->rcxt;
			wr->flags = NHCA_RCXT_WR_PROGRAM | NHCA_RCXT_WR_RETRANSMIT;
			wr->total = 2 * PAIR_SEG;
			wr->offset = PAIR_SEG;
			break;
		}
		chan_bell(b);
		KUNIT_EXPECT_EQ_MSG(test, b->ch->reason, NHCA_CH_ERR_WQE, "case %u", i);
		KUNIT_EXPECT_EQ(test, p->sent, 0);
		while (chan_poll(b, false, &(struct nhca_cqe) {}))
			;
	}
}

/*
 * A reader drops a challenge for a half-send read. Otherwise the reader would send a read request,
 * and the peer's receive engine would answer, instead of the peer's program.
 */
static void ask_challenge(struct kunit *test)
{
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan, *b = p->end[1].chan;
	struct pair_packet *pk;

	ask(a, 1, PAIR_SEG, false);
	pair_drop(pair_first(test, NHCA_RX_HALF_REQUEST));
	/* let b send a request of the same tid, and change this packet to a challenge */
	ask(b, 1, PAIR_SEG, false);
	pk = pair_first(test, NHCA_RX_HALF_REQUEST);
	pk->hdr.opcode = NHCA_RX_READ_CHALLENGE;
	pk->hdr.rx.reply_pvo = a->end->mem->pvo;
	pair_rx(test, pk);
	KUNIT_EXPECT_EQ(test, chan_count(a, NHCA_CH_DROP_UNSOLICITED), 1);
	pair_drop(pk);
	KUNIT_EXPECT_EQ(test, pair_count(test, 0), 0);
}

/* Random reads on a network that loses, repeats and reorders packets: each completes once. */
static void ask_random(struct kunit *test)
{
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan, *b = p->end[1].chan;
	u32 tid, n, len, i, done, requests, turn;
	struct rnd_state rnd;
	struct nhca_cqe cqe;

	prandom_seed_state(&rnd, 2900);
	for (tid = 1; tid <= 300; tid++) {
		len = prandom_u32_state(&rnd) % (20 * PAIR_SEG);
		n = nhca_rcxt_packets(len, PAIR_SEG);
		pair_fill(b->end->bytes, len, tid);
		memset(a->end->bytes, 0, 20 * PAIR_SEG);
		ask(a, tid, len, false);
		for (done = 0, requests = 0, turn = 0; !done; turn++) {
			KUNIT_ASSERT_LT(test, turn, 200);
			for (i = 0; requests && i < n; i++)
				if (prandom_u32_state(&rnd) % 2) {
					answer(b, tid, len, i, a->end->mem->pvo);
					chan_bell(b);
				}
			while (pair_lossy(test, &rnd))
				;
			while (chan_poll(a, false, &cqe)) {
				KUNIT_ASSERT_EQ(test, cqe.status, IB_WC_SUCCESS);
				done += cqe.opcode == NHCA_WC_CH_READ;
			}
			while (chan_poll(b, true, &cqe)) {
				if (cqe.opcode != NHCA_WC_CH_FRAME)
					continue;
				requests++;
				nhca_ring_release(&b->ch->fifo.ring, cqe.chan.frame + 1);
			}
			while (chan_poll(b, false, &cqe))
				KUNIT_ASSERT_EQ(test, cqe.status, IB_WC_SUCCESS);
			if (!requests)
				ask(a, tid, len, true);
		}
		KUNIT_ASSERT_EQ(test, done, 1);
		KUNIT_ASSERT_EQ(test, requests, 1);
		KUNIT_ASSERT_TRUE(test, pair_is(a->end->bytes, len, tid));
		KUNIT_ASSERT_TRUE(test, pair_clear(a->end, 0, len));
	}
}

static struct kunit_case ask_cases[] = {
	KUNIT_CASE(ask_bytes),
	KUNIT_CASE(ask_once),
	KUNIT_CASE(ask_full_fifo),
	KUNIT_CASE(ask_full_cq),
	KUNIT_CASE(ask_forget),
	KUNIT_CASE(ask_refused),
	KUNIT_CASE(ask_malformed),
	KUNIT_CASE(ask_challenge),
	KUNIT_CASE(ask_random),
	{}
};

static struct kunit_suite ask_suite = {
	.name = "nhca_rcxt_ask",
	.init = ask_init,
	.exit = pair_exit,
	.test_cases = ask_cases,
};

kunit_test_suite(ask_suite);
