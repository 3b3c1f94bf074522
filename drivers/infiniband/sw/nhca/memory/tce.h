/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Translation control entries: tables of the host that map a protocol virtual offset (PVO) to a
 * page (reference: node global TCE tables, tables I and II).
 *
 *   PVO  63..47 key   46..42 table   41..0 byte offset from the start of the table
 *   TCE  63..42 key and table, as in the PVO   41..2 page frame number   1..0 NHCA_TCE_*
 *
 * All devices of the host share the tables.  All pages of a table have one size, the class of the
 * table: PAGE_SIZE, PMD_SIZE or PUD_SIZE.  The entries of a region (on-demand: of each of its
 * chunks) are contiguous in a table: they form a range.  Each range gets a key that no range of the
 * table has got recently.  An entry of 0 maps no page.
 */
#ifndef NHCA_TCE_H
#define NHCA_TCE_H

#include <linux/bits.h>
#include <linux/mm.h>
#include <linux/types.h>

#include "../nhca.h"

struct nhca_gap;
struct nhca_user;

#define NHCA_TCE_TABLES		NHCA_MAX_TCE_TABLES
#define NHCA_PVO_OFFSET_BITS	42
#define NHCA_PVO_KEY_SHIFT	47
#define NHCA_PVO_OFFSET_MASK	GENMASK_ULL(NHCA_PVO_OFFSET_BITS - 1, 0)
#define NHCA_TCE_KEYS		BIT(17)

/* rights: the page may be read; the page may be written */
#define NHCA_TCE_READ		BIT_ULL(0)
#define NHCA_TCE_WRITE		BIT_ULL(1)
#define NHCA_TCE_PFN_SHIFT	2

/* entries in a leaf (256 KiB of memory), the unit in which a table grows */
#define NHCA_TCE_LEAF_BITS	15
#define NHCA_TCE_LEAF_SIZE	BIT(NHCA_TCE_LEAF_BITS)

/**
 * enum nhca_owner_kind - kind of the owner of a range
 * @NHCA_OWNER_PD: a protection domain: accessed by L_Keys and R_Keys
 * @NHCA_OWNER_JOB: a job: accessed by PVO, from every channel of the job
 */
enum nhca_owner_kind {
	NHCA_OWNER_PD,
	NHCA_OWNER_JOB,
};

/**
 * struct nhca_owner - owner of a range
 * @kind: kind of the owner
 * @id:   address of the struct ib_pd or struct nhca_job.  A job number would not be unique, because
 *        another network namespace may use it as well.
 * @user: record in nhca_host_users of the user who is charged for the range; NULL: nobody.  Each
 *        range holds a reference to the record.
 */
struct nhca_owner {
	enum nhca_owner_kind kind;
	u64 id;
	struct nhca_user *user;
};

/**
 * struct nhca_range - contiguous entries of one table
 * @table: 0 to NHCA_TCE_TABLES - 1
 * @shift: page size class: PAGE_SHIFT, PMD_SHIFT or PUD_SHIFT
 * @key:   key of the range in PVOs and TCEs, 17 bits
 * @first: index of the first entry
 * @count: number of entries
 * @owner: owner of the range
 * @gap:   node for the gap that the range may leave, so that nhca_range_free() allocates no memory
 */
struct nhca_range {
	u8 table;
	u8 shift;
	u32 key;
	u64 first;
	u64 count;
	struct nhca_owner owner;
	struct nhca_gap *gap;
};

/**
 * struct nhca_tce_table - the part of a table that translation reads
 * @shift: page size class, 0 if the table is not in use; constant while a live section can find
 *         @leaf
 * @leaf:  directory: pointers to leaves with NHCA_TCE_LEAF_SIZE entries each; a pointer may be NULL
 *         where no range is, and is constant while a range uses the leaf
 */
struct nhca_tce_table {
	u8 shift;
	u64 **leaf;
};

extern struct nhca_tce_table nhca_tce_tables[NHCA_TCE_TABLES];

/**
 * nhca_range_alloc - reserve @count contiguous entries
 * @r:     filled in.  Its entries are 0.  Its key is the one that no range of the table has got for
 *         the longest time.
 * @shift: page size class
 * @count: number of entries, 1 or more
 * @owner: owner of the range
 *
 * The range begins at the first gap that has at least @count entries, in the first table of the
 * class that has such a gap.  If no table of the class has such a gap, the class gets another
 * table.  The search of a table takes a time that is logarithmic in the number of its gaps.
 *
 * The user is charged for the space of the range.  If the class gets a table for the range, the
 * user is also charged for this table, until the last range in the table is freed, even if that is
 * a range of another user.  So one user cannot use up all tables, even with small ranges that lie
 * far apart.
 * Context: process, sleeps.
 * Return: 0; -EINVAL: no such class, or @count is 0 or larger than a table; -ENOSPC: no table of
 * the class has such a gap, and all tables are in use; -EDQUOT: the user has its share of the PVO
 * space or of the tables; -ENOMEM: no memory, or the entries would need more than half of the
 * host's memory.
 */
int nhca_range_alloc(struct nhca_range *r, unsigned int shift, u64 count,
		     const struct nhca_owner *owner);

/**
 * nhca_range_free - clear and release a range, and free the leaves that no other range uses
 * @r: the range; its count is 0 afterwards
 *
 * The caller has closed every key and PVO that leads to the range, and has waited for live
 * sections.  The function allocates no memory.
 * Context: process, sleeps.
 */
void nhca_range_free(struct nhca_range *r);

/**
 * nhca_range_rekey - give an empty range another key, so that no earlier PVO matches
 * @r: the range; the caller owns it and has cleared its entries
 * Context: any.
 */
void nhca_range_rekey(struct nhca_range *r);

/**
 * nhca_range_set - map entry @i to a page
 * @r:     the range; the caller owns it and serializes writes to it
 * @i:     index in the range
 * @pfn:   page frame number, in units of the class's page size
 * @flags: NHCA_TCE_READ and NHCA_TCE_WRITE
 * Context: any.
 */
void nhca_range_set(const struct nhca_range *r, u64 i, unsigned long pfn, u64 flags);

/**
 * nhca_range_clear - clear the entries @i to @i + @n - 1
 * @r: the range; the caller owns it and serializes writes to it
 * @i: index in the range
 * @n: number of entries
 *
 * Live sections may still use the pages; nhca_live_wait() waits for them.
 * Context: any.
 */
void nhca_range_clear(const struct nhca_range *r, u64 i, u64 n);

/**
 * nhca_range_pvo - compute the PVO of the first byte of a range
 * @r: the range
 * Context: any.
 * Return: the PVO.
 */
static inline u64 nhca_range_pvo(const struct nhca_range *r)
{
	return (u64)r->key << NHCA_PVO_KEY_SHIFT | (u64)r->table << NHCA_PVO_OFFSET_BITS |
	       r->first << r->shift;
}

/**
 * nhca_pvo_name - get key and table of a PVO, without its offset
 * @pvo: the PVO
 *
 * All TCEs of the range that contains @pvo have the same upper 22 bits.
 * Context: any.
 * Return: the upper 22 bits.
 */
static inline u32 nhca_pvo_name(u64 pvo)
{
	return pvo >> NHCA_PVO_OFFSET_BITS;
}

/**
 * nhca_pvo_add - compute the PVO of a later byte
 * @pvo:   a PVO
 * @bytes: distance of the later byte
 *
 * Peers also compute PVOs in this way (reference: PVO format).
 * Context: any.
 * Return: the PVO, or 0 if the later byte is past the end of the table; 0 is no valid PVO.
 */
static inline u64 nhca_pvo_add(u64 pvo, u64 bytes)
{
	if (bytes > NHCA_PVO_OFFSET_MASK - (pvo & NHCA_PVO_OFFSET_MASK))
		return 0;
	return pvo + bytes;
}

/**
 * nhca_tce_entry - find the entry of a PVO, without comparing the key of the entry
 * @pvo:   the PVO
 * @shift: page size class of the table, filled in
 * Context: live section.
 * Return: the entry, or NULL if the PVO leads to no leaf.  The entries of the next pages follow
 * this entry up to the end of the leaf.
 */
static inline const u64 *nhca_tce_entry(u64 pvo, unsigned int *shift)
{
	const struct nhca_tce_table *t =
		&nhca_tce_tables[(pvo >> NHCA_PVO_OFFSET_BITS) % NHCA_TCE_TABLES];
	const u64 *leaf;
	u64 **dir, i;

	*shift = READ_ONCE(t->shift);
	i = (pvo & NHCA_PVO_OFFSET_MASK) >> *shift;
	dir = READ_ONCE(t->leaf);
	if (unlikely(!dir))
		return NULL;
	leaf = READ_ONCE(dir[i >> NHCA_TCE_LEAF_BITS]);
	return likely(leaf) ? &leaf[i % NHCA_TCE_LEAF_SIZE] : NULL;
}

/**
 * nhca_tce_find - read the entry of a PVO, and compare the key of the entry
 * @pvo:   the PVO
 * @shift: page size class of the table, filled in
 * Context: live section.
 * Return: the entry, or 0 if there is none or its key differs.
 */
static inline u64 nhca_tce_find(u64 pvo, unsigned int *shift)
{
	const u64 *entry = nhca_tce_entry(pvo, shift);
	u64 tce;

	if (unlikely(!entry))
		return 0;
	tce = READ_ONCE(*entry);
	return (tce ^ pvo) >> NHCA_PVO_OFFSET_BITS ? 0 : tce;
}

/**
 * nhca_tce_all - check that the entries of all pages of some bytes have the PVO's key and @flags
 * @pvo:   the first byte
 * @len:   bytes, at least 1, all in one range
 * @flags: NHCA_TCE_READ, NHCA_TCE_WRITE
 * Context: live section.
 * Return: true if all entries have this key and these rights.
 */
static inline bool nhca_tce_all(u64 pvo, u64 len, u64 flags)
{
	const struct nhca_tce_table *t =
		&nhca_tce_tables[(pvo >> NHCA_PVO_OFFSET_BITS) % NHCA_TCE_TABLES];
	unsigned int shift = READ_ONCE(t->shift);
	u64 at = pvo & NHCA_PVO_OFFSET_MASK, last = (at + len - 1) >> shift;
	u64 want = (pvo & ~NHCA_PVO_OFFSET_MASK) | flags, wrong = 0;
	u64 i = at >> shift, end;
	const u64 *leaf, *entry;
	u64 **dir;

	dir = READ_ONCE(t->leaf);
	if (unlikely(!dir))
		return false;
	while (i <= last) {
		leaf = READ_ONCE(dir[i >> NHCA_TCE_LEAF_BITS]);
		if (unlikely(!leaf))
			return false;
		end = min(last, i | (NHCA_TCE_LEAF_SIZE - 1)) + 1;
		entry = &leaf[i % NHCA_TCE_LEAF_SIZE];
		for (; i < end; i++)
			wrong |= READ_ONCE(*entry++) ^ want;
	}
	/* ignore the page frame numbers, and rights that are not in @flags */
	return !(wrong & (~NHCA_PVO_OFFSET_MASK | flags));
}

/**
 * struct nhca_tce_usage - use of a table, for debugfs and tests
 * @shift:   page size class, 0 if the table is not in use
 * @ranges:  number of ranges
 * @entries: number of entries in ranges
 * @leaves:  number of leaves allocated, with NHCA_TCE_LEAF_SIZE entries each
 */
struct nhca_tce_usage {
	unsigned int shift;
	u64 ranges;
	u64 entries;
	u64 leaves;
};

/**
 * nhca_tce_usage - query the use of a table
 * @table: 0 to NHCA_TCE_TABLES - 1
 * @usage: filled in
 * Context: process, sleeps.
 */
void nhca_tce_usage(unsigned int table, struct nhca_tce_usage *usage);

/**
 * nhca_tce_init - draw the secret order of keys when the module is loaded
 * Context: process.
 * Return: 0.
 */
int nhca_tce_init(void);

/**
 * nhca_tce_exit - free the tables when the module is unloaded; warns if a range was not freed
 * Context: process, sleeps.
 */
void nhca_tce_exit(void);

#endif /* NHCA_TCE_H */
