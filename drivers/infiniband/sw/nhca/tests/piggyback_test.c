// SPDX-License-Identifier: GPL-2.0
/* KUnit: ACKs that wait for a request that carries them (piggybacked ACKs). */
#include "qp_fixture.h"

#define SEND_ONLY	(NHCA_SVC_RC | NHCA_OP_SEND_ONLY)
#define ACK		(NHCA_SVC_RC | NHCA_OP_ACK)
#define HERE		(NHCA_CAP_PRESENT | NHCA_CAP_CONFIRMED | NHCA_CAP_NO_ICRC_OK)
/* number of quick replies after which an ACK waits */
#define NEEDED		8

/* the clock, in units of 1,024 ns; it only moves when a test changes it */
static u32 now;

/* Replaces nhca_piggyback_clock(). */
static u32 fake_clock(void)
{
	return now | 1;
}

/* Deliver a SEND of the peer with AckReq. */
static void receive(struct kunit *test, u32 i)
{
	struct qp_fixture *f = test->priv;
	struct nhca_hdr h = fix_hdr(f->qp, SEND_ONLY, FIX_RQ_PSN + i);

	fix_post_recv(test, &f->qp->rq.wq, f->mr, 0, 100);
	h.caps = HERE;
	h.ackreq = true;
	fix_deliver(test, h, 10);
}

/* Let the consumer reply @age units of the clock after the SEND. */
static void reply(struct kunit *test, u32 age)
{
	struct qp_fixture *f = test->priv;

	now += age;
	fix_post_send(test, f->qp, f->mr, 0, 10, 0);
	/* keep the congestion window large, so that it delays no reply */
	f->qp->sq.window.cwnd = NHCA_CWND_MAX;
}

/* Set the timer to a time long after the end of the test. */
static void hold_timer(struct kunit *test)
{
	struct qp_fixture *f = test->priv;

	mod_timer(&f->qp->piggyback->timer, jiffies + 1000 * HZ);
}

/*
 * Expect that the driver has set the timer since hold_timer().  The timer may have expired since
 * then, so compare its time, and do not ask whether it is pending.
 */
static void expect_timer_set(struct kunit *test)
{
	struct qp_fixture *f = test->priv;

	KUNIT_EXPECT_TRUE(test, time_before(f->qp->piggyback->timer.expires, jiffies + HZ));
}

/*
 * Set a long round-trip time: a reply then counts as quick until NHCA_PIGGYBACK_RTT_MAX units of
 * the clock after the SEND.
 */
static int piggyback_init(struct kunit *test)
{
	int err = qp_fixture_init(test);
	struct qp_fixture *f = test->priv;

	if (err)
		return err;
	/* the clock wraps within most tests */
	now = -500;
	kunit_activate_static_stub(test, nhca_piggyback_clock, fake_clock);
	f->qp->sq.rtx->rtt = 10000 << 3;
	hold_timer(test);
	return 0;
}

static void expire(struct kunit *test)
{
	struct qp_fixture *f = test->priv;

	local_bh_disable();
	nhca_piggyback_timer(&f->qp->piggyback->timer);
	local_bh_enable();
}

/* Reply to SENDs until an ACK waits. Return: number of the next SEND. */
static u32 until_waits(struct kunit *test)
{
	struct qp_fixture *f = test->priv;
	u32 i;

	for (i = 0; i < NEEDED; i++) {
		receive(test, i);
		KUNIT_EXPECT_EQ(test, fix_sent(f, ACK, NULL), i + 1);
		reply(test, 100);
	}
	KUNIT_EXPECT_EQ(test, f->qp->piggyback->quick, NEEDED);
	receive(test, i);
	KUNIT_EXPECT_EQ(test, fix_sent(f, ACK, NULL), NEEDED);
	KUNIT_EXPECT_NE(test, atomic_read(&f->qp->piggyback->pending), 0);
	return i + 1;
}

static void carried_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;
	struct sent sent;
	u32 next = until_waits(test);

	reply(test, 100);
	fix_sent(f, SEND_ONLY, &sent);
	KUNIT_EXPECT_TRUE(test, sent.hdr.caps & NHCA_CAP_ACKS);
	KUNIT_EXPECT_EQ(test, sent.hdr.acks, FIX_RQ_PSN + next - 1);
	KUNIT_EXPECT_EQ(test, fix_count(f, NHCA_CNT_ACKS_PIGGYBACKED), 1);
	KUNIT_EXPECT_EQ(test, atomic_read(&f->qp->piggyback->pending), 0);
	/* the next request carries no ACK */
	reply(test, 100);
	fix_sent(f, SEND_ONLY, &sent);
	KUNIT_EXPECT_FALSE(test, sent.hdr.caps & NHCA_CAP_ACKS);
	expire(test);
	KUNIT_EXPECT_EQ(test, fix_sent(f, ACK, NULL), NEEDED);
}

/*
 * If no reply comes, the timer sends the ACK. The next ACK waits only after twice as many quick
 * replies.
 */
static void missing_reply_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;
	u32 next = until_waits(test);
	struct sent sent;

	/* the timer expires too early, so it sends nothing, and is set again */
	now += 2000;
	expire(test);
	KUNIT_EXPECT_EQ(test, fix_sent(f, ACK, NULL), NEEDED);
	expect_timer_set(test);
	hold_timer(test);
	now += 2;
	expire(test);
	KUNIT_ASSERT_EQ(test, fix_sent(f, ACK, &sent), NEEDED + 1);
	KUNIT_EXPECT_EQ(test, sent.hdr.psn, FIX_RQ_PSN + next - 1);
	KUNIT_EXPECT_EQ(test, f->qp->piggyback->quick, 0);
	KUNIT_EXPECT_EQ(test, f->qp->piggyback->needed, 2 * NEEDED);
	receive(test, next);
	KUNIT_EXPECT_EQ(test, fix_sent(f, ACK, NULL), NEEDED + 2);
}

/* A late reply ends the series of quick replies. */
static void late_reply_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;
	u32 i;

	for (i = 0; i < 5; i++) {
		receive(test, i);
		reply(test, 100);
	}
	receive(test, i);
	reply(test, 5000);
	KUNIT_EXPECT_EQ(test, f->qp->piggyback->quick, 0);
	KUNIT_EXPECT_EQ(test, f->qp->piggyback->needed, NEEDED);
	/*
	 * a request of the peer that follows long after an unanswered request ends the series too
	 */
	receive(test, i + 1);
	f->qp->piggyback->quick = 5;
	now += 5000;
	receive(test, i + 2);
	KUNIT_EXPECT_EQ(test, f->qp->piggyback->quick, 0);
}

/* If the packet that carries the ACK cannot be sent, the next packet of a request carries it. */
static void unsent_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;
	u32 next = until_waits(test);
	struct sent sent;

	timer_delete(&f->qp->piggyback->timer);
	f->fail_at = 1;
	reply(test, 100);
	KUNIT_EXPECT_NE(test, atomic_read(&f->qp->piggyback->pending), 0);
	expect_timer_set(test);
	nhca_send_doorbell(f->qp);
	fix_sent(f, SEND_ONLY, &sent);
	KUNIT_EXPECT_TRUE(test, sent.hdr.caps & NHCA_CAP_ACKS);
	KUNIT_EXPECT_EQ(test, sent.hdr.acks, FIX_RQ_PSN + next - 1);
}

/*
 * A waiting ACK is dropped when another ACK that covers it is sent. This other ACK acknowledges a
 * duplicate, or is due because a waiting ACK may cover at most 16 PSNs.
 */
static void replaced_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;
	u32 i, next = until_waits(test);
	struct nhca_hdr h = fix_hdr(f->qp, SEND_ONLY, FIX_RQ_PSN);

	/* a duplicate is acknowledged immediately */
	fix_deliver(test, h, 10);
	KUNIT_EXPECT_EQ(test, fix_sent(f, ACK, NULL), NEEDED + 1);
	KUNIT_EXPECT_EQ(test, atomic_read(&f->qp->piggyback->pending), 0);
	for (i = 0; i < 17; i++) {
		f->qp->piggyback->quick = NEEDED;
		receive(test, next + i);
	}
	KUNIT_EXPECT_EQ(test, fix_sent(f, ACK, NULL), NEEDED + 2);
	KUNIT_EXPECT_EQ(test, atomic_read(&f->qp->piggyback->pending), 0);
}

/* After many quick replies, fewer quick replies are required before an ACK waits. */
static void needed_halved_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;

	f->qp->piggyback->needed = 4 * NEEDED;
	f->qp->piggyback->good = 255;
	receive(test, 0);
	reply(test, 100);
	KUNIT_EXPECT_EQ(test, f->qp->piggyback->needed, 2 * NEEDED);
	KUNIT_EXPECT_EQ(test, f->qp->piggyback->good, 0);
}

/* A request of the peer that carries an ACK completes the requests that the ACK covers. */
static void carrier_test(struct kunit *test)
{
	struct qp_fixture *f = test->priv;
	struct nhca_hdr h = fix_hdr(f->qp, SEND_ONLY, FIX_RQ_PSN);
	struct nhca_cqe cqe;
	u32 i;

	for (i = 0; i < 3; i++)
		fix_post_send(test, f->qp, f->mr, 0, 10, IB_SEND_SIGNALED);
	fix_post_recv(test, &f->qp->rq.wq, f->mr, 0, 100);
	h.caps = HERE | NHCA_CAP_NO_ICRC | NHCA_CAP_ACKS;
	h.acks = FIX_SQ_PSN + 1;
	fix_deliver(test, h, 10);
	KUNIT_EXPECT_EQ(test, f->qp->sq.una, FIX_SQ_PSN + 2);
	for (i = 0; i < 3; i++)
		KUNIT_EXPECT_TRUE(test, fix_poll(f->cq, &cqe));
	KUNIT_EXPECT_FALSE(test, fix_poll(f->cq, &cqe));
}

static struct kunit_case piggyback_cases[] = {
	KUNIT_CASE(carried_test),
	KUNIT_CASE(missing_reply_test),
	KUNIT_CASE(late_reply_test),
	KUNIT_CASE(unsent_test),
	KUNIT_CASE(replaced_test),
	KUNIT_CASE(needed_halved_test),
	KUNIT_CASE(carrier_test),
	{}
};

static struct kunit_suite piggyback_suite = {
	.name = "nhca_piggyback",
	.init = piggyback_init,
	.exit = qp_fixture_exit,
	.test_cases = piggyback_cases,
};

kunit_test_suite(piggyback_suite);
