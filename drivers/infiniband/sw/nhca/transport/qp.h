/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Queue pairs: each has a requester (send queue) and a responder (receive queue).  verbs/ checks
 * the arguments of verbs, and ingress/ passes received packets and frames on; this directory has
 * the states of QPs and executes requests.
 *
 * Locks: sq.lock and rq.lock are spinlocks that are held with BHs disabled.  Code that needs both
 * locks of a QP takes rq.lock first.  The locks of CQs, SRQs and receive rings nest inside them.
 * Code that holds any of these locks does not sleep.
 */
#ifndef NHCA_QP_H
#define NHCA_QP_H

#include <linux/mutex.h>
#include <linux/timer.h>
#include <linux/workqueue.h>

#include "../bh.h"
#include "../nhca.h"
#include "../memory/memory.h"
#include "../net/net.h"
#include "../observe/counters.h"
#include "../queue/cq.h"
#include "../queue/ring.h"
#include "../queue/rwq.h"
#include "../queue/srq.h"
#include "../wire/opseq.h"
#include "../wire/psn.h"
#include "rtx.h"
#include "window.h"

/* no PSN: PSNs have 24 bits */
#define NHCA_PSN_NONE		U32_MAX

/**
 * enum nhca_disk - whether an operation writes to a disk
 * @NHCA_DISK_NONE:   the operation has written no bytes to a region of a backing (memory/backing.h)
 * @NHCA_DISK_WRITES: the operation has written bytes to a region of a backing
 * @NHCA_DISK_WAITS:  all bytes of the operation are placed, and its last packet waits for the disk
 */
enum nhca_disk {
	NHCA_DISK_NONE,
	NHCA_DISK_WRITES,
	NHCA_DISK_WAITS,
};

/**
 * struct nhca_swr - a send work request that was copied out of the ring
 * @list:    in nhca_sq.inflight, in the order of posting, or in nhca_sq.retired
 * @next_spare: next request of nhca_sq.spares
 * @length:  bytes of the message
 * @psn:     first PSN, valid if @begun
 * @npsn:    number of PSNs (for READ: of response packets)
 * @sent:    number of PSNs sent, or requested by a READ, so far; decreases at a go-back
 * @high:    the largest value of @sent so far: a packet below @high is a retransmission
 * @got:     READ, atomic, FLUSH, ATOMIC WRITE: number of response packets received and placed
 * @zcopy:   number of the newest zero-copy reference of its packets, valid if @zcopied
 * @begun:   PSNs are assigned
 * @zcopied: some of its payload was sent by zero-copy reference
 * @status:  enum ib_wc_status: the error to report when the request is the oldest
 * @disk:    READ: enum nhca_disk
 * @clock:   nhca_trace_clock() when PSNs were assigned
 * @op:      number of the request, for nhca_iter_for(), valid if @begun
 * @wqe:     the checked copy of the WQE, with its SGEs or inline data
 */
struct nhca_swr {
	union {
		struct list_head list;
		struct nhca_swr *next_spare;
	};
	u32 length;
	u32 psn;
	u32 npsn;
	u32 sent;
	u32 high;
	u32 got;
	u32 zcopy;
	bool begun;
	bool zcopied;
	u8 status;
	u8 disk;
	u64 clock;
	u64 op;
	/* last, because it ends in a flexible array */
	struct nhca_send_wqe wqe;
};

/**
 * struct nhca_sq - send queue and requester
 * @lock:     protects all members, except those that @post_lock protects
 * @post_lock: taken with interrupts disabled; for kernel consumers it protects @prod and the
 *           producer side of @ring
 * @ring:     send ring, of struct nhca_send_wqe
 * @prod:     kernel consumers: number of entries posted
 * @fetched:  number of entries copied out of the ring
 * @cons:     number of entries retired, with or without a completion
 * @max_wr:   number of entries of @ring that the consumer was granted
 * @max_sge:  number of SGEs of a request that the consumer was granted
 * @max_inline: bytes of inline data of a request that the consumer was granted
 * @allowed:  operations that the QP may execute, BIT_ULL(NHCA_WR_*) each; constant
 * @kicked:   bit 0: there may be work, so the next nhca_sq_unlock() runs the requester; set by
 *           nhca_sq_kick(), without @lock, and by holders of @lock
 * @inflight: requests (struct nhca_swr) that were copied out of the ring and have not ended
 * @retired:  requests that have ended, but complete later, in the order of posting: the network
 *           stack still reads buffers of this or an earlier request, or the budget is used up
 * @spares:   requests kept for reuse; each has room for any WQE
 * @nspares:  number of requests in @spares
 * @nlocal:   number of local operations that acknowledgments have completed since the last pass
 * @cur:      the request of @inflight to send from next, or NULL
 * @psn:      next PSN to assign
 * @una:      oldest unacknowledged PSN
 * @nxt:      PSN after the last one that was sent or requested by a READ
 * @window:   congestion window
 * @since_ack: number of packets sent since the last one with AckReq; NHCA_CWND_MAX after a go-back,
 *           so that the next packet sets AckReq
 * @ackreq_pending: a consumer waits for an ACK that no packet has requested: a signaled request was
 *           sent, or a signaled local operation follows requests that were sent
 * @ackreq_boost: number of further requests that set AckReq even if they are unsignaled; see
 *           NHCA_ACKREQ_BOOST
 * @rd_atomic: number of outstanding READ requests, atomics, FLUSHes and ATOMIC WRITEs
 * @rnr_retries: number of retries after RNR NAKs that are left for the oldest request
 * @rnr_wait: the RNR timer runs, and nothing is sent
 * @gone_back: the requester went back to @una, and nothing has been acknowledged since then:
 *           implied NAKs are ignored, and a sequence NAK costs a retry
 * @empty_ackreqs: number of packets that nhca_send_empty_ackreq() has sent since the last progress;
 *           at most NHCA_EMPTY_ACKREQ_MAX
 * @txq_wakes: nhca_txq.wakes at the last timeout; see nhca_flow_queued()
 * @rtx:      round-trip times, timeouts and retries; owned
 * @timer:    local ACK timer or RNR timer
 * @draining: the QP is in SQD, and not all requests that had begun are complete yet
 * @fault:    the requester's wait for on-demand pages or a disk; owned
 * @ops:      number of the last request that began
 * @pace:     rate limit; NULL until a limit is set for the first time; owned
 * @burst:    packets of the current pass that are not sent yet
 * @loop:     the peer QP, if this pass holds the peer's rq.lock for the same-host path; see loop.c
 * @loop_held: number of PSNs executed since the peer's rq.lock was taken
 */
struct nhca_sq {
	/* all but @post_lock's members */
	spinlock_t lock;
	/* @prod and the producer side of @ring */
	spinlock_t post_lock;
	struct nhca_ring ring;
	u32 prod;
	u32 fetched;
	u32 cons;
	u32 max_wr;
	u32 max_sge;
	u32 max_inline;
	u64 allowed;
	unsigned long kicked;
	struct list_head inflight;
	struct list_head retired;
	struct nhca_swr *spares;
	u32 nspares;
	u32 nlocal;
	struct nhca_swr *cur;
	u32 psn;
	u32 una;
	u32 nxt;
	struct nhca_window window;
	u32 since_ack;
	u32 rd_atomic;
	u8 rnr_retries;
	bool rnr_wait;
	bool gone_back;
	bool draining;
	bool ackreq_pending;
	u8 ackreq_boost;
	u8 empty_ackreqs;
	struct nhca_rtx *rtx;
	struct timer_list timer;
	struct nhca_fault *fault;
	u64 ops;
	struct nhca_pace *pace;
	struct nhca_burst *burst;
	struct nhca_qp *loop;
	u32 loop_held;
	u32 txq_wakes;
};

/**
 * struct nhca_res - responder resource: a READ, atomic, FLUSH or ATOMIC WRITE that is being
 * answered, or is remembered for a duplicate (IBTA 9.7.4.1.1, A19)
 * @psn:    first PSN
 * @npsn:   number of PSNs
 * @opcode: opcode of the request, without the bits of the transport service
 * @pd:     protection domain that the key must have
 * @busy:   a response is due
 * @ref:    READ of several packets: the R_Key reference, until the READ is answered.  A response
 *           that is sent again has no reference: the key is checked for each packet
 * @replay: the response is sent again, for a duplicate
 * @va:     READ: address of the request
 * @rkey:   READ: R_Key of the request
 * @len:    READ: length of the request in bytes
 * @from:   READ: the first PSN offset that the response covers
 * @end:    READ: the PSN offset after the last one that the response covers
 * @sent:   READ: PSN offset of the next response packet
 * @stop:   READ: byte offset at which the response ends
 * @high:   READ: the largest value of @sent so far
 * @orig:   atomic: the value before the operation
 * @msn:    MSN in the AETH of the response
 * @op:     number of the request, for nhca_iter_for()
 * @zcopy:  READ: packets may refer to pages of the region: see nhca_iter_ahead()
 */
struct nhca_res {
	u32 psn;
	u32 npsn;
	u8 opcode;
	bool busy;
	bool replay;
	u32 rkey;
	struct ib_pd *pd;
	struct nhca_rkey_ref ref;
	u64 va;
	u32 len;
	u32 from;
	u32 sent;
	u32 end;
	u32 stop;
	u32 high;
	u64 orig;
	u32 msn;
	bool zcopy;
	u64 op;
};

/**
 * struct nhca_rq - receive queue and responder
 * @lock:    protects all members
 * @wq:      receive ring; not used with an SRQ, nor by XRC
 * @key_user: key user for receive buffers; its protection domain is that of the SRQ, if there is
 *           one, and may differ from that of the QP (IBTA 10.2.3)
 * @rwr:     memory for the receive request of the message that is arriving
 * @xsrq:    XRC target: the SRQ of the request that is being executed
 * @srq_id:  XRC target: number and serial number of the SRQ of the last request, and of @rwr
 * @have_rwr: @rwr is valid
 * @seq:     state of the opcode sequence
 * @psn:     expected PSN
 * @msn:     number of messages completed, modulo 2^24
 * @recv_off: number of bytes placed of the message that is arriving
 * @wr_ref:  R_Key reference of the RDMA WRITE that is arriving, if the WRITE has several packets
 * @wr_left: bytes of this WRITE that have not arrived
 * @wr_len:  length of this WRITE in bytes
 * @op:      number of the SEND, WRITE or FLUSH that is arriving, for nhca_iter_for()
 * @op_psn:  first PSN of the message with number @op, or NHCA_PSN_NONE
 * @disk:    enum nhca_disk of the message with number @op
 * @last_opcode: NHCA_DISK_WAITS: opcode of the message's last packet
 * @last_len: NHCA_DISK_WAITS: payload bytes of the message's last packet
 * @drop:    UC: drop packets until the next message begins
 * @unbroken: UC: each packet of the connection has had the expected PSN, so the sender knew the
 *           first PSN
 * @nak_sent: a sequence or RNR NAK was sent, and the expected PSN has not been executed since then
 * @ack_due: an ACK of everything before @psn is due
 * @ack_piggyback: the ACK that is due may wait for a request that can carry it
 * @syndrome: AETH syndrome of the NAK that is due
 * @nak_due: a NAK is due, and replaces the ACK
 * @nak_psn: PSN of the NAK that is due
 * @refused_psn: PSN of the request that the newest NAK is for; if @fatal, of the refused request
 * @fatal:   a request was refused.  A reliable QP sends a NAK, and repeats the NAK if the request
 *           comes again.  The QP goes to error and executes nothing more.  Set until a reset
 * @fatal_event: asynchronous event to raise when a refused request puts the QP in error, or -1
 * @res:     ring of responder resources; the resource with index i is at i % @nres; allocated for
 *           the first request that needs a resource
 * @nres:    number of responder resources
 * @res_head: index of the next resource to fill; see nhca_res_new() for its range
 * @res_tail: index of the first resource that may be busy
 * @fault:   the responder's wait for on-demand pages or a disk; owned
 * @ops:     number of the last request that got a responder resource or @op
 * @burst:   response packets of the current pass that are not sent yet; sent at the end of the pass
 *           at the latest
 * @deferred: packets that wait for on-demand pages or a disk
 * @ndeferred: number of packets in @deferred
 * @deferred_bytes: bytes of memory that these packets occupy
 */
struct nhca_rq {
	/* all members */
	spinlock_t lock;
	enum nhca_opseq seq;
	struct nhca_rwq wq;
	struct nhca_key_user key_user;
	struct nhca_rwr *rwr;
	struct nhca_srq *xsrq;
	u64 srq_id;
	u32 psn;
	u32 msn;
	u32 recv_off;
	struct nhca_rkey_ref wr_ref;
	u32 wr_left;
	u32 wr_len;
	u64 op;
	u32 op_psn;
	u32 last_len;
	u8 last_opcode;
	u8 disk;
	bool have_rwr;
	bool drop;
	bool unbroken;
	bool nak_sent;
	bool ack_due;
	bool ack_piggyback;
	bool nak_due;
	bool fatal;
	u8 syndrome;
	int fatal_event;
	u32 nak_psn;
	u32 refused_psn;
	struct nhca_res *res;
	u32 nres;
	u32 res_head;
	u32 res_tail;
	u32 ndeferred;
	u32 deferred_bytes;
	struct nhca_fault *fault;
	u64 ops;
	struct nhca_burst *burst;
	struct list_head deferred;
};

/**
 * struct nhca_piggyback - ACKs that wait for a request that can carry them; see piggyback.c
 * @pending: PSN of the waiting ACK, and NHCA_PIGGYBACK_PENDING; 0: no ACK waits.  The responder
 *           sets the value with rq.lock held.  The requester takes the value by an atomic exchange,
 *           and restores it if the request was not sent
 * @req_at:  time of arrival of the last request that is to be acknowledged, in units of 1,024 ns;
 *           0: this QP has sent a request since then
 * @quick:   number of consecutive quick replies
 * @needed:  an ACK may wait for a reply only if @quick is at least @needed
 * @good:    number of quick replies since @needed changed
 * @base:    PSN before which everything is acknowledged; rq.lock protects it
 * @last:    expected PSN when the newest ACK became due; @base gets this value when the ACK has
 *           been sent; rq.lock protects it
 * @timer:   sends an ACK that has waited too long
 * @rest:    work item that continues READ responses after a pass has used up its budget
 * @qp:      the queue pair
 *
 * Requester and responder write @req_at, @quick, @needed and @good without a common lock.
 */
struct nhca_piggyback {
	atomic_t pending;
	u32 req_at;
	u32 quick;
	u32 needed;
	u32 good;
	u32 base;
	u32 last;
	struct timer_list timer;
	struct work_struct rest;
	struct nhca_qp *qp;
};

/**
 * struct nhca_qp_attr - attributes set by ibv_modify_qp(), as in struct ib_qp_attr
 * @qkey:        Q_Key
 * @dest_qp_num: QPN of the peer
 * @qp_access_flags: rights of the peer: IB_ACCESS_REMOTE_* and IB_ACCESS_FLUSH_*
 * @pkey_index:  index of the P_Key
 * @port_num:    1, the only port
 * @path_mtu:    enum ib_mtu
 * @timeout:     local ACK timeout, in the units of ibv_modify_qp(); 0: none
 * @retry_cnt:   number of retries after a timeout or a sequence NAK
 * @rnr_retry:   number of retries after an RNR NAK; 7: no limit
 * @min_rnr_timer: delay that RNR NAKs of this QP request, as encoded in the AETH
 * @max_rd_atomic: maximum number of outstanding READs, atomics, FLUSHes and ATOMIC WRITEs
 * @max_dest_rd_atomic: the same for requests of the peer
 * @en_sqd_async_notify: raise IB_EVENT_SQ_DRAINED when the QP has drained in SQD
 *
 * The struct does not have all members of struct ib_qp_attr, because there may be very many QPs, so
 * the struct must be small.  nhca_query_qp() computes the other attributes from other members of
 * struct nhca_qp.
 */
struct nhca_qp_attr {
	u32 qkey;
	u32 dest_qp_num;
	int qp_access_flags;
	u16 pkey_index;
	u8 port_num;
	u8 path_mtu;
	u8 timeout;
	u8 retry_cnt;
	u8 rnr_retry;
	u8 min_rnr_timer;
	u8 max_rd_atomic;
	u8 max_dest_rd_atomic;
	u8 en_sqd_async_notify;
};

struct nhca_channel;
struct nhca_pace;
struct nhca_qp_ops;
struct nhca_rss;

/**
 * struct nhca_loop_path - a datagram that allows the same-host path; protected by nhca_rq.lock
 * @qpn: QP that has sent the datagram; 0: no datagram; also read without the lock, by READ_ONCE()
 * @tclass: traffic class of the datagram, without ECN
 * @saddr: source address of the datagram
 * @daddr: destination address of the datagram
 */
struct nhca_loop_path {
	u32 qpn;
	u8 tclass;
	struct in6_addr saddr;
	struct in6_addr daddr;
};

/**
 * struct nhca_qp - a queue pair
 * @ibqp:   the RDMA core's part
 * @ops:    operations of this kind of QP, set when the QP is created (verbs/objects.h); NULL for
 *           the hidden QP of a work queue
 * @dev:    its device
 * @qpn:    QP number; key of the module's table of QPs, which all devices share.  The GSI QP is not
 *           in the table, but in nhca_dev.gsi
 * @state:  written with both locks held, except that nhca_qp_set_error() and nhca_qp_set_sqe()
 *           change it atomically without locks; read with READ_ONCE()
 * @who:    identity for counters and traces; verbs/counter.c changes the set of counters
 * @modify: serializes modifications; taken by verbs/
 * @key_user: for remote access and send buffers; an XRC target uses the domain of rq.xsrq
 * @xrcd:   XRC target: its XRC domain
 * @attr:   attributes; written with both locks held
 * @mtu:    path MTU in bytes
 * @sport:  UDP source port of its packets
 * @sig_all: all send requests are signaled
 * @user:   user space owns the rings
 * @events: QP of a kernel consumer: bit mask of the asynchronous events that @kick has yet to raise
 * @last_wqe_sent: IB_EVENT_QP_LAST_WQE_REACHED was raised
 * @comm_est: IB_EVENT_COMM_EST was raised
 * @gen:    generation of the connection: counts resets, changes of the peer, and the destruction;
 *           written with both locks held.  nhca_rx_enter() drops packets that were checked in an
 *           earlier generation
 * @mark:   random number in the place of the ICRC in packets without ICRC.  A reset changes
 *           the mark, so receivers of earlier packets do not have the new one.  Written with both
 *           locks held
 * @peer_mark: the peer's @mark when nhca_loop_found() found the peer; valid if @peer has
 *           NHCA_PEER_SAME_HOST; READ_ONCE()
 * @peer:   NHCA_CAP_* of the newest accepted packet of the peer, and NHCA_PEER_SAME_HOST; 0: the
 *           peer is not known to be nhca, or may have changed; READ_ONCE()
 * @loop_path: UD: the last datagram that came through lo
 * @loop_until: jiffies until which received packets allow the same-host path; READ_ONCE()
 * @watched_until: jiffies until which nhca_loop_found() returns false, because a packet socket or a
 *           queueing discipline was found; READ_ONCE()
 * @cnp_sent: jiffies when the last CNP was sent; written by the CPU that receives a batch
 * @av:     address vector of the peer of a connected QP; written with both locks held
 * @flow:   counts its packets in the network stack; counted reference
 * @channel: nhca_channel_qp_ops: the channel (rcxt/); owned.  A QP of this kind uses only these
 *           other members: @ibqp, @ops, @dev, @qpn, @who, @modify, @user, @owner and the limits in
 *           @sq.  (nhca_query_qp() also reads @xrcd, @sig_all and the limits in @rq, which are 0.)
 *           No function of transport/ is called for the QP
 * @rss:    nhca_rss_qp_ops: the table that chooses the queue of a frame (net/rss.c); owned.  A QP
 *           of this kind uses only the other members that the description of @channel lists.  No
 *           function of transport/ but nhca_raw_rx() is called for the QP
 * @kick:   bottom half that raises @events and runs requester and responder, for example after a
 *           post with interrupts disabled, or when the network stack has released packets
 * @sq:     send queue and requester
 * @rq:     receive queue and responder
 * @piggyback: ACKs for requests that @rq has received, which are sent with requests of @sq; owned
 * @memcg:  memory cgroup that is charged for allocations of requester and responder; NULL: none
 * @mcast:  UD: its attachments to multicast groups (mcast.c); under RTNL
 * @owner:  the user whose share of the device's pools the QP uses; counted reference; NULL: the
 *           kernel, or a process with CAP_SYS_RESOURCE
 * @creator: the process that created the QP (memory/pageref.h); counted; NULL: the kernel
 */
struct nhca_qp {
	struct ib_qp ibqp;
	const struct nhca_qp_ops *ops;
	struct nhca_dev *dev;
	u32 qpn;
	enum ib_qp_state state;
	struct nhca_who who;
	struct mutex modify;	/* serializes modifications */
	struct nhca_key_user key_user;
	struct ib_xrcd *xrcd;
	struct nhca_qp_attr attr;
	u32 mtu;
	u16 sport;
	bool sig_all;
	bool user;
	bool last_wqe_sent;
	bool comm_est;
	u32 gen;
	__le32 mark;
	__le32 peer_mark;
	u8 peer;
	struct nhca_loop_path loop_path;
	atomic_t events;
	unsigned long cnp_sent;
	unsigned long loop_until;
	unsigned long watched_until;
	struct nhca_av *av;
	struct nhca_flow *flow;
	struct nhca_channel *channel;
	struct nhca_rss *rss;
	struct nhca_bh kick;
	struct nhca_sq sq;
	struct nhca_rq rq;
	struct nhca_piggyback *piggyback;
	struct mem_cgroup *memcg;
	struct hlist_head mcast;
	struct nhca_user *owner;
	struct nhca_pageref_owner *creator;
};

static inline struct nhca_qp *to_nhca_qp(struct ib_qp *ibqp)
{
	return container_of(ibqp, struct nhca_qp, ibqp);
}

static inline struct nhca_srq *nhca_qp_srq(const struct nhca_qp *qp)
{
	return qp->ibqp.srq ? to_nhca_srq(qp->ibqp.srq) : NULL;
}

/* Return: true if the QP has a receive queue: it uses no SRQ, and is not XRC. */
static inline bool nhca_qp_has_rq(const struct nhca_qp *qp)
{
	return qp->rq.wq.ring.hdr;
}

/* ---- qp.c, table.c: life, state and number of a QP ---- */

/**
 * struct nhca_qp_rings - rings of a QP of user space
 * @sq: in: the send ring that user space requests; out: what user space gets
 * @rq: the same for the receive ring; @rq.uc is set even if the QP has no receive ring
 */
struct nhca_qp_rings {
	struct nhca_ring_user sq;
	struct nhca_ring_user rq;
};

/**
 * nhca_qp_init - initialize a QP whose attributes verbs/ has checked
 * @qp:    the caller has set ibqp, ops, dev, who, user, owner, xrcd, sig_all and modify, and zeroed
 *         all other members
 * @init:  only cap is used; on return cap has the granted values, which may be larger
 * @rings: of user space; NULL for a kernel consumer
 *
 * On success the QP is in RESET, nhca_qp_find() finds it, and the function has set qpn.
 * Context: process, sleeps.
 * Return: 0; -ENOMEM: no memory; -EINVAL: memory was given for a ring that the QP does not have;
 * -EBUSY: no free number was found; or an error of nhca_ring_alloc().
 */
int nhca_qp_init(struct nhca_qp *qp, struct ib_qp_init_attr *init, struct nhca_qp_rings *rings);

/**
 * nhca_qp_fini - undo nhca_qp_init()
 * @qp: the QP
 *
 * Afterwards no requester or responder of the QP runs, and no lookup finds the QP.  Windows that
 * are bound through the QP are closed before its number is free.
 * Context: process, sleeps.
 */
void nhca_qp_fini(struct nhca_qp *qp);

/**
 * nhca_qp_modify - apply attributes and a state transition that verbs/ has checked
 * @qp:   the QP
 * @new:  the new state
 * @attr: attributes of ibv_modify_qp(); the caller has checked that they are within limits
 * @mask: IB_QP_*: the attributes that are valid
 * Context: process, sleeps; nhca_qp.modify held.
 * Return: 0; -ENOMEM: no memory; an error of nhca_av_create(); -EINVAL: the state of the QP has
 * changed and does not allow the transition; -EBUSY: the number of responder resources would change
 * while responses are due.  On an error no attribute is changed.
 */
int nhca_qp_modify(struct nhca_qp *qp, enum ib_qp_state new,
		   const struct ib_qp_attr *attr, int mask);

/**
 * nhca_qp_dump - fill in the state of a QP with requester and responder, for rdma resource
 * @qp:  the QP
 * @res: filled in
 *
 * The function takes the locks of the two halves, one after the other.
 * Context: process.
 */
void nhca_qp_dump(struct nhca_qp *qp, struct nhca_res_qp *res);

/**
 * nhca_qp_set_error - move a QP to the error state
 * @qp:    the QP
 * @event: asynchronous event to raise, or -1
 *
 * nhca_qp.kick, or a caller of nhca_qp_flush(), flushes the QP later, so the caller of this
 * function may hold any lock.
 * Context: any.
 */
void nhca_qp_set_error(struct nhca_qp *qp, int event);

/**
 * nhca_qp_find - look up the QP of a packet
 * @dev: used only for QPN 1 (GSI), which each device has; otherwise it may be NULL
 * @qpn: QPN of the packet
 * Context: RCU read side.
 * Return: the QP or NULL.
 */
struct nhca_qp *nhca_qp_find(struct nhca_dev *dev, u32 qpn);

/**
 * nhca_qpn_reserve - reserve a number in the table of QPs; lookups of this number find no QP
 * nhca_qpn_free - free a number
 * @qpn: the number, filled in
 *
 * Channels, and raw packet QPs with an indirection table, use these functions: their packets are
 * not looked up in the table.
 * Context: process, sleeps.
 * Return: 0; -ENOMEM: no memory; -EBUSY: no free number was found.
 */
int nhca_qpn_reserve(u32 *qpn);
void nhca_qpn_free(u32 qpn);

/**
 * nhca_qpn_place - compute the position of a QPN in the order in which numbers are assigned
 * nhca_qpn_upcoming - get the position of the number that is tried first for the next QP
 * @qpn: NHCA_QPN_MIN to NHCA_QPN_MAX
 *
 * Fault injection uses the positions: it identifies QPs by the order in which they were made.
 * Context: any.
 * Return: the position.
 */
u32 nhca_qpn_place(u32 qpn);
u32 nhca_qpn_upcoming(void);

int nhca_qp_table_init(void);
void nhca_qp_table_exit(void);

/* Return: rate limit of a QP in thousands of bits a second, or 0; one of the QP's locks held */
u32 nhca_pace_rate(const struct nhca_qp *qp);

/* ---- the requester ---- */

/**
 * nhca_send_doorbell - run the requester after a post
 * @qp: the QP
 *
 * If another CPU holds sq.lock, that CPU runs the requester when it releases the lock.  If
 * interrupts are disabled, nhca_qp.kick runs the requester.
 * Context: any, also with interrupts disabled.
 */
void nhca_send_doorbell(struct nhca_qp *qp);

/**
 * nhca_send_post - post a request of a kernel consumer, without ringing the doorbell
 * @qp: the QP
 * @wr: the request
 * Context: any.
 * Return: 0; -ENOMEM: the ring is full; -EINVAL: too many SGEs, or too many bytes of inline data;
 * -EOPNOTSUPP: this QP does not support the opcode.
 */
int nhca_send_post(struct nhca_qp *qp, const struct ib_send_wr *wr);

/**
 * nhca_recv_doorbell - if the QP is in error, have nhca_qp.kick flush receives that were posted
 * @qp: the QP
 * Context: any.
 */
void nhca_recv_doorbell(struct nhca_qp *qp);

#endif /* NHCA_QP_H */
