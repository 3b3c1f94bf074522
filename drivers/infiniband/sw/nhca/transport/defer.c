// SPDX-License-Identifier: GPL-2.0
/*
 * Packets that wait for on-demand pages.  If a packet needs a page that is not present, this packet
 * and all later ones are deferred in their order.  A worker faults the page in, and then the
 * responder executes them.  With an RNR NAK instead, the page could be gone again when the peer
 * retransmits, if memory is short.
 */
#include <linux/slab.h>

#include "../memory/memcg.h"
#include "engine.h"

/* deferred packets of a QP, at most; further ones are dropped, as if the receiver was overrun */
#define NHCA_DEFER_MAX	256
/* bytes of memory that they may hold: the largest window, with the buffers that drivers use */
#define NHCA_DEFER_BYTES	(2U << 20)

/**
 * struct nhca_deferred - a deferred packet
 * @list:  in nhca_rq.deferred
 * @bytes: share of nhca_rq.deferred_bytes; the first deferred packet of a batch has all of the
 *           batch
 * @rx:    copy of the decoded packet; holds a reference to its skb
 */
struct nhca_deferred {
	struct list_head list;
	u32 bytes;
	struct nhca_rx rx;
};

static struct nhca_deferred *nhca_defer_first(struct nhca_rq *rq)
{
	return list_first_entry_or_null(&rq->deferred, struct nhca_deferred, list);
}

/*
 * Return: bytes of memory that a packet holds, 0 if the packet deferred before it holds the same
 * skb.
 */
static u32 nhca_defer_bytes(const struct nhca_rq *rq, const struct nhca_rx *rx)
{
	if (!list_empty(&rq->deferred) &&
	    list_last_entry(&rq->deferred, struct nhca_deferred, list)->rx.skb == rx->skb)
		return 0;
	return rx->skb->truesize;
}

void nhca_defer(struct nhca_qp *qp, struct nhca_rx *rx)
{
	struct nhca_rq *rq = &qp->rq;
	struct nhca_deferred *p = nhca_defer_first(rq);
	u32 bytes;

	/* it was tried again, and keeps its place */
	if (p && rx == &p->rx)
		return;
	bytes = nhca_defer_bytes(rq, rx);
	p = NULL;
	if (rq->ndeferred < NHCA_DEFER_MAX && rq->deferred_bytes + bytes <= NHCA_DEFER_BYTES &&
	    !nhca_pool_take(&qp->dev->users, qp->owner, NHCA_POOL_DEFERRED, bytes)) {
		p = nhca_memcg_kmalloc(qp->memcg, sizeof(*p), GFP_ATOMIC | __GFP_NOWARN);
		if (!p)
			nhca_pool_give(&qp->dev->users, qp->owner, NHCA_POOL_DEFERRED, bytes);
	}
	if (!p) {
		nhca_count(&qp->who, NHCA_CNT_RX_NO_BUFFER);
		return;
	}
	p->rx = *rx;
	p->bytes = bytes;
	skb_get(rx->skb);
	list_add_tail(&p->list, &rq->deferred);
	rq->ndeferred++;
	rq->deferred_bytes += bytes;
}

static void nhca_defer_free(struct nhca_qp *qp, struct nhca_deferred *p)
{
	struct nhca_rq *rq = &qp->rq;

	list_del(&p->list);
	rq->ndeferred--;
	rq->deferred_bytes -= p->bytes;
	nhca_pool_give(&qp->dev->users, qp->owner, NHCA_POOL_DEFERRED, p->bytes);
	consume_skb(p->rx.skb);
	kfree(p);
}

static enum nhca_verdict nhca_request_take(struct nhca_qp *qp, struct nhca_rx *rx)
{
	if (nhca_is_datagram(qp) || nhca_is_raw(qp))
		return nhca_datagram_take(qp, rx) ? NHCA_TAKEN : NHCA_PARKED;
	return nhca_respond_take(qp, rx);
}

enum nhca_verdict nhca_request_rx(struct nhca_qp *qp, struct nhca_rx *rx)
{
	/* the packet before may have put the QP in error */
	if (!nhca_rq_open(qp))
		return NHCA_HELD;
	if (likely(list_empty(&qp->rq.deferred)))
		return nhca_request_take(qp, rx);
	nhca_defer(qp, rx);
	return NHCA_PARKED;
}

void nhca_defer_run(struct nhca_qp *qp)
{
	struct nhca_rq *rq = &qp->rq;
	struct nhca_deferred *p;

	while (nhca_rq_open(qp) && (p = nhca_defer_first(rq)) && !nhca_fault_waiting(rq->fault)) {
		if (nhca_request_take(qp, &p->rx) != NHCA_PARKED)
			nhca_defer_free(qp, p);
	}
}

void nhca_defer_drop(struct nhca_qp *qp)
{
	struct nhca_rq *rq = &qp->rq;
	struct nhca_deferred *p;

	while ((p = nhca_defer_first(rq)))
		nhca_defer_free(qp, p);
}
