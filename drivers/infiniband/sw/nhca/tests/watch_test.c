// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit: watches of memory, in an address space that the test creates. A word of a watch tells
 * whether the mapping has changed.
 */
#include <kunit/test.h>
#include <linux/kthread.h>
#include <linux/mm.h>
#include <linux/mman.h>
#include <linux/sched/mm.h>
#include <linux/uaccess.h>
#include <rdma/nhca_user_ioctl_verbs.h>

#include "../nhca.h"
#include "../memory/watch.h"

#define WATCH_PAGES	16UL
#define WATCH_SIZE	(WATCH_PAGES * PAGE_SIZE)
#define SLOTS		8
#define ROUNDS		4000

/**
 * struct watch_fixture - a set of watches and the memory that they watch
 * @users: pools of the device
 * @user:  account that is charged for the watches
 * @set:   the set, with SLOTS slots
 * @words: the word of each slot
 * @addr:  address of WATCH_SIZE bytes of the process
 * @maps:  number of mappings that remap_thread() has made
 */
struct watch_fixture {
	struct nhca_users users;
	struct nhca_user *user;
	struct nhca_watch_set *set;
	u32 words[SLOTS];
	unsigned long addr;
	unsigned long maps;
};

static unsigned long map_fixed(unsigned long addr, unsigned long size)
{
	return vm_mmap(NULL, addr, size, PROT_READ | PROT_WRITE,
		       MAP_ANONYMOUS | MAP_PRIVATE | (addr ? MAP_FIXED : 0), 0);
}

static int watch_test_init(struct kunit *test)
{
	struct watch_fixture *f = kunit_kzalloc(test, sizeof(*f), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, f);
	test->priv = f;
	nhca_users_init(&f->users);
	f->user = nhca_user_get(&f->users, 4711);
	KUNIT_ASSERT_FALSE(test, IS_ERR(f->user));
	f->addr = kunit_vm_mmap(test, NULL, 0, WATCH_SIZE, PROT_READ | PROT_WRITE,
				MAP_ANONYMOUS | MAP_PRIVATE, 0);
	KUNIT_ASSERT_NE_MSG(test, f->addr, 0, "no user memory");
	KUNIT_ASSERT_LT_MSG(test, f->addr, (unsigned long)TASK_SIZE, "no user memory");
	f->set = nhca_watch_set_create(&f->users, f->user, f->words, SLOTS);
	KUNIT_ASSERT_FALSE(test, IS_ERR(f->set));
	return 0;
}

static void watch_test_exit(struct kunit *test)
{
	struct watch_fixture *f = test->priv;
	int i;

	if (!f || IS_ERR_OR_NULL(f->set))
		return;
	nhca_watch_set_destroy(f->set);
	for (i = 0; i < SLOTS; i++)
		KUNIT_EXPECT_EQ(test, f->words[i], NHCA_WATCH_CHANGED);
	KUNIT_EXPECT_EQ(test, atomic_long_read(&f->user->used[NHCA_POOL_WATCHES]), 0);
	nhca_user_put(f->user);
	nhca_users_destroy(&f->users);
}

static bool same(struct watch_fixture *f, u32 slot)
{
	return READ_ONCE(f->words[slot]) == NHCA_WATCH_SAME;
}

static int touch(unsigned long addr)
{
	return put_user((u8)1, (u8 __user *)addr);
}

/*
 * A word changes if its range is mapped or unmapped, but not if another range is. The word stays
 * changed until a new watch is added.
 */
static void change_test(struct kunit *test)
{
	struct watch_fixture *f = test->priv;
	const unsigned long half = WATCH_SIZE / 2;

	KUNIT_EXPECT_FALSE(test, same(f, 0));
	KUNIT_EXPECT_EQ(test, nhca_watch_add(f->set, 0, f->addr, half), 0);
	KUNIT_EXPECT_EQ(test, nhca_watch_add(f->set, 1, f->addr + half, half), 0);
	KUNIT_EXPECT_EQ(test, nhca_watch_add(f->set, 2, f->addr, WATCH_SIZE), 0);

	/*
	 * the first write to a page makes the page appear, but takes no other page away, so no word
	 * changes
	 */
	KUNIT_EXPECT_EQ(test, touch(f->addr), 0);
	KUNIT_EXPECT_EQ(test, touch(f->addr + half), 0);
	KUNIT_EXPECT_TRUE(test, same(f, 0) && same(f, 1) && same(f, 2));

	KUNIT_EXPECT_EQ(test, map_fixed(f->addr + half, PAGE_SIZE), f->addr + half);
	KUNIT_EXPECT_TRUE(test, same(f, 0));
	KUNIT_EXPECT_FALSE(test, same(f, 1));
	KUNIT_EXPECT_FALSE(test, same(f, 2));

	KUNIT_EXPECT_EQ(test, vm_munmap(f->addr + half - PAGE_SIZE, PAGE_SIZE), 0);
	KUNIT_EXPECT_FALSE(test, same(f, 0));

	/* a new watch in slot 0 sets its word again */
	KUNIT_EXPECT_EQ(test, nhca_watch_add(f->set, 0, f->addr, PAGE_SIZE), 0);
	KUNIT_EXPECT_TRUE(test, same(f, 0));
	KUNIT_EXPECT_EQ(test, map_fixed(f->addr + half, PAGE_SIZE), f->addr + half);
	KUNIT_EXPECT_TRUE(test, same(f, 0));
	KUNIT_EXPECT_EQ(test, nhca_watch_del(f->set, 0), 0);
	KUNIT_EXPECT_FALSE(test, same(f, 0));
}

/*
 * A page was only read, so it is the zero page. The first write replaces the zero page, which
 * changes the word.
 */
static void replaced_test(struct kunit *test)
{
	struct watch_fixture *f = test->priv;
	u8 byte = 1;

	KUNIT_EXPECT_EQ(test, get_user(byte, (u8 __user *)f->addr), 0);
	KUNIT_EXPECT_EQ(test, byte, 0);
	KUNIT_EXPECT_EQ(test, nhca_watch_add(f->set, 3, f->addr, PAGE_SIZE), 0);
	KUNIT_EXPECT_TRUE(test, same(f, 3));
	KUNIT_EXPECT_EQ(test, touch(f->addr), 0);
	KUNIT_EXPECT_FALSE(test, same(f, 3));
}

static void arguments_test(struct kunit *test)
{
	struct watch_fixture *f = test->priv;

	KUNIT_EXPECT_EQ(test, nhca_watch_add(f->set, SLOTS, f->addr, 1), -EINVAL);
	KUNIT_EXPECT_EQ(test, nhca_watch_add(f->set, 0, f->addr, 0), -EINVAL);
	KUNIT_EXPECT_EQ(test, nhca_watch_add(f->set, 0, U64_MAX, 2), -EINVAL);
	KUNIT_EXPECT_EQ(test, nhca_watch_add(f->set, 0, TASK_SIZE - 1, 2), -EINVAL);
	KUNIT_EXPECT_EQ(test, nhca_watch_del(f->set, SLOTS), -EINVAL);
	KUNIT_EXPECT_EQ(test, nhca_watch_del(f->set, 0), -ENOENT);
	KUNIT_EXPECT_EQ(test, nhca_watch_add(f->set, 0, TASK_SIZE - PAGE_SIZE, PAGE_SIZE), 0);
	/* a watch of one byte watches the whole page */
	KUNIT_EXPECT_EQ(test, nhca_watch_add(f->set, 1, f->addr + 5, 1), 0);
	KUNIT_EXPECT_EQ(test, map_fixed(f->addr, PAGE_SIZE), f->addr);
	KUNIT_EXPECT_FALSE(test, same(f, 1));
}

/*
 * Each slot with a watch is charged to its user. A further slot is refused if the user has no share
 * left.
 */
static void share_test(struct kunit *test)
{
	const long share = NHCA_MAX_WATCHES * (long)nhca_user_share / 1000;
	struct watch_fixture *f = test->priv;
	atomic_long_t *used = &f->user->used[NHCA_POOL_WATCHES];

	KUNIT_EXPECT_EQ(test, nhca_watch_add(f->set, 0, f->addr, 1), 0);
	KUNIT_EXPECT_EQ(test, nhca_watch_add(f->set, 0, f->addr, 1), 0);
	KUNIT_EXPECT_EQ(test, atomic_long_read(used), 1);
	KUNIT_ASSERT_EQ(test, nhca_pool_charge(&f->users, f->user, NHCA_POOL_WATCHES, share - 1),
			0);
	KUNIT_EXPECT_EQ(test, nhca_watch_add(f->set, 1, f->addr, 1), -EDQUOT);
	KUNIT_EXPECT_FALSE(test, same(f, 1));
	KUNIT_EXPECT_EQ(test, nhca_watch_add(f->set, 0, f->addr, 1), 0);
	nhca_pool_uncharge(&f->users, f->user, NHCA_POOL_WATCHES, share - 1);
	KUNIT_EXPECT_EQ(test, nhca_watch_add(f->set, 1, f->addr, 1), 0);
}

/*
 * A child of fork() has the file of the set but another address space, so it may not add a watch.
 */
static void stranger_test(struct kunit *test)
{
	struct watch_fixture *f = test->priv;
	struct mm_struct *mm = current->mm;

	current->mm = NULL;
	KUNIT_EXPECT_EQ(test, nhca_watch_add(f->set, 0, f->addr, 1), -EPERM);
	current->mm = mm;
	KUNIT_EXPECT_FALSE(test, same(f, 0));
}

struct remap {
	struct watch_fixture *f;
	struct mm_struct *mm;
};

/* Map new pages over the range again and again. */
static int remap_thread(void *data)
{
	struct remap *r = data;

	kthread_use_mm(r->mm);
	while (!kthread_should_stop()) {
		if (map_fixed(r->f->addr, WATCH_SIZE) != r->f->addr)
			break;
		WRITE_ONCE(r->f->maps, r->f->maps + 1);
		cond_resched();
	}
	kthread_unuse_mm(r->mm);
	while (!kthread_should_stop())
		schedule_timeout_interruptible(1);
	return 0;
}

/*
 * Return: the page at @addr, to which the process has no reference afterwards; NULL: no page is
 * there.
 */
static struct page *page_at(unsigned long addr)
{
	struct page *page;

	if (get_user_pages_fast(addr, 1, FOLL_WRITE, &page) != 1)
		return NULL;
	put_page(page);
	return page;
}

/*
 * A process adds a watch and then pins a page, while another thread maps new pages over the range.
 * If the word says that nothing has changed, the pinned page is the page that is mapped.
 */
static void race_test(struct kunit *test)
{
	struct watch_fixture *f = test->priv;
	struct remap r = { .f = f, .mm = current->mm };
	unsigned long addr = f->addr + WATCH_SIZE - PAGE_SIZE;
	u32 round, wrong = 0, judged = 0;
	struct page *pinned, *now;
	struct task_struct *task;

	task = kthread_run(remap_thread, &r, "nhca_remap");
	KUNIT_ASSERT_FALSE(test, IS_ERR(task));
	for (round = 0; round < ROUNDS; round++) {
		if (nhca_watch_add(f->set, 0, f->addr, WATCH_SIZE)) {
			wrong++;
			break;
		}
		if (pin_user_pages_fast(addr, 1, FOLL_WRITE | FOLL_LONGTERM, &pinned) != 1)
			continue;
		now = page_at(addr);
		if (now && same(f, 0)) {
			judged++;
			wrong += now != pinned;
		}
		unpin_user_page(pinned);
		cond_resched();
	}
	kthread_stop(task);
	kunit_info(test, "%u of %u rounds judged, %lu mappings\n", judged, ROUNDS, f->maps);
	KUNIT_EXPECT_GT(test, judged, 0);
	KUNIT_EXPECT_GT(test, f->maps, 0);
	KUNIT_EXPECT_EQ(test, wrong, 0);
}

static struct kunit_case watch_cases[] = {
	KUNIT_CASE(change_test),
	KUNIT_CASE(replaced_test),
	KUNIT_CASE(arguments_test),
	KUNIT_CASE(share_test),
	KUNIT_CASE(stranger_test),
	KUNIT_CASE(race_test),
	{}
};

static struct kunit_suite watch_suite = {
	.name = "nhca_watch",
	.init = watch_test_init,
	.exit = watch_test_exit,
	.test_cases = watch_cases,
};

kunit_test_suite(watch_suite);
