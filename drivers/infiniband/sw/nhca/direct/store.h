/* SPDX-License-Identifier: GPL-2.0 */
/* Private to direct/ and its tests: a region of a file, and its I/O requests. */
#ifndef NHCA_DIRECT_STORE_H
#define NHCA_DIRECT_STORE_H

#include <linux/bvec.h>
#include <linux/completion.h>
#include <linux/fs.h>

#include "pool.h"

/*
 * number of blocks of the first I/O request of an operation that reads, and maximum number of
 * blocks of any I/O request; the requests get longer up to this maximum (block_ahead())
 */
#define NHCA_IO_FIRST		4
#define NHCA_IO_MAX		64
/* jiffies after which a pool that is short of PMBs, ARRs or I/O requests looks for free ones */
#define NHCA_POLL_TIME		1

struct cgroup_subsys_state;

/**
 * enum nhca_io_kind - purpose of an I/O request
 * @NHCA_IO_READ: read FILLING blocks
 * @NHCA_IO_WRITE: write the new bytes of DRAINING blocks
 * @NHCA_IO_EDGE: read a part of a block into a page of nhca_direct_pool.edges, because new bytes
 *                 begin or end inside a unit of direct I/O
 * @NHCA_IO_MERGED: write the page of an EDGE request, into which the new bytes were copied
 */
enum nhca_io_kind {
	NHCA_IO_READ,
	NHCA_IO_WRITE,
	NHCA_IO_EDGE,
	NHCA_IO_MERGED,
};

/**
 * struct nhca_direct_io - an I/O request: adjacent blocks of a region
 * @iocb:  the kernel's part
 * @list:  in nhca_direct_pool.free_ios or nhca_store.again
 * @done:  in nhca_direct_pool.done
 * @store: the region
 * @ret:   number of bytes that were read or written, or a negative errno
 * @refs:  1 for the submission until it has returned, and 1 for the I/O until it has ended, because
 *         file systems may use @iocb after the I/O has ended within its submission
 * @n:     number of blocks
 * @bytes: bytes to read or write
 * @kind:  enum nhca_io_kind
 * @blocking: WRITE, MERGED: the file system could not begin the request without waiting, so the
 *         next submission permits the file system to wait (file.c)
 * @edge:  EDGE, MERGED: page of nhca_direct_pool.edges
 * @arr:   the blocks, which are FILLING or DRAINING
 * @bvec:  their pages; EDGE, MERGED: a part of @edge
 */
struct nhca_direct_io {
	struct kiocb iocb;
	struct list_head list;
	struct llist_node done;
	struct nhca_store *store;
	ssize_t ret;
	atomic_t refs;
	u32 n;
	u32 bytes;
	u8 kind;
	bool blocking;
	struct page *edge;
	struct nhca_arr *arr[NHCA_IO_MAX];
	struct bio_vec bvec[NHCA_IO_MAX];
};

/**
 * struct nhca_flush_group - responders and processes that share a flush
 * @feeds: struct nhca_feed of the responders
 * @procs: struct nhca_flusher of the processes
 * @persistent: at least one member of the group requires that the bytes also leave the cache of the
 *         disk
 */
struct nhca_flush_group {
	struct list_head feeds;
	struct list_head procs;
	bool persistent;
};

/**
 * struct nhca_store - a region of a file
 * @backing: the part that memory/ uses
 * @pool:   its pool; counted.  The lock of the pool protects all members below that are not
 *          constant, except @member (a lock of debug.c), @work and @flush_work.
 * @list:   in nhca_direct_pool.waiting, or empty
 * @member: in nhca_direct_pool.stores
 * @queued: ARRs in the state QUEUED, in the order in which they get PMBs; without those that wait
 *          for the first ARR of their block (order.c)
 * @dirty:  ARRs in the state DIRTY that are the first of their block (order.c)
 * @again:  I/O requests that have to begin: of the kind MERGED, or with nhca_direct_io.blocking set
 * @arrs:   all ARRs of the region
 * @work:   begins I/O requests
 * @io:     number of I/O requests in progress
 * @dying:  the region is being freed, so it gets no new ARRs
 * @file:   the file; counted; constant; NULL in tests
 * @blkcg:  block I/O cgroup that is charged for the I/O; counted; constant; may be NULL
 * @submit: begins an I/O request, which nhca_io_done() ends; constant
 * @fsync:  makes the written bytes durable; returns 0 or a negative errno; constant
 * @base:   offset of the region in the file; constant
 * @length: bytes of the region; constant
 * @align:  unit of direct I/O in bytes, for offsets, lengths and memory; constant
 * @sync:   an operation that writes ends only when its bytes are on the disk; constant
 * @ndirty: number of ARRs in the states DIRTY and DRAINING
 * @flush:  index of the @unflushed in which an ARR that becomes DIRTY now counts; changed when a
 *          flush begins
 * @unflushed: numbers of ARRs in the states DIRTY and DRAINING: [@flush]: of those that have become
 *          DIRTY since the last flush began; [!@flush]: of those from before
 * @flushing: the responders and processes that wait for the flush in progress
 * @flush_next: the responders and processes that wait for the next flush
 * @flush_work: makes the file durable if the flush is persistent, and then ends the flush
 * @flush_busy: a flush is in progress
 * @wb_err: errno (positive) of a block that was lost since the last flush, or 0
 * @flushes: number of flushes that have ended
 * @depth:  maximum number of blocks that an operation reads in advance; constant
 * @reads:  number of I/O requests of the kind READ that have ended
 * @read_bytes: number of bytes that these requests have read
 * @refills: number of READY blocks that the pool took back, and that may have to be read again
 * @writes: number of I/O requests of the kinds WRITE and MERGED that have ended
 * @write_bytes: number of bytes that these requests have written
 * @edges:  number of I/O requests of the kind EDGE that have ended
 * @splits: number of blocks that the pool took from an operation after some of their bytes had come
 * @lost:   number of blocks that could not be written, and whose bytes are lost; 0 if @sync
 * @errors: number of I/O requests that have failed or have transferred too few bytes
 * @last_error: errno (positive) of the last of these requests
 * @last_error_at: offset in the region at which the last of these requests failed
 * @closing: time in jiffies at which nhca_store_stop() began; valid if @dying
 */
struct nhca_store {
	struct nhca_backing backing;
	struct nhca_direct_pool *pool;
	struct list_head list;
	struct list_head member;
	struct list_head queued;
	struct list_head dirty;
	struct list_head again;
	struct list_head arrs;
	struct work_struct work;
	u32 io;
	bool dying;
	struct file *file;
	struct cgroup_subsys_state *blkcg;
	void (*submit)(struct nhca_direct_io *io);
	int (*fsync)(struct nhca_store *store);
	u64 base;
	u64 length;
	u32 align;
	bool sync;
	u32 ndirty;
	u8 flush;
	u32 unflushed[2];
	struct nhca_flush_group flushing;
	struct nhca_flush_group flush_next;
	struct work_struct flush_work;
	bool flush_busy;
	int wb_err;
	u64 flushes;
	u32 depth;
	u64 reads;
	u64 read_bytes;
	u64 refills;
	u64 writes;
	u64 write_bytes;
	u64 edges;
	u64 splits;
	u64 lost;
	u64 errors;
	int last_error;
	u64 last_error_at;
	unsigned long closing;
};

/**
 * struct nhca_flusher - a process that waits for a flush
 * @list: in nhca_flush_group.procs
 * @done: completed when the flush has ended
 * @err:  0 or an errno (positive)
 */
struct nhca_flusher {
	struct list_head list;
	struct completion done;
	int err;
};

static inline struct nhca_store *to_nhca_store(struct nhca_backing *b)
{
	return container_of(b, struct nhca_store, backing);
}

/* Return: bytes of block @index of the region.  Only the last block may be shorter than a page. */
static inline u32 nhca_store_block(const struct nhca_store *store, u64 index)
{
	return min_t(u64, PAGE_SIZE, store->length - index * PAGE_SIZE);
}

/* Queue the work item that begins the queued I/O of a region. */
static inline void nhca_store_kick(struct nhca_store *store)
{
	queue_work(store->pool->wq, &store->work);
}

/**
 * nhca_direct_debug_add - show a pool in debugfs
 * nhca_direct_debug_del - no longer show a pool
 * @pool: the pool
 * Context: process, sleeps.
 */
void nhca_direct_debug_add(struct nhca_direct_pool *pool);
void nhca_direct_debug_del(struct nhca_direct_pool *pool);

/**
 * nhca_store_debug_add - show a region in debugfs
 * nhca_store_debug_del - no longer show a region
 * @store: the region, whose pool is initialized
 * Context: process, sleeps.
 */
void nhca_store_debug_add(struct nhca_store *store);
void nhca_store_debug_del(struct nhca_store *store);

/* functions of regions (block.c, placement.c, flush.c, store.c) */
extern const struct nhca_backing_ops nhca_store_ops;

/* block.c, placement.c: members of nhca_store_ops */
int nhca_store_seg(struct nhca_backing *b, struct nhca_fault *f, u64 op, u64 off, u32 max,
		   bool write, struct nhca_seg *seg);
int nhca_store_want(struct nhca_backing *b, struct nhca_fault *f, u64 op, u64 off, u64 len,
		    bool write);
int nhca_store_placed(struct nhca_backing *b, struct nhca_fault *f, u64 op, u64 off, u32 len,
		      bool end);
void nhca_store_ahead(struct nhca_backing *b, struct nhca_fault *f, u64 op, u64 off, u64 len);

/**
 * nhca_block_key - name a block of a region for an operation
 * @store: the region
 * @f:     requester or responder
 * @op:    number of its operation
 * @index: number of the block
 * Return: the key of its ARR.
 */
static inline struct nhca_arr_key nhca_block_key(struct nhca_store *store, struct nhca_fault *f,
						 u64 op, u64 index)
{
	return (struct nhca_arr_key) { .store = store, .fault = f, .op = op, .index = index };
}

/**
 * nhca_block_wait - let a requester or responder wait
 * @store: the region
 * @f:     the requester or responder, for which nhca_fault_begin() has returned true
 * @arr:   the ARR to wait for; NULL: wait in nhca_direct_pool.waiters for a free ARR
 * Context: pool's lock held.
 */
void nhca_block_wait(struct nhca_store *store, struct nhca_fault *f, struct nhca_arr *arr);

/**
 * nhca_store_count_wait - count and trace that a requester or responder has to wait
 * @store: the region
 * @what:  enum nhca_direct_wait
 * Context: any.
 */
void nhca_store_count_wait(struct nhca_store *store, enum nhca_direct_wait what);

/**
 * nhca_place_seg - nhca_store_seg() for bytes that will be written
 * @store: the region
 * @f:     requester or responder
 * @op:    number of its operation
 * @off:   offset in the region
 * @max:   maximum number of bytes
 * @seg:   filled in
 * Context: live section.
 * Return: 0; -EAGAIN: the operation has no block for this byte yet, so the caller must call
 * nhca_place_want(); -EACCES: the region is being freed.
 */
int nhca_place_seg(struct nhca_store *store, struct nhca_fault *f, u64 op, u64 off, u32 max,
		   struct nhca_seg *seg);

/**
 * nhca_place_want - nhca_store_want() for bytes that will be written
 * @store: the region
 * @f:     requester or responder
 * @op:    number of its operation
 * @off:   offset in the region
 * @len:   bytes that the operation will write from @off on
 * Context: live section.
 * Return: -EAGAIN: the owner of @f waits, and must try again when it is resumed; -EACCES: the
 * region is being freed.
 */
int nhca_place_want(struct nhca_store *store, struct nhca_fault *f, u64 op, u64 off, u64 len);

/* ---- flush.c ---- */

/**
 * nhca_flush_init - initialize the flushes of a region
 * @store: the region
 * Context: process.
 */
void nhca_flush_init(struct nhca_store *store);

/**
 * nhca_store_flush - member of nhca_store_ops
 * @b:  the region
 * @f:  the responder
 * @op: number of its FLUSH
 * @persistent: the bytes must also leave the cache of the disk
 * Context: live section.
 * Return: as nhca_backing_ops.flush.
 */
int nhca_store_flush(struct nhca_backing *b, struct nhca_fault *f, u64 op, bool persistent);

/**
 * nhca_store_sync - flush for a process
 * @store: the region; the caller prevents its deregistration
 * Context: process, sleeps.
 * Return: 0; -EINTR: a fatal signal is pending; another negative errno: some bytes were lost since
 * the last flush, or the file cannot be made durable.
 */
int nhca_store_sync(struct nhca_store *store);

/**
 * nhca_flush_continue - continue the flush in progress, whose blocks were all written or lost
 * @store: the region
 * Context: pool's lock held.
 */
void nhca_flush_continue(struct nhca_store *store);

/* ---- file.c ---- */

/**
 * nhca_file_submit - nhca_store.submit of a file: read or write the pages of an I/O request
 * @io: the I/O request
 * Context: process, sleeps.
 */
void nhca_file_submit(struct nhca_direct_io *io);

/**
 * nhca_file_sync - nhca_store.fsync of a file
 * @store: the region
 * Context: process, sleeps.
 * Return: 0, or an error of vfs_fsync_range().
 */
int nhca_file_sync(struct nhca_store *store);

/* ---- io.c, drain.c ---- */

/**
 * nhca_store_init - initialize a region and add it to its pool
 * @store: zeroed memory; the caller has set pool, base, length, align, sync, file, submit, fsync
 *         and depth (in bytes, 0: the default)
 * Context: process.
 */
void nhca_store_init(struct nhca_store *store);

/**
 * nhca_store_stop - remove a region from its pool
 * @store: the region; its key is closed
 *
 * On return all DIRTY blocks were written or lost, no I/O of the region is in progress, and no ARR
 * belongs to the region.
 * Context: process, sleeps as long as the disk takes, also if the process is killed.
 */
void nhca_store_stop(struct nhca_store *store);

static inline bool nhca_io_writes(const struct nhca_direct_io *io)
{
	return io->kind == NHCA_IO_WRITE || io->kind == NHCA_IO_MERGED;
}

/* Return: offset in the region at which an I/O request begins. */
static inline u64 nhca_io_offset(const struct nhca_direct_io *io)
{
	return io->arr[0]->key.index * PAGE_SIZE + io->bvec[0].bv_offset;
}

/**
 * nhca_io_add - add a block to an I/O request
 * @io:    the request
 * @arr:   the block
 * @page:  memory of the block
 * @start: offset in the block of the first byte
 * @end:   offset after the last byte
 */
void nhca_io_add(struct nhca_direct_io *io, struct nhca_arr *arr, struct page *page, u32 start,
		 u32 end);

/**
 * nhca_io_alloc - take a free I/O request for a region
 * @store: the region
 * @kind:  enum nhca_io_kind
 * Context: pool's lock held.
 * Return: the request; NULL: none is free.
 */
struct nhca_direct_io *nhca_io_alloc(struct nhca_store *store, u8 kind);

/**
 * nhca_io_failed - count an I/O request that has failed
 * @io: the request
 * @got: bytes that were read or written
 * Context: pool's lock held.
 */
void nhca_io_failed(struct nhca_direct_io *io, u32 got);

/**
 * nhca_drain_next - find the next I/O request of the kind WRITE, EDGE or MERGED
 * @store: the region
 * Context: pool's lock held.
 * Return: the request; NULL: nothing has to be written, or the pool has no free I/O request or page
 * of nhca_direct_pool.edges.
 */
struct nhca_direct_io *nhca_drain_next(struct nhca_store *store);

/**
 * nhca_drain_finish - change the states of the blocks of an I/O request
 * @pool: the pool
 * @io:   the request, of the kind WRITE, EDGE or MERGED, which has ended
 * Context: pool's lock held.
 * Return: true: the caller must free the request; false: the request will begin again.
 */
bool nhca_drain_finish(struct nhca_direct_pool *pool, struct nhca_direct_io *io);

/**
 * nhca_io_done - end an I/O request
 * @io: the request
 * @ret: number of bytes that were read or written, or a negative errno
 * Context: any, also hard interrupts.
 */
void nhca_io_done(struct nhca_direct_io *io, ssize_t ret);

/**
 * nhca_store_run - begin the queued I/O of a region, as far as the pool has PMBs and I/O requests
 * @store: the region
 * Context: process, sleeps.
 */
void nhca_store_run(struct nhca_store *store);

/**
 * nhca_direct_pool_complete - handle ended I/O requests, and resume the owners in @pool->woken
 * @pool: the pool
 * Context: BH disabled.
 */
void nhca_direct_pool_complete(struct nhca_direct_pool *pool);

/**
 * nhca_store_wait - let a region wait for a kick by nhca_direct_more() or nhca_direct_pool.poll
 * @store: the region
 * Context: pool's lock held.
 */
void nhca_store_wait(struct nhca_store *store);

/* regions that one call of nhca_direct_more() kicks, to bound the time with the lock held */
#define NHCA_MORE_BATCH		8

/**
 * nhca_direct_more - let regions that were short of PMBs, I/O requests or edge pages try again
 * @pool: the pool
 *
 * At most NHCA_MORE_BATCH regions are kicked: those that have waited longest.
 * Context: pool's lock held; also in a live section.
 */
void nhca_direct_more(struct nhca_direct_pool *pool);

/**
 * nhca_io_init - make the I/O requests, edge pages and workqueue of a pool
 * @pool: the pool; nhca_direct_pool_init() was called
 * Context: process, sleeps.
 * Return: 0; -ENOMEM: no memory.
 */
int nhca_io_init(struct nhca_direct_pool *pool);

/**
 * nhca_io_fini - stop the work of a pool, and free its I/O requests, edge pages and workqueue
 * @pool: the pool; it has no regions
 * Context: process, sleeps.
 */
void nhca_io_fini(struct nhca_direct_pool *pool);

#endif /* NHCA_DIRECT_STORE_H */
