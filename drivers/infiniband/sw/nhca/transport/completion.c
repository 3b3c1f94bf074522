// SPDX-License-Identifier: GPL-2.0
/* Completions of send and receive requests, and flush (IBTA 10.8.3.4, 11.6.2). */
#include <linux/slab.h>

#include "../observe/trace.h"
#include "engine.h"

static const u8 nhca_wc_opcode[] = {
	[NHCA_WR_RDMA_WRITE] = IB_WC_RDMA_WRITE,
	[NHCA_WR_RDMA_WRITE_WITH_IMM] = IB_WC_RDMA_WRITE,
	[NHCA_WR_SEND] = IB_WC_SEND,
	[NHCA_WR_SEND_WITH_IMM] = IB_WC_SEND,
	[NHCA_WR_SEND_WITH_INV] = IB_WC_SEND,
	[NHCA_WR_RDMA_READ] = IB_WC_RDMA_READ,
	[NHCA_WR_ATOMIC_CMP_AND_SWP] = IB_WC_COMP_SWAP,
	[NHCA_WR_ATOMIC_FETCH_AND_ADD] = IB_WC_FETCH_ADD,
	[NHCA_WR_LOCAL_INV] = IB_WC_LOCAL_INV,
	[NHCA_WR_BIND_MW] = IB_WC_BIND_MW,
	[NHCA_WR_FLUSH] = IB_WC_FLUSH,
	[NHCA_WR_ATOMIC_WRITE] = IB_WC_ATOMIC_WRITE,
	[NHCA_WR_REG_MR] = IB_WC_REG_MR,
};

static void nhca_post_cqe(struct nhca_qp *qp, struct ib_cq *ibcq, struct nhca_cqe *cqe,
			  bool solicited)
{
	cqe->qp_num = qp->qpn;
	cqe->kernel = (uintptr_t)&qp->ibqp;
	if (nhca_cq_post(to_nhca_cq(ibcq), cqe, solicited || cqe->status)) {
		nhca_count(&qp->who, NHCA_CNT_CQ_OVERFLOW);
		nhca_qp_set_error(qp, IB_EVENT_QP_FATAL);
	}
}

static void nhca_swr_count(const struct nhca_qp *qp, const struct nhca_swr *swr,
			   enum ib_wc_status status)
{
	switch (status) {
	case IB_WC_SUCCESS:
		if (nhca_swr_is_send(swr))
			nhca_count(&qp->who, NHCA_CNT_SENDS);
		break;
	case IB_WC_WR_FLUSH_ERR:
		nhca_count(&qp->who, NHCA_CNT_SEND_CQE_FLUSH);
		break;
	default:
		nhca_count(&qp->who, NHCA_CNT_SEND_CQE_ERR);
	}
}

/*
 * Free @swr, which the caller has removed from its list, and its ring entry.  Post its completion,
 * unless the request is unsignaled and has succeeded.
 */
static __always_inline void nhca_swr_retire(struct nhca_qp *qp, struct nhca_swr *swr)
{
	struct nhca_sq *sq = &qp->sq;
	enum ib_wc_status status = swr->status;
	bool tell = nhca_swr_signaled(qp, swr) || status != IB_WC_SUCCESS;
	struct nhca_cqe cqe __uninitialized;

	nhca_swr_count(qp, swr, status);
	trace_nhca_wqe_completed(&qp->who, swr->wqe.opcode, swr->wqe.wr_id, status, swr->length,
				 swr->clock);
	if (tell) {
		cqe = (struct nhca_cqe) {
			.wr_id = swr->wqe.wr_id,
			.status = status,
			.byte_len = swr->length,
		};
		if (swr->wqe.opcode < ARRAY_SIZE(nhca_wc_opcode))
			cqe.opcode = nhca_wc_opcode[swr->wqe.opcode];
	}

	nhca_swr_free(sq, swr);

	/* first free the entry, so that a consumer that polls the completion can post again */
	nhca_ring_release(&sq->ring, ++sq->cons);
	if (tell)
		nhca_post_cqe(qp, qp->ibqp.send_cq, &cqe, false);
}

/* Return: true if the stack has released the buffers of @swr; if not, the release kicks the QP. */
static bool nhca_swr_released(struct nhca_qp *qp, const struct nhca_swr *swr)
{
	return !swr->zcopied || nhca_zcopy_released(qp->flow, swr->zcopy);
}

void nhca_swr_complete(struct nhca_qp *qp, struct nhca_swr *swr, enum ib_wc_status status)
{
	struct nhca_sq *sq = &qp->sq;

	lockdep_assert_held(&sq->lock);
	list_del(&swr->list);
	if (sq->cur == swr)
		sq->cur = NULL;
	swr->status = status;
	if (unlikely(!list_empty(&sq->retired)) || unlikely(!nhca_swr_released(qp, swr)))
		list_add_tail(&swr->list, &sq->retired);
	else
		nhca_swr_retire(qp, swr);
}

void nhca_swr_complete_later(struct nhca_qp *qp, struct nhca_swr *swr, enum ib_wc_status status)
{
	struct nhca_sq *sq = &qp->sq;

	lockdep_assert_held(&sq->lock);
	swr->status = status;
	list_move_tail(&swr->list, &sq->retired);
	nhca_bh_queue(&qp->kick);
}

void nhca_sq_retire(struct nhca_qp *qp)
{
	struct nhca_sq *sq = &qp->sq;
	int budget = NHCA_BUDGET;
	struct nhca_swr *swr;

	lockdep_assert_held(&sq->lock);
	sq->nlocal = 0;
	/* a budget, because one release by the stack, or one ACK, may complete the whole ring */
	for (; !list_empty(&sq->retired); budget--) {
		if (!budget) {
			nhca_bh_queue(&qp->kick);
			return;
		}
		swr = list_first_entry(&sq->retired, struct nhca_swr, list);
		if (!nhca_swr_released(qp, swr))
			return;
		list_del(&swr->list);
		nhca_swr_retire(qp, swr);
	}
}

void nhca_sq_flush(struct nhca_qp *qp)
{
	struct nhca_sq *sq = &qp->sq;
	int budget = NHCA_BUDGET;
	struct nhca_swr *swr;

	lockdep_assert_held(&sq->lock);
	nhca_fault_abort(sq->fault);
	sq->rnr_wait = false;
	sq->rd_atomic = 0;
	/* a budget, because user space may post as fast as this loop flushes */
	for (;; budget--) {
		if (!budget) {
			nhca_bh_queue(&qp->kick);
			return;
		}
		swr = list_first_entry_or_null(&sq->inflight, struct nhca_swr, list);
		if (!swr)
			swr = nhca_sq_fetch(qp);
		if (PTR_ERR(swr) == -ENOMEM) {
			mod_timer(&sq->timer, jiffies + 1);
			return;
		}
		/* no request is posted; a broken ring has none that could be flushed */
		if (IS_ERR_OR_NULL(swr))
			return;
		nhca_swr_complete(qp, swr, IB_WC_WR_FLUSH_ERR);
	}
}

void nhca_sq_fail(struct nhca_qp *qp, enum ib_wc_status status)
{
	struct nhca_swr *swr;

	lockdep_assert_held(&qp->sq.lock);
	swr = list_first_entry(&qp->sq.inflight, struct nhca_swr, list);
	nhca_swr_complete(qp, swr, status);
	/* SQE is for UC, UD and GSI (IBTA 10.3.1.6) */
	if (nhca_is_reliable(qp) || nhca_is_raw(qp))
		nhca_qp_set_error(qp, -1);
	else
		nhca_qp_set_sqe(qp);
	nhca_sq_flush(qp);
}

int nhca_rq_fetch(struct nhca_qp *qp)
{
	struct nhca_rq *rq = &qp->rq;
	struct nhca_srq *srq = rq->xsrq ?: nhca_qp_srq(qp);
	int err;

	lockdep_assert_held(&rq->lock);
	if (rq->have_rwr)
		return 0;
	err = srq ? nhca_srq_fetch(srq, rq->rwr) : nhca_rwq_fetch(&rq->wq, rq->rwr);
	if (!err || err == -EINVAL) {
		rq->have_rwr = true;
		rq->rwr->clock = nhca_trace_clock();
		trace_nhca_wqe_started(&qp->who, NHCA_TRACE_RECV, rq->rwr->wr_id,
				       rq->rwr->length, 0, 0);
	}
	return err;
}

/* Fetch a receive request that no message has used, to flush it.  Return: as nhca_rwq_fetch(). */
static int nhca_rq_fetch_unused(struct nhca_rq *rq)
{
	int err = nhca_rwq_fetch(&rq->wq, rq->rwr);

	if (!err || err == -EINVAL) {
		rq->have_rwr = true;
		rq->rwr->clock = 0;
	}
	return err;
}

static void nhca_rq_count(const struct nhca_qp *qp, enum ib_wc_status status)
{
	switch (status) {
	case IB_WC_SUCCESS:
		nhca_count(&qp->who, NHCA_CNT_RECVS);
		break;
	case IB_WC_WR_FLUSH_ERR:
		nhca_count(&qp->who, NHCA_CNT_RECV_CQE_FLUSH);
		break;
	case IB_WC_LOC_LEN_ERR:
		nhca_count(&qp->who, NHCA_CNT_RECV_LENGTH_ERR);
		fallthrough;
	default:
		nhca_count(&qp->who, NHCA_CNT_RECV_CQE_ERR);
	}
}

void nhca_rq_complete(struct nhca_qp *qp, struct nhca_cqe *cqe, bool solicited)
{
	struct nhca_rq *rq = &qp->rq;

	lockdep_assert_held(&rq->lock);
	nhca_rq_count(qp, cqe->status);
	trace_nhca_wqe_completed(&qp->who, NHCA_TRACE_RECV, rq->rwr->wr_id, cqe->status,
				 cqe->byte_len, rq->rwr->clock);
	cqe->wr_id = rq->rwr->wr_id;
	rq->have_rwr = false;
	nhca_post_cqe(qp, rq->xsrq ? rq->xsrq->ibsrq.ext.cq : qp->ibqp.recv_cq, cqe, solicited);
}

/*
 * Find the SRQ from which an XRC target has fetched rq.rwr.  If the SRQ was destroyed, drop the
 * receive request.
 */
static void nhca_rq_find_xsrq(struct nhca_qp *qp)
{
	const u64 number = BIT_ULL(NHCA_SRQN_BITS) - 1;
	struct nhca_rq *rq = &qp->rq;

	rq->xsrq = nhca_xrc_find(qp, rq->srq_id & number);
	if (!rq->xsrq || rq->xsrq->serial != (rq->srq_id & ~number))
		rq->have_rwr = false;
}

void nhca_rq_flush(struct nhca_qp *qp)
{
	struct nhca_rq *rq = &qp->rq;
	int budget, err;

	lockdep_assert_held(&rq->lock);
	nhca_fault_abort(rq->fault);
	nhca_rq_put_rkey(qp);
	nhca_defer_drop(qp);
	if (!rq->rwr)
		return;

	if (!nhca_qp_has_rq(qp)) {
		rcu_read_lock();
		if (qp->ibqp.qp_type == IB_QPT_XRC_TGT)
			nhca_rq_find_xsrq(qp);
		/* 10.2.9.4.2: the requests in the SRQ stay there for other QPs */
		if (rq->have_rwr) {
			struct nhca_cqe cqe = {
				.status = IB_WC_WR_FLUSH_ERR,
				.opcode = IB_WC_RECV,
			};

			nhca_rq_complete(qp, &cqe, true);
		}
		rcu_read_unlock();
		if (!qp->last_wqe_sent && qp->ibqp.qp_type != IB_QPT_XRC_INI) {
			qp->last_wqe_sent = true;
			nhca_qp_event(qp, IB_EVENT_QP_LAST_WQE_REACHED);
		}
		return;
	}

	/* from now on user space rings a doorbell for receives (NHCA_RING_F_NEED_DOORBELL) */
	WRITE_ONCE(rq->wq.ring.hdr->flags, NHCA_RING_F_NEED_DOORBELL);
	/* pairs with the fence in wants_doorbell() of libnhca, which posts, then reads the flag */
	smp_mb();
	/* for the reason of the budget see nhca_sq_flush() */
	for (budget = NHCA_BUDGET; budget; budget--) {
		struct nhca_cqe cqe = {
			.status = IB_WC_WR_FLUSH_ERR,
			.opcode = IB_WC_RECV,
		};

		err = rq->have_rwr ? 0 : nhca_rq_fetch_unused(rq);
		if (err && err != -EINVAL)
			return;
		nhca_rq_complete(qp, &cqe, true);
	}
	nhca_bh_queue(&qp->kick);
}
