// SPDX-License-Identifier: GPL-2.0
/* Limits for the workers that fault in on-demand pages: see faultq.h. */
#include <linux/bug.h>
#include <linux/err.h>
#include <linux/mutex.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/xarray.h>

#include "../user.h"
#include "faultq.h"
#include "odp.h"

/**
 * struct faultq_side - the work of one kind (enum nhca_faultq_kind) of an address space
 * @running: number of work items in the workqueue, waiting there or running
 * @waiting: struct nhca_faultq_work that is not in the workqueue yet, oldest first
 * @ready:   entry in nhca_user_faults.ready
 */
struct faultq_side {
	unsigned int running;
	struct list_head waiting;
	struct list_head ready;
};

/**
 * struct nhca_faultq - the work of an address space
 * @mm:   index in faultqs
 * @user: the user who is charged; counted; NULL: nobody; constant
 * @refs: number of references; protected by faultq_mutex
 * @side: the work of each kind; protected by faultq_lock
 */
struct nhca_faultq {
	struct mm_struct *mm;
	struct nhca_user *user;
	unsigned int refs;
	struct faultq_side side[NHCA_FAULTQ_KINDS];
};

/* maximum numbers of work items in the workqueue: of an address space, of a user */
static const struct {
	unsigned int mm;
	unsigned int user;
} limits[NHCA_FAULTQ_KINDS] = {
	[NHCA_FAULTQ_AWAITED] = { NHCA_FAULTQ_MM, NHCA_FAULTQ_USER },
	[NHCA_FAULTQ_PREFETCH] = { NHCA_FAULTQ_PREFETCH_MM, NHCA_FAULTQ_PREFETCH_USER },
};

static DEFINE_XARRAY_FLAGS(faultqs, XA_FLAGS_ACCOUNT);
/* protects the counts of references, and the removal of a queue with its last reference */
static DEFINE_MUTEX(faultq_mutex);
/* protects lists and counts of workers; taken with BHs disabled */
static DEFINE_SPINLOCK(faultq_lock);

static_assert(NHCA_USER_FAULTS == NHCA_FAULTQ_KINDS);

/* work of processes whose users are not charged */
static struct nhca_user_faults faultq_nobody[NHCA_FAULTQ_KINDS] = {
	{ .ready = LIST_HEAD_INIT(faultq_nobody[0].ready) },
	{ .ready = LIST_HEAD_INIT(faultq_nobody[1].ready) },
};

/* ---- address spaces ---- */

static struct nhca_faultq *faultq_make(struct mm_struct *mm, struct nhca_user *user)
{
	struct nhca_faultq *q = kzalloc(sizeof(*q), GFP_KERNEL_ACCOUNT);
	int i;

	if (!q)
		return NULL;
	q->mm = mm;
	q->refs = 1;
	for (i = 0; i < NHCA_FAULTQ_KINDS; i++) {
		INIT_LIST_HEAD(&q->side[i].waiting);
		INIT_LIST_HEAD(&q->side[i].ready);
	}
	q->user = nhca_user_hold(user);
	return q;
}

static struct nhca_faultq *faultq_find_get(struct mm_struct *mm)
{
	struct nhca_faultq *q;

	mutex_lock(&faultq_mutex);
	q = xa_load(&faultqs, (unsigned long)mm);
	if (q)
		q->refs++;
	mutex_unlock(&faultq_mutex);
	return q;
}

struct nhca_faultq *nhca_faultq_get(struct mm_struct *mm, struct nhca_user *user)
{
	struct nhca_faultq *q, *made, *other;

	for (;;) {
		q = faultq_find_get(mm);
		if (q)
			return q;
		/* without the mutex: an allocation may take long if a memory cgroup is full */
		made = faultq_make(mm, user);
		if (!made)
			return NULL;
		other = xa_cmpxchg(&faultqs, (unsigned long)mm, NULL, made, GFP_KERNEL_ACCOUNT);
		if (!other)
			return made;
		nhca_user_put(made->user);
		kfree(made);
		if (xa_is_err(other))
			return NULL;
	}
}

struct nhca_faultq *nhca_faultq_get_current(void)
{
	struct nhca_user *user = nhca_user_get_current(&nhca_host_users);
	struct nhca_faultq *q;

	if (IS_ERR(user))
		return NULL;
	q = nhca_faultq_get(current->mm, user);
	nhca_user_put(user);
	return q;
}

void nhca_faultq_put(struct nhca_faultq *q)
{
	int i;

	mutex_lock(&faultq_mutex);
	if (!--q->refs) {
		for (i = 0; i < NHCA_FAULTQ_KINDS; i++)
			WARN_ON(q->side[i].running || !list_empty(&q->side[i].waiting));
		xa_erase(&faultqs, (unsigned long)q->mm);
		nhca_user_put(q->user);
		kfree(q);
	}
	mutex_unlock(&faultq_mutex);
}

/* ---- work ---- */

static struct nhca_user_faults *faultq_share(struct nhca_faultq *q, enum nhca_faultq_kind kind)
{
	return q->user ? &q->user->faults[kind] : &faultq_nobody[kind];
}

static bool faultq_user_full(const struct nhca_user_faults *share, enum nhca_faultq_kind kind)
{
	return share != &faultq_nobody[kind] && share->running >= limits[kind].user;
}

/* Put @q into the user's list if @q has waiting work and its own limit permits more workers. */
static void faultq_ready(struct nhca_faultq *q, enum nhca_faultq_kind kind)
{
	struct faultq_side *s = &q->side[kind];

	lockdep_assert_held(&faultq_lock);
	if (list_empty(&s->ready) && !list_empty(&s->waiting) && s->running < limits[kind].mm)
		list_add_tail(&s->ready, &faultq_share(q, kind)->ready);
}

/* Queue work of a user up to the limits, round robin over the user's address spaces. */
static void faultq_run(struct nhca_user_faults *share, enum nhca_faultq_kind kind)
{
	struct workqueue_struct *wq = kind == NHCA_FAULTQ_AWAITED ? nhca_fault_wq :
								    nhca_prefetch_wq;
	struct nhca_faultq_work *w;
	struct faultq_side *s;

	lockdep_assert_held(&faultq_lock);
	while (!list_empty(&share->ready) && !faultq_user_full(share, kind)) {
		s = list_first_entry(&share->ready, struct faultq_side, ready);
		w = list_first_entry(&s->waiting, struct nhca_faultq_work, list);
		list_del(&w->list);
		s->running++;
		share->running++;
		queue_work(wq, &w->work);
		if (list_empty(&s->waiting) || s->running >= limits[kind].mm)
			list_del_init(&s->ready);
		else
			list_move_tail(&s->ready, &share->ready);
	}
}

void nhca_faultq_add(struct nhca_faultq *q, enum nhca_faultq_kind kind,
		     struct nhca_faultq_work *w)
{
	spin_lock_bh(&faultq_lock);
	list_add_tail(&w->list, &q->side[kind].waiting);
	faultq_ready(q, kind);
	faultq_run(faultq_share(q, kind), kind);
	spin_unlock_bh(&faultq_lock);
}

void nhca_faultq_end(struct nhca_faultq *q, enum nhca_faultq_kind kind)
{
	spin_lock_bh(&faultq_lock);
	q->side[kind].running--;
	faultq_share(q, kind)->running--;
	faultq_ready(q, kind);
	faultq_run(faultq_share(q, kind), kind);
	spin_unlock_bh(&faultq_lock);
}
