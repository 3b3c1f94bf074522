// SPDX-License-Identifier: GPL-2.0
/* KUnit: completion queues: order, moves to another ring, overflow, handlers. */
#include <kunit/test.h>
#include <linux/slab.h>

#include "cq_fixture.h"

/* Completions are polled in the order of their posts, across the wrap of the indices. */
static void cq_order_test(struct kunit *test)
{
	static const u32 starts[] = { 0, 0xfffffff9, 0x7ffffffd };
	struct cq_fixture *f;
	struct nhca_cqe cqe;
	u64 posted, polled, stamp;
	u32 burst;
	int i;

	for (i = 0; i < ARRAY_SIZE(starts); i++) {
		f = cq_make(test, 8, starts[i], false);
		f->cq.timestamps = i % 2;
		posted = 0;
		polled = 0;
		stamp = 0;
		for (burst = 1; burst <= 8; burst++) {
			while (posted - polled < burst)
				KUNIT_ASSERT_EQ(test, cq_post(f, posted++, 0, false, NULL), 0);
			KUNIT_EXPECT_EQ(test, f->cq.ring.hdr->prod, starts[i] + (u32)posted);
			while (cq_poll_one(&f->cq, &cqe)) {
				KUNIT_EXPECT_EQ(test, cqe.wr_id, polled);
				KUNIT_EXPECT_EQ(test, cqe.qp_num, polled + 7);
				KUNIT_EXPECT_GE(test, cqe.timestamp, stamp);
				stamp = cqe.timestamp;
				polled++;
			}
			KUNIT_EXPECT_EQ(test, polled, posted);
		}
		/*
		 * the clock is read only for a CQ with timestamps, so other CQs have the timestamp
		 * 0
		 */
		KUNIT_EXPECT_EQ(test, !!stamp, f->cq.timestamps);
		KUNIT_EXPECT_EQ(test, f->comp_events + f->err_events, 0);
		cq_done(f);
	}
}

/*
 * Poll the entries @from to @to - 1. Return: the number of wrong or missing entries, plus 1 if
 * there are more entries.
 */
static u32 cq_poll_wrong(struct cq_fixture *f, u64 from, u64 to)
{
	struct nhca_cqe cqe;
	u32 wrong = 0;

	for (; from < to; from++)
		wrong += !cq_poll_one(&f->cq, &cqe) || cqe.wr_id != from;
	return wrong + cq_poll_one(&f->cq, &cqe);
}

/*
 * A CQ moves to another ring while QPs post completions and a consumer polls: no entry is lost,
 * repeated or reordered.
 */
static void cq_move_test(struct kunit *test)
{
	static const u32 starts[] = { 0, 0xffffff00, 0x7fffff80 };
	struct nhca_cq_move m;
	struct nhca_ring ring;
	struct nhca_cqe cqe;
	struct cq_fixture *f;
	u64 posted, polled;
	int i, err, steps;

	for (i = 0; i < ARRAY_SIZE(starts); i++) {
		f = cq_make(test, 1024, starts[i], false);
		KUNIT_ASSERT_EQ(test, nhca_ring_alloc(&ring, 4096, sizeof(cqe), NULL), 0);
		for (posted = 0; posted < 700; posted++)
			KUNIT_ASSERT_EQ(test, cq_post(f, posted, 0, false, NULL), 0);
		polled = 0;
		nhca_cq_move_start(&f->cq, &m, &ring);
		for (steps = 0; (err = nhca_cq_move_step(&f->cq, &m)) == -EAGAIN; steps++) {
			/*
			 * the rings are exchanged only when at most NHCA_CQ_STEP entries are left
			 * to copy
			 */
			KUNIT_EXPECT_EQ(test, nhca_ring_entries(&f->cq.ring), 1024);
			KUNIT_EXPECT_EQ(test, m.done, f->cq.prod);
			if (steps >= 3)
				continue;
			while (posted < 700 + (steps + 1) * 100)
				KUNIT_ASSERT_EQ(test, cq_post(f, posted++, 0, false, NULL), 0);
			/*
			 * after the first step the consumer has polled more entries than were
			 * copied
			 */
			while (polled < (steps ? 720 + steps : 710)) {
				KUNIT_ASSERT_TRUE(test, cq_poll_one(&f->cq, &cqe));
				KUNIT_EXPECT_EQ(test, cqe.wr_id, polled++);
			}
		}
		KUNIT_EXPECT_EQ(test, err, 0);
		KUNIT_EXPECT_EQ(test, steps, 4);
		KUNIT_EXPECT_EQ(test, nhca_ring_entries(&f->cq.ring), 4096);
		KUNIT_EXPECT_EQ(test, nhca_ring_entries(&ring), 1024);
		KUNIT_EXPECT_EQ(test, f->cq.ring.hdr->prod, f->cq.prod);
		KUNIT_EXPECT_EQ(test, cq_post(f, posted++, 0, false, NULL), 0);
		KUNIT_EXPECT_EQ(test, cq_poll_wrong(f, polled, posted), 0);
		nhca_ring_free(&ring);
		cq_done(f);
	}
}

/* If a QP is destroyed during the move, the new ring has none of its completions. */
static void cq_move_forget_test(struct kunit *test)
{
	struct cq_fixture *f = cq_make(test, 512, 0xffffffc0, false);
	struct ib_qp *a = (void *)0x10000, *b = (void *)0x20000;
	struct nhca_cq_move m;
	struct nhca_ring ring;
	struct nhca_cqe cqe;
	int i;

	KUNIT_ASSERT_EQ(test, nhca_ring_alloc(&ring, 512, sizeof(cqe), NULL), 0);
	for (i = 0; i < 400; i++)
		KUNIT_ASSERT_EQ(test, cq_post(f, i, 0, false, i % 2 ? a : b), 0);
	nhca_cq_move_start(&f->cq, &m, &ring);
	KUNIT_EXPECT_EQ(test, nhca_cq_move_step(&f->cq, &m), -EAGAIN);
	nhca_cq_forget_qp(&f->cq, a);
	KUNIT_EXPECT_EQ(test, nhca_cq_move_step(&f->cq, &m), -EAGAIN);
	KUNIT_EXPECT_EQ(test, nhca_cq_move_step(&f->cq, &m), 0);
	for (i = 0; i < 400; i += 2) {
		KUNIT_ASSERT_TRUE(test, cq_poll_one(&f->cq, &cqe));
		KUNIT_EXPECT_EQ(test, cqe.wr_id, i);
	}
	KUNIT_EXPECT_FALSE(test, cq_poll_one(&f->cq, &cqe));
	nhca_ring_free(&ring);
	cq_done(f);
}

/*
 * If the new ring is too small for the unpolled entries, or user space has stored an impossible
 * consumer index, the move fails and the CQ keeps its ring.
 */
static void cq_move_refused_test(struct kunit *test)
{
	static const u32 wrong[] = { 1000, 0x80000000, 0xffff0000 };
	struct nhca_cq_move m;
	struct nhca_ring ring;
	struct cq_fixture *f;
	int i;

	KUNIT_ASSERT_EQ(test, nhca_ring_alloc(&ring, 64, sizeof(struct nhca_cqe), NULL), 0);
	f = cq_make(test, 256, 5, false);
	for (i = 0; i < 65; i++)
		KUNIT_ASSERT_EQ(test, cq_post(f, i, 0, false, NULL), 0);
	nhca_cq_move_start(&f->cq, &m, &ring);
	KUNIT_EXPECT_EQ(test, nhca_cq_move_step(&f->cq, &m), -EINVAL);
	KUNIT_EXPECT_EQ(test, nhca_ring_entries(&f->cq.ring), 256);
	KUNIT_EXPECT_EQ(test, cq_poll_wrong(f, 0, 65), 0);
	/* all entries are polled, so the small ring is large enough */
	nhca_cq_move_start(&f->cq, &m, &ring);
	KUNIT_EXPECT_EQ(test, nhca_cq_move_step(&f->cq, &m), 0);
	KUNIT_EXPECT_EQ(test, nhca_ring_entries(&f->cq.ring), 64);
	nhca_ring_free(&ring);
	cq_done(f);

	f = cq_make(test, 256, 500, true);
	KUNIT_ASSERT_EQ(test, nhca_ring_alloc(&ring, 256, sizeof(struct nhca_cqe), NULL), 0);
	KUNIT_ASSERT_EQ(test, cq_post(f, 1, 0, false, NULL), 0);
	for (i = 0; i < ARRAY_SIZE(wrong); i++) {
		nhca_cq_move_start(&f->cq, &m, &ring);
		f->cq.ring.hdr->cons = wrong[i];
		KUNIT_EXPECT_EQ(test, nhca_cq_move_step(&f->cq, &m), -EINVAL);
		f->cq.ring.hdr->cons = wrong[i];
		nhca_cq_move_start(&f->cq, &m, &ring);
		f->cq.ring.hdr->cons = 500;
		/*
		 * if the wrong index led to an access outside the rings, KASAN would report the
		 * access
		 */
		KUNIT_EXPECT_NE(test, nhca_cq_move_step(&f->cq, &m), -EAGAIN);
	}
	nhca_ring_free(&ring);
	cq_done(f);
}

/*
 * A completion that does not fit into a full CQ raises IB_EVENT_CQ_ERR once. The entries in the CQ
 * do not change.
 */
static void cq_overflow_test(struct kunit *test)
{
	struct cq_fixture *f = cq_make(test, 4, 0xfffffffe, false);
	struct nhca_cqe cqe;
	int i;

	for (i = 0; i < 4; i++)
		KUNIT_EXPECT_EQ(test, cq_post(f, i, 0, false, NULL), 0);
	KUNIT_EXPECT_FALSE(test, f->cq.overrun);
	for (i = 4; i < 10; i++) {
		KUNIT_EXPECT_EQ(test, cq_post(f, i, 0, false, NULL), -ENOSPC);
		KUNIT_EXPECT_EQ(test, f->err_events, 1);
	}
	KUNIT_EXPECT_EQ(test, f->last_event, IB_EVENT_CQ_ERR);
	KUNIT_EXPECT_TRUE(test, f->cq.overrun);
	/* the 4 entries posted before the overrun are unchanged */
	for (i = 0; i < 4; i++) {
		KUNIT_ASSERT_TRUE(test, cq_poll_one(&f->cq, &cqe));
		KUNIT_EXPECT_EQ(test, cqe.wr_id, i);
	}
	KUNIT_EXPECT_FALSE(test, cq_poll_one(&f->cq, &cqe));
	/* another overrun raises no second event */
	for (i = 0; i < 5; i++)
		cq_post(f, i, 0, false, NULL);
	KUNIT_EXPECT_EQ(test, f->err_events, 1);
	cq_done(f);
}

/*
 * Impossible consumer indices of user space count as an overrun. The kernel never reads the
 * producer index back from the ring, and puts no kernel pointer into it.
 */
static void cq_hostile_consumer_test(struct kunit *test)
{
	static const u32 behind[] = { 4, 5, 0x7fffffff, 0x80000000, 0xffffffff };
	struct cq_fixture *f;
	struct nhca_cqe *slot;
	int i;

	for (i = 0; i < ARRAY_SIZE(behind); i++) {
		f = cq_make(test, 4, 100, true);
		f->cq.ring.hdr->cons = 100 - behind[i];
		KUNIT_EXPECT_EQ(test, cq_post(f, 1, 0, false, NULL), -ENOSPC);
		KUNIT_EXPECT_EQ(test, f->err_events, 1);
		/* nothing was posted, and the kernel has not changed the index of user space */
		KUNIT_EXPECT_EQ(test, f->cq.prod, 100);
		KUNIT_EXPECT_EQ(test, f->cq.ring.hdr->prod, 100);
		KUNIT_EXPECT_EQ(test, f->cq.ring.hdr->cons, 100 - behind[i]);
		cq_done(f);
	}

	/* the kernel overwrites a wrong producer index, and clears the pointer to the QP */
	f = cq_make(test, 4, 100, true);
	f->cq.ring.hdr->prod = 0xdeadbeef;
	KUNIT_EXPECT_EQ(test, cq_post(f, 1, 0, false, (struct ib_qp *)f), 0);
	KUNIT_EXPECT_EQ(test, f->cq.ring.hdr->prod, 101);
	slot = nhca_ring_slot(&f->cq.ring, 100);
	KUNIT_EXPECT_EQ(test, slot->wr_id, 1);
	KUNIT_EXPECT_EQ(test, slot->kernel, 0);
	cq_done(f);
}

/*
 * nhca_cq_post() does not call the handlers of a kernel consumer itself, because the consumer's own
 * post_send() may have called nhca_cq_post(). One call of a handler serves several completions.
 */
static void cq_call_chain_test(struct kunit *test)
{
	struct cq_fixture *f = cq_make(test, 4, 0, false);
	struct nhca_cqe cqe;

	f->cq.arm.armed = IB_CQ_NEXT_COMP;
	local_bh_disable();
	cq_post(f, 1, 0, false, NULL);
	cq_post(f, 2, 0, false, NULL);
	KUNIT_EXPECT_EQ(test, f->comp_events, 0);
	local_bh_enable();
	KUNIT_EXPECT_EQ(test, f->comp_events, 1);
	KUNIT_EXPECT_EQ(test, f->cq.arm.armed, 0);
	cq_post(f, 3, 0, false, NULL);
	KUNIT_EXPECT_EQ(test, f->comp_events, 1);

	/* no event if the consumer has polled everything, but an event for the next completion */
	f->cq.arm.armed = IB_CQ_NEXT_COMP;
	local_bh_disable();
	cq_post(f, 4, 0, false, NULL);
	while (cq_poll_one(&f->cq, &cqe))
		;
	local_bh_enable();
	KUNIT_EXPECT_EQ(test, f->comp_events, 1);
	KUNIT_EXPECT_EQ(test, f->cq.arm.armed, IB_CQ_NEXT_COMP);
	cq_post(f, 5, 0, false, NULL);
	KUNIT_EXPECT_EQ(test, f->comp_events, 2);

	/* nhca_cq_post() does not call the handler of asynchronous events either */
	local_bh_disable();
	while (!cq_post(f, 6, 0, false, NULL))
		;
	KUNIT_EXPECT_EQ(test, f->err_events, 0);
	local_bh_enable();
	KUNIT_EXPECT_EQ(test, f->err_events, 1);
	cq_done(f);
}

/*
 * Handlers run without the CQ's lock, and a consumer may have no handlers. A CQ that is being
 * destroyed raises no events.
 */
static void cq_handler_test(struct kunit *test)
{
	struct cq_fixture *f = cq_make(test, 4, 0, false);

	/* the handler can poll, because the lock is free */
	f->poll_in_handler = true;
	f->cq.arm.armed = IB_CQ_NEXT_COMP;
	cq_post(f, 1, 0, false, NULL);
	KUNIT_EXPECT_EQ(test, f->polled_in_handler, 1);

	/* while the CQ is being destroyed it raises no event */
	f->cq.arm.stopped = true;
	f->cq.arm.armed = IB_CQ_NEXT_COMP;
	while (!cq_post(f, 1, 0, false, NULL))
		;
	KUNIT_EXPECT_EQ(test, f->comp_events, 1);
	KUNIT_EXPECT_EQ(test, f->err_events, 0);
	cq_done(f);

	/* a consumer without handlers */
	f = cq_make(test, 1, 0, false);
	f->cq.ibcq.comp_handler = NULL;
	f->cq.ibcq.event_handler = NULL;
	f->cq.arm.armed = IB_CQ_NEXT_COMP;
	KUNIT_EXPECT_EQ(test, cq_post(f, 1, 0, false, NULL), 0);
	KUNIT_EXPECT_EQ(test, cq_post(f, 1, 0, false, NULL), -ENOSPC);
	cq_done(f);
}

/*
 * For each mix of entries of two QPs, nhca_cq_forget_qp() removes the entries of one QP and keeps
 * the other entries in order.
 */
static void cq_forget_test(struct kunit *test)
{
	struct ib_qp *gone, *stays;
	struct cq_fixture *f;
	struct nhca_cqe cqe;
	u32 mix, i;

	gone = kunit_kzalloc(test, sizeof(*gone), GFP_KERNEL);
	stays = kunit_kzalloc(test, sizeof(*stays), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, gone);
	KUNIT_ASSERT_NOT_NULL(test, stays);

	f = cq_make(test, 8, 0xfffffffb, false);
	for (mix = 0; mix < 256; mix++) {
		for (i = 0; i < 8; i++)
			KUNIT_ASSERT_EQ(test, cq_post(f, i, 0, false,
						      mix & BIT(i) ? gone : stays), 0);
		nhca_cq_forget_qp(&f->cq, gone);
		KUNIT_EXPECT_EQ(test, f->cq.prod - f->cq.cons, 8 - hweight8(mix));
		KUNIT_EXPECT_EQ(test, f->cq.ring.hdr->prod, f->cq.prod);
		for (i = 0; i < 8; i++) {
			if (mix & BIT(i))
				continue;
			KUNIT_ASSERT_TRUE(test, cq_poll_one(&f->cq, &cqe));
			KUNIT_EXPECT_EQ(test, cqe.wr_id, i);
			KUNIT_EXPECT_EQ(test, cqe.kernel, (uintptr_t)stays);
		}
		KUNIT_EXPECT_FALSE(test, cq_poll_one(&f->cq, &cqe));
	}
	cq_done(f);

	/* the kernel does not remove entries from a user CQ, because the process reads its ring */
	f = cq_make(test, 8, 0, true);
	cq_post(f, 1, 0, false, NULL);
	nhca_cq_forget_qp(&f->cq, NULL);
	KUNIT_EXPECT_EQ(test, f->cq.prod, 1);
	cq_done(f);
}

static struct kunit_case cq_cases[] = {
	KUNIT_CASE(cq_order_test),
	KUNIT_CASE(cq_move_test),
	KUNIT_CASE(cq_move_forget_test),
	KUNIT_CASE(cq_move_refused_test),
	KUNIT_CASE(cq_overflow_test),
	KUNIT_CASE(cq_hostile_consumer_test),
	KUNIT_CASE(cq_call_chain_test),
	KUNIT_CASE(cq_handler_test),
	KUNIT_CASE(cq_forget_test),
	{}
};

static struct kunit_suite cq_suite = {
	.name = "nhca_cq",
	.test_cases = cq_cases,
};

kunit_test_suite(cq_suite);
