/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * nhca direct verbs: a cache of registrations.  nhcadv_reg_cached(3) describes it.  The conventions
 * of nhcadv.h also hold here.
 */
#ifndef NHCADV_REG_CACHE_H
#define NHCADV_REG_CACHE_H

#include <stddef.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * struct nhcadv_cached_mr - a registration that a caller of nhcadv_reg_cached() uses
 * @mr:   the region.  It contains the caller's range, and may be longer.  Use @lkey with addresses
 *        of the range.  The cache deregisters the region
 * @lkey: its L_Key
 */
struct nhcadv_cached_mr {
	struct ibv_mr *mr;
	uint32_t lkey;
};

/**
 * nhcadv_reg_cached - register memory, or find a registration whose pages have not changed
 * @pd: protection domain, of any device
 * @addr: first byte
 * @length: bytes, at least 1
 * @access: 0 or IBV_ACCESS_LOCAL_WRITE
 *
 * The region stays registered after nhcadv_release_cached().  A later call for memory in the region
 * returns the same registration, unless the cache has deregistered the region (see struct
 * nhcadv_reg_cache_attr), or the kernel reports that the pages of the range may have changed.
 * Without NHCADV_DEVICE_REG_CACHE each call registers, and each release deregisters.
 * Return: the registration, for nhcadv_release_cached(); or NULL with errno EINVAL (@length is 0,
 * or @access has another right) or an errno of ibv_reg_mr().
 */
struct nhcadv_cached_mr *nhcadv_reg_cached(struct ibv_pd *pd, void *addr, size_t length,
					   int access);

/**
 * nhcadv_release_cached - end the use of a registration
 * @cached: from nhcadv_reg_cached().  The work requests that use its L_Key have completed
 * Return: 0, or an errno of ibv_dereg_mr().
 */
int nhcadv_release_cached(struct nhcadv_cached_mr *cached);

/**
 * struct nhcadv_reg_cache_attr - settings of the cache of a protection domain
 * @comp_mask: 0
 * @max_bytes: if more bytes are registered, the cache deregisters regions that nobody uses;
 *             initially a quarter of the memory of the host, or half of RLIMIT_MEMLOCK if this is
 *             less and the process does not run as root
 * @idle_ms:   time after which a registration that nobody uses is deregistered, at least 1;
 *             initially 5000
 * @fragment:  bytes of a fragment, a power of two from 64 KiB to 16 MiB, or 0: register only what a
 *             caller needs; initially 16 MiB
 */
struct nhcadv_reg_cache_attr {
	uint64_t comp_mask;
	uint64_t max_bytes;
	uint32_t idle_ms;
	uint32_t fragment;
};

/**
 * struct nhcadv_reg_cache_info - state of the cache of a protection domain
 * @hits:     calls that found a registration
 * @misses:   calls that found no registration
 * @registrations: registrations that the cache has made
 * @changed:  registrations that were dropped because their pages may have changed
 * @evicted:  registrations that were dropped to make room
 * @expired:  registrations that were dropped because nobody used them for idle_ms
 * @bytes:    bytes that are registered
 * @idle_bytes: bytes of registrations that nobody uses
 * @entries:  number of registrations
 * @reserved: 0
 */
struct nhcadv_reg_cache_info {
	uint64_t hits;
	uint64_t misses;
	uint64_t registrations;
	uint64_t changed;
	uint64_t evicted;
	uint64_t expired;
	uint64_t bytes;
	uint64_t idle_bytes;
	uint32_t entries;
	uint32_t reserved;
};

/**
 * nhcadv_set_reg_cache - change the settings of a cache
 * @pd: protection domain of an nhca device
 * @attr: settings
 * Return: 0, or EINVAL (a member of @attr is out of range), EOPNOTSUPP (no
 * NHCADV_DEVICE_REG_CACHE, or a child of fork()) or an errno of the creation of the cache.
 */
int nhcadv_set_reg_cache(struct ibv_pd *pd, const struct nhcadv_reg_cache_attr *attr);

/**
 * nhcadv_query_reg_cache - query the state of a cache
 * @pd:   protection domain of an nhca device
 * @info: output
 * Return: 0, or EOPNOTSUPP or an errno of the creation of the cache, as nhcadv_set_reg_cache().
 */
int nhcadv_query_reg_cache(struct ibv_pd *pd, struct nhcadv_reg_cache_info *info);

#ifdef __cplusplus
}
#endif

#endif /* NHCADV_REG_CACHE_H */
