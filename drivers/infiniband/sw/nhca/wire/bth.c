// SPDX-License-Identifier: GPL-2.0
/*
 * Opcode table, decoding and encoding of transport headers.
 *
 * The fuzzer compiles this file in user space.  So the code uses nothing of the kernel but
 * fixed-width types, BIT(), unaligned accessors, memcpy() and memset().
 */
#include <linux/string.h>
#include "bth.h"
#include "compat.h"

#define BTH_SOLICITED		0x80	/* byte 1 */
#define BTH_MIGREQ		0x40
#define BTH_PAD_SHIFT		4
#define BTH_PAD_MASK		0x3
#define BTH_VERSION_MASK	0x0f
#define BTH_FECN		0x80	/* byte 4 */
#define BTH_BECN		0x40
#define BTH_CAP_MASK		0x3f
#define BTH_ACKREQ		0x80	/* byte 8 */

/* a congestion notification packet has 16 reserved bytes after the BTH (A17.9.3) */
#define CNP_RESERVED_LEN	16

#define F_REQ	NHCA_OPF_REQUEST
#define F_RESP	NHCA_OPF_RESPONSE
#define F_FIRST	NHCA_OPF_FIRST
#define F_MIDDLE	NHCA_OPF_MIDDLE
#define F_LAST	NHCA_OPF_LAST
#define F_ONLY	(NHCA_OPF_FIRST | NHCA_OPF_LAST)
#define F_SEND	(NHCA_OPF_REQUEST | NHCA_OPF_SEND | NHCA_OPF_PAYLOAD)
#define F_WRITE	(NHCA_OPF_REQUEST | NHCA_OPF_WRITE | NHCA_OPF_PAYLOAD)
#define F_ATOMIC	(NHCA_OPF_REQUEST | NHCA_OPF_ATOMIC | NHCA_OPF_ATOMIC_ETH)
#define F_READ_RESP (NHCA_OPF_RESPONSE | NHCA_OPF_READ_RESP | NHCA_OPF_PAYLOAD)
#define F_DETH	NHCA_OPF_DETH
#define F_RETH	NHCA_OPF_RETH
#define F_AETH	NHCA_OPF_AETH
#define F_IMMDT	NHCA_OPF_IMMDT
#define F_IETH	NHCA_OPF_IETH
#define F_FETH	NHCA_OPF_FETH

#define ROW(svc, op, text, what, extended) \
	[NHCA_SVC_##svc | NHCA_OP_##op] = { \
		.name = #svc " " text, \
		.flags = what, \
		.hdr_len = NHCA_BTH_LEN + (extended), \
	}

/* an XRC request has the headers of the RC request, and an XRCETH that names the SRQ */
#define XRC_ROW(op, text, what, extended) \
	ROW(XRC, op, text, (what) | NHCA_OPF_XRCETH, NHCA_XRCETH_LEN + (extended))

#define RX_ROW(kind, text, what, extended) \
	[NHCA_RX_##kind] = { \
		.name = "rCxt " text, \
		.flags = NHCA_OPF_RXETH | F_ONLY | (what), \
		.hdr_len = NHCA_BTH_LEN + NHCA_RXETH_LEN + (extended), \
	}

/*
 * The opcodes of RC, UC and UD in IBTA table 38, of A14 (XRC), A17 (CNP) and A19 (FLUSH, ATOMIC
 * WRITE), and of channels.  A READ request, an atomic, a FLUSH and an ATOMIC WRITE are each a
 * message of one packet, so they have FIRST and LAST.
 */
const struct nhca_opinfo nhca_opcodes[256] = {
	ROW(RC, SEND_FIRST, "SEND First", F_SEND | F_FIRST, 0),
	ROW(RC, SEND_MIDDLE, "SEND Middle", F_SEND | F_MIDDLE, 0),
	ROW(RC, SEND_LAST, "SEND Last", F_SEND | F_LAST, 0),
	ROW(RC, SEND_LAST_IMM, "SEND Last with Immediate",
	    F_SEND | F_LAST | F_IMMDT, NHCA_IMMDT_LEN),
	ROW(RC, SEND_ONLY, "SEND Only", F_SEND | F_ONLY, 0),
	ROW(RC, SEND_ONLY_IMM, "SEND Only with Immediate",
	    F_SEND | F_ONLY | F_IMMDT, NHCA_IMMDT_LEN),
	ROW(RC, WRITE_FIRST, "RDMA WRITE First",
	    F_WRITE | F_FIRST | F_RETH, NHCA_RETH_LEN),
	ROW(RC, WRITE_MIDDLE, "RDMA WRITE Middle", F_WRITE | F_MIDDLE, 0),
	ROW(RC, WRITE_LAST, "RDMA WRITE Last", F_WRITE | F_LAST, 0),
	ROW(RC, WRITE_LAST_IMM, "RDMA WRITE Last with Immediate",
	    F_WRITE | F_LAST | F_IMMDT, NHCA_IMMDT_LEN),
	ROW(RC, WRITE_ONLY, "RDMA WRITE Only",
	    F_WRITE | F_ONLY | F_RETH, NHCA_RETH_LEN),
	ROW(RC, WRITE_ONLY_IMM, "RDMA WRITE Only with Immediate",
	    F_WRITE | F_ONLY | F_RETH | F_IMMDT, NHCA_RETH_LEN + NHCA_IMMDT_LEN),
	ROW(RC, READ_REQUEST, "RDMA READ Request",
	    F_REQ | NHCA_OPF_READ | F_ONLY | F_RETH, NHCA_RETH_LEN),
	ROW(RC, READ_RESP_FIRST, "RDMA READ response First",
	    F_READ_RESP | F_FIRST | F_AETH, NHCA_AETH_LEN),
	ROW(RC, READ_RESP_MIDDLE, "RDMA READ response Middle",
	    F_READ_RESP | F_MIDDLE, 0),
	ROW(RC, READ_RESP_LAST, "RDMA READ response Last",
	    F_READ_RESP | F_LAST | F_AETH, NHCA_AETH_LEN),
	ROW(RC, READ_RESP_ONLY, "RDMA READ response Only",
	    F_READ_RESP | F_ONLY | F_AETH, NHCA_AETH_LEN),
	ROW(RC, ACK, "Acknowledge", F_RESP | F_AETH, NHCA_AETH_LEN),
	ROW(RC, ATOMIC_ACK, "ATOMIC Acknowledge",
	    F_RESP | F_AETH | NHCA_OPF_ATOMIC_ACK_ETH,
	    NHCA_AETH_LEN + NHCA_ATOMIC_ACK_ETH_LEN),
	ROW(RC, CMP_SWAP, "CmpSwap", F_ATOMIC | F_ONLY, NHCA_ATOMIC_ETH_LEN),
	ROW(RC, FETCH_ADD, "FetchAdd", F_ATOMIC | F_ONLY, NHCA_ATOMIC_ETH_LEN),
	ROW(RC, SEND_LAST_INV, "SEND Last with Invalidate",
	    F_SEND | F_LAST | F_IETH, NHCA_IETH_LEN),
	ROW(RC, SEND_ONLY_INV, "SEND Only with Invalidate",
	    F_SEND | F_ONLY | F_IETH, NHCA_IETH_LEN),
	ROW(RC, FLUSH, "FLUSH", F_REQ | NHCA_OPF_FLUSH | F_ONLY | F_FETH | F_RETH,
	    NHCA_FETH_LEN + NHCA_RETH_LEN),
	ROW(RC, ATOMIC_WRITE, "ATOMIC WRITE",
	    F_REQ | NHCA_OPF_ATOMIC_WRITE | NHCA_OPF_PAYLOAD | F_ONLY | F_RETH, NHCA_RETH_LEN),

	ROW(UC, SEND_FIRST, "SEND First", F_SEND | F_FIRST, 0),
	ROW(UC, SEND_MIDDLE, "SEND Middle", F_SEND | F_MIDDLE, 0),
	ROW(UC, SEND_LAST, "SEND Last", F_SEND | F_LAST, 0),
	ROW(UC, SEND_LAST_IMM, "SEND Last with Immediate",
	    F_SEND | F_LAST | F_IMMDT, NHCA_IMMDT_LEN),
	ROW(UC, SEND_ONLY, "SEND Only", F_SEND | F_ONLY, 0),
	ROW(UC, SEND_ONLY_IMM, "SEND Only with Immediate",
	    F_SEND | F_ONLY | F_IMMDT, NHCA_IMMDT_LEN),
	ROW(UC, WRITE_FIRST, "RDMA WRITE First",
	    F_WRITE | F_FIRST | F_RETH, NHCA_RETH_LEN),
	ROW(UC, WRITE_MIDDLE, "RDMA WRITE Middle", F_WRITE | F_MIDDLE, 0),
	ROW(UC, WRITE_LAST, "RDMA WRITE Last", F_WRITE | F_LAST, 0),
	ROW(UC, WRITE_LAST_IMM, "RDMA WRITE Last with Immediate",
	    F_WRITE | F_LAST | F_IMMDT, NHCA_IMMDT_LEN),
	ROW(UC, WRITE_ONLY, "RDMA WRITE Only",
	    F_WRITE | F_ONLY | F_RETH, NHCA_RETH_LEN),
	ROW(UC, WRITE_ONLY_IMM, "RDMA WRITE Only with Immediate",
	    F_WRITE | F_ONLY | F_RETH | F_IMMDT, NHCA_RETH_LEN + NHCA_IMMDT_LEN),

	ROW(UD, SEND_ONLY, "SEND Only", F_SEND | F_ONLY | F_DETH, NHCA_DETH_LEN),
	ROW(UD, SEND_ONLY_IMM, "SEND Only with Immediate",
	    F_SEND | F_ONLY | F_DETH | F_IMMDT, NHCA_DETH_LEN + NHCA_IMMDT_LEN),

	XRC_ROW(SEND_FIRST, "SEND First", F_SEND | F_FIRST, 0),
	XRC_ROW(SEND_MIDDLE, "SEND Middle", F_SEND | F_MIDDLE, 0),
	XRC_ROW(SEND_LAST, "SEND Last", F_SEND | F_LAST, 0),
	XRC_ROW(SEND_LAST_IMM, "SEND Last with Immediate",
		F_SEND | F_LAST | F_IMMDT, NHCA_IMMDT_LEN),
	XRC_ROW(SEND_ONLY, "SEND Only", F_SEND | F_ONLY, 0),
	XRC_ROW(SEND_ONLY_IMM, "SEND Only with Immediate",
		F_SEND | F_ONLY | F_IMMDT, NHCA_IMMDT_LEN),
	XRC_ROW(WRITE_FIRST, "RDMA WRITE First", F_WRITE | F_FIRST | F_RETH, NHCA_RETH_LEN),
	XRC_ROW(WRITE_MIDDLE, "RDMA WRITE Middle", F_WRITE | F_MIDDLE, 0),
	XRC_ROW(WRITE_LAST, "RDMA WRITE Last", F_WRITE | F_LAST, 0),
	XRC_ROW(WRITE_LAST_IMM, "RDMA WRITE Last with Immediate",
		F_WRITE | F_LAST | F_IMMDT, NHCA_IMMDT_LEN),
	XRC_ROW(WRITE_ONLY, "RDMA WRITE Only", F_WRITE | F_ONLY | F_RETH, NHCA_RETH_LEN),
	XRC_ROW(WRITE_ONLY_IMM, "RDMA WRITE Only with Immediate",
		F_WRITE | F_ONLY | F_RETH | F_IMMDT, NHCA_RETH_LEN + NHCA_IMMDT_LEN),
	XRC_ROW(READ_REQUEST, "RDMA READ Request",
		F_REQ | NHCA_OPF_READ | F_ONLY | F_RETH, NHCA_RETH_LEN),
	XRC_ROW(CMP_SWAP, "CmpSwap", F_ATOMIC | F_ONLY, NHCA_ATOMIC_ETH_LEN),
	XRC_ROW(FETCH_ADD, "FetchAdd", F_ATOMIC | F_ONLY, NHCA_ATOMIC_ETH_LEN),
	XRC_ROW(SEND_LAST_INV, "SEND Last with Invalidate",
		F_SEND | F_LAST | F_IETH, NHCA_IETH_LEN),
	XRC_ROW(SEND_ONLY_INV, "SEND Only with Invalidate",
		F_SEND | F_ONLY | F_IETH, NHCA_IETH_LEN),
	ROW(XRC, READ_RESP_FIRST, "RDMA READ response First",
	    F_READ_RESP | F_FIRST | F_AETH, NHCA_AETH_LEN),
	ROW(XRC, READ_RESP_MIDDLE, "RDMA READ response Middle",
	    F_READ_RESP | F_MIDDLE, 0),
	ROW(XRC, READ_RESP_LAST, "RDMA READ response Last",
	    F_READ_RESP | F_LAST | F_AETH, NHCA_AETH_LEN),
	ROW(XRC, READ_RESP_ONLY, "RDMA READ response Only",
	    F_READ_RESP | F_ONLY | F_AETH, NHCA_AETH_LEN),
	ROW(XRC, ACK, "Acknowledge", F_RESP | F_AETH, NHCA_AETH_LEN),
	ROW(XRC, ATOMIC_ACK, "ATOMIC Acknowledge",
	    F_RESP | F_AETH | NHCA_OPF_ATOMIC_ACK_ETH,
	    NHCA_AETH_LEN + NHCA_ATOMIC_ACK_ETH_LEN),

	RX_ROW(PACKET, "Packet", NHCA_OPF_PAYLOAD, 0),
	RX_ROW(WRITE, "RDMA WRITE", NHCA_OPF_PAYLOAD, 0),
	RX_ROW(READ_REQUEST, "RDMA READ Request", 0, NHCA_RX_READ_LEN),
	RX_ROW(READ_DATA, "RDMA READ data", NHCA_OPF_PAYLOAD, 0),
	RX_ROW(NOTICE, "Notice", 0, 0),
	RX_ROW(PROBE, "Probe", 0, NHCA_RX_TOKEN_LEN),
	RX_ROW(STATUS, "Status", NHCA_OPF_PAYLOAD, NHCA_RX_STATUS_LEN),
	RX_ROW(FENCE, "Fence", 0, NHCA_RX_TOKEN_LEN),
	RX_ROW(THIRD_REQUEST, "Third-party Request", 0, NHCA_RX_THIRD_LEN),
	RX_ROW(THIRD_WRITE, "Third-party WRITE", NHCA_OPF_PAYLOAD, NHCA_RX_GID_LEN),
	RX_ROW(ACCUMULATE, "Accumulate", NHCA_OPF_PAYLOAD, NHCA_RX_OP_LEN),
	RX_ROW(HALF_WRITE, "Half-receive WRITE", NHCA_OPF_PAYLOAD, 0),
	RX_ROW(HALF_REQUEST, "Half-send READ Request", 0, NHCA_RX_READ_LEN),
	RX_ROW(FRAMES_REQUEST, "Half-receive READ Request", 0, NHCA_RX_FRAMES_LEN),
	RX_ROW(FRAMES_DATA, "Half-receive READ data", NHCA_OPF_PAYLOAD, 0),
	RX_ROW(READ_CHALLENGE, "RDMA READ challenge", 0, NHCA_RX_READ_LEN),
	RX_ROW(PROBE_CHALLENGE, "Probe challenge", 0, NHCA_RX_TOKEN_LEN),
	RX_ROW(THIRD_CHALLENGE, "Third-party challenge", 0, NHCA_RX_THIRD_LEN),
	RX_ROW(FRAMES_CHALLENGE, "Half-receive READ challenge", 0, NHCA_RX_FRAMES_LEN),

	[NHCA_OPCODE_CNP] = {
		.name = "CNP",
		.flags = F_ONLY,
		.hdr_len = NHCA_BTH_LEN + CNP_RESERVED_LEN,
	},
};

enum nhca_decode_err nhca_hdr_decode(struct nhca_hdr *h, const u8 *p,
				     unsigned int avail, unsigned int len)
{
	u8 copy[NHCA_HDRS_MAX] __uninitialized;
	const struct nhca_opinfo *info;
	unsigned int behind;
	u32 flags;

	if (avail > len)
		avail = len;
	if (avail > sizeof(copy))
		avail = sizeof(copy);
	if (avail < NHCA_BTH_LEN)
		return NHCA_DECODE_SHORT;
	/*
	 * Decode a copy: a sender on this host may still write to the pages of its packets, so the
	 * bytes could change after they were checked.
	 */
	memcpy(copy, p, avail);
	p = copy;
	/* check the version first, because another version may have other opcodes */
	if (p[1] & BTH_VERSION_MASK)
		return NHCA_DECODE_VERSION;
	info = nhca_opinfo(p[0]);
	if (!info)
		return NHCA_DECODE_OPCODE;
	if (avail < info->hdr_len)
		return NHCA_DECODE_SHORT;

	h->info = info;
	h->opcode = p[0];
	h->solicited = p[1] & BTH_SOLICITED;
	h->migreq = p[1] & BTH_MIGREQ;
	h->pad = p[1] >> BTH_PAD_SHIFT & BTH_PAD_MASK;
	h->pkey = get_unaligned_be16(p + 2);
	h->fecn = p[4] & BTH_FECN;
	h->becn = p[4] & BTH_BECN;
	h->caps = p[4] & BTH_CAP_MASK;
	h->qpn = get_unaligned_be24(p + 5);
	h->ackreq = p[8] & BTH_ACKREQ;
	h->psn = get_unaligned_be24(p + 9);

	behind = len - info->hdr_len;
	if (behind < h->pad + NHCA_ICRC_LEN)
		return NHCA_DECODE_LENGTH;
	/* the lengths of the headers, of the ICRC, and of payload plus pad are multiples of 4 */
	if (behind & 3)
		return NHCA_DECODE_LENGTH;
	flags = info->flags;
	if (!(flags & NHCA_OPF_PAYLOAD) && behind != NHCA_ICRC_LEN)
		return NHCA_DECODE_LENGTH;

	p += NHCA_BTH_LEN;
	if (flags & NHCA_OPF_RXETH) {
		nhca_rxeth_decode(&h->rx, h->opcode, p);
		if (h->rx.version != NHCA_RXETH_VERSION)
			return NHCA_DECODE_VERSION;
		return nhca_rxeth_fits(&h->rx, h->opcode, nhca_hdr_payload(h, len)) ?
		       NHCA_DECODE_OK : NHCA_DECODE_LENGTH;
	}
	if (flags & NHCA_OPF_XRCETH) {
		h->srqn = get_unaligned_be24(p + 1);
		p += NHCA_XRCETH_LEN;
	}
	if (flags & NHCA_OPF_DETH) {
		h->qkey = get_unaligned_be32(p);
		h->src_qpn = get_unaligned_be24(p + 5);
		p += NHCA_DETH_LEN;
	}
	if (flags & NHCA_OPF_FETH) {
		h->flush_type = p[3] & NHCA_FETH_TYPE_MASK;
		h->flush_level = p[3] >> NHCA_FETH_LEVEL_SHIFT & NHCA_FETH_LEVEL_MASK;
		p += NHCA_FETH_LEN;
	}
	if (flags & NHCA_OPF_RETH) {
		h->va = get_unaligned_be64(p);
		h->rkey = get_unaligned_be32(p + 8);
		h->dmalen = get_unaligned_be32(p + 12);
		p += NHCA_RETH_LEN;
	}
	if (flags & NHCA_OPF_ATOMIC_ETH) {
		h->va = get_unaligned_be64(p);
		h->rkey = get_unaligned_be32(p + 8);
		h->swap_add = get_unaligned_be64(p + 12);
		h->compare = get_unaligned_be64(p + 20);
		p += NHCA_ATOMIC_ETH_LEN;
	}
	if (flags & NHCA_OPF_AETH) {
		h->syndrome = p[0];
		h->msn = get_unaligned_be24(p + 1);
		p += NHCA_AETH_LEN;
	}
	if (flags & NHCA_OPF_ATOMIC_ACK_ETH) {
		h->orig = get_unaligned_be64(p);
		p += NHCA_ATOMIC_ACK_ETH_LEN;
	}
	if (flags & NHCA_OPF_IMMDT) {
		memcpy(&h->imm, p, NHCA_IMMDT_LEN);
		p += NHCA_IMMDT_LEN;
	}
	if (flags & NHCA_OPF_IETH)
		h->inv_rkey = get_unaligned_be32(p);
	return NHCA_DECODE_OK;
}

unsigned int nhca_hdr_encode(const struct nhca_hdr *h, u8 *p)
{
	const struct nhca_opinfo *info = nhca_opinfo(h->opcode);
	u32 flags = info->flags;

	p[0] = h->opcode;
	p[1] = (h->solicited ? BTH_SOLICITED : 0) |
	       (h->migreq ? BTH_MIGREQ : 0) |
	       (h->pad & BTH_PAD_MASK) << BTH_PAD_SHIFT;
	put_unaligned_be16(h->pkey, p + 2);
	p[4] = (h->fecn ? BTH_FECN : 0) | (h->becn ? BTH_BECN : 0) |
	       (h->caps & BTH_CAP_MASK);
	put_unaligned_be24(h->qpn, p + 5);
	p[8] = h->ackreq ? BTH_ACKREQ : 0;
	put_unaligned_be24(h->psn, p + 9);

	p += NHCA_BTH_LEN;
	if (flags & NHCA_OPF_RXETH)
		return NHCA_BTH_LEN + nhca_rxeth_encode(&h->rx, h->opcode, p);
	if (flags & NHCA_OPF_XRCETH) {
		p[0] = 0;
		put_unaligned_be24(h->srqn, p + 1);
		p += NHCA_XRCETH_LEN;
	}
	if (flags & NHCA_OPF_DETH) {
		put_unaligned_be32(h->qkey, p);
		p[4] = 0;
		put_unaligned_be24(h->src_qpn, p + 5);
		p += NHCA_DETH_LEN;
	}
	if (flags & NHCA_OPF_FETH) {
		put_unaligned_be32((h->flush_level & NHCA_FETH_LEVEL_MASK) <<
				   NHCA_FETH_LEVEL_SHIFT |
				   (h->flush_type & NHCA_FETH_TYPE_MASK), p);
		p += NHCA_FETH_LEN;
	}
	if (flags & NHCA_OPF_RETH) {
		put_unaligned_be64(h->va, p);
		put_unaligned_be32(h->rkey, p + 8);
		put_unaligned_be32(h->dmalen, p + 12);
		p += NHCA_RETH_LEN;
	}
	if (flags & NHCA_OPF_ATOMIC_ETH) {
		put_unaligned_be64(h->va, p);
		put_unaligned_be32(h->rkey, p + 8);
		put_unaligned_be64(h->swap_add, p + 12);
		put_unaligned_be64(h->compare, p + 20);
		p += NHCA_ATOMIC_ETH_LEN;
	}
	if (flags & NHCA_OPF_AETH) {
		p[0] = h->syndrome;
		put_unaligned_be24(h->msn, p + 1);
		p += NHCA_AETH_LEN;
	}
	if (flags & NHCA_OPF_ATOMIC_ACK_ETH) {
		put_unaligned_be64(h->orig, p);
		p += NHCA_ATOMIC_ACK_ETH_LEN;
	}
	if (flags & NHCA_OPF_IMMDT) {
		memcpy(p, &h->imm, NHCA_IMMDT_LEN);
		p += NHCA_IMMDT_LEN;
	}
	if (flags & NHCA_OPF_IETH)
		put_unaligned_be32(h->inv_rkey, p);
	if (h->opcode == NHCA_OPCODE_CNP)
		memset(p, 0, CNP_RESERVED_LEN);
	return info->hdr_len;
}

void nhca_hdr_step(const struct nhca_hdr *h, u32 n, u8 *p)
{
	put_unaligned_be24(h->psn + n, p + 9);
	if (h->info->flags & NHCA_OPF_RXETH)
		nhca_rxeth_step(&h->rx, n, p + NHCA_BTH_LEN);
}
