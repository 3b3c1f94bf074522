// SPDX-License-Identifier: GPL-2.0
/* KUnit: fences in every state of an rCxt. rcxt_tid_test.c tests fences in random histories. */
#include <kunit/test.h>

#include "../rcxt/tid.h"

/* result of a fence in one state, for an equal and for a higher tid; a lower tid is stale */
struct fence_row {
	enum nhca_rcxt_state state;
	enum nhca_rcxt_verdict equal;
	enum nhca_rx_status equal_status;
	enum nhca_rcxt_verdict higher;
};

static const struct fence_row fence_rows[] = {
	{ NHCA_RCXT_IDLE, NHCA_RCXT_ACCEPT, NHCA_RX_ST_FENCED, NHCA_RCXT_ACCEPT },
	/* BUSY: the rCxt's own channel has begun the transfer, so a peer cannot cancel it */
	{ NHCA_RCXT_SENDING, NHCA_RCXT_BUSY, NHCA_RX_ST_NONE, NHCA_RCXT_BUSY },
	{ NHCA_RCXT_WAITING, NHCA_RCXT_BUSY, NHCA_RX_ST_NONE, NHCA_RCXT_BUSY },
	{ NHCA_RCXT_RELEASING, NHCA_RCXT_BUSY, NHCA_RX_ST_NONE, NHCA_RCXT_BUSY },
	{ NHCA_RCXT_READING, NHCA_RCXT_BUSY, NHCA_RX_ST_NONE, NHCA_RCXT_BUSY },
	{ NHCA_RCXT_RECEIVING, NHCA_RCXT_ACCEPT, NHCA_RX_ST_FENCED, NHCA_RCXT_ACCEPT },
	{ NHCA_RCXT_ANSWERING, NHCA_RCXT_ACCEPT, NHCA_RX_ST_FENCED, NHCA_RCXT_ACCEPT },
	{ NHCA_RCXT_ANSWERED, NHCA_RCXT_ACCEPT, NHCA_RX_ST_FENCED, NHCA_RCXT_ACCEPT },
	/* equal tid: too late to cancel, and the status says that all payload is in place */
	{ NHCA_RCXT_DONE, NHCA_RCXT_ACCEPT, NHCA_RX_ST_DONE, NHCA_RCXT_ACCEPT },
	{ NHCA_RCXT_VIOLATED, NHCA_RCXT_ACCEPT, NHCA_RX_ST_FENCED, NHCA_RCXT_ACCEPT },
	{ NHCA_RCXT_MOVING, NHCA_RCXT_BUSY, NHCA_RX_ST_NONE, NHCA_RCXT_BUSY },
	{ NHCA_RCXT_FORWARDING, NHCA_RCXT_ACCEPT, NHCA_RX_ST_FENCED, NHCA_RCXT_ACCEPT },
	{ NHCA_RCXT_FORWARDED, NHCA_RCXT_ACCEPT, NHCA_RX_ST_FENCED, NHCA_RCXT_ACCEPT },
};

static void fence_case(struct kunit *test, const struct fence_row *row, s32 step, u16 copies)
{
	struct nhca_rxeth x = { .tid = 100 + step };
	enum nhca_rcxt_verdict want, have_verdict;
	enum nhca_rx_status status = NHCA_RX_ST_NONE, want_status;
	struct nhca_rcxt_pool pool = {};
	struct nhca_rcxt rc = {
		.tid = 100, .total = 640, .segment = 64, .state = row->state, .copies = copies,
	};
	u32 have;

	want = step < 0 ? NHCA_RCXT_STALE : step ? row->higher : row->equal;
	want_status = step ? NHCA_RX_ST_FENCED : row->equal_status;
	if (!want && copies && want_status == NHCA_RX_ST_FENCED)
		want = NHCA_RCXT_WAIT;
	have_verdict = nhca_rcxt_fence(&pool, &rc, &x, &status, &have);
	KUNIT_EXPECT_EQ_MSG(test, have_verdict, want, "state %u step %d copies %u", row->state,
			    step, copies);
	if (want == NHCA_RCXT_STALE || want == NHCA_RCXT_BUSY) {
		/* nothing has changed */
		KUNIT_EXPECT_EQ(test, rc.tid, 100);
		KUNIT_EXPECT_EQ(test, (u32)rc.state, (u32)row->state);
		return;
	}
	if (want == NHCA_RCXT_ACCEPT)
		KUNIT_EXPECT_EQ(test, status, want_status);
	KUNIT_EXPECT_EQ(test, have, status == NHCA_RX_ST_DONE ? 10 : 0);
	if (status == NHCA_RX_ST_DONE) {
		KUNIT_EXPECT_EQ(test, (u32)rc.state, (u32)NHCA_RCXT_DONE);
		return;
	}
	KUNIT_EXPECT_EQ(test, rc.tid, x.tid);
	/* payload of the fence's tid is refused after the fence */
	x = (struct nhca_rxeth) { .tid = x.tid, .total = 640, .length = 64, .segment = 64 };
	KUNIT_EXPECT_EQ(test, nhca_rcxt_payload(&pool, &rc, &x, false), NHCA_RCXT_STALE);
	/* after the last copy of payload has ended, a repeated fence is answered */
	while (rc.copies)
		KUNIT_EXPECT_FALSE(test, nhca_rcxt_copied(&pool, &rc, true));
	KUNIT_EXPECT_EQ(test, nhca_rcxt_fence(&pool, &rc, &x, &status, &have), NHCA_RCXT_ACCEPT);
	KUNIT_EXPECT_EQ(test, status, NHCA_RX_ST_FENCED);
}

/*
 * In every state of an rCxt that a channel owns: after the rCxt has accepted a fence, it refuses
 * payload of the fence's tid. A fence is answered only while no CPU copies payload. A fence does
 * not end a transfer that the rCxt's own channel has begun.
 */
static void rcxt_fence_in_every_state(struct kunit *test)
{
	u32 i;

	static_assert(ARRAY_SIZE(fence_rows) == NHCA_RCXT_FORWARDED);
	for (i = 0; i < ARRAY_SIZE(fence_rows); i++) {
		s32 step;

		for (step = -1; step <= 1; step++) {
			fence_case(test, &fence_rows[i], step, 0);
			/* a complete transfer has no copies in progress */
			if (fence_rows[i].state != NHCA_RCXT_DONE)
				fence_case(test, &fence_rows[i], step, 2);
		}
	}
}

/* A fence of tid 0 is refused, because no transfer has this tid. */
static void rcxt_fence_tid_zero(struct kunit *test)
{
	struct nhca_rcxt rc = { .state = NHCA_RCXT_IDLE };
	enum nhca_rx_status status;
	struct nhca_rcxt_pool pool = {};
	struct nhca_rxeth x = {};
	u32 have;

	KUNIT_EXPECT_EQ(test, nhca_rcxt_fence(&pool, &rc, &x, &status, &have), NHCA_RCXT_STALE);
}

static struct kunit_case rcxt_fence_cases[] = {
	KUNIT_CASE(rcxt_fence_in_every_state),
	KUNIT_CASE(rcxt_fence_tid_zero),
	{}
};

static struct kunit_suite rcxt_fence_suite = {
	.name = "nhca_rcxt_fence",
	.test_cases = rcxt_fence_cases,
};

kunit_test_suite(rcxt_fence_suite);
