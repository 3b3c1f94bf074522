/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Numbers that name objects (keys, QPNs), in an order that nobody can predict.
 *
 * A peer or another user sees some of the numbers that this host gives out.  From those it must
 * not learn any other.  Random numbers would do that, but would repeat: of 10^6 random keys of 32
 * bits a hundred come twice, and a key must not come back soon after it was closed.  So a counter
 * is encrypted: all numbers of a range come in turn, each once, before any comes again.
 */
#ifndef NHCA_SHUFFLE_H
#define NHCA_SHUFFLE_H

#include <linux/atomic.h>
#include <linux/siphash.h>
#include <linux/types.h>

/**
 * struct nhca_shuffle - a range of numbers in secret order
 * @key:   of the round function; random, drawn by nhca_shuffle_init()
 * @next:  numbers that were given out
 * @first: smallest number
 * @count: how many numbers there are
 * @low_bits: width of the lower half of the block cipher
 * @high_bits: width of its upper half: @low_bits or one more
 */
struct nhca_shuffle {
	siphash_key_t key;
	atomic64_t next;
	u32 first;
	u64 count;
	u8 low_bits;
	u8 high_bits;
};

/**
 * nhca_shuffle_init - numbers @first to @last, in a new random order
 * @s:     filled in
 * @first: smallest number
 * @last:  largest number, above @first
 * Context: any; before anybody uses @s.
 */
void nhca_shuffle_init(struct nhca_shuffle *s, u32 first, u32 last);

/**
 * nhca_shuffle_at - the number at a place in the order
 * @place: any; the order repeats after @s->count numbers
 * Context: any.
 * Return: the number.
 */
u32 nhca_shuffle_at(const struct nhca_shuffle *s, u64 place);

/**
 * nhca_shuffle_place - where in the order a number is; the inverse of nhca_shuffle_at()
 * @number: from @s->first on, of the range
 * Context: any.
 * Return: 0 to @s->count - 1.
 */
u64 nhca_shuffle_place(const struct nhca_shuffle *s, u32 number);

/**
 * nhca_shuffle_next - take the next number
 * Whether an object still has that number, from the last time that it was given out, is for the
 * caller to find out.
 * Context: any.
 * Return: the number.
 */
static inline u32 nhca_shuffle_next(struct nhca_shuffle *s)
{
	return nhca_shuffle_at(s, (u64)atomic64_inc_return(&s->next) - 1);
}

/**
 * nhca_shuffle_upcoming - place of the number that nhca_shuffle_next() gives next
 * Context: any.
 * Return: as nhca_shuffle_place().
 */
u64 nhca_shuffle_upcoming(const struct nhca_shuffle *s);

#endif /* NHCA_SHUFFLE_H */
