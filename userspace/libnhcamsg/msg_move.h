/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Reliable messages: moves, which are third-party transfers.  This endpoint is the manager, one
 * peer is the source, and another one the target.
 *
 * A transfer of a move occupies two lanes: one of a route to the source (the source lane, which has
 * the operation), and one of a route to the target (the target lane).  The transfer uses both rCxts
 * of the source lane, for manager and source, and the remote rCxt of the target lane.  The local
 * rCxt of the target lane is for probes and fences of the target.  Both lanes have the same tid.
 *
 * If a transfer is abandoned, both lanes are fenced.  The bytes are transferred again only after
 * source and target have confirmed that they refuse late packets and requests.
 */
#ifndef NHCA_MSG_MOVE_H
#define NHCA_MSG_MOVE_H

struct msg_lane;
struct msg_op;
struct msg_peer;
struct msg_port;
struct msg_route;
struct nhcadv_frame;
struct nhcadv_msg_ep;

#define MOVES_PAUSE	(10 * MS)	/* time after which waiting moves try again */

enum msg_move_started {
	MSG_MOVE_STARTED,	/* lanes have taken bytes of the operation */
	MSG_MOVE_WAITS,		/* a route to the source, a lane of it or a slot is missing */
	MSG_MOVE_AWAITS,	/* the operation waits in msg_peer.awaiting of its target */
	MSG_MOVE_OVER,		/* the operation has failed, and is freed */
};

/**
 * msg_move_start - start a transfer of a move
 * @op: the move
 * Return: enum msg_move_started.
 */
enum msg_move_started msg_move_start(struct msg_op *op);

/**
 * msg_move_posted - report that a work request of a source lane is done
 * @route:  the route
 * @lane:   the source lane, which belongs to @route
 * @name:   msg_name() of the work request
 * @status: 0 or an errno: as in struct port_event
 */
void msg_move_posted(struct msg_route *route, struct msg_lane *lane, uint64_t name, int status);

/**
 * msg_move_complete - report that the target has all bytes of a transfer
 * @route: the route
 * @lane:  the source lane, which belongs to @route
 * @tid:   tid of the transfer
 */
void msg_move_complete(struct msg_route *route, struct msg_lane *lane, uint32_t tid);

/**
 * msg_move_status - handle the answer to a probe, or the refusal of the source
 * @route: the route
 * @lane:  the source or target lane, which belongs to @route
 * @frame: the answer
 */
void msg_move_status(struct msg_route *route, struct msg_lane *lane,
		     const struct nhcadv_frame *frame);

/**
 * msg_move_fenced - report that the peer of a lane refuses late packets of a move
 * @route:    the route
 * @lane:     the source or target lane, which belongs to @route
 * @complete: the peer is the target, and has all bytes
 */
void msg_move_fenced(struct msg_route *route, struct msg_lane *lane, bool complete);

/**
 * msg_move_give_up - abandon the transfer of a source or target lane
 * @route: the route
 * @lane:  the source or target lane, which belongs to @route
 */
void msg_move_give_up(struct msg_route *route, struct msg_lane *lane);

/**
 * msg_move_timer - run the timer of a source lane
 * @route: the route
 * @lane:  the source lane, which belongs to @route
 */
void msg_move_timer(struct msg_route *route, struct msg_lane *lane);

/**
 * msg_moves_forget - end all moves from and to a peer that is being disconnected
 * @peer: the peer
 */
void msg_moves_forget(struct msg_peer *peer);

/* ---- msg_pair.c ---- */
/**
 * msg_pair_none - test whether no route to a peer supports moves
 * @peer: the peer
 * Return: true if at least one route to the peer is ready, but none of the ready routes supports
 * moves.
 */
bool msg_pair_none(const struct msg_peer *peer);

/**
 * msg_pair_any - test whether moves can use a route to a peer
 * @peer: the peer
 * Return: true if at least one route is ready and supports moves.
 */
bool msg_pair_any(const struct msg_peer *peer);

/**
 * msg_pair_impossible - test whether no pair of routes can ever work for a move
 * @op: the move
 * Return: true if source and target have no address family in common, except on routes that do not
 * support moves.  A route that is dead, or not ready yet, may work later.
 */
bool msg_pair_impossible(const struct msg_op *op);

/**
 * msg_pair_bit - get the bit of a pair of routes in msg_op.refused and msg_op.no_way
 * @source: route to the source
 * @target: route to the target
 * Return: the bit.
 */
uint64_t msg_pair_bit(const struct msg_route *source, const struct msg_route *target);

/**
 * msg_pair_find - find a pair of routes with free lanes for the next transfer of a move
 * @op:     the move
 * @source: output: route to the source
 * @target: output: route to the target
 *
 * Routes of different ports are paired only if no pair of the same port is left.
 * Return: MSG_MOVE_STARTED (@source and @target are set), MSG_MOVE_WAITS (the routes to the source
 * have no room), MSG_MOVE_AWAITS (the routes to the target have no room), or MSG_MOVE_OVER (all
 * pairs have failed, or none exists).
 */
enum msg_move_started msg_pair_find(struct msg_op *op, struct msg_route **source,
				    struct msg_route **target);

/**
 * msg_moves_await - let a move wait in msg_peer.awaiting of its target
 * @op: the move
 */
void msg_moves_await(struct msg_op *op);

/**
 * msg_moves_wake - let moves try again that wait for a target whose lanes are free
 * @to:   the target
 * @most: maximum number of moves
 */
void msg_moves_wake(struct msg_peer *to, uint32_t most);

/**
 * msg_moves_collect - list all moves from a peer that wait for targets in msg_peer.moves again
 * @from: the peer: the source of the moves
 */
void msg_moves_collect(struct msg_peer *from);

/* ---- msg_target.c ---- */
/**
 * msg_ep_has_moves - test whether an endpoint supports moves
 * @ep: the endpoint
 * Return: true if at least one device of the endpoint supports moves.
 */
bool msg_ep_has_moves(const struct nhcadv_msg_ep *ep);

/**
 * msg_targets_apply - allow targets at the open ports that have not allowed them yet
 * @ep: the endpoint
 * Return: time of the next try; NEVER: no port has to try again.
 */
uint64_t msg_targets_apply(struct nhcadv_msg_ep *ep);

/**
 * msg_targets_free - free all targets, when the endpoint is destroyed
 * @ep: the endpoint
 */
void msg_targets_free(struct nhcadv_msg_ep *ep);

#endif /* NHCA_MSG_MOVE_H */
