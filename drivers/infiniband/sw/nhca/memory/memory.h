/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The interface of memory/ to the other directories: regions, windows, keys, and the translation of
 * a key and an address into bytes.
 *
 * All code that moves data does so between nhca_live_enter() and nhca_live_exit() (live.h).  For
 * each packet it checks, in that section, the key or the hold that the key gave (rkm.h).  A key
 * that was closed before the section began is refused, and the code that closes a key waits for the
 * sections that began before.
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
 * @ibpd:  the core's part
 * @owner: account that the domain and its objects are charged to; NULL: no account
 */
struct nhca_pd {
	struct ib_pd ibpd;
	struct nhca_user *owner;
};

static inline struct nhca_pd *to_nhca_pd(struct ib_pd *ibpd)
{
	return container_of(ibpd, struct nhca_pd, ibpd);
}

/**
 * struct nhca_seg - contiguous bytes in kernel address space
 * @addr: first byte, in the direct map as the RDMA core requires of software devices; for a
 *        dma-buf, in the mapping of its exporter
 * @len:  bytes
 */
struct nhca_seg {
	void *addr;
	u32 len;
};

/**
 * nhca_seg_page - the page of a segment's first byte
 * @s: a segment in the direct map, so not one of a dma-buf or in vmalloc space
 *
 * The struct pages of the segment's other pages follow this one.
 * Context: any.  Return: the page.
 */
static inline struct page *nhca_seg_page(const struct nhca_seg *s)
{
	return virt_to_page(s->addr);
}

/**
 * struct nhca_iter - an iterator over bytes of memory
 *
 * The bytes are named by a list of SGEs, by a remote key, address and length, by a hold, by a PVO,
 * or they are a buffer of the kernel.  Start it with nhca_iter_sges(), nhca_iter_key(),
 * nhca_iter_rkey(), nhca_iter_pvo() or nhca_iter_bytes(), then call nhca_iter_next() for each
 * segment.  All calls of nhca_iter_next() are in one live section, because it checks a key, a hold
 * or a PVO only once.  An iterator may be copied by assignment.
 */
struct nhca_iter {
	/* private: */
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
 * nhca_iter_sges - start an iterator at byte @skip of a local SGE list
 * @it:       the iterator, filled in
 * @key_user: the QP that uses the keys
 * @sge:      the list; it must stay valid until the iterator is done
 * @num_sge:  elements of @sge
 * @skip:     bytes to skip
 * @len:      maximum number of bytes that will be accessed.  Only those bytes of an element are
 *            checked, as adapters do: an element may be longer than its region, not the message.
 * @access:   0 to read, IB_ACCESS_LOCAL_WRITE to write; with a remote right the elements name
 *            remote keys
 * Context: any.
 */
void nhca_iter_sges(struct nhca_iter *it, const struct nhca_key_user *key_user,
		    const struct nhca_sge *sge, u32 num_sge, u32 skip, u32 len, int access);

/**
 * nhca_iter_key - start an iterator at address @va of remote key @rkey
 * @it:       the iterator, filled in
 * @key_user: the QP that uses the key
 * @rkey:     the R_Key
 * @va:       the first address
 * @len:      all bytes that will be accessed.  This function checks them against key, domain, range
 *            and rights.  With 0 no byte is accessed and no key is needed.
 * @access:   IB_ACCESS_REMOTE_READ, _WRITE or _ATOMIC
 * Context: live section.  Return: 0 or -EACCES.
 */
int nhca_iter_key(struct nhca_iter *it, const struct nhca_key_user *key_user, u32 rkey, u64 va,
		  u32 len, int access);

/**
 * nhca_rkey_get - start an operation on a remote key whose packets arrive one by one
 * @h:      a hold that is not in use
 * @key_user, @rkey, @va: as for nhca_iter_key()
 * @len:    bytes of the whole operation.  With 0 no key is needed, and the hold grants no access
 * @access: IB_ACCESS_REMOTE_READ or _WRITE
 * Context: BH disabled, not in a live section.
 * Return: 0: release the hold with nhca_rkey_put(); -EACCES.
 */
int nhca_rkey_get(struct nhca_rkey_ref *h, const struct nhca_key_user *key_user, u32 rkey, u64 va,
		  u32 len, int access);

/**
 * nhca_rkey_put - release a hold, because its operation is over
 * @h: the hold; if it is not in use, nothing happens
 * Context: BH disabled.
 */
static inline void nhca_rkey_put(struct nhca_rkey_ref *h)
{
	nhca_rkm_put(h);
}

/**
 * nhca_iter_rkey - start an iterator at byte @off of an operation that has a hold
 * @it:    the iterator, filled in
 * @h:     the hold; it must stay valid until the iterator is done
 * @off:   byte offset in the operation
 * @len:   bytes
 * @write: the bytes will be written
 * Context: any.
 */
void nhca_iter_rkey(struct nhca_iter *it, const struct nhca_rkey_ref *h, u64 off, u32 len,
		    bool write);

/**
 * nhca_iter_bytes - start an iterator at @bytes, which are contiguous in kernel memory
 * @it:    the iterator, filled in
 * @bytes: for example a copy of inline data; the buffer must stay as long as segments of it are in
 *         use
 *
 * The iterator checks no key and has no end: the caller must not read beyond its buffer.
 * Context: any.
 */
void nhca_iter_bytes(struct nhca_iter *it, const void *bytes);

/**
 * nhca_iter_pvo - start an iterator at @pvo in the memory of a job
 * @it:     the iterator, filled in
 * @job:    the job; it must stay valid until the iterator is done
 * @pvo:    the first byte
 * @len:    bytes; nhca_iter_next() has nhca_pvo_check() check all of them before it returns the
 *          first
 * @access: as for nhca_pvo_check()
 * Context: any.
 */
void nhca_iter_pvo(struct nhca_iter *it, const struct nhca_job *job, u64 pvo, u32 len,
		   int access);

/**
 * nhca_iter_next - the next contiguous bytes
 * @it:  the iterator
 * @max: maximum number of bytes to return
 * @seg: the bytes, filled in
 * Context: live section.
 * Return: 0; -EACCES: key, domain, range or rights of the next SGE are wrong; -ENODATA: the end of
 * the list was reached; -EAGAIN: nhca_iter_fault() must fault in an on-demand page first.
 */
int nhca_iter_next(struct nhca_iter *it, u32 max, struct nhca_seg *seg);

/**
 * nhca_iter_pages - find the TCE of the iterator's position, for nhca_iter_page()
 * @it: the iterator
 * Context: live section.
 * Return: false if the position is not the start of a whole page that has a TCE.
 */
bool nhca_iter_pages(struct nhca_iter *it);

/**
 * nhca_iter_page - the next page, if the iterator is at the start of a whole page
 * @it: the iterator
 *
 * This is nhca_iter_next() for the later pages of a range, at a fifth of the cost, because the TCEs
 * of a range are contiguous.  The key and the rights of each TCE are still checked.
 * Context: live section.
 * Return: the page, or NULL: the caller must use nhca_iter_next().
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
	/* an entry of a huge page covers many pages; any other entry covers one */
	if (it->order)
		tce += it->in++;
	else
		it->tce++;
	return pfn_to_page(tce);
}

/**
 * nhca_iter_copy - copy bytes from one iterator to another
 * @to:       destination
 * @from:     source
 * @len:      bytes
 * @from_err: NULL, or set to the error if the error is of @from, and not changed otherwise
 * Context: live section.
 * Return: 0; an error of nhca_iter_next() for @to; an error of @from, with -EIO in place of -EAGAIN
 * so that the caller does not fault in pages of @to.
 */
int nhca_iter_copy(struct nhca_iter *to, struct nhca_iter *from, u32 len, int *from_err);

/**
 * nhca_iter_write - copy bytes to the iterator's position
 * @it, @src: destination; source in kernel memory
 * @len:      bytes
 * Context: live section.  Return: 0 or as nhca_iter_next().
 */
int nhca_iter_write(struct nhca_iter *it, const void *src, u32 len);

/**
 * nhca_iter_read - copy bytes from the iterator's position
 * @it, @dst: source; destination in kernel memory
 * @len:      bytes
 * Context: live section.  Return: 0 or as nhca_iter_next().
 */
int nhca_iter_read(struct nhca_iter *it, void *dst, u32 len);

/**
 * nhca_iter_read_sum - nhca_iter_read() that also computes the Internet checksum
 * @it, @dst, @len: as for nhca_iter_read()
 * @sum: the checksum as csum_partial() returns it; undefined after an error
 *
 * The checksum matches the bytes in @dst even if another CPU writes to the source meanwhile.
 * Context: live section.  Return: 0 or as nhca_iter_next().
 */
int nhca_iter_read_sum(struct nhca_iter *it, void *dst, u32 len, __wsum *sum);

/**
 * nhca_iter_zcopy - check that packets may refer to the page of the last segment
 * @it: the iterator; nhca_iter_next() has just returned a segment
 *
 * If they may, the region is marked, so that closing it waits for such references (net/zcopy.h).
 * Context: live section, before the caller takes the reference.
 * Return: true if packets may refer to the page; false: copy it.
 */
bool nhca_iter_zcopy(const struct nhca_iter *it);

/**
 * nhca_atomic - execute one 64-bit atomic operation on registered memory
 * @key_user, @rkey: the QP that uses the key, and the R_Key
 * @va:          address, a multiple of 8: the caller has checked that
 * @cas:         compare-and-swap; otherwise fetch-and-add
 * @compare_add: value to compare with, or to add; host byte order
 * @swap:        value to store if the compare succeeds; host byte order
 * @orig:        the value before the operation; host byte order
 *
 * The operation is atomic with respect to other nhca atomics and to the CPUs of this host.
 * Context: live section.  Return: 0; -EACCES; -EAGAIN as nhca_iter_next().
 */
int nhca_atomic(const struct nhca_key_user *key_user, u32 rkey, u64 va, bool cas,
		u64 compare_add, u64 swap, u64 *orig);

/**
 * nhca_atomic_write - execute an ATOMIC WRITE (IBTA A19)
 * @key_user, @rkey: the QP that uses the key, and the R_Key
 * @va:    address, a multiple of 8: the caller has checked that
 * @value: the 8 bytes as they are in the packet
 *
 * The 8 bytes are written by one store.  Any CPU that reads them with acquire semantics also sees
 * all that this CPU wrote before.
 * Context: live section.  Return: 0; -EACCES; -EAGAIN as nhca_iter_next().
 */
int nhca_atomic_write(const struct nhca_key_user *key_user, u32 rkey, u64 va, u64 value);

/**
 * nhca_flush - execute a FLUSH (IBTA A19)
 * @key_user, @rkey: the QP that uses the key, and the R_Key
 * @va, @len: first address, and bytes; ignored if @all
 * @all:      flush all memory of the key
 * @access:   IB_ACCESS_FLUSH_*, which the key must grant
 *
 * On return other CPUs and devices see all bytes that this CPU has written, or has seen another CPU
 * write.
 * Context: live section.  Return: 0 or -EACCES.
 */
int nhca_flush(const struct nhca_key_user *key_user, u32 rkey, u64 va, u32 len, bool all,
	       int access);

/* ---- on-demand pages: handling of -EAGAIN ---- */

/*
 * The state of a requester, responder or channel that waits for on-demand pages.  A QP has one for
 * its requester and one for its responder; a channel has one.
 */
struct nhca_fault;

#ifdef CONFIG_INFINIBAND_ON_DEMAND_PAGING

/**
 * nhca_fault_alloc - allocate the state
 * @resume: called when a requested fault has ended, so that the owner tries again.  It runs with a
 *          lock of the state held and BH disabled, and may only queue work (struct nhca_bh).
 * @arg:    argument of @resume
 * Context: process, sleeps.
 * Return: the state, for nhca_fault_free(); NULL: out of memory.
 */
struct nhca_fault *nhca_fault_alloc(void (*resume)(void *arg), void *arg);

/**
 * nhca_fault_free - free the state
 * @f: the state or NULL
 *
 * On return @resume is not running and will not be called.  The function does not wait for a page
 * fault that is in progress: the worker frees the state after it.
 * Context: process or softirq; the owner does not request faults any more.
 */
void nhca_fault_free(struct nhca_fault *f);

/**
 * nhca_fault_cancel - the owner does not need the requested pages any more (QP reset or error)
 * @f: the state or NULL
 *
 * On return @resume is not running, and will not be called before the owner requests another fault.
 * Context: process or softirq.
 */
void nhca_fault_cancel(struct nhca_fault *f);

/**
 * nhca_fault_has_job - nhca_fault_waiting() without the check for NULL
 * @f: the state
 * Context: any.  Return: true if @resume will be called.
 */
bool nhca_fault_has_job(const struct nhca_fault *f);

/**
 * nhca_fault_waiting - check whether the owner waits for a fault
 * @f: the state or NULL
 * Context: any.  Return: true if a requested fault has not ended; @resume will be called after it
 * has.
 */
static inline bool nhca_fault_waiting(const struct nhca_fault *f)
{
	return f && nhca_fault_has_job(f);
}

/**
 * nhca_iter_fault - have a worker fault in the pages after -EAGAIN of an iterator
 * @it:    the iterator, as the call that returned -EAGAIN left it
 * @ahead: bytes of the same message that follow those of @it in the same buffer, 0 if not known;
 *         they are faulted in as well, up to 1 MiB with those of @it
 * @f:     state of the caller; with NULL the function returns -EACCES
 * Context: the live section in which the iterator was used.
 * Return: -EAGAIN: @resume of @f will be called; an earlier retry is useless but harmless.
 * -EACCES: the fault that @f has just requested for the same bytes failed; treat this as any access
 * error.
 */
int nhca_iter_fault(const struct nhca_iter *it, u32 ahead, struct nhca_fault *f);

/**
 * nhca_key_fault - nhca_iter_fault() for callers without an iterator, as of nhca_atomic()
 * @key_user, @rkey, @va, @access: as for nhca_iter_key()
 * @len: bytes, at least 1
 * @f:   state of the caller
 * Context: live section.
 * Return: -EAGAIN or -EACCES, as nhca_iter_fault().
 */
int nhca_key_fault(const struct nhca_key_user *key_user, u32 rkey, u64 va, u32 len, int access,
		   struct nhca_fault *f);

/**
 * nhca_mr_odp - register user memory without pinning it (IB_ACCESS_ON_DEMAND)
 * @dev, @pd, @iova, @access: as for nhca_mr_user()
 * @start:  first address; with 0 and a @length of SIZE_MAX the region is all memory of the process,
 *          present and future
 * @length: bytes; with 0 the region is the same as a pinned one
 * Context: process, sleeps.  Return: the region or ERR_PTR.
 */
struct ib_mr *nhca_mr_odp(struct nhca_dev *dev, struct ib_pd *pd, u64 start, u64 length,
			  u64 iova, int access);

/**
 * nhca_mr_prefetch - make on-demand pages present in advance
 * @pd:     protection domain of the caller
 * @lkey:   the L_Key
 * @va:     first address, as in an SGE
 * @len:    bytes
 * @advice: prefetch for reading, for writing, or only the pages that the process has now
 * @wait:   wait for the end; otherwise a worker does it later, and its failure is not reported
 * Context: process, sleeps.  Return: 0; -ENOENT: no such key, or the region was deregistered
 * meanwhile; -EINVAL: not an on-demand region; -EPERM: another domain, or a prefetch for writing of
 * a read-only region; -EFAULT: outside the region, or no such memory; -ENOMEM; -ENOSPC; -EBUSY: the
 * memory changes all the time; -EINTR; -EAGAIN: too many prefetches of the region are queued.
 */
int nhca_mr_prefetch(struct ib_pd *pd, u32 lkey, u64 va, u32 len,
		     enum ib_uverbs_advise_mr_advice advice, bool wait);

#else

/* without on-demand paging no iterator returns -EAGAIN, so no caller waits */
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

/* ---- local operations, executed by the requester: softirq, not in a live section ---- */

/**
 * nhca_local_inv - execute IB_WR_LOCAL_INV: close the key of a region or window
 * @key_user: the QP
 * @key:      L_Key of a region or R_Key of a window
 * @user:     posted by user space, which may close only windows
 *
 * On return no byte moves through the key any more.
 * Context: BH disabled, not in a live section.
 * Return: 0; -EINVAL: no such open key, not for this QP, a type 1 window, a region that is not for
 * fast registration or has windows bound to it, or any region if @user.
 */
int nhca_local_inv(const struct nhca_key_user *key_user, u32 key, bool user);

/**
 * nhca_remote_inv - execute a peer's SEND with invalidate (IBTA 10.6.5.2)
 * @key_user: the QP that received it
 * @rkey:     the R_Key
 *
 * Like nhca_local_inv(), for type 2 windows of this QP and for fast-registered regions of its
 * domain that have a remote right.
 * Context: BH disabled, not in a live section.  Return: 0 or -EINVAL.
 */
int nhca_remote_inv(const struct nhca_key_user *key_user, u32 rkey);

/**
 * nhca_mw_bind - execute IB_WR_BIND_MW (IBTA 10.6.7.2): bind, move, shrink or unbind a window
 * @key_user: the QP that binds
 * @wqe:      its mw part.  A length of 0 unbinds.  Only the low 8 bits of new_rkey are used;
 *            afterwards the window's ibmw.rkey is the whole new key.
 *
 * An open window is closed first.  If the bind fails, the window stays as it was.
 * Context: BH disabled, not in a live section.
 * Return: 0; -EINVAL or -EACCES: the request completes with IB_WC_MW_BIND_ERR.
 */
int nhca_mw_bind(const struct nhca_key_user *key_user, const struct nhca_send_wqe *wqe);

/**
 * nhca_reg_fast - execute IB_WR_REG_MR: open a fast-registered region
 * @key_user: the QP that opens it
 * @lkey:     L_Key of the region; only its index is used
 * @key:      the new key, as in struct ib_reg_wr
 * @access:   enum ib_access_flags, as in struct ib_reg_wr
 * Context: BH disabled, not in a live section.
 * Return: 0; -EINVAL: no such region, it is open, it has no mapping, or the key or rights are
 * wrong.
 */
int nhca_reg_fast(const struct nhca_key_user *key_user, u32 lkey, u32 key, int access);

/* ---- called by verbs/mr.c, mw.c and dm.c: process context, may sleep ---- */

/**
 * nhca_mr_user - register user memory
 * @dev:    the device
 * @pd:     protection domain
 * @start:  first address in the process
 * @length: bytes; with 0 the region has no pages, and only operations of no bytes can use it
 * @iova:   the address that peers and SGEs use for @start
 * @access: enum ib_access_flags
 * Context: process, sleeps.  Return: the region or ERR_PTR.
 */
struct ib_mr *nhca_mr_user(struct nhca_dev *dev, struct ib_pd *pd, u64 start,
			   u64 length, u64 iova, int access);

/**
 * nhca_mr_user_args - the arguments with which a user region was registered
 * @ibmr:   the region; the caller prevents its deregistration
 * @start:  first address in the process; not set if the function fails
 * @length: bytes
 * @iova:   address of the first byte for peers and SGEs
 * @access: enum ib_access_flags
 * Context: process.
 * Return: 0; -EOPNOTSUPP: the pages are not pinned, so @start is unknown; the others are set.
 */
int nhca_mr_user_args(const struct ib_mr *ibmr, u64 *start, u64 *length, u64 *iova,
		      int *access);

/**
 * nhca_mr_change - change the rights or the domain of a user region; its keys stay
 * @ibmr:   the region
 * @pd:     the new protection domain
 * @access: the new rights
 *
 * On return no byte moves by the old rights.
 * Context: process, sleeps.  Return: 0; -EPERM: the pages were pinned for reading and @access
 * includes writing, so the caller must register the memory again; -EBUSY: windows are bound to the
 * region; -EOPNOTSUPP: its pages are not pinned.
 */
int nhca_mr_change(struct ib_mr *ibmr, struct ib_pd *pd, int access);

/**
 * nhca_mr_dma - make the region of all kernel memory
 * @dev, @access: as for nhca_mr_user()
 * @pd: protection domain of a kernel consumer
 *
 * Addresses in it are those of ib_virt_dma: kernel virtual addresses.
 * Context: process, sleeps.
 * Return: the region; ERR_PTR: -EPERM for a domain of user space, -ENOMEM, -ENOSPC.
 */
struct ib_mr *nhca_mr_dma(struct nhca_dev *dev, struct ib_pd *pd, int access);

/**
 * nhca_mr_fast - make a region for fast registration, without a mapping and with its key closed
 * @dev, @pd: as for nhca_mr_user()
 * @max_sg:   maximum number of elements that nhca_mr_fast_map() can map
 * @gaps:     elements may begin and end anywhere, not only at page boundaries
 * Context: process, sleeps.  Return: the region or ERR_PTR.
 */
struct ib_mr *nhca_mr_fast(struct nhca_dev *dev, struct ib_pd *pd, u32 max_sg, bool gaps);

/**
 * nhca_mr_fast_map - execute ib_map_mr_sg(): set the memory that the next IB_WR_REG_MR opens
 * @ibmr:      the region.  Its key may be open; the memory that it opens does not change.
 * @sg:        scatterlist with kernel virtual addresses as DMA addresses
 * @sg_nents:  elements of @sg
 * @sg_offset: NULL, or bytes of the first element to skip; see ib_map_mr_sg()
 * Context: any; one call at a time for a region.
 * Return: number of elements mapped, -EINVAL or -ENOMEM.
 */
int nhca_mr_fast_map(struct ib_mr *ibmr, struct scatterlist *sg, int sg_nents,
		     unsigned int *sg_offset);

/**
 * nhca_mr_dm - make a region of device memory (dm.h); its addresses begin at 0
 * @dev, @pd, @access: as for nhca_mr_user()
 * @dm:     the device memory; the caller keeps it until it has destroyed the region
 * @offset: byte of @dm at which the region begins
 * @length: bytes
 * Context: process, sleeps.  Return: the region or ERR_PTR.
 */
struct ib_mr *nhca_mr_dm(struct nhca_dev *dev, struct ib_pd *pd, struct nhca_dm *dm,
			 u64 offset, u64 length, int access);

#ifdef CONFIG_DMA_SHARED_BUFFER
/**
 * nhca_mr_dmabuf - make a region of a dma-buf
 * @dev, @pd, @iova, @access: as for nhca_mr_user()
 * @offset: byte of the buffer at which the region begins
 * @length: bytes
 * @fd:     file descriptor of the dma-buf
 * Context: process, sleeps.
 * Return: the region; ERR_PTR: -EOPNOTSUPP: the buffer is I/O memory, which this driver cannot
 * access; -EACCES: the buffer was shared for reading and @access includes writing; or others.
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
 * nhca_mr_close - close the key of a region that another region replaces
 * @ibmr: the region; its key is not opened again
 * Context: process.
 * Return: 0; -EBUSY: windows are bound to the region.
 */
int nhca_mr_close(struct ib_mr *ibmr);

/**
 * nhca_mr_destroy - close the key of a region and free the region
 * @dev:  the device
 * @ibmr: the region
 *
 * The function waits for live sections.  It then waits for packets that refer to pages of the
 * region, within the limits of nhca_zcopy_wait(), and unpins the pages.
 * Context: process, sleeps.  Return: 0; -EBUSY: windows are bound to the region.
 */
int nhca_mr_destroy(struct nhca_dev *dev, struct ib_mr *ibmr);

/**
 * struct nhca_mw - a memory window
 * @ibmw:  the core's part
 * @mkey:  its key; while it is open, the window counts in nhca_mr.windows of its region
 * @by_qp: entry among the bound type 2 windows of the QP; private to memory/mw.c
 */
struct nhca_mw {
	struct ib_mw ibmw;
	struct nhca_mkey mkey;
	struct hlist_node by_qp;
};

/**
 * nhca_mw_init - give a window a key; the window is unbound
 * @mw:   the window; ibmw.rkey is set
 * @pd:   protection domain
 * @type: type of the window
 * Context: process, sleeps.  Return: 0, -ENOMEM or -ENOSPC.
 */
int nhca_mw_init(struct nhca_mw *mw, struct ib_pd *pd, enum ib_mw_type type);

/**
 * nhca_mw_fini - close a window's key and wait for live sections; the window may be freed then
 * @mw: the window
 * Context: process, sleeps.
 */
void nhca_mw_fini(struct nhca_mw *mw);

/**
 * nhca_mw_qp_gone - close the type 2 windows that a QP has bound
 * @key_user: the QP.  It is being destroyed, and another QP may get its number.  Its requester and
 *            responder have stopped, so it binds no more windows.
 * Context: process, sleeps.
 */
void nhca_mw_qp_gone(const struct nhca_key_user *key_user);

/**
 * nhca_mw_device_cap - the kind of type 2 windows, from module parameter mw_type
 * Context: any.  Return: IB_DEVICE_MEM_WINDOW_TYPE_2A or _2B.
 */
u64 nhca_mw_device_cap(void);

/**
 * nhca_mr_dump - fill in the reply to a resource query of a region (memory/debug.c)
 * @ibmr: the region
 * @res:  filled in
 * Context: process.
 */
void nhca_mr_dump(struct ib_mr *ibmr, struct nhca_res_mr *res);

/**
 * nhca_memory_init - initialize memory/ when the module is loaded
 * Context: process, sleeps.  Return: 0 or -ENOMEM.
 */
int nhca_memory_init(void);

/**
 * nhca_memory_exit - undo nhca_memory_init() when the module is unloaded
 * Context: process, sleeps.
 */
void nhca_memory_exit(void);

#endif /* NHCA_MEMORY_H */
