// SPDX-License-Identifier: GPL-2.0
/*
 * Packets that wait for on-demand pages or for a disk.  If a packet needs a page that is not
 * present, or has to wait for a disk, this packet and all later ones of the QP are deferred.  When
 * the wait has ended, the responder executes the packets in the order of their arrival.  An RNR NAK
 * is no alternative: if memory is short, the page could be gone again when the peer retransmits.
 */
#include <linux/slab.h>

#include "../memory/memcg.h"
#include "engine.h"

/* maximum number of deferred packets of a QP; further packets are dropped */
#define NHCA_DEFER_MAX	256
/* maximum bytes of a QP's deferred packets: 256 packets of 4 KiB, with the allocator's overhead */
#define NHCA_DEFER_BYTES	(2U << 20)

/**
 * struct nhca_deferred - a deferred packet
 * @list:  in nhca_rq.deferred
 * @bytes: share of nhca_rq.deferred_bytes: memory of the packet's skb and of this structure
 * @rx:    the packet, in a separate skb
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
 * Charge @bytes of a deferred packet to the QP, its user and the device.
 * Return: 0; -ENOBUFS: the packet would exceed the limit of the QP; an error of nhca_pool_charge().
 */
static int nhca_defer_charge(struct nhca_qp *qp, u32 bytes)
{
	struct nhca_rq *rq = &qp->rq;
	int err;

	if (rq->deferred_bytes + bytes > NHCA_DEFER_BYTES)
		return -ENOBUFS;
	err = nhca_pool_charge(&qp->dev->users, qp->owner, NHCA_POOL_DEFERRED, bytes);
	if (err)
		return err;
	rq->deferred_bytes += bytes;
	return 0;
}

static void nhca_defer_uncharge(struct nhca_qp *qp, u32 bytes)
{
	qp->rq.deferred_bytes -= bytes;
	nhca_pool_uncharge(&qp->dev->users, qp->owner, NHCA_POOL_DEFERRED, bytes);
}

/*
 * Copy a packet, and charge the copy to the QP's user.  The first deferred packet may exceed the
 * limit of the memory cgroup, so that a QP whose cgroup is at its limit executes one packet at a
 * time.  Further packets may not exceed this limit.
 * Return: the copy; NULL if the packet has to be dropped.
 */
static struct nhca_deferred *nhca_defer_copy(struct nhca_qp *qp, const struct nhca_rx *rx)
{
	gfp_t gfp = (list_empty(&qp->rq.deferred) ? GFP_ATOMIC : GFP_NOWAIT) | __GFP_NOWARN;
	struct nhca_deferred *p;

	p = nhca_memcg_kmalloc(qp->memcg, sizeof(*p), gfp);
	if (!p)
		return NULL;
	if (nhca_rx_copy_deferred(rx, &p->rx, qp->memcg, gfp))
		goto err_free;
	p->bytes = sizeof(*p) + p->rx.skb->truesize;
	if (nhca_defer_charge(qp, p->bytes))
		goto err_skb;
	return p;

err_skb:
	kfree_skb(p->rx.skb);
err_free:
	kfree(p);
	return NULL;
}

void nhca_defer(struct nhca_qp *qp, struct nhca_rx *rx)
{
	struct nhca_rq *rq = &qp->rq;
	struct nhca_deferred *p = nhca_defer_first(rq);

	lockdep_assert_held(&rq->lock);
	/* the packet is the first deferred one, which was tried again: it keeps its place */
	if (p && rx == &p->rx)
		return;
	p = rq->ndeferred < NHCA_DEFER_MAX ? nhca_defer_copy(qp, rx) : NULL;
	if (!p) {
		nhca_count(&qp->who, NHCA_CNT_RX_NO_BUFFER);
		return;
	}
	list_add_tail(&p->list, &rq->deferred);
	rq->ndeferred++;
}

static void nhca_defer_free(struct nhca_qp *qp, struct nhca_deferred *p)
{
	struct nhca_rq *rq = &qp->rq;

	list_del(&p->list);
	rq->ndeferred--;
	nhca_defer_uncharge(qp, p->bytes);
	consume_skb(p->rx.skb);
	kfree(p);
}

static enum nhca_verdict nhca_request_execute(struct nhca_qp *qp, struct nhca_rx *rx)
{
	if (nhca_is_datagram(qp) || nhca_is_raw(qp)) {
		struct nhca_source src = nhca_source_packet(rx);

		return nhca_datagram_execute(qp, &src) ? NHCA_EXECUTED : NHCA_DEFERRED;
	}
	return nhca_respond_execute(qp, rx);
}

enum nhca_verdict nhca_request_rx(struct nhca_qp *qp, struct nhca_rx *rx)
{
	/* the previous packet may have put the QP in error */
	if (!nhca_rq_open(qp))
		return NHCA_DROPPED;
	if (likely(list_empty(&qp->rq.deferred)))
		return nhca_request_execute(qp, rx);
	nhca_defer(qp, rx);
	return NHCA_DEFERRED;
}

void nhca_defer_run(struct nhca_qp *qp)
{
	struct nhca_rq *rq = &qp->rq;
	struct nhca_deferred *p;

	while (nhca_rq_open(qp) && (p = nhca_defer_first(rq)) && !nhca_fault_waiting(rq->fault)) {
		if (nhca_request_execute(qp, &p->rx) != NHCA_DEFERRED)
			nhca_defer_free(qp, p);
	}
}

void nhca_defer_drop(struct nhca_qp *qp)
{
	struct nhca_rq *rq = &qp->rq;
	struct nhca_deferred *p;

	lockdep_assert_held(&rq->lock);
	while ((p = nhca_defer_first(rq)))
		nhca_defer_free(qp, p);
}
