// SPDX-License-Identifier: GPL-2.0
/*
 * Queue pairs: checks of arguments and attributes.  Requester and responder are in transport/, and
 * channels are in channel.c.
 */
#include <linux/if_arp.h>
#include <rdma/ib_addr.h>

#include "objects.h"
#include "../rcxt/rcxt.h"
#include "../transport/rx.h"

/* Rights of a QP.  Only regions of files have IB_ACCESS_FLUSH_PERSISTENT. */
#define NHCA_QP_ACCESS	(IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE | \
			 IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_ATOMIC | \
			 IB_ACCESS_MW_BIND | IB_ACCESS_FLUSH_GLOBAL | \
			 IB_ACCESS_FLUSH_PERSISTENT | IB_ACCESS_OPTIONAL | \
			 IB_ACCESS_ON_DEMAND | IB_ACCESS_HUGETLB)

/* Encoded timeouts and RNR timers have 5 bits, retry counts 3 bits (IBTA 9.7.5, 11.2) */
#define NHCA_MAX_TIMER	31
#define NHCA_MAX_RETRY	7

/*
 * Check type, CQs and SRQ of a new QP.
 * Return: 0; -EOPNOTSUPP: the driver does not support the type, or not for kernel consumers;
 * -EINVAL: a CQ or the XRC domain is missing, or a type that cannot have an SRQ has one.
 */
static int nhca_qp_check_type(const struct ib_qp_init_attr *init, bool user)
{
	switch (init->qp_type) {
	case IB_QPT_RC:
	case IB_QPT_UC:
	case IB_QPT_UD:
		break;
	case IB_QPT_RAW_PACKET:
		/* The core has checked CAP_NET_RAW.  Kernel consumers can use the netdev itself. */
		if (!user)
			return -EOPNOTSUPP;
		break;
	case IB_QPT_XRC_INI:
		/* Kernel consumers cannot name an SRQ: struct ib_send_wr has no SRQ number. */
		if (!user)
			return -EOPNOTSUPP;
		return init->send_cq && !init->srq ? 0 : -EINVAL;
	case IB_QPT_XRC_TGT:
		return init->xrcd && !init->srq ? 0 : -EINVAL;
	case IB_QPT_GSI:
		if (init->srq)
			return -EINVAL;
		break;
	default:
		return -EOPNOTSUPP;
	}
	return init->send_cq && init->recv_cq ? 0 : -EINVAL;
}

static int nhca_qp_check_init(const struct ib_qp_init_attr *init, bool user)
{
	const struct ib_qp_cap *cap = &init->cap;
	int err;

	err = nhca_qp_check_type(init, user);
	if (err)
		return err;
	if (init->create_flags)
		return -EOPNOTSUPP;
	if (cap->max_send_wr > NHCA_MAX_QP_WR || cap->max_send_sge > NHCA_MAX_SGE ||
	    cap->max_inline_data > NHCA_MAX_INLINE)
		return -EINVAL;
	/* With an SRQ the QP has no receive queue. */
	if (!init->srq && (cap->max_recv_wr > NHCA_MAX_QP_WR || cap->max_recv_sge > NHCA_MAX_SGE))
		return -EINVAL;
	return 0;
}

void nhca_qp_who(struct nhca_qp *qp)
{
	qp->who.dev = qp->dev->ibdev.index;
	qp->who.counters = qp->dev->counters;
}

int nhca_qp_count(struct nhca_qp *qp, struct ib_udata *udata)
{
	struct nhca_user *user = nhca_udata_user(udata);
	int err;

	err = nhca_obj_get(qp->dev, user, NHCA_POOL_QPS);
	/* a counted reference, because an XRC target may outlive the process that created it */
	if (!err)
		qp->owner = nhca_user_hold(user);
	return err;
}

void nhca_qp_uncount(struct nhca_qp *qp)
{
	nhca_obj_put(qp->dev, qp->owner, NHCA_POOL_QPS);
	nhca_user_put(qp->owner);
	qp->owner = NULL;
}

static int transport_create(struct nhca_qp *qp, struct ib_qp_init_attr *init,
			    struct ib_udata *udata)
{
	struct nhca_qp_rings rings = {};
	struct nhca_create_qp_resp resp = {};
	struct nhca_create_qp_cmd cmd;
	int err;

	err = nhca_qp_check_init(init, udata) ?: nhca_request(udata, &cmd, sizeof(cmd), 0);
	if (err)
		return err;
	rings.sq = (struct nhca_ring_user) { .uc = nhca_udata_uc(udata), .mem = cmd.sq };
	rings.rq = (struct nhca_ring_user) { .uc = nhca_udata_uc(udata), .mem = cmd.rq };

	qp->sig_all = init->sq_sig_type == IB_SIGNAL_ALL_WR;
	qp->xrcd = init->xrcd;
	err = nhca_qp_count(qp, udata);
	if (err)
		return err;
	err = nhca_qp_init(qp, init, udata ? &rings : NULL);
	if (err)
		goto err_count;

	if (udata) {
		resp.sq = rings.sq.info;
		resp.rq = rings.rq.info;
		err = nhca_respond(udata, &resp, sizeof(resp));
		if (err)
			goto err_fini;
	}
	return 0;

err_fini:
	nhca_qp_fini(qp);
err_count:
	nhca_qp_uncount(qp);
	return err;
}

/* Return: true if timers, retry counts, depths, QPN and PSNs are within their ranges. */
static bool nhca_qp_ranges_ok(const struct ib_qp_attr *attr, int mask)
{
	if ((mask & IB_QP_TIMEOUT) && attr->timeout > NHCA_MAX_TIMER)
		return false;
	if ((mask & IB_QP_MIN_RNR_TIMER) && attr->min_rnr_timer > NHCA_MAX_TIMER)
		return false;
	if ((mask & IB_QP_RETRY_CNT) && attr->retry_cnt > NHCA_MAX_RETRY)
		return false;
	if ((mask & IB_QP_RNR_RETRY) && attr->rnr_retry > NHCA_MAX_RETRY)
		return false;
	if ((mask & IB_QP_MAX_QP_RD_ATOMIC) && attr->max_rd_atomic > NHCA_MAX_RD_ATOM)
		return false;
	if ((mask & IB_QP_MAX_DEST_RD_ATOMIC) && attr->max_dest_rd_atomic > NHCA_MAX_RD_ATOM)
		return false;
	if ((mask & IB_QP_DEST_QPN) && attr->dest_qp_num > NHCA_QPN_MASK)
		return false;
	if ((mask & IB_QP_RQ_PSN) && attr->rq_psn > NHCA_PSN_MASK)
		return false;
	if ((mask & IB_QP_SQ_PSN) && attr->sq_psn > NHCA_PSN_MASK)
		return false;
	return true;
}

/* Return: true if the path MTU is valid and not above the active MTU of the port (IBTA 11.2). */
static bool nhca_qp_mtu_ok(const struct nhca_dev *dev, enum ib_mtu mtu)
{
	return mtu >= IB_MTU_256 && mtu <= IB_MTU_4096 &&
	       ib_mtu_enum_to_int(mtu) <= READ_ONCE(dev->mtu);
}

/* Return: true if a connected QP can use @ah.  net/av.c checks the addresses. */
static bool nhca_qp_path_ok(const struct rdma_ah_attr *ah)
{
	const struct ib_global_route *grh = rdma_ah_read_grh(ah);

	return ah->type == RDMA_AH_ATTR_TYPE_ROCE &&
	       (rdma_ah_get_ah_flags(ah) & IB_AH_GRH) &&
	       rdma_ah_get_port_num(ah) == NHCA_PORT &&
	       !rdma_is_multicast_addr((struct in6_addr *)grh->dgid.raw);
}

static int nhca_qp_check_attr(struct nhca_qp *qp, const struct ib_qp_attr *attr, int mask)
{
	/* Automatic path migration and resizing of QPs are not in device_cap_flags. */
	if (mask & (IB_QP_ALT_PATH | IB_QP_CAP))
		return -EOPNOTSUPP;
	if ((mask & IB_QP_PATH_MIG_STATE) && attr->path_mig_state != IB_MIG_MIGRATED)
		return -EOPNOTSUPP;

	if ((mask & IB_QP_PORT) && attr->port_num != NHCA_PORT)
		return -EINVAL;
	if ((mask & IB_QP_PKEY_INDEX) && attr->pkey_index >= NHCA_MAX_PKEYS)
		return -EINVAL;
	if ((mask & IB_QP_ACCESS_FLAGS) && (attr->qp_access_flags & ~NHCA_QP_ACCESS))
		return -EINVAL;
	if ((mask & IB_QP_PATH_MTU) && !nhca_qp_mtu_ok(qp->dev, attr->path_mtu))
		return -EINVAL;
	if ((mask & IB_QP_AV) && !nhca_qp_path_ok(&attr->ah_attr))
		return -EINVAL;
	return nhca_qp_ranges_ok(attr, mask) ? 0 : -EINVAL;
}

static int nhca_qp_apply(struct nhca_qp *qp, const struct ib_qp_attr *attr, int mask)
{
	enum ib_qp_state cur = READ_ONCE(qp->state);
	enum ib_qp_state new = mask & IB_QP_STATE ? attr->qp_state : cur;
	int err;

	lockdep_assert_held(&qp->modify);
	/* If the consumer names a current state, the QP must be in this state. */
	if ((mask & IB_QP_CUR_STATE) && attr->cur_qp_state != cur)
		return -EINVAL;
	/*
	 * ib_modify_qp_is_ok() of older kernels allows IB_QP_RATE_LIMIT for raw packet QPs only, so
	 * the call omits this flag.  The second condition checks the flag.
	 */
	if (!ib_modify_qp_is_ok(cur, new, qp->ibqp.qp_type, mask & ~IB_QP_RATE_LIMIT))
		return -EINVAL;
	if ((mask & IB_QP_RATE_LIMIT) &&
	    (new != IB_QPS_RTS || qp->ibqp.qp_type == IB_QPT_XRC_TGT))
		return -EINVAL;
	err = nhca_qp_check_attr(qp, attr, mask);
	if (err)
		return err;
	return nhca_qp_modify(qp, new, attr, mask);
}

static int transport_modify(struct nhca_qp *qp, const struct ib_qp_attr *attr, int mask)
{
	int err;

	if (mask & ~(IB_QP_ATTR_STANDARD_BITS | IB_QP_RATE_LIMIT))
		return -EOPNOTSUPP;

	/* Two threads of a process may modify a QP at the same time. */
	mutex_lock(&qp->modify);
	err = nhca_qp_apply(qp, attr, mask);
	mutex_unlock(&qp->modify);
	return err;
}

static void nhca_qp_cap(const struct nhca_qp *qp, struct ib_qp_cap *cap)
{
	*cap = (struct ib_qp_cap) {
		.max_send_wr = qp->sq.max_wr,
		.max_send_sge = qp->sq.max_sge,
		.max_inline_data = qp->sq.max_inline,
	};
	if (!qp->ibqp.srq) {
		cap->max_recv_wr = qp->rq.wq.max_wr;
		cap->max_recv_sge = qp->rq.wq.max_sge;
	}
}

static void transport_query(struct nhca_qp *qp, struct ib_qp_attr *attr)
{
	const struct nhca_qp_attr *from = &qp->attr;

	/* Attributes change only with rq.lock and sq.lock held: one lock is enough to read them. */
	spin_lock_bh(&qp->rq.lock);
	*attr = (struct ib_qp_attr) {
		.qp_state = READ_ONCE(qp->state),
		.path_mtu = from->path_mtu,
		.path_mig_state = IB_MIG_MIGRATED,
		.qkey = from->qkey,
		.rq_psn = qp->rq.psn,
		.sq_psn = READ_ONCE(qp->sq.psn),
		.dest_qp_num = from->dest_qp_num,
		.qp_access_flags = from->qp_access_flags,
		.pkey_index = from->pkey_index,
		.en_sqd_async_notify = from->en_sqd_async_notify,
		.max_rd_atomic = from->max_rd_atomic,
		.max_dest_rd_atomic = from->max_dest_rd_atomic,
		.min_rnr_timer = from->min_rnr_timer,
		.port_num = from->port_num,
		.timeout = from->timeout,
		.retry_cnt = from->retry_cnt,
		.rnr_retry = from->rnr_retry,
		.rate_limit = nhca_pace_rate(qp),
	};
	attr->sq_draining = attr->qp_state == IB_QPS_SQD && READ_ONCE(qp->sq.draining);
	if (qp->av)
		nhca_av_to_attr(qp->av, &attr->ah_attr);
	spin_unlock_bh(&qp->rq.lock);
}

static void transport_destroy(struct nhca_qp *qp)
{
	nhca_mcast_detach_all(qp);
	nhca_qp_fini(qp);
}

const struct nhca_qp_ops nhca_transport_qp_ops = {
	.create = transport_create,
	.modify = transport_modify,
	.query = transport_query,
	.destroy = transport_destroy,
	.dump = nhca_transport_dump,
};

static void gone_query(struct nhca_qp *qp, struct ib_qp_attr *attr)
{
	*attr = (struct ib_qp_attr) { .qp_state = IB_QPS_RESET, .port_num = NHCA_PORT };
}

static int gone_dump(struct nhca_qp *qp, struct sk_buff *msg, bool raw)
{
	return 0;
}

/*
 * A QP that is being destroyed.  `rdma resource' may find it until nhca_destroy_qp() has returned,
 * because only new kernels have rdma_restrack_begin_del().
 */
static const struct nhca_qp_ops gone_qp_ops = {
	.query = gone_query,
	.dump = gone_dump,
};

static const struct nhca_qp_ops *qp_ops_of(const struct ib_qp_init_attr *init)
{
	if (init->qp_type == IB_QPT_DRIVER)
		return &nhca_channel_qp_ops;
	if (init->rwq_ind_tbl)
		return &nhca_rss_qp_ops;
	return &nhca_transport_qp_ops;
}

int nhca_create_qp(struct ib_qp *ibqp, struct ib_qp_init_attr *init,
		   struct ib_udata *udata)
{
	struct nhca_qp *qp = to_nhca_qp(ibqp);
	int err;

	qp->ops = qp_ops_of(init);
	qp->dev = to_nhca_dev(ibqp->device);
	qp->user = !!udata;
	/* a tun or WireGuard netdev has no Ethernet frames */
	if (init->qp_type == IB_QPT_RAW_PACKET && qp->dev->netdev->type == ARPHRD_NONE)
		return -EOPNOTSUPP;
	mutex_init(&qp->modify);
	nhca_qp_who(qp);
	err = qp->ops->create(qp, init, udata);
	if (err)
		mutex_destroy(&qp->modify);
	return err;
}

int nhca_modify_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		   struct ib_udata *udata)
{
	struct nhca_qp *qp = to_nhca_qp(ibqp);

	return qp->ops->modify(qp, attr, mask);
}

int nhca_query_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		  struct ib_qp_init_attr *init)
{
	struct nhca_qp *qp = to_nhca_qp(ibqp);

	/* nhca_destroy_qp() may be running, and waits for this read-side section */
	rcu_read_lock();
	READ_ONCE(qp->ops)->query(qp, attr);
	rcu_read_unlock();
	attr->cur_qp_state = attr->qp_state;
	nhca_qp_cap(qp, &attr->cap);

	*init = (struct ib_qp_init_attr) {
		.event_handler = ibqp->event_handler,
		.qp_context = ibqp->qp_context,
		.send_cq = ibqp->send_cq,
		.recv_cq = ibqp->recv_cq,
		.srq = ibqp->srq,
		.xrcd = qp->xrcd,
		.cap = attr->cap,
		.sq_sig_type = qp->sig_all ? IB_SIGNAL_ALL_WR : IB_SIGNAL_REQ_WR,
		.qp_type = ibqp->qp_type,
		.port_num = NHCA_PORT,
	};
	return 0;
}

int nhca_destroy_qp(struct ib_qp *ibqp, struct ib_udata *udata)
{
	struct nhca_qp *qp = to_nhca_qp(ibqp);
	const struct nhca_qp_ops *ops = qp->ops;

	/* destroy() waits for readers of the old operations before it frees memory that they use */
	WRITE_ONCE(qp->ops, &gone_qp_ops);
	ops->destroy(qp);
	nhca_qp_uncount(qp);
	mutex_destroy(&qp->modify);
	return 0;
}

int nhca_post_send(struct ib_qp *ibqp, const struct ib_send_wr *wr,
		   const struct ib_send_wr **bad_wr)
{
	struct nhca_qp *qp = to_nhca_qp(ibqp);
	int err = 0;

	/* IBTA 10.3.1: posting before RTS is an immediate error; SQD, SQE and ERR allow posts. */
	if (READ_ONCE(qp->state) < IB_QPS_RTS) {
		*bad_wr = wr;
		return -EINVAL;
	}

	for (; wr; wr = wr->next) {
		err = nhca_send_post(qp, wr);
		if (err) {
			*bad_wr = wr;
			break;
		}
	}
	nhca_send_doorbell(qp);
	return err;
}

static int nhca_post_recv_list(struct nhca_qp *qp, const struct ib_recv_wr *wr,
			       const struct ib_recv_wr **bad_wr)
{
	int err;

	/* IBTA 10.3.1: all states but RESET accept a receive request. */
	if (READ_ONCE(qp->state) == IB_QPS_RESET || qp->ibqp.srq) {
		*bad_wr = wr;
		return -EINVAL;
	}

	for (; wr; wr = wr->next) {
		err = nhca_rwq_post(&qp->rq.wq, wr);
		if (err) {
			*bad_wr = wr;
			return err;
		}
	}
	return 0;
}

int nhca_post_recv(struct ib_qp *ibqp, const struct ib_recv_wr *wr,
		   const struct ib_recv_wr **bad_wr)
{
	struct nhca_qp *qp = to_nhca_qp(ibqp);
	int err;

	err = nhca_post_recv_list(qp, wr, bad_wr);
	/*
	 * The state is read after the post has released the ring's lock.  A flush that did not find
	 * the new requests took this lock earlier, after the state became ERR.  So this read
	 * returns ERR, and nhca_recv_doorbell() has the requests flushed.
	 */
	if (READ_ONCE(qp->state) == IB_QPS_ERR)
		nhca_recv_doorbell(qp);
	return err;
}
