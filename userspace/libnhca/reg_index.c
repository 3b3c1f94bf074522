// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The cache of registrations: from an address to the registrations that contain it.
 */
#include <errno.h>
#include <stdlib.h>

#include "reg_cache.h"

struct nhca_reg *nhca_reg_alloc(uintptr_t start, size_t length, int access)
{
	uint32_t n = ((start + length - 1) >> NHCA_FRAGMENT_SHIFT) -
		     (start >> NHCA_FRAGMENT_SHIFT) + 1;
	struct nhca_reg *reg = calloc(1, sizeof(*reg) + n * sizeof(reg->links[0]));

	if (!reg)
		return NULL;
	reg->start = start;
	reg->length = length;
	reg->access = access;
	reg->nlinks = n;
	return reg;
}

/* Return: the place of the pointer to the segment of an address; *place is NULL: no segment yet. */
static struct nhca_segment **find_segment(struct nhca_reg_index *index, uintptr_t addr)
{
	uint64_t number = (uint64_t)addr >> NHCA_SEGMENT_SHIFT;
	struct nhca_segment **at = &index->segments[number % NHCA_SEGMENT_HASH];

	while (*at && (*at)->number != number)
		at = &(*at)->next;
	return at;
}

static uint32_t fragment_index(uintptr_t addr)
{
	return (addr >> NHCA_FRAGMENT_SHIFT) % NHCA_FRAGMENTS;
}

struct nhca_fragment *nhca_index_fragment(struct nhca_reg_index *index, uintptr_t addr)
{
	struct nhca_segment **at = find_segment(index, addr);
	struct nhca_fragment **f;

	if (!*at) {
		*at = calloc(1, sizeof(**at));
		if (!*at)
			return NULL;
		(*at)->number = (uint64_t)addr >> NHCA_SEGMENT_SHIFT;
	}
	f = &(*at)->fragments[fragment_index(addr)];
	if (!*f) {
		*f = calloc(1, sizeof(**f));
		if (!*f)
			return NULL;
		list_head_init(&(*f)->links);
		(*f)->wait = 1;
	}
	return *f;
}

struct nhca_reg *nhca_index_find(struct nhca_reg_index *index, uintptr_t addr, size_t length,
				 int access)
{
	struct nhca_segment *segment = *find_segment(index, addr);
	struct nhca_fragment *f;
	struct nhca_reg_link *link;
	struct nhca_reg *reg;

	f = segment ? segment->fragments[fragment_index(addr)] : NULL;
	if (!f)
		return NULL;
	list_for_each(&f->links, link, node) {
		reg = link->reg;
		if (addr >= reg->start && length <= reg->length &&
		    addr - reg->start <= reg->length - length && !(access & ~reg->access))
			return reg;
	}
	return NULL;
}

int nhca_index_add(struct nhca_reg_index *index, struct nhca_reg *reg)
{
	uintptr_t first = reg->start >> NHCA_FRAGMENT_SHIFT;
	uint32_t i;

	/* Make all fragments before the first link is added, so that no link has to be removed. */
	for (i = 0; i < reg->nlinks; i++)
		if (!nhca_index_fragment(index, (first + i) << NHCA_FRAGMENT_SHIFT))
			return ENOMEM;
	for (i = 0; i < reg->nlinks; i++) {
		reg->links[i].reg = reg;
		list_add(&nhca_index_fragment(index, (first + i) << NHCA_FRAGMENT_SHIFT)->links,
			 &reg->links[i].node);
	}
	return 0;
}

void nhca_index_del(struct nhca_reg *reg)
{
	uint32_t i;

	for (i = 0; i < reg->nlinks; i++)
		list_del(&reg->links[i].node);
}

void nhca_index_fini(struct nhca_reg_index *index)
{
	struct nhca_segment *segment;
	uint32_t i, j;

	for (i = 0; i < NHCA_SEGMENT_HASH; i++)
		while ((segment = index->segments[i])) {
			index->segments[i] = segment->next;
			for (j = 0; j < NHCA_FRAGMENTS; j++)
				free(segment->fragments[j]);
			free(segment);
		}
}
