// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit: arming of CQs: the state table of queue/arm.c without a CQ; then events of CQs that are
 * armed by commands and in the ring, moderation, overflow and moves to another ring.
 */
#include <kunit/test.h>
#include <linux/delay.h>
#include <linux/slab.h>

#include "cq_fixture.h"

/* ---- the state table ---- */

/* States, as in the table in arm.c: i IDLE, s SOL, n NEXT, S SOL_DUE, N NEXT_DUE, x STOPPED */
static const char states[] = "isnSNx";

/* Letters of enum nhca_arm_todo: nothing, raise, timer, bottom half */
static const char todos[] = "-!tb";

/*
 * Inputs of the state table. @unpolled: kinds of the unpolled entries in the ring. @moderated:
 * moderation defers the event of a plain completion.
 */
static const struct {
	enum { COMPLETION, REQUEST, LATE, UNMODERATE } what;
	u8 kind;
	u8 unpolled;
	bool moderated;
} events[] = {
	{ COMPLETION, IB_CQ_NEXT_COMP, IB_CQ_NEXT_COMP, false },
	{ COMPLETION, IB_CQ_SOLICITED_MASK, IB_CQ_SOLICITED_MASK, false },
	{ COMPLETION, IB_CQ_NEXT_COMP, IB_CQ_NEXT_COMP, true },
	{ COMPLETION, IB_CQ_SOLICITED_MASK, IB_CQ_SOLICITED_MASK, true },
	{ REQUEST, IB_CQ_SOLICITED, 0, false },
	{ REQUEST, IB_CQ_NEXT_COMP, 0, false },
	{ REQUEST, IB_CQ_SOLICITED, IB_CQ_NEXT_COMP, false },
	{ REQUEST, IB_CQ_NEXT_COMP, IB_CQ_NEXT_COMP, false },
	{ REQUEST, IB_CQ_SOLICITED, IB_CQ_SOLICITED_MASK, false },
	{ REQUEST, IB_CQ_NEXT_COMP, IB_CQ_SOLICITED_MASK, false },
	{ REQUEST, IB_CQ_NEXT_COMP, IB_CQ_NEXT_COMP, true },
	{ REQUEST, IB_CQ_NEXT_COMP, IB_CQ_SOLICITED_MASK, true },
	{ LATE, 0, 0, true },
	{ LATE, 0, IB_CQ_NEXT_COMP, true },
	{ UNMODERATE, 0, IB_CQ_NEXT_COMP, true },
};

/*
 * for each state: the next state (a letter of states[]) and the work (a letter of todos[]) after
 * each entry of events[]; "": this kind of CQ does not have the state
 */
static const char * const table[][sizeof(states) - 1] = {
	{	/* user CQs */
		"i- i- i- i- s- n- s- i! i! i! Nt i! i- i- i-",
		"s- i! s- i! s- n- s- i! i! i! Nt i! s- s- s-",
		"i! i! Nt i! n- n- i! i! i! i! Nt i! n- n- n-",
		"",
		"i! i! Nt i! n- n- i! i! i! i! Nt i! i! i! i!",
		"x- x- x- x- x- x- x- x- x- x- x- x- x- x- x-",
	}, {	/* kernel consumers */
		"i- i- i- i- s- n- s- n- s- n- n- n- i- i- i-",
		"s- Sb s- Sb s- n- s- n- s- n- n- n- s- s- s-",
		"Nb Nb Nt Nb n- n- n- n- n- n- n- n- n- n- n-",
		"S- Sb S- Sb s- n- S- N- S- N- N- N- s- i! Sb",
		"Nb Nb Nt Nb n- n- N- N- N- N- N- N- n- i! Nb",
		"x- x- x- x- x- x- x- x- x- x- x- x- x- x- x-",
	},
};

static char arm_state(const struct nhca_arm *arm, u32 seq)
{
	u8 kinds = nhca_arm_kinds(arm, seq);

	if (arm->stopped)
		return 'x';
	if (!kinds)
		return 'i';
	if (kinds & IB_CQ_NEXT_COMP)
		return arm->deferred & kinds ? 'N' : 'n';
	return arm->deferred & kinds ? 'S' : 's';
}

/*
 * Bring @arm and @ring to a state. @in_ring: the consumer arms in the ring, and an earlier value of
 * arm_seq is acknowledged.
 */
static void arm_set(struct nhca_arm *arm, struct nhca_arm_ring *ring, char state, bool user,
		    bool in_ring)
{
	u8 kind = state == 'i' ? 0 : state == 's' || state == 'S' ? IB_CQ_SOLICITED :
		  IB_CQ_NEXT_COMP;

	*ring = (struct nhca_arm_ring) { .prod = 2, .cons = 2 };
	nhca_arm_init(arm, user, 2);
	if (in_ring) {
		arm->seq_acked = 4 | NHCA_ARM_NEXT_COMP;
		ring->seq = kind ? 8 | kind : arm->seq_acked;
	} else {
		arm->armed = kind;
	}
	if (state == 'S')
		arm->deferred = IB_CQ_SOLICITED_MASK;
	if (state == 'N' || state == 'x')
		arm->deferred = IB_CQ_NEXT_COMP;
	if (state == 'x')
		nhca_arm_stop(arm);
}

/* The consumer requests an event: by the command, and also in the ring if it arms there. */
static enum nhca_arm_todo arm_ask(struct nhca_arm *arm, struct nhca_arm_ring *ring, u8 kind)
{
	u32 seq = ring->seq;

	if (seq && (seq == arm->seq_acked || (seq & NHCA_ARM_MASK) < kind))
		ring->seq = ((seq | NHCA_ARM_MASK) + 1) | kind;
	return nhca_arm_request(arm, *ring, kind);
}

static enum nhca_arm_todo arm_happen(struct nhca_arm *arm, struct nhca_arm_ring *ring, int event)
{
	u8 kind = events[event].kind;

	ring->prod += !!events[event].unpolled;
	if (events[event].unpolled & IB_CQ_SOLICITED)
		arm->solicited = ring->prod;
	if (events[event].moderated)
		arm->period_us = 1;
	switch (events[event].what) {
	case COMPLETION:
		return nhca_arm_completion(arm, *ring, kind);
	case REQUEST:
		return arm_ask(arm, ring, kind);
	case LATE:
		return nhca_arm_late(arm, *ring);
	case UNMODERATE:
		return nhca_arm_moderate(arm, *ring, 1, 1);
	}
	return NHCA_ARM_NOTHING;
}

/* For each state and each event, compare the next state and the work with the table. */
static void arm_table_check(struct kunit *test, bool user, bool in_ring)
{
	struct nhca_arm_ring ring;
	enum nhca_arm_todo todo;
	struct nhca_arm arm;
	const char *row;
	int s, e;

	for (s = 0; s < sizeof(states) - 1; s++) {
		row = table[!user][s];
		for (e = 0; *row && e < ARRAY_SIZE(events); e++) {
			arm_set(&arm, &ring, states[s], user, in_ring);
			todo = arm_happen(&arm, &ring, e);
			KUNIT_EXPECT_EQ_MSG(test, arm_state(&arm, ring.seq), row[3 * e],
					    "state %c, event %d", states[s], e);
			KUNIT_EXPECT_EQ_MSG(test, todos[todo], row[3 * e + 1],
					    "state %c, event %d", states[s], e);
			if (todo != NHCA_ARM_RAISE)
				continue;
			KUNIT_EXPECT_EQ(test, arm.armed | arm.deferred | arm.mod_count, 0);
			KUNIT_EXPECT_EQ(test, arm.seq_acked, ring.seq);
			KUNIT_EXPECT_EQ(test, arm.last_event_cons,
					events[e].unpolled ? ring.cons : ring.cons - 1);
		}
	}
}

static void arm_table_test(struct kunit *test)
{
	arm_table_check(test, true, false);
	arm_table_check(test, true, true);
	arm_table_check(test, false, false);
}

/*
 * With a count and a period, the event waits for the end of the period or for a number of
 * completions, whichever comes first. The number counts from the last event, or from a request that
 * found the ring empty.
 */
static void arm_count_test(struct kunit *test)
{
	struct nhca_arm_ring ring = { .prod = 9, .cons = 9 };
	struct nhca_arm arm;
	int i;

	nhca_arm_init(&arm, true, 9);
	KUNIT_EXPECT_EQ(test, nhca_arm_moderate(&arm, ring, 3, 100), NHCA_ARM_NOTHING);
	for (i = 0; i < 9; i++) {
		if (!(i % 3))
			nhca_arm_request(&arm, ring, IB_CQ_NEXT_COMP);
		ring.prod++;
		KUNIT_EXPECT_EQ_MSG(test, nhca_arm_completion(&arm, ring, IB_CQ_NEXT_COMP),
				    i % 3 < 2 ? NHCA_ARM_TIMER : NHCA_ARM_RAISE, "completion %d",
				    i);
		ring.cons++;
	}
	/*
	 * a new count also applies to an event that is already deferred: one completion is not
	 * enough for a count of 2, but for a count of 1
	 */
	nhca_arm_request(&arm, ring, IB_CQ_NEXT_COMP);
	ring.prod++;
	KUNIT_EXPECT_EQ(test, nhca_arm_completion(&arm, ring, IB_CQ_NEXT_COMP), NHCA_ARM_TIMER);
	KUNIT_EXPECT_EQ(test, nhca_arm_moderate(&arm, ring, 2, 200), NHCA_ARM_TIMER);
	KUNIT_EXPECT_EQ(test, arm.period_us, 200);
	KUNIT_EXPECT_EQ(test, nhca_arm_moderate(&arm, ring, 1, 200), NHCA_ARM_RAISE);
}

/*
 * nhca_arm_age() increases indices that are too old, so that they are not taken for current indices
 * after a wrap. Indices of entries in the ring do not change.
 */
static void arm_age_test(struct kunit *test)
{
	struct nhca_arm arm;

	nhca_arm_init(&arm, true, 1000);
	nhca_arm_age(&arm, 1064, 64);
	KUNIT_EXPECT_EQ(test, arm.last_event_cons, 999);
	KUNIT_EXPECT_EQ(test, arm.solicited, 1000);
	nhca_arm_age(&arm, 1000 + BIT(31) - 1, 64);
	KUNIT_EXPECT_EQ(test, arm.last_event_cons, 1000 + BIT(31) - 1 - 65);
	KUNIT_EXPECT_EQ(test, arm.solicited, 1000 + BIT(31) - 1 - 64);
}

/* ---- CQs ---- */

/* Each arming raises one event, for the requested kind; failed completions count as solicited. */
static void cq_arm_test(struct kunit *test)
{
	static const struct {
		u8 armed;
		enum ib_wc_status status;
		bool solicited;
		bool fires;
	} cases[] = {
		{ 0, IB_WC_SUCCESS, false, false },
		{ 0, IB_WC_SUCCESS, true, false },
		{ 0, IB_WC_WR_FLUSH_ERR, false, false },
		{ IB_CQ_NEXT_COMP, IB_WC_SUCCESS, false, true },
		{ IB_CQ_NEXT_COMP, IB_WC_SUCCESS, true, true },
		{ IB_CQ_SOLICITED, IB_WC_SUCCESS, false, false },
		{ IB_CQ_SOLICITED, IB_WC_SUCCESS, true, true },
		{ IB_CQ_SOLICITED, IB_WC_WR_FLUSH_ERR, false, true },
	};
	struct cq_fixture *f;
	int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		f = cq_make(test, 8, 0, false);
		f->cq.arm.armed = cases[i].armed;
		cq_post(f, 1, cases[i].status, cases[i].solicited, NULL);
		KUNIT_EXPECT_EQ_MSG(test, f->comp_events, cases[i].fires, "case %d", i);
		KUNIT_EXPECT_EQ_MSG(test, f->cq.arm.armed, cases[i].armed * !cases[i].fires,
				    "case %d", i);
		/* each arming raises one event */
		cq_post(f, 2, IB_WC_SUCCESS, true, NULL);
		cq_post(f, 3, IB_WC_SUCCESS, true, NULL);
		KUNIT_EXPECT_EQ_MSG(test, f->comp_events, !!cases[i].armed, "case %d", i);
		cq_done(f);
	}
}

/*
 * A consumer that polls first and arms afterwards by a command gets an event for entries that it
 * has not polled. Otherwise the consumer would sleep although completions are there.
 */
static void cq_arm_late_test(struct kunit *test)
{
	struct cq_fixture *f = cq_make(test, 8, 0xfffffffe, true);
	u32 *cons = &f->cq.ring.hdr->cons;

	cq_post(f, 1, 0, false, NULL);
	nhca_cq_arm(&f->cq, IB_CQ_SOLICITED);
	KUNIT_EXPECT_EQ(test, f->comp_events, 0);
	nhca_cq_arm(&f->cq, IB_CQ_NEXT_COMP);
	KUNIT_EXPECT_EQ(test, f->comp_events, 1);

	/* two more entries are unpolled, so each arming raises an event */
	cq_post(f, 2, 0, true, NULL);
	cq_post(f, 3, 0, false, NULL);
	KUNIT_EXPECT_EQ(test, f->comp_events, 1);
	nhca_cq_arm(&f->cq, IB_CQ_SOLICITED);
	KUNIT_EXPECT_EQ(test, f->comp_events, 2);
	nhca_cq_arm(&f->cq, IB_CQ_NEXT_COMP);
	KUNIT_EXPECT_EQ(test, f->comp_events, 3);

	/* a solicited entry that was polled raises no event */
	*cons += 2;
	nhca_cq_arm(&f->cq, IB_CQ_SOLICITED);
	KUNIT_EXPECT_EQ(test, f->comp_events, 3);
	cq_post(f, 4, IB_WC_WR_FLUSH_ERR, false, NULL);
	KUNIT_EXPECT_EQ(test, f->comp_events, 4);

	/* the CQ is empty, so arming raises no event */
	*cons += 2;
	nhca_cq_arm(&f->cq, IB_CQ_NEXT_COMP);
	KUNIT_EXPECT_EQ(test, f->comp_events, 4);
	cq_done(f);
}

/* Return: a CQ that its consumer arms in the ring. */
static struct cq_fixture *cq_make_arm_seq(struct kunit *test, u32 start)
{
	struct cq_fixture *f = cq_make(test, 64, start, true);

	f->cq.arm_in_ring = true;
	nhca_cq_enable_arm(&f->cq);
	KUNIT_EXPECT_EQ(test, f->cq.ring.hdr->flags, NHCA_RING_F_ARM_SEQ);
	KUNIT_EXPECT_EQ(test, f->cq.ring.hdr->last_event_cons, start - 1);
	return f;
}

/* A new value of arm_seq in the ring arms the CQ once, and the event acknowledges this value. */
static void cq_arm_seq_test(struct kunit *test)
{
	static const struct {
		u32 arm;
		bool solicited;
		bool fires;
	} cases[] = {
		{ 4 | NHCA_ARM_NEXT_COMP, false, true },
		{ 8 | NHCA_ARM_NEXT_COMP, true, true },
		/* the same value again does not arm the CQ */
		{ 8 | NHCA_ARM_NEXT_COMP, true, false },
		{ 12 | NHCA_ARM_SOLICITED, false, false },
		{ 16 | NHCA_ARM_SOLICITED, true, true },
		{ 16 | NHCA_ARM_NEXT_COMP, false, true },
		/* values of a hostile consumer affect only its own events */
		{ 20, true, false },
		{ 20 | NHCA_ARM_MASK, false, true },
		{ 0, true, false },
		{ U32_MAX, true, true },
		{ U32_MAX - 1, false, true },
	};
	struct cq_fixture *f = cq_make_arm_seq(test, 0xfffffff0);
	struct nhca_ring_hdr *hdr = f->cq.ring.hdr;
	unsigned int events = 0;
	int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		hdr->arm_seq = cases[i].arm;
		cq_post(f, i, 0, cases[i].solicited, NULL);
		events += cases[i].fires;
		KUNIT_EXPECT_EQ_MSG(test, f->comp_events, events, "case %d", i);
		KUNIT_EXPECT_EQ(test, hdr->arm_seq, cases[i].arm);
		if (!cases[i].fires)
			continue;
		KUNIT_EXPECT_EQ_MSG(test, hdr->arm_seq_acked, cases[i].arm, "case %d", i);
		KUNIT_EXPECT_EQ_MSG(test, hdr->last_event_cons, hdr->cons, "case %d", i);
		/* each arming raises one event */
		cq_post(f, i, 0, true, NULL);
		KUNIT_EXPECT_EQ_MSG(test, f->comp_events, events, "case %d", i);
		hdr->cons++;
	}
	cq_done(f);
}

/*
 * The command that a consumer sends after arming in the ring raises an event for unpolled entries
 * if the consumer has polled since the last event. It never raises a second event for the same
 * arming.
 */
static void cq_arm_seq_doorbell_test(struct kunit *test)
{
	struct cq_fixture *f = cq_make_arm_seq(test, 0xfffffff0);
	struct nhca_ring_hdr *hdr = f->cq.ring.hdr;

	/* the entry was posted before the consumer armed */
	cq_post(f, 1, 0, false, NULL);
	hdr->arm_seq = 4 | NHCA_ARM_NEXT_COMP;
	KUNIT_EXPECT_EQ(test, f->comp_events, 0);
	nhca_cq_arm(&f->cq, IB_CQ_NEXT_COMP);
	KUNIT_EXPECT_EQ(test, f->comp_events, 1);
	KUNIT_EXPECT_EQ(test, hdr->arm_seq_acked, 4 | NHCA_ARM_NEXT_COMP);

	/*
	 * no event: the consumer has not polled since the last event, so its next poll finds the
	 * two new entries too
	 */
	cq_post(f, 2, 0, false, NULL);
	cq_post(f, 3, 0, false, NULL);
	hdr->arm_seq = 8 | NHCA_ARM_NEXT_COMP;
	nhca_cq_arm(&f->cq, IB_CQ_NEXT_COMP);
	KUNIT_EXPECT_EQ(test, f->comp_events, 1);
	/*
	 * the consumer has polled and left entries unpolled, so the CQ raises an event, and another
	 * one after the next arming
	 */
	hdr->cons++;
	nhca_cq_arm(&f->cq, IB_CQ_NEXT_COMP);
	KUNIT_EXPECT_EQ(test, f->comp_events, 2);
	KUNIT_EXPECT_EQ(test, hdr->arm_seq_acked, 8 | NHCA_ARM_NEXT_COMP);
	hdr->cons++;
	hdr->arm_seq = 12 | NHCA_ARM_NEXT_COMP;
	nhca_cq_arm(&f->cq, IB_CQ_NEXT_COMP);
	KUNIT_EXPECT_EQ(test, f->comp_events, 3);

	/* no event: the last event has acknowledged the arming, so the CQ is not armed */
	nhca_cq_arm(&f->cq, IB_CQ_NEXT_COMP);
	hdr->cons = hdr->prod;
	cq_post(f, 4, 0, true, NULL);
	nhca_cq_arm(&f->cq, IB_CQ_NEXT_COMP);
	KUNIT_EXPECT_EQ(test, f->comp_events, 3);

	/* the kernel does not read back what it has published in the ring */
	hdr->arm_seq_acked = 0;
	hdr->last_event_cons = 0x1234;
	cq_post(f, 5, 0, true, NULL);
	KUNIT_EXPECT_EQ(test, f->comp_events, 3);
	hdr->arm_seq = 16 | NHCA_ARM_NEXT_COMP;
	nhca_cq_arm(&f->cq, IB_CQ_NEXT_COMP);
	KUNIT_EXPECT_EQ(test, f->comp_events, 4);
	cq_done(f);

	/* a consumer that never stores arm_seq arms by the command, and gets an event */
	f = cq_make_arm_seq(test, 0xfffffff0);
	nhca_cq_arm(&f->cq, IB_CQ_NEXT_COMP);
	cq_post(f, 1, 0, false, NULL);
	KUNIT_EXPECT_EQ(test, f->comp_events, 1);
	cq_done(f);
	/* if the CQ cannot be armed in the ring, arm_seq has no effect */
	f = cq_make(test, 8, 0, true);
	nhca_cq_enable_arm(&f->cq);
	KUNIT_EXPECT_EQ(test, f->cq.ring.hdr->flags, 0);
	f->cq.ring.hdr->arm_seq = 4 | NHCA_ARM_NEXT_COMP;
	cq_post(f, 1, 0, false, NULL);
	KUNIT_EXPECT_EQ(test, f->comp_events, 0);
	cq_done(f);
}

/*
 * The indices of the last event and of a solicited entry are here nearly 2^32 entries old, so they
 * look like future indices. They have no effect, because nhca_arm_age() has replaced them.
 */
static void cq_arm_seq_wrap_test(struct kunit *test)
{
	struct cq_fixture *f = cq_make_arm_seq(test, BIT(31) - 2);
	struct nhca_ring_hdr *hdr = f->cq.ring.hdr;
	int i;

	f->cq.arm.last_event_cons = BIT(31) + 1;
	f->cq.arm.solicited = BIT(31) + 3;
	for (i = 0; i < 4; i++)
		cq_post(f, i, 0, false, NULL);
	hdr->cons += 3;
	hdr->arm_seq = 4 | NHCA_ARM_SOLICITED;
	nhca_cq_arm(&f->cq, IB_CQ_SOLICITED);
	KUNIT_EXPECT_EQ(test, f->comp_events, 0);
	hdr->arm_seq = 8 | NHCA_ARM_NEXT_COMP;
	nhca_cq_arm(&f->cq, IB_CQ_NEXT_COMP);
	KUNIT_EXPECT_EQ(test, f->comp_events, 1);
	cq_done(f);
}

static void cq_wait_period(struct cq_fixture *f)
{
	int i;

	for (i = 0; i < 500 && hrtimer_active(&f->cq.timer); i++)
		msleep(20);
}

/* Poll all entries and arm, as a consumer in user space does. */
static void poll_and_arm(struct cq_fixture *f)
{
	f->cq.ring.hdr->cons = f->cq.ring.hdr->prod;
	nhca_cq_arm(&f->cq, IB_CQ_NEXT_COMP);
}

/* Moderation by count.  BHs are disabled, so the timer of the period cannot fire. */
static void cq_moderate_count_test(struct kunit *test)
{
	struct cq_fixture *f = cq_make(test, 16, 0, true);
	int i;

	nhca_cq_moderate(&f->cq, 3, U16_MAX);
	local_bh_disable();
	poll_and_arm(f);
	for (i = 1; i <= 7; i++) {
		cq_post(f, i, 0, false, NULL);
		/* the third completion after each arming raises the event */
		KUNIT_EXPECT_EQ_MSG(test, f->comp_events, i / 3, "completion %d", i);
		if (!(i % 3))
			poll_and_arm(f);
	}
	/* solicited and failed completions are not deferred */
	cq_post(f, 8, 0, true, NULL);
	KUNIT_EXPECT_EQ(test, f->comp_events, 3);
	poll_and_arm(f);
	cq_post(f, 9, IB_WC_WR_FLUSH_ERR, false, NULL);
	KUNIT_EXPECT_EQ(test, f->comp_events, 4);

	/* the end of moderation raises the deferred event, and later events are immediate */
	poll_and_arm(f);
	cq_post(f, 10, 0, false, NULL);
	KUNIT_EXPECT_EQ(test, f->comp_events, 4);
	nhca_cq_moderate(&f->cq, 0, 0);
	KUNIT_EXPECT_EQ(test, f->comp_events, 5);
	poll_and_arm(f);
	cq_post(f, 11, 0, false, NULL);
	KUNIT_EXPECT_EQ(test, f->comp_events, 6);

	/* a count of one, or a period of 0, is no moderation */
	nhca_cq_moderate(&f->cq, 1, U16_MAX);
	poll_and_arm(f);
	cq_post(f, 12, 0, false, NULL);
	nhca_cq_moderate(&f->cq, 9, 0);
	poll_and_arm(f);
	cq_post(f, 13, 0, false, NULL);
	KUNIT_EXPECT_EQ(test, f->comp_events, 8);
	local_bh_enable();
	cq_done(f);
}

/* Moderation by period: the timer raises the deferred event, but only if the CQ is armed. */
static void cq_moderate_period_test(struct kunit *test)
{
	struct cq_fixture *f = cq_make(test, 16, 0, false);
	struct nhca_cqe cqe;
	u32 i;

	/*
	 * with a count of 100, and without a count (0), the timer raises the event of an armed CQ
	 */
	for (i = 0; i < 6; i++) {
		nhca_cq_moderate(&f->cq, i % 2 ? 100 : 0, 500);
		if (i < 4)
			nhca_cq_arm(&f->cq, IB_CQ_NEXT_COMP);
		cq_post(f, i, 0, false, NULL);
		cq_wait_period(f);
		KUNIT_EXPECT_EQ_MSG(test, f->comp_events, min(i + 1, 4U), "period %u", i);
		KUNIT_EXPECT_TRUE(test, cq_poll_one(&f->cq, &cqe));
	}

	/*
	 * a kernel consumer that has polled its last entry may free what its handler needs, so the
	 * timer raises no event
	 */
	local_bh_disable();
	nhca_cq_arm(&f->cq, IB_CQ_NEXT_COMP);
	cq_post(f, 9, 0, false, NULL);
	KUNIT_EXPECT_TRUE(test, hrtimer_is_queued(&f->cq.timer));
	KUNIT_EXPECT_TRUE(test, cq_poll_one(&f->cq, &cqe));
	local_bh_enable();
	cq_wait_period(f);
	KUNIT_EXPECT_EQ(test, f->comp_events, 4);

	/*
	 * nhca_cq_stop() stops the timer; the event of the completion may have been raised before
	 */
	local_bh_disable();
	cq_post(f, 10, 0, false, NULL);
	KUNIT_EXPECT_TRUE(test, hrtimer_is_queued(&f->cq.timer));
	local_bh_enable();
	nhca_cq_stop(&f->cq);
	KUNIT_EXPECT_FALSE(test, hrtimer_active(&f->cq.timer));
	KUNIT_EXPECT_LE(test, f->comp_events, 5);
	cq_done(f);
}

/* Return: true if the timer of @f expires in at most @us microseconds; false: later, or never. */
static bool cq_timer_within(struct cq_fixture *f, u32 us)
{
	return hrtimer_is_queued(&f->cq.timer) &&
	       ktime_to_us(hrtimer_get_remaining(&f->cq.timer)) <= us;
}

/*
 * A shorter period applies also to an event that is already deferred, and to a timer that runs
 * although no event is deferred. A longer period does not extend the wait of a deferred event.
 */
static void cq_moderate_change_test(struct kunit *test)
{
	struct cq_fixture *f = cq_make(test, 16, 0, true);

	local_bh_disable();
	nhca_cq_moderate(&f->cq, 0, U16_MAX);
	poll_and_arm(f);
	cq_post(f, 1, 0, false, NULL);
	KUNIT_EXPECT_TRUE(test, hrtimer_is_queued(&f->cq.timer));
	nhca_cq_moderate(&f->cq, 0, 1000);
	KUNIT_EXPECT_TRUE(test, cq_timer_within(f, 1000));
	nhca_cq_moderate(&f->cq, 0, U16_MAX);
	KUNIT_EXPECT_TRUE(test, cq_timer_within(f, 1000));
	local_bh_enable();
	cq_wait_period(f);
	KUNIT_EXPECT_EQ(test, f->comp_events, 1);

	/* a solicited completion raises the deferred event, and the timer still runs */
	local_bh_disable();
	poll_and_arm(f);
	cq_post(f, 2, 0, false, NULL);
	cq_post(f, 3, 0, true, NULL);
	KUNIT_EXPECT_EQ(test, f->comp_events, 2);
	nhca_cq_moderate(&f->cq, 0, 1000);
	poll_and_arm(f);
	cq_post(f, 4, 0, false, NULL);
	KUNIT_EXPECT_TRUE(test, cq_timer_within(f, 1000));
	local_bh_enable();
	cq_wait_period(f);
	KUNIT_EXPECT_EQ(test, f->comp_events, 3);
	cq_done(f);
}

/*
 * A completion that does not fit raises no completion event and leaves the CQ armed. The next
 * completion that fits raises the event.
 */
static void cq_arm_overflow_test(struct kunit *test)
{
	struct cq_fixture *f = cq_make(test, 2, 0xffffffff, true);

	cq_post(f, 1, 0, false, NULL);
	cq_post(f, 2, 0, false, NULL);
	nhca_cq_arm(&f->cq, IB_CQ_SOLICITED);
	KUNIT_EXPECT_EQ(test, cq_post(f, 3, 0, true, NULL), -ENOSPC);
	KUNIT_EXPECT_EQ(test, f->comp_events, 0);
	KUNIT_EXPECT_EQ(test, f->err_events, 1);
	f->cq.ring.hdr->cons++;
	KUNIT_EXPECT_EQ(test, cq_post(f, 3, 0, true, NULL), 0);
	KUNIT_EXPECT_EQ(test, f->comp_events, 1);
	cq_done(f);
}

/* A CQ that moves to another ring stays armed, and repeats no event. */
static void cq_arm_move_test(struct kunit *test)
{
	struct cq_fixture *f = cq_make_arm_seq(test, 0xfffffff0);
	struct nhca_cq_move m;
	struct nhca_ring ring;
	int i;

	f->cq.ring.hdr->arm_seq = 4 | NHCA_ARM_NEXT_COMP;
	for (i = 0; i < 4; i++) {
		KUNIT_ASSERT_EQ(test, nhca_ring_alloc(&ring, 64, sizeof(struct nhca_cqe), NULL), 0);
		nhca_cq_move_start(&f->cq, &m, &ring);
		KUNIT_ASSERT_EQ(test, nhca_cq_move_step(&f->cq, &m), 0);
		nhca_ring_free(&ring);
		KUNIT_EXPECT_EQ(test, f->cq.ring.hdr->arm_seq, 4 | NHCA_ARM_NEXT_COMP);
		KUNIT_EXPECT_EQ(test, f->cq.ring.hdr->flags, NHCA_RING_F_ARM_SEQ);
		KUNIT_EXPECT_EQ(test, f->comp_events, !!i);
		cq_post(f, i, 0, true, NULL);
		KUNIT_EXPECT_EQ(test, f->comp_events, 1);
		KUNIT_EXPECT_EQ(test, f->cq.ring.hdr->arm_seq_acked, 4 | NHCA_ARM_NEXT_COMP);
		KUNIT_EXPECT_EQ(test, f->cq.ring.hdr->last_event_cons, 0xfffffff0);
	}
	cq_done(f);
}

/*
 * `rdma resource' shows for which kind of completion a CQ is armed, and the number of unpolled
 * entries.
 */
static void cq_dump_test(struct kunit *test)
{
	struct cq_fixture *f = cq_make_arm_seq(test, 7);
	static const u8 shown[] = { 0, 2, 1, 1 };
	struct nhca_res_cq res;
	u32 kind;

	cq_post(f, 1, 0, false, NULL);
	for (kind = 0; kind < ARRAY_SIZE(shown); kind++) {
		f->cq.ring.hdr->arm_seq = 4 | kind;
		nhca_cq_dump(&f->cq, &res);
		KUNIT_EXPECT_EQ(test, res.armed, shown[kind]);
		KUNIT_EXPECT_EQ(test, res.unpolled, 1);
		KUNIT_EXPECT_EQ(test, res.produced, 8);
	}
	f->cq.ring.hdr->cons = 1000;
	nhca_cq_dump(&f->cq, &res);
	KUNIT_EXPECT_EQ(test, res.unpolled, 64);
	cq_done(f);
}

static struct kunit_case arm_cases[] = {
	KUNIT_CASE(arm_table_test),
	KUNIT_CASE(arm_count_test),
	KUNIT_CASE(arm_age_test),
	KUNIT_CASE(cq_arm_test),
	KUNIT_CASE(cq_arm_late_test),
	KUNIT_CASE(cq_arm_seq_test),
	KUNIT_CASE(cq_arm_seq_doorbell_test),
	KUNIT_CASE(cq_arm_seq_wrap_test),
	KUNIT_CASE(cq_moderate_count_test),
	KUNIT_CASE(cq_moderate_period_test),
	KUNIT_CASE(cq_moderate_change_test),
	KUNIT_CASE(cq_arm_overflow_test),
	KUNIT_CASE(cq_arm_move_test),
	KUNIT_CASE(cq_dump_test),
	{}
};

static struct kunit_suite arm_suite = {
	.name = "nhca_cq_arm",
	.test_cases = arm_cases,
};

kunit_test_suite(arm_suite);
