/* SPDX-License-Identifier: GPL-2.0 */
#ifndef FUZZ_WIRE_H
#define FUZZ_WIRE_H

#include <linux/types.h>

/**
 * fuzz_packet - decode @size bytes as a UDP payload and check all that must hold
 * Aborts on a broken promise; the sanitizers abort on a stray access.
 * Return: enum nhca_decode_err
 */
int fuzz_packet(const u8 *data, size_t size);

/**
 * fuzz_opcodes - drive the opcode sequence with @size bytes as opcodes
 * Return: how many of them were accepted
 */
size_t fuzz_opcodes(const u8 *data, size_t size);

#endif /* FUZZ_WIRE_H */
