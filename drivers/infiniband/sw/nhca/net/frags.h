/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Memory that packets carry as fragments: copied payloads, headers, and the few bytes behind a
 * payload that is carried by reference.
 */
#ifndef NHCA_NET_FRAGS_H
#define NHCA_NET_FRAGS_H

struct page;
struct sk_buff;

/*
 * Chunks (skb_page_frag_refill(): 32 KiB, or a page if there is no such) of a CPU that are gone
 * through in turn, for whole pages and for skbs: as much as two messages of 64 KiB, one of which
 * the stack still has.  Skbs have headers and the like, and six fit a chunk.
 */
#define NHCA_PAGE_CHUNKS	4
#define NHCA_SKB_CHUNKS		8

/**
 * nhca_frag_get - memory for bytes that an skb carries as a fragment
 * @len: at most a page
 * Calls in a row give bytes that lie together, as long as the CPU's chunk lasts, and a call for
 * a page's worth of bytes gives a page.
 * Context: BH disabled.  Return: the bytes, with a reference on @page, or NULL.
 */
void *nhca_frag_get(unsigned int len, struct page **page, unsigned int *off);

/**
 * nhca_frag_skb - an empty skb whose bytes lie in such memory
 * @room: bytes, headroom and all
 * Context: BH disabled.  Return: the skb, or NULL.
 */
struct sk_buff *nhca_frag_skb(unsigned int room);

/* module exit, behind the last packet; process context */
void nhca_frags_exit(void);

#endif /* NHCA_NET_FRAGS_H */
