// SPDX-License-Identifier: GPL-2.0
/*
 * Memory that packets carry as fragments.
 */
#include <linux/mm.h>
#include <linux/percpu.h>
#include <net/sock.h>

#include "frags.h"

/*
 * Small pieces come from one chunk after another.  Whole pages have chunks of their own, because
 * what is copied page to page is copied fast; these go round, so that one that the stack has let
 * go is used again, where a new one would have to be found and, in most kernels, cleared.
 * Used with BH disabled.
 */
struct nhca_frags {
	struct page_frag small;
	struct page_frag chunk[NHCA_FRAG_CHUNKS];
	unsigned int at;
};

static DEFINE_PER_CPU(struct nhca_frags, nhca_frags);

static struct page_frag *nhca_frags_for(struct nhca_frags *f, unsigned int len)
{
	struct page_frag *pf = &f->chunk[f->at];

	if (len != PAGE_SIZE)
		return &f->small;
	/* skb_page_frag_refill() then sees whether others still have that one */
	if (pf->page && pf->offset + len > pf->size) {
		f->at = (f->at + 1) % NHCA_FRAG_CHUNKS;
		pf = &f->chunk[f->at];
	}
	return pf;
}

void *nhca_frag_get(unsigned int len, struct page **page, unsigned int *off)
{
	struct page_frag *pf = nhca_frags_for(this_cpu_ptr(&nhca_frags), len);
	void *p;

	if (!skb_page_frag_refill(len, pf, GFP_ATOMIC))
		return NULL;
	*page = pf->page;
	*off = pf->offset;
	p = page_address(pf->page) + pf->offset;
	get_page(pf->page);
	pf->offset += len;
	return p;
}

static void nhca_frag_free(struct page_frag *pf)
{
	if (pf->page)
		put_page(pf->page);
	pf->page = NULL;
}

void nhca_frags_exit(void)
{
	struct nhca_frags *f;
	int cpu, i;

	for_each_possible_cpu(cpu) {
		f = per_cpu_ptr(&nhca_frags, cpu);
		nhca_frag_free(&f->small);
		for (i = 0; i < NHCA_FRAG_CHUNKS; i++)
			nhca_frag_free(&f->chunk[i]);
	}
}
