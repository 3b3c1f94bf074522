/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The remote key manager: which remote keys the operations in progress are using, and
 * the sweep that revokes them (reference: remote key validation, FIGs. 10 to 12).
 *
 * Packets after the first of a message carry no R_Key: the receive engine goes by
 * what the first one opened, its hold.  Each QP has a hold for the write that is
 * arriving and one for each READ that is being answered.  The reference's manager
 * walks all QPs; ours finds the holds of a key in a hash table by key, so that a sweep
 * costs what the operations that use the key cost, whatever the number of QPs.
 */
#ifndef NHCA_RKM_H
#define NHCA_RKM_H

#include <linux/list.h>
#include <linux/types.h>

struct ib_pd;
struct nhca_mr;

/**
 * struct nhca_rkey_ref - a remote key in use by an operation of a QP
 * @node:  in its bucket, under the bucket's lock; unhashed if the hold is not in use
 *         or was swept
 * @held:  by its owner and not released; the owner's alone
 * @valid: the operation may go on; cleared by a sweep
 * @pd:    protection domain of the QP's operation: compared first
 * @key:   R_Key: compared second
 * @qpn:   whose, for people who look
 * @mr:    the memory behind it, good while @valid (looked at in a live section)
 * @off:   where in @mr the operation's address range begins
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
 * nhca_rkm_get - note that an operation uses a key
 * @h: pd, key, qpn, mr and off are set; not in use; all zero before its first use
 * The receive side has priority: a sweep that is under way lets it in between.
 * Whoever opens a key does so in this order: nhca_rkm_get(), then look (again)
 * whether the key is still open, in one live section; a sweep comes after the key was
 * closed.  So either the sweep finds the hold, or the look finds the key closed.
 * Context: BH disabled.
 */
void nhca_rkm_get(struct nhca_rkey_ref *h);

/**
 * nhca_rkm_put - the operation is over; fine if it was swept, or never held, and then
 * costs nothing
 * Context: BH disabled; calls for one hold are serialised by its owner.
 */
void nhca_rkm_put(struct nhca_rkey_ref *h);

/* May the operation go on?  Ask in the live section in which the bytes move. */
static inline bool nhca_rkey_ref_valid(const struct nhca_rkey_ref *h)
{
	return READ_ONCE(h->valid);
}

/**
 * nhca_rkm_sweep - revoke a key: clear the valid bit of every hold on it
 * @pd: of the key: holds of another domain are passed over
 * The key has been closed before, so that no new hold can come.  When the sweep is
 * done, nhca_live_wait() makes sure that those who had seen a valid bit are done, too.
 * Context: any but hard interrupts.
 * Return: the number of holds revoked.
 */
unsigned int nhca_rkm_sweep(struct ib_pd *pd, u32 key);

/**
 * struct nhca_sweep - a sweep under way: what nhca_rkm_sweep() does, in steps
 * @mark:    where it stands while it has laid down the bucket's lock; unhashed before
 *           the first step and after the last; has no domain
 * @pd:      what to revoke
 * @key:     what to revoke
 * @revoked: holds so far
 */
struct nhca_sweep {
	struct nhca_rkey_ref mark;
	struct ib_pd *pd;
	u32 key;
	unsigned int revoked;
};

void nhca_sweep_start(struct nhca_sweep *s, struct ib_pd *pd, u32 key);

/**
 * nhca_sweep_step - look at the next holds
 * @stride: how many at most; fewer if somebody waits for them; at least one
 * The receive side comes and goes between steps.  Holds that come then are not looked
 * at; another step after the last begins anew.
 * Context: as nhca_rkm_sweep().  Every sweep is stepped to its end.
 * Return: the sweep is done.
 */
bool nhca_sweep_step(struct nhca_sweep *s, unsigned int stride);

/* which bucket a key is in: keys of one bucket stand in each other's way */
u32 nhca_rkm_bucket(u32 key);

/**
 * nhca_rkm_walk - show every hold to @fn, for debugfs and tests
 * Context: process, may sleep; @fn is called with a bucket's lock held, a raw one: it
 * takes no other lock.  Holds that come or go meanwhile are shown or not.
 */
void nhca_rkm_walk(void (*fn)(const struct nhca_rkey_ref *h, void *arg), void *arg);

int nhca_rkm_init(void);
void nhca_rkm_exit(void);

#endif /* NHCA_RKM_H */
