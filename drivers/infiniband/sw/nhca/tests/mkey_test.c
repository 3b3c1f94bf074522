// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit: each key is found until it is removed, even if a newer key has replaced it in keys_recent.
 */
#include <linux/vmalloc.h>

#include "regions.h"

/* twice the number of entries of keys_recent, the table of recent keys */
#define KEYS		4096

/* Return: the key that a lookup of @key finds, or NULL. */
static struct nhca_mkey *found(u32 key)
{
	struct nhca_mkey *mk;

	local_bh_disable();
	mk = nhca_mkey_get(key);
	if (mk)
		nhca_mkey_put(mk);
	local_bh_enable();
	return mk;
}

static u32 count_found(const struct nhca_mkey *mks, u32 first, u32 step)
{
	u32 n = 0, i;

	for (i = first; i < KEYS; i += step)
		n += found(mks[i].key) == &mks[i];
	return n;
}

static void find_test(struct kunit *test)
{
	struct fixture *f = test->priv;
	struct nhca_mkey *mks = vzalloc(array_size(KEYS, sizeof(*mks)));
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, mks);
	for (i = 0; i < KEYS; i++) {
		mks[i].pd = f->key_user.pd;
		if (nhca_mkey_add(&mks[i]))
			break;
	}
	KUNIT_EXPECT_EQ(test, i, KEYS);
	KUNIT_EXPECT_EQ(test, count_found(mks, 0, 1), KEYS);
	/*
	 * remove every other key: some of these keys are in keys_recent, and newer keys have
	 * replaced the others there
	 */
	for (i = 0; i < KEYS; i += 2)
		nhca_mkey_del(&mks[i]);
	KUNIT_EXPECT_EQ(test, count_found(mks, 0, 2), 0);
	KUNIT_EXPECT_EQ(test, count_found(mks, 1, 2), KEYS / 2);
	for (i = 1; i < KEYS; i += 2)
		nhca_mkey_del(&mks[i]);
	KUNIT_EXPECT_EQ(test, count_found(mks, 1, 2), 0);
	vfree(mks);
}

static struct kunit_case mkey_cases[] = {
	KUNIT_CASE(find_test),
	{}
};

static struct kunit_suite mkey_suite = {
	.name = "nhca_mkey",
	.init = fixture_init,
	.exit = fixture_exit,
	.test_cases = mkey_cases,
};

kunit_test_suite(mkey_suite);
