// SPDX-License-Identifier: GPL-2.0
/* KUnit: how much of a device's pools one user may have. */
#include <kunit/test.h>
#include <linux/cred.h>
#include <linux/user_namespace.h>

#include "../nhca.h"
#include "../memory/tce.h"
#include "../user.h"

static const long sizes[] = {
	NHCA_MAX_PD, NHCA_MAX_QP, NHCA_MAX_CQ, NHCA_MAX_SRQ, NHCA_MAX_AH, NHCA_MAX_MR, NHCA_MAX_MW,
	NHCA_MAX_XRCD, NHCA_MAX_TABLES, NHCA_MAX_DM_SIZE, NHCA_MAX_DIRECT_SIZE, NHCA_MAX_MCAST_GRP,
	NHCA_MAX_STEER_RULES, NHCA_MAX_DEFERRED, NHCA_MAX_WATCHES, NHCA_TCE_KEYS / 2,
	(long)NHCA_TCE_TABLES << NHCA_PVO_OFFSET_BITS, NHCA_TCE_TABLES,
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

/*
 * Expect that one user gets at most half of a pool, and that two users leave some of the pool for a
 * third.
 */
static void reserve_of(struct kunit *test, enum nhca_pool pool, long size)
{
	struct nhca_user *a = user_of(test, 4711), *b = user_of(test, 4712);
	struct nhca_user *c = user_of(test, 4713);
	struct nhca_users *users = test->priv;
	long half = size / 2, most = half - size / 8, few = size / 16;

	KUNIT_EXPECT_EQ(test, nhca_pool_charge(users, a, pool, half + 1), -EDQUOT);
	KUNIT_EXPECT_EQ(test, nhca_pool_charge(users, a, pool, half), 0);
	KUNIT_EXPECT_EQ(test, nhca_pool_charge(users, a, pool, 1), -EDQUOT);
	/* two users cannot have all of the pool */
	KUNIT_EXPECT_EQ(test, nhca_pool_charge(users, b, pool, half), -EDQUOT);
	KUNIT_EXPECT_EQ(test, nhca_pool_charge(users, b, pool, most), 0);
	KUNIT_EXPECT_EQ(test, nhca_pool_charge(users, b, pool, 1), -EDQUOT);
	KUNIT_EXPECT_EQ(test, nhca_pool_charge(users, c, pool, few), 0);
	KUNIT_EXPECT_EQ(test, nhca_pool_charge(users, c, pool, 1), -EDQUOT);
	KUNIT_EXPECT_EQ(test, nhca_pool_charge(users, NULL, pool, size - half - most - few), 0);
	KUNIT_EXPECT_EQ(test, nhca_pool_charge(users, NULL, pool, 1), -ENOMEM);
	/* a request that was refused has charged nothing, so the kernel gets what a gives back */
	nhca_pool_uncharge(users, a, pool, half);
	KUNIT_EXPECT_EQ(test, nhca_pool_charge(users, NULL, pool, half), 0);
	KUNIT_EXPECT_EQ(test, nhca_pool_charge(users, a, pool, 1), -ENOMEM);
	nhca_pool_uncharge(users, b, pool, most);
	nhca_pool_uncharge(users, c, pool, few);
	nhca_pool_uncharge(users, NULL, pool, size - most - few);
	KUNIT_EXPECT_EQ(test, atomic_long_read(&users->used[pool]), 0);
	nhca_user_put(a);
	nhca_user_put(b);
	nhca_user_put(c);
}

/*
 * The module parameter user_share limits each user. If it is lowered, a user keeps what the user
 * has, but gets no more.
 */
static void share_test(struct kunit *test)
{
	struct nhca_user *a = user_of(test, 4711);
	struct nhca_users *users = test->priv;
	unsigned int share = nhca_user_share;
	const long size = NHCA_MAX_CQ;

	WRITE_ONCE(nhca_user_share, 10);
	KUNIT_EXPECT_EQ(test, nhca_pool_charge(users, a, NHCA_POOL_CQS, size / 100), 0);
	KUNIT_EXPECT_EQ(test, nhca_pool_charge(users, a, NHCA_POOL_CQS, 1), -EDQUOT);
	WRITE_ONCE(nhca_user_share, 1000);
	KUNIT_EXPECT_EQ(test, nhca_pool_charge(users, a, NHCA_POOL_CQS, size / 2), 0);
	WRITE_ONCE(nhca_user_share, 10);
	KUNIT_EXPECT_EQ(test, nhca_pool_charge(users, a, NHCA_POOL_CQS, 1), -EDQUOT);
	WRITE_ONCE(nhca_user_share, share);
	nhca_pool_uncharge(users, a, NHCA_POOL_CQS, size / 100 + size / 2);
	/*
	 * in a pool with few elements, a user may have NHCA_SHARE_MIN elements even if the share is
	 * smaller
	 */
	WRITE_ONCE(nhca_user_share, 1);
	KUNIT_EXPECT_EQ(test, nhca_pool_charge(users, a, NHCA_POOL_TCE_TABLES, NHCA_SHARE_MIN), 0);
	KUNIT_EXPECT_EQ(test, nhca_pool_charge(users, a, NHCA_POOL_TCE_TABLES, 1), -EDQUOT);
	WRITE_ONCE(nhca_user_share, share);
	nhca_pool_uncharge(users, a, NHCA_POOL_TCE_TABLES, NHCA_SHARE_MIN);
	nhca_user_put(a);
	nhca_users_destroy(users);
}

/*
 * In each pool, one user gets half at most, and the last eighth is for users who have few objects.
 */
static void reserve_test(struct kunit *test)
{
	int i;

	KUNIT_ASSERT_EQ(test, ARRAY_SIZE(sizes), NHCA_POOLS);
	for (i = 0; i < NHCA_POOLS; i++)
		reserve_of(test, i, sizes[i]);
	nhca_users_destroy(test->priv);
}

/*
 * All processes of a user share one account, which exists as long as a process or an object uses
 * it.
 */
static void one_account_test(struct kunit *test)
{
	struct nhca_user *a = user_of(test, 4711), *again = user_of(test, 4711);
	struct nhca_users *users = test->priv;

	KUNIT_EXPECT_PTR_EQ(test, a, again);
	KUNIT_EXPECT_EQ(test, nhca_pool_charge(users, a, NHCA_POOL_GROUPS, 3), 0);
	nhca_user_put(again);
	again = user_of(test, 4711);
	KUNIT_EXPECT_EQ(test, atomic_long_read(&again->used[NHCA_POOL_GROUPS]), 3);
	nhca_user_put(again);
	nhca_pool_uncharge(users, a, NHCA_POOL_GROUPS, 3);
	nhca_user_put(nhca_user_hold(a));
	nhca_user_put(a);
	KUNIT_EXPECT_TRUE(test, xa_empty(&users->by_id));
	nhca_users_destroy(users);
}

/* A user has one record for the host, in addition to one record for each device. */
static void host_record_test(struct kunit *test)
{
	struct nhca_users *other = kunit_kzalloc(test, sizeof(*other), GFP_KERNEL);
	struct nhca_user *a = user_of(test, 4711), *b, *host;

	KUNIT_ASSERT_NOT_NULL(test, other);
	nhca_users_init(other);
	b = nhca_user_get(other, 4711);
	KUNIT_ASSERT_FALSE(test, IS_ERR(b));
	host = nhca_user_get(&nhca_host_users, 4711);
	KUNIT_EXPECT_PTR_NE(test, a, b);
	KUNIT_EXPECT_PTR_EQ(test, a->host, host);
	KUNIT_EXPECT_PTR_EQ(test, b->host, host);
	KUNIT_EXPECT_NULL(test, host->host);
	nhca_user_put(host);
	nhca_user_put(a);
	nhca_user_put(b);
	KUNIT_EXPECT_NULL(test, nhca_user_find(&nhca_host_users, 4711));
	nhca_users_destroy(other);
	nhca_users_destroy(test->priv);
}

/*
 * A record may be released after the device's pools were destroyed, because an object has kept the
 * record.
 */
static void late_put_test(struct kunit *test)
{
	struct nhca_user *a = user_of(test, 4711);

	nhca_users_destroy(test->priv);
	memset(test->priv, 0xff, sizeof(struct nhca_users));
	nhca_user_put(a);
}

static u32 user_in(struct cred *cred, u32 uid, const struct user_namespace *ns)
{
	cred->uid = KUIDT_INIT(uid);
	cred->user_ns = (struct user_namespace *)ns;
	return __kuid_val(nhca_user_of_cred(cred));
}

/*
 * All uids in a user namespace that a user has created count as this user. In a user namespace that
 * root of the host has created, each uid counts as its own user. If such a uid creates a namespace
 * inside, all uids of the inner namespace count as this uid.
 */
static void subordinate_test(struct kunit *test)
{
	static const struct user_namespace mine = {
		.parent = &init_user_ns,
		.owner = KUIDT_INIT(1000),
	};
	static const struct user_namespace inner = {
		.parent = (struct user_namespace *)&mine,
		.owner = KUIDT_INIT(100007),
	};
	static const struct user_namespace roots = {
		.parent = &init_user_ns,
		.owner = GLOBAL_ROOT_UID,
	};
	static const struct user_namespace inside = {
		.parent = (struct user_namespace *)&roots,
		.owner = KUIDT_INIT(200005),
	};
	struct cred *cred = kunit_kzalloc(test, sizeof(*cred), GFP_KERNEL);
	u32 uid;

	KUNIT_ASSERT_NOT_NULL(test, cred);
	KUNIT_EXPECT_EQ(test, user_in(cred, 1000, &init_user_ns), 1000);
	for (uid = 100000; uid < 100016; uid++) {
		KUNIT_EXPECT_EQ(test, user_in(cred, uid, &mine), 1000);
		KUNIT_EXPECT_EQ(test, user_in(cred, uid, &inner), 1000);
		KUNIT_EXPECT_EQ(test, user_in(cred, uid, &roots), uid);
		KUNIT_EXPECT_EQ(test, user_in(cred, uid, &inside), 200005);
	}
	nhca_users_destroy(test->priv);
}

static struct kunit_case user_cases[] = {
	KUNIT_CASE(reserve_test),
	KUNIT_CASE(share_test),
	KUNIT_CASE(one_account_test),
	KUNIT_CASE(host_record_test),
	KUNIT_CASE(late_put_test),
	KUNIT_CASE(subordinate_test),
	{}
};

static struct kunit_suite user_suite = {
	.name = "nhca_user",
	.init = users_init,
	.test_cases = user_cases,
};

kunit_test_suite(user_suite);
