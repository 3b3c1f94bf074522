// SPDX-License-Identifier: GPL-2.0
/* KUnit: completion queues: order, moves to another ring, overflow, arming, moderation. */
#include <kunit/test.h>
#include <linux/slab.h>

#include "../queue/cq.h"
#include "../queue/ring.h"

struct cq_fixture {
	struct nhca_cq cq;
	unsigned int comp_events;
	unsigned int err_events;
	enum ib_event_type last_event;
	/* the handler polls, as handlers of kernel consumers do */
	bool poll_in_handler;
	unsigned int polled_in_handler;
};

static bool cq_poll_one(struct nhca_cq *cq, struct nhca_cqe *cqe)
{
	unsigned long flags;
	bool got;

	spin_lock_irqsave(&cq->lock, flags);
	got = cq->cons != cq->prod;
	if (got)
		*cqe = *(struct nhca_cqe *)nhca_ring_slot(&cq->ring, cq->cons++);
	spin_unlock_irqrestore(&cq->lock, flags);
	return got;
}

static void on_completion(struct ib_cq *ibcq, void *context)
{
	struct cq_fixture *f = context;
	struct nhca_cqe cqe;

	f->comp_events++;
	while (f->poll_in_handler && cq_poll_one(&f->cq, &cqe))
		f->polled_in_handler++;
}

static void on_cq_event(struct ib_event *event, void *context)
{
	struct cq_fixture *f = context;

	f->err_events++;
	f->last_event = event->event;
}

static struct cq_fixture *cq_make(struct kunit *test, u32 entries, u32 start, bool user)
{
	struct cq_fixture *f = kunit_kzalloc(test, sizeof(*f), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, f);
	nhca_cq_init(&f->cq);
	KUNIT_ASSERT_EQ(test, nhca_ring_alloc(&f->cq.ring, entries, sizeof(struct nhca_cqe),
					      NULL), 0);
	f->cq.ibcq.comp_handler = on_completion;
	f->cq.ibcq.event_handler = on_cq_event;
	f->cq.ibcq.cq_context = f;
	f->cq.user = user;
	f->cq.prod = start;
	f->cq.cons = start;
	f->cq.last_event_cons = start - 1;
	f->cq.solicited = start;
	f->cq.ring.hdr->prod = start;
	f->cq.ring.hdr->cons = start;
	return f;
}

static void cq_done(struct cq_fixture *f)
{
	nhca_cq_stop(&f->cq);
	nhca_ring_free(&f->cq.ring);
}

static int post(struct cq_fixture *f, u64 wr_id, enum ib_wc_status status, bool solicited,
		struct ib_qp *qp)
{
	struct nhca_cqe cqe = {
		.wr_id = wr_id,
		.status = status,
		.qp_num = wr_id + 7,
		.kernel = (uintptr_t)qp,
	};
	int err;

	/* local_bh_enable() runs the bottom half that calls the handlers of a kernel consumer */
	local_bh_disable();
	err = nhca_cq_post(&f->cq, &cqe, solicited);
	local_bh_enable();
	return err;
}

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
				KUNIT_ASSERT_EQ(test, post(f, posted++, 0, false, NULL), 0);
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
		/* only a CQ with timestamps reads the clock */
		KUNIT_EXPECT_EQ(test, !!stamp, f->cq.timestamps);
		KUNIT_EXPECT_EQ(test, f->comp_events + f->err_events, 0);
		cq_done(f);
	}
}

/* Poll the entries @from to @to - 1. Return: how many are wrong, missing or too many. */
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
			KUNIT_ASSERT_EQ(test, post(f, posted, 0, false, NULL), 0);
		polled = 0;
		nhca_cq_move_start(&f->cq, &m, &ring);
		for (steps = 0; (err = nhca_cq_move_step(&f->cq, &m)) == -EAGAIN; steps++) {
			/* the rings are exchanged only after most entries were copied */
			KUNIT_EXPECT_EQ(test, nhca_ring_entries(&f->cq.ring), 1024);
			KUNIT_EXPECT_EQ(test, m.done, f->cq.prod);
			if (steps >= 3)
				continue;
			while (posted < 700 + (steps + 1) * 100)
				KUNIT_ASSERT_EQ(test, post(f, posted++, 0, false, NULL), 0);
			/* the first time the consumer polls past everything that was copied */
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
		KUNIT_EXPECT_EQ(test, post(f, posted++, 0, false, NULL), 0);
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
		KUNIT_ASSERT_EQ(test, post(f, i, 0, false, i % 2 ? a : b), 0);
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
		KUNIT_ASSERT_EQ(test, post(f, i, 0, false, NULL), 0);
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
	KUNIT_ASSERT_EQ(test, post(f, 1, 0, false, NULL), 0);
	for (i = 0; i < ARRAY_SIZE(wrong); i++) {
		nhca_cq_move_start(&f->cq, &m, &ring);
		f->cq.ring.hdr->cons = wrong[i];
		KUNIT_EXPECT_EQ(test, nhca_cq_move_step(&f->cq, &m), -EINVAL);
		f->cq.ring.hdr->cons = wrong[i];
		nhca_cq_move_start(&f->cq, &m, &ring);
		f->cq.ring.hdr->cons = 500;
		/* KASAN reports it if the wrong index has led to an access outside the rings */
		KUNIT_EXPECT_NE(test, nhca_cq_move_step(&f->cq, &m), -EAGAIN);
	}
	nhca_ring_free(&ring);
	cq_done(f);
}

/* A full CQ raises one IB_EVENT_CQ_ERR, and the entries in it stay as they are. */
static void cq_overflow_test(struct kunit *test)
{
	struct cq_fixture *f = cq_make(test, 4, 0xfffffffe, false);
	struct nhca_cqe cqe;
	int i;

	for (i = 0; i < 4; i++)
		KUNIT_EXPECT_EQ(test, post(f, i, 0, false, NULL), 0);
	KUNIT_EXPECT_FALSE(test, f->cq.overrun);
	for (i = 4; i < 10; i++) {
		KUNIT_EXPECT_EQ(test, post(f, i, 0, false, NULL), -ENOSPC);
		KUNIT_EXPECT_EQ(test, f->err_events, 1);
	}
	KUNIT_EXPECT_EQ(test, f->last_event, IB_EVENT_CQ_ERR);
	KUNIT_EXPECT_TRUE(test, f->cq.overrun);
	/* the entries posted before the overrun are unchanged */
	for (i = 0; i < 4; i++) {
		KUNIT_ASSERT_TRUE(test, cq_poll_one(&f->cq, &cqe));
		KUNIT_EXPECT_EQ(test, cqe.wr_id, i);
	}
	KUNIT_EXPECT_FALSE(test, cq_poll_one(&f->cq, &cqe));
	/* another overrun raises no second event */
	for (i = 0; i < 5; i++)
		post(f, i, 0, false, NULL);
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
		KUNIT_EXPECT_EQ(test, post(f, 1, 0, false, NULL), -ENOSPC);
		KUNIT_EXPECT_EQ(test, f->err_events, 1);
		/* nothing was posted, and user space's index was left alone */
		KUNIT_EXPECT_EQ(test, f->cq.prod, 100);
		KUNIT_EXPECT_EQ(test, f->cq.ring.hdr->prod, 100);
		KUNIT_EXPECT_EQ(test, f->cq.ring.hdr->cons, 100 - behind[i]);
		cq_done(f);
	}

	/* the kernel overwrites a wrong producer index, and clears the pointer to the QP */
	f = cq_make(test, 4, 100, true);
	f->cq.ring.hdr->prod = 0xdeadbeef;
	KUNIT_EXPECT_EQ(test, post(f, 1, 0, false, (struct ib_qp *)f), 0);
	KUNIT_EXPECT_EQ(test, f->cq.ring.hdr->prod, 101);
	slot = nhca_ring_slot(&f->cq.ring, 100);
	KUNIT_EXPECT_EQ(test, slot->wr_id, 1);
	KUNIT_EXPECT_EQ(test, slot->kernel, 0);
	cq_done(f);
}

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
		f->cq.armed = cases[i].armed;
		post(f, 1, cases[i].status, cases[i].solicited, NULL);
		KUNIT_EXPECT_EQ_MSG(test, f->comp_events, cases[i].fires, "case %d", i);
		KUNIT_EXPECT_EQ_MSG(test, f->cq.armed, cases[i].armed * !cases[i].fires,
				    "case %d", i);
		/* each arming raises one event */
		post(f, 2, IB_WC_SUCCESS, true, NULL);
		post(f, 3, IB_WC_SUCCESS, true, NULL);
		KUNIT_EXPECT_EQ_MSG(test, f->comp_events, !!cases[i].armed, "case %d", i);
		cq_done(f);
	}
}

/*
 * A consumer that polls first and arms afterwards by a command gets an event for entries that it
 * has not polled. Otherwise it would sleep although completions are there.
 */
static void cq_arm_late_test(struct kunit *test)
{
	struct cq_fixture *f = cq_make(test, 8, 0xfffffffe, true);
	u32 *cons = &f->cq.ring.hdr->cons;

	post(f, 1, 0, false, NULL);
	nhca_cq_arm(&f->cq, IB_CQ_SOLICITED);
	KUNIT_EXPECT_EQ(test, f->comp_events, 0);
	nhca_cq_arm(&f->cq, IB_CQ_NEXT_COMP);
	KUNIT_EXPECT_EQ(test, f->comp_events, 1);

	/* two more entries: each arming raises an event for them */
	post(f, 2, 0, true, NULL);
	post(f, 3, 0, false, NULL);
	KUNIT_EXPECT_EQ(test, f->comp_events, 1);
	nhca_cq_arm(&f->cq, IB_CQ_SOLICITED);
	KUNIT_EXPECT_EQ(test, f->comp_events, 2);
	nhca_cq_arm(&f->cq, IB_CQ_NEXT_COMP);
	KUNIT_EXPECT_EQ(test, f->comp_events, 3);

	/* a solicited entry that was polled raises no event */
	*cons += 2;
	nhca_cq_arm(&f->cq, IB_CQ_SOLICITED);
	KUNIT_EXPECT_EQ(test, f->comp_events, 3);
	post(f, 4, IB_WC_WR_FLUSH_ERR, false, NULL);
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
	nhca_cq_give(&f->cq, &f->cq.ring);
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
		post(f, i, 0, cases[i].solicited, NULL);
		events += cases[i].fires;
		KUNIT_EXPECT_EQ_MSG(test, f->comp_events, events, "case %d", i);
		KUNIT_EXPECT_EQ(test, hdr->arm_seq, cases[i].arm);
		if (!cases[i].fires)
			continue;
		KUNIT_EXPECT_EQ_MSG(test, hdr->arm_seq_acked, cases[i].arm, "case %d", i);
		KUNIT_EXPECT_EQ_MSG(test, hdr->last_event_cons, hdr->cons, "case %d", i);
		/* each arming raises one event */
		post(f, i, 0, true, NULL);
		KUNIT_EXPECT_EQ_MSG(test, f->comp_events, events, "case %d", i);
		hdr->cons++;
	}
	cq_done(f);
}

/*
 * The command that a consumer sends after arming in the ring raises an event for unpolled entries,
 * but never a second event for one arming.
 */
static void cq_arm_seq_doorbell_test(struct kunit *test)
{
	struct cq_fixture *f = cq_make_arm_seq(test, 0xfffffff0);
	struct nhca_ring_hdr *hdr = f->cq.ring.hdr;

	/* the entry was posted before the consumer armed */
	post(f, 1, 0, false, NULL);
	hdr->arm_seq = 4 | NHCA_ARM_NEXT_COMP;
	KUNIT_EXPECT_EQ(test, f->comp_events, 0);
	nhca_cq_arm(&f->cq, IB_CQ_NEXT_COMP);
	KUNIT_EXPECT_EQ(test, f->comp_events, 1);
	KUNIT_EXPECT_EQ(test, hdr->arm_seq_acked, 4 | NHCA_ARM_NEXT_COMP);

	/* no event: a consumer that has not polled since the last event will find all entries */
	post(f, 2, 0, false, NULL);
	post(f, 3, 0, false, NULL);
	hdr->arm_seq = 8 | NHCA_ARM_NEXT_COMP;
	nhca_cq_arm(&f->cq, IB_CQ_NEXT_COMP);
	KUNIT_EXPECT_EQ(test, f->comp_events, 1);
	/* an event if the consumer has left entries unpolled, and again after the next arming */
	hdr->cons++;
	nhca_cq_arm(&f->cq, IB_CQ_NEXT_COMP);
	KUNIT_EXPECT_EQ(test, f->comp_events, 2);
	KUNIT_EXPECT_EQ(test, hdr->arm_seq_acked, 8 | NHCA_ARM_NEXT_COMP);
	hdr->cons++;
	hdr->arm_seq = 12 | NHCA_ARM_NEXT_COMP;
	nhca_cq_arm(&f->cq, IB_CQ_NEXT_COMP);
	KUNIT_EXPECT_EQ(test, f->comp_events, 3);

	/* the arming was acknowledged already, so these commands raise no event */
	nhca_cq_arm(&f->cq, IB_CQ_NEXT_COMP);
	hdr->cons = hdr->prod;
	post(f, 4, 0, true, NULL);
	nhca_cq_arm(&f->cq, IB_CQ_NEXT_COMP);
	KUNIT_EXPECT_EQ(test, f->comp_events, 3);

	/* the kernel does not read back what it has published in the ring */
	hdr->arm_seq_acked = 0;
	hdr->last_event_cons = 0x1234;
	post(f, 5, 0, true, NULL);
	KUNIT_EXPECT_EQ(test, f->comp_events, 3);
	hdr->arm_seq = 16 | NHCA_ARM_NEXT_COMP;
	nhca_cq_arm(&f->cq, IB_CQ_NEXT_COMP);
	KUNIT_EXPECT_EQ(test, f->comp_events, 4);
	cq_done(f);

	/* a consumer that never stores arm_seq; a CQ that cannot be armed in the ring */
	f = cq_make_arm_seq(test, 0xfffffff0);
	nhca_cq_arm(&f->cq, IB_CQ_NEXT_COMP);
	post(f, 1, 0, false, NULL);
	KUNIT_EXPECT_EQ(test, f->comp_events, 1);
	cq_done(f);
	f = cq_make(test, 8, 0, true);
	nhca_cq_give(&f->cq, &f->cq.ring);
	KUNIT_EXPECT_EQ(test, f->cq.ring.hdr->flags, 0);
	f->cq.ring.hdr->arm_seq = 4 | NHCA_ARM_NEXT_COMP;
	post(f, 1, 0, false, NULL);
	KUNIT_EXPECT_EQ(test, f->comp_events, 0);
	cq_done(f);
}

/* An event or solicited entry from 2^31 indices ago neither suppresses nor raises an event. */
static void cq_arm_seq_wrap_test(struct kunit *test)
{
	struct cq_fixture *f = cq_make_arm_seq(test, BIT(31) - 2);
	struct nhca_ring_hdr *hdr = f->cq.ring.hdr;
	int i;

	f->cq.last_event_cons = BIT(31) + 1;
	f->cq.solicited = BIT(31) + 3;
	for (i = 0; i < 4; i++)
		post(f, i, 0, false, NULL);
	hdr->cons += 3;
	hdr->arm_seq = 4 | NHCA_ARM_SOLICITED;
	nhca_cq_arm(&f->cq, IB_CQ_SOLICITED);
	KUNIT_EXPECT_EQ(test, f->comp_events, 0);
	hdr->arm_seq = 8 | NHCA_ARM_NEXT_COMP;
	nhca_cq_arm(&f->cq, IB_CQ_NEXT_COMP);
	KUNIT_EXPECT_EQ(test, f->comp_events, 1);
	cq_done(f);
}

/*
 * nhca_cq_post() does not call the handlers of a kernel consumer, because it may run in the call
 * chain of the consumer's own post_send.  One call of the handler serves several completions.
 */
static void cq_call_chain_test(struct kunit *test)
{
	struct cq_fixture *f = cq_make(test, 4, 0, false);
	struct nhca_cqe cqe;

	f->cq.armed = IB_CQ_NEXT_COMP;
	local_bh_disable();
	post(f, 1, 0, false, NULL);
	post(f, 2, 0, false, NULL);
	KUNIT_EXPECT_EQ(test, f->comp_events, 0);
	local_bh_enable();
	KUNIT_EXPECT_EQ(test, f->comp_events, 1);
	KUNIT_EXPECT_EQ(test, f->cq.armed, 0);
	post(f, 3, 0, false, NULL);
	KUNIT_EXPECT_EQ(test, f->comp_events, 1);

	/* no event if the consumer has polled everything, but one for the next completion */
	f->cq.armed = IB_CQ_NEXT_COMP;
	local_bh_disable();
	post(f, 4, 0, false, NULL);
	while (cq_poll_one(&f->cq, &cqe))
		;
	local_bh_enable();
	KUNIT_EXPECT_EQ(test, f->comp_events, 1);
	KUNIT_EXPECT_EQ(test, f->cq.armed, IB_CQ_NEXT_COMP);
	post(f, 5, 0, false, NULL);
	KUNIT_EXPECT_EQ(test, f->comp_events, 2);

	/* the handler of asynchronous events is not called there either */
	local_bh_disable();
	while (!post(f, 6, 0, false, NULL))
		;
	KUNIT_EXPECT_EQ(test, f->err_events, 0);
	local_bh_enable();
	KUNIT_EXPECT_EQ(test, f->err_events, 1);
	cq_done(f);
}

/* Handlers run without the CQ's lock and may be missing.  A dying CQ raises no events. */
static void cq_handler_test(struct kunit *test)
{
	struct cq_fixture *f = cq_make(test, 4, 0, false);

	/* the handler can poll, because the lock is free */
	f->poll_in_handler = true;
	f->cq.armed = IB_CQ_NEXT_COMP;
	post(f, 1, 0, false, NULL);
	KUNIT_EXPECT_EQ(test, f->polled_in_handler, 1);

	/* while the CQ is being destroyed it raises no event */
	f->cq.dying = true;
	f->cq.armed = IB_CQ_NEXT_COMP;
	while (!post(f, 1, 0, false, NULL))
		;
	KUNIT_EXPECT_EQ(test, f->comp_events, 1);
	KUNIT_EXPECT_EQ(test, f->err_events, 0);
	cq_done(f);

	/* a consumer without handlers */
	f = cq_make(test, 1, 0, false);
	f->cq.ibcq.comp_handler = NULL;
	f->cq.ibcq.event_handler = NULL;
	f->cq.armed = IB_CQ_NEXT_COMP;
	KUNIT_EXPECT_EQ(test, post(f, 1, 0, false, NULL), 0);
	KUNIT_EXPECT_EQ(test, post(f, 1, 0, false, NULL), -ENOSPC);
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
		post(f, i, 0, false, NULL);
		/* the third completion after each arming raises the event */
		KUNIT_EXPECT_EQ_MSG(test, f->comp_events, i / 3, "completion %d", i);
		if (!(i % 3))
			poll_and_arm(f);
	}
	/* solicited and failed completions are not deferred */
	post(f, 8, 0, true, NULL);
	KUNIT_EXPECT_EQ(test, f->comp_events, 3);
	poll_and_arm(f);
	post(f, 9, IB_WC_WR_FLUSH_ERR, false, NULL);
	KUNIT_EXPECT_EQ(test, f->comp_events, 4);

	/* the end of moderation raises the deferred event, and later events are immediate */
	poll_and_arm(f);
	post(f, 10, 0, false, NULL);
	KUNIT_EXPECT_EQ(test, f->comp_events, 4);
	nhca_cq_moderate(&f->cq, 0, 0);
	KUNIT_EXPECT_EQ(test, f->comp_events, 5);
	poll_and_arm(f);
	post(f, 11, 0, false, NULL);
	KUNIT_EXPECT_EQ(test, f->comp_events, 6);

	/* a count of one, or a period of 0, is no moderation */
	nhca_cq_moderate(&f->cq, 1, U16_MAX);
	poll_and_arm(f);
	post(f, 12, 0, false, NULL);
	nhca_cq_moderate(&f->cq, 9, 0);
	poll_and_arm(f);
	post(f, 13, 0, false, NULL);
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

	/* count of 100, and any count (0): the timer raises the event of an armed CQ */
	for (i = 0; i < 6; i++) {
		nhca_cq_moderate(&f->cq, i % 2 ? 100 : 0, 500);
		if (i < 4)
			nhca_cq_arm(&f->cq, IB_CQ_NEXT_COMP);
		post(f, i, 0, false, NULL);
		cq_wait_period(f);
		KUNIT_EXPECT_EQ_MSG(test, f->comp_events, min(i + 1, 4U), "period %u", i);
		KUNIT_EXPECT_TRUE(test, cq_poll_one(&f->cq, &cqe));
	}

	/* a kernel consumer has polled the entry, and may be gone: no event */
	local_bh_disable();
	nhca_cq_arm(&f->cq, IB_CQ_NEXT_COMP);
	post(f, 9, 0, false, NULL);
	KUNIT_EXPECT_TRUE(test, hrtimer_is_queued(&f->cq.timer));
	KUNIT_EXPECT_TRUE(test, cq_poll_one(&f->cq, &cqe));
	local_bh_enable();
	cq_wait_period(f);
	KUNIT_EXPECT_EQ(test, f->comp_events, 4);

	/* a CQ that is being destroyed raises no event */
	local_bh_disable();
	post(f, 10, 0, false, NULL);
	KUNIT_EXPECT_TRUE(test, hrtimer_is_queued(&f->cq.timer));
	local_bh_enable();
	nhca_cq_stop(&f->cq);
	KUNIT_EXPECT_FALSE(test, hrtimer_active(&f->cq.timer));
	KUNIT_EXPECT_LE(test, f->comp_events, 5);
	cq_done(f);
}

/* nhca_cq_forget_qp() removes the entries of one QP and keeps the others in order, in any mix. */
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
			KUNIT_ASSERT_EQ(test, post(f, i, 0, false, mix & BIT(i) ? gone : stays), 0);
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

	/* the kernel does not change entries in the ring of a user CQ */
	f = cq_make(test, 8, 0, true);
	post(f, 1, 0, false, NULL);
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
	KUNIT_CASE(cq_arm_test),
	KUNIT_CASE(cq_arm_late_test),
	KUNIT_CASE(cq_arm_seq_test),
	KUNIT_CASE(cq_arm_seq_doorbell_test),
	KUNIT_CASE(cq_arm_seq_wrap_test),
	KUNIT_CASE(cq_call_chain_test),
	KUNIT_CASE(cq_handler_test),
	KUNIT_CASE(cq_moderate_count_test),
	KUNIT_CASE(cq_moderate_period_test),
	KUNIT_CASE(cq_forget_test),
	{}
};

static struct kunit_suite cq_suite = {
	.name = "nhca_cq",
	.test_cases = cq_cases,
};

kunit_test_suite(cq_suite);
