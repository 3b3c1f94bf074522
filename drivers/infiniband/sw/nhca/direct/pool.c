// SPDX-License-Identifier: GPL-2.0
/* Packet memory blocks and address range registers: their states and owners. */
#include <linux/hash.h>
#include <linux/jhash.h>
#include <linux/jiffies.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/slab.h>

#include "pool.h"
#include "store.h"
#include "../observe/trace_direct.h"

/*
 * maximum number of SENT, and of COLLECTING, ARRs that one call of nhca_direct_pool_release()
 * examines, to bound the time with the lock held
 */
#define RELEASE_SCAN	256

static struct hlist_head *arr_bucket(struct nhca_direct_pool *pool, const struct nhca_arr_key *key)
{
	u64 h = (uintptr_t)key->fault ^ (uintptr_t)key->store;

	return &pool->hash[hash_64(h + key->op * GOLDEN_RATIO_64 + key->index, pool->hash_bits)];
}

struct nhca_arr *nhca_arr_find(struct nhca_direct_pool *pool, const struct nhca_arr_key *key)
{
	struct nhca_arr *arr;

	lockdep_assert_held(&pool->lock);
	hlist_for_each_entry(arr, arr_bucket(pool, key), node)
		if (arr->key.index == key->index && arr->key.op == key->op &&
		    arr->key.fault == key->fault && arr->key.store == key->store)
			return arr;
	return NULL;
}

/* Return: true if ARRs of the state are in a list of the pool. */
static bool state_has_list(enum nhca_arr_state state)
{
	return state != NHCA_ARR_QUEUED && state != NHCA_ARR_FILLING && state != NHCA_ARR_DIRTY &&
	       state != NHCA_ARR_DRAINING;
}

static void arr_trace(const struct nhca_direct_pool *pool, const struct nhca_arr *arr)
{
	trace_nhca_direct_block(nhca_direct_dev(pool), arr->key.store->backing.key, arr->key.op,
				arr->key.index, arr->state);
}

/*
 * Change the state of an ARR that the caller has removed from its list.  Add the ARR to the list of
 * the new state, if that state has one.
 */
static void arr_enter(struct nhca_direct_pool *pool, struct nhca_arr *arr,
		      enum nhca_arr_state state)
{
	pool->nqueued -= arr->state == NHCA_ARR_QUEUED;
	pool->nqueued += state == NHCA_ARR_QUEUED;
	pool->nfree_arrs -= arr->state == NHCA_ARR_FREE;
	pool->nfree_arrs += state == NHCA_ARR_FREE;
	arr->state = state;
	if (trace_nhca_direct_block_enabled())
		arr_trace(pool, arr);
	if (state_has_list(state))
		list_add_tail(&arr->list, &pool->arrs_in[state]);
	else
		INIT_LIST_HEAD(&arr->list);
}

/* Let the ARR release its PMB, if any.  Packets or live sections may still refer to the page. */
static void arr_unbind(struct nhca_direct_pool *pool, struct nhca_arr *arr)
{
	struct nhca_pmb *pmb;

	if (arr->pmb == NHCA_PMB_NONE)
		return;
	pmb = &pool->pmbs[arr->pmb];
	arr->pmb = NHCA_PMB_NONE;
	WARN_ON_ONCE(!pmb->bound);
	pmb->bound = false;
	pmb->owner = NHCA_PMB_ADAPTER;
	pmb->epoch = pool->epoch;
	list_add_tail(&pmb->list, &pool->resting);
}

/*
 * Let the ARR release its PMB after a write.  The PMB is free immediately, with two exceptions: a
 * packet refers to the page, or an engine may still write to the page, because the pool took the
 * block from the operation early.
 */
static void arr_unbind_drained(struct nhca_direct_pool *pool, struct nhca_arr *arr)
{
	struct nhca_pmb *pmb = &pool->pmbs[arr->pmb];

	if (arr->early || page_ref_count(pmb->page) != 1) {
		arr_unbind(pool, arr);
		return;
	}
	arr->pmb = NHCA_PMB_NONE;
	pmb->bound = false;
	pmb->owner = NHCA_PMB_POOL;
	pool->allocated--;
	list_add(&pmb->list, &pool->free_pmbs);
}

/* Resume the owner, which has waited since nhca_fault_begin() or nhca_fault_sync(). */
static void owner_wake(struct nhca_direct_pool *pool, struct nhca_fault *f)
{
	list_add_tail(&nhca_fault_feed(f)->line, &pool->woken);
	nhca_bh_queue(&pool->complete_bh);
}

/* Resume the owner of the ARR, if the owner waits for this ARR. */
static void arr_wake(struct nhca_direct_pool *pool, struct nhca_arr *arr)
{
	if (!arr->waited)
		return;
	arr->waited = false;
	owner_wake(pool, arr->key.fault);
}

void nhca_direct_pool_wake(struct nhca_direct_pool *pool)
{
	lockdep_assert_held(&pool->lock);
	if (list_empty(&pool->waiters))
		return;
	list_move_tail(pool->waiters.next, &pool->woken);
	nhca_bh_queue(&pool->complete_bh);
}

/* Make an ARR free that has no PMB, and that the caller has removed from the list of its state. */
static void arr_free(struct nhca_direct_pool *pool, struct nhca_arr *arr)
{
	nhca_order_leave(pool, arr);
	hlist_del_init(&arr->node);
	list_del_init(&arr->by_store);
	nhca_fault_put(arr->key.fault);
	arr_enter(pool, arr, NHCA_ARR_FREE);
	arr->key = (struct nhca_arr_key) {};
	nhca_direct_pool_wake(pool);
}

void nhca_arr_drop(struct nhca_direct_pool *pool, struct nhca_arr *arr)
{
	lockdep_assert_held(&pool->lock);
	if (WARN_ON_ONCE(arr->state == NHCA_ARR_FREE || arr->state == NHCA_ARR_FILLING ||
			 arr->state == NHCA_ARR_DIRTY || arr->state == NHCA_ARR_DRAINING))
		return;
	arr_wake(pool, arr);
	arr_unbind(pool, arr);
	list_del_init(&arr->list);
	arr_free(pool, arr);
}

/* Release a FAILED or SENT ARR.  Return: the ARR, which is then FREE; NULL: there is none. */
static struct nhca_arr *arr_recycle(struct nhca_direct_pool *pool)
{
	struct nhca_arr *arr;

	arr = list_first_entry_or_null(&pool->arrs_in[NHCA_ARR_FAILED], struct nhca_arr, list);
	if (!arr)
		arr = list_first_entry_or_null(&pool->arrs_in[NHCA_ARR_SENT], struct nhca_arr,
					       list);
	if (arr)
		nhca_arr_drop(pool, arr);
	return arr;
}

struct nhca_arr *nhca_arr_take(struct nhca_direct_pool *pool, const struct nhca_arr_key *key,
			       u32 total, bool recycle)
{
	struct nhca_arr *arr;

	lockdep_assert_held(&pool->lock);
	arr = list_first_entry_or_null(&pool->arrs_in[NHCA_ARR_FREE], struct nhca_arr, list);
	if (!arr && recycle)
		arr = arr_recycle(pool);
	if (!arr)
		return NULL;
	list_del(&arr->list);
	arr->key = *key;
	arr_enter(pool, arr, NHCA_ARR_QUEUED);
	nhca_fault_get(key->fault);
	arr->total = total;
	arr->got = 0;
	arr->count = 0;
	arr->start = 0;
	arr->handed = 0;
	arr->waited = false;
	arr->first = false;
	arr->write = false;
	arr->early = false;
	arr->alone = false;
	hlist_add_head(&arr->node, arr_bucket(pool, key));
	list_add_tail(&arr->by_store, &key->store->arrs);
	return arr;
}

bool nhca_arr_bind(struct nhca_direct_pool *pool, struct nhca_arr *arr)
{
	struct nhca_pmb *pmb;

	lockdep_assert_held(&pool->lock);
	pmb = list_first_entry_or_null(&pool->free_pmbs, struct nhca_pmb, list);
	if (!pmb || WARN_ON_ONCE(arr->state != NHCA_ARR_QUEUED))
		return false;
	WARN_ON_ONCE(pmb->owner != NHCA_PMB_POOL || pmb->bound);
	list_del(&pmb->list);
	pmb->bound = true;
	pmb->owner = arr->write ? NHCA_PMB_ADAPTER : NHCA_PMB_DEVICE;
	pool->allocated++;
	pool->most = max(pool->most, pool->allocated);
	arr->pmb = pmb - pool->pmbs;
	arr->stamp = jiffies;
	list_del(&arr->list);
	arr_enter(pool, arr, arr->write ? NHCA_ARR_COLLECTING : NHCA_ARR_FILLING);
	if (arr->write)
		arr_wake(pool, arr);
	return true;
}

void nhca_arr_collect(struct nhca_direct_pool *pool, struct nhca_arr *arr, u32 end)
{
	lockdep_assert_held(&pool->lock);
	WARN_ON_ONCE(arr->state != NHCA_ARR_COLLECTING || end > arr->handed || end < arr->count);
	arr->stamp = jiffies;
	arr->count = end;
	/* keep the list in the order of the stamps, for release_collecting() */
	list_move_tail(&arr->list, &pool->arrs_in[NHCA_ARR_COLLECTING]);
}

void nhca_arr_install(struct nhca_direct_pool *pool, struct nhca_arr *arr)
{
	struct nhca_store *store = arr->key.store;

	lockdep_assert_held(&pool->lock);
	if (WARN_ON_ONCE(arr->state != NHCA_ARR_COLLECTING))
		return;
	if (arr->count == arr->start) {
		nhca_arr_drop(pool, arr);
		return;
	}
	hlist_del_init(&arr->node);
	list_del(&arr->list);
	arr_enter(pool, arr, NHCA_ARR_DIRTY);
	store->ndirty++;
	arr->flush = store->flush;
	store->unflushed[arr->flush]++;
	if (store->sync)
		nhca_fault_write_begin(arr->key.fault);
	if (nhca_order_enter(pool, arr))
		list_add_tail(&arr->list, &store->dirty);
}

void nhca_arr_drain(struct nhca_direct_pool *pool, struct nhca_arr *arr)
{
	lockdep_assert_held(&pool->lock);
	WARN_ON_ONCE(arr->state != NHCA_ARR_DIRTY || hlist_unhashed(&arr->order_node));
	pool->pmbs[arr->pmb].owner = NHCA_PMB_DEVICE;
	list_del(&arr->list);
	arr_enter(pool, arr, NHCA_ARR_DRAINING);
}

void nhca_arr_again(struct nhca_direct_pool *pool, struct nhca_arr *arr)
{
	lockdep_assert_held(&pool->lock);
	WARN_ON_ONCE(arr->state != NHCA_ARR_DRAINING);
	pool->pmbs[arr->pmb].owner = NHCA_PMB_ADAPTER;
	arr->alone = true;
	arr_enter(pool, arr, NHCA_ARR_DIRTY);
	list_add(&arr->list, &arr->key.store->dirty);
}

void nhca_arr_drained(struct nhca_direct_pool *pool, struct nhca_arr *arr, int err)
{
	struct nhca_store *store = arr->key.store;

	lockdep_assert_held(&pool->lock);
	if (WARN_ON_ONCE(arr->state != NHCA_ARR_DRAINING))
		return;
	if (store->sync &&
	    nhca_fault_write_end(arr->key.fault, nhca_backing_whole_op(arr->key.op), err))
		owner_wake(pool, arr->key.fault);
	arr_unbind_drained(pool, arr);
	store->ndirty--;
	if (!--store->unflushed[arr->flush] && arr->flush != store->flush)
		nhca_flush_continue(store);
	arr_free(pool, arr);
}

bool nhca_arr_abandoned(const struct nhca_arr *arr)
{
	struct nhca_fault *f = arr->key.fault;

	return nhca_fault_aborts(f) != arr->aborts ||
	       READ_ONCE(nhca_fault_feed(f)->write_op) != nhca_backing_whole_op(arr->key.op);
}

void nhca_arr_filled(struct nhca_direct_pool *pool, struct nhca_arr *arr, u32 got)
{
	lockdep_assert_held(&pool->lock);
	if (WARN_ON_ONCE(arr->state != NHCA_ARR_FILLING))
		return;
	arr->got = got;
	arr->stamp = jiffies;
	if (got)
		pool->pmbs[arr->pmb].owner = NHCA_PMB_ADAPTER;
	else
		arr_unbind(pool, arr);
	arr_enter(pool, arr, got ? NHCA_ARR_READY : NHCA_ARR_FAILED);
	arr_wake(pool, arr);
}

void nhca_arr_give(struct nhca_direct_pool *pool, struct nhca_arr *arr, u32 end)
{
	lockdep_assert_held(&pool->lock);
	WARN_ON_ONCE(arr->pmb == NHCA_PMB_NONE ||
		     pool->pmbs[arr->pmb].owner != NHCA_PMB_ADAPTER || end > arr->got);
	arr->stamp = jiffies;
	arr->count = max(arr->count, end);
	if (arr->state == NHCA_ARR_READY && arr->count >= arr->total) {
		list_del(&arr->list);
		arr_enter(pool, arr, NHCA_ARR_SENT);
		/* the ARR can be recycled for the first owner that waits */
		nhca_direct_pool_wake(pool);
	} else if (arr->state == NHCA_ARR_READY) {
		/* keep the list in the order of the stamps, for nhca_direct_pool_release() */
		list_move_tail(&arr->list, &pool->arrs_in[NHCA_ARR_READY]);
	}
}

/* Return: true if only the pool has a reference on the page of the ARR. */
static bool arr_is_alone(const struct nhca_direct_pool *pool, const struct nhca_arr *arr)
{
	return page_ref_count(nhca_arr_page(pool, arr)) == 1;
}

/*
 * Drop the blocks of operations that were given up.  Take the blocks in which no bytes were placed
 * for NHCA_READY_AGE, because the peer may be dead.  Bytes that were placed in such a block before
 * may have been acknowledged, so they go to the disk, and the PMB is free only after the write.
 * Return: number of PMBs that are resting because of this call.
 */
static u32 release_collecting(struct nhca_direct_pool *pool, u32 n)
{
	struct nhca_arr *arr, *next;
	u32 found = 0, seen = 0;

	list_for_each_entry_safe(arr, next, &pool->arrs_in[NHCA_ARR_COLLECTING], list) {
		if (found >= n || seen++ >= RELEASE_SCAN)
			break;
		if (nhca_arr_abandoned(arr)) {
			nhca_arr_drop(pool, arr);
			found++;
		} else if (time_after_eq(jiffies, arr->stamp + NHCA_READY_AGE)) {
			struct nhca_store *store = arr->key.store;

			store->splits += arr->count > arr->start;
			nhca_direct_count(pool, NHCA_CNT_DIRECT_SPLITS, arr->count > arr->start);
			arr->early = true;
			found += arr->count == arr->start;
			nhca_arr_install(pool, arr);
			nhca_store_kick(store);
		}
	}
	return found;
}

u64 nhca_direct_pool_release(struct nhca_direct_pool *pool, u32 n)
{
	struct nhca_arr *arr, *next;
	u32 found = 0, seen = 0;

	lockdep_assert_held(&pool->lock);
	list_for_each_entry_safe(arr, next, &pool->arrs_in[NHCA_ARR_SENT], list) {
		if (found >= n || seen++ >= RELEASE_SCAN)
			break;
		if (arr_is_alone(pool, arr)) {
			nhca_arr_drop(pool, arr);
			found++;
		} else {
			/* packets refer to the page, so the PMB would not become free now */
			list_move_tail(&arr->list, &pool->arrs_in[NHCA_ARR_SENT]);
		}
	}
	list_for_each_entry_safe(arr, next, &pool->arrs_in[NHCA_ARR_READY], list) {
		/* the list is in the order of the stamps, so the next ARRs were used later */
		if (found >= n || time_before(jiffies, arr->stamp + NHCA_READY_AGE))
			break;
		arr->key.store->refills++;
		nhca_direct_count(pool, NHCA_CNT_DIRECT_REFILLS, 1);
		nhca_arr_drop(pool, arr);
		found++;
	}
	if (found < n)
		release_collecting(pool, n - found);
	return list_empty(&pool->resting) ? 0 : ++pool->epoch;
}

u32 nhca_direct_pool_settle(struct nhca_direct_pool *pool, u64 epoch)
{
	struct nhca_pmb *pmb, *next;
	u32 n = 0;

	lockdep_assert_held(&pool->lock);
	list_for_each_entry_safe(pmb, next, &pool->resting, list) {
		/*
		 * from here on the PMBs were released after nhca_direct_pool_release() returned
		 * @epoch, so a live section may still refer to their pages
		 */
		if (pmb->epoch >= epoch)
			break;
		if (page_ref_count(pmb->page) != 1)
			continue;
		list_move(&pmb->list, &pool->free_pmbs);
		pmb->owner = NHCA_PMB_POOL;
		pool->allocated--;
		n++;
	}
	return n;
}

static int pool_pages(struct nhca_direct_pool *pool)
{
	u32 i;

	for (i = 0; i < pool->num; i++) {
		struct nhca_pmb *pmb = &pool->pmbs[i];

		pmb->page = alloc_page(GFP_KERNEL_ACCOUNT | __GFP_ZERO);
		if (!pmb->page)
			return -ENOMEM;
		list_add_tail(&pmb->list, &pool->free_pmbs);
		if (fatal_signal_pending(current))
			return -EINTR;
		cond_resched();
	}
	return 0;
}

int nhca_direct_pool_init(struct nhca_direct_pool *pool, u32 blocks, u32 ranges)
{
	u32 i;

	spin_lock_init(&pool->lock);
	INIT_LIST_HEAD(&pool->free_pmbs);
	INIT_LIST_HEAD(&pool->resting);
	INIT_LIST_HEAD(&pool->waiting);
	INIT_LIST_HEAD(&pool->stores);
	INIT_LIST_HEAD(&pool->waiters);
	INIT_LIST_HEAD(&pool->woken);
	for (i = 0; i < NHCA_ARR_STATES; i++)
		INIT_LIST_HEAD(&pool->arrs_in[i]);
	pool->num = blocks;
	pool->ranges = ranges;
	pool->hash_bits = ilog2(roundup_pow_of_two(ranges));
	pool->pmbs = kvcalloc(blocks, sizeof(*pool->pmbs), GFP_KERNEL_ACCOUNT);
	pool->arrs = kvcalloc(ranges, sizeof(*pool->arrs), GFP_KERNEL_ACCOUNT);
	pool->hash = kvcalloc(BIT(pool->hash_bits), sizeof(*pool->hash), GFP_KERNEL_ACCOUNT);
	pool->orders = kvcalloc(BIT(pool->hash_bits), sizeof(*pool->orders), GFP_KERNEL_ACCOUNT);
	if (!pool->pmbs || !pool->arrs || !pool->hash || !pool->orders)
		return -ENOMEM;
	for (i = 0; i < ranges; i++) {
		nhca_order_init(&pool->arrs[i]);
		pool->arrs[i].pmb = NHCA_PMB_NONE;
		INIT_LIST_HEAD(&pool->arrs[i].by_store);
		list_add_tail(&pool->arrs[i].list, &pool->arrs_in[NHCA_ARR_FREE]);
	}
	pool->nfree_arrs = ranges;
	return pool_pages(pool);
}

void nhca_direct_pool_fini(struct nhca_direct_pool *pool)
{
	u32 i;

	WARN_ON_ONCE(pool->arrs && pool->nfree_arrs != pool->ranges && pool->nfree_arrs);
	/* the page is freed when the last packet that refers to it is freed */
	for (i = 0; pool->pmbs && i < pool->num; i++)
		if (pool->pmbs[i].page)
			put_page(pool->pmbs[i].page);
	kvfree(pool->orders);
	kvfree(pool->hash);
	kvfree(pool->arrs);
	kvfree(pool->pmbs);
}
