// SPDX-License-Identifier: GPL-2.0
/*
 * I/O requests, and reads from a disk into blocks.  drain.c has the writes, and file.c the calls of
 * the file system.
 *
 * A work item of the region begins the I/O, because the submission of I/O may sleep.  The I/O may
 * end in any context, even within its submission, so nhca_io_done() only queues the request for a
 * bottom half, which changes the states of the blocks and resumes the requesters and responders.
 */
#include <linux/mm.h>
#include <linux/slab.h>

#include "store.h"
#include "../memory/live.h"
#include "../observe/trace_direct.h"

/* number of ARRs that nhca_store_stop() drops before it releases the lock for a moment */
#define STOP_BATCH	256
/* jiffies after which a process that frees a region, and waits for the disk, logs a warning */
#define STOP_CHECK	(10 * HZ)

void nhca_store_wait(struct nhca_store *store)
{
	lockdep_assert_held(&store->pool->lock);
	if (list_empty(&store->list))
		list_add_tail(&store->list, &store->pool->waiting);
}

/* Kick the first regions of a list, at most NHCA_MORE_BATCH. */
static void kick_some(struct list_head *waiting)
{
	struct nhca_store *store;
	u32 n;

	for (n = 0; n < NHCA_MORE_BATCH && !list_empty(waiting); n++) {
		store = list_first_entry(waiting, struct nhca_store, list);
		list_del_init(&store->list);
		nhca_store_kick(store);
	}
}

void nhca_direct_more(struct nhca_direct_pool *pool)
{
	lockdep_assert_held(&pool->lock);
	if (!pool->short_of)
		return;
	kick_some(&pool->waiting);
	pool->short_of = !list_empty(&pool->waiting);
}

/* Kick all regions that wait now.  A region that still gets too little waits for the next call. */
static void kick_all(struct nhca_direct_pool *pool)
{
	LIST_HEAD(all);

	lockdep_assert_held(&pool->lock);
	pool->short_of = false;
	list_splice_init(&pool->waiting, &all);
	while (!list_empty(&all)) {
		kick_some(&all);
		spin_unlock_bh(&pool->lock);
		cond_resched();
		spin_lock_bh(&pool->lock);
	}
}

void nhca_store_count_wait(struct nhca_store *store, enum nhca_direct_wait what)
{
	nhca_direct_count(store->pool, NHCA_CNT_DIRECT_WAITS, 1);
	trace_nhca_direct_wait(nhca_direct_dev(store->pool), store->backing.key, what);
}

static void pool_poll(struct work_struct *work)
{
	struct nhca_direct_pool *pool = container_of(to_delayed_work(work),
						     struct nhca_direct_pool, poll);

	spin_lock_bh(&pool->lock);
	if (!list_empty(&pool->waiters)) {
		/*
		 * Operations whose owner was destroyed or has stopped may have all ARRs, so release
		 * some ARRs.
		 */
		nhca_direct_pool_release(pool, NHCA_IO_FIRST);
		nhca_direct_pool_wake(pool);
		queue_delayed_work(pool->wq, &pool->poll, NHCA_POLL_TIME);
	}
	/* this also kicks the regions that place_kick() has added to pool->waiting */
	kick_all(pool);
	spin_unlock_bh(&pool->lock);
}

/* ---- begin ---- */

/* Release a reference of nhca_direct_io.refs.  The last release ends the I/O request. */
static void io_put(struct nhca_direct_io *io)
{
	struct nhca_direct_pool *pool = io->store->pool;

	if (!atomic_dec_and_test(&io->refs))
		return;
	/*
	 * Another CPU may take the request from the list immediately, and then region and pool may
	 * be freed.  nhca_io_fini() waits for this RCU section.
	 */
	rcu_read_lock();
	llist_add(&io->done, &pool->done);
	nhca_bh_queue(&pool->complete_bh);
	rcu_read_unlock();
}

/* Return: true if @io, which reads, may also read block @arr. */
static bool io_takes(const struct nhca_direct_io *io, const struct nhca_arr *arr)
{
	return !io->n ||
	       (io->n < NHCA_IO_MAX && !arr->first && !arr->write &&
		arr->key.index == io->arr[io->n - 1]->key.index + 1);
}

void nhca_io_add(struct nhca_direct_io *io, struct nhca_arr *arr, struct page *page, u32 start,
		 u32 end)
{
	io->arr[io->n] = arr;
	io->bvec[io->n++] = (struct bio_vec) {
		.bv_page = page,
		.bv_offset = start,
		.bv_len = end - start,
	};
	io->bytes += end - start;
}

struct nhca_direct_io *nhca_io_alloc(struct nhca_store *store, u8 kind)
{
	struct nhca_direct_pool *pool = store->pool;
	struct nhca_direct_io *io;

	lockdep_assert_held(&pool->lock);
	io = list_first_entry_or_null(&pool->free_ios, struct nhca_direct_io, list);
	if (!io)
		return NULL;
	list_del(&io->list);
	io->store = store;
	io->kind = kind;
	io->blocking = false;
	io->edge = NULL;
	io->n = 0;
	io->bytes = 0;
	store->io++;
	return io;
}

static struct nhca_arr *first_queued(struct nhca_store *store)
{
	return list_first_entry_or_null(&store->queued, struct nhca_arr, list);
}

/*
 * Give PMBs to blocks that will be written, up to the first block of the queue that has to be read.
 * Return: true if there is such a block to read, and a PMB is free.
 */
static bool queue_collects(struct nhca_store *store)
{
	struct nhca_arr *arr;

	while ((arr = first_queued(store)) && arr->write)
		if (!nhca_arr_bind(store->pool, arr))
			return false;
	return arr && !list_empty(&store->pool->free_pmbs);
}

/*
 * Return: the next I/O request that reads; NULL: no read is queued, or the pool has no free PMB or
 * I/O request.
 */
static struct nhca_direct_io *io_next(struct nhca_store *store)
{
	struct nhca_direct_pool *pool = store->pool;
	struct nhca_direct_io *io;
	struct nhca_arr *arr;

	lockdep_assert_held(&pool->lock);
	if (!queue_collects(store))
		return NULL;
	io = nhca_io_alloc(store, NHCA_IO_READ);
	if (!io)
		return NULL;
	while ((arr = first_queued(store)) && io_takes(io, arr) && nhca_arr_bind(pool, arr))
		nhca_io_add(io, arr, nhca_arr_page(pool, arr), 0,
			    nhca_store_block(store, arr->key.index));
	return io;
}

/*
 * Free PMBs to which no packet refers.  Wait for live sections, because a section may be copying
 * from or to such a PMB.  If no ARR is QUEUED, or no PMB is resting, there is nothing to do.
 * Return: true if the function has waited, and the pool now has free PMBs.
 */
static bool pool_reclaim(struct nhca_direct_pool *pool)
{
	u64 epoch = 0;
	bool some;

	spin_lock_bh(&pool->lock);
	/*
	 * Release one PMB for each QUEUED ARR, but at least an eighth of the PMBs, so that later
	 * writes find free PMBs, and at most NHCA_IO_MAX.
	 */
	if (pool->nqueued)
		epoch = nhca_direct_pool_release(pool, min_t(u32, max(pool->nqueued, pool->num / 8),
							     NHCA_IO_MAX));
	spin_unlock_bh(&pool->lock);
	if (!epoch)
		return false;
	nhca_live_wait();
	spin_lock_bh(&pool->lock);
	nhca_direct_pool_settle(pool, epoch);
	some = !list_empty(&pool->free_pmbs);
	spin_unlock_bh(&pool->lock);
	return some;
}

/*
 * If blocks of the region still wait for their I/O, the pool is short of PMBs, I/O requests or edge
 * pages.  Let the region try again when a block was sent, when an I/O request has ended, or at the
 * latest after NHCA_POLL_TIME.
 */
static void store_short(struct nhca_store *store)
{
	struct nhca_direct_pool *pool = store->pool;

	spin_lock_bh(&pool->lock);
	if (!list_empty(&store->queued) || !list_empty(&store->dirty)) {
		nhca_store_wait(store);
		pool->short_of = true;
		queue_delayed_work(pool->wq, &pool->poll, NHCA_POLL_TIME);
	}
	spin_unlock_bh(&pool->lock);
}

static void run_begin(const struct nhca_direct_io *io)
{
	struct nhca_store *store = io->store;

	nhca_direct_count(store->pool, NHCA_CNT_DIRECT_BEGUN, 1);
	nhca_direct_count(store->pool, NHCA_CNT_DIRECT_BLOCKS, io->n);
	trace_nhca_direct_begun(nhca_direct_dev(store->pool), store->backing.key, io->kind,
				nhca_io_offset(io), io->bytes, io->n);
}

void nhca_store_run(struct nhca_store *store)
{
	struct nhca_direct_pool *pool = store->pool;
	struct nhca_direct_io *io;
	bool tried = false;

	for (;;) {
		spin_lock_bh(&pool->lock);
		io = nhca_drain_next(store) ?: io_next(store);
		spin_unlock_bh(&pool->lock);
		if (io) {
			run_begin(io);
			atomic_set(&io->refs, 2);
			store->submit(io);
			io_put(io);
			tried = false;
			continue;
		}
		if (tried || !pool_reclaim(pool))
			break;
		tried = true;
	}
	store_short(store);
}

static void store_work(struct work_struct *work)
{
	nhca_store_run(container_of(work, struct nhca_store, work));
}

/* ---- end ---- */

void nhca_io_done(struct nhca_direct_io *io, ssize_t ret)
{
	io->ret = ret;
	io_put(io);
}

void nhca_io_failed(struct nhca_direct_io *io, u32 got)
{
	struct nhca_store *store = io->store;

	store->errors++;
	nhca_direct_count(store->pool, NHCA_CNT_DIRECT_ERRORS, 1);
	store->last_error = io->ret < 0 ? -io->ret : EIO;
	store->last_error_at = nhca_io_offset(io) + got;
}

/* Change the states of blocks that were read.  A block of which no byte was read is FAILED. */
static void io_read_finish(struct nhca_direct_pool *pool, struct nhca_direct_io *io)
{
	struct nhca_store *store = io->store;
	u32 got = clamp_t(ssize_t, io->ret, 0, io->bytes);
	u32 i, left = got;

	store->reads++;
	store->read_bytes += got;
	nhca_direct_count(pool, NHCA_CNT_DIRECT_READ_BYTES, got);
	if (got < io->bytes)
		nhca_io_failed(io, got);
	for (i = 0; i < io->n; i++) {
		u32 n = min(left, io->bvec[i].bv_len);

		left -= n;
		nhca_arr_filled(pool, io->arr[i], n);
		if (store->dying)
			nhca_arr_drop(pool, io->arr[i]);
	}
}

static void io_finish(struct nhca_direct_pool *pool, struct nhca_direct_io *io)
{
	struct nhca_store *store = io->store;

	lockdep_assert_held(&pool->lock);
	nhca_direct_count(pool, NHCA_CNT_DIRECT_ENDED, 1);
	trace_nhca_direct_ended(nhca_direct_dev(pool), store->backing.key, io->kind,
				nhca_io_offset(io), io->ret);
	if (io->kind == NHCA_IO_READ)
		io_read_finish(pool, io);
	else if (!nhca_drain_finish(pool, io))
		return;
	list_add(&io->list, &pool->free_ios);
	if (!--store->io && !store->ndirty && !store->flush_busy && store->dying)
		wake_up_all(&pool->idle);
	nhca_direct_more(pool);
}

void nhca_direct_pool_complete(struct nhca_direct_pool *pool)
{
	struct nhca_direct_io *io, *next;
	struct nhca_feed *feed;
	bool resumed;

	spin_lock(&pool->lock);
	llist_for_each_entry_safe(io, next, llist_reverse_order(llist_del_all(&pool->done)), done)
		io_finish(pool, io);
	while ((feed = list_first_entry_or_null(&pool->woken, struct nhca_feed, line))) {
		list_del_init(&feed->line);
		spin_unlock(&pool->lock);
		resumed = nhca_fault_end(nhca_fault_of(feed));
		spin_lock(&pool->lock);
		/* an owner that was not resumed takes no ARR, so wake the next in pool->waiters */
		if (!resumed)
			nhca_direct_pool_wake(pool);
	}
	spin_unlock(&pool->lock);
}

static void pool_complete(struct nhca_bh *bh)
{
	nhca_direct_pool_complete(container_of(bh, struct nhca_direct_pool, complete_bh));
}

/* ---- life ---- */

void nhca_store_init(struct nhca_store *store)
{
	struct nhca_direct_pool *pool = store->pool;

	store->backing.ops = &nhca_store_ops;
	INIT_LIST_HEAD(&store->list);
	INIT_LIST_HEAD(&store->queued);
	INIT_LIST_HEAD(&store->dirty);
	INIT_LIST_HEAD(&store->again);
	INIT_LIST_HEAD(&store->arrs);
	INIT_WORK(&store->work, store_work);
	nhca_flush_init(store);
	store->depth = clamp_t(u32, (store->depth ?: NHCA_DIRECT_DEPTH) / PAGE_SIZE, NHCA_IO_FIRST,
			       pool->num / 2);
	nhca_store_debug_add(store);
}

static bool store_idle(struct nhca_store *store)
{
	bool idle;

	spin_lock_bh(&store->pool->lock);
	idle = !store->io && !store->ndirty && !store->flush_busy;
	spin_unlock_bh(&store->pool->lock);
	return idle;
}

/*
 * Drop ARRs of a region that is being freed.  Blocks that are being read are dropped when their I/O
 * has ended: io_read_finish().  DIRTY blocks are still written, because their bytes may have been
 * acknowledged.  Return: true if there may be more to drop.
 */
static bool store_drop(struct nhca_store *store)
{
	struct nhca_direct_pool *pool = store->pool;
	struct nhca_arr *arr, *next;
	u32 n = 0;

	lockdep_assert_held(&pool->lock);
	list_for_each_entry_safe(arr, next, &store->arrs, by_store) {
		if (arr->state == NHCA_ARR_FILLING || arr->state == NHCA_ARR_DIRTY ||
		    arr->state == NHCA_ARR_DRAINING)
			continue;
		nhca_arr_drop(pool, arr);
		if (++n == STOP_BATCH)
			return true;
	}
	return false;
}

/*
 * Wait for the disk.  A process that was killed waits as well, as for any direct I/O: the bytes may
 * have been acknowledged, and the I/O uses the file.  The process wakes up every STOP_CHECK
 * jiffies, so that the kernel's detector of hung tasks, which may panic, does not report the wait.
 */
static void stop_wait(struct nhca_store *store)
{
	unsigned long begin = jiffies;
	bool told = false;

	while (!wait_event_timeout(store->pool->idle, store_idle(store), STOP_CHECK)) {
		if (!told)
			pr_warn("nhca: %s (process %d) waits for the disk of a region (file %pD), and cannot end before the disk has answered: check the disk\n",
				current->comm, task_tgid_nr(current), store->file);
		told = true;
	}
	if (told)
		pr_info("nhca: %s (process %d) has waited %lu s for the disk of a region (file %pD); the disk has now answered\n",
			current->comm, task_tgid_nr(current), (jiffies - begin) / HZ, store->file);
}

void nhca_store_stop(struct nhca_store *store)
{
	struct nhca_direct_pool *pool = store->pool;

	spin_lock_bh(&pool->lock);
	store->dying = true;
	store->closing = jiffies;
	while (store_drop(store)) {
		spin_unlock_bh(&pool->lock);
		cond_resched();
		spin_lock_bh(&pool->lock);
	}
	/*
	 * Resume all owners that wait for an ARR.  Those that need the ARR for this region then get
	 * -EACCES.
	 */
	while (!list_empty(&pool->waiters))
		nhca_direct_pool_wake(pool);
	spin_unlock_bh(&pool->lock);
	nhca_store_kick(store);
	stop_wait(store);
	/* nothing is queued or DIRTY, so the region is not added to pool->waiting again */
	spin_lock_bh(&pool->lock);
	list_del_init(&store->list);
	spin_unlock_bh(&pool->lock);
	cancel_work_sync(&store->work);
	cancel_work_sync(&store->flush_work);
	nhca_store_debug_del(store);
	WARN_ON_ONCE(!list_empty(&store->arrs));
}

/* Allocate nhca_direct_pool.edges.  Return: 0; -ENOMEM: no memory. */
static int io_edges(struct nhca_direct_pool *pool)
{
	u32 i;

	pool->nedges = nhca_direct_edges(pool->num);
	pool->edges = kcalloc(pool->nedges, sizeof(*pool->edges), GFP_KERNEL_ACCOUNT);
	if (!pool->edges)
		return -ENOMEM;
	for (i = 0; i < pool->nedges; i++) {
		pool->edges[i] = alloc_page(GFP_KERNEL_ACCOUNT | __GFP_ZERO);
		if (!pool->edges[i])
			return -ENOMEM;
	}
	pool->edges_free = pool->nedges;
	return 0;
}

int nhca_io_init(struct nhca_direct_pool *pool)
{
	u32 i;

	INIT_LIST_HEAD(&pool->free_ios);
	init_llist_head(&pool->done);
	init_waitqueue_head(&pool->idle);
	nhca_bh_init(&pool->complete_bh, pool_complete);
	INIT_DELAYED_WORK(&pool->poll, pool_poll);
	pool->nios = clamp_t(u32, pool->num / 4, 8, 256);
	pool->ios = kvcalloc(pool->nios, sizeof(*pool->ios), GFP_KERNEL_ACCOUNT);
	/* WQ_MEM_RECLAIM: memory reclaim, here or on a peer, may wait for the I/O of this pool */
	pool->wq = alloc_workqueue("nhca_direct", WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	if (!pool->ios || !pool->wq)
		return -ENOMEM;
	for (i = 0; i < pool->nios; i++)
		list_add_tail(&pool->ios[i].list, &pool->free_ios);
	return io_edges(pool);
}

void nhca_io_fini(struct nhca_direct_pool *pool)
{
	u32 i;

	cancel_delayed_work_sync(&pool->poll);
	/* wait for an io_put() that has not queued the bottom half yet */
	synchronize_rcu();
	nhca_bh_kill(&pool->complete_bh);
	/* do the work of a bottom half that the kill may have removed before it has run */
	local_bh_disable();
	nhca_direct_pool_complete(pool);
	local_bh_enable();
	if (pool->wq)
		destroy_workqueue(pool->wq);
	for (i = 0; pool->edges && i < pool->nedges; i++)
		if (pool->edges[i])
			__free_page(pool->edges[i]);
	kfree(pool->edges);
	kvfree(pool->ios);
}
