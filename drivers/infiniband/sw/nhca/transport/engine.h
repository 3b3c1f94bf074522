/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the files of the transport room tell each other.  Other rooms use qp.h.
 */
#ifndef NHCA_ENGINE_H
#define NHCA_ENGINE_H

#include <linux/sizes.h>

#include "../net/burst.h"
#include "qp.h"

/*
 * PSNs that a QP may have unacknowledged: a congestion window that doubles each
 * round trip up to where the last loss was, then grows by one, and shrinks at a
 * loss.  Go-back-N throws away what arrives behind a loss, so that sending less
 * is what makes an overrun queue move again; but as much as TCP by default keeps of
 * its window (RFC 9438, 4.6) has to be left, or TCP takes what a shared link has.
 */
#define NHCA_CWND_MIN		4
#define NHCA_CWND_FIRST	16
#define NHCA_CWND_MAX		256
/* tenths that are left at a loss */
#define NHCA_CWND_KEPT	7
/*
 * A READ is asked for in requests of at most so many response packets, so that
 * the window holds for what the peer sends, too.  Each is one READ on the wire.
 */
#define NHCA_READ_CHUNK		32
/*
 * Packets that an engine sends, or work requests without packets that it handles, in one pass, with
 * its lock held and BHs off; about as many as the stack's own net.core.netdev_budget.  The rest
 * runs from nhca_qp.kick.
 */
#define NHCA_BUDGET		256
/* bytes that count as one packet where there are none, or where one may have more */
#define NHCA_BUDGET_BYTES	SZ_4K
/*
 * Packets that a peer which is no nhca may have under way: 64 MiB at the largest path MTU.  See
 * nhca_rq_reach().
 */
#define NHCA_REACH_FOREIGN	16384
/* requests that ask to be acknowledged at once behind one that had to be sent again for that */
#define NHCA_ACKREQ_BOOST		64
/* times that a requester which cannot send again asks whether it has to (nhca_sq.blind) */
#define NHCA_BLIND_MAX		3
/* passes that a lock holder makes for those who leave notes */
#define NHCA_SQ_NOTES		8

#define NHCA_GSI_QPN		1
#define NHCA_GSI_QKEY		0x80010000

static inline bool nhca_is_datagram(const struct nhca_qp *qp)
{
	return qp->ibqp.qp_type == IB_QPT_UD || qp->ibqp.qp_type == IB_QPT_GSI;
}

/* Ethernet frames, in and out as they are */
static inline bool nhca_is_raw(const struct nhca_qp *qp)
{
	return qp->ibqp.qp_type == IB_QPT_RAW_PACKET;
}

static inline bool nhca_is_xrc(const struct nhca_qp *qp)
{
	return qp->ibqp.qp_type == IB_QPT_XRC_INI || qp->ibqp.qp_type == IB_QPT_XRC_TGT;
}

/* does it acknowledge, and send again? */
static inline bool nhca_is_reliable(const struct nhca_qp *qp)
{
	return qp->ibqp.qp_type == IB_QPT_RC || nhca_is_xrc(qp);
}

/* what the opcodes of a connected QP's packets have in their upper bits */
static inline u8 nhca_qp_service(const struct nhca_qp *qp)
{
	return qp->ibqp.qp_type == IB_QPT_UC ? NHCA_SVC_UC :
	       nhca_is_xrc(qp) ? NHCA_SVC_XRC : NHCA_SVC_RC;
}

static inline struct ib_pd *nhca_qp_pd(const struct nhca_qp *qp)
{
	return qp->ibqp.pd;
}

/* does the send engine do it by itself, without a packet? */
static inline bool nhca_swr_is_local(const struct nhca_swr *swr)
{
	return swr->wqe.opcode == NHCA_WR_LOCAL_INV || swr->wqe.opcode == NHCA_WR_BIND_MW ||
	       swr->wqe.opcode == NHCA_WR_REG_MR;
}

static inline bool nhca_swr_is_read(const struct nhca_swr *swr)
{
	return swr->wqe.opcode == NHCA_WR_RDMA_READ;
}

static inline bool nhca_swr_is_send(const struct nhca_swr *swr)
{
	return swr->wqe.opcode == NHCA_WR_SEND || swr->wqe.opcode == NHCA_WR_SEND_WITH_IMM ||
	       swr->wqe.opcode == NHCA_WR_SEND_WITH_INV;
}

static inline bool nhca_swr_is_atomic(const struct nhca_swr *swr)
{
	return swr->wqe.opcode == NHCA_WR_ATOMIC_CMP_AND_SWP ||
	       swr->wqe.opcode == NHCA_WR_ATOMIC_FETCH_AND_ADD;
}

/* ATOMIC WRITE and FLUSH: the answer is that of a READ of no bytes (IBTA A19) */
static inline bool nhca_swr_is_placing(const struct nhca_swr *swr)
{
	return swr->wqe.opcode == NHCA_WR_FLUSH || swr->wqe.opcode == NHCA_WR_ATOMIC_WRITE;
}

/* does it have an answer of its own, and use a responder resource of the peer? */
static inline bool nhca_swr_is_answered(const struct nhca_swr *swr)
{
	return nhca_swr_is_read(swr) || nhca_swr_is_atomic(swr) || nhca_swr_is_placing(swr);
}

/* does it end in a completion, when nothing goes wrong? */
static inline bool nhca_swr_signaled(const struct nhca_qp *qp, const struct nhca_swr *swr)
{
	return qp->sig_all || (swr->wqe.flags & NHCA_SEND_SIGNALED);
}

/* what sending from @swr has cost of a budget; @sent: where it was before */
static inline int nhca_swr_cost(const struct nhca_qp *qp, const struct nhca_swr *swr, u32 sent)
{
	/* one packet asks for the data of many */
	if (nhca_swr_is_read(swr))
		return 1;
	/* the netdev's MTU bounds it, not the path MTU */
	if (nhca_is_raw(qp))
		return 1 + swr->length / NHCA_BUDGET_BYTES;
	return max(swr->sent - sent, 1U);
}

/* a packet has left whose answer will acknowledge all that was sent; sq.lock held */
static inline void nhca_sq_ackreq_sent(struct nhca_sq *sq)
{
	sq->since_ack = 0;
	sq->ackreq_pending = false;
}

/* ---- the gates: each half has one, for packets and for what was kept or owed ---- */

/* may requests reach the receive engine (IBTA 9.7.5, table 92)?  rq.lock held */
static inline bool nhca_rq_open(const struct nhca_qp *qp)
{
	enum ib_qp_state state = READ_ONCE(qp->state);

	lockdep_assert_held(&qp->rq.lock);
	return state == IB_QPS_RTR || state == IB_QPS_RTS || state == IB_QPS_SQD ||
	       state == IB_QPS_SQE;
}

/* may responses reach the send engine?  sq.lock held */
static inline bool nhca_sq_open(const struct nhca_qp *qp)
{
	enum ib_qp_state state = READ_ONCE(qp->state);

	lockdep_assert_held(&qp->sq.lock);
	return state == IB_QPS_RTS || state == IB_QPS_SQD;
}

/* ---- table.c ---- */
int nhca_qp_table_add(struct nhca_qp *qp);
/* no lookup finds the QP from here on; its number stays taken */
void nhca_qp_table_hide(struct nhca_qp *qp);
/* the number of a hidden QP is free */
void nhca_qp_table_del(struct nhca_qp *qp);
/* for KUnit, which there alone has it: would nobody get this number?  process */
bool nhca_qpn_is_taken(u32 qpn);

/* ---- qp.c ---- */

/* wait for the engines that found the QP before it was taken down; process; KUnit replaces it */
void nhca_qp_grace(struct nhca_qp *qp);

/* raise an asynchronous event on the QP; any context */
void nhca_qp_event(struct nhca_qp *qp, enum ib_event_type event);

/* the send queue of a UC or UD QP failed: SQE (10.3.1.6); any context */
void nhca_qp_set_sqe(struct nhca_qp *qp);

/* flush both halves of a QP in error; takes the locks; BH disabled or process */
void nhca_qp_flush(struct nhca_qp *qp);

/* ---- send.c: all with sq.lock held unless said otherwise ---- */

/**
 * nhca_sq_run - a pass over the send queue until nothing more can be sent
 * @qp:     the queue pair
 * @budget: at most as many packets, and requests without
 * Context: sq.lock held, BH disabled, RCU read side.
 * Return: what is left of the budget; 0 or less: the rest runs from nhca_qp.kick.
 */
int nhca_sq_run(struct nhca_qp *qp, int budget);

/* work is waiting: run the engine or leave a note; lock not held, BH disabled or process */
void nhca_sq_kick(struct nhca_qp *qp);

/* release sq.lock (taken with spin_lock), first doing what was noted meanwhile */
void nhca_sq_unlock(struct nhca_qp *qp) __releases(&qp->sq.lock);

/**
 * nhca_sq_ackreq - have what was sent acknowledged, if no packet has asked for that
 * The last packet is sent once more, for somebody waits now who did not when it left.
 * Context: sq.lock held, BH disabled.
 * Return: false if nothing has to be asked, or not in this way, or it cannot leave.
 */
bool nhca_sq_ackreq(struct nhca_qp *qp);

/* what all packets of a connected QP's request say, with the PSN of the next */
void nhca_swr_hdr(const struct nhca_qp *qp, const struct nhca_swr *swr, struct nhca_hdr *h);

/* send @h, and @payload bytes from @off of the message; RCU read side.  Return: as nhca_xmit() */
int nhca_swr_xmit(struct nhca_qp *qp, struct nhca_swr *swr, struct nhca_hdr *h, u32 off,
		  u32 payload);

/* ---- ackreq.c: with sq.lock held ---- */

/**
 * nhca_send_asks_blind - a packet that is to be sent again cannot be read: its key is closed
 * The consumer may have closed it when the peer's reply showed that the message had come, and only
 * the acknowledgment is lost.
 * Context: sq.lock held, BH disabled, RCU read side.
 * Return: true if the peer was asked what it has, and the timer runs; false if it was often enough.
 */
bool nhca_send_asks_blind(struct nhca_qp *qp, struct nhca_swr *swr);

/* an iterator over the request's payload from byte @off */
void nhca_swr_source(const struct nhca_qp *qp, const struct nhca_swr *swr, u32 off,
		     struct nhca_iter *it);

/* what says of a SEND or WRITE what it is, from @swr->sent on: no addresses, no PSN */
void nhca_message_hdr(const struct nhca_qp *qp, const struct nhca_swr *swr, bool first, bool last,
		      struct nhca_hdr *h);

/* ---- retry.c: with sq.lock held ---- */

/* shorter local ACK timeouts are stretched: a software peer needs time to run */
#define NHCA_TIMEOUT_MIN	msecs_to_jiffies(20)

/* the timeout field of ibv_qp_attr in jiffies, stretched to NHCA_TIMEOUT_MIN; any context */
unsigned long nhca_timeout_jiffies(u8 timeout);

/* go back to the oldest PSN that is not acknowledged and send again; @why: the counter of that */
void nhca_sq_go_back(struct nhca_qp *qp, enum nhca_counter why);

/* everything before @psn is acknowledged: retry counters, timer, window */
void nhca_sq_progress(struct nhca_qp *qp, u32 psn);

/* the window after a loss; @stall: nothing moved until a timeout */
void nhca_sq_shrink(struct nhca_qp *qp, bool stall);

/* the peer says that our packets meet congestion */
void nhca_sq_congested(struct nhca_qp *qp);

/* the timer runs while something is unacknowledged; @oldest: which has only now been sent */
void nhca_sq_arm(struct nhca_qp *qp, bool oldest);

/* a packet that asks to be acknowledged is about to leave, for the first time */
void nhca_rtt_begin(struct nhca_sq *sq, u32 psn);

/* the local ACK timeout and RNR timer */
void nhca_sq_timer(struct timer_list *t);

/* ---- pace.c: with sq.lock held unless said otherwise ---- */

/* no limit yet; process, no lock held; NULL without memory */
struct nhca_pace *nhca_pace_alloc(struct nhca_qp *qp);
/* the QP's engines have stopped; takes NULL; process, no lock held */
void nhca_pace_free(struct nhca_pace *pace);
void nhca_pace_set(struct nhca_pace *pace, u32 kbps);

/* is it too early for another packet?  Then the QP is kicked when it is not. */
bool nhca_pace_waits(struct nhca_qp *qp);
/* is that what the QP waits for? */
bool nhca_pace_holds(const struct nhca_qp *qp);
/* a packet of @bytes has left */
void nhca_pace_sent(struct nhca_qp *qp, u32 bytes);

/* ---- sq_fetch.c: with sq.lock held ---- */

/**
 * nhca_sq_retire - complete the requests whose buffers the network stack has released by now
 * Context: sq.lock held, in each pass of the send engine.
 */
void nhca_sq_retire(struct nhca_qp *qp);

/**
 * nhca_sq_fetch - copy the next work request out of the ring and check it
 * Return: the request, appended to sq.inflight; NULL if none is posted;
 * ERR_PTR(-ENOMEM) to try later; ERR_PTR(-EPROTO) if the ring is broken.
 */
struct nhca_swr *nhca_sq_fetch(struct nhca_qp *qp);

/* give one back that is in no list any more */
void nhca_swr_free(struct nhca_sq *sq, struct nhca_swr *swr);
/**
 * nhca_sq_free_spares - free the requests that the queue keeps for those to come
 * @sq: a send queue that nobody uses any more
 * Context: any.
 */
void nhca_sq_free_spares(struct nhca_sq *sq);

/* is another request posted behind those taken? */
bool nhca_sq_more(struct nhca_qp *qp);

/* drop all that is posted or in flight, in silence: for RESET and destruction */
void nhca_sq_purge(struct nhca_qp *qp);

/* ---- completion.c: with sq.lock (rq.lock) held ---- */

/**
 * nhca_swr_complete - end the oldest request of sq.inflight with @status
 *
 * Its completion is posted, and its slot in the ring is free, now or, if the network stack still
 * reads its buffers or those of an earlier request, when it has released them (nhca_sq_retire()).
 * Context: sq.lock held.
 */
void nhca_swr_complete(struct nhca_qp *qp, struct nhca_swr *swr,
		       enum ib_wc_status status);

/*
 * the oldest request failed: complete it so; RC goes to error, UC and UD to
 * SQE; the rest is flushed
 */
void nhca_sq_fail(struct nhca_qp *qp, enum ib_wc_status status);

void nhca_sq_flush(struct nhca_qp *qp);
void nhca_rq_flush(struct nhca_qp *qp);

/* post a receive completion; @cqe's wr_id, qp_num and kernel are filled in from rq.rwr */
void nhca_rq_complete(struct nhca_qp *qp, struct nhca_cqe *cqe, bool solicited);

/* get a receive request into rq.rwr; as nhca_rwq_fetch() */
int nhca_rq_fetch(struct nhca_qp *qp);

/* ---- xrc.c: with rq.lock held, RCU read side ---- */

/*
 * The SRQ that a number names to an XRC target.
 * Return: the SRQ, good until the RCU read side ends; NULL: none, or of another XRC domain.
 */
struct nhca_srq *nhca_xrc_find(const struct nhca_qp *qp, u32 srqn);

/*
 * An XRC target is about to execute a request: from now on it receives from the SRQ that the
 * request names, and uses keys of that SRQ's domain.
 * Return: false if there is no such SRQ, or not in this message.
 */
bool nhca_xrc_enter(struct nhca_qp *qp, const struct nhca_hdr *h);

/* ---- rx.c ---- */

/**
 * nhca_rx_refusal - what speaks against giving a packet to a QP
 * @qp: the QP that it names
 * @rx: the packet, of which the headers and addresses are known
 *
 * Takes no lock, so that strangers' packets do not take one: whoever then takes the lock asks the
 * half's gate whether state and generation are still the same.
 * Context: softirq, RCU read side.  KUnit replaces it.
 * Return: the counter of what is wrong, or NHCA_CNT_MAX.
 */
enum nhca_counter nhca_rx_refusal(const struct nhca_qp *qp, const struct nhca_rx *rx);

/* may what @rx says reach this QP? */
bool nhca_rx_fits(const struct nhca_qp *qp, const struct nhca_rx *rx);

/* NHCA_CAP_*: what a packet to the peer of a connected QP says; any context */
u8 nhca_notice(const struct nhca_qp *qp);

/*
 * Does a packet with these headers get a UDP checksum?  A peer that says that it is nhca, and has
 * heard that we are, verifies it; what has no ICRC needs it, whatever the peer has said since.
 */
static inline bool nhca_wants_sum(const struct nhca_qp *qp, const struct nhca_hdr *h)
{
	return (READ_ONCE(qp->peer) & NHCA_CAP_CONFIRMED) || (h->caps & NHCA_CAP_NO_ICRC);
}

/* beside NHCA_CAP_* in nhca_qp.peer: it is a QP of this host; nhca_loop_found() */
#define NHCA_PEER_IS_HERE	BIT(7)

static inline bool nhca_peer_is_here(const struct nhca_qp *qp)
{
	return READ_ONCE(qp->peer) & NHCA_PEER_IS_HERE;
}

/* ---- loop.c ---- */

/**
 * nhca_loop_found - has a packet been sent by a QP of this host, which is the peer?
 * @rx: it was accepted
 *
 * It is, if the packet has the mark of the local QP that has the peer's number.  Namespaces of a
 * host have equal addresses, and a QP of another host may have the number of one of ours: neither
 * says anything.  Remembers the mark.
 * Context: one of the QP's locks held, RCU read side.
 */
bool nhca_loop_found(struct nhca_qp *qp, const struct nhca_rx *rx);

/**
 * nhca_loop_step - do a part of a request without packets, if both QPs are in this kernel
 * sq.lock held, RCU read side
 * Return: how many PSNs that was; then @swr may have been completed.  0: by packets.
 */
u32 nhca_loop_step(struct nhca_qp *qp, struct nhca_swr *swr);

/* let go of the peer that a step has taken; sq.lock held */
void nhca_loop_end(struct nhca_qp *qp);

/**
 * nhca_loop_datagram - give a datagram to a QP of this host without a packet
 * @h: its headers, as the packet would have them
 * sq.lock held, RCU read side
 * Return: false if it has to go as a packet.
 */
bool nhca_loop_datagram(struct nhca_qp *qp, struct nhca_swr *swr, const struct nhca_av *av,
			const struct nhca_hdr *h);

/* ---- raw.c ---- */

/* send the frame that a request is; sq.lock held, RCU read side.  Return: as nhca_frame_send() */
int nhca_raw_send(struct nhca_qp *qp, struct nhca_swr *swr);

/* ---- ack.c: sq.lock held ---- */

/*
 * A response arrived.  Return: true if it answers what was sent and is not answered: its PSN is one
 * that only the peer, and who sees the packets, knows.
 */
bool nhca_ack_rx(struct nhca_qp *qp, struct nhca_rx *rx);

/* a request of the peer acknowledged everything up to @psn */
void nhca_ack_riding(struct nhca_qp *qp, u32 psn);

/* @swr, the oldest, is done, and with it the local operations that waited for their turn */
void nhca_ack_done(struct nhca_qp *qp, struct nhca_swr *swr);

/* where byte @off of the answer to @swr goes */
void nhca_swr_target(struct nhca_qp *qp, struct nhca_swr *swr, u32 off, struct nhca_iter *it);

/* ---- defer.c: with rq.lock held ---- */

enum nhca_verdict {
	NHCA_TAKEN,		/* executed: the expected PSN moves on */
	NHCA_HELD,		/* not now: RC's packet will come again, UC's message is dropped */
	NHCA_PARKED,		/* waits for its memory, and is executed then */
	NHCA_FATAL,		/* the QP is going to error */
};

/**
 * nhca_request_rx - a request or datagram arrived: it is its turn, or it waits behind others
 * What a connected QP then owes waits for nhca_resp_run().
 * Context: rq.lock held, RCU read side.
 * Return: NHCA_TAKEN if it was executed, which a request of RC is only with the expected PSN;
 * NHCA_HELD if the QP is in no state for it.
 */
enum nhca_verdict nhca_request_rx(struct nhca_qp *qp, struct nhca_rx *rx);

/* keep a packet until the pages that it needs are there; or lose it */
void nhca_defer(struct nhca_qp *qp, struct nhca_rx *rx);

/* those that wait, in their order, as far as they get; RCU read side */
void nhca_defer_run(struct nhca_qp *qp);

/* for RESET, error and destruction */
void nhca_defer_drop(struct nhca_qp *qp);

/* ---- responder.c ---- */

/* do what a request with the expected PSN says; rq.lock held, RCU read side */
enum nhca_verdict nhca_execute(struct nhca_qp *qp, struct nhca_rx *rx);

/* it has been executed, and took @npsn PSNs; rq.lock held */
void nhca_accept(struct nhca_qp *qp, const struct nhca_hdr *h, u32 npsn);

/* do what a request of a connected QP says, if it is its turn; rq.lock held, RCU read side */
enum nhca_verdict nhca_respond_take(struct nhca_qp *qp, struct nhca_rx *rx);

/*
 * behind a packet from the middle of a SEND or WRITE that was just taken: all those of its batch
 * that continue it; rq.lock held, RCU read side
 * Return: how many; @rx is the last of them
 */
u32 nhca_respond_middle(struct nhca_qp *qp, struct nhca_rx *rx);

/*
 * behind a packet from the middle of a READ's answer that was just looked at: all those of its
 * batch that continue it; sq.lock held, RCU read side
 * Return: how many; @rx is the last of them
 */
u32 nhca_ack_middle(struct nhca_qp *qp, struct nhca_rx *rx);

/* ---- duplicate.c: with rq.lock held ---- */

/* what has been done is not done again (9.7.4.5), but answered or acknowledged again */
void nhca_duplicate(struct nhca_qp *qp, const struct nhca_hdr *h);

/* the responder resource with a count of nhca_rq.res_head */
static inline struct nhca_res *nhca_res_at(struct nhca_rq *rq, u32 i)
{
	return &rq->res[i % rq->nres];
}

/* let go of every key that an operation in progress uses; rq.lock held */
void nhca_rq_put_rkey(struct nhca_qp *qp);

/* ---- piggyback.c ---- */

/* nothing is owed, and nothing is known of how the consumer replies; both locks held, or alone */
void nhca_piggyback_reset(struct nhca_piggyback *piggyback);

/**
 * nhca_piggyback_waits - decide whether an ACK of all before the expected PSN waits for a reply
 * @hopes: what it is for may have one
 * Context: rq.lock held.
 * Return: true: then it leaves with the next request, or soon without one.
 */
bool nhca_piggyback_waits(struct nhca_qp *qp, bool hopes);

/* what waited is said by an answer that leaves now; rq.lock held */
void nhca_piggyback_drop(struct nhca_qp *qp);

/* send what waits: no request will come; rq.lock held, RCU read side */
void nhca_piggyback_settle(struct nhca_qp *qp);

/* nhca_piggyback.timer */
void nhca_piggyback_timer(struct timer_list *t);

/* put on a request what waits, if it can carry it; sq.lock held */
void nhca_piggyback_begin(struct nhca_qp *qp, struct nhca_hdr *h);

/* such a request has left, or with @err has not; sq.lock held */
void nhca_piggyback_end(struct nhca_qp *qp, const struct nhca_hdr *h, int err);

/* ---- local.c: with sq.lock held ---- */

/*
 * do a local operation; on failure @swr->status is set, and is reported when those before
 * it are done
 */
void nhca_local_run(struct nhca_qp *qp, struct nhca_swr *swr);

/* ---- resp_tx.c: with rq.lock held, RCU read side ---- */

/* a READ or atomic is answered: nothing is owed, its key is no longer in use */
void nhca_res_done(struct nhca_res *res);

/**
 * nhca_resp_run - send what is owed: READ responses, atomic answers, then ACK or NAK
 * @qp: the queue pair
 * At most NHCA_BUDGET packets; nhca_piggyback.rest sends the rest in process context, because a
 * peer can ask for 2 GiB, and softirqs that follow each other starve processes.
 * Context: rq.lock held, BH disabled, RCU read side.
 */
void nhca_resp_run(struct nhca_qp *qp);

/**
 * nhca_resp_init - make what runs the rest of long answers
 * Context: module load.  Return: 0, -ENOMEM.
 */
int nhca_resp_init(void);
/* the same back; no QP is left */
void nhca_resp_exit(void);

/* send an ACK of everything up to @psn */
void nhca_resp_alone(struct nhca_qp *qp, u32 psn);

/* a request that asks to be acknowledged was executed: owe an ACK, which may wait for a reply */
void nhca_resp_ask(struct nhca_qp *qp, const struct nhca_hdr *h);

/* owe an ACK of everything before the expected PSN, which waits for nothing */
static inline void nhca_resp_at_once(struct nhca_rq *rq)
{
	rq->ack_due = true;
	rq->ack_piggyback = false;
}

/*
 * tell the peer that its packets met congestion (A17.9), but not more often than every jiffy; one
 * of the QP's locks held
 */
void nhca_resp_cnp(struct nhca_qp *qp);

/* owe a NAK at the expected PSN; @fatal: then go to error with @event (or -1) */
void nhca_resp_nak(struct nhca_qp *qp, u8 syndrome, bool fatal, int event);

/*
 * A request came to a reliable QP that had refused one for good.  If it is that one again, or one
 * before it, the peer has not had the NAK, and it is owed once more: in the error state, too, or
 * a lost packet would make "retry exceeded" of the peer's error.  Any other request is dropped.
 */
void nhca_resp_refused(struct nhca_qp *qp, const struct nhca_rx *rx);

/* ---- datagram.c ---- */

/*
 * as nhca_respond_take(); what is no packet is never parked, and false says that it has to come as
 * one
 */
bool nhca_datagram_take(struct nhca_qp *qp, struct nhca_rx *rx);
int nhca_datagram_send(struct nhca_qp *qp, struct nhca_swr *swr);

#endif /* NHCA_ENGINE_H */
