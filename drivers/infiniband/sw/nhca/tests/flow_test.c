// SPDX-License-Identifier: GPL-2.0
/* KUnit: which flow may send next when the stack holds too many packets of a device. */
#include <kunit/test.h>
#include <linux/delay.h>
#include <linux/skbuff.h>

#include "../net/net.h"
#include "../net/flow.h"
#include "../net/txq.h"
#include "../user.h"

#define FLOWS	5
#define BATCH	16	/* packets of one skb, which the stack gets and frees together */
#define OWN	4	/* batches in the stack at which a flow pauses */
#define ALL	16	/* batches of all flows at which all pause */
#define LOW	8	/* batches of all flows at which waiting flows resume */
#define LISTED	512	/* entries of a device's list of flows above which idle flows leave it */
#define MANY	700
#define PASSED	16	/* packets that bypass the waiting flows before one flow is woken */

/**
 * struct line - flows of a device
 * @q:      packet count of the device
 * @flow:   the flows
 * @kicked: number of kicks of each flow
 * @held:   skbs of each flow that the stack holds
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

/* Give the stack one skb with @packets packets of flow @i. */
static void line_send_one(struct kunit *test, struct line *l, int i, int packets)
{
	struct sk_buff *skb = alloc_skb(0, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, skb);
	nhca_flow_charge(l->flow[i], skb, packets);
	skb_queue_tail(&l->held[i], skb);
}

/* Give the stack @n batches of flow @i. */
static void line_send(struct kunit *test, struct line *l, int i, int n)
{
	for (; n; n--)
		line_send_one(test, l, i, BATCH);
}

/* The stack frees the oldest @n batches of flow @i. */
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

/* Return: flows of a device. All flows but the last fill the device, and the last flow waits. */
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

/*
 * A flow that paused because of its own packets queues behind a flow that waits for the device. So
 * the flow cannot use all the room that becomes free in the device.
 */
static void flow_no_bypass_test(struct kunit *test)
{
	struct line *l = line_full(test);
	int i;

	line_free(l, 0, OWN / 2);
	KUNIT_EXPECT_EQ(test, l->kicked[0], 1);
	KUNIT_EXPECT_EQ(test, l->kicked[FLOWS - 1], 0);
	KUNIT_EXPECT_TRUE(test, line_blocked(l, 0));
	/* a waiting flow that tries again still waits */
	KUNIT_EXPECT_TRUE(test, line_blocked(l, FLOWS - 1));
	for (i = 1; i < ALL - LOW - OWN / 2; i++)
		line_free(l, 1 + i % 3, 1);
	KUNIT_EXPECT_EQ(test, l->kicked[FLOWS - 1], 0);
	line_free(l, 1, 1);
	KUNIT_EXPECT_EQ(test, l->kicked[FLOWS - 1], 1);
	KUNIT_EXPECT_FALSE(test, line_blocked(l, FLOWS - 1));
	line_end(l);
}

/*
 * A flow with few packets need not wait for the flows that fill the device, so a short message is
 * not delayed.
 */
static void flow_few_bypass_test(struct kunit *test)
{
	struct line *l = line_full(test);

	line_free(l, 0, OWN);
	KUNIT_EXPECT_FALSE(test, line_blocked(l, 0));
	line_send(test, l, 0, 1);
	KUNIT_EXPECT_TRUE(test, line_blocked(l, 0));
	line_free(l, 0, 1);
	/* the flow waits, and still waits when the stack holds none of its packets */
	KUNIT_EXPECT_TRUE(test, line_blocked(l, 0));
	line_end(l);
}

/* Waiting flows are woken however many short messages bypass them. */
static void flow_queue_progress_test(struct kunit *test)
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

/* The last packet that is freed wakes all waiting flows, because no later packet can wake them. */
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

#define CROWD	300	/* waiting flows */
#define AT_ONCE	64	/* NHCA_TXQ_WAKE_MAX */

/*
 * The destructor of the last packet wakes at most NHCA_TXQ_WAKE_MAX flows with interrupts disabled.
 * nhca_txq_rest() wakes the other flows, although no packet is freed.
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

	/*
	 * free all batches but one, then count in @first the flows that the freed batches have
	 * woken
	 */
	for (i = 1; i < FLOWS - 1; i++)
		line_free(l, i, OWN);
	line_free(l, 0, OWN - 1);
	memset(kicked, 0, CROWD * sizeof(*kicked));
	local_bh_disable();
	for (i = 0; i < CROWD; i++)
		first += !nhca_flow_queued(flow[i], &(u32){ 0 });
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

/* When the stack frees an skb, the counts decrease by exactly the packets charged with the skb. */
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

/* Wait until flow @i is kicked. */
static bool line_comes(struct line *l, int i)
{
	int tries;

	for (tries = 0; tries < 100 && !READ_ONCE(l->kicked[i]); tries++)
		msleep(20);
	return READ_ONCE(l->kicked[i]);
}

/*
 * The stack may keep packets for long, for example in the queue of a neighbour that does not
 * answer. After a while the packets that are kept count only for their flows, and not for the
 * device. So other flows can send.
 */
static void flow_stuck_test(struct kunit *test)
{
	struct line *l = line_full(test);
	int i;

	memset(l->kicked, 0, sizeof(l->kicked));
	KUNIT_ASSERT_TRUE(test, line_comes(l, FLOWS - 1));
	KUNIT_EXPECT_FALSE(test, line_blocked(l, FLOWS - 1));
	/* the other flows still have their packets, and are not kicked */
	for (i = 0; i < FLOWS - 1; i++) {
		KUNIT_EXPECT_TRUE(test, line_blocked(l, i));
		KUNIT_EXPECT_EQ(test, l->kicked[i], 0);
		KUNIT_EXPECT_EQ(test, nhca_flow_inflight(l->flow[i]), OWN * BATCH);
	}
	/* the flow has its own limit as before */
	line_send(test, l, FLOWS - 1, OWN);
	KUNIT_EXPECT_TRUE(test, line_blocked(l, FLOWS - 1));
	line_free(l, FLOWS - 1, OWN);
	/* flows whose packets the stack has freed after a long time may send like any other flow */
	for (i = 0; i < FLOWS - 1; i++)
		line_free(l, i, OWN);
	for (i = 0; i < FLOWS - 1; i++) {
		KUNIT_EXPECT_FALSE(test, line_blocked(l, i));
		line_send(test, l, i, OWN);
	}
	KUNIT_EXPECT_TRUE(test, line_blocked(l, FLOWS - 1));
	line_end(l);
}

static struct nhca_users *users_make(struct kunit *test)
{
	struct nhca_users *users = kunit_kzalloc(test, sizeof(*users), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, users);
	nhca_users_init(users);
	return users;
}

/* Make flow @i a flow of user @id. Afterwards only the flows have references to the user. */
static void line_share(struct kunit *test, struct line *l, int i, struct nhca_users *users, u32 id)
{
	struct nhca_user *user = nhca_user_get(users, id);

	KUNIT_ASSERT_FALSE(test, IS_ERR(user));
	KUNIT_ASSERT_EQ(test, nhca_flow_share(l->flow[i], user), 0);
	nhca_user_put(user);
}

/* Expect that the table has no users, because all their flows are closed, and destroy the table. */
static void users_end(struct kunit *test, struct nhca_users *users)
{
	KUNIT_EXPECT_TRUE(test, xa_empty(&users->by_id));
	nhca_users_destroy(users);
}

/*
 * The flows of a user have half of the device together. Packets that the stack keeps for long do
 * not count for the share.
 */
static void flow_share_test(struct kunit *test)
{
	struct nhca_users *users = users_make(test);
	struct line *l = line_make(test);
	int i;

	KUNIT_ASSERT_EQ(test, nhca_user_share, 500);
	for (i = 0; i < 3; i++)
		line_share(test, l, i, users, 1);
	line_share(test, l, 3, users, 2);
	KUNIT_ASSERT_EQ(test, nhca_flow_share(l->flow[4], NULL), 0);
	line_send(test, l, 0, OWN);
	line_send(test, l, 1, OWN);
	KUNIT_EXPECT_TRUE(test, line_blocked(l, 2));
	/*
	 * other users and the kernel have the other half, and need not queue behind the first user
	 */
	KUNIT_EXPECT_FALSE(test, line_blocked(l, 3));
	line_send(test, l, 3, OWN - 1);
	KUNIT_EXPECT_FALSE(test, line_blocked(l, 3));
	KUNIT_EXPECT_FALSE(test, line_blocked(l, 4));
	/* the flow is woken when half of the share is free */
	line_free(l, 0, OWN - 1);
	KUNIT_EXPECT_EQ(test, l->kicked[2], 0);
	line_free(l, 0, 1);
	KUNIT_EXPECT_EQ(test, l->kicked[2], 1);
	KUNIT_EXPECT_FALSE(test, line_blocked(l, 2));
	/*
	 * after a while, packets that the stack does not free are stuck, and do not count for the
	 * share
	 */
	line_send(test, l, 0, OWN);
	KUNIT_EXPECT_TRUE(test, line_blocked(l, 2));
	l->kicked[2] = 0;
	KUNIT_EXPECT_TRUE(test, line_comes(l, 2));
	KUNIT_EXPECT_FALSE(test, line_blocked(l, 2));
	line_end(l);
	users_end(test, users);
}

/*
 * The last eighth of the packets that a device may have in the stack is reserved for the kernel and
 * for users with few packets there.
 */
static void flow_reserve_test(struct kunit *test)
{
	struct nhca_users *users = users_make(test);
	struct line *l = line_make(test);
	int i;

	for (i = 0; i < 2; i++) {
		line_share(test, l, 2 * i, users, i);
		line_share(test, l, 2 * i + 1, users, i);
		line_send(test, l, 2 * i, OWN - 1);
		line_send(test, l, 2 * i + 1, OWN);
	}
	KUNIT_EXPECT_TRUE(test, line_blocked(l, 0));
	KUNIT_EXPECT_TRUE(test, line_blocked(l, 2));
	line_share(test, l, 4, users, 2);
	KUNIT_EXPECT_FALSE(test, line_blocked(l, 4));
	line_send(test, l, 4, 1);
	KUNIT_EXPECT_TRUE(test, line_blocked(l, 4));
	line_free(l, 4, 1);
	line_end(l);
	users_end(test, users);
}

/*
 * A flow exists until its packets are freed, even if the device and its table of users are freed
 * earlier.
 */
static void flow_user_late_test(struct kunit *test)
{
	struct nhca_users *users = users_make(test);
	struct line *l = line_make(test);

	line_share(test, l, 0, users, 1);
	line_send(test, l, 0, OWN);
	nhca_users_destroy(users);
	KUNIT_EXPECT_TRUE(test, xa_empty(&users->by_id));
	/* the table of users is freed with the device */
	memset(users, 0xff, sizeof(*users));
	line_free(l, 0, OWN);
	line_end(l);
}

/*
 * Closed flows leave the device's list of flows with packets, and so do idle flows when the list
 * has more than LISTED entries.
 */
static void flow_many_test(struct kunit *test)
{
	struct line *l = line_make(test);
	struct nhca_flow **flow = kunit_kcalloc(test, MANY, sizeof(*flow), GFP_KERNEL);
	struct sk_buff *skb;
	int i, kicked;

	KUNIT_ASSERT_NOT_NULL(test, flow);
	for (i = 0; i < MANY; i++) {
		flow[i] = nhca_flow_create(l->q, line_kick, &kicked);
		KUNIT_ASSERT_NOT_NULL(test, flow[i]);
		skb = alloc_skb(0, GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(test, skb);
		nhca_flow_charge(flow[i], skb, 1);
		kfree_skb(skb);
	}
	KUNIT_EXPECT_LE(test, l->q->nactive, LISTED + 1);
	for (i = 0; i < MANY; i++)
		nhca_flow_close(flow[i]);
	KUNIT_EXPECT_EQ(test, l->q->nactive, 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&l->q->inflight), 0);
	line_end(l);
}

static struct kunit_case flow_cases[] = {
	KUNIT_CASE(flow_charge_test),
	KUNIT_CASE(flow_no_bypass_test),
	KUNIT_CASE(flow_few_bypass_test),
	KUNIT_CASE(flow_queue_progress_test),
	KUNIT_CASE(flow_last_wakes_all_test),
	KUNIT_CASE(flow_last_wakes_all_in_turns_test),
	KUNIT_CASE(flow_stuck_test),
	KUNIT_CASE(flow_share_test),
	KUNIT_CASE(flow_reserve_test),
	KUNIT_CASE(flow_user_late_test),
	KUNIT_CASE(flow_many_test),
	{}
};

static struct kunit_suite flow_suite = {
	.name = "nhca_flow",
	.test_cases = flow_cases,
};

kunit_test_suite(flow_suite);
