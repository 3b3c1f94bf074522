/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Private to memory/ and its tests: which entries of a table are free.
 *
 * A tree of the gaps by their place, each node with the largest gap below it, so that the
 * first that is large enough is found, and its neighbours when something comes back, in
 * logarithmic time of the number of gaps.  Ranges in use have no node: they cost nothing.
 */
#ifndef NHCA_GAPS_H
#define NHCA_GAPS_H

#include <linux/rbtree.h>
#include <linux/types.h>

/* all under one lock of the caller's */
struct nhca_gaps {
	struct rb_root root;
};

/**
 * nhca_gaps_init - entries 0 to @end - 1 are free
 * Context: process, sleeps.  Return: 0 or -ENOMEM.
 */
int nhca_gaps_init(struct nhca_gaps *g, u64 end);

/* forget all, whatever is in use */
void nhca_gaps_destroy(struct nhca_gaps *g);

/**
 * nhca_gaps_take - the first @n entries that are free together are in use
 * @n:     1 or more
 * @first: the first of them
 * Context: any.  Return: false if there is no such gap.
 */
bool nhca_gaps_take(struct nhca_gaps *g, u64 n, u64 *first);

/**
 * nhca_gaps_give - entries that were in use are free again
 * @first, @n: what was taken, or a part of it
 * @from, @to: the gap that they are in now is @from to @to - 1
 * Context: process, sleeps; never fails for want of memory.
 * Return: false, and nothing is done, if any of them is free.
 */
bool nhca_gaps_give(struct nhca_gaps *g, u64 first, u64 n, u64 *from, u64 *to);

#endif /* NHCA_GAPS_H */
