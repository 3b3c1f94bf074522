/* SPDX-License-Identifier: GPL-2.0 */
/* Private to memory/ and its tests: the structure of a region. */
#ifndef NHCA_MR_H
#define NHCA_MR_H

#include <linux/atomic.h>

#include "backing.h"
#include "memory.h"
#include "tce.h"

struct nhca_odp;
struct nhca_dmabuf;
struct nhca_mr;

/**
 * enum nhca_mr_kind - where the bytes of a region are
 * @NHCA_MR_TCE: in the pages of its range of TCEs: user memory, fast registration, device memory
 * @NHCA_MR_ALL: all kernel memory: an address is a kernel virtual address
 * @NHCA_MR_LIST: in a list of pieces of kernel memory: for IB_MR_TYPE_SG_GAPS, whose elements begin
 *                and end anywhere, and for pages of another size than PAGE_SIZE
 * @NHCA_MR_ODP: in user memory that is faulted in on demand, with a range of TCEs for each chunk in
 *               use (memory/odp.c)
 * @NHCA_MR_LINEAR: in one range of kernel addresses: a dma-buf as its exporter has mapped it
 * @NHCA_MR_BACKED: in memory while an operation needs them (backing.h)
 * @NHCA_MR_KINDS: number of kinds
 *
 * For NHCA_MR_BACKED the data path calls nhca_backing_ops.seg(), which also gets the operation
 * (iter_seg()).  For all other kinds the data path calls nhca_mr_seg(), which handles NHCA_MR_TCE
 * itself, and calls nhca_mr_ops.seg() if the kind is not NHCA_MR_TCE.
 */
enum nhca_mr_kind {
	NHCA_MR_TCE,
	NHCA_MR_ALL,
	NHCA_MR_LIST,
	NHCA_MR_ODP,
	NHCA_MR_LINEAR,
	NHCA_MR_BACKED,
	NHCA_MR_KINDS
};

/**
 * struct nhca_mr_ops - functions and properties of the regions that were registered in one way
 * @zcopy: packets may refer to the pages of the region.  @zcopy is false for memory that can be
 *         taken away while packets are in the network stack: by a local invalidate in softirq (fast
 *         registration), or by the kernel (on-demand pages).  It is also false for dma-bufs, whose
 *         memory may have no struct page.
 * @seg:   does the work of nhca_mr_seg() while the region's kind is not NHCA_MR_TCE; NULL if the
 *         kind is always NHCA_MR_TCE or NHCA_MR_BACKED.  It is called in a live section, and
 *         returns the same as nhca_mr_seg(); -EAGAIN: call @want.
 * @want:  called after @seg has returned -EAGAIN for @off; requests a fault of @len bytes, after
 *         which the owner of @f is resumed.  NULL if @seg never returns -EAGAIN.  It is called in
 *         the live section of @seg, and returns the same as nhca_iter_fault().
 * @free:  frees what only regions with these functions own; NULL if there is nothing to free.  It
 *         is called in process context, and may sleep.  The key is closed, the range of TCEs is
 *         free, and the waits for live sections and packets have ended.
 *
 * Each way of registration has one constant table.  The functions get the region, which contains
 * or points to their state.
 */
struct nhca_mr_ops {
	bool zcopy;
	int (*seg)(struct nhca_mr *mr, u64 off, u32 max, bool write, struct nhca_seg *seg);
	int (*want)(struct nhca_mr *mr, u64 off, u64 len, bool write, struct nhca_fault *f);
	void (*free)(struct nhca_mr *mr);
};

/* regions whose pages stay until the region is freed: pinned user memory, and device memory */
extern const struct nhca_mr_ops nhca_mr_pinned_ops;
/* fast registration (memory/fast.c) */
extern const struct nhca_mr_ops nhca_mr_fast_ops;

/**
 * struct nhca_mr_piece - a piece of a NHCA_MR_LIST region
 * @off:  offset in the region at which the piece begins; the pieces are sorted by @off
 * @addr: kernel virtual address of its first byte
 */
struct nhca_mr_piece {
	u64 off;
	u64 addr;
};

/**
 * struct nhca_next - the newest mapping of a fast-registered region, before IB_WR_REG_MR opens it
 * @lock:    protects all below, and ibmr.iova and ibmr.length of the region.  The lock is taken
 *           with interrupts disabled, because a consumer may map with interrupts disabled.  The
 *           lock nests inside the key's lock.
 * @kind:    as in struct nhca_mr.  IB_WR_REG_MR exchanges @kind to @npieces with the members of
 *           struct nhca_mr that have the same names.
 * @pvo:     as in struct nhca_mr
 * @tces:    as in struct nhca_mr; owned
 * @pieces:  as in struct nhca_mr; owned
 * @npieces: as in struct nhca_mr
 * @mapped:  there is a mapping that IB_WR_REG_MR has not opened
 */
struct nhca_next {
	/* protects all below */
	spinlock_t lock;
	enum nhca_mr_kind kind;
	u64 pvo;
	struct nhca_range tces;
	struct nhca_mr_piece *pieces;
	u32 npieces;
	bool mapped;
};

/**
 * struct nhca_mr - a memory region
 * @ibmr:       the core's part
 * @mkey:       its key with domain, rights and address range; mkey.off is 0
 * @ops:        functions and properties, by the way of registration; constant
 * @kind:       where the bytes are; constant, but for fast registration changed while the key is
 *              closed
 * @pvo:        PVO of the region's first byte; 0 if the region has no range, or (fast registration)
 *              if no mapping with TCEs is in place; changes only while the key is closed
 * @tces:       its range; count is 0 if there is none; owned
 * @pieces:     NHCA_MR_LIST: the pieces; change only while the key is closed; owned
 * @npieces:    NHCA_MR_LIST: number of pieces; fast registration with TCEs: number of pages of the
 *              mapping that IB_WR_REG_MR opened last
 * @max_pieces: fast registration: maximum number of pieces or pages; other regions: 0
 * @next:       fast registration: the newest mapping (memory/fast.c); has its own lock; owned
 * @windows:    number of windows bound to it; a region with windows is not closed (IBTA 10.6.7.2.6)
 * @pagerefs:   counts the references of packets to its pages (pageref.h); owned; NULL: no packet
 *              has had a reference yet
 * @umem:       nhca_mr_pinned_ops: pins user pages; NULL: no page, or device memory; owned
 * @odp:        on-demand region: its state (memory/odp.c); owned
 * @dmabuf:     region of a dma-buf: the imported buffer (memory/dmabuf.c); owned
 * @backing:    NHCA_MR_BACKED: what supplies the bytes; owned
 */
struct nhca_mr {
	struct ib_mr ibmr;
	struct nhca_mkey mkey;
	const struct nhca_mr_ops *ops;
	enum nhca_mr_kind kind;
	u64 pvo;
	struct nhca_range tces;
	struct nhca_mr_piece *pieces;
	u32 npieces;
	u32 max_pieces;
	struct nhca_next *next;
	atomic_t windows;
	struct nhca_pageref_region *pagerefs;
	union {
		struct ib_umem *umem;
		struct nhca_odp *odp;
		struct nhca_dmabuf *dmabuf;
		struct nhca_backing *backing;
	};
};

static inline struct nhca_mr *to_nhca_mr(struct ib_mr *ibmr)
{
	return container_of(ibmr, struct nhca_mr, ibmr);
}

/**
 * nhca_mr_is_fast - check whether a region is for IB_WR_REG_MR
 * @mr: the region
 * Context: any.
 * Return: true if it is.
 */
static inline bool nhca_mr_is_fast(const struct nhca_mr *mr)
{
	return mr->ops == &nhca_mr_fast_ops;
}

/**
 * nhca_mr_seg_other - nhca_mr_seg() for kinds other than NHCA_MR_TCE
 * @mr:    the region
 * @off:   offset in the region
 * @max:   maximum number of bytes
 * @write: the bytes will be written
 * @seg:   the bytes, filled in
 * Context: live section.
 * Return: as nhca_mr_seg().
 */
int nhca_mr_seg_other(struct nhca_mr *mr, u64 off, u32 max, bool write, struct nhca_seg *seg);

/**
 * nhca_pvo_seg - find the contiguous bytes at a PVO, up to the end of a page
 * @pvo:   the first byte
 * @max:   maximum number of bytes
 * @write: the bytes will be written
 * @seg:   the bytes, filled in
 * Context: live section.
 * Return: 0; -EACCES: @pvo has no TCE, or the TCE has another key or does not grant the right.
 */
static inline int nhca_pvo_seg(u64 pvo, u32 max, bool write, struct nhca_seg *seg)
{
	u64 tce, in, want = write ? NHCA_TCE_WRITE : NHCA_TCE_READ;
	unsigned int shift;
	unsigned long pfn;

	tce = nhca_tce_find(pvo, &shift);
	if (unlikely(!(tce & want)))
		return -EACCES;
	in = pvo & (BIT_ULL(shift) - 1);
	pfn = (tce & NHCA_PVO_OFFSET_MASK) >> NHCA_TCE_PFN_SHIFT << (shift - PAGE_SHIFT);
	seg->addr = __va(PFN_PHYS(pfn) + in);
	seg->len = min_t(u64, max, BIT_ULL(shift) - in);
	return 0;
}

/**
 * nhca_mr_seg - find the contiguous bytes at an offset of a region
 * @mr:    the region; its kind is not NHCA_MR_BACKED
 * @off:   offset in the region, inside the range that nhca_mkey_check() granted
 * @max:   maximum number of bytes
 * @write: the bytes will be written
 * @seg:   the bytes, filled in
 * Context: live section.
 * Return: 0; -EACCES: no page is mapped at @off, the TCE does not grant the right, or a kernel
 * address is not in the direct map; -EAGAIN: an on-demand page must be faulted in first.
 */
static inline int nhca_mr_seg(struct nhca_mr *mr, u64 off, u32 max, bool write,
			      struct nhca_seg *seg)
{
	if (likely(mr->kind == NHCA_MR_TCE))
		return nhca_pvo_seg(mr->pvo + off, max, write, seg);
	return nhca_mr_seg_other(mr, off, max, write, seg);
}

/**
 * nhca_seg_kernel - check an address of a kernel consumer, and make a segment that begins there
 * @addr: kernel virtual address
 * @len:  bytes
 * @seg:  the bytes, filled in
 *
 * An invalid address of a kernel consumer must fail the work request, not crash the host.
 * Context: any.
 * Return: 0; -EACCES: the address is not in the direct map.
 */
int nhca_seg_kernel(u64 addr, u64 len, struct nhca_seg *seg);

/**
 * nhca_mr_seg_list - nhca_mr_seg() of a NHCA_MR_LIST region
 * @mr:    the region
 * @off:   offset in the region
 * @max:   maximum number of bytes
 * @write: the bytes will be written
 * @seg:   the bytes, filled in
 * Context: live section.
 * Return: 0; -EACCES: the address is not in the direct map.
 */
int nhca_mr_seg_list(struct nhca_mr *mr, u64 off, u32 max, bool write, struct nhca_seg *seg);

/**
 * nhca_iter_writes - check whether an iterator is for writing
 * @it: the iterator
 * Context: any.
 * Return: true if it is.
 */
static inline bool nhca_iter_writes(const struct nhca_iter *it)
{
	return it->access & (IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE |
			     IB_ACCESS_REMOTE_ATOMIC);
}

/**
 * nhca_backing_op - get the operation's number as a backing gets it (NHCA_OP_SGE_SHIFT)
 * @it: the iterator
 * Context: any.
 * Return: the number.
 */
static inline u64 nhca_backing_op(const struct nhca_iter *it)
{
	BUILD_BUG_ON(NHCA_MAX_SGE >> (64 - NHCA_OP_SGE_SHIFT));
	return nhca_iter_writes(it) ? it->op | (u64)it->left_sges << NHCA_OP_SGE_SHIFT : it->op;
}

/**
 * nhca_owner_of_pd - describe the owner of ranges for regions of a protection domain
 * @pd: the protection domain
 * Context: any.
 * Return: the owner, without a reference to its user.  The process that made @pd has a reference.
 */
struct nhca_owner nhca_owner_of_pd(const struct ib_pd *pd);

/**
 * nhca_mr_alloc - allocate a region without memory; its key is closed and in the table
 * @dev:    the device
 * @pd:     protection domain
 * @access: enum ib_access_flags
 *
 * The files of memory/ that make regions call this function.  The function sets mr->ops to
 * nhca_mr_pinned_ops; a caller that needs other ops sets them before it opens the key.  verbs/
 * charges the region to the account of its user.
 * Context: process, sleeps.
 * Return: the region; ERR_PTR: as nhca_mkey_add().
 */
struct nhca_mr *nhca_mr_alloc(struct nhca_dev *dev, struct ib_pd *pd, int access);

/**
 * nhca_mr_free - close the key, wait for live sections and packets, and free @mr with all it owns
 * @mr: the region
 * Context: process, sleeps.
 */
void nhca_mr_free(struct nhca_mr *mr);

/**
 * nhca_mr_init - make the slab cache of regions when the module is loaded
 * Context: process, sleeps.
 * Return: 0; -ENOMEM: no memory.
 */
int nhca_mr_init(void);

/**
 * nhca_mr_exit - destroy the slab cache when the module is unloaded; no region is left
 * Context: process, sleeps.
 */
void nhca_mr_exit(void);

/**
 * nhca_mr_start - open the key of a region that is complete
 * @mr:     the region
 * @iova:   address of its first byte for peers and SGEs
 * @length: bytes
 * Context: process.
 */
void nhca_mr_start(struct nhca_mr *mr, u64 iova, u64 length);

/**
 * nhca_mr_map_pages - make a range of TCEs for single pages
 * @mr:       the region; the function sets its kind, tces and pvo
 * @pages:    the pages, of PAGE_SIZE each
 * @npages:   number of pages
 * @offset:   offset of the region's first byte in the first page
 * @writable: the entries permit writing
 * Context: process, sleeps.
 * Return: 0; -ENOMEM: no memory, or nhca_range_alloc() has failed with -EDQUOT or -ENOSPC; or
 * another error of nhca_range_alloc().
 */
int nhca_mr_map_pages(struct nhca_mr *mr, struct page **pages, u64 npages, u32 offset,
		      bool writable);

/**
 * nhca_mr_map_sgt - make a range of TCEs for whole pages of the kernel
 * @mr:       the region; the function sets its kind, tces and pvo
 * @sgt:      its elements are whole pages and cover @start to @start + @length - 1
 * @start:    address of the region's first byte.  Its offset in a page of 1 << @shift bytes is the
 *            same as that of the physical address.
 * @length:   bytes
 * @shift:    page size class; the memory of each entry is contiguous
 * @writable: the entries permit writing
 * Context: process, sleeps.
 * Return: 0; -EINVAL: @sgt does not cover @length bytes, or its pages are not aligned for @shift or
 * exceed the range; or as nhca_mr_map_pages().
 */
int nhca_mr_map_sgt(struct nhca_mr *mr, const struct sg_table *sgt, u64 start, u64 length,
		    unsigned int shift, bool writable);

#endif /* NHCA_MR_H */
