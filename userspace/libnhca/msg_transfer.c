// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Reliable messages: writes and reads.
 *
 * A message is cut into transfers, each of which a lane drives until its bytes are in place.  What
 * is overdue is asked after: a write at the peer's rCxt, a read at our own, over our own address.
 * Overdue is what takes longer than the smoothed time and four deviations, or what something that
 * was sent later has overtaken by more than things overtake each other here.
 *
 *	write	done		complete
 *		partial		the missing packets again, with the same tid
 *		none		all of it, with a new tid
 *		violated	the message fails
 *	read	partial, and no more comes
 *				cancel; what is missing is read anew
 *
 * A lane whose write is given up is not used, and its message not complete, until the peer has
 * said that its rCxt refuses what may still come: only then bytes may go another way.
 */
#include <errno.h>
#include <string.h>

#include "msg.h"

/* Of the send FIFO, for probes and packets */
#define RESERVE		64
#define AGAIN_LATER	(MS / 10)
/* Transfers of a message until others have their turn */
#define TURN		8
/* Looks at a read that nobody answers: our own address is not reached; then all is read anew. */
#define BLIND		3

static void wake(struct msg_route *route, uint64_t when)
{
	if (when < route->next)
		route->next = when;
}

static void set_due(struct msg_route *route, struct msg_lane *lane, uint64_t when)
{
	lane->due = when;
	wake(route, when);
}

/* ---- lanes ---- */

void msg_lane_init(struct msg_route *route, struct msg_lane *lane, uint16_t index)
{
	*lane = (struct msg_lane){ .index = index, .due = NEVER };
	list_add_tail(&route->busy, &lane->node);
}

static void set_inflight(struct msg_route *route, struct msg_lane *lane, uint32_t bytes)
{
	route->flow.inflight += bytes;
	route->flow.inflight -= lane->inflight;
	lane->inflight = bytes;
}

/* To be used again when no work request of it is left */
static void lane_settle(struct msg_route *route, struct msg_lane *lane)
{
	if (lane->state != LANE_FREE || lane->wrs || !lane->remote_rcxt)
		return;
	if (lane->tid >= MSG_LAST_TID) {
		lane->state = LANE_RENEW;
		lane->tries = 0;
		set_due(route, lane, 0);
		return;
	}
	list_del(&lane->node);
	list_add_tail(&route->free, &lane->node);
}

/* The lane's part in its message has ended, one way or the other. */
static void lane_leave(struct msg_route *route, struct msg_lane *lane)
{
	struct msg_op *op = lane->op;

	set_inflight(route, lane, 0);
	lane->op = NULL;
	lane->state = LANE_FREE;
	lane->due = NEVER;
	lane->nonce = 0;
	lane_settle(route, lane);
	op->lanes--;
	msg_op_check(op);
}

static void lane_done(struct msg_route *route, struct msg_lane *lane)
{
	lane->op->done += lane->length;
	msg_flow_done(&route->flow, lane->length);
	lane_leave(route, lane);
}

static uint32_t packets_of(const struct msg_lane *lane)
{
	return lane->length ? (lane->length + lane->segment - 1) / lane->segment : 1;
}

static bool lane_has(const struct msg_lane *lane, uint32_t packet)
{
	return lane->have[packet / 64] >> packet % 64 & 1;
}

/*
 * Nothing of the transfer lands any more: what has not landed is for other lanes.  Without memory
 * for that it is tried again a bit later.
 */
static void lane_requeue(struct msg_route *route, struct msg_lane *lane)
{
	uint32_t packets = packets_of(lane), first, end, from, to;

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
			set_due(route, lane, route->peer->ep->now + 10 * MS);
			return;
		}
		/* From now on somebody else's */
		for (; first < end; first++)
			lane->have[first / 64] |= UINT64_C(1) << first % 64;
		lane->seen += to - from;
	}
	/* @seen: bytes that are to be read again */
	lane->op->done += lane->length - lane->seen;
	lane_leave(route, lane);
}

static struct nhcadv_transfer transfer_of(const struct msg_route *route,
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

static void lane_begin(struct msg_route *route, struct msg_lane *lane)
{
	struct nhcadv_transfer t;
	uint64_t name;

	lane->tid++;
	lane->posted = route->peer->ep->now;
	lane->sent = 0;
	lane->asked = 0;
	lane->nonce = 0;
	lane->seen = 0;
	lane->resent = false;
	lane->cancelled = false;
	lane->due = NEVER;
	lane->wrs++;
	memset(lane->have, 0, sizeof(lane->have));
	set_inflight(route, lane, lane->length);

	t = transfer_of(route, lane);
	name = t.cookie;
	if (lane->op->read) {
		lane->state = LANE_READ;
		port_read(route->port, name, &route->dest, &t);
	} else {
		lane->state = LANE_WRITE;
		port_write(route->port, name, &route->dest, &t);
	}
	msg_route_asked(route);
	msg_flow_sent(&route->flow, packets_of(lane));
}

/* All of it again, with a higher tid: the old one is refused when the new one is there. */
static void lane_redrive(struct msg_route *route, struct msg_lane *lane)
{
	if (!port_room(route->port, 1)) {
		set_due(route, lane, route->peer->ep->now + AGAIN_LATER);
		return;
	}
	route->stats.redriven++;
	lane_begin(route, lane);
	lane->resent = true;
}

static void lane_fence(struct msg_route *route, struct msg_lane *lane)
{
	set_inflight(route, lane, 0);
	lane->state = LANE_FENCE;
	lane->nonce = 0;
	lane->seen = 0;
	lane->tries = 0;
	set_due(route, lane, 0);
}

static void lane_cancel(struct msg_route *route, struct msg_lane *lane)
{
	set_inflight(route, lane, 0);
	lane->state = LANE_CANCEL;
	lane->nonce = 0;
	lane->seen = 0;
	lane->asked = 0;
	set_due(route, lane, 0);
}

/* What lands for it, if it does, lands no more. */
static void lane_give_up(struct msg_route *route, struct msg_lane *lane)
{
	if (lane->state == LANE_WRITE)
		lane_fence(route, lane);
	else if (lane->state == LANE_READ)
		lane_cancel(route, lane);
}

/* ---- giving transfers to lanes ---- */

static struct msg_route *route_with_room(struct msg_peer *peer, uint32_t *most)
{
	struct msg_route *route;
	uint32_t i, segment;

	for (i = 0; i < peer->num_routes; i++) {
		route = peer->routes[(peer->turn + i) % peer->num_routes];
		segment = route->segment < route->port->info.segment ?
			  route->segment : route->port->info.segment;
		*most = segment * peer->ep->packets;
		if (route->alive && msg_route_ready(route) && !list_empty(&route->free) &&
		    port_room(route->port, RESERVE) && msg_flow_may_send(&route->flow, *most)) {
			peer->turn += i + 1;
			return route;
		}
	}
	return NULL;
}

void msg_pump(struct msg_peer *peer)
{
	struct msg_route *route;
	struct msg_lane *lane;
	struct msg_op *op;
	uint32_t most;

	while ((op = list_top(&peer->todo, struct msg_op, node))) {
		route = route_with_room(peer, &most);
		if (!route)
			return;
		lane = list_pop(&route->free, struct msg_lane, node);
		list_add_tail(&route->busy, &lane->node);
		lane->op = op;
		lane->segment = most / peer->ep->packets;
		lane->length = msg_op_take(op, most, &lane->offset);
		lane->tries = 0;
		op->lanes++;
		lane_begin(route, lane);
		route->stats.transfers++;
		route->stats.packets += packets_of(lane);
		route->stats.bytes += lane->length;

		if (!msg_op_has_work(op)) {
			msg_op_sort(op);
		} else if (++op->turn % TURN == 0) {
			list_del(&op->node);
			list_add_tail(&peer->todo, &op->node);
		}
	}
}

/* ---- what comes back ---- */

/* It has come after all: by how much was it overtaken? */
static void came(struct msg_route *route, struct msg_lane *lane)
{
	msg_flow_reordered(&route->flow, lane->passed ? route->peer->ep->now - lane->passed : 0);
	lane->passed = 0;
}

/*
 * A lane's packets, or its probe, sent at @when, came through: whoever of its kind was sent before
 * is late, if it is not there soon.  The peer sends what was read in turns, so that a shorter read
 * is done earlier than a longer one.
 */
static void overtaken(struct msg_route *route, const struct msg_lane *by, uint64_t when)
{
	uint64_t due = route->peer->ep->now + msg_flow_reordering(&route->flow);
	struct msg_lane *lane;
	uint64_t last;

	list_for_each(&route->busy, lane, node) {
		last = lane->asked > lane->sent ? lane->asked : lane->sent;
		if (lane->state != by->state || !lane->sent || last >= when ||
		    (lane->state == LANE_READ && lane->length > by->length))
			continue;
		if (!lane->passed)
			lane->passed = route->peer->ep->now;
		if (lane->due > due)
			set_due(route, lane, due);
	}
}

void msg_lane_posted(struct msg_route *route, struct msg_lane *lane, uint64_t name)
{
	uint64_t now = route->peer->ep->now;

	lane->wrs--;
	switch (msg_name_what(name)) {
	case WHAT_TRANSFER:
	case WHAT_AGAIN:
		if ((lane->state != LANE_WRITE && lane->state != LANE_READ) ||
		    msg_name_number(name) != lane->tid)
			break;
		lane->sent = now;
		lane->passed = 0;
		set_due(route, lane, now + msg_flow_overdue(&route->flow, lane->tries));
		break;
	case WHAT_CANCEL:
		if (lane->state != LANE_CANCEL || msg_name_number(name) != lane->tid)
			break;
		lane->cancelled = true;
		lane_requeue(route, lane);
		return;
	default:
		break;
	}
	lane_settle(route, lane);
}

void msg_lane_complete(struct msg_route *route, struct msg_lane *lane, uint32_t tid, bool read)
{
	uint64_t now = route->peer->ep->now;

	if (lane->tid != tid)
		return;
	if (read ? lane->state != LANE_READ && lane->state != LANE_CANCEL :
		   lane->state != LANE_WRITE && lane->state != LANE_FENCE)
		return;
	msg_route_heard(route);
	/* Half of it may be with others already. */
	if (lane->state == LANE_CANCEL && lane->cancelled)
		return;
	if (!lane->resent) {
		msg_flow_sample(&route->flow, now - lane->posted);
		came(route, lane);
	}
	overtaken(route, lane, lane->resent ? lane->posted : lane->sent);
	lane_done(route, lane);
}

static void write_partial(struct msg_route *route, struct msg_lane *lane,
			  const struct nhcadv_frame *frame)
{
	struct nhcadv_transfer t = transfer_of(route, lane);
	uint32_t packets = packets_of(lane), first, end, from, to, bytes = 0, missing = 0;

	lane->tries = 0;
	for (first = 0; first < packets; first = end) {
		end = first + 1;
		if (nhcadv_frame_has(frame, first))
			continue;
		while (end < packets && !nhcadv_frame_has(frame, end))
			end++;
		/* The rest has its turn after the next probe. */
		if (!port_room(route->port, 1))
			break;
		from = first * lane->segment;
		to = end == packets ? lane->length : end * lane->segment;
		port_rewrite(route->port, msg_name(route, lane->index, WHAT_AGAIN, lane->tid),
			     &route->dest, &t, from, to - from);
		lane->wrs++;
		bytes += to - from;
		missing += end - first;
	}
	set_inflight(route, lane, bytes);
	lane->resent = true;
	lane->asked = 0;
	lane->nonce = 0;
	if (!missing) {
		/* It is on its way into memory, or there was no room. */
		set_due(route, lane, route->peer->ep->now + AGAIN_LATER);
		return;
	}
	lane->sent = 0;
	lane->due = NEVER;
	route->stats.resent += missing;
	msg_flow_lost(&route->flow, missing);
	msg_flow_sent(&route->flow, missing);
	msg_route_asked(route);
}

/*
 * Does no more come?  The last packet is sent last.  If another read, not shorter and asked for
 * later, is done, the peer has not heard of this one, or has sent it.  Else it may not have got to
 * it, and what is asked for once more makes it slower still: it is let, as long as it moves.
 */
static bool read_is_over(const struct msg_route *route, const struct msg_lane *lane,
			 const struct nhcadv_frame *frame)
{
	if (nhcadv_frame_has(frame, packets_of(lane) - 1))
		return true;
	if (lane->passed &&
	    route->peer->ep->now - lane->passed >= msg_flow_reordering(&route->flow))
		return true;
	return frame->received + 1 == lane->seen;
}

static void read_partial(struct msg_route *route, struct msg_lane *lane,
			 const struct nhcadv_frame *frame)
{
	uint64_t now = route->peer->ep->now;
	uint32_t packets = packets_of(lane), i, missing = 0;

	lane->tries = 0;
	if (!read_is_over(route, lane, frame)) {
		if (frame->received) {
			msg_route_heard(route);
			msg_flow_at_least(&route->flow, now - lane->posted);
		}
		lane->seen = frame->received + 1;
		lane->nonce = 0;
		set_due(route, lane, now + msg_flow_overdue(&route->flow, !frame->received));
		return;
	}
	lane_cancel(route, lane);
	for (i = 0; i < packets; i++) {
		if (nhcadv_frame_has(frame, i))
			lane->have[i / 64] |= UINT64_C(1) << i % 64;
		else
			missing++;
	}
	route->stats.resent += missing;
	route->stats.redriven++;
	/* If none has come, the request is what was lost. */
	msg_flow_lost(&route->flow, missing == packets ? 1 : missing);
}

void msg_lane_status(struct msg_route *route, struct msg_lane *lane,
		     const struct nhcadv_frame *frame)
{
	if (frame->tid != lane->tid || (lane->state != LANE_WRITE && lane->state != LANE_READ))
		return;
	if (lane->state == LANE_WRITE) {
		msg_route_heard(route);
		msg_flow_sample(&route->flow, route->peer->ep->now - lane->asked);
		came(route, lane);
		overtaken(route, lane, lane->asked);
	}
	lane->nonce = 0;
	switch (frame->status) {
	case NHCADV_TRANSFER_COMPLETE:
		lane_done(route, lane);
		break;
	case NHCADV_TRANSFER_PARTIAL:
		if (lane->state == LANE_WRITE)
			write_partial(route, lane, frame);
		else
			read_partial(route, lane, frame);
		break;
	case NHCADV_TRANSFER_NONE:
		if (lane->tries < UINT8_MAX)
			lane->tries++;
		msg_flow_lost(&route->flow, packets_of(lane));
		if (lane->state == LANE_WRITE)
			lane_redrive(route, lane);
		else
			lane_cancel(route, lane);
		break;
	case NHCADV_TRANSFER_PROT_ERR:
		msg_op_fail(lane->op, EACCES);
		lane_leave(route, lane);
		break;
	}
}

void msg_lane_fenced(struct msg_route *route, struct msg_lane *lane, uint32_t tid)
{
	if (lane->state == LANE_FENCE && tid >= lane->tid) {
		route->stats.redriven++;
		lane_requeue(route, lane);
	}
}

/* ---- what is overdue ---- */

static void ask(struct msg_route *route, struct msg_lane *lane)
{
	struct nhcadv_msg_ep *ep = route->peer->ep;
	struct nhcadv_transfer t = transfer_of(route, lane);
	uint64_t name;

	if (lane->nonce) {
		if (lane->tries < UINT8_MAX)
			lane->tries++;
		if (route->silent != NEVER &&
		    ep->now - route->silent > 2 * msg_flow_overdue(&route->flow, 0))
			msg_flow_silent(&route->flow, ep->now);
	}
	if (lane->state == LANE_READ && lane->tries >= BLIND) {
		lane_cancel(route, lane);
		return;
	}
	if (!++ep->nonce)
		ep->nonce = 1;
	lane->nonce = ep->nonce;
	lane->asked = ep->now;
	if (lane->state == LANE_WRITE)
		lane->passed = 0;
	lane->wrs++;
	name = msg_name(route, lane->index, WHAT_PROBE, lane->nonce);
	t.cookie = name;
	route->stats.probes++;
	if (lane->state == LANE_READ) {
		t.remote_rcxt = lane->local_rcxt;
		port_probe(route->port, name, &route->self, &t);
	} else {
		port_probe(route->port, name, &route->dest, &t);
		msg_route_asked(route);
	}
	set_due(route, lane, ep->now + msg_flow_overdue(&route->flow, lane->tries));
}

static void lane_timer(struct msg_route *route, struct msg_lane *lane)
{
	uint64_t now = route->peer->ep->now;

	switch (lane->state) {
	case LANE_FREE:
		lane->due = NEVER;
		break;
	case LANE_WRITE:
	case LANE_READ:
		if (port_room(route->port, 1))
			ask(route, lane);
		else
			set_due(route, lane, now + AGAIN_LATER);
		break;
	case LANE_FENCE:
	case LANE_RENEW:
		msg_send_fence(route, lane, lane->state == LANE_FENCE ? lane->tid : UINT32_MAX);
		set_due(route, lane, now + msg_flow_overdue(&route->flow, lane->tries));
		if (lane->tries < UINT8_MAX)
			lane->tries++;
		break;
	case LANE_CANCEL:
		lane->due = NEVER;
		if (lane->cancelled) {
			lane_requeue(route, lane);
		} else if (!lane->asked) {
			if (!port_room(route->port, 1)) {
				set_due(route, lane, now + AGAIN_LATER);
				break;
			}
			lane->asked = now;
			lane->wrs++;
			port_cancel(route->port, msg_name(route, lane->index, WHAT_CANCEL,
							  lane->tid), lane->local_rcxt, lane->tid);
		}
		break;
	}
}

uint64_t msg_lane_timers(struct msg_route *route)
{
	uint64_t now = route->peer->ep->now;
	struct msg_lane *lane, *next;

	if (now < route->next)
		return route->next;
	list_for_each_safe(&route->busy, lane, next, node)
		if (lane->due <= now)
			lane_timer(route, lane);
	route->next = NEVER;
	list_for_each(&route->busy, lane, node)
		wake(route, lane->due);
	return route->next;
}

/* ---- paths that die, channels that are made anew ---- */

void msg_lanes_redrive(struct msg_route *route)
{
	struct msg_lane *lane;

	list_for_each(&route->busy, lane, node)
		lane_give_up(route, lane);
}

void msg_lane_lost(struct msg_route *route, struct msg_lane *lane)
{
	lane->wrs = 0;
	switch (lane->state) {
	case LANE_WRITE:
		/* The peer's rCxt is still what it was. */
		lane_fence(route, lane);
		break;
	case LANE_READ:
		lane_cancel(route, lane);
		/* fallthrough */
	case LANE_CANCEL:
		lane->cancelled = true;
		set_due(route, lane, 0);
		break;
	default:
		lane_settle(route, lane);
	}
}

void msg_lane_new_remote(struct msg_route *route, struct msg_lane *lane, uint64_t rcxt)
{
	uint64_t fresh;

	if (lane->remote_rcxt == rcxt)
		return;
	lane->remote_rcxt = rcxt;
	switch (lane->state) {
	case LANE_WRITE:
		lane_fence(route, lane);
		/* fallthrough */
	case LANE_FENCE:
		/* There is nothing any more that could take its packets. */
		msg_lane_fenced(route, lane, lane->tid);
		break;
	case LANE_READ:
		lane_cancel(route, lane);
		break;
	case LANE_RENEW:
		/* Our own rCxt has to begin anew, too. */
		if (port_acquire(route->port, &fresh, 1)) {
			set_due(route, lane, route->peer->ep->now + 100 * MS);
			break;
		}
		port_release(route->port, &lane->local_rcxt, 1);
		lane->local_rcxt = fresh;
		lane->tid = 0;
		lane->state = LANE_FREE;
		lane->due = NEVER;
		/* fallthrough */
	default:
		lane_settle(route, lane);
	}
}

/* ---- cancelling ---- */

int msg_op_cancel(struct msg_op *op)
{
	struct msg_peer *peer = op->peer;
	struct msg_lane *lane;
	uint32_t i;

	if (op->told)
		return EALREADY;
	msg_op_fail(op, ECANCELED);
	/* It does not go while lanes leave it. */
	op->lanes++;
	for (i = 0; i < peer->num_routes; i++)
		list_for_each(&peer->routes[i]->busy, lane, node)
			if (lane->op == op)
				lane_give_up(peer->routes[i], lane);
	op->lanes--;
	msg_op_check(op);
	return 0;
}
