/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Arithmetic of packet sequence numbers: 24 bits, modulo 2^24 (IBTA 9.7.1).
 */
#ifndef NHCA_WIRE_PSN_H
#define NHCA_WIRE_PSN_H

#include <linux/types.h>
#include "bth.h"

/**
 * nhca_psn_add - compute the @n-th PSN after @psn
 * @psn: a PSN
 * @n:   number of PSNs; a negative number, converted to u32, gives an earlier PSN
 * Context: any.
 * Return: the PSN.
 */
static inline u32 nhca_psn_add(u32 psn, u32 n)
{
	return (psn + n) & NHCA_PSN_MASK;
}

/**
 * nhca_psn_diff - compute the distance from @b to @a
 * @a: a PSN
 * @b: a PSN
 * Context: any.
 * Return: -2^23 to 2^23 - 1; negative if @a is before @b.
 */
static inline s32 nhca_psn_diff(u32 a, u32 b)
{
	return (s32)((a - b) << 8) >> 8;
}

/**
 * nhca_psn_count - compute the number of packets of a message
 * @len: bytes of the message
 * @mtu: path MTU, in bytes
 * Context: any.
 * Return: number of packets, at least 1.
 */
static inline u32 nhca_psn_count(u32 len, u32 mtu)
{
	return len ? (len - 1) / mtu + 1 : 1;
}

#endif /* NHCA_WIRE_PSN_H */
