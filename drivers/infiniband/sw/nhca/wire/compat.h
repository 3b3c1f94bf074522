/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Differences between kernel versions that concern wire/.  wire/ cannot include the driver's
 * compat.h, because compat.h includes headers of the RDMA core, which the fuzzer in user space
 * lacks.
 */
#ifndef NHCA_WIRE_COMPAT_H
#define NHCA_WIRE_COMPAT_H

#include <linux/version.h>

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 12, 0)
#include <asm/unaligned.h>
#else
#include <linux/unaligned.h>
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 14, 0)
#define NHCA_OLD_CRC32	/* on x86, crc32_le() uses tables; the crypto API is faster (icrc.c) */
#endif

/*
 * Attribute of a stack variable that is written before it is read, so that the compiler does not
 * clear the variable.  Empty if the headers of the kernel or of the fuzzer do not define it.
 */
#ifndef __uninitialized
#define __uninitialized
#endif

#endif /* NHCA_WIRE_COMPAT_H */
