/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Users, and pools: resources of which a device, or the host, has a fixed maximum, and which all
 * its users share.  This file has the record of a user, and counts and limits how much of each pool
 * a user has.
 *
 * A user is identified by a uid.  The uids in user namespaces that the user has created count as
 * the same user (nhca_user_of_cred()).
 */
#ifndef NHCA_USER_H
#define NHCA_USER_H

#include <linux/atomic.h>
#include <linux/compiler.h>
#include <linux/list.h>
#include <linux/minmax.h>
#include <linux/refcount.h>
#include <linux/types.h>
#include <linux/uidgid.h>
#include <linux/xarray.h>

struct cred;
struct nhca_txq;

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
 * @NHCA_POOL_WATCHES: watches of memory (memory/watch.h)
 * @NHCA_POOL_JOB_MEM: regions of job memory; a pool of the host
 * @NHCA_POOL_PVOS: bytes of protocol virtual offsets (memory/tce.h); a pool of the host
 * @NHCA_POOL_TCE_TABLES: tables of TCEs that were taken into use; a pool of the host
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
	NHCA_POOL_WATCHES,
	NHCA_POOL_JOB_MEM,
	NHCA_POOL_PVOS,
	NHCA_POOL_TCE_TABLES,
	NHCA_POOLS,
};

/**
 * struct nhca_users - the pools of a device or of the host, and their users
 * @by_id: struct nhca_user, by nhca_user.id; its lock disables interrupts
 * @used:  amount in use, for each pool
 */
struct nhca_users {
	struct xarray by_id;
	atomic_long_t used[NHCA_POOLS];
};

/* kinds of page faults (memory/faultq.h) */
#define NHCA_USER_FAULTS	2

/**
 * struct nhca_user_faults - the workers that fault in a user's on-demand pages (memory/faultq.c)
 * @running: number of workers
 * @ready:   struct faultq_side with waiting work that only the limit of the user holds back
 */
struct nhca_user_faults {
	unsigned int running;
	struct list_head ready;
};

/**
 * struct nhca_user - the record of one user on a device, or of one user of the host
 * @users: the pools; NULL after nhca_users_destroy()
 * @host:  record of a device: the user's record in nhca_host_users; counted
 * @id:    index in nhca_users.by_id: the uid in the initial user namespace
 * @ref:   references of user contexts, of objects and memory that are charged to the record, of
 *         flows, and (record of the host) of the user's records of devices
 * @used:  amount that the user has of each pool; nhca_share_ok() limits it
 * @rcxts: record of a device: number of rCxts of the user's channels (rcxt/pool.c); nhca_share_ok()
 *         limits them
 * @rcxt_maps: record of a device: bytes of the bitmaps of these rCxts; nhca_share_ok() limits them
 * @packets: record of a device: packets of the user in the network stack (net/txq.c); counted; NULL
 *         before the user has a flow
 * @packets_put: drops the reference @packets
 * @faults: record of the host: on-demand page faults; under the lock of memory/faultq.c
 */
struct nhca_user {
	struct nhca_users *users;
	struct nhca_user *host;
	u32 id;
	refcount_t ref;
	atomic_long_t used[NHCA_POOLS];
	atomic_long_t rcxts;
	atomic_long_t rcxt_maps;
	struct nhca_txq *packets;
	void (*packets_put)(struct nhca_txq *packets);
	struct nhca_user_faults faults[NHCA_USER_FAULTS];
};

/* the pools of the host */
extern struct nhca_users nhca_host_users;

/*
 * elements of a pool that each user may have even with a small nhca_user_share; enough for one
 * table of TCEs for each of the three page sizes, and one more table
 */
#define NHCA_SHARE_MIN		4L

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
 * one half each cannot take the whole pool.  A small nhca_user_share still permits NHCA_SHARE_MIN.
 * Context: any.
 * Return: true if the user may have @mine.
 */
static inline bool nhca_share_ok(long size, long mine, long all)
{
	return mine <= max(size * READ_ONCE(nhca_user_share) / 1000, NHCA_SHARE_MIN) &&
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
 *
 * Records of users may stay, if packets in the network stack have the last references.
 * Context: process.
 */
void nhca_users_destroy(struct nhca_users *users);

/**
 * nhca_user_of_cred - find the user who is charged for the resources of a task
 * @cred: credentials of the task
 *
 * In a user namespace that a user has created, processes may have many uids, which /etc/subuid
 * permits.  All of these uids count as the creator: the function reads the owners of the nested
 * user namespaces that @cred is in, beginning with the outermost, and returns the first owner who
 * is not root of the host.  If there is none, the function returns the real uid.  Root of the host
 * creates user namespaces for containers, so each uid in these containers is a separate user.
 * Context: any.
 * Return: the uid.
 */
kuid_t nhca_user_of_cred(const struct cred *cred);

/**
 * nhca_user_get - find or make the record of a user
 * @users: the pools
 * @id:    uid in the initial user namespace
 * Context: process, sleeps.
 * Return: a counted reference, for nhca_user_put(); ERR_PTR(-ENOMEM): no memory for a new record.
 */
struct nhca_user *nhca_user_get(struct nhca_users *users, u32 id);

/**
 * nhca_user_get_current - find or make the record of the user of the calling process
 * @users: the pools
 * Context: process, sleeps.
 * Return: a counted reference, for nhca_user_put(); NULL: the process has CAP_SYS_RESOURCE, so that
 * no user is charged; ERR_PTR(-ENOMEM).
 */
struct nhca_user *nhca_user_get_current(struct nhca_users *users);

/**
 * nhca_user_find - find the record of a user, without a reference for the caller
 * @users: the pools
 * @id:    nhca_user.id
 * Context: any; until the result has been used, the caller holds the lock of user.c, or an object
 * that has a reference to the record exists.
 * Return: the record, not counted; NULL: there is none.
 */
static inline struct nhca_user *nhca_user_find(struct nhca_users *users, u32 id)
{
	return xa_load(&users->by_id, id);
}

/**
 * nhca_user_hold - take another reference
 * @user: the record or NULL
 * Context: any.
 * Return: @user.
 */
struct nhca_user *nhca_user_hold(struct nhca_user *user);

/**
 * nhca_user_put - release a reference; free the record with the last one
 * @user: the record or NULL.  Before the last reference is released, the amounts of all pools must
 *        have been given back.
 * Context: process, sleeps.
 */
void nhca_user_put(struct nhca_user *user);

/**
 * nhca_share_charge - take an amount of a resource that users share
 * @size: size of the resource
 * @mine: amount that the user has; NULL: the only limit is @size
 * @all:  amount that all users have
 * @n:    amount to take
 *
 * A request that is refused never changes @all, so it cannot make a concurrent request of another
 * user fail.
 * Context: any.
 * Return: 0: @n was added to @mine and @all; -EDQUOT: nhca_share_ok() refuses the amount to the
 * user; -ENOMEM: less than @n is left.
 */
int nhca_share_charge(long size, atomic_long_t *mine, atomic_long_t *all, long n);

/**
 * nhca_pool_charge - take an amount from a pool
 * @users: the pools
 * @user:  the record to charge.  NULL for the kernel and for users with CAP_SYS_RESOURCE: their
 *         only limit is the size of the pool.
 * @pool:  the pool
 * @n:     amount, in the pool's unit
 * Context: any.
 * Return: as nhca_share_charge().
 */
int nhca_pool_charge(struct nhca_users *users, struct nhca_user *user, enum nhca_pool pool, long n);

/**
 * nhca_verb_error - get the error of a verb from an error of a pool or of nhca_range_alloc()
 * @err: error of nhca_pool_charge() or nhca_range_alloc(), another errno, or 0
 *
 * The function replaces -EDQUOT (limit of the user) and -ENOSPC (nhca_range_alloc(): no table of
 * TCEs has room) by -ENOMEM.  The function returns any other value unchanged.
 *
 * A verb that other providers have as well fails with -ENOMEM, whether the limit of the user or
 * that of the device is reached, because programs expect -ENOMEM.  Resources that only nhca has
 * (rCxts, job memory, watches, pools of blocks) give -EDQUOT at the limit of the user.  But a
 * channel counts as a QP, and a region of a file as a region, so their limits give -ENOMEM.
 * Context: any.
 * Return: the error of the verb.
 */
static inline int nhca_verb_error(int err)
{
	return err == -EDQUOT || err == -ENOSPC ? -ENOMEM : err;
}

/**
 * nhca_pool_uncharge - give back an amount that nhca_pool_charge() has charged
 * @users: the pools
 * @user:  the record that was charged, or NULL
 * @pool:  the pool
 * @n:     amount, in the pool's unit
 * Context: any.
 */
void nhca_pool_uncharge(struct nhca_users *users, struct nhca_user *user,
			enum nhca_pool pool, long n);

/**
 * struct nhca_pageref_owner - the process whose pages packets refer to (memory/pageref.h)
 * @mm:       its address space; a counted reference to the struct (mmgrab())
 * @tgid:     the process; counted
 * @ref:      one for each user context, queue pair and region of job memory
 * @shown:    nhca_pageref_owner_get() finds the record
 * @deadline: time in jiffies at which the waits end that follow the death of the process; 0 before
 *            the first of these waits
 */
struct nhca_pageref_owner {
	struct mm_struct *mm;
	struct pid *tgid;
	refcount_t ref;
	bool shown;
	unsigned long deadline;
};

#endif /* NHCA_USER_H */
