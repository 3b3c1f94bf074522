// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Watches: the kernel changes a word before pages of this process change.
 */
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include <infiniband/cmd_write.h>

#include "reg_cache.h"

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

static int alloc_set(struct nhca_watch_set *set, struct nhca_watch_set_resp *resp)
{
	DECLARE_COMMAND_BUFFER(cmdb, NHCA_OBJECT_WATCH_SET, NHCA_METHOD_WATCH_SET_ALLOC, 3);
	struct ib_uverbs_attr *handle;
	int ret;

	handle = fill_attr_out_obj(cmdb, NHCA_ATTR_WATCH_SET_ALLOC_HANDLE);
	fill_attr_in_uint32(cmdb, NHCA_ATTR_WATCH_SET_ALLOC_SLOTS, NHCA_WATCH_SLOTS);
	fill_attr_out_ptr(cmdb, NHCA_ATTR_WATCH_SET_ALLOC_RESP, resp);
	ret = execute_ioctl(set->context, cmdb);
	if (!ret)
		set->handle = read_attr_obj(NHCA_ATTR_WATCH_SET_ALLOC_HANDLE, handle);
	return ret;
}

static void free_set(struct nhca_watch_set *set)
{
	DECLARE_COMMAND_BUFFER(cmdb, NHCA_OBJECT_WATCH_SET, NHCA_METHOD_WATCH_SET_FREE, 1);

	fill_attr_in_obj(cmdb, NHCA_ATTR_WATCH_SET_FREE_HANDLE, set->handle);
	execute_ioctl(set->context, cmdb);
}

/* Map the word that is 1 only in this process.  Return: 0 or an errno. */
static int map_parent(struct nhca_watch_set *set)
{
	size_t size = sysconf(_SC_PAGESIZE);
	uint32_t *word;

	word = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (word == MAP_FAILED)
		return errno;
	if (madvise(word, size, MADV_WIPEONFORK)) {
		munmap(word, size);
		return EOPNOTSUPP;
	}
	*word = 1;
	set->parent = word;
	return 0;
}

int nhca_watch_init(struct nhca_watch_set *set, struct ibv_context *context)
{
	struct nhca_watch_set_resp resp = {};
	void *words;
	int ret;

	set->context = context;
	ret = map_parent(set);
	if (ret)
		return ret;
	ret = alloc_set(set, &resp);
	if (ret)
		goto err_parent;
	words = mmap(NULL, resp.size, PROT_READ, MAP_SHARED, context->cmd_fd, resp.offset);
	if (words == MAP_FAILED) {
		ret = errno;
		goto err_set;
	}
	set->words = words;
	set->size = resp.size;
	return 0;

err_set:
	free_set(set);
err_parent:
	munmap((void *)set->parent, sysconf(_SC_PAGESIZE));
	return ret;
}

void nhca_watch_fini(struct nhca_watch_set *set)
{
	if (nhca_watch_mine(set)) {
		munmap((void *)set->words, set->size);
		free_set(set);
	}
	munmap((void *)set->parent, sysconf(_SC_PAGESIZE));
}

int nhca_watch_add(struct nhca_watch_set *set, uint32_t slot, uintptr_t start, size_t length)
{
	DECLARE_COMMAND_BUFFER(cmdb, NHCA_OBJECT_WATCH_SET, NHCA_METHOD_WATCH_ADD, 4);

	fill_attr_in_obj(cmdb, NHCA_ATTR_WATCH_ADD_HANDLE, set->handle);
	fill_attr_in_uint32(cmdb, NHCA_ATTR_WATCH_ADD_SLOT, slot);
	fill_attr_in_uint64(cmdb, NHCA_ATTR_WATCH_ADD_ADDR, start);
	fill_attr_in_uint64(cmdb, NHCA_ATTR_WATCH_ADD_LENGTH, length);
	return execute_ioctl(set->context, cmdb);
}

void nhca_watch_del(struct nhca_watch_set *set, uint32_t slot)
{
	DECLARE_COMMAND_BUFFER(cmdb, NHCA_OBJECT_WATCH_SET, NHCA_METHOD_WATCH_DEL, 2);

	fill_attr_in_obj(cmdb, NHCA_ATTR_WATCH_DEL_HANDLE, set->handle);
	fill_attr_in_uint32(cmdb, NHCA_ATTR_WATCH_DEL_SLOT, slot);
	execute_ioctl(set->context, cmdb);
}
