// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit: tid rules of half transfers. In random histories of events at an rCxt, each result is
 * compared with the result of a model: first at the end that has the frames, where several CPUs
 * fill frames at a time; then at the end that gets requests of three kinds: ordinary reads,
 * half-receive reads and half-send reads.
 */
#include <kunit/test.h>
#include <linux/prandom.h>

#include "../rcxt/tid.h"

#define STEPS		100000
#define SEGMENT		64u
#define MOST		70u	/* packets of a transfer: more than NHCA_RCXT_FEW */
#define CPUS		5u

/**
 * struct half_model - an rCxt of the model
 * @kind:   kind of the transfer; NOTHING: there is none, as in NHCA_RCXT_IDLE
 * @tid:    tid of the latest transfer
 * @total:  bytes of the latest transfer
 * @notify: NHCA_RX_NOTIFY_* of the latest transfer
 * @pvo:    FRAMES: PVO of the first byte
 * @got:    OWN_READ, PEER_WRITE: packet i was accepted, and its frame is filled or being filled
 * @have:   OWN_READ, PEER_WRITE: number of packets in @got
 * @cpu:    packets whose frames are being filled
 * @cpu_tid: tids of the transfers of @cpu
 * @cpus:   number of elements of @cpu in use
 * @number: OWN_READ, FRAMES: number of the latest request
 * @parts:  FRAMES: number of requests in execution
 * @sent:   FRAMES, ANSWER: nothing is left to send; PROGRAM: true
 * @told:   the notice has arrived
 * @done:   the transfer is complete
 */
struct half_model {
	enum { NOTHING, OWN_READ, PEER_WRITE, ANSWER, FRAMES, PROGRAM } kind;
	u32 tid;
	u32 total;
	u8 notify;
	u64 pvo;
	bool got[MOST];
	u32 have;
	u32 cpu[CPUS];
	u32 cpu_tid[CPUS];
	u32 cpus;
	u32 number;
	u32 parts;
	bool sent;
	bool told;
	bool done;
};

struct half_fixture {
	struct nhca_rcxt_pool pool;
	struct nhca_rcxt_list list;
	struct nhca_rcxt *rc;
	struct half_model m;
	struct rnd_state rnd;
	u32 verdicts[NHCA_RCXT_NO_MAP + 1];
	u32 completions;
};

static u32 draw(struct half_fixture *f, u32 below)
{
	return prandom_u32_state(&f->rnd) % below;
}

static struct half_fixture *half_setup(struct kunit *test)
{
	struct half_fixture *f = kunit_kzalloc(test, sizeof(*f), GFP_KERNEL);
	struct nhca_rcxt_id id;

	KUNIT_ASSERT_NOT_NULL(test, f);
	prandom_seed_state(&f->rnd, 2911);
	f->list = (struct nhca_rcxt_list)NHCA_RCXT_LIST_INIT;
	KUNIT_ASSERT_EQ(test, nhca_rcxt_pool_init(&f->pool, 3), 0);
	KUNIT_ASSERT_EQ(test, nhca_rcxt_acquire(&f->pool, 0x1234, &f->list, 1, &id), 0);
	f->rc = &f->pool.rcxts[id.index];
	return f;
}

static void half_teardown(struct kunit *test, struct half_fixture *f)
{
	nhca_rcxt_release(&f->pool, &f->list, f->rc);
	KUNIT_EXPECT_EQ(test, atomic_long_read(&f->pool.map_bytes), 0);
	nhca_rcxt_pool_destroy(&f->pool);
}

static void expect(struct kunit *test, struct half_fixture *f, const char *what,
		   enum nhca_rcxt_verdict have, enum nhca_rcxt_verdict want)
{
	KUNIT_ASSERT_EQ_MSG(test, have, want, "%s: state %u tid %u", what, f->rc->state,
			    f->rc->tid);
	f->verdicts[want]++;
}

static void model_begin(struct half_model *m, int kind, u32 tid, u32 total, u8 notify)
{
	m->kind = kind;
	m->tid = tid;
	m->total = total;
	m->notify = notify;
	memset(m->got, 0, sizeof(m->got));
	m->have = 0;
	m->number = 0;
	m->parts = 0;
	m->sent = false;
	m->told = false;
	m->done = false;
}

/* ---- the end that has the frames ---- */

static struct nhca_rxeth draw_payload(struct half_fixture *f, u32 tid, u32 total)
{
	struct nhca_rxeth x = { .tid = tid, .total = total, .segment = SEGMENT, .half = true };

	x.offset = draw(f, nhca_rcxt_packets(total, SEGMENT)) * SEGMENT;
	x.length = nhca_rcxt_packet_len(total, SEGMENT, x.offset);
	x.pvo = x.offset;
	return x;
}

static enum nhca_rcxt_verdict model_payload(struct half_model *m, const struct nhca_rxeth *x,
					    bool read)
{
	u32 packet = x->offset / SEGMENT;

	if (x->tid < m->tid)
		return NHCA_RCXT_STALE;
	if (x->tid > m->tid) {
		if (read)
			return NHCA_RCXT_UNSOLICITED;
		if (m->kind == OWN_READ && !m->done)
			return NHCA_RCXT_BUSY;
		if (m->cpus)
			return NHCA_RCXT_WAIT;
		model_begin(m, PEER_WRITE, x->tid, x->total, 0);
	} else if (m->done) {
		return NHCA_RCXT_DUPLICATE;
	} else if (m->kind == NOTHING) {
		return NHCA_RCXT_STALE;
	} else if (read != (m->kind == OWN_READ) || !x->half || x->total != m->total) {
		return NHCA_RCXT_MISMATCH;
	}
	if (m->got[packet])
		return NHCA_RCXT_DUPLICATE;
	m->got[packet] = true;
	m->have++;
	m->cpu[m->cpus] = packet;
	m->cpu_tid[m->cpus++] = m->tid;
	return NHCA_RCXT_ACCEPT;
}

/* A packet arrives, mostly of the transfer in progress. */
static void step_payload(struct kunit *test, struct half_fixture *f)
{
	bool read = f->m.kind == OWN_READ, later = !draw(f, 20);
	struct nhca_rxeth x;

	if (f->m.cpus == CPUS)
		return;
	x = draw_payload(f, f->m.tid + later, later ? draw(f, MOST * SEGMENT) : f->m.total);
	if (!later && x.tid && !draw(f, 20))
		x.tid--;
	if (!draw(f, 20))
		read = !read;
	if (!later && !draw(f, 20))
		x.half = false;
	/* skip payload that would begin a transfer without frames */
	if (x.tid > f->m.tid && !x.half)
		return;
	expect(test, f, "payload", nhca_rcxt_payload(&f->pool, f->rc, &x, read),
	       model_payload(&f->m, &x, read));
}

/* A CPU has filled a frame, or the program will not get the frame. */
static void step_frame(struct kunit *test, struct half_fixture *f)
{
	struct half_model *m = &f->m;
	bool mine, complete;
	struct nhca_rxeth x;
	u32 cpu;

	if (!m->cpus)
		return;
	cpu = draw(f, m->cpus);
	x = (struct nhca_rxeth) { .tid = m->cpu_tid[cpu], .offset = m->cpu[cpu] * SEGMENT };
	mine = x.tid == m->tid && m->kind != NOTHING;
	m->cpus--;
	m->cpu[cpu] = m->cpu[m->cpus];
	m->cpu_tid[cpu] = m->cpu_tid[m->cpus];
	if (!draw(f, 3)) {
		if (mine) {
			m->got[x.offset / SEGMENT] = false;
			m->have--;
		}
		nhca_rcxt_not_framed(f->rc, &x);
		return;
	}
	complete = mine && !m->cpus && m->have == nhca_rcxt_packets(m->total, SEGMENT);
	KUNIT_ASSERT_EQ(test, nhca_rcxt_copied(&f->pool, f->rc, true), complete);
	m->done |= complete;
	f->completions += complete;
}

/* The program begins a read, requests a part again, or cancels the transfer. */
static void step_program(struct kunit *test, struct half_fixture *f)
{
	struct half_model *m = &f->m;
	struct nhca_rxeth x = { .tid = m->tid + 1, .total = draw(f, MOST * SEGMENT),
				.segment = SEGMENT };
	int want = m->cpus ? -EAGAIN : 0;

	switch (draw(f, 3)) {
	case 0:
		KUNIT_ASSERT_EQ(test, nhca_rcxt_begin_frames(&f->pool, f->rc, &x, 9), want);
		if (!want)
			model_begin(m, OWN_READ, x.tid, x.total, 0);
		break;
	case 1:
		x.tid = m->tid;
		x.total = m->total;
		want = m->done ? -EALREADY : m->kind == OWN_READ ? 0 : -EINVAL;
		if (!m->tid)
			break;
		KUNIT_ASSERT_EQ(test, nhca_rcxt_frames_again(f->rc, &x), want);
		if (!want)
			KUNIT_ASSERT_EQ(test, x.number, ++m->number);
		break;
	case 2:
		if (!m->tid || draw(f, 4))
			break;
		KUNIT_ASSERT_EQ(test, nhca_rcxt_cancel(&f->pool, f->rc, m->tid),
				m->done ? -EALREADY : 0);
		if (!m->done)
			m->kind = NOTHING;
		break;
	}
}

static void half_frames_model(struct kunit *test)
{
	struct half_fixture *f = half_setup(test);
	struct half_model *m = &f->m;
	u32 i, left;

	for (i = 0; i < STEPS; i++) {
		if (!draw(f, 100))
			step_program(test, f);
		else if (draw(f, 2))
			step_payload(test, f);
		else
			step_frame(test, f);
		KUNIT_ASSERT_EQ(test, (u32)f->rc->copies, m->cpus);
		KUNIT_ASSERT_EQ(test, f->rc->tid, m->tid);
		left = nhca_rcxt_packets(m->total, SEGMENT) - m->have;
		if ((m->kind == OWN_READ || m->kind == PEER_WRITE) && !m->done)
			KUNIT_ASSERT_EQ(test, f->rc->missing, left);
	}
	while (m->cpus)
		step_frame(test, f);
	KUNIT_EXPECT_GT(test, f->completions, 20);
	KUNIT_EXPECT_GT(test, f->verdicts[NHCA_RCXT_DUPLICATE], 1000);
	KUNIT_EXPECT_GT(test, f->verdicts[NHCA_RCXT_WAIT], 10);
	KUNIT_EXPECT_GT(test, f->verdicts[NHCA_RCXT_BUSY], 10);
	half_teardown(test, f);
}

/* ---- the end that gets requests ---- */

static struct nhca_rxeth draw_request(struct half_fixture *f)
{
	static const int steps[] = { 0, 0, 0, 0, 0, 0, 1, -1 };
	struct nhca_rxeth x = { .segment = SEGMENT, .total = 1000, .notify = draw(f, 4) };
	int step = steps[draw(f, ARRAY_SIZE(steps))];

	x.tid = f->m.tid || step > 0 ? f->m.tid + step : 0;
	x.number = f->m.number + draw(f, 4) - 1;
	if (x.number > f->m.number + 2)
		x.number = 0;
	x.pvo = !draw(f, 20);
	if (!draw(f, 20))
		x.total = 1001;
	return x;
}

static enum nhca_rcxt_verdict model_request(struct half_model *m, const struct nhca_rxeth *x)
{
	if ((m->kind == ANSWER || m->kind == FRAMES) && !m->sent)
		return NHCA_RCXT_BUSY;
	return x->tid <= m->tid ? NHCA_RCXT_STALE : NHCA_RCXT_ACCEPT;
}

static enum nhca_rcxt_verdict model_frames(struct half_model *m, const struct nhca_rxeth *x)
{
	bool again = m->kind == FRAMES && !m->done && x->tid == m->tid;
	enum nhca_rcxt_verdict verdict;

	if (!again) {
		verdict = model_request(m, x);
		if (verdict)
			return verdict;
		model_begin(m, FRAMES, x->tid, x->total, x->notify);
		m->pvo = x->pvo;
	} else if (x->pvo != m->pvo || x->total != m->total) {
		return NHCA_RCXT_MISMATCH;
	} else if (m->told || x->number <= m->number) {
		return NHCA_RCXT_DUPLICATE;
	} else if (m->parts == NHCA_RCXT_PARTS) {
		return NHCA_RCXT_BUSY;
	} else if (m->sent) {
		m->notify = x->notify;
	}
	m->parts++;
	m->sent = false;
	m->number = x->number;
	return NHCA_RCXT_ACCEPT;
}

/* All packets of a request are sent.  Return: true if the notice has arrived before. */
static bool model_sent(struct half_model *m)
{
	if ((m->kind != ANSWER && m->kind != FRAMES) || m->sent)
		return false;
	if (m->kind == FRAMES && --m->parts)
		return false;
	m->sent = true;
	m->done = m->told;
	if (m->kind == ANSWER && !(m->notify & NHCA_RX_NOTIFY_TARGET))
		m->kind = NOTHING;
	return m->told;
}

static enum nhca_rcxt_verdict model_notice(struct half_model *m, const struct nhca_rxeth *x)
{
	if (x->tid != m->tid)
		return x->tid < m->tid ? NHCA_RCXT_STALE : NHCA_RCXT_UNSOLICITED;
	if (m->done)
		return NHCA_RCXT_DUPLICATE;
	if (m->kind == NOTHING || !(m->notify & NHCA_RX_NOTIFY_TARGET))
		return NHCA_RCXT_UNSOLICITED;
	if (x->total != m->total)
		return NHCA_RCXT_MISMATCH;
	if (m->told)
		return NHCA_RCXT_DUPLICATE;
	m->told = true;
	if (!m->sent)
		return NHCA_RCXT_LATER;
	m->done = true;
	return NHCA_RCXT_ACCEPT;
}

/* A request for the program. In one of three cases the program gets no frame with the request. */
static void step_ask(struct kunit *test, struct half_fixture *f)
{
	struct nhca_rxeth x = draw_request(f);
	struct half_model *m = &f->m;
	enum nhca_rcxt_verdict want = model_request(m, &x);

	expect(test, f, "ask", nhca_rcxt_ask(f->rc, &x), want);
	if (want)
		return;
	model_begin(m, PROGRAM, x.tid, x.total, x.notify);
	m->sent = true;
	if (draw(f, 3))
		return;
	nhca_rcxt_not_asked(f->rc, &x);
	m->kind = NOTHING;
	m->tid--;
	/* a second call changes nothing */
	nhca_rcxt_not_asked(f->rc, &x);
}

static void step_answer(struct kunit *test, struct half_fixture *f)
{
	struct nhca_rxeth x = draw_request(f);
	struct half_model *m = &f->m;
	int want;

	if (!m->tid)
		return;
	want = x.tid != m->tid || x.total != m->total || m->kind != PROGRAM ? -EINVAL :
	       m->done ? -EALREADY : 0;
	KUNIT_ASSERT_EQ(test, nhca_rcxt_begin_answer(f->rc, &x), want);
	if (!want)
		KUNIT_ASSERT_EQ(test, x.notify, m->notify);
}

static void step_fence(struct kunit *test, struct half_fixture *f)
{
	struct nhca_rxeth x = draw_request(f);
	enum nhca_rx_status status;
	struct half_model *m = &f->m;
	u32 have;

	if (!x.tid || x.tid < m->tid) {
		expect(test, f, "fence", nhca_rcxt_fence(&f->pool, f->rc, &x, &status, &have),
		       NHCA_RCXT_STALE);
		return;
	}
	expect(test, f, "fence", nhca_rcxt_fence(&f->pool, f->rc, &x, &status, &have),
	       NHCA_RCXT_ACCEPT);
	if (x.tid == m->tid && m->done) {
		KUNIT_ASSERT_EQ(test, (u32)status, (u32)NHCA_RX_ST_DONE);
		return;
	}
	KUNIT_ASSERT_EQ(test, (u32)status, (u32)NHCA_RX_ST_FENCED);
	m->kind = NOTHING;
	m->done = false;
	m->tid = x.tid;
}

static void step_peer(struct kunit *test, struct half_fixture *f)
{
	struct nhca_rxeth x = draw_request(f);
	struct half_model *m = &f->m;
	enum nhca_rcxt_verdict want;

	switch (draw(f, 8)) {
	case 0:
		want = model_request(m, &x);
		expect(test, f, "request", nhca_rcxt_request(f->rc, &x), want);
		if (!want)
			model_begin(m, ANSWER, x.tid, x.total, x.notify);
		break;
	case 1:
		step_ask(test, f);
		break;
	case 2:
		expect(test, f, "notice", nhca_rcxt_notice(f->rc, &x), model_notice(m, &x));
		break;
	case 3:
		if (!draw(f, 10))
			step_fence(test, f);
		break;
	default:
		want = nhca_rcxt_frames_may(f->rc, &x);
		expect(test, f, "frames", nhca_rcxt_frames_request(f->rc, &x), want);
		KUNIT_ASSERT_EQ(test, model_frames(m, &x), want);
	}
}

static void half_requests_model(struct kunit *test)
{
	struct half_fixture *f = half_setup(test);
	struct half_model *m = &f->m;
	u32 i;

	for (i = 0; i < STEPS; i++) {
		/* at times the send engine is slow, and many requests wait */
		if (!draw(f, i / 1000 % 8 ? 3 : 300))
			KUNIT_ASSERT_EQ(test, nhca_rcxt_sent(f->rc, m->tid), model_sent(m));
		else if (!draw(f, 4))
			step_answer(test, f);
		else
			step_peer(test, f);
		KUNIT_ASSERT_EQ(test, f->rc->tid, m->tid);
		KUNIT_ASSERT_EQ(test, f->rc->state == NHCA_RCXT_DONE, m->done);
		if (m->kind == FRAMES && !m->done && !m->sent)
			KUNIT_ASSERT_EQ(test, f->rc->parts, m->parts);
	}
	KUNIT_EXPECT_GT(test, f->verdicts[NHCA_RCXT_ACCEPT], 1000);
	KUNIT_EXPECT_GT(test, f->verdicts[NHCA_RCXT_STALE], 1000);
	KUNIT_EXPECT_GT(test, f->verdicts[NHCA_RCXT_DUPLICATE], 1000);
	KUNIT_EXPECT_GT(test, f->verdicts[NHCA_RCXT_MISMATCH], 100);
	KUNIT_EXPECT_GT(test, f->verdicts[NHCA_RCXT_LATER], 10);
	half_teardown(test, f);
}

static struct kunit_case half_tid_cases[] = {
	KUNIT_CASE(half_frames_model),
	KUNIT_CASE(half_requests_model),
	{}
};

static struct kunit_suite half_tid_suite = {
	.name = "nhca_rcxt_half_tid",
	.test_cases = half_tid_cases,
};

kunit_test_suite(half_tid_suite);
