// SPDX-License-Identifier: GPL-2.0
/*
 * Receive work queues, indirection tables, and the raw packet QPs that distribute frames to them
 * (receive side scaling, RSS).
 *
 * A work queue is the receive half of a hidden raw packet QP: it uses the responder, the states and
 * the flush of this QP.
 */
#include <linux/slab.h>

#include "objects.h"
#include "../net/rss.h"
#include "../transport/qp.h"

/**
 * struct nhca_wq - a work queue
 * @ibwq: the RDMA core's part
 * @rx:   the hidden raw packet QP
 */
struct nhca_wq {
	struct ib_wq ibwq;
	struct nhca_qp rx;
};

static struct nhca_wq *to_nhca_wq(struct ib_wq *ibwq)
{
	return container_of(ibwq, struct nhca_wq, ibwq);
}

/* ---- work queues ---- */

/* ib_qp.event_handler of the hidden QP: raises the event of the work queue. */
static void nhca_wq_event(struct ib_event *event, void *context)
{
	struct nhca_wq *wq = context;
	struct ib_event ev = {
		.device = event->device,
		.element.wq = &wq->ibwq,
		.event = IB_EVENT_WQ_FATAL,
	};

	if (event->event == IB_EVENT_QP_FATAL && wq->ibwq.event_handler)
		wq->ibwq.event_handler(&ev, wq->ibwq.wq_context);
}

struct ib_wq *nhca_create_wq(struct ib_pd *pd, struct ib_wq_init_attr *init,
			     struct ib_udata *udata)
{
	struct ib_qp_init_attr qp_init = {
		.qp_type = IB_QPT_RAW_PACKET,
		.cap = { .max_recv_wr = init->max_wr, .max_recv_sge = init->max_sge },
	};
	struct nhca_dev *dev = to_nhca_dev(pd->device);
	struct nhca_qp_rings rings = {};
	struct nhca_create_wq_resp resp = {};
	struct nhca_create_wq_cmd cmd;
	struct nhca_wq *wq;
	struct nhca_qp *qp;
	int err;

	if (!udata || init->wq_type != IB_WQT_RQ || init->create_flags)
		return ERR_PTR(-EOPNOTSUPP);
	if (init->max_wr > NHCA_MAX_QP_WR || init->max_sge > NHCA_MAX_SGE)
		return ERR_PTR(-EINVAL);
	err = nhca_request(udata, &cmd, sizeof(cmd), 0);
	if (err)
		return ERR_PTR(err);
	wq = kzalloc(sizeof(*wq), GFP_KERNEL_ACCOUNT);
	if (!wq)
		return ERR_PTR(-ENOMEM);

	qp = &wq->rx;
	qp->ibqp.device = pd->device;
	qp->ibqp.pd = pd;
	qp->ibqp.recv_cq = init->cq;
	qp->ibqp.qp_type = IB_QPT_RAW_PACKET;
	qp->ibqp.event_handler = nhca_wq_event;
	qp->ibqp.qp_context = wq;
	mutex_init(&qp->modify);
	qp->dev = dev;
	qp->user = true;
	nhca_qp_who(qp);
	err = nhca_qp_count(qp, udata);
	if (err)
		goto err_free;
	rings.rq = (struct nhca_ring_user) { .uc = nhca_udata_uc(udata), .mem = cmd.rq };
	err = nhca_qp_init(qp, &qp_init, &rings);
	if (err)
		goto err_count;
	resp.rq = rings.rq.info;
	err = nhca_respond(udata, &resp, sizeof(resp));
	if (err)
		goto err_fini;

	init->max_wr = qp_init.cap.max_recv_wr;
	init->max_sge = qp_init.cap.max_recv_sge;
	wq->ibwq.wq_num = qp->qpn;
	wq->ibwq.state = IB_WQS_RESET;
	wq->ibwq.event_handler = init->event_handler;
	wq->ibwq.wq_context = init->wq_context;
	return &wq->ibwq;

err_fini:
	nhca_qp_fini(qp);
err_count:
	nhca_qp_uncount(qp);
err_free:
	mutex_destroy(&qp->modify);
	kfree(wq);
	return ERR_PTR(err);
}

int nhca_destroy_wq(struct ib_wq *ibwq, struct ib_udata *udata)
{
	struct nhca_wq *wq = to_nhca_wq(ibwq);

	nhca_qp_fini(&wq->rx);
	nhca_qp_uncount(&wq->rx);
	mutex_destroy(&wq->rx.modify);
	kfree(wq);
	return 0;
}

static enum ib_wq_state nhca_wq_state(const struct nhca_wq *wq)
{
	switch (READ_ONCE(wq->rx.state)) {
	case IB_QPS_RTR:
		return IB_WQS_RDY;
	case IB_QPS_ERR:
		return IB_WQS_ERR;
	default:
		return IB_WQS_RESET;
	}
}

static int nhca_wq_to(struct nhca_wq *wq, enum ib_wq_state state)
{
	static const struct ib_qp_attr attr = { .port_num = NHCA_PORT };
	struct nhca_qp *qp = &wq->rx;

	lockdep_assert_held(&qp->modify);
	switch (state) {
	case IB_WQS_RESET:
		return nhca_qp_modify(qp, IB_QPS_RESET, &attr, IB_QP_STATE);
	case IB_WQS_RDY:
		return nhca_qp_modify(qp, IB_QPS_INIT, &attr, IB_QP_STATE | IB_QP_PORT) ?:
		       nhca_qp_modify(qp, IB_QPS_RTR, &attr, IB_QP_STATE);
	default:
		return nhca_qp_modify(qp, IB_QPS_ERR, &attr, IB_QP_STATE);
	}
}

/* The permitted transitions are RESET to RDY, RDY to ERR, and each state to RESET. */
int nhca_modify_wq(struct ib_wq *ibwq, struct ib_wq_attr *attr, u32 mask, struct ib_udata *udata)
{
	struct nhca_wq *wq = to_nhca_wq(ibwq);
	enum ib_wq_state cur, new;
	int err = 0;

	if (mask & ~(IB_WQ_STATE | IB_WQ_CUR_STATE))
		return -EOPNOTSUPP;

	mutex_lock(&wq->rx.modify);
	cur = nhca_wq_state(wq);
	new = mask & IB_WQ_STATE ? attr->wq_state : cur;
	if (((mask & IB_WQ_CUR_STATE) && attr->curr_wq_state != cur) || new > IB_WQS_ERR ||
	    (new == IB_WQS_RDY && cur == IB_WQS_ERR))
		err = -EINVAL;
	else if (new != cur)
		err = nhca_wq_to(wq, new);
	if (!err)
		ibwq->state = new;
	mutex_unlock(&wq->rx.modify);
	return err;
}

/* ---- indirection tables ---- */

static struct nhca_ind_table *to_nhca_table(struct ib_rwq_ind_table *table)
{
	return container_of(table, struct nhca_ind_table, ibtable);
}

/* The core stores the table, and does not destroy the work queues of a table before the table. */
int nhca_create_rwq_ind_table(struct ib_rwq_ind_table *table,
			      struct ib_rwq_ind_table_init_attr *init, struct ib_udata *udata)
{
	struct nhca_ind_table *t = to_nhca_table(table);

	if (BIT(init->log_ind_tbl_size) > NHCA_MAX_RSS)
		return -EINVAL;
	t->owner = nhca_udata_user(udata);
	return nhca_obj_get(to_nhca_dev(table->device), t->owner, NHCA_POOL_TABLES);
}

int nhca_destroy_rwq_ind_table(struct ib_rwq_ind_table *table)
{
	nhca_obj_put(to_nhca_dev(table->device), to_nhca_table(table)->owner, NHCA_POOL_TABLES);
	return 0;
}

/* ---- queue pairs with an indirection table ---- */

static int nhca_rss_check(const struct ib_qp_init_attr *init, struct ib_udata *udata,
			  struct nhca_create_rss_cmd *cmd)
{
	const struct ib_qp_cap *cap = &init->cap;
	int err;

	if (!udata || init->qp_type != IB_QPT_RAW_PACKET || init->create_flags)
		return -EOPNOTSUPP;
	/* The QP only receives, and its work queues have the CQs and the receive requests. */
	if (init->send_cq || init->recv_cq || init->srq || cap->max_send_wr || cap->max_recv_wr ||
	    cap->max_inline_data)
		return -EINVAL;
	err = nhca_request(udata, cmd, sizeof(*cmd),
			   offsetofend(struct nhca_create_rss_cmd, rx_hash_key));
	if (err)
		return err;
	if ((cmd->rx_hash_fields & ~NHCA_RSS_FIELDS) || cmd->reserved)
		return -EOPNOTSUPP;
	return 0;
}

static int rss_create(struct nhca_qp *qp, struct ib_qp_init_attr *init, struct ib_udata *udata)
{
	const struct ib_rwq_ind_table *table = init->rwq_ind_tbl;
	u32 queues = BIT(table->log_ind_tbl_size), i;
	struct nhca_create_rss_cmd cmd;
	struct nhca_rss *rss;
	int err;

	err = nhca_rss_check(init, udata, &cmd);
	if (err)
		return err;
	rss = kzalloc(struct_size(rss, queue, queues), GFP_KERNEL_ACCOUNT);
	if (!rss)
		return -ENOMEM;
	memcpy(rss->key, cmd.rx_hash_key, sizeof(rss->key));
	rss->fields = cmd.rx_hash_fields;
	rss->mask = queues - 1;
	for (i = 0; i < queues; i++)
		rss->queue[i] = &to_nhca_wq(table->ind_tbl[i])->rx;

	err = nhca_qp_count(qp, udata);
	if (err)
		goto err_free;
	err = nhca_qpn_reserve(&qp->qpn);
	if (err)
		goto err_count;
	qp->ibqp.qp_num = qp->qpn;
	qp->who.qpn = qp->qpn;
	qp->rss = rss;
	return 0;

err_count:
	nhca_qp_uncount(qp);
err_free:
	kfree(rss);
	return err;
}

/* Only the work queues of the indirection table have states. */
static int rss_modify(struct nhca_qp *qp, const struct ib_qp_attr *attr, int mask)
{
	return -EOPNOTSUPP;
}

static void rss_query(struct nhca_qp *qp, struct ib_qp_attr *attr)
{
	*attr = (struct ib_qp_attr){ .qp_state = IB_QPS_RTR, .port_num = NHCA_PORT };
}

static void rss_destroy(struct nhca_qp *qp)
{
	nhca_qpn_free(qp->qpn);
	kfree(qp->rss);
}

/* The QP has no state to show. */
static int rss_dump(struct nhca_qp *qp, struct sk_buff *msg, bool raw)
{
	return raw ? -EOPNOTSUPP : 0;
}

const struct nhca_qp_ops nhca_rss_qp_ops = {
	.create = rss_create,
	.modify = rss_modify,
	.query = rss_query,
	.destroy = rss_destroy,
	.dump = rss_dump,
};
