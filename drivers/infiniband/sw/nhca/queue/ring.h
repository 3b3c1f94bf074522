/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A ring of fixed-size entries shared with one consumer or producer, in user
 * space or in the kernel.  The address of an entry follows from base, stride,
 * index and wrap, as in the reference's WQE ring hardware assist
 * (reference/wqe-ring.txt).
 */
#ifndef NHCA_RING_H
#define NHCA_RING_H

#include <rdma/ib_verbs.h>
#include <rdma/nhca-abi.h>

struct nhca_user;
struct nhca_users;

/**
 * struct nhca_ring - the kernel's view of one ring
 * @hdr:     the shared header, at the start of the memory; slot 0 is behind it
 * @stride:  bytes from slot to slot
 * @mask:    number of slots - 1
 * @entry:   the mmap entry that owns the memory, or NULL
 * @umem:    it lies in memory of the process', which this pins; or NULL
 *
 * With neither it is a kernel ring, whose memory the ring owns.
 *
 * The index that the kernel owns lives beside the ring in its user's struct,
 * never only in @hdr: what is in @hdr is for the other side to read.
 */
struct nhca_ring {
	struct nhca_ring_hdr *hdr;
	u32 stride;
	u32 mask;
	struct rdma_user_mmap_entry *entry;
	struct ib_umem *umem;
};

/**
 * nhca_ring_slot - address of entry @index (free-running, any u32)
 * Context: any.
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
 * nhca_ring_produced - entries that the other side has produced beyond @cons
 * @r: a ring that the kernel consumes
 * @cons: the kernel's own consumer index
 *
 * Return: 0 to the number of slots, or -EPROTO if the producer index is not
 * possible (only hostile or broken user space does that).
 * Context: any.  Orders the caller's reads of entries behind the index.
 */
static inline int nhca_ring_produced(const struct nhca_ring *r, u32 cons)
{
	/* pairs with the producer's release behind its entries */
	u32 n = smp_load_acquire(&r->hdr->prod) - cons;

	return likely(n <= nhca_ring_entries(r)) ? (int)n : -EPROTO;
}

/**
 * nhca_ring_release - tell the producer that entries before @cons are free
 * Context: any.
 */
static inline void nhca_ring_release(struct nhca_ring *r, u32 cons)
{
	/* our reads of the entries are over before the producer sees this */
	smp_store_release(&r->hdr->cons, cons);
}

/**
 * nhca_sges_copy - copy @n elements out of a ring
 * User space may write there at any time: each field is read once.  Mostly there is one element,
 * which makes this a shorter way than memcpy() of any length.
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
 * @ibuc:  the core's part
 * @user:  whose pools' shares it takes; counted; NULL if the process has CAP_SYS_RESOURCE
 * @dying: jiffies up to which the cleanup of all its objects waits for zero-copy references, once
 *         the first of them has waited; else 0
 */
struct nhca_ucontext {
	struct ib_ucontext ibuc;
	struct nhca_user *user;
	unsigned long dying;
};

/**
 * nhca_dying - where a wait for an object's buffers keeps its limit (nhca_zcopy_wait())
 * @uobject: of the object
 * Context: any.  Return: NULL if the object is a kernel consumer's, which waits without a limit.
 */
static inline unsigned long *nhca_dying(const struct ib_uobject *uobject)
{
	return uobject ? &container_of(uobject->context, struct nhca_ucontext, ibuc)->dying : NULL;
}

static inline struct nhca_ucontext *to_nhca_uc(struct ib_ucontext *ibuc)
{
	return container_of(ibuc, struct nhca_ucontext, ibuc);
}

/**
 * struct nhca_ring_user - the other side of a ring, in user space
 * @uc:   the user context that may map it
 * @mem:  where the process wants it; zeros: in memory of the kernel's
 * @info: the answer: what the provider needs to know of it
 * @hidden: the process cannot map the ring, but its memory cgroup is charged for it; nothing else
 *         here is used
 */
struct nhca_ring_user {
	struct nhca_ucontext *uc;
	struct nhca_ring_mem mem;
	struct nhca_ring_info info;
	bool hidden;
};

/* does the process want it in memory of its own? */
static inline bool nhca_ring_is_placed(const struct nhca_ring_user *user)
{
	return user->mem.addr || user->mem.size;
}

/**
 * nhca_ring_alloc - allocate a ring
 * @r: filled in
 * @entries: at least 1; rounded up to a power of two
 * @stride: bytes, a multiple of 16
 * @user: NULL for a kernel ring
 *
 * Context: process, may sleep; pages of @user->mem are pinned.
 * Return: 0, -EINVAL (size overflow, @user->mem), -ENOMEM, and what ib_umem_get() says of
 * @user->mem.
 */
int nhca_ring_alloc(struct nhca_ring *r, u32 entries, u32 stride, struct nhca_ring_user *user);

/**
 * nhca_ring_free - give back what nhca_ring_alloc() took; a zeroed ring is fine
 * A mapping that user space still has stays valid and goes nowhere.
 * Context: process, may sleep.
 */
void nhca_ring_free(struct nhca_ring *r);

/**
 * nhca_shared_alloc - zeroed memory of the kernel's that user space can map: rings, and
 * device memory
 * @uc:    the user context that may map it
 * @size:  bytes, a multiple of PAGE_SIZE
 * @users: NULL, or of the device: the memory is device memory, and @size, which the caller has
 *         taken from NHCA_POOL_DM for @uc->user, is given back when the memory goes; it is not
 *         given back if this fails
 * @entry: owns the memory; rdma_user_mmap_entry_remove() gives it back, and what is
 *         still mapped then goes with the mapping
 *
 * The memory is charged to the caller's memory cgroup and counts for RLIMIT_MEMLOCK, unless the
 * caller has CAP_IPC_LOCK, until it goes.
 * Context: process, may sleep.
 * Return: the memory, a range of vmalloc addresses; NULL: there is none, or no more for the caller.
 */
void *nhca_shared_alloc(struct nhca_ucontext *uc, size_t size, struct nhca_users *users,
			struct rdma_user_mmap_entry **entry);

/**
 * nhca_mmap - ib_device_ops.mmap: maps what nhca_shared_alloc() made
 * nhca_mmap_free - ib_device_ops.mmap_free
 * Context: process.
 */
int nhca_mmap(struct ib_ucontext *ibuc, struct vm_area_struct *vma);
void nhca_mmap_free(struct rdma_user_mmap_entry *entry);

#endif /* NHCA_RING_H */
