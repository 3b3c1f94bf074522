// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Queue pairs: creation, destruction and state.  post.c and wr.c post work requests.
 */
#include <errno.h>
#include <stdlib.h>

#include <ccan/minmax.h>

#include "nhca.h"

static int check_attr(const struct ibv_qp_init_attr_ex *attr, uint32_t features)
{
	uint32_t ops = nhca_send_ops(attr->qp_type, features);

	if (!check_comp_mask(attr->comp_mask,
			     IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_XRCD |
				     IBV_QP_INIT_ATTR_CREATE_FLAGS |
				     IBV_QP_INIT_ATTR_SEND_OPS_FLAGS))
		return EOPNOTSUPP;
	/* An XRC target QP needs an XRC domain, and all other QPs need a PD. */
	if (!(attr->comp_mask & (attr->qp_type == IBV_QPT_XRC_RECV ?
					 IBV_QP_INIT_ATTR_XRCD : IBV_QP_INIT_ATTR_PD)))
		return EINVAL;
	if ((attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS) &&
	    attr->create_flags)
		return EOPNOTSUPP;

	switch (attr->qp_type) {
	case IBV_QPT_RC:
	case IBV_QPT_UC:
	case IBV_QPT_UD:
		break;
	case IBV_QPT_RAW_PACKET:
		if (!(features & NHCA_FEATURE_RAW))
			return EOPNOTSUPP;
		break;
	case IBV_QPT_XRC_SEND:
	case IBV_QPT_XRC_RECV:
		if (!(features & NHCA_FEATURE_XRC))
			return EOPNOTSUPP;
		break;
	default:
		return EOPNOTSUPP;
	}

	if ((attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) &&
	    !check_comp_mask(attr->send_ops_flags, nhca_qp_ex_ops(ops)))
		return EOPNOTSUPP;
	return 0;
}

/* Allocate memory of a parent domain for the rings.  Return: 0 or an errno. */
static int place_rings(struct nhca_qp *qp, const struct ibv_qp_init_attr_ex *attr,
		       const struct ibv_qp_cap *cap, struct nhca_create_qp_cmd *cmd)
{
	bool receives = !attr->srq && attr->qp_type != IBV_QPT_XRC_SEND;
	int ret;

	/* An XRC target QP has no rings. */
	if (attr->qp_type == IBV_QPT_XRC_RECV)
		return 0;
	ret = nhca_ring_place(&qp->sq.ring, attr->pd, cap->max_send_wr,
			      nhca_send_stride(cap->max_send_sge, cap->max_inline_data),
			      NHCADV_RES_TYPE_SQ, &cmd->sq);
	if (ret || !receives)
		return ret;
	return nhca_ring_place(&qp->rq.ring, attr->pd, cap->max_recv_wr,
			       nhca_recv_stride(max_t(uint32_t, cap->max_recv_sge, 1)),
			       NHCADV_RES_TYPE_RQ, &cmd->rq);
}

struct ibv_qp *nhca_create_qp_ex(struct ibv_context *context,
				 struct ibv_qp_init_attr_ex *attr)
{
	uint32_t features = to_nctx(context)->features;
	struct ibv_qp_init_attr_ex kernel_attr = *attr;
	struct nhca_ucreate_qp_resp resp = {};
	struct ibv_qp_cap *cap = &kernel_attr.cap;
	struct nhca_ucreate_qp cmd = {};
	struct nhca_qp *qp;
	int ret;

	if (attr->comp_mask & (IBV_QP_INIT_ATTR_IND_TABLE |
			       IBV_QP_INIT_ATTR_RX_HASH))
		return nhca_create_rss_qp(context, attr);
	ret = check_attr(attr, features);
	if (ret) {
		errno = ret;
		return NULL;
	}
	kernel_attr.comp_mask = attr->qp_type == IBV_QPT_XRC_RECV ?
				IBV_QP_INIT_ATTR_XRCD : IBV_QP_INIT_ATTR_PD;
	if ((attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) &&
	    (attr->send_ops_flags & IBV_QP_EX_WITH_ATOMIC_WRITE))
		cap->max_inline_data = max_t(uint32_t, cap->max_inline_data,
					     NHCA_ATOMIC_WRITE_BYTES);

	qp = calloc(1, sizeof(*qp));
	if (!qp)
		return NULL;

	ret = place_rings(qp, attr, cap, &cmd.drv_payload);
	if (ret)
		goto err_rings;
	ret = ibv_cmd_create_qp_ex(context, &qp->vqp, &kernel_attr, &cmd.ibv_cmd,
				   sizeof(cmd), &resp.ibv_resp, sizeof(resp));
	if (ret)
		goto err_rings;

	/* Inline data takes the place of SGEs, so a slot has room for the larger of the two. */
	ret = nhca_wq_init(&qp->sq, context, &resp.drv_payload.sq,
			   sizeof(struct nhca_send_wqe),
			   max_t(size_t, cap->max_inline_data,
				 cap->max_send_sge * sizeof(struct nhca_sge)),
			   cap->max_send_wr, cap->max_send_sge) ?:
	      nhca_wq_init(&qp->rq, context, &resp.drv_payload.rq,
			   sizeof(struct nhca_recv_wqe),
			   cap->max_recv_sge * sizeof(struct nhca_sge),
			   cap->max_recv_wr, cap->max_recv_sge);
	if (ret)
		goto err_destroy;

	qp->max_inline = cap->max_inline_data;
	qp->ops = nhca_send_ops(attr->qp_type, features);
	attr->cap = *cap;
	qp->domain = nhca_domain_get(attr->comp_mask & IBV_QP_INIT_ATTR_PD ?
				     attr->pd : NULL);
	qp->sq.single = nhca_domain_single(qp->domain);
	qp->rq.single = qp->sq.single;

	if (attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) {
		nhca_wr_set_ops(qp, attr->send_ops_flags);
		qp->vqp.comp_mask |= VERBS_QP_EX;
	}
	return &qp->vqp.qp;

err_destroy:
	/* Destroy the QP before its rings are unmapped, because the kernel writes to them. */
	ibv_cmd_destroy_qp(&qp->vqp.qp);
err_rings:
	nhca_ring_unmap(&qp->sq.ring);
	nhca_ring_unmap(&qp->rq.ring);
	free(qp);
	errno = ret;
	return NULL;
}

struct ibv_qp *nhca_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct ibv_qp_init_attr_ex ex = {
		.qp_context = attr->qp_context,
		.send_cq = attr->send_cq,
		.recv_cq = attr->recv_cq,
		.srq = attr->srq,
		.cap = attr->cap,
		.qp_type = attr->qp_type,
		.sq_sig_all = attr->sq_sig_all,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = pd,
	};
	struct ibv_qp *qp;

	qp = nhca_create_qp_ex(pd->context, &ex);
	if (qp)
		attr->cap = ex.cap;
	return qp;
}

int nhca_query_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int attr_mask,
		  struct ibv_qp_init_attr *init_attr)
{
	struct ibv_query_qp cmd;

	return ibv_cmd_query_qp(ibqp, attr, attr_mask, init_attr, &cmd,
				sizeof(cmd));
}

static void forget_completions(struct ibv_qp *ibqp)
{
	/* An XRC initiator QP has no receive CQ, and an XRC target QP has no CQ. */
	if (ibqp->recv_cq)
		nhca_cq_forget_qp(to_ncq(ibqp->recv_cq), ibqp->qp_num);
	if (ibqp->send_cq && ibqp->send_cq != ibqp->recv_cq)
		nhca_cq_forget_qp(to_ncq(ibqp->send_cq), ibqp->qp_num);
}

static int modify_ex(struct ibv_qp *ibqp, struct ibv_qp_attr *attr,
		     int attr_mask)
{
	struct ib_uverbs_ex_modify_qp_resp resp = {};
	struct ibv_modify_qp_ex cmd = {};

	if (!(to_nctx(ibqp->context)->features & NHCA_FEATURE_RATE_LIMIT))
		return EOPNOTSUPP;
	return ibv_cmd_modify_qp_ex(ibqp, attr, attr_mask, &cmd, sizeof(cmd),
				    &resp, sizeof(resp));
}

int nhca_modify_qp_rate_limit(struct ibv_qp *ibqp,
			      struct ibv_qp_rate_limit_attr *attr)
{
	struct ibv_qp_attr qp_attr = { .rate_limit = attr->rate_limit };

	/* The size of bursts is not configurable: see Documentation/users-guide.rst. */
	if (attr->comp_mask || attr->max_burst_sz || attr->typical_pkt_sz)
		return EOPNOTSUPP;
	return modify_ex(ibqp, &qp_attr, IBV_QP_RATE_LIMIT);
}

int nhca_modify_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int attr_mask)
{
	struct nhca_qp *qp = to_nqp(ibqp);
	struct ibv_modify_qp cmd = {};
	int ret;

	ret = attr_mask & IBV_QP_RATE_LIMIT ?
		      modify_ex(ibqp, attr, attr_mask) :
		      ibv_cmd_modify_qp(ibqp, attr, attr_mask, &cmd,
					sizeof(cmd));
	if (ret)
		return ret;

	if ((attr_mask & IBV_QP_STATE) && attr->qp_state == IBV_QPS_RESET) {
		/* The kernel has emptied both rings, and posts no more completions of the QP. */
		forget_completions(ibqp);
		nhca_wq_lock(&qp->rq);
		nhca_wq_sync(&qp->rq);
		nhca_wq_unlock(&qp->rq);
		nhca_wq_lock(&qp->sq);
		nhca_wq_sync(&qp->sq);
		nhca_wq_unlock(&qp->sq);
	}
	return 0;
}

int nhca_destroy_qp(struct ibv_qp *ibqp)
{
	struct nhca_qp *qp = to_nqp(ibqp);
	int ret;

	ret = ibv_cmd_destroy_qp(ibqp);
	if (ret)
		return ret;
	forget_completions(ibqp);

	if (ibqp->qp_type == IBV_QPT_DRIVER)
		nhca_channel_fini(to_nch(ibqp));
	nhca_wq_fini(&qp->sq);
	nhca_wq_fini(&qp->rq);
	nhca_domain_put(qp->domain);
	free(qp);
	return 0;
}
