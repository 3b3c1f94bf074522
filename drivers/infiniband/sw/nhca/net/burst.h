/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Packets to one peer that leave together, as one UDP GSO skb: headers and payload in turn,
 * the payload by page reference; or, where a netdev takes no fragments, one skb behind the other.
 */
#ifndef NHCA_NET_BURST_H
#define NHCA_NET_BURST_H

#include <linux/types.h>

struct nhca_iter;
struct nhca_tx;
struct nhca_who;
struct nhca_zcopy;
struct sk_buff;

/* packets of a batch: what UDP sockets of every kernel allow themselves */
#define NHCA_BURST_PACKETS	64
/* pieces of a packet, headers and tail included: of a payload in more, the rest is copied */
#define NHCA_PIECES		8
/* a longer payload might not fit NHCA_PIECES when it is copied page by page: it goes alone */
#define NHCA_BURST_PAYLOAD	((NHCA_PIECES - 2) * (u32)PAGE_SIZE)

/**
 * struct nhca_burst - packets that wait for those behind them
 * @skb:     headers of IP and UDP, then the packets; NULL: none
 * @last:    @skb, or the last of its frag_list: where fragments, or packets, are added
 * @dev, @who, @av, @flow: of the first packet, and so of all
 * @seg:     bytes of each packet behind its UDP header; the last may have fewer
 * @len:     bytes of all
 * @packets: how many
 * @payload: bytes of payload in them, for the counters
 * @zcopied: of these, bytes by reference
 * @zcopy:   the reference of the consumer pages in them, or NULL; if the netdev takes skbs behind
 *           an skb, perhaps that of small batches before
 * @covered: packets of batches before that have @zcopy
 * @ended:   nothing fits behind the last packet, because it is a shorter one
 * @lists:   the netdev takes skbs behind an skb
 * @linear:  it takes no fragments, and each packet is an skb
 * @alone:   the netdev takes no batches: do not ask again
 *
 * On the stack of a pass over one half of one QP, zeroed, and flushed at its end: the QP's
 * lock protects it.  Fields are private to the net room.
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

/* does nothing wait in it? */
static inline bool nhca_burst_empty(const struct nhca_burst *b)
{
	return !b->skb;
}

/**
 * nhca_burst_add - put a packet behind those that wait, or begin with it
 * Context, errors: as nhca_xmit(); -EOPNOTSUPP: the packet has to go alone.
 */
int nhca_burst_add(struct nhca_tx *tx);

/**
 * nhca_pieces_add - add a packet to a batch as fragments
 * @b:  begun, for a netdev that takes fragments
 * @tx: of the batch; at most NHCA_BURST_PAYLOAD bytes of payload
 * @it: where the payload comes from
 * The caller counts the packet.
 * Context: BH disabled, live section.
 * Return: 0, -ENOSPC if the batch has no room for it, or as nhca_xmit(); then the batch has the
 * packets it had.
 */
int nhca_pieces_add(struct nhca_burst *b, struct nhca_tx *tx, struct nhca_iter *it);

/**
 * nhca_burst_run - put packets behind those that wait which follow from the first of them
 * @tx:    that one; each next one has the PSN and the payload behind it, and so the offset and
 *         the PVO if there is an RXETH; payload by reference, or a copy if @tx->copy, and no ICRC
 * @count: how many there are
 *
 * Context: as nhca_xmit().  In one live section.
 * Return: how many were taken, perhaps fewer than @count, or none: then nhca_xmit() knows why.
 */
u32 nhca_burst_run(struct nhca_tx *tx, u32 count);

/**
 * nhca_burst_flush - send what waits
 * Context: BH disabled, RCU read side; not in a live section.
 */
void nhca_burst_flush(struct nhca_burst *b);

#endif /* NHCA_NET_BURST_H */
