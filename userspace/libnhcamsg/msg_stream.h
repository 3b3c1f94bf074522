/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Reliable messages: sends and notices, in order; see msg_stream.c.  Part of msg.h. */
#ifndef NHCA_MSG_STREAM_H
#define NHCA_MSG_STREAM_H

void msg_stream_init(struct msg_stream *stream);
void msg_stream_fini(struct msg_stream *stream);
/** msg_stream_send - queue a copy of a send; Return: 0; EAGAIN: full queue; ENOMEM: no memory */
int msg_stream_send(struct msg_peer *peer, const void *data, uint32_t length, uint64_t id);
/** msg_stream_notify - queue the notice of a write */
void msg_stream_notify(struct msg_peer *peer, struct msg_op *op);
/** msg_stream_cancel - cancel sends by id; Return: 0, ENOENT (no send), EALREADY (all were sent) */
int msg_stream_cancel(struct msg_peer *peer, uint64_t id);
/** msg_stream_came - receive packet @seq of the stream; @what: the packet without its data */
void msg_stream_came(struct msg_peer *peer, uint32_t seq, const struct msg_in *what,
		     const void *data);
/** msg_stream_acked - handle the acknowledgment in a header; see struct wire_header */
void msg_stream_acked(struct msg_peer *peer, uint32_t ack, uint32_t room, uint64_t sack);
/** msg_stream_released - report that the program has released a received send */
void msg_stream_released(struct msg_peer *peer);
/* Values of wire_header.room and wire_header.sack */
uint32_t msg_stream_room(struct msg_peer *peer);
uint64_t msg_stream_sack(const struct msg_stream *stream);
/** msg_stream_timers - send and retransmit; Return: time of the next retransmission */
uint64_t msg_stream_timers(struct msg_peer *peer);

#endif /* NHCA_MSG_STREAM_H */
