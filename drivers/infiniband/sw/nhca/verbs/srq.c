// SPDX-License-Identifier: GPL-2.0
/*
 * Shared receive queues: creation, resizing and posting.
 */
#include "objects.h"
#include "../memory/memory.h"
#include "../queue/srq.h"

static const struct xa_limit nhca_srq_range = XA_LIMIT(1, (1 << 24) - 1);

/* Remove the SRQ's number, and wait until no request to an XRC target uses the SRQ. */
static void nhca_srq_unlist(struct nhca_srq *srq)
{
	xa_erase(&srq->dev->srq_ids, srq->srqn);
	if (srq->ibsrq.srq_type == IB_SRQT_XRC)
		synchronize_rcu_expedited();
}

static int nhca_srq_setup(struct nhca_srq *srq, struct ib_srq_attr *attr,
			  struct ib_udata *udata)
{
	struct nhca_ring_user user = { .uc = nhca_udata_uc(udata) };
	struct nhca_create_srq_resp resp = {};
	struct nhca_dev *dev = srq->dev;
	struct nhca_create_srq_cmd cmd;
	int err;

	err = nhca_request(udata, &cmd, sizeof(cmd), 0);
	if (err)
		return err;
	user.mem = cmd.rq;
	err = nhca_rwq_init(&srq->wq, attr->max_wr, attr->max_sge, udata ? &user : NULL);
	if (err)
		return err;

	err = xa_alloc_cyclic(&dev->srq_ids, &srq->srqn, srq, nhca_srq_range,
			      &dev->srq_next, GFP_KERNEL_ACCOUNT);
	if (err < 0)
		goto err_wq;

	if (srq->ibsrq.srq_type == IB_SRQT_XRC)
		srq->ibsrq.ext.xrc.srq_num = srq->srqn;
	if (udata) {
		resp.rq = user.info;
		resp.srqn = srq->srqn;
		err = nhca_respond(udata, &resp, sizeof(resp));
		if (err)
			goto err_id;
	}

	attr->max_wr = srq->wq.max_wr;
	attr->max_sge = srq->wq.max_sge;
	return 0;

err_id:
	nhca_srq_unlist(srq);
err_wq:
	nhca_rwq_free(&srq->wq);
	return err;
}

int nhca_create_srq(struct ib_srq *ibsrq, struct ib_srq_init_attr *init,
		    struct ib_udata *udata)
{
	struct nhca_dev *dev = to_nhca_dev(ibsrq->device);
	struct nhca_srq *srq = to_nhca_srq(ibsrq);
	int err;

	if (init->srq_type != IB_SRQT_BASIC && init->srq_type != IB_SRQT_XRC)
		return -EOPNOTSUPP;
	/* A new SRQ is not armed: the limit is not an attribute of creation. */
	if (!init->attr.max_wr || init->attr.max_wr > NHCA_MAX_SRQ_WR ||
	    init->attr.max_sge > NHCA_MAX_SGE)
		return -EINVAL;
	err = nhca_obj_get(dev, to_nhca_pd(ibsrq->pd)->owner, NHCA_POOL_SRQS);
	if (err)
		return err;

	srq->dev = dev;
	srq->user = !!udata;
	nhca_srq_init(srq);
	err = nhca_srq_setup(srq, &init->attr, udata);
	if (err)
		nhca_obj_put(dev, to_nhca_pd(ibsrq->pd)->owner, NHCA_POOL_SRQS);
	return err;
}

/*
 * Exchange the ring of the SRQ for @ring.
 * Return: 0: @ring is the old ring now; -EINVAL: @ring is too small for the posted requests, or
 * user space has stored an impossible producer index; -EBUSY: user space has changed its producer
 * index again and again; -EINTR: the process was killed.
 */
static int nhca_srq_swap(struct nhca_srq *srq, struct nhca_ring *ring)
{
	struct nhca_rwq_move m;
	int err;

	if (mutex_lock_killable(&srq->resize))
		return -EINTR;
	nhca_rwq_move_start(&srq->wq, &m, ring);
	do {
		err = nhca_rwq_move_step(&srq->wq, &m);
		if (err == -EAGAIN && fatal_signal_pending(current))
			err = -EINTR;
	} while (err == -EAGAIN);
	mutex_unlock(&srq->resize);
	return err;
}

static void nhca_srq_set_limit(struct nhca_srq *srq, u32 limit)
{
	spin_lock_irq(&srq->wq.lock);
	WRITE_ONCE(srq->limit, limit);
	spin_unlock_irq(&srq->wq.lock);
}

static int nhca_srq_resize(struct nhca_srq *srq, u32 max_wr, struct ib_udata *udata)
{
	struct nhca_ring_user user = { .uc = nhca_udata_uc(udata) };
	struct nhca_modify_srq_cmd cmd;
	struct nhca_rwq new;
	int err;

	err = nhca_request(udata, &cmd, sizeof(cmd),
			   offsetofend(struct nhca_modify_srq_cmd, ring_info_addr));
	if (err)
		return err;

	user.mem = cmd.rq;
	err = nhca_rwq_init(&new, max_wr, srq->wq.max_sge, udata ? &user : NULL);
	if (err)
		return err;

	/* Respond before the swap, because the swap cannot be undone. */
	if (udata && copy_to_user(u64_to_user_ptr(cmd.ring_info_addr), &user.info,
				  sizeof(user.info)))
		err = -EFAULT;
	if (!err)
		err = nhca_srq_swap(srq, &new.ring);
	/* Free the old ring, or after an error the new one. */
	nhca_rwq_free(&new);
	return err;
}

int nhca_modify_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr,
		    enum ib_srq_attr_mask mask, struct ib_udata *udata)
{
	struct nhca_srq *srq = to_nhca_srq(ibsrq);
	u32 max_wr = mask & IB_SRQ_MAX_WR ? attr->max_wr : srq->wq.max_wr;
	int err;

	if (mask & ~(IB_SRQ_MAX_WR | IB_SRQ_LIMIT))
		return -EINVAL;
	if (!max_wr || max_wr > NHCA_MAX_SRQ_WR)
		return -EINVAL;
	/* check the new limit; without a new limit, check the limit that is armed already */
	if ((mask & IB_SRQ_LIMIT ? attr->srq_limit : READ_ONCE(srq->limit)) > max_wr)
		return -EINVAL;

	if (mask & IB_SRQ_MAX_WR) {
		err = nhca_srq_resize(srq, max_wr, udata);
		if (err)
			return err;
	}
	if (mask & IB_SRQ_LIMIT)
		nhca_srq_set_limit(srq, attr->srq_limit);
	return 0;
}

int nhca_query_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr)
{
	struct nhca_srq *srq = to_nhca_srq(ibsrq);

	spin_lock_irq(&srq->wq.lock);
	attr->max_wr = srq->wq.max_wr;
	attr->max_sge = srq->wq.max_sge;
	attr->srq_limit = srq->limit;
	spin_unlock_irq(&srq->wq.lock);
	return 0;
}

int nhca_destroy_srq(struct ib_srq *ibsrq, struct ib_udata *udata)
{
	struct nhca_srq *srq = to_nhca_srq(ibsrq);

	/* The core has checked that no QP uses the SRQ, but XRC targets may still look it up. */
	nhca_srq_unlist(srq);
	nhca_srq_stop(srq);
	nhca_rwq_free(&srq->wq);
	nhca_obj_put(srq->dev, to_nhca_pd(ibsrq->pd)->owner, NHCA_POOL_SRQS);
	return 0;
}

int nhca_post_srq_recv(struct ib_srq *ibsrq, const struct ib_recv_wr *wr,
		       const struct ib_recv_wr **bad_wr)
{
	struct nhca_srq *srq = to_nhca_srq(ibsrq);
	int err = 0;

	for (; wr; wr = wr->next) {
		err = nhca_rwq_post(&srq->wq, wr);
		if (err) {
			*bad_wr = wr;
			break;
		}
	}
	return err;
}
