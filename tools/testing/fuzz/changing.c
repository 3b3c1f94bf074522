// SPDX-License-Identifier: GPL-2.0
/*
 * A sender that shares memory with the receiver changes the headers of a packet while the receiver
 * decodes them. The decoded fields must still fit together, because the receiver uses them without
 * further checks.
 *
 * usage: changing SECONDS
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include "bth.h"

/*
 * RC READ Request, FetchAdd, SEND Only, WRITE Only, FLUSH, and packets of channels, among them a
 * third-party request, which has the longest headers of all
 */
static const u8 opcodes[] = {
	0x0c, 0x14, 0x04, 0x0a, 0x1c, NHCA_RX_WRITE, NHCA_RX_NOTICE, NHCA_RX_ACCUMULATE,
	NHCA_RX_THIRD_WRITE, NHCA_RX_THIRD_REQUEST,
};

#define OPCODES	(sizeof(opcodes) / sizeof(opcodes[0]))

static u8 packet[NHCA_HDRS_MAX + NHCA_ICRC_LEN];
static int stop;

/* Return: bytes of a packet that has the headers of opcode number @i, and no payload */
static unsigned int length_of(unsigned int i)
{
	return nhca_opinfo(opcodes[i % OPCODES])->hdr_len + NHCA_ICRC_LEN;
}

static void put(unsigned int at, u8 byte)
{
	__atomic_store_n(&packet[at], byte, __ATOMIC_RELAXED);
}

/* Fill in the fields that are the same in all packets. */
static void begin(void)
{
	struct nhca_hdr h = {
		.opcode = NHCA_RX_THIRD_REQUEST,
		.info = nhca_opinfo(NHCA_RX_THIRD_REQUEST),
		.rx = {
			.version = NHCA_RXETH_VERSION, .segment = 1024,
			.notify = NHCA_RX_NOTIFY_THIRD,
			/* in an accumulate, the operation (a sum) and the type (32 bits) */
			.reply_pvo = 0x0103000000000000,
		},
	};

	nhca_hdr_encode(&h, packet);
}

/*
 * Change opcode, pad count and payload length again and again. The payload length of a channel's
 * packet fits a packet that is as long as the headers of another opcode.
 */
static void *change(void *unused)
{
	unsigned int i = 0, n;

	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		unsigned int pad = i / 128 & 3, room = length_of(i / OPCODES);

		n = room > length_of(i) + pad ? room - length_of(i) - pad : 0;
		put(0, opcodes[i % OPCODES]);
		put(1, pad << 4);
		/* total and length of the RXETH */
		put(NHCA_BTH_LEN + 23, n);
		put(NHCA_BTH_LEN + 29, n);
		i++;
	}
	return unused;
}

int main(int argc, char **argv)
{
	unsigned long good = 0, bad = 0, all = 0, decoded[256] = {};
	time_t end = time(NULL) + (argc > 1 ? atoi(argv[1]) : 3);
	const char *never = NULL;
	unsigned int i, len;
	pthread_t thread;
	struct nhca_hdr h;

	begin();
	if (pthread_create(&thread, NULL, change, NULL))
		return 2;
	while (time(NULL) < end) {
		for (i = 0; i < 1000; i++, all++) {
			len = length_of(i);
			if (nhca_hdr_decode(&h, packet, len, len) != NHCA_DECODE_OK)
				continue;
			good++;
			decoded[h.opcode]++;
			bad += h.info != nhca_opinfo(h.opcode) ||
			       nhca_hdr_payload(&h, len) + h.info->hdr_len + NHCA_ICRC_LEN > len ||
			       (h.info->flags & NHCA_OPF_RXETH &&
				h.rx.length != nhca_hdr_payload(&h, len));
		}
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	for (i = 0; i < OPCODES; i++)
		if (!decoded[opcodes[i]])
			never = nhca_opinfo(opcodes[i])->name;
	if (never)
		printf("BROKEN: no packet was decoded as %s\n", never);
	printf("%s%lu of %lu packets decoded, %lu of them to fields that do not fit together\n",
	       bad ? "BROKEN: " : "", good, all, bad);
	return bad || never;
}
