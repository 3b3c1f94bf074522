/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Numbers that name objects (keys, QPNs), in an order that nobody can predict.
 *
 * A peer or another user sees some of the numbers that this host gives out, and must not be able to
 * compute other numbers from these.  Random numbers would do, but they would repeat: of 10^6 random
 * keys of 32 bits a hundred occur twice, and a key must not be reused soon after it was closed.  So
 * the module encrypts a counter.  Every number of the range is given out once before any repeats.
 */
#ifndef NHCA_SHUFFLE_H
#define NHCA_SHUFFLE_H

#include <linux/atomic.h>
#include <linux/siphash.h>
#include <linux/types.h>

/**
 * struct nhca_shuffle - a range of numbers in secret order
 * @key:       key of the round function, random
 * @next:      number of calls of nhca_shuffle_next() so far
 * @first:     smallest number
 * @count:     size of the range
 * @low_bits:  bits of the lower half of a block of the cipher
 * @high_bits: bits of the upper half of a block: @low_bits or one more
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
 * nhca_shuffle_init - set up the numbers @first to @last in a new random order
 * @s:     filled in
 * @first: smallest number
 * @last:  largest number, above @first
 * Context: any; before any other use of @s.
 */
void nhca_shuffle_init(struct nhca_shuffle *s, u32 first, u32 last);

/**
 * nhca_shuffle_at - compute the number at a position of the order
 * @s:     the numbers
 * @place: any position; the order repeats after @s->count numbers
 * Context: any.
 * Return: the number.
 */
u32 nhca_shuffle_at(const struct nhca_shuffle *s, u64 place);

/**
 * nhca_shuffle_place - compute the position of a number; the inverse of nhca_shuffle_at()
 * @s:      the numbers
 * @number: a number of the range, from @s->first on
 * Context: any.
 * Return: the position, 0 to @s->count - 1.
 */
u64 nhca_shuffle_place(const struct nhca_shuffle *s, u32 number);

/**
 * nhca_shuffle_next - give out the next number
 * @s: the numbers
 *
 * After @s->count calls the numbers repeat.  An object may then still have the returned number, so
 * the caller must check that the number is not in use.
 * Context: any.
 * Return: the number.
 */
static inline u32 nhca_shuffle_next(struct nhca_shuffle *s)
{
	return nhca_shuffle_at(s, (u64)atomic64_inc_return(&s->next) - 1);
}

/**
 * nhca_shuffle_upcoming - get the position of the number that nhca_shuffle_next() gives out next
 * @s: the numbers
 * Context: any.
 * Return: the position, as nhca_shuffle_place().
 */
u64 nhca_shuffle_upcoming(const struct nhca_shuffle *s);

#endif /* NHCA_SHUFFLE_H */
