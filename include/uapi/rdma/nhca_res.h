/* SPDX-License-Identifier: ((GPL-2.0 WITH Linux-syscall-note) OR Linux-OpenIB) */
/*
 * Contexts of objects, as `rdma resource show -r` dumps them (RDMA_NLDEV_ATTR_RES_RAW): what the
 * driver knows at one moment, in the byte order of the host.  The same stands, with names, in the
 * details of `rdma resource show -dd`.
 *
 * Every context begins with @size, its bytes.  Fields are never moved; later drivers append some,
 * and a reader looks at no more than there are.
 */
#ifndef NHCA_RES_H
#define NHCA_RES_H

#include <linux/types.h>

/* nhca_res_qp.peer: what the peer has said of itself */
#define NHCA_RES_PEER_NHCA	0x01	/* it is nhca */
#define NHCA_RES_PEER_SEEN	0x02	/* and has seen that we are */
#define NHCA_RES_PEER_TAKES_BARE 0x04	/* takes packets without an ICRC */
#define NHCA_RES_PEER_HERE	0x80	/* is of this host */

/**
 * struct nhca_res_qp - a queue pair
 * @size:      bytes of this
 * @qpn, @type, @state: enum ib_qp_type, enum ib_qp_state
 * @dest_qpn, @path_mtu, @udp_sport: of a connection; bytes
 * @peer:      NHCA_RES_PEER_*
 * @in_stack:  packets that the network stack has
 * @sq_size, @sq_posted: entries of the send queue; posted and not looked at by the engine
 * @sq_outstanding: that it has begun with, or looked at, and that are not done
 * @sq_psn:    PSN of the next new request
 * @sq_una:    oldest PSN without an answer
 * @sq_next:   PSN behind the last one ever sent
 * @window, @threshold: PSNs that may be without an answer; up to which that grows fast
 * @rd_atomic: READs and atomics outstanding
 * @retries, @rnr_retries: left before the oldest request fails
 * @rnr_wait:  1: the peer has no receive posted, and is left alone for a while
 * @backoff:   the local ACK timeout is stretched by 2 to this power
 * @probes:    times that the oldest request was sent again before its timeout
 * @rtt_us, @rtt_dev_us: round trip, and how far others lie from it; 0: not known
 * @oldest_wr: enum nhca_wr_opcode of the oldest request that is not done; ~0: there is none
 * @oldest_packets, @oldest_sent: of it: PSNs that it takes; that were sent or asked for
 * @oldest_wr_id: of it
 * @rq_posted: receives that are posted; 0 with an SRQ
 * @rq_psn, @msn: PSN expected; messages completed
 * @rq_bytes:  of the SEND that is arriving, so far
 * @nak:       syndrome of a NAK that is owed; 0: none is
 * @parked:    packets that wait for on-demand pages
 * @answers:   READs and atomics that are being answered
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
	__u32 in_stack;
	__u32 sq_size;
	__u32 sq_posted;
	__u32 sq_outstanding;
	__u32 sq_psn;
	__u32 sq_una;
	__u32 sq_next;
	__u32 window;
	__u32 threshold;
	__u32 rd_atomic;
	__u32 retries;
	__u32 rnr_retries;
	__u32 rnr_wait;
	__u32 backoff;
	__u32 probes;
	__u32 rtt_us;
	__u32 rtt_dev_us;
	__u32 oldest_wr;
	__u32 oldest_packets;
	__u32 oldest_sent;
	__aligned_u64 oldest_wr_id;
	__u32 rq_posted;
	__u32 rq_psn;
	__u32 msn;
	__u32 rq_bytes;
	__u32 nak;
	__u32 parked;
	__u32 answers;
	__u32 reserved;
};

/**
 * struct nhca_res_channel - a channel; like a queue pair it begins with size, qpn, type and state
 * @reason, @job, @rcxts, @segment, @quantum, @violation: as in struct nhca_channel_info
 * @in_stack: packets that the network stack has
 * @sent, @sent_bytes, @received, @received_bytes: packets, and payload in them
 * @dropped:  packets that were dropped, for whatever reason; the channel's owner knows which
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
	__u32 in_stack;
	__u32 reserved;
	__aligned_u64 sent;
	__aligned_u64 sent_bytes;
	__aligned_u64 received;
	__aligned_u64 received_bytes;
	__aligned_u64 dropped;
};

/**
 * struct nhca_res_cq - a completion queue
 * @size:      bytes of this
 * @entries:   that fit
 * @waiting:   that nobody has read
 * @produced:  ever, as far as 32 bits go
 * @armed:     1: an event was asked for; 2: one of a solicited completion only
 * @overflown: 1: it was full when a completion came, which is lost
 */
struct nhca_res_cq {
	__u32 size;
	__u32 entries;
	__u32 waiting;
	__u32 produced;
	__u32 armed;
	__u32 overflown;
};

/**
 * struct nhca_res_srq - a shared receive queue
 * @size:    bytes of this
 * @max_wr:  receives that fit
 * @posted:  that are posted
 * @limit:   below which an event is raised; 0: none is
 * @broken:  1: its process broke the rules of the ring
 */
struct nhca_res_srq {
	__u32 size;
	__u32 max_wr;
	__u32 posted;
	__u32 limit;
	__u32 broken;
	__u32 reserved;
};

/**
 * struct nhca_res_mr - a memory region
 * @size:      bytes of this
 * @kind:      0: pinned pages behind table entries, 1: all memory, 2: a list of pieces,
 *             3: on demand
 * @open:      1: its key opens it
 * @access:    enum ib_access_flags
 * @windows:   that are bound to it
 * @page_shift, @tces: of its table entries, their number; 0: it has none
 * @lkey:      L_Key and R_Key
 * @va, @length: the bytes, as peers and work requests name them
 * @pvo:       protocol virtual offset of the first; 0: it has none
 */
struct nhca_res_mr {
	__u32 size;
	__u32 kind;
	__u32 open;
	__u32 access;
	__u32 windows;
	__u32 page_shift;
	__u32 lkey;
	__u32 reserved;
	__aligned_u64 tces;
	__aligned_u64 va;
	__aligned_u64 length;
	__aligned_u64 pvo;
};

#endif /* NHCA_RES_H */
