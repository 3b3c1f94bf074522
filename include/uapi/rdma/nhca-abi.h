/* SPDX-License-Identifier: ((GPL-2.0 WITH Linux-syscall-note) OR Linux-OpenIB) */
/*
 * The ABI between the nhca kernel driver and its rdma-core provider.
 *
 * Work queues and completion queues are rings in memory that user space and the kernel share.
 * Each ring has one producer and one consumer; each index has one owner.  The kernel does not
 * trust user space: it checks that every index is within its bounds, and it checks and uses only
 * copies of the entries.
 *
 * Later versions of this header add definitions and never change an existing one.  Commands and
 * responses get new fields at the end, and reserved fields may get a meaning.  Both sides accept a
 * command or response that is shorter or longer than the struct in their version of this header:
 * missing fields are 0, and fields of a command that the kernel does not know must be 0.  A command
 * must only be long enough for its mandatory fields.  Structs within other structs or rings never
 * grow.  Documentation/abi.rst has the rules.
 */
#ifndef RDMA_NHCA_ABI_H
#define RDMA_NHCA_ABI_H

#include <linux/stddef.h>
#include <linux/types.h>
#include <rdma/nhca_user_ioctl_cmds.h>
#include <rdma/nhca_user_ioctl_verbs.h>

#define NHCA_ABI_VERSION	1

/* The letters 'n' and 'h'; enum rdma_driver_id has no value for nhca */
#define NHCA_RDMA_DRIVER_ID	0x6e68

#define NHCA_MAX_SGE		32
#define NHCA_MAX_INLINE		512

/**
 * struct nhca_ring_hdr - the first NHCA_RING_HDR_SIZE bytes of a mapped ring
 * @prod:  entries ever produced, modulo 2^32; written with release semantics by the producer after
 *         the entries themselves (receive FIFO: before the entries, see struct nhca_frame)
 * @cons:  entries ever consumed, modulo 2^32; written with release semantics by the consumer when
 *         it no longer needs the entries
 * @last_event_cons: CQ: @cons when the last completion event was raised, if the ring then had
 *         entries to consume; otherwise an index other than @cons; written by the kernel only
 * @arm_seq_acked: CQ: value of @arm_seq that the last completion event acknowledged; written by
 *         the kernel only
 * @arm_seq: CQ: requests an event while it differs from @arm_seq_acked; see NHCA_RING_F_ARM_SEQ
 * @flags: NHCA_RING_F_*; written by the kernel only
 * @pad0:  puts @cons into another cache line than @prod
 * @pad1:  puts @flags into another cache line than @cons
 * @pad2:  pads the header to NHCA_RING_HDR_SIZE bytes
 *
 * SQ, RQ and SRQ: user space owns @prod, the kernel owns @cons.  CQ and receive FIFO: the kernel
 * owns @prod, user space owns @cons.  Entry i of the ring is in slot (i & (entries - 1)); prod -
 * cons is the number of entries in use and never exceeds the number of slots.
 *
 * The kernel advances @cons of an SQ past a work request when the request is complete (not when
 * the kernel has read the request), whether or not the request is signaled.
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

/* Offset of slot 0 in the ring, in bytes */
#define NHCA_RING_HDR_SIZE	256

/*
 * User space must call NHCA_METHOD_QP_RECV_DOORBELL after it has produced entries in this RQ,
 * because the QP is in the error state and must flush these entries.  The producer loads the flag
 * after its store to @prod, with a full barrier in between.
 */
#define NHCA_RING_F_NEED_DOORBELL	(1u << 0)

/*
 * The kernel reads @arm_seq of this CQ with every entry that it produces, so that arming needs no
 * system call.  To arm, the consumer stores a value in @arm_seq that differs from all recent
 * values, with one of NHCA_ARM_* in its low bits.  After a full barrier it loads @prod and @cons.
 * If there are unconsumed entries, and the consumer has consumed entries since the last event
 * (@cons differs from @last_event_cons), the consumer also sends IB_USER_VERBS_CMD_REQ_NOTIFY_CQ,
 * because the kernel may have produced these entries before it could read the new @arm_seq.
 * A consumer that has armed and then consumes only some of the entries repeats the barrier and this
 * check.  If the CQ has moderation, the consumer sends the command each time that it arms.
 */
#define NHCA_RING_F_ARM_SEQ		(1u << 1)

#define NHCA_ARM_SOLICITED	1u
#define NHCA_ARM_NEXT_COMP		2u
#define NHCA_ARM_MASK		3u

/**
 * struct nhca_sge - a scatter/gather element
 * @addr:   address of the first byte
 * @length: bytes
 * @lkey:   L_Key
 */
struct nhca_sge {
	__aligned_u64 addr;
	__u32 length;
	__u32 lkey;
};

/* nhca_send_wqe.opcode: values of enum ib_wr_opcode or ibv_wr_opcode, and those of channels */
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
	NHCA_WR_CH_FENCE		= 69,
	NHCA_WR_CH_MOVE			= 70,
	NHCA_WR_CH_PART			= 71,
	NHCA_WR_CH_ACCUMULATE		= 72,
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

/* nhca_rcxt_wr.flags: repeat a part of a write or of a move; for a read, see the next flags */
#define NHCA_RCXT_WR_RETRANSMIT	(1u << 0)
/*
 * NHCA_WR_CH_WRITE (NHCA_FEATURE_FRAMES): each packet goes into a frame of the peer's receive FIFO
 * (NHCA_FRAME_WRITE), and not into job memory: remote_pvo is 0, and segment is at most
 * NHCA_FRAME_DATA.
 * NHCA_WR_CH_READ (NHCA_FEATURE_READ_FRAMES): each packet goes into a frame of this channel's
 * receive FIFO (NHCA_FRAME_READ): local_pvo is 0, and segment is at most NHCA_FRAME_DATA.  The peer
 * sends length bytes from offset on.  Without NHCA_RCXT_WR_RETRANSMIT, offset is 0
 */
#define NHCA_RCXT_WR_FRAMES	(1u << 1)
/*
 * Half-send read (NHCA_FEATURE_ASK).  NHCA_WR_CH_READ: the request goes into a frame of the peer's
 * receive FIFO (NHCA_FRAME_REQUEST), and the peer's program answers: remote_pvo may be any value,
 * and offset and length are 0.  With NHCA_RCXT_WR_RETRANSMIT, the request is sent again.
 * NHCA_WR_CH_PART: the packet belongs to the answer: remote_pvo is nhca_frame_request.reply_pvo,
 * and notify is 0
 */
#define NHCA_RCXT_WR_PROGRAM	(1u << 2)
#define NHCA_RCXT_WR_ORDERED	(1u << 3)	/* enum nhca_accumulate_op describes this flag */

/* Limits of a transfer, in bytes and in packets */
#define NHCA_MAX_TRANSFER	(16u << 20)
#define NHCA_MAX_TRANSFER_PACKETS	16384

/* Limits of nhca_rcxt_wr.segment, in bytes; a segment is a multiple of 4 */
#define NHCA_MIN_SEGMENT	64
#define NHCA_MAX_SEGMENT	65532

/**
 * struct nhca_rcxt_wr - parameters of a channel's work request, in the place of SGEs
 * @local_pvo:  PVO on this host: source of a write, destination of a read.  Move: PVO at the target
 * @remote_pvo: PVO on the peer's host: destination of a write, source of a read or move
 * @tid:     transfer id.  A new transfer needs a tid above all earlier ones of both rCxts.
 *           NHCA_RCXT_WR_RETRANSMIT, NHCA_WR_CH_PROBE: tid of the transfer.  NHCA_WR_CH_CANCEL,
 *           NHCA_WR_CH_FENCE: the rCxt cancels its transfer if the tid of the transfer is @tid or
 *           lower; from then on it refuses tids up to @tid
 * @total:   bytes of the transfer, 0 to NHCA_MAX_TRANSFER
 * @offset:  write, move: offset of the first byte to send, a multiple of @segment; 0 without
 *           NHCA_RCXT_WR_RETRANSMIT.  Probe: offset of the first packet that the status reports.
 *           Part: offset of the packet.  Read: see NHCA_RCXT_WR_FRAMES
 * @length:  write, move: bytes to send from @offset on; without NHCA_RCXT_WR_RETRANSMIT equal to
 *           @total.  Part: bytes of the packet
 * @segment: payload bytes of each packet but the last; at most nhca_channel_info.segment of both
 *           sides (move: of the source, less NHCA_MOVE_HEADER).  0: nhca_channel_info.segment of
 *           this side, but at most NHCA_FRAME_DATA with NHCA_RCXT_WR_FRAMES, and NHCA_MOVE_HEADER
 *           less for a move (not with NHCA_RCXT_WR_RETRANSMIT, NHCA_WR_CH_PROBE, NHCA_WR_CH_PART)
 * @notify:  NHCA_NOTIFY_*
 * @flags:   NHCA_RCXT_WR_*
 * @op, @type: NHCA_WR_CH_ACCUMULATE: enum nhca_accumulate_op and nhca_accumulate_type; otherwise
 *           @reserved is 0
 *
 * NHCA_WR_CH_PACKET does not use this struct: it has SGEs or inline data of at most NHCA_FRAME_DATA
 * bytes.
 *
 * Write: the work request completes when its last packet has been sent.  With
 * NHCA_NOTIFY_INITIATOR, nhca_send_wqe.chan.local_rcxt receives the notice, the payload is sent by
 * zero-copy reference, and the memory may be reused after NHCA_WC_CH_WRITE.  Otherwise the payload
 * is copied, and the memory may be reused when the work request completes.
 * Part (NHCA_FEATURE_PART): one packet of a write whose bytes are not in job memory.  The payload
 * is inline data (NHCA_SEND_INLINE), which follows struct nhca_rcxt_wr; so @local_pvo is 0, and
 * nhca_send_wqe.inline_len is @length.  @notify has NHCA_NOTIFY_INITIATOR.  The first part with a
 * higher tid begins the write; parts may be posted in any order, and again.  The work request
 * completes when the packet has been sent.  NHCA_WC_CH_WRITE has the wr_id of the part that began
 * the write.  With NHCA_RCXT_WR_PROGRAM, the packet answers the request that local_rcxt has
 * accepted, @tid, @total and @segment are those of the request, and @notify is 0.
 * Read: local_rcxt receives the payload.  The work request completes when the request was sent.
 * Move (NHCA_FEATURE_MOVE): a third-party transfer, for which this channel sends only a request.
 * The peer (the source) then writes to a third channel, the target (struct nhca_rcxt_target).
 * @notify has NHCA_NOTIFY_INITIATOR.  The work request completes when the request was sent, and
 * NHCA_WC_CH_MOVE reports that all bytes are placed.
 * Cancel: the kernel uses only @tid and chan.local_rcxt.  When the cancel completes, no more bytes
 * of the transfer are placed or sent.  nhca_cqe.vendor_err is EALREADY if the transfer was complete
 * before.  If a write is canceled, or its rCxt released, while packets of the write are being sent,
 * a signaled write completes with IB_WC_WR_FLUSH_ERR, and an unsignaled one has no CQE.
 * Probe: the answer of the peer is a frame NHCA_FRAME_STATUS.  There is no answer if a packet is
 * lost or dropped, for example because the peer's channel has released its rCxt.
 * Fence (NHCA_FEATURE_FENCE): the peer cancels the transfer of its rCxt.  The kernel uses only @tid
 * and both rCxts; the other fields are 0.  The peer answers with a frame NHCA_FRAME_STATUS, whose
 * status is NHCA_TRANSFER_FENCED or NHCA_TRANSFER_COMPLETE.  The peer does not answer if a packet
 * is lost, while it copies payload of the transfer or makes packets of a third-party transfer, or
 * while a transfer that its channel began uses the rCxt: in these cases, post the fence again.  The
 * peer never answers after its rCxt was released or has had a higher tid.
 *
 * A malformed work request puts the channel into the error state.  A well-formed work request that
 * does not fit the state of its rCxts or the MTU completes in error, and nhca_cqe.vendor_err is an
 * errno: EINVAL (the tid is too low; a retransmission or part does not match the transfer; an
 * answer does not match the request), EBUSY (see enum nhca_accumulate_op), ENOENT (the channel does
 * not own the local rCxt), EMSGSIZE (with the current MTU, @segment or the packet is too long, or
 * the transfer needs too many packets), ENOMEM (no memory for the bitmap of a read, or a limit for
 * bitmaps is reached), EAFNOSUPPORT (move: only one of source and target has an IPv4 address).
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
	union {
		__u16 reserved;
		struct {
			__u8 op;
			__u8 type;
		};
	};
};

/* Bytes of headers that payload of a third-party transfer has in addition to that of a write */
#define NHCA_MOVE_HEADER	16

/**
 * struct nhca_rcxt_target - target of NHCA_WR_CH_MOVE, after struct nhca_rcxt_wr
 * @rcxt:  its rCxt
 * @key:   lower 32 bits of the key of its channel
 * @ah_id: number of an address handle of its host
 * @qpn:   QPN of its channel
 * @reserved: 0
 */
struct nhca_rcxt_target {
	__aligned_u64 rcxt;
	__u32 key;
	__u32 ah_id;
	__u32 qpn;
	__u32 reserved;
};

/**
 * struct nhca_send_wqe - one send work request, as posted
 * @wr_id:     returned in the completion
 * @opcode:    enum nhca_wr_opcode
 * @num_sge:   elements of @sge in use; 0 with NHCA_SEND_INLINE
 * @flags:     NHCA_SEND_*
 * @inline_len: bytes at @data with NHCA_SEND_INLINE; otherwise 0
 * @ex:        immediate data (big endian) or the R_Key to invalidate
 * @xrc_srqn:  XRC: number of the remote SRQ; else 0
 * @rdma:      RDMA WRITE, READ; ATOMIC WRITE, which has 8 bytes of data
 * @atomic:    COMPARE AND SWAP, FETCH AND ADD
 * @flush:     FLUSH, which has neither SGEs nor inline data; type and level are NHCA_FLUSH_*;
 *             length: number of bytes, for NHCA_FLUSH_RANGE
 * @ud:        UD and GSI: nhca_create_ah_resp.ah_id, remote QPN, Q_Key, P_Key index
 * @mw:        BIND_MW: range, L_Key of the region, current and new R_Key of the window, rights
 * @chan:      channels: number of the address handle, QPN and key of the peer's channel; a cookie
 *             that completions at the peer return; rCxts of both sides (NHCA_RCXT_ID())
 * @op_space:  the size of the parts of the union that depend on @opcode
 * @sge:       scatter/gather elements
 * @data:      inline data
 * @rcxt:      NHCA_WR_CH_* except NHCA_WR_CH_PACKET: one element; @num_sge is 0.  NHCA_WR_CH_MOVE:
 *             a struct nhca_rcxt_target follows.  NHCA_WR_CH_PART: the inline data follow
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
			__aligned_u64 remote_key;
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
 * @wr_id:   returned in the completion
 * @num_sge: elements of @sge in use
 * @reserved: ignored
 * @sge:     scatter/gather elements
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
 * @NHCA_WC_CH_LOCAL: send CQ: a work request that is signaled, or that failed, is complete on this
 *                    side
 * @NHCA_WC_CH_WRITE: send CQ: all bytes of a write were placed at the peer
 * @NHCA_WC_CH_READ:  send CQ: all bytes of a read were placed in local memory
 * @NHCA_WC_CH_MOVE:  send CQ: the target of a third-party transfer has placed all bytes
 * @NHCA_WC_CH_FRAME: receive CQ: a frame was filled; nhca_cqe.chan.frame is its index, which counts
 *                    all frames, modulo 2^32
 * @NHCA_WC_CH_REMOTE_WRITE: receive CQ: all bytes of a peer's write were placed in local memory,
 *                    or are in frames whose completions came before (NHCA_NOTIFY_TARGET)
 * @NHCA_WC_CH_REMOTE_READ: receive CQ: all bytes of a peer's read were placed at the peer
 *                    (NHCA_NOTIFY_TARGET)
 *
 * On the send CQ, nhca_cqe.wr_id is the wr_id of the work request; on the receive CQ, it is the
 * cookie that the peer has sent.  If a packet of a transfer is refused or lost, no completion
 * reports that the bytes were placed (NHCA_WC_CH_LOCAL may still come): use a timeout and
 * NHCA_WR_CH_PROBE.
 */
enum nhca_channel_wc {
	NHCA_WC_CH_LOCAL	= 0xc0,
	NHCA_WC_CH_WRITE	= 0xc1,
	NHCA_WC_CH_READ		= 0xc2,
	NHCA_WC_CH_FRAME	= 0xc3,
	NHCA_WC_CH_REMOTE_WRITE	= 0xc4,
	NHCA_WC_CH_REMOTE_READ	= 0xc5,
	NHCA_WC_CH_MOVE		= 0xc6,
};

/*
 * nhca_cqe.sl.  RoCEv2 packets have no service level.  As in mlx5, the field has the packet type:
 * IBTA A17.4.5.1 requires the type, struct ibv_wc has no other field for the type, and UCX reads
 * the type in this field.  An address handle that is made from the completion has priority 0.
 */
#define NHCA_SL_ROCE_V2		8
#define NHCA_SL_IPV6		(NHCA_SL_ROCE_V2 | 1)
#define NHCA_SL_IPV4		(NHCA_SL_ROCE_V2 | 2)

/**
 * struct nhca_cqe - one work completion
 * @wr_id:       wr_id of the work request; channels: see enum nhca_channel_wc
 * @timestamp:   completion time, CLOCK_MONOTONIC_RAW nanoseconds; 0 unless the CQ was created
 *               with IB_UVERBS_CQ_FLAGS_TIMESTAMP_COMPLETION
 * @status:      enum ib_wc_status / ibv_wc_status (same values)
 * @opcode:      enum ibv_wc_opcode, with the same values as enum ib_wc_opcode, except
 *               IB_WC_REG_MR, which only kernel consumers get; channels: enum nhca_channel_wc
 * @flags:       NHCA_WC_*
 * @vendor_err:  0; channels: 0 or an errno, see struct nhca_rcxt_wr
 * @byte_len:    bytes received or read; channels: bytes of the transfer or frame; 0 with
 *               NHCA_WC_CH_LOCAL
 * @ex:          immediate data (big endian) or invalidated R_Key
 * @qp_num:      number of the local QP
 * @src_qp:      UD: number of the source QP; channels: QPN of the peer's channel
 * @pkey_index:  GSI: P_Key index
 * @sl:          UD: NHCA_SL_*
 * @network_hdr_type: UD: enum rdma_network_type
 * @smac:        UD: source MAC, zeros if unknown
 * @vlan_id:     UD: VLAN, 0xffff for none
 * @reserved:    0
 * @chan:        channels: local rCxt, tid, frame; 0 if the completion has none
 * @kernel:      CQ of a kernel consumer, which user space cannot map: pointer to the struct ib_qp
 *               of @qp_num; else 0
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
 * struct nhca_ring_info - how to map a ring; zeros if the object does not have this ring
 * @offset:  for mmap() on the uverbs file; 0 if the ring is in memory of user space
 * @size:    bytes to map
 * @entries: number of slots, a power of two
 * @stride:  bytes from slot to slot, a multiple of 16
 * @reserved: 0
 */
struct nhca_ring_info {
	__aligned_u64 offset;
	__u32 size;
	__u32 entries;
	__u32 stride;
	__u32 reserved;
};

/**
 * struct nhca_ring_mem - user memory for a ring; zeros: the kernel allocates the ring
 * @addr: address of the header; a multiple of the page size
 * @size: bytes; at least nhca_ring_bytes(), rounded up to whole pages
 *
 * The kernel clears the header and pins the memory until the ring is destroyed or replaced; the
 * pages count against RLIMIT_MEMLOCK.  In the response, nhca_ring_info.offset is 0.  The command
 * fails with EINVAL if the memory is unaligned or too short, or if the object does not have this
 * ring, and with EFAULT or ENOMEM if the kernel cannot pin the memory.
 */
struct nhca_ring_mem {
	__aligned_u64 addr;
	__aligned_u64 size;
};

/* Stride, in bytes, of a ring of struct nhca_send_wqe */
static inline __u32 nhca_send_stride(__u32 sges, __u32 inline_bytes)
{
	__u32 space = sges * sizeof(struct nhca_sge);

	if (space < inline_bytes)
		space = inline_bytes;
	return (sizeof(struct nhca_send_wqe) + space + 63) & ~63u;
}

/* Stride, in bytes, of a ring of struct nhca_recv_wqe; QPs and WQs have at least 1 SGE */
static inline __u32 nhca_recv_stride(__u32 sges)
{
	return sizeof(struct nhca_recv_wqe) + sges * sizeof(struct nhca_sge);
}

/* Bytes of a ring of @entries slots, a power of two, with @stride bytes each */
static inline __u64 nhca_ring_bytes(__u32 entries, __u32 stride)
{
	return NHCA_RING_HDR_SIZE + (__u64)entries * stride;
}

/* nhca_alloc_ucontext_resp.features: what user space may use */
#define NHCA_FEATURE_LOCAL_OPS	(1u << 0)	/* NHCA_WR_LOCAL_INV, NHCA_WR_BIND_MW */
#define NHCA_FEATURE_CHANNELS	(1u << 1)	/* channels: QPs of type IB_QPT_DRIVER */
#define NHCA_FEATURE_FLUSH	(1u << 2)	/* NHCA_WR_FLUSH, NHCA_WR_ATOMIC_WRITE */
#define NHCA_FEATURE_XRC	(1u << 3)
#define NHCA_FEATURE_RATE_LIMIT	(1u << 4)	/* IB_QP_RATE_LIMIT */
#define NHCA_FEATURE_RAW	(1u << 5)	/* raw packet QPs, WQs, RSS and flow steering */
#define NHCA_FEATURE_RING_MEM	(1u << 6)	/* rings in user memory: struct nhca_ring_mem */
#define NHCA_FEATURE_FENCE	(1u << 7)	/* NHCA_WR_CH_FENCE */
/* Regions of files and block devices: struct nhca_reg_mr_cmd, NHCA_OBJECT_DIRECT_POOL */
#define NHCA_FEATURE_DIRECT	(1u << 8)
#define NHCA_FEATURE_MOVE	(1u << 9)	/* NHCA_WR_CH_MOVE, NHCA_METHOD_CHANNEL_TARGET */
#define NHCA_FEATURE_WATCH	(1u << 10)	/* watches: NHCA_OBJECT_WATCH_SET */
#define NHCA_FEATURE_PART	(1u << 11)	/* half transfers: NHCA_WR_CH_PART */
#define NHCA_FEATURE_FRAMES	(1u << 12)	/* writes with NHCA_RCXT_WR_FRAMES */
#define NHCA_FEATURE_ASK	(1u << 13)	/* NHCA_RCXT_WR_PROGRAM */
#define NHCA_FEATURE_READ_FRAMES	(1u << 14)	/* reads with NHCA_RCXT_WR_FRAMES */
#define NHCA_FEATURE_ACCUMULATE	(1u << 15)	/* NHCA_WR_CH_ACCUMULATE, IB_ACCESS_REMOTE_ATOMIC */

/**
 * struct nhca_alloc_ucontext_resp - response of IB_USER_VERBS_CMD_GET_CONTEXT
 * @features: NHCA_FEATURE_*
 * @reserved: 0
 */
struct nhca_alloc_ucontext_resp {
	__u32 features;
	__u32 reserved;
};

/* A command names user memory for each ring.  A response says how to map each ring. */
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

/**
 * struct nhca_modify_srq_cmd - command of IB_USER_VERBS_CMD_MODIFY_SRQ
 * @ring_info_addr: resize: user address where the kernel writes the struct nhca_ring_info of the
 *                  new ring
 * @rq:             user memory for the new ring
 */
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

/* Command of IB_USER_VERBS_EX_CMD_CREATE_WQ */
struct nhca_create_wq_cmd {
	struct nhca_ring_mem rq;
};

struct nhca_create_wq_resp {
	struct nhca_ring_info rq;
};

/* Bytes of the Toeplitz hash key */
#define NHCA_RSS_KEY		40

/* Header fields that the hash covers: the values of enum ibv_rx_hash_fields */
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
 * struct nhca_create_rss_cmd - command of IB_USER_VERBS_EX_CMD_CREATE_QP with an indirection table
 * @rx_hash_fields: NHCA_RSS_*; the Toeplitz hash covers these header fields in the order source
 *	address, destination address, source port, destination port
 * @reserved: 0
 * @rx_hash_key: hash key
 */
struct nhca_create_rss_cmd {
	__u32 rx_hash_fields;
	__u32 reserved;
	__u8 rx_hash_key[NHCA_RSS_KEY];
};

/* Response of create AH; @ah_id: number of the address handle, for nhca_send_wqe.ud and .chan */
struct nhca_create_ah_resp {
	__u32 ah_id;
	__u32 reserved;
};

/* ---- channels: QPs of type IB_QPT_DRIVER; Documentation/rcxt.rst ---- */

/* Id of an rCxt in work requests and ioctls; packets have index and key in two fields */
#define NHCA_RCXT_ID(index, key)	((__u64)(key) << 32 | (index))
#define NHCA_RCXT_INDEX(id)		((__u32)(id))
#define NHCA_RCXT_KEY(id)		((__u32)((id) >> 32))

/**
 * struct nhca_create_channel_cmd - command of create QP, type IB_QPT_DRIVER
 * @job:     job id, not 0; EPERM if another user owns the job
 * @frames:  slots of the receive FIFO, at most NHCA_MAX_FRAMES; rounded up to a power of two; 0: no
 *           FIFO
 * @quantum: cost of the work that the channel does in a turn of the deficit round robin; 0: the
 *           default, 64; at most 256, to which larger values are reduced.  A fetched work request
 *           costs 1, including the packet of NHCA_WR_CH_PACKET, a read request, probe or fence.
 *           A packet with payload of a transfer costs 1 for each 4096 bytes or part of them, at
 *           least 1
 * @flags:   0
 *
 * max_send_wr, max_send_sge and max_inline_data (at most NHCA_FRAME_DATA) are limits of the send
 * FIFO, whose slots have at least 128 bytes.  A channel has no receive queue: max_recv_wr and
 * max_recv_sge are 0.  The channel can send and receive when create QP returns; modify QP can only
 * move the channel to IB_QPS_ERR.
 */
struct nhca_create_channel_cmd {
	__u32 job;
	__u32 frames;
	__u32 quantum;
	__u32 flags;
};

/**
 * struct nhca_create_channel_resp - response of create QP, type IB_QPT_DRIVER
 * @sq:   the send FIFO: a ring of struct nhca_send_wqe
 * @fifo: the receive FIFO: a ring of struct nhca_frame; zeros if there is none
 * @key:  random key of the channel; a peer needs it to send to this channel
 * @segment: as nhca_channel_info.segment
 * @reserved: 0
 */
struct nhca_create_channel_resp {
	struct nhca_ring_info sq;
	struct nhca_ring_info fifo;
	__aligned_u64 key;
	__u32 segment;
	__u32 reserved;
};

#endif /* RDMA_NHCA_ABI_H */
