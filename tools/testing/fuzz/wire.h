/* SPDX-License-Identifier: GPL-2.0 */
#ifndef FUZZ_WIRE_H
#define FUZZ_WIRE_H

#include <linux/types.h>

/**
 * fuzz_packet - decode bytes as a UDP payload and check the result
 * @data: the bytes
 * @size: number of bytes
 *
 * The function aborts if a check fails. The sanitizers abort at an access out of bounds.
 *
 * Return: result of the decoder, an enum nhca_decode_err
 */
int fuzz_packet(const u8 *data, size_t size);

/**
 * fuzz_opcodes - pass bytes as opcodes to the opcode sequence check
 * @data: the opcodes
 * @size: number of opcodes
 *
 * The function aborts if a check fails.
 *
 * Return: number of accepted opcodes
 */
size_t fuzz_opcodes(const u8 *data, size_t size);

#endif /* FUZZ_WIRE_H */
