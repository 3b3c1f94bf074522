/* SPDX-License-Identifier: GPL-2.0 */
/* Shared by the suites of memory windows: regions, windows and key users. */
#ifndef NHCA_TEST_MW_FIXTURE_H
#define NHCA_TEST_MW_FIXTURE_H

#include <kunit/test.h>
#include <linux/mm.h>
#include <linux/slab.h>

#include "../memory/mr.h"

#define PAGES		4
#define IOVA		0x7f0000001000ULL
#define LENGTH		(PAGES * PAGE_SIZE)
#define QPN		0x111
#define REMOTE		(IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_WRITE | \
			 IB_ACCESS_REMOTE_ATOMIC)
#define BINDABLE	(IB_ACCESS_LOCAL_WRITE | IB_ACCESS_MW_BIND)
#define MAX_OBJECTS	16

static const enum nhca_mkey_type __maybe_unused types[] = {
	NHCA_MKEY_MW1, NHCA_MKEY_MW2A, NHCA_MKEY_MW2B,
};

/**
 * struct fixture - objects of each test
 * @dev:      device without a driver
 * @pd:       a protection domain
 * @other_pd: another protection domain
 * @qp:       the key user that binds windows by default, in @pd
 * @sibling:  another QP in @pd
 * @stranger: a QP in @other_pd
 * @twin:     a QP in @other_pd with the QPN of @qp
 * @mrs:      regions that mw_test_exit() frees
 * @mws:      windows that mw_test_exit() frees
 * @pages:    pages that mw_test_exit() frees
 * @nmrs:     number of regions
 * @nmws:     number of windows
 * @npages:   number of pages
 */
struct fixture {
	struct nhca_dev *dev;
	struct ib_pd *pd, *other_pd;
	struct nhca_key_user qp, sibling, stranger, twin;
	struct nhca_mr *mrs[MAX_OBJECTS];
	struct nhca_mw *mws[MAX_OBJECTS];
	struct page *pages[MAX_OBJECTS * PAGES];
	int nmrs, nmws, npages;
};

static inline int mw_test_init(struct kunit *test)
{
	struct fixture *f = kunit_kzalloc(test, sizeof(*f), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, f);
	f->dev = kunit_kzalloc(test, sizeof(*f->dev), GFP_KERNEL);
	f->pd = kunit_kzalloc(test, sizeof(*f->pd), GFP_KERNEL);
	f->other_pd = kunit_kzalloc(test, sizeof(*f->other_pd), GFP_KERNEL);
	KUNIT_ASSERT_TRUE(test, f->dev && f->pd && f->other_pd);
	f->qp = (struct nhca_key_user){ f->pd, QPN };
	f->sibling = (struct nhca_key_user){ f->pd, QPN + 1 };
	f->stranger = (struct nhca_key_user){ f->other_pd, QPN + 2 };
	f->twin = (struct nhca_key_user){ f->other_pd, QPN };
	test->priv = f;
	return 0;
}

static inline void mw_test_exit(struct kunit *test)
{
	struct fixture *f = test->priv;
	int i;

	if (!f)
		return;
	for (i = 0; i < f->nmws; i++)
		if (f->mws[i])
			nhca_mw_fini(f->mws[i]);
	for (i = 0; i < f->nmrs; i++)
		if (f->mrs[i])
			nhca_mr_free(f->mrs[i]);
	for (i = 0; i < f->npages; i++)
		__free_page(f->pages[i]);
}

/* Return: a region of PAGES pages that no other region has. */
static inline struct nhca_mr *region(struct kunit *test, struct ib_pd *pd, int access)
{
	struct fixture *f = test->priv;
	struct page **pages = &f->pages[f->npages];
	struct nhca_mr *mr;
	int i;

	KUNIT_ASSERT_LT(test, f->nmrs, MAX_OBJECTS);
	for (i = 0; i < PAGES; i++) {
		pages[i] = alloc_page(GFP_KERNEL | __GFP_ZERO);
		KUNIT_ASSERT_NOT_NULL(test, pages[i]);
		f->npages++;
	}
	mr = nhca_mr_alloc(f->dev, pd, access);
	KUNIT_ASSERT_FALSE(test, IS_ERR(mr));
	f->mrs[f->nmrs++] = mr;
	KUNIT_ASSERT_EQ(test, nhca_mr_map_pages(mr, pages, PAGES, 0, true), 0);
	nhca_mr_start(mr, access & IB_ZERO_BASED ? 0 : IOVA, LENGTH);
	return mr;
}

/*
 * Return: a region with the type of a fast-registration region, on the pages that region() mapped.
 */
static inline struct nhca_mr *fast_region(struct kunit *test, struct ib_pd *pd, int access)
{
	struct nhca_mr *mr = region(test, pd, access);

	mr->ops = &nhca_mr_fast_ops;
	mr->max_pieces = PAGES;
	mr->npieces = PAGES;
	return mr;
}

static inline struct nhca_mw *window(struct kunit *test, enum nhca_mkey_type type)
{
	struct nhca_mw *mw = kunit_kzalloc(test, sizeof(*mw), GFP_KERNEL);
	struct fixture *f = test->priv;

	KUNIT_ASSERT_NOT_NULL(test, mw);
	KUNIT_ASSERT_LT(test, f->nmws, MAX_OBJECTS);
	KUNIT_ASSERT_EQ(test, nhca_mw_init(mw, f->pd, type == NHCA_MKEY_MW1 ? IB_MW_TYPE_1 :
								  IB_MW_TYPE_2), 0);
	f->mws[f->nmws++] = mw;
	/*
	 * set the type, so that the module parameter for the type of windows has no effect on the
	 * tests
	 */
	mw->mkey.type = type;
	return mw;
}

static inline void window_free(struct fixture *f, struct nhca_mw *mw)
{
	int i;

	for (i = 0; i < f->nmws; i++)
		if (f->mws[i] == mw)
			f->mws[i] = NULL;
	while (f->nmws && !f->mws[f->nmws - 1])
		f->nmws--;
	nhca_mw_fini(mw);
}

static inline u32 next_key(u32 key)
{
	return (key & ~0xff) | ((key + 1) & 0xff);
}

static inline struct nhca_send_wqe bind_wqe(const struct nhca_mw *mw, const struct nhca_mr *mr,
					    u64 addr, u64 length, int access)
{
	return (struct nhca_send_wqe){
		.opcode = NHCA_WR_BIND_MW,
		.mw = {
			.addr = addr,
			.length = length,
			.mr_lkey = mr ? mr->ibmr.lkey : 0,
			.mw_rkey = mw->mkey.key,
			.new_rkey = next_key(mw->mkey.key),
			.access = access,
		},
	};
}

static inline int bind_as(struct nhca_key_user *key_user, const struct nhca_send_wqe *wqe)
{
	int err;

	local_bh_disable();
	err = nhca_mw_bind(key_user, wqe);
	local_bh_enable();
	return err;
}

static inline int bind(struct fixture *f, struct nhca_mw *mw, const struct nhca_mr *mr, u64 addr,
		       u64 length, int access)
{
	struct nhca_send_wqe wqe = bind_wqe(mw, mr, addr, length, access);

	return bind_as(&f->qp, &wqe);
}

static inline int local_inv(const struct nhca_key_user *key_user, u32 key, bool user)
{
	int err;

	local_bh_disable();
	err = nhca_local_inv(key_user, key, user);
	local_bh_enable();
	return err;
}

static inline int remote_inv(const struct nhca_key_user *key_user, u32 key)
{
	int err;

	local_bh_disable();
	err = nhca_remote_inv(key_user, key);
	local_bh_enable();
	return err;
}

/*
 * Return: the region of the @len bytes at @va, or NULL if @key gives no access. @off: gets the
 * offset of the bytes in the region.
 */
static inline struct nhca_mr *reach(const struct nhca_key_user *key_user, u32 key, u64 va, u32 len,
				    int access, u64 *off)
{
	struct nhca_mr *mr;

	local_bh_disable();
	nhca_live_enter();
	mr = nhca_mkey_check(key_user, key, va, len, access, off);
	nhca_live_exit();
	local_bh_enable();
	return mr;
}

static inline bool opens(const struct nhca_key_user *key_user, u32 key, u64 va, u32 len, int access)
{
	u64 off;

	return reach(key_user, key, va, len, access, &off);
}

#endif /* NHCA_TEST_MW_FIXTURE_H */
