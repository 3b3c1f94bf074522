// SPDX-License-Identifier: GPL-2.0
/*
 * The remote key manager.
 *
 * The lock of a bucket is a raw lock: even with PREEMPT_RT no task is preempted while it holds the
 * lock, so live sections wait only briefly for it.  A sweep releases the lock after
 * NHCA_RKM_STRIDE refs, or earlier if another CPU waits for the lock, and leaves a mark at its
 * position in the list.  New refs are added at the head, which the sweep has already passed.  So a
 * sweep ends however many refs are added.  Each ref that existed when the sweep began is checked
 * once, unless the ref is released before.
 */
#include <linux/bug.h>
#include <linux/cache.h>
#include <linux/cpumask.h>
#include <linux/jhash.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/processor.h>
#include <linux/random.h>
#include <linux/spinlock.h>

#include "rkm.h"

/* maximum number of refs that are checked before the lock is released for other CPUs */
#define NHCA_RKM_STRIDE		32

struct nhca_bucket {
	/* protects the list, and node and valid of its refs */
	raw_spinlock_t lock;
	struct hlist_head refs;
} ____cacheline_aligned_in_smp;

/* constant between load and unload of the module */
static struct {
	struct nhca_bucket *bucket;
	u32 mask;
	/* secret, because users choose 8 bits of a key and must not be able to choose its bucket */
	u32 seed;
} rkm __read_mostly;

u32 nhca_rkm_bucket(u32 key)
{
	return jhash_1word(key, rkm.seed) & rkm.mask;
}

static struct nhca_bucket *rkm_bucket(u32 key)
{
	return &rkm.bucket[nhca_rkm_bucket(key)];
}

/* A mark is a ref without a domain, so no sweep revokes a mark. */
static bool rkm_is_mark(const struct nhca_rkey_ref *h)
{
	return !h->pd;
}

void nhca_rkm_get(struct nhca_rkey_ref *h)
{
	struct nhca_bucket *b = rkm_bucket(h->key);

	if (WARN_ON_ONCE(h->held || !h->pd))
		return;
	h->held = true;
	raw_spin_lock_bh(&b->lock);
	hlist_add_head(&h->node, &b->refs);
	WRITE_ONCE(h->valid, true);
	raw_spin_unlock_bh(&b->lock);
}

/*
 * Take the lock even if a sweep has unhashed the ref: when this function gets the lock, the sweep
 * does not use the ref any more, so the caller may reuse the ref afterwards.  A ref that is not in
 * use is in no list, so the function takes no lock for such a ref.
 */
void nhca_rkm_put(struct nhca_rkey_ref *h)
{
	struct nhca_bucket *b;

	if (!h->held)
		return;
	h->held = false;
	b = rkm_bucket(h->key);
	raw_spin_lock_bh(&b->lock);
	hlist_del_init(&h->node);
	WRITE_ONCE(h->valid, false);
	raw_spin_unlock_bh(&b->lock);
}

/*
 * Remove the mark from the list, if it is there.
 * Return: the next entry to check: the one after the mark, or the first one if the mark was in no
 * list.
 */
static struct hlist_node *rkm_resume(struct nhca_bucket *b, struct nhca_rkey_ref *mark)
{
	struct hlist_node *next = b->refs.first;

	lockdep_assert_held(&b->lock);
	if (!hlist_unhashed(&mark->node)) {
		next = mark->node.next;
		hlist_del_init(&mark->node);
	}
	return next;
}

/*
 * Return: true if the lock should be released after @seen refs.  If the lock is fair, CPUs that
 * wait for the lock get it before this CPU, so receive processing has priority.
 */
static bool rkm_give_way(struct nhca_bucket *b, unsigned int seen, unsigned int stride)
{
	return seen >= stride || raw_spin_is_contended(&b->lock);
}

void nhca_sweep_start(struct nhca_sweep *s, struct ib_pd *pd, u32 key)
{
	/*
	 * Initialize only the used fields of the mark, because each close of a key runs this
	 * function.
	 */
	INIT_HLIST_NODE(&s->mark.node);
	s->mark.pd = NULL;
	s->pd = pd;
	s->key = key;
	s->revoked = 0;
}

bool nhca_sweep_step(struct nhca_sweep *s, unsigned int stride)
{
	struct nhca_bucket *b = rkm_bucket(s->key);
	struct hlist_node *node, *next;
	unsigned int seen = 0;

	/*
	 * Take the lock even if the bucket is empty.  The lock orders this sweep before any later
	 * nhca_rkm_get(), whose caller then sees that the key is closed.
	 */
	raw_spin_lock_bh(&b->lock);
	for (node = rkm_resume(b, &s->mark); node; node = next) {
		struct nhca_rkey_ref *h = hlist_entry(node, struct nhca_rkey_ref, node);

		if (seen && rkm_give_way(b, seen, stride)) {
			hlist_add_before(&s->mark.node, node);
			break;
		}
		seen++;
		next = node->next;
		if (h->pd != s->pd || h->key != s->key)
			continue;
		WRITE_ONCE(h->valid, false);
		hlist_del_init(node);
		s->revoked++;
	}
	raw_spin_unlock_bh(&b->lock);
	return !node;
}

unsigned int nhca_rkm_sweep(struct ib_pd *pd, u32 key)
{
	struct nhca_sweep s;

	if (WARN_ON_ONCE(!pd))
		return 0;
	nhca_sweep_start(&s, pd, key);
	while (!nhca_sweep_step(&s, NHCA_RKM_STRIDE))
		cpu_relax();
	return s.revoked;
}

/* Call @fn for refs of a bucket.  Return: true if refs are left for the next step. */
static bool rkm_walk_step(struct nhca_bucket *b, struct nhca_rkey_ref *mark,
			  void (*fn)(const struct nhca_rkey_ref *h, void *arg), void *arg)
{
	unsigned int seen = 0;
	struct hlist_node *node;

	raw_spin_lock_bh(&b->lock);
	for (node = rkm_resume(b, mark); node; node = node->next) {
		const struct nhca_rkey_ref *h = hlist_entry(node, struct nhca_rkey_ref, node);

		if (seen && rkm_give_way(b, seen, NHCA_RKM_STRIDE)) {
			hlist_add_before(&mark->node, node);
			break;
		}
		seen++;
		if (!rkm_is_mark(h))
			fn(h, arg);
	}
	raw_spin_unlock_bh(&b->lock);
	return node;
}

void nhca_rkm_walk(void (*fn)(const struct nhca_rkey_ref *h, void *arg), void *arg)
{
	struct nhca_rkey_ref mark = {};
	u32 i;

	for (i = 0; i <= rkm.mask; i++)
		while (rkm_walk_step(&rkm.bucket[i], &mark, fn, arg))
			cond_resched();
}

int nhca_rkm_init(void)
{
	/* enough buckets that two CPUs seldom use the same one by chance */
	u32 n = clamp(roundup_pow_of_two(num_possible_cpus()) * 256UL, 1024UL, 65536UL);
	u32 i;

	rkm.bucket = kvcalloc(n, sizeof(*rkm.bucket), GFP_KERNEL);
	if (!rkm.bucket)
		return -ENOMEM;
	for (i = 0; i < n; i++)
		raw_spin_lock_init(&rkm.bucket[i].lock);
	rkm.mask = n - 1;
	rkm.seed = get_random_u32();
	return 0;
}

void nhca_rkm_exit(void)
{
	kvfree(rkm.bucket);
	rkm.bucket = NULL;
}
