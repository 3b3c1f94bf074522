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
/* One path of the address of an endpoint */
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

/* A channel, its rCxts for the lanes of the peer, and the number of rCxts wanted from the peer */
struct msg_grant {
	struct msg_address_path at;
	uint32_t version;
	uint32_t count;
	uint32_t wanted;
	bool fences, moves;
	uint64_t rcxts[MSG_MAX_LANES];
};

/* Request that @rcxt refuses packets up to @tid.  UINT32_MAX also requests another rCxt. */
struct msg_fence {
	uint32_t lane;
	uint32_t tid;
	uint64_t rcxt;
};

/* Each msg_send_*() posts one packet.  Return: false if there is no route with a free slot. */
bool msg_send_data(struct msg_route *route, const struct msg_out *out);
bool msg_send_ack(struct msg_peer *peer);
bool msg_send_grant(struct msg_route *route);
bool msg_send_granted(struct msg_route *route);
bool msg_send_fence(struct msg_route *route, const struct msg_lane *lane, uint32_t tid);
bool msg_send_fenced(struct msg_route *route, const struct msg_fence *fence);
/** msg_frame_came - check and handle a packet of a peer's library */
void msg_frame_came(struct nhcadv_msg_ep *ep, const struct nhcadv_frame *frame);

/** msg_same_family - Return: true if both GIDs are IPv4-mapped, or neither is */
bool msg_same_family(const union ibv_gid *a, const union ibv_gid *b);
/** msg_address_pack - encode an address; Return: 0, or ENOSPC if @size is too small */
int msg_address_pack(const struct msg_address *address, void *bytes, size_t *size);
/** msg_address_unpack - decode; Return: 0, EINVAL (malformed), EPROTONOSUPPORT (other version) */
int msg_address_unpack(struct msg_address *address, const void *bytes, size_t size);
/** msg_path_ok - Return: true if the GID, QP number and segment are valid */
bool msg_path_ok(const struct msg_address_path *path);

#endif /* NHCA_MSG_WIRE_H */
