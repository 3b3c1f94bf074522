// SPDX-License-Identifier: GPL-2.0
/*
 * The packet counts of devices and of their users. flow.c lets flows pause and resume by these
 * counts.
 *
 * A user's share prevents the flows of one user from filling the stack, so that other users can
 * send. But the stack may also hold packets for seconds, for example in the queue of a neighbour
 * that does not answer. If such packets counted for user and device, a few flows to a dead host
 * would stop all other flows of their user; and flows of the kernel, which have no share, would
 * stop the flows of all users. So packets that are stuck count only for their own flow.
 */
#include <linux/jiffies.h>
#include <linux/slab.h>

#include "../compat.h"
#include "../user.h"
#include "flow.h"
#include "net.h"
#include "txq.h"

/* interval in jiffies at which nhca_txq.age examines the flows in nhca_txq.active */
#define NHCA_TXQ_TICK		max(HZ / 50, 1)
/*
 * The packets of a flow are stuck if the stack has freed none of them for this number of jiffies,
 * or while it has freed NHCA_TXQ_HIGH packets of other flows of the device. A queue of
 * NHCA_TXQ_HIGH packets would have been sent by then. On a slow link this may take longer; the
 * device then has more packets in the stack for a while, up to NHCA_FLOW_HIGH of each flow.
 */
#define NHCA_TXQ_STUCK		max(HZ / 10, 1)
/*
 * maximum number of flows that one tick examines; if nhca_txq.active is longer, nhca_flow_list()
 * also removes idle flows from this list
 */
#define NHCA_TXQ_SCAN		512

static void txq_age(struct timer_list *t);

static struct nhca_txq *txq_make(int high)
{
	struct nhca_txq *q = kzalloc(sizeof(*q), GFP_KERNEL_ACCOUNT);

	if (!q)
		return NULL;
	refcount_set(&q->ref, 1);
	spin_lock_init(&q->lock);
	INIT_LIST_HEAD(&q->waiting[false]);
	INIT_LIST_HEAD(&q->waiting[true]);
	INIT_LIST_HEAD(&q->active);
	nhca_bh_init(&q->rest, nhca_txq_rest);
	timer_setup(&q->age, txq_age, 0);
	q->high = high;
	q->low = high / 2;
	return q;
}

struct nhca_txq *nhca_txq_create(void)
{
	return txq_make(NHCA_TXQ_HIGH);
}

void nhca_txq_put(struct nhca_txq *q)
{
	struct nhca_txq *device;

	while (q && refcount_dec_and_test(&q->ref)) {
		device = q->device;
		kfree_rcu(q, rcu);
		q = device;
	}
}

/* Make the count of a user's packets, unless the user has one. */
static int share_make(struct nhca_txq *device, struct nhca_user *user)
{
	u32 high = NHCA_TXQ_HIGH * READ_ONCE(nhca_user_share) / 1000;
	struct nhca_txq *share;

	if (READ_ONCE(user->packets))
		return 0;
	share = txq_make(max_t(u32, high, NHCA_FLOW_FEW));
	if (!share)
		return -ENOMEM;
	refcount_inc(&device->ref);
	share->device = device;
	WRITE_ONCE(user->packets_put, nhca_txq_put);
	/* if another CPU has stored a count for the user in the meantime, use that count */
	if (cmpxchg(&user->packets, NULL, share))
		nhca_txq_put(share);
	return 0;
}

int nhca_flow_share(struct nhca_flow *flow, struct nhca_user *user)
{
	int err;

	if (!user)
		return 0;
	err = share_make(flow->txq, user);
	if (err)
		return err;
	flow->user = nhca_user_hold(user);
	flow->share = user->packets;
	return 0;
}

/* ---- packets that are stuck ---- */

/* Consider all packets of a flow as stuck. Return: number of packets that were not stuck before. */
static unsigned int flow_stick(struct nhca_flow *flow)
{
	s64 old = atomic64_read(&flow->inflight);
	u64 more;

	do {
		if (nhca_flow_count(old) <= nhca_flow_stuck(old))
			return 0;
		more = nhca_flow_count(old) - nhca_flow_stuck(old);
	} while (!atomic64_try_cmpxchg(&flow->inflight, &old,
				       old + (more << NHCA_FLOW_STUCK_SHIFT)));
	return more;
}

/* Return: true if the device counts packets of @flow. */
static bool flow_counts(const struct nhca_flow *flow)
{
	s64 inflight = atomic64_read(&flow->inflight);

	return nhca_flow_count(inflight) > nhca_flow_stuck(inflight);
}

/* Add a flow to @q->active. @q->lock is held. */
static void txq_list(struct nhca_txq *q, struct nhca_flow *flow)
{
	lockdep_assert_held(&q->lock);
	list_add_tail(&flow->active, &q->active);
	q->nactive++;
	WRITE_ONCE(flow->moved, true);
	WRITE_ONCE(flow->listed, true);
}

/*
 * Move a flow to the end of @q->active, or remove it if the device counts none of its packets.
 * @q->lock is held. Return: true if the flow is still in the list.
 */
static bool txq_rotate(struct nhca_txq *q, struct nhca_flow *flow)
{
	lockdep_assert_held(&q->lock);
	if (flow_counts(flow)) {
		list_move_tail(&flow->active, &q->active);
		return true;
	}
	list_del_init(&flow->active);
	q->nactive--;
	WRITE_ONCE(flow->listed, false);
	/* pairs with the atomic operations in nhca_flow_charge(), which then reads @listed */
	smp_mb();
	if (flow_counts(flow))
		txq_list(q, flow);
	return flow->listed;
}

/* nhca_txq_age_start() with @q->lock held */
static void age_start(struct nhca_txq *q)
{
	lockdep_assert_held(&q->lock);
	if (q->aging)
		return;
	q->aging = true;
	refcount_inc(&q->ref);
	nhca_flows_get();
	mod_timer(&q->age, jiffies + NHCA_TXQ_TICK);
}

void nhca_txq_age_start(struct nhca_txq *q)
{
	unsigned long flags;

	spin_lock_irqsave(&q->lock, flags);
	age_start(q);
	spin_unlock_irqrestore(&q->lock, flags);
}

void nhca_flow_list(struct nhca_flow *flow)
{
	struct nhca_txq *q = flow->txq;
	unsigned long flags;
	int i;

	spin_lock_irqsave(&q->lock, flags);
	if (!flow->listed)
		txq_list(q, flow);
	/* in a long list examine two other flows, so that idle flows do not stay in the list */
	for (i = 0; i < 2 && q->nactive > NHCA_TXQ_SCAN; i++)
		txq_rotate(q, list_first_entry(&q->active, struct nhca_flow, active));
	/* waiting flows have started @age, but @age may have stopped before this flow was listed */
	if (nhca_txq_waiting(q, false))
		age_start(q);
	spin_unlock_irqrestore(&q->lock, flags);
}

void nhca_flow_unlist(struct nhca_flow *flow)
{
	struct nhca_txq *q = flow->txq;
	unsigned long flags;

	if (!READ_ONCE(flow->listed))
		return;
	spin_lock_irqsave(&q->lock, flags);
	if (flow->listed) {
		list_del_init(&flow->active);
		q->nactive--;
	}
	spin_unlock_irqrestore(&q->lock, flags);
}

/*
 * Examine the first flow of @q->active. @q->lock is held.
 * Return: the flow with a reference, if its packets are stuck; otherwise NULL.
 */
static struct nhca_flow *txq_examine(struct nhca_txq *q)
{
	u32 released = READ_ONCE(q->released);
	struct nhca_flow *flow;

	lockdep_assert_held(&q->lock);
	flow = list_first_entry_or_null(&q->active, struct nhca_flow, active);
	if (!flow || !txq_rotate(q, flow))
		return NULL;
	if (READ_ONCE(flow->moved)) {
		WRITE_ONCE(flow->moved, false);
		flow->since = jiffies;
		flow->base = released;
		return NULL;
	}
	if (released - flow->base < NHCA_TXQ_HIGH &&
	    time_before(jiffies, flow->since + NHCA_TXQ_STUCK))
		return NULL;
	return refcount_inc_not_zero(&flow->ref) ? flow : NULL;
}

/*
 * nhca_txq.age: let packets that are stuck count only for their flow. The flow pauses as before,
 * and its packets keep their order. But other flows do not wait for these packets.
 */
static void txq_age(struct timer_list *t)
{
	struct nhca_txq *q = timer_container_of(q, t, age);
	unsigned int n = min_t(unsigned int, READ_ONCE(q->nactive), NHCA_TXQ_SCAN);
	struct nhca_flow *flow;
	unsigned int packets;
	unsigned long flags;
	bool more;

	rcu_read_lock();
	for (; n; n--) {
		spin_lock_irqsave(&q->lock, flags);
		flow = txq_examine(q);
		spin_unlock_irqrestore(&q->lock, flags);
		if (!flow)
			continue;
		packets = flow_stick(flow);
		if (packets)
			nhca_flow_release_count(flow, packets);
		nhca_flow_put(flow);
	}
	rcu_read_unlock();
	spin_lock_irqsave(&q->lock, flags);
	more = !list_empty(&q->active);
	q->aging = more;
	if (more)
		mod_timer(&q->age, jiffies + NHCA_TXQ_TICK);
	spin_unlock_irqrestore(&q->lock, flags);
	if (more)
		return;
	nhca_txq_put(q);
	nhca_flows_put();
}
