// SPDX-License-Identifier: GPL-2.0
/* KUnit: regions: their pages, registration, reregistration and deregistration. */
#include <linux/mm.h>
#include <linux/scatterlist.h>
#include <rdma/ib_umem.h>

#include "regions.h"
#include "../verbs/objects.h"

static struct nhca_mr *mr_make(struct kunit *test, struct fixture *f, int access)
{
	struct nhca_mr *mr = nhca_mr_alloc(f->dev, f->key_user.pd, access);

	KUNIT_ASSERT_FALSE(test, IS_ERR(mr));
	return mr;
}

/*
 * In a region without huge pages, each segment lies in one page, and the page's TCE decides whether
 * the page may be read and written.
 */
static void page_class_test(struct kunit *test)
{
	struct fixture *f = test->priv;
	struct nhca_mr *mr = mr_make(test, f, READ_ACCESS);
	struct nhca_seg seg;
	int err;

	/* the pages need not be contiguous; the last page has an empty TCE */
	KUNIT_ASSERT_EQ(test, nhca_mr_map_pages(mr, f->pages, NPAGES, 100, false), 0);
	nhca_mr_start(mr, 0x5000, 5 * PAGE_SIZE);
	nhca_range_clear(&mr->tces, 5, 1);
	KUNIT_EXPECT_EQ(test, mr->tces.shift, PAGE_SHIFT);
	KUNIT_EXPECT_EQ(test, mr->tces.count, NPAGES);
	KUNIT_EXPECT_EQ(test, mr->pvo, nhca_range_pvo(&mr->tces) + 100);

	KUNIT_EXPECT_EQ(test, seg_at(mr, 0, U32_MAX, false, &seg), 0);
	KUNIT_EXPECT_PTR_EQ(test, nhca_seg_page(&seg), f->pages[0]);
	KUNIT_EXPECT_EQ(test, offset_in_page(seg.addr), 100);
	KUNIT_EXPECT_EQ(test, seg.len, PAGE_SIZE - 100);
	KUNIT_EXPECT_EQ(test, seg_at(mr, PAGE_SIZE - 101, 7, false, &seg), 0);
	KUNIT_EXPECT_PTR_EQ(test, nhca_seg_page(&seg), f->pages[0]);
	KUNIT_EXPECT_EQ(test, offset_in_page(seg.addr), PAGE_SIZE - 1);
	KUNIT_EXPECT_EQ(test, seg.len, 1);
	KUNIT_EXPECT_EQ(test, seg_at(mr, PAGE_SIZE - 100, 7, false, &seg), 0);
	KUNIT_EXPECT_PTR_EQ(test, nhca_seg_page(&seg), f->pages[1]);
	KUNIT_EXPECT_EQ(test, offset_in_page(seg.addr), 0);
	KUNIT_EXPECT_EQ(test, seg.len, 7);

	KUNIT_EXPECT_EQ(test, seg_at(mr, 0, 1, true, &seg), -EACCES);
	KUNIT_EXPECT_EQ(test, seg_at(mr, 5 * PAGE_SIZE - 100, 1, false, &seg), -EACCES);
	/* access is refused if one bit of the PVO's key is wrong */
	enter();
	err = nhca_pvo_seg(mr->pvo ^ BIT_ULL(NHCA_PVO_KEY_SHIFT), 1, false, &seg);
	leave();
	KUNIT_EXPECT_EQ(test, err, -EACCES);
	nhca_mr_free(mr);
}

/*
 * Map a buffer that begins at address @start and lies in two huge pages. Expect segments that end
 * at the end of a huge page, or after the requested number of bytes.
 */
static void huge_case(struct kunit *test, struct page **huge, u64 start, u64 length)
{
	struct fixture *f = test->priv;
	const u64 offset = start & (PMD_SIZE - 1);
	const u64 skip = offset & PAGE_MASK, first = PMD_SIZE - skip;
	const u64 rest = PAGE_ALIGN(offset + length) - PMD_SIZE;
	struct nhca_mr *mr = mr_make(test, f, ALL_ACCESS);
	struct scatterlist sg[3];
	struct sg_table sgt = { .sgl = sg, .nents = 3, .orig_nents = 3 };
	struct nhca_seg seg;

	/* the border between the second and the third element is inside a huge page */
	sg_init_table(sg, 3);
	sg_set_page(&sg[0], huge[0] + (skip >> PAGE_SHIFT), first, 0);
	sg_set_page(&sg[1], huge[1], PAGE_SIZE, 0);
	sg_set_page(&sg[2], huge[1] + 1, rest - PAGE_SIZE, 0);
	KUNIT_ASSERT_EQ(test, nhca_mr_map_sgt(mr, &sgt, start, length, PMD_SHIFT, true), 0);
	nhca_mr_start(mr, 0, length);
	KUNIT_EXPECT_EQ(test, mr->tces.shift, PMD_SHIFT);
	KUNIT_EXPECT_EQ(test, mr->tces.count, 2);

	KUNIT_EXPECT_EQ(test, seg_at(mr, 0, U32_MAX, true, &seg), 0);
	KUNIT_EXPECT_PTR_EQ(test, seg.addr, page_address(huge[0]) + offset);
	KUNIT_EXPECT_EQ(test, seg.len, PMD_SIZE - offset);
	KUNIT_EXPECT_EQ(test, seg_at(mr, PMD_SIZE - offset - 1, 100, true, &seg), 0);
	KUNIT_EXPECT_PTR_EQ(test, seg.addr, page_address(huge[0]) + PMD_SIZE - 1);
	KUNIT_EXPECT_EQ(test, seg.len, 1);
	KUNIT_EXPECT_EQ(test, seg_at(mr, PMD_SIZE - offset, 100, true, &seg), 0);
	KUNIT_EXPECT_PTR_EQ(test, seg.addr, page_address(huge[1]));
	KUNIT_EXPECT_EQ(test, seg.len, 100);
	KUNIT_EXPECT_EQ(test, seg_at(mr, length - 1, 1, true, &seg), 0);
	KUNIT_EXPECT_PTR_EQ(test, seg.addr,
			    page_address(huge[1]) + offset + length - 1 - PMD_SIZE);
	nhca_mr_free(mr);
}

/*
 * A region of huge pages has one TCE for each huge page, and segments of up to a huge page. Memory
 * that is not aligned like the buffer's addresses, or has another size, is refused.
 */
static void huge_class_test(struct kunit *test)
{
	const unsigned int order = PMD_SHIFT - PAGE_SHIFT;
	struct fixture *f = test->priv;
	struct page *huge[2] = {};
	struct scatterlist sg;
	struct sg_table sgt = { .sgl = &sg, .nents = 1, .orig_nents = 1 };
	struct nhca_mr *mr;
	int i;

	for (i = 0; i < 2; i++)
		huge[i] = alloc_pages(GFP_KERNEL | __GFP_COMP | __GFP_NOWARN, order);
	if (!huge[0] || !huge[1]) {
		for (i = 0; i < 2; i++)
			if (huge[i])
				__free_pages(huge[i], order);
		kunit_skip(test, "no huge pages");
	}
	huge_case(test, huge, 5 * PMD_SIZE, 2 * PMD_SIZE);
	huge_case(test, huge, 5 * PMD_SIZE, PMD_SIZE + PAGE_SIZE + 1);
	huge_case(test, huge, 5 * PMD_SIZE + 3 * PAGE_SIZE, PMD_SIZE);
	huge_case(test, huge, 6 * PMD_SIZE - 1, 2 + PAGE_SIZE);
	huge_case(test, huge, PMD_SIZE + 0x123, 2 * PMD_SIZE - 0x123);

	/* memory that is not aligned like the addresses; too little memory; too much memory */
	sg_init_table(&sg, 1);
	sg_set_page(&sg, huge[0] + 1, PMD_SIZE - PAGE_SIZE, 0);
	mr = mr_make(test, f, ALL_ACCESS);
	KUNIT_EXPECT_EQ(test, nhca_mr_map_sgt(mr, &sgt, PMD_SIZE, PAGE_SIZE, PMD_SHIFT, true),
			-EINVAL);
	nhca_mr_free(mr);
	sg_set_page(&sg, huge[0], PMD_SIZE, 0);
	mr = mr_make(test, f, ALL_ACCESS);
	KUNIT_EXPECT_EQ(test, nhca_mr_map_sgt(mr, &sgt, 0, PMD_SIZE + 1, PMD_SHIFT, true),
			-EINVAL);
	nhca_mr_free(mr);
	mr = mr_make(test, f, ALL_ACCESS);
	KUNIT_EXPECT_EQ(test, nhca_mr_map_sgt(mr, &sgt, 0, PAGE_SIZE, PAGE_SHIFT, true), -EINVAL);
	nhca_mr_free(mr);
	for (i = 0; i < 2; i++)
		__free_pages(huge[i], order);
}

/* Registration fails if the range of virtual addresses or the range of IOVAs wraps. */
static void user_args_test(struct kunit *test)
{
	static const struct {
		u64 start, length, iova;
	} bad[] = {
		{ 0x1000, 2, U64_MAX },
		{ 0x1000, U64_MAX, 2 },
		{ U64_MAX, 2, 0x1000 },
		{ 0x1000, U64_MAX, 0 },
		{ -(u64)PAGE_SIZE, PAGE_SIZE + 1, 0 },
	};
	struct fixture *f = test->priv;
	struct ib_mr *ibmr;
	int i;

	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		ibmr = nhca_mr_user(f->dev, f->key_user.pd, bad[i].start, bad[i].length,
				    bad[i].iova, ALL_ACCESS);
		KUNIT_EXPECT_EQ_MSG(test, PTR_ERR_OR_ZERO(ibmr), -EINVAL, "case %d", i);
	}
}

/* nhca does not use ibmr.uobject, which after a reregistration is the uobject of the old region. */
static void uobject_test(struct kunit *test)
{
	struct fixture *f = test->priv;
	struct ib_uobject destroyed = {};
	struct ib_umem umem = { .address = 0x7000, .length = 100, .writable = 1 };
	struct nhca_mr *mr = mr_make(test, f, ALL_ACCESS);

	KUNIT_ASSERT_EQ(test, nhca_mr_map_pages(mr, f->pages, 1, 0, true), 0);
	nhca_mr_start(mr, 0x1000, 100);
	mr->ibmr.uobject = &destroyed;
	mr->umem = &umem;
	KUNIT_EXPECT_EQ(test, nhca_mr_change(&mr->ibmr, f->other.pd, ALL_ACCESS), 0);
	mr->umem = NULL;
	KUNIT_EXPECT_EQ(test, nhca_mr_destroy(f->dev, &mr->ibmr), 0);
}

/*
 * Rights and protection domain of a region can change in place. A region with bound windows cannot
 * be changed, closed or destroyed, because its windows would still give access to its memory.
 */
static void change_test(struct kunit *test)
{
	struct fixture *f = test->priv;
	struct ib_umem umem = { .address = 0x7000, .length = 100 };
	struct nhca_mr *mr = mr_make(test, f, READ_ACCESS);
	u32 key = mr->mkey.key;
	u64 start, length, iova;
	int access;

	KUNIT_ASSERT_EQ(test, nhca_mr_map_pages(mr, f->pages, 1, 0, false), 0);
	nhca_mr_start(mr, 0x1000, 100);
	KUNIT_EXPECT_EQ(test, nhca_mr_change(&mr->ibmr, f->other.pd, 0), -EOPNOTSUPP);
	KUNIT_EXPECT_EQ(test, nhca_mr_user_args(&mr->ibmr, &start, &length, &iova, &access),
			-EOPNOTSUPP);
	mr->umem = &umem;
	KUNIT_EXPECT_EQ(test, nhca_mr_user_args(&mr->ibmr, &start, &length, &iova, &access), 0);
	KUNIT_EXPECT_EQ(test, start, 0x7000);
	KUNIT_EXPECT_EQ(test, length, 100);
	KUNIT_EXPECT_EQ(test, iova, 0x1000);
	KUNIT_EXPECT_EQ(test, access, READ_ACCESS);

	KUNIT_EXPECT_EQ(test, nhca_mr_change(&mr->ibmr, f->key_user.pd, ALL_ACCESS), -EPERM);
	atomic_inc(&mr->windows);
	KUNIT_EXPECT_EQ(test, nhca_mr_change(&mr->ibmr, f->other.pd, 0), -EBUSY);
	KUNIT_EXPECT_EQ(test, nhca_mr_close(&mr->ibmr), -EBUSY);
	KUNIT_EXPECT_EQ(test, nhca_mr_destroy(f->dev, &mr->ibmr), -EBUSY);
	KUNIT_EXPECT_EQ(test, peek(&f->key_user, key, 0x1000), '0');
	atomic_dec(&mr->windows);

	KUNIT_EXPECT_EQ(test, nhca_mr_change(&mr->ibmr, f->other.pd, READ_ACCESS), 0);
	KUNIT_EXPECT_EQ(test, peek(&f->key_user, key, 0x1000), -EACCES);
	KUNIT_EXPECT_EQ(test, peek(&f->other, key, 0x1000), '0');
	KUNIT_EXPECT_EQ(test, nhca_mr_change(&mr->ibmr, f->other.pd, 0), 0);
	KUNIT_EXPECT_EQ(test, peek(&f->other, key, 0x1000), -EACCES);
	umem.writable = 1;
	KUNIT_EXPECT_EQ(test, nhca_mr_change(&mr->ibmr, f->key_user.pd, ALL_ACCESS), 0);
	KUNIT_EXPECT_EQ(test, peek(&f->key_user, key, 0x1000), '0');
	KUNIT_EXPECT_EQ(test, mr->ibmr.lkey, key);
	KUNIT_EXPECT_EQ(test, mr->mkey.key, key);

	mr->umem = NULL;
	KUNIT_EXPECT_EQ(test, nhca_mr_destroy(f->dev, &mr->ibmr), 0);
	KUNIT_EXPECT_EQ(test, peek(&f->key_user, key, 0x1000), -EACCES);
}

/*
 * nhca_alloc_mr() accepts only IB_MR_TYPE_MEM_REG and IB_MR_TYPE_SG_GAPS with 1 to NHCA_MAX_FAST_SG
 * entries, and counts regions against the device's limit.
 */
static void alloc_mr_test(struct kunit *test)
{
	static const enum ib_mr_type types[] = {
		IB_MR_TYPE_DM, IB_MR_TYPE_USER, IB_MR_TYPE_DMA, IB_MR_TYPE_INTEGRITY,
	};
	struct fixture *f = test->priv;
	atomic_long_t *mrs = &f->dev->users.used[NHCA_POOL_MRS];
	struct ib_pd *pd = f->key_user.pd;
	struct ib_mr *a, *b;
	int i;

	for (i = 0; i < ARRAY_SIZE(types); i++)
		KUNIT_EXPECT_EQ(test, PTR_ERR_OR_ZERO(nhca_alloc_mr(pd, types[i], 1)),
				-EOPNOTSUPP);
	KUNIT_EXPECT_EQ(test, PTR_ERR_OR_ZERO(nhca_alloc_mr(pd, IB_MR_TYPE_MEM_REG, 0)), -EINVAL);
	KUNIT_EXPECT_EQ(test, PTR_ERR_OR_ZERO(nhca_alloc_mr(pd, IB_MR_TYPE_MEM_REG,
							    NHCA_MAX_FAST_SG + 1)), -EINVAL);
	KUNIT_EXPECT_EQ(test, atomic_long_read(mrs), 0);
	a = nhca_alloc_mr(pd, IB_MR_TYPE_MEM_REG, NHCA_MAX_FAST_SG);
	b = nhca_alloc_mr(pd, IB_MR_TYPE_SG_GAPS, NHCA_MAX_FAST_SG);
	KUNIT_ASSERT_FALSE(test, IS_ERR(a) || IS_ERR(b));
	KUNIT_EXPECT_EQ(test, atomic_long_read(mrs), 2);
	atomic_long_set(mrs, NHCA_MAX_MR);
	KUNIT_EXPECT_EQ(test, PTR_ERR_OR_ZERO(nhca_alloc_mr(pd, IB_MR_TYPE_MEM_REG, 1)), -ENOMEM);
	atomic_long_set(mrs, 2);

	atomic_inc(&to_nhca_mr(a)->windows);
	KUNIT_EXPECT_EQ(test, nhca_dereg_mr(a, NULL), -EBUSY);
	atomic_dec(&to_nhca_mr(a)->windows);
	KUNIT_EXPECT_EQ(test, nhca_dereg_mr(a, NULL), 0);
	KUNIT_EXPECT_EQ(test, nhca_dereg_mr(b, NULL), 0);
	KUNIT_EXPECT_EQ(test, atomic_long_read(mrs), 0);
}

/*
 * A region counts for the user that owns its protection domain. At the user's limit nhca_alloc_mr()
 * returns -ENOMEM, as at the device's limit.
 */
static void owner_test(struct kunit *test)
{
	struct fixture *f = test->priv;
	struct nhca_users *users = &f->dev->users;
	struct ib_pd *pd = f->key_user.pd;
	struct nhca_user *user;
	struct ib_mr *ibmr;

	nhca_users_init(users);
	user = nhca_user_get(users, 4711);
	KUNIT_ASSERT_FALSE(test, IS_ERR(user));
	to_nhca_pd(pd)->owner = user;
	KUNIT_ASSERT_EQ(test, nhca_pool_charge(users, user, NHCA_POOL_MRS, NHCA_MAX_MR / 2 - 1), 0);
	ibmr = nhca_alloc_mr(pd, IB_MR_TYPE_MEM_REG, 1);
	KUNIT_ASSERT_FALSE(test, IS_ERR(ibmr));
	KUNIT_EXPECT_EQ(test, PTR_ERR_OR_ZERO(nhca_alloc_mr(pd, IB_MR_TYPE_MEM_REG, 1)), -ENOMEM);
	KUNIT_EXPECT_EQ(test, atomic_long_read(&user->used[NHCA_POOL_MRS]), NHCA_MAX_MR / 2);
	KUNIT_EXPECT_EQ(test, nhca_dereg_mr(ibmr, NULL), 0);
	KUNIT_EXPECT_EQ(test, atomic_long_read(&user->used[NHCA_POOL_MRS]), NHCA_MAX_MR / 2 - 1);
	/* a region of a protection domain without an owner does not count for the user */
	ibmr = nhca_alloc_mr(f->other.pd, IB_MR_TYPE_MEM_REG, 1);
	KUNIT_ASSERT_FALSE(test, IS_ERR(ibmr));
	KUNIT_EXPECT_EQ(test, atomic_long_read(&user->used[NHCA_POOL_MRS]), NHCA_MAX_MR / 2 - 1);
	KUNIT_EXPECT_EQ(test, nhca_dereg_mr(ibmr, NULL), 0);
	nhca_pool_uncharge(users, user, NHCA_POOL_MRS, NHCA_MAX_MR / 2 - 1);
	nhca_user_put(user);
	nhca_users_destroy(users);
}

/**
 * struct brought - a region on one page, which is faulted in on demand
 * @mr:    the region
 * @page:  page of the region; NULL: the page is missing
 * @next:  page that a request would fault in; NULL: the request fails
 * @off:   first byte of the last request
 * @len:   bytes of the last request
 * @write: the last request was for writing
 * @freed: number of calls of the free function
 */
struct brought {
	struct nhca_mr *mr;
	struct page *page, *next;
	u64 off, len;
	bool write;
	int freed;
};

/* one region of this kind is enough, because tests run one at a time */
static struct brought brought;

static int brought_seg(struct nhca_mr *mr, u64 off, u32 max, bool write, struct nhca_seg *seg)
{
	if (!brought.page)
		return -EAGAIN;
	seg->addr = page_address(brought.page) + off;
	seg->len = min_t(u64, max, PAGE_SIZE - off);
	return 0;
}

static int brought_want(struct nhca_mr *mr, u64 off, u64 len, bool write, struct nhca_fault *f)
{
	brought.off = off;
	brought.len = len;
	brought.write = write;
	return brought.next ? -EAGAIN : -EACCES;
}

static void brought_free(struct nhca_mr *mr)
{
	brought.freed++;
}

static const struct nhca_mr_ops brought_ops = {
	.seg = brought_seg,
	.want = brought_want,
	.free = brought_free,
};

/* Read the byte at @off, as a requester or responder does that can wait. */
static int brought_read(const struct fixture *f, u64 off, u8 *byte)
{
	/* the driver only passes the pointer to brought_want() */
	struct nhca_fault *fault = (struct nhca_fault *)&brought;
	struct nhca_iter it;
	int err;

	local_bh_disable();
	nhca_live_enter();
	err = nhca_iter_key(&it, &f->key_user, brought.mr->mkey.key, 0x2000 + off, 1,
			    IB_ACCESS_REMOTE_READ);
	if (!err)
		err = nhca_iter_read(&it, byte, 1);
	err = nhca_live_exit_fault(err, &it, 99, fault);
	local_bh_enable();
	return err;
}

/* A new kind of region needs only a table of functions, and no other code in memory/. */
static void ops_test(struct kunit *test)
{
	bool waits = IS_ENABLED(CONFIG_INFINIBAND_ON_DEMAND_PAGING);
	struct fixture *f = test->priv;
	u8 byte = 0;

	brought = (struct brought) { .mr = mr_make(test, f, ALL_ACCESS), .next = f->pages[4] };
	brought.mr->ops = &brought_ops;
	brought.mr->kind = NHCA_MR_LINEAR;
	nhca_mr_start(brought.mr, 0x2000, PAGE_SIZE);
	KUNIT_EXPECT_EQ(test, peek(&f->key_user, brought.mr->mkey.key, 0x2000), -EAGAIN);
	KUNIT_EXPECT_EQ(test, brought_read(f, 7, &byte), waits ? -EAGAIN : -EACCES);
	if (waits) {
		KUNIT_EXPECT_EQ(test, brought.off, 7);
		KUNIT_EXPECT_EQ(test, brought.len, 1 + 99);
		KUNIT_EXPECT_FALSE(test, brought.write);
	}
	brought.page = brought.next;
	KUNIT_EXPECT_EQ(test, brought_read(f, 7, &byte), 0);
	KUNIT_EXPECT_EQ(test, byte, '4');

	/* the page is removed, and cannot be faulted in again */
	brought.page = NULL;
	brought.next = NULL;
	KUNIT_EXPECT_EQ(test, brought_read(f, 7, &byte), -EACCES);
	KUNIT_EXPECT_EQ(test, nhca_mr_change(&brought.mr->ibmr, f->other.pd, 0), -EOPNOTSUPP);
	KUNIT_EXPECT_EQ(test, nhca_mr_destroy(f->dev, &brought.mr->ibmr), 0);
	KUNIT_EXPECT_EQ(test, brought.freed, 1);
}

static struct kunit_case mr_cases[] = {
	KUNIT_CASE(ops_test),
	KUNIT_CASE(page_class_test),
	KUNIT_CASE(huge_class_test),
	KUNIT_CASE(user_args_test),
	KUNIT_CASE(uobject_test),
	KUNIT_CASE(change_test),
	KUNIT_CASE(alloc_mr_test),
	KUNIT_CASE(owner_test),
	{}
};

static struct kunit_suite mr_suite = {
	.name = "nhca_mr",
	.init = fixture_init,
	.exit = fixture_exit,
	.test_cases = mr_cases,
};

kunit_test_suite(mr_suite);
