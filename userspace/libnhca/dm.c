// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Device memory: memory of the kernel that is mapped into the process.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <infiniband/cmd_write.h>

#include "nhca.h"

/*
 * Offsets and lengths of copies must be multiples of 4 bytes, as on other adapters.  Test programs
 * of rdma-core check that other values are refused.
 */
#define NHCA_DM_ALIGN 4

/**
 * struct nhca_dm - device memory
 * @vdm:    part of libibverbs
 * @map:    address of the mapping
 * @size:   bytes of the mapping
 * @length: bytes that the application requested
 */
struct nhca_dm {
	struct verbs_dm vdm;
	char *map;
	size_t size;
	size_t length;
};

static struct nhca_dm *to_ndm(struct ibv_dm *ibdm)
{
	return container_of(ibdm, struct nhca_dm, vdm.dm);
}

static int check_access(const struct nhca_dm *dm, uint64_t offset,
			size_t length)
{
	if (offset % NHCA_DM_ALIGN || length % NHCA_DM_ALIGN)
		return EINVAL;
	if (length > dm->length || offset > dm->length - length)
		return EFAULT;
	return 0;
}

static int memcpy_to_dm(struct ibv_dm *ibdm, uint64_t dm_offset,
			const void *host_addr, size_t length)
{
	struct nhca_dm *dm = to_ndm(ibdm);
	int ret = check_access(dm, dm_offset, length);

	if (!ret)
		memcpy(dm->map + dm_offset, host_addr, length);
	return ret;
}

static int memcpy_from_dm(void *host_addr, struct ibv_dm *ibdm,
			  uint64_t dm_offset, size_t length)
{
	struct nhca_dm *dm = to_ndm(ibdm);
	int ret = check_access(dm, dm_offset, length);

	if (!ret)
		memcpy(host_addr, dm->map + dm_offset, length);
	return ret;
}

static int dm_map(struct nhca_dm *dm, struct ibv_context *context,
		  const struct nhca_alloc_dm_resp *resp, size_t length)
{
	dm->length = length;
	dm->size = resp->size;
	dm->map = mmap(NULL, dm->size, PROT_READ | PROT_WRITE, MAP_SHARED,
		       context->cmd_fd, resp->offset);
	if (dm->map == MAP_FAILED)
		return errno;
	dm->vdm.dm.memcpy_to_dm = memcpy_to_dm;
	dm->vdm.dm.memcpy_from_dm = memcpy_from_dm;
	return 0;
}

struct ibv_dm *nhca_alloc_dm(struct ibv_context *context,
			     struct ibv_alloc_dm_attr *attr)
{
	DECLARE_COMMAND_BUFFER(cmdb, UVERBS_OBJECT_DM, UVERBS_METHOD_DM_ALLOC,
			       1);
	struct nhca_alloc_dm_resp resp = {};
	struct nhca_dm *dm;
	int ret;

	if (!check_comp_mask(attr->comp_mask, 0)) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	dm = calloc(1, sizeof(*dm));
	if (!dm)
		return NULL;

	fill_attr_out_ptr(cmdb, NHCA_ATTR_ALLOC_DM_RESP, &resp);
	ret = ibv_cmd_alloc_dm(context, attr, &dm->vdm, cmdb);
	if (ret)
		goto err_free;

	ret = dm_map(dm, context, &resp, attr->length);
	if (ret)
		goto err_dealloc;
	return &dm->vdm.dm;

err_dealloc:
	ibv_cmd_free_dm(&dm->vdm);
err_free:
	free(dm);
	errno = ret;
	return NULL;
}

int nhca_free_dm(struct ibv_dm *ibdm)
{
	struct nhca_dm *dm = to_ndm(ibdm);
	int ret;

	ret = ibv_cmd_free_dm(&dm->vdm);
	if (ret)
		return ret;

	munmap(dm->map, dm->size);
	free(dm);
	return 0;
}

struct ibv_dm *nhca_import_dm(struct ibv_context *context, uint32_t dm_handle)
{
	DECLARE_COMMAND_BUFFER(cmdb, UVERBS_OBJECT_DM, NHCA_METHOD_DM_QUERY, 3);
	struct nhca_alloc_dm_resp resp = {};
	struct nhca_dm *dm;
	uint64_t length;
	int ret;

	dm = calloc(1, sizeof(*dm));
	if (!dm)
		return NULL;

	fill_attr_in_obj(cmdb, NHCA_ATTR_DM_QUERY_HANDLE, dm_handle);
	fill_attr_out_ptr(cmdb, NHCA_ATTR_DM_QUERY_RESP, &resp);
	fill_attr_out_ptr(cmdb, NHCA_ATTR_DM_QUERY_RESP_LENGTH, &length);
	ret = execute_ioctl(context, cmdb);
	if (!ret)
		ret = dm_map(dm, context, &resp, length);
	if (ret) {
		free(dm);
		errno = ret;
		return NULL;
	}
	dm->vdm.handle = dm_handle;
	dm->vdm.dm.context = context;
	return &dm->vdm.dm;
}

void nhca_unimport_dm(struct ibv_dm *ibdm)
{
	struct nhca_dm *dm = to_ndm(ibdm);

	munmap(dm->map, dm->size);
	free(dm);
}

struct ibv_mr *nhca_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *ibdm,
			      uint64_t dm_offset, size_t length,
			      unsigned int access)
{
	struct nhca_dm *dm = to_ndm(ibdm);
	struct verbs_mr *vmr;
	int ret;

	vmr = calloc(1, sizeof(*vmr));
	if (!vmr)
		return NULL;

	ret = ibv_cmd_reg_dm_mr(pd, &dm->vdm, dm_offset, length, access, vmr,
				NULL);
	if (ret) {
		free(vmr);
		errno = ret;
		return NULL;
	}
	return &vmr->ibv_mr;
}
