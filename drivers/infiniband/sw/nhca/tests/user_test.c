// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit: what one user may take of a device's pools.
 */
#include <kunit/test.h>

#include "../nhca.h"
#include "../memory/user.h"

static const long size[NHCA_POOLS] = {
	NHCA_MAX_DM_SIZE, NHCA_MAX_MCAST_GRP, NHCA_MAX_STEER_RULES, NHCA_MAX_DEFERRED,
};

static int users_init(struct kunit *test)
{
	struct nhca_users *users = kunit_kzalloc(test, sizeof(*users), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, users);
	nhca_users_init(users);
	test->priv = users;
	return 0;
}

static struct nhca_user *user_of(struct kunit *test, u32 uid)
{
	struct nhca_user *user = nhca_user_get(test->priv, uid);

	KUNIT_ASSERT_FALSE(test, IS_ERR(user));
	return user;
}

/* One user is refused at half of a pool, and another one gets the other half. */
static void half_for_others_test(struct kunit *test)
{
	struct nhca_user *a = user_of(test, 4711), *b = user_of(test, 4712);
	struct nhca_users *users = test->priv;
	int i;

	for (i = 0; i < NHCA_POOLS; i++) {
		KUNIT_EXPECT_EQ(test, nhca_pool_take(users, a, i, size[i] / 2 + 1), -EDQUOT);
		KUNIT_EXPECT_EQ(test, nhca_pool_take(users, a, i, size[i] / 2), 0);
		KUNIT_EXPECT_EQ(test, nhca_pool_take(users, a, i, 1), -EDQUOT);
		KUNIT_EXPECT_EQ(test, nhca_pool_take(users, b, i, size[i] / 2), 0);
		KUNIT_EXPECT_EQ(test, nhca_pool_take(users, NULL, i, 1), -ENOMEM);
		/* what was refused has changed nothing */
		nhca_pool_give(users, a, i, size[i] / 2);
		KUNIT_EXPECT_EQ(test, nhca_pool_take(users, NULL, i, size[i] / 2), 0);
		KUNIT_EXPECT_EQ(test, nhca_pool_take(users, a, i, 1), -ENOMEM);
		nhca_pool_give(users, b, i, size[i] / 2);
		nhca_pool_give(users, NULL, i, size[i] / 2);
		KUNIT_EXPECT_EQ(test, atomic_long_read(&users->used[i]), 0);
	}
	nhca_user_put(a);
	nhca_user_put(b);
	nhca_users_destroy(users);
}

/* All processes of a user share one account, which lives as long as one of them or an object. */
static void one_account_test(struct kunit *test)
{
	struct nhca_user *a = user_of(test, 4711), *again = user_of(test, 4711);
	struct nhca_users *users = test->priv;

	KUNIT_EXPECT_PTR_EQ(test, a, again);
	KUNIT_EXPECT_EQ(test, nhca_pool_take(users, a, NHCA_POOL_GROUPS, 3), 0);
	nhca_user_put(again);
	again = user_of(test, 4711);
	KUNIT_EXPECT_EQ(test, atomic_long_read(&again->used[NHCA_POOL_GROUPS]), 3);
	nhca_user_put(again);
	nhca_pool_give(users, a, NHCA_POOL_GROUPS, 3);
	nhca_user_put(nhca_user_hold(a));
	nhca_user_put(a);
	KUNIT_EXPECT_TRUE(test, xa_empty(&users->by_uid));
	nhca_users_destroy(users);
}

static struct kunit_case user_cases[] = {
	KUNIT_CASE(half_for_others_test),
	KUNIT_CASE(one_account_test),
	{}
};

static struct kunit_suite user_suite = {
	.name = "nhca_user",
	.init = users_init,
	.test_cases = user_cases,
};

kunit_test_suite(user_suite);
