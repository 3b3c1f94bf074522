// SPDX-License-Identifier: GPL-2.0
/* The requester: the packets of work requests, and which of them set AckReq (IBTA 9.7.2). */
#include "engine.h"

static bool nhca_swr_is_write(const struct nhca_swr *swr)
{
	return swr->wqe.opcode == NHCA_WR_RDMA_WRITE ||
	       swr->wqe.opcode == NHCA_WR_RDMA_WRITE_WITH_IMM;
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
	h->caps = nhca_caps(qp);
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
	if (swr->wqe.flags & NHCA_SEND_INLINE) {
		nhca_iter_bytes(it, swr->wqe.data + off);
		return;
	}
	nhca_iter_sges(it, &qp->key_user, swr->wqe.sge, swr->wqe.num_sge, off, swr->length - off,
		       0);
	nhca_iter_for(it, qp->sq.fault, swr->op);
}

/*
 * Fill in @tx for a packet with headers @h and @payload bytes from byte @off of the message; @it
 * becomes the iterator over these bytes.
 */
static void nhca_swr_tx(struct nhca_qp *qp, struct nhca_swr *swr, struct nhca_hdr *h, u32 off,
			u32 payload, struct nhca_tx *tx, struct nhca_iter *it)
{
	nhca_qp_tx(qp, tx, h, payload);
	tx->burst = qp->sq.burst;
	tx->copy = !nhca_is_reliable(qp) || swr->sent < swr->high ||
		   swr->length <= NHCA_MESSAGE_COPY_BREAK;
	tx->sum = nhca_wants_sum(qp, h);
	tx->fault = qp->sq.fault;
	tx->ahead = swr->length - off - payload;
	if (payload) {
		nhca_swr_source(qp, swr, off, it);
		tx->it = it;
	}
}

/* Let @swr complete only after the stack has released the pages that @tx refers to. */
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

	lockdep_assert_held(&qp->sq.lock);
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

/* Return: true if more than half of the ring's entries are in use: an ACK should free some. */
static bool nhca_sq_crowded(const struct nhca_sq *sq)
{
	return sq->fetched - sq->cons > sq->max_wr / 2;
}

/*
 * Return: true if the packet sets AckReq.  One packet in each quarter of the window sets AckReq,
 * and each packet when the window is almost full.  The last packet of the last posted request also
 * sets AckReq in these cases: a consumer waits for a completion, more than half of the ring is in
 * use, or nhca_sq.ackreq_boost is not 0.  In SQD the last packet of the last request that was
 * fetched sets AckReq.  No consumer waits for an unsignaled request, so a later request or the
 * timer requests its ACK.  If nhca_sq_ackreq() had to retransmit a packet to request an ACK, it
 * sets ackreq_boost, so that the next requests set AckReq even if they are unsignaled.
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
	ask = ++sq->since_ack >= sq->window.cwnd / 4 || nhca_sq_room(sq) <= 1;
	if (last && list_is_last(&swr->list, &sq->inflight) && (sqd || !nhca_sq_more(qp))) {
		ask |= sqd || sq->ackreq_pending || sq->ackreq_boost || nhca_sq_crowded(sq);
		sq->ackreq_boost -= !!sq->ackreq_boost;
	}
	if (ask)
		nhca_sq_ackreq_sent(sq);
	return ask;
}

/*
 * Send packets from the middle of a long SEND or WRITE in one call, none of them with AckReq.  The
 * function stops before the last packet of the message, the last packet of the window, or the next
 * packet with AckReq, whichever comes first.
 * Return: number of packets sent, may be 0.
 */
static u32 nhca_send_middle(struct nhca_qp *qp, struct nhca_swr *swr, struct nhca_hdr *h)
{
	struct nhca_sq *sq = &qp->sq;
	u32 off = swr->sent * qp->mtu;
	u32 quarter = sq->window.cwnd / 4;
	u32 count = swr->npsn - 1 - swr->sent;
	struct nhca_iter it __uninitialized;
	struct nhca_tx tx __uninitialized;

	if (!(h->caps & NHCA_CAP_NO_ICRC) || nhca_is_paced(qp) || qp->mtu <= NHCA_COPY_BREAK ||
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
	struct nhca_sq *sq = &qp->sq;
	/* restored if the packet is not sent, because its AckReq does not count then */
	bool pending = sq->ackreq_pending;
	u32 since_ack = sq->since_ack;
	u8 boost = sq->ackreq_boost;
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

	err = nhca_swr_xmit(qp, swr, &h, off, payload);
	if (!err) {
		if (h.ackreq && swr->sent >= swr->high)
			nhca_rtt_begin(sq, h.psn);
		swr->sent++;
		return 0;
	}
	sq->since_ack = since_ack;
	sq->ackreq_pending = pending;
	sq->ackreq_boost = boost;
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

	err = nhca_swr_xmit(qp, swr, &h, 0, 0);
	if (!err) {
		if (swr->sent >= swr->high)
			nhca_rtt_begin(&qp->sq, h.psn);
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
static int nhca_send_atomic(struct nhca_qp *qp, struct nhca_swr *swr)
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

int nhca_swr_send(struct nhca_qp *qp, struct nhca_swr *swr)
{
	struct nhca_sq *sq = &qp->sq;
	int err;

	lockdep_assert_held(&sq->lock);
	if (nhca_is_reliable(qp) && sq->una == sq->nxt)
		nhca_flow_queue_hold(qp->flow);
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
	} else if (nhca_swr_is_rd_atomic(swr)) {
		err = nhca_send_atomic(qp, swr);
	} else {
		err = nhca_send_message(qp, swr);
	}

	switch (err) {
	case 0:
		break;
	case -EAGAIN:
		/* the payload is being faulted in or read from a disk; its arrival kicks the QP */
		return err;
	case -EACCES:
	case -ENODATA:
		if (nhca_send_empty_ackreq(qp, swr))
			return err;
		nhca_count(&qp->who, NHCA_CNT_LOCAL_PROT_ERR);
		swr->status = IB_WC_LOC_PROT_ERR;
		return err;
	case -EINVAL:
	case -EIO:
		swr->status = IB_WC_LOC_QP_OP_ERR;
		return err;
	case -EMSGSIZE:
		swr->status = IB_WC_LOC_LEN_ERR;
		return err;
	default:
		/*
		 * No memory, route or link: the packet counts as lost.  A reliable QP tries again
		 * when the timer expires, if not earlier; other QPs do not send the packet again.
		 */
		if (nhca_is_reliable(qp)) {
			nhca_sq_unsent(qp);
			return err;
		}
		swr->sent++;
	}

	swr->high = max(swr->high, swr->sent);
	if (nhca_psn_diff(nhca_psn_add(swr->psn, swr->sent), sq->nxt) > 0)
		sq->nxt = nhca_psn_add(swr->psn, swr->sent);
	return 0;
}
