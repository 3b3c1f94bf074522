// SPDX-License-Identifier: GPL-2.0
/* KUnit: the pool of rCxts, compared with a queue in an array. */
#include <kunit/test.h>
#include <linux/prandom.h>
#include <linux/slab.h>
#include <linux/sort.h>
#include <linux/vmalloc.h>

#include "../rcxt/pool.h"
#include "../rcxt/tid.h"

#define CHANNELS	5
#define SIZE		257
#define STEPS		40000

/**
 * struct model - a pool without lists
 * @queue:  indices of the free rCxts, in the order in which they will be acquired
 * @free:   number of free rCxts
 * @owner:  QPN of each rCxt's channel; 0: free
 * @key:    last key of each rCxt; 0: it was never acquired
 * @recoveries: number of recoveries, as in nhca_rcxt_pool.recoveries
 */
struct model {
	u32 queue[SIZE];
	u32 free;
	u32 owner[SIZE];
	u32 key[SIZE];
	u16 recoveries;
};

struct pool_fixture {
	struct nhca_rcxt_pool pool;
	struct nhca_rcxt_list lists[CHANNELS];
	struct model model;
	struct rnd_state rnd;
	struct nhca_rcxt_id ids[SIZE];
};

static u32 draw(struct rnd_state *rnd, u32 below)
{
	return prandom_u32_state(rnd) % below;
}

/* QPNs of channels differ from indices */
static u32 qpn(u32 channel)
{
	return 0x1000 + channel;
}

static struct pool_fixture *pool_setup(struct kunit *test)
{
	struct pool_fixture *f = kunit_kzalloc(test, sizeof(*f), GFP_KERNEL);
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, f);
	prandom_seed_state(&f->rnd, 100000);
	KUNIT_ASSERT_EQ(test, nhca_rcxt_pool_init(&f->pool, SIZE), 0);
	for (i = 0; i < CHANNELS; i++)
		f->lists[i] = (struct nhca_rcxt_list)NHCA_RCXT_LIST_INIT;
	for (i = 0; i < SIZE; i++)
		f->model.queue[i] = i;
	f->model.free = SIZE;
	f->model.recoveries = f->pool.recoveries;
	return f;
}

static struct nhca_rcxt_id model_id(const struct model *m, u32 index)
{
	return (struct nhca_rcxt_id) { index, m->key[index] };
}

static void step_acquire(struct kunit *test, struct pool_fixture *f)
{
	u32 channel = draw(&f->rnd, CHANNELS), count = draw(&f->rnd, 12), i, index;
	struct model *m = &f->model;
	int err;

	/* sometimes request all free rCxts, or one rCxt more */
	if (!draw(&f->rnd, 60))
		count = m->free + draw(&f->rnd, 2);
	count = min_t(u32, count, SIZE);
	err = nhca_rcxt_acquire(&f->pool, qpn(channel), &f->lists[channel], count, f->ids);
	KUNIT_ASSERT_EQ(test, err, count > m->free ? -ENOSPC : 0);
	if (err)
		return;
	for (i = 0; i < count; i++) {
		index = m->queue[i];
		m->owner[index] = qpn(channel);
		KUNIT_ASSERT_EQ(test, f->ids[i].index, index);
		KUNIT_ASSERT_NE(test, f->ids[i].key, m->key[index]);
		KUNIT_ASSERT_EQ(test, f->pool.rcxts[index].key, f->ids[i].key);
		m->key[index] = f->ids[i].key;
		KUNIT_ASSERT_EQ(test, f->pool.rcxts[index].tid, 0);
		KUNIT_ASSERT_EQ(test, (int)f->pool.rcxts[index].state, NHCA_RCXT_IDLE);
	}
	m->free -= count;
	memmove(m->queue, m->queue + count, m->free * sizeof(*m->queue));
}

static void release(struct kunit *test, struct pool_fixture *f, u32 index)
{
	struct model *m = &f->model;
	struct nhca_rcxt_id id = model_id(m, index);
	u32 channel = m->owner[index] - qpn(0);
	struct nhca_rcxt *rc;

	KUNIT_ASSERT_EQ(test, nhca_rcxt_find(&f->pool, qpn(channel), &id, &rc), NHCA_RCXT_FOUND);
	KUNIT_ASSERT_EQ(test, nhca_rcxt_index(&f->pool, rc), index);
	nhca_rcxt_release(&f->pool, &f->lists[channel], rc);
	KUNIT_ASSERT_NE(test, nhca_rcxt_find(&f->pool, qpn(channel), &id, &rc), NHCA_RCXT_FOUND);
	m->owner[index] = 0;
	m->queue[m->free++] = index;
}

static void release_all(struct kunit *test, struct pool_fixture *f)
{
	u32 i;

	for (i = 0; i < CHANNELS; i++)
		while (f->lists[i].first != NHCA_RCXT_NONE)
			release(test, f, f->lists[i].first);
}

/* Compare the lists of the channels, and the number of free rCxts, with the model. */
static void compare(struct kunit *test, struct pool_fixture *f)
{
	u32 held = 0, i, n, at;

	KUNIT_ASSERT_EQ(test, f->pool.free, f->model.free);
	for (i = 0; i < CHANNELS; i++) {
		for (n = 0, at = f->lists[i].first; at != NHCA_RCXT_NONE;
		     at = f->pool.rcxts[at].next, n++)
			KUNIT_ASSERT_EQ(test, f->model.owner[at], qpn(i));
		KUNIT_ASSERT_EQ(test, f->lists[i].count, n);
		held += n;
	}
	KUNIT_ASSERT_EQ(test, held + f->model.free, SIZE);
}

/* Look up a random id for a random channel. Expect the rCxt, or the first check that fails. */
static void step_find(struct kunit *test, struct pool_fixture *f)
{
	u32 channel = draw(&f->rnd, CHANNELS), index = draw(&f->rnd, SIZE + 2);
	enum nhca_rcxt_lookup want = NHCA_RCXT_FOUND;
	struct nhca_rcxt_id id = { .index = index };
	struct model *m = &f->model;
	struct nhca_rcxt *rc;

	if (index >= SIZE) {
		want = NHCA_RCXT_NO_INDEX;
	} else {
		id.key = m->key[index];
		switch (draw(&f->rnd, 4)) {
		case 0:
			id.key ^= 1 << draw(&f->rnd, 32);
			break;
		case 1:
			if (m->owner[index])
				channel = m->owner[index] - qpn(0);
		}
		if (m->owner[index] != qpn(channel))
			want = NHCA_RCXT_NOT_OURS;
		else if (id.key != m->key[index])
			want = NHCA_RCXT_OLD_KEY;
	}
	KUNIT_ASSERT_EQ(test, nhca_rcxt_find(&f->pool, qpn(channel), &id, &rc), want);
	KUNIT_ASSERT_PTR_EQ(test, rc, want ? NULL : &f->pool.rcxts[index]);
}

/* In a random history, acquire, release, lookup and recovery give the results of the model. */
static void rcxt_pool_history(struct kunit *test)
{
	struct pool_fixture *f = pool_setup(test);
	u32 step, index;

	for (step = 0; step < STEPS; step++) {
		switch (draw(&f->rnd, 8)) {
		case 0:
			step_acquire(test, f);
			break;
		case 1: case 2: case 3:
			index = draw(&f->rnd, SIZE);
			if (f->model.owner[index])
				release(test, f, index);
			break;
		default:
			step_find(test, f);
		}
		if (!draw(&f->rnd, 2000)) {
			release_all(test, f);
			f->model.recoveries++;
			KUNIT_ASSERT_EQ(test, nhca_rcxt_pool_recover(&f->pool),
					f->model.recoveries);
		}
		if (!(step % 64))
			compare(test, f);
	}
	release_all(test, f);
	compare(test, f);
	nhca_rcxt_pool_destroy(&f->pool);
}

/* A released rCxt is acquired again after all other free rCxts, and no lookup finds its old id. */
static void rcxt_pool_reuses_oldest(struct kunit *test)
{
	struct pool_fixture *f = pool_setup(test);
	struct nhca_rcxt_id first, id;
	struct nhca_rcxt *rc;
	u32 i;

	KUNIT_ASSERT_EQ(test, nhca_rcxt_acquire(&f->pool, 7, &f->lists[0], 1, &first), 0);
	nhca_rcxt_release(&f->pool, &f->lists[0], &f->pool.rcxts[first.index]);
	for (i = 0; i < SIZE - 1; i++) {
		KUNIT_ASSERT_EQ(test, nhca_rcxt_acquire(&f->pool, 7, &f->lists[0], 1, &id), 0);
		KUNIT_EXPECT_NE(test, id.index, first.index);
		nhca_rcxt_release(&f->pool, &f->lists[0], &f->pool.rcxts[id.index]);
	}
	KUNIT_ASSERT_EQ(test, nhca_rcxt_acquire(&f->pool, 7, &f->lists[0], 1, &id), 0);
	KUNIT_EXPECT_EQ(test, id.index, first.index);
	KUNIT_EXPECT_EQ(test, nhca_rcxt_find(&f->pool, 7, &first, &rc), NHCA_RCXT_OLD_KEY);
	KUNIT_EXPECT_EQ(test, nhca_rcxt_find(&f->pool, 7, &id, &rc), NHCA_RCXT_FOUND);
	nhca_rcxt_release(&f->pool, &f->lists[0], rc);
	nhca_rcxt_pool_destroy(&f->pool);
}

static int cmp_u32(const void *a, const void *b)
{
	return *(const u32 *)a < *(const u32 *)b ? -1 : *(const u32 *)a > *(const u32 *)b;
}

/* An rCxt that is acquired 100,000 times gets 100,000 different keys. */
static void rcxt_pool_keys_unique(struct kunit *test)
{
	const u32 count = 100000;
	struct nhca_rcxt_list list = NHCA_RCXT_LIST_INIT;
	u32 *keys = vmalloc(array_size(count, sizeof(*keys)));
	struct nhca_rcxt_pool pool;
	struct nhca_rcxt_id id;
	u32 i, same = 0;

	KUNIT_ASSERT_NOT_NULL(test, keys);
	KUNIT_ASSERT_EQ(test, nhca_rcxt_pool_init(&pool, 1), 0);
	for (i = 0; i < count; i++) {
		KUNIT_EXPECT_EQ(test, nhca_rcxt_acquire(&pool, 1, &list, 1, &id), 0);
		keys[i] = id.key;
		nhca_rcxt_release(&pool, &list, &pool.rcxts[0]);
		/* keys do not repeat after a recovery either */
		if (i < 10)
			nhca_rcxt_pool_recover(&pool);
	}
	sort(keys, count, sizeof(*keys), cmp_u32, NULL);
	for (i = 1; i < count; i++)
		same += keys[i] == keys[i - 1];
	KUNIT_EXPECT_EQ(test, same, 0);
	nhca_rcxt_pool_destroy(&pool);
	vfree(keys);
}

/* The pool of default size gives out all its rCxts, and an rCxt has at most 64 bytes. */
static void rcxt_pool_default_size(struct kunit *test)
{
	struct nhca_rcxt_list list = NHCA_RCXT_LIST_INIT;
	struct nhca_rcxt_pool pool;
	struct nhca_rcxt_id *ids;

	KUNIT_EXPECT_LE(test, sizeof(struct nhca_rcxt), 64);
	KUNIT_EXPECT_EQ(test, nhca_rcxt_pool_init(&pool, 0), -EINVAL);
	KUNIT_EXPECT_EQ(test, nhca_rcxt_pool_init(&pool, NHCA_RCXT_MAX + 1), -EINVAL);
	ids = kvcalloc(NHCA_RCXT_DEFAULT, sizeof(*ids), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, ids);
	KUNIT_ASSERT_EQ(test, nhca_rcxt_pool_init(&pool, NHCA_RCXT_DEFAULT), 0);
	KUNIT_EXPECT_EQ(test, nhca_rcxt_acquire(&pool, 1, &list, NHCA_RCXT_DEFAULT, ids), 0);
	KUNIT_EXPECT_EQ(test, nhca_rcxt_acquire(&pool, 1, &list, 1, ids), -ENOSPC);
	KUNIT_EXPECT_EQ(test, list.count, NHCA_RCXT_DEFAULT);
	while (list.first != NHCA_RCXT_NONE)
		nhca_rcxt_release(&pool, &list, &pool.rcxts[list.first]);
	KUNIT_EXPECT_EQ(test, pool.free, NHCA_RCXT_DEFAULT);
	nhca_rcxt_pool_destroy(&pool);
	kvfree(ids);
}

/*
 * One user gets at most half of the pool, with any number of channels. Two users cannot get the
 * whole pool. Channels without a user can get all free rCxts.
 */
static void rcxt_pool_user_share(struct kunit *test)
{
	struct pool_fixture *f = pool_setup(test);
	struct nhca_rcxt_list nobody = NHCA_RCXT_LIST_INIT;
	struct nhca_rcxt_list a[2] = { NHCA_RCXT_LIST_INIT, NHCA_RCXT_LIST_INIT };
	struct nhca_rcxt_list b = NHCA_RCXT_LIST_INIT, c = NHCA_RCXT_LIST_INIT;
	struct nhca_users *users = kunit_kzalloc(test, sizeof(*users), GFP_KERNEL);
	struct nhca_rcxt_id id;
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, users);
	nhca_users_init(users);
	f->pool.users = users;
	a[0].user = nhca_user_get(users, 1000);
	a[1].user = nhca_user_get(users, 1000);
	b.user = nhca_user_get(users, 1001);
	c.user = nhca_user_get(users, 1002);
	KUNIT_ASSERT_FALSE(test, IS_ERR(a[0].user) || IS_ERR(b.user) || IS_ERR(c.user));
	KUNIT_EXPECT_PTR_EQ(test, a[0].user, a[1].user);
	for (i = 0; i < SIZE / 2; i++)
		KUNIT_ASSERT_EQ(test, nhca_rcxt_acquire(&f->pool, 7, &a[i % 2], 1, &id), 0);
	KUNIT_EXPECT_EQ(test, nhca_rcxt_acquire(&f->pool, 7, &a[0], 1, &id), -EDQUOT);
	KUNIT_EXPECT_EQ(test, nhca_rcxt_acquire(&f->pool, 7, &a[1], 1, &id), -EDQUOT);
	KUNIT_EXPECT_EQ(test, nhca_rcxt_acquire(&f->pool, 7, &b, U32_MAX, &id), -EDQUOT);
	while (f->pool.free > SIZE / 8)
		KUNIT_ASSERT_EQ(test, nhca_rcxt_acquire(&f->pool, 8, &b, 1, &id), 0);
	KUNIT_EXPECT_EQ(test, nhca_rcxt_acquire(&f->pool, 8, &b, 1, &id), -EDQUOT);
	for (i = 0; i < SIZE / 16; i++)
		KUNIT_ASSERT_EQ(test, nhca_rcxt_acquire(&f->pool, 8, &c, 1, &id), 0);
	KUNIT_EXPECT_EQ(test, nhca_rcxt_acquire(&f->pool, 8, &c, 1, &id), -EDQUOT);
	while (f->pool.free)
		KUNIT_ASSERT_EQ(test, nhca_rcxt_acquire(&f->pool, 9, &nobody, 1, &id), 0);
	KUNIT_EXPECT_EQ(test, nhca_rcxt_acquire(&f->pool, 9, &nobody, 1, &id), -ENOSPC);

	/*
	 * a user with more than a sixteenth of the pool can acquire an rCxt only while more than an
	 * eighth of the pool is free: here one rCxt more
	 */
	while (f->pool.free <= SIZE / 8)
		nhca_rcxt_release(&f->pool, &a[0], &f->pool.rcxts[a[0].first]);
	KUNIT_EXPECT_EQ(test, nhca_rcxt_acquire(&f->pool, 7, &a[1], 1, &id), 0);
	KUNIT_EXPECT_EQ(test, nhca_rcxt_acquire(&f->pool, 7, &a[1], 1, &id), -EDQUOT);

	for (i = 0; i < 2; i++) {
		while (a[i].first != NHCA_RCXT_NONE)
			nhca_rcxt_release(&f->pool, &a[i], &f->pool.rcxts[a[i].first]);
	}
	while (b.first != NHCA_RCXT_NONE)
		nhca_rcxt_release(&f->pool, &b, &f->pool.rcxts[b.first]);
	while (c.first != NHCA_RCXT_NONE)
		nhca_rcxt_release(&f->pool, &c, &f->pool.rcxts[c.first]);
	while (nobody.first != NHCA_RCXT_NONE)
		nhca_rcxt_release(&f->pool, &nobody, &f->pool.rcxts[nobody.first]);
	KUNIT_EXPECT_EQ(test, atomic_long_read(&a[0].user->rcxts), 0);
	nhca_user_put(a[0].user);
	nhca_user_put(a[1].user);
	nhca_user_put(b.user);
	nhca_user_put(c.user);
	nhca_users_destroy(users);
	nhca_rcxt_pool_destroy(&f->pool);
}

static struct kunit_case rcxt_pool_cases[] = {
	KUNIT_CASE(rcxt_pool_history),
	KUNIT_CASE(rcxt_pool_reuses_oldest),
	KUNIT_CASE(rcxt_pool_keys_unique),
	KUNIT_CASE(rcxt_pool_default_size),
	KUNIT_CASE(rcxt_pool_user_share),
	{}
};

static struct kunit_suite rcxt_pool_suite = {
	.name = "nhca_rcxt_pool",
	.test_cases = rcxt_pool_cases,
};

kunit_test_suite(rcxt_pool_suite);
