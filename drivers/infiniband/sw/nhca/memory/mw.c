// SPDX-License-Identifier: GPL-2.0
/*
 * Memory windows (IBTA 10.6.7.2): binding them to regions, and the invalidation of windows and
 * fast-registered regions by the requester and the responder.
 */
#include <linux/list.h>
#include <linux/module.h>
#include <linux/string.h>

#include "mr.h"
#include "../observe/stub.h"

/*
 * A window cannot have local write as a right, because a window has no L_Key.  But some consumers
 * request local write for a window, so a bind accepts and ignores this right.
 */
#define NHCA_MW_ACCESS		(NHCA_REMOTE_ACCESS | IB_ZERO_BASED | IB_ACCESS_LOCAL_WRITE)

/* ---- kind of type 2 windows ---- */

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

/* read-only after load, because devices have reported the kind to their consumers */
module_param_cb(mw_type, &mw_type_ops, NULL, 0444);
MODULE_PARM_DESC(mw_type, "variant of type 2 memory windows: 2A or 2B (default 2B)");

u64 nhca_mw_device_cap(void)
{
	return mw_type2 == NHCA_MKEY_MW2A ? IB_DEVICE_MEM_WINDOW_TYPE_2A :
					    IB_DEVICE_MEM_WINDOW_TYPE_2B;
}

/* ---- the bound type 2 windows of each QP ---- */

/*
 * Protects nhca_key_user.windows of every QP, and by_qp of every window.  The lock is taken with BH
 * disabled, and held for one window at a time, because all QPs share the lock.  The lock nests
 * inside the lock of a window's key.
 */
static DEFINE_SPINLOCK(mw_by_qp_lock);

static void mw_qp_link(struct nhca_key_user *key_user, struct nhca_mw *mw)
{
	spin_lock(&mw_by_qp_lock);
	hlist_add_head(&mw->by_qp, &key_user->windows);
	spin_unlock(&mw_by_qp_lock);
}

static void mw_qp_unlink(struct nhca_mw *mw)
{
	spin_lock(&mw_by_qp_lock);
	hlist_del_init(&mw->by_qp);
	spin_unlock(&mw_by_qp_lock);
}

/* ---- allocation, unbinding and freeing ---- */

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
 * Close the key of a window and release its region.  mkey.mr is set while nhca_mr.windows of this
 * region counts the window.
 */
static void mw_unbind(struct nhca_mw *mw)
{
	struct nhca_mr *mr = mw->mkey.mr;

	lockdep_assert_held(&mw->mkey.lock);
	nhca_mkey_close(&mw->mkey);
	if (!mr)
		return;
	if (mw->mkey.type != NHCA_MKEY_MW1)
		mw_qp_unlink(mw);
	mw->mkey.mr = NULL;
	/*
	 * After this decrement the owner of the region may free the region.  The barrier pairs with
	 * the acquire in mr_shut().
	 */
	smp_mb__before_atomic();
	atomic_dec(&mr->windows);
}

void nhca_mw_fini(struct nhca_mw *mw)
{
	/* after this call no requester or responder finds the window */
	nhca_mkey_del(&mw->mkey);
	spin_lock_bh(&mw->mkey.lock);
	mw_unbind(mw);
	spin_unlock_bh(&mw->mkey.lock);
}

void nhca_mw_qp_gone(struct nhca_key_user *key_user)
{
	struct nhca_mkey *mk;
	struct nhca_mw *mw;
	u32 key;

	NHCA_STUB(nhca_mw_qp_gone, key_user);
	/* the lock is released while a window is unbound, but the QP binds no more windows */
	spin_lock_bh(&mw_by_qp_lock);
	while (!hlist_empty(&key_user->windows)) {
		mw = hlist_entry(key_user->windows.first, struct nhca_mw, by_qp);
		hlist_del_init(&mw->by_qp);
		key = mw->mkey.key;
		spin_unlock(&mw_by_qp_lock);

		/* if the key is not found, nhca_mw_fini() unbinds and closes the window */
		mk = nhca_mkey_get(key);
		if (mk) {
			spin_lock(&mk->lock);
			if (mk->type != NHCA_MKEY_MR && mk->type != NHCA_MKEY_MW1 &&
			    mk->valid && mk->qpn == key_user->qpn)
				mw_unbind(mkey_mw(mk));
			spin_unlock(&mk->lock);
			nhca_mkey_put(mk);
		}

		/* let softirqs and other tasks of this CPU run between two windows */
		local_bh_enable();
		cond_resched();
		spin_lock_bh(&mw_by_qp_lock);
	}
	spin_unlock_bh(&mw_by_qp_lock);
}

/* ---- bind ---- */

/*
 * The new key of a window: its own index, and the consumer's variant.  Only the variant of new_rkey
 * is used, as by other adapters, so that a consumer may pass only the variant.
 */
static u32 mw_new_key(const struct nhca_mkey *mk, const struct nhca_send_wqe *wqe)
{
	return (mk->key & ~0xffU) | (wqe->mw.new_rkey & 0xff);
}

/* Check the parts of a bind that do not depend on the region.  Return: as nhca_mw_bind(). */
static int mw_check(const struct nhca_key_user *key_user, const struct nhca_mkey *mk,
		    const struct nhca_send_wqe *wqe)
{
	u32 key = wqe->mw.mw_rkey, new_key = mw_new_key(mk, wqe);

	lockdep_assert_held(&mk->lock);
	if (wqe->mw.access & ~NHCA_MW_ACCESS)
		return -EINVAL;
	/* C10-72: QP and window must have one protection domain; mw_take() compares the region's */
	if (mk->pd != key_user->pd)
		return -EACCES;

	if (mk->type == NHCA_MKEY_MW1) {
		/*
		 * o10-36.2.2: the request must name the current key, and the new key must differ;
		 * zero-based addresses are only for type 2 windows.
		 */
		if (key != mk->key || new_key == key || wqe->mw.access & IB_ZERO_BASED)
			return -EINVAL;
		return 0;
	}
	/*
	 * o10-37.2.30, o10-37.2.40: a type 2 window must be unbound, and a length of 0 is invalid.
	 * The variant of a closed key is not checked: only the consumer that made the last bind
	 * knows the variant, and another consumer may bind the window now.
	 */
	return mk->valid || !wqe->mw.length ? -EINVAL : 0;
}

/*
 * Check that the window @mk may be bound to the region of the key @rk.  Count the window in the
 * region, so that the region stays open until the count is decremented.
 * Return: as nhca_mw_bind().
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
	/* C10-73: the region needs MW_BIND; refuse a zero-based region, as other adapters do */
	if (!(rk->access & IB_ACCESS_MW_BIND) || rk->access & IB_ZERO_BASED)
		goto unlock;
	/* C10-74: remote write and atomic require local write of the region */
	if (wqe->mw.access & (IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_ATOMIC) &&
	    !(rk->access & IB_ACCESS_LOCAL_WRITE))
		goto unlock;
	/*
	 * C10-75: the window must lie in the region.  Compare differences, because a sum could
	 * overflow.
	 */
	if (wqe->mw.addr < rk->va || wqe->mw.length > rk->length ||
	    at > rk->length - wqe->mw.length)
		goto unlock;
	atomic_inc(&rk->mr->windows);
	err = 0;
unlock:
	spin_unlock(&rk->lock);
	return err;
}

/* Open the window @mk.  Its key is closed, and the region of @rk counts the window (mw_take()). */
static void mw_open(struct nhca_key_user *key_user, struct nhca_mkey *mk,
		    struct nhca_mkey *rk, const struct nhca_send_wqe *wqe)
{
	lockdep_assert_held(&mk->lock);
	mk->qpn = key_user->qpn;
	mk->access = wqe->mw.access & NHCA_REMOTE_ACCESS;
	mk->va = wqe->mw.access & IB_ZERO_BASED ? 0 : wqe->mw.addr;
	mk->length = wqe->mw.length;
	mk->off = rk->off + (wqe->mw.addr - rk->va);
	mk->mr = rk->mr;
	nhca_mkey_open(mk, wqe->mw.new_rkey);
	if (mk->type != NHCA_MKEY_MW1)
		mw_qp_link(key_user, mkey_mw(mk));
}

int nhca_mw_bind(struct nhca_key_user *key_user, const struct nhca_send_wqe *wqe)
{
	struct nhca_mkey *mk, *rk = NULL;
	int err = -EINVAL;

	mk = nhca_mkey_get(wqe->mw.mw_rkey);
	if (!mk)
		return -EINVAL;
	if (mk->type == NHCA_MKEY_MR)
		goto put_window;
	/*
	 * a length of 0 unbinds a type 1 window, without regard to region and address of the
	 * request; for a type 2 window mw_check() refuses it
	 */
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
		/* o10-37.2.26: an invalidate does not close a type 1 window */
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
