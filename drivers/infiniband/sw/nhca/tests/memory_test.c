// SPDX-License-Identifier: GPL-2.0
/* KUnit: keys, address ranges and the iterators over regions. */
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "regions.h"

#define PAGES		5

/*
 * A region with its own pages, which are usually not contiguous in memory. The pages have more
 * bytes than the region, so that region_zeroes() shows writes outside the region.
 */
struct region {
	struct nhca_mr *mr;
	struct page *pages[PAGES];
	u32 offset;
	u32 key;
};

static struct region *region_make(struct kunit *test, struct fixture *f, u64 iova, u64 length,
				  u32 offset, int access)
{
	struct region *r = kunit_kzalloc(test, sizeof(*r), GFP_KERNEL);
	int i, j;

	KUNIT_ASSERT_NOT_NULL(test, r);
	KUNIT_ASSERT_LE(test, offset + length, PAGES * PAGE_SIZE);
	for (i = 0; i < PAGES; i++) {
		/*
		 * allocate backwards: neighbors in the region are then usually not neighbors in
		 * memory
		 */
		j = PAGES - 1 - i;
		r->pages[j] = alloc_page(GFP_KERNEL | __GFP_ZERO);
		KUNIT_ASSERT_NOT_NULL(test, r->pages[j]);
	}
	r->mr = nhca_mr_alloc(f->dev, f->key_user.pd, access);
	KUNIT_ASSERT_FALSE(test, IS_ERR(r->mr));
	KUNIT_ASSERT_EQ(test, nhca_mr_map_pages(r->mr, r->pages, PAGES, offset, true), 0);
	nhca_mr_start(r->mr, iova, length);
	r->offset = offset;
	r->key = r->mr->ibmr.lkey;
	return r;
}

static void region_free(struct region *r)
{
	int i;

	nhca_mr_free(r->mr);
	for (i = 0; i < PAGES; i++)
		__free_page(r->pages[i]);
}

/* Return: pointer to byte @i of the region, computed without the code under test. */
static u8 *region_byte(struct region *r, u64 i)
{
	i += r->offset;
	return (u8 *)page_address(r->pages[i / PAGE_SIZE]) + i % PAGE_SIZE;
}

static u64 region_zeroes(struct region *r)
{
	u64 n = 0;
	int i, j;

	for (i = 0; i < PAGES; i++)
		for (j = 0; j < PAGE_SIZE; j++)
			n += !((u8 *)page_address(r->pages[i]))[j];
	return n;
}

/* Return: 0 if remote key @key grants @access to the @len bytes at @va, or an error. */
static int try_key(const struct nhca_key_user *key_user, u32 key, u64 va, u32 len, int access)
{
	struct nhca_iter it;
	int err;

	enter();
	err = nhca_iter_key(&it, key_user, key, va, len, access);
	leave();
	return err;
}

/* Return: 0 if an SGE with L_Key @key grants @access to the @len bytes at @va, or an error. */
static int try_sge(const struct nhca_key_user *key_user, u32 key, u64 va, u32 len, int access)
{
	struct nhca_sge sge = { .addr = va, .length = len, .lkey = key };
	struct nhca_iter it;
	struct nhca_seg seg;
	int err;

	enter();
	nhca_iter_sges(&it, key_user, &sge, 1, 0, U32_MAX, access);
	do {
		err = nhca_iter_next(&it, U32_MAX, &seg);
	} while (!err);
	leave();
	return err == -ENODATA ? 0 : err;
}

/* A key gives access to no range that begins before its region, ends after it, or wraps. */
static void range_test(struct kunit *test)
{
	struct fixture *f = test->priv;
	const u64 iova = 0x7f0000001234ULL;
	const u32 len = 3 * PAGE_SIZE;
	const struct {
		u64 va;
		u32 len;
		int err;
	} cases[] = {
		{ iova, 1, 0 },
		{ iova, len, 0 },
		{ iova + len - 1, 1, 0 },
		{ iova + 1, len - 1, 0 },
		{ iova, len + 1, -EACCES },
		{ iova + 1, len, -EACCES },
		{ iova + len, 1, -EACCES },
		{ iova - 1, 1, -EACCES },
		{ iova - 1, 2, -EACCES },
		{ iova - 1, len + 2, -EACCES },
		{ iova, U32_MAX, -EACCES },
		{ 0, 1, -EACCES },
		{ 0, U32_MAX, -EACCES },
		{ U64_MAX, 1, -EACCES },
		/* ranges that wrap around 2^64 */
		{ U64_MAX, 2, -EACCES },
		{ U64_MAX - 100, U32_MAX, -EACCES },
		/* addresses that differ from iova only in one of the upper 32 bits */
		{ iova + (1ULL << 32), 1, -EACCES },
		{ iova + (1ULL << 63), 1, -EACCES },
	};
	struct region *r = region_make(test, f, iova, len, 0x234, ALL_ACCESS);
	u32 key = r->key;
	int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		KUNIT_EXPECT_EQ_MSG(test, try_key(&f->key_user, key, cases[i].va, cases[i].len,
						  IB_ACCESS_REMOTE_WRITE),
				    cases[i].err, "key, case %d", i);
		KUNIT_EXPECT_EQ_MSG(test, try_sge(&f->key_user, key, cases[i].va, cases[i].len,
						  IB_ACCESS_LOCAL_WRITE),
				    cases[i].err, "sge, case %d", i);
	}
	region_free(r);
}

/*
 * A region at the start or the end of the address space gives access to its own bytes only. For the
 * region at the end, address plus length is 0, because the sum wraps.
 */
static void edge_test(struct kunit *test)
{
	struct fixture *f = test->priv;
	struct region *top = region_make(test, f, -(u64)PAGE_SIZE, PAGE_SIZE, 0, ALL_ACCESS);
	struct region *zero = region_make(test, f, 0, PAGE_SIZE, 0, ALL_ACCESS);

	KUNIT_EXPECT_EQ(test, try_sge(&f->key_user, top->key, U64_MAX, 1, 0), 0);
	KUNIT_EXPECT_EQ(test, try_sge(&f->key_user, top->key, U64_MAX, 2, 0), -EACCES);
	KUNIT_EXPECT_EQ(test, try_sge(&f->key_user, top->key, -(u64)PAGE_SIZE, PAGE_SIZE, 0), 0);
	KUNIT_EXPECT_EQ(test, try_sge(&f->key_user, top->key, 0, 1, 0), -EACCES);
	KUNIT_EXPECT_EQ(test, try_sge(&f->key_user, zero->key, 0, PAGE_SIZE, 0), 0);
	KUNIT_EXPECT_EQ(test, try_sge(&f->key_user, zero->key, U64_MAX, 1, 0), -EACCES);
	KUNIT_EXPECT_EQ(test, try_sge(&f->key_user, zero->key, U64_MAX, 2, 0), -EACCES);
	KUNIT_EXPECT_EQ(test, try_sge(&f->key_user, zero->key, PAGE_SIZE, 1, 0), -EACCES);
	region_free(top);
	region_free(zero);
}

/* For every combination of the rights in bits[], a key grants exactly the rights of its region. */
static void access_test(struct kunit *test)
{
	static const int bits[] = { IB_ACCESS_LOCAL_WRITE, IB_ACCESS_REMOTE_READ,
				    IB_ACCESS_REMOTE_WRITE, IB_ACCESS_REMOTE_ATOMIC };
	struct fixture *f = test->priv;
	int granted, mask, wanted;
	struct region *r;

	for (mask = 0; mask < 16; mask++) {
		granted = 0;
		for (wanted = 0; wanted < 4; wanted++)
			if (mask & BIT(wanted))
				granted |= bits[wanted];
		r = region_make(test, f, 0x1000, 64, 0, granted);
		for (wanted = 0; wanted < 4; wanted++)
			KUNIT_EXPECT_EQ_MSG(test,
					    try_key(&f->key_user, r->key, 0x1000, 8, bits[wanted]),
					    granted & bits[wanted] ? 0 : -EACCES,
					    "%#x of %#x", bits[wanted], granted);
		/* local reads need no right */
		KUNIT_EXPECT_EQ(test, try_sge(&f->key_user, r->key, 0x1000, 8, 0), 0);
		KUNIT_EXPECT_EQ(test, try_sge(&f->key_user, r->key, 0x1000, 8,
					      IB_ACCESS_LOCAL_WRITE),
				granted & IB_ACCESS_LOCAL_WRITE ? 0 : -EACCES);
		region_free(r);
	}
}

/*
 * A key gives no access if one bit is wrong, in another protection domain, or after its region is
 * freed.
 */
static void key_test(struct kunit *test)
{
	const struct nhca_key_user nobody = {};
	struct fixture *f = test->priv;
	struct region *r = region_make(test, f, 0x1000, 64, 0, ALL_ACCESS);
	u32 key = r->key, variant, last;
	int i;

	KUNIT_EXPECT_GE(test, key, 256);
	KUNIT_EXPECT_EQ(test, r->mr->ibmr.lkey, key);
	KUNIT_EXPECT_EQ(test, r->mr->ibmr.rkey, key);

	/*
	 * the index (the upper 24 bits of the key) is right, the variant (the lower 8 bits) is
	 * wrong
	 */
	for (variant = 1; variant < 256; variant++)
		KUNIT_EXPECT_EQ(test, try_sge(&f->key_user, key ^ variant, 0x1000, 8, 0), -EACCES);
	/* the index is wrong */
	for (i = 8; i < 32; i++)
		KUNIT_EXPECT_EQ(test, try_sge(&f->key_user, key ^ BIT(i), 0x1000, 8, 0), -EACCES);
	KUNIT_EXPECT_EQ(test, try_sge(&f->key_user, 0, 0x1000, 8, 0), -EACCES);
	KUNIT_EXPECT_EQ(test, try_sge(&f->key_user, U32_MAX, 0x1000, 8, 0), -EACCES);

	/* a key user of another protection domain, or of none */
	KUNIT_EXPECT_EQ(test, try_key(&f->other, key, 0x1000, 8, IB_ACCESS_REMOTE_READ),
			-EACCES);
	KUNIT_EXPECT_EQ(test, try_sge(&f->other, key, 0x1000, 8, 0), -EACCES);
	KUNIT_EXPECT_EQ(test, try_sge(&nobody, key, 0x1000, 8, 0), -EACCES);
	KUNIT_EXPECT_EQ(test, try_sge(&f->key_user, key, 0x1000, 8, 0), 0);

	/* the key of a deregistered region gives no access, and is not used again soon */
	for (i = 0; i < 50; i++) {
		last = r->key;
		region_free(r);
		KUNIT_EXPECT_EQ(test, try_sge(&f->key_user, last, 0x1000, 8, 0), -EACCES);
		r = region_make(test, f, 0x1000, 64, 0, ALL_ACCESS);
		KUNIT_EXPECT_NE(test, r->key, last);
		KUNIT_EXPECT_NE(test, r->key, key);
		KUNIT_EXPECT_EQ(test, try_sge(&f->key_user, key, 0x1000, 8, 0), -EACCES);
		KUNIT_EXPECT_EQ(test, try_sge(&f->key_user, r->key, 0x1000, 8, 0), 0);
	}
	region_free(r);
}

/* A range of no bytes needs no key, because no memory is accessed. */
static void zero_length_test(struct kunit *test)
{
	struct fixture *f = test->priv;
	struct region *r = region_make(test, f, 0x1000, 64, 0, ALL_ACCESS);
	struct nhca_sge sges[] = {
		{ .addr = 0xbad, .length = 0, .lkey = 0 },
		{ .addr = 0x1000, .length = 3, .lkey = r->key },
		{ .addr = U64_MAX, .length = 0, .lkey = U32_MAX },
		{ .addr = 0x1008, .length = 2, .lkey = r->key },
		{ .addr = 0, .length = 0, .lkey = 0 },
	};
	struct nhca_iter it;
	struct nhca_seg seg;
	u8 out[5];

	enter();
	KUNIT_EXPECT_EQ(test, nhca_iter_key(&it, &f->key_user, 0xbad, U64_MAX, 0,
					    IB_ACCESS_REMOTE_WRITE), 0);
	KUNIT_EXPECT_EQ(test, nhca_iter_next(&it, 8, &seg), -ENODATA);
	nhca_iter_sges(&it, &f->key_user, NULL, 0, 0, U32_MAX, 0);
	KUNIT_EXPECT_EQ(test, nhca_iter_next(&it, 8, &seg), -ENODATA);
	KUNIT_EXPECT_EQ(test, nhca_iter_read(&it, out, 0), 0);
	KUNIT_EXPECT_EQ(test, nhca_iter_read(&it, out, 1), -ENODATA);

	memcpy(region_byte(r, 0), "abc", 3);
	memcpy(region_byte(r, 8), "de", 2);
	nhca_iter_sges(&it, &f->key_user, sges, ARRAY_SIZE(sges), 0, U32_MAX, 0);
	KUNIT_EXPECT_EQ(test, nhca_iter_read(&it, out, 5), 0);
	KUNIT_EXPECT_MEMEQ(test, out, "abcde", 5);
	KUNIT_EXPECT_EQ(test, nhca_iter_next(&it, 1, &seg), -ENODATA);
	leave();
	region_free(r);
}

/*
 * Each segment of a range lies in one page, and begins where the previous segment ends. Together
 * the segments cover the range.
 */
static void segment_test(struct kunit *test)
{
	static const u32 maxes[] = { 1, 7, 64, 4096, 100000 };
	struct fixture *f = test->priv;
	const u64 iova = 0x5555000000ULL + 0x123;
	const u32 length = 4 * PAGE_SIZE;
	struct region *r = region_make(test, f, iova, length, 0x123, ALL_ACCESS);
	u32 start, len, done, m, i;
	struct nhca_iter it;
	struct nhca_seg seg;
	int err;

	for (m = 0; m < ARRAY_SIZE(maxes); m++) {
		for (i = 0; i < 40; i++) {
			start = (i * 977) % (2 * PAGE_SIZE);
			len = min_t(u32, 1 + (i * 3571) % (3 * PAGE_SIZE), length - start);
			done = 0;
			enter();
			KUNIT_EXPECT_EQ(test, nhca_iter_key(&it, &f->key_user, r->key,
							    iova + start, len,
							    IB_ACCESS_REMOTE_READ), 0);
			while (!(err = nhca_iter_next(&it, maxes[m], &seg))) {
				KUNIT_EXPECT_GT(test, seg.len, 0);
				KUNIT_EXPECT_LE(test, seg.len, maxes[m]);
				KUNIT_EXPECT_LE(test, offset_in_page(seg.addr) + seg.len,
						PAGE_SIZE);
				KUNIT_EXPECT_PTR_EQ(test, seg.addr,
						    (void *)region_byte(r, start + done));
				done += seg.len;
			}
			leave();
			KUNIT_EXPECT_EQ(test, err, -ENODATA);
			KUNIT_EXPECT_EQ(test, done, len);
		}
	}
	region_free(r);
}

/* A read of a list of SGEs in two regions returns the right bytes, from any offset in the list. */
static void gather_test(struct kunit *test)
{
	struct fixture *f = test->priv;
	struct region *a = region_make(test, f, 0x10000, 6000, 0xff0, ALL_ACCESS);
	struct region *b = region_make(test, f, 0x10000, 100, 8, ALL_ACCESS);
	const struct nhca_sge sges[] = {
		{ .addr = 0x10000 + 5, .length = 13, .lkey = a->key },
		{ .addr = 0x10000 + 90, .length = 10, .lkey = b->key },
		{ .addr = 0, .length = 0, .lkey = 1 },
		{ .addr = 0x10000 + 10, .length = 5000, .lkey = a->key },
		{ .addr = 0x10000, .length = 1, .lkey = b->key },
	};
	const u32 total = 13 + 10 + 5000 + 1;
	u8 *flat = kunit_kzalloc(test, total, GFP_KERNEL);
	u8 *out = kunit_kzalloc(test, total, GFP_KERNEL);
	struct region *of[] = { a, b, a, a, b };
	struct nhca_iter it, copy;
	__wsum sum, want;
	struct nhca_seg seg;
	u32 i, j, n, skip;

	KUNIT_ASSERT_TRUE(test, flat && out);
	for (i = 0; i < 6000; i++)
		*region_byte(a, i) = i * 31 + i / 256 + 1;
	for (i = 0; i < 100; i++)
		*region_byte(b, i) = 200 - i;
	for (i = 0, n = 0; i < ARRAY_SIZE(sges); i++)
		for (j = 0; j < sges[i].length; j++)
			flat[n++] = *region_byte(of[i], sges[i].addr - 0x10000 + j);
	KUNIT_ASSERT_EQ(test, n, total);

	for (skip = 0; skip <= total; skip++) {
		enter();
		nhca_iter_sges(&it, &f->key_user, sges, ARRAY_SIZE(sges), skip, U32_MAX, 0);
		/* two reads, the second from a copy of the iterator */
		n = (total - skip) / 3;
		KUNIT_EXPECT_EQ(test, nhca_iter_read(&it, out, n), 0);
		copy = it;
		KUNIT_EXPECT_EQ(test, nhca_iter_read(&copy, out + n, total - skip - n), 0);
		KUNIT_EXPECT_EQ(test, memcmp(out, flat + skip, total - skip), 0);
		KUNIT_EXPECT_EQ(test, nhca_iter_next(&copy, 1, &seg), -ENODATA);
		/* one read, with the checksum of all bytes */
		memset(out, 0, total);
		nhca_iter_sges(&it, &f->key_user, sges, ARRAY_SIZE(sges), skip, U32_MAX, 0);
		KUNIT_EXPECT_EQ(test, nhca_iter_read_sum(&it, out, total - skip, &sum), 0);
		KUNIT_EXPECT_EQ(test, memcmp(out, flat + skip, total - skip), 0);
		want = csum_partial(flat + skip, total - skip, 0);
		KUNIT_EXPECT_EQ(test, (__force u16)csum_fold(sum), (__force u16)csum_fold(want));
		leave();
	}
	enter();
	nhca_iter_sges(&it, &f->key_user, sges, ARRAY_SIZE(sges), total + 1, U32_MAX, 0);
	KUNIT_EXPECT_EQ(test, nhca_iter_next(&it, 1, &seg), -ENODATA);
	nhca_iter_sges(&it, &f->key_user, sges, ARRAY_SIZE(sges), U32_MAX, U32_MAX, 0);
	KUNIT_EXPECT_EQ(test, nhca_iter_next(&it, 1, &seg), -ENODATA);
	leave();
	region_free(a);
	region_free(b);
}

/* A write to a list of SGEs puts each byte in its place and changes no other byte. */
static void scatter_test(struct kunit *test)
{
	struct fixture *f = test->priv;
	struct region *a = region_make(test, f, 0x10000, 9000, 0x800, ALL_ACCESS);
	struct region *b = region_make(test, f, 0x10000, 64, 0, IB_ACCESS_REMOTE_READ);
	struct nhca_sge sges[] = {
		{ .addr = 0x10000 + 100, .length = 3000, .lkey = a->key },
		{ .addr = 0x10000 + 4000, .length = 5000, .lkey = a->key },
		{ .addr = 0x10000, .length = 64, .lkey = b->key },
	};
	u8 *src = kunit_kzalloc(test, 8000, GFP_KERNEL);
	struct nhca_iter it;
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, src);
	for (i = 0; i < 8000; i++)
		src[i] = 1 + i % 255;
	enter();
	nhca_iter_sges(&it, &f->key_user, sges, 3, 10, U32_MAX, IB_ACCESS_LOCAL_WRITE);
	KUNIT_EXPECT_EQ(test, nhca_iter_write(&it, src, 7990), 0);
	for (i = 0; i < 2990; i++)
		KUNIT_EXPECT_EQ(test, *region_byte(a, 110 + i), src[i]);
	for (i = 0; i < 5000; i++)
		KUNIT_EXPECT_EQ(test, *region_byte(a, 4000 + i), src[2990 + i]);
	KUNIT_EXPECT_EQ(test, region_zeroes(a), PAGES * PAGE_SIZE - 7990);
	/* the region of the third SGE does not allow local writes */
	KUNIT_EXPECT_EQ(test, nhca_iter_write(&it, src, 1), -EACCES);
	leave();
	KUNIT_EXPECT_EQ(test, region_zeroes(b), PAGES * PAGE_SIZE);
	region_free(a);
	region_free(b);
}

/*
 * Atomic operations change 8 aligned bytes, return the old value, and require
 * IB_ACCESS_REMOTE_ATOMIC.
 */
static void atomic_test(struct kunit *test)
{
	struct fixture *f = test->priv;
	struct region *r = region_make(test, f, 0x1000, 4096, 0, ALL_ACCESS);
	struct region *odd = region_make(test, f, 0, 4096, 4, ALL_ACCESS);
	struct region *ro = region_make(test, f, 0x1000, 4096, 0, IB_ACCESS_REMOTE_WRITE);
	u64 *at = (u64 *)region_byte(r, 4088), orig = 0;
	u64 va = 0x1000 + 4088;

	enter();
	*at = 0x123456789abcdef0ULL;
	KUNIT_EXPECT_EQ(test, nhca_atomic(&f->key_user, r->key, va, false,
					  U64_MAX, 0, &orig, NULL), 0);
	KUNIT_EXPECT_EQ(test, orig, 0x123456789abcdef0ULL);
	KUNIT_EXPECT_EQ(test, *at, 0x123456789abcdeefULL);
	/* the comparison fails, so nothing is written */
	KUNIT_EXPECT_EQ(test, nhca_atomic(&f->key_user, r->key, va, true, 1, 2, &orig, NULL), 0);
	KUNIT_EXPECT_EQ(test, orig, 0x123456789abcdeefULL);
	KUNIT_EXPECT_EQ(test, *at, 0x123456789abcdeefULL);
	KUNIT_EXPECT_EQ(test, nhca_atomic(&f->key_user, r->key, va, true,
					  0x123456789abcdeefULL, 42, &orig, NULL), 0);
	KUNIT_EXPECT_EQ(test, orig, 0x123456789abcdeefULL);
	KUNIT_EXPECT_EQ(test, *at, 42);

	KUNIT_EXPECT_EQ(test, nhca_atomic(&f->key_user, r->key, va + 8, true, 1, 2, &orig, NULL),
			-EACCES);
	KUNIT_EXPECT_EQ(test, nhca_atomic(&f->key_user, r->key ^ 1, va, true, 42, 2, &orig, NULL),
			-EACCES);
	KUNIT_EXPECT_EQ(test, nhca_atomic(&f->other, r->key, va, true, 42, 2, &orig, NULL),
			-EACCES);
	KUNIT_EXPECT_EQ(test, nhca_atomic(&f->key_user, ro->key, va, false, 1, 0, &orig, NULL),
			-EACCES);
	/* the address is aligned, but the memory is not */
	KUNIT_EXPECT_EQ(test, nhca_atomic(&f->key_user, odd->key, 0, false, 1, 0, &orig, NULL),
			-EACCES);
	KUNIT_EXPECT_EQ(test, nhca_atomic(&f->key_user, odd->key, 4088, false, 1, 0, &orig, NULL),
			-EACCES);
	leave();
	KUNIT_EXPECT_EQ(test, *at, 42);
	KUNIT_EXPECT_EQ(test, region_zeroes(odd), PAGES * PAGE_SIZE);
	KUNIT_EXPECT_EQ(test, region_zeroes(ro), PAGES * PAGE_SIZE);
	region_free(r);
	region_free(odd);
	region_free(ro);
}

/*
 * An R_Key reference gives access to any part of its range, in any order, until the key is closed.
 */
static void rkey_ref_test(struct kunit *test)
{
	struct fixture *f = test->priv;
	struct region *r = region_make(test, f, 0x10000, 9000, 0x800, ALL_ACCESS);
	struct nhca_rkey_ref h = {}, empty = {};
	struct nhca_iter it;
	int i, err[4];
	u8 out[8];

	for (i = 0; i < 9000; i++)
		*region_byte(r, i) = i * 31 + i / 256;
	local_bh_disable();
	err[0] = nhca_rkey_get(&h, &f->key_user, r->key, 0x10000 + 1000, 8001,
			       IB_ACCESS_REMOTE_READ);
	err[1] = nhca_rkey_get(&h, &f->key_user, r->key ^ 1, 0x10000, 1, IB_ACCESS_REMOTE_READ);
	err[2] = nhca_rkey_get(&h, &f->other, r->key, 0x10000, 1, IB_ACCESS_REMOTE_READ);
	err[3] = nhca_rkey_get(&empty, &f->key_user, 0xbad, 0, 0, IB_ACCESS_REMOTE_WRITE);
	local_bh_enable();
	KUNIT_EXPECT_EQ(test, err[0], -EACCES);
	KUNIT_EXPECT_EQ(test, err[1], -EACCES);
	KUNIT_EXPECT_EQ(test, err[2], -EACCES);
	KUNIT_EXPECT_EQ(test, err[3], 0);

	local_bh_disable();
	err[0] = nhca_rkey_get(&h, &f->key_user, r->key, 0x10000 + 1000, 8000,
			       IB_ACCESS_REMOTE_READ);
	local_bh_enable();
	KUNIT_ASSERT_EQ(test, err[0], 0);
	for (i = 0; i < 8000 - 8; i += 997) {
		enter();
		nhca_iter_rkey(&it, &h, i, 8, false);
		err[0] = nhca_iter_read(&it, out, 8);
		err[1] = nhca_iter_read(&it, out, 1);
		leave();
		KUNIT_EXPECT_EQ(test, err[0], 0);
		KUNIT_EXPECT_EQ(test, err[1], -ENODATA);
		KUNIT_EXPECT_EQ(test, out[0], *region_byte(r, 1000 + i));
	}

	KUNIT_EXPECT_EQ(test, nhca_mr_close(&r->mr->ibmr), 0);
	enter();
	nhca_iter_rkey(&it, &h, 0, 8, false);
	err[0] = nhca_iter_read(&it, out, 8);
	leave();
	KUNIT_EXPECT_EQ(test, err[0], -EACCES);
	local_bh_disable();
	nhca_rkey_put(&h);
	nhca_rkey_put(&empty);
	local_bh_enable();
	region_free(r);
}

/* A region of all kernel memory belongs to a kernel PD, and gives access only to the direct map. */
static void kernel_region_test(struct kunit *test)
{
	struct fixture *f = test->priv;
	struct ib_uobject *uobject = kunit_kzalloc(test, sizeof(*uobject), GFP_KERNEL);
	u8 *buf = kunit_kzalloc(test, 3 * PAGE_SIZE, GFP_KERNEL);
	void *far = vmalloc(PAGE_SIZE);
	struct nhca_sge sge;
	struct nhca_iter it;
	struct ib_mr *ibmr;

	KUNIT_ASSERT_TRUE(test, uobject && buf && far);
	/* a process cannot have a region of all kernel memory */
	f->other.pd->uobject = uobject;
	KUNIT_EXPECT_EQ(test, PTR_ERR_OR_ZERO(nhca_mr_dma(f->dev, f->other.pd, 0)), -EPERM);

	ibmr = nhca_mr_dma(f->dev, f->key_user.pd, IB_ACCESS_LOCAL_WRITE);
	KUNIT_ASSERT_FALSE(test, IS_ERR(ibmr));
	sge.addr = (uintptr_t)buf + 77;
	sge.length = 2 * PAGE_SIZE;
	sge.lkey = ibmr->lkey;
	enter();
	nhca_iter_sges(&it, &f->key_user, &sge, 1, PAGE_SIZE - 3, U32_MAX,
		       IB_ACCESS_LOCAL_WRITE);
	KUNIT_EXPECT_EQ(test, nhca_iter_write(&it, "kernel", 6), 0);
	leave();
	KUNIT_EXPECT_MEMEQ(test, buf + 77 + PAGE_SIZE - 3, "kernel", 6);
	KUNIT_EXPECT_EQ(test, buf[77 + PAGE_SIZE - 4] | buf[77 + PAGE_SIZE + 3], 0);

	/* the key gives access in its PD only, and only with the rights of the region */
	KUNIT_EXPECT_EQ(test, try_sge(&f->other, ibmr->lkey, sge.addr, 8, 0), -EACCES);
	KUNIT_EXPECT_EQ(test, try_key(&f->key_user, ibmr->rkey, sge.addr, 8, IB_ACCESS_REMOTE_READ),
			-EACCES);
	/* addresses outside the direct map */
	KUNIT_EXPECT_EQ(test, try_sge(&f->key_user, ibmr->lkey, (uintptr_t)far, 8, 0), -EACCES);
	KUNIT_EXPECT_EQ(test, try_sge(&f->key_user, ibmr->lkey, 0, 8, 0), -EACCES);
	KUNIT_EXPECT_EQ(test, try_sge(&f->key_user, ibmr->lkey, U64_MAX, 8, 0), -EACCES);

	KUNIT_EXPECT_EQ(test, nhca_mr_destroy(f->dev, ibmr), 0);
	KUNIT_EXPECT_EQ(test, try_sge(&f->key_user, sge.lkey, sge.addr, 8, 0), -EACCES);
	vfree(far);
}

/* An iterator over kernel memory needs no key, and a read may span pages. */
static void bytes_test(struct kunit *test)
{
	u8 *buf = kunit_kzalloc(test, 2 * PAGE_SIZE, GFP_KERNEL);
	u8 *out = kunit_kzalloc(test, 2 * PAGE_SIZE, GFP_KERNEL);
	struct nhca_iter it;
	struct nhca_seg seg;
	int i;

	KUNIT_ASSERT_TRUE(test, buf && out);
	for (i = 0; i < 2 * PAGE_SIZE; i++)
		buf[i] = i * 7 + i / 256;
	nhca_iter_bytes(&it, buf + 100);
	KUNIT_EXPECT_EQ(test, nhca_iter_next(&it, 10, &seg), 0);
	KUNIT_EXPECT_EQ(test, seg.len, 10);
	KUNIT_EXPECT_PTR_EQ(test, seg.addr, (void *)buf + 100);
	KUNIT_EXPECT_EQ(test, nhca_iter_read(&it, out, PAGE_SIZE + 50), 0);
	KUNIT_EXPECT_EQ(test, memcmp(out, buf + 110, PAGE_SIZE + 50), 0);
}

static struct kunit_case memory_cases[] = {
	KUNIT_CASE(range_test),
	KUNIT_CASE(edge_test),
	KUNIT_CASE(access_test),
	KUNIT_CASE(key_test),
	KUNIT_CASE(zero_length_test),
	KUNIT_CASE(segment_test),
	KUNIT_CASE(gather_test),
	KUNIT_CASE(scatter_test),
	KUNIT_CASE(atomic_test),
	KUNIT_CASE(rkey_ref_test),
	KUNIT_CASE(kernel_region_test),
	KUNIT_CASE(bytes_test),
	{}
};

static struct kunit_suite memory_suite = {
	.name = "nhca_memory",
	.init = fixture_init,
	.exit = fixture_exit,
	.test_cases = memory_cases,
};

kunit_test_suite(memory_suite);
