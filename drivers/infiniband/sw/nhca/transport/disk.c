// SPDX-License-Identifier: GPL-2.0
/*
 * Requesters and responders whose bytes go to a disk.
 *
 * The bytes of a verified packet are first copied to blocks of a backing (memory/backing.h), and
 * then handed over to the backing by nhca_iter_placed().  For a region with NHCA_DIRECT_SYNC, the
 * last packet of an operation waits until the disk has the bytes.  A responder defers this packet
 * (deferral.c).  A requester treats the packet as lost and requests it again.
 */
#include "disk.h"
#include "engine.h"

int nhca_write_placed(struct nhca_qp *qp, const struct nhca_source *src, int err,
		      struct nhca_iter *it)
{
	const struct nhca_hdr *h = src->hdr;
	struct nhca_rq *rq = &qp->rq;

	if (!src->rx)
		return -EBUSY;
	if (err)
		return err;
	rq->disk = NHCA_DISK_WRITES;
	if ((h->info->flags & NHCA_OPF_FIRST) && (h->info->flags & NHCA_OPF_LAST)) {
		err = nhca_iter_key(it, &qp->key_user, h->rkey, h->va, src->len,
				    IB_ACCESS_REMOTE_WRITE);
		if (err)
			return err;
	} else {
		nhca_iter_rkey(it, &rq->wr_ref, rq->wr_len - rq->wr_left, rq->wr_left, true);
	}
	nhca_iter_for(it, rq->fault, rq->op);
	return nhca_iter_placed(it, src->len, false);
}

/* Start an iterator at the next byte of the SEND that is arriving. */
static void nhca_recv_iter(const struct nhca_rq *rq, struct nhca_iter *it)
{
	nhca_iter_sges(it, &rq->key_user, rq->rwr->sge, rq->rwr->num_sge, rq->recv_off,
		       rq->rwr->length - rq->recv_off, IB_ACCESS_LOCAL_WRITE);
	nhca_iter_for(it, rq->fault, rq->op);
}

int nhca_recv_placed(struct nhca_qp *qp, const struct nhca_source *src, int err,
		     struct nhca_iter *it)
{
	struct nhca_rq *rq = &qp->rq;

	if (!src->rx)
		return -EBUSY;
	if (err)
		return err;
	rq->disk = NHCA_DISK_WRITES;
	nhca_recv_iter(rq, it);
	return nhca_iter_placed(it, src->len, src->hdr->info->flags & NHCA_OPF_LAST);
}

u32 nhca_middle_placed(struct nhca_qp *qp, bool write, u32 n, struct nhca_iter *it)
{
	struct nhca_rq *rq = &qp->rq;

	if (!n)
		return 0;
	rq->disk = NHCA_DISK_WRITES;
	if (write) {
		nhca_iter_rkey(it, &rq->wr_ref, rq->wr_len - rq->wr_left, rq->wr_left, true);
		nhca_iter_for(it, rq->fault, rq->op);
	} else {
		nhca_recv_iter(rq, it);
	}
	return nhca_iter_placed(it, n * qp->mtu, false) ? 0 : n;
}

int nhca_target_placed(struct nhca_qp *qp, struct nhca_swr *swr, u32 off, u32 len, int err,
		       struct nhca_iter *it)
{
	if (err || !len)
		return err;
	swr->disk = NHCA_DISK_WRITES;
	nhca_swr_target(qp, swr, off, it);
	nhca_iter_for(it, qp->sq.fault, swr->op);
	return nhca_iter_placed(it, len, off + len == swr->length);
}

int nhca_message_sync(struct nhca_rq *rq, const struct nhca_source *src)
{
	int err;

	lockdep_assert_held(&rq->lock);
	if (!(src->hdr->info->flags & NHCA_OPF_LAST))
		return 0;
	err = nhca_fault_sync(rq->fault);
	rq->disk = NHCA_DISK_WRITES;
	if (err == -EAGAIN) {
		rq->disk = NHCA_DISK_WAITS;
		rq->last_opcode = src->hdr->opcode;
		rq->last_len = src->len;
	}
	return err;
}

int nhca_target_sync(struct nhca_qp *qp, struct nhca_swr *swr)
{
	int err;

	lockdep_assert_held(&qp->sq.lock);
	err = nhca_fault_sync(qp->sq.fault);
	swr->disk = err == -EAGAIN ? NHCA_DISK_WAITS : NHCA_DISK_WRITES;
	return err;
}
