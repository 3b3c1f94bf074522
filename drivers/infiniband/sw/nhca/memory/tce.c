// SPDX-License-Identifier: GPL-2.0
/*
 * The tables of translation control entries.
 *
 * Each table has two parts.  Translation reads nhca_tce_tables, which has the directory of leaves
 * of each table, without a lock.  Allocation uses the array spaces, which records the free entries.
 * The mutex tce_lock protects this array, except its member keys.
 *
 * A leaf exists while a range uses entries of it, and a directory while the table has a range.
 * Leaves and directories are freed in three steps: remove the pointer, call nhca_live_wait(), free
 * the memory.  So any PVO can be looked up safely, even one from a packet: the lookup finds
 * nothing, or an entry whose key is then compared with the key of the PVO.
 */
#include <linux/bug.h>
#include <linux/kernel.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include "gaps.h"
#include "live.h"
#include "shuffle.h"
#include "tce.h"

/* maximum number of leaves that are freed after one wait for live sections */
#define TCE_BATCH	16

/**
 * struct tce_space - the part of a table that allocation uses; all but @keys protected by tce_lock
 * @gaps:    free entries; empty while the table is not in use
 * @ranges:  number of ranges
 * @entries: number of entries in ranges
 * @taker:   the user for whose range the table was taken into use; counted; NULL: nobody
 * @keys:    order of the keys of its ranges, with an atomic counter; the order continues when the
 *           class of the table changes
 */
struct tce_space {
	struct nhca_gaps gaps;
	u64 ranges;
	u64 entries;
	struct nhca_user *taker;
	struct nhca_shuffle keys;
};

struct nhca_tce_table nhca_tce_tables[NHCA_TCE_TABLES] __read_mostly;

static struct tce_space spaces[NHCA_TCE_TABLES];

static_assert(NHCA_MAX_PVOS == (long)NHCA_TCE_TABLES << NHCA_PVO_OFFSET_BITS);

/*
 * Protects spaces (except keys), the class of each table, the pointers to directories, and the
 * removal of shared leaves.  All users need this lock, so no memory is allocated while it is held:
 * the allocation of a user whose memory cgroup is full may take long.
 */
static DEFINE_MUTEX(tce_lock);

static u64 table_entries(unsigned int shift)
{
	return BIT_ULL(NHCA_PVO_OFFSET_BITS - shift);
}

static u64 table_leaves(unsigned int shift)
{
	return DIV_ROUND_UP_ULL(table_entries(shift), NHCA_TCE_LEAF_SIZE);
}

static bool shift_ok(unsigned int shift)
{
	return shift == PAGE_SHIFT || shift == PMD_SHIFT ||
	       (shift == PUD_SHIFT && shift < NHCA_PVO_OFFSET_BITS);
}

/*
 * Return: the key, other than @but, that this function has not returned for the table for the
 * longest time.  The order of keys is secret, because peers see keys of job memory and must not be
 * able to guess other keys.  Key 0 is not used, so that neither an entry in use nor a PVO is 0.
 */
static u32 next_key(unsigned int table, u32 but)
{
	u32 key;

	do {
		key = nhca_shuffle_next(&spaces[table].keys);
	} while (key == but);
	return key;
}

static u64 *leaf_of(const struct nhca_range *r, u64 entry)
{
	return READ_ONCE(nhca_tce_tables[r->table].leaf[entry >> NHCA_TCE_LEAF_BITS]);
}

/* Clear the entries @from to @to - 1, which are in one leaf. */
static void clear_in_leaf(const struct nhca_range *r, u64 from, u64 to)
{
	u64 *leaf = leaf_of(r, from);

	if (!leaf)
		return;
	for (; from < to; from++)
		WRITE_ONCE(leaf[from % NHCA_TCE_LEAF_SIZE], 0);
}

/* ---- tables ---- */

static void table_uncharge(struct nhca_user *user)
{
	nhca_pool_uncharge(&nhca_host_users, user, NHCA_POOL_TCE_TABLES, 1);
}

/**
 * struct table_parts - what a table gets when it is taken into use
 * @dir: its directory
 * @gap: its gap, of all entries
 */
struct table_parts {
	u64 **dir;
	struct nhca_gap *gap;
};

/* Free the parts, unless table_take() has given them to a table. */
static void table_parts_free(struct table_parts *parts)
{
	kfree(parts->gap);
	kvfree(parts->dir);
}

/* Allocate the parts of a table of the class @shift.  Return: 0 or -ENOMEM. */
static int table_parts_alloc(struct table_parts *parts, unsigned int shift)
{
	parts->gap = nhca_gap_alloc();
	parts->dir = kvcalloc(table_leaves(shift), sizeof(*parts->dir), GFP_KERNEL_ACCOUNT);
	if (parts->gap && parts->dir)
		return 0;
	table_parts_free(parts);
	return -ENOMEM;
}

/*
 * Charge @user for the first unused table.
 * Return: number of the table; -ENOSPC: all tables are in use; -EDQUOT: the user has its share of
 * tables.
 */
static int table_charge(struct nhca_user *user)
{
	int i, err;

	lockdep_assert_held(&tce_lock);
	for (i = 0; i < NHCA_TCE_TABLES && nhca_tce_tables[i].shift; i++)
		;
	if (i == NHCA_TCE_TABLES)
		return -ENOSPC;
	err = nhca_pool_charge(&nhca_host_users, user, NHCA_POOL_TCE_TABLES, 1);
	return err ?: i;
}

/* Return: 0 if table_take() would succeed now, else the error that it would return. */
static int table_may_take(struct nhca_user *user)
{
	int i = table_charge(user);

	if (i >= 0)
		table_uncharge(user);
	return min(i, 0);
}

/*
 * Give the first unused table to the class @shift, for a range of @user.
 * Return: number of the table, which has got @parts; or an error of table_charge().
 */
static int table_take(unsigned int shift, struct nhca_user *user, struct table_parts *parts)
{
	int i = table_charge(user);
	struct nhca_tce_table *t;

	lockdep_assert_held(&tce_lock);
	if (i < 0)
		return i;
	t = &nhca_tce_tables[i];
	nhca_gaps_init(&spaces[i].gaps, table_entries(shift), parts->gap);
	spaces[i].taker = nhca_user_hold(user);

	WRITE_ONCE(t->shift, shift);
	/* a live section that has read the previous shift must not find the new directory */
	nhca_live_wait();
	/*
	 * A CPU that finds the directory sees it empty; pairs with the read of leaf in
	 * nhca_tce_entry().
	 */
	smp_store_release(&t->leaf, parts->dir);
	*parts = (struct table_parts) {};
	return i;
}

/* Free a table without ranges, which no live section uses any more. */
static void table_drop(unsigned int i, u64 **dir)
{
	lockdep_assert_held(&tce_lock);
	nhca_gaps_destroy(&spaces[i].gaps);
	WRITE_ONCE(nhca_tce_tables[i].shift, 0);
	table_uncharge(spaces[i].taker);
	nhca_user_put(spaces[i].taker);
	spaces[i].taker = NULL;
	kvfree(dir);
}

/*
 * Reserve entries at the start of the first gap of a table that has room for @r->count entries.
 * Return: false if the table has no such gap.
 */
static bool table_reserve(unsigned int i, struct nhca_range *r)
{
	struct tce_space *s = &spaces[i];

	lockdep_assert_held(&tce_lock);
	if (!nhca_gaps_take(&s->gaps, r->count, &r->first))
		return false;
	s->ranges++;
	s->entries += r->count;
	r->table = i;
	r->key = next_key(i, 0);
	return true;
}

/* Reserve a range in a table that the class already has.  Return: false if no table has room. */
static bool range_reserve_old(struct nhca_range *r)
{
	unsigned int i;

	lockdep_assert_held(&tce_lock);
	for (i = 0; i < NHCA_TCE_TABLES; i++)
		if (nhca_tce_tables[i].shift == r->shift && table_reserve(i, r))
			return true;
	return false;
}

/* Reserve a range, in a new table if need be.  Return: 0; -ENOMEM; or an error of table_take(). */
static int range_reserve(struct nhca_range *r)
{
	struct table_parts parts;
	int table = 0, err;
	bool done;

	mutex_lock(&tce_lock);
	done = range_reserve_old(r);
	err = done ? 0 : table_may_take(r->owner.user);
	mutex_unlock(&tce_lock);
	if (done || err)
		return err;

	err = table_parts_alloc(&parts, r->shift);
	if (err)
		return err;
	mutex_lock(&tce_lock);
	/* while the mutex was free, another task may have added a table or freed a range */
	if (!range_reserve_old(r)) {
		table = table_take(r->shift, r->owner.user, &parts);
		/* this succeeds: the table is empty, and no range is larger than a table */
		if (table >= 0)
			table_reserve(table, r);
	}
	mutex_unlock(&tce_lock);
	table_parts_free(&parts);
	return min(table, 0);
}

/* ---- leaves ---- */

/*
 * Allocate the missing leaves of a reserved range.  This needs no lock: while the range is
 * reserved, the table stays, and no other code removes a leaf that the range uses.  The owner of an
 * adjacent range may add a shared leaf at the same time; one of the two leaves is kept.
 */
static int range_fill(const struct nhca_range *r)
{
	u64 **dir = nhca_tce_tables[r->table].leaf;
	u64 l, last = (r->first + r->count - 1) >> NHCA_TCE_LEAF_BITS;
	u64 *leaf;

	/* limit the entries of one range to half of the host's memory */
	if (r->count > totalram_pages() / 2 * (PAGE_SIZE / sizeof(*leaf)))
		return -ENOMEM;
	for (l = r->first >> NHCA_TCE_LEAF_BITS; l <= last; l++) {
		if (READ_ONCE(dir[l]))
			continue;
		leaf = kvcalloc(NHCA_TCE_LEAF_SIZE, sizeof(*leaf), GFP_KERNEL_ACCOUNT);
		if (!leaf)
			return -ENOMEM;
		/*
		 * A CPU that finds the leaf sees it empty; pairs with the read of dir in
		 * nhca_tce_entry().
		 */
		if (cmpxchg(&dir[l], NULL, leaf))
			kvfree(leaf);
		cond_resched();
	}
	return 0;
}

/* Free leaves that were removed from the directory. */
static void leaves_free(u64 **leaves, unsigned int n)
{
	if (!n)
		return;
	nhca_live_wait();
	while (n--)
		kvfree(leaves[n]);
}

/*
 * Clear a range.  Leaves that lie completely in the range are removed with their entries, without
 * the lock: the range is still reserved, so no other code adds a leaf there.
 */
static noinline void range_empty_leaves(const struct nhca_range *r)
{
	u64 **dir = nhca_tce_tables[r->table].leaf;
	u64 at, next, end = r->first + r->count;
	u64 *gone[TCE_BATCH], *leaf;
	unsigned int n = 0;

	for (at = r->first; at < end; at = next) {
		next = min(end, round_down(at, NHCA_TCE_LEAF_SIZE) + NHCA_TCE_LEAF_SIZE);
		if (next - at < NHCA_TCE_LEAF_SIZE) {
			clear_in_leaf(r, at, next);
			continue;
		}
		leaf = xchg(&dir[at >> NHCA_TCE_LEAF_BITS], NULL);
		/* NULL if range_fill() could not allocate the leaf */
		if (leaf)
			gone[n++] = leaf;
		if (n == TCE_BATCH) {
			leaves_free(gone, n);
			n = 0;
		}
		cond_resched();
	}
	leaves_free(gone, n);
}

static void range_empty(const struct nhca_range *r)
{
	u64 in_leaf = r->first % NHCA_TCE_LEAF_SIZE;

	/* most regions are small and use only a part of one leaf */
	if (in_leaf + r->count <= NHCA_TCE_LEAF_SIZE && r->count < NHCA_TCE_LEAF_SIZE)
		clear_in_leaf(r, r->first, r->first + r->count);
	else
		range_empty_leaves(r);
}

/*
 * Remove the leaf of @entry from the directory, if the whole leaf lies in the gap that begins at
 * @gap_first and ends before @gap_end.
 * Return: the leaf, which the caller must free; NULL: nothing was removed.
 */
static u64 *leaf_take(unsigned int table, u64 entry, u64 gap_first, u64 gap_end)
{
	const struct nhca_tce_table *t = &nhca_tce_tables[table];
	u64 first = round_down(entry, NHCA_TCE_LEAF_SIZE);
	u64 end = min(first + NHCA_TCE_LEAF_SIZE, table_entries(t->shift));

	lockdep_assert_held(&tce_lock);
	if (first < gap_first || end > gap_end)
		return NULL;
	return xchg(&t->leaf[entry >> NHCA_TCE_LEAF_BITS], NULL);
}

/* ---- ranges ---- */

static int range_charge(struct nhca_range *r)
{
	int err = nhca_pool_charge(&nhca_host_users, r->owner.user, NHCA_POOL_PVOS,
				   r->count << r->shift);

	/* -ENOMEM: ranges use all of the PVO space, so no table has a gap */
	if (err)
		return err == -ENOMEM ? -ENOSPC : err;
	nhca_user_hold(r->owner.user);
	return 0;
}

static void range_uncharge(struct nhca_range *r)
{
	nhca_pool_uncharge(&nhca_host_users, r->owner.user, NHCA_POOL_PVOS, r->count << r->shift);
	nhca_user_put(r->owner.user);
}

int nhca_range_alloc(struct nhca_range *r, unsigned int shift, u64 count,
		     const struct nhca_owner *owner)
{
	int err;

	if (!shift_ok(shift) || !count || count > table_entries(shift))
		return -EINVAL;
	r->shift = shift;
	r->count = count;
	r->owner = *owner;
	err = range_charge(r);
	if (err)
		return err;
	r->gap = nhca_gap_alloc();
	err = r->gap ? range_reserve(r) : -ENOMEM;
	if (err) {
		kfree(r->gap);
		range_uncharge(r);
		return err;
	}
	err = range_fill(r);
	if (err)
		nhca_range_free(r);
	return err;
}

void nhca_range_free(struct nhca_range *r)
{
	struct nhca_tce_table *t = &nhca_tce_tables[r->table];
	struct tce_space *s = &spaces[r->table];
	u64 last = r->first + r->count - 1;
	u64 **dir = NULL, *gone[2] = {}, from, to;

	/* if the range was freed before, another range may have its entries */
	if (WARN_ON(!r->count))
		return;
	range_empty(r);

	mutex_lock(&tce_lock);
	if (WARN_ON(t->shift != r->shift ||
		    !nhca_gaps_give(&s->gaps, r->first, r->count, &r->gap, &from, &to))) {
		/* do not free the node: it is in the tree if a copy of @r was freed before */
		r->gap = NULL;
		goto unlock;
	}
	s->ranges--;
	s->entries -= r->count;
	/* a gap smaller than a leaf contains no whole leaf, except at the end of the table */
	if (to - from < NHCA_TCE_LEAF_SIZE && to < table_entries(r->shift))
		goto unlock;
	gone[0] = leaf_take(r->table, r->first, from, to);
	gone[1] = leaf_take(r->table, last, from, to);
	if (!s->ranges) {
		dir = t->leaf;
		WRITE_ONCE(t->leaf, NULL);
	}
	if (dir) {
		/* wait with the lock held, so that no range gets the table before table_drop() */
		nhca_live_wait();
		table_drop(r->table, dir);
	}
unlock:
	mutex_unlock(&tce_lock);
	if ((gone[0] || gone[1]) && !dir)
		nhca_live_wait();
	kvfree(gone[0]);
	kvfree(gone[1]);
	kfree(r->gap);
	r->gap = NULL;
	range_uncharge(r);
	r->count = 0;
}

void nhca_range_rekey(struct nhca_range *r)
{
	r->key = next_key(r->table, r->key);
}

void nhca_range_set(const struct nhca_range *r, u64 i, unsigned long pfn, u64 flags)
{
	u64 key = (u64)r->key << NHCA_PVO_KEY_SHIFT | (u64)r->table << NHCA_PVO_OFFSET_BITS;
	u64 at = r->first + i;

	/*
	 * A CPU that reads the entry sees all that was written to the page before.  Pairs with
	 * nhca_tce_find().
	 */
	smp_store_release(&leaf_of(r, at)[at % NHCA_TCE_LEAF_SIZE],
			  key | (u64)pfn << NHCA_TCE_PFN_SHIFT | flags);
}

void nhca_range_clear(const struct nhca_range *r, u64 i, u64 n)
{
	u64 at = r->first + i, end = at + n, next;

	for (; at < end; at = next) {
		next = min(end, round_down(at, NHCA_TCE_LEAF_SIZE) + NHCA_TCE_LEAF_SIZE);
		clear_in_leaf(r, at, next);
	}
}

/* ---- module ---- */

/* Return: number of leaves.  Other CPUs may add leaves at the same time. */
static u64 table_count_leaves(const struct nhca_tce_table *t)
{
	u64 l, leaves = 0;

	lockdep_assert_held(&tce_lock);
	for (l = 0; t->leaf && l < table_leaves(t->shift); l++)
		leaves += !!READ_ONCE(t->leaf[l]);
	return leaves;
}

void nhca_tce_usage(unsigned int table, struct nhca_tce_usage *usage)
{
	mutex_lock(&tce_lock);
	usage->shift = nhca_tce_tables[table].shift;
	usage->ranges = spaces[table].ranges;
	usage->entries = spaces[table].entries;
	usage->leaves = table_count_leaves(&nhca_tce_tables[table]);
	mutex_unlock(&tce_lock);
}

int nhca_tce_init(void)
{
	unsigned int i;

	for (i = 0; i < NHCA_TCE_TABLES; i++)
		nhca_shuffle_init(&spaces[i].keys, 1, NHCA_TCE_KEYS - 1);
	return 0;
}

void nhca_tce_exit(void)
{
	struct nhca_tce_table *t;
	unsigned int i;
	u64 l;

	mutex_lock(&tce_lock);
	for (i = 0; i < NHCA_TCE_TABLES; i++) {
		t = &nhca_tce_tables[i];
		if (!WARN_ON(t->shift))
			continue;
		/* a range was not freed; free its leaves, because no code looks them up any more */
		for (l = 0; l < table_leaves(t->shift); l++)
			kvfree(t->leaf[l]);
		table_drop(i, t->leaf);
		t->leaf = NULL;
		spaces[i].ranges = 0;
		spaces[i].entries = 0;
	}
	mutex_unlock(&tce_lock);
}
