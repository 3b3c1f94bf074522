// SPDX-License-Identifier: GPL-2.0
/*
 * Blocks that operations read: a requester or responder finds a block in memory, or waits for the
 * block, and blocks are read in advance.
 */
#include <linux/mm.h>

#include "store.h"

/*
 * Queue the read of a block, unless the operation already has an ARR for the block.
 * @end:    offset in the region at which the operation ends
 * @needed: the requester or responder waits for the block, so an ARR may be recycled for the block
 * Return: the ARR; NULL: no ARR is free.
 */
static struct nhca_arr *block_queue(struct nhca_store *store, struct nhca_fault *f, u64 op,
				    u64 index, u64 end, bool needed)
{
	struct nhca_arr_key key = nhca_block_key(store, f, op, index);
	struct nhca_arr *arr = nhca_arr_find(store->pool, &key);
	u64 total = min_t(u64, end - index * PAGE_SIZE, PAGE_SIZE);

	if (arr)
		return arr;
	arr = nhca_arr_take(store->pool, &key, total, needed);
	/* the read begins only after earlier writes of the same block have ended */
	if (arr && nhca_order_enter(store->pool, arr))
		list_add_tail(&arr->list, &store->queued);
	return arr;
}

/* maximum number of blocks for one call of block_ahead(), to bound the time with the lock held */
#define AHEAD_BATCH	256

/*
 * Return: true if more blocks may be queued in advance: over a quarter of the ARRs is free, and the
 * number of ARRs that wait for a PMB (QUEUED) is less than half the number of PMBs.
 */
static bool pool_has_room(const struct nhca_direct_pool *pool)
{
	return pool->nfree_arrs > pool->ranges / 4 && pool->nqueued < DIV_ROUND_UP(pool->num, 2);
}

/*
 * Queue the next blocks of an operation, in runs that get longer.  The first runs are short, so
 * that the first packets are sent early.  Later runs are long, so that the disk gets few requests.
 * The function stops at the end of the operation, nhca_store.depth blocks after block @index, after
 * AHEAD_BATCH blocks, or when the pool has no room.  The next call continues there.
 */
static void block_ahead(struct nhca_store *store, struct nhca_fault *f, struct nhca_feed *feed,
			u64 index)
{
	u64 stop = min3(DIV_ROUND_UP_ULL(feed->end, PAGE_SIZE), index + store->depth,
			feed->next + AHEAD_BATCH);
	struct nhca_arr *arr;
	u32 n;

	while (feed->next < stop && pool_has_room(store->pool)) {
		for (n = 0; n < feed->run && feed->next < stop; n++, feed->next++) {
			arr = block_queue(store, f, feed->op, feed->next, feed->end, false);
			if (!arr)
				return;
			arr->first = !n;
		}
		feed->run = min_t(u32, 2 * feed->run, NHCA_IO_MAX);
	}
}

/*
 * The operation has come to block @index.  Queue more blocks if at most nhca_store.depth / 2 blocks
 * from @index on were queued.
 */
static void block_passed(struct nhca_store *store, struct nhca_fault *f, u64 op, u64 index)
{
	struct nhca_feed *feed = nhca_fault_feed(f);

	if (feed->backing != &store->backing || feed->op != op ||
	    feed->next * PAGE_SIZE >= feed->end || feed->next > index + store->depth / 2)
		return;
	block_ahead(store, f, feed, index);
	nhca_store_kick(store);
}

int nhca_store_seg(struct nhca_backing *b, struct nhca_fault *f, u64 op, u64 off, u32 max,
		   bool write, struct nhca_seg *seg)
{
	struct nhca_store *store = to_nhca_store(b);
	struct nhca_direct_pool *pool = store->pool;
	struct nhca_arr_key key = nhca_block_key(store, f, op, off >> PAGE_SHIFT);
	u32 in = offset_in_page(off);
	struct nhca_arr *arr;
	int err = -EAGAIN;

	/* without @f the caller cannot wait: nhca_iter_fault() turns this -EAGAIN into -EACCES */
	if (!f)
		return -EAGAIN;
	if (write)
		return nhca_place_seg(store, f, op, off, max, seg);
	spin_lock(&pool->lock);
	arr = nhca_arr_find(pool, &key);
	if (!arr)
		goto out;
	if (arr->state == NHCA_ARR_FAILED) {
		err = -EIO;
	} else if (arr->state == NHCA_ARR_READY || arr->state == NHCA_ARR_SENT) {
		/* perhaps only the first bytes were read, for example of a truncated file */
		err = in < arr->got ? 0 : -EIO;
	}
	if (err)
		goto out;
	seg->addr = page_address(nhca_arr_page(pool, arr)) + in;
	seg->len = min(max, arr->got - in);
	nhca_arr_give(pool, arr, in + seg->len);
	if (arr->state == NHCA_ARR_SENT)
		nhca_direct_more(pool);
	block_passed(store, f, op, key.index);
out:
	spin_unlock(&pool->lock);
	return err;
}

/* Set the position of an operation that waits for byte @off. */
static void feed_seek(struct nhca_feed *feed, struct nhca_store *store, u64 op, u64 off, u64 end)
{
	u64 index = off >> PAGE_SHIFT;

	if (feed->backing != &store->backing || feed->op != op) {
		feed->backing = &store->backing;
		feed->op = op;
		feed->next = index;
		feed->end = 0;
		feed->run = NHCA_IO_FIRST;
	}
	feed->end = max(feed->end, end);
	/* the operation continues at another place: after a retransmission, or in another SGE */
	if (index > feed->next || feed->next > index + store->depth)
		feed->next = index;
}

void nhca_block_wait(struct nhca_store *store, struct nhca_fault *f, struct nhca_arr *arr)
{
	struct nhca_direct_pool *pool = store->pool;
	struct nhca_feed *feed = nhca_fault_feed(f);

	lockdep_assert_held(&pool->lock);
	nhca_store_count_wait(store, arr ? NHCA_WAIT_BLOCK : NHCA_WAIT_RANGE);
	if (arr && (arr->state == NHCA_ARR_QUEUED || arr->state == NHCA_ARR_FILLING)) {
		arr->waited = true;
		return;
	}
	list_add_tail(&feed->line, arr ? &pool->woken : &pool->waiters);
	/* the block is neither QUEUED nor FILLING, so resume the owner immediately */
	if (arr)
		nhca_bh_queue(&pool->complete_bh);
	else
		queue_delayed_work(pool->wq, &pool->poll, NHCA_POLL_TIME);
}

int nhca_store_want(struct nhca_backing *b, struct nhca_fault *f, u64 op, u64 off, u64 len,
		    bool write)
{
	struct nhca_store *store = to_nhca_store(b);
	struct nhca_direct_pool *pool = store->pool;
	struct nhca_feed *feed = nhca_fault_feed(f);
	u64 end = min(len, store->length - off) + off;
	struct nhca_arr *arr;

	if (write)
		return nhca_place_want(store, f, op, off, len);
	spin_lock(&pool->lock);
	/* the region is being freed */
	if (store->dying) {
		spin_unlock(&pool->lock);
		return -EACCES;
	}
	if (!nhca_fault_begin(f)) {
		spin_unlock(&pool->lock);
		return -EAGAIN;
	}
	feed_seek(feed, store, op, off, end);
	/* usually this also queues the block of @off, so that block_queue() only finds its ARR */
	block_ahead(store, f, feed, off >> PAGE_SHIFT);
	arr = block_queue(store, f, op, off >> PAGE_SHIFT, feed->end, true);
	feed->next = max(feed->next, (off >> PAGE_SHIFT) + !!arr);
	nhca_block_wait(store, f, arr);
	nhca_store_kick(store);
	spin_unlock(&pool->lock);
	return -EAGAIN;
}

void nhca_store_ahead(struct nhca_backing *b, struct nhca_fault *f, u64 op, u64 off, u64 len)
{
	struct nhca_store *store = to_nhca_store(b);
	struct nhca_direct_pool *pool = store->pool;
	u64 end = min(len, store->length - off) + off;
	u64 first = off >> PAGE_SHIFT, index;
	struct nhca_arr *arr;

	spin_lock(&pool->lock);
	for (index = first; index * PAGE_SIZE < end && index < first + NHCA_IO_FIRST; index++) {
		/* leave PMBs and ARRs for the blocks of earlier operations */
		if (store->dying || pool->nqueued >= pool->num / 4 || !pool_has_room(pool))
			break;
		arr = block_queue(store, f, op, index, end, false);
		if (!arr)
			break;
		arr->first = index == first;
	}
	nhca_store_kick(store);
	spin_unlock(&pool->lock);
}
