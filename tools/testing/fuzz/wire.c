// SPDX-License-Identifier: GPL-2.0
/*
 * Calls the wire decoder and the check of the opcode sequence with any bytes, and checks their
 * results.  libFuzzer and random.c call the functions of this file.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "element.h"
#include "bth.h"
#include "opseq.h"
#include "wire.h"

#define MUST(condition) do {						\
	if (!(condition)) {						\
		fprintf(stderr, "BROKEN: %s (line %d)\n", #condition, __LINE__); \
		abort();						\
	}								\
} while (0)

/*
 * Clear the reserved bits, which the decoder does not store, so the encoder writes zeros there: in
 * BTH byte 8, DETH byte 4, XRCETH byte 0, FETH bits 31:6, the last 16 bytes of a CNP, RXETH byte 40
 * (bit t, in kinds that cannot have a third party), bytes 1 to 3 after the RXETH of a status, and
 * byte 32 after the RXETH of a third-party request or challenge.
 */
static void clear_reserved(const struct nhca_opinfo *info, u8 *p)
{
	p[8] &= 0x80;
	if (info->flags & NHCA_OPF_DETH)
		p[NHCA_BTH_LEN + 4] = 0;
	if (info->flags & NHCA_OPF_XRCETH)
		p[NHCA_BTH_LEN] = 0;
	if (info->flags & NHCA_OPF_FETH) {
		memset(p + NHCA_BTH_LEN, 0, 3);
		p[NHCA_BTH_LEN + 3] &= 0x3f;
	}
	if (p[0] == NHCA_OPCODE_CNP)
		memset(p + NHCA_BTH_LEN, 0, 16);
	if (info->flags & NHCA_OPF_RXETH && p[0] != NHCA_RX_THIRD_REQUEST && p[0] != NHCA_RX_THIRD_CHALLENGE &&
	    p[0] != NHCA_RX_THIRD_WRITE && p[0] != NHCA_RX_NOTICE)
		p[NHCA_BTH_LEN + 40] &= 0xf7;
	if (p[0] == NHCA_RX_THIRD_REQUEST || p[0] == NHCA_RX_THIRD_CHALLENGE)
		p[NHCA_BTH_LEN + NHCA_RXETH_LEN + 32] = 0;
	if (p[0] == NHCA_RX_ACCUMULATE)
		memset(p + NHCA_BTH_LEN + NHCA_RXETH_LEN + 2, 0, 2);
	if (p[0] == NHCA_RX_STATUS)
		memset(p + NHCA_BTH_LEN + NHCA_RXETH_LEN + 1, 0, 3);
}

/* The receiver uses these fields as indices and lengths without further checks. */
static void check_transfer(const struct nhca_rxeth *x, u8 opcode, size_t payload)
{
	u32 packets, index;

	MUST(x->version == NHCA_RXETH_VERSION && x->notify <= (NHCA_RX_NOTIFY_MASK | NHCA_RX_NOTIFY_THIRD));
	MUST(x->src_channel <= NHCA_QPN_MASK && x->length == payload);
	MUST(x->total <= NHCA_RCXT_MAX_LEN && x->offset + x->length <= NHCA_RCXT_MAX_LEN);
	if (opcode == NHCA_RX_PACKET) {
		MUST(x->length <= NHCA_RX_MAX_PACKET);
		return;
	}
	MUST(x->segment && x->offset % x->segment == 0);
	packets = nhca_rcxt_packets(x->total, x->segment);
	index = x->offset / x->segment;
	MUST(packets && packets <= NHCA_RCXT_MAX_PACKETS && index < packets);
	if (opcode == NHCA_RX_STATUS)
		MUST(x->length <= NHCA_RX_MAX_PACKET && index / 8 + x->length <= packets / 8 + 1);
	else
		MUST(x->offset + x->length <= x->total);
	if (opcode == NHCA_RX_THIRD_REQUEST || opcode == NHCA_RX_THIRD_CHALLENGE ||
	    opcode == NHCA_RX_FRAMES_REQUEST || opcode == NHCA_RX_FRAMES_CHALLENGE) {
		MUST(x->part <= x->total && x->offset <= x->total - x->part);
		MUST(x->offset + x->part == x->total || x->part % x->segment == 0);
		MUST(x->part || !x->total);
	}
	if (opcode == NHCA_RX_READ_REQUEST || opcode == NHCA_RX_HALF_REQUEST)
		MUST(!x->offset && !payload);
	if (opcode == NHCA_RX_FRAMES_REQUEST || opcode == NHCA_RX_FRAMES_CHALLENGE)
		MUST(x->segment <= NHCA_RX_MAX_PACKET && !payload);
	if (opcode == NHCA_RX_HALF_WRITE || opcode == NHCA_RX_FRAMES_DATA)
		MUST(x->half && x->length <= NHCA_RX_MAX_PACKET && x->pvo == x->offset);
	if (opcode == NHCA_RX_ACCUMULATE) {
		index = nhca_element_size(x->op, x->type);
		MUST(index && payload % index == 0 && x->pvo % index == 0);
	}
	MUST(x->status < NHCA_RX_ST_MAX);
}

static void check_accepted(const struct nhca_hdr *h, const u8 *packet, size_t size)
{
	const struct nhca_opinfo *info = h->info;
	u8 *want, *have;

	MUST(info && info == nhca_opinfo(h->opcode) && info->flags);
	MUST(info->hdr_len >= NHCA_BTH_LEN && info->hdr_len <= NHCA_HDRS_MAX);
	MUST(h->opcode == packet[0]);
	MUST(h->pad < 4 && h->caps < 64);
	MUST(h->qpn <= NHCA_QPN_MASK && h->psn <= NHCA_PSN_MASK);
	MUST(nhca_hdr_payload(h, size) <= size);
	MUST(info->hdr_len + nhca_hdr_payload(h, size) + h->pad + NHCA_ICRC_LEN == size);
	MUST(info->flags & NHCA_OPF_PAYLOAD || nhca_hdr_payload(h, size) == 0);
	if (info->flags & NHCA_OPF_RXETH)
		check_transfer(&h->rx, h->opcode, nhca_hdr_payload(h, size));

	/* The encoder must give the same bytes. The buffer has exactly their size. */
	want = malloc(info->hdr_len);
	have = malloc(info->hdr_len);
	MUST(want && have);
	memcpy(want, packet, info->hdr_len);
	clear_reserved(info, want);
	memset(have, 0xa5, info->hdr_len);
	MUST(nhca_hdr_encode(h, have) == info->hdr_len);
	MUST(!memcmp(want, have, info->hdr_len));
	free(want);
	free(have);
}

int fuzz_packet(const u8 *data, size_t size)
{
	size_t avail = size < NHCA_HDRS_MAX ? size : NHCA_HDRS_MAX, cut;
	enum nhca_decode_err err, cut_err;
	struct nhca_hdr h, again;
	u8 *p;

	/* The buffer has exactly the number of bytes that is passed to the decoder. */
	p = malloc(avail);
	MUST(p || !avail);
	if (avail)
		memcpy(p, data, avail);
	memset(&h, 0xa5, sizeof(h));
	err = nhca_hdr_decode(&h, p, avail, size);
	free(p);
	MUST(err >= NHCA_DECODE_OK && err <= NHCA_DECODE_LENGTH);
	if (err == NHCA_DECODE_OK)
		check_accepted(&h, data, size);

	/* With fewer bytes available, the result must be the same or "short". */
	for (cut = 0; cut < avail; cut++) {
		p = malloc(cut);
		MUST(p || !cut);
		if (cut)
			memcpy(p, data, cut);
		cut_err = nhca_hdr_decode(&again, p, cut, size);
		free(p);
		MUST(cut_err == NHCA_DECODE_SHORT || cut_err == err);
		if (err == NHCA_DECODE_OK)
			MUST((cut_err == NHCA_DECODE_OK) == (cut >= h.info->hdr_len));
	}
	return err;
}

size_t fuzz_opcodes(const u8 *data, size_t size)
{
	enum nhca_opseq state = NHCA_SEQ_IDLE, next;
	size_t i, accepted = 0;

	for (i = 0; i < size; i++) {
		const struct nhca_opinfo *info = nhca_opinfo(data[i]);
		u32 mtu = 256 << data[i] % 5;

		if (!info)
			continue;
		MUST(!nhca_opseq_len_ok(info, mtu + 1, mtu));
		MUST(nhca_opseq_len_ok(info, info->flags & NHCA_OPF_PAYLOAD ? mtu : 0, mtu));
		if (!nhca_opseq_ok(state, info))
			continue;
		accepted++;
		next = nhca_opseq_next(state, info);
		MUST(info->flags & NHCA_OPF_REQUEST);
		MUST(next == NHCA_SEQ_IDLE || next == NHCA_SEQ_SEND || next == NHCA_SEQ_WRITE);
		MUST((next == NHCA_SEQ_IDLE) == !!(info->flags & NHCA_OPF_LAST));
		MUST((state == NHCA_SEQ_IDLE) == !!(info->flags & NHCA_OPF_FIRST));
		MUST(next != NHCA_SEQ_SEND || info->flags & NHCA_OPF_SEND);
		MUST(next != NHCA_SEQ_WRITE || info->flags & NHCA_OPF_WRITE);
		state = next;
	}
	return accepted;
}

/* libFuzzer needs this symbol name, which is not in kernel style. */
int fuzz_one_input(const u8 *data, size_t size) __asm__("LLVMFuzzerTestOneInput");
int fuzz_one_input(const u8 *data, size_t size)
{
	fuzz_packet(data, size);
	fuzz_opcodes(data, size);
	return 0;
}
