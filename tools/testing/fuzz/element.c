// SPDX-License-Identifier: GPL-2.0
/*
 * Compares the operations of accumulates (wire/element.c) with the arithmetic of this host: random
 * pairs for each operation and type, and all pairs of special values.  The host must be little
 * endian, and its FPU must round to nearest, as that of x86-64 does with SSE2.
 * usage: element PAIRS
 */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "element.h"

#define BATCH	512	/* pairs that one call combines */
#define GUARD	0xa5	/* bytes around the elements */

static const char * const op_names[] = { "", "sum", "min", "max", "prod", "or", "and", "xor" };
static const char * const type_names[] = { "", "i32", "i64", "u32", "u64", "f32", "f64", "bf16" };

static u64 rnd_state = 0x9e3779b97f4a7c15ull;

static u64 rnd(void)
{
	u64 z = rnd_state += 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

/* ---- the results that are expected ---- */

static float f32_of(u32 bits)
{
	float f;

	memcpy(&f, &bits, sizeof(f));
	return f;
}

static u32 bits_of32(float f)
{
	u32 bits;

	memcpy(&bits, &f, sizeof(bits));
	return bits;
}

static double f64_of(u64 bits)
{
	double f;

	memcpy(&f, &bits, sizeof(f));
	return f;
}

static u64 bits_of64(double f)
{
	u64 bits;

	memcpy(&bits, &f, sizeof(bits));
	return bits;
}

/* minimumNumber and maximumNumber; fmin() may return either zero */
static double pick(double a, double b, int max)
{
	if (isnan(a) || isnan(b))
		return isnan(a) ? b : a;
	if (a == b)
		return !!signbit(a) == max ? b : a;
	return (a < b) == max ? b : a;
}

static double want_f64(u8 op, double a, double b)
{
	volatile double x = a, y = b;

	if (op == NHCA_ELEM_SUM)
		return x + y;
	return op == NHCA_ELEM_PROD ? x * y : pick(a, b, op == NHCA_ELEM_MAX);
}

static float want_f32(u8 op, float a, float b)
{
	volatile float x = a, y = b;

	if (op == NHCA_ELEM_SUM)
		return x + y;
	return op == NHCA_ELEM_PROD ? x * y : (float)pick(a, b, op == NHCA_ELEM_MAX);
}

/* Return: the bf16 nearest to @f; if two are equally near, the one whose last bit is 0. */
static u16 nearest_bf16(float f)
{
	u32 low = bits_of32(f) & 0xffff0000, high = low + 0x10000;
	double a, b, x = f;

	if (isnan(f) || isinf(f))
		return low >> 16;
	a = f32_of(low);
	/* after the largest bf16, the next value would be 2^128 */
	b = isinf(f32_of(high)) ? copysign(0x1p128, x) : f32_of(high);
	if (fabs(x - a) == fabs(b - x))
		return (low >> 16 & 1 ? high : low) >> 16;
	return (fabs(x - a) < fabs(b - x) ? low : high) >> 16;
}

static u64 want_int(u8 op, u8 type, u64 a, u64 b)
{
	int less;

	switch (type) {
	case NHCA_ELEM_I32:
		less = (s32)a < (s32)b;
		break;
	case NHCA_ELEM_I64:
		less = (s64)a < (s64)b;
		break;
	default:
		less = a < b;
		break;
	}
	switch (op) {
	case NHCA_ELEM_SUM:
		return a + b;
	case NHCA_ELEM_MIN:
		return less ? a : b;
	case NHCA_ELEM_MAX:
		return less ? b : a;
	case NHCA_ELEM_PROD:
		return a * b;
	case NHCA_ELEM_OR:
		return a | b;
	case NHCA_ELEM_AND:
		return a & b;
	default:
		return a ^ b;
	}
}

/* Return: true if @got is right.  If a NaN is expected, any quiet NaN is right. */
static int right(u8 op, u8 type, u64 a, u64 b, u64 got)
{
	float f;
	double d;

	switch (type) {
	case NHCA_ELEM_F32:
		f = want_f32(op, f32_of(a), f32_of(b));
		return isnan(f) ? isnan(f32_of(got)) && got & 1u << 22 : got == bits_of32(f);
	case NHCA_ELEM_F64:
		d = want_f64(op, f64_of(a), f64_of(b));
		return isnan(d) ? isnan(f64_of(got)) && got & 1ull << 51 : got == bits_of64(d);
	case NHCA_ELEM_BF16:
		f = want_f32(op, f32_of(a << 16), f32_of(b << 16));
		return isnan(f) ? isnan(f32_of(got << 16)) && got & 1u << 6 :
				  got == nearest_bf16(f);
	case NHCA_ELEM_I32:
	case NHCA_ELEM_U32:
		return got == (u32)want_int(op, type, a, b);
	default:
		return got == want_int(op, type, a, b);
	}
}

/* ---- the pairs ---- */

static const u64 specials64[] = {
	0, 1, 2, 3, 0x7ff, 0x000fffffffffffff, 0x000ffffffffffffe, 0x0010000000000000,
	0x0010000000000001, 0x3ff0000000000000, 0x3ff0000000000001, 0x3fefffffffffffff,
	0x3ca0000000000000, 0x3c90000000000000, 0x3cb0000000000000, 0x4330000000000001,
	0x7fe0000000000000, 0x7fefffffffffffff, 0x7feffffffffffffe, 0x7ff0000000000000,
	0x7ff0000000000001, 0x7ff7ffffffffffff, 0x7ff8000000000000, 0x7fffffffffffffff,
	0x1e60000000000000, 0x2000000000000001, 0x5fe0000000000000, 0x0340000000000000,
};

static const u32 specials32[] = {
	0, 1, 2, 3, 0x7ff, 0x007fffff, 0x007ffffe, 0x00800000, 0x00800001, 0x3f800000,
	0x3f800001, 0x3f7fffff, 0x33800000, 0x33000000, 0x34000000, 0x4b000001, 0x7f000000,
	0x7f7fffff, 0x7f7ffffe, 0x7f800000, 0x7f800001, 0x7fbfffff, 0x7fc00000, 0x7fffffff,
	0x1fc00000, 0x20000001, 0x5f000000, 0x0c800000,
};

static const u16 specials16[] = {
	0, 1, 2, 3, 0x7f, 0x7e, 0x80, 0x81, 0x3f80, 0x3f81, 0x3f7f, 0x3b80, 0x3b00, 0x3c00,
	0x4301, 0x7f00, 0x7f7f, 0x7f7e, 0x7f80, 0x7f81, 0x7fbf, 0x7fc0, 0x7fff, 0x1fc0, 0x2001,
	0x5f00, 0x0c80, 0x0040,
};

#define SPECIALS	(2 * sizeof(specials32) / sizeof(specials32[0]))
_Static_assert(sizeof(specials64) / sizeof(specials64[0]) * 2 == SPECIALS, "specials");
_Static_assert(sizeof(specials16) / sizeof(specials16[0]) * 2 == SPECIALS, "specials");

static u64 special(unsigned int size, unsigned int i)
{
	u64 sign = i % 2 ? 1ull << (8 * size - 1) : 0;

	i /= 2;
	return sign | (size == 8 ? specials64[i] : size == 4 ? specials32[i] : specials16[i]);
}

static u64 value(unsigned int size, u64 other)
{
	const unsigned int bits = 8 * size, mant = size == 8 ? 52 : size == 4 ? 23 : 7;
	u64 all = size == 8 ? ~0ull : (1ull << bits) - 1, r = rnd(), x = r >> 8;

	switch (r % 8) {
	case 0:
		return special(size, x % SPECIALS);
	case 1: /* an exponent near that of the other operand, so that sums cancel and round */
		return ((other ^ (rnd() & ((1ull << mant) - 1))) +
			((x % (2 * mant + 8) - mant) << mant)) & all;
	case 2: /* few bits, so that results are half way between two numbers */
		return (rnd() & all) & ~((1ull << x % mant) - 1);
	case 3: /* the negative of the other operand, or near it */
		return ((other ^ 1ull << (bits - 1)) + x % 5 - 2) & all;
	case 4: /* subnormal, or small */
		return rnd() & (1ull << (bits - 1) | ((2ull << mant) - 1));
	case 5: /* products at the ends of the range */
		return (rnd() & ((1ull << mant) - 1)) |
		       ((((size == 8 ? 1023 : 127) * (x % 4) - (other >> mant) + rnd() % 64 - 32) &
			 (size == 8 ? 0x7ff : 0xff)) << mant);
	default:
		return rnd() & all;
	}
}

/* ---- comparison ---- */

static void put(u8 *p, unsigned int size, u64 x)
{
	memcpy(p, &x, size);
}

static u64 get(const u8 *p, unsigned int size)
{
	u64 x = 0;

	memcpy(&x, p, size);
	return x;
}

/* Combine @n pairs with one call.  The elements of the packet have any alignment. */
static int batch(u8 op, u8 type, unsigned int size, unsigned int n, const u64 *a, const u64 *b)
{
	static u64 memory[BATCH + 2];
	static u8 packet[BATCH * 8 + 8];
	u8 *to = (u8 *)(memory + 1), *from = packet + rnd() % 8;
	unsigned int i;

	memset(memory, GUARD, sizeof(memory));
	for (i = 0; i < n; i++) {
		put(to + i * size, size, a[i]);
		put(from + i * size, size, b[i]);
	}
	nhca_element_combine(op, type, to, from, n * size);
	for (i = 0; i < n; i++) {
		if (right(op, type, a[i], b[i], get(to + i * size, size)))
			continue;
		printf("BROKEN: %s of %s: %#llx and %#llx: %#llx\n", op_names[op], type_names[type],
		       (unsigned long long)a[i], (unsigned long long)b[i],
		       (unsigned long long)get(to + i * size, size));
		return 0;
	}
	if (to[-1] != GUARD || to[n * size] != GUARD) {
		printf("BROKEN: %s of %s writes beside the elements\n", op_names[op],
		       type_names[type]);
		return 0;
	}
	return 1;
}

static int compare(u8 op, u8 type, unsigned long pairs)
{
	unsigned int size = nhca_element_size(op, type), i, j;
	static u64 a[BATCH], b[BATCH];
	unsigned long done;

	for (i = 0; i < SPECIALS; i++) {
		for (j = 0; j < SPECIALS; j++) {
			a[j] = special(size, i);
			b[j] = special(size, j);
		}
		if (!batch(op, type, size, SPECIALS, a, b))
			return 0;
	}
	for (done = 0; done < pairs; done += BATCH) {
		for (i = 0; i < BATCH; i++) {
			a[i] = value(size, rnd());
			b[i] = value(size, a[i]);
		}
		if (!batch(op, type, size, BATCH, a, b))
			return 0;
	}
	return 1;
}

int main(int argc, char **argv)
{
	unsigned long pairs = argc > 1 ? strtoul(argv[1], NULL, 0) : 100000;
	unsigned int op, type, good = 0, kinds = 0;

	for (op = 0; op < 256; op++)
		for (type = 0; type < 256; type++) {
			if (!nhca_element_size(op, type))
				continue;
			kinds++;
			good += compare(op, type, pairs);
		}
	/* 7 operations of 4 types of integers, 4 operations of 3 other types */
	if (kinds != 7 * 4 + 4 * 3) {
		printf("BROKEN: %u operations and types\n", kinds);
		return 1;
	}
	printf("%u of %u operations and types agree with the host for %lu pairs each\n", good, kinds,
	       pairs);
	return good != kinds;
}
