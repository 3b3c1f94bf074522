/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Receive side scaling selects one of several queues by a hash of a frame's addresses and ports, so
 * that the frames of one connection go to one queue.
 */
#ifndef NHCA_NET_RSS_H
#define NHCA_NET_RSS_H

#include <rdma/nhca-abi.h>

#include "steering.h"

/**
 * struct nhca_rss - indirection table of a raw packet QP, in place of a receive queue
 * @key:    key of the hash
 * @fields: fields that are hashed, NHCA_RSS_*
 * @mask:   number of entries of @queue minus one; the number is a power of two
 * @queue:  the table; the QPs outlive it
 */
struct nhca_rss {
	u8 key[NHCA_RSS_KEY];
	u32 fields;
	u32 mask;
	struct nhca_qp *queue[];
};

/**
 * nhca_rss_hash - compute the Toeplitz hash of a frame
 * @key:    NHCA_RSS_KEY bytes
 * @fields: fields to hash, NHCA_RSS_*; a field that the frame does not have is omitted
 * @what:   fields of the frame
 * Context: any.
 * Return: the hash; 0 if the frame has none of the fields.
 */
u32 nhca_rss_hash(const u8 *key, u32 fields, const struct nhca_steer_key *what);

/**
 * nhca_rss_pick - select the queue of a frame
 * @rss: the indirection table
 * @skb: the frame, with its MAC and network headers set
 * Context: any.
 * Return: the QP whose receive queue gets the frame.
 */
struct nhca_qp *nhca_rss_pick(const struct nhca_rss *rss, const struct sk_buff *skb);

#endif /* NHCA_NET_RSS_H */
