/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Notices of peers, and the completion of writes after their notices.  Private to rcxt/ and its
 * tests.
 */
#ifndef NHCA_RCXT_NOTICE_H
#define NHCA_RCXT_NOTICE_H

#include "engine.h"

/**
 * nhca_notice_rx - execute a notice of a peer
 * @ch: the channel
 * @rx: the notice
 * Context: softirq, RCU read side, no lock held.
 */
void nhca_notice_rx(struct nhca_channel *ch, const struct nhca_rx *rx);

/**
 * nhca_notice_wait - put the rCxt of a write on nhca_channel.noticed
 * @ch: the channel
 * @rc: the rCxt, RELEASING
 *
 * nhca_notice_complete() completes the write when no packet refers to its pages any more.
 * Context: the channel's turn, rCxt's lock.
 */
void nhca_notice_wait(struct nhca_channel *ch, struct nhca_rcxt *rc);

/**
 * nhca_notice_answered - post NHCA_WC_CH_REMOTE_READ, because the peer has all bytes of its read
 * @ch:     the channel
 * @local:  rCxt of @ch
 * @x:      RXETH of a packet of the read
 * @reader: QPN of the peer's channel
 * Context: any; no lock held.
 */
void nhca_notice_answered(struct nhca_channel *ch, const struct nhca_rcxt_id *local,
			  const struct nhca_rxeth *x, u32 reader);

/**
 * nhca_notice_early - check whether a status says too early that a write is complete
 * @ch: the channel
 * @rc: rCxt that the status names
 * @x:  RXETH of the status
 *
 * The program may reuse the memory after a status NHCA_RX_ST_DONE.  So the caller drops a status
 * that is too early.  The program then sends another probe, as after a packet loss.
 * Context: any, rCxt's lock.
 * Return: true if the status is NHCA_RX_ST_DONE for the write of @rc, but the send engine still
 * makes packets of the write, or packets still refer to its pages.
 */
bool nhca_notice_early(struct nhca_channel *ch, const struct nhca_rcxt *rc,
		       const struct nhca_rxeth *x);

/**
 * nhca_notice_forget - remove an rCxt from nhca_channel.noticed, because it is being released
 * @ch: the channel
 * @rc: the rCxt; if it is RELEASING, its write gets no completion
 * Context: any, rCxt's lock.
 */
void nhca_notice_forget(struct nhca_channel *ch, struct nhca_rcxt *rc);

/**
 * nhca_notice_complete - complete writes whose pages have been released
 * @ch:   the channel
 * @cost: increased by the number of writes
 * Context: the channel's turn.
 * Return: true if there may be more of these writes; false if none is left, or if packets still
 * refer to the pages of the first write.  The release of these pages kicks the channel.
 */
bool nhca_notice_complete(struct nhca_channel *ch, u32 *cost);

#endif /* NHCA_RCXT_NOTICE_H */
