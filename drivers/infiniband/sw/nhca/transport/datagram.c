// SPDX-License-Identifier: GPL-2.0
/*
 * UD and GSI: each message is one packet, addressed by an address handle (IBTA 9.8.3).  Frames for
 * raw packet QPs are received in the same way.
 */
#include <linux/udp.h>
#include <net/checksum.h>

#include "../wire/grh.h"
#include "engine.h"

/* a remote Q_Key in which this bit is set stands for the Q_Key of the sending QP (10.2.5) */
#define NHCA_QKEY_OWN	0x80000000

int nhca_datagram_send(struct nhca_qp *qp, struct nhca_swr *swr)
{
	const struct nhca_send_wqe *wqe = &swr->wqe;
	bool imm = wqe->opcode == NHCA_WR_SEND_WITH_IMM;
	struct nhca_hdr h = {
		.opcode = NHCA_SVC_UD | (imm ? NHCA_OP_SEND_ONLY_IMM : NHCA_OP_SEND_ONLY),
		.migreq = true,
		.solicited = wqe->flags & NHCA_SEND_SOLICITED,
		.pkey = NHCA_DEFAULT_PKEY,
		.qpn = wqe->ud.remote_qpn & NHCA_QPN_MASK,
		.psn = swr->psn,
		.src_qpn = qp->qpn,
		.imm = (__force __be32)wqe->ex.imm_data,
	};
	struct nhca_iter it __uninitialized;
	struct nhca_tx tx __uninitialized;
	struct nhca_av *av;
	int err;

	lockdep_assert_held(&qp->sq.lock);
	av = xa_load(&qp->dev->ah_ids, wqe->ud.ah_id);
	if (!av || av->pd != nhca_qp_pd(qp))
		return -EINVAL;

	if (wqe->ud.remote_qkey & NHCA_QKEY_OWN)
		h.qkey = qp->attr.qkey;
	else
		h.qkey = wqe->ud.remote_qkey;

	if (nhca_loop_datagram(qp, swr, av, &h))
		return 0;
	nhca_qp_tx(qp, &tx, &h, swr->length);
	if (swr->length) {
		nhca_swr_source(qp, swr, 0, &it);
		tx.it = &it;
	}
	tx.av = av;
	tx.sport = nhca_udp_sport(av->flow_label, qp->qpn, h.qpn);
	tx.fault = qp->sq.fault;
	err = nhca_xmit(&tx);
	if (!err)
		nhca_pace_sent(qp, swr->length);
	return err;
}

/*
 * Write the GRH: the IP header that the datagram had on the wire. The header of a batch has the
 * length of the whole batch, and the identification of its first packet.
 */
static void nhca_datagram_grh(const struct nhca_source *src, u8 *grh)
{
	__be16 udp_len = htons(sizeof(struct udphdr) + src->hdr->info->hdr_len +
			       ALIGN(src->len, 4) + NHCA_ICRC_LEN);

	if (src->ip->v4) {
		struct iphdr iph = *(const struct iphdr *)src->ip->hdr;
		__be16 len = htons(sizeof(iph) + ntohs(udp_len));
		__be16 id = htons(ntohs(iph.id) + src->ip->id);

		csum_replace2(&iph.check, iph.tot_len, len);
		csum_replace2(&iph.check, iph.id, id);
		iph.tot_len = len;
		iph.id = id;
		nhca_grh_fill4(grh, &iph);
	} else {
		struct ipv6hdr ip6h = *(const struct ipv6hdr *)src->ip->hdr;

		ip6h.payload_len = udp_len;
		nhca_grh_fill6(grh, &ip6h);
	}
}

/*
 * Write GRH and payload to the buffers of rq.rwr.
 * @grh_len: NHCA_GRH_LEN, or 0 for a frame, which has no GRH
 */
static int nhca_datagram_place(struct nhca_qp *qp, struct nhca_source *src, u32 grh_len)
{
	struct nhca_rwr *rwr = qp->rq.rwr;
	struct nhca_iter it __uninitialized;
	u8 grh[NHCA_GRH_LEN];
	int err = 0;

	if (grh_len)
		nhca_datagram_grh(src, grh);
	nhca_iter_sges(&it, &qp->rq.key_user, rwr->sge, rwr->num_sge, 0, grh_len + src->len,
		       IB_ACCESS_LOCAL_WRITE);
	nhca_live_enter();
	if (grh_len)
		err = nhca_iter_write(&it, grh, grh_len);
	if (!err)
		err = nhca_source_copy(src, &it);
	return nhca_live_exit_fault(err, &it, 0, qp->rq.fault);
}

bool nhca_datagram_execute(struct nhca_qp *qp, struct nhca_source *src)
{
	u32 grh_len = nhca_is_raw(qp) ? 0 : NHCA_GRH_LEN;
	const struct nhca_hdr *h = src->hdr;
	struct nhca_cqe cqe = {
		.status = IB_WC_SUCCESS,
		.opcode = IB_WC_RECV,
		.byte_len = grh_len + src->len,
		.vlan_id = NHCA_VLAN_NONE,
	};

	lockdep_assert_held(&qp->rq.lock);
	if (grh_len) {
		cqe.flags = NHCA_WC_GRH;
		cqe.src_qp = h->src_qpn;
		cqe.vlan_id = nhca_ip_vlan(qp->dev, src->ip);
		cqe.sl = src->ip->v4 ? NHCA_SL_IPV4 : NHCA_SL_IPV6;
		cqe.network_hdr_type = src->ip->v4 ? RDMA_NETWORK_IPV4 : RDMA_NETWORK_IPV6;
	}

	switch (nhca_rq_fetch(qp)) {
	case 0:
		break;
	case -ENOENT:
		nhca_count(&qp->who, NHCA_CNT_RX_NO_BUFFER);
		return true;
	case -EINVAL:
		cqe.status = IB_WC_LOC_QP_OP_ERR;
		goto fail;
	default:
		nhca_count(&qp->who, NHCA_CNT_BAD_RING);
		nhca_qp_set_error(qp, IB_EVENT_QP_FATAL);
		return true;
	}

	/*
	 * Drop a datagram that does not fit; the receive request serves the next datagram.  If the
	 * QP went to error instead, any host that knows the Q_Key could stop the QP.
	 */
	if (cqe.byte_len > qp->rq.rwr->length) {
		nhca_count(&qp->who, NHCA_CNT_RX_BAD_LENGTH);
		return true;
	}
	switch (nhca_datagram_place(qp, src, grh_len)) {
	case 0:
		break;
	case -EAGAIN:
		if (src->rx)
			nhca_defer(qp, src->rx);
		return false;
	default:
		/*
		 * Same-host path: the payload cannot be read.  The sender finds this error when it
		 * sends the datagram as a packet.
		 */
		if (src->err)
			return false;
		nhca_count(&qp->who, NHCA_CNT_LOCAL_PROT_ERR);
		cqe.status = IB_WC_LOC_PROT_ERR;
		goto fail;
	}
	if (grh_len && (h->info->flags & NHCA_OPF_IMMDT)) {
		cqe.flags |= NHCA_WC_WITH_IMM;
		cqe.ex.imm_data = (__force u32)h->imm;
	}
	nhca_rq_complete(qp, &cqe, h->solicited);
	return true;

fail:
	nhca_rq_complete(qp, &cqe, true);
	nhca_qp_set_error(qp, -1);
	return true;
}
