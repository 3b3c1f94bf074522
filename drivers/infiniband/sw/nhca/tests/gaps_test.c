// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit: the free entries (gaps) of a table. tce_many_test.c compares the choice of the first fit
 * with a bitmap.
 */
#include <kunit/test.h>
#include <linux/prandom.h>
#include <linux/slab.h>

#include "../memory/gaps.h"

#define END	4096

static struct nhca_gaps *gaps_make(struct kunit *test)
{
	struct nhca_gaps *g = kunit_kzalloc(test, sizeof(*g), GFP_KERNEL);
	struct nhca_gap *gap;

	KUNIT_ASSERT_NOT_NULL(test, g);
	gap = nhca_gap_alloc();
	KUNIT_ASSERT_NOT_NULL(test, gap);
	nhca_gaps_init(g, END, gap);
	return g;
}

/* Call nhca_gaps_give() with a spare gap. Return: as nhca_gaps_give(). */
static bool give(struct nhca_gaps *g, u64 first, u64 n, u64 *from, u64 *to)
{
	struct nhca_gap *spare = nhca_gap_alloc();
	bool given = nhca_gaps_give(g, first, n, &spare, from, to);

	kfree(spare);
	return given;
}

static u64 take(struct nhca_gaps *g, u64 n)
{
	u64 first;

	return nhca_gaps_take(g, n, &first) ? first : U64_MAX;
}

/* An empty table gives out all its entries as one range, and takes them back as one gap. */
static void gaps_all_test(struct kunit *test)
{
	struct nhca_gaps *g = gaps_make(test);
	u64 from, to;

	KUNIT_EXPECT_EQ(test, take(g, END + 1), U64_MAX);
	KUNIT_EXPECT_EQ(test, take(g, END), 0);
	KUNIT_EXPECT_EQ(test, take(g, 1), U64_MAX);
	KUNIT_EXPECT_TRUE(test, give(g, 0, END, &from, &to));
	KUNIT_EXPECT_EQ(test, from, 0);
	KUNIT_EXPECT_EQ(test, to, END);
	nhca_gaps_destroy(g);
}

/* A range that is given back joins the gaps before and after it. */
static void gaps_join_test(struct kunit *test)
{
	struct nhca_gaps *g = gaps_make(test);
	u64 from, to;

	KUNIT_ASSERT_EQ(test, take(g, END), 0);
	KUNIT_EXPECT_TRUE(test, give(g, 10, 10, &from, &to));
	KUNIT_EXPECT_EQ(test, from, 10);
	KUNIT_EXPECT_EQ(test, to, 20);
	KUNIT_EXPECT_TRUE(test, give(g, 30, 10, &from, &to));
	KUNIT_EXPECT_EQ(test, from, 30);
	/* join the gap before, then the gap after, then both */
	KUNIT_EXPECT_TRUE(test, give(g, 20, 2, &from, &to));
	KUNIT_EXPECT_EQ(test, from, 10);
	KUNIT_EXPECT_EQ(test, to, 22);
	KUNIT_EXPECT_TRUE(test, give(g, 28, 2, &from, &to));
	KUNIT_EXPECT_EQ(test, from, 28);
	KUNIT_EXPECT_EQ(test, to, 40);
	KUNIT_EXPECT_EQ(test, take(g, 13), U64_MAX);
	KUNIT_EXPECT_TRUE(test, give(g, 22, 6, &from, &to));
	KUNIT_EXPECT_EQ(test, from, 10);
	KUNIT_EXPECT_EQ(test, to, 40);
	KUNIT_EXPECT_EQ(test, take(g, 30), 10);
	nhca_gaps_destroy(g);
}

/* A range that is free, or overlaps free entries, cannot be given back again. */
static void gaps_twice_test(struct kunit *test)
{
	struct nhca_gaps *g = gaps_make(test);
	u64 from, to;

	KUNIT_ASSERT_EQ(test, take(g, 100), 0);
	KUNIT_EXPECT_FALSE(test, give(g, 99, 2, &from, &to));
	KUNIT_EXPECT_FALSE(test, give(g, 100, 1, &from, &to));
	KUNIT_EXPECT_TRUE(test, give(g, 50, 10, &from, &to));
	KUNIT_EXPECT_FALSE(test, give(g, 50, 1, &from, &to));
	KUNIT_EXPECT_FALSE(test, give(g, 59, 1, &from, &to));
	KUNIT_EXPECT_FALSE(test, give(g, 40, 30, &from, &to));
	KUNIT_EXPECT_FALSE(test, give(g, 0, END, &from, &to));
	KUNIT_EXPECT_EQ(test, take(g, 10), 50);
	KUNIT_EXPECT_EQ(test, take(g, 1), 100);
	nhca_gaps_destroy(g);
}

/*
 * If every other entry is given back, in random order, the table has as many gaps as possible. When
 * the other entries are given back too, one gap is left.
 */
static void gaps_many_test(struct kunit *test)
{
	struct nhca_gaps *g = gaps_make(test);
	u32 *order = kunit_kcalloc(test, END, sizeof(*order), GFP_KERNEL);
	struct rnd_state rnd;
	u32 i, j, bad = 0;
	u64 from, to;

	KUNIT_ASSERT_NOT_NULL(test, order);
	prandom_seed_state(&rnd, 20261121);
	for (i = 0; i < END; i++) {
		j = prandom_u32_state(&rnd) % (i + 1);
		order[i] = order[j];
		order[j] = i;
	}
	KUNIT_ASSERT_EQ(test, take(g, END), 0);
	for (i = 0; i < END; i++)
		if (order[i] % 2)
			bad += !give(g, order[i], 1, &from, &to) || to - from != 1;
	KUNIT_EXPECT_EQ(test, bad, 0);
	KUNIT_EXPECT_EQ(test, take(g, 2), U64_MAX);
	for (i = 0; i < END; i++)
		if (order[i] % 2 == 0)
			bad += !give(g, order[i], 1, &from, &to);
	KUNIT_EXPECT_EQ(test, bad, 0);
	KUNIT_EXPECT_EQ(test, to - from, END);
	KUNIT_EXPECT_EQ(test, take(g, END), 0);
	nhca_gaps_destroy(g);
}

static struct kunit_case nhca_gaps_cases[] = {
	KUNIT_CASE(gaps_all_test),
	KUNIT_CASE(gaps_join_test),
	KUNIT_CASE(gaps_twice_test),
	KUNIT_CASE(gaps_many_test),
	{}
};

static struct kunit_suite nhca_gaps_suite = {
	.name = "nhca_gaps",
	.test_cases = nhca_gaps_cases,
};

kunit_test_suite(nhca_gaps_suite);
