// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit: the remote key manager. The reference is the patent for key revocation (see the glossary):
 * the cases do the steps of its timing diagrams (FIG. 13 to 17), and compare random histories with
 * a model of its manager. A ref is an R_Key reference (struct nhca_rkey_ref).
 */
#include <kunit/test.h>
#include <linux/prandom.h>
#include <linux/random.h>
#include <rdma/ib_verbs.h>

#include "../memory/rkm.h"

#define RKM_PDS		3
#define RKM_QPS		16
/* slots for keys in a QP: one for a WRITE and three for READs, as in the reference */
#define RKM_SLOTS	4
#define RKM_KEYS	24
#define RKM_HISTORY	120000
/* the refs of this suite have these QPNs; real QPNs have only 24 bits */
#define RKM_QPN		0xab000000

struct rkm_qp {
	struct ib_pd *pd;
	struct nhca_rkey_ref slot[RKM_SLOTS];
};

/*
 * static, because after a failed assertion the bucket still has refs and the sweep's mark, until
 * rkm_exit_test()
 */
static struct ib_pd rkm_pd[RKM_PDS];
static struct rkm_qp rkm_qp[RKM_QPS];
static struct nhca_sweep rkm_sweep;
/* the first sweep of each figure is of key [0]; the first half of the keys has the same bucket */
static u32 rkm_key[RKM_KEYS];

static void rkm_hold(struct rkm_qp *qp, unsigned int slot, u32 key)
{
	struct nhca_rkey_ref *h = &qp->slot[slot];

	h->pd = qp->pd;
	h->key = key;
	h->qpn = RKM_QPN | (qp - rkm_qp);
	local_bh_disable();
	nhca_rkm_get(h);
	local_bh_enable();
}

static void rkm_release(struct rkm_qp *qp, unsigned int slot)
{
	local_bh_disable();
	nhca_rkm_put(&qp->slot[slot]);
	local_bh_enable();
}

static int rkm_init_test(struct kunit *test)
{
	u32 key = get_random_u32();
	int i;

	memset(rkm_qp, 0, sizeof(rkm_qp));
	memset(&rkm_sweep, 0, sizeof(rkm_sweep));
	for (i = 0; i < RKM_QPS; i++)
		rkm_qp[i].pd = &rkm_pd[0];
	rkm_key[0] = key;
	for (i = 1; i < RKM_KEYS; i++) {
		do {
			key++;
		} while (i < RKM_KEYS / 2 && nhca_rkm_bucket(key) != nhca_rkm_bucket(rkm_key[0]));
		rkm_key[i] = key;
	}
	return 0;
}

static void rkm_exit_test(struct kunit *test)
{
	int q, s;

	while (!hlist_unhashed(&rkm_sweep.mark.node))
		nhca_sweep_step(&rkm_sweep, UINT_MAX);
	for (q = 0; q < RKM_QPS; q++)
		for (s = 0; s < RKM_SLOTS; s++)
			rkm_release(&rkm_qp[q], s);
}

/* ---- the figures of the reference ---- */

/*
 * Let each QP take refs as in a figure: @keys[q][s] is the index in rkm_key[] of the key in slot s
 * of QP q. The refs are taken from the last slot to the first, because a sweep begins with the ref
 * that was taken last.
 */
static void rkm_lay(unsigned int qps, const u8 (*keys)[RKM_SLOTS])
{
	int q, s;

	for (q = qps - 1; q >= 0; q--)
		for (s = RKM_SLOTS - 1; s >= 0; s--)
			rkm_hold(&rkm_qp[q], s, rkm_key[keys[q][s]]);
}

static struct nhca_rkey_ref *rkm_nth(unsigned int i)
{
	return &rkm_qp[i / RKM_SLOTS].slot[i % RKM_SLOTS];
}

/*
 * Expect that the sweep is in progress and that its next ref is the ref of slot @i, counted over
 * all QPs.
 */
static void rkm_expect_at(struct kunit *test, unsigned int i)
{
	KUNIT_ASSERT_FALSE_MSG(test, hlist_unhashed(&rkm_sweep.mark.node), "slot %u", i);
	KUNIT_EXPECT_PTR_EQ_MSG(test, rkm_sweep.mark.node.next, &rkm_nth(i)->node, "slot %u", i);
}

static void rkm_expect_idle(struct kunit *test)
{
	KUNIT_EXPECT_TRUE(test, hlist_unhashed(&rkm_sweep.mark.node));
}

/*
 * Do one step of the sweep. Expect that the step checks slot @i only, and revokes its ref if
 * @match.
 */
static void rkm_step(struct kunit *test, unsigned int i, bool match, bool last)
{
	unsigned int revoked = rkm_sweep.revoked;
	struct nhca_rkey_ref *h = rkm_nth(i);

	KUNIT_EXPECT_TRUE_MSG(test, nhca_rkey_ref_valid(h), "slot %u before its step",
			      i);
	KUNIT_EXPECT_EQ_MSG(test, nhca_sweep_step(&rkm_sweep, 1), last, "slot %u", i);
	KUNIT_EXPECT_EQ_MSG(test, nhca_rkey_ref_valid(h), !match, "slot %u", i);
	KUNIT_EXPECT_EQ_MSG(test, hlist_unhashed(&h->node), match, "slot %u", i);
	KUNIT_EXPECT_EQ_MSG(test, rkm_sweep.revoked, revoked + match, "slot %u", i);
	if (last)
		rkm_expect_idle(test);
}

static void rkm_expect_valid(struct kunit *test, unsigned int from, unsigned int to, bool valid)
{
	unsigned int i;

	for (i = from; i < to; i++)
		KUNIT_EXPECT_EQ_MSG(test, nhca_rkey_ref_valid(rkm_nth(i)), valid, "slot %u", i);
}

/*
 * FIG. 13: all QPs are of the sweep's domain but have other keys, so the sweep goes on from QP 0 to
 * QP 1 and QP 2 and revokes nothing.
 */
static void rkm_fig13_normal_operation(struct kunit *test)
{
	static const u8 keys[][RKM_SLOTS] = { { 1, 2, 3, 4 }, { 5, 6, 7, 8 }, { 9, 10, 11, 1 } };
	unsigned int i;

	rkm_lay(3, keys);
	nhca_sweep_start(&rkm_sweep, &rkm_pd[0], rkm_key[0]);
	rkm_expect_idle(test);
	for (i = 0; i < 11; i++) {
		rkm_step(test, i, false, false);
		rkm_expect_at(test, i + 1);
	}
	rkm_step(test, 11, false, true);
	KUNIT_EXPECT_EQ(test, rkm_sweep.revoked, 0);
	rkm_expect_valid(test, 0, 12, true);
}

/*
 * FIG. 14: after the last key of the last QP the sweep is done, and the manager is idle. The next
 * sweep begins with QP 0.
 */
static void rkm_fig14_completion(struct kunit *test)
{
	static const u8 keys[][RKM_SLOTS] = { { 1, 2, 3, 4 }, { 5, 6, 7, 8 } };

	rkm_lay(2, keys);
	nhca_sweep_start(&rkm_sweep, &rkm_pd[0], rkm_key[0]);
	/* the figure begins "in the middle of processing VI Max", which is the last QP */
	KUNIT_EXPECT_FALSE(test, nhca_sweep_step(&rkm_sweep, 6));
	rkm_expect_at(test, 6);
	/* the sweep checks Rkey 2 and Rkey 3 of the last QP, and is done */
	rkm_step(test, 6, false, false);
	rkm_expect_at(test, 7);
	rkm_step(test, 7, false, true);

	/* idle: only receive processing is active, which releases a ref */
	rkm_release(&rkm_qp[1], 3);
	rkm_expect_idle(test);
	rkm_expect_valid(test, 0, 7, true);

	/* the next sweep begins with QP 0 */
	nhca_sweep_start(&rkm_sweep, &rkm_pd[0], rkm_key[1]);
	rkm_step(test, 0, true, false);
	rkm_expect_at(test, 1);
	KUNIT_EXPECT_TRUE(test, nhca_sweep_step(&rkm_sweep, UINT_MAX));
	KUNIT_EXPECT_EQ(test, rkm_sweep.revoked, 1);
	/* a sweep of a key that has no refs ends too */
	KUNIT_EXPECT_EQ(test, nhca_rkm_sweep(&rkm_pd[0], rkm_key[1]), 0);
}

/*
 * FIG. 15: QP 0 is of another domain, so its refs remain although their key matches. The matching
 * ref of QP 1 is revoked.
 */
static void rkm_fig15_pd_mismatch(struct kunit *test)
{
	static const u8 keys[][RKM_SLOTS] = { { 0, 0, 0, 0 }, { 1, 2, 0, 3 } };
	unsigned int i;

	rkm_qp[0].pd = &rkm_pd[1];
	rkm_lay(2, keys);
	nhca_sweep_start(&rkm_sweep, &rkm_pd[0], rkm_key[0]);
	for (i = 0; i < 6; i++) {
		rkm_step(test, i, false, false);
		rkm_expect_at(test, i + 1);
	}
	rkm_step(test, 6, true, false);
	rkm_expect_at(test, 7);
	rkm_step(test, 7, false, true);
	KUNIT_EXPECT_EQ(test, rkm_sweep.revoked, 1);
	rkm_expect_valid(test, 0, 6, true);

	/* a sweep for the other domain revokes the refs of QP 0, which the first sweep has left */
	KUNIT_EXPECT_EQ(test, nhca_rkm_sweep(&rkm_pd[1], rkm_key[0]), 4);
	rkm_expect_valid(test, 0, 4, false);
	rkm_expect_valid(test, 4, 6, true);
}

/*
 * FIG. 16: all keys of QP 0 and the first key of QP 1 match, so the sweep clears the valid bits of
 * these keys only.
 */
static void rkm_fig16_several_keys_match(struct kunit *test)
{
	static const u8 keys[][RKM_SLOTS] = { { 0, 0, 0, 0 }, { 0, 1, 2, 3 } };
	unsigned int i;

	rkm_lay(2, keys);
	nhca_sweep_start(&rkm_sweep, &rkm_pd[0], rkm_key[0]);
	for (i = 0; i < 5; i++) {
		rkm_step(test, i, true, false);
		rkm_expect_at(test, i + 1);
		rkm_expect_valid(test, 0, i + 1, false);
		rkm_expect_valid(test, i + 1, 8, true);
	}
	KUNIT_EXPECT_TRUE(test, nhca_sweep_step(&rkm_sweep, UINT_MAX));
	KUNIT_EXPECT_EQ(test, rkm_sweep.revoked, 5);
	rkm_expect_idle(test);
	rkm_expect_valid(test, 5, 8, true);
	KUNIT_EXPECT_EQ(test, nhca_rkm_sweep(&rkm_pd[0], rkm_key[0]), 0);
}

/*
 * FIG. 17: keys 0 and 3 of QP 0 match, 1 and 2 do not. Between the steps of the sweep, receive
 * processing reads and writes slots. "#n" is a step of the figure.
 */
static void rkm_fig17_receive_between_steps(struct kunit *test)
{
	static const u8 keys[][RKM_SLOTS] = {
		{ 0, 1, 2, 0 }, { 0, 0, 1, 0 }, { 0, 1, 0, 2 },
	};

	rkm_lay(3, keys);
	nhca_sweep_start(&rkm_sweep, &rkm_pd[0], rkm_key[0]);
	/* #3: receive processing reads slot 0 while the sweep starts */
	KUNIT_EXPECT_TRUE(test, nhca_rkey_ref_valid(&rkm_qp[0].slot[0]));
	/* #7, #9: key 0 matches */
	rkm_step(test, 0, true, false);
	rkm_expect_at(test, 1);
	/* #8: receive processing uses the slot of the revoked ref for its next operation */
	rkm_release(&rkm_qp[0], 0);
	rkm_hold(&rkm_qp[0], 0, rkm_key[3]);
	rkm_expect_at(test, 1);
	/* #10: key 1 does not match; receive processing reads the slots before and after slot 1 */
	rkm_step(test, 1, false, false);
	KUNIT_EXPECT_TRUE(test, nhca_rkey_ref_valid(&rkm_qp[0].slot[0]));
	KUNIT_EXPECT_TRUE(test, nhca_rkey_ref_valid(&rkm_qp[0].slot[2]));
	/*
	 * receive processing releases the ref that the sweep would check next, so the sweep skips
	 * slot 2
	 */
	rkm_release(&rkm_qp[0], 2);
	rkm_expect_at(test, 3);
	rkm_hold(&rkm_qp[0], 2, rkm_key[2]);
	rkm_expect_at(test, 3);
	/* #14, #16: key 3 matches; then receive processing reads and writes slot 3 */
	rkm_step(test, 3, true, false);
	KUNIT_EXPECT_FALSE(test, nhca_rkey_ref_valid(&rkm_qp[0].slot[3]));
	rkm_release(&rkm_qp[0], 3);
	rkm_hold(&rkm_qp[0], 3, rkm_key[4]);
	/*
	 * #17: the first operation of QP 1 ends before the sweep reaches it, so its ref is not
	 * revoked
	 */
	rkm_expect_at(test, 4);
	rkm_release(&rkm_qp[1], 0);
	KUNIT_EXPECT_FALSE(test, nhca_rkey_ref_valid(&rkm_qp[1].slot[0]));
	rkm_expect_at(test, 5);
	rkm_step(test, 5, true, false);
	/* receive processing puts another key into slot 7, so the sweep finds no match in slot 7 */
	rkm_release(&rkm_qp[1], 3);
	rkm_hold(&rkm_qp[1], 3, rkm_key[5]);
	rkm_step(test, 6, false, false);
	rkm_expect_at(test, 8);
	/*
	 * receive processing takes a ref in slot 4, which the sweep has passed, but then finds the
	 * key closed and releases the ref
	 */
	rkm_hold(&rkm_qp[1], 0, rkm_key[0]);
	rkm_expect_at(test, 8);
	rkm_release(&rkm_qp[1], 0);
	/* all remaining operations end between two steps, so the next step ends the sweep */
	rkm_step(test, 8, true, false);
	rkm_release(&rkm_qp[2], 1);
	rkm_release(&rkm_qp[2], 2);
	rkm_release(&rkm_qp[2], 3);
	KUNIT_EXPECT_TRUE(test, nhca_sweep_step(&rkm_sweep, 1));
	rkm_expect_idle(test);

	KUNIT_EXPECT_EQ(test, rkm_sweep.revoked, 4);
	/* the refs of other keys are valid, including the refs that were taken during the sweep */
	rkm_expect_valid(test, 0, 4, true);
	rkm_expect_valid(test, 6, 8, true);
	KUNIT_EXPECT_EQ(test, nhca_rkm_sweep(&rkm_pd[0], rkm_key[0]), 0);
}

/* Two sweeps of one bucket skip each other's marks, and each ref is revoked once. */
static void rkm_concurrent_sweeps(struct kunit *test)
{
	static const u8 keys[][RKM_SLOTS] = { { 0, 1, 0, 1 }, { 1, 0, 1, 0 } };
	unsigned int other;

	rkm_lay(2, keys);
	nhca_sweep_start(&rkm_sweep, &rkm_pd[0], rkm_key[0]);
	rkm_step(test, 0, true, false);
	other = nhca_rkm_sweep(&rkm_pd[0], rkm_key[1]);
	KUNIT_EXPECT_EQ(test, other, 4);
	/* this sweep of the same key does not count the ref that the first sweep has revoked */
	KUNIT_EXPECT_EQ(test, nhca_rkm_sweep(&rkm_pd[0], rkm_key[0]), 3);
	KUNIT_EXPECT_TRUE(test, nhca_sweep_step(&rkm_sweep, 1));
	KUNIT_EXPECT_EQ(test, rkm_sweep.revoked, 1);
	rkm_expect_valid(test, 0, 8, false);
}

/* Releasing a ref that was released before or was revoked does nothing. */
static void rkm_put_without_ref(struct kunit *test)
{
	rkm_release(&rkm_qp[0], 0);
	rkm_hold(&rkm_qp[0], 0, rkm_key[0]);
	rkm_release(&rkm_qp[0], 0);
	rkm_release(&rkm_qp[0], 0);
	KUNIT_EXPECT_FALSE(test, nhca_rkey_ref_valid(&rkm_qp[0].slot[0]));
	rkm_hold(&rkm_qp[0], 0, rkm_key[0]);
	KUNIT_EXPECT_EQ(test, nhca_rkm_sweep(&rkm_pd[0], rkm_key[0]), 1);
	KUNIT_EXPECT_FALSE(test, nhca_rkey_ref_valid(&rkm_qp[0].slot[0]));
	rkm_release(&rkm_qp[0], 0);
	rkm_hold(&rkm_qp[0], 0, rkm_key[1]);
	KUNIT_EXPECT_TRUE(test, nhca_rkey_ref_valid(&rkm_qp[0].slot[0]));
	KUNIT_EXPECT_EQ(test, nhca_rkm_sweep(&rkm_pd[0], rkm_key[1]), 1);
}

/* ---- random histories and a model of the reference's manager ---- */

/**
 * struct rkm_model - the reference's key memory, FIG. 10
 * @pd:    index of each QP's domain
 * @valid: valid bit of each slot
 * @key:   key in each slot
 */
static struct rkm_model {
	unsigned int pd[RKM_QPS];
	bool valid[RKM_QPS][RKM_SLOTS];
	u32 key[RKM_QPS][RKM_SLOTS];
} rkm_model;

/* Sweep the model as FIG. 12 says. Return: number of refs revoked. */
static unsigned int rkm_model_sweep(unsigned int pd, u32 key)
{
	unsigned int q, s, revoked = 0;

	for (q = 0; q < RKM_QPS; q++) {
		if (rkm_model.pd[q] != pd)
			continue;
		for (s = 0; s < RKM_SLOTS; s++) {
			if (!rkm_model.valid[q][s] || rkm_model.key[q][s] != key)
				continue;
			rkm_model.valid[q][s] = false;
			revoked++;
		}
	}
	return revoked;
}

static unsigned int rkm_model_count(void)
{
	unsigned int q, s, n = 0;

	for (q = 0; q < RKM_QPS; q++)
		for (s = 0; s < RKM_SLOTS; s++)
			n += rkm_model.valid[q][s];
	return n;
}

/**
 * struct rkm_history - state of a random history
 * @rnd:     random number generator
 * @pd:      index of the domain of the sweep in progress
 * @key:     index of the key of this sweep; no new ref of the key is taken in this domain during
 *           the sweep
 * @under_way: a sweep is in progress
 * @revoked: refs that were valid in the model and that this sweep has revoked
 * @steps:   steps of the history so far, each with one action
 * @sweeps:  sweeps that are done
 * @total:   refs that these sweeps have revoked
 */
struct rkm_history {
	struct rnd_state rnd;
	unsigned int pd;
	unsigned int key;
	bool under_way;
	unsigned int revoked;
	unsigned int steps;
	unsigned int sweeps;
	unsigned long total;
};

static unsigned int rkm_rnd(struct rkm_history *hi, unsigned int n)
{
	return prandom_u32_state(&hi->rnd) % n;
}

static void rkm_do_release(unsigned int q, unsigned int s)
{
	rkm_release(&rkm_qp[q], s);
	rkm_model.valid[q][s] = false;
}

static void rkm_do_slot(struct rkm_history *hi)
{
	unsigned int q = rkm_rnd(hi, RKM_QPS), s = rkm_rnd(hi, RKM_SLOTS);
	/* the first keys of the table are used more often than the last keys */
	unsigned int k = rkm_rnd(hi, rkm_rnd(hi, RKM_KEYS) + 1);

	rkm_do_release(q, s);
	if (!rkm_rnd(hi, 4))
		return;
	if (hi->under_way && rkm_model.pd[q] == hi->pd && k == hi->key)
		return;
	rkm_hold(&rkm_qp[q], s, rkm_key[k]);
	rkm_model.key[q][s] = rkm_key[k];
	rkm_model.valid[q][s] = true;
}

/*
 * Move a QP to a random domain. In half of the cases, a QP that had a valid ref in slot 0 takes a
 * ref of the same key again in the new domain, unless the sweep in progress closes the key there.
 */
static void rkm_do_move(struct rkm_history *hi)
{
	unsigned int q = rkm_rnd(hi, RKM_QPS), pd = rkm_rnd(hi, RKM_PDS), s;
	bool again = rkm_rnd(hi, 2) && rkm_model.valid[q][0];
	u32 key = rkm_model.key[q][0];

	for (s = 0; s < RKM_SLOTS; s++)
		rkm_do_release(q, s);
	rkm_model.pd[q] = pd;
	rkm_qp[q].pd = &rkm_pd[pd];
	if (!again || (hi->under_way && pd == hi->pd && key == rkm_key[hi->key]))
		return;
	rkm_hold(&rkm_qp[q], 0, key);
	rkm_model.key[q][0] = key;
	rkm_model.valid[q][0] = true;
}

/*
 * Do a whole sweep. Expect that it revokes as many refs as the model's sweep. Return: false if not.
 */
static bool rkm_do_sweep(struct kunit *test, struct rkm_history *hi)
{
	unsigned int pd = rkm_rnd(hi, RKM_PDS), k = rkm_rnd(hi, rkm_rnd(hi, RKM_KEYS) + 1);
	unsigned int want, got;

	/*
	 * skip a sweep of the same key, because its revocations would be missing in the count of
	 * the sweep in progress
	 */
	if (hi->under_way && pd == hi->pd && k == hi->key)
		return true;
	want = rkm_model_sweep(pd, rkm_key[k]);
	got = nhca_rkm_sweep(&rkm_pd[pd], rkm_key[k]);
	KUNIT_EXPECT_EQ_MSG(test, got, want, "step %u", hi->steps);
	hi->sweeps++;
	hi->total += got;
	return got == want;
}

/*
 * Do a step of the sweep in progress, or begin a sweep. Then clear the model's valid bits of the
 * refs that the step has revoked, if domain and key match. After the last step, a sweep of the
 * model must find no more refs, and the sweep must have counted as many refs as were cleared in the
 * model. Return: false if not.
 */
static bool rkm_do_step(struct kunit *test, struct rkm_history *hi)
{
	unsigned int q, s;
	bool done, ok;

	if (!hi->under_way) {
		hi->pd = rkm_rnd(hi, RKM_PDS);
		hi->key = rkm_rnd(hi, RKM_KEYS / 4);
		hi->revoked = 0;
		hi->under_way = true;
		nhca_sweep_start(&rkm_sweep, &rkm_pd[hi->pd], rkm_key[hi->key]);
	}
	done = nhca_sweep_step(&rkm_sweep, 1 + rkm_rnd(hi, 5));
	for (q = 0; q < RKM_QPS; q++) {
		if (rkm_model.pd[q] != hi->pd)
			continue;
		for (s = 0; s < RKM_SLOTS; s++) {
			if (!rkm_model.valid[q][s] || rkm_model.key[q][s] != rkm_key[hi->key] ||
			    nhca_rkey_ref_valid(&rkm_qp[q].slot[s]))
				continue;
			rkm_model.valid[q][s] = false;
			hi->revoked++;
		}
	}
	if (!done)
		return true;
	hi->under_way = false;
	hi->sweeps++;
	hi->total += hi->revoked;
	ok = rkm_sweep.revoked == hi->revoked && !rkm_model_sweep(hi->pd, rkm_key[hi->key]);
	KUNIT_EXPECT_TRUE_MSG(test, ok, "step %u: %u revoked, %u counted, or a ref left",
			      hi->steps, hi->revoked, rkm_sweep.revoked);
	return ok;
}

static bool rkm_as_model(struct kunit *test, const struct rkm_history *hi)
{
	unsigned int q, s;

	for (q = 0; q < RKM_QPS; q++) {
		for (s = 0; s < RKM_SLOTS; s++) {
			const struct nhca_rkey_ref *h = &rkm_qp[q].slot[s];

			if (nhca_rkey_ref_valid(h) == rkm_model.valid[q][s] &&
			    hlist_unhashed(&h->node) != rkm_model.valid[q][s])
				continue;
			KUNIT_FAIL(test, "step %u: QP %u key %u: valid %d, model %d", hi->steps,
				   q, s, nhca_rkey_ref_valid(h), rkm_model.valid[q][s]);
			return false;
		}
	}
	return true;
}

static void rkm_count(const struct nhca_rkey_ref *h, void *arg)
{
	unsigned int *n = arg;

	if ((h->qpn & ~(RKM_QPS - 1)) == RKM_QPN)
		(*n)++;
}

/*
 * In random histories the manager revokes exactly the refs that the model of the reference revokes.
 */
static void rkm_random_histories(struct kunit *test)
{
	u32 seed = get_random_u32();
	struct rkm_history hi = {};
	unsigned int n;
	bool ok = true;

	kunit_info(test, "seed %#x", seed);
	prandom_seed_state(&hi.rnd, seed);
	memset(&rkm_model, 0, sizeof(rkm_model));
	for (hi.steps = 0; ok && hi.steps < RKM_HISTORY; hi.steps++) {
		switch (rkm_rnd(&hi, 16)) {
		case 0:
			rkm_do_move(&hi);
			break;
		case 1:
		case 2:
			ok = rkm_do_sweep(test, &hi);
			break;
		case 3:
		case 4:
		case 5:
			ok = rkm_do_step(test, &hi);
			break;
		default:
			rkm_do_slot(&hi);
		}
		ok = rkm_as_model(test, &hi) && ok;
		if (!(hi.steps % 1024)) {
			n = 0;
			nhca_rkm_walk(rkm_count, &n);
			KUNIT_EXPECT_EQ_MSG(test, n, rkm_model_count(), "step %u", hi.steps);
		}
	}
	kunit_info(test, "%u steps, %u sweeps revoked %lu refs", hi.steps, hi.sweeps, hi.total);
	KUNIT_EXPECT_EQ(test, hi.steps, RKM_HISTORY);
	KUNIT_EXPECT_GT(test, hi.total, 1000);
}

static struct kunit_case rkm_cases[] = {
	KUNIT_CASE(rkm_fig13_normal_operation),
	KUNIT_CASE(rkm_fig14_completion),
	KUNIT_CASE(rkm_fig15_pd_mismatch),
	KUNIT_CASE(rkm_fig16_several_keys_match),
	KUNIT_CASE(rkm_fig17_receive_between_steps),
	KUNIT_CASE(rkm_concurrent_sweeps),
	KUNIT_CASE(rkm_put_without_ref),
	KUNIT_CASE(rkm_random_histories),
	{}
};

static struct kunit_suite rkm_suite = {
	.name = "nhca_rkm",
	.init = rkm_init_test,
	.exit = rkm_exit_test,
	.test_cases = rkm_cases,
};

kunit_test_suite(rkm_suite);
