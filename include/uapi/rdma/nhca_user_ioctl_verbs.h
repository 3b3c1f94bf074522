/* SPDX-License-Identifier: ((GPL-2.0 WITH Linux-syscall-note) OR Linux-OpenIB) */
/*
 * Structs in the attributes of nhca's uverbs methods.
 */
#ifndef NHCA_USER_IOCTL_VERBS_H
#define NHCA_USER_IOCTL_VERBS_H

#include <linux/types.h>

/**
 * struct nhca_alloc_dm_resp - how to map device memory: NHCA_ATTR_ALLOC_DM_RESP
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
 * @mask: fields to change: NHCA_CHANNEL_*
 * @recv_threshold: with a threshold of n, every n-th completion of the channel on the receive CQ
 *        counts as solicited; initially 1.  Completions in error, and completions of packets that
 *        the peer marked as solicited, always count as solicited.  0: no other completion counts as
 *        solicited
 * @send_threshold: the same for the send CQ
 * @quantum: as in struct nhca_create_channel_cmd
 */
struct nhca_channel_modify {
	__u32 mask;
	__u32 recv_threshold;
	__u32 send_threshold;
	__u32 quantum;
};

/* Bytes of headers that packets of an accumulate have in addition to those of a write */
#define NHCA_ACCUMULATE_HEADER		4
/* Maximum number of ordered accumulates of a channel that wait for earlier ones */
#define NHCA_MAX_ORDERED		4

/**
 * enum nhca_accumulate_op - operations of NHCA_WR_CH_ACCUMULATE (NHCA_FEATURE_ACCUMULATE)
 *
 * The work request is like NHCA_WR_CH_WRITE, but the peer combines each element with the one in its
 * memory, exactly once: memory = memory op element.  nhca_rcxt_wr.total, .segment and .remote_pvo
 * must be multiples of the size of an element, and .segment plus NHCA_ACCUMULATE_HEADER at most
 * nhca_channel_info.segment of both sides.  The peer's memory must have IB_ACCESS_REMOTE_WRITE and
 * IB_ACCESS_REMOTE_ATOMIC.  Elements are little endian in local memory.
 *
 * .flags is 0, NHCA_RCXT_WR_RETRANSMIT or NHCA_RCXT_WR_ORDERED.  An accumulate with
 * NHCA_RCXT_WR_ORDERED is an ordered one: it begins only when all earlier ordered accumulates of
 * the channel to the same peer are complete, or were canceled or replaced.  Its .notify must
 * include NHCA_NOTIFY_INITIATOR.  If NHCA_MAX_ORDERED ordered accumulates of the channel wait, a
 * further one that has to wait completes with EBUSY.  A work request that would begin a transfer on
 * the rCxt of an accumulate that waits for an earlier one completes with EBUSY as well.
 * A retransmission of an accumulate that waits completes without sending.
 */
enum nhca_accumulate_op {
	NHCA_ACCUMULATE_SUM	= 1,
	NHCA_ACCUMULATE_MIN	= 2,
	NHCA_ACCUMULATE_MAX	= 3,
	NHCA_ACCUMULATE_PROD	= 4,
	/* bitwise operations, for integers only */
	NHCA_ACCUMULATE_OR	= 5,
	NHCA_ACCUMULATE_AND	= 6,
	NHCA_ACCUMULATE_XOR	= 7,
};

/* Types of elements: integers, IEEE 754 binary32 and binary64, the upper half of a binary32 */
enum nhca_accumulate_type {
	NHCA_ACCUMULATE_I32	= 1,
	NHCA_ACCUMULATE_I64	= 2,
	NHCA_ACCUMULATE_U32	= 3,
	NHCA_ACCUMULATE_U64	= 4,
	NHCA_ACCUMULATE_F32	= 5,
	NHCA_ACCUMULATE_F64	= 6,
	NHCA_ACCUMULATE_BF16	= 7,
};

/* nhca_channel_target.op */
#define NHCA_CHANNEL_TARGET_ALLOW	1
#define NHCA_CHANNEL_TARGET_REVOKE	2

/* Maximum number of targets that a channel allows */
#define NHCA_MAX_TARGETS		64

/**
 * struct nhca_channel_target - NHCA_ATTR_CHANNEL_TARGET_CMD
 * @op:    NHCA_CHANNEL_TARGET_*
 * @ah_id: number of an address handle of the target's host, of the channel's PD
 */
struct nhca_channel_target {
	__u32 op;
	__u32 ah_id;
};

/**
 * enum nhca_channel_counter - counters of a channel.  NHCA_CH_DROP_* except NHCA_CH_DROP_CQ count
 * received packets that were dropped, and reads and third-party transfers of peers that this host
 * ended, by reason
 * @NHCA_CH_SENT_PACKETS:  packets sent
 * @NHCA_CH_SENT_BYTES:    payload bytes sent
 * @NHCA_CH_RECEIVED_PACKETS: packets received
 * @NHCA_CH_RECEIVED_BYTES: payload bytes received
 * @NHCA_CH_DROP_FIFO:     a packet of NHCA_WR_CH_PACKET, of NHCA_RCXT_WR_FRAMES, a request of
 *                         NHCA_RCXT_WR_PROGRAM, or a status: the receive FIFO is full, or the
 *                         channel has no receive FIFO
 * @NHCA_CH_DROP_CQ:       completions that were lost because a CQ was full.  If the completion of a
 *                         frame NHCA_FRAME_WRITE, NHCA_FRAME_READ or NHCA_FRAME_REQUEST is lost,
 *                         the packet in this frame counts as not received
 * @NHCA_CH_DROP_KEY:      wrong channel key
 * @NHCA_CH_DROP_JOB:      packet of another job
 * @NHCA_CH_DROP_NO_RCXT:  the channel does not own the rCxt; it may have released the rCxt
 * @NHCA_CH_DROP_RCXT_KEY: old rCxt key: the channel has released the rCxt and acquired it again
 * @NHCA_CH_DROP_STALE:    the tid is too low, or the transfer was canceled
 * @NHCA_CH_DROP_DUPLICATE: the packet was received before, or the transfer is complete
 * @NHCA_CH_DROP_ABORTED:  memory protection has refused an earlier packet of the transfer
 * @NHCA_CH_DROP_BUSY:     the rCxt is in use for another transfer, or a work request waits for the
 *                         rCxt; fence: a CPU copies payload or makes packets of the transfer;
 *                         status: the write is complete at the peer, but this host still sends
 *                         packets of the write, or packets refer to its pages
 * @NHCA_CH_DROP_UNSOLICITED: a notice, a challenge or payload of a read that the rCxt does not
 *                         wait for
 * @NHCA_CH_DROP_MISMATCH: kind, sizes or PVO differ from those of the transfer with this tid
 * @NHCA_CH_DROP_NO_MEMORY: no memory for the bitmap of the transfer or for an answer, or a limit
 *                         for bitmaps would be exceeded
 * @NHCA_CH_DROP_PVO_KEY:  PVO: no job memory has this key in this table
 * @NHCA_CH_DROP_PVO_JOB:  PVO: memory of another job
 * @NHCA_CH_DROP_PVO_RANGE: PVO: out of bounds
 * @NHCA_CH_DROP_PVO_ACCESS: PVO: the memory does not have this access right
 * @NHCA_CH_DROP_PVO_PAGE: PVO: the memory is being deregistered
 * @NHCA_CH_DROP_ERROR:    the channel is in the error state
 * @NHCA_CH_DROP_SEGMENT:  read request or third-party request: its segment exceeds what this host
 *                         can send
 * @NHCA_CH_FENCED:        fences of peers that were answered with NHCA_TRANSFER_FENCED
 * @NHCA_CH_CHALLENGED:    requests without a valid token: read requests, third-party requests, and
 *                         probes whose answer would have a bitmap
 * @NHCA_CH_DROP_TARGET:   third-party requests whose target the program has not allowed, and
 *                         third-party transfers that ended because the program revoked the target
 * @NHCA_CH_DROP_MANAGER:  third-party payload whose manager has an impossible GID
 * @NHCA_CH_COUNTERS:      number of counters that this header knows
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
	NHCA_CH_DROP_ABORTED,
	NHCA_CH_DROP_BUSY,
	NHCA_CH_DROP_UNSOLICITED,
	NHCA_CH_DROP_MISMATCH,
	NHCA_CH_DROP_NO_MEMORY,
	NHCA_CH_DROP_PVO_KEY,
	NHCA_CH_DROP_PVO_JOB,
	NHCA_CH_DROP_PVO_RANGE,
	NHCA_CH_DROP_PVO_ACCESS,
	NHCA_CH_DROP_PVO_PAGE,
	NHCA_CH_DROP_ERROR,
	NHCA_CH_DROP_SEGMENT,
	NHCA_CH_FENCED,
	NHCA_CH_CHALLENGED,
	NHCA_CH_DROP_TARGET,
	NHCA_CH_DROP_MANAGER,
	NHCA_CH_COUNTERS
};

/* nhca_channel_info.reason: why the channel is in the error state */
enum nhca_channel_error {
	NHCA_CH_ERR_NONE	= 0,
	NHCA_CH_ERR_MODIFIED	= 1,	/* by modify QP */
	NHCA_CH_ERR_RING	= 2,	/* impossible producer index of the send FIFO */
	NHCA_CH_ERR_WQE		= 3,	/* malformed work request */
	NHCA_CH_ERR_LOCAL_PVO	= 4,	/* protection error of a local PVO or L_Key */
	NHCA_CH_ERR_RECOVERED	= 5,	/* the device has recovered: create the channel again */
	NHCA_CH_ERR_DEVICE	= 6,	/* the netdev was removed or left its network namespace */
};

/**
 * struct nhca_channel_info - NHCA_ATTR_CHANNEL_QUERY_RESP
 * @state:   enum ib_qp_state: IB_QPS_RTS or IB_QPS_ERR
 * @reason:  enum nhca_channel_error; IB_EVENT_QP_FATAL was raised, except with
 *           NHCA_CH_ERR_MODIFIED
 * @job:     job id
 * @rcxts:   rCxts that the channel owns
 * @segment: maximum payload bytes of a packet of a transfer, with the current MTU of the netdev
 * @recv_threshold: as in struct nhca_channel_modify
 * @send_threshold: as in struct nhca_channel_modify
 * @quantum: as in struct nhca_channel_modify
 * @violation: NHCA_CH_DROP_PVO_* of the last access of a peer that memory protection refused; 0:
 *           none.  The first violation after each query raises IB_EVENT_QP_ACCESS_ERR.  Payload of
 *           the channel's own read that its local PVO does not permit is also a violation.  If a
 *           local PVO or L_Key gives no access to the bytes to send, the driver sets @reason
 *           instead
 * @violation_channel: QPN of the peer's channel
 * @violation_rcxt: rCxt of the transfer on this side
 * @violation_pvo: PVO of the refused bytes on this side
 * @violation_tid: tid of the transfer
 * @recoveries: recovery count of the device, which starts at a random value
 * @counters: indexed by enum nhca_channel_counter; counters that the kernel does not have are 0
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

/* nhca_reg_mr_cmd.kind */
#define NHCA_REG_MR_MEMORY	0
#define NHCA_REG_MR_DIRECT	1

/**
 * struct nhca_reg_mr_cmd - command of IB_USER_VERBS_CMD_REG_MR
 * @kind:   NHCA_REG_MR_MEMORY: memory of the process, and the other fields are 0.
 *          NHCA_REG_MR_DIRECT (NHCA_FEATURE_DIRECT): a part of a file or block device, whose
 *          length, iova and rights are those of the core's command; the command's start is ignored
 * @fd:     file descriptor, open for reading; if the region has a right to write, also for writing
 * @offset: first byte in the file
 * @pool:   number of the pool: NHCA_ATTR_DIRECT_POOL_ALLOC_RESP_NUMBER
 * @depth:  bytes that an operation reads from the disk in advance; 0: the default
 * @flags:  NHCA_DIRECT_SYNC: an operation that writes ends when its bytes are on the disk;
 *          NHCA_DIRECT_FLUSH_*: peers may FLUSH the region
 * @reserved: 0
 *
 * The rights are IB_UVERBS_ACCESS_LOCAL_WRITE, _REMOTE_WRITE, _REMOTE_READ and _MW_BIND.  EBADF:
 * @fd is not open for reading, or for writing.  EINVAL: @fd is neither a file nor a block device;
 * the range is empty, not aligned for direct I/O, or not in the file; @pool or a flag in @flags
 * does not exist; SYNC without a right to write.  EOPNOTSUPP: the file has no direct I/O; a right
 * that is neither one of these four, nor a right to FLUSH, nor optional; rights to write and a
 * device with zones.  Only with a right to write: EPERM: the file is immutable or append-only, or
 * the device read-only; ETXTBSY: the file is a swap file.
 */
struct nhca_reg_mr_cmd {
	__u32 kind;
	__s32 fd;
	__aligned_u64 offset;
	__u32 pool;
	__u32 depth;
	__u32 flags;
	__u32 reserved;
};

/* nhca_reg_mr_cmd.flags */
#define NHCA_DIRECT_SYNC		(1u << 0)
#define NHCA_DIRECT_FLUSH_GLOBAL	(1u << 1)
#define NHCA_DIRECT_FLUSH_PERSISTENT	(1u << 2)

/**
 * struct nhca_direct_info - a region of a file: NHCA_ATTR_MR_DIRECT_QUERY_RESP
 * @reads:      number of ended I/O requests of operations that read
 * @read_bytes: bytes that the I/O requests in @reads have read
 * @refills:    blocks that were read, but lost their memory to another operation before they were
 *              sent; a block that its operation still needs is read again
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
 *              other operations needed the memory
 * @lost:       acknowledged blocks that could not be written
 * @dirty:      blocks that have to be written or are being written
 * @reserved:   0
 * @flushes:    flushes that have ended
 */
struct nhca_direct_info {
	__aligned_u64 reads;
	__aligned_u64 read_bytes;
	__aligned_u64 refills;
	__aligned_u64 errors;
	__aligned_u64 last_error_offset;
	__u32 last_error;
	__u32 blocks;
	__u32 blocks_used;
	__u32 blocks_most;
	__aligned_u64 writes;
	__aligned_u64 write_bytes;
	__aligned_u64 edges;
	__aligned_u64 splits;
	__aligned_u64 lost;
	__u32 dirty;
	__u32 reserved;
	__aligned_u64 flushes;
};

/* Maximum number of slots of a set of watches */
#define NHCA_MAX_WATCH_SLOTS		65536

/**
 * enum nhca_watch - the word of a slot in a set of watches
 * @NHCA_WATCH_CHANGED: the pages of the range may have changed since NHCA_METHOD_WATCH_ADD, or the
 *                    slot has no watch
 * @NHCA_WATCH_SAME:  no page of the range has changed since NHCA_METHOD_WATCH_ADD
 *
 * The kernel stores CHANGED before it changes which page an address of the range maps, or the
 * rights of the process to this page.  So the word is CHANGED when the system call that causes the
 * change returns: munmap(), mremap(), mmap() over the range, mprotect(), madvise(), truncation of a
 * file.  The kernel may also store CHANGED without a change.  fork() is no change, and neither
 * is the first page that an address maps.  If a process adds a watch, then registers the range, and
 * then reads SAME, the registered pages are those that the range maps.
 */
enum nhca_watch {
	NHCA_WATCH_CHANGED	= 0,
	NHCA_WATCH_SAME		= 1,
};

/**
 * struct nhca_watch_set_resp - how to map the words of a set: NHCA_ATTR_WATCH_SET_ALLOC_RESP
 * @offset: for mmap() on the uverbs file: MAP_SHARED, PROT_READ
 * @size:   bytes to map
 *
 * The words are an array of __u32, one for each slot.  A child of fork() does not inherit the
 * mapping.
 */
struct nhca_watch_set_resp {
	__aligned_u64 offset;
	__aligned_u64 size;
};

/* ---- receive FIFO of a channel ---- */

/* Bytes of a slot of the receive FIFO, and of its payload */
#define NHCA_FRAME_SIZE		2048
#define NHCA_FRAME_DATA		1984

/* Maximum number of slots of a receive FIFO */
#define NHCA_MAX_FRAMES		32768

enum nhca_frame_kind {
	NHCA_FRAME_PACKET	= 1,
	NHCA_FRAME_STATUS	= 2,
	NHCA_FRAME_WRITE	= 3,
	NHCA_FRAME_REQUEST	= 4,
	NHCA_FRAME_READ		= 5,
};

/**
 * struct nhca_frame_request - nhca_frame.data of NHCA_FRAME_REQUEST
 * @remote_pvo: nhca_rcxt_wr.remote_pvo of the reader: any value, by which the reader says what it
 *              wants to read
 * @reply_pvo:  PVO of the transfer's first byte at the reader
 */
struct nhca_frame_request {
	__aligned_u64 remote_pvo;
	__aligned_u64 reply_pvo;
};

/* nhca_frame.status: state of the transfer that a probe, fence or NHCA_WR_CH_MOVE named */
enum nhca_transfer_status {
	NHCA_TRANSFER_COMPLETE	= 0,	/* all bytes are placed */
	NHCA_TRANSFER_PARTIAL	= 1,	/* not complete; the frame has a bitmap of packets */
	NHCA_TRANSFER_NONE	= 2,	/* no packet arrived; canceled; or another transfer */
	NHCA_TRANSFER_PROT_ERR	= 3,	/* memory protection refused a packet */
	NHCA_TRANSFER_FENCED	= 4,	/* canceled by a fence: no byte is placed any more */
	/* NHCA_WR_CH_MOVE: the source has refused or ended the transfer, and sends no more */
	NHCA_TRANSFER_FORBIDDEN	= 5,	/* the source's program has not allowed the target */
	NHCA_TRANSFER_TOO_LONG	= 6,	/* the source's MTU is too small for the segment */
};

/**
 * struct nhca_frame - a slot of the receive FIFO
 * @seq:     index of the frame + 1, modulo 2^32.  The kernel writes @seq after the other members,
 *           with release semantics, and only then is the frame valid.  prod does not say that a
 *           frame is valid, because several CPUs fill frames concurrently
 * @kind:    enum nhca_frame_kind
 * @status:  NHCA_FRAME_STATUS: enum nhca_transfer_status
 * @length:  bytes of @data
 * @src_key: key of the peer's channel; other kinds than NHCA_FRAME_PACKET: only the lower 32 bits
 *           of the key
 * @src_rcxt: NHCA_FRAME_STATUS: the peer's rCxt that the probe, fence or refused NHCA_WR_CH_MOVE
 *           named; NHCA_FRAME_WRITE, NHCA_FRAME_REQUEST, NHCA_FRAME_READ: rCxt of the peer
 * @rcxt:    other kinds than NHCA_FRAME_PACKET: rCxt of this channel
 * @tid:     other kinds than NHCA_FRAME_PACKET: tid of the transfer; NHCA_FRAME_STATUS: as the
 *           probe, fence or NHCA_WR_CH_MOVE named it
 * @total:   bytes of the transfer; NHCA_FRAME_STATUS: as the probe or NHCA_WR_CH_MOVE named it, and
 *           not valid after a fence
 * @segment: payload of each packet but the last; NHCA_FRAME_STATUS: as the probe or NHCA_WR_CH_MOVE
 *           named it, and not valid after a fence
 * @offset:  NHCA_FRAME_STATUS: offset of the first packet that @data reports; NHCA_FRAME_WRITE,
 *           NHCA_FRAME_READ: offset of @data in the transfer
 * @cookie:  cookie of the packet, or of the transfer; NHCA_FRAME_STATUS: cookie of the probe, fence
 *           or refused NHCA_WR_CH_MOVE
 * @received: NHCA_FRAME_STATUS: number of packets of the transfer that the peer has received
 * @src_channel: the peer's channel
 * @reserved: 0
 * @data:    payload; NHCA_FRAME_STATUS, NHCA_TRANSFER_PARTIAL: bit i % 8 of byte i / 8 is set if
 *           packet @offset / @segment + i was received.  NHCA_FRAME_REQUEST: struct
 *           nhca_frame_request
 *
 * The FIFO is a ring (struct nhca_ring_hdr).  The kernel owns prod, which counts the frames that
 * it has begun to fill; user space owns cons.  If the FIFO is full, the kernel drops and counts
 * packets (NHCA_CH_DROP_FIFO).
 */
struct nhca_frame {
	__u32 seq;
	__u8 kind;
	__u8 status;
	__u16 length;
	__aligned_u64 src_key;
	__aligned_u64 src_rcxt;
	__aligned_u64 rcxt;
	__u32 tid;
	__u32 total;
	__u32 offset;
	__u16 segment;
	__u16 reserved;
	__aligned_u64 cookie;
	__u32 received;
	__u32 src_channel;
	__u8 data[NHCA_FRAME_DATA];
};

#endif /* NHCA_USER_IOCTL_VERBS_H */
