/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Private to memory/: which page size class fits a pinned buffer, and its pages as entries.
 */
#ifndef NHCA_MAP_H
#define NHCA_MAP_H

#include <linux/scatterlist.h>

#include "tce.h"

struct ib_umem;

/**
 * nhca_map_shift - the largest page size class that the kernel backs a whole buffer by
 * Context: process.
 */
unsigned int nhca_map_shift(struct ib_umem *umem);

/**
 * nhca_map_sgt - fill a range with whole pages of the kernel's
 * @r:     with room for them
 * @sgt:   its elements are whole pages and cover @start to @start + @length - 1
 * @start: address of the first byte in the address space in which pages of the range's class are
 *         aligned like those of memory
 * Context: process, sleeps.
 * Return: 0; -EINVAL: the pages do not fit entries of this class.
 */
int nhca_map_sgt(const struct nhca_range *r, const struct sg_table *sgt, u64 start, u64 length,
		 bool writable);

#endif /* NHCA_MAP_H */
