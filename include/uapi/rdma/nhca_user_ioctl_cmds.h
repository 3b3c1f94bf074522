/* SPDX-License-Identifier: ((GPL-2.0 WITH Linux-syscall-note) OR Linux-OpenIB) */
/*
 * Objects, methods and attributes that nhca adds to the ioctls of uverbs.
 */
#ifndef NHCA_USER_IOCTL_CMDS_H
#define NHCA_USER_IOCTL_CMDS_H

#include <rdma/ib_user_ioctl_cmds.h>

/* Driver attribute of UVERBS_METHOD_DM_ALLOC */
enum nhca_dm_alloc_attrs {
	NHCA_ATTR_ALLOC_DM_RESP = (1U << UVERBS_ID_NS_SHIFT),
};

/*
 * Method of UVERBS_OBJECT_DM.  NHCA_METHOD_DM_QUERY: describe device memory to a process that
 * imports the handle of this memory.  RESP is a struct nhca_alloc_dm_resp; RESP_LENGTH __u64: bytes
 * that the allocation requested.
 */
enum nhca_dm_methods {
	NHCA_METHOD_DM_QUERY = (1U << UVERBS_ID_NS_SHIFT),
};

enum nhca_dm_query_attrs {
	NHCA_ATTR_DM_QUERY_HANDLE = (1U << UVERBS_ID_NS_SHIFT),
	NHCA_ATTR_DM_QUERY_RESP,
	NHCA_ATTR_DM_QUERY_RESP_LENGTH,
};

/*
 * Method of UVERBS_OBJECT_PD.  NHCA_METHOD_PD_QUERY: check that a handle belongs to a protection
 * domain.  A process that imports the handle calls this method.
 */
enum nhca_pd_methods {
	NHCA_METHOD_PD_QUERY = (1U << UVERBS_ID_NS_SHIFT),
};

enum nhca_pd_query_attrs {
	NHCA_ATTR_PD_QUERY_HANDLE = (1U << UVERBS_ID_NS_SHIFT),
};

/* Driver attribute of UVERBS_METHOD_QUERY_CONTEXT: RESP is a struct nhca_alloc_ucontext_resp */
enum nhca_query_context_attrs {
	NHCA_ATTR_QUERY_CONTEXT_RESP = (1U << UVERBS_ID_NS_SHIFT),
};

/*
 * Methods of UVERBS_OBJECT_QP.
 * NHCA_METHOD_CHANNEL_*: EINVAL if the QP is not a channel.
 * NHCA_METHOD_QP_SEND_DOORBELL: process the send queue, after user space has produced entries.
 * NHCA_METHOD_QP_RECV_DOORBELL: see NHCA_RING_F_NEED_DOORBELL.
 */
enum nhca_qp_methods {
	NHCA_METHOD_CHANNEL_ACQUIRE = (1U << UVERBS_ID_NS_SHIFT),
	NHCA_METHOD_CHANNEL_RELEASE,
	NHCA_METHOD_CHANNEL_MODIFY,
	NHCA_METHOD_CHANNEL_QUERY,
	NHCA_METHOD_QP_SEND_DOORBELL,
	NHCA_METHOD_QP_RECV_DOORBELL,
	NHCA_METHOD_CHANNEL_TARGET,
};

enum nhca_qp_send_doorbell_attrs {
	NHCA_ATTR_QP_SEND_DOORBELL_HANDLE = (1U << UVERBS_ID_NS_SHIFT),
};

enum nhca_qp_recv_doorbell_attrs {
	NHCA_ATTR_QP_RECV_DOORBELL_HANDLE = (1U << UVERBS_ID_NS_SHIFT),
};

/* ---- channels ---- */

/*
 * Objects of this driver: a handle of job memory (for channels), a pool of memory blocks (for
 * regions of files), and a set of watches of the process's memory.  Closing a uverbs file destroys
 * the objects that were made through this file.
 */
enum nhca_objects {
	NHCA_OBJECT_JOB_MEM = (1U << UVERBS_ID_NS_SHIFT),
	NHCA_OBJECT_DIRECT_POOL,
	NHCA_OBJECT_WATCH_SET,
};

enum nhca_job_mem_methods {
	NHCA_METHOD_JOB_MEM_REG = (1U << UVERBS_ID_NS_SHIFT),
	NHCA_METHOD_JOB_MEM_OPEN,
	NHCA_METHOD_JOB_MEM_DEREG,
};

/*
 * NHCA_METHOD_JOB_MEM_REG: register memory of the process.  JOB __u32; ADDR, LENGTH __u64; ACCESS
 * __u32: IB_UVERBS_ACCESS_LOCAL_WRITE, _REMOTE_READ, _REMOTE_WRITE (requires LOCAL_WRITE); RESP_PVO
 * __u64: PVO of the first byte.  EPERM: another user owns the job.
 */
enum nhca_job_mem_reg_attrs {
	NHCA_ATTR_JOB_MEM_REG_HANDLE = (1U << UVERBS_ID_NS_SHIFT),
	NHCA_ATTR_JOB_MEM_REG_JOB,
	NHCA_ATTR_JOB_MEM_REG_ADDR,
	NHCA_ATTR_JOB_MEM_REG_LENGTH,
	NHCA_ATTR_JOB_MEM_REG_ACCESS,
	NHCA_ATTR_JOB_MEM_REG_RESP_PVO,
};

/*
 * NHCA_METHOD_JOB_MEM_OPEN: create a handle of this device on memory that is already registered.
 * The memory stays registered until its handles of all devices are destroyed.  JOB __u32; PVO
 * __u64: of the first byte; RESP_LENGTH __u64: bytes.  ENOENT: no memory of the job begins at PVO.
 */
enum nhca_job_mem_open_attrs {
	NHCA_ATTR_JOB_MEM_OPEN_HANDLE = (1U << UVERBS_ID_NS_SHIFT),
	NHCA_ATTR_JOB_MEM_OPEN_JOB,
	NHCA_ATTR_JOB_MEM_OPEN_PVO,
	NHCA_ATTR_JOB_MEM_OPEN_RESP_LENGTH,
};

/*
 * NHCA_METHOD_JOB_MEM_DEREG: destroy a handle.  When the destruction of the last handle returns,
 * no byte of the memory is accessed any more.
 */
enum nhca_job_mem_dereg_attrs {
	NHCA_ATTR_JOB_MEM_DEREG_HANDLE = (1U << UVERBS_ID_NS_SHIFT),
};

/*
 * NHCA_METHOD_CHANNEL_ACQUIRE: acquire one rCxt for each element of RESP_IDS, an array of __u64;
 * after an error, none is acquired.  The tid of a new rCxt is 0, so its first transfer has a tid of
 * at least 1.  ENOSPC: the device has fewer free rCxts.  EDQUOT: the user would have more than the
 * share of one user (module parameter user_share; by default half of the device's rCxts); or the
 * user would have more than a sixteenth of the rCxts, and less than an eighth would remain free.
 */
enum nhca_channel_acquire_attrs {
	NHCA_ATTR_CHANNEL_ACQUIRE_HANDLE = (1U << UVERBS_ID_NS_SHIFT),
	NHCA_ATTR_CHANNEL_ACQUIRE_RESP_IDS,
};

/*
 * NHCA_METHOD_CHANNEL_RELEASE: release the rCxts in IDS, an array of __u64, even if their transfers
 * are not complete.  When the method returns, these rCxts neither place nor send bytes any more.
 * ENOENT: the channel does not own one of the rCxts; the method has released none of them.
 */
enum nhca_channel_release_attrs {
	NHCA_ATTR_CHANNEL_RELEASE_HANDLE = (1U << UVERBS_ID_NS_SHIFT),
	NHCA_ATTR_CHANNEL_RELEASE_IDS,
};

/* NHCA_METHOD_CHANNEL_MODIFY: CMD is a struct nhca_channel_modify */
enum nhca_channel_modify_attrs {
	NHCA_ATTR_CHANNEL_MODIFY_HANDLE = (1U << UVERBS_ID_NS_SHIFT),
	NHCA_ATTR_CHANNEL_MODIFY_CMD,
};

/* NHCA_METHOD_CHANNEL_QUERY: RESP is a struct nhca_channel_info */
enum nhca_channel_query_attrs {
	NHCA_ATTR_CHANNEL_QUERY_HANDLE = (1U << UVERBS_ID_NS_SHIFT),
	NHCA_ATTR_CHANNEL_QUERY_RESP,
};

/*
 * NHCA_METHOD_CHANNEL_TARGET: allow the channel to send payload of third-party transfers to the
 * address of an address handle, or revoke this permission.  A new channel allows no address.  CMD
 * is a struct nhca_channel_target.  The address handle may be destroyed afterwards.  When a
 * revocation returns, the channel sends no payload of third-party transfers to the address any
 * more.  EINVAL: invalid op or address handle, or a multicast address; ENOSPC: the channel already
 * allows NHCA_MAX_TARGETS addresses; ENOENT: the channel does not allow the address.
 */
enum nhca_channel_target_attrs {
	NHCA_ATTR_CHANNEL_TARGET_HANDLE = (1U << UVERBS_ID_NS_SHIFT),
	NHCA_ATTR_CHANNEL_TARGET_CMD,
};

/*
 * Method of UVERBS_OBJECT_DEVICE.  NHCA_METHOD_DEVICE_RECOVER: move all channels of the device to
 * the error state (NHCA_CH_ERR_RECOVERED) and release their rCxts.  From then on, the device drops
 * packets to these channels.  RESP_COUNT __u32: the new recovery count.  EPERM: the process lacks
 * CAP_NET_ADMIN in the user namespace that owns the network namespace of the netdev.
 */
enum nhca_device_methods {
	NHCA_METHOD_DEVICE_RECOVER = (1U << UVERBS_ID_NS_SHIFT),
};

enum nhca_device_recover_attrs {
	NHCA_ATTR_DEVICE_RECOVER_RESP_COUNT = (1U << UVERBS_ID_NS_SHIFT),
};

/* ---- regions of files and block devices (NHCA_FEATURE_DIRECT) ---- */

enum nhca_direct_pool_methods {
	NHCA_METHOD_DIRECT_POOL_ALLOC = (1U << UVERBS_ID_NS_SHIFT),
	NHCA_METHOD_DIRECT_POOL_FREE,
};

/*
 * NHCA_METHOD_DIRECT_POOL_ALLOC: make a pool.  BLOCKS __u32: number of blocks of one page each, at
 * least 64; RANGES __u32: maximum number of blocks of files in use at a time (waiting for memory,
 * being read or written, or kept for packets), from BLOCKS to 4 * BLOCKS, 0 for the default;
 * RESP_NUMBER __u32: for nhca_reg_mr_cmd.pool.  EINVAL: a number is out of bounds; ENOMEM: no
 * memory, or the blocks of all pools would exceed the limit of the device; EDQUOT: one user may not
 * have that much (same rules as for NHCA_METHOD_CHANNEL_ACQUIRE).
 */
enum nhca_direct_pool_alloc_attrs {
	NHCA_ATTR_DIRECT_POOL_ALLOC_HANDLE = (1U << UVERBS_ID_NS_SHIFT),
	NHCA_ATTR_DIRECT_POOL_ALLOC_BLOCKS,
	NHCA_ATTR_DIRECT_POOL_ALLOC_RANGES,
	NHCA_ATTR_DIRECT_POOL_ALLOC_RESP_NUMBER,
};

/* NHCA_METHOD_DIRECT_POOL_FREE: EBUSY: regions use the pool */
enum nhca_direct_pool_free_attrs {
	NHCA_ATTR_DIRECT_POOL_FREE_HANDLE = (1U << UVERBS_ID_NS_SHIFT),
};

/*
 * Methods of UVERBS_OBJECT_MR.  EINVAL: the region is not a region of a file or block device.
 * NHCA_METHOD_MR_DIRECT_QUERY: RESP is a struct nhca_direct_info.
 * NHCA_METHOD_MR_DIRECT_SYNC: make all acknowledged bytes of the region durable.  An errno other
 * than EINVAL: some of these bytes are not durable, or were lost since the last flush.
 */
enum nhca_mr_methods {
	NHCA_METHOD_MR_DIRECT_QUERY = (1U << UVERBS_ID_NS_SHIFT),
	NHCA_METHOD_MR_DIRECT_SYNC,
};

enum nhca_mr_direct_query_attrs {
	NHCA_ATTR_MR_DIRECT_QUERY_HANDLE = (1U << UVERBS_ID_NS_SHIFT),
	NHCA_ATTR_MR_DIRECT_QUERY_RESP,
};

enum nhca_mr_direct_sync_attrs {
	NHCA_ATTR_MR_DIRECT_SYNC_HANDLE = (1U << UVERBS_ID_NS_SHIFT),
};

/* ---- watches of the process's memory (NHCA_FEATURE_WATCH) ---- */

enum nhca_watch_set_methods {
	NHCA_METHOD_WATCH_SET_ALLOC = (1U << UVERBS_ID_NS_SHIFT),
	NHCA_METHOD_WATCH_SET_FREE,
	NHCA_METHOD_WATCH_ADD,
	NHCA_METHOD_WATCH_DEL,
};

/*
 * NHCA_METHOD_WATCH_SET_ALLOC: make a set of watches of the calling process.  SLOTS __u32: 1 to
 * NHCA_MAX_WATCH_SLOTS; RESP is a struct nhca_watch_set_resp.  ENOMEM: no memory, or
 * RLIMIT_MEMLOCK would be exceeded.
 */
enum nhca_watch_set_alloc_attrs {
	NHCA_ATTR_WATCH_SET_ALLOC_HANDLE = (1U << UVERBS_ID_NS_SHIFT),
	NHCA_ATTR_WATCH_SET_ALLOC_SLOTS,
	NHCA_ATTR_WATCH_SET_ALLOC_RESP,
};

/* NHCA_METHOD_WATCH_SET_FREE: end all watches of a set; its words become NHCA_WATCH_CHANGED */
enum nhca_watch_set_free_attrs {
	NHCA_ATTR_WATCH_SET_FREE_HANDLE = (1U << UVERBS_ID_NS_SHIFT),
};

/*
 * NHCA_METHOD_WATCH_ADD: watch a range of the process's memory, as the enum nhca_watch describes.
 * SLOT __u32: an earlier watch in this slot ends; ADDR, LENGTH __u64: memory need not be mapped
 * there.  EINVAL: no such slot, or an impossible range; EPERM: another process made the set;
 * EDQUOT: one user may not have that many (same rules as for NHCA_METHOD_CHANNEL_ACQUIRE);
 * ENOMEM: no memory, or the device has its maximum of watches.
 */
enum nhca_watch_add_attrs {
	NHCA_ATTR_WATCH_ADD_HANDLE = (1U << UVERBS_ID_NS_SHIFT),
	NHCA_ATTR_WATCH_ADD_SLOT,
	NHCA_ATTR_WATCH_ADD_ADDR,
	NHCA_ATTR_WATCH_ADD_LENGTH,
};

/* NHCA_METHOD_WATCH_DEL: end a watch.  SLOT __u32.  EINVAL: no such slot; ENOENT: not in use */
enum nhca_watch_del_attrs {
	NHCA_ATTR_WATCH_DEL_HANDLE = (1U << UVERBS_ID_NS_SHIFT),
	NHCA_ATTR_WATCH_DEL_SLOT,
};

#endif /* NHCA_USER_IOCTL_CMDS_H */
