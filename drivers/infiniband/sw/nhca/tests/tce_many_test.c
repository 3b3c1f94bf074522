// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit: translation tables with many ranges: compared with a model, used by many threads, and with
 * a million ranges.
 */
#include <linux/bitmap.h>
#include <linux/delay.h>
#include <linux/prandom.h>
#include <linux/slab.h>

#include "../memory/gaps.h"
#include "tce_test.h"
#include "threads.h"

/* ---- compared with a model ---- */

#define MODEL_RANGES	1500

/**
 * struct tce_model - the model's translation tables
 * @rnd:     random number generator
 * @shift:   page size class of all ranges
 * @entries: number of entries that each table can have
 * @used:    bitmap of the entries in use, for each table
 * @in_use:  number of entries in use, for each table
 * @n:       number of ranges that are allocated
 * @max:     maximum of @n
 * @ranges:  the ranges
 */
struct tce_model {
	struct rnd_state rnd;
	unsigned int shift;
	u64 entries;
	unsigned long *used[NHCA_TCE_TABLES];
	u64 in_use[NHCA_TCE_TABLES];
	unsigned int n;
	unsigned int max;
	struct nhca_range ranges[MODEL_RANGES];
};

static struct tce_model *model_make(struct kunit *test, unsigned int shift, u64 entries,
				    unsigned int max)
{
	struct tce_model *m = kunit_kzalloc(test, sizeof(*m), GFP_KERNEL);
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, m);
	prandom_seed_state(&m->rnd, 20261120 + shift);
	m->shift = shift;
	m->max = max;
	m->entries = entries;
	for (i = 0; i < NHCA_TCE_TABLES; i++) {
		m->used[i] = kunit_kzalloc(test, BITS_TO_LONGS(entries) * sizeof(long),
					   GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(test, m->used[i]);
	}
	return m;
}

/*
 * Find the first fit: in the first table with ranges that has enough room, or else in the first
 * table without ranges. Return: false if no table has room.
 */
static bool model_fit(struct tce_model *m, u64 count, unsigned int *table, u64 *first)
{
	unsigned int i;

	for (i = 0; i < NHCA_TCE_TABLES; i++) {
		*table = i;
		if (!m->in_use[i] || m->in_use[i] + count > m->entries)
			continue;
		*first = bitmap_find_next_zero_area(m->used[i], m->entries, 0, count, 0);
		if (*first < m->entries)
			return true;
	}
	for (i = 0; i < NHCA_TCE_TABLES; i++) {
		*table = i;
		*first = 0;
		if (!m->in_use[i])
			return true;
	}
	return false;
}

static void model_alloc(struct kunit *test, struct tce_model *m, u64 count)
{
	struct nhca_range *r = &m->ranges[m->n];
	unsigned int table;
	u64 first;
	int err;

	err = nhca_range_alloc(r, m->shift, count, &tce_owner);
	if (!model_fit(m, count, &table, &first)) {
		KUNIT_ASSERT_EQ(test, err, -ENOSPC);
		return;
	}
	KUNIT_ASSERT_EQ(test, err, 0);
	KUNIT_ASSERT_EQ(test, r->table, table);
	KUNIT_ASSERT_EQ(test, r->first, first);
	bitmap_set(m->used[table], first, count);
	m->in_use[table] += count;
	m->n++;
	tce_set_all(r);
}

static void model_free(struct kunit *test, struct tce_model *m, unsigned int i)
{
	struct nhca_range *r = &m->ranges[i];
	u64 pvo = nhca_range_pvo(r), last = pvo + ((r->count - 1) << r->shift);

	bitmap_clear(m->used[r->table], r->first, r->count);
	m->in_use[r->table] -= r->count;
	nhca_range_free(r);
	*r = m->ranges[--m->n];
	KUNIT_ASSERT_EQ(test, tce_at(pvo), 0);
	KUNIT_ASSERT_EQ(test, tce_at(last), 0);
}

/*
 * Expect that entries of a random range have their values. If two ranges overlapped, one of them
 * would have changed entries of the other.
 */
static void model_look(struct kunit *test, struct tce_model *m)
{
	const struct nhca_range *r;

	if (!m->n)
		return;
	r = &m->ranges[prandom_u32_state(&m->rnd) % m->n];
	KUNIT_ASSERT_TRUE(test, tce_good(r, 0));
	KUNIT_ASSERT_TRUE(test, tce_good(r, r->count - 1));
	KUNIT_ASSERT_TRUE(test, tce_good(r, prandom_u32_state(&m->rnd) % r->count));
}

static void model_look_at_all(struct kunit *test, struct tce_model *m)
{
	struct nhca_tce_usage u;
	u64 l, leaves, bad = 0;
	unsigned int i;

	for (i = 0; i < m->n; i++)
		for (l = 0; l < m->ranges[i].count; l += 1 + m->ranges[i].count / 256)
			bad += !tce_good(&m->ranges[i], l);
	KUNIT_ASSERT_EQ(test, bad, 0);
	for (i = 0; i < NHCA_TCE_TABLES; i++) {
		leaves = 0;
		for (l = 0; l < m->entries; l += LEAF)
			leaves += find_next_bit(m->used[i], min(l + LEAF, m->entries), l) <
				  min(l + LEAF, m->entries);
		u = tce_usage(i);
		KUNIT_ASSERT_EQ(test, u.shift, m->in_use[i] ? m->shift : 0);
		KUNIT_ASSERT_EQ(test, u.entries, m->in_use[i]);
		KUNIT_ASSERT_EQ(test, u.leaves, leaves);
	}
}

/*
 * Allocate ranges of up to 2^@bits entries, small ranges more often, and free them again. The
 * number of ranges grows to @m->max and shrinks to 0 in turns, so that tables become full,
 * fragmented and free.
 */
static void model_run(struct kunit *test, struct tce_model *m, unsigned int steps,
		      unsigned int bits)
{
	unsigned int i, full = 0, empty = 0, tables = 0, t;
	bool grow = true;
	u32 rnd;

	for (i = 0; i < steps; i++) {
		rnd = prandom_u32_state(&m->rnd);
		if (grow && m->n == m->max) {
			grow = false;
			full++;
		} else if (!grow && !m->n) {
			grow = true;
			empty++;
		}
		if (!m->n || (m->n < m->max && rnd % 5 < (grow ? 3 : 2)))
			model_alloc(test, m, 1 + (rnd >> 8) % BIT(1 + (rnd >> 3) % bits));
		else
			model_free(test, m, (rnd >> 8) % m->n);
		model_look(test, m);
		if (i % (steps / 16) == 0)
			model_look_at_all(test, m);
		for (t = tables; t < NHCA_TCE_TABLES; t++)
			if (m->in_use[t])
				tables = t + 1;
		cond_resched();
	}
	/* the number of ranges was @m->max several times, and 0 several times */
	KUNIT_EXPECT_GE(test, full, 3);
	KUNIT_EXPECT_GE(test, empty, 2);
	kunit_info(test, "%u steps, %u times full, %u times empty, up to table %u\n",
		   steps, full, empty, tables - 1);
	model_look_at_all(test, m);
	while (m->n)
		model_free(test, m, m->n - 1);
}

/* First fit in small tables (pages of 1 GiB), of which several become full. */
static void tce_model_test(struct kunit *test)
{
	struct tce_model *m;

	tce_expect_unused(test);
	m = model_make(test, PUD_SHIFT, PUD_ENTRIES, MODEL_RANGES);
	model_run(test, m, 100000, 7);
	tce_expect_unused(test);
}

/* First fit of large ranges. A leaf that only one range uses is freed with the range. */
static void tce_model_leaves_test(struct kunit *test)
{
	struct tce_model *m;

	tce_expect_unused(test);
	m = model_make(test, PMD_SHIFT, PMD_ENTRIES, 60);
	model_run(test, m, 4000, 17);
	tce_expect_unused(test);
}

/* ---- readers and writers ---- */

#define RACE_SLOTS	16
#define RACE_WRITERS	2
#define RACE_READERS	8
#define RACE_MS		1000
#define RACE_STALE	64

/**
 * struct race_slot - a range, which a writer opens and closes
 * @pvo: PVO of the range's first byte; 0: the range is closed
 * @r:   the range; it does not change while @pvo is not 0, or a live section that has read @pvo may
 *       run
 */
struct race_slot {
	u64 pvo;
	struct nhca_range r;
};

struct race_writer {
	struct task_struct *task;
	struct rnd_state rnd;
	struct race_slot slots[RACE_SLOTS];
	u64 steps;
	u64 errors;
};

struct race_reader {
	struct task_struct *task;
	struct race *race;
	struct rnd_state rnd;
	u64 stale[RACE_STALE];
	u64 hits;
	u64 misses;
	u64 errors;
};

struct race {
	struct race_writer writer[RACE_WRITERS];
	struct race_reader reader[RACE_READERS];
};

static void race_open(struct race_slot *slot)
{
	tce_set_all(&slot->r);
	/*
	 * pairs with the acquire in race_read_slot(), so that a reader sees the entries and slot->r
	 */
	smp_store_release(&slot->pvo, nhca_range_pvo(&slot->r));
}

static void race_close(struct race_slot *slot)
{
	WRITE_ONCE(slot->pvo, 0);
	nhca_live_wait();
}

static void race_write(struct race_writer *w, struct race_slot *slot, bool only_free)
{
	static const unsigned int shifts[] = { PAGE_SHIFT, PAGE_SHIFT, PMD_SHIFT, PUD_SHIFT };
	u32 rnd = prandom_u32_state(&w->rnd);
	unsigned int shift = shifts[rnd % 4];
	u64 count;

	if (slot->r.count) {
		race_close(slot);
		if (rnd % 3 || only_free) {
			nhca_range_free(&slot->r);
		} else {
			nhca_range_clear(&slot->r, 0, slot->r.count);
			nhca_range_rekey(&slot->r);
			race_open(slot);
		}
	} else if (!only_free) {
		count = 1 + (rnd >> 8) % (rnd % 61 || shift == PUD_SHIFT ? 100 : 3 * LEAF);
		if (nhca_range_alloc(&slot->r, shift, count, &tce_owner)) {
			slot->r.count = 0;
			w->errors++;
			return;
		}
		race_open(slot);
	}
}

static int race_writer_run(void *arg)
{
	struct race_writer *w = arg;
	unsigned int i;

	while (!kthread_should_stop()) {
		race_write(w, &w->slots[prandom_u32_state(&w->rnd) % RACE_SLOTS], false);
		/*
		 * sometimes free all ranges, because only a table without ranges can get another
		 * page size
		 */
		WRITE_ONCE(w->steps, w->steps + 1);
		if (w->steps % 128 == 0)
			for (i = 0; i < RACE_SLOTS; i++)
				race_write(w, &w->slots[i], true);
		cond_resched();
	}
	for (i = 0; i < RACE_SLOTS; i++)
		race_write(w, &w->slots[i], true);
	return 0;
}

/* The PVO of an open range is translated to the page that the range has at this offset. */
static void race_read_slot(struct race_reader *rd, struct race_slot *slot)
{
	unsigned int shift;
	u64 pvo, at;

	/* pairs with the release in race_open() */
	pvo = smp_load_acquire(&slot->pvo);
	if (!pvo) {
		rd->misses++;
		return;
	}
	at = tce_pvo(&slot->r, prandom_u32_state(&rd->rnd) % slot->r.count);
	if (nhca_tce_find(at, &shift) != tce_value(&slot->r, tce_pfn(at, slot->r.shift), RW) ||
	    shift != slot->r.shift)
		rd->errors++;
	WRITE_ONCE(rd->hits, rd->hits + 1);
	rd->stale[rd->hits % RACE_STALE] = pvo;
}

/*
 * A PVO that is stale or made up is translated to nothing, or to the right page of an open range.
 */
static void race_read_stale(struct race_reader *rd)
{
	u32 rnd = prandom_u32_state(&rd->rnd);
	u64 pvo = rd->stale[rnd % RACE_STALE], tce;
	unsigned int shift;

	/* a stale PVO; by random bits, its page, offset, key or table is changed */
	if (rnd & BIT(8))
		pvo ^= rnd >> 16 << PAGE_SHIFT;
	if (rnd & BIT(9))
		pvo ^= (u64)prandom_u32_state(&rd->rnd) << 10;
	if (rnd & BIT(10))
		pvo ^= (u64)prandom_u32_state(&rd->rnd) << NHCA_PVO_KEY_SHIFT;
	if (rnd & BIT(11))
		pvo ^= (u64)prandom_u32_state(&rd->rnd) << NHCA_PVO_OFFSET_BITS;
	tce = nhca_tce_find(pvo, &shift);
	if (tce && tce != ((pvo & ~NHCA_PVO_OFFSET_MASK) | tce_pfn(pvo, shift) << 2 | RW))
		rd->errors++;
}

static int race_reader_run(void *arg)
{
	struct race_reader *rd = arg;
	struct race_writer *w;
	u32 rnd;

	while (!kthread_should_stop()) {
		rnd = prandom_u32_state(&rd->rnd);
		w = &rd->race->writer[rnd % RACE_WRITERS];
		local_bh_disable();
		nhca_live_enter();
		race_read_slot(rd, &w->slots[(rnd >> 8) % RACE_SLOTS]);
		race_read_stale(rd);
		nhca_live_exit();
		local_bh_enable();
		cond_resched();
	}
	return 0;
}

/*
 * Return: true if each reader has translated more than 100 open PVOs, and each writer has made more
 * than 500 steps.
 */
static bool race_enough(const struct race *race, unsigned int readers)
{
	unsigned int i;

	for (i = 0; i < readers; i++)
		if (READ_ONCE(race->reader[i].hits) <= 100)
			return false;
	for (i = 0; i < RACE_WRITERS; i++)
		if (READ_ONCE(race->writer[i].steps) <= 500)
			return false;
	return true;
}

/* Return: the @n-th online CPU; after the last CPU, counting goes on at the first. */
static int race_cpu(unsigned int n)
{
	int cpu = cpumask_first(cpu_online_mask);

	for (n %= num_online_cpus(); n; n--)
		cpu = cpumask_next(cpu, cpu_online_mask);
	return cpu;
}

/*
 * While writers open and close ranges, readers in live sections translate the PVO of an open range
 * to its page, and a stale PVO to nothing or to the right page.
 */
static void tce_race_test(struct kunit *test)
{
	struct race *race = kunit_kzalloc(test, sizeof(*race), GFP_KERNEL);
	unsigned int i, readers, cpu = 0, failed = 0;
	unsigned long begun;

	KUNIT_ASSERT_NOT_NULL(test, race);
	tce_expect_unused(test);
	readers = clamp_t(unsigned int, num_online_cpus(), 2, RACE_READERS);
	for (i = 0; i < RACE_WRITERS; i++) {
		struct race_writer *w = &race->writer[i];

		prandom_seed_state(&w->rnd, 1000 + i);
		w->task = test_thread_start(race_writer_run, w, race_cpu(cpu++));
		failed += IS_ERR(w->task);
	}
	for (i = 0; i < readers; i++) {
		struct race_reader *rd = &race->reader[i];

		rd->race = race;
		prandom_seed_state(&rd->rnd, 2000 + i);
		rd->task = test_thread_start(race_reader_run, rd, race_cpu(cpu++));
		failed += IS_ERR(rd->task);
	}
	begun = jiffies;
	do {
		msleep(20);
	} while (test_goes_on(begun, msecs_to_jiffies(RACE_MS), race_enough(race, readers)));
	for (i = 0; i < readers; i++)
		test_thread_stop(race->reader[i].task);
	for (i = 0; i < RACE_WRITERS; i++)
		test_thread_stop(race->writer[i].task);
	KUNIT_EXPECT_EQ(test, failed, 0);
	for (i = 0; i < readers; i++) {
		kunit_info(test, "reader %u: %llu open, %llu closed\n", i, race->reader[i].hits,
			   race->reader[i].misses);
		KUNIT_EXPECT_EQ(test, race->reader[i].errors, 0);
		KUNIT_EXPECT_GT(test, race->reader[i].hits, 100);
	}
	for (i = 0; i < RACE_WRITERS; i++) {
		kunit_info(test, "writer %u: %llu steps\n", i, race->writer[i].steps);
		KUNIT_EXPECT_EQ(test, race->writer[i].errors, 0);
		KUNIT_EXPECT_GT(test, race->writer[i].steps, 500);
	}
	tce_expect_unused(test);
}

/* ---- a million ranges ---- */

/* number of ranges, divisible by 8; fewer on a debug kernel, so that the test takes only seconds */
#if defined(CONFIG_KASAN) || defined(CONFIG_KCSAN) || defined(CONFIG_PROVE_LOCKING)
#define MANY		48000
#else
#define MANY		1000000
#endif

/*
 * Let KASAN free memory in its quarantine. KASAN does so only in allocations that may sleep, and
 * most of the tree nodes come from other allocations.
 */
static void many_pause(u64 i)
{
	if (i % 256)
		return;
	kfree(kmalloc(sizeof(struct nhca_range), GFP_KERNEL));
	cond_resched();
}

/*
 * Allocate a range of one entry, but free the node that the range keeps for its gap, to save
 * memory.
 */
static int many_alloc(struct nhca_range *r)
{
	int err = nhca_range_alloc(r, PAGE_SHIFT, 1, &tce_owner);

	if (!err)
		kfree(r->gap);
	return err;
}

static void many_free(struct nhca_range like, u64 first)
{
	like.first = first;
	like.count = 1;
	like.gap = nhca_gap_alloc();
	nhca_range_free(&like);
}

/*
 * Allocating and freeing a range takes little time although there are very many ranges. With a
 * linear search in any step, a million ranges would take hours.
 */
static void tce_many_test(struct kunit *test)
{
	struct nhca_range r, like;
	u64 i, bad = 0;

	tce_expect_unused(test);
	KUNIT_ASSERT_EQ(test, many_alloc(&like), 0);
	for (i = 1; i < MANY; i++) {
		r = like;
		bad += !!many_alloc(&r);
		bad += r.first != i || r.table != like.table;
		many_pause(i);
	}
	KUNIT_ASSERT_EQ(test, bad, 0);
	KUNIT_EXPECT_EQ(test, tce_usage(like.table).ranges, MANY);
	KUNIT_EXPECT_EQ(test, tce_usage(like.table).leaves, DIV_ROUND_UP(MANY, LEAF));

	/*
	 * after the frees, each eighth entry is a gap of one entry, and one gap near the end has
	 * two entries
	 */
	for (i = 0; i < MANY; i += 8) {
		many_free(like, i);
		many_pause(i);
	}
	many_free(like, MANY - 7);
	r = tce_alloc(test, PAGE_SHIFT, 2);
	KUNIT_EXPECT_EQ(test, r.first, MANY - 8);
	nhca_range_free(&r);
	for (i = 0; i < MANY; i += 8) {
		bad += !!many_alloc(&r);
		bad += r.first != i;
		many_pause(i);
	}
	KUNIT_EXPECT_EQ(test, bad, 0);
	r = tce_alloc(test, PAGE_SHIFT, 2);
	KUNIT_EXPECT_EQ(test, r.first, MANY);
	nhca_range_free(&r);
	KUNIT_EXPECT_EQ(test, many_alloc(&r), 0);
	KUNIT_EXPECT_EQ(test, r.first, MANY - 7);

	for (i = 0; i < MANY; i++) {
		many_free(like, i);
		many_pause(i);
	}
	tce_expect_unused(test);
}

static struct kunit_case tce_many_cases[] = {
	KUNIT_CASE(tce_model_test),
	KUNIT_CASE(tce_model_leaves_test),
	KUNIT_CASE(tce_race_test),
	KUNIT_CASE(tce_many_test),
	{}
};

static struct kunit_suite tce_many_suite = {
	.name = "nhca_tce_many",
	.test_cases = tce_many_cases,
};

kunit_test_suite(tce_many_suite);
