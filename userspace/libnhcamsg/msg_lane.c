// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Reliable messages: the state of a lane, from the start of a transfer until the lane is free.
 *
 * If a write is abandoned, its lane and its message wait for two confirmations:
 * - The peer confirms that its rCxt refuses late packets.  Only then may another lane write the
 *   bytes.
 * - The local kernel confirms that no packet refers to the memory.  Only then may the message
 *   complete, after which the program may change the memory.
 */
#include <errno.h>
#include <string.h>

#include "msg.h"

void msg_lane_wake(struct msg_route *route, uint64_t when)
{
	if (when < route->next)
		route->next = when;
}

void msg_lane_set_due(struct msg_route *route, struct msg_lane *lane, uint64_t when)
{
	lane->due = when;
	msg_lane_wake(route, when);
}

/* ---- lanes ---- */

void msg_lane_init(struct msg_route *route, struct msg_lane *lane, uint16_t index)
{
	*lane = (struct msg_lane){ .index = index, .due = NEVER };
	list_add_tail(&route->busy, &lane->node);
}

void msg_lane_set_inflight(struct msg_route *route, struct msg_lane *lane, uint32_t bytes)
{
	route->cc.inflight += bytes;
	route->cc.inflight -= lane->inflight;
	lane->inflight = bytes;
}

void msg_lane_settle(struct msg_route *route, struct msg_lane *lane)
{
	if (lane->state != LANE_FREE || lane->wrs)
		return;
	if (lane->index >= route->want || !lane->local_rcxt || !lane->remote_rcxt) {
		list_del(&lane->node);
		list_add_tail(&route->busy, &lane->node);
		return;
	}
	if (lane->tid >= MSG_LAST_TID) {
		lane->state = LANE_RENEW;
		lane->tries = 0;
		msg_lane_set_due(route, lane, 0);
		return;
	}
	list_del(&lane->node);
	list_add_tail(&route->free, &lane->node);
	msg_peer_ready(route->peer);
}

void msg_lane_leave(struct msg_route *route, struct msg_lane *lane)
{
	struct msg_op *op = lane->op;

	msg_lane_set_inflight(route, lane, 0);
	port_ended(route->port);
	route->busy_lanes--;
	lane->op = NULL;
	lane->state = LANE_FREE;
	lane->due = NEVER;
	lane->nonce = 0;
	msg_lane_settle(route, lane);
	op->lanes--;
	msg_op_check(op);
}

void msg_lane_done(struct msg_route *route, struct msg_lane *lane)
{
	lane->op->done += lane->length;
	msg_cc_done(&route->cc, lane->length);
	msg_lane_leave(route, lane);
}

uint32_t msg_lane_packets(const struct msg_lane *lane)
{
	return lane->length ? (lane->length + lane->segment - 1) / lane->segment : 1;
}

static bool lane_has(const struct msg_lane *lane, uint32_t packet)
{
	return lane->have[packet / 64] >> packet % 64 & 1;
}

/* If there is no memory for the pieces, the timer of the lane tries again after 10 ms. */
void msg_lane_requeue(struct msg_route *route, struct msg_lane *lane)
{
	uint32_t packets = msg_lane_packets(lane), first, end, from, to;

	for (first = 0; first < packets; first = end) {
		if (lane_has(lane, first)) {
			end = first + 1;
			continue;
		}
		for (end = first + 1; end < packets && !lane_has(lane, end); end++)
			;
		from = first * lane->segment;
		to = end == packets ? lane->length : end * lane->segment;
		if (!msg_op_again(lane->op, lane->offset + from, to - from)) {
			msg_lane_set_due(route, lane, route->peer->ep->now + 10 * MS);
			return;
		}
		/* Other lanes transfer these packets: a retry must not queue them again. */
		for (; first < end; first++)
			lane->have[first / 64] |= UINT64_C(1) << first % 64;
		lane->seen += to - from;
	}
	/* @seen: bytes that were queued again */
	lane->op->done += lane->length - lane->seen;
	if (lane->state == LANE_FENCE)
		msg_lane_release(route, lane);
	else
		msg_lane_leave(route, lane);
}

struct nhcadv_transfer msg_lane_transfer(const struct msg_route *route,
					  const struct msg_lane *lane)
{
	return (struct nhcadv_transfer){
		.local_rcxt = lane->local_rcxt,
		.remote_rcxt = lane->remote_rcxt,
		.local_pvo = lane->op->local_pvo + lane->offset,
		.remote_pvo = lane->op->remote_pvo + lane->offset,
		.cookie = msg_name(route, lane->index, WHAT_TRANSFER, lane->tid),
		.tid = lane->tid,
		.total = lane->length,
		.segment = lane->segment,
		.notify = NHCADV_NOTIFY_INITIATOR,
	};
}

uint32_t msg_lane_slots(const struct msg_lane *lane)
{
	return lane->op->iov ? msg_lane_packets(lane) : 1;
}

/* A write from buffers has a work request for each packet. */
static void write_begin(struct msg_route *route, struct msg_lane *lane, uint64_t name,
			const struct nhcadv_transfer *t)
{
	uint32_t i;

	lane->state = LANE_WRITE;
	if (!lane->op->iov) {
		port_write(route->port, name, &route->dest, t);
		return;
	}
	for (i = 0; i < msg_lane_packets(lane); i++)
		msg_iov_post(route, lane, name, t, i);
}

void msg_lane_begin(struct msg_route *route, struct msg_lane *lane)
{
	struct nhcadv_transfer t;
	uint64_t name;

	lane->tid++;
	lane->posted = route->peer->ep->now;
	lane->sent = 0;
	lane->probed = 0;
	lane->nonce = 0;
	lane->seen = 0;
	lane->resent = false;
	lane->cancelled = false;
	lane->due = NEVER;
	lane->wrs += msg_lane_slots(lane);
	memset(lane->have, 0, sizeof(lane->have));
	msg_lane_set_inflight(route, lane, lane->length);

	t = msg_lane_transfer(route, lane);
	name = t.cookie;
	if (lane->op->read) {
		lane->state = LANE_READ;
		port_read(route->port, name, &route->dest, &t);
	} else {
		write_begin(route, lane, name, &t);
	}
	msg_route_probed(route);
	msg_cc_sent(&route->cc, msg_lane_packets(lane));
}

/*
 * No fence is needed: the peer refuses packets of the old tid after the first packet with the new
 * tid has arrived.
 */
void msg_lane_redrive(struct msg_route *route, struct msg_lane *lane)
{
	if (!port_room(route->port, msg_lane_slots(lane))) {
		msg_lane_set_due(route, lane, route->peer->ep->now + MSG_AGAIN_LATER);
		return;
	}
	route->stats.redriven++;
	msg_lane_begin(route, lane);
	lane->resent = true;
}

void msg_lane_fence(struct msg_route *route, struct msg_lane *lane)
{
	msg_lane_set_inflight(route, lane, 0);
	lane->state = LANE_FENCE;
	lane->nonce = 0;
	lane->seen = 0;
	lane->tries = 0;
	msg_lane_set_due(route, lane, 0);
}

void msg_lane_cancel(struct msg_route *route, struct msg_lane *lane)
{
	msg_lane_set_inflight(route, lane, 0);
	lane->state = LANE_CANCEL;
	lane->nonce = 0;
	lane->seen = 0;
	lane->probed = 0;
	msg_lane_set_due(route, lane, 0);
}

void msg_lane_release(struct msg_route *route, struct msg_lane *lane)
{
	msg_lane_set_inflight(route, lane, 0);
	lane->state = LANE_RELEASE;
	lane->nonce = 0;
	lane->probed = 0;
	/*
	 * If the port is closed, no cancel is needed, because port_close() has waited for the
	 * packets.  Nor could a cancel be posted, because there is no channel.
	 */
	lane->cancelled = !route->port->open;
	msg_lane_set_due(route, lane, 0);
}

void msg_lane_give_up(struct msg_route *route, struct msg_lane *lane)
{
	if (lane->state == LANE_WRITE)
		msg_lane_fence(route, lane);
	else if (lane->state == LANE_READ || lane->state == LANE_SOURCE)
		msg_lane_cancel(route, lane);
	else if (lane->state == LANE_MOVE || lane->state == LANE_TARGET)
		msg_move_give_up(route, lane);
}

/* No packet was sent, so nothing has to be cancelled: the timer requeues the whole transfer. */
void msg_lane_unsent(struct msg_route *route, struct msg_lane *lane)
{
	msg_lane_cancel(route, lane);
	lane->cancelled = true;
	msg_lane_set_due(route, lane, route->peer->ep->now + MSG_AGAIN_LATER);
}
