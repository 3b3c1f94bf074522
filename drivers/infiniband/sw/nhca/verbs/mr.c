// SPDX-License-Identifier: GPL-2.0
/*
 * Memory regions: checks of arguments; memory/ does the work.
 */
#include <linux/string.h>

#include "objects.h"
#include "../memory/memory.h"
#include "../observe/inject.h"

#define NHCA_ACCESS_REMOTE_MODIFY	(IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_ATOMIC)
#define NHCA_ACCESS_MR			(IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_READ | \
					 NHCA_ACCESS_REMOTE_MODIFY | IB_ACCESS_MW_BIND | \
					 IB_ACCESS_FLUSH_GLOBAL | IB_ZERO_BASED)

/*
 * A device may ignore optional rights.  nhca ignores relaxed ordering, the only optional right,
 * because a CPU that copies bytes cannot relax their order on request.
 */
int nhca_check_access(int access)
{
	if (access & ~(NHCA_ACCESS_MR | IB_ACCESS_OPTIONAL))
		return -EOPNOTSUPP;
	/* IBTA 10.6.3: remote write and remote atomic rights require local write. */
	if ((access & NHCA_ACCESS_REMOTE_MODIFY) && !(access & IB_ACCESS_LOCAL_WRITE))
		return -EINVAL;
	return 0;
}

/*
 * As nhca_check_access(), for regions of user space.  IB_ACCESS_HUGETLB is ignored, because the
 * driver determines the size of the pages itself.
 */
static int nhca_check_user_access(int access)
{
	return nhca_check_access(access & ~(IB_ACCESS_ON_DEMAND | IB_ACCESS_HUGETLB));
}

/* Count a new region.  Return: 0; -ENOMEM: a limit is reached; or an error of fault injection. */
static int nhca_mr_get(struct ib_pd *ibpd)
{
	struct nhca_dev *dev = to_nhca_dev(ibpd->device);
	struct nhca_fault_hit s;

	if (nhca_inject(dev, NHCA_AT_MR, 0, 0, &s))
		return -(int)s.arg;
	return nhca_obj_get(dev, to_nhca_pd(ibpd)->owner, NHCA_POOL_MRS);
}

/* Finish the creation of a region after nhca_mr_get().  If @ibmr is an error, undo the count. */
static struct ib_mr *nhca_mr_counted(struct ib_pd *ibpd, struct ib_mr *ibmr)
{
	if (IS_ERR(ibmr))
		nhca_obj_put(to_nhca_dev(ibpd->device), to_nhca_pd(ibpd)->owner, NHCA_POOL_MRS);
	else
		/*
		 * the core also sets ibmr->pd, but nhca_mr_replace() may call nhca_dereg_mr()
		 * before the core has set it
		 */
		ibmr->pd = ibpd;
	return ibmr;
}

static struct ib_mr *nhca_reg_user(struct ib_pd *ibpd, u64 start, u64 length, u64 iova,
				   int access)
{
	struct nhca_dev *dev = to_nhca_dev(ibpd->device);
	struct ib_mr *ibmr;
	int err;

	err = nhca_check_user_access(access);
	if (!err)
		err = nhca_mr_get(ibpd);
	if (err)
		return ERR_PTR(err);
	if (access & IB_ACCESS_ON_DEMAND)
		ibmr = nhca_mr_odp(dev, ibpd, start, length, iova, access);
	else
		ibmr = nhca_mr_user(dev, ibpd, start, length, iova, access);
	return nhca_mr_counted(ibpd, ibmr);
}

/* Register memory of the process or, if the driver's part of the command says so, of a file. */
static struct ib_mr *nhca_reg_by_cmd(struct ib_pd *ibpd, u64 start, u64 length, u64 iova,
				     int access, struct ib_udata *udata)
{
	struct nhca_reg_mr_cmd cmd;
	int err;

	err = nhca_request(udata, &cmd, sizeof(cmd), 0);
	if (err)
		return ERR_PTR(err);
	if (!memchr_inv(&cmd, 0, sizeof(cmd)))
		return nhca_reg_user(ibpd, start, length, iova, access);
	if (cmd.kind != NHCA_REG_MR_DIRECT)
		return ERR_PTR(-EINVAL);
	err = nhca_mr_get(ibpd);
	if (err)
		return ERR_PTR(err);
	return nhca_mr_counted(ibpd, nhca_reg_direct(ibpd, &cmd, length, iova, access, udata));
}

#ifdef NHCA_OLD_REG_MR
struct ib_mr *nhca_reg_user_mr(struct ib_pd *ibpd, u64 start, u64 length, u64 iova,
			       int access, struct ib_udata *udata)
{
	return nhca_reg_by_cmd(ibpd, start, length, iova, access, udata);
}
#else
struct ib_mr *nhca_reg_user_mr(struct ib_pd *ibpd, u64 start, u64 length, u64 iova,
			       int access, struct ib_dmah *dmah, struct ib_udata *udata)
{
	if (dmah)
		return ERR_PTR(-EOPNOTSUPP);
	return nhca_reg_by_cmd(ibpd, start, length, iova, access, udata);
}
#endif

static struct ib_mr *nhca_reg_dmabuf(struct ib_pd *ibpd, u64 offset, u64 length, u64 iova,
				     int fd, int access)
{
	struct nhca_dev *dev = to_nhca_dev(ibpd->device);
	int err;

	err = nhca_check_access(access);
	if (!err)
		err = nhca_mr_get(ibpd);
	if (err)
		return ERR_PTR(err);
	return nhca_mr_counted(ibpd, nhca_mr_dmabuf(dev, ibpd, offset, length, iova, fd, access));
}

#if defined(NHCA_OLD_REG_DMABUF)
struct ib_mr *nhca_reg_user_mr_dmabuf(struct ib_pd *ibpd, u64 offset, u64 length, u64 iova,
				      int fd, int access, struct ib_udata *udata)
{
	return nhca_reg_dmabuf(ibpd, offset, length, iova, fd, access);
}
#elif defined(NHCA_OLD_REG_MR)
struct ib_mr *nhca_reg_user_mr_dmabuf(struct ib_pd *ibpd, u64 offset, u64 length, u64 iova,
				      int fd, int access, struct uverbs_attr_bundle *attrs)
{
	return nhca_reg_dmabuf(ibpd, offset, length, iova, fd, access);
}
#else
struct ib_mr *nhca_reg_user_mr_dmabuf(struct ib_pd *ibpd, u64 offset, u64 length, u64 iova,
				      int fd, int access, struct ib_dmah *dmah,
				      struct uverbs_attr_bundle *attrs)
{
	if (dmah)
		return ERR_PTR(-EOPNOTSUPP);
	return nhca_reg_dmabuf(ibpd, offset, length, iova, fd, access);
}
#endif

/*
 * Make a region that replaces @old, which the core then destroys.  A region to which a window is
 * bound cannot be destroyed.  So the function closes the keys of @old: nhca_mr_close() fails if a
 * window is bound, and after its success no window can be bound.
 */
static struct ib_mr *nhca_mr_replace(struct ib_mr *old, struct ib_pd *ibpd, u64 start,
				     u64 length, u64 iova, int access)
{
	struct ib_mr *ibmr;
	int err;

	ibmr = nhca_reg_user(ibpd, start, length, iova, access);
	if (IS_ERR(ibmr))
		return ibmr;
	err = nhca_mr_close(old);
	if (err) {
		nhca_dereg_mr(ibmr, NULL);
		return ERR_PTR(err);
	}
	return ibmr;
}

/*
 * A change of rights or of the protection domain usually keeps the keys, because peers may use
 * them.  A change of the translation makes a new region with new keys, and the core destroys the
 * old region, so no operation uses a half-changed region.  A new region is also made if pages that
 * were pinned for reading must become writable, or if a region changes between pinned and on-demand
 * memory.
 */
struct ib_mr *nhca_rereg_user_mr(struct ib_mr *ibmr, int flags, u64 start, u64 length,
				 u64 iova, int access, struct ib_pd *ibpd,
				 struct ib_udata *udata)
{
	u64 old_start, old_length, old_iova;
	int old_access;
	int known, err;

	if (flags & ~IB_MR_REREG_SUPPORTED)
		return ERR_PTR(-EOPNOTSUPP);

	known = nhca_mr_user_args(ibmr, &old_start, &old_length, &old_iova, &old_access);
	if (!(flags & IB_MR_REREG_ACCESS))
		access = old_access;
	if (flags & IB_MR_REREG_TRANS)
		return nhca_mr_replace(ibmr, ibpd, start, length, iova, access);
	if (known)
		return ERR_PTR(known);

	if ((access ^ old_access) & IB_ACCESS_ON_DEMAND)
		/* all memory of a process (an implicit region) cannot be pinned */
		return old_length == U64_MAX ? ERR_PTR(-EOPNOTSUPP) :
		       nhca_mr_replace(ibmr, ibpd, old_start, old_length, old_iova, access);
	err = nhca_check_user_access(access);
	if (!err)
		err = nhca_mr_change(ibmr, ibpd, access);
	if (err != -EPERM)
		return err ? ERR_PTR(err) : NULL;
	return nhca_mr_replace(ibmr, ibpd, old_start, old_length, old_iova, access);
}

struct ib_mr *nhca_get_dma_mr(struct ib_pd *ibpd, int access)
{
	struct nhca_dev *dev = to_nhca_dev(ibpd->device);
	int err;

	err = nhca_check_access(access);
	if (!err)
		err = nhca_mr_get(ibpd);
	if (err)
		return ERR_PTR(err);
	return nhca_mr_counted(ibpd, nhca_mr_dma(dev, ibpd, access));
}

struct ib_mr *nhca_alloc_mr(struct ib_pd *ibpd, enum ib_mr_type type, u32 max_num_sg)
{
	struct nhca_dev *dev = to_nhca_dev(ibpd->device);
	int err;

	if (type != IB_MR_TYPE_MEM_REG && type != IB_MR_TYPE_SG_GAPS)
		return ERR_PTR(-EOPNOTSUPP);
	if (!max_num_sg || max_num_sg > NHCA_MAX_FAST_SG)
		return ERR_PTR(-EINVAL);
	err = nhca_mr_get(ibpd);
	if (err)
		return ERR_PTR(err);
	return nhca_mr_counted(ibpd, nhca_mr_fast(dev, ibpd, max_num_sg,
						 type == IB_MR_TYPE_SG_GAPS));
}

int nhca_map_mr_sg(struct ib_mr *ibmr, struct scatterlist *sg, int sg_nents,
		   unsigned int *sg_offset)
{
	return nhca_mr_fast_map(ibmr, sg, sg_nents, sg_offset);
}

int nhca_advise_mr(struct ib_pd *ibpd, enum ib_uverbs_advise_mr_advice advice, u32 flags,
		   struct ib_sge *sg_list, u32 num_sge, struct uverbs_attr_bundle *attrs)
{
	int err = 0;
	u32 i;

	switch (advice) {
	case IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH:
	case IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_WRITE:
	case IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT:
		break;
	default:
		return -EOPNOTSUPP;
	}
	if (flags & ~IB_UVERBS_ADVISE_MR_FLAG_FLUSH)
		return -EINVAL;
	for (i = 0; i < num_sge && !err; i++)
		err = nhca_mr_prefetch(ibpd, sg_list[i].lkey, sg_list[i].addr,
				       sg_list[i].length, advice,
				       flags & IB_UVERBS_ADVISE_MR_FLAG_FLUSH);
	return err;
}

int nhca_dereg_mr(struct ib_mr *ibmr, struct ib_udata *udata)
{
	struct nhca_dev *dev = to_nhca_dev(ibmr->device);
	/* rereg may have moved the region to another domain, but both have the same owner */
	struct nhca_user *owner = to_nhca_pd(ibmr->pd)->owner;
	int err;

	err = nhca_mr_destroy(dev, ibmr);
	if (!err)
		nhca_obj_put(dev, owner, NHCA_POOL_MRS);
	return err;
}
