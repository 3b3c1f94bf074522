/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Debugfs files of memory/:
 *
 *   tables     TCE tables in use: page size, ranges, entries, memory
 *   keys       every key: type, open or closed, device, domain, address range, rights
 *   rkey_refs  remote keys that operations in progress use
 */
#ifndef NHCA_MEMORY_DEBUG_H
#define NHCA_MEMORY_DEBUG_H

struct dentry;

/**
 * nhca_memory_debug_init - make the debugfs files
 * @dir: directory of the module
 * Context: process, sleeps.
 */
void nhca_memory_debug_init(struct dentry *dir);

#endif /* NHCA_MEMORY_DEBUG_H */
