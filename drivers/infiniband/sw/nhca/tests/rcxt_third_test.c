// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit: third-party transfers between three hosts.  End 2 is the manager, end 0 the source, and
 * end 1 the target.
 */
#include "../rcxt/third.h"
#include "channel_pair.h"

#define MOVE	NHCA_WR_CH_MOVE
#define LONG	(200 * PAIR_SEG)	/* more packets than a flow has in the stack */

/**
 * struct third - the three channels
 * @a: source
 * @b: target
 * @c: manager
 */
struct third {
	struct chan *a;
	struct chan *b;
	struct chan *c;
};

static struct third three(struct kunit *test)
{
	struct pair *p = test->priv;

	return (struct third) { p->end[0].chan, p->end[1].chan, p->end[2].chan };
}

static int target(struct chan *c, u32 op)
{
	const struct nhca_channel_target cmd = { .op = op, .ah_id = PAIR_AH };

	return nhca_channel_target(c->ch, &cmd);
}

static int third_init(struct kunit *test)
{
	int err = pair_init(test);

	if (!err)
		pair_add(test);
	return err;
}

/* Post a transfer, and let the source verify the address of the manager if it has to. */
static void move(struct kunit *test, u32 tid, u32 total, u8 notify)
{
	struct third t = three(test);

	chan_transfer(t.c, MOVE, tid, total, NHCA_NOTIFY_INITIATOR | notify);
	chan_expect(test, t.c, NHCA_WC_CH_LOCAL, IB_WC_SUCCESS);
	if (pair_first(test, NHCA_RX_THIRD_REQUEST)->hdr.rx.token)
		return;
	pair_deliver(test);
	KUNIT_EXPECT_EQ(test, pair_count(test, 0), 1);
	KUNIT_EXPECT_EQ(test, pair_first(test, NHCA_RX_THIRD_CHALLENGE)->daddr, t.c->end->addr);
	pair_deliver(test);
	KUNIT_EXPECT_TRUE(test, pair_first(test, NHCA_RX_THIRD_REQUEST)->hdr.rx.again);
}

/* Allow the target, and learn the token of the source. */
static void prepare(struct kunit *test)
{
	struct third t = three(test);

	KUNIT_ASSERT_EQ(test, target(t.a, NHCA_CHANNEL_TARGET_ALLOW), 0);
	move(test, 1, 0, 0);
	pair_settle(test);
	chan_expect(test, t.c, NHCA_WC_CH_MOVE, IB_WC_SUCCESS);
	KUNIT_ASSERT_TRUE(test, chan_idle(t.a) && chan_idle(t.b) && chan_idle(t.c));
}

/* Expect a frame with @status and @tid in the receive FIFO of the manager, and release it. */
static void expect_status(struct kunit *test, u8 status, u32 tid)
{
	struct chan *c = three(test).c;
	struct nhca_cqe cqe = chan_expect(test, c, NHCA_WC_CH_FRAME, IB_WC_SUCCESS);
	const struct nhca_frame *frame = nhca_ring_slot(&c->ch->fifo.ring, cqe.chan.frame);

	KUNIT_EXPECT_EQ(test, frame->kind, NHCA_FRAME_STATUS);
	KUNIT_EXPECT_EQ(test, frame->status, status);
	KUNIT_EXPECT_EQ(test, frame->tid, tid);
	KUNIT_EXPECT_EQ(test, frame->rcxt, c->ids[0]);
	nhca_ring_release(&c->ch->fifo.ring, cqe.chan.frame + 1);
}

/* Probe or fence a peer of the manager. Return: status of the answer; U8_MAX if no answer comes. */
static u8 ask(struct kunit *test, u8 opcode, struct chan *of, u32 ah_id, u32 tid, u32 total)
{
	struct chan *c = three(test).c;
	struct nhca_send_wqe *wqe = chan_wqe(c, opcode);
	const struct nhca_frame *frame;
	struct nhca_cqe cqe;

	wqe->chan.ah_id = ah_id;
	wqe->chan.remote_qpn = of->who.qpn;
	wqe->chan.remote_key = of->resp.key;
	wqe->chan.remote_rcxt = of->ids[0];
	wqe->rcxt[0].tid = tid;
	if (opcode == NHCA_WR_CH_PROBE)
		wqe->rcxt[0].total = total;
	wqe->flags = 0;
	chan_bell(c);
	pair_settle(test);
	if (!chan_poll(c, true, &cqe))
		return U8_MAX;
	frame = nhca_ring_slot(&c->ch->fifo.ring, cqe.chan.frame);
	nhca_ring_release(&c->ch->fifo.ring, cqe.chan.frame + 1);
	return frame->status;
}

/*
 * The payload goes from the source to the target, and only the notice to the manager.  The programs
 * of source and target do nothing.
 */
static void third_bytes(struct kunit *test)
{
	static const u32 lengths[] = {
		7, 0, PAIR_SEG, 3 * PAIR_SEG + 1, 65 * PAIR_SEG, 99 * PAIR_SEG + 3,
	};
	struct third t = three(test);
	struct pair_packet *pk;
	struct nhca_cqe cqe;
	u32 i, len, most = 0;

	KUNIT_ASSERT_EQ(test, target(t.a, NHCA_CHANNEL_TARGET_ALLOW), 0);
	for (i = 0; i < ARRAY_SIZE(lengths); i++) {
		len = lengths[i];
		pair_fill(t.a->end->bytes, len, i);
		move(test, i + 1, len, i % 2 ? NHCA_NOTIFY_TARGET : 0);
		pair_deliver(test);
		KUNIT_EXPECT_EQ(test, pair_count(test, NHCA_RX_THIRD_WRITE),
				nhca_rcxt_packets(len, PAIR_SEG));
		list_for_each_entry(pk, &((struct pair *)test->priv)->wire, list) {
			KUNIT_EXPECT_EQ(test, pk->saddr, t.a->end->addr);
			KUNIT_EXPECT_EQ(test, pk->daddr, t.b->end->addr);
			KUNIT_EXPECT_TRUE(test, pk->copy);
		}
		while (pair_first(test, NHCA_RX_THIRD_WRITE), pair_count(test, 0) > 1)
			pair_deliver(test);
		pair_deliver(test);
		KUNIT_EXPECT_EQ(test, pair_count(test, 0), 1);
		pk = pair_first(test, NHCA_RX_NOTICE);
		KUNIT_EXPECT_EQ(test, pk->saddr, t.b->end->addr);
		KUNIT_EXPECT_EQ(test, pk->daddr, t.c->end->addr);
		KUNIT_EXPECT_TRUE(test, chan_idle(t.c));
		pair_settle(test);
		cqe = chan_expect(test, t.c, NHCA_WC_CH_MOVE, IB_WC_SUCCESS);
		KUNIT_EXPECT_EQ(test, cqe.wr_id, chan_wr_id(i));
		KUNIT_EXPECT_EQ(test, cqe.byte_len, len);
		KUNIT_EXPECT_EQ(test, cqe.chan.tid, i + 1);
		KUNIT_EXPECT_EQ(test, cqe.src_qp, t.b->who.qpn);
		if (i % 2) {
			cqe = chan_expect(test, t.b, NHCA_WC_CH_REMOTE_WRITE, IB_WC_SUCCESS);
			KUNIT_EXPECT_EQ(test, cqe.wr_id, chan_cookie(i));
			KUNIT_EXPECT_EQ(test, cqe.src_qp, t.c->who.qpn);
		}
		KUNIT_EXPECT_TRUE(test, chan_idle(t.a) && chan_idle(t.b) && chan_idle(t.c));
		KUNIT_EXPECT_TRUE(test, pair_is(t.b->end->bytes, len, i));
		most = max(most, len);
		KUNIT_EXPECT_TRUE(test, pair_clear(t.b->end, 0, most));
		KUNIT_EXPECT_TRUE(test, pair_clear(t.c->end, 0, 0));
	}
	KUNIT_EXPECT_EQ(test, chan_count(t.a, NHCA_CH_CHALLENGED), 1);
	KUNIT_EXPECT_EQ(test, chan_count(t.c, NHCA_CH_RECEIVED_BYTES), 0);
}

/*
 * A source sends only to targets that its program has allowed. A status reports the refusal to the
 * manager.
 */
static void third_forbidden(struct kunit *test)
{
	struct third t = three(test);

	move(test, 1, LONG, 0);
	pair_deliver(test);
	KUNIT_EXPECT_EQ(test, pair_count(test, 0), 1);
	pair_settle(test);
	expect_status(test, NHCA_TRANSFER_FORBIDDEN, 1);
	KUNIT_EXPECT_EQ(test, chan_count(t.a, NHCA_CH_DROP_TARGET), 1);
	/* the refusal has not changed the rCxt, so the request may be repeated */
	KUNIT_EXPECT_EQ(test, (u32)chan_rcxt(t.a, 0)->tid, 0);
	KUNIT_EXPECT_EQ(test, target(t.a, NHCA_CHANNEL_TARGET_REVOKE), -ENOENT);
	KUNIT_EXPECT_EQ(test, target(t.a, NHCA_CHANNEL_TARGET_ALLOW), 0);
	KUNIT_EXPECT_EQ(test, target(t.a, NHCA_CHANNEL_TARGET_ALLOW), 0);
	KUNIT_EXPECT_EQ(test, t.a->ch->targets, 1);
	KUNIT_EXPECT_EQ(test, target(t.a, 0), -EINVAL);
	KUNIT_EXPECT_EQ(test, target(t.a, NHCA_CHANNEL_TARGET_REVOKE), 0);
	move(test, 2, 10, 0);
	pair_settle(test);
	expect_status(test, NHCA_TRANSFER_FORBIDDEN, 2);
	KUNIT_EXPECT_TRUE(test, chan_idle(t.a) && chan_idle(t.b) && chan_idle(t.c));
	KUNIT_EXPECT_TRUE(test, pair_clear(t.b->end, 0, 0));
}

/* A channel allows at most NHCA_MAX_TARGETS targets, with valid unicast address handles. */
static void third_many_targets(struct kunit *test)
{
	struct third t = three(test);
	struct nhca_av *av[NHCA_MAX_TARGETS + 1];
	struct nhca_channel_target cmd = { .op = NHCA_CHANNEL_TARGET_ALLOW };
	u32 i;

	for (i = 0; i <= NHCA_MAX_TARGETS; i++) {
		av[i] = kunit_kzalloc(test, sizeof(*av[i]), GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(test, av[i]);
		/* the test keeps a reference */
		refcount_set(&av[i]->ref, 1);
		av[i]->pd = t.a->end->pd;
		ipv6_addr_set_v4mapped(htonl(0x0b000001 + i), &av[i]->daddr);
		KUNIT_ASSERT_EQ(test, xa_err(xa_store_irq(&t.a->end->dev->ah_ids, 100 + i, av[i],
							  GFP_KERNEL)), 0);
		cmd.ah_id = 100 + i;
		KUNIT_EXPECT_EQ(test, nhca_channel_target(t.a->ch, &cmd),
				i < NHCA_MAX_TARGETS ? 0 : -ENOSPC);
	}
	cmd.op = NHCA_CHANNEL_TARGET_REVOKE;
	for (i = 0; i <= NHCA_MAX_TARGETS; i++) {
		cmd.ah_id = 100 + i;
		KUNIT_EXPECT_EQ(test, nhca_channel_target(t.a->ch, &cmd),
				i < NHCA_MAX_TARGETS ? 0 : -ENOENT);
		KUNIT_EXPECT_EQ(test, refcount_read(&av[i]->ref), 1);
		xa_erase_irq(&t.a->end->dev->ah_ids, 100 + i);
	}
	/* invalid: a multicast address, another protection domain, and an unknown address handle */
	cmd.op = NHCA_CHANNEL_TARGET_ALLOW;
	cmd.ah_id = PAIR_AH;
	((struct nhca_av *)xa_load(&t.a->end->dev->ah_ids, PAIR_AH))->mcast = true;
	KUNIT_EXPECT_EQ(test, nhca_channel_target(t.a->ch, &cmd), -EINVAL);
	((struct nhca_av *)xa_load(&t.a->end->dev->ah_ids, PAIR_AH))->mcast = false;
	((struct nhca_av *)xa_load(&t.a->end->dev->ah_ids, PAIR_AH))->pd = NULL;
	KUNIT_EXPECT_EQ(test, nhca_channel_target(t.a->ch, &cmd), -EINVAL);
	cmd.ah_id = 99;
	KUNIT_EXPECT_EQ(test, nhca_channel_target(t.a->ch, &cmd), -EINVAL);
}

/*
 * Begin a long transfer. The source has sent only the packets that its flow may have in the stack.
 */
static void begin_long(struct kunit *test, u32 tid)
{
	struct third t = three(test);
	struct pair *p = test->priv;

	p->charge = true;
	move(test, tid, LONG, 0);
	pair_deliver(test);
	KUNIT_ASSERT_EQ(test, (u32)chan_rcxt(t.a, 0)->state, (u32)NHCA_RCXT_FORWARDING);
	KUNIT_ASSERT_GT(test, pair_count(test, NHCA_RX_THIRD_WRITE), 0);
	KUNIT_ASSERT_LT(test, pair_count(test, NHCA_RX_THIRD_WRITE), 200);
}

/*
 * If the source's program revokes a target, a transfer in progress ends. A status reports the end
 * to the manager.
 */
static void third_revoked(struct kunit *test)
{
	struct third t = three(test);
	struct pair *p = test->priv;
	u32 sent;

	prepare(test);
	begin_long(test, 2);
	sent = p->sent;
	KUNIT_EXPECT_EQ(test, target(t.a, NHCA_CHANNEL_TARGET_REVOKE), 0);
	pair_settle(test);
	/* the source sends only the status */
	KUNIT_EXPECT_EQ(test, p->sent, sent + 1);
	expect_status(test, NHCA_TRANSFER_FORBIDDEN, 2);
	KUNIT_EXPECT_EQ(test, (u32)chan_rcxt(t.a, 0)->state, (u32)NHCA_RCXT_IDLE);
	KUNIT_EXPECT_EQ(test, chan_count(t.a, NHCA_CH_DROP_TARGET), 1);
	KUNIT_EXPECT_TRUE(test, chan_idle(t.c) && chan_idle(t.b) && chan_idle(t.a));
	KUNIT_EXPECT_EQ(test, ask(test, NHCA_WR_CH_PROBE, t.b, PAIR_AH_TARGET, 2, LONG),
			NHCA_TRANSFER_PARTIAL);
}

/* In the middle of a transfer, a fence stops the source, and another fence stops the target. */
static void third_fenced(struct kunit *test)
{
	struct third t = three(test);
	struct nhca_rcxt_wr *wr;

	prepare(test);
	begin_long(test, 2);
	KUNIT_EXPECT_EQ(test, ask(test, NHCA_WR_CH_FENCE, t.a, PAIR_AH, 2, 0),
			NHCA_TRANSFER_FENCED);
	KUNIT_EXPECT_EQ(test, (u32)chan_rcxt(t.a, 0)->state, (u32)NHCA_RCXT_IDLE);
	KUNIT_EXPECT_EQ(test, ask(test, NHCA_WR_CH_PROBE, t.b, PAIR_AH_TARGET, 2, LONG),
			NHCA_TRANSFER_PARTIAL);
	KUNIT_EXPECT_EQ(test, ask(test, NHCA_WR_CH_FENCE, t.b, PAIR_AH_TARGET, 2, 0),
			NHCA_TRANSFER_FENCED);
	KUNIT_EXPECT_EQ(test, chan_count(t.a, NHCA_CH_FENCED), 1);
	KUNIT_EXPECT_EQ(test, chan_count(t.b, NHCA_CH_FENCED), 1);
	/* after the fence, the source drops a repetition of the request */
	wr = chan_wqe(t.c, MOVE)->rcxt;
	wr->tid = 2;
	wr->total = LONG;
	wr->length = LONG;
	wr->notify = NHCA_NOTIFY_INITIATOR;
	wr->flags = NHCA_RCXT_WR_RETRANSMIT;
	chan_bell(t.c);
	pair_settle(test);
	chan_expect(test, t.c, NHCA_WC_CH_LOCAL, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, chan_count(t.a, NHCA_CH_DROP_STALE), 1);
	KUNIT_EXPECT_TRUE(test, chan_idle(t.c) && chan_idle(t.b) && chan_idle(t.a));
}

/*
 * Deliver packets until the flow of the source may send again, and a work request waits for the
 * rCxt of the transfer.
 */
static void until_waiting(struct kunit *test)
{
	struct third t = three(test);
	u32 i;

	for (i = 0; i < 100 && !t.a->ch->num_waiting; i++)
		pair_deliver(test);
	KUNIT_ASSERT_GT(test, t.a->ch->num_waiting, 0);
	KUNIT_ASSERT_EQ(test, (u32)chan_rcxt(t.a, 0)->state, (u32)NHCA_RCXT_FORWARDING);
}

/*
 * A manager can request a transfer again and again, so that the source's rCxt always has something
 * to send.  So while a work request of the source's program waits, the source drops such requests.
 */
static void third_endless(struct kunit *test)
{
	struct third t = three(test);
	struct pair *p = test->priv;
	struct pair_packet *pk;
	struct nhca_rcxt_wr *wr;

	prepare(test);
	begin_long(test, 2);
	chan_transfer(t.a, NHCA_WR_CH_WRITE, 9, 10, 0);
	until_waiting(test);
	KUNIT_EXPECT_TRUE(test, chan_idle(t.a));
	wr = chan_wqe(t.c, MOVE)->rcxt;
	wr->tid = 2;
	wr->total = LONG;
	wr->length = LONG;
	wr->notify = NHCA_NOTIFY_INITIATOR;
	wr->flags = NHCA_RCXT_WR_RETRANSMIT;
	chan_bell(t.c);
	chan_expect(test, t.c, NHCA_WC_CH_LOCAL, IB_WC_SUCCESS);
	pk = list_last_entry(&p->wire, struct pair_packet, list);
	KUNIT_ASSERT_EQ(test, pk->hdr.opcode, NHCA_RX_THIRD_REQUEST);
	pair_rx(test, pk);
	pair_drop(pk);
	KUNIT_EXPECT_EQ(test, chan_count(t.a, NHCA_CH_DROP_BUSY), 1);
	KUNIT_EXPECT_EQ(test, chan_rcxt(t.a, 0)->parts, 1);
	pair_settle(test);
	/* the first request was executed, and then the write */
	chan_expect(test, t.c, NHCA_WC_CH_MOVE, IB_WC_SUCCESS);
	chan_expect(test, t.a, NHCA_WC_CH_LOCAL, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, (u32)chan_rcxt(t.a, 0)->tid, 9);
	KUNIT_EXPECT_TRUE(test, chan_idle(t.a) && chan_idle(t.b) && chan_idle(t.c));
}

/* Post a write of 10 bytes on rCxt @i, without a notice. */
static void write_on(struct chan *c, u32 i, u32 tid)
{
	struct nhca_send_wqe *wqe = chan_wqe(c, NHCA_WR_CH_WRITE);

	wqe->chan.local_rcxt = c->ids[i];
	wqe->chan.remote_rcxt = c->peer->ids[i];
	wqe->rcxt[0].tid = tid;
	wqe->rcxt[0].total = 10;
	wqe->rcxt[0].length = 10;
	chan_bell(c);
}

/*
 * While a work request waits for an rCxt, work requests for other rCxts overtake it. Work requests
 * for the same rCxt keep their order.
 */
static void third_passed(struct kunit *test)
{
	struct third t = three(test);
	u32 i, first, at[4] = {};
	struct nhca_cqe cqe;

	prepare(test);
	begin_long(test, 2);
	first = t.a->posted;
	write_on(t.a, 0, 9);
	write_on(t.a, 1, 9);
	write_on(t.a, 1, 10);
	write_on(t.a, 0, 10);
	until_waiting(test);
	pair_settle(test);
	chan_expect(test, t.c, NHCA_WC_CH_MOVE, IB_WC_SUCCESS);
	for (i = 1; i <= 4; i++) {
		cqe = chan_expect(test, t.a, NHCA_WC_CH_LOCAL, IB_WC_SUCCESS);
		at[(cqe.wr_id - chan_wr_id(first)) % 4] = i;
	}
	KUNIT_EXPECT_LT(test, at[1], at[0]);
	KUNIT_EXPECT_LT(test, at[0], at[3]);
	KUNIT_EXPECT_LT(test, at[1], at[2]);
	KUNIT_EXPECT_EQ(test, t.a->ch->num_waiting, 0);
	KUNIT_EXPECT_EQ(test, t.a->ch->cons, t.a->posted);
	KUNIT_EXPECT_EQ(test, (u32)chan_rcxt(t.a, 0)->tid, 10);
	KUNIT_EXPECT_TRUE(test, chan_idle(t.a) && chan_idle(t.c));
}

/*
 * Of many work requests for one rCxt, the first waits, and the others stay in the send FIFO. In the
 * error state, all are flushed.
 */
static void third_many_wait(struct kunit *test)
{
	struct third t = three(test);
	struct nhca_cqe cqe;
	u32 i, first;

	prepare(test);
	begin_long(test, 2);
	first = t.a->posted;
	/* the second work request for the rCxt is not executed before the first work request */
	for (i = 0; i < NHCA_CH_WAITING + 2; i++)
		write_on(t.a, 0, 9 + i);
	until_waiting(test);
	KUNIT_EXPECT_EQ(test, t.a->ch->num_waiting, 1);
	KUNIT_EXPECT_TRUE(test, chan_idle(t.a));
	KUNIT_EXPECT_EQ(test, t.a->ch->cons, first);
	nhca_channel_set_error(t.a->ch, NHCA_CH_ERR_MODIFIED);
	pair_settle(test);
	for (i = 0; i < NHCA_CH_WAITING + 2; i++) {
		KUNIT_ASSERT_TRUE(test, chan_poll(t.a, false, &cqe));
		KUNIT_EXPECT_EQ(test, cqe.status, IB_WC_WR_FLUSH_ERR);
		KUNIT_EXPECT_EQ(test, cqe.wr_id, chan_wr_id(first + i));
	}
	KUNIT_EXPECT_EQ(test, t.a->ch->num_waiting, 0);
	KUNIT_EXPECT_EQ(test, t.a->ch->cons, t.a->posted);
	KUNIT_EXPECT_TRUE(test, chan_idle(t.a));
}

/*
 * If a program changes the rCxt of a work request that waits, the channel enters the error state.
 */
static void third_changed(struct kunit *test)
{
	struct third t = three(test);
	struct nhca_send_wqe *wqe;
	u32 first;

	prepare(test);
	begin_long(test, 2);
	first = t.a->posted;
	write_on(t.a, 0, 9);
	until_waiting(test);
	wqe = nhca_ring_slot(&t.a->ch->sq, first);
	wqe->chan.local_rcxt = t.a->ids[1];
	pair_settle(test);
	KUNIT_EXPECT_EQ(test, nhca_channel_state(t.a->ch), IB_QPS_ERR);
	KUNIT_EXPECT_EQ(test, t.a->ch->num_waiting, 0);
}

/* Packets are lost: the manager probes the target, and requests the missing parts again. */
static void third_repeated(struct kunit *test)
{
	struct third t = three(test);
	struct pair *p = test->priv;
	struct pair_packet *pk, *next, *first;
	struct nhca_rcxt_wr *wr;
	u32 n = 0;

	prepare(test);
	pair_fill(t.a->end->bytes, 10 * PAIR_SEG - 3, 3);
	move(test, 2, 10 * PAIR_SEG - 3, 0);
	first = pair_first(test, NHCA_RX_THIRD_REQUEST);
	list_del_init(&first->list);
	pair_rx(test, first);
	list_for_each_entry_safe(pk, next, &p->wire, list) {
		n++;
		if (n == 3 || n == 10)
			pair_drop(pk);
	}
	KUNIT_EXPECT_EQ(test, n, 10);
	pair_settle(test);
	KUNIT_EXPECT_EQ(test, ask(test, NHCA_WR_CH_PROBE, t.b, PAIR_AH_TARGET, 2,
				  10 * PAIR_SEG - 3), NHCA_TRANSFER_PARTIAL);
	for (n = 2; n < 10; n += 7) {
		wr = chan_wqe(t.c, MOVE)->rcxt;
		wr->tid = 2;
		wr->total = 10 * PAIR_SEG - 3;
		wr->offset = n * PAIR_SEG;
		wr->length = min(PAIR_SEG, wr->total - wr->offset);
		wr->notify = NHCA_NOTIFY_INITIATOR;
		wr->flags = NHCA_RCXT_WR_RETRANSMIT;
		chan_bell(t.c);
		chan_expect(test, t.c, NHCA_WC_CH_LOCAL, IB_WC_SUCCESS);
		KUNIT_EXPECT_EQ(test, pair_first(test, NHCA_RX_THIRD_REQUEST)->hdr.rx.number,
				n == 2 ? 1 : 2);
		/* each request is executed once, also if the network repeats it */
		pair_rx(test, pair_first(test, NHCA_RX_THIRD_REQUEST));
		pair_rx(test, pair_first(test, NHCA_RX_THIRD_REQUEST));
		pair_rx(test, first);
		pair_drop(pair_first(test, NHCA_RX_THIRD_REQUEST));
		KUNIT_EXPECT_EQ(test, pair_count(test, NHCA_RX_THIRD_WRITE), 1);
		KUNIT_EXPECT_EQ(test, pair_count(test, 0), 1);
		pair_settle(test);
	}
	KUNIT_EXPECT_EQ(test, chan_count(t.a, NHCA_CH_DROP_DUPLICATE), 4);
	chan_expect(test, t.c, NHCA_WC_CH_MOVE, IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(test, pair_is(t.b->end->bytes, 10 * PAIR_SEG - 3, 3));
	KUNIT_EXPECT_TRUE(test, pair_clear(t.b->end, 0, 10 * PAIR_SEG - 3));
	/* the transfer is complete, so no repetition is sent */
	wr = chan_wqe(t.c, MOVE)->rcxt;
	wr->tid = 2;
	wr->total = 10 * PAIR_SEG - 3;
	wr->length = wr->total;
	wr->notify = NHCA_NOTIFY_INITIATOR;
	wr->flags = NHCA_RCXT_WR_RETRANSMIT;
	chan_bell(t.c);
	KUNIT_EXPECT_EQ(test, chan_expect(test, t.c, NHCA_WC_CH_LOCAL, IB_WC_SUCCESS).vendor_err,
			EALREADY);
	list_add(&first->list, &p->wire);
	pair_drop(first);
}

/*
 * If memory of the source is deregistered during a transfer, the transfer ends with an error
 * status.
 */
static void third_deregistered(struct kunit *test)
{
	struct third t = three(test);
	struct nhca_job_mem *mem = t.a->end->mem;
	struct pair *p = test->priv;
	u32 sent;

	prepare(test);
	begin_long(test, 2);
	pair_settle(test);
	chan_expect(test, t.c, NHCA_WC_CH_MOVE, IB_WC_SUCCESS);

	begin_long(test, 3);
	sent = p->sent;
	t.a->end->mem = NULL;
	nhca_job_mem_put(mem);
	pair_settle(test);
	/* the source sends only the status */
	KUNIT_EXPECT_EQ(test, p->sent, sent + 1);
	expect_status(test, NHCA_TRANSFER_PROT_ERR, 3);
	KUNIT_EXPECT_EQ(test, t.a->access, 1);
	KUNIT_EXPECT_EQ(test, chan_count(t.a, NHCA_CH_DROP_PVO_KEY), 1);
	KUNIT_EXPECT_EQ(test, nhca_channel_state(t.a->ch), IB_QPS_RTS);
	KUNIT_EXPECT_TRUE(test, chan_idle(t.a) && chan_idle(t.b) && chan_idle(t.c));
	/* the status may be lost, so a probe of the source gets the same status again */
	t.a->end->mem = t.b->end->mem;
	KUNIT_EXPECT_EQ(test, ask(test, NHCA_WR_CH_PROBE, t.a, PAIR_AH, 3, LONG),
			NHCA_TRANSFER_PROT_ERR);
	t.a->end->mem = NULL;
}

/*
 * If memory of the target is deregistered, the target places nothing more, and a probe reports the
 * error.
 */
static void third_target_deregistered(struct kunit *test)
{
	struct third t = three(test);
	struct nhca_job_mem *mem = t.b->end->mem;

	prepare(test);
	move(test, 2, 10 * PAIR_SEG, NHCA_NOTIFY_TARGET);
	pair_deliver(test);
	pair_deliver(test);
	KUNIT_EXPECT_EQ(test, pair_count(test, NHCA_RX_THIRD_WRITE), 9);
	t.b->end->mem = NULL;
	nhca_job_mem_put(mem);
	memset(t.b->end->bytes, 0, PAIR_SEG);
	pair_settle(test);
	KUNIT_EXPECT_EQ(test, chan_count(t.b, NHCA_CH_DROP_PVO_KEY), 1);
	KUNIT_EXPECT_EQ(test, chan_count(t.b, NHCA_CH_DROP_ABORTED), 8);
	KUNIT_EXPECT_TRUE(test, pair_clear(t.b->end, 0, 0));
	KUNIT_EXPECT_TRUE(test, chan_idle(t.a) && chan_idle(t.b) && chan_idle(t.c));
	t.b->end->mem = t.a->end->mem;
	KUNIT_EXPECT_EQ(test, ask(test, NHCA_WR_CH_PROBE, t.b, PAIR_AH_TARGET, 2, 10 * PAIR_SEG),
			NHCA_TRANSFER_PROT_ERR);
	t.b->end->mem = NULL;
}

/* ---- hostile packets ---- */

/* Copy a packet that is on the wire, so that the test can replay it. */
static struct pair_packet *record(struct kunit *test, const struct pair_packet *pk)
{
	size_t size = struct_size(pk, bytes, pk->count * pk->payload);
	struct pair_packet *copy = kunit_kzalloc(test, size, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, copy);
	memcpy(copy, pk, size);
	return copy;
}

/*
 * Requests, payload and notices of a transfer that has completed are dropped when they come again.
 */
static void third_replayed(struct kunit *test)
{
	struct pair_packet *req, *data, *notice;
	struct third t = three(test);
	u32 i;

	prepare(test);
	pair_fill(t.a->end->bytes, PAIR_SEG, 1);
	move(test, 2, PAIR_SEG, NHCA_NOTIFY_TARGET);
	req = record(test, pair_first(test, NHCA_RX_THIRD_REQUEST));
	pair_deliver(test);
	data = record(test, pair_first(test, NHCA_RX_THIRD_WRITE));
	pair_deliver(test);
	notice = record(test, pair_first(test, NHCA_RX_NOTICE));
	pair_deliver(test);
	chan_expect(test, t.c, NHCA_WC_CH_MOVE, IB_WC_SUCCESS);
	chan_expect(test, t.b, NHCA_WC_CH_REMOTE_WRITE, IB_WC_SUCCESS);
	memset(t.b->end->bytes, 0, PAIR_SEG);
	for (i = 0; i < 3; i++) {
		pair_rx(test, req);
		pair_rx(test, data);
		pair_rx(test, notice);
		KUNIT_EXPECT_EQ(test, pair_count(test, 0), 0);
		KUNIT_EXPECT_TRUE(test, chan_idle(t.a) && chan_idle(t.b) && chan_idle(t.c));
		KUNIT_EXPECT_TRUE(test, pair_clear(t.b->end, 0, 0));
		if (i)
			continue;
		/* twice again after a recovery, which puts all channels into the error state */
		nhca_rcxt_recover(t.a->end->dev, NHCA_CH_ERR_RECOVERED);
		nhca_rcxt_recover(t.b->end->dev, NHCA_CH_ERR_RECOVERED);
		nhca_rcxt_recover(t.c->end->dev, NHCA_CH_ERR_RECOVERED);
	}
	KUNIT_EXPECT_EQ(test, chan_count(t.a, NHCA_CH_DROP_DUPLICATE), 1);
	KUNIT_EXPECT_EQ(test, chan_count(t.b, NHCA_CH_DROP_DUPLICATE), 1);
	KUNIT_EXPECT_EQ(test, chan_count(t.c, NHCA_CH_DROP_DUPLICATE), 1);
	KUNIT_EXPECT_EQ(test, chan_count(t.a, NHCA_CH_DROP_ERROR), 2);
}

/* If one field of a request is wrong, the source sends no payload. */
static void third_forged_request(struct kunit *test)
{
	struct pair_packet *pk, *good;
	struct third t = three(test);
	u32 i;

	prepare(test);
	move(test, 2, PAIR_SEG, 0);
	good = record(test, pair_first(test, NHCA_RX_THIRD_REQUEST));
	pair_drop(pair_first(test, NHCA_RX_THIRD_REQUEST));
	for (i = 0; i < 8; i++) {
		pk = record(test, good);
		switch (i) {
		case 0:
			pk->hdr.rx.key ^= 1;
			break;
		case 1:
			pk->hdr.rx.job ^= 1;
			break;
		case 2:
			pk->hdr.rx.rcxt.key ^= 1;
			break;
		case 3:
			pk->hdr.rx.tid = 1;
			break;
		case 4:
			pk->hdr.rx.part--;
			break;
		case 5:
			pk->hdr.rx.notify = NHCA_RX_NOTIFY_TARGET;
			break;
		case 6:
			pk->hdr.rx.pvo ^= BIT_ULL(60);
			break;
		default:
			/* the address of the manager is not verified */
			pk->saddr = PAIR_ADDR + 100;
			pk->hdr.rx.again = true;
		}
		pair_rx(test, pk);
		KUNIT_EXPECT_EQ_MSG(test, pair_count(test, NHCA_RX_THIRD_WRITE), 0, "field %u", i);
		/*
		 * the source detects a wrong PVO after the transfer has begun, and then sends a
		 * status
		 */
		KUNIT_EXPECT_EQ(test, pair_count(test, 0), i == 6);
		pair_settle(test);
		if (i == 6) {
			expect_status(test, NHCA_TRANSFER_PROT_ERR, 2);
			good->hdr.rx.tid++;
		}
		KUNIT_EXPECT_TRUE(test, chan_idle(t.a) && chan_idle(t.b) && chan_idle(t.c));
	}
	KUNIT_EXPECT_EQ(test, chan_count(t.a, NHCA_CH_CHALLENGED), 2);
	KUNIT_EXPECT_TRUE(test, pair_clear(t.b->end, 0, 0));
}

/* A request from an address that its token does not validate gets a challenge, and no payload. */
static void third_unverified(struct kunit *test)
{
	struct third t = three(test);
	struct pair_packet *pk;

	prepare(test);
	move(test, 2, LONG, 0);
	pk = pair_first(test, NHCA_RX_THIRD_REQUEST);
	pk->saddr = PAIR_ADDR + 100;
	pair_deliver(test);
	KUNIT_EXPECT_EQ(test, pair_count(test, 0), 1);
	pk = pair_first(test, NHCA_RX_THIRD_CHALLENGE);
	KUNIT_EXPECT_EQ(test, pk->daddr, PAIR_ADDR + 100);
	KUNIT_EXPECT_EQ(test, (u32)chan_rcxt(t.a, 0)->tid, 1);
	/* the manager answers only the challenge of its own request */
	pk->daddr = t.c->end->addr;
	pk->saddr = t.a->end->addr;
	pk->hdr.rx.target_key ^= 1;
	pair_rx(test, pk);
	KUNIT_EXPECT_EQ(test, chan_count(t.c, NHCA_CH_DROP_MISMATCH), 1);
	pk->hdr.rx.target_key ^= 1;
	pk->hdr.rx.gid[15] ^= 1;
	pair_rx(test, pk);
	KUNIT_EXPECT_EQ(test, chan_count(t.c, NHCA_CH_DROP_MISMATCH), 2);
	pk->hdr.rx.gid[15] ^= 1;
	pk->hdr.rx.src_rcxt.key ^= 1;
	pair_rx(test, pk);
	KUNIT_EXPECT_EQ(test, chan_count(t.c, NHCA_CH_DROP_MISMATCH), 3);
	pk->hdr.rx.src_rcxt.key ^= 1;
	/* fields that may differ in a repeated request */
	pk->hdr.rx.offset = PAIR_SEG;
	pk->hdr.rx.part -= PAIR_SEG;
	pair_rx(test, pk);
	KUNIT_EXPECT_EQ(test, chan_count(t.c, NHCA_CH_DROP_MISMATCH), 4);
	pk->hdr.rx.offset = 0;
	pk->hdr.rx.part = PAIR_SEG;
	pair_rx(test, pk);
	KUNIT_EXPECT_EQ(test, chan_count(t.c, NHCA_CH_DROP_MISMATCH), 5);
	pk->hdr.rx.part = LONG;
	pk->hdr.rx.notify ^= NHCA_RX_NOTIFY_TARGET;
	pair_rx(test, pk);
	KUNIT_EXPECT_EQ(test, chan_count(t.c, NHCA_CH_DROP_MISMATCH), 6);
	pk->hdr.rx.notify ^= NHCA_RX_NOTIFY_TARGET;
	pk->hdr.rx.cookie ^= 1;
	pair_rx(test, pk);
	KUNIT_EXPECT_EQ(test, chan_count(t.c, NHCA_CH_DROP_MISMATCH), 7);
	pk->hdr.rx.cookie ^= 1;
	KUNIT_EXPECT_EQ(test, pair_count(test, 0), 1);
	/* without an error, the challenge is accepted */
	pair_rx(test, pk);
	KUNIT_EXPECT_EQ(test, chan_count(t.c, NHCA_CH_DROP_MISMATCH), 7);
	KUNIT_EXPECT_EQ(test, pair_count(test, NHCA_RX_THIRD_REQUEST), 1);
}

/* Check which halves of the digest change if a byte of a request changes. */
static void digest_case(struct kunit *test, struct chan *c, struct nhca_rxeth *x, void *field,
			bool common)
{
	u64 before = nhca_third_digest(c->ch, x, false), after;
	u8 *byte = field;

	*byte ^= 1;
	after = nhca_third_digest(c->ch, x, false);
	*byte ^= 1;
	KUNIT_EXPECT_NE(test, lower_32_bits(before), lower_32_bits(after));
	KUNIT_EXPECT_EQ(test, upper_32_bits(before) != upper_32_bits(after), common);
}

/* Each field of a request is part of the digest with which the manager compares a challenge. */
static void third_digest(struct kunit *test)
{
	struct third t = three(test);
	struct nhca_rxeth x = { .rcxt = { 5, 6 }, .src_rcxt = { 7, 8 } }, y;

	digest_case(test, t.c, &x, &x.pvo, true);
	digest_case(test, t.c, &x, &x.reply_pvo, true);
	digest_case(test, t.c, &x, &x.gid[15], true);
	digest_case(test, t.c, &x, &x.target_channel, true);
	digest_case(test, t.c, &x, &x.target_key, true);
	digest_case(test, t.c, &x, &x.target_rcxt.index, true);
	digest_case(test, t.c, &x, &x.target_rcxt.key, true);
	digest_case(test, t.c, &x, &x.rcxt.index, true);
	digest_case(test, t.c, &x, &x.rcxt.key, true);
	digest_case(test, t.c, &x, &x.offset, false);
	digest_case(test, t.c, &x, &x.part, false);
	digest_case(test, t.c, &x, &x.notify, false);
	digest_case(test, t.c, &x, &x.cookie, false);
	/* in a challenge, the source is in the place of the manager */
	y = x;
	swap(y.rcxt, y.src_rcxt);
	KUNIT_EXPECT_EQ(test, nhca_third_digest(t.c->ch, &x, false),
			nhca_third_digest(t.c->ch, &y, true));
}

/*
 * Payload with an impossible address of the manager is refused. Only a notice of the target
 * completes the transfer.
 */
static void third_forged_payload(struct kunit *test)
{
	static const u32 managers[] = { 0, 0xe0000001, 0xffffffff, 0x7f000001, PAIR_BROADCAST };
	struct third t = three(test);
	struct pair_packet *pk;
	u32 i;

	prepare(test);
	pair_fill(t.a->end->bytes, PAIR_SEG, 1);
	move(test, 2, PAIR_SEG, 0);
	pair_deliver(test);
	pk = pair_first(test, NHCA_RX_THIRD_WRITE);
	for (i = 0; i < ARRAY_SIZE(managers); i++) {
		ipv6_addr_set_v4mapped(htonl(managers[i]), (struct in6_addr *)pk->hdr.rx.gid);
		pair_rx(test, pk);
		KUNIT_EXPECT_EQ(test, chan_count(t.b, NHCA_CH_DROP_MANAGER), i + 1);
	}
	/* an IPv6 address of the manager, in an IPv4 packet */
	memset(pk->hdr.rx.gid, 0x20, sizeof(pk->hdr.rx.gid));
	pair_rx(test, pk);
	KUNIT_EXPECT_EQ(test, chan_count(t.b, NHCA_CH_DROP_MANAGER), i + 1);
	KUNIT_EXPECT_TRUE(test, pair_clear(t.b->end, 0, 0));
	ipv6_addr_set_v4mapped(htonl(t.c->end->addr), (struct in6_addr *)pk->hdr.rx.gid);
	pair_deliver(test);
	pk = pair_first(test, NHCA_RX_NOTICE);
	/*
	 * dropped: a notice whose rCxt is not the rCxt of the target, a notice of another kind, and
	 * a notice with another tid
	 */
	pk->hdr.rx.src_rcxt.index++;
	pair_rx(test, pk);
	pk->hdr.rx.src_rcxt.index--;
	pk->hdr.rx.notify = NHCA_RX_NOTIFY_INITIATOR;
	pair_rx(test, pk);
	pk->hdr.rx.notify = NHCA_RX_NOTIFY_THIRD;
	pk->hdr.rx.tid++;
	pair_rx(test, pk);
	pk->hdr.rx.tid--;
	KUNIT_EXPECT_TRUE(test, chan_idle(t.c));
	pair_settle(test);
	chan_expect(test, t.c, NHCA_WC_CH_MOVE, IB_WC_SUCCESS);
}

/*
 * The source accepts the longest segment that fits its MTU, and reports a longer segment as too
 * long.
 */
static void third_limits(struct kunit *test)
{
	struct third t = three(test);
	struct nhca_rcxt_wr *wr;
	u32 most = nhca_channel_segment(t.a->end->dev) - NHCA_MOVE_HEADER, i;

	prepare(test);
	for (i = 0; i < 2; i++) {
		wr = chan_wqe(t.c, MOVE)->rcxt;
		wr->tid = 2 + i;
		wr->total = 2 * most;
		wr->length = wr->total;
		wr->segment = most + 4 * i;
		wr->notify = NHCA_NOTIFY_INITIATOR;
		chan_bell(t.c);
		pair_settle(test);
		chan_expect(test, t.c, NHCA_WC_CH_LOCAL, IB_WC_SUCCESS);
		if (i)
			expect_status(test, NHCA_TRANSFER_TOO_LONG, 3);
		else
			chan_expect(test, t.c, NHCA_WC_CH_MOVE, IB_WC_SUCCESS);
		KUNIT_EXPECT_TRUE(test, chan_idle(t.c));
	}
	KUNIT_EXPECT_EQ(test, chan_count(t.a, NHCA_CH_DROP_SEGMENT), 1);
	/*
	 * without a segment in the work request (0), the kernel chooses the longest segment that
	 * fits
	 */
	wr = chan_wqe(t.c, MOVE)->rcxt;
	wr->tid = 4;
	wr->total = 100;
	wr->length = 100;
	wr->segment = 0;
	wr->notify = NHCA_NOTIFY_INITIATOR;
	chan_bell(t.c);
	KUNIT_EXPECT_EQ(test, (u32)pair_first(test, NHCA_RX_THIRD_REQUEST)->hdr.rx.segment, most);
	pair_settle(test);
	chan_expect(test, t.c, NHCA_WC_CH_LOCAL, IB_WC_SUCCESS);
	chan_expect(test, t.c, NHCA_WC_CH_MOVE, IB_WC_SUCCESS);
}

/*
 * One channel is manager, source and target. A transfer with three different rCxts works, and a
 * transfer with one rCxt in two roles fails.
 */
static void third_same_host(struct kunit *test)
{
	struct third t = three(test);
	struct nhca_rcxt_target *to;
	struct nhca_send_wqe *wqe;
	struct nhca_av *self = xa_load(&t.a->end->dev->ah_ids, PAIR_AH);
	u32 i;

	/* the address handle of the source leads to the source itself */
	ipv6_addr_set_v4mapped(htonl(t.a->end->addr), &self->daddr);
	KUNIT_ASSERT_EQ(test, target(t.a, NHCA_CHANNEL_TARGET_ALLOW), 0);
	pair_fill(t.a->end->bytes, 3 * PAIR_SEG, 7);
	for (i = 0; i < 2; i++) {
		t.a->peer = t.a;
		wqe = chan_wqe(t.a, MOVE);
		to = (void *)(wqe->rcxt + 1);
		to->qpn = t.a->who.qpn;
		to->key = lower_32_bits(t.a->resp.key);
		to->ah_id = PAIR_AH;
		wqe->chan.local_rcxt = t.a->ids[0];
		wqe->chan.remote_rcxt = t.a->ids[1];
		to->rcxt = t.a->ids[i ? 1 : 2];
		wqe->rcxt[0].tid = 1 + i;
		wqe->rcxt[0].total = 3 * PAIR_SEG;
		wqe->rcxt[0].length = 3 * PAIR_SEG;
		wqe->rcxt[0].local_pvo = wqe->rcxt[0].remote_pvo + 4 * PAIR_SEG;
		wqe->rcxt[0].notify = NHCA_NOTIFY_INITIATOR;
		chan_bell(t.a);
		pair_settle(test);
		chan_expect(test, t.a, NHCA_WC_CH_LOCAL, IB_WC_SUCCESS);
		if (!i)
			chan_expect(test, t.a, NHCA_WC_CH_MOVE, IB_WC_SUCCESS);
		KUNIT_EXPECT_TRUE(test, chan_idle(t.a));
	}
	KUNIT_EXPECT_TRUE(test, pair_is(t.a->end->bytes + 4 * PAIR_SEG, 3 * PAIR_SEG, 7));
	KUNIT_EXPECT_EQ(test, chan_count(t.a, NHCA_CH_DROP_BUSY) +
			chan_count(t.a, NHCA_CH_DROP_MISMATCH), 3);
	/* a transfer fails if manager and source have the same rCxt */
	wqe = chan_wqe(t.a, MOVE);
	wqe->chan.remote_rcxt = wqe->chan.local_rcxt;
	to = (void *)(wqe->rcxt + 1);
	to->ah_id = PAIR_AH;
	wqe->rcxt[0].tid = 9;
	wqe->rcxt[0].notify = NHCA_NOTIFY_INITIATOR;
	chan_bell(t.a);
	pair_settle(test);
	chan_expect(test, t.a, NHCA_WC_CH_LOCAL, IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(test, chan_idle(t.a));
}

/* An IPv4 manager, and the source of an IPv4 manager, refuse an IPv6 target. */
static void third_families(struct kunit *test)
{
	struct third t = three(test);
	struct in6_addr addr = { { { 0xfd, [15] = 2 } } }, v4;
	struct nhca_av *at_c = xa_load(&t.c->end->dev->ah_ids, PAIR_AH_TARGET);
	struct nhca_av *at_a = xa_load(&t.a->end->dev->ah_ids, PAIR_AH);
	struct nhca_cqe cqe;

	v4 = at_c->daddr;
	at_c->daddr = addr;
	at_c->v4 = false;
	chan_transfer(t.c, MOVE, 1, 10, NHCA_NOTIFY_INITIATOR);
	cqe = chan_expect(test, t.c, NHCA_WC_CH_LOCAL, IB_WC_LOC_QP_OP_ERR);
	KUNIT_EXPECT_EQ(test, cqe.vendor_err, EAFNOSUPPORT);
	KUNIT_EXPECT_EQ(test, pair_count(test, 0), 0);
	KUNIT_EXPECT_EQ(test, nhca_channel_state(t.c->ch), IB_QPS_RTS);
	at_c->daddr = v4;
	at_c->v4 = true;

	/* the program of the source has allowed the IPv6 address */
	v4 = at_a->daddr;
	at_a->daddr = addr;
	at_a->v4 = false;
	KUNIT_ASSERT_EQ(test, target(t.a, NHCA_CHANNEL_TARGET_ALLOW), 0);
	at_c->daddr = addr;
	move(test, 1, 10, 0);
	pair_settle(test);
	expect_status(test, NHCA_TRANSFER_FORBIDDEN, 1);
	KUNIT_EXPECT_EQ(test, chan_count(t.a, NHCA_CH_DROP_TARGET), 1);
	KUNIT_EXPECT_TRUE(test, chan_idle(t.a) && chan_idle(t.b) && chan_idle(t.c));
}

/* Malformed work requests put the channel into the error state. */
static void third_malformed(struct kunit *test)
{
	struct third t = three(test);
	struct nhca_send_wqe *wqe;
	struct chan *c;
	u32 i;

	for (i = 0; i < 5; i++) {
		c = chan_make(test, t.c->end, PAIR_QPN + 20 + i, PAIR_JOB);
		c->peer = t.a;
		wqe = chan_wqe(c, MOVE);
		wqe->rcxt[0].notify = NHCA_NOTIFY_INITIATOR;
		wqe->rcxt[0].total = 10;
		wqe->rcxt[0].length = 10;
		switch (i) {
		case 0:
			wqe->rcxt[0].notify = NHCA_NOTIFY_TARGET;
			break;
		case 1:
			((struct nhca_rcxt_target *)(wqe->rcxt + 1))->ah_id = 99;
			break;
		case 2:
			((struct nhca_rcxt_target *)(wqe->rcxt + 1))->qpn = BIT(24);
			break;
		case 3:
			((struct nhca_rcxt_target *)(wqe->rcxt + 1))->reserved = 1;
			break;
		default:
			wqe->rcxt[0].length = 9;
		}
		chan_bell(c);
		KUNIT_EXPECT_EQ_MSG(test, nhca_channel_state(c->ch), IB_QPS_ERR, "%u", i);
		KUNIT_EXPECT_EQ(test, pair_count(test, 0), 0);
		chan_destroy(c);
	}
}

/* The release of an rCxt ends the transfer that a peer has requested; later ones are dropped. */
static void third_closed(struct kunit *test)
{
	struct third t = three(test);
	struct pair *p = test->priv;
	u32 sent;

	prepare(test);
	begin_long(test, 2);
	sent = p->sent;
	KUNIT_EXPECT_EQ(test, nhca_channel_release(t.a->ch, t.a->ids, 1), 0);
	pair_settle(test);
	KUNIT_EXPECT_EQ(test, p->sent, sent);
	move(test, 3, LONG, 0);
	pair_settle(test);
	KUNIT_EXPECT_EQ(test, chan_count(t.a, NHCA_CH_DROP_NO_RCXT), 1);
	KUNIT_EXPECT_EQ(test, p->sent, sent + 1);
	t.c->peer->ids[0] = t.a->ids[1];
	t.b->ids[0] = t.b->ids[1];
	chan_transfer(t.c, MOVE, 4, LONG, NHCA_NOTIFY_INITIATOR);
	chan_expect(test, t.c, NHCA_WC_CH_LOCAL, IB_WC_SUCCESS);
	pair_deliver(test);
	sent = p->sent;
	KUNIT_EXPECT_GT(test, pair_count(test, NHCA_RX_THIRD_WRITE), 0);
	/* free the packets, and those that the source sends meanwhile */
	while (pair_count(test, 0))
		pair_drop(list_first_entry(&p->wire, struct pair_packet, list));
	chan_destroy(t.a);
	pair_settle(test);
	KUNIT_EXPECT_TRUE(test, chan_idle(t.c));
}

static struct kunit_case third_cases[] = {
	KUNIT_CASE(third_bytes),
	KUNIT_CASE(third_forbidden),
	KUNIT_CASE(third_many_targets),
	KUNIT_CASE(third_revoked),
	KUNIT_CASE(third_fenced),
	KUNIT_CASE(third_endless),
	KUNIT_CASE(third_passed),
	KUNIT_CASE(third_many_wait),
	KUNIT_CASE(third_changed),
	KUNIT_CASE(third_repeated),
	KUNIT_CASE(third_deregistered),
	KUNIT_CASE(third_target_deregistered),
	KUNIT_CASE(third_replayed),
	KUNIT_CASE(third_forged_request),
	KUNIT_CASE(third_unverified),
	KUNIT_CASE(third_digest),
	KUNIT_CASE(third_forged_payload),
	KUNIT_CASE(third_limits),
	KUNIT_CASE(third_same_host),
	KUNIT_CASE(third_families),
	KUNIT_CASE(third_malformed),
	KUNIT_CASE(third_closed),
	{}
};

static struct kunit_suite third_suite = {
	.name = "nhca_rcxt_third",
	.init = third_init,
	.exit = pair_exit,
	.test_cases = third_cases,
};

kunit_test_suite(third_suite);
