/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How the work requests of a channel begin and cancel transfers on the channel's own rCxts.  The
 * functions take the rCxt's lock and apply the tid rules; fetch.c calls them and sends the packets.
 */
#ifndef NHCA_RCXT_BEGIN_H
#define NHCA_RCXT_BEGIN_H

#include "engine.h"

/**
 * nhca_begin - begin the transfer of the work request in ch->wqe on its local rCxt
 * @ch: the channel; the work request is a write, a part or a read, and was checked
 * @id: its local rCxt
 * @x:  part, read: RXETH of the packet that the caller sends; the function fills in the notify of a
 *      packet that answers a half-send read, and the number of the request of a half-receive read.
 *      Write: NULL
 * Context: the channel's turn.
 * Return: as nhca_rcxt_begin_write(), nhca_rcxt_begin_part(), nhca_rcxt_begin_answer(),
 * nhca_rcxt_begin_again(), nhca_rcxt_begin_read(), nhca_rcxt_begin_ask(), nhca_rcxt_ask_again(),
 * nhca_rcxt_begin_frames() and nhca_rcxt_frames_again(); -EAGAIN: CPUs still copy payload for the
 * rCxt; the end of the last copy kicks the channel; -ENOENT: the channel does not own the rCxt.
 */
int nhca_begin(struct nhca_channel *ch, const struct nhca_rcxt_id *id, struct nhca_rxeth *x);

/**
 * nhca_begin_move - begin the third-party transfer of ch->wqe, or request a part of it again
 * @ch: the channel; the work request is NHCA_WR_CH_MOVE, and was checked
 * @id: its local rCxt
 * @x:  RXETH of the request; its number is filled in
 * Context: the channel's turn.
 * Return: as nhca_rcxt_begin_move() and nhca_rcxt_move_again(); -ENOENT: the channel does not own
 * the rCxt.
 */
int nhca_begin_move(struct nhca_channel *ch, const struct nhca_rcxt_id *id, struct nhca_rxeth *x);

/**
 * nhca_begin_owned - check that a channel owns an rCxt
 * @ch: the channel
 * @id: the rCxt
 * Context: the channel's turn.
 * Return: true if the channel owns the rCxt.
 */
bool nhca_begin_owned(struct nhca_channel *ch, const struct nhca_rcxt_id *id);

/**
 * nhca_begin_cancel - cancel a transfer: from now on no CPU begins to place bytes of it
 * @ch:  the channel; the cancel is the work request to fetch next
 * @id:  the rCxt
 * @tid: tid of the transfer
 *
 * If a CPU copies payload for the rCxt, nhca_begin_copying() returns true until the copies have
 * ended.
 * Context: the channel's turn.
 * Return: as nhca_rcxt_cancel(); -ENOENT: the channel does not own the rCxt.
 */
int nhca_begin_cancel(struct nhca_channel *ch, const struct nhca_rcxt_id *id, u32 tid);

/**
 * nhca_begin_cancelling - check whether a cancel has begun in an earlier turn
 * @ch: the channel
 * Context: the channel's turn.
 * Return: true if the cancel to fetch next has already canceled its transfer.
 */
static inline bool nhca_begin_cancelling(const struct nhca_channel *ch)
{
	return ch->cancelling && ch->cancel_index == ch->fetched;
}

/**
 * nhca_begin_copying - check whether a cancel has to wait for copies
 * @ch: the channel
 * @id: the rCxt of the cancel
 * Context: the channel's turn.
 * Return: true if copies that nhca_begin_cancel() has found on the rCxt have not ended; their end
 * kicks the channel.  Payload of a later transfer is not included.
 */
bool nhca_begin_copying(struct nhca_channel *ch, const struct nhca_rcxt_id *id);

#endif /* NHCA_RCXT_BEGIN_H */
