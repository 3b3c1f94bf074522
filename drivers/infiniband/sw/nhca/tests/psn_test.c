// SPDX-License-Identifier: GPL-2.0
/* KUnit: arithmetic of packet sequence numbers modulo 2^24. */
#include <kunit/test.h>
#include "../wire/psn.h"

static const u32 psn_bases[] = {
	0, 1, 2, 0x123456, 0x7ffffe, 0x7fffff, 0x800000, 0x800001, 0xfffffe, 0xffffff,
};

/* The sum of a PSN and a count wraps at 2^24. */
static void psn_add_wraps(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, nhca_psn_add(0, 0), 0);
	KUNIT_EXPECT_EQ(test, nhca_psn_add(5, 7), 12);
	KUNIT_EXPECT_EQ(test, nhca_psn_add(0xffffff, 1), 0);
	KUNIT_EXPECT_EQ(test, nhca_psn_add(0xffffff, 0xffffff), 0xfffffe);
	KUNIT_EXPECT_EQ(test, nhca_psn_add(0x800000, 0x800000), 0);
	/* PSNs have 24 bits, so 2^24 - 1 steps forward are one step back, and so is (u32)-1 */
	KUNIT_EXPECT_EQ(test, nhca_psn_add(0, NHCA_PSN_MASK), 0xffffff);
	KUNIT_EXPECT_EQ(test, nhca_psn_add(0, (u32)-1), 0xffffff);
	KUNIT_EXPECT_EQ(test, nhca_psn_add(3, (u32)-5), 0xfffffe);
}

/* The difference of two PSNs is the signed distance from the second to the first. */
static void psn_diff_is_signed_distance(struct kunit *test)
{
	static const s32 distances[] = {
		0, 1, 2, 100, 0x7ffffe, 0x7fffff,
		-1, -2, -100, -0x7fffff, -0x800000,
	};
	int i, j;

	for (i = 0; i < ARRAY_SIZE(psn_bases); i++) {
		u32 base = psn_bases[i];

		for (j = 0; j < ARRAY_SIZE(distances); j++) {
			s32 d = distances[j];

			KUNIT_EXPECT_EQ_MSG(test, nhca_psn_diff(nhca_psn_add(base, d), base), d,
					    "base %#x distance %d", base, d);
		}
	}
}

/* The difference of PSNs that are 2^23 apart is negative. */
static void psn_diff_half_circle(struct kunit *test)
{
	/* a PSN that is exactly 2^23 away counts as earlier, in both directions */
	KUNIT_EXPECT_EQ(test, nhca_psn_diff(0x800000, 0), -0x800000);
	KUNIT_EXPECT_EQ(test, nhca_psn_diff(0, 0x800000), -0x800000);
	KUNIT_EXPECT_EQ(test, nhca_psn_diff(0x7fffff, 0), 0x7fffff);
	KUNIT_EXPECT_EQ(test, nhca_psn_diff(0, 0x7fffff), -0x7fffff);
	KUNIT_EXPECT_EQ(test, nhca_psn_diff(0, 0xffffff), 1);
	KUNIT_EXPECT_EQ(test, nhca_psn_diff(0xffffff, 0), -1);
}

/* Adding the same count to two PSNs does not change their difference. */
static void psn_diff_translation_invariant(struct kunit *test)
{
	int i, j;
	u32 turn;

	for (i = 0; i < ARRAY_SIZE(psn_bases); i++) {
		for (j = 0; j < ARRAY_SIZE(psn_bases); j++) {
			u32 a = psn_bases[i], b = psn_bases[j];
			s32 d = nhca_psn_diff(a, b);

			KUNIT_EXPECT_GE(test, d, -0x800000);
			KUNIT_EXPECT_LE(test, d, 0x7fffff);
			for (turn = 0; turn < 0x1000000; turn += 0x10001)
				KUNIT_ASSERT_EQ_MSG(test, d,
						    nhca_psn_diff(nhca_psn_add(a, turn),
								  nhca_psn_add(b, turn)),
						    "a %#x, b %#x, both plus %#x", a, b, turn);
		}
	}
}

/* The number of PSNs of a message is its length divided by the MTU, rounded up, and at least 1. */
static void psn_count_of_message(struct kunit *test)
{
	u32 mtu;

	for (mtu = 256; mtu <= 4096; mtu *= 2) {
		KUNIT_EXPECT_EQ(test, nhca_psn_count(0, mtu), 1);
		KUNIT_EXPECT_EQ(test, nhca_psn_count(1, mtu), 1);
		KUNIT_EXPECT_EQ(test, nhca_psn_count(mtu - 1, mtu), 1);
		KUNIT_EXPECT_EQ(test, nhca_psn_count(mtu, mtu), 1);
		KUNIT_EXPECT_EQ(test, nhca_psn_count(mtu + 1, mtu), 2);
		KUNIT_EXPECT_EQ(test, nhca_psn_count(2 * mtu, mtu), 2);
		KUNIT_EXPECT_EQ(test, nhca_psn_count(7 * mtu + 1, mtu), 8);
		/* the longest message has 2^31 bytes */
		KUNIT_EXPECT_EQ(test, nhca_psn_count(1U << 31, mtu), (1U << 31) / mtu);
		KUNIT_EXPECT_EQ(test, nhca_psn_count((1U << 31) - 1, mtu), (1U << 31) / mtu);
		/* the largest 32-bit length causes no overflow */
		KUNIT_EXPECT_EQ(test, nhca_psn_count(U32_MAX, mtu), (1ULL << 32) / mtu);
	}
}

static struct kunit_case psn_cases[] = {
	KUNIT_CASE(psn_add_wraps),
	KUNIT_CASE(psn_diff_is_signed_distance),
	KUNIT_CASE(psn_diff_half_circle),
	KUNIT_CASE(psn_diff_translation_invariant),
	KUNIT_CASE(psn_count_of_message),
	{}
};

static struct kunit_suite psn_suite = {
	.name = "nhca_psn",
	.test_cases = psn_cases,
};

kunit_test_suite(psn_suite);
