// SPDX-License-Identifier: GPL-2.0
/* The state of a queue pair, for `rdma resource`. */
#include "engine.h"

static void nhca_rq_dump(struct nhca_rq *rq, struct nhca_res_qp *res)
{
	res->rq_psn = rq->psn;
	res->msn = rq->msn;
	res->rq_bytes = rq->recv_off;
	res->nak_syndrome = rq->nak_due ? rq->syndrome : 0;
	res->deferred = rq->ndeferred;
	res->responder_active = rq->res_head - rq->res_tail;
}

static void nhca_sq_dump(struct nhca_sq *sq, struct nhca_res_qp *res)
{
	const struct nhca_swr *swr;
	int n = nhca_ring_produced(&sq->ring, sq->cons);

	res->sq_size = sq->max_wr;
	res->sq_outstanding = sq->fetched - sq->cons;
	/* a broken ring counts as empty */
	res->sq_posted = max(n - (int)res->sq_outstanding, 0);
	res->sq_psn = sq->psn;
	res->sq_una = sq->una;
	res->sq_nxt = sq->nxt;
	res->cwnd = sq->window.cwnd;
	res->ssthresh = sq->window.ssthresh;
	res->rd_atomic = sq->rd_atomic;
	res->retries_left = sq->rtx->retries;
	res->rnr_retries_left = sq->rnr_retries;
	res->rnr_wait = sq->rnr_wait;
	res->rto_backoff = sq->rtx->rto_backoff;
	res->tlp_count = sq->rtx->tlp_count;
	res->srtt_us = sq->rtx->rtt >> 3;
	res->rttvar_us = sq->rtx->rtt_dev >> 2;
	swr = list_first_entry_or_null(&sq->inflight, struct nhca_swr, list);
	res->oldest_opcode = swr ? swr->wqe.opcode : ~0U;
	if (!swr)
		return;
	res->oldest_packets = swr->npsn;
	res->oldest_sent = swr->sent;
	res->oldest_wr_id = swr->wqe.wr_id;
}

void nhca_qp_dump(struct nhca_qp *qp, struct nhca_res_qp *res)
{
	memset(res, 0, sizeof(*res));
	res->size = sizeof(*res);
	res->qpn = qp->qpn;
	res->type = qp->ibqp.qp_type;
	res->tx_queued = nhca_flow_inflight(qp->flow);
	res->peer = READ_ONCE(qp->peer);
	if (!nhca_qp_srq(qp))
		res->rq_posted = nhca_rwq_level(&qp->rq.wq);

	spin_lock_bh(&qp->rq.lock);
	res->state = READ_ONCE(qp->state);
	res->dest_qpn = qp->attr.dest_qp_num;
	res->path_mtu = qp->mtu;
	res->udp_sport = qp->sport;
	nhca_rq_dump(&qp->rq, res);
	spin_unlock_bh(&qp->rq.lock);

	local_bh_disable();
	spin_lock(&qp->sq.lock);
	nhca_sq_dump(&qp->sq, res);
	/* the unlock runs the requester if another CPU has set nhca_sq.kicked since spin_lock() */
	nhca_sq_unlock(qp);
	local_bh_enable();
}
