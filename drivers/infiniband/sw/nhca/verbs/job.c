// SPDX-License-Identifier: GPL-2.0
/*
 * Job memory: the handles of processes.  A handle is a uobject.  The core destroys it when the
 * process calls NHCA_METHOD_JOB_MEM_DEREG, when the file descriptor of its context is closed, or
 * when the device of the context is removed.
 */
#include "objects.h"
#include "../memory/job.h"
#include "../net/net.h"

#define UVERBS_MODULE_NAME nhca
#include <rdma/uverbs_named_ioctl.h>

/*
 * Get the job whose number is in an attribute.
 * Return: a counted reference, which the caller releases with nhca_job_put(), because a region has
 * its own reference; ERR_PTR: the attribute cannot be read, or an error of nhca_job_get().
 */
static struct nhca_job *job_of(const struct uverbs_attr_bundle *attrs, u16 attr)
{
	struct nhca_dev *dev = to_nhca_dev(attrs->context->device);
	u32 id;
	int err;

	err = uverbs_copy_from(&id, attrs, attr);
	return err ? ERR_PTR(err) : nhca_job_get(nhca_net_ns(dev->nn), id);
}

/* Destroy the handle.  The function never fails, whatever the reason @why is. */
static int job_mem_close(struct ib_uobject *uobj, enum rdma_remove_reason why,
			 struct uverbs_attr_bundle *attrs)
{
	nhca_job_mem_put(uobj->object);
	return 0;
}

static int UVERBS_HANDLER(NHCA_METHOD_JOB_MEM_REG)(struct uverbs_attr_bundle *attrs)
{
	struct ib_uobject *uobj = uverbs_attr_get_uobject(attrs, NHCA_ATTR_JOB_MEM_REG_HANDLE);
	struct nhca_dev *dev = to_nhca_dev(attrs->context->device);
	struct nhca_job_mem *mem;
	struct nhca_job *job;
	u64 addr, length;
	u32 access;
	int err;

	err = uverbs_copy_from(&addr, attrs, NHCA_ATTR_JOB_MEM_REG_ADDR);
	if (err)
		return err;
	err = uverbs_copy_from(&length, attrs, NHCA_ATTR_JOB_MEM_REG_LENGTH);
	if (err)
		return err;
	err = uverbs_get_flags32(&access, attrs, NHCA_ATTR_JOB_MEM_REG_ACCESS,
				 IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_READ |
				 IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_ATOMIC);
	if (err)
		return err;
	job = job_of(attrs, NHCA_ATTR_JOB_MEM_REG_JOB);
	if (IS_ERR(job))
		return PTR_ERR(job);
	mem = nhca_job_mem_user(dev, job, addr, length, access);
	nhca_job_put(job);
	if (IS_ERR(mem))
		return PTR_ERR(mem);

	uobj->object = mem;
	/* From here on the core closes the handle after an error. */
	uverbs_finalize_uobj_create(attrs, NHCA_ATTR_JOB_MEM_REG_HANDLE);
	return uverbs_copy_to(attrs, NHCA_ATTR_JOB_MEM_REG_RESP_PVO, &mem->pvo,
			      sizeof(mem->pvo));
}

static int UVERBS_HANDLER(NHCA_METHOD_JOB_MEM_OPEN)(struct uverbs_attr_bundle *attrs)
{
	struct ib_uobject *uobj = uverbs_attr_get_uobject(attrs, NHCA_ATTR_JOB_MEM_OPEN_HANDLE);
	struct nhca_job_mem *mem;
	struct nhca_job *job;
	u64 pvo;
	int err;

	err = uverbs_copy_from(&pvo, attrs, NHCA_ATTR_JOB_MEM_OPEN_PVO);
	if (err)
		return err;
	job = job_of(attrs, NHCA_ATTR_JOB_MEM_OPEN_JOB);
	if (IS_ERR(job))
		return PTR_ERR(job);
	mem = nhca_job_mem_open(job, pvo);
	nhca_job_put(job);
	if (IS_ERR(mem))
		return PTR_ERR(mem);

	uobj->object = mem;
	/* The core closes the handle after an error, as in NHCA_METHOD_JOB_MEM_REG. */
	uverbs_finalize_uobj_create(attrs, NHCA_ATTR_JOB_MEM_OPEN_HANDLE);
	return uverbs_copy_to(attrs, NHCA_ATTR_JOB_MEM_OPEN_RESP_LENGTH, &mem->length,
			      sizeof(mem->length));
}

DECLARE_UVERBS_NAMED_METHOD(NHCA_METHOD_JOB_MEM_REG,
			    UVERBS_ATTR_IDR(NHCA_ATTR_JOB_MEM_REG_HANDLE, NHCA_OBJECT_JOB_MEM,
					    UVERBS_ACCESS_NEW, UA_MANDATORY),
			    UVERBS_ATTR_PTR_IN(NHCA_ATTR_JOB_MEM_REG_JOB,
					       UVERBS_ATTR_TYPE(u32), UA_MANDATORY),
			    UVERBS_ATTR_PTR_IN(NHCA_ATTR_JOB_MEM_REG_ADDR,
					       UVERBS_ATTR_TYPE(u64), UA_MANDATORY),
			    UVERBS_ATTR_PTR_IN(NHCA_ATTR_JOB_MEM_REG_LENGTH,
					       UVERBS_ATTR_TYPE(u64), UA_MANDATORY),
			    UVERBS_ATTR_FLAGS_IN(NHCA_ATTR_JOB_MEM_REG_ACCESS,
						 enum ib_access_flags, UA_MANDATORY),
			    UVERBS_ATTR_PTR_OUT(NHCA_ATTR_JOB_MEM_REG_RESP_PVO,
						UVERBS_ATTR_TYPE(u64), UA_MANDATORY));

DECLARE_UVERBS_NAMED_METHOD(NHCA_METHOD_JOB_MEM_OPEN,
			    UVERBS_ATTR_IDR(NHCA_ATTR_JOB_MEM_OPEN_HANDLE, NHCA_OBJECT_JOB_MEM,
					    UVERBS_ACCESS_NEW, UA_MANDATORY),
			    UVERBS_ATTR_PTR_IN(NHCA_ATTR_JOB_MEM_OPEN_JOB,
					       UVERBS_ATTR_TYPE(u32), UA_MANDATORY),
			    UVERBS_ATTR_PTR_IN(NHCA_ATTR_JOB_MEM_OPEN_PVO,
					       UVERBS_ATTR_TYPE(u64), UA_MANDATORY),
			    UVERBS_ATTR_PTR_OUT(NHCA_ATTR_JOB_MEM_OPEN_RESP_LENGTH,
						UVERBS_ATTR_TYPE(u64), UA_MANDATORY));

DECLARE_UVERBS_NAMED_METHOD_DESTROY(NHCA_METHOD_JOB_MEM_DEREG,
				    UVERBS_ATTR_IDR(NHCA_ATTR_JOB_MEM_DEREG_HANDLE,
						    NHCA_OBJECT_JOB_MEM,
						    UVERBS_ACCESS_DESTROY, UA_MANDATORY));

DECLARE_UVERBS_NAMED_OBJECT(NHCA_OBJECT_JOB_MEM, UVERBS_TYPE_ALLOC_IDR(job_mem_close),
			    &UVERBS_METHOD(NHCA_METHOD_JOB_MEM_REG),
			    &UVERBS_METHOD(NHCA_METHOD_JOB_MEM_OPEN),
			    &UVERBS_METHOD(NHCA_METHOD_JOB_MEM_DEREG));

const struct uapi_definition nhca_job_defs[] = {
	UAPI_DEF_CHAIN_OBJ_TREE_NAMED(NHCA_OBJECT_JOB_MEM),
	{}
};
