/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* CRC-32 (IEEE 802.3, bits reflected), which the ICRC of RoCEv2 uses. */
#ifndef CRC_H
#define CRC_H

#include <stddef.h>
#include <stdint.h>

/*
 * Continue the CRC @crc with @size bytes. The first call gets ~0, and the result of the last call
 * is inverted. The first call computes a table, so it must return before other threads call this
 * function.
 */
uint32_t crc_of(uint32_t crc, const uint8_t *p, size_t size);

#endif /* CRC_H */
