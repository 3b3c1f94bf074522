/* SPDX-License-Identifier: GPL-2.0 */
/* Private to direct/ and its tests: a region of a file, and its I/O requests. */
#ifndef NHCA_DIRECT_STORE_H
#define NHCA_DIRECT_STORE_H

#include <linux/bvec.h>
#include <linux/fs.h>

#include "pool.h"

/*
 * blocks of the first I/O request of an operation, and of its longest one; each request has twice
 * as many as the one before
 */
#define NHCA_RUN_FIRST		4
#define NHCA_RUN_MAX		64

struct cgroup_subsys_state;

/**
 * struct nhca_direct_run - an I/O request: adjacent blocks of a region
 * @iocb:  the kernel's part
 * @list:  in nhca_direct_pool.free_runs
 * @done:  in nhca_direct_pool.done
 * @store: the region
 * @ret:   bytes that were read, or an error
 * @n:     number of blocks
 * @bytes: bytes to read
 * @arr:   the blocks, which are FILLING
 * @bvec:  their pages
 */
struct nhca_direct_run {
	struct kiocb iocb;
	struct list_head list;
	struct llist_node done;
	struct nhca_store *store;
	ssize_t ret;
	u32 n;
	u32 bytes;
	struct nhca_arr *arr[NHCA_RUN_MAX];
	struct bio_vec bvec[NHCA_RUN_MAX];
};

/**
 * struct nhca_store - a region of a file
 * @backing: memory/'s part
 * @pool:   its pool; counted; its lock protects what is not constant below
 * @list:   in nhca_direct_pool.stores
 * @queued: ARRs in the state QUEUED, in the order in which they are read
 * @arrs:   all ARRs of the region
 * @work:   begins I/O requests
 * @io:     I/O requests in progress
 * @dying:  the region is being freed: no new ARRs
 * @file:   the file; counted; constant; NULL in tests
 * @blkcg:  block I/O cgroup that is charged for the I/O; counted; constant; may be NULL
 * @submit: begins an I/O request, which nhca_run_done() ends; constant
 * @base:   offset of the region in the file; constant
 * @length: bytes of the region; constant
 * @depth:  blocks that an operation reads in advance; constant
 * @reads:  I/O requests that have ended
 * @read_bytes: bytes that these have read
 * @refills: blocks that were taken back and may have to be read again
 * @errors: I/O requests that have failed or were too short
 * @last_error: errno of the last of them
 * @last_error_at: offset in the region at which it failed
 */
struct nhca_store {
	struct nhca_backing backing;
	struct nhca_direct_pool *pool;
	struct list_head list;
	struct list_head queued;
	struct list_head arrs;
	struct work_struct work;
	u32 io;
	bool dying;
	struct file *file;
	struct cgroup_subsys_state *blkcg;
	void (*submit)(struct nhca_direct_run *run);
	u64 base;
	u64 length;
	u32 depth;
	u64 reads;
	u64 read_bytes;
	u64 refills;
	u64 errors;
	int last_error;
	u64 last_error_at;
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

/* the workqueue of all regions */
extern struct workqueue_struct *nhca_direct_wq;

/* functions of regions (block.c, store.c) */
extern const struct nhca_backing_ops nhca_store_ops;

/* block.c: members of nhca_store_ops */
int nhca_store_seg(struct nhca_backing *b, struct nhca_fault *f, u64 op, u64 off, u32 max,
		   bool write, struct nhca_seg *seg);
int nhca_store_want(struct nhca_backing *b, struct nhca_fault *f, u64 op, u64 off, u64 len,
		    bool write);
void nhca_store_ahead(struct nhca_backing *b, struct nhca_fault *f, u64 op, u64 off, u64 len);

/**
 * nhca_store_init - initialize a region and add it to its pool
 * @store: zeroed memory; the caller has set pool, base, length, depth (in bytes), file and submit
 * Context: process.
 */
void nhca_store_init(struct nhca_store *store);

/**
 * nhca_store_stop - remove a region from its pool
 * @store: the region; its key is closed
 *
 * On return no I/O of the region is in progress, and no ARR belongs to it.
 * Context: process, sleeps as long as the disk takes.
 */
void nhca_store_stop(struct nhca_store *store);

/**
 * nhca_store_read - nhca_store.submit of a file: read into the pages of a run
 * @run: the I/O request
 * Context: process, sleeps.
 */
void nhca_store_read(struct nhca_direct_run *run);

/**
 * nhca_run_done - end an I/O request
 * @run: the request
 * @ret: bytes read, or an error
 * Context: any, also hard interrupts.
 */
void nhca_run_done(struct nhca_direct_run *run, ssize_t ret);

/**
 * nhca_store_run - begin the queued I/O of a region, as far as the pool has PMBs and I/O requests
 * @store: the region
 * Context: process, sleeps.
 */
void nhca_store_run(struct nhca_store *store);

/**
 * nhca_pool_tell - handle I/O requests that have ended, and resume owners whose wait has ended
 * @pool: the pool
 * Context: BH disabled.
 */
void nhca_pool_tell(struct nhca_direct_pool *pool);

/**
 * nhca_direct_more - let regions that were short of PMBs, ARRs or I/O requests try again
 * @pool: the pool
 * Context: pool's lock held.
 */
void nhca_direct_more(struct nhca_direct_pool *pool);

/**
 * nhca_fill_init - make the I/O requests of a pool
 * @pool: the pool; nhca_pool_init() was called
 * Context: process, sleeps.
 * Return: 0 or -ENOMEM.
 */
int nhca_fill_init(struct nhca_direct_pool *pool);

/**
 * nhca_fill_fini - stop the work of a pool and free its I/O requests
 * @pool: the pool; it has no regions
 * Context: process, sleeps.
 */
void nhca_fill_fini(struct nhca_direct_pool *pool);

#endif /* NHCA_DIRECT_STORE_H */
