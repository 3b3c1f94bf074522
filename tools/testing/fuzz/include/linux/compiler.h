/* SPDX-License-Identifier: GPL-2.0 */
/* What wire/element.c uses of the kernel's header. */
#ifndef FUZZ_LINUX_COMPILER_H
#define FUZZ_LINUX_COMPILER_H

#ifndef __always_inline
#define __always_inline	inline __attribute__((always_inline))
#endif
#define READ_ONCE(x)		(*(const volatile __typeof__(x) *)&(x))
#define WRITE_ONCE(x, value)	(*(volatile __typeof__(x) *)&(x) = (value))

#endif /* FUZZ_LINUX_COMPILER_H */
