// SPDX-License-Identifier: GPL-2.0
/*
 * Decodes packets with the driver's code, for agree.py.  Reads packets from stdin, each after its
 * length (16 bits, little endian).  Prints a line for each packet: the error, or "ok" with the
 * fields and with the headers as the driver's encoder writes them.
 */
#include <stdio.h>
#include "bth.h"

static void show(const struct nhca_hdr *h)
{
	const struct nhca_rxeth *x = &h->rx;
	u8 p[NHCA_HDRS_MAX];
	unsigned int i, size = nhca_hdr_encode(h, p);

	printf(" %u %u %u %u %u %u %u %u %u %u %u %llu %u %u %u %u %u %u %u %u %llu %llu %llu %u %u ",
	       h->opcode, h->qpn, x->key, x->job, x->rcxt.index, x->rcxt.key, x->tid, x->total,
	       x->offset, x->length, x->segment, (unsigned long long)x->pvo, x->version,
	       !!(x->notify & NHCA_RX_NOTIFY_THIRD), x->again, x->notify & NHCA_RX_NOTIFY_MASK, x->src_channel, x->src_key, x->src_rcxt.index, x->src_rcxt.key,
	       (unsigned long long)x->cookie, (unsigned long long)x->reply_pvo,
	       (unsigned long long)x->token, x->status, x->have);
	for (i = 0; i < sizeof(x->gid); i++)
		printf("%02x", x->gid[i]);
	printf(" %u %u %u %u %u %u %u %u ", x->target_channel, x->target_key, x->target_rcxt.index,
	       x->target_rcxt.key, x->part, x->number, x->op, x->type);
	for (i = 0; i < size; i++)
		printf("%02x", p[i]);
}

int main(void)
{
	static const char * const words[] = {
		[NHCA_DECODE_OK] = "ok",
		[NHCA_DECODE_SHORT] = "rx_too_short",
		[NHCA_DECODE_OPCODE] = "rx_bad_opcode",
		[NHCA_DECODE_VERSION] = "rx_bad_version",
		[NHCA_DECODE_LENGTH] = "rx_bad_length",
	};
	static u8 packet[65536];
	enum nhca_decode_err err;
	struct nhca_hdr h;
	u8 length[2];
	size_t size;

	while (fread(length, sizeof(length), 1, stdin) == 1) {
		size = length[0] | length[1] << 8;
		if (size && fread(packet, size, 1, stdin) != 1)
			return 1;
		err = nhca_hdr_decode(&h, packet, size < NHCA_HDRS_MAX ? size : NHCA_HDRS_MAX, size);
		printf("%s", words[err]);
		if (err == NHCA_DECODE_OK)
			show(&h);
		putchar('\n');
	}
	return 0;
}
