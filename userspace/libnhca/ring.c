// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Memory of rings: memory of the kernel that is mapped here, or memory of the application.
 */
#include <errno.h>
#include <unistd.h>
#include <sys/mman.h>

#include <ccan/minmax.h>
#include <util/util.h>

#include "nhca.h"

/* For more entries than this, allocate nothing: the kernel will refuse the command. */
#define TOO_MANY (1u << 24)

static_assert(NHCADV_RES_TYPE_SQ == ((uint64_t)NHCA_RDMA_DRIVER_ID << 32 | 1),
	      "resource types");

int nhca_ring_place(struct nhca_ring *ring, struct ibv_pd *pd, uint32_t entries,
		    size_t stride, uint64_t type, struct nhca_ring_mem *mem)
{
	struct nhca_pd *domain = pd ? to_npd(pd) : NULL;
	size_t page = sysconf(_SC_PAGESIZE), size;
	void *own;

	*ring = (struct nhca_ring){};
	*mem = (struct nhca_ring_mem){};
	if (!domain || !domain->alloc || entries > TOO_MANY)
		return 0;

	entries = roundup_pow_of_two(max_t(uint32_t, entries, 1));
	size = align(nhca_ring_bytes(entries, stride), page);
	own = domain->alloc(&domain->pd, domain->context, size, page, type);
	if (own == IBV_ALLOCATOR_USE_DEFAULT)
		return 0;
	if (!own)
		return ENOMEM;
	ring->own = own;
	ring->domain = domain;
	ring->type = type;
	mem->addr = (uintptr_t)own;
	mem->size = size;
	return 0;
}

int nhca_ring_map(struct nhca_ring *ring, struct ibv_context *context,
		  const struct nhca_ring_info *info, size_t entry)
{
	void *map = ring->own;

	if (!info->entries)
		return 0;
	/* Refuse a ring that does not conform to rdma/nhca-abi.h. */
	if ((info->entries & (info->entries - 1)) || info->stride < entry ||
	    (info->size - (uint64_t)NHCA_RING_HDR_SIZE) / info->stride <
		    info->entries)
		return EPROTO;

	if (!map)
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
	struct nhca_pd *domain = ring->domain;

	if (ring->own)
		domain->free(&domain->pd, domain->context, ring->own, ring->type);
	else if (ring->hdr)
		munmap(ring->hdr, ring->size);
	ring->own = NULL;
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
