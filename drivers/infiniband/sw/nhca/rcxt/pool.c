// SPDX-License-Identifier: GPL-2.0
/*
 * The pool of rCxts of a device.
 */
#include <linux/mm.h>
#include <linux/random.h>

#include "pool.h"
#include "tid.h"

int nhca_rcxt_pool_init(struct nhca_rcxt_pool *pool, u32 size)
{
	u32 i;

	if (!size || size > NHCA_RCXT_MAX)
		return -EINVAL;
	/* __GFP_NOWARN: the administrator gets -ENOMEM and needs no stack trace of vmalloc() */
	*pool = (struct nhca_rcxt_pool) {
		.rcxts = kvcalloc(size, sizeof(*pool->rcxts), GFP_KERNEL | __GFP_NOWARN),
		.size = size,
		.free = size,
		.tail = size - 1,
		.recoveries = get_random_u32(),
		.map_limit = NHCA_RCXT_MAP_LIMIT,
	};
	if (!pool->rcxts)
		return -ENOMEM;
	nhca_shuffle_init(&pool->keys, 0, U32_MAX);
	for (i = 0; i < size; i++) {
		if (!(i % 4096))
			cond_resched();
		pool->rcxts[i].key = get_random_u32();
		pool->rcxts[i].next = i + 1 < size ? i + 1 : NHCA_RCXT_NONE;
	}
	return 0;
}

void nhca_rcxt_pool_destroy(struct nhca_rcxt_pool *pool)
{
	WARN_ON(pool->free != pool->size || atomic_long_read(&pool->map_bytes));
	kvfree(pool->rcxts);
	*pool = (struct nhca_rcxt_pool) {};
}

/* ---- the free list: rCxts are removed at the head and inserted at the tail ---- */

static struct nhca_rcxt *free_take(struct nhca_rcxt_pool *pool)
{
	struct nhca_rcxt *rc = &pool->rcxts[pool->head];

	pool->head = rc->next;
	if (!--pool->free)
		pool->tail = NHCA_RCXT_NONE;
	return rc;
}

static void free_give(struct nhca_rcxt_pool *pool, struct nhca_rcxt *rc)
{
	u32 index = nhca_rcxt_index(pool, rc);

	rc->next = NHCA_RCXT_NONE;
	if (pool->free++)
		pool->rcxts[pool->tail].next = index;
	else
		pool->head = index;
	pool->tail = index;
}

/* ---- a channel's list ---- */

static void list_insert(struct nhca_rcxt_pool *pool, struct nhca_rcxt_list *list,
			struct nhca_rcxt *rc)
{
	u32 index = nhca_rcxt_index(pool, rc);

	rc->prev = NHCA_RCXT_NONE;
	rc->next = list->first;
	if (list->first != NHCA_RCXT_NONE)
		pool->rcxts[list->first].prev = index;
	list->first = index;
	list->count++;
}

static void list_remove(struct nhca_rcxt_pool *pool, struct nhca_rcxt_list *list,
			struct nhca_rcxt *rc)
{
	if (rc->next != NHCA_RCXT_NONE)
		pool->rcxts[rc->next].prev = rc->prev;
	if (rc->prev != NHCA_RCXT_NONE)
		pool->rcxts[rc->prev].next = rc->next;
	else
		list->first = rc->next;
	list->count--;
}

int nhca_rcxt_acquire(struct nhca_rcxt_pool *pool, u32 channel, struct nhca_rcxt_list *list,
		      u32 count, struct nhca_rcxt_id *ids)
{
	struct nhca_user *user = list->user;
	long mine = user ? atomic_long_read(&user->rcxts) + count : 0;
	struct nhca_rcxt *rc;
	u32 i, key;

	if (count > pool->free)
		return user && !nhca_share_ok(pool->size, mine, 0) ? -EDQUOT : -ENOSPC;
	if (user && !nhca_share_ok(pool->size, mine, (long)pool->size - pool->free + count))
		return -EDQUOT;
	if (user)
		atomic_long_add(count, &user->rcxts);
	for (i = 0; i < count; i++) {
		rc = free_take(pool);
		key = nhca_shuffle_at(&pool->keys, rc->key + 1);
		*rc = (struct nhca_rcxt) {
			.key = key,
			.channel = channel,
			.uid = user ? user->id : NHCA_RCXT_NO_USER,
		};
		list_insert(pool, list, rc);
		/*
		 * nhca_rcxt_find() does not take the pool's lock.  This store pairs with
		 * smp_load_acquire() in nhca_rcxt_find(), so that nhca_rcxt_find() reads the new
		 * key and channel if it finds the rCxt.
		 */
		smp_store_release(&rc->state, NHCA_RCXT_IDLE);
		ids[i] = (struct nhca_rcxt_id) { nhca_rcxt_index(pool, rc), key };
	}
	return 0;
}

void nhca_rcxt_release(struct nhca_rcxt_pool *pool, struct nhca_rcxt_list *list,
		       struct nhca_rcxt *rc)
{
	WARN_ON(rc->copies);
	nhca_rcxt_end(pool, rc, NHCA_RCXT_FREE);
	list_remove(pool, list, rc);
	if (list->user)
		atomic_long_dec(&list->user->rcxts);
	rc->channel = 0;
	rc->key = nhca_shuffle_place(&pool->keys, rc->key);
	free_give(pool, rc);
}

u16 nhca_rcxt_pool_recover(struct nhca_rcxt_pool *pool)
{
	WARN_ON(pool->free != pool->size);
	return ++pool->recoveries;
}

enum nhca_rcxt_lookup nhca_rcxt_find(const struct nhca_rcxt_pool *pool, u32 channel,
				     const struct nhca_rcxt_id *id, struct nhca_rcxt **rc)
{
	struct nhca_rcxt *found;

	*rc = NULL;
	if (id->index >= pool->size)
		return NHCA_RCXT_NO_INDEX;
	found = &pool->rcxts[id->index];
	/* pairs with smp_store_release() in nhca_rcxt_acquire(), which does not take rCxt locks */
	if (smp_load_acquire(&found->state) == NHCA_RCXT_FREE || found->channel != channel)
		return NHCA_RCXT_NOT_OURS;
	if (found->key != id->key)
		return NHCA_RCXT_OLD_KEY;
	*rc = found;
	return NHCA_RCXT_FOUND;
}
