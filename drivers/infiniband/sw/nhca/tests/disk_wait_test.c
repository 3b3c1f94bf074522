// SPDX-License-Identifier: GPL-2.0
/* KUnit: a requester and a responder wait until a backing has bytes, and handle its errors. */
#include "fake_backing.h"
#include "qp_fixture.h"

#define WRITE_ONLY	(NHCA_SVC_RC | NHCA_OP_WRITE_ONLY)
#define READ_REQUEST	(NHCA_SVC_RC | NHCA_OP_READ_REQUEST)
#define READ_FIRST	(NHCA_SVC_RC | NHCA_OP_READ_RESP_FIRST)
#define READ_ONLY	(NHCA_SVC_RC | NHCA_OP_READ_RESP_ONLY)
#define READ_LAST	(NHCA_SVC_RC | NHCA_OP_READ_RESP_LAST)
#define ACK		(NHCA_SVC_RC | NHCA_OP_ACK)

static void resumed(void *arg)
{
	u32 *n = arg;

	++*n;
}

/*
 * Replace the requester's or responder's wait, so that its end is counted in @n and does not resume
 * the QP.
 */
static void own_wait(struct kunit *test, struct nhca_fault **w, u32 *n)
{
	struct nhca_fault *own = nhca_fault_alloc(resumed, n);

	KUNIT_ASSERT_NOT_NULL(test, own);
	nhca_fault_free(*w);
	*w = own;
}

static struct nhca_mr *backed(struct kunit *test, struct fake_backing *fake)
{
	struct qp_fixture *f = test->priv;
	struct ib_mr *mr = nhca_mr_backed(f->dev, f->pd, &fake->b, PAGE_SIZE, 0,
					  IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_WRITE |
					  IB_ACCESS_LOCAL_WRITE);

	KUNIT_ASSERT_FALSE(test, IS_ERR(mr));
	return to_nhca_mr(mr);
}

static void backed_free(struct nhca_mr *mr, struct fake_backing *fake)
{
	nhca_mr_free(mr);
	__free_page(fake->page);
}

static void run_responder(struct nhca_qp *qp)
{
	spin_lock_bh(&qp->rq.lock);
	nhca_resp_run(qp);
	spin_unlock_bh(&qp->rq.lock);
}

/*
 * A posted WRITE is sent after the disk has read its bytes. The next WRITE has another operation
 * number.
 */
static void write_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;
	struct fake_backing *fake = fake_make(test);
	struct nhca_mr *mr = backed(test, fake);
	u64 op;
	u32 n = 0;

	own_wait(test, &f->qp->sq.fault, &n);
	KUNIT_ASSERT_EQ(test, fix_post_rdma(f->qp, mr, IB_WR_RDMA_WRITE, 0, 500, 0, 0), 0);
	nhca_sq_kick(f->qp);
	KUNIT_EXPECT_EQ(test, f->nsent, 0);
	KUNIT_EXPECT_EQ(test, fake->wants, 1);
	KUNIT_EXPECT_EQ(test, fake->len, 500);
	op = fake->op;
	/* while the WRITE waits, nothing is requested again */
	nhca_sq_kick(f->qp);
	KUNIT_EXPECT_EQ(test, fake->wants, 1);

	fake_end(fake, 0);
	KUNIT_EXPECT_EQ(test, n, 1);
	nhca_sq_kick(f->qp);
	KUNIT_EXPECT_EQ(test, fix_sent(f, WRITE_ONLY, NULL), 1);

	fake->err = -EAGAIN;
	KUNIT_ASSERT_EQ(test, fix_post_rdma(f->qp, mr, IB_WR_RDMA_WRITE, 0, 500, 0, 0), 0);
	nhca_sq_kick(f->qp);
	KUNIT_EXPECT_EQ(test, fake->wants, 2);
	KUNIT_EXPECT_NE(test, fake->op, op);
	fake_end(fake, 0);
	nhca_sq_kick(f->qp);
	KUNIT_EXPECT_EQ(test, fix_sent(f, WRITE_ONLY, NULL), 2);
	backed_free(mr, fake);
}

/* A retransmission belongs to the same operation of the backing as the first transmission. */
static void again_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;
	struct fake_backing *fake = fake_make(test);
	struct nhca_mr *mr = backed(test, fake);
	u64 op;
	u32 n = 0;

	own_wait(test, &f->qp->sq.fault, &n);
	fix_timeout(f->qp);
	KUNIT_ASSERT_EQ(test, fix_post_rdma(f->qp, mr, IB_WR_RDMA_WRITE, 0, 500, 0, 0), 0);
	nhca_sq_kick(f->qp);
	op = fake->op;
	fake_end(fake, 0);
	nhca_sq_kick(f->qp);
	KUNIT_EXPECT_EQ(test, f->nsent, 1);
	/*
	 * the bytes were removed from memory after the first transmission, so the retransmission
	 * waits for them
	 */
	fake->err = -EAGAIN;
	fix_expire(f->qp);
	nhca_sq_kick(f->qp);
	KUNIT_EXPECT_EQ(test, fake->wants, 2);
	KUNIT_EXPECT_EQ(test, fake->op, op);
	fake_end(fake, 0);
	nhca_sq_kick(f->qp);
	KUNIT_EXPECT_EQ(test, f->nsent, 2);
	backed_free(mr, fake);
}

/* A WRITE fails with LOC_QP_OP_ERR if the disk cannot read the bytes that the WRITE sends. */
static void write_error_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;
	struct fake_backing *fake = fake_make(test);
	struct nhca_mr *mr = backed(test, fake);
	struct nhca_cqe cqe;
	u32 n = 0;

	own_wait(test, &f->qp->sq.fault, &n);
	KUNIT_ASSERT_EQ(test, fix_post_rdma(f->qp, mr, IB_WR_RDMA_WRITE, 0, 500, 0,
					    IB_SEND_SIGNALED), 0);
	nhca_sq_kick(f->qp);
	fake_end(fake, -EIO);
	nhca_sq_kick(f->qp);
	KUNIT_EXPECT_EQ(test, fix_sent(f, WRITE_ONLY, NULL), 0);
	KUNIT_ASSERT_TRUE(test, fix_poll(f->cq, &cqe));
	KUNIT_EXPECT_EQ(test, cqe.status, IB_WC_LOC_QP_OP_ERR);
	KUNIT_EXPECT_EQ(test, f->qp->state, IB_QPS_ERR);
	backed_free(mr, fake);
}

static struct nhca_hdr read_request(struct qp_fixture *f, struct nhca_mr *mr, u32 psn, u32 len)
{
	struct nhca_hdr h = fix_hdr(f->qp, READ_REQUEST, psn);

	h.rkey = mr->ibmr.rkey;
	h.dmalen = len;
	return h;
}

/*
 * A peer's READ waits for its bytes. A duplicate of the READ neither requests the bytes again nor
 * restarts the READ.
 */
static void read_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;
	struct fake_backing *fake = fake_make(test);
	struct nhca_mr *mr = backed(test, fake);
	u32 n = 0;

	own_wait(test, &f->qp->rq.fault, &n);
	fix_deliver(test, read_request(f, mr, FIX_RQ_PSN, 3000), 0);
	KUNIT_EXPECT_EQ(test, f->nsent, 0);
	KUNIT_EXPECT_EQ(test, fake->aheads, 1);
	KUNIT_EXPECT_EQ(test, fake->ahead_len, 3000);
	KUNIT_EXPECT_EQ(test, fake->wants, 1);
	/* the bytes of the whole READ are requested, not only the bytes of the first packet */
	KUNIT_EXPECT_EQ(test, fake->len, 3000);
	/* the responder calls ahead() for a second READ while the first READ waits */
	fix_deliver(test, read_request(f, mr, FIX_RQ_PSN + 3, 100), 0);
	KUNIT_EXPECT_EQ(test, fake->aheads, 2);
	KUNIT_EXPECT_EQ(test, fake->ahead_len, 100);
	/* a peer that repeats a request also repeats all later requests */
	fix_deliver(test, read_request(f, mr, FIX_RQ_PSN, 3000), 0);
	fix_deliver(test, read_request(f, mr, FIX_RQ_PSN + 3, 100), 0);
	KUNIT_EXPECT_EQ(test, fake->wants, 1);
	KUNIT_EXPECT_EQ(test, fake->aheads, 2);
	KUNIT_EXPECT_EQ(test, f->nsent, 0);

	fake_end(fake, 0);
	KUNIT_EXPECT_EQ(test, n, 1);
	run_responder(f->qp);
	KUNIT_EXPECT_EQ(test, fix_sent(f, READ_FIRST, NULL), 1);
	KUNIT_EXPECT_EQ(test, fix_sent(f, READ_LAST, NULL), 1);
	KUNIT_EXPECT_EQ(test, fix_sent(f, READ_ONLY, NULL), 1);
	KUNIT_EXPECT_EQ(test, f->nsent, 4);
	backed_free(mr, fake);
}

/*
 * If the disk cannot read the bytes of a peer's READ, the QP answers with a NAK, Remote Operational
 * Error.
 */
static void read_error_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;
	struct fake_backing *fake = fake_make(test);
	struct nhca_mr *mr = backed(test, fake);
	struct sent sent;
	u32 n = 0;

	own_wait(test, &f->qp->rq.fault, &n);
	fix_deliver(test, read_request(f, mr, FIX_RQ_PSN, 3000), 0);
	fake_end(fake, -EIO);
	run_responder(f->qp);
	KUNIT_ASSERT_EQ(test, fix_sent(f, ACK, &sent), 1);
	KUNIT_EXPECT_EQ(test, sent.hdr.syndrome, NHCA_AETH_NAK | NHCA_NAK_REM_OP);
	KUNIT_EXPECT_EQ(test, sent.hdr.psn, FIX_RQ_PSN);
	KUNIT_EXPECT_EQ(test, fix_count(f, NHCA_CNT_SENT_OP_NAK), 1);
	KUNIT_EXPECT_EQ(test, f->qp->state, IB_QPS_ERR);
	backed_free(mr, fake);
}

static struct nhca_hdr write_request(struct qp_fixture *f, struct nhca_mr *mr, u8 opcode, u32 psn,
				     u32 len)
{
	struct nhca_hdr h = fix_hdr(f->qp, opcode, psn);

	h.rkey = mr->ibmr.rkey;
	h.dmalen = len;
	h.ackreq = true;
	return h;
}

/* Continue the responder after a wait has ended, as the QP's bottom half does. */
static void resume_responder(struct nhca_qp *qp)
{
	spin_lock_bh(&qp->rq.lock);
	rcu_read_lock();
	nhca_defer_run(qp);
	nhca_resp_run(qp);
	rcu_read_unlock();
	spin_unlock_bh(&qp->rq.lock);
}

/* The backing gets the bytes of a peer's WRITE packet by packet, all for one operation. */
static void placed_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;
	struct fake_backing *fake = fake_make(test);
	struct nhca_mr *mr = backed(test, fake);
	u8 *bytes = page_address(fake->page);
	u32 n = 0;
	u64 op;

	own_wait(test, &f->qp->rq.fault, &n);
	fake->writes = true;
	fake->err = 0;
	fix_deliver(test, write_request(f, mr, NHCA_SVC_RC | NHCA_OP_WRITE_FIRST, FIX_RQ_PSN,
					FIX_MTU + 100), FIX_MTU);
	KUNIT_EXPECT_EQ(test, fake->placed, FIX_MTU);
	KUNIT_EXPECT_EQ(test, fake->ends, 0);
	op = fake->op;
	fix_deliver(test, write_request(f, mr, NHCA_SVC_RC | NHCA_OP_WRITE_LAST, FIX_RQ_PSN + 1,
					0), 100);
	KUNIT_EXPECT_EQ(test, fake->placed, FIX_MTU + 100);
	KUNIT_EXPECT_EQ(test, fake->ends, 1);
	KUNIT_EXPECT_EQ(test, fake->op, op);
	KUNIT_EXPECT_EQ(test, bytes[10], fix_byte(10));
	KUNIT_EXPECT_GE(test, fix_sent(f, ACK, NULL), 1);
	/* the next message is another operation */
	fix_deliver(test, write_request(f, mr, WRITE_ONLY, FIX_RQ_PSN + 2, 100), 100);
	KUNIT_EXPECT_NE(test, fake->op, op);
	KUNIT_EXPECT_EQ(test, fake->ends, 2);
	backed_free(mr, fake);
}

/*
 * If the bytes of a WRITE must be on the disk first (nhca_fault_sync()), the WRITE is acknowledged
 * only then, and its packet is executed once. The test begins and ends the disk's write itself,
 * because the fake backing has no disk.
 */
static void last_packet_waits_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;
	struct fake_backing *fake = fake_make(test);
	struct nhca_mr *mr = backed(test, fake);
	u32 n = 0;

	own_wait(test, &f->qp->rq.fault, &n);
	fake->writes = true;
	fake->err = 0;
	nhca_fault_write_op(f->qp->rq.fault, 1);
	nhca_fault_write_begin(f->qp->rq.fault);
	fix_deliver(test, write_request(f, mr, WRITE_ONLY, FIX_RQ_PSN, 100), 100);
	KUNIT_EXPECT_EQ(test, fake->placed, 100);
	KUNIT_EXPECT_EQ(test, f->nsent, 0);
	KUNIT_EXPECT_EQ(test, f->qp->rq.psn, FIX_RQ_PSN);
	/* the peer repeats the WRITE */
	fix_deliver(test, write_request(f, mr, WRITE_ONLY, FIX_RQ_PSN, 100), 100);
	KUNIT_EXPECT_EQ(test, fake->placed, 100);
	KUNIT_EXPECT_EQ(test, f->nsent, 0);

	KUNIT_EXPECT_TRUE(test, nhca_fault_write_end(f->qp->rq.fault, 1, 0));
	local_bh_disable();
	nhca_fault_end(f->qp->rq.fault);
	local_bh_enable();
	KUNIT_EXPECT_EQ(test, n, 1);
	resume_responder(f->qp);
	KUNIT_EXPECT_EQ(test, fake->placed, 100);
	KUNIT_EXPECT_EQ(test, f->qp->rq.psn, FIX_RQ_PSN + 1);
	KUNIT_EXPECT_GE(test, fix_sent(f, ACK, NULL), 1);
	backed_free(mr, fake);
}

/*
 * If the disk cannot write the bytes of a peer's WRITE, the QP answers with a NAK, Remote
 * Operational Error.
 */
static void last_packet_error_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;
	struct fake_backing *fake = fake_make(test);
	struct nhca_mr *mr = backed(test, fake);
	struct nhca_fault *w;
	struct sent sent;
	u32 n = 0;

	own_wait(test, &f->qp->rq.fault, &n);
	w = f->qp->rq.fault;
	fake->writes = true;
	fake->err = 0;
	nhca_fault_write_op(w, 1);
	nhca_fault_write_begin(w);
	fix_deliver(test, write_request(f, mr, WRITE_ONLY, FIX_RQ_PSN, 100), 100);
	KUNIT_EXPECT_TRUE(test, nhca_fault_write_end(w, 1, EIO));
	local_bh_disable();
	nhca_fault_end(w);
	local_bh_enable();
	resume_responder(f->qp);
	KUNIT_ASSERT_EQ(test, fix_sent(f, ACK, &sent), 1);
	KUNIT_EXPECT_EQ(test, sent.hdr.syndrome, NHCA_AETH_NAK | NHCA_NAK_REM_OP);
	KUNIT_EXPECT_EQ(test, fix_count(f, NHCA_CNT_SENT_OP_NAK), 1);
	KUNIT_EXPECT_EQ(test, f->qp->state, IB_QPS_ERR);
	backed_free(mr, fake);
}

/* An ATOMIC WRITE to a region with a backing gets a NAK, Remote Access Error. */
static void no_atomics_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;
	struct fake_backing *fake = fake_make(test);
	struct nhca_mr *mr = backed(test, fake);
	struct nhca_hdr h = write_request(f, mr, NHCA_SVC_RC | NHCA_OP_ATOMIC_WRITE, FIX_RQ_PSN, 8);
	struct sent sent;
	u32 n = 0;

	own_wait(test, &f->qp->rq.fault, &n);
	fake->writes = true;
	fake->err = 0;
	fix_deliver(test, h, 8);
	KUNIT_ASSERT_EQ(test, fix_sent(f, ACK, &sent), 1);
	KUNIT_EXPECT_EQ(test, sent.hdr.syndrome, NHCA_AETH_NAK | NHCA_NAK_REM_ACCESS);
	KUNIT_EXPECT_EQ(test, fake->placed, 0);
	backed_free(mr, fake);
}

static struct kunit_case disk_wait_cases[] = {
	KUNIT_CASE(write_test),
	KUNIT_CASE(again_test),
	KUNIT_CASE(write_error_test),
	KUNIT_CASE(read_test),
	KUNIT_CASE(read_error_test),
	KUNIT_CASE(placed_test),
	KUNIT_CASE(last_packet_waits_test),
	KUNIT_CASE(last_packet_error_test),
	KUNIT_CASE(no_atomics_test),
	{}
};

static struct kunit_suite disk_wait_suite = {
	.name = "nhca_disk_wait",
	.init = qp_fixture_init,
	.exit = qp_fixture_exit,
	.test_cases = disk_wait_cases,
};

kunit_test_suite(disk_wait_suite);
