// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit: a fragment or skb gets memory that nothing else uses at the same time. Memory is used
 * again after all its users have released it.
 */
#include <kunit/test.h>
#include <linux/mm.h>
#include <linux/skbuff.h>

#include "../net/frags.h"

/* more pages than all chunks of a CPU have */
#define MANY	(NHCA_PAGE_CHUNKS * 16)
/* room for a packet of 4 KiB; a chunk of 32 KiB holds seven skbs with this room */
#define SKB_ROOM	4352

struct piece {
	struct page *page;
	void *bytes;
};

static struct piece take(struct kunit *test, unsigned int len)
{
	struct piece piece;
	unsigned int off;

	piece.bytes = nhca_frag_get(len, &piece.page, &off);
	if (piece.bytes)
		KUNIT_EXPECT_PTR_EQ(test, piece.bytes, page_address(piece.page) + off);
	return piece;
}

/* While no page is released, each call returns another aligned page. */
static void disjoint_test(struct kunit *test)
{
	struct piece *pieces = kunit_kcalloc(test, MANY, sizeof(*pieces), GFP_KERNEL);
	u32 i, j, n = 0, twice = 0, askew = 0;

	KUNIT_ASSERT_NOT_NULL(test, pieces);
	local_bh_disable();
	for (n = 0; n < MANY; n++) {
		pieces[n] = take(test, PAGE_SIZE);
		if (!pieces[n].bytes)
			break;
	}
	local_bh_enable();
	KUNIT_EXPECT_EQ(test, n, MANY);
	for (i = 0; i < n; i++) {
		askew += !PAGE_ALIGNED(pieces[i].bytes);
		for (j = 0; j < i; j++)
			twice += pieces[i].bytes == pieces[j].bytes;
	}
	KUNIT_EXPECT_EQ(test, twice, 0);
	KUNIT_EXPECT_EQ(test, askew, 0);
	while (n)
		put_page(pieces[--n].page);
}

/* While only 8 pages are in use, a CPU uses its chunks in turn and allocates no new chunks. */
static void reuse_test(struct kunit *test)
{
	struct piece held[8] = {}, piece;
	struct page *seen[NHCA_PAGE_CHUNKS + 1] = {};
	u32 i, k, chunks = 0, missing = 0;

	local_bh_disable();
	for (i = 0; i < 10 * MANY; i++) {
		if (held[i % 8].page)
			put_page(held[i % 8].page);
		piece = take(test, PAGE_SIZE);
		held[i % 8] = piece;
		missing += !piece.bytes;
		/*
		 * Chunks from before this test may be single pages, because memory was fragmented.
		 * The first MANY pieces replace them, so count only later chunks.
		 */
		if (i < MANY || !piece.bytes)
			continue;
		for (k = 0; k < chunks && seen[k] != compound_head(piece.page); k++)
			;
		if (k == chunks && chunks < ARRAY_SIZE(seen))
			seen[chunks++] = compound_head(piece.page);
	}
	local_bh_enable();
	KUNIT_EXPECT_EQ(test, missing, 0);
	KUNIT_EXPECT_LE(test, chunks, NHCA_PAGE_CHUNKS);
	for (i = 0; i < ARRAY_SIZE(held); i++)
		if (held[i].page)
			put_page(held[i].page);
}

/* Consecutive pieces are contiguous, so the pieces of a packet need one fragment of an skb. */
static void contiguous_test(struct kunit *test)
{
	struct piece a, b;
	u32 i, apart = 0;

	local_bh_disable();
	a = take(test, 60);
	for (i = 0; i < 10; i++) {
		b = take(test, 60);
		apart += b.bytes != a.bytes + 60;
		put_page(a.page);
		a = b;
	}
	put_page(a.page);
	local_bh_enable();
	/* at most once a new chunk begins between two pieces */
	KUNIT_EXPECT_LE(test, apart, 1);
}

/* Return: an skb for a packet of 4 KiB, whose room after the headroom is filled with @with. */
static struct sk_buff *take_skb(u8 with)
{
	struct sk_buff *skb = nhca_frag_skb(SKB_ROOM);

	if (skb) {
		skb_reserve(skb, 64);
		memset(skb_put(skb, SKB_ROOM - 64), with, SKB_ROOM - 64);
	}
	return skb;
}

/* Return: true if all bytes of @skb are @with and the skb has no room for another piece. */
static bool whole_skb(const struct sk_buff *skb, u8 with)
{
	return skb->len == SKB_ROOM - 64 && skb_headroom(skb) == 64 &&
	       skb_tailroom(skb) < SMP_CACHE_BYTES && !memchr_inv(skb->data, with, skb->len);
}

/*
 * While no skb is freed, no two skbs share bytes, including the struct skb_shared_info at their
 * ends.
 */
static void skb_disjoint_test(struct kunit *test)
{
	struct sk_buff *skbs[NHCA_SKB_CHUNKS * 8] = {};
	u32 i, missing = 0, spoilt = 0;

	local_bh_disable();
	for (i = 0; i < ARRAY_SIZE(skbs); i++) {
		skbs[i] = take_skb(i);
		missing += !skbs[i];
	}
	local_bh_enable();
	for (i = 0; i < ARRAY_SIZE(skbs); i++)
		spoilt += skbs[i] && !whole_skb(skbs[i], i);
	KUNIT_EXPECT_EQ(test, missing, 0);
	KUNIT_EXPECT_EQ(test, spoilt, 0);
	for (i = 0; i < ARRAY_SIZE(skbs); i++)
		kfree_skb(skbs[i]);
}

/*
 * While the stack holds two messages of 64 KiB, a CPU uses its chunks in turn, and no skb changes
 * before it is freed.
 */
static void skb_reuse_test(struct kunit *test)
{
	struct sk_buff *held[32] = {}, *skb;
	struct page *seen[NHCA_SKB_CHUNKS + 1] = {};
	u32 i, k, at, chunks = 0, missing = 0, spoilt = 0;

	local_bh_disable();
	for (i = 0; i < 1000; i++) {
		at = i % ARRAY_SIZE(held);
		if (held[at]) {
			spoilt += !whole_skb(held[at], i - ARRAY_SIZE(held));
			kfree_skb(held[at]);
		}
		skb = take_skb(i);
		held[at] = skb;
		missing += !skb;
		/* an skb that does not fit a chunk has separate memory */
		if (i < 200 || !skb || !skb->head_frag)
			continue;
		for (k = 0; k < chunks && seen[k] != virt_to_head_page(skb->head); k++)
			;
		if (k == chunks && chunks < ARRAY_SIZE(seen))
			seen[chunks++] = virt_to_head_page(skb->head);
	}
	local_bh_enable();
	KUNIT_EXPECT_EQ(test, missing, 0);
	KUNIT_EXPECT_EQ(test, spoilt, 0);
	KUNIT_EXPECT_LE(test, chunks, NHCA_SKB_CHUNKS);
	for (i = 0; i < ARRAY_SIZE(held); i++)
		kfree_skb(held[i]);
}

static struct kunit_case frags_cases[] = {
	KUNIT_CASE(disjoint_test),
	KUNIT_CASE(reuse_test),
	KUNIT_CASE(contiguous_test),
	KUNIT_CASE(skb_disjoint_test),
	KUNIT_CASE(skb_reuse_test),
	{}
};

static struct kunit_suite frags_suite = {
	.name = "nhca_frags",
	.test_cases = frags_cases,
};

kunit_test_suite(frags_suite);
