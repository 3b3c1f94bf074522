/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Translation control entries: node-global tables that say which page lies behind
 * which protocol virtual offset (reference: node global TCE tables, tables I and II).
 *
 *   PVO  63..47 key   46..42 table   41..0 offset in bytes from the table's begin
 *   TCE  63..42 key and table, as in the PVO   41..2 page frame number   1..0 NHCA_TCE_*
 *
 * All devices of the host share the tables.  A table holds pages of one size class.
 * The pages of a region lie together in a table, in a range; a range has its key,
 * which is another each time.  An entry that is 0 translates to nothing.
 */
#ifndef NHCA_TCE_H
#define NHCA_TCE_H

#include <linux/bits.h>
#include <linux/mm.h>
#include <linux/types.h>

#define NHCA_TCE_TABLES		32
#define NHCA_PVO_OFFSET_BITS	42
#define NHCA_PVO_KEY_SHIFT	47
#define NHCA_PVO_OFFSET_MASK	GENMASK_ULL(NHCA_PVO_OFFSET_BITS - 1, 0)
#define NHCA_TCE_KEYS		BIT(17)

/* may be read; may be written, too */
#define NHCA_TCE_READ		BIT_ULL(0)
#define NHCA_TCE_WRITE		BIT_ULL(1)
#define NHCA_TCE_PFN_SHIFT	2

/* entries in a leaf: what a table grows by; 256 KiB of entries */
#define NHCA_TCE_LEAF_BITS	15
#define NHCA_TCE_LEAF_SIZE	BIT(NHCA_TCE_LEAF_BITS)

/**
 * enum nhca_owner_kind - who a range belongs to
 * @NHCA_OWNER_PD:  a protection domain: reached through L_Keys and R_Keys
 * @NHCA_OWNER_JOB: a job: reached by PVO, from every channel of the job
 */
enum nhca_owner_kind {
	NHCA_OWNER_PD,
	NHCA_OWNER_JOB,
};

/**
 * struct nhca_owner - owner of a range
 * @kind: which of the two
 * @id:   the address of the struct ib_pd, or of the struct nhca_job: of the object, because
 *        a job id is a number that another network namespace may have, too
 */
struct nhca_owner {
	enum nhca_owner_kind kind;
	u64 id;
};

/**
 * struct nhca_range - contiguous entries of one table
 * @table: 0 to NHCA_TCE_TABLES - 1
 * @shift: page size class: PAGE_SHIFT, PMD_SHIFT or PUD_SHIFT
 * @key:   17 bits
 * @first, @count: entries
 * @owner: whose
 */
struct nhca_range {
	u8 table;
	u8 shift;
	u32 key;
	u64 first;
	u64 count;
	struct nhca_owner owner;
};

/**
 * struct nhca_tce_table - what translation reads of a table
 * @shift: page size class, 0 if the table is nobody's; constant while a section can
 *         find @leaf
 * @leaf:  directory of leaves, each NHCA_TCE_LEAF_SIZE entries; NULL where no range
 *         is; constant while a range lies there
 */
struct nhca_tce_table {
	u8 shift;
	u64 **leaf;
};

extern struct nhca_tce_table nhca_tce_tables[NHCA_TCE_TABLES];

/**
 * nhca_range_alloc - reserve the first @count entries that are free together
 * @r:     filled in; its entries are 0, its key is one that has not been used for long
 * @shift: page size class
 * @count: 1 or more
 * First fit, in the first table of the class that has room; a class takes another
 * table when its tables are full.  Logarithmic in the number of ranges.
 * Context: process, sleeps.
 * Return: 0; -EINVAL: no such class or more than a table holds; -ENOSPC: all
 * tables are full; -ENOMEM, also if its entries would need half of all memory.
 */
int nhca_range_alloc(struct nhca_range *r, unsigned int shift, u64 count,
		     const struct nhca_owner *owner);

/**
 * nhca_range_free - clear the entries and give the range back, and memory that nobody
 * shares with it
 * @r: its count is 0 afterwards
 * No section may be using it: the caller has closed what leads here and waited.
 * Context: process, sleeps.
 */
void nhca_range_free(struct nhca_range *r);

/**
 * nhca_range_rekey - give an empty range another key, so that no PVO of before fits
 * Context: any that can take a spinlock; the caller owns the range and has cleared it.
 */
void nhca_range_rekey(struct nhca_range *r);

/**
 * nhca_range_set - entry @i translates to page frame @pfn (of the class's size)
 * @flags: NHCA_TCE_READ and NHCA_TCE_WRITE
 * Context: any; the caller owns the range and serialises writers of it.
 */
void nhca_range_set(const struct nhca_range *r, u64 i, unsigned long pfn, u64 flags);

/**
 * nhca_range_clear - entries @i to @i + @n - 1 translate to nothing; who must know that
 * nobody uses them any more waits with nhca_live_wait()
 * Context: as nhca_range_set().
 */
void nhca_range_clear(const struct nhca_range *r, u64 i, u64 n);

/* the PVO of the range's first byte */
static inline u64 nhca_range_pvo(const struct nhca_range *r)
{
	return (u64)r->key << NHCA_PVO_KEY_SHIFT | (u64)r->table << NHCA_PVO_OFFSET_BITS |
	       r->first << r->shift;
}

/*
 * What a PVO names beside the place: key and table.  Of all bits but the offset's, so that it is
 * what an entry of the range has in them, too.
 */
static inline u32 nhca_pvo_name(u64 pvo)
{
	return pvo >> NHCA_PVO_OFFSET_BITS;
}

/**
 * nhca_pvo_add - the PVO of the byte @bytes further on
 * Peers reckon with PVOs, too: that is what they are for (reference: PVO format).
 * Return: the PVO, or 0, which is none, if the table ends before.
 */
static inline u64 nhca_pvo_add(u64 pvo, u64 bytes)
{
	if (bytes > NHCA_PVO_OFFSET_MASK - (pvo & NHCA_PVO_OFFSET_MASK))
		return 0;
	return pvo + bytes;
}

/**
 * nhca_tce_entry - where the entry of a PVO is, whatever its key
 * Context: live section.
 * Return: its place, behind which are those of the pages behind it as far as the leaf goes; NULL
 * if the PVO leads to no leaf.
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
 * nhca_tce_find - the entry behind a PVO: an index, a compare
 * Context: live section.
 * Return: the entry, or 0 if the PVO leads to nothing or its key is another.
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
 * nhca_tce_all - do the entries of all these bytes have the PVO's key and these flags?
 * @pvo, @len: bytes of one range, at least one
 * @flags: NHCA_TCE_READ, NHCA_TCE_WRITE
 * Context: live section.
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
	/* what else an entry has is its own */
	return !(wrong & (~NHCA_PVO_OFFSET_MASK | flags));
}

/**
 * struct nhca_tce_usage - for debugfs and tests
 * @shift:   page size class, 0 if the table is not in use
 * @ranges, @entries: reserved
 * @leaves:  allocated, each NHCA_TCE_LEAF_SIZE entries
 */
struct nhca_tce_usage {
	unsigned int shift;
	u64 ranges;
	u64 entries;
	u64 leaves;
};

/* Context: process. */
void nhca_tce_usage(unsigned int table, struct nhca_tce_usage *usage);

/* module load: random first key; unload: every range has been given back */
int nhca_tce_init(void);
void nhca_tce_exit(void);

#endif /* NHCA_TCE_H */
