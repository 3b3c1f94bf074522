// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Reliable messages: moves.  msg_move.h has the model.
 *
 * If a transfer is overdue, the library probes the rCxt of the target:
 *
 *	COMPLETE	the transfer is complete
 *	PARTIAL, NONE	request missing packets again: those that later packets have overtaken, and
 *			all if no packet has come since the last status, unless the source is still
 *			busy with earlier transfers (source_busy())
 *	PROT_ERR	the move fails with EACCES
 *
 * If a source refuses a pair of its path and one of the target (FORBIDDEN), or there is no address
 * handle for a pair, the move tries another pair.  After a refusal it fails with EPERM when no
 * untried pair of living paths is left.  If no pair can ever work, it fails with EOPNOTSUPP.
 *
 * After more than MOVE_TRIES answers without progress, the library probes the source.  If the
 * answer is PROT_ERR, the move fails with EACCES.  Otherwise the source does not execute the
 * requests, so the library abandons the transfer.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "msg.h"

/* Answers of the target without progress before the source is probed */
#define MOVE_TRIES	4
/* Unanswered or useless probes before the transfer is abandoned */
#define MOVE_GIVE_UP	12

/* ---- lanes ---- */

static struct msg_lane *source_lane(struct msg_route **route, struct msg_lane *lane)
{
	if (lane->op)
		return lane;
	*route = lane->partner_route;
	return lane->partner;
}

/* The timers of the peers of both lanes must run, because their states have changed. */
static void both_ready(struct msg_route *route, const struct msg_lane *lane)
{
	msg_peer_ready(route->peer);
	if (lane->partner)
		msg_peer_ready(lane->partner_route->peer);
}

static void leave_target(struct msg_route *route, struct msg_lane *lane)
{
	port_ended(route->port);
	route->busy_lanes--;
	lane->partner = NULL;
	lane->partner_route = NULL;
	lane->state = LANE_FREE;
	lane->due = NEVER;
	lane->nonce = 0;
	msg_lane_settle(route, lane);
}

/* End a transfer whose source and target do nothing for it any more. */
static void finish(struct msg_route *route, struct msg_lane *lane)
{
	struct msg_lane *target = lane->partner;
	struct msg_route *target_route = lane->partner_route;

	if (lane->complete) {
		lane->op->done += lane->length;
		msg_cc_done(&route->cc, lane->length);
	} else if (!msg_op_again(lane->op, lane->offset, lane->length)) {
		msg_lane_set_due(route, lane, route->peer->ep->now + 10 * MS);
		return;
	}
	lane->partner = NULL;
	lane->partner_route = NULL;
	port_ah_free(lane->way);
	lane->way = NULL;
	if (target)
		leave_target(target_route, target);
	msg_lane_leave(route, lane);
}

static void finish_if_fenced(struct msg_route *route, struct msg_lane *lane)
{
	if (lane->state == LANE_FENCED && (!lane->partner || lane->partner->state == LANE_FENCED))
		finish(route, lane);
}

void msg_move_fenced(struct msg_route *route, struct msg_lane *lane, bool complete)
{
	struct msg_lane *source;

	/* The source was disconnected. */
	if (!lane->op && !lane->partner) {
		msg_peer_ready(route->peer);
		leave_target(route, lane);
		return;
	}
	source = source_lane(&route, lane);
	both_ready(route, source);
	lane->state = LANE_FENCED;
	lane->due = NEVER;
	if (complete && lane != source)
		source->complete = true;
	finish_if_fenced(route, source);
}

void msg_move_give_up(struct msg_route *route, struct msg_lane *lane)
{
	struct msg_lane *source = source_lane(&route, lane);

	if (source->state != LANE_MOVE)
		return;
	both_ready(route, source);
	msg_lane_fence(route, source);
	if (source->partner)
		msg_lane_fence(source->partner_route, source->partner);
	else
		finish_if_fenced(route, source);
}

/* All bytes are in place at the target. */
static void moved(struct msg_route *route, struct msg_lane *lane)
{
	both_ready(route, lane);
	lane->complete = true;
	route->moved = route->peer->ep->now;
	route->moved_posted = max(route->moved_posted, lane->posted);
	if (!lane->resent) {
		lane->state = LANE_FENCED;
		if (lane->partner)
			lane->partner->state = LANE_FENCED;
		finish_if_fenced(route, lane);
		return;
	}
	/* The source may still read bytes for a repeated request; the target does not need them. */
	if (lane->partner) {
		lane->partner->state = LANE_FENCED;
		lane->partner->due = NEVER;
	}
	msg_lane_fence(route, lane);
}

/* ---- start ---- */

static void take(struct msg_route *route, struct msg_lane *lane)
{
	list_del(&lane->node);
	list_add_tail(&route->busy, &lane->node);
	if (++route->busy_lanes > route->most_busy)
		route->most_busy = route->busy_lanes;
	port_begun(route->port);
}

/* Request that the source sends @length bytes from @from on. */
static void request(struct msg_route *route, struct msg_lane *lane, bool again, uint32_t from,
		    uint32_t length)
{
	struct nhcadv_transfer t = msg_lane_transfer(route, lane);
	struct msg_dest dest = lane->partner_route->dest;
	uint64_t name = msg_name(route, lane->index, again ? WHAT_AGAIN : WHAT_TRANSFER, lane->tid);

	/* An address handle belongs to the protection domain of its port. */
	if (lane->way)
		dest.ah = lane->way;
	port_move(route->port, name, &route->dest, &dest, lane->partner->remote_rcxt,
		  lane->op->to_pvo + lane->offset, &t, again, from, length);
	lane->wrs++;
}

static void begin(struct msg_route *route, struct msg_lane *lane)
{
	lane->posted = route->peer->ep->now;
	lane->sent = 0;
	lane->probed = 0;
	lane->passed = 0;
	lane->nonce = 0;
	lane->seen = 0;
	lane->asked = 0;
	lane->overtaken = 0;
	lane->looked = lane->posted;
	lane->tries = 0;
	lane->resent = false;
	lane->complete = false;
	lane->asks_source = false;
	lane->state = LANE_MOVE;
	lane->partner->state = LANE_TARGET;
	lane->partner->nonce = 0;
	lane->partner->tries = 0;
	lane->partner->due = NEVER;
	msg_lane_set_inflight(route, lane, lane->length);
	msg_cc_sent(&route->cc, msg_lane_packets(lane));
	msg_lane_set_due(route, lane, route->peer->ep->now + msg_cc_overdue(&route->cc, 0));
	request(route, lane, false, 0, lane->length);
	route->stats.transfers++;
	route->stats.packets += msg_lane_packets(lane);
	route->stats.bytes += lane->length;
}

/*
 * No pair of routes is left: a source has refused, or no pair can ever work, or address handles
 * were missing, which may exist later.
 */
static enum msg_move_started no_pair(struct msg_op *op)
{
	int err = op->refused ? EPERM : 0;

	if (msg_pair_none(op->peer) || msg_pair_none(op->to) || msg_pair_impossible(op))
		err = EOPNOTSUPP;
	op->no_way = 0;
	/* If no route is ready, the move waits.  The dead routes may include a refused pair. */
	if (!err || (err == EPERM && (!msg_pair_any(op->peer) || !msg_pair_any(op->to)))) {
		if (!msg_pair_any(op->peer))
			return MSG_MOVE_WAITS;
		msg_moves_await(op);
		return MSG_MOVE_AWAITS;
	}
	msg_op_fail(op, err);
	msg_op_check(op);
	return MSG_MOVE_OVER;
}

enum msg_move_started msg_move_start(struct msg_op *op)
{
	struct msg_route *route, *target_route;
	struct msg_lane *lane, *target;
	struct msg_ah *way = NULL;
	uint32_t segment;

	for (;;) {
		switch (msg_pair_find(op, &route, &target_route)) {
		case MSG_MOVE_WAITS:
			return MSG_MOVE_WAITS;
		case MSG_MOVE_AWAITS:
			msg_moves_await(op);
			return MSG_MOVE_AWAITS;
		case MSG_MOVE_OVER:
			return no_pair(op);
		default:
			break;
		}
		if (route->port == target_route->port)
			break;
		way = port_ah(route->port, &target_route->gid);
		if (way)
			break;
		op->no_way |= msg_pair_bit(route, target_route);
	}
	lane = list_top(&route->free, struct msg_lane, node);
	take(route, lane);
	target = list_top(&target_route->free, struct msg_lane, node);
	take(target_route, target);
	segment = min(route->segment, target_route->segment) - NHCADV_MOVE_HEADER;

	lane->op = op;
	lane->way = way;
	lane->partner = target;
	lane->partner_route = target_route;
	target->partner = lane;
	target->partner_route = route;
	lane->segment = segment / 4 * 4;
	lane->length = msg_op_take(op, lane->segment * op->peer->ep->packets, &lane->offset);
	lane->tid = max(lane->tid, target->tid) + 1;
	target->tid = lane->tid;
	op->lanes++;
	begin(route, lane);
	/*
	 * The target may have another free lane, if a move that was woken for the lane could not
	 * start: wake one move.
	 */
	msg_moves_wake(op->to, 1);
	return MSG_MOVE_STARTED;
}

/* ---- completions and answers ---- */

void msg_move_posted(struct msg_route *route, struct msg_lane *lane, uint64_t name, int status)
{
	if (lane->state != LANE_MOVE || msg_name_number(name) != lane->tid ||
	    (msg_name_what(name) != WHAT_TRANSFER && msg_name_what(name) != WHAT_AGAIN))
		return;
	if (status)
		msg_move_give_up(route, lane);
	else
		lane->sent = route->peer->ep->now;
}

void msg_move_complete(struct msg_route *route, struct msg_lane *lane, uint32_t tid)
{
	if (lane->tid != tid || !lane->op || !lane->op->to)
		return;
	if (lane->state == LANE_MOVE) {
		if (!lane->resent)
			msg_cc_sample(&route->cc, route->peer->ep->now - lane->posted);
		moved(route, lane);
	} else if ((lane->state == LANE_FENCE || lane->state == LANE_FENCED) && lane->partner) {
		msg_move_fenced(lane->partner_route, lane->partner, true);
	}
}

/*
 * Request the packets again, from packet @first up to @end, that the status of the target does not
 * report.
 */
static void request_missing(struct msg_route *route, struct msg_lane *lane,
			    const struct nhcadv_frame *frame, uint32_t first, uint32_t end)
{
	uint32_t packets = msg_lane_packets(lane), next, from, to, missing = 0;

	for (; first < end; first = next) {
		next = first + 1;
		if (nhcadv_frame_has(frame, first))
			continue;
		while (next < end && !nhcadv_frame_has(frame, next))
			next++;
		/* The next probe finds the other missing packets. */
		if (!port_room(route->port, 1))
			break;
		from = first * lane->segment;
		to = next == packets ? lane->length : next * lane->segment;
		request(route, lane, true, from, to - from);
		missing += next - first;
	}
	if (!missing)
		return;
	lane->resent = true;
	route->stats.resent += missing;
	msg_cc_lost(&route->cc, missing);
	msg_cc_sent(&route->cc, missing);
}

/* Return: number of the last packet that the target has, plus one; 0: it has none */
static uint32_t last_packet(const struct msg_lane *lane, const struct nhcadv_frame *frame)
{
	uint32_t last = msg_lane_packets(lane);

	while (last && !nhcadv_frame_has(frame, last - 1))
		last--;
	return last;
}

/*
 * A source sends transfers in the order of their requests, a part of each at a time.
 * Return: true if no packet of this transfer has arrived, but the source works on earlier
 * transfers: an earlier transfer has arrived in part, or has completed since the last status.  Then
 * the request is probably not lost, and a repeated request would make the source send all packets
 * twice.
 */
static bool source_busy(const struct msg_route *route, const struct msg_lane *lane,
			const struct nhcadv_frame *frame)
{
	const struct msg_lane *earlier;

	/* A transfer that was requested later has overtaken this one. */
	if (frame->received || route->moved_posted > lane->posted)
		return false;
	if (route->moved > lane->looked)
		return true;
	/* the lanes in use are in the order of their transfers */
	list_for_each(&route->busy, earlier, node) {
		if (earlier == lane)
			break;
		if (earlier->state == LANE_MOVE && earlier->seen > 1)
			return true;
	}
	return false;
}

/*
 * The transfer is not complete.  If the target has received packets since the last status, the
 * source is still sending: request only the packets that were overtaken before the last status,
 * and each of them once.  Otherwise the missing packets or the request were lost.
 */
static void target_lacks(struct msg_route *route, struct msg_lane *lane,
			 const struct nhcadv_frame *frame)
{
	uint32_t packets = msg_lane_packets(lane), last = last_packet(lane, frame);
	bool more = frame->received + 1 > lane->seen;

	/* If the last packet has arrived, the packets that are missing were lost or reordered. */
	if (!more || packets == 1 || (last == packets && !lane->resent)) {
		request_missing(route, lane, frame, 0, packets);
		lane->asked = packets;
	} else if (lane->asked < lane->overtaken) {
		request_missing(route, lane, frame, lane->asked, lane->overtaken);
		lane->asked = lane->overtaken;
	}
	lane->overtaken = last;
	lane->seen = frame->received + 1;
}

static void target_status(struct msg_route *route, struct msg_lane *lane,
			  const struct nhcadv_frame *frame)
{
	uint64_t now = route->peer->ep->now;
	bool more, busy;

	lane->partner->nonce = 0;
	switch (frame->status) {
	case NHCADV_TRANSFER_COMPLETE:
		moved(route, lane);
		return;
	case NHCADV_TRANSFER_PROT_ERR:
		msg_op_fail(lane->op, EACCES);
		msg_move_give_up(route, lane);
		return;
	case NHCADV_TRANSFER_PARTIAL:
	case NHCADV_TRANSFER_NONE:
		more = frame->received + 1 > lane->seen && frame->status == NHCADV_TRANSFER_PARTIAL;
		busy = source_busy(route, lane, frame);
		if (more)
			lane->tries = 0;
		else if (!busy && lane->tries < UINT8_MAX)
			lane->tries++;
		/* The source is slow: wait longer for the next status. */
		if (more || busy)
			msg_cc_at_least(&route->cc, now - lane->posted);
		break;
	default:
		return;
	}
	if (lane->tries > MOVE_TRIES) {
		lane->asks_source = true;
		lane->nonce = 0;
		msg_lane_set_due(route, lane, 0);
		return;
	}
	if (!busy)
		target_lacks(route, lane, frame);
	lane->looked = now;
	msg_lane_set_due(route, lane, now + msg_cc_overdue(&route->cc, lane->tries));
}

static void source_status(struct msg_route *route, struct msg_lane *lane, uint8_t status)
{
	if (status == NHCADV_TRANSFER_PROT_ERR)
		msg_op_fail(lane->op, EACCES);
	/* Another pair of routes may be allowed. */
	else if (status == NHCADV_TRANSFER_FORBIDDEN && lane->partner)
		lane->op->refused |= msg_pair_bit(route, lane->partner_route);
	route->stats.redriven++;
	msg_move_give_up(route, lane);
}

void msg_move_status(struct msg_route *route, struct msg_lane *lane,
		     const struct nhcadv_frame *frame)
{
	enum msg_what what = msg_name_what(frame->cookie);
	struct msg_route *source_route = route;
	struct msg_lane *source = source_lane(&source_route, lane);

	if (source->state != LANE_MOVE || frame->tid != source->tid)
		return;
	msg_route_confirmed(route);
	/* msg_route_confirmed() may have abandoned the transfer, if one of its routes is dead. */
	if (source->state != LANE_MOVE)
		return;
	both_ready(source_route, source);
	if (lane != source && what == WHAT_PROBE) {
		msg_cc_sample(&route->cc, route->peer->ep->now - lane->probed);
		target_status(source_route, source, frame);
	} else if (lane == source && (what == WHAT_SOURCE || what == WHAT_TRANSFER ||
				      what == WHAT_AGAIN)) {
		source_status(route, source, frame->status);
	}
}

/* ---- timers ---- */

static void ask(struct msg_route *route, struct msg_lane *asked, struct msg_lane *source,
		enum msg_what what)
{
	struct nhcadv_msg_ep *ep = route->peer->ep;
	struct nhcadv_transfer t = {
		.local_rcxt = asked->local_rcxt, .remote_rcxt = asked->remote_rcxt,
		.tid = source->tid, .total = source->length, .segment = source->segment,
		.notify = NHCADV_NOTIFY_INITIATOR,
	};

	if (!++ep->nonce)
		ep->nonce = 1;
	asked->nonce = ep->nonce;
	asked->probed = ep->now;
	asked->wrs++;
	t.cookie = msg_name(route, asked->index, what, asked->nonce);
	route->stats.probes++;
	port_probe(route->port, t.cookie, &route->dest, &t);
	msg_route_probed(route);
}

void msg_move_timer(struct msg_route *route, struct msg_lane *lane)
{
	struct msg_lane *target = lane->partner;
	struct msg_route *to = lane->partner_route;
	uint64_t now = route->peer->ep->now;

	/* The route to the target may now be silent, so its timers must run. */
	if (to && to != route)
		msg_peer_ready(to->peer);
	if (lane->state == LANE_FENCED) {
		finish_if_fenced(route, lane);
		return;
	}
	if ((lane->asks_source ? lane : target)->nonce && lane->tries < UINT8_MAX)
		lane->tries++;
	if (lane->tries > MOVE_GIVE_UP && route->alive && to->alive) {
		route->stats.redriven++;
		msg_move_give_up(route, lane);
		return;
	}
	if (!port_room(route->port, 1) || !port_room(to->port, 1)) {
		msg_lane_set_due(route, lane, now + MSG_AGAIN_LATER);
		return;
	}
	if (lane->asks_source)
		ask(route, lane, lane, WHAT_SOURCE);
	else if (target->local_rcxt)
		ask(to, target, lane, WHAT_PROBE);
	msg_lane_set_due(route, lane, now + max(msg_cc_overdue(&route->cc, lane->tries),
						msg_cc_overdue(&to->cc, lane->tries)));
}

/* ---- disconnect ---- */

/* Detach the lane of a peer that goes from its partner, which belongs to another peer. */
static void forget_lane(struct msg_port *port, struct msg_lane *lane)
{
	struct msg_lane *partner = lane->partner;
	struct msg_route *route = lane->partner_route;

	lane->partner = NULL;
	partner->partner = NULL;
	partner->partner_route = NULL;
	msg_peer_ready(route->peer);
	if (!partner->op) {
		/* Bytes may still come to an unfenced target: fence it before another use. */
		if (partner->state == LANE_FENCED)
			leave_target(route, partner);
		else if (partner->state == LANE_TARGET)
			msg_lane_fence(route, partner);
		return;
	}
	/* route_free() must not end the transfer again. */
	port_ended(port);
	lane->state = LANE_FREE;
	msg_op_fail(partner->op, ECANCELED);
	if (partner->state == LANE_MOVE)
		msg_lane_fence(route, partner);
	else
		finish_if_fenced(route, partner);
}

static void forget_ops(struct list_head *list, const struct msg_peer *to)
{
	struct msg_op *op, *next;

	list_for_each_safe(list, op, next, node) {
		/* msg_op_check() may move an operation to the list that is walked next. */
		if (op->to != to || op->status)
			continue;
		msg_op_fail(op, ECANCELED);
		msg_op_check(op);
	}
}

void msg_moves_forget(struct msg_peer *peer)
{
	struct nhcadv_msg_ep *ep = peer->ep;
	struct msg_peer *other;
	uint32_t i, l;

	if (!ep->moves)
		return;
	msg_moves_collect(peer);
	forget_ops(&peer->awaiting, peer);
	for (i = 0; i < peer->num_routes; i++)
		for (l = 0; l < ep->lanes; l++)
			if (peer->routes[i]->lanes[l].partner &&
			    peer->routes[i]->lanes[l].partner_route->peer != peer)
				forget_lane(peer->routes[i]->port, &peer->routes[i]->lanes[l]);
	list_for_each(&ep->peers, other, node) {
		if (other == peer)
			continue;
		forget_ops(&other->moves, peer);
		forget_ops(&other->going, peer);
		msg_peer_ready(other);
	}
}

/* ---- the API of moves ---- */

int nhcadv_msg_move(struct nhcadv_msg_ep *ep, struct nhcadv_msg_peer *from, uint64_t from_pvo,
		    struct nhcadv_msg_peer *to, uint64_t to_pvo, uint64_t length, uint64_t id,
		    uint32_t flags)
{
	struct msg_op *op;

	/* A move takes two lanes. */
	if (flags || from->peer.ep != ep || to->peer.ep != ep || (from == to && ep->lanes < 2))
		return EINVAL;
	if (!msg_ep_has_moves(ep))
		return EOPNOTSUPP;
	op = calloc(1, sizeof(*op));
	if (!op)
		return ENOMEM;
	op->peer = &from->peer;
	op->to = &to->peer;
	op->remote_pvo = from_pvo;
	op->to_pvo = to_pvo;
	op->length = length;
	op->id = id;
	list_head_init(&op->pieces);

	msg_ep_lock(ep);
	if (msg_reserve(ep)) {
		msg_ep_unlock(ep);
		free(op);
		return ENOMEM;
	}
	ep->moves++;
	list_add_tail(&op->peer->moves, &op->node);
	ep->now = msg_clock();
	msg_peer_ready(op->peer);
	if (list_empty(&ep->starved))
		msg_pump(op->peer);
	msg_ep_unlock(ep);
	return 0;
}
