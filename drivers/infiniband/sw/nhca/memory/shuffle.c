// SPDX-License-Identifier: GPL-2.0
/*
 * A small block cipher: a Feistel network with SipHash as its round function.  NIST SP 800-38G
 * builds format-preserving encryption in the same way (FF1, 10 rounds).  The cipher encrypts an
 * index in the range of numbers to an index in this range.  A result that is too large for an index
 * is encrypted again until it is an index ("cycle walking").  The cipher has less than twice as
 * many blocks as the range has numbers, so a number takes less than two encryptions on average.
 */
#include <linux/bitops.h>
#include <linux/math64.h>
#include <linux/random.h>

#include "shuffle.h"

#define SHUFFLE_ROUNDS	10

void nhca_shuffle_init(struct nhca_shuffle *s, u32 first, u32 last)
{
	unsigned int bits;

	get_random_bytes(&s->key, sizeof(s->key));
	atomic64_set(&s->next, 0);
	s->first = first;
	s->count = (u64)last - first + 1;
	bits = fls64(s->count - 1);
	s->low_bits = bits / 2;
	s->high_bits = bits - s->low_bits;
}

/* @half has at most 16 bits, so that @round fits into the bits above. */
static u32 shuffle_round(const struct nhca_shuffle *s, u32 round, u32 half)
{
	return siphash_1u32(round << 16 | half, &s->key);
}

static u32 shuffle_encrypt(const struct nhca_shuffle *s, u32 block)
{
	u32 low_mask = BIT(s->low_bits) - 1, high_mask = BIT(s->high_bits) - 1;
	u32 low = block & low_mask, high = block >> s->low_bits;
	u32 round;

	for (round = 0; round < SHUFFLE_ROUNDS; round += 2) {
		high ^= shuffle_round(s, round, low) & high_mask;
		low ^= shuffle_round(s, round + 1, high) & low_mask;
	}
	return high << s->low_bits | low;
}

static u32 shuffle_decrypt(const struct nhca_shuffle *s, u32 block)
{
	u32 low_mask = BIT(s->low_bits) - 1, high_mask = BIT(s->high_bits) - 1;
	u32 low = block & low_mask, high = block >> s->low_bits;
	u32 round;

	for (round = SHUFFLE_ROUNDS; round; round -= 2) {
		low ^= shuffle_round(s, round - 1, high) & low_mask;
		high ^= shuffle_round(s, round - 2, low) & high_mask;
	}
	return high << s->low_bits | low;
}

u32 nhca_shuffle_at(const struct nhca_shuffle *s, u64 place)
{
	u64 in;
	u32 block;

	div64_u64_rem(place, s->count, &in);
	block = in;
	do {
		block = shuffle_encrypt(s, block);
	} while (block >= s->count);
	return s->first + block;
}

u64 nhca_shuffle_place(const struct nhca_shuffle *s, u32 number)
{
	u32 block = number - s->first;

	do {
		block = shuffle_decrypt(s, block);
	} while (block >= s->count);
	return block;
}

u64 nhca_shuffle_upcoming(const struct nhca_shuffle *s)
{
	u64 in;

	div64_u64_rem((u64)atomic64_read(&s->next), s->count, &in);
	return in;
}
