// SPDX-License-Identifier: GPL-2.0
/* Regions of device memory. */
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "dm.h"
#include "mr.h"

/* Map the pages that contain @length bytes from @offset on. */
static int dm_map(struct nhca_mr *mr, struct nhca_dm *dm, u64 offset, u64 length)
{
	u64 first = offset >> PAGE_SHIFT;
	u64 npages = PFN_UP(offset + length) - first, i;
	struct page **pages;
	int err;

	pages = kvmalloc_array(npages, sizeof(*pages), GFP_KERNEL_ACCOUNT);
	if (!pages)
		return -ENOMEM;
	for (i = 0; i < npages; i++)
		pages[i] = vmalloc_to_page(dm->mem + ((first + i) << PAGE_SHIFT));
	err = nhca_mr_map_pages(mr, pages, npages, offset_in_page(offset), true);
	kvfree(pages);
	return err;
}

struct ib_mr *nhca_mr_dm(struct nhca_dev *dev, struct ib_pd *pd, struct nhca_dm *dm,
			 u64 offset, u64 length, int access)
{
	struct nhca_mr *mr;
	int err;

	if (length > dm->size || offset > dm->size - length)
		return ERR_PTR(-EINVAL);
	mr = nhca_mr_alloc(dev, pd, access);
	if (IS_ERR(mr))
		return ERR_CAST(mr);
	mr->ibmr.type = IB_MR_TYPE_DM;
	/* accept a region of no bytes, as other adapters do */
	err = length ? dm_map(mr, dm, offset, length) : 0;
	if (err) {
		nhca_mr_free(mr);
		return ERR_PTR(err);
	}
	nhca_mr_start(mr, 0, length);
	return &mr->ibmr;
}
