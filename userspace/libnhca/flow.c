// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Flow steering: the kernel has the rules.  This file only allocates their handles.
 */
#include <errno.h>
#include <stdlib.h>

#include "nhca.h"

struct ibv_flow *nhca_create_flow(struct ibv_qp *qp, struct ibv_flow_attr *attr)
{
	struct ibv_flow *flow;
	int ret;

	/* No bit of comp_mask is supported. */
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
