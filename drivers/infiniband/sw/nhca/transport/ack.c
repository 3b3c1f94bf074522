// SPDX-License-Identifier: GPL-2.0
/* Responses at the requester: ACKs, NAKs, READ data and atomic results (IBTA 9.7.5, 9.7.7). */
#include "../observe/trace.h"
#include "disk.h"
#include "engine.h"

/* delay in microseconds for each value of the RNR NAK timer field (table 45): 0 is the longest */
static const u32 nhca_rnr_usecs[32] = {
	655360, 10, 20, 30, 40, 60, 80, 120, 160, 240, 320, 480, 640, 960, 1280,
	1920, 2560, 3840, 5120, 7680, 10240, 15360, 20480, 30720, 40960, 61440,
	81920, 122880, 163840, 245760, 327680, 491520,
};

static struct nhca_swr *nhca_sq_head(struct nhca_sq *sq)
{
	struct nhca_swr *swr;

	swr = list_first_entry_or_null(&sq->inflight, struct nhca_swr, list);
	return swr && swr->begun ? swr : NULL;
}

static void nhca_sq_set_una(struct nhca_qp *qp, u32 psn)
{
	if (nhca_psn_diff(psn, qp->sq.una) > 0)
		nhca_sq_progress(qp, psn);
}

void nhca_ack_done(struct nhca_qp *qp, struct nhca_swr *swr)
{
	struct nhca_sq *sq = &qp->sq;

	lockdep_assert_held(&sq->lock);
	for (;;) {
		if (sq->cur == swr)
			sq->cur = list_is_last(&swr->list, &sq->inflight) ?
				  NULL : list_next_entry(swr, list);
		/* the window does not bound local operations, so limit how many a pass completes */
		if (sq->nlocal <= NHCA_BUDGET)
			nhca_swr_complete(qp, swr, IB_WC_SUCCESS);
		else
			nhca_swr_complete_later(qp, swr, IB_WC_SUCCESS);
		swr = nhca_sq_head(sq);
		if (!swr || !nhca_swr_is_local(swr) || swr->status)
			return;
		sq->nlocal++;
	}
}

/*
 * All PSNs before @psn have arrived at the peer: complete the requests that end before @psn.  If
 * the response to a READ, atomic, FLUSH or ATOMIC WRITE before @psn is missing, this response was
 * lost: an implied NAK (9.7.5.1.2).
 *
 * Compare PSNs only with una, which is in the oldest request, and at most NHCA_CWND_MAX PSNs before
 * @psn.  The first PSN of the oldest request may be 2^23 PSNs before @psn: too far for
 * nhca_psn_diff().
 * Return: false for an implied NAK; una stays at the missing response.
 */
static bool nhca_ack_before(struct nhca_qp *qp, u32 psn)
{
	struct nhca_sq *sq = &qp->sq;
	struct nhca_swr *swr;
	u32 end;
	s32 ahead;

	while ((swr = nhca_sq_head(sq))) {
		ahead = nhca_psn_diff(psn, sq->una);
		if (ahead <= 0)
			break;
		if (nhca_swr_is_rd_atomic(swr)) {
			nhca_sq_set_una(qp, nhca_psn_add(swr->psn, swr->got));
			return nhca_psn_diff(psn, sq->una) <= 0;
		}
		end = nhca_psn_add(swr->psn, swr->npsn);
		if (ahead < nhca_psn_add(end, -sq->una)) {
			/* after a go-back: do not send the acknowledged packets again */
			swr->sent = max(swr->sent, nhca_psn_add(psn, -swr->psn));
			nhca_sq_set_una(qp, psn);
			return true;
		}
		nhca_sq_set_una(qp, end);
		nhca_ack_done(qp, swr);
	}
	return true;
}

/* A response was lost: go back to una, but only once until una advances. */
static void nhca_ack_lost(struct nhca_qp *qp)
{
	nhca_count(&qp->who, NHCA_CNT_IMPLIED_NAK);
	if (qp->sq.gone_back)
		return;
	nhca_sq_shrink(qp, false);
	nhca_sq_go_back(qp, NHCA_CNT_IMPLIED_NAK);
}

static void nhca_ack_rnr(struct nhca_qp *qp, u8 value)
{
	struct nhca_sq *sq = &qp->sq;

	nhca_count(&qp->who, NHCA_CNT_RCVD_RNR);
	/* 7: retry without limit (11.2.4.2) */
	if (qp->attr.rnr_retry != 7) {
		if (!sq->rnr_retries) {
			nhca_count(&qp->who, NHCA_CNT_RNR_RETRY_EXCEEDED);
			nhca_sq_fail(qp, IB_WC_RNR_RETRY_EXC_ERR);
			return;
		}
		sq->rnr_retries--;
	}
	nhca_sq_go_back(qp, NHCA_CNT_RCVD_RNR);
	sq->rnr_wait = true;
	mod_timer(&sq->timer, jiffies + usecs_to_jiffies(nhca_rnr_usecs[value]) + 1);
}

static void nhca_ack_nak(struct nhca_qp *qp, u8 code)
{
	struct nhca_sq *sq = &qp->sq;

	switch (code) {
	case NHCA_NAK_PSN_SEQ:
		nhca_count(&qp->who, NHCA_CNT_RCVD_SEQ_NAK);
		if (sq->gone_back) {
			/* nothing was acknowledged since the last go-back: use up a retry */
			if (!nhca_rtx_retry(sq->rtx)) {
				nhca_count(&qp->who, NHCA_CNT_RETRY_EXCEEDED);
				nhca_sq_fail(qp, IB_WC_RETRY_EXC_ERR);
				return;
			}
		}
		nhca_sq_shrink(qp, false);
		nhca_sq_go_back(qp, NHCA_CNT_RCVD_SEQ_NAK);
		return;
	case NHCA_NAK_INVALID_REQ:
		nhca_count(&qp->who, NHCA_CNT_RCVD_INVAL_NAK);
		nhca_sq_fail(qp, IB_WC_REM_INV_REQ_ERR);
		return;
	case NHCA_NAK_REM_ACCESS:
		nhca_count(&qp->who, NHCA_CNT_RCVD_ACCESS_NAK);
		nhca_sq_fail(qp, IB_WC_REM_ACCESS_ERR);
		return;
	case NHCA_NAK_REM_OP:
		nhca_count(&qp->who, NHCA_CNT_RCVD_OP_NAK);
		nhca_sq_fail(qp, IB_WC_REM_OP_ERR);
		return;
	default:
		/* a reserved code (9.7.5.2.8): the NAK only acknowledges all PSNs before its own */
		return;
	}
}

/*
 * Return: true if a NAK refuses the oldest request, and this request is a READ, atomic, FLUSH or
 * ATOMIC WRITE.  Earlier packets of its response may be missing.  But the peer sends nothing after
 * a NAK that refuses a request, so the requester does not request the missing packets again.
 */
static bool nhca_nak_ends(struct nhca_sq *sq, u32 psn, u8 code)
{
	const struct nhca_swr *swr = nhca_sq_head(sq);

	return code != NHCA_NAK_PSN_SEQ && code <= NHCA_NAK_REM_OP && swr &&
	       nhca_swr_is_rd_atomic(swr) && nhca_psn_add(psn, -swr->psn) < swr->npsn;
}

static void nhca_ack_aeth(struct nhca_qp *qp, const struct nhca_hdr *h)
{
	u8 value = h->syndrome & NHCA_AETH_VALUE_MASK;
	u8 kind = h->syndrome & NHCA_AETH_KIND_MASK;

	if (kind != NHCA_AETH_ACK)
		trace_nhca_nak_received(&qp->who, h->psn, h->syndrome);
	switch (kind) {
	case NHCA_AETH_ACK:
		if (!nhca_ack_before(qp, nhca_psn_add(h->psn, 1)))
			nhca_ack_lost(qp);
		break;
	case NHCA_AETH_RNR:
		if (!nhca_ack_before(qp, h->psn))
			nhca_ack_lost(qp);
		else if (nhca_sq_head(&qp->sq) && !qp->sq.rnr_wait)
			nhca_ack_rnr(qp, value);
		break;
	case NHCA_AETH_NAK:
		if (!nhca_ack_before(qp, h->psn) && !nhca_nak_ends(&qp->sq, h->psn, value))
			nhca_ack_lost(qp);
		else if (nhca_sq_head(&qp->sq))
			nhca_ack_nak(qp, value);
		break;
	}
}

void nhca_swr_target(struct nhca_qp *qp, struct nhca_swr *swr, u32 off, struct nhca_iter *it)
{
	nhca_iter_sges(it, &qp->key_user, swr->wqe.sge, swr->wqe.num_sge, off, swr->length - off,
		       IB_ACCESS_LOCAL_WRITE);
}

/*
 * The pages into which a response has to be placed are not present, or a disk has not written the
 * data of a READ yet: treat the response as lost.  The requester requests the response again when
 * the wait has ended.
 */
static void nhca_ack_page_retry(struct nhca_qp *qp)
{
	nhca_count(&qp->who, NHCA_CNT_PAGE_RETRY);
	nhca_sq_go_back(qp, NHCA_CNT_PAGE_RETRY);
}

/*
 * Check that a response is the next one that the oldest request expects.  @atomic: the response is
 * an atomic result, not a READ response.
 * Return: the oldest request; NULL: the response is not the next one, and must be dropped.
 */
static struct nhca_swr *nhca_ack_expects(struct nhca_qp *qp, const struct nhca_hdr *h,
					 bool atomic)
{
	struct nhca_swr *swr;

	if (!nhca_ack_before(qp, h->psn)) {
		nhca_ack_lost(qp);
		return NULL;
	}
	swr = nhca_sq_head(&qp->sq);
	if (!swr || !nhca_swr_is_rd_atomic(swr) || nhca_swr_is_atomic(swr) != atomic ||
	    nhca_psn_add(swr->psn, swr->got) != h->psn) {
		nhca_count(&qp->who, NHCA_CNT_DUP_RESPONSE);
		return NULL;
	}
	return swr;
}

/* Copy the payload of a READ response.  Return: 0, or an error of the copy. */
static int nhca_ack_copy(struct nhca_qp *qp, struct nhca_swr *swr, u32 off, struct nhca_rx *rx)
{
	struct nhca_iter it __uninitialized;
	int err;

	nhca_swr_target(qp, swr, off, &it);
	nhca_iter_for(&it, qp->sq.fault, swr->op);
	nhca_live_enter();
	err = nhca_rx_copy(rx, &it);
	if (unlikely(it.backed))
		err = nhca_target_placed(qp, swr, off, rx->payload, err, &it);
	return nhca_live_exit_fault(err, &it, swr->length - off - rx->payload, qp->sq.fault);
}

/* Handle a READ response.  The READ response to an ATOMIC WRITE or FLUSH has no data. */
static void nhca_ack_read(struct nhca_qp *qp, struct nhca_rx *rx)
{
	const struct nhca_hdr *h = &rx->hdr;
	struct nhca_sq *sq = &qp->sq;
	struct nhca_swr *swr;
	bool chunk_end;
	int err = 0;
	u32 off;

	swr = nhca_ack_expects(qp, h, false);
	if (!swr)
		return;

	off = swr->got * qp->mtu;
	chunk_end = swr->got + 1 == swr->npsn || (swr->got + 1) % NHCA_READ_CHUNK == 0;
	/* a response with the wrong length or opcode does not belong to this request */
	if (rx->payload != (nhca_swr_is_read(swr) ? min(qp->mtu, swr->length - off) : 0) ||
	    !!(h->info->flags & NHCA_OPF_LAST) != chunk_end) {
		nhca_count(&qp->who, NHCA_CNT_DUP_RESPONSE);
		return;
	}

	if (rx->payload && swr->disk != NHCA_DISK_WAITS)
		err = nhca_ack_copy(qp, swr, off, rx);
	if (unlikely(swr->disk) && !err && swr->got + 1 == swr->npsn)
		err = nhca_target_sync(qp, swr);
	if (err == -EAGAIN) {
		nhca_ack_page_retry(qp);
		return;
	}
	if (err == -EIO) {
		nhca_sq_fail(qp, IB_WC_LOC_QP_OP_ERR);
		return;
	}
	if (err) {
		nhca_count(&qp->who, NHCA_CNT_LOCAL_PROT_ERR);
		nhca_sq_fail(qp, IB_WC_LOC_PROT_ERR);
		return;
	}

	swr->got++;
	/* a late response after a go-back: do not request it again */
	if (swr->sent < swr->got)
		swr->sent = swr->got;
	if (chunk_end && sq->rd_atomic)
		sq->rd_atomic--;
	nhca_sq_set_una(qp, nhca_psn_add(swr->psn, swr->got));
	if (swr->got == swr->npsn)
		nhca_ack_done(qp, swr);
}

u32 nhca_ack_middle(struct nhca_qp *qp, struct nhca_rx *rx)
{
	u32 psn = nhca_psn_add(rx->hdr.psn, 1);
	struct nhca_sq *sq = &qp->sq;
	struct nhca_swr *swr = nhca_sq_head(sq);
	struct nhca_iter it __uninitialized;
	s32 n;

	/* the previous packet may have completed the request, or put the QP in error */
	if (!nhca_sq_open(qp) || !swr || !nhca_swr_is_read(swr) ||
	    nhca_psn_add(swr->psn, swr->got) != psn || rx->payload != qp->mtu)
		return 0;
	/* number of packets that were requested, up to the packet before the chunk's last one */
	n = min(swr->npsn, roundup(swr->got + 1, NHCA_READ_CHUNK)) - 1 - swr->got;
	n = min(n, nhca_psn_diff(sq->nxt, psn));
	if (n <= 0)
		return 0;
	nhca_swr_target(qp, swr, swr->got * qp->mtu, &it);
	nhca_iter_for(&it, sq->fault, swr->op);
	nhca_live_enter();
	n = nhca_rx_copy_alike(rx, n, &it);
	if (unlikely(it.backed) && nhca_target_placed(qp, swr, swr->got * qp->mtu, n * qp->mtu, 0,
						      &it))
		n = 0;
	nhca_live_exit();
	if (!n)
		return 0;
	swr->got += n;
	swr->sent = max(swr->sent, swr->got);
	nhca_sq_set_una(qp, nhca_psn_add(swr->psn, swr->got));
	return n;
}

static void nhca_ack_atomic(struct nhca_qp *qp, struct nhca_rx *rx)
{
	struct nhca_sq *sq = &qp->sq;
	struct nhca_swr *swr;
	struct nhca_iter it __uninitialized;
	u64 orig = rx->hdr.orig;
	int err;

	swr = nhca_ack_expects(qp, &rx->hdr, true);
	if (!swr)
		return;

	nhca_swr_target(qp, swr, 0, &it);
	nhca_live_enter();
	err = nhca_live_exit_fault(nhca_iter_write(&it, &orig, sizeof(orig)), &it, 0, sq->fault);
	if (err == -EAGAIN) {
		nhca_ack_page_retry(qp);
		return;
	}
	if (err) {
		nhca_count(&qp->who, NHCA_CNT_LOCAL_PROT_ERR);
		nhca_sq_fail(qp, IB_WC_LOC_PROT_ERR);
		return;
	}
	if (sq->rd_atomic)
		sq->rd_atomic--;
	swr->got = 1;
	swr->sent = 1;
	nhca_sq_set_una(qp, nhca_psn_add(swr->psn, 1));
	nhca_ack_done(qp, swr);
}

/*
 * Set nhca_sq.kicked, so that nhca_sq_unlock() runs the requester, if there may be something to do:
 * a request is not completely sent or not fetched yet, a consumer waits for an ACK, or the QP is
 * not in RTS.
 */
static void nhca_ack_go_on(struct nhca_qp *qp)
{
	struct nhca_sq *sq = &qp->sq;

	if (sq->cur || sq->ackreq_pending || nhca_sq_more(qp) || READ_ONCE(qp->state) != IB_QPS_RTS)
		set_bit(0, &sq->kicked);
}

/* Return: true if @psn was sent or requested, and is unacknowledged; other PSNs are ignored. */
static bool nhca_ack_in_window(const struct nhca_sq *sq, u32 psn)
{
	return nhca_psn_diff(psn, sq->nxt) < 0 && nhca_psn_diff(psn, sq->una) >= 0;
}

bool nhca_ack_rx(struct nhca_qp *qp, struct nhca_rx *rx)
{
	const struct nhca_hdr *h = &rx->hdr;

	/* the previous packet may have put the QP in error */
	if (!nhca_sq_open(qp))
		return false;
	if (!nhca_ack_in_window(&qp->sq, h->psn)) {
		nhca_count(&qp->who, NHCA_CNT_DUP_RESPONSE);
		return false;
	}

	if (h->info->flags & NHCA_OPF_READ_RESP)
		nhca_ack_read(qp, rx);
	else if (h->info->flags & NHCA_OPF_ATOMIC_ACK_ETH)
		nhca_ack_atomic(qp, rx);
	else
		nhca_ack_aeth(qp, h);
	nhca_ack_go_on(qp);
	return true;
}

void nhca_ack_piggybacked(struct nhca_qp *qp, u32 psn)
{
	/* do not count an old ACK as a duplicate: the request that carries it may come twice */
	if (!nhca_sq_open(qp) || !nhca_ack_in_window(&qp->sq, psn))
		return;
	if (!nhca_ack_before(qp, nhca_psn_add(psn, 1)))
		nhca_ack_lost(qp);
	nhca_ack_go_on(qp);
}
