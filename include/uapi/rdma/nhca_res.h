/* SPDX-License-Identifier: ((GPL-2.0 WITH Linux-syscall-note) OR Linux-OpenIB) */
/*
 * Raw contexts of objects (RDMA_NLDEV_ATTR_RES_RAW), which `rdma resource show -r` dumps: a
 * snapshot of the driver's state, in host byte order.  `rdma resource show -dd` shows the fields by
 * name, except size, reserved fields, fields that the RDMA core shows for each driver (for example
 * the QPN), oldest_wr_id of a queue pair, and lkey, va, length and pvo of a region.
 *
 * The first field of each context is @size, the length of the context in bytes.  Later drivers
 * append fields and never move an existing one.  A reader must not read more than @size bytes.
 */
#ifndef NHCA_RES_H
#define NHCA_RES_H

#include <linux/types.h>

/* nhca_res_qp.peer: capability bits of the peer, as far as they are known; 0: none is known */
#define NHCA_RES_PEER_PRESENT	0x01	/* the peer is nhca */
#define NHCA_RES_PEER_CONFIRMED	0x02	/* the peer has detected that this end is nhca */
#define NHCA_RES_PEER_NO_ICRC_OK 0x04	/* the peer accepts packets without an ICRC */
#define NHCA_RES_PEER_SAME_HOST	0x80	/* no capability bit: the peer is on the same host */

/**
 * struct nhca_res_qp - a queue pair
 * @size:      bytes of this struct
 * @qpn:       QP number
 * @type:      enum ib_qp_type
 * @state:     enum ib_qp_state
 * @dest_qpn:  connected QP: remote QPN
 * @path_mtu:  connected QP: path MTU in bytes
 * @udp_sport: connected QP: UDP source port
 * @peer:      NHCA_RES_PEER_*
 * @tx_queued: packets of the QP that the network stack of this host holds
 * @sq_size:   entries of the send queue
 * @sq_posted: posted entries that the requester has not fetched
 * @sq_outstanding: entries that the requester has fetched and not completed
 * @sq_psn:    PSN of the next new request
 * @sq_una:    oldest unacknowledged PSN
 * @sq_nxt:    the PSN after the highest one that was sent
 * @cwnd:      congestion window, in PSNs
 * @ssthresh:  slow start threshold, in PSNs
 * @rd_atomic: outstanding requests that count against max_rd_atomic
 * @retries_left: remaining retries after timeouts and PSN sequence NAKs, before the oldest request
 *             fails
 * @rnr_retries_left: remaining retries after RNR NAKs; 7: no limit
 * @rnr_wait:  1: the RNR timer runs
 * @rto_backoff: the local ACK timeout is multiplied by 2 to this power, but at most by the module
 *             parameter max_backoff
 * @tlp_count: tail loss probes sent since the last progress
 * @srtt_us:   smoothed round-trip time in microseconds; 0: unknown
 * @rttvar_us: variation of the round-trip time in microseconds; 0: unknown
 * @oldest_opcode: enum nhca_wr_opcode of the oldest fetched request that has not ended; ~0: none
 * @oldest_packets: PSNs that the oldest request uses
 * @oldest_sent: PSNs of the oldest request that were sent, or requested from the responder
 * @oldest_wr_id: wr_id of the oldest request, often a pointer of the process; -dd does not show it
 * @rq_posted: posted receives that the responder has not fetched; 0 with an SRQ
 * @rq_psn:    expected PSN
 * @msn:       message sequence number
 * @rq_bytes:  bytes received of the current SEND
 * @nak_syndrome: syndrome of the NAK that the responder has to send; 0: no NAK has to be sent
 * @deferred:  received packets that wait for on-demand pages or for a disk
 * @responder_active: responder resources in use: the oldest READ, atomic, FLUSH or ATOMIC WRITE
 *             whose response was not yet sent completely, and all later ones
 * @reserved:  0
 */
struct nhca_res_qp {
	__u32 size;
	__u32 qpn;
	__u32 type;
	__u32 state;
	__u32 dest_qpn;
	__u32 path_mtu;
	__u32 udp_sport;
	__u32 peer;
	__u32 tx_queued;
	__u32 sq_size;
	__u32 sq_posted;
	__u32 sq_outstanding;
	__u32 sq_psn;
	__u32 sq_una;
	__u32 sq_nxt;
	__u32 cwnd;
	__u32 ssthresh;
	__u32 rd_atomic;
	__u32 retries_left;
	__u32 rnr_retries_left;
	__u32 rnr_wait;
	__u32 rto_backoff;
	__u32 tlp_count;
	__u32 srtt_us;
	__u32 rttvar_us;
	__u32 oldest_opcode;
	__u32 oldest_packets;
	__u32 oldest_sent;
	__aligned_u64 oldest_wr_id;
	__u32 rq_posted;
	__u32 rq_psn;
	__u32 msn;
	__u32 rq_bytes;
	__u32 nak_syndrome;
	__u32 deferred;
	__u32 responder_active;
	__u32 reserved;
};

/**
 * struct nhca_res_channel - a channel
 * @size:     bytes of this struct
 * @qpn:      QPN of the channel
 * @type:     as in struct nhca_res_qp
 * @state:    as in struct nhca_res_qp
 * @reason:   as in struct nhca_channel_info
 * @job:      job id
 * @rcxts:    rCxts that the channel owns
 * @segment:  as in struct nhca_channel_info
 * @quantum:  as in struct nhca_channel_modify
 * @violation: as in struct nhca_channel_info
 * @tx_queued: packets of the channel that the network stack of this host holds
 * @reserved: 0
 * @sent:     packets sent
 * @sent_bytes: payload bytes sent
 * @received: packets received
 * @received_bytes: payload bytes received
 * @dropped:  sum of NHCA_CH_DROP_* (enum nhca_channel_counter)
 */
struct nhca_res_channel {
	__u32 size;
	__u32 qpn;
	__u32 type;
	__u32 state;
	__u32 reason;
	__u32 job;
	__u32 rcxts;
	__u32 segment;
	__u32 quantum;
	__u32 violation;
	__u32 tx_queued;
	__u32 reserved;
	__aligned_u64 sent;
	__aligned_u64 sent_bytes;
	__aligned_u64 received;
	__aligned_u64 received_bytes;
	__aligned_u64 dropped;
};

/**
 * struct nhca_res_cq - a completion queue
 * @size:      bytes of this struct
 * @entries:   capacity
 * @unpolled:  entries in the queue
 * @produced:  entries ever produced, modulo 2^32
 * @armed:     1: armed for the next completion; 2: armed for the next solicited completion; 0: not
 *             armed
 * @overrun:   1: a completion was lost because the queue was full
 */
struct nhca_res_cq {
	__u32 size;
	__u32 entries;
	__u32 unpolled;
	__u32 produced;
	__u32 armed;
	__u32 overrun;
};

/**
 * struct nhca_res_srq - a shared receive queue
 * @size:    bytes of this struct
 * @max_wr:  capacity
 * @posted:  posted receives
 * @limit:   IB_EVENT_SRQ_LIMIT_REACHED is raised when @posted falls below @limit; 0: never
 * @error:   1: user space has stored an impossible producer index
 * @reserved: 0
 */
struct nhca_res_srq {
	__u32 size;
	__u32 max_wr;
	__u32 posted;
	__u32 limit;
	__u32 error;
	__u32 reserved;
};

/**
 * struct nhca_res_mr - a memory region
 * @size:      bytes of this struct
 * @kind:      0: pages with table entries (pinned memory of a process, device memory, a fast
 *             registration), 1: the DMA MR of kernel consumers, 2: a scatter/gather list,
 *             3: on-demand paging, 4: a dma-buf, 5: a part of a file or block device
 * @valid:     1: the keys of the region are valid
 * @access:    enum ib_access_flags
 * @bound_mws: memory windows that are bound to the region
 * @page_shift: log2 of the page size of the table entries; 0: the region has none
 * @lkey:      L_Key and R_Key
 * @reserved:  0
 * @tces:      number of table entries; 0: the region has none
 * @va:        IOVA of the first byte
 * @length:    number of bytes
 * @pvo:       protocol virtual offset of the first byte; 0: the region has none
 */
struct nhca_res_mr {
	__u32 size;
	__u32 kind;
	__u32 valid;
	__u32 access;
	__u32 bound_mws;
	__u32 page_shift;
	__u32 lkey;
	__u32 reserved;
	__aligned_u64 tces;
	__aligned_u64 va;
	__aligned_u64 length;
	__aligned_u64 pvo;
};

#endif /* NHCA_RES_H */
