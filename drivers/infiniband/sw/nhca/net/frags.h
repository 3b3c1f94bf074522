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
 * @len:  bytes, at most PAGE_SIZE: no chunk is sure to have more, so a longer payload takes
 *        several calls
 * @page: where the bytes are, with a reference for the caller
 * @off:  offset of the bytes in @page
 *
 * Consecutive calls give consecutive bytes as long as the CPU's chunk lasts.  A call for PAGE_SIZE
 * bytes gives an aligned page.
 * Context: BH disabled.
 * Return: @len bytes, or NULL if there is no memory.
 */
void *nhca_frag_get(unsigned int len, struct page **page, unsigned int *off);

/**
 * nhca_frag_skb - allocate an empty skb, its data in a chunk if a chunk can hold it
 * @room: bytes, headroom included, at most 65535 and a headroom
 * Context: BH disabled.
 * Return: the skb, or NULL if there is no memory.
 */
struct sk_buff *nhca_frag_skb(unsigned int room);

/* module exit, behind the last packet; process context */
void nhca_frags_exit(void);

#endif /* NHCA_NET_FRAGS_H */
