// SPDX-License-Identifier: GPL-2.0
/*
 * Fast registration: regions of kernel memory.  A consumer maps such a region with ib_map_mr_sg(),
 * and the requester opens the region when it executes IB_WR_REG_MR.  A region is mapped, opened and
 * invalidated many times.
 *
 * Pages of PAGE_SIZE are mapped by a range of TCEs, which gets another PVO key with each mapping.
 * Pages of another size, and elements of any length (IB_MR_TYPE_SG_GAPS), are mapped by a list
 * (struct nhca_mr_piece).
 *
 * A consumer may call ib_map_mr_sg() while the region is still open, because the consumer need not
 * wait for the completion of the local invalidate that comes before the next IB_WR_REG_MR.  So a
 * region has two ranges or two lists.  ib_map_mr_sg() changes only the range or list that is not
 * open.
 */
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>

#include "mr.h"
#include "../user.h"

#define NHCA_ACCESS_REMOTE_MODIFY	(IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_ATOMIC)
#define NHCA_ACCESS_FAST		(IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_READ | \
					 NHCA_ACCESS_REMOTE_MODIFY | IB_ACCESS_OPTIONAL)

static int fast_alloc_list(struct nhca_mr *mr)
{
	mr->kind = NHCA_MR_LIST;
	mr->pieces = kvmalloc_array(mr->max_pieces, sizeof(*mr->pieces),
				    GFP_KERNEL_ACCOUNT);
	mr->next->pieces = kvmalloc_array(mr->max_pieces, sizeof(*mr->pieces),
					  GFP_KERNEL_ACCOUNT);
	return mr->pieces && mr->next->pieces ? 0 : -ENOMEM;
}

static int fast_alloc_range(struct nhca_range *r, const struct nhca_mr *mr)
{
	const struct nhca_owner owner = nhca_owner_of_pd(mr->mkey.pd);
	int err = nhca_range_alloc(r, PAGE_SHIFT, mr->max_pieces, &owner);

	if (err)
		r->count = 0;
	return nhca_verb_error(err);
}

struct ib_mr *nhca_mr_fast(struct nhca_dev *dev, struct ib_pd *pd, u32 max_sg, bool gaps)
{
	struct nhca_mr *mr;
	int err = -ENOMEM;

	mr = nhca_mr_alloc(dev, pd, 0);
	if (IS_ERR(mr))
		return ERR_CAST(mr);
	mr->ops = &nhca_mr_fast_ops;
	mr->max_pieces = max_sg;
	mr->ibmr.type = gaps ? IB_MR_TYPE_SG_GAPS : IB_MR_TYPE_MEM_REG;
	mr->next = kzalloc(sizeof(*mr->next), GFP_KERNEL_ACCOUNT);
	if (mr->next) {
		spin_lock_init(&mr->next->lock);
		err = gaps ? fast_alloc_list(mr) : fast_alloc_range(&mr->tces, mr) ?:
			     fast_alloc_range(&mr->next->tces, mr);
	}
	if (err) {
		nhca_mr_free(mr);
		return ERR_PTR(err);
	}
	return &mr->ibmr;
}

static void fast_free(struct nhca_mr *mr)
{
	kvfree(mr->pieces);
	if (!mr->next)
		return;
	if (mr->next->tces.count)
		nhca_range_free(&mr->next->tces);
	kvfree(mr->next->pieces);
	kfree(mr->next);
}

/* Find the last piece that begins at or before @off.  The first piece begins at offset 0. */
static u32 fast_piece(const struct nhca_mr *mr, u64 off)
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

int nhca_mr_seg_list(struct nhca_mr *mr, u64 off, u32 max, bool write, struct nhca_seg *seg)
{
	u32 i = fast_piece(mr, off);
	const struct nhca_mr_piece *p = &mr->pieces[i];
	u64 end = mr->mkey.length;

	if (i + 1 < mr->npieces)
		end = p[1].off;
	return nhca_seg_kernel(p->addr + (off - p->off), min_t(u64, max, end - off), seg);
}

const struct nhca_mr_ops nhca_mr_fast_ops = {
	.seg = nhca_mr_seg_list,
	.free = fast_free,
};

/* Check a DMA address of a consumer.  DMA addresses of this device are kernel virtual addresses. */
static bool fast_addr_valid(u64 addr)
{
	return addr == (unsigned long)addr && virt_addr_valid((void *)(unsigned long)addr);
}

/* ib_sg_to_pages() calls this for each page, if the page size of the region is PAGE_SIZE. */
static int fast_set_tce(struct ib_mr *ibmr, u64 addr)
{
	struct nhca_mr *mr = to_nhca_mr(ibmr);
	struct nhca_next *next = mr->next;

	if (next->npieces == mr->max_pieces)
		return -ENOMEM;
	if (!fast_addr_valid(addr))
		return -EINVAL;
	nhca_range_set(&next->tces, next->npieces++,
		       page_to_pfn(virt_to_page((void *)(unsigned long)addr)),
		       NHCA_TCE_READ | NHCA_TCE_WRITE);
	return 0;
}

/* ib_sg_to_pages() calls this for each page, if the page size of the region is not PAGE_SIZE. */
static int fast_set_piece(struct ib_mr *ibmr, u64 addr)
{
	struct nhca_mr *mr = to_nhca_mr(ibmr);
	struct nhca_next *next = mr->next;
	u64 offset = ibmr->iova & (ibmr->page_size - 1);
	u32 i = next->npieces;

	if (i == mr->max_pieces)
		return -ENOMEM;
	/* the region begins at @offset in the first page, so the address there must be valid */
	if (!i)
		addr += offset;
	if (!fast_addr_valid(addr))
		return -EINVAL;
	next->pieces[i].addr = addr;
	next->pieces[i].off = i ? (u64)i * ibmr->page_size - offset : 0;
	next->npieces++;
	return 0;
}

/* Like ib_sg_to_pages(), for elements that begin and end anywhere. */
static int fast_map_gaps(struct nhca_mr *mr, struct scatterlist *sgl, int sg_nents,
			 unsigned int *sg_offset)
{
	u64 skip = sg_offset ? *sg_offset : 0, addr, len;
	struct nhca_next *next = mr->next;
	struct scatterlist *sg;
	int i;

	lockdep_assert_held(&next->lock);
	if (sg_nents <= 0 || skip > sg_dma_len(sgl))
		return -EINVAL;
	next->kind = NHCA_MR_LIST;
	mr->ibmr.iova = sg_dma_address(sgl) + skip;
	mr->ibmr.length = 0;
	for_each_sg(sgl, sg, sg_nents, i) {
		addr = sg_dma_address(sg) + skip;
		len = sg_dma_len(sg) - skip;
		skip = 0;
		if (!len)
			continue;
		if (next->npieces == mr->max_pieces)
			break;
		if (!fast_addr_valid(addr) || !fast_addr_valid(addr + len - 1))
			return -EINVAL;
		next->pieces[next->npieces].off = mr->ibmr.length;
		next->pieces[next->npieces].addr = addr;
		next->npieces++;
		mr->ibmr.length += len;
	}
	if (sg_offset)
		*sg_offset = 0;
	return i;
}

static int fast_map_pages(struct nhca_mr *mr, struct scatterlist *sgl, int sg_nents,
			  unsigned int *sg_offset)
{
	struct nhca_next *next = mr->next;
	u32 size = mr->ibmr.page_size;
	int n;

	lockdep_assert_held(&next->lock);
	if (size == PAGE_SIZE) {
		next->kind = NHCA_MR_TCE;
		n = ib_sg_to_pages(&mr->ibmr, sgl, sg_nents, sg_offset, fast_set_tce);
		if (next->npieces)
			next->pvo = nhca_range_pvo(&next->tces) + (mr->ibmr.iova & ~PAGE_MASK);
		return n;
	}
	if (!is_power_of_2(size))
		return -EINVAL;
	if (!next->pieces) {
		/* allocated only now, because few consumers use another page size than PAGE_SIZE */
		next->pieces = kmalloc_array(mr->max_pieces, sizeof(*next->pieces),
					     GFP_ATOMIC | __GFP_NOWARN);
		if (!next->pieces)
			return -ENOMEM;
	}
	next->kind = NHCA_MR_LIST;
	return ib_sg_to_pages(&mr->ibmr, sgl, sg_nents, sg_offset, fast_set_piece);
}

/*
 * Remove the mapping in @next, to which no open L_Key or R_Key leads: clear its TCEs, and change
 * the PVO key of its range.
 */
static void fast_unmap(struct nhca_next *next)
{
	lockdep_assert_held(&next->lock);
	if (next->pvo) {
		nhca_range_clear(&next->tces, 0, next->npieces);
		nhca_range_rekey(&next->tces);
		next->pvo = 0;
	}
	next->npieces = 0;
	next->mapped = false;
}

int nhca_mr_fast_map(struct ib_mr *ibmr, struct scatterlist *sg, int sg_nents,
		     unsigned int *sg_offset)
{
	struct nhca_mr *mr = to_nhca_mr(ibmr);
	unsigned long flags;
	int n;

	if (!nhca_mr_is_fast(mr))
		return -EINVAL;
	spin_lock_irqsave(&mr->next->lock, flags);
	fast_unmap(mr->next);
	ibmr->length = 0;
	if (ibmr->type == IB_MR_TYPE_SG_GAPS)
		n = fast_map_gaps(mr, sg, sg_nents, sg_offset);
	else
		n = fast_map_pages(mr, sg, sg_nents, sg_offset);
	mr->next->mapped = n >= 0;
	if (n < 0) {
		fast_unmap(mr->next);
		ibmr->length = 0;
	}
	spin_unlock_irqrestore(&mr->next->lock, flags);
	return n;
}

/* Return: 0 if IB_WR_REG_MR may open the region with these arguments, else -EINVAL. */
static int fast_check(const struct nhca_mr *mr, const struct nhca_key_user *key_user, u32 key,
		      int access)
{
	u32 npieces = mr->next->mapped ? mr->next->npieces : mr->npieces;
	u64 length = mr->ibmr.length;

	lockdep_assert_held(&mr->mkey.lock);
	lockdep_assert_held(&mr->next->lock);
	if (mr->mkey.pd != key_user->pd || mr->mkey.valid)
		return -EINVAL;
	/* the consumer may change only the low 8 bits of the key (the variant), not the index */
	if ((key ^ mr->mkey.key) >> 8)
		return -EINVAL;
	if (access & ~NHCA_ACCESS_FAST)
		return -EINVAL;
	/* IBTA 10.6.3: remote write and atomic require local write */
	if ((access & NHCA_ACCESS_REMOTE_MODIFY) && !(access & IB_ACCESS_LOCAL_WRITE))
		return -EINVAL;
	/* the consumer may have changed the IOVA after the mapping, so the range may wrap */
	if (!npieces || !length || mr->ibmr.iova + length - 1 < mr->ibmr.iova)
		return -EINVAL;
	return 0;
}

/*
 * If ib_map_mr_sg() was called after the region was last opened, let its mapping replace the
 * previous one.  The key of the region is closed.
 */
static void fast_take(struct nhca_mr *mr)
{
	struct nhca_next *next = mr->next;

	lockdep_assert_held(&mr->mkey.lock);
	lockdep_assert_held(&next->lock);
	if (!next->mapped)
		return;
	swap(mr->kind, next->kind);
	swap(mr->pvo, next->pvo);
	swap(mr->tces, next->tces);
	swap(mr->pieces, next->pieces);
	swap(mr->npieces, next->npieces);
	fast_unmap(next);
}

int nhca_reg_fast(const struct nhca_key_user *key_user, u32 lkey, u32 key, int access)
{
	struct nhca_mkey *mk = nhca_mkey_get(lkey);
	struct nhca_mr *mr;
	unsigned long flags;
	int err = -EINVAL;

	if (!mk)
		return err;
	if (mk->type != NHCA_MKEY_MR || !nhca_mr_is_fast(mk->mr))
		goto put;
	mr = mk->mr;
	spin_lock(&mk->lock);
	spin_lock_irqsave(&mr->next->lock, flags);
	err = fast_check(mr, key_user, key, access);
	if (!err) {
		fast_take(mr);
		mk->access = access;
		mk->va = mr->ibmr.iova;
		mk->length = mr->ibmr.length;
		nhca_mkey_open(mk, key);
	}
	spin_unlock_irqrestore(&mr->next->lock, flags);
	spin_unlock(&mk->lock);
put:
	nhca_mkey_put(mk);
	return err;
}
