// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit: messages of packet mode, the receive FIFO, full queues, and the completions that count as
 * solicited.
 */
#include "channel_pair.h"

#define PACKET		NHCA_WR_CH_PACKET

struct message_mr {
	struct page *page;
	struct nhca_mr *mr;
};

/* Post a message of @len bytes, which are in the work request, and ring the doorbell. */
static void send_inline(struct chan *a, u32 len, u16 flags)
{
	struct nhca_send_wqe *wqe = chan_wqe(a, PACKET);

	wqe->flags = flags | NHCA_SEND_INLINE;
	wqe->inline_len = len;
	pair_fill(wqe->data, len, a->posted);
	chan_bell(a);
}

/* Expect a frame with message @i of @len bytes. Return: index of the frame. */
static u32 expect_frame(struct kunit *test, struct chan *b, u32 i, u32 len)
{
	struct nhca_cqe cqe = chan_expect(test, b, NHCA_WC_CH_FRAME, IB_WC_SUCCESS);
	const struct nhca_frame *frame = nhca_ring_slot(&b->ch->fifo.ring, cqe.chan.frame);

	KUNIT_EXPECT_EQ(test, cqe.wr_id, chan_cookie(i));
	KUNIT_EXPECT_EQ(test, cqe.byte_len, len);
	KUNIT_EXPECT_EQ(test, cqe.src_qp, b->peer->who.qpn);
	KUNIT_EXPECT_EQ(test, frame->seq, cqe.chan.frame + 1);
	KUNIT_EXPECT_EQ(test, frame->kind, NHCA_FRAME_PACKET);
	KUNIT_EXPECT_EQ(test, frame->length, len);
	KUNIT_EXPECT_EQ(test, frame->cookie, chan_cookie(i));
	/* all 64 bits of the key, so that the program can answer */
	KUNIT_EXPECT_EQ(test, frame->src_key, b->peer->resp.key);
	KUNIT_EXPECT_EQ(test, frame->src_channel, b->peer->who.qpn);
	KUNIT_EXPECT_EQ(test, frame->src_rcxt | frame->rcxt, 0);
	KUNIT_EXPECT_TRUE(test, pair_is(frame->data, len, i));
	return cqe.chan.frame;
}

/* Each message gets one frame with all its bytes. */
static void message_inline(struct kunit *test)
{
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan, *b = p->end[1].chan;
	const u32 lengths[] = { 0, 1, 3, 63, a->ch->max_inline };
	struct nhca_cqe cqe;
	u32 i, index;

	KUNIT_EXPECT_EQ(test, a->ch->max_inline, a->cap.max_inline_data);
	for (i = 0; i < 40; i++) {
		send_inline(a, lengths[i % ARRAY_SIZE(lengths)], NHCA_SEND_SIGNALED);
		cqe = chan_expect(test, a, NHCA_WC_CH_LOCAL, IB_WC_SUCCESS);
		KUNIT_EXPECT_EQ(test, cqe.wr_id, chan_wr_id(i));
		KUNIT_EXPECT_EQ(test, cqe.chan.tid | cqe.chan.rcxt_index | cqe.chan.rcxt_key, 0);
		pair_settle(test);
		index = expect_frame(test, b, i, lengths[i % ARRAY_SIZE(lengths)]);
		KUNIT_EXPECT_EQ(test, index, i);
		KUNIT_EXPECT_EQ(test, b->ch->fifo.ring.hdr->prod, i + 1);
		nhca_ring_release(&b->ch->fifo.ring, index + 1);
	}
	/* an unsignaled message has no completion, but its slot is released */
	send_inline(a, 1, 0);
	KUNIT_EXPECT_TRUE(test, chan_idle(a));
	KUNIT_EXPECT_EQ(test, a->ch->sq.hdr->cons, 41);
	KUNIT_EXPECT_TRUE(test, chan_idle(b));
}

static void mr_make(struct kunit *test, struct chan *a, struct message_mr *m)
{
	m->page = alloc_page(GFP_KERNEL | __GFP_ZERO);
	KUNIT_ASSERT_NOT_NULL(test, m->page);
	m->mr = nhca_mr_alloc(a->end->dev, a->end->pd, IB_ACCESS_LOCAL_WRITE);
	KUNIT_ASSERT_FALSE(test, IS_ERR(m->mr));
	KUNIT_ASSERT_EQ(test, nhca_mr_map_pages(m->mr, &m->page, 1, 0, true), 0);
	nhca_mr_start(m->mr, 0, PAGE_SIZE);
}

static void mr_free(struct message_mr *m)
{
	nhca_mr_free(m->mr);
	__free_page(m->page);
}

/* Post a message of two SGEs with @first and @second bytes of the region. */
static void send_sges(struct chan *a, struct message_mr *m, u32 first, u32 second, u32 lkey)
{
	struct nhca_send_wqe *wqe = chan_wqe(a, PACKET);

	pair_fill(page_address(m->page), PAGE_SIZE, a->posted);
	wqe->num_sge = 2;
	wqe->sge[0] = (struct nhca_sge) { .length = first, .lkey = m->mr->ibmr.lkey };
	wqe->sge[1] = (struct nhca_sge) { .addr = first, .length = second, .lkey = lkey };
	chan_bell(a);
}

/* A message may consist of several SGEs of registered memory. */
static void message_sges(struct kunit *test)
{
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan, *b = p->end[1].chan;
	struct message_mr m;
	u32 i;

	/* the largest message needs a large MTU */
	a->end->netdev->mtu = 4000;
	mr_make(test, a, &m);
	send_sges(a, &m, 100, 1, m.mr->ibmr.lkey);
	send_sges(a, &m, 1000, NHCA_RX_MAX_PACKET - 1000, m.mr->ibmr.lkey);
	send_sges(a, &m, 0, 0, 0);
	pair_settle(test);
	expect_frame(test, b, 0, 101);
	expect_frame(test, b, 1, NHCA_RX_MAX_PACKET);
	expect_frame(test, b, 2, 0);
	KUNIT_EXPECT_EQ(test, nhca_channel_state(a->ch), IB_QPS_RTS);
	/* an L_Key of no region puts the channel into the error state */
	send_sges(a, &m, 10, 10, ~m.mr->ibmr.lkey);
	KUNIT_EXPECT_EQ(test, pair_count(test, 0), 0);
	for (i = 0; i < 3; i++)
		chan_expect(test, a, NHCA_WC_CH_LOCAL, IB_WC_SUCCESS);
	chan_expect(test, a, NHCA_WC_CH_LOCAL, IB_WC_LOC_PROT_ERR);
	KUNIT_EXPECT_EQ(test, a->ch->reason, NHCA_CH_ERR_LOCAL_PVO);
	KUNIT_EXPECT_EQ(test, a->fatal, 1);
	mr_free(&m);
}

/*
 * A message that is too long for any frame puts the channel into the error state. A message that
 * only exceeds the current MTU completes in error, and the channel still works.
 */
static void message_too_long(struct kunit *test)
{
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan;
	struct message_mr m;
	u32 segment = nhca_channel_segment(a->end->dev);

	mr_make(test, a, &m);
	KUNIT_ASSERT_LT(test, segment, NHCA_RX_MAX_PACKET);
	send_sges(a, &m, segment, 1, m.mr->ibmr.lkey);
	KUNIT_EXPECT_EQ(test, chan_expect(test, a, NHCA_WC_CH_LOCAL, IB_WC_LOC_LEN_ERR).vendor_err,
			EMSGSIZE);
	KUNIT_EXPECT_EQ(test, nhca_channel_state(a->ch), IB_QPS_RTS);
	send_sges(a, &m, segment, 0, m.mr->ibmr.lkey);
	chan_expect(test, a, NHCA_WC_CH_LOCAL, IB_WC_SUCCESS);
	send_sges(a, &m, NHCA_RX_MAX_PACKET, 1, m.mr->ibmr.lkey);
	KUNIT_EXPECT_EQ(test, chan_expect(test, a, NHCA_WC_CH_LOCAL, IB_WC_LOC_LEN_ERR).vendor_err,
			0);
	KUNIT_EXPECT_EQ(test, a->ch->reason, NHCA_CH_ERR_WQE);
	KUNIT_EXPECT_EQ(test, p->sent, 1);
	mr_free(&m);
}

/*
 * A message that waits for a page fault stays in the send FIFO. A message that cannot be sent, here
 * because there is no route, completes without an error, but is not counted as sent.
 */
static void message_not_sent(struct kunit *test)
{
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan;

	p->xmit_err = -EAGAIN;
	send_inline(a, 10, NHCA_SEND_SIGNALED);
	KUNIT_EXPECT_TRUE(test, chan_idle(a));
	KUNIT_EXPECT_EQ(test, a->ch->fetched, 0);
	p->xmit_err = 0;
	nhca_channel_doorbell(a->ch);
	KUNIT_EXPECT_EQ(test, chan_expect(test, a, NHCA_WC_CH_LOCAL, IB_WC_SUCCESS).wr_id,
			chan_wr_id(0));
	pair_settle(test);
	expect_frame(test, a->peer, 0, 10);
	p->xmit_err = -EHOSTUNREACH;
	send_inline(a, 10, NHCA_SEND_SIGNALED);
	chan_expect(test, a, NHCA_WC_CH_LOCAL, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, chan_count(a, NHCA_CH_SENT_PACKETS), 1);
	KUNIT_EXPECT_EQ(test, chan_count(a, NHCA_CH_SENT_BYTES), 10);
}

/* ---- full queues ---- */

/*
 * If the receive FIFO is full, messages are dropped. When the program gives a slot back, the next
 * message uses this slot.
 */
static void fifo_full(struct kunit *test)
{
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan, *b = p->end[1].chan;
	u32 i;

	for (i = 0; i < 18; i++)
		send_inline(a, 4, 0);
	pair_settle(test);
	KUNIT_EXPECT_EQ(test, chan_count(b, NHCA_CH_DROP_FIFO), 2);
	for (i = 0; i < 16; i++)
		KUNIT_EXPECT_EQ(test, expect_frame(test, b, i, 4), i);
	KUNIT_EXPECT_TRUE(test, chan_idle(b));
	nhca_ring_release(&b->ch->fifo.ring, 1);
	send_inline(a, 4, 0);
	send_inline(a, 4, 0);
	pair_settle(test);
	KUNIT_EXPECT_EQ(test, expect_frame(test, b, 18, 4), 16);
	KUNIT_EXPECT_EQ(test, chan_count(b, NHCA_CH_DROP_FIFO), 3);
	/* the FIFO counts as full if the consumer index is impossible */
	nhca_ring_release(&b->ch->fifo.ring, 100);
	send_inline(a, 4, 0);
	pair_settle(test);
	KUNIT_EXPECT_EQ(test, chan_count(b, NHCA_CH_DROP_FIFO), 4);
}

/* A channel that was created without a receive FIFO drops messages. */
static void fifo_none(struct kunit *test)
{
	const struct nhca_create_channel_cmd cmd = { .job = PAIR_JOB };
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan, *b = chan_new(test, &p->end[1], PAIR_QPN + 5, 16);

	KUNIT_ASSERT_EQ(test, chan_create(b, &cmd), 0);
	KUNIT_EXPECT_EQ(test, b->resp.fifo.size, 0);
	a->peer = b;
	send_inline(a, 4, 0);
	pair_settle(test);
	KUNIT_EXPECT_EQ(test, chan_count(b, NHCA_CH_DROP_FIFO), 1);
	KUNIT_EXPECT_TRUE(test, chan_idle(b));
}

/* If the CQ is full, a completion is lost and counted, and the next message uses its slot. */
static void cq_full(struct kunit *test)
{
	const struct nhca_create_channel_cmd cmd = { .job = PAIR_JOB, .frames = 16 };
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan, *b = chan_new(test, &p->end[1], PAIR_QPN + 5, 4);
	u32 i;

	KUNIT_ASSERT_EQ(test, chan_create(b, &cmd), 0);
	a->peer = b;
	b->peer = a;
	for (i = 0; i < 30; i++)
		send_inline(a, 4, 0);
	pair_settle(test);
	KUNIT_EXPECT_EQ(test, chan_count(b, NHCA_CH_DROP_CQ), 26);
	KUNIT_EXPECT_EQ(test, chan_count(b, NHCA_CH_DROP_FIFO), 0);
	for (i = 0; i < 4; i++)
		KUNIT_EXPECT_EQ(test, expect_frame(test, b, i, 4), i);
	KUNIT_EXPECT_EQ(test, nhca_channel_state(b->ch), IB_QPS_RTS);
	send_inline(a, 4, 0);
	pair_settle(test);
	KUNIT_EXPECT_EQ(test, expect_frame(test, b, 30, 4), 4);
	/* if the send CQ is full, a completion is lost and counted as well */
	for (i = 0; i < 6; i++)
		send_inline(b, 4, NHCA_SEND_SIGNALED);
	KUNIT_EXPECT_EQ(test, chan_count(b, NHCA_CH_DROP_CQ), 28);
	KUNIT_EXPECT_EQ(test, b->ch->sq.hdr->cons, 6);
}

/* ---- solicited completions ---- */

/* Send a message from @a to its peer. Return: number of completion events of the peer. */
static u32 events(struct kunit *test, struct chan *a, u16 flags)
{
	struct chan *b = a->peer;
	u32 before = b->comp;

	nhca_cq_arm(&b->cq[true], IB_CQ_SOLICITED);
	send_inline(a, 4, flags);
	pair_settle(test);
	nhca_ring_release(&b->ch->fifo.ring, b->ch->fifo.prod);
	nhca_ring_release(&b->cq[true].ring, b->cq[true].prod);
	return b->comp - before;
}

/*
 * With a threshold of n every n-th completion is solicited, and so is the completion of each
 * message that the sender has marked. With a threshold of 0 only marked messages have solicited
 * completions.
 */
static void thresholds(struct kunit *test)
{
	struct nhca_channel_modify cmd = { .mask = NHCA_CHANNEL_RECV_THRESHOLD };
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan, *b = p->end[1].chan;
	struct nhca_channel_info info;
	u32 i;

	/* the initial threshold is 1, so every completion is solicited */
	for (i = 0; i < 3; i++)
		KUNIT_EXPECT_EQ(test, events(test, a, 0), 1);
	cmd.recv_threshold = 3;
	KUNIT_ASSERT_EQ(test, nhca_channel_modify(b->ch, &cmd), 0);
	for (i = 0; i < 6; i++)
		KUNIT_EXPECT_EQ(test, events(test, a, 0), i % 3 == 2);
	KUNIT_EXPECT_EQ(test, events(test, a, NHCA_SEND_SOLICITED), 1);
	cmd.recv_threshold = 0;
	KUNIT_ASSERT_EQ(test, nhca_channel_modify(b->ch, &cmd), 0);
	for (i = 0; i < 6; i++)
		KUNIT_EXPECT_EQ(test, events(test, a, 0), 0);
	KUNIT_EXPECT_EQ(test, events(test, a, NHCA_SEND_SOLICITED), 1);
	nhca_channel_query(b->ch, &info);
	KUNIT_EXPECT_EQ(test, info.recv_threshold, 0);
	KUNIT_EXPECT_EQ(test, info.send_threshold, 1);
	KUNIT_EXPECT_EQ(test, info.quantum, NHCA_CH_QUANTUM);
}

/*
 * The thresholds of the two CQs are independent. A command with an unknown mask bit fails, and
 * changes nothing.
 */
static void modify(struct kunit *test)
{
	struct nhca_channel_modify cmd = {
		.mask = NHCA_CHANNEL_SEND_THRESHOLD | NHCA_CHANNEL_QUANTUM,
		.recv_threshold = 7,
		.send_threshold = 2,
		.quantum = 1000,
	};
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan;
	struct nhca_channel_info info;
	u32 i;

	KUNIT_ASSERT_EQ(test, nhca_channel_modify(a->ch, &cmd), 0);
	cmd = (struct nhca_channel_modify) { .mask = 0xf, .recv_threshold = 5, .quantum = 5 };
	KUNIT_EXPECT_EQ(test, nhca_channel_modify(a->ch, &cmd), -EINVAL);
	nhca_channel_query(a->ch, &info);
	KUNIT_EXPECT_EQ(test, info.recv_threshold, 1);
	KUNIT_EXPECT_EQ(test, info.send_threshold, 2);
	KUNIT_EXPECT_EQ(test, info.quantum, NHCA_CH_PASS);
	KUNIT_EXPECT_EQ(test, info.job, PAIR_JOB);
	KUNIT_EXPECT_EQ(test, info.rcxts, CHAN_IDS);
	KUNIT_EXPECT_EQ(test, info.segment, a->resp.segment);
	KUNIT_EXPECT_EQ(test, info.state, IB_QPS_RTS);
	for (i = 0; i < 4; i++) {
		nhca_cq_arm(&a->cq[false], IB_CQ_SOLICITED);
		a->comp = 0;
		send_inline(a, 4, NHCA_SEND_SIGNALED);
		KUNIT_EXPECT_EQ(test, a->comp, i & 1);
		chan_expect(test, a, NHCA_WC_CH_LOCAL, IB_WC_SUCCESS);
	}
	cmd = (struct nhca_channel_modify) { .mask = NHCA_CHANNEL_QUANTUM };
	KUNIT_ASSERT_EQ(test, nhca_channel_modify(a->ch, &cmd), 0);
	KUNIT_EXPECT_EQ(test, a->ch->quantum, NHCA_CH_QUANTUM);
}

static struct kunit_case rcxt_message_cases[] = {
	KUNIT_CASE(message_inline),
	KUNIT_CASE(message_sges),
	KUNIT_CASE(message_too_long),
	KUNIT_CASE(message_not_sent),
	KUNIT_CASE(fifo_full),
	KUNIT_CASE(fifo_none),
	KUNIT_CASE(cq_full),
	KUNIT_CASE(thresholds),
	KUNIT_CASE(modify),
	{}
};

static struct kunit_suite rcxt_message_suite = {
	.name = "nhca_rcxt_message",
	.init = pair_init,
	.exit = pair_exit,
	.test_cases = rcxt_message_cases,
};

kunit_test_suite(rcxt_message_suite);
