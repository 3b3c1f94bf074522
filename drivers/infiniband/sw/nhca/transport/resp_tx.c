// SPDX-License-Identifier: GPL-2.0
/*
 * Sends the responses of the responder: READ data, atomic results, ACKs and NAKs, in the order of
 * PSNs (IBTA 9.7.5.1).  A long READ response pauses when the network stack holds too many packets
 * (nhca_flow_blocked()); the kick of the QP's flow continues the response.
 */
#include "../observe/trace.h"
#include "engine.h"

static struct workqueue_struct *nhca_resp_wq;

static void nhca_resp_hdr(const struct nhca_qp *qp, struct nhca_hdr *h, u8 opcode, u32 psn,
			  u32 msn)
{
	memset(h, 0, sizeof(*h));
	h->opcode = opcode | nhca_qp_service(qp);
	h->migreq = true;
	h->pkey = NHCA_DEFAULT_PKEY;
	h->qpn = qp->attr.dest_qp_num;
	h->psn = psn;
	h->caps = nhca_caps(qp);
	h->mark = qp->mark;
	h->syndrome = NHCA_AETH_ACK | NHCA_AETH_NO_CREDIT;
	h->msn = msn;
}

/*
 * The data of a READ is copied (nhca_qp_tx() sets @tx->copy), because the key may be closed at any
 * time, and the operation that closes the key cannot wait until the stack has sent the pages.  If
 * nhca_resp_zcopy() returns true, the caller sets @tx->copy to false: then the key can be closed
 * only by operations that wait for packets (nhca_iter_ahead()).
 */
static void nhca_resp_tx(struct nhca_qp *qp, struct nhca_burst *burst, struct nhca_hdr *h,
			 struct nhca_iter *it, u32 payload, u32 ahead, struct nhca_tx *tx)
{
	nhca_qp_tx(qp, tx, h, payload);
	tx->burst = burst;
	tx->it = it;
	tx->sum = nhca_wants_sum(qp, h);
	tx->fault = qp->rq.fault;
	tx->ahead = ahead;
}

static int nhca_resp_xmit(struct nhca_qp *qp, struct nhca_burst *burst, struct nhca_hdr *h)
{
	struct nhca_tx tx __uninitialized;

	nhca_resp_tx(qp, burst, h, NULL, 0, 0, &tx);
	return nhca_xmit(&tx);
}

/* Return: true if packets of a READ response may refer to pages.  A repeated response is copied. */
static bool nhca_resp_zcopy(const struct nhca_res *res)
{
	return res->zcopy && !res->replay;
}

static void nhca_resp_ack(struct nhca_qp *qp, struct nhca_burst *burst, u8 syndrome, u32 psn)
{
	struct nhca_hdr h __uninitialized;

	nhca_resp_hdr(qp, &h, NHCA_OP_ACK, psn, qp->rq.msn);
	h.syndrome = syndrome;
	/* an ACK ends a batch; if the batch is empty, sending the ACK without a batch is faster */
	if (burst && nhca_burst_empty(burst))
		burst = NULL;
	/* if this fails, the ACK or NAK is lost: the peer requests an ACK or repeats the request */
	nhca_resp_xmit(qp, burst, &h);
}

void nhca_resp_pure_ack(struct nhca_qp *qp, u32 psn)
{
	lockdep_assert_held(&qp->rq.lock);
	nhca_resp_ack(qp, NULL, NHCA_AETH_ACK | NHCA_AETH_NO_CREDIT, psn);
}

void nhca_resp_cnp(struct nhca_qp *qp)
{
	struct nhca_hdr h = {
		.opcode = NHCA_OPCODE_CNP,
		.migreq = true,
		.becn = true,
		.pkey = NHCA_DEFAULT_PKEY,
		.qpn = qp->attr.dest_qp_num,
	};
	struct nhca_tx tx __uninitialized;

	if (time_before(jiffies, qp->cnp_sent + 1))
		return;
	qp->cnp_sent = jiffies;
	nhca_qp_tx(qp, &tx, &h, 0);
	if (!nhca_xmit(&tx))
		nhca_count(&qp->who, NHCA_CNT_CNP_SENT);
}

static u8 nhca_read_opcode(const struct nhca_res *res)
{
	bool first = res->sent == res->from;
	bool last = res->sent + 1 == res->end;

	if (first)
		return last ? NHCA_OP_READ_RESP_ONLY : NHCA_OP_READ_RESP_FIRST;
	return last ? NHCA_OP_READ_RESP_LAST : NHCA_OP_READ_RESP_MIDDLE;
}

void nhca_res_done(struct nhca_res *res)
{
	res->busy = false;
	nhca_rkey_put(&res->ref);
}

/*
 * Send packets from the middle of a long READ response in one call: if possible, all packets before
 * the last packet of the response.  A repeated response has no R_Key reference, so its packets are
 * sent one by one, and the key is checked for each of them.
 * @h: headers of the first packet
 * Return: number of packets sent, may be 0.
 */
static u32 nhca_resp_middle(struct nhca_qp *qp, struct nhca_res *res, struct nhca_hdr *h)
{
	u32 off = res->sent * qp->mtu;
	u32 count = res->end - 1 - res->sent;
	struct nhca_iter it __uninitialized;
	struct nhca_tx tx __uninitialized;

	if (count < 2 || !res->ref.held || !(h->caps & NHCA_CAP_NO_ICRC) ||
	    qp->mtu <= NHCA_COPY_BREAK || qp->ibqp.qp_type != IB_QPT_RC)
		return 0;
	nhca_iter_rkey(&it, &res->ref, off, count * qp->mtu, false);
	nhca_iter_for(&it, qp->rq.fault, res->op);
	nhca_resp_tx(qp, qp->rq.burst, h, &it, qp->mtu, 0, &tx);
	tx.copy = !nhca_resp_zcopy(res);
	return nhca_burst_run(&tx, count);
}

/*
 * Send one packet of a READ response, or several from its middle.
 * Return: 0, also if a packet could not be sent and counts as lost; -EACCES if the key is closed;
 * -EAGAIN if the data is being faulted in or read from a disk; -EIO if the disk cannot read the
 * data.
 */
static int nhca_resp_read(struct nhca_qp *qp, struct nhca_res *res)
{
	u32 off = res->sent * qp->mtu;
	u32 payload = min(qp->mtu, res->stop - off);
	struct nhca_sge sge = {
		.addr = res->va + off,
		.length = payload,
		.lkey = res->rkey,
	};
	struct nhca_key_user key_user = { .pd = res->pd, .qpn = qp->qpn };
	struct nhca_iter it __uninitialized;
	struct nhca_hdr h __uninitialized;
	struct nhca_tx tx __uninitialized;
	u8 opcode = nhca_read_opcode(res);
	u32 sent;
	int err;

	nhca_resp_hdr(qp, &h, opcode, nhca_psn_add(res->psn, res->sent), res->msn);
	if (opcode == NHCA_OP_READ_RESP_MIDDLE) {
		sent = nhca_resp_middle(qp, res, &h);
		res->sent += sent;
		res->high = max(res->high, res->sent);
		if (sent)
			return 0;
	}
	if (res->ref.held)
		nhca_iter_rkey(&it, &res->ref, off, payload, false);
	else
		nhca_iter_sges(&it, &key_user, &sge, 1, 0, payload, IB_ACCESS_REMOTE_READ);
	nhca_iter_for(&it, qp->rq.fault, res->op);
	nhca_resp_tx(qp, qp->rq.burst, &h, &it, payload, res->stop - off - payload, &tx);
	tx.copy = !nhca_resp_zcopy(res);
	err = nhca_xmit(&tx);
	if (err == -EACCES || err == -EAGAIN || err == -EIO)
		return err;
	res->high = max(res->high, ++res->sent);
	if (res->sent == res->end)
		nhca_res_done(res);
	return 0;
}

/*
 * Send the response to an atomic, ATOMIC WRITE or FLUSH that was executed.  The response to an
 * ATOMIC WRITE or FLUSH is a READ response without data (IBTA A19).
 */
static void nhca_resp_done(struct nhca_qp *qp, struct nhca_res *res)
{
	bool atomic = res->opcode == NHCA_OP_CMP_SWAP || res->opcode == NHCA_OP_FETCH_ADD;
	struct nhca_hdr h __uninitialized;

	nhca_resp_hdr(qp, &h, atomic ? NHCA_OP_ATOMIC_ACK : NHCA_OP_READ_RESP_ONLY, res->psn,
		      res->msn);
	h.orig = res->orig;
	nhca_resp_xmit(qp, qp->rq.burst, &h);
	nhca_res_done(res);
}

void nhca_resp_ack_due(struct nhca_qp *qp, const struct nhca_hdr *h)
{
	struct nhca_rq *rq = &qp->rq;

	lockdep_assert_held(&rq->lock);
	/*
	 * The ACK may wait if the message completes a receive, because the consumer may reply to
	 * the message.  The ACK does not wait if an earlier ACK is due that may not wait, or on
	 * XRC, where another QP would send the reply.
	 */
	rq->ack_piggyback = (!rq->ack_due || rq->ack_piggyback) &&
			    (h->info->flags & NHCA_OPF_LAST) &&
			    (h->info->flags & (NHCA_OPF_SEND | NHCA_OPF_IMMDT)) &&
			    qp->ibqp.qp_type == IB_QPT_RC;
	rq->ack_due = true;
}

void nhca_resp_nak(struct nhca_qp *qp, u8 syndrome, bool fatal, int event)
{
	struct nhca_rq *rq = &qp->rq;

	lockdep_assert_held(&rq->lock);
	/* only a fatal NAK for an earlier READ may replace a fatal NAK (nhca_resp_failed()) */
	WARN_ON_ONCE(rq->fatal && !fatal);
	rq->nak_due = true;
	rq->nak_psn = rq->psn;
	rq->refused_psn = rq->psn;
	rq->syndrome = syndrome;
	rq->fatal = fatal;
	rq->fatal_event = event;
}

/*
 * Return: true if the packet may be a request that the peer has outstanding: the refused request;
 * an earlier READ, atomic, FLUSH or ATOMIC WRITE with a responder resource; or an earlier SEND or
 * WRITE within nhca_rq_reach().  A host that only guesses PSNs should not be able to cause a NAK.
 */
static bool nhca_req_pending(struct nhca_qp *qp, const struct nhca_hdr *h)
{
	const struct nhca_rq *rq = &qp->rq;
	/* like nhca_respond_rc(): a PSN at a distance of 2^23 is an earlier one */
	s32 ahead = nhca_psn_diff(h->psn, rq->refused_psn);

	if (ahead >= 0)
		return !ahead;
	if (h->info->flags & NHCA_OPF_RD_ATOMIC)
		return nhca_res_exists(qp, h);
	return -ahead <= nhca_rq_reach(qp);
}

void nhca_resp_refused(struct nhca_qp *qp, const struct nhca_rx *rx)
{
	struct nhca_rq *rq = &qp->rq;

	lockdep_assert_held(&rq->lock);
	if (READ_ONCE(qp->state) != IB_QPS_ERR || !rq->fatal || !nhca_req_pending(qp, &rx->hdr)) {
		nhca_rx_refused(qp->dev, &rx->hdr, NHCA_CNT_RX_BAD_STATE);
		return;
	}
	nhca_count(&qp->who, NHCA_CNT_DUP_REQUEST);
	/*
	 * If a request with a responder resource (for example a READ) is repeated, its response was
	 * lost, and a QP in error cannot send the response again.  To the requester a NAK with a
	 * later PSN would only mean that this response was lost.  So the NAK gets the PSN of the
	 * repeated request.  For other requests the NAK has the PSN of the refused request.
	 */
	rq->nak_psn = rx->hdr.info->flags & NHCA_OPF_RD_ATOMIC ? rx->hdr.psn : rq->refused_psn;
	rq->nak_due = true;
}

/*
 * The key of a READ was closed before the whole response was sent, or a disk cannot read more data:
 * a NAK is due, with the PSN of the first packet that was never sent, or of the last packet if all
 * were sent.  A duplicate sets res->sent back, but the NAK must not have this PSN: a peer that has
 * received later packets would ignore the NAK.
 *
 * A peer that repeats a READ may have received the whole response by now, and would ignore even
 * this NAK.  So the QP does not go to error if the response is a repetition.  If the responder has
 * also refused a later request, the NAK of the later request stays due.
 */
static void nhca_resp_failed(struct nhca_qp *qp, struct nhca_res *res, int err)
{
	bool replay = res->replay, disk = err == -EIO;
	int event = disk ? IB_EVENT_QP_FATAL : IB_EVENT_QP_ACCESS_ERR;
	struct nhca_rq *rq = &qp->rq;

	if (!replay || !rq->fatal) {
		nhca_count(&qp->who, disk ? NHCA_CNT_SENT_OP_NAK : NHCA_CNT_SENT_ACCESS_NAK);
		nhca_resp_nak(qp, NHCA_AETH_NAK | (disk ? NHCA_NAK_REM_OP : NHCA_NAK_REM_ACCESS),
			      !replay, replay ? -1 : event);
		rq->nak_psn = nhca_psn_add(res->psn,
					   min(max(res->high, res->sent), res->npsn - 1));
		rq->refused_psn = rq->nak_psn;
	}
	while (rq->res_tail != rq->res_head)
		nhca_res_done(nhca_res_at(rq, rq->res_tail++));
}

/* Send the responses that are due, as far as @budget and waits permit.  Return: budget left. */
static int nhca_resp_pass(struct nhca_qp *qp, int budget)
{
	struct nhca_rq *rq = &qp->rq;
	struct nhca_res *res;
	u32 sent;
	int err;

	while (rq->res_tail != rq->res_head) {
		res = &rq->res[rq->res_tail % rq->nres];
		if (!res->busy) {
			rq->res_tail++;
			continue;
		}
		/* if the stack frees packets immediately, as on lo, only @budget limits a pass */
		if (budget <= 0) {
			queue_work(nhca_resp_wq, &qp->piggyback->rest);
			return budget;
		}
		/* at the end of either wait the QP is kicked */
		if (nhca_flow_blocked(qp->flow, true) || nhca_fault_waiting(rq->fault))
			return budget;
		if (res->opcode != NHCA_OP_READ_REQUEST) {
			nhca_resp_done(qp, res);
			budget--;
			continue;
		}
		sent = res->sent;
		err = nhca_resp_read(qp, res);
		switch (err) {
		case 0:
			budget -= res->sent - sent;
			break;
		case -EAGAIN:
			return budget;
		default:
			nhca_resp_failed(qp, res, err);
		}
	}

	/* one ACK or NAK acknowledges all earlier PSNs */
	if (rq->nak_due) {
		rq->nak_due = false;
		rq->ack_due = false;
		if (nhca_is_reliable(qp)) {
			trace_nhca_nak_sent(&qp->who, rq->nak_psn, rq->syndrome);
			nhca_resp_ack(qp, rq->burst, rq->syndrome, rq->nak_psn);
		}
		nhca_piggyback_drop(qp);
		if (rq->fatal)
			nhca_qp_set_error(qp, rq->fatal_event);
	} else if (rq->ack_due) {
		rq->ack_due = false;
		if (!nhca_piggyback_waits(qp, rq->ack_piggyback))
			nhca_resp_ack(qp, rq->burst, NHCA_AETH_ACK | NHCA_AETH_NO_CREDIT,
				      nhca_psn_add(rq->psn, -1));
	}
	return budget;
}

int nhca_resp_run_budget(struct nhca_qp *qp, int budget)
{
	struct nhca_burst burst = {};
	int left;

	lockdep_assert_held(&qp->rq.lock);
	qp->rq.burst = &burst;
	left = nhca_resp_pass(qp, budget);
	qp->rq.burst = NULL;
	nhca_burst_flush(&burst);
	return budget - left;
}

void nhca_resp_run(struct nhca_qp *qp)
{
	nhca_resp_run_budget(qp, NHCA_BUDGET);
}

int nhca_resp_init(void)
{
	/* WQ_MEM_RECLAIM: this host may have to wait for a peer's READ before it can free memory */
	nhca_resp_wq = alloc_workqueue("nhca_answer", WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	return nhca_resp_wq ? 0 : -ENOMEM;
}

void nhca_resp_exit(void)
{
	destroy_workqueue(nhca_resp_wq);
}
