// SPDX-License-Identifier: GPL-2.0
/*
 * The gaps of a table, searched by first fit.  The kernel's maple tree could store the ranges in
 * use instead, but its nodes took a third of the time and memory that a small region needs, because
 * the maple tree has a slot for each range.  This tree has a node only for each gap, and most
 * regions leave no gap.  Each range owns an unused node for the gap that it may leave, so that
 * nhca_gaps_give() allocates no memory.
 */
#include <linux/kernel.h>
#include <linux/rbtree_augmented.h>
#include <linux/slab.h>

#include "../observe/stub.h"
#include "gaps.h"

/**
 * struct nhca_gap - free entries between two ranges
 * @node:    entry in nhca_gaps.root, ordered by @first
 * @first:   the first free entry
 * @end:     the entry after the last free one
 * @largest: number of entries of the largest gap in the subtree of this node
 */
struct nhca_gap {
	struct rb_node node;
	u64 first;
	u64 end;
	u64 largest;
};

static u64 gap_size(const struct nhca_gap *gap)
{
	return gap->end - gap->first;
}

RB_DECLARE_CALLBACKS_MAX(static, gap_callbacks, struct nhca_gap, node, u64, largest, gap_size)

static struct nhca_gap *gap_of(struct rb_node *node)
{
	return rb_entry_safe(node, struct nhca_gap, node);
}

static u64 largest_below(struct rb_node *node)
{
	struct nhca_gap *gap = gap_of(node);

	return gap ? gap->largest : 0;
}

/* Update nhca_gap.largest in the tree after the size of @gap has changed. */
static void gap_resized(struct nhca_gap *gap)
{
	gap_callbacks_propagate(&gap->node, NULL);
}

static void gap_remove(struct nhca_gaps *g, struct nhca_gap *gap)
{
	rb_erase_augmented(&gap->node, &g->root, &gap_callbacks);
	kfree(gap);
}

static void gap_insert(struct nhca_gaps *g, struct nhca_gap *gap)
{
	struct rb_node **link = &g->root.rb_node, *parent = NULL;

	gap->largest = gap_size(gap);
	while (*link) {
		struct nhca_gap *at = gap_of(*link);

		parent = *link;
		at->largest = max(at->largest, gap->largest);
		link = gap->first < at->first ? &parent->rb_left : &parent->rb_right;
	}
	rb_link_node(&gap->node, parent, link);
	rb_insert_augmented(&gap->node, &g->root, &gap_callbacks);
}

struct nhca_gap *nhca_gap_alloc(void)
{
	NHCA_STUB(nhca_gap_alloc);
	return kmalloc(sizeof(struct nhca_gap), GFP_KERNEL_ACCOUNT);
}

void nhca_gaps_init(struct nhca_gaps *g, u64 end, struct nhca_gap *gap)
{
	g->root = RB_ROOT;
	gap->first = 0;
	gap->end = end;
	gap_insert(g, gap);
}

void nhca_gaps_destroy(struct nhca_gaps *g)
{
	struct nhca_gap *gap, *next;

	rbtree_postorder_for_each_entry_safe(gap, next, &g->root, node)
		kfree(gap);
	g->root = RB_ROOT;
}

bool nhca_gaps_take(struct nhca_gaps *g, u64 n, u64 *first)
{
	struct nhca_gap *gap = gap_of(g->root.rb_node);

	if (!gap || gap->largest < n)
		return false;
	/* the subtree of @gap has a gap that is large enough */
	while (largest_below(gap->node.rb_left) >= n || gap_size(gap) < n)
		if (largest_below(gap->node.rb_left) >= n)
			gap = gap_of(gap->node.rb_left);
		else
			gap = gap_of(gap->node.rb_right);

	*first = gap->first;
	gap->first += n;
	if (gap->first == gap->end)
		gap_remove(g, gap);
	else
		gap_resized(gap);
	return true;
}

/* Find the last gap that begins before @end, and the gap after it. */
static struct nhca_gap *gap_before(struct nhca_gaps *g, u64 end, struct nhca_gap **behind)
{
	struct rb_node *node = g->root.rb_node;
	struct nhca_gap *before = NULL;

	*behind = NULL;
	while (node) {
		struct nhca_gap *gap = gap_of(node);

		if (gap->first < end) {
			before = gap;
			node = node->rb_right;
		} else {
			*behind = gap;
			node = node->rb_left;
		}
	}
	return before;
}

bool nhca_gaps_give(struct nhca_gaps *g, u64 first, u64 n, struct nhca_gap **spare, u64 *from,
		    u64 *to)
{
	u64 end = first + n;
	struct nhca_gap *before, *behind, *gap;

	before = gap_before(g, end, &behind);
	if (before && before->end > first)
		return false;

	if (before && before->end == first) {
		gap = before;
		if (behind && behind->first == end) {
			end = behind->end;
			/*
			 * Remove this node before @gap changes: rebalancing needs correct values in
			 * all nodes.
			 */
			gap_remove(g, behind);
		}
		gap->end = end;
		gap_resized(gap);
	} else if (behind && behind->first == end) {
		gap = behind;
		gap->first = first;
		gap_resized(gap);
	} else {
		gap = *spare;
		*spare = NULL;
		gap->first = first;
		gap->end = end;
		gap_insert(g, gap);
	}
	*from = gap->first;
	*to = gap->end;
	return true;
}
