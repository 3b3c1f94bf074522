// SPDX-License-Identifier: GPL-2.0
/*
 * Memory of rings, and the way it gets into user space.
 */
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/overflow.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "ring.h"

/**
 * struct nhca_shared_mem - a mmap entry and the memory that it owns
 * @entry: counted by the core: one reference of the owner, one of each mmap() call
 * @mem:   from vmalloc_user()
 */
struct nhca_shared_mem {
	struct rdma_user_mmap_entry entry;
	void *mem;
};

static struct nhca_shared_mem *to_shared_mem(struct rdma_user_mmap_entry *entry)
{
	return container_of(entry, struct nhca_shared_mem, entry);
}

void *nhca_shared_alloc(struct nhca_ucontext *uc, size_t size,
			struct rdma_user_mmap_entry **entry)
{
	struct nhca_shared_mem *sm;

	sm = kzalloc(sizeof(*sm), GFP_KERNEL);
	if (!sm)
		return NULL;
	sm->mem = vmalloc_user(size);
	if (!sm->mem)
		goto err_free;
	if (rdma_user_mmap_entry_insert(&uc->ibuc, &sm->entry, size))
		goto err_vfree;
	*entry = &sm->entry;
	return sm->mem;

err_vfree:
	vfree(sm->mem);
err_free:
	kfree(sm);
	return NULL;
}

static void *ring_alloc_user(struct nhca_ring *r, size_t size,
			     struct nhca_ucontext *uc, struct nhca_ring_info *info)
{
	void *mem = nhca_shared_alloc(uc, size, &r->entry);

	if (!mem)
		return NULL;
	info->offset = rdma_user_mmap_get_offset(r->entry);
	info->size = size;
	return mem;
}

int nhca_ring_alloc(struct nhca_ring *r, u32 entries, u32 stride,
		    struct nhca_ucontext *uc, struct nhca_ring_info *info)
{
	size_t size;
	void *mem;

	/* beyond 2^31 there is no power of two to round up to */
	if (!entries || entries > 1U << 31 || !stride || stride % 16)
		return -EINVAL;
	entries = roundup_pow_of_two(entries);
	if (check_mul_overflow((size_t)entries, (size_t)stride, &size) ||
	    check_add_overflow(size, (size_t)NHCA_RING_HDR_SIZE, &size) ||
	    size > INT_MAX)
		return -EINVAL;
	size = PAGE_ALIGN(size);

	memset(r, 0, sizeof(*r));
	if (uc) {
		memset(info, 0, sizeof(*info));
		mem = ring_alloc_user(r, size, uc, info);
	} else {
		mem = kvzalloc(size, GFP_KERNEL);
	}
	if (!mem)
		return -ENOMEM;

	r->hdr = mem;
	r->base = mem + NHCA_RING_HDR_SIZE;
	r->stride = stride;
	r->mask = entries - 1;
	if (uc) {
		info->entries = entries;
		info->stride = stride;
	}
	return 0;
}

void nhca_ring_free(struct nhca_ring *r)
{
	/*
	 * The entry frees the memory when the last mmap() call that still
	 * looks at it is over; pages that are mapped count for themselves.
	 */
	if (r->entry)
		rdma_user_mmap_entry_remove(r->entry);
	else
		kvfree(r->hdr);
	memset(r, 0, sizeof(*r));
}

int nhca_mmap(struct ib_ucontext *ibuc, struct vm_area_struct *vma)
{
	struct rdma_user_mmap_entry *entry;
	int err;

	/* refuses private mappings and any size but the memory's own */
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
	kfree(sm);
}
