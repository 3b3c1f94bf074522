/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Zero-copy references: they count the packets that refer to pages of a consumer.
 *
 * A reference is a ubuf_info, as for MSG_ZEROCOPY. Clones of an skb share one count. The stack
 * increments the count when it copies the shared info of an skb (pskb_copy()) or segments the
 * skb, and decrements it when the fragments are freed or were copied. The skb's destructor does
 * not show that the pages are released, because the stack may call the destructor earlier
 * (skb_orphan()). memory/pageref.h has the queues of references, and the waits for references.
 *
 * These operations wait until references are released: completions of send requests; completions,
 * cancels and flushes of channel writes; reset and destruction of QPs; destruction of channels,
 * regions and job memory; the release of rCxts; and changes of a region's rights.
 */
#ifndef NHCA_NET_ZCOPY_H
#define NHCA_NET_ZCOPY_H

#include <linux/skbuff.h>

#include "../memory/pageref.h"

struct nhca_dev;
struct nhca_flow;
struct nhca_iter;
struct nhca_piece;
struct nhca_seg;
struct nhca_txq;

/* pages that PAGE_SIZE contiguous bytes can touch */
#define NHCA_ZCOPY_PIECES	2

/**
 * struct nhca_zcopy - a reference: the consumer pages of one packet or batch, or of a few small
 * batches
 * @uarg:    counts the builder (the code that makes the skbs) until nhca_zcopy_put(), and each skb
 *           with the pages; at 0 the pages are released
 * @ref:     references to this struct: one until the count of @uarg is 0, and one of the charge
 *           (flow.c) of an skb whose own fragments refer to consumer pages
 * @flow:    flow of the packets; the struct holds a reference to it
 * @packets: number of packets of the skb whose charge @ref counts
 * @pages:   entry in the flow's queue of references (memory/pageref.h) until the pages are released
 */
struct nhca_zcopy {
	struct ubuf_info uarg;
	refcount_t ref;
	struct nhca_flow *flow;
	u32 packets;
	struct nhca_pageref pages;
};

/**
 * nhca_zcopy_new - begin a reference
 * @flow: the flow; its requester, responder or send engine calls this function
 * Context: BH disabled, live section; before the first page is added to an skb.
 * Return: the reference, which the builder must put; NULL: no memory, so copy the payload.
 */
struct nhca_zcopy *nhca_zcopy_new(struct nhca_flow *flow);

/**
 * nhca_zcopy_pages - make pieces of the pages of a segment, if packets may refer to the pages
 * @z:    the reference of the packet or batch; if it is NULL, the function begins one
 * @flow: flow of the packet
 * @it:   the iterator, which has just returned @seg
 * @seg:  at most PAGE_SIZE bytes
 * @p:    NHCA_ZCOPY_PIECES pieces; one for each page is filled in, with a reference on the page
 *
 * The caller attaches @z to the skb that gets the pieces.
 * Context: BH disabled, live section.
 * Return: number of pieces; 0: the bytes must be copied, because packets must not refer to the
 * pages, because @z covers NHCA_PAGEREF_REGIONS other regions already, or because there is no
 * memory.
 */
u32 nhca_zcopy_pages(struct nhca_zcopy **z, struct nhca_flow *flow, const struct nhca_iter *it,
		     const struct nhca_seg *seg, struct nhca_piece *p);

/**
 * nhca_zcopy_attach - attach a reference to an skb with consumer pages
 * @skb: the skb; it must not have pages of another reference
 * @z:   the reference of the pages; the skb takes its own count
 * Context: any; the caller has a reference.
 */
static inline void nhca_zcopy_attach(struct sk_buff *skb, struct nhca_zcopy *z)
{
	skb_zcopy_set(skb, &z->uarg, NULL);
}

/**
 * nhca_zcopy_of - get the reference of the consumer pages among an skb's own fragments
 * @skb: an skb of this driver
 * Context: any.
 * Return: the reference, which the skb owns; NULL if there are no such pages.
 */
static inline struct nhca_zcopy *nhca_zcopy_of(struct sk_buff *skb)
{
	struct ubuf_info *uarg = skb_zcopy(skb);

	return uarg ? container_of(uarg, struct nhca_zcopy, uarg) : NULL;
}

/* Return: number of regions that a reference covers. @z: the reference, or NULL */
static inline u32 nhca_zcopy_regions(const struct nhca_zcopy *z)
{
	return z ? z->pages.n : 0;
}

/**
 * nhca_zcopy_put - drop the builder's count of @z->uarg
 * @z: the reference, or NULL
 * Context: any.
 */
void nhca_zcopy_put(struct nhca_zcopy *z);

/**
 * nhca_zcopy_unref - drop one count of @z->ref
 * @z: the reference
 * Context: any.
 */
void nhca_zcopy_unref(struct nhca_zcopy *z);

/**
 * nhca_zcopy_seq - get the number of the newest reference of a flow
 * @flow: the flow
 *
 * The newest reference may be one of the responder; in this case a completion of the requester also
 * waits for the responder's reference.
 * Context: the requester or send engine of the flow.
 * Return: the number.
 */
u32 nhca_zcopy_seq(const struct nhca_flow *flow);

/**
 * nhca_zcopy_released - check whether all references of a flow up to a number are released
 * @flow: the flow; if one of these references is left, the flow is kicked at the next release
 * @seq:  the number
 * Context: any.
 * Return: true if all these references are released.
 */
bool nhca_zcopy_released(struct nhca_flow *flow, u32 seq);

/**
 * nhca_zcopy_wait_flow - wait until the references of a flow that exist now are released
 * @flow:  the flow; its requester or send engine begins no new reference
 * @dev:   its device
 * @owner: as nhca_pageref_wait()
 *
 * Context: process, sleeps.
 * Return: true: the references are released; false: a time limit of nhca_pageref_wait() has ended
 * the wait.
 */
bool nhca_zcopy_wait_flow(struct nhca_flow *flow, struct nhca_dev *dev,
			  struct nhca_pageref_owner *owner);

#endif /* NHCA_NET_ZCOPY_H */
