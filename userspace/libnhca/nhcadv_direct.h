/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * nhca direct verbs: memory regions whose bytes are in a file or on a block device.
 * nhcadv_direct_reg_file(3) describes them.  The conventions of nhcadv.h also hold here.
 */
#ifndef NHCADV_DIRECT_H
#define NHCADV_DIRECT_H

#include <stdint.h>

#include <infiniband/verbs.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * struct nhcadv_direct_pool_init_attr - attributes of a pool
 * @comp_mask: 0
 * @blocks:    number of blocks, of one page each; at least 64, because a packet may have 32 SGEs,
 *             and an SGE may need two blocks
 * @ranges:    maximum number of blocks of files in use at a time (waiting for memory, being read or
 *             written, or kept for packets), from @blocks to 4 * @blocks; 0: 4 * @blocks
 */
struct nhcadv_direct_pool_init_attr {
	uint64_t comp_mask;
	uint32_t blocks;
	uint32_t ranges;
};

/**
 * struct nhcadv_direct_pool - a pool of blocks, which disks and packets share
 * @context: the device
 * @blocks:  number of blocks
 */
struct nhcadv_direct_pool {
	struct ibv_context *context;
	uint32_t blocks;
};

/**
 * nhcadv_direct_alloc_pool - make a pool
 * @context: open device
 * @attr: attributes
 *
 * All regions of a pool together never use more memory than its blocks, and 2 to 16 further pages.
 * The memory is charged to the memory cgroup of the process.
 * Return: the pool, or NULL with errno EOPNOTSUPP (no NHCADV_DEVICE_DIRECT), EINVAL (a member of
 * @attr is out of range), EDQUOT (the user would exceed its share of the device's blocks) or ENOMEM
 * (no memory, or the device's limit of blocks would be exceeded).
 */
struct nhcadv_direct_pool *
nhcadv_direct_alloc_pool(struct ibv_context *context,
			 const struct nhcadv_direct_pool_init_attr *attr);

/**
 * nhcadv_direct_free_pool - free a pool
 * @pool: the pool
 * Return: 0, or EBUSY if regions use the pool.
 */
int nhcadv_direct_free_pool(struct nhcadv_direct_pool *pool);

enum {
	/* an operation that writes ends when its bytes are on the disk, not only in its cache */
	NHCADV_DIRECT_SYNC = 1 << 0,
};

/**
 * struct nhcadv_direct_file_attr - a part of a file to register
 * @comp_mask: 0
 * @pool:   pool of the same device
 * @fd:     regular file or block device, open for reading, and for writing if @access has a right
 *          to write; @fd may be closed afterwards
 * @flags:  NHCADV_DIRECT_SYNC or 0
 * @offset: first byte of the part; a multiple of the alignment of direct I/O
 * @length: bytes of the part, which is inside the file; a multiple of the same alignment
 * @iova:   address of the first byte for peers and SGEs; a multiple of the page size
 * @access: IBV_ACCESS_REMOTE_READ, IBV_ACCESS_LOCAL_WRITE, IBV_ACCESS_REMOTE_WRITE,
 *          IBV_ACCESS_MW_BIND, IBV_ACCESS_FLUSH_GLOBAL, IBV_ACCESS_FLUSH_PERSISTENT
 * @depth:  bytes that an operation reads from the disk in advance, from 4 pages to half of the
 *          pool; 0: 1 MiB
 */
struct nhcadv_direct_file_attr {
	uint64_t comp_mask;
	struct nhcadv_direct_pool *pool;
	int fd;
	uint32_t flags;
	uint64_t offset;
	uint64_t length;
	uint64_t iova;
	unsigned int access;
	uint32_t depth;
};

/**
 * nhcadv_direct_reg_file - register a part of a file or block device
 * @pd: protection domain
 * @attr: the part
 *
 * The R_Key of the region lets peers read and write the file; its L_Key lets this side send from
 * the file, and READ and receive into it.  ibv_dereg_mr() ends the region.
 * Return: the region, or NULL with errno EOPNOTSUPP, EBADF, EINVAL, EPERM, ETXTBSY or ENOMEM; see
 * nhcadv_direct_reg_file(3).
 */
struct ibv_mr *nhcadv_direct_reg_file(struct ibv_pd *pd,
				      const struct nhcadv_direct_file_attr *attr);

/**
 * struct nhcadv_direct_info - state and counters of a region of a file
 * @reads:      number of ended I/O requests of operations that read
 * @read_bytes: bytes that the I/O requests in @reads have read
 * @refills:    blocks that were read, but lost their memory to another operation before they were
 *              sent
 * @errors:     I/O requests that have failed, or have moved fewer bytes than requested
 * @last_error_offset: offset in the region at which the last I/O request in @errors has failed
 * @last_error: errno of the last I/O request in @errors; 0: none has failed
 * @blocks:     blocks of the pool
 * @blocks_used: blocks in use now, by all regions of the pool
 * @blocks_most: largest number of blocks in use since the pool was made
 * @writes:     number of ended I/O requests that write
 * @write_bytes: bytes that the I/O requests in @writes have written
 * @edges:      I/O requests that have read a block before a part of it was changed and written
 * @splits:     blocks that went to the disk before all bytes of the operation had arrived, because
 *              its peer was slow and other operations needed the memory
 * @lost:       acknowledged blocks that could not be written
 * @flushes:    flushes that have ended
 * @dirty:      blocks that have to be written
 */
struct nhcadv_direct_info {
	uint64_t reads;
	uint64_t read_bytes;
	uint64_t refills;
	uint64_t errors;
	uint64_t last_error_offset;
	uint32_t last_error;
	uint32_t blocks;
	uint32_t blocks_used;
	uint32_t blocks_most;
	uint64_t writes;
	uint64_t write_bytes;
	uint64_t edges;
	uint64_t splits;
	uint64_t lost;
	uint64_t flushes;
	uint32_t dirty;
};

/**
 * nhcadv_direct_query - query a region
 * @mr: from nhcadv_direct_reg_file()
 * @info: output
 * Return: 0, EOPNOTSUPP (no NHCADV_DEVICE_DIRECT), or EINVAL if @mr is not a region of a file.
 */
int nhcadv_direct_query(struct ibv_mr *mr, struct nhcadv_direct_info *info);

/**
 * nhcadv_direct_sync - make all bytes that were written to a region durable
 * @mr: from nhcadv_direct_reg_file()
 *
 * Afterwards all bytes of operations that had ended before the call are on the disk, and not only
 * in the disk's cache.
 * Return: 0; EOPNOTSUPP: no NHCADV_DEVICE_DIRECT; EINVAL: @mr is not a region of a file; another
 * errno: some bytes were lost since the last flush of the region, or the file cannot be made
 * durable.
 */
int nhcadv_direct_sync(struct ibv_mr *mr);

#ifdef __cplusplus
}
#endif

#endif /* NHCADV_DIRECT_H */
