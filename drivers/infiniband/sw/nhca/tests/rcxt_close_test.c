// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit: the time at which a program may reuse its buffers. A transfer is canceled, its channel
 * fails, or its rCxt is released, while another CPU copies payload of the transfer or makes packets
 * of it.
 */
#include <kunit/static_stub.h>
#include <kunit/test-bug.h>
#include <linux/workqueue.h>

#include "channel_pair.h"

#define LEN	100u

/* What another CPU does while this CPU copies payload for the channel of end 0. */
static void (*meanwhile)(struct chan *a);
/* true: the channel had completions when the function in @meanwhile returned */
static bool early;

/* Replaces nhca_rx_copy() once: runs meanwhile() before the copy. */
static int copy_and_more(struct nhca_rx *rx, struct nhca_iter *it)
{
	struct kunit *test = kunit_get_current_test();
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan;

	kunit_deactivate_static_stub(test, nhca_rx_copy);
	/* leave the live section, because the other CPU is in no live section */
	nhca_live_exit();
	meanwhile(a);
	early = !chan_idle(a);
	nhca_live_enter();
	return nhca_rx_copy(rx, it);
}

/* Let end 0 receive @pk, and call @fn while it copies the payload. */
static void rx_meanwhile(struct kunit *test, struct pair_packet *pk, void (*fn)(struct chan *a))
{
	meanwhile = fn;
	early = true;
	kunit_activate_static_stub(test, nhca_rx_copy, copy_and_more);
	pair_rx(test, pk);
}

/* Post a read of LEN bytes with tid 1. Return: the packet with its payload, on the wire. */
static struct pair_packet *answer(struct kunit *test, struct chan *a)
{
	pair_fill(a->peer->end->bytes, LEN, 1);
	chan_transfer(a, NHCA_WR_CH_READ, 1, LEN, NHCA_NOTIFY_INITIATOR);
	chan_expect(test, a, NHCA_WC_CH_LOCAL, IB_WC_SUCCESS);
	while (!pair_count(test, NHCA_RX_READ_DATA))
		pair_deliver(test);
	return pair_first(test, NHCA_RX_READ_DATA);
}

/* Post a cancel of tid 1, put the channel into the error state, and let it flush the cancel. */
static void cancel_and_fail(struct chan *a)
{
	chan_wqe(a, NHCA_WR_CH_CANCEL);
	chan_push(a);
	local_bh_disable();
	nhca_channel_set_error(a->ch, NHCA_CH_ERR_MODIFIED);
	nhca_channel_doorbell(a->ch);
	local_bh_enable();
}

/* While a CPU copies payload of a transfer, the cancel of this transfer is not flushed. */
static void flush_waits_for_copy(struct kunit *test)
{
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan;

	rx_meanwhile(test, answer(test, a), cancel_and_fail);
	KUNIT_EXPECT_FALSE(test, early);
	KUNIT_EXPECT_EQ(test, chan_expect(test, a, NHCA_WC_CH_LOCAL, IB_WC_WR_FLUSH_ERR).wr_id,
			chan_wr_id(1));
	/* the read has no completion */
	KUNIT_EXPECT_TRUE(test, chan_idle(a));
}

/* After a cancel was flushed, a receive engine that has not read the error state places nothing. */
static void flush_ends_read(struct kunit *test)
{
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan;
	struct pair_packet *pk = answer(test, a);

	cancel_and_fail(a);
	chan_expect(test, a, NHCA_WC_CH_LOCAL, IB_WC_WR_FLUSH_ERR);
	/* hide the error state from the receive engine */
	WRITE_ONCE(a->ch->reason, NHCA_CH_ERR_NONE);
	pair_rx(test, pk);
	WRITE_ONCE(a->ch->reason, NHCA_CH_ERR_MODIFIED);
	KUNIT_EXPECT_EQ(test, chan_count(a, NHCA_CH_DROP_STALE), 1);
	KUNIT_EXPECT_TRUE(test, pair_clear(a->end, 0, 0));
	KUNIT_EXPECT_TRUE(test, chan_idle(a));
}

/*
 * A cancel is also flushed if its rCxt has no transfer, if its tid is 0, or if the key or index of
 * its rCxt is wrong.
 */
static void flush_any_cancel(struct kunit *test)
{
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan;
	struct nhca_send_wqe *wqe;
	u32 i;

	for (i = 0; i < 3; i++) {
		wqe = chan_wqe(a, NHCA_WR_CH_CANCEL);
		wqe->chan.local_rcxt = a->ids[i] ^ (i == 1 ? BIT_ULL(32) : 0);
		wqe->rcxt[0].tid = i;
		chan_push(a);
	}
	chan_wqe(a, NHCA_WR_CH_CANCEL)->chan.local_rcxt = U64_MAX;
	chan_push(a);
	cancel_and_fail(a);
	for (i = 0; i < 5; i++)
		chan_expect(test, a, NHCA_WC_CH_LOCAL, IB_WC_WR_FLUSH_ERR);
	KUNIT_EXPECT_TRUE(test, chan_idle(a));
}

/* ---- work requests during a copy of payload ---- */

static void cancel(struct chan *a)
{
	chan_wqe(a, NHCA_WR_CH_CANCEL);
	chan_bell(a);
}

/*
 * If a CPU copies payload of the canceled transfer, the cancel completes after the copy. The
 * channel's turn does not wait for the copy; otherwise this test would not end.
 */
static void cancel_ends_turn(struct kunit *test)
{
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan;

	rx_meanwhile(test, answer(test, a), cancel);
	KUNIT_EXPECT_FALSE(test, early);
	chan_expect(test, a, NHCA_WC_CH_LOCAL, IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(test, chan_idle(a));
	KUNIT_EXPECT_EQ(test, (u32)chan_rcxt(a, 0)->state, (u32)NHCA_RCXT_IDLE);
}

static void cancel_and_read(struct chan *a)
{
	struct nhca_send_wqe *wqe;

	cancel(a);
	chan_transfer(a, NHCA_WR_CH_READ, 2, LEN, NHCA_NOTIFY_INITIATOR);
	/* a work request for another rCxt overtakes the cancel and the read */
	wqe = chan_wqe(a, NHCA_WR_CH_FENCE);
	wqe->chan.local_rcxt = a->ids[1];
	chan_bell(a);
}

/*
 * If a CPU copies payload for an rCxt, a cancel and a later read on this rCxt complete after the
 * copy, in the order of posting. A work request for another rCxt overtakes both.
 */
static void later_wqes_pass_copy(struct kunit *test)
{
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan;
	struct pair_packet *pk = answer(test, a);
	static const u32 order[] = { 3, 1, 2 };
	u32 i;

	rx_meanwhile(test, pk, cancel_and_read);
	/* the fence has completed during the copy */
	KUNIT_EXPECT_TRUE(test, early);
	for (i = 0; i < ARRAY_SIZE(order); i++)
		KUNIT_EXPECT_EQ(test, chan_expect(test, a, NHCA_WC_CH_LOCAL, IB_WC_SUCCESS).wr_id,
				chan_wr_id(order[i]));
	pair_settle(test);
	KUNIT_EXPECT_EQ(test, chan_expect(test, a, NHCA_WC_CH_READ, IB_WC_SUCCESS).chan.tid, 2);
	KUNIT_EXPECT_EQ(test, a->ch->num_waiting, 0);
	KUNIT_EXPECT_EQ(test, a->ch->cons, a->posted);
}

static void fence_and_write(struct chan *a)
{
	struct nhca_rcxt *rc = chan_rcxt(a, 0);

	/* end the transfer, as a fence of the peer does */
	nhca_rcxt_end(&a->ch->rd->pool, rc, NHCA_RCXT_IDLE);
	chan_transfer(a, NHCA_WR_CH_WRITE, 2, LEN, NHCA_NOTIFY_INITIATOR);
}

static void write_and_cancel(struct chan *a)
{
	/* this write waits for the copy, and the cancel of the write waits for the write */
	fence_and_write(a);
	chan_wqe(a, NHCA_WR_CH_CANCEL)->rcxt[0].tid = 2;
	chan_bell(a);
	chan_wqe(a, NHCA_WR_CH_PACKET);
	chan_bell(a);
}

/* The cancel of a work request that waits for its rCxt does not delay later work requests. */
static void cancel_of_waiting(struct kunit *test)
{
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan, *b = p->end[1].chan;
	static const u32 order[] = { 2, 0, 1 };
	u32 i;

	chan_transfer(b, NHCA_WR_CH_WRITE, 1, LEN, NHCA_NOTIFY_TARGET);
	rx_meanwhile(test, pair_first(test, NHCA_RX_WRITE), write_and_cancel);
	/* the work request of packet mode has completed during the copy */
	KUNIT_EXPECT_TRUE(test, early);
	for (i = 0; i < ARRAY_SIZE(order); i++)
		KUNIT_EXPECT_EQ(test, chan_expect(test, a, NHCA_WC_CH_LOCAL, IB_WC_SUCCESS).wr_id,
				chan_wr_id(order[i]));
	KUNIT_EXPECT_EQ(test, (u32)chan_rcxt(a, 0)->state, (u32)NHCA_RCXT_IDLE);
	KUNIT_EXPECT_EQ(test, chan_rcxt(a, 0)->tid, 2);
	KUNIT_EXPECT_FALSE(test, chan_rcxt(a, 0)->wanted);
	KUNIT_EXPECT_EQ(test, a->ch->num_waiting, 0);
	KUNIT_EXPECT_EQ(test, a->ch->cons, a->posted);
	KUNIT_EXPECT_TRUE(test, chan_idle(a));
}

/* Post a write on rCxt @i: two packets, which refer to the pages of the payload. */
static void write_pages(struct kunit *test, struct chan *a, u32 i)
{
	struct nhca_send_wqe *wqe = chan_wqe(a, NHCA_WR_CH_WRITE);

	wqe->chan.local_rcxt = a->ids[i];
	wqe->chan.remote_rcxt = a->peer->ids[i];
	wqe->rcxt[0].total = 2 * PAIR_SEG;
	wqe->rcxt[0].length = 2 * PAIR_SEG;
	wqe->rcxt[0].notify = NHCA_NOTIFY_INITIATOR;
	chan_bell(a);
	chan_expect(test, a, NHCA_WC_CH_LOCAL, IB_WC_SUCCESS);
}

/*
 * Each cancel waits until the packets that were sent before it are freed, and does not wait for
 * later packets. Other work requests overtake the cancel, even those for its rCxt.
 */
static void cancels_wait_for_pages(struct kunit *test)
{
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan;
	struct nhca_send_wqe *wqe;
	u32 i;

	p->zcopy = true;
	write_pages(test, a, 0);
	cancel(a);
	KUNIT_EXPECT_TRUE(test, chan_idle(a));
	KUNIT_EXPECT_EQ(test, a->ch->num_waiting, 1);
	write_pages(test, a, 1);
	wqe = chan_wqe(a, NHCA_WR_CH_CANCEL);
	wqe->chan.local_rcxt = a->ids[1];
	chan_bell(a);
	KUNIT_EXPECT_TRUE(test, chan_idle(a));
	KUNIT_EXPECT_EQ(test, a->ch->num_waiting, 2);
	/* a write on the rCxt of the first cancel */
	chan_transfer(a, NHCA_WR_CH_WRITE, 2, LEN, 0);
	KUNIT_EXPECT_EQ(test, chan_expect(test, a, NHCA_WC_CH_LOCAL, IB_WC_SUCCESS).wr_id,
			chan_wr_id(4));
	KUNIT_EXPECT_EQ(test, a->ch->cons, 1);
	for (i = 0; i < 2; i++)
		pair_drop(pair_first(test, NHCA_RX_WRITE));
	KUNIT_EXPECT_EQ(test, chan_expect(test, a, NHCA_WC_CH_LOCAL, IB_WC_SUCCESS).wr_id,
			chan_wr_id(1));
	KUNIT_EXPECT_TRUE(test, chan_idle(a));
	KUNIT_EXPECT_EQ(test, a->ch->cons, 3);
	pair_settle(test);
	KUNIT_EXPECT_EQ(test, chan_expect(test, a, NHCA_WC_CH_LOCAL, IB_WC_SUCCESS).wr_id,
			chan_wr_id(3));
	KUNIT_EXPECT_TRUE(test, chan_idle(a));
	KUNIT_EXPECT_EQ(test, a->ch->num_waiting, 0);
	KUNIT_EXPECT_EQ(test, a->ch->cons, a->posted);
}

/*
 * If NHCA_CH_WAITING work requests wait, a further cancel begins, but delays later work requests.
 */
static void many_cancels(struct kunit *test)
{
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan;
	u32 i;

	p->zcopy = true;
	write_pages(test, a, 0);
	for (i = 0; i < NHCA_CH_WAITING + 2; i++) {
		chan_wqe(a, NHCA_WR_CH_CANCEL)->rcxt[0].tid = i + 1;
		chan_bell(a);
	}
	KUNIT_EXPECT_EQ(test, a->ch->num_waiting, NHCA_CH_WAITING);
	KUNIT_EXPECT_EQ(test, chan_rcxt(a, 0)->tid, NHCA_CH_WAITING + 1);
	KUNIT_EXPECT_TRUE(test, chan_idle(a));
	pair_settle(test);
	for (i = 0; i < NHCA_CH_WAITING + 2; i++)
		KUNIT_EXPECT_EQ(test, chan_expect(test, a, NHCA_WC_CH_LOCAL, IB_WC_SUCCESS).wr_id,
				chan_wr_id(i + 1));
	KUNIT_EXPECT_TRUE(test, chan_idle(a));
	KUNIT_EXPECT_EQ(test, a->ch->num_waiting, 0);
	KUNIT_EXPECT_EQ(test, a->ch->cons, a->posted);
}

static void cancel_then_fail(struct chan *a)
{
	/* the cancel begins, and waits in nhca_channel.waiting */
	cancel(a);
	local_bh_disable();
	nhca_channel_set_error(a->ch, NHCA_CH_ERR_MODIFIED);
	nhca_channel_doorbell(a->ch);
	local_bh_enable();
}

/* A cancel that waits for the end of a copy is flushed after the copy has ended. */
static void flush_of_waiting(struct kunit *test)
{
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan;

	rx_meanwhile(test, answer(test, a), cancel_then_fail);
	KUNIT_EXPECT_FALSE(test, early);
	KUNIT_EXPECT_EQ(test, chan_expect(test, a, NHCA_WC_CH_LOCAL, IB_WC_WR_FLUSH_ERR).wr_id,
			chan_wr_id(1));
	KUNIT_EXPECT_EQ(test, a->ch->num_waiting, 0);
	KUNIT_EXPECT_TRUE(test, chan_idle(a));
}

/*
 * If a fence has ended a peer's write while a CPU copies payload of this write, the next transfer
 * begins after the copy.
 */
static void transfer_waits_for_copy(struct kunit *test)
{
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan, *b = p->end[1].chan;

	chan_transfer(b, NHCA_WR_CH_WRITE, 1, LEN, NHCA_NOTIFY_TARGET);
	rx_meanwhile(test, pair_first(test, NHCA_RX_WRITE), fence_and_write);
	KUNIT_EXPECT_FALSE(test, early);
	chan_expect(test, a, NHCA_WC_CH_LOCAL, IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(test, chan_idle(a));
	KUNIT_EXPECT_EQ(test, (u32)chan_rcxt(a, 0)->state, (u32)NHCA_RCXT_WAITING);
}

/* ---- release ---- */

static u32 graces;

/* Replaces nhca_channel_grace(). */
static void grace(struct nhca_channel *ch)
{
	graces++;
}

/*
 * The release of an rCxt that has answered a read of a peer waits for the send engine, even if all
 * packets are sent, because the engine may not have ended yet. If the rCxt has only received
 * payload, the release does not wait for a grace period, which would take time.
 */
static void release_waits_for_send_engine(struct kunit *test)
{
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan, *b = p->end[1].chan;

	kunit_activate_static_stub(test, nhca_channel_grace, grace);
	graces = 0;
	p->charge = true;
	chan_transfer(a, NHCA_WR_CH_READ, 1, 100 * PAIR_SEG, 0);
	while (!pair_count(test, NHCA_RX_READ_DATA))
		pair_deliver(test);
	KUNIT_EXPECT_EQ(test, (u32)chan_rcxt(b, 0)->state, (u32)NHCA_RCXT_ANSWERING);
	KUNIT_EXPECT_EQ(test, nhca_channel_release(b->ch, b->ids + 1, 1), 0);
	KUNIT_EXPECT_EQ(test, graces, 0);
	KUNIT_EXPECT_EQ(test, nhca_channel_release(b->ch, b->ids, 1), 0);
	KUNIT_EXPECT_EQ(test, graces, 1);
	pair_settle(test);
	/* the reader's rCxt has only received payload */
	KUNIT_EXPECT_EQ(test, nhca_channel_release(a->ch, a->ids, 1), 0);
	KUNIT_EXPECT_EQ(test, graces, 1);

	p->charge = false;
	KUNIT_ASSERT_EQ(test, nhca_channel_acquire(a->ch, a->ids, 2), 0);
	KUNIT_ASSERT_EQ(test, nhca_channel_acquire(b->ch, b->ids, 2), 0);
	chan_transfer(a, NHCA_WR_CH_READ, 1, 10, 0);
	pair_settle(test);
	KUNIT_EXPECT_EQ(test, (u32)chan_rcxt(b, 0)->state, (u32)NHCA_RCXT_IDLE);
	KUNIT_EXPECT_EQ(test, nhca_channel_release(b->ch, b->ids, 1), 0);
	KUNIT_EXPECT_EQ(test, graces, 2);
}

static struct nhca_rcxt *copied;

/* Replaces nhca_channel_grace(): another CPU ends a copy. */
static void grace_ends_copy(struct nhca_channel *ch)
{
	graces++;
	if (copied)
		nhca_rcxt_copied(&ch->rd->pool, copied, true);
	copied = NULL;
}

/*
 * nhca_channel_release() sleeps until a copy has ended. It does not spin, because its task may have
 * preempted the task that copies.
 */
static void release_waits_for_copy(struct kunit *test)
{
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan;
	struct nhca_rcxt_pool *pool = &a->ch->rd->pool;
	struct pair_packet *pk = answer(test, a);
	u32 free = pool->free;

	kunit_activate_static_stub(test, nhca_channel_grace, grace_ends_copy);
	graces = 0;
	copied = chan_rcxt(a, 0);
	KUNIT_ASSERT_EQ(test, nhca_rcxt_payload(pool, copied, &pk->hdr.rx, true), NHCA_RCXT_ACCEPT);
	KUNIT_EXPECT_EQ(test, nhca_channel_release(a->ch, a->ids, 2), 0);
	KUNIT_EXPECT_EQ(test, graces, 1);
	KUNIT_EXPECT_EQ(test, pool->free, free + 2);
}

/**
 * struct late - the network stack frees all packets after a delay
 * @work: frees the packets
 * @pair: the network
 * @done: @work has run
 */
struct late {
	struct delayed_work work;
	struct pair *pair;
	bool done;
};

static void late_drop(struct work_struct *work)
{
	struct late *late = container_of(to_delayed_work(work), struct late, work);
	struct pair_packet *pk, *next;

	WRITE_ONCE(late->done, true);
	list_for_each_entry_safe(pk, next, &late->pair->wire, list)
		pair_drop(pk);
}

/*
 * A recovery releases the rCxt of a write whose work request has completed, so no completion
 * reports the recovery. After that, nhca_channel_release() fails, but returns only when no packet
 * refers to the pages of the write.
 */
static void release_after_recovery(struct kunit *test)
{
	struct pair *p = test->priv;
	struct late late = { .pair = p };
	struct chan *a = p->end[0].chan;

	p->zcopy = true;
	chan_transfer(a, NHCA_WR_CH_WRITE, 1, 2 * PAIR_SEG, NHCA_NOTIFY_INITIATOR);
	chan_expect(test, a, NHCA_WC_CH_LOCAL, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, (u32)chan_rcxt(a, 0)->state, (u32)NHCA_RCXT_WAITING);
	nhca_rcxt_recover(a->end->dev, NHCA_CH_ERR_RECOVERED);
	INIT_DELAYED_WORK_ONSTACK(&late.work, late_drop);
	schedule_delayed_work(&late.work, HZ / 4);
	KUNIT_EXPECT_EQ(test, nhca_channel_release(a->ch, a->ids, 1), -ENOENT);
	KUNIT_EXPECT_TRUE(test, READ_ONCE(late.done));
	flush_delayed_work(&late.work);
	destroy_delayed_work_on_stack(&late.work);
}

static struct nhca_rcxt_dev *graced;
static bool open_to_recovery;

/* Replaces nhca_channel_grace(): a recovery runs during the grace period of a release. */
static void grace_recovers(struct nhca_channel *ch)
{
	open_to_recovery = !mutex_is_locked(&graced->mutex);
	nhca_rcxt_recover(ch->dev, NHCA_CH_ERR_RECOVERED);
}

/*
 * If a recovery runs during nhca_channel_release(), the recovery releases the rCxts.
 * nhca_channel_release() still waits until the packets of the write are freed.
 */
static void release_during_recovery(struct kunit *test)
{
	struct pair *p = test->priv;
	struct late late = { .pair = p };
	struct chan *a = p->end[0].chan;

	graced = a->ch->rd;
	p->zcopy = true;
	chan_transfer(a, NHCA_WR_CH_WRITE, 1, 2 * PAIR_SEG, NHCA_NOTIFY_INITIATOR);
	kunit_activate_static_stub(test, nhca_channel_grace, grace_recovers);
	INIT_DELAYED_WORK_ONSTACK(&late.work, late_drop);
	schedule_delayed_work(&late.work, HZ / 4);
	KUNIT_EXPECT_EQ(test, nhca_channel_release(a->ch, a->ids, CHAN_IDS), 0);
	KUNIT_EXPECT_TRUE(test, READ_ONCE(late.done));
	KUNIT_EXPECT_TRUE(test, open_to_recovery);
	KUNIT_EXPECT_EQ(test, graced->pool.free, PAIR_RCXTS);
	flush_delayed_work(&late.work);
	destroy_delayed_work_on_stack(&late.work);
}

static struct kunit_case rcxt_close_cases[] = {
	KUNIT_CASE(flush_waits_for_copy),
	KUNIT_CASE(flush_ends_read),
	KUNIT_CASE(flush_any_cancel),
	KUNIT_CASE(cancel_ends_turn),
	KUNIT_CASE(later_wqes_pass_copy),
	KUNIT_CASE(transfer_waits_for_copy),
	KUNIT_CASE(cancel_of_waiting),
	KUNIT_CASE(cancels_wait_for_pages),
	KUNIT_CASE(many_cancels),
	KUNIT_CASE(flush_of_waiting),
	KUNIT_CASE(release_waits_for_send_engine),
	KUNIT_CASE(release_waits_for_copy),
	KUNIT_CASE(release_after_recovery),
	KUNIT_CASE(release_during_recovery),
	{}
};

static struct kunit_suite rcxt_close_suite = {
	.name = "nhca_rcxt_close",
	.init = pair_init,
	.exit = pair_exit,
	.test_cases = rcxt_close_cases,
};

kunit_test_suite(rcxt_close_suite);
