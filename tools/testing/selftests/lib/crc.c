// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* crc.h describes this function. */
#include "crc.h"

static uint32_t table[256];

static void table_init(void)
{
	uint32_t i, bit, crc;

	for (i = 0; i < 256; i++) {
		for (crc = i, bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
		table[i] = crc;
	}
}

uint32_t crc_of(uint32_t crc, const uint8_t *p, size_t size)
{
	if (!table[1])
		table_init();
	while (size--)
		crc = crc >> 8 ^ table[(crc ^ *p++) & 0xff];
	return crc;
}
