// SPDX-License-Identifier: GPL-2.0
/*
 * The order of the I/O of a block.
 *
 * Several operations may write one block, or parts of it, and others may read the block.  Each
 * write is complete before the next write of the same block begins, so that two operations that
 * change parts of a block do not lose each other's bytes.  A read that is queued after a write
 * begins when the write is complete.  So an operation that begins after the last packet of another
 * operation was acknowledged reads the bytes of the other operation.
 *
 * Only ARRs that write delay other ARRs of the same block.  The first ARR that writes the block is
 * in nhca_direct_pool.orders.  Later ARRs that write, and ARRs that are QUEUED for reading, follow
 * the first one in the list nhca_arr.behind.
 */
#include <linux/hash.h>

#include "pool.h"
#include "store.h"

static struct hlist_head *order_bucket(struct nhca_direct_pool *pool, const struct nhca_arr *arr)
{
	u64 h = (uintptr_t)arr->key.store + arr->key.index * GOLDEN_RATIO_64;

	return &pool->orders[hash_64(h, pool->hash_bits)];
}

/* Return: the ARR that is the first one in the order of the block of @arr, or NULL. */
static struct nhca_arr *order_first(struct nhca_direct_pool *pool, const struct nhca_arr *arr)
{
	struct nhca_arr *first;

	hlist_for_each_entry(first, order_bucket(pool, arr), order_node)
		if (first->key.index == arr->key.index && first->key.store == arr->key.store)
			return first;
	return NULL;
}

void nhca_order_init(struct nhca_arr *arr)
{
	INIT_HLIST_NODE(&arr->order_node);
	INIT_LIST_HEAD(&arr->behind);
}

bool nhca_order_enter(struct nhca_direct_pool *pool, struct nhca_arr *arr)
{
	struct nhca_arr *first;

	lockdep_assert_held(&pool->lock);
	/* no block of the region is DIRTY or DRAINING, so a read can begin */
	if (!arr->write && !arr->key.store->ndirty)
		return true;
	first = order_first(pool, arr);
	if (first) {
		/* @first serves as the head of the list, so this adds @arr at its end */
		list_add_tail(&arr->behind, &first->behind);
		return false;
	}
	if (arr->write)
		hlist_add_head(&arr->order_node, order_bucket(pool, arr));
	return true;
}

void nhca_order_leave(struct nhca_direct_pool *pool, struct nhca_arr *arr)
{
	struct nhca_arr *next = NULL;

	lockdep_assert_held(&pool->lock);
	if (!list_empty(&arr->behind))
		next = list_next_entry(arr, behind);
	list_del_init(&arr->behind);
	/* @arr was not the first ARR of the order, so no ARR waits for it */
	if (hlist_unhashed(&arr->order_node))
		return;
	hlist_del_init(&arr->order_node);
	if (next)
		nhca_store_kick(next->key.store);
	while (next) {
		struct nhca_arr *now = next;

		if (now->write) {
			hlist_add_head(&now->order_node, order_bucket(pool, now));
			list_add_tail(&now->list, &now->key.store->dirty);
			return;
		}
		next = list_empty(&now->behind) ? NULL : list_next_entry(now, behind);
		list_del_init(&now->behind);
		list_add_tail(&now->list, &now->key.store->queued);
	}
}
