/* SPDX-License-Identifier: GPL-2.0 */
#ifndef FUZZ_LINUX_BITS_H
#define FUZZ_LINUX_BITS_H

#define BIT(n)	(1UL << (n))

#endif
