// SPDX-License-Identifier: GPL-2.0
/* Requests an ACK for packets that were sent without AckReq, or whose ACK was lost. */
#include "engine.h"

/* Retransmit the last packet that was sent, now with AckReq. */
static int nhca_send_again(struct nhca_qp *qp, struct nhca_swr *swr)
{
	struct nhca_hdr h __uninitialized;
	u32 off;
	int err;

	/*
	 * make @sent less than @high, so that nhca_swr_tx() copies the payload as in a
	 * retransmission
	 */
	swr->sent--;
	off = swr->sent * qp->mtu;
	nhca_swr_hdr(qp, swr, &h);
	nhca_message_hdr(qp, swr, !swr->sent, swr->sent + 1 == swr->npsn, &h);
	h.ackreq = true;
	err = nhca_swr_xmit(qp, swr, &h, off, min(qp->mtu, swr->length - off));
	swr->sent++;
	return err;
}

/*
 * Request an ACK without the payload, because the payload's key is closed: send a WRITE of 0 bytes
 * with the PSN before the oldest unacknowledged PSN.  The peer expects a later PSN, so this WRITE
 * is a duplicate, and the peer acknowledges all requests that it has executed (9.7.5.1.3).
 */
static int nhca_send_empty_write(struct nhca_qp *qp, struct nhca_swr *swr)
{
	struct nhca_hdr h __uninitialized;

	nhca_swr_hdr(qp, swr, &h);
	h.opcode = NHCA_OP_WRITE_ONLY | nhca_qp_service(qp);
	h.psn = nhca_psn_add(qp->sq.una, -1);
	h.ackreq = true;
	return nhca_swr_xmit(qp, swr, &h, 0, 0);
}

bool nhca_send_empty_ackreq(struct nhca_qp *qp, struct nhca_swr *swr)
{
	struct nhca_sq *sq = &qp->sq;

	lockdep_assert_held(&sq->lock);
	if (!nhca_is_reliable(qp) || nhca_swr_is_rd_atomic(swr) || swr->sent >= swr->high ||
	    !qp->attr.timeout || sq->empty_ackreqs == NHCA_EMPTY_ACKREQ_MAX)
		return false;
	if (!nhca_send_empty_write(qp, swr))
		sq->empty_ackreqs++;
	nhca_sq_arm(qp, false);
	return true;
}

bool nhca_sq_ackreq(struct nhca_qp *qp)
{
	struct nhca_sq *sq = &qp->sq;
	struct nhca_swr *swr;
	int err = -ENOENT;

	lockdep_assert_held(&sq->lock);
	/* after a go-back the first retransmitted packet sets AckReq */
	if (!sq->since_ack || sq->gone_back || nhca_psn_diff(sq->nxt, sq->una) <= 0)
		return false;
	list_for_each_entry_reverse(swr, &sq->inflight, list) {
		if (!swr->begun || !swr->sent)
			continue;
		if (nhca_swr_is_rd_atomic(swr))
			return false;
		rcu_read_lock();
		err = nhca_send_again(qp, swr);
		if (err == -EACCES || err == -ENODATA)
			err = nhca_send_empty_write(qp, swr);
		rcu_read_unlock();
		break;
	}
	/*
	 * No packet with AckReq was sent, so another try is needed.  If the attribute timeout is 0,
	 * the local ACK timer does not run: start it.  After -EAGAIN the requester runs when the
	 * payload is in memory.
	 */
	if (err && err != -ENOENT && err != -EAGAIN && !qp->attr.timeout)
		nhca_sq_unsent(qp);
	if (err)
		return false;
	nhca_sq_ackreq_sent(sq);
	sq->ackreq_boost = NHCA_ACKREQ_BOOST;
	return true;
}
