// SPDX-License-Identifier: GPL-2.0
/*
 * Memory of rings, and its mapping into user space.
 */
#include <linux/capability.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/overflow.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>
#include <rdma/ib_umem.h>

#include "../compat.h"
#include "../memory/user.h"
#include "ring.h"

/*
 * Users choose the size of this memory, so it is charged to their memory cgroup.  If the cgroup's
 * limit is reached, the allocation fails, and the OOM killer does not run.
 */
#define NHCA_SHARED_GFP	(GFP_KERNEL_ACCOUNT | __GFP_RETRY_MAYFAIL | __GFP_NOWARN)

/**
 * struct nhca_shared_mem - an mmap entry and the memory that it owns
 * @entry: the RDMA core counts its references: one of the owner, and one of each mmap() call in
 *         progress
 * @mem:   range of vmalloc addresses that owns the pages.  A memory cgroup is charged for the pages
 *         until the last of them is freed.
 * @size:  bytes
 * @mm:    its pinned_vm counts the pages; mmgrab() reference, which does not keep the user memory
 * @users: pools of the device that get @size bytes back; NULL: this is no device memory
 * @user:  account that @size bytes of device memory were taken for; counted; or NULL
 */
struct nhca_shared_mem {
	struct rdma_user_mmap_entry entry;
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
	if (!shared_charge(sm))
		goto err_free;
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

/* Map the pages of @umem into one range of kernel addresses.  Return: its start; NULL on error. */
static void *ring_map(struct ib_umem *umem)
{
	size_t n = ib_umem_num_pages(umem), i = 0;
	struct sg_page_iter it;
	struct page **pages;
	void *mem;

	pages = kvmalloc_array(n, sizeof(*pages), NHCA_SHARED_GFP);
	if (!pages)
		return NULL;
	for_each_sgtable_page(&umem->sgt_append.sgt, &it, 0)
		pages[i++] = sg_page_iter_page(&it);
	mem = vmap(pages, n, VM_MAP, PAGE_KERNEL);
	kvfree(pages);
	return mem;
}

/*
 * Place a ring into memory that the process provides.  The header is cleared; the slots may contain
 * anything.
 * Return: the memory, or ERR_PTR.
 */
static void *ring_alloc_in(struct nhca_ring *r, size_t size, const struct nhca_ring_user *user)
{
	const struct nhca_ring_mem *where = &user->mem;
	void *mem;

	if (!PAGE_ALIGNED(where->addr) || where->size < size)
		return ERR_PTR(-EINVAL);
	r->umem = ib_umem_get_va(user->uc->ibuc.device, where->addr, size, IB_ACCESS_LOCAL_WRITE);
	if (IS_ERR(r->umem))
		return r->umem;
	mem = ring_map(r->umem);
	if (!mem) {
		ib_umem_release(r->umem);
		return ERR_PTR(-ENOMEM);
	}
	memset(mem, 0, NHCA_RING_HDR_SIZE);
	return mem;
}

static void *ring_alloc_user(struct nhca_ring *r, size_t size, struct nhca_ring_user *user)
{
	void *mem;

	memset(&user->info, 0, sizeof(user->info));
	user->info.size = size;
	user->info.entries = nhca_ring_entries(r);
	user->info.stride = r->stride;
	if (nhca_ring_is_placed(user))
		return ring_alloc_in(r, size, user);
	mem = nhca_shared_alloc(user->uc, size, NULL, &r->entry);
	if (!mem)
		return ERR_PTR(-ENOMEM);
	user->info.offset = rdma_user_mmap_get_offset(r->entry);
	return mem;
}

int nhca_ring_alloc(struct nhca_ring *r, u32 entries, u32 stride, struct nhca_ring_user *user)
{
	size_t size;
	void *mem;

	/* More than 2^31 entries cannot be rounded up to a power of two in 32 bits. */
	if (!entries || entries > 1U << 31 || !stride || stride % 16)
		return -EINVAL;
	entries = roundup_pow_of_two(entries);
	if (check_mul_overflow((size_t)entries, (size_t)stride, &size) ||
	    check_add_overflow(size, (size_t)NHCA_RING_HDR_SIZE, &size) ||
	    size > INT_MAX)
		return -EINVAL;
	size = PAGE_ALIGN(size);

	*r = (struct nhca_ring) { .stride = stride, .mask = entries - 1 };
	if (user && !user->hidden)
		mem = ring_alloc_user(r, size, user);
	else
		mem = kvzalloc(size, user ? GFP_KERNEL_ACCOUNT : GFP_KERNEL) ?: ERR_PTR(-ENOMEM);
	if (IS_ERR(mem)) {
		memset(r, 0, sizeof(*r));
		return PTR_ERR(mem);
	}
	r->hdr = mem;
	return 0;
}

void nhca_ring_free(struct nhca_ring *r)
{
	/*
	 * The memory is freed when no mmap() call uses the entry any more.
	 * Mapped pages have references of the mapping.
	 */
	if (r->entry) {
		rdma_user_mmap_entry_remove(r->entry);
	} else if (r->umem) {
		vunmap(r->hdr);
		ib_umem_release(r->umem);
	} else {
		kvfree(r->hdr);
	}
	memset(r, 0, sizeof(*r));
}

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

	vfree(sm->mem);
	shared_uncharge(sm);
	if (sm->users)
		nhca_pool_give(sm->users, sm->user, NHCA_POOL_DM, sm->size);
	nhca_user_put(sm->user);
	kfree(sm);
}
