/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * nhca direct verbs: half transfers of channels, in which only one end uses job memory.  Programs
 * include nhcadv.h, which includes this file.
 */
#ifndef NHCADV_HALF_H
#define NHCADV_HALF_H

#include <stddef.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes of cap.max_inline_data that nhcadv_wr_part() needs in addition to those of its packet */
#define NHCADV_PART_HEADER	40

/*
 * Half-send write: send the packet at @offset of a write.  The call copies its bytes from
 * @buf_list, whose buffers need not be registered, or contiguous.  They have together
 * transfer->segment bytes, or what is left of transfer->total, and at most cap.max_inline_data -
 * NHCADV_PART_HEADER.  transfer->segment is not 0, transfer->notify has NHCADV_NOTIFY_INITIATOR,
 * and local_pvo is not used.  Post each packet once, in any order, and again if it was lost.
 * NHCADV_WC_WRITE has the wr_id of the packet that was posted first.  Needs NHCADV_DEVICE_PART
 * here; the peer sees an ordinary write.
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
 * once.  remote_pvo is 0, and segment at most NHCADV_FRAME_DATA.  A packet that finds the FIFO full
 * is dropped, and counts as not received: probe, and send the missing packets with
 * nhcadv_wr_frames_again().  NHCADV_WC_WRITE here, and NHCADV_WC_REMOTE_WRITE at the peer, say that
 * each packet has got its frame.  Both ends need NHCADV_DEVICE_FRAMES; a peer without it drops the
 * packets.
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

#ifdef __cplusplus
}
#endif

#endif /* NHCADV_HALF_H */
