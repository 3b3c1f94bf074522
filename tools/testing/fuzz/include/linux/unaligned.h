/* SPDX-License-Identifier: GPL-2.0 */
/* Unaligned accessors for wire/: they access single bytes, so the sanitizers check each byte. */
#ifndef FUZZ_LINUX_UNALIGNED_H
#define FUZZ_LINUX_UNALIGNED_H

#include <linux/types.h>

static inline u64 fuzz_get_be(const void *from, int bytes)
{
	const u8 *p = from;
	u64 value = 0;

	while (bytes--)
		value = value << 8 | *p++;
	return value;
}

static inline void fuzz_put_be(u64 value, void *to, int bytes)
{
	u8 *p = to;

	while (bytes--) {
		p[bytes] = value;
		value >>= 8;
	}
}

static inline u16 get_unaligned_be16(const void *p)
{
	return fuzz_get_be(p, 2);
}

static inline u32 get_unaligned_be24(const void *p)
{
	return fuzz_get_be(p, 3);
}

static inline u32 get_unaligned_be32(const void *p)
{
	return fuzz_get_be(p, 4);
}

static inline u64 get_unaligned_be64(const void *p)
{
	return fuzz_get_be(p, 8);
}

static inline void put_unaligned_be16(u16 value, void *p)
{
	fuzz_put_be(value, p, 2);
}

static inline void put_unaligned_be24(u32 value, void *p)
{
	fuzz_put_be(value, p, 3);
}

static inline void put_unaligned_be32(u32 value, void *p)
{
	fuzz_put_be(value, p, 4);
}

static inline void put_unaligned_be64(u64 value, void *p)
{
	fuzz_put_be(value, p, 8);
}

static inline u64 fuzz_get_le(const void *from, int bytes)
{
	const u8 *p = from;
	u64 value = 0;

	while (bytes--)
		value = value << 8 | p[bytes];
	return value;
}

static inline u16 get_unaligned_le16(const void *p)
{
	return fuzz_get_le(p, 2);
}

static inline u32 get_unaligned_le32(const void *p)
{
	return fuzz_get_le(p, 4);
}

static inline u64 get_unaligned_le64(const void *p)
{
	return fuzz_get_le(p, 8);
}

#endif /* FUZZ_LINUX_UNALIGNED_H */
