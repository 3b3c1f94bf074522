// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit: the life of a queue pair while packets are in flight. A packet that passed the checks
 * before the state changed has no effect after the change. Objects that requester and responder use
 * are not freed before requester and responder have ended.
 */
#include "../queue/srq.h"
#include "qp_fixture.h"

#define SEND_FIRST	(NHCA_SVC_RC | NHCA_OP_SEND_FIRST)
#define SEND_MIDDLE	(NHCA_SVC_RC | NHCA_OP_SEND_MIDDLE)
#define SEND_LAST	(NHCA_SVC_RC | NHCA_OP_SEND_LAST)
#define SEND_ONLY	(NHCA_SVC_RC | NHCA_OP_SEND_ONLY)
#define ACK		(NHCA_SVC_RC | NHCA_OP_ACK)
#define HERE		(NHCA_CAP_PRESENT | NHCA_CAP_CONFIRMED | NHCA_CAP_NO_ICRC_OK)

static u8 *page_byte(struct qp_fixture *f, u32 i)
{
	return (u8 *)page_address(f->page) + i;
}

/*
 * The fixture works: a SEND from the peer is placed, completed and acknowledged, and a SEND to the
 * peer completes when its ACK arrives.
 */
static void plain_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;
	struct nhca_hdr h = fix_hdr(f->qp, SEND_ONLY, FIX_RQ_PSN);
	struct nhca_cqe cqe;
	struct sent sent;
	u32 i;

	fix_post_recv(test, &f->qp->rq.wq, f->mr, 100, 200);
	h.ackreq = true;
	fix_deliver(test, h, 50);
	KUNIT_ASSERT_TRUE(test, fix_poll(f->cq, &cqe));
	KUNIT_EXPECT_EQ(test, cqe.status, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, cqe.byte_len, 50);
	for (i = 0; i < 50; i++)
		KUNIT_ASSERT_EQ(test, *page_byte(f, 100 + i), fix_byte(i));
	KUNIT_EXPECT_EQ(test, *page_byte(f, 150), 0);
	KUNIT_ASSERT_EQ(test, fix_sent(f, ACK, &sent), 1);
	KUNIT_EXPECT_EQ(test, sent.hdr.psn, FIX_RQ_PSN);

	fix_post_send(test, f->qp, f->mr, 0, 10, IB_SEND_SIGNALED);
	KUNIT_ASSERT_EQ(test, fix_sent(f, SEND_ONLY, &sent), 1);
	KUNIT_EXPECT_EQ(test, sent.hdr.psn, FIX_SQ_PSN);
	KUNIT_EXPECT_TRUE(test, sent.hdr.ackreq);
	KUNIT_EXPECT_FALSE(test, fix_poll(f->cq, &cqe));
	fix_packet(test, ACK, FIX_SQ_PSN, 0);
	KUNIT_ASSERT_TRUE(test, fix_poll(f->cq, &cqe));
	KUNIT_EXPECT_EQ(test, cqe.status, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, cqe.opcode, IB_WC_SEND);
}

/* ---- the QP changes after the checks, which take no lock, and before the lock is taken ---- */

static void (*meanwhile)(struct kunit *test);

/* Replaces nhca_rx_refusal(): the packet passes the checks, and then meanwhile() runs. */
static enum nhca_counter right_but(const struct nhca_qp *qp, const struct nhca_hdr *h,
				   const struct nhca_ip *ip)
{
	struct kunit *test = kunit_get_current_test();

	kunit_deactivate_static_stub(test, nhca_rx_refusal);
	KUNIT_EXPECT_EQ(test, nhca_rx_refusal(qp, h, ip), NHCA_CNT_MAX);
	meanwhile(test);
	return NHCA_CNT_MAX;
}

static void race(struct kunit *test, void (*what)(struct kunit *test))
{
	meanwhile = what;
	kunit_activate_static_stub(test, nhca_rx_refusal, right_but);
}

static void to_error(struct kunit *test)
{
	struct qp_fixture *f = test->priv;

	fix_state(test, f->qp, IB_QPS_ERR);
}

/*
 * The new connection has the same peer and PSNs as the old connection; only the generation differs.
 */
static void to_new_connection(struct kunit *test)
{
	struct qp_fixture *f = test->priv;

	fix_state(test, f->qp, IB_QPS_RESET);
	fix_connect(test, f->qp);
	fix_post_recv(test, &f->qp->rq.wq, f->mr, 0, 4 * FIX_MTU);
}

/*
 * A receive buffer is not written after it was flushed, not even by later packets of a batch whose
 * first packet was a duplicate. The fast path for these packets must check the state too.
 */
static void flushed_buffer_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;
	struct nhca_cqe cqe;
	struct nhca_hdr h;
	u32 i;

	fix_post_recv(test, &f->qp->rq.wq, f->mr, 0, 4 * FIX_MTU);
	fix_packet(test, SEND_FIRST, FIX_RQ_PSN, FIX_MTU);
	h = fix_hdr(f->qp, SEND_MIDDLE, FIX_RQ_PSN + 1);
	h.caps = HERE | NHCA_CAP_NO_ICRC;
	fix_deliver(test, h, FIX_MTU);

	race(test, to_error);
	fix_deliver_batch(test, h, FIX_MTU, 3);
	KUNIT_ASSERT_TRUE(test, fix_poll(f->cq, &cqe));
	KUNIT_EXPECT_EQ(test, cqe.status, IB_WC_WR_FLUSH_ERR);
	for (i = 2 * FIX_MTU; i < PAGE_SIZE; i++)
		KUNIT_ASSERT_EQ(test, *page_byte(f, i), 0);
	KUNIT_EXPECT_EQ(test, f->qp->rq.psn, FIX_RQ_PSN + 2);
}

/*
 * A packet of the old connection is not accepted in the new connection, although its QPNs,
 * addresses and PSN are right.
 */
static void old_batch_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;

	fix_post_recv(test, &f->qp->rq.wq, f->mr, 0, 4 * FIX_MTU);
	race(test, to_new_connection);
	fix_deliver_batch(test, fix_hdr(f->qp, SEND_FIRST, FIX_RQ_PSN), FIX_MTU, 1);
	KUNIT_EXPECT_EQ(test, f->qp->state, IB_QPS_RTS);
	KUNIT_EXPECT_EQ(test, f->qp->rq.psn, FIX_RQ_PSN);
	KUNIT_EXPECT_EQ(test, *page_byte(f, 0), 0);
	KUNIT_EXPECT_EQ(test, fix_count(f, NHCA_CNT_RX_BAD_STATE), 1);
	/* the new connection works */
	fix_packet(test, SEND_ONLY, FIX_RQ_PSN, 10);
	KUNIT_EXPECT_EQ(test, f->qp->rq.psn, FIX_RQ_PSN + 1);
}

/* An acknowledgment of the old connection completes nothing in the new connection. */
static void old_ack_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;
	struct nhca_cqe cqe;

	fix_post_send(test, f->qp, f->mr, 0, 10, IB_SEND_SIGNALED);
	race(test, to_new_connection);
	fix_packet(test, ACK, FIX_SQ_PSN, 0);
	KUNIT_EXPECT_FALSE(test, fix_poll(f->cq, &cqe));
	KUNIT_EXPECT_EQ(test, fix_count(f, NHCA_CNT_RX_BAD_STATE), 1);
}

/* ---- teardown ---- */

/* Replaces nhca_rx_refusal(): the packet passed the checks earlier. */
static enum nhca_counter right(const struct nhca_qp *qp, const struct nhca_hdr *h,
			       const struct nhca_ip *ip)
{
	return NHCA_CNT_MAX;
}

/* Replaces the grace period of nhca_qp_fini(): packets that have found the QP are processed. */
static void late_packets(struct nhca_qp *qp)
{
	struct kunit *test = kunit_get_current_test();
	struct qp_fixture *f = test->priv;
	struct nhca_batch b = {
		.rx = { .ip = { .nn = f->dev->nn, .v4 = true }, .ce = true },
		.qp = qp,
	};
	struct nhca_rx *rx = &b.rx;
	struct nhca_hdr h;
	u32 i;

	for (i = 0; i < 2; i++) {
		h = fix_hdr(qp, i ? ACK : SEND_ONLY, i ? FIX_SQ_PSN : FIX_RQ_PSN);
		h.ackreq = !i;
		h.caps = HERE | NHCA_CAP_NO_ICRC;
		rx->skb = fix_skb(test, &h, 0, 1);
		rx->hdr = fix_hdr(qp, h.opcode, h.psn);
		rx->hdr.caps = h.caps;
		rx->hdr.ackreq = h.ackreq;
		rx->ip.hdr = skb_network_header(rx->skb);
		rx->udp_len = rx->skb->len;
		rx->off = h.info->hdr_len;
		ipv6_addr_set_v4mapped(htonl(FIX_DADDR), &rx->ip.saddr);
		ipv6_addr_set_v4mapped(htonl(FIX_SADDR), &rx->ip.daddr);
		nhca_cursor_init(&rx->at, rx->skb);
		/* the packet has passed the checks before the QP was destroyed */
		kunit_activate_static_stub(test, nhca_rx_refusal, right);
		local_bh_disable();
		rcu_read_lock();
		nhca_transport_rx(&b);
		nhca_transport_rx_end(&b);
		rcu_read_unlock();
		local_bh_enable();
		kfree_skb(rx->skb);
	}
	/* use objects of the QP, as a requester or responder does that has not ended yet */
	nhca_flow_inflight(qp->flow);
	nhca_fault_waiting(qp->rq.fault);
	nhca_fault_waiting(qp->sq.fault);
	nhca_bh_queue(&qp->kick);
}

/*
 * Requester and responder may still use the QP's flow and fault handles for packets that found the
 * QP before its destruction. KASAN reports a use of freed memory. The packets are not answered.
 */
static void late_packets_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;
	struct nhca_cqe cqe;

	fix_post_recv(test, &f->qp->rq.wq, f->mr, 0, 100);
	fix_post_send(test, f->qp, f->mr, 0, 10, IB_SEND_SIGNALED);
	f->nsent = 0;
	f->ce = true;
	kunit_activate_static_stub(test, nhca_qp_grace, late_packets);
	fix_destroy(&f->qp);
	kunit_deactivate_static_stub(test, nhca_qp_grace);
	KUNIT_EXPECT_EQ(test, f->nsent, 0);
	KUNIT_EXPECT_FALSE(test, fix_poll(f->cq, &cqe));
	KUNIT_EXPECT_EQ(test, fix_count(f, NHCA_CNT_RX_BAD_STATE), 2);
}

/* If an ACK is due when the QP is destroyed, it is not sent. */
static void ack_due_at_the_end_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;

	spin_lock_bh(&f->qp->rq.lock);
	nhca_resp_ack_now(&f->qp->rq);
	spin_unlock_bh(&f->qp->rq.lock);
	kunit_activate_static_stub(test, nhca_qp_grace, late_packets);
	fix_destroy(&f->qp);
	KUNIT_EXPECT_EQ(test, f->nsent, 0);
}

static u32 number_taken;

/* Replaces nhca_mw_qp_gone(): checks that the QP still has its number. */
static void windows_gone(struct nhca_key_user *key_user)
{
	struct kunit *test = kunit_get_current_test();

	KUNIT_EXPECT_TRUE(test, nhca_qpn_is_taken(key_user->qpn));
	number_taken++;
}

/*
 * A new QP cannot get the number of a QP whose type 2 windows are still open. Otherwise the
 * new QP could use these windows.
 */
static void number_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;
	u32 qpn = f->qp->qpn;

	number_taken = 0;
	kunit_activate_static_stub(test, nhca_mw_qp_gone, windows_gone);
	fix_destroy(&f->qp);
	KUNIT_EXPECT_EQ(test, number_taken, 1);
	KUNIT_EXPECT_FALSE(test, nhca_qpn_is_taken(qpn));
}

/* ---- keys that are closed ---- */

#define WRITE_ONLY	(NHCA_SVC_RC | NHCA_OP_WRITE_ONLY)

/*
 * A consumer of unsignaled sends may close the key of data that was sent but not acknowledged.
 * nhca_sq_ackreq() then requests the ACK by a WRITE of 0 bytes. After a timeout such a WRITE is
 * sent again, instead of the data.
 */
static void closed_key_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;
	struct nhca_sq *sq = &f->qp->sq;
	struct nhca_cqe cqe;
	struct sent sent;

	f->qp->attr.timeout = 14;
	sq->rtx->timeout = HZ;
	fix_post_send(test, f->qp, f->mr, 0, 10, 0);
	nhca_mr_free(f->mr);
	f->mr = NULL;

	spin_lock_bh(&sq->lock);
	KUNIT_EXPECT_TRUE(test, nhca_sq_ackreq(f->qp));
	spin_unlock_bh(&sq->lock);
	KUNIT_ASSERT_EQ(test, fix_sent(f, WRITE_ONLY, &sent), 1);
	KUNIT_EXPECT_EQ(test, sent.hdr.psn, FIX_SQ_PSN - 1);
	KUNIT_EXPECT_EQ(test, sent.hdr.dmalen, 0);
	KUNIT_EXPECT_TRUE(test, sent.hdr.ackreq);

	/* no ACK comes before the timeout */
	local_bh_disable();
	fix_age(f->qp, 10 * HZ);
	nhca_sq_timer(&sq->timer);
	local_bh_enable();
	KUNIT_EXPECT_EQ(test, fix_sent(f, WRITE_ONLY, NULL), 2);
	KUNIT_EXPECT_EQ(test, f->qp->state, IB_QPS_RTS);
	fix_packet(test, ACK, FIX_SQ_PSN, 0);
	KUNIT_EXPECT_EQ(test, sq->una, FIX_SQ_PSN + 1);
	KUNIT_EXPECT_TRUE(test, list_empty(&sq->inflight));
	KUNIT_EXPECT_FALSE(test, fix_poll(f->cq, &cqe));
}

/*
 * If NHCA_EMPTY_ACKREQ_MAX WRITEs of 0 bytes get no ACK, the data must be sent again. The key is
 * closed, so the send fails with a protection error.
 */
static void closed_key_error_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;
	struct nhca_sq *sq = &f->qp->sq;
	struct nhca_cqe cqe;
	u32 i;

	f->qp->attr.timeout = 14;
	sq->rtx->timeout = HZ;
	fix_post_send(test, f->qp, f->mr, 0, 10, IB_SEND_SIGNALED);
	nhca_mr_free(f->mr);
	f->mr = NULL;
	for (i = 0; i < 7 && f->qp->state == IB_QPS_RTS; i++) {
		local_bh_disable();
		fix_age(f->qp, 100 * HZ);
		nhca_sq_timer(&sq->timer);
		local_bh_enable();
	}
	KUNIT_ASSERT_TRUE(test, fix_poll(f->cq, &cqe));
	KUNIT_EXPECT_EQ(test, cqe.status, IB_WC_LOC_PROT_ERR);
	KUNIT_EXPECT_EQ(test, fix_sent(f, WRITE_ONLY, NULL), NHCA_EMPTY_ACKREQ_MAX);
}

/* ---- modify ---- */

static int resources(struct nhca_qp *qp, u8 n)
{
	struct ib_qp_attr attr = { .max_dest_rd_atomic = n };

	return nhca_qp_modify(qp, IB_QPS_SQD, &attr, IB_QP_STATE | IB_QP_MAX_DEST_RD_ATOMIC);
}

/*
 * A QP in SQD can change its number of responder resources, but not while a READ is unanswered: the
 * change fails with -EBUSY, and the READ is answered later.
 */
static void responses_due_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;
	struct nhca_hdr h = fix_hdr(f->qp, NHCA_SVC_RC | NHCA_OP_READ_REQUEST, FIX_RQ_PSN);
	struct sent sent;

	h.rkey = f->mr->ibmr.rkey;
	h.dmalen = 100;
	f->xmit_err = -EAGAIN;
	fix_deliver(test, h, 0);
	KUNIT_EXPECT_EQ(test, f->qp->rq.res_head - f->qp->rq.res_tail, 1);
	fix_state(test, f->qp, IB_QPS_SQD);
	KUNIT_EXPECT_EQ(test, resources(f->qp, 4), 0);
	KUNIT_EXPECT_EQ(test, resources(f->qp, 8), -EBUSY);
	f->xmit_err = 0;
	spin_lock_bh(&f->qp->rq.lock);
	rcu_read_lock();
	nhca_resp_run(f->qp);
	rcu_read_unlock();
	spin_unlock_bh(&f->qp->rq.lock);
	KUNIT_ASSERT_EQ(test, fix_sent(f, NHCA_SVC_RC | NHCA_OP_READ_RESP_ONLY, &sent), 1);
	KUNIT_EXPECT_EQ(test, sent.payload, 100);

	/* after a change to more or fewer resources, a duplicate of the READ is still answered */
	KUNIT_EXPECT_EQ(test, resources(f->qp, 8), 0);
	fix_deliver(test, h, 0);
	KUNIT_EXPECT_EQ(test, fix_sent(f, NHCA_SVC_RC | NHCA_OP_READ_RESP_ONLY, NULL), 2);
	KUNIT_EXPECT_EQ(test, resources(f->qp, 1), 0);
	fix_deliver(test, h, 0);
	KUNIT_EXPECT_EQ(test, fix_sent(f, NHCA_SVC_RC | NHCA_OP_READ_RESP_ONLY, NULL), 3);
}

/* ---- asynchronous events of a kernel consumer ---- */

struct seen_events {
	struct nhca_qp *qp;
	enum ib_event_type events[8];
	unsigned int count;
	bool locked;
};

static void on_qp_event(struct ib_event *event, void *context)
{
	struct seen_events *seen = context;

	if (lockdep_is_held(&seen->qp->rq.lock) || lockdep_is_held(&seen->qp->sq.lock))
		seen->locked = true;
	if (seen->count < ARRAY_SIZE(seen->events))
		seen->events[seen->count] = event->event;
	seen->count++;
}

/*
 * The code that raises an event does not call the event handler of a kernel consumer, because the
 * call chain of a verb may hold locks of the QP. A bottom half calls the handler once for each type
 * of event that was raised.
 */
static void event_call_chain_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;
	struct nhca_srq *srq = kunit_kzalloc(test, sizeof(*srq), GFP_KERNEL);
	struct seen_events seen = {};
	struct nhca_qp *qp;

	KUNIT_ASSERT_NOT_NULL(test, srq);
	srq->ibsrq.device = &f->dev->ibdev;
	srq->ibsrq.pd = f->pd;
	KUNIT_ASSERT_EQ(test, nhca_rwq_init(&srq->wq, 8, 1, NULL), 0);
	nhca_srq_init(srq);
	qp = fix_qp(test, IB_QPT_RC, &srq->ibsrq);
	seen.qp = qp;
	qp->ibqp.event_handler = on_qp_event;
	qp->ibqp.qp_context = &seen;
	fix_connect(test, qp);

	/* nhca_qp_flush() raises LAST_WQE_REACHED while it holds the receive queue's lock */
	local_bh_disable();
	nhca_qp_set_error(qp, IB_EVENT_QP_FATAL);
	nhca_qp_flush(qp);
	KUNIT_EXPECT_EQ(test, seen.count, 0);
	local_bh_enable();
	KUNIT_ASSERT_EQ(test, seen.count, 2);
	KUNIT_EXPECT_EQ(test, seen.events[0], IB_EVENT_QP_FATAL);
	KUNIT_EXPECT_EQ(test, seen.events[1], IB_EVENT_QP_LAST_WQE_REACHED);

	/* COMM_EST is reported once, and before other events, which follow in order of number */
	local_bh_disable();
	nhca_qp_event(qp, IB_EVENT_COMM_EST);
	nhca_qp_event(qp, IB_EVENT_COMM_EST);
	nhca_qp_event(qp, IB_EVENT_QP_ACCESS_ERR);
	local_bh_enable();
	KUNIT_ASSERT_EQ(test, seen.count, 4);
	KUNIT_EXPECT_EQ(test, seen.events[2], IB_EVENT_COMM_EST);
	KUNIT_EXPECT_EQ(test, seen.events[3], IB_EVENT_QP_ACCESS_ERR);

	/* the handler of uverbs only queues the event, so it is called immediately */
	qp->user = true;
	local_bh_disable();
	nhca_qp_event(qp, IB_EVENT_SQ_DRAINED);
	KUNIT_EXPECT_EQ(test, seen.count, 5);
	local_bh_enable();
	qp->user = false;

	/*
	 * an event before the destruction of the QP is reported once, and the destruction raises no
	 * event
	 */
	local_bh_disable();
	nhca_qp_event(qp, IB_EVENT_SQ_DRAINED);
	local_bh_enable();
	fix_destroy(&qp);
	KUNIT_EXPECT_EQ(test, seen.count, 6);
	KUNIT_EXPECT_FALSE(test, seen.locked);
	nhca_srq_stop(srq);
	nhca_rwq_free(&srq->wq);
}

/* A rate limit also applies to datagrams: only the first datagram is sent immediately. */
static void datagram_rate_test(struct kunit *test)
{
	struct ib_qp_attr attr = { .rate_limit = 1 };	/* kbit/s: 1,000 bytes in 8 s */
	struct qp_fixture *f = test->priv;
	struct nhca_qp *qp = fix_qp(test, IB_QPT_UD, NULL);
	struct ib_sge sge = { .length = 1000, .lkey = f->mr->ibmr.lkey };
	struct nhca_ah ah = { .av = fix_av(FIX_SADDR, FIX_DADDR) };
	struct ib_ud_wr wr = {
		.wr = { .opcode = IB_WR_SEND, .sg_list = &sge, .num_sge = 1 },
		.ah = &ah.ibah,
	};
	u32 i;

	KUNIT_ASSERT_FALSE(test, IS_ERR(ah.av));
	ah.av->pd = f->pd;
	KUNIT_ASSERT_EQ(test, xa_err(xa_store(&f->dev->ah_ids, 0, ah.av, GFP_KERNEL)), 0);
	fix_connect(test, qp);
	KUNIT_ASSERT_EQ(test, nhca_qp_modify(qp, IB_QPS_RTS, &attr,
					     IB_QP_STATE | IB_QP_RATE_LIMIT), 0);
	for (i = 0; i < 3; i++)
		KUNIT_ASSERT_EQ(test, nhca_send_post(qp, &wr.wr), 0);
	nhca_send_doorbell(qp);
	KUNIT_EXPECT_EQ(test, f->nsent, 1);
	fix_destroy(&qp);
	xa_erase(&f->dev->ah_ids, 0);
	nhca_av_put(ah.av);
}

static struct kunit_case nhca_qp_cases[] = {
	KUNIT_CASE(plain_test),
	KUNIT_CASE(flushed_buffer_test),
	KUNIT_CASE(old_batch_test),
	KUNIT_CASE(old_ack_test),
	KUNIT_CASE(late_packets_test),
	KUNIT_CASE(ack_due_at_the_end_test),
	KUNIT_CASE(number_test),
	KUNIT_CASE(closed_key_test),
	KUNIT_CASE(closed_key_error_test),
	KUNIT_CASE(responses_due_test),
	KUNIT_CASE(event_call_chain_test),
	KUNIT_CASE(datagram_rate_test),
	{}
};

static struct kunit_suite nhca_qp_suite = {
	.name = "nhca_qp",
	.init = qp_fixture_init,
	.exit = qp_fixture_exit,
	.test_cases = nhca_qp_cases,
};

kunit_test_suite(nhca_qp_suite);
