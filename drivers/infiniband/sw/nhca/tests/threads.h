/* SPDX-License-Identifier: GPL-2.0 */
/* Threads of tests, each bound to a CPU, and how long they race. */
#ifndef NHCA_TEST_THREADS_H
#define NHCA_TEST_THREADS_H

#include <linux/err.h>
#include <linux/jiffies.h>
#include <linux/kthread.h>
#include <linux/sched/task.h>

/*
 * Time in jiffies that a test waits for an event that must happen. The time is long (60 s), because
 * a busy host may not run the guest with the tests for several seconds.
 */
#define TEST_PATIENCE	(60 * HZ)

/*
 * Start a thread. @fn may return before test_thread_stop(), because a reference to the task is
 * held.
 * Return: the thread, for test_thread_stop(); or ERR_PTR.
 */
static inline struct task_struct *test_thread_start(int (*fn)(void *), void *arg, int cpu)
{
	struct task_struct *t = kthread_create(fn, arg, "nhca_test/%d", cpu);

	if (IS_ERR(t))
		return t;
	kthread_bind(t, cpu);
	get_task_struct(t);
	wake_up_process(t);
	return t;
}

static inline void test_thread_stop(struct task_struct *t)
{
	if (IS_ERR_OR_NULL(t))
		return;
	kthread_stop(t);
	put_task_struct(t);
}

/*
 * Return: true if a race that began at @begun is to go on. The race lasts @time jiffies, and longer
 * while @enough is false, because on a busy machine the threads may get little CPU time in @time.
 * The race ends after a minute in any case; then @enough is false, and the caller lets the test
 * fail.
 */
static inline bool test_goes_on(unsigned long begun, unsigned long time, bool enough)
{
	return time_before(jiffies, begun + time) ||
	       (!enough && time_before(jiffies, begun + TEST_PATIENCE));
}

#endif /* NHCA_TEST_THREADS_H */
