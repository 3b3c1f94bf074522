/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * nhca direct verbs: channels, for RDMA that does not care about order ("rCxt datagrams").
 * nhcadv(7) is where to begin; Documentation/rcxt.rst says what goes over the wire.
 *
 * A channel is a queue pair of type IBV_QPT_DRIVER without a peer: each work request names one.
 * Nothing is acknowledged and nothing sent again, unless the program does it: a transfer that
 * has lost a packet does not complete.
 *
 * Functions that return int return 0 or an errno; those that return a pointer return NULL and set
 * errno.  EOPNOTSUPP: not an nhca device, not a channel, or a kernel driver without channels.
 *
 * Structs with a comp_mask: the bits say which members behind those of today's release mean
 * something.  There are none yet: it is 0.
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
	NHCADV_DEVICE_CHANNELS	= 1 << 0,	/* the kernel driver has channels */
	NHCADV_DEVICE_FENCE	= 1 << 1,	/* and takes nhcadv_wr_fence() */
};

/**
 * struct nhcadv_device_attr - what the device can do; limits are 0 without channels
 * @comp_mask: 0
 * @caps:      NHCADV_DEVICE_*
 * @max_packet: bytes in packet mode: payload of one frame
 * @max_frames: slots of a receive FIFO
 * @max_transfer: bytes of a transfer
 * @max_transfer_packets: packets of a transfer
 * @min_segment, @max_segment: bytes in a packet of a transfer, multiples of 4; how many fit the
 *             MTU is in struct nhcadv_channel_info
 * @max_rcxts: rCxts in one nhcadv_acquire_rcxts() or nhcadv_release_rcxts()
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
 * resource_type of the allocators of a parent domain: what memory is for.  Each is the memory of one ring,
 * of whole pages; see nhcadv(7).
 */
#define NHCADV_RES_TYPE_SQ	((uint64_t)0x6e68 << 32 | 1)
#define NHCADV_RES_TYPE_RQ	((uint64_t)0x6e68 << 32 | 2)
#define NHCADV_RES_TYPE_CQ	((uint64_t)0x6e68 << 32 | 3)
#define NHCADV_RES_TYPE_SRQ	((uint64_t)0x6e68 << 32 | 4)
#define NHCADV_RES_TYPE_WQ	((uint64_t)0x6e68 << 32 | 5)

/* Is it a device of this provider? */
bool nhcadv_is_supported(struct ibv_device *device);

/* @attr: comp_mask as the caller knows it, on return as the provider does */
int nhcadv_query_device(struct ibv_context *context, struct nhcadv_device_attr *attr);

/**
 * nhcadv_recover - packets and rCxts from before are of another time
 * @count: where the device's recovery count goes; may be NULL
 *
 * All channels of the device, of whatever process, go to the error state (NHCADV_ERR_RECOVERED)
 * and have no rCxts any more.  EPERM without CAP_NET_ADMIN over the netdev's namespace.
 */
int nhcadv_recover(struct ibv_context *context, uint32_t *count);

/* ---- a channel ---- */

/**
 * struct nhcadv_channel_init_attr - what a channel has beside queues
 * @comp_mask: 0
 * @job:       job id, not 0: it belongs to the user who uses it first, as long as it is in use
 * @frames:    slots of the receive FIFO, of 2 KiB each; 0: none.  On return as granted
 * @quantum:   packets that may be sent before other channels have their turn; 0: the default
 */
struct nhcadv_channel_init_attr {
	uint64_t comp_mask;
	uint32_t job;
	uint32_t frames;
	uint32_t quantum;
	uint32_t reserved;
};

/**
 * nhcadv_create_channel - make a channel that sends and receives at once
 * @attr_ex: qp_type IBV_QPT_DRIVER; comp_mask IBV_QP_INIT_ATTR_PD, without send_ops_flags; no
 *           SRQ; cap.max_recv_* 0.  cap.max_inline_data is for packet mode.  On return cap is
 *           what was granted
 * @attr:    the rest
 *
 * The queue pair is an extended one: ibv_qp_to_qp_ex().  ibv_destroy_qp() closes it, whatever it
 * is doing.  EPERM: the job is another user's.
 */
struct ibv_qp *nhcadv_create_channel(struct ibv_context *context,
				     struct ibv_qp_init_attr_ex *attr_ex,
				     struct nhcadv_channel_init_attr *attr);

/* nhcadv_modify_channel(): what is to be changed */
enum nhcadv_channel_attr_mask {
	NHCADV_CHANNEL_RECV_THRESHOLD	= 1 << 0,
	NHCADV_CHANNEL_SEND_THRESHOLD	= 1 << 1,
	NHCADV_CHANNEL_QUANTUM		= 1 << 2,
};

/**
 * struct nhcadv_channel_attr - what can be changed in a channel
 * @recv_threshold, @send_threshold: every n-th completion on the receive (send) CQ is a solicited
 *        one: ibv_req_notify_cq() with solicited_only makes an event of that.  1 at the
 *        beginning; 0: none is, but those of packets that were sent with IBV_SEND_SOLICITED
 * @quantum: as in struct nhcadv_channel_init_attr
 */
struct nhcadv_channel_attr {
	uint32_t recv_threshold;
	uint32_t send_threshold;
	uint32_t quantum;
};

/* @attr_mask: NHCADV_CHANNEL_*; EINVAL for others */
int nhcadv_modify_channel(struct ibv_qp *qp, const struct nhcadv_channel_attr *attr,
			  uint32_t attr_mask);

/* nhcadv_channel_info.reason: why a channel is in the error state */
enum nhcadv_channel_error {
	NHCADV_ERR_NONE		= 0,
	NHCADV_ERR_MODIFIED	= 1,	/* ibv_modify_qp() */
	NHCADV_ERR_RING		= 2,	/* the send FIFO's indices are not what they can be */
	NHCADV_ERR_WQE		= 3,	/* a work request that cannot be */
	NHCADV_ERR_LOCAL_PVO	= 4,	/* a local PVO or lkey that does not open the bytes */
	NHCADV_ERR_RECOVERED	= 5,	/* nhcadv_recover(): create and acquire anew */
	NHCADV_ERR_DEVICE	= 6,	/* the network device has gone */
};

/**
 * enum nhcadv_channel_counter - nhcadv_channel_info.counters; NHCADV_DROP_*: packets that were
 * dropped, and why
 * @NHCADV_DROP_FIFO:     packet mode, status: the receive FIFO is full, or there is none
 * @NHCADV_DROP_CQ:       a CQ is full
 * @NHCADV_DROP_KEY:      wrong channel key
 * @NHCADV_DROP_JOB:      another job
 * @NHCADV_DROP_NO_RCXT:  no such rCxt, or not the channel's
 * @NHCADV_DROP_RCXT_KEY: the rCxt has changed hands, or the device has recovered
 * @NHCADV_DROP_STALE:    tid lower, or cancelled
 * @NHCADV_DROP_DUPLICATE: the packet has come before, or the transfer is complete
 * @NHCADV_DROP_ABORTED:  memory protection has refused an earlier packet of the transfer
 * @NHCADV_DROP_BUSY:     the rCxt is in use
 * @NHCADV_DROP_UNSOLICITED: payload of a read, or a notice, without an outstanding request
 * @NHCADV_DROP_MISMATCH: not of the transfer that its tid began
 * @NHCADV_DROP_NO_MEMORY: for the state of the transfer
 * @NHCADV_DROP_PVO_KEY:  PVO: no job memory has this key
 * @NHCADV_DROP_PVO_JOB:  PVO: another job's
 * @NHCADV_DROP_PVO_RANGE: PVO: beyond its ends
 * @NHCADV_DROP_PVO_ACCESS: PVO: access that was not granted
 * @NHCADV_DROP_PVO_PAGE: PVO: the memory is being deregistered
 * @NHCADV_DROP_ERROR:    the channel is in the error state
 * @NHCADV_DROP_SEGMENT:  a read request for packets that are too long for this device
 * @NHCADV_FENCED:        transfers that a fence of a peer cancelled: nhcadv_wr_fence()
 * @NHCADV_CHALLENGED:    read requests and probes without a good token
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
};

#define NHCADV_CHANNEL_COUNTERS	32

/**
 * struct nhcadv_channel_info - a channel as it is now
 * @comp_mask: 0
 * @key:     the channel's: a peer needs it, and the channel's qp_num
 * @state:   IBV_QPS_RTS or IBV_QPS_ERR
 * @reason:  enum nhcadv_channel_error; IBV_EVENT_QP_FATAL told of it, but for NHCADV_ERR_MODIFIED
 * @job:     job id
 * @frames:  slots of the receive FIFO
 * @rcxts:   that the channel has
 * @segment: bytes that a packet of a transfer can have at most on this device, with its MTU of now
 * @recv_threshold, @send_threshold, @quantum: see struct nhcadv_channel_attr
 * @recoveries: recovery count of the device; its start is random
 * @violation: the last violation of memory protection: NHCADV_DROP_PVO_*; 0: none, or
 *           NHCADV_ERR_LOCAL_PVO.  IBV_EVENT_QP_ACCESS_ERR tells of the first after each query
 * @violation_channel: the peer's channel
 * @violation_rcxt, @violation_tid, @violation_pvo: of the transfer, at this end
 * @counters: by enum nhcadv_channel_counter; what the kernel does not know is 0
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

/* @info: comp_mask as the caller knows it, on return as the provider does */
int nhcadv_query_channel(struct ibv_qp *qp, struct nhcadv_channel_info *info);

/**
 * nhcadv_acquire_rcxts - rCxts for the channel, all of them or none
 * @ids:   where their ids go: opaque; the peer has them as they are
 * @count: 1 to nhcadv_device_attr.max_rcxts
 * The first tid on each is 1 or more.  ENOSPC: the device has no more; EIO: channel in error.
 */
int nhcadv_acquire_rcxts(struct ibv_qp *qp, uint64_t *ids, uint32_t count);

/**
 * nhcadv_release_rcxts - give rCxts back, all of them or none, whatever they are doing
 * No byte lands by them when it returns.  ENOENT: one of them is not the channel's.
 */
int nhcadv_release_rcxts(struct ibv_qp *qp, const uint64_t *ids, uint32_t count);

/* ---- memory of a job ---- */

/**
 * struct nhcadv_job_mem - a handle on memory that is registered for a job
 * @context: the device that the handle is of
 * @pvo:     protocol virtual offset of the first byte: that of byte n is @pvo + n
 * @length:  bytes
 * @job:     whose
 */
struct nhcadv_job_mem {
	struct ibv_context *context;
	uint64_t pvo;
	uint64_t length;
	uint32_t job;
};

/**
 * nhcadv_reg_job_mem - open memory of this process to a job's channels, on all nhca devices of
 * the host in this network namespace
 * @access: IBV_ACCESS_LOCAL_WRITE, to read into; _REMOTE_READ; _REMOTE_WRITE, which wants LOCAL_WRITE
 * Writing from it always goes.  EPERM: the job is another user's.
 */
struct nhcadv_job_mem *nhcadv_reg_job_mem(struct ibv_context *context, uint32_t job, void *addr,
					  size_t length, unsigned int access);

/**
 * nhcadv_open_job_mem - another handle on registered memory, through this device
 * @pvo: of the first byte
 * The memory stays registered until its last handle has gone, with whatever device, or process.
 * ENOENT: the job has no such memory.
 */
struct nhcadv_job_mem *nhcadv_open_job_mem(struct ibv_context *context, uint32_t job, uint64_t pvo);

/* Close a handle.  Returns, when it was the last, after the last byte has moved. */
int nhcadv_dereg_job_mem(struct nhcadv_job_mem *mem);

/* ---- posting, between ibv_wr_start() and ibv_wr_complete() ---- */

/**
 * struct nhcadv_peer - a channel to talk to
 * @ah:  address handle of its host, of the PD of the channel that sends
 * @qpn: its qp_num
 * @key: its nhcadv_channel_info.key
 */
struct nhcadv_peer {
	struct ibv_ah *ah;
	uint32_t qpn;
	uint64_t key;
};

/* nhcadv_transfer.notify: whose CQ is told when all bytes are in place */
enum nhcadv_notify {
	NHCADV_NOTIFY_INITIATOR	= 1 << 0,	/* who posts the work request: also for reads */
	NHCADV_NOTIFY_TARGET	= 1 << 1,
};

/**
 * struct nhcadv_transfer - one write or read, from one contiguous range to another
 * @local_rcxt:  of the channel that posts: waits for the notice, takes the payload of a read
 * @remote_rcxt: of the peer
 * @local_pvo:   write: where the bytes are; read: where they go
 * @remote_pvo:  the same at the peer
 * @cookie:      for the peer's program, with the peer's completion
 * @tid:         higher than any before on both rCxts
 * @total:       bytes; 0 is a transfer, too
 * @segment:     bytes in each packet but the last, a multiple of 4; at most
 *               nhcadv_channel_info.segment of both sides.  0: that of this side, in which
 *               case nothing of the transfer can be sent again or probed
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

/**
 * struct nhcadv_qp_ex - a channel, for posting
 *
 * ibv_qp_ex.wr_id and .wr_flags go with each request.  IBV_SEND_SIGNALED asks for the completion
 * NHCADV_WC_LOCAL, IBV_SEND_SOLICITED, of packets, for an event at the peer; other flags are
 * refused.  What is wrong with a request is returned by ibv_wr_complete(): EINVAL, or ENOMEM if
 * the send FIFO is full: its slots are free again when the work request is done, silent or not.
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
	/* NHCADV_DEVICE_FENCE */
	void (*wr_fence)(struct nhcadv_qp_ex *qp, const struct nhcadv_peer *peer,
			 uint64_t remote_rcxt, uint64_t local_rcxt, uint32_t tid);
};

/* NULL, EOPNOTSUPP: not a channel */
struct nhcadv_qp_ex *nhcadv_qp_ex_from_ibv_qp_ex(struct ibv_qp_ex *qp);

/*
 * A packet into the peer's receive FIFO.  Its bytes, at most nhcadv_device_attr.max_packet:
 * ibv_wr_set_sge*(), ibv_wr_set_inline_data*(), or neither for none.
 */
static inline void nhcadv_wr_packet(struct nhcadv_qp_ex *qp, const struct nhcadv_peer *peer,
				    uint64_t cookie)
{
	qp->wr_packet(qp, peer, cookie);
}

/* Write: the work request is done when its last packet has been sent. */
static inline void nhcadv_wr_write(struct nhcadv_qp_ex *qp, const struct nhcadv_peer *peer,
				   const struct nhcadv_transfer *transfer)
{
	qp->wr_write(qp, peer, transfer);
}

/*
 * Retransmit a part of a write, with the same tid and all else the same: @length bytes from
 * @offset on, which is a multiple of the segment; whole packets, or up to the end.  The transfer
 * is one with NHCADV_NOTIFY_INITIATOR; its completion has the wr_id of nhcadv_wr_write().
 */
static inline void nhcadv_wr_retransmit(struct nhcadv_qp_ex *qp, const struct nhcadv_peer *peer,
				     const struct nhcadv_transfer *transfer, uint32_t offset,
				     uint32_t length)
{
	qp->wr_retransmit(qp, peer, transfer, offset, length);
}

/* Read: the work request is done when the request has been sent. */
static inline void nhcadv_wr_read(struct nhcadv_qp_ex *qp, const struct nhcadv_peer *peer,
				  const struct nhcadv_transfer *transfer)
{
	qp->wr_read(qp, peer, transfer);
}

/*
 * When it is done, no byte of the rCxt's transfer lands here or leaves any more if its tid is
 * @tid or lower, now and in the future, and it does not complete.
 */
static inline void nhcadv_wr_cancel(struct nhcadv_qp_ex *qp, uint64_t local_rcxt, uint32_t tid)
{
	qp->wr_cancel(qp, local_rcxt, tid);
}

/*
 * Ask the peer's rCxt which packets of a transfer have come, from the one at @offset on, a
 * multiple of the segment.  The answer is a frame NHCADV_FRAME_STATUS, unless a packet is lost.
 */
static inline void nhcadv_wr_probe(struct nhcadv_qp_ex *qp, const struct nhcadv_peer *peer,
				   const struct nhcadv_transfer *transfer, uint32_t offset)
{
	qp->wr_probe(qp, peer, transfer, offset);
}

/*
 * Cancel a transfer at the peer, without its program: whatever of @tid or lower comes to its
 * @remote_rcxt after the answer is dropped there.  The answer is a frame NHCADV_FRAME_STATUS of
 * @local_rcxt, with the request's wr_id as its cookie: NHCADV_TRANSFER_FENCED, or
 * NHCADV_TRANSFER_COMPLETE if the transfer of @tid was complete before.  There is no answer if a packet
 * is lost, if bytes of the transfer are being copied at that moment, if the peer's own channel uses
 * the rCxt, or if the rCxt has seen a higher tid: fence again, for some time.
 * Only with NHCADV_DEVICE_FENCE at both ends; else EOPNOTSUPP here, and no answer.
 */
static inline void nhcadv_wr_fence(struct nhcadv_qp_ex *qp, const struct nhcadv_peer *peer,
				   uint64_t remote_rcxt, uint64_t local_rcxt, uint32_t tid)
{
	qp->wr_fence(qp, peer, remote_rcxt, local_rcxt, tid);
}

/* ---- completions ---- */

/**
 * enum nhcadv_wc_kind - opcode of a channel's completion: nhcadv_wc_read_kind(),
 * ibv_wc_read_opcode(), ibv_wc.opcode
 * @NHCADV_WC_LOCAL: send CQ: local completion of a work request
 * @NHCADV_WC_WRITE:  send CQ: all bytes of a write were placed at the peer
 * @NHCADV_WC_READ:   send CQ: all bytes of a read were placed in local memory
 * @NHCADV_WC_FRAME:  receive CQ: a frame is in the receive FIFO
 * @NHCADV_WC_REMOTE_WRITE: receive CQ: all bytes of a peer's write were placed in local memory
 * @NHCADV_WC_REMOTE_READ: receive CQ: all bytes of a peer's read were placed at the peer
 *
 * wr_id is that of the work request on the send CQ, the peer's cookie on the receive CQ.  A
 * transfer that is refused or lost has no completion.
 *
 * ibv_poll_cq() gives, beside that: byte_len, qp_num, src_qp (the peer's channel), and in
 * ibv_wc.invalidated_rkey the frame's index (NHCADV_WC_FRAME) or the tid (the others).
 * The rCxt is for extended CQs alone.
 */
enum nhcadv_wc_kind {
	NHCADV_WC_LOCAL	= 0xc0,
	NHCADV_WC_WRITE		= 0xc1,
	NHCADV_WC_READ		= 0xc2,
	NHCADV_WC_FRAME		= 0xc3,
	NHCADV_WC_REMOTE_WRITE	= 0xc4,
	NHCADV_WC_REMOTE_READ	= 0xc5,
};

/**
 * struct nhcadv_cq - an extended CQ, for what only completions of channels have
 * Any CQ of ibv_create_cq_ex(), whatever its wc_flags.  Between ibv_start_poll() and
 * ibv_end_poll(), for the current completion; 0 if it has none of that.
 */
struct nhcadv_cq {
	uint64_t comp_mask;
	uint64_t (*wc_read_rcxt)(struct nhcadv_cq *cq);
	uint32_t (*wc_read_tid)(struct nhcadv_cq *cq);
	uint32_t (*wc_read_frame)(struct nhcadv_cq *cq);
	uint32_t (*wc_read_src_channel)(struct nhcadv_cq *cq);
	enum nhcadv_wc_kind (*wc_read_kind)(struct nhcadv_cq *cq);
};

/* NULL, EOPNOTSUPP: not of an nhca device */
struct nhcadv_cq *nhcadv_cq_from_ibv_cq_ex(struct ibv_cq_ex *cq);

static inline enum nhcadv_wc_kind nhcadv_wc_read_kind(struct nhcadv_cq *cq)
{
	return cq->wc_read_kind(cq);
}

/* The rCxt of this side */
static inline uint64_t nhcadv_wc_read_rcxt(struct nhcadv_cq *cq)
{
	return cq->wc_read_rcxt(cq);
}

static inline uint32_t nhcadv_wc_read_tid(struct nhcadv_cq *cq)
{
	return cq->wc_read_tid(cq);
}

/* For nhcadv_frame(); any uint32_t may be one */
static inline uint32_t nhcadv_wc_read_frame(struct nhcadv_cq *cq)
{
	return cq->wc_read_frame(cq);
}

/* The peer's channel */
static inline uint32_t nhcadv_wc_read_src_channel(struct nhcadv_cq *cq)
{
	return cq->wc_read_src_channel(cq);
}

/* ---- the receive FIFO ---- */

/* nhcadv_frame.kind */
enum nhcadv_frame_kind {
	NHCADV_FRAME_PACKET	= 1,
	NHCADV_FRAME_STATUS	= 2,	/* what came of nhcadv_wr_probe() or nhcadv_wr_fence() */
};

/* nhcadv_frame.status: a transfer, at the rCxt that was probed */
enum nhcadv_transfer_status {
	NHCADV_TRANSFER_COMPLETE	= 0,	/* is complete */
	NHCADV_TRANSFER_PARTIAL	= 1,	/* is not: data is a bitmap, see nhcadv_frame_has() */
	NHCADV_TRANSFER_NONE	= 2,	/* nothing of it has come, or the rCxt has another */
	NHCADV_TRANSFER_PROT_ERR = 3,	/* was refused, and will not be complete */
	NHCADV_TRANSFER_FENCED	= 4,	/* was cancelled by nhcadv_wr_fence(): no byte of it lands */
};

#define NHCADV_FRAME_DATA	1984

/**
 * struct nhcadv_frame - a frame in the receive FIFO
 * @seq:     the provider's
 * @kind:    enum nhcadv_frame_kind
 * @status:  NHCADV_FRAME_STATUS: enum nhcadv_transfer_status
 * @length:  bytes of @data
 * @src_key: key of the peer's channel; NHCADV_FRAME_STATUS: its lower 32 bits
 * @src_rcxt, @rcxt: NHCADV_FRAME_STATUS: of the peer, which was probed, and of this side
 * @tid, @total, @segment: NHCADV_FRAME_STATUS: of the transfer
 * @offset:  NHCADV_FRAME_STATUS: of the first packet that @data is about
 * @cookie:  the peer's; NHCADV_FRAME_STATUS: the probe's
 * @received: NHCADV_FRAME_STATUS: packets of the transfer that were received
 * @src_channel: the peer's channel
 * @data:    payload, or the bitmap
 */
struct nhcadv_frame {
	uint32_t seq;
	uint8_t kind;
	uint8_t status;
	uint16_t length;
	uint64_t src_key;
	uint64_t src_rcxt;
	uint64_t rcxt;
	uint32_t tid;
	uint32_t total;
	uint32_t offset;
	uint16_t segment;
	uint16_t reserved;
	uint64_t cookie;
	uint32_t received;
	uint32_t src_channel;
	uint8_t data[NHCADV_FRAME_DATA];
};

/**
 * nhcadv_frame - look at a frame, in place
 * @index: as the completion NHCADV_WC_FRAME has it
 * The frame stays as it is until it is released, and is not to be looked at after that.  NULL:
 * there is none of that index.
 */
const struct nhcadv_frame *nhcadv_frame(struct ibv_qp *qp, uint32_t index);

/**
 * nhcadv_release_frame - give a frame's slot back
 * In any order, from any thread; the adapter gets slots back in the order that they were filled,
 * so that one frame that is kept keeps all that come behind it.  EINVAL: there is none of that
 * index, or it is released already.
 */
int nhcadv_release_frame(struct ibv_qp *qp, uint32_t index);

/*
 * NHCADV_FRAME_STATUS: has packet number @packet of the transfer come, as far as this frame tells?
 * A frame tells of packets from @offset / @segment on, 8 * @length of them at most.
 */
static inline bool nhcadv_frame_has(const struct nhcadv_frame *frame, uint32_t packet)
{
	uint32_t bit;

	if (frame->status == NHCADV_TRANSFER_COMPLETE)
		return true;
	if (frame->status != NHCADV_TRANSFER_PARTIAL || !frame->segment)
		return false;
	bit = packet - frame->offset / frame->segment;
	return bit / 8 < frame->length && (frame->data[bit / 8] >> bit % 8 & 1);
}

#ifdef __cplusplus
}
#endif

#endif /* NHCADV_H */
