// SPDX-License-Identifier: GPL-2.0
/*
 * Device memory: checks of arguments and of the user's share, and allocation.
 */
#include <linux/mm.h>
#include <linux/slab.h>

#include "objects.h"
#include "../memory/dm.h"
#include "../memory/memory.h"

#define UVERBS_MODULE_NAME nhca
#include <rdma/uverbs_named_ioctl.h>

/* The memory stays, and counts in the user's share, until no process has its pages mapped. */
static void dm_free(struct nhca_dm *dm)
{
	rdma_user_mmap_entry_remove(dm->entry);
	kfree(dm);
}

static int dm_respond(const struct nhca_dm *dm, struct uverbs_attr_bundle *attrs, u16 attr)
{
	struct nhca_alloc_dm_resp resp = {
		.offset = rdma_user_mmap_get_offset(dm->entry),
		.size = dm->size,
	};

	return uverbs_copy_to_struct_or_zero(attrs, attr, &resp, sizeof(resp));
}

struct ib_dm *nhca_alloc_dm(struct ib_device *ibdev, struct ib_ucontext *ibuc,
			    struct ib_dm_alloc_attr *attr, struct uverbs_attr_bundle *attrs)
{
	struct nhca_dev *dev = to_nhca_dev(ibdev);
	struct nhca_ucontext *uc = to_nhca_uc(ibuc);
	struct nhca_dm *dm;
	int err;

	/* attr->alignment is the binary logarithm of the alignment; the memory is page-aligned. */
	if (!attr->length || attr->alignment > PAGE_SHIFT)
		return ERR_PTR(-EINVAL);
	if (attr->length > NHCA_MAX_DM_SIZE)
		return ERR_PTR(-ENOMEM);
	dm = kzalloc(sizeof(*dm), GFP_KERNEL_ACCOUNT);
	if (!dm)
		return ERR_PTR(-ENOMEM);
	dm->size = PAGE_ALIGN(attr->length);
	dm->mem = nhca_shared_alloc(uc, dm->size, &dev->users, false, &dm->entry);
	if (IS_ERR(dm->mem)) {
		err = nhca_verb_error(PTR_ERR(dm->mem));
		kfree(dm);
		return ERR_PTR(err);
	}
	err = dm_respond(dm, attrs, NHCA_ATTR_ALLOC_DM_RESP);
	if (err) {
		dm_free(dm);
		return ERR_PTR(err);
	}
	return &dm->ibdm;
}

/* The core has checked that no region uses the device memory. */
int nhca_dealloc_dm(struct ib_dm *ibdm, struct uverbs_attr_bundle *attrs)
{
	dm_free(to_nhca_dm(ibdm));
	return 0;
}

struct ib_mr *nhca_reg_dm_mr(struct ib_pd *ibpd, struct ib_dm *ibdm,
			     struct ib_dm_mr_attr *attr, struct uverbs_attr_bundle *attrs)
{
	struct nhca_dev *dev = to_nhca_dev(ibpd->device);
	struct ib_mr *ibmr;
	int err;

	/* The core has checked that the range is within @ibdm, and that IB_ZERO_BASED is set. */
	err = nhca_check_access(attr->access_flags);
	if (err)
		return ERR_PTR(err);
	err = nhca_obj_get(dev, to_nhca_pd(ibpd)->owner, NHCA_POOL_MRS);
	if (err)
		return ERR_PTR(err);
	ibmr = nhca_mr_dm(dev, ibpd, to_nhca_dm(ibdm), attr->offset, attr->length,
			  attr->access_flags);
	if (IS_ERR(ibmr))
		nhca_obj_put(dev, to_nhca_pd(ibpd)->owner, NHCA_POOL_MRS);
	return ibmr;
}

static int UVERBS_HANDLER(NHCA_METHOD_DM_QUERY)(struct uverbs_attr_bundle *attrs)
{
	struct ib_dm *ibdm = uverbs_attr_get_obj(attrs, NHCA_ATTR_DM_QUERY_HANDLE);
	u64 length = ibdm->length;
	int err;

	err = dm_respond(to_nhca_dm(ibdm), attrs, NHCA_ATTR_DM_QUERY_RESP);
	if (err)
		return err;
	return uverbs_copy_to(attrs, NHCA_ATTR_DM_QUERY_RESP_LENGTH, &length, sizeof(length));
}

DECLARE_UVERBS_NAMED_METHOD(NHCA_METHOD_DM_QUERY,
			    UVERBS_ATTR_IDR(NHCA_ATTR_DM_QUERY_HANDLE, UVERBS_OBJECT_DM,
					    UVERBS_ACCESS_READ, UA_MANDATORY),
			    UVERBS_ATTR_PTR_OUT(NHCA_ATTR_DM_QUERY_RESP,
						UVERBS_ATTR_STRUCT(struct nhca_alloc_dm_resp, size),
						UA_MANDATORY),
			    UVERBS_ATTR_PTR_OUT(NHCA_ATTR_DM_QUERY_RESP_LENGTH,
						UVERBS_ATTR_TYPE(u64), UA_MANDATORY));

ADD_UVERBS_METHODS(nhca_dm_methods, UVERBS_OBJECT_DM, &UVERBS_METHOD(NHCA_METHOD_DM_QUERY));

ADD_UVERBS_ATTRIBUTES_SIMPLE(nhca_dm_alloc, UVERBS_OBJECT_DM, UVERBS_METHOD_DM_ALLOC,
			     UVERBS_ATTR_PTR_OUT(NHCA_ATTR_ALLOC_DM_RESP,
						 UVERBS_ATTR_STRUCT(struct nhca_alloc_dm_resp,
								    size),
						 UA_MANDATORY));

const struct uapi_definition nhca_dm_defs[] = {
	UAPI_DEF_CHAIN_OBJ_TREE(UVERBS_OBJECT_DM, &nhca_dm_alloc),
	UAPI_DEF_CHAIN_OBJ_TREE(UVERBS_OBJECT_DM, &nhca_dm_methods),
	{}
};
