// SPDX-License-Identifier: GPL-2.0
/*
 * Pools, and what each user has of them: see user.h.
 *
 * The memory of most objects is charged to a memory cgroup, which limits this memory.  But a pool
 * also has a fixed size, so without another limit a single user could take the whole pool.
 * nhca_share_ok() therefore leaves a part of each pool to other users.
 */
#include <linux/bug.h>
#include <linux/err.h>
#include <linux/moduleparam.h>
#include <linux/slab.h>

#include "nhca.h"
#include "user.h"

static int user_share_set(const char *val, const struct kernel_param *kp)
{
	return param_set_uint_minmax(val, kp, 1, 1000);
}

static const struct kernel_param_ops user_share_ops = {
	.set = user_share_set,
	.get = param_get_uint,
};

unsigned int nhca_user_share = 500;
module_param_cb(user_share, &user_share_ops, &nhca_user_share, 0644);
MODULE_PARM_DESC(user_share, "maximum share of one user in each resource of a device, in thousandths, 1 to 1000 (default 500)");

static const long pool_size[NHCA_POOLS] = {
	[NHCA_POOL_PDS] = NHCA_MAX_PD,
	[NHCA_POOL_QPS] = NHCA_MAX_QP,
	[NHCA_POOL_CQS] = NHCA_MAX_CQ,
	[NHCA_POOL_SRQS] = NHCA_MAX_SRQ,
	[NHCA_POOL_AHS] = NHCA_MAX_AH,
	[NHCA_POOL_MRS] = NHCA_MAX_MR,
	[NHCA_POOL_MWS] = NHCA_MAX_MW,
	[NHCA_POOL_XRCDS] = NHCA_MAX_XRCD,
	[NHCA_POOL_TABLES] = NHCA_MAX_TABLES,
	[NHCA_POOL_DM] = NHCA_MAX_DM_SIZE,
	[NHCA_POOL_DIRECT] = NHCA_MAX_DIRECT_SIZE,
	[NHCA_POOL_GROUPS] = NHCA_MAX_MCAST_GRP,
	[NHCA_POOL_RULES] = NHCA_MAX_STEER_RULES,
	[NHCA_POOL_DEFERRED] = NHCA_MAX_DEFERRED,
	[NHCA_POOL_JOB_MEM] = NHCA_MAX_JOB_MEM,
};

void nhca_users_init(struct nhca_users *users)
{
	mutex_init(&users->lock);
	xa_init_flags(&users->by_uid, XA_FLAGS_ACCOUNT);
}

void nhca_users_destroy(struct nhca_users *users)
{
	int i;

	WARN_ON(!xa_empty(&users->by_uid));
	for (i = 0; i < NHCA_POOLS; i++)
		WARN_ON(atomic_long_read(&users->used[i]));
	mutex_destroy(&users->lock);
}

static struct nhca_user *user_make(struct nhca_users *users, u32 uid)
{
	struct nhca_user *user;
	int err;

	lockdep_assert_held(&users->lock);
	user = kzalloc(sizeof(*user), GFP_KERNEL_ACCOUNT);
	if (!user)
		return ERR_PTR(-ENOMEM);
	user->users = users;
	user->uid = uid;
	refcount_set(&user->ref, 1);
	err = xa_err(xa_store(&users->by_uid, uid, user, GFP_KERNEL_ACCOUNT));
	if (err) {
		kfree(user);
		return ERR_PTR(err);
	}
	return user;
}

struct nhca_user *nhca_user_get(struct nhca_users *users, u32 uid)
{
	struct nhca_user *user;

	mutex_lock(&users->lock);
	user = xa_load(&users->by_uid, uid);
	if (user)
		refcount_inc(&user->ref);
	else
		user = user_make(users, uid);
	mutex_unlock(&users->lock);
	return user;
}

struct nhca_user *nhca_user_hold(struct nhca_user *user)
{
	if (user)
		refcount_inc(&user->ref);
	return user;
}

void nhca_user_put(struct nhca_user *user)
{
	struct nhca_users *users;
	int i;

	if (!user)
		return;
	users = user->users;
	if (!refcount_dec_and_mutex_lock(&user->ref, &users->lock))
		return;
	xa_erase(&users->by_uid, user->uid);
	mutex_unlock(&users->lock);
	for (i = 0; i < NHCA_POOLS; i++)
		WARN_ON(atomic_long_read(&user->used[i]));
	kfree(user);
}

int nhca_pool_charge(struct nhca_users *users, struct nhca_user *user, enum nhca_pool pool, long n)
{
	long size = pool_size[pool], mine = 0, all;

	/*
	 * Check the user's share first.  A request that exceeds the share must not count in the
	 * pool, not even for a moment: it could make a concurrent request of another user fail.
	 */
	if (user) {
		mine = atomic_long_add_return(n, &user->used[pool]);
		if (!nhca_share_ok(size, mine, 0)) {
			atomic_long_sub(n, &user->used[pool]);
			return -EDQUOT;
		}
	}
	all = atomic_long_add_return(n, &users->used[pool]);
	if (all <= size && nhca_share_ok(size, mine, all))
		return 0;
	nhca_pool_uncharge(users, user, pool, n);
	return all > size ? -ENOMEM : -EDQUOT;
}

void nhca_pool_uncharge(struct nhca_users *users, struct nhca_user *user,
			enum nhca_pool pool, long n)
{
	if (user)
		atomic_long_sub(n, &user->used[pool]);
	atomic_long_sub(n, &users->used[pool]);
}
