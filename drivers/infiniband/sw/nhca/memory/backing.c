// SPDX-License-Identifier: GPL-2.0
/* Regions whose bytes a backing supplies (backing.h). */
#include "backing.h"
#include "mr.h"

static void backed_free(struct nhca_mr *mr)
{
	mr->backing->ops->free(mr->backing);
}

static const struct nhca_mr_ops backed_ops = {
	.zcopy = true,
	.free = backed_free,
};

struct ib_mr *nhca_mr_backed(struct nhca_dev *dev, struct ib_pd *pd, struct nhca_backing *b,
			     u64 length, u64 iova, int access)
{
	struct nhca_mr *mr;

	/* @iova is aligned, so that each page of addresses is a block of the backing */
	if (!length || !PAGE_ALIGNED(iova) || iova + length - 1 < iova)
		return ERR_PTR(-EINVAL);
	mr = nhca_mr_alloc(dev, pd, access);
	if (IS_ERR(mr))
		return ERR_CAST(mr);
	mr->ibmr.type = IB_MR_TYPE_USER;
	mr->kind = NHCA_MR_BACKED;
	mr->ops = &backed_ops;
	mr->backing = b;
	b->key = mr->mkey.key;
	nhca_mr_start(mr, iova, length);
	return &mr->ibmr;
}

struct nhca_backing *nhca_mr_backing(struct ib_mr *ibmr)
{
	struct nhca_mr *mr = to_nhca_mr(ibmr);

	return mr->kind == NHCA_MR_BACKED ? mr->backing : NULL;
}
