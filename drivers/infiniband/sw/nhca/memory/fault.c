// SPDX-License-Identifier: GPL-2.0
/*
 * Engines that wait for on-demand pages: they run in softirq and cannot fault, so a worker
 * does and tells them when to try again.
 */
#include <linux/jiffies.h>
#include <linux/refcount.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/workqueue.h>

#include "mr.h"
#include "odp.h"

/* of what comes next in the same buffer, this much is faulted in along with it */
#define FAULT_AHEAD	SZ_1M

/* who failed and has not come back in this time is not the same request any more */
#define FAULT_MEMORY	(5 * HZ)

/*
 * Prefetches at a time, on the host.  They may take long and there may be many: with a queue and
 * few workers of their own they delay each other, and no engine's fault.
 */
#define PREFETCH_WORKERS	8

struct workqueue_struct *nhca_fault_wq;
struct workqueue_struct *nhca_prefetch_wq;

/**
 * struct fault_want - what an engine is waiting for
 * @odp:  counted while it is waited for
 * @off:  where in it
 * @len:  bytes
 * @mode: to be read or written
 */
struct fault_want {
	struct nhca_odp *odp;
	u64 off;
	u64 len;
	enum nhca_odp_mode mode;
};

/**
 * struct nhca_fault - see memory.h
 * @work:   faults; counts @ref from being queued until it has run
 * @ref:    the owner, and @work
 * @lock:   all below; BH
 * @resume: the owner's; NULL when the owner has gone
 * @arg:    for @resume
 * @busy:   @want is being faulted in
 * @tell:   and the owner waits for it: it has not changed its mind
 * @want:   what was asked for; constant while @busy
 * @failed_id:   the last that could not be had: its region, 0 if there is none,
 * @failed_off:  where in it,
 * @failed_mode: for what,
 * @failed_at:   and when, in jiffies
 */
struct nhca_fault {
	struct work_struct work;
	refcount_t ref;
	/* all below */
	spinlock_t lock;
	void (*resume)(void *arg);
	void *arg;
	bool busy;
	bool tell;
	struct fault_want want;
	u64 failed_id;
	u64 failed_off;
	enum nhca_odp_mode failed_mode;
	unsigned long failed_at;
};

static void fault_put(struct nhca_fault *f)
{
	if (refcount_dec_and_test(&f->ref))
		kfree(f);
}

static void fault_work(struct work_struct *work)
{
	struct nhca_fault *f = container_of(work, struct nhca_fault, work);
	struct fault_want want;
	s64 n;

	/* constant while busy */
	want = f->want;
	n = nhca_odp_fault(want.odp, want.off, want.len, want.mode);

	spin_lock_bh(&f->lock);
	/* who finds the memory changing all the time may try as long as it likes */
	if (n < 0 && n != -EBUSY && f->tell) {
		f->failed_id = nhca_odp_id(want.odp);
		f->failed_off = want.off;
		f->failed_mode = want.mode;
		f->failed_at = jiffies;
	}
	WRITE_ONCE(f->busy, false);
	if (f->tell && f->resume)
		f->resume(f->arg);
	spin_unlock_bh(&f->lock);

	nhca_odp_put(want.odp);
	fault_put(f);
}

struct nhca_fault *nhca_fault_alloc(void (*resume)(void *arg), void *arg)
{
	struct nhca_fault *f = kzalloc(sizeof(*f), GFP_KERNEL_ACCOUNT);

	if (!f)
		return NULL;
	INIT_WORK(&f->work, fault_work);
	refcount_set(&f->ref, 1);
	spin_lock_init(&f->lock);
	f->resume = resume;
	f->arg = arg;
	return f;
}

void nhca_fault_cancel(struct nhca_fault *f)
{
	if (!f)
		return;
	spin_lock_bh(&f->lock);
	WRITE_ONCE(f->tell, false);
	f->failed_id = 0;
	spin_unlock_bh(&f->lock);
}

void nhca_fault_free(struct nhca_fault *f)
{
	if (!f)
		return;
	spin_lock_bh(&f->lock);
	WRITE_ONCE(f->tell, false);
	f->resume = NULL;
	spin_unlock_bh(&f->lock);
	fault_put(f);
}

bool nhca_fault_has_job(const struct nhca_fault *f)
{
	return READ_ONCE(f->busy) && READ_ONCE(f->tell);
}

/* Has just this been tried, and could not be had?  Asked once.  f->lock held. */
static bool fault_failed(struct nhca_fault *f, const struct fault_want *want)
{
	bool same = f->failed_id == nhca_odp_id(want->odp) && f->failed_off == want->off &&
		    f->failed_mode == want->mode &&
		    time_before(jiffies, f->failed_at + FAULT_MEMORY);

	f->failed_id = 0;
	return same;
}

int nhca_iter_fault(const struct nhca_iter *it, u32 ahead, struct nhca_fault *f)
{
	struct fault_want want = { .off = it->at };
	int err = -EAGAIN;

	/* who has no place to wait in has no business with such memory */
	if (!f || WARN_ON_ONCE(!it->mr || !it->mr->odp))
		return -EACCES;
	want.odp = it->mr->odp;
	want.len = min_t(u64, (u64)it->left + ahead, FAULT_AHEAD);
	want.mode = nhca_iter_writes(it) ? NHCA_ODP_WRITE : NHCA_ODP_READ;

	spin_lock_bh(&f->lock);
	if (f->busy) {
		/* when what is under way is over the engine asks again */
		WRITE_ONCE(f->tell, true);
	} else if (fault_failed(f, &want)) {
		err = -EACCES;
	} else {
		f->want = want;
		nhca_odp_get(want.odp);
		WRITE_ONCE(f->busy, true);
		WRITE_ONCE(f->tell, true);
		refcount_inc(&f->ref);
		queue_work(nhca_fault_wq, &f->work);
	}
	spin_unlock_bh(&f->lock);
	return err;
}

int nhca_key_fault(const struct nhca_key_user *key_user, u32 rkey, u64 va, u32 len, int access,
		   struct nhca_fault *f)
{
	struct nhca_iter it;
	int err;

	err = nhca_iter_key(&it, key_user, rkey, va, len, access);
	return err ?: nhca_iter_fault(&it, 0, f);
}

/* ---- nobody waits ---- */

/**
 * struct fault_prefetch - a fault that nobody waits for
 * @work: frees it
 * @want: what to fault in
 */
struct fault_prefetch {
	struct work_struct work;
	struct fault_want want;
};

static void prefetch_work(struct work_struct *work)
{
	struct fault_prefetch *p = container_of(work, struct fault_prefetch, work);

	/* advice: if it is bad, whoever uses the memory will find out */
	nhca_odp_fault(p->want.odp, p->want.off, p->want.len, p->want.mode);
	nhca_odp_prefetch_end(p->want.odp);
	nhca_odp_put(p->want.odp);
	kfree(p);
}

int nhca_fault_queue(struct nhca_odp *odp, u64 off, u64 len, enum nhca_odp_mode mode)
{
	struct fault_prefetch *p;

	if (!nhca_odp_prefetch_begin(odp))
		return -EAGAIN;
	p = kzalloc(sizeof(*p), GFP_KERNEL_ACCOUNT);
	if (!p) {
		nhca_odp_prefetch_end(odp);
		return -ENOMEM;
	}
	p->want.odp = nhca_odp_get(odp);
	p->want.off = off;
	p->want.len = len;
	p->want.mode = mode;
	INIT_WORK(&p->work, prefetch_work);
	queue_work(nhca_prefetch_wq, &p->work);
	return 0;
}

int nhca_fault_init(void)
{
	/* not for reclaim: only user memory is faulted in, and that needs memory */
	nhca_fault_wq = alloc_workqueue("nhca_fault", WQ_UNBOUND, WQ_MAX_ACTIVE);
	if (!nhca_fault_wq)
		return -ENOMEM;
	nhca_prefetch_wq = alloc_workqueue("nhca_prefetch", WQ_UNBOUND, PREFETCH_WORKERS);
	if (!nhca_prefetch_wq) {
		destroy_workqueue(nhca_fault_wq);
		return -ENOMEM;
	}
	return 0;
}

/* What is queued runs to its end; it holds all that it needs. */
void nhca_fault_exit(void)
{
	destroy_workqueue(nhca_prefetch_wq);
	/* the last prefetch of a region may have left chunks to be taken away */
	destroy_workqueue(nhca_fault_wq);
}
