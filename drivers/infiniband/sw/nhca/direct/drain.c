// SPDX-License-Identifier: GPL-2.0
/*
 * Writes of blocks to a disk.
 *
 * Adjacent blocks are written by one I/O request.  If the bytes of a block begin or end inside a
 * unit of direct I/O, the units are read into a page of nhca_direct_pool.edges first, the bytes are
 * copied into this page, and the page is written.  order.c ensures that nobody else changes the
 * block meanwhile.
 */
#include <linux/mm.h>
#include <linux/string.h>

#include "store.h"

/* ARRs that drain_gather() looks at, to bound the time with the lock */
#define DRAIN_SCAN	256

/* Return: true if the bytes of a block can be written without reading. */
static bool drain_is_whole(const struct nhca_store *store, const struct nhca_arr *arr)
{
	return IS_ALIGNED(arr->start | arr->count, store->align);
}

static void drain_add(struct nhca_direct_run *run, struct nhca_arr *arr)
{
	struct nhca_direct_pool *pool = run->store->pool;

	nhca_arr_drain(pool, arr);
	nhca_run_add(run, arr, nhca_arr_page(pool, arr), arr->start, arr->count);
}

/* Add the blocks that follow those of @run.  Other operations may have blocks in between. */
static void drain_gather(struct nhca_store *store, struct nhca_direct_run *run)
{
	struct nhca_arr *last = run->arr[0], *arr, *next;
	u32 seen = 0;

	list_for_each_entry_safe(arr, next, &store->dirty, list) {
		if (run->n == NHCA_RUN_MAX || last->count != PAGE_SIZE || seen++ >= DRAIN_SCAN)
			break;
		if (arr->alone || arr->start || arr->key.index != last->key.index + 1 ||
		    !drain_is_whole(store, arr))
			continue;
		drain_add(run, arr);
		last = arr;
	}
}

/* Begin to change a part of a block.  Return: the I/O request that reads the part, or NULL. */
static struct nhca_direct_run *drain_edge(struct nhca_store *store, struct nhca_arr *arr)
{
	struct nhca_direct_pool *pool = store->pool;
	struct nhca_direct_run *run;

	if (!pool->edges_free)
		return NULL;
	run = nhca_run_take(store, NHCA_RUN_EDGE);
	if (!run)
		return NULL;
	run->edge = pool->edges[--pool->edges_free];
	nhca_arr_drain(pool, arr);
	nhca_run_add(run, arr, run->edge, round_down(arr->start, store->align),
		     round_up(arr->count, store->align));
	return run;
}

struct nhca_direct_run *nhca_drain_next(struct nhca_store *store)
{
	struct nhca_direct_run *run;
	struct nhca_arr *arr;

	lockdep_assert_held(&store->pool->lock);
	run = list_first_entry_or_null(&store->again, struct nhca_direct_run, list);
	if (run) {
		list_del(&run->list);
		return run;
	}
	arr = list_first_entry_or_null(&store->dirty, struct nhca_arr, list);
	if (!arr)
		return NULL;
	if (!drain_is_whole(store, arr))
		return drain_edge(store, arr);
	run = nhca_run_take(store, NHCA_RUN_WRITE);
	if (!run)
		return NULL;
	drain_add(run, arr);
	if (!arr->alone)
		drain_gather(store, run);
	return run;
}

/* The old bytes were read: copy the new ones over them.  A work item then writes both. */
static void drain_merge(struct nhca_direct_pool *pool, struct nhca_direct_run *run)
{
	struct nhca_arr *arr = run->arr[0];

	memcpy(page_address(run->edge) + arr->start,
	       page_address(nhca_arr_page(pool, arr)) + arr->start, arr->count - arr->start);
	run->kind = NHCA_RUN_MERGED;
	list_add_tail(&run->list, &run->store->again);
	nhca_store_kick(run->store);
}

/* An I/O request has failed.  If it had several blocks, each is tried by itself. */
static void drain_failed(struct nhca_direct_pool *pool, struct nhca_direct_run *run)
{
	struct nhca_store *store = run->store;
	u32 i;

	if (run->n == 1) {
		if (!store->sync) {
			store->lost++;
			nhca_direct_count(pool, NHCA_CNT_DIRECT_LOST, 1);
			store->wb_err = store->last_error;
		}
		nhca_arr_drained(pool, run->arr[0], store->last_error);
		return;
	}
	/* the first one gets to the head of the list last */
	for (i = run->n; i--; )
		nhca_arr_again(pool, run->arr[i]);
	nhca_store_kick(store);
}

/*
 * The file system could not begin an I/O request without waiting.  Of several blocks each is tried
 * by itself, because the others may be in the way.  For a single one the file system may wait.
 * Return: as nhca_drain_finish().
 */
static bool drain_again(struct nhca_direct_pool *pool, struct nhca_direct_run *run)
{
	struct nhca_store *store = run->store;
	bool many = run->n > 1;
	u32 i;

	nhca_direct_count(pool, NHCA_CNT_DIRECT_AGAIN, 1);
	nhca_store_kick(store);
	if (many) {
		for (i = run->n; i--; )
			nhca_arr_again(pool, run->arr[i]);
	} else {
		run->blocking = true;
		list_add_tail(&run->list, &store->again);
	}
	return many;
}

bool nhca_drain_finish(struct nhca_direct_pool *pool, struct nhca_direct_run *run)
{
	u32 got = clamp_t(ssize_t, run->ret, 0, run->bytes);
	struct nhca_store *store = run->store;
	bool edge = run->kind == NHCA_RUN_EDGE;
	u32 i;

	lockdep_assert_held(&pool->lock);
	if (run->ret == -EAGAIN && !run->blocking && !edge)
		return drain_again(pool, run);
	store->edges += edge;
	store->writes += !edge;
	store->write_bytes += edge ? 0 : got;
	nhca_direct_count(pool, NHCA_CNT_DIRECT_EDGES, edge);
	nhca_direct_count(pool, NHCA_CNT_DIRECT_WRITE_BYTES, edge ? 0 : got);
	if (edge && got == run->bytes) {
		drain_merge(pool, run);
		return false;
	}
	if (run->edge)
		pool->edges[pool->edges_free++] = run->edge;
	if (got < run->bytes) {
		nhca_run_failed(run, got);
		drain_failed(pool, run);
		return true;
	}
	for (i = 0; i < run->n; i++)
		nhca_arr_drained(pool, run->arr[i], 0);
	return true;
}
