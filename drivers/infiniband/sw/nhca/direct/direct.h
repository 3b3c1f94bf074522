/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The interface of direct/ to verbs/: regions whose bytes are in a file or on a block device.
 *
 * An operation that reads such a region gets the bytes by direct I/O into blocks of a pool.  Its
 * first packets may leave while the disk still reads later blocks.  The bytes of received packets
 * also go to the disk through blocks and by direct I/O.  The blocks are no cache: an operation
 * never gets bytes from the blocks of another operation.
 */
#ifndef NHCA_DIRECT_H
#define NHCA_DIRECT_H

#include <linux/err.h>
#include <linux/sizes.h>
#include <linux/types.h>
#include <rdma/ib_verbs.h>
#include <rdma/nhca-abi.h>

#include "../nhca.h"

struct nhca_direct_pool;

/*
 * Blocks of the smallest pool: all bytes of a packet must be in blocks at the same time, and each
 * SGE of the packet may lie on both sides of a boundary of blocks.  A packet has at most 4 KiB (the
 * largest path MTU), so no SGE touches more than two blocks.
 */
#define NHCA_DIRECT_BLOCKS_MIN	(2 * NHCA_MAX_SGE)
/* number of ARRs (pool.h) for each block of a pool; this is the default and also the maximum */
#define NHCA_DIRECT_RANGES	4
/*
 * Minimum number of bytes of NHCA_POOL_DIRECT that a user is charged for a pool of blocks.  Each
 * pool has a kernel thread (the rescuer of its workqueue), so the minimum bounds the number of
 * these threads.
 */
#define NHCA_DIRECT_CHARGE	SZ_1M
/* bytes that an operation reads in advance, unless the region sets another number */
#define NHCA_DIRECT_DEPTH	SZ_1M

/**
 * struct nhca_direct_attr - a region to register
 * @pool:   the pool; the region takes a reference
 * @fd:     file descriptor of a regular file or block device, open for reading, and for writing if
 *          @access needs it
 * @offset: first byte in the file
 * @length: bytes
 * @iova:   address of the first byte for peers and SGEs
 * @access: enum ib_access_flags
 * @depth:  bytes that an operation reads in advance; 0: the default
 * @sync:   an operation that writes ends only when its bytes are on the disk
 */
struct nhca_direct_attr {
	struct nhca_direct_pool *pool;
	int fd;
	u64 offset;
	u64 length;
	u64 iova;
	int access;
	u32 depth;
	bool sync;
};

#if defined(CONFIG_INFINIBAND_ON_DEMAND_PAGING) && defined(CONFIG_BLOCK)
#define NHCA_HAS_DIRECT		1

/**
 * nhca_direct_pool_create - make a pool
 * @dev:    the device, which outlives the pool; NULL (tests): the memory is not charged, and
 *          @blocks may be as small as 1
 * @user:   account that the memory is charged to, or NULL; it outlives the pool
 * @blocks: number of blocks of PAGE_SIZE: NHCA_DIRECT_BLOCKS_MIN or more, but at most
 *          NHCA_MAX_DIRECT_SIZE in bytes
 * @ranges: number of ARRs, from @blocks to NHCA_DIRECT_RANGES * @blocks; 0: the default
 * Context: process, sleeps.
 * Return: the pool, for nhca_direct_pool_put(); ERR_PTR: -EINVAL: @blocks or @ranges is out of
 * range; -EDQUOT: the user's share of the memory for blocks is used up; -ENOMEM: no memory, or the
 * device's memory for blocks is used up; -EINTR: a fatal signal is pending.
 */
struct nhca_direct_pool *nhca_direct_pool_create(struct nhca_dev *dev, struct nhca_user *user,
						 u32 blocks, u32 ranges);

/**
 * nhca_direct_pool_get - take a reference
 * @pool: the pool
 * Context: any.
 */
void nhca_direct_pool_get(struct nhca_direct_pool *pool);

/**
 * nhca_direct_pool_number - get the number by which the process names a pool
 * @pool: the pool
 * Context: any.
 * Return: the number that nhca_direct_pool_set_number() has set.
 */
u32 nhca_direct_pool_number(const struct nhca_direct_pool *pool);

/**
 * nhca_direct_pool_set_number - set the number by which the process names a pool
 * @pool:   the pool
 * @number: the number; direct/ only shows it in debugfs
 * Context: any.
 */
void nhca_direct_pool_set_number(struct nhca_direct_pool *pool, u32 number);

/**
 * nhca_direct_pool_put - release a reference; the last one frees the pool
 * @pool: the pool
 * Context: process, sleeps.
 */
void nhca_direct_pool_put(struct nhca_direct_pool *pool);

/**
 * nhca_direct_pool_used - check whether regions use a pool
 * @pool: the pool
 * Context: process.
 * Return: true if regions use @pool.
 */
bool nhca_direct_pool_used(struct nhca_direct_pool *pool);

/**
 * nhca_mr_direct - register a part of a file or block device
 * @dev:  the device
 * @pd:   protection domain
 * @attr: the part, and the pool
 * Context: process, sleeps.
 * Return: the region; ERR_PTR: -EBADF: @attr->fd is not open, not open for reading, or not open for
 * writing although @attr->access includes writing; -EINVAL: the file is neither regular nor a block
 * device, the range is empty, not aligned or not in the file, @attr->iova is not a multiple of
 * PAGE_SIZE, @attr->access has remote write without local write, or @attr->sync is set without a
 * right to write; -EOPNOTSUPP: the file has no direct I/O, its alignment exceeds a page,
 * @attr->access has a right that regions of files do not have, or @attr->access includes writing
 * and the block device is zoned; -EPERM: @attr->access includes writing, and the file is
 * append-only, immutable or open with O_APPEND, or the device is read-only; -ETXTBSY:
 * @attr->access includes writing, and the file is a swap file; or an error of nhca_mr_backed() or
 * vfs_getattr().
 */
struct ib_mr *nhca_mr_direct(struct nhca_dev *dev, struct ib_pd *pd,
			     const struct nhca_direct_attr *attr);

/**
 * nhca_direct_query - get state and counters of a region
 * @ibmr: the region
 * @info: filled in
 * Context: process.
 * Return: 0; -EINVAL: @ibmr is not a region of a file.
 */
int nhca_direct_query(struct ib_mr *ibmr, struct nhca_direct_info *info);

/**
 * nhca_direct_sync - make durable the bytes that were written to a region before
 * @ibmr: the region
 * Context: process, sleeps.
 * Return: 0; -EINVAL: @ibmr is not a region of a file; or as nhca_store_sync().
 */
int nhca_direct_sync(struct ib_mr *ibmr);

/**
 * nhca_direct_debug_init - make the debugfs files "pools" and "stores"
 * @dir: directory of the module
 * Context: process, sleeps.
 */
void nhca_direct_debug_init(struct dentry *dir);

#else
#define NHCA_HAS_DIRECT		0

static inline void nhca_direct_debug_init(struct dentry *dir) { }
#endif

#endif /* NHCA_DIRECT_H */
