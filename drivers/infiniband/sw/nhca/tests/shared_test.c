// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit: rings and device memory that a process shares with the driver. A ring is in memory of the
 * process, or in memory of the kernel that the process maps. Device memory is in memory of the
 * kernel. Memory that a process can access counts against limits.
 */
#include <linux/anon_inodes.h>
#include <linux/cred.h>
#include <linux/delay.h>
#include <linux/file.h>
#include <linux/mman.h>
#include <linux/sched/signal.h>
#include <linux/uaccess.h>

#include "../queue/ring.h"
#include "../user.h"
#include "regions.h"

/* the RDMA core's struct ib_uverbs_file, whose header only a kernel tree has */
#include "../../../core/uverbs.h"

#define ENTRIES		100
#define STRIDE		64
#define GRANTED		128
#define RING_SIZE	PAGE_ALIGN(NHCA_RING_HDR_SIZE + GRANTED * STRIDE)

/**
 * struct shared - objects of each test
 * @uc: user context of the process
 * @ufile: uverbs file of @uc; rdma_user_mmap_entry_insert() takes the umap_lock of this file
 * @users: pools of the device, which limit device memory
 */
struct shared {
	struct nhca_ucontext uc;
	struct ib_uverbs_file ufile;
	struct nhca_users users;
};

static struct shared *shared;

static int shared_init(struct kunit *test)
{
	int err = fixture_init(test);
	struct fixture *f = test->priv;

	if (err)
		return err;
	shared = kunit_kzalloc(test, sizeof(*shared), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, shared);
	/* create the address space of the process */
	KUNIT_ASSERT_NE(test, kunit_vm_mmap(test, NULL, 0, PAGE_SIZE, PROT_READ,
					    MAP_ANONYMOUS | MAP_PRIVATE, 0), 0);
	f->dev->ibdev.ops.mmap_free = nhca_mmap_free;
	mutex_init(&shared->ufile.umap_lock);
	shared->uc.ibuc.device = &f->dev->ibdev;
	shared->uc.ibuc.ufile = &shared->ufile;
	xa_init_flags(&shared->uc.ibuc.mmap_xa, XA_FLAGS_ALLOC);
	nhca_users_init(&shared->users);
	return 0;
}

static void shared_exit(struct kunit *test)
{
	xa_destroy(&shared->uc.ibuc.mmap_xa);
	nhca_users_destroy(&shared->users);
	fixture_exit(test);
}

static s64 pinned(void)
{
	return atomic64_read(&current->mm->pinned_vm);
}

static long dm_bytes(void)
{
	return atomic_long_read(&shared->users.used[NHCA_POOL_DM]);
}

/* mmap() of the uverbs file */
static int file_mmap(struct file *file, struct vm_area_struct *vma)
{
	return nhca_mmap(&shared->uc.ibuc, vma);
}

static const struct file_operations file_ops = {
	.mmap = file_mmap,
};

/*
 * Return: the address at which the process has mapped @size bytes at @offset of the uverbs file, or
 * an error.
 */
static long map(struct kunit *test, u64 offset, size_t size, unsigned long flags)
{
	struct file *file = anon_inode_getfile("[nhca_test]", &file_ops, NULL, O_RDWR);
	long addr;

	KUNIT_ASSERT_FALSE(test, IS_ERR(file));
	addr = vm_mmap(file, 0, size, PROT_READ | PROT_WRITE, flags, offset);
	fput(file);
	return addr;
}

static u32 read_user(struct kunit *test, unsigned long addr)
{
	u32 value = 0;

	KUNIT_EXPECT_EQ(test, get_user(value, (u32 __user *)addr), 0);
	return value;
}

/* Wait until @want pages are pinned: delayed work of the driver frees memory that was unmapped. */
static void wait_for_sweep(s64 want)
{
	int i;

	for (i = 0; i < 100 && pinned() != want; i++)
		msleep(20);
}

/* ---- rings in memory of the process ---- */

/* A ring in memory of the process: kernel and process access the same header and slots. */
static void placed_test(struct kunit *test)
{
	unsigned long addr = kunit_vm_mmap(test, NULL, 0, RING_SIZE, PROT_READ | PROT_WRITE,
					   MAP_ANONYMOUS | MAP_PRIVATE, 0);
	struct nhca_ring_user user = {
		.uc = &shared->uc,
		.mem = { .addr = addr, .size = RING_SIZE },
	};
	s64 before = pinned();
	struct nhca_ring r;
	u32 i;

	KUNIT_ASSERT_NE(test, addr, 0);
	for (i = 0; i < RING_SIZE; i += 4)
		KUNIT_ASSERT_EQ(test, put_user(0xa5a50000 + i, (u32 __user *)(addr + i)), 0);
	KUNIT_ASSERT_EQ(test, nhca_ring_alloc(&r, ENTRIES, STRIDE, &user), 0);
	KUNIT_EXPECT_EQ(test, user.info.entries, GRANTED);
	KUNIT_EXPECT_EQ(test, user.info.stride, STRIDE);
	KUNIT_EXPECT_EQ(test, user.info.size, RING_SIZE);
	KUNIT_EXPECT_EQ(test, user.info.offset, 0);
	KUNIT_EXPECT_NULL(test, r.entry);
	KUNIT_EXPECT_NOT_NULL(test, r.umem);
	KUNIT_EXPECT_EQ(test, pinned() - before, RING_SIZE >> PAGE_SHIFT);
	/* the header is cleared, but the slots keep what the process has written */
	for (i = 0; i < NHCA_RING_HDR_SIZE; i += 4)
		KUNIT_ASSERT_EQ(test, read_user(test, addr + i), 0);
	for (i = 0; i < GRANTED; i++)
		KUNIT_ASSERT_EQ(test, *(u32 *)nhca_ring_slot(&r, i),
				0xa5a50000 + NHCA_RING_HDR_SIZE + i * STRIDE);
	/* kernel and process read what the other writes */
	*(u32 *)nhca_ring_slot(&r, GRANTED - 1) = 77;
	KUNIT_EXPECT_EQ(test, read_user(test, addr + NHCA_RING_HDR_SIZE + (GRANTED - 1) * STRIDE),
			77);
	KUNIT_EXPECT_EQ(test, put_user(5U, (u32 __user *)(addr + offsetof(struct nhca_ring_hdr,
									  prod))), 0);
	KUNIT_EXPECT_EQ(test, nhca_ring_produced(&r, 0), 5);
	nhca_ring_free(&r);
	KUNIT_EXPECT_EQ(test, pinned(), before);
	KUNIT_EXPECT_NULL(test, r.hdr);
}

/*
 * Memory that is not aligned to pages, too short or not mapped is refused, and no page remains
 * pinned.
 */
static void placed_error_test(struct kunit *test)
{
	unsigned long addr = kunit_vm_mmap(test, NULL, 0, RING_SIZE, PROT_READ | PROT_WRITE,
					   MAP_ANONYMOUS | MAP_PRIVATE, 0);
	struct nhca_ring_user user = { .uc = &shared->uc };
	s64 before = pinned();
	struct nhca_ring r;
	u32 i;

	for (i = 0; i < 3; i++) {
		user.mem.addr = i == 0 ? addr + 64 : addr;
		user.mem.size = i == 1 ? RING_SIZE - 1 : RING_SIZE;
		if (i == 2)
			KUNIT_ASSERT_EQ(test, vm_munmap(addr, PAGE_SIZE), 0);
		KUNIT_EXPECT_EQ(test, nhca_ring_alloc(&r, ENTRIES, STRIDE, &user),
				i == 2 ? -EFAULT : -EINVAL);
		KUNIT_EXPECT_NULL(test, r.hdr);
		KUNIT_EXPECT_NULL(test, r.umem);
	}
	KUNIT_EXPECT_EQ(test, pinned(), before);
}

/* ---- memory of the kernel ---- */

/*
 * A ring in memory of the kernel that the process maps: kernel and process access the same bytes.
 * After the ring was freed, the mapping keeps the pages, which count against the limit until the
 * mapping ends.
 */
static void mapped_test(struct kunit *test)
{
	struct nhca_ring_user user = { .uc = &shared->uc };
	s64 before = pinned();
	struct nhca_ring r;
	long addr;

	KUNIT_ASSERT_EQ(test, nhca_ring_alloc(&r, ENTRIES, STRIDE, &user), 0);
	KUNIT_EXPECT_EQ(test, user.info.size, RING_SIZE);
	KUNIT_EXPECT_NOT_NULL(test, r.entry);
	KUNIT_EXPECT_NULL(test, r.umem);
	KUNIT_EXPECT_EQ(test, pinned() - before, RING_SIZE >> PAGE_SHIFT);
	KUNIT_EXPECT_NULL(test, memchr_inv(r.hdr, 0, RING_SIZE));

	/*
	 * a mapping of another length or at another offset is refused, and so is a private mapping
	 */
	KUNIT_EXPECT_EQ(test, map(test, user.info.offset, RING_SIZE - PAGE_SIZE, MAP_SHARED),
			-EINVAL);
	KUNIT_EXPECT_EQ(test, map(test, user.info.offset + PAGE_SIZE, RING_SIZE, MAP_SHARED),
			-EINVAL);
	KUNIT_EXPECT_EQ(test, map(test, user.info.offset, RING_SIZE, MAP_PRIVATE), -EINVAL);
	addr = map(test, user.info.offset, RING_SIZE, MAP_SHARED);
	KUNIT_ASSERT_GT(test, addr, 0);
	*(u32 *)nhca_ring_slot(&r, 100) = 78;
	KUNIT_EXPECT_EQ(test, read_user(test, addr + NHCA_RING_HDR_SIZE + 100 * STRIDE), 78);
	KUNIT_EXPECT_EQ(test, put_user(9U, (u32 __user *)(addr + offsetof(struct nhca_ring_hdr,
									  prod))), 0);
	KUNIT_EXPECT_EQ(test, nhca_ring_produced(&r, 0), 9);

	nhca_ring_free(&r);
	KUNIT_EXPECT_EQ(test, map(test, user.info.offset, RING_SIZE, MAP_SHARED), -EINVAL);
	KUNIT_EXPECT_EQ(test, read_user(test, addr + NHCA_RING_HDR_SIZE + 100 * STRIDE), 78);
	KUNIT_EXPECT_EQ(test, pinned() - before, RING_SIZE >> PAGE_SHIFT);
	KUNIT_EXPECT_EQ(test, vm_munmap(addr, RING_SIZE), 0);
	wait_for_sweep(before);
	KUNIT_EXPECT_EQ(test, pinned(), before);
}

/*
 * A ring that is not mapped is freed immediately. Two rings have different offsets in the uverbs
 * file.
 */
static void unmapped_test(struct kunit *test)
{
	struct nhca_ring_user users[2] = { { .uc = &shared->uc }, { .uc = &shared->uc } };
	s64 before = pinned();
	struct nhca_ring r[2];

	KUNIT_ASSERT_EQ(test, nhca_ring_alloc(&r[0], ENTRIES, STRIDE, &users[0]), 0);
	KUNIT_ASSERT_EQ(test, nhca_ring_alloc(&r[1], ENTRIES, STRIDE, &users[1]), 0);
	KUNIT_EXPECT_GE(test, abs_diff(users[0].info.offset, users[1].info.offset), RING_SIZE);
	nhca_ring_free(&r[0]);
	KUNIT_EXPECT_EQ(test, pinned() - before, RING_SIZE >> PAGE_SHIFT);
	nhca_ring_free(&r[1]);
	KUNIT_EXPECT_EQ(test, pinned(), before);
}

/* A ring that the process cannot map has no mmap entry, and its pages do not count as pinned. */
static void hidden_test(struct kunit *test)
{
	struct nhca_ring_user user = { .uc = &shared->uc, .hidden = true };
	s64 before = pinned();
	struct nhca_ring r;

	KUNIT_ASSERT_EQ(test, nhca_ring_alloc(&r, ENTRIES, STRIDE, &user), 0);
	KUNIT_EXPECT_NULL(test, r.entry);
	KUNIT_EXPECT_EQ(test, user.info.size, 0);
	KUNIT_EXPECT_EQ(test, pinned(), before);
	nhca_ring_free(&r);
}

/* ---- limits ---- */

/* Call @fn without CAP_IPC_LOCK and with RLIMIT_MEMLOCK set to @pages pages. */
static void limited(struct kunit *test, unsigned long pages, void (*fn)(struct kunit *test))
{
	unsigned long old = rlimit(RLIMIT_MEMLOCK);
	const struct cred *before;
	struct cred *cred = prepare_creds();

	KUNIT_ASSERT_NOT_NULL(test, cred);
	cap_lower(cred->cap_effective, CAP_IPC_LOCK);
	before = override_creds(cred);
	current->signal->rlim[RLIMIT_MEMLOCK].rlim_cur = pages << PAGE_SHIFT;
	fn(test);
	current->signal->rlim[RLIMIT_MEMLOCK].rlim_cur = old;
	revert_creds(before);
	put_cred(cred);
}

/* The limit allows two rings, so a third ring is refused until another ring was freed. */
static void two_rings(struct kunit *test)
{
	struct nhca_ring_user user = { .uc = &shared->uc };
	struct nhca_ring r[3];
	s64 before = pinned();

	KUNIT_ASSERT_EQ(test, nhca_ring_alloc(&r[0], ENTRIES, STRIDE, &user), 0);
	KUNIT_ASSERT_EQ(test, nhca_ring_alloc(&r[1], ENTRIES, STRIDE, &user), 0);
	KUNIT_EXPECT_EQ(test, nhca_ring_alloc(&r[2], ENTRIES, STRIDE, &user), -ENOMEM);
	KUNIT_EXPECT_NULL(test, r[2].hdr);
	KUNIT_EXPECT_EQ(test, pinned() - before, 2 * (RING_SIZE >> PAGE_SHIFT));
	nhca_ring_free(&r[0]);
	KUNIT_EXPECT_EQ(test, nhca_ring_alloc(&r[2], ENTRIES, STRIDE, &user), 0);
	nhca_ring_free(&r[1]);
	nhca_ring_free(&r[2]);
	KUNIT_EXPECT_EQ(test, pinned(), before);
}

/* A ring that was freed while it was mapped counts against the limit until it is unmapped. */
static void unmap_makes_room(struct kunit *test)
{
	struct nhca_ring_user user = { .uc = &shared->uc };
	struct nhca_ring r[2];
	long addr;

	KUNIT_ASSERT_EQ(test, nhca_ring_alloc(&r[0], ENTRIES, STRIDE, &user), 0);
	KUNIT_ASSERT_EQ(test, nhca_ring_alloc(&r[1], ENTRIES, STRIDE, &user), 0);
	addr = map(test, user.info.offset, RING_SIZE, MAP_SHARED);
	KUNIT_ASSERT_GT(test, addr, 0);
	nhca_ring_free(&r[1]);
	KUNIT_EXPECT_EQ(test, nhca_ring_alloc(&r[1], ENTRIES, STRIDE, &user), -ENOMEM);
	KUNIT_EXPECT_EQ(test, vm_munmap(addr, RING_SIZE), 0);
	KUNIT_EXPECT_EQ(test, nhca_ring_alloc(&r[1], ENTRIES, STRIDE, &user), 0);
	nhca_ring_free(&r[0]);
	nhca_ring_free(&r[1]);
}

/* RLIMIT_MEMLOCK limits the rings of a process without CAP_IPC_LOCK. */
static void memlock_test(struct kunit *test)
{
	unsigned long pages = pinned() + 2 * (RING_SIZE >> PAGE_SHIFT);

	limited(test, pages, two_rings);
	limited(test, pages + (RING_SIZE >> PAGE_SHIFT) - 1, two_rings);
	limited(test, pages, unmap_makes_room);
}

/* Device memory counts against the device's pool until it is freed and unmapped. */
static void pool_test(struct kunit *test)
{
	const size_t size = 2 * PAGE_SIZE;
	struct rdma_user_mmap_entry *entry = NULL, *second = NULL;
	u64 offset;
	long addr;
	u8 *mem;

	shared->uc.user = nhca_user_get(&shared->users, 4711);
	KUNIT_ASSERT_FALSE(test, IS_ERR(shared->uc.user));
	/* refused: more bytes than one user may have */
	KUNIT_EXPECT_EQ(test, PTR_ERR(nhca_shared_alloc(&shared->uc, NHCA_MAX_DM_SIZE,
							&shared->users, false, &entry)), -EDQUOT);
	KUNIT_EXPECT_EQ(test, dm_bytes(), 0);
	mem = nhca_shared_alloc(&shared->uc, size, &shared->users, false, &entry);
	KUNIT_ASSERT_FALSE(test, IS_ERR(mem));
	KUNIT_EXPECT_EQ(test, dm_bytes(), size);
	KUNIT_EXPECT_NULL(test, memchr_inv(mem, 0, size));
	offset = rdma_user_mmap_get_offset(entry);
	addr = map(test, offset, size, MAP_SHARED);
	KUNIT_ASSERT_GT(test, addr, 0);
	rdma_user_mmap_entry_remove(entry);
	KUNIT_EXPECT_EQ(test, dm_bytes(), size);
	KUNIT_EXPECT_EQ(test, vm_munmap(addr, size), 0);
	wait_for_sweep(0);
	KUNIT_EXPECT_EQ(test, dm_bytes(), 0);

	/* if a device is removed, its pool is uncharged although the memory is still mapped */
	mem = nhca_shared_alloc(&shared->uc, size, &shared->users, false, &second);
	KUNIT_ASSERT_FALSE(test, IS_ERR(mem));
	addr = map(test, rdma_user_mmap_get_offset(second), size, MAP_SHARED);
	KUNIT_ASSERT_GT(test, addr, 0);
	rdma_user_mmap_entry_remove(second);
	KUNIT_EXPECT_EQ(test, dm_bytes(), size);
	nhca_shared_detach(&shared->users);
	KUNIT_EXPECT_EQ(test, dm_bytes(), 0);
	KUNIT_EXPECT_EQ(test, vm_munmap(addr, size), 0);
	wait_for_sweep(0);
	KUNIT_EXPECT_EQ(test, pinned(), 0);
	nhca_user_put(shared->uc.user);
	shared->uc.user = NULL;
}

static struct kunit_case shared_cases[] = {
	KUNIT_CASE(placed_test),
	KUNIT_CASE(placed_error_test),
	KUNIT_CASE(mapped_test),
	KUNIT_CASE(unmapped_test),
	KUNIT_CASE(hidden_test),
	KUNIT_CASE(memlock_test),
	KUNIT_CASE(pool_test),
	{}
};

static struct kunit_suite shared_suite = {
	.name = "nhca_shared",
	.init = shared_init,
	.exit = shared_exit,
	.test_cases = shared_cases,
};

kunit_test_suite(shared_suite);
