// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit: reads of one channel from the memory of another, and the tokens that validate the address
 * of the reader.
 */
#include "channel_pair.h"

#define BOTH		(NHCA_NOTIFY_INITIATOR | NHCA_NOTIFY_TARGET)
#define WR_READ	NHCA_WR_CH_READ
#define LONG		(100 * PAIR_SEG)	/* more packets than a flow has in the stack */

/* Deliver a read request and its challenge. The request with the token is then on the wire. */
static void challenge(struct kunit *test)
{
	struct pair_packet *pk = pair_first(test, NHCA_RX_READ_REQUEST);

	KUNIT_EXPECT_EQ(test, pk->hdr.rx.token, 0);
	KUNIT_EXPECT_FALSE(test, pk->hdr.rx.again);
	pair_deliver(test);
	KUNIT_EXPECT_EQ(test, pair_count(test, 0), 1);
	KUNIT_EXPECT_NE(test, pair_first(test, NHCA_RX_READ_CHALLENGE)->hdr.rx.token, 0);
	pair_deliver(test);
	KUNIT_EXPECT_EQ(test, pair_count(test, 0), 1);
	pk = pair_first(test, NHCA_RX_READ_REQUEST);
	KUNIT_EXPECT_NE(test, pk->hdr.rx.token, 0);
	KUNIT_EXPECT_TRUE(test, pk->hdr.rx.again);
}

/* Post a read of one byte, so that later requests of end 0 have a token. */
static void learn(struct kunit *test)
{
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan;

	chan_transfer(a, WR_READ, 1, 1, 0);
	pair_settle(test);
	chan_expect(test, a, NHCA_WC_CH_LOCAL, IB_WC_SUCCESS);
	KUNIT_ASSERT_TRUE(test, chan_idle(a) && chan_idle(a->peer));
	*a->end->bytes = 0;
}

/* A read places the bytes of the peer. Only the first read from a host needs a challenge. */
static void read_bytes(struct kunit *test)
{
	static const u32 lengths[] = {
		7, 0, PAIR_SEG, 3 * PAIR_SEG + 1, 64 * PAIR_SEG, 65 * PAIR_SEG, 99 * PAIR_SEG + 3,
	};
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan, *b = p->end[1].chan;
	u32 i, len, most = 0;
	struct nhca_cqe cqe;

	for (i = 0; i < ARRAY_SIZE(lengths); i++) {
		len = lengths[i];
		pair_fill(b->end->bytes, len, i);
		chan_transfer(a, WR_READ, i + 1, len, BOTH);
		cqe = chan_expect(test, a, NHCA_WC_CH_LOCAL, IB_WC_SUCCESS);
		KUNIT_EXPECT_EQ(test, cqe.wr_id, chan_wr_id(i));
		if (!i)
			challenge(test);
		KUNIT_EXPECT_EQ(test, pair_count(test, NHCA_RX_READ_REQUEST), 1);
		pair_deliver(test);
		KUNIT_EXPECT_EQ(test, pair_count(test, NHCA_RX_READ_DATA),
				nhca_rcxt_packets(len, PAIR_SEG));
		/*
		 * the bytes of the answer are copied, so the program may reuse its memory before
		 * the packets are freed
		 */
		KUNIT_EXPECT_TRUE(test, pair_first(test, NHCA_RX_READ_DATA)->copy);
		KUNIT_EXPECT_TRUE(test, chan_idle(a) && chan_idle(b));
		pair_settle(test);
		cqe = chan_expect(test, a, NHCA_WC_CH_READ, IB_WC_SUCCESS);
		KUNIT_EXPECT_EQ(test, cqe.wr_id, chan_wr_id(i));
		KUNIT_EXPECT_EQ(test, cqe.byte_len, len);
		KUNIT_EXPECT_EQ(test, cqe.chan.tid, i + 1);
		KUNIT_EXPECT_EQ(test, cqe.src_qp, b->who.qpn);
		cqe = chan_expect(test, b, NHCA_WC_CH_REMOTE_READ, IB_WC_SUCCESS);
		KUNIT_EXPECT_EQ(test, cqe.wr_id, chan_cookie(i));
		KUNIT_EXPECT_EQ(test, cqe.byte_len, len);
		KUNIT_EXPECT_EQ(test, cqe.src_qp, a->who.qpn);
		KUNIT_EXPECT_EQ(test, cqe.chan.rcxt_key, NHCA_RCXT_KEY(b->ids[0]));
		KUNIT_EXPECT_TRUE(test, chan_idle(a) && chan_idle(b));
		KUNIT_EXPECT_TRUE(test, pair_is(a->end->bytes, len, i));
		most = max(most, len);
		KUNIT_EXPECT_TRUE(test, pair_clear(a->end, 0, most));
		KUNIT_EXPECT_EQ(test, atomic_long_read(&a->ch->rd->pool.map_bytes), 0);
	}
	KUNIT_EXPECT_EQ(test, chan_count(b, NHCA_CH_CHALLENGED), 1);
}

/* Each side gets a completion only if the work request requests it. */
static void read_notifies(struct kunit *test)
{
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan, *b = p->end[1].chan;
	u8 notify;

	learn(test);
	for (notify = 0; notify <= BOTH; notify++) {
		chan_transfer(a, WR_READ, notify + 2, 10, notify);
		chan_expect(test, a, NHCA_WC_CH_LOCAL, IB_WC_SUCCESS);
		pair_settle(test);
		if (notify & NHCA_NOTIFY_INITIATOR)
			chan_expect(test, a, NHCA_WC_CH_READ, IB_WC_SUCCESS);
		if (notify & NHCA_NOTIFY_TARGET)
			chan_expect(test, b, NHCA_WC_CH_REMOTE_READ, IB_WC_SUCCESS);
		KUNIT_EXPECT_TRUE(test, chan_idle(a) && chan_idle(b));
	}
}

/* ---- tokens ---- */

/* A request whose source address does not belong to its token gets a challenge, and no payload. */
static void read_forged_address(struct kunit *test)
{
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan, *b = p->end[1].chan;
	struct pair_packet *pk;

	learn(test);
	chan_transfer(a, WR_READ, 2, LONG, BOTH);
	pk = pair_first(test, NHCA_RX_READ_REQUEST);
	KUNIT_EXPECT_NE(test, pk->hdr.rx.token, 0);
	pk->saddr = PAIR_ADDR + 100;
	pair_rx(test, pk);
	KUNIT_EXPECT_EQ(test, pair_count(test, 0), 2);
	KUNIT_EXPECT_EQ(test, pair_count(test, NHCA_RX_READ_CHALLENGE), 1);
	KUNIT_EXPECT_EQ(test, list_last_entry(&p->wire, struct pair_packet, list)->daddr,
			PAIR_ADDR + 100);
	KUNIT_EXPECT_EQ(test, (u32)chan_rcxt(b, 0)->state, (u32)NHCA_RCXT_IDLE);
	pair_drop(list_last_entry(&p->wire, struct pair_packet, list));
	/* another token is refused as well, even if the address is right */
	pk->saddr = PAIR_ADDR;
	pk->hdr.rx.token ^= BIT_ULL(40);
	pair_rx(test, pk);
	KUNIT_EXPECT_EQ(test, pair_count(test, NHCA_RX_READ_CHALLENGE), 1);
	pair_drop(list_last_entry(&p->wire, struct pair_packet, list));
	/* a request that answers a challenge gets no second challenge */
	pk->hdr.rx.again = true;
	pair_rx(test, pk);
	KUNIT_EXPECT_EQ(test, pair_count(test, 0), 1);
	KUNIT_EXPECT_EQ(test, chan_count(b, NHCA_CH_CHALLENGED), 4);
	pk->hdr.rx.token ^= BIT_ULL(40);
	pair_settle(test);
	chan_expect(test, a, NHCA_WC_CH_LOCAL, IB_WC_SUCCESS);
	chan_expect(test, a, NHCA_WC_CH_READ, IB_WC_SUCCESS);
}

/* A request without a token gets no challenge if the rCxt would refuse it. */
static void read_refused_unvalidated(struct kunit *test)
{
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan, *b = p->end[1].chan;
	struct pair_packet *pk;

	chan_transfer(a, WR_READ, 1, 10, BOTH);
	pk = pair_first(test, NHCA_RX_READ_REQUEST);
	chan_rcxt(b, 0)->tid = 1;
	pair_rx(test, pk);
	KUNIT_EXPECT_EQ(test, chan_count(b, NHCA_CH_DROP_STALE), 1);
	chan_rcxt(b, 0)->tid = 0;
	pk->hdr.rx.rcxt.key ^= 1;
	pair_rx(test, pk);
	KUNIT_EXPECT_EQ(test, chan_count(b, NHCA_CH_DROP_RCXT_KEY), 1);
	KUNIT_EXPECT_EQ(test, pair_count(test, 0), 1);
	KUNIT_EXPECT_EQ(test, chan_count(b, NHCA_CH_CHALLENGED), 0);
}

/*
 * A challenge is answered only if it belongs to the read in progress. Otherwise the sender of a
 * forged challenge would get the request, which contains the PVO of the reader's buffer.
 */
static void read_forged_challenge(struct kunit *test)
{
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan;
	struct pair_packet *pk;
	struct nhca_av *av;
	u64 token;

	chan_transfer(a, WR_READ, 2, 10, BOTH);
	pair_deliver(test);
	pk = pair_first(test, NHCA_RX_READ_CHALLENGE);
	token = pk->hdr.rx.token;
	pk->hdr.rx.tid = 1;
	pair_rx(test, pk);
	KUNIT_EXPECT_EQ(test, chan_count(a, NHCA_CH_DROP_STALE), 1);
	pk->hdr.rx.tid = 3;
	pair_rx(test, pk);
	KUNIT_EXPECT_EQ(test, chan_count(a, NHCA_CH_DROP_UNSOLICITED), 1);
	pk->hdr.rx.tid = 2;
	pk->hdr.rx.reply_pvo++;
	pair_rx(test, pk);
	KUNIT_EXPECT_EQ(test, chan_count(a, NHCA_CH_DROP_MISMATCH), 1);
	pk->hdr.rx.reply_pvo--;
	pk->hdr.rx.total++;
	pair_rx(test, pk);
	KUNIT_EXPECT_EQ(test, chan_count(a, NHCA_CH_DROP_MISMATCH), 2);
	pk->hdr.rx.total--;
	pk->hdr.rx.rcxt.index = PAIR_RCXTS;
	pair_rx(test, pk);
	KUNIT_EXPECT_EQ(test, chan_count(a, NHCA_CH_DROP_NO_RCXT), 1);
	/* the tokens of refused challenges are not stored */
	av = xa_load(&a->end->dev->ah_ids, PAIR_AH);
	KUNIT_EXPECT_EQ(test, nhca_token_known(&a->ch->rd->tokens, &av->daddr, &av->saddr), 0);
	KUNIT_EXPECT_EQ(test, pair_count(test, 0), 1);
	pk->hdr.rx.rcxt = nhca_rcxt_id_of(a->ids[0]);
	pair_deliver(test);
	KUNIT_EXPECT_EQ(test, pair_first(test, NHCA_RX_READ_REQUEST)->hdr.rx.token, token);
	pair_settle(test);
	chan_expect(test, a, NHCA_WC_CH_LOCAL, IB_WC_SUCCESS);
	chan_expect(test, a, NHCA_WC_CH_READ, IB_WC_SUCCESS);
}

/* ---- a network that loses and repeats packets ---- */

/* Payload may arrive in any order and twice. Payload that no read has requested is dropped. */
static void read_any_order(struct kunit *test)
{
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan, *b = p->end[1].chan;
	const u32 len = 5 * PAIR_SEG;
	struct pair_packet *pk;
	u32 i;

	learn(test);
	pair_fill(b->end->bytes, len, 9);
	chan_transfer(a, WR_READ, 2, len, BOTH);
	chan_expect(test, a, NHCA_WC_CH_LOCAL, IB_WC_SUCCESS);
	/* the request arrives twice, and the second arrival is refused */
	pair_rx(test, pair_first(test, NHCA_RX_READ_REQUEST));
	pair_deliver(test);
	KUNIT_EXPECT_EQ(test, chan_count(b, NHCA_CH_DROP_STALE), 1);
	KUNIT_EXPECT_EQ(test, pair_count(test, NHCA_RX_READ_DATA), 5);
	pk = pair_first(test, NHCA_RX_READ_DATA);
	pk->hdr.rx.tid = 3;
	pair_rx(test, pk);
	KUNIT_EXPECT_EQ(test, chan_count(a, NHCA_CH_DROP_UNSOLICITED), 1);
	/* a write with the tid of the read */
	pk->hdr.rx.tid = 2;
	pk->hdr.opcode = NHCA_RX_WRITE;
	pair_rx(test, pk);
	KUNIT_EXPECT_EQ(test, chan_count(a, NHCA_CH_DROP_MISMATCH), 1);
	/* a write with a higher tid must not end the read */
	pk->hdr.rx.tid = 4;
	pair_rx(test, pk);
	KUNIT_EXPECT_EQ(test, chan_count(a, NHCA_CH_DROP_BUSY), 1);
	pk->hdr.rx.tid = 2;
	pk->hdr.opcode = NHCA_RX_READ_DATA;
	for (i = 0; i < 5; i++) {
		pk = list_last_entry(&p->wire, struct pair_packet, list);
		pair_rx(test, pk);
		if (i < 4)
			pair_rx(test, pk);
		if (i < 4)
			pair_drop(pk);
	}
	KUNIT_EXPECT_EQ(test, chan_count(a, NHCA_CH_DROP_DUPLICATE), 4);
	pair_settle(test);
	chan_expect(test, a, NHCA_WC_CH_READ, IB_WC_SUCCESS);
	chan_expect(test, b, NHCA_WC_CH_REMOTE_READ, IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(test, chan_idle(a) && chan_idle(b));
	KUNIT_EXPECT_TRUE(test, pair_is(a->end->bytes, len, 9));
	KUNIT_EXPECT_TRUE(test, pair_clear(a->end, 0, len));
}

/*
 * If the notice arrives while the answer is sent, the rest of the answer is not sent, and the
 * target of the read gets its completion.
 */
static void read_notice_stops_answer(struct kunit *test)
{
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan, *b = p->end[1].chan;
	struct pair_packet *pk;
	u32 sent;

	learn(test);
	chan_transfer(a, WR_READ, 2, LONG, BOTH);
	p->charge = true;
	pair_deliver(test);
	sent = pair_count(test, NHCA_RX_READ_DATA);
	KUNIT_EXPECT_LT(test, sent, 100);
	pk = pair_first(test, NHCA_RX_READ_DATA);
	/* the peer confirms that it has all bytes, which may have come over another path */
	pk->hdr.opcode = NHCA_RX_NOTICE;
	swap(pk->hdr.rx.rcxt, pk->hdr.rx.src_rcxt);
	pk->hdr.qpn = b->who.qpn;
	pk->hdr.rx.src_channel = a->who.qpn;
	pk->hdr.rx.key = lower_32_bits(b->resp.key);
	pk->hdr.rx.length = 0;
	pk->payload = 0;
	swap(pk->saddr, pk->daddr);
	pair_rx(test, pk);
	KUNIT_EXPECT_TRUE(test, chan_idle(b));
	sent = p->sent;
	while (!list_empty(&p->wire))
		pair_drop(list_first_entry(&p->wire, struct pair_packet, list));
	KUNIT_EXPECT_EQ(test, p->sent, sent);
	KUNIT_EXPECT_EQ(test, chan_expect(test, b, NHCA_WC_CH_REMOTE_READ, IB_WC_SUCCESS).wr_id,
			chan_cookie(1));
	KUNIT_EXPECT_TRUE(test, chan_idle(b));
}

/* ---- refusals ---- */

/*
 * Memory without IB_ACCESS_REMOTE_READ cannot be read. The first violation raises an event; a later
 * one raises an event only after a query.
 */
static void read_violation(struct kunit *test)
{
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan, *b = p->end[1].chan;
	struct nhca_channel_info info;
	u32 i;

	learn(test);
	b->end->mem->access = IB_ACCESS_LOCAL_WRITE;
	for (i = 0; i < 3; i++) {
		if (i == 2)
			nhca_channel_query(b->ch, &info);
		chan_transfer(a, WR_READ, i + 2, 10, BOTH);
		pair_settle(test);
		chan_expect(test, a, NHCA_WC_CH_LOCAL, IB_WC_SUCCESS);
	}
	KUNIT_EXPECT_EQ(test, info.violation, NHCA_CH_DROP_PVO_ACCESS);
	KUNIT_EXPECT_EQ(test, info.violation_channel, a->who.qpn);
	KUNIT_EXPECT_EQ(test, info.violation_rcxt, b->ids[0]);
	KUNIT_EXPECT_EQ(test, info.violation_tid, 3);
	KUNIT_EXPECT_EQ(test, info.violation_pvo, b->end->mem->pvo);
	KUNIT_EXPECT_EQ(test, b->access, 2);
	KUNIT_EXPECT_EQ(test, b->fatal, 0);
	KUNIT_EXPECT_EQ(test, chan_count(b, NHCA_CH_DROP_PVO_ACCESS), 3);
	KUNIT_EXPECT_EQ(test, (u32)chan_rcxt(b, 0)->state, (u32)NHCA_RCXT_VIOLATED);
	KUNIT_EXPECT_TRUE(test, chan_idle(a) && chan_idle(b));
	/* the channel still works */
	b->end->mem->access = PAIR_ACCESS;
	chan_transfer(a, WR_READ, 5, 10, NHCA_NOTIFY_INITIATOR);
	pair_settle(test);
	chan_expect(test, a, NHCA_WC_CH_LOCAL, IB_WC_SUCCESS);
	chan_expect(test, a, NHCA_WC_CH_READ, IB_WC_SUCCESS);
}

/* The destination of a read needs IB_ACCESS_LOCAL_WRITE when its payload arrives. */
static void read_bad_destination(struct kunit *test)
{
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan;

	learn(test);
	a->end->mem->access = IB_ACCESS_REMOTE_READ;
	chan_transfer(a, WR_READ, 2, 10, BOTH);
	pair_settle(test);
	chan_expect(test, a, NHCA_WC_CH_LOCAL, IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(test, chan_idle(a));
	KUNIT_EXPECT_EQ(test, chan_count(a, NHCA_CH_DROP_PVO_ACCESS), 1);
	KUNIT_EXPECT_EQ(test, a->access, 1);
	KUNIT_EXPECT_TRUE(test, pair_clear(a->end, 0, 0));
}

/* The target refuses a segment that its own MTU does not allow. */
static void read_segment(struct kunit *test)
{
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan, *b = p->end[1].chan;

	learn(test);
	b->end->netdev->mtu = 1100;
	KUNIT_ASSERT_LT(test, nhca_channel_segment(b->end->dev), PAIR_SEG);
	chan_transfer(a, WR_READ, 2, 10, BOTH);
	pair_settle(test);
	chan_expect(test, a, NHCA_WC_CH_LOCAL, IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(test, chan_idle(a));
	KUNIT_EXPECT_EQ(test, chan_count(b, NHCA_CH_DROP_SEGMENT), 1);
}

/* An rCxt that is in use answers no read. */
static void read_busy(struct kunit *test)
{
	static const u8 busy[] = {
		NHCA_RCXT_SENDING, NHCA_RCXT_WAITING, NHCA_RCXT_READING, NHCA_RCXT_RECEIVING,
		NHCA_RCXT_ANSWERING,
	};
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan, *b = p->end[1].chan;
	struct pair_packet *pk;
	u32 i;

	learn(test);
	chan_transfer(a, WR_READ, 2, 10, BOTH);
	pk = pair_first(test, NHCA_RX_READ_REQUEST);
	for (i = 0; i < ARRAY_SIZE(busy); i++) {
		chan_rcxt(b, 0)->state = busy[i];
		pair_rx(test, pk);
		KUNIT_EXPECT_EQ(test, chan_count(b, NHCA_CH_DROP_BUSY), i + 1);
	}
	chan_rcxt(b, 0)->state = NHCA_RCXT_IDLE;
	KUNIT_EXPECT_EQ(test, pair_count(test, 0), 1);
	KUNIT_EXPECT_TRUE(test, list_empty(&b->ch->requested) && list_empty(&b->ch->sending));
}

/* Without memory for a bitmap, a read fails, and a write of a peer does not begin. */
static void no_memory_for_bitmap(struct kunit *test)
{
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan, *b = p->end[1].chan;
	struct nhca_cqe cqe;

	a->ch->rd->pool.map_limit = 0;
	b->ch->rd->pool.map_limit = 0;
	chan_transfer(a, WR_READ, 1, LONG, BOTH);
	cqe = chan_expect(test, a, NHCA_WC_CH_LOCAL, IB_WC_GENERAL_ERR);
	KUNIT_EXPECT_EQ(test, cqe.vendor_err, ENOMEM);
	KUNIT_EXPECT_EQ(test, pair_count(test, 0), 0);
	chan_transfer(a, NHCA_WR_CH_WRITE, 1, LONG, BOTH);
	pair_settle(test);
	KUNIT_EXPECT_EQ(test, chan_count(b, NHCA_CH_DROP_NO_MEMORY), 100);
	KUNIT_EXPECT_EQ(test, chan_rcxt(b, 0)->tid, 0);
	KUNIT_EXPECT_EQ(test, nhca_channel_state(a->ch), IB_QPS_RTS);
}

static struct kunit_case rcxt_read_cases[] = {
	KUNIT_CASE(read_bytes),
	KUNIT_CASE(read_notifies),
	KUNIT_CASE(read_forged_address),
	KUNIT_CASE(read_refused_unvalidated),
	KUNIT_CASE(read_forged_challenge),
	KUNIT_CASE(read_any_order),
	KUNIT_CASE(read_notice_stops_answer),
	KUNIT_CASE(read_violation),
	KUNIT_CASE(read_bad_destination),
	KUNIT_CASE(read_segment),
	KUNIT_CASE(read_busy),
	KUNIT_CASE(no_memory_for_bitmap),
	{}
};

static struct kunit_suite rcxt_read_suite = {
	.name = "nhca_rcxt_read",
	.init = pair_init,
	.exit = pair_exit,
	.test_cases = rcxt_read_cases,
};

kunit_test_suite(rcxt_read_suite);
