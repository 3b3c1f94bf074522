// SPDX-License-Identifier: GPL-2.0
/* KUnit: nhca_cq_forget_qp() removes entries in steps, while QPs post and the consumer polls. */
#include <kunit/test.h>

#include "../queue/cq.h"

#define MANY	4096	/* entries in the CQ; every other entry is of the destroyed QP */

static struct nhca_dev forget_dev;
static struct ib_qp gone, stays;

static struct nhca_cq *forget_make(struct kunit *test, u32 start)
{
	struct nhca_cq *cq = kunit_kzalloc(test, sizeof(*cq), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, cq);
	nhca_cq_init(cq, false);
	KUNIT_ASSERT_EQ(test, nhca_ring_alloc(&cq->ring, 2 * MANY, sizeof(struct nhca_cqe), NULL),
			0);
	cq->ibcq.device = &forget_dev.ibdev;
	cq->prod = start;
	cq->cons = start;
	nhca_arm_init(&cq->arm, false, start);
	cq->ring.hdr->prod = start;
	cq->ring.hdr->cons = start;
	return cq;
}

static void forget_post(struct kunit *test, struct nhca_cq *cq, u64 id, struct ib_qp *qp)
{
	struct nhca_cqe cqe = { .wr_id = id, .kernel = (uintptr_t)qp };

	KUNIT_ASSERT_EQ(test, nhca_cq_post(cq, &cqe, false), 0);
}

/* Do one step of nhca_cq_forget_qp(). Return: true if more steps are needed. */
static bool forget_step(struct nhca_cq *cq)
{
	bool more;

	spin_lock_irq(&cq->lock);
	more = nhca_cq_forget_step(cq, &gone);
	spin_unlock_irq(&cq->lock);
	return more;
}

/* Poll an entry as nhca_poll_cq() does. Return: wr_id of the entry; U64_MAX: the CQ is empty. */
static u64 next_id(struct nhca_cq *cq)
{
	struct nhca_cqe *cqe;
	u64 id;

	spin_lock_irq(&cq->lock);
	cqe = nhca_cq_next(cq);
	id = cqe ? cqe->wr_id : U64_MAX;
	nhca_ring_release(&cq->ring, cq->cons);
	spin_unlock_irq(&cq->lock);
	return id;
}

/*
 * Remove the entries of a QP in steps of NHCA_CQ_STEP. After each step the consumer polls @polls
 * entries, and after every @posts steps another QP posts an entry. Expect that all entries of the
 * other QP are polled in order.
 */
static void forget_in_steps(struct kunit *test, u32 start, int polls, int posts)
{
	struct nhca_cq *cq = forget_make(test, start);
	u64 posted = 0, next = 1, id;
	int steps = 0, i;
	bool more;

	for (; posted < MANY; posted++)
		forget_post(test, cq, posted, posted % 2 ? &stays : &gone);
	cq->gap = cq->prod;
	do {
		more = forget_step(cq);
		steps++;
		for (i = 0; i < polls; i++) {
			id = next_id(cq);
			if (id == U64_MAX)
				break;
			/*
			 * the consumer polls this entry of the destroyed QP before a step has
			 * examined the entry
			 */
			if (!(id % 2))
				continue;
			KUNIT_EXPECT_EQ(test, id, next);
			next = id + 2;
		}
		if (posts && !(steps % posts)) {
			forget_post(test, cq, posted + 1, &stays);
			posted += 2;
		}
	} while (more);
	if (!polls)
		KUNIT_EXPECT_EQ(test, steps, MANY / NHCA_CQ_STEP);
	KUNIT_EXPECT_EQ(test, cq->gap_len, 0);
	KUNIT_EXPECT_EQ(test, cq->prod - cq->cons, (posted - next + 1) / 2);
	for (; next < posted; next += 2)
		KUNIT_ASSERT_EQ(test, next_id(cq), next);
	KUNIT_EXPECT_EQ(test, next_id(cq), U64_MAX);
	nhca_cq_stop(cq);
	nhca_ring_free(&cq->ring);
}

/* The other QP's entries stay complete and in order, in each mix of steps, posts and polls. */
static void cq_forget_steps_test(struct kunit *test)
{
	static const u32 starts[] = { 0, 0xfffffc01, 0x7ffffc01 };
	int i, polls, posts;

	for (i = 0; i < ARRAY_SIZE(starts); i++)
		for (polls = 0; polls <= 256; polls = polls ? 4 * polls : 1)
			for (posts = 0; posts < 4; posts++)
				forget_in_steps(test, starts[i], polls, posts);
}

static struct kunit_case forget_cases[] = {
	KUNIT_CASE(cq_forget_steps_test),
	{}
};

static struct kunit_suite forget_suite = {
	.name = "nhca_cq_forget",
	.test_cases = forget_cases,
};

kunit_test_suite(forget_suite);
