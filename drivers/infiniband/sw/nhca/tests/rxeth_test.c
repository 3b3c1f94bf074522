// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit: the RXETH: the position of each field on the wire, and which lengths are accepted.
 * reference_is_packet() checks lengths independently: it splits the transfer into packets as a
 * sender does.
 */
#include <kunit/test.h>
#include <linux/prandom.h>
#include "../wire/bth.h"
#include "../wire/element.h"

/* Written by hand from the figure in Documentation/rcxt.rst. No two fields have the same value. */
static const u8 rxeth_bytes[NHCA_RXETH_LEN + 16] = {
	0x11, 0x12, 0x13, 0x14,				/* channel key */
	0x21, 0x22, 0x23, 0x24,				/* job id */
	0x31, 0x32, 0x33, 0x34, 0x41, 0x42, 0x43, 0x44,	/* rCxt: index, key */
	0x51, 0x52, 0x53, 0x54,				/* tid */
	0x00, 0x61, 0x62, 0x63,				/* total */
	0x00, 0x71, 0x72, 0x73,				/* offset */
	0x81, 0x82, 0x91, 0x92,				/* length, segment */
	0xa1, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xa7, 0xa8,	/* PVO */
	0x06, 0xb1, 0xb2, 0xb3,		/* version, again, notify; source channel */
	0xc1, 0xc2, 0xc3, 0xc4,				/* key of the source channel */
	0xd1, 0xd2, 0xd3, 0xd4, 0xe1, 0xe2, 0xe3, 0xe4,	/* rCxt of the source channel */
	0xf1, 0xf2, 0xf3, 0xf4, 0xf5, 0xf6, 0xf7, 0xf8,	/* cookie */
	0x03, 0x00, 0x00, 0x00, 0x00, 0x01, 0x02, 0x04,	/* after the RXETH: 8 bytes, */
	0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 0x19, 0x1a,	/* or 16 */
};

/* Decoding and encoding agree with rxeth_bytes[] for each field and the opcodes in opcodes[]. */
static void rxeth_known_bytes(struct kunit *test)
{
	static const u8 opcodes[] = {
		NHCA_RX_PACKET, NHCA_RX_WRITE, NHCA_RX_READ_REQUEST, NHCA_RX_READ_DATA,
		NHCA_RX_NOTICE, NHCA_RX_PROBE, NHCA_RX_STATUS, NHCA_RX_FENCE,
		NHCA_RX_READ_CHALLENGE, NHCA_RX_PROBE_CHALLENGE, NHCA_RX_HALF_REQUEST,
	};
	u8 p[sizeof(rxeth_bytes)];
	struct nhca_rxeth x;
	unsigned int len;
	int i;

	for (i = 0; i < ARRAY_SIZE(opcodes); i++) {
		bool status = opcodes[i] == NHCA_RX_STATUS;
		bool read = opcodes[i] == NHCA_RX_READ_REQUEST ||
			    opcodes[i] == NHCA_RX_READ_CHALLENGE ||
			    opcodes[i] == NHCA_RX_HALF_REQUEST;
		bool token = opcodes[i] == NHCA_RX_PROBE || opcodes[i] == NHCA_RX_FENCE ||
			     opcodes[i] == NHCA_RX_PROBE_CHALLENGE;

		memset(&x, 0xa5, sizeof(x));
		nhca_rxeth_decode(&x, opcodes[i], rxeth_bytes);
		KUNIT_EXPECT_EQ(test, x.key, 0x11121314);
		KUNIT_EXPECT_EQ(test, x.job, 0x21222324);
		KUNIT_EXPECT_EQ(test, x.rcxt.index, 0x31323334);
		KUNIT_EXPECT_EQ(test, x.rcxt.key, 0x41424344);
		KUNIT_EXPECT_EQ(test, x.tid, 0x51525354);
		KUNIT_EXPECT_EQ(test, x.total, 0x616263);
		KUNIT_EXPECT_EQ(test, x.offset, 0x717273);
		KUNIT_EXPECT_EQ(test, x.length, 0x8182);
		KUNIT_EXPECT_EQ(test, x.segment, 0x9192);
		KUNIT_EXPECT_EQ(test, x.pvo, 0xa1a2a3a4a5a6a7a8ULL);
		KUNIT_EXPECT_EQ(test, x.version, 0);
		KUNIT_EXPECT_EQ(test, x.notify, NHCA_RX_NOTIFY_TARGET);
		KUNIT_EXPECT_EQ(test, x.src_channel, 0xb1b2b3);
		KUNIT_EXPECT_EQ(test, x.src_key, 0xc1c2c3c4);
		KUNIT_EXPECT_EQ(test, x.src_rcxt.index, 0xd1d2d3d4);
		KUNIT_EXPECT_EQ(test, x.src_rcxt.key, 0xe1e2e3e4);
		KUNIT_EXPECT_EQ(test, x.cookie, 0xf1f2f3f4f5f6f7f8ULL);
		KUNIT_EXPECT_EQ(test, x.status, status ? 3 : 0);
		KUNIT_EXPECT_EQ(test, x.have, status ? 0x00010204 : 0);
		KUNIT_EXPECT_EQ(test, x.reply_pvo, read ? 0x0300000000010204ULL : 0);
		KUNIT_EXPECT_EQ(test, x.token, read ? 0x131415161718191aULL :
					       token ? 0x0300000000010204ULL : 0);
		KUNIT_EXPECT_TRUE(test, x.again);

		memset(p, 0xa5, sizeof(p));
		len = nhca_rxeth_encode(&x, opcodes[i], p);
		KUNIT_EXPECT_EQ(test, len, read ? 80 : status || token ? 72 : 64);
		KUNIT_EXPECT_EQ(test, NHCA_BTH_LEN + len,
				(unsigned int)nhca_opinfo(opcodes[i])->hdr_len);
		KUNIT_EXPECT_EQ(test, memcmp(p, rxeth_bytes, len), 0);
	}
}

/*
 * Expect that nhca_rxeth_stepped() accepts @p as headers of the packet that is @n packets after
 * @first, and refuses the RXETH if any of its bits differs.
 */
static void expect_stepped(struct kunit *test, const struct nhca_hdr *first, u32 n, u8 *p)
{
	u8 before[NHCA_HDRS_MAX];
	u32 bit;

	nhca_hdr_encode(first, before);
	p += NHCA_BTH_LEN;
	KUNIT_EXPECT_TRUE(test, nhca_rxeth_stepped(&first->rx, n, before + NHCA_BTH_LEN, p));
	for (bit = 0; bit < 8 * NHCA_RXETH_LEN; bit++) {
		p[bit / 8] ^= BIT(bit % 8);
		KUNIT_EXPECT_FALSE_MSG(test, nhca_rxeth_stepped(&first->rx, n,
								before + NHCA_BTH_LEN, p),
				       "bit %u", bit);
		p[bit / 8] ^= BIT(bit % 8);
	}
}

/*
 * nhca_hdr_step() turns the bytes of the first packet's headers into the bytes that
 * nhca_hdr_encode() gives for a later packet. The PSN wraps within the packets, and the PVO has a
 * carry into its upper half.
 */
static void rxeth_step_is_encode(struct kunit *test)
{
	struct nhca_hdr h = {
		.opcode = NHCA_RX_WRITE,
		.psn = NHCA_PSN_MASK - 2,
		.rx = {
			.key = 0x11121314,
			.tid = 9,
			.total = 10 << 20,
			.offset = 8192,
			.length = 4096,
			.segment = 4096,
			.pvo = 0xfffff000,
			.cookie = 0x0123456789abcdefULL,
		},
	};
	u8 stepped[NHCA_HDRS_MAX], p[NHCA_HDRS_MAX];
	struct nhca_hdr first;
	unsigned int len;
	u32 n;

	h.info = nhca_opinfo(h.opcode);
	first = h;
	for (n = 0; n < 64; n++) {
		nhca_hdr_encode(&first, stepped);
		nhca_hdr_step(&first, n, stepped);
		len = nhca_hdr_encode(&h, p);
		KUNIT_EXPECT_EQ(test, memcmp(stepped, p, len), 0);
		expect_stepped(test, &first, n, p);
		h.psn = (h.psn + 1) & NHCA_PSN_MASK;
		h.rx.offset += 4096;
		h.rx.pvo += 4096;
	}
}

/*
 * An RXETH of another version is reported before its lengths are checked, because the other version
 * may have other lengths.
 */
static void rxeth_other_version(struct kunit *test)
{
	struct nhca_hdr in = { .opcode = NHCA_RX_PROBE, .rx.segment = 64 }, out;
	u8 p[NHCA_HDRS_MAX];
	unsigned int len;

	for (in.rx.version = 0; in.rx.version < 16; in.rx.version++) {
		len = nhca_hdr_encode(&in, p);
		KUNIT_EXPECT_EQ(test, nhca_hdr_decode(&out, p, len, len + 4),
				in.rx.version ? NHCA_DECODE_VERSION : NHCA_DECODE_OK);
	}
}

/*
 * Return: true if a sender that splits @total bytes into segments makes a packet with @offset and
 * @length.
 */
static bool reference_is_packet(u32 total, u32 segment, u32 offset, u32 length)
{
	u32 at = 0, n = 0, len;

	if (segment < 64 || segment > 65532 || segment & 3 || total > 16 << 20)
		return false;
	do {
		len = min(segment, total - at);
		if (at == offset && len == length)
			return (total + segment - 1) / segment <= 16384;
		at += len;
		n++;
	} while (at < total && n <= 16384);
	return false;
}

static u32 draw(struct rnd_state *rnd, u32 below)
{
	return prandom_u32_state(rnd) % below;
}

/* Return: @border, a value near @border, a value up to @border, or any value. */
static u32 draw_near(struct rnd_state *rnd, u32 border)
{
	switch (draw(rnd, 4)) {
	case 0:
		return border;
	case 1:
		return border + draw(rnd, 9) - 4;
	case 2:
		return draw(rnd, border + 1);
	default:
		return prandom_u32_state(rnd);
	}
}

/*
 * The lengths of a packet with payload are accepted if and only if a sender makes a packet with
 * these lengths.
 */
static void rxeth_payload_lengths(struct kunit *test)
{
	static const u32 segments[] = { 64, 1024, 1028, 4096, 65532 };
	u32 taken = 0, refused = 0, n;
	struct rnd_state rnd;
	struct nhca_rxeth x;
	bool want;

	prandom_seed_state(&rnd, 0xc1);
	for (n = 0; n < 40000; n++) {
		x = (struct nhca_rxeth) {};
		x.segment = draw(&rnd, 8) ? segments[draw(&rnd, ARRAY_SIZE(segments))] :
					    draw_near(&rnd, 64);
		x.total = draw(&rnd, 8) ? draw(&rnd, 40) * max(x.segment, 1) / 8 :
					  draw_near(&rnd, NHCA_RCXT_MAX_LEN);
		x.offset = draw(&rnd, 8) ? draw(&rnd, 6) * x.segment : draw_near(&rnd, x.total);
		x.length = draw(&rnd, 4) && x.offset <= x.total ?
			   min_t(u32, x.segment, x.total - x.offset) :
			   draw_near(&rnd, x.segment);
		want = reference_is_packet(x.total, x.segment, x.offset, x.length);
		taken += want;
		refused += !want;
		KUNIT_EXPECT_EQ_MSG(test, nhca_rxeth_fits(&x, NHCA_RX_WRITE, x.length), want,
				    "total %u segment %u offset %u length %u", x.total,
				    x.segment, x.offset, x.length);
		KUNIT_EXPECT_EQ(test, nhca_rxeth_fits(&x, NHCA_RX_READ_DATA, x.length), want);
		/* refused: the packet has one byte of payload more or less than its RXETH says */
		KUNIT_EXPECT_FALSE(test, nhca_rxeth_fits(&x, NHCA_RX_WRITE, x.length + 1));
		if (x.length)
			KUNIT_EXPECT_FALSE(test, nhca_rxeth_fits(&x, NHCA_RX_WRITE,
								 x.length - 1));
	}
	KUNIT_EXPECT_GT(test, taken, 10000);
	KUNIT_EXPECT_GT(test, refused, 10000);
}

/*
 * The lengths of packets that are not segments of a transfer are checked: packet mode, requests,
 * notices, probes, fences and statuses.
 */
static void rxeth_other_lengths(struct kunit *test)
{
	/* a transfer of 3 packets, with 1024, 1024 and 100 bytes */
	struct nhca_rxeth x = { .total = 2148, .segment = 1024 };

	/*
	 * packet mode: the packet has the whole transfer, at most NHCA_RX_MAX_PACKET (1984) bytes
	 */
	KUNIT_EXPECT_FALSE(test, nhca_rxeth_fits(&x, NHCA_RX_PACKET, 0));
	x.length = 1984;
	KUNIT_EXPECT_FALSE(test, nhca_rxeth_fits(&x, NHCA_RX_PACKET, 1984));
	x.total = 1984;
	KUNIT_EXPECT_TRUE(test, nhca_rxeth_fits(&x, NHCA_RX_PACKET, 1984));
	x.offset = 1;
	KUNIT_EXPECT_FALSE(test, nhca_rxeth_fits(&x, NHCA_RX_PACKET, 1984));
	x = (struct nhca_rxeth) { .total = 1985, .length = 1985 };
	KUNIT_EXPECT_FALSE(test, nhca_rxeth_fits(&x, NHCA_RX_PACKET, 1985));
	x = (struct nhca_rxeth) {};
	KUNIT_EXPECT_TRUE(test, nhca_rxeth_fits(&x, NHCA_RX_PACKET, 0));

	/*
	 * no payload, and a length that a transfer can have; requests, notices and fences: offset
	 * 0; probes: the offset of any packet
	 */
	x = (struct nhca_rxeth) { .total = 2148, .segment = 1024 };
	KUNIT_EXPECT_TRUE(test, nhca_rxeth_fits(&x, NHCA_RX_READ_REQUEST, 0));
	KUNIT_EXPECT_TRUE(test, nhca_rxeth_fits(&x, NHCA_RX_NOTICE, 0));
	KUNIT_EXPECT_TRUE(test, nhca_rxeth_fits(&x, NHCA_RX_PROBE, 0));
	KUNIT_EXPECT_TRUE(test, nhca_rxeth_fits(&x, NHCA_RX_FENCE, 0));
	x.offset = 1024;
	KUNIT_EXPECT_FALSE(test, nhca_rxeth_fits(&x, NHCA_RX_FENCE, 0));
	KUNIT_EXPECT_FALSE(test, nhca_rxeth_fits(&x, NHCA_RX_READ_REQUEST, 0));
	KUNIT_EXPECT_FALSE(test, nhca_rxeth_fits(&x, NHCA_RX_HALF_REQUEST, 0));
	KUNIT_EXPECT_FALSE(test, nhca_rxeth_fits(&x, NHCA_RX_NOTICE, 0));
	KUNIT_EXPECT_TRUE(test, nhca_rxeth_fits(&x, NHCA_RX_PROBE, 0));
	x.offset = 3072;
	KUNIT_EXPECT_FALSE(test, nhca_rxeth_fits(&x, NHCA_RX_PROBE, 0));
	x = (struct nhca_rxeth) { .total = NHCA_RCXT_MAX_LEN, .segment = 1020 };
	KUNIT_EXPECT_FALSE(test, nhca_rxeth_fits(&x, NHCA_RX_READ_REQUEST, 0));
	x.segment = 1024;
	KUNIT_EXPECT_TRUE(test, nhca_rxeth_fits(&x, NHCA_RX_READ_REQUEST, 0));

	/* accumulates: whole aligned elements, of a type that has the operation */
	x = (struct nhca_rxeth) {
		.total = 2064, .segment = 1024, .length = 1024, .pvo = 1 << 13,
		.op = NHCA_ELEM_SUM, .type = NHCA_ELEM_F64,
	};
	KUNIT_EXPECT_TRUE(test, nhca_rxeth_fits(&x, NHCA_RX_ACCUMULATE, 1024));
	x.op = NHCA_ELEM_XOR;
	KUNIT_EXPECT_FALSE(test, nhca_rxeth_fits(&x, NHCA_RX_ACCUMULATE, 1024));
	x.type = NHCA_ELEM_U64;
	KUNIT_EXPECT_TRUE(test, nhca_rxeth_fits(&x, NHCA_RX_ACCUMULATE, 1024));
	x.total -= 4;
	KUNIT_EXPECT_FALSE(test, nhca_rxeth_fits(&x, NHCA_RX_ACCUMULATE, 1024));
	x.type = NHCA_ELEM_U32;
	KUNIT_EXPECT_TRUE(test, nhca_rxeth_fits(&x, NHCA_RX_ACCUMULATE, 1024));
	x.pvo += 2;
	KUNIT_EXPECT_FALSE(test, nhca_rxeth_fits(&x, NHCA_RX_ACCUMULATE, 1024));

	/*
	 * half-receive READ requests: the part consists of whole packets, and each packet fits into
	 * a frame (1984 bytes)
	 */
	x = (struct nhca_rxeth) { .total = 2148, .segment = 1024, .part = 2148 };
	KUNIT_EXPECT_TRUE(test, nhca_rxeth_fits(&x, NHCA_RX_FRAMES_REQUEST, 0));
	KUNIT_EXPECT_TRUE(test, nhca_rxeth_fits(&x, NHCA_RX_FRAMES_CHALLENGE, 0));
	x.part = 1024;
	KUNIT_EXPECT_TRUE(test, nhca_rxeth_fits(&x, NHCA_RX_FRAMES_REQUEST, 0));
	x.part = 1025;
	KUNIT_EXPECT_FALSE(test, nhca_rxeth_fits(&x, NHCA_RX_FRAMES_REQUEST, 0));
	x.part = 0;
	KUNIT_EXPECT_FALSE(test, nhca_rxeth_fits(&x, NHCA_RX_FRAMES_REQUEST, 0));
	x.offset = 2048;
	x.part = 100;
	KUNIT_EXPECT_TRUE(test, nhca_rxeth_fits(&x, NHCA_RX_FRAMES_REQUEST, 0));
	x.part = 1024;
	KUNIT_EXPECT_FALSE(test, nhca_rxeth_fits(&x, NHCA_RX_FRAMES_REQUEST, 0));
	x = (struct nhca_rxeth) { .total = 4000, .segment = 1984, .part = 4000 };
	KUNIT_EXPECT_TRUE(test, nhca_rxeth_fits(&x, NHCA_RX_FRAMES_REQUEST, 0));
	x.segment = 1988;
	KUNIT_EXPECT_FALSE(test, nhca_rxeth_fits(&x, NHCA_RX_FRAMES_REQUEST, 0));

	/*
	 * a status has at most 1984 bytes, and at most one bit for each packet from its offset on:
	 * here first for 16384 packets, then for 8, then for 9
	 */
	x = (struct nhca_rxeth) { .total = NHCA_RCXT_MAX_LEN, .segment = 1024, .length = 1984 };
	KUNIT_EXPECT_TRUE(test, nhca_rxeth_fits(&x, NHCA_RX_STATUS, 1984));
	x.length = 1985;
	KUNIT_EXPECT_FALSE(test, nhca_rxeth_fits(&x, NHCA_RX_STATUS, 1985));
	x.length = 1;
	x.offset = NHCA_RCXT_MAX_LEN - 8 * 1024;
	KUNIT_EXPECT_TRUE(test, nhca_rxeth_fits(&x, NHCA_RX_STATUS, 1));
	x.length = 2;
	KUNIT_EXPECT_FALSE(test, nhca_rxeth_fits(&x, NHCA_RX_STATUS, 2));
	x.offset -= 1024;
	KUNIT_EXPECT_TRUE(test, nhca_rxeth_fits(&x, NHCA_RX_STATUS, 2));
	x.status = NHCA_RX_ST_MAX;
	KUNIT_EXPECT_FALSE(test, nhca_rxeth_fits(&x, NHCA_RX_STATUS, 2));
}

/*
 * If the source address of a packet is not verified by a token, the answer is not longer than the
 * packet: a notice for a write of no bytes, a status without a bitmap, a challenge. Otherwise an
 * attacker could forge the source address, and the victim would get more bytes than the attacker
 * sends.
 */
static void rxeth_answers_are_short(struct kunit *test)
{
	static const struct {
		u8 question, answer;
	} pairs[] = {
		{ NHCA_RX_WRITE, NHCA_RX_NOTICE },
		{ NHCA_RX_READ_DATA, NHCA_RX_NOTICE },
		{ NHCA_RX_PROBE, NHCA_RX_STATUS },
		{ NHCA_RX_FENCE, NHCA_RX_STATUS },
		{ NHCA_RX_READ_REQUEST, NHCA_RX_READ_CHALLENGE },
		{ NHCA_RX_PROBE, NHCA_RX_PROBE_CHALLENGE },
		{ NHCA_RX_READ_CHALLENGE, NHCA_RX_READ_REQUEST },
		{ NHCA_RX_PROBE_CHALLENGE, NHCA_RX_PROBE },
		{ NHCA_RX_THIRD_WRITE, NHCA_RX_NOTICE },
		{ NHCA_RX_HALF_WRITE, NHCA_RX_NOTICE },
		{ NHCA_RX_ACCUMULATE, NHCA_RX_NOTICE },
		{ NHCA_RX_THIRD_REQUEST, NHCA_RX_THIRD_CHALLENGE },
		{ NHCA_RX_THIRD_REQUEST, NHCA_RX_STATUS },
		{ NHCA_RX_THIRD_CHALLENGE, NHCA_RX_THIRD_REQUEST },
		{ NHCA_RX_FRAMES_REQUEST, NHCA_RX_FRAMES_CHALLENGE },
		{ NHCA_RX_FRAMES_CHALLENGE, NHCA_RX_FRAMES_REQUEST },
		{ NHCA_RX_FRAMES_DATA, NHCA_RX_NOTICE },
	};
	int i;

	for (i = 0; i < ARRAY_SIZE(pairs); i++)
		KUNIT_EXPECT_LE_MSG(test, nhca_opinfo(pairs[i].answer)->hdr_len,
				    nhca_opinfo(pairs[i].question)->hdr_len,
				    "%#x, answered by %#x", pairs[i].question, pairs[i].answer);
}

/* Opcodes that are reserved for later use are refused like unknown opcodes. */
static void rxeth_reserved_opcodes(struct kunit *test)
{
	static const u8 reserved[] = {
		NHCA_RX_BROADCAST_WRITE, NHCA_RX_CONDITION,
	};
	u8 p[NHCA_HDRS_MAX] = {};
	struct nhca_hdr h;
	int i;

	for (i = 0; i < ARRAY_SIZE(reserved); i++) {
		p[0] = reserved[i];
		KUNIT_EXPECT_EQ(test, reserved[i] & NHCA_SVC_MASK, NHCA_SVC_MFR);
		KUNIT_EXPECT_EQ(test, nhca_hdr_decode(&h, p, sizeof(p), 1024),
				NHCA_DECODE_OPCODE);
	}
}

static struct kunit_case rxeth_cases[] = {
	KUNIT_CASE(rxeth_known_bytes),
	KUNIT_CASE(rxeth_step_is_encode),
	KUNIT_CASE(rxeth_other_version),
	KUNIT_CASE(rxeth_payload_lengths),
	KUNIT_CASE(rxeth_other_lengths),
	KUNIT_CASE(rxeth_answers_are_short),
	KUNIT_CASE(rxeth_reserved_opcodes),
	{}
};

static struct kunit_suite rxeth_suite = {
	.name = "nhca_rxeth",
	.test_cases = rxeth_cases,
};

kunit_test_suite(rxeth_suite);
