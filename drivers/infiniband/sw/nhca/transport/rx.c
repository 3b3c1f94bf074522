// SPDX-License-Identifier: GPL-2.0
/*
 * From a decoded packet to the engine that it is for: the one place where a
 * packet's right to reach a QP is decided (IBTA 9.6.1, A17.9.3).
 *
 * A batch of packets for one QP costs one look-up, one lock and one answer: the lock
 * stays with the batch until a packet for somebody else comes, or the end.
 */
#include <net/flow.h>
#include <net/inet_ecn.h>

#include "../observe/inject.h"
#include "../observe/stub.h"
#include "../observe/trace.h"
#include "engine.h"

#define NHCA_MCAST_QPN	0xffffff

static bool nhca_service_fits(const struct nhca_qp *qp, const struct nhca_hdr *h)
{
	u8 service = h->opcode & NHCA_SVC_MASK;

	switch (qp->ibqp.qp_type) {
	case IB_QPT_RC:
		return service == NHCA_SVC_RC;
	case IB_QPT_UC:
		return service == NHCA_SVC_UC;
	case IB_QPT_UD:
	case IB_QPT_GSI:
		return service == NHCA_SVC_UD;
	case IB_QPT_XRC_INI:
		return service == NHCA_SVC_XRC && (h->info->flags & NHCA_OPF_RESPONSE);
	case IB_QPT_XRC_TGT:
		return service == NHCA_SVC_XRC && (h->info->flags & NHCA_OPF_REQUEST);
	default:
		return false;
	}
}

/* IBTA table 92 and 9.7.5: which QP state takes a packet of this direction */
static bool nhca_state_takes(const struct nhca_qp *qp, bool request)
{
	switch (READ_ONCE(qp->state)) {
	case IB_QPS_RTR:
		return request;
	case IB_QPS_RTS:
	case IB_QPS_SQD:
		return true;
	case IB_QPS_SQE:
		return request;
	default:
		return false;
	}
}

/* a connected QP hears only its peer, a datagram QP only what its device is called */
static bool nhca_addr_fits(const struct nhca_qp *qp, const struct nhca_rx *rx)
{
	const struct nhca_av *av;

	if (qp->dev->nn != rx->nn)
		return false;
	if (rx->mcast)
		return nhca_is_datagram(qp);
	if (nhca_is_datagram(qp))
		return nhca_addr_is(rx->nn, qp->dev, &rx->daddr);

	av = READ_ONCE(qp->av);
	return av && ipv6_addr_equal(&av->daddr, &rx->saddr) &&
	       ipv6_addr_equal(&av->saddr, &rx->daddr);
}

/* the only P_Key is the default one: any membership of partition 0x7fff (10.9.3) */
static bool nhca_pkey_fits(u16 pkey)
{
	return (pkey & 0x7fff) == (NHCA_DEFAULT_PKEY & 0x7fff);
}

static bool nhca_qkey_fits(const struct nhca_qp *qp, u32 qkey)
{
	if (qp->ibqp.qp_type == IB_QPT_GSI)
		return qkey == NHCA_GSI_QKEY;
	return qkey == READ_ONCE(qp->attr.qkey);
}

enum nhca_counter nhca_rx_refusal(const struct nhca_qp *qp, const struct nhca_rx *rx)
{
	const struct nhca_hdr *h = &rx->hdr;

	NHCA_STUB(nhca_rx_refusal, qp, rx);
	if (!nhca_service_fits(qp, h))
		return NHCA_CNT_RX_BAD_OPCODE;
	if (!nhca_addr_fits(qp, rx))
		return NHCA_CNT_RX_BAD_ADDR;
	if (!nhca_pkey_fits(h->pkey))
		return NHCA_CNT_RX_BAD_PKEY;
	if (nhca_is_datagram(qp) && !nhca_qkey_fits(qp, h->qkey))
		return NHCA_CNT_RX_BAD_QKEY;
	/* last: nhca_rx_deliver() takes it that all else is right */
	if (!nhca_state_takes(qp, h->info->flags & NHCA_OPF_REQUEST))
		return NHCA_CNT_RX_BAD_STATE;
	return NHCA_CNT_MAX;
}

bool nhca_rx_fits(const struct nhca_qp *qp, const struct nhca_rx *rx)
{
	return nhca_rx_refusal(qp, rx) == NHCA_CNT_MAX;
}

/* ---- the in-band notice ---- */

u8 nhca_notice(const struct nhca_qp *qp)
{
	u8 peer = READ_ONCE(qp->peer);
	u8 caps = NHCA_CAP_PRESENT;

	if (peer & NHCA_CAP_PRESENT)
		caps |= NHCA_CAP_CONFIRMED;
	if (nhca_insists_icrc())
		return caps;
	caps |= NHCA_CAP_NO_ICRC_OK;
	/* the peer has heard us, so that the bits come through both ways */
	if ((peer & NHCA_CAP_CONFIRMED) && (peer & NHCA_CAP_NO_ICRC_OK))
		caps |= NHCA_CAP_NO_ICRC;
	return caps;
}

/*
 * What the peer says holds from now on; written only when it is news.  Only for packets that have
 * been accepted: a stranger who knows addresses and numbers, but no PSN, must not be able to have
 * the peer sent what it does not take.
 */
static void nhca_notice_heard(struct nhca_qp *qp, const struct nhca_rx *rx)
{
	u8 caps = rx->hdr.caps;
	u8 old = READ_ONCE(qp->peer);
	u8 peer = 0;

	if ((caps & NHCA_CAP_PRESENT) && !(caps & NHCA_CAP_FOREIGN))
		peer = caps & (NHCA_CAP_PRESENT | NHCA_CAP_CONFIRMED | NHCA_CAP_NO_ICRC_OK);
	if (peer && (caps & NHCA_CAP_NO_ICRC) &&
	    ((old & NHCA_PEER_IS_HERE) || nhca_loop_found(qp, rx)))
		peer |= NHCA_PEER_IS_HERE;
	if (old != peer)
		WRITE_ONCE(qp->peer, peer);
}

/* ---- a batch and its lock ---- */

/* The answers of those packets that came since the lock was taken, then the lock. */
static void nhca_rx_release(struct nhca_rx *rx)
{
	struct nhca_qp *qp = rx->qp;
	spinlock_t *lock = rx->held;

	if (!lock)
		return;
	rx->held = NULL;
	/* what follows is owed to packets that the gate let in, and that were accepted */
	if (rx->marked) {
		rx->marked = false;
		nhca_resp_cnp(qp);
	}
	/* for sparse: taken in nhca_rx_hold() */
	__acquire(lock);
	if (lock == &qp->sq.lock) {
		nhca_sq_unlock(qp);
	} else {
		if (!nhca_is_datagram(qp))
			nhca_resp_run(qp);
		spin_unlock(lock);
		if (!rx->acks)
			return;
		rx->acks = false;
		spin_lock(&qp->sq.lock);
		/* in between it may have become another connection */
		if (likely(qp->gen == rx->gen))
			nhca_ack_riding(qp, rx->acked);
		nhca_sq_unlock(qp);
	}
}

/* @lock is one of @qp's, and is held until nhca_rx_release(). */
static void nhca_rx_hold(struct nhca_rx *rx, struct nhca_qp *qp, spinlock_t *lock)
{
	if (rx->held == lock)
		return;
	nhca_rx_release(rx);
	spin_lock(lock);
	rx->qp = qp;
	rx->held = lock;
	/* stays so as long as the lock is held */
	rx->gen = qp->gen;
	__release(lock);
}

/*
 * The gate of a half.  It takes the lock of that half, or finds it held, and looks under it whether
 * the QP still is in the generation in which the packet was found to be right, and in a state that
 * takes it.
 */
static bool nhca_rx_enter(struct nhca_rx *rx, struct nhca_qp *qp, bool request, u32 gen)
{
	nhca_rx_hold(rx, qp, request ? &qp->rq.lock : &qp->sq.lock);
	if (likely(rx->gen == gen && (request ? nhca_rq_open(qp) : nhca_sq_open(qp))))
		return true;
	nhca_rx_refused(qp->dev, &rx->hdr, NHCA_CNT_RX_BAD_STATE);
	return false;
}

/* @packets that differ in their PSN; @rx is the last of them. */
static void nhca_rx_count(const struct nhca_qp *qp, const struct nhca_rx *rx, u32 packets)
{
	nhca_count_add(&qp->who, NHCA_CNT_RCVD_PKTS, packets);
	nhca_count_add(&qp->who, NHCA_CNT_RCVD_BYTES, packets * rx->payload);
	trace_nhca_packet_received(&qp->who, &rx->hdr, nhca_psn_add(rx->hdr.psn, 1 - packets),
				   rx->hdr.src_qpn, packets, rx->payload);
}

/* May the packets behind this one be taken with it, if they are like it? */
static bool nhca_rx_has_more(const struct nhca_qp *qp, const struct nhca_rx *rx)
{
	return (rx->hdr.info->flags & NHCA_OPF_MIDDLE) && rx->alike.set && rx->alike.bare &&
	       qp->ibqp.qp_type == IB_QPT_RC && !nhca_inject_at(qp->dev, NHCA_AT_PACKETS);
}

/* A packet was accepted: what it says besides is the peer's word. */
static void nhca_rx_accepted(struct nhca_qp *qp, struct nhca_rx *rx)
{
	/* anybody can begin a message of UC */
	if (qp->ibqp.qp_type != IB_QPT_UC || qp->rq.unbroken)
		nhca_notice_heard(qp, rx);
	/* all packets of a batch have the same mark */
	if (unlikely(rx->ce)) {
		nhca_count(&qp->who, NHCA_CNT_RX_ECN_MARKED);
		rx->marked = true;
	}
}

/* Is the PSN of a request one that the peer may use now?  rq.lock held. */
static bool nhca_rx_is_near(const struct nhca_qp *qp, const struct nhca_rx *rx)
{
	return abs(nhca_psn_diff(rx->hdr.psn, qp->rq.psn)) <= NHCA_CWND_MAX;
}

/*
 * A request that was let in, and if it is from the middle of a message those behind it that
 * continue it.  They are as intact as it is where the checksum of the whole batch says so.
 */
static void nhca_rx_request(struct nhca_qp *qp, struct nhca_rx *rx)
{
	u32 more;

	/* those of a batch say all what the last one says; not of XRC, which has a QP each way */
	if ((rx->hdr.caps & NHCA_CAP_ACKS) && qp->ibqp.qp_type == IB_QPT_RC &&
	    nhca_rx_is_near(qp, rx) && nhca_rx_acks(rx, &rx->acked))
		rx->acks = true;
	if (nhca_request_rx(qp, rx) != NHCA_TAKEN)
		return;
	nhca_rx_accepted(qp, rx);
	if (nhca_rx_has_more(qp, rx)) {
		more = nhca_respond_middle(qp, rx);
		if (more)
			nhca_rx_count(qp, rx, more);
	}
}

/* The same for a response. */
static void nhca_rx_response(struct nhca_qp *qp, struct nhca_rx *rx)
{
	u32 more;

	if (!nhca_ack_rx(qp, rx))
		return;
	nhca_rx_accepted(qp, rx);
	if (nhca_rx_has_more(qp, rx)) {
		more = nhca_ack_middle(qp, rx);
		if (more)
			nhca_rx_count(qp, rx, more);
	}
}

/* Return: true: @qp is in the error state for having refused a request, and this is one. */
static bool nhca_rx_was_refused(const struct nhca_qp *qp, const struct nhca_rx *rx)
{
	return READ_ONCE(qp->state) == IB_QPS_ERR && READ_ONCE(qp->rq.fatal) &&
	       nhca_is_reliable(qp) && (rx->hdr.info->flags & NHCA_OPF_REQUEST);
}

static void nhca_rx_deliver(struct nhca_qp *qp, struct nhca_rx *rx)
{
	bool request = rx->hdr.info->flags & NHCA_OPF_REQUEST;
	enum nhca_counter why;
	u32 gen;

	rx->dev = qp->dev;

	/*
	 * Pairs with the releases in qp.c: what is looked at now is of this generation, or of a
	 * later one, which the gate sees.
	 */
	gen = smp_load_acquire(&qp->gen);
	why = nhca_rx_refusal(qp, rx);
	/* not before: what comes from another address, or namespace, is not this QP's */
	if (why == NHCA_CNT_MAX || why == NHCA_CNT_RX_BAD_STATE)
		nhca_rx_count(qp, rx, 1);
	if (why == NHCA_CNT_RX_BAD_STATE && nhca_rx_was_refused(qp, rx)) {
		nhca_rx_hold(rx, qp, &qp->rq.lock);
		if (rx->gen == gen)
			nhca_resp_refused(qp, rx);
		return;
	}
	if (why != NHCA_CNT_MAX) {
		nhca_rx_refused(qp->dev, &rx->hdr, why);
		return;
	}
	if (!nhca_rx_enter(rx, qp, request, gen))
		return;

	if (nhca_is_datagram(qp)) {
		if (rx->iif == LOOPBACK_IFINDEX && READ_ONCE(qp->heard) != rx->hdr.src_qpn)
			WRITE_ONCE(qp->heard, rx->hdr.src_qpn);
		nhca_request_rx(qp, rx);
		return;
	}
	rx->alike.passed = true;
	if (request)
		nhca_rx_request(qp, rx);
	else
		nhca_rx_response(qp, rx);
}

/*
 * Congestion notification (A17.9): the peer of a connected QP has had marked packets from it.  It
 * has no PSN that would show that it is the peer's; but it can only be true if packets are under
 * way that may be marked.
 */
static void nhca_rx_cnp(struct nhca_qp *qp, struct nhca_rx *rx)
{
	/* pairs with the releases in qp.c, as in nhca_rx_deliver() */
	u32 gen = smp_load_acquire(&qp->gen);

	if (nhca_is_datagram(qp) || !nhca_addr_fits(qp, rx))
		return;
	nhca_count(&qp->who, NHCA_CNT_CNP_RCVD);
	trace_nhca_packet_received(&qp->who, &rx->hdr, rx->hdr.psn, 0, 1, 0);
	if (!nhca_rx_enter(rx, qp, false, gen))
		return;
	if ((qp->av->tclass & INET_ECN_MASK) && qp->sq.una != qp->sq.nxt)
		nhca_sq_congested(qp);
}

static void nhca_rx_multicast(struct nhca_rx *rx)
{
	struct nhca_dev *dev = nhca_net_dev(rx->nn, rx->iif);

	if (!dev || (rx->hdr.opcode & NHCA_SVC_MASK) != NHCA_SVC_UD)
		return;
	if (!nhca_rx_intact(rx, false)) {
		nhca_rx_refused(dev, &rx->hdr, NHCA_CNT_RX_BAD_ICRC);
		return;
	}
	nhca_mcast_deliver(dev, &rx->daddr, rx, nhca_rx_deliver);
}

/* Return: the QP that the packet names, or NULL, which has been counted. */
static struct nhca_qp *nhca_rx_qp(struct nhca_rx *rx)
{
	struct nhca_dev *dev = NULL;
	struct nhca_qp *qp;

	if (rx->hdr.qpn == NHCA_GSI_QPN)
		dev = nhca_addr_find(rx->nn, &rx->daddr, rx->iif);
	else if (rx->qp && rx->qp->qpn == rx->hdr.qpn)
		/* as the packet before */
		return rx->qp;
	qp = nhca_qp_find(dev, rx->hdr.qpn);
	if (qp)
		return qp;
	if (!dev)
		dev = nhca_addr_find(rx->nn, &rx->daddr, rx->iif);
	if (dev)
		nhca_rx_refused(dev, &rx->hdr, NHCA_CNT_RX_NO_QP);
	return NULL;
}

void nhca_transport_rx(struct nhca_rx *rx)
{
	struct nhca_qp *qp;

	if (rx->mcast) {
		if (rx->hdr.qpn == NHCA_MCAST_QPN)
			nhca_rx_multicast(rx);
		return;
	}

	qp = nhca_rx_qp(rx);
	if (!qp)
		return;
	if (!nhca_rx_intact(rx, !nhca_is_datagram(qp))) {
		nhca_rx_refused(qp->dev, &rx->hdr, NHCA_CNT_RX_BAD_ICRC);
		return;
	}
	if (rx->hdr.opcode == NHCA_OPCODE_CNP) {
		nhca_rx_cnp(qp, rx);
		return;
	}
	nhca_rx_deliver(qp, rx);
}

void nhca_transport_again(struct nhca_rx *rx)
{
	struct nhca_qp *qp = rx->qp;

	/* what let that one in lets in this one: the lock that it took is still held */
	if (!rx->alike.passed || !rx->held) {
		nhca_transport_rx(rx);
		return;
	}
	if (!nhca_rx_intact(rx, !nhca_is_datagram(qp))) {
		nhca_rx_refused(qp->dev, &rx->hdr, NHCA_CNT_RX_BAD_ICRC);
		return;
	}
	nhca_rx_count(qp, rx, 1);
	if (rx->hdr.info->flags & NHCA_OPF_REQUEST)
		nhca_rx_request(qp, rx);
	else
		nhca_rx_response(qp, rx);
}

void nhca_transport_rx_end(struct nhca_rx *rx)
{
	nhca_rx_release(rx);
}
