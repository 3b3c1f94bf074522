/* SPDX-License-Identifier: GPL-2.0 */
/* Newer than any kernel, so that every header is the newest one. */
#define KERNEL_VERSION(a, b, c)	(((a) << 16) + ((b) << 8) + (c))
#define LINUX_VERSION_CODE	KERNEL_VERSION(255, 0, 0)
