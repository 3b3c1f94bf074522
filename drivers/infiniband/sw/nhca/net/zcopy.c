// SPDX-License-Identifier: GPL-2.0
/* Zero-copy references to consumer pages. */
#include <linux/atomic.h>
#include <linux/mm.h>
#include <linux/net.h>
#include <linux/rculist.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/wait.h>

#include "../compat.h"
#include "flow.h"
#include "frags.h"
#include "zcopy.h"
#include "../memory/memory.h"

/* flow.c converts the ubuf_info of an skb to the reference */
static_assert(!offsetof(struct nhca_zcopy, uarg));

/* jiffies: the limit for all waits of a dying process together */
#define NHCA_ZCOPY_DYING	HZ

/* queues of all flows; RCU readers */
static LIST_HEAD(nhca_zcopy_queues);
static DEFINE_SPINLOCK(nhca_zcopy_queues_lock);
/* the current generation; a wait increments it, and waits for references of earlier ones */
static atomic64_t nhca_zcopy_gen = ATOMIC64_INIT(0);
static DECLARE_WAIT_QUEUE_HEAD(nhca_zcopy_waiters);

void nhca_zcopy_queue_add(struct nhca_zcopy_queue *q, struct nhca_txq *domain)
{
	unsigned long flags;

	spin_lock_init(&q->lock);
	INIT_LIST_HEAD(&q->list);
	q->domain = domain;
	spin_lock_irqsave(&nhca_zcopy_queues_lock, flags);
	list_add_rcu(&q->node, &nhca_zcopy_queues);
	spin_unlock_irqrestore(&nhca_zcopy_queues_lock, flags);
}

void nhca_zcopy_queue_del(struct nhca_zcopy_queue *q)
{
	unsigned long flags;

	WARN_ON(!list_empty(&q->list));
	spin_lock_irqsave(&nhca_zcopy_queues_lock, flags);
	list_del_rcu(&q->node);
	spin_unlock_irqrestore(&nhca_zcopy_queues_lock, flags);
}

void nhca_zcopy_unref(struct nhca_zcopy *z)
{
	struct nhca_flow *flow = z->flow;

	if (!refcount_dec_and_test(&z->ref))
		return;
	kfree(z);
	nhca_flow_put(flow);
}

/* The last skb with the pages was freed, or its pages were copied: release the reference. */
static void nhca_zcopy_release(struct nhca_zcopy *z)
{
	struct nhca_zcopy_queue *q = nhca_flow_zcopy(z->flow);
	unsigned long flags;
	bool awaited;
	bool kick;

	spin_lock_irqsave(&q->lock, flags);
	list_del(&z->list);
	kick = q->waits;
	q->waits = false;
	/*
	 * If no wait began after this reference, wake nobody: traffic on other netdevs must not
	 * wake a waiter for a netdev that holds its packets. A waiter that has found this reference
	 * held the lock earlier, and had then already increased the generation and joined the wait
	 * queue.
	 */
	awaited = z->gen != atomic64_read(&nhca_zcopy_gen);
	spin_unlock_irqrestore(&q->lock, flags);

	if (awaited && wq_has_sleeper(&nhca_zcopy_waiters))
		wake_up_all(&nhca_zcopy_waiters);
	if (kick) {
		rcu_read_lock();
		nhca_flow_run(z->flow);
		rcu_read_unlock();
	}
	nhca_zcopy_unref(z);
}

static void nhca_zcopy_complete(struct sk_buff *skb, struct ubuf_info *uarg, bool success)
{
	if (refcount_dec_and_test(&uarg->refcnt))
		nhca_zcopy_release(container_of(uarg, struct nhca_zcopy, uarg));
}

#ifdef NHCA_OLD_UBUF
static void nhca_zcopy_set_ops(struct ubuf_info *uarg)
{
	uarg->callback = nhca_zcopy_complete;
}
#else
static const struct ubuf_info_ops nhca_zcopy_ops = {
	.complete = nhca_zcopy_complete,
};

static void nhca_zcopy_set_ops(struct ubuf_info *uarg)
{
	uarg->ops = &nhca_zcopy_ops;
}
#endif

struct nhca_zcopy *nhca_zcopy_new(struct nhca_flow *flow)
{
	struct nhca_zcopy_queue *q = nhca_flow_zcopy(flow);
	struct nhca_zcopy *z = kmalloc(sizeof(*z), GFP_ATOMIC | __GFP_NOWARN);
	unsigned long flags;

	if (!z)
		return NULL;
	nhca_zcopy_set_ops(&z->uarg);
	/* references count the pages, so skb_orphan_frags() must not copy them */
	z->uarg.flags = SKBFL_ZEROCOPY_FRAG | SKBFL_DONT_ORPHAN;
	refcount_set(&z->uarg.refcnt, 1);
	refcount_set(&z->ref, 1);
	nhca_flow_get(flow);
	z->flow = flow;
	z->packets = 0;

	spin_lock_irqsave(&q->lock, flags);
	z->seq = ++q->seq;
	z->gen = atomic64_read(&nhca_zcopy_gen);
	list_add_tail(&z->list, &q->list);
	spin_unlock_irqrestore(&q->lock, flags);
	return z;
}

u32 nhca_zcopy_pages(struct nhca_zcopy **z, struct nhca_flow *flow, const struct nhca_iter *it,
		     const struct nhca_seg *seg, struct nhca_piece *p)
{
	u32 left = seg->len, off = offset_in_page(seg->addr), n;
	struct nhca_piece *end = p;
	struct page *page;

	/* a dma-buf is not in the direct map, and a slab page must not be in a fragment */
	if (is_vmalloc_addr(seg->addr) || !sendpage_ok(nhca_seg_page(seg)) || !nhca_iter_zcopy(it))
		return 0;
	if (!*z)
		*z = nhca_zcopy_new(flow);
	if (!*z)
		return 0;
	for (page = nhca_seg_page(seg); left; left -= n, off = 0, page++) {
		n = min_t(u32, left, PAGE_SIZE - off);
		get_page(page);
		*end++ = (struct nhca_piece) { page, off, n };
	}
	return end - p;
}

void nhca_zcopy_put(struct nhca_zcopy *z)
{
	if (z)
		nhca_zcopy_complete(NULL, &z->uarg, true);
}

u32 nhca_zcopy_seq(const struct nhca_flow *flow)
{
	return nhca_flow_zcopy((struct nhca_flow *)flow)->seq;
}

bool nhca_zcopy_released(struct nhca_flow *flow, u32 seq)
{
	struct nhca_zcopy_queue *q = nhca_flow_zcopy(flow);
	struct nhca_zcopy *z;
	unsigned long flags;

	/*
	 * list_empty_careful() is an acquire. It pairs with refcount_dec_and_test() before the
	 * list_del() in nhca_zcopy_release(), so no skb reads the pages when the caller reuses
	 * them.
	 */
	if (likely(list_empty_careful(&q->list)))
		return true;
	spin_lock_irqsave(&q->lock, flags);
	z = list_first_entry_or_null(&q->list, struct nhca_zcopy, list);
	if (z && (s32)(z->seq - seq) > 0)
		z = NULL;
	if (z)
		q->waits = true;
	spin_unlock_irqrestore(&q->lock, flags);
	return !z;
}

/**
 * struct nhca_zcopy_wait - references that a caller waits for
 * @queue:  of one flow; NULL: all flows of @domain
 * @domain: a device; NULL: all devices
 * @gen:    wait for references of earlier generations than this
 */
struct nhca_zcopy_wait {
	struct nhca_zcopy_queue *queue;
	struct nhca_txq *domain;
	u64 gen;
};

/* Return: true if @q has no reference of a generation before @gen. */
static bool nhca_zcopy_since(struct nhca_zcopy_queue *q, u64 gen)
{
	struct nhca_zcopy *z;
	unsigned long flags;
	bool since;

	if (list_empty_careful(&q->list))
		return true;
	spin_lock_irqsave(&q->lock, flags);
	z = list_first_entry_or_null(&q->list, struct nhca_zcopy, list);
	since = !z || z->gen >= gen;
	spin_unlock_irqrestore(&q->lock, flags);
	return since;
}

static bool nhca_zcopy_over(const struct nhca_zcopy_wait *w)
{
	struct nhca_zcopy_queue *q;
	bool over = true;

	if (w->queue)
		return nhca_zcopy_since(w->queue, w->gen);
	rcu_read_lock();
	list_for_each_entry_rcu(q, &nhca_zcopy_queues, node) {
		if (w->domain && q->domain != w->domain)
			continue;
		over = nhca_zcopy_since(q, w->gen);
		if (!over)
			break;
	}
	rcu_read_unlock();
	return over;
}

static bool nhca_zcopy_wait_for(const struct nhca_zcopy_wait *w, unsigned long *dying)
{
	long left;

	if (nhca_zcopy_over(w))
		return true;
	might_sleep();
	if (!dying) {
		wait_event(nhca_zcopy_waiters, nhca_zcopy_over(w));
		return true;
	}
	if (!(current->flags & (PF_EXITING | PF_KTHREAD)) &&
	    !wait_event_killable(nhca_zcopy_waiters, nhca_zcopy_over(w)))
		return true;

	if (!READ_ONCE(*dying))
		WRITE_ONCE(*dying, (jiffies + NHCA_ZCOPY_DYING) ?: 1);
	left = (long)(READ_ONCE(*dying) - jiffies);
	return wait_event_timeout(nhca_zcopy_waiters, nhca_zcopy_over(w), max(left, 0L));
}

bool nhca_zcopy_wait_flow(struct nhca_flow *flow, unsigned long *dying)
{
	const struct nhca_zcopy_wait w = {
		.queue = nhca_flow_zcopy(flow),
		.gen = atomic64_inc_return(&nhca_zcopy_gen),
	};

	return nhca_zcopy_wait_for(&w, dying);
}

bool nhca_zcopy_wait(struct nhca_txq *domain, unsigned long *dying)
{
	const struct nhca_zcopy_wait w = {
		.domain = domain,
		.gen = atomic64_inc_return(&nhca_zcopy_gen),
	};

	return nhca_zcopy_wait_for(&w, dying);
}
