// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit: whose turn it is when the stack holds too much of a device.
 */
#include <kunit/test.h>
#include <linux/delay.h>
#include <linux/skbuff.h>

#include "../net/net.h"
#include "../net/flow.h"

#define FLOWS	5
#define BATCH	16	/* packets that are given to the stack, and given back, at once */
#define OWN	4	/* batches of one flow at which it pauses */
#define ALL	16	/* of all flows together */
#define LOW	8	/* of all flows together at which those in line go on */
#define PASSED	16	/* packets that go by those in line before one of these does */

/**
 * struct line - flows of a device
 * @q:      their device's account
 * @flow:   theirs
 * @kicked: how often each was let go on
 * @held:   what the stack holds of each
 */
struct line {
	struct nhca_txq *q;
	struct nhca_flow *flow[FLOWS];
	int kicked[FLOWS];
	struct sk_buff_head held[FLOWS];
};

static void line_kick(void *arg)
{
	(*(int *)arg)++;
}

static struct line *line_make(struct kunit *test)
{
	struct line *l = kunit_kzalloc(test, sizeof(*l), GFP_KERNEL);
	int i;

	KUNIT_ASSERT_NOT_NULL(test, l);
	l->q = nhca_txq_create();
	KUNIT_ASSERT_NOT_NULL(test, l->q);
	for (i = 0; i < FLOWS; i++) {
		skb_queue_head_init(&l->held[i]);
		l->flow[i] = nhca_flow_create(l->q, line_kick, &l->kicked[i]);
		KUNIT_ASSERT_NOT_NULL(test, l->flow[i]);
	}
	return l;
}

/* @packets of flow @i are in the stack, too, in one piece. */
static void line_send_one(struct kunit *test, struct line *l, int i, int packets)
{
	struct sk_buff *skb = alloc_skb(0, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, skb);
	nhca_flow_charge(l->flow[i], skb, packets);
	skb_queue_tail(&l->held[i], skb);
}

/* The same with @n batches */
static void line_send(struct kunit *test, struct line *l, int i, int n)
{
	for (; n; n--)
		line_send_one(test, l, i, BATCH);
}

/* The stack gives back the first @n batches of flow @i. */
static void line_free(struct line *l, int i, int n)
{
	for (; n; n--)
		kfree_skb(skb_dequeue(&l->held[i]));
}

static bool line_blocked(struct line *l, int i)
{
	bool blocked;

	local_bh_disable();
	blocked = nhca_flow_blocked(l->flow[i], false);
	local_bh_enable();
	return blocked;
}

static void line_end(struct line *l)
{
	int i;

	for (i = 0; i < FLOWS; i++) {
		skb_queue_purge(&l->held[i]);
		nhca_flow_close(l->flow[i]);
	}
	nhca_txq_put(l->q);
}

/* All flows but the last fill the device, and the last waits. */
static struct line *line_full(struct kunit *test)
{
	struct line *l = line_make(test);
	int i;

	for (i = 0; i < FLOWS - 1; i++) {
		KUNIT_EXPECT_FALSE(test, line_blocked(l, i));
		line_send(test, l, i, OWN);
		KUNIT_EXPECT_TRUE(test, line_blocked(l, i));
	}
	KUNIT_EXPECT_TRUE(test, line_blocked(l, FLOWS - 1));
	return l;
}

/* Who paused for its own packets stands behind who waited for the device when it goes on. */
static void flow_no_passing_test(struct kunit *test)
{
	struct line *l = line_full(test);
	int i;

	line_free(l, 0, OWN / 2);
	KUNIT_EXPECT_EQ(test, l->kicked[0], 1);
	KUNIT_EXPECT_EQ(test, l->kicked[FLOWS - 1], 0);
	KUNIT_EXPECT_TRUE(test, line_blocked(l, 0));
	/* nor does asking again help those in line */
	KUNIT_EXPECT_TRUE(test, line_blocked(l, FLOWS - 1));
	for (i = 1; i < ALL - LOW - OWN / 2; i++)
		line_free(l, 1 + i % 3, 1);
	KUNIT_EXPECT_EQ(test, l->kicked[FLOWS - 1], 0);
	line_free(l, 1, 1);
	KUNIT_EXPECT_EQ(test, l->kicked[FLOWS - 1], 1);
	KUNIT_EXPECT_FALSE(test, line_blocked(l, FLOWS - 1));
	line_end(l);
}

/* A short message is not kept waiting by those who fill the device. */
static void flow_few_pass_test(struct kunit *test)
{
	struct line *l = line_full(test);

	line_free(l, 0, OWN);
	KUNIT_EXPECT_FALSE(test, line_blocked(l, 0));
	line_send(test, l, 0, 1);
	KUNIT_EXPECT_TRUE(test, line_blocked(l, 0));
	line_free(l, 0, 1);
	/* it stands in line now, and stays there with nothing in the stack */
	KUNIT_EXPECT_TRUE(test, line_blocked(l, 0));
	line_end(l);
}

/* However many short messages go by, those in line have their turn. */
static void flow_line_moves_test(struct kunit *test)
{
	struct line *l = line_full(test);
	int i;

	line_free(l, 0, OWN);
	for (i = 0; i < 2 * PASSED && !l->kicked[FLOWS - 1]; i++) {
		KUNIT_EXPECT_FALSE(test, line_blocked(l, 0));
		line_send_one(test, l, 0, 1);
		line_free(l, 0, 1);
	}
	KUNIT_EXPECT_EQ(test, i, PASSED);
	KUNIT_EXPECT_FALSE(test, line_blocked(l, FLOWS - 1));
	line_end(l);
}

/* The last packet that comes back lets everybody go on: nobody else would. */
static void flow_last_wakes_all_test(struct kunit *test)
{
	struct line *l = line_full(test);
	int i;

	for (i = 0; i < FLOWS; i++)
		line_free(l, i, skb_queue_len(&l->held[i]));
	for (i = 0; i < FLOWS; i++) {
		KUNIT_EXPECT_GE(test, l->kicked[i], 1);
		KUNIT_EXPECT_FALSE(test, line_blocked(l, i));
	}
	line_end(l);
}

#define CROWD	300	/* flows in line */
#define AT_ONCE	64	/* of them that one packet that comes back lets go on */

/*
 * Purpose: however many flows wait, the destructor of the last packet lets only some go on with
 * interrupts off; the others follow without any packet.
 */
static void flow_last_wakes_all_in_turns_test(struct kunit *test)
{
	struct nhca_flow **flow = kunit_kcalloc(test, CROWD, sizeof(*flow), GFP_KERNEL);
	int *kicked = kunit_kcalloc(test, CROWD, sizeof(*kicked), GFP_KERNEL);
	struct line *l = line_full(test);
	int i, tries, first = 0, all = 0;

	KUNIT_ASSERT_NOT_NULL(test, flow);
	KUNIT_ASSERT_NOT_NULL(test, kicked);
	for (i = 0; i < CROWD; i++) {
		flow[i] = nhca_flow_create(l->q, line_kick, &kicked[i]);
		KUNIT_ASSERT_NOT_NULL(test, flow[i]);
	}
	local_bh_disable();
	for (i = 0; i < CROWD; i++)
		KUNIT_EXPECT_TRUE(test, nhca_flow_blocked(flow[i], false));
	local_bh_enable();

	/* one batch is left; what others that come back let go on stands in line again */
	for (i = 1; i < FLOWS - 1; i++)
		line_free(l, i, OWN);
	line_free(l, 0, OWN - 1);
	memset(kicked, 0, CROWD * sizeof(*kicked));
	local_bh_disable();
	for (i = 0; i < CROWD; i++)
		first += !nhca_flow_in_line(flow[i], &(u32){ 0 });
	line_free(l, 0, 1);
	for (i = 0; i < CROWD; i++)
		all += kicked[i];
	local_bh_enable();
	KUNIT_EXPECT_LT(test, first, CROWD - 2 * AT_ONCE);
	KUNIT_EXPECT_LE(test, all, AT_ONCE);

	for (tries = 0; tries < 100 && all < CROWD - first; tries++) {
		msleep(20);
		for (i = all = 0; i < CROWD; i++)
			all += kicked[i];
	}
	KUNIT_EXPECT_EQ(test, all, CROWD - first);
	for (i = 0; i < CROWD; i++)
		nhca_flow_close(flow[i]);
	line_end(l);
}

/* However many packets an skb has, as many are given back. */
static void flow_charge_test(struct kunit *test)
{
	struct line *l = line_make(test);
	int packets;

	for (packets = 1; packets <= NHCA_FLOW_BATCH; packets++) {
		line_send_one(test, l, 0, packets);
		line_send_one(test, l, 1, 1);
		KUNIT_EXPECT_EQ(test, nhca_flow_inflight(l->flow[0]), packets);
		KUNIT_EXPECT_EQ(test, nhca_flow_inflight(l->flow[1]), 1);
		line_free(l, 0, 1);
		KUNIT_EXPECT_EQ(test, nhca_flow_inflight(l->flow[0]), 0);
		line_free(l, 1, 1);
		KUNIT_EXPECT_EQ(test, nhca_flow_inflight(l->flow[1]), 0);
	}
	line_end(l);
}

static struct kunit_case flow_cases[] = {
	KUNIT_CASE(flow_charge_test),
	KUNIT_CASE(flow_no_passing_test),
	KUNIT_CASE(flow_few_pass_test),
	KUNIT_CASE(flow_line_moves_test),
	KUNIT_CASE(flow_last_wakes_all_test),
	KUNIT_CASE(flow_last_wakes_all_in_turns_test),
	{}
};

static struct kunit_suite flow_suite = {
	.name = "nhca_flow",
	.test_cases = flow_cases,
};

kunit_test_suite(flow_suite);
