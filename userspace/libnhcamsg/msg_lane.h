/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Reliable messages: the transfers of lanes; msg.h includes this header. */
#ifndef NHCA_MSG_LANE_H
#define NHCA_MSG_LANE_H

/* ---- msg_lane.c ---- */
/**
 * msg_lane_init - initialize a lane without rCxts, and list it as busy
 * @route: the route
 * @lane:  the lane, which belongs to @route
 * @index: index in msg_route.lanes
 */
void msg_lane_init(struct msg_route *route, struct msg_lane *lane, uint16_t index);

/**
 * msg_lane_wake - let the timers of the lanes of a route run at a given time or earlier
 * @route: the route
 * @when:  the time
 */
void msg_lane_wake(struct msg_route *route, uint64_t when);

/**
 * msg_lane_set_due - set the timer of a lane
 * @route: the route
 * @lane:  the lane, which belongs to @route
 * @when:  the time
 */
void msg_lane_set_due(struct msg_route *route, struct msg_lane *lane, uint64_t when);

/**
 * msg_lane_set_inflight - set the bytes in flight of a lane, and update the sum of its route
 * @route: the route
 * @lane:  the lane, which belongs to @route
 * @bytes: the bytes in flight
 */
void msg_lane_set_inflight(struct msg_route *route, struct msg_lane *lane, uint32_t bytes);

/**
 * msg_lane_settle - list a lane as free if a new transfer can use it, or else as busy
 * @route: the route
 * @lane:  the lane, which belongs to @route
 *
 * The function does nothing while the lane has a transfer or an outstanding work request. A new
 * transfer can use the lane if the lane has both rCxts and its index is less than msg_route.want.
 * If the tids of the lane are used up, the lane requests another rCxt of the peer (LANE_RENEW).
 */
void msg_lane_settle(struct msg_route *route, struct msg_lane *lane);

/**
 * msg_lane_leave - end the transfer of a lane, whether its bytes are in place or not
 * @route: the route
 * @lane:  the lane, which belongs to @route
 */
void msg_lane_leave(struct msg_route *route, struct msg_lane *lane);

/**
 * msg_lane_done - report that the bytes of a transfer are in place, and end the transfer
 * @route: the route
 * @lane:  the lane, which belongs to @route
 */
void msg_lane_done(struct msg_route *route, struct msg_lane *lane);

/**
 * msg_lane_packets - get the number of packets of a transfer
 * @lane: the lane
 * Return: the number; a transfer of 0 bytes has one packet.
 */
uint32_t msg_lane_packets(const struct msg_lane *lane);

/**
 * msg_lane_slots - get the number of work requests that start a transfer
 * @lane: the lane, which has an operation
 * Return: the number of slots of the send FIFO that msg_lane_begin() needs.
 */
uint32_t msg_lane_slots(const struct msg_lane *lane);

/**
 * msg_lane_transfer - describe the transfer of a lane for a work request
 * @route: the route
 * @lane:  the lane, which belongs to @route
 * Return: the description.
 */
struct nhcadv_transfer msg_lane_transfer(const struct msg_route *route,
					 const struct msg_lane *lane);

/**
 * msg_lane_requeue - queue the missing bytes of a transfer for other lanes, after a fence or cancel
 * @route: the route
 * @lane:  the lane, which belongs to @route
 */
void msg_lane_requeue(struct msg_route *route, struct msg_lane *lane);

/**
 * msg_lane_begin - post the transfer of a lane with the next tid
 * @route: the route
 * @lane:  the lane, which belongs to @route
 */
void msg_lane_begin(struct msg_route *route, struct msg_lane *lane);

/**
 * msg_lane_redrive - post the whole transfer again with a higher tid
 * @route: the route
 * @lane:  the lane, which belongs to @route
 */
void msg_lane_redrive(struct msg_route *route, struct msg_lane *lane);

/**
 * msg_lane_fence - abandon a write, and request that the peer refuses late packets of the write
 * @route: the route
 * @lane:  the lane, which belongs to @route
 */
void msg_lane_fence(struct msg_route *route, struct msg_lane *lane);

/**
 * msg_lane_cancel - abandon a read, and cancel it at the local rCxt
 * @route: the route
 * @lane:  the lane, which belongs to @route
 */
void msg_lane_cancel(struct msg_route *route, struct msg_lane *lane);

/**
 * msg_lane_release - cancel a write here that is over at the peer; see LANE_RELEASE
 * @route: the route
 * @lane:  the lane, which belongs to @route
 */
void msg_lane_release(struct msg_route *route, struct msg_lane *lane);

/**
 * msg_lane_give_up - abandon the transfer of a lane
 * @route: the route
 * @lane:  the lane, which belongs to @route
 *
 * A write is fenced, a read is cancelled, and both lanes of a move are fenced.
 */
void msg_lane_give_up(struct msg_route *route, struct msg_lane *lane);

/**
 * msg_lane_unsent - requeue a transfer after a delay, because none of its packets was sent
 * @route: the route
 * @lane:  the lane, which belongs to @route
 */
void msg_lane_unsent(struct msg_route *route, struct msg_lane *lane);

/* ---- msg_transfer.c ---- */
enum msg_pumped {
	MSG_PUMP_DONE,		/* no transfer can start until the state of the peer changes */
	MSG_PUMP_QUANTUM,	/* the peer has used its quantum */
	MSG_PUMP_STARVED,	/* a transfer waits until a port has a free slot */
};

/**
 * msg_pump - start up to PEER_QUANTUM transfers of a peer
 * @peer: the peer
 * Return: enum msg_pumped.
 */
enum msg_pumped msg_pump(struct msg_peer *peer);

/**
 * msg_lane_posted - report that a work request of a lane is done
 * @route:  the route
 * @lane:   the lane, which belongs to @route
 * @wr_id:  msg_name() of the work request
 * @status: as in struct port_event
 */
void msg_lane_posted(struct msg_route *route, struct msg_lane *lane, uint64_t wr_id, int status);

/**
 * msg_lane_complete - report the completion of a write or read
 * @route: the route
 * @lane:  the lane, which belongs to @route
 * @tid:   tid of the completion; the function ignores the completion if the lane has another tid
 * @read:  the completion is that of a read
 */
void msg_lane_complete(struct msg_route *route, struct msg_lane *lane, uint32_t tid, bool read);

/**
 * msg_lane_status - handle the answer to a probe of a write or read
 * @route: the route
 * @lane:  the lane, which belongs to @route
 * @frame: the answer
 */
void msg_lane_status(struct msg_route *route, struct msg_lane *lane,
		     const struct nhcadv_frame *frame);

/**
 * msg_lane_fence_status - handle the answer of the peer's kernel to a fence
 * @route: the route
 * @lane:  the lane, which belongs to @route
 * @frame: the answer
 */
void msg_lane_fence_status(struct msg_route *route, struct msg_lane *lane,
			   const struct nhcadv_frame *frame);

/**
 * msg_lane_fenced - report that the peer's rCxt refuses packets of a lane
 * @route: the route
 * @lane:  the lane, which belongs to @route
 * @tid:   the rCxt refuses packets with this tid and lower ones
 */
void msg_lane_fenced(struct msg_route *route, struct msg_lane *lane, uint32_t tid);

/**
 * msg_lanes_redrive - abandon all transfers of a dead route, so that other routes take their bytes
 * @route: the route
 */
void msg_lanes_redrive(struct msg_route *route);

/**
 * msg_lane_lost - report that the local channel was closed, which has released the local rCxt
 * @route: the route
 * @lane:  the lane, which belongs to @route
 */
void msg_lane_lost(struct msg_route *route, struct msg_lane *lane);

/**
 * msg_lane_new_remote - set the rCxt that a new grant of the peer has for a lane
 * @route: the route
 * @lane:  the lane, which belongs to @route
 * @rcxt:  id of the rCxt; 0: the grant has none for the lane
 */
void msg_lane_new_remote(struct msg_route *route, struct msg_lane *lane, uint64_t rcxt);

/**
 * msg_lane_timers - run the expired timers of the lanes of a route
 * @route: the route
 * Return: time of the next timer; NEVER: no timer is set.
 */
uint64_t msg_lane_timers(struct msg_route *route);

/**
 * msg_op_cancel - cancel a message
 * @op: the write, read or move
 * Return: 0; EALREADY: all bytes are in place and the notice is in the stream, so the message
 * completes with status 0.
 */
int msg_op_cancel(struct msg_op *op);

#endif /* NHCA_MSG_LANE_H */
