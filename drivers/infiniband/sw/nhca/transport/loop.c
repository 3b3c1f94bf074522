// SPDX-License-Identifier: GPL-2.0
/*
 * The same-host path: if both queue pairs are in this kernel, bytes are copied from region to
 * region, without packets.
 *
 * On a connection, a step replaces the next packets of a message, and leaves both ends in the state
 * after these packets and their acknowledgment: PSNs, opcode sequence, R_Key references.  So the
 * requester can send packets in place of any step, for example if earlier packets are in flight, if
 * the peer's lock is taken, if memory is not present, or if the peer would not execute the request.
 *
 * The first packets of a connection go through the network stack, with its routing and filters.
 * The same-host path is used only after packets with the marks of QPs of this kernel
 * (Documentation/wire.rst) have passed in both directions.  Between UD QPs one datagram that came
 * through lo is enough for datagrams with the same addresses and traffic class, because a datagram
 * on lo is from this network namespace.
 *
 * Filters, routes and queueing disciplines may change later.  So the path is valid for
 * NHCA_LOOP_VALID only; then packets have to pass again.  These packets do not allow the path if
 * the netdev by which they leave has a queueing discipline or a packet socket (tcpdump).
 */
#include <linux/moduleparam.h>

#include "../observe/inject.h"
#include "../observe/trace.h"
#include "engine.h"

/*
 * Maximum number of bytes of a step.  A step is one live section, so code that closes a key waits
 * at most until these bytes are copied.  Steps of one page would double the cost, because each step
 * looks up its keys.
 */
#define NHCA_LOOP_BYTES	(32 << 10)
/*
 * A received packet allows the same-host path for this number of jiffies.  Then packets are sent
 * again, so a new rule of a packet filter takes effect within a second.  After a packet socket or
 * queueing discipline was found, no packet allows the path for this number of jiffies.
 */
#define NHCA_LOOP_VALID	(HZ / 2)
/* number of PSNs after which the peer's lock is released, so that other CPUs can take it */
#define NHCA_LOOP_HELD	32

static bool nhca_same_host = true;
module_param_named(same_host, nhca_same_host, bool, 0644);
MODULE_PARM_DESC(same_host, "Y: copy data between queue pairs of one host without packets; N: use packets (default Y)");

static bool nhca_loop_up(const struct nhca_qp *qp)
{
	return !nhca_inject_at(qp->dev, NHCA_AT_PACKETS) && netif_running(qp->dev->netdev) &&
	       READ_ONCE(qp->dev->port_state) == IB_PORT_ACTIVE;
}

/*
 * Return: true if a packet socket or queueing discipline must see the packets of a connected QP, or
 * if the QP has no address vector or no route.  RCU protects the address vector.
 */
static bool nhca_loop_watched(const struct nhca_qp *qp)
{
	struct nhca_av *av = READ_ONCE(qp->av);

	return !av || nhca_route_watched(nhca_net_ns(qp->dev->nn), av, qp->sport);
}

bool nhca_loop_found(struct nhca_qp *qp, const struct nhca_rx *rx)
{
	struct nhca_qp *peer;
	__le32 mark;

	/* after a packet socket or queueing discipline was found, do not search for each packet */
	if (time_before(jiffies, READ_ONCE(qp->watched_until)) || !nhca_rx_mark(rx, &mark))
		return false;
	peer = nhca_qp_find(NULL, qp->attr.dest_qp_num);
	if (!peer || READ_ONCE(peer->mark) != mark)
		return false;
	if (nhca_loop_watched(qp) || nhca_loop_watched(peer)) {
		WRITE_ONCE(qp->watched_until, jiffies + NHCA_LOOP_VALID);
		return false;
	}
	WRITE_ONCE(qp->loop_until, jiffies + NHCA_LOOP_VALID);
	WRITE_ONCE(qp->peer_mark, mark);
	return true;
}

/*
 * Return: true if a datagram of QP @src_qpn with the addresses and the traffic class of @ip would
 * meet the same filters and routes as the datagram in nhca_qp.loop_path.
 */
static bool nhca_loop_same_path(const struct nhca_qp *qp, u32 src_qpn, const struct nhca_ip *ip)
{
	const struct nhca_loop_path *path = &qp->loop_path;

	lockdep_assert_held(&qp->rq.lock);
	return path->qpn == src_qpn && path->tclass == nhca_ip_tclass(ip) &&
	       ipv6_addr_equal(&path->saddr, &ip->saddr) &&
	       ipv6_addr_equal(&path->daddr, &ip->daddr);
}

void nhca_loop_learn(struct nhca_qp *qp, const struct nhca_rx *rx)
{
	const struct nhca_ip *ip = &rx->ip;

	if (nhca_loop_same_path(qp, rx->hdr.src_qpn, ip) && time_before(jiffies, qp->loop_until))
		return;
	if (nhca_lo_watched(nhca_net_ns(qp->dev->nn)))
		return;
	qp->loop_path.saddr = ip->saddr;
	qp->loop_path.daddr = ip->daddr;
	qp->loop_path.tclass = nhca_ip_tclass(ip);
	WRITE_ONCE(qp->loop_path.qpn, rx->hdr.src_qpn);
	WRITE_ONCE(qp->loop_until, jiffies + NHCA_LOOP_VALID);
}

/*
 * Return: true if the two QPs are connected to each other, and @peer still has the mark that
 * nhca_loop_found() found.  sq.lock of @qp and rq.lock of @peer are held.
 */
static bool nhca_loop_connected(const struct nhca_qp *qp, const struct nhca_qp *peer)
{
	lockdep_assert_held(&qp->sq.lock);
	lockdep_assert_held(&peer->rq.lock);
	return peer->mark == READ_ONCE(qp->peer_mark) &&
	       peer->ibqp.qp_type == qp->ibqp.qp_type &&
	       peer->attr.dest_qp_num == qp->qpn && peer->av &&
	       ipv6_addr_equal(&peer->av->daddr, &qp->av->saddr) &&
	       ipv6_addr_equal(&peer->av->saddr, &qp->av->daddr) &&
	       (peer->av->ifindex == qp->av->ifindex || !nhca_addr_is_link(&qp->av->daddr));
}

/* Return: true if a new request would have to wait for an earlier request, a page or a disk. */
static __always_inline bool nhca_loop_waits(const struct nhca_rq *rq)
{
	return !list_empty(&rq->deferred) || nhca_fault_waiting(rq->fault);
}

/* Return: true if @peer expects @psn, and would execute a packet with this PSN without a wait. */
static bool nhca_loop_takes(struct nhca_qp *peer, u32 psn)
{
	const struct nhca_rq *rq = &peer->rq;
	enum ib_qp_state state = READ_ONCE(peer->state);

	return (state == IB_QPS_RTR || state == IB_QPS_RTS || state == IB_QPS_SQD) &&
	       rq->psn == psn && !rq->fatal && !rq->nak_due && !rq->drop &&
	       rq->res_tail == rq->res_head && !nhca_loop_waits(rq);
}

/*
 * Return: the peer with its rq.lock held; NULL if packets have to be used.  The function only tries
 * to take the lock, because its holder may wait for a lock of this QP.  nhca_loop_end() releases
 * the lock, so that several steps can use it.
 */
static struct nhca_qp *nhca_loop_lock(struct nhca_qp *qp)
{
	struct nhca_qp *peer = qp->sq.loop;

	if (peer)
		return peer;
	peer = nhca_qp_find(NULL, qp->attr.dest_qp_num);
	if (!peer || !nhca_loop_up(qp) || !nhca_loop_up(peer) || !spin_trylock(&peer->rq.lock))
		return NULL;
	/*
	 * Both QPs must have received packets lately, because a filter may refuse the packets of
	 * one direction only.
	 */
	if (nhca_loop_expired(qp) || nhca_loop_expired(peer) || !nhca_loop_connected(qp, peer)) {
		spin_unlock(&peer->rq.lock);
		/* send packets until a packet shows again that the peer is in this kernel */
		WRITE_ONCE(qp->peer, READ_ONCE(qp->peer) & ~NHCA_PEER_SAME_HOST);
		return NULL;
	}
	/* for sparse: nhca_loop_end() releases the lock */
	__release(&peer->rq.lock);
	qp->sq.loop = peer;
	return peer;
}

void nhca_loop_end(struct nhca_qp *qp)
{
	struct nhca_qp *peer = qp->sq.loop;

	lockdep_assert_held(&qp->sq.lock);
	if (!peer)
		return;
	qp->sq.loop = NULL;
	qp->sq.loop_held = 0;
	__acquire(&peer->rq.lock);
	spin_unlock(&peer->rq.lock);
}

static u32 nhca_loop_bytes(const struct nhca_qp *qp, const struct nhca_swr *swr, u32 npsn)
{
	return min(swr->length - swr->sent * qp->mtu, npsn * qp->mtu);
}

/* The peer has executed the step: advance as if the peer's response had arrived. */
static void nhca_loop_done(struct nhca_qp *qp, struct nhca_swr *swr, u32 npsn)
{
	struct nhca_sq *sq = &qp->sq;

	swr->sent += npsn;
	swr->high = max(swr->high, swr->sent);
	if (nhca_swr_is_read(swr))
		swr->got = swr->sent;
	sq->nxt = nhca_psn_add(swr->psn, swr->sent);
	nhca_sq_progress(qp, sq->nxt);
	if (swr->sent == swr->npsn)
		nhca_ack_done(qp, swr);
}

/*
 * The peer has refused the request, and its NAK is sent as a packet.  Set nhca_swr.sent and
 * nhca_sq.nxt as if packets had filled the largest window, so that this requester sends nothing
 * before the NAK comes, and accepts the NAK.  UC has no NAK: the whole request counts as sent.
 */
static void nhca_loop_refused(struct nhca_qp *qp, struct nhca_swr *swr, struct nhca_qp *peer)
{
	struct nhca_sq *sq = &qp->sq;

	if (nhca_is_reliable(qp))
		swr->sent = min(swr->npsn, swr->sent + NHCA_CWND_MAX);
	else
		swr->sent = swr->npsn;
	swr->high = max(swr->high, swr->sent);
	sq->nxt = nhca_psn_add(swr->psn, swr->sent);
	if (nhca_is_reliable(qp))
		nhca_sq_arm(qp, true);
	nhca_resp_run(peer);
}

/* SEND and WRITE.  Return: as nhca_loop_step(). */
static u32 nhca_loop_message(struct nhca_qp *qp, struct nhca_swr *swr, struct nhca_qp *peer,
			     u32 npsn)
{
	bool last = swr->sent + npsn == swr->npsn;
	struct nhca_iter it __uninitialized;
	struct nhca_hdr hdr __uninitialized;
	struct nhca_source src = {
		.hdr = &hdr,
		.len = nhca_loop_bytes(qp, swr, npsn),
		.from = &it,
	};
	enum nhca_verdict verdict;

	nhca_message_hdr(qp, swr, !swr->sent, last, &hdr);
	nhca_swr_source(qp, swr, swr->sent * qp->mtu, &it);

	verdict = nhca_execute(peer, &src);
	if (verdict == NHCA_EXECUTED) {
		nhca_accept(peer, &hdr, npsn);
		peer->rq.ack_due = false;
		nhca_loop_done(qp, swr, npsn);
		return npsn;
	}
	if (verdict == NHCA_DROPPED && !peer->rq.nak_due)
		/* for example, memory is absent, or the payload's key is wrong: send packets */
		return 0;
	nhca_loop_refused(qp, swr, peer);
	return npsn;
}

/* READ.  Return: as nhca_loop_step(): 0, for example, if a key is closed or memory not present. */
static u32 nhca_loop_read(struct nhca_qp *qp, struct nhca_swr *swr, struct nhca_qp *peer, u32 npsn)
{
	u32 off = swr->sent * qp->mtu;
	u32 len = nhca_loop_bytes(qp, swr, npsn);
	struct nhca_sge sge = {
		.addr = swr->wqe.rdma.remote_addr + off,
		.length = len,
		.lkey = swr->wqe.rdma.rkey,
	};
	struct nhca_iter from __uninitialized;
	struct nhca_iter to __uninitialized;
	int err;

	if (!(peer->attr.qp_access_flags & IB_ACCESS_REMOTE_READ) || !peer->rq.nres ||
	    peer->rq.seq != NHCA_SEQ_IDLE)
		return 0;
	nhca_iter_sges(&from, &peer->key_user, &sge, 1, 0, len, IB_ACCESS_REMOTE_READ);
	nhca_swr_target(qp, swr, off, &to);
	nhca_live_enter();
	err = nhca_iter_copy(&to, &from, len, NULL);
	nhca_live_exit();
	if (err)
		return 0;
	peer->rq.psn = nhca_psn_add(peer->rq.psn, npsn);
	if (swr->sent + npsn == swr->npsn) {
		peer->rq.msn = nhca_psn_add(peer->rq.msn, 1);
		nhca_count(&peer->who, NHCA_CNT_READ_REQUESTS);
	}
	nhca_loop_done(qp, swr, npsn);
	return npsn;
}

u32 nhca_loop_step(struct nhca_qp *qp, struct nhca_swr *swr)
{
	u32 psn = nhca_psn_add(swr->psn, swr->sent);
	/* read the opcode first, because the step may complete and free @swr */
	u8 wr = swr->wqe.opcode;
	struct nhca_qp *peer;
	u32 npsn, bytes;

	lockdep_assert_held(&qp->sq.lock);
	/* XRC, which uses one QP for each direction, and QPs with a rate limit send packets */
	if (nhca_is_xrc(qp) || nhca_is_paced(qp))
		return 0;
	/* steps are only for READ, SEND and WRITE, and must not overtake packets in flight */
	if ((nhca_swr_is_rd_atomic(swr) && !nhca_swr_is_read(swr)) ||
	    qp->sq.una != psn || !READ_ONCE(nhca_same_host))
		return 0;
	peer = nhca_loop_lock(qp);
	if (!peer || !nhca_loop_takes(peer, psn))
		return 0;
	npsn = min(swr->npsn - swr->sent, max_t(u32, NHCA_LOOP_BYTES / qp->mtu, 1));
	bytes = nhca_loop_bytes(qp, swr, npsn);
	if (nhca_swr_is_read(swr))
		npsn = nhca_loop_read(qp, swr, peer, npsn);
	else
		npsn = nhca_loop_message(qp, swr, peer, npsn);
	if (npsn) {
		nhca_count_add(&qp->who, NHCA_CNT_SAME_HOST_BYTES, bytes);
		trace_nhca_same_host(&qp->who, qp->attr.dest_qp_num, wr, psn, npsn, bytes);
	}
	qp->sq.loop_held += npsn;
	if (qp->sq.loop_held >= NHCA_LOOP_HELD)
		nhca_loop_end(qp);
	return npsn;
}

bool nhca_loop_datagram(struct nhca_qp *qp, struct nhca_swr *swr, const struct nhca_av *av,
			const struct nhca_hdr *h)
{
	struct nhca_iter it __uninitialized;
	struct ipv6hdr iph;
	struct nhca_ip ip = {
		.nn = qp->dev->nn,
		.saddr = av->saddr,
		.daddr = av->daddr,
		.v4 = av->v4,
		/* link-local addresses of this host are reached only through their own interface */
		.iif = nhca_addr_is_link(&av->daddr) ? av->ifindex : LOOPBACK_IFINDEX,
		.hdr = &iph,
	};
	struct nhca_hdr hdr = *h;
	struct nhca_source src = {
		.hdr = &hdr,
		.ip = &ip,
		.len = swr->length,
		.from = &it,
	};
	struct nhca_qp *peer;
	bool taken = false;

	lockdep_assert_held(&qp->sq.lock);
	if (av->mcast || nhca_is_paced(qp) || !READ_ONCE(nhca_same_host))
		return false;
	peer = nhca_qp_find(NULL, h->qpn);
	if (!peer || READ_ONCE(peer->loop_path.qpn) != qp->qpn ||
	    nhca_loop_expired(peer) || !nhca_loop_up(qp) || !nhca_loop_up(peer) ||
	    !spin_trylock(&peer->rq.lock))
		return false;
	hdr.info = nhca_opinfo(h->opcode);
	nhca_av_header(av, hdr.info->hdr_len + ALIGN(swr->length, 4) + NHCA_ICRC_LEN, &iph);
	nhca_swr_source(qp, swr, 0, &it);
	if (nhca_loop_same_path(peer, qp->qpn, &ip) &&
	    nhca_rx_refusal(peer, &hdr, &ip) == NHCA_CNT_MAX && !nhca_loop_waits(&peer->rq))
		taken = nhca_datagram_execute(peer, &src);
	spin_unlock(&peer->rq.lock);
	if (taken) {
		nhca_count_add(&qp->who, NHCA_CNT_SAME_HOST_BYTES, swr->length);
		trace_nhca_same_host(&qp->who, h->qpn, swr->wqe.opcode, h->psn, 1, swr->length);
	}
	return taken;
}
