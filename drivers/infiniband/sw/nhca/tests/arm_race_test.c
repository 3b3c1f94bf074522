// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit: arming of CQs: random histories against a model, and consumers that arm while a QP posts
 * completions.
 */
#include <kunit/test.h>
#include <linux/completion.h>
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/prandom.h>
#include <linux/wait.h>

#include "cq_fixture.h"
#include "threads.h"

/* How a consumer arms */
enum how {
	BY_COMMAND,	/* user space, by commands */
	IN_RING,	/* user space, in the ring as the provider does it */
	KERNEL,		/* a kernel consumer, by ib_req_notify_cq() */
};

/* ---- random histories ---- */

#define MODEL_SLOTS	16
#define MODEL_STEPS	30000

/*
 * The model stores what was requested and which entries are in the ring. An event is due when an
 * entry is posted that satisfies the request. For user space an event is also due when a command
 * finds such an entry unpolled; exception: the consumer arms in the ring and has not polled since
 * the last event (@polled).
 */
struct model {
	enum how how;
	struct nhca_arm arm;
	struct nhca_arm_ring ring;
	u8 kinds[MODEL_SLOTS];	/* kinds of the entries */
	u8 request;	/* requested kind; 0: none */
	u8 met;		/* kinds of the entries that satisfy the request */
	bool polled;	/* polled since the last event, or the ring was empty at that event */
	bool moderated;	/* moderation was set: the consumer sends the command after each arming */
	u16 count;
	u16 period;
	u32 since;	/* completions since the last event, or since a command found no entry */
	u32 requests;
	u32 events;
};

/* Raise the event, which ends the request. */
static enum nhca_arm_todo model_event(struct model *m)
{
	m->request = 0;
	m->met = 0;
	m->polled = m->ring.prod == m->ring.cons;
	m->since = 0;
	m->events++;
	return NHCA_ARM_RAISE;
}

/* Return: what arm.c has to do when there are unpolled entries of the kinds @kind. */
static enum nhca_arm_todo model_entries(struct model *m, u8 kind)
{
	if (!(m->request & kind))
		return NHCA_ARM_NOTHING;
	m->met |= kind;
	if (m->period && !(kind & IB_CQ_SOLICITED) && (!m->count || m->since < m->count))
		return NHCA_ARM_TIMER;
	return m->how == KERNEL ? NHCA_ARM_BH : model_event(m);
}

static bool model_post(struct model *m, u8 kind)
{
	enum nhca_arm_todo todo;

	if (m->ring.prod - m->ring.cons == MODEL_SLOTS)
		return true;
	m->kinds[m->ring.prod++ % MODEL_SLOTS] = kind;
	m->since++;
	todo = nhca_arm_completion(&m->arm, m->ring, kind);
	return todo == model_entries(m, kind);
}

static bool model_command(struct model *m, u8 kind)
{
	enum nhca_arm_todo todo = nhca_arm_request(&m->arm, m->ring, kind);
	u8 kinds = 0;
	u32 i;

	if (m->ring.prod == m->ring.cons) {
		m->met = 0;
		m->since = 0;
		return todo == NHCA_ARM_NOTHING;
	}
	if (m->how == KERNEL || (m->how == IN_RING && !m->polled))
		return todo == NHCA_ARM_NOTHING;
	for (i = m->ring.cons; i != m->ring.prod; i++)
		kinds |= m->kinds[i % MODEL_SLOTS];
	return todo == model_entries(m, kinds);
}

static bool model_arm(struct model *m, u8 kind)
{
	m->requests += !m->request;
	if (m->request < kind) {
		m->request = kind;
		if (m->how == IN_RING)
			m->ring.seq = ((m->ring.seq | NHCA_ARM_MASK) + 1) | kind;
	}
	if (m->how != IN_RING || m->moderated || (m->ring.prod != m->ring.cons &&
						  m->ring.cons != m->arm.last_event_cons))
		return model_command(m, kind);
	return true;
}

static bool model_poll(struct model *m, u32 n)
{
	n = min(n, m->ring.prod - m->ring.cons);
	m->ring.cons += n;
	m->polled |= n;
	/* a consumer that has armed in the ring and leaves entries unpolled sends the command */
	if (!n || m->how != IN_RING || !m->request || m->ring.prod == m->ring.cons)
		return true;
	return model_command(m, m->request);
}

/* The timer expires, or the bottom half of a kernel consumer runs. */
static bool model_late(struct model *m)
{
	enum nhca_arm_todo todo = nhca_arm_late(&m->arm, m->ring);

	if (m->met && (m->how != KERNEL || m->ring.prod != m->ring.cons))
		return todo == model_event(m);
	m->met = 0;
	return todo == NHCA_ARM_NOTHING;
}

static bool model_moderate(struct model *m, u16 count, u16 period)
{
	enum nhca_arm_todo todo = nhca_arm_moderate(&m->arm, m->ring, count, period);

	m->moderated = true;
	m->count = count;
	m->period = count == 1 ? 0 : period;
	return todo == model_entries(m, m->met);
}

/* Do a random step. Return: true if arm.c decided as the model does. */
static bool model_step(struct model *m, struct rnd_state *rnd)
{
	u32 r = prandom_u32_state(rnd);
	u32 n = r >> 16;

	switch (r % 8) {
	case 0 ... 2:
		return model_post(m, n % 4 ? IB_CQ_NEXT_COMP : IB_CQ_SOLICITED_MASK);
	case 3:
		return model_arm(m, n % 2 ? IB_CQ_NEXT_COMP : IB_CQ_SOLICITED);
	case 4 ... 5:
		return model_poll(m, n % MODEL_SLOTS);
	case 6:
		return model_late(m);
	default:
		if (n % 8)
			return true;
		return model_moderate(m, (n >> 3) % 5, n >> 6 & 1 ? 0 : 100);
	}
}

static void arm_model_test(struct kunit *test)
{
	struct rnd_state rnd;
	struct model m;
	u32 start;
	int i;

	prandom_seed_state(&rnd, 20261127);
	for (i = 0; i < 30; i++) {
		start = i % 2 ? -5 : BIT(31) - 5;
		m = (struct model) { .how = i % 3, .polled = true };
		m.ring.prod = start;
		m.ring.cons = start;
		nhca_arm_init(&m.arm, m.how != KERNEL, start);
		/* arm once, because a CQ whose arm_seq is 0 counts as never armed in the ring */
		if (m.how == IN_RING)
			KUNIT_ASSERT_TRUE(test, model_arm(&m, IB_CQ_NEXT_COMP));
		for (int step = 0; step < MODEL_STEPS / 30; step++)
			KUNIT_ASSERT_TRUE_MSG(test, model_step(&m, &rnd), "history %d, step %d", i,
					      step);
		/*
		 * each request has at most one event; with this seed, more than half of the
		 * requests have an event, so the histories do test events
		 */
		KUNIT_EXPECT_LE(test, m.events, m.requests);
		KUNIT_EXPECT_GT(test, 2 * m.events, m.requests);
	}
}

/* ---- races ---- */

#define RACE_SLOTS	64
#define RACE_POSTS	6000

struct arm_race {
	enum how how;
	struct cq_fixture *f;
	struct rnd_state rnd[2];
	atomic_t events;
	wait_queue_head_t wait;
	struct completion done;
	u32 polled;
	u32 arms;
	u32 lost;	/* sleeps that no event has ended */
};

static void race_event(struct ib_cq *ibcq, void *context)
{
	struct arm_race *r = context;

	atomic_inc(&r->events);
	wake_up(&r->wait);
}

/* The QP: posts completions while there is room, with random pauses. */
static int race_poster(void *arg)
{
	struct arm_race *r = arg;
	struct nhca_cq *cq = &r->f->cq;
	u32 posted = 0, n;

	while (posted < RACE_POSTS && !kthread_should_stop()) {
		n = prandom_u32_state(&r->rnd[0]);
		if (!(n % 8) || cq->prod - READ_ONCE(cq->ring.hdr->cons) == RACE_SLOTS)
			usleep_range(1, 30);
		else
			posted += !cq_post(r->f, posted, 0, !(n >> 8 & 7), NULL);
	}
	return 0;
}

/* Arm as the provider does it. */
static void race_arm_in_ring(struct arm_race *r)
{
	struct nhca_ring_hdr *hdr = r->f->cq.ring.hdr;
	u32 seq = READ_ONCE(hdr->arm_seq);

	if (seq == READ_ONCE(hdr->arm_seq_acked)) {
		WRITE_ONCE(hdr->arm_seq, ((seq | NHCA_ARM_MASK) + 1) | NHCA_ARM_NEXT_COMP);
		r->arms++;
	}
	/* Pairs with the full barrier of nhca_cq_post(). */
	smp_mb();
	if (READ_ONCE(hdr->prod) != hdr->cons && hdr->cons != READ_ONCE(hdr->last_event_cons))
		nhca_cq_arm(&r->f->cq, IB_CQ_NEXT_COMP);
}

/* Poll some entries, at least one if there are any. */
static void race_poll(struct arm_race *r)
{
	struct nhca_ring_hdr *hdr = r->f->cq.ring.hdr;
	u32 n = 1 + prandom_u32_state(&r->rnd[1]) % RACE_SLOTS;

	/* Pairs with the store release of nhca_cq_post(). */
	n = min(n, smp_load_acquire(&hdr->prod) - hdr->cons);
	if (r->how == KERNEL) {
		spin_lock_irq(&r->f->cq.lock);
		r->f->cq.cons += n;
		spin_unlock_irq(&r->f->cq.lock);
	}
	/* Pairs with the load acquire of nhca_cq_post(). */
	smp_store_release(&hdr->cons, hdr->cons + n);
	r->polled += n;
	if (r->how != IN_RING || !n)
		return;
	/* Pairs with the full barrier of nhca_cq_post(). */
	smp_mb();
	if (READ_ONCE(hdr->prod) != hdr->cons &&
	    READ_ONCE(hdr->arm_seq) != READ_ONCE(hdr->arm_seq_acked))
		nhca_cq_arm(&r->f->cq, IB_CQ_NEXT_COMP);
}

/* Arm and poll, or poll and arm. Return: false if the consumer need not wait for an event. */
static bool race_round(struct arm_race *r)
{
	if (r->how == IN_RING) {
		race_arm_in_ring(r);
		race_poll(r);
		return true;
	}
	race_poll(r);
	r->arms++;
	return !nhca_cq_arm(&r->f->cq, IB_CQ_NEXT_COMP) || r->how == BY_COMMAND;
}

/*
 * Wait until the number of events differs from @seen. The limit is a number of sleeps and not a
 * time, because the poster runs during each sleep even if the machine has paused for seconds.
 * Return: false if no event came.
 */
static bool race_wait(struct arm_race *r, int seen)
{
	int i;

	for (i = 0; i < 50; i++)
		if (wait_event_timeout(r->wait, atomic_read(&r->events) != seen, HZ / 10))
			return true;
	return false;
}

/* The consumer: sleeps until an event is raised, each time that race_round() returns true. */
static int race_consumer(void *arg)
{
	struct arm_race *r = arg;
	int seen;

	while (r->polled < RACE_POSTS && !r->lost) {
		seen = atomic_read(&r->events);
		if (race_round(r) && r->polled < RACE_POSTS)
			r->lost += !race_wait(r, seen);
	}
	complete(&r->done);
	return 0;
}

/* A consumer gets an event if it sleeps while the CQ has entries. No arming causes two events. */
static void arm_race(struct kunit *test, enum how how, u16 count, u16 period_us)
{
	struct arm_race *r = kunit_kzalloc(test, sizeof(*r), GFP_KERNEL);
	struct task_struct *poster, *consumer;

	KUNIT_ASSERT_NOT_NULL(test, r);
	r->how = how;
	r->f = cq_make(test, RACE_SLOTS, -100, how != KERNEL);
	r->f->cq.ibcq.comp_handler = race_event;
	r->f->cq.ibcq.cq_context = r;
	r->f->cq.arm_in_ring = how == IN_RING;
	nhca_cq_enable_arm(&r->f->cq);
	nhca_cq_moderate(&r->f->cq, count, period_us);
	prandom_seed_state(&r->rnd[0], 1 + how);
	prandom_seed_state(&r->rnd[1], 100 + how);
	init_waitqueue_head(&r->wait);
	init_completion(&r->done);

	consumer = test_thread_start(race_consumer, r, cpumask_first(cpu_online_mask));
	poster = test_thread_start(race_poster, r, cpumask_last(cpu_online_mask));
	if (!IS_ERR(consumer))
		wait_for_completion(&r->done);
	test_thread_stop(poster);
	test_thread_stop(consumer);
	KUNIT_EXPECT_FALSE(test, IS_ERR(consumer) || IS_ERR(poster));
	KUNIT_EXPECT_EQ(test, r->lost, 0);
	KUNIT_EXPECT_EQ(test, r->polled, RACE_POSTS);
	KUNIT_EXPECT_GT(test, atomic_read(&r->events), 0);
	KUNIT_EXPECT_LE(test, atomic_read(&r->events), r->arms);
	cq_done(r->f);
}

static void arm_race_command_test(struct kunit *test)
{
	arm_race(test, BY_COMMAND, 0, 0);
}

static void arm_race_ring_test(struct kunit *test)
{
	arm_race(test, IN_RING, 0, 0);
}

static void arm_race_kernel_test(struct kunit *test)
{
	arm_race(test, KERNEL, 0, 0);
}

static void arm_race_moderated_test(struct kunit *test)
{
	arm_race(test, BY_COMMAND, 4, 100);
	arm_race(test, KERNEL, 4, 100);
}

static struct kunit_case arm_race_cases[] = {
	KUNIT_CASE(arm_model_test),
	KUNIT_CASE(arm_race_command_test),
	KUNIT_CASE(arm_race_ring_test),
	KUNIT_CASE(arm_race_kernel_test),
	KUNIT_CASE(arm_race_moderated_test),
	{}
};

static struct kunit_suite arm_race_suite = {
	.name = "nhca_cq_arm_race",
	.test_cases = arm_race_cases,
};

kunit_test_suite(arm_race_suite);
