// SPDX-License-Identifier: GPL-2.0
/* KUnit: translation tables: ranges, keys, page size classes, leaves. */
#include <linux/bitmap.h>
#include <linux/slab.h>

#include "tce_test.h"

/* ---- placement of ranges ---- */

/* A range is placed at the first gap that is large enough, and adjacent gaps become one gap. */
static void tce_first_fit_test(struct kunit *test)
{
	struct nhca_range a, b, c, d, e, f, g, h;

	tce_expect_unused(test);
	a = tce_alloc(test, PAGE_SHIFT, 3);
	b = tce_alloc(test, PAGE_SHIFT, 5);
	c = tce_alloc(test, PAGE_SHIFT, 4);
	d = tce_alloc(test, PAGE_SHIFT, 1);
	KUNIT_EXPECT_EQ(test, a.first, 0);
	KUNIT_EXPECT_EQ(test, b.first, 3);
	KUNIT_EXPECT_EQ(test, c.first, 8);
	KUNIT_EXPECT_EQ(test, d.first, 12);
	KUNIT_EXPECT_EQ(test, nhca_range_pvo(&c),
			(u64)c.key << 47 | (u64)c.table << 42 | 8ULL << PAGE_SHIFT);

	/*
	 * the gap of b has 5 entries: too small for 6 entries, so e is placed at the end; f and g
	 * fill the gap from its start
	 */
	nhca_range_free(&b);
	KUNIT_EXPECT_EQ(test, b.count, 0);
	e = tce_alloc(test, PAGE_SHIFT, 6);
	f = tce_alloc(test, PAGE_SHIFT, 2);
	g = tce_alloc(test, PAGE_SHIFT, 3);
	h = tce_alloc(test, PAGE_SHIFT, 1);
	KUNIT_EXPECT_EQ(test, e.first, 13);
	KUNIT_EXPECT_EQ(test, f.first, 3);
	KUNIT_EXPECT_EQ(test, g.first, 5);
	KUNIT_EXPECT_EQ(test, h.first, 19);

	/*
	 * gaps of 2 and 4 entries: 3 entries fit only the second gap; 1 entry takes the first gap,
	 * although the rest of the second gap has exactly 1 entry
	 */
	nhca_range_free(&f);
	nhca_range_free(&c);
	nhca_range_free(&h);
	b = tce_alloc(test, PAGE_SHIFT, 3);
	KUNIT_EXPECT_EQ(test, b.first, 8);
	c = tce_alloc(test, PAGE_SHIFT, 1);
	KUNIT_EXPECT_EQ(test, c.first, 3);
	/* two adjacent gaps of 3 and 2 entries become one gap, so a range of 5 entries fits */
	nhca_range_free(&c);
	nhca_range_free(&a);
	a = tce_alloc(test, PAGE_SHIFT, 5);
	KUNIT_EXPECT_EQ(test, a.first, 0);

	KUNIT_EXPECT_EQ(test, tce_usage(a.table).ranges, 5);
	KUNIT_EXPECT_EQ(test, tce_usage(a.table).entries, 5 + 3 + 3 + 1 + 6);
	KUNIT_EXPECT_EQ(test, tce_usage(a.table).leaves, 1);
	nhca_range_free(&a);
	nhca_range_free(&b);
	nhca_range_free(&d);
	nhca_range_free(&e);
	nhca_range_free(&g);
	tce_expect_unused(test);
}

/*
 * A range may cross leaves. If the range is freed, a leaf that only this range used is freed too.
 * In a leaf that other ranges also use, only the entries of the freed range become 0.
 */
static void tce_leaf_border_test(struct kunit *test)
{
	struct nhca_range a, b, c;
	u64 i, bad = 0, stale;

	tce_expect_unused(test);
	a = tce_alloc(test, PAGE_SHIFT, LEAF - 3);
	b = tce_alloc(test, PAGE_SHIFT, 2 * LEAF + 10);
	c = tce_alloc(test, PAGE_SHIFT, 7);
	KUNIT_EXPECT_EQ(test, b.first, LEAF - 3);
	KUNIT_EXPECT_EQ(test, c.first, 3 * LEAF + 7);
	KUNIT_EXPECT_EQ(test, tce_usage(b.table).leaves, 4);
	tce_set_all(&a);
	tce_set_all(&b);
	tce_set_all(&c);

	for (i = 0; i < b.count; i++)
		bad += !tce_good(&b, i);
	KUNIT_EXPECT_EQ(test, bad, 0);
	nhca_range_clear(&b, 2, LEAF + 2);
	for (i = 0; i < b.count; i++)
		bad += i >= 2 && i < LEAF + 4 ? !!tce_at(tce_pvo(&b, i)) : !tce_good(&b, i);
	KUNIT_EXPECT_EQ(test, bad, 0);

	/*
	 * b shares its first and last leaf with a and c, so only the two leaves between them are
	 * freed
	 */
	stale = nhca_range_pvo(&b);
	nhca_range_free(&b);
	KUNIT_EXPECT_EQ(test, tce_usage(a.table).leaves, 2);
	KUNIT_EXPECT_NOT_NULL(test, nhca_tce_tables[a.table].leaf[0]);
	KUNIT_EXPECT_NULL(test, nhca_tce_tables[a.table].leaf[1]);
	KUNIT_EXPECT_NULL(test, nhca_tce_tables[a.table].leaf[2]);
	KUNIT_EXPECT_NOT_NULL(test, nhca_tce_tables[a.table].leaf[3]);
	for (i = 0; i < a.count; i++)
		bad += !tce_good(&a, i);
	for (i = 0; i < c.count; i++)
		bad += !tce_good(&c, i);
	for (i = 0; i < 2 * LEAF + 10; i++)
		bad += !!tce_at(stale + (i << PAGE_SHIFT));
	KUNIT_EXPECT_EQ(test, bad, 0);

	/* a new range that consists of whole leaves has no entry that is not 0 */
	nhca_range_free(&a);
	a = tce_alloc(test, PAGE_SHIFT, LEAF);
	b = tce_alloc(test, PAGE_SHIFT, 2 * LEAF);
	KUNIT_EXPECT_EQ(test, b.first, LEAF);
	KUNIT_EXPECT_EQ(test, tce_usage(a.table).leaves, 4);
	for (i = 0; i < b.count; i++)
		bad += !!nhca_tce_tables[b.table].leaf[1 + i / LEAF][i % LEAF];
	KUNIT_EXPECT_EQ(test, bad, 0);
	nhca_range_free(&b);
	KUNIT_EXPECT_EQ(test, tce_usage(a.table).leaves, 2);
	nhca_range_free(&c);
	KUNIT_EXPECT_EQ(test, tce_usage(a.table).leaves, 1);
	nhca_range_free(&a);
	tce_expect_unused(test);
}

/* The entries of a new range are 0, although an earlier range has used them. */
static void tce_zeroed_test(struct kunit *test)
{
	struct nhca_range keep, r;
	u64 i, n, bad = 0;

	tce_expect_unused(test);
	keep = tce_alloc(test, PMD_SHIFT, 1);
	for (n = 1; n < 2 * LEAF; n = n * 3 + 1) {
		r = tce_alloc(test, PMD_SHIFT, n);
		KUNIT_EXPECT_EQ(test, r.first, 1);
		for (i = 0; i < n; i++) {
			u64 at = r.first + i;

			bad += !!nhca_tce_tables[r.table].leaf[at / LEAF][at % LEAF];
		}
		tce_set_all(&r);
		nhca_range_free(&r);
	}
	KUNIT_EXPECT_EQ(test, bad, 0);
	nhca_range_free(&keep);
	tce_expect_unused(test);
}

/* ---- keys ---- */

/* Return: bitmap of the tables in which @key finds an entry at @offset. */
static u32 tce_find_any_table(u64 key, u64 offset)
{
	u64 pvo = key << NHCA_PVO_KEY_SHIFT | offset;
	unsigned int table, shift;
	u32 found = 0;

	local_bh_disable();
	nhca_live_enter();
	for (table = 0; table < NHCA_TCE_TABLES; table++)
		if (nhca_tce_find(pvo | (u64)table << NHCA_PVO_OFFSET_BITS, &shift))
			found |= BIT(table);
	nhca_live_exit();
	local_bh_enable();
	return found;
}

/*
 * A PVO finds an entry only with the right key, table and offset. After a rekey or a free, the PVO
 * finds nothing.
 */
static void tce_key_test(struct kunit *test)
{
	u64 pvo, old, i, found, good = 0, bad = 0;
	struct nhca_range keep, r, again;
	unsigned int shift;

	tce_expect_unused(test);
	keep = tce_alloc(test, PAGE_SHIFT, 2);
	r = tce_alloc(test, PAGE_SHIFT, 10);
	tce_set_all(&keep);
	tce_set_all(&r);
	pvo = nhca_range_pvo(&r);

	/* of all keys and tables, exactly one pair finds the entry */
	for (i = 0; i < NHCA_TCE_KEYS; i++) {
		found = tce_find_any_table(i, pvo & NHCA_PVO_OFFSET_MASK);
		good += found == BIT(r.table) && i == r.key;
		bad += found && i != r.key;
	}
	KUNIT_EXPECT_EQ(test, good, 1);
	KUNIT_EXPECT_EQ(test, bad, 0);
	/* with the key of the range, exactly the ten entries of the range are found */
	for (i = 0; i < 2 * LEAF; i++)
		good += !!tce_at((pvo & ~NHCA_PVO_OFFSET_MASK) | i << PAGE_SHIFT);
	KUNIT_EXPECT_EQ(test, good, 1 + 10);
	KUNIT_EXPECT_EQ(test, tce_at(tce_pvo(&r, -1)), 0);
	KUNIT_EXPECT_EQ(test, tce_at(tce_pvo(&r, 10)), 0);
	KUNIT_EXPECT_EQ(test, tce_at(tce_pvo(&r, 10) - 1), tce_at(tce_pvo(&r, 9)));
	KUNIT_EXPECT_EQ(test, tce_at(pvo | NHCA_PVO_OFFSET_MASK), 0);
	KUNIT_EXPECT_EQ(test, tce_at(0), 0);
	KUNIT_EXPECT_EQ(test, tce_at(U64_MAX), 0);

	/*
	 * after a rekey, PVOs with the old key find nothing, and PVOs with the new key find the
	 * entries
	 */
	nhca_range_clear(&r, 0, 10);
	nhca_range_rekey(&r);
	KUNIT_EXPECT_EQ(test, tce_at(nhca_range_pvo(&r)), 0);
	tce_set_all(&r);
	for (i = 0; i < 10; i++) {
		KUNIT_EXPECT_EQ(test, tce_at(pvo + (i << PAGE_SHIFT)), 0);
		KUNIT_EXPECT_TRUE(test, tce_good(&r, i));
	}

	/* after a free, another range uses the same entries with another key */
	old = nhca_range_pvo(&r);
	nhca_range_free(&r);
	KUNIT_EXPECT_EQ(test, tce_find(old, &shift), 0);
	again = tce_alloc(test, PAGE_SHIFT, 20);
	KUNIT_EXPECT_EQ(test, again.table, keep.table);
	KUNIT_EXPECT_EQ(test, again.first, 2);
	tce_set_all(&again);
	for (i = 0; i < 10; i++) {
		KUNIT_EXPECT_EQ(test, tce_at(pvo + (i << PAGE_SHIFT)), 0);
		KUNIT_EXPECT_EQ(test, tce_at(old + (i << PAGE_SHIFT)), 0);
	}
	nhca_range_free(&again);
	nhca_range_free(&keep);
	tce_expect_unused(test);
}

/*
 * All keys except 0 are used before a key is used again, whether ranges get the keys by rekeys or
 * by allocations.
 */
static void tce_all_keys_test(struct kunit *test)
{
	unsigned long *seen = kunit_kzalloc(test, NHCA_TCE_KEYS / 8, GFP_KERNEL);
	u32 i, order[4], bad = 0;
	struct nhca_range keep, r;

	KUNIT_ASSERT_NOT_NULL(test, seen);
	tce_expect_unused(test);
	keep = tce_alloc(test, PMD_SHIFT, 1);
	__set_bit(keep.key, seen);
	r = tce_alloc(test, PMD_SHIFT, 1);
	__set_bit(0, seen);
	for (i = 0; i < NHCA_TCE_KEYS - 2; i++) {
		bad += __test_and_set_bit(r.key, seen);
		if (i < ARRAY_SIZE(order))
			order[i] = r.key;
		if (i % 8) {
			nhca_range_rekey(&r);
		} else {
			nhca_range_free(&r);
			r = tce_alloc(test, PMD_SHIFT, 1);
		}
		cond_resched();
	}
	KUNIT_EXPECT_EQ(test, bad, 0);
	KUNIT_EXPECT_TRUE(test, bitmap_full(seen, NHCA_TCE_KEYS));
	KUNIT_EXPECT_EQ(test, r.key, keep.key);
	nhca_range_rekey(&r);
	KUNIT_EXPECT_EQ(test, r.key, order[0]);

	/* the next key is the current key of @r, so @r gets the key after it */
	for (i = 0; i < NHCA_TCE_KEYS - 2; i++)
		nhca_range_rekey(&keep);
	nhca_range_rekey(&r);
	KUNIT_EXPECT_EQ(test, r.key, order[1]);
	nhca_range_free(&keep);
	nhca_range_free(&r);

	/* the sequence of keys goes on where it was before the table became free */
	r = tce_alloc(test, PMD_SHIFT, 1);
	KUNIT_EXPECT_EQ(test, r.key, order[2]);
	nhca_range_free(&r);
	tce_expect_unused(test);
}

/* ---- page size classes ---- */

/*
 * A table has one page size class while it has ranges. A free table can get another class. Each
 * byte of a page leads to the entry of the page.
 */
static void tce_class_test(struct kunit *test)
{
	static const unsigned int shifts[] = { PUD_SHIFT, PAGE_SHIFT, PMD_SHIFT };
	struct nhca_range r[3], more[3];
	u64 stale[3], pvo;
	unsigned int i, shift;

	tce_expect_unused(test);
	for (i = 0; i < 3; i++) {
		r[i] = tce_alloc(test, shifts[i], 5);
		KUNIT_EXPECT_EQ(test, r[i].table, i);
		KUNIT_EXPECT_EQ(test, r[i].first, 0);
		KUNIT_EXPECT_EQ(test, tce_usage(i).shift, shifts[i]);
	}
	for (i = 0; i < 3; i++) {
		more[i] = tce_alloc(test, shifts[i], 9);
		KUNIT_EXPECT_EQ(test, more[i].table, i);
		KUNIT_EXPECT_EQ(test, more[i].first, 5);
		KUNIT_EXPECT_EQ(test, nhca_range_pvo(&more[i]) & NHCA_PVO_OFFSET_MASK,
				5ULL << shifts[i]);
		tce_set_all(&more[i]);
	}
	/* the first byte, a middle byte and the last byte of a page lead to the same entry */
	for (i = 0; i < 3; i++) {
		pvo = tce_pvo(&more[i], 3);
		KUNIT_EXPECT_EQ(test, tce_find(pvo, &shift),
				tce_value(&more[i], tce_pfn(pvo, shifts[i]), RW));
		KUNIT_EXPECT_EQ(test, shift, shifts[i]);
		KUNIT_EXPECT_EQ(test, tce_at(pvo + BIT(shift) / 2), tce_at(pvo));
		KUNIT_EXPECT_EQ(test, tce_at(pvo + BIT(shift) - 1), tce_at(pvo));
		KUNIT_EXPECT_NE(test, tce_at(pvo + BIT(shift)), tce_at(pvo));
		KUNIT_EXPECT_NE(test, tce_at(pvo - 1), tce_at(pvo));
		stale[i] = pvo | NHCA_PVO_OFFSET_MASK;
		nhca_range_free(&r[i]);
		nhca_range_free(&more[i]);
	}
	tce_expect_unused(test);

	/* each table gets another class, so an old offset may be beyond the end of the table */
	for (i = 0; i < 3; i++)
		r[i] = tce_alloc(test, shifts[(i + 1) % 3], 5);
	for (i = 0; i < 3; i++) {
		KUNIT_EXPECT_EQ(test, tce_usage(i).shift, shifts[(i + 1) % 3]);
		KUNIT_EXPECT_EQ(test, tce_at(stale[i]), 0);
		KUNIT_EXPECT_EQ(test, tce_at(nhca_range_pvo(&r[i]) | NHCA_PVO_OFFSET_MASK), 0);
	}
	for (i = 0; i < 3; i++)
		nhca_range_free(&r[i]);
	tce_expect_unused(test);
}

/* Each bit of an entry is stored, and setting an entry changes no other entry. */
static void tce_entry_test(struct kunit *test)
{
	static const u64 pfns[] = { 0, 1, 0x5555555555, 0xaaaaaaaaaa, BIT_ULL(40) - 1 };
	static const u64 flags[] = { 0, NHCA_TCE_READ, NHCA_TCE_WRITE, RW };
	struct nhca_range r;
	unsigned int i, f;
	u64 tce;

	tce_expect_unused(test);
	r = tce_alloc(test, PAGE_SHIFT, 3);
	for (i = 0; i < ARRAY_SIZE(pfns); i++) {
		for (f = 0; f < ARRAY_SIZE(flags); f++) {
			nhca_range_set(&r, 1, pfns[i], flags[f]);
			tce = tce_at(tce_pvo(&r, 1));
			KUNIT_EXPECT_EQ(test, tce, tce_value(&r, pfns[i], flags[f]));
			/*
			 * 0 means an unused entry; an entry in use is not 0, even in table 0 and
			 * for page frame 0, because its key is not 0
			 */
			KUNIT_EXPECT_NE(test, tce, 0);
			KUNIT_EXPECT_EQ(test, tce & RW, flags[f]);
			KUNIT_EXPECT_EQ(test, tce_at(tce_pvo(&r, 0)), 0);
			KUNIT_EXPECT_EQ(test, tce_at(tce_pvo(&r, 2)), 0);
		}
	}
	nhca_range_clear(&r, 1, 0);
	KUNIT_EXPECT_NE(test, tce_at(tce_pvo(&r, 1)), 0);
	nhca_range_clear(&r, 1, 1);
	KUNIT_EXPECT_EQ(test, tce_at(tce_pvo(&r, 1)), 0);
	nhca_range_free(&r);
	tce_expect_unused(test);
}

/* ---- limits ---- */

/*
 * nhca_range_alloc() refuses shifts that are no page size class, empty ranges, and ranges larger
 * than a table.
 */
static void tce_argument_test(struct kunit *test)
{
	static const unsigned int no_class[] = { 0, 1, PAGE_SHIFT - 1, PAGE_SHIFT + 1,
		PMD_SHIFT - 1, PMD_SHIFT + 1, PUD_SHIFT - 1, PUD_SHIFT + 1, 42, 43, 63, 64,
		~0U };
	static const struct {
		unsigned int shift;
		u64 entries;
	} classes[] = {
		{ PAGE_SHIFT, PAGE_ENTRIES },
		{ PMD_SHIFT, PMD_ENTRIES },
		{ PUD_SHIFT, PUD_ENTRIES },
	};
	struct nhca_range r;
	unsigned int i;

	tce_expect_unused(test);
	for (i = 0; i < ARRAY_SIZE(no_class); i++)
		KUNIT_EXPECT_EQ_MSG(test, nhca_range_alloc(&r, no_class[i], 1, &tce_owner),
				    -EINVAL, "shift %u", no_class[i]);
	for (i = 0; i < ARRAY_SIZE(classes); i++) {
		KUNIT_EXPECT_EQ(test, nhca_range_alloc(&r, classes[i].shift, 0, &tce_owner),
				-EINVAL);
		KUNIT_EXPECT_EQ(test, nhca_range_alloc(&r, classes[i].shift,
						       classes[i].entries + 1, &tce_owner),
				-EINVAL);
		KUNIT_EXPECT_EQ(test, nhca_range_alloc(&r, classes[i].shift, U64_MAX, &tce_owner),
				-EINVAL);
	}
	tce_expect_unused(test);
}

/*
 * A range whose entries need more than half of the host's memory is refused, and the tables do not
 * change. A full table of 4 KiB pages would need 8 GiB for its entries.
 */
static void tce_no_memory_test(struct kunit *test)
{
	u64 half = totalram_pages() / 2 * (PAGE_SIZE / sizeof(u64));
	struct nhca_range keep, r;

	tce_expect_unused(test);
	if (half >= PAGE_ENTRIES)
		kunit_skip(test, "has memory for the largest range");
	KUNIT_EXPECT_EQ(test, nhca_range_alloc(&r, PAGE_SHIFT, half + 1, &tce_owner), -ENOMEM);
	tce_expect_unused(test);
	keep = tce_alloc(test, PAGE_SHIFT, LEAF + 1);
	KUNIT_EXPECT_EQ(test, nhca_range_alloc(&r, PAGE_SHIFT, half + 1, &tce_owner), -ENOMEM);
	KUNIT_EXPECT_EQ(test, tce_usage(keep.table).ranges, 1);
	KUNIT_EXPECT_EQ(test, tce_usage(keep.table).leaves, 2);
	r = tce_alloc(test, PAGE_SHIFT, 1);
	KUNIT_EXPECT_EQ(test, r.first, LEAF + 1);
	nhca_range_free(&keep);
	nhca_range_free(&r);
	tce_expect_unused(test);
}

/*
 * Ranges fill one table after the other until all tables are full. A free table can get any class.
 */
static void tce_exhaustion_test(struct kunit *test)
{
	struct nhca_range *r = kunit_kcalloc(test, NHCA_TCE_TABLES + 1, sizeof(*r), GFP_KERNEL);
	struct nhca_range extra, none;
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, r);
	tce_expect_unused(test);
	/* a range that fits into no used table gets the next free table */
	for (i = 0; i < NHCA_TCE_TABLES - 1; i++) {
		r[i] = tce_alloc(test, PUD_SHIFT, PUD_ENTRIES);
		KUNIT_EXPECT_EQ(test, r[i].table, i);
		KUNIT_EXPECT_EQ(test, r[i].first, 0);
		nhca_range_set(&r[i], PUD_ENTRIES - 1, 77 + i, RW);
	}
	r[i] = tce_alloc(test, PUD_SHIFT, PUD_ENTRIES - 4);
	extra = tce_alloc(test, PUD_SHIFT, 1);
	KUNIT_EXPECT_EQ(test, extra.table, i);
	KUNIT_EXPECT_EQ(test, extra.first, PUD_ENTRIES - 4);
	for (i = 0; i < NHCA_TCE_TABLES - 1; i++)
		KUNIT_EXPECT_EQ(test, tce_at(tce_pvo(&r[i], PUD_ENTRIES - 1)),
				tce_value(&r[i], 77 + i, RW));

	/* only three entries of the 1 GiB class are left, and no free table for another class */
	KUNIT_EXPECT_EQ(test, nhca_range_alloc(&none, PUD_SHIFT, 4, &tce_owner), -ENOSPC);
	KUNIT_EXPECT_EQ(test, nhca_range_alloc(&none, PMD_SHIFT, 1, &tce_owner), -ENOSPC);
	KUNIT_EXPECT_EQ(test, nhca_range_alloc(&none, PAGE_SHIFT, 1, &tce_owner), -ENOSPC);
	r[32] = tce_alloc(test, PUD_SHIFT, 3);
	KUNIT_EXPECT_EQ(test, r[32].first, PUD_ENTRIES - 3);
	KUNIT_EXPECT_EQ(test, nhca_range_alloc(&none, PUD_SHIFT, 1, &tce_owner), -ENOSPC);

	/*
	 * freeing two adjacent ranges of 3 and 1 entries makes room for 4; the other tables are
	 * still full
	 */
	nhca_range_free(&r[32]);
	nhca_range_free(&extra);
	extra = tce_alloc(test, PUD_SHIFT, 4);
	KUNIT_EXPECT_EQ(test, extra.table, 31);
	KUNIT_EXPECT_EQ(test, extra.first, PUD_ENTRIES - 4);
	nhca_range_free(&extra);

	/* a table whose only range was freed can get another class */
	nhca_range_free(&r[7]);
	r[7] = tce_alloc(test, PAGE_SHIFT, 1);
	KUNIT_EXPECT_EQ(test, r[7].table, 7);
	KUNIT_EXPECT_EQ(test, nhca_range_alloc(&none, PMD_SHIFT, 1, &tce_owner), -ENOSPC);
	for (i = 0; i < NHCA_TCE_TABLES; i++)
		nhca_range_free(&r[i]);
	tce_expect_unused(test);
}

static bool all(const struct nhca_range *r, u64 first, u64 n, u64 flags)
{
	/*
	 * the bytes begin after the start of the first page and end before the end of the last page
	 */
	u64 pvo = tce_pvo(r, first) + 77, len = (n << r->shift) - 77 - 99;
	bool yes;

	local_bh_disable();
	nhca_live_enter();
	yes = nhca_tce_all(pvo, len, flags);
	nhca_live_exit();
	local_bh_enable();
	return yes;
}

/*
 * nhca_tce_all() checks the entries of many pages, also in two leaves. It returns false if one of
 * the entries is cleared, has another key or grants fewer rights.
 */
static void tce_all_test(struct kunit *test)
{
	struct nhca_range r = tce_alloc(test, PAGE_SHIFT, LEAF + 20);
	u64 border = LEAF - r.first % LEAF, i, first;

	tce_set_all(&r);
	KUNIT_EXPECT_TRUE(test, all(&r, 0, r.count, RW));
	for (i = border - 5; i < border + 5; i++) {
		for (first = border - 8; first <= i + 1; first++) {
			nhca_range_clear(&r, i, 1);
			KUNIT_EXPECT_EQ(test, all(&r, first, 4, RW), i < first || i > first + 3);
			nhca_range_set(&r, i, tce_pfn(tce_pvo(&r, i), r.shift), NHCA_TCE_READ);
			KUNIT_EXPECT_EQ(test, all(&r, first, 4, RW), i < first || i > first + 3);
			KUNIT_EXPECT_TRUE(test, all(&r, first, 4, NHCA_TCE_READ));
			nhca_range_set(&r, i, tce_pfn(tce_pvo(&r, i), r.shift), RW);
		}
	}
	r.key ^= 1;
	KUNIT_EXPECT_FALSE(test, all(&r, 0, 4, RW));
	KUNIT_EXPECT_FALSE(test, all(&r, border - 2, 4, NHCA_TCE_READ));
	r.key ^= 1;
	nhca_range_free(&r);
	KUNIT_EXPECT_FALSE(test, all(&r, 0, 4, 0));
}

static struct kunit_case tce_cases[] = {
	KUNIT_CASE(tce_first_fit_test),
	KUNIT_CASE(tce_leaf_border_test),
	KUNIT_CASE(tce_zeroed_test),
	KUNIT_CASE(tce_key_test),
	KUNIT_CASE(tce_all_keys_test),
	KUNIT_CASE(tce_class_test),
	KUNIT_CASE(tce_entry_test),
	KUNIT_CASE(tce_all_test),
	KUNIT_CASE(tce_argument_test),
	KUNIT_CASE(tce_no_memory_test),
	KUNIT_CASE(tce_exhaustion_test),
	{}
};

static struct kunit_suite tce_suite = {
	.name = "nhca_tce",
	.test_cases = tce_cases,
};

kunit_test_suite(tce_suite);
