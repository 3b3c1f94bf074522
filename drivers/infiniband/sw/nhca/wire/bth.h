/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Transport headers in a packet (IBTA vol. 1, chapter 9), and their decoded form.  The functions
 * only read and write bytes, and use no skb, socket or lock, so that KUnit and the fuzzer in user
 * space can call the functions without changes.
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
/* bytes of the longest headers of any opcode: of NHCA_RX_THIRD_REQUEST */
#define NHCA_HDRS_MAX		(NHCA_BTH_LEN + NHCA_RXETH_LEN + NHCA_RX_THIRD_LEN)
#define NHCA_GRH_LEN		40
#define NHCA_ROCE_UDP_PORT	4791

#define NHCA_PSN_MASK		0xffffff
#define NHCA_QPN_MASK		0xffffff

/*
 * BTH opcodes: the transport service in the upper three bits, the operation in the lower five
 * (IBTA 9.2.1, table 38).
 */
enum nhca_service {
	NHCA_SVC_RC	= 0x00,
	NHCA_SVC_UC	= 0x20,
	NHCA_SVC_RD	= 0x40,
	NHCA_SVC_UD	= 0x60,
	NHCA_SVC_CNP	= 0x80,
	NHCA_SVC_XRC	= 0xa0,
	NHCA_SVC_MFR	= 0xc0,		/* manufacturer-specific: enum nhca_rx_opcode */
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

/* nhca_opinfo.flags: kind of an opcode, and headers and payload of its packets */
#define NHCA_OPF_REQUEST	BIT(0)	/* packet from a requester to a responder */
#define NHCA_OPF_RESPONSE	BIT(1)	/* packet from a responder to a requester */
#define NHCA_OPF_FIRST		BIT(2)	/* begins a message; ONLY opcodes have FIRST and LAST */
#define NHCA_OPF_LAST		BIT(3)	/* ends a message */
#define NHCA_OPF_SEND		BIT(4)
#define NHCA_OPF_WRITE		BIT(5)
#define NHCA_OPF_READ		BIT(6)	/* READ request */
#define NHCA_OPF_ATOMIC		BIT(7)	/* atomic request */
#define NHCA_OPF_READ_RESP	BIT(8)
#define NHCA_OPF_PAYLOAD	BIT(9)	/* packets may have payload */
#define NHCA_OPF_DETH		BIT(10)
#define NHCA_OPF_RETH		BIT(11)
#define NHCA_OPF_AETH		BIT(12)
#define NHCA_OPF_ATOMIC_ETH	BIT(13)
#define NHCA_OPF_ATOMIC_ACK_ETH	BIT(14)
#define NHCA_OPF_IMMDT		BIT(15)
#define NHCA_OPF_IETH		BIT(16)
#define NHCA_OPF_MIDDLE		BIT(17)	/* neither FIRST nor LAST; payload of one path MTU */
#define NHCA_OPF_RXETH		BIT(18)	/* packet of a channel, see rcxt.h */
#define NHCA_OPF_FLUSH		BIT(19)
#define NHCA_OPF_ATOMIC_WRITE	BIT(20)
#define NHCA_OPF_FETH		BIT(21)
#define NHCA_OPF_XRCETH		BIT(22)

/*
 * Requests that use responder resources: the responder answers each of them with READ responses or
 * an ATOMIC Acknowledge instead of an Acknowledge, and repeats this answer for a duplicate request.
 */
#define NHCA_OPF_RD_ATOMIC	(NHCA_OPF_READ | NHCA_OPF_ATOMIC | NHCA_OPF_FLUSH | \
				 NHCA_OPF_ATOMIC_WRITE)

/**
 * struct nhca_opinfo - one row of the opcode table
 * @name:    name in the specification, for traces
 * @flags:   NHCA_OPF_*; 0 if the opcode is unknown
 * @hdr_len: bytes of BTH and extended headers
 */
struct nhca_opinfo {
	const char *name;
	u32 flags;
	u8 hdr_len;
};

/* the opcode table; nhca_opinfo() reads it */
extern const struct nhca_opinfo nhca_opcodes[256];

/**
 * nhca_opinfo - look up a BTH opcode (IBTA table 38)
 * @opcode: the opcode
 * Context: any.
 * Return: the row of the opcode table; NULL if the opcode is unknown.
 */
static inline const struct nhca_opinfo *nhca_opinfo(u8 opcode)
{
	const struct nhca_opinfo *info = &nhca_opcodes[opcode];

	return info->flags ? info : NULL;
}

/* AETH syndrome (IBTA 9.7.5.2): kind in bits 6:5, value in bits 4:0; bit 7 is 0 */
#define NHCA_AETH_KIND_MASK	0xe0
#define NHCA_AETH_ACK		0x00
#define NHCA_AETH_RNR		0x20
#define NHCA_AETH_NAK		0x60
#define NHCA_AETH_VALUE_MASK	0x1f
#define NHCA_AETH_NO_CREDIT	0x1f	/* value of an ACK: no end-to-end credits */

/* FETH (IBTA A19): placement type of a FLUSH in bits 3:0, selectivity level in bits 5:4 */
#define NHCA_FETH_GLOBAL	BIT(0)	/* written bytes are visible to the peer's whole host */
#define NHCA_FETH_PERSISTENT	BIT(1)	/* written bytes survive a power failure */
#define NHCA_FETH_TYPE_MASK	0x0f
#define NHCA_FETH_RANGE		0	/* the bytes that the RETH names */
#define NHCA_FETH_REGION	1	/* all bytes of the R_Key */
#define NHCA_FETH_LEVEL_SHIFT	4
#define NHCA_FETH_LEVEL_MASK	0x03

/* value of an AETH syndrome NHCA_AETH_NAK: NAK code (IBTA 9.7.5.2) */
enum nhca_nak {
	NHCA_NAK_PSN_SEQ	= 0,
	NHCA_NAK_INVALID_REQ	= 1,
	NHCA_NAK_REM_ACCESS	= 2,
	NHCA_NAK_REM_OP		= 3,
	NHCA_NAK_INVALID_RD	= 4,
};

/*
 * Capability bits: the lower six bits of BTH byte 4, next to FECN and BECN.  IBTA reserves them:
 * other adapters that conform send 0 and ignore them, and the ICRC does not cover them (9.2,
 * A17.3.3).
 */
#define NHCA_CAP_PRESENT	BIT(0)	/* the sender is nhca */
#define NHCA_CAP_CONFIRMED	BIT(1)	/* the sender has received PRESENT on this connection */
#define NHCA_CAP_NO_ICRC_OK	BIT(2)	/* the sender accepts packets without an ICRC */
#define NHCA_CAP_NO_ICRC	BIT(3)	/* the packet has a UDP checksum instead of an ICRC */
/* with NO_ICRC: the packet has a PSN in place of the ICRC, and acknowledges this PSN */
#define NHCA_CAP_ACKS	BIT(4)
/* nhca sends 0; 1: another adapter uses byte 4, and the receiver ignores the capability bits */
#define NHCA_CAP_FOREIGN	BIT(5)

/**
 * struct nhca_hdr - the headers of a packet, decoded or to be encoded
 * @info:     row of the opcode table
 * @opcode:   BTH opcode
 * @solicited: SE of the BTH
 * @migreq:   MigReq of the BTH
 * @pad:      PadCnt: bytes of padding before the ICRC, 0-3
 * @pkey:     P_Key
 * @qpn:      destination QP
 * @psn:      packet sequence number
 * @ackreq:   AckReq
 * @fecn:     forward congestion mark of BTH byte 4
 * @becn:     backward congestion mark of BTH byte 4
 * @caps:     capability bits of BTH byte 4: NHCA_CAP_*
 * @acks:     NHCA_CAP_ACKS: PSN that the packet acknowledges.  nhca_hdr_decode() does not set
 *            @acks, because this PSN is after the payload
 * @mark:     NHCA_CAP_NO_ICRC without NHCA_CAP_ACKS: mark of the sending QP (nhca_qp.mark).
 *            nhca_hdr_decode() does not set @mark, because the mark is after the payload
 * @srqn:     XRCETH: number of the receiver's SRQ
 * @qkey:     DETH: Q_Key
 * @src_qpn:  DETH: QPN of the sender
 * @va:       RETH, AtomicETH: address
 * @rkey:     RETH, AtomicETH: R_Key
 * @dmalen:   RETH: DMA length: bytes of the whole message
 * @swap_add: AtomicETH: value to store (compare and swap) or to add
 * @compare:  AtomicETH: value to compare with
 * @syndrome: AETH: kind of the response, and its value: credits, RNR timer or NAK code
 * @msn:      AETH: message sequence number
 * @orig:     AtomicAckETH: value in memory before the operation
 * @imm:      ImmDt, big endian
 * @inv_rkey: IETH: R_Key to invalidate
 * @flush_type: FETH: NHCA_FETH_GLOBAL, NHCA_FETH_PERSISTENT; a peer may also set reserved bits
 * @flush_level: FETH: NHCA_FETH_RANGE, NHCA_FETH_REGION; a peer may also send a reserved value
 * @rx:       RXETH and the extended header after it
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

/**
 * enum nhca_decode_err - result of nhca_hdr_decode()
 * @NHCA_DECODE_OK:      the headers are valid
 * @NHCA_DECODE_SHORT:   the packet is shorter than its headers
 * @NHCA_DECODE_OPCODE:  unknown opcode
 * @NHCA_DECODE_VERSION: the transport version, or the version of the RXETH, is not 0
 * @NHCA_DECODE_LENGTH:  the packet has no room for pad and ICRC; its length is no multiple of 4; it
 *                       has payload, but its opcode has none; or the RXETH has impossible lengths
 */
enum nhca_decode_err {
	NHCA_DECODE_OK = 0,
	NHCA_DECODE_SHORT,
	NHCA_DECODE_OPCODE,
	NHCA_DECODE_VERSION,
	NHCA_DECODE_LENGTH,
};

/**
 * nhca_hdr_decode - decode the headers of a packet, and check them without the state of a QP
 * @h:     filled in after NHCA_DECODE_OK: the BTH and the extended headers of the opcode; after
 *         NHCA_DECODE_LENGTH, the BTH is filled in
 * @p:     first bytes of the UDP payload, linear
 * @avail: number of bytes at @p: at least the smaller of @len and the length of the opcode's
 *         headers; NHCA_HDRS_MAX is enough for each opcode
 * @len:   bytes of the whole UDP payload: headers, payload, pad, ICRC
 * Context: any.
 * Return: enum nhca_decode_err.
 */
enum nhca_decode_err nhca_hdr_decode(struct nhca_hdr *h, const u8 *p,
				     unsigned int avail, unsigned int len);

/**
 * nhca_hdr_encode - write the headers of a packet
 * @h: the headers, with an opcode of the opcode table
 * @p: room for NHCA_HDRS_MAX bytes
 * Context: any.
 * Return: bytes written: nhca_opinfo(h->opcode)->hdr_len.
 */
unsigned int nhca_hdr_encode(const struct nhca_hdr *h, u8 *p);

/**
 * nhca_hdr_step - change encoded headers to those of the @n-th packet after @h in a batch
 * @h: headers of the first packet: a BTH, and perhaps an RXETH
 * @n: number of packets from @h to the new packet: its PSN is that of @h plus @n; with an RXETH,
 *     its offset and PVO are those of @h plus @n segments
 * @p: encoded headers of any packet of the batch; the function changes these three fields
 * Context: any.
 */
void nhca_hdr_step(const struct nhca_hdr *h, u32 n, u8 *p);

/**
 * nhca_hdr_payload - compute the bytes of payload of a packet
 * @h:   headers, decoded
 * @len: bytes of the UDP payload
 * Context: any.
 * Return: bytes, without pad.
 */
static inline unsigned int nhca_hdr_payload(const struct nhca_hdr *h, unsigned int len)
{
	return len - h->info->hdr_len - h->pad - NHCA_ICRC_LEN;
}

#endif /* NHCA_WIRE_BTH_H */
