// SPDX-License-Identifier: GPL-2.0
/*
 * Acknowledgments that no packet has asked for, or whose packet is lost: asking for them later.
 */
#include "engine.h"

/* The last packet that was sent once more, and this time it asks to be acknowledged. */
static int nhca_send_again(struct nhca_qp *qp, struct nhca_swr *swr)
{
	struct nhca_hdr h __uninitialized;
	u32 off;
	int err;

	/* as a duplicate: a consumer's bytes may have changed, and are copied this once */
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
 * Ask without the bytes that were sent, because their key is closed: a WRITE of no bytes with the
 * PSN before the oldest that is not acknowledged.  The peer has executed that PSN, or expects the
 * next one: to it this is a duplicate, which it acknowledges with all that it has (9.7.5.1.3).
 */
static int nhca_send_blind(struct nhca_qp *qp, struct nhca_swr *swr)
{
	struct nhca_hdr h __uninitialized;

	nhca_swr_hdr(qp, swr, &h);
	h.opcode = NHCA_OP_WRITE_ONLY | nhca_qp_service(qp);
	h.psn = nhca_psn_add(qp->sq.una, -1);
	h.ackreq = true;
	return nhca_swr_xmit(qp, swr, &h, 0, 0);
}

bool nhca_send_asks_blind(struct nhca_qp *qp, struct nhca_swr *swr)
{
	struct nhca_sq *sq = &qp->sq;

	if (!nhca_is_reliable(qp) || nhca_swr_is_answered(swr) || swr->sent >= swr->high ||
	    !qp->attr.timeout || sq->blind == NHCA_BLIND_MAX)
		return false;
	sq->blind++;
	nhca_send_blind(qp, swr);
	nhca_sq_arm(qp, false);
	return true;
}

bool nhca_sq_ackreq(struct nhca_qp *qp)
{
	struct nhca_sq *sq = &qp->sq;
	struct nhca_swr *swr;
	int err = -ENOENT;

	/* who has gone back asks with the first packet */
	if (!sq->since_ack || sq->gone_back || nhca_psn_diff(sq->nxt, sq->una) <= 0)
		return false;
	list_for_each_entry_reverse(swr, &sq->inflight, list) {
		if (!swr->begun || !swr->sent)
			continue;
		if (nhca_swr_is_answered(swr))
			return false;
		rcu_read_lock();
		err = nhca_send_again(qp, swr);
		if (err == -EACCES || err == -ENODATA)
			err = nhca_send_blind(qp, swr);
		rcu_read_unlock();
		break;
	}
	if (err)
		return false;
	nhca_sq_ackreq_sent(sq);
	sq->ackreq_boost = NHCA_ACKREQ_BOOST;
	return true;
}
