// SPDX-License-Identifier: GPL-2.0
/* KUnit: regions of a backing, and waits from nhca_fault_begin() to nhca_fault_end(). */
#include "fake_backing.h"
#include "regions.h"

#define BACKED_IOVA	0x12345000ULL
#define BACKED_LEN	(4 * PAGE_SIZE)

/* Called when the owner of a wait is resumed: count the calls. */
static void resumed(void *arg)
{
	u32 *n = arg;

	++*n;
}

static struct ib_mr *backed(struct kunit *test, struct fake_backing *fake)
{
	struct fixture *f = test->priv;
	struct ib_mr *mr = nhca_mr_backed(f->dev, f->key_user.pd, &fake->b, BACKED_LEN,
					  BACKED_IOVA, READ_ACCESS);

	KUNIT_ASSERT_FALSE(test, IS_ERR(mr));
	return mr;
}

/*
 * Read one byte for operation @op of @w, which may be NULL. @ahead: number of bytes after this byte
 * that the reader needs too. Return: the byte; an error of nhca_iter_key() or nhca_iter_read(); or,
 * if the byte is not in memory, the result of nhca_iter_fault().
 */
static int fetch(struct kunit *test, struct ib_mr *mr, u64 va, struct nhca_fault *w, u64 op,
		 u32 ahead)
{
	struct fixture *f = test->priv;
	struct nhca_iter it;
	u8 byte = 0;
	int err;

	/*
	 * fill the iterator with a pattern, so that a test fails if the backing gets an
	 * uninitialized member of the iterator
	 */
	memset(&it, 0x5a, sizeof(it));
	enter();
	err = nhca_iter_key(&it, &f->key_user, mr->rkey, va, 1, READ_ACCESS);
	if (w)
		nhca_iter_for(&it, w, op);
	err = err ?: nhca_iter_read(&it, &byte, 1);
	if (err == -EAGAIN)
		err = nhca_iter_fault(&it, ahead, w);
	leave();
	return err ? err : byte;
}

/*
 * An iterator passes operation, offset and length to the backing, and returns the result of its
 * seg().
 */
static void iterator_test(struct kunit *test)
{
	struct fixture *f = test->priv;
	struct fake_backing *fake = fake_make(test);
	struct ib_mr *mr = backed(test, fake);
	u32 n = 0;
	struct nhca_fault *w = nhca_fault_alloc(resumed, &n);
	u8 *bytes = page_address(fake->page);

	KUNIT_ASSERT_NOT_NULL(test, w);
	bytes[7] = 77;
	KUNIT_EXPECT_PTR_EQ(test, nhca_mr_backing(mr), &fake->b);
	/*
	 * a caller without a struct nhca_fault cannot wait, so the caller gets an error, and
	 * nothing is requested from the backing
	 */
	KUNIT_EXPECT_EQ(test, fetch(test, mr, BACKED_IOVA + 7, NULL, 0, 0), -EACCES);
	KUNIT_EXPECT_EQ(test, fake->wants, 0);
	KUNIT_EXPECT_EQ(test, fake->segs, 1);
	KUNIT_EXPECT_EQ(test, fake->seg_op, 0);

	KUNIT_EXPECT_EQ(test, fetch(test, mr, BACKED_IOVA + PAGE_SIZE + 7, w, 5, 99), -EAGAIN);
	KUNIT_EXPECT_EQ(test, fake->wants, 1);
	KUNIT_EXPECT_EQ(test, fake->op, 5);
	KUNIT_EXPECT_EQ(test, fake->off, PAGE_SIZE + 7);
	KUNIT_EXPECT_EQ(test, fake->len, 100);
	KUNIT_EXPECT_TRUE(test, nhca_fault_waiting(w));
	fake_end(fake, 0);
	KUNIT_EXPECT_EQ(test, n, 1);
	KUNIT_EXPECT_FALSE(test, nhca_fault_waiting(w));
	KUNIT_EXPECT_EQ(test, fetch(test, mr, BACKED_IOVA + PAGE_SIZE + 7, w, 5, 0), 77);
	fake->err = -EIO;
	KUNIT_EXPECT_EQ(test, fetch(test, mr, BACKED_IOVA + PAGE_SIZE + 7, w, 6, 0), -EIO);

	/* range and protection domain are checked as for any key */
	KUNIT_EXPECT_EQ(test, fetch(test, mr, BACKED_IOVA + BACKED_LEN, w, 7, 0), -EACCES);
	KUNIT_EXPECT_EQ(test, peek(&f->other, mr->rkey, BACKED_IOVA), -EACCES);
	KUNIT_EXPECT_EQ(test, fake->frees, 0);
	KUNIT_EXPECT_EQ(test, nhca_mr_destroy(f->dev, mr), 0);
	KUNIT_EXPECT_EQ(test, fake->frees, 1);
	nhca_fault_free(w);
	__free_page(fake->page);
}

static void arguments_test(struct kunit *test)
{
	struct fixture *f = test->priv;
	struct fake_backing *fake = fake_make(test);
	struct ib_pd *pd = f->key_user.pd;

	KUNIT_EXPECT_PTR_EQ(test, nhca_mr_backed(f->dev, pd, &fake->b, 0, BACKED_IOVA, 0),
			    ERR_PTR(-EINVAL));
	KUNIT_EXPECT_PTR_EQ(test, nhca_mr_backed(f->dev, pd, &fake->b, 1, 512, 0),
			    ERR_PTR(-EINVAL));
	KUNIT_EXPECT_PTR_EQ(test, nhca_mr_backed(f->dev, pd, &fake->b, 2 * PAGE_SIZE,
						 -PAGE_SIZE, 0), ERR_PTR(-EINVAL));
	KUNIT_EXPECT_EQ(test, fake->frees, 0);
	__free_page(fake->page);
}

/*
 * nhca_iter_ahead() passes the length of the operation to the backing, for a key and for an R_Key
 * reference.
 */
static void ahead_test(struct kunit *test)
{
	struct fixture *f = test->priv;
	struct fake_backing *fake = fake_make(test);
	struct ib_mr *mr = backed(test, fake);
	struct nhca_fault *w = nhca_fault_alloc(resumed, test);
	struct nhca_rkey_ref h = {};
	struct nhca_iter it;

	KUNIT_ASSERT_NOT_NULL(test, w);
	enter();
	KUNIT_EXPECT_EQ(test, nhca_iter_key(&it, &f->key_user, mr->rkey, BACKED_IOVA, 300,
					    READ_ACCESS), 0);
	KUNIT_EXPECT_FALSE(test, nhca_iter_ahead(&it, mr->rkey));
	KUNIT_EXPECT_EQ(test, fake->aheads, 0);
	nhca_iter_for(&it, w, 1);
	/*
	 * the key is not that of the region, as for a READ through a window: packets must not refer
	 * to the pages of the READ, so the result is false
	 */
	KUNIT_EXPECT_FALSE(test, nhca_iter_ahead(&it, mr->rkey + 256));
	KUNIT_EXPECT_TRUE(test, nhca_iter_ahead(&it, mr->rkey));
	leave();
	KUNIT_EXPECT_EQ(test, fake->aheads, 2);
	KUNIT_EXPECT_EQ(test, fake->ahead_len, 300);

	local_bh_disable();
	KUNIT_EXPECT_EQ(test, nhca_rkey_get(&h, &f->key_user, mr->rkey, BACKED_IOVA, 400,
					    READ_ACCESS), 0);
	nhca_iter_rkey(&it, &h, 0, 400, false);
	nhca_iter_for(&it, w, 2);
	nhca_live_enter();
	KUNIT_EXPECT_TRUE(test, nhca_iter_ahead(&it, mr->rkey));
	nhca_live_exit();
	KUNIT_EXPECT_EQ(test, fake->ahead_len, 400);
	/*
	 * a revoked R_Key reference gives no access, so nhca_iter_ahead() passes nothing to the
	 * backing
	 */
	nhca_rkm_sweep(f->key_user.pd, mr->rkey);
	nhca_live_enter();
	KUNIT_EXPECT_FALSE(test, nhca_iter_ahead(&it, mr->rkey));
	nhca_live_exit();
	nhca_rkey_put(&h);
	local_bh_enable();
	KUNIT_EXPECT_EQ(test, fake->aheads, 3);
	KUNIT_EXPECT_EQ(test, nhca_mr_destroy(f->dev, mr), 0);
	nhca_fault_free(w);
	__free_page(fake->page);
}

/*
 * An owner has one wait at a time. The end of a wait does not resume the owner if the owner has
 * canceled the wait or is gone.
 */
static void wait_test(struct kunit *test)
{
	u32 n = 0;
	struct nhca_fault *w = nhca_fault_alloc(resumed, &n);

	KUNIT_ASSERT_NOT_NULL(test, w);
	local_bh_disable();
	KUNIT_EXPECT_TRUE(test, nhca_fault_begin(w));
	KUNIT_EXPECT_FALSE(test, nhca_fault_begin(w));
	nhca_fault_end(w);
	KUNIT_EXPECT_EQ(test, n, 1);

	KUNIT_EXPECT_TRUE(test, nhca_fault_begin(w));
	nhca_fault_cancel(w);
	KUNIT_EXPECT_FALSE(test, nhca_fault_waiting(w));
	nhca_fault_end(w);
	KUNIT_EXPECT_EQ(test, n, 1);

	/*
	 * if the owner waits again after a cancel, the end of the canceled wait resumes the owner,
	 * because no new wait begins before this end
	 */
	KUNIT_EXPECT_TRUE(test, nhca_fault_begin(w));
	nhca_fault_cancel(w);
	KUNIT_EXPECT_FALSE(test, nhca_fault_begin(w));
	KUNIT_EXPECT_TRUE(test, nhca_fault_waiting(w));
	nhca_fault_end(w);
	KUNIT_EXPECT_EQ(test, n, 2);

	KUNIT_EXPECT_TRUE(test, nhca_fault_begin(w));
	nhca_fault_free(w);
	nhca_fault_end(w);
	KUNIT_EXPECT_EQ(test, n, 2);
	local_bh_enable();
}

static struct kunit_case backing_cases[] = {
	KUNIT_CASE(iterator_test),
	KUNIT_CASE(arguments_test),
	KUNIT_CASE(ahead_test),
	KUNIT_CASE(wait_test),
	{}
};

static struct kunit_suite backing_suite = {
	.name = "nhca_backing",
	.init = fixture_init,
	.exit = fixture_exit,
	.test_cases = backing_cases,
};

kunit_test_suite(backing_suite);
