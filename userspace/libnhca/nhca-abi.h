/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Commands and responses of uverbs with the parts of the nhca kernel driver, declared for
 * libibverbs.
 */
#ifndef NHCA_PROVIDER_ABI_H
#define NHCA_PROVIDER_ABI_H

#include <infiniband/kern-abi.h>
#include <rdma/nhca-abi.h>
#include <kernel-abi/nhca-abi.h>

DECLARE_DRV_CMD(nhca_uget_context, IB_USER_VERBS_CMD_GET_CONTEXT,
		empty, nhca_alloc_ucontext_resp);
DECLARE_DRV_CMD(nhca_ucreate_ah, IB_USER_VERBS_CMD_CREATE_AH,
		empty, nhca_create_ah_resp);
DECLARE_DRV_CMD(nhca_ucreate_cq, IB_USER_VERBS_EX_CMD_CREATE_CQ,
		nhca_create_cq_cmd, nhca_create_cq_resp);
DECLARE_DRV_CMD(nhca_uresize_cq, IB_USER_VERBS_CMD_RESIZE_CQ,
		nhca_resize_cq_cmd, nhca_resize_cq_resp);
DECLARE_DRV_CMD(nhca_ucreate_srq, IB_USER_VERBS_CMD_CREATE_SRQ,
		nhca_create_srq_cmd, nhca_create_srq_resp);
DECLARE_DRV_CMD(nhca_ucreate_xsrq, IB_USER_VERBS_CMD_CREATE_XSRQ,
		nhca_create_srq_cmd, nhca_create_srq_resp);
DECLARE_DRV_CMD(nhca_umodify_srq, IB_USER_VERBS_CMD_MODIFY_SRQ,
		nhca_modify_srq_cmd, empty);
DECLARE_DRV_CMD(nhca_ucreate_qp, IB_USER_VERBS_CMD_CREATE_QP,
		nhca_create_qp_cmd, nhca_create_qp_resp);
DECLARE_DRV_CMD(nhca_ucreate_rss, IB_USER_VERBS_EX_CMD_CREATE_QP,
		nhca_create_rss_cmd, empty);
DECLARE_DRV_CMD(nhca_ucreate_wq, IB_USER_VERBS_EX_CMD_CREATE_WQ,
		nhca_create_wq_cmd, nhca_create_wq_resp);
DECLARE_DRV_CMD(nhca_ucreate_channel, IB_USER_VERBS_CMD_CREATE_QP,
		nhca_create_channel_cmd, nhca_create_channel_resp);

static_assert(sizeof(struct nhca_ring_hdr) == NHCA_RING_HDR_SIZE, "ring header");
static_assert(sizeof(struct nhca_send_wqe) == 64, "send WQE");
static_assert(sizeof(struct nhca_recv_wqe) == 16, "receive WQE");
static_assert(sizeof(struct nhca_cqe) == 64, "CQE");
static_assert(sizeof(struct nhca_frame) == NHCA_FRAME_SIZE, "frame");

#endif /* NHCA_PROVIDER_ABI_H */
