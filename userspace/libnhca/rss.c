// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Receive work queues, indirection tables, and the raw packet QPs that distribute frames over them.
 * post.c posts receive requests.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <ccan/minmax.h>
#include <util/util.h>

#include "nhca.h"

static_assert((int)IBV_RX_HASH_SRC_IPV4 == NHCA_RSS_SRC_IPV4 &&
	      (int)IBV_RX_HASH_DST_IPV4 == NHCA_RSS_DST_IPV4 &&
	      (int)IBV_RX_HASH_SRC_IPV6 == NHCA_RSS_SRC_IPV6 &&
	      (int)IBV_RX_HASH_DST_IPV6 == NHCA_RSS_DST_IPV6 &&
	      (int)IBV_RX_HASH_SRC_PORT_TCP == NHCA_RSS_SRC_PORT_TCP &&
	      (int)IBV_RX_HASH_DST_PORT_TCP == NHCA_RSS_DST_PORT_TCP &&
	      (int)IBV_RX_HASH_SRC_PORT_UDP == NHCA_RSS_SRC_PORT_UDP &&
	      (int)IBV_RX_HASH_DST_PORT_UDP == NHCA_RSS_DST_PORT_UDP, "fields");

/* Add the capabilities that are missing in the response of the kernel. */
void nhca_rss_caps(struct ibv_device_attr_ex *attr, size_t attr_size)
{
	if (attr_size < offsetofend(struct ibv_device_attr_ex, rss_caps))
		return;
	attr->rss_caps.rx_hash_fields_mask = NHCA_RSS_FIELDS;
	attr->rss_caps.rx_hash_function = IBV_RX_HASH_FUNC_TOEPLITZ;
}

/* ---- work queues ---- */

struct ibv_wq *nhca_create_wq(struct ibv_context *context,
			      struct ibv_wq_init_attr *attr)
{
	struct nhca_ucreate_wq_resp resp = {};
	struct nhca_ucreate_wq cmd = {};
	struct nhca_work_queue *wq;
	int ret;

	if (!(to_nctx(context)->features & NHCA_FEATURE_RAW) ||
	    attr->comp_mask & ~IBV_WQ_INIT_ATTR_FLAGS ||
	    ((attr->comp_mask & IBV_WQ_INIT_ATTR_FLAGS) && attr->create_flags)) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	wq = calloc(1, sizeof(*wq));
	if (!wq)
		return NULL;

	ret = nhca_ring_place(&wq->rq.ring, attr->pd, attr->max_wr,
			      nhca_recv_stride(max_t(uint32_t, attr->max_sge, 1)),
			      NHCADV_RES_TYPE_WQ, &cmd.drv_payload.rq);
	if (ret)
		goto err_free;
	ret = ibv_cmd_create_wq(context, attr, &wq->ibwq, &cmd.ibv_cmd, sizeof(cmd),
				&resp.ibv_resp, sizeof(resp));
	if (ret)
		goto err_place;
	ret = nhca_wq_init(&wq->rq, context, &resp.drv_payload.rq,
			   sizeof(struct nhca_recv_wqe),
			   attr->max_sge * sizeof(struct nhca_sge),
			   attr->max_wr, attr->max_sge);
	if (ret)
		goto err_destroy;
	wq->domain = nhca_domain_get(attr->pd);
	wq->rq.single = nhca_domain_single(wq->domain);
	wq->ibwq.post_recv = nhca_post_wq_recv;
	return &wq->ibwq;

err_destroy:
	ibv_cmd_destroy_wq(&wq->ibwq);
err_place:
	nhca_ring_unmap(&wq->rq.ring);
err_free:
	free(wq);
	errno = ret;
	return NULL;
}

int nhca_modify_wq(struct ibv_wq *ibwq, struct ibv_wq_attr *attr)
{
	struct nhca_work_queue *wq = to_nwork(ibwq);
	struct ibv_modify_wq cmd;
	int ret;

	ret = ibv_cmd_modify_wq(ibwq, attr, &cmd, sizeof(cmd));
	if (ret)
		return ret;

	if ((attr->attr_mask & IBV_WQ_ATTR_STATE) &&
	    attr->wq_state == IBV_WQS_RESET) {
		/* As in nhca_modify_qp(): the kernel has emptied the ring. */
		nhca_cq_forget_qp(to_ncq(ibwq->cq), ibwq->wq_num);
		nhca_wq_lock(&wq->rq);
		nhca_wq_sync(&wq->rq);
		nhca_wq_unlock(&wq->rq);
	}
	return 0;
}

int nhca_destroy_wq(struct ibv_wq *ibwq)
{
	struct nhca_work_queue *wq = to_nwork(ibwq);
	int ret;

	ret = ibv_cmd_destroy_wq(ibwq);
	if (ret)
		return ret;
	nhca_cq_forget_qp(to_ncq(ibwq->cq), ibwq->wq_num);
	nhca_wq_fini(&wq->rq);
	nhca_domain_put(wq->domain);
	free(wq);
	return 0;
}

/* ---- tables ---- */

struct ibv_rwq_ind_table *
nhca_create_rwq_ind_table(struct ibv_context *context,
			  struct ibv_rwq_ind_table_init_attr *attr)
{
	struct ib_uverbs_ex_create_rwq_ind_table_resp resp = {};
	struct ibv_rwq_ind_table *table;
	int ret;

	/* libibverbs copies all entries into the command, so refuse sizes far above the limit. */
	if (attr->log_ind_tbl_size > 16) {
		errno = EINVAL;
		return NULL;
	}
	table = calloc(1, sizeof(*table));
	if (!table)
		return NULL;
	ret = ibv_cmd_create_rwq_ind_table(context, attr, table, &resp,
					   sizeof(resp));
	if (ret) {
		free(table);
		errno = ret;
		return NULL;
	}
	return table;
}

int nhca_destroy_rwq_ind_table(struct ibv_rwq_ind_table *table)
{
	int ret = ibv_cmd_destroy_rwq_ind_table(table);

	if (!ret)
		free(table);
	return ret;
}

/* ---- queue pairs ---- */

/* Check the attributes, and fill in the hash.  Return: 0 or an errno. */
static int fill_cmd(const struct ibv_qp_init_attr_ex *attr,
		    struct nhca_create_rss_cmd *cmd)
{
	const struct ibv_rx_hash_conf *hash = &attr->rx_hash_conf;
	const uint32_t needed = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_IND_TABLE |
				IBV_QP_INIT_ATTR_RX_HASH;

	if ((attr->comp_mask & needed) != needed ||
	    attr->qp_type != IBV_QPT_RAW_PACKET)
		return EINVAL;
	if ((attr->comp_mask & ~(needed | IBV_QP_INIT_ATTR_CREATE_FLAGS)) ||
	    ((attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS) &&
	     attr->create_flags))
		return EOPNOTSUPP;
	if (hash->rx_hash_function != IBV_RX_HASH_FUNC_TOEPLITZ ||
	    (hash->rx_hash_fields_mask & ~(uint64_t)NHCA_RSS_FIELDS))
		return EOPNOTSUPP;
	if (hash->rx_hash_key_len != NHCA_RSS_KEY)
		return EINVAL;
	cmd->rx_hash_fields = hash->rx_hash_fields_mask;
	memcpy(cmd->rx_hash_key, hash->rx_hash_key, NHCA_RSS_KEY);
	return 0;
}

struct ibv_qp *nhca_create_rss_qp(struct ibv_context *context,
				  struct ibv_qp_init_attr_ex *attr)
{
	struct ibv_qp_init_attr_ex kernel_attr = *attr;
	struct nhca_ucreate_rss_resp resp = {};
	struct nhca_ucreate_rss cmd = {};
	struct nhca_qp *qp;
	int ret;

	ret = fill_cmd(attr, &cmd.drv_payload);
	if (!ret && !(to_nctx(context)->features & NHCA_FEATURE_RAW))
		ret = EOPNOTSUPP;
	if (ret) {
		errno = ret;
		return NULL;
	}
	qp = calloc(1, sizeof(*qp));
	if (!qp)
		return NULL;
	/* The hash is in the driver part of the command, and must not be in the common part. */
	kernel_attr.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_IND_TABLE;
	ret = nhca_cmd_create_qp_ex2(context, &qp->vqp, &kernel_attr,
				     &cmd.ibv_cmd, sizeof(cmd), &resp.ibv_resp,
				     sizeof(resp));
	if (ret) {
		free(qp);
		errno = ret;
		return NULL;
	}
	return &qp->vqp.qp;
}
