// SPDX-License-Identifier: GPL-2.0
/*
 * What one user has of the pools that all users of a device share.
 *
 * The memory of most objects is charged to a memory cgroup, which bounds it.  The amounts of a
 * pool are bounded for the device, so that a single user could take all of it.  One half of each
 * pool is therefore left to others, whatever one user does.
 */
#include <linux/bug.h>
#include <linux/err.h>
#include <linux/slab.h>

#include "../nhca.h"
#include "user.h"

static const long pool_size[NHCA_POOLS] = {
	[NHCA_POOL_DM] = NHCA_MAX_DM_SIZE,
	[NHCA_POOL_GROUPS] = NHCA_MAX_MCAST_GRP,
	[NHCA_POOL_RULES] = NHCA_MAX_STEER_RULES,
	[NHCA_POOL_DEFERRED] = NHCA_MAX_DEFERRED,
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

int nhca_pool_take(struct nhca_users *users, struct nhca_user *user, enum nhca_pool pool, long n)
{
	/*
	 * The user's share comes first.  A request beyond it never counts in the pool, where it
	 * could make another user's request fail meanwhile.
	 */
	if (user && atomic_long_add_return(n, &user->used[pool]) > pool_size[pool] / 2) {
		atomic_long_sub(n, &user->used[pool]);
		return -EDQUOT;
	}
	if (atomic_long_add_return(n, &users->used[pool]) > pool_size[pool]) {
		nhca_pool_give(users, user, pool, n);
		return -ENOMEM;
	}
	return 0;
}

void nhca_pool_give(struct nhca_users *users, struct nhca_user *user, enum nhca_pool pool, long n)
{
	if (user)
		atomic_long_sub(n, &user->used[pool]);
	atomic_long_sub(n, &users->used[pool]);
}
