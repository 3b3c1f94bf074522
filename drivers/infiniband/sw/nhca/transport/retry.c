// SPDX-License-Identifier: GPL-2.0
/*
 * Retransmission: round-trip times, the congestion window, timers, going back (IBTA 9.7.5, 9.7.6).
 */
#include <linux/ktime.h>
#include <linux/math64.h>

#include "../observe/trace.h"
#include "engine.h"

/* timeouts in a row that may be postponed because the network stack holds packets */
#define NHCA_WAITS_MAX		8
/* doublings of the local ACK timeout, at most: 2^5 times the attribute */
#define NHCA_RTO_BACKOFF_MAX	5
/* acknowledgments without a timeout after which the local ACK timeout is halved again */
#define NHCA_RTO_CALM_ACKS		64
/* tail loss probes before falling back to the local ACK timeout */
#define NHCA_TLP_MAX		3
/* the least retransmission timeout: a peer in software may have to wait for a CPU */
#define NHCA_TLP_MIN		msecs_to_jiffies(10)

unsigned long nhca_timeout_jiffies(u8 timeout)
{
	/* 4.096 us << timeout */
	return max(nsecs_to_jiffies(4096ULL << timeout), NHCA_TIMEOUT_MIN);
}

/*
 * Return: jiffies to wait for the next ACK: the retransmission timeout, doubled with each tail loss
 * probe; or the local ACK timeout, if it is shorter, if no probe is left, or if no round trip was
 * measured.
 */
static unsigned long nhca_sq_rto(const struct nhca_sq *sq)
{
	unsigned long timeout = (sq->times->timeout << sq->rto_backoff) + 1;

	if (!sq->times->rto || sq->tlp_count >= NHCA_TLP_MAX)
		return timeout;
	return min(timeout, (sq->times->rto << sq->tlp_count) + 1);
}

void nhca_rtt_begin(struct nhca_sq *sq, u32 psn)
{
	if (sq->times->rtt_begun)
		return;
	sq->times->rtt_psn = psn;
	sq->times->rtt_begun = ktime_get_ns();
}

/*
 * End the RTT sample, if everything before @psn is acknowledged and that includes the sample's
 * packet (RFC 6298, in the fixed-point form of TCP's code).
 */
static void nhca_rtt_end(struct nhca_sq *sq, u32 psn)
{
	struct nhca_times *t = sq->times;
	u32 us;
	s32 off;

	if (!t->rtt_begun || nhca_psn_diff(psn, t->rtt_psn) <= 0)
		return;
	us = clamp_t(u64, div_u64(ktime_get_ns() - t->rtt_begun, NSEC_PER_USEC), 1, USEC_PER_SEC);
	t->rtt_begun = 0;
	if (!t->rtt) {
		t->rtt = us << 3;
		t->rtt_dev = us << 1;
	} else {
		off = us - (t->rtt >> 3);
		t->rtt = max_t(s32, t->rtt + off, 1);
		t->rtt_dev += abs(off) - (t->rtt_dev >> 2);
	}
	t->rto = max(usecs_to_jiffies((t->rtt >> 3) + t->rtt_dev), NHCA_TLP_MIN);
}

/*
 * 9.7.6.1.3: the timer runs while something is unacknowledged.  @oldest: the oldest unacknowledged
 * packet was sent or retransmitted just now, so the timeout counts from now.
 */
void nhca_sq_arm(struct nhca_qp *qp, bool oldest)
{
	struct nhca_sq *sq = &qp->sq;
	bool pending = timer_pending(&sq->timer);
	unsigned long deadline;

	if (!qp->attr.timeout || (pending && !oldest))
		return;
	sq->times->since = jiffies;
	deadline = sq->times->since + nhca_sq_rto(sq);
	if (!pending || time_before(deadline, sq->timer.expires))
		mod_timer(&sq->timer, deadline);
}

/* Restart the ACK timer: the timeout counts from now. */
static void nhca_sq_wait_anew(struct nhca_sq *sq)
{
	sq->times->since = jiffies;
	mod_timer(&sq->timer, sq->times->since + nhca_sq_rto(sq));
}

void nhca_sq_shrink(struct nhca_qp *qp, bool stall)
{
	struct nhca_sq *sq = &qp->sq;

	sq->ssthresh = max_t(u32, sq->cwnd * NHCA_CWND_KEPT / 10, NHCA_CWND_MIN);
	sq->cwnd = stall ? NHCA_CWND_MIN : sq->ssthresh;
	sq->grown = 0;
}

void nhca_sq_congested(struct nhca_qp *qp)
{
	struct nhca_sq *sq = &qp->sq;

	/* one full queue may mark several packets: reduce the window once for all of them */
	if (time_before(jiffies, sq->times->cnp_at + max(sq->times->rto, 2UL)))
		return;
	sq->times->cnp_at = jiffies;
	nhca_sq_shrink(qp, false);
}

static void nhca_sq_grow(struct nhca_sq *sq, u32 acked)
{
	if (sq->cwnd < sq->ssthresh) {
		sq->cwnd += acked;
	} else {
		sq->grown += acked;
		if (sq->grown < sq->cwnd)
			return;
		sq->grown = 0;
		sq->cwnd++;
	}
	sq->cwnd = min_t(u32, sq->cwnd, NHCA_CWND_MAX);
}

void nhca_sq_progress(struct nhca_qp *qp, u32 psn)
{
	struct nhca_sq *sq = &qp->sq;

	nhca_sq_grow(sq, nhca_psn_add(psn, -sq->una));
	nhca_rtt_end(sq, psn);
	sq->una = psn;
	sq->waits = 0;
	sq->tlp_count = 0;
	sq->blind = 0;
	if (sq->rto_backoff && ++sq->acks_since_rto >= NHCA_RTO_CALM_ACKS) {
		sq->acks_since_rto = 0;
		sq->rto_backoff--;
	}
	sq->retries = qp->attr.retry_cnt;
	sq->rnr_retries = qp->attr.rnr_retry;
	sq->gone_back = false;
	sq->times->since = jiffies;
}

void nhca_sq_go_back(struct nhca_qp *qp, enum nhca_counter why)
{
	struct nhca_sq *sq = &qp->sq;
	struct nhca_swr *swr;
	s32 done;

	trace_nhca_retry(&qp->who, why, sq->una, sq->nxt, sq->cwnd, sq->retries);
	sq->cur = NULL;
	sq->rd_atomic = 0;
	/* Karn: an ACK may belong to either transmission, so discard the RTT sample */
	sq->times->rtt_begun = 0;
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

static void nhca_sq_timed_out(struct nhca_qp *qp)
{
	struct nhca_sq *sq = &qp->sq;
	unsigned long deadline = sq->times->since + nhca_sq_rto(sq);
	struct nhca_swr *swr;
	bool in_line;

	swr = list_first_entry_or_null(&sq->inflight, struct nhca_swr, list);
	if (!swr || !swr->begun || swr->status)
		return;
	if (time_before(jiffies, deadline)) {
		mod_timer(&sq->timer, deadline);
		return;
	}

	/*
	 * Packets that have not left this host are not lost.  The flow waits for its turn, a page
	 * is being faulted in, or a rate limit delays them; these waits end.  The stack may hold
	 * packets for ever if a link is dead, so that postpones only NHCA_WAITS_MAX timeouts in a
	 * row.
	 */
	in_line = nhca_flow_in_line(qp->flow, &sq->turns) || nhca_fault_waiting(sq->fault) ||
		  nhca_pace_holds(qp);
	if (in_line || (nhca_flow_inflight(qp->flow) && sq->waits < NHCA_WAITS_MAX)) {
		sq->waits += !in_line;
		nhca_sq_wait_anew(sq);
		return;
	}

	/* no packet has requested an ACK, because all requests are unsignaled: not a loss yet */
	if (nhca_sq_ackreq(qp)) {
		nhca_sq_wait_anew(sq);
		return;
	}

	/*
	 * Tail loss probe: the last packet of a message, or a response, was lost, and no later
	 * packet can reveal that.  Retransmit long before the local ACK timeout.
	 */
	if (sq->times->rto && sq->tlp_count < NHCA_TLP_MAX) {
		nhca_count(&qp->who, NHCA_CNT_PROBE);
		nhca_sq_shrink(qp, sq->tlp_count++);
		nhca_sq_wait_anew(sq);
		/* before the first retransmission, for the reason below */
		WRITE_ONCE(qp->peer, 0);
		nhca_sq_go_back(qp, NHCA_CNT_PROBE);
		return;
	}

	nhca_count(&qp->who, NHCA_CNT_TIMEOUT);
	if (!sq->retries) {
		nhca_count(&qp->who, NHCA_CNT_RETRY_EXCEEDED);
		nhca_sq_fail(qp, IB_WC_RETRY_EXC_ERR);
		return;
	}
	sq->retries--;
	/* the peer may be slow rather than gone, or queues on the path may be full */
	if (sq->rto_backoff < NHCA_RTO_BACKOFF_MAX)
		sq->rto_backoff++;
	sq->acks_since_rto = 0;
	/*
	 * The peer may be another one now, or a device on the path may change header bits: forget
	 * the capability bits until the peer shows them again.
	 */
	WRITE_ONCE(qp->peer, 0);
	nhca_sq_wait_anew(sq);
	nhca_sq_shrink(qp, true);
	nhca_sq_go_back(qp, NHCA_CNT_TIMEOUT);
}

void nhca_sq_timer(struct timer_list *t)
{
	struct nhca_qp *qp = timer_container_of(qp, t, sq.timer);
	struct nhca_sq *sq = &qp->sq;

	spin_lock(&sq->lock);
	if (sq->rnr_wait) {
		sq->rnr_wait = false;
	} else if (nhca_is_reliable(qp) && qp->attr.timeout &&
		   (READ_ONCE(qp->state) == IB_QPS_RTS || READ_ONCE(qp->state) == IB_QPS_SQD)) {
		nhca_sq_timed_out(qp);
	}
	set_bit(0, &sq->note);
	nhca_sq_unlock(qp);
}
