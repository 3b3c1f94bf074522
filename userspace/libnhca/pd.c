// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Protection domains, thread domains and parent domains. The kernel has only protection domains.
 * With a thread domain, the application states that one thread at a time uses the objects in the
 * domain. A parent domain joins a protection domain and a thread domain.
 */
#include <errno.h>
#include <stdlib.h>

#include <infiniband/cmd_write.h>

#include "nhca.h"
#include "reg_cache.h"

struct ibv_pd *nhca_alloc_pd(struct ibv_context *context)
{
	struct ib_uverbs_alloc_pd_resp resp;
	struct ibv_alloc_pd cmd;
	struct nhca_pd *pd;

	pd = calloc(1, sizeof(*pd));
	if (!pd)
		return NULL;

	if (ibv_cmd_alloc_pd(context, &pd->pd, &cmd, sizeof(cmd), &resp,
			     sizeof(resp))) {
		free(pd);
		return NULL;
	}
	return &pd->pd;
}

static int dealloc_parent_domain(struct nhca_pd *pd)
{
	atomic_fetch_sub(&pd->of->users, 1);
	if (pd->td)
		atomic_fetch_sub(&pd->td->users, 1);
	free(pd);
	return 0;
}

int nhca_dealloc_pd(struct ibv_pd *ibpd)
{
	struct nhca_pd *pd = to_npd(ibpd);
	int ret;

	if (atomic_load(&pd->users))
		return EBUSY;
	if (pd->of)
		return dealloc_parent_domain(pd);

	ret = nhca_reg_cache_free(pd);
	if (ret)
		return ret;
	ret = ibv_cmd_dealloc_pd(ibpd);
	if (!ret)
		free(pd);
	return ret;
}

struct ibv_td *nhca_alloc_td(struct ibv_context *context,
			     struct ibv_td_init_attr *attr)
{
	struct nhca_td *td;

	if (attr->comp_mask) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	td = calloc(1, sizeof(*td));
	if (!td)
		return NULL;
	td->td.context = context;
	return &td->td;
}

int nhca_dealloc_td(struct ibv_td *ibtd)
{
	struct nhca_td *td = to_ntd(ibtd);

	if (atomic_load(&td->users))
		return EBUSY;
	free(td);
	return 0;
}

struct ibv_pd *nhca_alloc_parent_domain(struct ibv_context *context,
					struct ibv_parent_domain_init_attr *attr)
{
	struct nhca_pd *pd;
	bool allocators;

	if (ibv_check_alloc_parent_domain(attr))
		return NULL;
	if (!check_comp_mask(attr->comp_mask,
			     IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS |
				     IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT)) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	allocators = attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS;
	if (allocators && (!attr->alloc || !attr->free)) {
		errno = EINVAL;
		return NULL;
	}

	pd = calloc(1, sizeof(*pd));
	if (!pd)
		return NULL;

	/* attr->pd may itself be a parent domain: then use the protection domain of attr->pd. */
	pd->of = to_npd(attr->pd)->of ?: to_npd(attr->pd);
	atomic_fetch_add(&pd->of->users, 1);
	if (attr->td) {
		pd->td = to_ntd(attr->td);
		atomic_fetch_add(&pd->td->users, 1);
	}
	/* Older kernel drivers do not support rings in memory of the application. */
	if (allocators &&
	    (to_nctx(context)->features & NHCA_FEATURE_RING_MEM)) {
		pd->alloc = attr->alloc;
		pd->free = attr->free;
	}
	if (attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT)
		pd->context = attr->pd_context;
	ibv_initialize_parent_domain(&pd->pd, attr->pd);
	return &pd->pd;
}

struct ibv_pd *nhca_import_pd(struct ibv_context *context, uint32_t pd_handle)
{
	DECLARE_COMMAND_BUFFER(cmdb, UVERBS_OBJECT_PD, NHCA_METHOD_PD_QUERY, 1);
	struct nhca_pd *pd;
	int ret;

	pd = calloc(1, sizeof(*pd));
	if (!pd)
		return NULL;

	fill_attr_in_obj(cmdb, NHCA_ATTR_PD_QUERY_HANDLE, pd_handle);
	ret = execute_ioctl(context, cmdb);
	if (ret) {
		free(pd);
		errno = ret;
		return NULL;
	}
	pd->pd.context = context;
	pd->pd.handle = pd_handle;
	return &pd->pd;
}

void nhca_unimport_pd(struct ibv_pd *ibpd)
{
	nhca_reg_cache_orphan(to_npd(ibpd));
	free(to_npd(ibpd));
}
