// SPDX-License-Identifier: GPL-2.0
/*
 * Extended reliable connection (IBTA A14).  An XRC target has no receive queue and no protection
 * domain.  Each request names an SRQ, and uses keys of that SRQ's protection domain.  The SRQ may
 * be destroyed at any time; then the next request that names the SRQ is refused.
 */
#include "engine.h"

struct nhca_srq *nhca_xrc_find(const struct nhca_qp *qp, u32 srqn)
{
	struct nhca_srq *srq = xa_load(&qp->dev->srq_ids, srqn);

	lockdep_assert_held(&qp->rq.lock);
	if (!srq || srq->ibsrq.srq_type != IB_SRQT_XRC || srq->ibsrq.ext.xrc.xrcd != qp->xrcd)
		return NULL;
	return srq;
}

bool nhca_xrc_enter(struct nhca_qp *qp, const struct nhca_hdr *h)
{
	struct nhca_srq *srq = nhca_xrc_find(qp, h->srqn);
	struct nhca_rq *rq = &qp->rq;
	u64 id;

	lockdep_assert_held(&rq->lock);
	if (!srq)
		return false;
	/*
	 * All packets of a message, and its receive request, are for one SRQ.  A new SRQ may have
	 * the number of a destroyed SRQ, so compare the serial number as well.
	 */
	id = srq->serial | h->srqn;
	if (id != rq->srq_id && (rq->have_rwr || !(h->info->flags & NHCA_OPF_FIRST)))
		return false;
	rq->srq_id = id;
	rq->xsrq = srq;
	qp->key_user.pd = srq->ibsrq.pd;
	rq->key_user.pd = srq->ibsrq.pd;
	return true;
}
