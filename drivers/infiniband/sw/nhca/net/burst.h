/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Batches: packets to one peer that enter the stack as one UDP GSO skb. Headers and payload
 * alternate in its fragments, and the payload is sent by page reference where possible. For a
 * netdev without NETIF_F_SG the batch is a list of linear skbs.
 */
#ifndef NHCA_NET_BURST_H
#define NHCA_NET_BURST_H

#include <linux/types.h>

struct nhca_iter;
struct nhca_tx;
struct nhca_who;
struct nhca_zcopy;
struct sk_buff;

/* maximum packets of a batch: UDP_MAX_SEGMENTS of older kernels; newer kernels allow 128 */
#define NHCA_BURST_PACKETS	64
/*
 * maximum number of pieces (frags.h) of a packet, including headers, pad and ICRC; payload that
 * would need more pieces is copied
 */
#define NHCA_PIECES		8
/*
 * maximum payload in bytes of a packet in a batch; a copy of a longer payload may need more pieces
 * than NHCA_PIECES, so the packet is sent alone
 */
#define NHCA_BURST_PAYLOAD	((NHCA_PIECES - 2) * (u32)PAGE_SIZE)

/**
 * struct nhca_burst - a batch to which packets can be added
 * @skb:     IP and UDP headers, then the packets; NULL: the batch is empty
 * @last:    @skb, or the last skb of its frag_list: fragments or packets are added here
 * @dev:     device of all packets
 * @who:     queue pair or channel of all packets, for counters and traces
 * @av:      address vector of all packets
 * @flow:    flow that @skb is charged to
 * @seg:     bytes of each packet after the UDP header; the last packet may be shorter
 * @len:     bytes of all packets after their UDP headers
 * @packets: number of packets
 * @payload: bytes of payload, for the counters
 * @zcopied: bytes of @payload that refer to consumer pages
 * @zcopy:   zero-copy reference of these pages, or NULL. On a netdev that supports a frag_list,
 *           earlier small batches of the pass may have the same reference
 * @covered: packets of earlier batches that use @zcopy
 * @ended:   the last packet is shorter than @seg, so no packet may follow it
 * @lists:   the netdev supports a frag_list
 * @linear:  the netdev supports no fragments: each packet is a linear skb
 * @alone:   the route supports no batches (nhca_burst_may()); packets of this pass are sent alone
 *
 * A pass is one call of a requester or responder, or of the send engine for one channel; the batch
 * is on the stack of this call. The batch is zeroed when the pass begins, and flushed when the pass
 * ends. A pass holds the lock of the requester or responder, and only one CPU at a time sends for a
 * channel, so no other CPU uses the batch. The fields are private to net/.
 */
struct nhca_burst {
	struct sk_buff *skb;
	struct sk_buff *last;
	struct nhca_dev *dev;
	const struct nhca_who *who;
	struct nhca_av *av;
	struct nhca_flow *flow;
	u32 seg;
	u32 len;
	u32 packets;
	u32 payload;
	u32 zcopied;
	struct nhca_zcopy *zcopy;
	u32 covered;
	bool ended;
	bool lists;
	bool linear;
	bool alone;
};

/**
 * nhca_burst_empty - check whether a batch has no packet
 * @b: the batch
 * Context: that of the pass.
 * Return: true if no packet waits in @b.
 */
static inline bool nhca_burst_empty(const struct nhca_burst *b)
{
	return !b->skb;
}

/**
 * nhca_burst_add - add a packet to its batch, or begin a batch with it
 * @tx: the packet; @tx->burst is the batch
 * Context: as nhca_xmit().
 * Return: 0; -EOPNOTSUPP: the packet must be sent alone; other errors as nhca_xmit().
 */
int nhca_burst_add(struct nhca_tx *tx);

/**
 * nhca_pieces_add - add a packet to a batch as fragments
 * @b:  a batch with an skb, for a netdev that supports fragments
 * @tx: the packet, with at most NHCA_BURST_PAYLOAD bytes of payload
 * @it: source of the payload
 *
 * The caller counts the packet.
 * Context: BH disabled, live section.
 * Return: 0; -ENOSPC if the batch has no room for the packet; other errors as nhca_xmit(). After an
 * error the batch does not contain the packet.
 */
int nhca_pieces_add(struct nhca_burst *b, struct nhca_tx *tx, struct nhca_iter *it);

/**
 * nhca_burst_run - add a run to a batch: packets of equal length that follow each other
 * @tx:    the first packet. Each further one has the next PSN and the next payload, and in an RXETH
 *         the next offset and PVO. The packets have no ICRC. The payload is sent by page reference,
 *         or copied if @tx->copy is set or the batch is one of linear skbs
 * @count: maximum number of packets
 *
 * All packets are built in one live section.
 * Context: as nhca_xmit().
 * Return: number of packets that were added, from 0 to @count. After 0 the caller sends the first
 * packet by nhca_xmit(), which returns the error if there is one.
 */
u32 nhca_burst_run(struct nhca_tx *tx, u32 count);

/**
 * nhca_burst_flush - send the packets of a batch, and release its zero-copy reference
 * @b: the batch; it may be empty
 * Context: BH disabled, RCU read side; not in a live section.
 */
void nhca_burst_flush(struct nhca_burst *b);

#endif /* NHCA_NET_BURST_H */
