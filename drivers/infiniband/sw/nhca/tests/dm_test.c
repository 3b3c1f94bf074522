// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit: regions on device memory.
 */
#include <linux/vmalloc.h>

#include "regions.h"
#include "../memory/dm.h"

#define DM_PAGES	4

static struct nhca_dm *dm_make(struct kunit *test)
{
	struct nhca_dm *dm = kunit_kzalloc(test, sizeof(*dm), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, dm);
	dm->size = DM_PAGES * PAGE_SIZE;
	dm->mem = vmalloc_user(dm->size);
	KUNIT_ASSERT_NOT_NULL(test, dm->mem);
	return dm;
}

/*
 * Addresses of a region on device memory begin at 0, whatever its offset in the device memory is.
 * No byte outside the region is reachable.
 */
static void zero_based_test(struct kunit *test)
{
	struct fixture *f = test->priv;
	struct nhca_dm *dm = dm_make(test);
	const u64 offset = PAGE_SIZE - 3, length = 2 * PAGE_SIZE;
	struct ib_mr *mr = nhca_mr_dm(f->dev, f->key_user.pd, dm, offset, length, ALL_ACCESS);
	u8 *mem = dm->mem;
	u32 key;

	KUNIT_ASSERT_FALSE(test, IS_ERR(mr));
	KUNIT_EXPECT_EQ(test, mr->iova, 0);
	mem[offset - 1] = 1;
	mem[offset] = 2;
	mem[offset + 3] = 3;
	mem[offset + length - 1] = 4;
	mem[offset + length] = 5;
	KUNIT_EXPECT_EQ(test, peek(&f->key_user, mr->rkey, 0), 2);
	KUNIT_EXPECT_EQ(test, peek(&f->key_user, mr->rkey, 3), 3);
	KUNIT_EXPECT_EQ(test, peek(&f->key_user, mr->rkey, length - 1), 4);
	KUNIT_EXPECT_EQ(test, peek(&f->key_user, mr->rkey, length), -EACCES);
	KUNIT_EXPECT_EQ(test, peek(&f->key_user, mr->rkey, -1ULL), -EACCES);
	KUNIT_EXPECT_EQ(test, peek(&f->other, mr->rkey, 0), -EACCES);
	key = mr->rkey;
	KUNIT_EXPECT_EQ(test, nhca_mr_destroy(f->dev, mr), 0);
	KUNIT_EXPECT_EQ(test, peek(&f->key_user, key, 0), -EACCES);
	vfree(dm->mem);
}

/*
 * A region that would reach beyond the device memory is refused, also if the sum of offset and
 * length wraps.
 */
static void range_test(struct kunit *test)
{
	struct fixture *f = test->priv;
	struct nhca_dm *dm = dm_make(test);
	struct ib_mr *mr;

	KUNIT_EXPECT_EQ(test, PTR_ERR(nhca_mr_dm(f->dev, f->key_user.pd, dm, 1, dm->size, 0)),
			-EINVAL);
	KUNIT_EXPECT_EQ(test, PTR_ERR(nhca_mr_dm(f->dev, f->key_user.pd, dm, dm->size, 1, 0)),
			-EINVAL);
	KUNIT_EXPECT_EQ(test, PTR_ERR(nhca_mr_dm(f->dev, f->key_user.pd, dm, 2, U64_MAX, 0)),
			-EINVAL);
	KUNIT_EXPECT_EQ(test, PTR_ERR(nhca_mr_dm(f->dev, f->key_user.pd, dm, U64_MAX, 2, 0)),
			-EINVAL);
	/* a region of no bytes gives no access */
	mr = nhca_mr_dm(f->dev, f->key_user.pd, dm, dm->size, 0, ALL_ACCESS);
	KUNIT_ASSERT_FALSE(test, IS_ERR(mr));
	KUNIT_EXPECT_EQ(test, peek(&f->key_user, mr->rkey, 0), -EACCES);
	KUNIT_EXPECT_EQ(test, nhca_mr_destroy(f->dev, mr), 0);
	vfree(dm->mem);
}

/* FetchAdd and CmpSwap change device memory and return the previous value. */
static void atomic_test(struct kunit *test)
{
	struct fixture *f = test->priv;
	struct nhca_dm *dm = dm_make(test);
	struct ib_mr *mr = nhca_mr_dm(f->dev, f->key_user.pd, dm, PAGE_SIZE, 64, ALL_ACCESS);
	u64 *at = dm->mem + PAGE_SIZE + 8;
	u64 orig = 0;
	int err;

	KUNIT_ASSERT_FALSE(test, IS_ERR(mr));
	*at = 40;
	enter();
	err = nhca_atomic(&f->key_user, mr->rkey, 8, false, 2, 0, &orig, NULL);
	leave();
	KUNIT_EXPECT_EQ(test, err, 0);
	KUNIT_EXPECT_EQ(test, orig, 40);
	enter();
	err = nhca_atomic(&f->key_user, mr->rkey, 8, true, 42, 7, &orig, NULL);
	leave();
	KUNIT_EXPECT_EQ(test, err, 0);
	KUNIT_EXPECT_EQ(test, orig, 42);
	KUNIT_EXPECT_EQ(test, *at, 7);
	KUNIT_EXPECT_EQ(test, nhca_mr_destroy(f->dev, mr), 0);
	vfree(dm->mem);
}

static struct kunit_case dm_cases[] = {
	KUNIT_CASE(zero_based_test),
	KUNIT_CASE(range_test),
	KUNIT_CASE(atomic_test),
	{}
};

static struct kunit_suite dm_suite = {
	.name = "nhca_dm",
	.init = fixture_init,
	.exit = fixture_exit,
	.test_cases = dm_cases,
};

kunit_test_suite(dm_suite);
