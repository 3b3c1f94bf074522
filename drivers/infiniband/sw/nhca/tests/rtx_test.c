// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit: the congestion window, and when a requester retransmits. No case waits, because the
 * functions get all times as arguments.
 */
#include <kunit/test.h>
#include <linux/kernel.h>
#include <linux/jiffies.h>

#include "../transport/rtx.h"
#include "../transport/window.h"

/* a time shortly before jiffies wrap */
#define NOW	((unsigned long)-5)

/* ---- the window ---- */

static void window_table_test(struct kunit *test)
{
	static const struct {
		struct nhca_window before;
		/*
		 * PSNs acknowledged; 0: a loss; -1: a loss with a timeout (@stalled of
		 * nhca_window_shrink())
		 */
		int acked;
		struct nhca_window after;
	} steps[] = {
		/*
		 * slow start: the window grows by the number of acknowledged PSNs, even beyond
		 * ssthresh in one step, up to NHCA_CWND_MAX
		 */
		{ { 16, 256, 0 }, 16, { 32, 256, 0 } },
		{ { 100, 101, 0 }, 5, { 105, 101, 0 } },
		{ { 250, 256, 0 }, 100, { 256, 256, 0 } },
		/*
		 * beyond ssthresh the window grows by one for each whole window of acknowledged
		 * PSNs, up to NHCA_CWND_MAX
		 */
		{ { 100, 100, 0 }, 99, { 100, 100, 99 } },
		{ { 100, 100, 99 }, 1, { 101, 100, 0 } },
		{ { 256, 100, 255 }, 1, { 256, 100, 0 } },
		/*
		 * a loss leaves seven tenths of the window, but at least four PSNs; a loss with a
		 * timeout leaves four PSNs
		 */
		{ { 100, 256, 7 }, 0, { 70, 70, 0 } },
		{ { 5, 256, 0 }, 0, { 4, 4, 0 } },
		{ { 4, 4, 1 }, 0, { 4, 4, 0 } },
		{ { 100, 256, 7 }, -1, { 4, 70, 0 } },
	};
	struct nhca_window w;
	int i;

	nhca_window_init(&w);
	KUNIT_EXPECT_EQ(test, w.cwnd, NHCA_CWND_FIRST);
	KUNIT_EXPECT_EQ(test, w.ssthresh, NHCA_CWND_MAX);
	for (i = 0; i < ARRAY_SIZE(steps); i++) {
		w = steps[i].before;
		if (steps[i].acked > 0)
			nhca_window_grow(&w, steps[i].acked);
		else
			nhca_window_shrink(&w, steps[i].acked < 0);
		KUNIT_EXPECT_EQ_MSG(test, w.cwnd, steps[i].after.cwnd, "step %d", i);
		KUNIT_EXPECT_EQ_MSG(test, w.ssthresh, steps[i].after.ssthresh, "step %d", i);
		KUNIT_EXPECT_EQ_MSG(test, w.grown, steps[i].after.grown, "step %d", i);
	}
}

static void window_room_test(struct kunit *test)
{
	struct nhca_window w = { .cwnd = 16 };

	KUNIT_EXPECT_EQ(test, nhca_window_room(&w, 0), 16);
	KUNIT_EXPECT_EQ(test, nhca_window_room(&w, 15), 1);
	KUNIT_EXPECT_EQ(test, nhca_window_room(&w, 16), 0);
	/*
	 * the window has become smaller than the number of outstanding packets, so no packet may be
	 * sent
	 */
	KUNIT_EXPECT_EQ(test, nhca_window_room(&w, 100), 0);
}

/* ---- round trips and timeouts ---- */

static void rtt_test(struct kunit *test)
{
	struct nhca_rtx rtx = { .timeout = 1000 * HZ };

	nhca_rtx_init(&rtx, NOW);
	KUNIT_EXPECT_FALSE(test, nhca_rtx_rtt_ends(&rtx, 0x11));
	nhca_rtx_rtt_begin(&rtx, 0xffffff, 1000);
	KUNIT_EXPECT_FALSE(test, nhca_rtx_rtt_ends(&rtx, 0xffffff));
	KUNIT_EXPECT_TRUE(test, nhca_rtx_rtt_ends(&rtx, 0));
	/*
	 * RFC 6298: the first sample becomes the round trip time, and half the sample the deviation
	 */
	nhca_rtx_rtt_end(&rtx, 1000 + 80 * NSEC_PER_MSEC);
	KUNIT_EXPECT_EQ(test, rtx.rtt >> 3, 80000);
	KUNIT_EXPECT_EQ(test, rtx.rtt_dev >> 2, 40000);
	KUNIT_EXPECT_EQ(test, rtx.rto, usecs_to_jiffies(240000));
	KUNIT_EXPECT_FALSE(test, nhca_rtx_rtt_ends(&rtx, 0));
	/*
	 * with a later sample, the round trip time moves by one eighth of the difference to the
	 * sample, and the deviation is 3/4 of the old deviation plus 1/4 of this difference
	 */
	nhca_rtx_rtt_begin(&rtx, 0, 1);
	nhca_rtx_rtt_end(&rtx, 1 + 160 * NSEC_PER_MSEC);
	KUNIT_EXPECT_EQ(test, rtx.rtt >> 3, 90000);
	KUNIT_EXPECT_EQ(test, rtx.rtt_dev >> 2, 50000);
	/*
	 * samples are at least a microsecond and at most a second; the timeout is at least
	 * NHCA_TLP_MIN
	 */
	nhca_rtx_init(&rtx, NOW);
	nhca_rtx_rtt_begin(&rtx, 0, 1000);
	nhca_rtx_rtt_end(&rtx, 1001);
	KUNIT_EXPECT_EQ(test, rtx.rtt >> 3, 1);
	KUNIT_EXPECT_EQ(test, rtx.rto, NHCA_TLP_MIN);
	nhca_rtx_init(&rtx, NOW);
	nhca_rtx_rtt_begin(&rtx, 0, 1);
	nhca_rtx_rtt_end(&rtx, 3600ULL * NSEC_PER_SEC);
	KUNIT_EXPECT_EQ(test, rtx.rtt >> 3, USEC_PER_SEC);
}

static void deadline_test(struct kunit *test)
{
	static const struct {
		unsigned long timeout, rto;
		/* jiffies from the start of the try to the last probe */
		unsigned long probed;
		u8 backoff, probes;
		/* jiffies from the start of the try */
		unsigned long expect;
	} rows[] = {
		/*
		 * no round trip was measured, so only the local ACK timeout of 50 jiffies counts;
		 * it doubles with each backoff
		 */
		{ 50, 0, 0, 0, 0, 51 },
		{ 50, 0, 0, 1, 0, 101 },
		/* a try lasts at most three local ACK timeouts, because nhca_max_backoff is 3 */
		{ 50, 0, 0, 2, 0, 151 },
		{ 50, 0, 0, 5, 0, 151 },
		/*
		 * the retransmission timeout (rto) doubles with each probe, but the try ends after
		 * the local ACK timeout
		 */
		{ 500, 10, 0, 0, 0, 11 },
		{ 500, 10, 11, 0, 1, 32 },
		{ 500, 10, 32, 0, 2, 73 },
		{ 30, 10, 11, 0, 1, 31 },
		{ 30, 10, 11, 1, 1, 32 },
		{ 30, 10, 32, 1, 2, 61 },
		/* no probe is left, so the next deadline is the end of the try */
		{ 500, 10, 73, 0, NHCA_TLP_MAX, 501 },
		{ 500, 10, 0, 2, NHCA_TLP_MAX, 1501 },
	};
	struct nhca_rtx rtx;
	unsigned long end;
	int i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		rtx = (struct nhca_rtx) {
			.timeout = rows[i].timeout,
			.rto = rows[i].rto,
			.rto_backoff = rows[i].backoff,
			.tlp_count = rows[i].probes,
			.try_since = NOW,
			.since = NOW + rows[i].probed,
		};
		end = NOW + rows[i].expect;
		KUNIT_EXPECT_EQ_MSG(test, nhca_rtx_deadline(&rtx), end, "entry %d", i);
		KUNIT_EXPECT_TRUE(test, nhca_rtx_is_early(&rtx, end - 1));
		KUNIT_EXPECT_FALSE(test, nhca_rtx_is_early(&rtx, end));
	}
	rtx = (struct nhca_rtx) { .timeout = 30, .try_since = NOW - 20, .since = NOW - 10 };
	/* after a probe, the oldest packet is retransmitted in the same try */
	KUNIT_EXPECT_EQ(test, nhca_rtx_restart(&rtx, NOW), NOW + 11);
	KUNIT_EXPECT_EQ(test, rtx.since, NOW);
	KUNIT_EXPECT_EQ(test, rtx.try_since, NOW - 20);
	rtx.since = rtx.try_since;
	KUNIT_EXPECT_EQ(test, nhca_rtx_restart(&rtx, NOW), NOW + 31);
	KUNIT_EXPECT_EQ(test, rtx.since, NOW);
	KUNIT_EXPECT_EQ(test, rtx.try_since, NOW);
}

/* ---- what happens when the timer expires ---- */

static void expire_table_test(struct kunit *test)
{
	static const struct {
		struct nhca_rtx before;
		unsigned long now;
		enum nhca_rtx_held held;
		bool ackreq;
		enum nhca_rtx_step step;
		u8 waits, probes, retries, backoff;
	} rows[] = {
		{ { .timeout = 9 }, NOW + 9, NHCA_RTX_HELD_NOT, true, NHCA_RTX_EARLY },
		{ { .timeout = 9, .retries = 1 }, NOW + 10, NHCA_RTX_HELD_WAIT, true,
		  NHCA_RTX_POSTPONE, 0, 0, 1, 0 },
		/*
		 * the number of postponements is limited for a packet in the network stack, which
		 * may hold the packet forever, but not for NHCA_RTX_HELD_WAIT
		 */
		{ { .timeout = 9, .retries = 1 }, NOW + 10, NHCA_RTX_HELD_STACK, true,
		  NHCA_RTX_POSTPONE, 1, 0, 1, 0 },
		{ { .timeout = 9, .retries = 1, .waits = NHCA_WAITS_MAX }, NOW + 10,
		  NHCA_RTX_HELD_STACK, false, NHCA_RTX_RETRANSMIT, NHCA_WAITS_MAX, 0, 0, 1 },
		{ { .timeout = 9, .retries = 1, .waits = NHCA_WAITS_MAX }, NOW + 10,
		  NHCA_RTX_HELD_WAIT, false, NHCA_RTX_POSTPONE, NHCA_WAITS_MAX, 0, 1, 0 },
		{ { .timeout = 9, .retries = 1 }, NOW + 10, NHCA_RTX_HELD_NOT, true,
		  NHCA_RTX_ACKREQ, 0, 0, 1, 0 },
		/* a probe uses no retry, so that a probe is sent although no retry is left */
		{ { .timeout = 9, .rto = 3 }, NOW + 4, NHCA_RTX_HELD_NOT, false,
		  NHCA_RTX_PROBE, 0, 1, 0, 0 },
		/*
		 * after the local ACK timeout the packets are retransmitted, although a probe is
		 * left
		 */
		{ { .timeout = 9, .rto = 3, .retries = 1 }, NOW + 10, NHCA_RTX_HELD_NOT, false,
		  NHCA_RTX_RETRANSMIT, 0, 0, 0, 1 },
		{ { .timeout = 9, .rto = 3, .retries = 1, .tlp_count = NHCA_TLP_MAX }, NOW + 10,
		  NHCA_RTX_HELD_NOT, false, NHCA_RTX_RETRANSMIT, 0, NHCA_TLP_MAX, 0, 1 },
		{ { .timeout = 1, .retries = 7, .rto_backoff = 2 }, NOW + 4,
		  NHCA_RTX_HELD_NOT, false, NHCA_RTX_RETRANSMIT, 0, 0, 6, 2 },
		{ { .timeout = 9 }, NOW + 10, NHCA_RTX_HELD_NOT, false, NHCA_RTX_GIVE_UP },
	};
	struct nhca_rtx rtx;
	bool restarts;
	int i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		rtx = rows[i].before;
		nhca_rtx_begin(&rtx, NOW);
		rtx.acks_since_rto = 3;
		KUNIT_EXPECT_EQ_MSG(test, nhca_rtx_expire(&rtx, rows[i].now, rows[i].held,
							  rows[i].ackreq),
				    rows[i].step, "entry %d", i);
		KUNIT_EXPECT_EQ_MSG(test, rtx.waits, rows[i].waits, "entry %d", i);
		KUNIT_EXPECT_EQ_MSG(test, rtx.tlp_count, rows[i].probes, "entry %d", i);
		KUNIT_EXPECT_EQ_MSG(test, rtx.retries, rows[i].retries, "entry %d", i);
		KUNIT_EXPECT_EQ_MSG(test, rtx.rto_backoff, rows[i].backoff, "entry %d", i);
		restarts = rows[i].step == NHCA_RTX_POSTPONE || rows[i].step == NHCA_RTX_PROBE ||
			   rows[i].step == NHCA_RTX_RETRANSMIT;
		KUNIT_EXPECT_EQ_MSG(test, rtx.since, restarts ? rows[i].now : NOW, "entry %d", i);
		restarts &= rows[i].step != NHCA_RTX_PROBE;
		KUNIT_EXPECT_EQ_MSG(test, rtx.try_since, restarts ? rows[i].now : NOW, "entry %d",
				    i);
		KUNIT_EXPECT_EQ_MSG(test, rtx.acks_since_rto,
				    rows[i].step == NHCA_RTX_RETRANSMIT ? 0 : 3, "entry %d", i);
	}
}

/*
 * Let timers expire without a response of the peer until the step is NHCA_RTX_GIVE_UP. After each
 * expiry, the requester retransmits the oldest packet at once.
 * @steps: counts the steps of each kind
 * @late:  each timer expires late by an eighth, as a timer of the kernel may
 * Return: jiffies from NOW until the step NHCA_RTX_GIVE_UP.
 */
static unsigned long give_up(struct nhca_rtx *rtx, u32 steps[NHCA_RTX_GIVE_UP + 1], bool late)
{
	unsigned long now = NOW, wait;
	enum nhca_rtx_step step;
	int i;

	nhca_rtx_begin(rtx, NOW);
	for (i = 0; i < 100; i++) {
		wait = nhca_rtx_deadline(rtx) - now;
		now += wait + (late ? wait / 8 : 0);
		step = nhca_rtx_expire(rtx, now, NHCA_RTX_HELD_NOT, false);
		steps[step]++;
		if (step == NHCA_RTX_GIVE_UP)
			break;
		nhca_rtx_restart(rtx, now);
	}
	return now - NOW;
}

/*
 * A peer that does not answer gets NHCA_TLP_MAX probes within the first try, and then as many
 * retransmissions as there are retries.
 */
static void dead_peer_test(struct kunit *test)
{
	struct nhca_rtx rtx = { .timeout = 100, .rto = 10, .retries = 7 };
	u32 n[NHCA_RTX_GIVE_UP + 1] = {};

	KUNIT_EXPECT_EQ(test, give_up(&rtx, n, false), 101 + 201 + 6 * 301);
	KUNIT_EXPECT_EQ(test, n[NHCA_RTX_PROBE], NHCA_TLP_MAX);
	KUNIT_EXPECT_EQ(test, n[NHCA_RTX_RETRANSMIT], 7);
	KUNIT_EXPECT_EQ(test, n[NHCA_RTX_GIVE_UP], 1);
}

/*
 * On average, a try takes at most four local ACK timeouts (IBTA 9.7.6.1.3), whatever round trip
 * time was measured before.
 */
static void bound_test(struct kunit *test)
{
	static const unsigned long timeouts[] = { 20, 68, 537, 4295 };
	static const unsigned long rtos[] = { 0, 10, 30, 1000, 9999 };
	u32 i, j, backoff, retries, n[NHCA_RTX_GIVE_UP + 1] = {};
	struct nhca_rtx rtx;

	for (i = 0; i < ARRAY_SIZE(timeouts); i++) {
		for (j = 0; j < ARRAY_SIZE(rtos); j++) {
			for (backoff = 0; backoff <= 2; backoff++) {
				for (retries = 0; retries <= 7; retries++) {
					rtx = (struct nhca_rtx) {
						.timeout = timeouts[i],
						.rto = rtos[j],
						.rto_backoff = backoff,
						.retries = retries,
					};
					KUNIT_EXPECT_LE(test, give_up(&rtx, n, true),
							4 * timeouts[i] * (retries + 1));
				}
			}
		}
	}
}

/* A new value of the module parameter max_backoff applies from the next timeout on. */
static void max_backoff_test(struct kunit *test)
{
	struct nhca_rtx rtx = { .timeout = 100, .retries = 7 };
	u32 n[NHCA_RTX_GIVE_UP + 1] = {};
	unsigned int usual = nhca_max_backoff;

	WRITE_ONCE(nhca_max_backoff, 32);
	KUNIT_EXPECT_EQ(test, give_up(&rtx, n, false), 101 + 201 + 401 + 801 + 1601 + 3 * 3201);
	KUNIT_EXPECT_EQ(test, rtx.rto_backoff, 5);
	/* rto_backoff is still 5, but max_backoff limits each try to one local ACK timeout */
	WRITE_ONCE(nhca_max_backoff, 1);
	rtx.retries = 7;
	KUNIT_EXPECT_EQ(test, give_up(&rtx, n, false), 8 * 101);
	WRITE_ONCE(nhca_max_backoff, usual);
}

static void progress_test(struct kunit *test)
{
	struct nhca_rtx rtx = { .timeout = 9, .rto_backoff = 2, .waits = 3, .tlp_count = 2 };
	int i;

	nhca_rtx_progress(&rtx, NOW, 5);
	KUNIT_EXPECT_EQ(test, rtx.waits, 0);
	KUNIT_EXPECT_EQ(test, rtx.tlp_count, 0);
	KUNIT_EXPECT_EQ(test, rtx.retries, 5);
	KUNIT_EXPECT_EQ(test, rtx.since, NOW);
	KUNIT_EXPECT_EQ(test, rtx.try_since, NOW);
	/*
	 * rto_backoff decreases by one after NHCA_RTO_CALM_ACKS acknowledgments without a timeout
	 */
	for (i = 1; i < NHCA_RTO_CALM_ACKS; i++) {
		KUNIT_EXPECT_EQ(test, rtx.rto_backoff, 2);
		nhca_rtx_progress(&rtx, NOW, 5);
	}
	KUNIT_EXPECT_EQ(test, rtx.rto_backoff, 1);
	for (i = 0; i < NHCA_RTO_CALM_ACKS; i++)
		nhca_rtx_progress(&rtx, NOW, 5);
	KUNIT_EXPECT_EQ(test, rtx.rto_backoff, 0);
	KUNIT_EXPECT_TRUE(test, nhca_rtx_retry(&rtx));
	KUNIT_EXPECT_EQ(test, rtx.retries, 4);
	rtx.retries = 0;
	KUNIT_EXPECT_FALSE(test, nhca_rtx_retry(&rtx));
	KUNIT_EXPECT_EQ(test, rtx.retries, 0);
}

/*
 * Within one retransmission timeout (at least two jiffies), only the first CNP reduces the window.
 */
static void cnp_test(struct kunit *test)
{
	struct nhca_rtx rtx = {};

	nhca_rtx_init(&rtx, NOW);
	KUNIT_EXPECT_TRUE(test, nhca_rtx_congested(&rtx, NOW));
	KUNIT_EXPECT_FALSE(test, nhca_rtx_congested(&rtx, NOW + 1));
	KUNIT_EXPECT_TRUE(test, nhca_rtx_congested(&rtx, NOW + 2));
	rtx.rto = 10;
	KUNIT_EXPECT_FALSE(test, nhca_rtx_congested(&rtx, NOW + 11));
	KUNIT_EXPECT_TRUE(test, nhca_rtx_congested(&rtx, NOW + 12));
}

static struct kunit_case rtx_cases[] = {
	KUNIT_CASE(window_table_test),
	KUNIT_CASE(window_room_test),
	KUNIT_CASE(rtt_test),
	KUNIT_CASE(deadline_test),
	KUNIT_CASE(expire_table_test),
	KUNIT_CASE(dead_peer_test),
	KUNIT_CASE(bound_test),
	KUNIT_CASE(max_backoff_test),
	KUNIT_CASE(progress_test),
	KUNIT_CASE(cnp_test),
	{}
};

static struct kunit_suite rtx_suite = {
	.name = "nhca_rtx",
	.test_cases = rtx_cases,
};

kunit_test_suite(rtx_suite);
