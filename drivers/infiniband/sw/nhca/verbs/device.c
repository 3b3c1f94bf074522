// SPDX-License-Identifier: GPL-2.0
/*
 * Attributes of the device, user contexts, and recovery.
 */
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/moduleparam.h>
#include <linux/string.h>
#include <net/net_namespace.h>

#include "objects.h"
#include "verbs.h"
#include "../direct/direct.h"
#include "../memory/memory.h"
#include "../memory/watch.h"
#include "../net/net.h"
#include "../rcxt/rcxt.h"

#define UVERBS_MODULE_NAME nhca
#include <rdma/uverbs_named_ioctl.h>

/* An ID that no vendor has; rdma_rxe also reports it */
#define NHCA_VENDOR_ID		0xffffff
#define NHCA_VENDOR_PART_ID	NHCA_RDMA_DRIVER_ID
#define NHCA_FW_VER		BIT_ULL(32)
#define NHCA_FW_STR		"1.0.0"

/*
 * Local CA ACK delay: the longest time from the arrival of a packet to its ACK that a peer should
 * expect, here 4.096 us * 2^15 = 134 ms.  Usually an ACK takes some microseconds, but the host's
 * scheduler guarantees no maximum.
 */
#define NHCA_ACK_DELAY		15

/*
 * Number of outstanding READs and atomics of a QP that devices report.  rdma_cm and kernel
 * consumers offer this number in their REQs, and some targets refuse an offer above their own
 * number.  Most adapters report 16.  ibv_modify_qp() accepts up to NHCA_MAX_RD_ATOM.
 */
static unsigned int max_rd_atomic = 16;

static int max_rd_atomic_set(const char *val, const struct kernel_param *kp)
{
	return param_set_uint_minmax(val, kp, 1, NHCA_MAX_RD_ATOM);
}

static const struct kernel_param_ops max_rd_atomic_ops = {
	.set = max_rd_atomic_set,
	.get = param_get_uint,
};

/* A device reports the value that the parameter had when the device was registered. */
module_param_cb(max_rd_atomic, &max_rd_atomic_ops, &max_rd_atomic, 0644);
MODULE_PARM_DESC(max_rd_atomic, "maximum number of outstanding READs and atomics per QP that a new device reports, 1 to 128 (default 16)");

/* Report on-demand paging.  IB_ODP_SUPPORT_IMPLICIT: a region may cover the whole address space. */
static void nhca_odp_caps(struct ib_device_attr *attr)
{
	if (!IS_ENABLED(CONFIG_INFINIBAND_ON_DEMAND_PAGING))
		return;
	attr->kernel_cap_flags |= IBK_ON_DEMAND_PAGING;
	attr->odp_caps.general_caps = IB_ODP_SUPPORT | IB_ODP_SUPPORT_IMPLICIT;
	attr->odp_caps.per_transport_caps.rc_odp_caps =
		IB_ODP_SUPPORT_SEND | IB_ODP_SUPPORT_RECV | IB_ODP_SUPPORT_WRITE |
		IB_ODP_SUPPORT_READ | IB_ODP_SUPPORT_ATOMIC | IB_ODP_SUPPORT_SRQ_RECV;
	attr->odp_caps.per_transport_caps.xrc_odp_caps =
		attr->odp_caps.per_transport_caps.rc_odp_caps;
	attr->odp_caps.per_transport_caps.ud_odp_caps =
		IB_ODP_SUPPORT_SEND | IB_ODP_SUPPORT_RECV;
}

int nhca_query_device(struct ib_device *ibdev, struct ib_device_attr *attr,
		      struct ib_udata *udata)
{
	/*
	 * The core stores the attributes when it registers a device, and reports the stored ones to
	 * kernel consumers and ibv_query_device().  Only ibv_query_device_ex() comes here again: it
	 * must report the same number.  Before the registration ibdev->attrs is 0.
	 */
	u32 rd_atomic = ibdev->attrs.max_qp_rd_atom ?: READ_ONCE(max_rd_atomic);

	/* At device registration the core of Linux 7.x passes NULL, older cores an empty udata. */
	if (udata && (udata->inlen || udata->outlen))
		return -EINVAL;

	*attr = (struct ib_device_attr) {
		.fw_ver = NHCA_FW_VER,
		.sys_image_guid = ibdev->node_guid,
		.max_mr_size = NHCA_MAX_MR_SIZE,
		/* All sizes from PAGE_SIZE on: the driver divides regions into pages itself. */
		.page_size_cap = PAGE_MASK & U32_MAX,
		.vendor_id = NHCA_VENDOR_ID,
		.vendor_part_id = NHCA_VENDOR_PART_ID,
		.max_qp = NHCA_MAX_QP,
		.max_qp_wr = NHCA_MAX_QP_WR,
		.device_cap_flags = IB_DEVICE_BAD_PKEY_CNTR |
				    IB_DEVICE_BAD_QKEY_CNTR |
				    IB_DEVICE_UD_AV_PORT_ENFORCE |
				    IB_DEVICE_CURR_QP_STATE_MOD |
				    IB_DEVICE_PORT_ACTIVE_EVENT |
				    IB_DEVICE_SYS_IMAGE_GUID |
				    IB_DEVICE_RC_RNR_NAK_GEN |
				    IB_DEVICE_SRQ_RESIZE |
				    IB_DEVICE_MEM_MGT_EXTENSIONS |
				    IB_DEVICE_MEM_WINDOW |
				    IB_DEVICE_FLUSH_GLOBAL |
				    /* only regions of files can have IB_ACCESS_FLUSH_PERSISTENT */
				    (NHCA_HAS_DIRECT ? IB_DEVICE_FLUSH_PERSISTENT : 0) |
				    IB_DEVICE_ATOMIC_WRITE |
				    IB_DEVICE_XRC |
				    IB_DEVICE_MANAGED_FLOW_STEERING |
				    nhca_mw_device_cap(),
		.kernel_cap_flags = IBK_ALLOW_USER_UNREG | IBK_SG_GAPS_REG,
		.max_send_sge = NHCA_MAX_SGE,
		.max_recv_sge = NHCA_MAX_SGE,
		.max_sge_rd = NHCA_MAX_SGE,
		.max_cq = NHCA_MAX_CQ,
		.max_cqe = NHCA_MAX_CQE,
		.cq_caps.max_cq_moderation_count = U16_MAX,
		.cq_caps.max_cq_moderation_period = U16_MAX,
		.max_mr = NHCA_MAX_MR,
		.max_mw = NHCA_MAX_MW,
		.max_pd = NHCA_MAX_PD,
		.max_qp_rd_atom = rd_atomic,
		.max_res_rd_atom = NHCA_MAX_QP * rd_atomic,
		.max_qp_init_rd_atom = rd_atomic,
		/* Atomics are also atomic with respect to CPUs that access the memory. */
		.atomic_cap = IB_ATOMIC_GLOB,
		.masked_atomic_cap = IB_ATOMIC_NONE,
		.max_mcast_grp = NHCA_MAX_MCAST_GRP,
		.max_mcast_qp_attach = NHCA_MAX_MCAST_QP,
		.max_total_mcast_qp_attach = NHCA_MAX_MCAST_GRP * NHCA_MAX_MCAST_QP,
		.max_ah = NHCA_MAX_AH,
		.max_srq = NHCA_MAX_SRQ,
		.max_srq_wr = NHCA_MAX_SRQ_WR,
		.max_srq_sge = NHCA_MAX_SGE,
		.max_fast_reg_page_list_len = NHCA_MAX_FAST_SG,
		.max_dm_size = NHCA_MAX_DM_SIZE,
		.max_pkeys = NHCA_MAX_PKEYS,
		.rss_caps = {
			.supported_qpts = BIT(IB_QPT_RAW_PACKET),
			.max_rwq_indirection_tables = NHCA_MAX_TABLES,
			.max_rwq_indirection_table_size = NHCA_MAX_RSS,
		},
		.max_wq_type_rq = NHCA_MAX_QP,
		.local_ca_ack_delay = NHCA_ACK_DELAY,
		/* Completion timestamps: CLOCK_MONOTONIC_RAW in nanoseconds, that is 10^6 kHz. */
		.timestamp_mask = U64_MAX,
		.hca_core_clock = USEC_PER_SEC,
	};
	nhca_odp_caps(attr);
	return 0;
}

int nhca_modify_device(struct ib_device *ibdev, int mask, struct ib_device_modify *modify)
{
	if (mask & ~IB_DEVICE_MODIFY_NODE_DESC)
		return -EOPNOTSUPP;

	if (mask & IB_DEVICE_MODIFY_NODE_DESC)
		memcpy(ibdev->node_desc, modify->node_desc, sizeof(ibdev->node_desc));
	return 0;
}

void nhca_get_dev_fw_str(struct ib_device *ibdev, char *str)
{
	strscpy(str, NHCA_FW_STR, IB_FW_VERSION_NAME_MAX);
}

static const struct nhca_alloc_ucontext_resp nhca_ucontext_resp = {
	.features = NHCA_FEATURE_LOCAL_OPS | NHCA_FEATURE_CHANNELS | NHCA_FEATURE_FLUSH |
		    NHCA_FEATURE_XRC | NHCA_FEATURE_RATE_LIMIT | NHCA_FEATURE_RAW |
		    NHCA_FEATURE_RING_MEM | NHCA_FEATURE_FENCE | NHCA_FEATURE_MOVE |
		    NHCA_FEATURE_PART | NHCA_FEATURE_FRAMES | NHCA_FEATURE_ASK |
		    NHCA_FEATURE_READ_FRAMES | NHCA_FEATURE_ACCUMULATE |
		    (NHCA_HAS_DIRECT ? NHCA_FEATURE_DIRECT : 0) |
		    (NHCA_HAS_WATCHES ? NHCA_FEATURE_WATCH : 0),
};

int nhca_alloc_ucontext(struct ib_ucontext *ibuc, struct ib_udata *udata)
{
	struct nhca_alloc_ucontext_resp resp = nhca_ucontext_resp;
	struct nhca_dev *dev = to_nhca_dev(ibuc->device);
	struct nhca_user *user = nhca_user_get_current(&dev->users);
	int err;

	if (IS_ERR(user))
		return PTR_ERR(user);
	err = nhca_respond(udata, &resp, sizeof(resp));
	if (err)
		goto err_user;
	err = -ENOMEM;
	to_nhca_uc(ibuc)->owner = nhca_pageref_owner_get(current->mm);
	if (!to_nhca_uc(ibuc)->owner)
		goto err_user;
	to_nhca_uc(ibuc)->user = user;
	xa_init_flags(&to_nhca_uc(ibuc)->direct_pools, XA_FLAGS_ALLOC1 | XA_FLAGS_ACCOUNT);
	return 0;

err_user:
	nhca_user_put(user);
	return err;
}

/* For a process that imports the context: the same response as at the context's creation. */
int nhca_query_ucontext(struct ib_ucontext *ibuc, struct uverbs_attr_bundle *attrs)
{
	return uverbs_copy_to_struct_or_zero(attrs, NHCA_ATTR_QUERY_CONTEXT_RESP,
					     &nhca_ucontext_resp, sizeof(nhca_ucontext_resp));
}

/* The core has destroyed all objects of the context. */
void nhca_dealloc_ucontext(struct ib_ucontext *ibuc)
{
	xa_destroy(&to_nhca_uc(ibuc)->direct_pools);
	nhca_pageref_owner_put(to_nhca_uc(ibuc)->owner);
	nhca_user_put(to_nhca_uc(ibuc)->user);
}

/*
 * ib_device_ops.disassociate_ucontext.  Because this function exists, the core can remove a device
 * that processes have open: the core destroys their objects, and their further calls fail.  Rings
 * stay mapped, but the driver does not use their memory any more.
 */
void nhca_disassociate_ucontext(struct ib_ucontext *ibuc)
{
}

/* ---- recovery ---- */

u32 nhca_recover(struct nhca_dev *dev, enum nhca_channel_error why)
{
	u32 count = nhca_rcxt_recover(dev, why);

	ibdev_info(&dev->ibdev, "recovery: all channels are now in the error state, because %s; recovery count %u\n",
		   why == NHCA_CH_ERR_DEVICE ?
		   "the netdev was removed or left its namespace, so this device is removed" :
		   "an administrator requested it: programs must create new channels", count);
	return count;
}

bool nhca_may_recover(const struct nhca_dev *dev)
{
	return ns_capable(nhca_net_ns(dev->nn)->user_ns, CAP_NET_ADMIN);
}

static int UVERBS_HANDLER(NHCA_METHOD_DEVICE_RECOVER)(struct uverbs_attr_bundle *attrs)
{
	struct ib_ucontext *ibuc = ib_uverbs_get_ucontext(attrs);
	struct nhca_dev *dev;
	u32 count;

	if (IS_ERR(ibuc))
		return PTR_ERR(ibuc);
	dev = to_nhca_dev(ibuc->device);
	if (!nhca_may_recover(dev))
		return -EPERM;
	count = nhca_recover(dev, NHCA_CH_ERR_RECOVERED);
	return uverbs_copy_to(attrs, NHCA_ATTR_DEVICE_RECOVER_RESP_COUNT, &count, sizeof(count));
}

DECLARE_UVERBS_NAMED_METHOD(NHCA_METHOD_DEVICE_RECOVER,
			    UVERBS_ATTR_PTR_OUT(NHCA_ATTR_DEVICE_RECOVER_RESP_COUNT,
						UVERBS_ATTR_TYPE(u32), UA_MANDATORY));

ADD_UVERBS_METHODS(nhca_device_methods, UVERBS_OBJECT_DEVICE,
		   &UVERBS_METHOD(NHCA_METHOD_DEVICE_RECOVER));

ADD_UVERBS_ATTRIBUTES_SIMPLE(nhca_query_context, UVERBS_OBJECT_DEVICE,
			     UVERBS_METHOD_QUERY_CONTEXT,
			     UVERBS_ATTR_PTR_OUT(NHCA_ATTR_QUERY_CONTEXT_RESP,
						 UVERBS_ATTR_STRUCT(struct nhca_alloc_ucontext_resp,
								    features),
						 UA_MANDATORY));

const struct uapi_definition nhca_device_defs[] = {
	UAPI_DEF_CHAIN_OBJ_TREE(UVERBS_OBJECT_DEVICE, &nhca_query_context),
	UAPI_DEF_CHAIN_OBJ_TREE(UVERBS_OBJECT_DEVICE, &nhca_device_methods),
	{}
};
