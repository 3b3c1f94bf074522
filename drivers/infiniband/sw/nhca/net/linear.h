/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Private to the net room: batches for netdevs that take no fragments.
 */
#ifndef NHCA_NET_LINEAR_H
#define NHCA_NET_LINEAR_H

#include <linux/types.h>

struct dst_entry;
struct nhca_burst;
struct nhca_iter;
struct nhca_tx;
struct sk_buff;

/**
 * nhca_linear_head - the skb that a batch's first packet will be
 * @dst: the way, which the skb takes over
 * @bytes: of that packet, behind its UDP header
 * Context: BH disabled.  Return: the skb, with headers of IP and UDP, or NULL.
 */
struct sk_buff *nhca_linear_head(const struct nhca_tx *tx, struct dst_entry *dst, u32 bytes);

/**
 * nhca_linear_add - put a packet behind those of a batch, or make it the first
 * @it: its payload
 * The caller counts it.
 * Context: live section.  Return: 0, or as nhca_xmit(); then the batch has the packets it had.
 */
int nhca_linear_add(struct nhca_burst *b, struct nhca_tx *tx, struct nhca_iter *it);

/**
 * nhca_linear_run - the same with packets that follow from the first of them, without an ICRC
 * @count: how many; there is room for them in the batch
 * Context: live section.  Return: how many were taken, perhaps none.
 */
u32 nhca_linear_run(struct nhca_burst *b, struct nhca_tx *tx, u32 count);

/* a batch's skb leaves now; the fields of GSO are set if it has several packets */
void nhca_linear_seal(struct sk_buff *skb);

#endif /* NHCA_NET_LINEAR_H */
