// SPDX-License-Identifier: GPL-2.0
/* Memory regions: registration, translation, deregistration. */
#include <linux/indirect_call_wrapper.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <rdma/ib_umem.h>

#include "map.h"
#include "mr.h"
#include "odp.h"
#include "pageref.h"
#include "../queue/ring.h"

/*
 * A host may have hundreds of thousands of regions.  Their slab cache saves the bytes that
 * kmalloc() would add when it rounds up the size.
 */
static struct kmem_cache *mr_cache;

int nhca_mr_init(void)
{
	/* allow the core to copy keys, address and length of struct ib_mr to user space */
	mr_cache = kmem_cache_create_usercopy("nhca_mr", sizeof(struct nhca_mr), 0, SLAB_ACCOUNT,
					      offsetof(struct nhca_mr, ibmr.lkey),
					      offsetofend(struct nhca_mr, ibmr.length) -
					      offsetof(struct nhca_mr, ibmr.lkey), NULL);
	return mr_cache ? 0 : -ENOMEM;
}

void nhca_mr_exit(void)
{
	kmem_cache_destroy(mr_cache);
}

struct nhca_mr *nhca_mr_alloc(struct nhca_dev *dev, struct ib_pd *pd, int access)
{
	struct nhca_mr *mr = kmem_cache_zalloc(mr_cache, GFP_KERNEL);
	int err;

	if (!mr)
		return ERR_PTR(-ENOMEM);
	mr->ibmr.device = &dev->ibdev;
	mr->ibmr.pd = pd;
	mr->ops = &nhca_mr_pinned_ops;
	mr->mkey.type = NHCA_MKEY_MR;
	mr->mkey.pd = pd;
	mr->mkey.access = access;
	mr->mkey.mr = mr;
	err = nhca_mkey_add(&mr->mkey);
	if (err) {
		kmem_cache_free(mr_cache, mr);
		return ERR_PTR(err);
	}
	mr->ibmr.lkey = mr->mkey.key;
	mr->ibmr.rkey = mr->mkey.key;
	return mr;
}

/*
 * Wait for the packets that refer to pages of the region.  The caller has closed the key before, so
 * no packet gets a reference that this wait would miss.
 *
 * The owner is the process of the protection domain.  ibmr.uobject is not used, because after
 * ibv_rereg_mr() it points to the uobject of the old region, which the core frees.
 */
static void mr_pageref_wait(struct nhca_mr *mr, struct nhca_pageref_region *pagerefs)
{
	nhca_pageref_wait(pagerefs, to_nhca_dev(mr->ibmr.device),
			  nhca_uobject_owner(mr->mkey.pd->uobject));
}

void nhca_mr_free(struct nhca_mr *mr)
{
	/* after this call no code finds the region, and no code copies to or from the region */
	nhca_mkey_del(&mr->mkey);
	mr_pageref_wait(mr, mr->pagerefs);
	if (mr->tces.count)
		nhca_range_free(&mr->tces);
	if (mr->ops->free)
		mr->ops->free(mr);
	kmem_cache_free(mr_cache, mr);
}

void nhca_mr_start(struct nhca_mr *mr, u64 iova, u64 length)
{
	struct nhca_mkey *mk = &mr->mkey;

	mr->ibmr.iova = iova;
	mr->ibmr.length = length;
	spin_lock_bh(&mk->lock);
	mk->va = iova;
	mk->length = length;
	nhca_mkey_open(mk, mk->key);
	spin_unlock_bh(&mk->lock);
}

struct nhca_owner nhca_owner_of_pd(const struct ib_pd *pd)
{
	return (struct nhca_owner) {
		.kind = NHCA_OWNER_PD,
		.id = (uintptr_t)pd,
		.user = nhca_uobject_host_user(pd->uobject),
	};
}

/* Reserve a range of @count entries.  The region's first byte is at @offset of the first entry. */
static int mr_range(struct nhca_mr *mr, unsigned int shift, u64 count, u64 offset)
{
	const struct nhca_owner owner = nhca_owner_of_pd(mr->mkey.pd);
	int err;

	err = nhca_range_alloc(&mr->tces, shift, count, &owner);
	if (err) {
		mr->tces.count = 0;
		return nhca_verb_error(err);
	}
	mr->kind = NHCA_MR_TCE;
	mr->pvo = nhca_range_pvo(&mr->tces) + offset;
	return 0;
}

int nhca_mr_map_pages(struct nhca_mr *mr, struct page **pages, u64 npages, u32 offset,
		      bool writable)
{
	u64 flags = NHCA_TCE_READ | (writable ? NHCA_TCE_WRITE : 0);
	u64 i;
	int err;

	err = mr_range(mr, PAGE_SHIFT, npages, offset);
	if (err)
		return err;
	for (i = 0; i < npages; i++)
		nhca_range_set(&mr->tces, i, page_to_pfn(pages[i]), flags);
	return 0;
}

int nhca_mr_map_sgt(struct nhca_mr *mr, const struct sg_table *sgt, u64 start, u64 length,
		    unsigned int shift, bool writable)
{
	u64 offset = start & (BIT_ULL(shift) - 1);
	int err;

	err = mr_range(mr, shift, (offset + length + BIT_ULL(shift) - 1) >> shift, offset);
	return err ?: nhca_map_sgt(&mr->tces, sgt, start, length, writable);
}

static void pinned_free(struct nhca_mr *mr)
{
	/* ib_umem_release() accepts NULL, and marks writable pages dirty */
	ib_umem_release(mr->umem);
}

const struct nhca_mr_ops nhca_mr_pinned_ops = {
	.zcopy = true,
	.free = pinned_free,
};

struct ib_mr *nhca_mr_user(struct nhca_dev *dev, struct ib_pd *pd, u64 start,
			   u64 length, u64 iova, int access)
{
	struct ib_umem *umem;
	struct nhca_mr *mr;
	int err;

	if (access & IB_ZERO_BASED)
		iova = 0;
	/* neither range may wrap, and @start and @length must fit the types of this CPU */
	if (length && (iova + length - 1 < iova || start + length - 1 < start))
		return ERR_PTR(-EINVAL);
	if (start != (unsigned long)start || length != (size_t)length)
		return ERR_PTR(-EINVAL);

	mr = nhca_mr_alloc(dev, pd, access);
	if (IS_ERR(mr))
		return ERR_CAST(mr);
	mr->ibmr.type = IB_MR_TYPE_USER;
	/* No pages: the key grants access to nothing, and operations of no bytes need no key. */
	if (!length)
		goto start;

	/* ib_umem_get_va() checks the other rules for addresses, and RLIMIT_MEMLOCK */
	umem = ib_umem_get_va(&dev->ibdev, start, length, access);
	if (IS_ERR(umem)) {
		err = PTR_ERR(umem);
		goto err_free;
	}
	mr->umem = umem;
	err = nhca_mr_map_sgt(mr, &umem->sgt_append.sgt, start, length, nhca_map_shift(umem),
			      umem->writable);
	if (err)
		goto err_free;
start:
	nhca_mr_start(mr, iova, length);
	return &mr->ibmr;

err_free:
	nhca_mr_free(mr);
	return ERR_PTR(err);
}

/* Return: true if all pages of a user region are pinned, or if it has no pages. */
static bool mr_pinned(const struct nhca_mr *mr)
{
	return mr->ops == &nhca_mr_pinned_ops && (mr->umem || !mr->mkey.length);
}

int nhca_mr_user_args(const struct ib_mr *ibmr, u64 *start, u64 *length, u64 *iova,
		      int *access)
{
	const struct nhca_mr *mr = container_of_const(ibmr, struct nhca_mr, ibmr);

	*access = mr->mkey.access;
	*iova = mr->mkey.va;
	*length = mr->mkey.length;
	if (mr->kind == NHCA_MR_ODP)
		*start = nhca_odp_start(mr->odp);
	else if (mr_pinned(mr))
		*start = mr->umem ? mr->umem->address : 0;
	else
		return -EOPNOTSUPP;
	return 0;
}

/*
 * Close the key of a region, unless windows are bound to the region (IBTA 10.6.7.2.6).  While this
 * function runs no window can be bound, because a bind takes the lock of the key, which the caller
 * holds.  The caller must wait for live sections afterwards.
 * Return: 0; -EBUSY: windows are bound to the region.
 */
static int mr_shut(struct nhca_mr *mr)
{
	lockdep_assert_held(&mr->mkey.lock);
	/* at a count of 0 no window uses the region; the acquire pairs with mw_unbind() */
	if (atomic_read_acquire(&mr->windows))
		return -EBUSY;
	nhca_mkey_shut(&mr->mkey);
	return 0;
}

int nhca_mr_change(struct ib_mr *ibmr, struct ib_pd *pd, int access)
{
	struct nhca_mr *mr = to_nhca_mr(ibmr);
	bool on_demand = mr->kind == NHCA_MR_ODP;
	struct nhca_pageref_region *pagerefs;
	struct nhca_mkey *mk = &mr->mkey;
	int err;

	if (!on_demand && !mr_pinned(mr))
		return -EOPNOTSUPP;
	if (!on_demand && mr->umem && ib_access_writable(access) && !mr->umem->writable)
		return -EPERM;

	/*
	 * Close the key during the change, so that no packet is checked with the new rights and the
	 * old domain.  Packets that arrive while the key is closed are refused, as by hardware.
	 */
	spin_lock_bh(&mk->lock);
	err = mr_shut(mr);
	if (err) {
		spin_unlock_bh(&mk->lock);
		return err;
	}
	nhca_mkey_shut_end(mk);
	pagerefs = mr->pagerefs;
	mr->pagerefs = NULL;
	mk->access = access;
	mk->pd = pd;
	if (on_demand)
		nhca_odp_rights(mr->odp, access);
	else
		mr->tces.owner.id = (uintptr_t)pd;
	nhca_mkey_open(mk, mk->key);
	spin_unlock_bh(&mk->lock);

	if (on_demand)
		nhca_odp_owner(mr->odp, pd);
	/* wait for the packets that refer to pages by the old rights */
	mr_pageref_wait(mr, pagerefs);
	return 0;
}

int nhca_seg_kernel(u64 addr, u64 len, struct nhca_seg *seg)
{
	if (unlikely(addr != (unsigned long)addr ||
		     !virt_addr_valid((void *)(unsigned long)addr)))
		return -EACCES;
	seg->addr = (void *)(unsigned long)addr;
	seg->len = len;
	return 0;
}

/* The region begins at address 0, so the offset is the kernel address. */
static int dma_seg(struct nhca_mr *mr, u64 off, u32 max, bool write, struct nhca_seg *seg)
{
	return nhca_seg_kernel(off, min_t(u64, max, PAGE_SIZE - (off & ~PAGE_MASK)), seg);
}

static const struct nhca_mr_ops dma_ops = {
	.zcopy = true,
	.seg = dma_seg,
};

struct ib_mr *nhca_mr_dma(struct nhca_dev *dev, struct ib_pd *pd, int access)
{
	struct nhca_mr *mr;

	/* a process must not access all of kernel memory */
	if (pd->uobject)
		return ERR_PTR(-EPERM);

	mr = nhca_mr_alloc(dev, pd, access);
	if (IS_ERR(mr))
		return ERR_CAST(mr);
	mr->ibmr.type = IB_MR_TYPE_DMA;
	mr->kind = NHCA_MR_ALL;
	mr->ops = &dma_ops;
	nhca_mr_start(mr, 0, U64_MAX);
	return &mr->ibmr;
}

static int mr_shut_locked(struct nhca_mr *mr)
{
	int err;

	spin_lock_bh(&mr->mkey.lock);
	err = mr_shut(mr);
	spin_unlock_bh(&mr->mkey.lock);
	return err;
}

int nhca_mr_close(struct ib_mr *ibmr)
{
	struct nhca_mr *mr = to_nhca_mr(ibmr);
	int err = mr_shut_locked(mr);

	if (!err)
		nhca_mkey_shut_end(&mr->mkey);
	return err;
}

int nhca_mr_destroy(struct nhca_dev *dev, struct ib_mr *ibmr)
{
	struct nhca_mr *mr = to_nhca_mr(ibmr);
	int err = mr_shut_locked(mr);

	/* nhca_mr_free() waits for live sections, so this function need not wait for them */
	if (!err)
		nhca_mr_free(mr);
	return err;
}

int nhca_mr_seg_other(struct nhca_mr *mr, u64 off, u32 max, bool write, struct nhca_seg *seg)
{
	/* for the kinds that kernel consumers use: direct calls, because they cost less */
	return INDIRECT_CALL_2(mr->ops->seg, dma_seg, nhca_mr_seg_list, mr, off, max, write, seg);
}
