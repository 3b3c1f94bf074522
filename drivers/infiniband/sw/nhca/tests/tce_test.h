/* SPDX-License-Identifier: GPL-2.0 */
/* Shared by the suites of translation tables. */
#ifndef NHCA_TCE_TEST_H
#define NHCA_TCE_TEST_H

#include <kunit/test.h>
#include <linux/bottom_half.h>
#include <linux/hash.h>
#include <linux/mm.h>

#include "../memory/live.h"
#include "../memory/tce.h"

#define LEAF		NHCA_TCE_LEAF_SIZE
#define PUD_ENTRIES	BIT(NHCA_PVO_OFFSET_BITS - PUD_SHIFT)
#define PMD_ENTRIES	BIT(NHCA_PVO_OFFSET_BITS - PMD_SHIFT)
#define PAGE_ENTRIES	BIT(NHCA_PVO_OFFSET_BITS - PAGE_SHIFT)
#define RW		(NHCA_TCE_READ | NHCA_TCE_WRITE)

static const struct nhca_owner tce_owner = { .kind = NHCA_OWNER_PD, .id = 1 };

/* Find the entry of @pvo in a live section, as translation does. */
static inline u64 tce_find(u64 pvo, unsigned int *shift)
{
	u64 tce;

	local_bh_disable();
	nhca_live_enter();
	tce = nhca_tce_find(pvo, shift);
	nhca_live_exit();
	local_bh_enable();
	return tce;
}

static inline u64 tce_at(u64 pvo)
{
	unsigned int shift;

	return tce_find(pvo, &shift);
}

/* Return: an entry of @r for @pfn, as tables I and II of the reference define it (memory/tce.h). */
static inline u64 tce_value(const struct nhca_range *r, u64 pfn, u64 flags)
{
	return (u64)r->key << 47 | (u64)r->table << 42 | pfn << 2 | flags;
}

static inline u64 tce_pvo(const struct nhca_range *r, u64 i)
{
	return nhca_range_pvo(r) + (i << r->shift);
}

/* Return: a page frame number for @pvo that probably no other entry has. */
static inline u64 tce_pfn(u64 pvo, unsigned int shift)
{
	return hash_64(pvo >> shift, 40);
}

static inline void tce_set_all(const struct nhca_range *r)
{
	u64 i;

	for (i = 0; i < r->count; i++)
		nhca_range_set(r, i, tce_pfn(tce_pvo(r, i), r->shift), RW);
}

/* Return: true if entry @i is as tce_set_all() has set it. */
static inline bool tce_good(const struct nhca_range *r, u64 i)
{
	u64 pvo = tce_pvo(r, i);

	return tce_at(pvo) == tce_value(r, tce_pfn(pvo, r->shift), RW);
}

static inline struct nhca_range tce_alloc(struct kunit *test, unsigned int shift, u64 count)
{
	struct nhca_range r = {};

	KUNIT_ASSERT_EQ(test, nhca_range_alloc(&r, shift, count, &tce_owner), 0);
	KUNIT_ASSERT_EQ(test, r.shift, shift);
	KUNIT_ASSERT_EQ(test, r.count, count);
	KUNIT_ASSERT_NE(test, r.key, 0);
	KUNIT_ASSERT_LT(test, r.key, NHCA_TCE_KEYS);
	KUNIT_ASSERT_EQ(test, r.owner.id, tce_owner.id);
	return r;
}

static inline struct nhca_tce_usage tce_usage(unsigned int table)
{
	struct nhca_tce_usage u;

	nhca_tce_usage(table, &u);
	return u;
}

/* Expect that no table is in use, at the beginning and at the end of a test. */
static inline void tce_expect_unused(struct kunit *test)
{
	struct nhca_tce_usage u;
	unsigned int i;

	for (i = 0; i < NHCA_TCE_TABLES; i++) {
		u = tce_usage(i);
		KUNIT_ASSERT_EQ_MSG(test, u.shift, 0, "table %u", i);
		KUNIT_ASSERT_EQ_MSG(test, u.ranges, 0, "table %u", i);
		KUNIT_ASSERT_EQ_MSG(test, u.entries, 0, "table %u", i);
		KUNIT_ASSERT_EQ_MSG(test, u.leaves, 0, "table %u", i);
		KUNIT_ASSERT_NULL_MSG(test, nhca_tce_tables[i].leaf, "table %u", i);
	}
}

#endif /* NHCA_TCE_TEST_H */
