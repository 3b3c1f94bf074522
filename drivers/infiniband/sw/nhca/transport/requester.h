/* SPDX-License-Identifier: GPL-2.0 */
/* Interfaces of the requester: sq_run.c, send.c, ackreq.c, retry.c, local.c.  Part of engine.h. */
#ifndef NHCA_REQUESTER_H
#define NHCA_REQUESTER_H

#include "qp.h"

/* Record that a packet was sent whose response acknowledges all earlier packets.  sq.lock held */
static inline void nhca_sq_ackreq_sent(struct nhca_sq *sq)
{
	lockdep_assert_held(&sq->lock);
	sq->since_ack = 0;
	sq->ackreq_pending = false;
}

/* Return: the PSN of the next packet to send. */
static inline u32 nhca_sq_next_psn(const struct nhca_sq *sq)
{
	if (sq->cur && sq->cur->begun)
		return nhca_psn_add(sq->cur->psn, sq->cur->sent);
	return sq->psn;
}

/*
 * Return: number of PSNs that use the window: sent, or requested by a READ, but not acknowledged.
 * After a go-back only PSNs that were sent or requested again count.
 */
static inline u32 nhca_sq_used(const struct nhca_sq *sq)
{
	return max(nhca_psn_diff(nhca_sq_next_psn(sq), sq->una), 0);
}

/* Return: number of PSNs that the window has room for. */
static inline u32 nhca_sq_room(const struct nhca_sq *sq)
{
	return nhca_window_room(&sq->window, nhca_sq_used(sq));
}

/* ---- sq_run.c, send.c, ackreq.c: Context is sq.lock held, BH disabled, unless stated ---- */

/* What the requester does next. */
enum nhca_sq_step {
	/* nothing: an event or a timer runs the requester again */
	NHCA_SQ_STOP,
	/* the budget is used up: nhca_qp.kick continues */
	NHCA_SQ_LATER,
	/* the QP is in SQE or ERR: flush the requests */
	NHCA_SQ_FLUSH,
	/* SQD: begin no request, and raise the event if all earlier requests are complete */
	NHCA_SQ_DRAIN,
	/* copy the next request out of the ring */
	NHCA_SQ_FETCH,
	/* assign PSNs to the request; execute it, if it is a local operation */
	NHCA_SQ_BEGIN,
	/* the request has failed, and is the oldest: report the error */
	NHCA_SQ_FAIL,
	/* the request has failed, but is not the oldest: request an ACK for the earlier requests */
	NHCA_SQ_FAIL_LATER,
	/* all packets of the request were sent: complete it, or continue with the next request */
	NHCA_SQ_ADVANCE,
	/* use the same-host path; otherwise send packets, unless the request has to wait */
	NHCA_SQ_SEND,
	/* the window is full: request an ACK, unless the request has to wait for another reason */
	NHCA_SQ_FULL,
};

/**
 * nhca_sq_decide - decide what the requester does next
 * @qp:     the QP
 * @budget: as nhca_sq_run()
 *
 * The function changes nothing.  If another CPU sets nhca_qp.state to an error state after this
 * decision, the next call reads the new state.
 * Return: the step; NHCA_SQ_BEGIN and the following steps are about sq.cur.
 */
enum nhca_sq_step nhca_sq_decide(const struct nhca_qp *qp, int budget);

/**
 * nhca_sq_run - run one pass of the requester: send until nothing more can be sent
 * @qp:     the QP
 * @budget: maximum number of packets, or of requests without packets
 * Context: sq.lock held, BH disabled, RCU read side.
 * Return: the budget that is left.  If it is 0 or less and more can be sent, nhca_qp.kick
 * continues.
 */
int nhca_sq_run(struct nhca_qp *qp, int budget);

/**
 * nhca_sq_kick - run the requester, or set nhca_sq.kicked, so that the holder of sq.lock runs it
 * @qp: the QP
 * Context: BH disabled or process; sq.lock not held.
 */
void nhca_sq_kick(struct nhca_qp *qp);

/**
 * nhca_sq_unlock_budget - run the requester if nhca_sq.kicked is set, and release sq.lock
 * nhca_sq_unlock - the same, with a budget of NHCA_BUDGET
 * @qp:     the QP
 * @budget: as nhca_sq_run(), of all passes together; each pass also costs an eighth of NHCA_BUDGET
 * Context: sq.lock held, taken with spin_lock(); BH disabled, RCU read side not needed.
 * Return: budget used by packets, and by requests without packets.
 */
int nhca_sq_unlock_budget(struct nhca_qp *qp, int budget) __releases(&qp->sq.lock);
void nhca_sq_unlock(struct nhca_qp *qp) __releases(&qp->sq.lock);

/**
 * nhca_sq_ackreq - request an ACK for the packets that were sent since the last AckReq
 * @qp: the QP
 *
 * The function retransmits the last packet, now with AckReq.  If the key of the payload is closed,
 * the function sends a packet without payload instead.
 * Return: true if a packet with AckReq was sent; false if all packets are acknowledged, if the last
 * packet had AckReq, if the last request has a response other than an ACK, after a go-back (the
 * first retransmitted packet sets AckReq), or if sending failed.
 */
bool nhca_sq_ackreq(struct nhca_qp *qp);

/**
 * nhca_swr_hdr - fill in the fields that all packets of a connected QP's request have
 * @qp:  the QP
 * @swr: the request
 * @h:   filled in; psn is that of the next packet of @swr; fields that only some packets have are 0
 */
void nhca_swr_hdr(const struct nhca_qp *qp, const struct nhca_swr *swr, struct nhca_hdr *h);

/**
 * nhca_swr_send - send the next packet of a request, or several from the middle of a message
 * @qp: the QP
 * @swr: the request, which has packets left to send; if the request has to fail, the function sets
 *       its status
 * Context: sq.lock held, BH disabled, RCU read side.
 * Return: 0: packets were sent, or an unreliable QP has lost one; another value: no packet of @swr
 * was sent, and unless the function has set the status, nothing more can be sent now.
 */
int nhca_swr_send(struct nhca_qp *qp, struct nhca_swr *swr);

/**
 * nhca_swr_xmit - send a packet with headers @h and @payload bytes from byte @off of the message
 * @qp:      the QP
 * @swr:     the request
 * @h:       headers
 * @off:     byte of the message at which the payload begins
 * @payload: bytes of payload
 * Context: sq.lock held, BH disabled, RCU read side.
 * Return: as nhca_xmit().
 */
int nhca_swr_xmit(struct nhca_qp *qp, struct nhca_swr *swr, struct nhca_hdr *h, u32 off,
		  u32 payload);

/**
 * nhca_send_empty_ackreq - send an AckReq without the payload, because the payload's key is closed
 * @qp:  the QP
 * @swr: the request, whose next packet could not be sent
 *
 * The consumer may close the key as soon as a reply of the peer shows that the message has arrived,
 * even if the ACK was lost.
 * Context: sq.lock held, BH disabled, RCU read side.
 * Return: true: the AckReq was sent, or could not be sent; the timer runs in both cases.
 * false: the request has to fail, for example because NHCA_EMPTY_ACKREQ_MAX packets without payload
 * were sent without progress.
 */
bool nhca_send_empty_ackreq(struct nhca_qp *qp, struct nhca_swr *swr);

/**
 * nhca_swr_source - initialize an iterator over the request's payload from byte @off
 * nhca_message_hdr - fill in opcode and extended headers of a SEND or WRITE packet, not QPN and PSN
 * @qp:  the QP
 * @swr: the request
 * @off: first byte of the payload
 * @it:  the iterator, filled in
 */
void nhca_swr_source(const struct nhca_qp *qp, const struct nhca_swr *swr, u32 off,
		     struct nhca_iter *it);
void nhca_message_hdr(const struct nhca_qp *qp, const struct nhca_swr *swr, bool first, bool last,
		      struct nhca_hdr *h);

/* ---- retry.c: Context is sq.lock held, BH disabled, unless stated ---- */

/* Return: ibv_qp_attr.timeout in jiffies, at least NHCA_TIMEOUT_MIN.  Any context */
unsigned long nhca_timeout_jiffies(u8 timeout);

/**
 * nhca_sq_go_back - let the next pass continue at the oldest unacknowledged PSN
 * @qp:  the QP
 * @why: counter of the cause, for the trace
 */
void nhca_sq_go_back(struct nhca_qp *qp, enum nhca_counter why);

/**
 * nhca_sq_progress - grow the window and reset the retries: all PSNs before @psn were acknowledged
 * nhca_sq_shrink - reduce the window after a loss
 * nhca_sq_congested - reduce the window after a CNP, unless nhca_rtx_congested() ignores the CNP
 * @qp:  the QP
 * @psn: the first PSN that is not acknowledged
 * @stall: as nhca_window_shrink()
 */
void nhca_sq_progress(struct nhca_qp *qp, u32 psn);
void nhca_sq_shrink(struct nhca_qp *qp, bool stall);
void nhca_sq_congested(struct nhca_qp *qp);

/**
 * nhca_sq_arm - start the local ACK timer, if it does not run; if @oldest, restart the timeout.  If
 * the attribute timeout is 0, do nothing
 * nhca_sq_unsent - start the timer, because a packet could not be sent and counts as lost
 * nhca_rtt_begin - begin an RTT sample with the PSN of a packet that has AckReq and is sent for the
 * first time, unless a sample is in progress
 * @qp:     the QP
 * @oldest: the oldest unacknowledged packet was sent just now, so the timeout counts from now
 */
void nhca_sq_arm(struct nhca_qp *qp, bool oldest);
void nhca_sq_unsent(struct nhca_qp *qp);
void nhca_rtt_begin(struct nhca_sq *sq, u32 psn);

/* nhca_sq.timer: local ACK timeout, RNR timer; softirq, takes sq.lock */
void nhca_sq_timer(struct timer_list *t);

/* ---- local.c ---- */

/**
 * nhca_local_run - execute a local operation
 * @qp: the QP
 * @swr: the request; if it fails, the function sets its status, which nhca_sq_fail() reports when
 *       the request is the oldest
 * Context: sq.lock held.
 */
void nhca_local_run(struct nhca_qp *qp, struct nhca_swr *swr);

#endif /* NHCA_REQUESTER_H */
