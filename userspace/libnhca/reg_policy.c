// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The registration cache: how much memory to register. */
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "compat.h"
#include "reg_cache.h"

uint64_t nhca_reg_default_bytes(void)
{
	uint64_t bytes = UINT64_MAX;
	struct rlimit limit;
	struct sysinfo info;

	if (!sysinfo(&info))
		bytes = (uint64_t)info.totalram * info.mem_unit / 4;
	/* RLIMIT_MEMLOCK usually does not limit root. */
	if (geteuid() && !getrlimit(RLIMIT_MEMLOCK, &limit) && limit.rlim_cur != RLIM_INFINITY &&
	    limit.rlim_cur / 2 < bytes)
		bytes = limit.rlim_cur / 2;
	return bytes;
}

bool nhca_reg_may_enlarge(void)
{
#if NHCA_RDMA_CORE >= 35
	return ibv_is_fork_initialized() != IBV_FORK_ENABLED;
#else
	return false;
#endif
}

bool nhca_reg_in_block(uintptr_t start, size_t length, size_t size)
{
	return length < size && (start ^ (start + length - 1)) < size;
}
