// SPDX-License-Identifier: GPL-2.0
/* KUnit: how many PVOs and translation tables one user may have. */
#include <kunit/static_stub.h>
#include <linux/completion.h>
#include <linux/slab.h>

#include "../memory/gaps.h"
#include "../memory/live.h"
#include "../user.h"
#include "tce_test.h"
#include "threads.h"

/**
 * struct share - users and their ranges
 * @user: the users
 * @r:    all ranges that are allocated
 * @n:    number of ranges in @r
 */
struct share {
	struct nhca_user *user[3];
	struct nhca_range r[64];
	u32 n;
};

static struct share *share_make(struct kunit *test)
{
	struct share *s = kunit_kzalloc(test, sizeof(*s), GFP_KERNEL);
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, s);
	tce_expect_unused(test);
	for (i = 0; i < ARRAY_SIZE(s->user); i++) {
		s->user[i] = nhca_user_get(&nhca_host_users, 4711 + i);
		KUNIT_ASSERT_FALSE(test, IS_ERR(s->user[i]));
	}
	return s;
}

/* Allocate a range of @count entries. @user: its user; NULL: the range is for the kernel */
static int take(struct share *s, struct nhca_user *user, u64 count)
{
	const struct nhca_owner owner = { .kind = NHCA_OWNER_PD, .id = 1, .user = user };
	int err = nhca_range_alloc(&s->r[s->n], PUD_SHIFT, count, &owner);

	s->n += !err;
	return err;
}

/*
 * Allocate ranges of @count entries until an allocation fails. Return: number of ranges that @user
 * got.
 */
static u32 take_all(struct share *s, struct nhca_user *user, u64 count)
{
	u32 before = s->n;

	while (s->n < ARRAY_SIZE(s->r) && !take(s, user, count))
		;
	return s->n - before;
}

static void share_end(struct kunit *test, struct share *s)
{
	u32 i;

	while (s->n)
		nhca_range_free(&s->r[--s->n]);
	for (i = 0; i < ARRAY_SIZE(s->user); i++) {
		KUNIT_EXPECT_EQ(test, atomic_long_read(&s->user[i]->used[NHCA_POOL_PVOS]), 0);
		KUNIT_EXPECT_EQ(test, atomic_long_read(&s->user[i]->used[NHCA_POOL_TCE_TABLES]), 0);
		nhca_user_put(s->user[i]);
	}
	tce_expect_unused(test);
}

/*
 * A user may have half of all PVOs. Two users cannot have all PVOs, and a third user gets some. The
 * rest is for the kernel.
 */
static void space_test(struct kunit *test)
{
	struct share *s = share_make(test);

	KUNIT_EXPECT_EQ(test, take_all(s, s->user[0], PUD_ENTRIES), NHCA_TCE_TABLES / 2);
	KUNIT_EXPECT_EQ(test, take(s, s->user[0], 1), -EDQUOT);
	KUNIT_EXPECT_EQ(test, take_all(s, s->user[1], PUD_ENTRIES), NHCA_TCE_TABLES * 3 / 8);
	KUNIT_EXPECT_EQ(test, take(s, s->user[1], 1), -EDQUOT);
	KUNIT_EXPECT_EQ(test, take_all(s, s->user[2], PUD_ENTRIES), NHCA_TCE_TABLES / 16);
	KUNIT_EXPECT_EQ(test, take(s, s->user[2], 1), -EDQUOT);
	KUNIT_EXPECT_EQ(test, take_all(s, NULL, PUD_ENTRIES), NHCA_TCE_TABLES / 16);
	KUNIT_EXPECT_EQ(test, take(s, NULL, 1), -ENOSPC);
	share_end(test, s);
}

/* A user cannot have all tables by allocating ranges that leave gaps. */
static void tables_test(struct kunit *test)
{
	struct share *s = share_make(test);
	u32 n;

	/* two ranges of this length do not fit into one table, so each range needs another table */
	n = take_all(s, s->user[0], PUD_ENTRIES / 2 + 1);
	KUNIT_EXPECT_EQ(test, n, NHCA_TCE_TABLES / 2);
	KUNIT_EXPECT_EQ(test, take(s, s->user[0], PUD_ENTRIES / 2 + 1), -EDQUOT);
	/*
	 * ranges that fit into the gaps need no further table, so they are allowed, also for
	 * another user
	 */
	KUNIT_EXPECT_EQ(test, take(s, s->user[0], PUD_ENTRIES / 2 - 1), 0);
	KUNIT_EXPECT_EQ(test, take(s, s->user[1], PUD_ENTRIES / 2 - 1), 0);
	KUNIT_EXPECT_EQ(test, take_all(s, s->user[1], PUD_ENTRIES / 2 + 1),
			NHCA_TCE_TABLES * 3 / 8);
	KUNIT_EXPECT_EQ(test, take(s, s->user[2], PUD_ENTRIES), 0);
	share_end(test, s);
}

/*
 * A table counts against the user whose range was the first in the table until the last range of
 * the table is freed, even if the last range is of another user.
 */
static void table_owner_test(struct kunit *test)
{
	struct share *s = share_make(test);
	atomic_long_t *tables = &s->user[0]->used[NHCA_POOL_TCE_TABLES];

	KUNIT_EXPECT_EQ(test, take(s, s->user[0], 1), 0);
	KUNIT_EXPECT_EQ(test, take(s, s->user[1], 1), 0);
	KUNIT_EXPECT_EQ(test, atomic_long_read(tables), 1);
	nhca_range_free(&s->r[0]);
	KUNIT_EXPECT_EQ(test, atomic_long_read(tables), 1);
	nhca_range_free(&s->r[1]);
	s->n = 0;
	share_end(test, s);
}

/**
 * struct prober - a thread that acts as another user and takes the lock of all tables
 * @done:   the thread has got and released the lock
 * @thread: the thread
 */
static struct prober {
	struct completion done;
	struct task_struct *thread;
} probers[16];

/* number of probers that did not get the lock in TEST_PATIENCE, and number of all probers */
static u32 delayed, probed;

static int probe_thread(void *arg)
{
	struct prober *p = arg;

	tce_usage(0);
	complete(&p->done);
	return 0;
}

/* Start a prober, and wait until the prober has got the lock. */
static void probe(void)
{
	struct prober *p = &probers[probed];

	if (probed == ARRAY_SIZE(probers))
		return;
	probed++;
	init_completion(&p->done);
	p->thread = test_thread_start(probe_thread, p, 0);
	if (IS_ERR(p->thread) || !wait_for_completion_timeout(&p->done, TEST_PATIENCE))
		delayed++;
}

static void probes_end(void)
{
	while (probed)
		test_thread_stop(probers[--probed].thread);
	delayed = 0;
}

/*
 * Replaces nhca_gap_alloc() by a slow allocation, as with a full memory cgroup: it waits until a
 * prober has got the lock, but at most half a second.
 */
static struct nhca_gap *slow_alloc(void)
{
	probe();
	return kzalloc(128, GFP_KERNEL);
}

/* While an allocation of one user takes long, other users can allocate and free ranges. */
static void slow_test(struct kunit *test)
{
	struct share *s = share_make(test);
	u32 i;

	kunit_activate_static_stub(test, nhca_gap_alloc, slow_alloc);
	for (i = 0; i < 3; i++)
		KUNIT_EXPECT_EQ(test, take(s, s->user[0], 1), 0);
	/* freeing the middle range leaves a gap */
	nhca_range_free(&s->r[1]);
	s->r[1] = s->r[2];
	s->n--;
	share_end(test, s);
	KUNIT_EXPECT_GE(test, probed, 4);
	KUNIT_EXPECT_EQ(test, delayed, 0);
	probes_end();
}

/*
 * nhca_range_free() waits for live sections before it frees a leaf. During this wait other users
 * can take the lock of all tables.
 */
static void wait_test(struct kunit *test)
{
	const struct nhca_owner owner = { .kind = NHCA_OWNER_PD, .id = 1 };
	struct nhca_range r[2];

	tce_expect_unused(test);
	KUNIT_ASSERT_EQ(test, nhca_range_alloc(&r[0], PAGE_SHIFT, 1, &owner), 0);
	/* the range ends in the first entry of the second leaf, so it is freed with this leaf */
	KUNIT_ASSERT_EQ(test, nhca_range_alloc(&r[1], PAGE_SHIFT, NHCA_TCE_LEAF_SIZE, &owner), 0);
	kunit_activate_static_stub(test, nhca_live_wait, probe);
	nhca_range_free(&r[1]);
	kunit_deactivate_static_stub(test, nhca_live_wait);
	KUNIT_EXPECT_EQ(test, probed, 1);
	KUNIT_EXPECT_EQ(test, delayed, 0);
	probes_end();
	nhca_range_free(&r[0]);
	tce_expect_unused(test);
}

/* Replaces nhca_gap_alloc(), as if there were no memory. */
static struct nhca_gap *no_alloc(void)
{
	return NULL;
}

/*
 * Without memory no range can be allocated, but each range can be freed, even if freeing leaves a
 * gap.
 */
static void free_test(struct kunit *test)
{
	struct share *s = share_make(test);
	atomic_long_t *space = &s->user[0]->used[NHCA_POOL_PVOS];
	u32 i;

	for (i = 0; i < 3; i++)
		KUNIT_ASSERT_EQ(test, take(s, s->user[0], 1), 0);
	kunit_activate_static_stub(test, nhca_gap_alloc, no_alloc);
	KUNIT_EXPECT_EQ(test, take(s, s->user[0], 1), -ENOMEM);
	KUNIT_EXPECT_EQ(test, atomic_long_read(space), 3 * PUD_SIZE);
	/* freeing the middle range leaves a gap */
	nhca_range_free(&s->r[1]);
	KUNIT_EXPECT_EQ(test, atomic_long_read(space), 2 * PUD_SIZE);
	s->r[1] = s->r[2];
	s->n--;
	share_end(test, s);
}

static struct kunit_case share_cases[] = {
	KUNIT_CASE(space_test),
	KUNIT_CASE(tables_test),
	KUNIT_CASE(table_owner_test),
	KUNIT_CASE(slow_test),
	KUNIT_CASE(wait_test),
	KUNIT_CASE(free_test),
	{}
};

static struct kunit_suite share_suite = {
	.name = "nhca_tce_share",
	.test_cases = share_cases,
};

kunit_test_suite(share_suite);
