/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * nhca direct verbs: half transfers of channels, in which only one end uses job memory.  Programs
 * include nhcadv.h, which includes this file.
 */
#ifndef NHCADV_HALF_H
#define NHCADV_HALF_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <infiniband/verbs.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Bytes of cap.max_inline_data that nhcadv_wr_part() and nhcadv_wr_answer() need in addition to
 * those of their packet
 */
#define NHCADV_PART_HEADER	40

/*
 * Half-send write: send the packet at @offset of a write.  The call copies the bytes of the packet
 * from the buffers of @buf_list, which need be neither registered nor contiguous.  The buffers
 * together have transfer->segment bytes, or, for the last packet, the remaining bytes of
 * transfer->total.  A packet has at most cap.max_inline_data - NHCADV_PART_HEADER bytes.
 * transfer->segment is not 0, transfer->notify has NHCADV_NOTIFY_INITIATOR, and local_pvo is not
 * used.  Post each packet once, in any order, and again if it was lost.  NHCADV_WC_WRITE has the
 * wr_id of the packet that was posted first.  Only this device needs NHCADV_DEVICE_PART: the peer
 * handles the packets like those of nhcadv_wr_write().
 */
static inline void nhcadv_wr_part(struct nhcadv_qp_ex *qp, const struct nhcadv_peer *peer,
				  const struct nhcadv_transfer *transfer, uint32_t offset,
				  size_t num_buf, const struct ibv_data_buf *buf_list)
{
	qp->wr_part(qp, peer, transfer, offset, num_buf, buf_list);
}

/*
 * Half-receive write: each packet goes into one frame NHCADV_FRAME_WRITE of the peer's receive
 * FIFO, and not into memory.  The frame has the packet's offset; frames come in any order, each
 * once.  remote_pvo is 0, and segment at most NHCADV_FRAME_DATA.  If the FIFO is full, the peer
 * drops a packet, which counts as not received: probe, and send the missing packets with
 * nhcadv_wr_frames_again().  NHCADV_WC_WRITE here, and NHCADV_WC_REMOTE_WRITE at the peer, say that
 * all packets are in frames.  Both ends need NHCADV_DEVICE_FRAMES.  A peer without this capability
 * drops the packets.
 */
static inline void nhcadv_wr_write_frames(struct nhcadv_qp_ex *qp, const struct nhcadv_peer *peer,
					  const struct nhcadv_transfer *transfer)
{
	qp->wr_write_frames(qp, peer, transfer);
}

/* Retransmit a part of nhcadv_wr_write_frames(); otherwise as nhcadv_wr_retransmit(). */
static inline void nhcadv_wr_frames_again(struct nhcadv_qp_ex *qp, const struct nhcadv_peer *peer,
					  const struct nhcadv_transfer *transfer, uint32_t offset,
					  uint32_t length)
{
	qp->wr_frames_again(qp, peer, transfer, offset, length);
}

/*
 * Half-send read: request bytes of the peer's program, which go into local memory.  The peer's
 * receive FIFO gets a frame NHCADV_FRAME_REQUEST, exactly one for each tid.  remote_pvo may be any
 * value that the peer's program understands.  NHCADV_WC_READ says that all bytes are in place.  If
 * this completion does not come, the request may be lost: post nhcadv_wr_ask_again().  Both ends
 * need NHCADV_DEVICE_ASK.  A peer without this capability drops the request.
 */
static inline void nhcadv_wr_ask(struct nhcadv_qp_ex *qp, const struct nhcadv_peer *peer,
				 const struct nhcadv_transfer *transfer)
{
	qp->wr_ask(qp, peer, transfer);
}

/* Repeat the request of nhcadv_wr_ask().  transfer->segment is not 0. */
static inline void nhcadv_wr_ask_again(struct nhcadv_qp_ex *qp, const struct nhcadv_peer *peer,
				       const struct nhcadv_transfer *transfer)
{
	qp->wr_ask_again(qp, peer, transfer);
}

/**
 * struct nhcadv_request - request in a frame NHCADV_FRAME_REQUEST
 * @remote_pvo: remote_pvo of the reader
 * @reply_pvo:  local_pvo of the reader, which is remote_pvo of the answer
 */
struct nhcadv_request {
	uint64_t remote_pvo;
	uint64_t reply_pvo;
};

/**
 * nhcadv_frame_request - get the request in a frame
 * @frame: a frame NHCADV_FRAME_REQUEST
 * Return: the request.
 */
static inline struct nhcadv_request nhcadv_frame_request(const struct nhcadv_frame *frame)
{
	struct nhcadv_request request;

	memcpy(&request, frame->data, sizeof(request));
	return request;
}

/*
 * Answer a request: send the packet at @offset, as nhcadv_wr_part() does.  @transfer has rCxts,
 * tid, total and segment of the frame.  remote_pvo is reply_pvo of the request, notify is 0, and
 * local_pvo is not used.  Post each packet once, in any order.  To find out which packets were
 * lost, probe the reader, and post these packets again.  If the reader has requested
 * NHCADV_NOTIFY_TARGET, NHCADV_WC_REMOTE_READ says that the reader has all bytes.
 */
static inline void nhcadv_wr_answer(struct nhcadv_qp_ex *qp, const struct nhcadv_peer *peer,
				    const struct nhcadv_transfer *transfer, uint32_t offset,
				    size_t num_buf, const struct ibv_data_buf *buf_list)
{
	qp->wr_answer(qp, peer, transfer, offset, num_buf, buf_list);
}

/*
 * Half-receive read: each packet goes into one frame NHCADV_FRAME_READ of the receive FIFO of this
 * end, and not into memory.  The frame has the packet's offset; frames come in any order, each
 * once.  The call requests the first @length bytes: a multiple of the segment, or transfer->total.
 * local_pvo is 0, and segment at most NHCADV_FRAME_DATA.  If the FIFO is full, the kernel drops a
 * packet, which counts as not received.  So request at most as many packets at a time as the FIFO
 * has room for.  nhcadv_wr_read_frames_again() requests the other packets, and missing packets.
 * NHCADV_WC_READ says that all packets are in frames.  Both ends need NHCADV_DEVICE_READ_FRAMES.
 * A peer without this capability drops the request.
 */
static inline void nhcadv_wr_read_frames(struct nhcadv_qp_ex *qp, const struct nhcadv_peer *peer,
					 const struct nhcadv_transfer *transfer, uint32_t length)
{
	qp->wr_read_frames(qp, peer, transfer, length);
}

/*
 * Request @length bytes of nhcadv_wr_read_frames(), from @offset on.  @offset and @length are as
 * for nhcadv_wr_retransmit().
 */
static inline void nhcadv_wr_read_frames_again(struct nhcadv_qp_ex *qp,
					       const struct nhcadv_peer *peer,
					       const struct nhcadv_transfer *transfer,
					       uint32_t offset, uint32_t length)
{
	qp->wr_read_frames_again(qp, peer, transfer, offset, length);
}

#ifdef __cplusplus
}
#endif

#endif /* NHCADV_HALF_H */
