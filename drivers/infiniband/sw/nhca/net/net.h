/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The network side: one pair of UDP sockets a network namespace, the table of
 * addresses that nhca devices answer to, and packets in and out.
 */
#ifndef NHCA_NET_H
#define NHCA_NET_H

#include <linux/skbuff.h>
#include <linux/in6.h>
#include <net/dst_cache.h>

#include "../nhca.h"
#include "../wire/bth.h"
#include "cursor.h"
#include "zcopy.h"

struct nhca_fault;
struct nhca_flow;
struct nhca_iter;
struct nhca_net;
struct nhca_qp;
struct nhca_rx;

/* ---- sockets.c: namespaces, sockets and addresses ---- */

/**
 * nhca_net_get - the namespace's sockets, made if this is its first device
 * @net: namespace of the netdev
 * Context: process, sleeps (RTNL may be held).
 * Return: counted reference or ERR_PTR: -EADDRINUSE if somebody (rdma_rxe)
 * has UDP port 4791.
 */
struct nhca_net *nhca_net_get(struct net *net);
void nhca_net_put(struct nhca_net *nn);

struct net *nhca_net_ns(const struct nhca_net *nn);

/**
 * nhca_addr_add - @dev answers to @gid on netdev @ifindex
 * nhca_addr_del - no longer
 * Called from ib_device_ops.add_gid / del_gid for RoCEv2 GIDs.
 * Context: process.  Return: 0 or -ENOMEM.
 */
int nhca_addr_add(struct nhca_dev *dev, const union ib_gid *gid, int ifindex);
void nhca_addr_del(struct nhca_dev *dev, const union ib_gid *gid, int ifindex);

/**
 * nhca_addr_find - which device answers to a destination address
 * @addr: IPv4-mapped or IPv6, as in a GID
 * @iif: interface that the packet came in by; decides if several devices have
 *       the address, otherwise any will do (loopback arrives on lo)
 * Context: RCU read side.
 */
struct nhca_dev *nhca_addr_find(struct nhca_net *nn, const struct in6_addr *addr,
				int iif);

/**
 * nhca_addr_is - does @dev answer to @addr?
 * Context: RCU read side.
 */
bool nhca_addr_is(struct nhca_net *nn, const struct nhca_dev *dev,
		  const struct in6_addr *addr);

/* no VLAN, as in struct ib_wc and struct nhca_cqe */
#define NHCA_VLAN_NONE	0xffff

/**
 * nhca_rx_vlan - the VLAN of the GID that a packet was sent to
 * @dev: device that it is for
 * @rx:  the packet; its interface decides only if @dev has the address on several netdevs, and
 *       for multicast
 * The RDMA core finds the GID of a connection request by its address and this VLAN.
 * Context: RCU read side.
 * Return: the VLAN, or NHCA_VLAN_NONE.
 */
u16 nhca_rx_vlan(const struct nhca_dev *dev, const struct nhca_rx *rx);

/**
 * nhca_net_dev - the device whose netdev, or the netdev below its VLANs, has @iif
 * For multicast.  Context: RCU read side.
 */
struct nhca_dev *nhca_net_dev(struct nhca_net *nn, int iif);
void nhca_net_dev_add(struct nhca_net *nn, struct nhca_dev *dev);
void nhca_net_dev_del(struct nhca_net *nn, struct nhca_dev *dev);

int nhca_net_init(void);
/* waits until the stack has given back every packet */
void nhca_net_exit(void);

/* ---- av.c: where packets go ---- */

/**
 * struct nhca_av - an address vector: everything needed to reach a peer
 * @ref:     users: AH, QP, send engine
 * @rcu:     freed behind it
 * @pd:      AHs: the protection domain that may use it
 * @id:      AHs: number in nhca_dev.ah_ids
 * @saddr, @daddr: IPv4-mapped or IPv6
 * @ifindex: netdev of the source GID
 * @v4:      both addresses are IPv4
 * @mcast:   @daddr is multicast
 * @tclass, @hop_limit, @flow_label: for the IP header
 * @sl:      service level, becomes skb->priority, or NHCA_SL_*
 * @sgid_index: of the source GID
 * @dmac:    as the consumer resolved it; the neighbour table decides, this
 *           answers ibv_query_qp()
 * @ident:   IPv4 identification of the next packet
 * @cache:   routes, per CPU
 */
struct nhca_av {
	refcount_t ref;
	struct rcu_head rcu;
	struct ib_pd *pd;
	u32 id;
	struct in6_addr saddr;
	struct in6_addr daddr;
	int ifindex;
	bool v4;
	bool mcast;
	u8 tclass;
	u8 hop_limit;
	u8 sl;
	u8 sgid_index;
	u32 flow_label;
	u8 dmac[ETH_ALEN];
	u16 ident;
	struct dst_cache cache;
};

/**
 * nhca_av_create - check and copy an address handle attribute
 * Context: process or atomic, by @gfp.
 * Return: the AV with one reference; ERR_PTR: -EINVAL (no GRH, not a RoCEv2
 * GID, address family mismatch), -ENOMEM.
 */
struct nhca_av *nhca_av_create(struct nhca_dev *dev, const struct rdma_ah_attr *attr,
			       gfp_t gfp);
void nhca_av_put(struct nhca_av *av);

/**
 * nhca_av_back - an address vector that leads to where a packet came from, from where it went
 * @dev: that has the address
 * Context: softirq.  Return: the AV with one reference; NULL: no memory.
 */
struct nhca_av *nhca_av_back(const struct nhca_dev *dev, const struct nhca_rx *rx);

/**
 * nhca_av_back_once - the same on the caller's stack, for one packet that goes at once
 * @av: filled in; without a reference count and a cache of routes, so that nothing is allocated
 * Context: softirq.
 */
void nhca_av_back_once(struct nhca_av *av, const struct nhca_dev *dev, const struct nhca_rx *rx);

/* is @av that of the packet? */
bool nhca_av_is_back(const struct nhca_av *av, const struct nhca_dev *dev,
		     const struct nhca_rx *rx);

/**
 * nhca_av_header - the IP header that a packet this way arrives with
 * @len: bytes behind the UDP header
 * @p:   room for a struct ipv6hdr
 * Context: any.  In xmit.c.
 */
void nhca_av_header(const struct nhca_av *av, u32 len, void *p);

/* what ibv_query_qp()/query_ah give back; not sgid_attr */
void nhca_av_to_attr(const struct nhca_av *av, struct rdma_ah_attr *attr);

/**
 * struct nhca_ah - an address handle
 * @ibah: the core's part
 * @av:   what it means; the AH's reference
 */
struct nhca_ah {
	struct ib_ah ibah;
	struct nhca_av *av;
};

static inline struct nhca_ah *to_nhca_ah(struct ib_ah *ibah)
{
	return container_of(ibah, struct nhca_ah, ibah);
}

/* the number of an AH in nhca_dev.ah_ids, as nhca_send_wqe.ud.ah_id has it */
static inline u32 nhca_ah_id(struct ib_ah *ibah)
{
	return to_nhca_ah(ibah)->av->id;
}

/**
 * nhca_flow_sport - UDP source port for a flow (IBTA A17: entropy), 0xc000-0xffff
 */
u16 nhca_flow_sport(u32 flow_label, u32 lqpn, u32 rqpn);

/* ---- flow.c: packets that the stack has not given back ---- */

/**
 * nhca_txq_create - the account of a device; NULL without memory; process
 * nhca_txq_put - drop the device's reference; NULL is fine; any context
 */
struct nhca_txq *nhca_txq_create(void);
void nhca_txq_put(struct nhca_txq *q);

/**
 * nhca_flow_create - the account of a QP
 * @q: its device's
 * @kick: called when a blocked flow has room: in softirq or any context that
 *        frees an skb; only schedules
 * @arg: for @kick
 * Context: process.  Return: the flow or NULL.
 */
struct nhca_flow *nhca_flow_create(struct nhca_txq *q, void (*kick)(void *arg), void *arg);

/**
 * nhca_flow_stop - no kick begins after this
 * @flow: still usable: an engine that has not ended may send, and be charged
 *
 * A kick runs in an RCU read-side critical section: after a grace period none runs.
 * Context: any.
 */
void nhca_flow_stop(struct nhca_flow *flow);

/**
 * nhca_flow_close - nhca_flow_stop(), then drop the owner's reference
 * @flow: no engine uses it any more.  The packets that the stack still holds keep it.
 *
 * Without an earlier nhca_flow_stop() the caller still has to wait for kicks, by a grace period.
 * Context: any.
 */
void nhca_flow_close(struct nhca_flow *flow);

/**
 * nhca_flow_blocked - has the QP, or its device, too much in the stack?
 * If so the flow will be kicked when there is room.
 * @answer: it wants to send what a peer waits for, which goes before requests
 * Context: BH disabled.
 */
bool nhca_flow_blocked(struct nhca_flow *flow, bool answer);

/* packets of the QP that are still in the stack of this host */
unsigned int nhca_flow_inflight(const struct nhca_flow *flow);

/**
 * nhca_flow_in_line - does the QP wait for the device's room, and does the line move?
 * @flow:  the QP's
 * @turns: flows that the device has let go on, at the last call and now
 *
 * Context: any.
 * Return: true if nhca_flow_blocked() has sent @flow to the end of the line, and others
 * got their turn since the last call.
 */
bool nhca_flow_in_line(const struct nhca_flow *flow, u32 *turns);

/* ---- xmit.c ---- */

struct nhca_burst;

/**
 * struct nhca_tx - one packet to send
 * @burst:   where it may wait for those behind it, or NULL
 * @dev, @av, @flow: whose, where to, on whose account
 * @who:     whose, for counters and traces
 * @sport:   UDP source port, host order
 * @hdr:     headers; pad is filled in here
 * @it:      payload source, or NULL
 * @payload: bytes from @it
 * @copy:    copy the payload even if it could ride by reference: for data
 *           that the consumer may change before the stack has sent it
 *           (UC, UD), and for retransmissions (a source that changes under us
 *           would fail its ICRC for ever)
 * @sum:     with a UDP checksum, which the peer verifies: with it packets may travel in batches,
 *           and do without an ICRC if @hdr says so (NHCA_CAP_NO_ICRC)
 * @fault:   where to wait if the payload is not in memory, or NULL
 * @ahead:   bytes of the message that will follow @payload in the same buffer
 * @zcopied: set by nhca_xmit() and nhca_burst_run(), 0 before: bytes of payload that went by
 *           reference
 */
struct nhca_tx {
	struct nhca_burst *burst;
	struct nhca_dev *dev;
	const struct nhca_who *who;
	struct nhca_av *av;
	struct nhca_flow *flow;
	u16 sport;
	struct nhca_hdr *hdr;
	struct nhca_iter *it;
	u32 payload;
	bool copy;
	bool sum;
	struct nhca_fault *fault;
	u32 ahead;
	u32 zcopied;
};

/**
 * nhca_xmit - build and send one packet, or have it wait in @tx->burst
 *
 * Payload of more than NHCA_COPY_BREAK bytes goes by page reference.
 * Context: BH disabled, RCU read side; not in a live section: the payload is read in one
 * of its own.
 * Return: 0 if the stack took it (it may still drop it); -EACCES if @it refused (a local
 * protection error); -EMSGSIZE: IP has no packets of that length, so the packet must not be tried
 * again; -EAGAIN: @fault waits for the payload; -ENOMEM, -EHOSTUNREACH, -ENETDOWN for what may
 * pass: the packet counts as lost on the wire.
 */
int nhca_xmit(struct nhca_tx *tx);

#define NHCA_COPY_BREAK		256

/* bytes of a BTH before the PSN */
#define NHCA_ALIKE_LEN		9

/* ---- recv.c ---- */

/**
 * struct nhca_alike - what was checked of the packet before, so that a packet which differs from it
 * only in its PSN, and perhaps in its acknowledge request, need not be checked again
 * @set:     that packet has a BTH and no other headers; else nothing below means anything
 * @bare:    it was taken as intact without an ICRC, by the UDP checksum that covers the whole
 *           batch: so those behind it are as intact as it is.  False: each has an ICRC to verify
 * @passed:  the transport room let it in; see nhca_transport_again()
 * @udp_len: bytes behind its UDP header
 * @bth:     a copy of its first bytes, which the others have in common with it
 *
 * A copy and no pointer: the packet's headers may have been put together on the stack.
 */
struct nhca_alike {
	bool set;
	bool bare;
	bool passed;
	u32 udp_len;
	u8 bth[NHCA_ALIKE_LEN];
};

/**
 * struct nhca_rx - one received packet, decoded
 * @nn:      namespace it came in by
 * @dev:     device, once known (transport sets it)
 * @skb:     the (batch) buffer
 * @off:     where the packet's payload (behind the headers) begins in @skb
 * @payload: bytes of payload, without pad
 * @hdr:     headers
 * @saddr, @daddr: IPv4-mapped or IPv6
 * @v4, @mcast: what they are
 * @iif:     incoming interface
 * @ce:      ECN congestion experienced
 * @iph:     IP header, for the GRH of UD
 * @udp_off: where the packet's BTH begins in @skb, @udp_len its UDP payload length
 * @index:   the packet's place in its batch (IPv4 identification counts up)
 * @at:      where in @skb the packet was last read
 * @src:     instead of @skb: where the payload comes from, on the same host; and then
 * @src_err: it could not be read
 * @alike:   what was checked of the packet before
 * @rxeth:   of the packet, if it has one, and that lies in one piece behind the BTH; else NULL
 * @qp, @held, @gen, @marked, @acks, @acked: the transport room's: the QP of the packet before,
 *           the lock of it that is still held and its generation then, whether a packet was
 *           marked (ECN), whether one acknowledged, and what the last of those did
 */
struct nhca_rx {
	struct nhca_net *nn;
	struct nhca_dev *dev;
	struct sk_buff *skb;
	u32 off;
	u32 payload;
	struct nhca_hdr hdr;
	struct in6_addr saddr;
	struct in6_addr daddr;
	bool v4;
	bool mcast;
	bool ce;
	int iif;
	const void *iph;
	u32 udp_off;
	u32 udp_len;
	u16 index;
	struct nhca_cursor at;
	struct nhca_iter *src;
	int src_err;
	struct nhca_alike alike;
	const u8 *rxeth;
	struct nhca_qp *qp;
	/* one of @qp's, or NULL */
	spinlock_t *held;
	u32 gen;
	bool marked;
	bool acks;
	u32 acked;
};

/**
 * nhca_insists_icrc - shall packets have an ICRC even where peers would do without (insist_icrc)?
 * Context: any.
 */
bool nhca_insists_icrc(void);

/**
 * nhca_rx_intact - is the packet as it was sent?  Nothing of it is believed before.
 * @rx:   the packet; @rx->alike.bare then says by what it was found intact
 * @bare: it may do without an ICRC, if its UDP checksum holds and it says so (NHCA_CAP_NO_ICRC)
 * Context: softirq.
 */
bool nhca_rx_intact(struct nhca_rx *rx, bool bare);

/**
 * nhca_rx_refused - a packet reaches nobody: count and trace it
 * @dev: the device that it would be for
 * @h:   its headers, or NULL
 * Context: softirq.
 */
void nhca_rx_refused(struct nhca_dev *dev, const struct nhca_hdr *h, enum nhca_counter why);

/**
 * nhca_rx_acks - does a packet acknowledge, besides what it is (NHCA_CAP_ACKS)?
 * @rx:  found intact by nhca_rx_intact()
 * @psn: up to which
 * Context: softirq.
 */
bool nhca_rx_acks(const struct nhca_rx *rx, u32 *psn);

/**
 * nhca_rx_mark - what an intact packet without an ICRC has in its place
 * @mark: nhca_qp.mark of the QP that sent it, if that is of this host
 * Context: softirq.
 * Return: false if there is none, or the packet has been on a wire.
 */
bool nhca_rx_mark(const struct nhca_rx *rx, __le32 *mark);

/**
 * nhca_rx_copy - copy the payload to memory
 * Context: live section.  Return: 0, or as nhca_iter_next().
 */
int nhca_rx_copy(struct nhca_rx *rx, struct nhca_iter *it);

/**
 * nhca_rx_read - copy the payload, of @len bytes, to memory of the kernel
 * @rx: a packet
 * Return: 0, -EFAULT.
 */
int nhca_rx_read(const struct nhca_rx *rx, void *to, u32 len);

/**
 * nhca_rx_copy_alike - copy to memory the payloads of the packets behind this one in its batch
 * that differ from it in their PSN, which counts up, and perhaps in their wish to be acknowledged
 * @rx:  a packet whose @alike is set; on return the last one that was copied
 * @max: how many there may be
 * Context: live section.
 * Return: how many there were, up to the first that is different or could not be copied whole; none
 * if each of them has an ICRC to verify.
 */
u32 nhca_rx_copy_alike(struct nhca_rx *rx, u32 max, struct nhca_iter *it);

/**
 * nhca_rx_run - how many packets behind this one in its batch go on with its transfer?
 * @rx:  a packet with an RXETH, of a whole segment, that is intact
 * @max: segments that the transfer has behind it
 * They differ from it in what nhca_rxeth_step() steps, so that what holds for it holds for them.
 * Context: softirq.
 */
u32 nhca_rx_run(const struct nhca_rx *rx, u32 max);

/* the next packet of the run */
void nhca_rx_next(struct nhca_rx *rx);

/* ---- faults.c: packets that fault injection holds back ---- */

/**
 * nhca_delayq_create - a place for them, in @dev; process.  Return: 0 or -ENOMEM.
 * nhca_delayq_destroy - forget them; no packet comes or goes any more; process
 */
int nhca_delayq_create(struct nhca_dev *dev);
void nhca_delayq_destroy(struct nhca_dev *dev);

#endif /* NHCA_NET_H */
