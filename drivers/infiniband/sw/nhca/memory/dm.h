/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Device memory: memory that belongs
 * to the adapter, which for one made of software is memory of the kernel's.
 */
#ifndef NHCA_DM_H
#define NHCA_DM_H

#include <rdma/ib_verbs.h>

/**
 * struct nhca_dm - a piece of device memory
 * @ibdm:  the core's part; it counts the regions and frees nothing that has some
 * @mem:   from nhca_shared_alloc(); owned by @entry
 * @size:  bytes, a multiple of PAGE_SIZE; what was asked for is ibdm.length
 * @entry: by which user space maps it; owned
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
