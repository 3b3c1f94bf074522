// SPDX-License-Identifier: GPL-2.0
/*
 * Memory windows (IBTA 10.6.7.2): binding them to regions, and invalidating windows and
 * fast-registered regions from the engines.
 */
#include <linux/hashtable.h>
#include <linux/module.h>
#include <linux/string.h>

#include "mr.h"
#include "../observe/stub.h"

/*
 * Local write is no right that a window could have: it has no L_Key.  Consumers give it
 * all the same, to say "not from afar", so it is taken and means nothing.
 */
#define NHCA_MW_ACCESS		(NHCA_REMOTE_ACCESS | IB_ZERO_BASED | IB_ACCESS_LOCAL_WRITE)

/* ---- what a type 2 window is ---- */

static enum nhca_mkey_type mw_type2 = NHCA_MKEY_MW2B;

static int mw_type_set(const char *val, const struct kernel_param *kp)
{
	if (sysfs_streq(val, "2A"))
		mw_type2 = NHCA_MKEY_MW2A;
	else if (sysfs_streq(val, "2B"))
		mw_type2 = NHCA_MKEY_MW2B;
	else
		return -EINVAL;
	return 0;
}

static int mw_type_get(char *buf, const struct kernel_param *kp)
{
	return sysfs_emit(buf, "%s\n", mw_type2 == NHCA_MKEY_MW2A ? "2A" : "2B");
}

static const struct kernel_param_ops mw_type_ops = {
	.set = mw_type_set,
	.get = mw_type_get,
};

/* read only once loaded: devices have told their consumers */
module_param_cb(mw_type, &mw_type_ops, NULL, 0444);
MODULE_PARM_DESC(mw_type, "kind of type 2 memory windows: 2A or 2B (default)");

u64 nhca_mw_device_cap(void)
{
	return mw_type2 == NHCA_MKEY_MW2A ? IB_DEVICE_MEM_WINDOW_TYPE_2A :
					    IB_DEVICE_MEM_WINDOW_TYPE_2B;
}

/* ---- the bound type 2 windows of each QP ---- */

#define NHCA_MW_HASH_BITS	10

static DEFINE_HASHTABLE(mw_by_qp, NHCA_MW_HASH_BITS);
/* of all buckets and of by_qp of every window; BH; nests inside a window's mkey.lock */
static DEFINE_SPINLOCK(mw_by_qp_lock);

static void mw_qp_link(struct nhca_mw *mw)
{
	spin_lock(&mw_by_qp_lock);
	hash_add(mw_by_qp, &mw->by_qp, mw->mkey.qpn);
	spin_unlock(&mw_by_qp_lock);
}

static void mw_qp_unlink(struct nhca_mw *mw)
{
	spin_lock(&mw_by_qp_lock);
	hash_del(&mw->by_qp);
	spin_unlock(&mw_by_qp_lock);
}

/* ---- life ---- */

static struct nhca_mw *mkey_mw(struct nhca_mkey *mk)
{
	return container_of(mk, struct nhca_mw, mkey);
}

int nhca_mw_init(struct nhca_mw *mw, struct ib_pd *pd, enum ib_mw_type type)
{
	int err;

	mw->mkey.type = type == IB_MW_TYPE_1 ? NHCA_MKEY_MW1 : mw_type2;
	mw->mkey.pd = pd;
	mw->mkey.mr = NULL;
	mw->mkey.qpn = 0;
	INIT_HLIST_NODE(&mw->by_qp);
	err = nhca_mkey_add(&mw->mkey);
	if (!err)
		mw->ibmw.rkey = mw->mkey.key;
	return err;
}

/*
 * Close a window and let go of its region.  mkey.mr is set as long as the window is
 * counted there, that is, as long as it is open.
 */
static void mw_unbind(struct nhca_mw *mw)
{
	struct nhca_mr *mr = mw->mkey.mr;

	nhca_mkey_close(&mw->mkey);
	if (!mr)
		return;
	if (mw->mkey.type != NHCA_MKEY_MW1)
		mw_qp_unlink(mw);
	mw->mkey.mr = NULL;
	/* the region may be gone as soon as its owner reads this: touch it no more */
	smp_mb__before_atomic();
	atomic_dec(&mr->windows);
}

void nhca_mw_fini(struct nhca_mw *mw)
{
	/* from then on no engine finds the window */
	nhca_mkey_del(&mw->mkey);
	spin_lock_bh(&mw->mkey.lock);
	mw_unbind(mw);
	spin_unlock_bh(&mw->mkey.lock);
}

void nhca_mw_qp_gone(const struct nhca_key_user *key_user)
{
	HLIST_HEAD(mine);
	struct hlist_node *next;
	struct nhca_mkey *mk;
	struct nhca_mw *mw;
	u32 key;

	NHCA_STUB(nhca_mw_qp_gone, key_user);
	/* off the table at once: what is bound meanwhile is another QP's */
	spin_lock_bh(&mw_by_qp_lock);
	hash_for_each_possible_safe(mw_by_qp, mw, next, by_qp, key_user->qpn) {
		if (mw->mkey.qpn != key_user->qpn)
			continue;
		hash_del(&mw->by_qp);
		hlist_add_head(&mw->by_qp, &mine);
	}
	while (!hlist_empty(&mine)) {
		mw = hlist_entry(mine.first, struct nhca_mw, by_qp);
		hlist_del_init(&mw->by_qp);
		key = mw->mkey.key;
		spin_unlock(&mw_by_qp_lock);

		/* if it is not there any more its owner is closing it */
		mk = nhca_mkey_get(key);
		if (mk) {
			spin_lock(&mk->lock);
			if (mk->type != NHCA_MKEY_MR && mk->type != NHCA_MKEY_MW1 &&
			    mk->valid && mk->qpn == key_user->qpn)
				mw_unbind(mkey_mw(mk));
			spin_unlock(&mk->lock);
			nhca_mkey_put(mk);
		}

		/* to the softirqs and other tasks of this CPU between two windows */
		local_bh_enable();
		cond_resched();
		spin_lock_bh(&mw_by_qp_lock);
	}
	spin_unlock_bh(&mw_by_qp_lock);
}

/* ---- bind ---- */

/*
 * The key that the window gets: the index is the window's, the variant the consumer's.  Of
 * new_rkey only the variant counts, as with other adapters, so that a consumer may give that alone.
 */
static u32 mw_new_key(const struct nhca_mkey *mk, const struct nhca_send_wqe *wqe)
{
	return (mk->key & ~0xffU) | (wqe->mw.new_rkey & 0xff);
}

/* What can be said without the region. */
static int mw_check(const struct nhca_key_user *key_user, const struct nhca_mkey *mk,
		    const struct nhca_send_wqe *wqe)
{
	u32 key = wqe->mw.mw_rkey, new_key = mw_new_key(mk, wqe);

	lockdep_assert_held(&mk->lock);
	if (wqe->mw.access & ~NHCA_MW_ACCESS)
		return -EINVAL;
	/* C10-72: one domain for QP, window and region */
	if (mk->pd != key_user->pd)
		return -EACCES;

	if (mk->type == NHCA_MKEY_MW1) {
		/* the old key must be another, and it must be known; o10-36.2.2 */
		if (key != mk->key || new_key == key || wqe->mw.access & IB_ZERO_BASED)
			return -EINVAL;
		return 0;
	}
	/*
	 * o10-37.2.30, o10-37.2.40: closed before, and opened by this.  The variant of
	 * a closed key means nothing: that of the last opening is known to who bound
	 * it, which need not be who binds it now.
	 */
	return mk->valid || !wqe->mw.length ? -EINVAL : 0;
}

/*
 * Does the region @rk have what the window wants?  Counts the window there, so that the
 * region stays open until that is taken back.
 */
static int mw_take(struct nhca_mkey *rk, const struct nhca_mkey *mk,
		   const struct nhca_send_wqe *wqe)
{
	u64 at;
	int err;

	if (rk->type != NHCA_MKEY_MR)
		return -EINVAL;

	spin_lock_nested(&rk->lock, SINGLE_DEPTH_NESTING);
	at = wqe->mw.addr - rk->va;
	err = -EINVAL;
	if (!rk->valid || rk->key != wqe->mw.mr_lkey)
		goto unlock;
	err = -EACCES;
	if (rk->pd != mk->pd)
		goto unlock;
	/* C10-73; and no windows where addresses count from 0 already */
	if (!(rk->access & IB_ACCESS_MW_BIND) || rk->access & IB_ZERO_BASED)
		goto unlock;
	/* C10-74: what peers may change, the region's owner may */
	if (wqe->mw.access & (IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_ATOMIC) &&
	    !(rk->access & IB_ACCESS_LOCAL_WRITE))
		goto unlock;
	/* C10-75; no sum here can wrap */
	if (wqe->mw.addr < rk->va || wqe->mw.length > rk->length ||
	    at > rk->length - wqe->mw.length)
		goto unlock;
	atomic_inc(&rk->mr->windows);
	err = 0;
unlock:
	spin_unlock(&rk->lock);
	return err;
}

/* The window is closed and counted at @rk, which therefore stays as it is. */
static void mw_open(const struct nhca_key_user *key_user, struct nhca_mkey *mk,
		    struct nhca_mkey *rk, const struct nhca_send_wqe *wqe)
{
	mk->qpn = key_user->qpn;
	mk->access = wqe->mw.access & NHCA_REMOTE_ACCESS;
	mk->va = wqe->mw.access & IB_ZERO_BASED ? 0 : wqe->mw.addr;
	mk->length = wqe->mw.length;
	mk->off = rk->off + (wqe->mw.addr - rk->va);
	mk->mr = rk->mr;
	nhca_mkey_open(mk, wqe->mw.new_rkey);
	if (mk->type != NHCA_MKEY_MW1)
		mw_qp_link(mkey_mw(mk));
}

int nhca_mw_bind(const struct nhca_key_user *key_user, const struct nhca_send_wqe *wqe)
{
	struct nhca_mkey *mk, *rk = NULL;
	int err = -EINVAL;

	mk = nhca_mkey_get(wqe->mw.mw_rkey);
	if (!mk)
		return -EINVAL;
	if (mk->type == NHCA_MKEY_MR)
		goto put_window;
	/* a window of no bytes is an unbound one, whatever else is said of it */
	if (wqe->mw.length) {
		rk = nhca_mkey_get(wqe->mw.mr_lkey);
		if (!rk)
			goto put_window;
	}

	spin_lock(&mk->lock);
	err = mw_check(key_user, mk, wqe);
	if (!err && rk)
		err = mw_take(rk, mk, wqe);
	if (!err) {
		mw_unbind(mkey_mw(mk));
		if (rk)
			mw_open(key_user, mk, rk, wqe);
		else
			WRITE_ONCE(mk->key, mw_new_key(mk, wqe));
		mkey_mw(mk)->ibmw.rkey = mk->key;
	}
	spin_unlock(&mk->lock);

	if (rk)
		nhca_mkey_put(rk);
put_window:
	nhca_mkey_put(mk);
	return err;
}

/* ---- invalidate ---- */

static int mkey_invalidate(const struct nhca_key_user *key_user, u32 key, bool regions, int access)
{
	struct nhca_mkey *mk = nhca_mkey_get(key);
	int err = -EINVAL;

	if (!mk)
		return -EINVAL;
	spin_lock(&mk->lock);
	if (!mk->valid || mk->key != key)
		goto unlock;
	switch (mk->type) {
	case NHCA_MKEY_MW1:
		/* o10-37.2.26: closed by binding them to nothing */
		break;
	case NHCA_MKEY_MW2B:
		if (mk->pd != key_user->pd)
			break;
		fallthrough;
	case NHCA_MKEY_MW2A:
		if (mk->qpn != key_user->qpn)
			break;
		mw_unbind(mkey_mw(mk));
		err = 0;
		break;
	case NHCA_MKEY_MR:
		if (!regions || mk->pd != key_user->pd || !nhca_mr_is_fast(mk->mr) ||
		    (access && !(mk->access & access)) || atomic_read(&mk->mr->windows))
			break;
		nhca_mkey_close(mk);
		err = 0;
		break;
	}
unlock:
	spin_unlock(&mk->lock);
	nhca_mkey_put(mk);
	return err;
}

int nhca_local_inv(const struct nhca_key_user *key_user, u32 key, bool user)
{
	return mkey_invalidate(key_user, key, !user, 0);
}

int nhca_remote_inv(const struct nhca_key_user *key_user, u32 rkey)
{
	return mkey_invalidate(key_user, rkey, true, NHCA_REMOTE_ACCESS);
}
