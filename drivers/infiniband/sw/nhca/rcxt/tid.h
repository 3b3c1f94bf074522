/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Private to rcxt/ and its tests: what an rCxt does with a packet (reference: RDMA write, RDMA
 * read, tid rules).
 *
 *   tid lower     stale: dropped
 *   tid equal     goes on, if that packet has not come yet; after the end: dropped
 *   tid higher    a new transfer begins
 *
 * Ethernet duplicates, so that bytes cannot be counted: a transfer has a bit for each packet.
 * The bit is taken when an engine begins to copy, and the transfer is complete when all bits are
 * taken and nobody copies any more.  Then, once, nhca_rcxt_copied() says so.
 *
 * What is ours beyond the reference: an rCxt that its own channel uses, or that answers a read,
 * is not overrun by a peer's write (BUSY); payload of a read is taken for a read that was asked
 * for, and no other (UNASKED); packets of one tid must agree about the transfer (MISMATCH).
 *
 * No skb, no socket, no lock: the rCxt's lock belongs to the caller, who holds it around each
 * call and lets go of it to copy.  Bitmaps come from kmalloc(GFP_ATOMIC), 2 KiB at most, and all
 * of a pool's are bounded; the rCxt owns its own.
 */
#ifndef NHCA_RCXT_TID_H
#define NHCA_RCXT_TID_H

#include "pool.h"

/* bytes of bitmaps of a device: 32 thousand transfers of the largest kind at a time */
#define NHCA_RCXT_MAP_LIMIT	(64ul << 20)

/**
 * enum nhca_rcxt_verdict - what becomes of a packet
 * @NHCA_RCXT_TAKE:      yes.  Payload: copy it, then nhca_rcxt_copied().  Read request: answer
 *                       it, then nhca_rcxt_sent().  Notice: complete the work request.
 * @NHCA_RCXT_WAIT:      an engine still copies for the transfer before: look again, with the
 *                       lock laid down in between.  It copies a batch at most, in a live section.
 * @NHCA_RCXT_LATER:     a notice, and packets are still being made: nhca_rcxt_sent() says when
 * @NHCA_RCXT_STALE:     tid lower, or of a transfer that was cancelled
 * @NHCA_RCXT_DUPLICATE: this packet has come, or the transfer is complete
 * @NHCA_RCXT_DEAD:      the transfer has been refused by memory protection
 * @NHCA_RCXT_BUSY:      the rCxt is in use for something else
 * @NHCA_RCXT_UNASKED:   payload of a read, or a notice, that nobody waits for
 * @NHCA_RCXT_MISMATCH:  not of the transfer that the tid began: other kind, sizes or place
 * @NHCA_RCXT_NO_MAP:    no memory for the bitmap; nothing has changed, the packet may come again
 */
enum nhca_rcxt_verdict {
	NHCA_RCXT_TAKE = 0,
	NHCA_RCXT_WAIT,
	NHCA_RCXT_LATER,
	NHCA_RCXT_STALE,
	NHCA_RCXT_DUPLICATE,
	NHCA_RCXT_DEAD,
	NHCA_RCXT_BUSY,
	NHCA_RCXT_UNASKED,
	NHCA_RCXT_MISMATCH,
	NHCA_RCXT_NO_MAP,
};

/* ---- packets; @x has been through nhca_rxeth_fits(), @rc through nhca_rcxt_find() ---- */

/**
 * nhca_rcxt_payload - payload of a write or a read
 * @read: NHCA_RX_READ_DATA, else NHCA_RX_WRITE
 * TAKE: the packet's bit is taken and the copy counted: the caller copies and ends with
 * nhca_rcxt_copied(), whatever happens.
 * Context: any, rCxt's lock.
 */
enum nhca_rcxt_verdict nhca_rcxt_payload(struct nhca_rcxt_pool *pool, struct nhca_rcxt *rc,
					 const struct nhca_rxeth *x, bool read);

/**
 * nhca_rcxt_run - take the packets behind one that nhca_rcxt_payload() has just taken
 * @x: that one
 * @n: how many there are, of a whole segment each
 * Context: any, rCxt's lock, which has been held since.
 * Return: how many were taken, up to the first that has come before.  The same copy counts for
 * them.
 */
u32 nhca_rcxt_run(struct nhca_rcxt *rc, const struct nhca_rxeth *x, u32 n);

/**
 * nhca_rcxt_copied - what was taken at a time is in place, or was refused
 * @ok: false: memory protection refused them; this tid never completes
 * Context: any, rCxt's lock; the bytes are visible to whoever takes it next.
 * Return: true once a transfer: it is complete; tell whom @rc->notify names.
 */
bool nhca_rcxt_copied(struct nhca_rcxt_pool *pool, struct nhca_rcxt *rc, bool ok);

/**
 * nhca_rcxt_request - a peer's read request
 * TAKE: the rCxt is ANSWERING; the caller keeps what it needs of @x to send the payload, in
 * quanta, as long as nhca_rcxt_sends() says so, and then calls nhca_rcxt_sent().
 * Context: any, rCxt's lock.
 */
enum nhca_rcxt_verdict nhca_rcxt_request(struct nhca_rcxt *rc, const struct nhca_rxeth *x);

/**
 * nhca_rcxt_may_request - would nhca_rcxt_request() take a read request?
 * @rc: changes in nothing
 * @x:  the request
 * Context: any, rCxt's lock.
 * Return: as nhca_rcxt_request().
 */
enum nhca_rcxt_verdict nhca_rcxt_may_request(const struct nhca_rcxt *rc,
					     const struct nhca_rxeth *x);

/**
 * nhca_rcxt_challenge - the peer wants a read request once more
 * @rc: changes in nothing
 * @x:  the challenge; it has the place in this host's memory that the request named, so that
 *      nobody learns the place by sending a challenge
 * Context: any, rCxt's lock.
 * Return: TAKE: that read is under way: send the request.
 */
enum nhca_rcxt_verdict nhca_rcxt_challenge(const struct nhca_rcxt *rc, const struct nhca_rxeth *x);

/**
 * nhca_rcxt_notice - the peer has all bytes in place
 * Context: any, rCxt's lock.
 * Return: TAKE once a transfer: the answer to a read is complete, a write when no packet refers to
 * its pages any more: until nhca_rcxt_released() it is RELEASING.  LATER instead, if packets are
 * still being made of the transfer.
 */
enum nhca_rcxt_verdict nhca_rcxt_notice(struct nhca_rcxt *rc, const struct nhca_rxeth *x);

/**
 * nhca_rcxt_status - the answer to a probe
 * @x:    the probe; @x->offset is where it wants to know from
 * @map:  filled with a bit for each packet from there on that is in place or being copied; bit 0
 *        of byte 0 first
 * @room: bytes at @map
 * @len:  bytes of @map in use
 * @have: packets of the transfer that have come
 * Context: any, rCxt's lock.  Return: enum nhca_rx_status.
 */
enum nhca_rx_status nhca_rcxt_status(struct nhca_rcxt *rc, const struct nhca_rxeth *x,
				     u8 *map, u32 room, u32 *len, u32 *have);

/**
 * nhca_rcxt_fence - a peer cancels a transfer of this rCxt
 * @x:      the fence; its tid bars that one and all lower ones
 * @status: set with TAKE: NHCA_RX_ST_DONE: the transfer of this tid was complete before;
 *          NHCA_RX_ST_FENCED: no byte of a transfer of this tid or a lower one lands any more
 * @have:   packets of the transfer that have come, with NHCA_RX_ST_DONE; else 0
 *
 * As a write of that tid would, a fence overruns whatever a peer began, and nothing that the rCxt's
 * own channel writes or reads.  It never waits: while an engine copies, the transfer is already
 * cancelled, but nothing may be promised, so that the peer has to fence again.
 * Context: any, rCxt's lock.
 * Return: TAKE: answer; STALE: tid lower, or 0; WAIT: cancelled, but a copy is under way;
 * BUSY: the rCxt's own channel uses it.
 */
enum nhca_rcxt_verdict nhca_rcxt_fence(struct nhca_rcxt_pool *pool, struct nhca_rcxt *rc,
				       const struct nhca_rxeth *x, enum nhca_rx_status *status,
				       u32 *have);

/* ---- work requests of the rCxt's own channel ---- */

/**
 * nhca_rcxt_begin_write - the channel begins to write
 * @tid:    higher than any before
 * @notify: with NHCA_RX_NOTIFY_INITIATOR a notice will come
 * Context: any, rCxt's lock.
 * Return: 0: the caller sends, then nhca_rcxt_sent().  -EINVAL: sizes, or tid not higher; -EBUSY:
 * it is being sent from, or RELEASING; -EAGAIN: as WAIT.
 */
int nhca_rcxt_begin_write(struct nhca_rcxt_pool *pool, struct nhca_rcxt *rc, u32 tid, u32 total,
			  u32 segment, u8 notify, u64 cookie);

/**
 * nhca_rcxt_begin_again - the channel sends some packets of a write once more: those that a
 * status says are missing.  The tid is the same; the peer's bitmap sees to it that each
 * packet lands once.
 * Context: any, rCxt's lock.
 * Return: 0: as nhca_rcxt_begin_write().  -EALREADY: it has completed meanwhile; -EBUSY: it is
 * being sent from, or RELEASING; -EINVAL: not this tid, not these sizes, or nothing that waits for
 * a notice.
 */
int nhca_rcxt_begin_again(struct nhca_rcxt *rc, u32 tid, u32 total, u32 segment);

/**
 * nhca_rcxt_begin_read - the channel begins to read
 * @pvo: where the bytes go
 * Context: any, rCxt's lock.
 * Return: 0: the caller sends the request; -ENOMEM; else as nhca_rcxt_begin_write().
 */
int nhca_rcxt_begin_read(struct nhca_rcxt_pool *pool, struct nhca_rcxt *rc, u32 tid, u32 total,
			 u32 segment, u8 notify, u64 pvo, u64 cookie);

/* Are packets of this tid (still) to be sent?  Asked before each quantum; rCxt's lock. */
static inline bool nhca_rcxt_sends(const struct nhca_rcxt *rc, u32 tid)
{
	return rc->tid == tid && (rc->state == NHCA_RCXT_SENDING ||
				  rc->state == NHCA_RCXT_ANSWERING);
}

/**
 * nhca_rcxt_sent - the last packet has left; fine if the transfer was cancelled meanwhile
 * Context: any, rCxt's lock.
 * Return: true: the notice has come before: as nhca_rcxt_notice() with TAKE.
 */
bool nhca_rcxt_sent(struct nhca_rcxt *rc, u32 tid);

/* A write that is RELEASING is complete; rCxt's lock. */
static inline void nhca_rcxt_released(struct nhca_rcxt *rc)
{
	rc->state = NHCA_RCXT_DONE;
	rc->wrote = false;
}

/**
 * nhca_rcxt_cancel - forget the transfer, and refuse what comes of it and of any before
 * @tid: not lower than the latest; a higher one bars the tids up to it
 * Once nhca_rcxt_quiet() says so no byte of it lands any more, and no completion comes.
 * Context: any, rCxt's lock.
 * Return: 0; -EINVAL: tid lower; -EALREADY: it is complete; -EBUSY: it is RELEASING.
 */
int nhca_rcxt_cancel(struct nhca_rcxt_pool *pool, struct nhca_rcxt *rc, u32 tid);

/* Does no engine copy for it?  rCxt's lock. */
static inline bool nhca_rcxt_quiet(const struct nhca_rcxt *rc)
{
	return !rc->copies;
}

/**
 * nhca_rcxt_end - the transfer is over: free its bitmap and change its state
 * For tid.c and pool.c.
 */
void nhca_rcxt_end(struct nhca_rcxt_pool *pool, struct nhca_rcxt *rc, enum nhca_rcxt_state state);

#endif /* NHCA_RCXT_TID_H */
