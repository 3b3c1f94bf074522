/* SPDX-License-Identifier: GPL-2.0 */
/* What wire/softfloat.h uses of the kernel's header. */
#ifndef FUZZ_LINUX_MATH64_H
#define FUZZ_LINUX_MATH64_H

#include <linux/types.h>

static inline u64 mul_u64_u64_shr(u64 a, u64 b, unsigned int shift)
{
	return (__uint128_t)a * b >> shift;
}

#endif /* FUZZ_LINUX_MATH64_H */
