// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit: half-send writes, whose payload is in the work requests: bytes, completions, the tid
 * rules, and a network that loses, repeats and reorders packets.
 */
#include <linux/prandom.h>

#include "channel_pair.h"

#define BOTH		(NHCA_NOTIFY_INITIATOR | NHCA_NOTIFY_TARGET)
#define PART		NHCA_WR_CH_PART
#define HEADER		sizeof(struct nhca_rcxt_wr)

/* Create channel @c again, with room for @inline_data bytes in its work requests. */
static void remake(struct kunit *test, struct chan *c, u32 inline_data)
{
	const struct nhca_create_channel_cmd cmd = { .job = PAIR_JOB, .frames = 16 };

	chan_destroy(c);
	c->cap.max_inline_data = inline_data;
	KUNIT_ASSERT_EQ(test, chan_create(c, &cmd), 0);
	KUNIT_ASSERT_EQ(test, nhca_channel_acquire(c->ch, c->ids, CHAN_IDS), 0);
}

static int part_init(struct kunit *test)
{
	int err = pair_init(test);
	struct pair *p = test->priv;

	if (!err)
		remake(test, p->end[0].chan, NHCA_FRAME_DATA);
	return err;
}

/* Fill in a work request with packet @i of a write of the first bytes of @a's memory. */
static struct nhca_send_wqe *part(struct chan *a, u32 tid, u32 total, u32 i)
{
	struct nhca_send_wqe *wqe = chan_wqe(a, PART);
	struct nhca_rcxt_wr *wr = wqe->rcxt;

	wr->tid = tid;
	wr->total = total;
	wr->offset = i * PAIR_SEG;
	wr->length = nhca_rcxt_packet_len(total, PAIR_SEG, wr->offset);
	wr->notify = BOTH;
	wr->local_pvo = 0;
	wqe->flags |= NHCA_SEND_INLINE;
	wqe->inline_len = wr->length;
	memcpy(wr + 1, a->end->bytes + wr->offset, wr->length);
	return wqe;
}

/* Post packet @i of a write, and expect @status. Return: vendor_err of the completion. */
static u32 post(struct kunit *test, struct chan *a, u32 tid, u32 total, u32 i, u8 status)
{
	struct nhca_cqe cqe;

	part(a, tid, total, i);
	chan_bell(a);
	cqe = chan_expect(test, a, NHCA_WC_CH_LOCAL, status);
	KUNIT_EXPECT_EQ(test, cqe.wr_id, chan_wr_id(a->posted - 1));
	return cqe.vendor_err;
}

/*
 * A write of any length, whose packets are posted in any order, places its bytes and no other
 * bytes.
 */
static void part_bytes(struct kunit *test)
{
	static const u32 lengths[] = {
		0, 1, PAIR_SEG - 1, PAIR_SEG, PAIR_SEG + 1, 5 * PAIR_SEG + 7, 40 * PAIR_SEG,
	};
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan, *b = p->end[1].chan;
	struct nhca_cqe cqe;
	u32 i, j, len, n, first;

	for (i = 0; i < ARRAY_SIZE(lengths); i++) {
		len = lengths[i];
		n = nhca_rcxt_packets(len, PAIR_SEG);
		pair_fill(a->end->bytes, len, i);
		first = a->posted;
		for (j = 0; j < n; j++)
			KUNIT_EXPECT_EQ(test, post(test, a, i + 1, len, (j * 7 + 3) % n,
						   IB_WC_SUCCESS), 0);
		KUNIT_EXPECT_EQ(test, pair_count(test, NHCA_RX_WRITE), n);
		KUNIT_EXPECT_EQ(test, pair_count(test, 0), n);
		/* the program may change its bytes as soon as the work request is complete */
		memset(a->end->bytes, 0xee, len);
		pair_settle(test);
		cqe = chan_expect(test, a, NHCA_WC_CH_WRITE, IB_WC_SUCCESS);
		KUNIT_EXPECT_EQ(test, cqe.wr_id, chan_wr_id(first));
		KUNIT_EXPECT_EQ(test, cqe.byte_len, len);
		KUNIT_EXPECT_EQ(test, cqe.src_qp, b->who.qpn);
		KUNIT_EXPECT_EQ(test, cqe.chan.tid, i + 1);
		cqe = chan_expect(test, b, NHCA_WC_CH_REMOTE_WRITE, IB_WC_SUCCESS);
		KUNIT_EXPECT_EQ(test, cqe.byte_len, len);
		KUNIT_EXPECT_TRUE(test, chan_idle(a) && chan_idle(b));
		KUNIT_EXPECT_TRUE(test, pair_is(b->end->bytes, len, i));
		KUNIT_EXPECT_TRUE(test, pair_clear(b->end, 0, len));
		KUNIT_EXPECT_EQ(test, a->ch->sq.hdr->cons, a->posted);
	}
}

/*
 * A packet of a half-send write has a copy of its payload, even if other packets of the channel
 * have zero-copy references.
 */
static void part_is_copied(struct kunit *test)
{
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan;
	struct pair_packet *held;
	struct nhca_send_wqe *wqe;
	struct nhca_rcxt_wr *wr;

	p->zcopy = true;
	/* a write on another rCxt, whose packet the network stack holds */
	wqe = chan_wqe(a, NHCA_WR_CH_WRITE);
	wr = wqe->rcxt;
	wr->total = PAIR_SEG;
	wr->length = PAIR_SEG;
	wr->notify = BOTH;
	wqe->chan.local_rcxt = a->ids[1];
	wqe->chan.remote_rcxt = a->peer->ids[1];
	chan_bell(a);
	chan_expect(test, a, NHCA_WC_CH_LOCAL, IB_WC_SUCCESS);
	held = pair_first(test, NHCA_RX_WRITE);
	KUNIT_ASSERT_NOT_NULL(test, held->zcopy);
	list_del_init(&held->list);

	post(test, a, 1, PAIR_SEG, 0, IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(test, pair_first(test, NHCA_RX_WRITE)->copy);
	KUNIT_EXPECT_NULL(test, pair_first(test, NHCA_RX_WRITE)->zcopy);
	pair_settle(test);
	/* so the half-send write completes, although a packet refers to pages of the other write */
	chan_expect(test, a, NHCA_WC_CH_WRITE, IB_WC_SUCCESS);
	list_add(&held->list, &p->wire);
	pair_settle(test);
	chan_expect(test, a, NHCA_WC_CH_WRITE, IB_WC_SUCCESS);
}

/*
 * A lost packet is sent again from a work request or from job memory. A duplicate changes nothing.
 */
static void part_lost(struct kunit *test)
{
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan, *b = p->end[1].chan;
	const u32 len = 3 * PAIR_SEG + 1;
	struct nhca_rcxt_wr *wr;
	u32 i;

	p->zcopy = true;
	pair_fill(a->end->bytes, len, 1);
	for (i = 0; i < 4; i++)
		post(test, a, 1, len, i, IB_WC_SUCCESS);
	pair_drop(pair_first(test, NHCA_RX_WRITE));
	pair_deliver(test);
	pair_drop(pair_first(test, NHCA_RX_WRITE));
	pair_settle(test);
	KUNIT_EXPECT_TRUE(test, chan_idle(a) && chan_idle(b));
	KUNIT_EXPECT_EQ(test, chan_rcxt(b, 0)->missing, 2);
	for (i = 0; i < 3; i++)
		post(test, a, 1, len, 0, IB_WC_SUCCESS);
	pair_settle(test);
	KUNIT_EXPECT_EQ(test, chan_count(b, NHCA_CH_DROP_DUPLICATE), 2);
	wr = chan_wqe(a, NHCA_WR_CH_WRITE)->rcxt;
	wr->total = len;
	wr->offset = 2 * PAIR_SEG;
	wr->length = PAIR_SEG;
	wr->notify = BOTH;
	wr->flags = NHCA_RCXT_WR_RETRANSMIT;
	chan_bell(a);
	chan_expect(test, a, NHCA_WC_CH_LOCAL, IB_WC_SUCCESS);
	/* the write does not complete before this packet is freed, because it refers to pages */
	KUNIT_EXPECT_NOT_NULL(test, pair_first(test, NHCA_RX_WRITE)->zcopy);
	pair_rx(test, pair_first(test, NHCA_RX_WRITE));
	chan_expect(test, b, NHCA_WC_CH_REMOTE_WRITE, IB_WC_SUCCESS);
	pair_rx(test, list_last_entry(&p->wire, struct pair_packet, list));
	KUNIT_EXPECT_TRUE(test, chan_idle(a));
	KUNIT_EXPECT_EQ(test, post(test, a, 1, len, 0, IB_WC_SUCCESS), EALREADY);
	pair_drop(pair_first(test, NHCA_RX_WRITE));
	chan_expect(test, a, NHCA_WC_CH_WRITE, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, post(test, a, 1, len, 0, IB_WC_SUCCESS), EALREADY);
	KUNIT_EXPECT_TRUE(test, pair_is(b->end->bytes, len, 1));
	KUNIT_EXPECT_TRUE(test, pair_clear(b->end, 0, len));
}

/* Work requests that the rCxt refuses send no packet, and the channel stays in RTS. */
static void part_refused(struct kunit *test)
{
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan, *b = p->end[1].chan;
	const u32 len = 2 * PAIR_SEG;
	struct nhca_send_wqe *wqe;

	post(test, a, 5, len, 0, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, post(test, a, 4, len, 0, IB_WC_LOC_QP_OP_ERR), EINVAL);
	KUNIT_EXPECT_EQ(test, post(test, a, 5, len + 1, 0, IB_WC_LOC_QP_OP_ERR), EINVAL);
	wqe = part(a, 6, len, 0);
	wqe->chan.local_rcxt = 700;
	chan_bell(a);
	KUNIT_EXPECT_EQ(test, chan_expect(test, a, NHCA_WC_CH_LOCAL,
					  IB_WC_LOC_QP_OP_ERR).vendor_err, ENOENT);
	a->end->netdev->mtu = 1000;
	KUNIT_EXPECT_EQ(test, post(test, a, 5, len, 1, IB_WC_LOC_LEN_ERR), EMSGSIZE);
	a->end->netdev->mtu = 1500;
	KUNIT_EXPECT_EQ(test, pair_count(test, 0), 1);
	/* neither a fence nor a write of the peer ends the half-send write */
	chan_wqe(b, NHCA_WR_CH_FENCE)->rcxt[0].tid = 9;
	chan_bell(b);
	chan_transfer(b, NHCA_WR_CH_WRITE, 9, 1, 0);
	pair_settle(test);
	KUNIT_EXPECT_EQ(test, chan_count(a, NHCA_CH_DROP_BUSY), 2);
	/* after a cancel the write has ended */
	chan_wqe(a, NHCA_WR_CH_CANCEL)->rcxt[0].tid = 5;
	chan_bell(a);
	chan_expect(test, a, NHCA_WC_CH_LOCAL, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, post(test, a, 5, len, 1, IB_WC_LOC_QP_OP_ERR), EINVAL);
	/* a write with a higher tid replaces the earlier write, which never completes */
	post(test, a, 10, len, 0, IB_WC_SUCCESS);
	post(test, a, 11, len, 0, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, post(test, a, 10, len, 1, IB_WC_LOC_QP_OP_ERR), EINVAL);
	post(test, a, 11, len, 1, IB_WC_SUCCESS);
	pair_settle(test);
	KUNIT_EXPECT_EQ(test, chan_expect(test, a, NHCA_WC_CH_WRITE, IB_WC_SUCCESS).chan.tid, 11);
	KUNIT_EXPECT_EQ(test, nhca_channel_state(a->ch), IB_QPS_RTS);
	KUNIT_EXPECT_EQ(test, nhca_channel_release(a->ch, a->ids, 1), 0);
	KUNIT_EXPECT_EQ(test, post(test, a, 12, len, 0, IB_WC_LOC_QP_OP_ERR), ENOENT);
}

/*
 * A part is refused with EINVAL if a complete transfer of the peer has the same tid and sizes.
 * EALREADY would say that the half-send write is complete.
 */
static void part_same_tid(struct kunit *test)
{
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan, *b = p->end[1].chan;
	const u32 len = 2 * PAIR_SEG;

	chan_transfer(b, NHCA_WR_CH_WRITE, 5, len, BOTH);
	pair_settle(test);
	KUNIT_ASSERT_EQ(test, (u32)chan_rcxt(a, 0)->state, (u32)NHCA_RCXT_DONE);
	KUNIT_EXPECT_EQ(test, post(test, a, 5, len, 0, IB_WC_LOC_QP_OP_ERR), EINVAL);
	chan_transfer(b, NHCA_WR_CH_READ, 6, len, BOTH);
	pair_settle(test);
	KUNIT_ASSERT_EQ(test, (u32)chan_rcxt(a, 0)->state, (u32)NHCA_RCXT_DONE);
	KUNIT_EXPECT_EQ(test, post(test, a, 6, len, 0, IB_WC_LOC_QP_OP_ERR), EINVAL);
	KUNIT_EXPECT_EQ(test, post(test, a, 7, len, 0, IB_WC_SUCCESS), 0);
	KUNIT_EXPECT_EQ(test, post(test, a, 7, len, 1, IB_WC_SUCCESS), 0);
	pair_settle(test);
	chan_expect(test, a, NHCA_WC_CH_WRITE, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, post(test, a, 7, len, 1, IB_WC_SUCCESS), EALREADY);
}

/*
 * A part waits while the rCxt answers a read of the peer. Meanwhile, a write on another rCxt is
 * fetched, but the next part of the same half-send write stays in the send FIFO.
 */
static void part_waits(struct kunit *test)
{
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan, *b = p->end[1].chan;
	struct nhca_send_wqe *wqe;
	struct nhca_cqe cqe;
	u32 first, i, n = 0, parts = 0;

	/* @b reads from @a, whose flow cannot have all packets in the network stack at a time */
	p->charge = true;
	chan_transfer(b, NHCA_WR_CH_READ, 1, PAIR_BYTES & ~3u, 0);
	pair_deliver(test);	/* the request, which has no token */
	pair_deliver(test);	/* the challenge */
	pair_deliver(test);	/* the request again */
	KUNIT_ASSERT_EQ(test, (u32)chan_rcxt(a, 0)->state, (u32)NHCA_RCXT_ANSWERING);
	first = a->posted;
	part(a, 2, 2 * PAIR_SEG, 0);
	chan_bell(a);
	wqe = chan_wqe(a, NHCA_WR_CH_WRITE);
	wqe->chan.local_rcxt = a->ids[1];
	wqe->chan.remote_rcxt = b->ids[1];
	wqe->rcxt[0].total = 10;
	wqe->rcxt[0].length = 10;
	chan_bell(a);
	part(a, 2, 2 * PAIR_SEG, 1);
	chan_bell(a);
	KUNIT_EXPECT_FALSE(test, chan_poll(a, false, &cqe));
	/* the flow of @a may send again when some of its packets were freed */
	for (i = 0; i < 100 && a->ch->fetched < first + 2; i++)
		pair_deliver(test);
	KUNIT_EXPECT_EQ(test, a->ch->num_waiting, 1);
	KUNIT_EXPECT_EQ(test, a->ch->fetched, first + 2);
	KUNIT_ASSERT_EQ(test, (u32)chan_rcxt(a, 0)->state, (u32)NHCA_RCXT_ANSWERING);
	pair_settle(test);
	while (chan_poll(a, false, &cqe)) {
		KUNIT_EXPECT_EQ(test, cqe.status, IB_WC_SUCCESS);
		if (cqe.opcode != NHCA_WC_CH_LOCAL)
			continue;
		n++;
		if (cqe.wr_id == chan_wr_id(first + 1))
			continue;
		KUNIT_EXPECT_EQ(test, cqe.wr_id, chan_wr_id(first + 2 * parts));
		parts++;
	}
	KUNIT_EXPECT_EQ(test, n, 3);
	KUNIT_EXPECT_EQ(test, parts, 2);
	KUNIT_EXPECT_EQ(test, a->ch->num_waiting, 0);
	KUNIT_EXPECT_EQ(test, a->ch->cons, a->posted);
	KUNIT_EXPECT_EQ(test, (u32)chan_rcxt(a, 0)->tid, 2);
}

/*
 * A work request waits for its rCxt, and then ends with an error before its transfer begins: the
 * MTU was lowered, or the program has changed the target of a third-party transfer in the FIFO to a
 * target of another address family.  Then peers can use the rCxt again.
 */
static void part_waits_in_vain(struct kunit *test)
{
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan, *b = p->end[1].chan;
	struct nhca_rcxt_target *target = NULL;
	struct nhca_av *v6 = kunit_kzalloc(test, sizeof(*v6), GFP_KERNEL);
	u32 tid, first, i, move;
	struct nhca_cqe cqe;

	KUNIT_ASSERT_NOT_NULL(test, v6);
	v6->pd = a->end->pd;
	KUNIT_ASSERT_EQ(test, xa_err(xa_store_irq(&a->end->dev->ah_ids, 9, v6, GFP_KERNEL)), 0);
	for (move = 0, tid = 1; move < 2; move++, tid += 3) {
		p->charge = true;
		chan_transfer(b, NHCA_WR_CH_READ, tid, PAIR_BYTES & ~3u, 0);
		for (i = 0; i < 9 && chan_rcxt(a, 0)->state != NHCA_RCXT_ANSWERING; i++)
			pair_deliver(test);
		KUNIT_ASSERT_EQ(test, (u32)chan_rcxt(a, 0)->state, (u32)NHCA_RCXT_ANSWERING);
		first = a->posted;
		if (move) {
			struct nhca_rcxt_wr *wr = chan_wqe(a, NHCA_WR_CH_MOVE)->rcxt;

			wr->tid = tid + 1;
			wr->notify = BOTH;
			target = (struct nhca_rcxt_target *)(wr + 1);
			target->ah_id = PAIR_AH;
		} else {
			part(a, tid + 1, 2 * PAIR_SEG, 0);
		}
		chan_bell(a);
		for (i = 0; i < 100 && a->ch->fetched == first; i++)
			pair_deliver(test);
		KUNIT_ASSERT_EQ(test, a->ch->num_waiting, 1);
		if (move)
			target->ah_id = 9;
		else
			a->end->netdev->mtu = 1000;
		pair_settle(test);
		cqe = chan_expect(test, a, NHCA_WC_CH_LOCAL, move ? IB_WC_LOC_QP_OP_ERR :
								  IB_WC_LOC_LEN_ERR);
		KUNIT_EXPECT_EQ(test, cqe.vendor_err, move ? EAFNOSUPPORT : EMSGSIZE);
		KUNIT_EXPECT_EQ(test, a->ch->num_waiting, 0);
		a->end->netdev->mtu = 1500;
		p->charge = false;
		chan_transfer(b, NHCA_WR_CH_WRITE, tid + 2, PAIR_SEG, BOTH);
		pair_settle(test);
		chan_expect(test, a, NHCA_WC_CH_REMOTE_WRITE, IB_WC_SUCCESS);
		KUNIT_EXPECT_EQ(test, chan_count(a, NHCA_CH_DROP_BUSY), 0);
	}
	xa_erase_irq(&a->end->dev->ah_ids, 9);
}

/* A malformed work request puts the channel into the error state, and no packet is sent. */
static void part_malformed(struct kunit *test)
{
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan;
	const u32 len = 2 * PAIR_SEG;
	struct nhca_send_wqe *wqe;
	struct nhca_rcxt_wr *wr;
	struct nhca_cqe cqe;
	u32 i;

	for (i = 0; i < 18; i++) {
		remake(test, a, i == 16 ? 0 : i == 17 ? PAIR_SEG : NHCA_FRAME_DATA);
		if (i == 16) {
			/* the payload does not fit into the slot */
			wqe = chan_wqe(a, PART);
			wqe->flags |= NHCA_SEND_INLINE;
			wqe->inline_len = a->ch->max_inline - HEADER + 1;
			wr = wqe->rcxt;
			wr->total = wqe->inline_len;
			wr->length = wqe->inline_len;
			wr->segment = 64;
			wr->notify = BOTH;
			wr->local_pvo = 0;
		} else if (i == 17) {
			/* payload whose length is near 2^32 does not fit either */
			wqe = chan_wqe(a, PART);
			wqe->flags |= NHCA_SEND_INLINE;
			wqe->inline_len = -4u;
			wr = wqe->rcxt;
		} else {
			wqe = part(a, 1, len, 0);
			wr = wqe->rcxt;
		}
		switch (i) {
		case 0:
			wqe->flags &= ~NHCA_SEND_INLINE;
			break;
		case 1:
			wqe->num_sge = 1;
			break;
		case 2:
			wqe->inline_len--;
			break;
		case 3:
			wr->length--;
			break;
		case 4:
			wr->length--;
			wqe->inline_len--;
			break;
		case 5:
			wr->offset = 4;
			break;
		case 6:
			wr->offset = len;
			break;
		case 7:
			wr->notify = NHCA_NOTIFY_TARGET;
			break;
		case 8:
			wr->flags = NHCA_RCXT_WR_RETRANSMIT;
			break;
		case 9:
			wr->segment = 0;
			break;
		case 10:
			wr->local_pvo = 1;
			break;
		case 11:
			wr->remote_pvo = NHCA_PVO_OFFSET_MASK - len + 2;
			break;
		case 12:
			wr->tid = 0;
			break;
		case 13:
			wr->total = NHCA_MAX_TRANSFER + 1;
			break;
		case 14:
			wqe->chan.ah_id = PAIR_AH + 1;
			break;
		case 15:
			wr->reserved = 1;
			break;
		}
		chan_bell(a);
		KUNIT_EXPECT_EQ_MSG(test, a->ch->reason, NHCA_CH_ERR_WQE, "case %u", i);
		KUNIT_EXPECT_EQ(test, p->sent, 0);
		while (chan_poll(a, false, &cqe))
			KUNIT_EXPECT_EQ(test, cqe.status, IB_WC_LOC_QP_OP_ERR);
	}
}

/* The longest payload that fits into a slot is sent completely. */
static void part_longest(struct kunit *test)
{
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan, *b = p->end[1].chan;
	struct nhca_send_wqe *wqe;
	struct nhca_rcxt_wr *wr;
	u32 len;

	a->end->netdev->mtu = 4000;
	wqe = chan_wqe(a, PART);
	len = a->ch->max_inline - HEADER;
	KUNIT_ASSERT_EQ(test, len, NHCA_FRAME_DATA - HEADER);
	wr = wqe->rcxt;
	wr->segment = len;
	wr->total = len;
	wr->length = len;
	wr->notify = BOTH;
	wr->local_pvo = 0;
	wqe->flags |= NHCA_SEND_INLINE;
	wqe->inline_len = len;
	pair_fill((u8 *)(wr + 1), len, 3);
	chan_bell(a);
	chan_expect(test, a, NHCA_WC_CH_LOCAL, IB_WC_SUCCESS);
	pair_settle(test);
	chan_expect(test, b, NHCA_WC_CH_REMOTE_WRITE, IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(test, pair_is(b->end->bytes, len, 3));
	KUNIT_EXPECT_TRUE(test, pair_clear(b->end, 0, len));
}

/*
 * Random half-send writes, on a network that loses, repeats and reorders packets: each write
 * completes once at the target, with the right bytes.
 */
static void part_random(struct kunit *test)
{
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan, *b = p->end[1].chan;
	u32 tid, n, len, i, done, told;
	struct rnd_state rnd;
	struct nhca_cqe cqe;

	prandom_seed_state(&rnd, 29);
	for (tid = 1; tid <= 300; tid++) {
		len = prandom_u32_state(&rnd) % (20 * PAIR_SEG);
		n = nhca_rcxt_packets(len, PAIR_SEG);
		pair_fill(a->end->bytes, len, tid);
		memset(b->end->bytes, 0, 20 * PAIR_SEG);
		for (done = 0, told = 0; !done; ) {
			for (i = 0; i < n; i++)
				if (prandom_u32_state(&rnd) % 2) {
					part(a, tid, len, i);
					chan_bell(a);
				}
			while (pair_lossy(test, &rnd))
				;
			while (chan_poll(a, false, &cqe)) {
				KUNIT_ASSERT_EQ(test, cqe.status, IB_WC_SUCCESS);
				done += cqe.opcode == NHCA_WC_CH_WRITE;
			}
			while (chan_poll(b, true, &cqe)) {
				KUNIT_ASSERT_EQ(test, cqe.opcode, NHCA_WC_CH_REMOTE_WRITE);
				told++;
			}
			/*
			 * if the notice was lost, a program would send a probe to complete the
			 * write
			 */
			if (told)
				break;
		}
		KUNIT_ASSERT_LE(test, done, 1);
		KUNIT_ASSERT_EQ(test, told, 1);
		KUNIT_ASSERT_TRUE(test, pair_is(b->end->bytes, len, tid));
		KUNIT_ASSERT_TRUE(test, pair_clear(b->end, 0, len));
	}
}

static struct kunit_case part_cases[] = {
	KUNIT_CASE(part_bytes),
	KUNIT_CASE(part_is_copied),
	KUNIT_CASE(part_lost),
	KUNIT_CASE(part_refused),
	KUNIT_CASE(part_same_tid),
	KUNIT_CASE(part_waits),
	KUNIT_CASE(part_waits_in_vain),
	KUNIT_CASE(part_malformed),
	KUNIT_CASE(part_longest),
	KUNIT_CASE(part_random),
	{}
};

static struct kunit_suite part_suite = {
	.name = "nhca_rcxt_part",
	.init = part_init,
	.exit = pair_exit,
	.test_cases = part_cases,
};

kunit_test_suite(part_suite);
