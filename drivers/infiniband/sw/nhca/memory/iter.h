/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Iterators: the translation of a key and an address, or of a PVO, into bytes, and the operations
 * on these bytes.
 *
 * memory.h includes this file.
 */
#ifndef NHCA_ITER_H
#define NHCA_ITER_H

#include <linux/mm.h>
#include <linux/types.h>

#include "job.h"
#include "mkey.h"
#include "rkm.h"

struct nhca_fault;
struct nhca_mr;
struct nhca_sge;

/**
 * struct nhca_seg - contiguous bytes in kernel address space
 * @addr: kernel address of the first byte, in the direct map; for a dma-buf, in the mapping of its
 *        exporter; for nhca_iter_bytes(), where the caller's buffer is
 * @len:  bytes
 */
struct nhca_seg {
	void *addr;
	u32 len;
};

/**
 * nhca_seg_page - get the page of a segment's first byte
 * @s: a segment in the direct map, so not one of a dma-buf or in vmalloc space
 *
 * The struct page of each further page of the segment comes directly after that of the page before.
 * Context: any.
 * Return: the page.
 */
static inline struct page *nhca_seg_page(const struct nhca_seg *s)
{
	return virt_to_page(s->addr);
}

/**
 * struct nhca_iter - an iterator over bytes of memory
 *
 * The bytes are named by a list of SGEs, by a remote key, address and length, by an R_Key reference
 * (ref, rkm.h), by a PVO, or they are a buffer of the kernel.  Start an iterator with
 * nhca_iter_sges(), nhca_iter_key(), nhca_iter_rkey(), nhca_iter_pvo() or nhca_iter_bytes(), then
 * call nhca_iter_next() for each segment.  All calls of nhca_iter_next() must be in one live
 * section, because an iterator checks each key, ref or PVO only once.  An iterator may be copied by
 * assignment.
 *
 * @backed: a segment was in a region of a backing.  A caller that has written to the segments must
 *          call nhca_iter_placed().
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
	struct nhca_fault *fault;
	u64 op;
	u64 at;
	u32 left_sges;
	u32 left;
	u32 skip;
	u32 rest;
	int access;
	/* public: */
	bool backed;
};

/**
 * nhca_iter_sges - start an iterator at byte @skip of a local SGE list
 * @it:       the iterator, filled in
 * @key_user: the QP that uses the keys
 * @sge:      the list; it must stay valid until the iterator is done
 * @num_sge:  elements of @sge
 * @skip:     bytes to skip
 * @len:      maximum number of bytes that will be accessed.  Only these bytes are checked, as by
 *            other adapters: an element may extend beyond its region if the message does not.
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
 * @len:      number of bytes that will be accessed.  This function checks key, domain, range and
 *            rights for all these bytes.  With 0 no byte is accessed and no key is needed.
 * @access:   IB_ACCESS_REMOTE_READ, _WRITE or _ATOMIC
 * Context: live section.
 * Return: 0; -EACCES: the key does not grant this access.
 */
int nhca_iter_key(struct nhca_iter *it, const struct nhca_key_user *key_user, u32 rkey, u64 va,
		  u32 len, int access);

/**
 * nhca_rkey_get - check a remote key for an operation of several packets, and fill in a ref to it
 * @h:      a ref (rkm.h) that is not in use
 * @key_user: the QP that uses the key
 * @rkey:   the R_Key
 * @va:     the first address
 * @len:    bytes of the whole operation.  With 0 no key is needed, and the ref grants no access.
 * @access: IB_ACCESS_REMOTE_READ or _WRITE
 * Context: BH disabled, not in a live section.
 * Return: 0: release the ref with nhca_rkey_put(); -EACCES: the key does not grant this access.
 */
int nhca_rkey_get(struct nhca_rkey_ref *h, const struct nhca_key_user *key_user, u32 rkey, u64 va,
		  u32 len, int access);

/**
 * nhca_rkey_put - release a ref when its operation has ended
 * @h: the ref; if it is not in use, nothing happens
 * Context: BH disabled.
 */
static inline void nhca_rkey_put(struct nhca_rkey_ref *h)
{
	nhca_rkm_put(h);
}

/**
 * nhca_iter_rkey - start an iterator at byte @off of an operation that has a ref
 * @it:    the iterator, filled in
 * @h:     the ref; it must stay valid until the iterator is done
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
 * @len:    bytes; before nhca_iter_next() returns the first of them, it checks all of them with
 *          nhca_pvo_check()
 * @access: as for nhca_pvo_check()
 * Context: any.
 */
void nhca_iter_pvo(struct nhca_iter *it, const struct nhca_job *job, u64 pvo, u32 len,
		   int access);

/**
 * nhca_iter_for - name the operation of an iterator
 * @it: the iterator, which was started
 * @f:  state of the requester or responder
 * @op: number of the operation; the requester or responder uses each number only once
 *
 * Regions of a backing (backing.h) need this call.  For other regions it has no effect.  Without
 * this call, a backing gets operation 0 and no @f.
 * Context: any.
 */
static inline void nhca_iter_for(struct nhca_iter *it, struct nhca_fault *f, u64 op)
{
	it->fault = f;
	it->op = op;
}

/**
 * nhca_iter_ahead - advise a backing that a new operation will need the iterator's bytes
 * @it:   the iterator, after nhca_iter_key() or nhca_iter_rkey(), and nhca_iter_for()
 * @rkey: the R_Key of the operation
 *
 * For regions without a backing nothing happens.
 * Context: live section, that of nhca_iter_key().
 * Return: true if packets of the operation may refer to the pages: the region has a backing, and
 * @rkey is the key of the region, not of a window.  Only deregistration and ibv_rereg_mr() close
 * the key of such a region, and they wait for packets.  A window can be closed in softirq, which
 * cannot wait for packets, so packets of an operation through a window must have copies of the
 * bytes.
 */
bool nhca_iter_ahead(const struct nhca_iter *it, u32 rkey);

/**
 * nhca_iter_next - get the next contiguous bytes
 * @it:  the iterator
 * @max: maximum number of bytes to return
 * @seg: the bytes, filled in
 * Context: live section.
 * Return: 0; -EACCES: the key, ref or PVO does not grant access to the next bytes; -ENODATA: no
 * bytes are left; -EAGAIN: the caller must first request the bytes by nhca_iter_fault(); -EIO: the
 * bytes cannot be read from the disk.
 */
int nhca_iter_next(struct nhca_iter *it, u32 max, struct nhca_seg *seg);

/**
 * nhca_iter_placed - hand over bytes that were written to regions of a backing
 * @it:   an iterator that was started again at the first of these bytes.  It covers these bytes and
 *        all further bytes of the operation that the caller knows.
 * @len:  number of bytes that were written; bytes in regions without a backing are skipped
 * @last: these are the last bytes of the operation
 *
 * The bytes must be those of packets that were verified.  Bytes that are not handed over never
 * reach the disk.
 * Context: the live section in which the bytes were written.
 * Return: 0; -EACCES: a key was closed after the bytes were written, the region is being freed, or
 * nhca_iter_for() was not called; -EAGAIN: the backing has taken back a block with some of the
 * bytes, so the caller must request the block by nhca_iter_fault(), and write all bytes again.
 */
int nhca_iter_placed(struct nhca_iter *it, u32 len, bool last);

/**
 * nhca_iter_pages - find the TCE of the iterator's position, for nhca_iter_page()
 * @it: the iterator
 * Context: live section.
 * Return: false if no whole page begins at the position, if the bytes there have no TCE, or if
 * nhca_iter_next() has not checked the ref or PVO yet.
 */
bool nhca_iter_pages(struct nhca_iter *it);

/**
 * nhca_iter_page - get the next page, if the iterator is at the start of a whole page
 * @it: the iterator
 *
 * For whole pages the function replaces nhca_iter_next() at a fifth of the cost, because the TCEs
 * of a range are contiguous.  The function still checks the key and the rights of each TCE.
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
 * @from_err: NULL, or where to store an error of @from; not changed without such an error
 * Context: live section.
 * Return: 0; an error of nhca_iter_next() for @to, or for @from.  An -EAGAIN of @from is returned
 * as -EIO, so that the caller does not fault in pages of @to.
 */
int nhca_iter_copy(struct nhca_iter *to, struct nhca_iter *from, u32 len, int *from_err);

/**
 * nhca_iter_write - copy bytes to the iterator's position
 * @it:  destination
 * @src: source in kernel memory
 * @len: bytes
 * Context: live section.
 * Return: 0 or as nhca_iter_next().
 */
int nhca_iter_write(struct nhca_iter *it, const void *src, u32 len);

/**
 * nhca_iter_read - copy bytes from the iterator's position
 * @it:  source
 * @dst: destination in kernel memory
 * @len: bytes
 * Context: live section.
 * Return: 0 or as nhca_iter_next().
 */
int nhca_iter_read(struct nhca_iter *it, void *dst, u32 len);

/**
 * nhca_iter_read_sum - nhca_iter_read() that also computes the Internet checksum
 * @it:  source
 * @dst: destination in kernel memory
 * @len: bytes
 * @sum: the checksum as csum_partial() returns it; undefined after an error
 *
 * The checksum matches the bytes in @dst even if another CPU writes to the source during the copy.
 * Context: live section.
 * Return: 0 or as nhca_iter_next().
 */
int nhca_iter_read_sum(struct nhca_iter *it, void *dst, u32 len, __wsum *sum);

/**
 * nhca_iter_zcopy - check whether packets may refer to the page of the last segment
 * @it: the iterator; nhca_iter_next() has just returned this segment
 * Context: live section.
 * Return: the region's pointer to its count, for nhca_pageref_add(); NULL: packets must not refer
 * to the page, so the caller must copy the bytes.
 */
struct nhca_pageref_region **nhca_iter_zcopy(const struct nhca_iter *it);

/**
 * nhca_atomic - execute one 64-bit atomic operation on registered memory
 * @key_user:    the QP that uses the key
 * @rkey:        the R_Key
 * @va:          address; the caller has checked that it is a multiple of 8
 * @cas:         compare-and-swap; otherwise fetch-and-add
 * @compare_add: value to compare with, or to add; host byte order
 * @swap:        value to store if the compare succeeds; host byte order
 * @orig:        the value before the operation; host byte order
 * @f:           state of a caller that can wait for the bytes, or NULL
 *
 * The operation is atomic with respect to other nhca atomics and to the CPUs of this host.
 * Context: live section.
 * Return: 0; -EACCES: the key does not grant this access, the bytes are not aligned in memory, the
 * region has a backing, or nhca_iter_fault() has returned -EACCES; -EAGAIN: nhca_iter_fault() has
 * requested the page, and will resume the owner of @f.
 */
int nhca_atomic(const struct nhca_key_user *key_user, u32 rkey, u64 va, bool cas,
		u64 compare_add, u64 swap, u64 *orig, struct nhca_fault *f);

/**
 * nhca_atomic_write - execute an ATOMIC WRITE (IBTA A19)
 * @key_user: the QP that uses the key
 * @rkey:  the R_Key
 * @va:    address; the caller has checked that it is a multiple of 8
 * @value: the 8 bytes in the order of the packet
 * @f:     state of a caller that can wait for the bytes, or NULL
 *
 * The 8 bytes are written by one store.  Any CPU that reads them with acquire semantics also sees
 * all that this CPU wrote before.
 * Context: live section.
 * Return: as nhca_atomic().
 */
int nhca_atomic_write(const struct nhca_key_user *key_user, u32 rkey, u64 va, u64 value,
		      struct nhca_fault *f);

/**
 * nhca_flush - execute a FLUSH (IBTA A19)
 * @key_user:  the QP that uses the key
 * @rkey:     the R_Key
 * @va:       first address; ignored if @all
 * @len:      bytes; ignored if @all
 * @all:      flush all memory of the key
 * @access:   IB_ACCESS_FLUSH_*, which the key must grant
 * @f:        state of the responder
 * @op:       number of the FLUSH; the responder uses the same number when it tries again
 *
 * When the function has returned 0, other CPUs and devices see all bytes that this CPU has written,
 * or has seen another CPU write.  If the region has a backing, the bytes of operations that have
 * ended before are on the disk; with IB_ACCESS_FLUSH_PERSISTENT they have also left the cache of
 * the disk.
 * Context: live section.
 * Return: 0; -EACCES: the key does not grant this access; -EAGAIN: @f waits for a disk; -EIO: the
 * disk could not write some bytes.
 */
int nhca_flush(const struct nhca_key_user *key_user, u32 rkey, u64 va, u32 len, bool all,
	       int access, struct nhca_fault *f, u64 op);

#endif /* NHCA_ITER_H */
