/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Reliable messages: what the files msg_*.c share.
 *
 *	msg_ep.c	the program's side: endpoints, peers, polling, waiting
 *	msg_post.c	the program's side: memory, messages
 *	msg_sched.c	which peers have something to do, in which order
 *	msg_peer.c	a peer and the routes to it: paths die and come back
 *	msg_grant.c	the rCxts of a route: how many, and which the peer may use
 *	msg_op.c	a write or a read as a whole
 *	msg_transfer.c	writes and reads: cut into transfers, driven until they are done
 *	msg_lane.c	a lane: what becomes of a transfer
 *	msg_stream.c	sends and notices: in order, exactly once
 *	msg_wire.c	packets to the peer's library
 *	msg_flow.c	a route's time and window
 *	msg_port.c	verbs; msg_clock.c: clock, randomness
 *
 * A file calls those below it, with these exceptions, in which an event goes up: msg_wire.c hands packets
 * to msg_grant.c, msg_stream.c and msg_transfer.c; msg_lane.c tells msg_op.c, and msg_op.c the program
 * by msg_complete(); msg_stream.c tells msg_op.c that a notice has come, and asks msg_peer.c for a route;
 * msg_transfer.c and msg_stream.c tell msg_peer.c whether a route lives.
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

#include "msg_flow.h"
#include "msg_port.h"

#define MS		UINT64_C(1000000)
#define NEVER		UINT64_MAX
/* What finds no room, or no memory, is tried again so much later. */
#define MSG_AGAIN_LATER	(MS / 10)

#define MSG_MAX_LANES	128
#define MSG_MAX_PACKETS	256
#define MSG_BUCKETS	1024	/* of peers, by id */
#define MSG_STREAM	64	/* packets of a stream under way: bits of msg_header.sack */
#define MSG_MAX_ROUTES	65536	/* of an endpoint: what wr_id and cookie can tell apart */

/* The last tid of an rCxt; then both ends get another rCxt.  Tests have one that comes soon. */
#ifndef MSG_LAST_TID
#define MSG_LAST_TID	(UINT32_MAX - 1)
#endif

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
 * @LANE_SOURCE: nothing has come of a read: the peer's rCxt is asked whether it was refused
 * @LANE_FENCE:  the peer is asked to refuse what may come of a write that was given up
 * @LANE_RELEASE: the peer takes nothing more of a write, which is cancelled here: packets may still
 *               refer to its bytes
 * @LANE_CANCEL: a read is being cancelled here
 * @LANE_RENEW:  tids are used up: the peer is asked for another rCxt
 */
enum lane_state { LANE_FREE, LANE_WRITE, LANE_READ, LANE_SOURCE, LANE_FENCE, LANE_RELEASE,
		  LANE_CANCEL, LANE_RENEW };

/**
 * struct msg_lane - an rCxt here and one at the peer
 * @local_rcxt, @remote_rcxt: 0: none; not granted
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
 * @cancelled: LANE_CANCEL: nothing lands any more; LANE_RELEASE: no packet is left
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
 * @want:    we use the lanes before this one; @held: no later one has an rCxt
 * @busy_lanes, @most_busy: that have a transfer, and the most of them since @look was set
 * @look:    when to give back what was not used
 * @more:    when to ask the pool again, which had no rCxt
 * @hungry:  a transfer would have begun if there were one more lane
 * @told_want: @held, as our last grant says it; @their_want: what the peer's says
 * @granted: rCxts here that the peer's lanes have, @given of them
 * @refused: the tid up to which each of them refuses what may come
 * @refusing: the rCxt that a WHAT_REFUSE under way was posted for, 0: none is
 * @told_segment: of our packets, as the last grant says it
 * @grant:   version of that, @grant_known: which the peer has confirmed
 * @theirs:  version of the peer's grant that we have, 0: none
 * @fences:  the peer's adapter takes fences
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
	uint32_t want;
	uint32_t held;
	uint32_t busy_lanes;
	uint32_t most_busy;
	uint32_t told_want;
	uint32_t their_want;
	uint32_t given;
	bool hungry;
	uint64_t look;
	uint64_t more;
	uint64_t *granted;
	uint64_t *refusing;
	uint32_t *refused;
	uint32_t told_segment;
	uint32_t grant;
	uint32_t grant_known;
	uint32_t grant_tries;
	uint64_t grant_due;
	uint32_t theirs;
	uint32_t recoveries;
	bool fences;
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

/**
 * struct msg_in - a send or a notice that has come; the program sees @data
 * @from, @session: the peer, and our session with it
 */
struct msg_in {
	uint64_t from;
	uint32_t session;
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
 * @acked, @limit: the peer has what is before @acked, and takes sends up to before @limit
 * @expected: number of the next one to come
 * @early:    those that came before their turn, by number; also the next one, if @held is at its limit
 * @num_early: sends in @early
 * @held:     sends that the program has, or could have
 * @told_room: how many sends the peer was told that we take
 * @ack_due:  something has come since the last acknowledgement
 * @time:     until the peer's program has it: that may be busy
 * @due:      of the first
 */
struct msg_stream {
	struct list_head waiting;
	struct list_head under_way;
	uint32_t queued;
	uint32_t next;
	uint32_t acked;
	uint32_t limit;
	uint32_t expected;
	uint32_t told_room;
	struct msg_in *early[MSG_STREAM];
	uint32_t num_early;
	uint32_t held;
	bool ack_due;
	struct msg_flow time;
	uint64_t due;
};

/* ---- peers, endpoints ---- */

/**
 * struct msg_peer - a peer, from connect to disconnect
 * @node, @bucket: in msg_ep.peers, and by @id in msg_ep.buckets
 * @session:   a random number for this connection; the peer's packets have to name it
 * @theirs:    the peer's, 0: not known
 * @confirmed: the peer has named our session, so that @theirs is that of its present connection
 * @turn, @packet_turn: the route that is next, for a transfer and for a packet
 * @todo:      messages of which something can be begun; @going: those that wait for it to end
 * @due:       when its timers have to run; @heap: its place in msg_ep.heap
 * @work:      in msg_ep.ready, if @ready, or in msg_ep.starved, if @starved
 * @ready:     something has changed: its timers have to run, and it may send
 * @starved:   it would send, but no port has a free slot
 */
struct msg_peer {
	struct list_node node;
	struct list_node bucket;
	struct list_node work;
	struct nhcadv_msg_ep *ep;
	uint64_t due;
	uint32_t heap;
	bool ready;
	bool starved;
	bool confirmed;
	uint32_t session;
	uint32_t theirs;
	void *context;
	uint64_t id;
	struct msg_route **routes;
	uint32_t num_routes;
	uint32_t turn;
	uint32_t packet_turn;
	struct list_head todo;
	struct list_head going;
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

/**
 * struct nhcadv_msg_ep - an endpoint
 * @now:      of the pass that runs
 * @peers, @buckets: all peers, and by id
 * @ready:    peers that the next pass serves
 * @starved:  peers that have not had their turn at the send FIFOs, the next one first
 * @heap:     all peers, by when they are due: the first is due first
 * @short_until: a device had no rCxt for a new peer: until then others take no more of them
 * @sleepers: threads in nhcadv_msg_wait() that sleep; @armed: nhcadv_msg_arm() was called
 * @wake:     an eventfd that is readable (@woken) while there is something for them to do
 * @timer, @timer_at: a timerfd, and what it is set to
 * @done:     a ring of completions, of @done_room entries
 * @done_promised: messages that will have a place in it
 */
struct nhcadv_msg_ep {
	pthread_mutex_t lock;
	uint64_t id;
	uint64_t now;
	uint32_t job;
	uint32_t lanes;
	uint32_t packets;
	uint32_t queue;
	uint64_t dead;
	uint32_t num_ports;
	struct msg_port *ports[NHCADV_MSG_MAX_PATHS];
	struct ibv_context *contexts[NHCADV_MSG_MAX_PATHS];
	struct list_head peers;
	struct list_head buckets[MSG_BUCKETS];
	struct list_head ready;
	struct list_head starved;
	struct msg_peer **heap;
	uint32_t num_peers;
	uint32_t heap_room;
	struct list_head mems;
	struct msg_route **routes;
	uint32_t num_routes;
	uint32_t next_slot;
	uint32_t nonce;
	uint64_t short_until;
	uint32_t sleepers;
	bool armed;
	bool woken;
	int epoll;
	int timer;
	int wake;
	uint64_t timer_at;
	struct nhcadv_msg_completion *done;
	uint32_t done_room;
	uint32_t done_first;
	uint32_t done_count;
	uint32_t done_promised;
};

/* ---- wr_id and cookie: which lane of which route ---- */

enum msg_what { WHAT_TRANSFER, WHAT_AGAIN, WHAT_PROBE, WHAT_CANCEL, WHAT_REFUSE, WHAT_PACKET,
		WHAT_PING, WHAT_SOURCE, WHAT_FENCE };

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
	uint64_t key;
	uint32_t qpn;
	uint32_t segment;
};

struct msg_address {
	uint64_t id;
	uint32_t job;
	uint32_t num_paths;
	struct msg_address_path paths[NHCADV_MSG_MAX_PATHS];
};

/* a channel, those of its rCxts that are the peer's to use, and how many of the peer's it wants */
struct msg_grant {
	struct msg_address_path at;
	uint32_t version;
	uint32_t count;
	uint32_t wanted;
	bool fences;
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

/* All functions of the API hold the lock; whoever sleeps is told at unlock what there is to do. */
void msg_ep_lock(struct nhcadv_msg_ep *ep);
void msg_ep_unlock(struct nhcadv_msg_ep *ep);

/* ---- msg_sched.c ---- */

/* Into the endpoint's table, and the heap.  Return: 0 or ENOMEM. */
int msg_peer_add(struct nhcadv_msg_ep *ep, struct msg_peer *peer);
void msg_peer_remove(struct msg_peer *peer);
struct msg_peer *msg_peer_find(struct nhcadv_msg_ep *ep, uint64_t id);
/* Something has changed for the peer: the next pass serves it. */
void msg_peer_ready(struct msg_peer *peer);
/* Serves all peers that are ready or due. */
void msg_serve(struct nhcadv_msg_ep *ep);
/* Return: when the first peer is due; now, if one is ready. */
uint64_t msg_next_due(const struct nhcadv_msg_ep *ep);

/* ---- msg_peer.c ---- */

/* Bytes in a packet of a transfer, as both sides can take them */
static inline uint32_t msg_route_segment(const struct msg_route *route)
{
	return route->segment < route->port->info.segment ? route->segment :
	       route->port->info.segment;
}

/* Something that only the route can have brought has come. */
void msg_route_heard(struct msg_route *route);
/* Something was sent that the peer's adapter answers. */
void msg_route_asked(struct msg_route *route);
/* The stream waits: is it the path, or the program? */
void msg_route_doubt(struct msg_route *route);
/*
 * Asks the peer's adapter to refuse what may come of the lane's write, over this route, or over another
 * one if this one is dead.
 */
void msg_route_fence(struct msg_route *route, const struct msg_lane *lane);
/* Packets to the peer's library: over which route?  NULL: none can */
struct msg_route *msg_route_for_packet(struct msg_peer *peer);
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

enum msg_session {
	MSG_SESSION_OLD,	/* of an earlier connection: the packet does not count */
	MSG_SESSION_HELLO,	/* of a peer that does not know our session yet, or of an old one */
	MSG_SESSION_OURS,	/* of this connection */
};

/* Of which connection is the packet?  @grant: it is one */
enum msg_session msg_session_came(struct msg_peer *peer, uint32_t theirs, uint32_t ours, bool grant);
static inline bool msg_any_alive(const struct msg_peer *peer)
{
	uint32_t i;

	for (i = 0; i < peer->num_routes; i++)
		if (peer->routes[i]->alive)
			return true;
	return false;
}

/* ---- msg_grant.c ---- */

/* A route has the first few rCxts of its port's channel, for lanes and for the peer: 0, or an errno */
void msg_rcxts_init(struct msg_route *route);
int msg_rcxts_acquire(struct msg_route *route);
/* The channel is no more; and: the route is no more. */
void msg_rcxts_lost(struct msg_route *route);
void msg_rcxts_release(struct msg_route *route);
/* A device has none left: call back what peers have beyond the first few.  False: it was just done. */
bool msg_rcxts_short(struct nhcadv_msg_ep *ep);
/* Address handles, as far as there is a way; and: the peer's channel is there now. */
bool msg_route_find_way(struct msg_route *route);
void msg_route_move(struct msg_route *route, const struct msg_address_path *at);
/* Send the grant, until it is confirmed. */
void msg_grant_soon(struct msg_route *route);
uint64_t msg_grant_timer(struct msg_route *route);
/* Where a peer that does not know our session is to be answered; its rCxts are not used. */
void msg_hello_came(struct msg_route *route, const struct msg_grant *grant);
void msg_grant_came(struct msg_route *route, const struct msg_grant *grant);
void msg_fence_came(struct msg_route *route, const struct msg_fence *fence);
/* An rCxt here refuses what may come up to @tid. */
void msg_route_refused(struct msg_route *route, uint32_t lane, uint32_t tid);

/* ---- msg_lane.c ---- */

void msg_lane_init(struct msg_route *route, struct msg_lane *lane, uint16_t index);
/* The route's lanes have to be looked at @when, at the latest. */
void msg_lane_wake(struct msg_route *route, uint64_t when);
void msg_lane_set_due(struct msg_route *route, struct msg_lane *lane, uint64_t when);
/* Bytes of the lane that are thought to be under way */
void msg_lane_set_inflight(struct msg_route *route, struct msg_lane *lane, uint32_t bytes);
/* To be used again when no work request of it is left, if it has its rCxts and is wanted */
void msg_lane_settle(struct msg_route *route, struct msg_lane *lane);
/* Its part in its message has ended, one way or the other; and: its bytes are in place. */
void msg_lane_leave(struct msg_route *route, struct msg_lane *lane);
void msg_lane_done(struct msg_route *route, struct msg_lane *lane);
uint32_t msg_lane_packets(const struct msg_lane *lane);
struct nhcadv_transfer msg_lane_transfer(const struct msg_route *route,
					 const struct msg_lane *lane);
/* Nothing of it lands any more: what has not landed is for other lanes. */
void msg_lane_requeue(struct msg_route *route, struct msg_lane *lane);
/* Post the transfer, with a new tid; and the same once more. */
void msg_lane_begin(struct msg_route *route, struct msg_lane *lane);
void msg_lane_redrive(struct msg_route *route, struct msg_lane *lane);
/* The peer is to refuse what may come of a write; a read is to be cancelled here; or whichever it is. */
void msg_lane_fence(struct msg_route *route, struct msg_lane *lane);
void msg_lane_cancel(struct msg_route *route, struct msg_lane *lane);
/* a write is over, at the peer: the lane leaves its message when packets are */
void msg_lane_release(struct msg_route *route, struct msg_lane *lane);
void msg_lane_give_up(struct msg_route *route, struct msg_lane *lane);
/* Nothing of it has left: it is for other lanes, a bit later. */
void msg_lane_unsent(struct msg_route *route, struct msg_lane *lane);

/* ---- msg_transfer.c ---- */

enum msg_pumped {
	MSG_PUMP_DONE,		/* nothing more can be begun until something changes for the peer */
	MSG_PUMP_TURN,		/* others have their turn */
	MSG_PUMP_STARVED,	/* no port has room */
};

/* Give transfers to lanes as far as there is room, a few at most. */
enum msg_pumped msg_pump(struct msg_peer *peer);
/* @status: as in struct port_event */
void msg_lane_posted(struct msg_route *route, struct msg_lane *lane, uint64_t wr_id, int status);
void msg_lane_complete(struct msg_route *route, struct msg_lane *lane, uint32_t tid, bool read);
void msg_lane_status(struct msg_route *route, struct msg_lane *lane,
		     const struct nhcadv_frame *frame);
/* The peer's adapter has answered a fence. */
void msg_lane_fence_status(struct msg_route *route, struct msg_lane *lane,
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
void msg_stream_acked(struct msg_peer *peer, uint32_t ack, uint32_t room, uint64_t sack);
/* A send of ours is given back by the program. */
void msg_stream_released(struct msg_peer *peer);
/* What the header says of the other direction; see struct wire_header */
uint32_t msg_stream_room(struct msg_peer *peer);
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
/* Return: 0, EINVAL, or EPROTONOSUPPORT: of a library that speaks another version. */
int msg_address_unpack(struct msg_address *address, const void *bytes, size_t size);
/* May a peer be reached there? */
bool msg_path_ok(const struct msg_address_path *path);

#endif /* NHCA_MSG_H */
