/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Private to memory/: find the page size class for a pinned buffer, and map its pages by TCEs.
 */
#ifndef NHCA_MAP_H
#define NHCA_MAP_H

#include <linux/scatterlist.h>

#include "tce.h"

struct ib_umem;

/**
 * nhca_map_shift - find the largest page size class that can map a whole buffer
 * @umem: the pinned buffer
 * Context: process.
 * Return: PAGE_SHIFT, PMD_SHIFT or PUD_SHIFT.
 */
unsigned int nhca_map_shift(struct ib_umem *umem);

/**
 * nhca_map_sgt - fill the entries of a range with whole pages of the kernel
 * @r:        the range, large enough for @length bytes from @start on
 * @sgt:      its elements are whole pages and cover @start to @start + @length - 1
 * @start:    address of the first byte.  Its offset in a page of the range's class is the same as
 *            that of the physical address.
 * @length:   bytes
 * @writable: the entries permit writing
 * Context: process, sleeps.
 * Return: 0; -EINVAL: @sgt does not cover @length bytes, or its pages are not aligned for the class
 * or exceed the range.
 */
int nhca_map_sgt(const struct nhca_range *r, const struct sg_table *sgt, u64 start, u64 length,
		 bool writable);

#endif /* NHCA_MAP_H */
