/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * nhca direct verbs: channels, which are queue pairs whose packets may arrive in any order.
 * nhcadv(7) is the introduction; Documentation/rcxt.rst describes the packets.
 *
 * A channel is a queue pair of type IBV_QPT_DRIVER without a connection: each work request names
 * its peer.  The kernel neither acknowledges nor retransmits packets.  If a packet is lost, the
 * program has to retransmit it, or to start the transfer again with a higher tid.
 *
 * Functions that return int return 0 or an errno.  Functions that return a pointer return NULL on
 * error and set errno.  EOPNOTSUPP: the device is not an nhca device, the queue pair is not a
 * channel, or the kernel driver has no channels.
 *
 * The bits of a comp_mask will say which members of later releases are valid.  No bit is defined
 * yet, so comp_mask is 0.
 */
#ifndef NHCADV_H
#define NHCADV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- the device ---- */

/* nhcadv_device_attr.caps */
enum nhcadv_device_caps {
	NHCADV_DEVICE_CHANNELS	= 1 << 0,	/* the device has channels */
	NHCADV_DEVICE_FENCE	= 1 << 1,	/* the device supports nhcadv_wr_fence() */
	NHCADV_DEVICE_DIRECT	= 1 << 2,	/* regions of files: nhcadv_direct_reg_file() */
	NHCADV_DEVICE_MOVE	= 1 << 3,	/* third-party transfers: nhcadv_wr_move() */
	NHCADV_DEVICE_REG_CACHE	= 1 << 4,	/* nhcadv_reg_cached() keeps registrations */
	NHCADV_DEVICE_PART	= 1 << 5,	/* half-send writes: nhcadv_wr_part() */
	NHCADV_DEVICE_FRAMES	= 1 << 6,	/* half-receive writes: nhcadv_wr_write_frames() */
	NHCADV_DEVICE_ASK	= 1 << 7,	/* half-send reads: nhcadv_wr_ask() */
	NHCADV_DEVICE_READ_FRAMES = 1 << 8,	/* half-receive reads: nhcadv_wr_read_frames() */
	NHCADV_DEVICE_ACCUMULATE = 1 << 9,	/* nhcadv_wr_accumulate() */
};

/**
 * struct nhcadv_device_attr - capabilities of a device
 * @comp_mask: 0
 * @caps:      NHCADV_DEVICE_*; without NHCADV_DEVICE_CHANNELS all limits are 0
 * @max_packet: maximum payload of nhcadv_wr_packet(), in bytes
 * @max_frames: maximum number of slots of a receive FIFO
 * @max_transfer: maximum size of a transfer, in bytes
 * @max_transfer_packets: maximum number of packets of a transfer
 * @min_segment: minimum payload of a packet of a transfer, in bytes, a multiple of 4
 * @max_segment: maximum payload of a packet of a transfer, in bytes, a multiple of 4.  The MTU may
 *             allow less: see nhcadv_channel_info.segment
 * @max_rcxts: maximum number of rCxts in one nhcadv_acquire_rcxts() or nhcadv_release_rcxts()
 */
struct nhcadv_device_attr {
	uint64_t comp_mask;
	uint32_t caps;
	uint32_t max_packet;
	uint32_t max_frames;
	uint32_t max_transfer;
	uint32_t max_transfer_packets;
	uint32_t min_segment;
	uint32_t max_segment;
	uint32_t max_rcxts;
};

/*
 * resource_type of the allocators of a parent domain: the queue that the memory is for.  Each
 * allocation is the ring of one queue, in whole pages; see nhcadv(7).
 */
#define NHCADV_RES_TYPE_SQ	((uint64_t)0x6e68 << 32 | 1)
#define NHCADV_RES_TYPE_RQ	((uint64_t)0x6e68 << 32 | 2)
#define NHCADV_RES_TYPE_CQ	((uint64_t)0x6e68 << 32 | 3)
#define NHCADV_RES_TYPE_SRQ	((uint64_t)0x6e68 << 32 | 4)
#define NHCADV_RES_TYPE_WQ	((uint64_t)0x6e68 << 32 | 5)

/**
 * nhcadv_is_supported - test whether a device is an nhca device
 * @device: a device of ibv_get_device_list()
 * Return: true if the device is an nhca device.
 */
bool nhcadv_is_supported(struct ibv_device *device);

/**
 * nhcadv_query_device - query the capabilities of a device
 * @context: open device
 * @attr: output
 * Return: 0, or EOPNOTSUPP if the device is not an nhca device.
 */
int nhcadv_query_device(struct ibv_context *context, struct nhcadv_device_attr *attr);

/**
 * nhcadv_recover - invalidate all channels and rCxts of a device
 * @context: open device
 * @count: output: the new recovery count of the device; may be NULL
 *
 * All channels of the device, of all processes, enter the error state (NHCADV_ERR_RECOVERED) and
 * lose their rCxts.  The kernel drops packets to the old rCxts.
 * Return: 0, or EPERM if the process lacks CAP_NET_ADMIN in the user namespace that owns the
 * network namespace of the netdev, or EOPNOTSUPP.
 */
int nhcadv_recover(struct ibv_context *context, uint32_t *count);

/* ---- a channel ---- */

/**
 * struct nhcadv_channel_init_attr - attributes of a channel that other queue pairs do not have
 * @comp_mask: 0
 * @job:       job id, not 0.  The first user of a job id owns the id as long as a channel or
 *             memory in the network namespace uses the id
 * @frames:    slots of the receive FIFO, of 2 KiB each; 0: no receive FIFO.  On return, the number
 *             that was granted
 * @quantum:   number of packets, of up to 4 KiB each, that the channel may send in one turn, before
 *             the other channels have their turn; 0: the default (64)
 * @reserved:  0
 */
struct nhcadv_channel_init_attr {
	uint64_t comp_mask;
	uint32_t job;
	uint32_t frames;
	uint32_t quantum;
	uint32_t reserved;
};

/**
 * nhcadv_create_channel - create a channel in the state IBV_QPS_RTS
 * @context: open device
 * @attr_ex: qp_type is IBV_QPT_DRIVER, comp_mask is IBV_QP_INIT_ATTR_PD, there is no SRQ, and
 *           cap.max_recv_* are 0.  cap.max_send_sge and cap.max_inline_data are for
 *           nhcadv_wr_packet(), cap.max_inline_data also for nhcadv_wr_part() and
 *           nhcadv_wr_answer().  On return, cap has the values that were granted
 * @attr:    attributes that only channels have
 *
 * The channel is an extended queue pair: see ibv_qp_to_qp_ex().  ibv_destroy_qp() closes the
 * channel, even if transfers are not complete.
 * Return: the channel, or NULL with errno EOPNOTSUPP (also: another qp_type, an unknown comp_mask,
 * an SRQ), EPERM (the job belongs to another user), EINVAL (another member is invalid), or ENOMEM
 * (no memory, RLIMIT_MEMLOCK exceeded, or no more QPs are left for the user or on the device).
 */
struct ibv_qp *nhcadv_create_channel(struct ibv_context *context,
				     struct ibv_qp_init_attr_ex *attr_ex,
				     struct nhcadv_channel_init_attr *attr);

/* attr_mask of nhcadv_modify_channel(): the attributes to change */
enum nhcadv_channel_attr_mask {
	NHCADV_CHANNEL_RECV_THRESHOLD	= 1 << 0,
	NHCADV_CHANNEL_SEND_THRESHOLD	= 1 << 1,
	NHCADV_CHANNEL_QUANTUM		= 1 << 2,
};

/**
 * struct nhcadv_channel_attr - attributes of a channel that can change
 * @recv_threshold: with a threshold of n, every n-th completion on the receive CQ is solicited: the
 *        completion raises an event if ibv_req_notify_cq() has armed the CQ with solicited_only.
 *        Default: 1; 0: none of them.  Completions in error, and of packets that the peer sent with
 *        IBV_SEND_SOLICITED, are always solicited
 * @send_threshold: the same for the send CQ
 * @quantum: as in struct nhcadv_channel_init_attr
 */
struct nhcadv_channel_attr {
	uint32_t recv_threshold;
	uint32_t send_threshold;
	uint32_t quantum;
};

/**
 * nhcadv_modify_channel - change attributes of a channel
 * @qp: the channel
 * @attr: the new values
 * @attr_mask: NHCADV_CHANNEL_*: the members of @attr to apply
 * Return: 0, EOPNOTSUPP, or EINVAL (@attr_mask has an unknown bit).
 */
int nhcadv_modify_channel(struct ibv_qp *qp, const struct nhcadv_channel_attr *attr,
			  uint32_t attr_mask);

/* nhcadv_channel_info.reason: why a channel is in the error state */
enum nhcadv_channel_error {
	NHCADV_ERR_NONE		= 0,
	NHCADV_ERR_MODIFIED	= 1,	/* ibv_modify_qp() changed the state */
	NHCADV_ERR_RING		= 2,	/* the indices of the send FIFO are invalid */
	NHCADV_ERR_WQE		= 3,	/* a work request was malformed */
	NHCADV_ERR_LOCAL_PVO	= 4,	/* a local PVO or L_Key gave no access to bytes to send */
	NHCADV_ERR_RECOVERED	= 5,	/* nhcadv_recover(): create another channel */
	NHCADV_ERR_DEVICE	= 6,	/* the netdev was removed or left its network namespace */
};

/**
 * enum nhcadv_channel_counter - indices of nhcadv_channel_info.counters
 * @NHCADV_SENT_PACKETS:  packets sent
 * @NHCADV_SENT_BYTES:    bytes of payload sent
 * @NHCADV_RECEIVED_PACKETS: packets received
 * @NHCADV_RECEIVED_BYTES: bytes of payload received
 * @NHCADV_DROP_FIFO:     the receive FIFO is full, or the channel has no receive FIFO
 * @NHCADV_DROP_CQ:       completions that were lost because a CQ was full
 * @NHCADV_DROP_KEY:      the channel key is wrong
 * @NHCADV_DROP_JOB:      the packet belongs to another job
 * @NHCADV_DROP_NO_RCXT:  the channel does not own the rCxt; it may have released the rCxt
 * @NHCADV_DROP_RCXT_KEY: the id is old: the channel has released the rCxt and acquired it again
 * @NHCADV_DROP_STALE:    the tid is too low for the rCxt, or the transfer was cancelled
 * @NHCADV_DROP_DUPLICATE: the packet arrived before, or the transfer is complete
 * @NHCADV_DROP_ABORTED:  memory protection refused an earlier packet of the transfer
 * @NHCADV_DROP_BUSY:     the rCxt has another transfer, or bytes of the transfer are in use
 * @NHCADV_DROP_UNSOLICITED: a notice, a challenge or payload of a read, without a pending request
 * @NHCADV_DROP_MISMATCH: the packet does not match the transfer that began with its tid
 * @NHCADV_DROP_NO_MEMORY: no memory for the state of the transfer, or for an answer
 * @NHCADV_DROP_PVO_KEY:  PVO: no job memory has this key
 * @NHCADV_DROP_PVO_JOB:  PVO: the memory belongs to another job
 * @NHCADV_DROP_PVO_RANGE: PVO: the range is not within the memory
 * @NHCADV_DROP_PVO_ACCESS: PVO: the memory does not allow this access
 * @NHCADV_DROP_PVO_PAGE: PVO: the memory is being deregistered
 * @NHCADV_DROP_ERROR:    the channel is in the error state
 * @NHCADV_DROP_SEGMENT:  a read or third-party request for packets that are too long for the MTU of
 * this device
 * @NHCADV_FENCED:        transfers that a fence of a peer cancelled; see nhcadv_wr_fence()
 * @NHCADV_CHALLENGED:    requests and probes from an address that this device has to verify
 * @NHCADV_DROP_TARGET:   third-party requests for targets that nhcadv_allow_target() has not
 * allowed
 * @NHCADV_DROP_MANAGER:  third-party payload whose manager has an impossible address
 *
 * NHCADV_DROP_* except NHCADV_DROP_CQ count dropped packets by reason.
 */
enum nhcadv_channel_counter {
	NHCADV_SENT_PACKETS,
	NHCADV_SENT_BYTES,
	NHCADV_RECEIVED_PACKETS,
	NHCADV_RECEIVED_BYTES,
	NHCADV_DROP_FIFO,
	NHCADV_DROP_CQ,
	NHCADV_DROP_KEY,
	NHCADV_DROP_JOB,
	NHCADV_DROP_NO_RCXT,
	NHCADV_DROP_RCXT_KEY,
	NHCADV_DROP_STALE,
	NHCADV_DROP_DUPLICATE,
	NHCADV_DROP_ABORTED,
	NHCADV_DROP_BUSY,
	NHCADV_DROP_UNSOLICITED,
	NHCADV_DROP_MISMATCH,
	NHCADV_DROP_NO_MEMORY,
	NHCADV_DROP_PVO_KEY,
	NHCADV_DROP_PVO_JOB,
	NHCADV_DROP_PVO_RANGE,
	NHCADV_DROP_PVO_ACCESS,
	NHCADV_DROP_PVO_PAGE,
	NHCADV_DROP_ERROR,
	NHCADV_DROP_SEGMENT,
	NHCADV_FENCED,
	NHCADV_CHALLENGED,
	NHCADV_DROP_TARGET,
	NHCADV_DROP_MANAGER,
};

#define NHCADV_CHANNEL_COUNTERS	32

/**
 * struct nhcadv_channel_info - current state of a channel
 * @comp_mask: 0
 * @key:     key of the channel; to send to the channel, a peer needs the key and the qp_num
 * @state:   IBV_QPS_RTS or IBV_QPS_ERR
 * @reason:  enum nhcadv_channel_error.  IBV_EVENT_QP_FATAL reports the error state, except for
 *           NHCADV_ERR_MODIFIED
 * @job:     job id
 * @frames:  slots of the receive FIFO
 * @rcxts:   number of rCxts that the channel has acquired
 * @segment: maximum payload of a packet of a transfer, in bytes, with the current MTU
 * @recv_threshold: see struct nhcadv_channel_attr
 * @send_threshold: see struct nhcadv_channel_attr
 * @quantum: see struct nhcadv_channel_attr
 * @recoveries: recovery count of the device, which starts at a random value
 * @violation: the last violation of memory protection by a packet: NHCADV_DROP_PVO_*; 0: none.
 *           IBV_EVENT_QP_ACCESS_ERR reports only the first violation after each query
 * @violation_channel: QP number of the peer's channel
 * @violation_tid: tid of the transfer
 * @violation_rcxt: rCxt of the transfer at this end
 * @violation_pvo: PVO of the bytes at this end
 * @counters: indexed by enum nhcadv_channel_counter; counters that the kernel driver does not have
 *           are 0
 */
struct nhcadv_channel_info {
	uint64_t comp_mask;
	uint64_t key;
	uint32_t state;
	uint32_t reason;
	uint32_t job;
	uint32_t frames;
	uint32_t rcxts;
	uint32_t segment;
	uint32_t recv_threshold;
	uint32_t send_threshold;
	uint32_t quantum;
	uint32_t recoveries;
	uint32_t violation;
	uint32_t violation_channel;
	uint32_t violation_tid;
	uint64_t violation_rcxt;
	uint64_t violation_pvo;
	uint64_t counters[NHCADV_CHANNEL_COUNTERS];
};

/**
 * nhcadv_query_channel - query the state of a channel
 * @qp: the channel
 * @info: output
 * Return: 0 or an errno.
 */
int nhcadv_query_channel(struct ibv_qp *qp, struct nhcadv_channel_info *info);

/**
 * nhcadv_acquire_rcxts - acquire rCxts for a channel, all or none
 * @qp:    the channel
 * @ids:   output: opaque ids, which the program sends to its peers unchanged
 * @count: 1 to nhcadv_device_attr.max_rcxts
 *
 * The first transfer of an rCxt has a tid of 1 or more.
 * Return: 0, ENOSPC (the device has too few free rCxts), EDQUOT (the user would exceed its share),
 * EIO (channel in the error state), ENOMEM (no memory), EINVAL (@count is invalid), or EOPNOTSUPP.
 */
int nhcadv_acquire_rcxts(struct ibv_qp *qp, uint64_t *ids, uint32_t count);

/**
 * nhcadv_release_rcxts - release rCxts, all or none, even if their transfers are not complete
 * @qp:    the channel
 * @ids:   ids of the rCxts
 * @count: 1 to nhcadv_device_attr.max_rcxts
 *
 * When the call returns, the kernel neither places nor sends bytes for these rCxts.
 * Return: 0, ENOENT (the channel does not own an rCxt), EINVAL (@count is invalid), or EOPNOTSUPP.
 */
int nhcadv_release_rcxts(struct ibv_qp *qp, const uint64_t *ids, uint32_t count);

/* ---- third-party transfers: the source ---- */

/* maximum number of addresses that a channel allows */
#define NHCADV_MAX_TARGETS	64

/**
 * nhcadv_allow_target - allow a channel to be the source of third-party transfers to a host
 * @qp: the channel
 * @ah: address handle of the host, from the PD of the channel; the program may destroy it
 * afterwards
 *
 * Managers (nhcadv_wr_move()) choose the target of a transfer.  So the channel sends only to
 * addresses that its own program has allowed.  A new channel allows none.
 * Return: 0, EINVAL (@ah is of another PD, or a multicast address), ENOSPC (the channel allows
 * NHCADV_MAX_TARGETS addresses), or EOPNOTSUPP.
 */
int nhcadv_allow_target(struct ibv_qp *qp, struct ibv_ah *ah);

/**
 * nhcadv_revoke_target - revoke nhcadv_allow_target()
 * @qp: the channel
 * @ah: an address handle of the host
 *
 * When the call returns, the channel sends no payload of third-party transfers to the address any
 * more.  The managers of transfers that were in progress get a status NHCADV_TRANSFER_FORBIDDEN.
 * Return: 0, ENOENT (the channel does not allow the address), EINVAL (@ah is of another PD, or a
 * multicast address), or EOPNOTSUPP.
 */
int nhcadv_revoke_target(struct ibv_qp *qp, struct ibv_ah *ah);

/* ---- memory of a job ---- */

/**
 * struct nhcadv_job_mem - a handle of memory that is registered for a job
 * @context: device of the handle
 * @pvo:     protocol virtual offset of the first byte; byte n has @pvo + n
 * @length:  length of the memory in bytes
 * @job:     job id
 */
struct nhcadv_job_mem {
	struct ibv_context *context;
	uint64_t pvo;
	uint64_t length;
	uint32_t job;
};

/**
 * nhcadv_reg_job_mem - register memory of this process for a job
 * @context: device of the handle; the memory is registered for all nhca devices of the host in
 *          this network namespace
 * @job:    job id
 * @addr:   first byte of the range
 * @length: length of the range in bytes
 * @access: IBV_ACCESS_LOCAL_WRITE: channels of the job may place data of their reads in the memory;
 *          IBV_ACCESS_REMOTE_READ; IBV_ACCESS_REMOTE_WRITE, which requires LOCAL_WRITE;
 *          IBV_ACCESS_REMOTE_ATOMIC, which requires LOCAL_WRITE: with REMOTE_WRITE, peers may
 *          accumulate.  Channels of the job may always send writes and accumulates from the memory
 * Return: a handle, or NULL with errno; nhcadv_reg_job_mem(3) has the causes of each errno.
 */
struct nhcadv_job_mem *nhcadv_reg_job_mem(struct ibv_context *context, uint32_t job, void *addr,
					  size_t length, unsigned int access);

/**
 * nhcadv_open_job_mem - open another handle of registered memory
 * @context: device of the new handle
 * @job: job id
 * @pvo: PVO of the first byte of the memory
 *
 * The memory stays registered until the last handle is closed.  The kernel closes the handles of a
 * device that is removed, and of a process that exits.
 * Return: a handle, or NULL with errno; ENOENT: the job has no memory that begins at @pvo.
 */
struct nhcadv_job_mem *nhcadv_open_job_mem(struct ibv_context *context, uint32_t job, uint64_t pvo);

/**
 * nhcadv_dereg_job_mem - close a handle
 * @mem: the handle
 *
 * If @mem was the last handle, channels do not access the memory any more when the call returns.
 * Return: 0 or an errno.
 */
int nhcadv_dereg_job_mem(struct nhcadv_job_mem *mem);

/* ---- posting, between ibv_wr_start() and ibv_wr_complete() ---- */

/**
 * struct nhcadv_peer - the channel at the other end
 * @ah:  address handle of the peer's host, from the PD of the channel that sends
 * @qpn: qp_num of the peer's channel
 * @key: nhcadv_channel_info.key of the peer's channel
 */
struct nhcadv_peer {
	struct ibv_ah *ah;
	uint32_t qpn;
	uint64_t key;
};

/* nhcadv_transfer.notify: the ends that get a completion when all bytes are in place */
enum nhcadv_notify {
	NHCADV_NOTIFY_INITIATOR	= 1 << 0,	/* the end that posts, also for reads */
	NHCADV_NOTIFY_TARGET	= 1 << 1,	/* the peer */
};

/**
 * struct nhcadv_transfer - one write or read, from one contiguous range to another
 * @local_rcxt:  rCxt of the channel that posts
 * @remote_rcxt: rCxt of the peer
 * @local_pvo:   PVO of the first byte on this host: source of a write, destination of a read
 * @remote_pvo:  PVO of the first byte on the host of the peer
 * @cookie:      a value that the peer gets in its completion
 * @tid:         not 0, and higher than the tid of all earlier transfers of both rCxts
 * @total:       bytes of the transfer; a transfer of 0 bytes has completions like any other
 * @segment:     payload of each packet in bytes, a multiple of 4; only the last packet may have
 *               less.  At most nhcadv_channel_info.segment of both ends.  0: the maximum of this
 *               end; but a transfer with segment 0 can be neither retransmitted nor probed
 * @notify:      NHCADV_NOTIFY_*
 */
struct nhcadv_transfer {
	uint64_t local_rcxt;
	uint64_t remote_rcxt;
	uint64_t local_pvo;
	uint64_t remote_pvo;
	uint64_t cookie;
	uint32_t tid;
	uint32_t total;
	uint32_t segment;
	uint32_t notify;
};

/* Bytes of headers that payload of nhcadv_wr_move() has in addition to that of nhcadv_wr_write() */
#define NHCADV_MOVE_HEADER	16

/**
 * struct nhcadv_target - the target of nhcadv_wr_move()
 * @peer: its channel
 * @rcxt: its rCxt
 * @pvo:  PVO of the first byte on its host
 */
struct nhcadv_target {
	struct nhcadv_peer peer;
	uint64_t rcxt;
	uint64_t pvo;
};

/**
 * struct nhcadv_qp_ex - a channel, for posting work requests
 * @comp_mask: 0
 * @wr_packet: see nhcadv_wr_packet()
 * @wr_write:  see nhcadv_wr_write()
 * @wr_retransmit: see nhcadv_wr_retransmit()
 * @wr_read:   see nhcadv_wr_read()
 * @wr_cancel: see nhcadv_wr_cancel()
 * @wr_probe:  see nhcadv_wr_probe()
 * @wr_fence:  see nhcadv_wr_fence()
 * @wr_move:   see nhcadv_wr_move()
 * @wr_move_again: see nhcadv_wr_move_again()
 * @wr_part:   see nhcadv_wr_part()
 * @wr_write_frames: see nhcadv_wr_write_frames()
 * @wr_frames_again: see nhcadv_wr_frames_again()
 * @wr_ask:    see nhcadv_wr_ask()
 * @wr_ask_again: see nhcadv_wr_ask_again()
 * @wr_answer: see nhcadv_wr_answer()
 * @wr_read_frames: see nhcadv_wr_read_frames()
 * @wr_read_frames_again: see nhcadv_wr_read_frames_again()
 *
 * nhcadv_wr_X() calls member wr_X.  A work request uses ibv_qp_ex.wr_id and ibv_qp_ex.wr_flags.
 * IBV_SEND_SIGNALED requests the completion NHCADV_WC_LOCAL.  Only for nhcadv_wr_packet():
 * IBV_SEND_SOLICITED makes the completion at the peer a solicited one, and IBV_SEND_INLINE is
 * ignored.  Other flags are invalid.  After an error ibv_wr_complete() posts nothing, and returns
 * the first error: EINVAL (invalid argument), ENOMEM (too few free slots in the send FIFO), or
 * EOPNOTSUPP (see nhcadv_wr_fence(), nhcadv_wr_move(), nhcadv_half.h and nhcadv_accumulate.h).  A
 * slot is free again when its work request and all earlier work requests are done.
 */
struct nhcadv_qp_ex {
	uint64_t comp_mask;
	void (*wr_packet)(struct nhcadv_qp_ex *qp, const struct nhcadv_peer *peer, uint64_t cookie);
	void (*wr_write)(struct nhcadv_qp_ex *qp, const struct nhcadv_peer *peer,
			 const struct nhcadv_transfer *transfer);
	void (*wr_retransmit)(struct nhcadv_qp_ex *qp, const struct nhcadv_peer *peer,
			   const struct nhcadv_transfer *transfer, uint32_t offset,
			   uint32_t length);
	void (*wr_read)(struct nhcadv_qp_ex *qp, const struct nhcadv_peer *peer,
			const struct nhcadv_transfer *transfer);
	void (*wr_cancel)(struct nhcadv_qp_ex *qp, uint64_t local_rcxt, uint32_t tid);
	void (*wr_probe)(struct nhcadv_qp_ex *qp, const struct nhcadv_peer *peer,
			 const struct nhcadv_transfer *transfer, uint32_t offset);
	void (*wr_fence)(struct nhcadv_qp_ex *qp, const struct nhcadv_peer *peer,
			 uint64_t remote_rcxt, uint64_t local_rcxt, uint32_t tid);
	void (*wr_move)(struct nhcadv_qp_ex *qp, const struct nhcadv_peer *source,
			const struct nhcadv_target *target,
			const struct nhcadv_transfer *transfer);
	void (*wr_move_again)(struct nhcadv_qp_ex *qp, const struct nhcadv_peer *source,
			      const struct nhcadv_target *target,
			      const struct nhcadv_transfer *transfer, uint32_t offset,
			      uint32_t length);
	void (*wr_part)(struct nhcadv_qp_ex *qp, const struct nhcadv_peer *peer,
			const struct nhcadv_transfer *transfer, uint32_t offset, size_t num_buf,
			const struct ibv_data_buf *buf_list);
	void (*wr_write_frames)(struct nhcadv_qp_ex *qp, const struct nhcadv_peer *peer,
				const struct nhcadv_transfer *transfer);
	void (*wr_frames_again)(struct nhcadv_qp_ex *qp, const struct nhcadv_peer *peer,
				const struct nhcadv_transfer *transfer, uint32_t offset,
				uint32_t length);
	void (*wr_ask)(struct nhcadv_qp_ex *qp, const struct nhcadv_peer *peer,
		       const struct nhcadv_transfer *transfer);
	void (*wr_ask_again)(struct nhcadv_qp_ex *qp, const struct nhcadv_peer *peer,
			     const struct nhcadv_transfer *transfer);
	void (*wr_answer)(struct nhcadv_qp_ex *qp, const struct nhcadv_peer *peer,
			  const struct nhcadv_transfer *transfer, uint32_t offset, size_t num_buf,
			  const struct ibv_data_buf *buf_list);
	void (*wr_read_frames)(struct nhcadv_qp_ex *qp, const struct nhcadv_peer *peer,
			       const struct nhcadv_transfer *transfer, uint32_t length);
	void (*wr_read_frames_again)(struct nhcadv_qp_ex *qp, const struct nhcadv_peer *peer,
				     const struct nhcadv_transfer *transfer, uint32_t offset,
				     uint32_t length);
	void (*wr_accumulate)(struct nhcadv_qp_ex *qp, const struct nhcadv_peer *peer,
			      const struct nhcadv_transfer *transfer, uint32_t op, uint32_t type,
			      uint32_t flags);
	void (*wr_accumulate_again)(struct nhcadv_qp_ex *qp, const struct nhcadv_peer *peer,
				    const struct nhcadv_transfer *transfer, uint32_t op,
				    uint32_t type, uint32_t offset, uint32_t length);
};

/**
 * nhcadv_qp_ex_from_ibv_qp_ex - convert a channel to the type that nhcadv_wr_*() take
 * @qp: the channel
 * Return: the converted pointer, or NULL with errno EOPNOTSUPP if @qp is not a channel.
 */
struct nhcadv_qp_ex *nhcadv_qp_ex_from_ibv_qp_ex(struct ibv_qp_ex *qp);

/*
 * Send a packet to the receive FIFO of the peer.  ibv_wr_set_sge*() or ibv_wr_set_inline_data*()
 * set its payload, at most nhcadv_device_attr.max_packet bytes and at most
 * nhcadv_channel_info.segment bytes.  If none of these functions is called, the packet is empty.
 */
static inline void nhcadv_wr_packet(struct nhcadv_qp_ex *qp, const struct nhcadv_peer *peer,
				    uint64_t cookie)
{
	qp->wr_packet(qp, peer, cookie);
}

/*
 * Write.  The work request is done when its last packet has been sent.  If NHCADV_NOTIFY_INITIATOR
 * is set, packets refer to the memory, which must not change before NHCADV_WC_WRITE.
 */
static inline void nhcadv_wr_write(struct nhcadv_qp_ex *qp, const struct nhcadv_peer *peer,
				   const struct nhcadv_transfer *transfer)
{
	qp->wr_write(qp, peer, transfer);
}

/*
 * Retransmit @length bytes of a write from @offset on.  @transfer describes the write, which must
 * have NHCADV_NOTIFY_INITIATOR.  @offset is a multiple of the segment.  @length is a multiple of
 * the segment, or extends to the end of the transfer.  The completion NHCADV_WC_WRITE has the wr_id
 * of nhcadv_wr_write().
 */
static inline void nhcadv_wr_retransmit(struct nhcadv_qp_ex *qp, const struct nhcadv_peer *peer,
				     const struct nhcadv_transfer *transfer, uint32_t offset,
				     uint32_t length)
{
	qp->wr_retransmit(qp, peer, transfer, offset, length);
}

/*
 * Read.  The work request is done when the read request has been sent.  If the peer has not
 * verified the address of this end in the last 256 to 512 seconds, the peer first sends a
 * challenge, which takes one more round trip.
 */
static inline void nhcadv_wr_read(struct nhcadv_qp_ex *qp, const struct nhcadv_peer *peer,
				  const struct nhcadv_transfer *transfer)
{
	qp->wr_read(qp, peer, transfer);
}

/*
 * Cancel the transfer of @local_rcxt at this end, if its tid is @tid or lower.  When the work
 * request is done, the kernel neither places nor sends bytes of the transfer, and the transfer will
 * not complete.  The rCxt refuses later transfers whose tid is @tid or lower.
 */
static inline void nhcadv_wr_cancel(struct nhcadv_qp_ex *qp, uint64_t local_rcxt, uint32_t tid)
{
	qp->wr_cancel(qp, local_rcxt, tid);
}

/*
 * Query which packets of @transfer the rCxt of the peer has received, from the packet at @offset
 * on.  @offset is a multiple of the segment.  The answer is a frame NHCADV_FRAME_STATUS.  The probe
 * or its answer may be lost.
 */
static inline void nhcadv_wr_probe(struct nhcadv_qp_ex *qp, const struct nhcadv_peer *peer,
				   const struct nhcadv_transfer *transfer, uint32_t offset)
{
	qp->wr_probe(qp, peer, transfer, offset);
}

/*
 * Cancel a transfer at the peer.  The peer's kernel executes the fence; the program there need not
 * run.  From then on the peer drops packets to @remote_rcxt whose tid is @tid or lower.  The answer
 * is a frame NHCADV_FRAME_STATUS for @local_rcxt, with the wr_id of the fence as its cookie.  The
 * status is NHCADV_TRANSFER_FENCED, or NHCADV_TRANSFER_COMPLETE: the transfer was complete before.
 *
 * No answer comes if the fence or its answer is lost, while the peer copies payload of the transfer
 * (or sends it, as the source of a third-party transfer), or while the peer's channel uses
 * @remote_rcxt for a write, read or third-party transfer of its own: post the fence again after a
 * round trip.  The peer never answers after its rCxt has had a higher tid or was released.  Both
 * ends need NHCADV_DEVICE_FENCE.  Without this capability, ibv_wr_complete() returns EOPNOTSUPP
 * here, and a peer does not answer.
 */
static inline void nhcadv_wr_fence(struct nhcadv_qp_ex *qp, const struct nhcadv_peer *peer,
				   uint64_t remote_rcxt, uint64_t local_rcxt, uint32_t tid)
{
	qp->wr_fence(qp, peer, remote_rcxt, local_rcxt, tid);
}

/*
 * Third-party transfer: @source writes into the memory of @target. The programs of both need not
 * run. This end is the manager: the payload does not pass through this end. The manager gets the
 * completion NHCADV_WC_MOVE when all bytes are in place. The work request is done when the request
 * has been sent.
 *
 * In @transfer, local_rcxt is an rCxt of the manager, remote_rcxt one of the source, and remote_pvo
 * the PVO of the first byte on the host of the source; local_pvo is not used.  The tid is higher
 * than those of all earlier transfers of the three rCxts.  segment is at most
 * nhcadv_channel_info.segment of source and target less NHCADV_MOVE_HEADER.  notify has
 * NHCADV_NOTIFY_INITIATOR (the manager), and perhaps NHCADV_NOTIFY_TARGET.
 *
 * If the source refuses the request, it answers with a frame NHCADV_FRAME_STATUS for local_rcxt:
 * NHCADV_TRANSFER_FORBIDDEN, NHCADV_TRANSFER_TOO_LONG or NHCADV_TRANSFER_PROT_ERR.  All three ends
 * need NHCADV_DEVICE_MOVE.  Without it, ibv_wr_complete() here returns EOPNOTSUPP, and a source or
 * target drops the packets.
 */
static inline void nhcadv_wr_move(struct nhcadv_qp_ex *qp, const struct nhcadv_peer *source,
				  const struct nhcadv_target *target,
				  const struct nhcadv_transfer *transfer)
{
	qp->wr_move(qp, source, target, transfer);
}

/*
 * Request that the source sends @length bytes of nhcadv_wr_move() again, from @offset on.  The
 * other arguments are those of nhcadv_wr_move().  @offset and @length are as for
 * nhcadv_wr_retransmit().  Probe the target to find out which packets are missing.
 */
static inline void nhcadv_wr_move_again(struct nhcadv_qp_ex *qp, const struct nhcadv_peer *source,
					const struct nhcadv_target *target,
					const struct nhcadv_transfer *transfer, uint32_t offset,
					uint32_t length)
{
	qp->wr_move_again(qp, source, target, transfer, offset, length);
}

#ifdef __cplusplus
}
#endif

/* Completions and frames */
#include "nhcadv_completion.h"
/* Half transfers */
#include "nhcadv_half.h"
/* Accumulates */
#include "nhcadv_accumulate.h"
/* A cache of registrations */
#include "nhcadv_reg_cache.h"

#endif /* NHCADV_H */
