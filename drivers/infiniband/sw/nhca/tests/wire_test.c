// SPDX-License-Identifier: GPL-2.0
/* KUnit: transport headers: the opcode table, decoding and encoding. */
#include <kunit/test.h>
#include <linux/prandom.h>
#include <linux/slab.h>
#include "../wire/bth.h"
#include "../wire/grh.h"

/*
 * IBTA table 38 in letters, to check the driver's opcode table independently. Opcodes from 0xc0 on
 * are opcodes of channels (Documentation/rcxt.rst).
 * @what: q request, r response; F first, M middle, L last, O only; s SEND, w WRITE, g READ request,
 * a atomic, d READ response, f FLUSH, W ATOMIC WRITE; p: a payload is allowed
 * @headers: D DETH, R RETH, T AtomicETH, A AETH, K AtomicAckETH, I ImmDt, V IETH, F FETH, S XRCETH,
 * C the reserved bytes of a CNP, X RXETH, Y 8 bytes after the RXETH, Z 8 more bytes, G a GID, H the
 * 24 bytes of a third-party request
 */
struct spec_row {
	u8 opcode;
	const char *what;
	const char *headers;
};

static const struct spec_row spec_rows[] = {
	{ 0x00, "qFsp", "" },
	{ 0x01, "qMsp", "" },
	{ 0x02, "qLsp", "" },
	{ 0x03, "qLsp", "I" },
	{ 0x04, "qOsp", "" },
	{ 0x05, "qOsp", "I" },
	{ 0x06, "qFwp", "R" },
	{ 0x07, "qMwp", "" },
	{ 0x08, "qLwp", "" },
	{ 0x09, "qLwp", "I" },
	{ 0x0a, "qOwp", "R" },
	{ 0x0b, "qOwp", "RI" },
	{ 0x0c, "qOg", "R" },
	{ 0x0d, "rFdp", "A" },
	{ 0x0e, "rMdp", "" },
	{ 0x0f, "rLdp", "A" },
	{ 0x10, "rOdp", "A" },
	{ 0x11, "r", "A" },
	{ 0x12, "r", "AK" },
	{ 0x13, "qOa", "T" },
	{ 0x14, "qOa", "T" },
	{ 0x16, "qLsp", "V" },
	{ 0x17, "qOsp", "V" },
	{ 0x1c, "qOf", "FR" },
	{ 0x1d, "qOWp", "R" },
	{ 0x20, "qFsp", "" },
	{ 0x21, "qMsp", "" },
	{ 0x22, "qLsp", "" },
	{ 0x23, "qLsp", "I" },
	{ 0x24, "qOsp", "" },
	{ 0x25, "qOsp", "I" },
	{ 0x26, "qFwp", "R" },
	{ 0x27, "qMwp", "" },
	{ 0x28, "qLwp", "" },
	{ 0x29, "qLwp", "I" },
	{ 0x2a, "qOwp", "R" },
	{ 0x2b, "qOwp", "RI" },
	{ 0x64, "qOsp", "D" },
	{ 0x65, "qOsp", "DI" },
	{ 0x81, "O", "C" },
	{ 0xa0, "qFsp", "S" },
	{ 0xa1, "qMsp", "S" },
	{ 0xa2, "qLsp", "S" },
	{ 0xa3, "qLsp", "SI" },
	{ 0xa4, "qOsp", "S" },
	{ 0xa5, "qOsp", "SI" },
	{ 0xa6, "qFwp", "SR" },
	{ 0xa7, "qMwp", "S" },
	{ 0xa8, "qLwp", "S" },
	{ 0xa9, "qLwp", "SI" },
	{ 0xaa, "qOwp", "SR" },
	{ 0xab, "qOwp", "SRI" },
	{ 0xac, "qOg", "SR" },
	{ 0xad, "rFdp", "A" },
	{ 0xae, "rMdp", "" },
	{ 0xaf, "rLdp", "A" },
	{ 0xb0, "rOdp", "A" },
	{ 0xb1, "r", "A" },
	{ 0xb2, "r", "AK" },
	{ 0xb3, "qOa", "ST" },
	{ 0xb4, "qOa", "ST" },
	{ 0xb6, "qLsp", "SV" },
	{ 0xb7, "qOsp", "SV" },
	{ 0xc0, "Op", "X" },
	{ 0xc1, "Op", "X" },
	{ 0xc2, "O", "XYZ" },
	{ 0xc3, "Op", "X" },
	{ 0xc4, "O", "X" },
	{ 0xc5, "O", "XY" },
	{ 0xc6, "Op", "XY" },
	{ 0xc7, "O", "XY" },
	{ 0xc8, "O", "XYZGH" },
	{ 0xc9, "Op", "XG" },
	{ 0xcb, "Op", "XE" },
	{ 0xcc, "Op", "X" },
	{ 0xcd, "O", "XYZ" },
	{ 0xce, "O", "XYZ" },
	{ 0xcf, "Op", "X" },
	{ 0xd2, "O", "XYZ" },
	{ 0xd5, "O", "XY" },
	{ 0xd8, "O", "XYZGH" },
	{ 0xde, "O", "XYZ" },
};

static const struct spec_row *spec_row(u8 opcode)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(spec_rows); i++)
		if (spec_rows[i].opcode == opcode)
			return &spec_rows[i];
	return NULL;
}

static bool row_has(const struct spec_row *row, char header)
{
	return strchr(row->headers, header);
}

static u32 row_flags(const struct spec_row *row)
{
	static const struct {
		char letter;
		u32 flag;
	} what[] = {
		{ 'q', NHCA_OPF_REQUEST }, { 'r', NHCA_OPF_RESPONSE },
		{ 'F', NHCA_OPF_FIRST }, { 'M', NHCA_OPF_MIDDLE },
		{ 'L', NHCA_OPF_LAST }, { 'O', NHCA_OPF_FIRST | NHCA_OPF_LAST },
		{ 's', NHCA_OPF_SEND }, { 'w', NHCA_OPF_WRITE },
		{ 'g', NHCA_OPF_READ }, { 'a', NHCA_OPF_ATOMIC },
		{ 'd', NHCA_OPF_READ_RESP }, { 'p', NHCA_OPF_PAYLOAD },
		{ 'f', NHCA_OPF_FLUSH }, { 'W', NHCA_OPF_ATOMIC_WRITE },
	}, headers[] = {
		{ 'D', NHCA_OPF_DETH }, { 'R', NHCA_OPF_RETH },
		{ 'T', NHCA_OPF_ATOMIC_ETH }, { 'A', NHCA_OPF_AETH },
		{ 'K', NHCA_OPF_ATOMIC_ACK_ETH }, { 'I', NHCA_OPF_IMMDT },
		{ 'V', NHCA_OPF_IETH }, { 'X', NHCA_OPF_RXETH },
		{ 'F', NHCA_OPF_FETH }, { 'S', NHCA_OPF_XRCETH },
	};
	u32 flags = 0;
	int i;

	for (i = 0; i < ARRAY_SIZE(what); i++)
		if (strchr(row->what, what[i].letter))
			flags |= what[i].flag;
	for (i = 0; i < ARRAY_SIZE(headers); i++)
		if (row_has(row, headers[i].letter))
			flags |= headers[i].flag;
	return flags;
}

static unsigned int row_len(const struct spec_row *row)
{
	return 12 + 8 * row_has(row, 'D') + 16 * row_has(row, 'R') + 28 * row_has(row, 'T') +
	       4 * row_has(row, 'A') + 8 * row_has(row, 'K') + 4 * row_has(row, 'I') +
	       4 * row_has(row, 'V') + 4 * row_has(row, 'F') +
	       4 * row_has(row, 'S') + 16 * row_has(row, 'C') + 64 * row_has(row, 'X') +
	       8 * row_has(row, 'Y') + 8 * row_has(row, 'Z') + 16 * row_has(row, 'G') +
	       24 * row_has(row, 'H') + 4 * row_has(row, 'E');
}

/* The flags and the header length of each opcode agree with the table in letters. */
static void wire_opcode_table(struct kunit *test)
{
	unsigned int opcode;

	for (opcode = 0; opcode < 256; opcode++) {
		const struct spec_row *row = spec_row(opcode);
		const struct nhca_opinfo *info = nhca_opinfo(opcode);

		KUNIT_ASSERT_EQ_MSG(test, !!info, !!row, "opcode %#x", opcode);
		if (!info)
			continue;
		KUNIT_EXPECT_EQ_MSG(test, info->flags, row_flags(row), "opcode %#x", opcode);
		KUNIT_EXPECT_EQ_MSG(test, (unsigned int)info->hdr_len, row_len(row),
				    "opcode %#x", opcode);
		KUNIT_EXPECT_LE(test, (unsigned int)info->hdr_len, NHCA_HDRS_MAX);
		KUNIT_ASSERT_NOT_NULL(test, info->name);
		KUNIT_EXPECT_GT(test, strlen(info->name), 0);
	}
}

/*
 * Set lengths in the RXETH that agree with the packet. rxeth_test.c tests lengths that do not
 * agree.
 */
static void fit_rxeth(struct nhca_hdr *h, unsigned int payload)
{
	h->rx.version = 0;
	h->rx.notify &= 3;
	/*
	 * a third-party transfer may notify the target and the manager, but not the source of the
	 * bytes
	 */
	if (row_has(spec_row(h->opcode), 'G'))
		h->rx.notify = (h->rx.notify & NHCA_RX_NOTIFY_TARGET) | NHCA_RX_NOTIFY_THIRD;
	h->rx.status = 0;
	h->rx.src_channel &= 0xffffff;
	h->rx.length = payload;
	h->rx.offset = 0;
	h->rx.segment = 1024;
	/* the payload of a status is a bitmap, not bytes of the transfer */
	h->rx.total = h->opcode == 0xc6 ? 1 << 20 : payload;
	h->rx.part = h->rx.total;
	/* 0xcc and 0xcf are payload for frames, in which the PVO must be the offset: here 0 */
	if (h->opcode == 0xcc || h->opcode == 0xcf)
		h->rx.pvo = 0;
	/* a sum of aligned bf16 */
	if (h->opcode == 0xcb) {
		h->rx.op = 1;
		h->rx.type = 7;
		h->rx.pvo &= ~1ull;
	}
}

static void random_hdr(struct rnd_state *rnd, struct nhca_hdr *h, u8 opcode)
{
	prandom_bytes_state(rnd, h, sizeof(*h));
	h->info = NULL;
	h->opcode = opcode;
	h->solicited = prandom_u32_state(rnd) & 1;
	h->migreq = prandom_u32_state(rnd) & 1;
	h->ackreq = prandom_u32_state(rnd) & 1;
	h->rx.again = prandom_u32_state(rnd) & 1;
	h->rx.half = opcode == 0xcc || opcode == 0xcf;
	h->fecn = prandom_u32_state(rnd) & 1;
	h->becn = prandom_u32_state(rnd) & 1;
	/* an element of an accumulate has at least 2 bytes */
	h->pad &= opcode == 0xcb ? 2 : 3;
	h->caps &= 0x3f;
	h->qpn &= 0xffffff;
	h->psn &= 0xffffff;
	h->src_qpn &= 0xffffff;
	h->srqn &= 0xffffff;
	h->msn &= 0xffffff;
	h->flush_type &= 0xf;
	h->flush_level &= 3;
	if (!strchr(spec_row(opcode)->what, 'p'))
		h->pad = 0;
}

static void same(struct kunit *test, u8 opcode, const char *field, u64 in, u64 out)
{
	KUNIT_EXPECT_EQ_MSG(test, in, out, "%s of opcode %#x", field, opcode);
}

static void expect_same(struct kunit *test, const struct nhca_hdr *a, const struct nhca_hdr *b)
{
	const struct spec_row *row = spec_row(a->opcode);

	same(test, a->opcode, "opcode", a->opcode, b->opcode);
	same(test, a->opcode, "solicited", a->solicited, b->solicited);
	same(test, a->opcode, "migreq", a->migreq, b->migreq);
	same(test, a->opcode, "pad", a->pad, b->pad);
	same(test, a->opcode, "pkey", a->pkey, b->pkey);
	same(test, a->opcode, "qpn", a->qpn, b->qpn);
	same(test, a->opcode, "psn", a->psn, b->psn);
	same(test, a->opcode, "ackreq", a->ackreq, b->ackreq);
	same(test, a->opcode, "fecn", a->fecn, b->fecn);
	same(test, a->opcode, "becn", a->becn, b->becn);
	same(test, a->opcode, "caps", a->caps, b->caps);
	if (row_has(row, 'D')) {
		same(test, a->opcode, "qkey", a->qkey, b->qkey);
		same(test, a->opcode, "src_qpn", a->src_qpn, b->src_qpn);
	}
	if (row_has(row, 'R') || row_has(row, 'T')) {
		same(test, a->opcode, "va", a->va, b->va);
		same(test, a->opcode, "rkey", a->rkey, b->rkey);
	}
	if (row_has(row, 'R'))
		same(test, a->opcode, "dmalen", a->dmalen, b->dmalen);
	if (row_has(row, 'T')) {
		same(test, a->opcode, "swap_add", a->swap_add, b->swap_add);
		same(test, a->opcode, "compare", a->compare, b->compare);
	}
	if (row_has(row, 'A')) {
		same(test, a->opcode, "syndrome", a->syndrome, b->syndrome);
		same(test, a->opcode, "msn", a->msn, b->msn);
	}
	if (row_has(row, 'K'))
		same(test, a->opcode, "orig", a->orig, b->orig);
	if (row_has(row, 'I'))
		KUNIT_EXPECT_EQ(test, (__force u32)a->imm, (__force u32)b->imm);
	if (row_has(row, 'V'))
		same(test, a->opcode, "inv_rkey", a->inv_rkey, b->inv_rkey);
	if (row_has(row, 'S'))
		same(test, a->opcode, "srqn", a->srqn, b->srqn);
	if (row_has(row, 'F')) {
		same(test, a->opcode, "flush_type", a->flush_type, b->flush_type);
		same(test, a->opcode, "flush_level", a->flush_level, b->flush_level);
	}
}

/*
 * Decoding gives the random headers that were encoded. The buffer has exactly the size of the
 * headers, so that KASAN reports an access beyond it.
 */
static void wire_round_trip(struct kunit *test)
{
	struct rnd_state rnd;
	int i, round;

	prandom_seed_state(&rnd, 4791);
	for (i = 0; i < ARRAY_SIZE(spec_rows); i++) {
		u8 opcode = spec_rows[i].opcode;
		unsigned int len = row_len(&spec_rows[i]);

		for (round = 0; round < 50; round++) {
			bool payload = strchr(spec_rows[i].what, 'p') && round & 1;
			unsigned int total = len + 4 + (payload ? 64 : 0);
			u8 *p = kmalloc(len, GFP_KERNEL);
			struct nhca_hdr in, out;

			KUNIT_ASSERT_NOT_NULL(test, p);
			memset(p, 0xa5, len);
			random_hdr(&rnd, &in, opcode);
			if (!payload)
				in.pad = 0;
			fit_rxeth(&in, payload ? 64 - in.pad : 0);
			KUNIT_EXPECT_EQ(test, nhca_hdr_encode(&in, p), len);

			prandom_bytes_state(&rnd, &out, sizeof(out));
			KUNIT_EXPECT_EQ_MSG(test, nhca_hdr_decode(&out, p, len, total),
					    NHCA_DECODE_OK, "opcode %#x", opcode);
			kfree(p);
			KUNIT_ASSERT_PTR_EQ(test, out.info, nhca_opinfo(opcode));
			expect_same(test, &in, &out);
			KUNIT_EXPECT_EQ(test, nhca_hdr_payload(&out, total),
					payload ? 64 - out.pad : 0);
		}
	}
}

/*
 * Reserved bits are encoded as zeros, even if a field of struct nhca_hdr has more bits set than its
 * field on the wire has.
 */
static void wire_reserved_bits_are_zero(struct kunit *test)
{
	struct nhca_hdr h;
	u8 p[NHCA_HDRS_MAX];
	int i;

	for (i = 0; i < ARRAY_SIZE(spec_rows); i++) {
		/* set all bits, more than the fields on the wire have */
		memset(&h, 0xff, sizeof(h));
		h.opcode = spec_rows[i].opcode;
		h.solicited = true;
		h.migreq = true;
		h.fecn = true;
		h.becn = true;
		h.ackreq = true;
		h.rx.again = true;
		nhca_hdr_encode(&h, p);
		KUNIT_EXPECT_EQ(test, p[1], 0xf0);	/* header version 0 */
		KUNIT_EXPECT_EQ(test, p[8], 0x80);
		if (row_has(&spec_rows[i], 'D'))
			KUNIT_EXPECT_EQ(test, p[16], 0);
		if (row_has(&spec_rows[i], 'S'))
			KUNIT_EXPECT_EQ(test, p[12], 0);
		if (row_has(&spec_rows[i], 'F')) {
			KUNIT_EXPECT_NULL(test, memchr_inv(p + 12, 0, 3));
			KUNIT_EXPECT_EQ(test, p[15], 0x3f);
		}
		if (row_has(&spec_rows[i], 'C'))
			KUNIT_EXPECT_NULL(test, memchr_inv(p + 12, 0, 16));
		/*
		 * with a GID and in a notice (0xc4) the bit means "notify the manager"; elsewhere
		 * the bit is reserved
		 */
		if (row_has(&spec_rows[i], 'X') && !row_has(&spec_rows[i], 'G') && h.opcode != 0xc4)
			KUNIT_EXPECT_EQ(test, p[12 + 40] & 0x08, 0);
	}
}

/* Packets written by hand from figures of the specification, and the fields of these packets. */
static const struct wire_sample {
	struct nhca_hdr h;
	unsigned int len;
	u8 bytes[NHCA_HDRS_MAX];
} wire_samples[] = {
	{
		.h = { .opcode = 0x0b, .solicited = true, .migreq = true, .pad = 1,
		       .pkey = 0x8001, .fecn = true, .caps = 0x2a, .qpn = 0x112233,
		       .ackreq = true, .psn = 0xabcdef, .va = 0x0123456789abcdefULL,
		       .rkey = 0x55667788, .dmalen = 0x00010203,
		       .imm = cpu_to_be32(0xcafe0102) },
		.len = 32,
		.bytes = { 0x0b, 0xd0, 0x80, 0x01, 0xaa, 0x11, 0x22, 0x33,
			   0x80, 0xab, 0xcd, 0xef,
			   0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef,
			   0x55, 0x66, 0x77, 0x88, 0x00, 0x01, 0x02, 0x03,
			   0xca, 0xfe, 0x01, 0x02 },
	}, {
		.h = { .opcode = 0x16, .pad = 3, .pkey = 0xffff, .becn = true,
		       .qpn = 0x000011, .psn = 1, .inv_rkey = 0x01020304 },
		.len = 16,
		.bytes = { 0x16, 0x30, 0xff, 0xff, 0x40, 0x00, 0x00, 0x11,
			   0x00, 0x00, 0x00, 0x01, 0x01, 0x02, 0x03, 0x04 },
	}, {
		.h = { .opcode = 0x13, .migreq = true, .pkey = 0xffff, .qpn = 0x17,
		       .ackreq = true, .psn = 0x136c6e, .va = 0x55d41199d000ULL,
		       .rkey = 0x8d6, .swap_add = 0x1122334455667788ULL,
		       .compare = 0x99aabbccddeeff00ULL },
		.len = 40,
		.bytes = { 0x13, 0x40, 0xff, 0xff, 0x00, 0x00, 0x00, 0x17,
			   0x80, 0x13, 0x6c, 0x6e,
			   0x00, 0x00, 0x55, 0xd4, 0x11, 0x99, 0xd0, 0x00,
			   0x00, 0x00, 0x08, 0xd6,
			   0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88,
			   0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff, 0x00 },
	}, {
		.h = { .opcode = 0x12, .migreq = true, .pkey = 0xffff, .qpn = 0x17,
		       .psn = 0x136c6e, .syndrome = 0x1f, .msn = 1,
		       .orig = 0x5b9130cac836c1d7ULL },
		.len = 24,
		.bytes = { 0x12, 0x40, 0xff, 0xff, 0x00, 0x00, 0x00, 0x17,
			   0x00, 0x13, 0x6c, 0x6e, 0x1f, 0x00, 0x00, 0x01,
			   0x5b, 0x91, 0x30, 0xca, 0xc8, 0x36, 0xc1, 0xd7 },
	}, {
		.h = { .opcode = 0x65, .solicited = true, .pkey = 0x7fff, .qpn = 0x16,
		       .psn = 0x9aab56, .qkey = 0x11111112, .src_qpn = 0x654321,
		       .imm = cpu_to_be32(7) },
		.len = 24,
		.bytes = { 0x65, 0x80, 0x7f, 0xff, 0x00, 0x00, 0x00, 0x16,
			   0x00, 0x9a, 0xab, 0x56,
			   0x11, 0x11, 0x11, 0x12, 0x00, 0x65, 0x43, 0x21,
			   0x00, 0x00, 0x00, 0x07 },
	}, {
		/* FLUSH of a range, global: FETH before RETH */
		.h = { .opcode = 0x1c, .migreq = true, .pkey = 0xffff, .qpn = 0x17,
		       .ackreq = true, .psn = 0x136c6f, .flush_type = 1, .flush_level = 1,
		       .va = 0x55d41199d000ULL, .rkey = 0x8d6, .dmalen = 0x1000 },
		.len = 32,
		.bytes = { 0x1c, 0x40, 0xff, 0xff, 0x00, 0x00, 0x00, 0x17,
			   0x80, 0x13, 0x6c, 0x6f, 0x00, 0x00, 0x00, 0x11,
			   0x00, 0x00, 0x55, 0xd4, 0x11, 0x99, 0xd0, 0x00,
			   0x00, 0x00, 0x08, 0xd6, 0x00, 0x00, 0x10, 0x00 },
	}, {
		.h = { .opcode = 0x1d, .migreq = true, .pkey = 0xffff, .qpn = 0x17,
		       .ackreq = true, .psn = 0x136c70, .va = 0x55d41199d008ULL,
		       .rkey = 0x8d6, .dmalen = 8 },
		.len = 28,
		.bytes = { 0x1d, 0x40, 0xff, 0xff, 0x00, 0x00, 0x00, 0x17,
			   0x80, 0x13, 0x6c, 0x70,
			   0x00, 0x00, 0x55, 0xd4, 0x11, 0x99, 0xd0, 0x08,
			   0x00, 0x00, 0x08, 0xd6, 0x00, 0x00, 0x00, 0x08 },
	}, {
		/* WRITE Only of XRC: XRCETH before RETH */
		.h = { .opcode = 0xaa, .migreq = true, .pkey = 0xffff, .qpn = 0x17,
		       .ackreq = true, .psn = 0x136c71, .srqn = 0x0a0b0c,
		       .va = 0x55d41199d010ULL, .rkey = 0x8d6, .dmalen = 4 },
		.len = 32,
		.bytes = { 0xaa, 0x40, 0xff, 0xff, 0x00, 0x00, 0x00, 0x17,
			   0x80, 0x13, 0x6c, 0x71, 0x00, 0x0a, 0x0b, 0x0c,
			   0x00, 0x00, 0x55, 0xd4, 0x11, 0x99, 0xd0, 0x10,
			   0x00, 0x00, 0x08, 0xd6, 0x00, 0x00, 0x00, 0x04 },
	}, {
		.h = { .opcode = 0x81, .migreq = true, .pkey = 0xffff, .becn = true,
		       .qpn = 0x18 },
		.len = 28,
		.bytes = { 0x81, 0x40, 0xff, 0xff, 0x40, 0x00, 0x00, 0x18 },
	},
};

/*
 * The packets written by hand are decoded to their fields, and the fields are encoded to the
 * packets.
 */
static void wire_known_bytes(struct kunit *test)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(wire_samples); i++) {
		const struct wire_sample *s = &wire_samples[i];
		u8 p[NHCA_HDRS_MAX];
		struct nhca_hdr h;

		KUNIT_EXPECT_EQ(test, nhca_hdr_encode(&s->h, p), s->len);
		KUNIT_EXPECT_EQ_MSG(test, memcmp(p, s->bytes, s->len), 0, "%*ph for %*ph",
				    s->len, p, s->len, s->bytes);
		KUNIT_EXPECT_EQ(test, nhca_hdr_decode(&h, s->bytes, s->len,
						      s->len + 4 + (s->h.pad ? 4 : 0)),
				NHCA_DECODE_OK);
		expect_same(test, &s->h, &h);
	}
}

/*
 * A packet or buffer that ends inside the headers is refused with NHCA_DECODE_SHORT, and nothing
 * behind its end is read.
 */
static void wire_truncated_is_short(struct kunit *test)
{
	struct nhca_hdr in = {}, out;
	u8 full[NHCA_HDRS_MAX];
	unsigned int len, cut;
	int i;

	for (i = 0; i < ARRAY_SIZE(spec_rows); i++) {
		in.opcode = spec_rows[i].opcode;
		fit_rxeth(&in, 0);
		len = nhca_hdr_encode(&in, full);
		for (cut = 0; cut < len; cut++) {
			u8 *p = kmemdup(full, cut, GFP_KERNEL);

			KUNIT_ASSERT_NOT_NULL(test, p);
			/*
			 * first the buffer ends early; then buffer and packet end early; then only
			 * the packet ends early
			 */
			KUNIT_EXPECT_EQ_MSG(test, nhca_hdr_decode(&out, p, cut, len + 4),
					    NHCA_DECODE_SHORT, "opcode %#x, %u of %u bytes",
					    in.opcode, cut, len);
			KUNIT_EXPECT_EQ(test, nhca_hdr_decode(&out, p, cut, cut),
					NHCA_DECODE_SHORT);
			KUNIT_EXPECT_EQ(test, nhca_hdr_decode(&out, p, len, cut),
					NHCA_DECODE_SHORT);
			kfree(p);
		}
		KUNIT_EXPECT_EQ(test, nhca_hdr_decode(&out, full, len, len + 4), NHCA_DECODE_OK);
	}
}

/*
 * A packet of another transport version is refused with NHCA_DECODE_VERSION, whatever its opcode.
 */
static void wire_other_version(struct kunit *test)
{
	u8 p[NHCA_HDRS_MAX] = {};
	unsigned int opcode, version;
	struct nhca_hdr h;

	for (opcode = 0; opcode < 256; opcode++) {
		p[0] = opcode;
		for (version = 1; version < 16; version++) {
			p[1] = 0xf0 | version;
			KUNIT_EXPECT_EQ(test, nhca_hdr_decode(&h, p, sizeof(p), 1024),
					NHCA_DECODE_VERSION);
		}
	}
}

/* An opcode that is defined neither by the specification nor for channels is refused. */
static void wire_unknown_opcode(struct kunit *test)
{
	u8 p[NHCA_HDRS_MAX] = {};
	unsigned int opcode, unknown = 0;
	struct nhca_hdr h;

	for (opcode = 0; opcode < 256; opcode++) {
		if (spec_row(opcode))
			continue;
		unknown++;
		p[0] = opcode;
		KUNIT_EXPECT_EQ_MSG(test, nhca_hdr_decode(&h, p, sizeof(p), 1024),
				    NHCA_DECODE_OPCODE, "opcode %#x", opcode);
	}
	KUNIT_EXPECT_EQ(test, unknown, 256 - ARRAY_SIZE(spec_rows));
}

/*
 * After the headers, a packet must have room for pad and ICRC, and the room must be a multiple of 4
 * bytes. If the opcode allows no payload, there must be exactly the 4 bytes of the ICRC.
 */
static void wire_room_for_pad_and_icrc(struct kunit *test)
{
	struct nhca_hdr in = {}, out;
	unsigned int len, behind, pad;
	u8 p[NHCA_HDRS_MAX];
	int i;

	for (i = 0; i < ARRAY_SIZE(spec_rows); i++) {
		bool payload = strchr(spec_rows[i].what, 'p');

		for (pad = 0; pad < 4; pad++) {
			in.opcode = spec_rows[i].opcode;
			in.pad = pad;
			for (behind = 0; behind < 40; behind++) {
				bool fits = payload ? behind >= pad + 4 && behind % 4 == 0 :
						      behind == 4 && !pad;
				/* an element of an accumulate has at least 2 bytes */
				bool whole = in.opcode != 0xcb || pad % 2 == 0;
				enum nhca_decode_err err;

				fit_rxeth(&in, fits ? behind - 4 - pad : 0);
				len = nhca_hdr_encode(&in, p);
				err = nhca_hdr_decode(&out, p, len, len + behind);
				KUNIT_EXPECT_EQ_MSG(test, err,
						    fits && whole ? NHCA_DECODE_OK :
								    NHCA_DECODE_LENGTH,
						    "opcode %#x, pad %u, %u bytes after headers",
						    in.opcode, pad, behind);
				if (err == NHCA_DECODE_OK)
					KUNIT_EXPECT_EQ(test, nhca_hdr_payload(&out, len + behind),
							behind - 4 - pad);
			}
		}
	}
}

/* The GRH of a UD receive is the IPv6 header, or 20 zeros and the IPv4 header. */
static void wire_grh(struct kunit *test)
{
	u8 ip[40], grh[40];
	int i;

	for (i = 0; i < sizeof(ip); i++)
		ip[i] = 0x40 + i;
	memset(grh, 0xa5, sizeof(grh));
	nhca_grh_fill4(grh, (const struct iphdr *)ip);
	KUNIT_EXPECT_NULL(test, memchr_inv(grh, 0, 20));
	KUNIT_EXPECT_EQ(test, memcmp(grh + 20, ip, 20), 0);

	nhca_grh_fill6(grh, (const struct ipv6hdr *)ip);
	KUNIT_EXPECT_EQ(test, memcmp(grh, ip, 40), 0);
}

static struct kunit_case wire_cases[] = {
	KUNIT_CASE(wire_opcode_table),
	KUNIT_CASE(wire_round_trip),
	KUNIT_CASE(wire_reserved_bits_are_zero),
	KUNIT_CASE(wire_known_bytes),
	KUNIT_CASE(wire_truncated_is_short),
	KUNIT_CASE(wire_other_version),
	KUNIT_CASE(wire_unknown_opcode),
	KUNIT_CASE(wire_room_for_pad_and_icrc),
	KUNIT_CASE(wire_grh),
	{}
};

static struct kunit_suite wire_suite = {
	.name = "nhca_wire",
	.test_cases = wire_cases,
};

kunit_test_suite(wire_suite);
