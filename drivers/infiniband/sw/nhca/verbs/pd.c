// SPDX-License-Identifier: GPL-2.0
/*
 * Protection domains.  A PD has no state but its owner.  To check whether two objects belong to the
 * same PD, the driver compares addresses of struct ib_pd.
 */
#include "objects.h"
#include "../memory/memory.h"

#define UVERBS_MODULE_NAME nhca
#include <rdma/uverbs_named_ioctl.h>

int nhca_alloc_pd(struct ib_pd *ibpd, struct ib_udata *udata)
{
	struct nhca_pd *pd = to_nhca_pd(ibpd);

	pd->owner = nhca_udata_user(udata);
	return nhca_obj_get(to_nhca_dev(ibpd->device), pd->owner, NHCA_POOL_PDS);
}

int nhca_dealloc_pd(struct ib_pd *ibpd, struct ib_udata *udata)
{
	nhca_obj_put(to_nhca_dev(ibpd->device), to_nhca_pd(ibpd)->owner, NHCA_POOL_PDS);
	return 0;
}

/* Check that a handle is a PD of this context.  The core has already made this check. */
static int UVERBS_HANDLER(NHCA_METHOD_PD_QUERY)(struct uverbs_attr_bundle *attrs)
{
	return 0;
}

DECLARE_UVERBS_NAMED_METHOD(NHCA_METHOD_PD_QUERY,
			    UVERBS_ATTR_IDR(NHCA_ATTR_PD_QUERY_HANDLE, UVERBS_OBJECT_PD,
					    UVERBS_ACCESS_READ, UA_MANDATORY));

ADD_UVERBS_METHODS(nhca_pd_methods, UVERBS_OBJECT_PD, &UVERBS_METHOD(NHCA_METHOD_PD_QUERY));

const struct uapi_definition nhca_pd_defs[] = {
	UAPI_DEF_CHAIN_OBJ_TREE(UVERBS_OBJECT_PD, &nhca_pd_methods),
	{}
};
