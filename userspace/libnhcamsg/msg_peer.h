/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Reliable messages: peers, routes, and the rCxts of routes; msg.h includes this header. */
#ifndef NHCA_MSG_PEER_H
#define NHCA_MSG_PEER_H

/* ---- msg_peer.c ---- */
/**
 * msg_route_segment - get the maximum payload of a packet of a transfer that both ends support
 * @route: the route
 * Return: the segment, in bytes.
 */
static inline uint32_t msg_route_segment(const struct msg_route *route)
{
	return route->segment < route->port->info.segment ? route->segment :
	       route->port->info.segment;
}

/**
 * msg_route_confirmed - report a packet of the peer's kernel, which proves that the route is alive
 * @route: the route
 */
void msg_route_confirmed(struct msg_route *route);

/**
 * msg_route_probed - report a packet that the kernel of the peer will answer
 * @route: the route
 *
 * The time of the oldest packet without an answer decides when the route counts as dead.
 */
void msg_route_probed(struct msg_route *route);

/**
 * msg_route_doubt - probe a route, because the peer does not acknowledge packets that were sent
 * over the route
 * @route: the route
 */
void msg_route_doubt(struct msg_route *route);

/**
 * msg_route_fence - send a fence for the write of a lane
 * @route: route of the lane; if the route is dead, the fence is sent also over a live route
 * @lane:  the lane
 */
void msg_route_fence(struct msg_route *route, const struct msg_lane *lane);

/**
 * msg_route_for_packet - choose a route for a packet to the library of the peer
 * @peer: the peer
 * Return: the route; NULL: no route has a free slot and an address handle.
 */
struct msg_route *msg_route_for_packet(struct msg_peer *peer);

/**
 * msg_route_ready - test whether transfers can use a route
 * @route: the route
 * Return: true if the port's channel is open and owns the rCxts of the route, both address handles
 * exist, and a grant of the peer has arrived.
 */
static inline bool msg_route_ready(const struct msg_route *route)
{
	return route->port->open && route->recoveries == route->port->recoveries &&
	       route->theirs && route->dest.ah && route->self.ah;
}

/**
 * msg_peer_timers - run all expired timers of a peer
 * @peer: the peer
 * Return: time of the next timer; NEVER: no timer is set.
 */
uint64_t msg_peer_timers(struct msg_peer *peer);

/**
 * msg_peer_lost_port - report that the channel of a port was closed
 * @peer: the peer
 * @port: the port; the kernel has released all rCxts of the channel
 */
void msg_peer_lost_port(struct msg_peer *peer, struct msg_port *port);

/**
 * msg_peer_new - create a peer and its routes
 * @ep:      the endpoint
 * @address: address of the peer's endpoint
 * @context: nhcadv_msg_completion.context of the peer's completions
 * Return: the peer; NULL with errno: ENOMEM (no memory), ENOSPC (too few free rCxts or slots of
 * routes), EDQUOT (the user would exceed its share of rCxts), or another errno of
 * nhcadv_acquire_rcxts().
 */
struct msg_peer *msg_peer_new(struct nhcadv_msg_ep *ep, const struct msg_address *address,
			      void *context);

/**
 * msg_peer_move - use the channels of a new address of the peer
 * @peer:    the peer
 * @address: the new address
 */
void msg_peer_move(struct msg_peer *peer, const struct msg_address *address);

/**
 * msg_peer_free - release the rCxts of a peer, and free the peer
 * @peer: the peer, which is not in the lists of the endpoint
 */
void msg_peer_free(struct msg_peer *peer);

/**
 * msg_peer_reserved - count the completions that are reserved for the messages of a peer
 * @peer: the peer
 * Return: their number.
 */
uint32_t msg_peer_reserved(const struct msg_peer *peer);

enum msg_session {
	MSG_SESSION_OLD,	/* an earlier connection: the packet is ignored */
	MSG_SESSION_HELLO,	/* a grant that does not name our session */
	MSG_SESSION_OURS,	/* this connection */
};

/**
 * msg_session_came - classify a received packet by the two sessions in its header
 * @peer:   the peer
 * @theirs: session of the sender
 * @ours:   session that the sender knows of this side; 0: none
 * @grant:  the packet is a grant
 * Return: enum msg_session.
 */
enum msg_session msg_session_came(struct msg_peer *peer, uint32_t theirs, uint32_t ours,
				  bool grant);

/**
 * msg_any_alive - test whether a route to a peer is alive
 * @peer: the peer
 * Return: true if at least one route is alive.
 */
static inline bool msg_any_alive(const struct msg_peer *peer)
{
	uint32_t i;

	for (i = 0; i < peer->num_routes; i++)
		if (peer->routes[i]->alive)
			return true;
	return false;
}
/* ---- msg_grant.c ---- */
/**
 * msg_rcxts_init - set the initial number of rCxts of a new route
 * @route: the route
 */
void msg_rcxts_init(struct msg_route *route);

/**
 * msg_rcxts_acquire - acquire the rCxts of a route, after the channel of its port was created
 * @route: the route
 * Return: 0 or an errno of nhcadv_acquire_rcxts().
 */
int msg_rcxts_acquire(struct msg_route *route);

/**
 * msg_rcxts_lost - forget the rCxts that a route granted to the peer, because the channel was
 * closed
 * @route: the route
 */
void msg_rcxts_lost(struct msg_route *route);

/**
 * msg_rcxts_release - release all rCxts of a route
 * @route: the route
 */
void msg_rcxts_release(struct msg_route *route);

/**
 * msg_rcxts_short - release the rCxts of all peers beyond the first few, because a device has none
 * left
 * @ep: the endpoint
 * Return: true; false: nothing was released, because the last call was less than a second ago.
 */
bool msg_rcxts_short(struct nhcadv_msg_ep *ep);

/**
 * msg_route_find_way - create the address handles that a route lacks
 * @route: the route
 * Return: true if the route has both address handles; false: the kernel has no route to an address.
 */
bool msg_route_find_way(struct msg_route *route);

/**
 * msg_route_move - use another channel of the peer
 * @route: the route
 * @at:    the channel
 */
void msg_route_move(struct msg_route *route, const struct msg_address_path *at);

/**
 * msg_grant_soon - let the next pass send the grant of a route, and repeat it until the peer
 * confirms it
 * @route: the route
 */
void msg_grant_soon(struct msg_route *route);

/**
 * msg_grant_timer - adapt the number of rCxts, and send the grant of a route when it is due
 * @route: the route
 * Return: time of the next run; NEVER: none is needed.
 */
uint64_t msg_grant_timer(struct msg_route *route);

/**
 * msg_hello_came - handle a grant that does not name our session
 * @route: the route
 * @grant: the grant; the function does not use its rCxts, because the grant may be of an earlier
 *         connection
 *
 * The function sends our grant, from which the peer gets our session.
 */
void msg_hello_came(struct msg_route *route, const struct msg_grant *grant);

/**
 * msg_grant_came - handle a grant of this connection: use its channel and its rCxts
 * @route: the route
 * @grant: the grant
 */
void msg_grant_came(struct msg_route *route, const struct msg_grant *grant);

/**
 * msg_fence_came - handle a request of the peer's library to refuse late packets at a granted rCxt
 * @route: the route
 * @fence: the request
 *
 * The function cancels the transfers of the rCxt up to the tid of the request, and confirms the
 * request when the cancel is done. A tid of UINT32_MAX also requests another rCxt, because the tids
 * of the rCxt are used up.
 */
void msg_fence_came(struct msg_route *route, const struct msg_fence *fence);

/**
 * msg_route_refused - report that a granted rCxt refuses packets, because the cancel of
 * msg_fence_came() is done
 * @route: the route
 * @lane:  index of the rCxt in msg_route.granted
 * @tid:   the rCxt refuses packets with this tid and lower ones
 */
void msg_route_refused(struct msg_route *route, uint32_t lane, uint32_t tid);

#endif /* NHCA_MSG_PEER_H */
