// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Reliable messages: the rCxts of a route.
 *
 * For each route, each side grants some of its rCxts to the lanes of the other side.  A side sends
 * the grant when it connects, when the channel was created again, and when the rCxts or the MTU
 * have changed.  The side repeats the grant until the peer confirms the grant.  Grants have
 * versions.  A new grant invalidates the rCxts that it does not name.
 *
 * A lane needs a local rCxt and an rCxt of the peer.  A route starts with LANES_FIRST lanes.  When
 * a transfer lacks only a free lane, this side acquires rCxts for LANES_BLOCK more lanes.  Its next
 * grant requests a number of rCxts of the peer, and the peer grants this number when its device has
 * enough free rCxts.  Lanes that were unused for IDLE_PAUSE are released.  An idle peer therefore
 * costs a device few rCxts, and a busy peer may use as many lanes as the endpoint allows.  If an
 * rCxt for a new peer or a recovered device cannot be acquired, this side releases the rCxts beyond
 * the first few of all its routes.
 */
#include <errno.h>
#include <string.h>

#include "msg.h"

#define GRANT_PAUSE	(10 * MS)	/* delay before a grant is repeated for the first time */
#define GRANT_TRIES	4		/* maximum doublings of that delay: 160 ms */
#define LANES_FIRST	4		/* lanes of an idle route */
#define LANES_BLOCK	8		/* lanes that a route adds at a time */
/* Lanes that were unused for this time are released. */
#define IDLE_PAUSE	(1000 * MS)
/* Delay before a retry, if the pool of the device had no rCxt */
#define POOL_PAUSE	(100 * MS)
/* Time after msg_rcxts_short() in which no route acquires more than the first few rCxts */
#define SHORT_PAUSE	(1000 * MS)

static void grant_anew(struct msg_route *route)
{
	route->grant++;
	msg_grant_soon(route);
}

void msg_grant_soon(struct msg_route *route)
{
	route->grant_tries = 0;
	route->grant_due = 0;
}

/* ---- the number of rCxts ---- */

static uint32_t first_lanes(const struct msg_route *route)
{
	return min_t(uint32_t, route->peer->ep->lanes, LANES_FIRST);
}

static bool same_channel(const struct msg_route *route)
{
	return route->port->open && route->recoveries == route->port->recoveries;
}

/*
 * Lanes from index route->want on are not wanted.  Release the local rCxts of these lanes, if they
 * have no transfer and no work request.
 */
static void retire(struct msg_route *route)
{
	uint64_t ids[MSG_MAX_LANES];
	struct msg_lane *lane;
	uint32_t i, n = 0;

	for (i = route->want; i < route->held; i++) {
		lane = &route->lanes[i];
		/* msg_lane_settle() removes the lane from the free list. */
		msg_lane_settle(route, lane);
		if (!lane->local_rcxt || lane->state != LANE_FREE || lane->wrs)
			continue;
		/*
		 * Keep the remote rCxt until a grant of the peer does not name it: the peer may not
		 * have received yet that this side wants fewer rCxts.
		 */
		ids[n++] = lane->local_rcxt;
		lane->local_rcxt = 0;
	}
	while (route->held > route->want && !route->lanes[route->held - 1].local_rcxt)
		route->held--;
	/* The rCxts of a closed channel are released already. */
	if (n && same_channel(route))
		port_release(route->port, ids, n);
}

/* Acquire a local rCxt for each lane below @want that has none.  Return: 0 or an errno. */
static int borrow(struct msg_route *route, uint32_t want)
{
	uint64_t ids[MSG_MAX_LANES];
	uint32_t i, n = 0;
	int err;

	for (i = 0; i < want; i++)
		n += !route->lanes[i].local_rcxt;
	err = n ? port_acquire(route->port, ids, n) : 0;
	if (err)
		return err;
	for (i = 0; i < want; i++)
		if (!route->lanes[i].local_rcxt)
			route->lanes[i].local_rcxt = ids[--n];
	i = route->want;
	route->want = want;
	route->held = max(route->held, want);
	/* Lanes that were to be retired, and still have their rCxts, are usable again. */
	for (; i < want; i++)
		msg_lane_settle(route, &route->lanes[i]);
	return 0;
}

/* Change the number of rCxts that the lanes of the peer may use.  Return: 0 or an errno. */
static int give(struct msg_route *route, uint32_t count)
{
	uint32_t given = route->given, i;
	int err;

	if (count > given) {
		err = port_acquire(route->port, route->granted + given, count - given);
		if (err)
			return err;
	} else {
		port_release(route->port, route->granted + count, given - count);
		memset(route->granted + count, 0, (given - count) * sizeof(route->granted[0]));
	}
	for (i = min(count, given); i < max(count, given); i++) {
		route->refused[i] = 0;
		route->refusing[i] = 0;
	}
	route->given = count;
	grant_anew(route);
	return 0;
}

/* Return: the number of lanes, in whole blocks, for @busy transfers at a time */
static uint32_t lanes_for(const struct msg_route *route, uint32_t busy)
{
	uint32_t n = first_lanes(route);

	while (n < busy)
		n += LANES_BLOCK;
	return min(n, route->peer->ep->lanes);
}

static void grow(struct msg_route *route)
{
	const struct nhcadv_msg_ep *ep = route->peer->ep;
	bool lanes_short = route->lanes_short;

	route->lanes_short = false;
	/*
	 * Add at most one block per round trip: before the next block, the peer must have granted
	 * an rCxt for the last lane.
	 */
	if (!lanes_short || ep->now < route->more || ep->now < ep->short_until ||
	    route->want == ep->lanes || !route->lanes[route->want - 1].remote_rcxt)
		return;
	if (borrow(route, min(route->want + LANES_BLOCK, ep->lanes)))
		route->more = ep->now + POOL_PAUSE;
	else if (route->trim_at == NEVER)
		route->trim_at = ep->now + IDLE_PAUSE;
}

static void shrink(struct msg_route *route)
{
	uint64_t now = route->peer->ep->now;

	if (now >= route->trim_at) {
		route->want = min(route->want, lanes_for(route, route->most_busy));
		route->most_busy = route->busy_lanes;
		route->trim_at = route->want > first_lanes(route) ? now + IDLE_PAUSE : NEVER;
	}
	if (route->held > route->want)
		retire(route);
}

/* Acquire and release rCxts as lanes and grants need them.  Return: time of the next run */
static uint64_t settle_numbers(struct msg_route *route)
{
	const struct nhcadv_msg_ep *ep = route->peer->ep;
	uint64_t next;

	grow(route);
	shrink(route);
	if (route->their_want < route->given) {
		give(route, route->their_want);
	} else if (route->their_want > route->given) {
		next = max(route->more, ep->short_until);
		if (ep->now >= next && give(route, route->their_want))
			route->more = ep->now + POOL_PAUSE;
	}
	if (route->adv_want != route->held) {
		route->adv_want = route->held;
		grant_anew(route);
	}
	next = route->their_want > route->given ? max(route->more, ep->short_until) : NEVER;
	return min(next, route->trim_at);
}

bool msg_rcxts_short(struct nhcadv_msg_ep *ep)
{
	struct msg_route *route;
	struct msg_peer *peer;
	uint32_t i, first;

	if (ep->now < ep->short_until)
		return false;
	ep->short_until = ep->now + SHORT_PAUSE;
	list_for_each(&ep->peers, peer, node)
		for (i = 0; i < peer->num_routes; i++) {
			route = peer->routes[i];
			first = first_lanes(route);
			if (!same_channel(route) || (route->want <= first && route->given <= first))
				continue;
			route->want = min(route->want, first);
			retire(route);
			if (route->given > first)
				give(route, first);
			msg_peer_ready(peer);
		}
	return true;
}

/* ---- a channel's beginning and end ---- */

void msg_rcxts_init(struct msg_route *route)
{
	route->want = first_lanes(route);
	route->their_want = route->want;
	route->trim_at = NEVER;
}

int msg_rcxts_acquire(struct msg_route *route)
{
	uint32_t i, first = first_lanes(route), n = first;
	uint64_t ids[2 * MSG_MAX_LANES];
	int err;

	retire(route);
	for (i = 0; i < route->peer->ep->lanes; i++)
		n += i < route->want || route->lanes[i].local_rcxt;
	err = port_acquire(route->port, ids, n);
	if (err)
		return err;
	for (i = 0; i < route->peer->ep->lanes; i++)
		if (i < route->want || route->lanes[i].local_rcxt)
			route->lanes[i].local_rcxt = ids[--n];
	memcpy(route->granted, ids, first * sizeof(ids[0]));
	memset(route->refused, 0, first * sizeof(route->refused[0]));
	route->given = first;
	route->held = max(route->held, route->want);
	route->adv_want = route->held;
	route->self.qpn = route->port->info.qpn;
	route->self.key = route->port->info.key;
	route->recoveries = route->port->recoveries;
	grant_anew(route);
	return 0;
}

void msg_rcxts_lost(struct msg_route *route)
{
	uint32_t lanes = route->peer->ep->lanes;

	memset(route->granted, 0, lanes * sizeof(route->granted[0]));
	memset(route->refusing, 0, lanes * sizeof(route->refusing[0]));
	route->given = 0;
	route->want = first_lanes(route);
}

void msg_rcxts_release(struct msg_route *route)
{
	uint64_t ids[2 * MSG_MAX_LANES];
	uint32_t i, n = 0;

	if (!route->recoveries || route->recoveries != route->port->recoveries)
		return;
	for (i = 0; i < route->held; i++)
		if (route->lanes[i].local_rcxt)
			ids[n++] = route->lanes[i].local_rcxt;
	for (i = 0; i < route->given; i++)
		ids[n++] = route->granted[i];
	port_release(route->port, ids, n);
}

/* ---- the address of the peer ---- */

/* The kernel creates an address handle only while it has a route to the address. */
bool msg_route_find_way(struct msg_route *route)
{
	if (!route->self.ah)
		route->self.ah = port_ah(route->port, &route->port->gid);
	if (!route->dest.ah)
		route->dest.ah = port_ah(route->port, &route->gid);
	return route->self.ah && route->dest.ah;
}

void msg_route_move(struct msg_route *route, const struct msg_address_path *at)
{
	route->dest.qpn = at->qpn;
	route->dest.key = at->key;
	route->segment = at->segment;
}

/* ---- the peer's grants ---- */

/* A peer may change its channel, but not the GID, which comes from its address. */
static bool grant_ok(const struct msg_route *route, const struct msg_grant *grant)
{
	return msg_path_ok(&grant->at) &&
	       !memcmp(&grant->at.gid, &route->gid, sizeof(route->gid));
}

void msg_hello_came(struct msg_route *route, const struct msg_grant *grant)
{
	if (!grant_ok(route, grant))
		return;
	/*
	 * After the session is confirmed, only a grant of this connection may change the channel.
	 */
	if (!route->peer->confirmed)
		msg_route_move(route, &grant->at);
	msg_grant_soon(route);
}

void msg_grant_came(struct msg_route *route, const struct msg_grant *grant)
{
	uint32_t i, lanes = route->peer->ep->lanes;

	if (!grant_ok(route, grant))
		return;
	/*
	 * The peer is alive, so our last grant was lost if the peer has not confirmed it: repeat
	 * the grant now.
	 */
	if (route->grant_known != route->grant && route->grant_tries > 1)
		msg_grant_soon(route);
	if (route->theirs && (int32_t)(grant->version - route->theirs) <= 0) {
		msg_send_granted(route);
		return;
	}
	msg_route_move(route, &grant->at);
	route->theirs = grant->version;
	route->fences = grant->fences;
	route->moves = grant->moves;
	route->their_want = min(grant->wanted ? grant->wanted : 1, lanes);
	for (i = 0; i < lanes; i++)
		msg_lane_new_remote(route, &route->lanes[i],
				    i < grant->count ? grant->rcxts[i] : 0);
	msg_send_granted(route);
	/* A dead route may work with the channel in this grant: probe the route now. */
	if (!route->alive)
		route->ping = 0;
}

/* ---- requests of the peer for our rCxts ---- */

/* Replace a granted rCxt whose tids the peer has used up. */
static void grant_another(struct msg_route *route, uint32_t lane)
{
	uint64_t fresh;

	if (port_acquire(route->port, &fresh, 1))
		return;
	port_release(route->port, &route->granted[lane], 1);
	route->granted[lane] = fresh;
	route->refused[lane] = 0;
	grant_anew(route);
}

void msg_route_refused(struct msg_route *route, uint32_t lane, uint32_t tid)
{
	struct msg_fence fence = { .lane = lane, .tid = tid, .rcxt = route->granted[lane] };
	uint64_t rcxt = route->refusing[lane];

	/*
	 * If the rCxt was replaced after the cancel was posted, the new rCxt refuses no packets:
	 * do not confirm the fence.
	 */
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

	/*
	 * A released rCxt accepts no packet, so it is fenced already.  If the peer requests another
	 * rCxt, it has not received our last grant: repeat the grant.
	 */
	if (!rcxt || rcxt != fence->rcxt || (fence->tid <= route->refused[fence->lane] &&
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

/* ---- our grants ---- */

uint64_t msg_grant_timer(struct msg_route *route)
{
	uint64_t now = route->peer->ep->now, next;

	if (!route->port->open)
		return NEVER;
	if (route->recoveries != route->port->recoveries) {
		if (now < route->grant_due)
			return route->grant_due;
		if (msg_rcxts_acquire(route)) {
			msg_rcxts_short(route->peer->ep);
			route->grant_due = now + POOL_PAUSE;
			return route->grant_due;
		}
	}
	next = settle_numbers(route);
	if (route->adv_segment != route->port->info.segment) {
		route->adv_segment = route->port->info.segment;
		grant_anew(route);
	}
	if (route->grant == route->grant_known && route->dest.ah && route->self.ah)
		return next;
	if (now >= route->grant_due) {
		if (msg_route_find_way(route) || msg_any_alive(route->peer))
			msg_send_grant(route);
		route->grant_due = now + msg_spread(GRANT_PAUSE << min_t(uint32_t, route->grant_tries,
									 GRANT_TRIES));
		route->grant_tries++;
	}
	return min(next, route->grant_due);
}
