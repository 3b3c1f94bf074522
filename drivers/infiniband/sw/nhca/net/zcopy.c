// SPDX-License-Identifier: GPL-2.0
/* Zero-copy references to consumer pages. */
#include <linux/mm.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>

#include "../compat.h"
#include "flow.h"
#include "frags.h"
#include "zcopy.h"
#include "../memory/memory.h"

/* flow.c uses the address of the ubuf_info of an skb as the address of the reference */
static_assert(!offsetof(struct nhca_zcopy, uarg));

void nhca_zcopy_unref(struct nhca_zcopy *z)
{
	struct nhca_flow *flow = z->flow;

	if (!refcount_dec_and_test(&z->ref))
		return;
	kfree(z);
	nhca_flow_put(flow);
}

/* The count of @z->uarg is 0, so no skb has the pages any more: release the reference. */
static void nhca_zcopy_release(struct nhca_zcopy *z)
{
	if (nhca_pageref_end(nhca_flow_pagerefs(z->flow), &z->pages)) {
		rcu_read_lock();
		nhca_flow_run(z->flow);
		rcu_read_unlock();
	}
	nhca_zcopy_unref(z);
}

static void nhca_zcopy_complete(struct sk_buff *skb, struct ubuf_info *uarg, bool success)
{
	if (refcount_dec_and_test(&uarg->refcnt))
		nhca_zcopy_release(container_of(uarg, struct nhca_zcopy, uarg));
}

#ifdef NHCA_OLD_UBUF
static void nhca_zcopy_set_ops(struct ubuf_info *uarg)
{
	uarg->callback = nhca_zcopy_complete;
}
#else
static const struct ubuf_info_ops nhca_zcopy_ops = {
	.complete = nhca_zcopy_complete,
};

static void nhca_zcopy_set_ops(struct ubuf_info *uarg)
{
	uarg->ops = &nhca_zcopy_ops;
}
#endif

struct nhca_zcopy *nhca_zcopy_new(struct nhca_flow *flow)
{
	struct nhca_zcopy *z = kmalloc(sizeof(*z), GFP_ATOMIC | __GFP_NOWARN);

	if (!z)
		return NULL;
	nhca_zcopy_set_ops(&z->uarg);
	/* the reference counts each skb with the pages, so skb_orphan_frags() need not copy them */
	z->uarg.flags = SKBFL_ZEROCOPY_FRAG | SKBFL_DONT_ORPHAN;
	refcount_set(&z->uarg.refcnt, 1);
	refcount_set(&z->ref, 1);
	nhca_flow_get(flow);
	z->flow = flow;
	z->packets = 0;
	nhca_pageref_begin(nhca_flow_pagerefs(flow), &z->pages);
	return z;
}

u32 nhca_zcopy_pages(struct nhca_zcopy **z, struct nhca_flow *flow, const struct nhca_iter *it,
		     const struct nhca_seg *seg, struct nhca_piece *p)
{
	u32 left = seg->len, off = offset_in_page(seg->addr), n;
	struct nhca_pageref_region **region = nhca_iter_zcopy(it);
	struct nhca_piece *end = p;
	struct page *page;

	/*
	 * a dma-buf is not in the direct map; a slab page must not be in a fragment; without
	 * @region packets must not refer to the page
	 */
	if (is_vmalloc_addr(seg->addr) || !sendpage_ok(nhca_seg_page(seg)) || !region)
		return 0;
	if (!*z)
		*z = nhca_zcopy_new(flow);
	if (!*z || !nhca_pageref_add(&(*z)->pages, region))
		return 0;
	for (page = nhca_seg_page(seg); left; left -= n, off = 0, page++) {
		n = min_t(u32, left, PAGE_SIZE - off);
		get_page(page);
		*end++ = (struct nhca_piece) { page, off, n };
	}
	return end - p;
}

void nhca_zcopy_put(struct nhca_zcopy *z)
{
	if (z)
		nhca_zcopy_complete(NULL, &z->uarg, true);
}

u32 nhca_zcopy_seq(const struct nhca_flow *flow)
{
	return READ_ONCE(nhca_flow_pagerefs((struct nhca_flow *)flow)->seq);
}

bool nhca_zcopy_released(struct nhca_flow *flow, u32 seq)
{
	return nhca_pageref_released(nhca_flow_pagerefs(flow), seq);
}

bool nhca_zcopy_wait_flow(struct nhca_flow *flow, struct nhca_dev *dev,
			  struct nhca_pageref_owner *owner)
{
	return nhca_pageref_wait_queue(nhca_flow_pagerefs(flow), dev, owner);
}
