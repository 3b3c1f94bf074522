// SPDX-License-Identifier: GPL-2.0
/*
 * Random packets from a fixed seed, for compilers without libFuzzer.  Half of
 * them are noise, the other half have an almost valid header.
 *
 * usage: random PACKETS SECONDS; ends at the limit that is reached first
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include "bth.h"
#include "wire.h"

#define PACKET_MAX	200

static u64 seed = 0x2545f4914f6cdd1dULL;

/* xorshift64* */
static u32 draw(u32 below)
{
	seed ^= seed >> 12;
	seed ^= seed << 25;
	seed ^= seed >> 27;
	return (u32)((seed * 0x2545f4914f6cdd1dULL) >> 32) % below;
}

static size_t noise(u8 *p)
{
	size_t size = draw(PACKET_MAX + 1), i;

	for (i = 0; i < size; i++)
		p[i] = draw(256);
	return size;
}

/* Set the length fields of a transfer's packet to values that may be consistent. */
static void rxeth(u8 *p, size_t payload)
{
	struct nhca_rxeth x;
	u32 before = draw(4);

	nhca_rxeth_decode(&x, p[0], p + NHCA_BTH_LEN);
	x.version = 0;
	x.status %= p[0] == NHCA_RX_NOTICE ? 1 : NHCA_RX_ST_MAX;
	x.length = payload;
	x.segment = 64 + 4 * draw(9);
	if (p[0] == NHCA_RX_THIRD_REQUEST || p[0] == NHCA_RX_THIRD_CHALLENGE || p[0] == NHCA_RX_THIRD_WRITE)
		x.notify = NHCA_RX_NOTIFY_THIRD | (x.notify & NHCA_RX_NOTIFY_TARGET);
	x.offset = p[0] == NHCA_RX_WRITE || p[0] == NHCA_RX_THIRD_WRITE ||
		   p[0] == NHCA_RX_HALF_WRITE || p[0] == NHCA_RX_READ_DATA ||
		   p[0] == NHCA_RX_FRAMES_DATA || p[0] == NHCA_RX_ACCUMULATE ||
		   p[0] == NHCA_RX_STATUS || p[0] == NHCA_RX_PROBE ? before * x.segment : 0;
	x.total = x.offset + (p[0] == NHCA_RX_STATUS ? payload * 8 * x.segment : payload);
	if (p[0] == NHCA_RX_THIRD_REQUEST || p[0] == NHCA_RX_THIRD_CHALLENGE) {
		x.total = before * x.segment + draw(2);
		x.part = draw(4) ? x.total : draw(before + 1) * x.segment;
	}
	if (p[0] == NHCA_RX_FRAMES_REQUEST || p[0] == NHCA_RX_FRAMES_CHALLENGE) {
		x.offset = draw(before + 1) * x.segment;
		x.total = before * x.segment + draw(2);
		x.part = draw(4) ? x.total - x.offset : draw(before + 1) * x.segment;
	}
	if (p[0] == NHCA_RX_HALF_WRITE || p[0] == NHCA_RX_FRAMES_DATA)
		x.pvo = x.offset;
	if (p[0] == NHCA_RX_ACCUMULATE) {
		x.op %= 9;
		x.type %= 9;
		x.pvo &= ~7ull << draw(2);
	}
	nhca_rxeth_encode(&x, p[0], p + NHCA_BTH_LEN);
}

/*
 * Make a packet with a valid opcode, version 0 and a length that may be valid, and then invert up
 * to two bits.
 */
static size_t nearly_right(u8 *p)
{
	const struct nhca_opinfo *info;
	size_t size, i;
	u32 flips;

	for (i = 0; i < PACKET_MAX; i++)
		p[i] = draw(256);
	do {
		p[0] = draw(256);
		info = nhca_opinfo(p[0]);
	} while (!info);
	p[1] &= 0xf0;
	/*
	 * A packet without payload must have no pad. One in eight of these packets keeps its random
	 * pad count.
	 */
	if (!(info->flags & NHCA_OPF_PAYLOAD) && draw(8))
		p[1] &= 0xcf;
	size = info->hdr_len + NHCA_ICRC_LEN;
	if (info->flags & NHCA_OPF_PAYLOAD)
		size += 4 * draw(9);
	if (info->flags & NHCA_OPF_RXETH) {
		size_t behind = size - info->hdr_len - NHCA_ICRC_LEN, pad = p[1] >> 4 & 3;

		rxeth(p, behind > pad ? behind - pad : 0);
	}
	for (flips = draw(4); flips > 1; flips--)
		p[draw(size)] ^= 1 << draw(8);
	if (!draw(4))
		size = size + draw(9) - 4;
	return size;
}

int main(int argc, char **argv)
{
	unsigned long packets, done, results[NHCA_DECODE_LENGTH + 1] = {}, taken[256] = {};
	unsigned long long accepted = 0, bytes = 0;
	u8 packet[PACKET_MAX + 8];
	time_t end;
	int i, err;

	if (argc != 3)
		return 2;
	packets = strtoul(argv[1], NULL, 0);
	end = time(NULL) + strtoul(argv[2], NULL, 0);
	for (done = 0; done < packets && (done % 1024 || time(NULL) < end); done++) {
		size_t size = draw(2) ? noise(packet) : nearly_right(packet);

		err = fuzz_packet(packet, size);
		results[err]++;
		if (err == NHCA_DECODE_OK)
			taken[packet[0]]++;
		accepted += fuzz_opcodes(packet, size);
		bytes += size;
	}
	printf("%lu packets: %lu accepted, %lu short, %lu opcode, %lu version, %lu length\n", done,
	       results[NHCA_DECODE_OK], results[NHCA_DECODE_SHORT], results[NHCA_DECODE_OPCODE],
	       results[NHCA_DECODE_VERSION], results[NHCA_DECODE_LENGTH]);
	printf("%llu opcodes: %llu accepted\n", bytes, accepted);

	/*
	 * Fail if a result never occurred, or if no packet of some opcode was accepted: then the
	 * run has not tested the code for this result or opcode.
	 */
	for (i = 0; i <= NHCA_DECODE_LENGTH; i++) {
		if (!results[i]) {
			fprintf(stderr, "BROKEN: no packet got the result %d\n", i);
			return 1;
		}
	}
	for (i = 0; i < 256; i++) {
		if (nhca_opinfo(i) && !taken[i]) {
			fprintf(stderr, "BROKEN: no packet of opcode %#x was accepted\n", i);
			return 1;
		}
	}
	return accepted ? 0 : 1;
}
