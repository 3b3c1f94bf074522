/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Internal interface between the files of rcxt/, also for KUnit tests.  Other rooms use rcxt.h.
 */
#ifndef NHCA_RCXT_ENGINE_H
#define NHCA_RCXT_ENGINE_H

#include <linux/mutex.h>

#include "../bh.h"
#include "../memory/job.h"
#include "../memory/memory.h"
#include "../net/burst.h"
#include "../queue/cq.h"
#include "fifo.h"
#include "pool.h"
#include "rcxt.h"
#include "tid.h"
#include "token.h"

/* default quantum of a channel, in cost units (NHCA_CH_SHARE); the maximum is NHCA_CH_PASS */
#define NHCA_CH_QUANTUM		64
/*
 * maximum number of packets of one transfer that a channel sends before the channel continues with
 * its next transfer
 */
#define NHCA_CH_STRETCH		64
/* number of elements of nhca_channel.writes: writes that are sent, and work requests that wait */
#define NHCA_CH_WRITES		32
/* maximum number of work requests of a channel that wait while others pass them */
#define NHCA_CH_WAITING		8
/* maximum number of ordered accumulates of a channel that are in progress, to different peers */
#define NHCA_CH_ORDERED		8
/*
 * Payload bytes that cost one unit.  A packet of a transfer costs its payload in these units,
 * rounded up, and at least 1; the last packet costs as much as a whole one.  So packets that are
 * longer than a unit get a channel no larger part of the link.  To fetch a work request costs one
 * unit, which includes the packet of a work request that sends only one.
 */
#define NHCA_CH_SHARE		4096u
/*
 * Cost at which a pass of the send engines of a device ends, because BHs are disabled in the pass:
 * 256 units, or 1 MiB of payload.  The last turn of a pass may use its whole quantum of up to 256
 * units.  So a pass may send about 2 MiB.
 */
#define NHCA_CH_PASS		256u
/*
 * Maximum number of transfers and work requests that one turn of a failed channel ends; each of
 * them costs one unit.  Also the maximum number of writes that one call of nhca_notice_complete()
 * completes.
 */
#define NHCA_CH_FORGET		64u
/* number of address vectors in the path cache of a channel, for packets that answer peers */
#define NHCA_CH_PATHS		8
/*
 * In a full path cache, only each NHCA_CH_PATH_MISSES-th miss of reply_path_once() replaces the
 * oldest entry.
 */
#define NHCA_CH_PATH_MISSES	64
/* number of spinlocks that the rCxts of a device share */
#define NHCA_RCXT_LOCKS		64

/**
 * struct nhca_rcxt_dev - a device's state in the rcxt room
 * @dev:   the device
 * @lock:  protects nhca_channel.rcxts, and @pool except the state of the rCxts
 * @pool:  the rCxts
 * @rcxt_locks: protect the state of the rCxts; nhca_rcxt_lock() finds the lock of an rCxt
 * @tokens: secret of the tokens that this device issues, and tokens of other hosts (token.h)
 * @mutex: held by a recovery, by an acquisition of rCxts, by the part of a release of rCxts that
 *         ends transfers, and by changes of @channels
 * @channels: channels of the device, linked by nhca_channel.list; @mutex protects the list
 * @ready_lock: irqsave; protects @ready, nhca_channel.ready and nhca_channel.drr
 * @ready: channels that wait for their turn, first in, first out
 * @engine: bottom-half work: runs the send engines (nhca_drr_run()) after a packet, a kick or an
 *         error, and when a pass has ended because of its cost
 */
struct nhca_rcxt_dev {
	struct nhca_dev *dev;
	/* the pool */
	spinlock_t lock;
	struct nhca_rcxt_pool pool;
	/* rCxts, by index */
	spinlock_t rcxt_locks[NHCA_RCXT_LOCKS];
	struct nhca_tokens tokens;
	/* channels */
	struct mutex mutex;
	struct list_head channels;
	/* channels that have something to send */
	spinlock_t ready_lock;
	struct list_head ready;
	struct nhca_bh engine;
};

/**
 * enum nhca_drr_state - state of a channel in the deficit round robin
 * @NHCA_DRR_IDLE:    the channel has nothing to send, or waits for an event that calls
 *                    nhca_drr_ready()
 * @NHCA_DRR_READY:   the channel waits in nhca_rcxt_dev.ready
 * @NHCA_DRR_RUNNING: a CPU has the channel's turn
 * @NHCA_DRR_AGAIN:   a CPU has the channel's turn, and nhca_drr_ready() was called during the turn
 * @NHCA_DRR_CLOSED:  the channel is being destroyed and gets no turn any more
 */
enum nhca_drr_state {
	NHCA_DRR_IDLE = 0,
	NHCA_DRR_READY,
	NHCA_DRR_RUNNING,
	NHCA_DRR_AGAIN,
	NHCA_DRR_CLOSED,
};

/**
 * struct nhca_sending - a transfer that a channel sends, or a work request that waits
 * @list:    entry in nhca_channel.sending, .requested, .ended, .waiting or .free
 * @order:   writes and waiting work requests: entry in nhca_channel.order
 * @answer:  true: the transfer answers a read or third-party request of a peer, and the struct
 *           comes from kmalloc(); false: the struct is an element of nhca_channel.writes, for a
 *           write or a waiting work request of this channel
 * @copy:    write: copy the payload, because no notice will come, and the program may change the
 *           payload as soon as the work request completes
 * @half:    the payload goes into frames of the peer's receive FIFO
 * @signaled: write: the work request is signaled
 * @wr_id:   write: wr_id of the work request
 * @index:   write, waiting work request: index of the work request in the send FIFO, free-running
 * @av:      address vector to which the payload is sent; the transfer holds a reference
 * @sport:   UDP source port
 * @manager: third-party transfer that this channel sends as its source: address vector of the
 *           manager; the transfer holds a reference.  Otherwise NULL
 * @local:   rCxt of this channel
 * @from:    local PVO of the transfer's first byte
 * @to:      PVO of the transfer's first byte at the peer
 * @clock:   write: nhca_trace_clock() when the work request was fetched
 * @next:    number of the next packet to send; packet 0 has the first byte
 * @left:    number of packets to send from @next on
 * @zcopy:   nhca_zcopy_seq() after the latest packet: the highest number that a zero-copy
 *           reference of the transfer can have.  With @cancelling: nhca_zcopy_seq() when the cancel
 *           began; the cancel waits for the release of the references up to this number
 * @waits:   in nhca_channel.waiting: opcode of the work request; otherwise 0.  While @waits is not
 *           0, only @list, @order, @index, @local, @qpn, @rx.key, @rx.tid, @cancelling, @zcopy,
 *           @ordered and @behind are valid
 * @cancelling: in nhca_channel.waiting: the work request is a cancel that has begun
 * @ordered: in nhca_channel.waiting: the work request is an ordered accumulate
 *           (NHCA_RCXT_WR_ORDERED)
 * @behind:  in nhca_channel.waiting: the ordered accumulate waits for an earlier ordered accumulate
 *           (nhca_ordered_may()), and not for its rCxt
 * @status:  write in nhca_channel.ended: status of the completion; otherwise IB_WC_SUCCESS
 * @qpn:     QPN of the channel to which the payload is sent
 * @rx:      fields of the RXETH that all packets have in common
 *
 * nhca_channel.lock protects the elements of nhca_channel.requested.  The CPU that has the turn of
 * the channel owns the elements of the other lists.
 */
struct nhca_sending {
	struct list_head list;
	struct list_head order;
	bool answer;
	bool copy;
	bool half;
	bool signaled;
	u16 sport;
	u32 index;
	u64 wr_id;
	struct nhca_av *av;
	struct nhca_av *manager;
	struct nhca_rcxt_id local;
	u64 from;
	u64 to;
	u64 clock;
	u32 next;
	u32 left;
	u32 zcopy;
	u8 waits;
	bool cancelling;
	bool ordered;
	bool behind;
	enum ib_wc_status status;
	u32 qpn;
	struct nhca_rxeth rx;
};

/**
 * struct nhca_ordered - an ordered accumulate that a channel has begun
 * @qpn:   QPN of the peer's channel
 * @key:   lower 32 bits of the key of the peer's channel
 * @local: rCxt of the accumulate
 * @tid:   tid of the accumulate; 0: the element was never used
 */
struct nhca_ordered {
	u32 qpn;
	u32 key;
	struct nhca_rcxt_id local;
	u32 tid;
};

/**
 * struct nhca_channel_counts - counters of a channel on one CPU
 * @v: the counters, indexed by enum nhca_channel_counter
 */
struct nhca_channel_counts {
	u64 v[NHCA_CH_COUNTERS];
};

/**
 * struct nhca_channel - a channel
 * @ibqp:    its QP, of type IB_QPT_DRIVER; constant, as all members up to @key_user
 * @dev:     its device
 * @rd:      state of the device in this room
 * @who:     its identity for counters and traces; owned by struct nhca_qp
 * @qpn:     its QPN
 * @key:     its channel key, random
 * @job:     its job; the channel holds a reference
 * @key_user: protection domain and QPN for checks of L_Keys
 * @list:    entry in nhca_rcxt_dev.channels; nhca_rcxt_dev.mutex protects it
 * @rcxts:   rCxts that the channel owns; nhca_rcxt_dev.lock protects the list
 * @reason:  enum nhca_channel_error; set once, by cmpxchg(); not 0: the channel is in the error
 *           state
 * @drr:     state in the deficit round robin; nhca_rcxt_dev.ready_lock protects it
 * @ready:   entry in nhca_rcxt_dev.ready; nhca_rcxt_dev.ready_lock protects it
 * @flow:    its packets in the network stack; constant
 * @fault:   state of the wait for a page fault of a work request of packet mode; constant
 * @quantum: in units of NHCA_CH_SHARE: the turn ends when its work requests and packets have cost
 *           @quantum.  The last packet may exceed @quantum.  A write that send_released() completes
 *           in the turn costs one unit of the pass, but not of @quantum
 * @threshold: if not 0, each @threshold-th completion counts as solicited.  Completions that the
 *           peer has marked, and unsuccessful ones, always count as solicited.  [0]: send CQ,
 *           [1]: receive CQ.  nhca_channel_modify() changes @quantum and @threshold with
 *           WRITE_ONCE()
 * @completed: number of completions while @threshold was not 0, modulo 2^32; [0]: send CQ,
 *           [1]: receive CQ
 *
 * @sq:      send FIFO
 * @fetched: index of the next entry to fetch, free-running
 * @cons:    consumer index: entries before it were given back to the program
 * @max_wr:  granted number of entries of @sq; constant
 * @max_sge: granted number of SGEs of a work request; constant
 * @max_inline: granted bytes of inline data of a work request; constant
 * @wqe:     copy of the work request that is being executed, with all that follows struct
 *           nhca_send_wqe in the slot (nhca_check_rest())
 * @clock:   nhca_trace_clock() when @wqe was fetched
 * @sending: transfers in progress; the first one is sent next
 * @ended:   writes that failed or were canceled.  They complete when no packet refers to
 *           their pages
 * @cancelling: the cancel at index @cancel_index of the FIFO, which is not in @waiting, has begun.
 *           The cancel waits for the end of copies of payload (nhca_rcxt_await()), and for the
 *           release of all zero-copy references up to number @cancel_zcopy
 * @cancel_index: index of the cancel that @cancelling is about
 * @cancel_zcopy: nhca_zcopy_seq() when this cancel began
 * @waiting: work requests that others pass, in the order of the FIFO: they wait for their rCxts or
 *           for an earlier ordered accumulate, or are cancels that have begun
 *           (nhca_sending.cancelling)
 * @num_waiting: number of work requests in @waiting, at most NHCA_CH_WAITING
 * @ordered: ordered accumulates that have begun (ordered.h).  At most one for each peer is in
 *           progress; the elements of the other ones may be used again
 * @retry:   the element of @waiting whose work request is executed again, or flushed; NULL: the
 *           work request at @fetched is executed or flushed
 * @free:    unused elements of @writes
 * @writes:  NHCA_CH_WRITES elements for writes and waiting work requests of this channel; owned
 * @order:   writes in @sending and @ended, and @waiting, in the order of the FIFO
 * @psn:     PSN of the next packet of a work request or transfer
 * @burst:   batch of packets that the turn sends; NULL outside of a turn
 * The CPU that has the channel's turn (NHCA_DRR_RUNNING) owns all members from @sq to @burst.
 *
 * @lock:    protects the members after @lock, except @counts and @memcg; held for short times
 * @requested: answers to read and third-party requests that the send engine has not moved to
 *           @sending yet
 * @noticed: list of rCxts in the state RELEASING, in the order in which they came into this state:
 *           indices of the first and the last one, or NHCA_RCXT_NONE.  Code that adds or removes an
 *           rCxt also holds the lock of this rCxt
 * @fifo:    receive FIFO
 * @event_raised: a violation has raised IB_EVENT_QP_ACCESS_ERR since the last query
 * @violation: the last violation, for struct nhca_channel_info
 * @paths:   path cache: address vectors to peers, each with a reference
 * @next_path: element of @paths that is replaced next: the oldest one
 * @path_misses: number of lookups for single packets that have not found the peer in a full path
 *           cache
 * @target:  targets of third-party transfers that the program has allowed, each with a reference
 * @targets: number of elements of @target that are in use
 * @counts:  counters per CPU
 * @memcg:   memory cgroup of the process that created the channel; it is charged for bitmaps, and
 *           for the transfers that answer peers; constant
 */
struct nhca_channel {
	struct ib_qp *ibqp;
	struct nhca_dev *dev;
	const struct nhca_who *who;
	struct nhca_rcxt_dev *rd;
	u32 qpn;
	u64 key;
	struct nhca_job *job;
	struct nhca_key_user key_user;
	struct list_head list;
	struct nhca_rcxt_list rcxts;
	int reason;
	enum nhca_drr_state drr;
	struct list_head ready;
	struct nhca_flow *flow;
	struct nhca_fault *fault;
	u32 quantum;
	u32 threshold[2];
	atomic_t completed[2];

	struct nhca_ring sq;
	u32 fetched;
	u32 cons;
	u32 max_wr;
	u32 max_sge;
	u32 max_inline;
	struct nhca_send_wqe *wqe;
	u64 clock;
	struct list_head sending;
	struct list_head ended;
	bool cancelling;
	u32 cancel_index;
	u32 cancel_zcopy;
	struct list_head waiting;
	u32 num_waiting;
	struct nhca_ordered ordered[NHCA_CH_ORDERED];
	struct nhca_sending *retry;
	struct list_head free;
	struct nhca_sending *writes;
	struct list_head order;
	u32 psn;
	struct nhca_burst *burst;

	/* all below except counts and memcg */
	spinlock_t lock;
	struct list_head requested;
	struct {
		u32 first;
		u32 last;
	} noticed;
	struct nhca_fifo fifo;
	bool event_raised;
	struct {
		u32 why;
		u32 channel;
		u64 rcxt;
		u64 pvo;
		u32 tid;
	} violation;
	struct nhca_av *paths[NHCA_CH_PATHS];
	u32 next_path;
	u32 path_misses;
	struct nhca_av *target[NHCA_MAX_TARGETS];
	u32 targets;
	struct nhca_channel_counts __percpu *counts;
	struct mem_cgroup *memcg;
};

static inline u64 nhca_rcxt_id64(const struct nhca_rcxt_id *id)
{
	return NHCA_RCXT_ID(id->index, id->key);
}

static inline struct nhca_rcxt_id nhca_rcxt_id_of(u64 id)
{
	return (struct nhca_rcxt_id) { NHCA_RCXT_INDEX(id), NHCA_RCXT_KEY(id) };
}

/**
 * nhca_rcxt_lock - find the lock of an rCxt
 * @rd: state of the device
 * @id: id of the rCxt; the index may come from a packet and exceed the pool
 * Context: any.
 * Return: the lock.
 */
static inline spinlock_t *nhca_rcxt_lock(struct nhca_rcxt_dev *rd, const struct nhca_rcxt_id *id)
{
	return &rd->rcxt_locks[id->index % NHCA_RCXT_LOCKS];
}

/* With lockdep, warn unless the lock of @rc is held. */
static inline void nhca_rcxt_assert_held(struct nhca_rcxt_dev *rd, const struct nhca_rcxt *rc)
{
	lockdep_assert_held(&rd->rcxt_locks[(rc - rd->pool.rcxts) % NHCA_RCXT_LOCKS]);
}

static inline bool nhca_channel_failed(const struct nhca_channel *ch)
{
	return READ_ONCE(ch->reason);
}

static inline void nhca_channel_count(struct nhca_channel *ch, enum nhca_channel_counter which,
				      u64 n)
{
	this_cpu_add(ch->counts->v[which], n);
}

/**
 * nhca_channel_tx - initialize a packet of a channel, with a copy of the payload and no batch
 * @ch:  the channel
 * @tx:  the packet; the caller may set tx->burst afterwards
 * @av:  destination
 * @hdr: headers of the packet
 * @it:  source of the payload, or NULL
 * Context: any.
 */
static inline void nhca_channel_tx(struct nhca_channel *ch, struct nhca_tx *tx, struct nhca_av *av,
				   struct nhca_hdr *hdr, struct nhca_iter *it)
{
	*tx = (struct nhca_tx) {
		.dev = ch->dev,
		.who = ch->who,
		.av = av,
		.flow = ch->flow,
		.sport = nhca_udp_sport(av->flow_label, ch->qpn, hdr->qpn),
		.hdr = hdr,
		.it = it,
		.payload = hdr->rx.length,
		.copy = true,
		.sum = hdr->caps & NHCA_CAP_NO_ICRC,
	};
}

/* ---- channel.c ---- */

/**
 * nhca_channel_find - look up a channel
 * @qpn: QPN of the channel
 * Context: RCU read side, which protects the channel.
 * Return: the channel, or NULL.
 */
struct nhca_channel *nhca_channel_find(u32 qpn);

/**
 * nhca_channel_segment - compute the largest payload of a packet of a transfer
 * @dev: the device
 *
 * The result is the current MTU of the netdev less the headers of a write, from
 * NHCA_RCXT_MIN_SEGMENT to NHCA_RCXT_MAX_SEGMENT.  An IPv4 header counts as an IPv6 header, so that
 * the result is valid for all peers.
 * Context: any.
 * Return: bytes: a multiple of PAGE_SIZE if a packet has room for a page, otherwise of 4.
 */
u32 nhca_channel_segment(const struct nhca_dev *dev);

/**
 * nhca_channel_grace - wait for engines that use a channel or its rCxts
 * @ch: the channel
 *
 * Engines run in RCU read-side sections, so the function waits for an RCU grace period.  When it
 * returns, each run of an engine that had begun before the call has ended.
 * Context: process, sleeps.
 */
void nhca_channel_grace(struct nhca_channel *ch);

/**
 * nhca_channel_complete - post a completion
 * @ch:        the channel
 * @recv:      true: to the receive CQ; false: to the send CQ
 * @cqe:       the completion; the function sets qp_num
 * @solicited: true: the completion counts as solicited; false: the completion counts as solicited
 *             only if the threshold for this CQ is reached, or if the completion is unsuccessful
 * Context: any; the caller holds no lock of this room.
 * Return: false if the CQ was full: the completion is lost, and NHCA_CH_DROP_CQ counts it.
 */
bool nhca_channel_complete(struct nhca_channel *ch, bool recv, struct nhca_cqe *cqe,
			   bool solicited);

/**
 * nhca_channel_violated - record that memory protection refused a packet or read of a peer
 * @ch:    the channel; its first violation, and the first one after each query, raise
 *         IB_EVENT_QP_ACCESS_ERR
 * @x:     RXETH of the packet, or of the read
 * @local: rCxt of @ch
 * @pvo:   PVO of the bytes that were refused
 * @why:   NHCA_CH_DROP_PVO_*
 * Context: process or softirq; no lock of this room held; not in a live section.
 */
void nhca_channel_violated(struct nhca_channel *ch, const struct nhca_rxeth *x,
			   const struct nhca_rcxt_id *local, u64 pvo,
			   enum nhca_channel_counter why);

/* ---- drr.c: deficit round robin ---- */

/**
 * nhca_drr_ready - put a channel on the list of channels that have something to send
 * @ch:       the channel; if it is on the list already, or closed, the list does not change.  If a
 *            CPU has the channel's turn, drr_end() puts the channel on the list after the turn
 * @schedule: true: also queue the bottom half that serves the list, unless the channel is closed;
 *            false: the caller serves the list
 * Context: any.
 */
void nhca_drr_ready(struct nhca_channel *ch, bool schedule);

/**
 * nhca_drr_close - prevent further turns of a channel
 * @ch: the channel; if a CPU has its turn, the caller must wait for the end of this turn, by an RCU
 *      grace period
 * Context: any.
 */
void nhca_drr_close(struct nhca_channel *ch);

/**
 * nhca_drr_run - serve the channels that are ready, until their turns have cost NHCA_CH_PASS units
 * @rd: state of the device; if channels may be left after this cost, the bottom half continues
 * Context: BH disabled, RCU read side.
 */
void nhca_drr_run(struct nhca_rcxt_dev *rd);

/* ---- fetch.c: work requests of the send FIFO; the channel's turn ---- */

/**
 * enum nhca_fetched - result of fetching a work request
 * @NHCA_FETCHED_NONE:   no entry was consumed: the FIFO is empty, the next work request has to
 *                       wait, or the producer index of the FIFO is impossible
 * @NHCA_FETCHED_DONE:   a work request has begun, was put on nhca_channel.waiting, or has ended
 *                       without a packet
 * @NHCA_FETCHED_PACKET: a work request has ended, and one packet was sent or is treated as lost
 */
enum nhca_fetched {
	NHCA_FETCHED_NONE,
	NHCA_FETCHED_DONE,
	NHCA_FETCHED_PACKET,
};

/**
 * nhca_fetch_next - fetch, check and execute a work request, or begin its transfer
 * @ch: the channel
 *
 * The work request is one of nhca_channel.waiting that need not wait any more, or else the next one
 * of the FIFO.
 * Context: the channel's turn.
 * Return: enum nhca_fetched.
 */
enum nhca_fetched nhca_fetch_next(struct nhca_channel *ch);

/**
 * nhca_fetch_done - complete the work request of a write
 * @ch:     the channel
 * @s:      the write; the function moves it to nhca_channel.free
 * @status: completion status
 * Context: the channel's turn.
 */
void nhca_fetch_done(struct nhca_channel *ch, struct nhca_sending *s, enum ib_wc_status status);

/**
 * nhca_fetch_flush - complete posted work requests with IB_WC_WR_FLUSH_ERR
 * @ch:  the channel, in the error state
 * @max: maximum number of work requests to flush
 *
 * A cancel still cancels its transfer, and is flushed when no byte is placed any more.
 * Context: the channel's turn.
 * Return: number of work requests.  If it is less than @max, none is left, or the producer index of
 * the FIFO is impossible, or a cancel waits for the end of a copy.  The end of the copy kicks the
 * channel.
 */
u32 nhca_fetch_flush(struct nhca_channel *ch, u32 max);

/* ---- send.c ---- */

/**
 * nhca_send_quantum - run the send engine of a channel for one turn
 * @ch:     the channel
 * @budget: cost units that are left in the pass; the function subtracts the cost of the turn, at
 *          least 1.  The quantum of the channel limits the turn; @budget does not limit it
 * Context: the channel's turn; BH disabled, RCU read side.
 * Return: true if the channel may have more to send, and no event will call nhca_drr_ready() for
 * this.
 */
bool nhca_send_quantum(struct nhca_channel *ch, u32 *budget);

/**
 * nhca_send_shares - compute the cost of a packet
 * @len: bytes of payload
 * Context: any.
 * Return: the cost, in units of NHCA_CH_SHARE.
 */
static inline u32 nhca_send_shares(u32 len)
{
	return len > NHCA_CH_SHARE ? DIV_ROUND_UP(len, NHCA_CH_SHARE) : 1;
}

/**
 * nhca_send_sweep - end the writes on an rCxt whose transfer was canceled
 * @ch: the channel
 * @id: the rCxt
 * Context: the channel's turn.
 */
void nhca_send_sweep(struct nhca_channel *ch, const struct nhca_rcxt_id *id);

/**
 * nhca_send_end - end a transfer
 * @ch:     the channel
 * @s:      the transfer; a failed write completes only when no packet refers to its pages
 * @status: write: status of the completion
 * Context: the channel's turn.
 */
void nhca_send_end(struct nhca_channel *ch, struct nhca_sending *s, enum ib_wc_status status);

/**
 * nhca_send_hdr - fill in the BTH of a packet of a channel, except the PSN
 * @ch:     the channel
 * @h:      filled in; all other fields are set to 0
 * @opcode: enum nhca_rx_opcode
 * @qpn:    QPN of the peer's channel; only its lower 24 bits are used
 * Context: any.
 */
void nhca_send_hdr(const struct nhca_channel *ch, struct nhca_hdr *h, u8 opcode, u32 qpn);

/* ---- reply.c: answers to packets ---- */

/**
 * nhca_reply_notice - send a notice, because a transfer is complete
 * @ch: the channel that received the payload
 * @rx: the packet that completed the transfer.  The notice goes to the address in @rx->ip.saddr,
 *      which recv_third() has set to that of the manager if the transfer is a third-party one
 * Context: softirq, RCU read side, no lock held.
 */
void nhca_reply_notice(struct nhca_channel *ch, const struct nhca_rx *rx);

/**
 * nhca_reply_read - execute a read request: begin to send the payload, or send a challenge
 * @ch: the channel
 * @rx: the request
 * Context: softirq, RCU read side, no lock held.
 */
void nhca_reply_read(struct nhca_channel *ch, const struct nhca_rx *rx);

/**
 * nhca_reply_third - execute a third-party request: begin to send, send a challenge, or refuse
 * @ch: the channel
 * @rx: the request
 * Context: softirq, RCU read side, no lock held.
 */
void nhca_reply_third(struct nhca_channel *ch, const struct nhca_rx *rx);

/**
 * nhca_reply_challenge - send a request or probe again, with the token of the challenge
 * @ch: the channel that sent the request
 * @rx: the challenge, which contains all fields that the repeated request needs
 *
 * The device also stores the token for later requests to the host that sent the challenge.
 * Context: softirq, RCU read side, no lock held.
 */
void nhca_reply_challenge(struct nhca_channel *ch, const struct nhca_rx *rx);

/**
 * nhca_reply_probe - execute a probe: send a status, or a challenge
 * @ch: the channel
 * @rx: the probe
 * Context: softirq, RCU read side, no lock held.
 */
void nhca_reply_probe(struct nhca_channel *ch, const struct nhca_rx *rx);

/**
 * nhca_reply_fence - execute a fence: cancel the transfer, and send a status
 * @ch: the channel
 * @rx: the fence; the function sends no status while a byte of the transfer may still be placed, or
 *      read by the source of a third-party transfer
 * Context: softirq, RCU read side, no lock held.
 */
void nhca_reply_fence(struct nhca_channel *ch, const struct nhca_rx *rx);

/* ---- recv.c ---- */

/**
 * nhca_recv_drop - count and trace a packet that is dropped
 * @ch:  the channel
 * @x:   RXETH of the packet
 * @why: NHCA_CH_DROP_*, or NHCA_CH_CHALLENGED
 * Context: any.
 */
void nhca_recv_drop(struct nhca_channel *ch, const struct nhca_rxeth *x,
		    enum nhca_channel_counter why);

/**
 * nhca_recv_refused - drop a packet if its rCxt was not found, or if the tid rules refused it
 * @ch:      the channel
 * @x:       RXETH of the packet
 * @lookup:  result of the lookup of the rCxt
 * @verdict: result of the tid rules; not used if @lookup failed
 * Context: any.
 * Return: true if the packet was dropped.
 */
bool nhca_recv_refused(struct nhca_channel *ch, const struct nhca_rxeth *x,
		       enum nhca_rcxt_lookup lookup, enum nhca_rcxt_verdict verdict);

/**
 * nhca_recv_pvo - check bytes of job memory again, to find the reason why they were refused
 * @ch:     the channel
 * @pvo:    PVO of the first byte
 * @len:    number of bytes
 * @access: as nhca_pvo_check()
 * Context: BH disabled; not in a live section.
 * Return: NHCA_CH_DROP_PVO_*.
 */
enum nhca_channel_counter nhca_recv_pvo(struct nhca_channel *ch, u64 pvo, u32 len, int access);

#endif /* NHCA_RCXT_ENGINE_H */
