// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Mapping of the rings that the kernel makes.
 */
#include <errno.h>
#include <sys/mman.h>

#include <ccan/minmax.h>

#include "nhca.h"

int nhca_ring_map(struct nhca_ring *ring, struct ibv_context *context,
		  const struct nhca_ring_info *info, size_t entry)
{
	void *map;

	*ring = (struct nhca_ring){};
	if (!info->entries)
		return 0;
	/* Not what rdma/nhca-abi.h says: nothing good comes from going on. */
	if ((info->entries & (info->entries - 1)) || info->stride < entry ||
	    (info->size - (uint64_t)NHCA_RING_HDR_SIZE) / info->stride <
		    info->entries)
		return EPROTO;

	map = mmap(NULL, info->size, PROT_READ | PROT_WRITE, MAP_SHARED,
		   context->cmd_fd, info->offset);
	if (map == MAP_FAILED)
		return errno;

	ring->hdr = map;
	ring->slots = (char *)map + NHCA_RING_HDR_SIZE;
	ring->size = info->size;
	ring->entries = info->entries;
	ring->stride = info->stride;
	return 0;
}

void nhca_ring_unmap(struct nhca_ring *ring)
{
	if (ring->hdr)
		munmap(ring->hdr, ring->size);
	ring->hdr = NULL;
}

void nhca_wq_sync(struct nhca_wq *wq)
{
	if (!wq->ring.hdr)
		return;
	wq->prod = nhca_load(&wq->ring.hdr->prod);
	wq->cons = nhca_load(&wq->ring.hdr->cons);
}

int nhca_wq_init(struct nhca_wq *wq, struct ibv_context *context,
		 const struct nhca_ring_info *info, size_t wqe, size_t data,
		 uint32_t max_wr, uint32_t max_sge)
{
	int ret;

	ret = nhca_ring_map(&wq->ring, context, info, wqe + data);
	if (ret)
		return ret;

	pthread_spin_init(&wq->lock, PTHREAD_PROCESS_PRIVATE);
	wq->max_wr = wq->ring.hdr ? min_t(uint32_t, max_wr, wq->ring.entries) : 0;
	wq->max_sge = max_sge;
	nhca_wq_sync(wq);
	return 0;
}

void nhca_wq_fini(struct nhca_wq *wq)
{
	nhca_ring_unmap(&wq->ring);
	pthread_spin_destroy(&wq->lock);
}
