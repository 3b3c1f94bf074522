// SPDX-License-Identifier: GPL-2.0
/* Memory for the fragments of packets and for the data of linear skbs. */
#include <linux/mm.h>
#include <linux/percpu.h>
#include <linux/local_lock.h>
#include <net/sock.h>

#include "../compat.h"
#include "frags.h"

/*
 * Chunks of memory of one CPU. Small pieces come from one chunk after another. Whole pages have
 * their own chunks, so that these pages are aligned, because copies between aligned pages are
 * faster. The chunks for pages and for skbs are used in turn, so that a chunk whose packets are
 * freed is used again. A new chunk would have to be allocated and, in most kernels, cleared.
 */
struct nhca_frags {
	local_lock_t lock;	/* all members: disabled BHs do not protect them under PREEMPT_RT */
	struct page_frag small;
	struct page_frag page[NHCA_PAGE_CHUNKS];
	struct page_frag skb[NHCA_SKB_CHUNKS];
	unsigned int page_at;
	unsigned int skb_at;
};

static DEFINE_PER_CPU(struct nhca_frags, nhca_frags) = {
	.lock = INIT_LOCAL_LOCK(lock),
};

/* the largest chunk that skb_page_frag_refill() allocates */
#define NHCA_CHUNK_BYTES	(PAGE_SIZE << get_order(32768))

/*
 * Return: the chunk for the next @len bytes, one of @count chunks that are used in turn. @at: index
 * of the current chunk.
 */
static struct page_frag *nhca_frags_chunk(struct page_frag *chunk, unsigned int count,
					  unsigned int *at, unsigned int len)
{
	/* skb_page_frag_refill() reuses the next chunk if no packet uses it any more */
	if (chunk[*at].page && chunk[*at].offset + len > chunk[*at].size)
		*at = (*at + 1) % count;
	return &chunk[*at];
}

/* Take @len bytes, for which @pf must have room, and a reference on their page. */
static void *nhca_frags_take(struct page_frag *pf, unsigned int len)
{
	void *p = page_address(pf->page) + pf->offset;

	get_page(pf->page);
	pf->offset += len;
	return p;
}

static void *frag_get(unsigned int len, struct page **page, unsigned int *off)
{
	struct nhca_frags *f = this_cpu_ptr(&nhca_frags);
	struct page_frag *pf = &f->small;

	/* skb_page_frag_refill() may return a chunk of only one page, even if @len is larger */
	if (WARN_ON_ONCE(len > PAGE_SIZE))
		return NULL;
	if (len == PAGE_SIZE)
		pf = nhca_frags_chunk(f->page, NHCA_PAGE_CHUNKS, &f->page_at, len);
	if (!skb_page_frag_refill(len, pf, GFP_ATOMIC))
		return NULL;
	*page = pf->page;
	*off = pf->offset;
	return nhca_frags_take(pf, len);
}

void *nhca_frag_get(unsigned int len, struct page **page, unsigned int *off)
{
	void *p;

	local_lock_nested_bh(&nhca_frags.lock);
	p = frag_get(len, page, off);
	local_unlock_nested_bh(&nhca_frags.lock);
	return p;
}

static void nhca_frag_free(struct page_frag *pf)
{
	if (pf->page)
		put_page(pf->page);
	pf->page = NULL;
}

static struct sk_buff *frag_skb(unsigned int room)
{
	unsigned int len = SKB_DATA_ALIGN(room) + SKB_DATA_ALIGN(sizeof(struct skb_shared_info));
	struct nhca_frags *f = this_cpu_ptr(&nhca_frags);
	struct page_frag *pf;
	struct sk_buff *skb;
	void *p;

	/* no chunk can hold such an skb; the current chunk stays in use for smaller skbs */
	if (len > NHCA_CHUNK_BYTES)
		return alloc_skb(room, GFP_ATOMIC | __GFP_NOWARN);
	pf = nhca_frags_chunk(f->skb, NHCA_SKB_CHUNKS, &f->skb_at, len);
	if (!skb_page_frag_refill(len, pf, GFP_ATOMIC))
		return NULL;
	/*
	 * The chunk is one page because memory is fragmented. Free it, because the next chunk may
	 * be larger.
	 */
	if (pf->size < len) {
		nhca_frag_free(pf);
		return alloc_skb(room, GFP_ATOMIC | __GFP_NOWARN);
	}
	p = nhca_frags_take(pf, len);
	skb = napi_build_skb(p, len);
	if (!skb)
		put_page(pf->page);
	return skb;
}

struct sk_buff *nhca_frag_skb(unsigned int room)
{
	struct sk_buff *skb;

	local_lock_nested_bh(&nhca_frags.lock);
	skb = frag_skb(room);
	local_unlock_nested_bh(&nhca_frags.lock);
	return skb;
}

void nhca_frags_exit(void)
{
	struct nhca_frags *f;
	int cpu, i;

	for_each_possible_cpu(cpu) {
		f = per_cpu_ptr(&nhca_frags, cpu);
		nhca_frag_free(&f->small);
		for (i = 0; i < NHCA_PAGE_CHUNKS; i++)
			nhca_frag_free(&f->page[i]);
		for (i = 0; i < NHCA_SKB_CHUNKS; i++)
			nhca_frag_free(&f->skb[i]);
	}
}
