// SPDX-License-Identifier: GPL-2.0
/* Operations on the elements of accumulates.  A test compiles this file in user space. */
#include <linux/compiler.h>
#include <linux/string.h>
#include "compat.h"
#include "element.h"
#include "softfloat.h"

static __always_inline u32 elem_int32(u8 op, u32 a, u32 b, bool is_signed)
{
	/* with the highest bit inverted, signed numbers have the order of unsigned ones */
	const u32 flip = is_signed ? 1u << 31 : 0;

	switch (op) {
	case NHCA_ELEM_SUM:
		return a + b;
	case NHCA_ELEM_MIN:
		return (a ^ flip) < (b ^ flip) ? a : b;
	case NHCA_ELEM_MAX:
		return (a ^ flip) > (b ^ flip) ? a : b;
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

static __always_inline u64 elem_int64(u8 op, u64 a, u64 b, bool is_signed)
{
	const u64 flip = is_signed ? 1ull << 63 : 0;

	switch (op) {
	case NHCA_ELEM_SUM:
		return a + b;
	case NHCA_ELEM_MIN:
		return (a ^ flip) < (b ^ flip) ? a : b;
	case NHCA_ELEM_MAX:
		return (a ^ flip) > (b ^ flip) ? a : b;
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

static __always_inline u64 elem_real(u8 op, const struct nhca_float f, u64 a, u64 b)
{
	switch (op) {
	case NHCA_ELEM_SUM:
		return nhca_float_add(f, a, b);
	case NHCA_ELEM_PROD:
		return nhca_float_mul(f, a, b);
	default:
		return nhca_float_pick(f, a, b, op == NHCA_ELEM_MAX);
	}
}

static __always_inline u16 elem_bf16(u8 op, u16 a, u16 b)
{
	u32 x = elem_real(op, NHCA_BINARY32, (u32)a << 16, (u32)b << 16);

	/* round, except a NaN: it is quiet, so its upper half is a NaN as well */
	if (!nhca_float_is_nan(NHCA_BINARY32, x))
		x += 0x7fff + (x >> 16 & 1);
	return x >> 16;
}

/*
 * The loops have an index of pointer size, and those of integers are unrolled: otherwise most of
 * their instructions would count.
 */
static __always_inline void elem_ints32(u8 op, u8 type, u32 *to, const u8 *from, size_t n)
{
	size_t i;
	u32 b;

#pragma GCC unroll 8
	for (i = 0; i < n; i++) {
		b = get_unaligned_le32(from + 4 * i);
		WRITE_ONCE(to[i], elem_int32(op, READ_ONCE(to[i]), b, type == NHCA_ELEM_I32));
	}
}

static __always_inline void elem_ints64(u8 op, u8 type, u64 *to, const u8 *from, size_t n)
{
	size_t i;
	u64 b;

#pragma GCC unroll 8
	for (i = 0; i < n; i++) {
		b = get_unaligned_le64(from + 8 * i);
		WRITE_ONCE(to[i], elem_int64(op, READ_ONCE(to[i]), b, type == NHCA_ELEM_I64));
	}
}

static __always_inline void elem_reals16(u8 op, u16 *to, const u8 *from, size_t n)
{
	size_t i;
	u16 b;

	for (i = 0; i < n; i++) {
		b = get_unaligned_le16(from + 2 * i);
		WRITE_ONCE(to[i], elem_bf16(op, READ_ONCE(to[i]), b));
	}
}

static __always_inline void elem_reals32(u8 op, u32 *to, const u8 *from, size_t n)
{
	size_t i;
	u32 b;

	for (i = 0; i < n; i++) {
		b = get_unaligned_le32(from + 4 * i);
		WRITE_ONCE(to[i], elem_real(op, NHCA_BINARY32, READ_ONCE(to[i]), b));
	}
}

static __always_inline void elem_reals64(u8 op, u64 *to, const u8 *from, size_t n)
{
	size_t i;
	u64 b;

	for (i = 0; i < n; i++) {
		b = get_unaligned_le64(from + 8 * i);
		WRITE_ONCE(to[i], elem_real(op, NHCA_BINARY64, READ_ONCE(to[i]), b));
	}
}

/* @op and @type are constants in each loop, so the compiler removes the branches on them. */
static __always_inline void elem_combine(u8 op, u8 type, void *to, const u8 *from, unsigned int len)
{
	switch (type) {
	case NHCA_ELEM_BF16:
		elem_reals16(op, to, from, len / 2);
		break;
	case NHCA_ELEM_I32:
		elem_ints32(op, NHCA_ELEM_I32, to, from, len / 4);
		break;
	case NHCA_ELEM_U32:
		elem_ints32(op, NHCA_ELEM_U32, to, from, len / 4);
		break;
	case NHCA_ELEM_F32:
		elem_reals32(op, to, from, len / 4);
		break;
	case NHCA_ELEM_I64:
		elem_ints64(op, NHCA_ELEM_I64, to, from, len / 8);
		break;
	case NHCA_ELEM_U64:
		elem_ints64(op, NHCA_ELEM_U64, to, from, len / 8);
		break;
	case NHCA_ELEM_F64:
		elem_reals64(op, to, from, len / 8);
		break;
	}
}

void nhca_element_combine(u8 op, u8 type, void *to, const u8 *from, unsigned int len)
{
	switch (op) {
	case NHCA_ELEM_SUM:
		elem_combine(NHCA_ELEM_SUM, type, to, from, len);
		break;
	case NHCA_ELEM_MIN:
		elem_combine(NHCA_ELEM_MIN, type, to, from, len);
		break;
	case NHCA_ELEM_MAX:
		elem_combine(NHCA_ELEM_MAX, type, to, from, len);
		break;
	case NHCA_ELEM_PROD:
		elem_combine(NHCA_ELEM_PROD, type, to, from, len);
		break;
	case NHCA_ELEM_OR:
		elem_combine(NHCA_ELEM_OR, type, to, from, len);
		break;
	case NHCA_ELEM_AND:
		elem_combine(NHCA_ELEM_AND, type, to, from, len);
		break;
	case NHCA_ELEM_XOR:
		elem_combine(NHCA_ELEM_XOR, type, to, from, len);
		break;
	}
}
