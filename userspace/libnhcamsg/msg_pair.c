// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Reliable messages: the pair of routes for a transfer of a move, and moves that wait for a pair.
 *
 * A move that finds no room at its source stays in msg_peer.moves of the source: the other moves of
 * that list would also find none.  A move that finds no room at its target waits in
 * msg_peer.awaiting of the target, until the target is served.
 */
#include <assert.h>

#include "msg.h"

/* Slots of the send FIFO that new transfers leave free for all other work requests */
#define RESERVE		64

static bool usable(const struct msg_route *route)
{
	return route->alive && msg_route_ready(route);
}

static bool capable(const struct msg_route *route)
{
	return usable(route) && route->moves && route->port->moves;
}

bool msg_pair_none(const struct msg_peer *peer)
{
	bool ready = false;
	uint32_t i;

	for (i = 0; i < peer->num_routes; i++) {
		if (capable(peer->routes[i]))
			return false;
		ready |= usable(peer->routes[i]);
	}
	return ready;
}

bool msg_pair_any(const struct msg_peer *peer)
{
	uint32_t i;

	for (i = 0; i < peer->num_routes; i++)
		if (capable(peer->routes[i]))
			return true;
	return false;
}

/* Return: true if moves will never use the route, even when all links are up */
static bool incapable(const struct msg_route *route)
{
	return !msg_same_family(&route->port->gid, &route->gid) ||
	       (usable(route) && !capable(route));
}

bool msg_pair_impossible(const struct msg_op *op)
{
	const struct msg_route *source, *target;
	uint32_t i, k;

	for (i = 0; i < op->peer->num_routes; i++)
		for (k = 0; k < op->to->num_routes; k++) {
			source = op->peer->routes[i];
			target = op->to->routes[k];
			if (msg_same_family(&source->gid, &target->gid) && !incapable(source) &&
			    !incapable(target))
				return false;
		}
	return true;
}

/* ---- pairs of routes ---- */

/* A pair is one bit in msg_op.refused and msg_op.no_way. */
uint64_t msg_pair_bit(const struct msg_route *source, const struct msg_route *target)
{
	static_assert(NHCADV_MSG_MAX_PATHS * NHCADV_MSG_MAX_PATHS <= 64, "pairs");
	return UINT64_C(1) << (source->number * NHCADV_MSG_MAX_PATHS + target->number);
}

/*
 * The networks of different paths may not be connected.  So prefer a pair of the same path, and
 * then a pair of the same port.
 * Return: a number; a pair with a lower number is preferred.
 */
static int distance(const struct msg_route *source, const struct msg_route *target)
{
	if (source->port != target->port)
		return 2;
	return source->number != target->number;
}

/*
 * Return: the route to the target with the lowest distance() to this route to the source, if this
 * number is at most @most; otherwise NULL
 */
static struct msg_route *partner_of(const struct msg_op *op, const struct msg_route *source,
				    int most)
{
	struct msg_route *best = NULL, *target;
	uint32_t i;

	for (i = 0; i < op->to->num_routes; i++) {
		target = op->to->routes[(op->to->next_route + i) % op->to->num_routes];
		if (!capable(target) || !msg_same_family(&source->gid, &target->gid) ||
		    (op->refused | op->no_way) & msg_pair_bit(source, target) ||
		    distance(source, target) > most ||
		    (best && distance(source, target) >= distance(source, best)))
			continue;
		best = target;
	}
	return best;
}

/* Return: true if the route has @lanes free lanes, and its port has room */
static bool has_room(struct msg_route *route, uint32_t lanes)
{
	struct list_node *first = route->free.n.next;

	if (list_empty(&route->free) || (lanes == 2 && first->next == &route->free.n)) {
		route->lanes_short = true;
		return false;
	}
	return port_room(route->port, RESERVE) && port_may_begin(route->port);
}

enum msg_move_started msg_pair_find(struct msg_op *op, struct msg_route **source,
				    struct msg_route **target)
{
	struct msg_peer *peer = op->peer;
	bool any = false, room = false;
	uint32_t i;
	int most;

	for (most = 1; most <= 2 && !any; most++)
		for (i = 0; i < peer->num_routes; i++) {
			*source = peer->routes[(peer->next_route + i) % peer->num_routes];
			*target = capable(*source) ? partner_of(op, *source, most) : NULL;
			if (!*target)
				continue;
			any = true;
			if (!has_room(*source, 1) ||
			    !msg_cc_may_send(&(*source)->cc,
					     (*source)->segment * peer->ep->packets))
				continue;
			room = true;
			if (!has_room(*target, *source == *target ? 2 : 1))
				continue;
			peer->next_route += i + 1;
			if (op->to != peer)
				op->to->next_route++;
			return MSG_MOVE_STARTED;
		}
	if (!any)
		return MSG_MOVE_OVER;
	return room ? MSG_MOVE_AWAITS : MSG_MOVE_WAITS;
}

/* ---- moves that wait for their target ---- */

void msg_moves_await(struct msg_op *op)
{
	op->tried = op->peer->ep->now;
	list_del(&op->node);
	list_add_tail(&op->to->awaiting, &op->node);
	msg_peer_by(op->to, op->tried + MOVES_PAUSE);
}

/* Return: number of free lanes of routes that can take part in moves, at most @most */
static uint32_t free_lanes(const struct msg_peer *peer, uint32_t most)
{
	const struct msg_lane *lane;
	uint32_t i, n = 0;

	for (i = 0; i < peer->num_routes; i++) {
		if (!capable(peer->routes[i]))
			continue;
		list_for_each(&peer->routes[i]->free, lane, node)
			if (++n >= most)
				return most;
	}
	return n;
}

/*
 * As many moves wake as there are free lanes.  If no route can take part in moves, one move wakes,
 * because it may have to fail.  A move tries once in a pass.
 */
void msg_moves_wake(struct msg_peer *to, uint32_t most)
{
	struct msg_op *op;
	uint32_t n;

	if (list_empty(&to->awaiting))
		return;
	n = msg_pair_any(to) ? free_lanes(to, most) : 1;
	while (n-- && (op = list_top(&to->awaiting, struct msg_op, node))) {
		/* Two peers must not wake each other for ever. */
		if (op->tried == to->ep->now)
			return;
		list_del(&op->node);
		list_add_tail(&op->peer->moves, &op->node);
		msg_peer_ready(op->peer);
	}
}

void msg_moves_collect(struct msg_peer *from)
{
	struct msg_op *op, *next;
	struct msg_peer *to;

	if (!from->ep->moves)
		return;
	list_for_each(&from->ep->peers, to, node)
		list_for_each_safe(&to->awaiting, op, next, node) {
			if (op->peer != from)
				continue;
			list_del(&op->node);
			list_add_tail(&from->moves, &op->node);
		}
}
