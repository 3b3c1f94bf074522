/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Differences between the releases of rdma-core in which the provider is built.  NHCA_RDMA_CORE is
 * the major version of the release.
 */
#ifndef NHCA_COMPAT_H
#define NHCA_COMPAT_H

#include <stdio.h>

#include <infiniband/driver.h>

#include "nhca-abi.h"

/*
 * Older releases of rdma-core do not have these operations, so programs for these releases cannot
 * post them.  The provider uses the names to compare numbers of operations.
 */
#if NHCA_RDMA_CORE < 44
#define IBV_WR_ATOMIC_WRITE ((enum ibv_wr_opcode)NHCA_WR_ATOMIC_WRITE)
#define IBV_QP_EX_WITH_ATOMIC_WRITE (1 << 12)
#endif
#if NHCA_RDMA_CORE < 45
#define IBV_WR_FLUSH ((enum ibv_wr_opcode)NHCA_WR_FLUSH)
#define IBV_QP_EX_WITH_FLUSH (1 << 11)
#endif

#if NHCA_RDMA_CORE < 37
#define verbs_err(vctx, ...) ((void)(vctx), (void)fprintf(stderr, __VA_ARGS__))
#endif

/* In newer releases of rdma-core these functions have one more argument, not used here. */
#if NHCA_RDMA_CORE < 54
#define nhca_cmd_reg_dmabuf_mr ibv_cmd_reg_dmabuf_mr
#else
#define nhca_cmd_reg_dmabuf_mr(...) ibv_cmd_reg_dmabuf_mr(__VA_ARGS__, NULL)
#endif
#if NHCA_RDMA_CORE < 57
#define nhca_cmd_get_context ibv_cmd_get_context
#else
#define nhca_cmd_get_context(vctx, cmd, size, ...) \
	ibv_cmd_get_context(vctx, cmd, size, NULL, __VA_ARGS__)
#endif
#if NHCA_RDMA_CORE < 59
#define nhca_cmd_create_cq_ex ibv_cmd_create_cq_ex
#else
#define nhca_cmd_create_cq_ex(context, attr, ...) \
	ibv_cmd_create_cq_ex(context, attr, NULL, __VA_ARGS__)
#endif
#if NHCA_RDMA_CORE < 64
#define nhca_cmd_create_qp_ex2 ibv_cmd_create_qp_ex2
#else
#define nhca_cmd_create_qp_ex2(...) ibv_cmd_create_qp_ex2(__VA_ARGS__, NULL)
#endif

#endif /* NHCA_COMPAT_H */
