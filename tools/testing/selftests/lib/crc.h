/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* CRC-32 (IEEE 802.3, bits reflected), which the ICRC of RoCEv2 uses. */
#ifndef CRC_H
#define CRC_H

#include <stddef.h>
#include <stdint.h>

/*
 * Continue the CRC @crc with @size bytes. Begin a CRC with ~0, and invert the result for the last
 * bytes. The first call in a process computes a table, so it must return before other threads call
 * this function.
 */
uint32_t crc_of(uint32_t crc, const uint8_t *p, size_t size);

#endif /* CRC_H */
