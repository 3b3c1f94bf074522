// SPDX-License-Identifier: GPL-2.0
/* The table of keys, and the functions that open and close them. */
#include <linux/percpu-rwsem.h>
#include <linux/rcupdate.h>
#include <linux/rhashtable.h>
#include <linux/wait_bit.h>

#include "live.h"
#include "mkey.h"
#include "mr.h"
#include "rkm.h"
#include "shuffle.h"
#include "../observe/trace.h"

#define NHCA_MKEY_VARIANTS	256

/* Maximum number of attempts to find a free index.  If all of them fail, few indices are free. */
#define NHCA_MKEY_TRIES		1024

/*
 * One hash table, by index, for the keys of all devices of the host.  Lookups run in live sections.
 * A key is freed only after the end of the sections that may have found it.  rhashtable frees the
 * arrays of the table after an RCU grace period.
 */
static struct rhashtable keys;

/*
 * For each value of the low 11 bits of an index, the key that was added last.  Unless there are
 * thousands of keys, most lookups find their key here and need not search the hash table.
 * nhca_mkey_add() stores a key here, and nhca_mkey_del() removes it.  The owner of the key calls
 * these functions one after the other, so no removed key stays here.
 */
#define NHCA_MKEY_RECENT	2048
static struct nhca_mkey *keys_recent[NHCA_MKEY_RECENT];

/*
 * Keeps keys from being removed during nhca_mkey_walk(), which takes the write side.
 * nhca_mkey_del() takes the read side.
 */
DEFINE_STATIC_PERCPU_RWSEM(keys_stay);

/*
 * The keys that new regions and windows get.  Index 0 is not used, because some consumers treat a
 * key of 0 as no key.
 */
static struct nhca_shuffle key_numbers __read_mostly;

/*
 * The index is random, so it needs no hash function.  READ_ONCE() is needed because another CPU may
 * change the variant.
 */
static __always_inline u32 mkey_index(const struct nhca_mkey *mk)
{
	return READ_ONCE(mk->key) >> 8;
}

static u32 mkey_hash_index(const void *data, u32 len, u32 seed)
{
	return *(const u32 *)data;
}

static u32 mkey_hash(const void *data, u32 len, u32 seed)
{
	return mkey_index(data);
}

static int mkey_cmp(struct rhashtable_compare_arg *arg, const void *obj)
{
	return mkey_index(obj) != *(const u32 *)arg->key;
}

static const struct rhashtable_params mkey_params = {
	.head_offset = offsetof(struct nhca_mkey, node),
	.key_len = sizeof(u32),
	.hashfn = mkey_hash_index,
	.obj_hashfn = mkey_hash,
	.obj_cmpfn = mkey_cmp,
	.automatic_shrinking = true,
};

static __always_inline struct nhca_mkey **mkey_recent(u32 index)
{
	return &keys_recent[index % NHCA_MKEY_RECENT];
}

int nhca_mkey_init(void)
{
	nhca_shuffle_init(&key_numbers, NHCA_MKEY_VARIANTS, U32_MAX);
	return rhashtable_init(&keys, &mkey_params);
}

void nhca_mkey_exit(void)
{
	rhashtable_destroy(&keys);
}

int nhca_mkey_add(struct nhca_mkey *mk)
{
	unsigned int tries;
	u32 index;
	int err;

	spin_lock_init(&mk->lock);
	refcount_set(&mk->ref, 1);
	mk->valid = false;
	mk->shut = false;

	for (tries = 0; tries < NHCA_MKEY_TRIES; tries++) {
		mk->key = nhca_shuffle_next(&key_numbers);
		index = mkey_index(mk);
		/* after this call lookups find the key, which is closed */
		err = rhashtable_lookup_insert_key(&keys, &index, &mk->node, mkey_params);
		if (!err) {
			/* a CPU that finds @mk sees its members; pairs with mkey_find_recent() */
			smp_store_release(mkey_recent(index), mk);
			return 0;
		}
		/* -EBUSY: the table is growing, so the next attempt may succeed */
		if (err != -EEXIST && err != -EBUSY)
			return -ENOMEM;
	}
	return -ENOSPC;
}

/* Trace that a key is revoked: the live sections that had found the key open have ended. */
static void mkey_revoked(struct nhca_mkey *mk)
{
	if (!mk->shut)
		return;
	mk->shut = false;
	trace_nhca_key_revoked(mk->pd, mk->key, mk->type, mk->qpn);
}

void nhca_mkey_del(struct nhca_mkey *mk)
{
	percpu_down_read(&keys_stay);
	rhashtable_remove_fast(&keys, &mk->node, mkey_params);
	percpu_up_read(&keys_stay);
	/* if a newer key has replaced @mk in keys_recent, keep the newer key there */
	cmpxchg(mkey_recent(mkey_index(mk)), mk, NULL);
	/* lookups run in live sections, so after this wait no lookup returns the key */
	nhca_live_wait();

	/* if no other code has a reference, no code can open the key after this check */
	if (refcount_dec_and_test(&mk->ref) && !mk->valid) {
		mkey_revoked(mk);
		return;
	}
	wait_var_event(&mk->ref, !refcount_read(&mk->ref));
	spin_lock_bh(&mk->lock);
	nhca_mkey_close(mk);
	mkey_revoked(mk);
	spin_unlock_bh(&mk->lock);
}

void nhca_mkey_open(struct nhca_mkey *mk, u8 variant)
{
	lockdep_assert_held(&mk->lock);
	WARN_ON_ONCE(mk->valid);
	mk->key = (mk->key & ~0xff) | variant;
	/* a CPU that sees the key open sees its members set; pairs with mkey_granted() */
	smp_store_release(&mk->valid, true);
	trace_nhca_key_opened(mk->pd, mk->key, mk->type, mk->qpn, mk->va, mk->length, mk->access);
}

bool nhca_mkey_shut(struct nhca_mkey *mk)
{
	lockdep_assert_held(&mk->lock);
	if (!mk->valid)
		return false;
	WRITE_ONCE(mk->valid, false);
	mk->shut = true;
	nhca_rkm_sweep(mk->pd, mk->key);
	return true;
}

void nhca_mkey_shut_end(struct nhca_mkey *mk)
{
	nhca_live_wait();
	mkey_revoked(mk);
}

void nhca_mkey_close(struct nhca_mkey *mk)
{
	lockdep_assert_held(&mk->lock);
	if (nhca_mkey_shut(mk))
		nhca_mkey_shut_end(mk);
}

/* Context: live section.  Return: the key with @index if keys_recent has it, or NULL. */
static __always_inline struct nhca_mkey *mkey_find_recent(u32 index)
{
	/* pairs with nhca_mkey_add() */
	struct nhca_mkey *mk = smp_load_acquire(mkey_recent(index));

	return mk && mkey_index(mk) == index ? mk : NULL;
}

/*
 * Context: live section; the key is not freed before the end of the section.
 * Return: the key with the index of @key, or NULL.
 */
static struct nhca_mkey *mkey_find(u32 key)
{
	u32 index = key >> 8;
	struct nhca_mkey *mk = mkey_find_recent(index);

	if (likely(mk))
		return mk;
	/* RCU protects the memory of the table, which grows and shrinks */
	rcu_read_lock();
	mk = rhashtable_lookup(&keys, &index, mkey_params);
	rcu_read_unlock();
	return mk;
}

struct nhca_mkey *nhca_mkey_get(u32 key)
{
	struct nhca_mkey *mk;

	nhca_live_enter();
	mk = mkey_find(key);
	if (mk && !refcount_inc_not_zero(&mk->ref))
		mk = NULL;
	nhca_live_exit();
	return mk;
}

void nhca_mkey_put(struct nhca_mkey *mk)
{
	if (!refcount_dec_and_test(&mk->ref))
		return;
	/*
	 * The reference is released before wake_up_var() checks for a waiter.  This barrier pairs
	 * with the one of set_current_state() in wait_var_event(), which queues the waiter before
	 * it reads the count.  @mk may be freed by now: wake_up_var() uses only its address.
	 */
	smp_mb__after_atomic();
	wake_up_var(&mk->ref);
}

void nhca_mkey_walk(void (*fn)(struct nhca_mkey *mk, void *arg), void *arg)
{
	struct rhashtable_iter iter;
	struct nhca_mkey *mk;

	percpu_down_write(&keys_stay);
	rhashtable_walk_enter(&keys, &iter);
	rhashtable_walk_start(&iter);
	while ((mk = rhashtable_walk_next(&iter))) {
		/* -EAGAIN: the table was resized, and the walk starts again */
		if (IS_ERR(mk))
			continue;
		rhashtable_walk_stop(&iter);
		fn(mk, arg);
		cond_resched();
		rhashtable_walk_start(&iter);
	}
	rhashtable_walk_stop(&iter);
	rhashtable_walk_exit(&iter);
	percpu_up_write(&keys_stay);
}

/* Return: true if the QP may use an open key of this type (IBTA 10.6.7.2.2, 10.6.7.2.4). */
static __always_inline bool mkey_fits(const struct nhca_mkey *mk,
				      const struct nhca_key_user *key_user, int access)
{
	switch (mk->type) {
	case NHCA_MKEY_MR:
		return mk->pd == key_user->pd;
	case NHCA_MKEY_MW1:
		/* a window has no L_Key */
		return (access & NHCA_REMOTE_ACCESS) && mk->pd == key_user->pd;
	case NHCA_MKEY_MW2A:
		return (access & NHCA_REMOTE_ACCESS) && mk->qpn == key_user->qpn;
	case NHCA_MKEY_MW2B:
		return (access & NHCA_REMOTE_ACCESS) && mk->qpn == key_user->qpn &&
		       mk->pd == key_user->pd;
	}
	return false;
}

/*
 * Context: live section.
 * Return: @mk if it is not NULL, is the open key @key, and grants @access to the QP; else NULL.
 */
static __always_inline struct nhca_mkey *mkey_granted(struct nhca_mkey *mk,
						      const struct nhca_key_user *key_user, u32 key,
						      int access)
{
	/* pairs with nhca_mkey_open(); the members are constant until the section ends */
	if (unlikely(!mk || !smp_load_acquire(&mk->valid)))
		return NULL;
	/* compare the variant as well, because earlier keys of the object have the same index */
	if (unlikely(mk->key != key || !mkey_fits(mk, key_user, access)))
		return NULL;
	if (unlikely((mk->access & access) != access))
		return NULL;
	return mk;
}

/*
 * Context: live section.
 * Return: @mk if mkey_granted() returns it and its range contains the bytes; else NULL.
 */
static __always_inline struct nhca_mkey *mkey_reach(struct nhca_mkey *mk,
						    const struct nhca_key_user *key_user, u32 key,
						    u64 va, u32 len, int access)
{
	if (unlikely(!mkey_granted(mk, key_user, key, access)))
		return NULL;
	/* compare differences, because a sum could overflow */
	if (unlikely(va < mk->va || len > mk->length || va - mk->va > mk->length - len))
		return NULL;
	return mk;
}

/* nhca_mkey_check() for a key that the caller has looked up. */
static __always_inline struct nhca_mr *mkey_check(struct nhca_mkey *mk,
						  const struct nhca_key_user *key_user, u32 key,
						  u64 va, u32 len, int access, u64 *off)
{
	if (unlikely(!mkey_reach(mk, key_user, key, va, len, access)))
		return NULL;
	*off = mk->off + (va - mk->va);
	return mk->mr;
}

static noinline struct nhca_mr *mkey_check_slow(const struct nhca_key_user *key_user, u32 key,
						u64 va, u32 len, int access, u64 *off)
{
	return mkey_check(mkey_find(key), key_user, key, va, len, access, off);
}

struct nhca_mr *nhca_mkey_check(const struct nhca_key_user *key_user, u32 key, u64 va, u32 len,
				int access, u64 *off)
{
	struct nhca_mkey *mk = mkey_find_recent(key >> 8);

	/* a call in tail position, so that the compiler saves no registers in the common case */
	if (unlikely(!mk))
		return mkey_check_slow(key_user, key, va, len, access, off);
	return mkey_check(mk, key_user, key, va, len, access, off);
}

struct nhca_mr *nhca_mkey_check_all(const struct nhca_key_user *key_user, u32 key, int access)
{
	struct nhca_mkey *mk = mkey_granted(mkey_find(key), key_user, key, access);

	return mk ? mk->mr : NULL;
}

int nhca_rkey_get(struct nhca_rkey_ref *h, const struct nhca_key_user *key_user, u32 rkey, u64 va,
		  u32 len, int access)
{
	struct nhca_mkey *mk;
	int err = -EACCES;

	if (!len)
		return 0;
	nhca_live_enter();
	mk = mkey_reach(mkey_find(rkey), key_user, rkey, va, len, access);
	if (!mk)
		goto exit;
	/*
	 * Store the domain of the key, because the sweep searches by this domain.  For a type 2A
	 * window mkey_fits() does not compare it with the domain of the QP.
	 */
	h->pd = mk->pd;
	h->key = rkey;
	h->qpn = key_user->qpn;
	h->mr = mk->mr;
	h->off = mk->off + (va - mk->va);
	nhca_rkm_get(h);
	/* if the key was closed after mkey_reach(), its sweep may have missed this ref */
	if (READ_ONCE(mk->valid))
		err = 0;
	else
		nhca_rkm_put(h);
exit:
	nhca_live_exit();
	return err;
}
