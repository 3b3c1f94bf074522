// SPDX-License-Identifier: GPL-2.0
/*
 * Channels, which are QPs of type IB_QPT_DRIVER: checks of arguments and attributes, and the
 * methods that other QPs do not have.  rcxt/ sends and receives their packets.
 *
 * The methods ACQUIRE, RELEASE, MODIFY and TARGET hold nhca_qp.modify, so only one of them at a
 * time runs for a channel.  Doorbells, queries, ibv_modify_qp(), recovery and the receive path do
 * not hold this mutex, and may run at the same time.
 */
#include "objects.h"
#include "../rcxt/rcxt.h"
#include "../transport/qp.h"

#define UVERBS_MODULE_NAME nhca
#include <rdma/uverbs_named_ioctl.h>

/* ---- verbs ---- */

static int channel_check_init(const struct ib_qp_init_attr *init)
{
	const struct ib_qp_cap *cap = &init->cap;

	if (init->create_flags || init->rwq_ind_tbl)
		return -EOPNOTSUPP;
	if (!init->send_cq || !init->recv_cq || init->srq)
		return -EINVAL;
	/* IB_SIGNAL_ALL_WR is refused: a work request requests NHCA_WC_CH_LOCAL by its own flag. */
	if (init->sq_sig_type != IB_SIGNAL_REQ_WR)
		return -EINVAL;
	if (cap->max_recv_wr || cap->max_recv_sge)
		return -EINVAL;
	if (cap->max_send_wr > NHCA_MAX_QP_WR || cap->max_send_sge > NHCA_MAX_SGE ||
	    cap->max_inline_data > NHCA_FRAME_DATA)
		return -EINVAL;
	return 0;
}

static void channel_destroy(struct nhca_qp *qp)
{
	nhca_channel_destroy(qp->channel);
	nhca_qpn_free(qp->qpn);
}

static int channel_create(struct nhca_qp *qp, struct ib_qp_init_attr *init, struct ib_udata *udata)
{
	struct nhca_create_channel_resp resp = {};
	struct nhca_create_channel_cmd cmd;
	struct ib_qp_cap *cap = &init->cap;
	int err;

	/* A channel belongs to a job, and kernel consumers have no jobs. */
	if (!udata)
		return -EOPNOTSUPP;
	err = channel_check_init(init);
	if (err)
		return err;
	err = nhca_request(udata, &cmd, sizeof(cmd),
			   offsetofend(struct nhca_create_channel_cmd, job));
	if (err)
		return err;

	err = nhca_qp_count(qp, udata);
	if (err)
		return err;
	err = nhca_qpn_reserve(&qp->qpn);
	if (err)
		goto err_count;
	/* Set these first, because packets may arrive before nhca_channel_create() returns. */
	qp->ibqp.qp_num = qp->qpn;
	qp->who.qpn = qp->qpn;
	qp->channel = nhca_channel_create(&qp->ibqp, &qp->who, cap, &cmd, nhca_udata_uc(udata),
					  &resp);
	if (IS_ERR(qp->channel)) {
		err = PTR_ERR(qp->channel);
		goto err_qpn;
	}
	qp->sq.max_wr = cap->max_send_wr;
	qp->sq.max_sge = cap->max_send_sge;
	qp->sq.max_inline = cap->max_inline_data;

	err = nhca_respond(udata, &resp, sizeof(resp));
	if (!err)
		return 0;
	channel_destroy(qp);
	goto err_count;

err_qpn:
	nhca_qpn_free(qp->qpn);
err_count:
	nhca_qp_uncount(qp);
	return err;
}

/*
 * A channel is in RTS or ERR, and can only change from RTS to ERR.  This function checks the change
 * itself, because ib_modify_qp_is_ok() does not support IB_QPT_DRIVER.
 */
static int channel_modify(struct nhca_qp *qp, const struct ib_qp_attr *attr, int mask)
{
	if (mask != IB_QP_STATE || attr->qp_state != IB_QPS_ERR)
		return -EINVAL;
	nhca_channel_set_error(qp->channel, NHCA_CH_ERR_MODIFIED);
	return 0;
}

static void channel_query(struct nhca_qp *qp, struct ib_qp_attr *attr)
{
	*attr = (struct ib_qp_attr) {
		.qp_state = nhca_channel_state(qp->channel),
		.path_mig_state = IB_MIG_MIGRATED,
		.port_num = NHCA_PORT,
	};
}

const struct nhca_qp_ops nhca_channel_qp_ops = {
	.create = channel_create,
	.modify = channel_modify,
	.query = channel_query,
	.destroy = channel_destroy,
	.dump = nhca_channel_res_dump,
};

/* ---- methods of UVERBS_OBJECT_QP ---- */

static struct nhca_qp *channel_of(const struct uverbs_attr_bundle *attrs, u16 handle)
{
	struct ib_qp *ibqp = uverbs_attr_get_obj(attrs, handle);

	return ibqp->qp_type == IB_QPT_DRIVER ? to_nhca_qp(ibqp) : ERR_PTR(-EINVAL);
}

/*
 * The length of a uverbs attribute has 16 bits, and the id of an rCxt has 8 bytes.  So one call
 * acquires at most 8191 rCxts, even if the pool is larger.
 */
static int UVERBS_HANDLER(NHCA_METHOD_CHANNEL_ACQUIRE)(struct uverbs_attr_bundle *attrs)
{
	struct nhca_qp *qp = channel_of(attrs, NHCA_ATTR_CHANNEL_ACQUIRE_HANDLE);
	u64 *ids;
	int count;
	int err;

	if (IS_ERR(qp))
		return PTR_ERR(qp);
	count = uverbs_attr_ptr_get_array_size(attrs, NHCA_ATTR_CHANNEL_ACQUIRE_RESP_IDS,
					       sizeof(*ids));
	if (count < 0)
		return count;
	/* The core frees this memory with @attrs. */
	ids = uverbs_kcalloc(attrs, count, sizeof(*ids));
	if (IS_ERR(ids))
		return PTR_ERR(ids);

	mutex_lock(&qp->modify);
	err = nhca_channel_acquire(qp->channel, ids, count);
	if (err)
		goto unlock;
	err = uverbs_copy_to(attrs, NHCA_ATTR_CHANNEL_ACQUIRE_RESP_IDS, ids,
			     count * sizeof(*ids));
	/* After this error user space has not received the ids, so it cannot release the rCxts. */
	if (err)
		nhca_channel_release(qp->channel, ids, count);
unlock:
	mutex_unlock(&qp->modify);
	return err;
}

static int UVERBS_HANDLER(NHCA_METHOD_CHANNEL_RELEASE)(struct uverbs_attr_bundle *attrs)
{
	struct nhca_qp *qp = channel_of(attrs, NHCA_ATTR_CHANNEL_RELEASE_HANDLE);
	const u64 *ids = uverbs_attr_get_alloced_ptr(attrs, NHCA_ATTR_CHANNEL_RELEASE_IDS);
	int count;
	int err;

	if (IS_ERR(qp))
		return PTR_ERR(qp);
	count = uverbs_attr_ptr_get_array_size(attrs, NHCA_ATTR_CHANNEL_RELEASE_IDS,
					       sizeof(*ids));
	if (count < 0)
		return count;

	mutex_lock(&qp->modify);
	err = nhca_channel_release(qp->channel, ids, count);
	mutex_unlock(&qp->modify);
	return err;
}

static int UVERBS_HANDLER(NHCA_METHOD_CHANNEL_MODIFY)(struct uverbs_attr_bundle *attrs)
{
	struct nhca_qp *qp = channel_of(attrs, NHCA_ATTR_CHANNEL_MODIFY_HANDLE);
	struct nhca_channel_modify cmd;
	int err;

	if (IS_ERR(qp))
		return PTR_ERR(qp);
	/* The core has checked that bytes beyond the struct are 0. */
	err = uverbs_copy_from_or_zero(&cmd, attrs, NHCA_ATTR_CHANNEL_MODIFY_CMD);
	if (err)
		return err;

	mutex_lock(&qp->modify);
	err = nhca_channel_modify(qp->channel, &cmd);
	mutex_unlock(&qp->modify);
	return err;
}

static int UVERBS_HANDLER(NHCA_METHOD_CHANNEL_TARGET)(struct uverbs_attr_bundle *attrs)
{
	struct nhca_qp *qp = channel_of(attrs, NHCA_ATTR_CHANNEL_TARGET_HANDLE);
	struct nhca_channel_target cmd;
	int err;

	if (IS_ERR(qp))
		return PTR_ERR(qp);
	/* The core has checked that bytes beyond the struct are 0. */
	err = uverbs_copy_from_or_zero(&cmd, attrs, NHCA_ATTR_CHANNEL_TARGET_CMD);
	if (err)
		return err;

	mutex_lock(&qp->modify);
	err = nhca_channel_target(qp->channel, &cmd);
	mutex_unlock(&qp->modify);
	return err;
}

static int UVERBS_HANDLER(NHCA_METHOD_CHANNEL_QUERY)(struct uverbs_attr_bundle *attrs)
{
	struct nhca_qp *qp = channel_of(attrs, NHCA_ATTR_CHANNEL_QUERY_HANDLE);
	struct nhca_channel_info info;

	if (IS_ERR(qp))
		return PTR_ERR(qp);
	nhca_channel_query(qp->channel, &info);
	return uverbs_copy_to_struct_or_zero(attrs, NHCA_ATTR_CHANNEL_QUERY_RESP, &info,
					     sizeof(info));
}

/*
 * All methods have UVERBS_ACCESS_READ, because with UVERBS_ACCESS_WRITE a concurrent doorbell would
 * get EBUSY.
 */
DECLARE_UVERBS_NAMED_METHOD(NHCA_METHOD_CHANNEL_ACQUIRE,
			    UVERBS_ATTR_IDR(NHCA_ATTR_CHANNEL_ACQUIRE_HANDLE, UVERBS_OBJECT_QP,
					    UVERBS_ACCESS_READ, UA_MANDATORY),
			    UVERBS_ATTR_PTR_OUT(NHCA_ATTR_CHANNEL_ACQUIRE_RESP_IDS,
						UVERBS_ATTR_MIN_SIZE(sizeof(u64)),
						UA_MANDATORY));

DECLARE_UVERBS_NAMED_METHOD(NHCA_METHOD_CHANNEL_RELEASE,
			    UVERBS_ATTR_IDR(NHCA_ATTR_CHANNEL_RELEASE_HANDLE, UVERBS_OBJECT_QP,
					    UVERBS_ACCESS_READ, UA_MANDATORY),
			    UVERBS_ATTR_PTR_IN(NHCA_ATTR_CHANNEL_RELEASE_IDS,
					       UVERBS_ATTR_MIN_SIZE(sizeof(u64)),
					       UA_MANDATORY, UA_ALLOC_AND_COPY));

DECLARE_UVERBS_NAMED_METHOD(NHCA_METHOD_CHANNEL_MODIFY,
			    UVERBS_ATTR_IDR(NHCA_ATTR_CHANNEL_MODIFY_HANDLE, UVERBS_OBJECT_QP,
					    UVERBS_ACCESS_READ, UA_MANDATORY),
			    UVERBS_ATTR_PTR_IN(NHCA_ATTR_CHANNEL_MODIFY_CMD,
					       UVERBS_ATTR_STRUCT(struct nhca_channel_modify,
								  quantum),
					       UA_MANDATORY));

DECLARE_UVERBS_NAMED_METHOD(NHCA_METHOD_CHANNEL_TARGET,
			    UVERBS_ATTR_IDR(NHCA_ATTR_CHANNEL_TARGET_HANDLE, UVERBS_OBJECT_QP,
					    UVERBS_ACCESS_READ, UA_MANDATORY),
			    UVERBS_ATTR_PTR_IN(NHCA_ATTR_CHANNEL_TARGET_CMD,
					       UVERBS_ATTR_STRUCT(struct nhca_channel_target,
								  ah_id),
					       UA_MANDATORY));

DECLARE_UVERBS_NAMED_METHOD(NHCA_METHOD_CHANNEL_QUERY,
			    UVERBS_ATTR_IDR(NHCA_ATTR_CHANNEL_QUERY_HANDLE, UVERBS_OBJECT_QP,
					    UVERBS_ACCESS_READ, UA_MANDATORY),
			    UVERBS_ATTR_PTR_OUT(NHCA_ATTR_CHANNEL_QUERY_RESP,
						UVERBS_ATTR_STRUCT(struct nhca_channel_info,
								   counters),
						UA_MANDATORY));

ADD_UVERBS_METHODS(nhca_channel_methods, UVERBS_OBJECT_QP,
		   &UVERBS_METHOD(NHCA_METHOD_CHANNEL_ACQUIRE),
		   &UVERBS_METHOD(NHCA_METHOD_CHANNEL_RELEASE),
		   &UVERBS_METHOD(NHCA_METHOD_CHANNEL_MODIFY),
		   &UVERBS_METHOD(NHCA_METHOD_CHANNEL_TARGET),
		   &UVERBS_METHOD(NHCA_METHOD_CHANNEL_QUERY));

const struct uapi_definition nhca_channel_defs[] = {
	UAPI_DEF_CHAIN_OBJ_TREE(UVERBS_OBJECT_QP, &nhca_channel_methods),
	{}
};
