// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit: windows that are bound and closed while other threads use their keys, on all CPUs.
 *
 * The suite checks key revocation: after a key was closed, only the owner reads or changes the
 * memory.
 */
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/jiffies.h>
#include <linux/random.h>
#include <linux/string.h>

#include "mw_fixture.h"
#include "threads.h"

#define OWNERS		6
#define BINDERS		2
#define RACE_MS		2000
#define CHUNK		512

/* content of a page while its key is open, after a peer's write, and while its key is closed */
#define PUBLIC		0x55
#define WRITTEN		0xaa
#define SECRET		0x5e

struct race {
	struct fixture *f;
	struct owner *owners;
	u32 nowners;
	atomic_t seen;		/* pieces with SECRET that a peer has read */
	atomic_t touched;	/* pages that a peer has changed after the close */
	atomic_t moved;		/* pieces that moved */
	atomic_t refused;	/* pieces that were refused */
	atomic_t wrong;		/* binds, closes and uses of open keys that failed */
};

/* a thread that binds its window to a page: in race_test() one of two, which are in two regions */
struct owner {
	struct race *race;
	struct task_struct *task;
	struct nhca_mw *mw;
	struct nhca_mr *mr[2];
	u8 *page[2];
	u64 va[2];
	u32 key;
	u64 key_va;
	unsigned int rounds;
};

/* do nothing, delay, or let other threads of this CPU run */
static void dawdle(void)
{
	switch (get_random_u32_below(8)) {
	case 0 ... 2:
		break;
	case 3 ... 5:
		udelay(get_random_u32_below(30));
		break;
	case 6:
		cond_resched();
		break;
	default:
		usleep_range(1, 20);
	}
}

static void owner_expect(struct owner *o, int err)
{
	if (err)
		atomic_inc(&o->race->wrong);
}

/* The key is closed, so no peer may read or change the page. */
static void owner_alone(struct owner *o, int i)
{
	memset(o->page[i], SECRET, PAGE_SIZE);
	dawdle();
	if (memchr_inv(o->page[i], SECRET, PAGE_SIZE))
		atomic_inc(&o->race->touched);
	memset(o->page[i], PUBLIC, PAGE_SIZE);
}

static void owner_bind(struct owner *o, int i)
{
	struct fixture *f = o->race->f;

	owner_expect(o, bind(f, o->mw, o->mr[i], o->va[i], PAGE_SIZE, REMOTE));
	WRITE_ONCE(o->key_va, o->va[i]);
	WRITE_ONCE(o->key, o->mw->mkey.key);
	dawdle();
}

static void owner_close(struct owner *o)
{
	struct fixture *f = o->race->f;
	u32 key = o->mw->mkey.key;

	if (o->mw->mkey.type == NHCA_MKEY_MW1)
		owner_expect(o, bind(f, o->mw, NULL, 0, 0, 0));
	else if (get_random_u32_below(2))
		owner_expect(o, local_inv(&f->qp, key, true));
	else
		owner_expect(o, remote_inv(&f->qp, key));
}

static int owner_run(void *arg)
{
	struct owner *o = arg;

	while (!kthread_should_stop()) {
		int i = get_random_u32_below(2);

		owner_bind(o, i);
		if (o->mw->mkey.type == NHCA_MKEY_MW1) {
			/* binding the window again also closes the old key */
			owner_bind(o, !i);
			owner_alone(o, i);
			i = !i;
		}
		owner_close(o);
		owner_alone(o, i);
		WRITE_ONCE(o->rounds, o->rounds + 1);
		cond_resched();
	}
	return 0;
}

/*
 * Move one piece by key or R_Key reference in a live section. Return: 0 if it has moved, or an
 * error.
 */
static int peer_piece(struct race *r, struct nhca_rkey_ref *h, u32 key, u64 va, u32 off, bool write)
{
	u8 buf[CHUNK];
	struct nhca_iter it;
	int err = 0;

	memset(buf, WRITTEN, sizeof(buf));
	nhca_live_enter();
	if (h)
		nhca_iter_rkey(&it, h, off, sizeof(buf), write);
	else
		err = nhca_iter_key(&it, &r->f->qp, key, va + off, sizeof(buf),
				    write ? IB_ACCESS_REMOTE_WRITE : IB_ACCESS_REMOTE_READ);
	if (!err)
		err = write ? nhca_iter_write(&it, buf, sizeof(buf)) :
			      nhca_iter_read(&it, buf, sizeof(buf));
	nhca_live_exit();
	if (err) {
		atomic_inc(&r->refused);
		return err;
	}
	atomic_inc(&r->moved);
	if (!write && memchr(buf, SECRET, sizeof(buf)))
		atomic_inc(&r->seen);
	return 0;
}

/* Move a message of several pieces; the owner may close the key between two of them. */
static void peer_message(struct race *r, u32 key, u64 va, bool write)
{
	struct nhca_rkey_ref h = {};
	u32 off;

	local_bh_disable();
	if (nhca_rkey_get(&h, &r->f->qp, key, va, PAGE_SIZE,
			  write ? IB_ACCESS_REMOTE_WRITE : IB_ACCESS_REMOTE_READ)) {
		local_bh_enable();
		return;
	}
	for (off = 0; off < PAGE_SIZE; off += CHUNK) {
		if (peer_piece(r, &h, 0, 0, off, write))
			break;
		/* the next packet comes later; only the R_Key reference is kept until then */
		local_bh_enable();
		dawdle();
		local_bh_disable();
	}
	nhca_rkey_put(&h);
	local_bh_enable();
}

static int peer_run(void *arg)
{
	struct race *r = arg;

	while (!kthread_should_stop()) {
		struct owner *o = &r->owners[get_random_u32_below(r->nowners)];
		bool write = get_random_u32_below(2);
		u32 key = READ_ONCE(o->key), off;
		u64 va = READ_ONCE(o->key_va);

		/* meanwhile the owner may close the key */
		dawdle();
		if (get_random_u32_below(2)) {
			peer_message(r, key, va, write);
		} else {
			off = get_random_u32_below(PAGE_SIZE - CHUNK);
			local_bh_disable();
			peer_piece(r, NULL, key, va, off, write);
			local_bh_enable();
		}
		cond_resched();
	}
	return 0;
}

/* Return: true if enough pieces have moved, and enough were refused, to test the race. */
static bool race_moved(const struct race *r)
{
	return atomic_read(&r->moved) > 100 && atomic_read(&r->refused) > 100;
}

/* Return: true if race_moved() is true and each owner has done more than 10 rounds. */
static bool race_enough(const struct race *r)
{
	u32 i;

	for (i = 0; i < r->nowners; i++)
		if (READ_ONCE(r->owners[i].rounds) <= 10)
			return false;
	return race_moved(r);
}

/* Run a peer on each CPU while the owners bind and close. */
static void race_with_peers(struct kunit *test, struct race *r)
{
	struct task_struct **peer;
	unsigned long begun;
	int cpu;

	peer = kunit_kcalloc(test, nr_cpu_ids, sizeof(*peer), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, peer);
	for_each_online_cpu(cpu)
		peer[cpu] = test_thread_start(peer_run, r, cpu);
	begun = jiffies;
	do {
		msleep(20);
	} while (test_goes_on(begun, msecs_to_jiffies(RACE_MS), race_enough(r)));
	for (cpu = 0; cpu < nr_cpu_ids; cpu++)
		test_thread_stop(peer[cpu]);
}

static void expect_promise(struct kunit *test, struct race *r)
{
	KUNIT_EXPECT_EQ(test, atomic_read(&r->seen), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&r->touched), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&r->wrong), 0);
	KUNIT_EXPECT_TRUE(test, race_moved(r));
	kunit_info(test, "%d pieces moved, %d refused\n", atomic_read(&r->moved),
		   atomic_read(&r->refused));
}

static void race_init(struct kunit *test, struct race *r, struct owner *owners, int n)
{
	struct fixture *f = test->priv;
	struct nhca_mr *mr[4];
	int i, j, k = 0;

	r->f = f;
	r->owners = owners;
	r->nowners = n;
	for (i = 0; i < ARRAY_SIZE(mr); i++)
		mr[i] = region(test, f->pd, BINDABLE | REMOTE);
	for (i = 0; i < n; i++) {
		owners[i].race = r;
		owners[i].mw = window(test, types[i % ARRAY_SIZE(types)]);
		for (j = 0; j < 2; j++, k++) {
			owners[i].mr[j] = mr[k % ARRAY_SIZE(mr)];
			owners[i].va[j] = IOVA + k / ARRAY_SIZE(mr) * PAGE_SIZE;
			owners[i].page[j] = page_address(f->pages[k % ARRAY_SIZE(mr) * PAGES +
								  k / ARRAY_SIZE(mr)]);
			memset(owners[i].page[j], PUBLIC, PAGE_SIZE);
		}
	}
}

/*
 * No byte moves by a closed key: no peer reads SECRET or changes a page whose key is closed.
 * Windows of all types are bound and closed while a peer runs on each CPU.
 */
static void race_test(struct kunit *test)
{
	struct owner *owners = kunit_kcalloc(test, OWNERS, sizeof(*owners), GFP_KERNEL);
	struct race *r = kunit_kzalloc(test, sizeof(*r), GFP_KERNEL);
	struct fixture *f = test->priv;
	int i, cpu = -1;

	KUNIT_ASSERT_TRUE(test, owners && r);
	race_init(test, r, owners, OWNERS);
	for (i = 0; i < OWNERS; i++) {
		cpu = cpumask_next(cpu, cpu_online_mask);
		if (cpu >= nr_cpu_ids)
			cpu = cpumask_first(cpu_online_mask);
		owners[i].task = test_thread_start(owner_run, &owners[i], cpu);
	}
	race_with_peers(test, r);
	for (i = 0; i < OWNERS; i++)
		test_thread_stop(owners[i].task);

	expect_promise(test, r);
	for (i = 0; i < OWNERS; i++)
		KUNIT_EXPECT_GT(test, owners[i].rounds, 10);
	for (i = 0; i < f->nmrs; i++)
		KUNIT_EXPECT_EQ(test, atomic_read(&f->mrs[i]->windows), 0);
}

/**
 * struct dereg - a region that is deregistered while threads bind windows to it
 * @race:   the peers and the owners
 * @owners: threads that bind; so few that at times no window is bound
 * @pages:  pages of the region
 * @lkey:   L_Key of the current region
 * @bound:  binds that succeeded
 * @unbound: binds that were refused
 */
struct dereg {
	struct race race;
	struct owner owners[BINDERS];
	struct page *pages[PAGES];
	u32 lkey;
	atomic_t bound, unbound;
};

static int binder_run(void *arg)
{
	struct owner *o = arg;
	struct dereg *d = container_of(o->race, struct dereg, race);
	struct fixture *f = o->race->f;
	struct nhca_send_wqe wqe;
	u64 va = o->va[0];

	while (!kthread_should_stop()) {
		wqe = bind_wqe(o->mw, NULL, va, PAGE_SIZE, REMOTE);
		wqe.mw.mr_lkey = READ_ONCE(d->lkey);
		if (bind_as(&f->qp, &wqe)) {
			atomic_inc(&d->unbound);
		} else {
			WRITE_ONCE(o->key_va, va);
			WRITE_ONCE(o->key, o->mw->mkey.key);
			atomic_inc(&d->bound);
			dawdle();
			/* the window is bound, so the region must still exist */
			if (!opens(&f->qp, o->mw->mkey.key, va, PAGE_SIZE, REMOTE))
				atomic_inc(&o->race->wrong);
			owner_close(o);
		}
		dawdle();
		cond_resched();
	}
	return 0;
}

static void dereg_make(struct kunit *test, struct dereg *d)
{
	struct fixture *f = test->priv;
	struct nhca_mr *mr = nhca_mr_alloc(f->dev, f->pd, BINDABLE | REMOTE);
	int i;

	KUNIT_ASSERT_FALSE(test, IS_ERR(mr));
	f->mrs[0] = mr;
	f->nmrs = 1;
	KUNIT_ASSERT_EQ(test, nhca_mr_map_pages(mr, d->pages, PAGES, 0, true), 0);
	for (i = 0; i < PAGES; i++)
		memset(page_address(d->pages[i]), PUBLIC, PAGE_SIZE);
	nhca_mr_start(mr, IOVA, LENGTH);
	WRITE_ONCE(d->lkey, mr->ibmr.lkey);
}

/*
 * Try to deregister the region until no window is bound to it. Then peers must not access its
 * memory.
 */
static void dereg_gone(struct kunit *test, struct dereg *d, unsigned int *busy)
{
	struct fixture *f = test->priv;
	int i, err;

	while ((err = nhca_mr_destroy(f->dev, &f->mrs[0]->ibmr)) == -EBUSY) {
		++*busy;
		dawdle();
	}
	KUNIT_EXPECT_EQ(test, err, 0);
	f->mrs[0] = NULL;
	for (i = 0; i < PAGES; i++)
		memset(page_address(d->pages[i]), SECRET, PAGE_SIZE);
	/* let the peers try to use the region */
	usleep_range(1, 20);
	for (i = 0; i < PAGES; i++)
		if (memchr_inv(page_address(d->pages[i]), SECRET, PAGE_SIZE))
			atomic_inc(&d->race.touched);
}

/*
 * Return: true if enough has happened to test the race. @gone: deregistrations; @busy:
 * deregistrations that failed with -EBUSY.
 */
static bool dereg_enough(const struct dereg *d, unsigned int gone, unsigned int busy)
{
	return race_moved(&d->race) && busy > 3 && gone > 10 && atomic_read(&d->bound) > 10 &&
	       atomic_read(&d->unbound) > 3;
}

/*
 * A region with a bound window cannot be deregistered. After deregistration, peers neither read nor
 * change its memory.
 */
static void dereg_race_test(struct kunit *test)
{
	struct dereg *d = kunit_kzalloc(test, sizeof(*d), GFP_KERNEL);
	struct fixture *f = test->priv;
	struct task_struct **peer;
	unsigned int busy = 0, gone = 0;
	unsigned long begun;
	int i, cpu = -1;

	peer = kunit_kcalloc(test, nr_cpu_ids, sizeof(*peer), GFP_KERNEL);
	KUNIT_ASSERT_TRUE(test, d && peer);
	for (i = 0; i < PAGES; i++) {
		d->pages[i] = alloc_page(GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(test, d->pages[i]);
		f->pages[f->npages++] = d->pages[i];
	}
	d->race.f = f;
	d->race.owners = d->owners;
	d->race.nowners = BINDERS;
	for (i = 0; i < BINDERS; i++) {
		d->owners[i].race = &d->race;
		d->owners[i].mw = window(test, types[2 * i]);
		d->owners[i].va[0] = IOVA + i % PAGES * PAGE_SIZE;
	}
	dereg_make(test, d);
	for (i = 0; i < BINDERS; i++) {
		cpu = cpumask_next(cpu, cpu_online_mask);
		if (cpu >= nr_cpu_ids)
			cpu = cpumask_first(cpu_online_mask);
		d->owners[i].task = test_thread_start(binder_run, &d->owners[i], cpu);
	}
	for_each_online_cpu(cpu)
		peer[cpu] = test_thread_start(peer_run, &d->race, cpu);

	begun = jiffies;
	while (test_goes_on(begun, msecs_to_jiffies(RACE_MS), dereg_enough(d, gone, busy))) {
		gone++;
		dereg_gone(test, d, &busy);
		dereg_make(test, d);
		dawdle();
		cond_resched();
	}

	for (cpu = 0; cpu < nr_cpu_ids; cpu++)
		test_thread_stop(peer[cpu]);
	for (i = 0; i < BINDERS; i++)
		test_thread_stop(d->owners[i].task);
	expect_promise(test, &d->race);
	KUNIT_EXPECT_TRUE(test, dereg_enough(d, gone, busy));
	kunit_info(test, "%u deregistrations, %u busy, %d binds, %d refused\n", gone, busy,
		   atomic_read(&d->bound), atomic_read(&d->unbound));
	KUNIT_EXPECT_EQ(test, atomic_read(&f->mrs[0]->windows), 0);
}

static struct kunit_case mw_race_cases[] = {
	KUNIT_CASE(race_test),
	KUNIT_CASE(dereg_race_test),
	{}
};

static struct kunit_suite mw_race_suite = {
	.name = "nhca_mw_race",
	.init = mw_test_init,
	.exit = mw_test_exit,
	.test_cases = mw_race_cases,
};

kunit_test_suite(mw_race_suite);
