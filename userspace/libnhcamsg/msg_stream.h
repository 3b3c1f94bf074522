/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Reliable messages: sends and notices, in order; see msg_stream.c.  Part of msg.h. */
#ifndef NHCA_MSG_STREAM_H
#define NHCA_MSG_STREAM_H

/**
 * msg_stream_init - initialize an empty stream
 * @stream: the stream
 */
void msg_stream_init(struct msg_stream *stream);

/**
 * msg_stream_fini - free all sends and notices of a stream
 * @stream: the stream
 */
void msg_stream_fini(struct msg_stream *stream);

/**
 * msg_stream_send - queue a copy of a send
 * @peer:   the peer
 * @data:   the bytes
 * @length: number of bytes
 * @id:     id for the completion
 * Return: 0; EAGAIN: nhcadv_msg_ep_attr.queue sends are not complete; ENOMEM: no memory.
 */
int msg_stream_send(struct msg_peer *peer, const void *data, uint32_t length, uint64_t id);

/**
 * msg_stream_notify - queue the notice of a write, whose bytes are all in place
 * @peer: the peer
 * @op:   the write
 */
void msg_stream_notify(struct msg_peer *peer, struct msg_op *op);

/**
 * msg_stream_cancel - cancel the sends with an id that were not sent yet
 * @peer: the peer
 * @id:   the id
 * Return: 0: at least one send was cancelled; ENOENT: no send has the id; EALREADY: all sends with
 * the id were sent.
 */
int msg_stream_cancel(struct msg_peer *peer, uint64_t id);

/**
 * msg_stream_came - receive a send or notice of the peer
 * @peer: the peer
 * @seq:  sequence number of the packet
 * @what: the packet without its data
 * @data: the data, of @what->length bytes
 */
void msg_stream_came(struct msg_peer *peer, uint32_t seq, const struct msg_in *what,
		     const void *data);

/**
 * msg_stream_acked - handle the acknowledgment in a header
 * @peer: the peer
 * @ack:  wire_header.ack
 * @room: wire_header.room
 * @sack: wire_header.sack
 */
void msg_stream_acked(struct msg_peer *peer, uint32_t ack, uint32_t room, uint64_t sack);

/**
 * msg_stream_released - report that the program has released a received send
 * @peer: the peer
 */
void msg_stream_released(struct msg_peer *peer);

/**
 * msg_stream_room - get the number of sends that this side accepts, for wire_header.room
 * @peer: the peer
 * Return: the number.
 */
uint32_t msg_stream_room(struct msg_peer *peer);

/**
 * msg_stream_sack - get the bitmap of packets that were received out of order, for wire_header.sack
 * @stream: the stream
 * Return: the bitmap.
 */
uint64_t msg_stream_sack(const struct msg_stream *stream);

/**
 * msg_stream_timers - send and retransmit packets, and send an acknowledgment that is due
 * @peer: the peer
 * Return: time of the next retransmission; NEVER: none.
 */
uint64_t msg_stream_timers(struct msg_peer *peer);

#endif /* NHCA_MSG_STREAM_H */
