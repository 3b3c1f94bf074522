// SPDX-License-Identifier: GPL-2.0
/*
 * On-demand paging.
 *
 * A region consists of chunks of address space, each as large as the memory that one page table of
 * the lowest level maps.  A chunk is made by the first fault in it (nhca_odp_fault()).  Each chunk
 * has its own range of TCEs and its own interval notifier.  A chunk that has lost its last page is
 * freed after about 1 s or less.  So a region may be as large as the address space (an implicit
 * region is), and only the part in use needs memory.  This file does not use the core's
 * ib_umem_odp, which needs 8 to 16 bytes for each page that may be accessed.  The TCEs are the only
 * list of pages here, and odp_chunk.writable records which pages may be dirty.
 *
 * The driver takes no references on the pages.  The kernel calls the notifier before it takes pages
 * away.  When the notifier returns, no TCE maps these pages, and the live sections that had found
 * them have ended.  The notifier takes only spinlocks, so it also works where code must not sleep.
 */
#include <linux/bitmap.h>
#include <linux/hmm.h>
#include <linux/jiffies.h>
#include <linux/memcontrol.h>
#include <linux/memremap.h>
#include <linux/mm.h>
#include <linux/mmu_notifier.h>
#include <linux/refcount.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>

#include "faultq.h"
#include "mr.h"
#include "odp.h"

#define ODP_CHUNK_SHIFT	PMD_SHIFT
#define ODP_CHUNK_SIZE	BIT(ODP_CHUNK_SHIFT)
#define ODP_CHUNK_PAGES	BIT(ODP_CHUNK_SHIFT - PAGE_SHIFT)

/* maximum number of pages of one hmm_range_fault(); their list is on the stack */
#define ODP_BATCH	64

/* for regions up to this size, the registration sets the TCEs of the pages that are present */
#define ODP_PRESENT_MAX	SZ_64M

/* delay in jiffies of the work item that frees chunks without pages, odp_reap() */
#define ODP_REAP_DELAY	HZ

/* mark in nhca_odp.chunks: the chunk may have no pages */
#define ODP_EMPTY	XA_MARK_1

/**
 * struct nhca_odp - memory of an on-demand region
 * @ref:        one for the region, and one for each fault and prefetch that has not ended
 * @id:         see nhca_odp_id()
 * @mm:         address space of the process; mmgrab() reference, which does not keep its memory
 * @faultq:     the queue of its page faults; counted reference
 * @start:      address of the region's first byte in the process
 * @length:     bytes; with @start it does not wrap
 * @writable:   the region permits writes; written while its key is closed; READ_ONCE()
 * @owner:      owner of its TCEs, and a reference to its user; written under @lock
 * @first:      number of the chunk that contains @start
 * @chunks:     chunks, by their number minus @first; written under @lock
 * @lock:       protects @chunks, and odp_chunk.users of each chunk
 * @reap:       frees chunks without pages
 * @closed:     the region is deregistered; faults in progress end soon, because their pages are not
 *              needed
 * @prefetches: number of prefetches that have not ended
 */
struct nhca_odp {
	refcount_t ref;
	u64 id;
	struct mm_struct *mm;
	struct nhca_faultq *faultq;
	u64 start;
	u64 length;
	bool writable;
	struct nhca_owner owner;
	unsigned long first;
	struct xarray chunks;
	/* protects the chunks and their users */
	struct mutex lock;
	struct delayed_work reap;
	bool closed;
	atomic_t prefetches;
};

/**
 * struct odp_chunk - a chunk of an on-demand region
 * @notifier: called when the kernel takes pages away
 * @odp:      memory of the region
 * @index:    index in nhca_odp.chunks
 * @base:     first address of the chunk in the process
 * @tces:     one entry for each page
 * @pvo:      PVO of @base
 * @users:    number of faults in progress in the chunk; protected by nhca_odp.lock
 * @lock:     serializes writes to TCEs, and protects all below
 * @present:  number of TCEs that are set
 * @writable: pages whose TCE has permitted writing, so that they may have become dirty
 */
struct odp_chunk {
	struct mmu_interval_notifier notifier;
	struct nhca_odp *odp;
	unsigned long index;
	unsigned long base;
	struct nhca_range tces;
	u64 pvo;
	unsigned int users;
	/* serializes writes to TCEs, and protects all below */
	spinlock_t lock;
	unsigned int present;
	DECLARE_BITMAP(writable, ODP_CHUNK_PAGES);
};

static atomic64_t odp_ids;

/* ---- the data path ---- */

/* Return: 0; -EAGAIN: the page has no TCE, or @write is set and the TCE is only for reading. */
static int odp_seg(struct nhca_mr *mr, u64 off, u32 max, bool write, struct nhca_seg *seg)
{
	struct nhca_odp *odp = mr->odp;
	unsigned long va = odp->start + off;
	struct odp_chunk *chunk;

	/* a chunk is freed only after the end of the live sections that may have found it */
	chunk = xa_load(&odp->chunks, (va >> ODP_CHUNK_SHIFT) - odp->first);
	if (!chunk)
		return -EAGAIN;
	if (nhca_pvo_seg(chunk->pvo + (va - chunk->base), max, write, seg))
		return -EAGAIN;
	return 0;
}

static int odp_want(struct nhca_mr *mr, u64 off, u64 len, bool write, struct nhca_fault *f)
{
	return nhca_fault_request(f, mr->odp, off, len, write ? NHCA_ODP_WRITE : NHCA_ODP_READ);
}

/* ---- pages ---- */

static u64 chunk_tce(const struct odp_chunk *chunk, unsigned int i)
{
	unsigned int shift;

	return nhca_tce_find(chunk->pvo + ((u64)i << PAGE_SHIFT), &shift);
}

static unsigned long tce_pfn(u64 tce)
{
	return (tce & NHCA_PVO_OFFSET_MASK) >> NHCA_TCE_PFN_SHIFT;
}

/*
 * Remove the pages @from to @to - 1.  First clear the rights in their TCEs, then wait for live
 * sections.  Mark pages dirty only after the wait, because a section may write until it ends.
 */
static void chunk_clear(struct odp_chunk *chunk, unsigned int from, unsigned int to)
{
	unsigned int i;
	u64 tce;

	lockdep_assert_held(&chunk->lock);
	for (i = from; i < to; i++) {
		tce = chunk_tce(chunk, i);
		if (tce)
			nhca_range_set(&chunk->tces, i, tce_pfn(tce), 0);
	}
	nhca_live_wait();
	for (i = from; i < to; i++) {
		tce = chunk_tce(chunk, i);
		if (!tce)
			continue;
		if (test_and_clear_bit(i, chunk->writable))
			set_page_dirty(pfn_to_page(tce_pfn(tce)));
		nhca_range_clear(&chunk->tces, i, 1);
		chunk->present--;
	}
}

/* Set the TCEs of the pages that hmm_range_fault() found.  Return: 0; -EFAULT: PCI memory. */
static int chunk_set(struct odp_chunk *chunk, unsigned int first, const unsigned long *pfns,
		     unsigned int n)
{
	struct page *page;
	unsigned int i;
	u64 flags;

	lockdep_assert_held(&chunk->lock);
	for (i = 0; i < n; i++) {
		if (!(pfns[i] & HMM_PFN_VALID))
			continue;
		page = hmm_pfn_to_page(pfns[i]);
		/* memory of a PCI device, which the CPU must not access as normal memory */
		if (is_pci_p2pdma_page(page))
			return -EFAULT;
		flags = NHCA_TCE_READ;
		if (READ_ONCE(chunk->odp->writable) && (pfns[i] & HMM_PFN_WRITE)) {
			flags |= NHCA_TCE_WRITE;
			set_bit(first + i, chunk->writable);
		}
		if (!chunk_tce(chunk, first + i))
			chunk->present++;
		nhca_range_set(&chunk->tces, first + i, page_to_pfn(page), flags);
	}
	return 0;
}

static void odp_reap_later(struct nhca_odp *odp, unsigned long index)
{
	xa_set_mark(&odp->chunks, index, ODP_EMPTY);
	queue_delayed_work(nhca_fault_wq, &odp->reap, ODP_REAP_DELAY);
}

/*
 * The notifier: the kernel is about to take away pages of @range or to change their rights.  Memory
 * reclaim may wait for this function, so it allocates nothing and takes only spinlocks.
 */
static bool chunk_invalidate(struct mmu_interval_notifier *notifier,
			     const struct mmu_notifier_range *range, unsigned long cur_seq)
{
	struct odp_chunk *chunk = container_of(notifier, struct odp_chunk, notifier);
	unsigned long from = max(range->start, chunk->base) - chunk->base;
	unsigned long to = min(range->end - 1, chunk->base + (ODP_CHUNK_SIZE - 1)) - chunk->base;
	bool gone;

	spin_lock(&chunk->lock);
	mmu_interval_set_seq(notifier, cur_seq);
	gone = chunk->present;
	if (gone)
		chunk_clear(chunk, from >> PAGE_SHIFT, (to >> PAGE_SHIFT) + 1);
	gone &= !chunk->present;
	spin_unlock(&chunk->lock);

	/* the chunk is still valid, because chunk_destroy() waits for this notifier */
	if (gone)
		odp_reap_later(chunk->odp, chunk->index);
	return true;
}

static const struct mmu_interval_notifier_ops chunk_notifier_ops = {
	.invalidate = chunk_invalidate,
};

/* ---- chunks ---- */

static struct odp_chunk *chunk_create(struct nhca_odp *odp, unsigned long index)
{
	struct odp_chunk *chunk;
	int err;

	lockdep_assert_held(&odp->lock);
	chunk = kzalloc(sizeof(*chunk), GFP_KERNEL_ACCOUNT);
	if (!chunk)
		return ERR_PTR(-ENOMEM);
	spin_lock_init(&chunk->lock);
	chunk->odp = odp;
	chunk->index = index;
	chunk->base = (odp->first + index) << ODP_CHUNK_SHIFT;
	err = nhca_range_alloc(&chunk->tces, PAGE_SHIFT, ODP_CHUNK_PAGES, &odp->owner);
	if (err)
		goto err_free;
	chunk->pvo = nhca_range_pvo(&chunk->tces);
	err = mmu_interval_notifier_insert(&chunk->notifier, odp->mm, chunk->base,
					   ODP_CHUNK_SIZE, &chunk_notifier_ops);
	if (err)
		goto err_range;
	err = xa_insert(&odp->chunks, index, chunk, GFP_KERNEL_ACCOUNT);
	if (err)
		goto err_notifier;
	return chunk;

err_notifier:
	mmu_interval_notifier_remove(&chunk->notifier);
err_range:
	nhca_range_free(&chunk->tces);
err_free:
	kfree(chunk);
	return ERR_PTR(nhca_verb_error(err));
}

static void chunk_destroy(struct odp_chunk *chunk)
{
	lockdep_assert_held(&chunk->odp->lock);
	xa_erase(&chunk->odp->chunks, chunk->index);
	/* after this wait no live section uses the chunk */
	nhca_live_wait();
	/*
	 * Clear the pages before the notifier is removed, because without the notifier the kernel
	 * could take away pages that still have TCEs.
	 */
	spin_lock(&chunk->lock);
	if (chunk->present)
		chunk_clear(chunk, 0, ODP_CHUNK_PAGES);
	spin_unlock(&chunk->lock);
	mmu_interval_notifier_remove(&chunk->notifier);
	nhca_range_free(&chunk->tces);
	kfree(chunk);
}

static void odp_reap(struct work_struct *work)
{
	struct nhca_odp *odp = container_of(to_delayed_work(work), struct nhca_odp, reap);
	struct odp_chunk *chunk;
	unsigned long index;

	mutex_lock(&odp->lock);
	xa_for_each_marked(&odp->chunks, index, chunk, ODP_EMPTY) {
		xa_clear_mark(&odp->chunks, index, ODP_EMPTY);
		/* only a fault adds pages, and users counts each fault in progress */
		if (!chunk->users && !READ_ONCE(chunk->present))
			chunk_destroy(chunk);
		cond_resched();
	}
	mutex_unlock(&odp->lock);
}

/* Find or make the chunk that contains @va.  The caller has a reference on the address space. */
static struct odp_chunk *chunk_get(struct nhca_odp *odp, unsigned long va)
{
	unsigned long index = (va >> ODP_CHUNK_SHIFT) - odp->first;
	struct odp_chunk *chunk;

	mutex_lock(&odp->lock);
	chunk = xa_load(&odp->chunks, index);
	if (!chunk)
		chunk = chunk_create(odp, index);
	if (!IS_ERR(chunk))
		chunk->users++;
	mutex_unlock(&odp->lock);
	return chunk;
}

static void chunk_put(struct odp_chunk *chunk)
{
	struct nhca_odp *odp = chunk->odp;

	mutex_lock(&odp->lock);
	if (!--chunk->users && !READ_ONCE(chunk->present))
		odp_reap_later(odp, chunk->index);
	mutex_unlock(&odp->lock);
}

/* ---- faults ---- */

/*
 * Fault in the pages of the addresses @start to @end - 1 of a chunk, at most ODP_BATCH pages.
 * Return: 0, or as nhca_odp_fault().
 */
static int chunk_fault_batch(struct odp_chunk *chunk, unsigned long start, unsigned long end,
			     enum nhca_odp_mode mode)
{
	unsigned long timeout = jiffies + msecs_to_jiffies(HMM_RANGE_DEFAULT_TIMEOUT);
	struct mm_struct *mm = chunk->odp->mm;
	unsigned long pfns[ODP_BATCH];
	struct hmm_range range = {
		.notifier = &chunk->notifier,
		.start = start,
		.end = end,
		.hmm_pfns = pfns,
	};
	int err;

	if (mode != NHCA_ODP_PRESENT)
		range.default_flags = HMM_PFN_REQ_FAULT;
	if (mode == NHCA_ODP_WRITE)
		range.default_flags |= HMM_PFN_REQ_WRITE;

	do {
		memset(pfns, 0, sizeof(pfns));
		range.notifier_seq = mmu_interval_read_begin(&chunk->notifier);
		mmap_read_lock(mm);
		err = hmm_range_fault(&range);
		mmap_read_unlock(mm);
		if (err && err != -EBUSY)
			return err == -ENOMEM ? err : -EFAULT;
		if (err)
			continue;

		spin_lock(&chunk->lock);
		if (mmu_interval_read_retry(&chunk->notifier, range.notifier_seq))
			err = -EBUSY;
		else
			err = chunk_set(chunk, (start - chunk->base) >> PAGE_SHIFT, pfns,
					(end - start) >> PAGE_SHIFT);
		spin_unlock(&chunk->lock);
	} while (err == -EBUSY && time_before(jiffies, timeout));
	return err;
}

/*
 * Fault in the bytes @va to @end - 1 of one chunk.
 * Return: number of bytes from @va on that were handled; if no byte was handled, an error.
 */
static s64 chunk_fault(struct odp_chunk *chunk, unsigned long va, unsigned long end,
		       enum nhca_odp_mode mode)
{
	unsigned long at = va & PAGE_MASK, next;
	int err = 0;

	while (at < end) {
		err = -ENOENT;
		if (READ_ONCE(chunk->odp->closed))
			break;
		next = min(PAGE_ALIGN(end), at + ODP_BATCH * PAGE_SIZE);
		err = chunk_fault_batch(chunk, at, next, mode);
		if (err && next - at > PAGE_SIZE) {
			/* one of the pages may have failed: try only the first page */
			next = at + PAGE_SIZE;
			err = chunk_fault_batch(chunk, at, next, mode);
		}
		if (err)
			break;
		at = next;
		cond_resched();
	}
	return at > va ? min(at, end) - va : err;
}

static s64 odp_fault(struct nhca_odp *odp, unsigned long va, unsigned long end,
		     enum nhca_odp_mode mode)
{
	unsigned long at = va, next;
	struct odp_chunk *chunk;
	s64 n = 0;

	while (at < end) {
		n = -ENOENT;
		if (READ_ONCE(odp->closed))
			break;
		/* computed from the last byte, because the end of a chunk may wrap to 0 */
		next = min(end - 1, at | (ODP_CHUNK_SIZE - 1)) + 1;
		chunk = chunk_get(odp, at);
		if (IS_ERR(chunk)) {
			n = PTR_ERR(chunk);
			break;
		}
		n = chunk_fault(chunk, at, next, mode);
		chunk_put(chunk);
		if (n > 0)
			at += n;
		if (at != next)
			break;
	}
	return at > va ? at - va : n;
}

s64 nhca_odp_fault(struct nhca_odp *odp, u64 off, u64 len, enum nhca_odp_mode mode)
{
	struct mem_cgroup *memcg, *old;
	u64 va;
	s64 n;

	if (!len || off >= odp->length)
		return -EFAULT;
	len = min(len, odp->length - off);
	va = odp->start + off;
	if (!access_ok((void __user *)(unsigned long)va, len))
		return -EFAULT;
	if (!mmget_not_zero(odp->mm))
		return -EFAULT;
	/* charge the TCEs to the memory cgroup of the process that has the pages */
	memcg = get_mem_cgroup_from_mm(odp->mm);
	old = set_active_memcg(memcg);
	n = odp_fault(odp, va, va + len, mode);
	set_active_memcg(old);
	mem_cgroup_put(memcg);
	/*
	 * Asynchronous, because the release of the last reference tears down the address space,
	 * which may take long and calls the notifiers of this driver.
	 */
	mmput_async(odp->mm);
	return n;
}

/* ---- regions ---- */

static struct nhca_odp *odp_create(struct ib_pd *pd, u64 start, u64 length, int access)
{
	struct nhca_odp *odp = kzalloc(sizeof(*odp), GFP_KERNEL_ACCOUNT);

	if (!odp)
		return NULL;
	odp->faultq = nhca_faultq_get_current();
	if (!odp->faultq) {
		kfree(odp);
		return NULL;
	}
	refcount_set(&odp->ref, 1);
	odp->id = atomic64_inc_return(&odp_ids);
	odp->mm = current->mm;
	mmgrab(odp->mm);
	odp->start = start;
	odp->length = length;
	odp->writable = ib_access_writable(access);
	odp->owner = nhca_owner_of_pd(pd);
	nhca_user_hold(odp->owner.user);
	odp->first = start >> ODP_CHUNK_SHIFT;
	xa_init_flags(&odp->chunks, XA_FLAGS_ACCOUNT);
	mutex_init(&odp->lock);
	INIT_DELAYED_WORK(&odp->reap, odp_reap);
	return odp;
}

struct nhca_odp *nhca_odp_get(struct nhca_odp *odp)
{
	refcount_inc(&odp->ref);
	return odp;
}

void nhca_odp_put(struct nhca_odp *odp)
{
	struct odp_chunk *chunk;
	unsigned long index;

	if (!refcount_dec_and_test(&odp->ref))
		return;
	mutex_lock(&odp->lock);
	xa_for_each(&odp->chunks, index, chunk) {
		chunk_destroy(chunk);
		cond_resched();
	}
	mutex_unlock(&odp->lock);
	/* only notifiers and chunk_put() queue this work, and no chunk is left */
	cancel_delayed_work_sync(&odp->reap);
	xa_destroy(&odp->chunks);
	nhca_user_put(odp->owner.user);
	nhca_faultq_put(odp->faultq);
	mmdrop(odp->mm);
	kfree(odp);
}

/*
 * Each fault that is queued or in progress ends after at most ODP_BATCH more pages.  This function
 * does not wait for these faults; they have references on all that they use.
 */
static void odp_free(struct nhca_mr *mr)
{
	if (!mr->odp)
		return;
	WRITE_ONCE(mr->odp->closed, true);
	nhca_odp_put(mr->odp);
}

static const struct nhca_mr_ops odp_ops = {
	.seg = odp_seg,
	.want = odp_want,
	.free = odp_free,
};

bool nhca_odp_prefetch_begin(struct nhca_odp *odp)
{
	return atomic_add_unless(&odp->prefetches, 1, NHCA_ODP_PREFETCHES);
}

void nhca_odp_prefetch_end(struct nhca_odp *odp)
{
	atomic_dec(&odp->prefetches);
}

struct nhca_faultq *nhca_odp_faultq(const struct nhca_odp *odp)
{
	return odp->faultq;
}

u64 nhca_odp_id(const struct nhca_odp *odp)
{
	return odp->id;
}

u64 nhca_odp_start(const struct nhca_odp *odp)
{
	return odp->start;
}

void nhca_odp_rights(struct nhca_odp *odp, int access)
{
	WRITE_ONCE(odp->writable, ib_access_writable(access));
}

void nhca_odp_owner(struct nhca_odp *odp, struct ib_pd *pd)
{
	struct odp_chunk *chunk;
	unsigned long index;

	mutex_lock(&odp->lock);
	odp->owner.id = (uintptr_t)pd;
	xa_for_each(&odp->chunks, index, chunk)
		chunk->tces.owner = odp->owner;
	mutex_unlock(&odp->lock);
}

struct ib_mr *nhca_mr_odp(struct nhca_dev *dev, struct ib_pd *pd, u64 start, u64 length,
			  u64 iova, int access)
{
	bool implicit = !start && length >= SIZE_MAX;
	struct nhca_mr *mr;

	if (!length)
		return nhca_mr_user(dev, pd, start, length, iova, access);
	if (access & IB_ZERO_BASED)
		iova = 0;
	if (implicit) {
		/* an implicit region has the process's addresses, and pages of any size */
		if (iova || (access & IB_ACCESS_HUGETLB))
			return ERR_PTR(-EINVAL);
		length = U64_MAX;
	} else {
		if (iova + length - 1 < iova)
			return ERR_PTR(-EINVAL);
		if (start != (unsigned long)start || length != (size_t)length ||
		    start + length < start)
			return ERR_PTR(-EINVAL);
		if (!access_ok((void __user *)(unsigned long)start, length))
			return ERR_PTR(-EFAULT);
	}

	mr = nhca_mr_alloc(dev, pd, access);
	if (IS_ERR(mr))
		return ERR_CAST(mr);
	mr->ibmr.type = IB_MR_TYPE_USER;
	mr->ops = &odp_ops;
	mr->kind = NHCA_MR_ODP;
	mr->odp = odp_create(pd, start, length, access);
	if (!mr->odp) {
		nhca_mr_free(mr);
		return ERR_PTR(-ENOMEM);
	}
	/*
	 * Set the TCEs of present pages, so that the first packets do not wait for faults.  Ignore
	 * errors: a later fault reports them.
	 */
	if (length <= ODP_PRESENT_MAX)
		nhca_odp_fault(mr->odp, 0, length, NHCA_ODP_PRESENT);
	nhca_mr_start(mr, iova, length);
	return &mr->ibmr;
}

/*
 * Find the on-demand region of @lkey, if it contains the bytes @va to @va + @len - 1, and set @off.
 * Return: a counted reference, or ERR_PTR as nhca_mr_prefetch().
 */
static struct nhca_odp *odp_of_key(struct ib_pd *pd, u32 lkey, u64 va, u64 len, bool write,
				   u64 *off)
{
	struct nhca_odp *odp = ERR_PTR(-ENOENT);
	struct nhca_mkey *mk;

	local_bh_disable();
	mk = nhca_mkey_get(lkey);
	if (!mk)
		goto enable;
	spin_lock(&mk->lock);
	if (!mk->valid || mk->key != lkey)
		goto unlock;
	if (mk->type != NHCA_MKEY_MR || mk->mr->ops != &odp_ops)
		odp = ERR_PTR(-EINVAL);
	else if (mk->pd != pd || (write && !READ_ONCE(mk->mr->odp->writable)))
		odp = ERR_PTR(-EPERM);
	else if (va < mk->va || len > mk->length || va - mk->va > mk->length - len)
		odp = ERR_PTR(-EFAULT);
	else
		odp = nhca_odp_get(mk->mr->odp);
	*off = va - mk->va;
unlock:
	spin_unlock(&mk->lock);
	nhca_mkey_put(mk);
enable:
	local_bh_enable();
	return odp;
}

int nhca_mr_prefetch(struct ib_pd *pd, u32 lkey, u64 va, u32 len,
		     enum ib_uverbs_advise_mr_advice advice, bool wait)
{
	enum nhca_odp_mode mode = NHCA_ODP_READ;
	struct nhca_odp *odp;
	u64 off, done = 0;
	s64 n = 0;

	if (advice == IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_WRITE)
		mode = NHCA_ODP_WRITE;
	else if (advice == IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT)
		mode = NHCA_ODP_PRESENT;

	odp = odp_of_key(pd, lkey, va, len, mode == NHCA_ODP_WRITE, &off);
	if (IS_ERR(odp))
		return PTR_ERR(odp);
	if (!wait && len)
		n = nhca_fault_queue(odp, off, len, mode);
	for (; wait && n >= 0 && done < len; done += n) {
		if (fatal_signal_pending(current))
			n = -EINTR;
		else
			n = nhca_odp_fault(odp, off + done, min(len - done, ODP_CHUNK_SIZE), mode);
	}
	nhca_odp_put(odp);
	return n < 0 ? n : 0;
}
