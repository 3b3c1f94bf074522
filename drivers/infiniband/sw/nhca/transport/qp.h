/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Queue pairs and their two engines: the send engine (requester) and the
 * receive engine (responder).  verbs/qp.c creates and modifies; packets come
 * from net/recv.c; everything else about a QP happens behind this header.
 *
 * Locks: sq.lock and rq.lock are BH-disabling spinlocks, taken in the order
 * rq.lock, sq.lock where both are needed (a state change).  CQ, SRQ and RWQ
 * locks nest inside.  Neither lock is held across anything that sleeps.
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
#include "../queue/cq.h"
#include "../queue/ring.h"
#include "../queue/rwq.h"
#include "../queue/srq.h"
#include "../wire/opseq.h"
#include "../wire/psn.h"

/**
 * struct nhca_swr - a send work request that has been copied out of the ring
 * @list:    in nhca_sq.inflight, in posting order
 * @length:  bytes of the message
 * @psn:     first PSN, once @begun
 * @npsn:    PSNs that it takes (for READ: response packets)
 * @sent:    PSNs sent, or asked for, so far; goes back on a retry
 * @zcopy:   number of the newest zero-copy reference that its packets have, if @zcopied
 * @high:    the largest @sent ever: what lies below is a retransmission
 * @got:     READ: PSNs whose data has been placed
 * @begun:   a PSN range is assigned
 * @zcopied: some of its payload was sent by reference
 * @status:  enum ib_wc_status: an error to report when it is the oldest
 * @clock:   nhca_trace_clock() when it began
 * @wqe:     the checked copy, with its SGEs or inline bytes
 */
struct nhca_swr {
	struct list_head list;
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
	/* ends in a flexible array: last */
	struct nhca_send_wqe wqe;
};

/**
 * struct nhca_times - how long the peer takes, and may (transport/retry.c); under sq.lock
 * @rtt:      microseconds from a packet that asked to its acknowledgment, smoothed, times 8;
 *            0: none has been measured
 * @rtt_dev:  how far they lie from it, smoothed, times 4
 * @rtt_psn:  the packet that is being measured
 * @rtt_begun: since when, ktime in ns; 0: none is
 * @cnp_at:   jiffies; when the window last shrank because the peer told of congestion
 * @since:    jiffies; when something was last heard, or the oldest packet sent
 * @timeout:  the local ACK timeout of the attributes in jiffies, not below NHCA_TIMEOUT_MIN
 * @rto:    what acknowledgments have taken, and some more, in jiffies; 0: not known
 *
 * Beside the queue pair, which then fits a kilobyte.
 */
struct nhca_times {
	u32 rtt;
	u32 rtt_dev;
	u32 rtt_psn;
	u64 rtt_begun;
	unsigned long cnp_at;
	unsigned long since;
	unsigned long timeout;
	unsigned long rto;
};

/**
 * struct nhca_sq - the send queue and the requester's state
 * @lock:     protects all below but @post_lock's ring side
 * @post_lock: irqsave; kernel consumers: producing into the ring
 * @ring:     of struct nhca_send_wqe
 * @prod:     kernel consumers: entries posted (under @post_lock)
 * @fetched:    entries copied out
 * @cons:     entries retired (completed or silent)
 * @max_wr, @max_sge, @max_inline: as granted
 * @note:     work was left while somebody held @lock; see nhca_sq_unlock()
 * @inflight: struct nhca_swr that have been copied out and not retired
 * @retired:  struct nhca_swr that are done, but whose buffers, or those of earlier ones, the stack
 *            still reads: they complete, in their order, when it has released them
 * @spares, @nspares: some that were retired, with room for any request
 * @cur:      the next of @inflight to send from, or NULL
 * @psn:      next PSN to give to a new request
 * @una:      oldest PSN not acknowledged
 * @nxt:      PSN behind the last one ever sent or asked for
 * @cwnd:   PSNs that may be unacknowledged; NHCA_CWND_*
 * @ssthresh: the window up to which it grows by what is acknowledged
 * @grown:    acknowledged since the window last grew, beyond @ssthresh
 * @since_ack: packets sent since the last that asked for an acknowledgment
 * @ackreq_pending: something that ends in a completion has been sent, or waits for what was,
 *            since the last packet that asked
 * @ackreq_boost: requests to come that ask even if nobody waits for them; NHCA_ACKREQ_BOOST
 * @rd_atomic: READs, atomics, FLUSHes and ATOMIC WRITEs outstanding
 * @retries, @rnr_retries: left for the oldest request
 * @rnr_wait: the RNR timer runs; nothing is sent
 * @gone_back: a go-back to @una is under way: further hints of the same loss are
 *            ignored until something is acknowledged
 * @rto_backoff: the ACK timeout is stretched by 2^@rto_backoff: a timeout adds one,
 *            NHCA_RTO_CALM_ACKS acknowledgments without one take one away
 * @acks_since_rto:     acknowledgments since the last timeout, for @rto_backoff
 * @tlp_count:   the oldest request was sent again on suspicion, so many times
 * @blind:    acknowledgments asked for without the bytes, whose key is closed, since the last
 *            progress
 * @waits:    timeouts put off because the packets had not left this host
 * @turns:    of others in the line for the device's room, at the last timeout
 * @times:    how long things take; owned
 * @timer:    local ACK timeout or RNR timer
 * @draining: SQD was asked for; IB_EVENT_SQ_DRAINED is due
 * @fault:    where the engine waits for on-demand pages
 * @pace:     its rate limit, from when it first had one; owned
 * @burst:    packets of the pass that is under way, which leave at its end
 * @loop:     the peer, if it is of this host and the pass holds its rq.lock; see loop.c
 * @loop_held: PSNs since it was taken
 */
struct nhca_sq {
	/* everything below but producing */
	spinlock_t lock;
	/* producing, for kernel consumers */
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
	struct list_head spares;
	u32 nspares;
	struct nhca_swr *cur;
	u32 psn;
	u32 una;
	u32 nxt;
	u32 cwnd;
	u32 ssthresh;
	u32 grown;
	u32 since_ack;
	u32 rd_atomic;
	u8 retries;
	u8 rnr_retries;
	bool rnr_wait;
	bool gone_back;
	bool draining;
	bool ackreq_pending;
	u8 ackreq_boost;
	u8 rto_backoff;
	u8 acks_since_rto;
	u8 tlp_count;
	u8 blind;
	u8 waits;
	struct nhca_times *times;
	struct timer_list timer;
	struct nhca_fault *fault;
	struct nhca_pace *pace;
	struct nhca_burst *burst;
	struct nhca_qp *loop;
	u32 loop_held;
	u32 turns;
};

/**
 * struct nhca_res - a responder resource: one READ, atomic, FLUSH or ATOMIC WRITE, being
 * answered or remembered for a duplicate (IBTA 9.7.4.1.1, A19)
 * @psn, @npsn: its PSN range
 * @opcode: of the request, without the service
 * @pd:     domain that its key has to be of
 * @busy:   the answer is owed
 * @ref:   what a READ of several packets has opened, until it is answered; a duplicate
 *          asks the key anew
 * @replay: it has been answered before, and a duplicate asked
 * @va, @rkey, @len: READ
 * @from, @sent, @end: READ: the answer covers PSN offsets @from to @end,
 *          @sent is the next
 * @stop:   READ: bytes up to where the answer goes
 * @high:   READ: the largest @sent ever
 * @orig:   atomic: the answer
 * @msn:    for the answer's AETH
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
 * struct nhca_rq - the receive queue and the responder's state
 * @lock:    protects all below
 * @wq:      receive ring; unused with an SRQ
 * @key_user:   as whom receives are placed: of the SRQ's domain, if there is one, which need not be
 *           the QP's (IBTA 10.2.3)
 * @rwr:     the receive request of the message that is arriving
 * @xsrq:    XRC target: the SRQ of the request that is being executed
 * @srqn:    XRC target: its number, and that of the SRQ that @rwr is of
 * @have_rwr: @rwr is valid
 * @seq:     opcode sequence
 * @psn:     expected PSN
 * @msn:     messages completed
 * @recv_off: bytes of the arriving message placed
 * @wr_ref: what the RDMA WRITE that is arriving has opened, if it has several packets
 * @wr_left: bytes of it that have not come
 * @wr_len:  its whole length
 * @drop:    UC: skip to the next message
 * @unbroken: UC: every packet since the connection was made had the expected PSN, so that whoever
 *           sends them knew with which one they begin
 * @nak_sent: a sequence or RNR NAK is out and the expected PSN has not come yet
 * @ack_due: an acknowledgment of everything before @psn is owed
 * @ack_piggyback: and may wait for a request that it can ride on
 * @syndrome: of a NAK that is owed instead, or 0
 * @nak_due: the NAK is owed
 * @nak_psn: its PSN
 * @fatal:   after that NAK the QP goes to error; nothing more is accepted, and who asks again is
 *           told again; until a reset
 * @fatal_event: the asynchronous event of that, or -1
 * @res, @nres: ring of responder resources, entry i at i % @nres; NULL before the first is wanted
 * @res_head: entries ever filled
 * @res_tail: the first that may be busy
 * @fault:   where the engine waits for on-demand pages
 * @burst:   as in struct nhca_sq, of answers
 * @deferred, @ndeferred, @deferred_bytes: packets that wait for it, how many, and the memory that
 *           they keep
 */
struct nhca_rq {
	/* everything below */
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
 * struct nhca_piggyback - acknowledgments that wait for a request which carries them
 * @pending:   the PSN of one that waits, and a bit that says so; 0: none.  Set under rq.lock, taken
 *          by whoever sends it
 * @asked:  when the last request came that was acknowledged, or should be, in about microseconds;
 *          0: something has been sent since
 * @quick:  replies in a row that came at once
 * @needed: so many have to, before an acknowledgment waits for one
 * @good:   replies at once since @needed changed
 * @base:   PSN behind which nothing is acknowledged; under rq.lock
 * @last:   the same, if what is owed gets its piggyback; under rq.lock
 * @timer:  what has waited too long leaves alone
 * @rest:   goes on with READ responses when a pass has used up its budget
 * @qp:     whose it is
 *
 * @asked, @quick, @needed and @good are written by both engines without a common lock.
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
 * struct nhca_qp_attr - what ibv_modify_qp() has set, as struct ib_qp_attr has it
 * Of that the rest is known otherwise, and there may be very many QPs.
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
struct nhca_rss;

/**
 * struct nhca_qp - a queue pair
 * @ibqp:   the core's part
 * @dev:    its device
 * @qpn:    number; in the module's table of QPs (all devices share one), but
 *          GSI is found by its device
 * @who:    as counters and traces know it; verbs/counter.c changes where is counted
 * @state:  written with both locks held, except that an engine that holds its
 *          own may move it to an error state; read anywhere with READ_ONCE
 * @modify: held by verbs/qp.c around a modify: one at a time
 * @key_user:  who it is to keys; constant, but for an XRC target: of the domain of rq.xsrq then
 * @xrcd:   XRC target: its XRC domain
 * @attr:   attributes as set by modify; written with both locks held
 * @mtu:    path MTU in bytes
 * @sport:  UDP source port of its packets
 * @sig_all: every send completes visibly
 * @user:   user space owns the rings
 * @av:     path of a connected QP; written with both locks held
 * @flow:   its packets in the stack
 * @kick:   runs the engines when a post came with interrupts off or the stack
 *          gave back packets
 * @memcg:  is charged for what the engines allocate on behalf of the QP's user; NULL: nobody is
 * @owner:  whose shares of the device's pools it takes; counted; NULL: the kernel's, or of a
 *          process with CAP_SYS_RESOURCE
 * @piggyback:   acknowledgments of what @rq takes that leave with what @sq sends; owned
 * @sq, @rq: the two halves
 * @last_wqe_sent: IB_EVENT_QP_LAST_WQE_REACHED was raised
 * @comm_est: IB_EVENT_COMM_EST was raised
 * @gen:    generation of the connection: counts resets, the destruction and changes of the peer;
 *          written with both locks held.  What was let in by an older one is not let in any more
 * @mark:   what its packets have in place of an ICRC: random, another one in each generation, so
 *          that only who has seen packets of this connection knows it; written with both locks held
 * @peer_mark: with NHCA_PEER_IS_HERE: @mark of the peer when that was found; READ_ONCE
 * @peer:   what the peer has said of itself, NHCA_CAP_*; 0 if it is not known to be nhca,
 *          or may have become another; READ_ONCE, the newest packet wins
 * @heard:  UD: the QP of the last datagram that came through lo; READ_ONCE, as above
 * @channel: IB_QPT_DRIVER: what it is instead (rcxt/); owned.  Of all the rest only @ibqp, @dev,
 *          @qpn, @who, @modify, @user and what @sq has been granted mean anything then, and
 *          nothing in transport/ is called for it
 * @rss:    raw packet QP with an indirection table: where its frames go instead (net/rss.c); owned.
 *          Of all the rest only what @channel needs means anything then
 * @cnp_sent: jiffies; when the peer was last told of congestion; by whoever receives a batch
 */
struct nhca_qp {
	struct ib_qp ibqp;
	struct nhca_dev *dev;
	u32 qpn;
	enum ib_qp_state state;
	struct nhca_who who;
	/* one modify at a time */
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

/* has it a receive queue of its own? */
static inline bool nhca_qp_has_rq(const struct nhca_qp *qp)
{
	return qp->rq.wq.ring.hdr;
}

/* ---- qp.c: life and state; called by verbs/qp.c in process context ---- */

/**
 * struct nhca_qp_rings - the rings of a QP of user space's
 * @sq, @rq: what user space wants, and is answered; zeros for one that the QP does not have
 */
struct nhca_qp_rings {
	struct nhca_ring_user sq;
	struct nhca_ring_user rq;
};

/**
 * nhca_qp_init - make the engines of a QP that verbs/qp.c has checked
 * @qp:   zeroed but for ibqp, dev, user, sig_all, modify and ibqp's pd, CQs, srq and
 *        qp_type; @init->cap is rounded up to what was granted
 * @rings: of user space; NULL for the kernel
 *
 * The QP is in RESET and in the table when this returns; qpn is set.
 * Return: 0, -ENOMEM, -EINVAL, -ENOSPC.
 */
int nhca_qp_init(struct nhca_qp *qp, struct ib_qp_init_attr *init, struct nhca_qp_rings *rings);

/**
 * nhca_qp_fini - undo nhca_qp_init(): no engine runs and no lookup finds the QP
 * when this returns; windows that it has bound are closed before its number is free
 * Context: process, sleeps.
 */
void nhca_qp_fini(struct nhca_qp *qp);

/**
 * nhca_qp_modify - apply attributes and a transition that verbs/qp.c has checked
 * @new:  state to be in
 * @attr, @mask: as given to ibv_modify_qp(), already within limits
 * Return: 0, -ENOMEM, -EINVAL (address vector), -EBUSY (another number of responder resources while
 * answers are owed; nothing is changed).
 */
int nhca_qp_modify(struct nhca_qp *qp, enum ib_qp_state new,
		   const struct ib_qp_attr *attr, int mask);

/**
 * nhca_qp_dump - what there is to be seen of a QP that is no channel
 * Each half is looked at under its lock.
 */
void nhca_qp_dump(struct nhca_qp *qp, struct nhca_res_qp *res);

/**
 * nhca_qp_set_error - move a QP to the error state and flush it
 * @event: asynchronous event to raise, or -1
 * The flush itself runs from nhca_qp.kick, or from whoever calls
 * nhca_qp_flush(), so that this can be called with any lock held.
 * Context: any.
 */
void nhca_qp_set_error(struct nhca_qp *qp, int event);

/**
 * nhca_qp_find - the QP of a packet; GSI (QPN 1) needs @dev
 * Context: RCU read side.  Return: QP or NULL.
 */
struct nhca_qp *nhca_qp_find(struct nhca_dev *dev, u32 qpn);

/**
 * nhca_qpn_reserve - take a number from the table of QPs, by which no QP is found
 * nhca_qpn_free - give it back
 * For channels, whose packets look elsewhere.
 * Context: process, sleeps.  Return: 0, -ENOMEM, -EBUSY (all are taken).
 */
int nhca_qpn_reserve(u32 *qpn);
void nhca_qpn_free(u32 qpn);

/**
 * nhca_qpn_place - where a QPN is in the order in which they are given out
 * nhca_qpn_upcoming - the place of the number that the next QP gets, unless it is in use
 * @qpn: NHCA_QPN_MIN to NHCA_QPN_MAX
 * Only for who must tell QPs apart by the order in which they were made (fault injection).
 * Context: any.
 */
u32 nhca_qpn_place(u32 qpn);
u32 nhca_qpn_upcoming(void);

int nhca_qp_table_init(void);
void nhca_qp_table_exit(void);

/* the rate limit of a QP in thousands of bits a second, or 0; one of its locks held */
u32 nhca_pace_rate(const struct nhca_qp *qp);

/* ---- the send engine ---- */

/**
 * nhca_send_doorbell - work was posted: run the send engine here, or leave a
 * note for whoever runs it
 * Context: any, also with interrupts disabled.
 */
void nhca_send_doorbell(struct nhca_qp *qp);

/**
 * nhca_send_post - post for a kernel consumer (without the doorbell)
 * Context: any.  Return: 0, -ENOMEM (full), -EINVAL.
 */
int nhca_send_post(struct nhca_qp *qp, const struct ib_send_wr *wr);

/**
 * nhca_recv_doorbell - receives were posted to a QP in error: flush them
 * Context: any.
 */
void nhca_recv_doorbell(struct nhca_qp *qp);

/* ---- the border to net/recv.c ---- */

/**
 * nhca_transport_rx - a decoded packet arrived
 * Looks up and checks the QP, verifies that the packet is intact, and hands the packet to the
 * engine that it is for.
 * A lock of the QP may stay held, for the packets behind it in the same batch.
 * Context: softirq, RCU read side; @rx is the one of the batch.
 */
void nhca_transport_rx(struct nhca_rx *rx);

/**
 * nhca_transport_again - as nhca_transport_rx(), for a packet whose headers are those of the one
 * before in the batch, but for PSN and acknowledge request
 */
void nhca_transport_again(struct nhca_rx *rx);

/**
 * nhca_transport_rx_end - the batch has ended: answers go out, nothing stays held
 * Context: as nhca_transport_rx(), in the same RCU read side.
 */
void nhca_transport_rx_end(struct nhca_rx *rx);

/* ---- the border to net/steer.c: raw.c ---- */

/**
 * nhca_raw_rx - a frame for a raw packet QP, as it was on the wire
 * @skb: begins with the Ethernet header; stays the caller's
 * Context: softirq, RCU read side.
 */
void nhca_raw_rx(struct nhca_qp *qp, struct sk_buff *skb);

/* ---- multicast: verbs/mcast.c ---- */

/**
 * nhca_mcast_deliver - give a multicast UD packet to every QP attached
 * @fn: called for each
 * Context: RCU read side.
 */
void nhca_mcast_deliver(struct nhca_dev *dev, const struct in6_addr *mgid,
			struct nhca_rx *rx,
			void (*fn)(struct nhca_qp *qp, struct nhca_rx *rx));

/* drop every attachment of a QP that is being destroyed; process context */
void nhca_mcast_detach_all(struct nhca_qp *qp);

#endif /* NHCA_QP_H */
