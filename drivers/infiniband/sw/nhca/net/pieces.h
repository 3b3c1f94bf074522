/* SPDX-License-Identifier: GPL-2.0 */
/* The pieces (frags.h) of one packet, before the packet is added to a batch. */
#ifndef NHCA_NET_PIECES_H
#define NHCA_NET_PIECES_H

#include "burst.h"
#include "frags.h"

/**
 * struct nhca_pieces - a packet that is not yet part of the batch
 * @p:    pieces, in the order of the packet
 * @n:    number of pieces
 * @crc:  running ICRC over the pieces
 * @zcopied: payload bytes that refer to pages of a consumer
 * @icrc: the packet has an ICRC
 */
struct nhca_pieces {
	struct nhca_piece p[NHCA_PIECES];
	u32 n;
	u32 crc;
	u32 zcopied;
	bool icrc;
};

/**
 * nhca_pieces_gather - collect the pieces of a packet: headers, payload, pad and ICRC
 * @ps: filled in; each piece has a reference on its page (get_page())
 * @tx: the packet, with at most NHCA_BURST_PAYLOAD bytes of payload; @tx->burst has an skb, and
 *      gets a zero-copy reference, unless it has one, if a piece refers to a consumer page
 * @it: source of the payload
 * Context: BH disabled, live section.
 * Return: 0, or an error as nhca_xmit(); then @ps has no pieces.
 */
int nhca_pieces_gather(struct nhca_pieces *ps, struct nhca_tx *tx, struct nhca_iter *it);

/**
 * nhca_pieces_run - collect the payload of one packet of nhca_burst_run(), without headers and ICRC
 * @ps:    filled in; each piece has a reference on its page (get_page())
 * @tx:    the first packet of the run, the same in each call; each call advances @tx->it by one
 *         payload
 * @first: the call is for the first packet
 * Context: BH disabled, live section.
 * Return: false: @ps has no pieces, because there is no memory, the source has an error, or a part
 * of the payload cannot be sent by page reference and @tx->copy is not set.
 */
bool nhca_pieces_run(struct nhca_pieces *ps, const struct nhca_tx *tx, bool first);

/**
 * nhca_pieces_drop - release the pages of pieces that no batch has taken over
 * @ps: the pieces; afterwards there are none
 * Context: any.
 */
void nhca_pieces_drop(struct nhca_pieces *ps);

#endif /* NHCA_NET_PIECES_H */
