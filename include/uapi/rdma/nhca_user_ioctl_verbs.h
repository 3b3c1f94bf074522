/* SPDX-License-Identifier: ((GPL-2.0 WITH Linux-syscall-note) OR Linux-OpenIB) */
/*
 * What the attributes of the driver's uverbs ioctls have in them.
 */
#ifndef NHCA_USER_IOCTL_VERBS_H
#define NHCA_USER_IOCTL_VERBS_H

#include <linux/types.h>

/**
 * struct nhca_alloc_dm_resp - NHCA_ATTR_ALLOC_DM_RESP
 * @offset: for mmap() on the uverbs file
 * @size:   bytes to map
 */
struct nhca_alloc_dm_resp {
	__aligned_u64 offset;
	__aligned_u64 size;
};

/* nhca_channel_modify.mask */
#define NHCA_CHANNEL_RECV_THRESHOLD	(1u << 0)
#define NHCA_CHANNEL_SEND_THRESHOLD	(1u << 1)
#define NHCA_CHANNEL_QUANTUM		(1u << 2)

/**
 * struct nhca_channel_modify - NHCA_ATTR_CHANNEL_MODIFY_CMD
 * @mask: what is to be changed: NHCA_CHANNEL_*
 * @recv_threshold, @send_threshold: every n-th completion on the receive (send) CQ is a solicited
 *        one, which a CQ that was armed for solicited completions makes an event of; 0: none
 *        is, but those that a peer's packet asks for; 1 at the beginning
 * @quantum: as in struct nhca_create_channel_cmd
 */
struct nhca_channel_modify {
	__u32 mask;
	__u32 recv_threshold;
	__u32 send_threshold;
	__u32 quantum;
};

/**
 * enum nhca_channel_counter - what a channel counts; NHCA_CH_DROP_*: packets that were dropped,
 * and why
 * @NHCA_CH_DROP_FIFO:     packet mode, status: the receive FIFO is full, or there is none
 * @NHCA_CH_DROP_CQ:       a CQ is full
 * @NHCA_CH_DROP_KEY:      wrong channel key
 * @NHCA_CH_DROP_JOB:      another job
 * @NHCA_CH_DROP_NO_RCXT:  no such rCxt, or not the channel's
 * @NHCA_CH_DROP_RCXT_KEY: the rCxt has changed hands, or the device has recovered
 * @NHCA_CH_DROP_STALE:    tid lower, or cancelled
 * @NHCA_CH_DROP_DUPLICATE: the packet has come before, or the transfer is complete
 * @NHCA_CH_DROP_DEAD:     the transfer has been refused by memory protection
 * @NHCA_CH_DROP_BUSY:     the rCxt is in use
 * @NHCA_CH_DROP_UNASKED:  payload of a read, or a notice, that nobody waits for
 * @NHCA_CH_DROP_MISMATCH: not of the transfer that its tid began
 * @NHCA_CH_DROP_NO_MEMORY: for the transfer's bitmap
 * @NHCA_CH_DROP_PVO_KEY:  PVO: no job memory has this key in this table
 * @NHCA_CH_DROP_PVO_JOB:  PVO: another job's
 * @NHCA_CH_DROP_PVO_RANGE: PVO: beyond its ends
 * @NHCA_CH_DROP_PVO_ACCESS: PVO: access that was not granted
 * @NHCA_CH_DROP_PVO_PAGE: PVO: the memory is being deregistered
 * @NHCA_CH_DROP_ERROR:    the channel is in the error state
 * @NHCA_CH_DROP_SEGMENT:  a read request for packets that are too long for this device
 */
enum nhca_channel_counter {
	NHCA_CH_SENT_PACKETS,
	NHCA_CH_SENT_BYTES,
	NHCA_CH_RECEIVED_PACKETS,
	NHCA_CH_RECEIVED_BYTES,
	NHCA_CH_DROP_FIFO,
	NHCA_CH_DROP_CQ,
	NHCA_CH_DROP_KEY,
	NHCA_CH_DROP_JOB,
	NHCA_CH_DROP_NO_RCXT,
	NHCA_CH_DROP_RCXT_KEY,
	NHCA_CH_DROP_STALE,
	NHCA_CH_DROP_DUPLICATE,
	NHCA_CH_DROP_DEAD,
	NHCA_CH_DROP_BUSY,
	NHCA_CH_DROP_UNASKED,
	NHCA_CH_DROP_MISMATCH,
	NHCA_CH_DROP_NO_MEMORY,
	NHCA_CH_DROP_PVO_KEY,
	NHCA_CH_DROP_PVO_JOB,
	NHCA_CH_DROP_PVO_RANGE,
	NHCA_CH_DROP_PVO_ACCESS,
	NHCA_CH_DROP_PVO_PAGE,
	NHCA_CH_DROP_ERROR,
	NHCA_CH_DROP_SEGMENT,
	NHCA_CH_COUNTERS
};

/* nhca_channel_info.reason: why the channel is in the error state */
enum nhca_channel_error {
	NHCA_CH_ERR_NONE	= 0,
	NHCA_CH_ERR_MODIFIED	= 1,	/* the program wanted it */
	NHCA_CH_ERR_RING	= 2,	/* broke the rules of the send FIFO's indices */
	NHCA_CH_ERR_WQE		= 3,	/* a work request that cannot be */
	NHCA_CH_ERR_LOCAL_PVO	= 4,	/* a local PVO or L_Key that does not open the bytes */
	NHCA_CH_ERR_RECOVERED	= 5,	/* the device has recovered: create and acquire anew */
	NHCA_CH_ERR_DEVICE	= 6,	/* the netdev has gone */
};

/**
 * struct nhca_channel_info - NHCA_ATTR_CHANNEL_QUERY_RESP
 * @state:   enum ib_qp_state: IB_QPS_RTS or IB_QPS_ERR
 * @reason:  enum nhca_channel_error; IB_EVENT_QP_FATAL told of it, but for NHCA_CH_ERR_MODIFIED
 * @job:     job id
 * @rcxts:   that the channel has
 * @segment: payload bytes that a packet of a transfer can have at most on this device, with its
 *           MTU of now
 * @recv_threshold, @send_threshold, @quantum: as modified
 * @violation: the last NHCA_CH_DROP_PVO_* (or NHCA_CH_ERR_LOCAL_PVO: 0); IB_EVENT_QP_ACCESS_ERR
 *           tells of the first after each query
 * @violation_channel: the peer's channel
 * @violation_rcxt, @violation_tid, @violation_pvo: the transfer's, here
 * @recoveries: recovery count of the device; its start is random
 * @counters: by enum nhca_channel_counter; what is beyond NHCA_CH_COUNTERS is 0
 */
struct nhca_channel_info {
	__u32 state;
	__u32 reason;
	__u32 job;
	__u32 rcxts;
	__u32 segment;
	__u32 recv_threshold;
	__u32 send_threshold;
	__u32 quantum;
	__u32 violation;
	__u32 violation_channel;
	__aligned_u64 violation_rcxt;
	__aligned_u64 violation_pvo;
	__u32 violation_tid;
	__u32 recoveries;
	__aligned_u64 counters[32];
};

#endif /* NHCA_USER_IOCTL_VERBS_H */
