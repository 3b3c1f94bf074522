// SPDX-License-Identifier: GPL-2.0
/* Creation and end of pools and of regions of files, and the checks of a file. */
#include <linux/blkdev.h>
#include <linux/cgroup.h>
#include <linux/file.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/stat.h>

#include "store.h"

/* rights to write the file */
#define WRITE_ACCESS	(IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE)

/* ---- pools ---- */

static void pool_free(struct kref *ref)
{
	struct nhca_direct_pool *pool = container_of(ref, struct nhca_direct_pool, ref);

	nhca_direct_debug_del(pool);
	nhca_io_fini(pool);
	nhca_direct_pool_fini(pool);
	if (pool->dev)
		nhca_pool_uncharge(&pool->dev->users, pool->user, NHCA_POOL_DIRECT, pool->bytes);
	kfree(pool);
}

void nhca_direct_pool_get(struct nhca_direct_pool *pool)
{
	kref_get(&pool->ref);
}

u32 nhca_direct_pool_number(const struct nhca_direct_pool *pool)
{
	return pool->number;
}

void nhca_direct_pool_set_number(struct nhca_direct_pool *pool, u32 number)
{
	pool->number = number;
}

void nhca_direct_pool_put(struct nhca_direct_pool *pool)
{
	kref_put(&pool->ref, pool_free);
}

bool nhca_direct_pool_used(struct nhca_direct_pool *pool)
{
	return kref_read(&pool->ref) > 1;
}

struct nhca_direct_pool *nhca_direct_pool_create(struct nhca_dev *dev, struct nhca_user *user,
						 u32 blocks, u32 ranges)
{
	struct nhca_direct_pool *pool;
	int err;

	if (!ranges)
		ranges = NHCA_DIRECT_RANGES * blocks;
	if (blocks < (dev ? NHCA_DIRECT_BLOCKS_MIN : 1) ||
	    blocks > NHCA_MAX_DIRECT_SIZE >> PAGE_SHIFT ||
	    ranges < blocks || ranges > NHCA_DIRECT_RANGES * blocks)
		return ERR_PTR(-EINVAL);
	pool = kzalloc(sizeof(*pool), GFP_KERNEL_ACCOUNT);
	if (!pool)
		return ERR_PTR(-ENOMEM);
	kref_init(&pool->ref);
	pool->dev = dev;
	pool->user = user;
	pool->bytes = max_t(long, NHCA_DIRECT_CHARGE,
			    (long)(blocks + nhca_direct_edges(blocks)) << PAGE_SHIFT);
	err = dev ? nhca_pool_charge(&dev->users, user, NHCA_POOL_DIRECT, pool->bytes) : 0;
	if (err) {
		kfree(pool);
		return ERR_PTR(err);
	}
	err = nhca_direct_pool_init(pool, blocks, ranges);
	err = nhca_io_init(pool) ?: err;
	nhca_direct_debug_add(pool);
	if (err) {
		nhca_direct_pool_put(pool);
		return ERR_PTR(err);
	}
	return pool;
}

/* ---- regions ---- */

static void store_free(struct nhca_backing *b)
{
	struct nhca_store *store = to_nhca_store(b);

	nhca_store_stop(store);
#ifdef CONFIG_BLK_CGROUP
	if (store->blkcg)
		css_put(store->blkcg);
#endif
	fput(store->file);
	nhca_direct_pool_put(store->pool);
	kfree(store);
}

const struct nhca_backing_ops nhca_store_ops = {
	.seg = nhca_store_seg,
	.want = nhca_store_want,
	.placed = nhca_store_placed,
	.flush = nhca_store_flush,
	.ahead = nhca_store_ahead,
	.free = store_free,
};

/* Charge the I/O of a region to the block I/O cgroup of the process that registers the region. */
static void store_charge(struct nhca_store *store)
{
#ifdef CONFIG_BLK_CGROUP
	rcu_read_lock();
	store->blkcg = task_css(current, io_cgrp_id);
	if (!css_tryget(store->blkcg))
		store->blkcg = NULL;
	rcu_read_unlock();
#endif
}

/* Get the alignment of direct I/O: for offsets and lengths, and for memory. */
static int file_align(struct file *file, u32 *offset, u32 *memory)
{
	struct inode *inode = file->f_mapping->host;
	struct kstat stat;
	int err;

	if (S_ISBLK(inode->i_mode)) {
		struct block_device *bdev = I_BDEV(inode);

		*offset = bdev_logical_block_size(bdev);
		*memory = bdev_dma_alignment(bdev) + 1;
		return 0;
	}
	err = vfs_getattr(&file->f_path, &stat, STATX_DIOALIGN, AT_STATX_SYNC_AS_STAT);
	if (err)
		return err;
	if (!(stat.result_mask & STATX_DIOALIGN))
		return -EOPNOTSUPP;
	*offset = stat.dio_offset_align;
	*memory = stat.dio_mem_align;
	return 0;
}

/* Check that the bytes of a file may be overwritten in place.  Return: as nhca_mr_direct(). */
static int file_check_write(struct file *file)
{
	struct inode *inode = file->f_mapping->host;

	if (!(file->f_mode & FMODE_WRITE))
		return -EBADF;
	if (IS_APPEND(inode) || IS_IMMUTABLE(inode) || (file->f_flags & O_APPEND))
		return -EPERM;
	if (IS_SWAPFILE(inode))
		return -ETXTBSY;
	if (!S_ISBLK(inode->i_mode))
		return 0;
	if (bdev_read_only(I_BDEV(inode)))
		return -EPERM;
	/* a zone of such a device may have to be written in order, from beginning to end */
	return bdev_is_zoned(I_BDEV(inode)) ? -EOPNOTSUPP : 0;
}

/* Check a file.  Set @align to the unit of direct I/O.  Return: as nhca_mr_direct(). */
static int file_check(struct file *file, const struct nhca_direct_attr *attr, u32 *align)
{
	struct inode *inode = file->f_mapping->host;
	loff_t size = i_size_read(inode);
	u32 offset = 0, memory = 0;
	int err;

	if (!(file->f_mode & FMODE_READ))
		return -EBADF;
	if (!S_ISREG(inode->i_mode) && !S_ISBLK(inode->i_mode))
		return -EINVAL;
	if (!(file->f_mode & FMODE_CAN_ODIRECT))
		return -EOPNOTSUPP;
	err = file_align(file, &offset, &memory);
	if (err)
		return err;
	/* 0: the file has no direct I/O */
	if (!offset || offset > PAGE_SIZE || memory > PAGE_SIZE)
		return -EOPNOTSUPP;
	if (!attr->length || attr->offset > size || attr->length > size - attr->offset ||
	    !IS_ALIGNED(attr->offset | attr->length, offset))
		return -EINVAL;
	/* the alignments are powers of two, so a multiple of the larger one is aligned for both */
	*align = max3(offset, memory, 1U);
	return attr->access & WRITE_ACCESS ? file_check_write(file) : 0;
}

/* Check the rights of a region.  Return: 0, or an error as nhca_mr_direct(). */
static int access_check(const struct nhca_direct_attr *attr)
{
	if (attr->access & ~(IB_ACCESS_REMOTE_READ | IB_ACCESS_MW_BIND | IB_ACCESS_OPTIONAL |
			     WRITE_ACCESS | IB_ACCESS_FLUSH_GLOBAL | IB_ACCESS_FLUSH_PERSISTENT))
		return -EOPNOTSUPP;
	/* IBTA 10.6.3: remote write requires local write */
	if ((attr->access & IB_ACCESS_REMOTE_WRITE) && !(attr->access & IB_ACCESS_LOCAL_WRITE))
		return -EINVAL;
	return attr->sync && !(attr->access & WRITE_ACCESS) ? -EINVAL : 0;
}

/* Return: a region without a key, which owns @file and a reference of the pool; or ERR_PTR. */
static struct nhca_store *store_make(const struct nhca_direct_attr *attr, struct file *file,
				     u32 align)
{
	struct nhca_store *store = kzalloc(sizeof(*store), GFP_KERNEL_ACCOUNT);

	if (!store)
		return ERR_PTR(-ENOMEM);
	nhca_direct_pool_get(attr->pool);
	store->pool = attr->pool;
	store->file = file;
	store->base = attr->offset;
	store->length = attr->length;
	store->align = align;
	store->sync = attr->sync;
	store->depth = attr->depth;
	store->submit = nhca_file_submit;
	store->fsync = nhca_file_sync;
	store_charge(store);
	nhca_store_init(store);
	return store;
}

struct ib_mr *nhca_mr_direct(struct nhca_dev *dev, struct ib_pd *pd,
			     const struct nhca_direct_attr *attr)
{
	struct nhca_store *store;
	struct file *file;
	struct ib_mr *ibmr;
	u32 align = 0;
	int err;

	err = access_check(attr);
	if (err)
		return ERR_PTR(err);
	file = fget(attr->fd);
	if (!file)
		return ERR_PTR(-EBADF);
	err = file_check(file, attr, &align);
	if (err)
		goto err_put;
	store = store_make(attr, file, align);
	err = PTR_ERR_OR_ZERO(store);
	if (err)
		goto err_put;
	ibmr = nhca_mr_backed(dev, pd, &store->backing, attr->length, attr->iova, attr->access);
	if (IS_ERR(ibmr))
		store_free(&store->backing);
	return ibmr;

err_put:
	fput(file);
	return ERR_PTR(err);
}

int nhca_direct_query(struct ib_mr *ibmr, struct nhca_direct_info *info)
{
	struct nhca_backing *b = nhca_mr_backing(ibmr);
	struct nhca_direct_pool *pool;
	struct nhca_store *store;

	if (!b)
		return -EINVAL;
	store = to_nhca_store(b);
	pool = store->pool;
	spin_lock_bh(&pool->lock);
	*info = (struct nhca_direct_info) {
		.reads = store->reads,
		.read_bytes = store->read_bytes,
		.refills = store->refills,
		.errors = store->errors,
		.last_error_offset = store->last_error_at,
		.last_error = store->last_error,
		.blocks = pool->num,
		.blocks_used = pool->allocated,
		.blocks_most = pool->most,
		.writes = store->writes,
		.write_bytes = store->write_bytes,
		.edges = store->edges,
		.splits = store->splits,
		.lost = store->lost,
		.flushes = store->flushes,
		.dirty = store->ndirty,
	};
	spin_unlock_bh(&pool->lock);
	return 0;
}

int nhca_direct_sync(struct ib_mr *ibmr)
{
	struct nhca_backing *b = nhca_mr_backing(ibmr);

	return b ? nhca_store_sync(to_nhca_store(b)) : -EINVAL;
}
