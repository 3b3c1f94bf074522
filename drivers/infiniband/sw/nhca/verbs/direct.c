// SPDX-License-Identifier: GPL-2.0
/*
 * Regions of files and block devices: pools of a process, and query and sync of a region.
 */
#include "objects.h"
#include "../direct/direct.h"
#include "../memory/memory.h"

#define UVERBS_MODULE_NAME nhca
#include <rdma/uverbs_named_ioctl.h>

#if NHCA_HAS_DIRECT

#define DIRECT_FLAGS	(NHCA_DIRECT_SYNC | NHCA_DIRECT_FLUSH_GLOBAL | NHCA_DIRECT_FLUSH_PERSISTENT)

/*
 * Return: the FLUSH rights that @flags request.  nhca's own command has these flags, because an
 * RDMA core before 6.2 refuses the access bits of FLUSH.
 */
static int direct_flush_rights(u32 flags)
{
	return (flags & NHCA_DIRECT_FLUSH_GLOBAL ? IB_ACCESS_FLUSH_GLOBAL : 0) |
	       (flags & NHCA_DIRECT_FLUSH_PERSISTENT ? IB_ACCESS_FLUSH_PERSISTENT : 0);
}

struct ib_mr *nhca_reg_direct(struct ib_pd *ibpd, const struct nhca_reg_mr_cmd *cmd, u64 length,
			      u64 iova, int access, struct ib_udata *udata)
{
	struct nhca_ucontext *uc = nhca_udata_uc(udata);
	struct nhca_direct_attr attr = {
		.fd = cmd->fd,
		.offset = cmd->offset,
		.length = length,
		.iova = iova,
		.access = access | direct_flush_rights(cmd->flags),
		.depth = cmd->depth,
		.sync = cmd->flags & NHCA_DIRECT_SYNC,
	};
	struct ib_mr *ibmr;

	if ((cmd->flags & ~DIRECT_FLAGS) || cmd->reserved)
		return ERR_PTR(-EINVAL);
	xa_lock(&uc->direct_pools);
	attr.pool = xa_load(&uc->direct_pools, cmd->pool);
	if (attr.pool)
		nhca_direct_pool_get(attr.pool);
	xa_unlock(&uc->direct_pools);
	if (!attr.pool)
		return ERR_PTR(-EINVAL);
	ibmr = nhca_mr_direct(to_nhca_dev(ibpd->device), ibpd, &attr);
	nhca_direct_pool_put(attr.pool);
	return ibmr;
}

/*
 * Destroy the handle of a pool.  A process gets -EBUSY while regions use the pool.  When the
 * context is closed, the core may destroy the handle before the regions; then the destruction of
 * the last region frees the pool.
 */
static int direct_pool_close(struct ib_uobject *uobj, enum rdma_remove_reason why,
			     struct uverbs_attr_bundle *attrs)
{
	struct nhca_ucontext *uc = to_nhca_uc(uobj->context);
	struct nhca_direct_pool *pool = uobj->object;
	bool busy;

	xa_lock(&uc->direct_pools);
	busy = why == RDMA_REMOVE_DESTROY && nhca_direct_pool_used(pool);
	if (!busy)
		__xa_erase(&uc->direct_pools, nhca_direct_pool_number(pool));
	xa_unlock(&uc->direct_pools);
	if (busy)
		return -EBUSY;
	nhca_direct_pool_put(pool);
	return 0;
}

static int direct_pool_number(struct nhca_ucontext *uc, struct nhca_direct_pool *pool)
{
	u32 number;
	int err;

	err = xa_alloc(&uc->direct_pools, &number, pool, xa_limit_31b, GFP_KERNEL_ACCOUNT);
	if (!err)
		nhca_direct_pool_set_number(pool, number);
	return err;
}

static int UVERBS_HANDLER(NHCA_METHOD_DIRECT_POOL_ALLOC)(struct uverbs_attr_bundle *attrs)
{
	struct ib_uobject *uobj =
		uverbs_attr_get_uobject(attrs, NHCA_ATTR_DIRECT_POOL_ALLOC_HANDLE);
	struct nhca_ucontext *uc = to_nhca_uc(attrs->context);
	struct nhca_dev *dev = to_nhca_dev(attrs->context->device);
	struct nhca_direct_pool *pool;
	u32 blocks, ranges, number;
	int err;

	err = uverbs_copy_from(&blocks, attrs, NHCA_ATTR_DIRECT_POOL_ALLOC_BLOCKS);
	if (err)
		return err;
	err = uverbs_copy_from(&ranges, attrs, NHCA_ATTR_DIRECT_POOL_ALLOC_RANGES);
	if (err)
		return err;
	pool = nhca_direct_pool_create(dev, uc->user, blocks, ranges);
	if (IS_ERR(pool))
		return PTR_ERR(pool);
	err = direct_pool_number(uc, pool);
	if (err) {
		nhca_direct_pool_put(pool);
		return err;
	}
	number = nhca_direct_pool_number(pool);

	uobj->object = pool;
	/* From here on the core closes the handle after an error. */
	uverbs_finalize_uobj_create(attrs, NHCA_ATTR_DIRECT_POOL_ALLOC_HANDLE);
	return uverbs_copy_to(attrs, NHCA_ATTR_DIRECT_POOL_ALLOC_RESP_NUMBER, &number,
			      sizeof(number));
}

static int UVERBS_HANDLER(NHCA_METHOD_MR_DIRECT_QUERY)(struct uverbs_attr_bundle *attrs)
{
	struct ib_mr *ibmr = uverbs_attr_get_obj(attrs, NHCA_ATTR_MR_DIRECT_QUERY_HANDLE);
	struct nhca_direct_info info;
	int err;

	if (IS_ERR(ibmr))
		return PTR_ERR(ibmr);
	err = nhca_direct_query(ibmr, &info);
	if (err)
		return err;
	return uverbs_copy_to_struct_or_zero(attrs, NHCA_ATTR_MR_DIRECT_QUERY_RESP, &info,
					     sizeof(info));
}

static int UVERBS_HANDLER(NHCA_METHOD_MR_DIRECT_SYNC)(struct uverbs_attr_bundle *attrs)
{
	struct ib_mr *ibmr = uverbs_attr_get_obj(attrs, NHCA_ATTR_MR_DIRECT_SYNC_HANDLE);

	return IS_ERR(ibmr) ? PTR_ERR(ibmr) : nhca_direct_sync(ibmr);
}

DECLARE_UVERBS_NAMED_METHOD(NHCA_METHOD_DIRECT_POOL_ALLOC,
			    UVERBS_ATTR_IDR(NHCA_ATTR_DIRECT_POOL_ALLOC_HANDLE,
					    NHCA_OBJECT_DIRECT_POOL, UVERBS_ACCESS_NEW,
					    UA_MANDATORY),
			    UVERBS_ATTR_PTR_IN(NHCA_ATTR_DIRECT_POOL_ALLOC_BLOCKS,
					       UVERBS_ATTR_TYPE(u32), UA_MANDATORY),
			    UVERBS_ATTR_PTR_IN(NHCA_ATTR_DIRECT_POOL_ALLOC_RANGES,
					       UVERBS_ATTR_TYPE(u32), UA_MANDATORY),
			    UVERBS_ATTR_PTR_OUT(NHCA_ATTR_DIRECT_POOL_ALLOC_RESP_NUMBER,
						UVERBS_ATTR_TYPE(u32), UA_MANDATORY));

DECLARE_UVERBS_NAMED_METHOD_DESTROY(NHCA_METHOD_DIRECT_POOL_FREE,
				    UVERBS_ATTR_IDR(NHCA_ATTR_DIRECT_POOL_FREE_HANDLE,
						    NHCA_OBJECT_DIRECT_POOL,
						    UVERBS_ACCESS_DESTROY, UA_MANDATORY));

DECLARE_UVERBS_NAMED_OBJECT(NHCA_OBJECT_DIRECT_POOL, UVERBS_TYPE_ALLOC_IDR(direct_pool_close),
			    &UVERBS_METHOD(NHCA_METHOD_DIRECT_POOL_ALLOC),
			    &UVERBS_METHOD(NHCA_METHOD_DIRECT_POOL_FREE));

DECLARE_UVERBS_NAMED_METHOD(NHCA_METHOD_MR_DIRECT_QUERY,
			    UVERBS_ATTR_IDR(NHCA_ATTR_MR_DIRECT_QUERY_HANDLE, UVERBS_OBJECT_MR,
					    UVERBS_ACCESS_READ, UA_MANDATORY),
			    UVERBS_ATTR_PTR_OUT(NHCA_ATTR_MR_DIRECT_QUERY_RESP,
						UVERBS_ATTR_STRUCT(struct nhca_direct_info,
								   blocks_most),
						UA_MANDATORY));

DECLARE_UVERBS_NAMED_METHOD(NHCA_METHOD_MR_DIRECT_SYNC,
			    UVERBS_ATTR_IDR(NHCA_ATTR_MR_DIRECT_SYNC_HANDLE, UVERBS_OBJECT_MR,
					    UVERBS_ACCESS_READ, UA_MANDATORY));

ADD_UVERBS_METHODS(nhca_mr_methods, UVERBS_OBJECT_MR,
		   &UVERBS_METHOD(NHCA_METHOD_MR_DIRECT_QUERY),
		   &UVERBS_METHOD(NHCA_METHOD_MR_DIRECT_SYNC));

const struct uapi_definition nhca_direct_defs[] = {
	UAPI_DEF_CHAIN_OBJ_TREE_NAMED(NHCA_OBJECT_DIRECT_POOL),
	UAPI_DEF_CHAIN_OBJ_TREE(UVERBS_OBJECT_MR, &nhca_mr_methods),
	{}
};

#else

struct ib_mr *nhca_reg_direct(struct ib_pd *ibpd, const struct nhca_reg_mr_cmd *cmd, u64 length,
			      u64 iova, int access, struct ib_udata *udata)
{
	return ERR_PTR(-EOPNOTSUPP);
}

const struct uapi_definition nhca_direct_defs[] = {
	{}
};

#endif
