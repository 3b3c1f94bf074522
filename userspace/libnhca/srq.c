// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Shared receive queues: creation, destruction and resize.  post.c posts receive requests.
 */
#include <errno.h>
#include <stdlib.h>

#include "nhca.h"

/* Allocate memory of a parent domain for the ring.  Return: 0 or an errno. */
static int place(struct nhca_ring *ring, struct ibv_pd *pd, uint32_t max_wr,
		 uint32_t max_sge, struct nhca_ring_mem *mem)
{
	return nhca_ring_place(ring, pd, max_wr, nhca_recv_stride(max_sge),
			       NHCADV_RES_TYPE_SRQ, mem);
}

/* Map the ring of an SRQ that the kernel has created.  Return: 0 or an errno. */
static int finish(struct nhca_srq *srq, struct ibv_context *context,
		  struct ibv_pd *pd, const struct nhca_create_srq_resp *resp,
		  const struct ibv_srq_attr *attr)
{
	int ret;

	ret = nhca_wq_init(&srq->wq, context, &resp->rq,
			   sizeof(struct nhca_recv_wqe),
			   attr->max_sge * sizeof(struct nhca_sge),
			   attr->max_wr, attr->max_sge);
	if (ret)
		return ret;
	srq->srqn = resp->srqn;
	srq->domain = nhca_domain_get(pd);
	srq->wq.single = nhca_domain_single(srq->domain);
	return 0;
}

struct ibv_srq *nhca_create_srq(struct ibv_pd *pd,
				struct ibv_srq_init_attr *attr)
{
	struct nhca_ucreate_srq_resp resp = {};
	struct nhca_ucreate_srq cmd = {};
	struct nhca_srq *srq;
	int ret;

	srq = calloc(1, sizeof(*srq));
	if (!srq)
		return NULL;

	ret = place(&srq->wq.ring, pd, attr->attr.max_wr, attr->attr.max_sge,
		    &cmd.drv_payload.rq);
	if (ret)
		goto err_free;
	ret = ibv_cmd_create_srq(pd, &srq->vsrq.srq, attr, &cmd.ibv_cmd, sizeof(cmd),
				 &resp.ibv_resp, sizeof(resp));
	if (ret)
		goto err_place;

	ret = finish(srq, pd->context, pd, &resp.drv_payload, &attr->attr);
	if (ret)
		goto err_destroy;
	return &srq->vsrq.srq;

err_destroy:
	ibv_cmd_destroy_srq(&srq->vsrq.srq);
err_place:
	nhca_ring_unmap(&srq->wq.ring);
err_free:
	free(srq);
	errno = ret;
	return NULL;
}

/* For XRC only: libibverbs creates basic SRQs with nhca_create_srq(). */
struct ibv_srq *nhca_create_srq_ex(struct ibv_context *context,
				   struct ibv_srq_init_attr_ex *attr)
{
	const uint32_t xrc = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
	struct nhca_ucreate_xsrq_resp resp = {};
	struct nhca_ucreate_xsrq cmd = {};
	struct nhca_srq *srq;
	int ret;

	if (!check_comp_mask(attr->comp_mask, xrc) || attr->srq_type != IBV_SRQT_XRC ||
	    !(to_nctx(context)->features & NHCA_FEATURE_XRC)) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	if (attr->comp_mask != xrc) {
		errno = EINVAL;
		return NULL;
	}
	srq = calloc(1, sizeof(*srq));
	if (!srq)
		return NULL;

	ret = place(&srq->wq.ring, attr->pd, attr->attr.max_wr, attr->attr.max_sge,
		    &cmd.drv_payload.rq);
	if (ret)
		goto err_free;
	ret = ibv_cmd_create_srq_ex(context, &srq->vsrq, attr, &cmd.ibv_cmd,
				    sizeof(cmd), &resp.ibv_resp, sizeof(resp));
	if (ret)
		goto err_place;

	ret = finish(srq, context, attr->pd, &resp.drv_payload, &attr->attr);
	if (ret)
		goto err_destroy;
	return &srq->vsrq.srq;

err_destroy:
	ibv_cmd_destroy_srq(&srq->vsrq.srq);
err_place:
	nhca_ring_unmap(&srq->wq.ring);
err_free:
	free(srq);
	errno = ret;
	return NULL;
}

static int resize(struct nhca_srq *srq, struct ibv_srq_attr *attr,
		  int attr_mask)
{
	struct nhca_ring_info info = {};
	struct nhca_umodify_srq cmd = {
		.drv_payload.ring_info_addr = (uintptr_t)&info,
	};
	struct nhca_ring ring;
	int ret;

	ret = place(&ring, srq->domain ? &srq->domain->pd : NULL, attr->max_wr,
		    srq->wq.max_sge, &cmd.drv_payload.rq);
	if (ret)
		return ret;

	/*
	 * The kernel moves the requests that it has not fetched to a new ring.  The lock prevents
	 * other threads from posting to the old ring until srq->wq.ring is the new one.
	 */
	nhca_wq_lock(&srq->wq);
	ret = ibv_cmd_modify_srq(&srq->vsrq.srq, attr, attr_mask, &cmd.ibv_cmd,
				 sizeof(cmd));
	if (ret)
		goto out;

	ret = nhca_ring_map(&ring, srq->vsrq.srq.context, &info,
			    sizeof(struct nhca_recv_wqe) +
				    srq->wq.max_sge * sizeof(struct nhca_sge));
	if (!ret && !ring.hdr)
		ret = EPROTO;
	if (ret) {
		verbs_err(verbs_get_ctx(srq->vsrq.srq.context),
			  "SRQ %u: cannot map the ring after a resize (error %d): the SRQ cannot be used any more, destroy it\n",
			  srq->srqn, ret);
		srq->wq.max_wr = 0;
		goto out;
	}

	/* nhca_ring_unmap() below unmaps the old ring. */
	nhca_ring_swap(&srq->wq.ring, &ring);
	srq->wq.max_wr = srq->wq.ring.entries;
	nhca_wq_sync(&srq->wq);
out:
	nhca_wq_unlock(&srq->wq);
	nhca_ring_unmap(&ring);
	return ret;
}

int nhca_modify_srq(struct ibv_srq *ibsrq, struct ibv_srq_attr *attr,
		    int attr_mask)
{
	struct ibv_modify_srq cmd = {};

	if (attr_mask & IBV_SRQ_MAX_WR)
		return resize(to_nsrq(ibsrq), attr, attr_mask);
	return ibv_cmd_modify_srq(ibsrq, attr, attr_mask, &cmd, sizeof(cmd));
}

int nhca_query_srq(struct ibv_srq *ibsrq, struct ibv_srq_attr *attr)
{
	struct ibv_query_srq cmd;

	return ibv_cmd_query_srq(ibsrq, attr, &cmd, sizeof(cmd));
}

int nhca_destroy_srq(struct ibv_srq *ibsrq)
{
	struct nhca_srq *srq = to_nsrq(ibsrq);
	int ret;

	ret = ibv_cmd_destroy_srq(ibsrq);
	if (ret)
		return ret;

	nhca_wq_fini(&srq->wq);
	nhca_domain_put(srq->domain);
	free(srq);
	return 0;
}

int nhca_get_srq_num(struct ibv_srq *ibsrq, uint32_t *srq_num)
{
	*srq_num = to_nsrq(ibsrq)->srqn;
	return 0;
}
