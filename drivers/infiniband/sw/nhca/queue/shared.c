// SPDX-License-Identifier: GPL-2.0
/*
 * Kernel memory that user space maps: rings and device memory.
 *
 * A mapping keeps the pages after their owner was destroyed: a process may map device memory, free
 * it and allocate more.  Therefore the limits that the memory counts against have it back only when
 * the last page was unmapped.  A callback of the mapping would have to keep this module loaded as
 * long as a process has a mapping.  Instead, memory that is mapped when its owner frees it is put
 * on a list, and delayed work frees what was unmapped since.
 */
#include <linux/capability.h>
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "../compat.h"
#include "../memory/user.h"
#include "ring.h"

/* Jiffies until delayed work looks for memory that was unmapped. */
#define SHARED_LOOK	(HZ / 20)

/*
 * Users choose the size of this memory, so it is charged to their memory cgroup.  If the cgroup's
 * limit is reached, the allocation fails, and the OOM killer does not run.
 */
#define NHCA_SHARED_GFP	(GFP_KERNEL_ACCOUNT | __GFP_RETRY_MAYFAIL | __GFP_NOWARN)

/**
 * struct nhca_shared_mem - an mmap entry and the memory that it owns
 * @entry: the RDMA core counts its references: one of the owner, and one of each mmap() call in
 *         progress
 * @list:  in shared_mapped, if pages were mapped when the last reference of @entry was dropped
 * @mem:   range of vmalloc addresses that owns the pages.  A memory cgroup is charged for the pages
 *         until the last of them is freed.
 * @size:  bytes
 * @mm:    its pinned_vm counts the pages; mmgrab() reference, which does not keep the user memory
 * @users: pools of the device that get @size bytes back; NULL: this is no device memory
 * @user:  account that @size bytes of device memory were taken for; counted; or NULL
 */
struct nhca_shared_mem {
	struct rdma_user_mmap_entry entry;
	struct list_head list;
	void *mem;
	size_t size;
	struct mm_struct *mm;
	struct nhca_users *users;
	struct nhca_user *user;
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
 * Count the pages against RLIMIT_MEMLOCK, because they cannot be swapped out.  ib_umem_get() counts
 * the pages in the same way if a process provides the memory of an adapter's queues.
 * Return: false if the limit would be exceeded.
 */
static bool shared_charge(struct nhca_shared_mem *sm)
{
	unsigned long limit = rlimit(RLIMIT_MEMLOCK) >> PAGE_SHIFT;
	long n = sm->size >> PAGE_SHIFT;

	if (atomic64_add_return(n, &current->mm->pinned_vm) > limit && !capable(CAP_IPC_LOCK)) {
		atomic64_sub(n, &current->mm->pinned_vm);
		return false;
	}
	sm->mm = current->mm;
	mmgrab(sm->mm);
	return true;
}

static void shared_uncharge(struct nhca_shared_mem *sm)
{
	atomic64_sub(sm->size >> PAGE_SHIFT, &sm->mm->pinned_vm);
	mmdrop(sm->mm);
}

void *nhca_shared_alloc(struct nhca_ucontext *uc, size_t size, struct nhca_users *users,
			struct rdma_user_mmap_entry **entry)
{
	struct nhca_shared_mem *sm;

	sm = kzalloc(sizeof(*sm), GFP_KERNEL_ACCOUNT);
	if (!sm)
		return NULL;
	sm->size = size;
	sm->users = users;
	if (!shared_charge(sm)) {
		/* part of the limit may be held by memory that has just been unmapped */
		nhca_shared_sweep();
		if (!shared_charge(sm))
			goto err_free;
	}
	sm->mem = shared_pages(size);
	if (!sm->mem)
		goto err_uncharge;
	if (rdma_user_mmap_entry_insert(&uc->ibuc, &sm->entry, size))
		goto err_vfree;
	if (users)
		sm->user = nhca_user_hold(uc->user);
	*entry = &sm->entry;
	return sm->mem;

err_vfree:
	vfree(sm->mem);
err_uncharge:
	shared_uncharge(sm);
err_free:
	kfree(sm);
	return NULL;
}

/* ---- memory that is mapped when its owner frees it ---- */

static LIST_HEAD(shared_mapped);
/* protects shared_mapped, and the members users and user of what is on it */
static DEFINE_MUTEX(shared_lock);

static void shared_look(struct work_struct *work);
static DECLARE_DELAYED_WORK(shared_work, shared_look);

/* Give the device memory back to the pools. */
static void shared_give(struct nhca_shared_mem *sm)
{
	if (!sm->users)
		return;
	nhca_pool_give(sm->users, sm->user, NHCA_POOL_DM, sm->size);
	nhca_user_put(sm->user);
	sm->users = NULL;
	sm->user = NULL;
}

static void shared_free(struct nhca_shared_mem *sm)
{
	vfree(sm->mem);
	shared_uncharge(sm);
	shared_give(sm);
	kfree(sm);
}

/* The vmalloc range has one reference of each page; mappings and packets have further ones. */
static bool shared_in_use(const struct nhca_shared_mem *sm)
{
	size_t off;

	for (off = 0; off < sm->size; off += PAGE_SIZE)
		if (page_count(vmalloc_to_page(sm->mem + off)) > 1)
			return true;
	return false;
}

bool nhca_shared_sweep(void)
{
	struct nhca_shared_mem *sm, *next;
	bool left;

	mutex_lock(&shared_lock);
	list_for_each_entry_safe(sm, next, &shared_mapped, list) {
		if (shared_in_use(sm))
			continue;
		list_del(&sm->list);
		shared_free(sm);
		cond_resched();
	}
	left = !list_empty(&shared_mapped);
	mutex_unlock(&shared_lock);
	return left;
}

static void shared_look(struct work_struct *work)
{
	if (nhca_shared_sweep())
		schedule_delayed_work(&shared_work, SHARED_LOOK);
}

void nhca_shared_detach(struct nhca_users *users)
{
	struct nhca_shared_mem *sm;

	mutex_lock(&shared_lock);
	list_for_each_entry(sm, &shared_mapped, list)
		if (sm->users == users)
			shared_give(sm);
	mutex_unlock(&shared_lock);
}

void nhca_shared_exit(void)
{
	struct nhca_shared_mem *sm, *next;

	/* the work queues itself only while the list is not empty */
	mutex_lock(&shared_lock);
	list_for_each_entry_safe(sm, next, &shared_mapped, list) {
		list_del(&sm->list);
		shared_free(sm);
	}
	mutex_unlock(&shared_lock);
	cancel_delayed_work_sync(&shared_work);
}

/* ---- operations of the RDMA core ---- */

int nhca_mmap(struct ib_ucontext *ibuc, struct vm_area_struct *vma)
{
	struct rdma_user_mmap_entry *entry;
	int err;

	/* Refuses private mappings, and any size but the size of the memory. */
	entry = rdma_user_mmap_entry_get(ibuc, vma);
	if (!entry)
		return -EINVAL;
	err = remap_vmalloc_range(vma, to_shared_mem(entry)->mem, 0);
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
	schedule_delayed_work(&shared_work, SHARED_LOOK);
}
