// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit: pages on loan to the network stack.
 */
#include <kunit/test.h>
#include <linux/atomic.h>
#include <linux/delay.h>
#include <linux/jiffies.h>

#include "threads.h"
#include "../memory/lend.h"

static void nothing_out_test(struct kunit *test)
{
	int loan;

	KUNIT_EXPECT_TRUE(test, nhca_lend_wait());
	loan = nhca_lend();
	nhca_lend_return(loan);
	KUNIT_EXPECT_TRUE(test, nhca_lend_wait());
}

struct waiter {
	atomic_t state;
};

enum { WAITS, CAME_BACK, GAVE_UP };

static int wait_thread(void *arg)
{
	struct waiter *w = arg;

	atomic_set(&w->state, nhca_lend_wait() ? CAME_BACK : GAVE_UP);
	return 0;
}

/* Who waits goes on when what was out is back, whatever has been lent since. */
static void later_test(struct kunit *test)
{
	struct waiter w = { .state = ATOMIC_INIT(WAITS) };
	struct task_struct *t;
	int before, later, i;

	before = nhca_lend();
	t = test_thread_start(wait_thread, &w, 0);
	KUNIT_ASSERT_FALSE(test, IS_ERR(t));
	msleep(100);
	KUNIT_EXPECT_EQ(test, atomic_read(&w.state), WAITS);
	later = nhca_lend();
	nhca_lend_return(before);
	for (i = 0; i < 40 && atomic_read(&w.state) == WAITS; i++)
		msleep(20);
	KUNIT_EXPECT_EQ(test, atomic_read(&w.state), CAME_BACK);
	nhca_lend_return(later);
	test_thread_stop(t);
}

/* A packet that is never sent holds up nobody for long, and not everybody in turn. */
static void stuck_test(struct kunit *test)
{
	unsigned long begun = jiffies;
	int loan = nhca_lend(), i;

	KUNIT_EXPECT_FALSE(test, nhca_lend_wait());
	KUNIT_EXPECT_TRUE(test, time_after_eq(jiffies, begun + HZ / 2));
	begun = jiffies;
	for (i = 0; i < 10; i++)
		KUNIT_EXPECT_FALSE(test, nhca_lend_wait());
	KUNIT_EXPECT_TRUE(test, time_before(jiffies, begun + 5 * HZ));

	/* and when it has been sent after all, waiting is worth while again */
	nhca_lend_return(loan);
	for (i = 0; i < 100 && !nhca_lend_wait(); i++)
		msleep(20);
	KUNIT_EXPECT_LT(test, i, 100);
	KUNIT_EXPECT_TRUE(test, nhca_lend_wait());
}

static struct kunit_case nhca_lend_cases[] = {
	KUNIT_CASE(nothing_out_test),
	KUNIT_CASE(later_test),
	KUNIT_CASE(stuck_test),
	{}
};

static struct kunit_suite nhca_lend_suite = {
	.name = "nhca_lend",
	.test_cases = nhca_lend_cases,
};

kunit_test_suite(nhca_lend_suite);
