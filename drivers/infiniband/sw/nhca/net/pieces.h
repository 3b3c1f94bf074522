/* SPDX-License-Identifier: GPL-2.0 */
/* The pieces (frags.h) of one packet, before they become fragments of an skb. */
#ifndef NHCA_NET_PIECES_H
#define NHCA_NET_PIECES_H

#include "burst.h"
#include "frags.h"
#include "sums.h"
#include "xmit.h"

/* number of pieces for a copy of the longest payload, and for the tail (pad and ICRC) */
#define NHCA_PIECES_ALONE	(DIV_ROUND_UP(NHCA_PACKET_BYTES, (u32)PAGE_SIZE) + 1)

/**
 * struct nhca_pieces - a packet, or the part of it that becomes fragments, while it is built
 * @p:    pieces, in the order of the packet
 * @n:    number of pieces
 * @max:  maximum of @n: NHCA_PIECES for a packet of a batch, NHCA_PIECES_ALONE for a single packet
 * @zcopied: payload bytes that refer to pages of a consumer
 * @zcopy: where the zero-copy reference for these pages is stored; if NULL is stored there, the
 *         first of these pages begins a reference
 * @sums: ICRC and checksum over the packet as far as it was built
 */
struct nhca_pieces {
	struct nhca_piece p[NHCA_PIECES_ALONE];
	u32 n;
	u32 max;
	u32 zcopied;
	struct nhca_zcopy **zcopy;
	struct nhca_sums sums;
};

static_assert(NHCA_PIECES <= NHCA_PIECES_ALONE);
static_assert(NHCA_PIECES_ALONE <= MAX_SKB_FRAGS);

/**
 * nhca_pieces_payload - add payload, pad and ICRC of a packet
 * @ps: with all fields set; each added piece has a reference on its page (get_page())
 * @tx: the packet. The payload is added by page reference as far as @ps->max allows, or copied if
 *      @tx->copy is set
 * @it: source of the payload
 * Context: BH disabled, live section.
 * Return: 0, or an error as nhca_xmit(); after an error @ps has no pieces.
 */
int nhca_pieces_payload(struct nhca_pieces *ps, const struct nhca_tx *tx, struct nhca_iter *it);

/**
 * nhca_pieces_gather - collect the pieces of a packet: headers, payload, pad and ICRC
 * @ps: filled in; each piece has a reference on its page (get_page())
 * @tx: the packet, with at most NHCA_BURST_PAYLOAD bytes of payload; @tx->burst has an skb. If a
 *      piece refers to a consumer page, and @tx->burst->zcopy is NULL, the function begins a
 *      zero-copy reference and stores it there
 * @it: source of the payload
 * Context: BH disabled, live section.
 * Return: 0, or an error as nhca_xmit(); after an error @ps has no pieces.
 */
int nhca_pieces_gather(struct nhca_pieces *ps, struct nhca_tx *tx, struct nhca_iter *it);

/**
 * nhca_pieces_run - collect the payload of one packet of nhca_burst_run(), without headers and ICRC
 * @ps:    filled in; each piece has a reference on its page (get_page())
 * @tx:    the first packet of the run, the same in each call; each call advances @tx->it by one
 *         payload
 * @first: the call is for the first packet
 * Context: BH disabled, live section.
 * Return: true; false: @ps has no pieces, because there is no memory, the payload is not
 * accessible, or a part of the payload cannot be sent by page reference and @tx->copy is not set.
 */
bool nhca_pieces_run(struct nhca_pieces *ps, const struct nhca_tx *tx, bool first);

/**
 * nhca_pieces_drop - release the pages of pieces that no batch has taken over
 * @ps: the pieces; afterwards there are none
 * Context: any.
 */
void nhca_pieces_drop(struct nhca_pieces *ps);

#endif /* NHCA_NET_PIECES_H */
