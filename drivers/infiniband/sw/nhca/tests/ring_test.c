// SPDX-License-Identifier: GPL-2.0
/* KUnit: rings: their slots, their allocation, and the producer indices that user space stores. */
#include <kunit/test.h>

#include "../queue/ring.h"

#define MAX_ENTRIES	65536
#define MAX_STRIDE	1088
#define STRIDE_STEP	16

/*
 * Compare nhca_ring_slot() with a cursor for @steps indices from @start, which belongs to slot
 * @first_slot. The cursor does not use the index: it moves on by one stride, and from the last slot
 * to the first. Return: number of indices whose slot differs from the cursor.
 */
static unsigned long walk(const struct nhca_ring *r, u32 start, u32 steps, u32 first_slot)
{
	unsigned long entries = nhca_ring_entries(r), slot = first_slot, bad = 0;
	char *base = (char *)r->hdr + sizeof(*r->hdr);
	char *cursor = base + slot * r->stride;
	u32 i;

	for (i = 0; i < steps; i++) {
		if (nhca_ring_slot(r, start + i) != cursor)
			bad++;
		cursor += r->stride;
		if (++slot == entries) {
			slot = 0;
			cursor = base;
		}
	}
	return bad;
}

/*
 * For sizes up to MAX_ENTRIES and strides up to MAX_STRIDE, nhca_ring_slot() finds the slot of an
 * index, also where the index wraps from 2^32 - 1 to 0, and where it reaches 2^31, which would be
 * negative as a signed number.
 */
static void ring_slot_test(struct kunit *test)
{
	struct nhca_ring r = { .hdr = (void *)0x10000 };
	u32 entries, stride;

	for (entries = 1; entries <= MAX_ENTRIES; entries *= 2) {
		for (stride = STRIDE_STEP; stride <= MAX_STRIDE; stride += STRIDE_STEP) {
			r.stride = stride;
			r.mask = entries - 1;
			KUNIT_ASSERT_EQ(test, nhca_ring_entries(&r), entries);
			/* from slot 0 through all slots and back to slot 0 */
			KUNIT_ASSERT_EQ_MSG(test, walk(&r, 0, entries + 1, 0), 0,
					    "%u entries of %u", entries, stride);
			/*
			 * across the wrap: index 2^32 - entries is slot 0, because 2^32 is a
			 * multiple of entries
			 */
			KUNIT_ASSERT_EQ_MSG(test, walk(&r, -entries, entries + 2, 0), 0,
					    "%u entries of %u at the wrap", entries, stride);
			/*
			 * across 2^31, which is also a multiple of entries, so that the index
			 * before 2^31 is the last slot
			 */
			KUNIT_ASSERT_EQ_MSG(test, walk(&r, BIT(31) - 1, 3, entries - 1), 0,
					    "%u entries of %u at 2^31", entries, stride);
		}
	}
}

/*
 * Slots and header of a new ring do not overlap, and all slots are inside the memory of the ring.
 */
static void ring_alloc_test(struct kunit *test)
{
	struct nhca_ring r;
	u32 entries, stride;

	for (entries = 1; entries <= 4096; entries *= 2) {
		for (stride = STRIDE_STEP; stride <= MAX_STRIDE; stride += STRIDE_STEP) {
			KUNIT_ASSERT_EQ(test, nhca_ring_alloc(&r, entries, stride, NULL), 0);
			KUNIT_EXPECT_EQ(test, nhca_ring_entries(&r), entries);
			KUNIT_EXPECT_EQ(test, r.stride, stride);
			KUNIT_EXPECT_NULL(test, r.entry);
			KUNIT_EXPECT_NULL(test, r.umem);
			KUNIT_EXPECT_EQ(test, r.hdr->prod | r.hdr->cons | r.hdr->flags, 0);
			KUNIT_EXPECT_EQ(test, nhca_ring_produced(&r, 0), 0);
			/*
			 * writes to the first and last slot: KASAN reports a write beyond the
			 * memory of the ring
			 */
			memset(nhca_ring_slot(&r, 0), 0x5a, stride);
			memset(nhca_ring_slot(&r, entries - 1), 0x5a, stride);
			KUNIT_EXPECT_EQ(test, r.hdr->prod | r.hdr->cons | r.hdr->flags, 0);
			nhca_ring_free(&r);
			KUNIT_EXPECT_NULL(test, r.hdr);
		}
	}
	/* freeing a ring twice is allowed, because nhca_ring_free() sets the ring to zero */
	nhca_ring_free(&r);
}

/*
 * The number of entries is rounded up to a power of two. Refused are a ring without entries, a
 * stride that is 0 or no multiple of 16, and a ring that is too large.
 */
static void ring_alloc_sizes_test(struct kunit *test)
{
	static const struct {
		u32 entries, stride;
		int err;
		u32 granted;
	} cases[] = {
		{ 1, 16, 0, 1 },
		{ 2, 16, 0, 2 },
		{ 3, 16, 0, 4 },
		{ 5, 64, 0, 8 },
		{ 1025, 64, 0, 2048 },
		{ 0, 16, -EINVAL },
		{ 1, 0, -EINVAL },
		{ 1, 8, -EINVAL },
		{ 1, 24, -EINVAL },
		{ 1, 17, -EINVAL },
		{ 0x80000000, 16, -EINVAL },
		{ 0x80000001, 16, -EINVAL },
		{ 0xffffffff, 16, -EINVAL },
		/* 2^32 bytes, which would be 0 in a 32-bit size */
		{ 0x10000000, 16, -EINVAL },
		{ 0x00400000, 1024, -EINVAL },
		/* the slots have 2^31 bytes or more, which is more than a signed int can hold */
		{ 0x08000000, 16, -EINVAL },
		{ 16, 0xfffffff0, -EINVAL },
	};
	struct nhca_ring r = {};
	int i, err;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		err = nhca_ring_alloc(&r, cases[i].entries, cases[i].stride, NULL);
		KUNIT_EXPECT_EQ_MSG(test, err, cases[i].err, "%u entries of %u",
				    cases[i].entries, cases[i].stride);
		if (cases[i].err)
			continue;
		KUNIT_EXPECT_EQ(test, nhca_ring_entries(&r), cases[i].granted);
		nhca_ring_free(&r);
	}
}

/*
 * The producer index of user space may be ahead of the consumer index by at most the size of the
 * ring. Any other producer index is refused with -EPROTO.
 */
static void ring_produced_test(struct kunit *test)
{
	static const u32 at[] = { 0, 1, 0x7ffffffe, 0x80000000, 0xfffffff0, 0xffffffff };
	struct nhca_ring r;
	u32 entries, n;
	int i;

	for (entries = 1; entries <= 256; entries *= 2) {
		KUNIT_ASSERT_EQ(test, nhca_ring_alloc(&r, entries, 16, NULL), 0);
		for (i = 0; i < ARRAY_SIZE(at); i++) {
			for (n = 0; n <= entries; n++) {
				r.hdr->prod = at[i] + n;
				KUNIT_EXPECT_EQ(test, nhca_ring_produced(&r, at[i]), n);
			}
			/* ahead by one entry too many; far ahead; behind the consumer index */
			r.hdr->prod = at[i] + entries + 1;
			KUNIT_EXPECT_EQ(test, nhca_ring_produced(&r, at[i]), -EPROTO);
			r.hdr->prod = at[i] + 0x7fffffff;
			KUNIT_EXPECT_EQ(test, nhca_ring_produced(&r, at[i]), -EPROTO);
			r.hdr->prod = at[i] + 0x80000000;
			KUNIT_EXPECT_EQ(test, nhca_ring_produced(&r, at[i]), -EPROTO);
			r.hdr->prod = at[i] - 1;
			KUNIT_EXPECT_EQ(test, nhca_ring_produced(&r, at[i]), -EPROTO);

			nhca_ring_release(&r, at[i]);
			KUNIT_EXPECT_EQ(test, r.hdr->cons, at[i]);
		}
		nhca_ring_free(&r);
	}
}

static struct kunit_case ring_cases[] = {
	KUNIT_CASE(ring_slot_test),
	KUNIT_CASE(ring_alloc_test),
	KUNIT_CASE(ring_alloc_sizes_test),
	KUNIT_CASE(ring_produced_test),
	{}
};

static struct kunit_suite ring_suite = {
	.name = "nhca_ring",
	.test_cases = ring_cases,
};

kunit_test_suite(ring_suite);
