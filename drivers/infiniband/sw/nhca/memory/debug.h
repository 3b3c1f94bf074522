/* SPDX-License-Identifier: GPL-2.0 */
/*
 * debugfs files of the memory room:
 *
 *   tables   TCE tables in use: page size, ranges, entries, memory
 *   keys     every key: of what, open or closed, what it opens
 *   holds    keys in use by operations in progress (the remote key manager)
 */
#ifndef NHCA_MEMORY_DEBUG_H
#define NHCA_MEMORY_DEBUG_H

struct dentry;

/* make the files in @dir; process */
void nhca_memory_debug_init(struct dentry *dir);

#endif /* NHCA_MEMORY_DEBUG_H */
