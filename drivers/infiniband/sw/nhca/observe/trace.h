/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tracepoints. Documentation/observe.rst describes them and their fields.
 *
 * One event may report several packets of the same opcode and length, whose PSNs count up. The text
 * of each event begins with "dev", the number of the device, and "qpn", the number of the queue
 * pair or channel.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM nhca

#if !defined(NHCA_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define NHCA_TRACE_H

#include <linux/ktime.h>
#include <linux/tracepoint.h>
#include <rdma/ib_cm.h>
#include <rdma/ib_verbs.h>
#include <rdma/nhca-abi.h>
#include <rdma/rdma_cm.h>
#include <trace/misc/rdma.h>

#include "../wire/bth.h"
#include "../wire/rcxt.h"
#include "counters.h"
#include "rule.h"

/* value for a receive request, in addition to the values of enum nhca_wr_opcode */
#define NHCA_TRACE_RECV	0xff

/*
 * In the format files of the events, put the numbers of these enums in place of their names, for
 * programs that parse the files.
 */
TRACE_DEFINE_ENUM(NHCA_OP_SEND_FIRST);
TRACE_DEFINE_ENUM(NHCA_OP_SEND_MIDDLE);
TRACE_DEFINE_ENUM(NHCA_OP_SEND_LAST);
TRACE_DEFINE_ENUM(NHCA_OP_SEND_LAST_IMM);
TRACE_DEFINE_ENUM(NHCA_OP_SEND_ONLY);
TRACE_DEFINE_ENUM(NHCA_OP_SEND_ONLY_IMM);
TRACE_DEFINE_ENUM(NHCA_OP_WRITE_FIRST);
TRACE_DEFINE_ENUM(NHCA_OP_WRITE_MIDDLE);
TRACE_DEFINE_ENUM(NHCA_OP_WRITE_LAST);
TRACE_DEFINE_ENUM(NHCA_OP_WRITE_LAST_IMM);
TRACE_DEFINE_ENUM(NHCA_OP_WRITE_ONLY);
TRACE_DEFINE_ENUM(NHCA_OP_WRITE_ONLY_IMM);
TRACE_DEFINE_ENUM(NHCA_OP_READ_REQUEST);
TRACE_DEFINE_ENUM(NHCA_OP_READ_RESP_FIRST);
TRACE_DEFINE_ENUM(NHCA_OP_READ_RESP_MIDDLE);
TRACE_DEFINE_ENUM(NHCA_OP_READ_RESP_LAST);
TRACE_DEFINE_ENUM(NHCA_OP_READ_RESP_ONLY);
TRACE_DEFINE_ENUM(NHCA_OP_ACK);
TRACE_DEFINE_ENUM(NHCA_OP_ATOMIC_ACK);
TRACE_DEFINE_ENUM(NHCA_OP_CMP_SWAP);
TRACE_DEFINE_ENUM(NHCA_OP_FETCH_ADD);
TRACE_DEFINE_ENUM(NHCA_OP_SEND_LAST_INV);
TRACE_DEFINE_ENUM(NHCA_OP_SEND_ONLY_INV);
TRACE_DEFINE_ENUM(NHCA_OP_FLUSH);
TRACE_DEFINE_ENUM(NHCA_OP_ATOMIC_WRITE);
TRACE_DEFINE_ENUM(NHCA_RX_PACKET);
TRACE_DEFINE_ENUM(NHCA_RX_WRITE);
TRACE_DEFINE_ENUM(NHCA_RX_READ_REQUEST);
TRACE_DEFINE_ENUM(NHCA_RX_READ_DATA);
TRACE_DEFINE_ENUM(NHCA_RX_NOTICE);
TRACE_DEFINE_ENUM(NHCA_RX_PROBE);
TRACE_DEFINE_ENUM(NHCA_RX_STATUS);
TRACE_DEFINE_ENUM(NHCA_RX_FENCE);
TRACE_DEFINE_ENUM(NHCA_RX_READ_CHALLENGE);
TRACE_DEFINE_ENUM(NHCA_RX_PROBE_CHALLENGE);
TRACE_DEFINE_ENUM(NHCA_RX_THIRD_REQUEST);
TRACE_DEFINE_ENUM(NHCA_RX_THIRD_WRITE);
TRACE_DEFINE_ENUM(NHCA_RX_THIRD_CHALLENGE);
TRACE_DEFINE_ENUM(NHCA_RX_ACCUMULATE);
TRACE_DEFINE_ENUM(NHCA_RX_HALF_WRITE);
TRACE_DEFINE_ENUM(NHCA_RX_HALF_REQUEST);
TRACE_DEFINE_ENUM(NHCA_RX_FRAMES_REQUEST);
TRACE_DEFINE_ENUM(NHCA_RX_FRAMES_DATA);
TRACE_DEFINE_ENUM(NHCA_RX_FRAMES_CHALLENGE);
TRACE_DEFINE_ENUM(NHCA_OP_MASK);
TRACE_DEFINE_ENUM(NHCA_SVC_RC);
TRACE_DEFINE_ENUM(NHCA_SVC_UC);
TRACE_DEFINE_ENUM(NHCA_SVC_UD);
TRACE_DEFINE_ENUM(NHCA_SVC_CNP);
TRACE_DEFINE_ENUM(NHCA_SVC_XRC);
TRACE_DEFINE_ENUM(NHCA_SVC_MFR);
TRACE_DEFINE_ENUM(NHCA_NAK_PSN_SEQ);
TRACE_DEFINE_ENUM(NHCA_NAK_INVALID_REQ);
TRACE_DEFINE_ENUM(NHCA_NAK_REM_ACCESS);
TRACE_DEFINE_ENUM(NHCA_NAK_REM_OP);
TRACE_DEFINE_ENUM(NHCA_WR_RDMA_WRITE);
TRACE_DEFINE_ENUM(NHCA_WR_RDMA_WRITE_WITH_IMM);
TRACE_DEFINE_ENUM(NHCA_WR_SEND);
TRACE_DEFINE_ENUM(NHCA_WR_SEND_WITH_IMM);
TRACE_DEFINE_ENUM(NHCA_WR_RDMA_READ);
TRACE_DEFINE_ENUM(NHCA_WR_ATOMIC_CMP_AND_SWP);
TRACE_DEFINE_ENUM(NHCA_WR_ATOMIC_FETCH_AND_ADD);
TRACE_DEFINE_ENUM(NHCA_WR_LOCAL_INV);
TRACE_DEFINE_ENUM(NHCA_WR_BIND_MW);
TRACE_DEFINE_ENUM(NHCA_WR_SEND_WITH_INV);
TRACE_DEFINE_ENUM(NHCA_WR_FLUSH);
TRACE_DEFINE_ENUM(NHCA_WR_ATOMIC_WRITE);
TRACE_DEFINE_ENUM(NHCA_WR_REG_MR);
TRACE_DEFINE_ENUM(NHCA_WR_CH_PACKET);
TRACE_DEFINE_ENUM(NHCA_WR_CH_WRITE);
TRACE_DEFINE_ENUM(NHCA_WR_CH_READ);
TRACE_DEFINE_ENUM(NHCA_WR_CH_CANCEL);
TRACE_DEFINE_ENUM(NHCA_WR_CH_PROBE);
TRACE_DEFINE_ENUM(NHCA_WR_CH_FENCE);
TRACE_DEFINE_ENUM(NHCA_WR_CH_MOVE);
TRACE_DEFINE_ENUM(NHCA_WR_CH_PART);
TRACE_DEFINE_ENUM(NHCA_WR_CH_ACCUMULATE);
TRACE_DEFINE_ENUM(NHCA_CNT_RX_TOO_SHORT);
TRACE_DEFINE_ENUM(NHCA_CNT_RX_BAD_OPCODE);
TRACE_DEFINE_ENUM(NHCA_CNT_RX_BAD_VERSION);
TRACE_DEFINE_ENUM(NHCA_CNT_RX_BAD_LENGTH);
TRACE_DEFINE_ENUM(NHCA_CNT_RX_BAD_ICRC);
TRACE_DEFINE_ENUM(NHCA_CNT_RX_NO_QP);
TRACE_DEFINE_ENUM(NHCA_CNT_RX_BAD_STATE);
TRACE_DEFINE_ENUM(NHCA_CNT_RX_BAD_ADDR);
TRACE_DEFINE_ENUM(NHCA_CNT_RX_BAD_PKEY);
TRACE_DEFINE_ENUM(NHCA_CNT_RX_BAD_QKEY);
TRACE_DEFINE_ENUM(NHCA_CNT_IMPLIED_NAK);
TRACE_DEFINE_ENUM(NHCA_CNT_RCVD_RNR);
TRACE_DEFINE_ENUM(NHCA_CNT_RCVD_SEQ_NAK);
TRACE_DEFINE_ENUM(NHCA_CNT_PROBE);
TRACE_DEFINE_ENUM(NHCA_CNT_TIMEOUT);
TRACE_DEFINE_ENUM(NHCA_CNT_PAGE_RETRY);
TRACE_DEFINE_ENUM(NHCA_AT_SEND);
TRACE_DEFINE_ENUM(NHCA_AT_RECEIVE);
TRACE_DEFINE_ENUM(NHCA_AT_REQUEST);
TRACE_DEFINE_ENUM(NHCA_AT_BUFFER);
TRACE_DEFINE_ENUM(NHCA_AT_CQE);
TRACE_DEFINE_ENUM(NHCA_AT_MR);

/*
 * Names of a BTH opcode's service (bits 7 to 5) and operation (bits 4 to 0). For CNPs and packets
 * of channels, the argument of nhca_show_op() is the whole opcode. A service or operation without a
 * name here is shown as a number.
 */
#define nhca_show_service(svc)			\
	__print_symbolic(svc,			\
		{ NHCA_SVC_RC, "RC" },		\
		{ NHCA_SVC_UC, "UC" },		\
		{ NHCA_SVC_UD, "UD" },		\
		{ NHCA_SVC_CNP, "CNP" },	\
		{ NHCA_SVC_XRC, "XRC" },	\
		{ NHCA_SVC_MFR, "channel" })

#define nhca_show_op(op)						\
	__print_symbolic(op,						\
		{ NHCA_OP_SEND_FIRST, "SEND_FIRST" },			\
		{ NHCA_OP_SEND_MIDDLE, "SEND_MIDDLE" },			\
		{ NHCA_OP_SEND_LAST, "SEND_LAST" },			\
		{ NHCA_OP_SEND_LAST_IMM, "SEND_LAST_IMM" },		\
		{ NHCA_OP_SEND_ONLY, "SEND_ONLY" },			\
		{ NHCA_OP_SEND_ONLY_IMM, "SEND_ONLY_IMM" },		\
		{ NHCA_OP_WRITE_FIRST, "WRITE_FIRST" },			\
		{ NHCA_OP_WRITE_MIDDLE, "WRITE_MIDDLE" },		\
		{ NHCA_OP_WRITE_LAST, "WRITE_LAST" },			\
		{ NHCA_OP_WRITE_LAST_IMM, "WRITE_LAST_IMM" },		\
		{ NHCA_OP_WRITE_ONLY, "WRITE_ONLY" },			\
		{ NHCA_OP_WRITE_ONLY_IMM, "WRITE_ONLY_IMM" },		\
		{ NHCA_OP_READ_REQUEST, "READ_REQUEST" },		\
		{ NHCA_OP_READ_RESP_FIRST, "READ_RESP_FIRST" },		\
		{ NHCA_OP_READ_RESP_MIDDLE, "READ_RESP_MIDDLE" },	\
		{ NHCA_OP_READ_RESP_LAST, "READ_RESP_LAST" },		\
		{ NHCA_OP_READ_RESP_ONLY, "READ_RESP_ONLY" },		\
		{ NHCA_OP_ACK, "ACK" },					\
		{ NHCA_OP_ATOMIC_ACK, "ATOMIC_ACK" },			\
		{ NHCA_OP_CMP_SWAP, "CMP_SWAP" },			\
		{ NHCA_OP_FETCH_ADD, "FETCH_ADD" },			\
		{ NHCA_OP_SEND_LAST_INV, "SEND_LAST_INV" },		\
		{ NHCA_OP_SEND_ONLY_INV, "SEND_ONLY_INV" },		\
		{ NHCA_OP_FLUSH, "FLUSH" },				\
		{ NHCA_OP_ATOMIC_WRITE, "ATOMIC_WRITE" },		\
		{ NHCA_RX_PACKET, "PACKET" },				\
		{ NHCA_RX_WRITE, "WRITE" },				\
		{ NHCA_RX_READ_REQUEST, "READ_REQUEST" },		\
		{ NHCA_RX_READ_DATA, "READ_DATA" },			\
		{ NHCA_RX_NOTICE, "NOTICE" },				\
		{ NHCA_RX_PROBE, "PROBE" },				\
		{ NHCA_RX_STATUS, "STATUS" },				\
		{ NHCA_RX_FENCE, "FENCE" },				\
		{ NHCA_RX_READ_CHALLENGE, "READ_CHALLENGE" },		\
		{ NHCA_RX_PROBE_CHALLENGE, "PROBE_CHALLENGE" },		\
		{ NHCA_RX_THIRD_REQUEST, "THIRD_REQUEST" },		\
		{ NHCA_RX_THIRD_WRITE, "THIRD_WRITE" },			\
		{ NHCA_RX_THIRD_CHALLENGE, "THIRD_CHALLENGE" },		\
		{ NHCA_RX_ACCUMULATE, "ACCUMULATE" },			\
		{ NHCA_RX_HALF_WRITE, "HALF_WRITE" },			\
		{ NHCA_RX_HALF_REQUEST, "HALF_REQUEST" },		\
		{ NHCA_RX_FRAMES_REQUEST, "FRAMES_REQUEST" },		\
		{ NHCA_RX_FRAMES_DATA, "FRAMES_DATA" },			\
		{ NHCA_RX_FRAMES_CHALLENGE, "FRAMES_CHALLENGE" },	\
		{ NHCA_OPCODE_CNP, "CNP" })

#define nhca_show_wr(wr)							\
	__print_symbolic(wr,							\
		{ NHCA_WR_RDMA_WRITE, "RDMA_WRITE" },				\
		{ NHCA_WR_RDMA_WRITE_WITH_IMM, "RDMA_WRITE_WITH_IMM" },		\
		{ NHCA_WR_SEND, "SEND" },					\
		{ NHCA_WR_SEND_WITH_IMM, "SEND_WITH_IMM" },			\
		{ NHCA_WR_RDMA_READ, "RDMA_READ" },				\
		{ NHCA_WR_ATOMIC_CMP_AND_SWP, "ATOMIC_CMP_AND_SWP" },		\
		{ NHCA_WR_ATOMIC_FETCH_AND_ADD, "ATOMIC_FETCH_AND_ADD" },	\
		{ NHCA_WR_LOCAL_INV, "LOCAL_INV" },				\
		{ NHCA_WR_BIND_MW, "BIND_MW" },					\
		{ NHCA_WR_SEND_WITH_INV, "SEND_WITH_INV" },			\
		{ NHCA_WR_FLUSH, "FLUSH" },					\
		{ NHCA_WR_ATOMIC_WRITE, "ATOMIC_WRITE" },			\
		{ NHCA_WR_REG_MR, "REG_MR" },					\
		{ NHCA_WR_CH_PACKET, "CH_PACKET" },				\
		{ NHCA_WR_CH_WRITE, "CH_WRITE" },				\
		{ NHCA_WR_CH_READ, "CH_READ" },					\
		{ NHCA_WR_CH_CANCEL, "CH_CANCEL" },				\
		{ NHCA_WR_CH_PROBE, "CH_PROBE" },				\
		{ NHCA_WR_CH_FENCE, "CH_FENCE" },				\
		{ NHCA_WR_CH_MOVE, "CH_MOVE" },					\
		{ NHCA_WR_CH_PART, "CH_PART" },					\
		{ NHCA_WR_CH_ACCUMULATE, "CH_ACCUMULATE" },			\
		{ NHCA_TRACE_RECV, "RECV" })

#define nhca_show_refusal(why)						\
	__print_symbolic(why,						\
		{ NHCA_CNT_RX_TOO_SHORT, "rx_too_short" },		\
		{ NHCA_CNT_RX_BAD_OPCODE, "rx_bad_opcode" },		\
		{ NHCA_CNT_RX_BAD_VERSION, "rx_bad_version" },		\
		{ NHCA_CNT_RX_BAD_LENGTH, "rx_bad_length" },		\
		{ NHCA_CNT_RX_BAD_ICRC, "rx_icrc_encapsulated" },	\
		{ NHCA_CNT_RX_NO_QP, "rx_no_qp" },			\
		{ NHCA_CNT_RX_BAD_STATE, "rx_bad_qp_state" },		\
		{ NHCA_CNT_RX_BAD_ADDR, "rx_bad_addr" },		\
		{ NHCA_CNT_RX_BAD_PKEY, "rx_bad_pkey" },		\
		{ NHCA_CNT_RX_BAD_QKEY, "rx_bad_qkey" })

#define nhca_show_retry(why)						\
	__print_symbolic(why,						\
		{ NHCA_CNT_IMPLIED_NAK, "implied_nak_seq_err" },	\
		{ NHCA_CNT_RCVD_RNR, "rcvd_rnr_err" },			\
		{ NHCA_CNT_RCVD_SEQ_NAK, "rcvd_seq_err" },		\
		{ NHCA_CNT_PROBE, "early_retransmits" },		\
		{ NHCA_CNT_TIMEOUT, "local_ack_timeout_err" },		\
		{ NHCA_CNT_PAGE_RETRY, "odp_retransmits" })

#define nhca_show_nak(kind)							\
	__print_symbolic(kind,							\
		{ NHCA_AETH_RNR, "RNR" },					\
		{ NHCA_AETH_NAK | NHCA_NAK_PSN_SEQ, "PSN sequence" },		\
		{ NHCA_AETH_NAK | NHCA_NAK_INVALID_REQ, "invalid request" },	\
		{ NHCA_AETH_NAK | NHCA_NAK_REM_ACCESS, "remote access" },	\
		{ NHCA_AETH_NAK | NHCA_NAK_REM_OP, "remote operational" })

/* enum nhca_mkey_type */
#define nhca_show_key(type)						\
	__print_symbolic(type,						\
		{ 0, "region" },					\
		{ 1, "window-1" },					\
		{ 2, "window-2A" },					\
		{ 3, "window-2B" })

/* ---- packets ---- */

DECLARE_EVENT_CLASS(nhca_packet,
		    TP_PROTO(const struct nhca_who *who, const struct nhca_hdr *h, u32 psn,
			     u32 peer, u32 packets, u32 payload),
		    TP_ARGS(who, h, psn, peer, packets, payload),
		    TP_STRUCT__entry(__field(u32, dev)
				     __field(u32, qpn)
				     __field(u32, peer)
				     __field(u32, psn)
				     __field(u32, packets)
				     __field(u32, payload)
				     __field(u8, opcode)
				     __field(bool, ackreq)
				     __field(bool, acks)
		    ),
		    TP_fast_assign(__entry->dev = who->dev;
				   __entry->qpn = who->qpn;
				   __entry->peer = peer;
				   __entry->psn = psn;
				   __entry->packets = packets;
				   __entry->payload = payload;
				   __entry->opcode = h->opcode;
				   __entry->ackreq = h->ackreq;
				   __entry->acks = h->caps & NHCA_CAP_ACKS;
		    ),
		    TP_printk("dev %u qpn %#x: %s %s peer %#x psn %u packets %u payload %u%s%s",
			      __entry->dev, __entry->qpn, nhca_show_service(__entry->opcode & 0xe0),
			      nhca_show_op((__entry->opcode & 0xe0) == NHCA_SVC_CNP ||
					   (__entry->opcode & 0xe0) == NHCA_SVC_MFR ?
					   __entry->opcode : __entry->opcode & NHCA_OP_MASK),
			      __entry->peer,
			      __entry->psn, __entry->packets, __entry->payload,
			      __entry->ackreq ? " ackreq" : "", __entry->acks ? " acks" : "")
);

/**
 * nhca_packet_sent - the driver has built packets, and sent them or added them to a batch
 * @who:     queue pair or channel
 * @h:       headers of the first packet
 * @psn:     PSN of the first packet
 * @peer:    destination QPN
 * @packets: number of packets, with PSNs that count up
 * @payload: bytes of payload in each packet
 */
DEFINE_EVENT(nhca_packet, nhca_packet_sent,
	     TP_PROTO(const struct nhca_who *who, const struct nhca_hdr *h, u32 psn, u32 peer,
		      u32 packets, u32 payload),
	     TP_ARGS(who, h, psn, peer, packets, payload));

/**
 * nhca_packet_received - packets for an existing QP or channel have arrived
 * @who:     queue pair or channel
 * @h:       headers of the last packet
 * @psn:     PSN of the first packet
 * @peer:    source QPN, if the packet contains it (UD, channels); otherwise 0
 * @packets: number of packets, with PSNs that count up
 * @payload: bytes of payload in each packet
 *
 * A packet for a QP causes the event only if its ICRC or UDP checksum is valid, and its service,
 * addresses, P_Key and Q_Key fit the QP (for a CNP: the addresses). A packet for a channel causes
 * the event if its destination is an address of the device, before the check of ICRC or UDP
 * checksum.
 */
DEFINE_EVENT(nhca_packet, nhca_packet_received,
	     TP_PROTO(const struct nhca_who *who, const struct nhca_hdr *h, u32 psn, u32 peer,
		      u32 packets, u32 payload),
	     TP_ARGS(who, h, psn, peer, packets, payload));

/**
 * nhca_packet_refused - a packet was dropped on arrival
 * @dev: the device that counts the drop
 * @h:   headers of the packet, not verified; or NULL
 * @why: the counter
 */
TRACE_EVENT(nhca_packet_refused,
	    TP_PROTO(const struct ib_device *dev, const struct nhca_hdr *h, enum nhca_counter why),
	    TP_ARGS(dev, h, why),
	    TP_STRUCT__entry(__field(u32, dev)
			     __field(u32, qpn)
			     __field(u32, psn)
			     __field(u32, why)
			     __field(u8, opcode)
	    ),
	    TP_fast_assign(__entry->dev = dev->index;
			   __entry->qpn = h ? h->qpn : 0;
			   __entry->psn = h ? h->psn : 0;
			   __entry->why = why;
			   __entry->opcode = h ? h->opcode : 0;
	    ),
	    TP_printk("dev %u qpn %#x: %s; opcode %#x psn %u", __entry->dev, __entry->qpn,
		      nhca_show_refusal(__entry->why), __entry->opcode, __entry->psn)
);

/**
 * nhca_same_host - bytes were copied between queue pairs of this host without packets
 * @who:   the queue pair that executes the work request
 * @peer:  QPN of the other queue pair
 * @wr:    enum nhca_wr_opcode
 * @psn:   PSN of the first packet that the copy replaces
 * @npsn:  number of packets that the copy replaces, each with a PSN
 * @bytes: bytes copied
 */
TRACE_EVENT(nhca_same_host,
	    TP_PROTO(const struct nhca_who *who, u32 peer, u8 wr, u32 psn, u32 npsn, u32 bytes),
	    TP_ARGS(who, peer, wr, psn, npsn, bytes),
	    TP_STRUCT__entry(__field(u32, dev)
			     __field(u32, qpn)
			     __field(u32, peer)
			     __field(u32, psn)
			     __field(u32, npsn)
			     __field(u32, bytes)
			     __field(u8, wr)
	    ),
	    TP_fast_assign(__entry->dev = who->dev;
			   __entry->qpn = who->qpn;
			   __entry->peer = peer;
			   __entry->psn = psn;
			   __entry->npsn = npsn;
			   __entry->bytes = bytes;
			   __entry->wr = wr;
	    ),
	    TP_printk("dev %u qpn %#x: %s peer %#x psn %u npsn %u bytes %u", __entry->dev,
		      __entry->qpn, nhca_show_wr(__entry->wr), __entry->peer, __entry->psn,
		      __entry->npsn, __entry->bytes)
);

/* ---- work requests ---- */

/**
 * nhca_wqe_started - processing of a work request began
 * @who:    queue pair or channel
 * @wr:     enum nhca_wr_opcode, or NHCA_TRACE_RECV
 * @wr_id:  wr_id of the consumer
 * @length: bytes of the message, or of the receive buffer
 * @psn:    first PSN of the request; 0 for receives and channels
 * @npsn:   number of PSNs; 0 for receives and channels
 */
TRACE_EVENT(nhca_wqe_started,
	    TP_PROTO(const struct nhca_who *who, u8 wr, u64 wr_id, u32 length, u32 psn, u32 npsn),
	    TP_ARGS(who, wr, wr_id, length, psn, npsn),
	    TP_STRUCT__entry(__field(u64, wr_id)
			     __field(u32, dev)
			     __field(u32, qpn)
			     __field(u32, length)
			     __field(u32, psn)
			     __field(u32, npsn)
			     __field(u8, wr)
	    ),
	    TP_fast_assign(__entry->wr_id = wr_id;
			   __entry->dev = who->dev;
			   __entry->qpn = who->qpn;
			   __entry->length = length;
			   __entry->psn = psn;
			   __entry->npsn = npsn;
			   __entry->wr = wr;
	    ),
	    TP_printk("dev %u qpn %#x: %s wr_id %#llx length %u psn %u npsn %u", __entry->dev,
		      __entry->qpn, nhca_show_wr(__entry->wr), __entry->wr_id, __entry->length,
		      __entry->psn, __entry->npsn)
);

/**
 * nhca_wqe_completed - a work request, signaled or not, is complete
 * @who:    queue pair or channel
 * @wr:     enum nhca_wr_opcode, or NHCA_TRACE_RECV
 * @wr_id:  wr_id of the consumer
 * @status: enum ib_wc_status
 * @length: bytes of the message
 * @begun:  nhca_trace_clock() when the processing began; 0: the processing did not begin, or the
 *          event was not enabled at that time
 */
TRACE_EVENT(nhca_wqe_completed,
	    TP_PROTO(const struct nhca_who *who, u8 wr, u64 wr_id, u32 status, u32 length,
		     u64 begun),
	    TP_ARGS(who, wr, wr_id, status, length, begun),
	    TP_STRUCT__entry(__field(u64, wr_id)
			     __field(u64, ns)
			     __field(u32, dev)
			     __field(u32, qpn)
			     __field(u32, status)
			     __field(u32, length)
			     __field(u8, wr)
	    ),
	    TP_fast_assign(__entry->wr_id = wr_id;
			   __entry->ns = begun ? ktime_get_ns() - begun : 0;
			   __entry->dev = who->dev;
			   __entry->qpn = who->qpn;
			   __entry->status = status;
			   __entry->length = length;
			   __entry->wr = wr;
	    ),
	    TP_printk("dev %u qpn %#x: %s wr_id %#llx status %s length %u ns %llu", __entry->dev,
		      __entry->qpn, nhca_show_wr(__entry->wr), __entry->wr_id,
		      rdma_show_wc_status(__entry->status), __entry->length, __entry->ns)
);

/* ---- errors and retransmissions ---- */

/**
 * nhca_retry - the requester goes back to the oldest unacknowledged PSN, to retransmit
 * @who:    the queue pair
 * @why:    the counter of the cause
 * @psn:    the oldest unacknowledged PSN
 * @next:   PSN of the next new packet
 * @window: cwnd from now on, in PSNs
 * @retries: remaining retries of retry_cnt, which timeouts and sequence NAKs use; RNR retries are
 *          counted separately and not shown
 */
TRACE_EVENT(nhca_retry,
	    TP_PROTO(const struct nhca_who *who, enum nhca_counter why, u32 psn, u32 next,
		     u32 window, u8 retries),
	    TP_ARGS(who, why, psn, next, window, retries),
	    TP_STRUCT__entry(__field(u32, dev)
			     __field(u32, qpn)
			     __field(u32, why)
			     __field(u32, psn)
			     __field(u32, next)
			     __field(u32, window)
			     __field(u8, retries)
	    ),
	    TP_fast_assign(__entry->dev = who->dev;
			   __entry->qpn = who->qpn;
			   __entry->why = why;
			   __entry->psn = psn;
			   __entry->next = next;
			   __entry->window = window;
			   __entry->retries = retries;
	    ),
	    TP_printk("dev %u qpn %#x: %s; psn %u next %u window %u retries %u", __entry->dev,
		      __entry->qpn, nhca_show_retry(__entry->why), __entry->psn, __entry->next,
		      __entry->window, __entry->retries)
);

DECLARE_EVENT_CLASS(nhca_nak,
		    TP_PROTO(const struct nhca_who *who, u32 psn, u8 syndrome),
		    TP_ARGS(who, psn, syndrome),
		    TP_STRUCT__entry(__field(u32, dev)
				     __field(u32, qpn)
				     __field(u32, psn)
				     __field(u8, syndrome)
		    ),
		    TP_fast_assign(__entry->dev = who->dev;
				   __entry->qpn = who->qpn;
				   __entry->psn = psn;
				   __entry->syndrome = syndrome;
		    ),
		    TP_printk("dev %u qpn %#x: %s psn %u syndrome %#x", __entry->dev,
			      __entry->qpn,
			      /* the name of an RNR NAK does not depend on its timer */
			      nhca_show_nak((__entry->syndrome & NHCA_AETH_KIND_MASK) ==
					    NHCA_AETH_RNR ? NHCA_AETH_RNR : __entry->syndrome),
			      __entry->psn, __entry->syndrome)
);

/**
 * nhca_nak_sent - the responder sent a NAK or RNR NAK
 * @who:      the queue pair
 * @psn:      PSN of the NAK
 * @syndrome: syndrome of the AETH
 */
DEFINE_EVENT(nhca_nak, nhca_nak_sent,
	     TP_PROTO(const struct nhca_who *who, u32 psn, u8 syndrome),
	     TP_ARGS(who, psn, syndrome));

/**
 * nhca_nak_received - the requester received a NAK or RNR NAK
 * @who:      the queue pair
 * @psn:      PSN of the NAK
 * @syndrome: syndrome of the AETH
 */
DEFINE_EVENT(nhca_nak, nhca_nak_received,
	     TP_PROTO(const struct nhca_who *who, u32 psn, u8 syndrome),
	     TP_ARGS(who, psn, syndrome));

/* ---- keys ---- */

/**
 * nhca_key_opened - a key gives access to memory from now on
 * @pd:     protection domain of the key
 * @key:    L_Key or R_Key
 * @type:   enum nhca_mkey_type
 * @qpn:    windows: the QP that has bound the window; regions: 0
 * @va:     first address, as in work requests and packets
 * @length: bytes from @va on
 * @access: enum ib_access_flags
 */
TRACE_EVENT(nhca_key_opened,
	    TP_PROTO(const struct ib_pd *pd, u32 key, u8 type, u32 qpn, u64 va, u64 length,
		     u32 access),
	    TP_ARGS(pd, key, type, qpn, va, length, access),
	    TP_STRUCT__entry(__field(u64, va)
			     __field(u64, length)
			     __field(u32, dev)
			     __field(u32, qpn)
			     __field(u32, pd)
			     __field(u32, key)
			     __field(u32, access)
			     __field(u8, type)
	    ),
	    TP_fast_assign(__entry->va = va;
			   __entry->length = length;
			   __entry->dev = pd->device->index;
			   __entry->qpn = qpn;
			   __entry->pd = pd->res.id;
			   __entry->key = key;
			   __entry->access = access;
			   __entry->type = type;
	    ),
	    TP_printk("dev %u qpn %#x: %s key %#010x pd %u va %#llx length %llu access %#x",
		      __entry->dev, __entry->qpn, nhca_show_key(__entry->type), __entry->key,
		      __entry->pd, __entry->va, __entry->length, __entry->access)
);

/**
 * nhca_key_revoked - a key is closed: no CPU accesses memory with the key any more
 * @pd:   protection domain of the key
 * @key:  L_Key or R_Key
 * @type: enum nhca_mkey_type
 * @qpn:  windows: the QP that had bound the window; regions: 0
 *
 * The consumer or peer that requested the revocation gets the result after the event.
 */
TRACE_EVENT(nhca_key_revoked,
	    TP_PROTO(const struct ib_pd *pd, u32 key, u8 type, u32 qpn),
	    TP_ARGS(pd, key, type, qpn),
	    TP_STRUCT__entry(__field(u32, dev)
			     __field(u32, qpn)
			     __field(u32, pd)
			     __field(u32, key)
			     __field(u8, type)
	    ),
	    TP_fast_assign(__entry->dev = pd->device->index;
			   __entry->qpn = qpn;
			   __entry->pd = pd->res.id;
			   __entry->key = key;
			   __entry->type = type;
	    ),
	    TP_printk("dev %u qpn %#x: %s key %#010x pd %u", __entry->dev, __entry->qpn,
		      nhca_show_key(__entry->type), __entry->key, __entry->pd)
);

/* ---- fault injection ---- */

#define nhca_show_point(at)					\
	__print_symbolic(at,					\
		{ NHCA_AT_SEND,		"send" },		\
		{ NHCA_AT_RECEIVE,	"receive" },		\
		{ NHCA_AT_REQUEST,	"request" },		\
		{ NHCA_AT_BUFFER,	"buffer" },		\
		{ NHCA_AT_CQE,		"cqe" },		\
		{ NHCA_AT_MR,		"mr" })

/**
 * nhca_fault - a fault injection rule has hit an item (enum nhca_fault_point)
 * @dev:    the device
 * @qpn:    queue pair or channel of the item, or 0
 * @rule:   number of the rule
 * @at:     enum nhca_fault_point
 * @opcode: BTH opcode, or 0
 * @seen:   number of items of the same stream that the rule has examined before this item
 */
TRACE_EVENT(nhca_fault,
	    TP_PROTO(const struct ib_device *dev, u32 qpn, u32 rule, enum nhca_fault_point at,
		     u8 opcode, unsigned long seen),
	    TP_ARGS(dev, qpn, rule, at, opcode, seen),
	    TP_STRUCT__entry(__field(u64, seen)
			     __field(u32, dev)
			     __field(u32, qpn)
			     __field(u32, rule)
			     __field(u32, at)
			     __field(u8, opcode)
	    ),
	    TP_fast_assign(__entry->seen = seen;
			   __entry->dev = dev->index;
			   __entry->qpn = qpn;
			   __entry->rule = rule;
			   __entry->at = at;
			   __entry->opcode = opcode;
	    ),
	    TP_printk("dev %u qpn %#x: rule %u at %s; opcode %#x seen %llu", __entry->dev,
		      __entry->qpn, __entry->rule, nhca_show_point(__entry->at), __entry->opcode,
		      __entry->seen)
);

#endif /* NHCA_TRACE_H */

#ifndef NHCA_TRACE_CLOCK_H
#define NHCA_TRACE_CLOCK_H

/**
 * nhca_trace_clock - get the time at which a work request begins, for trace_nhca_wqe_completed()
 * Context: any.
 * Return: nanoseconds of CLOCK_MONOTONIC; 0 if the event is not enabled.
 */
static inline u64 nhca_trace_clock(void)
{
	return trace_nhca_wqe_completed_enabled() ? ktime_get_ns() : 0;
}

#endif /* NHCA_TRACE_CLOCK_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
