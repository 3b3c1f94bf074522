// SPDX-License-Identifier: GPL-2.0
/* This file counts the references of packets to consumer pages, and waits for their release. */
#include <linux/jiffies.h>
#include <linux/mutex.h>
#include <linux/pid.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/wait_bit.h>
#include <linux/xarray.h>

#include "../nhca.h"
#include "pageref.h"

/* interval in jiffies at which a waiting task checks whether the owner of the pages has died */
#define NHCA_PAGEREF_CHECK	(HZ / 4)

/* ---- references ---- */

void nhca_pageref_queue_init(struct nhca_pageref_queue *q)
{
	spin_lock_init(&q->lock);
	INIT_LIST_HEAD(&q->list);
}

void nhca_pageref_begin(struct nhca_pageref_queue *q, struct nhca_pageref *ref)
{
	unsigned long flags;

	ref->n = 0;
	spin_lock_irqsave(&q->lock, flags);
	ref->seq = q->seq + 1;
	/* nhca_zcopy_seq() reads @q->seq without the lock */
	WRITE_ONCE(q->seq, ref->seq);
	list_add_tail(&ref->list, &q->list);
	spin_unlock_irqrestore(&q->lock, flags);
}

/* Return: the count of a region, which is allocated if the region has none; NULL: no memory. */
static struct nhca_pageref_region *region_count(struct nhca_pageref_region **region)
{
	struct nhca_pageref_region *r = READ_ONCE(*region), *other;

	if (likely(r))
		return r;
	r = kmalloc(sizeof(*r), GFP_ATOMIC | __GFP_NOWARN | __GFP_ACCOUNT);
	if (!r)
		return NULL;
	atomic_set(&r->count, 1);
	/* another CPU may also send from the region for the first time */
	other = cmpxchg(region, NULL, r);
	if (!other)
		return r;
	kfree(r);
	return other;
}

bool nhca_pageref_add(struct nhca_pageref *ref, struct nhca_pageref_region **region)
{
	struct nhca_pageref_region *r = region_count(region);
	u32 i;

	/* begin with the newest region, because it most often also has the next pages */
	for (i = ref->n; i--;)
		if (ref->regions[i] == r)
			return r;
	if (unlikely(!r || ref->n == NHCA_PAGEREF_REGIONS))
		return false;
	atomic_inc(&r->count);
	ref->regions[ref->n++] = r;
	return true;
}

/* Drop one count of a region, and free @r at a count of 0. */
static void region_put(struct nhca_pageref_region *r)
{
	/* fully ordered, so that no skb reads the pages any more when the waiter reads 1 */
	int left = atomic_dec_return(&r->count);

	if (!left)
		kfree(r);
	else if (left == 1)
		/* the waiter may free @r now; wake_up_var() uses only the address of @r */
		wake_up_var(r);
}

bool nhca_pageref_end(struct nhca_pageref_queue *q, struct nhca_pageref *ref)
{
	unsigned long flags;
	bool kick, wake;

	while (ref->n)
		region_put(ref->regions[--ref->n]);
	spin_lock_irqsave(&q->lock, flags);
	list_del(&ref->list);
	kick = q->waits;
	q->waits = false;
	wake = q->waiters;
	spin_unlock_irqrestore(&q->lock, flags);

	if (wake) {
		/* pairs with the barrier of prepare_to_wait_event() */
		smp_mb();
		wake_up_var(q);
	}
	return kick;
}

bool nhca_pageref_released(struct nhca_pageref_queue *q, u32 seq)
{
	struct nhca_pageref *ref;
	unsigned long flags;

	/*
	 * list_empty_careful() has acquire semantics.  It pairs with refcount_dec_and_test() in
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

/* ---- processes ---- */

/* struct nhca_pageref_owner, by address of the address space */
static DEFINE_XARRAY_FLAGS(owners, XA_FLAGS_ACCOUNT);
/* held for the lookup of a record, and for the removal of a record with its last reference */
static DEFINE_MUTEX(owners_mutex);

static struct nhca_pageref_owner *owner_make(struct mm_struct *mm)
{
	struct nhca_pageref_owner *owner = kzalloc(sizeof(*owner), GFP_KERNEL_ACCOUNT);

	if (!owner)
		return NULL;
	refcount_set(&owner->ref, 1);
	mmgrab(mm);
	owner->mm = mm;
	owner->tgid = get_pid(task_tgid(current));
	return owner;
}

static void owner_free(struct nhca_pageref_owner *owner)
{
	mmdrop(owner->mm);
	put_pid(owner->tgid);
	kfree(owner);
}

/*
 * Find the record of the calling process.
 * Return: the record with a reference; NULL: there is none.
 */
static struct nhca_pageref_owner *owner_find_get(struct mm_struct *mm)
{
	struct nhca_pageref_owner *owner;

	mutex_lock(&owners_mutex);
	owner = xa_load(&owners, (unsigned long)mm);
	if (owner && owner->tgid == task_tgid(current))
		refcount_inc(&owner->ref);
	else
		owner = NULL;
	mutex_unlock(&owners_mutex);
	return owner;
}

struct nhca_pageref_owner *nhca_pageref_owner_get(struct mm_struct *mm)
{
	struct nhca_pageref_owner *owner = owner_find_get(mm), *other;

	if (owner)
		return owner;
	owner = owner_make(mm);
	if (!owner)
		return NULL;
	owner->shown = true;
	other = xa_cmpxchg(&owners, (unsigned long)mm, NULL, owner, GFP_KERNEL_ACCOUNT);
	if (!other)
		return owner;
	/*
	 * If another thread of this process has stored a record first, use the other thread's
	 * record.  Otherwise either the stored record is that of a process that shares the address
	 * space (CLONE_VM) but dies separately, or there was no memory to store @owner.  In both
	 * cases this process gets a record that no lookup finds.
	 */
	owner->shown = false;
	other = owner_find_get(mm);
	if (!other)
		return owner;
	owner_free(owner);
	return other;
}

void nhca_pageref_owner_put(struct nhca_pageref_owner *owner)
{
	if (!owner || !refcount_dec_and_mutex_lock(&owner->ref, &owners_mutex))
		return;
	if (owner->shown)
		xa_erase(&owners, (unsigned long)owner->mm);
	mutex_unlock(&owners_mutex);
	owner_free(owner);
}

/* ---- waits ---- */

/**
 * struct pageref_wait - references that a caller waits for
 * @region: all references to pages of this region; NULL: references of @queue
 * @queue:  references of this flow, up to @seq
 * @seq:    number of the last of these references
 * @dev:    device of the region or flow
 */
struct pageref_wait {
	struct nhca_pageref_region *region;
	struct nhca_pageref_queue *queue;
	u32 seq;
	struct nhca_dev *dev;
};

/* Return: true if the references of @q up to @seq are released. */
static bool queue_over(struct nhca_pageref_queue *q, u32 seq)
{
	struct nhca_pageref *ref;
	unsigned long flags;
	bool over;

	spin_lock_irqsave(&q->lock, flags);
	ref = list_first_entry_or_null(&q->list, struct nhca_pageref, list);
	over = !ref || (s32)(ref->seq - seq) > 0;
	spin_unlock_irqrestore(&q->lock, flags);
	return over;
}

static bool pageref_over(const struct pageref_wait *w)
{
	/* acquire, because the caller may reuse the pages; pairs with region_put() */
	return w->region ? atomic_read_acquire(&w->region->count) == 1 :
			   queue_over(w->queue, w->seq);
}

/* Return: true if the caller's process is being killed, or exits. */
static bool pageref_caller_dies(void)
{
	return fatal_signal_pending(current) || current->signal->flags & SIGNAL_GROUP_EXIT ||
	       !atomic_read(&current->signal->live);
}

/*
 * Return: true if the owner is dead, or if the owner is the caller's process and is being killed or
 * exits.  In the second case the address space may still have other users (mm_users), such as a
 * worker of vhost, which may end only after the caller's exit.  So the caller must not wait for
 * them.
 */
static bool pageref_owner_dies(const struct nhca_pageref_owner *owner)
{
	return !atomic_read(&owner->mm->mm_users) ||
	       (owner->tgid == task_tgid(current) && pageref_caller_dies());
}

/*
 * Return: time in jiffies that is left for waits of a removal of @dev.  The time starts at the
 * first of these waits.  A wait that begins more than NHCA_PAGEREF_REMOVAL after the end of the
 * time starts the time again.
 */
static long removal_left(struct nhca_dev *dev)
{
	unsigned long end = READ_ONCE(dev->zcopy_deadline);

	if (!end || time_after(jiffies, end + NHCA_PAGEREF_REMOVAL)) {
		end = (jiffies + NHCA_PAGEREF_REMOVAL) ?: 1;
		WRITE_ONCE(dev->zcopy_deadline, end);
	}
	return max((long)(end - jiffies), 0L);
}

/*
 * Return: time in jiffies that is left for waits after the death of the owner.  The time starts at
 * the first of these waits.
 */
static long dying_left(struct nhca_pageref_owner *owner)
{
	if (!READ_ONCE(owner->deadline))
		WRITE_ONCE(owner->deadline, (jiffies + NHCA_PAGEREF_DYING) ?: 1);
	return max((long)(READ_ONCE(owner->deadline) - jiffies), 0L);
}

static bool pageref_wait_for(const struct pageref_wait *w, struct nhca_pageref_owner *owner)
{
	void *var = w->region ?: (void *)w->queue;
	long left;

	if (pageref_over(w))
		return true;
	might_sleep();
	if (!owner) {
		wait_var_event(var, pageref_over(w));
		return true;
	}
	/*
	 * a process may write to the pages after its system call returns, so it waits without a
	 * time limit until it is killed
	 */
	if (!(current->flags & (PF_EXITING | PF_KTHREAD)) &&
	    !wait_var_event_killable(var, pageref_over(w)))
		return true;

	/*
	 * the owner may still run: this task is a kernel thread that removes the device, or a task
	 * of another process that was killed or exits
	 */
	while (!pageref_owner_dies(owner)) {
		left = removal_left(w->dev);
		if (!left)
			return false;
		if (wait_var_event_timeout(var, pageref_over(w),
					   min(left, (long)NHCA_PAGEREF_CHECK)))
			return true;
	}
	return wait_var_event_timeout(var, pageref_over(w), dying_left(owner));
}

bool nhca_pageref_wait_queue(struct nhca_pageref_queue *q, struct nhca_dev *dev,
			     struct nhca_pageref_owner *owner)
{
	struct pageref_wait w = { .queue = q, .dev = dev };
	unsigned long flags;
	bool over;

	spin_lock_irqsave(&q->lock, flags);
	q->waiters++;
	w.seq = q->seq;
	spin_unlock_irqrestore(&q->lock, flags);
	over = pageref_wait_for(&w, owner);
	spin_lock_irqsave(&q->lock, flags);
	q->waiters--;
	spin_unlock_irqrestore(&q->lock, flags);
	return over;
}

bool nhca_pageref_wait(struct nhca_pageref_region *region, struct nhca_dev *dev,
		       struct nhca_pageref_owner *owner)
{
	const struct pageref_wait w = { .region = region, .dev = dev };
	bool over;

	if (!region)
		return true;
	over = pageref_wait_for(&w, owner);
	region_put(region);
	return over;
}
