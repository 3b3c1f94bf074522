/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * libnhcamsg: reliable messages over channels of nhca devices.  nhcadv_msg(7) is the introduction.
 *
 * A channel delivers each transfer at most once, and may lose it.  The messages of this header are
 * reliable: each completes exactly once, even if the network drops, duplicates or reorders packets.
 * A message is a write, read or move of any length, or a small send.  A path of an endpoint is a
 * device and the address to send from.  A path to a peer joins a path of this endpoint to a path of
 * the peer.  The library distributes messages over all paths to a peer.
 *
 * Functions that return int return 0 or an errno, unless their description says otherwise.
 * Functions that return a pointer return NULL on error and set errno.  Any thread may call any
 * function, because the functions take the lock of the endpoint where they need it.  But no other
 * thread may use the endpoint while nhcadv_msg_destroy_ep() runs.  The library starts no thread, so
 * the program must call nhcadv_msg_poll() or nhcadv_msg_wait() for progress.
 */
#ifndef NHCADV_MSG_H
#define NHCADV_MSG_H

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include <infiniband/nhcadv.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- endpoints ---- */

struct nhcadv_msg_ep;
struct nhcadv_msg_peer;

/* Maximum bytes of nhcadv_msg_send(), so that a packet fits the minimum MTU of IPv6, 1280 bytes */
#define NHCADV_MSG_MAX_SEND	1024
/* Maximum paths of an endpoint */
#define NHCADV_MSG_MAX_PATHS	8
/* Maximum bytes of an address of nhcadv_msg_ep_address() */
#define NHCADV_MSG_MAX_ADDRESS	512

/**
 * struct nhcadv_msg_path - a device and the address to send from
 * @context:   open device; the program keeps it open until it destroys the endpoint
 * @gid_index: index of a GID of port 1: the address to send from
 * @reserved:  0
 */
struct nhcadv_msg_path {
	struct ibv_context *context;
	uint32_t gid_index;
	uint32_t reserved;
};

/**
 * struct nhcadv_msg_ep_attr - attributes of an endpoint
 * @comp_mask: 0
 * @paths:     the paths; a device may appear several times.  Path n of one endpoint is joined to
 *             path n of the other.  If one list is shorter, the library repeats it
 * @num_paths: 1 to NHCADV_MSG_MAX_PATHS
 * @job:       job id, not 0, the same at both ends
 * @lanes:     maximum number of transfers in flight on a path to a peer, 1 to 128 (64).  Each
 *             transfer takes an rCxt at both ends.  An idle path to a peer keeps rCxts for 4
 *             transfers in each direction
 * @packets:   maximum number of packets of a transfer, 1 to 256 (64)
 * @frames:    slots of the receive FIFO of each path (1024)
 * @queue:     maximum number of sends that are not complete, for each peer and direction (1024)
 * @dead_ms:   milliseconds without an answer after which a path to a peer is dead (500); see
 *             nhcadv_msg(7)
 * @reserved:  0
 *
 * 0 selects the default (in parentheses) of every member except @paths, @num_paths and @job.
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

/**
 * nhcadv_msg_create_ep - create an endpoint
 * @attr: attributes
 * Return: the endpoint, or NULL with errno EINVAL (an attribute is out of range), EPERM (the job
 * belongs to another user), EMSGSIZE (the MTU of a netdev is too small: a packet must have room for
 * 1152 bytes of payload), EOPNOTSUPP (a device is not an nhca device, or has no channels), or
 * ENOMEM (no memory, or a limit of the device or user is reached).
 */
struct nhcadv_msg_ep *nhcadv_msg_create_ep(const struct nhcadv_msg_ep_attr *attr);

/**
 * nhcadv_msg_destroy_ep - disconnect all peers, and close the channels
 * @ep: the endpoint
 *
 * When the call returns 0, the channels place no more bytes in local memory.
 * Return: 0; EBUSY: memory is still registered; an errno of ibv_destroy_qp(): a channel was not
 * closed; or an errno of nhcadv_dereg_job_mem(): a call of nhcadv_msg_reg_mem() has failed, and the
 * memory that it had registered on some devices was not closed.  After EBUSY the endpoint is
 * unchanged.  After another errno the endpoint still exists, but without peers: call the function
 * again.
 */
int nhcadv_msg_destroy_ep(struct nhcadv_msg_ep *ep);

/**
 * nhcadv_msg_ep_address - get the address of the endpoint, for nhcadv_msg_connect() at the peers
 * @ep: the endpoint
 * @bytes: output
 * @size:  size of @bytes; NHCADV_MSG_MAX_ADDRESS is sufficient.  On return, length of the address
 *
 * All peers get the same address.  The address changes when a device recovers or its MTU changes;
 * the library sends the change to the connected peers.
 * Return: 0, or ENOSPC if @size is too small.
 */
int nhcadv_msg_ep_address(struct nhcadv_msg_ep *ep, void *bytes, size_t *size);

/**
 * nhcadv_msg_connect - start to communicate with an endpoint; both sides call it, in any order
 * @ep: the endpoint
 * @bytes: address of the other endpoint
 * @size:  length of the address
 * @context: a value for the program: nhcadv_msg_completion.context
 *
 * The call does not wait for the peer.  Messages can be posted immediately, and wait until the peer
 * has connected.
 * Return: the peer, or NULL with errno EEXIST (already connected), EINVAL (malformed address, or an
 * endpoint of another job), EPROTONOSUPPORT (the library of the peer has another version of the
 * protocol), ENOSPC (a device has too few free rCxts, or the endpoint too many paths to peers),
 * EDQUOT (the user would exceed its share of the rCxts of a device), or ENOMEM (no memory).
 */
struct nhcadv_msg_peer *nhcadv_msg_connect(struct nhcadv_msg_ep *ep, const void *bytes,
					   size_t size, void *context);

/**
 * nhcadv_msg_reconnect - give the library the new address of a peer
 * @peer: the peer
 * @bytes: the address that nhcadv_msg_ep_address() returns at the peer
 * @size: length of the address
 *
 * The call is needed only if all devices of both sides have recovered at about the same time, so
 * that neither library could send the other its new address.  When a program gets
 * NHCADV_MSG_UNREACHABLE and has another way to reach its peer, both programs exchange their
 * addresses over that way.  They repeat the exchange from time to time until NHCADV_MSG_REACHABLE.
 * Return: 0, EINVAL (malformed address, or not an address of the peer), or EPROTONOSUPPORT (the
 * library of the peer has another version of the protocol).
 */
int nhcadv_msg_reconnect(struct nhcadv_msg_peer *peer, const void *bytes, size_t size);

/**
 * nhcadv_msg_disconnect - abandon all messages to and from a peer that are not complete
 * @peer: the peer, which is invalid after the call
 *
 * The program gets no more completions for the peer.  When the call returns 0, no more bytes of the
 * peer are placed in local memory.  Bytes of writes may still be placed at the peer until the peer
 * also disconnects.  If one side disconnects and connects again, messages of the other side do not
 * complete until that other side has also disconnected and connected.
 * Return: 0, or an errno of ibv_destroy_qp(): a channel that had failed was not closed, and may
 * still use local memory.  The peer is invalid also after an errno.
 */
int nhcadv_msg_disconnect(struct nhcadv_msg_peer *peer);

/* ---- memory ---- */

/**
 * struct nhcadv_msg_mem - memory that is registered for the job of an endpoint
 * @pvo:    PVO of the first byte, the remote_pvo of a peer; byte n has @pvo + n
 * @length: length of the memory in bytes
 */
struct nhcadv_msg_mem {
	uint64_t pvo;
	uint64_t length;
};

/**
 * nhcadv_msg_reg_mem - register memory for the job of the endpoint
 * @ep: the endpoint
 * @addr: first byte of the range
 * @length: length of the range in bytes
 * @access: as for nhcadv_reg_job_mem()
 *
 * The PVO is valid on all nhca devices in the network namespace.  The library opens the memory on
 * every device of the endpoint, so that the memory stays registered if one device is removed.
 * Return: the memory, or NULL with errno as for nhcadv_reg_job_mem().
 */
struct nhcadv_msg_mem *nhcadv_msg_reg_mem(struct nhcadv_msg_ep *ep, void *addr, size_t length,
					  unsigned int access);

/**
 * nhcadv_msg_dereg_mem - deregister memory
 * @mem: the memory
 * Return: 0, EBUSY if a message that is not complete uses the memory, or an errno of
 * nhcadv_dereg_job_mem().  After an errno the memory stays registered: call the function again.
 * The removal of a device is no error, because the kernel has closed the memory there.
 */
int nhcadv_msg_dereg_mem(struct nhcadv_msg_mem *mem);

/* ---- messages ---- */

enum nhcadv_msg_flags {
	NHCADV_MSG_NOTIFY	= 1 << 0,	/* write: the peer gets NHCADV_MSG_WRITTEN */
};

/**
 * nhcadv_msg_write - write to the memory of a peer
 * @peer: the peer
 * @mem:          memory of the source; the bytes must not change before the write completes
 * @offset:       offset of the source in @mem
 * @remote_pvo:   destination
 * @length:       bytes, any number, also 0
 * @id:           a value for the completion, and for NHCADV_MSG_WRITTEN at the peer
 * @flags:        NHCADV_MSG_NOTIFY
 *
 * The write completes when all bytes are in place and, with NHCADV_MSG_NOTIFY, the library of the
 * peer has the notice.  No byte is placed after the completion.  Writes and reads are not
 * ordered with respect to each other.  Messages that are posted after a write has completed find
 * its bytes in place.
 * Return: 0 (the message gets exactly one completion), EINVAL (the range is not within @mem, or an
 * invalid flag), or ENOMEM (no memory).
 */
int nhcadv_msg_write(struct nhcadv_msg_peer *peer, struct nhcadv_msg_mem *mem, uint64_t offset,
		     uint64_t remote_pvo, uint64_t length, uint64_t id, uint32_t flags);

/* Maximum number of buffers of nhcadv_msg_write_iov() */
#define NHCADV_MSG_MAX_IOV	65536u

/**
 * nhcadv_msg_write_iov - write from buffers that are neither registered nor contiguous
 * @peer: the peer
 * @iov:          the buffers; the library copies this list, but not the bytes, which must not
 *                change before the write completes
 * @count:        number of buffers, also 0; a buffer may have 0 bytes
 * @remote_pvo:   destination of the first byte; the other bytes follow there without a gap
 * @id:           a value for the completion, and for NHCADV_MSG_WRITTEN at the peer
 * @flags:        NHCADV_MSG_NOTIFY
 *
 * The write is like nhcadv_msg_write() in all other respects.  The library copies each packet's
 * bytes when it posts the packet, and reads no byte after the completion.  Registered memory costs
 * less for long contiguous buffers.
 * Return: 0 (the message gets exactly one completion), EOPNOTSUPP (the device of a path does not
 * support NHCADV_DEVICE_PART), EINVAL (too many buffers or bytes, or an invalid flag), or ENOMEM
 * (no memory).
 */
int nhcadv_msg_write_iov(struct nhcadv_msg_peer *peer, const struct iovec *iov, uint32_t count,
			 uint64_t remote_pvo, uint64_t id, uint32_t flags);

/**
 * nhcadv_msg_read - read from the memory of a peer
 * @peer: the peer
 * @mem:          memory of the destination
 * @offset:       offset of the destination in @mem
 * @remote_pvo:   source
 * @length:       bytes, any number, also 0
 * @id:           a value for the completion
 * @flags:        0
 *
 * The read completes when all bytes are in place in @mem.
 * Return: as nhcadv_msg_write().
 */
int nhcadv_msg_read(struct nhcadv_msg_peer *peer, struct nhcadv_msg_mem *mem, uint64_t offset,
		    uint64_t remote_pvo, uint64_t length, uint64_t id, uint32_t flags);

/**
 * nhcadv_msg_send - send bytes to the program of a peer
 * @peer: the peer
 * @data:   the bytes; the library copies them
 * @length: number of bytes, at most NHCADV_MSG_MAX_SEND
 * @id:     a value for the completion, and for NHCADV_MSG_RECEIVED at the peer
 * @flags:  0
 *
 * The send completes when the library of the peer has the bytes.  Sends arrive in the order of
 * their posts.  Notices of writes arrive in the same stream, in the order in which the bytes of
 * their writes were in place.
 * Return: 0 (the message gets exactly one completion), EAGAIN (nhcadv_msg_ep_attr.queue is full),
 * EINVAL (@length is too large, or @flags is not 0), or ENOMEM (no memory).
 */
int nhcadv_msg_send(struct nhcadv_msg_peer *peer, const void *data, size_t length, uint64_t id,
		    uint32_t flags);

/**
 * nhcadv_msg_move - move bytes from one peer to another
 * @ep:   the endpoint: the manager of the move
 * @from: the source
 * @from_pvo: PVO of the first byte at the source
 * @to:   the target; may be the same peer as @from, if nhcadv_msg_ep_attr.lanes is at least 2
 * @to_pvo: PVO of the first byte at the target
 * @length: bytes, any number, also 0
 * @id:   a value for the completion
 * @flags: 0
 *
 * The bytes go from the source to the target, and not through this endpoint.  The programs of both
 * need not poll.  The source's program must have allowed the target: nhcadv_msg_allow_target().
 * The move completes (NHCADV_MSG_MOVED) when all bytes are in place.  After that no byte is written
 * at the target or read at the source, unless the target was disconnected before.  All three ends
 * need NHCADV_DEVICE_MOVE and NHCADV_DEVICE_FENCE.  nhcadv_msg_cancel() of @from cancels moves.
 * Return: 0 (the move gets exactly one completion), EINVAL (an invalid flag, a peer of another
 * endpoint, or too few lanes), EOPNOTSUPP (no device of this endpoint supports moves), or ENOMEM
 * (no memory).
 */
int nhcadv_msg_move(struct nhcadv_msg_ep *ep, struct nhcadv_msg_peer *from, uint64_t from_pvo,
		    struct nhcadv_msg_peer *to, uint64_t to_pvo, uint64_t length, uint64_t id,
		    uint32_t flags);

/**
 * nhcadv_msg_allow_target - allow managers to let this endpoint send to another one
 * @ep: the endpoint: the source of moves
 * @bytes: address of the target, from its nhcadv_msg_ep_address()
 * @size: length of the address
 *
 * The endpoint need not be connected to the target.  The library allows the target again after a
 * device has recovered.  A device without a route to the target allows it when there is a route.
 * Return: 0, EINVAL (malformed address), EPROTONOSUPPORT (the library of the target has another
 * version of the protocol), ENOSPC (the endpoint would allow more than NHCADV_MAX_TARGETS
 * addresses), ENOMEM (no memory), or EOPNOTSUPP (no device supports moves).
 */
int nhcadv_msg_allow_target(struct nhcadv_msg_ep *ep, const void *bytes, size_t size);

/**
 * nhcadv_msg_revoke_target - withdraw what nhcadv_msg_allow_target() has allowed
 * @ep: the endpoint
 * @bytes: address of the target
 * @size: length of the address
 * Return: 0 (the endpoint sends no bytes of moves to the target any more), ENOENT (the target is
 * not allowed), EINVAL (malformed address), EPROTONOSUPPORT (the address has another version of the
 * protocol), or an errno of ibv_destroy_qp(): the kernel has not revoked the target for a channel,
 * and the library could not close this channel.  The channel may still send; the next poll tries
 * again to close it.
 */
int nhcadv_msg_revoke_target(struct nhcadv_msg_ep *ep, const void *bytes, size_t size);

/**
 * nhcadv_msg_cancel - cancel all messages to a peer that have a given id
 * @peer: the peer
 * @id: the id of these messages
 *
 * Each message completes with ECANCELED when none of its bytes can be placed any more, or with 0 if
 * all its bytes were in place before.
 * Return: 0, ENOENT (no message has this id), or EALREADY (the library has already sent the send,
 * or queued the notice of the write).
 */
int nhcadv_msg_cancel(struct nhcadv_msg_peer *peer, uint64_t id);

/* ---- completions ---- */

/**
 * enum nhcadv_msg_kind - kind of a completion
 * @NHCADV_MSG_WRITE: a write of this endpoint has completed
 * @NHCADV_MSG_READ:  a read of this endpoint has completed
 * @NHCADV_MSG_SEND:  a send of this endpoint has completed
 * @NHCADV_MSG_RECEIVED: a send of the peer has arrived
 * @NHCADV_MSG_WRITTEN:  a write of the peer with NHCADV_MSG_NOTIFY is in place here
 * @NHCADV_MSG_UNREACHABLE: no path to the peer is alive; messages wait until one is alive again
 * @NHCADV_MSG_REACHABLE: a path is alive again
 * @NHCADV_MSG_MOVED: a move of this endpoint has completed; the peer is the source
 */
enum nhcadv_msg_kind {
	NHCADV_MSG_WRITE,
	NHCADV_MSG_READ,
	NHCADV_MSG_SEND,
	NHCADV_MSG_RECEIVED,
	NHCADV_MSG_WRITTEN,
	NHCADV_MSG_UNREACHABLE,
	NHCADV_MSG_REACHABLE,
	NHCADV_MSG_MOVED,
};

/**
 * struct nhcadv_msg_completion - completion of a message, or a change of a peer
 * @kind:    enum nhcadv_msg_kind
 * @status:  0, or an errno: ECANCELED (the message was cancelled; move: or the target was
 *           disconnected), EACCES (memory protection refused the message at a peer, or the
 *           destination of a read here), EPERM (move: the source has refused the target, and no
 *           other pair of living paths is left), or EOPNOTSUPP (move: the source or the target does
 *           not support moves, or they have no address family in common)
 * @id:      the id that this endpoint or the peer gave to the message
 * @peer:    the peer
 * @context: the context of the peer's nhcadv_msg_connect()
 * @length:  bytes of the message; of a write, read or move that failed, the bytes that are known to
 *           be in place
 * @pvo:     NHCADV_MSG_WRITTEN: PVO of the first byte that the peer wrote
 * @data:    NHCADV_MSG_RECEIVED: the bytes, valid until nhcadv_msg_release()
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

/**
 * nhcadv_msg_poll - make progress on all messages, and take completions
 * @ep: the endpoint
 * @wc: output: completions
 * @num: maximum number of completions
 * Return: number of completions.
 */
int nhcadv_msg_poll(struct nhcadv_msg_ep *ep, struct nhcadv_msg_completion *wc, int num);

/**
 * nhcadv_msg_release - release the data of a received send
 * @ep: the endpoint
 * @data: nhcadv_msg_completion.data
 *
 * While the program holds nhcadv_msg_ep_attr.queue received sends that it has not released, further
 * sends of the peer wait.
 */
void nhcadv_msg_release(struct nhcadv_msg_ep *ep, void *data);

/**
 * nhcadv_msg_wait - make progress until there is a completion to poll
 * @ep: the endpoint
 * @timeout_ms: maximum time in milliseconds; negative: no limit
 *
 * The call sleeps while there is nothing to do.
 * Return: 0 (a completion can be polled), ETIMEDOUT (@timeout_ms has passed), or an errno of
 * epoll_wait(2) other than EINTR.
 */
int nhcadv_msg_wait(struct nhcadv_msg_ep *ep, int timeout_ms);

/**
 * nhcadv_msg_fd - get a file descriptor for poll(2)
 * @ep: the endpoint
 *
 * If the program has called nhcadv_msg_arm() after its last poll, the file descriptor becomes
 * readable when nhcadv_msg_poll() has something to do.
 * Return: the file descriptor, which belongs to the endpoint.
 */
int nhcadv_msg_fd(struct nhcadv_msg_ep *ep);

/**
 * nhcadv_msg_arm - arm the file descriptor of nhcadv_msg_fd()
 * @ep: the endpoint
 * Return: 0, or EAGAIN if a completion can be polled already.
 */
int nhcadv_msg_arm(struct nhcadv_msg_ep *ep);

/* ---- statistics ---- */

/**
 * struct nhcadv_msg_stats - statistics of one path to a peer
 * @alive:    1: the path is in use; 0: it is dead
 * @rcxts:    rCxts of the local device that serve the transfers of both sides
 * @srtt_ns:  smoothed round trip time of transfers and probes, in nanoseconds
 * @window:   congestion window, in bytes
 * @transfers: started transfers
 * @packets:  packets of these transfers; retransmissions in a transfer do not count
 * @bytes:    bytes of these transfers; bytes that another transfer moves again count again
 * @resent:   packets that were missing, and were retransmitted or read again
 * @redriven: transfers started again with a higher tid, or on another path
 * @probes:   probes sent
 * @deaths:   number of times that the path was declared dead
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

/**
 * nhcadv_msg_query - query the statistics of a path to a peer
 * @peer: the peer
 * @path: number of the path, from 0
 * @stats: output
 * Return: 0, or EINVAL if there is no path with this number.
 */
int nhcadv_msg_query(struct nhcadv_msg_peer *peer, uint32_t path, struct nhcadv_msg_stats *stats);

#ifdef __cplusplus
}
#endif

#endif /* NHCADV_MSG_H */
