/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Reliable messages: packets to the library of the peer, and addresses. */
#ifndef NHCA_MSG_WIRE_H
#define NHCA_MSG_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <infiniband/nhcadv.h>

#include "nhcadv_msg.h"

#define MSG_MAX_LANES	128

struct msg_lane;
struct msg_out;
struct msg_peer;
struct msg_route;

/* ---- contents of packets and addresses, in host byte order ---- */
/**
 * struct msg_address_path - one path of the address of an endpoint
 * @gid:     GID of the device
 * @key:     key of the channel
 * @qpn:     QP number of the channel
 * @segment: maximum payload of a packet of a transfer, in bytes
 */
struct msg_address_path {
	union ibv_gid gid;
	uint64_t key;
	uint32_t qpn;
	uint32_t segment;
};

/**
 * struct msg_address - the address of an endpoint
 * @id:        id of the endpoint
 * @job:       job id
 * @num_paths: number of paths
 * @paths:     the paths
 */
struct msg_address {
	uint64_t id;
	uint32_t job;
	uint32_t num_paths;
	struct msg_address_path paths[NHCADV_MSG_MAX_PATHS];
};

/**
 * struct msg_grant - a grant: a channel, and its rCxts for the lanes of the peer
 * @at:      the channel
 * @version: number of the grant; a later grant has a higher number
 * @count:   number of rCxts in @rcxts
 * @wanted:  number of rCxts that the sender requests from the receiver of the grant
 * @fences:  the device supports fences
 * @moves:   the device supports third-party transfers
 * @rcxts:   ids of the rCxts, by index of the lane
 */
struct msg_grant {
	struct msg_address_path at;
	uint32_t version;
	uint32_t count;
	uint32_t wanted;
	bool fences, moves;
	uint64_t rcxts[MSG_MAX_LANES];
};

/**
 * struct msg_fence - a request that an rCxt refuses late packets
 * @lane: index of the lane that uses the rCxt
 * @tid:  the rCxt refuses packets with this tid and lower ones; UINT32_MAX also requests another
 *        rCxt
 * @rcxt: id of the rCxt
 */
struct msg_fence {
	uint32_t lane;
	uint32_t tid;
	uint64_t rcxt;
};

/**
 * msg_send_data - post a send, or the notice of a write
 * @route: the route
 * @out:   the send or notice
 * Return: true; false: the port has no free slot.
 */
bool msg_send_data(struct msg_route *route, const struct msg_out *out);

/**
 * msg_send_ack - post a packet that only acknowledges packets of the peer
 * @peer: the peer
 * Return: true; false: no usable route has a free slot.
 */
bool msg_send_ack(struct msg_peer *peer);

/**
 * msg_send_grant - post the grant of a route
 * @route: the route
 * Return: true; false: no usable route has a free slot.
 */
bool msg_send_grant(struct msg_route *route);

/**
 * msg_send_granted - confirm the last grant of the peer
 * @route: the route
 * Return: true; false: no usable route has a free slot.
 */
bool msg_send_granted(struct msg_route *route);

/**
 * msg_send_fence - request that the peer refuses late packets of a lane
 * @route: the route
 * @lane:  the lane, which belongs to @route
 * @tid:   packets with this tid and lower ones; UINT32_MAX: also request another rCxt
 * Return: true; false: no usable route has a free slot.
 */
bool msg_send_fence(struct msg_route *route, const struct msg_lane *lane, uint32_t tid);

/**
 * msg_send_fenced - confirm a request of the peer to refuse late packets
 * @route: the route
 * @fence: the request
 * Return: true; false: no usable route has a free slot.
 */
bool msg_send_fenced(struct msg_route *route, const struct msg_fence *fence);

/**
 * msg_frame_came - check and handle a packet of a peer's library
 * @ep:    the endpoint
 * @frame: the packet
 */
void msg_frame_came(struct nhcadv_msg_ep *ep, const struct nhcadv_frame *frame);

/**
 * msg_same_family - compare the address families of two GIDs
 * @a: a GID
 * @b: another GID
 * Return: true if both GIDs are IPv4-mapped, or neither is.
 */
bool msg_same_family(const union ibv_gid *a, const union ibv_gid *b);

/**
 * msg_address_pack - encode the address of an endpoint
 * @address: the address
 * @bytes:   output: the encoded address
 * @size:    size of @bytes; on return, length of the encoded address
 * Return: 0; ENOSPC: @size is too small.
 */
int msg_address_pack(const struct msg_address *address, void *bytes, size_t *size);

/**
 * msg_address_unpack - decode and check the address of an endpoint
 * @address: output: the address
 * @bytes:   the encoded address
 * @size:    length of @bytes
 * Return: 0; EINVAL: malformed; EPROTONOSUPPORT: the library of that endpoint has another version
 * of the protocol.
 */
int msg_address_unpack(struct msg_address *address, const void *bytes, size_t size);

/**
 * msg_path_ok - check a path of an address or grant
 * @path: the path
 * Return: true if the GID, the QP number and the segment are valid.
 */
bool msg_path_ok(const struct msg_address_path *path);

#endif /* NHCA_MSG_WIRE_H */
