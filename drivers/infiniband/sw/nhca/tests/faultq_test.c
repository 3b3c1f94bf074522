// SPDX-License-Identifier: GPL-2.0
/* KUnit: page faults that do not end do not block page faults of other processes and users. */
#include <kunit/test.h>
#include <linux/completion.h>
#include <linux/delay.h>

#include "../memory/faultq.h"
#include "../memory/odp.h"
#include "../user.h"
#include "threads.h"

#define MMS	40u
#define EACH	20u	/* work items of each address space */
#define USER	4711u
#define OTHER	4712u
#define NOBODY	U32_MAX

/**
 * struct job - work that blocks, as a page fault may
 * @w:    the work
 * @q:    queue of the work
 * @kind: workqueue that runs the work
 * @gate: the work ends when @gate completes
 * @ran:  completes when a worker has the work
 */
struct job {
	struct nhca_faultq_work w;
	struct nhca_faultq *q;
	enum nhca_faultq_kind kind;
	struct completion *gate;
	struct completion ran;
};

static atomic_t running, ended;

static void job_work(struct work_struct *work)
{
	struct job *j = container_of(work, struct job, w.work);

	atomic_inc(&running);
	complete(&j->ran);
	wait_for_completion(j->gate);
	atomic_dec(&running);
	nhca_faultq_end(j->q, j->kind);
	atomic_inc(&ended);
}

static void job_add(struct job *j, struct nhca_faultq *q, enum nhca_faultq_kind kind,
		    struct completion *gate)
{
	j->q = q;
	j->kind = kind;
	j->gate = gate;
	init_completion(&j->ran);
	INIT_WORK(&j->w.work, job_work);
	nhca_faultq_add(q, kind, &j->w);
}

static bool job_ran(struct job *j)
{
	return wait_for_completion_timeout(&j->ran, TEST_PATIENCE);
}

/* Expect that @n workers run work, and that no more workers start. */
static void expect_running(struct kunit *test, u32 n)
{
	u32 i;

	for (i = 0; i < 100 && atomic_read(&running) < n; i++)
		msleep(50);
	msleep(50);
	KUNIT_EXPECT_EQ(test, atomic_read(&running), n);
}

/*
 * Return: the queue of address space @i for user @uid (NOBODY: for no user). nhca_faultq_get() only
 * compares the pointer to the address space, so the pointer may be invalid.
 */
static struct nhca_faultq *queue(struct kunit *test, u32 i, u32 uid)
{
	struct nhca_user *user = uid == NOBODY ? NULL : nhca_user_get(&nhca_host_users, uid);
	struct nhca_faultq *q;

	KUNIT_ASSERT_FALSE(test, IS_ERR(user));
	q = nhca_faultq_get((struct mm_struct *)((i + 1ul) << 12), user);
	nhca_user_put(user);
	KUNIT_ASSERT_NOT_NULL(test, q);
	return q;
}

/* Let all work end, and wait for its end. */
static void finish(struct kunit *test, struct completion *gate, u32 jobs)
{
	u32 i;

	complete_all(gate);
	for (i = 0; i < 600 && atomic_read(&ended) < jobs; i++)
		msleep(50);
	KUNIT_ASSERT_EQ(test, atomic_read(&ended), jobs);
	KUNIT_EXPECT_EQ(test, atomic_read(&running), 0);
	atomic_set(&ended, 0);
}

/*
 * Processes of one user have much work that does not end. These processes get only the workers of
 * one user, and work of another user runs. When the gate lets work end, all work runs.
 */
static void other_user(struct kunit *test, enum nhca_faultq_kind kind, u32 limit)
{
	struct job *jobs = kunit_kcalloc(test, MMS * EACH, sizeof(*jobs), GFP_KERNEL);
	DECLARE_COMPLETION_ONSTACK(gate);
	struct nhca_faultq *q[MMS], *other;
	struct job *j = kunit_kzalloc(test, sizeof(*j), GFP_KERNEL);
	u32 i;

	KUNIT_ASSERT_TRUE(test, jobs && j);
	for (i = 0; i < MMS; i++)
		q[i] = queue(test, i, USER);
	other = queue(test, MMS, OTHER);
	for (i = 0; i < MMS * EACH; i++)
		job_add(&jobs[i], q[i / EACH], kind, &gate);
	expect_running(test, limit);
	job_add(j, other, kind, &gate);
	KUNIT_EXPECT_TRUE(test, job_ran(j));
	finish(test, &gate, MMS * EACH + 1);
	for (i = 0; i < MMS; i++)
		nhca_faultq_put(q[i]);
	nhca_faultq_put(other);
}

static void other_user_test(struct kunit *test)
{
	other_user(test, NHCA_FAULTQ_AWAITED, NHCA_FAULTQ_USER);
}

static void other_user_prefetch_test(struct kunit *test)
{
	other_user(test, NHCA_FAULTQ_PREFETCH, NHCA_FAULTQ_PREFETCH_USER);
}

/* If the work of one process does not end, other processes of the same user still get workers. */
static void other_process(struct kunit *test, u32 uid)
{
	struct job *jobs = kunit_kcalloc(test, 2 * NHCA_FAULTQ_USER, sizeof(*jobs), GFP_KERNEL);
	struct nhca_faultq *q = queue(test, 0, uid), *other = queue(test, 1, uid);
	DECLARE_COMPLETION_ONSTACK(gate);
	struct job *j = kunit_kzalloc(test, sizeof(*j), GFP_KERNEL);
	u32 i;

	KUNIT_ASSERT_TRUE(test, jobs && j);
	for (i = 0; i < 2 * NHCA_FAULTQ_USER; i++)
		job_add(&jobs[i], q, NHCA_FAULTQ_AWAITED, &gate);
	expect_running(test, NHCA_FAULTQ_MM);
	job_add(j, other, NHCA_FAULTQ_AWAITED, &gate);
	KUNIT_EXPECT_TRUE(test, job_ran(j));
	finish(test, &gate, 2 * NHCA_FAULTQ_USER + 1);
	nhca_faultq_put(q);
	nhca_faultq_put(other);
}

static void other_process_test(struct kunit *test)
{
	other_process(test, USER);
	other_process(test, NOBODY);
}

/* When workers become free, the processes of a user get them in turn. */
static void turns_test(struct kunit *test)
{
	const u32 full = NHCA_FAULTQ_USER / NHCA_FAULTQ_MM;
	struct job *jobs = kunit_kcalloc(test, 64 * (full + 1), sizeof(*jobs), GFP_KERNEL);
	DECLARE_COMPLETION_ONSTACK(first);
	DECLARE_COMPLETION_ONSTACK(gate);
	struct nhca_faultq *q[NHCA_FAULTQ_USER / NHCA_FAULTQ_MM + 1];
	u32 i, k;

	KUNIT_ASSERT_NOT_NULL(test, jobs);
	for (i = 0; i <= full; i++)
		q[i] = queue(test, i, USER);
	/*
	 * the other processes use all workers and have more work in their queues when work of the
	 * last process is queued
	 */
	for (i = 0; i <= full; i++)
		for (k = 0; k < 64; k++)
			job_add(&jobs[64 * i + k], q[i], NHCA_FAULTQ_AWAITED,
				!i && !k ? &first : &gate);
	KUNIT_EXPECT_TRUE(test, job_ran(&jobs[0]));
	KUNIT_EXPECT_FALSE(test, completion_done(&jobs[64 * full].ran));
	complete(&first);
	KUNIT_EXPECT_TRUE(test, job_ran(&jobs[64 * full]));
	finish(test, &gate, 64 * (full + 1));
	for (i = 0; i <= full; i++)
		nhca_faultq_put(q[i]);
}

/* An address space has one queue, even if nhca_faultq_get() is called for another user. */
static void get_test(struct kunit *test)
{
	struct nhca_faultq *q = queue(test, 0, USER), *again = queue(test, 0, OTHER);
	struct nhca_faultq *other = queue(test, 1, USER);

	KUNIT_EXPECT_PTR_EQ(test, again, q);
	KUNIT_EXPECT_PTR_NE(test, other, q);
	nhca_faultq_put(other);
	nhca_faultq_put(again);
	nhca_faultq_put(q);
}

static struct kunit_case faultq_cases[] = {
	KUNIT_CASE(other_user_test),
	KUNIT_CASE(other_user_prefetch_test),
	KUNIT_CASE(other_process_test),
	KUNIT_CASE(turns_test),
	KUNIT_CASE(get_test),
	{}
};

static struct kunit_suite faultq_suite = {
	.name = "nhca_faultq",
	.test_cases = faultq_cases,
};

kunit_test_suite(faultq_suite);
