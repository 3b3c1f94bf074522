// SPDX-License-Identifier: GPL-2.0
/* KUnit: a batch of multicast packets to a large group is received in several passes. */
#include "../ingress/ingress.h"
#include "../net/sockets.h"
#include "qp_fixture.h"

#define GROUP		0xe0000105	/* 224.0.1.5 */
#define MEMBERS		100
#define PACKETS		64
#define QPN		0xffffff

/* number of packets delivered to the group, and number of these packets that were out of order */
static u32 delivered;
static u32 wrong;

/* Replaces nhca_mcast_deliver(): counts the packet as MEMBERS copies. */
static u32 deliver(struct nhca_dev *dev, const struct in6_addr *mgid, struct nhca_batch *b,
		   void (*fn)(struct nhca_qp *qp, struct nhca_batch *b))
{
	wrong += b->rx.hdr.psn != delivered || b->rx.index != delivered;
	delivered++;
	return MEMBERS;
}

/* Replaces nhca_net_dev(): every interface belongs to the fixture's device. */
static struct nhca_dev *any_dev(struct nhca_net *nn, int iif)
{
	struct qp_fixture *f = kunit_get_current_test()->priv;

	return f->dev;
}

/* A pass ends after the packet that uses up the budget. Each packet is delivered once, in order. */
static void mcast_parts_test(struct kunit *test)
{
	const u32 most = DIV_ROUND_UP(NHCA_RX_BUDGET, MEMBERS);
	struct qp_fixture *f = test->priv;
	struct nhca_hdr h = fix_hdr(f->qp, NHCA_SVC_UD | NHCA_OP_SEND_ONLY, 0);
	struct nhca_rx_pos pos = {};
	struct sk_buff *skb;
	u32 before, parts = 0;
	bool all;
	int budget;

	kunit_activate_static_stub(test, nhca_net_dev, any_dev);
	kunit_activate_static_stub(test, nhca_mcast_deliver, deliver);
	delivered = 0;
	wrong = 0;
	f->daddr = GROUP;
	h.qpn = QPN;
	skb = fix_skb(test, &h, 32, PACKETS);
	do {
		before = delivered;
		budget = NHCA_RX_BUDGET;
		local_bh_disable();
		all = nhca_rx_batch(f->dev->nn, skb, false, &pos, &budget);
		local_bh_enable();
		KUNIT_ASSERT_GT(test, delivered, before);
		KUNIT_EXPECT_LE(test, delivered - before, most);
		KUNIT_EXPECT_EQ(test, budget, NHCA_RX_BUDGET - (int)(delivered - before) * MEMBERS);
		parts++;
	} while (!all);
	kfree_skb(skb);
	KUNIT_EXPECT_EQ(test, parts, DIV_ROUND_UP(PACKETS, most));
	KUNIT_EXPECT_EQ(test, delivered, PACKETS);
	KUNIT_EXPECT_EQ(test, wrong, 0);
}

/* Each pass delivers at least one packet, even if the budget is already used up. */
static void mcast_progress_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;
	struct nhca_hdr h = fix_hdr(f->qp, NHCA_SVC_UD | NHCA_OP_SEND_ONLY, 0);
	struct nhca_rx_pos pos = {};
	struct sk_buff *skb;
	int budget = -5;

	kunit_activate_static_stub(test, nhca_net_dev, any_dev);
	kunit_activate_static_stub(test, nhca_mcast_deliver, deliver);
	delivered = 0;
	f->daddr = GROUP;
	h.qpn = QPN;
	skb = fix_skb(test, &h, 32, 2);
	local_bh_disable();
	KUNIT_EXPECT_FALSE(test, nhca_rx_batch(f->dev->nn, skb, false, &pos, &budget));
	KUNIT_EXPECT_EQ(test, delivered, 1);
	KUNIT_EXPECT_TRUE(test, nhca_rx_batch(f->dev->nn, skb, false, &pos, &budget));
	local_bh_enable();
	KUNIT_EXPECT_EQ(test, delivered, 2);
	kfree_skb(skb);
}

static struct kunit_case mcast_cases[] = {
	KUNIT_CASE(mcast_parts_test),
	KUNIT_CASE(mcast_progress_test),
	{}
};

static struct kunit_suite mcast_suite = {
	.name = "nhca_qp_mcast",
	.init = qp_fixture_init,
	.exit = qp_fixture_exit,
	.test_cases = mcast_cases,
};

kunit_test_suite(mcast_suite);
