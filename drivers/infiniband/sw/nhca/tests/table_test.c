// SPDX-License-Identifier: GPL-2.0
/* KUnit: the table of QPNs: which QP a QPN finds, and when a QPN is free again. */
#include "addr_fixture.h"

#define QPS	64

static struct nhca_qp *find(struct nhca_dev *dev, u32 qpn)
{
	struct nhca_qp *qp;

	rcu_read_lock();
	qp = nhca_qp_find(dev, qpn);
	rcu_read_unlock();
	return qp;
}

/* Each QP has its own QPN, from NHCA_QPN_MIN to NHCA_QPN_MAX, and no other QPN finds the QP. */
static void find_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;
	struct nhca_qp *qps = kunit_kcalloc(test, QPS, sizeof(*qps), GFP_KERNEL);
	u32 i, k;

	KUNIT_ASSERT_NOT_NULL(test, qps);
	for (i = 0; i < QPS; i++) {
		qps[i].ibqp.qp_type = i % 2 ? IB_QPT_RC : IB_QPT_UD;
		qps[i].dev = f->dev;
		KUNIT_ASSERT_EQ(test, nhca_qp_table_add(&qps[i]), 0);
		KUNIT_EXPECT_GE(test, qps[i].qpn, NHCA_QPN_MIN);
		KUNIT_EXPECT_LE(test, qps[i].qpn, NHCA_QPN_MAX);
		KUNIT_EXPECT_EQ(test, qps[i].key_user.qpn, qps[i].qpn);
		KUNIT_EXPECT_EQ(test, qps[i].who.qpn, qps[i].qpn);
		for (k = 0; k <= i; k++) {
			KUNIT_ASSERT_PTR_EQ(test, find(NULL, qps[k].qpn), &qps[k]);
			KUNIT_ASSERT_TRUE(test, k == i || qps[k].qpn != qps[i].qpn);
		}
	}
	for (i = 0; i < QPS; i++) {
		nhca_qp_table_hide(&qps[i]);
		KUNIT_EXPECT_NULL(test, find(NULL, qps[i].qpn));
		KUNIT_EXPECT_TRUE(test, nhca_qpn_is_taken(qps[i].qpn));
		nhca_qp_table_del(&qps[i]);
		KUNIT_EXPECT_FALSE(test, nhca_qpn_is_taken(qps[i].qpn));
		for (k = i + 1; k < QPS; k++)
			KUNIT_ASSERT_PTR_EQ(test, find(NULL, qps[k].qpn), &qps[k]);
	}
}

/* A reserved QPN finds no QP, and is not given out again before it is freed. */
static void reserve_test(struct kunit *test)
{
	u32 qpn[QPS], i, k;

	for (i = 0; i < QPS; i++) {
		KUNIT_ASSERT_EQ(test, nhca_qpn_reserve(&qpn[i]), 0);
		KUNIT_EXPECT_TRUE(test, nhca_qpn_is_taken(qpn[i]));
		KUNIT_EXPECT_NULL(test, find(NULL, qpn[i]));
		for (k = 0; k < i; k++)
			KUNIT_ASSERT_NE(test, qpn[k], qpn[i]);
	}
	for (i = 0; i < QPS; i++) {
		nhca_qpn_free(qpn[i]);
		KUNIT_EXPECT_FALSE(test, nhca_qpn_is_taken(qpn[i]));
		/* freeing a QPN that is already free has no effect */
		nhca_qpn_free(qpn[i]);
	}
}

/*
 * nhca_qpn_place() gives the position of a QPN in the order of allocation, which fault injection
 * uses.
 */
static void place_test(struct kunit *test)
{
	u32 qpn, place, i;

	for (i = 0; i < QPS; i++) {
		place = nhca_qpn_upcoming();
		KUNIT_ASSERT_EQ(test, nhca_qpn_reserve(&qpn), 0);
		KUNIT_EXPECT_EQ(test, nhca_qpn_place(qpn), place);
		/* a freed QPN is not the next QPN that is allocated */
		nhca_qpn_free(qpn);
		KUNIT_EXPECT_NE(test, nhca_qpn_upcoming(), place);
	}
}

/*
 * Each device has its own QP 1, which is found only with this device. A packet for QP 1 reaches the
 * QP of the device that has the destination address, and must have the Q_Key NHCA_GSI_QKEY.
 */
static void gsi_test(struct kunit *test)
{
	struct ib_qp_attr attr = { .qkey = NHCA_GSI_QKEY };
	struct nhca_dev *other = kunit_kzalloc(test, sizeof(*other), GFP_KERNEL);
	struct qp_fixture *f = test->priv;
	struct nhca_qp *gsi = fix_qp(test, IB_QPT_GSI, NULL);
	struct nhca_hdr h;
	struct nhca_cqe cqe;

	KUNIT_ASSERT_NOT_NULL(test, other);
	KUNIT_ASSERT_EQ(test, nhca_qp_modify(gsi, IB_QPS_INIT, &attr,
					     IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_QKEY), 0);
	fix_state(test, gsi, IB_QPS_RTR);
	KUNIT_EXPECT_EQ(test, gsi->qpn, NHCA_GSI_QPN);
	KUNIT_EXPECT_PTR_EQ(test, find(f->dev, NHCA_GSI_QPN), gsi);
	KUNIT_EXPECT_NULL(test, find(other, NHCA_GSI_QPN));
	KUNIT_EXPECT_NULL(test, find(NULL, NHCA_GSI_QPN));
	KUNIT_EXPECT_FALSE(test, nhca_qpn_is_taken(NHCA_GSI_QPN));

	fix_post_recv(test, &gsi->rq.wq, f->mr, 0, 256);
	h = fix_hdr(gsi, NHCA_SVC_UD | NHCA_OP_SEND_ONLY, 0);
	h.qkey = FIX_QKEY;
	fix_deliver(test, h, 10);
	KUNIT_EXPECT_EQ(test, fix_count(f, NHCA_CNT_RX_BAD_QKEY), 1);
	h.qkey = NHCA_GSI_QKEY;
	f->daddr = FIX_SADDR + 1;
	fix_deliver(test, h, 10);
	KUNIT_EXPECT_FALSE(test, fix_poll(f->cq, &cqe));
	f->daddr = 0;
	fix_deliver(test, h, 10);
	KUNIT_ASSERT_TRUE(test, fix_poll(f->cq, &cqe));
	KUNIT_EXPECT_EQ(test, cqe.status, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, cqe.qp_num, NHCA_GSI_QPN);
	KUNIT_EXPECT_EQ(test, cqe.byte_len, NHCA_GRH_LEN + 10);

	fix_destroy(&gsi);
	KUNIT_EXPECT_NULL(test, find(f->dev, NHCA_GSI_QPN));
	fix_deliver(test, h, 10);
	KUNIT_EXPECT_EQ(test, fix_count(f, NHCA_CNT_RX_NO_QP), 1);
}

static struct kunit_case table_cases[] = {
	KUNIT_CASE(find_test),
	KUNIT_CASE(reserve_test),
	KUNIT_CASE(place_test),
	KUNIT_CASE(gsi_test),
	{}
};

static struct kunit_suite table_suite = {
	.name = "nhca_table",
	.init = addr_fixture_init,
	.exit = addr_fixture_exit,
	.test_cases = table_cases,
};

kunit_test_suite(table_suite);
