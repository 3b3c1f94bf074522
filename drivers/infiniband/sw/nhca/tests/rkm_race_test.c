// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit: the remote key manager while threads open, use and close keys at the same time. A ref is
 * an R_Key reference (struct nhca_rkey_ref).
 */
#include <kunit/test.h>
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/jiffies.h>
#include <linux/mm.h>
#include <linux/random.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/workqueue.h>
#include <rdma/ib_verbs.h>

#include "../memory/live.h"
#include "../memory/rkm.h"
#include "threads.h"

#define RACE_TIME	(2 * HZ)
#define RACE_CLOSES	100000
#define RACE_KEYS	2
#define RACE_BYTES	32
#define RACE_POISON	0x5a
#define RACE_QPN	0xac000000
#define RACE_HOLDS	20000
#define RACE_SWEEPS	1000
#define RACE_OPS	16

static struct ib_pd race_pd;

/* Set @key to @n keys of one bucket. */
static void race_keys(u32 *key, unsigned int n)
{
	unsigned int i;

	key[0] = get_random_u32();
	for (i = 1; i < n; i++) {
		key[i] = key[i - 1];
		do {
			key[i]++;
		} while (nhca_rkm_bucket(key[i]) != nhca_rkm_bucket(key[0]));
	}
}

static void race_count(const struct nhca_rkey_ref *h, void *arg)
{
	unsigned int *n = arg;

	if (h->qpn == RACE_QPN)
		(*n)++;
}

static void race_expect_no_hold(struct kunit *test)
{
	unsigned int n = 0;

	nhca_rkm_walk(race_count, &n);
	KUNIT_EXPECT_EQ(test, n, 0);
}

/* ---- no responder writes after a close ---- */

/**
 * struct race_worker - a thread that acts as a responder
 * @race:    the race of the thread
 * @task:    the thread
 * @ref:     R_Key reference of the current operation
 * @late:    refs that the thread released unused, because the key was closed after the thread had
 *           first found it open
 * @stopped: operations that ended early, because their ref was revoked
 * @bytes:   memory of each key, which the thread writes with plain stores
 */
struct race_worker {
	struct race *race;
	struct task_struct *task;
	struct nhca_rkey_ref ref;
	unsigned long late;
	unsigned long stopped;
	u8 bytes[RACE_KEYS][RACE_BYTES];
} ____cacheline_aligned;

/**
 * struct race - responders that use keys, and a thread that closes the keys
 * @key:     the keys, both of one bucket
 * @open:    valid bit of each key
 * @revoked: refs that were revoked by sweeps
 * @dirty:   number of closes that found bytes written since the previous close
 * @broken:  number of closes after which bytes were written
 * @n:       number of workers
 * @worker:  the workers
 */
struct race {
	u32 key[RACE_KEYS];
	bool open[RACE_KEYS];
	unsigned long revoked;
	unsigned long dirty;
	unsigned long broken;
	unsigned int n;
	struct race_worker worker[];
};

/* let other threads run: on one CPU always, otherwise only if the scheduler needs this CPU */
static void race_let_run(void)
{
	if (num_online_cpus() == 1)
		schedule();
	else
		cond_resched();
}

/*
 * Let the workers run after a close. On one CPU, this thread sleeps in some rounds, because its
 * wakeup then interrupts a worker at any instruction.
 */
static void race_let_use(unsigned int round)
{
	ndelay(round % 32 * 100);
	if (num_online_cpus() == 1 && !(round % 1024))
		schedule_timeout_uninterruptible(1);
	race_let_run();
}

/*
 * Act as a responder at the first packet of a message: take the ref. BHs are disabled. Return: true
 * if the key is open, so that the thread has the ref.
 */
static bool race_open(struct race_worker *w, unsigned int k)
{
	bool held;

	nhca_live_enter();
	held = READ_ONCE(w->race->open[k]);
	if (held) {
		nhca_rkm_get(&w->ref);
		held = READ_ONCE(w->race->open[k]);
		if (!held) {
			nhca_rkm_put(&w->ref);
			w->late++;
		}
	}
	nhca_live_exit();
	return held;
}

/*
 * Act as a responder at a packet of the message: write only if the ref is valid. BHs are disabled.
 * Return: true if the ref is valid, so that the operation may continue.
 */
static bool race_packet(struct race_worker *w, unsigned int k, unsigned int n)
{
	bool valid;

	nhca_live_enter();
	valid = nhca_rkey_ref_valid(&w->ref);
	if (valid) {
		ndelay(n % 4 * 100);
		memset(w->bytes[k], n, RACE_BYTES);
	}
	nhca_live_exit();
	return valid;
}

static int race_worker_run(void *arg)
{
	struct race_worker *w = arg;
	unsigned int n = 0, k, packets;

	w->ref.pd = &race_pd;
	w->ref.qpn = RACE_QPN;
	while (!kthread_should_stop()) {
		k = n++ % RACE_KEYS;
		w->ref.key = w->race->key[k];
		local_bh_disable();
		if (race_open(w, k)) {
			for (packets = n % 7; packets; packets--) {
				if (!race_packet(w, k, n)) {
					WRITE_ONCE(w->stopped, w->stopped + 1);
					break;
				}
				local_bh_enable();
				race_let_run();
				local_bh_disable();
			}
			nhca_rkm_put(&w->ref);
		}
		local_bh_enable();
		race_let_run();
	}
	return 0;
}

static void race_close(struct race *race, unsigned int round)
{
	bool dirty = false, broken = false;
	unsigned int i, k = round / 3 % RACE_KEYS;

	WRITE_ONCE(race->open[k], false);
	race->revoked += nhca_rkm_sweep(&race_pd, race->key[k]);
	nhca_live_wait();
	/*
	 * the key is closed: if a worker wrote at this time, KCSAN would report the following
	 * accesses
	 */
	for (i = 0; i < race->n; i++) {
		u8 *bytes = race->worker[i].bytes[k];

		dirty |= !!memchr_inv(bytes, RACE_POISON, RACE_BYTES);
		memset(bytes, RACE_POISON, RACE_BYTES);
	}
	ndelay(round % 16 * 100);
	race_let_run();
	for (i = 0; i < race->n; i++)
		broken |= !!memchr_inv(race->worker[i].bytes[k], RACE_POISON, RACE_BYTES);
	race->dirty += dirty;
	race->broken += broken;
	/* allow the workers to write again; pairs with the checks in race_open() */
	smp_store_release(&race->open[k], true);
}

/* Return: number of operations that were revoked while in progress. */
static unsigned long race_stopped(const struct race *race)
{
	unsigned long stopped = 0;
	unsigned int i;

	for (i = 0; i < race->n; i++)
		stopped += READ_ONCE(race->worker[i].stopped);
	return stopped;
}

/*
 * After nhca_rkm_sweep() and nhca_live_wait(), no responder writes by means of a ref of the closed
 * key.
 */
static void rkm_revoked_ref_writes_nothing(struct kunit *test)
{
	unsigned long begun = jiffies, stopped, late = 0;
	unsigned int cpu, i, round;
	struct race *race;

	/*
	 * two workers on each CPU, so that workers interrupt each other even if there is only one
	 * CPU
	 */
	race = kunit_kzalloc(test, struct_size(race, worker, 2 * num_online_cpus()), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, race);
	race_keys(race->key, RACE_KEYS);
	for_each_online_cpu(cpu) {
		for (i = 0; i < 2; i++) {
			struct race_worker *w = &race->worker[race->n];

			w->race = race;
			memset(w->bytes, RACE_POISON, sizeof(w->bytes));
			w->task = test_thread_start(race_worker_run, w, cpu);
			KUNIT_EXPECT_FALSE(test, IS_ERR(w->task));
			race->n++;
		}
	}

	for (round = 0; round < RACE_CLOSES &&
	     test_goes_on(begun, RACE_TIME, race->dirty && race_stopped(race)); round++) {
		race_close(race, round);
		race_let_use(round);
	}

	for (i = 0; i < race->n; i++) {
		test_thread_stop(race->worker[i].task);
		late += race->worker[i].late;
	}
	stopped = race_stopped(race);
	kunit_info(test, "%u closes, %lu after writes; %lu refs revoked, %lu stopped, %lu late",
		   round, race->dirty, race->revoked, stopped, late);
	KUNIT_EXPECT_EQ(test, race->broken, 0);
	KUNIT_EXPECT_GT(test, race->dirty, 0);
	KUNIT_EXPECT_GT(test, race->revoked, 0);
	KUNIT_EXPECT_GT(test, stopped, 0);
	/* each operation that was stopped had a ref, and a sweep has revoked this ref */
	KUNIT_EXPECT_GE(test, race->revoked, stopped);
	race_expect_no_hold(test);
}

/* ---- receive processing has priority ---- */

/**
 * struct race_long - sweeps of a bucket with many refs, and a responder that uses this bucket
 * @key:   keys of one bucket: the sweeps close [0], which has @n refs; the responder uses [1]
 * @refs:  refs of key [0]; a sweep checks the last ref first
 * @n:     number of refs
 * @sweep: number of the sweep in progress, or 0
 * @ops:   operations of the responder that both began and ended during one sweep
 * @wrong: sweeps that did not revoke all @n refs
 */
struct race_long {
	u32 key[2];
	struct nhca_rkey_ref *refs;
	unsigned int n;
	unsigned int sweep;
	unsigned int ops;
	unsigned int wrong;
};

/*
 * A sweep checks the last ref first. Return: number of the sweep in progress, which has revoked the
 * last ref but not yet refs[0]; 0: there is no such sweep.
 */
static unsigned int race_middle(const struct race_long *l)
{
	unsigned int sweep;

	/* pairs with race_sweep(), which takes all refs before it stores the number of the sweep */
	sweep = smp_load_acquire(&l->sweep);
	if (!sweep || nhca_rkey_ref_valid(&l->refs[l->n - 1]) ||
	    !nhca_rkey_ref_valid(&l->refs[0]))
		return 0;
	/* pairs with race_sweep(), which stores 0 before it releases the refs */
	smp_rmb();
	return READ_ONCE(l->sweep) == sweep ? sweep : 0;
}

static int race_receive(void *arg)
{
	struct nhca_rkey_ref h = { .pd = &race_pd, .qpn = RACE_QPN };
	struct race_long *l = arg;
	unsigned int before;

	h.key = l->key[1];
	while (!kthread_should_stop()) {
		before = race_middle(l);
		local_bh_disable();
		nhca_rkm_get(&h);
		nhca_rkm_put(&h);
		local_bh_enable();
		if (before && race_middle(l) == before)
			WRITE_ONCE(l->ops, l->ops + 1);
		cond_resched();
	}
	return 0;
}

static long race_sweep(void *arg)
{
	struct race_long *l = arg;
	unsigned int i, s;

	for (s = 1; s <= RACE_SWEEPS && READ_ONCE(l->ops) < RACE_OPS; s++) {
		for (i = 0; i < l->n; i++) {
			local_bh_disable();
			nhca_rkm_get(&l->refs[i]);
			local_bh_enable();
		}
		/* pairs with race_middle() */
		smp_store_release(&l->sweep, s);
		l->wrong += nhca_rkm_sweep(&race_pd, l->key[0]) != l->n;
		WRITE_ONCE(l->sweep, 0);
		for (i = 0; i < l->n; i++) {
			local_bh_disable();
			nhca_rkm_put(&l->refs[i]);
			local_bh_enable();
		}
		cond_resched();
	}
	return s - 1;
}

/*
 * A sweep releases the bucket's lock between two steps, so the responder can take a ref of the
 * bucket during a sweep. If a sweep kept the lock, the responder would get the lock only after the
 * sweep. The test does many sweeps, because the host may stop the responder's CPU during a sweep.
 */
static void rkm_receive_has_priority(struct kunit *test)
{
	unsigned int a = cpumask_first(cpu_online_mask), b = cpumask_next(a, cpu_online_mask), i;
	struct race_long l = { .n = RACE_HOLDS };
	struct task_struct *receiver;
	long sweeps;

	if (b >= nr_cpu_ids)
		kunit_skip(test, "needs two CPUs");
	l.refs = kvcalloc(l.n, sizeof(*l.refs), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, l.refs);
	race_keys(l.key, 2);
	for (i = 0; i < l.n; i++) {
		l.refs[i].pd = &race_pd;
		l.refs[i].key = l.key[0];
		l.refs[i].qpn = RACE_QPN;
	}
	receiver = test_thread_start(race_receive, &l, b);
	KUNIT_EXPECT_FALSE(test, IS_ERR(receiver));
	sweeps = work_on_cpu(a, race_sweep, &l);
	test_thread_stop(receiver);
	race_expect_no_hold(test);
	kvfree(l.refs);
	kunit_info(test, "%u operations in the middle of %ld sweeps", l.ops, sweeps);
	KUNIT_EXPECT_GE(test, l.ops, RACE_OPS);
	KUNIT_EXPECT_EQ(test, l.wrong, 0);
}

/*
 * A sweep revokes all refs of its key that remain, and no other refs, although refs are taken and
 * released between the steps of the sweep.
 */
static void rkm_long_sweep_revokes_all(struct kunit *test)
{
	struct nhca_rkey_ref h = { .pd = &race_pd, .qpn = RACE_QPN };
	struct race_long l = { .n = RACE_HOLDS };
	unsigned int i, steps = 0, released = 0;
	struct nhca_sweep sweep;
	bool valid = false;

	l.refs = kvcalloc(l.n, sizeof(*l.refs), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, l.refs);
	race_keys(l.key, 2);
	h.key = l.key[1];
	local_bh_disable();
	for (i = 0; i < l.n; i++) {
		/* each third ref is of key [1], the others of key [0], which the sweep closes */
		l.refs[i] = (struct nhca_rkey_ref){
			.pd = &race_pd, .key = l.key[!(i % 3)], .qpn = RACE_QPN,
		};
		nhca_rkm_get(&l.refs[i]);
	}
	nhca_sweep_start(&sweep, &race_pd, l.key[0]);
	while (!nhca_sweep_step(&sweep, 32)) {
		/*
		 * release a ref of key [0] that the sweep has not reached: the sweep began with the
		 * last ref
		 */
		if (nhca_rkey_ref_valid(&l.refs[steps]) && steps % 3) {
			nhca_rkm_put(&l.refs[steps]);
			released++;
		}
		steps++;
		nhca_rkm_put(&h);
		nhca_rkm_get(&h);
	}
	nhca_rkm_put(&h);
	for (i = 0; i < l.n; i++) {
		valid |= nhca_rkey_ref_valid(&l.refs[i]) != !(i % 3);
		nhca_rkm_put(&l.refs[i]);
	}
	local_bh_enable();
	kvfree(l.refs);
	/*
	 * each step but the last checks 32 refs, although refs are taken and released between steps
	 */
	KUNIT_EXPECT_GE(test, steps, (RACE_HOLDS - released) / 32 - 1);
	KUNIT_EXPECT_LE(test, steps, RACE_HOLDS / 32);
	KUNIT_EXPECT_GT(test, released, 300);
	KUNIT_EXPECT_FALSE(test, valid);
	KUNIT_EXPECT_EQ(test, sweep.revoked + released, RACE_HOLDS - DIV_ROUND_UP(RACE_HOLDS, 3));
	race_expect_no_hold(test);
}

static struct kunit_case race_cases[] = {
	KUNIT_CASE(rkm_long_sweep_revokes_all),
	KUNIT_CASE(rkm_receive_has_priority),
	KUNIT_CASE(rkm_revoked_ref_writes_nothing),
	{}
};

static struct kunit_suite race_suite = {
	.name = "nhca_rkm_race",
	.test_cases = race_cases,
};

kunit_test_suite(race_suite);
