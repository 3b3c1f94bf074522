// SPDX-License-Identifier: GPL-2.0
/*
 * nhca-store: the calls of libnhca, which are looked up when they are needed, so that clients on
 * other RDMA devices need no libnhca.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>

#include "direct.h"

static struct {
	typeof(nhcadv_direct_alloc_pool) *alloc_pool;
	typeof(nhcadv_direct_free_pool) *free_pool;
	typeof(nhcadv_direct_reg_file) *reg_file;
	typeof(nhcadv_direct_sync) *sync;
} calls;

bool direct_load(void)
{
	void *library;

	if (calls.sync)
		return true;
	/* libibverbs has loaded the same file as its provider for nhca devices. */
	library = dlopen("libnhca.so.1", RTLD_NOW);
	if (!library)
		return false;
	calls.alloc_pool = dlsym(library, "nhcadv_direct_alloc_pool");
	calls.free_pool = dlsym(library, "nhcadv_direct_free_pool");
	calls.reg_file = dlsym(library, "nhcadv_direct_reg_file");
	calls.sync = dlsym(library, "nhcadv_direct_sync");
	if (calls.alloc_pool && calls.free_pool && calls.reg_file && calls.sync)
		return true;
	calls.sync = NULL;
	return false;
}

struct nhcadv_direct_pool *direct_alloc_pool(struct ibv_context *context, uint64_t blocks)
{
	struct nhcadv_direct_pool_init_attr attr = { .blocks = blocks };

	if (blocks > UINT32_MAX) {
		errno = EINVAL;
		return NULL;
	}
	return calls.alloc_pool(context, &attr);
}

int direct_free_pool(struct nhcadv_direct_pool *pool)
{
	return calls.free_pool(pool);
}

struct ibv_mr *direct_reg_file(struct ibv_pd *pd, const struct nhcadv_direct_file_attr *attr)
{
	return calls.reg_file(pd, attr);
}

int direct_sync(struct ibv_mr *mr)
{
	return calls.sync(mr);
}
