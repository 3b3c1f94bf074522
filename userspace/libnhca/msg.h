/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Reliable messages: what the files msg_*.c share.  Arrows point one way:
 *
 *	msg_ep.c	the program's side: endpoint, memory, polling, waiting
 *	msg_peer.c	a peer and the routes to it: rCxts are granted, paths die and come back
 *	msg_op.c	a write or a read as a whole
 *	msg_transfer.c writes and reads: cut into transfers, driven until they are done
 *	msg_stream.c	sends and notices: in order, exactly once
 *	msg_wire.c	packets to the peer's library
 *	msg_flow.c	a route's time and window
 *	msg_port.c	verbs
 *
 * A port is a device here; a route is a port here and one of the peer's; a lane is an rCxt at both
 * ends of a route, which nothing else uses, and whose tid only this side moves on.
 *
 * All of it runs under the endpoint's lock.
 */
#ifndef NHCA_MSG_H
#define NHCA_MSG_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <ccan/list.h>

#include "msg_port.h"

#define MS		UINT64_C(1000000)
#define NEVER		UINT64_MAX

#define MSG_MAX_LANES	128
#define MSG_MAX_PACKETS	256
#define MSG_STREAM	64	/* packets of a stream under way: bits of msg_header.sack */
#define MSG_MAX_ROUTES	65536	/* of an endpoint: what wr_id and cookie can tell apart */

/* The last tid of an rCxt; then both ends get another rCxt.  Tests have one that comes soon. */
#ifndef MSG_LAST_TID
#define MSG_LAST_TID	(UINT32_MAX - 1)
#endif

/* ---- msg_flow.c: how long things take, and how much may be under way; see there ---- */

struct msg_flow {
	uint64_t srtt;
	uint64_t rttvar;
	uint64_t fastest;	/* round trip of all */
	uint64_t window;
	uint64_t inflight;
	uint64_t step;		/* bytes of a transfer */
	uint64_t limit;
	uint64_t extent;	/* of reordering */
	uint64_t shrunk;	/* until then, for silence */
	uint64_t queued;	/* bytes done while there was a queue, since that last made it shrink */
	uint32_t sent;		/* packets, since losses were judged */
	uint32_t lost;
	bool limited;		/* the window was in the way, when last asked */
	bool starting;		/* nothing was lost yet beyond what chance does */
};

void msg_flow_init(struct msg_flow *flow, uint64_t step, uint64_t limit);
void msg_flow_sample(struct msg_flow *flow, uint64_t rtt);
/* Something takes that long, and is not done. */
void msg_flow_at_least(struct msg_flow *flow, uint64_t time);
/* After how long an answer is overdue, when @tries have not been answered */
uint64_t msg_flow_overdue(const struct msg_flow *flow, unsigned int tries);
/* How much later than what was sent behind it something may come */
uint64_t msg_flow_reordering(const struct msg_flow *flow);
/* So much later something did come. */
void msg_flow_reordered(struct msg_flow *flow, uint64_t extent);
bool msg_flow_may_send(struct msg_flow *flow, uint32_t bytes);
void msg_flow_sent(struct msg_flow *flow, uint32_t packets);
void msg_flow_done(struct msg_flow *flow, uint64_t bytes);
void msg_flow_lost(struct msg_flow *flow, uint32_t packets);
void msg_flow_silent(struct msg_flow *flow, uint64_t now);

/* ---- messages ---- */

/**
 * struct msg_op - a write or read that the program wants
 * @cut:      bytes from the start on that have been given to lanes, or to @pieces
 * @pieces:   ranges that have to be done again
 * @done:     bytes in place
 * @lanes:    that work on it
 * @notice:   for the peer's program; NULL: none is wanted
 * @turn:     transfers since others had their turn
 * @begun:    it has had a transfer: one of 0 bytes has one, too
 * @told:     @notice is in the stream
 */
struct msg_op {
	struct list_node node;
	struct msg_peer *peer;
	struct msg_mem *mem;
	struct list_head pieces;
	uint64_t id;
	uint64_t local_pvo;
	uint64_t remote_pvo;
	uint64_t length;
	uint64_t cut;
	uint64_t done;
	uint32_t lanes;
	int status;
	struct msg_out *notice;
	uint32_t turn;
	bool read;
	bool begun;
	bool told;
};

struct msg_piece {
	struct list_node node;
	uint64_t offset;
	uint32_t length;
};

/* ---- lanes ---- */

/**
 * enum lane_state - what a lane does
 * @LANE_FREE:   nothing; there may be work requests that are not done
 * @LANE_WRITE:  a write is under way: its packets, a probe, or its notice
 * @LANE_READ:   a read is
 * @LANE_FENCE:  the peer is asked to refuse what may come of a write that was given up
 * @LANE_CANCEL: a read is being cancelled here
 * @LANE_RENEW:  tids are used up: the peer is asked for another rCxt
 */
enum lane_state { LANE_FREE, LANE_WRITE, LANE_READ, LANE_FENCE, LANE_CANCEL, LANE_RENEW };

/**
 * struct msg_lane - an rCxt here and one at the peer
 * @remote_rcxt: 0: not granted yet
 * @have:   LANE_CANCEL: packets that have come
 * @offset, @length: of @op
 * @segment: of the transfer
 * @sent:   when its last packets left (their work request was done), or 0
 * @asked:  when a probe was posted; 0: none since @sent
 * @passed: when something came that was sent later; 0: nothing did
 * @due:    when to do something about it
 * @inflight: bytes that are thought to be under way
 * @seen:   LANE_READ: packets that had come when it was looked at last, plus one; 0: it was not
 * @nonce:  of the probe that is under way, 0: none
 * @wrs:    work requests that are not done
 * @tries:  what was not answered in a row
 * @resent: in this transfer something was sent twice, or asked for
 * @cancelled: LANE_CANCEL: nothing lands any more
 */
struct msg_lane {
	struct list_node node;
	struct msg_op *op;
	uint64_t local_rcxt;
	uint64_t remote_rcxt;
	uint64_t have[MSG_MAX_PACKETS / 64];
	uint64_t offset;
	uint32_t length;
	uint32_t segment;
	uint32_t tid;
	uint32_t inflight;
	uint64_t posted;
	uint64_t sent;
	uint64_t asked;
	uint64_t passed;
	uint64_t due;
	uint32_t nonce;
	uint32_t seen;
	uint16_t index;
	uint16_t wrs;
	uint8_t state;
	uint8_t tries;
	bool resent;
	bool cancelled;
};

/* ---- routes ---- */

/**
 * struct msg_route - a port here and one of the peer's
 * @number:  the peer has the same for it
 * @slot:    in msg_ep.routes
 * @dest:    the peer's channel; @self: our own
 * @gid:     the peer's
 * @segment: of the peer's packets
 * @free:    lanes that have nothing to do, the longest first
 * @busy:    the others
 * @granted: rCxts here that the peer's lanes have, and what was refused up to where
 * @grant:   version of that, @grant_known: which the peer has confirmed
 * @theirs:  version of the peer's grant that we have, 0: none
 * @alive:   is used
 * @silent:  since when an answer is owed, NEVER: none is
 * @ping:    when to probe a path that is dead, or that has only the stream to tell from
 * @next:    when the first lane is due
 */
struct msg_route {
	struct msg_peer *peer;
	struct msg_port *port;
	uint32_t number;
	uint32_t slot;
	struct msg_dest dest;
	struct msg_dest self;
	union ibv_gid gid;
	uint32_t segment;
	struct msg_lane *lanes;
	struct list_head free;
	struct list_head busy;
	uint64_t *granted;
	uint32_t *refused;
	uint32_t grant;
	uint32_t grant_known;
	uint32_t grant_tries;
	uint64_t grant_due;
	uint32_t theirs;
	uint32_t recoveries;
	bool alive;
	uint64_t silent;
	uint64_t ping;
	uint32_t ping_tries;
	uint64_t next;
	struct msg_flow flow;
	struct nhcadv_msg_stats stats;
};

/* ---- the stream ---- */

/**
 * struct msg_out - a send, or the notice of a write
 * @op: the write, or NULL
 */
struct msg_out {
	struct list_node node;
	struct msg_op *op;
	uint64_t id;
	uint64_t arg;
	uint64_t pvo;
	uint64_t sent;
	uint64_t due;
	struct msg_route *route;
	uint32_t seq;
	uint16_t length;
	uint8_t tries;
	bool acked;
	uint8_t data[];
};

/* What has come; the program sees @data. */
struct msg_in {
	uint64_t from;
	uint64_t id;
	uint64_t arg;
	uint64_t pvo;
	uint16_t length;
	bool written;
	_Alignas(16) uint8_t data[];
};

/**
 * struct msg_stream - packets in order, both directions
 * @waiting:  not sent yet
 * @under_way: sent, not confirmed
 * @queued:   sends in both
 * @next:     number of the next one to send
 * @expected: number of the next one to come
 * @early:    those that came too early, by number
 * @held:     messages that the program has, or could have
 * @ack_due:  something has come since the last acknowledgement
 * @time:     until the peer's program has it: that may be busy
 * @due:      of the first
 */
struct msg_stream {
	struct list_head waiting;
	struct list_head under_way;
	uint32_t queued;
	uint32_t next;
	uint32_t expected;
	struct msg_in *early[MSG_STREAM];
	uint32_t held;
	bool ack_due;
	struct msg_flow time;
	uint64_t due;
};

/* ---- peers, endpoints ---- */

struct msg_peer {
	struct list_node node;
	struct nhcadv_msg_ep *ep;
	void *context;
	uint64_t id;
	struct msg_route **routes;
	uint32_t num_routes;
	uint32_t turn;		/* route that is next for a transfer */
	uint32_t packet_turn;	/* and for a packet */
	struct list_head todo;	/* messages of which something can be begun */
	struct list_head going;	/* and those that wait for it to end */
	struct msg_stream stream;
	bool reachable;
};

struct msg_mem {
	struct nhcadv_msg_mem pub;
	struct list_node node;
	struct nhcadv_msg_ep *ep;
	struct nhcadv_job_mem *handles[NHCADV_MSG_MAX_PATHS];
	uint32_t users;
};

struct nhcadv_msg_peer {
	struct msg_peer peer;
};

struct nhcadv_msg_ep {
	pthread_mutex_t lock;
	uint64_t id;
	uint64_t now;		/* of the pass that runs */
	uint32_t job;
	uint32_t lanes;
	uint32_t packets;
	uint32_t queue;
	uint64_t dead;
	uint32_t num_ports;
	struct msg_port *ports[NHCADV_MSG_MAX_PATHS];
	struct ibv_context *contexts[NHCADV_MSG_MAX_PATHS];
	struct list_head peers;
	struct list_head mems;
	struct msg_route **routes;
	uint32_t num_routes;
	uint32_t next_slot;
	uint32_t nonce;
	int epoll;
	int timer;
	struct nhcadv_msg_completion *done;	/* a ring */
	uint32_t done_room;
	uint32_t done_first;
	uint32_t done_count;
	uint32_t done_promised;	/* messages that will have a place in it */
};

/* ---- wr_id and cookie: which lane of which route ---- */

enum msg_what { WHAT_TRANSFER, WHAT_AGAIN, WHAT_PROBE, WHAT_CANCEL, WHAT_REFUSE, WHAT_PACKET,
		WHAT_PING };

static inline uint64_t msg_name(const struct msg_route *route, uint32_t lane, enum msg_what what,
				uint32_t number)
{
	return (uint64_t)number << 32 | route->slot << 16 | what << 12 | lane;
}

static inline uint32_t msg_name_slot(uint64_t name)
{
	return (uint32_t)name >> 16;
}

static inline enum msg_what msg_name_what(uint64_t name)
{
	return name >> 12 & 15;
}

static inline uint32_t msg_name_lane(uint64_t name)
{
	return name & 0xfff;
}

static inline uint32_t msg_name_number(uint64_t name)
{
	return name >> 32;
}

/* ---- what goes over the wire ---- */

/* of an endpoint, as the program carries it to its peers */
struct msg_address_path {
	union ibv_gid gid;
	uint32_t qpn;
	uint32_t key;
	uint32_t segment;
};

struct msg_address {
	uint64_t id;
	uint32_t job;
	uint32_t num_paths;
	struct msg_address_path paths[NHCADV_MSG_MAX_PATHS];
};

/* a channel, and those of its rCxts that are the peer's to use */
struct msg_grant {
	struct msg_address_path at;
	uint32_t version;
	uint32_t count;
	uint64_t rcxts[MSG_MAX_LANES];
};

/* to refuse what may come for an rCxt up to a tid; UINT32_MAX: and to grant another one */
struct msg_fence {
	uint32_t lane;
	uint32_t tid;
	uint64_t rcxt;
};

/* ---- msg_ep.c ---- */

/* A place for one more completion; ENOMEM */
int msg_promise(struct nhcadv_msg_ep *ep);
/* @data: NULL, or of a struct msg_in */
void msg_complete(struct msg_peer *peer, enum nhcadv_msg_kind kind, int status, uint64_t id,
		  uint64_t length, uint64_t pvo, void *data);

/* ---- msg_peer.c ---- */

/* Something that only the route can have brought has come. */
void msg_route_heard(struct msg_route *route);
/* Something was sent that the peer's adapter answers. */
void msg_route_asked(struct msg_route *route);
/* The stream waits: is it the path, or the program? */
void msg_route_doubt(struct msg_route *route);
/* Packets to the peer's library: over which route?  NULL: none can */
struct msg_route *msg_route_for_packet(struct msg_peer *peer);
/* An rCxt here refuses what may come up to @tid. */
void msg_route_refused(struct msg_route *route, uint32_t lane, uint32_t tid);
/* Both channels are there, and their rCxts known. */
static inline bool msg_route_ready(const struct msg_route *route)
{
	return route->port->open && route->recoveries == route->port->recoveries &&
	       route->theirs && route->dest.ah && route->self.ah;
}

/* Everything that is due; returns when something will be */
uint64_t msg_peer_timers(struct msg_peer *peer);
void msg_peer_lost_port(struct msg_peer *peer, struct msg_port *port);
struct msg_peer *msg_peer_new(struct nhcadv_msg_ep *ep, const struct msg_address *address,
			      void *context);
/* What the program says of the peer's channels */
void msg_peer_move(struct msg_peer *peer, const struct msg_address *address);
void msg_peer_free(struct msg_peer *peer);
/* Completions that it would still have */
uint32_t msg_peer_promised(const struct msg_peer *peer);

void msg_grant_came(struct msg_route *route, const struct msg_grant *grant);
void msg_fence_came(struct msg_route *route, const struct msg_fence *fence);

/* ---- msg_transfer.c ---- */

void msg_lane_init(struct msg_route *route, struct msg_lane *lane, uint16_t index);
/* Give transfers to lanes as far as there is room. */
void msg_pump(struct msg_peer *peer);
void msg_lane_posted(struct msg_route *route, struct msg_lane *lane, uint64_t wr_id);
void msg_lane_complete(struct msg_route *route, struct msg_lane *lane, uint32_t tid, bool read);
void msg_lane_status(struct msg_route *route, struct msg_lane *lane,
		     const struct nhcadv_frame *frame);
/* The peer has refused what may come up to @tid. */
void msg_lane_fenced(struct msg_route *route, struct msg_lane *lane, uint32_t tid);
/* The path is dead: what it had goes elsewhere. */
void msg_lanes_redrive(struct msg_route *route);
/* The channel here is no more, and its rCxts with it. */
void msg_lane_lost(struct msg_route *route, struct msg_lane *lane);
/* The peer's rCxt is another one, and the old one is no more. */
void msg_lane_new_remote(struct msg_route *route, struct msg_lane *lane, uint64_t rcxt);
uint64_t msg_lane_timers(struct msg_route *route);
int msg_op_cancel(struct msg_op *op);

/* ---- msg_op.c ---- */

/* Is there something that no lane has taken? */
bool msg_op_has_work(const struct msg_op *op);
/* Into the list where it belongs */
void msg_op_sort(struct msg_op *op);
/* A lane has left it, or it was cancelled: is that all?  Then it is gone. */
void msg_op_check(struct msg_op *op);
/* Lanes take no more of it. */
void msg_op_fail(struct msg_op *op, int status);
/* These bytes are to be moved after all.  False: no memory. */
bool msg_op_again(struct msg_op *op, uint64_t offset, uint32_t length);
/* The next bytes to move, at most @most */
uint32_t msg_op_take(struct msg_op *op, uint32_t most, uint64_t *offset);
void msg_op_finish(struct msg_op *op);
void msg_op_free(struct msg_op *op);

/* ---- msg_stream.c ---- */

void msg_stream_init(struct msg_stream *stream);
void msg_stream_fini(struct msg_stream *stream);
int msg_stream_send(struct msg_peer *peer, const void *data, uint32_t length, uint64_t id);
void msg_stream_notify(struct msg_peer *peer, struct msg_op *op);
int msg_stream_cancel(struct msg_peer *peer, uint64_t id);
/* @what: all but data of what has come */
void msg_stream_came(struct msg_peer *peer, uint32_t seq, const struct msg_in *what,
		     const void *data);
void msg_stream_acked(struct msg_peer *peer, uint32_t ack, uint64_t sack);
/* What the header says of the other direction */
uint64_t msg_stream_sack(const struct msg_stream *stream);
uint64_t msg_stream_timers(struct msg_peer *peer);

/* ---- msg_wire.c ---- */

/* All of them: false if there was no room. */
bool msg_send_data(struct msg_route *route, const struct msg_out *out);
bool msg_send_ack(struct msg_peer *peer);
bool msg_send_grant(struct msg_route *route);
bool msg_send_granted(struct msg_route *route);
bool msg_send_fence(struct msg_route *route, const struct msg_lane *lane, uint32_t tid);
bool msg_send_fenced(struct msg_route *route, const struct msg_fence *fence);
void msg_frame_came(struct nhcadv_msg_ep *ep, const struct nhcadv_frame *frame);

int msg_address_pack(const struct msg_address *address, void *bytes, size_t *size);
int msg_address_unpack(struct msg_address *address, const void *bytes, size_t size);

#endif /* NHCA_MSG_H */
