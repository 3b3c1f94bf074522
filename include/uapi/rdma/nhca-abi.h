/* SPDX-License-Identifier: ((GPL-2.0 WITH Linux-syscall-note) OR Linux-OpenIB) */
/*
 * The ABI between the nhca kernel driver and its rdma-core provider.
 *
 * Work queues and completion queues are rings in memory that both sides map.
 * Each ring has one producer and one consumer; each index has one owner.
 * The kernel does not trust what it reads here: it bounds every index, and it
 * copies every entry once and checks the copy.
 */
#ifndef RDMA_NHCA_ABI_H
#define RDMA_NHCA_ABI_H

#include <linux/stddef.h>
#include <linux/types.h>
#include <rdma/nhca_user_ioctl_cmds.h>
#include <rdma/nhca_user_ioctl_verbs.h>

#define NHCA_ABI_VERSION	1

/* Not a value of enum rdma_driver_id: 'n' 'h' */
#define NHCA_RDMA_DRIVER_ID	0x6e68

#define NHCA_MAX_SGE		32
#define NHCA_MAX_INLINE		512

/**
 * struct nhca_ring_hdr - the first NHCA_RING_HDR_SIZE bytes of a mapped ring
 * @prod:  entries ever produced, modulo 2^32; written with release semantics
 *         by the producer after the entries themselves
 * @cons:  entries ever consumed, modulo 2^32; written with release semantics
 *         by the consumer when it no longer needs the entries
 * @last_event_cons: CQ: @cons when the last completion event was raised, if there were entries
 *         to consume, else an index that the consumer is not at; written by the kernel only
 * @arm_seq_acked: CQ: the @arm_seq that this event acknowledged; written by the kernel only
 * @arm_seq: CQ: requests a completion event while it differs from @arm_seq_acked; see
 *         NHCA_RING_F_ARM_SEQ
 * @flags: NHCA_RING_F_*; written by the kernel only
 *
 * SQ, RQ and SRQ: user space owns @prod, the kernel owns @cons.
 * CQ: the kernel owns @prod, user space owns @cons.
 * Entry i of the ring is slot (i & (entries - 1)); prod - cons is the number
 * of entries in use and never exceeds the number of slots.
 *
 * The kernel moves @cons of an SQ when it has completed the work request (not
 * when it has read it), whether or not the request asked for a completion.
 */
struct nhca_ring_hdr {
	__u32 prod;
	__u32 last_event_cons;
	__u32 arm_seq_acked;
	__u32 pad0[13];
	__u32 cons;
	__u32 arm_seq;
	__u32 pad1[14];
	__u32 flags;
	__u32 pad2[31];
};

/* The slots begin here */
#define NHCA_RING_HDR_SIZE	256

/*
 * The kernel needs a receive doorbell after entries were produced to this RQ,
 * because the QP is in the error state and flushes them.  The producer loads
 * the flag after its store to @prod, with a full barrier in between.
 */
#define NHCA_RING_F_NEED_DOORBELL	(1u << 0)

/*
 * The kernel reads @arm_seq of this CQ with every entry that it produces, so that arming needs no
 * system call.  To arm, the consumer stores a value that differs from all recent ones, with one of
 * NHCA_ARM_* in its low bits.  After a full barrier it loads @prod and @cons.  It also rings the CQ
 * doorbell if there are unconsumed entries and @cons differs from @last_event_cons (it has consumed
 * entries since the last event).  A consumer that has armed and then consumes only some of the
 * entries makes the same check, again after a full barrier.  If the CQ has moderation, the consumer
 * rings the CQ doorbell whenever it arms.
 */
#define NHCA_RING_F_ARM_SEQ		(1u << 1)

#define NHCA_ARM_SOLICITED	1u
#define NHCA_ARM_NEXT_COMP		2u
#define NHCA_ARM_MASK		3u

struct nhca_sge {
	__aligned_u64 addr;
	__u32 length;
	__u32 lkey;
};

/* nhca_send_wqe.opcode: the values of enum ib_wr_opcode / ibv_wr_opcode */
enum nhca_wr_opcode {
	NHCA_WR_RDMA_WRITE		= 0,
	NHCA_WR_RDMA_WRITE_WITH_IMM	= 1,
	NHCA_WR_SEND			= 2,
	NHCA_WR_SEND_WITH_IMM		= 3,
	NHCA_WR_RDMA_READ		= 4,
	NHCA_WR_ATOMIC_CMP_AND_SWP	= 5,
	NHCA_WR_ATOMIC_FETCH_AND_ADD	= 6,
	NHCA_WR_LOCAL_INV		= 7,
	NHCA_WR_BIND_MW			= 8,
	NHCA_WR_SEND_WITH_INV		= 9,
	NHCA_WR_FLUSH			= 14,
	NHCA_WR_ATOMIC_WRITE		= 15,
	/* kernel consumers only */
	NHCA_WR_REG_MR			= 32,
	/* channels only: see struct nhca_rcxt_wr */
	NHCA_WR_CH_PACKET		= 64,
	NHCA_WR_CH_WRITE		= 65,
	NHCA_WR_CH_READ			= 66,
	NHCA_WR_CH_CANCEL		= 67,
	NHCA_WR_CH_PROBE		= 68,
};

/* nhca_send_wqe.flags: the values of enum ib_send_flags / ibv_send_flags */
#define NHCA_SEND_FENCE		(1u << 0)
#define NHCA_SEND_SIGNALED	(1u << 1)
#define NHCA_SEND_SOLICITED	(1u << 2)
#define NHCA_SEND_INLINE	(1u << 3)

/* nhca_send_wqe.flush.type: the values of enum ib_placement_type / ibv_placement_type */
#define NHCA_FLUSH_GLOBAL	(1u << 0)
#define NHCA_FLUSH_PERSISTENT	(1u << 1)
/* nhca_send_wqe.flush.level: the values of enum ib_selectivity_level / ibv_selectivity_level */
#define NHCA_FLUSH_RANGE	0
#define NHCA_FLUSH_REGION	1

/* nhca_rcxt_wr.notify: which sides get a completion when all bytes of the transfer are in place */
#define NHCA_NOTIFY_INITIATOR	(1u << 0)
#define NHCA_NOTIFY_TARGET	(1u << 1)

/* nhca_rcxt_wr.flags: NHCA_WR_CH_WRITE: packets of a transfer that were sent before */
#define NHCA_RCXT_WR_AGAIN	(1u << 0)

/* Bytes of a transfer, and packets; nhca_rcxt_wr.segment is a multiple of 4 from 64 to 65532 */
#define NHCA_MAX_TRANSFER	(16u << 20)
#define NHCA_MAX_TRANSFER_PACKETS	16384

/**
 * struct nhca_rcxt_wr - a channel's work request, where others have SGEs; not in
 * NHCA_WR_CH_PACKET
 * @local_pvo:  write: where the transfer's bytes are; read: where they go; job memory of this
 *         host
 * @remote_pvo: the same on the peer's host
 * @tid:     of the transfer.  Higher than any before on both rCxts; with NHCA_RCXT_WR_AGAIN,
 *           NHCA_WR_CH_PROBE: that of the transfer; NHCA_WR_CH_CANCEL: that, or a higher one, to
 *           refuse what may come up to it
 * @total:   bytes of the transfer, 0 to NHCA_MAX_TRANSFER
 * @offset:  write: where in the transfer sending begins, a multiple of @segment, 0 without
 *           NHCA_RCXT_WR_AGAIN; probe: of the first packet to be told of
 * @length:  write: bytes to send from there, @total without NHCA_RCXT_WR_AGAIN
 * @segment: bytes in each packet but the last; at most nhca_channel_info.segment, and what the
 *           peer can receive; 0: nhca_channel_info.segment (not for NHCA_RCXT_WR_AGAIN and
 *           probes)
 * @notify:  NHCA_NOTIFY_*
 * @flags:   NHCA_RCXT_WR_*
 * @reserved: 0
 *
 * Write: nhca_send_wqe.chan.local_rcxt waits for the notice; the work request is done when its
 * last packet has been sent.  With NHCA_NOTIFY_INITIATOR the payload leaves by reference and the
 * memory may be used again after NHCA_WC_CH_WRITE, else it is copied and may be used when the work
 * request is done.  Read: local_rcxt takes the payload; done when the request has been sent.
 * Cancel: of @local_rcxt and @tid only; done when no byte of the transfer lands, or is sent, any
 * more; if it was complete already, nhca_cqe.vendor_err is EALREADY.  A write that is cancelled,
 * or whose rCxt is released, while it is being sent is done with IB_WC_WR_FLUSH_ERR, and nobody is
 * told unless it is signaled.  Probe: a frame NHCA_FRAME_STATUS comes, unless a packet is lost.
 *
 * A work request that cannot be puts the channel into the error state.  One that only comes too
 * late or too early for its rCxts does not: its completion has an error status, and in
 * nhca_cqe.vendor_err an errno: EINVAL (tid not higher, other sizes), ENOENT (not the channel's
 * rCxt), EMSGSIZE (segment, with the MTU of now), ENOMEM.
 * NHCA_WR_CH_PACKET: SGEs or inline data of at most NHCA_FRAME_DATA bytes.
 */
struct nhca_rcxt_wr {
	__aligned_u64 local_pvo;
	__aligned_u64 remote_pvo;
	__u32 tid;
	__u32 total;
	__u32 offset;
	__u32 length;
	__u32 segment;
	__u8 notify;
	__u8 flags;
	__u16 reserved;
};

/**
 * struct nhca_send_wqe - one send work request, as posted
 * @wr_id:     given back in the completion
 * @opcode:    enum nhca_wr_opcode
 * @num_sge:   elements of @sge in use; 0 if NHCA_SEND_INLINE
 * @flags:     NHCA_SEND_*
 * @inline_len: bytes at @data if NHCA_SEND_INLINE, else 0
 * @ex:        immediate data (big endian) or the R_Key to invalidate
 * @xrc_srqn:  XRC: number of the peer's SRQ; else 0
 * @rdma:      RDMA WRITE, READ; ATOMIC WRITE, of 8 bytes
 * @atomic:    atomics
 * @flush:     FLUSH, which has neither SGEs nor inline data: NHCA_FLUSH_* and, with
 *             NHCA_FLUSH_RANGE, how many bytes
 * @ud:        UD and GSI: address handle by number, never by address
 * @mw:        BIND_MW
 * @chan:      channels: the peer's address handle, its channel's QPN and key; cookie, for the
 *             peer's program; rCxts of both sides, as NHCA_RCXT_ID() has them
 * @rcxt:      NHCA_WR_CH_* but NHCA_WR_CH_PACKET: one; num_sge is 0
 */
struct nhca_send_wqe {
	__aligned_u64 wr_id;
	__u8 opcode;
	__u8 num_sge;
	__u16 flags;
	__u32 inline_len;
	union {
		__u32 imm_data;
		__u32 invalidate_rkey;
	} ex;
	__u32 xrc_srqn;
	union {
		struct {
			__aligned_u64 remote_addr;
			__u32 rkey;
			__u32 reserved;
		} rdma;
		struct {
			__aligned_u64 remote_addr;
			__aligned_u64 compare_add;
			__aligned_u64 swap;
			__u32 rkey;
			__u32 reserved;
		} atomic;
		struct {
			__aligned_u64 remote_addr;
			__u32 rkey;
			__u32 length;
			__u32 type;
			__u32 level;
		} flush;
		struct {
			__u32 ah_id;
			__u32 remote_qpn;
			__u32 remote_qkey;
			__u32 pkey_index;
		} ud;
		struct {
			__aligned_u64 addr;
			__aligned_u64 length;
			__u32 mr_lkey;
			__u32 mw_rkey;
			__u32 new_rkey;
			__u32 access;
		} mw;
		struct {
			__u32 ah_id;
			__u32 remote_qpn;
			__u32 remote_key;
			__u32 reserved;
			__aligned_u64 cookie;
			__aligned_u64 local_rcxt;
			__aligned_u64 remote_rcxt;
		} chan;
		__u8 op_space[40];
	};
	union {
		__DECLARE_FLEX_ARRAY(struct nhca_sge, sge);
		__DECLARE_FLEX_ARRAY(__u8, data);
		__DECLARE_FLEX_ARRAY(struct nhca_rcxt_wr, rcxt);
	};
};

/**
 * struct nhca_recv_wqe - one receive work request, as posted
 * @wr_id:   given back in the completion
 * @num_sge: elements of @sge in use
 */
struct nhca_recv_wqe {
	__aligned_u64 wr_id;
	__u32 num_sge;
	__u32 reserved;
	struct nhca_sge sge[];
};

/* nhca_cqe.flags: the values of enum ibv_wc_flags */
#define NHCA_WC_GRH		(1u << 0)
#define NHCA_WC_WITH_IMM	(1u << 1)
#define NHCA_WC_WITH_INV	(1u << 3)

/**
 * enum nhca_channel_wc - nhca_cqe.opcode of channels
 * @NHCA_WC_CH_POSTED: send CQ: the engine is done with a signaled work request
 * @NHCA_WC_CH_WRITE:  send CQ: a write of ours is in place at the peer
 * @NHCA_WC_CH_READ:   send CQ: a read of ours is in place here
 * @NHCA_WC_CH_FRAME:  receive CQ: nhca_cqe.chan.frame is the free-running index of a frame
 * @NHCA_WC_CH_WRITTEN: receive CQ: a peer's write is in place here (NHCA_NOTIFY_TARGET)
 * @NHCA_WC_CH_HAS_READ: receive CQ: a peer's read is in place there (NHCA_NOTIFY_TARGET)
 *
 * wr_id is that of the work request on the send CQ, the peer's cookie on the receive CQ.  A
 * transfer that is refused or lost has no completion: only time tells, or a probe.
 */
enum nhca_channel_wc {
	NHCA_WC_CH_POSTED	= 0xc0,
	NHCA_WC_CH_WRITE	= 0xc1,
	NHCA_WC_CH_READ		= 0xc2,
	NHCA_WC_CH_FRAME	= 0xc3,
	NHCA_WC_CH_WRITTEN	= 0xc4,
	NHCA_WC_CH_HAS_READ	= 0xc5,
};

/*
 * nhca_cqe.sl.  RoCEv2 carries no service level; what stands in its place is the kind of
 * packet (IBTA A17.4.5.1 wants it told, struct ibv_wc has no field for it), as mlx5 gives
 * it and UCX looks at it.  An address that is made from such a completion has no priority.
 */
#define NHCA_SL_ROCE_V2		8
#define NHCA_SL_IPV6		(NHCA_SL_ROCE_V2 | 1)
#define NHCA_SL_IPV4		(NHCA_SL_ROCE_V2 | 2)

/**
 * struct nhca_cqe - one work completion
 * @wr_id:       of the work request
 * @timestamp:   completion time, CLOCK_MONOTONIC_RAW nanoseconds; 0 unless the CQ was made
 *               with IB_UVERBS_CQ_FLAGS_TIMESTAMP_COMPLETION
 * @status:      enum ib_wc_status / ibv_wc_status (same values)
 * @opcode:      enum ibv_wc_opcode, the same values as enum ib_wc_opcode but
 *               for IB_WC_REG_MR, which only kernel consumers see
 * @flags:       NHCA_WC_*
 * @vendor_err:  0, or what the driver's documentation lists
 * @byte_len:    bytes received or read
 * @ex:          immediate data (big endian) or invalidated R_Key
 * @qp_num:      local QP
 * @src_qp:      UD: source QP; channels: the peer's channel
 * @pkey_index:  GSI: P_Key index
 * @sl:          UD: NHCA_SL_*
 * @network_hdr_type: UD: enum rdma_network_type
 * @smac:        UD: source MAC, zero if not known
 * @vlan_id:     UD: VLAN, 0xffff for none
 * @chan:        channels: rCxt of this side, tid, frame; 0 if the completion has none
 * @kernel:      zero; private to the kernel in rings that are not mapped
 */
struct nhca_cqe {
	__aligned_u64 wr_id;
	__aligned_u64 timestamp;
	__u8 status;
	__u8 opcode;
	__u16 flags;
	__u32 vendor_err;
	__u32 byte_len;
	union {
		__u32 imm_data;
		__u32 invalidated_rkey;
	} ex;
	__u32 qp_num;
	__u32 src_qp;
	union {
		struct {
			__u16 pkey_index;
			__u8 sl;
			__u8 network_hdr_type;
			__u8 smac[6];
			__u16 vlan_id;
			__u32 reserved;
		};
		struct {
			__u32 rcxt_index;
			__u32 rcxt_key;
			__u32 tid;
			__u32 frame;
		} chan;
	};
	__aligned_u64 kernel;
};

/**
 * struct nhca_ring_info - how to map a ring; all zero for a ring that is not there
 * @offset:  for mmap() on the uverbs file
 * @size:    bytes to map
 * @entries: number of slots, a power of two
 * @stride:  bytes from slot to slot, a multiple of 16
 */
struct nhca_ring_info {
	__aligned_u64 offset;
	__u32 size;
	__u32 entries;
	__u32 stride;
	__u32 reserved;
};

/**
 * struct nhca_ring_mem - memory of the process' own that a ring shall lie in; all zero: memory of
 * the kernel's, which is mapped as nhca_ring_info says
 * @addr: of the header; a multiple of the page size
 * @size: bytes; nhca_ring_bytes() at least, rounded up to whole pages
 *
 * The kernel clears the header, and keeps the memory pinned until the ring is gone, on the account
 * of RLIMIT_MEMLOCK.  nhca_ring_info.offset is 0 then.  EINVAL: wrong, or there is no such ring.
 */
struct nhca_ring_mem {
	__aligned_u64 addr;
	__aligned_u64 size;
};

/* The stride of a ring of struct nhca_send_wqe */
static inline __u32 nhca_send_stride(__u32 sges, __u32 inline_bytes)
{
	__u32 space = sges * sizeof(struct nhca_sge);

	if (space < inline_bytes)
		space = inline_bytes;
	return (sizeof(struct nhca_send_wqe) + space + 63) & ~63u;
}

/* of struct nhca_recv_wqe; queue pairs and work queues receive with 1 SGE at least */
static inline __u32 nhca_recv_stride(__u32 sges)
{
	return sizeof(struct nhca_recv_wqe) + sges * sizeof(struct nhca_sge);
}

/* What a ring takes; @entries: 1 at least, rounded up to a power of two */
static inline __u64 nhca_ring_bytes(__u32 entries, __u32 stride)
{
	return NHCA_RING_HDR_SIZE + (__u64)entries * stride;
}

/* The kernel takes NHCA_WR_LOCAL_INV and NHCA_WR_BIND_MW from user space */
#define NHCA_FEATURE_LOCAL_OPS	(1u << 0)
/* The kernel has channels */
#define NHCA_FEATURE_CHANNELS	(1u << 1)
/* The kernel takes NHCA_WR_FLUSH and NHCA_WR_ATOMIC_WRITE */
#define NHCA_FEATURE_FLUSH	(1u << 2)
/* The kernel has XRC */
#define NHCA_FEATURE_XRC	(1u << 3)
/* The kernel takes IB_QP_RATE_LIMIT */
#define NHCA_FEATURE_RATE_LIMIT	(1u << 4)
/* The kernel has raw packet QPs and flow steering */
#define NHCA_FEATURE_RAW	(1u << 5)
/* The kernel takes struct nhca_ring_mem */
#define NHCA_FEATURE_RING_MEM	(1u << 6)

/**
 * struct nhca_alloc_ucontext_resp - answer to IB_USER_VERBS_CMD_GET_CONTEXT
 * @features: NHCA_FEATURE_*
 */
struct nhca_alloc_ucontext_resp {
	__u32 features;
	__u32 reserved;
};

struct nhca_create_cq_cmd {
	struct nhca_ring_mem cq;
};

struct nhca_create_cq_resp {
	struct nhca_ring_info cq;
};

struct nhca_resize_cq_cmd {
	struct nhca_ring_mem cq;
};

struct nhca_resize_cq_resp {
	struct nhca_ring_info cq;
};

struct nhca_create_srq_cmd {
	struct nhca_ring_mem rq;
};

struct nhca_create_srq_resp {
	struct nhca_ring_info rq;
	__u32 srqn;
	__u32 reserved;
};

/* cmd of IB_USER_VERBS_CMD_MODIFY_SRQ: where the kernel writes a nhca_ring_info */
struct nhca_modify_srq_cmd {
	__aligned_u64 ring_info_addr;
	struct nhca_ring_mem rq;
};

struct nhca_create_qp_cmd {
	struct nhca_ring_mem sq;
	struct nhca_ring_mem rq;
};

struct nhca_create_qp_resp {
	struct nhca_ring_info sq;
	struct nhca_ring_info rq;
};

/* of IB_USER_VERBS_EX_CMD_CREATE_WQ */
struct nhca_create_wq_cmd {
	struct nhca_ring_mem rq;
};

struct nhca_create_wq_resp {
	struct nhca_ring_info rq;
};

/* bytes of a key for the Toeplitz hash */
#define NHCA_RSS_KEY		40

/* what of a frame is hashed: enum ibv_rx_hash_fields */
#define NHCA_RSS_SRC_IPV4	(1u << 0)
#define NHCA_RSS_DST_IPV4	(1u << 1)
#define NHCA_RSS_SRC_IPV6	(1u << 2)
#define NHCA_RSS_DST_IPV6	(1u << 3)
#define NHCA_RSS_SRC_PORT_TCP	(1u << 4)
#define NHCA_RSS_DST_PORT_TCP	(1u << 5)
#define NHCA_RSS_SRC_PORT_UDP	(1u << 6)
#define NHCA_RSS_DST_PORT_UDP	(1u << 7)
#define NHCA_RSS_FIELDS		0xff

/**
 * struct nhca_create_rss_cmd - cmd of IB_USER_VERBS_CMD_CREATE_QP, with an indirection table
 * @fields: NHCA_RSS_*; the hash is Toeplitz', over them in the order source address, destination
 *	address, source port, destination port
 * @reserved: 0
 * @key: of the hash
 */
struct nhca_create_rss_cmd {
	__u32 fields;
	__u32 reserved;
	__u8 key[NHCA_RSS_KEY];
};

struct nhca_create_ah_resp {
	__u32 ah_id;
	__u32 reserved;
};

/* ---- channels: QPs of type IB_QPT_DRIVER; Documentation/rcxt.rst ---- */

/*
 * An rCxt id as work requests and ioctls have it.  The key is opaque; on the wire both halves are
 * fields of their own.
 */
#define NHCA_RCXT_ID(index, key)	((__u64)(key) << 32 | (index))
#define NHCA_RCXT_INDEX(id)		((__u32)(id))
#define NHCA_RCXT_KEY(id)		((__u32)((id) >> 32))

/* A frame of the receive FIFO, and what of it is payload */
#define NHCA_FRAME_SIZE		2048
#define NHCA_FRAME_DATA		1984

enum nhca_frame_kind {
	NHCA_FRAME_PACKET	= 1,
	NHCA_FRAME_STATUS	= 2,
};

/* nhca_frame.status: what has become of a transfer at the rCxt that was probed */
enum nhca_transfer_status {
	NHCA_TRANSFER_DONE	= 0,
	NHCA_TRANSFER_PARTIAL	= 1,
	NHCA_TRANSFER_NONE	= 2,
	NHCA_TRANSFER_VIOLATED	= 3,
};

/**
 * struct nhca_frame - a slot of the receive FIFO
 * @seq:     index of the frame + 1, modulo 2^32: written last, with release semantics.  Until
 *           then the frame is not there yet, whatever prod says: several engines fill frames at a
 *           time
 * @kind:    enum nhca_frame_kind
 * @status:  NHCA_FRAME_STATUS: enum nhca_transfer_status
 * @length:  bytes of @data
 * @src_channel, @src_key: the peer's channel
 * @src_rcxt, @rcxt: NHCA_FRAME_STATUS: of the peer, which was probed, and of this side
 * @tid, @total, @segment: NHCA_FRAME_STATUS: of the transfer
 * @offset:  NHCA_FRAME_STATUS: of the first packet that @data is about
 * @cookie:  the peer's, or the probe's
 * @have:    NHCA_FRAME_STATUS: packets of the transfer that have come
 * @reserved, @reserved2: 0
 * @data:    payload; NHCA_FRAME_STATUS, NHCA_TRANSFER_PARTIAL: bit i % 8 of byte i / 8 says
 *           whether packet @offset / @segment + i has come
 *
 * The FIFO is a ring like others (struct nhca_ring_hdr): the kernel owns prod, the frames that it
 * has begun to fill; user space owns cons.  When it is full, frames are dropped and counted.
 */
struct nhca_frame {
	__u32 seq;
	__u8 kind;
	__u8 status;
	__u16 length;
	__u32 src_channel;
	__u32 src_key;
	__aligned_u64 src_rcxt;
	__aligned_u64 rcxt;
	__u32 tid;
	__u32 total;
	__u32 offset;
	__u16 segment;
	__u16 reserved;
	__aligned_u64 cookie;
	__u32 have;
	__u32 reserved2;
	__u8 data[NHCA_FRAME_DATA];
};

/**
 * struct nhca_create_channel_cmd - cmd of create QP, type IB_QPT_DRIVER
 * @job:     job id, not 0; EPERM if it is another user's
 * @frames:  slots of the receive FIFO; rounded up to a power of two, at most 32768; 0: none
 * @quantum: packets that the channel may send before others have their turn; 0: the default
 * @flags:   0
 *
 * max_send_wr, max_send_sge and max_inline_data (at most NHCA_FRAME_DATA) are those of the send
 * FIFO, whose slots have room for 128 bytes at least.  There is no receive queue: max_recv_wr and
 * max_recv_sge are 0.  A channel sends and receives as soon as it is there; the only state that
 * modify QP takes it to is IB_QPS_ERR.
 */
struct nhca_create_channel_cmd {
	__u32 job;
	__u32 frames;
	__u32 quantum;
	__u32 flags;
};

/**
 * struct nhca_create_channel_resp - its answer
 * @sq:   the send FIFO: a ring of struct nhca_send_wqe
 * @fifo: the receive FIFO: a ring of struct nhca_frame; zeros if there is none
 * @key:  of the channel: peers have it on every packet to it
 * @segment: as nhca_channel_info.segment
 */
struct nhca_create_channel_resp {
	struct nhca_ring_info sq;
	struct nhca_ring_info fifo;
	__u32 key;
	__u32 segment;
};

#endif /* RDMA_NHCA_ABI_H */
