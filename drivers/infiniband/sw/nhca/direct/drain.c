// SPDX-License-Identifier: GPL-2.0
/*
 * Writes of blocks to a disk.
 *
 * One I/O request may write several adjacent blocks.  If the bytes of a block begin or end inside a
 * unit of direct I/O, the units are first read into an edge page (nhca_direct_pool.edges), the
 * bytes are copied into this page, and the page is written.  order.c ensures that no other
 * operation writes the block to the disk between this read and this write.
 */
#include <linux/mm.h>
#include <linux/string.h>

#include "store.h"

/* maximum number of ARRs that drain_gather() examines, to bound the time with the lock held */
#define DRAIN_SCAN	256

/* Return: true if the bytes of a block can be written without a read before. */
static bool drain_is_whole(const struct nhca_store *store, const struct nhca_arr *arr)
{
	return IS_ALIGNED(arr->start | arr->count, store->align);
}

static void drain_add(struct nhca_direct_io *io, struct nhca_arr *arr)
{
	struct nhca_direct_pool *pool = io->store->pool;

	nhca_arr_drain(pool, arr);
	nhca_io_add(io, arr, nhca_arr_page(pool, arr), arr->start, arr->count);
}

/* In one scan of the list, extend @io by blocks that directly follow its last block. */
static void drain_gather(struct nhca_store *store, struct nhca_direct_io *io)
{
	struct nhca_arr *last = io->arr[0], *arr, *next;
	u32 seen = 0;

	list_for_each_entry_safe(arr, next, &store->dirty, list) {
		if (io->n == NHCA_IO_MAX || last->count != PAGE_SIZE || seen++ >= DRAIN_SCAN)
			break;
		if (arr->alone || arr->start || arr->key.index != last->key.index + 1 ||
		    !drain_is_whole(store, arr))
			continue;
		drain_add(io, arr);
		last = arr;
	}
}

/*
 * Begin to write bytes that do not fill all their units of direct I/O.
 * Return: the I/O request that reads these units; NULL: no I/O request or edge page is free.
 */
static struct nhca_direct_io *drain_edge(struct nhca_store *store, struct nhca_arr *arr)
{
	struct nhca_direct_pool *pool = store->pool;
	struct nhca_direct_io *io;

	if (!pool->edges_free)
		return NULL;
	io = nhca_io_alloc(store, NHCA_IO_EDGE);
	if (!io)
		return NULL;
	io->edge = pool->edges[--pool->edges_free];
	nhca_arr_drain(pool, arr);
	nhca_io_add(io, arr, io->edge, round_down(arr->start, store->align),
		    round_up(arr->count, store->align));
	return io;
}

struct nhca_direct_io *nhca_drain_next(struct nhca_store *store)
{
	struct nhca_direct_io *io;
	struct nhca_arr *arr;

	lockdep_assert_held(&store->pool->lock);
	io = list_first_entry_or_null(&store->again, struct nhca_direct_io, list);
	if (io) {
		list_del(&io->list);
		return io;
	}
	arr = list_first_entry_or_null(&store->dirty, struct nhca_arr, list);
	if (!arr)
		return NULL;
	if (!drain_is_whole(store, arr))
		return drain_edge(store, arr);
	io = nhca_io_alloc(store, NHCA_IO_WRITE);
	if (!io)
		return NULL;
	drain_add(io, arr);
	if (!arr->alone)
		drain_gather(store, io);
	return io;
}

/* The old bytes were read: copy the new bytes over them.  A work item then writes the page. */
static void drain_merge(struct nhca_direct_pool *pool, struct nhca_direct_io *io)
{
	struct nhca_arr *arr = io->arr[0];

	memcpy(page_address(io->edge) + arr->start,
	       page_address(nhca_arr_page(pool, arr)) + arr->start, arr->count - arr->start);
	io->kind = NHCA_IO_MERGED;
	list_add_tail(&io->list, &io->store->again);
	nhca_store_kick(io->store);
}

/* An I/O request has failed.  If it had several blocks, each block is tried alone. */
static void drain_failed(struct nhca_direct_pool *pool, struct nhca_direct_io *io)
{
	struct nhca_store *store = io->store;
	u32 i;

	if (io->n == 1) {
		if (!store->sync) {
			store->lost++;
			nhca_direct_count(pool, NHCA_CNT_DIRECT_LOST, 1);
			store->wb_err = store->last_error;
		}
		nhca_arr_drained(pool, io->arr[0], store->last_error);
		return;
	}
	/* nhca_arr_again() adds at the head of nhca_store.dirty, so begin with the last block */
	for (i = io->n; i--; )
		nhca_arr_again(pool, io->arr[i]);
	nhca_store_kick(store);
}

/*
 * The file system could not begin an I/O request without waiting.  If the request had several
 * blocks, each block is tried alone, because the file system may have to wait only for some of
 * them.  A request of one block begins again with a permission to wait (nhca_direct_io.blocking).
 * Return: as nhca_drain_finish().
 */
static bool drain_again(struct nhca_direct_pool *pool, struct nhca_direct_io *io)
{
	struct nhca_store *store = io->store;
	bool many = io->n > 1;
	u32 i;

	nhca_direct_count(pool, NHCA_CNT_DIRECT_AGAIN, 1);
	nhca_store_kick(store);
	if (many) {
		for (i = io->n; i--; )
			nhca_arr_again(pool, io->arr[i]);
	} else {
		io->blocking = true;
		list_add_tail(&io->list, &store->again);
	}
	return many;
}

bool nhca_drain_finish(struct nhca_direct_pool *pool, struct nhca_direct_io *io)
{
	u32 got = clamp_t(ssize_t, io->ret, 0, io->bytes);
	struct nhca_store *store = io->store;
	bool edge = io->kind == NHCA_IO_EDGE;
	u32 i;

	lockdep_assert_held(&pool->lock);
	if (io->ret == -EAGAIN && !io->blocking && !edge)
		return drain_again(pool, io);
	store->edges += edge;
	store->writes += !edge;
	store->write_bytes += edge ? 0 : got;
	nhca_direct_count(pool, NHCA_CNT_DIRECT_EDGES, edge);
	nhca_direct_count(pool, NHCA_CNT_DIRECT_WRITE_BYTES, edge ? 0 : got);
	if (edge && got == io->bytes) {
		drain_merge(pool, io);
		return false;
	}
	if (io->edge)
		pool->edges[pool->edges_free++] = io->edge;
	if (got < io->bytes) {
		nhca_io_failed(io, got);
		drain_failed(pool, io);
		return true;
	}
	for (i = 0; i < io->n; i++)
		nhca_arr_drained(pool, io->arr[i], 0);
	return true;
}
