/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The elements of accumulates: their types, and the operations that combine them
 * (Documentation/rcxt.rst, "Accumulate").  The functions only read and write bytes, and use no
 * FPU; a test in user space compiles them, and compares them with the FPU of the host.
 */
#ifndef NHCA_WIRE_ELEMENT_H
#define NHCA_WIRE_ELEMENT_H

#include <linux/types.h>

/* How an element of a packet is combined with the one in memory.  Packets have these values. */
enum nhca_element_op {
	NHCA_ELEM_NONE	= 0,	/* the packet is not an accumulate */
	NHCA_ELEM_SUM	= 1,
	NHCA_ELEM_MIN	= 2,
	NHCA_ELEM_MAX	= 3,
	NHCA_ELEM_PROD	= 4,
	/* bitwise operations, for integers only */
	NHCA_ELEM_OR	= 5,
	NHCA_ELEM_AND	= 6,
	NHCA_ELEM_XOR	= 7,
	NHCA_ELEM_OP_END
};

/* Types of elements.  Packets have these values. */
enum nhca_element_type {
	NHCA_ELEM_I32	= 1,
	NHCA_ELEM_I64	= 2,
	NHCA_ELEM_U32	= 3,
	NHCA_ELEM_U64	= 4,
	NHCA_ELEM_F32	= 5,	/* IEEE 754 binary32 */
	NHCA_ELEM_F64	= 6,	/* IEEE 754 binary64 */
	NHCA_ELEM_BF16	= 7,	/* the upper half of a binary32 */
	NHCA_ELEM_TYPE_END
};

/**
 * nhca_element_size - check an operation and a type, and get the size of an element
 * @op:   the operation, which may come from a packet
 * @type: the type, which may come from a packet
 * Context: any.
 * Return: bytes of an element: 2, 4 or 8; 0: there is no such operation for elements of this type.
 */
static inline unsigned int nhca_element_size(u8 op, u8 type)
{
	static const u8 sizes[NHCA_ELEM_TYPE_END] = {
		[NHCA_ELEM_I32] = 4, [NHCA_ELEM_I64] = 8, [NHCA_ELEM_U32] = 4,
		[NHCA_ELEM_U64] = 8, [NHCA_ELEM_F32] = 4, [NHCA_ELEM_F64] = 8,
		[NHCA_ELEM_BF16] = 2,
	};

	if (op == NHCA_ELEM_NONE || op >= NHCA_ELEM_OP_END || type >= NHCA_ELEM_TYPE_END)
		return 0;
	return op >= NHCA_ELEM_OR && type >= NHCA_ELEM_F32 ? 0 : sizes[type];
}

/**
 * nhca_elements_whole - check the operation of an accumulate, and that it has aligned elements
 * @op:      the operation, which may come from a packet
 * @type:    the type, which may come from a packet
 * @total:   bytes of the transfer
 * @segment: payload of its packets in bytes
 * @pvo:     PVO of bytes of the transfer at the target, whose distance from the first byte is a
 *           multiple of @segment
 * Context: any.
 * Return: true if @op exists for elements of @type, and the transfer and each of its packets
 * consist of whole elements that are aligned at the target.
 */
static inline bool nhca_elements_whole(u8 op, u8 type, u32 total, u32 segment, u64 pvo)
{
	u32 size = nhca_element_size(op, type);

	return size && !((total | segment | pvo) & (size - 1));
}

/**
 * nhca_element_combine - combine elements in memory with elements of a packet
 * @op:   the operation
 * @type: the type; nhca_element_size() has accepted @op and @type
 * @to:   elements in memory, aligned, in the host's byte order
 * @from: elements of the packet, little endian, with any alignment
 * @len:  bytes of @to and of @from, a multiple of the size of an element
 *
 * Integers wrap.  Floating-point results are rounded to nearest, ties to even.  A sum or product
 * with a NaN is a quiet NaN.  Minimum and maximum are minimumNumber and maximumNumber of IEEE
 * 754-2019.  A bf16 is converted to binary32, and the result is rounded to bf16.  Each element is
 * stored by one store, so that other CPUs see the old or the new value.
 * Context: any.  The caller excludes other calls for the same elements.
 */
void nhca_element_combine(u8 op, u8 type, void *to, const u8 *from, unsigned int len);

#endif /* NHCA_WIRE_ELEMENT_H */
