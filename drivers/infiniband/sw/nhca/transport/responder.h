/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Interfaces of the responder: deferral.c, responder.c, resp_atomic.c, duplicate.c, piggyback.c,
 * resp_tx.c.  Part of engine.h.
 */
#ifndef NHCA_RESPONDER_H
#define NHCA_RESPONDER_H

#include "qp.h"
#include "source.h"

/* ---- deferral.c: Context is rq.lock held; RCU read side, unless stated ---- */

/* what has happened to a request */
enum nhca_verdict {
	NHCA_EXECUTED,		/* executed: the expected PSN advances */
	NHCA_DROPPED,		/* not executed: the peer retransmits, but UC drops the message */
	NHCA_DEFERRED,		/* executed after a wait for a page or disk, or dropped */
	NHCA_FATAL,		/* refused: the QP goes to the error state */
};

/**
 * nhca_request_rx - execute a request or datagram, or defer it if earlier ones are deferred
 * @qp: the QP
 * @rx: the request or datagram
 *
 * For a connected QP the caller must send the responses before it releases rq.lock:
 * nhca_resp_run().
 * Return: NHCA_EXECUTED if the request was executed, or was a datagram or frame that was dropped;
 * NHCA_DROPPED also for a duplicate, a gap, or a state of the QP that does not allow the request.
 */
enum nhca_verdict nhca_request_rx(struct nhca_qp *qp, struct nhca_rx *rx);

/**
 * nhca_defer - copy a packet, which waits until its pages are present or a disk has its data
 * nhca_defer_run - execute deferred packets in order, until one of them has to wait again
 * nhca_defer_drop - drop deferred packets (RESET, error, destruction); RCU read side not needed
 * @qp: the QP
 * @rx: the packet
 *
 * The copy is charged to the memory cgroup of the QP.  The packet is dropped if the copy would
 * exceed the limit of the QP, of its user, of the device (NHCA_POOL_DEFERRED) or of the cgroup.
 * The first deferred packet may exceed the limit of the cgroup.
 */
void nhca_defer(struct nhca_qp *qp, struct nhca_rx *rx);
void nhca_defer_run(struct nhca_qp *qp);
void nhca_defer_drop(struct nhca_qp *qp);

/* ---- responder.c: Context is rq.lock held, RCU read side ---- */

/**
 * nhca_rq_reach - compute the largest distance of an outstanding request from the expected PSN
 * @qp: the QP
 *
 * The distance is the number of packets that the peer may have in flight.  A request farther ahead
 * causes no sequence NAK.  Such a NAK makes the peer go back and shrink its window, so a host that
 * only guesses PSNs should not be able to cause one.
 * Context: any.
 * Return: the distance, in PSNs.
 */
s32 nhca_rq_reach(const struct nhca_qp *qp);

/**
 * nhca_refuse - refuse a request with the NAK @code: the QP goes to error and raises @event, unless
 * @event is -1; on UC the message is only dropped, except for NHCA_NAK_REM_OP
 * nhca_refuse_invalid, nhca_refuse_access - refuse with NHCA_NAK_INVALID_REQ, NHCA_NAK_REM_ACCESS
 * nhca_fail_recv - complete rq.rwr with @status, and refuse the packet; on UC the message is only
 * dropped, except for NHCA_NAK_REM_OP
 * nhca_defer_for_page - defer a request that needs a page or a disk; a step of the same-host path
 * is not executed, and its requester sends packets instead
 * @qp:    the QP
 * @code:  the NAK
 * @event: asynchronous event to raise, or -1
 * Return: NHCA_FATAL: refused; NHCA_DEFERRED: deferred; NHCA_DROPPED: dropped, or not executed.
 */
enum nhca_verdict nhca_refuse(struct nhca_qp *qp, enum nhca_nak code, int event);
enum nhca_verdict nhca_refuse_invalid(struct nhca_qp *qp);
enum nhca_verdict nhca_refuse_access(struct nhca_qp *qp);
enum nhca_verdict nhca_fail_recv(struct nhca_qp *qp, enum ib_wc_status status,
				 enum nhca_nak code);
enum nhca_verdict nhca_defer_for_page(struct nhca_qp *qp, const struct nhca_source *src);

/**
 * nhca_res_alloc - allocate the responder resources, unless they exist
 * nhca_res_new - get a resource for the request @h, whose response has @npsn packets
 * nhca_res_drop - undo nhca_res_new(): the request was not executed
 * @rq: the responder
 * Return: alloc: false if there is no memory; new: NULL if the peer has too many requests
 * outstanding.
 */
bool nhca_res_alloc(struct nhca_rq *rq);
struct nhca_res *nhca_res_new(struct nhca_qp *qp, const struct nhca_hdr *h, u32 npsn);
void nhca_res_drop(struct nhca_rq *rq, struct nhca_res *res);

/*
 * A SEND, WRITE or FLUSH begins: set rq->op to a new number.  If the first packet was deferred
 * and is executed again, the message keeps its number.
 */
static inline void nhca_message_begin(struct nhca_rq *rq)
{
	lockdep_assert_held(&rq->lock);
	if (rq->op_psn != rq->psn) {
		rq->op_psn = rq->psn;
		rq->op = ++rq->ops;
	}
	rq->disk = NHCA_DISK_NONE;
}

/**
 * nhca_execute - execute a request with the expected PSN
 * nhca_accept - advance the expected PSN by @npsn, after a request was executed
 * nhca_respond_execute - execute a request with the expected PSN; else handle a duplicate or gap
 * @qp:  the QP
 * @src: the request
 * Return: enum nhca_verdict.
 */
enum nhca_verdict nhca_execute(struct nhca_qp *qp, struct nhca_source *src);
void nhca_accept(struct nhca_qp *qp, const struct nhca_hdr *h, u32 npsn);
enum nhca_verdict nhca_respond_execute(struct nhca_qp *qp, struct nhca_rx *rx);

/**
 * nhca_respond_middle - execute the packets of a batch that continue a SEND or WRITE
 * nhca_ack_middle - place the packets of a batch that continue a READ response (sq.lock held)
 * @qp: the QP
 * @rx: the packet that was just accepted, from the middle of the message; on return the last packet
 *      that was handled
 * Return: number of further packets that were handled.
 */
u32 nhca_respond_middle(struct nhca_qp *qp, struct nhca_rx *rx);
u32 nhca_ack_middle(struct nhca_qp *qp, struct nhca_rx *rx);

/* ---- resp_atomic.c: Context is rq.lock held, RCU read side ---- */

/**
 * nhca_do_atomic - execute an atomic
 * nhca_do_atomic_write - execute an ATOMIC WRITE
 * nhca_do_flush - execute a FLUSH
 * @qp:  the QP
 * @src: the request
 * Return: enum nhca_verdict.
 */
enum nhca_verdict nhca_do_atomic(struct nhca_qp *qp, struct nhca_source *src);
enum nhca_verdict nhca_do_atomic_write(struct nhca_qp *qp, struct nhca_source *src);
enum nhca_verdict nhca_do_flush(struct nhca_qp *qp, struct nhca_source *src);

/* ---- duplicate.c, responder.c (nhca_rq_put_rkey()): Context is rq.lock held ---- */

/**
 * nhca_duplicate - let a duplicate be acknowledged, or its response be sent again (IBTA 9.7.4.5)
 * @qp: the QP
 * @h:  headers of the duplicate
 */
void nhca_duplicate(struct nhca_qp *qp, const struct nhca_hdr *h);

/**
 * nhca_res_exists - look up the responder resource of a READ, atomic, FLUSH or ATOMIC WRITE
 * @qp: the QP
 * @h:  headers of the request
 * Return: true if a resource has the opcode of @h, and the PSN of @h is one of its PSNs.
 */
bool nhca_res_exists(struct nhca_qp *qp, const struct nhca_hdr *h);

/* Return: the responder resource with index @i, as in nhca_rq.res_head. */
static inline struct nhca_res *nhca_res_at(struct nhca_rq *rq, u32 i)
{
	return &rq->res[i % rq->nres];
}

/**
 * nhca_rq_put_rkey - release R_Key references of operations in progress, drop all due responses
 * @qp: the QP
 */
void nhca_rq_put_rkey(struct nhca_qp *qp);

/* ---- piggyback.c ---- */

/**
 * nhca_piggyback_reset - drop a waiting ACK, and forget all earlier replies
 * @piggyback: the state of the QP
 * Context: both locks held, or the QP is not in use yet.
 */
void nhca_piggyback_reset(struct nhca_piggyback *piggyback);

/**
 * nhca_piggyback_waits - decide whether the ACK of all PSNs before the expected one waits
 * @qp:        the QP
 * @may_reply: the consumer may reply to the message
 * Context: rq.lock held.
 * Return: true if the ACK waits: the next request carries the ACK, or a timer sends it soon.
 */
bool nhca_piggyback_waits(struct nhca_qp *qp, bool may_reply);

/**
 * nhca_piggyback_drop - drop a waiting ACK, because another response acknowledges the same PSNs
 * nhca_piggyback_flush - send a waiting ACK, because no request has carried it
 * @qp: the QP
 * Context: rq.lock held; flush: RCU read side.
 */
void nhca_piggyback_drop(struct nhca_qp *qp);
void nhca_piggyback_flush(struct nhca_qp *qp);

/**
 * nhca_piggyback_clock - read the clock of nhca_piggyback.req_at
 * Context: any.  KUnit replaces this function.
 * Return: time in units of 1,024 ns, never 0.
 */
u32 nhca_piggyback_clock(void);

/* nhca_piggyback.timer; softirq, takes rq.lock */
void nhca_piggyback_timer(struct timer_list *t);

/**
 * nhca_piggyback_begin - add a waiting ACK to a request, if the request can carry it
 * nhca_piggyback_end - note that the request was sent, or was not sent (@err is not 0)
 * @qp: the QP
 * @h:  headers of the request; nhca_piggyback_begin() sets acks, and NHCA_CAP_ACKS in caps
 * Context: sq.lock held.
 */
void nhca_piggyback_begin(struct nhca_qp *qp, struct nhca_hdr *h);
void nhca_piggyback_end(struct nhca_qp *qp, const struct nhca_hdr *h, int err);

/* ---- resp_tx.c: Context is rq.lock held, BH disabled, RCU read side, unless stated ---- */

/**
 * nhca_res_done - note that no response is due any more, and release the R_Key reference
 * @res: the responder resource
 */
void nhca_res_done(struct nhca_res *res);

/**
 * nhca_resp_run - send the responses that are due: READ data, atomic results, then ACK or NAK
 * nhca_resp_run_budget - the same, but at most about @budget packets, because one READ may have
 * 2 GiB; nhca_piggyback.rest continues in process context
 * @qp: the QP
 * Return: nhca_resp_run_budget(): number of packets sent, except ACK and NAK.
 */
void nhca_resp_run(struct nhca_qp *qp);
int nhca_resp_run_budget(struct nhca_qp *qp, int budget);

/**
 * nhca_resp_init - allocate the workqueue of nhca_piggyback.rest
 * nhca_resp_exit - free the workqueue, when no QP exists any more
 * Context: module load and unload.
 * Return: 0; -ENOMEM: no memory.
 */
int nhca_resp_init(void);
void nhca_resp_exit(void);

/**
 * nhca_resp_pure_ack - send an ACK of everything up to and including @psn
 * nhca_resp_ack_due - note that an ACK is due for a request with AckReq, and whether it may wait
 * @qp:  the QP
 * @psn: the last PSN that is acknowledged
 */
void nhca_resp_pure_ack(struct nhca_qp *qp, u32 psn);
void nhca_resp_ack_due(struct nhca_qp *qp, const struct nhca_hdr *h);

/* Note that an ACK of everything before the expected PSN is due, and must not wait for a reply. */
static inline void nhca_resp_ack_now(struct nhca_rq *rq)
{
	lockdep_assert_held(&rq->lock);
	rq->ack_due = true;
	rq->ack_piggyback = false;
}

/**
 * nhca_resp_cnp - send a CNP to the peer (IBTA A17.9), at most one in a jiffy
 * nhca_resp_nak - note that a NAK of the expected PSN is due
 * @qp: the QP
 *
 * If @fatal is true, the QP goes to error after the NAK and raises @event, unless @event is -1.
 * Context: cnp: one of the QP's locks held; nak: rq.lock held.
 */
void nhca_resp_cnp(struct nhca_qp *qp);
void nhca_resp_nak(struct nhca_qp *qp, u8 syndrome, bool fatal, int event);

/**
 * nhca_resp_refused - handle a request to a reliable QP that is in error after it refused a request
 * @qp: the QP
 * @rx: the request
 *
 * If @rx is the refused request, or an earlier one that the peer may have outstanding, the peer may
 * not have received the NAK.  So the NAK is due again: without it the peer's request would fail
 * with "retry exceeded".  Any other request is dropped.
 */
void nhca_resp_refused(struct nhca_qp *qp, const struct nhca_rx *rx);

#endif /* NHCA_RESPONDER_H */
