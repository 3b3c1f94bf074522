// SPDX-License-Identifier: GPL-2.0
/* KUnit: two threads resize a CQ at the same time, which the RDMA core allows. */
#include <linux/cpumask.h>

#include "../verbs/objects.h"
#include "cq_fixture.h"
#include "threads.h"

#define ENTRIES		2000
#define RESIZES		300

struct resizer {
	struct nhca_cq *cq;
	u32 sizes[2];
	u32 failed;
	struct completion done;
};

static int resize_again_and_again(void *arg)
{
	struct resizer *r = arg;
	u32 i;

	for (i = 0; i < RESIZES; i++)
		r->failed += !!nhca_resize_cq(&r->cq->ibcq, r->sizes[i % 2], NULL);
	complete(&r->done);
	return 0;
}

/*
 * No completion is lost, and no thread copies from a ring that the other thread has freed (KASAN).
 */
static void two_threads_test(struct kunit *test)
{
	struct resizer r[2] = {
		{ .sizes = { 2 * ENTRIES, 8 * ENTRIES } },
		{ .sizes = { 4 * ENTRIES, ENTRIES } },
	};
	struct cq_fixture *f = cq_make(test, ENTRIES, -100, false);
	struct task_struct *threads[2];
	struct nhca_cqe cqe;
	u32 i;

	for (i = 0; i < ENTRIES; i++)
		KUNIT_ASSERT_EQ(test, cq_post(f, i, IB_WC_SUCCESS, false, NULL), 0);
	for (i = 0; i < 2; i++) {
		r[i].cq = &f->cq;
		init_completion(&r[i].done);
	}
	threads[0] = test_thread_start(resize_again_and_again, &r[0],
				       cpumask_first(cpu_online_mask));
	threads[1] = test_thread_start(resize_again_and_again, &r[1],
				       cpumask_last(cpu_online_mask));
	for (i = 0; i < 2; i++) {
		if (!IS_ERR(threads[i]))
			wait_for_completion(&r[i].done);
		KUNIT_EXPECT_FALSE(test, IS_ERR(threads[i]));
		KUNIT_EXPECT_EQ(test, r[i].failed, 0);
		test_thread_stop(threads[i]);
	}
	for (i = 0; i < ENTRIES; i++) {
		KUNIT_ASSERT_TRUE(test, cq_poll_one(&f->cq, &cqe));
		KUNIT_EXPECT_EQ(test, cqe.wr_id, i);
	}
	KUNIT_EXPECT_FALSE(test, cq_poll_one(&f->cq, &cqe));
	cq_done(f);
}

static struct kunit_case resize_cases[] = {
	KUNIT_CASE(two_threads_test),
	{}
};

static struct kunit_suite resize_suite = {
	.name = "nhca_cq_resize",
	.test_cases = resize_cases,
};

kunit_test_suite(resize_suite);
