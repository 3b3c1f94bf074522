// SPDX-License-Identifier: GPL-2.0
/* Limits for the workers that fault in on-demand pages: see faultq.h. */
#include <linux/bug.h>
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/mutex.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/uidgid.h>
#include <linux/xarray.h>

#include "faultq.h"
#include "odp.h"

/**
 * struct faultq_share - the workers of a user
 * @running: number of workers
 * @ready:   struct faultq_side whose waiting work is delayed only by the limit of the user
 */
struct faultq_share {
	unsigned int running;
	struct list_head ready;
};

/**
 * struct faultq_user - a user who has queues
 * @uid:   index in faultq_users
 * @refs:  number of the user's queues; faultq_mutex
 * @share: the user's workers; faultq_lock
 */
struct faultq_user {
	u32 uid;
	unsigned int refs;
	struct faultq_share share[NHCA_FAULTQ_KINDS];
};

/**
 * struct faultq_side - the work of an address space, of one kind
 * @running: number of workers
 * @waiting: struct nhca_faultq_work that no worker has, oldest first
 * @ready:   entry in faultq_share.ready
 */
struct faultq_side {
	unsigned int running;
	struct list_head waiting;
	struct list_head ready;
};

/**
 * struct nhca_faultq - the work of an address space
 * @mm:   index in faultqs
 * @user: its user; constant
 * @refs: references; faultq_mutex
 * @side: its work; faultq_lock
 */
struct nhca_faultq {
	struct mm_struct *mm;
	struct faultq_user *user;
	unsigned int refs;
	struct faultq_side side[NHCA_FAULTQ_KINDS];
};

/* maximum numbers of workers */
static const struct {
	unsigned int mm;
	unsigned int user;
} limits[NHCA_FAULTQ_KINDS] = {
	[NHCA_FAULTQ_AWAITED] = { NHCA_FAULTQ_MM, NHCA_FAULTQ_USER },
	[NHCA_FAULTQ_PREFETCH] = { NHCA_FAULTQ_PREFETCH_MM, NHCA_FAULTQ_PREFETCH_USER },
};

static DEFINE_XARRAY_FLAGS(faultqs, XA_FLAGS_ACCOUNT);
static DEFINE_XARRAY_FLAGS(faultq_users, XA_FLAGS_ACCOUNT);
/* protects the two maps and the counts of references */
static DEFINE_MUTEX(faultq_mutex);
/* protects lists and counts of workers; taken with BHs disabled */
static DEFINE_SPINLOCK(faultq_lock);

/* ---- users and address spaces ---- */

static struct faultq_user *faultq_user_get(u32 uid)
{
	struct faultq_user *user = xa_load(&faultq_users, uid);
	int i;

	lockdep_assert_held(&faultq_mutex);
	if (!user) {
		user = kzalloc(sizeof(*user), GFP_KERNEL_ACCOUNT);
		if (!user)
			return NULL;
		user->uid = uid;
		for (i = 0; i < NHCA_FAULTQ_KINDS; i++)
			INIT_LIST_HEAD(&user->share[i].ready);
		if (xa_err(xa_store(&faultq_users, uid, user, GFP_KERNEL_ACCOUNT))) {
			kfree(user);
			return NULL;
		}
	}
	user->refs++;
	return user;
}

static void faultq_user_put(struct faultq_user *user)
{
	lockdep_assert_held(&faultq_mutex);
	if (--user->refs)
		return;
	xa_erase(&faultq_users, user->uid);
	kfree(user);
}

static struct nhca_faultq *faultq_make(struct mm_struct *mm, u32 uid)
{
	struct nhca_faultq *q = kzalloc(sizeof(*q), GFP_KERNEL_ACCOUNT);
	int i;

	lockdep_assert_held(&faultq_mutex);
	if (!q)
		return NULL;
	q->mm = mm;
	for (i = 0; i < NHCA_FAULTQ_KINDS; i++) {
		INIT_LIST_HEAD(&q->side[i].waiting);
		INIT_LIST_HEAD(&q->side[i].ready);
	}
	q->user = faultq_user_get(uid);
	if (!q->user)
		goto err_free;
	if (xa_err(xa_store(&faultqs, (unsigned long)mm, q, GFP_KERNEL_ACCOUNT)))
		goto err_user;
	return q;

err_user:
	faultq_user_put(q->user);
err_free:
	kfree(q);
	return NULL;
}

struct nhca_faultq *nhca_faultq_get(struct mm_struct *mm, u32 uid)
{
	struct nhca_faultq *q;

	mutex_lock(&faultq_mutex);
	q = xa_load(&faultqs, (unsigned long)mm);
	if (!q)
		q = faultq_make(mm, uid);
	if (q)
		q->refs++;
	mutex_unlock(&faultq_mutex);
	return q;
}

struct nhca_faultq *nhca_faultq_get_current(void)
{
	u32 uid = from_kuid(&init_user_ns, current_uid());

	return nhca_faultq_get(current->mm, capable(CAP_SYS_RESOURCE) ? NHCA_FAULTQ_NOBODY : uid);
}

void nhca_faultq_put(struct nhca_faultq *q)
{
	int i;

	mutex_lock(&faultq_mutex);
	if (!--q->refs) {
		for (i = 0; i < NHCA_FAULTQ_KINDS; i++)
			WARN_ON(q->side[i].running || !list_empty(&q->side[i].waiting));
		xa_erase(&faultqs, (unsigned long)q->mm);
		faultq_user_put(q->user);
		kfree(q);
	}
	mutex_unlock(&faultq_mutex);
}

/* ---- work ---- */

static bool faultq_user_full(const struct faultq_user *user, enum nhca_faultq_kind kind)
{
	return user->uid != NHCA_FAULTQ_NOBODY && user->share[kind].running >= limits[kind].user;
}

/* Put @q into the user's list if @q has waiting work and its own limit permits more workers. */
static void faultq_ready(struct nhca_faultq *q, enum nhca_faultq_kind kind)
{
	struct faultq_side *s = &q->side[kind];

	lockdep_assert_held(&faultq_lock);
	if (list_empty(&s->ready) && !list_empty(&s->waiting) && s->running < limits[kind].mm)
		list_add_tail(&s->ready, &q->user->share[kind].ready);
}

/* Queue waiting work of a user, as far as the limits permit, round robin by address space. */
static void faultq_run(struct faultq_user *user, enum nhca_faultq_kind kind)
{
	struct workqueue_struct *wq = kind == NHCA_FAULTQ_AWAITED ? nhca_fault_wq :
								    nhca_prefetch_wq;
	struct faultq_share *share = &user->share[kind];
	struct nhca_faultq_work *w;
	struct faultq_side *s;

	lockdep_assert_held(&faultq_lock);
	while (!list_empty(&share->ready) && !faultq_user_full(user, kind)) {
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
	faultq_run(q->user, kind);
	spin_unlock_bh(&faultq_lock);
}

void nhca_faultq_end(struct nhca_faultq *q, enum nhca_faultq_kind kind)
{
	spin_lock_bh(&faultq_lock);
	q->side[kind].running--;
	q->user->share[kind].running--;
	faultq_ready(q, kind);
	faultq_run(q->user, kind);
	spin_unlock_bh(&faultq_lock);
}
