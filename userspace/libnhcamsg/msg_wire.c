// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Reliable messages: packets to the library of the peer, and the address of an endpoint, which
 * programs exchange.
 *
 * All numbers are big endian.  This file checks the lengths and numbers of each received packet.
 * The kernel has already checked the channel key and the job of the packet.
 */
#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "msg.h"

/*
 * Version of the protocol.  Version 2 added sessions, 3 wire_grant.wanted, and 4 channel keys of 64
 * bits.  Libraries of different versions do not connect.
 */
#define VERSION		4
/* Minimum and maximum payload of a packet of a transfer, in bytes: the limits of the kernel */
#define LEAST_SEGMENT	64
#define MOST_SEGMENT	65532
#define ADDRESS_MAGIC	0x6e6d7367	/* "nmsg" */

enum packet_type {
	PACKET_DATA	= 1,	/* seq, id; the bytes of the send follow the header */
	PACKET_WRITTEN	= 2,	/* seq, id, arg: length, arg2: PVO */
	PACKET_ACK	= 3,	/* only the fields that every header has */
	PACKET_GRANT	= 4,	/* route; struct wire_grant follows the header */
	PACKET_GRANTED	= 5,	/* route, seq: version of the grant that is confirmed */
	PACKET_FENCE	= 6,	/* route, seq: tid, id: lane, arg: rCxt */
	PACKET_FENCED	= 7,	/* the fields of the fence that is confirmed */
};

/**
 * struct wire_header - header of each packet; all numbers are big endian
 * @version:    VERSION
 * @type:       enum packet_type
 * @route:      msg_route.number
 * @seq:        sequence number in the stream; other uses: see enum packet_type
 * @from:       id of the endpoint that sends
 * @to:         id of the endpoint that receives
 * @session:    session of the sender
 * @to_session: session of the receiver; 0: not known (PACKET_GRANT)
 * @ack:        stream in the other direction: next expected sequence number
 * @room:       number of sends, from @ack on, that the sender of this packet accepts
 * @sack:       bitmap of received packets; bit 0 is packet @ack + 1
 * @id:         see enum packet_type
 * @arg:        see enum packet_type
 * @arg2:       see enum packet_type
 */
struct wire_header {
	uint8_t version;
	uint8_t type;
	uint16_t route;
	uint32_t seq;
	uint64_t from;
	uint64_t to;
	uint32_t session;
	uint32_t to_session;
	uint32_t ack;
	uint32_t room;
	uint64_t sack;
	uint64_t id;
	uint64_t arg;
	uint64_t arg2;
};

/* wire_grant.flags: the device supports fences, and third-party transfers */
#define GRANT_FENCES	1u
#define GRANT_MOVES	2u

/**
 * struct wire_grant - what follows the header of a grant; see struct msg_grant
 * @gid:     GID of the device
 * @key:     key of the channel
 * @qpn:     QP number of the channel
 * @segment: maximum payload of a packet of a transfer, in bytes
 * @version: number of the grant
 * @count:   number of rCxts in @rcxts
 * @flags:   GRANT_*
 * @wanted:  number of rCxts that the sender requests
 * @rcxts:   ids of the rCxts
 */
struct wire_grant {
	uint8_t gid[16];
	uint64_t key;
	uint32_t qpn;
	uint32_t segment;
	uint32_t version;
	uint32_t count;
	uint32_t flags;
	uint32_t wanted;
	uint64_t rcxts[];
};

/**
 * struct wire_address - the address of an endpoint; all numbers are big endian
 * @magic:     ADDRESS_MAGIC
 * @version:   VERSION
 * @id:        id of the endpoint
 * @job:       job id
 * @num_paths: number of paths
 * @paths:     the paths
 * @paths.gid: GID of the device
 * @paths.key: key of the channel
 * @paths.qpn: QP number of the channel
 * @paths.segment: maximum payload of a packet of a transfer, in bytes
 */
struct wire_address {
	uint32_t magic;
	uint32_t version;
	uint64_t id;
	uint32_t job;
	uint32_t num_paths;
	struct wire_path {
		uint8_t gid[16];
		uint64_t key;
		uint32_t qpn;
		uint32_t segment;
	} paths[];
};

static_assert(sizeof(struct wire_header) == 72, "header");
static_assert(sizeof(struct wire_grant) == 48, "grant");
static_assert(sizeof(struct wire_address) + NHCADV_MSG_MAX_PATHS * sizeof(struct wire_path) <=
	      NHCADV_MSG_MAX_ADDRESS, "address");

/* ---- send ---- */

static void set_header(struct msg_peer *peer, struct wire_header *h, enum packet_type type,
		       uint32_t route)
{
	*h = (struct wire_header){
		.version = VERSION,
		.type = type,
		.route = htobe16(route),
		.from = htobe64(peer->ep->id),
		.to = htobe64(peer->id),
		.session = htobe32(peer->session),
		.to_session = htobe32(peer->theirs),
		.ack = htobe32(peer->stream.expected),
		.room = htobe32(msg_stream_room(peer)),
		.sack = htobe64(msg_stream_sack(&peer->stream)),
	};
}

static void put(struct msg_route *route, const struct wire_header *h, const void *data,
		uint32_t length)
{
	port_packet(route->port, msg_name(route, 0, WHAT_PACKET, 0), &route->dest, h, sizeof(*h),
		    data, length);
}

bool msg_send_data(struct msg_route *route, const struct msg_out *out)
{
	struct wire_header h;

	if (!port_room(route->port, 1))
		return false;
	set_header(route->peer, &h, out->op ? PACKET_WRITTEN : PACKET_DATA, 0);
	h.seq = htobe32(out->seq);
	h.id = htobe64(out->id);
	h.arg = htobe64(out->arg);
	h.arg2 = htobe64(out->pvo);
	put(route, &h, out->data, out->length);
	return true;
}

bool msg_send_ack(struct msg_peer *peer)
{
	struct msg_route *route = msg_route_for_packet(peer);
	struct wire_header h;

	if (!route)
		return false;
	set_header(peer, &h, PACKET_ACK, 0);
	put(route, &h, NULL, 0);
	return true;
}

bool msg_send_grant(struct msg_route *route)
{
	const struct msg_port *port = route->port;
	uint64_t bytes[sizeof(struct wire_grant) / 8 + MSG_MAX_LANES] = {};
	uint32_t i, given = route->given;
	struct wire_grant *g = (void *)bytes;
	struct msg_route *over = NULL;
	struct wire_header h;

	/* Let msg_route_for_packet() choose for every second repetition: @route may be broken. */
	if (route->grant_tries % 2 || !route->dest.ah)
		over = msg_route_for_packet(route->peer);
	if (!over)
		over = route;
	if (!over->dest.ah || !port_room(over->port, 1))
		return false;
	memcpy(g->gid, port->gid.raw, sizeof(g->gid));
	g->qpn = htobe32(port->info.qpn);
	g->key = htobe64(port->info.key);
	g->segment = htobe32(port->info.segment);
	g->version = htobe32(route->grant);
	g->count = htobe32(given);
	g->wanted = htobe32(route->adv_want);
	g->flags = htobe32((port->fences ? GRANT_FENCES : 0) | (port->moves ? GRANT_MOVES : 0));
	for (i = 0; i < given; i++)
		g->rcxts[i] = htobe64(route->granted[i]);
	set_header(route->peer, &h, PACKET_GRANT, route->number);
	put(over, &h, g, sizeof(*g) + given * sizeof(g->rcxts[0]));
	return true;
}

bool msg_send_granted(struct msg_route *route)
{
	struct msg_route *over = msg_route_for_packet(route->peer);
	struct wire_header h;

	if (!over)
		return false;
	set_header(route->peer, &h, PACKET_GRANTED, route->number);
	h.seq = htobe32(route->theirs);
	put(over, &h, NULL, 0);
	return true;
}

static bool send_fence(struct msg_route *route, enum packet_type type, uint32_t lane,
		       uint32_t tid, uint64_t rcxt)
{
	struct msg_route *over = msg_route_for_packet(route->peer);
	struct wire_header h;

	if (!over)
		return false;
	set_header(route->peer, &h, type, route->number);
	h.seq = htobe32(tid);
	h.id = htobe64(lane);
	h.arg = htobe64(rcxt);
	put(over, &h, NULL, 0);
	return true;
}

bool msg_send_fence(struct msg_route *route, const struct msg_lane *lane, uint32_t tid)
{
	return send_fence(route, PACKET_FENCE, lane->index, tid, lane->remote_rcxt);
}

bool msg_send_fenced(struct msg_route *route, const struct msg_fence *fence)
{
	return send_fence(route, PACKET_FENCED, fence->lane, fence->tid, fence->rcxt);
}

/* ---- receive ---- */

static void grant_came(struct msg_route *route, const void *data, uint32_t length, bool hello)
{
	uint64_t bytes[sizeof(struct wire_grant) / 8 + MSG_MAX_LANES];
	const struct wire_grant *w = (void *)bytes;
	struct msg_grant g = {};
	uint32_t i;

	if (length < sizeof(*w) || length > sizeof(bytes))
		return;
	memcpy(bytes, data, length);
	g.count = be32toh(w->count);
	if (g.count > MSG_MAX_LANES || length != sizeof(*w) + g.count * sizeof(w->rcxts[0]))
		return;
	memcpy(g.at.gid.raw, w->gid, sizeof(w->gid));
	g.at.qpn = be32toh(w->qpn);
	g.at.key = be64toh(w->key);
	g.at.segment = be32toh(w->segment);
	g.version = be32toh(w->version);
	g.fences = be32toh(w->flags) & GRANT_FENCES;
	/*
	 * With a shorter segment the work request of a move would be invalid, so ibv_wr_complete()
	 * would post none of the work requests of the pass.
	 */
	g.moves = be32toh(w->flags) & GRANT_MOVES &&
		g.at.segment >= LEAST_SEGMENT + NHCADV_MOVE_HEADER;
	g.wanted = be32toh(w->wanted);
	for (i = 0; i < g.count; i++)
		g.rcxts[i] = be64toh(w->rcxts[i]);
	if (hello)
		msg_hello_came(route, &g);
	else
		msg_grant_came(route, &g);
}

static void about_route(struct msg_route *route, const struct wire_header *h, const void *data,
			uint32_t length)
{
	uint32_t lanes = route->peer->ep->lanes;
	struct msg_fence f = {
		.tid = be32toh(h->seq),
		.rcxt = be64toh(h->arg),
	};

	switch (h->type) {
	case PACKET_GRANT:
		grant_came(route, data, length, false);
		return;
	case PACKET_GRANTED:
		route->grant_known = f.tid;
		return;
	}
	if (be64toh(h->id) >= lanes)
		return;
	f.lane = be64toh(h->id);
	if (h->type == PACKET_FENCE)
		msg_fence_came(route, &f);
	else if (h->type == PACKET_FENCED && route->lanes[f.lane].remote_rcxt == f.rcxt)
		msg_lane_fenced(route, &route->lanes[f.lane], f.tid);
}

void msg_frame_came(struct nhcadv_msg_ep *ep, const struct nhcadv_frame *frame)
{
	uint32_t length = frame->length - sizeof(struct wire_header);
	const uint8_t *data = frame->data + sizeof(struct wire_header);
	struct msg_in what = {};
	struct msg_peer *peer;
	struct wire_header h;

	if (frame->length < sizeof(h))
		return;
	memcpy(&h, frame->data, sizeof(h));
	if (h.version != VERSION || be64toh(h.to) != ep->id)
		return;
	peer = msg_peer_find(ep, be64toh(h.from));
	if (!peer)
		return;
	msg_peer_ready(peer);
	switch (msg_session_came(peer, be32toh(h.session), be32toh(h.to_session),
				 h.type == PACKET_GRANT)) {
	case MSG_SESSION_OLD:
		return;
	case MSG_SESSION_HELLO:
		if (be16toh(h.route) < peer->num_routes)
			grant_came(peer->routes[be16toh(h.route)], data, length, true);
		return;
	case MSG_SESSION_OURS:
		break;
	}
	msg_stream_acked(peer, be32toh(h.ack), be32toh(h.room), be64toh(h.sack));
	switch (h.type) {
	case PACKET_DATA:
	case PACKET_WRITTEN:
		if (length > NHCADV_MSG_MAX_SEND)
			return;
		what.from = peer->id;
		what.session = peer->session;
		what.id = be64toh(h.id);
		what.arg = be64toh(h.arg);
		what.pvo = be64toh(h.arg2);
		what.length = length;
		what.written = h.type == PACKET_WRITTEN;
		msg_stream_came(peer, be32toh(h.seq), &what, data);
		break;
	case PACKET_GRANT:
	case PACKET_GRANTED:
	case PACKET_FENCE:
	case PACKET_FENCED:
		if (be16toh(h.route) < peer->num_routes)
			about_route(peer->routes[be16toh(h.route)], &h, data, length);
		break;
	}
}

/* ---- the address ---- */

union address_bytes {
	struct wire_address w;
	uint8_t bytes[NHCADV_MSG_MAX_ADDRESS];
};

static size_t address_size(uint32_t num_paths)
{
	return sizeof(struct wire_address) + num_paths * sizeof(struct wire_path);
}

int msg_address_pack(const struct msg_address *address, void *bytes, size_t *size)
{
	size_t need = address_size(address->num_paths);
	union address_bytes u = {};
	struct wire_path *path;
	uint32_t i;

	if (*size < need)
		return ENOSPC;
	u.w.magic = htobe32(ADDRESS_MAGIC);
	u.w.version = htobe32(VERSION);
	u.w.id = htobe64(address->id);
	u.w.job = htobe32(address->job);
	u.w.num_paths = htobe32(address->num_paths);
	for (i = 0; i < address->num_paths; i++) {
		path = &u.w.paths[i];
		memcpy(path->gid, address->paths[i].gid.raw, sizeof(path->gid));
		path->qpn = htobe32(address->paths[i].qpn);
		path->key = htobe64(address->paths[i].key);
		path->segment = htobe32(address->paths[i].segment);
	}
	memcpy(bytes, &u, need);
	*size = need;
	return 0;
}

static bool gid_is_v4(const union ibv_gid *gid)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

	return !memcmp(gid, mapped, sizeof(mapped));
}

bool msg_same_family(const union ibv_gid *a, const union ibv_gid *b)
{
	return gid_is_v4(a) == gid_is_v4(b);
}

static bool gid_is_unicast(const union ibv_gid *gid)
{
	static const union ibv_gid none;

	if (!memcmp(gid, &none, sizeof(*gid)) || gid->raw[0] == 0xff)
		return false;
	/* IPv4-mapped: 224.0.0.0 and above are multicast, reserved, or broadcast. */
	return !gid_is_v4(gid) || gid->raw[12] < 224;
}

bool msg_path_ok(const struct msg_address_path *path)
{
	return gid_is_unicast(&path->gid) && path->qpn > 1 && path->qpn < 1 << 24 &&
	       path->segment >= LEAST_SEGMENT && path->segment <= MOST_SEGMENT &&
	       path->segment % 4 == 0;
}

int msg_address_unpack(struct msg_address *address, const void *bytes, size_t size)
{
	const struct wire_path *path;
	union address_bytes u = {};
	uint32_t i;

	*address = (struct msg_address){};
	if (size < sizeof(u.w) || size > sizeof(u))
		return EINVAL;
	memcpy(&u, bytes, size);
	address->id = be64toh(u.w.id);
	address->job = be32toh(u.w.job);
	address->num_paths = be32toh(u.w.num_paths);
	if (be32toh(u.w.magic) != ADDRESS_MAGIC)
		return EINVAL;
	if (be32toh(u.w.version) != VERSION)
		return EPROTONOSUPPORT;
	if (!address->num_paths || address->num_paths > NHCADV_MSG_MAX_PATHS ||
	    size != address_size(address->num_paths))
		return EINVAL;
	for (i = 0; i < address->num_paths; i++) {
		path = &u.w.paths[i];
		memcpy(address->paths[i].gid.raw, path->gid, sizeof(path->gid));
		address->paths[i].qpn = be32toh(path->qpn);
		address->paths[i].key = be64toh(path->key);
		address->paths[i].segment = be32toh(path->segment);
		if (!msg_path_ok(&address->paths[i]))
			return EINVAL;
	}
	return 0;
}
