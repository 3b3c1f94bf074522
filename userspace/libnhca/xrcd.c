// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * XRC domains, and ibv_open_qp() for XRC target QPs that several processes share.
 */
#include <errno.h>
#include <stdlib.h>

#include "nhca.h"

struct ibv_xrcd *nhca_open_xrcd(struct ibv_context *context,
				struct ibv_xrcd_init_attr *attr)
{
	struct ib_uverbs_open_xrcd_resp resp;
	struct verbs_xrcd *xrcd;
	struct ibv_open_xrcd cmd;
	int ret;

	if (!(to_nctx(context)->features & NHCA_FEATURE_XRC)) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	xrcd = calloc(1, sizeof(*xrcd));
	if (!xrcd)
		return NULL;

	ret = ibv_cmd_open_xrcd(context, xrcd, sizeof(*xrcd), attr, &cmd,
				sizeof(cmd), &resp, sizeof(resp));
	if (ret) {
		free(xrcd);
		errno = ret;
		return NULL;
	}
	return &xrcd->xrcd;
}

int nhca_close_xrcd(struct ibv_xrcd *ibxrcd)
{
	struct verbs_xrcd *xrcd;
	int ret;

	xrcd = container_of(ibxrcd, struct verbs_xrcd, xrcd);
	ret = ibv_cmd_close_xrcd(xrcd);
	if (!ret)
		free(xrcd);
	return ret;
}

struct ibv_qp *nhca_open_qp(struct ibv_context *context,
			    struct ibv_qp_open_attr *attr)
{
	static const struct nhca_ring_info none;
	struct ib_uverbs_create_qp_resp resp;
	struct ibv_open_qp cmd;
	struct nhca_qp *qp;
	int ret;

	qp = calloc(1, sizeof(*qp));
	if (!qp)
		return NULL;

	ret = ibv_cmd_open_qp(context, &qp->vqp, sizeof(qp->vqp), attr, &cmd,
			      sizeof(cmd), &resp, sizeof(resp));
	if (ret) {
		free(qp);
		errno = ret;
		return NULL;
	}
	/* An XRC target QP has no rings: initialize only the locks. */
	nhca_wq_init(&qp->sq, context, &none, 0, 0, 0, 0);
	nhca_wq_init(&qp->rq, context, &none, 0, 0, 0, 0);
	return &qp->vqp.qp;
}
