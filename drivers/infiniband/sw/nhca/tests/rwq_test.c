// SPDX-License-Identifier: GPL-2.0
/* KUnit: receive queues and shared receive queues. */
#include <kunit/test.h>
#include <linux/slab.h>

#include "../queue/rwq.h"
#include "../queue/srq.h"

#define RWQ_SGES	4

struct rwr_room {
	struct nhca_rwr *rwr;
	struct nhca_sge *canary;	/* the SGE behind the array, which nothing may write */
};

static struct rwr_room rwr_make(struct kunit *test, u32 max_sge)
{
	struct rwr_room room;

	room.rwr = kunit_kzalloc(test, struct_size(room.rwr, sge, max_sge + 1), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, room.rwr);
	room.canary = &room.rwr->sge[max_sge];
	memset(room.canary, 0xc5, sizeof(*room.canary));
	return room;
}

/* Return: true if the SGE behind the array is unchanged. */
static bool canary_lives(const struct rwr_room *room)
{
	return room->canary->addr == 0xc5c5c5c5c5c5c5c5ULL &&
	       room->canary->length == 0xc5c5c5c5 && room->canary->lkey == 0xc5c5c5c5;
}

/* Let the indices of an empty queue begin with @start, to test where they wrap. */
static void rwq_start_at(struct nhca_rwq *q, u32 start)
{
	q->cons = start;
	q->prod = start;
	q->ring.hdr->prod = start;
	q->ring.hdr->cons = start;
}

/*
 * Fill the slot of @index as user space does, but do not publish the request by the producer index.
 */
static struct nhca_recv_wqe *rwq_fill(struct nhca_rwq *q, u32 index, u64 wr_id, u32 num_sge)
{
	struct nhca_recv_wqe *wqe = nhca_ring_slot(&q->ring, index);
	u32 i;

	memset(wqe, 0xee, q->ring.stride);
	wqe->wr_id = wr_id;
	wqe->num_sge = num_sge;
	for (i = 0; i < min(num_sge, q->max_sge); i++) {
		wqe->sge[i].addr = wr_id * 100 + i;
		wqe->sge[i].length = 1000 + i;
		wqe->sge[i].lkey = i;
	}
	return wqe;
}

/* Each request is fetched once and in order, with its SGEs and the sum of their lengths. */
static void rwq_fetch_test(struct kunit *test)
{
	static const u32 starts[] = { 0, 0xfffffffa, 0x7ffffffe };
	struct rwr_room room = rwr_make(test, RWQ_SGES);
	struct nhca_rwq q;
	u32 i, s, n, index;

	KUNIT_ASSERT_EQ(test, nhca_rwq_init(&q, 8, RWQ_SGES, NULL), 0);
	KUNIT_EXPECT_GE(test, q.max_wr, 8);
	KUNIT_EXPECT_EQ(test, q.max_sge, RWQ_SGES);
	for (s = 0; s < ARRAY_SIZE(starts); s++) {
		rwq_start_at(&q, starts[s]);
		for (i = 0; i < 20; i++) {
			index = starts[s] + i;
			n = i % (RWQ_SGES + 1);
			KUNIT_EXPECT_EQ(test, nhca_rwq_fetch(&q, room.rwr), -ENOENT);
			rwq_fill(&q, index, i, n);
			smp_store_release(&q.ring.hdr->prod, index + 1);	/* as user space */
			KUNIT_EXPECT_EQ(test, nhca_rwq_level(&q), 1);
			KUNIT_ASSERT_EQ(test, nhca_rwq_fetch(&q, room.rwr), 0);
			KUNIT_EXPECT_EQ(test, room.rwr->wr_id, i);
			KUNIT_EXPECT_EQ(test, room.rwr->num_sge, n);
			KUNIT_EXPECT_EQ(test, room.rwr->length, n * 1000 + n * (n - 1) / 2);
			if (n)
				KUNIT_EXPECT_EQ(test, room.rwr->sge[n - 1].addr, i * 100 + n - 1);
			KUNIT_EXPECT_EQ(test, q.ring.hdr->cons, index + 1);
			KUNIT_EXPECT_TRUE(test, canary_lives(&room));
		}
	}
	nhca_rwq_free(&q);
}

/*
 * A request with too many SGEs, or with an SGE that is too long, is consumed and refused with
 * -EINVAL. Its wr_id is valid, because the caller completes the request in error. Nothing is
 * written behind the array of SGEs.
 */
static void rwq_broken_entry_test(struct kunit *test)
{
	static const u32 num_sges[] = { RWQ_SGES + 1, 32, 33, 255, 256, 0x10000000, 0x10000001,
					0x7fffffff, 0x80000000, 0xffffffff };
	static const u32 lengths[] = { 0x80000001, 0xffffffff };
	struct rwr_room room = rwr_make(test, RWQ_SGES);
	struct nhca_recv_wqe *wqe;
	struct nhca_rwq q;
	u32 i, at, index = 0xfffffff8;

	KUNIT_ASSERT_EQ(test, nhca_rwq_init(&q, 4, RWQ_SGES, NULL), 0);
	rwq_start_at(&q, index);
	for (i = 0; i < ARRAY_SIZE(num_sges); i++, index++) {
		rwq_fill(&q, index, 77 + i, num_sges[i]);
		q.ring.hdr->prod = index + 1;
		KUNIT_EXPECT_EQ(test, nhca_rwq_fetch(&q, room.rwr), -EINVAL);
		KUNIT_EXPECT_EQ(test, room.rwr->wr_id, 77 + i);
		KUNIT_EXPECT_LE(test, room.rwr->num_sge, RWQ_SGES);
		/* the request is consumed, so that it does not block the next request */
		KUNIT_EXPECT_EQ(test, q.ring.hdr->cons, index + 1);
		KUNIT_EXPECT_TRUE(test, canary_lives(&room));
	}
	for (i = 0; i < ARRAY_SIZE(lengths); i++) {
		for (at = 0; at < RWQ_SGES; at++, index++) {
			wqe = rwq_fill(&q, index, at, RWQ_SGES);
			wqe->sge[at].length = lengths[i];
			q.ring.hdr->prod = index + 1;
			KUNIT_EXPECT_EQ(test, nhca_rwq_fetch(&q, room.rwr), -EINVAL);
			KUNIT_EXPECT_EQ(test, room.rwr->wr_id, at);
			KUNIT_EXPECT_EQ(test, q.ring.hdr->cons, index + 1);
		}
	}
	/*
	 * an SGE may have 2^31 bytes; if the sum of two does not fit into 32 bits, the length is
	 * U32_MAX
	 */
	wqe = rwq_fill(&q, index, 5, 1);
	wqe->sge[0].length = 0x80000000;
	q.ring.hdr->prod = ++index;
	KUNIT_EXPECT_EQ(test, nhca_rwq_fetch(&q, room.rwr), 0);
	KUNIT_EXPECT_EQ(test, room.rwr->length, 0x80000000);
	wqe = rwq_fill(&q, index, 5, 2);
	wqe->sge[0].length = 0x80000000;
	wqe->sge[1].length = 0x80000000;
	q.ring.hdr->prod = ++index;
	KUNIT_EXPECT_EQ(test, nhca_rwq_fetch(&q, room.rwr), 0);
	KUNIT_EXPECT_EQ(test, room.rwr->length, U32_MAX);
	nhca_rwq_free(&q);
}

/*
 * A producer index that is too far ahead is refused with -EPROTO. The kernel ignores the consumer
 * index in the ring, because user space can write it.
 */
static void rwq_hostile_index_test(struct kunit *test)
{
	static const u32 ahead[] = { 5, 0x7fffffff, 0x80000000, 0xffffffff };
	struct rwr_room room = rwr_make(test, RWQ_SGES);
	struct nhca_rwq q;
	u32 i;

	KUNIT_ASSERT_EQ(test, nhca_rwq_init(&q, 4, RWQ_SGES, NULL), 0);
	rwq_start_at(&q, 0xfffffffe);
	for (i = 0; i < ARRAY_SIZE(ahead); i++) {
		q.ring.hdr->prod = 0xfffffffe + ahead[i];
		/* only q.cons counts, so this index of user space has no effect */
		q.ring.hdr->cons = q.ring.hdr->prod - 1;
		KUNIT_EXPECT_EQ(test, nhca_rwq_fetch(&q, room.rwr), -EPROTO);
		KUNIT_EXPECT_EQ(test, nhca_rwq_level(&q), 0);
		KUNIT_EXPECT_EQ(test, q.cons, 0xfffffffe);
	}
	nhca_rwq_free(&q);
}

/* A kernel consumer can post until the queue is full. Requests are fetched in order. */
static void rwq_post_test(struct kunit *test)
{
	struct ib_sge sges[RWQ_SGES + 1] = {
		{ .addr = 1, .length = 10, .lkey = 100 }, { .addr = 2, .length = 20, .lkey = 200 },
		{ .addr = 3, .length = 30, .lkey = 300 }, { .addr = 4, .length = 40, .lkey = 400 },
	};
	struct ib_recv_wr wr = { .sg_list = sges, .num_sge = RWQ_SGES };
	struct rwr_room room = rwr_make(test, RWQ_SGES);
	struct nhca_rwq q;
	u32 i, round, posted;

	KUNIT_ASSERT_EQ(test, nhca_rwq_init(&q, 3, RWQ_SGES, NULL), 0);
	rwq_start_at(&q, 0xfffffffd);

	wr.num_sge = RWQ_SGES + 1;
	KUNIT_EXPECT_EQ(test, nhca_rwq_post(&q, &wr), -EINVAL);
	wr.num_sge = -1;
	KUNIT_EXPECT_EQ(test, nhca_rwq_post(&q, &wr), -EINVAL);
	KUNIT_EXPECT_EQ(test, nhca_rwq_level(&q), 0);

	wr.num_sge = RWQ_SGES;
	for (round = 0; round < 4; round++) {
		posted = 0;
		for (;; posted++) {
			wr.wr_id = round * 1000 + posted;
			if (nhca_rwq_post(&q, &wr))
				break;
		}
		KUNIT_EXPECT_EQ(test, posted, q.max_wr);
		KUNIT_EXPECT_EQ(test, nhca_rwq_post(&q, &wr), -ENOMEM);
		KUNIT_EXPECT_EQ(test, nhca_rwq_level(&q), posted);
		for (i = 0; i < posted; i++) {
			KUNIT_ASSERT_EQ(test, nhca_rwq_fetch(&q, room.rwr), 0);
			KUNIT_EXPECT_EQ(test, room.rwr->wr_id, round * 1000 + i);
			KUNIT_EXPECT_EQ(test, room.rwr->length, 100);
			KUNIT_EXPECT_EQ(test, room.rwr->sge[3].addr, 4);
			KUNIT_EXPECT_EQ(test, room.rwr->sge[3].lkey, 400);
		}
		KUNIT_EXPECT_EQ(test, nhca_rwq_fetch(&q, room.rwr), -ENOENT);
	}
	nhca_rwq_free(&q);

	KUNIT_EXPECT_EQ(test, nhca_rwq_init(&q, 1, NHCA_MAX_SGE + 1, NULL), -EINVAL);
	/* a request without SGEs is valid */
	KUNIT_ASSERT_EQ(test, nhca_rwq_init(&q, 1, 0, NULL), 0);
	wr.num_sge = 0;
	KUNIT_EXPECT_EQ(test, nhca_rwq_post(&q, &wr), 0);
	KUNIT_EXPECT_EQ(test, nhca_rwq_fetch(&q, room.rwr), 0);
	KUNIT_EXPECT_EQ(test, room.rwr->length, 0);
	nhca_rwq_free(&q);
}

#define MOVE_POSTED	1000

/* Post @count requests. The wr_id of a request is @from plus its index. */
static void post_range(struct kunit *test, struct nhca_rwq *q, u32 from, u32 count)
{
	struct ib_recv_wr wr = {};
	u32 i;

	for (i = 0; i < count; i++) {
		wr.wr_id = from + i;
		KUNIT_ASSERT_EQ(test, nhca_rwq_post(q, &wr), 0);
	}
}

static void fetch_range(struct kunit *test, struct nhca_rwq *q, struct nhca_rwr *rwr, u32 from,
			u32 count)
{
	u32 i;

	for (i = 0; i < count; i++) {
		KUNIT_ASSERT_EQ(test, nhca_rwq_fetch(q, rwr), 0);
		KUNIT_ASSERT_EQ(test, rwr->wr_id, from + i);
	}
}

/*
 * Requests are posted and fetched between the steps of a move. Each request is fetched once and in
 * order. The move ends only when a step has at most NHCA_RWQ_STEP requests left, which it copies
 * with the queue's lock held.
 */
static void rwq_move_test(struct kunit *test)
{
	struct rwr_room room = rwr_make(test, 1);
	struct nhca_rwq q, new;
	struct nhca_rwq_move m;

	KUNIT_ASSERT_EQ(test, nhca_rwq_init(&q, MOVE_POSTED + 20, 1, NULL), 0);
	KUNIT_ASSERT_EQ(test, nhca_rwq_init(&new, 4 * MOVE_POSTED, 1, NULL), 0);
	rwq_start_at(&q, 0xffffff00);
	post_range(test, &q, 0, MOVE_POSTED);
	nhca_rwq_move_start(&q, &m, &new.ring);
	KUNIT_EXPECT_EQ(test, nhca_rwq_move_step(&q, &m), -EAGAIN);

	/*
	 * new requests use the slots of fetched requests, so the next step has to copy these slots
	 */
	fetch_range(test, &q, room.rwr, 0, 600);
	post_range(test, &q, MOVE_POSTED, NHCA_RWQ_STEP + 1);
	KUNIT_EXPECT_EQ(test, nhca_rwq_move_step(&q, &m), -EAGAIN);
	/* the requests that are fetched include requests that no step has copied */
	fetch_range(test, &q, room.rwr, 600, MOVE_POSTED + NHCA_RWQ_STEP + 1 - 600);
	post_range(test, &q, 5000, NHCA_RWQ_STEP);
	KUNIT_EXPECT_EQ(test, nhca_rwq_move_step(&q, &m), 0);
	KUNIT_EXPECT_EQ(test, q.max_wr, new.max_wr);
	KUNIT_EXPECT_EQ(test, nhca_rwq_level(&q), NHCA_RWQ_STEP);
	fetch_range(test, &q, room.rwr, 5000, NHCA_RWQ_STEP);
	KUNIT_EXPECT_EQ(test, nhca_rwq_fetch(&q, room.rwr), -ENOENT);
	post_range(test, &q, 7000, q.max_wr);
	fetch_range(test, &q, room.rwr, 7000, q.max_wr);
	nhca_rwq_free(&q);
	nhca_rwq_free(&new);
}

/*
 * A new ring that is too small is refused, and so is a producer index that is too far ahead. The
 * queue then keeps its ring and its requests.
 */
static void rwq_move_refused_test(struct kunit *test)
{
	static const u32 prods[] = { 0x7fffffff, 0xffffffff, 2000, 1024, 900, 257, 1 };
	struct rwr_room room = rwr_make(test, 1);
	struct nhca_rwq q, small, new;
	struct nhca_rwq_move m;
	u32 i;
	int err;

	KUNIT_ASSERT_EQ(test, nhca_rwq_init(&q, 1024, 1, NULL), 0);
	KUNIT_ASSERT_EQ(test, nhca_rwq_init(&small, 256, 1, NULL), 0);
	KUNIT_ASSERT_EQ(test, nhca_rwq_init(&new, 2048, 1, NULL), 0);
	post_range(test, &q, 0, 257);
	nhca_rwq_move_start(&q, &m, &small.ring);
	KUNIT_EXPECT_EQ(test, nhca_rwq_move_step(&q, &m), -EINVAL);
	KUNIT_EXPECT_EQ(test, q.max_wr, 1024);
	fetch_range(test, &q, room.rwr, 0, 1);
	nhca_rwq_move_start(&q, &m, &small.ring);
	while ((err = nhca_rwq_move_step(&q, &m)) == -EAGAIN)
		;
	KUNIT_EXPECT_EQ(test, err, 0);
	fetch_range(test, &q, room.rwr, 1, 256);

	/*
	 * the queue is empty, and user space changes its producer index between the steps of the
	 * next move
	 */
	nhca_rwq_move_start(&q, &m, &new.ring);
	q.ring.hdr->prod = q.cons + 200;
	KUNIT_EXPECT_EQ(test, nhca_rwq_move_step(&q, &m), -EAGAIN);
	for (i = 0; i < ARRAY_SIZE(prods); i++) {
		q.ring.hdr->prod = q.cons + prods[i];
		err = nhca_rwq_move_step(&q, &m);
		/* the ring has 256 slots; the last index ends the move */
		KUNIT_EXPECT_EQ_MSG(test, err, prods[i] > 256 ? -EINVAL : 0, "index %u", prods[i]);
	}
	KUNIT_EXPECT_EQ(test, nhca_rwq_level(&q), 1);
	KUNIT_EXPECT_EQ(test, q.max_wr, 2048);
	nhca_rwq_free(&q);
	nhca_rwq_free(&small);
	nhca_rwq_free(&new);
}

/*
 * A move ends with -EBUSY if user space changes its producer index again and again. A process could
 * do so by watching the copies in its own memory. If the move never ended, the device could not be
 * removed.
 */
static void rwq_move_endless_test(struct kunit *test)
{
	struct nhca_rwq q, new;
	struct nhca_rwq_move m;
	u32 i;
	int err;

	KUNIT_ASSERT_EQ(test, nhca_rwq_init(&q, 1024, 1, NULL), 0);
	KUNIT_ASSERT_EQ(test, nhca_rwq_init(&new, 2048, 1, NULL), 0);
	nhca_rwq_move_start(&q, &m, &new.ring);
	for (i = 0, err = -EAGAIN; i < 10000 && err == -EAGAIN; i++) {
		WRITE_ONCE(q.ring.hdr->prod, q.cons + (i & 1 ? 1000 : 100));
		err = nhca_rwq_move_step(&q, &m);
	}
	KUNIT_EXPECT_EQ(test, err, -EBUSY);
	KUNIT_EXPECT_EQ(test, q.max_wr, 1024);
	nhca_rwq_free(&q);
	nhca_rwq_free(&new);
}

/* ---- shared receive queues ---- */

struct srq_fixture {
	struct nhca_srq srq;
	unsigned int limit_events;
	unsigned int err_events;
};

static void on_srq_event(struct ib_event *event, void *context)
{
	struct srq_fixture *f = context;

	if (event->event == IB_EVENT_SRQ_LIMIT_REACHED)
		f->limit_events++;
	if (event->event == IB_EVENT_SRQ_ERR)
		f->err_events++;
}

/* Fetch a receive. The event handler has run on return, because local_bh_enable() runs BH work. */
static int srq_fetch(struct srq_fixture *f, struct nhca_rwr *rwr)
{
	int err;

	local_bh_disable();
	err = nhca_srq_fetch(&f->srq, rwr);
	local_bh_enable();
	return err;
}

static void srq_events(struct kunit *test, bool user)
{
	struct srq_fixture *f = kunit_kzalloc(test, sizeof(*f), GFP_KERNEL);
	struct rwr_room room = rwr_make(test, 1);
	struct ib_recv_wr wr = {};
	int i;

	KUNIT_ASSERT_NOT_NULL(test, f);
	KUNIT_ASSERT_EQ(test, nhca_rwq_init(&f->srq.wq, 8, 1, NULL), 0);
	f->srq.user = user;
	nhca_srq_init(&f->srq);
	f->srq.ibsrq.event_handler = on_srq_event;
	f->srq.ibsrq.srq_context = f;

	for (i = 0; i < 8; i++)
		KUNIT_ASSERT_EQ(test, nhca_rwq_post(&f->srq.wq, &wr), 0);
	f->srq.limit = 6;
	/* 7 and then 6 receives are left, and neither is below the limit */
	KUNIT_EXPECT_EQ(test, srq_fetch(f, room.rwr), 0);
	KUNIT_EXPECT_EQ(test, srq_fetch(f, room.rwr), 0);
	KUNIT_EXPECT_EQ(test, f->limit_events, 0);
	/* 5 receives are left, which is below the limit */
	KUNIT_EXPECT_EQ(test, srq_fetch(f, room.rwr), 0);
	KUNIT_EXPECT_EQ(test, f->limit_events, 1);
	KUNIT_EXPECT_EQ(test, f->srq.limit, 0);
	/*
	 * the event has disarmed the limit, so another fetch raises no event until the limit is set
	 * again
	 */
	KUNIT_EXPECT_EQ(test, srq_fetch(f, room.rwr), 0);
	KUNIT_EXPECT_EQ(test, f->limit_events, 1);
	f->srq.limit = 4;
	KUNIT_EXPECT_EQ(test, srq_fetch(f, room.rwr), 0);
	KUNIT_EXPECT_EQ(test, f->limit_events, 2);

	/*
	 * a producer index that is too far ahead raises one error event, even if several fetches
	 * find it
	 */
	f->srq.wq.ring.hdr->prod += 100;
	f->srq.limit = 4;
	for (i = 0; i < 3; i++) {
		KUNIT_EXPECT_EQ(test, srq_fetch(f, room.rwr), -EPROTO);
		KUNIT_EXPECT_EQ(test, f->err_events, 1);
	}
	KUNIT_EXPECT_EQ(test, f->limit_events, 2);
	nhca_srq_stop(&f->srq);
	nhca_rwq_free(&f->srq.wq);
}

/*
 * An SRQ raises one limit event each time the limit is armed, when fewer receives are left than the
 * limit. It raises one error event for a producer index that is too far ahead.
 */
static void srq_test(struct kunit *test)
{
	srq_events(test, false);
	srq_events(test, true);
}

/*
 * nhca_srq_fetch() does not call the event handler of a kernel consumer itself, because its caller
 * holds locks of a QP and may have been called by a verb of this consumer. nhca_srq_stop() waits
 * for the handler.
 */
static void srq_call_chain_test(struct kunit *test)
{
	struct srq_fixture *f = kunit_kzalloc(test, sizeof(*f), GFP_KERNEL);
	struct rwr_room room = rwr_make(test, 1);
	struct ib_recv_wr wr = {};

	KUNIT_ASSERT_NOT_NULL(test, f);
	KUNIT_ASSERT_EQ(test, nhca_rwq_init(&f->srq.wq, 8, 1, NULL), 0);
	nhca_srq_init(&f->srq);
	f->srq.ibsrq.event_handler = on_srq_event;
	f->srq.ibsrq.srq_context = f;
	KUNIT_ASSERT_EQ(test, nhca_rwq_post(&f->srq.wq, &wr), 0);
	f->srq.limit = 1;
	local_bh_disable();
	KUNIT_EXPECT_EQ(test, nhca_srq_fetch(&f->srq, room.rwr), 0);
	KUNIT_EXPECT_EQ(test, f->limit_events, 0);
	local_bh_enable();
	KUNIT_EXPECT_EQ(test, f->limit_events, 1);

	KUNIT_ASSERT_EQ(test, nhca_rwq_post(&f->srq.wq, &wr), 0);
	f->srq.limit = 1;
	local_bh_disable();
	KUNIT_EXPECT_EQ(test, nhca_srq_fetch(&f->srq, room.rwr), 0);
	local_bh_enable();
	nhca_srq_stop(&f->srq);
	KUNIT_EXPECT_EQ(test, f->limit_events, 2);
	nhca_rwq_free(&f->srq.wq);
}

static struct kunit_case rwq_cases[] = {
	KUNIT_CASE(rwq_fetch_test),
	KUNIT_CASE(rwq_broken_entry_test),
	KUNIT_CASE(rwq_hostile_index_test),
	KUNIT_CASE(rwq_post_test),
	KUNIT_CASE(rwq_move_test),
	KUNIT_CASE(rwq_move_refused_test),
	KUNIT_CASE(rwq_move_endless_test),
	KUNIT_CASE(srq_test),
	KUNIT_CASE(srq_call_chain_test),
	{}
};

static struct kunit_suite rwq_suite = {
	.name = "nhca_rwq",
	.test_cases = rwq_cases,
};

kunit_test_suite(rwq_suite);
