// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit: extended reliable connection (IBTA A14): the SRQ that a request names receives the
 * request, with keys of the SRQ's protection domain, or the request is refused.
 */
#include <linux/completion.h>
#include <linux/sched/mm.h>

#include "../net/zcopy.h"
#include "qp_fixture.h"
#include "threads.h"

#define OP(op)		(NHCA_SVC_XRC | NHCA_OP_##op)
#define SRQS		3
/* SRQNs of the SRQs, and an SRQN that no SRQ has */
#define SRQN(i)		(0x1000 + (i))
#define NO_SRQ		0x2000

/*
 * SRQs 0 and 1 are in the XRC domain of the target QP, SRQ 2 is in another domain. SRQ 1 has its
 * own PD.
 */
static struct xrc {
	struct ib_xrcd domain, other_domain;
	struct ib_pd pd;
	struct nhca_srq srq[SRQS];
	struct nhca_cq *cq[SRQS];
	struct nhca_qp *initiator;
	u32 events;
} *xrc;

static void on_event(struct ib_event *event, void *context)
{
	if (event->event == IB_EVENT_QP_LAST_WQE_REACHED)
		xrc->events++;
}

static void srq_init(struct kunit *test, u32 i)
{
	struct qp_fixture *f = test->priv;
	struct nhca_srq *srq = &xrc->srq[i];

	srq->ibsrq.device = &f->dev->ibdev;
	srq->ibsrq.pd = i == 1 ? &xrc->pd : f->pd;
	srq->ibsrq.srq_type = IB_SRQT_XRC;
	srq->ibsrq.ext.xrc.xrcd = i == 2 ? &xrc->other_domain : &xrc->domain;
	xrc->cq[i] = fix_cq(test, 16);
	srq->ibsrq.ext.cq = &xrc->cq[i]->ibcq;
	srq->dev = f->dev;
	srq->srqn = SRQN(i);
	nhca_srq_init(srq);
	KUNIT_ASSERT_EQ(test, nhca_rwq_init(&srq->wq, 8, 1, NULL), 0);
	KUNIT_ASSERT_EQ(test, xa_err(xa_store(&f->dev->srq_ids, SRQN(i), srq, GFP_KERNEL)), 0);
}

/* Return: a new XRC QP. @rings: rings of a process; NULL: the QP is a QP of the kernel */
static struct nhca_qp *xrc_qp_of(struct kunit *test, enum ib_qp_type type,
				 struct nhca_qp_rings *rings)
{
	struct qp_fixture *f = test->priv;
	struct ib_qp_init_attr init = {
		.cap = { .max_send_wr = 8, .max_send_sge = 1 },
		.qp_type = type,
	};
	struct nhca_qp *qp = kunit_kzalloc(test, sizeof(*qp), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, qp);
	qp->dev = f->dev;
	qp->ibqp.device = &f->dev->ibdev;
	qp->ibqp.qp_type = type;
	qp->ibqp.event_handler = on_event;
	qp->who.counters = f->dev->counters;
	mutex_init(&qp->modify);
	if (type == IB_QPT_XRC_INI) {
		qp->ibqp.pd = f->pd;
		qp->ibqp.send_cq = &f->cq->ibcq;
	} else {
		qp->xrcd = &xrc->domain;
	}
	fix_qp_init(test, qp, &init, rings);
	return qp;
}

static struct nhca_qp *xrc_qp(struct kunit *test, enum ib_qp_type type)
{
	return xrc_qp_of(test, type, NULL);
}

static void xrc_connect(struct kunit *test, struct nhca_qp *qp)
{
	struct ib_qp_attr attr = {
		.path_mtu = IB_MTU_1024,
		.dest_qp_num = FIX_PEER_QPN,
		.rq_psn = FIX_RQ_PSN,
		.sq_psn = FIX_SQ_PSN,
		.qp_access_flags = IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_WRITE,
		.max_dest_rd_atomic = 4,
		.max_rd_atomic = 4,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.min_rnr_timer = 1,
		.port_num = NHCA_PORT,
	};
	bool target = qp->ibqp.qp_type == IB_QPT_XRC_TGT;
	int mask;

	mask = IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_ACCESS_FLAGS;
	KUNIT_ASSERT_EQ(test, nhca_qp_modify(qp, IB_QPS_INIT, &attr, mask), 0);
	mask = IB_QP_STATE | IB_QP_AV | IB_QP_PATH_MTU | IB_QP_DEST_QPN | IB_QP_RQ_PSN;
	if (target)
		mask |= IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_MIN_RNR_TIMER;
	KUNIT_ASSERT_EQ(test, nhca_qp_modify(qp, IB_QPS_RTR, &attr, mask), 0);
	mask = IB_QP_STATE | IB_QP_SQ_PSN | IB_QP_TIMEOUT;
	if (!target)
		mask |= IB_QP_RETRY_CNT | IB_QP_RNR_RETRY | IB_QP_MAX_QP_RD_ATOMIC;
	KUNIT_ASSERT_EQ(test, nhca_qp_modify(qp, IB_QPS_RTS, &attr, mask), 0);
}

static int xrc_init(struct kunit *test)
{
	int err = qp_fixture_init(test);
	struct qp_fixture *f = test->priv;
	u32 i;

	if (err)
		return err;
	xrc = kunit_kzalloc(test, sizeof(*xrc), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, xrc);
	xrc->pd.device = &f->dev->ibdev;
	for (i = 0; i < SRQS; i++)
		srq_init(test, i);
	fix_destroy(&f->qp);
	f->qp = xrc_qp(test, IB_QPT_XRC_TGT);
	xrc_connect(test, f->qp);
	return 0;
}

static void xrc_exit(struct kunit *test)
{
	struct qp_fixture *f = test->priv;
	u32 i;

	fix_destroy(&f->qp);
	if (xrc->initiator)
		fix_destroy(&xrc->initiator);
	for (i = 0; i < SRQS; i++) {
		nhca_srq_stop(&xrc->srq[i]);
		nhca_rwq_free(&xrc->srq[i].wq);
		nhca_cq_stop(xrc->cq[i]);
		nhca_ring_free(&xrc->cq[i]->ring);
	}
	xa_destroy(&f->dev->srq_ids);
	qp_fixture_exit(test);
}

static struct nhca_hdr request(struct kunit *test, u8 opcode, u32 psn, u32 srqn)
{
	struct qp_fixture *f = test->priv;
	struct nhca_hdr h = fix_hdr(f->qp, opcode, FIX_RQ_PSN + psn);

	h.srqn = srqn;
	h.rkey = f->mr->ibmr.rkey;
	return h;
}

/* Expect that the QP has sent @n acknowledgments, the newest with @syndrome. */
static void expect_answer(struct kunit *test, u8 syndrome, u32 n)
{
	struct qp_fixture *f = test->priv;
	struct sent sent = {};

	KUNIT_ASSERT_EQ(test, fix_sent(f, OP(ACK), &sent), n);
	KUNIT_EXPECT_EQ(test, sent.hdr.syndrome, syndrome);
	KUNIT_EXPECT_EQ(test, sent.hdr.qpn, FIX_PEER_QPN);
}

/* Return: number of completions that the CQs of all SRQs have. */
static u32 completions(void)
{
	u32 i, n = 0;

	for (i = 0; i < SRQS; i++)
		n += xrc->cq[i]->prod - xrc->cq[i]->cons;
	return n;
}

/* A SEND uses a receive of the SRQ that the SEND names, and completes in the CQ of this SRQ. */
static void srq_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;
	/* a receive of SRQ 1 needs an L_Key of SRQ 1's protection domain */
	struct nhca_mr *mr = fix_mr(test, &xrc->pd);
	u8 *p = page_address(f->page);
	struct nhca_hdr h;
	struct nhca_cqe cqe;
	u32 i, k;

	for (i = 0; i < 4; i++) {
		fix_post_recv(test, &xrc->srq[0].wq, f->mr, 100 * i, 50);
		fix_post_recv(test, &xrc->srq[1].wq, mr, 1000 + 100 * i, 50);
	}
	for (i = 0; i < 4; i++) {
		memset(p, 0, PAGE_SIZE);
		h = request(test, OP(SEND_ONLY), i, SRQN(i % 2));
		h.ackreq = true;
		fix_deliver(test, h, 20 + i);
		KUNIT_ASSERT_EQ(test, completions(), 1);
		KUNIT_ASSERT_TRUE(test, fix_poll(xrc->cq[i % 2], &cqe));
		KUNIT_EXPECT_EQ(test, cqe.status, IB_WC_SUCCESS);
		KUNIT_EXPECT_EQ(test, cqe.byte_len, 20 + i);
		KUNIT_EXPECT_EQ(test, cqe.wr_id, i % 2 * 1000 + 100 * (i / 2));
		for (k = 0; k < 20 + i; k++)
			KUNIT_ASSERT_EQ(test, p[cqe.wr_id + k], fix_byte(k));
		expect_answer(test, NHCA_AETH_ACK | NHCA_AETH_NO_CREDIT, i + 1);
	}
	KUNIT_EXPECT_EQ(test, f->qp->rq.psn, FIX_RQ_PSN + 4);
	nhca_mr_free(mr);
}

/*
 * A request is refused if no SRQ has its SRQN, or if the SRQ is in another XRC domain or not for
 * XRC.
 */
static void refused_test(struct kunit *test)
{
	static const u32 srqn[] = { NO_SRQ, SRQN(2), SRQN(1) };
	struct qp_fixture *f = test->priv;
	struct nhca_hdr h;
	u32 i;

	xrc->srq[1].ibsrq.srq_type = IB_SRQT_BASIC;
	for (i = 0; i < ARRAY_SIZE(srqn); i++) {
		fix_post_recv(test, &xrc->srq[1].wq, f->mr, 0, 50);
		fix_post_recv(test, &xrc->srq[2].wq, f->mr, 0, 50);
		h = request(test, OP(SEND_ONLY), 0, srqn[i]);
		fix_deliver(test, h, 10);
		expect_answer(test, NHCA_AETH_NAK | NHCA_NAK_INVALID_REQ, i + 1);
		KUNIT_EXPECT_EQ(test, f->qp->state, IB_QPS_ERR);
		KUNIT_EXPECT_EQ(test, completions(), 0);
		fix_state(test, f->qp, IB_QPS_RESET);
		xrc_connect(test, f->qp);
	}
	KUNIT_EXPECT_NULL(test, memchr_inv(page_address(f->page), 0, PAGE_SIZE));
}

/*
 * If the SRQ has no receive, the target answers with an RNR NAK, and receives the request when it
 * is sent again.
 */
static void rnr_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;
	struct nhca_hdr h = request(test, OP(SEND_ONLY), 0, SRQN(0));
	struct nhca_cqe cqe;

	fix_deliver(test, h, 10);
	expect_answer(test, NHCA_AETH_RNR | 1, 1);
	fix_post_recv(test, &xrc->srq[0].wq, f->mr, 7, 10);
	fix_deliver(test, h, 10);
	KUNIT_ASSERT_TRUE(test, fix_poll(xrc->cq[0], &cqe));
	KUNIT_EXPECT_EQ(test, cqe.wr_id, 7);
}

/*
 * All packets of a message name one SRQ. If a packet names another SRQ than the packets before, the
 * packet is refused.
 */
static void switch_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;
	struct nhca_hdr h = request(test, OP(SEND_FIRST), 0, SRQN(0));
	u8 *p = page_address(f->page);

	fix_post_recv(test, &xrc->srq[0].wq, f->mr, 0, 2 * FIX_MTU);
	fix_deliver(test, h, FIX_MTU);
	KUNIT_EXPECT_EQ(test, f->qp->rq.psn, FIX_RQ_PSN + 1);
	h = request(test, OP(SEND_LAST), 1, SRQN(1));
	fix_deliver(test, h, 10);
	expect_answer(test, NHCA_AETH_NAK | NHCA_NAK_INVALID_REQ, 1);
	KUNIT_EXPECT_NULL(test, memchr_inv(p + FIX_MTU, 0, PAGE_SIZE - FIX_MTU));
}

/*
 * If the SRQ that receives a message is destroyed and a new SRQ gets its SRQN, the next packet of
 * the message is refused and not placed, because its receive belonged to the old SRQ.
 */
static void reuse_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;
	struct nhca_srq *srq = &xrc->srq[0];
	u8 *p = page_address(f->page);

	fix_post_recv(test, &srq->wq, f->mr, 0, 2 * FIX_MTU);
	fix_deliver(test, request(test, OP(SEND_FIRST), 0, SRQN(0)), FIX_MTU);
	KUNIT_EXPECT_TRUE(test, f->qp->rq.have_rwr);
	nhca_srq_stop(srq);
	nhca_rwq_free(&srq->wq);
	nhca_srq_init(srq);
	KUNIT_ASSERT_EQ(test, nhca_rwq_init(&srq->wq, 8, 1, NULL), 0);
	fix_post_recv(test, &srq->wq, f->mr, 0, 2 * FIX_MTU);
	fix_deliver(test, request(test, OP(SEND_LAST), 1, SRQN(0)), 10);
	expect_answer(test, NHCA_AETH_NAK | NHCA_NAK_INVALID_REQ, 1);
	KUNIT_EXPECT_NULL(test, memchr_inv(p + FIX_MTU, 0, PAGE_SIZE - FIX_MTU));
	/* the receive of the old SRQ does not complete in the CQ of the new SRQ */
	KUNIT_EXPECT_EQ(test, completions(), 0);
	KUNIT_EXPECT_EQ(test, nhca_rwq_level(&srq->wq), 1);
}

/* A request can use only R_Keys of the protection domain of the SRQ that it names. */
static void domain_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;
	struct nhca_hdr h = request(test, OP(WRITE_ONLY), 0, SRQN(0));
	u8 *p = page_address(f->page);
	struct sent sent;
	u32 i;

	h.va = 64;
	h.dmalen = 16;
	fix_deliver(test, h, 16);
	for (i = 0; i < 16; i++)
		KUNIT_ASSERT_EQ(test, p[64 + i], fix_byte(i));
	h = request(test, OP(READ_REQUEST), 1, SRQN(0));
	h.va = 64;
	h.dmalen = 16;
	fix_deliver(test, h, 0);
	KUNIT_ASSERT_EQ(test, fix_sent(f, OP(READ_RESP_ONLY), &sent), 1);
	KUNIT_EXPECT_EQ(test, sent.payload, 16);
	/* refused: the R_Key is of SRQ 0's protection domain, not of SRQ 1's */
	memset(p, 0, PAGE_SIZE);
	h = request(test, OP(WRITE_ONLY), 2, SRQN(1));
	h.va = 64;
	h.dmalen = 16;
	fix_deliver(test, h, 16);
	expect_answer(test, NHCA_AETH_NAK | NHCA_NAK_REM_ACCESS, 1);
	KUNIT_EXPECT_NULL(test, memchr_inv(p, 0, PAGE_SIZE));
}

/*
 * When a target goes to the error state, the receive that its message uses is flushed to the CQ of
 * the SRQ. If the SRQ was destroyed, there is no completion. Receives that the target has not
 * fetched remain in the SRQ, because other QPs use the SRQ too.
 */
static void flush_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;
	struct nhca_cqe cqe;
	u32 gone;

	for (gone = 0; gone < 2; gone++) {
		fix_post_recv(test, &xrc->srq[0].wq, f->mr, 5 + gone, 2 * FIX_MTU);
		fix_post_recv(test, &xrc->srq[0].wq, f->mr, 9, 2 * FIX_MTU);
		fix_deliver(test, request(test, OP(SEND_FIRST), 0, SRQN(0)), FIX_MTU);
		KUNIT_EXPECT_TRUE(test, f->qp->rq.have_rwr);
		if (gone)
			xa_erase(&f->dev->srq_ids, SRQN(0));
		fix_state(test, f->qp, IB_QPS_ERR);
		KUNIT_EXPECT_EQ(test, completions(), !gone);
		if (!gone) {
			KUNIT_ASSERT_TRUE(test, fix_poll(xrc->cq[0], &cqe));
			KUNIT_EXPECT_EQ(test, cqe.status, IB_WC_WR_FLUSH_ERR);
			KUNIT_EXPECT_EQ(test, cqe.wr_id, 5);
		}
		KUNIT_EXPECT_EQ(test, nhca_rwq_level(&xrc->srq[0].wq), 1);
		fix_state(test, f->qp, IB_QPS_RESET);
		xrc_connect(test, f->qp);
		nhca_rwq_drop(&xrc->srq[0].wq);
	}
	KUNIT_EXPECT_EQ(test, xrc->events, 2);
}

/*
 * A packet of an initiator has the SRQN of its work request, and an ACK completes the work request.
 */
static void initiator_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;
	struct nhca_send_wqe *wqe;
	struct nhca_hdr h;
	struct nhca_cqe cqe;
	struct nhca_sq *sq;
	struct sent sent;

	xrc->initiator = xrc_qp(test, IB_QPT_XRC_INI);
	xrc_connect(test, xrc->initiator);
	sq = &xrc->initiator->sq;
	wqe = nhca_ring_slot(&sq->ring, sq->prod);
	*wqe = (struct nhca_send_wqe) {
		.wr_id = 3,
		.opcode = NHCA_WR_SEND,
		.num_sge = 1,
		.flags = NHCA_SEND_SIGNALED,
		.xrc_srqn = SRQN(1),
	};
	wqe->sge[0] = (struct nhca_sge) { .addr = 0, .length = 10, .lkey = f->mr->ibmr.lkey };
	WRITE_ONCE(sq->ring.hdr->prod, ++sq->prod);
	nhca_send_doorbell(xrc->initiator);
	KUNIT_ASSERT_EQ(test, fix_sent(f, OP(SEND_ONLY), &sent), 1);
	KUNIT_EXPECT_EQ(test, sent.hdr.srqn, SRQN(1));
	KUNIT_EXPECT_EQ(test, sent.hdr.psn, FIX_SQ_PSN);
	KUNIT_EXPECT_TRUE(test, sent.hdr.ackreq);

	/* an initiator executes no requests, so the request is dropped */
	h = fix_hdr(xrc->initiator, OP(SEND_ONLY), FIX_RQ_PSN);
	h.srqn = SRQN(0);
	fix_post_recv(test, &xrc->srq[0].wq, f->mr, 0, 50);
	fix_deliver(test, h, 10);
	KUNIT_EXPECT_EQ(test, fix_count(f, NHCA_CNT_RX_BAD_OPCODE), 1);
	KUNIT_EXPECT_EQ(test, completions(), 0);
	fix_deliver(test, fix_hdr(xrc->initiator, OP(ACK), FIX_SQ_PSN), 0);
	KUNIT_ASSERT_TRUE(test, fix_poll(f->cq, &cqe));
	KUNIT_EXPECT_EQ(test, cqe.status, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, cqe.wr_id, 3);
}

/* Return: number of completions of @qp in the CQ of SRQ @i. */
static u32 completions_of(u32 i, const struct nhca_qp *qp)
{
	struct nhca_cq *cq = xrc->cq[i];
	u32 at, n = 0;

	for (at = cq->cons; at != cq->prod; at++)
		n += ((struct nhca_cqe *)nhca_ring_slot(&cq->ring, at))->kernel ==
		     (uintptr_t)&qp->ibqp;
	return n;
}

/*
 * If a target is reset or destroyed, its completions are removed from the CQs of all SRQs that it
 * has used, even if one of the SRQs was destroyed. The completions of another QP remain.
 */
static void forget_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;
	struct nhca_qp *qp = f->qp, *other = xrc_qp(test, IB_QPT_XRC_TGT);
	struct nhca_cqe cqe = { .wr_id = 99, .kernel = (uintptr_t)&other->ibqp };
	u32 i, round;

	for (round = 0; round < 2; round++) {
		for (i = 0; i < 2; i++) {
			fix_post_recv(test, &xrc->srq[i].wq, f->mr, 0, 0);
			fix_deliver(test, request(test, OP(SEND_ONLY), i, SRQN(i)), 0);
			KUNIT_ASSERT_EQ(test, completions_of(i, qp), 1);
			KUNIT_ASSERT_EQ(test, nhca_cq_post(xrc->cq[i], &cqe, false), 0);
		}
		if (round) {
			xa_erase(&f->dev->srq_ids, SRQN(1));
			fix_destroy(&f->qp);
		} else {
			fix_state(test, qp, IB_QPS_ERR);
			fix_state(test, qp, IB_QPS_RESET);
			xrc_connect(test, qp);
		}
		for (i = 0; i < 2; i++) {
			KUNIT_EXPECT_EQ(test, completions_of(i, qp), 0);
			KUNIT_EXPECT_EQ(test, completions_of(i, other), round + 1);
		}
	}
	fix_destroy(&other);
	KUNIT_EXPECT_EQ(test, completions(), 0);
}

/**
 * struct resetter - a thread that resets a QP
 * @qp:   the QP
 * @done: nhca_qp_modify() has returned
 */
struct resetter {
	struct nhca_qp *qp;
	struct completion done;
};

static int reset_thread(void *arg)
{
	struct resetter *r = arg;
	struct ib_qp_attr attr = {};

	nhca_qp_modify(r->qp, IB_QPS_RESET, &attr, IB_QP_STATE);
	complete(&r->done);
	return 0;
}

/*
 * A process that created a target has exited. The reset of the target by a kernel thread has a time
 * limit, because packets that refer to pages may stay in a netdev that does not send.
 */
static void creator_test(struct kunit *test)
{
	struct mm_struct *mm = kunit_kzalloc(test, sizeof(*mm), GFP_KERNEL);
	struct nhca_ucontext *uc = kunit_kzalloc(test, sizeof(*uc), GFP_KERNEL);
	/* the process has exited, and the time limit for waits after its exit has passed */
	struct nhca_pageref_owner owner = { .mm = mm, .deadline = jiffies ?: 1 };
	struct nhca_qp_rings rings = { .rq.uc = uc };
	struct task_struct *thread;
	struct nhca_zcopy *z;
	struct resetter r;

	KUNIT_ASSERT_TRUE(test, mm && uc);
	refcount_set(&owner.ref, 1);
	uc->owner = &owner;
	r.qp = xrc_qp_of(test, IB_QPT_XRC_TGT, &rings);
	init_completion(&r.done);
	local_bh_disable();
	nhca_live_enter();
	z = nhca_zcopy_new(r.qp->flow);
	nhca_live_exit();
	local_bh_enable();
	KUNIT_ASSERT_NOT_NULL(test, z);
	thread = test_thread_start(reset_thread, &r, 0);
	KUNIT_ASSERT_FALSE(test, IS_ERR(thread));
	KUNIT_EXPECT_NE(test, wait_for_completion_timeout(&r.done, TEST_PATIENCE), 0);
	nhca_zcopy_put(z);
	test_thread_stop(thread);
	fix_destroy(&r.qp);
	/* only the reference of the user context is left */
	KUNIT_EXPECT_EQ(test, refcount_read(&owner.ref), 1);
}

static struct kunit_case xrc_cases[] = {
	KUNIT_CASE(srq_test),
	KUNIT_CASE(refused_test),
	KUNIT_CASE(rnr_test),
	KUNIT_CASE(switch_test),
	KUNIT_CASE(reuse_test),
	KUNIT_CASE(domain_test),
	KUNIT_CASE(flush_test),
	KUNIT_CASE(initiator_test),
	KUNIT_CASE(forget_test),
	KUNIT_CASE(creator_test),
	{}
};

static struct kunit_suite xrc_suite = {
	.name = "nhca_xrc",
	.init = xrc_init,
	.exit = xrc_exit,
	.test_cases = xrc_cases,
};

kunit_test_suite(xrc_suite);
