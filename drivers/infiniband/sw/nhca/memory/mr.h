/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Private to memory/ and its tests: what a region is.
 */
#ifndef NHCA_MR_H
#define NHCA_MR_H

#include <linux/atomic.h>

#include "memory.h"
#include "tce.h"

struct nhca_odp;
struct nhca_dmabuf;

/**
 * enum nhca_mr_kind - where a region's bytes are
 * @NHCA_MR_TCE:  behind its range of TCEs: user memory, fast registration, device memory
 * @NHCA_MR_ALL:  all kernel memory: an address is a kernel virtual address
 * @NHCA_MR_LIST: a list of pieces of kernel memory that begin and end anywhere
 *                (IB_MR_TYPE_SG_GAPS, or pages smaller than the CPU's)
 * @NHCA_MR_ODP:  user memory that is there when it is wanted: behind ranges of TCEs that
 *                come and go (memory/odp.c)
 * @NHCA_MR_LINEAR: one range of kernel addresses: a dma-buf, as its exporter has mapped it
 */
enum nhca_mr_kind {
	NHCA_MR_TCE,
	NHCA_MR_ALL,
	NHCA_MR_LIST,
	NHCA_MR_ODP,
	NHCA_MR_LINEAR,
};

/**
 * struct nhca_piece - of a NHCA_MR_LIST region
 * @off: where in the region it begins; pieces are sorted by it
 * @addr: kernel virtual address
 */
struct nhca_piece {
	u64 off;
	u64 addr;
};

/**
 * struct nhca_next - of a fast registration: what was mapped last and is not open yet
 * @lock:   all below, and ibmr.iova and .length of the region; disables interrupts, as a consumer
 *          may map with interrupts disabled; nests inside the key's lock
 * @kind, @pvo, @tces, @pieces, @npieces: as of struct nhca_mr, which takes them over when
 *          IB_WR_REG_MR opens them, and leaves its own here; owned
 * @mapped: there is something
 */
struct nhca_next {
	/* all below */
	spinlock_t lock;
	enum nhca_mr_kind kind;
	u64 pvo;
	struct nhca_range tces;
	struct nhca_piece *pieces;
	u32 npieces;
	bool mapped;
};

/**
 * struct nhca_mr - a memory region
 * @ibmr:    the core's part
 * @mkey:    its key, domain, rights and range; mkey.off is 0
 * @kind:    constant; of a fast registration: changes only while the key is closed
 * @pvo:     of the region's first byte; 0 if it has no range (or, for fast registration,
 *           nothing was opened); changes only while the key is closed
 * @tces:    its range; count is 0 if it has none; owned
 * @umem:    pins user pages; owned
 * @pieces, @npieces, @max_pieces: NHCA_MR_LIST; change only while the key is closed; owned.
 *           Of fast registration with TCEs: pages that are open, and that can be mapped;
 *           of what is not for fast registration: 0
 * @next:    of fast registration (memory/fast.c); has a lock of its own; owned
 * @windows: bound to it; a region with windows is not closed (IBTA 10.6.7.2.6)
 * @zcopied:    pages of it have gone to the network stack by reference
 * @zcopy_ok:    may they? not if its memory can be taken away from softirq or by others
 *           than its owner (fast registration, on-demand pages, dma-bufs)
 * @odp:     on-demand region (memory/odp.c); owned
 * @dmabuf:  imported buffer (memory/dmabuf.c); owned
 * @linear:  NHCA_MR_LINEAR: the kernel address of the first byte
 * @dm:      device memory that it is on (memory/dm.c); counted
 */
struct nhca_mr {
	struct ib_mr ibmr;
	struct nhca_mkey mkey;
	enum nhca_mr_kind kind;
	u64 pvo;
	struct nhca_range tces;
	struct ib_umem *umem;
	struct nhca_piece *pieces;
	u32 npieces;
	u32 max_pieces;
	struct nhca_next *next;
	atomic_t windows;
	bool zcopied;
	bool zcopy_ok;
	struct nhca_odp *odp;
	struct nhca_dmabuf *dmabuf;
	void *linear;
	struct nhca_dm *dm;
};

static inline struct nhca_mr *to_nhca_mr(struct ib_mr *ibmr)
{
	return container_of(ibmr, struct nhca_mr, ibmr);
}

/* is it for IB_WR_REG_MR? */
static inline bool nhca_mr_is_fast(const struct nhca_mr *mr)
{
	return mr->max_pieces;
}

/* nhca_mr_seg() where the bytes are not behind the region's own TCEs */
int nhca_mr_seg_other(struct nhca_mr *mr, u64 off, u32 max, bool write, struct nhca_seg *seg);

/**
 * nhca_pvo_seg - what lies behind a PVO, of one page, at most @max bytes
 * Context: live section.
 * Return: 0; -EACCES if its TCE is not there or grants less.
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
 * nhca_mr_seg - the bytes that lie together from byte @off of the region, at most @max
 * @off:   inside the range that nhca_mkey_check() granted
 * @write: they will be written
 * Context: live section.
 * Return: 0; -EACCES if there is no memory; -EAGAIN if an on-demand page has to be
 * faulted in first.
 */
static inline int nhca_mr_seg(struct nhca_mr *mr, u64 off, u32 max, bool write,
			      struct nhca_seg *seg)
{
	if (likely(mr->kind == NHCA_MR_TCE))
		return nhca_pvo_seg(mr->pvo + off, max, write, seg);
	return nhca_mr_seg_other(mr, off, max, write, seg);
}

/* nhca_mr_free() for what only fast registrations own; Context: process, sleeps */
void nhca_mr_fast_free(struct nhca_mr *mr);

/* does the iterator write where it stands? */
static inline bool nhca_iter_writes(const struct nhca_iter *it)
{
	return it->access & (IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE |
			     IB_ACCESS_REMOTE_ATOMIC);
}

/**
 * nhca_mr_alloc - a region without memory, its key closed and in the table
 * nhca_mr_free - close the key, wait, and free what @mr owns
 * For the files of memory/ that make regions; counts nothing.
 * Context: process, sleeps.  Return: the region or ERR_PTR.
 */
struct nhca_mr *nhca_mr_alloc(struct nhca_dev *dev, struct ib_pd *pd, int access);
void nhca_mr_free(struct nhca_mr *mr);

/* module load: -ENOMEM; unload: all regions are gone */
int nhca_mr_init(void);
void nhca_mr_exit(void);

/**
 * nhca_mr_start - the region is complete: open its key
 * @iova, @length: how it is addressed
 * Context: process.
 */
void nhca_mr_start(struct nhca_mr *mr, u64 iova, u64 length);

/**
 * nhca_mr_map_pages - a range of TCEs over @npages pages of PAGE_SIZE
 * @offset: of the region's first byte in the first page
 * @writable: entries may be written through
 * Sets kind, tces and pvo.
 * Context: process, sleeps.  Return: 0, or as nhca_range_alloc().
 */
int nhca_mr_map_pages(struct nhca_mr *mr, struct page **pages, u64 npages, u32 offset,
		      bool writable);

/**
 * nhca_mr_map_sgt - a range of TCEs over whole pages of the kernel's
 * @sgt:   its elements are whole pages and cover @start to @start + @length - 1
 * @start: address of the region's first byte in the address space in which pages of
 *         1 << @shift are aligned like those of memory
 * @shift: page size class; the memory of each entry is contiguous
 * Sets kind, tces and pvo.
 * Context: process, sleeps.  Return: 0, -EINVAL, or as nhca_range_alloc().
 */
int nhca_mr_map_sgt(struct nhca_mr *mr, const struct sg_table *sgt, u64 start, u64 length,
		    unsigned int shift, bool writable);

#endif /* NHCA_MR_H */
