// SPDX-License-Identifier: GPL-2.0
/*
 * Users, and what each of them has of the pools: see user.h.
 *
 * The memory of most objects is charged to a memory cgroup, which limits this memory.  But a pool
 * also has a fixed size, so without another limit a single user could take the whole pool.
 * nhca_share_ok() therefore leaves a part of each pool to other users.
 */
#include <linux/bug.h>
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/err.h>
#include <linux/moduleparam.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/user_namespace.h>

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
MODULE_PARM_DESC(user_share, "maximum share of one user in each resource of a device or of the host, in thousandths, 1 to 1000 (default 500)");

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
	[NHCA_POOL_WATCHES] = NHCA_MAX_WATCHES,
	[NHCA_POOL_JOB_MEM] = NHCA_MAX_JOB_MEM,
	[NHCA_POOL_PVOS] = NHCA_MAX_PVOS,
	[NHCA_POOL_TCE_TABLES] = NHCA_MAX_TCE_TABLES,
};

struct nhca_users nhca_host_users = {
	.by_id = XARRAY_INIT(nhca_host_users.by_id, XA_FLAGS_LOCK_IRQ | XA_FLAGS_ACCOUNT),
};

/*
 * protects nhca_user.users, and the removal of a record with its last reference, so that each
 * record in a table has a reference; taken with interrupts disabled
 */
static DEFINE_SPINLOCK(users_lock);

void nhca_users_init(struct nhca_users *users)
{
	xa_init_flags(&users->by_id, XA_FLAGS_LOCK_IRQ | XA_FLAGS_ACCOUNT);
}

/* Remove a record from its table.  users_lock is held. */
static void user_remove(struct nhca_user *user)
{
	struct nhca_users *users = user->users;

	lockdep_assert_held(&users_lock);
	if (!users)
		return;
	xa_lock(&users->by_id);
	__xa_erase(&users->by_id, user->id);
	xa_unlock(&users->by_id);
	user->users = NULL;
}

void nhca_users_destroy(struct nhca_users *users)
{
	struct nhca_user *user;
	unsigned long id, flags;
	int i;

	spin_lock_irqsave(&users_lock, flags);
	xa_for_each(&users->by_id, id, user)
		user_remove(user);
	spin_unlock_irqrestore(&users_lock, flags);
	for (i = 0; i < NHCA_POOLS; i++)
		WARN_ON(atomic_long_read(&users->used[i]));
}

kuid_t nhca_user_of_cred(const struct cred *cred)
{
	const struct user_namespace *ns;
	kuid_t uid = cred->uid;

	for (ns = cred->user_ns; ns->parent; ns = ns->parent)
		if (!uid_eq(ns->owner, GLOBAL_ROOT_UID))
			uid = ns->owner;
	return uid;
}

/* Return: a record that is not in the table yet, with a reference; NULL: no memory. */
static struct nhca_user *user_make(struct nhca_users *users, u32 id)
{
	struct nhca_user *user = kzalloc(sizeof(*user), GFP_KERNEL_ACCOUNT);
	int i;

	if (!user)
		return NULL;
	user->users = users;
	user->id = id;
	refcount_set(&user->ref, 1);
	for (i = 0; i < NHCA_USER_FAULTS; i++)
		INIT_LIST_HEAD(&user->faults[i].ready);
	if (users == &nhca_host_users)
		return user;
	user->host = nhca_user_get(&nhca_host_users, id);
	if (!IS_ERR(user->host))
		return user;
	kfree(user);
	return NULL;
}

/* Return: the record in the table, with a reference; NULL: there is none. */
static struct nhca_user *user_find_get(struct nhca_users *users, u32 id)
{
	struct nhca_user *user;
	unsigned long flags;

	spin_lock_irqsave(&users_lock, flags);
	user = nhca_user_hold(nhca_user_find(users, id));
	spin_unlock_irqrestore(&users_lock, flags);
	return user;
}

struct nhca_user *nhca_user_get(struct nhca_users *users, u32 id)
{
	struct nhca_user *user, *made, *other;

	for (;;) {
		user = user_find_get(users, id);
		if (user)
			return user;
		/* take no lock here, because an allocation may take long if a cgroup is full */
		made = user_make(users, id);
		if (!made)
			return ERR_PTR(-ENOMEM);
		other = xa_cmpxchg_irq(&users->by_id, id, NULL, made, GFP_KERNEL_ACCOUNT);
		if (!other)
			return made;
		nhca_user_put(made->host);
		kfree(made);
		if (xa_is_err(other))
			return ERR_PTR(-ENOMEM);
	}
}

struct nhca_user *nhca_user_get_current(struct nhca_users *users)
{
	kuid_t uid = nhca_user_of_cred(current_cred());

	return capable(CAP_SYS_RESOURCE) ? NULL :
	       nhca_user_get(users, from_kuid(&init_user_ns, uid));
}

struct nhca_user *nhca_user_hold(struct nhca_user *user)
{
	if (user)
		refcount_inc(&user->ref);
	return user;
}

/*
 * Put a reference, and remove the record from its table if the reference was the last one.
 * Return: true if the caller must free the record.
 */
static bool user_put_last(struct nhca_user *user)
{
	unsigned long flags;
	bool last;

	/* most references are not the last one, and need no lock */
	if (refcount_dec_not_one(&user->ref))
		return false;
	spin_lock_irqsave(&users_lock, flags);
	last = refcount_dec_and_test(&user->ref);
	if (last)
		user_remove(user);
	spin_unlock_irqrestore(&users_lock, flags);
	return last;
}

void nhca_user_put(struct nhca_user *user)
{
	struct nhca_user *host;
	int i;

	/* twice at most: the record of a device has a reference to that of the host */
	for (; user && user_put_last(user); user = host) {
		for (i = 0; i < NHCA_POOLS; i++)
			WARN_ON(atomic_long_read(&user->used[i]));
		WARN_ON(atomic_long_read(&user->rcxts) || atomic_long_read(&user->rcxt_maps));
		if (user->packets)
			user->packets_put(user->packets);
		host = user->host;
		kfree(user);
	}
}

/*
 * Both loops check before they add.  A request that is refused must not count in @all, not even for
 * a moment, because it could make a concurrent request of another user fail.
 */
int nhca_share_charge(long size, atomic_long_t *mine, atomic_long_t *all, long n)
{
	long own = 0, sum;

	if (mine) {
		own = atomic_long_read(mine);
		do {
			if (!nhca_share_ok(size, own + n, 0))
				return -EDQUOT;
		} while (!atomic_long_try_cmpxchg(mine, &own, own + n));
		own += n;
	}
	sum = atomic_long_read(all);
	do {
		if (sum + n > size || !nhca_share_ok(size, own, sum + n)) {
			if (mine)
				atomic_long_sub(n, mine);
			return sum + n > size ? -ENOMEM : -EDQUOT;
		}
	} while (!atomic_long_try_cmpxchg(all, &sum, sum + n));
	return 0;
}

int nhca_pool_charge(struct nhca_users *users, struct nhca_user *user, enum nhca_pool pool, long n)
{
	return nhca_share_charge(pool_size[pool], user ? &user->used[pool] : NULL,
				 &users->used[pool], n);
}

void nhca_pool_uncharge(struct nhca_users *users, struct nhca_user *user,
			enum nhca_pool pool, long n)
{
	if (user)
		atomic_long_sub(n, &user->used[pool]);
	atomic_long_sub(n, &users->used[pool]);
}
