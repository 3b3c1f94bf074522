/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Private to rcxt/ and its tests: the receive FIFO of a channel: which slot takes the next frame.
 *
 * The program learns of a frame by its completion, and gives the slot back in its own time.  If
 * there is no room for the completion, nobody would ever give the slot back.  Such a slot is kept
 * here, and takes one of the next frames under the same index, so that the program never notices.
 */
#ifndef NHCA_RCXT_FIFO_H
#define NHCA_RCXT_FIFO_H

#include "../queue/ring.h"

/**
 * struct nhca_fifo - a receive FIFO
 * @ring:   of struct nhca_frame; without a header if the channel has no FIFO
 * @prod:   frames that were begun; the truth of which hdr->prod is the copy
 * @unread: slots whose completion was lost: a bit each; owned
 * @count:  bits in @unread
 *
 * All but @ring: the caller's lock.
 */
struct nhca_fifo {
	struct nhca_ring ring;
	u32 prod;
	unsigned long *unread;
	u32 count;
};

/**
 * nhca_fifo_init - make a FIFO
 * @frames: slots, at least 1; rounded up to a power of two
 * @user:   who maps it, or NULL
 * Context: process, sleeps.  Return: as nhca_ring_alloc(); end with nhca_fifo_destroy() always.
 */
int nhca_fifo_init(struct nhca_fifo *fifo, u32 frames, struct nhca_ring_user *user);

/* A zeroed FIFO is fine.  Context: process, sleeps. */
void nhca_fifo_destroy(struct nhca_fifo *fifo);

/**
 * nhca_fifo_take - a slot for a frame
 * @index: free-running index of the frame, for its completion
 * Context: any; the lock of the FIFO.
 * Return: false: the FIFO is full, or the program's index is one that cannot be.
 */
bool nhca_fifo_take(struct nhca_fifo *fifo, u32 *index);

/**
 * nhca_fifo_untake - the completion of frame @index was lost
 * Context: any; the lock of the FIFO.
 */
void nhca_fifo_untake(struct nhca_fifo *fifo, u32 index);

#endif /* NHCA_RCXT_FIFO_H */
