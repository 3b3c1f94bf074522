// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit: multicast groups: which QPs get a packet, when the netdev joins and leaves a group, and
 * how many QPs a group may have.
 */
#include <linux/completion.h>
#include <linux/igmp.h>
#include <linux/inetdevice.h>
#include <linux/rtnetlink.h>
#include <net/addrconf.h>

#include "../transport/rx.h"
#include "addr_fixture.h"
#include "threads.h"

#define GROUP(i)	(0xe0000110 + (i))	/* 224.0.1.16 and the following addresses */
#define QPS		3
#define MCAST_QPN	0xffffff
#define LEN		20

/* UD QPs with a CQ each; receives of QP i are at offset 512 * i of the page */
static struct member {
	struct nhca_qp *qp;
	struct nhca_cq *cq;
} *members;

/* Replaces nhca_net_dev(): every interface belongs to the fixture's device. */
static struct nhca_dev *any_dev(struct nhca_net *nn, int iif)
{
	struct qp_fixture *f = kunit_get_current_test()->priv;

	return f->dev;
}

static int group_init(struct kunit *test)
{
	int err = addr_fixture_init(test);
	struct qp_fixture *f = test->priv;
	u32 i;

	if (err)
		return err;
	/* a netdev that can join groups */
	f->dev->netdev = init_net.loopback_dev;
	nhca_users_init(&f->dev->users);
	members = kunit_kcalloc(test, QPS, sizeof(*members), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, members);
	for (i = 0; i < QPS; i++) {
		members[i].cq = fix_cq(test, 16);
		members[i].qp = fix_qp_on(test, IB_QPT_UD, NULL, members[i].cq, 8);
		fix_connect(test, members[i].qp);
		members[i].qp->attr.qkey = FIX_QKEY;
	}
	kunit_activate_static_stub(test, nhca_net_dev, any_dev);
	return 0;
}

static void group_exit(struct kunit *test)
{
	struct qp_fixture *f = test->priv;
	u32 i;

	for (i = 0; i < QPS; i++) {
		nhca_mcast_detach_all(members[i].qp);
		fix_destroy(&members[i].qp);
		nhca_cq_stop(members[i].cq);
		nhca_ring_free(&members[i].cq->ring);
	}
	nhca_users_destroy(&f->dev->users);
	addr_fixture_exit(test);
}

static struct in6_addr mgid(u32 group)
{
	struct in6_addr addr;

	ipv6_addr_set_v4mapped(htonl(group), &addr);
	return addr;
}

static int attach(u32 i, u32 group)
{
	struct in6_addr addr = mgid(group);

	return nhca_mcast_attach(members[i].qp, &addr);
}

static int detach(u32 i, u32 group)
{
	struct in6_addr addr = mgid(group);

	return nhca_mcast_detach(members[i].qp, &addr);
}

/* Return: number of times that the netdev has joined the group and not left it again. */
static int joined(u32 group)
{
	struct in_device *in_dev;
	struct ip_mc_list *im;
	int users = 0;

	rtnl_lock();
	in_dev = __in_dev_get_rtnl(init_net.loopback_dev);
	for (im = rtnl_dereference(in_dev->mc_list); im; im = rtnl_dereference(im->next_rcu))
		if (im->multiaddr == htonl(group))
			users = im->users;
	rtnl_unlock();
	return users;
}

static long groups(struct kunit *test)
{
	struct qp_fixture *f = test->priv;

	return atomic_long_read(&f->dev->users.used[NHCA_POOL_GROUPS]);
}

/* Deliver a packet for @group with @qkey. Expect that the members of @mask get it, once each. */
static void expect_members(struct kunit *test, u32 group, u32 qkey, u32 mask)
{
	struct qp_fixture *f = test->priv;
	struct nhca_hdr h = fix_hdr(f->qp, NHCA_SVC_UD | NHCA_OP_SEND_ONLY, 0);
	u8 *p = page_address(f->page);
	struct nhca_cqe cqe;
	u32 i, k;

	memset(p, 0, PAGE_SIZE);
	for (i = 0; i < QPS; i++) {
		nhca_rwq_drop(&members[i].qp->rq.wq);
		fix_post_recv(test, &members[i].qp->rq.wq, f->mr, 512 * i, 200);
		fix_post_recv(test, &members[i].qp->rq.wq, f->mr, 512 * i, 200);
		members[i].qp->rq.have_rwr = false;
	}
	h.qpn = MCAST_QPN;
	h.qkey = qkey;
	f->daddr = group;
	fix_deliver(test, h, LEN);
	f->daddr = 0;
	for (i = 0; i < QPS; i++) {
		KUNIT_ASSERT_EQ_MSG(test, fix_poll(members[i].cq, &cqe), !!(mask & BIT(i)),
				    "group %x, QP %u", group, i);
		KUNIT_EXPECT_FALSE(test, members[i].cq->cons != members[i].cq->prod);
		if (!(mask & BIT(i)))
			continue;
		KUNIT_EXPECT_EQ(test, cqe.byte_len, NHCA_GRH_LEN + LEN);
		for (k = 0; k < LEN; k++)
			KUNIT_ASSERT_EQ(test, p[512 * i + NHCA_GRH_LEN + k], fix_byte(k));
	}
}

/* A packet reaches the QPs of its group, each once, and no other QPs. */
static void deliver_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;

	expect_members(test, GROUP(0), FIX_QKEY, 0);
	KUNIT_ASSERT_EQ(test, attach(0, GROUP(0)), 0);
	KUNIT_ASSERT_EQ(test, attach(2, GROUP(0)), 0);
	KUNIT_ASSERT_EQ(test, attach(1, GROUP(1)), 0);
	KUNIT_ASSERT_EQ(test, attach(2, GROUP(1)), 0);
	/* a second attachment changes nothing */
	KUNIT_EXPECT_EQ(test, attach(2, GROUP(0)), 0);
	expect_members(test, GROUP(0), FIX_QKEY, BIT(0) | BIT(2));
	expect_members(test, GROUP(1), FIX_QKEY, BIT(1) | BIT(2));
	expect_members(test, GROUP(2), FIX_QKEY, 0);
	/* each QP compares the Q_Key of the packet with its own */
	members[0].qp->attr.qkey++;
	expect_members(test, GROUP(0), FIX_QKEY, BIT(2));
	expect_members(test, GROUP(0), FIX_QKEY + 1, BIT(0));
	KUNIT_EXPECT_EQ(test, fix_count(f, NHCA_CNT_RX_BAD_QKEY), 2);
	members[0].qp->attr.qkey--;

	KUNIT_EXPECT_EQ(test, detach(0, GROUP(0)), 0);
	expect_members(test, GROUP(0), FIX_QKEY, BIT(2));
	nhca_mcast_detach_all(members[2].qp);
	expect_members(test, GROUP(0), FIX_QKEY, 0);
	expect_members(test, GROUP(1), FIX_QKEY, BIT(1));
	KUNIT_EXPECT_EQ(test, detach(1, GROUP(1)), 0);
}

/* The netdev is in a group from the first attachment to the last detachment. */
static void join_test(struct kunit *test)
{
	int before = joined(GROUP(0));

	KUNIT_EXPECT_EQ(test, detach(0, GROUP(0)), -EINVAL);
	KUNIT_ASSERT_EQ(test, attach(0, GROUP(0)), 0);
	KUNIT_EXPECT_EQ(test, joined(GROUP(0)), before + 1);
	KUNIT_EXPECT_EQ(test, groups(test), 1);
	KUNIT_ASSERT_EQ(test, attach(1, GROUP(0)), 0);
	KUNIT_EXPECT_EQ(test, joined(GROUP(0)), before + 1);
	KUNIT_EXPECT_EQ(test, groups(test), 1);
	KUNIT_ASSERT_EQ(test, attach(1, GROUP(1)), 0);
	KUNIT_EXPECT_EQ(test, groups(test), 2);
	KUNIT_EXPECT_EQ(test, detach(2, GROUP(0)), -EINVAL);
	KUNIT_EXPECT_EQ(test, detach(0, GROUP(0)), 0);
	KUNIT_EXPECT_EQ(test, detach(0, GROUP(0)), -EINVAL);
	KUNIT_EXPECT_EQ(test, joined(GROUP(0)), before + 1);
	KUNIT_EXPECT_EQ(test, detach(1, GROUP(0)), 0);
	KUNIT_EXPECT_EQ(test, joined(GROUP(0)), before);
	KUNIT_EXPECT_EQ(test, groups(test), 1);
	/* the destruction of a QP ends its own attachments */
	nhca_mcast_detach_all(members[0].qp);
	KUNIT_EXPECT_EQ(test, groups(test), 1);
	nhca_mcast_detach_all(members[1].qp);
	KUNIT_EXPECT_EQ(test, groups(test), 0);
	KUNIT_EXPECT_EQ(test, joined(GROUP(1)), 0);
}

#if IS_ENABLED(CONFIG_IPV6)
/* Return: number of times that the netdev has joined the IPv6 group and not left it again. */
static int joined6(const struct in6_addr *group)
{
	struct inet6_dev *idev;
	struct ifmcaddr6 *mc;
	int users = 0;

	rcu_read_lock();
	idev = __in6_dev_get(init_net.loopback_dev);
	for (mc = idev ? rcu_dereference(idev->mc_list) : NULL; mc; mc = rcu_dereference(mc->next))
		if (ipv6_addr_equal(&mc->mca_addr, group))
			users = mc->mca_users;
	rcu_read_unlock();
	return users;
}

/* The netdev joins and leaves an IPv6 group. */
static void join6_test(struct kunit *test)
{
	struct in6_addr group = { { { 0xff, 0x0e, [15] = 0x77 } } };

	KUNIT_ASSERT_EQ(test, nhca_mcast_attach(members[0].qp, &group), 0);
	KUNIT_ASSERT_EQ(test, nhca_mcast_attach(members[1].qp, &group), 0);
	KUNIT_EXPECT_EQ(test, joined6(&group), 1);
	KUNIT_EXPECT_EQ(test, groups(test), 1);
	KUNIT_EXPECT_EQ(test, nhca_mcast_detach(members[0].qp, &group), 0);
	KUNIT_EXPECT_EQ(test, joined6(&group), 1);
	KUNIT_EXPECT_EQ(test, nhca_mcast_detach(members[1].qp, &group), 0);
	KUNIT_EXPECT_EQ(test, joined6(&group), 0);
	KUNIT_EXPECT_EQ(test, groups(test), 0);
}
#endif

/* A netdev without IPv4 cannot join an IPv4 group, and the refused group is not charged. */
static void no_join_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;

	f->dev->netdev = f->netdev;
	KUNIT_EXPECT_EQ(test, attach(0, GROUP(0)), -ENODEV);
	KUNIT_EXPECT_EQ(test, groups(test), 0);
	f->dev->netdev = init_net.loopback_dev;
	KUNIT_EXPECT_EQ(test, attach(0, GROUP(0)), 0);
	KUNIT_EXPECT_EQ(test, groups(test), 1);
}

/* A group has a limited number of QPs, and a user may have only a share of them. */
static void limit_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;
	struct nhca_qp *qps = kunit_kcalloc(test, NHCA_MAX_MCAST_QP + 1, sizeof(*qps), GFP_KERNEL);
	struct nhca_user *user = nhca_user_get(&f->dev->users, 4711);
	struct in6_addr addr = mgid(GROUP(0));
	u32 i, own = 0;
	int err = 0;

	KUNIT_ASSERT_NOT_NULL(test, qps);
	KUNIT_ASSERT_FALSE(test, IS_ERR(user));
	for (i = 0; i <= NHCA_MAX_MCAST_QP; i++) {
		qps[i].ibqp.qp_type = IB_QPT_UD;
		qps[i].dev = f->dev;
	}
	/* QPs of one user, up to the user's share */
	for (; own < NHCA_MAX_MCAST_QP; own++) {
		qps[own].owner = user;
		err = nhca_mcast_attach(&qps[own], &addr);
		if (err)
			break;
	}
	KUNIT_EXPECT_EQ(test, err, -EDQUOT);
	KUNIT_EXPECT_LE(test, own, NHCA_MAX_MCAST_QP / 2);
	KUNIT_EXPECT_GT(test, own, 0);
	/* QPs of the kernel, up to the limit of the group */
	qps[own].owner = NULL;
	for (i = own; i < NHCA_MAX_MCAST_QP; i++)
		KUNIT_ASSERT_EQ(test, nhca_mcast_attach(&qps[i], &addr), 0);
	KUNIT_EXPECT_EQ(test, nhca_mcast_attach(&qps[i], &addr), -ENOMEM);
	for (i = 0; i < NHCA_MAX_MCAST_QP; i++)
		nhca_mcast_detach_all(&qps[i]);
	KUNIT_EXPECT_EQ(test, groups(test), 0);
	nhca_user_put(user);
}

#define MANY	600u

/* Return: number of groups in the fullest hash bucket, which bounds the search for a group. */
static u32 longest(struct nhca_dev *dev)
{
	struct hlist_node *node;
	u32 i, n, most = 0;

	for (i = 0; i < NHCA_MCAST_BUCKETS; i++) {
		n = 0;
		hlist_for_each(node, &dev->mcast.groups[i])
			n++;
		most = max(most, n);
	}
	return most;
}

/* A device with many groups finds the group of a packet with few comparisons. */
static void many_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;
	u32 i;

	for (i = 0; i < MANY; i++)
		KUNIT_ASSERT_EQ(test, attach(0, GROUP(i)), 0);
	KUNIT_ASSERT_EQ(test, attach(1, GROUP(MANY - 1)), 0);
	KUNIT_EXPECT_EQ(test, groups(test), MANY);
	/*
	 * a bucket has 2.3 groups on average; the fixture's hash key is constant, so the result is
	 * always the same
	 */
	KUNIT_EXPECT_LE(test, longest(f->dev), 12);
	expect_members(test, GROUP(0), FIX_QKEY, BIT(0));
	expect_members(test, GROUP(MANY - 1), FIX_QKEY, BIT(0) | BIT(1));
	expect_members(test, GROUP(MANY), FIX_QKEY, 0);
	nhca_mcast_detach_all(members[0].qp);
	KUNIT_EXPECT_EQ(test, groups(test), 1);
	KUNIT_EXPECT_EQ(test, joined(GROUP(0)), 0);
	expect_members(test, GROUP(MANY - 1), FIX_QKEY, BIT(1));
}

static int detach_thread(void *done)
{
	nhca_mcast_detach_all(members[1].qp);
	complete_all(done);
	return 0;
}

/*
 * The destruction of a QP without attachments does not take the RTNL lock, which other tasks may
 * hold for long.
 */
static void no_rtnl_test(struct kunit *test)
{
	DECLARE_COMPLETION_ONSTACK(done);
	struct task_struct *t;

	KUNIT_ASSERT_EQ(test, attach(0, GROUP(0)), 0);
	rtnl_lock();
	t = test_thread_start(detach_thread, &done, 0);
	if (!IS_ERR(t))
		KUNIT_EXPECT_NE(test, wait_for_completion_timeout(&done, TEST_PATIENCE), 0);
	rtnl_unlock();
	KUNIT_ASSERT_FALSE(test, IS_ERR(t));
	test_thread_stop(t);
	KUNIT_EXPECT_EQ(test, groups(test), 1);
}

static struct kunit_case group_cases[] = {
	KUNIT_CASE(deliver_test),
	KUNIT_CASE(join_test),
#if IS_ENABLED(CONFIG_IPV6)
	KUNIT_CASE(join6_test),
#endif
	KUNIT_CASE(no_join_test),
	KUNIT_CASE(limit_test),
	KUNIT_CASE(many_test),
	KUNIT_CASE(no_rtnl_test),
	{}
};

static struct kunit_suite group_suite = {
	.name = "nhca_group",
	.init = group_init,
	.exit = group_exit,
	.test_cases = group_cases,
};

kunit_test_suite(group_suite);
