// SPDX-License-Identifier: GPL-2.0
/*
 * Memory regions: making them, what lies behind them, and their end.
 */
#include <linux/mm.h>
#include <linux/slab.h>
#include <rdma/ib_umem.h>

#include "dmabuf.h"
#include "map.h"
#include "mr.h"
#include "../net/net.h"
#include "../queue/ring.h"
#include "odp.h"

/* Regions come by the hundred thousand: next to each other they have no bytes between them. */
static struct kmem_cache *mr_cache;

int nhca_mr_init(void)
{
	/* the core copies keys and range to user space from where they are */
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

/* Nobody finds the region any more: wait until no packet carries a page of it. */
static void mr_zcopy_wait(struct nhca_mr *mr)
{
	nhca_zcopy_wait(to_nhca_dev(mr->ibmr.device)->txq, nhca_dying(mr->ibmr.uobject));
}

void nhca_mr_free(struct nhca_mr *mr)
{
	/* the reference on its table entry ends here; nobody copies to or from it any more */
	nhca_mkey_del(&mr->mkey);
	if (READ_ONCE(mr->zcopied))
		mr_zcopy_wait(mr);
	if (mr->tces.count)
		nhca_range_free(&mr->tces);
	kvfree(mr->pieces);
	nhca_mr_fast_free(mr);
	nhca_odp_close(mr->odp);
	nhca_odp_put(mr->odp);
	nhca_dmabuf_free(mr->dmabuf);
	/* takes NULL, and marks pages dirty if they could be written */
	ib_umem_release(mr->umem);
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

/* A range of @count entries for @mr, whose first byte is at @offset of the first. */
static int mr_range(struct nhca_mr *mr, unsigned int shift, u64 count, u64 offset)
{
	const struct nhca_owner owner = {
		.kind = NHCA_OWNER_PD,
		.id = (uintptr_t)mr->mkey.pd,
	};
	int err;

	err = nhca_range_alloc(&mr->tces, shift, count, &owner);
	if (err) {
		mr->tces.count = 0;
		return err;
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

struct ib_mr *nhca_mr_user(struct nhca_dev *dev, struct ib_pd *pd, u64 start,
			   u64 length, u64 iova, int access)
{
	struct ib_umem *umem;
	struct nhca_mr *mr;
	int err;

	if (access & IB_ZERO_BASED)
		iova = 0;
	/* neither end may wrap, and nothing may be beyond what this CPU can address */
	if (length && (iova + length - 1 < iova || start + length - 1 < start))
		return ERR_PTR(-EINVAL);
	if (start != (unsigned long)start || length != (size_t)length)
		return ERR_PTR(-EINVAL);

	mr = nhca_mr_alloc(dev, pd, access);
	if (IS_ERR(mr))
		return ERR_CAST(mr);
	mr->ibmr.type = IB_MR_TYPE_USER;
	mr->zcopy_ok = true;
	/* no bytes, no pages: the key opens nothing, and operations of no bytes ask no key */
	if (!length)
		goto start;

	/* checks the rest of the addresses, and RLIMIT_MEMLOCK */
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

/* Its pages are pinned, all of them: perhaps it has none. */
static bool mr_pinned(const struct nhca_mr *mr)
{
	return mr->umem || !mr->mkey.length;
}

int nhca_mr_user_args(const struct ib_mr *ibmr, u64 *start, u64 *length, u64 *iova,
		      int *access)
{
	const struct nhca_mr *mr = container_of_const(ibmr, struct nhca_mr, ibmr);

	*access = mr->mkey.access;
	*iova = mr->mkey.va;
	*length = mr->mkey.length;
	if (!mr_pinned(mr))
		return -EOPNOTSUPP;
	*start = mr->umem ? mr->umem->address : 0;
	return 0;
}

/*
 * Under its key's lock a region with windows is found and left alone, or shut so that
 * none can be bound: IBTA 10.6.7.2.6.  The caller waits for live sections.
 */
static int mr_shut(struct nhca_mr *mr)
{
	lockdep_assert_held(&mr->mkey.lock);
	/* the last window has let go of the region when it is counted no more */
	if (atomic_read_acquire(&mr->windows))
		return -EBUSY;
	nhca_mkey_shut(&mr->mkey);
	return 0;
}

int nhca_mr_change(struct ib_mr *ibmr, struct ib_pd *pd, int access)
{
	struct nhca_mr *mr = to_nhca_mr(ibmr);
	struct nhca_mkey *mk = &mr->mkey;
	bool zcopied;
	int err;

	if (!mr_pinned(mr))
		return -EOPNOTSUPP;
	if (mr->umem && ib_access_writable(access) && !mr->umem->writable)
		return -EPERM;

	/*
	 * Closed in between: no packet meets the new rights with the old domain.
	 * What comes now is refused, as on hardware.
	 */
	spin_lock_bh(&mk->lock);
	err = mr_shut(mr);
	if (err) {
		spin_unlock_bh(&mk->lock);
		return err;
	}
	nhca_mkey_shut_end(mk);
	zcopied = mr->zcopied;
	mr->zcopied = false;
	mk->access = access;
	mk->pd = pd;
	mr->tces.owner.id = (uintptr_t)pd;
	nhca_mkey_open(mk, mk->key);
	spin_unlock_bh(&mk->lock);

	/* what left by the old rights */
	if (zcopied)
		mr_zcopy_wait(mr);
	return 0;
}

struct ib_mr *nhca_mr_dma(struct nhca_dev *dev, struct ib_pd *pd, int access)
{
	struct nhca_mr *mr;

	/* all of kernel memory is nothing for a process */
	if (pd->uobject)
		return ERR_PTR(-EPERM);

	mr = nhca_mr_alloc(dev, pd, access);
	if (IS_ERR(mr))
		return ERR_CAST(mr);
	mr->ibmr.type = IB_MR_TYPE_DMA;
	mr->kind = NHCA_MR_ALL;
	mr->zcopy_ok = true;
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

	/* which waits, once for all */
	if (!err)
		nhca_mr_free(mr);
	return err;
}

/* A kernel consumer's wrong address must cost a completion, not the host. */
static int seg_kernel(u64 addr, u64 len, struct nhca_seg *seg)
{
	if (unlikely(addr != (unsigned long)addr ||
		     !virt_addr_valid((void *)(unsigned long)addr)))
		return -EACCES;
	seg->addr = (void *)(unsigned long)addr;
	seg->len = len;
	return 0;
}

/* the last piece that begins at or before @off; the first begins at 0 */
static u32 mr_piece(const struct nhca_mr *mr, u64 off)
{
	u32 low = 0, high = mr->npieces, mid;

	while (high - low > 1) {
		mid = low + (high - low) / 2;
		if (mr->pieces[mid].off <= off)
			low = mid;
		else
			high = mid;
	}
	return low;
}

static int seg_list(const struct nhca_mr *mr, u64 off, u32 max, struct nhca_seg *seg)
{
	u32 i = mr_piece(mr, off);
	const struct nhca_piece *p = &mr->pieces[i];
	u64 end = mr->mkey.length;

	if (i + 1 < mr->npieces)
		end = p[1].off;
	return seg_kernel(p->addr + (off - p->off), min_t(u64, max, end - off), seg);
}

/* The mapping is the exporter's: its addresses are not in the kernel's map of all memory. */
static int seg_linear(const struct nhca_mr *mr, u64 off, u32 max, struct nhca_seg *seg)
{
	seg->addr = mr->linear + off;
	/* segments of page size, as of any other region */
	seg->len = min_t(u64, max, PAGE_SIZE - offset_in_page(seg->addr));
	return 0;
}

int nhca_mr_seg_other(struct nhca_mr *mr, u64 off, u32 max, bool write, struct nhca_seg *seg)
{
	if (mr->kind == NHCA_MR_ODP)
		return nhca_odp_seg(mr->odp, off, max, write, seg);
	if (mr->kind == NHCA_MR_LIST)
		return seg_list(mr, off, max, seg);
	if (mr->kind == NHCA_MR_LINEAR)
		return seg_linear(mr, off, max, seg);
	/* where the region begins is where addresses begin */
	return seg_kernel(off, min_t(u64, max, PAGE_SIZE - (off & ~PAGE_MASK)), seg);
}
