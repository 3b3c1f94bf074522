// SPDX-License-Identifier: GPL-2.0
/* Checks of the work requests of channels. */
#include "../wire/element.h"
#include "check.h"

#define CHECK_FLAGS	(NHCA_SEND_SIGNALED | NHCA_SEND_SOLICITED | NHCA_SEND_INLINE)
#define CHECK_NOTIFY	(NHCA_NOTIFY_INITIATOR | NHCA_NOTIFY_TARGET)

static_assert((int)NHCA_NOTIFY_INITIATOR == (int)NHCA_RX_NOTIFY_INITIATOR);
static_assert((int)NHCA_NOTIFY_TARGET == (int)NHCA_RX_NOTIFY_TARGET);
static_assert(NHCA_FRAME_DATA == NHCA_RX_MAX_PACKET);
static_assert(NHCA_ACCUMULATE_HEADER == NHCA_RX_OP_LEN);
static_assert((int)NHCA_ACCUMULATE_SUM == (int)NHCA_ELEM_SUM);
static_assert((int)NHCA_ACCUMULATE_XOR == (int)NHCA_ELEM_XOR);
static_assert((int)NHCA_ACCUMULATE_I32 == (int)NHCA_ELEM_I32);
static_assert((int)NHCA_ACCUMULATE_BF16 == (int)NHCA_ELEM_BF16);

static bool check_packet_ok(const struct nhca_channel *ch, const struct nhca_send_wqe *wqe)
{
	if (wqe->flags & NHCA_SEND_INLINE)
		return !wqe->num_sge && wqe->inline_len <= ch->max_inline;
	return !wqe->inline_len && wqe->num_sge <= ch->max_sge;
}

bool nhca_check_header(const struct nhca_channel *ch, const struct nhca_send_wqe *wqe)
{
	if (wqe->flags & ~CHECK_FLAGS || wqe->xrc_srqn)
		return false;
	switch (wqe->opcode) {
	case NHCA_WR_CH_PACKET:
		return check_packet_ok(ch, wqe);
	case NHCA_WR_CH_WRITE:
	case NHCA_WR_CH_READ:
	case NHCA_WR_CH_CANCEL:
	case NHCA_WR_CH_PROBE:
	case NHCA_WR_CH_FENCE:
	case NHCA_WR_CH_MOVE:
	case NHCA_WR_CH_ACCUMULATE:
		return !wqe->num_sge && !wqe->inline_len && !(wqe->flags & NHCA_SEND_INLINE);
	case NHCA_WR_CH_PART:
		return wqe->flags & NHCA_SEND_INLINE && !wqe->num_sge &&
		       wqe->inline_len <= ch->max_inline &&
		       ch->max_inline - wqe->inline_len >= sizeof(wqe->rcxt[0]);
	default:
		return false;
	}
}

size_t nhca_check_rest(const struct nhca_send_wqe *wqe)
{
	switch (wqe->opcode) {
	case NHCA_WR_CH_PACKET:
		return wqe->inline_len + wqe->num_sge * sizeof(wqe->sge[0]);
	case NHCA_WR_CH_MOVE:
		return sizeof(wqe->rcxt[0]) + sizeof(struct nhca_rcxt_target);
	case NHCA_WR_CH_PART:
		return sizeof(wqe->rcxt[0]) + wqe->inline_len;
	default:
		return sizeof(wqe->rcxt[0]);
	}
}

u64 nhca_check_length(const struct nhca_send_wqe *wqe)
{
	u64 length = wqe->inline_len;
	u32 i;

	for (i = 0; i < wqe->num_sge; i++)
		length += wqe->sge[i].length;
	return length;
}

u32 nhca_check_bytes(const struct nhca_send_wqe *wqe)
{
	return wqe->opcode == NHCA_WR_CH_PACKET || wqe->opcode == NHCA_WR_CH_PART ?
	       nhca_check_length(wqe) : wqe->rcxt[0].total;
}

/* Return: true if @len bytes from @pvo on do not extend beyond the end of the PVO's table. */
static bool check_pvo_ok(u64 pvo, u32 len)
{
	return !len || nhca_pvo_add(pvo, len - 1);
}

/* Return: true for work requests whose offset and length select packets of the transfer. */
static bool check_has_range(u8 opcode, u8 flags)
{
	return opcode == NHCA_WR_CH_WRITE || opcode == NHCA_WR_CH_MOVE ||
	       opcode == NHCA_WR_CH_ACCUMULATE ||
	       (opcode == NHCA_WR_CH_READ && flags & NHCA_RCXT_WR_FRAMES);
}

/*
 * Check that offset and length select whole packets of the transfer.  Without
 * NHCA_RCXT_WR_RETRANSMIT they select the whole transfer; only a half-receive read may request
 * fewer packets, from the first one on.
 */
static bool check_range_ok(u8 opcode, const struct nhca_rcxt_wr *wr)
{
	u32 end = wr->offset + wr->length;

	if (!(wr->flags & NHCA_RCXT_WR_RETRANSMIT) &&
	    (wr->offset || (opcode != NHCA_WR_CH_READ && wr->length != wr->total)))
		return false;
	return !(wr->offset % wr->segment) && wr->length <= wr->total &&
	       wr->offset <= wr->total - wr->length && (wr->length || !wr->total) &&
	       (end == wr->total || !(end % wr->segment));
}

/* Check that NHCA_WR_CH_PART contains the payload of one packet, and names no local PVO. */
static bool check_inline_ok(const struct nhca_send_wqe *wqe, const struct nhca_rcxt_wr *wr)
{
	return !wr->local_pvo && !(wr->offset % wr->segment) &&
	       (wr->offset < wr->total || !wr->offset) &&
	       wr->length == nhca_rcxt_packet_len(wr->total, wr->segment, wr->offset) &&
	       wqe->inline_len == wr->length;
}

/*
 * Check which sides the work request notifies: none if the packet answers a half-send read, because
 * the request of the reader has named the sides.  An ordered accumulate, a third-party transfer and
 * a half-send write must notify the initiator.
 */
static bool check_notify_ok(u8 opcode, const struct nhca_rcxt_wr *wr)
{
	if (opcode == NHCA_WR_CH_PART && wr->flags & NHCA_RCXT_WR_PROGRAM)
		return !wr->notify;
	if (wr->notify & ~CHECK_NOTIFY)
		return false;
	if (wr->flags & NHCA_RCXT_WR_ORDERED && !(wr->notify & NHCA_NOTIFY_INITIATOR))
		return false;
	return (opcode != NHCA_WR_CH_MOVE && opcode != NHCA_WR_CH_PART) ||
	       wr->notify & NHCA_NOTIFY_INITIATOR;
}

/* Return: true if the segment of the work request must not be 0. */
static bool check_needs_segment(u8 opcode)
{
	return opcode == NHCA_WR_CH_PROBE || opcode == NHCA_WR_CH_PART;
}

/* Check the flags of a struct nhca_rcxt_wr. */
static bool check_flags_ok(u8 opcode, u8 flags)
{
	switch (opcode) {
	case NHCA_WR_CH_WRITE:
		return !(flags & ~(NHCA_RCXT_WR_RETRANSMIT | NHCA_RCXT_WR_FRAMES));
	case NHCA_WR_CH_MOVE:
		return !(flags & ~NHCA_RCXT_WR_RETRANSMIT);
	case NHCA_WR_CH_PART:
		return !(flags & ~NHCA_RCXT_WR_PROGRAM);
	case NHCA_WR_CH_ACCUMULATE:
		return !flags || flags == NHCA_RCXT_WR_RETRANSMIT ||
		       flags == NHCA_RCXT_WR_ORDERED;
	case NHCA_WR_CH_READ:
		/* an ordinary read has one request: the peer's adapter answers no other one */
		if (!(flags & (NHCA_RCXT_WR_FRAMES | NHCA_RCXT_WR_PROGRAM)))
			return !flags;
		flags &= ~NHCA_RCXT_WR_RETRANSMIT;
		return flags == NHCA_RCXT_WR_FRAMES || flags == NHCA_RCXT_WR_PROGRAM;
	default:
		return !flags;
	}
}

/*
 * Check that an accumulate has a valid operation and type, and consists of whole aligned elements.
 * A segment of 0, which the caller replaces, is accepted.  Other work requests have neither
 * operation nor type: @wr->reserved must be 0.
 */
static bool check_elements_ok(u8 opcode, const struct nhca_rcxt_wr *wr)
{
	if (opcode != NHCA_WR_CH_ACCUMULATE)
		return !wr->reserved;
	return nhca_elements_whole(wr->op, wr->type, wr->total, wr->segment, wr->remote_pvo);
}

/* Return: the segment that the kernel chooses if the work request in ch->wqe has a segment of 0. */
static u32 check_segment(const struct nhca_channel *ch)
{
	u32 segment = nhca_channel_segment(ch->dev);

	/* half-receive write or read: each segment goes into one frame */
	if (ch->wqe->rcxt[0].flags & NHCA_RCXT_WR_FRAMES)
		return min(segment, NHCA_RX_MAX_PACKET);
	/* a multiple of 8 bytes, so that it consists of whole elements of any type */
	if (ch->wqe->opcode == NHCA_WR_CH_ACCUMULATE)
		return max(round_down(segment - NHCA_ACCUMULATE_HEADER, 8), NHCA_RCXT_MIN_SEGMENT);
	return ch->wqe->opcode != NHCA_WR_CH_MOVE ? segment :
	       max(segment - NHCA_MOVE_HEADER, NHCA_RCXT_MIN_SEGMENT);
}

bool nhca_check_too_short(const struct nhca_channel *ch, const struct nhca_rcxt_wr *wr)
{
	return wr->total <= NHCA_RCXT_MAX_LEN && wr->segment == check_segment(ch) &&
	       nhca_rcxt_packets(wr->total, wr->segment) > NHCA_RCXT_MAX_PACKETS;
}

bool nhca_check_rcxt(const struct nhca_channel *ch, u8 opcode, struct nhca_rcxt_wr *wr)
{
	bool again = wr->flags & NHCA_RCXT_WR_RETRANSMIT;

	if (!check_elements_ok(opcode, wr) || !wr->tid || !check_flags_ok(opcode, wr->flags) ||
	    !check_notify_ok(opcode, wr))
		return false;
	if (opcode == NHCA_WR_CH_CANCEL)
		return true;
	if (opcode == NHCA_WR_CH_FENCE)
		return !(wr->local_pvo | wr->remote_pvo | wr->total | wr->offset | wr->length |
			 wr->segment | wr->notify | wr->flags);
	if (!wr->segment && !again && !check_needs_segment(opcode))
		wr->segment = check_segment(ch);
	/*
	 * If only the current MTU makes the number of packets too large, the caller completes the
	 * work request with EMSGSIZE.
	 */
	if (!nhca_rcxt_sizes_ok(wr->total, wr->segment) &&
	    (check_needs_segment(opcode) || !nhca_check_too_short(ch, wr)))
		return false;
	if (wr->flags & NHCA_RCXT_WR_FRAMES && wr->segment > NHCA_RX_MAX_PACKET)
		return false;
	if (opcode == NHCA_WR_CH_PROBE)
		return !(wr->offset % wr->segment) && (wr->offset < wr->total || !wr->offset);
	if (check_has_range(opcode, wr->flags) && !check_range_ok(opcode, wr))
		return false;
	/* these half transfers have only one PVO; the other one is 0 */
	if (opcode == NHCA_WR_CH_PART)
		return check_inline_ok(ch->wqe, wr) && check_pvo_ok(wr->remote_pvo, wr->total);
	if (wr->flags & NHCA_RCXT_WR_FRAMES && opcode == NHCA_WR_CH_READ)
		return !wr->local_pvo && check_pvo_ok(wr->remote_pvo, wr->total);
	if (wr->flags & NHCA_RCXT_WR_FRAMES)
		return !wr->remote_pvo && check_pvo_ok(wr->local_pvo, wr->total);
	/* remote_pvo is not a PVO, but a value for the peer's program */
	if (wr->flags & NHCA_RCXT_WR_PROGRAM)
		return !wr->offset && !wr->length && check_pvo_ok(wr->local_pvo, wr->total);
	return check_pvo_ok(wr->local_pvo, wr->total) && check_pvo_ok(wr->remote_pvo, wr->total);
}
