/* SPDX-License-Identifier: GPL-2.0 */
/*
 * For suites about regions: a device, two protection domains, pages, and functions that access
 * regions.
 */
#ifndef NHCA_TEST_REGIONS_H
#define NHCA_TEST_REGIONS_H

#include <kunit/test.h>
#include <linux/mm.h>

#include "../memory/mr.h"
#include "../queue/ring.h"
#include "../user.h"

#define ALL_ACCESS	(IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_READ | \
			 IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_ATOMIC)
#define READ_ACCESS	IB_ACCESS_REMOTE_READ
#define NPAGES		6

/**
 * struct fixture - objects of each test
 * @dev:   device that is not registered
 * @key_user: key user of a protection domain
 * @other: key user of another protection domain
 * @pages: every byte of page i is the digit i
 */
struct fixture {
	struct nhca_dev *dev;
	struct nhca_key_user key_user, other;
	struct page *pages[NPAGES];
};

/* begin and end a live section, as softirqs do */
static inline void enter(void)
{
	local_bh_disable();
	nhca_live_enter();
}

static inline void leave(void)
{
	nhca_live_exit();
	local_bh_enable();
}

static inline int fixture_init(struct kunit *test)
{
	struct fixture *f = kunit_kzalloc(test, sizeof(*f), GFP_KERNEL);
	struct nhca_pd *pds;
	int i;

	KUNIT_ASSERT_NOT_NULL(test, f);
	test->priv = f;
	f->dev = kunit_kzalloc(test, sizeof(*f->dev), GFP_KERNEL);
	pds = kunit_kzalloc(test, 2 * sizeof(*pds), GFP_KERNEL);
	KUNIT_ASSERT_TRUE(test, f->dev && pds);
	f->key_user.pd = &pds[0].ibpd;
	f->other.pd = &pds[1].ibpd;
	f->key_user.pd->device = &f->dev->ibdev;
	f->other.pd->device = &f->dev->ibdev;
	for (i = 0; i < NPAGES; i++) {
		f->pages[i] = alloc_page(GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(test, f->pages[i]);
		memset(page_address(f->pages[i]), '0' + i, PAGE_SIZE);
	}
	return 0;
}

static inline void fixture_exit(struct kunit *test)
{
	struct fixture *f = test->priv;
	int i;

	for (i = 0; f && i < NPAGES; i++)
		if (f->pages[i])
			__free_page(f->pages[i]);
}

/*
 * Let the protection domain of fixture.key_user belong to a user whose share of the PVO space
 * (NHCA_POOL_PVOS) is used up.
 * Return: the user, for limit_end().
 */
static inline struct nhca_user *limit_begin(struct kunit *test)
{
	struct nhca_ucontext *uc = kunit_kzalloc(test, sizeof(*uc), GFP_KERNEL);
	struct ib_uobject *uobject = kunit_kzalloc(test, sizeof(*uobject), GFP_KERNEL);
	struct nhca_user *user = kunit_kzalloc(test, sizeof(*user), GFP_KERNEL);
	struct fixture *f = test->priv;

	KUNIT_ASSERT_TRUE(test, uc && uobject && user);
	user->host = nhca_user_get(&nhca_host_users, 4711);
	KUNIT_ASSERT_FALSE(test, IS_ERR(user->host));
	uc->user = user;
	uobject->context = &uc->ibuc;
	f->key_user.pd->uobject = uobject;
	KUNIT_ASSERT_EQ(test, nhca_pool_charge(&nhca_host_users, user->host, NHCA_POOL_PVOS,
					       NHCA_MAX_PVOS / 2), 0);
	return user->host;
}

/* Give the user's PVO space back, and let the protection domain belong to no user. */
static inline void limit_end(struct kunit *test, struct nhca_user *user)
{
	struct fixture *f = test->priv;

	nhca_pool_uncharge(&nhca_host_users, user, NHCA_POOL_PVOS, NHCA_MAX_PVOS / 2);
	nhca_user_put(user);
	f->key_user.pd->uobject = NULL;
}

/* Return: the byte at @va, read with @key, or a negative errno. */
static inline int peek(const struct nhca_key_user *key_user, u32 key, u64 va)
{
	struct nhca_iter it;
	u8 byte;
	int err;

	enter();
	err = nhca_iter_key(&it, key_user, key, va, 1, IB_ACCESS_REMOTE_READ);
	if (!err)
		err = nhca_iter_read(&it, &byte, 1);
	leave();
	return err ? err : byte;
}

static inline int seg_at(struct nhca_mr *mr, u64 off, u32 max, bool write, struct nhca_seg *seg)
{
	int err;

	enter();
	err = nhca_mr_seg(mr, off, max, write, seg);
	leave();
	return err;
}

#endif /* NHCA_TEST_REGIONS_H */
