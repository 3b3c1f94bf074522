// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit: packets of one received batch (a GRO skb) that the driver handles together: RC packets
 * that differ only in their PSN, and packets of a channel that carry consecutive segments of one
 * transfer. Also tests piggybacked ACKs: the last 4 bytes of a packet without an ICRC may be the
 * acknowledged PSN.
 */
#include <kunit/test.h>
#include <linux/ipv6.h>
#include <linux/mm.h>
#include <linux/skbuff.h>
#include <linux/udp.h>

#include "../memory/memory.h"
#include "../net/net.h"
#include "../net/xmit.h"

#define PACKETS	6
#define PAYLOAD	256
#define SEG	(NHCA_BTH_LEN + PAYLOAD + NHCA_ICRC_LEN)
#define PSN	0xfffffe	/* of the first packet; PSNs wrap within the batch */

/* packets of a transfer: bytes of the headers, and bytes from the BTH to the ICRC */
#define RX_HDR	(NHCA_BTH_LEN + NHCA_RXETH_LEN)
#define RX_SEG	(RX_HDR + PAYLOAD + NHCA_ICRC_LEN)
#define FIRST	2	/* number of the segment in the first packet of the batch */

struct alike {
	struct sk_buff *skb;
	struct nhca_rx rx;
	u8 *to;
};

static u8 byte_at(u32 off)
{
	return off * 13 + (off >> 8);
}

static struct nhca_hdr header(u8 opcode, u32 n)
{
	return (struct nhca_hdr) {
		.opcode = opcode,
		.info = nhca_opinfo(opcode),
		.migreq = true,
		.pkey = 0xffff,
		.qpn = 0x1234,
		.psn = (PSN + n) & NHCA_PSN_MASK,
		.caps = NHCA_CAP_PRESENT | NHCA_CAP_NO_ICRC,
		.rx = {
			.key = 0x11121314,
			.job = 7,
			.rcxt = { 5, 0x21222324 },
			.tid = 9,
			.total = (FIRST + PACKETS + 3) * PAYLOAD,
			.offset = (FIRST + n) * PAYLOAD,
			.length = PAYLOAD,
			.segment = PAYLOAD,
			.pvo = 0xfffffff0ULL + n * PAYLOAD,
			.cookie = 0x0123456789abcdefULL,
		},
	};
}

/*
 * Build a batch of fragments: for each packet, a fragment with the headers and a fragment with the
 * payload and the tail.
 */
static void batch_begin(struct kunit *test, struct alike *a, u8 opcode)
{
	u32 hdr_len = nhca_opinfo(opcode)->hdr_len, seg = hdr_len + PAYLOAD + NHCA_ICRC_LEN;
	static const u8 no_ip[sizeof(struct ipv6hdr)];
	struct page *page;
	struct nhca_hdr h;
	u32 i, n;
	u8 *p;

	memset(a, 0, sizeof(*a));
	a->to = kunit_kzalloc(test, PACKETS * PAYLOAD, GFP_KERNEL);
	a->skb = alloc_skb(sizeof(struct udphdr), GFP_KERNEL);
	KUNIT_ASSERT_TRUE(test, a->to && a->skb);
	/* the packets have a UDP checksum */
	skb_reset_transport_header(a->skb);
	skb_reserve(a->skb, sizeof(struct udphdr));
	udp_hdr(a->skb)->check = 1;
	for (n = 0; n < PACKETS; n++) {
		page = alloc_page(GFP_KERNEL | __GFP_ZERO);
		KUNIT_ASSERT_NOT_NULL(test, page);
		p = page_address(page);
		h = header(opcode, n);
		nhca_hdr_encode(&h, p);
		for (i = 0; i < PAYLOAD; i++)
			p[hdr_len + i] = byte_at(n * PAYLOAD + i);
		get_page(page);
		skb_add_rx_frag(a->skb, 2 * n, page, 0, hdr_len, hdr_len);
		skb_add_rx_frag(a->skb, 2 * n + 1, page, hdr_len, seg - hdr_len, seg - hdr_len);
	}

	/* set the state that the receiver has after it has decoded and accepted the first packet */
	a->rx.skb = a->skb;
	a->rx.udp_len = seg;
	a->rx.payload = PAYLOAD;
	a->rx.off = hdr_len;
	nhca_cursor_init(&a->rx.at, a->skb);
	a->rx.ip.hdr = no_ip;
	p = (u8 *)nhca_cursor_at(&a->rx.at, 0, &n);
	KUNIT_ASSERT_EQ(test, nhca_hdr_decode(&a->rx.hdr, p, hdr_len, seg), NHCA_DECODE_OK);
	a->rx.alike.set = true;
	a->rx.alike.udp_len = seg;
	memcpy(a->rx.alike.bth, p, sizeof(a->rx.alike.bth));
	KUNIT_ASSERT_TRUE(test, nhca_rx_intact(&a->rx, true));
}

static void alike_begin(struct kunit *test, struct alike *a)
{
	batch_begin(test, a, NHCA_OP_WRITE_MIDDLE);
}

/* Return: the BTH of packet @n. */
static u8 *bth(struct alike *a, u32 n)
{
	return skb_frag_address(&skb_shinfo(a->skb)->frags[2 * n]);
}

static u32 place(struct alike *a, u32 max)
{
	struct nhca_iter it;
	u32 n;

	nhca_iter_bytes(&it, a->to);
	local_bh_disable();
	nhca_live_enter();
	n = nhca_rx_copy_alike(&a->rx, max, &it);
	nhca_live_exit();
	local_bh_enable();
	return n;
}

/*
 * Expect that exactly @n packets after the first were copied, and that @a->rx describes the last
 * copied packet.
 */
static void expect_placed(struct kunit *test, struct alike *a, u32 n)
{
	u32 i;

	for (i = 0; i < n * PAYLOAD; i++)
		KUNIT_ASSERT_EQ(test, a->to[i], byte_at(PAYLOAD + i));
	KUNIT_EXPECT_EQ(test, a->rx.hdr.psn, (PSN + n) & NHCA_PSN_MASK);
	KUNIT_EXPECT_EQ(test, a->rx.udp_off, n * SEG);
	KUNIT_EXPECT_EQ(test, a->rx.off, n * SEG + NHCA_BTH_LEN);
	KUNIT_EXPECT_EQ(test, a->rx.index, n);
}

/* All packets that differ only in the PSN are copied in order, across the wrap of the PSN. */
static void whole_batch_test(struct kunit *test)
{
	struct alike a;

	alike_begin(test, &a);
	KUNIT_EXPECT_EQ(test, place(&a, 100), PACKETS - 1);
	expect_placed(test, &a, PACKETS - 1);
	kfree_skb(a.skb);
}

/* No more packets are copied than the caller allows. */
static void bound_test(struct kunit *test)
{
	struct alike a;

	alike_begin(test, &a);
	KUNIT_EXPECT_EQ(test, place(&a, 0), 0);
	expect_placed(test, &a, 0);
	KUNIT_EXPECT_EQ(test, place(&a, 3), 3);
	expect_placed(test, &a, 3);
	KUNIT_EXPECT_EQ(test, a.to[3 * PAYLOAD], 0);
	kfree_skb(a.skb);
}

/*
 * A packet that does not have the next PSN, or whose BTH differs in another bit than AckReq, ends
 * the run and is not copied. A packet with AckReq is copied and ends the run.
 */
static void every_bit_test(struct kunit *test)
{
	const u32 ackreq = 8 * 8 + 7;
	struct alike a;
	u32 bit, n;

	for (bit = 0; bit < 8 * NHCA_BTH_LEN; bit++) {
		alike_begin(test, &a);
		bth(&a, 3)[bit / 8] ^= BIT(bit % 8);
		n = bit == ackreq ? 3 : 2;
		KUNIT_EXPECT_EQ_MSG(test, place(&a, 100), n, "bit %u", bit);
		expect_placed(test, &a, n);
		KUNIT_EXPECT_EQ(test, a.rx.hdr.ackreq, bit == ackreq);
		kfree_skb(a.skb);
	}
}

/* A shorter packet at the end of the batch is not copied together with the packets before it. */
static void shorter_test(struct kunit *test)
{
	struct alike a;

	alike_begin(test, &a);
	KUNIT_ASSERT_EQ(test, pskb_trim(a.skb, PACKETS * SEG - 4), 0);
	KUNIT_EXPECT_EQ(test, place(&a, 100), PACKETS - 2);
	expect_placed(test, &a, PACKETS - 2);
	kfree_skb(a.skb);
}

/*
 * A packet whose header is split over two fragments ends the run, because its bytes cannot be
 * compared in place.
 */
static void split_header_test(struct kunit *test)
{
	skb_frag_t *frag;
	struct alike a;

	alike_begin(test, &a);
	frag = &skb_shinfo(a.skb)->frags[2 * 4];
	skb_frag_size_sub(frag, 4);
	skb_frag_off_add(frag + 1, -4);
	skb_frag_size_add(frag + 1, 4);
	KUNIT_EXPECT_EQ(test, place(&a, 100), 3);
	expect_placed(test, &a, 3);
	kfree_skb(a.skb);
}

/* ---- packets of a transfer ---- */

static void run_begin(struct kunit *test, struct alike *a)
{
	batch_begin(test, a, NHCA_RX_WRITE);
	a->rx.rxeth = bth(a, 0) + NHCA_BTH_LEN;
	a->rx.alike.set = false;
}

/*
 * nhca_rx_run() counts all packets of the batch that continue the transfer, and nhca_rx_next()
 * steps to each of them, so that all payload is copied.
 */
static void run_whole_batch_test(struct kunit *test)
{
	struct nhca_hdr want;
	struct nhca_iter it;
	struct alike a;
	u32 n, i;

	run_begin(test, &a);
	KUNIT_EXPECT_EQ(test, nhca_rx_run(&a.rx, 100), PACKETS - 1);
	KUNIT_EXPECT_EQ(test, nhca_rx_run(&a.rx, 3), 3);
	KUNIT_EXPECT_EQ(test, nhca_rx_run(&a.rx, 0), 0);
	nhca_iter_bytes(&it, a.to);
	for (n = 0;; n++) {
		want = header(NHCA_RX_WRITE, n);
		KUNIT_EXPECT_EQ(test, a.rx.hdr.psn, want.psn);
		KUNIT_EXPECT_EQ(test, a.rx.hdr.rx.offset, want.rx.offset);
		KUNIT_EXPECT_EQ(test, a.rx.hdr.rx.pvo, want.rx.pvo);
		KUNIT_EXPECT_EQ(test, a.rx.udp_off, n * RX_SEG);
		KUNIT_EXPECT_EQ(test, a.rx.index, n);
		local_bh_disable();
		nhca_live_enter();
		KUNIT_EXPECT_EQ(test, nhca_rx_copy(&a.rx, &it), 0);
		nhca_live_exit();
		local_bh_enable();
		if (n == PACKETS - 1)
			break;
		nhca_rx_next(&a.rx);
	}
	for (i = 0; i < PACKETS * PAYLOAD; i++)
		KUNIT_ASSERT_EQ(test, a.to[i], byte_at(i));
	kfree_skb(a.skb);
}

/* Any wrong bit in the header of a packet, except AckReq, ends the run before this packet. */
static void run_every_bit_test(struct kunit *test)
{
	const u32 ackreq = 8 * 8 + 7;
	struct alike a;
	u32 bit;

	run_begin(test, &a);
	for (bit = 0; bit < 8 * RX_HDR; bit++) {
		bth(&a, 3)[bit / 8] ^= BIT(bit % 8);
		KUNIT_EXPECT_EQ_MSG(test, nhca_rx_run(&a.rx, 100),
				    bit == ackreq ? PACKETS - 1 : 2, "bit %u", bit);
		bth(&a, 3)[bit / 8] ^= BIT(bit % 8);
	}
	kfree_skb(a.skb);
}

/*
 * A shorter packet at the end and a packet with a split header end the run. Packets with an ICRC,
 * or in an skb without a UDP checksum, form no run, because each must be verified alone.
 */
static void run_alone_test(struct kunit *test)
{
	struct alike a;
	skb_frag_t *frag;

	run_begin(test, &a);
	KUNIT_ASSERT_EQ(test, pskb_trim(a.skb, PACKETS * RX_SEG - 4), 0);
	KUNIT_EXPECT_EQ(test, nhca_rx_run(&a.rx, 100), PACKETS - 2);
	frag = &skb_shinfo(a.skb)->frags[2 * 3];
	skb_frag_size_sub(frag, 4);
	skb_frag_off_add(frag + 1, -4);
	skb_frag_size_add(frag + 1, 4);
	KUNIT_EXPECT_EQ(test, nhca_rx_run(&a.rx, 100), 2);

	udp_hdr(a.skb)->check = 0;
	KUNIT_EXPECT_EQ(test, nhca_rx_run(&a.rx, 100), 0);
	udp_hdr(a.skb)->check = 1;
	a.rx.hdr.caps = NHCA_CAP_PRESENT;
	KUNIT_EXPECT_EQ(test, nhca_rx_run(&a.rx, 100), 0);
	kfree_skb(a.skb);
}

/* Return: true if the packet carries an acknowledgment, whose PSN is then in @psn. */
static bool acks(struct alike *a, u32 *psn)
{
	nhca_rx_intact(&a->rx, true);
	return nhca_rx_acks(&a->rx, psn);
}

/* Return: the ICRC of the first packet, with an IP header of zeros. */
static __le32 icrc_of_first(struct alike *a)
{
	u8 buf[sizeof(struct ipv6hdr) + sizeof(struct udphdr) + NHCA_BTH_LEN] = {};
	u32 crc;

	memcpy(buf + sizeof(struct ipv6hdr), udp_hdr(a->skb), sizeof(struct udphdr));
	memcpy(buf + sizeof(buf) - NHCA_BTH_LEN, bth(a, 0), NHCA_BTH_LEN);
	crc = nhca_icrc_start6(buf);
	return nhca_icrc_finish(nhca_icrc_more(crc, bth(a, 0) + NHCA_BTH_LEN, PAYLOAD));
}

/*
 * Only a packet without an ICRC carries an acknowledgment, because the acknowledged PSN stands in
 * the place of the ICRC.
 */
static void acks_test(struct kunit *test)
{
	struct nhca_hdr h = { .caps = NHCA_CAP_NO_ICRC | NHCA_CAP_ACKS, .acks = 0x123456 };
	__le32 tail = nhca_no_icrc_tail(&h);
	struct nhca_rx first;
	struct alike a;
	u32 psn = 0, n;

	alike_begin(test, &a);
	memcpy(bth(&a, 0) + NHCA_BTH_LEN + PAYLOAD, &tail, sizeof(tail));
	KUNIT_EXPECT_FALSE(test, acks(&a, &psn));
	bth(&a, 0)[4] |= NHCA_CAP_ACKS;
	a.rx.hdr.caps |= NHCA_CAP_ACKS;
	KUNIT_EXPECT_TRUE(test, acks(&a, &psn));
	KUNIT_EXPECT_EQ(test, psn, h.acks);
	KUNIT_EXPECT_FALSE(test, nhca_rx_mark(&a.rx, &tail));
	/*
	 * the caller must read the acknowledgment of each packet, so no following packet is copied
	 */
	KUNIT_EXPECT_EQ(test, place(&a, PACKETS), 0);
	/* the same if all following packets also carry an acknowledgment */
	for (n = 1; n < PACKETS; n++)
		bth(&a, n)[4] |= NHCA_CAP_ACKS;
	a.rx.alike.bth[4] |= NHCA_CAP_ACKS;
	KUNIT_EXPECT_EQ(test, place(&a, PACKETS), 0);
	/* a control: these packets differ in nothing else */
	first = a.rx;
	a.rx.hdr.caps &= ~NHCA_CAP_ACKS;
	KUNIT_EXPECT_EQ(test, place(&a, PACKETS), PACKETS - 1);
	a.rx = first;

	/* in the next cases the packet may not omit the ICRC, so it carries no acknowledgment */
	a.rx.hdr.caps = NHCA_CAP_PRESENT | NHCA_CAP_ACKS;
	KUNIT_EXPECT_FALSE(test, acks(&a, &psn));
	a.rx.hdr.caps = NHCA_CAP_NO_ICRC | NHCA_CAP_ACKS | NHCA_CAP_FOREIGN;
	KUNIT_EXPECT_FALSE(test, acks(&a, &psn));
	a.rx.hdr.caps = NHCA_CAP_NO_ICRC | NHCA_CAP_ACKS;
	udp_hdr(a.skb)->check = 0;
	KUNIT_EXPECT_FALSE(test, acks(&a, &psn));
	kfree_skb(a.skb);
}

/*
 * If the first packet was verified by its ICRC and not by the UDP checksum of the batch, the
 * following packets are not copied with the first packet, because the ICRC of each packet must be
 * verified.
 */
static void own_icrc_test(struct kunit *test)
{
	struct alike a;
	__le32 icrc;

	/*
	 * NHCA_CAP_FOREIGN makes the receiver verify the ICRC, which does not cover
	 * NHCA_CAP_FOREIGN
	 */
	alike_begin(test, &a);
	a.rx.hdr.caps |= NHCA_CAP_FOREIGN;
	KUNIT_EXPECT_FALSE(test, nhca_rx_intact(&a.rx, true));
	KUNIT_EXPECT_EQ(test, place(&a, 100), 0);
	icrc = icrc_of_first(&a);
	memcpy(bth(&a, 0) + NHCA_BTH_LEN + PAYLOAD, &icrc, sizeof(icrc));
	KUNIT_EXPECT_TRUE(test, nhca_rx_intact(&a.rx, true));
	KUNIT_EXPECT_EQ(test, place(&a, 100), 0);
	kfree_skb(a.skb);
}

static struct kunit_case nhca_alike_cases[] = {
	KUNIT_CASE(whole_batch_test),
	KUNIT_CASE(bound_test),
	KUNIT_CASE(every_bit_test),
	KUNIT_CASE(shorter_test),
	KUNIT_CASE(split_header_test),
	KUNIT_CASE(run_whole_batch_test),
	KUNIT_CASE(run_every_bit_test),
	KUNIT_CASE(run_alone_test),
	KUNIT_CASE(acks_test),
	KUNIT_CASE(own_icrc_test),
	{}
};

static struct kunit_suite nhca_alike_suite = {
	.name = "nhca_alike",
	.test_cases = nhca_alike_cases,
};

kunit_test_suite(nhca_alike_suite);
