// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Channels: creation, destruction, state, and their rCxts.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <ccan/minmax.h>
#include <infiniband/cmd_write.h>

#include "nhca.h"

/* Maximum ids in a call: 4096 ids have 32 KiB, and a uverbs attribute has less than 64 KiB. */
#define MAX_RCXTS 4096

/* nhca_destroy_qp() frees a channel, like any other QP, through a pointer to the QP. */
static_assert(offsetof(struct nhca_channel, qp) == 0, "channel and QP");
static_assert(NHCADV_CHANNEL_COUNTERS * sizeof(uint64_t) ==
	      sizeof(((struct nhca_channel_info *)NULL)->counters) &&
	      NHCADV_DROP_MANAGER + 1 == NHCA_CH_COUNTERS &&
	      (int)NHCADV_DROP_SEGMENT == NHCA_CH_DROP_SEGMENT &&
	      (int)NHCADV_DROP_FIFO == NHCA_CH_DROP_FIFO &&
	      (int)NHCADV_DROP_STALE == NHCA_CH_DROP_STALE &&
	      (int)NHCADV_DROP_PVO_KEY == NHCA_CH_DROP_PVO_KEY &&
	      (int)NHCADV_DROP_ERROR == NHCA_CH_DROP_ERROR, "counters");
static_assert((int)NHCADV_CHANNEL_RECV_THRESHOLD == NHCA_CHANNEL_RECV_THRESHOLD &&
	      (int)NHCADV_CHANNEL_SEND_THRESHOLD == NHCA_CHANNEL_SEND_THRESHOLD &&
	      (int)NHCADV_CHANNEL_QUANTUM == NHCA_CHANNEL_QUANTUM, "attributes");
static_assert((int)NHCADV_ERR_MODIFIED == NHCA_CH_ERR_MODIFIED &&
	      (int)NHCADV_ERR_RING == NHCA_CH_ERR_RING &&
	      (int)NHCADV_ERR_WQE == NHCA_CH_ERR_WQE &&
	      (int)NHCADV_ERR_LOCAL_PVO == NHCA_CH_ERR_LOCAL_PVO &&
	      (int)NHCADV_ERR_RECOVERED == NHCA_CH_ERR_RECOVERED &&
	      (int)NHCADV_ERR_DEVICE == NHCA_CH_ERR_DEVICE, "reasons");

/* ---- the device ---- */

bool nhcadv_is_supported(struct ibv_device *device)
{
	return nhca_is_device(device);
}

int nhca_check_channels(struct ibv_context *context)
{
	if (!nhca_is_device(context->device) ||
	    !(to_nctx(context)->features & NHCA_FEATURE_CHANNELS))
		return EOPNOTSUPP;
	return 0;
}

int nhcadv_query_device(struct ibv_context *context, struct nhcadv_device_attr *attr)
{
	if (!nhca_is_device(context->device))
		return EOPNOTSUPP;

	*attr = (struct nhcadv_device_attr){};
	if (to_nctx(context)->features & NHCA_FEATURE_DIRECT)
		attr->caps |= NHCADV_DEVICE_DIRECT;
	if (to_nctx(context)->features & NHCA_FEATURE_WATCH)
		attr->caps |= NHCADV_DEVICE_REG_CACHE;
	if (nhca_check_channels(context))
		return 0;

	attr->caps |= NHCADV_DEVICE_CHANNELS;
	if (to_nctx(context)->features & NHCA_FEATURE_FENCE)
		attr->caps |= NHCADV_DEVICE_FENCE;
	if (to_nctx(context)->features & NHCA_FEATURE_MOVE)
		attr->caps |= NHCADV_DEVICE_MOVE;
	if (to_nctx(context)->features & NHCA_FEATURE_PART)
		attr->caps |= NHCADV_DEVICE_PART;
	if (to_nctx(context)->features & NHCA_FEATURE_FRAMES)
		attr->caps |= NHCADV_DEVICE_FRAMES;
	if (to_nctx(context)->features & NHCA_FEATURE_ASK)
		attr->caps |= NHCADV_DEVICE_ASK;
	if (to_nctx(context)->features & NHCA_FEATURE_READ_FRAMES)
		attr->caps |= NHCADV_DEVICE_READ_FRAMES;
	if (to_nctx(context)->features & NHCA_FEATURE_ACCUMULATE)
		attr->caps |= NHCADV_DEVICE_ACCUMULATE;
	attr->max_packet = NHCA_FRAME_DATA;
	attr->max_frames = NHCA_MAX_FRAMES;
	attr->max_transfer = NHCA_MAX_TRANSFER;
	attr->max_transfer_packets = NHCA_MAX_TRANSFER_PACKETS;
	attr->min_segment = NHCA_MIN_SEGMENT;
	attr->max_segment = NHCA_MAX_SEGMENT;
	attr->max_rcxts = MAX_RCXTS;
	return 0;
}

int nhcadv_recover(struct ibv_context *context, uint32_t *count)
{
	DECLARE_COMMAND_BUFFER(cmdb, UVERBS_OBJECT_DEVICE, NHCA_METHOD_DEVICE_RECOVER, 1);
	uint32_t now;
	int ret;

	ret = nhca_check_channels(context);
	if (ret)
		return ret;

	fill_attr_out_ptr(cmdb, NHCA_ATTR_DEVICE_RECOVER_RESP_COUNT, &now);
	ret = execute_ioctl(context, cmdb);
	if (!ret && count)
		*count = now;
	return ret;
}

/* ---- a channel ---- */

int nhca_check_channel(struct ibv_qp *ibqp)
{
	return ibqp->qp_type == IBV_QPT_DRIVER && nhca_is_device(ibqp->context->device) ?
		       0 : EOPNOTSUPP;
}

static int check_attr(struct ibv_context *context, const struct ibv_qp_init_attr_ex *attr_ex,
		      const struct nhcadv_channel_init_attr *attr)
{
	int ret = nhca_check_channels(context);

	if (ret)
		return ret;
	if (attr_ex->qp_type != IBV_QPT_DRIVER || attr_ex->srq ||
	    !check_comp_mask(attr_ex->comp_mask,
			     IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) ||
	    ((attr_ex->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) && attr_ex->send_ops_flags))
		return EOPNOTSUPP;
	if (!(attr_ex->comp_mask & IBV_QP_INIT_ATTR_PD) || !attr_ex->send_cq ||
	    !attr_ex->recv_cq || attr->comp_mask || attr->reserved)
		return EINVAL;
	return 0;
}

static int map_rings(struct nhca_channel *ch, struct ibv_context *context,
		     const struct ibv_qp_cap *cap, const struct nhca_create_channel_resp *resp)
{
	static const struct nhca_ring_info none;
	struct nhca_qp *qp = &ch->qp;
	size_t data;
	int ret;

	/* A slot has room for inline data, SGEs, or the description of a transfer. */
	data = max_t(size_t, sizeof(struct nhca_rcxt_wr) + sizeof(struct nhca_rcxt_target),
		     cap->max_inline_data);
	data = max_t(size_t, data, cap->max_send_sge * sizeof(struct nhca_sge));
	ret = nhca_wq_init(&qp->sq, context, &resp->sq, sizeof(struct nhca_send_wqe), data,
			   cap->max_send_wr, cap->max_send_sge);
	if (ret)
		return ret;
	ret = nhca_wq_init(&qp->rq, context, &none, 0, 0, 0, 0);
	if (ret)
		goto err_sq;
	ret = nhca_fifo_init(&ch->fifo, context, &resp->fifo);
	if (ret)
		goto err_fifo;
	return 0;

err_fifo:
	nhca_fifo_fini(&ch->fifo);
	nhca_wq_fini(&qp->rq);
err_sq:
	nhca_wq_fini(&qp->sq);
	return ret;
}

struct ibv_qp *nhcadv_create_channel(struct ibv_context *context,
				     struct ibv_qp_init_attr_ex *attr_ex,
				     struct nhcadv_channel_init_attr *attr)
{
	struct ibv_qp_init_attr_ex kernel_attr = *attr_ex;
	struct nhca_ucreate_channel_resp resp = {};
	struct nhca_ucreate_channel cmd = {};
	struct nhca_channel *ch;
	int ret;

	ret = check_attr(context, attr_ex, attr);
	if (ret) {
		errno = ret;
		return NULL;
	}
	kernel_attr.comp_mask = IBV_QP_INIT_ATTR_PD;
	cmd.drv_payload.job = attr->job;
	cmd.drv_payload.frames = attr->frames;
	cmd.drv_payload.quantum = attr->quantum;

	ch = calloc(1, sizeof(*ch));
	if (!ch)
		return NULL;

	ret = ibv_cmd_create_qp_ex(context, &ch->qp.vqp, &kernel_attr, &cmd.ibv_cmd, sizeof(cmd),
				   &resp.ibv_resp, sizeof(resp));
	if (ret)
		goto err_free;
	ret = map_rings(ch, context, &kernel_attr.cap, &resp.drv_payload);
	if (ret)
		goto err_destroy;

	ch->qp.max_inline = kernel_attr.cap.max_inline_data;
	ch->key = resp.drv_payload.key;
	nhca_wr_set_channel_ops(ch);
	ch->qp.vqp.comp_mask |= VERBS_QP_EX;
	ch->qp.vqp.qp.state = IBV_QPS_RTS;
	attr_ex->cap = kernel_attr.cap;
	attr->frames = ch->fifo.ring.entries;
	return &ch->qp.vqp.qp;

err_destroy:
	ibv_cmd_destroy_qp(&ch->qp.vqp.qp);
err_free:
	free(ch);
	errno = ret;
	return NULL;
}

void nhca_channel_fini(struct nhca_channel *ch)
{
	nhca_fifo_fini(&ch->fifo);
}

int nhcadv_modify_channel(struct ibv_qp *ibqp, const struct nhcadv_channel_attr *attr,
			  uint32_t attr_mask)
{
	DECLARE_COMMAND_BUFFER(cmdb, UVERBS_OBJECT_QP, NHCA_METHOD_CHANNEL_MODIFY, 2);
	struct nhca_channel_modify cmd = {
		.mask = attr_mask,
		.recv_threshold = attr->recv_threshold,
		.send_threshold = attr->send_threshold,
		.quantum = attr->quantum,
	};
	int ret = nhca_check_channel(ibqp);

	if (ret)
		return ret;
	fill_attr_in_obj(cmdb, NHCA_ATTR_CHANNEL_MODIFY_HANDLE, ibqp->handle);
	fill_attr_in_ptr(cmdb, NHCA_ATTR_CHANNEL_MODIFY_CMD, &cmd);
	return execute_ioctl(ibqp->context, cmdb);
}

static int channel_target(struct ibv_qp *ibqp, struct ibv_ah *ah, uint32_t op)
{
	DECLARE_COMMAND_BUFFER(cmdb, UVERBS_OBJECT_QP, NHCA_METHOD_CHANNEL_TARGET, 2);
	struct nhca_channel_target cmd = { .op = op };
	int ret = nhca_check_channel(ibqp);

	if (ret)
		return ret;
	if (!(to_nctx(ibqp->context)->features & NHCA_FEATURE_MOVE))
		return EOPNOTSUPP;
	/* The kernel gets only the number of the address handle, so check its context here. */
	if (ah->context != ibqp->context)
		return EINVAL;
	cmd.ah_id = to_nah(ah)->id;
	fill_attr_in_obj(cmdb, NHCA_ATTR_CHANNEL_TARGET_HANDLE, ibqp->handle);
	fill_attr_in_ptr(cmdb, NHCA_ATTR_CHANNEL_TARGET_CMD, &cmd);
	return execute_ioctl(ibqp->context, cmdb);
}

int nhcadv_allow_target(struct ibv_qp *ibqp, struct ibv_ah *ah)
{
	static_assert(NHCADV_MAX_TARGETS == NHCA_MAX_TARGETS, "targets");
	return channel_target(ibqp, ah, NHCA_CHANNEL_TARGET_ALLOW);
}

int nhcadv_revoke_target(struct ibv_qp *ibqp, struct ibv_ah *ah)
{
	return channel_target(ibqp, ah, NHCA_CHANNEL_TARGET_REVOKE);
}

int nhcadv_query_channel(struct ibv_qp *ibqp, struct nhcadv_channel_info *info)
{
	DECLARE_COMMAND_BUFFER(cmdb, UVERBS_OBJECT_QP, NHCA_METHOD_CHANNEL_QUERY, 2);
	struct nhca_channel_info resp = {};
	int ret = nhca_check_channel(ibqp);

	if (ret)
		return ret;
	fill_attr_in_obj(cmdb, NHCA_ATTR_CHANNEL_QUERY_HANDLE, ibqp->handle);
	fill_attr_out_ptr(cmdb, NHCA_ATTR_CHANNEL_QUERY_RESP, &resp);
	ret = execute_ioctl(ibqp->context, cmdb);
	if (ret)
		return ret;

	*info = (struct nhcadv_channel_info){
		.state = resp.state,
		.reason = resp.reason,
		.job = resp.job,
		.key = to_nch(ibqp)->key,
		.frames = to_nch(ibqp)->fifo.ring.entries,
		.rcxts = resp.rcxts,
		.segment = resp.segment,
		.recv_threshold = resp.recv_threshold,
		.send_threshold = resp.send_threshold,
		.quantum = resp.quantum,
		.recoveries = resp.recoveries,
		.violation = resp.violation,
		.violation_channel = resp.violation_channel,
		.violation_tid = resp.violation_tid,
		.violation_rcxt = resp.violation_rcxt,
		.violation_pvo = resp.violation_pvo,
	};
	memcpy(info->counters, resp.counters, sizeof(info->counters));
	return 0;
}

/* ---- rCxts of a channel ---- */

int nhcadv_acquire_rcxts(struct ibv_qp *ibqp, uint64_t *ids, uint32_t count)
{
	DECLARE_COMMAND_BUFFER(cmdb, UVERBS_OBJECT_QP, NHCA_METHOD_CHANNEL_ACQUIRE, 2);
	int ret = nhca_check_channel(ibqp);

	if (ret)
		return ret;
	if (!count || count > MAX_RCXTS)
		return EINVAL;
	fill_attr_in_obj(cmdb, NHCA_ATTR_CHANNEL_ACQUIRE_HANDLE, ibqp->handle);
	fill_attr_out_ptr_array(cmdb, NHCA_ATTR_CHANNEL_ACQUIRE_RESP_IDS, ids, count);
	return execute_ioctl(ibqp->context, cmdb);
}

int nhcadv_release_rcxts(struct ibv_qp *ibqp, const uint64_t *ids, uint32_t count)
{
	DECLARE_COMMAND_BUFFER(cmdb, UVERBS_OBJECT_QP, NHCA_METHOD_CHANNEL_RELEASE, 2);
	int ret = nhca_check_channel(ibqp);

	if (ret)
		return ret;
	if (!count || count > MAX_RCXTS)
		return EINVAL;
	fill_attr_in_obj(cmdb, NHCA_ATTR_CHANNEL_RELEASE_HANDLE, ibqp->handle);
	fill_attr_in_ptr_array(cmdb, NHCA_ATTR_CHANNEL_RELEASE_IDS, ids, count);
	return execute_ioctl(ibqp->context, cmdb);
}
