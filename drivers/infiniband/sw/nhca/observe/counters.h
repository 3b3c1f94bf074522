/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a device counts.  `rdma statistic` shows every one of these by the
 * name in counters.c.  Names follow rdma_rxe and mlx5 where those have one.
 */
#ifndef NHCA_COUNTERS_H
#define NHCA_COUNTERS_H

#include <linux/types.h>

enum nhca_counter {
	NHCA_CNT_SENT_PKTS,
	NHCA_CNT_SENT_BYTES,
	NHCA_CNT_SEND_ERR,		/* the stack refused a packet */
	NHCA_CNT_NO_ROUTE,
	NHCA_CNT_RCVD_PKTS,
	NHCA_CNT_RCVD_BYTES,
	NHCA_CNT_SAME_HOST_BYTES,	/* moved without packets */
	NHCA_CNT_RX_TOO_SHORT,		/* no room for BTH or the opcode's headers */
	NHCA_CNT_RX_BAD_OPCODE,		/* unknown, or not for this QP type */
	NHCA_CNT_RX_BAD_VERSION,	/* BTH transport version is not 0 */
	NHCA_CNT_RX_BAD_LENGTH,		/* no room for pad and ICRC, or payload where none may be */
	NHCA_CNT_RX_BAD_ICRC,
	NHCA_CNT_RX_NO_QP,
	NHCA_CNT_RX_BAD_STATE,		/* QP cannot receive now */
	NHCA_CNT_RX_BAD_ADDR,		/* not from the QP's peer, or not to this device */
	NHCA_CNT_RX_BAD_PKEY,
	NHCA_CNT_RX_BAD_QKEY,
	NHCA_CNT_RX_NO_BUFFER,		/* UD, UC: no receive posted; packet dropped */
	NHCA_CNT_DUP_REQUEST,
	NHCA_CNT_OUT_OF_SEQ_REQUEST,
	NHCA_CNT_DUP_RESPONSE,		/* answers to what is answered already, or to nothing */
	NHCA_CNT_IMPLIED_NAK,		/* an answer shows that an earlier one was lost */
	NHCA_CNT_RCVD_RNR,
	NHCA_CNT_SENT_RNR,
	NHCA_CNT_RCVD_SEQ_NAK,
	NHCA_CNT_SENT_SEQ_NAK,
	NHCA_CNT_RCVD_ACCESS_NAK,
	NHCA_CNT_SENT_ACCESS_NAK,
	NHCA_CNT_RCVD_INVAL_NAK,
	NHCA_CNT_SENT_INVAL_NAK,
	NHCA_CNT_RCVD_OP_NAK,
	NHCA_CNT_SENT_OP_NAK,
	NHCA_CNT_PROBE,			/* sent again on suspicion, before the local ACK timeout */
	NHCA_CNT_TIMEOUT,		/* local ACK timeouts */
	NHCA_CNT_RETRY_EXCEEDED,
	NHCA_CNT_RNR_RETRY_EXCEEDED,
	NHCA_CNT_RETRANSMIT_PKTS,
	NHCA_CNT_LOCAL_PROT_ERR,
	NHCA_CNT_CQ_OVERFLOW,
	NHCA_CNT_BAD_RING,		/* user space broke a ring's rules */
	NHCA_CNT_CNP_RCVD,
	NHCA_CNT_CNP_SENT,
	NHCA_CNT_RX_ECN_MARKED,
	NHCA_CNT_LINK_DOWNED,
	NHCA_CNT_MAX
};

struct nhca_counters {
	u64 v[NHCA_CNT_MAX];
};

struct ib_device;
struct rdma_hw_stats;

/**
 * nhca_alloc_hw_stats - ib_device_ops.alloc_hw_port_stats
 * Context: process.
 */
struct rdma_hw_stats *nhca_alloc_hw_stats(struct ib_device *ibdev, u32 port);

/**
 * nhca_get_hw_stats - ib_device_ops.get_hw_stats: sums the per-CPU counters
 * Context: process.
 */
int nhca_get_hw_stats(struct ib_device *ibdev, struct rdma_hw_stats *stats,
		      u32 port, int index);

#endif /* NHCA_COUNTERS_H */
