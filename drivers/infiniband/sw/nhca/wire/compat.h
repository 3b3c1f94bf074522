/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What differs between kernels for the pure functions of wire/, which shall not
 * need the RDMA core as the driver's compat.h does.
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
#define NHCA_OLD_CRC32	/* crc32_le() is the generic one; the fast one is in the crypto API */
#endif

#endif /* NHCA_WIRE_COMPAT_H */
