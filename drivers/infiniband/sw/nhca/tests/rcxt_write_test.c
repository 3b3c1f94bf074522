// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit: writes of one channel to another: the bytes, the completions, and the time at which the
 * program may reuse its buffer, on a network that loses, repeats and reorders packets.
 */
#include "../rcxt/notice.h"
#include "channel_pair.h"

#define BOTH		(NHCA_NOTIFY_INITIATOR | NHCA_NOTIFY_TARGET)
#define WR_WRITE	NHCA_WR_CH_WRITE
#define LONG		(100 * PAIR_SEG)	/* more packets than a flow has in the stack */

static void expect_rcxt(struct kunit *test, const struct nhca_cqe *cqe, u64 id, u32 tid)
{
	KUNIT_EXPECT_EQ(test, NHCA_RCXT_ID(cqe->chan.rcxt_index, cqe->chan.rcxt_key), id);
	KUNIT_EXPECT_EQ(test, cqe->chan.tid, tid);
}

/* Expect the completion of the work request @i of @c, without an error. */
static void expect_local(struct kunit *test, struct chan *c, u32 i, u32 tid)
{
	struct nhca_cqe cqe = chan_expect(test, c, NHCA_WC_CH_LOCAL, IB_WC_SUCCESS);

	KUNIT_EXPECT_EQ(test, cqe.wr_id, chan_wr_id(i));
	KUNIT_EXPECT_EQ(test, cqe.vendor_err, 0);
	expect_rcxt(test, &cqe, c->ids[0], tid);
}

/* Expect the completions of write @i of @a on both sides. */
static void expect_written(struct kunit *test, struct chan *a, u32 i, u32 tid, u32 total)
{
	struct nhca_cqe cqe = chan_expect(test, a, NHCA_WC_CH_WRITE, IB_WC_SUCCESS);

	KUNIT_EXPECT_EQ(test, cqe.wr_id, chan_wr_id(i));
	KUNIT_EXPECT_EQ(test, cqe.byte_len, total);
	KUNIT_EXPECT_EQ(test, cqe.src_qp, a->peer->who.qpn);
	expect_rcxt(test, &cqe, a->ids[0], tid);
	cqe = chan_expect(test, a->peer, NHCA_WC_CH_REMOTE_WRITE, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, cqe.wr_id, chan_cookie(i));
	KUNIT_EXPECT_EQ(test, cqe.byte_len, total);
	KUNIT_EXPECT_EQ(test, cqe.src_qp, a->who.qpn);
	expect_rcxt(test, &cqe, a->peer->ids[0], tid);
}

/* Post a retransmission: the bytes @from to @to - 1 of a write of @total bytes. */
static void again(struct chan *a, u32 tid, u32 total, u32 from, u32 to, u8 notify)
{
	struct nhca_rcxt_wr *wr = chan_wqe(a, WR_WRITE)->rcxt;

	wr->tid = tid;
	wr->total = total;
	wr->offset = from;
	wr->length = to - from;
	wr->notify = notify;
	wr->flags = NHCA_RCXT_WR_RETRANSMIT;
	chan_bell(a);
}

/* A write of any length places its bytes and no other bytes, and each side gets one completion. */
static void write_bytes(struct kunit *test)
{
	static const u32 lengths[] = {
		0, 1, 3, PAIR_SEG - 1, PAIR_SEG, PAIR_SEG + 1, 5 * PAIR_SEG + 7, 80 * PAIR_SEG,
	};
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan, *b = p->end[1].chan;
	u64 packets = 0, bytes = 0;
	u32 i, len, n;

	for (i = 0; i < ARRAY_SIZE(lengths); i++) {
		len = lengths[i];
		n = nhca_rcxt_packets(len, PAIR_SEG);
		pair_fill(a->end->bytes, len, i);
		chan_transfer(a, WR_WRITE, i + 1, len, BOTH);
		KUNIT_EXPECT_EQ(test, pair_count(test, NHCA_RX_WRITE), n);
		KUNIT_EXPECT_EQ(test, pair_count(test, 0), n);
		expect_local(test, a, i, i + 1);
		KUNIT_EXPECT_TRUE(test, chan_idle(a) && chan_idle(b));
		pair_settle(test);
		expect_written(test, a, i, i + 1, len);
		KUNIT_EXPECT_TRUE(test, chan_idle(a) && chan_idle(b));
		KUNIT_EXPECT_TRUE(test, pair_is(b->end->bytes, len, i));
		KUNIT_EXPECT_TRUE(test, pair_clear(b->end, 0, len));
		KUNIT_EXPECT_EQ(test, a->ch->sq.hdr->cons, a->posted);
		packets += n;
		bytes += len;
	}
	/* the notices of the other side are packets without payload */
	KUNIT_EXPECT_EQ(test, chan_count(a, NHCA_CH_SENT_PACKETS), packets);
	KUNIT_EXPECT_EQ(test, chan_count(a, NHCA_CH_SENT_BYTES), bytes);
	KUNIT_EXPECT_EQ(test, chan_count(b, NHCA_CH_RECEIVED_PACKETS), packets);
	KUNIT_EXPECT_EQ(test, chan_count(b, NHCA_CH_RECEIVED_BYTES), bytes);
	KUNIT_EXPECT_EQ(test, chan_count(b, NHCA_CH_SENT_PACKETS), i);
	KUNIT_EXPECT_EQ(test, chan_count(a, NHCA_CH_RECEIVED_PACKETS), i);
	KUNIT_EXPECT_EQ(test, pair_dev_count(b->end, NHCA_CNT_RCVD_PKTS), packets);
}

/* Each side gets a completion only if the work request requests it. */
static void write_notifies(struct kunit *test)
{
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan, *b = p->end[1].chan;
	struct nhca_rcxt_wr *wr;
	u8 notify;

	for (notify = 0; notify <= BOTH; notify++) {
		wr = chan_wqe(a, WR_WRITE)->rcxt;
		wr->tid = notify + 1;
		wr->total = 2 * PAIR_SEG;
		wr->length = wr->total;
		wr->notify = notify;
		((struct nhca_send_wqe *)nhca_ring_slot(&a->ch->sq, a->posted))->flags = 0;
		chan_bell(a);
		/*
		 * without a notice nothing reports when the last packet that refers to the buffer
		 * is freed, so the payload is copied
		 */
		KUNIT_EXPECT_EQ(test, pair_first(test, NHCA_RX_WRITE)->copy,
				!(notify & NHCA_NOTIFY_INITIATOR));
		pair_settle(test);
		if (notify & NHCA_NOTIFY_INITIATOR)
			chan_expect(test, a, NHCA_WC_CH_WRITE, IB_WC_SUCCESS);
		if (notify & NHCA_NOTIFY_TARGET)
			chan_expect(test, b, NHCA_WC_CH_REMOTE_WRITE, IB_WC_SUCCESS);
		KUNIT_EXPECT_TRUE(test, chan_idle(a) && chan_idle(b));
	}
	KUNIT_EXPECT_EQ(test, chan_count(b, NHCA_CH_SENT_PACKETS), 2);
}

/*
 * Packets may arrive in any order and twice: each byte is placed once, and the write completes
 * once.
 */
static void write_any_order(struct kunit *test)
{
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan, *b = p->end[1].chan;
	const u32 len = 9 * PAIR_SEG + 5;
	struct pair_packet *pk;
	u32 i;

	pair_fill(a->end->bytes, len, 1);
	chan_transfer(a, WR_WRITE, 1, len, BOTH);
	expect_local(test, a, 0, 1);
	for (i = 0; i < 10; i++) {
		pk = list_last_entry(&p->wire, struct pair_packet, list);
		pair_rx(test, pk);
		if (i == 9)
			break;
		/* the second arrival of the packet must place none of the bytes 0xee */
		memset(pk->bytes, 0xee, pk->payload);
		pair_rx(test, pk);
		pair_drop(pk);
	}
	KUNIT_EXPECT_EQ(test, chan_count(b, NHCA_CH_DROP_DUPLICATE), 9);
	pair_first(test, NHCA_RX_WRITE);
	KUNIT_EXPECT_EQ(test, pair_count(test, NHCA_RX_NOTICE), 1);
	/* after the end of the transfer, its packets and the notice are duplicates */
	pair_deliver(test);
	KUNIT_EXPECT_EQ(test, chan_count(b, NHCA_CH_DROP_DUPLICATE), 10);
	pair_rx(test, pair_first(test, NHCA_RX_NOTICE));
	pair_settle(test);
	KUNIT_EXPECT_EQ(test, chan_count(a, NHCA_CH_DROP_DUPLICATE), 1);
	expect_written(test, a, 0, 1, len);
	KUNIT_EXPECT_TRUE(test, chan_idle(a) && chan_idle(b));
	KUNIT_EXPECT_TRUE(test, pair_is(b->end->bytes, len, 1));
	KUNIT_EXPECT_TRUE(test, pair_clear(b->end, 0, len));
}

/*
 * A write with a lost packet does not complete. After the program has sent this packet again, the
 * write completes.
 */
static void write_lost_packet(struct kunit *test)
{
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan, *b = p->end[1].chan;
	const u32 len = 3 * PAIR_SEG;
	struct nhca_cqe cqe;

	pair_fill(a->end->bytes, len, 1);
	chan_transfer(a, WR_WRITE, 1, len, BOTH);
	expect_local(test, a, 0, 1);
	pair_deliver(test);
	pair_drop(pair_first(test, NHCA_RX_WRITE));
	pair_settle(test);
	KUNIT_EXPECT_TRUE(test, chan_idle(a) && chan_idle(b));
	again(a, 1, len, PAIR_SEG, 2 * PAIR_SEG, BOTH);
	KUNIT_EXPECT_EQ(test, pair_count(test, NHCA_RX_WRITE), 1);
	KUNIT_EXPECT_EQ(test, pair_first(test, NHCA_RX_WRITE)->hdr.rx.offset, PAIR_SEG);
	expect_local(test, a, 1, 1);
	pair_settle(test);
	/* the completion has the cookie of the packet that completed the write */
	cqe = chan_expect(test, b, NHCA_WC_CH_REMOTE_WRITE, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, cqe.wr_id, chan_cookie(1));
	cqe = chan_expect(test, a, NHCA_WC_CH_WRITE, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, cqe.wr_id, chan_wr_id(0));
	KUNIT_EXPECT_TRUE(test, pair_is(b->end->bytes, len, 1));
	/* the write is complete, so no packet is sent again */
	again(a, 1, len, 0, len, BOTH);
	cqe = chan_expect(test, a, NHCA_WC_CH_LOCAL, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, cqe.vendor_err, EALREADY);
	KUNIT_EXPECT_EQ(test, pair_count(test, 0), 0);
}

/* A packet that the stack refuses for lack of memory counts as sent, and is lost. */
static void write_unsent_packet(struct kunit *test)
{
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan, *b = p->end[1].chan;

	p->fail_at = 2;
	chan_transfer(a, WR_WRITE, 1, 3 * PAIR_SEG, BOTH);
	KUNIT_EXPECT_EQ(test, pair_count(test, NHCA_RX_WRITE), 2);
	expect_local(test, a, 0, 1);
	pair_settle(test);
	KUNIT_EXPECT_TRUE(test, chan_idle(a) && chan_idle(b));
	KUNIT_EXPECT_EQ(test, chan_rcxt(b, 0)->missing, 1);
	/* a notice that cannot be sent is lost as well, so the initiator would have to probe */
	p->fail_at = 2;
	again(a, 1, 3 * PAIR_SEG, PAIR_SEG, 2 * PAIR_SEG, BOTH);
	pair_settle(test);
	expect_local(test, a, 1, 1);
	chan_expect(test, b, NHCA_WC_CH_REMOTE_WRITE, IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(test, chan_idle(a));
	KUNIT_EXPECT_EQ(test, chan_count(b, NHCA_CH_SENT_PACKETS), 0);
}

/*
 * Batches of packets place the same bytes as single packets, even if some of the packets have
 * arrived before.
 */
static void write_batches(struct kunit *test)
{
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan, *b = p->end[1].chan;
	const u32 len = 20 * PAIR_SEG + 100;
	struct pair_packet *pk;

	p->batch = 8;
	pair_fill(a->end->bytes, len, 1);
	chan_transfer(a, WR_WRITE, 1, len, BOTH);
	KUNIT_EXPECT_EQ(test, pair_count(test, NHCA_RX_WRITE), 21);
	pk = pair_first(test, NHCA_RX_WRITE);
	KUNIT_EXPECT_EQ(test, pk->count, 8);
	/* the last packet of the batch arrives first, so the run ends before it */
	pk->count = 1;
	pk->hdr.rx.offset += 7 * PAIR_SEG;
	pk->hdr.rx.pvo += 7 * PAIR_SEG;
	memmove(pk->bytes, pk->bytes + 7 * PAIR_SEG, PAIR_SEG);
	pair_rx(test, pk);
	pk->count = 8;
	pk->hdr.rx.offset = 0;
	pk->hdr.rx.pvo -= 7 * PAIR_SEG;
	memcpy(pk->bytes, a->end->bytes, 8 * PAIR_SEG);
	pair_rx(test, pk);
	KUNIT_EXPECT_EQ(test, chan_count(b, NHCA_CH_DROP_DUPLICATE), 1);
	KUNIT_EXPECT_EQ(test, chan_rcxt(b, 0)->missing, 13);
	/* with an ICRC each packet is checked alone */
	pair_drop(pk);
	pair_first(test, NHCA_RX_WRITE)->hdr.caps = 0;
	pair_settle(test);
	expect_local(test, a, 0, 1);
	expect_written(test, a, 0, 1, len);
	KUNIT_EXPECT_TRUE(test, pair_is(b->end->bytes, len, 1));
	KUNIT_EXPECT_TRUE(test, pair_clear(b->end, 0, len));
	KUNIT_EXPECT_EQ(test, chan_count(b, NHCA_CH_RECEIVED_PACKETS), 22);
	KUNIT_EXPECT_EQ(test, pair_dev_count(b->end, NHCA_CNT_RCVD_PKTS), 22);
}

/*
 * If a batch extends beyond the region, its packets inside are placed, and the write never
 * completes.
 */
static void write_batch_beyond_region(struct kunit *test)
{
	const u32 start = PAIR_BYTES - 5 * PAIR_SEG - 10;
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan, *b = p->end[1].chan;
	struct nhca_channel_info info;
	struct nhca_rcxt_wr *wr;

	p->batch = 8;
	pair_fill(a->end->bytes, 10 * PAIR_SEG, 1);
	wr = chan_wqe(a, WR_WRITE)->rcxt;
	wr->remote_pvo += start;
	wr->total = 10 * PAIR_SEG;
	wr->length = wr->total;
	wr->notify = BOTH;
	chan_bell(a);
	pair_deliver(test);
	KUNIT_EXPECT_TRUE(test, pair_is(b->end->bytes + start, 5 * PAIR_SEG, 1));
	KUNIT_EXPECT_TRUE(test, pair_clear(b->end, start, start + 5 * PAIR_SEG));
	KUNIT_EXPECT_EQ(test, chan_count(b, NHCA_CH_DROP_PVO_RANGE), 1);
	/* the rest of the batch and the next batch are dropped, because the transfer has failed */
	pair_settle(test);
	KUNIT_EXPECT_EQ(test, chan_count(b, NHCA_CH_DROP_ABORTED), 4);
	KUNIT_EXPECT_EQ(test, chan_count(b, NHCA_CH_RECEIVED_PACKETS), 10);
	KUNIT_EXPECT_EQ(test, b->access, 1);
	nhca_channel_query(b->ch, &info);
	KUNIT_EXPECT_EQ(test, info.violation, NHCA_CH_DROP_PVO_RANGE);
	KUNIT_EXPECT_EQ(test, info.violation_channel, a->who.qpn);
	KUNIT_EXPECT_EQ(test, info.violation_rcxt, b->ids[0]);
	KUNIT_EXPECT_EQ(test, info.violation_tid, 1);
	KUNIT_EXPECT_EQ(test, info.violation_pvo, b->end->mem->pvo + start + 5 * PAIR_SEG);
	KUNIT_EXPECT_TRUE(test, chan_idle(b));
	KUNIT_EXPECT_EQ(test, nhca_channel_state(b->ch), IB_QPS_RTS);
}

/* ---- the buffer ---- */

/* A write whose notice has arrived completes when no packet refers to its pages any more. */
static void write_waits_for_pages(struct kunit *test)
{
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan;
	struct pair_packet *first;

	p->zcopy = true;
	chan_transfer(a, WR_WRITE, 1, 2 * PAIR_SEG, BOTH);
	expect_local(test, a, 0, 1);
	first = pair_first(test, NHCA_RX_WRITE);
	KUNIT_ASSERT_NOT_NULL(test, first->zcopy);
	pair_rx(test, first);
	pair_rx(test, list_last_entry(&p->wire, struct pair_packet, list));
	pair_rx(test, list_last_entry(&p->wire, struct pair_packet, list));
	KUNIT_EXPECT_FALSE(test, chan_poll(a, false, &(struct nhca_cqe) {}));
	KUNIT_EXPECT_EQ(test, (u32)chan_rcxt(a, 0)->state, (u32)NHCA_RCXT_RELEASING);
	/*
	 * a retransmission waits as well; then it completes with EALREADY, because the write is
	 * complete
	 */
	again(a, 1, 2 * PAIR_SEG, 0, 2 * PAIR_SEG, BOTH);
	KUNIT_EXPECT_EQ(test, a->ch->sq.hdr->cons, 1);
	pair_drop(list_first_entry(&first->list, struct pair_packet, list));
	KUNIT_EXPECT_EQ(test, (u32)chan_rcxt(a, 0)->state, (u32)NHCA_RCXT_RELEASING);
	pair_drop(first);
	expect_written(test, a, 0, 1, 2 * PAIR_SEG);
	KUNIT_EXPECT_EQ(test, chan_expect(test, a, NHCA_WC_CH_LOCAL, IB_WC_SUCCESS).vendor_err,
			EALREADY);
}

/* Remove rCxt @i of @a from the list of rCxts that wait for pages, as its release does. */
static void forget(struct chan *a, u32 i)
{
	struct nhca_rcxt_id id = nhca_rcxt_id_of(a->ids[i]);
	spinlock_t *lock = nhca_rcxt_lock(a->ch->rd, &id);

	spin_lock_bh(lock);
	nhca_notice_forget(a->ch, chan_rcxt(a, i));
	nhca_rcxt_end(&a->ch->rd->pool, chan_rcxt(a, i), NHCA_RCXT_IDLE);
	spin_unlock_bh(lock);
}

/*
 * Several writes may wait until no packet refers to their pages. These writes complete in the order
 * of their notices. A write whose rCxt is released does not complete.
 */
static void writes_wait_for_pages(struct kunit *test)
{
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan;
	struct pair_packet *data[CHAN_IDS], *notice;
	struct nhca_send_wqe *wqe;
	struct nhca_cqe cqe;
	u32 i;

	p->zcopy = true;
	for (i = 0; i < CHAN_IDS; i++) {
		wqe = chan_wqe(a, WR_WRITE);
		wqe->flags = 0;
		wqe->chan.local_rcxt = a->ids[i];
		wqe->chan.remote_rcxt = a->peer->ids[i];
		wqe->rcxt[0].total = PAIR_SEG;
		wqe->rcxt[0].length = PAIR_SEG;
		wqe->rcxt[0].notify = NHCA_NOTIFY_INITIATOR;
		chan_bell(a);
		data[i] = list_last_entry(&p->wire, struct pair_packet, list);
	}
	for (i = 0; i < CHAN_IDS; i++) {
		pair_rx(test, data[i]);
		notice = list_last_entry(&p->wire, struct pair_packet, list);
		pair_rx(test, notice);
		pair_drop(notice);
	}
	forget(a, 1);
	/* a reference counts as released only when all earlier references are released */
	pair_drop(data[2]);
	pair_drop(data[1]);
	KUNIT_EXPECT_TRUE(test, chan_idle(a));
	pair_drop(data[0]);
	for (i = 0; i < CHAN_IDS - 1; i += 2) {
		cqe = chan_expect(test, a, NHCA_WC_CH_WRITE, IB_WC_SUCCESS);
		KUNIT_EXPECT_EQ(test, cqe.wr_id, chan_wr_id(i));
	}
	KUNIT_EXPECT_TRUE(test, chan_idle(a));
	pair_drop(data[3]);
	cqe = chan_expect(test, a, NHCA_WC_CH_WRITE, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, cqe.wr_id, chan_wr_id(3));
	KUNIT_EXPECT_EQ(test, a->ch->noticed.first, NHCA_RCXT_NONE);
	KUNIT_EXPECT_EQ(test, a->ch->noticed.last, NHCA_RCXT_NONE);
}

/* If the notice arrives while packets are sent again, the remaining packets are not sent. */
static void write_notice_stops_packets(struct kunit *test)
{
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan, *b = p->end[1].chan;
	struct pair_packet *notice;
	u32 sent;

	chan_transfer(a, WR_WRITE, 1, LONG, BOTH);
	expect_local(test, a, 0, 1);
	while (!pair_count(test, NHCA_RX_NOTICE))
		pair_deliver(test);
	chan_expect(test, b, NHCA_WC_CH_REMOTE_WRITE, IB_WC_SUCCESS);
	notice = pair_first(test, NHCA_RX_NOTICE);
	p->charge = true;
	p->zcopy = true;
	again(a, 1, LONG, 0, LONG, BOTH);
	sent = pair_count(test, NHCA_RX_WRITE);
	KUNIT_EXPECT_LT(test, sent, 100);
	KUNIT_EXPECT_EQ(test, nhca_channel_dump(a->ch, &(struct nhca_channel_info) {}), sent);
	KUNIT_EXPECT_TRUE(test, chan_idle(a));
	pair_rx(test, notice);
	pair_drop(notice);
	KUNIT_EXPECT_TRUE(test, chan_idle(a));
	sent = p->sent;
	pair_settle(test);
	KUNIT_EXPECT_EQ(test, p->sent, sent);
	expect_local(test, a, 1, 1);
	chan_expect(test, a, NHCA_WC_CH_WRITE, IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(test, chan_idle(a) && chan_idle(b));
}

/* A channel pauses while the stack holds too many packets, and continues when packets are freed. */
static void write_back_pressure(struct kunit *test)
{
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan, *b = p->end[1].chan;
	u32 most = 0, left;

	p->charge = true;
	pair_fill(a->end->bytes, 2 * LONG, 1);
	chan_transfer(a, WR_WRITE, 1, 2 * LONG, BOTH);
	left = pair_count(test, NHCA_RX_WRITE);
	KUNIT_EXPECT_GE(test, left, 64);
	KUNIT_EXPECT_LT(test, left, 130);
	for (; left; left = pair_count(test, NHCA_RX_WRITE)) {
		most = max(most, left);
		pair_deliver(test);
	}
	KUNIT_EXPECT_LT(test, most, 130);
	pair_settle(test);
	expect_local(test, a, 0, 1);
	expect_written(test, a, 0, 1, 2 * LONG);
	KUNIT_EXPECT_TRUE(test, pair_is(b->end->bytes, 2 * LONG, 1));
}

/*
 * At most NHCA_CH_WRITES writes are in progress. Further writes stay in the send FIFO until earlier
 * writes are sent.
 */
static void write_many(struct kunit *test)
{
	const struct nhca_channel_modify slow = { .mask = NHCA_CHANNEL_QUANTUM, .quantum = 1 };
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan;
	struct nhca_send_wqe *wqe;
	struct nhca_cqe cqe;
	u32 i, fetched;
	u64 ids[NHCA_CH_WRITES + 1];
	bool idle;

	KUNIT_ASSERT_EQ(test, nhca_channel_acquire(a->ch, ids, ARRAY_SIZE(ids)), 0);
	KUNIT_ASSERT_EQ(test, nhca_channel_modify(a->ch, &slow), 0);
	for (i = 0; i < ARRAY_SIZE(ids); i++) {
		wqe = chan_wqe(a, WR_WRITE);
		wqe->chan.local_rcxt = ids[i];
		wqe->rcxt[0].segment = NHCA_RCXT_MIN_SEGMENT;
		wqe->rcxt[0].total = 14 * NHCA_RCXT_MIN_SEGMENT;
		wqe->rcxt[0].length = 14 * NHCA_RCXT_MIN_SEGMENT;
		chan_push(a);
	}
	/* in the first pass, each turn fetches a work request if it can, and sends a packet */
	local_bh_disable();
	nhca_channel_doorbell(a->ch);
	fetched = a->ch->fetched;
	idle = chan_idle(a);
	local_bh_enable();
	KUNIT_EXPECT_EQ(test, fetched, NHCA_CH_WRITES);
	KUNIT_EXPECT_TRUE(test, idle);
	KUNIT_EXPECT_EQ(test, pair_count(test, NHCA_RX_WRITE), 14 * ARRAY_SIZE(ids));
	for (i = 0; i < ARRAY_SIZE(ids); i++) {
		cqe = chan_expect(test, a, NHCA_WC_CH_LOCAL, IB_WC_SUCCESS);
		KUNIT_EXPECT_EQ(test, cqe.wr_id, chan_wr_id(i));
	}
	KUNIT_EXPECT_EQ(test, a->ch->sq.hdr->cons, ARRAY_SIZE(ids));
	KUNIT_EXPECT_EQ(test, nhca_channel_release(a->ch, ids, ARRAY_SIZE(ids)), 0);
}

/* ---- cancel and release ---- */

static void cancel(struct chan *a, u64 id, u32 tid)
{
	struct nhca_send_wqe *wqe = chan_wqe(a, NHCA_WR_CH_CANCEL);

	wqe->chan.local_rcxt = id;
	wqe->rcxt[0].tid = tid;
	chan_bell(a);
}

static u32 canceled(struct kunit *test, struct chan *a, u64 id, u32 tid)
{
	struct nhca_cqe cqe = {};

	cancel(a, id, tid);
	KUNIT_ASSERT_TRUE(test, chan_poll(a, false, &cqe));
	KUNIT_EXPECT_EQ(test, cqe.wr_id, chan_wr_id(a->posted - 1));
	return cqe.vendor_err;
}

/*
 * A cancel needs an rCxt of the channel and a tid that is not too low. The cancel of a complete
 * write reports EALREADY.
 */
static void cancel_too_late(struct kunit *test)
{
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan;

	KUNIT_EXPECT_EQ(test, canceled(test, a, a->ids[0], 5), 0);
	KUNIT_EXPECT_EQ(test, canceled(test, a, a->ids[0], 4), EINVAL);
	KUNIT_EXPECT_EQ(test, canceled(test, a, a->peer->ids[0], 5), ENOENT);
	/* no write can begin with a canceled tid */
	chan_transfer(a, WR_WRITE, 5, 10, BOTH);
	KUNIT_EXPECT_EQ(test, chan_expect(test, a, NHCA_WC_CH_LOCAL,
					  IB_WC_LOC_QP_OP_ERR).vendor_err, EINVAL);
	chan_transfer(a, WR_WRITE, 6, 10, NHCA_NOTIFY_INITIATOR);
	pair_settle(test);
	expect_local(test, a, a->posted - 1, 6);
	chan_expect(test, a, NHCA_WC_CH_WRITE, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, canceled(test, a, a->ids[0], 6), EALREADY);
	KUNIT_EXPECT_TRUE(test, chan_idle(a));
}

/*
 * A canceled write sends no more packets and completes with a flush error, if it is signaled. The
 * cancel completes after the write, when no packet refers to the pages.
 */
static void cancel_while_sent(struct kunit *test)
{
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan, *b = p->end[1].chan;
	struct nhca_send_wqe *wqe;
	struct nhca_cqe cqe;
	u32 sent, round;

	p->charge = true;
	p->zcopy = true;
	for (round = 0; round < 2; round++) {
		wqe = chan_wqe(a, WR_WRITE);
		wqe->flags = round ? 0 : NHCA_SEND_SIGNALED;
		wqe->rcxt[0].tid = 2 * round + 1;
		wqe->rcxt[0].total = LONG;
		wqe->rcxt[0].length = LONG;
		wqe->rcxt[0].notify = BOTH;
		chan_bell(a);
		KUNIT_EXPECT_TRUE(test, chan_idle(a));
		/* the flow is full, so the cancel is fetched only after packets were freed */
		cancel(a, a->ids[0], 2 * round + 1);
		KUNIT_EXPECT_TRUE(test, chan_idle(a));
		while (chan_rcxt(a, 0)->state == NHCA_RCXT_SENDING)
			pair_deliver(test);
		sent = p->sent;
		KUNIT_EXPECT_GT(test, pair_count(test, NHCA_RX_WRITE), 1);
		KUNIT_EXPECT_TRUE(test, chan_idle(a));
		pair_settle(test);
		KUNIT_EXPECT_EQ(test, p->sent, sent);
		if (!round) {
			cqe = chan_expect(test, a, NHCA_WC_CH_LOCAL, IB_WC_WR_FLUSH_ERR);
			KUNIT_EXPECT_EQ(test, cqe.wr_id, chan_wr_id(0));
		}
		cqe = chan_expect(test, a, NHCA_WC_CH_LOCAL, IB_WC_SUCCESS);
		KUNIT_EXPECT_EQ(test, cqe.wr_id, chan_wr_id(2 * round + 1));
		KUNIT_EXPECT_EQ(test, cqe.vendor_err, 0);
		KUNIT_EXPECT_TRUE(test, chan_idle(a) && chan_idle(b));
	}
}

/*
 * A write that replaces another write on its rCxt begins only after all packets of the other write
 * are sent.
 */
static void write_waits_for_rcxt(struct kunit *test)
{
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan, *b = p->end[1].chan;

	p->charge = true;
	chan_transfer(a, WR_WRITE, 1, LONG, BOTH);
	chan_transfer(a, WR_WRITE, 2, 10, BOTH);
	KUNIT_EXPECT_EQ(test, a->ch->fetched, 1);
	while (pair_first(test, NHCA_RX_WRITE)->hdr.rx.tid == 1)
		pair_deliver(test);
	expect_local(test, a, 0, 1);
	expect_local(test, a, 1, 2);
	KUNIT_EXPECT_EQ(test, pair_first(test, NHCA_RX_WRITE)->hdr.rx.total, 10);
	pair_settle(test);
	/* the notice of the replaced write comes too late to complete the replaced write */
	KUNIT_EXPECT_EQ(test, chan_count(a, NHCA_CH_DROP_STALE), 1);
	chan_expect(test, b, NHCA_WC_CH_REMOTE_WRITE, IB_WC_SUCCESS);
	expect_written(test, a, 1, 2, 10);
	KUNIT_EXPECT_TRUE(test, chan_idle(a) && chan_idle(b));
}

static struct kunit_case rcxt_write_cases[] = {
	KUNIT_CASE(write_bytes),
	KUNIT_CASE(write_notifies),
	KUNIT_CASE(write_any_order),
	KUNIT_CASE(write_lost_packet),
	KUNIT_CASE(write_unsent_packet),
	KUNIT_CASE(write_batches),
	KUNIT_CASE(write_batch_beyond_region),
	KUNIT_CASE(write_waits_for_pages),
	KUNIT_CASE(writes_wait_for_pages),
	KUNIT_CASE(write_notice_stops_packets),
	KUNIT_CASE(write_back_pressure),
	KUNIT_CASE(write_many),
	KUNIT_CASE(cancel_too_late),
	KUNIT_CASE(cancel_while_sent),
	KUNIT_CASE(write_waits_for_rcxt),
	{}
};

static struct kunit_suite rcxt_write_suite = {
	.name = "nhca_rcxt_write",
	.init = pair_init,
	.exit = pair_exit,
	.test_cases = rcxt_write_cases,
};

kunit_test_suite(rcxt_write_suite);
