// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit: the turns of channels, their creation and destruction, their rCxts, recovery, and answers
 * to many peers.
 */
#include <linux/cred.h>
#include <linux/workqueue.h>
#include <net/net_namespace.h>

#include "channel_pair.h"

#define BOTH	(NHCA_NOTIFY_INITIATOR | NHCA_NOTIFY_TARGET)
#define THIRD	(PAIR_QPN + 8)		/* QPN of another channel, of end 0 or 1 */
#define FLUSHED	256			/* work requests of a failed channel */
#define SMALL	NHCA_RCXT_MIN_SEGMENT

static void quantum(struct kunit *test, struct chan *c, u32 shares)
{
	const struct nhca_channel_modify cmd = {
		.mask = NHCA_CHANNEL_QUANTUM,
		.quantum = shares,
	};

	KUNIT_ASSERT_EQ(test, nhca_channel_modify(c->ch, &cmd), 0);
}

/* Post a write of @packets packets with @segment bytes each, without a doorbell. */
static void post(struct chan *c, u32 tid, u32 packets, u32 segment)
{
	struct nhca_rcxt_wr *wr = chan_wqe(c, NHCA_WR_CH_WRITE)->rcxt;

	wr->tid = tid;
	wr->segment = segment;
	wr->total = packets * segment;
	wr->length = wr->total;
	chan_push(c);
}

/*
 * Remove the packets of @c from the head of the wire, up to the first packet of another channel.
 * Return: their number.
 */
static u32 turn(struct pair *p, struct chan *c)
{
	struct pair_packet *pk;
	u32 n = 0;

	for (;; n++) {
		pk = list_first_entry_or_null(&p->wire, struct pair_packet, list);
		if (!pk || pk->hdr.rx.src_channel != c->who.qpn)
			return n;
		pair_drop(pk);
	}
}

/* Each turn costs the quantum of the channel. To fetch a work request costs one unit. */
static void turns_quantum(struct kunit *test)
{
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan, *c = chan_make(test, &p->end[0], THIRD, PAIR_JOB);
	u32 i;

	c->peer = a->peer;
	quantum(test, a, 4);
	quantum(test, c, 12);
	post(a, 1, 19, SMALL);
	post(c, 1, 59, SMALL);
	nhca_drr_ready(a->ch, false);
	nhca_channel_doorbell(c->ch);
	KUNIT_EXPECT_EQ(test, turn(p, a), 3);
	KUNIT_EXPECT_EQ(test, turn(p, c), 11);
	for (i = 0; i < 4; i++) {
		KUNIT_EXPECT_EQ(test, turn(p, a), 4);
		KUNIT_EXPECT_EQ(test, turn(p, c), 12);
	}
	KUNIT_EXPECT_TRUE(test, list_empty(&p->wire));
	KUNIT_EXPECT_EQ(test, (u32)a->ch->drr, (u32)NHCA_DRR_IDLE);
}

/* A packet costs one unit for each 4 KiB of payload, so that long packets give no advantage. */
static void turns_count_bytes(struct kunit *test)
{
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan, *c = chan_make(test, &p->end[0], THIRD, PAIR_JOB);

	p->end[0].netdev->mtu = 9000;
	KUNIT_ASSERT_EQ(test, nhca_channel_segment(p->end[0].dev), 8192);
	c->peer = a->peer;
	quantum(test, a, 9);
	quantum(test, c, 9);
	post(a, 1, 13, 8192);
	post(c, 1, 26, 4096);
	nhca_drr_ready(a->ch, false);
	nhca_channel_doorbell(c->ch);
	KUNIT_EXPECT_EQ(test, turn(p, a), 4);
	KUNIT_EXPECT_EQ(test, turn(p, c), 8);
	/* a packet that costs more than the rest of the quantum is sent, and ends the turn */
	KUNIT_EXPECT_EQ(test, turn(p, a), 5);
	KUNIT_EXPECT_EQ(test, turn(p, c), 9);
	KUNIT_EXPECT_EQ(test, turn(p, a), 4);
	KUNIT_EXPECT_EQ(test, turn(p, c), 9);
	KUNIT_EXPECT_TRUE(test, list_empty(&p->wire));
}

/*
 * A channel sends at most NHCA_CH_STRETCH packets of a transfer (a stretch), and then packets of
 * its next transfer.
 */
static void turns_stretch(struct kunit *test)
{
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan;
	struct nhca_send_wqe *wqe;
	struct pair_packet *pk;
	u32 before = 0;

	quantum(test, a, NHCA_CH_PASS);
	post(a, 1, 200, SMALL);
	wqe = chan_wqe(a, NHCA_WR_CH_WRITE);
	wqe->chan.local_rcxt = a->ids[1];
	wqe->rcxt[0].tid = 2;
	wqe->rcxt[0].total = 10;
	wqe->rcxt[0].length = 10;
	chan_bell(a);
	KUNIT_EXPECT_EQ(test, p->sent, 201);
	list_for_each_entry(pk, &p->wire, list) {
		if (pk->hdr.rx.tid == 2)
			break;
		before++;
	}
	/* the second write was fetched between the first two stretches of the first write */
	KUNIT_EXPECT_EQ(test, before, 2 * NHCA_CH_STRETCH);
}

/* A pass ends when it has cost NHCA_CH_PASS units; the bottom half sends the other packets. */
static void turns_pass(struct kunit *test)
{
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan;
	u32 sent, state;

	quantum(test, a, 64);
	post(a, 1, 400, SMALL);
	local_bh_disable();
	nhca_channel_doorbell(a->ch);
	sent = p->sent;
	state = a->ch->drr;
	local_bh_enable();
	/* the fetch of the work request has cost one unit */
	KUNIT_EXPECT_EQ(test, sent, NHCA_CH_PASS - 1);
	KUNIT_EXPECT_EQ(test, state, NHCA_DRR_READY);
	KUNIT_EXPECT_EQ(test, p->sent, 400);
	KUNIT_EXPECT_EQ(test, (u32)a->ch->drr, (u32)NHCA_DRR_IDLE);
}

static u32 again_state;

/* Completion handler: request another turn in the turn that posts the completion. */
static void again_completed(struct ib_cq *ibcq, void *context)
{
	struct chan *c = context;

	nhca_drr_ready(c->ch, false);
	again_state = c->ch->drr;
}

/* A request during a turn gives the channel another turn. A closed channel gets no turn. */
static void turns_again(struct kunit *test)
{
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan;

	a->cq[false].ibcq.comp_handler = again_completed;
	nhca_cq_arm(&a->cq[false], IB_CQ_NEXT_COMP);
	chan_wqe(a, NHCA_WR_CH_PACKET);
	chan_bell(a);
	KUNIT_EXPECT_EQ(test, again_state, NHCA_DRR_AGAIN);
	KUNIT_EXPECT_EQ(test, (u32)a->ch->drr, (u32)NHCA_DRR_IDLE);
	/* a second request for a turn changes nothing */
	nhca_drr_ready(a->ch, false);
	nhca_drr_ready(a->ch, false);
	KUNIT_EXPECT_EQ(test, (u32)a->ch->drr, (u32)NHCA_DRR_READY);
	nhca_drr_close(a->ch);
	KUNIT_EXPECT_TRUE(test, list_empty(&a->ch->rd->ready));
	chan_wqe(a, NHCA_WR_CH_PACKET);
	chan_bell(a);
	local_bh_disable();
	nhca_drr_ready(a->ch, true);
	local_bh_enable();
	KUNIT_EXPECT_EQ(test, p->sent, 1);
	KUNIT_EXPECT_EQ(test, (u32)a->ch->drr, (u32)NHCA_DRR_CLOSED);
}

/* ---- rCxts ---- */

/* A channel gets all the rCxts that it requests or none, and gives back all or none. */
static void rcxts_all_or_none(struct kunit *test)
{
	u64 *ids = kunit_kcalloc(test, PAIR_RCXTS, sizeof(*ids), GFP_KERNEL);
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan;
	struct nhca_rcxt_pool *pool = &a->ch->rd->pool;
	u32 free = pool->free;

	KUNIT_ASSERT_NOT_NULL(test, ids);
	KUNIT_EXPECT_EQ(test, nhca_channel_acquire(a->ch, ids, free + 1), -ENOSPC);
	KUNIT_EXPECT_EQ(test, pool->free, free);
	KUNIT_EXPECT_EQ(test, a->ch->rcxts.count, CHAN_IDS);
	KUNIT_EXPECT_EQ(test, nhca_channel_acquire(a->ch, ids, free), 0);
	KUNIT_EXPECT_EQ(test, pool->free, 0);
	ids[free] = ids[0] ^ BIT_ULL(32);
	KUNIT_EXPECT_EQ(test, nhca_channel_release(a->ch, ids, free + 1), -ENOENT);
	KUNIT_EXPECT_EQ(test, pool->free, 0);
	KUNIT_EXPECT_EQ(test, nhca_channel_release(a->ch, ids, free), 0);
	KUNIT_EXPECT_EQ(test, pool->free, free);
	KUNIT_EXPECT_EQ(test, nhca_channel_release(a->ch, ids, 1), -ENOENT);
	KUNIT_EXPECT_EQ(test, nhca_channel_release(a->ch, a->peer->ids, 1), -ENOENT);
}

/* The channels of a user without CAP_SYS_RESOURCE get at most half of the pool. */
static void rcxts_of_user(struct kunit *test)
{
	const struct nhca_create_channel_cmd cmd = { .job = PAIR_JOB + 1 };
	u64 *ids = kunit_kcalloc(test, PAIR_RCXTS, sizeof(*ids), GFP_KERNEL);
	struct pair *p = test->priv;
	struct chan *c = chan_new(test, &p->end[0], THIRD, 16);
	const struct cred *mine;
	struct cred *other = prepare_creds();
	int err;

	KUNIT_ASSERT_TRUE(test, ids && other);
	other->uid = KUIDT_INIT(4711);
	other->euid = KUIDT_INIT(4711);
	cap_clear(other->cap_effective);
	mine = override_creds(other);
	err = chan_create(c, &cmd);
	revert_creds(mine);
	put_cred(other);
	KUNIT_ASSERT_EQ(test, err, 0);
	KUNIT_EXPECT_EQ(test, nhca_channel_acquire(c->ch, ids, PAIR_RCXTS / 2 + 1), -EDQUOT);
	KUNIT_EXPECT_EQ(test, c->ch->rcxts.count, 0);
	KUNIT_EXPECT_EQ(test, nhca_channel_acquire(c->ch, ids, PAIR_RCXTS / 2), 0);
	KUNIT_EXPECT_EQ(test, nhca_channel_acquire(c->ch, ids, 1), -EDQUOT);
	/* the job belongs to user 4711 as long as the channel exists */
	KUNIT_EXPECT_EQ(test, chan_create(chan_new(test, &p->end[0], THIRD + 1, 16), &cmd), -EPERM);
	chan_destroy(c);
	KUNIT_EXPECT_TRUE(test, xa_empty(&p->end[0].chan->ch->rd->pool.users->by_id));
	KUNIT_EXPECT_EQ(test, chan_create(c, &cmd), 0);
}

/**
 * struct late - the network stack frees all packets after a delay
 * @work: frees the packets
 * @test: the test
 * @done: @work has run
 */
struct late {
	struct delayed_work work;
	struct kunit *test;
	bool done;
};

static void late_drop(struct work_struct *work)
{
	struct late *late = container_of(to_delayed_work(work), struct late, work);
	struct pair *p = late->test->priv;
	struct pair_packet *pk, *next;

	WRITE_ONCE(late->done, true);
	list_for_each_entry_safe(pk, next, &p->wire, list)
		pair_drop(pk);
}

static void late_init(struct kunit *test, struct late *late)
{
	late->test = test;
	late->done = false;
	INIT_DELAYED_WORK_ONSTACK(&late->work, late_drop);
}

static void late_end(struct late *late)
{
	flush_delayed_work(&late->work);
	destroy_delayed_work_on_stack(&late->work);
}

/*
 * The release of an rCxt and the destruction of a channel return only when no packet refers to the
 * pages of a write, because the program may reuse its buffer after the call. The release of an rCxt
 * without a write does not wait.
 */
static void release_waits_for_pages(struct kunit *test)
{
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan;
	struct late late;
	u32 i;

	p->zcopy = true;
	for (i = 0; i < 2; i++) {
		chan_transfer(a, NHCA_WR_CH_WRITE, 1, 2 * PAIR_SEG, BOTH);
		chan_expect(test, a, NHCA_WC_CH_LOCAL, IB_WC_SUCCESS);
		late_init(test, &late);
		if (i) {
			schedule_delayed_work(&late.work, HZ / 2);
			chan_destroy(a);
		} else {
			/*
			 * if this release waited for the packets of the write, it would last for a
			 * minute
			 */
			schedule_delayed_work(&late.work, 60 * HZ);
			KUNIT_EXPECT_EQ(test, nhca_channel_release(a->ch, a->ids + 1, 1), 0);
			KUNIT_EXPECT_FALSE(test, READ_ONCE(late.done));
			cancel_delayed_work_sync(&late.work);
			schedule_delayed_work(&late.work, HZ / 2);
			KUNIT_EXPECT_EQ(test, nhca_channel_release(a->ch, a->ids, 1), 0);
			KUNIT_EXPECT_EQ(test, nhca_channel_acquire(a->ch, a->ids, 2), 0);
		}
		KUNIT_EXPECT_TRUE(test, READ_ONCE(late.done));
		late_end(&late);
	}
}

/* If the rCxt of a write is released before all packets are sent, no more packets are sent. */
static void release_while_sent(struct kunit *test)
{
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan;
	u32 sent;

	p->charge = true;
	chan_transfer(a, NHCA_WR_CH_WRITE, 1, 100 * PAIR_SEG, BOTH);
	sent = p->sent;
	KUNIT_EXPECT_LT(test, sent, 100);
	KUNIT_EXPECT_EQ(test, nhca_channel_release(a->ch, a->ids, 1), 0);
	pair_settle(test);
	KUNIT_EXPECT_EQ(test, p->sent, sent);
	chan_expect(test, a, NHCA_WC_CH_LOCAL, IB_WC_WR_FLUSH_ERR);
	KUNIT_EXPECT_EQ(test, nhca_channel_state(a->ch), IB_QPS_RTS);
	KUNIT_EXPECT_EQ(test, nhca_channel_acquire(a->ch, a->ids, 1), 0);
}

/* ---- errors, recovery, destruction ---- */

/*
 * A failed channel ends all its transfers. A write is flushed only when no packet refers to its
 * pages.
 */
static void error_ends_transfers(struct kunit *test)
{
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan;

	p->charge = true;
	p->zcopy = true;
	chan_transfer(a, NHCA_WR_CH_WRITE, 1, 100 * PAIR_SEG, BOTH);
	chan_transfer(a, NHCA_WR_CH_WRITE, 2, 10, BOTH);
	local_bh_disable();
	nhca_channel_set_error(a->ch, NHCA_CH_ERR_DEVICE);
	local_bh_enable();
	KUNIT_EXPECT_EQ(test, a->fatal, 1);
	KUNIT_EXPECT_TRUE(test, list_empty(&a->ch->sending));
	KUNIT_EXPECT_FALSE(test, list_empty(&a->ch->ended));
	KUNIT_EXPECT_TRUE(test, chan_idle(a));
	while (!list_empty(&p->wire))
		pair_drop(list_first_entry(&p->wire, struct pair_packet, list));
	KUNIT_EXPECT_EQ(test, chan_expect(test, a, NHCA_WC_CH_LOCAL, IB_WC_WR_FLUSH_ERR).wr_id,
			chan_wr_id(0));
	KUNIT_EXPECT_EQ(test, chan_expect(test, a, NHCA_WC_CH_LOCAL, IB_WC_WR_FLUSH_ERR).wr_id,
			chan_wr_id(1));
	KUNIT_EXPECT_TRUE(test, chan_idle(a));
	KUNIT_EXPECT_EQ(test, p->sent, 64);
}

/*
 * A failed channel flushes at most NHCA_CH_FORGET work requests in a turn, whatever the quantum is.
 * Each work request that is flushed costs one unit.
 */
static void error_flushes_in_turns(struct kunit *test)
{
	const struct nhca_create_channel_cmd cmd = { .job = PAIR_JOB, .frames = 16, .quantum = 1 };
	struct pair *p = test->priv;
	struct chan *c = chan_new(test, &p->end[0], THIRD, 512);
	u32 budget, turns = 0, all = 0, most = 0, wrong = 0, n;
	struct nhca_cqe cqe;
	bool more;

	c->cap.max_send_wr = FLUSHED;
	KUNIT_ASSERT_EQ(test, chan_create(c, &cmd), 0);
	for (n = 0; n < FLUSHED; n++) {
		chan_wqe(c, NHCA_WR_CH_PACKET);
		chan_push(c);
	}
	local_bh_disable();
	rcu_read_lock();
	nhca_channel_set_error(c->ch, NHCA_CH_ERR_DEVICE);
	/* only this test gives the channel turns */
	nhca_drr_close(c->ch);
	do {
		budget = 2 * FLUSHED;
		more = nhca_send_quantum(c->ch, &budget);
		for (n = 0; chan_poll(c, false, &cqe); n++)
			wrong += cqe.wr_id != chan_wr_id(all + n);
		/*
		 * check the cost of the turn, and whether the turn reports that work requests are
		 * left
		 */
		wrong += 2 * FLUSHED - budget != max(n, 1U);
		wrong += more != (n == NHCA_CH_FORGET);
		most = max(most, n);
		all += n;
	} while (more && ++turns < FLUSHED);
	rcu_read_unlock();
	local_bh_enable();
	KUNIT_EXPECT_EQ(test, most, NHCA_CH_FORGET);
	KUNIT_EXPECT_EQ(test, wrong, 0);
	KUNIT_EXPECT_EQ(test, all, FLUSHED);
}

/* Fill the flow of @b, and let @b accept @count reads of its peer, whose answers have to wait. */
static void many_answers(struct kunit *test, struct chan *b, u32 count)
{
	u64 *mine = kunit_kcalloc(test, count, sizeof(u64), GFP_KERNEL);
	u64 *theirs = kunit_kcalloc(test, count, sizeof(u64), GFP_KERNEL);
	struct pair *p = test->priv;
	struct chan *a = b->peer;
	struct pair_packet *pk, *next;
	struct nhca_send_wqe *wqe;
	struct nhca_sending *s;
	u32 i;

	KUNIT_ASSERT_TRUE(test, mine && theirs);
	KUNIT_ASSERT_EQ(test, nhca_channel_acquire(a->ch, mine, count), 0);
	KUNIT_ASSERT_EQ(test, nhca_channel_acquire(b->ch, theirs, count), 0);
	chan_transfer(a, NHCA_WR_CH_READ, 1, 1, 0);
	pair_settle(test);
	p->charge = true;
	chan_transfer(b, NHCA_WR_CH_WRITE, 2, 100 * PAIR_SEG, 0);
	p->charge = false;
	for (i = 0; i < count; i++) {
		wqe = chan_wqe(a, NHCA_WR_CH_READ);
		wqe->chan.local_rcxt = mine[i];
		wqe->chan.remote_rcxt = theirs[i];
		wqe->rcxt[0].total = 10;
		chan_bell(a);
	}
	list_for_each_entry_safe(pk, next, &p->wire, list) {
		if (pk->hdr.opcode != NHCA_RX_READ_REQUEST)
			continue;
		pair_rx(test, pk);
		pair_drop(pk);
	}
	i = 0;
	list_for_each_entry(s, &b->ch->sending, list)
		i += s->answer;
	KUNIT_EXPECT_EQ(test, i, count);
}

/* A failed channel also ends the answers to its peers, in several turns if there are many. */
static void error_ends_answers(struct kunit *test)
{
	struct pair *p = test->priv;
	struct chan *b = p->end[1].chan;
	struct nhca_av *av;

	many_answers(test, b, 140);
	av = b->ch->paths[0];
	KUNIT_ASSERT_NOT_NULL(test, av);
	/* the path cache has one reference, and each of the 140 answers has one */
	KUNIT_EXPECT_EQ(test, refcount_read(&av->ref), 141);
	local_bh_disable();
	nhca_channel_set_error(b->ch, NHCA_CH_ERR_DEVICE);
	local_bh_enable();
	KUNIT_EXPECT_TRUE(test, list_empty(&b->ch->sending));
	KUNIT_EXPECT_EQ(test, refcount_read(&av->ref), 1);
	chan_expect(test, b, NHCA_WC_CH_LOCAL, IB_WC_WR_FLUSH_ERR);
}

/* Destruction frees answers in progress, and answers that the send engine has not begun. */
static void destroy_with_answers(struct kunit *test)
{
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan, *b = p->end[1].chan;
	struct nhca_av *av, *mine;
	struct nhca_send_wqe *wqe;

	many_answers(test, b, 3);
	nhca_drr_close(b->ch);
	wqe = chan_wqe(a, NHCA_WR_CH_READ);
	wqe->chan.local_rcxt = a->ids[1];
	wqe->chan.remote_rcxt = b->ids[1];
	chan_bell(a);
	pair_rx(test, list_last_entry(&p->wire, struct pair_packet, list));
	KUNIT_EXPECT_FALSE(test, list_empty(&b->ch->requested));
	av = b->ch->paths[0];
	mine = xa_load(&b->end->dev->ah_ids, PAIR_AH);
	KUNIT_EXPECT_EQ(test, refcount_read(&mine->ref), 2);
	refcount_inc(&av->ref);
	chan_destroy(b);
	KUNIT_EXPECT_EQ(test, refcount_read(&av->ref), 1);
	KUNIT_EXPECT_EQ(test, refcount_read(&mine->ref), 1);
	nhca_av_put(av);
	KUNIT_EXPECT_EQ(test, p->end[1].dev->rcxt->pool.free, PAIR_RCXTS);
	/* packets to the destroyed channel find no channel */
	pair_rx(test, list_last_entry(&p->wire, struct pair_packet, list));
	KUNIT_EXPECT_EQ(test, pair_dev_count(&p->end[1], NHCA_CNT_RX_NO_QP), 1);
}

/*
 * A recovery puts all channels of the device into the error state and releases their rCxts.
 * Channels of other devices, and channels that are created afterwards, work. Packets that were sent
 * before the recovery place no byte.
 */
static void recovery(struct kunit *test)
{
	const struct nhca_create_channel_cmd cmd = { .job = PAIR_JOB, .frames = 16 };
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan, *b = p->end[1].chan, *c;
	struct nhca_dev *dev = p->end[1].dev;
	struct nhca_channel_info info;
	struct pair_packet *old;
	u16 count = nhca_rcxt_recoveries(dev);
	u64 id;

	c = chan_make(test, &p->end[1], THIRD, PAIR_JOB);
	chan_transfer(a, NHCA_WR_CH_WRITE, 1, 10, BOTH);
	old = pair_first(test, NHCA_RX_WRITE);
	KUNIT_EXPECT_EQ(test, nhca_rcxt_recover(dev, NHCA_CH_ERR_RECOVERED), (u16)(count + 1));
	KUNIT_EXPECT_EQ(test, nhca_rcxt_recoveries(dev), (u16)(count + 1));
	KUNIT_EXPECT_EQ(test, dev->rcxt->pool.free, PAIR_RCXTS);
	nhca_channel_query(b->ch, &info);
	KUNIT_EXPECT_EQ(test, info.reason, NHCA_CH_ERR_RECOVERED);
	KUNIT_EXPECT_EQ(test, info.state, IB_QPS_ERR);
	KUNIT_EXPECT_EQ(test, info.rcxts, 0);
	KUNIT_EXPECT_EQ(test, info.recoveries, (u16)(count + 1));
	KUNIT_EXPECT_TRUE(test, b->fatal == 1 && c->fatal == 1 && !a->fatal);
	KUNIT_EXPECT_EQ(test, nhca_channel_acquire(b->ch, &id, 1), -EIO);
	pair_rx(test, old);
	KUNIT_EXPECT_EQ(test, chan_count(b, NHCA_CH_DROP_ERROR), 1);
	/*
	 * a new channel with this QPN has another key; even if the packet has the new key, its rCxt
	 * is not valid any more
	 */
	chan_destroy(b);
	KUNIT_ASSERT_EQ(test, chan_create(b, &cmd), 0);
	KUNIT_ASSERT_EQ(test, nhca_channel_acquire(b->ch, b->ids, CHAN_IDS), 0);
	pair_rx(test, old);
	KUNIT_EXPECT_EQ(test, chan_count(b, NHCA_CH_DROP_KEY), 1);
	old->hdr.rx.key = lower_32_bits(b->resp.key);
	pair_rx(test, old);
	KUNIT_EXPECT_EQ(test, chan_count(b, NHCA_CH_DROP_RCXT_KEY) +
			chan_count(b, NHCA_CH_DROP_NO_RCXT), 1);
	pair_drop(old);
	KUNIT_EXPECT_TRUE(test, pair_clear(b->end, 0, 0));
	pair_fill(a->end->bytes, 10, 1);
	chan_transfer(a, NHCA_WR_CH_WRITE, 2, 10, BOTH);
	pair_settle(test);
	chan_expect(test, b, NHCA_WC_CH_REMOTE_WRITE, IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(test, pair_is(b->end->bytes, 10, 1));
}

/* Creation reports each error, and a channel whose creation has failed is not found. */
static void create_fails(struct kunit *test)
{
	struct nhca_create_channel_cmd cmd = { .job = PAIR_JOB + 3, .frames = 16 };
	struct pair *p = test->priv;
	struct chan *c = chan_new(test, &p->end[0], THIRD, 16);
	struct nhca_dev *fail = kunit_kzalloc(test, sizeof(*fail), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, fail);
	KUNIT_EXPECT_EQ(test, nhca_rcxt_dev_init(fail, 0), -EINVAL);
	KUNIT_EXPECT_NULL(test, fail->rcxt);
	nhca_rcxt_dev_exit(fail);
	cmd.flags = 1;
	KUNIT_EXPECT_EQ(test, chan_create(c, &cmd), -EINVAL);
	cmd.flags = 0;
	cmd.frames = NHCA_MAX_FRAMES + 1;
	KUNIT_EXPECT_EQ(test, chan_create(c, &cmd), -EINVAL);
	cmd.frames = 16;
	cmd.job = 0;
	KUNIT_EXPECT_EQ(test, chan_create(c, &cmd), -EINVAL);
	cmd.job = PAIR_JOB + 3;
	p->fail_ring = 1;
	KUNIT_EXPECT_EQ(test, chan_create(c, &cmd), -ENOMEM);
	p->fail_ring = 2;
	KUNIT_EXPECT_EQ(test, chan_create(c, &cmd), -ENOMEM);
	KUNIT_EXPECT_NULL(test, nhca_channel_find(THIRD));
	c->cap = (struct ib_qp_cap) { .max_send_sge = 7, .max_inline_data = 500 };
	KUNIT_EXPECT_EQ(test, chan_create(c, &cmd), 0);
	KUNIT_EXPECT_PTR_EQ(test, nhca_channel_find(THIRD), c->ch);
	/* each capacity is at least the requested capacity */
	KUNIT_EXPECT_EQ(test, c->cap.max_send_wr, 1);
	KUNIT_EXPECT_GE(test, c->cap.max_send_sge, 7);
	KUNIT_EXPECT_GE(test, c->cap.max_inline_data, 500);
	KUNIT_EXPECT_EQ(test, c->cap.max_recv_wr | c->cap.max_recv_sge, 0);
	KUNIT_EXPECT_EQ(test, c->resp.sq.entries, 1);
	KUNIT_EXPECT_EQ(test, c->resp.fifo.entries, 16);
	KUNIT_EXPECT_EQ(test, c->resp.fifo.stride, NHCA_FRAME_SIZE);
	chan_destroy(c);
	KUNIT_EXPECT_NULL(test, nhca_channel_find(THIRD));
}

/* ---- many peers ---- */

/*
 * Each answer goes to the address from which the request came. The path cache has 8 entries.
 * When it is full, only one of 64 misses replaces an entry.
 */
static void answers_to_many_peers(struct kunit *test)
{
	struct pair *p = test->priv;
	struct chan *a = p->end[0].chan, *b = p->end[1].chan;
	struct pair_packet *pk, *answer;
	struct nhca_av *first = NULL;
	u32 i;

	chan_wqe(a, NHCA_WR_CH_FENCE);
	chan_bell(a);
	pk = pair_first(test, NHCA_RX_FENCE);
	for (i = 0; i < NHCA_CH_PATHS + 2 * NHCA_CH_PATH_MISSES; i++) {
		pk->saddr = PAIR_ADDR + 10 + i;
		pair_rx(test, pk);
		answer = list_last_entry(&p->wire, struct pair_packet, list);
		KUNIT_ASSERT_EQ(test, answer->hdr.opcode, NHCA_RX_STATUS);
		KUNIT_EXPECT_EQ(test, answer->daddr, pk->saddr);
		KUNIT_EXPECT_EQ(test, answer->saddr, PAIR_ADDR + 1);
		pair_drop(answer);
		if (i == NHCA_CH_PATHS - 1)
			first = b->ch->paths[0];
		if (i == NHCA_CH_PATHS + NHCA_CH_PATH_MISSES - 2)
			KUNIT_EXPECT_PTR_EQ(test, b->ch->paths[0], first);
	}
	KUNIT_EXPECT_EQ(test, b->ch->next_path, 2);
	KUNIT_EXPECT_EQ(test, b->ch->path_misses, 2 * NHCA_CH_PATH_MISSES);
	/* a peer in the cache is no miss */
	pk->saddr = PAIR_ADDR + 10 + NHCA_CH_PATHS - 1;
	pair_rx(test, pk);
	KUNIT_EXPECT_EQ(test, b->ch->path_misses, 2 * NHCA_CH_PATH_MISSES);
	KUNIT_EXPECT_EQ(test, chan_count(b, NHCA_CH_FENCED), i + 1);
}

static struct kunit_case rcxt_drr_cases[] = {
	KUNIT_CASE(turns_quantum),
	KUNIT_CASE(turns_count_bytes),
	KUNIT_CASE(turns_stretch),
	KUNIT_CASE(turns_pass),
	KUNIT_CASE(turns_again),
	KUNIT_CASE(rcxts_all_or_none),
	KUNIT_CASE(rcxts_of_user),
	KUNIT_CASE(release_waits_for_pages),
	KUNIT_CASE(release_while_sent),
	KUNIT_CASE(error_ends_transfers),
	KUNIT_CASE(error_ends_answers),
	KUNIT_CASE(error_flushes_in_turns),
	KUNIT_CASE(destroy_with_answers),
	KUNIT_CASE(recovery),
	KUNIT_CASE(create_fails),
	KUNIT_CASE(answers_to_many_peers),
	{}
};

static struct kunit_suite rcxt_drr_suite = {
	.name = "nhca_rcxt_drr",
	.init = pair_init,
	.exit = pair_exit,
	.test_cases = rcxt_drr_cases,
};

kunit_test_suite(rcxt_drr_suite);
