/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Reliable messages: declarations for the files msg_*.c, which use channels through nhcadv.h.
 *
 *	msg_ep.c	API: endpoints, peers; polls and waits, which make progress in passes
 *	msg_post.c	API: memory, messages
 *	msg_sched.c	the peers that a pass serves, and their order
 *	msg_peer.c	a peer and the routes to it: dead and living routes, probes, fences
 *	msg_grant.c	the rCxts of a route: their number, and those that the peer may use
 *	msg_op.c	a whole write or read
 *	msg_transfer.c	writes and reads: transfers, probes, retransmission
 *	msg_lane.c	state of a lane and its transfer
 *	msg_move.c	moves: transfers from one peer to another
 *	msg_pair.c	moves: the pair of routes for a transfer
 *	msg_target.c	API: the targets of moves that this endpoint allows as a source
 *	msg_stream.c	sends and notices: in order, exactly once
 *	msg_wire.c	packets to the library of the peer
 *	msg_cc.c	round trip time and congestion window of a route
 *	msg_port.c	verbs; msg_clock.c: clock, random numbers; list.h: lists
 *
 * Most calls go to files further down in this list.  Exceptions: all files call msg_ep.c to store
 * completions, and msg_sched.c to have a peer served.  msg_wire.c passes packets to msg_grant.c,
 * msg_stream.c and msg_transfer.c.  msg_transfer.c, msg_lane.c and msg_stream.c report to msg_op.c,
 * and msg_transfer.c takes bytes to transfer from msg_op.c.  Files below msg_peer.c report to
 * msg_peer.c which packets prove that a route is alive, and get routes from msg_peer.c.
 *
 * A port is a local device and its channel.  A route joins a port to a channel of the peer.  A lane
 * is a pair of rCxts, one at each end of a route, for one transfer at a time; only this side starts
 * transfers on the lane.  A notice reports to the peer's program that a write is in place.
 *
 * Context: the caller holds the lock of the endpoint.  Times are nanoseconds of msg_clock().
 */
#ifndef NHCA_MSG_H
#define NHCA_MSG_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "list.h"
#include "msg_cc.h"
#include "msg_port.h"
#include "msg_wire.h"
#include "util.h"

#define MS		UINT64_C(1000000)
#define NEVER		UINT64_MAX	/* a timer that is not set */
/* Delay before a retry, if there was no free slot or no memory */
#define MSG_AGAIN_LATER	(MS / 10)

#define MSG_MAX_PACKETS	256
#define MSG_BUCKETS	1024	/* hash buckets of peers, by id */
#define MSG_STREAM	64	/* maximum packets in flight: wire_header.sack has 64 bits */
#define MSG_MAX_ROUTES	65536	/* of an endpoint; a slot has 16 bits in wr_id and cookie */

/* The last tid of an rCxt, after which both ends acquire another one.  Tests define a small tid. */
#ifndef MSG_LAST_TID
#define MSG_LAST_TID	(UINT32_MAX - 1)
#endif

/* ---- messages ---- */
/**
 * struct msg_op - a write, read or move of the program
 * @node:     in msg_peer.todo, msg_peer.moves or msg_peer.going; a move that waits for its target:
 *            in msg_peer.awaiting of @to
 * @to:       move: the target; @peer is the source
 * @to_pvo:   move: PVO of the first byte at the target
 * @refused:  move: pairs of routes that the source refused (msg_pair_bit())
 * @no_way:   move: pairs of routes that lack an address handle
 * @tried:    move: time at which it found no room at its target
 * @pieces:   ranges to transfer again
 * @cut:      bytes, from the start, that msg_op_take() has cut into transfers
 * @done:     bytes in place
 * @lanes:    number of lanes that have a transfer of the operation
 * @notice:   the notice to send; NULL: not requested, or already in the stream
 * @notice_queued: the notice is in the stream
 * @transfers: number of transfers; after OP_QUANTUM transfers, the next operation has its turn
 * @begun:    a lane has taken a transfer; an operation of 0 bytes also needs one transfer
 */
struct msg_op {
	struct list_node node;
	struct msg_peer *peer;
	struct msg_peer *to;
	struct msg_mem *mem;
	struct list_head pieces;
	uint64_t id;
	uint64_t local_pvo;
	uint64_t remote_pvo;
	uint64_t to_pvo;
	uint64_t refused, no_way;
	uint64_t tried;
	uint64_t length;
	uint64_t cut;
	uint64_t done;
	uint32_t lanes;
	int status;
	struct msg_out *notice;
	uint32_t transfers;
	bool read;
	bool begun;
	bool notice_queued;
};

struct msg_piece {
	struct list_node node;
	uint64_t offset;
	uint32_t length;
};

/* ---- lanes ---- */
/**
 * enum lane_state - state of a lane
 * @LANE_FREE:   no transfer; work requests may still be outstanding
 * @LANE_WRITE:  a write is in progress
 * @LANE_READ:   a read is in progress
 * @LANE_SOURCE: no byte of a read has arrived: probes query whether the peer refused the read
 * @LANE_FENCE:  the write was abandoned: requests let the peer refuse late packets of the write
 * @LANE_RELEASE: the peer places no more bytes of a write.  The write is being cancelled here,
 *               because packets may still refer to its memory
 * @LANE_CANCEL: a read is being cancelled here
 * @LANE_RENEW:  the tids are used up: the peer is asked for another rCxt
 * @LANE_MOVE:   lane of the source of a move in progress (msg_move.h)
 * @LANE_TARGET: lane of the target of a move in progress
 * @LANE_FENCED: the peer of this lane refuses late packets of a move; that of its partner may not
 */
enum lane_state { LANE_FREE, LANE_WRITE, LANE_READ, LANE_SOURCE, LANE_FENCE, LANE_RELEASE,
		  LANE_CANCEL, LANE_RENEW, LANE_MOVE, LANE_TARGET, LANE_FENCED };

/**
 * struct msg_lane - an rCxt here and one at the peer
 * @node:   in msg_route.free or msg_route.busy
 * @index:  index in msg_route.lanes
 * @op:     the operation that the transfer belongs to; NULL: the lane has no transfer
 * @local_rcxt: id of the rCxt here; 0: not acquired
 * @remote_rcxt: id of the rCxt at the peer; 0: not granted
 * @partner: move: the lane of the other peer
 * @partner_route: move: the route of @partner
 * @way:    move: address handle of the target at the source's port; NULL: that of @partner_route
 * @have:   LANE_CANCEL, LANE_FENCE: bitmap of packets that have arrived or were queued again
 * @offset: first byte of @op that the transfer moves
 * @length: bytes that the transfer moves
 * @segment: bytes of payload of a packet
 * @posted: time of the post of the transfer
 * @sent:   time at which its last packets were sent (their work request was done), or 0
 * @probed: time of the last probe, or of the cancel; 0: neither was sent since @sent
 * @passed: time at which a transfer that was sent later overtook this one; 0: not overtaken
 * @due:    time of the lane's timer
 * @inflight: bytes that count for msg_cc.inflight
 * @seen:   LANE_READ, LANE_MOVE: packets that the last status reported, plus one; 0: no status yet.
 *          LANE_FENCE, LANE_CANCEL: bytes that were queued again
 * @asked:  move: packets before this one were requested again, if they were missing
 * @overtaken: move: number of packets up to the last one that the last status reported
 * @looked: move: time of the last status of the target, or of the post
 * @nonce:  number of the outstanding probe, 0: none
 * @wrs:    work requests that are not done
 * @tries:  unanswered probes, answers NHCADV_TRANSFER_NONE, and fences in a row; for the backoff
 * @resent: packets of the transfer were retransmitted, or the transfer was started again
 * @complete: move: the target has all bytes
 * @asks_source: move: the source is probed
 * @cancelled: LANE_CANCEL: no more bytes land here.  LANE_RELEASE: no packet refers to the memory
 */
struct msg_lane {
	struct list_node node;
	struct msg_op *op;
	struct msg_lane *partner;
	struct msg_route *partner_route;
	struct msg_ah *way;
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
	uint64_t probed;
	uint64_t passed;
	uint64_t due;
	uint32_t nonce;
	uint32_t seen;
	uint32_t asked, overtaken;
	uint64_t looked;
	uint16_t index;
	uint16_t wrs;
	uint8_t state;
	uint8_t tries;
	bool resent;
	bool cancelled;
	bool complete, asks_source;
};

/* Return: true if the transfer of a lane in use is a move.  Only moves use lanes without op. */
static inline bool msg_lane_moves(const struct msg_lane *lane)
{
	return !lane->op || lane->op->to;
}

/* ---- routes ---- */
/**
 * struct msg_route - a path to the peer, from a local port to a channel of the peer
 * @number:  number of the path, the same at both ends
 * @slot:    index in nhcadv_msg_ep.routes
 * @dest:    channel of the peer, at @gid
 * @self:    local channel, for probes of reads
 * @segment: maximum payload of a packet of a transfer, in bytes, as the peer reported it
 * @free:    idle lanes, the longest idle one first
 * @busy:    the other lanes
 * @want:    number of lanes to use
 * @held:    no lane from this index on has a local rCxt
 * @busy_lanes: number of lanes in use
 * @most_busy: maximum of @busy_lanes since @trim_at was set
 * @trim_at: time to release lanes that were not used
 * @more:    time to try again to acquire rCxts, after the pool had none
 * @lanes_short: a transfer could have started if one more lane had been free
 * @adv_want: number of rCxts that our last grant requests
 * @their_want: number of rCxts that the last grant of the peer requests
 * @granted: local rCxts that the lanes of the peer use
 * @given:   number of rCxts in @granted
 * @refused: for each rCxt in @granted, the tid up to which it refuses packets
 * @refusing: for each rCxt in @granted, the rCxt that an outstanding WHAT_REFUSE names, 0: none
 * @adv_segment: maximum payload of a packet in our last grant
 * @grant:   version of our last grant
 * @grant_known: version that the peer has confirmed
 * @theirs:  version of the last grant of the peer, 0: none
 * @recoveries: the channel that the rCxts belong to, identified by msg_port.recoveries; 0: none
 * @fences:  the device of the peer supports fences
 * @moves:   the device of the peer supports moves
 * @silent:  time of the oldest request that the peer's kernel has not answered, NEVER: none
 * @ping:    time of the next probe that tests the route itself; NEVER: none
 * @next:    time of the first timer of the route's lanes
 * @moved:   time of the last completion of a transfer of a move from this source
 * @moved_posted: latest time of the post of such a transfer that is complete
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
	uint32_t adv_want;
	uint32_t their_want;
	uint32_t given;
	bool lanes_short;
	uint64_t trim_at;
	uint64_t more;
	uint64_t *granted;
	uint64_t *refusing;
	uint32_t *refused;
	uint32_t adv_segment;
	uint32_t grant;
	uint32_t grant_known;
	uint32_t grant_tries;
	uint64_t grant_due;
	uint32_t theirs;
	uint32_t recoveries;
	bool fences, moves;
	bool alive;
	uint64_t silent;
	uint64_t ping;
	uint32_t ping_tries;
	uint64_t next;
	uint64_t moved, moved_posted;
	struct msg_cc cc;
	struct nhcadv_msg_stats stats;
};

/* ---- the stream ---- */
/**
 * struct msg_out - a send, or the notice of a write
 * @op: the write that the notice is for; NULL: this is a send
 * @arg: notice: length of the write in bytes
 * @pvo: notice: remote PVO of the write
 * @route: route of the last transmission
 * @tries: number of retransmissions, at most MOST_TRIES
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
 * struct msg_in - a received send, or a notice if @written; the program gets a pointer to @data
 * @from: id of the peer
 * @session: our session with the peer
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
 * struct msg_stream - sends and notices in sequence, both directions
 * @waiting:  not sent yet
 * @under_way: sent; the first one is not acknowledged yet
 * @queued:   number of sends in both lists
 * @next:     next sequence number to send
 * @acked:    the peer has everything before this sequence number
 * @limit:    the peer accepts numbers before this one
 * @expected: next sequence number to receive
 * @early:    packets received out of order; also number @expected, if @held is at its limit
 * @num_early: number of sends in @early
 * @held:     number of sends that the program has received and not released
 * @adv_room: number of sends that we accept, as the last header said
 * @ack_due:  an acknowledgment has to be sent
 * @time:     round trip times, which include the delay until the program of the peer polls
 * @due:      time of the first retransmission
 */
struct msg_stream {
	struct list_head waiting;
	struct list_head under_way;
	uint32_t queued;
	uint32_t next;
	uint32_t acked;
	uint32_t limit;
	uint32_t expected;
	uint32_t adv_room;
	struct msg_in *early[MSG_STREAM];
	uint32_t num_early;
	uint32_t held;
	bool ack_due;
	struct msg_cc time;
	uint64_t due;
};

/* ---- peers, endpoints ---- */
/**
 * struct msg_peer - a peer, from connect to disconnect
 * @node:      in nhcadv_msg_ep.peers
 * @bucket:    by @id in nhcadv_msg_ep.buckets
 * @work:      in nhcadv_msg_ep.ready if @ready, in nhcadv_msg_ep.starved if @starved
 * @due:       time of the peer's next timer
 * @heap:      index in nhcadv_msg_ep.heap
 * @ready:     the next pass serves the peer, because its state has changed
 * @starved:   transfers of the peer wait until a port has a free slot
 * @confirmed: the peer has named our session, so @theirs belongs to this connection
 * @session:   random number of this connection, which packets of the peer have to name
 * @theirs:    session of the peer, 0: not known
 * @next_route: the next route for a transfer (round robin)
 * @next_packet_route: the next route for a packet (round robin)
 * @todo:      writes and reads with bytes that no lane has taken
 * @going:     the other operations
 * @moves:     moves from this peer with bytes that no lane has taken, and that do not wait for
 *             their target
 * @move_next: the next transfer is one of a move, if there is one
 * @awaiting:  moves to this peer that wait for its lanes or routes, longest first
 * @reachable: false: from a completion NHCADV_MSG_UNREACHABLE to the next NHCADV_MSG_REACHABLE
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
	uint32_t next_route;
	uint32_t next_packet_route;
	struct list_head todo;
	struct list_head moves;
	struct list_head going;
	struct list_head awaiting;
	struct msg_stream stream;
	bool reachable, move_next;
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
 * @lock:     protects all members, and all peers
 * @now:      time of the current pass
 * @dead:     nhcadv_msg_ep_attr.dead_ms in nanoseconds
 * @peers:    all peers
 * @buckets:  hash table of all peers by id
 * @ready:    peers that the next pass serves
 * @starved:  peers that wait for free slots of send FIFOs, in the order of service
 * @heap:     binary heap of all peers by msg_peer.due; the first entry has the earliest time
 * @nonce:    number of the last probe
 * @short_until: until this time peers acquire no rCxts beyond the first few, because a device had
 *            none for a new peer
 * @sleepers: threads that sleep in nhcadv_msg_wait()
 * @armed:    nhcadv_msg_arm() was called
 * @wake:     an eventfd that is readable (@woken) while sleeping threads have something to do
 * @timer:    a timerfd
 * @timer_at: the time that @timer is set to
 * @done:     ring of completions, of @done_room entries
 * @targets:  targets that the program allows
 * @targets_due: time to apply the targets that ports lack
 * @moves:    number of moves that are not complete
 * @done_reserved: entries of @done that are reserved for messages that are not complete
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
	struct list_head targets;
	uint64_t targets_due;
	uint32_t moves;
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
	uint32_t done_reserved;
};

/* ---- wr_id and cookie: number (32 bits), slot of the route (16), what (4), lane (12) ---- */
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

/* ---- msg_ep.c ---- */
/** msg_reserve - reserve an entry for one completion; Return: 0; ENOMEM: no memory */
int msg_reserve(struct nhcadv_msg_ep *ep);
/** msg_complete - store a completion in a reserved entry; @data: NULL, or msg_in.data */
void msg_complete(struct msg_peer *peer, enum nhcadv_msg_kind kind, int status, uint64_t id,
		  uint64_t length, uint64_t pvo, void *data);
/** msg_ports_close_broken - close broken channels now, not in the next pass; Return: 0 or errno */
int msg_ports_close_broken(struct nhcadv_msg_ep *ep);
/** msg_ep_lock - take the lock; Context: the caller does not hold it */
void msg_ep_lock(struct nhcadv_msg_ep *ep);
/** msg_ep_unlock - wake sleeping threads that have something to do, and release the lock */
void msg_ep_unlock(struct nhcadv_msg_ep *ep);

/* ---- msg_sched.c ---- */
/** msg_peer_add - add a peer to the lists and the heap; Return: 0; ENOMEM: no memory */
int msg_peer_add(struct nhcadv_msg_ep *ep, struct msg_peer *peer);
/** msg_peer_remove - reverse of msg_peer_add() */
void msg_peer_remove(struct msg_peer *peer);
/** msg_peer_find - look up a peer by id; Return: the peer or NULL */
struct msg_peer *msg_peer_find(struct nhcadv_msg_ep *ep, uint64_t id);
/** msg_peer_ready - let the next pass serve the peer, because its state has changed */
void msg_peer_ready(struct msg_peer *peer);
/** msg_peer_by - let a pass serve the peer at @when at the latest */
void msg_peer_by(struct msg_peer *peer, uint64_t when);
/** msg_serve - serve all peers that are ready or whose timers have expired */
void msg_serve(struct nhcadv_msg_ep *ep);
/** msg_next_due - Return: time of the first timer of all peers; now, if a peer is ready */
uint64_t msg_next_due(const struct nhcadv_msg_ep *ep);

/* ---- msg_peer.c ---- */
/* Maximum payload of a packet of a transfer that both ends can send and receive, in bytes */
static inline uint32_t msg_route_segment(const struct msg_route *route)
{
	return route->segment < route->port->info.segment ? route->segment :
	       route->port->info.segment;
}

/** msg_route_confirmed - report a packet that proves that the route is alive */
void msg_route_confirmed(struct msg_route *route);
/** msg_route_probed - report that a packet was sent that the kernel of the peer answers */
void msg_route_probed(struct msg_route *route);
/** msg_route_doubt - probe the route, because stream packets sent on it are not acknowledged */
void msg_route_doubt(struct msg_route *route);
/** msg_route_fence - fence a lane's write over @route; if @route is dead, also over a live route */
void msg_route_fence(struct msg_route *route, const struct msg_lane *lane);
/** msg_route_for_packet - Return: a route for a packet to the library of the peer, or NULL */
struct msg_route *msg_route_for_packet(struct msg_peer *peer);
/* Return: true if the open channel owns the rCxts, both AHs exist, and a grant has come */
static inline bool msg_route_ready(const struct msg_route *route)
{
	return route->port->open && route->recoveries == route->port->recoveries &&
	       route->theirs && route->dest.ah && route->self.ah;
}

/** msg_peer_timers - run all expired timers of a peer; Return: time of the next timer */
uint64_t msg_peer_timers(struct msg_peer *peer);
/** msg_peer_lost_port - report that the channel of a port was closed, which frees its rCxts */
void msg_peer_lost_port(struct msg_peer *peer, struct msg_port *port);
/** msg_peer_new - create a peer; Return: the peer, or NULL with errno */
struct msg_peer *msg_peer_new(struct nhcadv_msg_ep *ep, const struct msg_address *address,
			      void *context);
/** msg_peer_move - use the channels of a new address of the peer */
void msg_peer_move(struct msg_peer *peer, const struct msg_address *address);
void msg_peer_free(struct msg_peer *peer);
/** msg_peer_reserved - Return: number of completions that are reserved for the peer */
uint32_t msg_peer_reserved(const struct msg_peer *peer);

enum msg_session {
	MSG_SESSION_OLD,	/* an earlier connection: the packet is ignored */
	MSG_SESSION_HELLO,	/* a grant that does not name our session */
	MSG_SESSION_OURS,	/* this connection */
};

/** msg_session_came - classify a packet by the sessions that it names; @grant: true for a grant */
enum msg_session msg_session_came(struct msg_peer *peer, uint32_t theirs, uint32_t ours,
				  bool grant);
static inline bool msg_any_alive(const struct msg_peer *peer)
{
	uint32_t i;

	for (i = 0; i < peer->num_routes; i++)
		if (peer->routes[i]->alive)
			return true;
	return false;
}
/* ---- msg_grant.c ---- */
void msg_rcxts_init(struct msg_route *route);
/** msg_rcxts_acquire - acquire rCxts for a route whose channel is new; Return: 0 or errno */
int msg_rcxts_acquire(struct msg_route *route);
/** msg_rcxts_lost - forget the rCxts of a channel that was closed */
void msg_rcxts_lost(struct msg_route *route);
/** msg_rcxts_release - release all rCxts of a route */
void msg_rcxts_release(struct msg_route *route);
/*
 * Release rCxts of all peers beyond the first few.
 * Return: false: nothing was done, because it was already done less than a second ago.
 */
bool msg_rcxts_short(struct nhcadv_msg_ep *ep);
/** msg_route_find_way - create missing address handles; Return: false if one is still missing */
bool msg_route_find_way(struct msg_route *route);
/** msg_route_move - use another channel of the peer */
void msg_route_move(struct msg_route *route, const struct msg_address_path *at);
/** msg_grant_soon - let the next pass send the grant; repeat it until the peer confirms it */
void msg_grant_soon(struct msg_route *route);
/** msg_grant_timer - run the timer of rCxts and grants; Return: time of the next run */
uint64_t msg_grant_timer(struct msg_route *route);
/** msg_hello_came - answer a grant that does not name our session; do not use its rCxts */
void msg_hello_came(struct msg_route *route, const struct msg_grant *grant);
void msg_grant_came(struct msg_route *route, const struct msg_grant *grant);
void msg_fence_came(struct msg_route *route, const struct msg_fence *fence);
/** msg_route_refused - report that a granted rCxt now refuses packets up to @tid */
void msg_route_refused(struct msg_route *route, uint32_t lane, uint32_t tid);

/* ---- msg_lane.c ---- */
void msg_lane_init(struct msg_route *route, struct msg_lane *lane, uint16_t index);
/** msg_lane_wake - let the timers of the lanes of a route run at @when at the latest */
void msg_lane_wake(struct msg_route *route, uint64_t when);
/** msg_lane_set_due - set the timer of a lane */
void msg_lane_set_due(struct msg_route *route, struct msg_lane *lane, uint64_t when);
/** msg_lane_set_inflight - set the bytes in flight of a lane, and update the sum of its route */
void msg_lane_set_inflight(struct msg_route *route, struct msg_lane *lane, uint32_t bytes);
/** msg_lane_settle - list an unused lane as free if it is wanted and has both rCxts, else busy */
void msg_lane_settle(struct msg_route *route, struct msg_lane *lane);
/** msg_lane_leave - detach a lane from its operation */
void msg_lane_leave(struct msg_route *route, struct msg_lane *lane);
/** msg_lane_done - report that the bytes of the transfer are in place, and detach the lane */
void msg_lane_done(struct msg_route *route, struct msg_lane *lane);
uint32_t msg_lane_packets(const struct msg_lane *lane);
struct nhcadv_transfer msg_lane_transfer(const struct msg_route *route,
					 const struct msg_lane *lane);
/** msg_lane_requeue - after a fence or cancel, queue the missing bytes; other lanes take them */
void msg_lane_requeue(struct msg_route *route, struct msg_lane *lane);
/** msg_lane_begin - post the transfer with a new tid */
void msg_lane_begin(struct msg_route *route, struct msg_lane *lane);
/** msg_lane_redrive - post the whole transfer again with a higher tid */
void msg_lane_redrive(struct msg_route *route, struct msg_lane *lane);
/** msg_lane_fence - abandon a write, and request that the peer refuses late packets */
void msg_lane_fence(struct msg_route *route, struct msg_lane *lane);
/** msg_lane_cancel - abandon a read: cancel it here */
void msg_lane_cancel(struct msg_route *route, struct msg_lane *lane);
/** msg_lane_release - cancel here a write that is over at the peer; see LANE_RELEASE */
void msg_lane_release(struct msg_route *route, struct msg_lane *lane);
/** msg_lane_give_up - abandon the transfer: msg_lane_fence() or msg_lane_cancel() */
void msg_lane_give_up(struct msg_route *route, struct msg_lane *lane);
/** msg_lane_unsent - requeue a transfer after a delay, because no packet of it was sent */
void msg_lane_unsent(struct msg_route *route, struct msg_lane *lane);

/* ---- msg_transfer.c ---- */
enum msg_pumped {
	MSG_PUMP_DONE,		/* no transfer can start until the state of the peer changes */
	MSG_PUMP_QUANTUM,	/* the peer has used its quantum */
	MSG_PUMP_STARVED,	/* a transfer waits until a port has a free slot */
};

/** msg_pump - start up to PEER_QUANTUM transfers of a peer */
enum msg_pumped msg_pump(struct msg_peer *peer);
/** msg_lane_posted - report a completed work request; @status: as in struct port_event */
void msg_lane_posted(struct msg_route *route, struct msg_lane *lane, uint64_t wr_id, int status);
/** msg_lane_complete - report a completed transfer */
void msg_lane_complete(struct msg_route *route, struct msg_lane *lane, uint32_t tid, bool read);
/** msg_lane_status - handle the answer to a probe */
void msg_lane_status(struct msg_route *route, struct msg_lane *lane,
		     const struct nhcadv_frame *frame);
/** msg_lane_fence_status - handle the answer of the kernel of the peer to a fence */
void msg_lane_fence_status(struct msg_route *route, struct msg_lane *lane,
			   const struct nhcadv_frame *frame);
/** msg_lane_fenced - report that the peer refuses packets up to @tid */
void msg_lane_fenced(struct msg_route *route, struct msg_lane *lane, uint32_t tid);
/** msg_lanes_redrive - abandon all transfers of a dead route, so that other routes take them */
void msg_lanes_redrive(struct msg_route *route);
/** msg_lane_lost - report that the local channel was closed, which frees its rCxts */
void msg_lane_lost(struct msg_route *route, struct msg_lane *lane);
/** msg_lane_new_remote - set the rCxt that a new grant of the peer has for the lane; 0: none */
void msg_lane_new_remote(struct msg_route *route, struct msg_lane *lane, uint64_t rcxt);
/** msg_lane_timers - run expired timers of lanes; Return: time of the next timer */
uint64_t msg_lane_timers(struct msg_route *route);
/** msg_op_cancel - cancel an operation; Return: 0, or EALREADY if its notice is in the stream */
int msg_op_cancel(struct msg_op *op);

#include "msg_move.h"
#include "msg_op.h"
#include "msg_stream.h"

#endif /* NHCA_MSG_H */
