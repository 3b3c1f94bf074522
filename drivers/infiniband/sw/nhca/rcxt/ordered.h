/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Ordered accumulates (NHCA_RCXT_WR_ORDERED).  The accumulates of one channel to one peer that have
 * this flag are applied in the order of their work requests: each of them begins only when the
 * earlier ones are complete, or were canceled or replaced, or their rCxts were released.
 * Private to rcxt/.
 */
#ifndef NHCA_RCXT_ORDERED_H
#define NHCA_RCXT_ORDERED_H

#include "engine.h"

/**
 * nhca_ordered_may - check whether the ordered accumulate of ch->wqe may begin
 * @ch: the channel
 *
 * If the accumulate has to wait for an earlier one, one of these events kicks the channel: the
 * notice of the earlier one, a status that replaces this notice, or the release of the rCxt of the
 * earlier one.  A cancel, or another transfer on that rCxt, ends the wait in a turn of the channel.
 * Context: the channel's turn.
 * Return: the element of nhca_channel.ordered for nhca_ordered_set(); NULL: an earlier ordered
 * accumulate to the same peer waits or is in progress, or NHCA_CH_ORDERED are in progress.
 */
struct nhca_ordered *nhca_ordered_may(struct nhca_channel *ch);

/**
 * nhca_ordered_set - record that the ordered accumulate of ch->wqe has begun
 * @ch: the channel
 * @o:  the result of nhca_ordered_may()
 * Context: the channel's turn.
 */
void nhca_ordered_set(struct nhca_channel *ch, struct nhca_ordered *o);

/**
 * nhca_ordered_unbegun - check whether ch->wqe repeats packets of an accumulate that has not begun
 * @ch: the channel
 * @id: the local rCxt of the work request
 *
 * A program does not know when an ordered accumulate begins.  So it may request a retransmission of
 * packets that were not sent yet.
 * Context: the channel's turn.
 * Return: true if the work request is a retransmission of an ordered accumulate that waits: all
 * packets will be sent when it begins.
 */
bool nhca_ordered_unbegun(const struct nhca_channel *ch, const struct nhca_rcxt_id *id);

/**
 * nhca_ordered_full - check whether ch->wqe is an ordered accumulate that may not wait
 * @ch: the channel
 *
 * An ordered accumulate may wait for an earlier one as long as a peer likes.  So such work requests
 * must leave room in nhca_channel.waiting, for the retransmissions and cancels that end the wait.
 * Context: the channel's turn.
 * Return: true if the work request is an ordered accumulate that does not wait yet, and
 * NHCA_MAX_ORDERED ordered accumulates wait, whatever for.
 */
bool nhca_ordered_full(const struct nhca_channel *ch);

#endif /* NHCA_RCXT_ORDERED_H */
