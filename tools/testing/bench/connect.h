/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Connects the queue pairs of load: RC and UC through qp_connect() of peers.h, UD through an
 * address handle, and those of iWARP through rdma_cm, because an iWARP connection is a TCP
 * connection.  Only one source file of a program can include this header, because its functions and
 * variables are static.
 */
#ifndef CONNECT_H
#define CONNECT_H

#include <rdma/rdma_cma.h>

#include "peers.h"

#define QKEY		0x11111111
#define GRH		40		/* bytes that a UD receive has before the message */
#define IWARP_PORTS	1000		/* distance from the port of peers.h to that of rdma_cm */

static struct ibv_ah *peer_ah;		/* destination of the UD queue pairs */
static struct rdma_cm_id *listener;	/* listener of the passive end of iWARP */
static struct sockaddr_storage iwarp_at;

static bool is_iwarp(void)
{
	return context->device->transport_type == IBV_TRANSPORT_IWARP;
}

static void ud_init(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY };

	verb(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
			   IBV_QP_QKEY));
}

static void ud_connect(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTR };
	struct ibv_ah_attr path = { .is_global = 1, .port_num = 1,
		.grh = { .dgid = theirs.gid, .sgid_index = gid_index, .hop_limit = 64 } };

	verb(ibv_modify_qp(qp, &attr, IBV_QP_STATE));
	attr.qp_state = IBV_QPS_RTS;
	attr.sq_psn = 1;
	verb(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN));
	if (!peer_ah)
		peer_ah = ibv_create_ah(pd, &path);
	must(peer_ah);
}

/*
 * Agree on the address at which the passive end listens: the address to which the active end has
 * connected its TCP socket, with another port.
 */
static void iwarp_meet(void)
{
	socklen_t len = sizeof(iwarp_at);
	in_port_t *port = &((struct sockaddr_in *)&iwarp_at)->sin_port;	/* same offset in IPv6 */

	if (peer_host) {
		must(!getpeername(sock, (struct sockaddr *)&iwarp_at, &len));
		*port = htons(ntohs(*port) + IWARP_PORTS);
		tell(&iwarp_at, sizeof(iwarp_at));
		meet(100);
		return;
	}
	hear(&iwarp_at, sizeof(iwarp_at));
	must(!rdma_create_id(NULL, &listener, NULL, RDMA_PS_TCP));
	must(!rdma_bind_addr(listener, (struct sockaddr *)&iwarp_at));
	must(!rdma_listen(listener, 128));
	meet(100);
}

/*
 * The passive end accepts the next connection request, so both ends must connect their queue pairs
 * in the same order. The rdma_cm_id exists until the program ends. If rdma_cm has chosen a local
 * port that TCP still uses, retry: a new id has another port.
 */
static void iwarp_connect(struct ibv_qp *qp)
{
	struct rdma_conn_param param = { .qp_num = qp->qp_num, .initiator_depth = mine.rd_atomic,
					 .responder_resources = mine.rd_atomic };
	struct rdma_cm_id *id;
	int tries, ret = -1;

	if (!peer_host) {
		must(!rdma_get_request(listener, &id));
		must(!rdma_accept(id, &param));
		return;
	}
	for (tries = 0; ret && tries < 20; tries++) {
		must(!rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP));
		must(!rdma_resolve_addr(id, NULL, (struct sockaddr *)&iwarp_at, 5000));
		must(!rdma_resolve_route(id, 5000));
		ret = rdma_connect(id, &param);
		if (ret && errno == EADDRINUSE)
			rdma_destroy_id(id);
		else
			must(!ret);
	}
	must(!ret);
}

/* Move @qp to INIT, so that receives can be posted. */
static void end_init(struct ibv_qp *qp)
{
	if (qp->qp_type == IBV_QPT_UD)
		ud_init(qp);
	else
		qp_init(qp);
}

/* Make @qp ready to send. @peer_qpn: the other end's queue pair, for RC and UC without iWARP */
static void end_connect(struct ibv_qp *qp, uint32_t peer_qpn)
{
	if (is_iwarp())
		iwarp_connect(qp);
	else if (qp->qp_type == IBV_QPT_UD)
		ud_connect(qp);
	else
		qp_connect(qp, peer_qpn, 1, 1);
}

#endif /* CONNECT_H */
