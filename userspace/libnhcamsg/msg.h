/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Reliable messages: declarations for the files msg_*.c, which use channels through nhcadv.h.
 *
 *	msg_ep.c	API: endpoints, peers; polls and waits, which make progress in passes
 *	msg_post.c	API: memory, messages
 *	msg_sched.c	the peers that a pass serves, and their order
 *	msg_peer.c	a peer and the routes to it: dead and living routes, probes, fences
 *	msg_grant.c	the rCxts of a route: their number, and those that the peer may use
 *	msg_op.c	a whole write or read; msg_iov.c: its buffers, if they are not registered
 *	msg_transfer.c	writes and reads: transfers, probes, retransmission; msg_lane.c: their state
 *	msg_move.c	moves: transfers from one peer to another; msg_pair.c: the routes of each
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
#define MSG_AGAIN_LATER	(MS / 10)	/* delay before a retry: no free slot, or no memory */

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
 * @node:          in msg_peer.todo, msg_peer.moves or msg_peer.going; a move that waits for its
 *                 target is in msg_peer.awaiting of @to
 * @peer:          write, read: the peer; move: the source
 * @to:            move: the target; otherwise NULL
 * @mem:           write, read: local memory; NULL: a move, or a write from buffers
 * @iov:           the buffers of nhcadv_msg_write_iov(); otherwise NULL
 * @pieces:        struct msg_piece: ranges to transfer again
 * @id:            id of the message, from the program
 * @local_pvo:     PVO of the first byte on this host, if there is @mem
 * @remote_pvo:    PVO of the first byte at @peer
 * @to_pvo:        move: PVO of the first byte at the target
 * @refused:       move: pairs of routes that the source refused, see msg_pair_bit()
 * @no_way:        move: pairs of routes that lack an address handle, see msg_pair_bit()
 * @tried:         move: time at which the target had no free lane
 * @length:        bytes of the message
 * @cut:           number of bytes, from the start, that msg_op_take() has cut into transfers
 * @done:          number of bytes that are in place
 * @lanes:         number of lanes that have a transfer of the operation
 * @status:        errno of the completion; 0: the operation has not failed
 * @notice:        the notice to send; NULL: not requested, or already in the stream
 * @transfers:     number of transfers; after OP_QUANTUM transfers the next operation has its turn
 * @read:          a read
 * @begun:         a lane has taken a transfer; an operation of 0 bytes also needs one transfer
 * @notice_queued: the notice is in the stream
 */
struct msg_op {
	struct list_node node;
	struct msg_peer *peer;
	struct msg_peer *to;
	struct msg_mem *mem;
	struct msg_iov *iov;
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

/**
 * struct msg_piece - a range of an operation that has to be transferred again
 * @node:   in msg_op.pieces
 * @offset: first byte
 * @length: number of bytes
 */
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
 * @LANE_RENEW:  the tids are used up: requests for another rCxt are sent to the peer
 * @LANE_MOVE:   lane of the source of a move in progress (msg_move.h)
 * @LANE_TARGET: lane of the target of a move in progress
 * @LANE_FENCED: the peer of this lane refuses late packets of a move.  The peer of @partner may
 *               still accept them
 */
enum lane_state { LANE_FREE, LANE_WRITE, LANE_READ, LANE_SOURCE, LANE_FENCE, LANE_RELEASE,
		  LANE_CANCEL, LANE_RENEW, LANE_MOVE, LANE_TARGET, LANE_FENCED };

/**
 * struct msg_lane - an rCxt here and one at the peer, for one transfer at a time
 * @node:          in msg_route.free or msg_route.busy
 * @op:            the operation that the transfer belongs to; NULL: the lane has no transfer, or is
 *                 the lane of the target of a move
 * @partner:       move: the lane of the other peer
 * @partner_route: move: the route of @partner
 * @way:           move: address handle of the target at the port of the source; NULL: use the
 *                 address handle of @partner_route
 * @local_rcxt:    id of the rCxt here; 0: not acquired
 * @remote_rcxt:   id of the rCxt at the peer; 0: not granted
 * @have:          LANE_CANCEL, LANE_FENCE: bitmap of packets that have arrived, or whose bytes were
 *                 queued again
 * @offset:        first byte of @op that the transfer moves
 * @length:        number of bytes that the transfer moves
 * @segment:       bytes of payload of each packet but the last
 * @tid:           tid of the transfer; if the lane is free, tid of its last transfer
 * @inflight:      bytes of this lane in msg_cc.inflight
 * @posted:        time at which the transfer was posted
 * @sent:          time at which the last work request that sends packets was done; 0: not done
 * @probed:        time of the last probe or cancel; 0: none since @sent
 * @passed:        time at which a later transfer overtook this transfer; 0: not overtaken
 * @due:           time of the lane's timer; NEVER: not set
 * @nonce:         number of the outstanding probe; 0: none
 * @seen:          LANE_READ, LANE_MOVE: number of packets that the last status reported, plus one;
 *                 0: no status yet. LANE_FENCE, LANE_CANCEL: number of bytes that were queued again
 * @asked:         move: missing packets before this packet were requested again
 * @overtaken:     move: number of the last packet that the last status reported, plus one
 * @looked:        move: time of the last status of the target; before the first status, @posted
 * @index:         index in msg_route.lanes
 * @wrs:           number of work requests that are not done
 * @state:         enum lane_state
 * @tries:         number of unanswered probes, answers NHCADV_TRANSFER_NONE and fences in a row,
 *                 for the backoff
 * @resent:        packets of the transfer were retransmitted, or the transfer was started again
 * @cancelled:     LANE_CANCEL: the kernel places no more bytes. LANE_RELEASE: no packet refers to
 *                 the memory
 * @complete:      move: the target has all bytes
 * @asks_source:   move: the outstanding or next probe is for the source
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
 * @peer:         the peer
 * @port:         the local port
 * @number:       number of the path, the same at both ends
 * @slot:         index in nhcadv_msg_ep.routes
 * @dest:         channel of the peer, at @gid
 * @self:         local channel, for probes of reads
 * @gid:          GID of the peer
 * @segment:      maximum payload of a packet of a transfer, in bytes, as the peer reported it
 * @lanes:        array of nhcadv_msg_ep.lanes lanes
 * @free:         idle lanes, the longest idle lane first
 * @busy:         the other lanes
 * @want:         number of lanes that transfers may use
 * @held:         no lane from this index on has a local rCxt
 * @busy_lanes:   number of lanes that have a transfer
 * @most_busy:    maximum of @busy_lanes since @trim_at was set
 * @adv_want:     number of rCxts that our last grant requests from the peer
 * @their_want:   number of rCxts that the last grant of the peer requests
 * @given:        number of rCxts in @granted
 * @lanes_short:  a transfer could have started if one more lane had been free
 * @trim_at:      time to release lanes that were not used; NEVER: not set
 * @more:         time to try again to acquire rCxts, after the device had none
 * @granted:      local rCxts that the lanes of the peer use
 * @refusing:     for each rCxt in @granted, the rCxt that an outstanding WHAT_REFUSE names; 0: none
 * @refused:      for each rCxt in @granted, the tid up to which it refuses packets
 * @adv_segment:  maximum payload of a packet in our last grant
 * @grant:        version of our last grant
 * @grant_known:  version of our grant that the peer has confirmed
 * @grant_tries:  number of times that our last grant was sent without a confirmation (backoff)
 * @grant_due:    time to send our last grant again
 * @theirs:       version of the last grant of the peer; 0: none
 * @recoveries:   msg_port.recoveries of the channel that owns the rCxts; 0: none
 * @fences:       the device of the peer supports fences
 * @moves:        the device of the peer supports moves
 * @alive:        the route is not dead
 * @silent:       time of the oldest request that the peer's kernel has not answered; NEVER: none
 * @ping:         time of the next probe that tests the route itself; NEVER: none
 * @ping_tries:   number of these probes since the last answer, for the backoff
 * @next:         time of the first timer of the route's lanes
 * @moved:        time of the last completion of a transfer of a move from this source
 * @moved_posted: of the completed transfers of moves from this source, the latest time of the post
 * @cc:           round trip time and congestion window
 * @stats:        statistics for nhcadv_msg_query()
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
 * @node:   in msg_stream.waiting or msg_stream.under_way
 * @op:     the write that the notice is for; NULL: this is a send
 * @id:     id of the message
 * @arg:    notice: length of the write in bytes
 * @pvo:    notice: remote PVO of the write
 * @sent:   time of the last transmission
 * @due:    time of the next retransmission
 * @route:  route of the last transmission
 * @seq:    sequence number in the stream
 * @length: bytes of @data
 * @tries:  number of retransmissions, at most MOST_TRIES
 * @acked:  the peer has acknowledged the packet
 * @data:   send: the bytes
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
 * struct msg_in - a send or notice of the peer; the program gets a pointer to @data
 * @from:    id of the peer
 * @session: session of this side, msg_peer.session
 * @id:      id of the message at the peer
 * @arg:     notice: length of the write in bytes
 * @pvo:     notice: PVO of the first byte of the write
 * @length:  bytes of @data
 * @written: a notice
 * @data:    send: the bytes
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
 * struct msg_stream - sends and notices in sequence, in both directions
 * @waiting:   struct msg_out: not sent yet
 * @under_way: struct msg_out: sent, from the oldest packet that is not acknowledged on
 * @queued:    number of sends in both lists
 * @next:      sequence number of the next packet to send
 * @acked:     the peer has all packets before this sequence number
 * @limit:     the peer accepts packets before this sequence number
 * @expected:  next sequence number to receive
 * @adv_room:  number of sends that this side accepts, as the last header reported it
 * @early:     packets received out of order; also packet @expected, if @held is at its maximum
 * @num_early: number of sends in @early
 * @held:      number of sends that the program has received and not released
 * @ack_due:   an acknowledgment has to be sent
 * @time:      round trip times, which include the delay until the program of the peer polls
 * @due:       time of the first retransmission; 0: the next pass has to send packets; NEVER: none
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
 * struct msg_peer - a peer, from nhcadv_msg_connect() to nhcadv_msg_disconnect()
 * @node:              in nhcadv_msg_ep.peers
 * @bucket:            in the bucket of @id in nhcadv_msg_ep.buckets
 * @work:              in nhcadv_msg_ep.ready if @ready, in nhcadv_msg_ep.starved if @starved
 * @ep:                the endpoint
 * @due:               time of the peer's next timer
 * @heap:              index in nhcadv_msg_ep.heap
 * @ready:             the next pass serves the peer, because its state has changed
 * @starved:           transfers of the peer wait until a port has a free slot
 * @confirmed:         the peer has named @session, so @theirs belongs to this connection
 * @session:           random number of this connection, which packets of the peer have to name
 * @theirs:            session of the peer; 0: not known
 * @context:           nhcadv_msg_completion.context, from the program
 * @id:                id of the endpoint of the peer
 * @routes:            the routes
 * @num_routes:        number of routes
 * @next_route:        the next route for a transfer (round robin)
 * @next_packet_route: the next route for a packet (round robin)
 * @todo:              writes and reads with bytes that no lane has taken
 * @moves:             moves from this peer with bytes that no lane has taken, and that do not wait
 *                     for their target
 * @going:             writes and reads of this peer and moves from it whose bytes lanes have taken
 * @awaiting:          moves to this peer that wait for its lanes or routes, longest first
 * @stream:            sends and notices
 * @reachable:         false from NHCADV_MSG_UNREACHABLE to the next NHCADV_MSG_REACHABLE
 * @move_next:         the next transfer is one of a move, if there is one
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

/**
 * struct msg_mem - memory of the program
 * @pub:     the public part
 * @node:    in nhcadv_msg_ep.mems
 * @ep:      the endpoint
 * @handles: handle of each device, at the index of the first path with this device; others are NULL
 * @users:   number of operations that use the memory
 */
struct msg_mem {
	struct nhcadv_msg_mem pub;
	struct list_node node;
	struct nhcadv_msg_ep *ep;
	struct nhcadv_job_mem *handles[NHCADV_MSG_MAX_PATHS];
	uint32_t users;
};

/**
 * struct nhcadv_msg_peer - the public type of a peer
 * @peer: the peer
 */
struct nhcadv_msg_peer {
	struct msg_peer peer;
};

/**
 * struct nhcadv_msg_ep - an endpoint
 * @lock:          protects all members, and all peers
 * @id:            random number that identifies the endpoint on all hosts
 * @now:           time of the current pass
 * @job:           job id
 * @lanes:         nhcadv_msg_ep_attr.lanes
 * @packets:       nhcadv_msg_ep_attr.packets
 * @queue:         nhcadv_msg_ep_attr.queue
 * @dead:          nhcadv_msg_ep_attr.dead_ms in nanoseconds
 * @num_ports:     number of ports
 * @ports:         a port for each path
 * @contexts:      the open device of each path
 * @peers:         all peers
 * @buckets:       hash table of all peers by id
 * @ready:         peers that the next pass serves
 * @starved:       peers that wait for free slots of send FIFOs, in the order of service
 * @heap:          binary heap of all peers by msg_peer.due; the first entry has the earliest time
 * @num_peers:     number of peers
 * @heap_room:     number of entries that @heap has memory for
 * @mems:          struct msg_mem: registered memory
 * @unclosed:      struct msg_mem: memory that is not registered on all devices and was not closed
 * @targets:       struct msg_target: addresses to which the program allows moves
 * @targets_due:   time to try again the targets that a port has not allowed
 * @moves:         number of moves that are not complete
 * @routes:        routes by slot; NULL: the slot is free
 * @num_routes:    number of entries of @routes
 * @next_slot:     the next slot to try for a new route
 * @nonce:         number of the last probe
 * @short_until:   until this time no route acquires rCxts beyond the first few, because a device
 *                 had none for a new peer
 * @sleepers:      number of threads that sleep in nhcadv_msg_wait()
 * @armed:         nhcadv_msg_arm() was called after the last poll
 * @woken:         @wake is readable
 * @epoll:         epoll of @timer, @wake and the events of all ports
 * @timer:         a timerfd
 * @wake:          an eventfd, which is readable while sleeping threads have something to do
 * @timer_at:      the time that @timer is set to
 * @done:          ring of completions
 * @done_room:     number of entries of @done
 * @done_first:    index of the oldest completion in @done
 * @done_count:    number of completions in @done
 * @done_reserved: number of entries of @done that are reserved for messages that are not complete
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
	struct list_head unclosed;
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
/**
 * msg_reserve - reserve an entry of nhcadv_msg_ep.done for one completion
 * @ep: the endpoint
 *
 * Each completion needs a reserved entry, so that msg_complete() cannot fail for lack of memory.
 * Return: 0; ENOMEM: there is no memory for a larger ring.
 */
int msg_reserve(struct nhcadv_msg_ep *ep);

/**
 * msg_complete - store a completion in an entry that msg_reserve() has reserved
 * @peer:   the peer of the message
 * @kind:   kind of the completion
 * @status: 0 or an errno: nhcadv_msg_completion.status
 * @id:     id of the message
 * @length: bytes of the message
 * @pvo:    NHCADV_MSG_WRITTEN: PVO of the first byte; otherwise 0
 * @data:   NHCADV_MSG_RECEIVED: msg_in.data; otherwise NULL
 */
void msg_complete(struct msg_peer *peer, enum nhcadv_msg_kind kind, int status, uint64_t id,
		  uint64_t length, uint64_t pvo, void *data);

/**
 * msg_ports_close_broken - close the channels that have failed, without waiting for the next pass
 * @ep: the endpoint
 * Return: 0; an errno: a channel was not closed, and may still use memory of the program.
 */
int msg_ports_close_broken(struct nhcadv_msg_ep *ep);

/**
 * msg_mems_close - close and free the memory in nhcadv_msg_ep.unclosed
 * @ep: the endpoint, which is being destroyed, so that no other thread uses it
 * Return: 0; an errno of nhcadv_dereg_job_mem(): some memory is still in the list.
 */
int msg_mems_close(struct nhcadv_msg_ep *ep);

/**
 * msg_ep_lock - take the lock of the endpoint
 * @ep: the endpoint
 * Context: the caller does not hold the lock.
 */
void msg_ep_lock(struct nhcadv_msg_ep *ep);

/**
 * msg_ep_unlock - wake sleeping threads that have something to do, and release the lock
 * @ep: the endpoint
 * Context: the caller holds the lock.
 */
void msg_ep_unlock(struct nhcadv_msg_ep *ep);

/* ---- msg_sched.c ---- */
/**
 * msg_peer_add - add a peer to the list, the hash table and the heap of the endpoint
 * @ep:   the endpoint
 * @peer: the peer
 * Return: 0; ENOMEM: there is no memory for a larger heap.
 */
int msg_peer_add(struct nhcadv_msg_ep *ep, struct msg_peer *peer);

/**
 * msg_peer_remove - remove a peer from all lists and the heap of its endpoint
 * @peer: the peer
 */
void msg_peer_remove(struct msg_peer *peer);

/**
 * msg_peer_find - look up a peer by its id
 * @ep: the endpoint
 * @id: id of the endpoint at the other side
 * Return: the peer; NULL: this endpoint is not connected to @id.
 */
struct msg_peer *msg_peer_find(struct nhcadv_msg_ep *ep, uint64_t id);

/**
 * msg_peer_ready - let the next pass serve a peer, because its state has changed
 * @peer: the peer
 */
void msg_peer_ready(struct msg_peer *peer);

/**
 * msg_peer_by - let a pass serve a peer at a given time or earlier
 * @peer: the peer
 * @when: the time
 */
void msg_peer_by(struct msg_peer *peer, uint64_t when);

/**
 * msg_serve - serve all peers that are ready or whose timers have expired
 * @ep: the endpoint
 */
void msg_serve(struct nhcadv_msg_ep *ep);

/**
 * msg_next_due - get the time at which the next pass has something to do
 * @ep: the endpoint
 * Return: the earliest timer of all peers; if a peer is ready, the time of the current pass.
 */
uint64_t msg_next_due(const struct nhcadv_msg_ep *ep);

#include "msg_peer.h"
#include "msg_lane.h"
#include "msg_move.h"
#include "msg_op.h"
#include "msg_stream.h"

#endif /* NHCA_MSG_H */
