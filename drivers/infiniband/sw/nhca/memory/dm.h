/* SPDX-License-Identifier: GPL-2.0 */
/* Device memory: memory that belongs to the adapter.  This software adapter uses kernel memory. */
#ifndef NHCA_DM_H
#define NHCA_DM_H

#include <rdma/ib_verbs.h>

/**
 * struct nhca_dm - an allocation of device memory
 * @ibdm:  the core's part; the core frees the device memory only when no region uses it
 * @mem:   the memory, from nhca_shared_alloc(); owned by @entry
 * @size:  bytes, a multiple of PAGE_SIZE; ibdm.length is the requested size
 * @entry: entry by which user space maps the memory; owned
 */
struct nhca_dm {
	struct ib_dm ibdm;
	void *mem;
	size_t size;
	struct rdma_user_mmap_entry *entry;
};

static inline struct nhca_dm *to_nhca_dm(struct ib_dm *ibdm)
{
	return container_of(ibdm, struct nhca_dm, ibdm);
}

#endif /* NHCA_DM_H */
