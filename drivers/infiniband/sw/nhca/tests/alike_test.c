// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit: packets of a batch that are placed together, because they differ in their PSN only.
 */
#include <kunit/test.h>
#include <linux/mm.h>
#include <linux/skbuff.h>

#include "../memory/memory.h"
#include "../net/net.h"

#define PACKETS	6
#define PAYLOAD	256
#define SEG	(NHCA_BTH_LEN + PAYLOAD + NHCA_ICRC_LEN)
#define PSN	0xfffffe	/* which wraps on the way */

struct alike {
	struct sk_buff *skb;
	struct nhca_rx rx;
	u8 *to;
};

static u8 byte_at(u32 off)
{
	return off * 13 + (off >> 8);
}

static struct nhca_hdr header(u32 psn)
{
	return (struct nhca_hdr) {
		.opcode = NHCA_OP_WRITE_MIDDLE,
		.migreq = true,
		.pkey = 0xffff,
		.qpn = 0x1234,
		.psn = psn & NHCA_PSN_MASK,
		.notice = NHCA_NOTICE_HERE | NHCA_NOTICE_BARE,
	};
}

/* The batch, in fragments as senders make them: headers together, payload by page. */
static void alike_begin(struct kunit *test, struct alike *a)
{
	struct page *page;
	struct nhca_hdr h;
	u32 i, n;
	u8 *p;

	memset(a, 0, sizeof(*a));
	a->to = kunit_kzalloc(test, PACKETS * PAYLOAD, GFP_KERNEL);
	a->skb = alloc_skb(0, GFP_KERNEL);
	KUNIT_ASSERT_TRUE(test, a->to && a->skb);
	for (n = 0; n < PACKETS; n++) {
		page = alloc_page(GFP_KERNEL | __GFP_ZERO);
		KUNIT_ASSERT_NOT_NULL(test, page);
		p = page_address(page);
		h = header(PSN + n);
		nhca_hdr_encode(&h, p);
		for (i = 0; i < PAYLOAD; i++)
			p[NHCA_BTH_LEN + i] = byte_at(n * PAYLOAD + i);
		get_page(page);
		skb_add_rx_frag(a->skb, 2 * n, page, 0, NHCA_BTH_LEN, NHCA_BTH_LEN);
		skb_add_rx_frag(a->skb, 2 * n + 1, page, NHCA_BTH_LEN, SEG - NHCA_BTH_LEN,
				SEG - NHCA_BTH_LEN);
	}

	/* the first one has been looked at, and taken */
	a->rx.skb = a->skb;
	a->rx.udp_len = SEG;
	a->rx.payload = PAYLOAD;
	a->rx.off = NHCA_BTH_LEN;
	nhca_cursor_init(&a->rx.at, a->skb);
	a->rx.bth = nhca_cursor_at(&a->rx.at, 0, &n);
	KUNIT_ASSERT_EQ(test, nhca_hdr_decode(&a->rx.hdr, a->rx.bth, NHCA_BTH_LEN, SEG),
			NHCA_DECODE_OK);
}

/* the BTH of packet @n */
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

/* @n packets behind the first were placed, nothing else, and the last of them is the one in hand */
static void expect_placed(struct kunit *test, struct alike *a, u32 n)
{
	u32 i;

	for (i = 0; i < n * PAYLOAD; i++)
		KUNIT_ASSERT_EQ(test, a->to[i], byte_at(PAYLOAD + i));
	KUNIT_EXPECT_EQ(test, a->rx.hdr.psn, (PSN + n) & NHCA_PSN_MASK);
	KUNIT_EXPECT_EQ(test, a->rx.udp_off, n * SEG);
	KUNIT_EXPECT_EQ(test, a->rx.off, n * SEG + NHCA_BTH_LEN);
	KUNIT_EXPECT_EQ(test, a->rx.index, n);
	KUNIT_EXPECT_PTR_EQ(test, a->rx.bth, (const u8 *)bth(a, n));
}

/* All that are alike are placed, one after another, over the end of the PSNs. */
static void whole_batch_test(struct kunit *test)
{
	struct alike a;

	alike_begin(test, &a);
	KUNIT_EXPECT_EQ(test, place(&a, 100), PACKETS - 1);
	expect_placed(test, &a, PACKETS - 1);
	kfree_skb(a.skb);
}

/* No more than the message has room for. */
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

/* Whatever bit of a header is another, the run ends before it; but one may ask for an answer. */
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

/* A shorter packet at the end is not like the others. */
static void shorter_test(struct kunit *test)
{
	struct alike a;

	alike_begin(test, &a);
	KUNIT_ASSERT_EQ(test, pskb_trim(a.skb, PACKETS * SEG - 4), 0);
	KUNIT_EXPECT_EQ(test, place(&a, 100), PACKETS - 2);
	expect_placed(test, &a, PACKETS - 2);
	kfree_skb(a.skb);
}

/* A packet whose header does not lie together is left to who copies it together. */
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

static struct kunit_case nhca_alike_cases[] = {
	KUNIT_CASE(whole_batch_test),
	KUNIT_CASE(bound_test),
	KUNIT_CASE(every_bit_test),
	KUNIT_CASE(shorter_test),
	KUNIT_CASE(split_header_test),
	{}
};

static struct kunit_suite nhca_alike_suite = {
	.name = "nhca_alike",
	.test_cases = nhca_alike_cases,
};

kunit_test_suite(nhca_alike_suite);
