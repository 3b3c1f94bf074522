// SPDX-License-Identifier: GPL-2.0
/* KUnit: fast registration, and regions that are lists of pieces. */
#include <linux/mm.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "regions.h"

static bool pvo_found(u64 pvo)
{
	unsigned int shift;
	u64 tce;

	enter();
	tce = nhca_tce_find(pvo, &shift);
	leave();
	return tce;
}

/*
 * Set the DMA address as ib_dma_map_sg() does for a device whose DMA addresses are kernel
 * addresses.
 */
static void sg_dma(struct scatterlist *sg)
{
	sg_dma_address(sg) = (uintptr_t)sg_virt(sg);
	sg_dma_len(sg) = sg->length;
}

static void sg_pages(struct fixture *f, struct scatterlist *sg, int n)
{
	int i;

	sg_init_table(sg, n);
	for (i = 0; i < n; i++) {
		sg_set_page(&sg[i], f->pages[i], PAGE_SIZE, 0);
		sg_dma(&sg[i]);
	}
}

static struct ib_mr *fast_make(struct kunit *test, struct fixture *f, u32 max, bool gaps)
{
	struct ib_mr *ibmr = nhca_mr_fast(f->dev, f->key_user.pd, max, gaps);

	KUNIT_ASSERT_FALSE(test, IS_ERR(ibmr));
	ibmr->page_size = PAGE_SIZE;
	return ibmr;
}

static int reg(const struct nhca_key_user *key_user, u32 lkey, u32 key, int access)
{
	int err;

	local_bh_disable();
	err = nhca_reg_fast(key_user, lkey, key, access);
	local_bh_enable();
	return err;
}

static int inv(const struct nhca_key_user *key_user, u32 key)
{
	int err;

	local_bh_disable();
	err = nhca_local_inv(key_user, key, false);
	local_bh_enable();
	return err;
}

/* In each round of map, register and invalidate, keys and PVOs of earlier rounds give no access. */
static void fast_life_test(struct kunit *test)
{
	struct fixture *f = test->priv;
	struct ib_mr *ibmr = fast_make(test, f, 3, false);
	struct nhca_mr *mr = to_nhca_mr(ibmr);
	u32 key = ibmr->rkey, old_key;
	unsigned int offset = 40;
	struct scatterlist sg[3];
	u64 va, old_pvo = 0;
	int round, i;

	KUNIT_EXPECT_FALSE(test, mr->ops->zcopy);
	for (round = 0; round < 20; round++) {
		/* use other pages in each round, and an address that the consumer has chosen */
		sg_pages(f, sg, 3);
		swap(f->pages[0], f->pages[1 + round % (NPAGES - 1)]);
		for (i = 0; i < 3; i++) {
			sg_set_page(&sg[i], f->pages[i], PAGE_SIZE, 0);
			sg_dma(&sg[i]);
		}
		offset = 40;
		KUNIT_ASSERT_EQ(test, nhca_mr_fast_map(ibmr, sg, 3, &offset), 3);
		KUNIT_EXPECT_EQ(test, offset, 0);
		KUNIT_EXPECT_EQ(test, ibmr->length, 3 * PAGE_SIZE - 40);
		ibmr->iova = (ibmr->iova & ~PAGE_MASK) | 0xabcd0000000ULL;
		va = ibmr->iova;
		KUNIT_EXPECT_EQ(test, peek(&f->key_user, key, va), -EACCES);

		old_key = key;
		key = ib_inc_rkey(key);
		ib_update_fast_reg_key(ibmr, key);
		KUNIT_EXPECT_EQ(test, reg(&f->key_user, ibmr->lkey, key, ALL_ACCESS), 0);
		KUNIT_EXPECT_EQ(test, peek(&f->key_user, old_key, va), -EACCES);
		KUNIT_EXPECT_EQ(test, peek(&f->other, key, va), -EACCES);
		for (i = 0; i < 3; i++)
			KUNIT_EXPECT_EQ(test, peek(&f->key_user, key, va + i * PAGE_SIZE),
					*(u8 *)page_address(f->pages[i]));
		KUNIT_EXPECT_EQ(test, peek(&f->key_user, key, va - 1), -EACCES);
		KUNIT_EXPECT_EQ(test, peek(&f->key_user, key, va + ibmr->length), -EACCES);
		KUNIT_EXPECT_TRUE(test, pvo_found(mr->pvo));
		if (round) {
			KUNIT_EXPECT_NE(test, mr->pvo, old_pvo);
			for (i = 0; i < 3; i++)
				KUNIT_EXPECT_FALSE(test, pvo_found(old_pvo + i * PAGE_SIZE));
		}

		/*
		 * an open region cannot be registered again; an old key or another protection
		 * domain cannot invalidate it
		 */
		KUNIT_EXPECT_EQ(test, reg(&f->key_user, ibmr->lkey, key, ALL_ACCESS), -EINVAL);
		KUNIT_EXPECT_EQ(test, reg(&f->key_user, ibmr->lkey, key + 1, ALL_ACCESS), -EINVAL);
		KUNIT_EXPECT_EQ(test, inv(&f->key_user, old_key), -EINVAL);
		KUNIT_EXPECT_EQ(test, inv(&f->other, key), -EINVAL);
		KUNIT_EXPECT_GE(test, peek(&f->key_user, key, va), 0);

		KUNIT_EXPECT_EQ(test, inv(&f->key_user, key), 0);
		KUNIT_EXPECT_EQ(test, peek(&f->key_user, key, va), -EACCES);
		KUNIT_EXPECT_EQ(test, inv(&f->key_user, key), -EINVAL);
		/* the same pages can be registered again, with fewer rights */
		KUNIT_EXPECT_EQ(test, reg(&f->key_user, key, key, IB_ACCESS_LOCAL_WRITE), 0);
		KUNIT_EXPECT_EQ(test, peek(&f->key_user, key, va), -EACCES);
		KUNIT_EXPECT_EQ(test, inv(&f->key_user, key), 0);
		old_pvo = mr->pvo & PAGE_MASK;
	}
	KUNIT_EXPECT_EQ(test, nhca_mr_destroy(f->dev, ibmr), 0);
	for (i = 0; i < 3; i++)
		KUNIT_EXPECT_FALSE(test, pvo_found(old_pvo + i * PAGE_SIZE));
}

/*
 * A consumer may map a region for its next use while the region is still open for its current use:
 * ib_srp maps after it has posted the local invalidate, ib_iser before. The open region does not
 * change.
 */
static void fast_ahead_test(struct kunit *test)
{
	struct fixture *f = test->priv;
	struct scatterlist sg[1];
	struct ib_mr *ibmr;
	int round, gaps, before;
	u64 va = 0;
	u32 key;

	for (gaps = 0; gaps < 2; gaps++) {
		ibmr = fast_make(test, f, 1, gaps);
		key = ibmr->rkey;
		for (round = 0; round < 8; round++) {
			sg_init_table(sg, 1);
			sg_set_page(sg, f->pages[round % NPAGES], PAGE_SIZE, 0);
			sg_dma(sg);
			if (round % 4 == 3)
				KUNIT_ASSERT_EQ(test, nhca_mr_fast_map(ibmr, sg, 1, NULL), 1);
			KUNIT_ASSERT_EQ(test, nhca_mr_fast_map(ibmr, sg, 1, NULL), 1);
			if (round) {
				before = *(u8 *)page_address(f->pages[(round - 1) % NPAGES]);
				KUNIT_EXPECT_EQ(test, peek(&f->key_user, key, va), before);
				KUNIT_EXPECT_EQ(test, peek(&f->key_user, key, va + PAGE_SIZE - 1),
						before);
				KUNIT_EXPECT_EQ(test, inv(&f->key_user, key), 0);
			}
			va = ibmr->iova;
			key = ib_inc_rkey(key);
			KUNIT_EXPECT_EQ(test, reg(&f->key_user, ibmr->lkey, key, ALL_ACCESS), 0);
			KUNIT_EXPECT_EQ(test, peek(&f->key_user, key, va),
					*(u8 *)page_address(f->pages[round % NPAGES]));
		}
		/*
		 * a mapping that fails does not change the open region, and leaves nothing to
		 * register
		 */
		KUNIT_EXPECT_EQ(test, nhca_mr_fast_map(ibmr, sg, 0, NULL), -EINVAL);
		KUNIT_EXPECT_GE(test, peek(&f->key_user, key, va), 0);
		KUNIT_EXPECT_EQ(test, inv(&f->key_user, key), 0);
		KUNIT_EXPECT_EQ(test, reg(&f->key_user, ibmr->lkey, key, ALL_ACCESS), -EINVAL);
		KUNIT_EXPECT_EQ(test, nhca_mr_destroy(f->dev, ibmr), 0);
	}
}

/*
 * Registration fails without a mapping, with a wrong key or protection domain, with impossible
 * rights, for an address range that wraps, and for regions that were not made for fast
 * registration.
 */
static void fast_reg_bad_test(struct kunit *test)
{
	struct fixture *f = test->priv;
	struct ib_mr *ibmr = fast_make(test, f, 2, false);
	struct nhca_mr *user = nhca_mr_alloc(f->dev, f->key_user.pd, ALL_ACCESS);
	struct scatterlist sg[2];
	u32 key = ibmr->rkey;
	struct ib_mr *dma;

	KUNIT_ASSERT_FALSE(test, IS_ERR(user));
	/* nothing is mapped */
	KUNIT_EXPECT_EQ(test, reg(&f->key_user, key, key, ALL_ACCESS), -EINVAL);
	sg_pages(f, sg, 2);
	KUNIT_ASSERT_EQ(test, nhca_mr_fast_map(ibmr, sg, 2, NULL), 2);
	/* another protection domain; another index in the new key; indices that no region has */
	KUNIT_EXPECT_EQ(test, reg(&f->other, key, key, ALL_ACCESS), -EINVAL);
	KUNIT_EXPECT_EQ(test, reg(&f->key_user, key, key ^ 0x100, ALL_ACCESS), -EINVAL);
	KUNIT_EXPECT_EQ(test, reg(&f->key_user, key, key ^ BIT(31), ALL_ACCESS), -EINVAL);
	KUNIT_EXPECT_EQ(test, reg(&f->key_user, key ^ BIT(31), key ^ BIT(31), ALL_ACCESS), -EINVAL);
	KUNIT_EXPECT_EQ(test, reg(&f->key_user, 0, 0, ALL_ACCESS), -EINVAL);
	/*
	 * remote rights without local write, which they require; rights that fast registration does
	 * not support
	 */
	KUNIT_EXPECT_EQ(test, reg(&f->key_user, key, key, IB_ACCESS_REMOTE_WRITE), -EINVAL);
	KUNIT_EXPECT_EQ(test, reg(&f->key_user, key, key, IB_ACCESS_REMOTE_ATOMIC), -EINVAL);
	KUNIT_EXPECT_EQ(test, reg(&f->key_user, key, key, IB_ACCESS_MW_BIND), -EINVAL);
	KUNIT_EXPECT_EQ(test, reg(&f->key_user, key, key, IB_ACCESS_ON_DEMAND), -EINVAL);
	KUNIT_EXPECT_EQ(test, reg(&f->key_user, key, key, -1), -EINVAL);
	/* an address range that wraps */
	ibmr->iova = -(u64)PAGE_SIZE;
	KUNIT_EXPECT_EQ(test, reg(&f->key_user, key, key, ALL_ACCESS), -EINVAL);
	ibmr->iova = -2 * (u64)PAGE_SIZE;
	KUNIT_EXPECT_EQ(test, reg(&f->key_user, key, key, READ_ACCESS), 0);
	KUNIT_EXPECT_EQ(test, peek(&f->key_user, key, U64_MAX), '1');
	KUNIT_EXPECT_EQ(test, nhca_mr_destroy(f->dev, ibmr), 0);
	KUNIT_EXPECT_EQ(test, reg(&f->key_user, key, key, READ_ACCESS), -EINVAL);

	/* regions that were not made for fast registration */
	key = user->mkey.key;
	KUNIT_ASSERT_EQ(test, nhca_mr_map_pages(user, f->pages, 2, 0, true), 0);
	KUNIT_EXPECT_EQ(test, reg(&f->key_user, key, key, READ_ACCESS), -EINVAL);
	KUNIT_EXPECT_EQ(test, nhca_mr_fast_map(&user->ibmr, sg, 2, NULL), -EINVAL);
	nhca_mr_start(user, 0, 2 * PAGE_SIZE);
	KUNIT_EXPECT_EQ(test, reg(&f->key_user, key, key, READ_ACCESS), -EINVAL);
	nhca_mr_free(user);
	dma = nhca_mr_dma(f->dev, f->key_user.pd, ALL_ACCESS);
	KUNIT_ASSERT_FALSE(test, IS_ERR(dma));
	KUNIT_EXPECT_EQ(test, nhca_mr_close(dma), 0);
	KUNIT_EXPECT_EQ(test, reg(&f->key_user, dma->lkey, dma->lkey, READ_ACCESS), -EINVAL);
	KUNIT_EXPECT_EQ(test, nhca_mr_destroy(f->dev, dma), 0);
}

/*
 * A mapping contains as many elements as fit, and fails for arguments or memory that it cannot use.
 */
static void fast_map_bad_test(struct kunit *test)
{
	struct fixture *f = test->priv;
	void *far = vmalloc(PAGE_SIZE);
	unsigned int offset;
	struct scatterlist sg[4];
	struct ib_mr *ibmr;
	int gaps;

	KUNIT_ASSERT_NOT_NULL(test, far);
	for (gaps = 0; gaps < 2; gaps++) {
		ibmr = fast_make(test, f, 2, gaps);
		sg_pages(f, sg, 4);
		KUNIT_EXPECT_EQ(test, nhca_mr_fast_map(ibmr, sg, 0, NULL), -EINVAL);
		KUNIT_EXPECT_EQ(test, nhca_mr_fast_map(ibmr, sg, -1, NULL), -EINVAL);
		offset = PAGE_SIZE + 1;
		KUNIT_EXPECT_EQ(test, nhca_mr_fast_map(ibmr, sg, 2, &offset), -EINVAL);
		/* more elements than the region has room for: the elements that fit are mapped */
		KUNIT_EXPECT_EQ(test, nhca_mr_fast_map(ibmr, sg, 4, NULL), 2);
		KUNIT_EXPECT_EQ(test, ibmr->length, 2 * PAGE_SIZE);
		/*
		 * vmalloc() memory is not in the direct map, so it cannot be mapped. A mapping that
		 * fails also removes the earlier mapping.
		 */
		sg_dma_address(&sg[1]) = (uintptr_t)far;
		KUNIT_EXPECT_LT(test, nhca_mr_fast_map(ibmr, sg, 2, NULL), 2);
		if (gaps)
			KUNIT_EXPECT_EQ(test, reg(&f->key_user, ibmr->lkey, ibmr->lkey,
						  READ_ACCESS), -EINVAL);
		sg_dma_address(&sg[0]) = (uintptr_t)far;
		KUNIT_EXPECT_EQ(test, nhca_mr_fast_map(ibmr, sg, 2, NULL), -EINVAL);
		KUNIT_EXPECT_EQ(test, reg(&f->key_user, ibmr->lkey, ibmr->lkey, READ_ACCESS),
				-EINVAL);
		/*
		 * a region of pages ends at an element that is shorter than its page; a region with
		 * gaps does not
		 */
		sg_pages(f, sg, 2);
		sg[0].length = 100;
		sg_dma(&sg[0]);
		KUNIT_EXPECT_EQ(test, nhca_mr_fast_map(ibmr, sg, 2, NULL), gaps ? 2 : 1);
		KUNIT_EXPECT_EQ(test, ibmr->length, gaps ? 100 + PAGE_SIZE : 100);
		KUNIT_EXPECT_EQ(test, reg(&f->key_user, ibmr->lkey, ibmr->lkey, READ_ACCESS), 0);
		KUNIT_EXPECT_EQ(test, peek(&f->key_user, ibmr->lkey, ibmr->iova + 99), '0');
		KUNIT_EXPECT_EQ(test, peek(&f->key_user, ibmr->lkey, ibmr->iova + 100),
				gaps ? '1' : -EACCES);
		KUNIT_EXPECT_EQ(test, nhca_mr_destroy(f->dev, ibmr), 0);
	}
	ibmr = fast_make(test, f, 2, false);
	sg_pages(f, sg, 2);
	ibmr->page_size = 3 * PAGE_SIZE;
	KUNIT_EXPECT_EQ(test, nhca_mr_fast_map(ibmr, sg, 2, NULL), -EINVAL);
	ibmr->page_size = 0;
	KUNIT_EXPECT_EQ(test, nhca_mr_fast_map(ibmr, sg, 2, NULL), -EINVAL);
	KUNIT_EXPECT_EQ(test, nhca_mr_destroy(f->dev, ibmr), 0);
	vfree(far);
}

/* Read the open region in pieces of several sizes, and expect the bytes of @flat and no more. */
static void expect_flat(struct kunit *test, struct ib_mr *ibmr, const u8 *flat, u32 len)
{
	struct fixture *f = test->priv;
	u8 *out = kunit_kzalloc(test, len, GFP_KERNEL);
	struct nhca_iter it;
	u32 at, n;
	int err;

	KUNIT_ASSERT_NOT_NULL(test, out);
	KUNIT_ASSERT_EQ(test, ibmr->length, len);
	for (at = 0; at < len; at += n) {
		n = min_t(u32, len - at, 1 + at % 701);
		enter();
		err = nhca_iter_key(&it, &f->key_user, ibmr->rkey, ibmr->iova + at, n,
				    IB_ACCESS_REMOTE_READ);
		if (!err)
			err = nhca_iter_read(&it, out + at, n);
		leave();
		KUNIT_ASSERT_EQ(test, err, 0);
	}
	KUNIT_EXPECT_EQ(test, memcmp(out, flat, len), 0);
	KUNIT_EXPECT_EQ(test, peek(&f->key_user, ibmr->rkey, ibmr->iova - 1), -EACCES);
	KUNIT_EXPECT_EQ(test, peek(&f->key_user, ibmr->rkey, ibmr->iova + len), -EACCES);
}

/*
 * A region of elements with any offset and length, one of them empty and some of several pages,
 * reads as one contiguous range.
 */
static void list_test(struct kunit *test)
{
	static const struct {
		u32 off, len;
	} parts[] = {
		{ 5, 1 }, { 100, 0 }, { 4000, 200 }, { 9000, 5000 }, { 4096, 4096 },
		{ 1, 1 }, { 16000, 384 },
	};
	const u32 size = 4 * PAGE_SIZE;
	struct fixture *f = test->priv;
	u8 *buf = kunit_kzalloc(test, size, GFP_KERNEL);
	u8 *flat = kunit_kzalloc(test, size, GFP_KERNEL);
	struct scatterlist sg[ARRAY_SIZE(parts)];
	struct ib_mr *ibmr = fast_make(test, f, ARRAY_SIZE(parts), true);
	struct nhca_seg seg;
	u32 i, n = 0;

	KUNIT_ASSERT_TRUE(test, buf && flat);
	KUNIT_EXPECT_EQ(test, to_nhca_mr(ibmr)->kind, NHCA_MR_LIST);
	for (i = 0; i < size; i++)
		buf[i] = i * 31 + i / 256;
	sg_init_table(sg, ARRAY_SIZE(parts));
	for (i = 0; i < ARRAY_SIZE(parts); i++) {
		sg_set_buf(&sg[i], buf + parts[i].off, parts[i].len);
		sg_dma(&sg[i]);
		memcpy(flat + n, buf + parts[i].off, parts[i].len);
		n += parts[i].len;
	}
	KUNIT_ASSERT_EQ(test, nhca_mr_fast_map(ibmr, sg, ARRAY_SIZE(parts), NULL),
			ARRAY_SIZE(parts));
	KUNIT_EXPECT_EQ(test, reg(&f->key_user, ibmr->lkey, ibmr->lkey, ALL_ACCESS), 0);
	expect_flat(test, ibmr, flat, n);

	/* an element is one segment, even if it has bytes of several pages */
	KUNIT_EXPECT_EQ(test, seg_at(to_nhca_mr(ibmr), 0, U32_MAX, true, &seg), 0);
	KUNIT_EXPECT_PTR_EQ(test, seg.addr, (void *)buf + 5);
	KUNIT_EXPECT_EQ(test, seg.len, 1);
	KUNIT_EXPECT_EQ(test, seg_at(to_nhca_mr(ibmr), 1 + 200, U32_MAX, true, &seg), 0);
	KUNIT_EXPECT_PTR_EQ(test, seg.addr, (void *)buf + 9000);
	KUNIT_EXPECT_EQ(test, seg.len, 5000);
	KUNIT_EXPECT_EQ(test, seg_at(to_nhca_mr(ibmr), n - 1, U32_MAX, true, &seg), 0);
	KUNIT_EXPECT_PTR_EQ(test, seg.addr, (void *)buf + 16383);
	KUNIT_EXPECT_EQ(test, seg.len, 1);
	KUNIT_EXPECT_EQ(test, nhca_mr_destroy(f->dev, ibmr), 0);
}

/* Page lists also work with pages that are smaller or larger than the CPU's. */
static void list_pages_test(struct kunit *test)
{
	static const u32 sizes[] = { 512, 1024, 2 * PAGE_SIZE, 4 * PAGE_SIZE };
	struct fixture *f = test->priv;
	const u32 total = 4 * PAGE_SIZE;
	struct page *page = alloc_pages(GFP_KERNEL, 2);
	unsigned int offset;
	struct scatterlist sg[2];
	struct ib_mr *ibmr;
	u32 i, j;
	u8 *buf;

	KUNIT_ASSERT_NOT_NULL(test, page);
	buf = page_address(page);
	for (i = 0; i < total; i++)
		buf[i] = i * 31 + i / 256;
	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		ibmr = fast_make(test, f, total / 512, false);
		ibmr->page_size = sizes[i];
		/*
		 * if the buffer has at least two pages of size sizes[i], the region begins with the
		 * second half of the buffer
		 */
		j = sizes[i] == total ? 0 : total / 2;
		sg_init_table(sg, 2);
		sg_set_buf(&sg[0], buf + j, total - j);
		sg_set_buf(&sg[1], buf, j);
		sg_dma(&sg[0]);
		sg_dma(&sg[1]);
		offset = 77;
		KUNIT_EXPECT_EQ(test, nhca_mr_fast_map(ibmr, sg, j ? 2 : 1, &offset),
				j ? 2 : 1);
		KUNIT_EXPECT_EQ(test, reg(&f->key_user, ibmr->lkey, ibmr->lkey, ALL_ACCESS), 0);
		KUNIT_EXPECT_EQ(test, to_nhca_mr(ibmr)->kind, NHCA_MR_LIST);
		KUNIT_EXPECT_EQ(test, ibmr->length, total - 77);
		KUNIT_EXPECT_EQ(test, peek(&f->key_user, ibmr->lkey, ibmr->iova), buf[j + 77]);
		KUNIT_EXPECT_EQ(test, peek(&f->key_user, ibmr->lkey,
					   ibmr->iova + (total - j) - 77 - 1), buf[total - 1]);
		if (j) {
			KUNIT_EXPECT_EQ(test, peek(&f->key_user, ibmr->lkey,
						   ibmr->iova + total / 2 - 77), buf[0]);
			KUNIT_EXPECT_EQ(test, peek(&f->key_user, ibmr->lkey,
						   ibmr->iova + total - 77 - 1),
					buf[total / 2 - 1]);
		}
		/* the next mapping may use the CPU's page size again */
		KUNIT_EXPECT_EQ(test, inv(&f->key_user, ibmr->lkey), 0);
		ibmr->page_size = PAGE_SIZE;
		KUNIT_EXPECT_EQ(test, nhca_mr_fast_map(ibmr, sg, 1, NULL), 1);
		KUNIT_EXPECT_EQ(test, reg(&f->key_user, ibmr->lkey, ibmr->lkey, ALL_ACCESS), 0);
		KUNIT_EXPECT_EQ(test, to_nhca_mr(ibmr)->kind, NHCA_MR_TCE);
		expect_flat(test, ibmr, buf + j, total - j);
		KUNIT_EXPECT_EQ(test, nhca_mr_destroy(f->dev, ibmr), 0);
	}
	__free_pages(page, 2);
}

/*
 * ULPs may call ib_map_mr_sg() with interrupts disabled. If nhca_mr_fast_map() takes a lock that
 * does not permit this, the kernel reports the lock.
 */
static void fast_irq_test(struct kunit *test)
{
	struct fixture *f = test->priv;
	struct scatterlist sg[3];
	unsigned long flags;
	struct ib_mr *ibmr;
	int gaps, n;

	sg_pages(f, sg, 3);
	for (gaps = 0; gaps < 2; gaps++) {
		ibmr = fast_make(test, f, 3, gaps);
		local_irq_save(flags);
		n = nhca_mr_fast_map(ibmr, sg, 3, NULL);
		local_irq_restore(flags);
		KUNIT_EXPECT_EQ(test, n, 3);
		KUNIT_EXPECT_EQ(test, reg(&f->key_user, ibmr->lkey, ibmr->rkey, ALL_ACCESS), 0);
		KUNIT_EXPECT_EQ(test, peek(&f->key_user, ibmr->rkey, ibmr->iova), '0');
		KUNIT_EXPECT_EQ(test, nhca_mr_destroy(f->dev, ibmr), 0);
	}
}

static void expect_no_space(struct kunit *test)
{
	struct fixture *f = test->priv;
	struct nhca_mr *mr;

	KUNIT_EXPECT_EQ(test, PTR_ERR(nhca_mr_fast(f->dev, f->key_user.pd, 3, false)), -ENOMEM);
	mr = nhca_mr_alloc(f->dev, f->key_user.pd, ALL_ACCESS);
	KUNIT_ASSERT_FALSE(test, IS_ERR(mr));
	KUNIT_EXPECT_EQ(test, nhca_mr_map_pages(mr, f->pages, 1, 0, true), -ENOMEM);
	nhca_mr_free(mr);
}

/* If the PVO space of the user or of the host is used up, making a region fails with ENOMEM. */
static void fast_limit_test(struct kunit *test)
{
	struct nhca_user *user = limit_begin(test);

	expect_no_space(test);
	limit_end(test, user);
	KUNIT_ASSERT_EQ(test, nhca_pool_charge(&nhca_host_users, NULL, NHCA_POOL_PVOS,
					       NHCA_MAX_PVOS), 0);
	expect_no_space(test);
	nhca_pool_uncharge(&nhca_host_users, NULL, NHCA_POOL_PVOS, NHCA_MAX_PVOS);
}

static struct kunit_case fast_cases[] = {
	KUNIT_CASE(fast_life_test),
	KUNIT_CASE(fast_ahead_test),
	KUNIT_CASE(fast_reg_bad_test),
	KUNIT_CASE(fast_map_bad_test),
	KUNIT_CASE(list_test),
	KUNIT_CASE(list_pages_test),
	KUNIT_CASE(fast_irq_test),
	KUNIT_CASE(fast_limit_test),
	{}
};

static struct kunit_suite fast_suite = {
	.name = "nhca_fast",
	.init = fixture_init,
	.exit = fixture_exit,
	.test_cases = fast_cases,
};

kunit_test_suite(fast_suite);
