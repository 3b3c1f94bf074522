// SPDX-License-Identifier: GPL-2.0
/*
 * Retransmission: timers, and going back (IBTA 9.7.5, 9.7.6).  rtx.c decides when to retransmit;
 * window.h decides how many packets may be outstanding.
 */
#include <linux/ktime.h>
#include <linux/moduleparam.h>

#include "../observe/trace.h"
#include "engine.h"

static int max_backoff_set(const char *val, const struct kernel_param *kp)
{
	return param_set_uint_minmax(val, kp, 1, NHCA_MAX_BACKOFF);
}

static const struct kernel_param_ops max_backoff_ops = {
	.set = max_backoff_set,
	.get = param_get_uint,
};

module_param_cb(max_backoff, &max_backoff_ops, &nhca_max_backoff, 0644);
MODULE_PARM_DESC(max_backoff, "maximum duration of one try of a request, in local ACK timeouts, 1 to 32 (default 3)");

unsigned long nhca_timeout_jiffies(u8 timeout)
{
	/* 4.096 us << timeout */
	return max(nsecs_to_jiffies(4096ULL << timeout), NHCA_TIMEOUT_MIN);
}

void nhca_rtt_begin(struct nhca_sq *sq, u32 psn)
{
	lockdep_assert_held(&sq->lock);
	if (!sq->rtx->rtt_begun)
		nhca_rtx_rtt_begin(sq->rtx, psn, ktime_get_ns());
}

/*
 * 9.7.6.1.3: the timer runs while a packet is unacknowledged, unless the attribute timeout is 0.
 * @oldest: the oldest unacknowledged packet was sent or retransmitted just now, so the timeout
 * counts from now.
 */
void nhca_sq_arm(struct nhca_qp *qp, bool oldest)
{
	struct nhca_sq *sq = &qp->sq;
	bool pending = timer_pending(&sq->timer);
	unsigned long deadline;

	lockdep_assert_held(&sq->lock);
	if (!qp->attr.timeout || (pending && !oldest))
		return;
	deadline = nhca_rtx_restart(sq->rtx, jiffies);
	if (!pending || time_before(deadline, sq->timer.expires))
		mod_timer(&sq->timer, deadline);
}

void nhca_sq_unsent(struct nhca_qp *qp)
{
	nhca_sq_arm(qp, false);
	/*
	 * If the attribute timeout is 0, nothing else would end the wait.  The timer may already be
	 * set to an earlier time.
	 */
	if (!qp->attr.timeout)
		timer_reduce(&qp->sq.timer, jiffies + NHCA_TIMEOUT_MIN);
}

void nhca_sq_shrink(struct nhca_qp *qp, bool stall)
{
	lockdep_assert_held(&qp->sq.lock);
	nhca_window_shrink(&qp->sq.window, stall);
}

void nhca_sq_congested(struct nhca_qp *qp)
{
	lockdep_assert_held(&qp->sq.lock);
	if (nhca_rtx_congested(qp->sq.rtx, jiffies))
		nhca_sq_shrink(qp, false);
}

void nhca_sq_progress(struct nhca_qp *qp, u32 psn)
{
	struct nhca_sq *sq = &qp->sq;

	lockdep_assert_held(&sq->lock);
	nhca_window_grow(&sq->window, nhca_psn_add(psn, -sq->una));
	if (nhca_rtx_rtt_ends(sq->rtx, psn))
		nhca_rtx_rtt_end(sq->rtx, ktime_get_ns());
	nhca_rtx_progress(sq->rtx, jiffies, qp->attr.retry_cnt);
	sq->una = psn;
	if (sq->una == sq->nxt)
		nhca_flow_queue_release(qp->flow);
	sq->empty_ackreqs = 0;
	sq->rnr_retries = qp->attr.rnr_retry;
	sq->gone_back = false;
}

void nhca_sq_go_back(struct nhca_qp *qp, enum nhca_counter why)
{
	struct nhca_sq *sq = &qp->sq;
	struct nhca_swr *swr;
	s32 done;

	lockdep_assert_held(&sq->lock);
	trace_nhca_retry(&qp->who, why, sq->una, sq->nxt, sq->window.cwnd,
			 sq->rtx->retries);
	sq->cur = NULL;
	sq->rd_atomic = 0;
	/* Karn: an ACK may belong to either transmission, so discard the RTT sample */
	sq->rtx->rtt_begun = 0;
	/* the first retransmitted packet sets AckReq */
	sq->since_ack = NHCA_CWND_MAX;
	list_for_each_entry(swr, &sq->inflight, list) {
		if (!swr->begun) {
			if (!sq->cur)
				sq->cur = swr;
			break;
		}
		done = nhca_psn_diff(sq->una, swr->psn);
		if (nhca_swr_is_read(swr))
			swr->sent = swr->got;
		else
			swr->sent = clamp_t(s32, done, 0, swr->npsn);
		if (!sq->cur && (swr->sent < swr->npsn || swr->status))
			sq->cur = swr;
	}
	sq->gone_back = true;
}

/*
 * Return: what holds packets on this host.  NHCA_RTX_HELD_WAIT: the flow waits for its device or
 * its user's share, and other flows were woken since the last call; or the requester waits for a
 * page, a disk or its rate limit.  Of these waits only that for a page may last for ever
 * (faultq.h).  NHCA_RTX_HELD_STACK: the stack may hold packets for ever.
 */
static enum nhca_rtx_held nhca_sq_held(struct nhca_qp *qp)
{
	struct nhca_sq *sq = &qp->sq;

	if (nhca_flow_queued(qp->flow, &sq->txq_wakes) || nhca_fault_waiting(sq->fault) ||
	    nhca_pace_active(qp))
		return NHCA_RTX_HELD_WAIT;
	return nhca_flow_inflight(qp->flow) ? NHCA_RTX_HELD_STACK : NHCA_RTX_HELD_NOT;
}

/* A probe or timeout: retransmit in the next pass.  @stall: as nhca_sq_shrink(). */
static void nhca_sq_retransmit(struct nhca_qp *qp, bool stall, enum nhca_counter why)
{
	/*
	 * The peer may be another one now, or a device on the path may change header bits: forget
	 * the capability bits until the peer sends them again.
	 */
	WRITE_ONCE(qp->peer, 0);
	nhca_sq_shrink(qp, stall);
	nhca_sq_go_back(qp, why);
}

/* Return: true if the oldest request has begun and has not failed: its timeout may have passed. */
static bool nhca_sq_outstanding(struct nhca_sq *sq)
{
	const struct nhca_swr *swr;

	swr = list_first_entry_or_null(&sq->inflight, struct nhca_swr, list);
	return swr && swr->begun && !swr->status;
}

static void nhca_sq_timed_out(struct nhca_qp *qp)
{
	struct nhca_sq *sq = &qp->sq;
	struct nhca_rtx *rtx = sq->rtx;
	enum nhca_rtx_step step = NHCA_RTX_EARLY;
	enum nhca_rtx_held held;

	lockdep_assert_held(&sq->lock);
	if (!nhca_sq_outstanding(sq))
		return;
	/*
	 * nhca_sq_held() tests for wakes since its last call.  A call before the timeout would
	 * hide the wakes before it from the next call.
	 */
	if (!nhca_rtx_is_early(rtx, jiffies)) {
		held = nhca_sq_held(qp);
		step = nhca_rtx_expire(rtx, jiffies, held, true);
		if (step == NHCA_RTX_ACKREQ && nhca_sq_ackreq(qp))
			nhca_rtx_begin(rtx, jiffies);
		else if (step == NHCA_RTX_ACKREQ)
			step = nhca_rtx_expire(rtx, jiffies, held, false);
	}

	switch (step) {
	case NHCA_RTX_PROBE:
		nhca_count(&qp->who, NHCA_CNT_PROBE);
		nhca_sq_retransmit(qp, rtx->tlp_count > 1, NHCA_CNT_PROBE);
		break;
	case NHCA_RTX_RETRANSMIT:
		nhca_count(&qp->who, NHCA_CNT_TIMEOUT);
		nhca_sq_retransmit(qp, true, NHCA_CNT_TIMEOUT);
		break;
	case NHCA_RTX_GIVE_UP:
		nhca_count(&qp->who, NHCA_CNT_TIMEOUT);
		nhca_count(&qp->who, NHCA_CNT_RETRY_EXCEEDED);
		nhca_sq_fail(qp, IB_WC_RETRY_EXC_ERR);
		return;
	default:
		break;
	}
	mod_timer(&sq->timer, nhca_rtx_deadline(rtx));
}

void nhca_sq_timer(struct timer_list *t)
{
	struct nhca_qp *qp = timer_container_of(qp, t, sq.timer);
	struct nhca_sq *sq = &qp->sq;

	spin_lock(&sq->lock);
	/*
	 * While this expiry waited for the lock, an RNR NAK started the timer again.  The RNR delay
	 * has not passed yet.
	 */
	if (sq->rnr_wait && timer_pending(&sq->timer)) {
		nhca_sq_unlock(qp);
		return;
	}
	if (sq->rnr_wait) {
		sq->rnr_wait = false;
	} else if (nhca_is_reliable(qp) && qp->attr.timeout &&
		   (READ_ONCE(qp->state) == IB_QPS_RTS || READ_ONCE(qp->state) == IB_QPS_SQD)) {
		nhca_sq_timed_out(qp);
	}
	set_bit(0, &sq->kicked);
	nhca_sq_unlock(qp);
}
