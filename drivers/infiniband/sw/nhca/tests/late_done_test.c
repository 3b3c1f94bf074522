// SPDX-License-Identifier: GPL-2.0
/* KUnit: one response may complete a whole ring of requests, but not in one pass. */
#include <linux/delay.h>

#include "qp_fixture.h"

#define LOCALS	1500	/* requests without packets, which complete after a READ */
#define LENGTH	100

/* Replaces nhca_local_run(): the request succeeds and does nothing. */
static void local_run(struct nhca_qp *qp, struct nhca_swr *swr)
{
}

/*
 * Post a READ and then LOCALS local requests, which complete only after the response of the READ.
 * The wr_ids count up.
 */
static void post_all(struct kunit *test, struct nhca_qp *qp)
{
	struct qp_fixture *f = test->priv;
	struct ib_sge sge = { .length = LENGTH, .lkey = f->mr->ibmr.lkey };
	struct ib_rdma_wr read = {
		.wr = {
			.opcode = IB_WR_RDMA_READ,
			.send_flags = IB_SEND_SIGNALED,
			.sg_list = &sge,
			.num_sge = 1,
		},
	};
	struct ib_send_wr local = {
		.opcode = IB_WR_LOCAL_INV,
		.send_flags = IB_SEND_SIGNALED,
	};
	u32 i;

	KUNIT_ASSERT_EQ(test, nhca_send_post(qp, &read.wr), 0);
	for (i = 1; i <= LOCALS; i++) {
		local.wr_id = i;
		KUNIT_ASSERT_EQ(test, nhca_send_post(qp, &local), 0);
		/*
		 * ring the doorbell before a budget is used up; otherwise the bottom half would
		 * execute the remaining requests, perhaps in a thread without the stub
		 */
		if (!(i % 100))
			nhca_send_doorbell(qp);
	}
	KUNIT_ASSERT_EQ(test, qp->sq.fetched, LOCALS + 1);
	KUNIT_ASSERT_NULL(test, qp->sq.cur);
}

/*
 * The response of the READ completes only some of the requests that wait for it: at most
 * NHCA_BUDGET when the response arrives, and as many in the pass of the requester that follows. The
 * bottom half completes the other requests in order.
 */
static void late_done_test(struct kunit *test)
{
	struct nhca_cq *cq = fix_cq(test, 2048);
	struct nhca_qp *qp = fix_qp_on(test, IB_QPT_RC, NULL, cq, 2048);
	struct nhca_hdr h = fix_hdr(qp, NHCA_SVC_RC | NHCA_OP_READ_RESP_ONLY, FIX_SQ_PSN);
	struct nhca_cqe cqe;
	struct sk_buff *skb;
	u32 done, i;

	kunit_activate_static_stub(test, nhca_local_run, local_run);
	fix_connect(test, qp);
	post_all(test, qp);
	KUNIT_EXPECT_FALSE(test, fix_poll(cq, &cqe));

	skb = fix_skb(test, &h, LENGTH, 1);
	local_bh_disable();
	nhca_rx_late(qp->dev->nn, skb);
	done = READ_ONCE(cq->prod);
	local_bh_enable();
	kfree_skb(skb);
	KUNIT_EXPECT_GE(test, done, 1);
	/*
	 * the READ, one budget for the response, and one for the pass of the requester that follows
	 */
	KUNIT_EXPECT_LE(test, done, 2 * NHCA_BUDGET + 1);

	for (i = 0; i < 500 && READ_ONCE(cq->prod) < LOCALS + 1; i++)
		msleep(20);
	for (i = 0; i <= LOCALS; i++) {
		KUNIT_ASSERT_TRUE(test, fix_poll(cq, &cqe));
		KUNIT_ASSERT_EQ(test, cqe.status, IB_WC_SUCCESS);
		KUNIT_ASSERT_EQ(test, cqe.wr_id, i);
	}
	KUNIT_EXPECT_FALSE(test, fix_poll(cq, &cqe));
	fix_destroy(&qp);
	nhca_cq_stop(cq);
	nhca_ring_free(&cq->ring);
}

static struct kunit_case late_done_cases[] = {
	KUNIT_CASE(late_done_test),
	{}
};

static struct kunit_suite late_done_suite = {
	.name = "nhca_qp_late_done",
	.init = qp_fixture_init,
	.exit = qp_fixture_exit,
	.test_cases = late_done_cases,
};

kunit_test_suite(late_done_suite);
