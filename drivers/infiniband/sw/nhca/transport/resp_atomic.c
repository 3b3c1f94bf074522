// SPDX-License-Identifier: GPL-2.0
/* The responder of RC: atomics (IBTA 9.4.5), ATOMIC WRITE and FLUSH (A19). */
#include "engine.h"

enum nhca_verdict nhca_do_atomic(struct nhca_qp *qp, struct nhca_source *src)
{
	const struct nhca_hdr *h = src->hdr;
	bool cas = (h->opcode & NHCA_OP_MASK) == NHCA_OP_CMP_SWAP;
	struct nhca_rq *rq = &qp->rq;
	struct nhca_res *res;
	u64 orig;
	int err;

	if (!(qp->attr.qp_access_flags & IB_ACCESS_REMOTE_ATOMIC) || (h->va & 7))
		return nhca_refuse_invalid(qp);
	if (!nhca_res_alloc(rq))
		return NHCA_DROPPED;
	res = nhca_res_new(qp, h, 1);
	if (!res)
		return nhca_refuse_invalid(qp);
	nhca_live_enter();
	err = nhca_atomic(&qp->key_user, h->rkey, h->va, cas, cas ? h->compare : h->swap_add,
			  h->swap_add, &orig, rq->fault);
	nhca_live_exit();
	if (err) {
		nhca_res_drop(rq, res);
		return err == -EAGAIN ? nhca_defer_for_page(qp, src) : nhca_refuse_access(qp);
	}
	res->orig = orig;
	return NHCA_EXECUTED;
}

enum nhca_verdict nhca_do_atomic_write(struct nhca_qp *qp, struct nhca_source *src)
{
	const struct nhca_hdr *h = src->hdr;
	struct nhca_rq *rq = &qp->rq;
	struct nhca_res *res;
	u64 value;
	int err;

	if (!(qp->attr.qp_access_flags & IB_ACCESS_REMOTE_WRITE) || (h->va & 7) ||
	    h->dmalen != sizeof(value) || src->len != sizeof(value))
		return nhca_refuse_invalid(qp);
	if (!nhca_res_alloc(rq) || nhca_rx_read(src->rx, &value, sizeof(value)))
		return NHCA_DROPPED;
	res = nhca_res_new(qp, h, 1);
	if (!res)
		return nhca_refuse_invalid(qp);
	nhca_live_enter();
	err = nhca_atomic_write(&qp->key_user, h->rkey, h->va, value, rq->fault);
	nhca_live_exit();
	if (err) {
		nhca_res_drop(rq, res);
		return err == -EAGAIN ? nhca_defer_for_page(qp, src) : nhca_refuse_access(qp);
	}
	return NHCA_EXECUTED;
}

/*
 * The data of earlier requests is in memory already, because requests are executed in order.  But
 * if the region is a part of a file, the disk may not have the data yet.  For such a region
 * nhca_flush() starts a flush and returns -EAGAIN, and the request is deferred until the flush
 * ends.
 */
enum nhca_verdict nhca_do_flush(struct nhca_qp *qp, struct nhca_source *src)
{
	const struct nhca_hdr *h = src->hdr;
	struct nhca_rq *rq = &qp->rq;
	struct nhca_res *res;
	int access = 0;
	int err;

	if (h->flush_type & NHCA_FETH_GLOBAL)
		access |= IB_ACCESS_FLUSH_GLOBAL;
	if (h->flush_type & NHCA_FETH_PERSISTENT)
		access |= IB_ACCESS_FLUSH_PERSISTENT;
	if (!access || (qp->attr.qp_access_flags & access) != access ||
	    (h->flush_type & ~(NHCA_FETH_GLOBAL | NHCA_FETH_PERSISTENT)) ||
	    h->flush_level > NHCA_FETH_REGION || h->dmalen > NHCA_MAX_MSG_SIZE)
		return nhca_refuse_invalid(qp);
	if (!nhca_res_alloc(rq))
		return NHCA_DROPPED;
	res = nhca_res_new(qp, h, 1);
	if (!res)
		return nhca_refuse_invalid(qp);
	nhca_message_begin(rq);
	nhca_live_enter();
	err = nhca_flush(&qp->key_user, h->rkey, h->va, h->dmalen,
			 h->flush_level == NHCA_FETH_REGION, access, rq->fault, rq->op);
	nhca_live_exit();
	if (!err)
		return NHCA_EXECUTED;
	nhca_res_drop(rq, res);
	if (err == -EAGAIN)
		return nhca_defer_for_page(qp, src);
	if (err == -EIO)
		return nhca_refuse(qp, NHCA_NAK_REM_OP, IB_EVENT_QP_FATAL);
	return nhca_refuse_access(qp);
}
