// SPDX-License-Identifier: GPL-2.0
/*
 * The requester: turns work requests into packets within the window, and goes back after a loss
 * (IBTA 9.7.2, 9.7.5; o9-62 and on).
 */
#include <linux/slab.h>

#include "../observe/trace.h"
#include "engine.h"

static bool nhca_swr_is_write(const struct nhca_swr *swr)
{
	return swr->wqe.opcode == NHCA_WR_RDMA_WRITE ||
	       swr->wqe.opcode == NHCA_WR_RDMA_WRITE_WITH_IMM;
}

/* Return: the PSN of the next packet, which shows how much of the window is used. */
static u32 nhca_sq_next_psn(const struct nhca_sq *sq)
{
	if (sq->cur && sq->cur->begun)
		return nhca_psn_add(sq->cur->psn, sq->cur->sent);
	return sq->psn;
}

static u32 nhca_sq_used(const struct nhca_sq *sq)
{
	return max(nhca_psn_diff(nhca_sq_next_psn(sq), sq->una), 0);
}

static u32 nhca_sq_room(const struct nhca_sq *sq)
{
	u32 used = nhca_sq_used(sq);

	return used < sq->cwnd ? sq->cwnd - used : 0;
}

/*
 * Begin a request: assign its PSNs.
 * Return: false if it has to wait for earlier requests.
 */
static bool nhca_swr_begin(struct nhca_qp *qp, struct nhca_swr *swr)
{
	struct nhca_sq *sq = &qp->sq;
	/* 10.8.3.3: a fence waits for earlier READs and atomics */
	if ((swr->wqe.flags & NHCA_SEND_FENCE) && sq->rd_atomic)
		return false;
	if (nhca_swr_is_answered(swr) && !qp->attr.max_rd_atomic) {
		swr->status = IB_WC_LOC_QP_OP_ERR;
		return true;
	}

	if (nhca_swr_is_local(swr))
		swr->npsn = 0;
	else if (nhca_is_datagram(qp) || nhca_is_raw(qp) ||
		 (nhca_swr_is_answered(swr) && !nhca_swr_is_read(swr)))
		swr->npsn = 1;
	else
		swr->npsn = nhca_psn_count(swr->length, qp->mtu);
	if (list_is_first(&swr->list, &sq->inflight)) {
		/* nothing was outstanding, so the timeout counts from now */
		sq->times->since = jiffies;
		if (sq->una != sq->psn)
			nhca_sq_progress(qp, sq->psn);
	}
	swr->psn = sq->psn;
	sq->psn = nhca_psn_add(sq->psn, swr->npsn);
	swr->begun = true;
	swr->clock = nhca_trace_clock();
	trace_nhca_wqe_started(&qp->who, swr->wqe.opcode, swr->wqe.wr_id, swr->length, swr->psn,
			       swr->npsn);
	if (nhca_swr_is_local(swr)) {
		/*
		 * The operation may close a key of payload that is in the batch, and it may wait
		 * for live sections.  So first release the peer's lock and send the batch.
		 */
		nhca_loop_end(qp);
		nhca_burst_flush(sq->burst);
		nhca_local_run(qp, swr);
	}
	return true;
}

static u8 nhca_message_opcode(const struct nhca_swr *swr, bool first, bool last)
{
	bool write = nhca_swr_is_write(swr);

	if (first && last) {
		switch (swr->wqe.opcode) {
		case NHCA_WR_RDMA_WRITE:
			return NHCA_OP_WRITE_ONLY;
		case NHCA_WR_RDMA_WRITE_WITH_IMM:
			return NHCA_OP_WRITE_ONLY_IMM;
		case NHCA_WR_SEND_WITH_IMM:
			return NHCA_OP_SEND_ONLY_IMM;
		case NHCA_WR_SEND_WITH_INV:
			return NHCA_OP_SEND_ONLY_INV;
		default:
			return NHCA_OP_SEND_ONLY;
		}
	}
	if (first)
		return write ? NHCA_OP_WRITE_FIRST : NHCA_OP_SEND_FIRST;
	if (!last)
		return write ? NHCA_OP_WRITE_MIDDLE : NHCA_OP_SEND_MIDDLE;
	switch (swr->wqe.opcode) {
	case NHCA_WR_RDMA_WRITE:
		return NHCA_OP_WRITE_LAST;
	case NHCA_WR_RDMA_WRITE_WITH_IMM:
		return NHCA_OP_WRITE_LAST_IMM;
	case NHCA_WR_SEND_WITH_IMM:
		return NHCA_OP_SEND_LAST_IMM;
	case NHCA_WR_SEND_WITH_INV:
		return NHCA_OP_SEND_LAST_INV;
	default:
		return NHCA_OP_SEND_LAST;
	}
}

void nhca_swr_hdr(const struct nhca_qp *qp, const struct nhca_swr *swr, struct nhca_hdr *h)
{
	memset(h, 0, sizeof(*h));
	h->migreq = true;
	h->pkey = NHCA_DEFAULT_PKEY;
	h->qpn = qp->attr.dest_qp_num;
	h->psn = nhca_psn_add(swr->psn, swr->sent);
	h->caps = nhca_notice(qp);
	h->mark = qp->mark;
	h->srqn = swr->wqe.xrc_srqn;
}

void nhca_message_hdr(const struct nhca_qp *qp, const struct nhca_swr *swr, bool first, bool last,
		      struct nhca_hdr *h)
{
	h->opcode = nhca_message_opcode(swr, first, last) | nhca_qp_service(qp);
	h->info = nhca_opinfo(h->opcode);
	h->ackreq = false;
	h->solicited = last && (swr->wqe.flags & NHCA_SEND_SOLICITED);
	if (nhca_swr_is_write(swr)) {
		h->va = swr->wqe.rdma.remote_addr;
		h->rkey = swr->wqe.rdma.rkey;
		h->dmalen = swr->length;
	}
	h->imm = (__force __be32)swr->wqe.ex.imm_data;
	h->inv_rkey = swr->wqe.ex.invalidate_rkey;
}

void nhca_swr_source(const struct nhca_qp *qp, const struct nhca_swr *swr, u32 off,
		     struct nhca_iter *it)
{
	if (swr->wqe.flags & NHCA_SEND_INLINE)
		nhca_iter_bytes(it, swr->wqe.data + off);
	else
		nhca_iter_sges(it, &qp->key_user, swr->wqe.sge, swr->wqe.num_sge, off,
			       swr->length - off, 0);
}

/*
 * Fill in @tx for a packet with @h and @payload bytes from byte @off of the message; @it reads
 * them.
 */
static void nhca_swr_tx(struct nhca_qp *qp, struct nhca_swr *swr, struct nhca_hdr *h, u32 off,
			u32 payload, struct nhca_tx *tx, struct nhca_iter *it)
{
	*tx = (struct nhca_tx) {
		.burst = qp->sq.burst,
		.dev = qp->dev,
		.who = &qp->who,
		.av = qp->av,
		.flow = qp->flow,
		.sport = qp->sport,
		.hdr = h,
		.payload = payload,
		.copy = !nhca_is_reliable(qp) || swr->sent < swr->high,
		.sum = nhca_wants_sum(qp, h),
		.fault = qp->sq.fault,
		.ahead = swr->length - off - payload,
	};
	if (payload) {
		nhca_swr_source(qp, swr, off, it);
		tx->it = it;
	}
}

/* Let @swr complete only after the stack has released the pages that @tx sent by reference. */
static void nhca_swr_zcopied(const struct nhca_qp *qp, struct nhca_swr *swr,
			     const struct nhca_tx *tx)
{
	if (!tx->zcopied)
		return;
	swr->zcopied = true;
	swr->zcopy = nhca_zcopy_seq(qp->flow);
}

int nhca_swr_xmit(struct nhca_qp *qp, struct nhca_swr *swr, struct nhca_hdr *h, u32 off,
		  u32 payload)
{
	struct nhca_iter it __uninitialized;
	struct nhca_tx tx __uninitialized;
	int err;

	nhca_swr_tx(qp, swr, h, off, payload, &tx, &it);
	if (swr->sent < swr->high)
		nhca_count(&qp->who, NHCA_CNT_RETRANSMIT_PKTS);
	nhca_piggyback_begin(qp, h);
	err = nhca_xmit(&tx);
	nhca_swr_zcopied(qp, swr, &tx);
	nhca_piggyback_end(qp, h, err);
	if (!err)
		nhca_pace_sent(qp, payload);
	return err;
}

/* Return: true if more than half of the ring's entries are in use: an ACK would free them. */
static bool nhca_sq_crowded(const struct nhca_sq *sq)
{
	return sq->fetched - sq->cons > sq->max_wr / 2;
}

/*
 * Return: true if the packet sets AckReq: once in a quarter of the window, and when the window is
 * almost full; in the last packet of the last posted request also in SQD, if a consumer waits for a
 * completion, and if half of the ring is in use.  No consumer waits for an unsignaled request: a
 * later request or the timer requests its ACK.  If nhca_sq_ackreq() had to retransmit a packet for
 * that, the next requests set AckReq even if they are unsignaled.
 */
static bool nhca_wants_ack(struct nhca_qp *qp, const struct nhca_swr *swr, bool last)
{
	struct nhca_sq *sq = &qp->sq;
	bool sqd = READ_ONCE(qp->state) == IB_QPS_SQD;
	bool ask;

	if (!nhca_is_reliable(qp))
		return false;
	if (last && nhca_swr_signaled(qp, swr))
		sq->ackreq_pending = true;
	ask = ++sq->since_ack >= sq->cwnd / 4 || nhca_sq_room(sq) <= 1;
	if (last && list_is_last(&swr->list, &sq->inflight) && (sqd || !nhca_sq_more(qp))) {
		ask |= sqd || sq->ackreq_pending || sq->ackreq_boost || nhca_sq_crowded(sq);
		sq->ackreq_boost -= !!sq->ackreq_boost;
	}
	if (ask)
		nhca_sq_ackreq_sent(sq);
	return ask;
}

/*
 * Send packets from the middle of a long SEND or WRITE in one call, none of them with AckReq: as
 * many as there are before the last packet, the end of the window, and the next AckReq.
 * Return: number of packets sent, may be 0.
 */
static u32 nhca_send_middle(struct nhca_qp *qp, struct nhca_swr *swr, struct nhca_hdr *h)
{
	struct nhca_sq *sq = &qp->sq;
	u32 off = swr->sent * qp->mtu;
	u32 quarter = sq->cwnd / 4;
	u32 count = swr->npsn - 1 - swr->sent;
	struct nhca_iter it __uninitialized;
	struct nhca_tx tx __uninitialized;

	if (!(h->caps & NHCA_CAP_NO_ICRC) || nhca_pace_rate(qp) || qp->mtu <= NHCA_COPY_BREAK ||
	    sq->since_ack + 1 >= quarter || swr->sent < swr->high)
		return 0;
	count = min3(count, quarter - 1 - sq->since_ack, max(nhca_sq_room(sq), 1U) - 1);
	if (count < 2)
		return 0;
	nhca_swr_tx(qp, swr, h, off, qp->mtu, &tx, &it);
	count = nhca_burst_run(&tx, count);
	nhca_swr_zcopied(qp, swr, &tx);
	sq->since_ack += count;
	return count;
}

/* Send one packet of a SEND or WRITE, or several from its middle. */
static int nhca_send_message(struct nhca_qp *qp, struct nhca_swr *swr)
{
	u32 since_ack = qp->sq.since_ack;
	u32 off = swr->sent * qp->mtu;
	u32 payload = min(qp->mtu, swr->length - off);
	bool first = !swr->sent;
	bool last = swr->sent + 1 == swr->npsn;
	struct nhca_hdr h __uninitialized;
	u32 sent;
	int err;

	nhca_swr_hdr(qp, swr, &h);
	nhca_message_hdr(qp, swr, first, last, &h);
	if (!first && !last && qp->ibqp.qp_type == IB_QPT_RC) {
		sent = nhca_send_middle(qp, swr, &h);
		swr->sent += sent;
		if (sent)
			return 0;
	}
	h.ackreq = nhca_wants_ack(qp, swr, last);
	if (h.ackreq && swr->sent >= swr->high)
		nhca_rtt_begin(&qp->sq, h.psn);

	err = nhca_swr_xmit(qp, swr, &h, off, payload);
	if (!err)
		swr->sent++;
	else
		/* the packet was not sent, so its AckReq does not count */
		qp->sq.since_ack = since_ack;
	return err;
}

/* Send the request for the next chunk of a READ. */
static int nhca_send_read(struct nhca_qp *qp, struct nhca_swr *swr)
{
	u32 chunk_end = min(swr->npsn, roundup(swr->sent + 1, NHCA_READ_CHUNK));
	u32 off = swr->sent * qp->mtu;
	struct nhca_hdr h __uninitialized;
	int err;

	nhca_swr_hdr(qp, swr, &h);
	h.opcode = NHCA_OP_READ_REQUEST | nhca_qp_service(qp);
	h.ackreq = true;
	h.va = swr->wqe.rdma.remote_addr + off;
	h.rkey = swr->wqe.rdma.rkey;
	h.dmalen = min(swr->length - off, (chunk_end - swr->sent) * qp->mtu);
	if (swr->sent >= swr->high)
		nhca_rtt_begin(&qp->sq, h.psn);

	err = nhca_swr_xmit(qp, swr, &h, 0, 0);
	if (!err) {
		swr->sent = chunk_end;
		qp->sq.rd_atomic++;
		nhca_sq_ackreq_sent(&qp->sq);
	}
	return err;
}

static void nhca_atomic_hdr(const struct nhca_swr *swr, struct nhca_hdr *h)
{
	bool cas = swr->wqe.opcode == NHCA_WR_ATOMIC_CMP_AND_SWP;

	h->opcode = cas ? NHCA_OP_CMP_SWAP : NHCA_OP_FETCH_ADD;
	h->va = swr->wqe.atomic.remote_addr;
	h->rkey = swr->wqe.atomic.rkey;
	h->swap_add = cas ? swr->wqe.atomic.swap : swr->wqe.atomic.compare_add;
	h->compare = cas ? swr->wqe.atomic.compare_add : 0;
}

static void nhca_flush_hdr(const struct nhca_swr *swr, struct nhca_hdr *h)
{
	h->opcode = NHCA_OP_FLUSH;
	h->va = swr->wqe.flush.remote_addr;
	h->rkey = swr->wqe.flush.rkey;
	h->dmalen = swr->wqe.flush.length;
	h->flush_type = swr->wqe.flush.type;
	h->flush_level = swr->wqe.flush.level;
}

static void nhca_atomic_write_hdr(const struct nhca_swr *swr, struct nhca_hdr *h)
{
	h->opcode = NHCA_OP_ATOMIC_WRITE;
	h->va = swr->wqe.rdma.remote_addr;
	h->rkey = swr->wqe.rdma.rkey;
	h->dmalen = swr->length;
}

/* Send an atomic, FLUSH or ATOMIC WRITE: one request packet, one response packet. */
static int nhca_send_asking(struct nhca_qp *qp, struct nhca_swr *swr)
{
	u32 payload = 0;
	struct nhca_hdr h __uninitialized;
	int err;

	nhca_swr_hdr(qp, swr, &h);
	h.ackreq = true;
	switch (swr->wqe.opcode) {
	case NHCA_WR_FLUSH:
		nhca_flush_hdr(swr, &h);
		break;
	case NHCA_WR_ATOMIC_WRITE:
		nhca_atomic_write_hdr(swr, &h);
		payload = swr->length;
		break;
	default:
		nhca_atomic_hdr(swr, &h);
	}
	h.opcode |= nhca_qp_service(qp);

	err = nhca_swr_xmit(qp, swr, &h, 0, payload);
	if (!err) {
		swr->sent = 1;
		qp->sq.rd_atomic++;
		nhca_sq_ackreq_sent(&qp->sq);
	}
	return err;
}

/* Return: true if the request has to wait; the end of this wait runs the requester again. */
static bool nhca_must_wait(struct nhca_qp *qp, const struct nhca_swr *swr)
{
	return nhca_flow_blocked(qp->flow, false) || nhca_fault_waiting(qp->sq.fault) ||
	       nhca_pace_waits(qp) ||
	       (nhca_swr_is_answered(swr) && qp->sq.rd_atomic >= qp->attr.max_rd_atomic);
}

/* Return: true if the window has room for the next packet of the request, or for its response. */
static bool nhca_window_open(const struct nhca_qp *qp, const struct nhca_swr *swr)
{
	const struct nhca_sq *sq = &qp->sq;

	if (!nhca_is_reliable(qp))
		return true;
	if (!nhca_swr_is_answered(swr))
		return nhca_sq_room(sq) > 0;
	/* the response to a chunk must fit in the window, unless nothing else is outstanding */
	return !nhca_sq_used(sq) ||
	       nhca_sq_room(sq) >= min_t(u32, swr->npsn - swr->sent, NHCA_READ_CHUNK);
}

static int nhca_send_one(struct nhca_qp *qp, struct nhca_swr *swr)
{
	struct nhca_sq *sq = &qp->sq;
	int err;

	if (nhca_is_datagram(qp)) {
		err = nhca_datagram_send(qp, swr);
		if (!err)
			swr->sent = 1;
	} else if (nhca_is_raw(qp)) {
		err = nhca_raw_send(qp, swr);
		if (!err)
			swr->sent = 1;
	} else if (nhca_swr_is_read(swr)) {
		err = nhca_send_read(qp, swr);
	} else if (nhca_swr_is_answered(swr)) {
		err = nhca_send_asking(qp, swr);
	} else {
		err = nhca_send_message(qp, swr);
	}

	switch (err) {
	case 0:
		break;
	case -EAGAIN:
		/* the payload is being faulted in; afterwards the QP is kicked */
		return err;
	case -EACCES:
	case -ENODATA:
		if (nhca_send_asks_blind(qp, swr))
			return err;
		nhca_count(&qp->who, NHCA_CNT_LOCAL_PROT_ERR);
		swr->status = IB_WC_LOC_PROT_ERR;
		return err;
	case -EINVAL:
		swr->status = IB_WC_LOC_QP_OP_ERR;
		return err;
	case -EMSGSIZE:
		swr->status = IB_WC_LOC_LEN_ERR;
		return err;
	default:
		/*
		 * No memory, route or link: the packet counts as lost.  RC retransmits it when the
		 * timer expires; UC and UD lose it.
		 */
		if (nhca_is_reliable(qp)) {
			nhca_sq_arm(qp, false);
			if (!qp->attr.timeout)
				mod_timer(&sq->timer, jiffies + NHCA_TIMEOUT_MIN);
			return err;
		}
		swr->sent++;
	}

	swr->high = max(swr->high, swr->sent);
	if (nhca_psn_diff(nhca_psn_add(swr->psn, swr->sent), sq->nxt) > 0)
		sq->nxt = nhca_psn_add(swr->psn, swr->sent);
	return 0;
}

/*
 * All packets of the request were sent.  Complete it on UC and UD; continue with the next one on
 * RC.
 */
static void nhca_sq_advance(struct nhca_qp *qp, struct nhca_swr *swr)
{
	struct nhca_sq *sq = &qp->sq;

	if (!nhca_is_reliable(qp)) {
		sq->cur = NULL;
		nhca_swr_complete(qp, swr, IB_WC_SUCCESS);
		return;
	}
	/* no ACK will arrive that could complete it */
	if (nhca_swr_is_local(swr) && list_is_first(&swr->list, &sq->inflight)) {
		nhca_swr_complete(qp, swr, IB_WC_SUCCESS);
		return;
	}
	if (nhca_swr_is_local(swr) && nhca_swr_signaled(qp, swr))
		sq->ackreq_pending = true;
	sq->cur = list_is_last(&swr->list, &sq->inflight) ? NULL : list_next_entry(swr, list);
}

/* SQD (10.3.1.5): if all requests that had begun are complete, raise the event once. */
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

/* Return: the request to send from, or NULL if there is nothing to do now. */
static struct nhca_swr *nhca_sq_current(struct nhca_qp *qp)
{
	struct nhca_sq *sq = &qp->sq;
	struct nhca_swr *swr = sq->cur;

	if (READ_ONCE(qp->state) == IB_QPS_SQD && (!swr || !swr->begun)) {
		nhca_sq_drained(qp);
		return NULL;
	}
	if (!swr) {
		swr = nhca_sq_fetch(qp);
		if (PTR_ERR(swr) == -EPROTO) {
			nhca_count(&qp->who, NHCA_CNT_BAD_RING);
			nhca_qp_set_error(qp, IB_EVENT_QP_FATAL);
			return NULL;
		}
		if (PTR_ERR(swr) == -ENOMEM) {
			mod_timer(&sq->timer, jiffies + 1);
			return NULL;
		}
		sq->cur = swr;
	}
	return swr;
}

/* Return: as nhca_sq_run(). */
static int nhca_sq_pass(struct nhca_qp *qp, int budget)
{
	struct nhca_sq *sq = &qp->sq;
	struct nhca_swr *swr;
	u32 done, sent;
	bool oldest;

	for (;;) {
		if (budget <= 0) {
			nhca_bh_queue(&qp->kick);
			return budget;
		}
		switch (READ_ONCE(qp->state)) {
		case IB_QPS_RTS:
		case IB_QPS_SQD:
			break;
		case IB_QPS_SQE:
		case IB_QPS_ERR:
			nhca_sq_flush(qp);
			return budget;
		default:
			return budget;
		}
		if (sq->rnr_wait)
			return budget;

		swr = nhca_sq_current(qp);
		if (!swr) {
			/*
			 * a consumer waits for an ACK that no packet has requested, or SQD waits
			 * for all of them
			 */
			if (sq->ackreq_pending || READ_ONCE(qp->state) == IB_QPS_SQD)
				nhca_sq_ackreq(qp);
			return budget;
		}
		if (!swr->status && !swr->begun && !nhca_swr_begin(qp, swr))
			return budget;
		if (swr->status) {
			/* reported when it is the oldest: request an ACK for earlier requests */
			if (!list_is_first(&swr->list, &sq->inflight)) {
				nhca_sq_ackreq(qp);
				return budget;
			}
			nhca_sq_fail(qp, swr->status);
			budget--;
			continue;
		}
		if (swr->sent >= swr->npsn) {
			budget--;
			nhca_sq_advance(qp, swr);
			continue;
		}
		done = nhca_peer_is_here(qp) ? nhca_loop_step(qp, swr) : 0;
		if (done) {
			/* copying the bytes takes as long as with packets */
			budget -= DIV_ROUND_UP(done * qp->mtu, NHCA_BUDGET_BYTES);
			continue;
		}
		nhca_loop_end(qp);
		if (nhca_must_wait(qp, swr))
			return budget;
		if (!nhca_window_open(qp, swr)) {
			nhca_sq_ackreq(qp);
			return budget;
		}
		sent = swr->sent;
		oldest = nhca_psn_add(swr->psn, sent) == sq->una;
		if (nhca_send_one(qp, swr)) {
			budget--;
			if (swr->status)
				continue;
			return budget;
		}
		budget -= nhca_swr_cost(qp, swr, sent);
		if (nhca_is_reliable(qp))
			nhca_sq_arm(qp, oldest);
		if (swr->sent >= swr->npsn)
			nhca_sq_advance(qp, swr);
	}
}

int nhca_sq_run(struct nhca_qp *qp, int budget)
{
	struct nhca_burst burst = {};

	qp->sq.burst = &burst;
	nhca_sq_retire(qp);
	budget = nhca_sq_pass(qp, budget);
	nhca_loop_end(qp);
	qp->sq.burst = NULL;
	nhca_burst_flush(&burst);
	return budget;
}

void nhca_sq_unlock(struct nhca_qp *qp)
	__releases(&qp->sq.lock)
{
	struct nhca_sq *sq = &qp->sq;
	int budget = NHCA_BUDGET;

	do {
		while (budget > 0 && test_and_clear_bit(0, &sq->note)) {
			rcu_read_lock();
			/*
			 * each pass uses an eighth of the budget, or other CPUs' doorbells could
			 * keep this CPU
			 */
			budget = nhca_sq_run(qp, budget) - NHCA_BUDGET / NHCA_SQ_NOTES;
			rcu_read_unlock();
		}
		spin_unlock(&sq->lock);
		/*
		 * A note that was left before the unlock is seen here.  A CPU that leaves a note
		 * after the unlock can take the lock.  Pairs with smp_mb__after_atomic() in
		 * nhca_sq_kick().
		 */
		smp_mb();
		if (!test_bit(0, &sq->note))
			return;
		if (budget <= 0) {
			nhca_bh_queue(&qp->kick);
			return;
		}
	} while (spin_trylock(&sq->lock));
}

void nhca_sq_kick(struct nhca_qp *qp)
{
	struct nhca_sq *sq = &qp->sq;

	local_bh_disable();
	set_bit(0, &sq->note);
	/* pairs with smp_mb() after the unlock in nhca_sq_unlock() */
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
