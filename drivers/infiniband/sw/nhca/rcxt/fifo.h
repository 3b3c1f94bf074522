/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Private to rcxt/ and its tests: the receive FIFO of a channel, and its allocation of slots.
 *
 * A completion tells the program that a slot has a frame; the program gives the slot back when it
 * has read the frame.  If the CQ is full, the completion is lost: the program does not know that
 * the slot was used, and would never give the slot back.  So the FIFO records the slot, and
 * allocates it again for a later frame, with the same index.
 */
#ifndef NHCA_RCXT_FIFO_H
#define NHCA_RCXT_FIFO_H

#include "../queue/ring.h"

/**
 * struct nhca_fifo - a receive FIFO
 * @ring:   ring of struct nhca_frame; @ring.hdr is NULL if the channel has no FIFO
 * @prod:   index of the next new frame, free-running; hdr->prod is a copy for the program, and the
 *          kernel never reads this copy
 * @unread: bitmap: bit i is set if slot i has a frame whose completion was lost; owned
 * @count:  number of bits that are set in @unread
 *
 * The caller's lock (nhca_channel.lock) protects all fields but @ring.
 */
struct nhca_fifo {
	struct nhca_ring ring;
	u32 prod;
	unsigned long *unread;
	u32 count;
};

/**
 * nhca_fifo_init - create a FIFO
 * @fifo:   filled in; the caller calls nhca_fifo_destroy() also after an error
 * @frames: number of slots, at least 1; rounded up to a power of two
 * @user:   process that maps the FIFO, or NULL for a kernel ring
 * Context: process, sleeps.
 * Return: as nhca_ring_alloc().
 */
int nhca_fifo_init(struct nhca_fifo *fifo, u32 frames, struct nhca_ring_user *user);

/**
 * nhca_fifo_destroy - free the memory of a FIFO
 * @fifo: the FIFO; may be zeroed
 * Context: process, sleeps.
 */
void nhca_fifo_destroy(struct nhca_fifo *fifo);

/**
 * nhca_fifo_take - allocate a slot for a frame
 * @fifo:  the FIFO
 * @index: set to the free-running index of the frame, for its completion
 * Context: any; the lock of the FIFO.
 * Return: true if a slot was allocated: one that nhca_fifo_untake() has recorded, or else the next
 * one; false if none is recorded and the FIFO is full.  With an impossible consumer index of the
 * program, the FIFO counts as full.
 */
bool nhca_fifo_take(struct nhca_fifo *fifo, u32 *index);

/**
 * nhca_fifo_untake - record a slot that can be allocated again, because its completion was lost
 * @fifo:  the FIFO
 * @index: index of the frame, from nhca_fifo_take()
 * Context: any; the lock of the FIFO.
 */
void nhca_fifo_untake(struct nhca_fifo *fifo, u32 index);

#endif /* NHCA_RCXT_FIFO_H */
