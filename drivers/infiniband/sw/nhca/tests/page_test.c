// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit: nhca_iter_page(), the fast path from page to page of a region, returns what
 * nhca_iter_next() returns, and no page that nhca_iter_next() refuses.
 */
#include <linux/mm.h>
#include <linux/prandom.h>
#include <linux/skbuff.h>
#include <linux/slab.h>

#include "../net/net.h"
#include "../net/xmit.h"
#include "regions.h"

#define IOVA		0x7f0000000000ULL
/* number of pages of a region that needs at least two leaves of a table */
#define MANY		(NHCA_TCE_LEAF_SIZE + 8)
#define PACKETS		4
#define SEG		(NHCA_BTH_LEN + PAGE_SIZE + NHCA_ICRC_LEN)

/* Return: a region of @npages pages; page i is page i % NPAGES of the fixture. */
static struct nhca_mr *pages_make(struct kunit *test, u64 npages, u32 offset, bool writable)
{
	struct fixture *f = test->priv;
	struct nhca_mr *mr = nhca_mr_alloc(f->dev, f->key_user.pd, ALL_ACCESS);
	struct page **pages = kvmalloc_array(npages, sizeof(*pages), GFP_KERNEL);
	u64 i;

	KUNIT_ASSERT_FALSE(test, IS_ERR(mr));
	KUNIT_ASSERT_NOT_NULL(test, pages);
	for (i = 0; i < npages; i++)
		pages[i] = f->pages[i % NPAGES];
	KUNIT_ASSERT_EQ(test, nhca_mr_map_pages(mr, pages, npages, offset, writable), 0);
	kvfree(pages);
	nhca_mr_start(mr, IOVA + offset, npages * PAGE_SIZE - offset);
	return mr;
}

static void begin(struct kunit *test, struct nhca_iter *it, struct nhca_mr *mr, u64 off, u32 len,
		  int access)
{
	struct fixture *f = test->priv;

	KUNIT_ASSERT_EQ(test, nhca_iter_key(it, &f->key_user, mr->ibmr.rkey, IOVA + off, len,
					    access), 0);
}

/* The fast path goes on from leaf to leaf of the table, up to the end of the range. */
static void leaf_test(struct kunit *test)
{
	struct nhca_mr *mr = pages_make(test, MANY, 0, true);
	struct fixture *f = test->priv;
	u64 i, wrong = 0, far = 0, first;
	struct nhca_iter it;
	struct nhca_seg seg;

	first = (mr->pvo & NHCA_PVO_OFFSET_MASK) >> PAGE_SHIFT;
	enter();
	begin(test, &it, mr, 0, MANY * PAGE_SIZE, IB_ACCESS_REMOTE_WRITE);
	KUNIT_EXPECT_EQ(test, nhca_iter_next(&it, PAGE_SIZE, &seg), 0);
	for (i = 1; i < MANY; i++) {
		wrong += nhca_iter_page(&it) != f->pages[i % NPAGES];
		/*
		 * it.pages must not extend beyond the leaf; the pages alone do not show such an
		 * error, because the next leaf may be adjacent in memory by chance
		 */
		far += it.pages > NHCA_TCE_LEAF_SIZE - (first + i + 1) % NHCA_TCE_LEAF_SIZE;
	}
	KUNIT_EXPECT_EQ(test, wrong, 0);
	KUNIT_EXPECT_EQ(test, far, 0);
	KUNIT_EXPECT_NULL(test, nhca_iter_page(&it));
	KUNIT_EXPECT_EQ(test, nhca_iter_next(&it, 1, &seg), -ENODATA);
	leave();
	nhca_mr_free(mr);
}

/* The fast path works inside huge pages and from one to the next. */
static void huge_test(struct kunit *test)
{
	const unsigned int order = PMD_SHIFT - PAGE_SHIFT;
	struct fixture *f = test->priv;
	struct nhca_mr *mr = nhca_mr_alloc(f->dev, f->key_user.pd, ALL_ACCESS);
	struct page *huge[2] = {};
	struct scatterlist sg[2];
	struct sg_table sgt = { .sgl = sg, .nents = 2, .orig_nents = 2 };
	u64 i, at, wrong = 0;
	struct nhca_iter it;
	struct nhca_seg seg;

	KUNIT_ASSERT_FALSE(test, IS_ERR(mr));
	sg_init_table(sg, 2);
	for (i = 0; i < 2; i++) {
		huge[i] = alloc_pages(GFP_KERNEL | __GFP_COMP | __GFP_NOWARN, order);
		if (huge[i])
			sg_set_page(&sg[i], huge[i], PMD_SIZE, 0);
	}
	if (!huge[0] || !huge[1])
		goto free;
	KUNIT_ASSERT_EQ(test, nhca_mr_map_sgt(mr, &sgt, 0, 2 * PMD_SIZE, PMD_SHIFT, true), 0);
	nhca_mr_start(mr, IOVA, 2 * PMD_SIZE);
	enter();
	begin(test, &it, mr, PAGE_SIZE, 2 * PMD_SIZE - PAGE_SIZE - 1, IB_ACCESS_REMOTE_READ);
	KUNIT_EXPECT_EQ(test, nhca_iter_next(&it, PAGE_SIZE, &seg), 0);
	for (i = 2; i < 2 * PMD_SIZE / PAGE_SIZE - 1; i++) {
		at = i * PAGE_SIZE;
		wrong += nhca_iter_page(&it) !=
			 huge[at / PMD_SIZE] + at % PMD_SIZE / PAGE_SIZE;
	}
	KUNIT_EXPECT_EQ(test, wrong, 0);
	KUNIT_EXPECT_NULL(test, nhca_iter_page(&it));
	KUNIT_EXPECT_EQ(test, nhca_iter_next(&it, U32_MAX, &seg), 0);
	KUNIT_EXPECT_EQ(test, seg.len, PAGE_SIZE - 1);
	leave();
free:
	nhca_mr_free(mr);
	for (i = 0; i < 2; i++)
		if (huge[i])
			__free_pages(huge[i], order);
}

/* Fast and slow path, mixed in random order, return each byte once and at the right place. */
static void mixed_test(struct kunit *test)
{
	static const u32 offsets[] = { 0, 1, 64, PAGE_SIZE - 1 };
	struct fixture *f = test->priv;
	struct rnd_state rnd;
	struct nhca_iter it;
	struct nhca_seg seg;
	struct nhca_mr *mr;
	u32 i, round, at, left, n;
	struct page *page;
	u64 wrong = 0, taken = 0;

	prandom_seed_state(&rnd, 20);
	for (i = 0; i < ARRAY_SIZE(offsets); i++) {
		mr = pages_make(test, 3 * NPAGES, offsets[i], true);
		for (round = 0; round < 500; round++) {
			at = offsets[i] + prandom_u32_state(&rnd) % (4 * PAGE_SIZE);
			left = 3 * NPAGES * PAGE_SIZE - at;
			left -= prandom_u32_state(&rnd) % left;
			enter();
			begin(test, &it, mr, at, left, IB_ACCESS_REMOTE_WRITE);
			while (left) {
				page = prandom_u32_state(&rnd) % 4 ? nhca_iter_page(&it) : NULL;
				n = 1 + prandom_u32_state(&rnd) % (PAGE_SIZE + 8);
				if (page)
					seg = (struct nhca_seg) { page_address(page), PAGE_SIZE };
				else if (nhca_iter_next(&it, n, &seg))
					break;
				taken += !!page;
				wrong += nhca_seg_page(&seg) != f->pages[at / PAGE_SIZE % NPAGES];
				wrong += offset_in_page(seg.addr) != at % PAGE_SIZE;
				wrong += seg.len > left;
				at += seg.len;
				left -= min(seg.len, left);
			}
			wrong += left || nhca_iter_page(&it) || nhca_iter_next(&it, 1, &seg) !=
				 -ENODATA;
			leave();
		}
		nhca_mr_free(mr);
	}
	KUNIT_EXPECT_EQ(test, wrong, 0);
	KUNIT_EXPECT_GT(test, taken, 1000);
}

/* The fast path refuses entries that were cleared, have another key, or grant fewer rights. */
static void refused_test(struct kunit *test)
{
	struct nhca_mr *mr = pages_make(test, NPAGES, 0, true), *ro, *other;
	struct fixture *f = test->priv;
	struct nhca_iter it;
	struct nhca_seg seg;

	other = pages_make(test, NPAGES, 0, true);
	ro = pages_make(test, NPAGES, 0, false);
	enter();
	begin(test, &it, mr, 0, NPAGES * PAGE_SIZE, IB_ACCESS_REMOTE_WRITE);
	KUNIT_EXPECT_EQ(test, nhca_iter_next(&it, PAGE_SIZE, &seg), 0);
	KUNIT_EXPECT_PTR_EQ(test, nhca_iter_page(&it), f->pages[1]);
	nhca_range_clear(&mr->tces, 2, 1);
	KUNIT_EXPECT_NULL(test, nhca_iter_page(&it));
	KUNIT_EXPECT_EQ(test, nhca_iter_next(&it, PAGE_SIZE, &seg), -EACCES);
	KUNIT_EXPECT_NULL(test, nhca_iter_page(&it));
	leave();

	/* replace an entry by an entry with another key */
	enter();
	begin(test, &it, other, 0, NPAGES * PAGE_SIZE, IB_ACCESS_REMOTE_READ);
	KUNIT_EXPECT_EQ(test, nhca_iter_next(&it, PAGE_SIZE, &seg), 0);
	KUNIT_EXPECT_PTR_EQ(test, nhca_iter_page(&it), f->pages[1]);
	nhca_range_clear(&other->tces, 0, NPAGES);
	nhca_range_rekey(&other->tces);
	nhca_range_set(&other->tces, 2, page_to_pfn(f->pages[2]),
		       NHCA_TCE_READ | NHCA_TCE_WRITE);
	KUNIT_EXPECT_NULL(test, nhca_iter_page(&it));
	leave();

	enter();
	begin(test, &it, ro, 0, 3 * PAGE_SIZE, IB_ACCESS_REMOTE_READ);
	KUNIT_EXPECT_EQ(test, nhca_iter_next(&it, PAGE_SIZE, &seg), 0);
	KUNIT_EXPECT_PTR_EQ(test, nhca_iter_page(&it), f->pages[1]);
	begin(test, &it, ro, 0, 3 * PAGE_SIZE, IB_ACCESS_REMOTE_WRITE);
	KUNIT_EXPECT_EQ(test, nhca_iter_next(&it, PAGE_SIZE, &seg), -EACCES);
	KUNIT_EXPECT_NULL(test, nhca_iter_page(&it));
	leave();
	nhca_mr_free(mr);
	nhca_mr_free(other);
	nhca_mr_free(ro);
}

/*
 * The first page of an R_Key reference or SGE needs the slow path, which checks the reference or
 * the key. Kernel memory has no TCEs, and so no fast path.
 */
static void first_page_test(struct kunit *test)
{
	struct nhca_mr *mr = pages_make(test, NPAGES, 0, true);
	struct fixture *f = test->priv;
	struct nhca_sge sge = { .addr = IOVA, .length = 2 * PAGE_SIZE, .lkey = mr->ibmr.lkey };
	struct nhca_rkey_ref ref = {};
	struct nhca_iter it;
	struct nhca_seg seg;

	nhca_iter_sges(&it, &f->key_user, &sge, 1, 0, U32_MAX, 0);
	enter();
	KUNIT_EXPECT_NULL(test, nhca_iter_page(&it));
	KUNIT_EXPECT_EQ(test, nhca_iter_next(&it, PAGE_SIZE, &seg), 0);
	KUNIT_EXPECT_PTR_EQ(test, nhca_iter_page(&it), f->pages[1]);
	KUNIT_EXPECT_NULL(test, nhca_iter_page(&it));
	nhca_iter_bytes(&it, page_address(f->pages[0]));
	KUNIT_EXPECT_NULL(test, nhca_iter_page(&it));
	leave();

	local_bh_disable();
	KUNIT_ASSERT_EQ(test, nhca_rkey_get(&ref, &f->key_user, mr->ibmr.rkey, IOVA, 3 * PAGE_SIZE,
					    IB_ACCESS_REMOTE_WRITE), 0);
	nhca_iter_rkey(&it, &ref, PAGE_SIZE, 2 * PAGE_SIZE, true);
	nhca_live_enter();
	KUNIT_EXPECT_NULL(test, nhca_iter_page(&it));
	KUNIT_EXPECT_EQ(test, nhca_iter_next(&it, PAGE_SIZE, &seg), 0);
	KUNIT_EXPECT_PTR_EQ(test, nhca_iter_page(&it), f->pages[2]);
	nhca_live_exit();
	nhca_rkey_put(&ref);
	local_bh_enable();
	nhca_mr_free(mr);
}

/*
 * Return: a batch of PACKETS WRITE Middle packets. Each has a page of payload, which begins @off
 * bytes after the start of a page.
 */
static struct sk_buff *batch(struct kunit *test, u32 off)
{
	struct sk_buff *skb = alloc_skb(0, GFP_KERNEL);
	struct nhca_hdr h = {
		.opcode = NHCA_OP_WRITE_MIDDLE,
		.info = nhca_opinfo(NHCA_OP_WRITE_MIDDLE),
		.pkey = 0xffff,
		.caps = NHCA_CAP_PRESENT | NHCA_CAP_NO_ICRC,
	};
	struct page *page;
	u32 n, nr = 0;

	KUNIT_ASSERT_NOT_NULL(test, skb);
	for (n = 0; n < PACKETS; n++, h.psn++) {
		page = alloc_page(GFP_KERNEL | __GFP_ZERO);
		KUNIT_ASSERT_NOT_NULL(test, page);
		nhca_hdr_encode(&h, page_address(page));
		skb_add_rx_frag(skb, nr++, page, 0, NHCA_BTH_LEN, NHCA_BTH_LEN);
		page = alloc_pages(GFP_KERNEL | __GFP_COMP, 1);
		KUNIT_ASSERT_NOT_NULL(test, page);
		memset(page_address(page), 'a' + n, 2 * PAGE_SIZE);
		skb_add_rx_frag(skb, nr++, page, off, PAGE_SIZE + NHCA_ICRC_LEN,
				PAGE_SIZE + NHCA_ICRC_LEN);
	}
	return skb;
}

/*
 * Received payload is placed by whole pages if source and destination are aligned, and otherwise in
 * smaller pieces, with the same result.
 */
static void placed_test(struct kunit *test)
{
	static const u32 offsets[] = { 0, 8 };
	struct fixture *f = test->priv;
	u32 in, to, i, n, avail;
	struct nhca_mr *mr;
	struct nhca_iter it;
	struct nhca_rx rx;
	const u8 *head;
	u64 wrong;
	u8 *p;

	for (in = 0; in < ARRAY_SIZE(offsets); in++) {
		for (to = 0; to < ARRAY_SIZE(offsets); to++) {
			memset(&rx, 0, sizeof(rx));
			rx.skb = batch(test, offsets[in]);
			rx.udp_len = SEG;
			rx.payload = PAGE_SIZE;
			nhca_cursor_init(&rx.at, rx.skb);
			head = nhca_cursor_at(&rx.at, 0, &avail);
			KUNIT_ASSERT_EQ(test, nhca_hdr_decode(&rx.hdr, head, avail, SEG),
					NHCA_DECODE_OK);
			rx.alike.set = true;
			rx.alike.no_icrc = true;
			memcpy(rx.alike.bth, head, sizeof(rx.alike.bth));
			for (i = 0; i < NPAGES; i++)
				memset(page_address(f->pages[i]), 0, PAGE_SIZE);
			mr = pages_make(test, NPAGES, 0, true);

			enter();
			begin(test, &it, mr, offsets[to], (PACKETS - 1) * PAGE_SIZE,
			      IB_ACCESS_REMOTE_WRITE);
			n = nhca_rx_copy_alike(&rx, PACKETS, &it);
			leave();
			KUNIT_EXPECT_EQ(test, n, PACKETS - 1);
			for (i = 0, wrong = 0; i < NPAGES * PAGE_SIZE; i++) {
				p = page_address(f->pages[i / PAGE_SIZE]);
				n = (i - offsets[to]) / PAGE_SIZE;
				wrong += p[i % PAGE_SIZE] != (n < PACKETS - 1 ? 'b' + n : 0);
			}
			KUNIT_EXPECT_EQ(test, wrong, 0);
			nhca_mr_free(mr);
			kfree_skb(rx.skb);
		}
	}
}

static struct kunit_case page_cases[] = {
	KUNIT_CASE(leaf_test),
	KUNIT_CASE(huge_test),
	KUNIT_CASE(mixed_test),
	KUNIT_CASE(refused_test),
	KUNIT_CASE(first_page_test),
	KUNIT_CASE(placed_test),
	{}
};

static struct kunit_suite page_suite = {
	.name = "nhca_page",
	.init = fixture_init,
	.exit = fixture_exit,
	.test_cases = page_cases,
};

kunit_test_suite(page_suite);
