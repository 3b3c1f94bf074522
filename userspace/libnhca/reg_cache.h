/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The cache of registrations: what its files share.
 *
 * reg_cache.c has the calls of nhcadv_reg_cache.h, reg_index.c finds the registrations of an
 * address, watch.c has the kernel's watches.
 */
#ifndef NHCA_REG_CACHE_H
#define NHCA_REG_CACHE_H

#include <stdbool.h>
#include <stdint.h>

#include <ccan/list.h>

#include "nhca.h"
#include "nhcadv_reg_cache.h"

/* ---- watch.c ---- */

/* Slots of a set: the maximum number of registrations in a cache.  Each slot has a 4-byte word. */
#define NHCA_WATCH_SLOTS	4096

/**
 * struct nhca_watch_set - the kernel's watches of memory of this process
 * @context: the device
 * @handle:  handle of the kernel object
 * @words:   one word for each slot, NHCA_WATCH_*; the kernel writes the words
 * @size:    bytes of the mapping @words
 * @parent:  a word that is 1 in the process that made the set, and 0 in its children.  @words
 *           describe memory of the parent, and a child has not mapped @words
 */
struct nhca_watch_set {
	struct ibv_context *context;
	uint32_t handle;
	const uint32_t *words;
	size_t size;
	const uint32_t *parent;
};

/**
 * nhca_watch_init - make a set of watches
 * @set:     output: the set
 * @context: the device
 * Return: 0; EOPNOTSUPP: the kernel does not support MADV_WIPEONFORK; or an errno of mmap(2) or of
 * the command to the kernel.
 */
int nhca_watch_init(struct nhca_watch_set *set, struct ibv_context *context);

/**
 * nhca_watch_fini - free a set of watches; in a child of fork(), leave the kernel object to the
 * parent
 * @set: the set
 */
void nhca_watch_fini(struct nhca_watch_set *set);

/**
 * nhca_watch_add - watch a range; this replaces an earlier range of the slot
 * @set:    the set
 * @slot:   a slot of the set
 * @start:  first address, at the start of a page
 * @length: bytes of the range, in whole pages
 * Return: 0 or an errno of the kernel.
 */
int nhca_watch_add(struct nhca_watch_set *set, uint32_t slot, uintptr_t start, size_t length);

/**
 * nhca_watch_del - end the watch of a slot, if there is one
 * @set:  the set
 * @slot: a slot of the set
 */
void nhca_watch_del(struct nhca_watch_set *set, uint32_t slot);

/**
 * nhca_watch_same - test whether the pages of a watched range have stayed the same
 * @set:  the set
 * @slot: a slot with a watch
 * Return: true if the pages are the same as when nhca_watch_add() returned.
 */
static inline bool nhca_watch_same(const struct nhca_watch_set *set, uint32_t slot)
{
	return atomic_load_explicit((const _Atomic(uint32_t) *)&set->words[slot],
				    memory_order_acquire) == NHCA_WATCH_SAME;
}

/**
 * nhca_watch_mine - test whether this process made a set
 * @set: the set
 * Return: true; false: this process is a child of fork().
 */
static inline bool nhca_watch_mine(const struct nhca_watch_set *set)
{
	return *(const volatile uint32_t *)set->parent;
}

/* ---- reg_index.c ---- */

/* The address space consists of segments of 4 GiB, each with a vector of 256 fragments. */
#define NHCA_FRAGMENT_SHIFT	24
#define NHCA_FRAGMENT_SIZE	((size_t)1 << NHCA_FRAGMENT_SHIFT)
#define NHCA_SEGMENT_SHIFT	32
#define NHCA_FRAGMENTS		(1 << (NHCA_SEGMENT_SHIFT - NHCA_FRAGMENT_SHIFT))
#define NHCA_SEGMENT_HASH	64

/**
 * struct nhca_fragment - 16 MiB of the address space
 * @links:  struct nhca_reg_link: the registrations that have bytes of the fragment
 * @misses: misses since an enlarged registration last failed, or its pages changed
 * @wait:   after this number of misses the next registration is enlarged.  The number is doubled
 *          each time that no enlarged size can be registered, or the pages of an enlarged
 *          registration change
 * @size:   bytes of an enlarged registration; 0: nhcadv_reg_cache_attr.fragment.  The size is less
 *          than this setting if a part of the fragment is not mapped
 */
struct nhca_fragment {
	struct list_head links;
	uint32_t misses;
	uint32_t wait;
	uint32_t size;
};

/**
 * struct nhca_segment - 4 GiB of the address space
 * @next:      next segment with the same hash
 * @number:    first address, in units of 4 GiB
 * @fragments: the fragments; NULL: no memory of the fragment was registered
 */
struct nhca_segment {
	struct nhca_segment *next;
	uint64_t number;
	struct nhca_fragment *fragments[NHCA_FRAGMENTS];
};

/**
 * struct nhca_reg_index - the registrations by address
 * @segments: hash of segments
 */
struct nhca_reg_index {
	struct nhca_segment *segments[NHCA_SEGMENT_HASH];
};

struct nhca_reg;

/**
 * struct nhca_reg_link - a registration in one of its fragments
 * @node: in nhca_fragment.links
 * @reg:  the registration
 */
struct nhca_reg_link {
	struct list_node node;
	struct nhca_reg *reg;
};

/**
 * struct nhca_reg - a registration
 * @pub:    the public part
 * @cache:  the cache that has the registration; NULL: none, so nhcadv_release_cached() deregisters
 * @start:  address of the range, in whole pages
 * @length: bytes of the range, in whole pages
 * @access: IBV_ACCESS_*
 * @whole:  the range was enlarged beyond the memory that the caller needed
 * @dead:   the registration is not in the index, so its last release deregisters it
 * @slot:   slot of the watch
 * @uses:   number of callers that use the registration
 * @idle:   number of ticks of the reaper since the last use
 * @lru:    in nhca_reg_cache.idle, if @uses is 0; or in a list of registrations to free
 * @nlinks: number of fragments that have bytes of the range
 * @links:  in the lists of these fragments
 */
struct nhca_reg {
	struct nhcadv_cached_mr pub;
	struct nhca_reg_cache *cache;
	uintptr_t start;
	size_t length;
	int access;
	bool whole;
	bool dead;
	uint32_t slot;
	uint32_t uses;
	uint32_t idle;
	struct list_node lru;
	uint32_t nlinks;
	struct nhca_reg_link links[];
};

/**
 * nhca_reg_alloc - allocate the description of a registration that is not made yet
 * @start:  first address of the range
 * @length: bytes of the range
 * @access: IBV_ACCESS_*
 * Return: the description; NULL: no memory.
 */
struct nhca_reg *nhca_reg_alloc(uintptr_t start, size_t length, int access);

/**
 * nhca_index_fragment - find or allocate the fragment of an address
 * @index: the index
 * @addr:  the address
 * Return: the fragment; NULL: no memory.
 */
struct nhca_fragment *nhca_index_fragment(struct nhca_reg_index *index, uintptr_t addr);

/**
 * nhca_index_find - find a registration that contains a range
 * @index:  the index
 * @addr:   first address of the range
 * @length: bytes of the range
 * @access: IBV_ACCESS_* that the registration must have
 * Return: the registration; NULL: none.
 */
struct nhca_reg *nhca_index_find(struct nhca_reg_index *index, uintptr_t addr, size_t length,
				 int access);

/**
 * nhca_index_add - add a registration to the lists of its fragments
 * @index: the index
 * @reg:   the registration
 * Return: 0 or ENOMEM.
 */
int nhca_index_add(struct nhca_reg_index *index, struct nhca_reg *reg);

/**
 * nhca_index_del - remove a registration from the lists of its fragments
 * @reg: the registration
 */
void nhca_index_del(struct nhca_reg *reg);

/**
 * nhca_index_fini - free an index without registrations
 * @index: the index
 */
void nhca_index_fini(struct nhca_reg_index *index);

/* ---- reg_cache.c ---- */

/**
 * nhca_reg_default_bytes - compute the initial limit of a cache
 * Return: a quarter of the memory of the host, or half of RLIMIT_MEMLOCK if that is less and the
 * program is not root; UINT64_MAX: the sizes are not known.
 */
uint64_t nhca_reg_default_bytes(void);

/**
 * nhca_reg_may_enlarge - test whether neighbors of the caller's memory may be registered
 *
 * After ibv_fork_init(), children may not get registered memory, and a child may need the
 * neighbors.
 * Return: true if they may be registered.
 */
bool nhca_reg_may_enlarge(void);

/**
 * nhca_reg_in_block - test whether an aligned block contains a range and more
 * @start:  first byte of the range
 * @length: bytes of the range
 * @size:   bytes of the block, a power of two
 * Return: true if the block contains the range and more.
 */
bool nhca_reg_in_block(uintptr_t start, size_t length, size_t size);

/**
 * nhca_reg_cache_free - free the cache of a protection domain that is to be deallocated
 * @pd: the protection domain
 * Return: 0, or EBUSY if a registration is in use.
 */
int nhca_reg_cache_free(struct nhca_pd *pd);

/**
 * nhca_reg_cache_orphan - detach the cache of a protection domain that the process gives back
 * @pd: the protection domain
 *
 * Registrations in use stay valid.  The release of the last one frees the cache.
 */
void nhca_reg_cache_orphan(struct nhca_pd *pd);

#endif /* NHCA_REG_CACHE_H */
