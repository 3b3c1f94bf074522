/* SPDX-License-Identifier: GPL-2.0 */
/*
 * rCxt datagrams as they lie in a packet: the RXETH, an extended header of nhca's own behind the
 * BTH, opcodes from the manufacturer's range (IBTA 9.2.1).  Documentation/rcxt.rst has every
 * field. Pure functions of bytes, also compiled in user space by the fuzzer.
 *
 * Each packet says all that is needed to place its bytes, so that it does not matter when it
 * comes, by which way, or how often (reference: RDMA write; rCxt structure).
 */
#ifndef NHCA_WIRE_RCXT_H
#define NHCA_WIRE_RCXT_H

#include <linux/types.h>

#define NHCA_RXETH_LEN		64
#define NHCA_RX_READ_LEN	16	/* behind the RXETH of a read request and its challenge */
#define NHCA_RX_TOKEN_LEN	8	/* behind that of a probe, its challenge, and a fence */
#define NHCA_RX_STATUS_LEN	8	/* behind that of a status */
#define NHCA_RXETH_VERSION	0

/* BTH opcodes: kinds of packets */
enum nhca_rx_opcode {
	NHCA_RX_PACKET		= 0xc0,	/* packet mode: into the receive FIFO */
	NHCA_RX_WRITE		= 0xc1,	/* RDMA write: payload */
	NHCA_RX_READ_REQUEST	= 0xc2,
	NHCA_RX_READ_DATA	= 0xc3,	/* RDMA read: payload */
	NHCA_RX_NOTICE		= 0xc4,	/* a transfer is complete */
	NHCA_RX_PROBE		= 0xc5,	/* which packets of a transfer have come? */
	NHCA_RX_STATUS		= 0xc6,	/* these; or what came of a fence */
	NHCA_RX_FENCE		= 0xc7,	/* cancel a transfer, and say when nothing of it lands */
	/* Reserved for the reference's further transfers; nobody sends them, all drop them */
	NHCA_RX_THIRD_REQUEST	= 0xc8,	/* third-key_user read request */
	NHCA_RX_THIRD_WRITE	= 0xc9,	/* payload whose notice goes to a third key_user */
	NHCA_RX_BROADCAST_WRITE	= 0xca,	/* payload to all that have the rCxt */
	NHCA_RX_HALF_WRITE	= 0xcc,	/* payload from memory into a receive FIFO */
	NHCA_RX_HALF_REQUEST	= 0xcd,	/* read request that is answered from a FIFO or into one */
	NHCA_RX_HALF_DATA	= 0xce,	/* its payload */
	NHCA_RX_CONDITION	= 0xd0,	/* conditional transfers: a queue's count */
	/* A request comes back with a token, and has to be sent once more with it */
	NHCA_RX_READ_CHALLENGE	= 0xd2,
	NHCA_RX_PROBE_CHALLENGE	= 0xd5,
};

/* bytes of a transfer; pieces of a longer message are transfers of their own */
#define NHCA_RCXT_MAX_LEN	(16u << 20)
/* packets of a transfer: a bitmap of 2 KiB */
#define NHCA_RCXT_MAX_PACKETS	16384u
/* bytes of payload in each packet of a transfer but the last; a multiple of 4 */
#define NHCA_RCXT_MIN_SEGMENT	64u
#define NHCA_RCXT_MAX_SEGMENT	0xfffcu
/* payload of packet mode, and of a status: what a frame of the receive FIFO holds */
#define NHCA_RX_MAX_PACKET	1984u

/* nhca_rxeth.notify: who is told when all bytes are in place */
#define NHCA_RX_NOTIFY_INITIATOR	0x01	/* who asked for the transfer */
#define NHCA_RX_NOTIFY_TARGET		0x02	/* the other side */
#define NHCA_RX_NOTIFY_MASK		0x03

/* nhca_rxeth.status: of a transfer, seen from the rCxt that a packet named */
enum nhca_rx_status {
	NHCA_RX_ST_DONE		= 0,	/* all bytes are in place */
	NHCA_RX_ST_PARTIAL	= 1,	/* some packets have come */
	NHCA_RX_ST_NONE		= 2,	/* none has, or the rCxt has another tid */
	NHCA_RX_ST_VIOLATED	= 3,	/* memory protection refused a packet */
	NHCA_RX_ST_FENCED	= 4,	/* a fence cancelled it: no byte of it lands any more */
	NHCA_RX_ST_MAX
};

/**
 * struct nhca_rcxt_id - names an rCxt of a device
 * @index: in the pool of the device
 * @key:   moves on whenever the rCxt changes hands; opaque to others
 */
struct nhca_rcxt_id {
	u32 index;
	u32 key;
};

/**
 * struct nhca_rxeth - the RXETH and what may be behind it, decoded
 * @version: NHCA_RXETH_VERSION
 * @notify:  NHCA_RX_NOTIFY_*
 * @src_channel: QPN of the channel that sent the packet: where notices go
 * @key:     of the destination channel
 * @job:     both channels' job
 * @rcxt:    the destination's rCxt
 * @tid:     of the transfer
 * @total:   bytes of the transfer; at most NHCA_RCXT_MAX_LEN
 * @offset:  where in the transfer the packet's bytes begin
 * @length:  their number: the payload without pad
 * @segment: bytes of every packet of the transfer but the last
 * @pvo:     where they go; read request: where the transfer's bytes are
 * @src_key, @src_rcxt: of @src_channel, for notices
 * @cookie:  the initiator's, for its peer's program
 * @reply_pvo: read request, its challenge: where the transfer's bytes shall go
 * @token:   read request, probe, fence: what the peer has sent in its last challenge; challenges:
 *           what the request has to have
 * @again:   read request, probe: this answers a challenge, and is not challenged again
 * @status:  status: enum nhca_rx_status
 * @have:    status: packets that are in place
 */
struct nhca_rxeth {
	u8 version;
	u8 notify;
	u8 status;
	bool again;
	u16 length;
	u16 segment;
	u32 src_channel;
	u32 key;
	u32 job;
	struct nhca_rcxt_id rcxt;
	u32 tid;
	u32 total;
	u32 offset;
	u64 pvo;
	u32 src_key;
	struct nhca_rcxt_id src_rcxt;
	u64 cookie;
	u64 reply_pvo;
	u64 token;
	u32 have;
};

/**
 * nhca_rcxt_packets - packets of a transfer
 * @segment: not 0
 * A transfer of no bytes is one empty packet.
 */
static inline u32 nhca_rcxt_packets(u32 total, u32 segment)
{
	return total ? (total - 1) / segment + 1 : 1;
}

/* payload bytes of the packet at @offset of a transfer */
static inline u32 nhca_rcxt_packet_len(u32 total, u32 segment, u32 offset)
{
	return total - offset < segment ? total - offset : segment;
}

/**
 * nhca_rcxt_sizes_ok - may a transfer be cut this way?
 */
static inline bool nhca_rcxt_sizes_ok(u32 total, u32 segment)
{
	return total <= NHCA_RCXT_MAX_LEN &&
	       segment >= NHCA_RCXT_MIN_SEGMENT && segment <= NHCA_RCXT_MAX_SEGMENT &&
	       !(segment % 4) && nhca_rcxt_packets(total, segment) <= NHCA_RCXT_MAX_PACKETS;
}

/**
 * nhca_rxeth_decode - read an RXETH and what the opcode has behind it
 * @x:      filled in; what the opcode has not is 0
 * @opcode: one that has an RXETH
 * @p:      the bytes behind the BTH, as many as nhca_opinfo(@opcode)->hdr_len says
 */
void nhca_rxeth_decode(struct nhca_rxeth *x, u8 opcode, const u8 *p);

/**
 * nhca_rxeth_encode - write it
 * Return: bytes written.
 */
unsigned int nhca_rxeth_encode(const struct nhca_rxeth *x, u8 opcode, u8 *p);

/* in an encoded RXETH: what the packet has that comes @n segments behind that of @x */
void nhca_rxeth_step(const struct nhca_rxeth *x, u32 n, u8 *p);

/* is the encoded RXETH @q what nhca_rxeth_step() makes of @p, which is that of @x? */
bool nhca_rxeth_stepped(const struct nhca_rxeth *x, u32 n, const u8 *p, const u8 *q);

/**
 * nhca_rxeth_fits - do the lengths in the header agree with each other and with the packet?
 * @payload: bytes of payload that the packet has, without pad
 * This is the one place where lengths are refused: behind it a packet's bytes lie inside its
 * transfer, and its place in the bitmap inside the bitmap.
 */
bool nhca_rxeth_fits(const struct nhca_rxeth *x, u8 opcode, unsigned int payload);

#endif /* NHCA_WIRE_RCXT_H */
