// SPDX-License-Identifier: GPL-2.0
/*
 * Blocks that operations write.
 *
 * The engine (requester or responder) writes the bytes of a packet to the segments of
 * nhca_place_seg(), which are in blocks that only this operation uses.  Then the engine calls
 * nhca_store_placed() for these bytes.  Bytes for which the engine does not make this call, because
 * the packet was not valid, never reach the disk.  When the block is full, or the operation ends or
 * continues at another place, the block becomes DIRTY: no engine writes to the block any more, and
 * drain.c writes the block to the disk.
 *
 * One packet may have bytes for several SGEs in one block of the region.  Each of these SGEs has a
 * separate ARR, because nhca_arr_key.op also identifies the SGE (nhca_backing_op()).
 */
#include <linux/mm.h>

#include "store.h"

/*
 * maximum number of blocks that an operation requests in advance when it has to wait: the blocks of
 * a READ request of NHCA_READ_CHUNK packets of 4 KiB
 */
#define NHCA_PLACE_AHEAD	32

/*
 * Return: true if a block for writing may take a PMB now: no ARR waits for a PMB (QUEUED), or more
 * than a quarter of the PMBs is free.
 */
static bool place_may_take(const struct nhca_direct_pool *pool)
{
	return !pool->nqueued || pool->num - pool->allocated > pool->num / 4;
}

/* Return: a new ARR to write a block from byte @in on, in no list; NULL: no ARR is free. */
static struct nhca_arr *place_take(struct nhca_direct_pool *pool, const struct nhca_arr_key *key,
				   u32 in, bool recycle)
{
	struct nhca_arr *arr = nhca_arr_take(pool, key, PAGE_SIZE - in, recycle);

	if (!arr)
		return NULL;
	arr->write = true;
	arr->aborts = nhca_fault_aborts(key->fault);
	arr->start = in;
	arr->count = in;
	arr->handed = in;
	return arr;
}

/* Return: true if an engine may write byte @in of a block next. */
static bool place_follows(const struct nhca_arr *arr, u32 in)
{
	return arr->state == NHCA_ARR_COLLECTING && in >= arr->count && in <= arr->handed;
}

/*
 * Find the ARR of an operation for byte @in of a block.  If the operation continues at another
 * place in the block, the bytes that were placed so far go to the disk.
 * Return: the ARR, which may also be QUEUED; NULL: the operation needs a new ARR.
 */
static struct nhca_arr *place_find(struct nhca_direct_pool *pool, const struct nhca_arr_key *key,
				   u32 in)
{
	struct nhca_arr *arr = nhca_arr_find(pool, key);

	if (!arr || place_follows(arr, in))
		return arr;
	if (arr->state == NHCA_ARR_COLLECTING) {
		nhca_arr_install(pool, arr);
		nhca_store_kick(key->store);
		return NULL;
	}
	/* the ARR is QUEUED and has no bytes yet, so it can begin at @in */
	arr->start = in;
	arr->count = in;
	arr->handed = in;
	return arr;
}

/* Return: the ARR of an operation for byte @in of a block; NULL: the operation has to wait. */
static struct nhca_arr *place_get(struct nhca_direct_pool *pool, const struct nhca_arr_key *key,
				  u32 in)
{
	struct nhca_arr *arr = place_find(pool, key, in);

	if (arr)
		return arr->state == NHCA_ARR_COLLECTING ? arr : NULL;
	if (list_empty(&pool->free_pmbs) || !place_may_take(pool))
		return NULL;
	arr = place_take(pool, key, in, false);
	if (arr)
		nhca_arr_bind(pool, arr);
	return arr;
}

int nhca_place_seg(struct nhca_store *store, struct nhca_fault *f, u64 op, u64 off, u32 max,
		   struct nhca_seg *seg)
{
	struct nhca_arr_key key = nhca_block_key(store, f, op, off >> PAGE_SHIFT);
	struct nhca_direct_pool *pool = store->pool;
	u32 in = offset_in_page(off);
	struct nhca_arr *arr;
	int err = -EAGAIN;

	spin_lock(&pool->lock);
	if (store->dying) {
		err = -EACCES;
		goto out;
	}
	nhca_fault_write_op(f, nhca_backing_whole_op(op));
	arr = place_get(pool, &key, in);
	if (arr) {
		seg->addr = page_address(nhca_arr_page(pool, arr)) + in;
		seg->len = min(max, nhca_store_block(store, key.index) - in);
		arr->handed = max(arr->handed, in + seg->len);
		err = 0;
	}
out:
	spin_unlock(&pool->lock);
	return err;
}

/*
 * Request PMBs for some of the blocks that follow @key, up to the block of byte @end - 1 of the
 * region, so that the operation does not have to wait for each block.
 */
static void place_ahead(struct nhca_store *store, struct nhca_arr_key key, u64 end)
{
	struct nhca_direct_pool *pool = store->pool;
	u32 most = min_t(u32, pool->num / 8, NHCA_PLACE_AHEAD);
	struct nhca_arr *arr;
	u32 n;

	for (n = 0; n < most; n++) {
		key.index++;
		if (key.index * PAGE_SIZE >= end || nhca_arr_find(pool, &key) ||
		    pool->nqueued >= pool->num / 2)
			return;
		arr = place_take(pool, &key, 0, false);
		if (!arr)
			return;
		list_add_tail(&arr->list, &store->queued);
	}
}

int nhca_place_want(struct nhca_store *store, struct nhca_fault *f, u64 op, u64 off, u64 len)
{
	struct nhca_arr_key key = nhca_block_key(store, f, op, off >> PAGE_SHIFT);
	struct nhca_direct_pool *pool = store->pool;
	u64 end = min(len, store->length - off) + off;
	struct nhca_arr *arr;

	spin_lock(&pool->lock);
	if (store->dying) {
		spin_unlock(&pool->lock);
		return -EACCES;
	}
	if (nhca_fault_begin(f)) {
		nhca_fault_write_op(f, nhca_backing_whole_op(op));
		arr = place_find(pool, &key, offset_in_page(off));
		if (!arr) {
			arr = place_take(pool, &key, offset_in_page(off), true);
			if (arr) {
				list_add_tail(&arr->list, &store->queued);
				place_ahead(store, key, end);
			}
		}
		nhca_block_wait(store, f, arr);
		nhca_store_kick(store);
	}
	spin_unlock(&pool->lock);
	return -EAGAIN;
}

/*
 * Let the disk begin: immediately if an operation ends, if the number of the region's DIRTY and
 * DRAINING blocks is a multiple of NHCA_DIRTY_BATCH, or if at most a quarter of the PMBs is free.
 * Otherwise wait for a jiffy, because one I/O request for more blocks is cheaper.
 */
static void place_kick(struct nhca_store *store, bool end)
{
	struct nhca_direct_pool *pool = store->pool;

	if (end || store->ndirty % NHCA_DIRTY_BATCH == 0 ||
	    pool->num - pool->allocated <= pool->num / 4) {
		nhca_store_kick(store);
	} else {
		nhca_store_wait(store);
		queue_delayed_work(pool->wq, &pool->poll, 1);
	}
}

int nhca_store_placed(struct nhca_backing *b, struct nhca_fault *f, u64 op, u64 off, u32 len,
		      bool end)
{
	struct nhca_store *store = to_nhca_store(b);
	struct nhca_arr_key key = nhca_block_key(store, f, op, off >> PAGE_SHIFT);
	struct nhca_direct_pool *pool = store->pool;
	u32 in = offset_in_page(off);
	struct nhca_arr *arr;
	int err = -EAGAIN;

	if (!f)
		return -EACCES;
	spin_lock(&pool->lock);
	if (store->dying) {
		err = -EACCES;
		goto out;
	}
	arr = nhca_arr_find(pool, &key);
	/* nhca_direct_pool_release() may have taken the block after nhca_place_seg() */
	if (!arr || arr->state != NHCA_ARR_COLLECTING || arr->count != in ||
	    arr->handed < in + len)
		goto out;
	err = 0;
	nhca_arr_collect(pool, arr, in + len);
	if (end || arr->count == nhca_store_block(store, key.index)) {
		nhca_arr_install(pool, arr);
		place_kick(store, end);
	}
out:
	spin_unlock(&pool->lock);
	return err;
}
