/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A ring of fixed-size entries.  The driver shares a ring with one consumer or producer, in user
 * space or in the kernel.  Base, stride, index and wrap give the address of an entry, as in the WQE
 * ring hardware assist of US 6,948,004.
 */
#ifndef NHCA_RING_H
#define NHCA_RING_H

#include <rdma/ib_verbs.h>
#include <rdma/nhca-abi.h>

#include "../user.h"

struct nhca_user;
struct nhca_users;

/**
 * struct nhca_ring - the kernel's view of one ring
 * @hdr:     shared header at the start of the memory; slot 0 follows it
 * @stride:  bytes from slot to slot
 * @mask:    number of slots - 1
 * @entry:   mmap entry that owns the memory, if user space maps kernel memory; otherwise NULL
 * @umem:    pins the memory, if the process provides it; owned; otherwise NULL
 *
 * If @entry and @umem are NULL, the ring owns its memory, and user space cannot map it.
 *
 * The struct that contains the ring has the kernel's own index.  @hdr has only a copy of this index
 * for the other side, because user space can write to @hdr.
 */
struct nhca_ring {
	struct nhca_ring_hdr *hdr;
	u32 stride;
	u32 mask;
	struct rdma_user_mmap_entry *entry;
	struct ib_umem *umem;
};

/**
 * nhca_ring_slot - compute the address of an entry
 * @r: the ring
 * @index: free-running index of the entry, any u32
 * Context: any.
 * Return: the address.
 */
static inline void *nhca_ring_slot(const struct nhca_ring *r, u32 index)
{
	return (void *)r->hdr + NHCA_RING_HDR_SIZE + (size_t)(index & r->mask) * r->stride;
}

static inline u32 nhca_ring_entries(const struct nhca_ring *r)
{
	return r->mask + 1;
}

/**
 * nhca_ring_produced - compute the number of entries that the kernel has not consumed yet
 * @r: a ring that the kernel consumes
 * @cons: the kernel's own consumer index
 *
 * Reads of these entries by the caller are ordered after the read of the producer index.
 * Context: any.
 * Return: 0 to the number of slots; -EPROTO: the producer index is impossible (only hostile or
 * broken user space stores such an index).
 */
static inline int nhca_ring_produced(const struct nhca_ring *r, u32 cons)
{
	/* Pairs with the producer's store release of hdr->prod, after the stores of the entries. */
	u32 n = smp_load_acquire(&r->hdr->prod) - cons;

	return likely(n <= nhca_ring_entries(r)) ? (int)n : -EPROTO;
}

/**
 * nhca_ring_release - store the consumer index in the header, so that the producer can reuse slots
 * @r: a ring that the kernel consumes
 * @cons: consumer index: the kernel does not need entries before it any more
 * Context: any.
 */
static inline void nhca_ring_release(struct nhca_ring *r, u32 cons)
{
	/* Pairs with the producer's load acquire of hdr->cons, before its stores to the slots. */
	smp_store_release(&r->hdr->cons, cons);
}

/**
 * nhca_sges_copy - copy scatter/gather elements out of a ring
 * @to: the copy
 * @from: elements in the ring
 * @n: number of elements
 *
 * User space may change the elements at any time, so each field is read once.  Most requests have
 * one element, for which the loop takes fewer instructions than memcpy() of a variable length.
 * Context: any.
 */
static inline void nhca_sges_copy(struct nhca_sge *to, const struct nhca_sge *from, u32 n)
{
	for (; n; n--, to++, from++) {
		to->addr = READ_ONCE(from->addr);
		to->length = READ_ONCE(from->length);
		to->lkey = READ_ONCE(from->lkey);
	}
}

/**
 * struct nhca_ucontext - a process that has opened the device
 * @ibuc:  the RDMA core's part
 * @user:  record to which the process's use of the device's pools is charged; counted; NULL: the
 *         process has CAP_SYS_RESOURCE
 * @direct_pools: struct nhca_direct_pool, by number (verbs/direct.c); the xarray's lock protects it
 * @owner: the process, for waits for zero-copy references of its packets; counted
 */
struct nhca_ucontext {
	struct ib_ucontext ibuc;
	struct nhca_user *user;
	struct xarray direct_pools;
	struct nhca_pageref_owner *owner;
};

/**
 * nhca_uobject_owner - find the process for whose zero-copy references a caller waits
 * @uobject: uobject of the QP, channel or memory for whose references the caller waits; or NULL
 * Context: any.
 * Return: the owner for nhca_pageref_wait(); NULL: a kernel consumer.
 */
static inline struct nhca_pageref_owner *nhca_uobject_owner(const struct ib_uobject *uobject)
{
	return uobject ? container_of(uobject->context, struct nhca_ucontext, ibuc)->owner : NULL;
}

/**
 * nhca_uobject_host_user - find the user to whom host-wide resources of a process are charged
 * @uobject: uobject of an object of the process; or NULL
 * Context: any.
 * Return: the record in nhca_host_users, not counted: the process has a reference; NULL: no user is
 * charged, because the object is of a kernel consumer, or the process has CAP_SYS_RESOURCE.
 */
static inline struct nhca_user *nhca_uobject_host_user(const struct ib_uobject *uobject)
{
	const struct nhca_user *user;

	user = uobject ? container_of(uobject->context, struct nhca_ucontext, ibuc)->user : NULL;
	return user ? user->host : NULL;
}

static inline struct nhca_ucontext *to_nhca_uc(struct ib_ucontext *ibuc)
{
	return container_of(ibuc, struct nhca_ucontext, ibuc);
}

/**
 * struct nhca_ring_user - user space's request for a ring, and how to map the ring
 * @uc:   user context that may map the ring
 * @mem:  memory that the process provides for the ring; zeros: the kernel allocates the memory
 * @info: filled in: what the provider needs to map and use the ring
 * @hidden: the process cannot map the ring, but its memory cgroup is charged for the ring; the
 *         other members are not used
 */
struct nhca_ring_user {
	struct nhca_ucontext *uc;
	struct nhca_ring_mem mem;
	struct nhca_ring_info info;
	bool hidden;
};

/* Return: true if the process provides the memory of the ring. */
static inline bool nhca_ring_is_placed(const struct nhca_ring_user *user)
{
	return user->mem.addr || user->mem.size;
}

/**
 * nhca_ring_alloc - allocate a ring
 * @r: filled in
 * @entries: at least 1; rounded up to a power of two
 * @stride: bytes from slot to slot, a multiple of 16
 * @user: user space's request; NULL for a kernel consumer
 *
 * If the process provides @user->mem, the function pins its pages.
 * KUnit tests of channels replace this function, because they have no process that maps a ring.
 * Context: process, may sleep.
 * Return: 0; -EINVAL: @entries or @stride is invalid, the ring is larger than INT_MAX bytes, or
 * @user->mem is too short or does not start at a page boundary; -ENOMEM: no memory, or
 * RLIMIT_MEMLOCK would be exceeded; errors of ib_umem_get_va() for @user->mem.
 */
int nhca_ring_alloc(struct nhca_ring *r, u32 entries, u32 stride, struct nhca_ring_user *user);

/**
 * nhca_ring_free - free a ring
 * @r: ring of nhca_ring_alloc(), or zeroed; the function zeroes it
 *
 * A mapping in user space stays valid, but the driver no longer accesses the mapped memory.
 * Context: process, may sleep.
 */
void nhca_ring_free(struct nhca_ring *r);

/**
 * nhca_shared_alloc - allocate zeroed kernel memory that user space can map
 * @uc:    user context that may map it
 * @size:  bytes, a multiple of PAGE_SIZE
 * @users: device memory: the pools of the device; the function charges @size bytes of NHCA_POOL_DM
 *         to @uc->user.  NULL: the memory is for a ring or for watches (verbs/watch.c)
 * @read_only: user space can only read the memory, and a child of fork() does not inherit a mapping
 * @entry: set to the mmap entry that owns the memory.  The memory is freed after
 *         rdma_user_mmap_entry_remove(), and after the last page was unmapped.
 *
 * The memory is charged to the caller's memory cgroup, and counts against RLIMIT_MEMLOCK, which a
 * caller with CAP_IPC_LOCK may exceed.
 * Context: process, may sleep.
 * Return: the memory, a range of vmalloc addresses; ERR_PTR: -ENOMEM: no memory, or RLIMIT_MEMLOCK
 * would be exceeded; with @users also an error of nhca_pool_charge().
 */
void *nhca_shared_alloc(struct nhca_ucontext *uc, size_t size, struct nhca_users *users,
			bool read_only, struct rdma_user_mmap_entry **entry);

/**
 * nhca_mmap - ib_device_ops.mmap: map memory of nhca_shared_alloc() into a process
 * @ibuc: the user context that the memory was allocated for
 * @vma:  shared mapping with the length of the memory
 * Context: process, mmap_lock held.
 * Return: 0; -EINVAL: there is no memory at the offset of @vma, @vma has another length, or @vma is
 * a private mapping; -EPERM: a mapping for writing of read-only memory; errors of
 * remap_vmalloc_range().
 */
int nhca_mmap(struct ib_ucontext *ibuc, struct vm_area_struct *vma);

/**
 * nhca_mmap_free - ib_device_ops.mmap_free: free memory of nhca_shared_alloc()
 * @entry: mmap entry of the memory, whose last reference was dropped
 *
 * If pages are still mapped, or packets refer to them, the memory is freed later: delayed work
 * checks every 50 ms whether the pages are still in use.  Until then, the memory counts against the
 * limits.
 * Context: process, may sleep.
 */
void nhca_mmap_free(struct rdma_user_mmap_entry *entry);

/**
 * nhca_shared_detach - uncharge the pools of a device for memory that is still mapped
 * @users: pools of the device, which are destroyed next and from which no code allocates any more
 * Context: process, may sleep.
 */
void nhca_shared_detach(struct nhca_users *users);

/**
 * nhca_shared_exit - free the memory that nhca_mmap_free() could not free yet
 *
 * Pages that are still mapped stay allocated until they are unmapped, also without this module.
 * Context: process, may sleep; no device exists any more.
 */
void nhca_shared_exit(void);

#endif /* NHCA_RING_H */
