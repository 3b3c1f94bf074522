// SPDX-License-Identifier: GPL-2.0
/* Page references: lists the references of packets to pages of a consumer, and waits for them. */
#include <linux/atomic.h>
#include <linux/jiffies.h>
#include <linux/pid.h>
#include <linux/rculist.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/wait.h>

#include "pageref.h"

/* limit in jiffies for all waits together for the pages of an owner that has died */
#define NHCA_PAGEREF_DYING	HZ
/* jiffies between two checks whether the process that owns the pages has died */
#define NHCA_PAGEREF_CHECK	(HZ / 4)

/* queues of all flows; RCU readers */
static LIST_HEAD(pageref_queues);
static DEFINE_SPINLOCK(pageref_queues_lock);
/* the current generation; a wait increments it, and waits for references of earlier generations */
static atomic64_t pageref_gen = ATOMIC64_INIT(0);
static DECLARE_WAIT_QUEUE_HEAD(pageref_waiters);

void nhca_pageref_queue_add(struct nhca_pageref_queue *q, struct nhca_txq *domain)
{
	unsigned long flags;

	spin_lock_init(&q->lock);
	INIT_LIST_HEAD(&q->list);
	q->domain = domain;
	spin_lock_irqsave(&pageref_queues_lock, flags);
	list_add_rcu(&q->node, &pageref_queues);
	spin_unlock_irqrestore(&pageref_queues_lock, flags);
}

void nhca_pageref_queue_del(struct nhca_pageref_queue *q)
{
	unsigned long flags;

	WARN_ON(!list_empty(&q->list));
	spin_lock_irqsave(&pageref_queues_lock, flags);
	list_del_rcu(&q->node);
	spin_unlock_irqrestore(&pageref_queues_lock, flags);
}

void nhca_pageref_begin(struct nhca_pageref_queue *q, struct nhca_pageref *ref)
{
	unsigned long flags;

	spin_lock_irqsave(&q->lock, flags);
	ref->seq = q->seq + 1;
	/* nhca_zcopy_seq() reads @q->seq without the lock */
	WRITE_ONCE(q->seq, ref->seq);
	ref->gen = atomic64_read(&pageref_gen);
	list_add_tail(&ref->list, &q->list);
	spin_unlock_irqrestore(&q->lock, flags);
}

bool nhca_pageref_end(struct nhca_pageref_queue *q, struct nhca_pageref *ref)
{
	unsigned long flags;
	bool awaited;
	bool kick;

	spin_lock_irqsave(&q->lock, flags);
	list_del(&ref->list);
	kick = q->waits;
	q->waits = false;
	/*
	 * If no wait began after this reference, wake nobody, because a waiter does not wait for
	 * this reference.  If a waiter has found this reference, the waiter had the lock earlier,
	 * after it had increased the generation and joined the wait queue.
	 */
	awaited = ref->gen != atomic64_read(&pageref_gen);
	spin_unlock_irqrestore(&q->lock, flags);

	if (awaited && wq_has_sleeper(&pageref_waiters))
		wake_up_all(&pageref_waiters);
	return kick;
}

bool nhca_pageref_released(struct nhca_pageref_queue *q, u32 seq)
{
	struct nhca_pageref *ref;
	unsigned long flags;

	/*
	 * list_empty_careful() is an acquire.  It pairs with refcount_dec_and_test() in
	 * net/zcopy.c, which comes before the list_del() in nhca_pageref_end().  So no skb reads
	 * the pages when the caller reuses them.
	 */
	if (likely(list_empty_careful(&q->list)))
		return true;
	spin_lock_irqsave(&q->lock, flags);
	ref = list_first_entry_or_null(&q->list, struct nhca_pageref, list);
	if (ref && (s32)(ref->seq - seq) > 0)
		ref = NULL;
	if (ref)
		q->waits = true;
	spin_unlock_irqrestore(&q->lock, flags);
	return !ref;
}

/**
 * struct pageref_wait - references that a caller waits for
 * @queue:  queue of one flow; NULL: the queues of all flows of @domain
 * @domain: a device; NULL: all devices
 * @gen:    wait for references of earlier generations than this
 */
struct pageref_wait {
	struct nhca_pageref_queue *queue;
	struct nhca_txq *domain;
	u64 gen;
};

/* Return: true if @q has no reference of a generation before @gen. */
static bool pageref_since(struct nhca_pageref_queue *q, u64 gen)
{
	struct nhca_pageref *ref;
	unsigned long flags;
	bool since;

	if (list_empty_careful(&q->list))
		return true;
	spin_lock_irqsave(&q->lock, flags);
	ref = list_first_entry_or_null(&q->list, struct nhca_pageref, list);
	since = !ref || ref->gen >= gen;
	spin_unlock_irqrestore(&q->lock, flags);
	return since;
}

static bool pageref_over(const struct pageref_wait *w)
{
	struct nhca_pageref_queue *q;
	bool over = true;

	if (w->queue)
		return pageref_since(w->queue, w->gen);
	rcu_read_lock();
	list_for_each_entry_rcu(q, &pageref_queues, node) {
		if (w->domain && q->domain != w->domain)
			continue;
		over = pageref_since(q, w->gen);
		if (!over)
			break;
	}
	rcu_read_unlock();
	return over;
}

void nhca_pageref_owner_init(struct nhca_pageref_owner *owner)
{
	mmgrab(current->mm);
	owner->mm = current->mm;
	owner->tgid = get_pid(task_tgid(current));
	owner->deadline = 0;
}

void nhca_pageref_owner_exit(struct nhca_pageref_owner *owner)
{
	mmdrop(owner->mm);
	put_pid(owner->tgid);
}

/* Return: true if the caller's process is being killed, or exits. */
static bool pageref_caller_dies(void)
{
	return fatal_signal_pending(current) || current->signal->flags & SIGNAL_GROUP_EXIT ||
	       !atomic_read(&current->signal->live);
}

/*
 * Return: true if the owner is dead, or if the owner is the caller's process and is being killed or
 * exits.  In this case the address space may still have other users, such as a worker of vhost.
 * The caller must not wait for these users, because they may end only after its exit.
 */
static bool pageref_owner_dies(const struct nhca_pageref_owner *owner)
{
	return !atomic_read(&owner->mm->mm_users) ||
	       (owner->tgid == task_tgid(current) && pageref_caller_dies());
}

static bool pageref_wait_for(const struct pageref_wait *w, struct nhca_pageref_owner *owner)
{
	long left;

	if (pageref_over(w))
		return true;
	might_sleep();
	if (!owner) {
		wait_event(pageref_waiters, pageref_over(w));
		return true;
	}
	/* this process may write to the pages after its return, so it waits without a limit */
	if (!(current->flags & (PF_EXITING | PF_KTHREAD)) &&
	    !wait_event_killable(pageref_waiters, pageref_over(w)))
		return true;

	/* the owner may still live, if this task removes a device that the owner uses */
	while (!pageref_owner_dies(owner)) {
		if (wait_event_idle_timeout(pageref_waiters, pageref_over(w), NHCA_PAGEREF_CHECK))
			return true;
	}
	if (!READ_ONCE(owner->deadline))
		WRITE_ONCE(owner->deadline, (jiffies + NHCA_PAGEREF_DYING) ?: 1);
	left = (long)(READ_ONCE(owner->deadline) - jiffies);
	return wait_event_timeout(pageref_waiters, pageref_over(w), max(left, 0L));
}

bool nhca_pageref_wait_queue(struct nhca_pageref_queue *q, struct nhca_pageref_owner *owner)
{
	const struct pageref_wait w = {
		.queue = q,
		.gen = atomic64_inc_return(&pageref_gen),
	};

	return pageref_wait_for(&w, owner);
}

bool nhca_pageref_wait(struct nhca_txq *domain, struct nhca_pageref_owner *owner)
{
	const struct pageref_wait w = {
		.domain = domain,
		.gen = atomic64_inc_return(&pageref_gen),
	};

	return pageref_wait_for(&w, owner);
}
