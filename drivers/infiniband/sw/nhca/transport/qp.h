/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Queue pairs: each has a requester (send queue) and a responder (receive queue).  verbs/qp.c
 * creates and modifies queue pairs, and ingress/udp.c hands packets over; all else about them
 * happens in transport/.
 *
 * Locks: sq.lock and rq.lock are spinlocks that disable BHs.  A change of state takes both, rq.lock
 * first.  The locks of CQs, SRQs and receive rings nest inside.  Code that holds one of them does
 * not sleep.
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

/**
 * struct nhca_swr - a send work request that was copied out of the ring
 * @list:    in nhca_sq.inflight, in the order of posting, or in nhca_sq.retired
 * @next_spare: next of nhca_sq.spares
 * @length:  bytes of the message
 * @psn:     first PSN, valid if @begun
 * @npsn:    number of PSNs (for READ: of response packets)
 * @sent:    PSNs sent, or requested by a READ, so far; decreases at a go-back
 * @high:    the largest value of @sent so far: a packet below it is a retransmission
 * @got:     READ: PSNs whose data has been placed
 * @zcopy:   number of the newest zero-copy reference of its packets, valid if @zcopied
 * @begun:   PSNs are assigned
 * @zcopied: some of its payload was sent by reference
 * @status:  enum ib_wc_status: the error to report when the request is the oldest
 * @clock:   nhca_trace_clock() when PSNs were assigned
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
	u64 clock;
	/* last, because it ends in a flexible array */
	struct nhca_send_wqe wqe;
};

/**
 * struct nhca_sq - send queue and requester
 * @lock:     protects all members, except those that @post_lock protects
 * @post_lock: irqsave; kernel consumers: @prod and the producer side of @ring
 * @ring:     of struct nhca_send_wqe
 * @prod:     kernel consumers: entries posted
 * @fetched:  entries copied out of the ring
 * @cons:     entries retired, with or without a completion
 * @max_wr, @max_sge, @max_inline: limits granted to the consumer
 * @note:     bit 0: work arrived while another CPU held @lock; see nhca_sq_unlock()
 * @inflight: requests (struct nhca_swr) copied out of the ring and not completed
 * @retired:  completed requests whose buffers, or those of earlier ones, the network stack still
 *           reads, or that exceed the budget of a pass; these complete later, in order
 * @spares, @nspares: requests kept for reuse; each has room for any WQE
 * @nlocal:   local operations that acknowledgments have completed since the last pass
 * @cur:      the request of @inflight to send from next, or NULL
 * @psn:      next PSN to assign
 * @una:      oldest unacknowledged PSN
 * @nxt:      PSN after the last one that was sent or requested by a READ
 * @window:   congestion window
 * @since_ack: packets sent since the last one with AckReq; NHCA_CWND_MAX after a go-back, so that
 *           the next packet sets AckReq
 * @ackreq_pending: a consumer waits for an ACK that no packet has requested: a signaled request was
 *           sent, or a signaled local operation follows what was sent
 * @ackreq_boost: number of next requests that set AckReq even if unsignaled; NHCA_ACKREQ_BOOST
 * @rd_atomic: outstanding READ requests, atomics, FLUSHes and ATOMIC WRITEs
 * @rnr_retries: retries after RNR NAKs that are left for the oldest request
 * @rnr_wait: the RNR timer runs, and nothing is sent
 * @gone_back: the requester went back to @una, and nothing was acknowledged since: implied NAKs are
 *           ignored, and a sequence NAK costs a retry
 * @blind:    requests for an ACK without payload, since the last progress; NHCA_BLIND_MAX
 * @turns:    nhca_txq.turns at the last timeout; see nhca_flow_in_line()
 * @rtx:      when to retransmit: round-trip times, timeouts and retries; owned
 * @timer:    local ACK timer or RNR timer
 * @draining: the QP is in SQD and not drained yet; IB_EVENT_SQ_DRAINED follows
 * @fault:    where the requester waits for on-demand pages; owned
 * @pace:     rate limit; NULL until the first is set; owned
 * @burst:    packets of the current pass, which leave at its end
 * @loop:     the peer, if this pass holds its rq.lock for the same-host path; see loop.c
 * @loop_held: PSNs executed since that lock was taken
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
	unsigned long note;
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
	u8 blind;
	struct nhca_rtx *rtx;
	struct timer_list timer;
	struct nhca_fault *fault;
	struct nhca_pace *pace;
	struct nhca_burst *burst;
	struct nhca_qp *loop;
	u32 loop_held;
	u32 turns;
};

/**
 * struct nhca_res - responder resource: a READ, atomic, FLUSH or ATOMIC WRITE that is being
 * answered, or is remembered for a duplicate (IBTA 9.7.4.1.1, A19)
 * @psn, @npsn: first PSN and number of PSNs
 * @opcode: of the request, without the service
 * @pd:     protection domain that the key must have
 * @busy:   a response is due
 * @ref:    READ of several packets: the R_Key reference, until the READ is answered; for a
 *           duplicate each packet checks the key instead
 * @replay: the response is sent again, for a duplicate
 * @va, @rkey, @len: of a READ request
 * @from, @end: READ: the response covers the PSN offsets from @from up to, but not including, @end
 * @sent:   READ: PSN offset of the next response packet
 * @stop:   READ: byte offset at which the response ends
 * @high:   READ: the largest value of @sent so far
 * @orig:   atomic: the value before the operation
 * @msn:    for the AETH of the response
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
};

/**
 * struct nhca_rq - receive queue and responder
 * @lock:    protects all members
 * @wq:      receive ring; not used with an SRQ
 * @key_user: key user for receive buffers; its protection domain is that of the SRQ, if there is
 *           one, and may differ from that of the QP (IBTA 10.2.3)
 * @rwr:     receive request of the message that is arriving
 * @xsrq:    XRC target: the SRQ of the request that is being executed
 * @srqn:    XRC target: the number of that SRQ; @rwr was taken from it
 * @have_rwr: @rwr is valid
 * @seq:     state of the opcode sequence
 * @psn:     expected PSN
 * @msn:     messages completed, modulo 2^24
 * @recv_off: bytes placed of the message that is arriving
 * @wr_ref:  R_Key reference of the RDMA WRITE that is arriving, if it has several packets
 * @wr_left: bytes of it that have not arrived
 * @wr_len:  its length in bytes
 * @drop:    UC: drop packets until the next message begins
 * @unbroken: UC: each packet of the connection has had the expected PSN, so its sender knew the
 *           first PSN
 * @nak_sent: a sequence or RNR NAK was sent, and the expected PSN has not arrived since
 * @ack_due: an ACK of everything before @psn is due
 * @ack_piggyback: this ACK may wait for a request that carries it
 * @syndrome: of the NAK that is due
 * @nak_due: a NAK is due, and replaces the ACK
 * @nak_psn: PSN of the NAK
 * @refused_psn: PSN of the request that the newest NAK is for; if @fatal, of the refused one
 * @fatal:   a request was refused: after the NAK the QP goes to error, executes nothing more, and
 *           repeats the NAK if the request comes again; set until a reset
 * @fatal_event: the asynchronous event to raise then, or -1
 * @res, @nres: ring of responder resources, entry i at i % @nres; allocated for the first request
 *           that needs one
 * @res_head: number of entries ever filled
 * @res_tail: first entry that may be busy
 * @fault:   where the responder waits for on-demand pages; owned
 * @burst:   response packets of the current pass, which leave at its end
 * @deferred, @ndeferred, @deferred_bytes: packets that wait for on-demand pages, their number, and
 *           the bytes of memory that they hold
 */
struct nhca_rq {
	/* all members */
	spinlock_t lock;
	enum nhca_opseq seq;
	struct nhca_rwq wq;
	struct nhca_key_user key_user;
	struct nhca_rwr *rwr;
	struct nhca_srq *xsrq;
	u32 srqn;
	u32 psn;
	u32 msn;
	u32 recv_off;
	struct nhca_rkey_ref wr_ref;
	u32 wr_left;
	u32 wr_len;
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
	struct nhca_burst *burst;
	struct list_head deferred;
};

/**
 * struct nhca_piggyback - ACKs that wait for a request that can carry them
 * @pending: PSN of the waiting ACK, and NHCA_PIGGYBACK_PENDING; 0: none.  Set under rq.lock; the
 *           requester takes it with an atomic exchange
 * @asked:   when the last request arrived that is to be acknowledged, in units of 1,024 ns; 0: a
 *           request was sent since
 * @quick:   consecutive quick replies
 * @needed:  value of @quick from which on an ACK waits for a reply
 * @good:    quick replies since @needed changed
 * @base:    PSN before which everything was acknowledged; rq.lock
 * @last:    value of @base after the ACK that is due has left; rq.lock
 * @timer:   sends an ACK that has waited too long
 * @rest:    work item that sends the rest of READ responses when a pass has used up its budget
 * @qp:      the queue pair
 *
 * Requester and responder write @asked, @quick, @needed and @good without a common lock.
 */
struct nhca_piggyback {
	atomic_t pending;
	u32 asked;
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
 * A subset, because there may be very many QPs; other members of struct nhca_qp imply the rest.
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
 * struct nhca_qp - a queue pair
 * @ibqp:   the RDMA core's part
 * @ops:    its kind, chosen when it is created (verbs/objects.h); NULL for the hidden QP of a work
 *           queue
 * @dev:    its device
 * @qpn:    number; key of the module's table of QPs, which all devices share (GSI: not in the
 *           table, nhca_dev.gsi)
 * @state:  written with both locks held, except that nhca_qp_set_error() and nhca_qp_set_sqe()
 *           change it atomically without locks; read with READ_ONCE()
 * @who:    identity for counters and traces; verbs/counter.c changes the set of counters
 * @modify: serializes modifications; held by verbs/qp.c
 * @key_user: key user for remote access and send buffers; constant, except for an XRC target, which
 *           uses the domain of rq.xsrq
 * @xrcd:   XRC target: its XRC domain
 * @attr:   attributes; written with both locks held
 * @mtu:    path MTU in bytes
 * @sport:  UDP source port of its packets
 * @sig_all: all send requests are signaled
 * @user:   user space owns the rings
 * @events: asynchronous events of a kernel consumer's QP that @kick has not raised yet, a bit
 *           each
 * @last_wqe_sent: IB_EVENT_QP_LAST_WQE_REACHED was raised
 * @comm_est: IB_EVENT_COMM_EST was raised
 * @gen:    generation of the connection: counts resets, changes of the peer, and the destruction;
 *           written with both locks held.  The gates drop packets that were checked in an earlier
 *           generation
 * @mark:   random number that packets without an ICRC carry in its place; new at each reset, so
 *           only a host that has seen packets of this connection knows it; written with both locks
 *           held
 * @peer_mark: @mark of the peer when nhca_loop_found() found it, valid with NHCA_PEER_IS_HERE;
 *           READ_ONCE()
 * @peer:   NHCA_CAP_* of the newest accepted packet of the peer, and NHCA_PEER_IS_HERE; 0: the peer
 *           is not known to be nhca, or may have changed; READ_ONCE()
 * @heard:  UD: source QPN of the last datagram that came through lo; READ_ONCE()
 * @cnp_sent: jiffies when the last CNP was sent to the peer; written by the CPU that receives a
 *           batch
 * @av:     path of a connected QP; written with both locks held
 * @flow:   its packets in the network stack
 * @channel: nhca_channel_qp_ops: the channel (rcxt/); owned.  Of the other members only @ibqp,
 *           @ops, @dev, @qpn, @who, @modify, @user and the limits in @sq are used then, and no
 *           function of transport/ is called for the QP
 * @rss:    nhca_rss_qp_ops: the table that chooses the queue of a frame (net/rss.c); owned.  Of the
 *           other members only those of a @channel are used then
 * @kick:   bottom half that raises @events and runs requester and responder, for example after a
 *           post with interrupts disabled, or when the network stack has released packets
 * @sq, @rq: the two halves
 * @piggyback: ACKs of what @rq has received that leave with requests of @sq; owned
 * @memcg:  memory cgroup that is charged for allocations of requester and responder; NULL: none
 * @owner:  the user whose share of the device's pools the QP uses; counted reference; NULL: the
 *           kernel, or a process with CAP_SYS_RESOURCE
 */
struct nhca_qp {
	struct ib_qp ibqp;
	const struct nhca_qp_ops *ops;
	struct nhca_dev *dev;
	u32 qpn;
	enum ib_qp_state state;
	struct nhca_who who;
	/* serializes modifications */
	struct mutex modify;
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
	u32 heard;
	atomic_t events;
	unsigned long cnp_sent;
	struct nhca_av *av;
	struct nhca_flow *flow;
	struct nhca_channel *channel;
	struct nhca_rss *rss;
	struct nhca_bh kick;
	struct nhca_sq sq;
	struct nhca_rq rq;
	struct nhca_piggyback *piggyback;
	struct mem_cgroup *memcg;
	struct nhca_user *owner;
};

static inline struct nhca_qp *to_nhca_qp(struct ib_qp *ibqp)
{
	return container_of(ibqp, struct nhca_qp, ibqp);
}

static inline struct nhca_srq *nhca_qp_srq(const struct nhca_qp *qp)
{
	return qp->ibqp.srq ? to_nhca_srq(qp->ibqp.srq) : NULL;
}

/* true if it has a receive queue, and not an SRQ */
static inline bool nhca_qp_has_rq(const struct nhca_qp *qp)
{
	return qp->rq.wq.ring.hdr;
}

/* ---- qp.c: life and state of a QP; verbs/qp.c calls it in process context ---- */

/**
 * struct nhca_qp_rings - rings of a QP of user space
 * @sq, @rq: in: what user space asks for; out: what it gets; zeros for a ring that the QP does not
 *           have
 */
struct nhca_qp_rings {
	struct nhca_ring_user sq;
	struct nhca_ring_user rq;
};

/**
 * nhca_qp_init - initialize a QP that verbs/qp.c has checked
 * @qp:    zeroed, except ibqp (pd, CQs, srq, qp_type), dev, user, owner, sig_all and modify
 * @init:  cap is rounded up to what was granted
 * @rings: of user space; NULL for a kernel consumer
 *
 * On success the QP is in RESET and in the table, and qpn is set.
 * Context: process, sleeps.
 * Return: 0, -ENOMEM, -EINVAL, -EBUSY (no free number), or an error of nhca_ring_alloc().
 */
int nhca_qp_init(struct nhca_qp *qp, struct ib_qp_init_attr *init, struct nhca_qp_rings *rings);

/**
 * nhca_qp_fini - undo nhca_qp_init()
 * Afterwards no requester or responder runs, and no lookup finds the QP.  Windows that are bound
 * through it are closed before its number is free.
 * Context: process, sleeps.
 */
void nhca_qp_fini(struct nhca_qp *qp);

/**
 * nhca_qp_modify - apply attributes and a state transition that verbs/qp.c has checked
 * @new:  the new state
 * @attr, @mask: as given to ibv_modify_qp(), already within limits
 * Context: process, sleeps; nhca_qp.modify held.
 * Return: 0, -ENOMEM, -EINVAL (address vector, or the state has changed), -EBUSY (another number of
 * responder resources while responses are due).  On an error nothing is changed.
 */
int nhca_qp_modify(struct nhca_qp *qp, enum ib_qp_state new,
		   const struct ib_qp_attr *attr, int mask);

/**
 * nhca_qp_dump - fill in the state of a QP that is not a channel, for rdma resource
 * Takes the lock of each half, one after the other.
 * Context: process.
 */
void nhca_qp_dump(struct nhca_qp *qp, struct nhca_res_qp *res);

/**
 * nhca_qp_set_error - move a QP to the error state
 * @event: asynchronous event to raise, or -1
 * nhca_qp.kick, or a caller of nhca_qp_flush(), flushes it later, so any lock may be held here.
 * Context: any.
 */
void nhca_qp_set_error(struct nhca_qp *qp, int event);

/**
 * nhca_qp_find - look up the QP of a packet
 * @dev: only for GSI (QPN 1), which each device has
 * Context: RCU read side.  Return: the QP or NULL.
 */
struct nhca_qp *nhca_qp_find(struct nhca_dev *dev, u32 qpn);

/**
 * nhca_qpn_reserve - take a number from the table of QPs, by which no QP is found
 * nhca_qpn_free - release it
 * For channels: their packets are looked up elsewhere.
 * Context: process, sleeps.  Return: 0, -ENOMEM, -EBUSY (no free number was found).
 */
int nhca_qpn_reserve(u32 *qpn);
void nhca_qpn_free(u32 qpn);

/**
 * nhca_qpn_place - place of a QPN in the order in which numbers are assigned
 * nhca_qpn_upcoming - place of the number that the next QP gets, unless it is in use
 * @qpn: NHCA_QPN_MIN to NHCA_QPN_MAX
 * For fault injection, which identifies QPs by the order in which they were created.
 * Context: any.
 */
u32 nhca_qpn_place(u32 qpn);
u32 nhca_qpn_upcoming(void);

int nhca_qp_table_init(void);
void nhca_qp_table_exit(void);

/* Return: rate limit of a QP in thousands of bits a second, or 0; one of the QP's locks held */
u32 nhca_pace_rate(const struct nhca_qp *qp);

/* ---- the requester ---- */

/**
 * nhca_send_doorbell - work was posted: run the requester, or let the holder of sq.lock run it
 * Context: any, also with interrupts disabled.
 */
void nhca_send_doorbell(struct nhca_qp *qp);

/**
 * nhca_send_post - post a request of a kernel consumer, without ringing the doorbell
 * Context: any.
 * Return: 0, -ENOMEM (the ring is full), -EINVAL (SGEs), -EOPNOTSUPP (opcode).
 */
int nhca_send_post(struct nhca_qp *qp, const struct ib_send_wr *wr);

/**
 * nhca_recv_doorbell - receives were posted: if the QP is in error, flush them
 * Context: any.
 */
void nhca_recv_doorbell(struct nhca_qp *qp);

/* ---- interface to ingress/udp.c ---- */

/**
 * struct nhca_batch - a batch of packets that is being received; zeroed before its first packet
 * @rx:     the current packet; the caller decodes it
 * @copies: number of QPs that multicast packets of the batch were given to
 * @qp:     this and the following are private to rx.c: the QP of the previous packet
 * @held:   lock of @qp that is still held for the next packet, or NULL
 * @gen:    generation of @qp when @held was taken
 * @passed: the previous packet passed the checks, which also hold for packets that are alike
 * @marked: a packet for @qp had an ECN mark
 * @acks:   a packet for @qp carried an acknowledgment (NHCA_CAP_ACKS)
 * @acked:  PSN of the last such acknowledgment
 */
struct nhca_batch {
	struct nhca_rx rx;
	u32 copies;
	struct nhca_qp *qp;
	/* a lock of @qp, or NULL */
	spinlock_t *held;
	u32 gen;
	bool passed;
	bool marked;
	bool acks;
	u32 acked;
};

/**
 * nhca_transport_rx - deliver a packet that has arrived and was decoded
 * @b: the batch, with the packet
 *
 * Finds and checks the QP, verifies that the packet is intact, and gives it to requester or
 * responder.  A lock of the QP may stay held for the next packets of the batch.
 * Context: softirq, RCU read side.
 */
void nhca_transport_rx(struct nhca_batch *b);

/**
 * nhca_transport_again - deliver a packet that differs from the one before only in PSN and AckReq
 * @b: as for nhca_transport_rx()
 * Context: as nhca_transport_rx().
 */
void nhca_transport_again(struct nhca_batch *b);

/**
 * nhca_transport_rx_end - a batch has ended: send responses, release the lock
 * Context: as nhca_transport_rx(), in the same RCU read side.
 */
void nhca_transport_rx_end(struct nhca_batch *b);

/* ---- interface to ingress/frame.c: raw.c ---- */

/**
 * nhca_raw_rx - deliver an Ethernet frame to a raw packet QP
 * @skb: begins with the Ethernet header; the caller keeps its reference
 * Context: softirq, RCU read side.
 */
void nhca_raw_rx(struct nhca_qp *qp, struct sk_buff *skb);

/* ---- multicast: mcast.c ---- */

/**
 * nhca_mcast_attach - attach a UD QP to a multicast group
 * nhca_mcast_detach - detach it
 * @qp:   the QP
 * @mgid: the group, IPv4-mapped or IPv6
 *
 * The first QP of a group makes the netdev join the group, the last one makes it leave the group.
 * Context: process, takes RTNL.
 * Return: attach: 0, also if the QP is attached already; -EDQUOT and -ENOMEM for limits; -ENODEV
 * and errors of IPv6 for a netdev that cannot join.  detach: 0; -EINVAL if the QP is not attached.
 */
int nhca_mcast_attach(struct nhca_qp *qp, const struct in6_addr *mgid);
int nhca_mcast_detach(struct nhca_qp *qp, const struct in6_addr *mgid);

/**
 * nhca_mcast_deliver - call @fn for each UD QP that is attached to a multicast group
 * @mgid: the group
 * Context: RCU read side.
 * Return: number of calls, at most NHCA_MAX_MCAST_QP.
 */
u32 nhca_mcast_deliver(struct nhca_dev *dev, const struct in6_addr *mgid, struct nhca_batch *b,
		       void (*fn)(struct nhca_qp *qp, struct nhca_batch *b));

/* detach a QP that is being destroyed from all groups; process, takes RTNL */
void nhca_mcast_detach_all(struct nhca_qp *qp);

#endif /* NHCA_QP_H */
