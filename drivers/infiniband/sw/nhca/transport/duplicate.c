// SPDX-License-Identifier: GPL-2.0
/* Duplicates: requests that the responder has executed before (IBTA 9.7.4.5). */
#include "engine.h"

/*
 * 9.7.4.5.3: prepare to send a READ response again, from the PSN of the duplicate.
 * Return: false if the duplicate does not match the READ that was executed.
 */
static bool nhca_replay_read(struct nhca_qp *qp, struct nhca_res *res,
			     const struct nhca_hdr *h)
{
	u32 skip = nhca_psn_add(h->psn, -res->psn);
	u32 npsn = nhca_psn_count(h->dmalen, qp->mtu);

	if (h->rkey != res->rkey || h->va != res->va + (u64)skip * qp->mtu ||
	    npsn > res->npsn - skip || h->dmalen > res->len - skip * qp->mtu)
		return false;
	res->from = skip;
	res->sent = skip;
	res->end = skip + npsn;
	res->stop = skip * qp->mtu + h->dmalen;
	return true;
}

/*
 * Find the responder resource of a READ, atomic, FLUSH or ATOMIC WRITE.
 * @index: set to the resource's index for nhca_res_at()
 * Return: the resource, or NULL.
 */
static struct nhca_res *nhca_res_find(struct nhca_rq *rq, const struct nhca_hdr *h, u32 *index)
{
	u8 op = h->opcode & NHCA_OP_MASK;
	struct nhca_res *res;
	u32 i, oldest;

	oldest = rq->res_head > rq->nres ? rq->res_head - rq->nres : 0;
	for (i = rq->res_head; i-- > oldest; ) {
		res = nhca_res_at(rq, i);
		if (res->opcode == op && nhca_psn_add(h->psn, -res->psn) < res->npsn) {
			*index = i;
			return res;
		}
	}
	return NULL;
}

bool nhca_res_exists(struct nhca_qp *qp, const struct nhca_hdr *h)
{
	u32 index;

	lockdep_assert_held(&qp->rq.lock);
	return nhca_res_find(&qp->rq, h, &index);
}

/*
 * Let the response of a duplicate READ, atomic, FLUSH or ATOMIC WRITE be sent again.  A requester
 * that repeats this request will also repeat all later ones, so the responses to the later ones are
 * no longer due.
 */
static void nhca_replay(struct nhca_qp *qp, const struct nhca_hdr *h)
{
	struct nhca_rq *rq = &qp->rq;
	struct nhca_res *res;
	u32 i;

	res = nhca_res_find(rq, h, &i);
	if (!res || (res->opcode == NHCA_OP_READ_REQUEST && !nhca_replay_read(qp, res, h)))
		return;
	nhca_res_done(res);
	res->busy = true;
	res->replay = true;
	rq->res_tail = min(rq->res_tail, i);
	while (++i < rq->res_head)
		nhca_res_done(nhca_res_at(rq, i));
}

/* 9.7.4.5: a duplicate is not executed; only the response to a READ reads the memory again */
void nhca_duplicate(struct nhca_qp *qp, const struct nhca_hdr *h)
{
	lockdep_assert_held(&qp->rq.lock);
	nhca_count(&qp->who, NHCA_CNT_DUP_REQUEST);
	if (h->info->flags & NHCA_OPF_RD_ATOMIC)
		nhca_replay(qp, h);
	else if (h->ackreq || (h->info->flags & NHCA_OPF_LAST))
		nhca_resp_ack_now(&qp->rq);
}
