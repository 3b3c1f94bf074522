// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Reliable messages: sends, and notices of writes.
 *
 * Sends and notices are packets of nhcadv_wr_packet() with sequence numbers.  The library of the
 * peer accepts each packet once, and delivers the packets in order.  The headers of its own packets
 * acknowledge all numbers before the next expected one, and some later numbers (selective
 * acknowledgment).  The library retransmits a packet over the next route if the packet is overdue,
 * or if a packet that was sent later has overtaken it.
 *
 * The peer acknowledges when its program polls.  Therefore the stream has a round trip time of its
 * own, and an overdue packet does not prove that a route is dead.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "msg.h"

/* Retransmissions of a packet before its route is probed */
#define DOUBT		2
/* Maximum of msg_out.tries, and so of the doublings of a packet's timeout */
#define MOST_TRIES	6

void msg_stream_init(struct msg_stream *stream)
{
	*stream = (struct msg_stream){ .due = NEVER };
	list_head_init(&stream->waiting);
	list_head_init(&stream->under_way);
	msg_cc_init(&stream->time, 0, 0);
}

static void free_all(struct list_head *list)
{
	struct msg_out *out;

	while ((out = list_pop(list, struct msg_out, node)))
		free(out);
}

void msg_stream_fini(struct msg_stream *stream)
{
	unsigned int i;

	free_all(&stream->waiting);
	free_all(&stream->under_way);
	for (i = 0; i < MSG_STREAM; i++)
		free(stream->early[i]);
}

/* ---- send ---- */

int msg_stream_send(struct msg_peer *peer, const void *data, uint32_t length, uint64_t id)
{
	struct msg_stream *stream = &peer->stream;
	struct msg_out *out;
	int err;

	if (stream->queued >= peer->ep->queue)
		return EAGAIN;
	out = calloc(1, sizeof(*out) + length);
	if (!out)
		return ENOMEM;
	err = msg_reserve(peer->ep);
	if (err) {
		free(out);
		return err;
	}
	out->id = id;
	out->length = length;
	if (length)
		memcpy(out->data, data, length);
	list_add_tail(&stream->waiting, &out->node);
	stream->queued++;
	stream->due = 0;
	return 0;
}

void msg_stream_notify(struct msg_peer *peer, struct msg_op *op)
{
	struct msg_out *out = op->notice;

	op->notice_queued = true;
	op->notice = NULL;
	out->op = op;
	out->id = op->id;
	out->arg = op->length;
	out->pvo = op->remote_pvo;
	list_add_tail(&peer->stream.waiting, &out->node);
	peer->stream.due = 0;
}

static void out_done(struct msg_peer *peer, struct msg_out *out, int status)
{
	list_del(&out->node);
	if (out->op) {
		msg_op_finish(out->op);
	} else {
		peer->stream.queued--;
		msg_complete(peer, NHCADV_MSG_SEND, status, out->id, out->length, 0, NULL);
	}
	free(out);
}

int msg_stream_cancel(struct msg_peer *peer, uint64_t id)
{
	struct msg_out *out, *next;
	int err = ENOENT;

	list_for_each(&peer->stream.under_way, out, node)
		if (!out->op && out->id == id)
			err = EALREADY;
	list_for_each_safe(&peer->stream.waiting, out, next, node) {
		if (out->op || out->id != id)
			continue;
		out_done(peer, out, ECANCELED);
		err = 0;
	}
	return err;
}

/* Packets sent before @when were overtaken: retransmit them soon, unless they are acknowledged. */
static void overtaken(struct msg_stream *stream, uint64_t when, uint64_t now)
{
	uint64_t due = now + msg_cc_reordering(&stream->time);
	struct msg_out *out;

	list_for_each(&stream->under_way, out, node)
		if (!out->acked && out->sent < when && out->due > due)
			out->due = due;
	stream->due = 0;
}

/*
 * Return: true if an acknowledgment covers a packet.  @ahead: sequence number of the packet minus
 * the expected number; MSG_STREAM or more if the acknowledgment is too old to cover the packet.
 */
static bool is_acked(int32_t ahead, uint64_t sack)
{
	return ahead < 0 || (ahead > 0 && ahead < MSG_STREAM && (sack >> (ahead - 1) & 1));
}

void msg_stream_acked(struct msg_peer *peer, uint32_t ack, uint32_t room, uint64_t sack)
{
	struct msg_stream *stream = &peer->stream;
	uint64_t now = peer->ep->now, newest = 0;
	struct msg_out *out, *next;

	/*
	 * Ignore an acknowledgment that is older than the last acknowledgment, or that covers
	 * packets that were not sent.
	 */
	if (ack - stream->acked <= stream->next - stream->acked) {
		stream->acked = ack;
		stream->limit = ack + min_t(uint32_t, room, MSG_STREAM);
		if (!list_empty(&stream->waiting))
			stream->due = 0;
	} else {
		return;
	}
	list_for_each(&stream->under_way, out, node) {
		if (out->acked || !is_acked(out->seq - ack, sack))
			continue;
		out->acked = true;
		if (!out->tries)
			msg_cc_sample(&stream->time, now - out->sent);
		if (out->sent > newest)
			newest = out->sent;
	}
	list_for_each_safe(&stream->under_way, out, next, node) {
		if (!out->acked)
			break;
		out_done(peer, out, 0);
	}
	if (newest)
		overtaken(stream, newest, now);
}

static bool out_send(struct msg_peer *peer, struct msg_out *out)
{
	struct msg_route *route = msg_route_for_packet(peer);
	uint64_t now = peer->ep->now;

	if (!route || !msg_send_data(route, out)) {
		out->due = now + 10 * MS;
		return false;
	}
	out->route = route;
	out->sent = now;
	out->due = now + msg_cc_overdue(&peer->stream.time, out->tries);
	return true;
}

static void send_overdue(struct msg_peer *peer)
{
	struct msg_out *out;

	list_for_each(&peer->stream.under_way, out, node) {
		if (out->acked || out->due > peer->ep->now)
			continue;
		if (out->tries < MOST_TRIES)
			out->tries++;
		if (out->tries >= DOUBT && out->route)
			msg_route_doubt(out->route);
		if (!out_send(peer, out))
			return;
	}
}

static void send_waiting(struct msg_peer *peer)
{
	struct msg_stream *stream = &peer->stream;
	struct msg_out *first, *out;

	/* Before the session is confirmed, the peer would ignore the packet (MSG_SESSION_OLD). */
	if (!peer->confirmed)
		return;
	while ((out = list_top(&stream->waiting, struct msg_out, node))) {
		/*
		 * If no packet is in flight, send one even if the peer has no room.  One of its
		 * retransmissions succeeds when the peer has room again.
		 */
		first = list_top(&stream->under_way, struct msg_out, node);
		if (first && (stream->next - first->seq >= MSG_STREAM ||
			      (int32_t)(stream->next - stream->limit) >= 0))
			return;
		out->seq = stream->next;
		if (!out_send(peer, out))
			return;
		stream->next++;
		list_del(&out->node);
		list_add_tail(&stream->under_way, &out->node);
	}
}

uint64_t msg_stream_timers(struct msg_peer *peer)
{
	struct msg_stream *stream = &peer->stream;
	struct msg_out *out;

	if (stream->due <= peer->ep->now) {
		send_overdue(peer);
		send_waiting(peer);
		stream->due = NEVER;
		list_for_each(&stream->under_way, out, node)
			if (!out->acked && out->due < stream->due)
				stream->due = out->due;
		/* The port had no free slot, or there was no route: try again. */
		out = list_top(&stream->waiting, struct msg_out, node);
		if (out && list_empty(&stream->under_way) && peer->confirmed)
			stream->due = out->due;
	}
	if (stream->ack_due && msg_send_ack(peer))
		stream->ack_due = false;
	return stream->due;
}

/* ---- receive ---- */

uint64_t msg_stream_sack(const struct msg_stream *stream)
{
	uint64_t sack = 0;
	uint32_t i;

	for (i = 1; i < MSG_STREAM; i++)
		if (stream->early[(stream->expected + i) % MSG_STREAM])
			sack |= UINT64_C(1) << (i - 1);
	return sack;
}

static bool is_full(const struct msg_peer *peer)
{
	return peer->stream.held >= peer->ep->queue;
}

/* Deliver packets in sequence, until one is missing or the program holds the maximum of sends. */
static void hand_out(struct msg_peer *peer)
{
	struct msg_stream *stream = &peer->stream;
	struct msg_in *in;

	while ((in = stream->early[stream->expected % MSG_STREAM])) {
		if (!in->written && is_full(peer))
			return;
		stream->early[stream->expected % MSG_STREAM] = NULL;
		stream->expected++;
		stream->ack_due = true;
		if (in->written) {
			msg_complete(peer, NHCADV_MSG_WRITTEN, 0, in->id, in->arg, in->pvo, NULL);
			free(in);
			continue;
		}
		stream->num_early--;
		stream->held++;
		msg_complete(peer, NHCADV_MSG_RECEIVED, 0, in->id, in->length, 0, in->data);
	}
}

/* Return: number of sends, from the next expected one on, that we accept */
static uint32_t room(const struct msg_peer *peer)
{
	return is_full(peer) ? 0 : peer->ep->queue - peer->stream.held;
}

uint32_t msg_stream_room(struct msg_peer *peer)
{
	peer->stream.adv_room = room(peer);
	return peer->stream.adv_room;
}

void msg_stream_released(struct msg_peer *peer)
{
	struct msg_stream *stream = &peer->stream;

	stream->held--;
	hand_out(peer);
	/*
	 * Report the new room to the peer if the last header reported no room, or if the room has
	 * grown by half of the queue since then.
	 */
	if (!stream->adv_room || room(peer) >= stream->adv_room + peer->ep->queue / 2)
		stream->ack_due = true;
	msg_peer_ready(peer);
}

/*
 * Sends that arrive out of order count against nhcadv_msg_ep.queue.  One place is reserved for the
 * next expected send, because later sends cannot be delivered before this send.
 */
static bool has_room(const struct msg_peer *peer, uint32_t seq)
{
	const struct msg_stream *stream = &peer->stream;

	if (seq == stream->expected)
		return !is_full(peer);
	return stream->held + stream->num_early + 1 < peer->ep->queue;
}

void msg_stream_came(struct msg_peer *peer, uint32_t seq, const struct msg_in *what,
		     const void *data)
{
	struct msg_stream *stream = &peer->stream;
	struct msg_in **place = &stream->early[seq % MSG_STREAM];
	struct msg_in *in;

	/* Out of range or a duplicate: an acknowledgment may have been lost, so send it again. */
	if (seq - stream->expected >= MSG_STREAM || *place) {
		stream->ack_due = true;
		return;
	}
	/* If there is no room, drop the send without an acknowledgment: the peer will repeat it. */
	if (!what->written && !has_room(peer, seq))
		return;
	in = malloc(sizeof(*in) + what->length);
	if (!in || msg_reserve(peer->ep)) {
		free(in);
		return;
	}
	*in = *what;
	memcpy(in->data, data, what->length);
	if (!in->written)
		stream->num_early++;
	*place = in;
	stream->ack_due = true;
	hand_out(peer);
}
