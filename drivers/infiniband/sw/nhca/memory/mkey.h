/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Keys: what a 32-bit L_Key or R_Key names, and whether it is open.
 *
 * A key is an index (24 bits), unique on the host, and a variant (8 bits), which its owner may
 * choose (ib_update_fast_reg_key(), ibv_inc_rkey()).  Index and first variant are one number in an
 * order that nobody can predict (shuffle.h): who has seen keys cannot guess another.
 */
#ifndef NHCA_MKEY_H
#define NHCA_MKEY_H

#include <linux/refcount.h>
#include <linux/rhashtable-types.h>
#include <linux/spinlock.h>
#include <rdma/ib_verbs.h>

struct nhca_mr;

/* rights that peers have by a key; without one of them it is used locally */
#define NHCA_REMOTE_ACCESS	(IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_WRITE | \
				 IB_ACCESS_REMOTE_ATOMIC)

/**
 * enum nhca_mkey_type - what the key is of
 * @NHCA_MKEY_MR:   a region: L_Key and R_Key
 * @NHCA_MKEY_MW1:  a type 1 window: any QP of its domain
 * @NHCA_MKEY_MW2A: a type 2A window: one QP, whatever its domain
 * @NHCA_MKEY_MW2B: a type 2B window: one QP, of the window's domain
 */
enum nhca_mkey_type {
	NHCA_MKEY_MR,
	NHCA_MKEY_MW1,
	NHCA_MKEY_MW2A,
	NHCA_MKEY_MW2B,
};

/**
 * struct nhca_key_user - who uses a key: a QP
 * @pd:  its protection domain
 * @qpn: its number
 */
struct nhca_key_user {
	struct ib_pd *pd;
	u32 qpn;
};

/**
 * struct nhca_mkey - a key and what it opens
 * @lock:   BH; serialises opening, closing and binding; held across the wait of a
 *          close, so no live section may take it
 * @ref:    the object, and who has found it with nhca_mkey_get()
 * @valid:  the key is open; the fields below are constant while it is
 * @shut:   it was, and live sections that had found it so may not have ended
 * @key:    index << 8 | variant
 * @type:   constant
 * @pd:     protection domain
 * @qpn:    type 2 windows: the QP that bound it
 * @access: enum ib_access_flags
 * @va, @length: the bytes, as peers and SGEs name them
 * @mr:     whose memory it is; a region's own
 * @off:    where in @mr the byte at @va lies
 * @node:   in the table of keys; private to memory/mkey.c
 */
struct nhca_mkey {
	/* serialises changes */
	spinlock_t lock;
	refcount_t ref;
	bool valid;
	bool shut;
	enum nhca_mkey_type type;
	u32 key;
	u32 qpn;
	struct ib_pd *pd;
	int access;
	u64 va;
	u64 length;
	struct nhca_mr *mr;
	u64 off;
	struct rhash_head node;
};

/**
 * nhca_mkey_add - give @mk an index and a first key; it stays closed
 * No key of an object that was made before has been the same, for 2^32 objects.
 * Context: process, sleeps.
 * Return: 0; -ENOMEM; -ENOSPC: nearly all indices are in use.
 */
int nhca_mkey_add(struct nhca_mkey *mk);

/**
 * nhca_mkey_del - close the key and take it out of the table
 * When this returns nothing moves through it and nobody knows @mk: it may be freed.
 * Context: process.
 */
void nhca_mkey_del(struct nhca_mkey *mk);

/**
 * nhca_mkey_open - open a closed key; what it opens has been filled in
 * @variant: its low 8 bits from now on
 * Context: @mk->lock held.
 */
void nhca_mkey_open(struct nhca_mkey *mk, u8 variant);

/**
 * nhca_mkey_close - the promise: when this returns, no byte moves through the key any
 * more, on any CPU
 * Valid bit, sweep of the remote key manager, snapshot.  Nothing if it is closed.
 * Context: @mk->lock held; not in a live section.
 */
void nhca_mkey_close(struct nhca_mkey *mk);

/**
 * nhca_mkey_shut - nhca_mkey_close() without its end: who calls this calls
 * nhca_mkey_shut_end(), once for whatever else it takes away
 * Context: @mk->lock held.  Return: false if the key was closed.
 */
bool nhca_mkey_shut(struct nhca_mkey *mk);

/**
 * nhca_mkey_shut_end - wait for the live sections that had found the key open
 * Context: not in a live section; nobody opens @mk meanwhile.
 */
void nhca_mkey_shut_end(struct nhca_mkey *mk);

/**
 * nhca_mkey_get - what has the index of @key, open or not, whatever the variant
 * Context: BH disabled; not for long: nhca_mkey_del() waits for the reference.
 * Return: a counted reference or NULL.
 */
struct nhca_mkey *nhca_mkey_get(u32 key);
void nhca_mkey_put(struct nhca_mkey *mk);

/**
 * nhca_mkey_check - does @key open these bytes to this key_user?
 * @len:    0: only the key, domain, rights and address are looked at
 * @access: enum ib_access_flags that all must be granted; 0: reading locally
 * @off:    where in the region they begin
 * Context: live section; the region is good until its end.
 * Return: the region or NULL.
 */
struct nhca_mr *nhca_mkey_check(const struct nhca_key_user *key_user, u32 key, u64 va, u32 len,
				int access, u64 *off);

/**
 * nhca_mkey_check_all - does @key open whatever it names to this key_user, with @access?
 * Context: live section.
 */
bool nhca_mkey_check_all(const struct nhca_key_user *key_user, u32 key, int access);

/**
 * nhca_mkey_walk - show every key to @fn, for debugfs
 * No key goes meanwhile.  Keys open, close and come; what comes is shown or not, and a key may be
 * shown twice if the table grows.
 * Context: process, sleeps.
 */
void nhca_mkey_walk(void (*fn)(struct nhca_mkey *mk, void *arg), void *arg);

int nhca_mkey_init(void);
void nhca_mkey_exit(void);

#endif /* NHCA_MKEY_H */
