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
 * buffer's kernel virtual addresses.  The buffer's physical address must have the same offset in a
 * page of @size as its address in the process.  The memory of each entry must belong to one folio
 * of at least this size.  So no entry maps foreign memory before or after the buffer, and one page
 * reference keeps all memory that a packet may refer to.
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
	 * A buffer of huge pages has few, long elements.  If there are more elements than that, the
	 * buffer has smaller pages, and a walk over all folios is not needed.
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
	/* offsets in the range, in bytes: start of the element's pages (at) and end */
	u64 at = offset & PAGE_MASK, end, i;
	struct scatterlist *sg;
	phys_addr_t base;
	int n;

	for_each_sgtable_sg(sgt, sg, n) {
		/*
		 * The physical address for offset 0 of the range, computed from this element; it
		 * may wrap below 0.  If it is aligned, each entry begins at a physical address that
		 * is a multiple of its size.
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
