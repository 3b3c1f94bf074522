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

#define LENGTH	64

static u8 packet[LENGTH];
static int stop;

/*
 * Change opcode and pad count again and again. The opcodes are RC READ Request, RC FetchAdd, RC
 * SEND Only, RC WRITE Only and the notice of a channel. Their headers have 12 to 76 bytes, so the
 * packet, of LENGTH bytes, is too short for a notice.
 */
static void *change(void *unused)
{
	static const u8 opcodes[] = { 0x0c, 0x14, 0x04, 0x0a, NHCA_RX_NOTICE };
	unsigned int i = 0;

	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		__atomic_store_n(&packet[0], opcodes[i % sizeof(opcodes)], __ATOMIC_RELAXED);
		__atomic_store_n(&packet[1], (i & 3) << 4, __ATOMIC_RELAXED);
		i++;
	}
	return unused;
}

int main(int argc, char **argv)
{
	time_t end = time(NULL) + (argc > 1 ? atoi(argv[1]) : 3);
	unsigned long good = 0, bad = 0, n;
	pthread_t thread;
	struct nhca_hdr h;

	if (pthread_create(&thread, NULL, change, NULL))
		return 2;
	for (n = 0; time(NULL) < end; n++) {
		unsigned int i;

		for (i = 0; i < 1000; i++) {
			if (nhca_hdr_decode(&h, packet, LENGTH, LENGTH) != NHCA_DECODE_OK)
				continue;
			good++;
			bad += h.info != nhca_opinfo(h.opcode) ||
			       nhca_hdr_payload(&h, LENGTH) > LENGTH - h.info->hdr_len - NHCA_ICRC_LEN;
		}
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	printf("%s%lu of %lu packets decoded, %lu of them to fields that do not fit together\n",
	       bad ? "BROKEN: " : "", good, n * 1000, bad);
	return bad || !good;
}
