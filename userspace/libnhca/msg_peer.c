// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Reliable messages: peers, and the routes to them.
 *
 * Each side grants rCxts of its own to the other, for each route, in a packet that is sent until
 * it is confirmed: when it connects, and again when a device has got another channel.  Grants have
 * versions; a new one says that the rCxts of the one before are no more.
 *
 * A route lives until an answer that the peer's adapter owes (not its program) is overdue for too
 * long, or its link is down.  Then its transfers go over those that live, and it is probed, until
 * an answer comes.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <ccan/minmax.h>
#include "msg.h"

#define GRANT_PAUSE	(10 * MS)
#define GRANT_TRIES	4	/* 160 ms at most */
#define PING_PAUSE	(20 * MS)
#define PING_TRIES	5
#define LOOK_PAUSE	(100 * MS)

/* ---- which routes live ---- */

static bool any_alive(const struct msg_peer *peer)
{
	uint32_t i;

	for (i = 0; i < peer->num_routes; i++)
		if (peer->routes[i]->alive)
			return true;
	return false;
}

static void redrive_dead(struct msg_peer *peer)
{
	uint32_t i;

	if (!any_alive(peer))
		return;
	for (i = 0; i < peer->num_routes; i++)
		if (!peer->routes[i]->alive)
			msg_lanes_redrive(peer->routes[i]);
}

static void tell_reachable(struct msg_peer *peer)
{
	bool reachable = any_alive(peer);

	if (reachable == peer->reachable || msg_promise(peer->ep))
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
	/* Without another one they go on asking here. */
	redrive_dead(route->peer);
}

void msg_route_heard(struct msg_route *route)
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

void msg_route_asked(struct msg_route *route)
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
	bool alive = any_alive(peer);
	struct msg_route *route;
	uint32_t i;

	for (i = 0; i < peer->num_routes; i++) {
		route = peer->routes[peer->packet_turn++ % peer->num_routes];
		if ((route->alive || !alive) && route->dest.ah && port_room(route->port, 1))
			return route;
	}
	return NULL;
}

/* ---- fences ---- */

/* Over @over, whose device may reach the peer's address of @route, too */
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

/* ---- grants ---- */

/* rCxts of this side: for our lanes, and for the peer's */
static int acquire(struct msg_route *route)
{
	uint32_t i, lanes = route->peer->ep->lanes;
	uint64_t ids[2 * MSG_MAX_LANES];
	int err;

	err = port_acquire(route->port, ids, 2 * lanes);
	if (err)
		return err;
	for (i = 0; i < lanes; i++)
		route->lanes[i].local_rcxt = ids[i];
	memcpy(route->granted, ids + lanes, lanes * sizeof(ids[0]));
	memset(route->refused, 0, lanes * sizeof(route->refused[0]));
	memset(route->refusing, 0, lanes * sizeof(route->refusing[0]));
	route->self.qpn = route->port->info.qpn;
	route->self.key = route->port->info.key;
	route->recoveries = route->port->recoveries;
	route->grant++;
	route->grant_tries = 0;
	route->grant_due = 0;
	return 0;
}

/* Address handles can be made while there is a way to the address. */
static bool route_find_way(struct msg_route *route)
{
	if (!route->self.ah)
		route->self.ah = port_ah(route->port, &route->port->gid);
	if (!route->dest.ah)
		route->dest.ah = port_ah(route->port, &route->gid);
	return route->self.ah && route->dest.ah;
}

static void grant_soon(struct msg_route *route)
{
	route->grant_tries = 0;
	route->grant_due = 0;
}

/* The peer's channel is there now. */
static void route_move(struct msg_route *route, const struct msg_address_path *at)
{
	route->dest.qpn = at->qpn;
	route->dest.key = at->key;
	route->segment = at->segment;
}

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
			route_find_way(route);
		}
		route_move(route, at);
		grant_soon(route);
	}
}

/*
 * Packets of an earlier connection, of either side, name another session than ours and count for
 * nothing.  Who connects does not know the peer's session yet, or has it from an old packet: such a grant
 * is answered, so that the peer learns of our session, but not believed, as it may be an old one itself.
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
			grant_soon(peer->routes[i]);
	}
	return MSG_SESSION_OURS;
}

/* A peer is believed about its own channel, at the address that the program gave us. */
static bool grant_ok(const struct msg_route *route, const struct msg_grant *grant)
{
	return msg_path_ok(&grant->at) &&
	       !memcmp(&grant->at.gid, &route->gid, sizeof(route->gid));
}

void msg_hello_came(struct msg_route *route, const struct msg_grant *grant)
{
	if (!grant_ok(route, grant))
		return;
	/* Once it is confirmed, only the peer of this connection says where its channel is. */
	if (!route->peer->confirmed)
		route_move(route, &grant->at);
	grant_soon(route);
}

void msg_grant_came(struct msg_route *route, const struct msg_grant *grant)
{
	uint32_t i, lanes = route->peer->ep->lanes;

	if (!grant_ok(route, grant))
		return;
	/* It is there: what it has not confirmed it has not heard. */
	if (route->grant_known != route->grant && route->grant_tries > 1)
		grant_soon(route);
	if (route->theirs && (int32_t)(grant->version - route->theirs) <= 0) {
		msg_send_granted(route);
		return;
	}
	route_move(route, &grant->at);
	route->theirs = grant->version;
	route->fences = grant->fences;
	for (i = 0; i < lanes && i < grant->count; i++)
		msg_lane_new_remote(route, &route->lanes[i], grant->rcxts[i]);
	msg_send_granted(route);
	/* A dead one may live again, with another channel. */
	if (!route->alive)
		route->ping = 0;
}

/* The peer has used up an rCxt's tids. */
static void grant_another(struct msg_route *route, uint32_t lane)
{
	uint64_t fresh;

	if (port_acquire(route->port, &fresh, 1))
		return;
	port_release(route->port, &route->granted[lane], 1);
	route->granted[lane] = fresh;
	route->refused[lane] = 0;
	route->grant++;
	grant_soon(route);
}

void msg_route_refused(struct msg_route *route, uint32_t lane, uint32_t tid)
{
	struct msg_fence fence = { .lane = lane, .tid = tid, .rcxt = route->granted[lane] };
	uint64_t rcxt = route->refusing[lane];

	/* It was another rCxt's: this one has refused nothing. */
	route->refusing[lane] = 0;
	if (!rcxt || rcxt != fence.rcxt)
		return;
	if (tid > route->refused[lane])
		route->refused[lane] = tid;
	if (tid == UINT32_MAX)
		grant_another(route, lane);
	else
		msg_send_fenced(route, &fence);
}

void msg_fence_came(struct msg_route *route, const struct msg_fence *fence)
{
	uint64_t rcxt = route->granted[fence->lane];

	/* An rCxt that is no more takes nothing: but let the peer know by a grant, if there is one. */
	if (rcxt != fence->rcxt || (fence->tid <= route->refused[fence->lane] &&
				    fence->tid != UINT32_MAX)) {
		if (fence->tid != UINT32_MAX)
			msg_send_fenced(route, fence);
		else if (rcxt)
			route->grant_due = 0;
		return;
	}
	if (route->refusing[fence->lane] || !port_room(route->port, 1) ||
	    route->recoveries != route->port->recoveries)
		return;
	route->refusing[fence->lane] = rcxt;
	port_cancel(route->port, msg_name(route, fence->lane, WHAT_REFUSE, fence->tid), rcxt,
		    fence->tid);
}

/* ---- what is due ---- */

static uint64_t grant_timer(struct msg_route *route)
{
	uint64_t now = route->peer->ep->now;

	if (!route->port->open)
		return NEVER;
	if (route->recoveries != route->port->recoveries) {
		if (now < route->grant_due)
			return route->grant_due;
		if (acquire(route)) {
			route->grant_due = now + 1000 * MS;
			return route->grant_due;
		}
	}
	if (route->told_segment != route->port->info.segment) {
		route->told_segment = route->port->info.segment;
		route->grant++;
		grant_soon(route);
	}
	if (route->grant == route->grant_known && route->dest.ah && route->self.ah)
		return NEVER;
	if (now >= route->grant_due) {
		if (route_find_way(route) || any_alive(route->peer))
			msg_send_grant(route);
		route->grant_due = now + (GRANT_PAUSE << min_t(uint32_t, route->grant_tries, GRANT_TRIES));
		route->grant_tries++;
	}
	return route->grant_due;
}

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
		msg_route_asked(route);
}

static uint64_t life_timer(struct msg_route *route)
{
	struct nhcadv_msg_ep *ep = route->peer->ep;
	uint64_t now = ep->now, next = NEVER;
	/* Half of the time for what is under way, the other half for a probe that asks the adapter. */
	uint64_t dead = max(ep->dead, 2 * msg_flow_overdue(&route->flow, 0));

	if (route->alive && route->silent != NEVER && route->ping == NEVER) {
		if (now - route->silent >= dead / 2)
			route->ping = now;
		else
			next = route->silent + dead / 2;
	}
	if (route->alive && route->silent != NEVER) {
		if (now - route->silent >= dead ||
		    (now - route->silent >= ep->dead / 4 &&
		     now - route->port->checked >= LOOK_PAUSE && !port_check(route->port)))
			route_die(route);
		else if (now - route->silent < ep->dead / 4)
			next = min(next, route->silent + ep->dead / 4);
		else
			next = min(next, now + LOOK_PAUSE);
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

	/* at connect, too, when no link is up */
	tell_reachable(peer);
	for (i = 0; i < peer->num_routes; i++) {
		next = min(next, grant_timer(peer->routes[i]));
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
		memset(route->granted, 0, peer->ep->lanes * sizeof(route->granted[0]));
		memset(route->refusing, 0, peer->ep->lanes * sizeof(route->refusing[0]));
		for (l = 0; l < peer->ep->lanes; l++)
			msg_lane_lost(route, &route->lanes[l]);
		route_die(route);
	}
}

/* ---- life ---- */

static void route_free(struct msg_route *route)
{
	struct nhcadv_msg_ep *ep = route->peer->ep;
	uint64_t ids[2 * MSG_MAX_LANES];
	uint32_t i;

	if (route->recoveries && route->recoveries == route->port->recoveries) {
		for (i = 0; i < ep->lanes; i++) {
			ids[i] = route->lanes[i].local_rcxt;
			ids[ep->lanes + i] = route->granted[i];
		}
		port_release(route->port, ids, 2 * ep->lanes);
	}
	for (i = 0; route->lanes && i < ep->lanes; i++)
		if (route->lanes[i].op)
			port_ended(route->port);
	ep->routes[route->slot] = NULL;
	port_ah_free(route->dest.ah);
	port_ah_free(route->self.ah);
	free(route->lanes);
	free(route->granted);
	free(route->refusing);
	free(route->refused);
	free(route);
}

/* In turn: of one that was free for long nothing comes any more. */
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
	route->told_segment = route->port->info.segment;
	step = (uint64_t)msg_route_segment(route) * ep->packets;
	msg_flow_init(&route->flow, step, step * lanes);

	route->lanes = calloc(lanes, sizeof(route->lanes[0]));
	route->granted = calloc(lanes, sizeof(route->granted[0]));
	route->refusing = calloc(lanes, sizeof(route->refusing[0]));
	route->refused = calloc(lanes, sizeof(route->refused[0]));
	if (!route->lanes || !route->granted || !route->refusing || !route->refused)
		return ENOMEM;
	/* Its link may be down now. */
	if (!route_find_way(route)) {
		route->alive = false;
		route->ping = 0;
	}
	for (i = 0; i < lanes; i++)
		msg_lane_init(route, &route->lanes[i], i);
	err = route->port->open ? acquire(route) : 0;
	if (err != EIO)
		return err;
	/* The channel has failed, and will be another one. */
	route->port->checked = 0;
	return 0;
}

static void free_ops(struct list_head *list)
{
	struct msg_op *op;

	while ((op = list_pop(list, struct msg_op, node)))
		msg_op_free(op);
}

uint32_t msg_peer_promised(const struct msg_peer *peer)
{
	const struct msg_op *op;
	uint32_t i, n = peer->stream.queued;

	list_for_each(&peer->todo, op, node)
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

	/* Nothing lands here any more when its rCxts are given back. */
	for (i = 0; i < peer->num_routes; i++)
		route_free(peer->routes[i]);
	free(peer->routes);
	msg_stream_fini(&peer->stream);
	free_ops(&peer->todo);
	free_ops(&peer->going);
	free(peer);
}

struct msg_peer *msg_peer_new(struct nhcadv_msg_ep *ep, const struct msg_address *address,
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
	list_head_init(&peer->going);
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
