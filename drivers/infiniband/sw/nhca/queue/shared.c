// SPDX-License-Identifier: GPL-2.0
/*
 * Kernel memory that user space maps: rings, device memory and the words of watches.
 *
 * A mapping keeps the pages after their owner was destroyed: a process may map device memory, free
 * it and allocate more.  Therefore the memory counts against the limits until the last page was
 * unmapped.  The driver uses no close callback of the mapping, because this module would have to
 * stay loaded as long as a process has a mapping.  Instead, memory that is mapped when its owner
 * frees it is put on a list.  Delayed work frees the memory after it was unmapped.
 */
#include <linux/capability.h>
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "../compat.h"
#include "../user.h"
#include "ring.h"

/* Time in jiffies (50 ms) after which delayed work checks again which memory is in use. */
#define SHARED_POLL_TIME	(HZ / 20)

/*
 * Users choose the size of this memory, so it is charged to their memory cgroup.  If the cgroup's
 * limit is reached, the allocation fails, and the OOM killer does not run.
 */
#define NHCA_SHARED_GFP	(GFP_KERNEL_ACCOUNT | __GFP_RETRY_MAYFAIL | __GFP_NOWARN)

/**
 * struct nhca_shared_mem - an mmap entry and the memory that it owns
 * @entry: the RDMA core counts its references: one of the owner, and one of each mmap() call in
 *         progress
 * @list:  in shared_mapped, if pages were in use when the last reference of @entry was dropped
 * @mem:   range of vmalloc addresses that owns the pages.  A memory cgroup is charged for each page
 *         until the page is freed.
 * @size:  bytes
 * @mm:    mm_struct whose pinned_vm counts the pages; a mmgrab() reference, which does not keep the
 *         address space of the process
 * @users: pools of the device that get @size bytes back; NULL: the memory is not device memory
 * @user:  account to which @size bytes of device memory are charged; counted; or NULL
 * @read_only: user space can only read the memory
 */
struct nhca_shared_mem {
	struct rdma_user_mmap_entry entry;
	struct list_head list;
	void *mem;
	size_t size;
	struct mm_struct *mm;
	struct nhca_users *users;
	struct nhca_user *user;
	bool read_only;
};

static struct nhca_shared_mem *to_shared_mem(struct rdma_user_mmap_entry *entry)
{
	return container_of(entry, struct nhca_shared_mem, entry);
}

/*
 * Allocate zeroed pages that user space can map, in one range of kernel addresses.  vmalloc_user()
 * would do the same, but charges no memory cgroup.
 * Return: the first address, for vfree(); NULL: no memory.
 */
static void *shared_pages(size_t size)
{
	unsigned long n = size >> PAGE_SHIFT, i;
	struct page **pages;
	void *mem = NULL;

	pages = kvmalloc_array(n, sizeof(*pages), NHCA_SHARED_GFP);
	if (!pages)
		return NULL;
	for (i = 0; i < n; i++) {
		pages[i] = fatal_signal_pending(current) ? NULL :
			   alloc_page(NHCA_SHARED_GFP | __GFP_ZERO);
		if (!pages[i])
			break;
	}
	if (i == n)
		mem = vmap(pages, n, VM_MAP | VM_USERMAP | VM_MAP_PUT_PAGES, PAGE_KERNEL);
	if (mem)
		return mem;
	while (i--)
		__free_page(pages[i]);
	kvfree(pages);
	return NULL;
}

/*
 * Charge the memory to the device's pool if it is device memory, and to RLIMIT_MEMLOCK, because its
 * pages cannot be swapped out.  ib_umem_get() counts the pages of memory that a process provides
 * for queues in the same way.
 * Return: 0; an error of nhca_pool_charge(); -ENOMEM: RLIMIT_MEMLOCK would be exceeded.
 */
static int shared_charge(struct nhca_shared_mem *sm)
{
	unsigned long limit = rlimit(RLIMIT_MEMLOCK) >> PAGE_SHIFT;
	long n = sm->size >> PAGE_SHIFT;
	int err;

	err = sm->users ? nhca_pool_charge(sm->users, sm->user, NHCA_POOL_DM, sm->size) : 0;
	if (err)
		return err;
	if (atomic64_add_return(n, &sm->mm->pinned_vm) <= limit || capable(CAP_IPC_LOCK))
		return 0;
	atomic64_sub(n, &sm->mm->pinned_vm);
	if (sm->users)
		nhca_pool_uncharge(sm->users, sm->user, NHCA_POOL_DM, sm->size);
	return -ENOMEM;
}

/* Uncharge the pool, if the memory is device memory.  The pool may be destroyed afterwards. */
static void shared_uncharge(struct nhca_shared_mem *sm)
{
	if (!sm->users)
		return;
	nhca_pool_uncharge(sm->users, sm->user, NHCA_POOL_DM, sm->size);
	nhca_user_put(sm->user);
	sm->users = NULL;
	sm->user = NULL;
}

static void shared_free(struct nhca_shared_mem *sm)
{
	vfree(sm->mem);
	atomic64_sub(sm->size >> PAGE_SHIFT, &sm->mm->pinned_vm);
	mmdrop(sm->mm);
	shared_uncharge(sm);
	kfree(sm);
}

/* ---- memory that is mapped when its owner frees it ---- */

static LIST_HEAD(shared_mapped);
/* protects shared_mapped, and the members users and user of its elements */
static DEFINE_MUTEX(shared_lock);

/* The vmalloc range has one reference to each page; a mapping or a packet has another one. */
static bool shared_in_use(const struct nhca_shared_mem *sm)
{
	size_t off;

	for (off = 0; off < sm->size; off += PAGE_SIZE)
		if (page_count(vmalloc_to_page(sm->mem + off)) > 1)
			return true;
	return false;
}

/* Free memory of shared_mapped that is not in use now.  Return: true if the list is not empty. */
static bool shared_sweep(void)
{
	struct nhca_shared_mem *sm, *next;
	bool left;

	mutex_lock(&shared_lock);
	list_for_each_entry_safe(sm, next, &shared_mapped, list) {
		cond_resched();
		if (shared_in_use(sm))
			continue;
		list_del(&sm->list);
		shared_free(sm);
	}
	left = !list_empty(&shared_mapped);
	mutex_unlock(&shared_lock);
	return left;
}

static void shared_poll(struct work_struct *work);
static DECLARE_DELAYED_WORK(shared_work, shared_poll);

static void shared_poll(struct work_struct *work)
{
	if (shared_sweep())
		schedule_delayed_work(&shared_work, SHARED_POLL_TIME);
}

void nhca_shared_detach(struct nhca_users *users)
{
	struct nhca_shared_mem *sm;

	mutex_lock(&shared_lock);
	list_for_each_entry(sm, &shared_mapped, list)
		if (sm->users == users)
			shared_uncharge(sm);
	mutex_unlock(&shared_lock);
}

void nhca_shared_exit(void)
{
	struct nhca_shared_mem *sm, *next;

	/* empty the list before the cancel: shared_work queues itself while the list has entries */
	mutex_lock(&shared_lock);
	list_for_each_entry_safe(sm, next, &shared_mapped, list) {
		list_del(&sm->list);
		shared_free(sm);
	}
	mutex_unlock(&shared_lock);
	cancel_delayed_work_sync(&shared_work);
}

/* ---- allocation ---- */

/* Charge memory that has no pages and no mmap entry yet.  Errors: as nhca_shared_alloc(). */
static struct nhca_shared_mem *shared_new(size_t size, struct nhca_users *users,
					  struct nhca_user *user)
{
	struct nhca_shared_mem *sm;
	int err;

	sm = kzalloc(sizeof(*sm), GFP_KERNEL_ACCOUNT);
	if (!sm)
		return ERR_PTR(-ENOMEM);
	sm->size = size;
	sm->mm = current->mm;
	sm->users = users;
	sm->user = user;
	err = shared_charge(sm);
	if (err) {
		/* memory that was unmapped may still be charged: free such memory, and try again */
		shared_sweep();
		err = shared_charge(sm);
	}
	if (err) {
		kfree(sm);
		return ERR_PTR(err);
	}
	mmgrab(sm->mm);
	nhca_user_hold(user);
	return sm;
}

void *nhca_shared_alloc(struct nhca_ucontext *uc, size_t size, struct nhca_users *users,
			bool read_only, struct rdma_user_mmap_entry **entry)
{
	struct nhca_shared_mem *sm;

	sm = shared_new(size, users, users ? uc->user : NULL);
	if (IS_ERR(sm))
		return ERR_CAST(sm);
	/* set before the mmap entry exists, because a process can guess the offset of the entry */
	sm->read_only = read_only;
	sm->mem = shared_pages(size);
	if (!sm->mem || rdma_user_mmap_entry_insert(&uc->ibuc, &sm->entry, size)) {
		shared_free(sm);
		return ERR_PTR(-ENOMEM);
	}
	*entry = &sm->entry;
	return sm->mem;
}

/* ---- operations that the RDMA core calls ---- */

int nhca_mmap(struct ib_ucontext *ibuc, struct vm_area_struct *vma)
{
	struct rdma_user_mmap_entry *entry;
	struct nhca_shared_mem *sm;
	int err = -EPERM;

	mmap_assert_write_locked(vma->vm_mm);
	/* This call refuses private mappings, and mappings that are not as long as the memory. */
	entry = rdma_user_mmap_entry_get(ibuc, vma);
	if (!entry)
		return -EINVAL;
	sm = to_shared_mem(entry);
	if (!sm->read_only || !(vma->vm_flags & VM_WRITE))
		err = remap_vmalloc_range(vma, sm->mem, 0);
	if (!err && sm->read_only)
		vm_flags_mod(vma, VM_DONTCOPY, VM_MAYWRITE);
	rdma_user_mmap_entry_put(entry);
	return err;
}

void nhca_mmap_free(struct rdma_user_mmap_entry *entry)
{
	struct nhca_shared_mem *sm = to_shared_mem(entry);

	if (!shared_in_use(sm)) {
		shared_free(sm);
		return;
	}
	mutex_lock(&shared_lock);
	list_add_tail(&sm->list, &shared_mapped);
	mutex_unlock(&shared_lock);
	schedule_delayed_work(&shared_work, SHARED_POLL_TIME);
}
