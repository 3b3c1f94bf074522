/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Private to rcxt/ and its tests: the tid rules, by which an rCxt accepts or refuses packets
 * (reference US 8,023,417: RDMA write, RDMA read, tid rules).
 *
 *   tid of the packet
 *   is lower            the packet is stale, and is dropped
 *   is equal            the packet is accepted, unless it was received before or the transfer has
 *                       ended
 *   is higher           a new transfer begins
 *
 * Lower, equal and higher are relative to the tid of the rCxt (nhca_rcxt.tid).
 *
 * Ethernet may duplicate packets, so a count of bytes would not show when a transfer is complete.
 * Therefore an rCxt that receives payload has a bit for each packet.  An engine sets the bit before
 * it copies the payload.  The transfer is complete when all bits are set and no CPU copies; then
 * exactly one call of nhca_rcxt_copied() returns true.
 *
 * nhca adds rules to those of the reference; the name in parentheses is the verdict on a packet
 * that breaks the rule.  A peer's write ends no transfer in progress that the rCxt's own channel
 * began, and no read or third-party request whose payload the rCxt sends (BUSY).  Payload of a read
 * begins no transfer (UNSOLICITED).  All packets of a tid must have the same sizes, the same place
 * (the PVO of the transfer's first byte), and, in an accumulate, the same operation and type
 * (MISMATCH).
 *
 * The functions use no skb, no socket and no lock.  The caller holds the rCxt's lock during each
 * call, and releases the lock to copy payload.  A bitmap that does not fit into the rCxt has at
 * most 2 KiB and is allocated with GFP_ATOMIC; all bitmaps of a pool together have at most
 * NHCA_RCXT_MAP_LIMIT bytes.
 */
#ifndef NHCA_RCXT_TID_H
#define NHCA_RCXT_TID_H

#include "pool.h"

/* maximum bytes of all bitmaps of a device: 32768 transfers of NHCA_RCXT_MAX_PACKETS packets */
#define NHCA_RCXT_MAP_LIMIT	(64ul << 20)

/**
 * enum nhca_rcxt_verdict - result of the tid rules for a packet
 * @NHCA_RCXT_ACCEPT:    the packet is accepted.  What the caller has to do: payload: copy it, then
 *                       call nhca_rcxt_copied(); read request: send the payload, then call
 *                       nhca_rcxt_sent(); notice: complete the transfer; challenge: send the
 *                       request again; fence: send a status; third-party request: as a read request
 * @NHCA_RCXT_WAIT:      payload: another CPU still copies payload of the earlier transfer (at most
 *                       one batch), so the new transfer cannot begin; the caller must release the
 *                       lock and try again, or drop the packet.  Fence: see nhca_rcxt_fence()
 * @NHCA_RCXT_LATER:     notice: accepted, but packets of the transfer are still being sent;
 *                       nhca_rcxt_sent() will return true
 * @NHCA_RCXT_STALE:     the tid is too low, or the transfer with this tid was canceled, or was sent
 *                       and gets no notice
 * @NHCA_RCXT_DUPLICATE: the packet was received before, or the transfer is complete
 * @NHCA_RCXT_DEAD:      memory protection has refused an earlier packet of the transfer
 * @NHCA_RCXT_BUSY:      the rCxt is in use for a transfer that this packet may not end, a work
 *                       request waits for the rCxt, a CPU copies payload for the rCxt (request), or
 *                       the rCxt executes NHCA_RCXT_PARTS requests already
 * @NHCA_RCXT_UNSOLICITED: payload of a read, notice or challenge that the rCxt does not wait for
 * @NHCA_RCXT_MISMATCH:  kind, sizes, place or another constant field differs from that of the
 *                       transfer with this tid
 * @NHCA_RCXT_NO_MAP:    there is no memory for the bitmap, or a limit for bitmaps would be
 *                       exceeded; the rCxt is unchanged, so that a retransmission may succeed
 */
enum nhca_rcxt_verdict {
	NHCA_RCXT_ACCEPT = 0,
	NHCA_RCXT_WAIT,
	NHCA_RCXT_LATER,
	NHCA_RCXT_STALE,
	NHCA_RCXT_DUPLICATE,
	NHCA_RCXT_DEAD,
	NHCA_RCXT_BUSY,
	NHCA_RCXT_UNSOLICITED,
	NHCA_RCXT_MISMATCH,
	NHCA_RCXT_NO_MAP,
};

/* ---- packets: nhca_rxeth_fits() has accepted @x, and @rc is from nhca_rcxt_find() ---- */

/**
 * nhca_rcxt_payload - apply the tid rules to payload of a write or a read
 * @pool: the pool of @rc
 * @rc:   the rCxt that the packet names
 * @x:    RXETH of the packet
 * @read: true: NHCA_RX_READ_DATA or NHCA_RX_FRAMES_DATA; false: NHCA_RX_WRITE, NHCA_RX_THIRD_WRITE,
 *        NHCA_RX_ACCUMULATE or NHCA_RX_HALF_WRITE
 * Context: any, rCxt's lock.
 * Return: enum nhca_rcxt_verdict.  ACCEPT: the packet's bit is set and the copy is counted, so the
 * caller must call nhca_rcxt_copied(), even if the copy fails.  If the program will not get the
 * frame of the packet, the caller calls nhca_rcxt_not_framed() instead.
 */
enum nhca_rcxt_verdict nhca_rcxt_payload(struct nhca_rcxt_pool *pool, struct nhca_rcxt *rc,
					 const struct nhca_rxeth *x, bool read);

/**
 * nhca_rcxt_run - accept packets that follow a packet that nhca_rcxt_payload() has accepted
 * @rc: the rCxt
 * @x:  RXETH of the packet that was accepted
 * @n:  number of packets that follow this packet in the transfer, each with a whole segment
 * Context: any, rCxt's lock, held since the call of nhca_rcxt_payload().
 * Return: number of packets accepted, at most @n.  The first packet that was received earlier, and
 * the packets after it, are not accepted.  The copy that nhca_rcxt_payload() has counted includes
 * the accepted packets.
 */
u32 nhca_rcxt_run(struct nhca_rcxt *rc, const struct nhca_rxeth *x, u32 n);

/**
 * nhca_rcxt_copied - end a copy that nhca_rcxt_payload() has counted
 * @pool: the pool of @rc
 * @rc:   the rCxt
 * @ok:   false: memory protection refused the payload; the transfer never completes
 * Context: any, rCxt's lock; the unlock makes the copied bytes visible to the next CPU that takes
 * the lock.
 * Return: true if the transfer is now complete, which happens at most once for each transfer.  The
 * caller then notifies the sides that @rc->notify names.
 */
bool nhca_rcxt_copied(struct nhca_rcxt_pool *pool, struct nhca_rcxt *rc, bool ok);

/**
 * nhca_rcxt_not_framed - end a copy to a frame that the program will not get
 * @rc: the rCxt
 * @x:  RXETH of the packet, which nhca_rcxt_payload() has accepted
 *
 * The FIFO was full, or the completion of the frame was lost.  The packet counts as not received,
 * so that its next repetition is accepted and may get a frame.
 * Context: any, rCxt's lock.
 */
void nhca_rcxt_not_framed(struct nhca_rcxt *rc, const struct nhca_rxeth *x);

/**
 * nhca_rcxt_request - apply the tid rules to a read request of a peer
 * @rc: the rCxt that the request names
 * @x:  RXETH of the request
 * Context: any, rCxt's lock.
 * Return: enum nhca_rcxt_verdict.  ACCEPT: the rCxt is ANSWERING.  The caller sends the payload as
 * long as nhca_rcxt_sends() is true, and then calls nhca_rcxt_sent().
 */
enum nhca_rcxt_verdict nhca_rcxt_request(struct nhca_rcxt *rc, const struct nhca_rxeth *x);

/**
 * nhca_rcxt_frames_request - apply the tid rules to a half-receive read request of a peer
 * @rc: the rCxt that the request names
 * @x:  RXETH of the request
 *
 * The rCxt accepts each request at most once, as nhca_rcxt_third_request() does, and executes up to
 * NHCA_RCXT_PARTS requests of one read at a time.
 * Context: any, rCxt's lock.
 * Return: enum nhca_rcxt_verdict.  ACCEPT: the rCxt is ANSWERING.  The caller sends the payload as
 * long as nhca_rcxt_sends() is true, and then calls nhca_rcxt_sent(), once for each request.
 */
enum nhca_rcxt_verdict nhca_rcxt_frames_request(struct nhca_rcxt *rc, const struct nhca_rxeth *x);

/**
 * nhca_rcxt_frames_may - check whether nhca_rcxt_frames_request() would accept a request
 * @rc: the rCxt that the request names
 * @x:  RXETH of the request
 * Context: any, rCxt's lock.
 * Return: the verdict that nhca_rcxt_frames_request() would return.
 */
enum nhca_rcxt_verdict nhca_rcxt_frames_may(const struct nhca_rcxt *rc, const struct nhca_rxeth *x);

/**
 * nhca_rcxt_frames_challenge - check the challenge of a half-receive read request
 * @rc: the rCxt that sent the request; unchanged
 * @x:  RXETH of the challenge
 *
 * The challenge must have the number of the latest request, so that a replayed challenge of an
 * earlier request has no effect.
 * Context: any, rCxt's lock.
 * Return: enum nhca_rcxt_verdict.  ACCEPT: the read is in progress: send the request again.
 */
enum nhca_rcxt_verdict nhca_rcxt_frames_challenge(const struct nhca_rcxt *rc,
						  const struct nhca_rxeth *x);

/**
 * nhca_rcxt_ask - apply the tid rules to a request that the program answers (half-send read)
 * @rc: the rCxt that the request names
 * @x:  RXETH of the request
 * Context: any, rCxt's lock.
 * Return: the verdict of nhca_rcxt_may_request().  ACCEPT: the rCxt is ANSWERED.  The caller gives
 * the request to the program, or calls nhca_rcxt_not_asked().
 */
enum nhca_rcxt_verdict nhca_rcxt_ask(struct nhca_rcxt *rc, const struct nhca_rxeth *x);

/**
 * nhca_rcxt_not_asked - forget a request that the program will not get
 * @rc: the rCxt
 * @x:  RXETH of the request, which nhca_rcxt_ask() has accepted
 *
 * The FIFO was full, or the completion of the frame was lost.  The request counts as not received,
 * so that its next repetition is accepted and may get a frame.
 * Context: any, rCxt's lock.
 */
void nhca_rcxt_not_asked(struct nhca_rcxt *rc, const struct nhca_rxeth *x);

/**
 * nhca_rcxt_may_request - check whether nhca_rcxt_request() would accept a read request
 * @rc: the rCxt that the request names
 * @x:  RXETH of the request
 * Context: any, rCxt's lock.
 * Return: the verdict that nhca_rcxt_request() would return.
 */
enum nhca_rcxt_verdict nhca_rcxt_may_request(const struct nhca_rcxt *rc,
					     const struct nhca_rxeth *x);

/**
 * nhca_rcxt_challenge - check the challenge of a read request
 * @rc: the rCxt that sent the request; unchanged
 * @x:  RXETH of the challenge
 *
 * @x->reply_pvo must be the destination of the read in progress.  The request that the caller sends
 * again contains this PVO.  So the request discloses the PVO only to a host that knows it already.
 * Context: any, rCxt's lock.
 * Return: enum nhca_rcxt_verdict.  ACCEPT: the read is in progress: send the request again.
 */
enum nhca_rcxt_verdict nhca_rcxt_challenge(const struct nhca_rcxt *rc, const struct nhca_rxeth *x);

/**
 * nhca_rcxt_notice - apply the tid rules to a notice, which says that the peer has placed all bytes
 * @rc: the rCxt that the notice names: that of the side that sends the payload, or of the manager
 * @x:  RXETH of the notice
 * Context: any, rCxt's lock.
 * Return: enum nhca_rcxt_verdict.  ACCEPT, at most once for each transfer: a peer's read or a
 * third-party transfer is complete; or a write is RELEASING, and the caller calls
 * nhca_rcxt_released() when no packet refers to the pages of the write.  LATER: the notice is
 * recorded, and nhca_rcxt_sent() will return true.
 */
enum nhca_rcxt_verdict nhca_rcxt_notice(struct nhca_rcxt *rc, const struct nhca_rxeth *x);

/**
 * nhca_rcxt_status - compute the answer to a probe
 * @rc:   the rCxt that the probe names
 * @x:    RXETH of the probe
 * @map:  bitmap, filled in: bit i % 8 of byte i / 8 is set if the i-th packet from @x->offset on
 *        (i = 0 for the packet at this offset) is placed or being copied
 * @room: number of bytes that fit into @map
 * @len:  set to the number of bytes of @map that are used; 0 unless the status is
 *        NHCA_RX_ST_PARTIAL
 * @have: set to the number of packets that have arrived, if the status is NHCA_RX_ST_DONE or
 *        NHCA_RX_ST_PARTIAL; otherwise to 0
 * Context: any, rCxt's lock.
 * Return: enum nhca_rx_status.
 */
enum nhca_rx_status nhca_rcxt_status(struct nhca_rcxt *rc, const struct nhca_rxeth *x,
				     u8 *map, u32 room, u32 *len, u32 *have);

/**
 * nhca_rcxt_fence - apply the tid rules to a fence, by which a peer cancels a transfer
 * @pool:   the pool of @rc
 * @rc:     the rCxt that the fence names
 * @x:      RXETH of the fence; after ACCEPT and WAIT, the rCxt drops payload of @x->tid and of
 *          lower tids
 * @status: set with ACCEPT and WAIT: NHCA_RX_ST_DONE: the transfer of this tid is complete;
 *          NHCA_RX_ST_FENCED: the transfers of this tid and of lower ones are canceled
 * @have:   set to the number of packets of the transfer if @status is NHCA_RX_ST_DONE; otherwise
 *          to 0
 *
 * A fence ends only transfers that a peer began, not those that the rCxt's own channel began.
 * The function does not wait for a copy.  After WAIT, the transfer is canceled but bytes may still
 * be placed; the caller sends no status, and the peer has to send the fence again.
 * Context: any, rCxt's lock.
 * Return: ACCEPT: send a status; STALE: the tid is 0, or lower than that of the latest transfer;
 * WAIT: the transfer is canceled, but a CPU still copies its payload, or makes packets of a
 * third-party transfer; BUSY: a transfer that the rCxt's own channel began is in progress.
 */
enum nhca_rcxt_verdict nhca_rcxt_fence(struct nhca_rcxt_pool *pool, struct nhca_rcxt *rc,
				       const struct nhca_rxeth *x, enum nhca_rx_status *status,
				       u32 *have);

/**
 * nhca_rcxt_third_request - apply the tid rules to a third-party request of a manager
 * @rc: the rCxt that the request names: that of the source
 * @x:  RXETH of the request
 *
 * The rCxt accepts each request at most once.  A repeated request needs a higher number than the
 * latest request that the rCxt has accepted.  Up to NHCA_RCXT_PARTS requests of one transfer are
 * executed at a time.
 * Context: any, rCxt's lock.
 * Return: enum nhca_rcxt_verdict.  ACCEPT: the rCxt is FORWARDING.  The caller sends the payload as
 * long as nhca_rcxt_sends() is true, and then calls nhca_rcxt_sent(), once for each request.
 */
enum nhca_rcxt_verdict nhca_rcxt_third_request(struct nhca_rcxt *rc, const struct nhca_rxeth *x);

/**
 * nhca_rcxt_third_may - check whether nhca_rcxt_third_request() would accept a request
 * @rc: the rCxt that the request names
 * @x:  RXETH of the request
 * Context: any, rCxt's lock.
 * Return: the verdict that nhca_rcxt_third_request() would return.
 */
enum nhca_rcxt_verdict nhca_rcxt_third_may(const struct nhca_rcxt *rc, const struct nhca_rxeth *x);

/**
 * nhca_rcxt_third_challenge - check the challenge of a third-party request
 * @rc:     the manager's rCxt, which sent the request; unchanged
 * @x:      RXETH of the challenge
 * @digest: nhca_third_digest() of the challenge
 *
 * The number, the sizes and both halves of @digest must be those of the latest request, so all
 * fields but the token are equal.  Otherwise a peer could make the manager send requests that no
 * program has posted.
 * Context: any, rCxt's lock.
 * Return: enum nhca_rcxt_verdict.  ACCEPT: send the request again.
 */
enum nhca_rcxt_verdict nhca_rcxt_third_challenge(const struct nhca_rcxt *rc,
						 const struct nhca_rxeth *x, u64 digest);

/* ---- work requests of the rCxt's own channel ---- */

/**
 * nhca_rcxt_begin_write - begin a write
 * @pool:    the pool of @rc
 * @rc:      the rCxt
 * @tid:     tid of the write; must be higher than that of all earlier transfers
 * @total:   bytes of the write
 * @segment: payload bytes of each packet but the last
 * @notify:  NHCA_RX_NOTIFY_*; with NHCA_RX_NOTIFY_INITIATOR the peer will send a notice
 * @cookie:  wr_id of the work request
 * Context: any, rCxt's lock.
 * Return: 0: the caller sends the packets, then calls nhca_rcxt_sent(); -EINVAL: the sizes are
 * impossible, or the tid is not higher; -EBUSY: the rCxt is SENDING, RELEASING, ANSWERING or
 * FORWARDING; -EAGAIN: another CPU still copies for an earlier transfer; the caller calls
 * nhca_rcxt_want() and tries again when the copies have ended.
 */
int nhca_rcxt_begin_write(struct nhca_rcxt_pool *pool, struct nhca_rcxt *rc, u32 tid, u32 total,
			  u32 segment, u8 notify, u64 cookie);

/**
 * nhca_rcxt_begin_part - begin to send one packet of a half-send write
 * @pool:    the pool of @rc
 * @rc:      the rCxt
 * @tid:     tid of the write.  The packet begins the write if this tid is higher than that of @rc
 * @total:   bytes of the write
 * @segment: payload bytes of each packet but the last
 * @notify:  NHCA_RX_NOTIFY_*, with NHCA_RX_NOTIFY_INITIATOR
 * @cookie:  wr_id of the work request; @rc stores it if the packet begins the write
 * @zcopy:   nhca_zcopy_seq(): no zero-copy reference of an earlier write on the rCxt has a higher
 *           number
 *
 * The packet has a copy of its payload.  Other packets of the same write may be retransmitted from
 * job memory (nhca_rcxt_begin_again()).
 * Context: any, rCxt's lock.
 * Return: 0: the caller sends the packet; the rCxt is WAITING for the notice, or SENDING;
 * -EALREADY: the notice has arrived, so the peer has all bytes; -EINVAL: as
 * nhca_rcxt_begin_write(), or the sizes differ from those of the write, or the write with this tid
 * was canceled, or the rCxt has another transfer with this tid; other errors as
 * nhca_rcxt_begin_write().
 */
int nhca_rcxt_begin_part(struct nhca_rcxt_pool *pool, struct nhca_rcxt *rc, u32 tid, u32 total,
			 u32 segment, u8 notify, u64 cookie, u32 zcopy);

/**
 * nhca_rcxt_begin_answer - begin to send one packet that answers a half-send read
 * @rc: the rCxt, which has accepted the request (nhca_rcxt_ask())
 * @x:  RXETH of the packet: tid, total and segment are those of the request; its notify is filled
 *      in
 *
 * The packet has a copy of its payload.  The program may send each packet any number of times,
 * because the reader places it only once.
 * Context: any, rCxt's lock.
 * Return: 0: the caller sends the packet; -EALREADY: the reader has all bytes; -EINVAL: the rCxt
 * has another transfer, the sizes differ, or the read was canceled, also by a fence of the reader.
 */
int nhca_rcxt_begin_answer(const struct nhca_rcxt *rc, struct nhca_rxeth *x);

/**
 * nhca_rcxt_begin_again - begin to retransmit packets of a write that waits for its notice
 * @rc:      the rCxt
 * @tid:     tid of the write; the peer places each packet only once, because of its bitmap
 * @total:   bytes of the write, as before
 * @segment: payload bytes of each packet but the last, as before
 * Context: any, rCxt's lock.
 * Return: 0: the caller sends the packets, then calls nhca_rcxt_sent(); -EALREADY: the transfer is
 * complete; -EBUSY: the rCxt is SENDING or RELEASING; -EINVAL: the tid or the sizes differ from
 * those of the rCxt, or the rCxt has no write that waits for a notice.
 */
int nhca_rcxt_begin_again(struct nhca_rcxt *rc, u32 tid, u32 total, u32 segment);

/**
 * nhca_rcxt_begin_read - begin a read
 * @pool:    the pool of @rc
 * @rc:      the rCxt
 * @tid:     tid of the read; must be higher than that of all earlier transfers
 * @total:   bytes of the read
 * @segment: payload bytes of each packet but the last
 * @notify:  NHCA_RX_NOTIFY_*
 * @pvo:     destination of the first byte
 * @cookie:  wr_id of the work request
 * Context: any, rCxt's lock.
 * Return: 0: the caller sends the request; -ENOMEM: there is no memory for the bitmap, or a limit
 * for bitmaps would be exceeded; other errors as nhca_rcxt_begin_write().
 */
int nhca_rcxt_begin_read(struct nhca_rcxt_pool *pool, struct nhca_rcxt *rc, u32 tid, u32 total,
			 u32 segment, u8 notify, u64 pvo, u64 cookie);

/**
 * nhca_rcxt_begin_ask - begin a half-send read, which the program of the peer answers
 * @pool:    the pool of @rc
 * @rc:      the rCxt
 * @tid:     tid of the read; must be higher than that of all earlier transfers
 * @total:   bytes of the read
 * @segment: payload bytes of each packet but the last
 * @notify:  NHCA_RX_NOTIFY_*
 * @pvo:     destination of the first byte
 * @cookie:  wr_id of the work request
 *
 * The rCxt accepts no challenge, because the peer's adapter does not answer the request.
 * Context: any, rCxt's lock.
 * Return: as nhca_rcxt_begin_read().
 */
int nhca_rcxt_begin_ask(struct nhca_rcxt_pool *pool, struct nhca_rcxt *rc, u32 tid, u32 total,
			u32 segment, u8 notify, u64 pvo, u64 cookie);

/**
 * nhca_rcxt_ask_again - begin to repeat the request of a half-send read
 * @rc:      the rCxt
 * @tid:     tid of the read
 * @total:   bytes of the read, as before
 * @segment: payload bytes of each packet but the last, as before
 * @pvo:     destination of the first byte, as before
 * Context: any, rCxt's lock.
 * Return: 0: the caller sends the request; -EALREADY: the read is complete; -EINVAL: the rCxt has
 * no half-send read with this tid, these sizes and this PVO in progress.
 */
int nhca_rcxt_ask_again(const struct nhca_rcxt *rc, u32 tid, u32 total, u32 segment, u64 pvo);

/**
 * nhca_rcxt_begin_frames - begin a half-receive read, whose payload goes into frames
 * @pool:   the pool of @rc
 * @rc:     the rCxt
 * @x:      RXETH of the request: tid, total, segment, notify and number
 * @cookie: wr_id of the work request
 * Context: any, rCxt's lock.
 * Return: as nhca_rcxt_begin_read().
 */
int nhca_rcxt_begin_frames(struct nhca_rcxt_pool *pool, struct nhca_rcxt *rc,
			   const struct nhca_rxeth *x, u64 cookie);

/**
 * nhca_rcxt_frames_again - request a part of a half-receive read again
 * @rc: the rCxt
 * @x:  RXETH of the request; its number is set to that of the previous request plus 1
 * Context: any, rCxt's lock.
 * Return: 0: the caller sends the request; -EALREADY: the read is complete; -EINVAL: the rCxt has
 * no half-receive read with this tid and these sizes in progress, or no request number is left.
 */
int nhca_rcxt_frames_again(struct nhca_rcxt *rc, struct nhca_rxeth *x);

/**
 * nhca_rcxt_begin_move - begin a third-party transfer as its manager
 * @pool:    the pool of @rc
 * @rc:      the rCxt
 * @x:       RXETH of the request; its number is set to 0
 * @digest:  nhca_third_digest() of the request
 * @cookie:  wr_id of the work request
 * Context: any, rCxt's lock.
 * Return: 0: the caller sends the request; errors as nhca_rcxt_begin_write().
 */
int nhca_rcxt_begin_move(struct nhca_rcxt_pool *pool, struct nhca_rcxt *rc, struct nhca_rxeth *x,
			 u64 digest, u64 cookie);

/**
 * nhca_rcxt_move_again - request a part of a third-party transfer again
 * @rc:     the rCxt
 * @x:      RXETH of the request; its number is set to that of the previous request plus 1
 * @digest: nhca_third_digest() of the request; its upper half is as before
 * Context: any, rCxt's lock.
 * Return: 0: the caller sends the request; -EALREADY: the transfer is complete; -EINVAL: the rCxt
 * manages no transfer with this tid, these sizes and this digest, or no request number is left.
 */
int nhca_rcxt_move_again(struct nhca_rcxt *rc, struct nhca_rxeth *x, u64 digest);

/**
 * nhca_rcxt_sends - check whether packets of a transfer are still to be sent
 * @rc:  the rCxt
 * @tid: tid of the transfer
 *
 * The send engine calls the function at least once for each NHCA_CH_STRETCH packets, so it makes
 * at most this number of packets after a transfer was canceled.
 * Context: any, rCxt's lock.
 * Return: false if all packets were sent, or the transfer was canceled or replaced.
 */
static inline bool nhca_rcxt_sends(const struct nhca_rcxt *rc, u32 tid)
{
	return rc->tid == tid && (rc->state == NHCA_RCXT_SENDING ||
				  rc->state == NHCA_RCXT_ANSWERING ||
				  rc->state == NHCA_RCXT_FORWARDING);
}

/**
 * nhca_rcxt_sent - record that a transfer, or one request of it, has no packets to send any more
 * @rc:  the rCxt
 * @tid: tid of the transfer; if the transfer was canceled or replaced, the rCxt does not change
 * Context: any, rCxt's lock.
 * Return: true if the notice has already arrived: the transfer is then in the state that
 * nhca_rcxt_notice() sets with ACCEPT.
 */
bool nhca_rcxt_sent(struct nhca_rcxt *rc, u32 tid);

/**
 * nhca_rcxt_released - complete a write, because no packet refers to its pages any more
 * @rc: the rCxt, RELEASING
 * Context: any, rCxt's lock.
 */
static inline void nhca_rcxt_released(struct nhca_rcxt *rc)
{
	rc->state = NHCA_RCXT_DONE;
	rc->wrote = false;
}

/**
 * nhca_rcxt_cancel - cancel the latest transfer, and refuse further packets of tids up to @tid
 * @pool: the pool of @rc
 * @rc:   the rCxt
 * @tid:  must be at least the tid of the latest transfer
 *
 * The transfer gets no completion.  As soon as nhca_rcxt_no_copies() returns true, no further byte
 * of the transfer is placed.
 * Context: any, rCxt's lock.
 * Return: 0; -EINVAL: @tid is lower than that of the latest transfer; -EALREADY: the transfer with
 * this tid is complete; -EBUSY: the rCxt is RELEASING.
 */
int nhca_rcxt_cancel(struct nhca_rcxt_pool *pool, struct nhca_rcxt *rc, u32 tid);

/**
 * nhca_rcxt_no_copies - check that no CPU copies payload for an rCxt
 * @rc: the rCxt
 * Context: any, rCxt's lock.
 * Return: true if no CPU copies.
 */
static inline bool nhca_rcxt_no_copies(const struct nhca_rcxt *rc)
{
	return !rc->copies;
}

/**
 * nhca_rcxt_in_order - check whether an ordered accumulate of the channel is in progress
 * @rc:  the rCxt
 * @tid: tid of the accumulate
 * Context: any, rCxt's lock.
 * Return: true if the accumulate is in progress; false: a notice or status of the peer has said
 * that the accumulate is complete, or the accumulate was canceled or replaced.
 */
static inline bool nhca_rcxt_in_order(const struct nhca_rcxt *rc, u32 tid)
{
	return rc->tid == tid && rc->ordered && !rc->noticed &&
	       (rc->state == NHCA_RCXT_SENDING || rc->state == NHCA_RCXT_WAITING);
}

/**
 * nhca_rcxt_set_ordered - record that the write that has begun is an ordered accumulate
 * @rc:     the rCxt; nhca_rcxt_begin_write() has returned 0
 * @target: rCxt of the peer, which sends the notice and statuses
 * Context: the channel's turn, rCxt's lock.
 */
static inline void nhca_rcxt_set_ordered(struct nhca_rcxt *rc, const struct nhca_rcxt_id *target)
{
	rc->ordered = true;
	rc->target = *target;
}

static inline bool nhca_rcxt_sizes_agree(const struct nhca_rcxt *rc, u32 total, u32 segment)
{
	return rc->total == total && rc->segment == segment;
}

/**
 * nhca_rcxt_status_in_order - check whether a status ends the wait for an ordered accumulate
 * @rc: the rCxt that the status names
 * @x:  RXETH of the status
 *
 * Another member of the job may know this rCxt, but not the key of the rCxt that the accumulate has
 * named.
 * Context: any, rCxt's lock.
 * Return: true if the status says that the ordered accumulate in progress is complete, has its
 * sizes or answers a fence, and is from the rCxt that the accumulate has named.
 */
static inline bool nhca_rcxt_status_in_order(const struct nhca_rcxt *rc, const struct nhca_rxeth *x)
{
	/* a fence, and the status that answers it, do not have the sizes of the transfer */
	bool fence = !x->total && x->segment == NHCA_RCXT_MIN_SEGMENT;

	return x->status == NHCA_RX_ST_DONE && nhca_rcxt_in_order(rc, x->tid) &&
	       (fence || nhca_rcxt_sizes_agree(rc, x->total, x->segment)) &&
	       nhca_rcxt_id_equal(&rc->target, &x->src_rcxt);
}

/**
 * nhca_rcxt_await - let a work request of the channel wait until no CPU copies payload for an rCxt
 * @rc: the rCxt.  If a CPU copies, @rc->awaited is set until nhca_rcxt_awaited() returns true
 *
 * The send engine must not spin until the copies end, because with PREEMPT_RT it may have preempted
 * the task that copies.
 * Context: the channel's turn, rCxt's lock.
 */
static inline void nhca_rcxt_await(struct nhca_rcxt *rc)
{
	rc->awaited = !nhca_rcxt_no_copies(rc);
}

/**
 * nhca_rcxt_want - let a work request of the channel wait until it can begin a transfer
 * @rc:  the rCxt
 * @err: result of the function that begins the transfer, or repeats a part of it
 *
 * The wait (-EBUSY, -EAGAIN) must have an end, whatever peers do.  So the rCxt accepts no further
 * request, and no payload that would begin a transfer, until the work request has begun or failed.
 * The transfer that the rCxt has accepted before continues: one read, up to NHCA_RCXT_PARTS
 * requests of a transfer, or one write.  But payload of a half-receive write or read is dropped,
 * because the number of its copies has no limit: a packet that gets no frame may be copied again.
 * Meanwhile, work requests for other rCxts pass the work request that waits, and pass cancels that
 * wait behind this work request (nhca_channel.waiting).
 * Context: the channel's turn, rCxt's lock.
 */
static inline void nhca_rcxt_want(struct nhca_rcxt *rc, int err)
{
	rc->wanted = err == -EBUSY || err == -EAGAIN;
	if (err == -EAGAIN)
		nhca_rcxt_await(rc);
}

/**
 * nhca_rcxt_awaited - check whether the channel of an rCxt has to be kicked
 * @rc: the rCxt, after nhca_rcxt_copied()
 * Context: any, rCxt's lock.
 * Return: true once after nhca_rcxt_await(), when no CPU copies any more.
 */
static inline bool nhca_rcxt_awaited(struct nhca_rcxt *rc)
{
	if (!rc->awaited || !nhca_rcxt_no_copies(rc))
		return false;
	rc->awaited = false;
	return true;
}

/**
 * nhca_rcxt_end - end a transfer: free its bitmap and set the state of the rCxt
 * @pool:  the pool of @rc
 * @rc:    the rCxt
 * @state: the new state
 * Context: any, rCxt's lock.
 */
void nhca_rcxt_end(struct nhca_rcxt_pool *pool, struct nhca_rcxt *rc, enum nhca_rcxt_state state);

/* ---- shared by tid.c and half.c ---- */

static inline u32 nhca_rcxt_packets_of(const struct nhca_rcxt *rc)
{
	return nhca_rcxt_packets(rc->total, rc->segment);
}

static inline unsigned long *nhca_rcxt_map(struct nhca_rcxt *rc)
{
	return rc->map_kept ? rc->map : rc->bits;
}

/**
 * nhca_rcxt_start - begin a transfer
 * @rc:      the rCxt; it has no bitmap of the previous transfer
 * @state:   its new state
 * @tid:     tid of the transfer
 * @total:   bytes of the transfer
 * @segment: payload bytes of each packet but the last
 * @notify:  NHCA_RX_NOTIFY_*
 * Context: any, rCxt's lock.
 */
void nhca_rcxt_start(struct nhca_rcxt *rc, enum nhca_rcxt_state state, u32 tid, u32 total,
		     u32 segment, u8 notify);

/**
 * nhca_rcxt_may_begin - check whether the channel may begin a transfer
 * @rc:      the rCxt
 * @tid:     tid of the transfer
 * @total:   bytes of the transfer
 * @segment: payload bytes of each packet but the last
 * Context: any, rCxt's lock.
 * Return: 0; errors as nhca_rcxt_begin_write().
 */
int nhca_rcxt_may_begin(const struct nhca_rcxt *rc, u32 tid, u32 total, u32 segment);

#endif /* NHCA_RCXT_TID_H */
