/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The network side: UDP sockets of each network namespace, the table of addresses of nhca devices,
 * and the functions that send and receive packets.
 *
 * A batch is an skb with several packets of one sender (UDP GSO or GRO).  A payload that is sent by
 * page reference is not copied: the packet refers to the consumer's pages (zcopy.h).
 */
#ifndef NHCA_NET_H
#define NHCA_NET_H

#include <linux/skbuff.h>
#include <linux/in6.h>
#include <net/flow.h>

#include "../nhca.h"
#include "../observe/counters.h"
#include "../wire/bth.h"
#include "av.h"
#include "cursor.h"
#include "zcopy.h"

struct nhca_bh;
struct nhca_fault;
struct nhca_flow;
struct nhca_iter;
struct nhca_net;
struct nhca_ip;
struct nhca_rx;

/* ---- sockets.c: namespaces, sockets and addresses ---- */

/**
 * nhca_net_get - get the sockets of a namespace, and open them for its first device
 * @net: namespace of the netdev
 * Context: process, sleeps (RTNL may be held).
 * Return: a counted reference or ERR_PTR: -EADDRINUSE: another program or driver (rdma_rxe) uses
 * UDP port 4791; -ENOMEM: no memory; or another error of the sockets or of the netfilter hook.
 */
struct nhca_net *nhca_net_get(struct net *net);

/**
 * nhca_net_put - drop a reference of nhca_net_get()
 * @nn: the namespace; its sockets are closed with the last reference
 * Context: process, sleeps.
 */
void nhca_net_put(struct nhca_net *nn);

/**
 * nhca_net_vrf_changed - open or close sockets after netdevs have entered or left a VRF
 * @net: the namespace, with or without nhca devices
 * Context: process, sleeps (RTNL may be held).
 */
void nhca_net_vrf_changed(struct net *net);

/**
 * nhca_net_ns - get the network namespace
 * @nn: nhca's part of the namespace
 * Context: any.
 * Return: the namespace, without a reference.
 */
struct net *nhca_net_ns(const struct nhca_net *nn);

/**
 * nhca_addr_add - enter an address of a device into the table of the device's namespace
 * nhca_addr_del - remove an address that nhca_addr_add() has entered
 * @dev:     the device
 * @gid:     the address, as a RoCEv2 GID
 * @ifindex: netdev that has the address: that of @dev, or one above it, such as a VLAN
 *
 * ib_device_ops.add_gid and del_gid call these functions.
 * Context: process, sleeps.
 * Return: nhca_addr_add(): 0; -ENOMEM: no memory.
 */
int nhca_addr_add(struct nhca_dev *dev, const union ib_gid *gid, int ifindex);
void nhca_addr_del(struct nhca_dev *dev, const union ib_gid *gid, int ifindex);

/**
 * nhca_addr_find - find the device that has a destination address
 * @nn:   the namespace
 * @addr: IPv4-mapped or IPv6, as in a GID
 * @iif:  interface on which the packet arrived; lo for a packet of this host.  The function prefers
 *        the device on this interface, then a device below this interface.  If there is none, the
 *        function returns any device with the address, but for a link-local address only if @iif is
 *        lo
 * Context: RCU read side.
 * Return: the device, or NULL.
 */
struct nhca_dev *nhca_addr_find(struct nhca_net *nn, const struct in6_addr *addr,
				int iif);

/**
 * nhca_addr_is - check whether a packet was sent to an address of a device
 * @dev: the device, in the namespace of the packet
 * @ip:  header of the packet
 *
 * If the packet has a link-local address, it must have arrived on the interface of the device's
 * address, or on lo (nhca_ip_link()).
 * Context: RCU read side.
 * Return: true if @dev has the destination address.
 */
bool nhca_addr_is(const struct nhca_dev *dev, const struct nhca_ip *ip);

/* no VLAN, as in struct ib_wc and struct nhca_cqe */
#define NHCA_VLAN_NONE	0xffff

/**
 * nhca_ip_vlan - get the VLAN of the GID that a packet was sent to
 * @dev: device that the packet is for
 * @ip:  header of the packet; @ip->iif is used only for multicast, or if @dev has the address on
 *       several netdevs
 *
 * The RDMA core finds the GID of a connection request by the GID's address and this VLAN.
 * Context: RCU read side.
 * Return: the VLAN, or NHCA_VLAN_NONE.
 */
u16 nhca_ip_vlan(const struct nhca_dev *dev, const struct nhca_ip *ip);

/**
 * nhca_net_dev - find the device on an interface, for multicast
 * @nn:  the namespace
 * @iif: index of the device's netdev, or of a VLAN above it
 * Context: RCU read side.
 * Return: the device, or NULL.
 */
struct nhca_dev *nhca_net_dev(struct nhca_net *nn, int iif);

/**
 * nhca_net_dev_add - add a device to the list of its namespace
 * nhca_net_dev_del - remove a device from this list
 * @nn:  the namespace
 * @dev: the device; after nhca_net_dev_del() the caller waits for RCU readers before it frees @dev
 * Context: process.
 */
void nhca_net_dev_add(struct nhca_net *nn, struct nhca_dev *dev);
void nhca_net_dev_del(struct nhca_net *nn, struct nhca_dev *dev);

/**
 * nhca_net_init - register the operations for network namespaces, at module load
 * @data_ready: sk_data_ready of the UDP sockets; nhca_sk_data_ready()
 * @rest:       bottom half of struct nhca_sock; nhca_sk_rest()
 *
 * Both functions receive packets. They are passed as pointers so that net/ does not depend on
 * ingress/, which has these functions.
 * Context: process.
 * Return: 0 or an error of register_pernet_subsys().
 */
int nhca_net_init(void (*data_ready)(struct sock *sk), void (*rest)(struct nhca_bh *bh));

/**
 * nhca_net_exit - undo nhca_net_init(), at module unload
 *
 * The function first waits until the stack has freed all packets of the module.
 * Context: process, sleeps.
 */
void nhca_net_exit(void);

/* ---- flow.c: transmit back-pressure ---- */

/**
 * nhca_txq_create - create the object that counts a device's packets in the network stack
 * Context: process.
 * Return: the object, or NULL if there is no memory.
 */
struct nhca_txq *nhca_txq_create(void);

/**
 * nhca_txq_put - release a reference to @q; the last one frees it
 * @q: the object from nhca_txq_create(), or NULL
 * Context: any.
 */
void nhca_txq_put(struct nhca_txq *q);

/**
 * nhca_flow_create - create the packet count of a QP or channel
 * @q:    packet count of the device
 * @kick: called when a blocked flow may send again, or when zero-copy references were released: in
 *        softirq, or in any context that frees an skb, also with interrupts disabled. The function
 *        may only queue work
 * @arg:  argument of @kick
 * Context: process.
 * Return: the flow, or NULL if there is no memory.
 */
struct nhca_flow *nhca_flow_create(struct nhca_txq *q, void (*kick)(void *arg), void *arg);

/**
 * nhca_flow_share - let the packets of a flow also count in its user's share of the device
 * @flow:  a new flow, of which no packet was sent yet
 * @user:  the user's record of the device; NULL: nobody, so that only the limits of flow and device
 *         hold
 *
 * Together, all flows of a user on a device may have nhca_user_share thousandths of the device's
 * limit, but at least NHCA_FLOW_FEW packets. The value that nhca_user_share had when the user
 * created the first of these flows applies.
 * Context: process, sleeps.
 * Return: 0; -ENOMEM: no memory.
 */
int nhca_flow_share(struct nhca_flow *flow, struct nhca_user *user);

/**
 * nhca_flow_stop - prevent further kicks of a flow's owner
 * @flow: the flow; a requester or responder that still runs may send and charge packets
 *
 * A kick runs in an RCU read-side critical section, so no kick runs after a grace period.
 * Context: any.
 */
void nhca_flow_stop(struct nhca_flow *flow);

/**
 * nhca_flow_close - nhca_flow_stop(), then drop the owner's reference
 * @flow: the flow, which the owner no longer uses. The flow is freed after the stack has freed the
 *        last packet of the flow
 *
 * Without an earlier nhca_flow_stop() the caller must still wait for kicks, by a grace period.
 * Context: any.
 */
void nhca_flow_close(struct nhca_flow *flow);

/**
 * nhca_flow_blocked - check whether a QP must pause because the stack holds too many packets
 * @flow:   the flow of the QP or channel. If the QP must pause, it is kicked when it may send again
 * @answer: the next packet is a response, for which the peer waits. Waiting flows with responses
 *          are woken before flows with requests
 * Context: BH disabled.
 * Return: true if the stack holds too many packets of the QP, its user or its device, or if other
 * flows have waited longer. Packets that are stuck (txq.c) do not count for user and device.
 */
bool nhca_flow_blocked(struct nhca_flow *flow, bool answer);

/**
 * nhca_flow_inflight - count the packets of a QP in the network stack of this host
 * @flow: the flow
 * Context: any.
 * Return: number of packets.
 */
unsigned int nhca_flow_inflight(const struct nhca_flow *flow);

/**
 * nhca_flow_queue_hold - let a flow keep its transmit queue, even if the stack orphans packets
 * @flow: the flow of a requester whose packets are all acknowledged
 *
 * If the stack holds packets of the flow, the flow keeps the queue of these packets. Otherwise this
 * CPU selects the queue. The queue does not change until nhca_flow_queue_release().
 * Context: BH disabled; the caller holds nhca_sq.lock of the requester.
 */
void nhca_flow_queue_hold(struct nhca_flow *flow);

/**
 * nhca_flow_queue_release - let the queue change when the stack holds no packet of the flow
 * @flow: the flow of a requester whose packets are all acknowledged, or that gets another first PSN
 * Context: any; the caller holds nhca_sq.lock of the requester.
 */
void nhca_flow_queue_release(struct nhca_flow *flow);

/**
 * nhca_flow_queued - check whether a QP waits for its device while other QPs resume
 * @flow:  the flow of the QP
 * @wakes: number of flows that the device and the user's share had woken at the last call; updated
 *
 * Context: any.
 * Return: true if nhca_flow_blocked() has put @flow into a list of flows with requests, and the
 * device or the user's share has woken other flows since the last call.
 */
bool nhca_flow_queued(const struct nhca_flow *flow, u32 *wakes);

/* ---- xmit.c ---- */

struct nhca_burst;

/**
 * struct nhca_tx - one packet to send
 * @burst:   batch to which the packet may be added, or NULL
 * @dev:     the device
 * @who:     queue pair or channel, for counters and traces
 * @av:      destination
 * @flow:    flow that the packet is charged to
 * @sport:   UDP source port, host order
 * @hdr:     headers; nhca_xmit() sets info and pad
 * @it:      source of the payload, or NULL
 * @payload: bytes from @it
 * @copy:    copy the payload even if it could be sent by page reference. Set for UC and UD, because
 *           the consumer may change the payload before the stack has sent the packet; for
 *           retransmissions, because a source that keeps changing would make the ICRC of each of
 *           them wrong; for short messages; for most READ responses (nhca_resp_tx()); and for some
 *           packets of channels (rcxt/send.c)
 * @sum:     add a UDP checksum, which the peer verifies. Only packets with this checksum are sent
 *           in batches, or without an ICRC (if @hdr has NHCA_CAP_NO_ICRC)
 * @fault:   state of a wait for payload that is not in memory; NULL: do not wait, return an error
 * @ahead:   bytes of the message after @payload, which a page fault may also bring into memory
 * @zcopied: bytes of payload sent by page reference; the caller sets 0, and nhca_xmit() and
 *           nhca_burst_run() set the number
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
 * nhca_xmit - build a packet, and send it or add it to @tx->burst
 * @tx: the packet
 *
 * A payload of more than NHCA_COPY_BREAK bytes is sent by page reference where possible, unless
 * @tx->copy is set.
 * Context: BH disabled, RCU read side; not in a live section, because the function begins one.
 * Return: 0: the packet was given to the stack, which may still drop it, or was added to the batch;
 * -EACCES: the payload is not accessible (a local protection error); -ENODATA: @it has too few
 * bytes; -EIO: a disk could not read the payload; -EMSGSIZE: the packet is longer than IP permits,
 * so the caller must not try again; -EAGAIN: @fault waits for the payload; -ENOMEM: no memory;
 * -EHOSTUNREACH: no route; -ENETDOWN: the netdev is down, also by fault injection. After one of the
 * last three errors the caller treats the packet as lost on the wire.
 */
int nhca_xmit(struct nhca_tx *tx);

/* bytes up to which the payload of a packet is copied, not sent by page reference */
#define NHCA_COPY_BREAK		256
/*
 * bytes up to which a message is copied: a zero-copy reference, and on virtual netdevs another skb
 * for the pages, take more instructions than the copy
 */
#define NHCA_MESSAGE_COPY_BREAK	4096

/* bytes of the BTH before the PSN */
#define NHCA_ALIKE_LEN		9

/* ---- watchers.c ---- */

/**
 * nhca_route_watched - check whether the netdev to a destination must get all packets
 * @net:   namespace of the sender
 * @av:    the destination
 * @sport: UDP source port
 * Context: BH disabled, RCU read side.
 * Return: true if the netdev of the route has a packet socket or a queueing discipline, or if there
 * is no route.
 */
bool nhca_route_watched(struct net *net, struct nhca_av *av, u16 sport);

/**
 * nhca_lo_watched - nhca_route_watched() for the loopback netdev
 * @net: the namespace
 * Context: BH disabled, RCU read side.
 * Return: true if lo has a packet socket or a queueing discipline.
 */
bool nhca_lo_watched(struct net *net);

/* ---- recv.c ---- */

/**
 * struct nhca_alike - results of the checks of the previous packet of a batch
 * @set:     the packet has a BTH and no other headers; otherwise @udp_len and @bth are invalid
 * @no_icrc: the packet was accepted without an ICRC, by the UDP checksum. The UDP checksum was
 *           verified for all packets of the batch, so the following packets are also intact. False:
 *           each packet has an ICRC to verify
 * @udp_len: bytes of the packet after its UDP header
 * @bth:     a copy of the first bytes of the packet's BTH, which the following packets must share
 *
 * If a packet differs from the previous one only in its PSN, and perhaps in its AckReq bit, its
 * headers need not be checked again. @bth is a copy, because nhca_rx_headers() may have copied the
 * headers to a buffer on the kernel stack.
 */
struct nhca_alike {
	bool set;
	bool no_icrc;
	u32 udp_len;
	u8 bth[NHCA_ALIKE_LEN];
};

/**
 * struct nhca_ip - the IP header of a received packet
 * @nn:    namespace in which the packet arrived
 * @saddr: source address, IPv4-mapped or IPv6
 * @daddr: destination address, IPv4-mapped or IPv6
 * @v4:    the addresses are IPv4
 * @mcast: @daddr is multicast
 * @iif:   incoming interface. A packet of this host arrives on lo; but if its destination is a
 *         link-local address, @iif is the interface that has the address
 * @hdr:   the IP header of the skb, for the GRH of UD; in a batch, it has the length of the whole
 *         batch, and the IPv4 identification of the first packet
 * @id:    difference of the packet's IPv4 identification and that of @hdr; only if the packet was
 *         accepted by its ICRC, as datagrams are
 */
struct nhca_ip {
	struct nhca_net *nn;
	struct in6_addr saddr;
	struct in6_addr daddr;
	bool v4;
	bool mcast;
	int iif;
	const void *hdr;
	u16 id;
};

static inline bool nhca_addr_is_link(const struct in6_addr *addr)
{
	return (addr->s6_addr32[0] & htonl(0xffc00000)) == htonl(0xfe800000);
}

/**
 * nhca_ip_link - check that link-local addresses of a packet are those of an interface
 * @ip:      the packet
 * @ifindex: the interface
 *
 * Link-local addresses are unique only on their link (RFC 4007). The netdev of a device and the
 * VLANs above it often have the same link-local address.
 * Return: true if the packet has no IPv6 link-local address, or arrived on @ifindex or on lo.
 */
static inline bool nhca_ip_link(const struct nhca_ip *ip, int ifindex)
{
	return likely(ip->v4 || ip->iif == ifindex) || ip->iif == LOOPBACK_IFINDEX ||
	       !(nhca_addr_is_link(&ip->saddr) || nhca_addr_is_link(&ip->daddr));
}

/**
 * nhca_ip_tclass - get the traffic class of a packet
 * @ip: the packet
 * Context: any.
 * Return: the traffic class, without ECN.
 */
u8 nhca_ip_tclass(const struct nhca_ip *ip);

/**
 * struct nhca_rx - one received packet, decoded
 * @ip:      its IP header
 * @skb:     the batch
 * @off:     offset of the packet's payload in @skb
 * @payload: bytes of payload, without pad
 * @hdr:     headers
 * @ce:      ECN: congestion experienced
 * @udp_off: offset of the packet's BTH in @skb
 * @udp_len: length of its UDP payload in bytes
 * @index:   position of the packet in its batch; its IPv4 identification may exceed that of the
 *           first packet by this number
 * @at:      position in @skb at which the packet was last read
 * @alike:   results of the checks of the previous packet
 * @rxeth:   packets with an RXETH: the RXETH, if all headers are contiguous in @skb, or NULL
 */
struct nhca_rx {
	struct nhca_ip ip;
	struct sk_buff *skb;
	u32 off;
	u32 payload;
	struct nhca_hdr hdr;
	bool ce;
	u32 udp_off;
	u32 udp_len;
	u16 index;
	struct nhca_cursor at;
	struct nhca_alike alike;
	const u8 *rxeth;
};

/**
 * nhca_insists_icrc - get the module parameter insist_icrc
 * Context: any.
 * Return: true if all packets must have an ICRC, also between two nhca devices.
 */
bool nhca_insists_icrc(void);

/**
 * nhca_rx_intact - verify the ICRC or UDP checksum of a decoded packet
 * @rx:   the packet; the function sets @rx->alike.no_icrc to true if it accepts the packet by the
 *        UDP checksum, otherwise to false; it sets @rx->ip.id if it accepts the packet by its ICRC
 * @no_icrc: accept a packet with NHCA_CAP_NO_ICRC and without NHCA_CAP_FOREIGN by its UDP checksum,
 *        unless insist_icrc is set
 * Context: softirq.
 * Return: true if the UDP checksum or the ICRC proves that the packet is intact.
 */
bool nhca_rx_intact(struct nhca_rx *rx, bool no_icrc);

/**
 * nhca_rx_refused - count and trace a packet that is dropped
 * @dev: device that has the destination address
 * @h:   the headers of the packet, or NULL
 * @why: counter for the reason
 * Context: softirq.
 */
void nhca_rx_refused(struct nhca_dev *dev, const struct nhca_hdr *h, enum nhca_counter why);

/**
 * nhca_rx_acks - get the acknowledgment that a request carries (NHCA_CAP_ACKS)
 * @rx:  a packet that nhca_rx_intact() has accepted
 * @psn: set to the PSN up to which the packet acknowledges
 * Context: softirq.
 * Return: true if the packet carries an acknowledgment.
 */
bool nhca_rx_acks(const struct nhca_rx *rx, u32 *psn);

/**
 * nhca_rx_mark - get the mark of an intact packet that has no ICRC
 * @rx:   the packet
 * @mark: filled in with nhca_qp.mark of the QP that sent the packet, if the sender is on this host
 * Context: softirq.
 * Return: false if the packet has no mark, or has been on a wire.
 */
bool nhca_rx_mark(const struct nhca_rx *rx, __le32 *mark);

/**
 * nhca_rx_copy - copy the payload to registered memory
 * @rx: the packet
 * @it: the destination
 * Context: live section.
 * Return: 0; -EFAULT: the skb has fewer bytes than the payload; or an error as nhca_iter_next().
 */
int nhca_rx_copy(struct nhca_rx *rx, struct nhca_iter *it);

/**
 * nhca_rx_whole - get contiguous payload, in whole units
 * @rx:   the packet
 * @off:  offset in the payload, in bytes; calls with increasing offsets are fastest
 * @len:  maximum number of bytes to return; a multiple of @unit, and at least @unit
 * @unit: bytes of a unit
 * @buf:  room for a unit that is not contiguous in the skb
 * @n:    set to the number of bytes: a multiple of @unit, at least @unit
 * Context: any.
 * Return: the bytes, in the skb or in @buf; NULL: the skb has fewer bytes.
 */
const u8 *nhca_rx_whole(struct nhca_rx *rx, u32 off, u32 len, u32 unit, u8 *buf, u32 *n);

/**
 * nhca_rx_read - copy the payload to kernel memory
 * @rx:  the packet
 * @to:  the destination
 * @len: bytes of payload to copy
 * Context: any.
 * Return: 0; -EFAULT: the skb has fewer bytes.
 */
int nhca_rx_read(const struct nhca_rx *rx, void *to, u32 len);

/**
 * nhca_rx_copy_alike - copy the payloads of the following packets of a batch
 * @rx:  a packet with @rx->alike.set; on return @rx is the last packet that was copied
 * @max: maximum number of packets
 * @it:  the destination
 *
 * The packets may differ from @rx only in the PSN, which counts up, and in the AckReq bit. The
 * function copies no packet after one with AckReq.
 * Context: live section.
 * Return: number of packets copied, up to the first that differs or could not be copied completely;
 * 0 if the packets have ICRCs or acknowledgments, which the caller must check one by one.
 */
u32 nhca_rx_copy_alike(struct nhca_rx *rx, u32 max, struct nhca_iter *it);

/**
 * nhca_rx_run - count the following packets of a batch that continue the transfer of @rx
 * @rx:  an intact packet with an RXETH and a whole segment of payload
 * @max: number of further whole segments of the transfer
 *
 * The packets differ from @rx only in PSN and AckReq, and in the fields that nhca_rxeth_step()
 * changes: offset and PVO. So the checks of @rx are valid for these packets.
 * Context: softirq.
 * Return: number of packets; 0 if they have ICRCs, which must be verified one by one, or if
 * @rx->rxeth is NULL.
 */
u32 nhca_rx_run(const struct nhca_rx *rx, u32 max);

/**
 * nhca_rx_next - step to the next packet that nhca_rx_run() has counted
 * @rx: the packet; on return the next one
 * Context: softirq.
 */
void nhca_rx_next(struct nhca_rx *rx);

/* ---- deferred.c: copies of packets that wait ---- */

/**
 * nhca_rx_copy_deferred - copy a packet whose checks have passed, to execute it later
 * @rx:    the packet
 * @copy:  becomes the copy, alone in an skb that the caller frees; it has what requests, datagrams
 *         and frames need: IP header, decoded headers, payload
 * @memcg: is charged for the copy; NULL: the copy is not charged
 * @gfp:   for the copy.  GFP_ATOMIC also charges @memcg beyond its limit, GFP_NOWAIT does not
 * Context: softirq.
 * Return: 0; -ENOMEM: there is no memory, or @memcg is at its limit; -EFAULT: the skb has fewer
 * bytes than the payload.
 */
int nhca_rx_copy_deferred(const struct nhca_rx *rx, struct nhca_rx *copy, struct mem_cgroup *memcg,
			  gfp_t gfp);

#endif /* NHCA_NET_H */
