// SPDX-License-Identifier: GPL-2.0
/*
 * Checks whether a decoded packet may reach its QP (IBTA 9.6.1, A17.9.3), and gives the packet to
 * the requester or responder of the QP.
 *
 * A batch of packets for one QP costs one lookup, one lock and one ACK: the lock stays held until a
 * packet for another QP or half comes, or the batch ends.
 */
#include <net/flow.h>
#include <net/inet_ecn.h>

#include "../observe/inject.h"
#include "../observe/stub.h"
#include "../observe/trace.h"
#include "engine.h"
#include "rx.h"

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

/*
 * Return: true if the state of the QP accepts a request, or if @request is false, a response (IBTA
 * table 92, 9.7.5).
 */
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

/*
 * Return: true if the addresses of a packet are right.  A connected QP accepts packets only from
 * the address of its peer to its own address; a datagram QP only packets to an address of its
 * device, or to a multicast group.  For link-local addresses see nhca_ip_link().
 */
static bool nhca_addr_fits(const struct nhca_qp *qp, const struct nhca_ip *ip)
{
	const struct nhca_av *av;

	if (qp->dev->nn != ip->nn)
		return false;
	if (ip->mcast)
		return nhca_is_datagram(qp);
	if (nhca_is_datagram(qp))
		return nhca_addr_is(qp->dev, ip);

	av = READ_ONCE(qp->av);
	return av && ipv6_addr_equal(&av->daddr, &ip->saddr) &&
	       ipv6_addr_equal(&av->saddr, &ip->daddr) && nhca_ip_link(ip, av->ifindex);
}

/* The only P_Key is the default one: full or limited member of partition 0x7fff (10.9.3). */
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

enum nhca_counter nhca_rx_refusal(const struct nhca_qp *qp, const struct nhca_hdr *h,
				  const struct nhca_ip *ip)
{
	NHCA_STUB(nhca_rx_refusal, qp, h, ip);
	if (!nhca_service_fits(qp, h))
		return NHCA_CNT_RX_BAD_OPCODE;
	if (!nhca_addr_fits(qp, ip))
		return NHCA_CNT_RX_BAD_ADDR;
	if (!nhca_pkey_fits(h->pkey))
		return NHCA_CNT_RX_BAD_PKEY;
	if (nhca_is_datagram(qp) && !nhca_qkey_fits(qp, h->qkey))
		return NHCA_CNT_RX_BAD_QKEY;
	/*
	 * this check is the last: from its result nhca_rx_deliver() concludes that all other checks
	 * have passed
	 */
	if (!nhca_state_takes(qp, h->info->flags & NHCA_OPF_REQUEST))
		return NHCA_CNT_RX_BAD_STATE;
	return NHCA_CNT_MAX;
}

/* ---- capability bits ---- */

u8 nhca_caps(const struct nhca_qp *qp)
{
	u8 peer = READ_ONCE(qp->peer);
	u8 caps = NHCA_CAP_PRESENT;

	if (peer & NHCA_CAP_PRESENT)
		caps |= NHCA_CAP_CONFIRMED;
	if (nhca_insists_icrc())
		return caps;
	caps |= NHCA_CAP_NO_ICRC_OK;
	/* the peer has received the bits of this end, so the bits pass in both directions */
	if ((peer & NHCA_CAP_CONFIRMED) && (peer & NHCA_CAP_NO_ICRC_OK))
		caps |= NHCA_CAP_NO_ICRC;
	return caps;
}

/*
 * Remember the capability bits of the peer, and whether the peer is in this kernel.  The caller has
 * accepted the packet: a host that knows addresses and QP numbers, but no PSN, must not be able to
 * change how this end sends packets to the peer.
 */
static void nhca_caps_learn(struct nhca_qp *qp, const struct nhca_rx *rx)
{
	u8 caps = rx->hdr.caps;
	u8 old = READ_ONCE(qp->peer);
	u8 peer = 0;

	if ((caps & NHCA_CAP_PRESENT) && !(caps & NHCA_CAP_FOREIGN))
		peer = caps & (NHCA_CAP_PRESENT | NHCA_CAP_CONFIRMED | NHCA_CAP_NO_ICRC_OK);
	if (peer && (caps & NHCA_CAP_NO_ICRC) &&
	    (((old & NHCA_PEER_SAME_HOST) && !nhca_loop_expired(qp)) || nhca_loop_found(qp, rx)))
		peer |= NHCA_PEER_SAME_HOST;
	if (old != peer)
		WRITE_ONCE(qp->peer, peer);
}

/* ---- a batch and its lock ---- */

/*
 * Return: budget of the next pass of a requester or responder: the rest of the batch's budget, but
 * at most NHCA_BUDGET, and at least an eighth of it, so that a short response need not wait for
 * nhca_piggyback.rest.
 */
static int nhca_rx_left(const struct nhca_batch *b)
{
	return clamp(b->budget - b->spent, NHCA_BUDGET / 8, NHCA_BUDGET);
}

/*
 * Release the lock.  Before, send a CNP and the responses that are due, or run the requester.
 * After rq.lock is released, handle a piggybacked ACK with sq.lock held.
 */
static void nhca_rx_unlock(struct nhca_batch *b)
{
	struct nhca_qp *qp = b->qp;
	spinlock_t *lock = b->held;

	if (!lock)
		return;
	b->held = NULL;
	/* only accepted packets set b->marked, so on RC and XRC a wrong PSN causes no CNP */
	if (b->marked) {
		b->marked = false;
		nhca_resp_cnp(qp);
	}
	/* for sparse: nhca_rx_lock() has taken the lock */
	__acquire(lock);
	if (lock == &qp->sq.lock) {
		b->spent += nhca_sq_unlock_budget(qp, nhca_rx_left(b));
	} else {
		if (!nhca_is_datagram(qp))
			b->spent += nhca_resp_run_budget(qp, nhca_rx_left(b));
		spin_unlock(lock);
		if (!b->acks)
			return;
		b->acks = false;
		spin_lock(&qp->sq.lock);
		/* while neither lock was held, the QP may have got another connection */
		if (likely(qp->gen == b->gen))
			nhca_ack_piggybacked(qp, b->acked);
		b->spent += nhca_sq_unlock_budget(qp, nhca_rx_left(b));
	}
}

/* Take @lock, which is one of @qp's, and hold it until nhca_rx_unlock(). */
static void nhca_rx_lock(struct nhca_batch *b, struct nhca_qp *qp, spinlock_t *lock)
{
	if (b->held == lock)
		return;
	nhca_rx_unlock(b);
	spin_lock(lock);
	b->qp = qp;
	b->held = lock;
	/* the generation does not change while the lock is held */
	b->gen = qp->gen;
	__release(lock);
}

/*
 * The gate of a half: take the lock of that half, unless the batch holds it already.  Then check
 * that the state of the QP accepts the packet, and that the generation is still @gen, in which the
 * packet was checked.
 * Return: true if the packet may pass.
 */
static bool nhca_rx_enter(struct nhca_batch *b, struct nhca_qp *qp, bool request, u32 gen)
{
	nhca_rx_lock(b, qp, request ? &qp->rq.lock : &qp->sq.lock);
	if (likely(b->gen == gen && (request ? nhca_rq_open(qp) : nhca_sq_open(qp))))
		return true;
	nhca_rx_refused(qp->dev, &b->rx.hdr, NHCA_CNT_RX_BAD_STATE);
	return false;
}

/* Count @packets that differ only in PSN and AckReq; @rx is the last of them. */
static void nhca_rx_count(const struct nhca_qp *qp, const struct nhca_rx *rx, u32 packets)
{
	nhca_count_add(&qp->who, NHCA_CNT_RCVD_PKTS, packets);
	nhca_count_add(&qp->who, NHCA_CNT_RCVD_BYTES, packets * rx->payload);
	if (unlikely(rx->ip.mcast))
		nhca_count_add(&qp->who, NHCA_CNT_RCVD_MCAST_PKTS, packets);
	trace_nhca_packet_received(&qp->who, &rx->hdr, nhca_psn_add(rx->hdr.psn, 1 - packets),
				   rx->hdr.src_qpn, packets, rx->payload);
}

/* Return: true if packets of the batch that continue this one may be handled in one step. */
static bool nhca_rx_has_more(const struct nhca_qp *qp, const struct nhca_rx *rx)
{
	return (rx->hdr.info->flags & NHCA_OPF_MIDDLE) && rx->alike.set && rx->alike.no_icrc &&
	       qp->ibqp.qp_type == IB_QPT_RC && !nhca_inject_at(qp->dev, NHCA_AT_PACKETS);
}

/* A packet was accepted, so use its capability bits and its ECN mark. */
static void nhca_rx_accepted(struct nhca_qp *qp, struct nhca_batch *b)
{
	/* on UC any PSN may begin a message: only an unbroken sequence proves who the sender is */
	if (qp->ibqp.qp_type != IB_QPT_UC || qp->rq.unbroken)
		nhca_caps_learn(qp, &b->rx);
	/* GRO puts only packets with the same ECN mark into a batch: ce is valid for all of them */
	if (unlikely(b->rx.ce)) {
		nhca_count(&qp->who, NHCA_CNT_RX_ECN_MARKED);
		b->marked = true;
	}
}

/*
 * Return: true if the PSN of a request is at most NHCA_CWND_MAX from the expected one, as that of
 * each packet that an nhca peer sends.  rq.lock held.
 */
static bool nhca_rx_in_window(const struct nhca_qp *qp, const struct nhca_rx *rx)
{
	lockdep_assert_held(&qp->rq.lock);
	return abs(nhca_psn_diff(rx->hdr.psn, qp->rq.psn)) <= NHCA_CWND_MAX;
}

/*
 * Execute a request that has passed the gate.  If the packet is from the middle of a message, also
 * execute the packets of the batch that continue the message: the UDP checksum of the batch covers
 * all of these packets.
 */
static void nhca_rx_request(struct nhca_qp *qp, struct nhca_batch *b)
{
	struct nhca_rx *rx = &b->rx;
	u32 more;

	/* the last ACK of a batch covers the earlier ones; requests of XRC carry no ACKs */
	if ((rx->hdr.caps & NHCA_CAP_ACKS) && qp->ibqp.qp_type == IB_QPT_RC &&
	    nhca_rx_in_window(qp, rx) && nhca_rx_acks(rx, &b->acked))
		b->acks = true;
	if (nhca_request_rx(qp, rx) != NHCA_EXECUTED)
		return;
	nhca_rx_accepted(qp, b);
	if (nhca_rx_has_more(qp, rx)) {
		more = nhca_respond_middle(qp, rx);
		if (more)
			nhca_rx_count(qp, rx, more);
	}
}

/* Like nhca_rx_request(), for a response. */
static void nhca_rx_response(struct nhca_qp *qp, struct nhca_batch *b)
{
	struct nhca_rx *rx = &b->rx;
	u32 more;

	if (!nhca_ack_rx(qp, rx))
		return;
	nhca_rx_accepted(qp, b);
	if (nhca_rx_has_more(qp, rx)) {
		more = nhca_ack_middle(qp, rx);
		if (more)
			nhca_rx_count(qp, rx, more);
	}
}

/* Return: true if @qp went to error because it refused a request, and the packet is a request. */
static bool nhca_rx_was_refused(const struct nhca_qp *qp, const struct nhca_rx *rx)
{
	return READ_ONCE(qp->state) == IB_QPS_ERR && READ_ONCE(qp->rq.fatal) &&
	       nhca_is_reliable(qp) && (rx->hdr.info->flags & NHCA_OPF_REQUEST);
}

static void nhca_rx_deliver(struct nhca_qp *qp, struct nhca_batch *b)
{
	struct nhca_rx *rx = &b->rx;
	bool request = rx->hdr.info->flags & NHCA_OPF_REQUEST;
	enum nhca_counter why;
	u32 gen;

	/*
	 * Pairs with smp_store_release() in nhca_qp_end() and nhca_qp_set_attr().  The checks read
	 * values of this generation or of a later one; in the second case nhca_rx_enter() refuses
	 * the packet.
	 */
	gen = smp_load_acquire(&qp->gen);
	why = nhca_rx_refusal(qp, &rx->hdr, &rx->ip);
	/* count a packet for this QP only if all checks before that of the state have passed */
	if (why == NHCA_CNT_MAX || why == NHCA_CNT_RX_BAD_STATE)
		nhca_rx_count(qp, rx, 1);
	if (why == NHCA_CNT_RX_BAD_STATE && nhca_rx_was_refused(qp, rx)) {
		nhca_rx_lock(b, qp, &qp->rq.lock);
		if (b->gen == gen)
			nhca_resp_refused(qp, rx);
		return;
	}
	if (why != NHCA_CNT_MAX) {
		nhca_rx_refused(qp->dev, &rx->hdr, why);
		return;
	}
	if (!nhca_rx_enter(b, qp, request, gen))
		return;

	if (nhca_is_datagram(qp)) {
		/* not rx->ip.iif, which is lo also for a packet that passed through a VRF */
		if (rx->skb->skb_iif == LOOPBACK_IFINDEX)
			nhca_loop_learn(qp, rx);
		nhca_request_rx(qp, rx);
		return;
	}
	b->passed = true;
	if (request)
		nhca_rx_request(qp, b);
	else
		nhca_rx_response(qp, b);
}

/*
 * Congestion notification (A17.9): the peer of a connected QP received packets with an ECN mark.  A
 * CNP has no PSN, so a forged one cannot be detected.  A CNP reduces the window only while packets
 * that routers may mark are in flight.
 */
static void nhca_rx_cnp(struct nhca_qp *qp, struct nhca_batch *b)
{
	/* pairs with smp_store_release() as in nhca_rx_deliver() */
	u32 gen = smp_load_acquire(&qp->gen);
	struct nhca_rx *rx = &b->rx;

	if (nhca_is_datagram(qp) || !nhca_addr_fits(qp, &rx->ip))
		return;
	nhca_count(&qp->who, NHCA_CNT_CNP_RCVD);
	trace_nhca_packet_received(&qp->who, &rx->hdr, rx->hdr.psn, 0, 1, 0);
	if (!nhca_rx_enter(b, qp, false, gen))
		return;
	if ((qp->av->tclass & INET_ECN_MASK) && qp->sq.una != qp->sq.nxt)
		nhca_sq_congested(qp);
}

static void nhca_rx_multicast(struct nhca_batch *b)
{
	struct nhca_rx *rx = &b->rx;
	struct nhca_dev *dev = nhca_net_dev(rx->ip.nn, rx->ip.iif);

	if (!dev || (rx->hdr.opcode & NHCA_SVC_MASK) != NHCA_SVC_UD)
		return;
	if (!nhca_rx_intact(rx, false)) {
		nhca_rx_refused(dev, &rx->hdr, NHCA_CNT_RX_BAD_ICRC);
		return;
	}
	b->spent += nhca_mcast_deliver(dev, &rx->ip.daddr, b, nhca_rx_deliver);
}

/* Return: the QP that the packet names; NULL if there is none, which this function counts. */
static struct nhca_qp *nhca_rx_qp(const struct nhca_batch *b)
{
	const struct nhca_rx *rx = &b->rx;
	struct nhca_dev *dev = NULL;
	struct nhca_qp *qp;

	if (rx->hdr.qpn == NHCA_GSI_QPN)
		dev = nhca_addr_find(rx->ip.nn, &rx->ip.daddr, rx->ip.iif);
	else if (b->qp && b->qp->qpn == rx->hdr.qpn)
		/* the packet names the QP of the previous packet */
		return b->qp;
	qp = nhca_qp_find(dev, rx->hdr.qpn);
	/* a packet of another namespace must not even change the counters of a QP */
	if (qp && likely(qp->dev->nn == rx->ip.nn))
		return qp;
	if (!dev)
		dev = nhca_addr_find(rx->ip.nn, &rx->ip.daddr, rx->ip.iif);
	if (dev)
		nhca_rx_refused(dev, &rx->hdr, NHCA_CNT_RX_NO_QP);
	return NULL;
}

void nhca_transport_rx(struct nhca_batch *b)
{
	struct nhca_rx *rx = &b->rx;
	struct nhca_qp *qp;

	b->passed = false;
	if (rx->ip.mcast) {
		if (rx->hdr.qpn == NHCA_MCAST_QPN)
			nhca_rx_multicast(b);
		return;
	}

	qp = nhca_rx_qp(b);
	if (!qp)
		return;
	if (!nhca_rx_intact(rx, !nhca_is_datagram(qp))) {
		nhca_rx_refused(qp->dev, &rx->hdr, NHCA_CNT_RX_BAD_ICRC);
		return;
	}
	if (rx->hdr.opcode == NHCA_OPCODE_CNP) {
		nhca_rx_cnp(qp, b);
		return;
	}
	nhca_rx_deliver(qp, b);
}

void nhca_transport_again(struct nhca_batch *b)
{
	struct nhca_rx *rx = &b->rx;
	struct nhca_qp *qp = b->qp;

	/* the checks of the previous packet are valid for this packet while the lock is held */
	if (!b->passed || !b->held) {
		nhca_transport_rx(b);
		return;
	}
	if (!nhca_rx_intact(rx, !nhca_is_datagram(qp))) {
		nhca_rx_refused(qp->dev, &rx->hdr, NHCA_CNT_RX_BAD_ICRC);
		return;
	}
	nhca_rx_count(qp, rx, 1);
	if (rx->hdr.info->flags & NHCA_OPF_REQUEST)
		nhca_rx_request(qp, b);
	else
		nhca_rx_response(qp, b);
}

void nhca_transport_rx_end(struct nhca_batch *b)
{
	nhca_rx_unlock(b);
}
