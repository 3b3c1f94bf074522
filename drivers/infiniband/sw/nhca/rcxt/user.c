// SPDX-License-Identifier: GPL-2.0
/*
 * Accounts of users, which limit a user's rCxts and bitmaps on a device.
 */
#include <linux/slab.h>

#include "pool.h"

int nhca_rcxt_user_get(struct nhca_rcxt_pool *pool, u32 uid, struct nhca_rcxt_user **user)
{
	struct nhca_rcxt_user *u = xa_load(&pool->users, uid);
	int err;

	if (!u) {
		u = kzalloc(sizeof(*u), GFP_KERNEL_ACCOUNT);
		if (!u)
			return -ENOMEM;
		u->uid = uid;
		err = xa_err(xa_store(&pool->users, uid, u, GFP_KERNEL_ACCOUNT));
		if (err) {
			kfree(u);
			return err;
		}
	}
	u->channels++;
	*user = u;
	return 0;
}

void nhca_rcxt_user_put(struct nhca_rcxt_pool *pool, struct nhca_rcxt_user *user)
{
	if (!user || --user->channels)
		return;
	WARN_ON(user->count || atomic_long_read(&user->map_bytes));
	xa_erase(&pool->users, user->uid);
	/* user_of() does not look up the account concurrently: the user has no rCxt any more */
	kfree(user);
}
