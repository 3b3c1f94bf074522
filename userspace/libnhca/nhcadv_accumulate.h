/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * nhca direct verbs: accumulates of channels, which are writes whose elements are combined with
 * those in the memory of the peer.  Programs include nhcadv.h, which includes this file.
 */
#ifndef NHCADV_ACCUMULATE_H
#define NHCADV_ACCUMULATE_H

#include <stdint.h>

#include <infiniband/verbs.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How the peer combines elements: memory = memory op element */
enum nhcadv_accumulate_op {
	NHCADV_ACC_SUM	= 1,
	NHCADV_ACC_MIN	= 2,	/* of floating point: minimumNumber of IEEE 754-2019 */
	NHCADV_ACC_MAX	= 3,	/* of floating point: maximumNumber */
	NHCADV_ACC_PROD	= 4,
	NHCADV_ACC_OR	= 5,	/* bit by bit; this and the following ones: integers only */
	NHCADV_ACC_AND	= 6,
	NHCADV_ACC_XOR	= 7,
};

/* Types of elements */
enum nhcadv_accumulate_type {
	NHCADV_ACC_I32	= 1,
	NHCADV_ACC_I64	= 2,
	NHCADV_ACC_U32	= 3,
	NHCADV_ACC_U64	= 4,
	NHCADV_ACC_F32	= 5,	/* float: IEEE 754 binary32 */
	NHCADV_ACC_F64	= 6,	/* double: IEEE 754 binary64 */
	NHCADV_ACC_BF16	= 7,	/* the upper half of a binary32 */
};

/* flags of nhcadv_wr_accumulate() */
enum nhcadv_accumulate_flags {
	/* begin only when the earlier ones of the channel to the same peer are complete */
	NHCADV_ACC_ORDERED = 1 << 0,
};

/* Bytes of headers that packets have in addition to those of nhcadv_wr_write() */
#define NHCADV_ACCUMULATE_HEADER	4

/* Maximum number of accumulates of a channel with NHCADV_ACC_ORDERED that wait */
#define NHCADV_MAX_ORDERED		4

/*
 * Combine @transfer->total bytes of local memory with the bytes at remote_pvo, element by element.
 * The peer's adapter applies each packet as it arrives, in any order, and no packet twice.  Several
 * channels may accumulate into the same elements at the same time.
 *
 * total, segment and remote_pvo must be multiples of the size of an element.  segment is at most
 * nhcadv_channel_info.segment of both ends less NHCADV_ACCUMULATE_HEADER; 0: the kernel chooses.
 * The peer's memory must have IBV_ACCESS_REMOTE_WRITE and IBV_ACCESS_REMOTE_ATOMIC.  Elements are
 * little endian in the packets and in local memory.  Completions are those of nhcadv_wr_write():
 * NHCADV_WC_WRITE says that all elements were combined.
 *
 * If packets are lost, probe, and send the missing ones with nhcadv_wr_accumulate_again(): never
 * begin again with another tid, because the packets that have arrived would count twice.
 *
 * With NHCADV_ACC_ORDERED in @flags, notify must include NHCADV_NOTIFY_INITIATOR;
 * nhcadv_wr_accumulate(3) describes such accumulates.  Both ends need NHCADV_DEVICE_ACCUMULATE: a
 * peer without it drops the packets.
 */
static inline void nhcadv_wr_accumulate(struct nhcadv_qp_ex *qp, const struct nhcadv_peer *peer,
					const struct nhcadv_transfer *transfer,
					enum nhcadv_accumulate_op op,
					enum nhcadv_accumulate_type type, uint32_t flags)
{
	qp->wr_accumulate(qp, peer, transfer, op, type, flags);
}

/*
 * Retransmit @length bytes of nhcadv_wr_accumulate(), from @offset on.  @offset and @length are as
 * for nhcadv_wr_retransmit().  Packets that the peer has already applied change nothing.
 */
static inline void nhcadv_wr_accumulate_again(struct nhcadv_qp_ex *qp,
					      const struct nhcadv_peer *peer,
					      const struct nhcadv_transfer *transfer,
					      enum nhcadv_accumulate_op op,
					      enum nhcadv_accumulate_type type, uint32_t offset,
					      uint32_t length)
{
	qp->wr_accumulate_again(qp, peer, transfer, op, type, offset, length);
}

#ifdef __cplusplus
}
#endif

#endif /* NHCADV_ACCUMULATE_H */
