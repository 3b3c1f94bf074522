// SPDX-License-Identifier: GPL-2.0
/*
 * The tables of verbs and of uverbs methods.  The core returns -EOPNOTSUPP for a missing verb.
 */
#include <linux/module.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_counter.h>

#include "objects.h"
#include "verbs.h"
#include "../memory/memory.h"
#include "../net/net.h"
#include "../queue/cq.h"
#include "../transport/qp.h"

const struct uapi_definition nhca_uapi_defs[] = {
	UAPI_DEF_CHAIN(nhca_device_defs),
	UAPI_DEF_CHAIN(nhca_channel_defs),
	UAPI_DEF_CHAIN(nhca_doorbell_defs),
	UAPI_DEF_CHAIN(nhca_job_defs),
	UAPI_DEF_CHAIN(nhca_direct_defs),
	UAPI_DEF_CHAIN(nhca_dm_defs),
	UAPI_DEF_CHAIN(nhca_pd_defs),
	UAPI_DEF_CHAIN(nhca_watch_defs),
	{}
};

/* main.c adds the members that it implements itself (nhca_main_ops) */
const struct ib_device_ops nhca_dev_ops = {
	.owner = THIS_MODULE,
	/*
	 * This number is not a value of the kernel's enum.  The core only compares the number, and
	 * the provider's match table has the same number.
	 */
	.driver_id = (enum rdma_driver_id)NHCA_RDMA_DRIVER_ID,
	.uverbs_abi_ver = NHCA_ABI_VERSION,

	.add_gid = nhca_add_gid,
	.alloc_hw_port_stats = nhca_alloc_hw_stats,
	.advise_mr = nhca_advise_mr,
	.alloc_dm = nhca_alloc_dm,
	.alloc_mr = nhca_alloc_mr,
	.alloc_mw = nhca_alloc_mw,
	.alloc_pd = nhca_alloc_pd,
	.alloc_ucontext = nhca_alloc_ucontext,
	.alloc_xrcd = nhca_alloc_xrcd,
	.attach_mcast = nhca_attach_mcast,
	.counter_alloc_stats = nhca_counter_alloc_stats,
	.counter_bind_qp = nhca_counter_bind_qp,
	.counter_dealloc = nhca_counter_dealloc,
#ifndef NHCA_OLD_COUNTER
	.counter_init = nhca_counter_init,
#endif
	.counter_unbind_qp = nhca_counter_unbind_qp,
	.counter_update_stats = nhca_counter_update_stats,
	.create_ah = nhca_create_ah,
	.create_cq = nhca_create_cq,
	.create_flow = nhca_create_flow,
	.create_qp = nhca_create_qp,
	.create_rwq_ind_table = nhca_create_rwq_ind_table,
	.create_srq = nhca_create_srq,
	.create_user_ah = nhca_create_ah,
	.create_wq = nhca_create_wq,
	.dealloc_dm = nhca_dealloc_dm,
	.dealloc_mw = nhca_dealloc_mw,
	.dealloc_pd = nhca_dealloc_pd,
	.dealloc_ucontext = nhca_dealloc_ucontext,
	.dealloc_xrcd = nhca_dealloc_xrcd,
	.del_gid = nhca_del_gid,
	.dereg_mr = nhca_dereg_mr,
	.destroy_ah = nhca_destroy_ah,
	.destroy_cq = nhca_destroy_cq,
	.destroy_flow = nhca_destroy_flow,
	.destroy_qp = nhca_destroy_qp,
	.destroy_rwq_ind_table = nhca_destroy_rwq_ind_table,
	.destroy_srq = nhca_destroy_srq,
	.destroy_wq = nhca_destroy_wq,
	.detach_mcast = nhca_detach_mcast,
	.disassociate_ucontext = nhca_disassociate_ucontext,
	.enable_driver = nhca_enable_driver,
	.fill_res_cq_entry = nhca_fill_res_cq_entry,
	.fill_res_cq_entry_raw = nhca_fill_res_cq_entry_raw,
	.fill_res_mr_entry = nhca_fill_res_mr_entry,
	.fill_res_mr_entry_raw = nhca_fill_res_mr_entry_raw,
	.fill_res_qp_entry = nhca_fill_res_qp_entry,
	.fill_res_qp_entry_raw = nhca_fill_res_qp_entry_raw,
#ifndef NHCA_OLD_RES_SRQ
	.fill_res_srq_entry = nhca_fill_res_srq_entry,
	.fill_res_srq_entry_raw = nhca_fill_res_srq_entry_raw,
#endif
	.get_dev_fw_str = nhca_get_dev_fw_str,
	.get_dma_mr = nhca_get_dma_mr,
	.get_hw_stats = nhca_get_hw_stats,
	.get_link_layer = nhca_get_link_layer,
#ifdef NHCA_OLD_GET_NETDEV
	.get_netdev = nhca_get_netdev,
#endif
	.get_numa_node = nhca_get_numa_node,
	.get_port_immutable = nhca_get_port_immutable,
	.map_mr_sg = nhca_map_mr_sg,
	.mmap = nhca_mmap,
	.mmap_free = nhca_mmap_free,
	.modify_cq = nhca_modify_cq,
	.modify_device = nhca_modify_device,
	.modify_qp = nhca_modify_qp,
	.modify_srq = nhca_modify_srq,
	.modify_wq = nhca_modify_wq,
	.poll_cq = nhca_poll_cq,
	.post_recv = nhca_post_recv,
	.post_send = nhca_post_send,
	.post_srq_recv = nhca_post_srq_recv,
	.process_mad = nhca_process_mad,
	.query_ah = nhca_query_ah,
	.query_device = nhca_query_device,
	.query_pkey = nhca_query_pkey,
	.query_port = nhca_query_port,
#ifndef NHCA_OLD_PORT_SPEED
	.query_port_speed = nhca_query_port_speed,
#endif
	.query_qp = nhca_query_qp,
	.query_srq = nhca_query_srq,
	.query_ucontext = nhca_query_ucontext,
	.reg_dm_mr = nhca_reg_dm_mr,
	.reg_user_mr = nhca_reg_user_mr,
	.reg_user_mr_dmabuf = nhca_reg_user_mr_dmabuf,
	.req_notify_cq = nhca_req_notify_cq,
	.rereg_user_mr = nhca_rereg_user_mr,
#ifdef NHCA_OLD_RESIZE_CQ
	.resize_cq = nhca_resize_cq,
#else
	.resize_user_cq = nhca_resize_cq,
#endif

	INIT_RDMA_OBJ_SIZE(ib_ah, nhca_ah, ibah),
	INIT_RDMA_OBJ_SIZE(ib_cq, nhca_cq, ibcq),
	INIT_RDMA_OBJ_SIZE(ib_mw, nhca_mw, ibmw),
	INIT_RDMA_OBJ_SIZE(ib_pd, nhca_pd, ibpd),
	INIT_RDMA_OBJ_SIZE(ib_qp, nhca_qp, ibqp),
	INIT_RDMA_OBJ_SIZE(ib_rwq_ind_table, nhca_ind_table, ibtable),
	INIT_RDMA_OBJ_SIZE(ib_srq, nhca_srq, ibsrq),
	INIT_RDMA_OBJ_SIZE(ib_ucontext, nhca_ucontext, ibuc),
#ifndef NHCA_OLD_COUNTER
	.size_rdma_counter = sizeof(struct rdma_counter),
#endif
	INIT_RDMA_OBJ_SIZE(ib_xrcd, nhca_xrcd, ibxrcd),
};
