/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Receive side scaling: which of several queues a frame is for, by a hash of its addresses, so
 * that those of one connection come to one queue.
 */
#ifndef NHCA_NET_RSS_H
#define NHCA_NET_RSS_H

#include <rdma/nhca-abi.h>

#include "steer.h"

/**
 * struct nhca_rss - what a raw packet QP with an indirection table has in place of a queue
 * @key:    of the hash
 * @fields: what is hashed, NHCA_RSS_*
 * @mask:   queues less one; their number is a power of two
 * @queue:  of the table; they outlive it
 */
struct nhca_rss {
	u8 key[NHCA_RSS_KEY];
	u32 fields;
	u32 mask;
	struct nhca_qp *queue[];
};

/**
 * nhca_rss_hash - Toeplitz' hash of those of @fields that a frame has
 * @key:  NHCA_RSS_KEY bytes
 * @what: of the frame
 * Context: any.  Return: the hash; 0: the frame has none of them.
 */
u32 nhca_rss_hash(const u8 *key, u32 fields, const struct nhca_steer_key *what);

/* the queue of a frame, whose MAC and network headers are set; any context */
struct nhca_qp *nhca_rss_pick(const struct nhca_rss *rss, const struct sk_buff *skb);

#endif /* NHCA_NET_RSS_H */
