// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit: packet memory blocks (PMBs) and address range registers (ARRs): the figures and claims of
 * the reference for direct RDMA, and random histories compared with a model of the owners.
 */
#include <kunit/test.h>
#include <linux/mm.h>
#include <linux/prandom.h>

#include "../direct/store.h"

#define MODEL_STEPS	100000
#define MODEL_PMBS	12
#define MODEL_ARRS	40

/**
 * struct direct_fixture - objects of each test
 * @pool:  pool; made by make_pool()
 * @store: two regions of @pool
 * @f:     two requesters or responders
 * @told: number of times that an owner in @f was resumed
 */
struct direct_fixture {
	struct nhca_direct_pool *pool;
	struct nhca_store store[2];
	struct nhca_fault *f[2];
	u32 told;
};

static void resumed(void *arg)
{
	u32 *n = arg;

	++*n;
}

static void no_io(struct nhca_direct_io *io)
{
}

static struct nhca_direct_pool *make_pool(struct kunit *test, u32 blocks, u32 ranges)
{
	struct direct_fixture *d = test->priv;
	int i;

	d->pool = kunit_kzalloc(test, sizeof(*d->pool), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, d->pool);
	KUNIT_ASSERT_EQ(test, nhca_direct_pool_init(d->pool, blocks, ranges), 0);
	KUNIT_ASSERT_EQ(test, nhca_io_init(d->pool), 0);
	for (i = 0; i < 2; i++) {
		d->store[i].pool = d->pool;
		d->store[i].length = SZ_1G;
		d->store[i].submit = no_io;
		nhca_store_init(&d->store[i]);
		d->f[i] = nhca_fault_alloc(resumed, &d->told);
		KUNIT_ASSERT_NOT_NULL(test, d->f[i]);
	}
	return d->pool;
}

static int direct_init(struct kunit *test)
{
	test->priv = kunit_kzalloc(test, sizeof(struct direct_fixture), GFP_KERNEL);
	return test->priv ? 0 : -ENOMEM;
}

static void direct_exit(struct kunit *test)
{
	struct direct_fixture *d = test->priv;
	int i;

	if (!d || !d->pool)
		return;
	for (i = 0; i < 2; i++) {
		nhca_store_stop(&d->store[i]);
		nhca_fault_free(d->f[i]);
	}
	KUNIT_EXPECT_EQ(test, d->pool->nfree_arrs, d->pool->ranges);
	nhca_io_fini(d->pool);
	nhca_direct_pool_fini(d->pool);
}

static struct nhca_arr *take(struct direct_fixture *d, int store, int f, u64 op, u64 index,
			     u32 total)
{
	struct nhca_arr_key key = {
		.store = &d->store[store],
		.fault = d->f[f],
		.op = op,
		.index = index,
	};
	struct nhca_arr *arr = nhca_arr_take(d->pool, &key, total, true);

	if (arr)
		list_add_tail(&arr->list, &key.store->queued);
	return arr;
}

static u8 owner(const struct direct_fixture *d, const struct nhca_arr *arr)
{
	return arr->pmb == NHCA_PMB_NONE ? NHCA_PMB_POOL : d->pool->pmbs[arr->pmb].owner;
}

/*
 * Release PMBs as a worker does. The worker calls nhca_live_wait() between the two steps; here no
 * live section runs. Return: number of free PMBs.
 */
static u32 reclaim(struct nhca_direct_pool *pool, u32 n)
{
	u64 epoch = nhca_direct_pool_release(pool, n);

	if (epoch)
		nhca_direct_pool_settle(pool, epoch);
	return pool->num - pool->allocated;
}

static u32 count(struct list_head *list)
{
	struct list_head *pos;
	u32 n = 0;

	list_for_each(pos, list)
		n++;
	return n;
}

/* FIG. 17: a fixed number of PMBs is set aside, none is allocated, and all ARRs are free. */
static void fig17_test(struct kunit *test)
{
	struct nhca_direct_pool *pool = make_pool(test, 32, 32);
	u32 i;

	/* steps 1702, 1704 and 1706 of the figure */
	KUNIT_EXPECT_EQ(test, pool->num, 32);
	KUNIT_EXPECT_EQ(test, pool->allocated, 0);
	KUNIT_EXPECT_EQ(test, pool->nfree_arrs, 32);
	KUNIT_EXPECT_EQ(test, count(&pool->free_pmbs), 32);
	for (i = 0; i < 32; i++)
		KUNIT_EXPECT_EQ(test, pool->pmbs[i].owner, NHCA_PMB_POOL);
}

/*
 * FIG. 18a, step by step: a DRDMA Write of one block. The driver's ARR states stand for the bits
 * PCI Valid and BR Valid of the figure.
 */
static void fig18a_test(struct kunit *test)
{
	struct nhca_direct_pool *pool = make_pool(test, 32, 32);
	struct direct_fixture *d = test->priv;
	struct nhca_arr *arr;

	spin_lock_bh(&pool->lock);
	/* 1804 to 1808: an ARR is allocated; PCI Valid belongs to the I/O, which has not begun */
	arr = take(d, 0, 0, 1, 2, PAGE_SIZE);
	KUNIT_ASSERT_NOT_NULL(test, arr);
	KUNIT_EXPECT_EQ(test, arr->state, NHCA_ARR_QUEUED);
	KUNIT_EXPECT_EQ(test, arr->total, PAGE_SIZE);
	KUNIT_EXPECT_EQ(test, arr->pmb, NHCA_PMB_NONE);
	KUNIT_EXPECT_EQ(test, pool->allocated, 0);
	/* 1822: a PMB is allocated and its number stored; 1812: the disk may write to it */
	KUNIT_ASSERT_TRUE(test, nhca_arr_bind(pool, arr));
	KUNIT_EXPECT_EQ(test, pool->allocated, 1);
	KUNIT_EXPECT_EQ(test, arr->state, NHCA_ARR_FILLING);
	KUNIT_EXPECT_EQ(test, owner(d, arr), NHCA_PMB_DEVICE);
	/* 1816: the transfer is complete: PCI Valid is cleared, BR Valid is set */
	nhca_arr_filled(pool, arr, PAGE_SIZE);
	KUNIT_EXPECT_EQ(test, arr->got, arr->total);
	KUNIT_EXPECT_EQ(test, arr->state, NHCA_ARR_READY);
	KUNIT_EXPECT_EQ(test, owner(d, arr), NHCA_PMB_ADAPTER);
	/* 1832, 1834: a packet has all bytes of the ARR, so no later packet needs them */
	nhca_arr_give(pool, arr, PAGE_SIZE);
	KUNIT_EXPECT_EQ(test, arr->count, PAGE_SIZE);
	KUNIT_EXPECT_EQ(test, arr->state, NHCA_ARR_SENT);
	/* BR Valid is cleared and the PMB is free only when no packet has the page */
	get_page(nhca_arr_page(pool, arr));
	KUNIT_EXPECT_EQ(test, reclaim(pool, 1), 31);
	put_page(nhca_arr_page(pool, arr));
	KUNIT_EXPECT_EQ(test, reclaim(pool, 1), 32);
	KUNIT_EXPECT_EQ(test, arr->state, NHCA_ARR_FREE);
	KUNIT_EXPECT_EQ(test, pool->most, 1);
	spin_unlock_bh(&pool->lock);
}

/* FIG. 19b: any PMB serves any ARR; ARRs and PMBs are allocated independently. */
static void fig19b_test(struct kunit *test)
{
	static const struct {
		u32 range, pmb;
	} map[] = { { 31, 1 }, { 2, 31 }, { 1, 0 }, { 0, 2 } };
	struct nhca_direct_pool *pool = make_pool(test, 32, 32);
	struct direct_fixture *d = test->priv;
	struct nhca_arr_key key = { .store = &d->store[0], .fault = d->f[0], .op = 1 };
	struct nhca_arr *arr;
	int i;

	spin_lock_bh(&pool->lock);
	/* first allocate all ARRs, then give each ARR the PMB of the table */
	for (i = 0; i < ARRAY_SIZE(map); i++)
		KUNIT_ASSERT_NOT_NULL(test, take(d, 0, 0, 1, map[i].range, PAGE_SIZE));
	for (i = 0; i < ARRAY_SIZE(map); i++) {
		key.index = map[i].range;
		arr = nhca_arr_find(pool, &key);
		KUNIT_ASSERT_NOT_NULL(test, arr);
		list_move(&pool->pmbs[map[i].pmb].list, &pool->free_pmbs);
		KUNIT_ASSERT_TRUE(test, nhca_arr_bind(pool, arr));
		KUNIT_EXPECT_EQ(test, arr->pmb, map[i].pmb);
		nhca_arr_filled(pool, arr, PAGE_SIZE);
	}
	spin_unlock_bh(&pool->lock);
}

/* FIG. 21: with an MTU of 2048, an ARR of 4096 bytes is in use until two packets have its bytes. */
static void fig21_test(struct kunit *test)
{
	struct nhca_direct_pool *pool = make_pool(test, 16, 32);
	struct direct_fixture *d = test->priv;
	struct nhca_arr *arr;

	spin_lock_bh(&pool->lock);
	arr = take(d, 0, 0, 1, 0, 4096);
	KUNIT_ASSERT_NOT_NULL(test, arr);
	KUNIT_ASSERT_TRUE(test, nhca_arr_bind(pool, arr));
	nhca_arr_filled(pool, arr, PAGE_SIZE);
	nhca_arr_give(pool, arr, 2048);
	KUNIT_EXPECT_EQ(test, arr->state, NHCA_ARR_READY);
	KUNIT_EXPECT_EQ(test, arr->count, 2048);
	/* the first packet is sent again */
	nhca_arr_give(pool, arr, 2048);
	KUNIT_EXPECT_EQ(test, arr->count, 2048);
	nhca_arr_give(pool, arr, 4096);
	KUNIT_EXPECT_EQ(test, arr->state, NHCA_ARR_SENT);
	spin_unlock_bh(&pool->lock);
}

/*
 * Claims 38, 40, 41: a PMB serves ARRs one after the other, even ARRs of distant blocks and of two
 * queue pairs. A block that is read again gets another PMB while a packet refers to its first PMB.
 */
static void reuse_test(struct kunit *test)
{
	struct nhca_direct_pool *pool = make_pool(test, 16, 16);
	struct direct_fixture *d = test->priv;
	struct nhca_arr *arr;
	u32 pmb[16];
	int i;

	spin_lock_bh(&pool->lock);
	/* only one PMB is free: the other 15 PMBs are in use */
	for (i = 0; i < 15; i++) {
		arr = take(d, 1, 1, 9, i, PAGE_SIZE);
		KUNIT_ASSERT_TRUE(test, arr && nhca_arr_bind(pool, arr));
	}
	for (i = 0; i < 16; i++) {
		arr = take(d, i % 2, i / 2 % 2, i, (u64)i << 16, PAGE_SIZE);
		KUNIT_ASSERT_TRUE(test, arr && nhca_arr_bind(pool, arr));
		pmb[i] = arr->pmb;
		KUNIT_EXPECT_EQ(test, pmb[i], pmb[0]);
		KUNIT_EXPECT_EQ(test, pool->allocated, 16);
		nhca_arr_filled(pool, arr, PAGE_SIZE);
		nhca_arr_give(pool, arr, PAGE_SIZE);
		KUNIT_ASSERT_EQ(test, reclaim(pool, 1), 1);
	}
	/* the same block is read twice */
	arr = take(d, 0, 0, 100, 5, PAGE_SIZE);
	KUNIT_ASSERT_TRUE(test, arr && nhca_arr_bind(pool, arr));
	nhca_arr_filled(pool, arr, PAGE_SIZE);
	get_page(nhca_arr_page(pool, arr));
	pmb[0] = arr->pmb;
	nhca_arr_give(pool, arr, PAGE_SIZE);
	nhca_arr_drop(pool, arr);
	KUNIT_EXPECT_EQ(test, reclaim(pool, 1), 0);
	/* the I/O of another ARR ends, so its PMB becomes free */
	arr = list_first_entry(&d->store[1].arrs, struct nhca_arr, by_store);
	nhca_arr_filled(pool, arr, 0);
	KUNIT_EXPECT_EQ(test, reclaim(pool, 1), 1);
	arr = take(d, 0, 0, 101, 5, PAGE_SIZE);
	KUNIT_ASSERT_TRUE(test, arr && nhca_arr_bind(pool, arr));
	KUNIT_EXPECT_NE(test, arr->pmb, pmb[0]);
	nhca_arr_filled(pool, arr, 0);
	put_page(pool->pmbs[pmb[0]].page);
	list_for_each_entry(arr, &d->store[1].arrs, by_store)
		if (arr->state == NHCA_ARR_FILLING)
			nhca_arr_filled(pool, arr, 0);
	spin_unlock_bh(&pool->lock);
}

/* Owners queue for an ARR, and are resumed one by one as ARRs become free. */
static void arr_queue_test(struct kunit *test)
{
	struct nhca_direct_pool *pool = make_pool(test, 16, 16);
	struct direct_fixture *d = test->priv;
	struct nhca_arr *arr, *next;
	int i;

	spin_lock_bh(&pool->lock);
	for (i = 0; i < 16; i++)
		KUNIT_ASSERT_NOT_NULL(test, take(d, 0, 0, 1, i, PAGE_SIZE));
	KUNIT_EXPECT_PTR_EQ(test, take(d, 0, 0, 1, 16, PAGE_SIZE), NULL);
	spin_unlock_bh(&pool->lock);

	local_bh_disable();
	for (i = 0; i < 2; i++)
		KUNIT_EXPECT_EQ(test, nhca_store_want(&d->store[1].backing, d->f[i], 7, 0, 100,
						      false), -EAGAIN);
	KUNIT_EXPECT_EQ(test, count(&pool->waiters), 2);
	KUNIT_EXPECT_TRUE(test, nhca_fault_waiting(d->f[0]));
	spin_lock(&pool->lock);
	arr = list_first_entry(&d->store[0].arrs, struct nhca_arr, by_store);
	nhca_arr_drop(pool, arr);
	spin_unlock(&pool->lock);
	nhca_direct_pool_complete(pool);
	KUNIT_EXPECT_EQ(test, d->told, 1);
	KUNIT_EXPECT_FALSE(test, nhca_fault_waiting(d->f[0]));
	KUNIT_EXPECT_TRUE(test, nhca_fault_waiting(d->f[1]));
	spin_lock(&pool->lock);
	list_for_each_entry_safe(arr, next, &d->store[0].arrs, by_store)
		nhca_arr_drop(pool, arr);
	spin_unlock(&pool->lock);
	nhca_direct_pool_complete(pool);
	KUNIT_EXPECT_EQ(test, d->told, 2);
	local_bh_enable();
}

/* ---- random histories beside a model ---- */

/**
 * struct model - the owner of each PMB, and the PMB of each ARR, without the driver's structures
 * @who:   for each PMB: 0: the pool; 1: a disk; 2: an ARR; 3: no ARR, but packets may still
 *         refer to its page (resting)
 * @refs:  for each PMB: references of packets to its page
 * @mark:  not used
 * @bound: for each ARR: index of its PMB plus 1; 0: the ARR has no PMB
 * @wrote: for each ARR: the value that the disk wrote for the ARR
 */
struct model {
	u8 who[MODEL_PMBS];
	u8 refs[MODEL_PMBS];
	u32 mark[MODEL_PMBS];
	u32 bound[MODEL_ARRS];
	u32 wrote[MODEL_ARRS];
};

/*
 * Compare pool and model: each PMB has the right owner, a page of the pool or of a disk has no
 * other reference, each ARR has its PMB and the bytes of its disk, and the number of allocated PMBs
 * is right.
 */
static void model_check(struct kunit *test, const struct nhca_direct_pool *pool, struct model *m)
{
	static const u8 owners[] = {
		NHCA_PMB_POOL, NHCA_PMB_DEVICE, NHCA_PMB_ADAPTER, NHCA_PMB_ADAPTER
	};
	u32 i, used = 0, bad = 0;

	for (i = 0; i < MODEL_PMBS; i++) {
		bad += pool->pmbs[i].owner != owners[m->who[i]];
		bad += pool->pmbs[i].bound != (m->who[i] == 1 || m->who[i] == 2);
		/* only the pool itself has a reference to a page that the pool or a disk owns */
		bad += m->who[i] < 2 && page_ref_count(pool->pmbs[i].page) != 1;
		used += m->who[i] != 0;
	}
	for (i = 0; i < MODEL_ARRS; i++) {
		const struct nhca_arr *arr = &pool->arrs[i];

		bad += (arr->pmb == NHCA_PMB_NONE ? 0 : arr->pmb + 1) != m->bound[i];
		/* the page of an ARR has the value that the disk wrote for the ARR */
		if (arr->state == NHCA_ARR_READY || arr->state == NHCA_ARR_SENT)
			bad += *(u32 *)page_address(pool->pmbs[arr->pmb].page) != m->wrote[i];
	}
	bad += pool->allocated != used || used > pool->num;
	KUNIT_ASSERT_EQ(test, bad, 0);
}

/* Update the model after calls that may have released PMBs. */
static void model_follow(struct nhca_direct_pool *pool, struct model *m)
{
	u32 i;

	for (i = 0; i < MODEL_ARRS; i++)
		if (m->bound[i] && pool->arrs[i].pmb == NHCA_PMB_NONE) {
			m->who[m->bound[i] - 1] = 3;
			m->bound[i] = 0;
		}
}

static void model_step(struct kunit *test, struct rnd_state *rnd, struct model *m, u32 step)
{
	struct direct_fixture *d = test->priv;
	struct nhca_direct_pool *pool = d->pool;
	u32 what = prandom_u32_state(rnd) % 8, n = prandom_u32_state(rnd) % MODEL_ARRS, i;
	struct nhca_arr *arr = &pool->arrs[n];

	switch (what) {
	case 0:
	case 1:
		take(d, n % 2, n / 2 % 2, step, n, 1 + prandom_u32_state(rnd) % PAGE_SIZE);
		break;
	case 2:
	case 3:
		if (arr->state != NHCA_ARR_QUEUED || !nhca_arr_bind(pool, arr))
			break;
		/* the PMB must have been free in the model */
		KUNIT_ASSERT_EQ(test, m->who[arr->pmb], 0);
		m->who[arr->pmb] = 1;
		m->bound[n] = arr->pmb + 1;
		break;
	case 4:
		if (arr->state != NHCA_ARR_FILLING)
			break;
		*(u32 *)page_address(pool->pmbs[arr->pmb].page) = step;
		m->wrote[n] = step;
		m->who[arr->pmb] = 2;
		nhca_arr_filled(pool, arr, step % 16 ? PAGE_SIZE : 0);
		break;
	case 5:
		if (arr->state != NHCA_ARR_READY && arr->state != NHCA_ARR_SENT)
			break;
		i = arr->pmb;
		nhca_arr_give(pool, arr, 1 + prandom_u32_state(rnd) % PAGE_SIZE);
		/* let another packet refer to the page */
		if (step % 2 && m->refs[i] < 3) {
			get_page(pool->pmbs[i].page);
			m->refs[i]++;
		}
		break;
	case 6:
		i = n % MODEL_PMBS;
		if (m->refs[i]) {
			m->refs[i]--;
			put_page(pool->pmbs[i].page);
		}
		break;
	default:
		if (step % 4 == 0 && arr->state != NHCA_ARR_FREE &&
		    arr->state != NHCA_ARR_FILLING) {
			nhca_arr_drop(pool, arr);
			break;
		}
		reclaim(pool, 1 + n % 3);
		model_follow(pool, m);
		for (i = 0; i < MODEL_PMBS; i++)
			if (m->who[i] == 3 && pool->pmbs[i].owner == NHCA_PMB_POOL) {
				/* no packet may refer to a PMB that becomes free */
				KUNIT_ASSERT_EQ(test, m->refs[i], 0);
				m->who[i] = 0;
			}
	}
	model_follow(pool, m);
}

static void model_test(struct kunit *test)
{
	struct nhca_direct_pool *pool = make_pool(test, MODEL_PMBS, MODEL_ARRS);
	struct model *m = kunit_kzalloc(test, sizeof(*m), GFP_KERNEL);
	struct rnd_state rnd;
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, m);
	prandom_seed_state(&rnd, 20);
	for (i = 1; i <= MODEL_STEPS; i++) {
		spin_lock_bh(&pool->lock);
		model_step(test, &rnd, m, i);
		model_check(test, pool, m);
		spin_unlock_bh(&pool->lock);
		if (i % 1000 == 0)
			cond_resched();
	}
	KUNIT_EXPECT_EQ(test, pool->most, MODEL_PMBS);
	spin_lock_bh(&pool->lock);
	for (i = 0; i < MODEL_ARRS; i++)
		if (pool->arrs[i].state == NHCA_ARR_FILLING)
			nhca_arr_filled(pool, &pool->arrs[i], 0);
	for (i = 0; i < MODEL_PMBS; i++)
		for (; m->refs[i]; m->refs[i]--)
			put_page(pool->pmbs[i].page);
	spin_unlock_bh(&pool->lock);
}

static struct kunit_case direct_cases[] = {
	KUNIT_CASE(fig17_test),
	KUNIT_CASE(fig18a_test),
	KUNIT_CASE(fig19b_test),
	KUNIT_CASE(fig21_test),
	KUNIT_CASE(reuse_test),
	KUNIT_CASE(arr_queue_test),
	KUNIT_CASE(model_test),
	{}
};

static struct kunit_suite direct_suite = {
	.name = "nhca_direct",
	.init = direct_init,
	.exit = direct_exit,
	.test_cases = direct_cases,
};

kunit_test_suite(direct_suite);
