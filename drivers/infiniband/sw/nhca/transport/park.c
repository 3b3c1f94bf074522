// SPDX-License-Identifier: GPL-2.0
/*
 * Packets that wait for on-demand pages.  The first one that meets a page that is not
 * there, and all that come behind it, are kept in their order until a worker has faulted
 * the page in; then they go on at once.  To have the peer try again (RNR NAK) would take
 * longer than memory that is under pressure keeps a page.
 */
#include <linux/slab.h>

#include "engine.h"

/* packets of a QP that may wait; those behind are lost, as if the receiver was overrun */
#define NHCA_PARK_MAX	256

/**
 * struct nhca_parked - a packet that waits
 * @list: in nhca_rq.parked
 * @rx:   as it was; holds a reference on its skb
 */
struct nhca_parked {
	struct list_head list;
	struct nhca_rx rx;
};

static struct nhca_parked *nhca_park_first(struct nhca_rq *rq)
{
	return list_first_entry_or_null(&rq->parked, struct nhca_parked, list);
}

void nhca_park(struct nhca_qp *qp, struct nhca_rx *rx)
{
	struct nhca_rq *rq = &qp->rq;
	struct nhca_parked *p = nhca_park_first(rq);

	/* it has tried again, and stays where it is */
	if (p && rx == &p->rx)
		return;
	p = rq->nparked < NHCA_PARK_MAX ? kmalloc(sizeof(*p), GFP_ATOMIC | __GFP_NOWARN) : NULL;
	if (!p) {
		nhca_count(&qp->who, NHCA_CNT_RX_NO_BUFFER);
		return;
	}
	p->rx = *rx;
	skb_get(rx->skb);
	list_add_tail(&p->list, &rq->parked);
	rq->nparked++;
}

static void nhca_park_free(struct nhca_rq *rq, struct nhca_parked *p)
{
	list_del(&p->list);
	rq->nparked--;
	consume_skb(p->rx.skb);
	kfree(p);
}

/* Return: false if it was parked. */
static bool nhca_request_take(struct nhca_qp *qp, struct nhca_rx *rx)
{
	return nhca_is_datagram(qp) || nhca_is_raw(qp) ? nhca_datagram_take(qp, rx) :
							 nhca_respond_take(qp, rx);
}

void nhca_request_rx(struct nhca_qp *qp, struct nhca_rx *rx)
{
	enum ib_qp_state state = READ_ONCE(qp->state);

	if (state != IB_QPS_RTR && state != IB_QPS_RTS && state != IB_QPS_SQD &&
	    state != IB_QPS_SQE)
		return;
	if (list_empty(&qp->rq.parked))
		nhca_request_take(qp, rx);
	else
		nhca_park(qp, rx);
}

void nhca_park_run(struct nhca_qp *qp)
{
	struct nhca_rq *rq = &qp->rq;
	struct nhca_parked *p;

	while ((p = nhca_park_first(rq)) && !nhca_fault_waiting(rq->fault)) {
		if (nhca_request_take(qp, &p->rx))
			nhca_park_free(rq, p);
	}
}

void nhca_park_drop(struct nhca_qp *qp)
{
	struct nhca_rq *rq = &qp->rq;
	struct nhca_parked *p;

	while ((p = nhca_park_first(rq)))
		nhca_park_free(rq, p);
}
