// SPDX-License-Identifier: GPL-2.0
/* The counters of a device, with their names in the RDMA core. */
#include <rdma/ib_verbs.h>
#include "counters.h"

static const struct rdma_stat_desc counter_descs[] = {
	[NHCA_CNT_SENT_PKTS].name		= "sent_pkts",
	[NHCA_CNT_SENT_BYTES].name		= "sent_bytes",
	[NHCA_CNT_SENT_ZCOPY_BYTES].name	= "sent_zcopy_bytes",
	[NHCA_CNT_SENT_COPIED_BYTES].name	= "sent_copied_bytes",
	[NHCA_CNT_SEND_ERR].name		= "send_err",
	[NHCA_CNT_NO_ROUTE].name		= "send_no_route",
	[NHCA_CNT_RCVD_PKTS].name		= "rcvd_pkts",
	[NHCA_CNT_RCVD_BYTES].name		= "rcvd_bytes",
	[NHCA_CNT_SENT_MCAST_PKTS].name		= "sent_mcast_pkts",
	[NHCA_CNT_RCVD_MCAST_PKTS].name		= "rcvd_mcast_pkts",
	[NHCA_CNT_SAME_HOST_BYTES].name		= "same_host_bytes",
	[NHCA_CNT_RX_TOO_SHORT].name		= "rx_too_short",
	[NHCA_CNT_RX_BAD_OPCODE].name		= "rx_bad_opcode",
	[NHCA_CNT_RX_BAD_VERSION].name		= "rx_bad_version",
	[NHCA_CNT_RX_BAD_LENGTH].name		= "rx_bad_length",
	[NHCA_CNT_RX_BAD_ICRC].name		= "rx_icrc_encapsulated",
	[NHCA_CNT_RX_NO_QP].name		= "rx_no_qp",
	[NHCA_CNT_RX_BAD_STATE].name		= "rx_bad_qp_state",
	[NHCA_CNT_RX_BAD_ADDR].name		= "rx_bad_addr",
	[NHCA_CNT_RX_BAD_PKEY].name		= "rx_bad_pkey",
	[NHCA_CNT_RX_BAD_QKEY].name		= "rx_bad_qkey",
	[NHCA_CNT_RX_NO_BUFFER].name		= "out_of_buffer",
	[NHCA_CNT_DUP_REQUEST].name		= "duplicate_request",
	[NHCA_CNT_OUT_OF_SEQ_REQUEST].name	= "out_of_seq_request",
	[NHCA_CNT_DUP_RESPONSE].name		= "duplicate_response",
	[NHCA_CNT_IMPLIED_NAK].name		= "implied_nak_seq_err",
	[NHCA_CNT_RCVD_RNR].name		= "rcvd_rnr_err",
	[NHCA_CNT_SENT_RNR].name		= "send_rnr_err",
	[NHCA_CNT_RCVD_SEQ_NAK].name		= "rcvd_seq_err",
	[NHCA_CNT_SENT_SEQ_NAK].name		= "send_seq_err",
	[NHCA_CNT_RCVD_ACCESS_NAK].name		= "req_remote_access_errors",
	[NHCA_CNT_SENT_ACCESS_NAK].name		= "resp_remote_access_errors",
	[NHCA_CNT_RCVD_INVAL_NAK].name		= "req_remote_invalid_request",
	[NHCA_CNT_SENT_INVAL_NAK].name		= "resp_remote_invalid_request",
	[NHCA_CNT_RCVD_OP_NAK].name		= "req_remote_op_errors",
	[NHCA_CNT_SENT_OP_NAK].name		= "resp_remote_op_errors",
	[NHCA_CNT_ACKS_PIGGYBACKED].name		= "acks_with_requests",
	[NHCA_CNT_PROBE].name			= "early_retransmits",
	[NHCA_CNT_TIMEOUT].name			= "local_ack_timeout_err",
	[NHCA_CNT_RETRY_EXCEEDED].name		= "retry_exceeded_err",
	[NHCA_CNT_RNR_RETRY_EXCEEDED].name	= "retry_rnr_exceeded_err",
	[NHCA_CNT_RETRANSMIT_PKTS].name		= "retransmit_pkts",
	[NHCA_CNT_PAGE_RETRY].name		= "odp_retransmits",
	[NHCA_CNT_SENDS].name			= "rdma_sends",
	[NHCA_CNT_RECVS].name			= "rdma_recvs",
	[NHCA_CNT_WRITE_REQUESTS].name		= "rx_write_requests",
	[NHCA_CNT_READ_REQUESTS].name		= "rx_read_requests",
	[NHCA_CNT_ATOMIC_REQUESTS].name		= "rx_atomic_requests",
	[NHCA_CNT_SEND_CQE_ERR].name		= "req_cqe_error",
	[NHCA_CNT_SEND_CQE_FLUSH].name		= "req_cqe_flush_error",
	[NHCA_CNT_RECV_CQE_ERR].name		= "resp_cqe_error",
	[NHCA_CNT_RECV_CQE_FLUSH].name		= "resp_cqe_flush_error",
	[NHCA_CNT_RECV_LENGTH_ERR].name		= "resp_local_length_error",
	[NHCA_CNT_LOCAL_PROT_ERR].name		= "local_prot_err",
	[NHCA_CNT_CQ_OVERFLOW].name		= "cq_overflow",
	[NHCA_CNT_BAD_RING].name		= "bad_ring",
	[NHCA_CNT_CNP_RCVD].name		= "rx_cnp_pkts",
	[NHCA_CNT_CNP_SENT].name		= "tx_cnp_pkts",
	[NHCA_CNT_RX_ECN_MARKED].name		= "rx_ecn_marked_pkts",
	[NHCA_CNT_LINK_DOWNED].name		= "link_downed",
	[NHCA_CNT_DIRECT_BEGUN].name		= "direct_io_begun",
	[NHCA_CNT_DIRECT_ENDED].name		= "direct_io_ended",
	[NHCA_CNT_DIRECT_BLOCKS].name		= "direct_io_blocks",
	[NHCA_CNT_DIRECT_EDGES].name		= "direct_io_edges",
	[NHCA_CNT_DIRECT_AGAIN].name		= "direct_io_again",
	[NHCA_CNT_DIRECT_ERRORS].name		= "direct_io_errors",
	[NHCA_CNT_DIRECT_READ_BYTES].name	= "direct_read_bytes",
	[NHCA_CNT_DIRECT_WRITE_BYTES].name	= "direct_write_bytes",
	[NHCA_CNT_DIRECT_WAITS].name		= "direct_waits",
	[NHCA_CNT_DIRECT_REFILLS].name		= "direct_refills",
	[NHCA_CNT_DIRECT_SPLITS].name		= "direct_splits",
	[NHCA_CNT_DIRECT_LOST].name		= "direct_lost_blocks",
	[NHCA_CNT_DIRECT_FLUSHES].name		= "direct_flushes",
};

struct rdma_hw_stats *nhca_alloc_hw_stats(struct ib_device *ibdev, u32 port)
{
	static_assert(ARRAY_SIZE(counter_descs) == NHCA_CNT_MAX);

	return rdma_alloc_hw_stats_struct(counter_descs, NHCA_CNT_MAX,
					  RDMA_HW_STATS_DEFAULT_LIFESPAN);
}

void nhca_counters_add(struct nhca_counters __percpu *counters, u64 *values)
{
	unsigned int i;
	int cpu;

	for_each_possible_cpu(cpu) {
		const struct nhca_counters *c = per_cpu_ptr(counters, cpu);

		for (i = 0; i < NHCA_CNT_MAX; i++)
			values[i] += READ_ONCE(c->v[i]);
	}
}

void nhca_counters_sum(struct nhca_counters __percpu *counters, u64 *values)
{
	memset(values, 0, NHCA_CNT_MAX * sizeof(values[0]));
	nhca_counters_add(counters, values);
}

int nhca_get_hw_stats(struct ib_device *ibdev, struct rdma_hw_stats *stats,
		      u32 port, int index)
{
	if (port != NHCA_PORT)
		return -EINVAL;
	nhca_counters_sum(to_nhca_dev(ibdev)->counters, stats->value);
	return NHCA_CNT_MAX;
}
