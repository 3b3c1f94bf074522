/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the files of the rcxt room tell each other.  Other rooms use rcxt.h.
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

/* packets that a channel may send before others have their turn, unless it was told otherwise */
#define NHCA_CH_QUANTUM		64
#define NHCA_CH_QUANTUM_MAX	1024
/* of them, those of one transfer before another of the channel has its turn */
#define NHCA_CH_STRETCH		64
/* writes that a channel has taken out of its FIFO and not sent whole */
#define NHCA_CH_WRITES		32
/* a packet's share of a quantum: one for each of so many bytes, so that long packets count more */
#define NHCA_CH_SHARE		4096u
/*
 * shares that one engine sends, with BHs disabled, before it lets others have the CPU: 1 MiB; the
 * quantum that begins before it is used up is finished, so that a pass is 2 MiB at most
 */
#define NHCA_CH_PASS		256u
/* answers of a channel that has failed which one turn forgets, and notices that it completes */
#define NHCA_CH_FORGET		64u
/* ways to peers that a channel remembers, for notices and answers */
#define NHCA_CH_PATHS		8
/* notices to peers that are not among them, of which one takes the place of an older peer */
#define NHCA_CH_PATH_MISSES	64
#define NHCA_RCXT_LOCKS		64

/**
 * struct nhca_rcxt_dev - the rcxt room's part of a device
 * @dev:   the device
 * @lock:  the pool, but for the rCxts themselves
 * @pool:  of rCxts
 * @rcxt_locks: an rCxt's is chosen by its index
 * @tokens: for the addresses of peers, and from them
 * @mutex: channels come and go, acquire, and the device recovers
 * @channels: by nhca_channel.list, under @mutex
 * @ready_lock: irqsave; the two below, and nhca_channel.drr
 * @ready: channels that have something to send, first come first served
 * @engine: runs what could not run where it was noticed
 */
struct nhca_rcxt_dev {
	struct nhca_dev *dev;
	/* the pool */
	spinlock_t lock;
	struct nhca_rcxt_pool pool;
	/* of rCxts */
	spinlock_t rcxt_locks[NHCA_RCXT_LOCKS];
	struct nhca_tokens tokens;
	/* channels */
	struct mutex mutex;
	struct list_head channels;
	/* who has something to send */
	spinlock_t ready_lock;
	struct list_head ready;
	struct nhca_bh engine;
};

/**
 * enum nhca_drr_state - a channel and the send engines
 * @NHCA_DRR_IDLE:    has nothing to send, or waits for what will kick it
 * @NHCA_DRR_READY:   in nhca_rcxt_dev.ready
 * @NHCA_DRR_RUNNING: an engine has it
 * @NHCA_DRR_AGAIN:   an engine has it, and more has come meanwhile
 * @NHCA_DRR_CLOSED:  no engine takes it any more
 */
enum nhca_drr_state {
	NHCA_DRR_IDLE = 0,
	NHCA_DRR_READY,
	NHCA_DRR_RUNNING,
	NHCA_DRR_AGAIN,
	NHCA_DRR_CLOSED,
};

/**
 * struct nhca_sending - a transfer whose packets are being sent
 * @list:    in nhca_channel.sending, .asked or .ended
 * @order:   writes: in nhca_channel.order
 * @answer:  payload of a peer's read, from kmalloc(); else a write of ours, one of
 *           nhca_channel.writes
 * @copy:    copy the payload: the program may change it before it has left
 * @signaled, @wr_id, @index: of the work request; its place in the FIFO
 * @av:      the way there; counted
 * @sport:   UDP source port
 * @local:   rCxt of this side
 * @from:    PVO of the transfer's first byte on this side
 * @to:      and on the other
 * @clock:   nhca_trace_clock() when it began
 * @next:    number of the next packet
 * @left:    packets to send from there on
 * @zcopy:   nhca_zcopy_seq() behind its last packet so far
 * @status:  writes in nhca_channel.ended: what they complete with; else IB_WC_SUCCESS
 * @qpn:     the peer's channel
 * @rx:      what all packets have in common
 */
struct nhca_sending {
	struct list_head list;
	struct list_head order;
	bool answer;
	bool copy;
	bool signaled;
	u16 sport;
	u32 index;
	u64 wr_id;
	struct nhca_av *av;
	struct nhca_rcxt_id local;
	u64 from;
	u64 to;
	u64 clock;
	u32 next;
	u32 left;
	u32 zcopy;
	enum ib_wc_status status;
	u32 qpn;
	struct nhca_rxeth rx;
};

struct nhca_channel_counts {
	u64 v[NHCA_CH_COUNTERS];
};

/**
 * struct nhca_channel - a channel
 * @ibqp, @dev, @who, @rd, @qpn, @key, @job, @key_user: constant
 * @list:    in nhca_rcxt_dev.channels
 * @rcxts:   those that it has; the pool's lock
 * @reason:  enum nhca_channel_error; not 0: the error state
 * @drr, @ready: with the send engines: nhca_rcxt_dev.ready_lock
 * @flow:    its packets in the stack
 * @fault:   where packet mode waits for on-demand pages
 * @quantum, @threshold: as modified; [0] of the send CQ, [1] of the receive CQ
 * @completed: completions so far, for @threshold
 *
 * @sq, @fetched, @cons: send FIFO: entries that were taken, and that are done
 * @max_wr, @max_sge, @max_inline: as granted
 * @wqe:     copy of the work request that is looked at, with room for SGEs and inline bytes
 * @clock:   nhca_trace_clock() then
 * @sending: transfers that take turns
 * @writes, @free: those of them that are ours
 * @ended:   writes that have failed, which complete when no packet refers to their pages any more
 * @cancelling: the work request at @cancel_index has cancelled, and completes when the references
 *           up to @cancel_zcopy are released
 * @order:   the same that are under way, in the order of their places in the FIFO
 * @psn:     of the next packet
 * @burst:   packets of the turn, which leave at its end, or before one by another way
 * All these: whoever has its turn (NHCA_DRR_RUNNING).
 *
 * @lock:    what follows; short
 * @asked:   answers that no engine has looked at
 * @noticed: rCxts that are RELEASING, the first notice first: indices, or NHCA_RCXT_NONE; it
 *           changes with the rCxt's lock held, too
 * @fifo:    receive FIFO
 * @violation: of struct nhca_channel_info; @told: of it
 * @paths:    to peers that we answer, the oldest of which is replaced; @next_path, @path_misses
 * @counts:  per CPU
 * @memcg:   of whoever made it; is charged for what its engines and peers allocate; constant
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
	struct list_head free;
	struct nhca_sending *writes;
	struct list_head order;
	u32 psn;
	struct nhca_burst *burst;

	/* all below */
	spinlock_t lock;
	struct list_head asked;
	struct {
		u32 first;
		u32 last;
	} noticed;
	struct nhca_fifo fifo;
	bool told;
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

/* the lock of whatever rCxt has this index */
static inline spinlock_t *nhca_rcxt_lock(struct nhca_rcxt_dev *rd, const struct nhca_rcxt_id *id)
{
	return &rd->rcxt_locks[id->index % NHCA_RCXT_LOCKS];
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

/* ---- channel.c ---- */

/* the channel of a number, RCU read side */
struct nhca_channel *nhca_channel_find(u32 qpn);

/**
 * nhca_channel_segment - payload bytes that a packet of a transfer can have at most, with the
 * netdev's MTU of now and the longer of the two IP headers.  Whole pages, if it has room for one
 */
u32 nhca_channel_segment(const struct nhca_dev *dev);

/**
 * nhca_channel_complete - post a completion
 * @recv: on the receive CQ
 * Context: any; no lock that a CQ's nests in.
 * Return: false: the CQ is full, and the completion is lost; that is counted.
 */
bool nhca_channel_complete(struct nhca_channel *ch, bool recv, struct nhca_cqe *cqe,
			   bool solicited);

/* memory protection refused a peer's packet, or what it asked for; not in a live section */
void nhca_channel_violated(struct nhca_channel *ch, const struct nhca_rxeth *x,
			   const struct nhca_rcxt_id *local, u64 pvo,
			   enum nhca_channel_counter why);

/* ---- drr.c: which channel sends next ---- */

/* the channel has something to send; @run: and not here.  Any context */
void nhca_drr_ready(struct nhca_channel *ch, bool schedule);

/* no engine takes it from now on; those that have it are waited for with synchronize_rcu() */
void nhca_drr_close(struct nhca_channel *ch);

/* give turns to who is ready, a limited number; BH disabled, RCU read side */
void nhca_drr_run(struct nhca_rcxt_dev *rd);

/* ---- fetch.c: from the send FIFO; the channel's turn ---- */

enum nhca_fetched {
	NHCA_FETCHED_NONE,	/* nothing is there, or it has to wait */
	NHCA_FETCHED_DONE,	/* executed without a packet, or begun */
	NHCA_FETCHED_PACKET,	/* a packet was sent */
};

/**
 * nhca_fetch_next - copy the next work request out of the FIFO, check it, and execute it or
 * begin to
 */
enum nhca_fetched nhca_fetch_next(struct nhca_channel *ch);

/* a write has ended */
void nhca_fetch_done(struct nhca_channel *ch, struct nhca_sending *s, enum ib_wc_status status);

/* complete all there is with IB_WC_WR_FLUSH_ERR; Return: there may be more */
bool nhca_fetch_flush(struct nhca_channel *ch);

/* ---- send.c ---- */

/**
 * nhca_send_quantum - one turn of the channel's
 * @budget: of the pass, in shares of NHCA_CH_SHARE bytes; on return less by what was sent, and by 1
 *          at least
 *
 * The turn itself is one quantum, and NHCA_CH_PASS at most.
 * Context: the channel's turn; BH disabled, RCU read side.
 * Return: true: the channel has more to send, and nothing else will say so.
 */
bool nhca_send_quantum(struct nhca_channel *ch, u32 *budget);

/* what a packet with @len bytes of payload takes of a quantum */
static inline u32 nhca_send_shares(u32 len)
{
	return len > NHCA_CH_SHARE ? DIV_ROUND_UP(len, NHCA_CH_SHARE) : 1;
}

/* end transfers of an rCxt that nothing is sent of any more: cancelled ones.  The channel's turn */
void nhca_send_sweep(struct nhca_channel *ch, const struct nhca_rcxt_id *id);

/*
 * forget a transfer; @status of a write's work request.  One that failed completes when no packet
 * refers to its pages any more
 */
void nhca_send_end(struct nhca_channel *ch, struct nhca_sending *s, enum ib_wc_status status);

/* what every packet of a channel has in its BTH */
void nhca_send_hdr(const struct nhca_channel *ch, struct nhca_hdr *h, u8 opcode, u32 qpn);

/* ---- reply.c: what a packet gives rise to; softirq, RCU read side, no lock held ---- */

/* tell the other end of a transfer that it is complete */
void nhca_reply_notice(struct nhca_channel *ch, const struct nhca_rx *rx);

/* a read request: begin to answer */
void nhca_reply_read(struct nhca_channel *ch, const struct nhca_rx *rx);

/**
 * nhca_reply_challenge - a peer wants a request once more, with the token that it has sent
 * @ch: the channel that sent the request
 * @rx: the challenge; all of the request is in it
 *
 * The token vouches for later requests to that host, too.
 * Context: softirq, RCU read side, no lock held.
 */
void nhca_reply_challenge(struct nhca_channel *ch, const struct nhca_rx *rx);

/* a probe: say what has come */
void nhca_reply_probe(struct nhca_channel *ch, const struct nhca_rx *rx);

/* a fence: cancel the transfer, and answer if no byte of it lands any more */
void nhca_reply_fence(struct nhca_channel *ch, const struct nhca_rx *rx);

/* ---- notice.c: a transfer is complete when its notice has come and its pages are free ---- */

/* a notice from a peer; softirq, RCU read side, no lock held */
void nhca_notice_rx(struct nhca_channel *ch, const struct nhca_rx *rx);

/* the rCxt is RELEASING, in the channel's turn: nhca_notice_complete() follows; rCxt's lock */
void nhca_notice_wait(struct nhca_channel *ch, struct nhca_rcxt *rc);

/* a peer's read is answered, and @x is of it: tell the program; no lock held */
void nhca_notice_answered(struct nhca_channel *ch, const struct nhca_rcxt_id *local,
			  const struct nhca_rxeth *x, u32 reader);

/**
 * nhca_notice_early - is a status that says what a notice does too early to be told?
 * @rc: the rCxt that it came to
 * @x:  of the status
 * Who asked takes it for lost, and asks again.
 * Context: any, rCxt's lock.
 * Return: true: it says that a write is done of which packets are made, or in the stack.
 */
bool nhca_notice_early(struct nhca_channel *ch, const struct nhca_rcxt *rc,
		       const struct nhca_rxeth *x);

/* the rCxt is given back: it completes nothing any more; rCxt's lock */
void nhca_notice_forget(struct nhca_channel *ch, struct nhca_rcxt *rc);

/**
 * nhca_notice_complete - complete writes whose pages have been released
 * Context: the channel's turn.
 * Return: true: there may be more; false: nothing is left, or a release kicks the channel.
 */
bool nhca_notice_complete(struct nhca_channel *ch);

/* ---- recv.c ---- */

/* count a packet that is dropped, and tell who traces */
void nhca_recv_drop(struct nhca_channel *ch, const struct nhca_rxeth *x,
		    enum nhca_channel_counter why);

/* was a packet refused, for want of its rCxt or by it?  Then it has been dropped */
bool nhca_recv_refused(struct nhca_channel *ch, const struct nhca_rxeth *x,
		       enum nhca_rcxt_lookup lookup, enum nhca_rcxt_verdict verdict);

/* why bytes of a PVO were not moved, asked once more; not in a live section, BH disabled */
enum nhca_channel_counter nhca_recv_pvo(struct nhca_channel *ch, u64 pvo, u32 len, int access);

#endif /* NHCA_RCXT_ENGINE_H */
