/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The header of rCxt datagrams: the RXETH, an extended header after the BTH that nhca defines.
 * The opcodes are manufacturer-specific (IBTA 9.2.1).  Documentation/rcxt.rst describes all fields.
 * The functions only read and write bytes; the fuzzer compiles them in user space.
 *
 * Each packet contains all that the receiver needs to place the packet's bytes.  So packets may
 * arrive in any order, over any path, and more than once (US 8,023,417: RDMA write, rCxt
 * structure).
 */
#ifndef NHCA_WIRE_RCXT_H
#define NHCA_WIRE_RCXT_H

#include <linux/types.h>

#define NHCA_RXETH_LEN		64
/* bytes of the extended header after the RXETH, for each kind of packet that has such a header: */
/* read request, read challenge, half-send read request */
#define NHCA_RX_READ_LEN	16
#define NHCA_RX_FRAMES_LEN	16	/* half-receive read request and challenge */
#define NHCA_RX_TOKEN_LEN	8	/* probe, probe challenge, fence */
#define NHCA_RX_STATUS_LEN	8	/* status */
#define NHCA_RX_GID_LEN		16	/* third-party payload */
#define NHCA_RX_OP_LEN		4	/* accumulate */
/* third-party request, third-party challenge */
#define NHCA_RX_THIRD_LEN	(NHCA_RX_READ_LEN + NHCA_RX_GID_LEN + 24)
#define NHCA_RXETH_VERSION	0

/* BTH opcodes of channels: kinds of packets */
enum nhca_rx_opcode {
	NHCA_RX_PACKET		= 0xc0,	/* packet mode: payload for a frame of the receive FIFO */
	NHCA_RX_WRITE		= 0xc1,	/* RDMA write: payload */
	NHCA_RX_READ_REQUEST	= 0xc2,
	NHCA_RX_READ_DATA	= 0xc3,	/* RDMA read: payload */
	NHCA_RX_NOTICE		= 0xc4,	/* all bytes of a transfer are placed */
	NHCA_RX_PROBE		= 0xc5,	/* requests a status: which packets have arrived */
	NHCA_RX_STATUS		= 0xc6,	/* answers a probe, fence or third-party request */
	NHCA_RX_FENCE		= 0xc7,	/* cancels a transfer at the peer; requests a status */
	NHCA_RX_THIRD_REQUEST	= 0xc8,	/* a manager requests that a source writes to a target */
	NHCA_RX_THIRD_WRITE	= 0xc9,	/* payload whose notice goes to the manager */
	NHCA_RX_ACCUMULATE	= 0xcb,	/* payload that is combined with bytes in memory */
	NHCA_RX_HALF_WRITE	= 0xcc,	/* half-receive write: payload for frames of the FIFO */
	NHCA_RX_HALF_REQUEST	= 0xcd,	/* half-send read: request for the peer's program */
	NHCA_RX_FRAMES_REQUEST	= 0xce,	/* half-receive read: request */
	NHCA_RX_FRAMES_DATA	= 0xcf,	/* half-receive read: payload for frames of the FIFO */
	/* reserved for other transfers of the reference: nhca never sends them, and drops them */
	NHCA_RX_BROADCAST_WRITE	= 0xca,	/* payload for all channels that have the rCxt */
	NHCA_RX_CONDITION	= 0xd0,	/* conditional transfers */
	/* the answer to a request without a valid token: repeat the request with this token */
	NHCA_RX_READ_CHALLENGE	= 0xd2,
	NHCA_RX_PROBE_CHALLENGE	= 0xd5,
	NHCA_RX_THIRD_CHALLENGE	= 0xd8,
	NHCA_RX_FRAMES_CHALLENGE = 0xde,
};

/* maximum bytes of a transfer; a longer message is sent as several transfers */
#define NHCA_RCXT_MAX_LEN	(16u << 20)
/* maximum number of packets of a transfer, so that its bitmap has at most 2 KiB */
#define NHCA_RCXT_MAX_PACKETS	16384u
/*
 * Bounds of the segment: bytes of payload in each packet of a transfer but the last.  A segment
 * must be a multiple of 4.
 */
#define NHCA_RCXT_MIN_SEGMENT	64u
#define NHCA_RCXT_MAX_SEGMENT	0xfffcu
/*
 * maximum payload bytes of a packet in packet mode, of a half-receive transfer and of a status: the
 * data of a frame (NHCA_FRAME_DATA)
 */
#define NHCA_RX_MAX_PACKET	1984u

/* nhca_rxeth.notify: sides of a transfer that get a completion when all bytes are placed */
#define NHCA_RX_NOTIFY_INITIATOR	0x01	/* the channel that posted the work request */
#define NHCA_RX_NOTIFY_TARGET		0x02	/* the other channel */
#define NHCA_RX_NOTIFY_MASK		0x03
/*
 * The manager of a third-party transfer gets the completion.  Only third-party requests, challenges
 * and payload, and notices have this bit.
 */
#define NHCA_RX_NOTIFY_THIRD		0x04

/* nhca_rxeth.status: state of a transfer at the rCxt that the answered packet names */
enum nhca_rx_status {
	NHCA_RX_ST_DONE		= 0,	/* all bytes are placed */
	NHCA_RX_ST_PARTIAL	= 1,	/* not complete; the payload is a bitmap of packets */
	NHCA_RX_ST_NONE		= 2,	/* unknown: the rCxt does not receive this transfer */
	NHCA_RX_ST_VIOLATED	= 3,	/* memory protection refused a packet */
	NHCA_RX_ST_FENCED	= 4,	/* canceled by a fence: no further byte is placed or sent */
	/* answers of a source that refuses a third-party request */
	NHCA_RX_ST_FORBIDDEN	= 5,	/* the source's program has not allowed this target */
	NHCA_RX_ST_TOO_LONG	= 6,	/* the segment is longer than a packet of the source */
	NHCA_RX_ST_MAX
};

/**
 * struct nhca_rcxt_id - identifies an rCxt of a device
 * @index: index in the pool of the device
 * @key:   changes whenever a channel acquires the rCxt; other hosts do not interpret the key
 */
struct nhca_rcxt_id {
	u32 index;
	u32 key;
};

/**
 * struct nhca_rxeth - the RXETH and the extended header after it, decoded
 * @version: NHCA_RXETH_VERSION
 * @notify:  NHCA_RX_NOTIFY_*
 * @status:  status: enum nhca_rx_status
 * @half:    half-receive write, half-receive read data: the payload goes into a frame.  @half
 *           follows from the opcode
 * @op:      accumulate: enum nhca_element_op; other packets: NHCA_ELEM_NONE
 * @type:    accumulate: enum nhca_element_type; other packets: 0
 * @again:   probe, and requests except half-send read requests: the packet answers a challenge, so
 *           its receiver sends no other challenge
 * @length:  bytes of payload of this packet, without pad
 * @segment: bytes of payload of each packet of the transfer but the last
 * @src_channel: QPN of the channel to which notices and other answers go: the one that sent the
 *           packet; in third-party payload, that of the manager
 * @key:     lower 32 bits of the key of the destination channel
 * @job:     job id of both channels
 * @rcxt:    rCxt of the destination channel; packet mode: rcxt.index has the upper 32 bits of the
 *           destination channel's key
 * @tid:     number of the transfer
 * @total:   bytes of the transfer, at most NHCA_RCXT_MAX_LEN
 * @offset:  bytes of the transfer before those of this packet
 * @pvo:     payload: destination of this packet's first byte; payload with @half: equal to @offset;
 *           read request, half-receive read request, third-party request, and their challenges:
 *           source of the transfer's first byte; half-send read request: any value, for the peer's
 *           program
 * @src_key: lower 32 bits of the key of @src_channel
 * @src_rcxt: rCxt of @src_channel, for answers; packet mode: src_rcxt.index has the upper 32 bits
 *           of the key of @src_channel
 * @cookie:  chosen by the initiator for the program of its peer
 * @reply_pvo: read request, half-send read request, third-party request, and their challenges:
 *           destination of the transfer's first byte
 * @token:   challenge: token for the repeated request or probe; probe, and requests except
 *           half-send read requests: token of the latest challenge from this peer, or 0 if there is
 *           none; fence, half-send read request: 0
 * @gid:     third-party request and challenge: GID of the target; third-party payload: GID of the
 *           manager
 * @target_channel: third-party request and challenge: QPN of the target
 * @target_key: in the same packets: lower 32 bits of the key of @target_channel
 * @target_rcxt: in the same packets: rCxt of @target_channel
 * @part:    third-party or half-receive read request or challenge: number of bytes to send, from
 *           @offset on
 * @number:  in the same packets as @part: number of the request; a repetition for the same transfer
 *           has a higher number
 * @have:    status NHCA_RX_ST_DONE or NHCA_RX_ST_PARTIAL: number of packets of the transfer that
 *           have arrived; otherwise 0
 */
struct nhca_rxeth {
	u8 version;
	u8 notify;
	u8 status;
	bool half;
	u8 op;
	u8 type;
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
	u8 gid[NHCA_RX_GID_LEN];
	u32 target_channel;
	u32 target_key;
	struct nhca_rcxt_id target_rcxt;
	u32 part;
	u32 number;
};

/**
 * nhca_rcxt_packets - compute the number of packets of a transfer
 * @total:   bytes of the transfer
 * @segment: bytes of each packet but the last, not 0
 * Context: any.
 * Return: number of packets; 1 for a transfer of 0 bytes.
 */
static inline u32 nhca_rcxt_packets(u32 total, u32 segment)
{
	return total ? (total - 1) / segment + 1 : 1;
}

/**
 * nhca_rcxt_packet_len - compute the payload bytes of a packet of a transfer
 * @total:   bytes of the transfer
 * @segment: bytes of each packet but the last
 * @offset:  offset of the packet in the transfer, in bytes
 * Context: any.
 * Return: bytes.
 */
static inline u32 nhca_rcxt_packet_len(u32 total, u32 segment, u32 offset)
{
	return total - offset < segment ? total - offset : segment;
}

/**
 * nhca_rcxt_sizes_ok - check the sizes of a transfer
 * @total:   bytes of the transfer
 * @segment: bytes of each packet but the last
 * Context: any.
 * Return: true if @total and @segment are within their bounds, @segment is divisible by 4, and the
 * transfer has at most NHCA_RCXT_MAX_PACKETS packets.
 */
static inline bool nhca_rcxt_sizes_ok(u32 total, u32 segment)
{
	return total <= NHCA_RCXT_MAX_LEN &&
	       segment >= NHCA_RCXT_MIN_SEGMENT && segment <= NHCA_RCXT_MAX_SEGMENT &&
	       !(segment % 4) && nhca_rcxt_packets(total, segment) <= NHCA_RCXT_MAX_PACKETS;
}

/**
 * nhca_rxeth_decode - decode an RXETH and the extended header after it
 * @x:      filled in; fields that the opcode does not have are 0
 * @opcode: an opcode with NHCA_OPF_RXETH
 * @p:      bytes after the BTH: nhca_opinfo(@opcode)->hdr_len - NHCA_BTH_LEN of them
 * Context: any.
 */
void nhca_rxeth_decode(struct nhca_rxeth *x, u8 opcode, const u8 *p);

/**
 * nhca_rxeth_encode - write an RXETH and the extended header after it
 * @x:      the fields
 * @opcode: an opcode with NHCA_OPF_RXETH
 * @p:      room for the bytes after the BTH
 * Context: any.
 * Return: bytes written.
 */
unsigned int nhca_rxeth_encode(const struct nhca_rxeth *x, u8 opcode, u8 *p);

/**
 * nhca_rxeth_step - change an encoded RXETH to that of the @n-th packet after @x in the transfer
 * @x: RXETH of a packet with a whole segment of payload
 * @n: number of packets from @x to the new packet
 * @p: encoded RXETH of any packet of the transfer; the function changes offset and PVO
 * Context: any.
 */
void nhca_rxeth_step(const struct nhca_rxeth *x, u32 n, u8 *p);

/**
 * nhca_rxeth_stepped - check that an encoded RXETH is that of the @n-th packet after @x
 * @x: RXETH of a packet
 * @n: number of packets from @x to the packet to check
 * @p: @x, encoded
 * @q: encoded RXETH to check
 * Context: any.
 * Return: true if nhca_rxeth_step() would change @p to @q.
 */
bool nhca_rxeth_stepped(const struct nhca_rxeth *x, u32 n, const u8 *p, const u8 *q);

/**
 * nhca_rxeth_fits - check the lengths in an RXETH against each other and against the packet
 * @x:       the RXETH
 * @opcode:  its opcode
 * @payload: bytes of payload of the packet, without pad
 *
 * The receive engine relies on this check: if it succeeds, the bytes of the packet are within the
 * transfer, and the packet's bit is within the bitmap of the transfer.
 * Context: any.
 * Return: true if the lengths are valid.
 */
bool nhca_rxeth_fits(const struct nhca_rxeth *x, u8 opcode, unsigned int payload);

#endif /* NHCA_WIRE_RCXT_H */
