// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit: `rdma resource' finds an object that is being destroyed: in kernels without
 * rdma_restrack_begin_del() the RDMA core removes an object from its table only after the driver
 * has destroyed the object.
 */
#include <linux/skbuff.h>

#include "qp_fixture.h"
#include "../verbs/objects.h"
#include "../verbs/verbs.h"

/* Return: a message for the state of an object; the test frees it. */
static struct sk_buff *message(struct kunit *test)
{
	struct sk_buff *msg = alloc_skb(NLMSG_GOODSIZE, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, msg);
	return msg;
}

/* A QP that is destroyed shows no state; one that exists shows its state. */
static void qp_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;
	struct sk_buff *msg = message(test);
	struct nhca_qp *qp = f->qp;
	struct ib_qp_init_attr init;
	struct ib_qp_attr attr;
	unsigned int len;

	qp->ops = &nhca_transport_qp_ops;
	KUNIT_ASSERT_EQ(test, nhca_qp_count(qp, NULL), 0);
	KUNIT_EXPECT_EQ(test, nhca_query_qp(&qp->ibqp, &attr, 0, &init), 0);
	KUNIT_EXPECT_EQ(test, attr.qp_state, IB_QPS_RTS);
	KUNIT_EXPECT_EQ(test, nhca_fill_res_qp_entry(msg, &qp->ibqp), 0);
	KUNIT_EXPECT_NE(test, msg->len, 0);

	KUNIT_EXPECT_EQ(test, nhca_destroy_qp(&qp->ibqp, NULL), 0);
	f->qp = NULL;
	len = msg->len;
	KUNIT_EXPECT_EQ(test, nhca_query_qp(&qp->ibqp, &attr, 0, &init), 0);
	KUNIT_EXPECT_EQ(test, attr.qp_state, IB_QPS_RESET);
	KUNIT_EXPECT_EQ(test, nhca_fill_res_qp_entry(msg, &qp->ibqp), 0);
	KUNIT_EXPECT_EQ(test, nhca_fill_res_qp_entry_raw(msg, &qp->ibqp), 0);
	KUNIT_EXPECT_EQ(test, msg->len, len);
	kfree_skb(msg);
}

static void cq_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;
	struct nhca_cq *cq = fix_cq(test, 16);
	struct nhca_res_cq res;

	KUNIT_ASSERT_EQ(test, nhca_obj_get(f->dev, NULL, NHCA_POOL_CQS), 0);
	nhca_cq_dump(cq, &res);
	KUNIT_EXPECT_EQ(test, res.entries, 16);
	KUNIT_EXPECT_EQ(test, nhca_destroy_cq(&cq->ibcq, NULL), 0);
	nhca_cq_dump(cq, &res);
	KUNIT_EXPECT_EQ(test, res.size, sizeof(res));
	KUNIT_EXPECT_EQ(test, res.entries, 0);
}

static void srq_test(struct kunit *test)
{
	struct nhca_srq *srq = kunit_kzalloc(test, sizeof(*srq), GFP_KERNEL);
	struct qp_fixture *f = test->priv;
	struct nhca_res_srq res;

	KUNIT_ASSERT_NOT_NULL(test, srq);
	nhca_srq_init(srq);
	KUNIT_ASSERT_EQ(test, nhca_rwq_init(&srq->wq, 8, 1, NULL), 0);
	fix_post_recv(test, &srq->wq, f->mr, 0, 10);
	nhca_srq_dump(srq, &res);
	KUNIT_EXPECT_EQ(test, res.posted, 1);
	nhca_srq_stop(srq);
	nhca_rwq_free(&srq->wq);
	nhca_srq_dump(srq, &res);
	KUNIT_EXPECT_EQ(test, res.posted, 0);
}

static struct kunit_case resource_cases[] = {
	KUNIT_CASE(qp_test),
	KUNIT_CASE(cq_test),
	KUNIT_CASE(srq_test),
	{}
};

static struct kunit_suite resource_suite = {
	.name = "nhca_resource",
	.init = qp_fixture_init,
	.exit = qp_fixture_exit,
	.test_cases = resource_cases,
};

kunit_test_suite(resource_suite);
