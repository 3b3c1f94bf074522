/* SPDX-License-Identifier: GPL-2.0 */
/* Address vectors: av.c.  Part of net.h. */
#ifndef NHCA_AV_H
#define NHCA_AV_H

#include <linux/if_ether.h>
#include <linux/in6.h>
#include <linux/refcount.h>
#include <linux/types.h>
#include <net/dst_cache.h>
#include <rdma/ib_verbs.h>

struct nhca_dev;
struct nhca_rx;

/**
 * struct nhca_av - an address vector: everything needed to reach a peer
 * @ref:     references: the address handle or QP, and the path cache and transfers of channels
 * @rcu:     frees the struct after a grace period
 * @pd:      address handles: the protection domain whose QPs may use the AV
 * @id:      address handles: number in nhca_dev.ah_ids
 * @saddr:   source address, IPv4-mapped or IPv6
 * @daddr:   destination address, IPv4-mapped or IPv6
 * @ifindex: netdev of the source GID
 * @v4:      both addresses are IPv4
 * @mcast:   @daddr is multicast
 * @tclass:  traffic class or TOS of the IP header
 * @hop_limit: hop limit or TTL of the IP header; 0: the default, 64 (NHCA_DEFAULT_TTL)
 * @flow_label: flow label of the IPv6 header, and entropy of the UDP source port
 * @sl:      service level, becomes skb->priority; or NHCA_SL_*, if the AV was made from a UD
 *           completion: an IP version, which sets no priority
 * @sgid_index: index of the source GID
 * @dmac:    destination MAC that the consumer has resolved, for ibv_query_qp(); packets are sent to
 *           the MAC of the neighbour table
 * @ident:   IPv4 identification of the next packet; READ_ONCE, WRITE_ONCE, no lock
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
 * @dev:  the device
 * @attr: the attribute; its source GID must have a netdev
 * @gfp:  GFP_KERNEL, or GFP_ATOMIC in atomic context
 * Context: process or atomic, by @gfp.
 * Return: the AV with one reference; ERR_PTR: -EINVAL: @attr has no GRH or no RoCEv2 GID, the GID
 * has no netdev, only one of the addresses is IPv4, or the destination is neither a multicast
 * address nor the address of one host (nhca_addr_unicast()); -EADDRNOTAVAIL: the GID is a
 * link-local address that the netdev does not have; -ENOMEM: no memory.
 */
struct nhca_av *nhca_av_create(struct nhca_dev *dev, const struct rdma_ah_attr *attr,
			       gfp_t gfp);

/**
 * nhca_addr_unicast - check that an address is that of one host
 * @dev:     the device
 * @ifindex: the netdev whose VRF has the routes
 * @addr:    IPv4-mapped or IPv6
 * Context: any.
 * Return: false if @addr is multicast, unspecified, the limited broadcast address, or the broadcast
 * address of a subnet of this host.
 */
bool nhca_addr_unicast(const struct nhca_dev *dev, int ifindex, const struct in6_addr *addr);

/**
 * nhca_av_put - drop a reference
 * @av: the AV, or NULL
 * Context: any.
 */
void nhca_av_put(struct nhca_av *av);

/**
 * nhca_av_back - create an address vector for answers to a packet
 * @dev: the device that received the packet
 * @rx:  the packet: its source becomes the destination
 * Context: softirq.
 * Return: the AV with one reference, or NULL if there is no memory.
 */
struct nhca_av *nhca_av_back(const struct nhca_dev *dev, const struct nhca_rx *rx);

/**
 * nhca_av_back_once - fill in an address vector for one answer to a packet
 * @av:  on the caller's stack; the function allocates nothing, so @av has neither a reference count
 *       nor a route cache
 * @dev: the device that received the packet
 * @rx:  the packet
 * Context: softirq.
 */
void nhca_av_back_once(struct nhca_av *av, const struct nhca_dev *dev, const struct nhca_rx *rx);

/**
 * nhca_av_is_back - check whether an address vector leads back to the sender of a packet
 * @av:  the address vector
 * @dev: the device that received the packet
 * @rx:  the packet
 * Context: softirq.
 * Return: true if nhca_av_back() would give the same addresses, netdev and traffic class.
 */
bool nhca_av_is_back(const struct nhca_av *av, const struct nhca_dev *dev,
		     const struct nhca_rx *rx);

/**
 * nhca_av_header - write the IP header with which a packet for an address vector would arrive
 * @av:  the address vector
 * @len: bytes after the UDP header
 * @p:   sizeof(struct ipv6hdr) bytes of memory, also for an IPv4 header
 *
 * The same-host path (transport/loop.c) computes the GRH of a datagram from this header.  The
 * function is in xmit.c.
 * Context: any.
 */
void nhca_av_header(const struct nhca_av *av, u32 len, void *p);

/**
 * nhca_av_to_attr - convert an address vector to an address handle attribute
 * @av:   the address vector
 * @attr: filled in, except sgid_attr; for ib_device_ops.query_qp and query_ah
 * Context: any.
 */
void nhca_av_to_attr(const struct nhca_av *av, struct rdma_ah_attr *attr);

/**
 * struct nhca_ah - an address handle
 * @ibah: the core's part
 * @av:   its address vector; the handle owns a reference
 */
struct nhca_ah {
	struct ib_ah ibah;
	struct nhca_av *av;
};

static inline struct nhca_ah *to_nhca_ah(struct ib_ah *ibah)
{
	return container_of(ibah, struct nhca_ah, ibah);
}

/* the number of an AH in nhca_dev.ah_ids, as in nhca_send_wqe.ud.ah_id */
static inline u32 nhca_ah_id(struct ib_ah *ibah)
{
	return to_nhca_ah(ibah)->av->id;
}

/**
 * nhca_udp_sport - compute the UDP source port of a queue pair (IBTA A17: entropy)
 * @flow_label: IPv6 flow label; 0: use the QPNs
 * @lqpn:       local QPN
 * @rqpn:       QPN of the peer
 * Context: any.
 * Return: the port in host order, 0xc000 to 0xffff.
 */
u16 nhca_udp_sport(u32 flow_label, u32 lqpn, u32 rqpn);

#endif /* NHCA_AV_H */
