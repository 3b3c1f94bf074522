// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit: `rdma resource' finds an object that is being destroyed: in kernels without
 * rdma_restrack_begin_del() the RDMA core removes an object from its table only after the driver
 * has destroyed the object.  Other tests check the error of verbs that would create too many
 * objects, and the number of READs and atomics that a device reports.
 */
#include <linux/skbuff.h>
#include <net/ipv6.h>

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

/* A QP that exists shows its state, and a destroyed QP shows no state. */
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

/* Return: true if a message contains the bytes of a value. */
static bool message_has(const struct sk_buff *msg, const void *value, u32 size)
{
	u32 i;

	for (i = 0; i + size <= msg->len; i++)
		if (!memcmp(msg->data + i, value, size))
			return true;
	return false;
}

/*
 * Any user may read the tables of QPs and regions. Therefore these tables contain neither the wr_id
 * of a request, which is often a pointer of the process, nor the key, the address or the PVO of a
 * region. The raw structs contain these values, because reading raw structs needs CAP_NET_ADMIN.
 */
static void secrets_test(struct kunit *test)
{
	const u64 pointer = 0x7f12345678abcdef, iova = 0x7fedcba987654000;
	const struct ib_send_wr wr = { .wr_id = pointer, .opcode = IB_WR_SEND };
	struct qp_fixture *f = test->priv;
	struct sk_buff *msg, *raw;
	struct nhca_mr *mr;

	f->qp->ops = &nhca_transport_qp_ops;
	KUNIT_ASSERT_EQ(test, nhca_send_post(f->qp, &wr), 0);
	nhca_send_doorbell(f->qp);
	msg = message(test);
	raw = message(test);
	KUNIT_EXPECT_EQ(test, nhca_fill_res_qp_entry(msg, &f->qp->ibqp), 0);
	KUNIT_EXPECT_EQ(test, nhca_fill_res_qp_entry_raw(raw, &f->qp->ibqp), 0);
	KUNIT_EXPECT_FALSE(test, message_has(msg, &pointer, sizeof(pointer)));
	KUNIT_EXPECT_TRUE(test, message_has(raw, &pointer, sizeof(pointer)));
	kfree_skb(msg);
	kfree_skb(raw);

	mr = nhca_mr_alloc(f->dev, f->pd, IB_ACCESS_LOCAL_WRITE);
	KUNIT_ASSERT_FALSE(test, IS_ERR(mr));
	KUNIT_ASSERT_EQ(test, nhca_mr_map_pages(mr, &f->page, 1, 0, true), 0);
	nhca_mr_start(mr, iova, PAGE_SIZE);
	msg = message(test);
	raw = message(test);
	KUNIT_EXPECT_EQ(test, nhca_fill_res_mr_entry(msg, &mr->ibmr), 0);
	KUNIT_EXPECT_EQ(test, nhca_fill_res_mr_entry_raw(raw, &mr->ibmr), 0);
	KUNIT_EXPECT_NE(test, msg->len, 0);
	KUNIT_EXPECT_FALSE(test, message_has(msg, &iova, sizeof(iova)));
	KUNIT_EXPECT_FALSE(test, message_has(msg, &mr->pvo, sizeof(mr->pvo)));
	KUNIT_EXPECT_FALSE(test, message_has(msg, &mr->ibmr.rkey, sizeof(mr->ibmr.rkey)));
	KUNIT_EXPECT_TRUE(test, message_has(raw, &iova, sizeof(iova)));
	KUNIT_EXPECT_TRUE(test, message_has(raw, &mr->pvo, sizeof(mr->pvo)));
	kfree_skb(msg);
	kfree_skb(raw);
	nhca_mr_free(mr);
}

/* Charge a user with the whole share that the user may have of a pool. */
static void take_share(struct kunit *test, struct nhca_user *user, enum nhca_pool pool, long n)
{
	KUNIT_ASSERT_EQ(test, nhca_pool_charge(user->users, user, pool, n), 0);
	KUNIT_ASSERT_EQ(test, nhca_pool_charge(user->users, user, pool, 1), -EDQUOT);
}

/* At the limit of the user, verbs fail with ENOMEM, as at the limit of the device. */
static void limit_test(struct kunit *test)
{
	struct ib_flow_attr rule = { .type = IB_FLOW_ATTR_NORMAL };
	struct ib_dm_alloc_attr dm = { .length = PAGE_SIZE };
	struct qp_fixture *f = test->priv;
	struct nhca_ucontext *uc = kunit_kzalloc(test, sizeof(*uc), GFP_KERNEL);
	struct nhca_user *user;
	struct in6_addr addr;
	union ib_gid group;

	KUNIT_ASSERT_NOT_NULL(test, uc);
	nhca_users_init(&f->dev->users);
	user = nhca_user_get(&f->dev->users, 4711);
	KUNIT_ASSERT_FALSE(test, IS_ERR(user));
	uc->user = user;
	f->qp->owner = user;
	take_share(test, user, NHCA_POOL_CQS, NHCA_MAX_CQ / 2);
	KUNIT_EXPECT_EQ(test, nhca_obj_get(f->dev, user, NHCA_POOL_CQS), -ENOMEM);
	take_share(test, user, NHCA_POOL_RULES, NHCA_MAX_STEER_RULES / 2);
	f->qp->ibqp.qp_type = IB_QPT_RAW_PACKET;
	KUNIT_EXPECT_EQ(test, PTR_ERR(nhca_create_flow(&f->qp->ibqp, &rule, NULL)), -ENOMEM);
	f->qp->ibqp.qp_type = IB_QPT_RC;
	take_share(test, user, NHCA_POOL_GROUPS, NHCA_MAX_MCAST_GRP / 2);
	ipv6_addr_set_v4mapped(htonl(0xe0000110), &addr);
	memcpy(group.raw, &addr, sizeof(group.raw));
	KUNIT_EXPECT_EQ(test, nhca_attach_mcast(&f->qp->ibqp, &group, 0), -ENOMEM);
	take_share(test, user, NHCA_POOL_DM, NHCA_MAX_DM_SIZE / 2);
	KUNIT_EXPECT_EQ(test, PTR_ERR(nhca_alloc_dm(&f->dev->ibdev, &uc->ibuc, &dm, NULL)),
			-ENOMEM);

	nhca_pool_uncharge(user->users, user, NHCA_POOL_CQS, NHCA_MAX_CQ / 2);
	nhca_pool_uncharge(user->users, user, NHCA_POOL_RULES, NHCA_MAX_STEER_RULES / 2);
	nhca_pool_uncharge(user->users, user, NHCA_POOL_GROUPS, NHCA_MAX_MCAST_GRP / 2);
	nhca_pool_uncharge(user->users, user, NHCA_POOL_DM, NHCA_MAX_DM_SIZE / 2);
	f->qp->owner = NULL;
	nhca_user_put(user);
}

/*
 * All queries of a device report the number of READs and atomics that the core stored when it
 * registered the device, even if the module parameter has changed since then.
 */
static void rd_atomic_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;
	struct ib_device *ibdev = &f->dev->ibdev;
	struct ib_device_attr attr;
	struct ib_udata udata = {};

	ibdev->attrs.max_qp_rd_atom = 0;
	KUNIT_ASSERT_EQ(test, nhca_query_device(ibdev, &ibdev->attrs, &udata), 0);
	KUNIT_EXPECT_GE(test, ibdev->attrs.max_qp_rd_atom, 1);
	KUNIT_EXPECT_LE(test, ibdev->attrs.max_qp_rd_atom, NHCA_MAX_RD_ATOM);
	/* store a number that differs from the module parameter */
	ibdev->attrs.max_qp_rd_atom++;
	KUNIT_ASSERT_EQ(test, nhca_query_device(ibdev, &attr, &udata), 0);
	KUNIT_EXPECT_EQ(test, attr.max_qp_rd_atom, ibdev->attrs.max_qp_rd_atom);
	KUNIT_EXPECT_EQ(test, attr.max_qp_init_rd_atom, attr.max_qp_rd_atom);
}

static struct kunit_case resource_cases[] = {
	KUNIT_CASE(qp_test),
	KUNIT_CASE(cq_test),
	KUNIT_CASE(srq_test),
	KUNIT_CASE(secrets_test),
	KUNIT_CASE(limit_test),
	KUNIT_CASE(rd_atomic_test),
	{}
};

static struct kunit_suite resource_suite = {
	.name = "nhca_resource",
	.init = qp_fixture_init,
	.exit = qp_fixture_exit,
	.test_cases = resource_cases,
};

kunit_test_suite(resource_suite);
