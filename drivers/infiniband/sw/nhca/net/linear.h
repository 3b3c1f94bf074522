/* SPDX-License-Identifier: GPL-2.0 */
/* Private to net/: packets in linear skbs, and batches of linear skbs (no NETIF_F_SG). */
#ifndef NHCA_NET_LINEAR_H
#define NHCA_NET_LINEAR_H

#include <linux/types.h>

#include "sums.h"

struct dst_entry;
struct nhca_burst;
struct nhca_iter;
struct nhca_tx;
struct sk_buff;

/**
 * nhca_linear_head - allocate the skb of the first packet of a batch
 * @tx:    the packet
 * @dst:   the route; the skb takes over the reference
 * @bytes: bytes of the packet after its UDP header
 * Context: BH disabled.
 * Return: the skb with IP and UDP headers, or NULL if there is no memory; in this case @dst is
 * released.
 */
struct sk_buff *nhca_linear_head(const struct nhca_tx *tx, struct dst_entry *dst, u32 bytes);

/**
 * nhca_linear_payload - write payload, pad and ICRC of a packet to contiguous memory
 * @p:    the memory
 * @tx:   the packet
 * @it:   source of the payload; may be NULL if there is none
 * @sums: over the headers; on return over the whole packet
 * Context: live section.
 * Return: 0, or an error as nhca_iter_read().
 */
int nhca_linear_payload(u8 *p, const struct nhca_tx *tx, struct nhca_iter *it,
			struct nhca_sums *sums);

/**
 * nhca_linear_add - add a packet to a batch of linear skbs
 * @b:  the batch; its first packet is put into @b->skb
 * @tx: the packet
 * @it: source of the payload
 *
 * The caller counts the packet.
 * Context: BH disabled, live section.
 * Return: 0, or an error as nhca_xmit(). After an error the batch does not contain the packet; if
 * the batch has no other packet, the caller must free @b->skb.
 */
int nhca_linear_add(struct nhca_burst *b, struct nhca_tx *tx, struct nhca_iter *it);

/**
 * nhca_linear_run - add a run of packets without an ICRC to a batch of linear skbs
 * @b:     the batch
 * @tx:    the first packet, as for nhca_burst_run()
 * @count: number of packets, for which the batch has room
 * Context: BH disabled, live section.
 * Return: number of packets that were added, from 0 to @count.
 */
u32 nhca_linear_run(struct nhca_burst *b, struct nhca_tx *tx, u32 count);

/**
 * nhca_linear_sums - complete the skb of a batch before it is sent
 * @skb: the skb; if it has several packets, the caller has set its GSO fields
 * Context: any.
 */
void nhca_linear_sums(struct sk_buff *skb);

#endif /* NHCA_NET_LINEAR_H */
