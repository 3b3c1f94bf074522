// SPDX-License-Identifier: GPL-2.0
/*
 * From pinned user memory to the entries of a range.
 */
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <rdma/ib_umem.h>

#include "map.h"

/* page size classes, as a bitmap of sizes */
#define NHCA_PAGE_SIZES	(PAGE_SIZE | PMD_SIZE | PUD_SIZE)

/*
 * May the buffer be mapped by entries of @size, given that the kernel's addresses of
 * its pages allow it?  Page frames must be aligned as those addresses are, and each entry's
 * must be one page to the kernel, too: nothing else is mapped before and behind the
 * buffer, and one reference holds all that a packet may take of it.
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

	/* huge pages make long elements: that there are none is seen without a walk */
	if (umem->sgt_append.sgt.orig_nents > (umem->length >> PMD_SHIFT) + 2)
		return PAGE_SHIFT;
	for (;;) {
		/* with the buffer's own address as IOVA, which is what @umem counts pages by */
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
	/* where in the range the pages of the element begin, in bytes; and what is there */
	u64 at = offset & PAGE_MASK, end, i;
	struct scatterlist *sg;
	phys_addr_t base;
	int n;

	for_each_sgtable_sg(sgt, sg, n) {
		/* where the range would begin, perhaps below 0: borders of both meet */
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
