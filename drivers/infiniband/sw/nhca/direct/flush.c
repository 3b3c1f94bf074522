// SPDX-License-Identifier: GPL-2.0
/*
 * Flushes of a region: FLUSH of peers, and nhcadv_direct_sync().
 *
 * A flush waits for the blocks that are DIRTY or DRAINING when it begins, and then makes the file
 * durable if the flush is persistent.  One flush of a region is in progress at a time.  Requests
 * that come while a flush is in progress share the next flush.  Blocks that become DIRTY after a
 * flush has begun are counted separately (nhca_store.unflushed), so that a peer that writes all the
 * time does not delay the flush of another peer.
 */
#include "store.h"
#include "../observe/trace_direct.h"

static void group_init(struct nhca_flush_group *g)
{
	INIT_LIST_HEAD(&g->feeds);
	INIT_LIST_HEAD(&g->procs);
	g->persistent = false;
}

static bool group_is_empty(const struct nhca_flush_group *g)
{
	return list_empty(&g->feeds) && list_empty(&g->procs);
}

/* Move all responders and processes of @from to @to, which is empty. */
static void group_move(struct nhca_flush_group *to, struct nhca_flush_group *from)
{
	list_splice_init(&from->feeds, &to->feeds);
	list_splice_init(&from->procs, &to->procs);
	to->persistent = from->persistent;
	from->persistent = false;
}

/* Pass the result of a flush to all responders and processes that wait for the flush. */
static void group_complete(struct nhca_direct_pool *pool, struct nhca_flush_group *g, int err)
{
	struct nhca_flusher *proc, *next;
	struct nhca_feed *feed;

	lockdep_assert_held(&pool->lock);
	list_for_each_entry(feed, &g->feeds, line)
		nhca_fault_flush_end(nhca_fault_of(feed), feed->op, err);
	if (!list_empty(&g->feeds)) {
		list_splice_tail_init(&g->feeds, &pool->woken);
		nhca_bh_queue(&pool->complete_bh);
	}
	list_for_each_entry_safe(proc, next, &g->procs, list) {
		list_del_init(&proc->list);
		proc->err = err;
		complete(&proc->done);
	}
	g->persistent = false;
}

void nhca_flush_continue(struct nhca_store *store)
{
	lockdep_assert_held(&store->pool->lock);
	if (store->flush_busy)
		queue_work(store->pool->wq, &store->flush_work);
}

/* Begin the next flush, if a responder or process waits for it and no flush is in progress. */
static void flush_begin(struct nhca_store *store)
{
	lockdep_assert_held(&store->pool->lock);
	if (store->flush_busy || group_is_empty(&store->flush_next))
		return;
	store->flush_busy = true;
	group_move(&store->flushing, &store->flush_next);
	store->flush ^= 1;
	/* the previous flush has waited until this count was 0 */
	WARN_ON_ONCE(store->unflushed[store->flush]);
	if (store->unflushed[!store->flush])
		nhca_store_kick(store);
	else
		nhca_flush_continue(store);
}

/* End a flush, whose blocks were all written or lost. */
static void flush_end(struct work_struct *work)
{
	struct nhca_store *store = container_of(work, struct nhca_store, flush_work);
	struct nhca_direct_pool *pool = store->pool;
	int err = 0;

	/* store->flushing.persistent is constant during a flush, so this read needs no lock */
	if (store->flushing.persistent)
		err = -store->fsync(store);
	spin_lock_bh(&pool->lock);
	if (store->wb_err) {
		err = store->wb_err;
		store->wb_err = 0;
	}
	store->flushes++;
	nhca_direct_count(pool, NHCA_CNT_DIRECT_FLUSHES, 1);
	trace_nhca_direct_flushed(nhca_direct_dev(pool), store->backing.key,
				  store->flushing.persistent, err);
	group_complete(pool, &store->flushing, err);
	store->flush_busy = false;
	flush_begin(store);
	if (!store->flush_busy && store->dying)
		wake_up_all(&pool->idle);
	spin_unlock_bh(&pool->lock);
}

void nhca_flush_init(struct nhca_store *store)
{
	group_init(&store->flushing);
	group_init(&store->flush_next);
	INIT_WORK(&store->flush_work, flush_end);
}

int nhca_store_flush(struct nhca_backing *b, struct nhca_fault *f, u64 op, bool persistent)
{
	struct nhca_store *store = to_nhca_store(b);
	struct nhca_direct_pool *pool = store->pool;
	struct nhca_feed *feed;
	int err;

	if (!f)
		return -EACCES;
	feed = nhca_fault_feed(f);
	err = nhca_fault_flushed(f, op);
	if (err != -EAGAIN)
		return err;
	spin_lock(&pool->lock);
	if (store->dying) {
		err = -EACCES;
	} else if (nhca_fault_begin(f)) {
		nhca_store_count_wait(store, NHCA_WAIT_FLUSH);
		nhca_fault_write_op(f, op);
		/* the FLUSH uses the feed, so the feed has no position of a READ any more */
		feed->backing = NULL;
		feed->op = op;
		list_add_tail(&feed->line, &store->flush_next.feeds);
		store->flush_next.persistent |= persistent;
		flush_begin(store);
	}
	spin_unlock(&pool->lock);
	return err;
}

int nhca_store_sync(struct nhca_store *store)
{
	struct nhca_direct_pool *pool = store->pool;
	struct nhca_flusher me = { .list = LIST_HEAD_INIT(me.list) };
	bool waits;

	init_completion(&me.done);
	spin_lock_bh(&pool->lock);
	list_add_tail(&me.list, &store->flush_next.procs);
	store->flush_next.persistent = true;
	flush_begin(store);
	spin_unlock_bh(&pool->lock);
	if (!wait_for_completion_killable(&me.done))
		return -me.err;

	spin_lock_bh(&pool->lock);
	waits = !list_empty(&me.list);
	list_del_init(&me.list);
	spin_unlock_bh(&pool->lock);
	return waits ? -EINTR : -me.err;
}
