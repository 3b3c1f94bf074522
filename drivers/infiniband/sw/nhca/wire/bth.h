/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Transport headers as they lie in a packet (IBTA vol. 1, chapter 9) and the
 * decoded form that the engines use.  Pure functions of bytes: no skb, no
 * socket, no lock, so that KUnit and the user-space fuzzer drive them as they
 * are.
 */
#ifndef NHCA_WIRE_BTH_H
#define NHCA_WIRE_BTH_H

#include <linux/bits.h>
#include <linux/types.h>

#include "rcxt.h"

#define NHCA_BTH_LEN		12
#define NHCA_DETH_LEN		8
#define NHCA_RETH_LEN		16
#define NHCA_AETH_LEN		4
#define NHCA_ATOMIC_ETH_LEN	28
#define NHCA_ATOMIC_ACK_ETH_LEN	8
#define NHCA_IMMDT_LEN		4
#define NHCA_IETH_LEN		4
#define NHCA_FETH_LEN		4
#define NHCA_XRCETH_LEN		4
#define NHCA_ICRC_LEN		4
/* BTH and the longest run of extended headers that an opcode has */
#define NHCA_HDRS_MAX		(NHCA_BTH_LEN + NHCA_RXETH_LEN + NHCA_RX_READ_LEN)
#define NHCA_GRH_LEN		40
#define NHCA_ROCE_UDP_PORT	4791

#define NHCA_PSN_MASK		0xffffff
#define NHCA_QPN_MASK		0xffffff

/*
 * Opcodes: service in the upper three bits, operation in the lower five
 * (IBTA 9.2.1, table 38).
 */
enum nhca_service {
	NHCA_SVC_RC	= 0x00,
	NHCA_SVC_UC	= 0x20,
	NHCA_SVC_RD	= 0x40,
	NHCA_SVC_UD	= 0x60,
	NHCA_SVC_CNP	= 0x80,
	NHCA_SVC_XRC	= 0xa0,
	NHCA_SVC_MFR	= 0xc0,		/* manufacturer's: rCxt datagrams, enum nhca_rx_opcode */
	NHCA_SVC_MASK	= 0xe0,
};

#define NHCA_OPCODE_CNP		0x81

enum nhca_op {
	NHCA_OP_SEND_FIRST		= 0x00,
	NHCA_OP_SEND_MIDDLE		= 0x01,
	NHCA_OP_SEND_LAST		= 0x02,
	NHCA_OP_SEND_LAST_IMM		= 0x03,
	NHCA_OP_SEND_ONLY		= 0x04,
	NHCA_OP_SEND_ONLY_IMM		= 0x05,
	NHCA_OP_WRITE_FIRST		= 0x06,
	NHCA_OP_WRITE_MIDDLE		= 0x07,
	NHCA_OP_WRITE_LAST		= 0x08,
	NHCA_OP_WRITE_LAST_IMM		= 0x09,
	NHCA_OP_WRITE_ONLY		= 0x0a,
	NHCA_OP_WRITE_ONLY_IMM		= 0x0b,
	NHCA_OP_READ_REQUEST		= 0x0c,
	NHCA_OP_READ_RESP_FIRST		= 0x0d,
	NHCA_OP_READ_RESP_MIDDLE	= 0x0e,
	NHCA_OP_READ_RESP_LAST		= 0x0f,
	NHCA_OP_READ_RESP_ONLY		= 0x10,
	NHCA_OP_ACK			= 0x11,
	NHCA_OP_ATOMIC_ACK		= 0x12,
	NHCA_OP_CMP_SWAP		= 0x13,
	NHCA_OP_FETCH_ADD		= 0x14,
	NHCA_OP_SEND_LAST_INV		= 0x16,
	NHCA_OP_SEND_ONLY_INV		= 0x17,
	NHCA_OP_FLUSH			= 0x1c,
	NHCA_OP_ATOMIC_WRITE		= 0x1d,
	NHCA_OP_MASK			= 0x1f,
};

/* What an opcode is and carries: nhca_opinfo.flags */
#define NHCA_OPF_REQUEST	BIT(0)	/* for the receive engine */
#define NHCA_OPF_RESPONSE	BIT(1)	/* for the send engine */
#define NHCA_OPF_FIRST		BIT(2)	/* begins a message; ONLY has FIRST and LAST */
#define NHCA_OPF_LAST		BIT(3)	/* ends a message */
#define NHCA_OPF_SEND		BIT(4)
#define NHCA_OPF_WRITE		BIT(5)
#define NHCA_OPF_READ		BIT(6)	/* READ request */
#define NHCA_OPF_ATOMIC		BIT(7)	/* atomic request */
#define NHCA_OPF_READ_RESP	BIT(8)
#define NHCA_OPF_PAYLOAD	BIT(9)	/* may carry payload */
#define NHCA_OPF_DETH		BIT(10)
#define NHCA_OPF_RETH		BIT(11)
#define NHCA_OPF_AETH		BIT(12)
#define NHCA_OPF_ATOMIC_ETH	BIT(13)
#define NHCA_OPF_ATOMIC_ACK_ETH	BIT(14)
#define NHCA_OPF_IMMDT		BIT(15)
#define NHCA_OPF_IETH		BIT(16)
#define NHCA_OPF_MIDDLE		BIT(17)	/* neither first nor last: a full path MTU */
#define NHCA_OPF_RXETH		BIT(18)	/* for a channel; rcxt.h says what it carries */
#define NHCA_OPF_FLUSH		BIT(19)
#define NHCA_OPF_ATOMIC_WRITE	BIT(20)
#define NHCA_OPF_FETH		BIT(21)
#define NHCA_OPF_XRCETH		BIT(22)

/* requests that are acknowledged by an answer of their own, and are not executed twice */
#define NHCA_OPF_ANSWERED	(NHCA_OPF_READ | NHCA_OPF_ATOMIC | NHCA_OPF_FLUSH | \
				 NHCA_OPF_ATOMIC_WRITE)

/**
 * struct nhca_opinfo - one row of the opcode table
 * @name:    as in the specification, for traces
 * @flags:   NHCA_OPF_*; 0 for an opcode that does not exist
 * @hdr_len: bytes of BTH and extended headers
 */
struct nhca_opinfo {
	const char *name;
	u32 flags;
	u8 hdr_len;
};

/**
 * nhca_opinfo - look up a BTH opcode (IBTA table 38)
 * Return: the row, or NULL if nhca does not know the opcode.
 */
const struct nhca_opinfo *nhca_opinfo(u8 opcode);

/* AETH syndrome (IBTA 9.7.5.2): kind in bits 6:5 */
#define NHCA_AETH_KIND_MASK	0xe0
#define NHCA_AETH_ACK		0x00
#define NHCA_AETH_RNR		0x20
#define NHCA_AETH_NAK		0x60
#define NHCA_AETH_VALUE_MASK	0x1f
#define NHCA_AETH_NO_CREDIT	0x1f	/* credit count not in use */

/* FETH (IBTA A19): what a FLUSH is to achieve, in bits 3:0, and for which bytes, in bits 5:4 */
#define NHCA_FETH_GLOBAL	BIT(0)	/* all on the peer's host see what was written */
#define NHCA_FETH_PERSISTENT	BIT(1)	/* it outlives a loss of power */
#define NHCA_FETH_TYPE_MASK	0x0f
#define NHCA_FETH_RANGE		0	/* those of the RETH */
#define NHCA_FETH_REGION	1	/* all that the key opens */
#define NHCA_FETH_LEVEL_SHIFT	4
#define NHCA_FETH_LEVEL_MASK	0x03

enum nhca_nak {
	NHCA_NAK_PSN_SEQ	= 0,
	NHCA_NAK_INVALID_REQ	= 1,
	NHCA_NAK_REM_ACCESS	= 2,
	NHCA_NAK_REM_OP		= 3,
	NHCA_NAK_INVALID_RD	= 4,
};

/*
 * What nhca ends tell each other in the six bits of BTH byte 4 beside FECN and BECN, which are
 * reserved, outside the ICRC, sent as 0 and ignored by others (9.2, A17.3.3).
 */
#define NHCA_CAP_PRESENT	BIT(0)	/* this is an nhca */
#define NHCA_CAP_CONFIRMED	BIT(1)	/* and has seen, on this connection, that you are */
#define NHCA_CAP_NO_ICRC_OK	BIT(2)	/* and takes packets without an ICRC */
#define NHCA_CAP_NO_ICRC	BIT(3)	/* this one has none; its UDP checksum holds */
#define NHCA_CAP_ACKS	BIT(4)	/* and has, in its place, a PSN that it acknowledges */
#define NHCA_CAP_FOREIGN	BIT(5)	/* never set by us: whoever does, this is not our notice */

/**
 * struct nhca_hdr - a packet's headers, decoded; also what is encoded
 * @info:     the opcode's row
 * @opcode:   BTH
 * @solicited, @migreq: BTH bits
 * @pad:      0-3 bytes of padding before the ICRC
 * @pkey:     P_Key
 * @qpn:      destination QP
 * @psn:      packet sequence number
 * @ackreq:   acknowledge request
 * @fecn, @becn: congestion marks of BTH byte 4
 * @caps:   the six bits beside them, in which nhca ends notice each other
 * @acks:     with NHCA_CAP_ACKS: a PSN; not decoded here, as it lies behind the payload
 * @mark:     without an ICRC and without NHCA_CAP_ACKS: what stands in its place, nhca_qp.mark;
 *            not decoded here, either
 * @srqn:     XRCETH: the peer's SRQ
 * @qkey, @src_qpn: DETH
 * @va, @rkey, @dmalen: RETH; @va, @rkey also AtomicETH
 * @swap_add, @compare: AtomicETH
 * @syndrome, @msn: AETH
 * @orig:     AtomicAckETH
 * @imm:      ImmDt, big endian as in the packet
 * @inv_rkey: IETH
 * @flush_type: FETH: NHCA_FETH_GLOBAL, NHCA_FETH_PERSISTENT, or bits that have no meaning yet
 * @flush_level: FETH: NHCA_FETH_RANGE, NHCA_FETH_REGION, or a number without a meaning
 * @rx:       RXETH
 */
struct nhca_hdr {
	const struct nhca_opinfo *info;
	u8 opcode;
	bool solicited;
	bool migreq;
	u8 pad;
	u16 pkey;
	u32 qpn;
	u32 psn;
	bool ackreq;
	bool fecn;
	bool becn;
	u8 caps;
	u32 acks;
	__le32 mark;
	u32 srqn;
	u32 qkey;
	u32 src_qpn;
	u64 va;
	u32 rkey;
	u32 dmalen;
	u64 swap_add;
	u64 compare;
	u8 syndrome;
	u32 msn;
	u64 orig;
	__be32 imm;
	u32 inv_rkey;
	u8 flush_type;
	u8 flush_level;
	struct nhca_rxeth rx;
};

enum nhca_decode_err {
	NHCA_DECODE_OK = 0,
	NHCA_DECODE_SHORT,	/* fewer bytes than the headers need */
	NHCA_DECODE_OPCODE,	/* unknown opcode */
	NHCA_DECODE_VERSION,	/* transport version, or that of the RXETH, is not 0 */
	NHCA_DECODE_LENGTH,	/* no room for pad and ICRC, payload where none may be, or lengths
				 * in the RXETH that cannot be
				 */
};

/**
 * nhca_hdr_decode - decode the headers of a packet
 * @h: filled in as far as the opcode has fields
 * @p: the first bytes of the UDP payload, linear
 * @avail: how many bytes @p has; NHCA_HDRS_MAX or @len if that is less
 * @len: bytes of the whole UDP payload: headers, payload, pad, ICRC
 *
 * Return: enum nhca_decode_err.  Checks only what concerns the bytes
 * themselves; whether they make sense for a QP is the engines' question.
 */
enum nhca_decode_err nhca_hdr_decode(struct nhca_hdr *h, const u8 *p,
				     unsigned int avail, unsigned int len);

/**
 * nhca_hdr_encode - write the headers of a packet
 * @p: room for NHCA_HDRS_MAX bytes
 * Return: bytes written, == nhca_opinfo(h->opcode)->hdr_len.
 */
unsigned int nhca_hdr_encode(const struct nhca_hdr *h, u8 *p);

/**
 * nhca_hdr_step - make of a packet's headers those of a later one that follows from it
 * @h: the packet: a BTH and perhaps an RXETH
 * @n: how many packets later: as many PSNs, and segments if there is an RXETH
 * @p: its headers, encoded
 */
void nhca_hdr_step(const struct nhca_hdr *h, u32 n, u8 *p);

/* payload bytes of a decoded packet of @len UDP payload bytes */
static inline unsigned int nhca_hdr_payload(const struct nhca_hdr *h, unsigned int len)
{
	return len - h->info->hdr_len - h->pad - NHCA_ICRC_LEN;
}

#endif /* NHCA_WIRE_BTH_H */
