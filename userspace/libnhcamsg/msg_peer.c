// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Reliable messages: peers, and the routes to them.
 *
 * A route becomes dead if the kernel of the peer (not its program) has not answered for
 * nhcadv_msg_ep.dead, or for twice the retransmission timeout if this is longer.  While the local
 * link is down, a quarter of nhcadv_msg_ep.dead is enough.  A route also becomes dead when the
 * channel of its port is closed.  The transfers of a dead route move to routes that are alive.  The
 * library probes the dead route until an answer arrives.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "msg.h"

#define PING_PAUSE	(20 * MS)	/* delay between the first two probes of a route */
#define PING_TRIES	5		/* maximum doublings of that delay: 640 ms */
#define CHECK_PAUSE	(100 * MS)	/* minimum time between two queries of the link state */

/* ---- dead and living routes ---- */

static void redrive_dead(struct msg_peer *peer)
{
	uint32_t i;

	if (!msg_any_alive(peer))
		return;
	for (i = 0; i < peer->num_routes; i++)
		if (!peer->routes[i]->alive)
			msg_lanes_redrive(peer->routes[i]);
}

static void tell_reachable(struct msg_peer *peer)
{
	bool reachable = msg_any_alive(peer);

	if (reachable == peer->reachable || msg_reserve(peer->ep))
		return;
	peer->reachable = reachable;
	msg_complete(peer, reachable ? NHCADV_MSG_REACHABLE : NHCADV_MSG_UNREACHABLE, 0, 0, 0, 0,
		     NULL);
}

static void route_die(struct msg_route *route)
{
	if (!route->alive)
		return;
	route->alive = false;
	route->stats.deaths++;
	route->silent = NEVER;
	route->ping = 0;
	route->ping_tries = 0;
	tell_reachable(route->peer);
	/* If no route is alive, the lanes of this route go on probing. */
	redrive_dead(route->peer);
}

void msg_route_confirmed(struct msg_route *route)
{
	route->silent = NEVER;
	route->ping = NEVER;
	route->ping_tries = 0;
	if (route->alive)
		return;
	route->alive = true;
	tell_reachable(route->peer);
	redrive_dead(route->peer);
}

void msg_route_probed(struct msg_route *route)
{
	if (route->silent == NEVER)
		route->silent = route->peer->ep->now;
}

void msg_route_doubt(struct msg_route *route)
{
	if (route->ping == NEVER)
		route->ping = 0;
}

struct msg_route *msg_route_for_packet(struct msg_peer *peer)
{
	bool alive = msg_any_alive(peer);
	struct msg_route *route;
	uint32_t i;

	for (i = 0; i < peer->num_routes; i++) {
		route = peer->routes[peer->next_packet_route++ % peer->num_routes];
		if ((route->alive || !alive) && route->dest.ah && port_room(route->port, 1))
			return route;
	}
	return NULL;
}

/* ---- fences ---- */

/* Send the fence from the channel of @over, if its device can reach the GID of @route. */
static void fence_over(struct msg_route *route, const struct msg_lane *lane, struct msg_route *over)
{
	struct msg_dest dest = route->dest;

	if (!over->port->fences || !port_room(over->port, 1) ||
	    over->recoveries != over->port->recoveries)
		return;
	if (over != route)
		dest.ah = port_ah(over->port, &route->gid);
	if (!dest.ah)
		return;
	port_fence(over->port, msg_name(route, lane->index, WHAT_FENCE, lane->tid), &dest,
		   lane->remote_rcxt, over->lanes[over == route ? lane->index : 0].local_rcxt,
		   lane->tid);
	if (over != route)
		port_ah_free(dest.ah);
}

void msg_route_fence(struct msg_route *route, const struct msg_lane *lane)
{
	struct msg_peer *peer = route->peer;
	uint32_t i;

	if (!route->fences)
		return;
	fence_over(route, lane, route);
	for (i = 0; !route->alive && i < peer->num_routes; i++)
		if (peer->routes[i]->alive) {
			fence_over(route, lane, peer->routes[i]);
			return;
		}
}

/* ---- address and session of the peer ---- */

void msg_peer_move(struct msg_peer *peer, const struct msg_address *address)
{
	const struct msg_address_path *at;
	struct msg_route *route;
	uint32_t i;

	for (i = 0; i < peer->num_routes; i++) {
		route = peer->routes[i];
		at = &address->paths[i % address->num_paths];
		if (memcmp(&at->gid, &route->gid, sizeof(route->gid))) {
			port_ah_free(route->dest.ah);
			route->dest.ah = NULL;
			route->gid = at->gid;
			msg_route_find_way(route);
		}
		msg_route_move(route, at);
		msg_grant_soon(route);
	}
}

/*
 * A packet of an earlier connection of either side names another session, and is ignored.  A peer
 * that is connecting has not received our session yet, or has an old one.  Its grant is answered,
 * so that the peer receives our session.  The rCxts of the grant are not used, because the grant
 * may itself be a late packet of an earlier connection.
 */
enum msg_session msg_session_came(struct msg_peer *peer, uint32_t theirs, uint32_t ours, bool grant)
{
	uint32_t i;

	if (peer->confirmed && theirs != peer->theirs)
		return MSG_SESSION_OLD;
	if (ours != peer->session) {
		if (!grant)
			return MSG_SESSION_OLD;
		peer->theirs = theirs;
		return MSG_SESSION_HELLO;
	}
	if (!peer->confirmed) {
		peer->theirs = theirs;
		peer->confirmed = true;
		peer->stream.due = 0;
		for (i = 0; i < peer->num_routes; i++)
			msg_grant_soon(peer->routes[i]);
	}
	return MSG_SESSION_OURS;
}

/* ---- timers ---- */

static void ping(struct msg_route *route)
{
	struct nhcadv_transfer t = {
		.local_rcxt = route->lanes[0].local_rcxt,
		.remote_rcxt = route->lanes[0].remote_rcxt,
		.tid = 1, .segment = NHCADV_MSG_MAX_SEND, .notify = NHCADV_NOTIFY_INITIATOR,
	};

	if (!msg_route_ready(route) || !t.remote_rcxt || !port_room(route->port, 1))
		return;
	t.cookie = msg_name(route, 0, WHAT_PING, 0);
	port_probe(route->port, t.cookie, &route->dest, &t);
	route->stats.probes++;
	if (route->alive)
		msg_route_probed(route);
}

static uint64_t life_timer(struct msg_route *route)
{
	struct nhcadv_msg_ep *ep = route->peer->ep;
	uint64_t now = ep->now, next = NEVER;
	/*
	 * In the first half of this time the library waits for answers to the transfers in flight.
	 * In the second half it also probes the kernel of the peer.
	 */
	uint64_t dead = max(ep->dead, 2 * msg_cc_overdue(&route->cc, 0));

	if (route->alive && route->silent != NEVER && route->ping == NEVER) {
		if (now - route->silent >= dead / 2)
			route->ping = now;
		else
			next = route->silent + dead / 2;
	}
	if (route->alive && route->silent != NEVER) {
		if (now - route->silent >= dead ||
		    (now - route->silent >= ep->dead / 4 &&
		     now - route->port->checked >= CHECK_PAUSE && !port_check(route->port)))
			route_die(route);
		else if (now - route->silent < ep->dead / 4)
			next = min(next, route->silent + ep->dead / 4);
		else
			next = min(next, now + CHECK_PAUSE);
		if (route->alive)
			next = min(next, route->silent + dead);
	}
	if (now >= route->ping) {
		ping(route);
		route->ping = now + (PING_PAUSE << min_t(uint32_t, route->ping_tries, PING_TRIES));
		route->ping_tries++;
	}
	return min(next, route->ping);
}

uint64_t msg_peer_timers(struct msg_peer *peer)
{
	uint64_t next = NEVER;
	uint32_t i;

	/* If no link was up at connect, all routes are dead from the start: report it here. */
	tell_reachable(peer);
	for (i = 0; i < peer->num_routes; i++) {
		next = min(next, msg_grant_timer(peer->routes[i]));
		next = min(next, life_timer(peer->routes[i]));
	}
	next = min(next, msg_stream_timers(peer));
	for (i = 0; i < peer->num_routes; i++)
		next = min(next, msg_lane_timers(peer->routes[i]));
	return next;
}

void msg_peer_lost_port(struct msg_peer *peer, struct msg_port *port)
{
	struct msg_route *route;
	uint32_t i, l;

	for (i = 0; i < peer->num_routes; i++) {
		route = peer->routes[i];
		if (route->port != port)
			continue;
		msg_rcxts_lost(route);
		for (l = 0; l < peer->ep->lanes; l++)
			msg_lane_lost(route, &route->lanes[l]);
		route_die(route);
	}
}

/* ---- life ---- */

static void route_free(struct msg_route *route)
{
	struct nhcadv_msg_ep *ep = route->peer->ep;
	uint32_t i;

	msg_rcxts_release(route);
	for (i = 0; route->lanes && i < ep->lanes; i++) {
		port_ah_free(route->lanes[i].way);
		if (route->lanes[i].op || route->lanes[i].partner ||
		    route->lanes[i].state == LANE_FENCE)
			port_ended(route->port);
	}
	ep->routes[route->slot] = NULL;
	port_ah_free(route->dest.ah);
	port_ah_free(route->self.ah);
	free(route->lanes);
	free(route->granted);
	free(route->refusing);
	free(route->refused);
	free(route);
}

/*
 * Allocate a slot.  A slot is reused as late as possible, because a late completion or packet may
 * name the route that had it before.
 */
static int route_slot(struct nhcadv_msg_ep *ep, struct msg_route *route)
{
	struct msg_route **routes;
	uint32_t i;

	for (i = 0; i < MSG_MAX_ROUTES; i++) {
		route->slot = ep->next_slot++ % MSG_MAX_ROUTES;
		if (route->slot >= ep->num_routes || !ep->routes[route->slot])
			break;
	}
	if (i == MSG_MAX_ROUTES)
		return ENOSPC;
	if (route->slot >= ep->num_routes) {
		routes = realloc(ep->routes, (route->slot + 1) * sizeof(routes[0]));
		if (!routes)
			return ENOMEM;
		ep->routes = routes;
		ep->num_routes = route->slot + 1;
	}
	ep->routes[route->slot] = route;
	return 0;
}

static int route_new(struct msg_peer *peer, const struct msg_address *address)
{
	uint32_t i, number = peer->num_routes, lanes = peer->ep->lanes;
	const struct msg_address_path *path = &address->paths[number % address->num_paths];
	struct nhcadv_msg_ep *ep = peer->ep;
	struct msg_route *route;
	uint64_t step;
	int err;

	route = calloc(1, sizeof(*route));
	if (!route)
		return ENOMEM;
	route->peer = peer;
	err = route_slot(ep, route);
	if (err) {
		free(route);
		return err;
	}
	peer->routes[peer->num_routes++] = route;
	route->number = number;
	route->port = ep->ports[number % ep->num_ports];
	route->gid = path->gid;
	route->segment = path->segment;
	route->dest.qpn = path->qpn;
	route->dest.key = path->key;
	route->alive = true;
	route->silent = NEVER;
	route->ping = NEVER;
	route->next = NEVER;
	list_head_init(&route->free);
	list_head_init(&route->busy);
	route->adv_segment = route->port->info.segment;
	step = (uint64_t)msg_route_segment(route) * ep->packets;
	msg_cc_init(&route->cc, step, step * lanes);
	msg_rcxts_init(route);

	route->lanes = calloc(lanes, sizeof(route->lanes[0]));
	route->granted = calloc(lanes, sizeof(route->granted[0]));
	route->refusing = calloc(lanes, sizeof(route->refusing[0]));
	route->refused = calloc(lanes, sizeof(route->refused[0]));
	if (!route->lanes || !route->granted || !route->refusing || !route->refused)
		return ENOMEM;
	/* The link may be down: start with a dead route that is probed. */
	if (!msg_route_find_way(route)) {
		route->alive = false;
		route->ping = 0;
	}
	for (i = 0; i < lanes; i++)
		msg_lane_init(route, &route->lanes[i], i);
	err = route->port->open ? msg_rcxts_acquire(route) : 0;
	if (err != EIO)
		return err;
	/* EIO: the channel has failed.  Let the next pass check it and open another channel. */
	route->port->checked = 0;
	return 0;
}

static void free_ops(struct list_head *list)
{
	struct msg_op *op;

	while ((op = list_pop(list, struct msg_op, node)))
		msg_op_free(op);
}

uint32_t msg_peer_reserved(const struct msg_peer *peer)
{
	const struct msg_op *op;
	uint32_t i, n = peer->stream.queued;

	list_for_each(&peer->todo, op, node)
		n++;
	list_for_each(&peer->moves, op, node)
		n++;
	list_for_each(&peer->going, op, node)
		n++;
	for (i = 0; i < MSG_STREAM; i++)
		n += !!peer->stream.early[i];
	return n;
}

void msg_peer_free(struct msg_peer *peer)
{
	uint32_t i;

	/* After the release of the routes' rCxts, no more bytes of the peer are placed here. */
	for (i = 0; i < peer->num_routes; i++)
		route_free(peer->routes[i]);
	free(peer->routes);
	msg_stream_fini(&peer->stream);
	free_ops(&peer->todo);
	free_ops(&peer->moves);
	free_ops(&peer->going);
	free(peer);
}

static struct msg_peer *peer_new(struct nhcadv_msg_ep *ep, const struct msg_address *address,
				 void *context)
{
	uint32_t i, n = address->num_paths > ep->num_ports ? address->num_paths : ep->num_ports;
	struct msg_peer *peer = calloc(1, sizeof(*peer));
	int err;

	if (!peer)
		return NULL;
	peer->ep = ep;
	peer->id = address->id;
	peer->context = context;
	peer->reachable = true;
	do
		peer->session = msg_random();
	while (!peer->session);
	list_head_init(&peer->todo);
	list_head_init(&peer->moves);
	list_head_init(&peer->going);
	list_head_init(&peer->awaiting);
	msg_stream_init(&peer->stream);
	peer->routes = calloc(n, sizeof(peer->routes[0]));
	err = peer->routes ? 0 : ENOMEM;
	for (i = 0; i < n && !err; i++)
		err = route_new(peer, address);
	if (!err)
		err = msg_peer_add(ep, peer);
	if (err) {
		msg_peer_free(peer);
		errno = err;
		return NULL;
	}
	return peer;
}

struct msg_peer *msg_peer_new(struct nhcadv_msg_ep *ep, const struct msg_address *address,
			      void *context)
{
	struct msg_peer *peer = peer_new(ep, address, context);

	/*
	 * ENOSPC: the pool has too few free rCxts.  EDQUOT: the user would exceed its share.  In
	 * both cases, take rCxts from other peers.
	 */
	if (!peer && (errno == ENOSPC || errno == EDQUOT) && msg_rcxts_short(ep))
		peer = peer_new(ep, address, context);
	return peer;
}
