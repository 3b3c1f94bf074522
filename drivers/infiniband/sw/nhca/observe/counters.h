/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a device counts.  `rdma statistic` shows every one of these by the
 * name in counters.c.  Names follow rdma_rxe and mlx5 where those have one.
 */
#ifndef NHCA_COUNTERS_H
#define NHCA_COUNTERS_H

#include <linux/compiler.h>
#include <linux/percpu.h>
#include <linux/types.h>

enum nhca_counter {
	NHCA_CNT_SENT_PKTS,
	NHCA_CNT_SENT_BYTES,
	NHCA_CNT_SENT_ZCOPY_BYTES,	/* of these, by reference to the consumer's pages */
	NHCA_CNT_SENT_COPIED_BYTES,	/* and by a copy */
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
	NHCA_CNT_ACKS_RIDING,		/* acknowledgments that left with a request */
	NHCA_CNT_PROBE,			/* sent again on suspicion, before the local ACK timeout */
	NHCA_CNT_TIMEOUT,		/* local ACK timeouts */
	NHCA_CNT_RETRY_EXCEEDED,
	NHCA_CNT_RNR_RETRY_EXCEEDED,
	NHCA_CNT_RETRANSMIT_PKTS,
	NHCA_CNT_PAGE_RETRY,		/* asked again: the answer's place was not in memory */
	NHCA_CNT_SENDS,			/* messages, completed */
	NHCA_CNT_RECVS,
	NHCA_CNT_WRITE_REQUESTS,	/* executed for peers */
	NHCA_CNT_READ_REQUESTS,
	NHCA_CNT_ATOMIC_REQUESTS,
	NHCA_CNT_SEND_CQE_ERR,		/* completions other than success and flush */
	NHCA_CNT_SEND_CQE_FLUSH,
	NHCA_CNT_RECV_CQE_ERR,
	NHCA_CNT_RECV_CQE_FLUSH,
	NHCA_CNT_RECV_LENGTH_ERR,	/* a message longer than its receive */
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

/**
 * struct nhca_who - a queue pair or channel, as counters and traces know it
 * @dev:      number of its device, as `rdma dev` prints it
 * @qpn:      its own
 * @counters: per CPU; the device's, or those of the rdma_counter that it is bound to, which the
 *            core adds to the device's; READ_ONCE
 */
struct nhca_who {
	u32 dev;
	u32 qpn;
	struct nhca_counters __percpu *counters;
};

/**
 * nhca_count_add - count what a queue pair or channel did
 * Context: BH disabled or RCU read side, who changes @who->counters waits for that
 */
static inline void nhca_count_add(const struct nhca_who *who, enum nhca_counter which, u64 n)
{
	this_cpu_add(READ_ONCE(who->counters)->v[which], n);
}

static inline void nhca_count(const struct nhca_who *who, enum nhca_counter which)
{
	nhca_count_add(who, which, 1);
}

struct ib_device;
struct rdma_hw_stats;

/**
 * nhca_alloc_hw_stats - ib_device_ops.alloc_hw_port_stats; also of a counter that QPs are bound to
 * Context: process.
 */
struct rdma_hw_stats *nhca_alloc_hw_stats(struct ib_device *ibdev, u32 port);

/**
 * nhca_counters_sum - add up what all CPUs have counted
 * @values: NHCA_CNT_MAX of them
 * Context: any.
 */
void nhca_counters_sum(struct nhca_counters __percpu *counters, u64 *values);

/**
 * nhca_get_hw_stats - ib_device_ops.get_hw_stats: sums the per-CPU counters
 * Context: process.
 */
int nhca_get_hw_stats(struct ib_device *ibdev, struct rdma_hw_stats *stats,
		      u32 port, int index);

#endif /* NHCA_COUNTERS_H */
