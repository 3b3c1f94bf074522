// SPDX-License-Identifier: GPL-2.0
/* KUnit: on-demand paging, in an address space that the test creates. */
#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/mm.h>
#include <linux/mman.h>
#include <linux/uaccess.h>
#include <linux/workqueue.h>

#include "regions.h"
#include "../memory/odp.h"
#include "threads.h"

#define ODP_PAGES	1024UL
#define ODP_SIZE	(ODP_PAGES * PAGE_SIZE)

/* Return: address of user memory without pages, which is freed with the test's address space. */
static unsigned long user_memory(struct kunit *test, unsigned long prot)
{
	unsigned long addr;

	addr = kunit_vm_mmap(test, NULL, 0, ODP_SIZE, prot, MAP_ANONYMOUS | MAP_PRIVATE, 0);
	KUNIT_ASSERT_NE_MSG(test, addr, 0, "no user memory");
	KUNIT_ASSERT_LT_MSG(test, addr, (unsigned long)TASK_SIZE, "no user memory");
	return addr;
}

static struct ib_mr *odp_make(struct kunit *test, u64 start, u64 length, u64 iova)
{
	struct fixture *f = test->priv;
	struct ib_mr *mr = nhca_mr_odp(f->dev, f->key_user.pd, start, length, iova, ALL_ACCESS);

	KUNIT_ASSERT_FALSE(test, IS_ERR(mr));
	return mr;
}

static s64 fault(struct ib_mr *mr, u64 off, u64 len, enum nhca_odp_mode mode)
{
	return nhca_odp_fault(to_nhca_mr(mr)->odp, off, len, mode);
}

/* Write one byte by @key. Return: 0 or an error. */
static int poke(const struct nhca_key_user *key_user, u32 key, u64 va, u8 byte)
{
	struct nhca_iter it;
	int err;

	enter();
	err = nhca_iter_key(&it, key_user, key, va, 1, IB_ACCESS_REMOTE_WRITE);
	if (!err)
		err = nhca_iter_write(&it, &byte, 1);
	leave();
	return err;
}

/*
 * A page is accessible after a fault with the needed right, and until it is unmapped. The process
 * and the adapter access the same bytes.
 */
static void life_test(struct kunit *test)
{
	unsigned long addr = user_memory(test, PROT_READ | PROT_WRITE);
	const u64 iova = 0x10000000, at = 600 * PAGE_SIZE;
	struct fixture *f = test->priv;
	struct ib_mr *mr = odp_make(test, addr, ODP_SIZE, iova);
	u32 key = mr->rkey;
	u8 byte = 0;

	KUNIT_EXPECT_EQ(test, peek(&f->key_user, mr->rkey, iova + at), -EAGAIN);
	KUNIT_EXPECT_EQ(test, fault(mr, at, 1, NHCA_ODP_PRESENT), 1);
	KUNIT_EXPECT_EQ(test, peek(&f->key_user, mr->rkey, iova + at), -EAGAIN);

	/* a read fault maps the zero page, which nobody may write */
	KUNIT_EXPECT_EQ(test, fault(mr, at, 1, NHCA_ODP_READ), 1);
	KUNIT_EXPECT_EQ(test, peek(&f->key_user, mr->rkey, iova + at), 0);
	KUNIT_EXPECT_EQ(test, poke(&f->key_user, mr->rkey, iova + at, 7), -EAGAIN);

	/* a write fault maps a page of the process; each side reads what the other writes */
	KUNIT_EXPECT_EQ(test, fault(mr, at, 1, NHCA_ODP_WRITE), 1);
	KUNIT_EXPECT_EQ(test, poke(&f->key_user, mr->rkey, iova + at, 7), 0);
	KUNIT_EXPECT_EQ(test, get_user(byte, (u8 __user *)(addr + at)), 0);
	KUNIT_EXPECT_EQ(test, byte, 7);
	KUNIT_EXPECT_EQ(test, put_user((u8)9, (u8 __user *)(addr + at)), 0);
	KUNIT_EXPECT_EQ(test, peek(&f->key_user, mr->rkey, iova + at), 9);
	/* the pages before and after the page are not mapped */
	KUNIT_EXPECT_EQ(test, peek(&f->key_user, mr->rkey, iova + at - 1), -EAGAIN);
	KUNIT_EXPECT_EQ(test, peek(&f->key_user, mr->rkey, iova + at + PAGE_SIZE), -EAGAIN);

	KUNIT_EXPECT_EQ(test, vm_munmap(addr + at, PAGE_SIZE), 0);
	KUNIT_EXPECT_EQ(test, peek(&f->key_user, mr->rkey, iova + at), -EAGAIN);
	KUNIT_EXPECT_EQ(test, fault(mr, at, 1, NHCA_ODP_READ), -EFAULT);
	/* a fault maps the pages before the first page that cannot be mapped */
	KUNIT_EXPECT_EQ(test, fault(mr, at - PAGE_SIZE, 2 * PAGE_SIZE, NHCA_ODP_WRITE),
			(s64)PAGE_SIZE);
	KUNIT_EXPECT_EQ(test, poke(&f->key_user, mr->rkey, iova + at - 1, 1), 0);
	KUNIT_EXPECT_EQ(test, nhca_mr_destroy(f->dev, mr), 0);
	KUNIT_EXPECT_EQ(test, peek(&f->key_user, key, iova + at - 1), -EACCES);
}

/*
 * In a region of at most ODP_PRESENT_MAX bytes, pages that are present at registration need no
 * fault.
 */
static void present_test(struct kunit *test)
{
	unsigned long addr = user_memory(test, PROT_READ | PROT_WRITE);
	struct fixture *f = test->priv;
	struct ib_mr *mr;

	KUNIT_EXPECT_EQ(test, put_user((u8)5, (u8 __user *)(addr + 3 * PAGE_SIZE)), 0);
	mr = odp_make(test, addr, ODP_SIZE, addr);
	KUNIT_EXPECT_EQ(test, peek(&f->key_user, mr->rkey, addr + 3 * PAGE_SIZE), 5);
	KUNIT_EXPECT_EQ(test, peek(&f->key_user, mr->rkey, addr + 4 * PAGE_SIZE), -EAGAIN);
	KUNIT_EXPECT_EQ(test, nhca_mr_destroy(f->dev, mr), 0);
}

/* An implicit region covers the whole address space, and memory that is mapped later. */
static void implicit_test(struct kunit *test)
{
	struct fixture *f = test->priv;
	struct ib_mr *mr;
	unsigned long addr;

	/* the region needs an address space; the test maps more memory in it later */
	user_memory(test, PROT_READ);
	mr = odp_make(test, 0, U64_MAX, 0);
	addr = user_memory(test, PROT_READ | PROT_WRITE);
	KUNIT_EXPECT_EQ(test, peek(&f->key_user, mr->rkey, addr), -EAGAIN);
	KUNIT_EXPECT_EQ(test, fault(mr, addr, ODP_SIZE, NHCA_ODP_WRITE), (s64)ODP_SIZE);
	KUNIT_EXPECT_EQ(test, poke(&f->key_user, mr->rkey, addr + ODP_SIZE - 1, 3), 0);
	KUNIT_EXPECT_EQ(test, peek(&f->key_user, mr->rkey, addr + ODP_SIZE - 1), 3);
	KUNIT_EXPECT_EQ(test, fault(mr, 0, 1, NHCA_ODP_READ), -EFAULT);
	KUNIT_EXPECT_EQ(test, fault(mr, U64_MAX - 1, 1, NHCA_ODP_READ), -EFAULT);
	KUNIT_EXPECT_EQ(test, nhca_mr_destroy(f->dev, mr), 0);
}

/*
 * Registration refuses impossible ranges. A fault grants no right that the process does not have,
 * and stays inside the region.
 */
static void arguments_test(struct kunit *test)
{
	unsigned long addr = user_memory(test, PROT_READ);
	struct fixture *f = test->priv;
	struct ib_mr *mr;

	KUNIT_EXPECT_EQ(test, PTR_ERR(nhca_mr_odp(f->dev, f->key_user.pd, 0, U64_MAX, 8, 0)),
			-EINVAL);
	KUNIT_EXPECT_EQ(test, PTR_ERR(nhca_mr_odp(f->dev, f->key_user.pd, addr, -addr, 0, 0)),
			-EINVAL);
	KUNIT_EXPECT_EQ(test, PTR_ERR(nhca_mr_odp(f->dev, f->key_user.pd, addr, 8, -4ULL, 0)),
			-EINVAL);
	/* the process may not write the memory, so the adapter may not either */
	mr = odp_make(test, addr, ODP_SIZE, addr);
	KUNIT_EXPECT_EQ(test, fault(mr, 0, 1, NHCA_ODP_WRITE), -EFAULT);
	KUNIT_EXPECT_EQ(test, fault(mr, 0, 1, NHCA_ODP_READ), 1);
	KUNIT_EXPECT_EQ(test, poke(&f->key_user, mr->rkey, addr, 1), -EAGAIN);
	KUNIT_EXPECT_EQ(test, fault(mr, ODP_SIZE, 1, NHCA_ODP_READ), -EFAULT);
	KUNIT_EXPECT_EQ(test, fault(mr, ODP_SIZE - 1, 100, NHCA_ODP_READ), 1);
	KUNIT_EXPECT_EQ(test, nhca_mr_destroy(f->dev, mr), 0);
}

static void resume(void *arg)
{
	complete(arg);
}

/*
 * Read a byte as a requester or responder does: if its page is missing, request a fault. Return: 0,
 * -EAGAIN if resume() will be called, or -EACCES if the page cannot be mapped.
 */
static int ask(const struct nhca_key_user *key_user, u32 key, u64 va, struct nhca_fault *fault)
{
	struct nhca_iter it;
	u8 byte;
	int err;

	enter();
	err = nhca_iter_key(&it, key_user, key, va, 1, IB_ACCESS_REMOTE_READ);
	if (!err)
		err = nhca_iter_read(&it, &byte, 1);
	if (err == -EAGAIN)
		err = nhca_iter_fault(&it, 0, fault);
	leave();
	return err;
}

/*
 * The owner of a fault is resumed when the page is mapped or cannot be mapped. In the second case
 * the owner's next request for the page returns -EACCES.
 */
static void fault_test(struct kunit *test)
{
	unsigned long addr = user_memory(test, PROT_READ | PROT_WRITE);
	DECLARE_COMPLETION_ONSTACK(done);
	struct fixture *f = test->priv;
	struct ib_mr *mr = odp_make(test, addr, ODP_SIZE, addr);
	struct nhca_fault *fault = nhca_fault_alloc(resume, &done);

	KUNIT_ASSERT_NOT_NULL(test, fault);
	KUNIT_EXPECT_FALSE(test, nhca_fault_waiting(fault));
	KUNIT_EXPECT_EQ(test, ask(&f->key_user, mr->rkey, addr, fault), -EAGAIN);
	KUNIT_EXPECT_NE(test, wait_for_completion_timeout(&done, TEST_PATIENCE), 0);
	KUNIT_EXPECT_FALSE(test, nhca_fault_waiting(fault));
	KUNIT_EXPECT_EQ(test, ask(&f->key_user, mr->rkey, addr, fault), 0);

	KUNIT_EXPECT_EQ(test, vm_munmap(addr, PAGE_SIZE), 0);
	KUNIT_EXPECT_EQ(test, ask(&f->key_user, mr->rkey, addr, fault), -EAGAIN);
	KUNIT_EXPECT_NE(test, wait_for_completion_timeout(&done, TEST_PATIENCE), 0);
	KUNIT_EXPECT_EQ(test, ask(&f->key_user, mr->rkey, addr, fault), -EACCES);
	/* the error is reported only once: a further request queues another fault */
	KUNIT_EXPECT_EQ(test, ask(&f->key_user, mr->rkey, addr, fault), -EAGAIN);

	/* after the cancel the owner is not resumed, and the region does not wait for the fault */
	nhca_fault_cancel(fault);
	nhca_fault_free(fault);
	KUNIT_EXPECT_EQ(test, nhca_mr_destroy(f->dev, mr), 0);
}

/*
 * The number of queued prefetches of a region is limited. Here the prefetches cannot proceed,
 * because the test holds the mmap lock.
 */
static void prefetch_bounded_test(struct kunit *test)
{
	unsigned long addr = user_memory(test, PROT_READ | PROT_WRITE);
	struct fixture *f = test->priv;
	struct ib_mr *mr = odp_make(test, addr, ODP_SIZE, addr);
	struct nhca_odp *odp = to_nhca_mr(mr)->odp;
	int i, err = 0;

	mmap_write_lock(current->mm);
	for (i = 0; !err && i < 10 * NHCA_ODP_PREFETCHES; i++)
		err = nhca_fault_queue(odp, 0, PAGE_SIZE, NHCA_ODP_WRITE);
	mmap_write_unlock(current->mm);
	KUNIT_EXPECT_EQ(test, err, -EAGAIN);
	KUNIT_EXPECT_EQ(test, i, NHCA_ODP_PREFETCHES + 1);

	/* after the prefetches have ended, other prefetches can be queued */
	drain_workqueue(nhca_prefetch_wq);
	KUNIT_EXPECT_EQ(test, peek(&f->key_user, mr->rkey, addr), 0);
	KUNIT_EXPECT_EQ(test, nhca_fault_queue(odp, 0, PAGE_SIZE, NHCA_ODP_WRITE), 0);
	drain_workqueue(nhca_prefetch_wq);
	KUNIT_EXPECT_EQ(test, nhca_mr_destroy(f->dev, mr), 0);
}

/* Deregistration does not wait for a prefetch, and a running prefetch ends soon afterwards. */
static void prefetch_cancelled_test(struct kunit *test)
{
	unsigned long addr = user_memory(test, PROT_READ | PROT_WRITE), before, after;
	struct fixture *f = test->priv;
	struct ib_mr *mr = odp_make(test, addr, ODP_SIZE, addr);
	int i;

	before = get_mm_counter(current->mm, MM_ANONPAGES);
	mmap_write_lock(current->mm);
	for (i = 0; i < 3; i++)
		KUNIT_EXPECT_EQ(test, nhca_fault_queue(to_nhca_mr(mr)->odp, 0, ODP_SIZE,
						       NHCA_ODP_WRITE), 0);
	/* one prefetch is running and waits for the mmap lock; the others wait for a worker */
	msleep(100);
	KUNIT_EXPECT_EQ(test, nhca_mr_destroy(f->dev, mr), 0);
	mmap_write_unlock(current->mm);
	drain_workqueue(nhca_prefetch_wq);
	flush_workqueue(nhca_fault_wq);
	after = get_mm_counter(current->mm, MM_ANONPAGES);
	/* each prefetch ends after at most one batch of 64 pages (ODP_BATCH) */
	KUNIT_EXPECT_LE(test, after - before, 3 * 64);
}

/*
 * A region of no bytes can be registered, with and without on-demand paging, and gives no access.
 */
static void empty_test(struct kunit *test)
{
	unsigned long addr = user_memory(test, PROT_READ | PROT_WRITE);
	static const int accesses[] = { ALL_ACCESS, ALL_ACCESS | IB_ACCESS_ON_DEMAND };
	struct fixture *f = test->priv;
	struct nhca_iter it;
	struct ib_mr *mr;
	int i;

	for (i = 0; i < ARRAY_SIZE(accesses); i++) {
		mr = i ? nhca_mr_odp(f->dev, f->key_user.pd, addr, 0, addr, accesses[i]) :
			 nhca_mr_user(f->dev, f->key_user.pd, addr, 0, addr, accesses[i]);
		KUNIT_ASSERT_FALSE(test, IS_ERR(mr));
		KUNIT_EXPECT_EQ(test, mr->length, 0);
		KUNIT_EXPECT_EQ(test, peek(&f->key_user, mr->rkey, addr), -EACCES);
		KUNIT_EXPECT_EQ(test, poke(&f->key_user, mr->rkey, addr, 1), -EACCES);
		enter();
		KUNIT_EXPECT_EQ(test, nhca_iter_key(&it, &f->key_user, mr->rkey, addr, 0,
						    IB_ACCESS_REMOTE_WRITE), 0);
		leave();
		/* the rights of an empty region can be changed */
		KUNIT_EXPECT_EQ(test, nhca_mr_change(mr, f->key_user.pd, IB_ACCESS_LOCAL_WRITE), 0);
		KUNIT_EXPECT_EQ(test, nhca_mr_destroy(f->dev, mr), 0);
	}
}

/*
 * The rights and the protection domain of a region change in place: pages that are present stay,
 * and later faults follow the new rights.
 */
static void change_test(struct kunit *test)
{
	unsigned long addr = user_memory(test, PROT_READ | PROT_WRITE);
	struct fixture *f = test->priv;
	struct ib_mr *mr = odp_make(test, addr, ODP_SIZE, addr);
	u64 start, length, iova;
	int access;

	KUNIT_EXPECT_EQ(test, nhca_mr_user_args(mr, &start, &length, &iova, &access), 0);
	KUNIT_EXPECT_EQ(test, start, (u64)addr);
	KUNIT_EXPECT_EQ(test, length, (u64)ODP_SIZE);
	KUNIT_EXPECT_EQ(test, fault(mr, 0, 1, NHCA_ODP_WRITE), 1);
	KUNIT_EXPECT_EQ(test, poke(&f->key_user, mr->rkey, addr, 5), 0);

	/*
	 * without the right to write, pages that are present cannot be written, and a prefetch for
	 * writing fails
	 */
	KUNIT_EXPECT_EQ(test, nhca_mr_change(mr, f->key_user.pd, READ_ACCESS), 0);
	KUNIT_EXPECT_EQ(test, poke(&f->key_user, mr->rkey, addr, 6), -EACCES);
	KUNIT_EXPECT_EQ(test, peek(&f->key_user, mr->rkey, addr), 5);
	KUNIT_EXPECT_EQ(test, nhca_mr_prefetch(f->key_user.pd, mr->lkey, addr, 1,
					       IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_WRITE, true),
			-EPERM);
	/* this page gets a TCE without the right to write, although the process may write it */
	KUNIT_EXPECT_EQ(test, fault(mr, PAGE_SIZE, 1, NHCA_ODP_WRITE), 1);

	/* the other domain may read and write; the old domain has no access */
	KUNIT_EXPECT_EQ(test, nhca_mr_change(mr, f->other.pd, ALL_ACCESS), 0);
	KUNIT_EXPECT_EQ(test, peek(&f->key_user, mr->rkey, addr), -EACCES);
	KUNIT_EXPECT_EQ(test, peek(&f->other, mr->rkey, addr), 5);
	KUNIT_EXPECT_EQ(test, poke(&f->other, mr->rkey, addr, 7), 0);
	KUNIT_EXPECT_EQ(test, poke(&f->other, mr->rkey, addr + PAGE_SIZE, 8), -EAGAIN);
	KUNIT_EXPECT_EQ(test, fault(mr, PAGE_SIZE, 1, NHCA_ODP_WRITE), 1);
	KUNIT_EXPECT_EQ(test, poke(&f->other, mr->rkey, addr + PAGE_SIZE, 8), 0);
	KUNIT_EXPECT_EQ(test, nhca_mr_destroy(f->dev, mr), 0);
}

/*
 * A user whose PVO space is used up can register an on-demand region, because only a page fault
 * reserves space. But a prefetch fails with ENOMEM, and an operation on the region fails with
 * EACCES after its page fault has failed.
 */
static void limit_test(struct kunit *test)
{
	unsigned long addr = user_memory(test, PROT_READ | PROT_WRITE);
	DECLARE_COMPLETION_ONSTACK(done);
	struct nhca_fault *waiter = nhca_fault_alloc(resume, &done);
	struct fixture *f = test->priv;
	struct nhca_user *user;
	struct ib_mr *mr;
	int i;

	KUNIT_ASSERT_NOT_NULL(test, waiter);
	user = limit_begin(test);
	mr = odp_make(test, addr, ODP_SIZE, addr);
	for (i = 0; i < 3; i++)
		KUNIT_EXPECT_EQ(test, nhca_mr_prefetch(f->key_user.pd, mr->lkey, addr, 1,
						       IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH + i,
						       true), -ENOMEM);
	KUNIT_EXPECT_EQ(test, fault(mr, 0, 1, NHCA_ODP_READ), -ENOMEM);
	KUNIT_EXPECT_EQ(test, ask(&f->key_user, mr->rkey, addr, waiter), -EAGAIN);
	KUNIT_EXPECT_NE(test, wait_for_completion_timeout(&done, TEST_PATIENCE), 0);
	KUNIT_EXPECT_EQ(test, ask(&f->key_user, mr->rkey, addr, waiter), -EACCES);
	limit_end(test, user);
	/* when the user has space again, operations can use the same region */
	KUNIT_EXPECT_EQ(test, fault(mr, 0, 1, NHCA_ODP_READ), 1);
	KUNIT_EXPECT_EQ(test, peek(&f->key_user, mr->rkey, addr), 0);
	nhca_fault_free(waiter);
	KUNIT_EXPECT_EQ(test, nhca_mr_destroy(f->dev, mr), 0);
}

static struct kunit_case odp_cases[] = {
	KUNIT_CASE(change_test),
	KUNIT_CASE(prefetch_bounded_test),
	KUNIT_CASE(prefetch_cancelled_test),
	KUNIT_CASE(empty_test),
	KUNIT_CASE(life_test),
	KUNIT_CASE(present_test),
	KUNIT_CASE(implicit_test),
	KUNIT_CASE(arguments_test),
	KUNIT_CASE(fault_test),
	KUNIT_CASE(limit_test),
	{}
};

static struct kunit_suite odp_suite = {
	.name = "nhca_odp",
	.init = fixture_init,
	.exit = fixture_exit,
	.test_cases = odp_cases,
};

kunit_test_suite(odp_suite);
