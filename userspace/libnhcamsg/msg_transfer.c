// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Reliable messages: writes and reads.
 *
 * A message is cut into transfers.  Each transfer occupies a lane until its bytes are in place.  If
 * a transfer is overdue, the library probes: the rCxt of the peer for a write, the local rCxt for a
 * read (a probe to the local channel).  A transfer is overdue after the smoothed round trip time
 * plus four mean deviations, or if a transfer that was sent later has overtaken it by more than
 * msg_cc_reordering().  The status in the answer (NHCADV_TRANSFER_*) decides what follows:
 *
 *	both	COMPLETE	the transfer is complete
 *		PROT_ERR	the message fails with EACCES
 *	write	PARTIAL		retransmit the missing packets with the same tid
 *		NONE		send the whole transfer again with a higher tid
 *	read	PARTIAL, and no more packets are expected (read_is_over())
 *				some packets have arrived: cancel the transfer, and read the
 *				missing bytes again; no packet has arrived: probe the rCxt of the
 *				peer (PROT_ERR: the message fails), then cancel and read again
 *		NONE		cancel the transfer, and read all its bytes again
 */
#include <errno.h>
#include <string.h>

#include "msg.h"

/*
 * Slots of the send FIFO that new transfers leave free for all other work requests: probes,
 * retransmissions, cancels, fences, and packets to the library of the peer
 */
#define RESERVE		64
/* Transfers of a message before the next message of the peer is served */
#define OP_QUANTUM	8
/* Transfers of a peer before the next peer is served */
#define PEER_QUANTUM	8
/* Maximum number of probes of the peer about a read of which no packet has arrived */
#define SOURCE_TRIES	4
/*
 * Maximum number of unanswered probes of the local rCxt of a read.  After these the local address
 * counts as unreachable: cancel the transfer, and read all its bytes again.
 */
#define BLIND		3

/* ---- start of transfers ---- */

/* Return: maximum bytes of a packet of @op */
static uint32_t segment_for(const struct msg_route *route, const struct msg_op *op)
{
	uint32_t segment = msg_route_segment(route);

	return op->iov ? min_t(uint32_t, segment, PORT_PART) : segment;
}

/*
 * Find a route for the next transfer of @op.
 * @packets: maximum packets of the transfer
 * @segment: output: bytes of a packet
 * @starved: output: true if a route lacks only free slots of its port, or room in its CQ
 */
static struct msg_route *route_with_room(struct msg_peer *peer, const struct msg_op *op,
					 uint32_t packets, uint32_t *segment, bool *starved)
{
	uint32_t i, most, slots = op->iov ? packets : 1;
	struct msg_route *route;

	*starved = false;
	for (i = 0; i < peer->num_routes; i++) {
		route = peer->routes[(peer->next_route + i) % peer->num_routes];
		*segment = segment_for(route, op);
		most = *segment * packets;
		if (!route->alive || !msg_route_ready(route))
			continue;
		if (list_empty(&route->free)) {
			route->lanes_short |= msg_cc_has_room(&route->cc, most);
			continue;
		}
		if (!msg_cc_may_send(&route->cc, most))
			continue;
		if (!port_room(route->port, RESERVE + slots - 1) || !port_may_begin(route->port)) {
			*starved = true;
			continue;
		}
		peer->next_route += i + 1;
		return route;
	}
	return NULL;
}

/* A lane has taken bytes of @op.  After OP_QUANTUM transfers, moves @op to the end of its list. */
static void next_turn(struct msg_op *op)
{
	if (!msg_op_has_work(op)) {
		msg_op_sort(op);
	} else if (++op->transfers % OP_QUANTUM == 0) {
		list_del(&op->node);
		list_add_tail(msg_op_list(op), &op->node);
	}
}

/* Writes and reads take turns with moves.  @moves: moves may start */
static struct msg_op *next_op(struct msg_peer *peer, bool moves)
{
	struct msg_op *op = list_top(&peer->todo, struct msg_op, node);
	struct msg_op *move = moves ? list_top(&peer->moves, struct msg_op, node) : NULL;

	peer->move_next = !peer->move_next;
	return move && (peer->move_next || !op) ? move : op;
}

enum msg_pumped msg_pump(struct msg_peer *peer)
{
	uint32_t segment, packets, begun = 0;
	struct msg_route *route;
	struct msg_lane *lane;
	bool starved, moves = true;
	struct msg_op *op;

	while ((op = next_op(peer, moves))) {
		/* The operation has failed, and only waits until all lanes have left it. */
		if (!msg_op_has_work(op)) {
			msg_op_sort(op);
			continue;
		}
		if (begun == PEER_QUANTUM)
			return MSG_PUMP_QUANTUM;
		if (op->to) {
			switch (msg_move_start(op)) {
			case MSG_MOVE_WAITS:
				/* All other moves from this peer would also wait. */
				moves = false;
				break;
			case MSG_MOVE_STARTED:
				begun++;
				next_turn(op);
				break;
			default:
				break;
			}
			continue;
		}
		begun++;
		packets = peer->ep->packets;
		if (op->iov)
			packets = min_t(uint32_t, packets, MSG_IOV_PACKETS);
		route = route_with_room(peer, op, packets, &segment, &starved);
		if (!route)
			return starved ? MSG_PUMP_STARVED : MSG_PUMP_DONE;
		lane = list_pop(&route->free, struct msg_lane, node);
		list_add_tail(&route->busy, &lane->node);
		if (++route->busy_lanes > route->most_busy)
			route->most_busy = route->busy_lanes;
		port_begun(route->port);
		lane->op = op;
		lane->segment = segment;
		lane->length = msg_op_take(op, segment * packets, &lane->offset);
		lane->tries = 0;
		op->lanes++;
		msg_lane_begin(route, lane);
		route->stats.transfers++;
		route->stats.packets += msg_lane_packets(lane);
		route->stats.bytes += lane->length;

		next_turn(op);
	}
	return MSG_PUMP_DONE;
}

/* ---- completions and answers ---- */

/* A transfer, or the answer to a probe, has arrived: measure the reordering. */
static void came(struct msg_route *route, struct msg_lane *lane)
{
	msg_cc_reordered(&route->cc, lane->passed ? route->peer->ep->now - lane->passed : 0);
	lane->passed = 0;
}

/*
 * The packets of lane @by, or its probe, were sent at @when and have arrived.  Transfers of the
 * same kind that were sent before @when are overdue after msg_cc_reordering().  The rule does not
 * apply to a read that is longer than @by: the peer sends the data of reads by round robin, so a
 * shorter read completes earlier.
 */
static void overtaken(struct msg_route *route, const struct msg_lane *by, uint64_t when)
{
	uint64_t due = route->peer->ep->now + msg_cc_reordering(&route->cc);
	struct msg_lane *lane;
	uint64_t last;

	list_for_each(&route->busy, lane, node) {
		last = lane->probed > lane->sent ? lane->probed : lane->sent;
		if (lane->state != by->state || !lane->sent || last >= when ||
		    (lane->state == LANE_READ && lane->length > by->length))
			continue;
		if (!lane->passed)
			lane->passed = route->peer->ep->now;
		if (lane->due > due)
			msg_lane_set_due(route, lane, due);
	}
}

/*
 * A work request of the transfer failed, because its packets are too long for the MTU or the kernel
 * had no memory.  It has sent no packet.  But if the transfer was started again, packets with a
 * lower tid may still be in the network, so the transfer must be abandoned.
 */
static void not_begun(struct msg_route *route, struct msg_lane *lane)
{
	/* Of a write from buffers, other packets may have been sent. */
	if (lane->resent || lane->op->iov)
		msg_lane_give_up(route, lane);
	else
		msg_lane_unsent(route, lane);
}

/* The kernel neither places nor sends bytes of the transfer any more. */
static void cancelled(struct msg_route *route, struct msg_lane *lane)
{
	if (lane->state == LANE_RELEASE)
		msg_lane_leave(route, lane);
	else
		msg_lane_requeue(route, lane);
}

void msg_lane_posted(struct msg_route *route, struct msg_lane *lane, uint64_t name, int status)
{
	uint64_t now = route->peer->ep->now;

	lane->wrs--;
	if (lane->state == LANE_MOVE) {
		msg_move_posted(route, lane, name, status);
		return;
	}
	switch (msg_name_what(name)) {
	case WHAT_TRANSFER:
	case WHAT_AGAIN:
		if ((lane->state != LANE_WRITE && lane->state != LANE_READ) ||
		    msg_name_number(name) != lane->tid)
			break;
		if (status && msg_name_what(name) == WHAT_TRANSFER) {
			not_begun(route, lane);
			break;
		}
		if (status == EMSGSIZE) {
			msg_lane_give_up(route, lane);
			break;
		}
		lane->sent = now;
		lane->passed = 0;
		msg_lane_set_due(route, lane, now + msg_cc_overdue(&route->cc, lane->tries));
		break;
	case WHAT_CANCEL:
		if ((lane->state != LANE_CANCEL && lane->state != LANE_RELEASE) ||
		    msg_name_number(name) != lane->tid)
			break;
		lane->cancelled = true;
		cancelled(route, lane);
		return;
	default:
		break;
	}
	msg_lane_settle(route, lane);
}

void msg_lane_complete(struct msg_route *route, struct msg_lane *lane, uint32_t tid, bool read)
{
	uint64_t now = route->peer->ep->now;

	if (lane->tid != tid)
		return;
	if (read ? lane->state != LANE_READ && lane->state != LANE_SOURCE &&
		   lane->state != LANE_CANCEL :
		   lane->state != LANE_WRITE && lane->state != LANE_FENCE)
		return;
	msg_route_confirmed(route);
	/* Other lanes may already transfer bytes of this transfer, so ignore the completion. */
	if (lane->state == LANE_CANCEL && lane->cancelled)
		return;
	if (!lane->resent) {
		msg_cc_sample(&route->cc, now - lane->posted);
		came(route, lane);
	}
	overtaken(route, lane, lane->resent ? lane->posted : lane->sent);
	msg_lane_done(route, lane);
}

static void write_partial(struct msg_route *route, struct msg_lane *lane,
			  const struct nhcadv_frame *frame)
{
	struct nhcadv_transfer t = msg_lane_transfer(route, lane);
	uint64_t name = msg_name(route, lane->index, WHAT_AGAIN, lane->tid);
	uint32_t packets = msg_lane_packets(lane), first, end, from, to, bytes = 0, missing = 0;

	lane->tries = 0;
	if (lane->segment > msg_route_segment(route)) {
		/* The MTU has become too small for packets of this transfer. */
		msg_lane_give_up(route, lane);
		return;
	}
	for (first = 0; first < packets; first = end) {
		end = first + 1;
		if (nhcadv_frame_has(frame, first))
			continue;
		/* a work request of a write from buffers has one packet */
		while (!lane->op->iov && end < packets && !nhcadv_frame_has(frame, end))
			end++;
		/* The next probe finds the other missing packets. */
		if (!port_room(route->port, 1))
			break;
		from = first * lane->segment;
		to = end == packets ? lane->length : end * lane->segment;
		if (lane->op->iov)
			msg_iov_post(route, lane, name, &t, first);
		else
			port_rewrite(route->port, name, &route->dest, &t, from, to - from);
		lane->wrs++;
		bytes += to - from;
		missing += end - first;
	}
	msg_lane_set_inflight(route, lane, bytes);
	lane->resent = true;
	lane->probed = 0;
	lane->nonce = 0;
	if (!missing) {
		/* The last packets are being placed, or there was no free slot. */
		msg_lane_set_due(route, lane, route->peer->ep->now + MSG_AGAIN_LATER);
		return;
	}
	lane->sent = 0;
	lane->due = NEVER;
	route->stats.resent += missing;
	msg_cc_lost(&route->cc, missing);
	msg_cc_sent(&route->cc, missing);
	msg_route_probed(route);
}

/*
 * Return: true if no more packets of a read are expected:
 * - The last packet has arrived, which the peer sends last.
 * - A read that was posted later and is not shorter has completed.  The peer has therefore not
 *   received the request of this read, or has sent all packets of this read.
 * - No packet has arrived since the last status.
 * Otherwise the peer may still be sending.  To read again would add to its load.
 */
static bool read_is_over(const struct msg_route *route, const struct msg_lane *lane,
			 const struct nhcadv_frame *frame)
{
	if (nhcadv_frame_has(frame, msg_lane_packets(lane) - 1))
		return true;
	if (lane->passed &&
	    route->peer->ep->now - lane->passed >= msg_cc_reordering(&route->cc))
		return true;
	return frame->received + 1 == lane->seen;
}

static void read_partial(struct msg_route *route, struct msg_lane *lane,
			 const struct nhcadv_frame *frame)
{
	uint64_t now = route->peer->ep->now;
	uint32_t packets = msg_lane_packets(lane), i, missing = 0;

	lane->tries = 0;
	if (!read_is_over(route, lane, frame)) {
		if (frame->received) {
			msg_route_confirmed(route);
			msg_cc_at_least(&route->cc, now - lane->posted);
		}
		lane->seen = frame->received + 1;
		lane->nonce = 0;
		msg_lane_set_due(route, lane, now + msg_cc_overdue(&route->cc, !frame->received));
		return;
	}
	if (!frame->received) {
		/* packets were lost, or the peer's memory protection has refused the read */
		lane->state = LANE_SOURCE;
		lane->nonce = 0;
		msg_lane_set_due(route, lane, now);
		return;
	}
	msg_lane_cancel(route, lane);
	for (i = 0; i < packets; i++) {
		if (nhcadv_frame_has(frame, i))
			lane->have[i / 64] |= UINT64_C(1) << i % 64;
		else
			missing++;
	}
	route->stats.resent += missing;
	route->stats.redriven++;
	msg_cc_lost(&route->cc, missing);
}

/* Cancel a read of which no packet has arrived, after the rCxt of the peer has answered. */
static void read_source(struct msg_route *route, struct msg_lane *lane, uint8_t status)
{
	if (status == NHCADV_TRANSFER_PROT_ERR)
		msg_op_fail(lane->op, EACCES);
	route->stats.redriven++;
	msg_cc_lost(&route->cc, 1);
	msg_lane_cancel(route, lane);
}

void msg_lane_status(struct msg_route *route, struct msg_lane *lane,
		     const struct nhcadv_frame *frame)
{
	bool source = msg_name_what(frame->cookie) == WHAT_SOURCE;

	if (frame->tid != lane->tid || source != (lane->state == LANE_SOURCE) ||
	    (lane->state != LANE_WRITE && lane->state != LANE_READ && !source))
		return;
	if (source) {
		msg_route_confirmed(route);
		read_source(route, lane, frame->status);
		return;
	}
	if (lane->state == LANE_WRITE) {
		msg_route_confirmed(route);
		msg_cc_sample(&route->cc, route->peer->ep->now - lane->probed);
		came(route, lane);
		overtaken(route, lane, lane->probed);
	}
	lane->nonce = 0;
	switch (frame->status) {
	case NHCADV_TRANSFER_COMPLETE:
		msg_lane_done(route, lane);
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
		msg_cc_lost(&route->cc, msg_lane_packets(lane));
		if (lane->state != LANE_WRITE)
			msg_lane_cancel(route, lane);
		else if (lane->segment > msg_route_segment(route))
			msg_lane_give_up(route, lane);
		else
			msg_lane_redrive(route, lane);
		break;
	case NHCADV_TRANSFER_PROT_ERR:
		msg_op_fail(lane->op, EACCES);
		if (lane->state == LANE_WRITE)
			msg_lane_release(route, lane);
		else
			msg_lane_leave(route, lane);
		break;
	}
}

void msg_lane_fenced(struct msg_route *route, struct msg_lane *lane, uint32_t tid)
{
	if (lane->state == LANE_FENCE && tid >= lane->tid) {
		if (msg_lane_moves(lane)) {
			msg_move_fenced(route, lane, false);
			return;
		}
		route->stats.redriven++;
		msg_lane_requeue(route, lane);
	}
}

void msg_lane_fence_status(struct msg_route *route, struct msg_lane *lane,
			   const struct nhcadv_frame *frame)
{
	if (lane->state != LANE_FENCE || frame->src_rcxt != lane->remote_rcxt ||
	    frame->tid != lane->tid || msg_name_number(frame->cookie) != lane->tid)
		return;
	if (frame->status == NHCADV_TRANSFER_COMPLETE && msg_lane_moves(lane)) {
		msg_move_fenced(route, lane, true);
	} else if (frame->status == NHCADV_TRANSFER_COMPLETE) {
		lane->op->done += lane->length;
		msg_cc_done(&route->cc, lane->length);
		msg_lane_release(route, lane);
	} else if (frame->status == NHCADV_TRANSFER_FENCED) {
		msg_lane_fenced(route, lane, lane->tid);
	}
}

/* ---- timers ---- */

/* Send a probe, or cancel a read after too many probes without an answer. */
static void ask(struct msg_route *route, struct msg_lane *lane)
{
	struct nhcadv_msg_ep *ep = route->peer->ep;
	struct nhcadv_transfer t = msg_lane_transfer(route, lane);
	uint64_t name;

	if (lane->nonce) {
		if (lane->tries < UINT8_MAX)
			lane->tries++;
		if (route->silent != NEVER &&
		    ep->now - route->silent > 2 * msg_cc_overdue(&route->cc, 0))
			msg_cc_silent(&route->cc, ep->now);
	}
	if ((lane->state == LANE_READ && lane->tries >= BLIND) ||
	    (lane->state == LANE_SOURCE && lane->tries >= SOURCE_TRIES)) {
		msg_lane_cancel(route, lane);
		return;
	}
	if (!++ep->nonce)
		ep->nonce = 1;
	lane->nonce = ep->nonce;
	lane->probed = ep->now;
	if (lane->state == LANE_WRITE)
		lane->passed = 0;
	lane->wrs++;
	name = msg_name(route, lane->index, lane->state == LANE_SOURCE ? WHAT_SOURCE : WHAT_PROBE,
			lane->nonce);
	t.cookie = name;
	route->stats.probes++;
	if (lane->state == LANE_READ) {
		t.remote_rcxt = lane->local_rcxt;
		port_probe(route->port, name, &route->self, &t);
	} else {
		port_probe(route->port, name, &route->dest, &t);
		msg_route_probed(route);
	}
	msg_lane_set_due(route, lane, ep->now + msg_cc_overdue(&route->cc, lane->tries));
}

static void lane_timer(struct msg_route *route, struct msg_lane *lane)
{
	uint64_t now = route->peer->ep->now;

	switch (lane->state) {
	case LANE_FREE:
	case LANE_TARGET:
		lane->due = NEVER;
		break;
	case LANE_MOVE:
	case LANE_FENCED:
		lane->due = NEVER;
		if (lane->op)
			msg_move_timer(route, lane);
		break;
	case LANE_WRITE:
	case LANE_READ:
	case LANE_SOURCE:
		if (port_room(route->port, 1))
			ask(route, lane);
		else
			msg_lane_set_due(route, lane, now + MSG_AGAIN_LATER);
		break;
	case LANE_FENCE:
	case LANE_RENEW:
		/*
		 * LANE_FENCE sends two requests: one that the kernel of the peer answers even if
		 * the program there does not poll, and one that the library of the peer answers.
		 */
		if (lane->state == LANE_FENCE)
			msg_route_fence(route, lane);
		msg_send_fence(route, lane, lane->state == LANE_FENCE ? lane->tid : UINT32_MAX);
		msg_lane_set_due(route, lane, now + msg_cc_overdue(&route->cc, lane->tries));
		if (lane->tries < UINT8_MAX)
			lane->tries++;
		break;
	case LANE_RELEASE:
	case LANE_CANCEL:
		lane->due = NEVER;
		if (lane->cancelled) {
			cancelled(route, lane);
		} else if (!lane->probed) {
			if (!port_room(route->port, 1)) {
				msg_lane_set_due(route, lane, now + MSG_AGAIN_LATER);
				break;
			}
			lane->probed = now;
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
		msg_lane_wake(route, lane->due);
	return route->next;
}

/* ---- dead routes, new channels ---- */

void msg_lanes_redrive(struct msg_route *route)
{
	struct msg_lane *lane;

	list_for_each(&route->busy, lane, node)
		msg_lane_give_up(route, lane);
}

void msg_lane_lost(struct msg_route *route, struct msg_lane *lane)
{
	lane->wrs = 0;
	switch (lane->state) {
	case LANE_WRITE:
		/* The rCxt of the peer still exists and accepts late packets, so it is fenced. */
		msg_lane_fence(route, lane);
		break;
	case LANE_MOVE:
	case LANE_TARGET:
		/* Source and target still accept late requests and packets. */
		msg_move_give_up(route, lane);
		break;
	case LANE_READ:
	case LANE_SOURCE:
		msg_lane_cancel(route, lane);
		/* fallthrough */
	case LANE_RELEASE:
	case LANE_CANCEL:
		lane->cancelled = true;
		msg_lane_set_due(route, lane, 0);
		break;
	default:
		msg_lane_settle(route, lane);
	}
}

void msg_lane_new_remote(struct msg_route *route, struct msg_lane *lane, uint64_t rcxt)
{
	uint64_t fresh;

	if (lane->remote_rcxt == rcxt)
		return;
	lane->remote_rcxt = rcxt;
	switch (lane->state) {
	case LANE_MOVE:
	case LANE_TARGET:
		msg_move_give_up(route, lane);
		msg_lane_fenced(route, lane, lane->tid);
		break;
	case LANE_WRITE:
		msg_lane_fence(route, lane);
		/* fallthrough */
	case LANE_FENCE:
		/* The peer has released its old rCxt, so the kernel there drops late packets. */
		msg_lane_fenced(route, lane, lane->tid);
		break;
	case LANE_READ:
	case LANE_SOURCE:
		msg_lane_cancel(route, lane);
		break;
	case LANE_RENEW:
		/* The tids of the local rCxt are also used up: replace the rCxt. */
		if (port_acquire(route->port, &fresh, 1)) {
			msg_lane_set_due(route, lane, route->peer->ep->now + 100 * MS);
			break;
		}
		port_release(route->port, &lane->local_rcxt, 1);
		lane->local_rcxt = fresh;
		lane->tid = 0;
		lane->state = LANE_FREE;
		lane->due = NEVER;
		/* fallthrough */
	default:
		msg_lane_settle(route, lane);
	}
}

/* ---- cancelling ---- */

int msg_op_cancel(struct msg_op *op)
{
	struct msg_peer *peer = op->peer;
	struct msg_lane *lane;
	uint32_t i;

	if (op->notice_queued)
		return EALREADY;
	msg_op_fail(op, ECANCELED);
	/* The count keeps the operation from being freed while lanes leave the operation. */
	op->lanes++;
	for (i = 0; i < peer->num_routes; i++)
		list_for_each(&peer->routes[i]->busy, lane, node)
			if (lane->op == op)
				msg_lane_give_up(peer->routes[i], lane);
	op->lanes--;
	msg_op_check(op);
	return 0;
}
