// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit: probes, which query what has arrived of a transfer, fences, which cancel a transfer at the
 * peer, and the statuses that answer probes and fences.
 */
#include "channel_pair.h"

#define BOTH		(NHCA_NOTIFY_INITIATOR | NHCA_NOTIFY_TARGET)
#define WR_WRITE	NHCA_WR_CH_WRITE
#define WR_PROBE	NHCA_WR_CH_PROBE
#define WR_FENCE	NHCA_WR_CH_FENCE

/* Post a probe of a transfer of @total bytes, from the packet at @offset on. */
static void probe(struct chan *a, u32 tid, u32 total, u32 offset)
{
	struct nhca_send_wqe *wqe = chan_wqe(a, WR_PROBE);

	wqe->flags = 0;
	wqe->rcxt[0].tid = tid;
	wqe->rcxt[0].total = total;
	wqe->rcxt[0].offset = offset;
	wqe->rcxt[0].local_pvo = 0;
	wqe->rcxt[0].remote_pvo = 0;
	chan_bell(a);
}

static void fence(struct chan *a, u32 tid)
{
	struct nhca_send_wqe *wqe = chan_wqe(a, WR_FENCE);

	wqe->flags = 0;
	wqe->rcxt[0].tid = tid;
	chan_bell(a);
}

/* Deliver all packets. Return: the frame of the status that has arrived. */
static const struct nhca_frame *status(struct kunit *test, struct chan *a)
{
	const struct nhca_frame *frame;
	struct nhca_cqe cqe;

	pair_settle(test);
	cqe = chan_expect(test, a, NHCA_WC_CH_FRAME, IB_WC_SUCCESS);
	frame = nhca_ring_slot(&a->ch->fifo.ring, cqe.chan.frame);
	nhca_ring_release(&a->ch->fifo.ring, cqe.chan.frame + 1);
	KUNIT_EXPECT_EQ(test, frame->seq, cqe.chan.frame + 1);
	KUNIT_EXPECT_EQ(test, frame->kind, NHCA_FRAME_STATUS);
	KUNIT_EXPECT_EQ(test, frame->length, cqe.byte_len);
	KUNIT_EXPECT_EQ(test, frame->rcxt, a->ids[0]);
	KUNIT_EXPECT_EQ(test, frame->src_rcxt, a->peer->ids[0]);
	KUNIT_EXPECT_EQ(test, frame->src_key, lower_32_bits(a->peer->resp.key));
	KUNIT_EXPECT_EQ(test, frame->src_channel, a->peer->who.qpn);
	KUNIT_EXPECT_EQ(test, frame->cookie, chan_cookie(a->posted - 1));
	KUNIT_EXPECT_EQ(test, cqe.wr_id, frame->cookie);
	KUNIT_EXPECT_EQ(test, cqe.chan.tid, frame->tid);
	KUNIT_EXPECT_EQ(test, NHCA_RCXT_ID(cqe.chan.rcxt_index, cqe.chan.rcxt_key), a->ids[0]);
	return frame;
}

/* Write @total bytes with tid 1; packets whose number is a multiple of @lost are lost. */
static void lossy_write(struct kunit *test, struct chan *a, u32 total, u32 lost)
{
	struct pair *p = test->priv;
	struct pair_packet *pk, *next;
	u32 i = 0;

	chan_transfer(a, WR_WRITE, 1, total, BOTH);
	chan_expect(test, a, NHCA_WC_CH_LOCAL, IB_WC_SUCCESS);
	list_for_each_entry_safe(pk, next, &p->wire, list)
		if (!(i++ % lost))
			pair_drop(pk);
	pair_settle(test);
	KUNIT_ASSERT_TRUE(test, chan_idle(a));
}

/* The bitmap of a status has a bit for exactly the packets that have arrived. */
static void probe_partial(struct kunit *test)
{
	const u32 packets = 150, total = packets * PAIR_SEG - 4, first = 80;
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan, *b = p->end[1].chan;
	const struct nhca_frame *frame;
	u32 i;

	lossy_write(test, a, total, 7);
	probe(a, 1, total, 0);
	/* without a token, the bitmap is not sent */
	KUNIT_EXPECT_EQ(test, pair_first(test, NHCA_RX_PROBE)->hdr.rx.token, 0);
	pair_deliver(test);
	pair_first(test, NHCA_RX_PROBE_CHALLENGE);
	pair_deliver(test);
	KUNIT_EXPECT_TRUE(test, pair_first(test, NHCA_RX_PROBE)->hdr.rx.again);
	frame = status(test, a);
	KUNIT_EXPECT_EQ(test, chan_count(b, NHCA_CH_CHALLENGED), 1);
	KUNIT_EXPECT_EQ(test, frame->status, NHCA_TRANSFER_PARTIAL);
	KUNIT_EXPECT_EQ(test, frame->length, DIV_ROUND_UP(packets, 8));
	KUNIT_EXPECT_EQ(test, frame->received, packets - DIV_ROUND_UP(packets, 7));
	KUNIT_EXPECT_EQ(test, frame->tid, 1);
	KUNIT_EXPECT_EQ(test, frame->total, total);
	KUNIT_EXPECT_EQ(test, frame->segment, PAIR_SEG);
	for (i = 0; i < 8 * frame->length; i++)
		KUNIT_EXPECT_EQ_MSG(test, frame->data[i / 8] >> i % 8 & 1, i < packets && i % 7,
				    "packet %u", i);
	/* the next probe begins at a later packet, and has the token of the challenge */
	probe(a, 1, total, first * PAIR_SEG);
	pair_deliver(test);
	pair_first(test, NHCA_RX_STATUS);
	frame = status(test, a);
	KUNIT_EXPECT_EQ(test, frame->offset, first * PAIR_SEG);
	KUNIT_EXPECT_EQ(test, frame->length, DIV_ROUND_UP(packets - first, 8));
	for (i = 0; i < 8 * frame->length; i++)
		KUNIT_EXPECT_EQ(test, frame->data[i / 8] >> i % 8 & 1,
				first + i < packets && (first + i) % 7);
}

/*
 * A status is at most as long as the MTU of the peer's netdev allows, with the header that a status
 * has in addition to payload. Later packets are in the status of another probe.
 */
static void probe_small_mtu(struct kunit *test)
{
	const u32 packets = 8 * NHCA_RCXT_MIN_SEGMENT, total = packets * NHCA_RCXT_MIN_SEGMENT;
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan, *b = p->end[1].chan;
	struct nhca_send_wqe *wqe;

	wqe = chan_wqe(a, WR_WRITE);
	wqe->rcxt[0].segment = NHCA_RCXT_MIN_SEGMENT;
	wqe->rcxt[0].total = total;
	wqe->rcxt[0].length = total;
	wqe->rcxt[0].notify = BOTH;
	chan_bell(a);
	chan_expect(test, a, NHCA_WC_CH_LOCAL, IB_WC_SUCCESS);
	pair_drop(pair_first(test, NHCA_RX_WRITE));
	pair_settle(test);
	p->end[1].netdev->mtu = 0;
	KUNIT_ASSERT_EQ(test, nhca_channel_segment(b->ch->dev), NHCA_RCXT_MIN_SEGMENT);
	wqe = chan_wqe(a, WR_PROBE);
	wqe->flags = 0;
	wqe->rcxt[0].segment = NHCA_RCXT_MIN_SEGMENT;
	wqe->rcxt[0].total = total;
	wqe->rcxt[0].local_pvo = 0;
	wqe->rcxt[0].remote_pvo = 0;
	chan_bell(a);
	KUNIT_EXPECT_EQ(test, status(test, a)->length, NHCA_RCXT_MIN_SEGMENT - NHCA_RX_STATUS_LEN);
}

/*
 * The status depends on the state of the transfer at the peer. A probe needs a token only if its
 * status has a bitmap, so no probe of this test needs one.
 */
static void probe_states(struct kunit *test)
{
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan, *b = p->end[1].chan;

	probe(a, 1, 10, 0);
	KUNIT_EXPECT_EQ(test, status(test, a)->status, NHCA_TRANSFER_NONE);
	chan_transfer(a, WR_WRITE, 1, 2 * PAIR_SEG, 0);
	chan_expect(test, a, NHCA_WC_CH_LOCAL, IB_WC_SUCCESS);
	probe(a, 1, 2 * PAIR_SEG, 0);
	KUNIT_EXPECT_EQ(test, status(test, a)->status, NHCA_TRANSFER_COMPLETE);
	probe(a, 1, 2 * PAIR_SEG, 0);
	KUNIT_EXPECT_EQ(test, status(test, a)->received, 2);
	/* the peer's rCxt has no transfer with another tid or with other sizes */
	probe(a, 2, 2 * PAIR_SEG, 0);
	KUNIT_EXPECT_EQ(test, status(test, a)->status, NHCA_TRANSFER_NONE);
	probe(a, 1, 2 * PAIR_SEG + 1, 0);
	KUNIT_EXPECT_EQ(test, status(test, a)->status, NHCA_TRANSFER_NONE);
	/* memory protection refuses the write */
	b->end->mem->access = 0;
	chan_transfer(a, WR_WRITE, 3, 10, 0);
	chan_expect(test, a, NHCA_WC_CH_LOCAL, IB_WC_SUCCESS);
	probe(a, 3, 10, 0);
	KUNIT_EXPECT_EQ(test, status(test, a)->status, NHCA_TRANSFER_PROT_ERR);
	KUNIT_EXPECT_EQ(test, chan_count(b, NHCA_CH_CHALLENGED), 0);
	KUNIT_EXPECT_TRUE(test, chan_idle(a) && chan_idle(b));
}

/* A channel drops a probe or a status for an rCxt that it does not own. */
static void probe_no_rcxt(struct kunit *test)
{
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan, *b = p->end[1].chan;
	struct nhca_send_wqe *wqe = chan_wqe(a, WR_PROBE);
	struct nhca_cqe cqe;

	wqe->chan.remote_rcxt ^= BIT_ULL(32);
	chan_bell(a);
	chan_expect(test, a, NHCA_WC_CH_LOCAL, IB_WC_SUCCESS);
	pair_settle(test);
	KUNIT_EXPECT_EQ(test, chan_count(b, NHCA_CH_DROP_RCXT_KEY), 1);
	probe(a, 1, 10, 0);
	pair_deliver(test);
	pair_first(test, NHCA_RX_STATUS)->hdr.rx.rcxt.key ^= 1;
	pair_settle(test);
	KUNIT_EXPECT_EQ(test, chan_count(a, NHCA_CH_DROP_RCXT_KEY), 1);
	KUNIT_EXPECT_TRUE(test, chan_idle(a));
	/* a probe must name an rCxt of its own channel, because the status goes to this rCxt */
	wqe = chan_wqe(a, WR_PROBE);
	wqe->chan.local_rcxt ^= BIT_ULL(32);
	chan_bell(a);
	cqe = chan_expect(test, a, NHCA_WC_CH_LOCAL, IB_WC_LOC_QP_OP_ERR);
	KUNIT_EXPECT_EQ(test, cqe.vendor_err, ENOENT);
	KUNIT_EXPECT_EQ(test, pair_count(test, 0), 0);
}

/*
 * A status that says that a write is complete allows the program to reuse the buffer. So this
 * status is dropped while packets refer to the buffer, or the send engine still makes packets.
 */
static void status_too_early(struct kunit *test)
{
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan;
	struct pair_packet *pk, *first;

	p->zcopy = true;
	chan_transfer(a, WR_WRITE, 1, 2 * PAIR_SEG, BOTH);
	chan_expect(test, a, NHCA_WC_CH_LOCAL, IB_WC_SUCCESS);
	first = pair_first(test, NHCA_RX_WRITE);
	pair_rx(test, first);
	pair_rx(test, list_last_entry(&p->wire, struct pair_packet, list));
	/* the notice is lost, and a status with the same meaning arrives */
	pk = list_last_entry(&p->wire, struct pair_packet, list);
	KUNIT_ASSERT_EQ(test, pk->hdr.opcode, NHCA_RX_NOTICE);
	pk->hdr.opcode = NHCA_RX_STATUS;
	pair_rx(test, pk);
	KUNIT_EXPECT_EQ(test, chan_count(a, NHCA_CH_DROP_BUSY), 1);
	KUNIT_EXPECT_TRUE(test, chan_idle(a));
	/* a status with another result, or of another transfer, is not dropped */
	pk->hdr.rx.status = NHCA_RX_ST_NONE;
	pair_rx(test, pk);
	chan_expect(test, a, NHCA_WC_CH_FRAME, IB_WC_SUCCESS);
	pk->hdr.rx.status = NHCA_RX_ST_DONE;
	pk->hdr.rx.tid = 2;
	pair_rx(test, pk);
	chan_expect(test, a, NHCA_WC_CH_FRAME, IB_WC_SUCCESS);
	pk->hdr.rx.tid = 1;
	pair_drop(list_first_entry(&first->list, struct pair_packet, list));
	pair_rx(test, pk);
	KUNIT_EXPECT_EQ(test, chan_count(a, NHCA_CH_DROP_BUSY), 2);
	pair_drop(first);
	pair_rx(test, pk);
	chan_expect(test, a, NHCA_WC_CH_FRAME, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, chan_count(a, NHCA_CH_DROP_BUSY), 2);
}

/* While packets of a write are sent, a status that says that the write is complete is dropped. */
static void status_while_sending(struct kunit *test)
{
	const u32 total = 100 * PAIR_SEG;
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan;
	struct pair_packet *pk;

	probe(a, 1, total, 0);
	pair_deliver(test);
	p->charge = true;
	chan_transfer(a, WR_WRITE, 1, total, BOTH);
	pk = pair_first(test, NHCA_RX_STATUS);
	pk->hdr.rx.status = NHCA_RX_ST_DONE;
	pair_rx(test, pk);
	KUNIT_EXPECT_EQ(test, chan_count(a, NHCA_CH_DROP_BUSY), 1);
	pk->hdr.rx.status = NHCA_RX_ST_PARTIAL;
	pair_rx(test, pk);
	chan_expect(test, a, NHCA_WC_CH_FRAME, IB_WC_SUCCESS);
}

/* A channel whose receive FIFO is full drops statuses. */
static void status_fifo_full(struct kunit *test)
{
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan;
	u32 i;

	for (i = 0; i < 20; i++)
		probe(a, 1, 10, 0);
	pair_settle(test);
	KUNIT_EXPECT_EQ(test, chan_count(a, NHCA_CH_DROP_FIFO), 4);
	for (i = 0; i < 16; i++)
		chan_expect(test, a, NHCA_WC_CH_FRAME, IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(test, chan_idle(a));
}

/* ---- fences ---- */

/* After the answer to a fence, no packet of the transfer places a byte. */
static void fence_cancels(struct kunit *test)
{
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan, *b = p->end[1].chan;
	const u32 total = 3 * PAIR_SEG;
	const struct nhca_frame *frame;
	struct pair_packet *pk;

	pair_fill(a->end->bytes, total, 1);
	chan_transfer(a, WR_WRITE, 1, total, BOTH);
	chan_expect(test, a, NHCA_WC_CH_LOCAL, IB_WC_SUCCESS);
	pair_deliver(test);
	fence(a, 1);
	pk = list_last_entry(&p->wire, struct pair_packet, list);
	KUNIT_EXPECT_EQ(test, pk->hdr.opcode, NHCA_RX_FENCE);
	/* the fence overtakes the payload */
	list_move(&pk->list, &p->wire);
	frame = status(test, a);
	KUNIT_EXPECT_EQ(test, frame->status, NHCA_TRANSFER_FENCED);
	KUNIT_EXPECT_EQ(test, frame->tid, 1);
	KUNIT_EXPECT_EQ(test, frame->received, 0);
	KUNIT_EXPECT_EQ(test, chan_count(b, NHCA_CH_DROP_STALE), 2);
	KUNIT_EXPECT_EQ(test, chan_count(b, NHCA_CH_FENCED), 1);
	KUNIT_EXPECT_TRUE(test, pair_is(b->end->bytes, PAIR_SEG, 1));
	KUNIT_EXPECT_TRUE(test, pair_clear(b->end, 0, PAIR_SEG));
	KUNIT_EXPECT_TRUE(test, chan_idle(a) && chan_idle(b));
	/*
	 * after a fence with a higher tid, the rCxt refuses all transfers up to this tid; a fence
	 * with a lower tid is stale
	 */
	fence(a, 7);
	KUNIT_EXPECT_EQ(test, status(test, a)->status, NHCA_TRANSFER_FENCED);
	fence(a, 6);
	pair_settle(test);
	KUNIT_EXPECT_EQ(test, chan_count(b, NHCA_CH_DROP_STALE), 3);
	KUNIT_EXPECT_TRUE(test, chan_idle(a));
}

/* The status that answers a late fence says that the transfer is complete. */
static void fence_too_late(struct kunit *test)
{
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan, *b = p->end[1].chan;
	const struct nhca_frame *frame;

	chan_transfer(a, WR_WRITE, 1, 2 * PAIR_SEG, 0);
	chan_expect(test, a, NHCA_WC_CH_LOCAL, IB_WC_SUCCESS);
	fence(a, 1);
	frame = status(test, a);
	KUNIT_EXPECT_EQ(test, frame->status, NHCA_TRANSFER_COMPLETE);
	KUNIT_EXPECT_EQ(test, frame->received, 2);
	KUNIT_EXPECT_EQ(test, chan_count(b, NHCA_CH_FENCED), 0);
}

/*
 * A fence gets no answer while a CPU copies payload, or while a transfer that the peer's channel
 * has begun is in progress on the rCxt.
 */
static void fence_unanswered(struct kunit *test)
{
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan, *b = p->end[1].chan;
	struct nhca_rcxt *rc = chan_rcxt(b, 0);

	chan_transfer(a, WR_WRITE, 1, 2 * PAIR_SEG, 0);
	chan_expect(test, a, NHCA_WC_CH_LOCAL, IB_WC_SUCCESS);
	pair_deliver(test);
	pair_drop(pair_first(test, NHCA_RX_WRITE));
	rc->copies = 1;
	fence(a, 1);
	pair_settle(test);
	KUNIT_EXPECT_EQ(test, chan_count(b, NHCA_CH_DROP_BUSY), 1);
	KUNIT_EXPECT_TRUE(test, chan_idle(a));
	rc->copies = 0;
	fence(a, 1);
	KUNIT_EXPECT_EQ(test, status(test, a)->status, NHCA_TRANSFER_FENCED);
	rc->state = NHCA_RCXT_SENDING;
	fence(a, 2);
	pair_settle(test);
	KUNIT_EXPECT_EQ(test, chan_count(b, NHCA_CH_DROP_BUSY), 2);
	KUNIT_EXPECT_TRUE(test, chan_idle(a));
	rc->state = NHCA_RCXT_IDLE;
}

/* A fence of a read whose answer is being sent ends the answer. */
static void fence_ends_answer(struct kunit *test)
{
	const u32 total = 100 * PAIR_SEG;
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan, *b = p->end[1].chan;
	struct pair_packet *pk;
	u32 sent;

	chan_transfer(a, NHCA_WR_CH_READ, 1, total, NHCA_NOTIFY_INITIATOR);
	chan_expect(test, a, NHCA_WC_CH_LOCAL, IB_WC_SUCCESS);
	pair_deliver(test);
	pair_deliver(test);
	p->charge = true;
	pair_deliver(test);
	sent = pair_count(test, NHCA_RX_READ_DATA);
	KUNIT_EXPECT_LT(test, sent, 100);
	fence(a, 1);
	pk = list_last_entry(&p->wire, struct pair_packet, list);
	list_move(&pk->list, &p->wire);
	KUNIT_EXPECT_EQ(test, status(test, a)->status, NHCA_TRANSFER_FENCED);
	/* the packets were: request, challenge, request, answer, fence, status */
	KUNIT_EXPECT_EQ(test, p->sent, 3 + sent + 2);
	KUNIT_EXPECT_TRUE(test, list_empty(&b->ch->sending));
	KUNIT_EXPECT_TRUE(test, chan_idle(a) && chan_idle(b));
}

static struct kunit_case rcxt_status_cases[] = {
	KUNIT_CASE(probe_partial),
	KUNIT_CASE(probe_small_mtu),
	KUNIT_CASE(probe_states),
	KUNIT_CASE(probe_no_rcxt),
	KUNIT_CASE(status_too_early),
	KUNIT_CASE(status_while_sending),
	KUNIT_CASE(status_fifo_full),
	KUNIT_CASE(fence_cancels),
	KUNIT_CASE(fence_too_late),
	KUNIT_CASE(fence_unanswered),
	KUNIT_CASE(fence_ends_answer),
	{}
};

static struct kunit_suite rcxt_status_suite = {
	.name = "nhca_rcxt_status",
	.init = pair_init,
	.exit = pair_exit,
	.test_cases = rcxt_status_cases,
};

kunit_test_suite(rcxt_status_suite);
