// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit: a peer that has seen keys, QPNs, PVOs or rCxt keys of this host cannot guess the next
 * number. Keys and QPNs do not come back soon.
 */
#include <linux/slab.h>
#include <linux/sort.h>
#include <linux/vmalloc.h>

#include "../rcxt/pool.h"
#include "../transport/engine.h"
#include "guess.h"
#include "regions.h"

/* minimum number of guesses in a test: 25 for each number */
#define GUESSES		1000000
#define DRAWN		40000

/* Return: the next number of a series. @i: number of earlier calls. */
typedef u32 (*draw_fn)(struct fixture *f, u32 i);

static u32 draw_counter(struct fixture *f, u32 i)
{
	return 0xfffff000 + i * 256 + 77;
}

static u32 draw_lcg(struct fixture *f, u32 i)
{
	static u32 state = 5;

	state = state * 1664525 + 1013904223;
	return state;
}

/* a counter multiplied by a matrix of bits, which xor and shifts compute */
static u32 draw_matrix(struct fixture *f, u32 i)
{
	i ^= i << 13;
	i ^= i >> 17;
	i ^= i << 5;
	return i ^ 0x5eed5eed;
}

static u32 draw_key(struct fixture *f, u32 i)
{
	static struct nhca_mkey mk[2];
	struct nhca_mkey *k = &mk[i % 2];

	/* the previous key still exists when the next key is drawn */
	if (i > 1)
		nhca_mkey_del(k);
	*k = (struct nhca_mkey){ .pd = f->key_user.pd };
	if (nhca_mkey_add(k))
		return 0;
	if (i == DRAWN - 1) {
		u32 key = k->key;

		nhca_mkey_del(&mk[0]);
		nhca_mkey_del(&mk[1]);
		return key;
	}
	return k->key;
}

static u32 draw_qpn(struct fixture *f, u32 i)
{
	u32 qpn;

	if (nhca_qpn_reserve(&qpn))
		return 0;
	nhca_qpn_free(qpn);
	return qpn;
}

static struct nhca_range guess_range;

static u32 draw_pvo(struct fixture *f, u32 i)
{
	nhca_range_rekey(&guess_range);
	return guess_range.key;
}

static struct nhca_rcxt_pool guess_pool;
static struct nhca_rcxt_list guess_list = NHCA_RCXT_LIST_INIT;

/* each call gets the next rCxt of the pool, as a program that acquires several rCxts does */
static u32 draw_rcxt(struct fixture *f, u32 i)
{
	struct nhca_rcxt_id id = {};

	if (!nhca_rcxt_acquire(&guess_pool, 1, &guess_list, 1, &id))
		nhca_rcxt_release(&guess_pool, &guess_list, &guess_pool.rcxts[id.index]);
	return id.key;
}

static struct guesser *guess_run(struct kunit *test, draw_fn draw, u32 mask)
{
	struct guesser *g = kunit_kzalloc(test, sizeof(*g), GFP_KERNEL);
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, g);
	g->mask = mask;
	for (i = 0; i < DRAWN; i++) {
		guess_next(g, draw(test->priv, i));
		if (i % 64 == 0)
			cond_resched();
	}
	return g;
}

/* The guesser guesses the numbers of weak generators; otherwise its failure would prove nothing. */
static void guess_weak(struct kunit *test)
{
	static const draw_fn weak[] = { draw_counter, draw_lcg, draw_matrix };
	struct guesser *g;
	int i;

	for (i = 0; i < ARRAY_SIZE(weak); i++) {
		g = guess_run(test, weak[i], U32_MAX);
		KUNIT_EXPECT_GT_MSG(test, g->hits, (DRAWN - GUESS_SEEN) / 3, "generator %d", i);
	}
}

static void guess_expect_chance(struct kunit *test, struct guesser *g, u64 range)
{
	KUNIT_EXPECT_GE(test, g->guesses, GUESSES);
	KUNIT_EXPECT_LE(test, g->hits, guess_limit(g, range));
}

/* L_Keys and R_Keys are guessed no better than by chance. */
static void guess_keys(struct kunit *test)
{
	guess_expect_chance(test, guess_run(test, draw_key, U32_MAX), 1ULL << 32);
}

/* The index of a key (its upper 24 bits) is guessed no better than by chance. */
static void guess_indices(struct kunit *test)
{
	guess_expect_chance(test, guess_run(test, draw_key, 0xffffff00), 1ULL << 24);
}

/* QP numbers are guessed no better than by chance. */
static void guess_qpns(struct kunit *test)
{
	guess_expect_chance(test, guess_run(test, draw_qpn, NHCA_QPN_MASK),
			    NHCA_QPN_MASK - NHCA_QPN_MIN);
}

/* Keys of PVOs are guessed no better than by chance. */
static void guess_pvos(struct kunit *test)
{
	const struct nhca_owner owner = { .kind = NHCA_OWNER_JOB, .id = 1 };
	struct guesser *g;

	KUNIT_ASSERT_EQ(test, nhca_range_alloc(&guess_range, PAGE_SHIFT, 1, &owner), 0);
	g = guess_run(test, draw_pvo, NHCA_TCE_KEYS - 1);
	nhca_range_free(&guess_range);
	guess_expect_chance(test, g, NHCA_TCE_KEYS - 1);
}

static void guess_rcxts_of(struct kunit *test, u32 size)
{
	struct guesser *g;

	KUNIT_ASSERT_EQ(test, nhca_rcxt_pool_init(&guess_pool, size), 0);
	g = guess_run(test, draw_rcxt, U32_MAX);
	nhca_rcxt_pool_destroy(&guess_pool);
	guess_expect_chance(test, g, 1ULL << 32);
}

/* The keys that one rCxt has had do not help to guess its next key. */
static void guess_rcxt_again(struct kunit *test)
{
	guess_rcxts_of(test, 1);
}

/* The keys of all other rCxts do not help to guess the key of an rCxt. */
static void guess_rcxts(struct kunit *test)
{
	guess_rcxts_of(test, DRAWN);
}

static int guess_cmp(const void *a, const void *b)
{
	return *(const u32 *)a < *(const u32 *)b ? -1 : *(const u32 *)a > *(const u32 *)b;
}

/* Expect that the DRAWN numbers of @draw all differ and are in the range @low to @high. */
static void guess_unique(struct kunit *test, draw_fn draw, u32 low, u32 high)
{
	u32 *numbers = vmalloc(array_size(DRAWN, sizeof(u32)));
	u32 i, same = 0;

	KUNIT_ASSERT_NOT_NULL(test, numbers);
	for (i = 0; i < DRAWN; i++)
		numbers[i] = draw(test->priv, i);
	sort(numbers, DRAWN, sizeof(u32), guess_cmp, NULL);
	for (i = 1; i < DRAWN; i++)
		same += numbers[i] == numbers[i - 1];
	KUNIT_EXPECT_EQ(test, same, 0);
	KUNIT_EXPECT_GE(test, numbers[0], low);
	KUNIT_EXPECT_LE(test, numbers[DRAWN - 1], high);
	vfree(numbers);
}

/* No L_Key or R_Key comes twice within DRAWN keys, although earlier keys are deleted. */
static void guess_keys_unique(struct kunit *test)
{
	guess_unique(test, draw_key, 256, U32_MAX);
}

/* No QP number comes twice within DRAWN numbers, although each is freed. */
static void guess_qpns_unique(struct kunit *test)
{
	guess_unique(test, draw_qpn, NHCA_QPN_MIN, NHCA_QPN_MASK - 1);
}

static struct kunit_case guess_cases[] = {
	KUNIT_CASE(guess_weak),
	KUNIT_CASE(guess_keys),
	KUNIT_CASE(guess_indices),
	KUNIT_CASE(guess_qpns),
	KUNIT_CASE(guess_pvos),
	KUNIT_CASE(guess_rcxt_again),
	KUNIT_CASE(guess_rcxts),
	KUNIT_CASE(guess_keys_unique),
	KUNIT_CASE(guess_qpns_unique),
	{}
};

static struct kunit_suite guess_suite = {
	.name = "nhca_guess",
	.init = fixture_init,
	.exit = fixture_exit,
	.test_cases = guess_cases,
};

kunit_test_suite(guess_suite);
