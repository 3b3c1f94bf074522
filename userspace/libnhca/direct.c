// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Regions of files and block devices, and the pools of blocks that they use.
 */
#include <errno.h>
#include <stdlib.h>

#include <infiniband/cmd_write.h>

#include "nhca.h"
#include "nhcadv_direct.h"

/**
 * struct nhca_direct_pool - a pool
 * @pool:   the public part
 * @handle: handle of the kernel object
 * @number: number by which the registration of a region names the pool
 */
struct nhca_direct_pool {
	struct nhcadv_direct_pool pool;
	uint32_t handle;
	uint32_t number;
};

#define FLUSHES (IBV_ACCESS_FLUSH_GLOBAL | IBV_ACCESS_FLUSH_PERSISTENT)
#define ACCESS (IBV_ACCESS_REMOTE_READ | IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | \
		IBV_ACCESS_MW_BIND | FLUSHES)

static int check_direct(struct ibv_context *context)
{
	if (!nhca_is_device(context->device) ||
	    !(to_nctx(context)->features & NHCA_FEATURE_DIRECT))
		return EOPNOTSUPP;
	return 0;
}

static int alloc_pool(struct nhca_direct_pool *pool,
		      const struct nhcadv_direct_pool_init_attr *attr)
{
	DECLARE_COMMAND_BUFFER(cmdb, NHCA_OBJECT_DIRECT_POOL, NHCA_METHOD_DIRECT_POOL_ALLOC, 4);
	struct ib_uverbs_attr *handle;
	int ret;

	handle = fill_attr_out_obj(cmdb, NHCA_ATTR_DIRECT_POOL_ALLOC_HANDLE);
	fill_attr_in_uint32(cmdb, NHCA_ATTR_DIRECT_POOL_ALLOC_BLOCKS, attr->blocks);
	fill_attr_in_uint32(cmdb, NHCA_ATTR_DIRECT_POOL_ALLOC_RANGES, attr->ranges);
	fill_attr_out_ptr(cmdb, NHCA_ATTR_DIRECT_POOL_ALLOC_RESP_NUMBER, &pool->number);
	ret = execute_ioctl(pool->pool.context, cmdb);
	if (!ret)
		pool->handle = read_attr_obj(NHCA_ATTR_DIRECT_POOL_ALLOC_HANDLE, handle);
	return ret;
}

struct nhcadv_direct_pool *
nhcadv_direct_alloc_pool(struct ibv_context *context,
			 const struct nhcadv_direct_pool_init_attr *attr)
{
	struct nhca_direct_pool *pool;
	int ret;

	ret = check_direct(context);
	if (!ret && !check_comp_mask(attr->comp_mask, 0))
		ret = EINVAL;
	if (ret) {
		errno = ret;
		return NULL;
	}
	pool = calloc(1, sizeof(*pool));
	if (!pool)
		return NULL;

	pool->pool.context = context;
	pool->pool.blocks = attr->blocks;
	ret = alloc_pool(pool, attr);
	if (ret) {
		free(pool);
		errno = ret;
		return NULL;
	}
	return &pool->pool;
}

int nhcadv_direct_free_pool(struct nhcadv_direct_pool *direct_pool)
{
	struct nhca_direct_pool *pool = container_of(direct_pool, struct nhca_direct_pool, pool);
	DECLARE_COMMAND_BUFFER(cmdb, NHCA_OBJECT_DIRECT_POOL, NHCA_METHOD_DIRECT_POOL_FREE, 1);
	int ret;

	fill_attr_in_obj(cmdb, NHCA_ATTR_DIRECT_POOL_FREE_HANDLE, pool->handle);
	ret = execute_ioctl(pool->pool.context, cmdb);
	if (!ret)
		free(pool);
	return ret;
}

/**
 * struct reg_direct - command to register a region of a file
 * @core: command of uverbs
 * @drv:  part of the nhca kernel driver
 */
struct reg_direct {
	struct ibv_reg_mr core;
	struct nhca_reg_mr_cmd drv;
};

static int check_file(struct ibv_pd *pd, const struct nhcadv_direct_file_attr *attr)
{
	int ret = check_direct(pd->context);

	if (ret)
		return ret;
	if (!check_comp_mask(attr->comp_mask, 0) ||
	    !check_comp_mask(attr->flags, NHCADV_DIRECT_SYNC) || !attr->pool ||
	    attr->pool->context != pd->context)
		return EINVAL;
	if (!check_comp_mask(attr->access, ACCESS))
		return EOPNOTSUPP;
	return 0;
}

static uint32_t direct_flags(const struct nhcadv_direct_file_attr *attr)
{
	return (attr->flags & NHCADV_DIRECT_SYNC ? NHCA_DIRECT_SYNC : 0) |
	       (attr->access & IBV_ACCESS_FLUSH_GLOBAL ? NHCA_DIRECT_FLUSH_GLOBAL : 0) |
	       (attr->access & IBV_ACCESS_FLUSH_PERSISTENT ? NHCA_DIRECT_FLUSH_PERSISTENT : 0);
}

struct ibv_mr *nhcadv_direct_reg_file(struct ibv_pd *pd, const struct nhcadv_direct_file_attr *attr)
{
	struct ib_uverbs_reg_mr_resp resp;
	struct reg_direct cmd = {};
	struct verbs_mr *vmr;
	int ret;

	ret = check_file(pd, attr);
	if (ret) {
		errno = ret;
		return NULL;
	}
	vmr = calloc(1, sizeof(*vmr));
	if (!vmr)
		return NULL;

	cmd.drv.kind = NHCA_REG_MR_DIRECT;
	cmd.drv.fd = attr->fd;
	cmd.drv.offset = attr->offset;
	cmd.drv.pool = container_of(attr->pool, struct nhca_direct_pool, pool)->number;
	cmd.drv.depth = attr->depth;
	cmd.drv.flags = direct_flags(attr);
	/* The region has no memory in the process, so name the address that peers use. */
	ret = ibv_cmd_reg_mr(pd, (void *)(uintptr_t)attr->iova, attr->length, attr->iova,
			     attr->access & ~FLUSHES, vmr, &cmd.core, sizeof(cmd), &resp,
			     sizeof(resp));
	if (ret) {
		free(vmr);
		errno = ret;
		return NULL;
	}
	/*
	 * For this type ibv_dereg_mr() does not call ibv_dofork_range(), which is for registered
	 * memory of the process.
	 */
	vmr->mr_type = IBV_MR_TYPE_DMABUF_MR;
	vmr->ibv_mr.pd = pd;
	vmr->ibv_mr.addr = (void *)(uintptr_t)attr->iova;
	vmr->ibv_mr.length = attr->length;
	return &vmr->ibv_mr;
}

int nhcadv_direct_query(struct ibv_mr *mr, struct nhcadv_direct_info *info)
{
	DECLARE_COMMAND_BUFFER(cmdb, UVERBS_OBJECT_MR, NHCA_METHOD_MR_DIRECT_QUERY, 2);
	struct nhca_direct_info resp = {};
	int ret = check_direct(mr->context);

	if (ret)
		return ret;
	fill_attr_in_obj(cmdb, NHCA_ATTR_MR_DIRECT_QUERY_HANDLE, mr->handle);
	fill_attr_out_ptr(cmdb, NHCA_ATTR_MR_DIRECT_QUERY_RESP, &resp);
	ret = execute_ioctl(mr->context, cmdb);
	if (ret)
		return ret;
	*info = (struct nhcadv_direct_info) {
		.reads = resp.reads,
		.read_bytes = resp.read_bytes,
		.refills = resp.refills,
		.errors = resp.errors,
		.last_error_offset = resp.last_error_offset,
		.last_error = resp.last_error,
		.blocks = resp.blocks,
		.blocks_used = resp.blocks_used,
		.blocks_most = resp.blocks_most,
		.writes = resp.writes,
		.write_bytes = resp.write_bytes,
		.edges = resp.edges,
		.splits = resp.splits,
		.lost = resp.lost,
		.flushes = resp.flushes,
		.dirty = resp.dirty,
	};
	return 0;
}

int nhcadv_direct_sync(struct ibv_mr *mr)
{
	DECLARE_COMMAND_BUFFER(cmdb, UVERBS_OBJECT_MR, NHCA_METHOD_MR_DIRECT_SYNC, 1);
	int ret = check_direct(mr->context);

	if (ret)
		return ret;
	fill_attr_in_obj(cmdb, NHCA_ATTR_MR_DIRECT_SYNC_HANDLE, mr->handle);
	return execute_ioctl(mr->context, cmdb);
}
