/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The remote key manager records which remote keys operations in progress use.  When a key is
 * closed, a sweep revokes the uses of the key (reference: remote key validation, FIGs. 10 to 12).
 *
 * Of a WRITE only the first packet has the R_Key, and of a READ only the request.  If the WRITE or
 * the READ response has several packets, the responder fills in an R_Key reference (ref) when the
 * R_Key arrives, and checks the ref for each later packet.  A QP has one ref for the WRITE that is
 * arriving, and one for each READ of several packets that it answers.  The manager in the reference
 * text walks all QPs.  nhca instead has a hash table of refs by key.  So the cost of a sweep does
 * not depend on the number of QPs, but on the number of refs in the key's bucket.
 */
#ifndef NHCA_RKM_H
#define NHCA_RKM_H

#include <linux/list.h>
#include <linux/types.h>

struct ib_pd;
struct nhca_mr;

/**
 * struct nhca_rkey_ref - an R_Key reference (ref): the use of a remote key by an operation of a QP
 * @node:  entry in its bucket, under the bucket's lock; unhashed if the ref is not in use or was
 *         swept
 * @held:  set from nhca_rkm_get() to nhca_rkm_put(); used by the owner only
 * @valid: the operation may continue; cleared by a sweep, and by nhca_rkm_put()
 * @pd:    protection domain of the key
 * @key:   the R_Key
 * @qpn:   number of the QP, for debugfs
 * @mr:    the region, valid while @valid is set (read in a live section)
 * @off:   offset in @mr at which the operation's address range begins
 */
struct nhca_rkey_ref {
	struct hlist_node node;
	bool held;
	bool valid;
	struct ib_pd *pd;
	u32 key;
	u32 qpn;
	struct nhca_mr *mr;
	u64 off;
};

/**
 * nhca_rkm_get - record that an operation uses a key
 * @h: a ref that is not in use, zeroed before its first use; the caller has set pd, key, qpn, mr
 *     and off
 *
 * The function takes the lock of the bucket.  A sweep in progress delays the function only briefly,
 * because the sweep releases this lock between two steps.  In one live section the caller calls
 * this function and then checks that the key is still open.  A key is closed before its sweep.  So
 * either the sweep finds the ref, or the check finds the key closed.
 * Context: BH disabled.
 */
void nhca_rkm_get(struct nhca_rkey_ref *h);

/**
 * nhca_rkm_put - release a ref when its operation has ended
 * @h: the ref, which may have been swept; if the ref is not in use, nothing happens
 * Context: BH disabled; the owner of a ref serializes calls for it.
 */
void nhca_rkm_put(struct nhca_rkey_ref *h);

/**
 * nhca_rkey_ref_valid - check that an operation may continue
 * @h: the ref
 * Context: the live section in which the bytes move.
 * Return: false if the key was closed.
 */
static inline bool nhca_rkey_ref_valid(const struct nhca_rkey_ref *h)
{
	return READ_ONCE(h->valid);
}

/**
 * nhca_rkm_sweep - revoke a key: clear the valid bit of each of its refs
 * @pd:  domain of the key; refs of another domain are ignored
 * @key: the R_Key
 *
 * The caller has closed the key, so no new ref of it stays valid (see nhca_rkm_get()).  Sections
 * that read a valid bit before the sweep may still run; nhca_live_wait() waits for them.
 * Context: any but hard interrupts.
 * Return: number of refs revoked.
 */
unsigned int nhca_rkm_sweep(struct ib_pd *pd, u32 key);

/**
 * struct nhca_sweep - a sweep in progress: nhca_rkm_sweep() in steps
 * @mark:    entry that keeps the position in the list while the bucket is unlocked; unhashed before
 *           the first step and after the last; its domain is NULL
 * @pd:      domain of the key
 * @key:     the R_Key
 * @revoked: number of refs revoked so far
 */
struct nhca_sweep {
	struct nhca_rkey_ref mark;
	struct ib_pd *pd;
	u32 key;
	unsigned int revoked;
};

/**
 * nhca_sweep_start - prepare a sweep
 * @s:   filled in
 * @pd:  domain of the key
 * @key: the R_Key
 * Context: any.
 */
void nhca_sweep_start(struct nhca_sweep *s, struct ib_pd *pd, u32 key);

/**
 * nhca_sweep_step - check the next refs of a bucket
 * @s:      the sweep
 * @stride: maximum number of refs to check; if another CPU waits for the lock, the step checks
 *          fewer refs, but at least one
 *
 * Receive processing may add and release refs between two steps.  The sweep does not check refs
 * that are added after it began.  A step after the last one starts again from the beginning.
 * Context: as nhca_rkm_sweep(); the caller continues until the sweep is done.
 * Return: true if the sweep is done.
 */
bool nhca_sweep_step(struct nhca_sweep *s, unsigned int stride);

/**
 * nhca_rkm_bucket - compute the bucket of a key; keys of one bucket share a lock
 * @key: the R_Key
 * Context: any.
 * Return: index of the bucket.
 */
u32 nhca_rkm_bucket(u32 key);

/**
 * nhca_rkm_walk - call @fn for every ref, for debugfs and tests
 * @fn:  called with a bucket's raw lock held, so it may take only raw locks
 * @arg: second argument of @fn
 *
 * nhca_rkm_walk() may miss refs that are added or released during the walk.
 * Context: process, sleeps.
 */
void nhca_rkm_walk(void (*fn)(const struct nhca_rkey_ref *h, void *arg), void *arg);

/**
 * nhca_rkm_init - allocate the hash table when the module is loaded
 * Context: process, sleeps.
 * Return: 0; -ENOMEM: no memory.
 */
int nhca_rkm_init(void);

/**
 * nhca_rkm_exit - free the hash table when the module is unloaded
 * Context: process.
 */
void nhca_rkm_exit(void);

#endif /* NHCA_RKM_H */
