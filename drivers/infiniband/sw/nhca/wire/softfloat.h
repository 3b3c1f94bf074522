/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Floating point without the FPU, for element.c: sum and product of binary32 and binary64 (IEEE
 * 754), rounded to nearest, ties to even; minimum and maximum.  The functions use only integers, so
 * they run in any context.  tools/testing/fuzz compares them with the FPU of the host.
 */
#ifndef NHCA_WIRE_SOFTFLOAT_H
#define NHCA_WIRE_SOFTFLOAT_H

#include <linux/math64.h>
#include <linux/types.h>

/**
 * struct nhca_float - a binary format
 * @mant: bits of the fraction: 23 (binary32) or 52 (binary64)
 * @exp:  bits of the exponent: 8 or 11
 */
struct nhca_float {
	unsigned int mant;
	unsigned int exp;
};

/* All functions are inlined, so that the compiler can replace the members by constants. */
#define NHCA_BINARY32	((struct nhca_float) { 23, 8 })
#define NHCA_BINARY64	((struct nhca_float) { 52, 11 })

/* bits below the last bit of a result that decide how it is rounded: guard, round, sticky */
#define NHCA_FLOAT_EXTRA	3

static __always_inline u64 nhca_float_sign(const struct nhca_float f)
{
	return 1ull << (f.mant + f.exp);
}

/* Return: infinity, which is also the mask of the exponent. */
static __always_inline u64 nhca_float_inf(const struct nhca_float f)
{
	return ((1ull << f.exp) - 1) << f.mant;
}

static __always_inline bool nhca_float_is_nan(const struct nhca_float f, u64 a)
{
	return (a & (nhca_float_sign(f) - 1)) > nhca_float_inf(f);
}

/* Return: the quiet NaN that an operation with NaN @a returns. */
static __always_inline u64 nhca_float_quiet(const struct nhca_float f, u64 a)
{
	return a | 1ull << (f.mant - 1);
}

/* Return: the NaN of an operation without a result, such as infinity less infinity. */
static __always_inline u64 nhca_float_invalid(const struct nhca_float f)
{
	return nhca_float_quiet(f, nhca_float_inf(f));
}

/* Shift right.  The last bit of the result is 1 if a bit that is 1 was shifted out. */
static __always_inline u64 nhca_float_jam(u64 a, unsigned int n)
{
	if (n > 63)
		return a != 0;
	return a >> n | ((a & ((1ull << n) - 1)) != 0);
}

/* Return: the exponent; for subnormal numbers, the exponent of the smallest normal number. */
static __always_inline int nhca_float_exp(const struct nhca_float f, u64 a)
{
	int exp = (a & nhca_float_inf(f)) >> f.mant;

	return exp ?: 1;
}

/* Return: the significand, with the bit that normal numbers do not store. */
static __always_inline u64 nhca_float_sig(const struct nhca_float f, u64 a)
{
	u64 sig = a & ((1ull << f.mant) - 1);

	return a & nhca_float_inf(f) ? sig | 1ull << f.mant : sig;
}

/*
 * Round, and build a number.
 * @sign: its sign
 * @exp:  its exponent, at least 1
 * @sig:  its significand, with NHCA_FLOAT_EXTRA more bits; less than a normal one only if @exp is 1
 */
static __always_inline u64 nhca_float_round(const struct nhca_float f, u64 sign, int exp, u64 sig)
{
	u64 rest = sig & ((1 << NHCA_FLOAT_EXTRA) - 1), half = 1 << (NHCA_FLOAT_EXTRA - 1), a;

	sig >>= NHCA_FLOAT_EXTRA;
	if (rest > half || (rest == half && sig & 1))
		sig++;
	/* the highest bit of the significand increments the exponent, also after a carry */
	if (exp < (1 << f.exp)) {
		a = ((u64)(exp - 1) << f.mant) + sig;
		if (a < nhca_float_inf(f))
			return sign | a;
	}
	return sign | nhca_float_inf(f);
}

/* Return: the sum of two numbers. */
static __always_inline u64 nhca_float_add(const struct nhca_float f, u64 a, u64 b)
{
	u64 sign, low = nhca_float_sign(f) - 1, x, y, swap;
	int exp, n;

	if ((a & low) < (b & low)) {
		swap = a;
		a = b;
		b = swap;
	}
	/* now |a| is not less than |b|; if an operand is a NaN, a is one */
	if ((a & low) >= nhca_float_inf(f)) {
		if (nhca_float_is_nan(f, a))
			return nhca_float_quiet(f, a);
		return b == (a ^ nhca_float_sign(f)) ? nhca_float_invalid(f) : a;
	}
	sign = a & ~low;
	exp = nhca_float_exp(f, a);
	x = nhca_float_sig(f, a) << NHCA_FLOAT_EXTRA;
	y = nhca_float_jam(nhca_float_sig(f, b) << NHCA_FLOAT_EXTRA, exp - nhca_float_exp(f, b));
	if (!((a ^ b) & ~low)) {
		x += y;
		if (x >> (f.mant + 1 + NHCA_FLOAT_EXTRA)) {
			x = nhca_float_jam(x, 1);
			exp++;
		}
		return nhca_float_round(f, sign, exp, x);
	}
	x -= y;
	if (!x)
		return 0;
	n = __builtin_clzll(x) - (63 - (int)(f.mant + NHCA_FLOAT_EXTRA));
	if (n > exp - 1)
		n = exp - 1;
	return nhca_float_round(f, sign, exp - n, x << n);
}

/*
 * Multiply two numbers of 64 bits.
 * Return: the upper 64 bits; the last one is 1 if a bit of the lower 64 is 1.
 */
static __always_inline u64 nhca_float_mul64(u64 a, u64 b)
{
	return mul_u64_u64_shr(a, b, 64) | (a * b != 0);
}

/* Return: the product of two numbers. */
static __always_inline u64 nhca_float_mul(const struct nhca_float f, u64 a, u64 b)
{
	u64 sign = (a ^ b) & nhca_float_sign(f), low = nhca_float_sign(f) - 1, x, y, p;
	/* bias: the exponent of 1.0; top: shift of an operand, later highest bit of the product */
	int exp, top, bias = (1 << (f.exp - 1)) - 1;

	if (nhca_float_is_nan(f, a))
		return nhca_float_quiet(f, a);
	if (nhca_float_is_nan(f, b))
		return nhca_float_quiet(f, b);
	if ((a & low) == nhca_float_inf(f) || (b & low) == nhca_float_inf(f))
		return (a & low) && (b & low) ? sign | nhca_float_inf(f) : nhca_float_invalid(f);
	if (!(a & low) || !(b & low))
		return sign;
	x = nhca_float_sig(f, a);
	y = nhca_float_sig(f, b);
	exp = nhca_float_exp(f, a) + nhca_float_exp(f, b) - bias;
	/* shift the highest bit of x and y to bit 63, so that of p will be bit 63 or 62 */
	top = __builtin_clzll(x);
	exp -= top - (63 - (int)f.mant);
	x <<= top;
	top = __builtin_clzll(y);
	exp -= top - (63 - (int)f.mant);
	y <<= top;
	p = nhca_float_mul64(x, y);
	top = 62;
	if (p >> 63) {
		top = 63;
		exp++;
	}
	/* a subnormal result has exponent 1, and a shorter significand */
	if (exp < 1) {
		top += 1 - exp;
		exp = 1;
	}
	return nhca_float_round(f, sign, exp,
				nhca_float_jam(p, top - (int)(f.mant + NHCA_FLOAT_EXTRA)));
}

/*
 * minimumNumber and maximumNumber of IEEE 754-2019: a number if one operand is a NaN, always the
 * same quiet NaN if both are; -0 is less than +0.  So the result of several such operations does
 * not depend on their order.
 * @max: the larger one
 */
static __always_inline u64 nhca_float_pick(const struct nhca_float f, u64 a, u64 b, bool max)
{
	u64 sign = nhca_float_sign(f);
	bool less;

	if (nhca_float_is_nan(f, a))
		return nhca_float_is_nan(f, b) ? nhca_float_invalid(f) : b;
	if (nhca_float_is_nan(f, b))
		return a;
	/* among negative numbers the larger pattern is the smaller number */
	if ((a ^ b) & sign)
		less = a & sign;
	else
		less = a & sign ? a > b : a < b;
	return less == max ? b : a;
}

#endif /* NHCA_WIRE_SOFTFLOAT_H */
