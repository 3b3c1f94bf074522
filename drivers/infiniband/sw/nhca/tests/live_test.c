// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit: live sections, snapshots of them, and nhca_live_wait(): when the wait ends, every earlier
 * section has ended.
 */
#include <kunit/test.h>
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/jiffies.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/timer.h>
#include <linux/workqueue.h>

#include "../compat.h"
#include "../memory/live.h"
#include "threads.h"

#define LIVE_ROUNDS	100
#define LIVE_CLOSES	100000
#define LIVE_TIME	(2 * HZ)
#define LIVE_POISON	0xa5
#define LIVE_BYTES	64
/* microseconds after which another CPU is taken for hung; a busy host may pause a virtual CPU */
#define LIVE_HUNG_US	10000000

static u32 *live_view(struct kunit *test)
{
	u32 *view = kunit_kcalloc(test, nr_cpu_ids, sizeof(*view), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, view);
	return view;
}

static bool live_view_is_empty(const u32 *view)
{
	return !memchr_inv(view, 0, nr_cpu_ids * sizeof(*view));
}

/* ---- one CPU and a snapshot ---- */

/* A snapshot is empty if no CPU is in a live section. */
static void live_snapshot_empty(struct kunit *test)
{
	u32 *view = live_view(test);

	memset(view, 0xff, nr_cpu_ids * sizeof(*view));
	KUNIT_EXPECT_EQ(test, nhca_live_snapshot(view, -1), 0);
	KUNIT_EXPECT_TRUE(test, live_view_is_empty(view));
	KUNIT_EXPECT_EQ(test, nhca_live_left(view), 0);
	nhca_live_wait();
}

/* A snapshot contains a section that began before it, until the section ends. */
static void live_snapshot_has_earlier_sections(struct kunit *test)
{
	unsigned int live, left, after, cpu;
	u32 *view = live_view(test), word;

	local_bh_disable();
	nhca_live_enter();
	cpu = smp_processor_id();
	live = nhca_live_snapshot(view, -1);
	left = nhca_live_left(view);
	word = view[cpu];
	nhca_live_exit();
	after = nhca_live_left(view);
	local_bh_enable();

	KUNIT_EXPECT_EQ(test, live, 1);
	KUNIT_EXPECT_EQ(test, word & 1, 1);
	KUNIT_EXPECT_EQ(test, left, 1);
	KUNIT_EXPECT_EQ(test, after, 0);
	KUNIT_EXPECT_TRUE(test, live_view_is_empty(view));
}

/* A snapshot contains no section that begins after it, even on a CPU that it contained before. */
static void live_snapshot_lacks_later_sections(struct kunit *test)
{
	unsigned int live, left, again;
	u32 *view = live_view(test);

	local_bh_disable();
	nhca_live_snapshot(view, -1);
	nhca_live_enter();
	left = nhca_live_left(view);
	nhca_live_exit();

	/* the same with a CPU whose earlier section is in the snapshot */
	nhca_live_enter();
	live = nhca_live_snapshot(view, -1);
	nhca_live_exit();
	nhca_live_enter();
	again = nhca_live_left(view);
	nhca_live_exit();
	local_bh_enable();

	KUNIT_EXPECT_EQ(test, left, 0);
	KUNIT_EXPECT_EQ(test, live, 1);
	KUNIT_EXPECT_EQ(test, again, 0);
}

/*
 * An inner section does not end the outer section: the CPU stays in the snapshot until the outer
 * section has ended.
 */
static void live_sections_nest(struct kunit *test)
{
	unsigned int outer, inner, still, left, gone;
	u32 *view = live_view(test);

	local_bh_disable();
	nhca_live_enter();
	outer = nhca_live_snapshot(view, -1);
	nhca_live_enter();
	inner = nhca_live_left(view);
	nhca_live_exit();
	still = nhca_live_left(view);
	nhca_live_exit();
	left = nhca_live_left(view);
	gone = nhca_live_snapshot(view, -1);
	local_bh_enable();

	KUNIT_EXPECT_EQ(test, outer, 1);
	KUNIT_EXPECT_EQ(test, inner, 1);
	KUNIT_EXPECT_EQ(test, still, 1);
	KUNIT_EXPECT_EQ(test, left, 0);
	KUNIT_EXPECT_EQ(test, gone, 0);
}

/*
 * A snapshot can leave out a CPU: nhca_live_wait() leaves out its own CPU, because this CPU cannot
 * end a section while it waits.
 */
static void live_snapshot_skips_own_cpu(struct kunit *test)
{
	u32 *view = live_view(test);
	unsigned int live;

	local_bh_disable();
	nhca_live_enter();
	live = nhca_live_snapshot(view, smp_processor_id());
	nhca_live_exit();
	local_bh_enable();
	KUNIT_EXPECT_EQ(test, live, 0);
	KUNIT_EXPECT_TRUE(test, live_view_is_empty(view));
}

/* The sequence number of a CPU may wrap: an odd value marks a section before and after the wrap. */
static void live_seq_wraps(struct kunit *test)
{
	u32 *view = live_view(test), word[2];
	unsigned int live[2], left[2], i;

	local_bh_disable();
	preempt_disable();
	this_cpu_write(nhca_live.seq, U32_MAX - 1);
	for (i = 0; i < 2; i++) {
		nhca_live_enter();
		live[i] = nhca_live_snapshot(view, -1);
		word[i] = view[smp_processor_id()];
		nhca_live_exit();
		left[i] = nhca_live_left(view);
	}
	preempt_enable();
	local_bh_enable();

	KUNIT_EXPECT_EQ(test, word[0], U32_MAX);
	KUNIT_EXPECT_EQ(test, word[1], 1);
	for (i = 0; i < 2; i++) {
		KUNIT_EXPECT_EQ(test, live[i], 1);
		KUNIT_EXPECT_EQ(test, left[i], 0);
	}
}

/* ---- two CPUs ---- */

/**
 * struct live_pair - a thread in live sections (the holder), and a thread that waits (the waiter)
 * @waiter: CPU of the waiter
 * @turn:  round that the waiter has requested
 * @begun: round in whose first section the holder is
 * @done:  round in which the wait has ended
 * @data:  round; written at the end of the first section, with a plain store
 * @early: rounds in which the wait ended before the first section
 * @late:  rounds in which the wait did not end during the second section, which begins later than
 *         the wait
 */
struct live_pair {
	int waiter;
	int turn;
	int begun;
	int done;
	int data;
	int early;
	int late;
};

/* Return: true if the waiter has a snapshot of the section that this CPU is in. */
static bool live_am_in_snapshot(const struct live_pair *p)
{
	const u32 *view = per_cpu(nhca_live.view, p->waiter);
	u32 word;

	/* data_race(): the waiter's CPU, which writes the view, expects no other reader */
	word = data_race(READ_ONCE(view[smp_processor_id()]));
	return word == this_cpu_read(nhca_live.seq);
}

static void live_holder_round(struct live_pair *p, int r)
{
	unsigned int us;

	nhca_live_enter();
	/*
	 * pairs with live_waiter(), so that live_waiter() waits for this section and not for an
	 * earlier section
	 */
	smp_store_release(&p->begun, r);
	for (us = 0; us < LIVE_HUNG_US && !live_am_in_snapshot(p); us++)
		udelay(1);
	/* the wait must not end before this delay ends */
	udelay(r % 8 * 25);
	p->data = r;
	nhca_live_exit();

	/* this section begins after the wait has begun, and ends after the wait has ended */
	nhca_live_enter();
	for (us = 0; us < LIVE_HUNG_US && READ_ONCE(p->done) != r; us++)
		udelay(1);
	if (READ_ONCE(p->done) != r)
		WRITE_ONCE(p->late, p->late + 1);
	nhca_live_exit();
}

static int live_holder(void *arg)
{
	struct live_pair *p = arg;
	int r;

	for (r = 1; r <= LIVE_ROUNDS; r++) {
		while (READ_ONCE(p->turn) != r) {
			if (kthread_should_stop())
				return 0;
			cpu_relax();
			cond_resched();
		}
		local_bh_disable();
		live_holder_round(p, r);
		local_bh_enable();
	}
	return 0;
}

static long live_waiter(void *arg)
{
	struct live_pair *p = arg;
	int r;

	for (r = 1; r <= LIVE_ROUNDS && !p->early && !READ_ONCE(p->late); r++) {
		WRITE_ONCE(p->turn, r);
		/* pairs with the release in live_holder_round() */
		while (smp_load_acquire(&p->begun) != r)
			cpu_relax();
		nhca_live_wait();
		/* a data race if the section has not ended, so KCSAN would report it too */
		if (p->data != r)
			p->early++;
		WRITE_ONCE(p->done, r);
		cond_resched();
	}
	return r - 1;
}

/* nhca_live_wait() waits for sections that began before it, and for no later sections. */
static void live_wait_for_earlier_sections(struct kunit *test)
{
	unsigned int a = cpumask_first(cpu_online_mask), b = cpumask_next(a, cpu_online_mask);
	struct task_struct *holder;
	struct live_pair *p;

	if (b >= nr_cpu_ids)
		kunit_skip(test, "needs two CPUs");
	p = kunit_kzalloc(test, sizeof(*p), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, p);
	p->waiter = a;
	holder = test_thread_start(live_holder, p, b);
	KUNIT_ASSERT_FALSE(test, IS_ERR(holder));
	KUNIT_EXPECT_EQ(test, work_on_cpu(a, live_waiter, p), LIVE_ROUNDS);
	test_thread_stop(holder);
	KUNIT_EXPECT_EQ(test, p->early, 0);
	KUNIT_EXPECT_EQ(test, p->late, 0);
}

/* ---- all CPUs ---- */

/**
 * struct live_worker - a thread that writes while a flag is set
 * @race:  the race of the thread
 * @task:  the thread
 * @looks: sections in which the flag was set
 * @bytes: memory that the thread writes, with plain stores
 */
struct live_worker {
	struct live_race *race;
	struct task_struct *task;
	unsigned long looks;
	u8 bytes[LIVE_BYTES];
} ____cacheline_aligned;

/**
 * struct live_race - workers on all CPUs, and one thread that closes the flag
 * @open:   the flag, like the valid bit of a key
 * @timer:  its function also calls nhca_live_wait(), in softirq, perhaps during another call
 * @waits:  number of waits of @timer
 * @dirty:  number of closes that found bytes written since the previous close
 * @broken: number of closes after which bytes were written
 * @n:      number of workers
 * @worker: the workers
 */
struct live_race {
	bool open;
	struct timer_list timer;
	unsigned long waits;
	unsigned long dirty;
	unsigned long broken;
	unsigned int n;
	struct live_worker worker[];
};

/* let other threads run; on a machine with one CPU, even if the scheduler does not need this CPU */
static void live_let_run(void)
{
	if (num_online_cpus() == 1)
		schedule();
	else
		cond_resched();
}

/*
 * Let workers run after a close. On a machine with one CPU, sleep in some rounds: the wakeup of
 * this thread can interrupt a worker at any instruction.
 */
static void live_let_use(unsigned int round)
{
	ndelay(round % 32 * 100);
	if (num_online_cpus() == 1 && !(round % 1024))
		schedule_timeout_uninterruptible(1);
	live_let_run();
}

static int live_worker_run(void *arg)
{
	struct live_worker *w = arg;
	unsigned int n = 0;

	while (!kthread_should_stop()) {
		local_bh_disable();
		nhca_live_enter();
		if (READ_ONCE(w->race->open)) {
			/* a longer delay between check and write makes the race more likely */
			ndelay(n % 8 * 100);
			memset(w->bytes, n, sizeof(w->bytes));
			w->looks++;
		}
		nhca_live_exit();
		/*
		 * a bottom half that closes keys calls nhca_live_wait(), so a worker does this too,
		 * every 64 rounds
		 */
		if (!(++n % 64))
			nhca_live_wait();
		local_bh_enable();
		live_let_run();
	}
	return 0;
}

static void live_race_timer(struct timer_list *t)
{
	struct live_race *race = timer_container_of(race, t, timer);

	nhca_live_wait();
	WRITE_ONCE(race->waits, race->waits + 1);
	mod_timer(t, jiffies + 1);
}

static void live_race_close(struct live_race *race, unsigned int round)
{
	bool dirty = false, broken = false;
	unsigned int i;

	WRITE_ONCE(race->open, false);
	nhca_live_wait();
	/*
	 * the flag is cleared: if a worker wrote at this time, KCSAN would report the following
	 * accesses
	 */
	for (i = 0; i < race->n; i++) {
		u8 *bytes = race->worker[i].bytes;

		dirty |= !!memchr_inv(bytes, LIVE_POISON, LIVE_BYTES);
		memset(bytes, LIVE_POISON, LIVE_BYTES);
	}
	ndelay(round % 16 * 100);
	for (i = 0; i < race->n; i++)
		broken |= !!memchr_inv(race->worker[i].bytes, LIVE_POISON, LIVE_BYTES);
	race->dirty += dirty;
	race->broken += broken;
	/* allow the workers to write again; pairs with the READ_ONCE() in live_worker_run() */
	smp_store_release(&race->open, true);
}

/*
 * No worker writes after the flag was cleared and nhca_live_wait() has returned, on any CPU and
 * with other waits at the same time.
 */
static void live_no_write_after_wait(struct kunit *test)
{
	unsigned long begun = jiffies, looks = 0;
	unsigned int cpu, i, round;
	struct live_race *race;

	race = kunit_kzalloc(test, struct_size(race, worker, num_online_cpus()), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, race);
	timer_setup(&race->timer, live_race_timer, 0);
	mod_timer(&race->timer, jiffies + 1);
	for_each_online_cpu(cpu) {
		struct live_worker *w = &race->worker[race->n];

		w->race = race;
		memset(w->bytes, LIVE_POISON, LIVE_BYTES);
		w->task = test_thread_start(live_worker_run, w, cpu);
		KUNIT_EXPECT_FALSE(test, IS_ERR(w->task));
		race->n++;
	}

	for (round = 0; round < LIVE_CLOSES &&
	     test_goes_on(begun, LIVE_TIME, race->dirty && READ_ONCE(race->waits)); round++) {
		live_race_close(race, round);
		live_let_use(round);
	}

	for (i = 0; i < race->n; i++) {
		test_thread_stop(race->worker[i].task);
		looks += race->worker[i].looks;
	}
	timer_shutdown_sync(&race->timer);
	kunit_info(test, "%u closes, %lu of them after writes; %lu writes, %lu waits in softirq",
		   round, race->dirty, looks, race->waits);
	KUNIT_EXPECT_EQ(test, race->broken, 0);
	KUNIT_EXPECT_GT(test, race->dirty, 0);
	KUNIT_EXPECT_GT(test, race->waits, 0);
}

static struct kunit_case live_cases[] = {
	KUNIT_CASE(live_snapshot_empty),
	KUNIT_CASE(live_snapshot_has_earlier_sections),
	KUNIT_CASE(live_snapshot_lacks_later_sections),
	KUNIT_CASE(live_sections_nest),
	KUNIT_CASE(live_snapshot_skips_own_cpu),
	KUNIT_CASE(live_seq_wraps),
	KUNIT_CASE(live_wait_for_earlier_sections),
	KUNIT_CASE(live_no_write_after_wait),
	{}
};

static struct kunit_suite live_suite = {
	.name = "nhca_live",
	.test_cases = live_cases,
};

kunit_test_suite(live_suite);
