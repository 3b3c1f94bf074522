/* SPDX-License-Identifier: GPL-2.0 */
/*
 * State of the cancels of a channel, for fetch.c.  All functions are about the cancel that is being
 * executed or flushed: that of nhca_channel.retry, if it is not NULL, or else that at
 * nhca_channel.fetched.
 */
#ifndef NHCA_RCXT_CANCEL_H
#define NHCA_RCXT_CANCEL_H

#include "engine.h"

/**
 * nhca_cancel_begin - cancel a transfer: from now on no CPU begins to place bytes of it
 * @ch:  the channel
 * @id:  the rCxt
 * @tid: tid of the cancel
 *
 * If a CPU copies payload for the rCxt, nhca_cancel_copying() returns true until the copies have
 * ended.
 * Context: the channel's turn.
 * Return: as nhca_rcxt_cancel(); -ENOENT: the channel does not own the rCxt.
 */
int nhca_cancel_begin(struct nhca_channel *ch, const struct nhca_rcxt_id *id, u32 tid);

/**
 * nhca_cancel_record - record that the cancel has begun
 * @ch: the channel
 *
 * The cancel waits for the release of the zero-copy references that exist now.
 * Context: the channel's turn.
 */
void nhca_cancel_record(struct nhca_channel *ch);

/**
 * nhca_cancel_begun - check whether the cancel has begun, perhaps in an earlier turn
 * @ch: the channel
 * Context: the channel's turn.
 * Return: true if nhca_cancel_record() was called for the cancel.
 */
bool nhca_cancel_begun(const struct nhca_channel *ch);

/**
 * nhca_cancel_copying - check whether copies that nhca_cancel_begin() has found are in progress
 * @ch: the channel
 * @id: the rCxt
 *
 * Copies for a later transfer also count if a later work request for the rCxt waits for the end of
 * copies.
 * Context: the channel's turn.
 * Return: true if a CPU still copies; the end of the copies kicks the channel.
 */
bool nhca_cancel_copying(struct nhca_channel *ch, const struct nhca_rcxt_id *id);

/**
 * nhca_cancel_released - check whether the references that nhca_cancel_record() has found are
 * released
 * @ch: the channel
 * Context: the channel's turn.
 * Return: true if all are released; otherwise the next release kicks the channel.
 */
bool nhca_cancel_released(struct nhca_channel *ch);

/**
 * nhca_cancel_end - reset the channel's state of a cancel that completes or moves to @ch->waiting
 * @ch: the channel
 * Context: the channel's turn.
 */
void nhca_cancel_end(struct nhca_channel *ch);

#endif /* NHCA_RCXT_CANCEL_H */
