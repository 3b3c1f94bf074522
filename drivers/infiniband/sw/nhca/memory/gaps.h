/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Private to memory/ and its tests: the free entries of a table.
 *
 * A tree has a node for each gap (free entries between ranges), ordered by position.  Each node
 * contains the size of the largest gap in its subtree.  So the first gap that is large enough, and
 * the gaps beside a freed range, are found in a time logarithmic in the number of gaps.  Ranges in
 * use are not in the tree.
 */
#ifndef NHCA_GAPS_H
#define NHCA_GAPS_H

#include <linux/rbtree.h>
#include <linux/types.h>

/**
 * struct nhca_gaps - the gaps of a table
 * @root: struct nhca_gap by position; a lock of the caller serializes all calls for @root
 */
struct nhca_gaps {
	struct rb_root root;
};

struct nhca_gap;

/**
 * nhca_gap_alloc - allocate a node for nhca_gaps_init() or nhca_gaps_give()
 *
 * The caller does not hold the lock of the gaps, because all users need this lock, and the
 * allocation of one user may take long if its memory cgroup is full.
 * Context: process, sleeps.
 * Return: the node, for kfree() if it is not used; NULL: no memory.
 */
struct nhca_gap *nhca_gap_alloc(void);

/**
 * nhca_gaps_init - make the entries 0 to @end - 1 free
 * @g:   filled in
 * @end: number of entries, at least 1
 * @gap: from nhca_gap_alloc(); @g owns it afterwards
 * Context: any.
 */
void nhca_gaps_init(struct nhca_gaps *g, u64 end, struct nhca_gap *gap);

/**
 * nhca_gaps_destroy - free all nodes, even if entries are in use
 * @g: the gaps
 * Context: any.
 */
void nhca_gaps_destroy(struct nhca_gaps *g);

/**
 * nhca_gaps_take - take the first @n contiguous free entries
 * @g:     the gaps
 * @n:     number of entries, 1 or more
 * @first: the first of them, filled in
 * Context: any.
 * Return: false if no gap is large enough.
 */
bool nhca_gaps_take(struct nhca_gaps *g, u64 n, u64 *first);

/**
 * nhca_gaps_give - free entries that were in use
 * @g:     the gaps
 * @first: the first entry
 * @n:     number of entries; one call of nhca_gaps_take() has taken all of them
 * @spare: from nhca_gap_alloc(); NULL afterwards if the node was used
 * @from:  first entry of the gap in which these entries are now, filled in
 * @to:    end of this gap: its last entry is @to - 1
 * Context: any.
 * Return: false if any of the entries is free already; then nothing changes.
 */
bool nhca_gaps_give(struct nhca_gaps *g, u64 first, u64 n, struct nhca_gap **spare, u64 *from,
		    u64 *to);

#endif /* NHCA_GAPS_H */
