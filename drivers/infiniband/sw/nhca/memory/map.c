// SPDX-License-Identifier: GPL-2.0
/* Entries of a range for pinned user memory. */
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <rdma/ib_umem.h>

#include "map.h"

/* bitmap of the page sizes of all classes */
#define NHCA_PAGE_SIZES	(PAGE_SIZE | PMD_SIZE | PUD_SIZE)

/*
 * Check that entries of @size can map a buffer.  ib_umem_find_best_pgsz() has checked only the
 * buffer's DMA addresses, which are kernel virtual addresses.  The buffer's physical address must
 * have the same offset in a page of @size as its address in the process.  The memory of each entry
 * must belong to one folio of at least this size.  So no entry maps memory of other folios before
 * or after the buffer, and a reference on one page keeps all memory of the entry allocated.
 */
static bool size_fits(struct ib_umem *umem, unsigned long size)
{
	struct sg_table *sgt = &umem->sgt_append.sgt;
	phys_addr_t at = page_to_phys(sg_page(sgt->sgl)), end;
	struct scatterlist *sg;
	int n;

	if ((at ^ umem->address) & PAGE_MASK & (size - 1))
		return false;
	for_each_sgtable_sg(sgt, sg, n) {
		at = page_to_phys(sg_page(sg));
		end = at + sg->length;
		for (; at < end; at = ALIGN_DOWN(at, size) + size)
			if (folio_size(page_folio(pfn_to_page(PHYS_PFN(at)))) < size)
				return false;
	}
	return true;
}

unsigned int nhca_map_shift(struct ib_umem *umem)
{
	unsigned long sizes = NHCA_PAGE_SIZES, size;

	/*
	 * A buffer of huge pages has few, long elements: at most one for each huge page, and two
	 * for its ends.  If there are more elements, the buffer has smaller pages, and a walk over
	 * all folios is not needed.
	 */
	if (umem->sgt_append.sgt.orig_nents > (umem->length >> PMD_SHIFT) + 2)
		return PAGE_SHIFT;
	for (;;) {
		/*
		 * Pass the buffer's address in the process as the IOVA, because the entries follow
		 * that address and not the region's IOVA.
		 */
		size = ib_umem_find_best_pgsz(umem, sizes, umem->address);
		if (size <= PAGE_SIZE)
			return PAGE_SHIFT;
		if (size_fits(umem, size))
			return ilog2(size);
		sizes &= size - 1;
	}
}

int nhca_map_sgt(const struct nhca_range *r, const struct sg_table *sgt, u64 start, u64 length,
		 bool writable)
{
	u64 flags = NHCA_TCE_READ | (writable ? NHCA_TCE_WRITE : 0);
	u64 size = BIT_ULL(r->shift), offset = start & (size - 1);
	/* offsets in the range, in bytes: of the element's first byte, and after its last byte */
	u64 at = offset & PAGE_MASK, end, i;
	struct scatterlist *sg;
	phys_addr_t base;
	int n;

	for_each_sgtable_sg(sgt, sg, n) {
		/*
		 * @base: physical address that offset 0 of the range would have if all memory were
		 * contiguous with this element; may wrap below 0.  If @base is aligned, each entry
		 * of the element begins at a multiple of @size.
		 */
		base = page_to_phys(sg_page(sg)) - at;
		end = at + sg->length;
		if (!IS_ALIGNED(base, size) || (end - 1) >> r->shift >= r->count)
			return -EINVAL;
		for (i = at >> r->shift; i <= (end - 1) >> r->shift; i++)
			nhca_range_set(r, i, (base + (i << r->shift)) >> r->shift, flags);
		at = end;
		cond_resched();
	}
	return at < offset + length ? -EINVAL : 0;
}
