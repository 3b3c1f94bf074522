/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Counters of a device. `rdma statistic` shows each counter with its name in counters.c. Many of
 * the names are those of rdma_rxe, mlx5 or bnxt_re for a counter of the same kind.
 */
#ifndef NHCA_COUNTERS_H
#define NHCA_COUNTERS_H

#include <linux/compiler.h>
#include <linux/percpu.h>
#include <linux/types.h>

#include "../nhca.h"

enum nhca_counter {
	NHCA_CNT_SENT_PKTS,
	NHCA_CNT_SENT_BYTES,
	NHCA_CNT_SENT_ZCOPY_BYTES,	/* bytes sent by reference to the consumer's pages */
	NHCA_CNT_SENT_COPIED_BYTES,	/* bytes copied into packets */
	NHCA_CNT_SEND_ERR,		/* the network stack refused a packet */
	NHCA_CNT_NO_ROUTE,
	NHCA_CNT_RCVD_PKTS,
	NHCA_CNT_RCVD_BYTES,
	NHCA_CNT_SENT_MCAST_PKTS,	/* multicast packets, which SENT_PKTS also counts */
	NHCA_CNT_RCVD_MCAST_PKTS,	/* multicast packets, which RCVD_PKTS also counts */
	NHCA_CNT_SAME_HOST_BYTES,	/* copied between QPs of this host, without packets */
	NHCA_CNT_RX_TOO_SHORT,		/* shorter than the BTH, or than the opcode's headers */
	NHCA_CNT_RX_BAD_OPCODE,		/* unknown, or not for this QP type */
	NHCA_CNT_RX_BAD_VERSION,	/* the version of the BTH or RXETH is not 0 */
	/* no room for pad and ICRC, wrong payload length, or datagram too long for its receive */
	NHCA_CNT_RX_BAD_LENGTH,
	NHCA_CNT_RX_BAD_ICRC,
	NHCA_CNT_RX_NO_QP,
	NHCA_CNT_RX_BAD_STATE,		/* the QP cannot receive in its state */
	NHCA_CNT_RX_BAD_ADDR,		/* not from the QP's peer, or not to this device */
	NHCA_CNT_RX_BAD_PKEY,
	NHCA_CNT_RX_BAD_QKEY,
	/*
	 * packet dropped: no receive posted (UD, UC, raw), the packet could not be deferred, or
	 * there was no memory to copy or split a frame (raw)
	 */
	NHCA_CNT_RX_NO_BUFFER,
	NHCA_CNT_DUP_REQUEST,
	NHCA_CNT_OUT_OF_SEQ_REQUEST,
	NHCA_CNT_DUP_RESPONSE,		/* response that no outstanding request expects */
	NHCA_CNT_IMPLIED_NAK,		/* a response shows that an earlier one was lost */
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
	NHCA_CNT_ACKS_PIGGYBACKED,		/* piggybacked ACKs: sent with a request */
	NHCA_CNT_PROBE,			/* tail loss probes, before the local ACK timeout */
	NHCA_CNT_TIMEOUT,		/* local ACK timeouts */
	NHCA_CNT_RETRY_EXCEEDED,
	NHCA_CNT_RNR_RETRY_EXCEEDED,
	NHCA_CNT_RETRANSMIT_PKTS,
	NHCA_CNT_PAGE_RETRY,		/* request repeated: its response needed a page or disk */
	NHCA_CNT_SENDS,			/* SENDs that completed with success */
	NHCA_CNT_RECVS,			/* receives that completed with success */
	NHCA_CNT_WRITE_REQUESTS,	/* this and the next two: executed requests of peers */
	NHCA_CNT_READ_REQUESTS,
	NHCA_CNT_ATOMIC_REQUESTS,
	NHCA_CNT_SEND_CQE_ERR,		/* send completions with an error other than a flush */
	NHCA_CNT_SEND_CQE_FLUSH,
	NHCA_CNT_RECV_CQE_ERR,
	NHCA_CNT_RECV_CQE_FLUSH,
	NHCA_CNT_RECV_LENGTH_ERR,	/* the message is longer than the receive buffer */
	NHCA_CNT_LOCAL_PROT_ERR,
	NHCA_CNT_CQ_OVERFLOW,
	NHCA_CNT_BAD_RING,		/* user space has stored an impossible index in a ring */
	NHCA_CNT_CNP_RCVD,
	NHCA_CNT_CNP_SENT,
	NHCA_CNT_RX_ECN_MARKED,
	NHCA_CNT_LINK_DOWNED,
	/* regions of files; they count only for the device, not for an rdma_counter */
	NHCA_CNT_DIRECT_BEGUN,		/* I/O requests that have begun */
	NHCA_CNT_DIRECT_ENDED,		/* I/O requests that have ended */
	NHCA_CNT_DIRECT_BLOCKS,		/* blocks of the requests that have begun */
	NHCA_CNT_DIRECT_EDGES,		/* reads of I/O units of which a part is to be written */
	NHCA_CNT_DIRECT_AGAIN,		/* writes that would have blocked, and began again */
	NHCA_CNT_DIRECT_ERRORS,		/* requests that have failed or were too short */
	NHCA_CNT_DIRECT_READ_BYTES,
	NHCA_CNT_DIRECT_WRITE_BYTES,
	NHCA_CNT_DIRECT_WAITS,		/* times that a requester or responder had to wait */
	NHCA_CNT_DIRECT_REFILLS,	/* blocks that lost their memory before they were sent */
	NHCA_CNT_DIRECT_SPLITS,		/* blocks that went to the disk before all bytes had come */
	NHCA_CNT_DIRECT_LOST,		/* acknowledged blocks that could not be written */
	NHCA_CNT_DIRECT_FLUSHES,
	NHCA_CNT_MAX
};

struct nhca_counters {
	u64 v[NHCA_CNT_MAX];
};

/* Add to a counter of the device itself.  Context: any. */
static inline void nhca_dev_count_add(struct nhca_dev *dev, enum nhca_counter which, u64 n)
{
	this_cpu_add(dev->counters->v[which], n);
}

/* Add 1 to a counter of the device itself.  Context: any. */
static inline void nhca_dev_count(struct nhca_dev *dev, enum nhca_counter which)
{
	this_cpu_inc(dev->counters->v[which]);
}

/**
 * struct nhca_who - a queue pair or channel, for counters and traces
 * @dev:      number of its device, as `rdma dev` prints it
 * @qpn:      its QPN
 * @counters: the per-CPU counters to count in: those of the device, or those of the rdma_counter to
 *            which the QP is bound. The core shows the sum of the device's counters and all
 *            rdma_counters. Read with READ_ONCE()
 */
struct nhca_who {
	u32 dev;
	u32 qpn;
	struct nhca_counters __percpu *counters;
};

/**
 * nhca_count_add - add to a counter of a queue pair or channel
 * @who:   the queue pair or channel
 * @which: the counter
 * @n:     the number to add
 * Context: BH disabled or RCU read side. Code that replaces @who->counters waits for an RCU grace
 * period before it frees the old counters.
 */
static inline void nhca_count_add(const struct nhca_who *who, enum nhca_counter which, u64 n)
{
	this_cpu_add(READ_ONCE(who->counters)->v[which], n);
}

/**
 * nhca_count - add 1 to a counter of a queue pair or channel
 * @who:   the queue pair or channel
 * @which: the counter
 * Context: as nhca_count_add().
 */
static inline void nhca_count(const struct nhca_who *who, enum nhca_counter which)
{
	nhca_count_add(who, which, 1);
}

struct ib_device;
struct rdma_hw_stats;

/**
 * nhca_alloc_hw_stats - ib_device_ops.alloc_hw_port_stats, also used for an rdma_counter
 * @ibdev: the device
 * @port:  1, the only port
 * Context: process.
 * Return: the counters of enum nhca_counter with their names; NULL: no memory.
 */
struct rdma_hw_stats *nhca_alloc_hw_stats(struct ib_device *ibdev, u32 port);

/**
 * nhca_counters_add - add the sums of the counters over all CPUs to @values
 * nhca_counters_sum - set @values to these sums
 * @counters: the counters, per CPU
 * @values:   NHCA_CNT_MAX sums
 * Context: any.
 */
void nhca_counters_add(struct nhca_counters __percpu *counters, u64 *values);
void nhca_counters_sum(struct nhca_counters __percpu *counters, u64 *values);

/**
 * nhca_get_hw_stats - ib_device_ops.get_hw_stats: add up the counters of all CPUs
 * @ibdev: the device
 * @stats: filled in
 * @port:  1, the only port
 * @index: ignored, because the function reads all counters
 * Context: process.
 * Return: the number of counters; -EINVAL: @port is not 1.
 */
int nhca_get_hw_stats(struct ib_device *ibdev, struct rdma_hw_stats *stats,
		      u32 port, int index);

#endif /* NHCA_COUNTERS_H */
