/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Memory for packets: for the data of linear skbs, and for fragments: copied payloads, headers, and
 * the pad and ICRC after a payload.
 */
#ifndef NHCA_NET_FRAGS_H
#define NHCA_NET_FRAGS_H

#include <linux/types.h>

struct page;
struct sk_buff;

/**
 * struct nhca_piece - contiguous bytes of a packet in one page
 * @page: the page; the piece owns a reference
 * @off:  offset of the bytes in @page
 * @len:  number of bytes
 */
struct nhca_piece {
	struct page *page;
	u32 off;
	u32 len;
};

/*
 * Number of chunks of each CPU, for whole pages and for skbs. The chunks are used in turn.
 * skb_page_frag_refill() allocates chunks of 32 KiB, or of a page if memory is fragmented. The
 * chunks for pages hold two messages of 64 KiB, one of which may still be in the stack. There are
 * more chunks for skbs, because skbs also have headers: only six or seven packets of 4 KiB fit a
 * chunk.
 */
#define NHCA_PAGE_CHUNKS	4
#define NHCA_SKB_CHUNKS		8

/**
 * nhca_frag_get - get memory for a fragment of an skb
 * @len:  number of bytes, at most PAGE_SIZE, because a chunk may be one page
 * @page: set to the page of the bytes, with a reference for the caller
 * @off:  set to the offset of the bytes in @page
 *
 * Consecutive calls return consecutive bytes as long as the CPU's chunk lasts. A call for PAGE_SIZE
 * bytes returns an aligned page.
 * Context: BH disabled.
 * Return: @len bytes, or NULL if there is no memory.
 */
void *nhca_frag_get(unsigned int len, struct page **page, unsigned int *off);

/**
 * nhca_frag_skb - allocate an empty skb, with its data in a chunk if a chunk can hold it
 * @room: bytes of data including headroom, at most 65535 plus a headroom
 * Context: BH disabled.
 * Return: the skb, or NULL if there is no memory.
 */
struct sk_buff *nhca_frag_skb(unsigned int room);

/**
 * nhca_frags_exit - free the chunks of all CPUs at module unload, when no packet is built any more
 * Context: process.
 */
void nhca_frags_exit(void);

#endif /* NHCA_NET_FRAGS_H */
