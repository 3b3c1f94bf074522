/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Interface of disk.c to the other files of transport/.  Context of all functions: the lock of the
 * half is held.
 */
#ifndef NHCA_DISK_H
#define NHCA_DISK_H

#include "qp.h"
#include "source.h"

/**
 * nhca_write_placed - hand the payload of a WRITE over to a backing, by nhca_iter_placed()
 * nhca_recv_placed - the same for a SEND
 * nhca_middle_placed - the same for @n packets from the middle of a WRITE (@write) or SEND
 * nhca_target_placed - the same for @len bytes from byte @off of the response to the READ @swr
 * @qp:  the QP
 * @src: the packet, or the step of the same-host path
 * @err: result of the copy
 * @it:  the iterator of the copy, which the function starts again at the first of the bytes
 * Context: the live section of the copy.
 * Return: 0, @err, or an error of nhca_iter_key() or nhca_iter_placed(); -EBUSY: the same-host path
 * does not write to regions of a backing.  nhca_middle_placed(): @n, or 0 if the packets have to
 * come again.
 */
int nhca_write_placed(struct nhca_qp *qp, const struct nhca_source *src, int err,
		      struct nhca_iter *it);
int nhca_recv_placed(struct nhca_qp *qp, const struct nhca_source *src, int err,
		     struct nhca_iter *it);
u32 nhca_middle_placed(struct nhca_qp *qp, bool write, u32 n, struct nhca_iter *it);
int nhca_target_placed(struct nhca_qp *qp, struct nhca_swr *swr, u32 off, u32 len, int err,
		       struct nhca_iter *it);

/**
 * nhca_message_sync - check whether a packet of a SEND or WRITE must wait for a disk
 * nhca_target_sync - check whether a READ must wait for a disk before it completes
 * @rq:  the responder
 * @src: the packet, or a step of the same-host path; only the last one of a message may wait
 * Return: 0: the bytes are on the disk, or need not be; -EAGAIN: the disk has not written all bytes
 * yet, and the QP is kicked when it has written them; -EIO: the disk could not write them.
 */
int nhca_message_sync(struct nhca_rq *rq, const struct nhca_source *src);
int nhca_target_sync(struct nhca_qp *qp, struct nhca_swr *swr);

/* Return: true if @src is a last packet that waits for a disk, so its payload is placed already. */
static inline bool nhca_waits_for_disk(const struct nhca_rq *rq, const struct nhca_source *src)
{
	return unlikely(rq->disk == NHCA_DISK_WAITS) && src->rx &&
	       src->hdr->opcode == rq->last_opcode && src->len == rq->last_len;
}

#endif /* NHCA_DISK_H */
