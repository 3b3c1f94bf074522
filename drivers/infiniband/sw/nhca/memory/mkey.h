/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Keys: the memory that a 32-bit L_Key or R_Key names, and whether the key is open.
 *
 * A key has an index (24 bits), unique on the host, and a variant (8 bits), which the owner may
 * choose (ib_update_fast_reg_key(), ibv_inc_rkey()).  The first key of a region or window, index
 * and variant, is the next number in a secret order (shuffle.h), so that nobody can compute a key
 * from other keys.
 */
#ifndef NHCA_MKEY_H
#define NHCA_MKEY_H

#include <linux/refcount.h>
#include <linux/rhashtable-types.h>
#include <linux/spinlock.h>
#include <rdma/ib_verbs.h>

struct nhca_mr;

/* remote rights except those of FLUSH, which no window can have */
#define NHCA_REMOTE_ACCESS	(IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_WRITE | \
				 IB_ACCESS_REMOTE_ATOMIC)

/**
 * enum nhca_mkey_type - the object of a key, and the QPs that may use it
 * @NHCA_MKEY_MR: a region, with L_Key and R_Key; for any QP of its domain
 * @NHCA_MKEY_MW1: a type 1 window; for any QP of its domain
 * @NHCA_MKEY_MW2A: a type 2A window; for the QP that has bound it; domains are not compared
 * @NHCA_MKEY_MW2B: a type 2B window; for the QP that has bound it; domains are compared
 */
enum nhca_mkey_type {
	NHCA_MKEY_MR,
	NHCA_MKEY_MW1,
	NHCA_MKEY_MW2A,
	NHCA_MKEY_MW2B,
};

/**
 * struct nhca_key_user - the QP that uses a key
 * @pd:  its protection domain
 * @qpn: its number
 * @windows: the type 2 windows that it has bound; private to memory/mw.c; zeroed memory is an empty
 *           list
 */
struct nhca_key_user {
	struct ib_pd *pd;
	u32 qpn;
	struct hlist_head windows;
};

/**
 * struct nhca_mkey - a key and the memory that it opens
 * @lock:   serializes open, close and bind; taken with BH disabled.  nhca_mkey_close() waits for
 *          live sections with this lock held, so no section may take the lock.
 * @ref:    reference count: one for the object, and one for each nhca_mkey_get()
 * @valid:  the key is open.  While @valid is set, and until the live sections that have read it as
 *          set have ended, the members @key to @off are constant.
 * @shut:   the key was closed, and live sections that had found it open may still run
 * @key:    index << 8 | variant
 * @type:   the object of the key; constant
 * @pd:     protection domain
 * @qpn:    windows: number of the QP that has bound the window
 * @access: enum ib_access_flags
 * @va:     first address for peers and SGEs
 * @length: bytes
 * @mr:     the region that contains the memory; NULL: the key belongs to an unbound window
 * @off:    offset in @mr of the byte at @va
 * @node:   entry in the table of keys; private to memory/mkey.c
 */
struct nhca_mkey {
	/* serializes open, close and bind */
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
 * nhca_mkey_add - give @mk an index and a first key; the key stays closed
 * @mk: the key; the caller has set its type and domain
 *
 * The module gives no first key a second time before it has given out nearly 2^32 others.
 * Context: process, sleeps.
 * Return: 0; -ENOMEM: no memory for the table; -ENOSPC: nearly all indices are in use.
 */
int nhca_mkey_add(struct nhca_mkey *mk);

/**
 * nhca_mkey_del - close the key and remove it from the table
 * @mk: the key.  On return no byte moves through the key, and no other code refers to @mk, so the
 *      caller may free @mk.
 * Context: process, sleeps.
 */
void nhca_mkey_del(struct nhca_mkey *mk);

/**
 * nhca_mkey_open - open a closed key
 * @mk:      the key; the caller has set the members that describe its memory
 * @variant: the low 8 bits of the key from now on
 * Context: @mk->lock held.
 */
void nhca_mkey_open(struct nhca_mkey *mk, u8 variant);

/**
 * nhca_mkey_close - close a key; on return no byte moves through it any more, on any CPU
 * @mk: the key; if it is closed, nothing happens
 *
 * The function clears the valid bit, sweeps the refs of the key and waits for live sections.
 * Context: @mk->lock held; not in a live section.
 */
void nhca_mkey_close(struct nhca_mkey *mk);

/**
 * nhca_mkey_shut - nhca_mkey_close() without the wait for live sections
 * @mk: the key
 *
 * Afterwards the caller must call nhca_mkey_shut_end() or nhca_mkey_del(), which wait for the live
 * sections.
 * Context: @mk->lock held.
 * Return: false if the key was closed already.
 */
bool nhca_mkey_shut(struct nhca_mkey *mk);

/**
 * nhca_mkey_shut_end - wait for the live sections that had found the key open
 * @mk: the key
 * Context: not in a live section; the caller prevents that @mk is opened before the function ends.
 */
void nhca_mkey_shut_end(struct nhca_mkey *mk);

/**
 * nhca_mkey_get - find a key by its index
 * @key: the index is used; the variant is ignored
 *
 * The key may be open or closed.
 * Context: BH disabled.  The caller must release the reference soon, because nhca_mkey_del() waits
 * for the release.
 * Return: a counted reference; NULL: no key has this index.
 */
struct nhca_mkey *nhca_mkey_get(u32 key);

/**
 * nhca_mkey_put - release a reference of nhca_mkey_get()
 * @mk: the key
 * Context: any.
 */
void nhca_mkey_put(struct nhca_mkey *mk);

/**
 * nhca_mkey_check - check that a QP may access bytes with a key
 * @key_user: the QP
 * @key:      the L_Key or R_Key
 * @va:       first address
 * @len:      bytes; with 0 only the key, its domain, its rights and the address are checked
 * @access:   enum ib_access_flags, all of which the key must grant; 0: local read
 * @off:      offset of the bytes in the region, filled in
 * Context: live section; the region stays valid until the end of the section.
 * Return: the region; NULL: the QP may not access the bytes.
 */
struct nhca_mr *nhca_mkey_check(const struct nhca_key_user *key_user, u32 key, u64 va, u32 len,
				int access, u64 *off);

/**
 * nhca_mkey_check_all - check that a QP may access all memory of a key
 * @key_user: the QP
 * @key:      the R_Key
 * @access:   enum ib_access_flags, all of which the key must grant
 * Context: live section.
 * Return: the region; NULL: the QP may not access the memory.
 */
struct nhca_mr *nhca_mkey_check_all(const struct nhca_key_user *key_user, u32 key, int access);

/**
 * nhca_mkey_walk - call a function for every key, for debugfs
 * @fn:  the function; it may sleep
 * @arg: second argument of @fn
 *
 * During the walk no key is removed, but keys may be opened, closed or added.  The walk may miss a
 * key that is added.  If the table is resized, @fn may be called twice for a key.
 * Context: process, sleeps.
 */
void nhca_mkey_walk(void (*fn)(struct nhca_mkey *mk, void *arg), void *arg);

/**
 * nhca_mkey_init - make the table of keys when the module is loaded
 * Context: process, sleeps.
 * Return: 0; -ENOMEM: no memory.
 */
int nhca_mkey_init(void);

/**
 * nhca_mkey_exit - free the table of keys when the module is unloaded
 * Context: process, sleeps.
 */
void nhca_mkey_exit(void);

#endif /* NHCA_MKEY_H */
