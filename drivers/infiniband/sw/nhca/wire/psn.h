/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Packet sequence numbers: 24 bits, compared around the circle (IBTA 9.7.2).
 */
#ifndef NHCA_WIRE_PSN_H
#define NHCA_WIRE_PSN_H

#include <linux/types.h>
#include "bth.h"

static inline u32 nhca_psn_add(u32 psn, u32 n)
{
	return (psn + n) & NHCA_PSN_MASK;
}

/**
 * nhca_psn_diff - how far @a lies ahead of @b
 * Return: -2^23 to 2^23 - 1; negative if @a is behind.
 */
static inline s32 nhca_psn_diff(u32 a, u32 b)
{
	return (s32)((a - b) << 8) >> 8;
}

/* packets that a message of @len bytes takes at @mtu bytes each; at least 1 */
static inline u32 nhca_psn_count(u32 len, u32 mtu)
{
	return len ? (len - 1) / mtu + 1 : 1;
}

#endif /* NHCA_WIRE_PSN_H */
