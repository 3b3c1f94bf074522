/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * nhca direct verbs: completions of channels, and frames of their receive FIFOs.  Programs include
 * nhcadv.h, which includes this file.
 */
#ifndef NHCADV_COMPLETION_H
#define NHCADV_COMPLETION_H

#include <stdbool.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- completions ---- */

/**
 * enum nhcadv_wc_kind - opcode of a channel's completion: nhcadv_wc_read_kind(),
 * ibv_wc_read_opcode(), ibv_wc.opcode
 * @NHCADV_WC_LOCAL: send CQ: a work request that is signaled is done, or a work request has failed
 * @NHCADV_WC_WRITE:  send CQ: all bytes of a write were placed at the peer
 * @NHCADV_WC_READ:   send CQ: all bytes of a read were placed in local memory
 * @NHCADV_WC_MOVE:   send CQ: all bytes of a third-party transfer were placed at the target
 * @NHCADV_WC_FRAME:  receive CQ: a frame is in the receive FIFO
 * @NHCADV_WC_REMOTE_WRITE: receive CQ: all bytes of a peer's write were placed in local memory
 * @NHCADV_WC_REMOTE_READ: receive CQ: all bytes of a peer's read were placed at the peer
 *
 * On the send CQ, wr_id is the wr_id of the work request.  On the receive CQ, wr_id is the cookie
 * of the frame, or of the peer's transfer.  If a transfer was refused or has lost payload, its only
 * completions are NHCADV_WC_LOCAL and those of frames.
 *
 * ibv_poll_cq() also returns byte_len, qp_num, src_qp (QP number of the peer's channel), and in
 * ibv_wc.invalidated_rkey the index of the frame (NHCADV_WC_FRAME) or the tid (other kinds).
 * Only an extended CQ returns the rCxt.
 */
enum nhcadv_wc_kind {
	NHCADV_WC_LOCAL	= 0xc0,
	NHCADV_WC_WRITE		= 0xc1,
	NHCADV_WC_READ		= 0xc2,
	NHCADV_WC_FRAME		= 0xc3,
	NHCADV_WC_REMOTE_WRITE	= 0xc4,
	NHCADV_WC_REMOTE_READ	= 0xc5,
	NHCADV_WC_MOVE		= 0xc6,
};

/**
 * struct nhcadv_cq - an extended CQ, for values that only completions of channels have
 * @comp_mask: 0
 * @wc_read_rcxt: see nhcadv_wc_read_rcxt()
 * @wc_read_tid: see nhcadv_wc_read_tid()
 * @wc_read_frame: see nhcadv_wc_read_frame()
 * @wc_read_src_channel: see nhcadv_wc_read_src_channel()
 * @wc_read_kind: see nhcadv_wc_read_kind()
 *
 * nhcadv_wc_read_X() calls member wc_read_X, which reads a value of the current completion, between
 * ibv_start_poll() and ibv_end_poll().  The function returns 0 if the completion does not have the
 * value.  nhcadv_wc_read_kind() returns the opcode of any completion.
 */
struct nhcadv_cq {
	uint64_t comp_mask;
	uint64_t (*wc_read_rcxt)(struct nhcadv_cq *cq);
	uint32_t (*wc_read_tid)(struct nhcadv_cq *cq);
	uint32_t (*wc_read_frame)(struct nhcadv_cq *cq);
	uint32_t (*wc_read_src_channel)(struct nhcadv_cq *cq);
	enum nhcadv_wc_kind (*wc_read_kind)(struct nhcadv_cq *cq);
};

/**
 * nhcadv_cq_from_ibv_cq_ex - convert a CQ to the type that nhcadv_wc_read_*() take
 * @cq: a CQ of ibv_create_cq_ex(), with any wc_flags
 * Return: the converted pointer, or NULL with errno EOPNOTSUPP (not a CQ of an nhca device).
 */
struct nhcadv_cq *nhcadv_cq_from_ibv_cq_ex(struct ibv_cq_ex *cq);

static inline enum nhcadv_wc_kind nhcadv_wc_read_kind(struct nhcadv_cq *cq)
{
	return cq->wc_read_kind(cq);
}

/* The rCxt of this end */
static inline uint64_t nhcadv_wc_read_rcxt(struct nhcadv_cq *cq)
{
	return cq->wc_read_rcxt(cq);
}

static inline uint32_t nhcadv_wc_read_tid(struct nhcadv_cq *cq)
{
	return cq->wc_read_tid(cq);
}

/* The index for nhcadv_frame(); any uint32_t may be a valid index */
static inline uint32_t nhcadv_wc_read_frame(struct nhcadv_cq *cq)
{
	return cq->wc_read_frame(cq);
}

/* The QP number of the peer's channel */
static inline uint32_t nhcadv_wc_read_src_channel(struct nhcadv_cq *cq)
{
	return cq->wc_read_src_channel(cq);
}

/* ---- the receive FIFO ---- */

/* nhcadv_frame.kind */
enum nhcadv_frame_kind {
	NHCADV_FRAME_PACKET	= 1,	/* a packet of nhcadv_wr_packet() */
	/* answer to nhcadv_wr_probe() or nhcadv_wr_fence(), or refusal of nhcadv_wr_move() */
	NHCADV_FRAME_STATUS	= 2,
	NHCADV_FRAME_WRITE	= 3,	/* a packet of nhcadv_wr_write_frames() */
	NHCADV_FRAME_REQUEST	= 4,	/* a request of nhcadv_wr_ask() */
	NHCADV_FRAME_READ	= 5,	/* a packet of nhcadv_wr_read_frames() */
};

/* nhcadv_frame.status: state of the transfer at the rCxt that was probed or fenced */
enum nhcadv_transfer_status {
	NHCADV_TRANSFER_COMPLETE	= 0,	/* all bytes are in place */
	NHCADV_TRANSFER_PARTIAL	= 1,	/* packets are missing: see nhcadv_frame_has() */
	NHCADV_TRANSFER_NONE	= 2,	/* no packet arrived, or the rCxt has another transfer */
	NHCADV_TRANSFER_PROT_ERR = 3,	/* refused by memory protection; will not complete */
	NHCADV_TRANSFER_FENCED	= 4,	/* cancelled by nhcadv_wr_fence(); places no more bytes */
	/* from the source of nhcadv_wr_move(), which sends nothing: */
	NHCADV_TRANSFER_FORBIDDEN = 5,	/* its program has not allowed the target */
	NHCADV_TRANSFER_TOO_LONG = 6,	/* its MTU is too small for the segment */
};

#define NHCADV_FRAME_DATA	1984

/**
 * struct nhcadv_frame - a frame in the receive FIFO
 * @seq:     reserved for the provider
 * @kind:    enum nhcadv_frame_kind
 * @status:  status: enum nhcadv_transfer_status
 * @length:  bytes of @data
 * @src_key: key of the peer's channel; in other kinds than NHCADV_FRAME_PACKET, only the lower 32
 *           bits of the key
 * @src_rcxt: status: rCxt of the peer, which was probed or fenced, or which refused a transfer;
 *           write, request, read: rCxt of the peer
 * @rcxt:    status, write, request, read: rCxt of this channel
 * @tid:     status: tid of the transfer, as the probe, fence or nhcadv_wr_move() named it; write,
 *           request, read: tid of the transfer
 * @total:   bytes of the transfer; status: as the probe or nhcadv_wr_move() named it, not valid
 *           after a fence
 * @segment: payload of each packet but the last; status: as the probe or nhcadv_wr_move() named it,
 *           not valid after a fence
 * @offset:  status: offset in the transfer of the first packet that @data describes, in bytes;
 *           write, read: offset of @data
 * @cookie:  cookie of the packet, or of the transfer; status: cookie of the probe or of the refused
 *           transfer, or wr_id of the fence
 * @reserved: 0
 * @received: status: number of packets of the transfer that the peer has received
 * @src_channel: QP number of the peer's channel
 * @data:    payload; in a status, a bitmap of packets
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
 * nhcadv_frame - get a pointer to a frame in the receive FIFO
 * @qp: the channel
 * @index: index of the frame, from its completion NHCADV_WC_FRAME
 *
 * The frame does not change until it is released.  The pointer is invalid after the release.
 * Return: the frame, or NULL if the FIFO has no frame with this index.
 */
const struct nhcadv_frame *nhcadv_frame(struct ibv_qp *qp, uint32_t index);

/**
 * nhcadv_release_frame - release a frame, so that the kernel can fill its slot again
 * @qp: the channel
 * @index: index of the frame
 *
 * Any thread may release frames, in any order.  The kernel reuses the slots in the order in which
 * it filled them: a frame that is not released blocks the slots that were filled after it.
 * Return: 0, or EINVAL if the FIFO has no frame with this index, or the frame was released before.
 */
int nhcadv_release_frame(struct ibv_qp *qp, uint32_t index);

/*
 * Return: true if this status says that packet number @packet of the transfer has arrived.  The
 * bitmap describes 8 * length packets, beginning with packet offset / segment.  For other packets
 * the function returns false, unless the transfer is complete.
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

#endif /* NHCADV_COMPLETION_H */
