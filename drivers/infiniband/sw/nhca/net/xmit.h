/* SPDX-License-Identifier: GPL-2.0 */
/* Private to net/: functions for single packets and for batches. */
#ifndef NHCA_NET_XMIT_H
#define NHCA_NET_XMIT_H

#include <linux/ipv6.h>
#include <linux/mm.h>
#include <linux/netdevice.h>
#include <linux/skbuff.h>
#include <linux/udp.h>
#include <net/dst.h>

#include "net.h"
#include "sums.h"
#include "zcopy.h"

/* maximum bytes of a packet or batch after the UDP header, because IP lengths have 16 bits */
#define NHCA_PACKET_BYTES	(65535 - (u32)(sizeof(struct ipv6hdr) + sizeof(struct udphdr)))

/**
 * nhca_route_fits - check that a route leads to the kind of destination that an AV has
 * @av:  the address vector
 * @dst: a route to its destination, from the routing table of the AV's IP version
 *
 * An address vector for answers has the source address of a packet, which anybody can choose, and
 * the addresses of this host may change later.  So the type of each new route is checked: packets
 * must not become broadcasts.
 * Context: RCU read side.
 * Return: true if @av is unicast and so is @dst, or if both are multicast.
 */
bool nhca_route_fits(const struct nhca_av *av, const struct dst_entry *dst);

/**
 * nhca_tx_bytes - compute the length of a packet
 * @tx: the packet
 * Context: any.
 * Return: bytes of the packet after its UDP header.
 */
static inline u32 nhca_tx_bytes(const struct nhca_tx *tx)
{
	return tx->hdr->info->hdr_len + tx->payload + tx->hdr->pad + NHCA_ICRC_LEN;
}

/*
 * Where payload, pad and ICRC go: into the linear data after the headers (LINEAR), into fragments
 * of the skb (FRAGS), or into fragments of an skb in its frag_list (LIST).
 *
 * The stack copies all consumer pages of an skb before it gives the skb to a receiver on this host
 * (skb_orphan_frags_rx()), but not the pages of skbs in its frag_list. On netdevs that may lead to
 * a receiver on this host (NETIF_F_FRAGLIST: veth, lo and other virtual ones) the pages are
 * therefore in skbs of the frag_list. The receiver gets the pages uncopied, and they are released
 * when the receiver frees the skb.
 */
enum nhca_build_how {
	NHCA_BUILD_LINEAR,
	NHCA_BUILD_FRAGS,
	NHCA_BUILD_LIST,
};

/*
 * Return: true if the netdev accepts fragments in a frag_list. The netdev must also have UDP GSO,
 * because the driver of user-mode Linux (vector) declares NETIF_F_FRAGLIST but sends only the first
 * skb.
 */
static inline bool nhca_takes_list(const struct net_device *dev)
{
	return (dev->features & NETIF_F_FRAGLIST) && (dev->features & NETIF_F_GSO_UDP_L4);
}

/**
 * nhca_build - add the bytes after the UDP header: BTH, extended headers, payload, pad and ICRC
 * @skb:  with nhca_headers(); for NHCA_BUILD_LINEAR with room for all these bytes
 * @tx:   the packet; at most NHCA_PACKET_BYTES
 * @sums: icrc and sum select what the function computes. On return the ICRC is in the packet, and
 *        the checksum in @sums->csum covers all bytes after the UDP header
 * @how:  where the payload goes
 * @z:    set to a zero-copy reference if one was begun for consumer pages; the caller puts @z
 * Context: BH disabled, live section, because the payload is read or its pages are referenced.
 * Return: 0, or an error as nhca_xmit(), after which the caller must free @skb.
 */
int nhca_build(struct sk_buff *skb, struct nhca_tx *tx, struct nhca_sums *sums,
	       enum nhca_build_how how, struct nhca_zcopy **z);

/**
 * nhca_route - find the route to a peer
 * @net:   the namespace
 * @av:    address vector of the peer
 * @sport: UDP source port, host order
 * Context: BH disabled.
 * Return: a counted dst; ERR_PTR: there is no route, nhca_route_fits() refuses the route, or the
 * kernel has no IPv6.
 */
struct dst_entry *nhca_route(struct net *net, struct nhca_av *av, u16 sport);

/**
 * nhca_headroom - compute the room that an skb needs for all headers up to UDP
 * @dst: the route
 * Context: any.
 * Return: number of bytes.
 */
unsigned int nhca_headroom(const struct dst_entry *dst);

/**
 * nhca_push_headers - put UDP and IP headers, without lengths and checksums, before the data
 * @skb:    with nhca_headroom() bytes of headroom
 * @av:     address vector of the peer
 * @sport:  UDP source port, host order
 * @idents: number of IPv4 identifications to reserve
 * Context: BH disabled.
 */
void nhca_push_headers(struct sk_buff *skb, struct nhca_av *av, u16 sport, unsigned int idents);

/**
 * nhca_headers - prepare an empty skb for a route, with UDP and IP headers
 * @skb:    the skb, which takes over @dst; if @skb is NULL (no memory), @dst is released
 * @av:     address vector of the peer
 * @dst:    the route
 * @sport:  UDP source port, host order
 * @idents: as nhca_push_headers()
 * Context: BH disabled.
 * Return: @skb.
 */
struct sk_buff *nhca_headers(struct sk_buff *skb, struct nhca_av *av, struct dst_entry *dst,
			     u16 sport, unsigned int idents);

/**
 * nhca_skb - allocate an skb, and call nhca_headers() for it
 * @av:     address vector of the peer
 * @dst:    the route, which the skb takes over
 * @sport:  UDP source port, host order
 * @room:   bytes of linear data after the UDP header
 * @idents: as nhca_push_headers()
 * Context: BH disabled.
 * Return: the skb, or NULL if there is no memory; in this case @dst is released.
 */
struct sk_buff *nhca_skb(struct nhca_av *av, struct dst_entry *dst, u16 sport,
			 unsigned int room, unsigned int idents);

/**
 * nhca_icrc_head - compute the ICRC over all headers of one packet
 * @skb:     with nhca_headers()
 * @hdr:     BTH and extended headers
 * @hdr_len: bytes of @hdr
 * @udp_len: bytes of the packet after the UDP header
 * @index:   position of the packet in a batch
 * Context: any.
 * Return: the running ICRC, to be continued over the payload.
 */
u32 nhca_icrc_head(const struct sk_buff *skb, const u8 *hdr, unsigned int hdr_len,
		   unsigned int udp_len, unsigned int index);

/**
 * nhca_can_sum - check whether UDP checksums are computed below nhca
 * @dst: the route
 * @v4:  IPv4, not IPv6
 * Context: any.
 * Return: true if the netdev, or software between nhca and the netdev, adds the checksum.
 */
static inline bool nhca_can_sum(const struct dst_entry *dst, bool v4)
{
	return can_checksum_protocol(dst->dev->features, htons(v4 ? ETH_P_IP : ETH_P_IPV6));
}

/**
 * nhca_sum_partial - leave the UDP checksum to the stack or the netdev
 * @skb: the packet or batch; the length in the UDP header is set
 * @av:  its address vector
 * Context: any.
 */
void nhca_sum_partial(struct sk_buff *skb, const struct nhca_av *av);

/**
 * nhca_sum_sw - set the UDP checksum
 * @skb:  the packet; the length in the UDP header is set
 * @av:   its address vector
 * @csum: checksum over the bytes after the UDP header
 * Context: any.
 */
void nhca_sum_sw(struct sk_buff *skb, const struct nhca_av *av, __wsum csum);

/**
 * nhca_send - give an skb to the network stack
 * @dev:     the device
 * @who:     queue pair or channel, for the counters
 * @av:      destination
 * @flow:    is charged with the packets
 * @skb:     complete, except for the fields that the stack fills in below UDP
 * @packets: number of packets in @skb
 * @payload: bytes of payload in @skb
 * @zcopied: bytes of @payload sent by page reference; the caller puts the zero-copy reference later
 * Context: BH disabled.
 */
void nhca_send(struct nhca_dev *dev, const struct nhca_who *who, struct nhca_av *av,
	       struct nhca_flow *flow, struct sk_buff *skb, u32 packets, u32 payload, u32 zcopied);

/**
 * nhca_xmit_exit - free the memory for fragments at module unload, after the last packet
 * Context: process.
 */
void nhca_xmit_exit(void);

#endif /* NHCA_NET_XMIT_H */
