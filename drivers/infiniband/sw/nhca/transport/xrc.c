// SPDX-License-Identifier: GPL-2.0
/*
 * Extended reliable connection (IBTA A14).  An XRC target has no queue and no memory of its own:
 * each request names the SRQ that it is for, and that SRQ's process has what is written to or read
 * from.  The SRQ may go at any time; then the next request for it finds nobody.
 */
#include "engine.h"

struct nhca_srq *nhca_xrc_find(const struct nhca_qp *qp, u32 srqn)
{
	struct nhca_srq *srq = xa_load(&qp->dev->srq_ids, srqn);

	if (!srq || srq->ibsrq.srq_type != IB_SRQT_XRC || srq->ibsrq.ext.xrc.xrcd != qp->xrcd)
		return NULL;
	return srq;
}

bool nhca_xrc_enter(struct nhca_qp *qp, const struct nhca_hdr *h)
{
	struct nhca_srq *srq = nhca_xrc_find(qp, h->srqn);
	struct nhca_rq *rq = &qp->rq;

	if (!srq)
		return false;
	/* a message is for one SRQ, and so is the receive request that it has taken */
	if (h->srqn != rq->srqn && (rq->have_rwr || !(h->info->flags & NHCA_OPF_FIRST)))
		return false;
	rq->srqn = h->srqn;
	rq->xsrq = srq;
	qp->key_user.pd = srq->ibsrq.pd;
	rq->key_user.pd = srq->ibsrq.pd;
	return true;
}
