// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit: the invariant CRC, compared with a computation bit by bit, written from IBTA Annex
 * A17.3.3, and with packets that rdma_rxe sent.
 */
#include <kunit/test.h>
#include <linux/prandom.h>
#include <linux/slab.h>
#include "../wire/bth.h"
#include "../wire/icrc.h"
#include "../wire/compat.h"

/*
 * Packets captured from rdma_rxe, from the network header to the ICRC: an RC SEND of 13 bytes, a
 * FetchAdd, a UD SEND of 13 bytes.
 */
static const u8 icrc_rc_v4[] = {
	0x45, 0x00, 0x00, 0x3c, 0x78, 0x08, 0x40, 0x00, 0x40, 0x11, 0xa7, 0x54,
	0xc0, 0xa8, 0x4d, 0x02, 0xc0, 0xa8, 0x4d, 0x01, 0xc1, 0x90, 0x12, 0xb7,
	0x00, 0x28, 0x00, 0x00, 0x04, 0x30, 0xff, 0xff, 0x00, 0x00, 0x00, 0x14,
	0x80, 0xbd, 0xcb, 0x5c, 0x7b, 0x7b, 0x7b, 0x7b, 0x7b, 0x7b, 0x7b, 0x7b,
	0x7b, 0x7b, 0x7b, 0x7b, 0x7b, 0x00, 0x00, 0x00, 0x43, 0x84, 0xb7, 0x5a,
};

static const u8 icrc_atomic_v4[] = {
	0x45, 0x00, 0x00, 0x48, 0x81, 0x53, 0x40, 0x00, 0x40, 0x11, 0x9d, 0xfd,
	0xc0, 0xa8, 0x4d, 0x02, 0xc0, 0xa8, 0x4d, 0x01, 0xc2, 0x11, 0x12, 0xb7,
	0x00, 0x34, 0x00, 0x00, 0x14, 0x00, 0xff, 0xff, 0x00, 0x00, 0x00, 0x17,
	0x80, 0x13, 0x6c, 0x6e, 0x00, 0x00, 0x55, 0xd4, 0x11, 0x99, 0xd0, 0x00,
	0x00, 0x00, 0x08, 0xd6, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x85, 0xf1, 0x79, 0x42,
};

static const u8 icrc_ud_v6[] = {
	0x60, 0x00, 0x00, 0x00, 0x00, 0x30, 0x11, 0x40, 0xfe, 0x80, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x50, 0x54, 0x00, 0xff, 0xfe, 0x77, 0x00, 0x02,
	0xfe, 0x80, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x50, 0x54, 0x00, 0xff,
	0xfe, 0x77, 0x00, 0x01, 0xd0, 0x78, 0x12, 0xb7, 0x00, 0x30, 0x00, 0x00,
	0x64, 0x30, 0xff, 0xff, 0x00, 0x00, 0x00, 0x13, 0x00, 0x8b, 0x45, 0xaa,
	0x11, 0x11, 0x11, 0x11, 0x00, 0x00, 0x00, 0x13, 0x7b, 0x7b, 0x7b, 0x7b,
	0x7b, 0x7b, 0x7b, 0x7b, 0x7b, 0x7b, 0x7b, 0x7b, 0x7b, 0x00, 0x00, 0x00,
	0x61, 0xf4, 0x22, 0xed,
};

static u32 crc_bitwise(u32 crc, const u8 *p, unsigned int len)
{
	int bit;

	while (len--) {
		crc ^= *p++;
		for (bit = 0; bit < 8; bit++)
			crc = crc & 1 ? crc >> 1 ^ 0xedb88320 : crc >> 1;
	}
	return crc;
}

static unsigned int network_len(const u8 *packet)
{
	return packet[0] >> 4 == 4 ? 20 : 40;
}

/* Return: the ICRC by the specification, read from the wire as a little-endian number. */
static u32 reference_icrc(const u8 *packet, unsigned int len)
{
	u8 masked[8 + 128];
	u8 *p = masked + 8;
	unsigned int transport;

	if (WARN_ON(len - 4 > sizeof(masked) - 8))
		return 0;
	transport = network_len(packet);
	memset(masked, 0xff, 8);
	memcpy(p, packet, len - 4);
	if (transport == 20) {
		p[1] = 0xff;			/* type of service */
		p[8] = 0xff;			/* time to live */
		p[10] = 0xff;			/* checksum */
		p[11] = 0xff;
	} else {
		p[0] |= 0x0f;			/* traffic class, flow label */
		memset(p + 1, 0xff, 3);
		p[7] = 0xff;			/* hop limit */
	}
	memset(p + transport + 6, 0xff, 2);	/* UDP checksum */
	p[transport + 8 + 4] = 0xff;		/* FECN, BECN, reserved */
	return ~crc_bitwise(~0, masked, 8 + len - 4);
}

/* Return: the ICRC of @packet, computed by the functions of the driver. */
static u32 driver_icrc(const u8 *packet, unsigned int len)
{
	unsigned int headers = network_len(packet) + 8 + NHCA_BTH_LEN;
	u32 crc;
	__le32 icrc;

	crc = network_len(packet) == 20 ? nhca_icrc_start4(packet) : nhca_icrc_start6(packet);
	crc = nhca_icrc_more(crc, packet + headers, len - headers - 4);
	icrc = nhca_icrc_finish(crc);
	return get_unaligned_le32(&icrc);
}

static void expect_captured(struct kunit *test, const u8 *packet, unsigned int len)
{
	u32 on_wire = get_unaligned_le32(packet + len - 4);

	KUNIT_EXPECT_EQ(test, reference_icrc(packet, len), on_wire);
	KUNIT_EXPECT_EQ(test, driver_icrc(packet, len), on_wire);
}

/* The driver computes the same ICRC as the sender of the captured packets. */
static void icrc_captured_packets(struct kunit *test)
{
	expect_captured(test, icrc_rc_v4, sizeof(icrc_rc_v4));
	expect_captured(test, icrc_atomic_v4, sizeof(icrc_atomic_v4));
	expect_captured(test, icrc_ud_v6, sizeof(icrc_ud_v6));
}

/* Each bit of a packet changes the ICRC, except the bits that the specification masks. */
static void expect_masked(struct kunit *test, const u8 *packet, unsigned int len)
{
	u32 before = driver_icrc(packet, len);
	unsigned int bit, invariant = 0;
	u8 *p;

	p = kunit_kmalloc(test, len, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, p);
	for (bit = 0; bit < (len - 4) * 8; bit++) {
		u32 after;

		if (bit < 8)
			continue;	/* version and IPv4 header length select the masks */
		memcpy(p, packet, len);
		p[bit / 8] ^= 1 << bit % 8;
		after = driver_icrc(p, len);
		KUNIT_EXPECT_EQ_MSG(test, after, reference_icrc(p, len), "byte %u bit %u",
				    bit / 8, bit % 8);
		invariant += after == before;
	}
	/*
	 * masked bits: UDP checksum (16) and BTH byte 4 (8). IPv4: type of service (8), time to
	 * live (8), header checksum (16). IPv6: flow label and lower half of the traffic class
	 * (24), hop limit (8)
	 */
	KUNIT_EXPECT_EQ(test, invariant, network_len(packet) == 20 ?
			16 + 8 + 8 + 8 + 16 : 16 + 8 + 24 + 8);
}

/* The ICRC ignores exactly the fields that the specification masks, in IPv4 and in IPv6. */
static void icrc_masked_fields(struct kunit *test)
{
	u8 v6[sizeof(icrc_ud_v6)];

	expect_masked(test, icrc_rc_v4, sizeof(icrc_rc_v4));
	expect_masked(test, icrc_ud_v6, sizeof(icrc_ud_v6));

	/* the upper half of the IPv6 traffic class is in the same byte as the version */
	memcpy(v6, icrc_ud_v6, sizeof(v6));
	v6[0] = 0x6a;
	KUNIT_EXPECT_EQ(test, driver_icrc(v6, sizeof(v6)),
			driver_icrc(icrc_ud_v6, sizeof(icrc_ud_v6)));
}

/*
 * The CRC is right for all short lengths, for some long lengths, and for all alignments, which
 * optimized code treats in different ways.
 */
static void icrc_any_length_and_alignment(struct kunit *test)
{
	static const unsigned int lengths[] = {
		1024, 1025, 2048, 4095, 4096, 4096 + 28, 9000,
	};
	unsigned int len, align, i;
	struct rnd_state rnd;
	u8 *p;

	p = kunit_kmalloc(test, 9000 + 16, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, p);
	prandom_seed_state(&rnd, 17);
	prandom_bytes_state(&rnd, p, 9000 + 16);
	for (align = 0; align < 16; align++) {
		u32 crc = prandom_u32_state(&rnd);

		for (len = 0; len < 600; len++)
			KUNIT_ASSERT_EQ_MSG(test, nhca_icrc_more(crc, p + align, len),
					    crc_bitwise(crc, p + align, len),
					    "%u bytes at alignment %u", len, align);
		for (i = 0; i < ARRAY_SIZE(lengths); i++)
			KUNIT_ASSERT_EQ_MSG(test, nhca_icrc_more(crc, p + align, lengths[i]),
					    crc_bitwise(crc, p + align, lengths[i]),
					    "%u bytes at alignment %u", lengths[i], align);
	}
}

/* A CRC over pieces of a buffer equals the CRC over the whole buffer. */
static void icrc_over_pieces(struct kunit *test)
{
	unsigned int total = 4096, at, piece;
	struct rnd_state rnd;
	u32 whole, crc;
	int round;
	u8 *p;

	p = kunit_kmalloc(test, total, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, p);
	prandom_seed_state(&rnd, 4);
	prandom_bytes_state(&rnd, p, total);
	whole = crc_bitwise(0x12345678, p, total);
	for (round = 0; round < 200; round++) {
		crc = 0x12345678;
		for (at = 0; at < total; at += piece) {
			piece = min(total - at, prandom_u32_state(&rnd) % (8 << round % 9));
			crc = nhca_icrc_more(crc, p + at, piece);
		}
		KUNIT_ASSERT_EQ(test, crc, whole);
	}
}

static struct kunit_case icrc_cases[] = {
	KUNIT_CASE(icrc_captured_packets),
	KUNIT_CASE(icrc_masked_fields),
	KUNIT_CASE(icrc_any_length_and_alignment),
	KUNIT_CASE(icrc_over_pieces),
	{}
};

static struct kunit_suite icrc_suite = {
	.name = "nhca_icrc",
	.test_cases = icrc_cases,
};

kunit_test_suite(icrc_suite);
