/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Private to direct/ and its tests: packet memory blocks (PMBs) and address range registers (ARRs).
 *
 * A pool has a fixed number of PMBs, of one page each.  Disks and packets share these pages.  The
 * regions of a pool, together, never have more blocks in memory than the pool has PMBs (reference:
 * FIG. 17).  An ARR has the state of one block of a region, for the operation that has requested
 * the block.  ARRs and PMBs are allocated independently of each other, so that any PMB may serve
 * any block (FIG. 19b): an ARR gets a PMB only when the read of its block begins, or when packets
 * may write bytes of its block.
 *
 * State of an ARR          Owner of its PMB       Bits of the reference
 * FREE                     -                      -
 * QUEUED                   no PMB                 -
 * FILLING                  DEVICE: a disk         PCI Valid
 * READY, SENT              ADAPTER: packets       BR Valid
 * FAILED                   no PMB                 -
 * COLLECTING, DIRTY        ADAPTER                BR Valid
 * DRAINING                 DEVICE                 PCI Valid
 *
 * While a live section or a packet may refer to the page of a PMB that an ARR has released, the PMB
 * is *resting*.  The pool gives the PMB to another ARR only afterwards.
 *
 * A block that an operation writes is private to the operation while its ARR is COLLECTING.  Then
 * the ARR becomes DIRTY and gets its place in the order of the block's I/O (order.c): of several
 * ARRs that write one block, only the first may be DRAINING.
 */
#ifndef NHCA_DIRECT_POOL_H
#define NHCA_DIRECT_POOL_H

#include <linux/kref.h>
#include <linux/list.h>
#include <linux/llist.h>
#include <linux/mm_types.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "../bh.h"
#include "../memory/backing.h"
#include "../observe/counters.h"
#include "direct.h"

struct nhca_store;

/* Return: number of pages in nhca_direct_pool.edges for a pool of @blocks PMBs. */
static inline u32 nhca_direct_edges(u32 blocks)
{
	return clamp(blocks / 16, 2U, 16U);
}

/* nhca_arr.pmb of an ARR without a PMB */
#define NHCA_PMB_NONE		U32_MAX

/*
 * Time in jiffies (20 to 30 ms).  A READY block that its operation has not used for this time may
 * lose its PMB to another operation, because the peer probably does not take the data now.  The
 * block is read again when the operation needs it.  The time is long enough for a requester or
 * responder that was resumed to use its block.  A COLLECTING block to which no bytes come for this
 * time may also lose its PMB: its bytes go to the disk.
 */
#define NHCA_READY_AGE		(HZ / 50 + 1)

/*
 * place_kick() begins to write when the number of DIRTY and DRAINING blocks of a region is a
 * multiple of this number.
 */
#define NHCA_DIRTY_BATCH	32

/**
 * enum nhca_pmb_owner - who may access the page of a PMB
 * @NHCA_PMB_POOL: nobody
 * @NHCA_PMB_DEVICE: a disk ("PCI Valid")
 * @NHCA_PMB_ADAPTER: requesters, responders and packets ("BR Valid")
 */
enum nhca_pmb_owner {
	NHCA_PMB_POOL,
	NHCA_PMB_DEVICE,
	NHCA_PMB_ADAPTER,
};

/**
 * enum nhca_direct_wait - what a requester or responder waits for
 * @NHCA_WAIT_BLOCK: the disk, or a PMB for a block
 * @NHCA_WAIT_RANGE: an ARR
 * @NHCA_WAIT_FLUSH: a flush
 */
enum nhca_direct_wait {
	NHCA_WAIT_BLOCK,
	NHCA_WAIT_RANGE,
	NHCA_WAIT_FLUSH,
};

/**
 * struct nhca_pmb - a packet memory block
 * @list:  in nhca_direct_pool.free_pmbs or .resting
 * @page:  its page; constant; owned
 * @epoch: resting: nhca_direct_pool.epoch when the ARR released the PMB
 * @owner: enum nhca_pmb_owner
 * @bound: an ARR has the PMB
 */
struct nhca_pmb {
	struct list_head list;
	struct page *page;
	u64 epoch;
	u8 owner;
	bool bound;
};

/**
 * enum nhca_arr_state - states of an ARR
 * @NHCA_ARR_FREE: belongs to no operation
 * @NHCA_ARR_QUEUED: waits for a PMB; if it reads, also for its I/O request
 * @NHCA_ARR_FILLING: a disk writes to its PMB
 * @NHCA_ARR_READY: its PMB has the bytes
 * @NHCA_ARR_SENT: all bytes were handed to packets; kept for retransmission as long as no other
 *                 operation needs the ARR or the PMB
 * @NHCA_ARR_FAILED: the bytes could not be read
 * @NHCA_ARR_COLLECTING: its PMB collects bytes of packets
 * @NHCA_ARR_DIRTY: its bytes have to be written to the disk
 * @NHCA_ARR_DRAINING: a disk reads its PMB
 * @NHCA_ARR_STATES: number of states
 */
enum nhca_arr_state {
	NHCA_ARR_FREE,
	NHCA_ARR_QUEUED,
	NHCA_ARR_FILLING,
	NHCA_ARR_READY,
	NHCA_ARR_SENT,
	NHCA_ARR_FAILED,
	NHCA_ARR_COLLECTING,
	NHCA_ARR_DIRTY,
	NHCA_ARR_DRAINING,
	NHCA_ARR_STATES
};

/**
 * struct nhca_arr_key - the block of a region, and the operation that needs it
 * @store: the region
 * @fault: requester or responder; counted while the ARR is not free
 * @op:    number of the operation; if the operation writes, the upper bits identify the SGE
 *         (nhca_backing_op())
 * @index: number of the block in the region: offset / PAGE_SIZE (FIG. 19a)
 */
struct nhca_arr_key {
	struct nhca_store *store;
	struct nhca_fault *fault;
	u64 op;
	u64 index;
};

/**
 * struct nhca_arr - an address range register
 * @node:   in nhca_direct_pool.hash, unless the ARR is free, DIRTY or DRAINING
 * @list:   in the pool's list of its state, or in nhca_store.queued or .dirty; empty while the ARR
 *          is FILLING or DRAINING, or waits for the first ARR of its block (order.c)
 * @by_store: in nhca_store.arrs, unless the ARR is free
 * @order_node: in nhca_direct_pool.orders if the ARR is the first in the order of its block
 * @behind: links the first ARR of a block and the ARRs that wait for the first one, oldest first
 * @key:    block and operation
 * @pmb:    number of its PMB, or NHCA_PMB_NONE
 * @total:  reading: Total Transfer Length: bytes that the operation wants, from the start of the
 *          block
 * @got:    bytes of the block that were read
 * @count:  Write Byte Count: bytes from the start of the block that were handed to packets.
 *          Writing: end of the bytes that packets have brought; these begin at @start
 * @start:  writing: offset in the block of the first byte that packets have brought
 * @handed: writing: end of the bytes that the engine may have written, from @start on
 * @flush:  DIRTY, DRAINING: index of the nhca_store.unflushed in which the ARR is counted
 * @aborts: writing: value of nhca_fault_aborts() when the operation took the ARR
 * @state:  enum nhca_arr_state
 * @write:  the operation writes the block
 * @early:  writing: the pool took the block from the operation before all bytes had come
 * @alone:  writing: an I/O request with several blocks has failed, or the file system could not
 *          begin it without waiting, so this block is written alone
 * @waited: the owner of @key.fault waits for this block
 * @first:  an I/O request begins with the block
 * @stamp:  READY, SENT, COLLECTING: time in jiffies at which an engine last used the PMB, or at
 *          which the ARR got this state
 */
struct nhca_arr {
	struct hlist_node node;
	struct list_head list;
	struct list_head by_store;
	struct hlist_node order_node;
	struct list_head behind;
	struct nhca_arr_key key;
	u32 pmb;
	u32 total;
	u32 got;
	u32 count;
	u32 start;
	u32 handed;
	u32 aborts;
	u8 state;
	u8 flush;
	bool write;
	bool early;
	bool alone;
	bool waited;
	bool first;
	unsigned long stamp;
};

/**
 * struct nhca_direct_pool - a pool
 * @ref:       one for the handle of the process, and one for each region
 * @lock:      protects the PMBs, the ARRs, and the members from @allocated to @edges_free that are
 *             not constant, except @wq, @poll, @complete_bh and @done.  Taken with BH disabled,
 *             also in live sections.  The lock of a struct nhca_fault nests inside; no code holds
 *             this lock while it waits for live sections
 * @num:       number of PMBs (num_DRDMA_PMBs); constant
 * @ranges:    number of ARRs; constant
 * @nios:      number of I/O requests; constant
 * @allocated: PMBs that are not in @free_pmbs (allocated_DRDMA_PMBs)
 * @most:      largest value of @allocated
 * @epoch:     number of calls of nhca_direct_pool_release() after which a PMB was resting
 * @nfree_arrs: number of ARRs in @arrs_in[NHCA_ARR_FREE]
 * @nqueued:   number of ARRs in the state QUEUED
 * @pmbs:      the PMBs; owned
 * @arrs:      the ARRs; owned
 * @ios:       the I/O requests; owned
 * @free_pmbs: PMBs that no ARR has, and whose pages nobody refers to
 * @resting:   PMBs that no ARR has, but to which packets or live sections may refer
 * @free_ios:  struct nhca_direct_io that no region uses
 * @arrs_in:   ARRs of each state but QUEUED, FILLING, DIRTY and DRAINING; those of READY and
 *             COLLECTING in the order of their stamps
 * @hash:      ARRs in other states than FREE, DIRTY and DRAINING, by key; owned
 * @orders:    ARRs that are the first in the order of their block, by region and block; owned
 * @hash_bits: log2 of the number of buckets of @hash and of @orders; constant
 * @waiting:   struct nhca_store that have blocks to read or to write, and wait for a kick, because
 *             no PMB, I/O request or edge page was free, or because more blocks will follow
 * @waiters:   struct nhca_feed: owners that wait for a free ARR
 * @woken:     struct nhca_feed: owners whose wait has ended, and which @complete_bh resumes
 * @wq:        runs @poll and the work items of the regions; owned.  Its threads wait for disks.
 *             Each pool has its own workqueue, so that a disk that hangs does not stop other pools
 * @short_of:  regions of @waiting need PMBs, I/O requests or edge pages: see nhca_direct_more()
 * @poll:      lets the regions of @waiting and the owners of @waiters try again
 * @complete_bh: handles I/O requests that have ended, and resumes owners
 * @done:      I/O requests that have ended, and that @complete_bh has not handled yet; lock-free
 * @edges:     pages for blocks that begin or end inside a unit of direct I/O (drain.c); owned
 * @nedges:    number of @edges; constant
 * @edges_free: number of @edges that are not in use; these pages are the first in the array
 * @idle:      woken when a region that is being freed has no I/O, DIRTY block or flush left
 * @number:    number by which the process names the pool; set once, by verbs/
 * @dev:       the pool's device, which outlives the pool; NULL in tests
 * @list:      in the list of all pools (debug.c)
 * @stores:    all regions; protected by a lock of debug.c
 * @user:      account that the memory is charged to, or NULL
 * @bytes:     number of bytes that were charged
 */
struct nhca_direct_pool {
	struct kref ref;
	/* the kernel-doc says what it protects */
	spinlock_t lock;
	u32 num;
	u32 ranges;
	u32 nios;
	u32 allocated;
	u32 most;
	u64 epoch;
	u32 nfree_arrs;
	u32 nqueued;
	struct nhca_pmb *pmbs;
	struct nhca_arr *arrs;
	struct nhca_direct_io *ios;
	struct list_head free_pmbs;
	struct list_head resting;
	struct list_head free_ios;
	struct list_head arrs_in[NHCA_ARR_STATES];
	struct hlist_head *hash;
	struct hlist_head *orders;
	u32 hash_bits;
	struct list_head waiting;
	struct list_head waiters;
	struct list_head woken;
	struct workqueue_struct *wq;
	bool short_of;
	struct delayed_work poll;
	struct nhca_bh complete_bh;
	struct llist_head done;
	struct page **edges;
	u32 nedges;
	u32 edges_free;
	wait_queue_head_t idle;
	u32 number;
	struct nhca_dev *dev;
	struct list_head list;
	struct list_head stores;
	struct nhca_user *user;
	long bytes;
};

/* Add @n to a counter of the pool's device; a pool without a device counts nothing. */
static inline void nhca_direct_count(const struct nhca_direct_pool *pool, enum nhca_counter which,
				     u64 n)
{
	if (pool->dev)
		nhca_dev_count_add(pool->dev, which, n);
}

/* Return: number of the pool's device, for traces. */
static inline u32 nhca_direct_dev(const struct nhca_direct_pool *pool)
{
	return pool->dev ? pool->dev->ibdev.index : 0;
}

/*
 * The functions below run with the pool's lock held, unless their Context says otherwise.  They
 * begin no I/O themselves.
 */

/**
 * nhca_arr_find - find the ARR of a block and operation
 * @pool: the pool
 * @key:  block and operation
 * Return: the ARR or NULL.
 */
struct nhca_arr *nhca_arr_find(struct nhca_direct_pool *pool, const struct nhca_arr_key *key);

/**
 * nhca_arr_take - take an ARR for a block; the ARR is then QUEUED, but not in nhca_store.queued yet
 * @pool:    the pool
 * @key:     block and operation, which have no ARR
 * @total:   bytes that the operation wants
 * @recycle: if no ARR is free, take one that is FAILED or SENT
 * Return: the ARR; NULL: there is none.
 */
struct nhca_arr *nhca_arr_take(struct nhca_direct_pool *pool, const struct nhca_arr_key *key,
			       u32 total, bool recycle);

/**
 * nhca_arr_bind - give a QUEUED ARR a free PMB
 * @pool: the pool
 * @arr:  the ARR, which the function removes from its list; its state is then FILLING, or
 *        COLLECTING if its operation writes the block
 * Return: false: no PMB is free.
 */
bool nhca_arr_bind(struct nhca_direct_pool *pool, struct nhca_arr *arr);

/**
 * nhca_arr_filled - record that the I/O of a FILLING ARR has ended
 * @pool: the pool
 * @arr:  the ARR; its state is then READY, or FAILED if @got is 0
 * @got:  bytes that were read, from the start of the block
 *
 * If the owner waits for the block, the function adds the owner to nhca_direct_pool.woken.
 */
void nhca_arr_filled(struct nhca_direct_pool *pool, struct nhca_arr *arr, u32 got);

/**
 * nhca_arr_give - record that packets get bytes of a READY or SENT ARR
 * @pool: the pool
 * @arr:  the ARR; its state is SENT after the last byte that the operation wants
 * @end:  offset in the block after the last of these bytes
 */
void nhca_arr_give(struct nhca_direct_pool *pool, struct nhca_arr *arr, u32 end);

/**
 * nhca_arr_collect - record that bytes of a COLLECTING ARR were placed (nhca_store_placed())
 * @pool: the pool
 * @arr:  the ARR
 * @end:  offset in the block after the last of these bytes
 */
void nhca_arr_collect(struct nhca_direct_pool *pool, struct nhca_arr *arr, u32 end);

/**
 * nhca_arr_install - let the bytes of a COLLECTING ARR go to the disk
 * @pool: the pool
 * @arr:  the ARR; its state is then DIRTY, or FREE if it has no bytes
 */
void nhca_arr_install(struct nhca_direct_pool *pool, struct nhca_arr *arr);

/**
 * nhca_arr_drain - record that the I/O of a DIRTY ARR begins
 * @pool: the pool
 * @arr:  the ARR, which is the first in the order of its block; its state is then DRAINING
 */
void nhca_arr_drain(struct nhca_direct_pool *pool, struct nhca_arr *arr);

/**
 * nhca_arr_again - record that the I/O of a DRAINING ARR must be tried again without other ARRs
 * @pool: the pool
 * @arr:  the ARR; its state is then DIRTY, and it is the first one in nhca_store.dirty
 */
void nhca_arr_again(struct nhca_direct_pool *pool, struct nhca_arr *arr);

/**
 * nhca_arr_drained - record that the I/O of a DRAINING ARR has ended
 * @pool: the pool
 * @arr:  the ARR; its state is then FREE
 * @err:  0 or an errno (positive)
 */
void nhca_arr_drained(struct nhca_direct_pool *pool, struct nhca_arr *arr, int err);

/**
 * nhca_arr_abandoned - check whether the operation of a COLLECTING ARR was given up
 * @arr: the ARR
 * Return: true if no more bytes will come, and the bytes that came must not reach the disk.
 */
bool nhca_arr_abandoned(const struct nhca_arr *arr);

/**
 * nhca_arr_drop - release an ARR in any state but FREE, FILLING, DIRTY and DRAINING
 * @pool: the pool
 * @arr:  the ARR, which the function removes from its list.  Its PMB, if any, is then resting.  If
 *        the owner waits for the ARR, the wait ends, and the owner tries again.
 */
void nhca_arr_drop(struct nhca_direct_pool *pool, struct nhca_arr *arr);

/**
 * nhca_arr_page - get the page of an ARR that has a PMB
 * @pool: the pool
 * @arr:  the ARR
 * Return: the page.
 */
static inline struct page *nhca_arr_page(const struct nhca_direct_pool *pool,
					 const struct nhca_arr *arr)
{
	return pool->pmbs[arr->pmb].page;
}

/**
 * nhca_direct_pool_release - release ARRs, because other ARRs need their PMBs
 * @pool: the pool
 * @n:    number of PMBs that are needed
 *
 * First the function releases SENT ARRs to whose pages no packet refers.  Then it releases READY
 * ARRs that were not used for NHCA_READY_AGE.  Then it drops COLLECTING ARRs whose operation was
 * given up, and lets the bytes of other COLLECTING ARRs that were not used for NHCA_READY_AGE go to
 * the disk.  The function stops at the latest when it has released @n PMBs.
 * Return: the epoch, for nhca_direct_pool_settle(); 0: no PMB is resting.
 */
u64 nhca_direct_pool_release(struct nhca_direct_pool *pool, u32 n);

/**
 * nhca_direct_pool_settle - free the resting PMBs to which no live section and no packet refers
 * @pool:  the pool
 * @epoch: from nhca_direct_pool_release(), after which the caller has called nhca_live_wait()
 *         without the lock
 * Return: number of PMBs freed.
 */
u32 nhca_direct_pool_settle(struct nhca_direct_pool *pool, u64 epoch);

/* ---- order.c ---- */

/**
 * nhca_order_init - initialize an ARR
 * @arr: the ARR
 */
void nhca_order_init(struct nhca_arr *arr);

/**
 * nhca_order_enter - give an ARR its place in the order of its block
 * @pool: the pool
 * @arr:  a DIRTY ARR, or one that is QUEUED for reading
 * Return: true: the I/O of @arr may begin; false: other ARRs are before @arr.  nhca_order_leave()
 * adds @arr to nhca_store.dirty or .queued when the I/O of @arr may begin.
 */
bool nhca_order_enter(struct nhca_direct_pool *pool, struct nhca_arr *arr);

/**
 * nhca_order_leave - remove an ARR from the order of its block
 * @pool: the pool
 * @arr:  the ARR, whose I/O has ended, or which is dropped; if it is not in an order, nothing
 *        happens
 */
void nhca_order_leave(struct nhca_direct_pool *pool, struct nhca_arr *arr);

/* ---- pool.c ---- */

/**
 * nhca_direct_pool_wake - let the first owner that waits for an ARR try again, if there is one
 * @pool: the pool
 */
void nhca_direct_pool_wake(struct nhca_direct_pool *pool);

/**
 * nhca_direct_pool_init - make the PMBs and ARRs of a pool
 * @pool:   zeroed memory
 * @blocks: number of PMBs
 * @ranges: number of ARRs
 * Context: process, sleeps; the lock is not held.
 * Return: 0; -ENOMEM: no memory; -EINTR: a fatal signal is pending.  The caller must call
 * nhca_direct_pool_fini() in any case.
 */
int nhca_direct_pool_init(struct nhca_direct_pool *pool, u32 blocks, u32 ranges);

/**
 * nhca_direct_pool_fini - free the memory of PMBs and ARRs; no ARR is in use
 * @pool: the pool
 * Context: process, sleeps; the lock is not held.
 */
void nhca_direct_pool_fini(struct nhca_direct_pool *pool);

#endif /* NHCA_DIRECT_POOL_H */
