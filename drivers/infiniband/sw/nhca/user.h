/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Pools: resources of which a device, or the host, has a fixed maximum, and which all its users
 * share.  This file counts how much of each pool a user has, and limits this amount.  The file also
 * has struct nhca_pageref_owner: the process whose pages packets refer to.
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
 * enum nhca_pool - the pools: of a device, unless stated
 * @NHCA_POOL_PDS: protection domains
 * @NHCA_POOL_QPS: queue pairs, channels and work queues
 * @NHCA_POOL_CQS: completion queues
 * @NHCA_POOL_SRQS: shared receive queues
 * @NHCA_POOL_AHS: address handles
 * @NHCA_POOL_MRS: regions
 * @NHCA_POOL_MWS: windows
 * @NHCA_POOL_XRCDS: XRC domains
 * @NHCA_POOL_TABLES: indirection tables
 * @NHCA_POOL_DM: bytes of device memory
 * @NHCA_POOL_DIRECT: bytes of the blocks that disks and packets share (direct/)
 * @NHCA_POOL_GROUPS: multicast groups that are joined
 * @NHCA_POOL_RULES: flow steering rules
 * @NHCA_POOL_DEFERRED: bytes of packets that wait for on-demand pages or disks
 * @NHCA_POOL_JOB_MEM: regions of job memory; a pool of the host
 * @NHCA_POOLS: number of pools
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
	NHCA_POOL_DIRECT,
	NHCA_POOL_GROUPS,
	NHCA_POOL_RULES,
	NHCA_POOL_DEFERRED,
	NHCA_POOL_JOB_MEM,
	NHCA_POOLS,
};

/**
 * struct nhca_users - the pools of a device or of the host, and their users
 * @lock:   protects @by_uid and the release of a user's last reference
 * @by_uid: struct nhca_user, by uid in the initial user namespace
 * @used:   amount in use, for each pool
 */
struct nhca_users {
	/* protects @by_uid and the release of a user's last reference */
	struct mutex lock;
	struct xarray by_uid;
	atomic_long_t used[NHCA_POOLS];
};

/**
 * struct nhca_user - the account of one user
 * @users: the pools; they exist longer than the account
 * @uid:   index in nhca_users.by_uid
 * @ref:   one for each user context of the user, and one for each object that may outlive the
 *         context in which it was created
 * @used:  amount that the user has of each pool; nhca_share_ok() limits it
 */
struct nhca_user {
	struct nhca_users *users;
	u32 uid;
	refcount_t ref;
	atomic_long_t used[NHCA_POOLS];
};

/* module parameter user_share: the most that one user gets of each pool, in thousandths */
extern unsigned int nhca_user_share;

/**
 * nhca_share_ok - check that one user may have some amount of a pool
 * @size: size of the pool, or of another resource that users share
 * @mine: amount that the user would have
 * @all:  amount that all users together would have
 *
 * One user gets at most nhca_user_share thousandths of a pool: one half by default.  The last
 * eighth of a pool is only for users who have at most a sixteenth of the pool.  So two users with
 * one half each cannot take the whole pool.
 * Context: any.
 * Return: true if the user may have @mine.
 */
static inline bool nhca_share_ok(long size, long mine, long all)
{
	return mine <= size * READ_ONCE(nhca_user_share) / 1000 &&
	       (all <= size - size / 8 || mine <= size / 16);
}

/**
 * nhca_users_init - set up pools, all of them unused
 * @users: zeroed memory
 * Context: process.
 */
void nhca_users_init(struct nhca_users *users);

/**
 * nhca_users_destroy - destroy pools; warn if an amount was not given back
 * @users: from nhca_users_init()
 * Context: process.
 */
void nhca_users_destroy(struct nhca_users *users);

/**
 * nhca_user_get - find or make the account of a user
 * @users: the pools
 * @uid:   uid in the initial user namespace
 * Context: process, sleeps.
 * Return: a counted reference, for nhca_user_put(); ERR_PTR(-ENOMEM).
 */
struct nhca_user *nhca_user_get(struct nhca_users *users, u32 uid);

/**
 * nhca_user_hold - take another reference
 * @user: the account or NULL
 * Context: any.
 * Return: @user.
 */
struct nhca_user *nhca_user_hold(struct nhca_user *user);

/**
 * nhca_user_put - release a reference; free the account with the last one
 * @user: the account or NULL.  Before the last call all its amounts must have been given back.
 * Context: process, sleeps.
 */
void nhca_user_put(struct nhca_user *user);

/**
 * nhca_pool_charge - take an amount from a pool
 * @users: the pools
 * @user:  the account to charge.  NULL for the kernel and for users with CAP_SYS_RESOURCE: only the
 *         size of the pool limits these.
 * @pool:  the pool
 * @n:     amount, in the pool's unit
 * Context: any.
 * Return: 0; -EDQUOT: nhca_share_ok() refuses the amount to @user; -ENOMEM: less than @n is left of
 * the pool.
 */
int nhca_pool_charge(struct nhca_users *users, struct nhca_user *user, enum nhca_pool pool, long n);

/**
 * nhca_pool_uncharge - give back an amount that nhca_pool_charge() has charged
 * @users: the pools
 * @user:  the account that was charged, or NULL
 * @pool:  the pool
 * @n:     amount, in the pool's unit
 * Context: any.
 */
void nhca_pool_uncharge(struct nhca_users *users, struct nhca_user *user,
			enum nhca_pool pool, long n);

/**
 * struct nhca_pageref_owner - the process whose pages packets refer to
 * @mm:       its address space; a counted reference to the struct (mmgrab())
 * @tgid:     the process; counted
 * @deadline: after the death of the process: time in jiffies at which all waits for its packets
 *            end; 0 before the first of these waits
 */
struct nhca_pageref_owner {
	struct mm_struct *mm;
	struct pid *tgid;
	unsigned long deadline;
};

#endif /* NHCA_USER_H */
