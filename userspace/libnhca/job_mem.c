// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Job memory: its handles.
 */
#include <errno.h>
#include <stdlib.h>

#include <infiniband/cmd_write.h>

#include "nhca.h"

/**
 * struct nhca_job_mem - a handle of job memory
 * @mem:    the public part
 * @handle: handle of the kernel object
 * @addr:   address of the memory; NULL: nhcadv_open_job_mem() made this handle
 */
struct nhca_job_mem {
	struct nhcadv_job_mem mem;
	uint32_t handle;
	void *addr;
};

#define ACCESS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | \
		IBV_ACCESS_REMOTE_ATOMIC)

static_assert((int)IBV_ACCESS_LOCAL_WRITE == IB_UVERBS_ACCESS_LOCAL_WRITE &&
	      (int)IBV_ACCESS_REMOTE_READ == IB_UVERBS_ACCESS_REMOTE_READ &&
	      (int)IBV_ACCESS_REMOTE_WRITE == IB_UVERBS_ACCESS_REMOTE_WRITE &&
	      (int)IBV_ACCESS_REMOTE_ATOMIC == IB_UVERBS_ACCESS_REMOTE_ATOMIC, "access");

static int reg(struct nhca_job_mem *mem, unsigned int access)
{
	DECLARE_COMMAND_BUFFER(cmdb, NHCA_OBJECT_JOB_MEM, NHCA_METHOD_JOB_MEM_REG, 6);
	struct ib_uverbs_attr *handle;
	uint64_t pvo;
	int ret;

	handle = fill_attr_out_obj(cmdb, NHCA_ATTR_JOB_MEM_REG_HANDLE);
	fill_attr_in_uint32(cmdb, NHCA_ATTR_JOB_MEM_REG_JOB, mem->mem.job);
	fill_attr_in_uint64(cmdb, NHCA_ATTR_JOB_MEM_REG_ADDR, (uintptr_t)mem->addr);
	fill_attr_in_uint64(cmdb, NHCA_ATTR_JOB_MEM_REG_LENGTH, mem->mem.length);
	fill_attr_in_uint32(cmdb, NHCA_ATTR_JOB_MEM_REG_ACCESS, access);
	fill_attr_out_ptr(cmdb, NHCA_ATTR_JOB_MEM_REG_RESP_PVO, &pvo);
	ret = execute_ioctl(mem->mem.context, cmdb);
	if (ret)
		return ret;

	mem->handle = read_attr_obj(NHCA_ATTR_JOB_MEM_REG_HANDLE, handle);
	mem->mem.pvo = pvo;
	return 0;
}

static int open_by_pvo(struct nhca_job_mem *mem)
{
	DECLARE_COMMAND_BUFFER(cmdb, NHCA_OBJECT_JOB_MEM, NHCA_METHOD_JOB_MEM_OPEN, 4);
	struct ib_uverbs_attr *handle;
	uint64_t length;
	int ret;

	handle = fill_attr_out_obj(cmdb, NHCA_ATTR_JOB_MEM_OPEN_HANDLE);
	fill_attr_in_uint32(cmdb, NHCA_ATTR_JOB_MEM_OPEN_JOB, mem->mem.job);
	fill_attr_in_uint64(cmdb, NHCA_ATTR_JOB_MEM_OPEN_PVO, mem->mem.pvo);
	fill_attr_out_ptr(cmdb, NHCA_ATTR_JOB_MEM_OPEN_RESP_LENGTH, &length);
	ret = execute_ioctl(mem->mem.context, cmdb);
	if (ret)
		return ret;

	mem->handle = read_attr_obj(NHCA_ATTR_JOB_MEM_OPEN_HANDLE, handle);
	mem->mem.length = length;
	return 0;
}

struct nhcadv_job_mem *nhcadv_reg_job_mem(struct ibv_context *context, uint32_t job, void *addr,
					  size_t length, unsigned int access)
{
	struct nhca_job_mem *mem;
	int ret;

	ret = nhca_check_channels(context);
	if (!ret && !check_comp_mask(access, ACCESS))
		ret = EINVAL;
	if (ret) {
		errno = ret;
		return NULL;
	}
	mem = calloc(1, sizeof(*mem));
	if (!mem)
		return NULL;

	mem->mem.context = context;
	mem->mem.job = job;
	mem->mem.length = length;
	mem->addr = addr;
	/*
	 * As for memory regions: without ibv_dontfork_range(), copy-on-write after fork() could
	 * give the parent new pages, while the old pages stay registered.
	 */
	if (ibv_dontfork_range(addr, length)) {
		ret = errno;
		goto err_free;
	}
	ret = reg(mem, access);
	if (ret)
		goto err_dofork;
	return &mem->mem;

err_dofork:
	ibv_dofork_range(addr, length);
err_free:
	free(mem);
	errno = ret;
	return NULL;
}

struct nhcadv_job_mem *nhcadv_open_job_mem(struct ibv_context *context, uint32_t job, uint64_t pvo)
{
	struct nhca_job_mem *mem;
	int ret;

	ret = nhca_check_channels(context);
	if (ret) {
		errno = ret;
		return NULL;
	}
	mem = calloc(1, sizeof(*mem));
	if (!mem)
		return NULL;

	mem->mem.context = context;
	mem->mem.job = job;
	mem->mem.pvo = pvo;
	ret = open_by_pvo(mem);
	if (ret) {
		free(mem);
		errno = ret;
		return NULL;
	}
	return &mem->mem;
}

int nhcadv_dereg_job_mem(struct nhcadv_job_mem *job_mem)
{
	struct nhca_job_mem *mem = container_of(job_mem, struct nhca_job_mem, mem);
	DECLARE_COMMAND_BUFFER(cmdb, NHCA_OBJECT_JOB_MEM, NHCA_METHOD_JOB_MEM_DEREG, 1);
	int ret;

	fill_attr_in_obj(cmdb, NHCA_ATTR_JOB_MEM_DEREG_HANDLE, mem->handle);
	ret = execute_ioctl(mem->mem.context, cmdb);
	if (ret)
		return ret;

	if (mem->addr)
		ibv_dofork_range(mem->addr, mem->mem.length);
	free(mem);
	return 0;
}
