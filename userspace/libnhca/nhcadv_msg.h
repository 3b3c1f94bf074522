/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * nhca direct verbs: reliable messages over channels.  nhcadv_msg(7) is where to begin.
 *
 * A channel moves a transfer at most once, in any order, or loses it.  Here is what an MPI or a
 * storage layer calls: writes, reads of any length and small sends to a peer, each of which
 * completes exactly once, whatever the network drops, doubles or reorders, and over as many paths
 * as there are.
 *
 * Functions that return int return 0 or an errno; those that return a pointer return NULL and set
 * errno.  All of them may be called from any thread: an endpoint has one lock.  No thread is
 * started: things move on in nhcadv_msg_poll() and nhcadv_msg_wait().
 */
#ifndef NHCADV_MSG_H
#define NHCADV_MSG_H

#include <stddef.h>
#include <stdint.h>

#include <infiniband/nhcadv.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- endpoints ---- */

struct nhcadv_msg_ep;
struct nhcadv_msg_peer;

/* bytes of nhcadv_msg_send() at most: they fit a packet with the least MTU of IPv6, 1280 bytes */
#define NHCADV_MSG_MAX_SEND	1024
#define NHCADV_MSG_MAX_PATHS	8
#define NHCADV_MSG_MAX_ADDRESS	512

/**
 * struct nhcadv_msg_path - one way into the network
 * @context:   open device; stays open as long as the endpoint is
 * @gid_index: of its port 1: the address to send from
 */
struct nhcadv_msg_path {
	struct ibv_context *context;
	uint32_t gid_index;
	uint32_t reserved;
};

/**
 * struct nhcadv_msg_ep_attr - what an endpoint is made of; 0 is the default for all but @paths
 * and @job
 * @comp_mask: 0
 * @paths:     devices, or one device several times; at both ends the first talks to the first
 *             and so on; the shorter list is gone through again
 * @num_paths: 1 to NHCADV_MSG_MAX_PATHS
 * @job:       job id
 * @lanes:     transfers that may be under way to a peer over a path; 1 to 128 (64).  Each takes
 *             an rCxt at both ends; an idle peer has 4
 * @packets:   of a transfer; 1 to 256 (64): longer messages are cut
 * @frames:    slots of each receive FIFO (1024)
 * @queue:     messages of nhcadv_msg_send() that wait in either direction, for each peer (1024)
 * @dead_ms:   a path that owes an answer that long is dead (500)
 */
struct nhcadv_msg_ep_attr {
	uint64_t comp_mask;
	const struct nhcadv_msg_path *paths;
	uint32_t num_paths;
	uint32_t job;
	uint32_t lanes;
	uint32_t packets;
	uint32_t frames;
	uint32_t queue;
	uint32_t dead_ms;
	uint32_t reserved;
};

struct nhcadv_msg_ep *nhcadv_msg_create_ep(const struct nhcadv_msg_ep_attr *attr);

/*
 * Disconnects all peers, and closes the channels: nothing lands by them when it returns.  Memory
 * has to be deregistered before: EBUSY.
 */
int nhcadv_msg_destroy_ep(struct nhcadv_msg_ep *ep);

/**
 * nhcadv_msg_ep_address - what peers have to know of this endpoint, for nhcadv_msg_connect()
 * @bytes: where it goes
 * @size:  room there, NHCADV_MSG_MAX_ADDRESS is enough; on return bytes used
 * The same for all peers, as long as no device has recovered.  ENOSPC: the room is too small.
 */
int nhcadv_msg_ep_address(struct nhcadv_msg_ep *ep, void *bytes, size_t *size);

/**
 * nhcadv_msg_connect - begin to talk to an endpoint; both sides do it, in any order
 * @context: the program's own, for nhcadv_msg_completion.context
 * Returns at once: what is posted waits for the peer.  EEXIST: connected already; EINVAL: not
 * what nhcadv_msg_ep_address() gave; EPROTONOSUPPORT: of a library that speaks another version;
 * ENOSPC: the device has no more rCxts; EDQUOT: it has none for this user.
 */
struct nhcadv_msg_peer *nhcadv_msg_connect(struct nhcadv_msg_ep *ep, const void *bytes,
					   size_t size, void *context);

/*
 * Where the peer is now, as its nhcadv_msg_ep_address() has it.  Needed only if all devices of both
 * sides have recovered at about the same time, so that neither could tell the other: when there is
 * NHCADV_MSG_UNREACHABLE, programs with another way to each other may exchange addresses, and again
 * from time to time until NHCADV_MSG_REACHABLE.
 */
int nhcadv_msg_reconnect(struct nhcadv_msg_peer *peer, const void *bytes, size_t size);

/*
 * The peer may not be used any more, and no completion names it.  What was not complete is given
 * up: bytes of writes may still land at the peer until it disconnects, too; none lands here.  If one
 * side disconnects and connects, the other side's messages of the old connection do not complete: it
 * has to disconnect and connect, too.
 */
int nhcadv_msg_disconnect(struct nhcadv_msg_peer *peer);

/* ---- memory ---- */

/**
 * struct nhcadv_msg_mem - memory that is registered for the endpoint's job
 * @pvo:    of the first byte: what a peer names as remote; that of byte n is @pvo + n
 * @length: bytes
 */
struct nhcadv_msg_mem {
	uint64_t pvo;
	uint64_t length;
};

/*
 * Registered once, reached through all nhca devices of the host, and held through all of the
 * endpoint's, so that it outlives the loss of one.  Access as for nhcadv_reg_job_mem().
 */
struct nhcadv_msg_mem *nhcadv_msg_reg_mem(struct nhcadv_msg_ep *ep, void *addr, size_t length,
					  unsigned int access);

/* EBUSY: a message that is not complete uses it. */
int nhcadv_msg_dereg_mem(struct nhcadv_msg_mem *mem);

/* ---- messages ---- */

enum nhcadv_msg_flags {
	NHCADV_MSG_NOTIFY	= 1 << 0,	/* write: the peer has NHCADV_MSG_WRITTEN */
};

/**
 * nhcadv_msg_write - write to memory of the peer
 * @mem, @offset: where the bytes are; they stay as they are until it is complete
 * @remote_pvo:   where they go
 * @length:       bytes, any number; 0 is a message, too
 * @id:           for the completion, and the peer's
 * @flags:        NHCADV_MSG_NOTIFY
 *
 * Complete when all bytes are in place, and the peer has been told, if it is to be.  From then on
 * nothing of it lands any more.  In no order with other messages; what a completed one has
 * written is there before what is posted later.  EINVAL: not within @mem.
 */
int nhcadv_msg_write(struct nhcadv_msg_peer *peer, struct nhcadv_msg_mem *mem, uint64_t offset,
		     uint64_t remote_pvo, uint64_t length, uint64_t id, uint32_t flags);

/* Read from memory of the peer into @mem at @offset.  Complete when all bytes are there. */
int nhcadv_msg_read(struct nhcadv_msg_peer *peer, struct nhcadv_msg_mem *mem, uint64_t offset,
		    uint64_t remote_pvo, uint64_t length, uint64_t id, uint32_t flags);

/*
 * Send up to NHCADV_MSG_MAX_SEND bytes, which are copied.  Sends and notices of writes come to the
 * peer in the order in which they were posted, or in which the writes were done.  Complete when
 * the peer's library has it.  EAGAIN: too many wait.
 */
int nhcadv_msg_send(struct nhcadv_msg_peer *peer, const void *data, size_t length, uint64_t id,
		    uint32_t flags);

/*
 * Give up the messages to the peer that have this id.  They complete with ECANCELED when nothing
 * of them can land any more, or with 0, if they were done.  ENOENT: there is none; EALREADY: it
 * is a send, or a write's notice, that is on its way.
 */
int nhcadv_msg_cancel(struct nhcadv_msg_peer *peer, uint64_t id);

/* ---- completions ---- */

/**
 * enum nhcadv_msg_kind - what a completion is about
 * @NHCADV_MSG_WRITE, @NHCADV_MSG_READ, @NHCADV_MSG_SEND: of a message of ours
 * @NHCADV_MSG_RECEIVED: a peer's send is here: data
 * @NHCADV_MSG_WRITTEN:  a peer's write is in place here
 * @NHCADV_MSG_UNREACHABLE: no path to the peer lives.  Messages wait until one does
 * @NHCADV_MSG_REACHABLE: one does
 */
enum nhcadv_msg_kind {
	NHCADV_MSG_WRITE,
	NHCADV_MSG_READ,
	NHCADV_MSG_SEND,
	NHCADV_MSG_RECEIVED,
	NHCADV_MSG_WRITTEN,
	NHCADV_MSG_UNREACHABLE,
	NHCADV_MSG_REACHABLE,
};

/**
 * struct nhcadv_msg_completion - exactly one for each message
 * @kind:    enum nhcadv_msg_kind
 * @status:  0, or an errno: ECANCELED, EACCES (the peer's memory was not open to it)
 * @id:      of the message, whoever posted it
 * @peer, @context: the peer, and its nhcadv_msg_connect()'s context
 * @length:  bytes
 * @pvo:     NHCADV_MSG_WRITTEN: where they went
 * @data:    NHCADV_MSG_RECEIVED: the bytes, until nhcadv_msg_release()
 */
struct nhcadv_msg_completion {
	uint32_t kind;
	int status;
	uint64_t id;
	struct nhcadv_msg_peer *peer;
	void *context;
	uint64_t length;
	uint64_t pvo;
	void *data;
};

/* Move on, and take up to @num completions.  Returns how many. */
int nhcadv_msg_poll(struct nhcadv_msg_ep *ep, struct nhcadv_msg_completion *wc, int num);

/* Give back nhcadv_msg_completion.data: what is not given back fills nhcadv_msg_ep_attr.queue. */
void nhcadv_msg_release(struct nhcadv_msg_ep *ep, void *data);

/*
 * Move on, asleep if there is nothing to do, until there is a completion to poll for: 0, or
 * @timeout_ms are over: ETIMEDOUT.  Negative: for ever.
 */
int nhcadv_msg_wait(struct nhcadv_msg_ep *ep, int timeout_ms);

/*
 * For programs with a poll() of their own: a file descriptor that becomes readable when
 * nhcadv_msg_poll() has something to do, if nhcadv_msg_arm() was called since.
 */
int nhcadv_msg_fd(struct nhcadv_msg_ep *ep);

/* EAGAIN: there is something to poll for now. */
int nhcadv_msg_arm(struct nhcadv_msg_ep *ep);

/* ---- looking ---- */

/**
 * struct nhcadv_msg_stats - of one peer, over one path
 * @alive:    is it in use?
 * @rcxts:    of this side's device, that serve its transfers and the peer's
 * @srtt_ns:  smoothed time from a transfer's posting to its completion
 * @window:   bytes that may be under way now
 * @transfers, @packets, @bytes: posted, resent ones not included
 * @resent:   packets sent again, for they were missing
 * @redriven: transfers begun anew, with another tid
 * @probes:   sent
 * @deaths:   how often it was given up
 */
struct nhcadv_msg_stats {
	uint32_t alive;
	uint32_t rcxts;
	uint64_t srtt_ns;
	uint64_t window;
	uint64_t transfers;
	uint64_t packets;
	uint64_t bytes;
	uint64_t resent;
	uint64_t redriven;
	uint64_t probes;
	uint64_t deaths;
};

/* @path: from 0; EINVAL: there is none of that number */
int nhcadv_msg_query(struct nhcadv_msg_peer *peer, uint32_t path, struct nhcadv_msg_stats *stats);

#ifdef __cplusplus
}
#endif

#endif /* NHCADV_MSG_H */
