/* SPDX-License-Identifier: GPL-2.0 */
/* This version is newer than any kernel, so that the code in wire/ takes the newest interfaces. */
#define KERNEL_VERSION(a, b, c)	(((a) << 16) + ((b) << 8) + (c))
#define LINUX_VERSION_CODE	KERNEL_VERSION(255, 0, 0)
