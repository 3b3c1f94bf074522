// SPDX-License-Identifier: GPL-2.0
/*
 * Completion queues: creation, resizing, polling and arming.
 */
#include <linux/etherdevice.h>
#include <linux/if_vlan.h>
#include <linux/sched/signal.h>

#include "objects.h"
#include "../queue/cq.h"

/* Return: the flags of struct ib_wc for a completion. */
static int nhca_wc_flags(const struct nhca_cqe *cqe)
{
	int flags = 0;

	if (cqe->flags & NHCA_WC_WITH_IMM)
		flags |= IB_WC_WITH_IMM;
	if (cqe->flags & NHCA_WC_WITH_INV)
		flags |= IB_WC_WITH_INVALIDATE;
	if (!(cqe->flags & NHCA_WC_GRH))
		return flags;

	/* UD: report those fields of the link layer that are known. */
	flags |= IB_WC_GRH | IB_WC_WITH_NETWORK_HDR_TYPE;
	if (!is_zero_ether_addr(cqe->smac))
		flags |= IB_WC_WITH_SMAC;
	if (cqe->vlan_id < VLAN_N_VID)
		flags |= IB_WC_WITH_VLAN;
	return flags;
}

static void nhca_wc_fill(struct ib_wc *wc, const struct nhca_cqe *cqe)
{
	*wc = (struct ib_wc) {
		.wr_id = cqe->wr_id,
		.status = cqe->status,
		.opcode = cqe->opcode,
		.vendor_err = cqe->vendor_err,
		.byte_len = cqe->byte_len,
		.qp = (struct ib_qp *)(uintptr_t)cqe->kernel,
		.src_qp = cqe->src_qp,
		.wc_flags = nhca_wc_flags(cqe),
		.pkey_index = cqe->pkey_index,
		.port_num = NHCA_PORT,
		.vlan_id = cqe->vlan_id,
		.network_hdr_type = cqe->network_hdr_type,
	};
	if (wc->wc_flags & IB_WC_WITH_INVALIDATE)
		wc->ex.invalidate_rkey = cqe->ex.invalidated_rkey;
	else
		wc->ex.imm_data = (__force __be32)cqe->ex.imm_data;
	memcpy(wc->smac, cqe->smac, sizeof(wc->smac));
}

static int nhca_cq_setup(struct nhca_cq *cq, const struct ib_cq_init_attr *attr,
			 struct ib_udata *udata)
{
	struct nhca_ring_user user = { .uc = nhca_udata_uc(udata) };
	struct nhca_create_cq_resp resp = {};
	struct nhca_create_cq_cmd cmd;
	int err;

	err = nhca_request(udata, &cmd, sizeof(cmd), 0);
	if (err)
		return err;
	user.mem = cmd.cq;
	nhca_cq_init(cq, !!udata);
	/* Without a completion channel a program gets no events, so it need not arm the CQ. */
	cq->arm_in_ring = udata && cq->ibcq.cq_context;
	cq->timestamps = attr->flags & IB_UVERBS_CQ_FLAGS_TIMESTAMP_COMPLETION;
	err = nhca_ring_alloc(&cq->ring, attr->cqe, sizeof(struct nhca_cqe), udata ? &user : NULL);
	if (err)
		return err;
	nhca_cq_enable_arm(cq);

	if (udata) {
		resp.cq = user.info;
		err = nhca_respond(udata, &resp, sizeof(resp));
		if (err) {
			nhca_ring_free(&cq->ring);
			return err;
		}
	}
	cq->ibcq.cqe = nhca_ring_entries(&cq->ring);
	return 0;
}

static int nhca_cq_create(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
			  struct ib_udata *udata)
{
	struct nhca_dev *dev = to_nhca_dev(ibcq->device);
	struct nhca_cq *cq = to_nhca_cq(ibcq);
	int err;

	/* IB_UVERBS_CQ_FLAGS_IGNORE_OVERRUN is not supported. */
	if (attr->flags & ~IB_UVERBS_CQ_FLAGS_TIMESTAMP_COMPLETION)
		return -EOPNOTSUPP;
	if (!attr->cqe || attr->cqe > NHCA_MAX_CQE)
		return -EINVAL;
	if (attr->comp_vector >= dev->ibdev.num_comp_vectors)
		return -EINVAL;
	cq->owner = nhca_udata_user(udata);
	err = nhca_obj_get(dev, cq->owner, NHCA_POOL_CQS);
	if (err)
		return err;

	err = nhca_cq_setup(cq, attr, udata);
	if (err)
		nhca_obj_put(dev, cq->owner, NHCA_POOL_CQS);
	return err;
}

#ifdef NHCA_OLD_CREATE_CQ
int nhca_create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
		   struct ib_udata *udata)
{
	return nhca_cq_create(ibcq, attr, udata);
}
#else
int nhca_create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
		   struct uverbs_attr_bundle *attrs)
{
	return nhca_cq_create(ibcq, attr, attrs ? &attrs->driver_udata : NULL);
}
#endif

int nhca_destroy_cq(struct ib_cq *ibcq, struct ib_udata *udata)
{
	struct nhca_cq *cq = to_nhca_cq(ibcq);

	/* The core has checked that no object uses the CQ, so no completion is posted any more. */
	nhca_cq_stop(cq);
	nhca_ring_free(&cq->ring);
	nhca_obj_put(to_nhca_dev(ibcq->device), cq->owner, NHCA_POOL_CQS);
	return 0;
}

int nhca_modify_cq(struct ib_cq *ibcq, u16 count, u16 period_us)
{
	nhca_cq_moderate(to_nhca_cq(ibcq), count, period_us);
	return 0;
}

/*
 * Exchange the ring of the CQ for @ring.
 * Return: 0: @ring is the old ring now; -EINVAL: @ring is too small for the unpolled entries, or
 * user space has stored an impossible consumer index; -EINTR: the process was killed.
 */
static int nhca_cq_swap(struct nhca_cq *cq, struct nhca_ring *ring)
{
	struct nhca_cq_move m;
	int err;

	if (mutex_lock_killable(&cq->resize))
		return -EINTR;
	nhca_cq_move_start(cq, &m, ring);
	do {
		err = nhca_cq_move_step(cq, &m);
		/* if a consumer polls all the time, only this check may end the loop */
		if (err == -EAGAIN && fatal_signal_pending(current))
			err = -EINTR;
	} while (err == -EAGAIN);
	mutex_unlock(&cq->resize);
	return err;
}

static int nhca_cq_resize(struct nhca_cq *cq, u32 cqe, struct ib_udata *udata)
{
	struct nhca_ring_user user = { .uc = nhca_udata_uc(udata) };
	struct nhca_resize_cq_resp resp = {};
	struct nhca_resize_cq_cmd cmd;
	struct nhca_ring ring;
	int err;

	if (!cqe || cqe > NHCA_MAX_CQE)
		return -EINVAL;
	err = nhca_request(udata, &cmd, sizeof(cmd), 0);
	if (err)
		return err;

	user.mem = cmd.cq;
	err = nhca_ring_alloc(&ring, cqe, sizeof(struct nhca_cqe), udata ? &user : NULL);
	if (err)
		return err;

	/* Respond before the swap, because the swap cannot be undone. */
	if (udata) {
		resp.cq = user.info;
		err = nhca_respond(udata, &resp, sizeof(resp));
	}
	if (!err)
		err = nhca_cq_swap(cq, &ring);
	/* Free the old ring, or after an error the new one. */
	nhca_ring_free(&ring);
	return err;
}

#ifdef NHCA_OLD_RESIZE_CQ
int nhca_resize_cq(struct ib_cq *ibcq, int cqe, struct ib_udata *udata)
{
	if (cqe < 0)
		return -EINVAL;
	return nhca_cq_resize(to_nhca_cq(ibcq), cqe, udata);
}
#else
int nhca_resize_cq(struct ib_cq *ibcq, unsigned int cqe, struct ib_udata *udata)
{
	return nhca_cq_resize(to_nhca_cq(ibcq), cqe, udata);
}
#endif

/* For kernel consumers only, because uverbs_cmd_mask has no IB_USER_VERBS_CMD_POLL_CQ. */
int nhca_poll_cq(struct ib_cq *ibcq, int num_entries, struct ib_wc *wc)
{
	struct nhca_cq *cq = to_nhca_cq(ibcq);
	struct nhca_cqe *cqe;
	unsigned long flags;
	int n;

	spin_lock_irqsave(&cq->lock, flags);
	for (n = 0; n < num_entries; n++) {
		cqe = nhca_cq_next(cq);
		if (!cqe)
			break;
		nhca_wc_fill(wc++, cqe);
	}
	if (n)
		nhca_ring_release(&cq->ring, cq->cons);
	spin_unlock_irqrestore(&cq->lock, flags);
	return n;
}

int nhca_req_notify_cq(struct ib_cq *ibcq, enum ib_cq_notify_flags flags)
{
	bool waiting = nhca_cq_arm(to_nhca_cq(ibcq), flags & IB_CQ_SOLICITED_MASK);

	return waiting && (flags & IB_CQ_REPORT_MISSED_EVENTS);
}
