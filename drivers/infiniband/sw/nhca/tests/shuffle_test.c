// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit: a shuffled sequence gives each number of its range once, and nhca_shuffle_place() tells
 * the position of a number in the sequence. guess_test.c tests whether the numbers can be guessed.
 */
#include <kunit/test.h>
#include <linux/bitmap.h>
#include <linux/limits.h>
#include <linux/vmalloc.h>

#include "../memory/shuffle.h"

/*
 * Each number comes once before any number comes again, and nhca_shuffle_place() returns its
 * position.
 */
static void shuffle_all(struct kunit *test)
{
	/*
	 * the cipher behaves differently for ranges whose size is a power of two, is near a power
	 * of two, or is far from it
	 */
	static const struct { u32 first, last; } ranges[] = {
		{ 0, 1 }, { 5, 7 }, { 0, 255 }, { 1, 256 }, { 7, 263 }, { 100, 354 },
		{ 1, 0x1ffff }, { 0x100, 0x10fff }, { U32_MAX - 999, U32_MAX },
	};
	unsigned long *seen = vzalloc(BIT(17) / 8);
	u32 i, n, count, wrong;
	struct nhca_shuffle s;

	KUNIT_ASSERT_NOT_NULL(test, seen);
	for (i = 0; i < ARRAY_SIZE(ranges); i++) {
		nhca_shuffle_init(&s, ranges[i].first, ranges[i].last);
		count = ranges[i].last - ranges[i].first + 1;
		KUNIT_EXPECT_EQ(test, s.count, count);
		bitmap_zero(seen, count);
		for (wrong = 0, n = 0; n < count; n++) {
			u64 upcoming = nhca_shuffle_upcoming(&s);
			u32 number = nhca_shuffle_next(&s);

			wrong += number < ranges[i].first || number > ranges[i].last ||
				 __test_and_set_bit(number - ranges[i].first, seen) ||
				 upcoming != n || nhca_shuffle_place(&s, number) != n ||
				 nhca_shuffle_at(&s, n) != number;
		}
		KUNIT_EXPECT_EQ_MSG(test, wrong, 0, "range %u", i);
		/* after its last number the sequence starts again */
		KUNIT_EXPECT_EQ(test, nhca_shuffle_upcoming(&s), 0);
		KUNIT_EXPECT_EQ(test, nhca_shuffle_next(&s), nhca_shuffle_at(&s, 0));
	}
	vfree(seen);
}

/*
 * In a range of almost 2^32 numbers, nhca_shuffle_place() inverts nhca_shuffle_at(). The test takes
 * samples and the positions at both ends, because testing all numbers would take too long.
 */
static void shuffle_large(struct kunit *test)
{
	static const u64 places[] = { 0, 1, 255, 0x7fffffff, 0x80000000, 0xfffffeff };
	struct nhca_shuffle s;
	u64 n;
	int i;

	nhca_shuffle_init(&s, 256, U32_MAX);
	KUNIT_EXPECT_EQ(test, s.count, (1ULL << 32) - 256);
	for (i = 0; i < ARRAY_SIZE(places); i++) {
		u32 number = nhca_shuffle_at(&s, places[i]);

		KUNIT_EXPECT_GE(test, number, 256);
		KUNIT_EXPECT_EQ(test, nhca_shuffle_place(&s, number), places[i]);
		KUNIT_EXPECT_EQ(test, nhca_shuffle_at(&s, places[i] + s.count), number);
	}
	for (n = 0; n < 20000; n++)
		if (nhca_shuffle_place(&s, nhca_shuffle_at(&s, n * 214741)) != n * 214741)
			break;
	KUNIT_EXPECT_EQ(test, n, 20000);
}

/*
 * Two sequences of the same range have different keys, so they agree no more often than by chance.
 */
static void shuffle_secret(struct kunit *test)
{
	struct nhca_shuffle a, b;
	u32 n, same = 0;

	nhca_shuffle_init(&a, 0x100, 0xfffffe);
	nhca_shuffle_init(&b, 0x100, 0xfffffe);
	for (n = 0; n < 10000; n++)
		same += nhca_shuffle_next(&a) == nhca_shuffle_next(&b);
	KUNIT_EXPECT_LE(test, same, 3);
}

static struct kunit_case shuffle_cases[] = {
	KUNIT_CASE(shuffle_all),
	KUNIT_CASE(shuffle_large),
	KUNIT_CASE(shuffle_secret),
	{}
};

static struct kunit_suite shuffle_suite = {
	.name = "nhca_shuffle",
	.test_cases = shuffle_cases,
};

kunit_test_suite(shuffle_suite);
