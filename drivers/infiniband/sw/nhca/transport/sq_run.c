// SPDX-License-Identifier: GPL-2.0
/*
 * The requester: passes over the work requests of a send queue (IBTA 9.7.2, 10.8.3).  A pass
 * decides on a step and executes the step, again and again, until nothing can be done or the budget
 * is used up.
 */
#include "../observe/trace.h"
#include "engine.h"

/* Begin a request: assign its PSNs, and execute it if it is a local operation. */
static void nhca_swr_begin(struct nhca_qp *qp, struct nhca_swr *swr)
{
	struct nhca_sq *sq = &qp->sq;

	if (nhca_swr_is_rd_atomic(swr) && !qp->attr.max_rd_atomic) {
		swr->status = IB_WC_LOC_QP_OP_ERR;
		return;
	}

	if (nhca_swr_is_local(swr))
		swr->npsn = 0;
	else if (nhca_is_datagram(qp) || nhca_is_raw(qp) ||
		 (nhca_swr_is_rd_atomic(swr) && !nhca_swr_is_read(swr)))
		swr->npsn = 1;
	else
		swr->npsn = nhca_psn_count(swr->length, qp->mtu);
	if (list_is_first(&swr->list, &sq->inflight)) {
		/* nothing was outstanding, so the timeout counts from now */
		nhca_rtx_begin(sq->rtx, jiffies);
		if (sq->una != sq->psn)
			nhca_sq_progress(qp, sq->psn);
	}
	swr->psn = sq->psn;
	sq->psn = nhca_psn_add(sq->psn, swr->npsn);
	swr->op = ++sq->ops;
	swr->begun = true;
	swr->clock = nhca_trace_clock();
	trace_nhca_wqe_started(&qp->who, swr->wqe.opcode, swr->wqe.wr_id, swr->length, swr->psn,
			       swr->npsn);
	if (nhca_swr_is_local(swr)) {
		/*
		 * The operation may close a key whose payload is in the batch, so first send the
		 * batch.  The operation may also wait for live sections, so first release the
		 * peer's lock.
		 */
		nhca_loop_end(qp);
		nhca_burst_flush(sq->burst);
		nhca_local_run(qp, swr);
	}
}

/* Return: true if the request has to wait; when the wait ends, the requester runs again. */
static bool nhca_must_wait(struct nhca_qp *qp, const struct nhca_swr *swr)
{
	return nhca_flow_blocked(qp->flow, false) || nhca_fault_waiting(qp->sq.fault) ||
	       nhca_pace_waits(qp) ||
	       (nhca_swr_is_rd_atomic(swr) && qp->sq.rd_atomic >= qp->attr.max_rd_atomic);
}

/* Return: true if the window has room for the next packet of the request, or for the response. */
static bool nhca_window_open(const struct nhca_qp *qp, const struct nhca_swr *swr)
{
	const struct nhca_sq *sq = &qp->sq;

	if (!nhca_is_reliable(qp))
		return true;
	if (!nhca_swr_is_rd_atomic(swr))
		return nhca_sq_room(sq) > 0;
	/* the response to a chunk must fit in the window, unless nothing else is outstanding */
	return !nhca_sq_used(sq) ||
	       nhca_sq_room(sq) >= min_t(u32, swr->npsn - swr->sent, NHCA_READ_CHUNK);
}

/*
 * All packets of the request were sent.  On an unreliable QP, complete the request; on a reliable
 * QP, continue with the next request.
 */
static void nhca_sq_advance(struct nhca_qp *qp, struct nhca_swr *swr)
{
	struct nhca_sq *sq = &qp->sq;

	if (!nhca_is_reliable(qp)) {
		sq->cur = NULL;
		nhca_swr_complete(qp, swr, IB_WC_SUCCESS);
		return;
	}
	/* no earlier request is outstanding, so no ACK would complete the local operation */
	if (nhca_swr_is_local(swr) && list_is_first(&swr->list, &sq->inflight)) {
		nhca_swr_complete(qp, swr, IB_WC_SUCCESS);
		return;
	}
	if (nhca_swr_is_local(swr) && nhca_swr_signaled(qp, swr))
		sq->ackreq_pending = true;
	sq->cur = list_is_last(&swr->list, &sq->inflight) ? NULL : list_next_entry(swr, list);
}

/* SQD (10.3.1.5): raise one event when all requests that had begun are complete. */
static void nhca_sq_drained(struct nhca_qp *qp)
{
	struct nhca_sq *sq = &qp->sq;
	struct nhca_swr *swr;

	swr = list_first_entry_or_null(&sq->inflight, struct nhca_swr, list);
	if (!sq->draining || (swr && swr->begun) || !list_empty(&sq->retired))
		return;
	sq->draining = false;
	if (qp->attr.en_sqd_async_notify)
		nhca_qp_event(qp, IB_EVENT_SQ_DRAINED);
}

/*
 * Return: true if the request has a fence, and an earlier READ, atomic, FLUSH or ATOMIC WRITE is
 * outstanding (10.8.3.3).
 */
static bool nhca_swr_fenced(const struct nhca_qp *qp, const struct nhca_swr *swr)
{
	return (swr->wqe.flags & NHCA_SEND_FENCE) && qp->sq.rd_atomic;
}

/* Return: the next step for @swr, which is sq.cur. */
static __always_inline enum nhca_sq_step nhca_swr_decide(const struct nhca_qp *qp,
							 const struct nhca_swr *swr)
{
	if (swr->status)
		return list_is_first(&swr->list, &qp->sq.inflight) ?
		       NHCA_SQ_FAIL : NHCA_SQ_FAIL_LATER;
	if (!swr->begun)
		return nhca_swr_fenced(qp, swr) ? NHCA_SQ_STOP : NHCA_SQ_BEGIN;
	if (swr->sent >= swr->npsn)
		return NHCA_SQ_ADVANCE;
	return nhca_window_open(qp, swr) ? NHCA_SQ_SEND : NHCA_SQ_FULL;
}

enum nhca_sq_step nhca_sq_decide(const struct nhca_qp *qp, int budget)
{
	const struct nhca_sq *sq = &qp->sq;
	enum ib_qp_state state = READ_ONCE(qp->state);

	lockdep_assert_held(&sq->lock);
	if (budget <= 0)
		return NHCA_SQ_LATER;
	if (state == IB_QPS_SQE || state == IB_QPS_ERR)
		return NHCA_SQ_FLUSH;
	if ((state != IB_QPS_RTS && state != IB_QPS_SQD) || sq->rnr_wait)
		return NHCA_SQ_STOP;
	if (state == IB_QPS_SQD && (!sq->cur || !sq->cur->begun))
		return NHCA_SQ_DRAIN;
	return sq->cur ? nhca_swr_decide(qp, sq->cur) : NHCA_SQ_FETCH;
}

/* Fetch the next request into sq.cur.  Return: false if none can be fetched now. */
static bool nhca_sq_fetch_next(struct nhca_qp *qp)
{
	struct nhca_sq *sq = &qp->sq;
	struct nhca_swr *swr = nhca_sq_fetch(qp);

	if (!IS_ERR_OR_NULL(swr)) {
		sq->cur = swr;
		return true;
	}
	if (PTR_ERR(swr) == -EPROTO) {
		nhca_count(&qp->who, NHCA_CNT_BAD_RING);
		nhca_qp_set_error(qp, IB_EVENT_QP_FATAL);
	} else if (PTR_ERR(swr) == -ENOMEM) {
		mod_timer(&sq->timer, jiffies + 1);
	}
	/* a consumer waits for an ACK that no packet has requested */
	if (sq->ackreq_pending)
		nhca_sq_ackreq(qp);
	return false;
}

/*
 * Execute the next part of a request without packets, if the peer is in this kernel.
 * Return: the budget used; 0: nothing was executed, so packets have to be sent.
 */
static int nhca_sq_loop(struct nhca_qp *qp, struct nhca_swr *swr)
{
	u32 done = nhca_peer_same_host(qp) ? nhca_loop_step(qp, swr) : 0;

	/* the bytes are copied, as with packets, so they count in the budget */
	return DIV_ROUND_UP(done * qp->mtu, NHCA_BUDGET_BYTES);
}

/* Send the next packets of a request.  Return: false if nothing more can be sent now. */
static bool nhca_sq_transmit(struct nhca_qp *qp, struct nhca_swr *swr, int *budget)
{
	u32 sent = swr->sent;
	bool oldest = nhca_psn_add(swr->psn, sent) == qp->sq.una;

	if (nhca_swr_send(qp, swr)) {
		--*budget;
		return swr->status;
	}
	*budget -= nhca_swr_cost(qp, swr, sent);
	if (nhca_is_reliable(qp))
		nhca_sq_arm(qp, oldest);
	if (swr->sent >= swr->npsn)
		nhca_sq_advance(qp, swr);
	return true;
}

/* Return: as nhca_sq_run(). */
static int nhca_sq_pass(struct nhca_qp *qp, int budget)
{
	struct nhca_sq *sq = &qp->sq;
	enum nhca_sq_step step;
	int cost;

	for (;;) {
		step = nhca_sq_decide(qp, budget);
		/* FETCH and BEGIN use no budget, and the next step is for the same request */
		if (step == NHCA_SQ_FETCH) {
			if (!nhca_sq_fetch_next(qp))
				return budget;
			step = nhca_swr_decide(qp, sq->cur);
		}
		if (step == NHCA_SQ_BEGIN) {
			nhca_swr_begin(qp, sq->cur);
			step = nhca_swr_decide(qp, sq->cur);
		}

		switch (step) {
		case NHCA_SQ_STOP:
			return budget;
		case NHCA_SQ_LATER:
			nhca_bh_queue(&qp->kick);
			return budget;
		case NHCA_SQ_FLUSH:
			nhca_sq_flush(qp);
			return budget;
		case NHCA_SQ_DRAIN:
			nhca_sq_drained(qp);
			/* SQD waits for all ACKs */
			nhca_sq_ackreq(qp);
			return budget;
		case NHCA_SQ_FETCH:
		case NHCA_SQ_BEGIN:
			/* done above */
			continue;
		case NHCA_SQ_FAIL:
			nhca_sq_fail(qp, sq->cur->status);
			budget--;
			continue;
		case NHCA_SQ_FAIL_LATER:
			nhca_sq_ackreq(qp);
			return budget;
		case NHCA_SQ_ADVANCE:
			budget--;
			nhca_sq_advance(qp, sq->cur);
			continue;
		case NHCA_SQ_SEND:
			cost = nhca_sq_loop(qp, sq->cur);
			budget -= cost;
			if (cost)
				continue;
			nhca_loop_end(qp);
			if (nhca_must_wait(qp, sq->cur) ||
			    !nhca_sq_transmit(qp, sq->cur, &budget))
				return budget;
			continue;
		case NHCA_SQ_FULL:
			nhca_loop_end(qp);
			if (!nhca_must_wait(qp, sq->cur))
				nhca_sq_ackreq(qp);
			return budget;
		}
	}
}

int nhca_sq_run(struct nhca_qp *qp, int budget)
{
	struct nhca_burst burst = {};

	lockdep_assert_held(&qp->sq.lock);
	qp->sq.burst = &burst;
	nhca_sq_retire(qp);
	budget = nhca_sq_pass(qp, budget);
	nhca_loop_end(qp);
	qp->sq.burst = NULL;
	nhca_burst_flush(&burst);
	return budget;
}

int nhca_sq_unlock_budget(struct nhca_qp *qp, int budget)
	__releases(&qp->sq.lock)
{
	struct nhca_sq *sq = &qp->sq;
	int spent = 0, left;

	do {
		while (budget > 0 && test_and_clear_bit(0, &sq->kicked)) {
			rcu_read_lock();
			left = nhca_sq_run(qp, budget);
			rcu_read_unlock();
			spent += budget - left;
			/*
			 * each pass also costs an eighth of NHCA_BUDGET; otherwise doorbells of
			 * other CPUs could keep this CPU here without end
			 */
			budget = left - NHCA_BUDGET / NHCA_SQ_KICKS;
		}
		spin_unlock(&sq->lock);
		/*
		 * If another CPU has set sq->kicked before the unlock, this CPU reads the bit.  A
		 * CPU that sets the bit after the unlock can take the lock.  Pairs with
		 * smp_mb__after_atomic() in nhca_sq_kick().
		 */
		smp_mb();
		if (!test_bit(0, &sq->kicked))
			return spent;
		if (budget <= 0) {
			nhca_bh_queue(&qp->kick);
			return spent;
		}
	} while (spin_trylock(&sq->lock));
	return spent;
}

void nhca_sq_unlock(struct nhca_qp *qp)
	__releases(&qp->sq.lock)
{
	nhca_sq_unlock_budget(qp, NHCA_BUDGET);
}

void nhca_sq_kick(struct nhca_qp *qp)
{
	struct nhca_sq *sq = &qp->sq;

	local_bh_disable();
	set_bit(0, &sq->kicked);
	/* pairs with smp_mb() after the unlock in nhca_sq_unlock_budget() */
	smp_mb__after_atomic();
	if (spin_trylock(&sq->lock))
		nhca_sq_unlock(qp);
	local_bh_enable();
}

void nhca_send_doorbell(struct nhca_qp *qp)
{
	/* the network stack must not be entered with interrupts disabled */
	if (irqs_disabled() || in_hardirq())
		nhca_bh_queue(&qp->kick);
	else
		nhca_sq_kick(qp);
}
