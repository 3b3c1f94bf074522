/* SPDX-License-Identifier: ((GPL-2.0 WITH Linux-syscall-note) OR Linux-OpenIB) */
/*
 * The driver's own objects, methods and attributes of the uverbs ioctl.
 */
#ifndef NHCA_USER_IOCTL_CMDS_H
#define NHCA_USER_IOCTL_CMDS_H

#include <rdma/ib_user_ioctl_cmds.h>

/* Driver attribute of UVERBS_METHOD_DM_ALLOC */
enum nhca_dm_alloc_attrs {
	NHCA_ATTR_ALLOC_DM_RESP = (1U << UVERBS_ID_NS_SHIFT),
};

/*
 * Method of UVERBS_OBJECT_DM.  NHCA_METHOD_DM_QUERY: what a process needs that imports a handle.
 * RESP is a struct nhca_alloc_dm_resp; RESP_LENGTH __u64: bytes, as asked for.
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
 * Method of UVERBS_OBJECT_PD.  NHCA_METHOD_PD_QUERY: is this a protection domain?  Asked by who
 * imports a handle.
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

/* ---- channels ---- */

/* Object of the driver: memory of a job.  A handle goes with its file descriptor at the latest. */
enum nhca_objects {
	NHCA_OBJECT_JOB_MEM = (1U << UVERBS_ID_NS_SHIFT),
};

enum nhca_job_mem_methods {
	NHCA_METHOD_JOB_MEM_REG = (1U << UVERBS_ID_NS_SHIFT),
	NHCA_METHOD_JOB_MEM_OPEN,
	NHCA_METHOD_JOB_MEM_DEREG,
};

/*
 * NHCA_METHOD_JOB_MEM_REG: register memory of the process.  JOB __u32; ADDR, LENGTH __u64; ACCESS
 * __u32: IB_UVERBS_ACCESS_LOCAL_WRITE, _REMOTE_READ, _REMOTE_WRITE (which wants LOCAL_WRITE);
 * RESP_PVO __u64: of the first byte.  EPERM: the job is another user's.
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
 * NHCA_METHOD_JOB_MEM_OPEN: another handle on memory that is registered, through this device: it
 * stays registered until the last handle has gone, with whatever device.  JOB __u32; PVO __u64:
 * of its first byte; RESP_LENGTH __u64.  ENOENT: the job has no such memory.
 */
enum nhca_job_mem_open_attrs {
	NHCA_ATTR_JOB_MEM_OPEN_HANDLE = (1U << UVERBS_ID_NS_SHIFT),
	NHCA_ATTR_JOB_MEM_OPEN_JOB,
	NHCA_ATTR_JOB_MEM_OPEN_PVO,
	NHCA_ATTR_JOB_MEM_OPEN_RESP_LENGTH,
};

/* NHCA_METHOD_JOB_MEM_DEREG: when the last handle has gone by it, no byte moves any more. */
enum nhca_job_mem_dereg_attrs {
	NHCA_ATTR_JOB_MEM_DEREG_HANDLE = (1U << UVERBS_ID_NS_SHIFT),
};

/* Methods of UVERBS_OBJECT_QP; EINVAL for a QP that is no channel */
enum nhca_channel_methods {
	NHCA_METHOD_CHANNEL_ACQUIRE = (1U << UVERBS_ID_NS_SHIFT),
	NHCA_METHOD_CHANNEL_RELEASE,
	NHCA_METHOD_CHANNEL_MODIFY,
	NHCA_METHOD_CHANNEL_QUERY,
};

/*
 * NHCA_METHOD_CHANNEL_ACQUIRE: as many rCxts as RESP_IDS, an array of __u64, has room for, or
 * none: ENOSPC.  Each has tid 0: the first transfer's is 1 or more.
 */
enum nhca_channel_acquire_attrs {
	NHCA_ATTR_CHANNEL_ACQUIRE_HANDLE = (1U << UVERBS_ID_NS_SHIFT),
	NHCA_ATTR_CHANNEL_ACQUIRE_RESP_IDS,
};

/*
 * NHCA_METHOD_CHANNEL_RELEASE: the rCxts in IDS, an array of __u64, whatever they are doing; no
 * byte lands by them when it returns.  ENOENT, and none is released: one of them is not the
 * channel's.
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
 * Method of UVERBS_OBJECT_DEVICE.  NHCA_METHOD_DEVICE_RECOVER: all channels of the device go to
 * the error state (NHCA_CH_ERR_RECOVERED) and lose their rCxts; packets from before open nothing
 * afterwards. RESP_COUNT __u32: the recovery count.  EPERM without CAP_NET_ADMIN over the
 * netdev's namespace.
 */
enum nhca_device_methods {
	NHCA_METHOD_DEVICE_RECOVER = (1U << UVERBS_ID_NS_SHIFT),
};

enum nhca_device_recover_attrs {
	NHCA_ATTR_DEVICE_RECOVER_RESP_COUNT = (1U << UVERBS_ID_NS_SHIFT),
};

#endif /* NHCA_USER_IOCTL_CMDS_H */
