/* SPDX-License-Identifier: GPL-2.0 */
/* Interfaces between the files of transport/.  Other directories include qp.h. */
#ifndef NHCA_ENGINE_H
#define NHCA_ENGINE_H

#include <linux/jiffies.h>
#include <linux/sizes.h>

#include "../net/burst.h"
#include "qp.h"
#include "requester.h"
#include "responder.h"
#include "source.h"

/*
 * The requester splits a READ into chunks of at most this number of response packets, so that the
 * window also bounds the packets that the peer sends.  Each chunk is one READ request on the wire.
 */
#define NHCA_READ_CHUNK		32
/*
 * Budget of a pass, in which a requester or responder holds its lock and BHs are disabled: number
 * of packets, or of work requests without packets; about net.core.netdev_budget (300).  If the
 * budget is used up, nhca_qp.kick continues a requester, and nhca_piggyback.rest a responder.
 */
#define NHCA_BUDGET		256
/* bytes of a same-host copy, or of a frame of a raw packet QP, that cost as much as one packet */
#define NHCA_BUDGET_BYTES	SZ_4K
/*
 * Packets that a peer other than nhca may have in flight: 64 MiB at the largest path MTU (4,096
 * bytes).  See nhca_rq_reach().
 */
#define NHCA_REACH_FOREIGN	16384
/*
 * Number of requests that set AckReq in their last packet even if they are unsignaled, after
 * nhca_sq_ackreq() had to retransmit a packet only to set AckReq.  Only requests after which no
 * other is posted count.
 */
#define NHCA_ACKREQ_BOOST		64
/* maximum value of nhca_sq.empty_ackreqs; see nhca_send_empty_ackreq() */
#define NHCA_EMPTY_ACKREQ_MAX	3
/* maximum number of passes that a holder of nhca_sq.lock makes for kicks (nhca_sq.kicked) */
#define NHCA_SQ_KICKS		8

#define NHCA_GSI_QPN		1
#define NHCA_GSI_QKEY		0x80010000

static inline bool nhca_is_datagram(const struct nhca_qp *qp)
{
	return qp->ibqp.qp_type == IB_QPT_UD || qp->ibqp.qp_type == IB_QPT_GSI;
}

/* Return: true if the QP sends and receives whole Ethernet frames. */
static inline bool nhca_is_raw(const struct nhca_qp *qp)
{
	return qp->ibqp.qp_type == IB_QPT_RAW_PACKET;
}

static inline bool nhca_is_xrc(const struct nhca_qp *qp)
{
	return qp->ibqp.qp_type == IB_QPT_XRC_INI || qp->ibqp.qp_type == IB_QPT_XRC_TGT;
}

/* Return: true if the QP has a rate limit.  The check of a QP without a limit is fast. */
static inline bool nhca_is_paced(const struct nhca_qp *qp)
{
	return qp->sq.pace && nhca_pace_rate(qp);
}

/* Return: true for RC and XRC: packets are acknowledged and retransmitted. */
static inline bool nhca_is_reliable(const struct nhca_qp *qp)
{
	return qp->ibqp.qp_type == IB_QPT_RC || nhca_is_xrc(qp);
}

/* Return: the transport service of a connected QP: the upper bits of its opcodes. */
static inline u8 nhca_qp_service(const struct nhca_qp *qp)
{
	return qp->ibqp.qp_type == IB_QPT_UC ? NHCA_SVC_UC :
	       nhca_is_xrc(qp) ? NHCA_SVC_XRC : NHCA_SVC_RC;
}

static inline struct ib_pd *nhca_qp_pd(const struct nhca_qp *qp)
{
	return qp->ibqp.pd;
}

/* Return: true for a local operation, which the requester executes without a packet. */
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

/* Return: true for ATOMIC WRITE and FLUSH: the response is a READ response without data (A19). */
static inline bool nhca_swr_is_placing(const struct nhca_swr *swr)
{
	return swr->wqe.opcode == NHCA_WR_FLUSH || swr->wqe.opcode == NHCA_WR_ATOMIC_WRITE;
}

/* Return: true if the response is not an ACK; the request uses a responder resource of the peer. */
static inline bool nhca_swr_is_rd_atomic(const struct nhca_swr *swr)
{
	return nhca_swr_is_read(swr) || nhca_swr_is_atomic(swr) || nhca_swr_is_placing(swr);
}

/* Return: true if the request posts a completion even if it succeeds. */
static inline bool nhca_swr_signaled(const struct nhca_qp *qp, const struct nhca_swr *swr)
{
	return qp->sig_all || (swr->wqe.flags & NHCA_SEND_SIGNALED);
}

/* Return: the budget used by the packets of @swr sent since @swr->sent had the value @sent. */
static inline int nhca_swr_cost(const struct nhca_qp *qp, const struct nhca_swr *swr, u32 sent)
{
	/* one request packet, whatever the number of response packets is */
	if (nhca_swr_is_read(swr))
		return 1;
	/* a frame may be longer than the path MTU: only the netdev's MTU bounds it */
	if (nhca_is_raw(qp))
		return 1 + swr->length / NHCA_BUDGET_BYTES;
	return max(swr->sent - sent, 1U);
}

/* ---- gates: each half checks its state here before it handles packets or deferred work ---- */

/* Return: true if requests may reach the responder in this state (table 92).  rq.lock held */
static inline bool nhca_rq_open(const struct nhca_qp *qp)
{
	enum ib_qp_state state = READ_ONCE(qp->state);

	lockdep_assert_held(&qp->rq.lock);
	return state == IB_QPS_RTR || state == IB_QPS_RTS || state == IB_QPS_SQD ||
	       state == IB_QPS_SQE;
}

/* Return: true if responses may reach the requester in this state.  sq.lock held */
static inline bool nhca_sq_open(const struct nhca_qp *qp)
{
	enum ib_qp_state state = READ_ONCE(qp->state);

	lockdep_assert_held(&qp->sq.lock);
	return state == IB_QPS_RTS || state == IB_QPS_SQD;
}

/* ---- table.c ---- */

/**
 * nhca_qp_table_add - assign a number to a QP and let lookups find it
 * nhca_qp_table_hide - let no lookup find a QP any more; its number stays in use
 * nhca_qp_table_del - free the number of a hidden QP
 * @qp: the QP
 * Context: add: process, sleeps; hide and del: any.
 * Return: 0; -ENOMEM: no memory; -EBUSY: no free number was found.
 */
int nhca_qp_table_add(struct nhca_qp *qp);
void nhca_qp_table_hide(struct nhca_qp *qp);
void nhca_qp_table_del(struct nhca_qp *qp);
/* KUnit only.  Process context.  Return: true if the number is in use. */
bool nhca_qpn_is_taken(u32 qpn);

/* ---- qp.c ---- */

/**
 * nhca_qp_grace - wait for requesters and responders that found the QP before it was hidden
 * @qp: the QP
 * Context: process, sleeps.  KUnit replaces this function.
 */
void nhca_qp_grace(struct nhca_qp *qp);

/**
 * nhca_qp_event - raise an asynchronous event of the QP
 * @qp:    the QP
 * @event: the event
 *
 * For a kernel consumer, nhca_qp.kick calls the handler.  A handler must not run in the call chain
 * of a verb (Documentation/infiniband/core_locking.rst).  A handler may also use verbs that take
 * the QP's locks, which the caller of this function may hold.  If an event is raised twice before
 * nhca_qp.kick runs, the handler is called once.
 * Context: any, with or without the locks of @qp.
 */
void nhca_qp_event(struct nhca_qp *qp, enum ib_event_type event);

/**
 * nhca_qp_set_sqe - move a UC, UD or GSI QP to SQE: its send queue has failed (IBTA 10.3.1.6)
 * @qp: the QP
 * Context: any.
 */
void nhca_qp_set_sqe(struct nhca_qp *qp);

/**
 * nhca_qp_flush - flush both halves of a QP that is in the error state
 * @qp: the QP
 * Context: BH disabled or process; takes both locks.
 */
void nhca_qp_flush(struct nhca_qp *qp);

/* ---- pace.c: Context is sq.lock held, unless stated ---- */

/**
 * nhca_pace_alloc - make a rate limiter without a limit
 * nhca_pace_free - free a rate limiter that no requester uses any more, or NULL
 * nhca_pace_set - set the limit of @pace in thousands of bits a second; 0: none; @pace may be NULL
 * nhca_pace_waits - check whether the next packet has to wait; then a timer will kick the QP
 * nhca_pace_active - check whether the timer of nhca_pace_waits() runs
 * nhca_pace_sent - count @bytes of payload that were sent
 * @qp: the QP; functions without this parameter get the rate limiter of the QP
 * Context: alloc and free: process, no lock held.
 * Return: alloc: NULL if there is no memory; waits: true if the packet has to wait; active: true if
 * the timer runs.
 */
struct nhca_pace *nhca_pace_alloc(struct nhca_qp *qp);
void nhca_pace_free(struct nhca_pace *pace);
void nhca_pace_set(struct nhca_pace *pace, u32 kbps);
bool nhca_pace_waits(struct nhca_qp *qp);
bool nhca_pace_active(const struct nhca_qp *qp);
void nhca_pace_sent(struct nhca_qp *qp, u32 bytes);

/* ---- sq_fetch.c, completion.c (nhca_sq_retire()): Context is sq.lock held, unless stated ---- */

/**
 * nhca_sq_retire - complete retired requests whose buffers the network stack has released
 * @qp: the QP
 *
 * Each pass of the requester calls this function, which completes at most NHCA_BUDGET requests.
 * nhca_qp.kick completes further ones.
 */
void nhca_sq_retire(struct nhca_qp *qp);

/**
 * nhca_sq_fetch - copy the next work request out of the ring and check it
 * @qp: the QP
 * Return: the request, appended to sq.inflight (if its WQE is invalid, with a status); NULL if none
 * is posted; ERR_PTR(-ENOMEM): no memory now; ERR_PTR(-EPROTO): the producer index is impossible.
 */
struct nhca_swr *nhca_sq_fetch(struct nhca_qp *qp);

/**
 * nhca_sq_allowed - compute nhca_sq.allowed
 * @qp: the QP, whose type and @user are set
 * Context: any.
 * Return: the operations that the QP may execute, BIT_ULL(NHCA_WR_*) each.
 */
u64 nhca_sq_allowed(const struct nhca_qp *qp);

/**
 * nhca_swr_free - free a request that is in no list, or keep it as a spare
 * nhca_sq_free_spares - free the spares of a send queue that is no longer used
 * nhca_sq_more - check whether a request is posted that was not fetched
 * nhca_sq_purge - drop all requests, posted or in flight, without completions (RESET, destruction)
 * @sq: the send queue
 * @swr: the request
 * Return: nhca_sq_more(): true if a request is posted that was not fetched.
 */
void nhca_swr_free(struct nhca_sq *sq, struct nhca_swr *swr);
void nhca_sq_free_spares(struct nhca_sq *sq);
bool nhca_sq_more(struct nhca_qp *qp);
void nhca_sq_purge(struct nhca_qp *qp);

/* ---- completion.c: Context is the lock of the half held ---- */

/**
 * nhca_swr_complete - end the oldest request of sq.inflight with @status
 * @qp:     the QP
 * @swr:    the request
 * @status: enum ib_wc_status
 *
 * The function frees the ring entry, and posts a completion unless the request is unsignaled and
 * has succeeded.  If the network stack still reads buffers of this or an earlier request,
 * nhca_sq_retire() completes the request when the buffers are released.
 */
void nhca_swr_complete(struct nhca_qp *qp, struct nhca_swr *swr,
		       enum ib_wc_status status);

/**
 * nhca_swr_complete_later - like nhca_swr_complete(), but nhca_qp.kick completes the request
 * @qp:     the QP
 * @swr:    the request
 * @status: enum ib_wc_status
 */
void nhca_swr_complete_later(struct nhca_qp *qp, struct nhca_swr *swr, enum ib_wc_status status);

/**
 * nhca_sq_fail - complete the oldest request with @status and flush all later requests
 * nhca_sq_flush, nhca_rq_flush - flush at most NHCA_BUDGET requests; nhca_qp.kick flushes more
 * @qp:     the QP
 * @status: enum ib_wc_status of the oldest request
 *
 * nhca_sq_fail() moves UC, UD and GSI QPs to SQE, and the other types to the error state.
 */
void nhca_sq_fail(struct nhca_qp *qp, enum ib_wc_status status);
void nhca_sq_flush(struct nhca_qp *qp);
void nhca_rq_flush(struct nhca_qp *qp);

/**
 * nhca_rq_complete - post the completion @cqe for rq.rwr
 * nhca_rq_fetch - fetch a receive request into rq.rwr, unless rq.rwr has one already
 * @qp:        the QP
 * @cqe:       the completion; the function sets its wr_id, qp_num and kernel
 * @solicited: the completion counts as solicited
 * Return: nhca_rq_fetch(): as nhca_rwq_fetch(); with -EINVAL the invalid request is in rq.rwr.
 */
void nhca_rq_complete(struct nhca_qp *qp, struct nhca_cqe *cqe, bool solicited);
int nhca_rq_fetch(struct nhca_qp *qp);

/* ---- xrc.c: Context is rq.lock held, RCU read side ---- */

/**
 * nhca_xrc_find - look up an SRQ for an XRC target
 * @qp:   the XRC target
 * @srqn: number of the SRQ
 * Return: the SRQ, valid until the RCU read side ends; NULL if there is none in this XRC domain.
 */
struct nhca_srq *nhca_xrc_find(const struct nhca_qp *qp, u32 srqn);

/**
 * nhca_xrc_enter - prepare an XRC target for executing the request @h
 * @qp: the XRC target
 * @h:  headers of the request
 *
 * From now on the QP receives from the SRQ that @h names, and uses keys of that SRQ's domain.
 * Return: false if the XRC domain does not have this SRQ, or the message began with another SRQ.
 */
bool nhca_xrc_enter(struct nhca_qp *qp, const struct nhca_hdr *h);

/* ---- rx.c ---- */

/**
 * nhca_rx_refusal - check whether a packet may reach the QP that it names
 * @qp: the QP that the packet names
 * @h:  decoded headers of the packet
 * @ip: IP header of the packet
 *
 * The function takes no lock, so a forged packet does not cost a lock.  If the result is
 * NHCA_CNT_MAX, the caller takes the lock of a half, and checks that nhca_qp.gen has not changed
 * and that the state still accepts the packet.
 * Context: BH disabled, RCU read side.  KUnit replaces this function.
 * Return: NHCA_CNT_MAX if the packet may reach the QP; otherwise the counter of the reason.
 */
enum nhca_counter nhca_rx_refusal(const struct nhca_qp *qp, const struct nhca_hdr *h,
				  const struct nhca_ip *ip);

/**
 * nhca_caps - get the capability bits of packets to the peer of a connected QP
 * @qp: the QP
 * Context: any.
 * Return: NHCA_CAP_*.
 */
u8 nhca_caps(const struct nhca_qp *qp);

/*
 * Return: true if a packet with these headers gets a UDP checksum: the peer has received the
 * capability bits of this end, or the packet has no ICRC.  The second check is needed because
 * qp->peer may have changed since the headers were filled in.
 */
static inline bool nhca_wants_sum(const struct nhca_qp *qp, const struct nhca_hdr *h)
{
	return (READ_ONCE(qp->peer) & NHCA_CAP_CONFIRMED) || (h->caps & NHCA_CAP_NO_ICRC);
}

/**
 * nhca_qp_tx - initialize a packet to the peer of a connected QP
 * @qp:      the connected QP
 * @tx:      the packet, filled in
 * @hdr:     headers of the packet
 * @payload: bytes of payload
 *
 * The packet is not part of a batch, its payload is copied, and it has no UDP checksum.  The caller
 * may change the members, and sets @tx->it.  For a datagram the caller also sets av and sport.
 * Context: one of the QP's locks held.
 */
static inline void nhca_qp_tx(struct nhca_qp *qp, struct nhca_tx *tx, struct nhca_hdr *hdr,
			      u32 payload)
{
	*tx = (struct nhca_tx) {
		.dev = qp->dev,
		.who = &qp->who,
		.av = qp->av,
		.flow = qp->flow,
		.sport = qp->sport,
		.hdr = hdr,
		.payload = payload,
		.copy = true,
	};
}

/* in nhca_qp.peer, beside NHCA_CAP_*: nhca_loop_found() has found the peer in this kernel */
#define NHCA_PEER_SAME_HOST	BIT(7)

static inline bool nhca_peer_same_host(const struct nhca_qp *qp)
{
	return READ_ONCE(qp->peer) & NHCA_PEER_SAME_HOST;
}

/* ---- loop.c: Context is sq.lock held, RCU read side, unless stated ---- */

/**
 * nhca_loop_expired - check whether the permission to use the same-host path has expired
 * @qp: the QP that receives by the path
 * Context: any.
 * Return: true if the last packet to @qp that allowed the path came too long ago, so that packets
 * must be sent until another packet allows the path.
 */
static inline bool nhca_loop_expired(const struct nhca_qp *qp)
{
	return time_after(jiffies, READ_ONCE(qp->loop_until));
}

/**
 * nhca_loop_found - find out whether the peer is a QP of this kernel
 * @qp: the QP
 * @rx: an accepted packet
 *
 * The packet must have the mark of the local QP that has the peer's QPN.  Address and QPN alone are
 * no proof: namespaces of a host may have equal addresses, and QPs of two hosts equal numbers.
 * If a packet socket or queueing discipline must see the packets, the function returns false for
 * half a second (nhca_qp.watched_until) without another search.
 * Context: one of the QP's locks held, RCU read side.
 * Return: true if the peer is a QP of this kernel, and no packet socket or queueing discipline has
 * to see the packets; the function has set nhca_qp.peer_mark and nhca_qp.loop_until.
 */
bool nhca_loop_found(struct nhca_qp *qp, const struct nhca_rx *rx);

/**
 * nhca_loop_learn - note that a datagram came from a QP of this network namespace
 * @qp: the QP that the datagram is for
 * @rx: the datagram
 *
 * For half a second the sender may give datagrams with the same addresses and traffic class to @qp
 * without packets.  If lo has a packet socket or queueing discipline, the function does nothing.
 * Context: rq.lock of @qp held, BH disabled, RCU read side.
 */
void nhca_loop_learn(struct nhca_qp *qp, const struct nhca_rx *rx);

/**
 * nhca_loop_step - execute a part of a request without packets, if both QPs are in this kernel
 * nhca_loop_end - release the peer's rq.lock, if nhca_loop_step() has left it held
 * @qp:  the QP
 * @swr: the request
 * Return: number of PSNs that need no packets, because the peer has executed them or refused the
 * request; @swr may be completed and freed.  0: the caller sends packets.
 */
u32 nhca_loop_step(struct nhca_qp *qp, struct nhca_swr *swr);
void nhca_loop_end(struct nhca_qp *qp);

/**
 * nhca_loop_datagram - give a datagram to a QP of this kernel without a packet
 * @qp:  the QP that sends
 * @swr: the request that sends the datagram
 * @av:  destination
 * @h:   headers that a packet with this datagram would have
 * Return: true if the datagram was received or dropped; false if it has to be sent as a packet.
 */
bool nhca_loop_datagram(struct nhca_qp *qp, struct nhca_swr *swr, const struct nhca_av *av,
			const struct nhca_hdr *h);

/* ---- raw.c ---- */

/**
 * nhca_raw_send - send the Ethernet frame of a request
 * @qp:  the raw packet QP
 * @swr: the request
 * Context: sq.lock held, RCU read side.
 * Return: as nhca_frame_send().
 */
int nhca_raw_send(struct nhca_qp *qp, struct nhca_swr *swr);

/* ---- ack.c: Context is sq.lock held, BH disabled, RCU read side ---- */

/**
 * nhca_ack_rx - handle a response that has arrived
 * @qp: the QP
 * @rx: the response
 * Return: true if the PSN of the response was sent and is unacknowledged.  Only a host that can
 * read the packets of the connection knows this PSN, so nhca_rx_accepted() may trust the packet.
 */
bool nhca_ack_rx(struct nhca_qp *qp, struct nhca_rx *rx);

/**
 * nhca_ack_piggybacked - handle a piggybacked ACK of everything up to and including @psn
 * nhca_ack_done - complete @swr, the oldest request, and the local operations that follow it
 * nhca_swr_target - initialize an iterator over the buffers of @swr from byte @off of the response
 * @qp:  the QP
 * @psn: the last PSN that is acknowledged
 *
 * At most NHCA_BUDGET local operations complete before the next pass; nhca_qp.kick completes more.
 */
void nhca_ack_piggybacked(struct nhca_qp *qp, u32 psn);
void nhca_ack_done(struct nhca_qp *qp, struct nhca_swr *swr);
void nhca_swr_target(struct nhca_qp *qp, struct nhca_swr *swr, u32 off, struct nhca_iter *it);

/* ---- datagram.c ---- */

/**
 * nhca_datagram_execute - place a datagram, or a raw QP's frame, and complete a receive request
 * @qp:  the QP
 * @src: the datagram or frame
 * Context: rq.lock held, RCU read side.
 * Return: true if the datagram or frame was placed or dropped; false if it was deferred, or if it
 * came by the same-host path and has to be sent as a packet.
 */
bool nhca_datagram_execute(struct nhca_qp *qp, struct nhca_source *src);

/**
 * nhca_datagram_send - send a datagram
 * @qp:  the QP
 * @swr: the request
 * Context: sq.lock held, RCU read side.
 * Return: as nhca_xmit(); -EINVAL: the address handle is unknown, or has another protection domain.
 */
int nhca_datagram_send(struct nhca_qp *qp, struct nhca_swr *swr);

#endif /* NHCA_ENGINE_H */
