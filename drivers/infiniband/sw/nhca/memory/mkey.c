// SPDX-License-Identifier: GPL-2.0
/*
 * The table of keys, and opening and closing them.
 */
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/random.h>
#include <linux/wait_bit.h>

#include "live.h"
#include "mkey.h"
#include "mr.h"
#include "rkm.h"
#include "../observe/trace.h"

/* index 0 stays free, so that no key is below 256 */
#define NHCA_MKEY_INDEX_BITS	24
#define NHCA_MKEY_CHUNK_BITS	12
#define NHCA_MKEY_CHUNK		BIT(NHCA_MKEY_CHUNK_BITS)
#define NHCA_MKEY_CHUNKS	BIT(NHCA_MKEY_INDEX_BITS - NHCA_MKEY_CHUNK_BITS)

/*
 * One table for all devices of the host: chunks of slots, so that finding a key is two
 * loads.  The index moves on with every key; when it starts again from the bottom the
 * first variant moves on, so that a key of ours returns only after all 2^32 have been
 * used.  Both begin at random at module load.
 */
static struct {
	/* everything but reading chunks and slots */
	struct mutex lock;
	struct nhca_mkey ***chunk;
	/* keys in each chunk */
	u16 *used;
	u32 next;
	u8 variant;
} keys = {
	.lock = __MUTEX_INITIALIZER(keys.lock),
};

int nhca_mkey_init(void)
{
	u32 r = get_random_u32();

	keys.chunk = kvcalloc(NHCA_MKEY_CHUNKS, sizeof(*keys.chunk), GFP_KERNEL);
	keys.used = kvcalloc(NHCA_MKEY_CHUNKS, sizeof(*keys.used), GFP_KERNEL);
	if (!keys.chunk || !keys.used) {
		nhca_mkey_exit();
		return -ENOMEM;
	}
	keys.next = r >> 8;
	keys.variant = r;
	return 0;
}

void nhca_mkey_exit(void)
{
	/* chunks have gone with their last keys */
	kvfree(keys.chunk);
	kvfree(keys.used);
}

/* Return: a free index with its chunk in place, or 0.  keys.lock held. */
static u32 mkey_index(void)
{
	u32 tried, i, c;

	for (tried = 0; tried <= BIT(NHCA_MKEY_INDEX_BITS); tried++) {
		i = keys.next++;
		if (i >> NHCA_MKEY_INDEX_BITS) {
			keys.next = 1;
			keys.variant++;
			continue;
		}
		c = i >> NHCA_MKEY_CHUNK_BITS;
		if (keys.used[c] == NHCA_MKEY_CHUNK) {
			tried += NHCA_MKEY_CHUNK - 1 - i % NHCA_MKEY_CHUNK;
			keys.next = (c + 1) << NHCA_MKEY_CHUNK_BITS;
			continue;
		}
		if (i && (!keys.chunk[c] || !keys.chunk[c][i % NHCA_MKEY_CHUNK]))
			return i;
	}
	return 0;
}

int nhca_mkey_add(struct nhca_mkey *mk)
{
	struct nhca_mkey **chunk;
	int err = -ENOSPC;
	u32 i, c;

	spin_lock_init(&mk->lock);
	refcount_set(&mk->ref, 1);
	mk->valid = false;
	mk->shut = false;

	mutex_lock(&keys.lock);
	i = mkey_index();
	if (!i)
		goto unlock;
	c = i >> NHCA_MKEY_CHUNK_BITS;
	chunk = keys.chunk[c];
	if (!chunk) {
		err = -ENOMEM;
		chunk = kvcalloc(NHCA_MKEY_CHUNK, sizeof(*chunk), GFP_KERNEL);
		if (!chunk)
			goto unlock;
		/* readers find it empty */
		smp_store_release(&keys.chunk[c], chunk);
	}
	mk->key = i << 8 | keys.variant;
	keys.used[c]++;
	/* and the key whole, if closed */
	smp_store_release(&chunk[i % NHCA_MKEY_CHUNK], mk);
	err = 0;
unlock:
	mutex_unlock(&keys.lock);
	return err;
}

/* Who had found the key open is done. */
static void mkey_revoked(struct nhca_mkey *mk)
{
	if (!mk->shut)
		return;
	mk->shut = false;
	trace_nhca_key_revoked(mk->pd, mk->key, mk->type, mk->qpn);
}

void nhca_mkey_del(struct nhca_mkey *mk)
{
	u32 i = mk->key >> 8, c = i >> NHCA_MKEY_CHUNK_BITS;
	struct nhca_mkey **chunk;

	mutex_lock(&keys.lock);
	chunk = keys.chunk[c];
	WRITE_ONCE(chunk[i % NHCA_MKEY_CHUNK], NULL);
	if (--keys.used[c])
		chunk = NULL;
	else
		WRITE_ONCE(keys.chunk[c], NULL);
	mutex_unlock(&keys.lock);

	/* who looks keys up does so in a section: from here on nobody finds it */
	nhca_live_wait();
	if (unlikely(chunk))
		kvfree(chunk);

	/* closed, and nobody had found it who could open it again */
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
	/* who sees it open sees what it opens */
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
	if (nhca_mkey_shut(mk))
		nhca_mkey_shut_end(mk);
}

/* Context: live section. */
static struct nhca_mkey *mkey_find(u32 key)
{
	struct nhca_mkey **chunk;

	/* pairs with the releases in nhca_mkey_add(): chunk and key are found whole */
	chunk = smp_load_acquire(&keys.chunk[key >> (8 + NHCA_MKEY_CHUNK_BITS)]);
	if (unlikely(!chunk))
		return NULL;
	/* as above */
	return smp_load_acquire(&chunk[(key >> 8) % NHCA_MKEY_CHUNK]);
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
	/* the address alone is used behind the last reference */
	if (refcount_dec_and_test(&mk->ref))
		wake_up_var(&mk->ref);
}

void nhca_mkey_walk(void (*fn)(struct nhca_mkey *mk, void *arg), void *arg)
{
	u32 c, i;

	mutex_lock(&keys.lock);
	for (c = 0; c < NHCA_MKEY_CHUNKS; c++) {
		for (i = 0; keys.chunk[c] && i < NHCA_MKEY_CHUNK; i++) {
			if (keys.chunk[c][i])
				fn(keys.chunk[c][i], arg);
		}
		cond_resched();
	}
	mutex_unlock(&keys.lock);
}

/* Is @mk, which is open, for this party?  IBTA 10.6.7.2.2, 10.6.7.2.4 */
static __always_inline bool mkey_fits(const struct nhca_mkey *mk,
				      const struct nhca_party *party, int access)
{
	switch (mk->type) {
	case NHCA_MKEY_MR:
		return mk->pd == party->pd;
	case NHCA_MKEY_MW1:
		/* a window has no L_Key */
		return (access & NHCA_REMOTE_ACCESS) && mk->pd == party->pd;
	case NHCA_MKEY_MW2A:
		return (access & NHCA_REMOTE_ACCESS) && mk->qpn == party->qpn;
	case NHCA_MKEY_MW2B:
		return (access & NHCA_REMOTE_ACCESS) && mk->qpn == party->qpn &&
		       mk->pd == party->pd;
	}
	return false;
}

/* Context: live section.  Return: the key if it opens anything in this way, or NULL. */
static __always_inline struct nhca_mkey *mkey_granted(const struct nhca_party *party, u32 key,
						      int access)
{
	struct nhca_mkey *mk = mkey_find(key);

	/* pairs with nhca_mkey_open(): what it opens is constant until the section ends */
	if (unlikely(!mk || !smp_load_acquire(&mk->valid)))
		return NULL;
	/* the whole key: the variant tells this opening from those before it */
	if (unlikely(mk->key != key || !mkey_fits(mk, party, access)))
		return NULL;
	if (unlikely((mk->access & access) != access))
		return NULL;
	return mk;
}

/* Context: live section.  Return: the key if it opens these bytes, or NULL. */
static __always_inline struct nhca_mkey *mkey_reach(const struct nhca_party *party, u32 key,
						    u64 va, u32 len, int access)
{
	struct nhca_mkey *mk = mkey_granted(party, key, access);

	if (unlikely(!mk))
		return NULL;
	/* no sum here can wrap */
	if (unlikely(va < mk->va || len > mk->length || va - mk->va > mk->length - len))
		return NULL;
	return mk;
}

struct nhca_mr *nhca_mkey_check(const struct nhca_party *party, u32 key, u64 va, u32 len,
				int access, u64 *off)
{
	struct nhca_mkey *mk = mkey_reach(party, key, va, len, access);

	if (unlikely(!mk))
		return NULL;
	*off = mk->off + (va - mk->va);
	return mk->mr;
}

bool nhca_mkey_check_all(const struct nhca_party *party, u32 key, int access)
{
	return mkey_granted(party, key, access);
}

int nhca_hold_open(struct nhca_hold *h, const struct nhca_party *party, u32 rkey, u64 va,
		   u32 len, int access)
{
	struct nhca_mkey *mk;
	int err = -EACCES;

	if (!len)
		return 0;
	nhca_live_enter();
	mk = mkey_reach(party, rkey, va, len, access);
	if (!mk)
		goto exit;
	/* of the key, for the sweep: the QP of a type 2A window may be of another domain */
	h->pd = mk->pd;
	h->key = rkey;
	h->qpn = party->qpn;
	h->mr = mk->mr;
	h->off = mk->off + (va - mk->va);
	nhca_rkm_hold(h);
	/* closed meanwhile: perhaps its sweep has not found us */
	if (READ_ONCE(mk->valid))
		err = 0;
	else
		nhca_rkm_release(h);
exit:
	nhca_live_exit();
	return err;
}
