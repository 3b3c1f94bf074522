// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit: tid rules and completion of transfers. In random histories of events at an rCxt, each
 * result is compared with the result of a model, which has an array where the driver has a bitmap.
 */
#include <kunit/test.h>
#include <linux/hrtimer.h>
#include <linux/prandom.h>
#include <linux/slab.h>

#include "../compat.h"
#include "../rcxt/tid.h"
#include "threads.h"

#define STEPS		150000
#define MAX_PACKETS	200
#define COPIES		(2 * MAX_PACKETS)
#define BASE		0x123450000000ULL

/**
 * struct copy - a copy of payload in progress
 * @packets: number of packets
 * @x:       RXETH of the first one
 */
struct copy {
	u32 packets;
	struct nhca_rxeth x;
};

/**
 * struct model - an rCxt of the model
 * @wrote:  packets may refer to pages of a write that is not complete
 * @wanted: a work request of the channel waits to begin
 * @awaited: a work request of the channel waits for the end of copies
 * @copying: number of copies in progress
 * @copies: the copies in progress
 * @what:   kind of the transfer; NOTHING: there is none, as in NHCA_RCXT_IDLE
 * @tid:    tid of the latest transfer
 * @total:  bytes of the transfer
 * @segment: payload of the transfer's packets, in bytes
 * @notify: NHCA_RX_NOTIFY_*
 * @half:   the payload goes into frames
 * @base:   PVO of the transfer's first byte
 * @got:    packets that have arrived, by index
 * @in_place: number of packets whose copy has ended
 * @sent:   all packets are sent
 * @told:   the notice has arrived
 * @releasing: the notice has arrived, but packets may refer to the pages
 * @complete: the transfer is complete
 * @refused: memory protection has refused a packet
 */
struct model {
	bool wrote;
	bool wanted;
	bool awaited;
	u32 copying;
	struct copy copies[COPIES];
	enum { NOTHING, OWN_WRITE, OWN_READ, PEER_WRITE, PEER_READ } what;
	u32 tid;
	u32 total;
	u32 segment;
	u8 notify;
	bool half;
	u64 base;
	bool got[MAX_PACKETS];
	u32 in_place;
	bool sent;
	bool told;
	bool releasing;
	bool complete;
	bool refused;
};

struct tid_fixture {
	struct nhca_rcxt_pool pool;
	struct nhca_users users;
	struct nhca_rcxt_list list;
	struct nhca_rcxt *rc;
	struct model m;
	struct rnd_state rnd;
	u32 verdicts[NHCA_RCXT_NO_MAP + 1];
	u32 completions;
	u32 half_completions;
	u32 not_framed;
	u32 kicks;
	u32 runs;
	u32 notices;
	u32 statuses[NHCA_RX_ST_MAX];
};

static u32 draw(struct tid_fixture *f, u32 below)
{
	return prandom_u32_state(&f->rnd) % below;
}

static struct tid_fixture *tid_setup(struct kunit *test)
{
	struct tid_fixture *f = kunit_kzalloc(test, sizeof(*f), GFP_KERNEL);
	struct nhca_rcxt_id id;

	KUNIT_ASSERT_NOT_NULL(test, f);
	prandom_seed_state(&f->rnd, 8023417);
	f->list = (struct nhca_rcxt_list)NHCA_RCXT_LIST_INIT;
	KUNIT_ASSERT_EQ(test, nhca_rcxt_pool_init(&f->pool, 3), 0);
	nhca_users_init(&f->users);
	f->pool.users = &f->users;
	f->list.user = nhca_user_get(&f->users, 1000);
	KUNIT_ASSERT_FALSE(test, IS_ERR(f->list.user));
	KUNIT_ASSERT_EQ(test, nhca_rcxt_acquire(&f->pool, 0x1234, &f->list, 1, &id), 0);
	f->rc = &f->pool.rcxts[id.index];
	return f;
}

static void tid_teardown(struct kunit *test, struct tid_fixture *f)
{
	nhca_rcxt_release(&f->pool, &f->list, f->rc);
	/* at whatever step the history ended, no bitmap is left */
	KUNIT_EXPECT_EQ(test, atomic_long_read(&f->pool.map_bytes), 0);
	KUNIT_EXPECT_EQ(test, atomic_long_read(&f->list.user->rcxt_maps), 0);
	nhca_user_put(f->list.user);
	nhca_rcxt_pool_destroy(&f->pool);
	nhca_users_destroy(&f->users);
}

static u32 model_packets(const struct model *m)
{
	return m->total ? DIV_ROUND_UP(m->total, m->segment) : 1;
}

static void model_begin(struct model *m, int what, u32 tid, u32 total, u32 segment, u8 notify)
{
	/* copies in progress go on */
	memset_after(m, 0, copies);
	m->what = what;
	m->tid = tid;
	m->total = total;
	m->segment = segment;
	m->notify = notify;
}

/* Return: true if the transfer is in progress, and a peer may not replace it by another one. */
static bool model_in_use(const struct model *m)
{
	switch (m->what) {
	case OWN_WRITE: case OWN_READ:
		return !m->complete && !m->refused;
	case PEER_READ:
		return !m->sent;
	default:
		return false;
	}
}

static enum nhca_rcxt_verdict model_payload(struct model *m, const struct nhca_rxeth *x, bool read,
					    bool memory)
{
	u32 index;

	if (x->tid < m->tid)
		return NHCA_RCXT_STALE;
	if (x->tid == m->tid) {
		if (m->what == NOTHING)
			return NHCA_RCXT_STALE;
		if (m->complete)
			return NHCA_RCXT_DUPLICATE;
		if (m->refused)
			return NHCA_RCXT_DEAD;
		if (m->what == OWN_WRITE || m->what == PEER_READ)
			return NHCA_RCXT_BUSY;
		if (m->what != (read ? OWN_READ : PEER_WRITE) || x->total != m->total ||
		    x->segment != m->segment || x->half != m->half ||
		    (!m->half && x->pvo != m->base + x->offset))
			return NHCA_RCXT_MISMATCH;
		if (m->half && m->wanted)
			return NHCA_RCXT_BUSY;
	} else {
		if (read)
			return NHCA_RCXT_UNSOLICITED;
		if (model_in_use(m) || m->wanted)
			return NHCA_RCXT_BUSY;
		if (m->copying)
			return NHCA_RCXT_WAIT;
		if (!memory && x->total > 64 * x->segment)
			return NHCA_RCXT_NO_MAP;
		model_begin(m, PEER_WRITE, x->tid, x->total, x->segment, x->notify);
		m->base = x->pvo - x->offset;
		m->half = x->half;
	}
	index = x->offset / m->segment;
	if (m->got[index])
		return NHCA_RCXT_DUPLICATE;
	m->got[index] = true;
	m->copies[m->copying++] = (struct copy) { 1, *x };
	return NHCA_RCXT_ACCEPT;
}

/*
 * Accept up to @max packets that follow @x in the batch, but none from the first one on that has
 * arrived before. Return: number of accepted packets.
 */
static u32 model_run(struct model *m, const struct nhca_rxeth *x, u32 max)
{
	u32 index = x->offset / m->segment, n;

	for (n = 0; n < max && !m->got[index + 1 + n]; n++)
		m->got[index + 1 + n] = true;
	m->copies[m->copying - 1].packets += n;
	return n;
}

/* Return: true if payload of a transfer is still missing, or is being copied. */
static bool model_receives(const struct model *m)
{
	return (m->what == OWN_READ || m->what == PEER_WRITE) && !m->refused && !m->complete;
}

/* End copy number @which, whose packet gets no frame. */
static void model_not_framed(struct model *m, u32 which)
{
	const struct nhca_rxeth *x = &m->copies[which].x;

	if (model_receives(m) && x->tid == m->tid)
		m->got[x->offset / m->segment] = false;
	m->copies[which] = m->copies[--m->copying];
}

/* End copy number @which. Return: true if this completes the transfer. */
static bool model_copied(struct model *m, u32 which, bool ok)
{
	u32 packets = m->copies[which].packets;

	m->copies[which] = m->copies[--m->copying];
	if (!model_receives(m))
		return false;
	if (!ok) {
		m->refused = true;
		return false;
	}
	m->in_place += packets;
	m->complete = m->in_place == model_packets(m);
	return m->complete;
}

static enum nhca_rcxt_verdict model_request(struct model *m, const struct nhca_rxeth *x)
{
	if (model_in_use(m) || m->copying || m->wanted ||
	    (m->what == PEER_WRITE && !m->complete && !m->refused))
		return NHCA_RCXT_BUSY;
	if (x->tid <= m->tid)
		return NHCA_RCXT_STALE;
	model_begin(m, PEER_READ, x->tid, x->total, x->segment, x->notify);
	return NHCA_RCXT_ACCEPT;
}

static enum nhca_rcxt_verdict model_notice(struct model *m, const struct nhca_rxeth *x)
{
	u8 side = m->what == PEER_READ ? NHCA_RX_NOTIFY_TARGET : NHCA_RX_NOTIFY_INITIATOR;

	if (x->tid != m->tid)
		return x->tid < m->tid ? NHCA_RCXT_STALE : NHCA_RCXT_UNSOLICITED;
	if (m->complete)
		return NHCA_RCXT_DUPLICATE;
	if ((m->what != OWN_WRITE && m->what != PEER_READ) || !(m->notify & side))
		return NHCA_RCXT_UNSOLICITED;
	if (x->total != m->total || x->segment != m->segment)
		return NHCA_RCXT_MISMATCH;
	if (m->told)
		return NHCA_RCXT_DUPLICATE;
	m->told = true;
	/* while the send engine still makes packets, the transfer does not complete */
	if (!m->sent)
		return NHCA_RCXT_LATER;
	m->complete = m->what == PEER_READ;
	m->releasing = m->what == OWN_WRITE;
	return NHCA_RCXT_ACCEPT;
}

/* All packets are sent. Return: true if the notice has arrived before. */
static bool model_sent(struct model *m)
{
	u8 side = m->what == PEER_READ ? NHCA_RX_NOTIFY_TARGET : NHCA_RX_NOTIFY_INITIATOR;

	if (m->sent || (m->what != OWN_WRITE && m->what != PEER_READ))
		return false;
	m->sent = true;
	m->complete = m->told && m->what == PEER_READ;
	m->releasing = m->told && m->what == OWN_WRITE;
	if (!(m->notify & side))
		m->what = NOTHING;
	return m->told;
}

static int model_may_begin(const struct model *m, u32 tid)
{
	if (tid <= m->tid)
		return -EINVAL;
	if (m->releasing || ((m->what == OWN_WRITE || m->what == PEER_READ) && !m->sent))
		return -EBUSY;
	return m->copying ? -EAGAIN : 0;
}

static int model_again(struct model *m, u32 tid)
{
	if (tid != m->tid)
		return -EINVAL;
	if (m->complete)
		return -EALREADY;
	if (m->what != OWN_WRITE)
		return -EINVAL;
	if (!m->sent || m->releasing)
		return -EBUSY;
	m->sent = false;
	return 0;
}

static int model_cancel(struct model *m, u32 tid)
{
	if (tid < m->tid)
		return -EINVAL;
	if (tid == m->tid && m->complete)
		return -EALREADY;
	if (m->releasing)
		return -EBUSY;
	m->what = NOTHING;
	m->complete = false;
	m->tid = tid;
	return 0;
}

static enum nhca_rcxt_verdict model_fence(struct model *m, u32 tid, enum nhca_rx_status *status)
{
	if (!tid || tid < m->tid)
		return NHCA_RCXT_STALE;
	if (tid == m->tid && m->complete) {
		*status = NHCA_RX_ST_DONE;
		return NHCA_RCXT_ACCEPT;
	}
	if ((m->what == OWN_WRITE || m->what == OWN_READ) && !m->complete && !m->refused)
		return NHCA_RCXT_BUSY;
	m->what = NOTHING;
	m->complete = false;
	m->tid = tid;
	*status = NHCA_RX_ST_FENCED;
	return m->copying ? NHCA_RCXT_WAIT : NHCA_RCXT_ACCEPT;
}

static enum nhca_rx_status model_status(const struct model *m, const struct nhca_rxeth *x)
{
	if (x->tid != m->tid || x->total != m->total || x->segment != m->segment)
		return NHCA_RX_ST_NONE;
	if (m->complete)
		return NHCA_RX_ST_DONE;
	if (m->refused)
		return m->what == NOTHING ? NHCA_RX_ST_NONE : NHCA_RX_ST_VIOLATED;
	return m->what == OWN_READ || m->what == PEER_WRITE ? NHCA_RX_ST_PARTIAL : NHCA_RX_ST_NONE;
}

/* ---- events ---- */

/* Return: a packet that nhca_rxeth_fits() accepts, mostly of the transfer in progress. */
static struct nhca_rxeth draw_packet(struct tid_fixture *f)
{
	static const u32 tids[] = { 0, 0, 0, 0, 0, 0, 1, -1, 7, -3 };
	static const u32 counts[] = { 1, 2, 5, 63, 64, 65, MAX_PACKETS };
	struct nhca_rxeth x = {
		.tid = f->m.tid + tids[draw(f, ARRAY_SIZE(tids))],
		.total = f->m.total,
		.segment = f->m.segment,
		.notify = draw(f, 4),
		.half = f->m.half,
	};
	u64 base = f->m.base;

	/* tids are compared as numbers, and do not wrap */
	if (x.tid > f->m.tid + 10)
		x.tid = 0;
	if (x.tid > f->m.tid || !x.segment || !draw(f, 30)) {
		x.segment = 64 + 4 * draw(f, 3);
		x.total = counts[draw(f, ARRAY_SIZE(counts))] * x.segment - draw(f, x.segment);
		if (!draw(f, 8))
			x.total = 0;
		base = BASE + draw(f, 1 << 20);
		x.half = draw(f, 2);
	} else if (!draw(f, 30)) {
		base++;
	} else if (!draw(f, 30)) {
		x.half = !x.half;
	}
	x.offset = draw(f, nhca_rcxt_packets(x.total, x.segment)) * x.segment;
	x.length = nhca_rcxt_packet_len(x.total, x.segment, x.offset);
	x.pvo = x.half ? x.offset : base + x.offset;
	return x;
}

static void expect_verdict(struct kunit *test, struct tid_fixture *f, const char *what,
			   enum nhca_rcxt_verdict have, enum nhca_rcxt_verdict want)
{
	KUNIT_ASSERT_EQ_MSG(test, have, want, "%s: state %u tid %u", what, f->rc->state,
			    f->rc->tid);
	f->verdicts[want]++;
}

static void step_payload(struct kunit *test, struct tid_fixture *f)
{
	struct nhca_rxeth x = draw_packet(f);
	bool memory = draw(f, 5), read = f->m.what == OWN_READ;
	enum nhca_rcxt_verdict want;
	u32 left, run;

	if (f->m.copying == COPIES)
		return;
	if (!draw(f, 20))
		read = !read;
	want = model_payload(&f->m, &x, read, memory);
	f->pool.map_limit = memory ? NHCA_RCXT_MAP_LIMIT : 0;
	expect_verdict(test, f, "payload", nhca_rcxt_payload(&f->pool, f->rc, &x, read), want);
	f->pool.map_limit = NHCA_RCXT_MAP_LIMIT;

	/* sometimes the next packets of the transfer follow in the same batch */
	left = x.length == x.segment ? (x.total - x.offset) / x.segment - 1 : 0;
	if (want || !left || x.half || draw(f, 3))
		return;
	run = draw(f, left + 1);
	KUNIT_ASSERT_EQ(test, nhca_rcxt_run(f->rc, &x, run), model_run(&f->m, &x, run));
	f->runs++;
}

static void step_copied(struct kunit *test, struct tid_fixture *f)
{
	bool ok = draw(f, 60), complete = false, half, kick;
	struct nhca_rxeth x;
	u32 which;

	if (!f->m.copying)
		return;
	which = draw(f, f->m.copying);
	x = f->m.copies[which].x;
	half = x.half;
	if (half && !draw(f, 4)) {
		model_not_framed(&f->m, which);
		nhca_rcxt_not_framed(f->rc, &x);
		f->not_framed++;
	} else {
		/* memory protection does not check frames */
		ok |= half;
		complete = model_copied(&f->m, which, ok);
		KUNIT_ASSERT_EQ(test, nhca_rcxt_copied(&f->pool, f->rc, ok), complete);
	}
	f->completions += complete && !half;
	f->half_completions += complete && half;
	kick = f->m.awaited && !f->m.copying;
	KUNIT_ASSERT_EQ(test, nhca_rcxt_awaited(f->rc), kick);
	if (kick)
		f->m.awaited = false;
	f->kicks += kick;
}

static void step_peer(struct kunit *test, struct tid_fixture *f)
{
	struct nhca_rxeth x = draw_packet(f);

	if (draw(f, 2)) {
		expect_verdict(test, f, "request", nhca_rcxt_request(f->rc, &x),
			       model_request(&f->m, &x));
	} else {
		enum nhca_rcxt_verdict want = model_notice(&f->m, &x);

		expect_verdict(test, f, "notice", nhca_rcxt_notice(f->rc, &x), want);
		f->notices += !want || want == NHCA_RCXT_LATER;
	}
}

static void step_own(struct kunit *test, struct tid_fixture *f)
{
	struct nhca_rxeth x = draw_packet(f);
	u32 tid = x.tid;
	int want;

	want = model_may_begin(&f->m, tid);
	switch (draw(f, 4)) {
	case 0: case 1:
		KUNIT_ASSERT_EQ(test, nhca_rcxt_begin_write(&f->pool, f->rc, tid, x.total,
							    x.segment, x.notify, tid), want);
		if (!want) {
			model_begin(&f->m, OWN_WRITE, tid, x.total, x.segment, x.notify);
			f->m.wrote = true;
		}
		break;
	case 2:
		KUNIT_ASSERT_EQ(test, nhca_rcxt_begin_read(&f->pool, f->rc, tid, x.total, x.segment,
							   x.notify, BASE, tid), want);
		if (!want) {
			model_begin(&f->m, OWN_READ, tid, x.total, x.segment, x.notify);
			f->m.base = BASE;
		}
		break;
	default:
		KUNIT_ASSERT_EQ(test, nhca_rcxt_begin_frames(&f->pool, f->rc, &x, tid), want);
		if (!want) {
			model_begin(&f->m, OWN_READ, tid, x.total, x.segment, x.notify);
			f->m.half = true;
		}
	}
	/* as nhca_begin() does; if the transfer could not begin, only in three of four cases */
	if (!want || draw(f, 4)) {
		nhca_rcxt_want(f->rc, want);
		f->m.wanted = want == -EBUSY || want == -EAGAIN;
		if (want == -EAGAIN)
			f->m.awaited = true;
	}
	if (!want) {
		KUNIT_ASSERT_EQ(test, f->rc->cookie, tid);
		/* a transfer whose sizes are impossible does not begin */
		KUNIT_ASSERT_EQ(test, nhca_rcxt_begin_write(&f->pool, f->rc, tid + 1,
							    NHCA_RCXT_MAX_LEN + 1, 65532, 0, 0),
				-EINVAL);
	}
}

static void step_send(struct kunit *test, struct tid_fixture *f)
{
	u32 tid = f->m.tid + !draw(f, 10);
	bool sends = tid == f->m.tid && !f->m.sent &&
		     (f->m.what == OWN_WRITE || f->m.what == PEER_READ);

	KUNIT_ASSERT_EQ(test, nhca_rcxt_sends(f->rc, tid), sends);
	if (f->m.releasing && draw(f, 2)) {
		KUNIT_ASSERT_EQ(test, (u32)f->rc->state, (u32)NHCA_RCXT_RELEASING);
		nhca_rcxt_released(f->rc);
		f->m.releasing = false;
		f->m.complete = true;
		f->m.wrote = false;
	} else if (draw(f, 3)) {
		KUNIT_ASSERT_EQ(test, nhca_rcxt_sent(f->rc, tid),
				tid == f->m.tid && model_sent(&f->m));
	} else if (f->m.segment) {
		KUNIT_ASSERT_EQ(test, nhca_rcxt_begin_again(f->rc, tid, f->m.total,
							    f->m.segment), model_again(&f->m, tid));
		KUNIT_ASSERT_EQ(test, nhca_rcxt_begin_again(f->rc, f->m.tid, f->m.total + 1,
							    f->m.segment), -EINVAL);
	}
}

static void step_cancel(struct kunit *test, struct tid_fixture *f)
{
	u32 tid = f->m.tid + draw(f, 3) - 1;

	if (f->m.tid)
		KUNIT_ASSERT_EQ(test, nhca_rcxt_cancel(&f->pool, f->rc, tid),
				model_cancel(&f->m, tid));
	KUNIT_ASSERT_EQ(test, nhca_rcxt_no_copies(f->rc), !f->m.copying);
}

static void step_fence(struct kunit *test, struct tid_fixture *f)
{
	enum nhca_rx_status status = NHCA_RX_ST_NONE, wanted = NHCA_RX_ST_NONE;
	struct nhca_rxeth x = { .tid = f->m.tid + draw(f, 3) - 1 };
	bool known = f->m.segment;
	u32 packets = known ? model_packets(&f->m) : 0, have;
	enum nhca_rcxt_verdict want;

	want = model_fence(&f->m, x.tid, &wanted);
	expect_verdict(test, f, "fence", nhca_rcxt_fence(&f->pool, f->rc, &x, &status, &have),
		       want);
	if (want)
		return;
	KUNIT_ASSERT_EQ(test, status, wanted);
	KUNIT_ASSERT_EQ(test, have, status == NHCA_RX_ST_DONE ? packets : 0);
	f->statuses[status]++;
}

static void step_status(struct kunit *test, struct tid_fixture *f)
{
	struct nhca_rxeth x = draw_packet(f);
	u32 room = 1 + draw(f, 40), len, have, i, first = x.offset / x.segment, came = 0;
	enum nhca_rx_status status;
	u8 map[41];

	memset(map, 0xa5, sizeof(map));
	status = nhca_rcxt_status(f->rc, &x, map, room, &len, &have);
	f->statuses[status]++;
	KUNIT_ASSERT_EQ(test, status, model_status(&f->m, &x));
	KUNIT_ASSERT_EQ(test, map[status == NHCA_RX_ST_PARTIAL ? len : 0], 0xa5);
	if (status != NHCA_RX_ST_PARTIAL) {
		KUNIT_ASSERT_EQ(test, len, 0);
		KUNIT_ASSERT_EQ(test, have, status ? 0 : model_packets(&f->m));
		return;
	}
	for (i = 0; i < model_packets(&f->m); i++) {
		came += f->m.got[i];
		if (i >= first && i - first < len * 8)
			KUNIT_ASSERT_EQ(test, map[(i - first) / 8] >> (i - first) % 8 & 1,
					f->m.got[i]);
	}
	KUNIT_ASSERT_EQ(test, have, came);
	KUNIT_ASSERT_EQ(test, len, min(room, (model_packets(&f->m) - first + 7) / 8));
	for (i = model_packets(&f->m); i - first < len * 8; i++)
		KUNIT_ASSERT_EQ(test, map[(i - first) / 8] >> (i - first) % 8 & 1, 0);
	/* the status fits a packet */
	x.length = len;
	KUNIT_ASSERT_TRUE(test, nhca_rxeth_fits(&x, NHCA_RX_STATUS, len));
}

/* In a random history, every verdict, status and completion agrees with the model. */
static void rcxt_tid_history(struct kunit *test)
{
	struct tid_fixture *f = tid_setup(test);
	u32 step, i;

	for (step = 0; step < STEPS; step++) {
		switch (draw(f, 40)) {
		case 0:
			/* more often while a work request waits */
			do {
				step_own(test, f);
			} while (f->m.wanted && !draw(f, 3));
			break;
		case 1: case 2:
			step_send(test, f);
			break;
		case 3: case 4:
			step_peer(test, f);
			break;
		case 5: case 6:
			step_status(test, f);
			break;
		case 7:
			if (!draw(f, 8))
				step_cancel(test, f);
			else if (!draw(f, 8))
				step_fence(test, f);
			break;
		case 8: case 9: case 10: case 11: case 12: case 13: case 14: case 15: case 16:
		case 17: case 18: case 19: case 20: case 21: case 22:
			step_copied(test, f);
			break;
		default:
			step_payload(test, f);
		}
		KUNIT_ASSERT_EQ(test, f->rc->tid, f->m.tid);
		KUNIT_ASSERT_EQ(test, (u32)f->rc->copies, f->m.copying);
		KUNIT_ASSERT_EQ(test, (bool)f->rc->wrote, f->m.wrote);
		KUNIT_ASSERT_EQ(test, (bool)f->rc->wanted, f->m.wanted);
	}
	for (i = 0; i < ARRAY_SIZE(f->verdicts); i++)
		KUNIT_EXPECT_GT_MSG(test, f->verdicts[i], 10, "too few of verdict %u", i);
	/* the other statuses do not depend on the state of an rCxt */
	for (i = 0; i <= NHCA_RX_ST_FENCED; i++)
		KUNIT_EXPECT_GT_MSG(test, f->statuses[i], 10, "too few of status %u", i);
	KUNIT_EXPECT_GT(test, f->completions, 100);
	KUNIT_EXPECT_GT(test, f->half_completions, 100);
	KUNIT_EXPECT_GT(test, f->not_framed, 1000);
	KUNIT_EXPECT_GT(test, f->kicks, 10);
	KUNIT_EXPECT_GT(test, f->runs, 1000);
	KUNIT_EXPECT_GT(test, f->notices, 50);
	while (f->m.copying)
		step_copied(test, f);
	tid_teardown(test, f);
}

/* ---- each byte is placed once ---- */

#define SEGMENT		64u
#define TRANSFERS	300

/* maximum number of copies at a time */
#define ENGINES		8u

/*
 * Each packet of a transfer is placed once, and the transfer completes once, with its last packet.
 * Each packet arrives twice or more, partly in random order, and between packets of the previous
 * transfer. Up to eight CPUs copy at a time.
 */
static void rcxt_tid_placed_once(struct kunit *test)
{
	struct tid_fixture *f = tid_setup(test);
	u32 tid, n, i, sent, landed, copying = 0;
	u8 *seen = kunit_kzalloc(test, NHCA_RCXT_MAX_PACKETS, GFP_KERNEL);
	struct nhca_rxeth x = {};
	bool done;

	KUNIT_ASSERT_NOT_NULL(test, seen);
	for (tid = 1; tid <= TRANSFERS; tid++) {
		/*
		 * small transfers, and every hundredth transfer with the maximum number of packets
		 */
		n = tid % 100 ? 1 + draw(f, 150) : NHCA_RCXT_MAX_PACKETS;
		memset(seen, 0, n);
		for (sent = 0, landed = 0, done = false; !done; sent++) {
			KUNIT_ASSERT_LT(test, sent, 100 * n + 1000);
			x.tid = draw(f, 10) ? tid : tid - 1;
			x.segment = SEGMENT;
			x.total = n * SEGMENT - tid % SEGMENT;
			/* mostly in order, so that the last missing packet arrives soon */
			i = draw(f, 3) ? sent % n : draw(f, n);
			x.offset = i * SEGMENT;
			x.pvo = BASE + x.offset;
			if (!nhca_rcxt_payload(&f->pool, f->rc, &x, false)) {
				KUNIT_ASSERT_EQ(test, x.tid, tid);
				KUNIT_ASSERT_EQ(test, seen[i], 0);
				seen[i] = 1;
				copying++;
			}
			/* end a copy if all CPUs copy or no packet is left, otherwise at random */
			if (!copying || (copying < ENGINES && landed + copying < n && draw(f, 4)))
				continue;
			done = nhca_rcxt_copied(&f->pool, f->rc, true);
			copying--;
			landed++;
			KUNIT_ASSERT_EQ(test, done, landed == n);
		}
		KUNIT_ASSERT_EQ(test, copying, 0);
		KUNIT_ASSERT_NULL(test, memchr_inv(seen, 1, n));
		/* all packets arrive once more */
		x.tid = tid;
		for (i = 0; i < n; i++) {
			x.offset = i * SEGMENT;
			x.pvo = BASE + x.offset;
			KUNIT_ASSERT_EQ(test, nhca_rcxt_payload(&f->pool, f->rc, &x, false),
					NHCA_RCXT_DUPLICATE);
		}
	}
	tid_teardown(test, f);
}

/* A packet with a newer tid waits for copies of the older transfer, which then never completes. */
static void rcxt_tid_newer_during_transfer(struct kunit *test)
{
	struct nhca_rxeth x = { .tid = 5, .total = 4096, .segment = 1024, .pvo = BASE };
	struct tid_fixture *f = tid_setup(test);
	u32 i;

	for (i = 0; i < 3; i++) {
		x.offset = i * 1024;
		x.pvo = BASE + x.offset;
		KUNIT_EXPECT_EQ(test, nhca_rcxt_payload(&f->pool, f->rc, &x, false),
				NHCA_RCXT_ACCEPT);
	}
	KUNIT_EXPECT_FALSE(test, nhca_rcxt_copied(&f->pool, f->rc, true));
	x.tid = 6;
	KUNIT_EXPECT_EQ(test, nhca_rcxt_payload(&f->pool, f->rc, &x, false), NHCA_RCXT_WAIT);
	KUNIT_EXPECT_FALSE(test, nhca_rcxt_copied(&f->pool, f->rc, true));
	KUNIT_EXPECT_EQ(test, nhca_rcxt_payload(&f->pool, f->rc, &x, false), NHCA_RCXT_WAIT);
	KUNIT_EXPECT_FALSE(test, nhca_rcxt_copied(&f->pool, f->rc, true));
	KUNIT_EXPECT_EQ(test, nhca_rcxt_payload(&f->pool, f->rc, &x, false), NHCA_RCXT_ACCEPT);
	KUNIT_EXPECT_EQ(test, f->rc->missing, 3);
	/* the last packet of the older transfer */
	x.tid = 5;
	x.offset = 3072;
	x.pvo = BASE + x.offset;
	KUNIT_EXPECT_EQ(test, nhca_rcxt_payload(&f->pool, f->rc, &x, false), NHCA_RCXT_STALE);
	KUNIT_EXPECT_FALSE(test, nhca_rcxt_copied(&f->pool, f->rc, true));
	tid_teardown(test, f);
}

/*
 * Bitmaps of one user use at most half of the device's memory for bitmaps, and a bitmap is freed
 * with its transfer.
 */
static void rcxt_tid_maps_user_share(struct kunit *test)
{
	const u32 packets = 16384, bytes = packets / 8;
	struct tid_fixture *f = tid_setup(test);

	f->pool.map_limit = 2 * bytes - 1;
	KUNIT_EXPECT_EQ(test, nhca_rcxt_begin_read(&f->pool, f->rc, 1, packets * 1024, 1024, 0,
						   BASE, 1), -ENOMEM);
	KUNIT_EXPECT_EQ(test, atomic_long_read(&f->pool.map_bytes), 0);
	KUNIT_EXPECT_EQ(test, atomic_long_read(&f->list.user->rcxt_maps), 0);
	f->pool.map_limit = 2 * bytes;
	KUNIT_EXPECT_EQ(test, nhca_rcxt_begin_read(&f->pool, f->rc, 1, packets * 1024, 1024, 0,
						   BASE, 1), 0);
	KUNIT_EXPECT_EQ(test, atomic_long_read(&f->list.user->rcxt_maps), bytes);
	tid_teardown(test, f);
}

/*
 * While a work request of the channel waits for the rCxt, peers cannot begin transfers on the rCxt.
 * Otherwise peers could keep the work request waiting forever.
 */
static void rcxt_tid_wanted(struct kunit *test)
{
	struct tid_fixture *f = tid_setup(test);
	struct nhca_rxeth x = { .tid = 1, .total = 2048, .segment = 1024, .length = 1024 };
	int err;

	KUNIT_EXPECT_EQ(test, nhca_rcxt_request(f->rc, &x), NHCA_RCXT_ACCEPT);
	err = nhca_rcxt_begin_write(&f->pool, f->rc, 9, 10, 1024, 0, 1);
	KUNIT_EXPECT_EQ(test, err, -EBUSY);
	nhca_rcxt_want(f->rc, err);
	KUNIT_EXPECT_FALSE(test, nhca_rcxt_sent(f->rc, 1));
	/* refused: a read, a third-party transfer and a write of a peer */
	x.tid = 2;
	KUNIT_EXPECT_EQ(test, nhca_rcxt_may_request(f->rc, &x), NHCA_RCXT_BUSY);
	KUNIT_EXPECT_EQ(test, nhca_rcxt_request(f->rc, &x), NHCA_RCXT_BUSY);
	KUNIT_EXPECT_EQ(test, nhca_rcxt_third_request(f->rc, &x), NHCA_RCXT_BUSY);
	KUNIT_EXPECT_EQ(test, nhca_rcxt_payload(&f->pool, f->rc, &x, false), NHCA_RCXT_BUSY);
	err = nhca_rcxt_begin_write(&f->pool, f->rc, 9, 10, 1024, 0, 1);
	KUNIT_EXPECT_EQ(test, err, 0);
	nhca_rcxt_want(f->rc, err);
	KUNIT_EXPECT_FALSE(test, nhca_rcxt_sent(f->rc, 9));
	x.tid = 10;
	KUNIT_EXPECT_EQ(test, nhca_rcxt_request(f->rc, &x), NHCA_RCXT_ACCEPT);
	tid_teardown(test, f);
}

#define MANY_PACKETS	16384
#define MAP_BYTES	(MANY_PACKETS / 8)

/**
 * struct other - another user, whose transfers begin and end in the interrupt of a timer
 * @timer:  the timer
 * @f:      the fixture
 * @list:   list of @rc
 * @rc:     rCxt of the user
 * @begun:  number of transfers that have begun
 * @failed: number of transfers that had no bitmap
 */
struct other {
	struct hrtimer timer;
	struct tid_fixture *f;
	struct nhca_rcxt_list list;
	struct nhca_rcxt *rc;
	u32 begun;
	u32 failed;
};

static enum hrtimer_restart other_begins(struct hrtimer *timer)
{
	struct other *o = container_of(timer, struct other, timer);
	u32 tid = ++o->begun;

	if (nhca_rcxt_begin_read(&o->f->pool, o->rc, tid, MANY_PACKETS * 1024, 1024, 0, BASE, 1))
		o->failed++;
	nhca_rcxt_cancel(&o->f->pool, o->rc, tid);
	hrtimer_forward_now(timer, ns_to_ktime(50 * NSEC_PER_USEC));
	return HRTIMER_RESTART;
}

/*
 * A user requests more bitmaps than the user may have, without a pause. The refused requests are
 * not charged, not even for a moment, so another user always gets a bitmap.
 */
static void rcxt_tid_maps_refused(struct kunit *test)
{
	struct tid_fixture *f = tid_setup(test);
	struct other *o = kunit_kzalloc(test, sizeof(*o), GFP_KERNEL);
	unsigned long begun = jiffies;
	struct nhca_rcxt_id id;
	u32 accepted = 0;

	KUNIT_ASSERT_NOT_NULL(test, o);
	o->f = f;
	o->list = (struct nhca_rcxt_list)NHCA_RCXT_LIST_INIT;
	o->list.user = nhca_user_get(&f->users, 1001);
	KUNIT_ASSERT_FALSE(test, IS_ERR(o->list.user));
	KUNIT_ASSERT_EQ(test, nhca_rcxt_acquire(&f->pool, 0x1235, &o->list, 1, &id), 0);
	o->rc = &f->pool.rcxts[id.index];
	/*
	 * room for 2.5 bitmaps, of which each user may have half; the first user already has half a
	 * bitmap
	 */
	f->pool.map_limit = 2 * MAP_BYTES + MAP_BYTES / 2;
	KUNIT_ASSERT_EQ(test, nhca_share_charge(f->pool.map_limit, &f->list.user->rcxt_maps,
						&f->pool.map_bytes, MAP_BYTES / 2), 0);
	hrtimer_setup(&o->timer, other_begins, CLOCK_MONOTONIC, HRTIMER_MODE_REL_HARD);
	hrtimer_start(&o->timer, ns_to_ktime(50 * NSEC_PER_USEC), HRTIMER_MODE_REL_HARD);
	while (test_goes_on(begun, HZ, READ_ONCE(o->begun) >= HZ / 4))
		accepted += !nhca_rcxt_begin_read(&f->pool, f->rc, 1, MANY_PACKETS * 1024, 1024, 0,
						  BASE, 1);
	hrtimer_cancel(&o->timer);
	KUNIT_EXPECT_EQ(test, accepted, 0);
	/* without high-resolution timers, the timer expires once in each tick */
	KUNIT_EXPECT_GE(test, o->begun, HZ / 4);
	KUNIT_EXPECT_EQ(test, o->failed, 0);
	atomic_long_sub(MAP_BYTES / 2, &f->list.user->rcxt_maps);
	atomic_long_sub(MAP_BYTES / 2, &f->pool.map_bytes);
	nhca_rcxt_release(&f->pool, &o->list, o->rc);
	nhca_user_put(o->list.user);
	tid_teardown(test, f);
}

static struct kunit_case rcxt_tid_cases[] = {
	KUNIT_CASE(rcxt_tid_history),
	KUNIT_CASE(rcxt_tid_placed_once),
	KUNIT_CASE(rcxt_tid_newer_during_transfer),
	KUNIT_CASE(rcxt_tid_maps_user_share),
	KUNIT_CASE(rcxt_tid_maps_refused),
	KUNIT_CASE(rcxt_tid_wanted),
	{}
};

static struct kunit_suite rcxt_tid_suite = {
	.name = "nhca_rcxt_tid",
	.test_cases = rcxt_tid_cases,
};

kunit_test_suite(rcxt_tid_suite);
