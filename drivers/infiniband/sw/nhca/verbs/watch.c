// SPDX-License-Identifier: GPL-2.0
/*
 * Watches of a process's memory (memory/watch.h): the objects that user space has, and the words
 * in which a process reads whether its memory may have changed.
 */
#include <linux/mm.h>
#include <linux/slab.h>

#include "objects.h"
#include "../memory/watch.h"

#define UVERBS_MODULE_NAME nhca
#include <rdma/uverbs_named_ioctl.h>

#if NHCA_HAS_WATCHES

/**
 * struct watch_object - a set of watches with its words
 * @set:   the watches
 * @entry: mmap entry that owns the words
 */
struct watch_object {
	struct nhca_watch_set *set;
	struct rdma_user_mmap_entry *entry;
};

/*
 * Destroy a set.  When the device is removed, the process may still have the words mapped, and
 * reads in them that all ranges may have changed (NHCA_WATCH_CHANGED).
 */
static int watch_set_close(struct ib_uobject *uobj, enum rdma_remove_reason why,
			   struct uverbs_attr_bundle *attrs)
{
	struct watch_object *w = uobj->object;

	nhca_watch_set_destroy(w->set);
	rdma_user_mmap_entry_remove(w->entry);
	kfree(w);
	return 0;
}

static struct watch_object *watch_object_new(struct nhca_ucontext *uc, struct nhca_dev *dev,
					     u32 slots, size_t size)
{
	struct watch_object *w = kzalloc(sizeof(*w), GFP_KERNEL_ACCOUNT);
	u32 *words;
	int err;

	if (!w)
		return ERR_PTR(-ENOMEM);
	words = nhca_shared_alloc(uc, size, NULL, true, &w->entry);
	if (IS_ERR(words)) {
		err = PTR_ERR(words);
		goto err_free;
	}
	w->set = nhca_watch_set_create(&dev->users, uc->user, words, slots);
	if (IS_ERR(w->set)) {
		err = PTR_ERR(w->set);
		goto err_words;
	}
	return w;

err_words:
	rdma_user_mmap_entry_remove(w->entry);
err_free:
	kfree(w);
	return ERR_PTR(err);
}

static int UVERBS_HANDLER(NHCA_METHOD_WATCH_SET_ALLOC)(struct uverbs_attr_bundle *attrs)
{
	struct ib_uobject *uobj =
		uverbs_attr_get_uobject(attrs, NHCA_ATTR_WATCH_SET_ALLOC_HANDLE);
	struct nhca_watch_set_resp resp = {};
	struct watch_object *w;
	size_t size;
	u32 slots;
	int err;

	err = uverbs_copy_from(&slots, attrs, NHCA_ATTR_WATCH_SET_ALLOC_SLOTS);
	if (err)
		return err;
	if (!slots || slots > NHCA_MAX_WATCH_SLOTS)
		return -EINVAL;
	size = PAGE_ALIGN(slots * sizeof(u32));
	w = watch_object_new(to_nhca_uc(attrs->context), to_nhca_dev(attrs->context->device),
			     slots, size);
	if (IS_ERR(w))
		return PTR_ERR(w);
	resp.offset = rdma_user_mmap_get_offset(w->entry);
	resp.size = size;

	uobj->object = w;
	/* From here on the core closes the handle after an error. */
	uverbs_finalize_uobj_create(attrs, NHCA_ATTR_WATCH_SET_ALLOC_HANDLE);
	return uverbs_copy_to_struct_or_zero(attrs, NHCA_ATTR_WATCH_SET_ALLOC_RESP, &resp,
					     sizeof(resp));
}

static int UVERBS_HANDLER(NHCA_METHOD_WATCH_ADD)(struct uverbs_attr_bundle *attrs)
{
	struct watch_object *w = uverbs_attr_get_obj(attrs, NHCA_ATTR_WATCH_ADD_HANDLE);
	u64 addr, length;
	u32 slot;
	int err;

	if (IS_ERR(w))
		return PTR_ERR(w);
	err = uverbs_copy_from(&slot, attrs, NHCA_ATTR_WATCH_ADD_SLOT);
	if (err)
		return err;
	err = uverbs_copy_from(&addr, attrs, NHCA_ATTR_WATCH_ADD_ADDR);
	if (err)
		return err;
	err = uverbs_copy_from(&length, attrs, NHCA_ATTR_WATCH_ADD_LENGTH);
	if (err)
		return err;
	return nhca_watch_add(w->set, slot, addr, length);
}

static int UVERBS_HANDLER(NHCA_METHOD_WATCH_DEL)(struct uverbs_attr_bundle *attrs)
{
	struct watch_object *w = uverbs_attr_get_obj(attrs, NHCA_ATTR_WATCH_DEL_HANDLE);
	u32 slot;
	int err;

	if (IS_ERR(w))
		return PTR_ERR(w);
	err = uverbs_copy_from(&slot, attrs, NHCA_ATTR_WATCH_DEL_SLOT);
	return err ?: nhca_watch_del(w->set, slot);
}

DECLARE_UVERBS_NAMED_METHOD(NHCA_METHOD_WATCH_SET_ALLOC,
			    UVERBS_ATTR_IDR(NHCA_ATTR_WATCH_SET_ALLOC_HANDLE,
					    NHCA_OBJECT_WATCH_SET, UVERBS_ACCESS_NEW,
					    UA_MANDATORY),
			    UVERBS_ATTR_PTR_IN(NHCA_ATTR_WATCH_SET_ALLOC_SLOTS,
					       UVERBS_ATTR_TYPE(u32), UA_MANDATORY),
			    UVERBS_ATTR_PTR_OUT(NHCA_ATTR_WATCH_SET_ALLOC_RESP,
						UVERBS_ATTR_STRUCT(struct nhca_watch_set_resp,
								   size),
						UA_MANDATORY));

DECLARE_UVERBS_NAMED_METHOD_DESTROY(NHCA_METHOD_WATCH_SET_FREE,
				    UVERBS_ATTR_IDR(NHCA_ATTR_WATCH_SET_FREE_HANDLE,
						    NHCA_OBJECT_WATCH_SET,
						    UVERBS_ACCESS_DESTROY, UA_MANDATORY));

/* UVERBS_ACCESS_READ: several threads may add and end watches at the same time. */
DECLARE_UVERBS_NAMED_METHOD(NHCA_METHOD_WATCH_ADD,
			    UVERBS_ATTR_IDR(NHCA_ATTR_WATCH_ADD_HANDLE, NHCA_OBJECT_WATCH_SET,
					    UVERBS_ACCESS_READ, UA_MANDATORY),
			    UVERBS_ATTR_PTR_IN(NHCA_ATTR_WATCH_ADD_SLOT,
					       UVERBS_ATTR_TYPE(u32), UA_MANDATORY),
			    UVERBS_ATTR_PTR_IN(NHCA_ATTR_WATCH_ADD_ADDR,
					       UVERBS_ATTR_TYPE(u64), UA_MANDATORY),
			    UVERBS_ATTR_PTR_IN(NHCA_ATTR_WATCH_ADD_LENGTH,
					       UVERBS_ATTR_TYPE(u64), UA_MANDATORY));

DECLARE_UVERBS_NAMED_METHOD(NHCA_METHOD_WATCH_DEL,
			    UVERBS_ATTR_IDR(NHCA_ATTR_WATCH_DEL_HANDLE, NHCA_OBJECT_WATCH_SET,
					    UVERBS_ACCESS_READ, UA_MANDATORY),
			    UVERBS_ATTR_PTR_IN(NHCA_ATTR_WATCH_DEL_SLOT,
					       UVERBS_ATTR_TYPE(u32), UA_MANDATORY));

DECLARE_UVERBS_NAMED_OBJECT(NHCA_OBJECT_WATCH_SET, UVERBS_TYPE_ALLOC_IDR(watch_set_close),
			    &UVERBS_METHOD(NHCA_METHOD_WATCH_SET_ALLOC),
			    &UVERBS_METHOD(NHCA_METHOD_WATCH_SET_FREE),
			    &UVERBS_METHOD(NHCA_METHOD_WATCH_ADD),
			    &UVERBS_METHOD(NHCA_METHOD_WATCH_DEL));

const struct uapi_definition nhca_watch_defs[] = {
	UAPI_DEF_CHAIN_OBJ_TREE_NAMED(NHCA_OBJECT_WATCH_SET),
	{}
};

#else

const struct uapi_definition nhca_watch_defs[] = {
	{}
};

#endif
