// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit: the steps of the requester: what it decides, which packets request an ACK, what it does
 * when sending fails, and when its timer expires.
 */
#include "../net/flow.h"
#include "../net/txq.h"
#include "qp_fixture.h"

#define SEND_ONLY	(NHCA_SVC_RC | NHCA_OP_SEND_ONLY)
#define SEND_FIRST	(NHCA_SVC_RC | NHCA_OP_SEND_FIRST)
#define WRITE_ONLY	(NHCA_SVC_RC | NHCA_OP_WRITE_ONLY)
#define READ_REQUEST	(NHCA_SVC_RC | NHCA_OP_READ_REQUEST)
#define ACK		(NHCA_SVC_RC | NHCA_OP_ACK)

static enum nhca_sq_step decide(struct nhca_qp *qp, int budget)
{
	enum nhca_sq_step step;

	spin_lock_bh(&qp->sq.lock);
	step = nhca_sq_decide(qp, budget);
	spin_unlock_bh(&qp->sq.lock);
	return step;
}

/* ---- decisions ---- */

static void decide_test(struct kunit *test)
{
	static const struct {
		enum ib_qp_state state;
		bool rnr_wait;
		/* sq.cur is a request with the members that follow; otherwise sq.cur is NULL */
		bool cur, begun;
		u8 opcode, flags, status;
		u32 npsn, sent;
		/* outstanding READs and atomics; outstanding PSNs before the request */
		u32 rd_atomic, used;
		enum nhca_sq_step step;
	} rows[] = {
		{ .state = IB_QPS_RESET, .step = NHCA_SQ_STOP },
		{ .state = IB_QPS_INIT, .step = NHCA_SQ_STOP },
		{ .state = IB_QPS_RTR, .step = NHCA_SQ_STOP },
		{ .state = IB_QPS_SQE, .step = NHCA_SQ_FLUSH },
		{ .state = IB_QPS_ERR, .rnr_wait = true, .step = NHCA_SQ_FLUSH },
		{ .state = IB_QPS_RTS, .rnr_wait = true, .step = NHCA_SQ_STOP },
		{ .state = IB_QPS_RTS, .step = NHCA_SQ_FETCH },
		/* in SQD no request begins, but a request that has begun is sent */
		{ .state = IB_QPS_SQD, .step = NHCA_SQ_DRAIN },
		{ .state = IB_QPS_SQD, .cur = true, .step = NHCA_SQ_DRAIN },
		{ .state = IB_QPS_SQD, .cur = true, .begun = true, .npsn = 1,
		  .step = NHCA_SQ_SEND },
		{ .state = IB_QPS_RTS, .cur = true, .step = NHCA_SQ_BEGIN },
		/* only a request with a fence waits for outstanding READs and atomics */
		{ .state = IB_QPS_RTS, .cur = true, .rd_atomic = 1, .step = NHCA_SQ_BEGIN },
		{ .state = IB_QPS_RTS, .cur = true, .flags = NHCA_SEND_FENCE,
		  .rd_atomic = 1, .step = NHCA_SQ_STOP },
		{ .state = IB_QPS_RTS, .cur = true, .flags = NHCA_SEND_FENCE,
		  .step = NHCA_SQ_BEGIN },
		{ .state = IB_QPS_RTS, .cur = true, .status = IB_WC_LOC_LEN_ERR,
		  .step = NHCA_SQ_FAIL },
		{ .state = IB_QPS_RTS, .cur = true,
		  .begun = true, .npsn = 3, .sent = 3, .step = NHCA_SQ_ADVANCE },
		{ .state = IB_QPS_RTS, .cur = true,
		  .begun = true, .npsn = 30, .sent = 3, .used = 12,
		  .step = NHCA_SQ_SEND },
		{ .state = IB_QPS_RTS, .cur = true,
		  .begun = true, .npsn = 30, .sent = 3, .used = 13,
		  .step = NHCA_SQ_FULL },
		/* the response to a READ must fit in the window, unless nothing is outstanding */
		{ .state = IB_QPS_RTS, .cur = true,
		  .begun = true, .npsn = 20, .opcode = NHCA_WR_RDMA_READ,
		  .step = NHCA_SQ_SEND },
		{ .state = IB_QPS_RTS, .cur = true,
		  .begun = true, .npsn = 20, .opcode = NHCA_WR_RDMA_READ,
		  .used = 1, .step = NHCA_SQ_FULL },
		{ .state = IB_QPS_RTS, .cur = true,
		  .begun = true, .npsn = 15, .opcode = NHCA_WR_RDMA_READ,
		  .used = 1, .step = NHCA_SQ_SEND },
	};
	struct qp_fixture *f = test->priv;
	struct nhca_sq *sq = &f->qp->sq;
	struct nhca_swr *swr = kunit_kzalloc(test, sizeof(*swr), GFP_KERNEL);
	int i;

	KUNIT_ASSERT_NOT_NULL(test, swr);
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		swr->begun = rows[i].begun;
		swr->status = rows[i].status;
		swr->npsn = rows[i].npsn;
		swr->sent = rows[i].sent;
		swr->wqe.opcode = rows[i].opcode;
		swr->wqe.flags = rows[i].flags;
		swr->psn = nhca_psn_add(sq->una, rows[i].used);
		f->qp->state = rows[i].state;
		sq->rnr_wait = rows[i].rnr_wait;
		sq->rd_atomic = rows[i].rd_atomic;
		if (rows[i].cur) {
			list_add(&swr->list, &sq->inflight);
			sq->cur = swr;
		}
		KUNIT_EXPECT_EQ_MSG(test, decide(f->qp, 1), rows[i].step, "entry %d", i);
		KUNIT_EXPECT_EQ_MSG(test, decide(f->qp, 0), NHCA_SQ_LATER, "entry %d", i);
		INIT_LIST_HEAD(&sq->inflight);
		sq->cur = NULL;
	}
	sq->rnr_wait = false;
	sq->rd_atomic = 0;
	f->qp->state = IB_QPS_RTS;
}

/*
 * If a request fails while earlier requests are outstanding, the requester waits for the ACK of the
 * earlier requests before it reports the error.
 */
static void fail_later_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;
	struct nhca_cqe cqe;
	struct sent sent;

	KUNIT_ASSERT_EQ(test, fix_post_rdma(f->qp, f->mr, IB_WR_SEND, 0, 10, 0, 0), 0);
	/* a SEND from outside the region */
	KUNIT_ASSERT_EQ(test, fix_post_rdma(f->qp, f->mr, IB_WR_SEND, PAGE_SIZE, 10, 0, 0), 0);
	nhca_send_doorbell(f->qp);
	KUNIT_EXPECT_EQ(test, decide(f->qp, 1), NHCA_SQ_FAIL_LATER);
	KUNIT_EXPECT_FALSE(test, fix_poll(f->cq, &cqe));
	KUNIT_EXPECT_EQ(test, fix_sent(f, SEND_ONLY, &sent), 2);
	KUNIT_EXPECT_EQ(test, sent.hdr.psn, FIX_SQ_PSN);
	KUNIT_EXPECT_TRUE(test, sent.hdr.ackreq);
	fix_packet(test, ACK, FIX_SQ_PSN, 0);
	KUNIT_ASSERT_TRUE(test, fix_poll(f->cq, &cqe));
	KUNIT_EXPECT_EQ(test, cqe.status, IB_WC_LOC_PROT_ERR);
	KUNIT_EXPECT_EQ(test, cqe.wr_id, PAGE_SIZE);
	KUNIT_EXPECT_EQ(test, f->qp->state, IB_QPS_ERR);
}

/* ---- AckReq ---- */

/*
 * Of two SENDs only the first is signaled: the second requests the ACK of both. If the second
 * cannot be sent at first, it still requests the ACK when it is sent.
 */
static void unsent_ackreq_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;
	struct nhca_sq *sq = &f->qp->sq;
	struct nhca_cqe cqe;
	struct sent sent;

	fix_timeout(f->qp);
	f->fail_at = 2;
	sq->ackreq_boost = 3;
	KUNIT_ASSERT_EQ(test, fix_post_rdma(f->qp, f->mr, IB_WR_SEND, 0, 10, 0,
					    IB_SEND_SIGNALED), 0);
	KUNIT_ASSERT_EQ(test, fix_post_rdma(f->qp, f->mr, IB_WR_SEND, 10, 10, 0, 0), 0);
	nhca_send_doorbell(f->qp);
	KUNIT_ASSERT_EQ(test, fix_sent(f, SEND_ONLY, &sent), 1);
	KUNIT_EXPECT_FALSE(test, sent.hdr.ackreq);
	KUNIT_EXPECT_TRUE(test, sq->ackreq_pending);
	KUNIT_EXPECT_EQ(test, sq->ackreq_boost, 3);
	KUNIT_EXPECT_TRUE(test, timer_pending(&sq->timer));
	sq->ackreq_boost = 0;

	nhca_send_doorbell(f->qp);
	KUNIT_ASSERT_EQ(test, fix_sent(f, SEND_ONLY, &sent), 2);
	KUNIT_EXPECT_EQ(test, sent.hdr.psn, FIX_SQ_PSN + 1);
	KUNIT_EXPECT_TRUE(test, sent.hdr.ackreq);
	KUNIT_EXPECT_FALSE(test, sq->ackreq_pending);
	fix_packet(test, ACK, FIX_SQ_PSN + 1, 0);
	KUNIT_EXPECT_TRUE(test, fix_poll(f->cq, &cqe));
	KUNIT_EXPECT_FALSE(test, fix_poll(f->cq, &cqe));
	KUNIT_EXPECT_TRUE(test, list_empty(&sq->inflight));
}

/*
 * An ACK is missing, but the packet that requests it cannot be sent. Without a timeout nothing else
 * would run the requester again, so the requester sets the timer.
 */
static void unsent_again_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;
	struct nhca_sq *sq = &f->qp->sq;

	KUNIT_ASSERT_EQ(test, fix_post_rdma(f->qp, f->mr, IB_WR_SEND, 0, 10, 0, 0), 0);
	nhca_send_doorbell(f->qp);
	KUNIT_EXPECT_EQ(test, fix_sent(f, SEND_ONLY, NULL), 1);
	f->xmit_err = -ENOMEM;
	sq->ackreq_pending = true;
	local_bh_disable();
	nhca_send_doorbell(f->qp);
	KUNIT_EXPECT_TRUE(test, sq->ackreq_pending);
	KUNIT_EXPECT_TRUE(test, timer_pending(&sq->timer));
	f->xmit_err = 0;
	nhca_sq_timer(&sq->timer);
	local_bh_enable();
	KUNIT_EXPECT_EQ(test, fix_sent(f, SEND_ONLY, NULL), 2);
	KUNIT_EXPECT_FALSE(test, sq->ackreq_pending);
}

/* A packet that cannot be sent sets the timer for a new try, unless the timer is due earlier. */
static void unsent_due_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;
	struct nhca_sq *sq = &f->qp->sq;
	unsigned long due, expires;

	spin_lock_bh(&sq->lock);
	due = jiffies + 1;
	mod_timer(&sq->timer, due);
	nhca_sq_unsent(f->qp);
	expires = sq->timer.expires;
	spin_unlock_bh(&sq->lock);
	timer_delete(&sq->timer);
	KUNIT_EXPECT_EQ(test, expires, due);
}

/* A doorbell is not lost if nhca_qp_modify() holds the lock of the send queue. */
static void modify_kicks_test(struct kunit *test)
{
	struct ib_qp_attr attr = { .min_rnr_timer = 2 };
	struct qp_fixture *f = test->priv;

	KUNIT_ASSERT_EQ(test, fix_post_rdma(f->qp, f->mr, IB_WR_SEND, 0, 10, 0, 0), 0);
	set_bit(0, &f->qp->sq.kicked);
	KUNIT_EXPECT_EQ(test, f->nsent, 0);
	KUNIT_EXPECT_EQ(test, nhca_qp_modify(f->qp, IB_QPS_RTS, &attr, IB_QP_MIN_RNR_TIMER), 0);
	KUNIT_EXPECT_EQ(test, f->nsent, 1);
}

/* A round trip is measured from the time at which the packet was sent, not from a failed try. */
static void unsent_rtt_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;

	fix_timeout(f->qp);
	f->fail_at = 1;
	fix_post_send(test, f->qp, f->mr, 0, 10, IB_SEND_SIGNALED);
	KUNIT_EXPECT_EQ(test, f->nsent, 0);
	KUNIT_EXPECT_FALSE(test, f->qp->sq.rtx->rtt_begun);
	nhca_send_doorbell(f->qp);
	KUNIT_EXPECT_EQ(test, f->nsent, 1);
	KUNIT_EXPECT_TRUE(test, f->qp->sq.rtx->rtt_begun);
}

/* An empty WRITE that requests an ACK counts for NHCA_EMPTY_ACKREQ_MAX only if it was sent. */
static void unsent_empty_write_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;
	struct nhca_sq *sq = &f->qp->sq;
	u32 i;

	fix_timeout(f->qp);
	fix_post_send(test, f->qp, f->mr, 0, 10, IB_SEND_SIGNALED);
	nhca_mr_free(f->mr);
	f->mr = NULL;
	f->xmit_err = -ENETDOWN;
	for (i = 0; i < NHCA_EMPTY_ACKREQ_MAX + 1; i++)
		fix_expire(f->qp);
	KUNIT_EXPECT_EQ(test, sq->empty_ackreqs, 0);
	KUNIT_EXPECT_EQ(test, f->qp->state, IB_QPS_RTS);
	f->xmit_err = 0;
	fix_expire(f->qp);
	KUNIT_EXPECT_EQ(test, sq->empty_ackreqs, 1);
	KUNIT_EXPECT_EQ(test, fix_sent(f, WRITE_ONLY, NULL), 1);
}

/*
 * If all requests are unsignaled, a packet in each quarter of the window sets AckReq, and so does
 * the packet that fills the window.
 */
static void ackreq_window_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;
	struct sent sent;
	u32 i, asked = 0;

	/* 12 packets fill three quarters of the first window: one packet in each has AckReq */
	for (i = 0; i < 12; i++)
		KUNIT_ASSERT_EQ(test, fix_post_rdma(f->qp, f->mr, IB_WR_SEND, 0, 10, 0, 0), 0);
	nhca_send_doorbell(f->qp);
	for (i = 0; i < 12; i++)
		asked += f->sent[i].hdr.ackreq;
	KUNIT_EXPECT_EQ(test, f->nsent, 12);
	KUNIT_EXPECT_EQ(test, asked, 3);
	/* the window fills up: its last packet has AckReq, and no more packets are sent */
	for (i = 0; i < 12; i++)
		KUNIT_ASSERT_EQ(test, fix_post_rdma(f->qp, f->mr, IB_WR_SEND, 0, 10, 0, 0), 0);
	nhca_send_doorbell(f->qp);
	KUNIT_EXPECT_EQ(test, f->nsent, 16);
	KUNIT_EXPECT_TRUE(test, f->sent[15].hdr.ackreq);
	KUNIT_EXPECT_EQ(test, decide(f->qp, 1), NHCA_SQ_FULL);
	fix_packet(test, ACK, FIX_SQ_PSN + 15, 0);
	KUNIT_EXPECT_EQ(test, f->nsent, 24);
	KUNIT_EXPECT_EQ(test, f->qp->sq.window.cwnd, 32);
	fix_sent(f, SEND_ONLY, &sent);
	KUNIT_EXPECT_EQ(test, sent.hdr.psn, FIX_SQ_PSN + 23);
}

/* the CPU that nhca_flow_cpu() returns */
static unsigned int sender_cpu;

static unsigned int sender_this_cpu(void)
{
	return sender_cpu;
}

/* Post a SEND on CPU @cpu. Return: the CPU that selects the transmit queue. */
static unsigned int send_on(struct kunit *test, unsigned int cpu)
{
	struct qp_fixture *f = test->priv;

	sender_cpu = cpu;
	KUNIT_EXPECT_EQ(test, fix_post_rdma(f->qp, f->mr, IB_WR_SEND, 0, 10, 0, 0), 0);
	nhca_send_doorbell(f->qp);
	return nhca_flow_sender(f->qp->flow);
}

/*
 * The CPU that sends the first packet selects the transmit queue until the peer has acknowledged
 * all packets, even if the stack orphans the packets. The fixture charges no packets, so the count
 * is 0, as if the stack had orphaned all packets.
 */
static void sender_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;

	kunit_activate_static_stub(test, nhca_flow_cpu, sender_this_cpu);
	KUNIT_EXPECT_EQ(test, send_on(test, 3), 3);
	KUNIT_EXPECT_EQ(test, send_on(test, 5), 3);
	fix_packet(test, ACK, FIX_SQ_PSN, 0);
	KUNIT_EXPECT_TRUE(test, f->qp->flow->held);
	KUNIT_EXPECT_EQ(test, send_on(test, 6), 3);
	fix_packet(test, ACK, FIX_SQ_PSN + 2, 0);
	KUNIT_EXPECT_FALSE(test, f->qp->flow->held);
	KUNIT_EXPECT_EQ(test, send_on(test, 7), 7);
	/* a retransmission does not change the queue */
	sender_cpu = 8;
	fix_timeout(f->qp);
	fix_expire(f->qp);
	KUNIT_EXPECT_GE(test, f->nsent, 5);
	KUNIT_EXPECT_EQ(test, nhca_flow_sender(f->qp->flow), 7);
	/* a new connection does not keep the queue of the old connection */
	fix_state(test, f->qp, IB_QPS_RESET);
	fix_connect(test, f->qp);
	KUNIT_EXPECT_FALSE(test, f->qp->flow->held);
	KUNIT_EXPECT_EQ(test, send_on(test, 9), 9);
}

/* ---- opcodes ---- */

static void opcode_test(struct kunit *test)
{
	static const struct {
		enum ib_wr_opcode wr;
		u32 len;
		u8 first, last;
		u32 packets;
	} rows[] = {
		{ IB_WR_SEND, 0, NHCA_OP_SEND_ONLY, NHCA_OP_SEND_ONLY, 1 },
		{ IB_WR_SEND, 2000, NHCA_OP_SEND_FIRST, NHCA_OP_SEND_LAST, 2 },
		{ IB_WR_SEND, 3000, NHCA_OP_SEND_FIRST, NHCA_OP_SEND_LAST, 3 },
		{ IB_WR_SEND_WITH_IMM, 10, NHCA_OP_SEND_ONLY_IMM, NHCA_OP_SEND_ONLY_IMM, 1 },
		{ IB_WR_SEND_WITH_IMM, 2000, NHCA_OP_SEND_FIRST, NHCA_OP_SEND_LAST_IMM, 2 },
		{ IB_WR_SEND_WITH_INV, 10, NHCA_OP_SEND_ONLY_INV, NHCA_OP_SEND_ONLY_INV, 1 },
		{ IB_WR_SEND_WITH_INV, 2000, NHCA_OP_SEND_FIRST, NHCA_OP_SEND_LAST_INV, 2 },
		{ IB_WR_RDMA_WRITE, 1024, NHCA_OP_WRITE_ONLY, NHCA_OP_WRITE_ONLY, 1 },
		{ IB_WR_RDMA_WRITE, 3000, NHCA_OP_WRITE_FIRST, NHCA_OP_WRITE_LAST, 3 },
		{ IB_WR_RDMA_WRITE_WITH_IMM, 10, NHCA_OP_WRITE_ONLY_IMM,
		  NHCA_OP_WRITE_ONLY_IMM, 1 },
		{ IB_WR_RDMA_WRITE_WITH_IMM, 1025, NHCA_OP_WRITE_FIRST,
		  NHCA_OP_WRITE_LAST_IMM, 2 },
		{ IB_WR_RDMA_READ, 3000, NHCA_OP_READ_REQUEST, NHCA_OP_READ_REQUEST, 1 },
		{ IB_WR_ATOMIC_WRITE, 8, NHCA_OP_ATOMIC_WRITE, NHCA_OP_ATOMIC_WRITE, 1 },
	};
	struct qp_fixture *f = test->priv;
	u32 first = 0, psn = FIX_SQ_PSN;
	int i;

	f->qp->attr.max_rd_atomic = 16;
	f->qp->sq.window.cwnd = NHCA_CWND_MAX;
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		KUNIT_ASSERT_EQ(test, fix_post_rdma(f->qp, f->mr, rows[i].wr, 0, rows[i].len,
						    0, 0), 0);
		nhca_send_doorbell(f->qp);
		KUNIT_ASSERT_EQ_MSG(test, f->nsent - first, rows[i].packets, "entry %d", i);
		KUNIT_EXPECT_EQ_MSG(test, f->sent[first].hdr.opcode, rows[i].first, "entry %d", i);
		KUNIT_EXPECT_EQ_MSG(test, f->sent[f->nsent - 1].hdr.opcode, rows[i].last,
				    "entry %d", i);
		KUNIT_EXPECT_EQ_MSG(test, f->sent[first].hdr.psn, psn, "entry %d", i);
		psn += nhca_psn_count(rows[i].len, FIX_MTU);
		first = f->nsent;
	}
	KUNIT_ASSERT_EQ(test, fix_post_atomic(f->qp, f->mr, IB_WR_ATOMIC_CMP_AND_SWP, 0, 8, 5, 6),
			0);
	KUNIT_ASSERT_EQ(test, fix_post_atomic(f->qp, f->mr, IB_WR_ATOMIC_FETCH_AND_ADD, 0, 8, 7,
					      0), 0);
	nhca_send_doorbell(f->qp);
	KUNIT_ASSERT_EQ(test, f->nsent, first + 2);
	KUNIT_EXPECT_EQ(test, f->sent[first].hdr.opcode, NHCA_OP_CMP_SWAP);
	KUNIT_EXPECT_EQ(test, f->sent[first].hdr.compare, 5);
	KUNIT_EXPECT_EQ(test, f->sent[first].hdr.swap_add, 6);
	KUNIT_EXPECT_EQ(test, f->sent[first + 1].hdr.opcode, NHCA_OP_FETCH_ADD);
	KUNIT_EXPECT_EQ(test, f->sent[first + 1].hdr.swap_add, 7);
}

/* A READ fails if max_rd_atomic is 0, and waits while max_rd_atomic READs are outstanding. */
static void rd_atomic_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;
	struct nhca_cqe cqe;
	u32 i;

	for (i = 0; i < 6; i++)
		KUNIT_ASSERT_EQ(test, fix_post_rdma(f->qp, f->mr, IB_WR_RDMA_READ, 0, 10, 100, 0),
				0);
	nhca_send_doorbell(f->qp);
	KUNIT_EXPECT_EQ(test, fix_sent(f, READ_REQUEST, NULL), 4);
	fix_packet(test, NHCA_SVC_RC | NHCA_OP_READ_RESP_ONLY, FIX_SQ_PSN, 10);
	KUNIT_EXPECT_EQ(test, fix_sent(f, READ_REQUEST, NULL), 5);

	fix_state(test, f->qp, IB_QPS_RESET);
	fix_connect(test, f->qp);
	f->qp->attr.max_rd_atomic = 0;
	KUNIT_ASSERT_EQ(test, fix_post_rdma(f->qp, f->mr, IB_WR_RDMA_READ, 0, 10, 100, 0), 0);
	nhca_send_doorbell(f->qp);
	KUNIT_ASSERT_TRUE(test, fix_poll(f->cq, &cqe));
	KUNIT_EXPECT_EQ(test, cqe.status, IB_WC_LOC_QP_OP_ERR);
}

/* A READ ignores IB_SEND_INLINE, because it sends no data. */
static void inline_read_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;
	struct sent sent;

	KUNIT_ASSERT_EQ(test, fix_post_rdma(f->qp, f->mr, IB_WR_RDMA_READ, 0, 10, 100,
					    IB_SEND_INLINE), 0);
	nhca_send_doorbell(f->qp);
	KUNIT_ASSERT_EQ(test, fix_sent(f, READ_REQUEST, &sent), 1);
	KUNIT_EXPECT_EQ(test, sent.hdr.dmalen, 10);
	fix_packet(test, NHCA_SVC_RC | NHCA_OP_READ_RESP_ONLY, FIX_SQ_PSN, 10);
	KUNIT_EXPECT_TRUE(test, list_empty(&f->qp->sq.inflight));
	KUNIT_EXPECT_EQ(test, f->qp->state, IB_QPS_RTS);
}

/* ---- the timer ---- */

/*
 * If nothing is acknowledged, the requester retransmits at each timeout until no retry is left.
 * Before the first retransmission, it sends NHCA_TLP_MAX probes if the RTT is known.
 */
static void timeouts_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;
	struct nhca_sq *sq = &f->qp->sq;
	struct nhca_cqe cqe;
	u32 i;

	fix_timeout(f->qp);
	fix_post_send(test, f->qp, f->mr, 0, 3000, IB_SEND_SIGNALED);
	KUNIT_EXPECT_EQ(test, fix_sent(f, SEND_FIRST, NULL), 1);
	/* a timer that expires early is only set again */
	local_bh_disable();
	nhca_sq_timer(&sq->timer);
	local_bh_enable();
	KUNIT_EXPECT_EQ(test, f->nsent, 3);
	KUNIT_EXPECT_TRUE(test, timer_pending(&sq->timer));

	f->qp->peer = NHCA_CAP_PRESENT;
	/*
	 * the retransmission timeout expires NHCA_TLP_MAX times, doubled each time, and each time a
	 * probe is sent
	 */
	sq->rtx->rto = HZ;
	for (i = 0; i < NHCA_TLP_MAX; i++) {
		sq->rtx->since = jiffies - (HZ << i) - 2;
		local_bh_disable();
		nhca_sq_timer(&sq->timer);
		local_bh_enable();
	}
	KUNIT_EXPECT_EQ(test, fix_count(f, NHCA_CNT_PROBE), NHCA_TLP_MAX);
	KUNIT_EXPECT_EQ(test, sq->window.cwnd, NHCA_CWND_MIN);
	KUNIT_EXPECT_EQ(test, f->qp->peer, 0);
	KUNIT_EXPECT_EQ(test, fix_sent(f, SEND_FIRST, NULL), 1 + NHCA_TLP_MAX);
	for (i = 0; i < 7; i++) {
		fix_expire(f->qp);
		KUNIT_EXPECT_EQ(test, sq->rtx->retries, 6 - i);
	}
	KUNIT_EXPECT_EQ(test, fix_count(f, NHCA_CNT_TIMEOUT), 7);
	KUNIT_EXPECT_FALSE(test, fix_poll(f->cq, &cqe));
	fix_expire(f->qp);
	KUNIT_ASSERT_TRUE(test, fix_poll(f->cq, &cqe));
	KUNIT_EXPECT_EQ(test, cqe.status, IB_WC_RETRY_EXC_ERR);
	KUNIT_EXPECT_EQ(test, fix_count(f, NHCA_CNT_RETRY_EXCEEDED), 1);
	KUNIT_EXPECT_EQ(test, f->qp->state, IB_QPS_ERR);
}

/* If all requests are unsignaled, the timer requests their ACK, which does not count as a retry. */
static void timer_ackreq_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;
	struct sent sent;

	fix_timeout(f->qp);
	fix_post_send(test, f->qp, f->mr, 0, 10, 0);
	fix_sent(f, SEND_ONLY, &sent);
	KUNIT_EXPECT_FALSE(test, sent.hdr.ackreq);
	fix_expire(f->qp);
	KUNIT_EXPECT_EQ(test, fix_sent(f, SEND_ONLY, &sent), 2);
	KUNIT_EXPECT_TRUE(test, sent.hdr.ackreq);
	KUNIT_EXPECT_EQ(test, fix_count(f, NHCA_CNT_TIMEOUT), 0);
	KUNIT_EXPECT_EQ(test, f->qp->sq.ackreq_boost, NHCA_ACKREQ_BOOST);
	/* the ACK of the retransmission is missing as well, which counts as a timeout */
	fix_expire(f->qp);
	KUNIT_EXPECT_EQ(test, fix_count(f, NHCA_CNT_TIMEOUT), 1);
}

/*
 * In SQD the requester requests an ACK of the last packets. The drain ends when this ACK arrives.
 */
static void drain_ackreq_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;
	struct sent sent;

	fix_post_send(test, f->qp, f->mr, 0, 10, 0);
	fix_state(test, f->qp, IB_QPS_SQD);
	nhca_send_doorbell(f->qp);
	KUNIT_EXPECT_EQ(test, fix_sent(f, SEND_ONLY, &sent), 2);
	KUNIT_EXPECT_TRUE(test, sent.hdr.ackreq);
	fix_post_send(test, f->qp, f->mr, 0, 10, 0);
	KUNIT_EXPECT_EQ(test, f->nsent, 2);
	KUNIT_EXPECT_TRUE(test, f->qp->sq.draining);
	fix_packet(test, ACK, FIX_SQ_PSN, 0);
	KUNIT_EXPECT_FALSE(test, f->qp->sq.draining);
	fix_state(test, f->qp, IB_QPS_RTS);
	KUNIT_EXPECT_EQ(test, f->nsent, 3);
}

/* `rdma resource` shows the state of requester and responder. */
static void dump_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;
	struct nhca_res_qp *res = kunit_kzalloc(test, sizeof(*res), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, res);
	nhca_qp_dump(f->qp, res);
	KUNIT_EXPECT_EQ(test, res->oldest_opcode, ~0U);
	fix_post_send(test, f->qp, f->mr, 0, 3000, IB_SEND_SIGNALED);
	nhca_qp_dump(f->qp, res);
	KUNIT_EXPECT_EQ(test, res->sq_una, FIX_SQ_PSN);
	KUNIT_EXPECT_EQ(test, res->sq_nxt, FIX_SQ_PSN + 3);
	KUNIT_EXPECT_EQ(test, res->rq_psn, FIX_RQ_PSN);
	KUNIT_EXPECT_EQ(test, res->sq_outstanding, 1);
	KUNIT_EXPECT_EQ(test, res->cwnd, NHCA_CWND_FIRST);
	KUNIT_EXPECT_EQ(test, res->retries_left, 7);
	KUNIT_EXPECT_EQ(test, res->oldest_opcode, NHCA_WR_SEND);
	KUNIT_EXPECT_EQ(test, res->oldest_packets, 3);
	KUNIT_EXPECT_EQ(test, res->oldest_sent, 3);
}

static struct kunit_case requester_cases[] = {
	KUNIT_CASE(decide_test),
	KUNIT_CASE(fail_later_test),
	KUNIT_CASE(unsent_ackreq_test),
	KUNIT_CASE(unsent_again_test),
	KUNIT_CASE(unsent_due_test),
	KUNIT_CASE(unsent_rtt_test),
	KUNIT_CASE(modify_kicks_test),
	KUNIT_CASE(unsent_empty_write_test),
	KUNIT_CASE(ackreq_window_test),
	KUNIT_CASE(sender_test),
	KUNIT_CASE(opcode_test),
	KUNIT_CASE(rd_atomic_test),
	KUNIT_CASE(inline_read_test),
	KUNIT_CASE(timeouts_test),
	KUNIT_CASE(timer_ackreq_test),
	KUNIT_CASE(drain_ackreq_test),
	KUNIT_CASE(dump_test),
	{}
};

static struct kunit_suite requester_suite = {
	.name = "nhca_requester",
	.init = qp_fixture_init,
	.exit = qp_fixture_exit,
	.test_cases = requester_cases,
};

kunit_test_suite(requester_suite);
