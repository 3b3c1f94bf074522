/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What one user has of the pools that all users of a device share, and may have.
 */
#ifndef NHCA_USER_H
#define NHCA_USER_H

#include <linux/atomic.h>
#include <linux/compiler.h>
#include <linux/mutex.h>
#include <linux/refcount.h>
#include <linux/types.h>
#include <linux/xarray.h>

/**
 * enum nhca_pool - what a device, or the host, has a fixed amount of
 * @NHCA_POOL_PDS, @NHCA_POOL_CQS, @NHCA_POOL_SRQS, @NHCA_POOL_AHS, @NHCA_POOL_MRS, @NHCA_POOL_MWS,
 * @NHCA_POOL_XRCDS, @NHCA_POOL_TABLES: objects: protection domains, CQs, SRQs, address handles,
 *                      regions, windows, XRC domains, indirection tables
 * @NHCA_POOL_QPS:      queue pairs, channels and work queues
 * @NHCA_POOL_DM:       bytes of device memory
 * @NHCA_POOL_GROUPS:   multicast groups that are joined
 * @NHCA_POOL_RULES:    rules of flow steering
 * @NHCA_POOL_DEFERRED: bytes of packets that wait for on-demand pages, as the allocator counts them
 * @NHCA_POOL_JOB_MEM:  regions of job memory; of the host
 * @NHCA_POOLS:         number of pools
 */
enum nhca_pool {
	NHCA_POOL_PDS,
	NHCA_POOL_QPS,
	NHCA_POOL_CQS,
	NHCA_POOL_SRQS,
	NHCA_POOL_AHS,
	NHCA_POOL_MRS,
	NHCA_POOL_MWS,
	NHCA_POOL_XRCDS,
	NHCA_POOL_TABLES,
	NHCA_POOL_DM,
	NHCA_POOL_GROUPS,
	NHCA_POOL_RULES,
	NHCA_POOL_DEFERRED,
	NHCA_POOL_JOB_MEM,
	NHCA_POOLS,
};

/**
 * struct nhca_users - the pools of a device, or of the host, and their users
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
 * struct nhca_user - what one user has of the pools
 * @users: which pools; they live longer
 * @uid:   the index in @users
 * @ref:   user contexts, and objects that outlive them
 * @used:  of each pool, as far as nhca_share_ok()
 */
struct nhca_user {
	struct nhca_users *users;
	u32 uid;
	refcount_t ref;
	atomic_long_t used[NHCA_POOLS];
};

/* the module parameter user_share: thousandths of each pool that one user gets at most */
extern unsigned int nhca_user_share;

/**
 * nhca_share_ok - may one user have that much of what all share?
 * @size: of the pool
 * @mine: what the user then has of it
 * @all:  what all users then have of it
 *
 * One user gets nhca_user_share of a pool at most, which is one half unless the administrator says
 * otherwise.  The last eighth is for users who have less than a sixteenth, so that two users who
 * have taken half each have not taken all.
 * Context: any.
 */
static inline bool nhca_share_ok(long size, long mine, long all)
{
	return mine <= size * READ_ONCE(nhca_user_share) / 1000 &&
	       (all <= size - size / 8 || mine <= size / 16);
}

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
 * Return: 0; -EDQUOT: it is not for @user (nhca_share_ok()); -ENOMEM: so much is not left.
 */
int nhca_pool_take(struct nhca_users *users, struct nhca_user *user, enum nhca_pool pool, long n);

/**
 * nhca_pool_give - give back what nhca_pool_take() took
 * @users, @user, @pool, @n: as then
 * Context: any.
 */
void nhca_pool_give(struct nhca_users *users, struct nhca_user *user, enum nhca_pool pool, long n);

#endif /* NHCA_USER_H */
