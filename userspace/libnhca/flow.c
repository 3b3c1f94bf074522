// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Flow steering: the kernel knows the rules, here is only what names them.
 */
#include <errno.h>
#include <stdlib.h>

#include "nhca.h"

struct ibv_flow *nhca_create_flow(struct ibv_qp *qp, struct ibv_flow_attr *attr)
{
	struct ibv_flow *flow;
	int ret;

	/* No comp_mask bit has a meaning yet. */
	if (!(to_nctx(qp->context)->features & NHCA_FEATURE_RAW) ||
	    attr->comp_mask) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	flow = calloc(1, sizeof(*flow));
	if (!flow)
		return NULL;

	ret = ibv_cmd_create_flow(qp, flow, attr, NULL, 0);
	if (ret) {
		free(flow);
		errno = ret;
		return NULL;
	}
	return flow;
}

int nhca_destroy_flow(struct ibv_flow *flow)
{
	int ret = ibv_cmd_destroy_flow(flow);

	if (!ret)
		free(flow);
	return ret;
}
