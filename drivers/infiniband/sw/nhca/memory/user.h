/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What one user has of the pools that all users of a device share, and may have.
 */
#ifndef NHCA_USER_H
#define NHCA_USER_H

#include <linux/atomic.h>
#include <linux/mutex.h>
#include <linux/refcount.h>
#include <linux/types.h>
#include <linux/xarray.h>

/**
 * enum nhca_pool - what a device has a fixed amount of
 * @NHCA_POOL_DM:       bytes of device memory
 * @NHCA_POOL_GROUPS:   multicast groups that are joined
 * @NHCA_POOL_RULES:    rules of flow steering
 * @NHCA_POOL_DEFERRED: bytes of packets that wait for on-demand pages, as their skbs count them
 * @NHCA_POOLS:         number of pools
 */
enum nhca_pool {
	NHCA_POOL_DM,
	NHCA_POOL_GROUPS,
	NHCA_POOL_RULES,
	NHCA_POOL_DEFERRED,
	NHCA_POOLS,
};

/**
 * struct nhca_users - the pools of a device, and their users
 * @lock:   @by_uid and the last reference of a user
 * @by_uid: struct nhca_user, by uid in the initial user namespace
 * @used:   of each pool
 */
struct nhca_users {
	/* @by_uid and the last reference of a user */
	struct mutex lock;
	struct xarray by_uid;
	atomic_long_t used[NHCA_POOLS];
};

/**
 * struct nhca_user - what one user has of a device's pools
 * @users: of which device; it lives longer
 * @uid:   the index in @users
 * @ref:   user contexts, and objects that outlive them
 * @used:  of each pool: half of it at most
 */
struct nhca_user {
	struct nhca_users *users;
	u32 uid;
	refcount_t ref;
	atomic_long_t used[NHCA_POOLS];
};

/**
 * nhca_users_init - make the pools of a device, all of them unused
 * @users: zeroed
 * Context: process.
 */
void nhca_users_init(struct nhca_users *users);

/**
 * nhca_users_destroy - the device goes: warn of what was not given back
 * @users: from nhca_users_init()
 * Context: process.
 */
void nhca_users_destroy(struct nhca_users *users);

/**
 * nhca_user_get - find or make the account of a user
 * @users: of the device
 * @uid:   of the user, in the initial user namespace
 * Context: process, sleeps.
 * Return: counted, for nhca_user_put(); ERR_PTR(-ENOMEM).
 */
struct nhca_user *nhca_user_get(struct nhca_users *users, u32 uid);

/**
 * nhca_user_hold - one more reference
 * @user: or NULL
 * Context: any.  Return: @user.
 */
struct nhca_user *nhca_user_hold(struct nhca_user *user);

/**
 * nhca_user_put - drop a reference; with the last one the user has nothing of any pool
 * @user: or NULL
 * Context: process, sleeps.
 */
void nhca_user_put(struct nhca_user *user);

/**
 * nhca_pool_take - take from a pool
 * @users: of the device
 * @user:  whom it counts for; NULL: the kernel, or a user who may exceed limits of resources; only
 *         the pool itself bounds what they take
 * @pool:  which
 * @n:     how much, in the pool's unit
 * Context: any.
 * Return: 0; -EDQUOT: @user would have more than half of the pool; -ENOMEM: so much is not left.
 */
int nhca_pool_take(struct nhca_users *users, struct nhca_user *user, enum nhca_pool pool, long n);

/**
 * nhca_pool_give - give back what nhca_pool_take() took
 * @users, @user, @pool, @n: as then
 * Context: any.
 */
void nhca_pool_give(struct nhca_users *users, struct nhca_user *user, enum nhca_pool pool, long n);

#endif /* NHCA_USER_H */
