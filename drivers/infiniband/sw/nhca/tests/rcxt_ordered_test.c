// SPDX-License-Identifier: GPL-2.0
/* KUnit: the order in which ordered accumulates begin, and the events that end their waits. */
#include "accumulate_fixture.h"

/* Post an ordered accumulate of one word; @rcxt: index of the rCxt in the ids of both ends. */
static void ordered(struct chan *a, u32 rcxt, u32 tid)
{
	struct nhca_rcxt_wr *wr = acc(a, SUM, U64, tid, 8, 0);
	struct nhca_send_wqe *wqe = container_of(wr, struct nhca_send_wqe, rcxt[0]);

	wqe->chan.local_rcxt = a->ids[rcxt];
	wqe->chan.remote_rcxt = a->peer->ids[rcxt];
	wr->flags = NHCA_RCXT_WR_ORDERED;
	chan_bell(a);
}

/* Post a cancel for rCxt @rcxt, an index in the ids of @a. */
static void post_cancel(struct chan *a, u32 rcxt, u32 tid)
{
	struct nhca_send_wqe *wqe = chan_wqe(a, NHCA_WR_CH_CANCEL);

	wqe->flags = 0;
	wqe->chan.local_rcxt = a->ids[rcxt];
	wqe->rcxt[0].tid = tid;
	chan_bell(a);
}

/* Deliver the packet of an accumulate, after which the word must be @sum, and then the notice. */
static void one_more(struct kunit *test, u32 sum)
{
	struct pair *p = test->priv;

	KUNIT_EXPECT_EQ(test, pair_count(test, 0), 1);
	pair_first(test, NHCA_RX_ACCUMULATE);
	pair_deliver(test);
	KUNIT_EXPECT_EQ(test, words(&p->end[1], 0)[0], sum);
	pair_first(test, NHCA_RX_NOTICE);
	pair_deliver(test);
}

/* An ordered accumulate begins when the notice of the earlier one has arrived. */
static void order_begins(struct kunit *test)
{
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan;
	struct nhca_send_wqe *wqe;
	u32 i;

	set_words(a->end, 1, 1);
	for (i = 0; i < 3; i++)
		ordered(a, i, 1);
	KUNIT_EXPECT_EQ(test, pair_count(test, 0), 1);
	/* an accumulate that is not ordered does not wait */
	wqe = container_of(acc(a, SUM, U64, 1, 8, 8), struct nhca_send_wqe, rcxt[0]);
	wqe->chan.local_rcxt = a->ids[3];
	wqe->chan.remote_rcxt = a->peer->ids[3];
	chan_bell(a);
	KUNIT_EXPECT_EQ(test, pair_count(test, 0), 2);
	pair_drop(list_last_entry(&p->wire, struct pair_packet, list));

	for (i = 0; i < 3; i++)
		one_more(test, i + 1);
	for (i = 0; i < 3; i++) {
		chan_expect(test, a, NHCA_WC_CH_WRITE, IB_WC_SUCCESS);
		chan_expect(test, a->peer, NHCA_WC_CH_REMOTE_WRITE, IB_WC_SUCCESS);
	}
	KUNIT_EXPECT_TRUE(test, chan_idle(a) && list_empty(&p->wire));
}

/* A retransmission passes ordered accumulates that wait, also one on the same rCxt. */
static void order_retransmit(struct kunit *test)
{
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan;

	set_words(a->end, 1, 1);
	ordered(a, 0, 1);
	pair_drop(pair_first(test, NHCA_RX_ACCUMULATE));
	ordered(a, 0, 2);
	ordered(a, 1, 1);
	/* a retransmission of an accumulate that waits sends nothing */
	acc(a, SUM, U64, 2, 8, 0)->flags = NHCA_RCXT_WR_RETRANSMIT;
	chan_bell(a);
	KUNIT_EXPECT_TRUE(test, list_empty(&p->wire));
	KUNIT_EXPECT_TRUE(test, chan_idle(a));
	acc(a, SUM, U64, 1, 8, 0)->flags = NHCA_RCXT_WR_RETRANSMIT;
	chan_bell(a);
	one_more(test, 1);
	one_more(test, 2);
	one_more(test, 3);
}

/* If the notice is lost, the status that replaces it ends the wait. */
static void order_status(struct kunit *test)
{
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan;
	struct nhca_send_wqe *wqe;

	set_words(a->end, 1, 1);
	ordered(a, 0, 1);
	ordered(a, 0, 2);
	pair_deliver(test);
	pair_drop(pair_first(test, NHCA_RX_NOTICE));
	KUNIT_EXPECT_TRUE(test, list_empty(&p->wire));
	wqe = chan_wqe(a, NHCA_WR_CH_PROBE);
	wqe->flags = 0;
	wqe->rcxt[0].total = 8;
	chan_bell(a);
	pair_first(test, NHCA_RX_PROBE);
	pair_deliver(test);
	pair_first(test, NHCA_RX_STATUS);
	pair_deliver(test);
	one_more(test, 2);
}

/* A fence ends the wait as well, if its status says that the accumulate is complete. */
static void order_fence(struct kunit *test)
{
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan;

	set_words(a->end, 1, 1);
	ordered(a, 0, 1);
	ordered(a, 1, 1);
	pair_deliver(test);
	pair_drop(pair_first(test, NHCA_RX_NOTICE));
	chan_wqe(a, NHCA_WR_CH_FENCE)->flags = 0;
	chan_bell(a);
	pair_first(test, NHCA_RX_FENCE);
	pair_deliver(test);
	KUNIT_EXPECT_EQ(test, pair_first(test, NHCA_RX_STATUS)->hdr.rx.status, NHCA_RX_ST_DONE);
	pair_deliver(test);
	one_more(test, 2);
}

/* Let the peer receive a packet four times, each with one field that is wrong. */
static void rx_wrong(struct kunit *test, struct pair_packet *pk)
{
	const struct nhca_rxeth good = pk->hdr.rx;

	pk->hdr.rx.total += 4;
	pair_rx(test, pk);
	pk->hdr.rx = good;
	pk->hdr.rx.segment += 4;
	pair_rx(test, pk);
	pk->hdr.rx = good;
	pk->hdr.rx.src_rcxt.index++;
	pair_rx(test, pk);
	pk->hdr.rx = good;
	pk->hdr.rx.src_rcxt.key++;
	pair_rx(test, pk);
	pk->hdr.rx = good;
}

/*
 * A status or notice ends the wait only if its sizes are those of the accumulate, and if it is from
 * the rCxt that the accumulate has named: another member of the job does not know this rCxt's key.
 */
static void order_forged(struct kunit *test)
{
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan;
	struct pair_packet *notice, *pk;
	struct nhca_send_wqe *wqe;

	set_words(a->end, 1, 1);
	ordered(a, 0, 1);
	ordered(a, 1, 1);
	pair_deliver(test);
	notice = pair_first(test, NHCA_RX_NOTICE);
	wqe = chan_wqe(a, NHCA_WR_CH_PROBE);
	wqe->flags = 0;
	wqe->rcxt[0].total = 8;
	chan_bell(a);
	list_move_tail(&notice->list, &p->wire);
	pair_first(test, NHCA_RX_PROBE);
	pair_deliver(test);
	pk = list_last_entry(&p->wire, struct pair_packet, list);
	KUNIT_ASSERT_EQ(test, pk->hdr.opcode, NHCA_RX_STATUS);
	KUNIT_ASSERT_EQ(test, pk->hdr.rx.status, NHCA_RX_ST_DONE);

	rx_wrong(test, pk);
	KUNIT_EXPECT_EQ(test, pair_count(test, NHCA_RX_ACCUMULATE), 0);
	rx_wrong(test, notice);
	KUNIT_EXPECT_EQ(test, chan_count(a, NHCA_CH_DROP_MISMATCH), 4);
	KUNIT_EXPECT_EQ(test, pair_count(test, NHCA_RX_ACCUMULATE), 0);

	pair_drop(notice);
	pair_deliver(test);
	one_more(test, 2);
}

/*
 * A cancel of the accumulate in progress ends the wait, even if the accumulate that waits is for
 * the same rCxt.
 */
static void order_cancel(struct kunit *test)
{
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan;
	struct nhca_cqe cqe;

	set_words(a->end, 1, 1);
	ordered(a, 0, 1);
	pair_drop(pair_first(test, NHCA_RX_ACCUMULATE));
	ordered(a, 0, 2);
	ordered(a, 1, 1);
	post_cancel(a, 0, 1);
	one_more(test, 1);
	one_more(test, 2);

	/* cancel an accumulate that waits: it completes in error when it would begin */
	ordered(a, 0, 3);
	pair_drop(pair_first(test, NHCA_RX_ACCUMULATE));
	ordered(a, 1, 2);
	ordered(a, 2, 1);
	while (chan_poll(a, false, &cqe))
		KUNIT_EXPECT_EQ(test, cqe.status, IB_WC_SUCCESS);
	post_cancel(a, 1, 2);
	KUNIT_EXPECT_TRUE(test, list_empty(&p->wire));
	post_cancel(a, 0, 3);
	cqe = chan_expect(test, a, NHCA_WC_CH_LOCAL, IB_WC_LOC_QP_OP_ERR);
	KUNIT_EXPECT_EQ(test, cqe.vendor_err, EINVAL);
	one_more(test, 3);
}

/* The release of the rCxt of the accumulate in progress ends the wait. */
static void order_release(struct kunit *test)
{
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan;

	set_words(a->end, 1, 1);
	ordered(a, 0, 1);
	pair_drop(pair_first(test, NHCA_RX_ACCUMULATE));
	ordered(a, 1, 1);
	KUNIT_EXPECT_TRUE(test, list_empty(&p->wire));
	local_bh_disable();
	KUNIT_EXPECT_EQ(test, pair_count(test, 0), 0);
	local_bh_enable();
	KUNIT_ASSERT_EQ(test, nhca_channel_release(a->ch, a->ids, 1), 0);
	local_bh_disable();
	local_bh_enable();
	one_more(test, 1);
	a->ids[0] = a->ids[3];
}

/* Another transfer on the rCxt of the accumulate in progress replaces it, and ends the wait. */
static void order_replaced(struct kunit *test)
{
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan;

	set_words(a->end, 1, 1);
	ordered(a, 0, 1);
	pair_drop(pair_first(test, NHCA_RX_ACCUMULATE));
	ordered(a, 1, 1);
	acc(a, SUM, U64, 2, 8, 64);
	chan_bell(a);
	KUNIT_EXPECT_EQ(test, pair_count(test, NHCA_RX_ACCUMULATE), 2);
	pair_settle(test);
	KUNIT_EXPECT_EQ(test, words(&p->end[1], 0)[0], 1);
	KUNIT_EXPECT_EQ(test, words(&p->end[1], 64)[0], 1);
}

/* Ordered accumulates to different peers do not wait for each other. */
static void order_peers(struct kunit *test)
{
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan, *b = p->end[1].chan;
	struct chan *c = chan_make(test, &p->end[1], PAIR_QPN + 8, PAIR_JOB);

	set_words(a->end, 1, 1);
	ordered(a, 0, 1);
	ordered(a, 1, 1);
	a->peer = c;
	ordered(a, 2, 1);
	ordered(a, 3, 1);
	a->peer = b;
	KUNIT_EXPECT_EQ(test, pair_count(test, 0), 2);
	pair_settle(test);
	KUNIT_EXPECT_EQ(test, words(&p->end[1], 0)[0], 4);
}

/* At most NHCA_MAX_ORDERED ordered accumulates wait; further ones complete with EBUSY. */
static void order_limit(struct kunit *test)
{
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan, *b = p->end[1].chan;
	u64 more[2][CHAN_IDS];
	struct nhca_send_wqe *wqe;
	struct nhca_cqe cqe;
	u32 i;

	KUNIT_ASSERT_EQ(test, nhca_channel_acquire(a->ch, more[0], CHAN_IDS), 0);
	KUNIT_ASSERT_EQ(test, nhca_channel_acquire(b->ch, more[1], CHAN_IDS), 0);
	set_words(a->end, 1, 1);
	for (i = 0; i < CHAN_IDS; i++)
		ordered(a, i, 1);
	for (i = 0; i < 2; i++) {
		wqe = container_of(acc(a, SUM, U64, 1, 8, 0), struct nhca_send_wqe, rcxt[0]);
		wqe->chan.local_rcxt = more[0][i];
		wqe->chan.remote_rcxt = more[1][i];
		wqe->rcxt[0].flags = NHCA_RCXT_WR_ORDERED;
		chan_bell(a);
	}
	/* one accumulate is in progress, NHCA_MAX_ORDERED wait, and one completes with EBUSY */
	cqe = chan_expect(test, a, NHCA_WC_CH_LOCAL, IB_WC_LOC_QP_OP_ERR);
	KUNIT_EXPECT_EQ(test, cqe.vendor_err, EBUSY);
	KUNIT_EXPECT_EQ(test, cqe.wr_id, chan_wr_id(NHCA_MAX_ORDERED + 1));
	/* a transfer on the rCxt of an accumulate that waits completes with EBUSY as well */
	acc(a, SUM, U64, 9, 8, 0);
	wqe = nhca_ring_slot(&a->ch->sq, a->posted);
	wqe->chan.local_rcxt = a->ids[1];
	chan_bell(a);
	cqe = chan_expect(test, a, NHCA_WC_CH_LOCAL, IB_WC_LOC_QP_OP_ERR);
	KUNIT_EXPECT_EQ(test, cqe.vendor_err, EBUSY);
	for (i = 1; i <= NHCA_MAX_ORDERED + 1; i++)
		one_more(test, i);
	KUNIT_EXPECT_TRUE(test, list_empty(&p->wire));
}

/* Post an ordered accumulate of one word on rCxt @id to a channel that does not exist. */
static void ordered_to(struct chan *a, u64 id, u32 qpn)
{
	struct nhca_rcxt_wr *wr = acc(a, SUM, U64, 1, 8, 0);
	struct nhca_send_wqe *wqe = container_of(wr, struct nhca_send_wqe, rcxt[0]);

	wqe->chan.local_rcxt = id;
	wqe->chan.remote_qpn = qpn;
	wr->flags = NHCA_RCXT_WR_ORDERED;
	chan_bell(a);
}

static struct nhca_rcxt *rcxt_of(struct chan *a, u64 id)
{
	return &a->ch->rd->pool.rcxts[NHCA_RCXT_INDEX(id)];
}

/* Another CPU has copied payload for rCxt @id: the accumulates that wait for this are fetched. */
static void end_copy(struct chan *a, u64 id)
{
	rcxt_of(a, id)->copies = 0;
	rcxt_of(a, id)->awaited = false;
	local_bh_disable();
	nhca_channel_doorbell(a->ch);
	local_bh_enable();
}

/* An accumulate does not pass an earlier one to the same peer that waits for its rCxt. */
static void order_busy_rcxt(struct kunit *test)
{
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan;

	set_words(a->end, 1, 1);
	rcxt_of(a, a->ids[0])->copies = 1;
	ordered(a, 0, 1);
	ordered(a, 1, 1);
	KUNIT_EXPECT_TRUE(test, list_empty(&p->wire));
	end_copy(a, a->ids[0]);
	KUNIT_EXPECT_TRUE(test, nhca_rcxt_in_order(chan_rcxt(a, 0), 1));
	one_more(test, 1);
	KUNIT_EXPECT_TRUE(test, nhca_rcxt_in_order(chan_rcxt(a, 1), 1));
	one_more(test, 2);
}

/*
 * The limit includes ordered accumulates that wait for their rCxts, to whatever peers.  So a
 * retransmission that has to wait always has room.
 */
static void order_limit_rcxts(struct kunit *test)
{
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan;
	u64 ids[2 * CHAN_IDS];
	struct nhca_cqe cqe;
	u32 i;

	KUNIT_ASSERT_EQ(test, nhca_channel_acquire(a->ch, ids, ARRAY_SIZE(ids)), 0);
	for (i = 0; i < NHCA_MAX_ORDERED + 1; i++) {
		rcxt_of(a, ids[i])->copies = 1;
		ordered_to(a, ids[i], 0x2000 + i);
	}
	cqe = chan_expect(test, a, NHCA_WC_CH_LOCAL, IB_WC_LOC_QP_OP_ERR);
	KUNIT_EXPECT_EQ(test, cqe.vendor_err, EBUSY);
	KUNIT_EXPECT_EQ(test, cqe.wr_id, chan_wr_id(NHCA_MAX_ORDERED));
	KUNIT_EXPECT_FALSE(test, rcxt_of(a, ids[NHCA_MAX_ORDERED])->wanted);
	KUNIT_EXPECT_EQ(test, a->ch->num_waiting, NHCA_MAX_ORDERED);
	for (i = 0; i < NHCA_MAX_ORDERED + 1; i++)
		end_copy(a, ids[i]);
	KUNIT_EXPECT_EQ(test, pair_count(test, NHCA_RX_ACCUMULATE), NHCA_MAX_ORDERED);
	KUNIT_EXPECT_EQ(test, a->ch->num_waiting, 0);
}

/*
 * An accumulate that has waited for its rCxt, and then waits for other accumulates, lets peers use
 * the rCxt meanwhile.
 */
static void order_unwanted(struct kunit *test)
{
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan;
	u64 ids[NHCA_CH_ORDERED + 1];
	struct nhca_send_wqe *wqe;
	u32 i;

	KUNIT_ASSERT_EQ(test, nhca_channel_acquire(a->ch, ids, ARRAY_SIZE(ids)), 0);
	for (i = 0; i < NHCA_CH_ORDERED - 1; i++)
		ordered_to(a, ids[i], 0x2000 + i);
	rcxt_of(a, ids[i])->copies = 1;
	ordered_to(a, ids[i], 0x2000 + i);
	KUNIT_EXPECT_TRUE(test, rcxt_of(a, ids[i])->wanted);
	ordered_to(a, ids[i + 1], 0x2000 + i + 1);
	KUNIT_EXPECT_EQ(test, pair_count(test, NHCA_RX_ACCUMULATE), NHCA_CH_ORDERED);
	/* now NHCA_CH_ORDERED are in progress */
	end_copy(a, ids[i]);
	KUNIT_EXPECT_FALSE(test, rcxt_of(a, ids[i])->wanted);
	KUNIT_EXPECT_EQ(test, pair_count(test, NHCA_RX_ACCUMULATE), NHCA_CH_ORDERED);

	wqe = chan_wqe(a, NHCA_WR_CH_CANCEL);
	wqe->flags = 0;
	wqe->chan.local_rcxt = ids[0];
	chan_bell(a);
	KUNIT_EXPECT_EQ(test, pair_count(test, NHCA_RX_ACCUMULATE), NHCA_CH_ORDERED + 1);
}

/* In the error state, ordered accumulates that wait are flushed. */
static void order_flush(struct kunit *test)
{
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan;
	u32 i;

	for (i = 0; i < 3; i++)
		ordered(a, i, 1);
	local_bh_disable();
	nhca_channel_set_error(a->ch, NHCA_CH_ERR_MODIFIED);
	nhca_channel_doorbell(a->ch);
	local_bh_enable();
	for (i = 0; i < 2; i++)
		chan_expect(test, a, NHCA_WC_CH_LOCAL, IB_WC_WR_FLUSH_ERR);
	KUNIT_EXPECT_EQ(test, pair_count(test, 0), 1);
}

static struct kunit_case order_cases[] = {
	KUNIT_CASE(order_begins),
	KUNIT_CASE(order_retransmit),
	KUNIT_CASE(order_status),
	KUNIT_CASE(order_fence),
	KUNIT_CASE(order_forged),
	KUNIT_CASE(order_cancel),
	KUNIT_CASE(order_release),
	KUNIT_CASE(order_replaced),
	KUNIT_CASE(order_peers),
	KUNIT_CASE(order_limit),
	KUNIT_CASE(order_busy_rcxt),
	KUNIT_CASE(order_limit_rcxts),
	KUNIT_CASE(order_unwanted),
	KUNIT_CASE(order_flush),
	{}
};

static struct kunit_suite order_suite = {
	.name = "nhca_rcxt_ordered",
	.init = acc_init,
	.exit = pair_exit,
	.test_cases = order_cases,
};

kunit_test_suite(order_suite);
