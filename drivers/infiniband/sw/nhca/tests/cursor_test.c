// SPDX-License-Identifier: GPL-2.0
/* KUnit: the cursor that reads the bytes of a batch, whatever pieces the skb consists of. */
#include <kunit/test.h>
#include <linux/mm.h>
#include <linux/skbuff.h>

#include "../net/cursor.h"

static u8 byte_at(u32 off)
{
	return off * 7 + (off >> 8);
}

/* Add @len bytes as a fragment to @skb, which is @head or will be in the frag_list of @head. */
static void add_frag(struct kunit *test, struct sk_buff *head, struct sk_buff *skb, u32 len)
{
	struct page *page = alloc_page(GFP_KERNEL);
	u32 off = 13, i;
	u8 *p;

	KUNIT_ASSERT_NOT_NULL(test, page);
	p = page_address(page);
	for (i = 0; i < len; i++)
		p[off + i] = byte_at(head->len + i);
	skb_add_rx_frag(skb, skb_shinfo(skb)->nr_frags, page, off, len, len);
	if (skb != head) {
		head->len += len;
		head->data_len += len;
		head->truesize += len;
	}
}

static void add_linear(struct sk_buff *skb, u32 from, u32 len)
{
	u8 *p = skb_put(skb, len);
	u32 i;

	for (i = 0; i < len; i++)
		p[i] = byte_at(from + i);
}

/*
 * Return: an skb with @linear linear bytes, fragments, and two skbs in its frag_list: the first
 * without linear bytes and the second with linear bytes.
 */
static struct sk_buff *batch(struct kunit *test, u32 linear)
{
	struct sk_buff *skb = alloc_skb(128, GFP_KERNEL);
	struct sk_buff *second = alloc_skb(0, GFP_KERNEL);
	struct sk_buff *third = alloc_skb(128, GFP_KERNEL);

	KUNIT_ASSERT_TRUE(test, skb && second && third);
	add_linear(skb, 0, linear);
	add_frag(test, skb, skb, 16);
	add_frag(test, skb, skb, 100);
	add_frag(test, skb, second, 1);
	add_frag(test, skb, second, 200);
	add_linear(third, skb->len, 77);
	skb->len += 77;
	skb->data_len += 77;
	add_frag(test, skb, third, 30);
	skb_shinfo(skb)->frag_list = second;
	second->next = third;
	return skb;
}

/* The cursor finds each byte, whatever the distance from one offset to the next. */
static void every_step_test(struct kunit *test)
{
	u32 linear, step, off, len, i;
	struct nhca_cursor c;
	struct sk_buff *skb;
	const u8 *p;

	for (linear = 0; linear <= 64; linear += 64) {
		skb = batch(test, linear);
		for (step = 1; step < 150; step += 7) {
			nhca_cursor_init(&c, skb);
			for (off = 0; off < skb->len; off += step) {
				p = nhca_cursor_at(&c, off, &len);
				KUNIT_ASSERT_NOT_NULL(test, p);
				KUNIT_ASSERT_GE(test, len, 1);
				KUNIT_ASSERT_LE(test, off + len, skb->len);
				for (i = 0; i < len; i++)
					KUNIT_ASSERT_EQ(test, p[i], byte_at(off + i));
			}
			KUNIT_EXPECT_NULL(test, nhca_cursor_at(&c, skb->len, &len));
		}
		kfree_skb(skb);
	}
}

/* A copy of a cursor keeps its position, and a cursor finds an offset before its position. */
static void back_test(struct kunit *test)
{
	struct nhca_cursor c, copy;
	struct sk_buff *skb;
	const u8 *p;
	u32 len;

	skb = batch(test, 64);
	nhca_cursor_init(&c, skb);
	KUNIT_ASSERT_NOT_NULL(test, nhca_cursor_at(&c, 300, &len));
	copy = c;
	KUNIT_ASSERT_NOT_NULL(test, nhca_cursor_at(&c, 420, &len));
	p = nhca_cursor_at(&copy, 301, &len);
	KUNIT_ASSERT_NOT_NULL(test, p);
	KUNIT_EXPECT_EQ(test, *p, byte_at(301));
	p = nhca_cursor_at(&c, 3, &len);
	KUNIT_ASSERT_NOT_NULL(test, p);
	KUNIT_EXPECT_EQ(test, *p, byte_at(3));
	KUNIT_EXPECT_EQ(test, len, 61);
	kfree_skb(skb);
}

/*
 * nhca_cursor_skip() moves to the piece with the offset, or to the last piece of the same skb, and
 * never backwards. Afterwards nhca_cursor_at() finds the byte as without the skip.
 */
static void skip_test(struct kunit *test)
{
	u32 linear, from, off, len;
	struct nhca_cursor c, was;
	struct sk_buff *skb;
	const u8 *p;

	for (linear = 0; linear <= 64; linear += 64) {
		skb = batch(test, linear);
		for (from = 0; from < skb->len; from += 5) {
			for (off = 0; off < skb->len; off++) {
				nhca_cursor_init(&c, skb);
				KUNIT_ASSERT_NOT_NULL(test, nhca_cursor_at(&c, from, &len));
				was = c;
				nhca_cursor_skip(&c, off);
				KUNIT_ASSERT_PTR_EQ(test, c.skb, was.skb);
				if (off < was.start + was.len)
					KUNIT_ASSERT_EQ(test, c.start, was.start);
				else
					KUNIT_ASSERT_LE(test, c.start, off);
				if (off >= c.start + c.len)
					KUNIT_ASSERT_PTR_EQ(test, c.next, c.end);
				p = nhca_cursor_at(&c, off, &len);
				KUNIT_ASSERT_NOT_NULL(test, p);
				KUNIT_ASSERT_EQ(test, *p, byte_at(off));
			}
		}
		kfree_skb(skb);
	}
}

/* An empty skb has no bytes. */
static void empty_test(struct kunit *test)
{
	struct sk_buff *skb = alloc_skb(16, GFP_KERNEL);
	struct nhca_cursor c;
	u32 len;

	KUNIT_ASSERT_NOT_NULL(test, skb);
	nhca_cursor_init(&c, skb);
	KUNIT_EXPECT_NULL(test, nhca_cursor_at(&c, 0, &len));
	kfree_skb(skb);
}

static struct kunit_case nhca_cursor_cases[] = {
	KUNIT_CASE(every_step_test),
	KUNIT_CASE(back_test),
	KUNIT_CASE(skip_test),
	KUNIT_CASE(empty_test),
	{}
};

static struct kunit_suite nhca_cursor_suite = {
	.name = "nhca_cursor",
	.test_cases = nhca_cursor_cases,
};

kunit_test_suite(nhca_cursor_suite);
