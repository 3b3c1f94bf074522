// SPDX-License-Identifier: GPL-2.0
/* Life and states of a queue pair (IBTA 10.3). */
#include <linux/random.h>
#include <linux/slab.h>

#include "../memory/memcg.h"
#include "../memory/pageref.h"
#include "../observe/stub.h"
#include "engine.h"

static void nhca_qp_raise(struct nhca_qp *qp, enum ib_event_type event)
{
	struct ib_event ev = {
		.device = qp->ibqp.device,
		.element.qp = &qp->ibqp,
		.event = event,
	};

	qp->ibqp.event_handler(&ev, qp->ibqp.qp_context);
}

/* Raise the events that nhca_qp_event() left to bottom-half work. */
static void nhca_qp_raise_pending(struct nhca_qp *qp)
{
	unsigned long events;
	unsigned int event;

	if (likely(!atomic_read(&qp->events)))
		return;
	events = atomic_xchg(&qp->events, 0);
	/*
	 * IB_EVENT_COMM_EST comes first, because a connection is established before anything else
	 * happens to the connection
	 */
	if (__test_and_clear_bit(IB_EVENT_COMM_EST, &events))
		nhca_qp_raise(qp, IB_EVENT_COMM_EST);
	/* an error comes before "last WQE reached", which has a higher number */
	for_each_set_bit(event, &events, 32)
		nhca_qp_raise(qp, event);
}

void nhca_qp_event(struct nhca_qp *qp, enum ib_event_type event)
{
	/* nhca_qp_raise_pending() raises the lower bit first */
	BUILD_BUG_ON(BIT(IB_EVENT_QP_LAST_WQE_REACHED) < BIT(IB_EVENT_QP_ACCESS_ERR));

	if (!qp->ibqp.event_handler)
		return;
	/* the handler of uverbs may run here, because it only queues the event for the program */
	if (qp->user) {
		nhca_qp_raise(qp, event);
		return;
	}
	atomic_or(BIT(event), &qp->events);
	nhca_bh_queue(&qp->kick);
}

void nhca_qp_set_error(struct nhca_qp *qp, int event)
{
	enum ib_qp_state old = READ_ONCE(qp->state);

	do {
		if (old == IB_QPS_RESET || old == IB_QPS_ERR)
			return;
	} while (!try_cmpxchg(&qp->state, &old, IB_QPS_ERR));

	nhca_bh_queue(&qp->kick);
	if (event >= 0)
		nhca_qp_event(qp, event);
}

void nhca_qp_set_sqe(struct nhca_qp *qp)
{
	enum ib_qp_state old = READ_ONCE(qp->state);

	do {
		if (old != IB_QPS_RTS && old != IB_QPS_SQD)
			return;
	} while (!try_cmpxchg(&qp->state, &old, IB_QPS_SQE));
}

/*
 * Send the piggybacked ACK that waits, because this QP sends no request any more.  The peer's
 * requests were executed, and without the ACK they would fail at the peer.  rq.lock held.
 */
static void nhca_qp_settle(struct nhca_qp *qp)
{
	lockdep_assert_held(&qp->rq.lock);
	rcu_read_lock();
	nhca_piggyback_flush(qp);
	rcu_read_unlock();
}

void nhca_qp_flush(struct nhca_qp *qp)
{
	spin_lock_bh(&qp->rq.lock);
	nhca_qp_settle(qp);
	if (READ_ONCE(qp->state) == IB_QPS_ERR)
		nhca_rq_flush(qp);
	spin_unlock_bh(&qp->rq.lock);
	nhca_sq_kick(qp);
}

/* Run responder and requester.  BH disabled. */
static void nhca_qp_run(struct nhca_qp *qp)
{
	if (READ_ONCE(qp->state) == IB_QPS_ERR) {
		nhca_qp_flush(qp);
		return;
	}
	spin_lock(&qp->rq.lock);
	rcu_read_lock();
	if (nhca_rq_open(qp)) {
		nhca_defer_run(qp);
		nhca_resp_run(qp);
	}
	rcu_read_unlock();
	spin_unlock(&qp->rq.lock);
	nhca_sq_kick(qp);
}

/* nhca_qp.kick: does work that could not be done in the context in which it became due */
static void nhca_qp_kicked(struct nhca_bh *bh)
{
	struct nhca_qp *qp = container_of(bh, struct nhca_qp, kick);

	nhca_qp_raise_pending(qp);
	nhca_qp_run(qp);
}

/*
 * The work item nhca_piggyback.rest continues READ responses after a used-up budget.  The work item
 * runs in process context, because a bottom half that queues itself again without a pause would
 * starve processes.
 */
static void nhca_qp_rest(struct work_struct *work)
{
	struct nhca_piggyback *piggyback = container_of(work, struct nhca_piggyback, rest);

	local_bh_disable();
	nhca_qp_run(piggyback->qp);
	local_bh_enable();
}

static void nhca_flow_kick(void *arg)
{
	struct nhca_qp *qp = arg;

	nhca_bh_queue(&qp->kick);
}

void nhca_recv_doorbell(struct nhca_qp *qp)
{
	if (READ_ONCE(qp->state) == IB_QPS_ERR)
		nhca_bh_queue(&qp->kick);
}

/* Set the initial window and timeouts, because the path to the peer is not known. */
static void nhca_sq_first_window(struct nhca_sq *sq)
{
	nhca_window_init(&sq->window);
	nhca_rtx_init(sq->rtx, jiffies);
	sq->empty_ackreqs = 0;
}

static int nhca_sq_init(struct nhca_qp *qp, struct ib_qp_cap *cap, struct nhca_ring_user *user)
{
	struct nhca_ring_user hidden = { .hidden = true };
	struct nhca_sq *sq = &qp->sq;
	u32 space, stride;
	int err;

	/* A QP that never sends has a ring that no consumer can post to. */
	if (!qp->ibqp.send_cq) {
		if (user && nhca_ring_is_placed(user))
			return -EINVAL;
		cap->max_send_wr = 0;
		cap->max_send_sge = 0;
		cap->max_inline_data = 0;
		if (user)
			user = &hidden;
	}
	stride = nhca_send_stride(cap->max_send_sge, cap->max_inline_data);
	err = nhca_ring_alloc(&sq->ring, max(cap->max_send_wr, 1U), stride, user);
	if (err)
		return err;

	if (qp->ibqp.send_cq) {
		space = stride - sizeof(struct nhca_send_wqe);
		sq->max_wr = nhca_ring_entries(&sq->ring);
		sq->max_sge = min_t(u32, space / sizeof(struct nhca_sge), NHCA_MAX_SGE);
		sq->max_inline = min_t(u32, space, NHCA_MAX_INLINE);
	}
	sq->allowed = nhca_sq_allowed(qp);
	cap->max_send_wr = sq->max_wr;
	cap->max_send_sge = sq->max_sge;
	cap->max_inline_data = sq->max_inline;

	spin_lock_init(&sq->lock);
	spin_lock_init(&sq->post_lock);
	INIT_LIST_HEAD(&sq->inflight);
	INIT_LIST_HEAD(&sq->retired);
	timer_setup(&sq->timer, nhca_sq_timer, 0);
	nhca_sq_first_window(sq);
	return 0;
}

static int nhca_rq_init(struct nhca_qp *qp, struct ib_qp_cap *cap, struct nhca_ring_user *user)
{
	struct nhca_srq *srq = nhca_qp_srq(qp);
	struct nhca_rq *rq = &qp->rq;
	u32 max_sge;
	int err;

	spin_lock_init(&rq->lock);
	INIT_LIST_HEAD(&rq->deferred);
	rq->op_psn = NHCA_PSN_NONE;
	rq->unbroken = true;
	/* an error: user space has given memory for a ring that the QP does not have */
	if ((srq || nhca_is_xrc(qp)) && user && nhca_ring_is_placed(user))
		return -EINVAL;
	if (srq) {
		cap->max_recv_wr = 0;
		cap->max_recv_sge = 0;
		max_sge = srq->wq.max_sge;
	} else if (nhca_is_xrc(qp)) {
		/* an initiator never receives; a target receives from SRQs with any max_sge */
		cap->max_recv_wr = 0;
		cap->max_recv_sge = 0;
		max_sge = NHCA_MAX_SGE;
	} else {
		err = nhca_rwq_init(&rq->wq, max(cap->max_recv_wr, 1U),
				    max(cap->max_recv_sge, 1U), user);
		if (err)
			return err;
		cap->max_recv_wr = rq->wq.max_wr;
		cap->max_recv_sge = rq->wq.max_sge;
		max_sge = rq->wq.max_sge;
	}

	rq->rwr = kzalloc(struct_size(rq->rwr, sge, max_sge), GFP_KERNEL_ACCOUNT);
	if (!rq->rwr) {
		nhca_rwq_free(&rq->wq);
		return -ENOMEM;
	}
	return 0;
}

int nhca_qp_init(struct nhca_qp *qp, struct ib_qp_init_attr *init, struct nhca_qp_rings *rings)
{
	int err;

	qp->state = IB_QPS_RESET;
	qp->mark = (__force __le32)get_random_u32();
	qp->mtu = 256;
	qp->cnp_sent = jiffies - HZ;
	qp->watched_until = jiffies;
	nhca_bh_init(&qp->kick, nhca_qp_kicked);
	qp->memcg = nhca_memcg_get(rings);
	qp->creator = nhca_pageref_owner_hold(rings ? rings->rq.uc->owner : NULL);
	qp->sq.rtx = kzalloc(sizeof(*qp->sq.rtx), GFP_KERNEL_ACCOUNT);
	qp->piggyback = kzalloc(sizeof(*qp->piggyback), GFP_KERNEL_ACCOUNT);
	if (!qp->sq.rtx || !qp->piggyback) {
		err = -ENOMEM;
		goto err_beside;
	}
	qp->piggyback->qp = qp;
	timer_setup(&qp->piggyback->timer, nhca_piggyback_timer, 0);
	INIT_WORK(&qp->piggyback->rest, nhca_qp_rest);
	nhca_piggyback_reset(qp->piggyback);

	err = nhca_sq_init(qp, &init->cap, rings ? &rings->sq : NULL);
	if (err)
		goto err_beside;
	err = nhca_rq_init(qp, &init->cap, rings ? &rings->rq : NULL);
	if (err)
		goto err_sq;

	err = -ENOMEM;
	qp->flow = nhca_flow_create(qp->dev->txq, nhca_flow_kick, qp);
	if (!qp->flow)
		goto err_rq;
	if (nhca_flow_share(qp->flow, qp->owner))
		goto err_fault;

	qp->sq.fault = nhca_fault_alloc(nhca_flow_kick, qp);
	qp->rq.fault = nhca_fault_alloc(nhca_flow_kick, qp);
	if (!qp->sq.fault || !qp->rq.fault)
		goto err_fault;

	qp->key_user.pd = qp->ibqp.pd;
	qp->rq.key_user.pd = qp->ibqp.srq ? qp->ibqp.srq->pd : qp->ibqp.pd;
	err = nhca_qp_table_add(qp);
	if (err)
		goto err_fault;
	qp->rq.key_user.qpn = qp->qpn;
	qp->ibqp.qp_num = qp->qpn;
	return 0;

err_fault:
	nhca_fault_free(qp->sq.fault);
	nhca_fault_free(qp->rq.fault);
	nhca_flow_close(qp->flow);
err_rq:
	kfree(qp->rq.rwr);
	nhca_rwq_free(&qp->rq.wq);
err_sq:
	nhca_ring_free(&qp->sq.ring);
err_beside:
	nhca_pageref_owner_put(qp->creator);
	kfree(qp->piggyback);
	kfree(qp->sq.rtx);
	nhca_memcg_put(qp->memcg);
	return err;
}

/*
 * Remove the completions of a QP from CQs of kernel consumers, because these completions point to
 * the QP.  An XRC initiator has no receive CQ.  An XRC target has no CQ; it posts to the CQs of its
 * SRQs.  A process cannot name SRQs of the kernel, so an XRC target of a process has no completions
 * in CQs of kernel consumers.
 */
static void nhca_qp_forget_completions(struct nhca_qp *qp)
{
	if (qp->ibqp.qp_type == IB_QPT_XRC_TGT && !qp->user)
		nhca_cq_forget_xrc(&qp->ibqp);
	if (qp->ibqp.send_cq)
		nhca_cq_forget_qp(to_nhca_cq(qp->ibqp.send_cq), &qp->ibqp);
	if (qp->ibqp.recv_cq)
		nhca_cq_forget_qp(to_nhca_cq(qp->ibqp.recv_cq), &qp->ibqp);
}

/*
 * Wait for requesters and responders that found the QP, or read its state, before nhca_qp_fini()
 * hid the QP and changed the state.
 */
void nhca_qp_grace(struct nhca_qp *qp)
{
	NHCA_STUB(nhca_qp_grace, qp);
	synchronize_rcu_expedited();
}

/*
 * Drop all requests, deferred packets, and responses that are due; both locks held.  A batch that
 * has found the QP already does nothing from now on, because the gates check state and generation
 * (nhca_rq_open(), nhca_sq_open(), nhca_rx_enter()).
 */
static void nhca_qp_end(struct nhca_qp *qp)
{
	struct nhca_rq *rq = &qp->rq;

	lockdep_assert_held(&qp->rq.lock);
	lockdep_assert_held(&qp->sq.lock);
	qp->mark = (__force __le32)get_random_u32();
	/* pairs with smp_load_acquire() in nhca_rx_deliver() and nhca_rx_cnp() */
	smp_store_release(&qp->gen, qp->gen + 1);
	nhca_sq_purge(qp);
	nhca_rq_put_rkey(qp);
	nhca_defer_drop(qp);
	rq->ack_due = false;
	rq->nak_due = false;
}

/*
 * Wait until no packet refers to pages of the consumer's buffers.  The caller has stopped the
 * requester.  If the process that created the QP has died, the wait has a limit: see
 * nhca_pageref_wait().  READ responses of an XRC target may refer to pages of other processes; the
 * deregistration of their regions waits for these packets as well, with limits of its own.
 */
static void nhca_qp_zcopy_wait(struct nhca_qp *qp)
{
	nhca_zcopy_wait_flow(qp->flow, qp->dev, qp->creator);
}

/*
 * The order of teardown:
 * 1. Lookups no longer find the QP.
 * 2. Under both locks the state becomes RESET: requesters and responders that have found the QP
 *    stop.
 * 3. Timers and kicks of the flow, which start a requester or responder, are stopped.
 * 4. After an RCU grace period no requester or responder runs: they run in read-side sections.
 * 5. Fault handles and rate limit, which queue the bottom half, are freed.  Then the bottom half
 *    and the work item are cancelled.
 * 6. The network stack releases the consumer's pages; this may take long.
 * 7. The flow is closed, completions that point to the QP are removed, and the address vector, the
 *    rings and the other memory of the QP are freed.
 * 8. The windows that are bound through the QP are closed, and the QP's number is freed.
 */
void nhca_qp_fini(struct nhca_qp *qp)
{
	nhca_qp_table_hide(qp);

	spin_lock_bh(&qp->rq.lock);
	nhca_qp_settle(qp);
	spin_lock(&qp->sq.lock);
	WRITE_ONCE(qp->state, IB_QPS_RESET);
	nhca_qp_end(qp);
	spin_unlock(&qp->sq.lock);
	spin_unlock_bh(&qp->rq.lock);

	nhca_flow_stop(qp->flow);
	timer_shutdown_sync(&qp->sq.timer);
	timer_shutdown_sync(&qp->piggyback->timer);

	nhca_qp_grace(qp);

	nhca_fault_free(qp->sq.fault);
	nhca_fault_free(qp->rq.fault);
	nhca_pace_free(qp->sq.pace);
	nhca_bh_kill(&qp->kick);
	cancel_work_sync(&qp->piggyback->rest);
	nhca_qp_zcopy_wait(qp);
	nhca_flow_close(qp->flow);

	nhca_qp_forget_completions(qp);
	nhca_av_put(qp->av);
	kfree(qp->rq.res);
	kfree(qp->rq.rwr);
	nhca_sq_free_spares(&qp->sq);
	kfree(qp->sq.rtx);
	kfree(qp->piggyback);
	nhca_rwq_free(&qp->rq.wq);
	nhca_ring_free(&qp->sq.ring);
	nhca_memcg_put(qp->memcg);
	nhca_pageref_owner_put(qp->creator);

	nhca_mw_qp_gone(&qp->key_user);
	nhca_qp_table_del(qp);
}

static void nhca_qp_to_reset(struct nhca_qp *qp)
{
	struct nhca_rq *rq = &qp->rq;

	lockdep_assert_held(&rq->lock);
	lockdep_assert_held(&qp->sq.lock);
	nhca_qp_end(qp);
	nhca_sq_first_window(&qp->sq);
	nhca_fault_cancel(qp->sq.fault);
	nhca_fault_cancel(rq->fault);
	if (nhca_qp_has_rq(qp))
		nhca_rwq_drop(&rq->wq);
	rq->have_rwr = false;
	rq->seq = NHCA_SEQ_IDLE;
	rq->msn = 0;
	rq->drop = false;
	rq->disk = NHCA_DISK_NONE;
	rq->op_psn = NHCA_PSN_NONE;
	rq->unbroken = true;
	rq->nak_sent = false;
	nhca_piggyback_reset(qp->piggyback);
	rq->fatal = false;
	rq->res_head = 0;
	rq->res_tail = 0;
	qp->last_wqe_sent = false;
	qp->comm_est = false;
	WRITE_ONCE(qp->peer, 0);
	WRITE_ONCE(qp->loop_path.qpn, 0);
	WRITE_ONCE(qp->loop_until, jiffies - 1);
	WRITE_ONCE(qp->watched_until, jiffies);
	nhca_pace_set(qp->sq.pace, 0);
}

/*
 * Return: true if a change to @nres responder resources would lose a response that is due.
 */
static bool nhca_rq_res_in_use(const struct nhca_qp *qp, u32 nres)
{
	const struct nhca_rq *rq = &qp->rq;

	lockdep_assert_held(&rq->lock);
	lockdep_assert_held(&qp->sq.lock);
	return nres != rq->nres && rq->res_tail != rq->res_head;
}

/*
 * Change the number of responder resources to @nres, while no response is due.  The newest
 * resources are kept, as many as fit, because a duplicate may still need them.
 * @res: in: an array of @nres entries, or NULL; out: the array that is no longer used
 */
static void nhca_rq_resize_res(struct nhca_qp *qp, u32 nres, struct nhca_res **res)
{
	struct nhca_rq *rq = &qp->rq;
	u32 i, n;

	lockdep_assert_held(&rq->lock);
	lockdep_assert_held(&qp->sq.lock);
	if (nres == rq->nres)
		return;
	n = min3(rq->res_head, rq->nres, nres);
	for (i = rq->res_head - n; rq->res && *res && i != rq->res_head; i++)
		(*res)[i % nres] = rq->res[i % rq->nres];
	/* without an array, nhca_res_alloc() allocates one for the first request that needs it */
	swap(rq->res, *res);
	rq->nres = nres;
	if (!rq->res)
		rq->res_head = 0;
	rq->res_tail = rq->res_head;
}

/*
 * Set the attributes of @mask.
 * @av:  in: address vector that the QP gets, if it is in @mask; out: the old one, for the caller to
 *       free
 * @res: in: array of responder resources that the QP gets, if they are in @mask; out: the old one,
 *       for the caller to free
 */
static void nhca_qp_set_attr(struct nhca_qp *qp, const struct ib_qp_attr *attr, int mask,
			     struct nhca_av **av, struct nhca_res **res)
{
	struct nhca_qp_attr *to = &qp->attr;

	lockdep_assert_held(&qp->rq.lock);
	lockdep_assert_held(&qp->sq.lock);
	if (mask & IB_QP_EN_SQD_ASYNC_NOTIFY)
		to->en_sqd_async_notify = attr->en_sqd_async_notify;
	if (mask & IB_QP_ACCESS_FLAGS)
		to->qp_access_flags = attr->qp_access_flags;
	if (mask & IB_QP_PKEY_INDEX)
		to->pkey_index = attr->pkey_index;
	if (mask & IB_QP_PORT)
		to->port_num = attr->port_num;
	if (mask & IB_QP_QKEY)
		WRITE_ONCE(to->qkey, attr->qkey);
	if (mask & IB_QP_AV)
		swap(qp->av, *av);
	if (mask & IB_QP_PATH_MTU) {
		to->path_mtu = attr->path_mtu;
		qp->mtu = ib_mtu_enum_to_int(attr->path_mtu);
	}
	if (mask & IB_QP_TIMEOUT) {
		to->timeout = attr->timeout;
		qp->sq.rtx->timeout = nhca_timeout_jiffies(attr->timeout);
	}
	if (mask & IB_QP_RETRY_CNT) {
		to->retry_cnt = attr->retry_cnt;
		qp->sq.rtx->retries = attr->retry_cnt;
	}
	if (mask & IB_QP_RNR_RETRY) {
		to->rnr_retry = attr->rnr_retry;
		qp->sq.rnr_retries = attr->rnr_retry;
	}
	if (mask & IB_QP_RQ_PSN)
		qp->rq.psn = attr->rq_psn & NHCA_PSN_MASK;
	if (mask & IB_QP_SQ_PSN) {
		qp->sq.psn = attr->sq_psn & NHCA_PSN_MASK;
		qp->sq.una = qp->sq.psn;
		qp->sq.nxt = qp->sq.psn;
		nhca_flow_queue_release(qp->flow);
	}
	if (mask & IB_QP_MAX_QP_RD_ATOMIC)
		to->max_rd_atomic = attr->max_rd_atomic;
	if (mask & IB_QP_MAX_DEST_RD_ATOMIC) {
		to->max_dest_rd_atomic = attr->max_dest_rd_atomic;
		nhca_rq_resize_res(qp, attr->max_dest_rd_atomic, res);
	}
	if (mask & IB_QP_MIN_RNR_TIMER)
		to->min_rnr_timer = attr->min_rnr_timer;
	if (mask & (IB_QP_AV | IB_QP_DEST_QPN)) {
		/*
		 * Drop packets that were checked against the old peer; pairs with
		 * smp_load_acquire() in nhca_rx_deliver() and nhca_rx_cnp().
		 */
		smp_store_release(&qp->gen, qp->gen + 1);
		WRITE_ONCE(qp->peer, 0);
	}
	if (mask & IB_QP_DEST_QPN)
		to->dest_qp_num = attr->dest_qp_num & NHCA_QPN_MASK;
	if (qp->av)
		qp->sport = nhca_udp_sport(qp->av->flow_label, qp->qpn, to->dest_qp_num);
}

int nhca_qp_modify(struct nhca_qp *qp, enum ib_qp_state new,
		   const struct ib_qp_attr *attr, int mask)
{
	struct nhca_pace *pace = NULL;
	struct nhca_res *res = NULL;
	struct nhca_av *av = NULL;
	int err = 0;

	if (mask & IB_QP_RATE_LIMIT) {
		pace = nhca_pace_alloc(qp);
		if (!pace)
			return -ENOMEM;
	}

	if (mask & IB_QP_AV) {
		av = nhca_av_create(qp->dev, &attr->ah_attr, GFP_KERNEL_ACCOUNT);
		if (IS_ERR(av)) {
			nhca_pace_free(pace);
			return PTR_ERR(av);
		}
	}
	if ((mask & IB_QP_MAX_DEST_RD_ATOMIC) && attr->max_dest_rd_atomic &&
	    READ_ONCE(qp->rq.res)) {
		res = nhca_memcg_kzalloc(qp->memcg,
					 array_size(attr->max_dest_rd_atomic, sizeof(*res)),
					 GFP_KERNEL);
		if (!res) {
			nhca_av_put(av);
			nhca_pace_free(pace);
			return -ENOMEM;
		}
	}

	spin_lock_bh(&qp->rq.lock);
	if ((mask & IB_QP_STATE) && new == IB_QPS_RESET)
		nhca_qp_settle(qp);
	spin_lock(&qp->sq.lock);
	/* an error may have changed the state of the QP since the caller checked it */
	if (!ib_modify_qp_is_ok(qp->state, (mask & IB_QP_STATE) ? new : qp->state,
				qp->ibqp.qp_type, mask & ~IB_QP_RATE_LIMIT)) {
		err = -EINVAL;
		goto unlock;
	}
	/* responses are due, because the peer may send READs even in SQD: try again later */
	if ((mask & IB_QP_MAX_DEST_RD_ATOMIC) && nhca_rq_res_in_use(qp, attr->max_dest_rd_atomic)) {
		err = -EBUSY;
		goto unlock;
	}
	nhca_qp_set_attr(qp, attr, mask, &av, &res);
	if (mask & IB_QP_RATE_LIMIT) {
		if (!qp->sq.pace)
			swap(qp->sq.pace, pace);
		nhca_pace_set(qp->sq.pace, attr->rate_limit);
	}
	if (mask & IB_QP_STATE) {
		WRITE_ONCE(qp->state, new);
		if (new == IB_QPS_RESET)
			nhca_qp_to_reset(qp);
		qp->sq.draining = new == IB_QPS_SQD;
	}
unlock:
	spin_unlock(&qp->sq.lock);
	spin_unlock_bh(&qp->rq.lock);

	nhca_av_put(av);
	nhca_pace_free(pace);
	kfree(res);

	if (err || !(mask & IB_QP_STATE)) {
		/* a doorbell may have found sq.lock taken, or the new rate limit may end a wait */
		nhca_sq_kick(qp);
		return err;
	}
	if (new == IB_QPS_RESET) {
		timer_delete_sync(&qp->sq.timer);
		timer_delete_sync(&qp->piggyback->timer);
		nhca_qp_zcopy_wait(qp);
		nhca_qp_forget_completions(qp);
	} else if (new == IB_QPS_ERR) {
		nhca_qp_flush(qp);
	} else {
		nhca_sq_kick(qp);
	}
	return 0;
}
