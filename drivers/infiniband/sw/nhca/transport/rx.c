// SPDX-License-Identifier: GPL-2.0
/*
 * From a decoded packet to the engine that it is for: the one place where a
 * packet's right to reach a QP is decided (IBTA 9.6.1, A17.9.3).
 */
#include "engine.h"

#define NHCA_MCAST_QPN	0xffffff

static bool nhca_service_fits(const struct nhca_qp *qp, u8 opcode)
{
	switch (qp->ibqp.qp_type) {
	case IB_QPT_RC:
		return (opcode & NHCA_SVC_MASK) == NHCA_SVC_RC;
	case IB_QPT_UC:
		return (opcode & NHCA_SVC_MASK) == NHCA_SVC_UC;
	case IB_QPT_UD:
	case IB_QPT_GSI:
		return (opcode & NHCA_SVC_MASK) == NHCA_SVC_UD;
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

/* Return: the counter of what is wrong, or NHCA_CNT_MAX. */
static enum nhca_counter nhca_rx_refusal(const struct nhca_qp *qp, const struct nhca_rx *rx)
{
	const struct nhca_hdr *h = &rx->hdr;

	if (!nhca_service_fits(qp, h->opcode))
		return NHCA_CNT_RX_BAD_OPCODE;
	if (!nhca_state_takes(qp, h->info->flags & NHCA_OPF_REQUEST))
		return NHCA_CNT_RX_BAD_STATE;
	if (!nhca_addr_fits(qp, rx))
		return NHCA_CNT_RX_BAD_ADDR;
	if (!nhca_pkey_fits(h->pkey))
		return NHCA_CNT_RX_BAD_PKEY;
	if (nhca_is_datagram(qp) && !nhca_qkey_fits(qp, h->qkey))
		return NHCA_CNT_RX_BAD_QKEY;
	return NHCA_CNT_MAX;
}

static void nhca_rx_deliver(struct nhca_qp *qp, struct nhca_rx *rx)
{
	enum nhca_counter why;

	rx->dev = qp->dev;
	nhca_count(rx->dev, NHCA_CNT_RCVD_PKTS);
	nhca_count_add(rx->dev, NHCA_CNT_RCVD_BYTES, rx->payload);

	why = nhca_rx_refusal(qp, rx);
	if (why != NHCA_CNT_MAX) {
		nhca_count(rx->dev, why);
		return;
	}

	if (nhca_is_datagram(qp))
		nhca_datagram_rx(qp, rx);
	else if (rx->hdr.info->flags & NHCA_OPF_REQUEST)
		nhca_respond_rx(qp, rx);
	else
		nhca_ack_rx(qp, rx);
}

static void nhca_rx_multicast(struct nhca_rx *rx)
{
	struct nhca_dev *dev = nhca_net_dev(rx->nn, rx->iif);

	if (!dev || (rx->hdr.opcode & NHCA_SVC_MASK) != NHCA_SVC_UD)
		return;
	if (!nhca_rx_icrc_ok(rx)) {
		nhca_count(dev, NHCA_CNT_RX_BAD_ICRC);
		return;
	}
	nhca_mcast_deliver(dev, &rx->daddr, rx, nhca_rx_deliver);
}

void nhca_transport_rx(struct nhca_rx *rx)
{
	struct nhca_dev *dev = NULL;
	struct nhca_qp *qp;

	if (rx->mcast) {
		if (rx->hdr.qpn == NHCA_MCAST_QPN)
			nhca_rx_multicast(rx);
		return;
	}

	if (rx->hdr.qpn == NHCA_GSI_QPN)
		dev = nhca_addr_find(rx->nn, &rx->daddr, rx->iif);
	qp = nhca_qp_find(dev, rx->hdr.qpn);
	if (!qp) {
		if (!dev)
			dev = nhca_addr_find(rx->nn, &rx->daddr, rx->iif);
		if (dev)
			nhca_count(dev, NHCA_CNT_RX_NO_QP);
		return;
	}

	/* before anything of the packet is believed */
	if (!nhca_rx_icrc_ok(rx)) {
		nhca_count(qp->dev, NHCA_CNT_RX_BAD_ICRC);
		return;
	}

	if (rx->hdr.opcode == NHCA_OPCODE_CNP) {
		nhca_count(qp->dev, NHCA_CNT_CNP_RCVD);
		return;
	}
	nhca_rx_deliver(qp, rx);
}
