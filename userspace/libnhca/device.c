// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * nhca devices: match, open, and query.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <infiniband/cmd_write.h>
#include <util/util.h>

#include "nhca.h"

static void set_pacing_caps(struct ibv_device_attr_ex *attr, size_t attr_size,
			    uint32_t features)
{
	if (attr_size < offsetofend(struct ibv_device_attr_ex,
				    packet_pacing_caps))
		return;
	attr->packet_pacing_caps.qp_rate_limit_min = 1;
	attr->packet_pacing_caps.qp_rate_limit_max = UINT32_MAX;
	attr->packet_pacing_caps.supported_qpts =
		1 << IBV_QPT_RC | 1 << IBV_QPT_UC | 1 << IBV_QPT_UD |
		1 << IBV_QPT_XRC_SEND;
	if (features & NHCA_FEATURE_RAW)
		attr->packet_pacing_caps.supported_qpts |= 1 << IBV_QPT_RAW_PACKET;
}

static int nhca_query_device_ex(struct ibv_context *context,
				const struct ibv_query_device_ex_input *input,
				struct ibv_device_attr_ex *attr,
				size_t attr_size)
{
	struct ib_uverbs_ex_query_device_resp resp;
	size_t resp_size = sizeof(resp);
	uint64_t version;
	int ret;

	ret = ibv_cmd_query_device_any(context, input, attr, attr_size, &resp,
				       &resp_size);
	if (ret)
		return ret;

	if (to_nctx(context)->features & NHCA_FEATURE_RATE_LIMIT)
		set_pacing_caps(attr, attr_size, to_nctx(context)->features);
	if (to_nctx(context)->features & NHCA_FEATURE_RAW)
		nhca_rss_caps(attr, attr_size);

	version = resp.base.fw_ver;
	snprintf(attr->orig_attr.fw_ver, sizeof(attr->orig_attr.fw_ver),
		 "%u.%u.%u", (unsigned int)(version >> 32) & 0xffff,
		 (unsigned int)(version >> 16) & 0xffff,
		 (unsigned int)version & 0xffff);
	return 0;
}

static int nhca_query_port(struct ibv_context *context, uint8_t port,
			   struct ibv_port_attr *attr)
{
	struct ibv_query_port cmd;

	return ibv_cmd_query_port(context, port, attr, &cmd, sizeof(cmd));
}

uint64_t nhca_raw_clock(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC_RAW, &ts);
	return ts.tv_sec * UINT64_C(1000000000) + ts.tv_nsec;
}

/* The clock of completion timestamps; its rate is hca_core_clock of ibv_query_device_ex(). */
static int nhca_query_rt_values(struct ibv_context *context,
				struct ibv_values_ex *values)
{
	if (!check_comp_mask(values->comp_mask, IBV_VALUES_MASK_RAW_CLOCK))
		return EOPNOTSUPP;

	if (values->comp_mask & IBV_VALUES_MASK_RAW_CLOCK) {
		/* As in other providers, tv_nsec has all ticks, also above one second. */
		values->raw_clock.tv_sec = 0;
		values->raw_clock.tv_nsec = nhca_raw_clock();
	}
	return 0;
}

static void nhca_free_context(struct ibv_context *context);

static const struct verbs_context_ops nhca_context_ops = {
	.advise_mr = ibv_cmd_advise_mr,
	.alloc_dm = nhca_alloc_dm,
	.alloc_mw = nhca_alloc_mw,
	.alloc_parent_domain = nhca_alloc_parent_domain,
	.alloc_pd = nhca_alloc_pd,
	.alloc_td = nhca_alloc_td,
	.attach_mcast = ibv_cmd_attach_mcast,
	.bind_mw = nhca_bind_mw,
	.close_xrcd = nhca_close_xrcd,
	.create_ah = nhca_create_ah,
	.create_cq = nhca_create_cq,
	.create_cq_ex = nhca_create_cq_ex,
	.create_flow = nhca_create_flow,
	.create_qp = nhca_create_qp,
	.create_qp_ex = nhca_create_qp_ex,
	.create_rwq_ind_table = nhca_create_rwq_ind_table,
	.create_srq = nhca_create_srq,
	.create_srq_ex = nhca_create_srq_ex,
	.create_wq = nhca_create_wq,
	.dealloc_mw = nhca_dealloc_mw,
	.dealloc_pd = nhca_dealloc_pd,
	.dealloc_td = nhca_dealloc_td,
	.dereg_mr = nhca_dereg_mr,
	.destroy_ah = nhca_destroy_ah,
	.destroy_cq = nhca_destroy_cq,
	.destroy_flow = nhca_destroy_flow,
	.destroy_qp = nhca_destroy_qp,
	.destroy_rwq_ind_table = nhca_destroy_rwq_ind_table,
	.destroy_srq = nhca_destroy_srq,
	.destroy_wq = nhca_destroy_wq,
	.detach_mcast = ibv_cmd_detach_mcast,
	.free_context = nhca_free_context,
	.free_dm = nhca_free_dm,
	.get_srq_num = nhca_get_srq_num,
#if NHCA_RDMA_CORE >= 35
	.import_dm = nhca_import_dm,
#endif
	.import_mr = nhca_import_mr,
	.import_pd = nhca_import_pd,
	.modify_cq = nhca_modify_cq,
	.modify_qp = nhca_modify_qp,
	.modify_qp_rate_limit = nhca_modify_qp_rate_limit,
	.modify_srq = nhca_modify_srq,
	.modify_wq = nhca_modify_wq,
	.open_qp = nhca_open_qp,
	.open_xrcd = nhca_open_xrcd,
	.poll_cq = nhca_poll_cq,
	.post_recv = nhca_post_recv,
	.post_send = nhca_post_send,
	.post_srq_recv = nhca_post_srq_recv,
	.query_device_ex = nhca_query_device_ex,
	.query_port = nhca_query_port,
	.query_qp = nhca_query_qp,
	.query_rt_values = nhca_query_rt_values,
	.query_srq = nhca_query_srq,
	.reg_dm_mr = nhca_reg_dm_mr,
	.reg_dmabuf_mr = nhca_reg_dmabuf_mr,
	.reg_mr = nhca_reg_mr,
	.req_notify_cq = nhca_req_notify_cq,
	.rereg_mr = nhca_rereg_mr,
	.resize_cq = nhca_resize_cq,
#if NHCA_RDMA_CORE >= 35
	.unimport_dm = nhca_unimport_dm,
#endif
	.unimport_mr = nhca_unimport_mr,
	.unimport_pd = nhca_unimport_pd,
};

static int get_context(struct nhca_context *ctx)
{
	struct nhca_uget_context_resp resp = {};
	struct ibv_get_context cmd = {};

	if (nhca_cmd_get_context(&ctx->vctx, &cmd, sizeof(cmd), &resp.ibv_resp,
				 sizeof(resp)))
		return errno;
	ctx->features = resp.features;
	return 0;
}

/*
 * Query the features of a context for ibv_import_device().  Another part of this process, or
 * another process, has opened the device.
 */
static int query_context(struct nhca_context *ctx)
{
	DECLARE_COMMAND_BUFFER(cmdb, UVERBS_OBJECT_DEVICE,
			       UVERBS_METHOD_QUERY_CONTEXT, 1);
	struct nhca_alloc_ucontext_resp resp = {};
	int ret;

	fill_attr_out_ptr(cmdb, NHCA_ATTR_QUERY_CONTEXT_RESP, &resp);
	ret = ibv_cmd_query_context(&ctx->vctx.context, cmdb);
	if (!ret)
		ctx->features = resp.features;
	return ret;
}

static struct verbs_context *make_context(struct ibv_device *ibdev, int cmd_fd,
					  int (*ask)(struct nhca_context *ctx))
{
	struct nhca_context *ctx;
	int ret;

	ctx = verbs_init_and_alloc_context(ibdev, cmd_fd, ctx, vctx,
					   NHCA_RDMA_DRIVER_ID);
	if (!ctx)
		return NULL;

	ret = ask(ctx);
	if (ret) {
		verbs_uninit_context(&ctx->vctx);
		free(ctx);
		errno = ret;
		return NULL;
	}
	verbs_set_ops(&ctx->vctx, &nhca_context_ops);
	return &ctx->vctx;
}

static struct verbs_context *nhca_alloc_context(struct ibv_device *ibdev,
						int cmd_fd, void *private_data)
{
	return make_context(ibdev, cmd_fd, get_context);
}

static struct verbs_context *nhca_import_context(struct ibv_device *ibdev,
						 int cmd_fd)
{
	return make_context(ibdev, cmd_fd, query_context);
}

static void nhca_free_context(struct ibv_context *context)
{
	struct nhca_context *ctx = to_nctx(context);

	verbs_uninit_context(&ctx->vctx);
	free(ctx);
}

static struct verbs_device *nhca_alloc_device(struct verbs_sysfs_dev *sysfs_dev)
{
	return calloc(1, sizeof(struct verbs_device));
}

static void nhca_uninit_device(struct verbs_device *vdev)
{
	free(vdev);
}

static const struct verbs_match_ent nhca_match_table[] = {
	VERBS_DRIVER_ID(NHCA_RDMA_DRIVER_ID),
	/* For a libibverbs that cannot query driver ids from the kernel */
	VERBS_NAME_MATCH("nhca", NULL),
	{},
};

/* A device of another driver may be renamed to nhca0.  Therefore a known driver id must match. */
static bool nhca_match_device(struct verbs_sysfs_dev *sysfs_dev)
{
	return sysfs_dev->match &&
	       (sysfs_dev->driver_id == RDMA_DRIVER_UNKNOWN ||
		sysfs_dev->driver_id == NHCA_RDMA_DRIVER_ID);
}

static const struct verbs_device_ops nhca_dev_ops;

bool nhca_is_device(struct ibv_device *device)
{
	return verbs_get_device(device)->ops == &nhca_dev_ops;
}

static const struct verbs_device_ops nhca_dev_ops = {
	.name = "nhca",
	.match_min_abi_version = NHCA_ABI_VERSION,
	.match_max_abi_version = NHCA_ABI_VERSION,
	.match_table = nhca_match_table,
	.match_device = nhca_match_device,
	.alloc_device = nhca_alloc_device,
	.uninit_device = nhca_uninit_device,
	.alloc_context = nhca_alloc_context,
	.import_context = nhca_import_context,
};
PROVIDER_DRIVER(nhca, nhca_dev_ops);
