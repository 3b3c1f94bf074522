// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit: the packets that requesters and responders send while a batch is received count against
 * the receive budget. Otherwise a batch with packets for several QPs in turns could occupy a CPU
 * for too long.
 */
#include "../net/sockets.h"
#include "qp_fixture.h"

#define READ_REQUEST	(NHCA_SVC_RC | NHCA_OP_READ_REQUEST)
#define ACK		(NHCA_SVC_RC | NHCA_OP_ACK)
#define QPS		2
/*
 * packets that a QP may send while a batch is received, although the budget of the batch is used up
 */
#define LAST_PASS	32

static struct nhca_qp *qps[QPS];

static int budget_init(struct kunit *test)
{
	int err = qp_fixture_init(test);
	struct qp_fixture *f = test->priv;

	if (err)
		return err;
	qps[0] = f->qp;
	qps[1] = fix_qp(test, IB_QPT_RC, NULL);
	fix_connect(test, qps[1]);
	return 0;
}

static void budget_exit(struct kunit *test)
{
	fix_destroy(&qps[1]);
	qp_fixture_exit(test);
}

/*
 * Return: a batch of @count packets with @opcode, for the two QPs in turns. The first packet of
 * each QP has PSN @psn, and @step is the difference to the PSN of the next packet of the same QP.
 */
static struct sk_buff *turns(struct kunit *test, u8 opcode, u32 psn, u32 step, u32 len, u32 count)
{
	struct qp_fixture *f = test->priv;
	struct nhca_hdr h = fix_hdr(f->qp, opcode, psn);
	struct sk_buff *skb = fix_skb(test, &h, 0, count);
	u32 i;

	skb_trim(skb, 0);
	for (i = 0; i < count; i++) {
		h = fix_hdr(qps[i % QPS], opcode, psn + i / QPS * step);
		h.rkey = f->mr->ibmr.rkey;
		h.dmalen = len;
		fix_put(skb, &h, 0, i, NULL);
	}
	return skb;
}

/*
 * Receive @skb by calls of nhca_rx_batch(), each with a budget of @budget packets. In a call, two
 * QPs may exceed the budget: the QP that uses it up, and the QP that received the last packet of
 * the call.
 * @most: maximum number of packets that a QP sends for one received packet
 * Return: number of calls.
 */
static u32 receive(struct kunit *test, struct sk_buff *skb, int budget, u32 most)
{
	struct qp_fixture *f = test->priv;
	struct nhca_rx_pos pos = {};
	u32 passes = 0, before;
	bool all;
	int left;

	do {
		before = f->nsent;
		left = budget;
		local_bh_disable();
		all = nhca_rx_batch(f->dev->nn, skb, false, &pos, &left);
		local_bh_enable();
		KUNIT_EXPECT_LE(test, f->nsent - before, budget - 1 + 2 * most);
		KUNIT_EXPECT_EQ(test, left, budget - (int)(f->nsent - before));
		passes++;
	} while (!all && passes < 100);
	kfree_skb(skb);
	return passes;
}

/*
 * READs for two QPs in turns: the responses use up the budget, so the next call handles the other
 * READs of the batch.
 */
static void reads_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;
	u32 i, psn[QPS] = { FIX_RQ_PSN, FIX_RQ_PSN };
	struct sk_buff *skb;
	struct nhca_hdr *h;

	skb = turns(test, READ_REQUEST, FIX_RQ_PSN, 4, 4 * FIX_MTU, 8);
	KUNIT_EXPECT_EQ(test, receive(test, skb, 8, 4), 3);
	/* each READ is answered once, and the READs of a QP are answered in order */
	KUNIT_ASSERT_EQ(test, f->nsent, 8 * 4);
	for (i = 0; i < f->nsent; i++) {
		h = &f->sent[i].hdr;
		KUNIT_EXPECT_EQ(test, h->psn, psn[i / 4 % QPS]++);
	}
}

/* An ACK lets the requester send more packets, which also count against the budget. */
static void acks_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;
	struct sk_buff *skb;
	u32 i, k;

	for (i = 0; i < QPS; i++) {
		qps[i]->sq.window.cwnd = NHCA_CWND_MIN;
		qps[i]->sq.window.ssthresh = NHCA_CWND_MIN;
		for (k = 0; k < 16; k++)
			fix_post_send(test, qps[i], f->mr, 0, 10, 0);
	}
	KUNIT_ASSERT_EQ(test, f->nsent, QPS * NHCA_CWND_MIN);
	skb = turns(test, ACK, FIX_SQ_PSN, 1, 0, 8);
	KUNIT_EXPECT_GE(test, receive(test, skb, 3, 2), 2);
	KUNIT_EXPECT_GE(test, f->nsent, QPS * NHCA_CWND_MIN + 8);
}

/*
 * A long response stops when the budget of the batch is used up, and a work item sends its other
 * packets. Yet each QP may send LAST_PASS packets, so that a short response does not wait for the
 * work item.
 */
static void long_response_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;
	struct nhca_rx_pos pos = {};
	struct sk_buff *skb;
	int budget = NHCA_RX_BUDGET;
	bool rest[QPS], all;
	u32 i;

	for (i = 0; i < QPS; i++)
		qps[i]->mtu = 16;
	skb = turns(test, READ_REQUEST, FIX_RQ_PSN, 256, PAGE_SIZE, QPS);
	local_bh_disable();
	all = nhca_rx_batch(f->dev->nn, skb, false, &pos, &budget);
	/*
	 * cancel the work item, because a worker would call the real functions: the fixture
	 * replaces them only in this thread
	 */
	for (i = 0; i < QPS; i++)
		rest[i] = cancel_work(&qps[i]->piggyback->rest);
	local_bh_enable();
	kfree_skb(skb);
	KUNIT_EXPECT_TRUE(test, all);
	KUNIT_EXPECT_FALSE(test, rest[0]);
	KUNIT_EXPECT_TRUE(test, rest[1]);
	KUNIT_EXPECT_EQ(test, f->nsent, 256 + LAST_PASS);
	KUNIT_EXPECT_EQ(test, budget, -LAST_PASS);
}

static struct kunit_case budget_cases[] = {
	KUNIT_CASE(reads_test),
	KUNIT_CASE(acks_test),
	KUNIT_CASE(long_response_test),
	{}
};

static struct kunit_suite budget_suite = {
	.name = "nhca_rx_budget",
	.init = budget_init,
	.exit = budget_exit,
	.test_cases = budget_cases,
};

kunit_test_suite(budget_suite);
