// SPDX-License-Identifier: GPL-2.0
/*
 * Decoding, encoding and checking of the RXETH.  The fuzzer compiles this file in user space.
 */
#include <linux/string.h>
#include "compat.h"
#include "element.h"
#include "rcxt.h"

/* byte 40, from the highest bit: version (4 bits), RXETH_THIRD, RXETH_AGAIN, NHCA_RX_NOTIFY_MASK */
#define RXETH_VERSION_SHIFT	4
#define RXETH_THIRD		0x08
#define RXETH_AGAIN		0x04

/* Return: true if packets of this kind have the bit NHCA_RX_NOTIFY_THIRD. */
static bool has_third(u8 opcode)
{
	return opcode == NHCA_RX_THIRD_REQUEST || opcode == NHCA_RX_THIRD_CHALLENGE ||
	       opcode == NHCA_RX_THIRD_WRITE || opcode == NHCA_RX_NOTICE;
}

/* Return: true if the payload of packets of this kind goes into a frame. */
static bool has_frame(u8 opcode)
{
	return opcode == NHCA_RX_HALF_WRITE || opcode == NHCA_RX_FRAMES_DATA;
}

/* Decode the extended header after the RXETH of a third-party request or challenge. */
static void third_decode(struct nhca_rxeth *x, const u8 *p)
{
	x->reply_pvo = get_unaligned_be64(p);
	x->token = get_unaligned_be64(p + 8);
	memcpy(x->gid, p + 16, NHCA_RX_GID_LEN);
	/* byte 32 is reserved */
	x->target_channel = get_unaligned_be24(p + 33);
	x->target_key = get_unaligned_be32(p + 36);
	x->target_rcxt.index = get_unaligned_be32(p + 40);
	x->target_rcxt.key = get_unaligned_be32(p + 44);
	x->part = get_unaligned_be32(p + 48);
	x->number = get_unaligned_be32(p + 52);
}

static void third_encode(const struct nhca_rxeth *x, u8 *p)
{
	put_unaligned_be64(x->reply_pvo, p);
	put_unaligned_be64(x->token, p + 8);
	memcpy(p + 16, x->gid, NHCA_RX_GID_LEN);
	p[32] = 0;
	put_unaligned_be24(x->target_channel, p + 33);
	put_unaligned_be32(x->target_key, p + 36);
	put_unaligned_be32(x->target_rcxt.index, p + 40);
	put_unaligned_be32(x->target_rcxt.key, p + 44);
	put_unaligned_be32(x->part, p + 48);
	put_unaligned_be32(x->number, p + 52);
}

void nhca_rxeth_decode(struct nhca_rxeth *x, u8 opcode, const u8 *p)
{
	*x = (struct nhca_rxeth) {
		.key = get_unaligned_be32(p),
		.job = get_unaligned_be32(p + 4),
		.rcxt.index = get_unaligned_be32(p + 8),
		.rcxt.key = get_unaligned_be32(p + 12),
		.tid = get_unaligned_be32(p + 16),
		.total = get_unaligned_be32(p + 20),
		.offset = get_unaligned_be32(p + 24),
		.length = get_unaligned_be16(p + 28),
		.segment = get_unaligned_be16(p + 30),
		.pvo = get_unaligned_be64(p + 32),
		.version = p[40] >> RXETH_VERSION_SHIFT,
		.notify = p[40] & NHCA_RX_NOTIFY_MASK,
		.half = has_frame(opcode),
		.again = p[40] & RXETH_AGAIN,
		.src_channel = get_unaligned_be24(p + 41),
		.src_key = get_unaligned_be32(p + 44),
		.src_rcxt.index = get_unaligned_be32(p + 48),
		.src_rcxt.key = get_unaligned_be32(p + 52),
		.cookie = get_unaligned_be64(p + 56),
	};
	if (has_third(opcode) && p[40] & RXETH_THIRD)
		x->notify |= NHCA_RX_NOTIFY_THIRD;
	p += NHCA_RXETH_LEN;
	switch (opcode) {
	case NHCA_RX_THIRD_REQUEST:
	case NHCA_RX_THIRD_CHALLENGE:
		third_decode(x, p);
		break;
	case NHCA_RX_THIRD_WRITE:
		memcpy(x->gid, p, NHCA_RX_GID_LEN);
		break;
	case NHCA_RX_ACCUMULATE:
		/* bytes 2 and 3 are reserved */
		x->op = p[0];
		x->type = p[1];
		break;
	case NHCA_RX_READ_REQUEST:
	case NHCA_RX_HALF_REQUEST:
	case NHCA_RX_READ_CHALLENGE:
		x->reply_pvo = get_unaligned_be64(p);
		x->token = get_unaligned_be64(p + 8);
		break;
	case NHCA_RX_FRAMES_REQUEST:
	case NHCA_RX_FRAMES_CHALLENGE:
		x->part = get_unaligned_be32(p);
		x->number = get_unaligned_be32(p + 4);
		x->token = get_unaligned_be64(p + 8);
		break;
	case NHCA_RX_PROBE:
	case NHCA_RX_PROBE_CHALLENGE:
	case NHCA_RX_FENCE:
		x->token = get_unaligned_be64(p);
		break;
	case NHCA_RX_STATUS:
		x->status = p[0];
		x->have = get_unaligned_be32(p + 4);
		break;
	}
}

unsigned int nhca_rxeth_encode(const struct nhca_rxeth *x, u8 opcode, u8 *p)
{
	put_unaligned_be32(x->key, p);
	put_unaligned_be32(x->job, p + 4);
	put_unaligned_be32(x->rcxt.index, p + 8);
	put_unaligned_be32(x->rcxt.key, p + 12);
	put_unaligned_be32(x->tid, p + 16);
	put_unaligned_be32(x->total, p + 20);
	put_unaligned_be32(x->offset, p + 24);
	put_unaligned_be16(x->length, p + 28);
	put_unaligned_be16(x->segment, p + 30);
	put_unaligned_be64(x->pvo, p + 32);
	p[40] = x->version << RXETH_VERSION_SHIFT | (x->again ? RXETH_AGAIN : 0) |
		(x->notify & NHCA_RX_NOTIFY_THIRD && has_third(opcode) ? RXETH_THIRD : 0) |
		(x->notify & NHCA_RX_NOTIFY_MASK);
	put_unaligned_be24(x->src_channel, p + 41);
	put_unaligned_be32(x->src_key, p + 44);
	put_unaligned_be32(x->src_rcxt.index, p + 48);
	put_unaligned_be32(x->src_rcxt.key, p + 52);
	put_unaligned_be64(x->cookie, p + 56);
	p += NHCA_RXETH_LEN;
	switch (opcode) {
	case NHCA_RX_THIRD_REQUEST:
	case NHCA_RX_THIRD_CHALLENGE:
		third_encode(x, p);
		return NHCA_RXETH_LEN + NHCA_RX_THIRD_LEN;
	case NHCA_RX_THIRD_WRITE:
		memcpy(p, x->gid, NHCA_RX_GID_LEN);
		return NHCA_RXETH_LEN + NHCA_RX_GID_LEN;
	case NHCA_RX_ACCUMULATE:
		memset(p, 0, NHCA_RX_OP_LEN);
		p[0] = x->op;
		p[1] = x->type;
		return NHCA_RXETH_LEN + NHCA_RX_OP_LEN;
	case NHCA_RX_READ_REQUEST:
	case NHCA_RX_HALF_REQUEST:
	case NHCA_RX_READ_CHALLENGE:
		put_unaligned_be64(x->reply_pvo, p);
		put_unaligned_be64(x->token, p + 8);
		return NHCA_RXETH_LEN + NHCA_RX_READ_LEN;
	case NHCA_RX_FRAMES_REQUEST:
	case NHCA_RX_FRAMES_CHALLENGE:
		put_unaligned_be32(x->part, p);
		put_unaligned_be32(x->number, p + 4);
		put_unaligned_be64(x->token, p + 8);
		return NHCA_RXETH_LEN + NHCA_RX_FRAMES_LEN;
	case NHCA_RX_PROBE:
	case NHCA_RX_PROBE_CHALLENGE:
	case NHCA_RX_FENCE:
		put_unaligned_be64(x->token, p);
		return NHCA_RXETH_LEN + NHCA_RX_TOKEN_LEN;
	case NHCA_RX_STATUS:
		memset(p, 0, 4);
		p[0] = x->status;
		put_unaligned_be32(x->have, p + 4);
		return NHCA_RXETH_LEN + NHCA_RX_STATUS_LEN;
	default:
		return NHCA_RXETH_LEN;
	}
}

void nhca_rxeth_step(const struct nhca_rxeth *x, u32 n, u8 *p)
{
	put_unaligned_be32(x->offset + n * x->segment, p + 24);
	put_unaligned_be64(x->pvo + n * x->segment, p + 32);
}

bool nhca_rxeth_stepped(const struct nhca_rxeth *x, u32 n, const u8 *p, const u8 *q)
{
	/* compare the fields before, between and after offset and PVO: these must be equal */
	return !memcmp(p, q, 24) && !memcmp(p + 28, q + 28, 4) && !memcmp(p + 40, q + 40, 24) &&
	       get_unaligned_be32(q + 24) == x->offset + n * x->segment &&
	       get_unaligned_be64(q + 32) == x->pvo + n * x->segment;
}

/* Return: true if a packet of the transfer can begin at x->offset. */
static bool offset_ok(const struct nhca_rxeth *x)
{
	return !(x->offset % x->segment) && (x->offset < x->total || !x->offset);
}

/* Return: true if the manager gets the completion, and the source does not get one. */
static bool third_notify_ok(const struct nhca_rxeth *x)
{
	return (x->notify & NHCA_RX_NOTIFY_THIRD) && !(x->notify & NHCA_RX_NOTIFY_INITIATOR);
}

/* Return: true if x->part selects whole packets of the transfer, from x->offset on. */
static bool part_ok(const struct nhca_rxeth *x)
{
	u32 left = x->total - x->offset;

	return x->part == left || (x->part && x->part < left && !(x->part % x->segment));
}

bool nhca_rxeth_fits(const struct nhca_rxeth *x, u8 opcode, unsigned int payload)
{
	u32 left;

	if (x->length != payload)
		return false;
	if (opcode == NHCA_RX_PACKET)
		return x->length <= NHCA_RX_MAX_PACKET && x->total == x->length && !x->offset;
	if (!nhca_rcxt_sizes_ok(x->total, x->segment) || !offset_ok(x))
		return false;

	switch (opcode) {
	case NHCA_RX_WRITE:
	case NHCA_RX_READ_DATA:
		return x->length == nhca_rcxt_packet_len(x->total, x->segment, x->offset);
	case NHCA_RX_ACCUMULATE:
		return nhca_elements_whole(x->op, x->type, x->total, x->segment, x->pvo) &&
		       x->length == nhca_rcxt_packet_len(x->total, x->segment, x->offset);
	case NHCA_RX_HALF_WRITE:
	case NHCA_RX_FRAMES_DATA:
		return x->segment <= NHCA_RX_MAX_PACKET && x->pvo == x->offset &&
		       x->length == nhca_rcxt_packet_len(x->total, x->segment, x->offset);
	case NHCA_RX_STATUS:
		/* the payload is a bitmap of consecutive packets; the first one is at x->offset */
		left = nhca_rcxt_packets(x->total - x->offset, x->segment);
		return x->status < NHCA_RX_ST_MAX && x->length <= NHCA_RX_MAX_PACKET &&
		       x->length <= (left + 7) / 8;
	case NHCA_RX_THIRD_WRITE:
		return third_notify_ok(x) &&
		       x->length == nhca_rcxt_packet_len(x->total, x->segment, x->offset);
	case NHCA_RX_THIRD_REQUEST:
	case NHCA_RX_THIRD_CHALLENGE:
		return third_notify_ok(x) && part_ok(x);
	case NHCA_RX_FRAMES_REQUEST:
	case NHCA_RX_FRAMES_CHALLENGE:
		return x->segment <= NHCA_RX_MAX_PACKET && part_ok(x);
	case NHCA_RX_NOTICE:
	case NHCA_RX_READ_REQUEST:
	case NHCA_RX_HALF_REQUEST:
	case NHCA_RX_READ_CHALLENGE:
	case NHCA_RX_FENCE:
		return !x->offset;
	default:
		return true;
	}
}
