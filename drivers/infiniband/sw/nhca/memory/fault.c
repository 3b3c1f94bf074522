// SPDX-License-Identifier: GPL-2.0
/*
 * Faults of on-demand pages for a requester, responder or channel (the owner of the fault).  The
 * owner needs the pages while BHs are disabled, so it cannot sleep.  A worker faults the pages in,
 * and then makes the owner try again.  The waits for backings (backing.h) use the same state.
 */
#include <linux/jiffies.h>
#include <linux/refcount.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/workqueue.h>

#include "backing.h"
#include "faultq.h"
#include "mr.h"
#include "odp.h"

/*
 * Maximum number of bytes for one request: the bytes that are needed now, and bytes of the same
 * message that follow in the same buffer.
 */
#define FAULT_AHEAD	SZ_1M

/*
 * Time in jiffies after which a failed request is forgotten, so that the next request for the same
 * bytes is tried again.
 */
#define FAULT_MEMORY	(5 * HZ)

struct workqueue_struct *nhca_fault_wq;
/*
 * Prefetches may be many and take long.  They have a separate queue and few workers, so they delay
 * each other, but not the faults of a QP.
 */
struct workqueue_struct *nhca_prefetch_wq;

/**
 * struct fault_want - the bytes of a request
 * @odp:  memory of the region; counted while the request is in progress
 * @off:  offset in the region
 * @len:  bytes
 * @mode: what the pages are needed for
 */
struct fault_want {
	struct nhca_odp *odp;
	u64 off;
	u64 len;
	enum nhca_odp_mode mode;
};

/**
 * struct nhca_fault - see fault.h
 * @work:        work item that faults @want in; has a reference while it is queued or runs
 * @ref:         one for the owner, one for @work, one for a wait of nhca_fault_begin() or
 *               nhca_fault_sync(), and one for each nhca_fault_get()
 * @lock:        protects all below, but of @feed only error and write_op; taken with BH disabled
 * @resume:      function of the owner; NULL after nhca_fault_free()
 * @arg:         argument of @resume
 * @busy:        @work waits for a worker or runs; or nhca_fault_begin() or nhca_fault_sync() has
 *               begun a wait, which nhca_fault_end() has not ended yet
 * @owner_waits: @resume must be called when @busy is cleared; false: the owner has canceled the
 *               request
 * @syncing:     a wait of nhca_fault_sync() has begun, and lasts until @writes is 0
 * @flushed:     operation @feed.write_op is a FLUSH, and has ended
 * @writes:      number of calls of nhca_fault_write_begin() without nhca_fault_write_end()
 * @want:        the request; constant while the worker is queued or runs
 * @failed_id:   nhca_odp_id() of the region of the last request that failed; 0: none
 * @failed_off:  offset in the region of this failed request
 * @failed_mode: mode of this failed request
 * @failed_at:   time in jiffies at which this failed request has ended
 * @aborts:      number of times that the owner has given up all operations; written with @lock held
 * @feed:        position in a backing
 */
struct nhca_fault {
	struct nhca_faultq_work work;
	refcount_t ref;
	/* protects all below, but only a part of @feed */
	spinlock_t lock;
	void (*resume)(void *arg);
	void *arg;
	bool busy;
	bool owner_waits;
	bool syncing;
	bool flushed;
	u32 writes;
	struct fault_want want;
	u64 failed_id;
	u64 failed_off;
	enum nhca_odp_mode failed_mode;
	u32 aborts;
	unsigned long failed_at;
	struct nhca_feed feed;
};

struct nhca_fault *nhca_fault_get(struct nhca_fault *f)
{
	refcount_inc(&f->ref);
	return f;
}

void nhca_fault_put(struct nhca_fault *f)
{
	if (refcount_dec_and_test(&f->ref))
		kfree(f);
}

static void fault_work(struct work_struct *work)
{
	struct nhca_fault *f = container_of(work, struct nhca_fault, work.work);
	struct fault_want want;
	s64 n;

	/* f->want is constant while this work runs, so this read needs no lock */
	want = f->want;
	n = nhca_odp_fault(want.odp, want.off, want.len, want.mode);
	nhca_faultq_end(nhca_odp_faultq(want.odp), NHCA_FAULTQ_AWAITED);

	spin_lock_bh(&f->lock);
	/* -EBUSY: the page tables changed during each attempt, so the owner may try again now */
	if (n < 0 && n != -EBUSY && f->owner_waits) {
		f->failed_id = nhca_odp_id(want.odp);
		f->failed_off = want.off;
		f->failed_mode = want.mode;
		f->failed_at = jiffies;
	}
	WRITE_ONCE(f->busy, false);
	if (f->owner_waits && f->resume)
		f->resume(f->arg);
	spin_unlock_bh(&f->lock);

	nhca_odp_put(want.odp);
	nhca_fault_put(f);
}

struct nhca_fault *nhca_fault_alloc(void (*resume)(void *arg), void *arg)
{
	struct nhca_fault *f = kzalloc(sizeof(*f), GFP_KERNEL_ACCOUNT);

	if (!f)
		return NULL;
	INIT_WORK(&f->work.work, fault_work);
	refcount_set(&f->ref, 1);
	spin_lock_init(&f->lock);
	f->resume = resume;
	f->arg = arg;
	return f;
}

/* Give up the operations in progress: afterwards nhca_arr_abandoned() is true for their blocks. */
static void fault_abort(struct nhca_fault *f)
{
	lockdep_assert_held(&f->lock);
	WRITE_ONCE(f->aborts, f->aborts + 1);
}

void nhca_fault_abort(struct nhca_fault *f)
{
	if (!f)
		return;
	spin_lock_bh(&f->lock);
	fault_abort(f);
	spin_unlock_bh(&f->lock);
}

u32 nhca_fault_aborts(const struct nhca_fault *f)
{
	return READ_ONCE(f->aborts);
}

void nhca_fault_cancel(struct nhca_fault *f)
{
	if (!f)
		return;
	spin_lock_bh(&f->lock);
	fault_abort(f);
	WRITE_ONCE(f->owner_waits, false);
	f->failed_id = 0;
	spin_unlock_bh(&f->lock);
}

void nhca_fault_free(struct nhca_fault *f)
{
	if (!f)
		return;
	spin_lock_bh(&f->lock);
	fault_abort(f);
	WRITE_ONCE(f->owner_waits, false);
	f->resume = NULL;
	spin_unlock_bh(&f->lock);
	nhca_fault_put(f);
}

bool nhca_fault_has_job(const struct nhca_fault *f)
{
	return READ_ONCE(f->busy) && READ_ONCE(f->owner_waits);
}

/*
 * Return: true if the same request has failed within FAULT_MEMORY.  This function forgets the
 * failure, so that the failure is reported only once.
 */
static bool fault_failed(struct nhca_fault *f, const struct fault_want *want)
{
	bool same = f->failed_id == nhca_odp_id(want->odp) && f->failed_off == want->off &&
		    f->failed_mode == want->mode &&
		    time_before(jiffies, f->failed_at + FAULT_MEMORY);

	lockdep_assert_held(&f->lock);
	f->failed_id = 0;
	return same;
}

struct nhca_feed *nhca_fault_feed(struct nhca_fault *f)
{
	return &f->feed;
}

struct nhca_fault *nhca_fault_of(struct nhca_feed *feed)
{
	return container_of(feed, struct nhca_fault, feed);
}

bool nhca_fault_begin(struct nhca_fault *f)
{
	bool begun;

	spin_lock_bh(&f->lock);
	begun = !f->busy;
	if (begun) {
		WRITE_ONCE(f->busy, true);
		refcount_inc(&f->ref);
	}
	/*
	 * the owner tries again when the wait has ended, even if an earlier call has begun the wait
	 */
	WRITE_ONCE(f->owner_waits, true);
	spin_unlock_bh(&f->lock);
	return begun;
}

bool nhca_fault_end(struct nhca_fault *f)
{
	bool resume;

	spin_lock_bh(&f->lock);
	WARN_ON_ONCE(!f->busy);
	WRITE_ONCE(f->busy, false);
	resume = f->owner_waits && f->resume;
	if (resume)
		f->resume(f->arg);
	spin_unlock_bh(&f->lock);
	nhca_fault_put(f);
	return resume;
}

void nhca_fault_write_op(struct nhca_fault *f, u64 op)
{
	if (READ_ONCE(f->feed.write_op) == op)
		return;
	spin_lock_bh(&f->lock);
	WRITE_ONCE(f->feed.write_op, op);
	f->feed.error = 0;
	f->flushed = false;
	spin_unlock_bh(&f->lock);
}

void nhca_fault_flush_end(struct nhca_fault *f, u64 op, int err)
{
	spin_lock_bh(&f->lock);
	if (f->feed.write_op == op) {
		f->feed.error = err;
		f->flushed = true;
	}
	spin_unlock_bh(&f->lock);
}

int nhca_fault_flushed(struct nhca_fault *f, u64 op)
{
	int err = -EAGAIN;

	spin_lock_bh(&f->lock);
	if (f->feed.write_op == op && f->flushed)
		err = f->feed.error ? -EIO : 0;
	spin_unlock_bh(&f->lock);
	return err;
}

void nhca_fault_write_begin(struct nhca_fault *f)
{
	spin_lock_bh(&f->lock);
	f->writes++;
	spin_unlock_bh(&f->lock);
}

bool nhca_fault_write_end(struct nhca_fault *f, u64 op, int err)
{
	bool end;

	spin_lock_bh(&f->lock);
	if (err && f->feed.write_op == op)
		f->feed.error = err;
	WARN_ON_ONCE(!f->writes);
	end = !--f->writes && f->syncing;
	if (end)
		f->syncing = false;
	spin_unlock_bh(&f->lock);
	return end;
}

int nhca_fault_sync(struct nhca_fault *f)
{
	int err = -EAGAIN;

	spin_lock_bh(&f->lock);
	if (!f->writes) {
		err = f->feed.error ? -EIO : 0;
	} else {
		/* an owner that already waits (f->busy) calls this function again afterwards */
		if (!f->busy) {
			WRITE_ONCE(f->busy, true);
			f->syncing = true;
			refcount_inc(&f->ref);
		}
		WRITE_ONCE(f->owner_waits, true);
	}
	spin_unlock_bh(&f->lock);
	return err;
}

/*
 * Request bytes of a backing.  For a remote access, @it->left covers only the packets in progress,
 * and @ahead covers the later bytes of the message.  For a local access @ahead is not used, because
 * the later bytes may belong to other SGEs.  For a local read @it->left already covers all bytes
 * that the message still needs from this SGE.
 * Return: as nhca_iter_fault().
 */
static int backing_want(const struct nhca_iter *it, u32 ahead, struct nhca_fault *f)
{
	struct nhca_backing *b = it->mr->backing;
	u64 len = (u64)it->left + (it->access & NHCA_REMOTE_ACCESS ? ahead : 0);

	if (it->fault != f)
		return -EACCES;
	return b->ops->want(b, f, nhca_backing_op(it), it->at, len, nhca_iter_writes(it));
}

int nhca_iter_fault(const struct nhca_iter *it, u32 ahead, struct nhca_fault *f)
{
	struct nhca_mr *mr = it->mr;

	/* a caller without @f cannot wait for the bytes */
	if (!f || WARN_ON_ONCE(!mr))
		return -EACCES;
	if (mr->kind == NHCA_MR_BACKED)
		return backing_want(it, ahead, f);
	if (WARN_ON_ONCE(!mr->ops->want))
		return -EACCES;
	return mr->ops->want(mr, it->at, (u64)it->left + ahead, nhca_iter_writes(it), f);
}

int nhca_fault_request(struct nhca_fault *f, struct nhca_odp *odp, u64 off, u64 len,
		       enum nhca_odp_mode mode)
{
	struct fault_want want = {
		.odp = odp,
		.off = off,
		.len = min_t(u64, len, FAULT_AHEAD),
		.mode = mode,
	};
	int err = -EAGAIN;

	spin_lock_bh(&f->lock);
	if (f->busy) {
		/* the owner will call this function again when the current request has ended */
		WRITE_ONCE(f->owner_waits, true);
	} else if (fault_failed(f, &want)) {
		err = -EACCES;
	} else {
		f->want = want;
		nhca_odp_get(want.odp);
		WRITE_ONCE(f->busy, true);
		WRITE_ONCE(f->owner_waits, true);
		refcount_inc(&f->ref);
		nhca_faultq_add(nhca_odp_faultq(odp), NHCA_FAULTQ_AWAITED, &f->work);
	}
	spin_unlock_bh(&f->lock);
	return err;
}

/* ---- prefetch: faults without a waiting owner ---- */

/**
 * struct fault_prefetch - a queued prefetch
 * @work: for a worker, which frees the structure
 * @want: the bytes
 */
struct fault_prefetch {
	struct nhca_faultq_work work;
	struct fault_want want;
};

static void prefetch_work(struct work_struct *work)
{
	struct fault_prefetch *p = container_of(work, struct fault_prefetch, work.work);

	/* ignore errors: a prefetch is advice, and a later access reports the error */
	nhca_odp_fault(p->want.odp, p->want.off, p->want.len, p->want.mode);
	nhca_faultq_end(nhca_odp_faultq(p->want.odp), NHCA_FAULTQ_PREFETCH);
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
	INIT_WORK(&p->work.work, prefetch_work);
	nhca_faultq_add(nhca_odp_faultq(odp), NHCA_FAULTQ_PREFETCH, &p->work);
	return 0;
}

int nhca_fault_init(void)
{
	/* no WQ_MEM_RECLAIM: a page fault itself allocates memory and may wait for reclaim */
	nhca_fault_wq = alloc_workqueue("nhca_fault", WQ_UNBOUND, WQ_MAX_ACTIVE);
	if (!nhca_fault_wq)
		return -ENOMEM;
	nhca_prefetch_wq = alloc_workqueue("nhca_prefetch", WQ_UNBOUND,
					   NHCA_FAULTQ_PREFETCHES);
	if (!nhca_prefetch_wq) {
		destroy_workqueue(nhca_fault_wq);
		return -ENOMEM;
	}
	return 0;
}

/*
 * destroy_workqueue() waits for all queued work, and for the work that nhca_faultq_end() queues
 * during this wait.  The work has references on all that it uses.
 */
void nhca_fault_exit(void)
{
	destroy_workqueue(nhca_prefetch_wq);
	/* destroyed second, because a prefetch may queue odp_reap() in this workqueue */
	destroy_workqueue(nhca_fault_wq);
}
