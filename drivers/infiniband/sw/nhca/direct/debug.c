// SPDX-License-Identifier: GPL-2.0
/*
 * Files of direct/ in the module's directory of debugfs:
 *
 *   pools    the pools: numbers of blocks, ARRs and edge pages, how many of them are used or free,
 *            the number of regions, and whether a requester or responder waits for an ARR
 *   stores   the regions of files: I/O in progress, blocks to write, errors, and the time since
 *            nhca_store_stop() was called
 */
#include <linux/debugfs.h>
#include <linux/seq_file.h>

#include "store.h"

/* nhca_show_io() and nhca_show_block() of observe/trace_direct.h assume these numbers */
static_assert(NHCA_IO_READ == 0 && NHCA_IO_MERGED == 3);
static_assert(NHCA_ARR_FREE == 0 && NHCA_ARR_FAILED == 5 && NHCA_ARR_STATES == 9);

static LIST_HEAD(all_pools);
/* protects all_pools and nhca_direct_pool.stores, and delays the freeing of their members */
static DEFINE_MUTEX(all_lock);

void nhca_direct_debug_add(struct nhca_direct_pool *pool)
{
	mutex_lock(&all_lock);
	list_add_tail(&pool->list, &all_pools);
	mutex_unlock(&all_lock);
}

void nhca_store_debug_add(struct nhca_store *store)
{
	mutex_lock(&all_lock);
	list_add_tail(&store->member, &store->pool->stores);
	mutex_unlock(&all_lock);
}

void nhca_store_debug_del(struct nhca_store *store)
{
	mutex_lock(&all_lock);
	list_del(&store->member);
	mutex_unlock(&all_lock);
}

void nhca_direct_debug_del(struct nhca_direct_pool *pool)
{
	mutex_lock(&all_lock);
	list_del(&pool->list);
	mutex_unlock(&all_lock);
}

static const char *pool_device(const struct nhca_direct_pool *pool)
{
	return pool->dev ? dev_name(&pool->dev->ibdev.dev) : "none";
}

static void pool_show(struct seq_file *m, struct nhca_direct_pool *pool)
{
	struct list_head *pos;
	u32 stores = 0;

	list_for_each(pos, &pool->stores)
		stores++;
	spin_lock_bh(&pool->lock);
	seq_printf(m, "%s pool %u uid %d blocks %u used %u most %u", pool_device(pool),
		   pool->number, pool->user ? (int)pool->user->id : -1, pool->num,
		   pool->allocated, pool->most);
	seq_printf(m, " ranges %u free %u queued %u edges %u free %u stores %u waiting %s\n",
		   pool->ranges, pool->nfree_arrs, pool->nqueued, pool->nedges, pool->edges_free,
		   stores, list_empty(&pool->waiters) ? "no" : "yes");
	spin_unlock_bh(&pool->lock);
}

static void store_show(struct seq_file *m, const struct nhca_store *store)
{
	spin_lock_bh(&store->pool->lock);
	seq_printf(m, "%08x %s pool %u %s", store->backing.key, pool_device(store->pool),
		   store->pool->number, store->sync ? "sync" : "async");
	seq_printf(m, " offset %llu length %llu align %u io %u dirty %u reads %llu writes %llu",
		   store->base, store->length, store->align, store->io, store->ndirty,
		   store->reads, store->writes);
	seq_printf(m, " errors %llu last %d lost %llu", store->errors, store->last_error,
		   store->lost);
	if (store->dying)
		seq_printf(m, " closing %lu s", (jiffies - store->closing) / HZ);
	seq_printf(m, " file %pD\n", store->file);
	spin_unlock_bh(&store->pool->lock);
}

static void stores_of(struct seq_file *m, struct nhca_direct_pool *pool)
{
	struct nhca_store *store;

	list_for_each_entry(store, &pool->stores, member)
		store_show(m, store);
}

typedef void (*show_fn)(struct seq_file *m, struct nhca_direct_pool *pool);

static void pools_walk(struct seq_file *m, show_fn show)
{
	struct nhca_direct_pool *pool;

	mutex_lock(&all_lock);
	list_for_each_entry(pool, &all_pools, list)
		show(m, pool);
	mutex_unlock(&all_lock);
}

static int pools_show(struct seq_file *m, void *unused)
{
	pools_walk(m, pool_show);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(pools);

static int stores_show(struct seq_file *m, void *unused)
{
	pools_walk(m, stores_of);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(stores);

void nhca_direct_debug_init(struct dentry *dir)
{
	/* the files are removed with the directory */
	debugfs_create_file("pools", 0400, dir, NULL, &pools_fops);
	debugfs_create_file("stores", 0400, dir, NULL, &stores_fops);
}
