/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Regions, windows, keys and the way from a key and an address to bytes: what the
 * transport and verbs rooms see of memory/.
 *
 * Everything that moves data does so inside nhca_live_enter() / nhca_live_exit()
 * (live.h) and asks the key, or the hold that a key opened (rkm.h), anew for each
 * packet: a key that was closed before the section began opens nothing, and closing
 * waits for the sections that began before it.
 */
#ifndef NHCA_MEMORY_H
#define NHCA_MEMORY_H

#include "../nhca.h"
#include "job.h"
#include "live.h"
#include "mkey.h"
#include "rkm.h"

struct nhca_dm;
struct nhca_mr;

/**
 * struct nhca_pd - a protection domain
 */
struct nhca_pd {
	struct ib_pd ibpd;
};

static inline struct nhca_pd *to_nhca_pd(struct ib_pd *ibpd)
{
	return container_of(ibpd, struct nhca_pd, ibpd);
}

/**
 * struct nhca_seg - bytes that lie together
 * @addr: where; in the kernel's map of all memory, as the RDMA core wants of software devices, or,
 *        of a dma-buf, in its exporter's mapping
 * @len:  bytes
 */
struct nhca_seg {
	void *addr;
	u32 len;
};

/* the first page of a segment in the kernel's map of all memory; those behind it follow */
static inline struct page *nhca_seg_page(const struct nhca_seg *s)
{
	return virt_to_page(s->addr);
}

/**
 * struct nhca_iter - walks the bytes that a list of SGEs, one remote
 * key/address/length, a hold, or a PVO names, or bytes of the kernel's own
 *
 * Init with nhca_iter_sges(), nhca_iter_key(), nhca_iter_rkey(), nhca_iter_pvo() or
 * nhca_iter_bytes(), then nhca_iter_next() until all is done, in one live section, in which
 * keys, holds and PVOs are asked.  May be copied.  Fields are private.
 */
struct nhca_iter {
	const u64 *tce;
	u64 want;
	u32 pages;
	u32 in;
	u32 order;
	const struct nhca_key_user *key_user;
	const struct nhca_sge *sge;
	const struct nhca_rkey_ref *ref;
	const void *bytes;
	const struct nhca_job *job;
	struct nhca_job_mem *mem;
	struct nhca_mr *mr;
	u64 at;
	u32 left_sges;
	u32 left;
	u32 skip;
	u32 rest;
	int access;
};

/**
 * nhca_iter_sges - begin at byte @skip of a local SGE list
 * @len:    bytes that will be touched, at most: of each element only those are checked, as adapters
 *          do, so that an element may be longer than its region if the message is not
 * @access: 0 to read, IB_ACCESS_LOCAL_WRITE to write; or a remote right, and then the
 *          elements name remote keys
 * Context: any; @sge has to stay until the iterator is done.
 */
void nhca_iter_sges(struct nhca_iter *it, const struct nhca_key_user *key_user,
		    const struct nhca_sge *sge, u32 num_sge, u32 skip, u32 len, int access);

/**
 * nhca_iter_key - begin at @va of what remote key @rkey names
 * @len: all bytes that will be touched; checked here against key, domain, range
 *       and access; 0 touches nothing and needs no key
 * @access: IB_ACCESS_REMOTE_READ, _WRITE or _ATOMIC
 * Context: live section.
 * Return: 0, -EACCES.
 */
int nhca_iter_key(struct nhca_iter *it, const struct nhca_key_user *key_user, u32 rkey, u64 va,
		  u32 len, int access);

/**
 * nhca_rkey_get - begin an operation on what remote key @rkey names, whose packets will
 * come one by one
 * @h:   not in use
 * @len: of the whole operation; 0 needs no key, and gives a hold that opens nothing
 * Context: BH disabled, not in a live section.
 * Return: 0: end it with nhca_rkey_put(); -EACCES.
 */
int nhca_rkey_get(struct nhca_rkey_ref *h, const struct nhca_key_user *key_user, u32 rkey, u64 va,
		  u32 len, int access);

/* the operation is over; fine if it never began; BH disabled */
static inline void nhca_rkey_put(struct nhca_rkey_ref *h)
{
	nhca_rkm_put(h);
}

/**
 * nhca_iter_rkey - @len bytes from byte @off of a held operation
 * @write: they will be written
 * Context: any; @h has to stay until the iterator is done.
 */
void nhca_iter_rkey(struct nhca_iter *it, const struct nhca_rkey_ref *h, u64 off, u32 len,
		    bool write);

/**
 * nhca_iter_bytes - begin at @bytes, which lie together in memory of the kernel
 * (a copy of inline data): no key, no check, and no end but the caller's
 * Context: any; @bytes has to stay as long as what nhca_iter_next() gave is used.
 */
void nhca_iter_bytes(struct nhca_iter *it, const void *bytes);

/**
 * nhca_iter_pvo - @len bytes of job memory from @pvo on
 * @access: as for nhca_pvo_check(), which is asked about all of them before the first is given out
 * Context: any; @job has to stay until the iterator is done.
 */
void nhca_iter_pvo(struct nhca_iter *it, const struct nhca_job *job, u64 pvo, u32 len,
		   int access);

/**
 * nhca_iter_next - the next bytes, at most @max, that lie together
 * Return: 0; -EACCES if key, domain, range or access of the next SGE is wrong;
 * -ENODATA past the end of the list; -EAGAIN: an on-demand page has to be faulted in
 * first (nhca_iter_fault()).
 * Context: live section.
 */
int nhca_iter_next(struct nhca_iter *it, u32 max, struct nhca_seg *seg);

/* for nhca_iter_page(): find the entry.  Return: false if there is none for whole pages */
bool nhca_iter_pages(struct nhca_iter *it);

/**
 * nhca_iter_page - the next page, if the iterator stands at the begin of a whole one
 *
 * As nhca_iter_next(), for those that come after a first one, and at a fifth of the cost: their
 * entries lie behind each other.  Each is looked at, key and rights, like any other.
 *
 * Context: live section.
 * Return: the page; NULL: nhca_iter_next() knows what is there.
 */
static inline struct page *nhca_iter_page(struct nhca_iter *it)
{
	u64 tce;

	if (!it->pages && !nhca_iter_pages(it))
		return NULL;
	tce = READ_ONCE(*it->tce);
	if (unlikely((tce ^ it->want) &
		     (~NHCA_PVO_OFFSET_MASK | (it->want & (NHCA_TCE_READ | NHCA_TCE_WRITE)))))
		return NULL;
	tce = (tce & NHCA_PVO_OFFSET_MASK) >> NHCA_TCE_PFN_SHIFT << it->order;
	it->at += PAGE_SIZE;
	it->left -= PAGE_SIZE;
	it->pages--;
	/* of a huge page as far as it goes; of others, one an entry */
	if (it->order)
		tce += it->in++;
	else
		it->tce++;
	return pfn_to_page(tce);
}

/**
 * nhca_iter_copy - copy @len bytes from what one iterator walks to what another does
 * @from_err: if not NULL: what was wrong with @from, if that was it
 * Context: live section.
 * Return: 0; as nhca_iter_next() of @to, which can be told from @from_err; an error of @from.
 */
int nhca_iter_copy(struct nhca_iter *to, struct nhca_iter *from, u32 len, int *from_err);

/**
 * nhca_iter_write - copy @len bytes from @src to where the iterator stands
 * nhca_iter_read - the other way
 * Return: 0 or as nhca_iter_next().
 */
int nhca_iter_write(struct nhca_iter *it, const void *src, u32 len);
int nhca_iter_read(struct nhca_iter *it, void *dst, u32 len);

/**
 * nhca_iter_read_sum - nhca_iter_read(), and the Internet checksum of the bytes in the same pass
 * @sum: theirs, as csum_partial() has it; undefined behind an error
 *
 * It is of what @dst has, also while somebody writes where the iterator reads.
 */
int nhca_iter_read_sum(struct nhca_iter *it, void *dst, u32 len, __wsum *sum);

/**
 * nhca_iter_zcopy - may packets carry a reference to the page that nhca_iter_next() just gave?
 * Notes that the region is in packets, so that closing it waits for their references (net/zcopy.h).
 * Context: live section, before the reference is taken.
 */
bool nhca_iter_zcopy(const struct nhca_iter *it);

/**
 * nhca_atomic - do one 64-bit atomic on registered memory
 * @key_user: whose QP
 * @rkey, @va: where; @va is 8-byte aligned (the caller has checked)
 * @cas: compare-and-swap, else fetch-and-add
 * @compare_add, @swap: operands in host order
 * @orig: what was there before, host order
 * Atomic with respect to other nhca atomics and to the CPUs of this host.
 * Context: live section.  Return: 0, -EACCES, -EAGAIN.
 */
int nhca_atomic(const struct nhca_key_user *key_user, u32 rkey, u64 va, bool cas,
		u64 compare_add, u64 swap, u64 *orig);

/**
 * nhca_atomic_write - store 8 bytes in registered memory at once (IBTA A19)
 * @rkey, @va: where; @va is 8-byte aligned (the caller has checked)
 * @value: as in the packet
 * Whoever sees the bytes, on whatever CPU, sees all that this CPU has written before them.
 * Context: live section.  Return: 0, -EACCES, -EAGAIN.
 */
int nhca_atomic_write(const struct nhca_key_user *key_user, u32 rkey, u64 va, u64 value);

/**
 * nhca_flush - what was written by a key is seen by all on this host (IBTA A19)
 * @va, @len: the bytes; not looked at if @all
 * @all:    all that the key opens
 * @access: IB_ACCESS_FLUSH_*, which the key must grant
 * What this CPU has written, or has seen written, is in memory that devices see, too.
 * Context: live section.  Return: 0, -EACCES.
 */
int nhca_flush(const struct nhca_key_user *key_user, u32 rkey, u64 va, u32 len, bool all,
	       int access);

/* ---- on-demand pages: what an engine does with -EAGAIN ---- */

/**
 * struct nhca_fault - where an engine waits for on-demand pages; a QP has one for its send
 * engine and one for its receive engine
 */
struct nhca_fault;

#ifdef CONFIG_INFINIBAND_ON_DEMAND_PAGING

/**
 * nhca_fault_alloc - a place to wait
 * @resume: a fault that was asked for is over: try again.  Called with a lock of @f held
 *          and BH disabled: it queues (struct nhca_bh) and does no more
 * Context: process, sleeps.  Return: NULL: no memory.
 */
struct nhca_fault *nhca_fault_alloc(void (*resume)(void *arg), void *arg);

/**
 * nhca_fault_free - give it up; takes NULL
 * When it returns @resume is not running and will not be called.  A page fault that is
 * under way is not waited for.
 * Context: process or softirq; the engine has stopped.
 */
void nhca_fault_free(struct nhca_fault *f);

/* what was asked for is not wanted any more (QP reset, error); else as nhca_fault_free() */
void nhca_fault_cancel(struct nhca_fault *f);

/* nhca_fault_waiting() of one that there is */
bool nhca_fault_has_job(const struct nhca_fault *f);

/**
 * nhca_fault_waiting - has the engine something to wait for?  Then @resume will be called
 * after this has become false; takes NULL.
 * Context: any.
 */
static inline bool nhca_fault_waiting(const struct nhca_fault *f)
{
	return f && nhca_fault_has_job(f);
}

/**
 * nhca_iter_fault - nhca_iter_next() (or _write(), _read()) just said -EAGAIN: let a worker
 * fault the bytes in
 * @it:    as it was left
 * @ahead: bytes of the same message that will follow in the same buffer beyond those
 *         of @it, 0 if that is not known; they come along, up to a limit
 * @f:     NULL: -EACCES
 * Context: the live section that the iterator was used in.
 * Return: -EAGAIN: @f's resume will be called; until then nothing is to be gained by
 * trying again, but no harm done.  -EACCES: this was tried for @f just before, and there is
 * no such memory: now it is an error like any other.
 */
int nhca_iter_fault(const struct nhca_iter *it, u32 ahead, struct nhca_fault *f);

/**
 * nhca_key_fault - as nhca_iter_fault(), for nhca_atomic() and whoever has no iterator
 * Context: live section.  Return: -EAGAIN, -EACCES; 0 if @len is 0.
 */
int nhca_key_fault(const struct nhca_key_user *key_user, u32 rkey, u64 va, u32 len, int access,
		   struct nhca_fault *f);

/**
 * nhca_mr_odp - register user memory that is not pinned (IB_ACCESS_ON_DEMAND)
 * @start, @length: 0 and SIZE_MAX: all memory of the process, now and later; a region of no
 *          bytes is as if it was pinned
 * Return: the region or ERR_PTR.
 */
struct ib_mr *nhca_mr_odp(struct nhca_dev *dev, struct ib_pd *pd, u64 start, u64 length,
			  u64 iova, int access);

/**
 * nhca_mr_prefetch - make on-demand pages present before they are wanted
 * @lkey, @va, @len: as in an SGE
 * @wait: else it is done later, and nobody is told that it failed
 * Return: 0; -ENOENT: no such key; -EINVAL: not on demand; -EPERM: another domain,
 * or a region that is only read shall be written; -EFAULT: beyond the region, or no
 * such memory; -ENOMEM; -EINTR; -EAGAIN: too many prefetches of the region wait already.
 */
int nhca_mr_prefetch(struct ib_pd *pd, u32 lkey, u64 va, u32 len,
		     enum ib_uverbs_advise_mr_advice advice, bool wait);

#else

/* nobody ever sees -EAGAIN */
static inline struct nhca_fault *nhca_fault_alloc(void (*resume)(void *arg), void *arg)
{
	return ZERO_SIZE_PTR;
}

static inline void nhca_fault_free(struct nhca_fault *f) { }
static inline void nhca_fault_cancel(struct nhca_fault *f) { }
static inline bool nhca_fault_waiting(const struct nhca_fault *f) { return false; }

static inline int nhca_iter_fault(const struct nhca_iter *it, u32 ahead, struct nhca_fault *f)
{
	return -EACCES;
}

static inline int nhca_key_fault(const struct nhca_key_user *key_user, u32 rkey, u64 va, u32 len,
				 int access, struct nhca_fault *f)
{
	return -EACCES;
}

static inline struct ib_mr *nhca_mr_odp(struct nhca_dev *dev, struct ib_pd *pd, u64 start,
					u64 length, u64 iova, int access)
{
	return ERR_PTR(-EOPNOTSUPP);
}

static inline int nhca_mr_prefetch(struct ib_pd *pd, u32 lkey, u64 va, u32 len,
				   enum ib_uverbs_advise_mr_advice advice, bool wait)
{
	return -EOPNOTSUPP;
}

#endif

/* ---- local operations: the send engine runs them; softirq, not in a live section ---- */

/**
 * nhca_local_inv - IB_WR_LOCAL_INV: close a region's or window's key
 * Done when it returns: nothing moves through the key any more.
 * @user: posted by user space, which may only close windows
 * Return: 0; -EINVAL: no such open key, not of this key_user, a type 1 window, a user's
 * region, or a region that windows are bound to.
 */
int nhca_local_inv(const struct nhca_key_user *key_user, u32 key, bool user);

/**
 * nhca_remote_inv - the peer's SEND with invalidate (IBTA 10.6.5.2): as above, for type 2
 * windows and fast-registered regions of this key_user with a remote right
 * Return: 0, -EINVAL.
 */
int nhca_remote_inv(const struct nhca_key_user *key_user, u32 rkey);

/**
 * nhca_mw_bind - IB_WR_BIND_MW (IBTA 10.6.7.2): bind, move, shrink or unbind a window
 * @wqe: its mw part; length 0 unbinds; of new_rkey the low 8 bits count, and the window's
 *       ibmw.rkey is the whole new key afterwards
 * What was open before is closed first; on failure the window stays as it was.
 * Return: 0, -EINVAL, -EACCES: completes with IB_WC_MW_BIND_ERR.
 */
int nhca_mw_bind(const struct nhca_key_user *key_user, const struct nhca_send_wqe *wqe);

/**
 * nhca_reg_fast - IB_WR_REG_MR: open a fast-registered region
 * @lkey: names the region by its index
 * @key, @access: as in struct ib_reg_wr
 * Return: 0, -EINVAL: no such region, it is open, nothing is mapped.
 */
int nhca_reg_fast(const struct nhca_key_user *key_user, u32 lkey, u32 key, int access);

/* ---- what verbs/mr.c, mw.c and dm.c call; process context, may sleep ---- */

/**
 * nhca_mr_user - register user memory
 * @length: bytes; 0: the region has no pages, and serves operations of no bytes only
 * @iova: the address that peers and SGEs use for @start
 * Return: the region or ERR_PTR.
 */
struct ib_mr *nhca_mr_user(struct nhca_dev *dev, struct ib_pd *pd, u64 start,
			   u64 length, u64 iova, int access);

/**
 * nhca_mr_user_args - what a user region was registered with, for registering
 * it anew
 * The caller holds the region.
 * Return: 0; -EOPNOTSUPP: not pinned, @start is not known (the others are).
 */
int nhca_mr_user_args(const struct ib_mr *ibmr, u64 *start, u64 *length, u64 *iova,
		      int *access);

/**
 * nhca_mr_change - give a user region other rights or another domain; its keys
 * stay.  When it returns nothing moves by the old rights.
 * Return: 0; -EPERM if the region's pages were pinned for reading and @access
 * writes: it has to be registered anew; -EBUSY if windows are bound to it;
 * -EOPNOTSUPP if its pages are not pinned.
 */
int nhca_mr_change(struct ib_mr *ibmr, struct ib_pd *pd, int access);

/**
 * nhca_mr_dma - the kernel's all-memory region; addresses are those of
 * ib_virt_dma (kernel virtual)
 */
struct ib_mr *nhca_mr_dma(struct nhca_dev *dev, struct ib_pd *pd, int access);

/**
 * nhca_mr_fast - a region for fast registration, with nothing mapped, its key closed
 * @max_sg: elements of nhca_mr_fast_map()
 * @gaps:   they begin and end anywhere
 * Return: the region or ERR_PTR.
 */
struct ib_mr *nhca_mr_fast(struct nhca_dev *dev, struct ib_pd *pd, u32 max_sg, bool gaps);

/**
 * nhca_mr_fast_map - ib_map_mr_sg(): what the next IB_WR_REG_MR will open
 * The key may be open: what it opens stays.
 * Context: any; one at a time.  Return: elements mapped, or an error.
 */
int nhca_mr_fast_map(struct ib_mr *ibmr, struct scatterlist *sg, int sg_nents,
		     unsigned int *sg_offset);

/**
 * nhca_mr_dm - a region on device memory (dm.h); its first byte is at @offset of it
 * Addresses begin at 0.  The caller holds @dm until it has destroyed the region.
 * Return: the region or ERR_PTR.
 */
struct ib_mr *nhca_mr_dm(struct nhca_dev *dev, struct ib_pd *pd, struct nhca_dm *dm,
			 u64 offset, u64 length, int access);

#ifdef CONFIG_DMA_SHARED_BUFFER
/**
 * nhca_mr_dmabuf - a region on a dma-buf; its first byte is at @offset of it
 * Return: the region or ERR_PTR; -EOPNOTSUPP if it is not memory that a CPU can use;
 * -EACCES if it was shared for reading and @access writes.
 */
struct ib_mr *nhca_mr_dmabuf(struct nhca_dev *dev, struct ib_pd *pd, u64 offset, u64 length,
			     u64 iova, int fd, int access);
#else
static inline struct ib_mr *nhca_mr_dmabuf(struct nhca_dev *dev, struct ib_pd *pd, u64 offset,
					   u64 length, u64 iova, int fd, int access)
{
	return ERR_PTR(-EOPNOTSUPP);
}
#endif

/**
 * nhca_mr_close - close the key for good: another region is taking this one's place
 * Return: 0; -EBUSY if windows are bound to it.
 */
int nhca_mr_close(struct ib_mr *ibmr);

/**
 * nhca_mr_destroy - close the key, wait for live sections and, as long as the netdev
 * sends, for pages lent to the stack, unpin, free
 * Return: 0; -EBUSY if windows are bound to it.
 */
int nhca_mr_destroy(struct nhca_dev *dev, struct ib_mr *ibmr);

/**
 * struct nhca_mw - a memory window
 * @ibmw: the core's part
 * @mkey: its key; while open: the region it is bound to counts it
 * @by_qp: bound type 2 windows: among those of the QP; private to memory/mw.c
 */
struct nhca_mw {
	struct ib_mw ibmw;
	struct nhca_mkey mkey;
	struct hlist_node by_qp;
};

/* Return: 0: ibmw.rkey is set, the window unbound; -ENOMEM, -ENOSPC. */
int nhca_mw_init(struct nhca_mw *mw, struct ib_pd *pd, enum ib_mw_type type);
/* closes and waits; the window may be freed */
void nhca_mw_fini(struct nhca_mw *mw);

/**
 * nhca_mw_qp_gone - close the type 2 windows that a QP has bound: it is being destroyed,
 * and another may get its number
 * Its engines have stopped, so that it binds no more.
 * Context: process, sleeps.
 */
void nhca_mw_qp_gone(const struct nhca_key_user *key_user);

/* what type 2 windows are: IB_DEVICE_MEM_WINDOW_TYPE_2A or _2B (module parameter mw_type) */
u64 nhca_mw_device_cap(void);

/* what there is to be seen of a region (memory/debug.c); process */
void nhca_mr_dump(struct ib_mr *ibmr, struct nhca_res_mr *res);

/* module load: random first keys; unload */
int nhca_memory_init(void);
void nhca_memory_exit(void);

#endif /* NHCA_MEMORY_H */
