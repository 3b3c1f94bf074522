// SPDX-License-Identifier: GPL-2.0
/*
 * Memory of rings.
 */
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/overflow.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>
#include <rdma/ib_umem.h>

#include "../compat.h"
#include "../observe/stub.h"
#include "ring.h"

/*
 * Map the pages of @umem into one range of kernel addresses.
 * Return: the first address; NULL: no memory.
 */
static void *ring_map(struct ib_umem *umem)
{
	size_t n = ib_umem_num_pages(umem), i = 0;
	struct sg_page_iter it;
	struct page **pages;
	void *mem;

	pages = kvmalloc_array(n, sizeof(*pages), GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
	if (!pages)
		return NULL;
	for_each_sgtable_page(&umem->sgt_append.sgt, &it, 0)
		pages[i++] = sg_page_iter_page(&it);
	mem = vmap(pages, n, VM_MAP, PAGE_KERNEL);
	kvfree(pages);
	return mem;
}

/*
 * Place a ring into memory that the process provides.  The function clears the header; the slots
 * keep what the process has stored there.
 * Return: the memory; ERR_PTR: as nhca_ring_alloc().
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
	mem = nhca_shared_alloc(user->uc, size, NULL, false, &r->entry);
	if (IS_ERR(mem))
		return mem;
	user->info.offset = rdma_user_mmap_get_offset(r->entry);
	return mem;
}

int nhca_ring_alloc(struct nhca_ring *r, u32 entries, u32 stride, struct nhca_ring_user *user)
{
	size_t size;
	void *mem;

	NHCA_STUB(nhca_ring_alloc, r, entries, stride, user);
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
	if (r->entry) {
		/*
		 * When no mmap() call uses the entry any more, the core calls nhca_mmap_free(),
		 * which frees the memory, now or after the last page was unmapped.
		 */
		rdma_user_mmap_entry_remove(r->entry);
	} else if (r->umem) {
		vunmap(r->hdr);
		ib_umem_release(r->umem);
	} else {
		kvfree(r->hdr);
	}
	memset(r, 0, sizeof(*r));
}
