/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How the work requests of a channel begin transfers on the channel's own rCxts.  The functions
 * take the rCxt's lock.  nhca_begin() and nhca_begin_move() also apply the tid rules; then fetch.c
 * or send.c sends the packets.
 */
#ifndef NHCA_RCXT_BEGIN_H
#define NHCA_RCXT_BEGIN_H

#include "engine.h"

/**
 * nhca_begin_lock - lock a local rCxt
 * @ch: the channel
 * @id: the rCxt
 * Context: the channel's turn.  The lock is held afterwards, also if the function returns NULL.
 * Return: the rCxt, or NULL if the channel does not own it.
 */
struct nhca_rcxt *nhca_begin_lock(struct nhca_channel *ch, const struct nhca_rcxt_id *id)
	__acquires(nhca_rcxt_lock(ch->rd, id));

/**
 * nhca_begin_unlock - release the lock that nhca_begin_lock() has taken
 * @ch: the channel
 * @id: the rCxt
 * Context: the channel's turn.
 */
void nhca_begin_unlock(struct nhca_channel *ch, const struct nhca_rcxt_id *id)
	__releases(nhca_rcxt_lock(ch->rd, id));

/**
 * nhca_begin - begin the transfer of the work request in ch->wqe on its local rCxt
 * @ch: the channel; the work request is a write, an accumulate, a part or a read, and was checked
 * @id: its local rCxt
 * @x:  part, read: RXETH of the packet that the caller sends; the function fills in the notify of a
 *      packet that answers a half-send read, and the number of the request of a half-receive read.
 *      Write, accumulate: NULL
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
 * nhca_begin_failed - let peers use an rCxt again, because a work request for the rCxt has failed
 * @ch: the channel
 * @id: the rCxt; the channel may have released it
 *
 * The work request may have waited to begin on the rCxt (nhca_rcxt_want()).  Another work request
 * that has to wait for the rCxt calls nhca_rcxt_want() when it tries to begin.
 * Context: the channel's turn.
 */
void nhca_begin_failed(struct nhca_channel *ch, const struct nhca_rcxt_id *id);

/**
 * nhca_begin_owned - check that a channel owns an rCxt
 * @ch: the channel
 * @id: the rCxt
 * Context: the channel's turn.
 * Return: true if the channel owns the rCxt.
 */
bool nhca_begin_owned(struct nhca_channel *ch, const struct nhca_rcxt_id *id);

#endif /* NHCA_RCXT_BEGIN_H */
