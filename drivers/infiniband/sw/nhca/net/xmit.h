/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Private to the net room: what a packet alone and a batch have in common.
 */
#ifndef NHCA_NET_XMIT_H
#define NHCA_NET_XMIT_H

#include <linux/ipv6.h>
#include <linux/mm.h>
#include <linux/netdevice.h>
#include <linux/skbuff.h>
#include <linux/udp.h>
#include <net/dst.h>

#include "net.h"
#include "zcopy.h"
#include "../wire/bth.h"
#include "../wire/icrc.h"

/* What a packet without an ICRC has in its place, as it lies in the packet */
static inline __le32 nhca_bare_tail(const struct nhca_hdr *h)
{
	return h->caps & NHCA_CAP_ACKS ? (__force __le32)cpu_to_be32(h->acks) : h->mark;
}

/* Pad and ICRC, or what is in its place, into @p.  @crc: over all that is before them */
static inline void nhca_tail_encode(const struct nhca_hdr *h, u32 crc, u8 *p)
{
	__le32 icrc = nhca_bare_tail(h);

	memset(p, 0, h->pad);
	if (!(h->caps & NHCA_CAP_NO_ICRC))
		icrc = nhca_icrc_finish(nhca_icrc_more(crc, p, h->pad));
	memcpy(p + h->pad, &icrc, sizeof(icrc));
}

/* bytes that a packet, or a batch, can have after its UDP header: IP's lengths have 16 bits */
#define NHCA_PACKET_BYTES	(65535 - (u32)(sizeof(struct ipv6hdr) + sizeof(struct udphdr)))

/**
 * nhca_frags_fit - does the next piece of a payload leave room for the rest of the packet?
 * @used: fragments that the packet has
 * @more: fragments that the piece takes
 * @left: bytes of payload after the piece; copied, they take a fragment for each PAGE_SIZE
 * @max:  fragments that the packet may have, one of which is for its pad and ICRC
 * Context: any.
 * Return: true if the packet can be completed.
 */
static inline bool nhca_frags_fit(u32 used, u32 more, u32 left, u32 max)
{
	return used + more + DIV_ROUND_UP(left, (u32)PAGE_SIZE) + 1 <= max;
}

/* pages on which @len bytes at @addr lie */
static inline u32 nhca_pages_of(const void *addr, u32 len)
{
	return DIV_ROUND_UP(offset_in_page(addr) + len, (u32)PAGE_SIZE);
}

/* bytes of a packet behind its UDP header */
static inline u32 nhca_tx_bytes(const struct nhca_tx *tx)
{
	return tx->hdr->info->hdr_len + tx->payload + tx->hdr->pad + NHCA_ICRC_LEN;
}

/**
 * struct nhca_seal - what proves that a packet is as it was sent
 * @crc:  running ICRC
 * @csum: running UDP checksum over the first @off bytes behind the UDP header
 * @off:  bytes so far
 * @icrc: the ICRC is wanted
 * @sum:  the checksum is wanted
 */
struct nhca_seal {
	u32 crc;
	__wsum csum;
	u32 off;
	bool icrc;
	bool sum;
};

/*
 * Where the bytes after the UDP header go.  The stack copies all consumer pages of an skb that it
 * hands to a receiver on this host (skb_orphan_frags_rx()), but looks at the first skb only.  So on
 * netdevs that may lead to one (NETIF_F_FRAGLIST: veth, lo and other virtual ones) pages are in
 * skbs of the frag_list: they reach the receiver uncopied, and are released when it frees the skb.
 */
enum nhca_build_how {
	NHCA_BUILD_LINEAR,
	NHCA_BUILD_FRAGS,
	NHCA_BUILD_LIST,
};

/*
 * Return: true if the netdev takes fragments in a frag_list.  Drivers without UDP GSO are not asked
 * for that: the one of user-mode Linux (vector) declares NETIF_F_FRAGLIST, and sends only what is
 * in the first skb.
 */
static inline bool nhca_takes_list(const struct net_device *dev)
{
	return (dev->features & NETIF_F_FRAGLIST) && (dev->features & NETIF_F_GSO_UDP_L4);
}

/**
 * nhca_build - add what follows the UDP header: BTH, extended headers, payload, pad and ICRC
 * @skb:    with nhca_headers(); with room for all of it if @linear
 * @tx:     the packet; at most NHCA_PACKET_BYTES
 * @seal:   which proofs are wanted; on return they are complete
 * @how:    copy the payload to where the headers are (NHCA_BUILD_LINEAR), into fragments of @skb,
 *          or into those of an skb in its frag_list (NHCA_BUILD_LIST)
 * @z:      the reference of the consumer pages, set if one is begun; the caller puts it
 * Context: BH disabled, live section: here the payload is read, or its pages referenced.
 * Return: 0, or as nhca_xmit(); then @skb can only be freed.
 */
int nhca_build(struct sk_buff *skb, struct nhca_tx *tx, struct nhca_seal *seal,
	       enum nhca_build_how how, struct nhca_zcopy **z);

/**
 * nhca_route - the way to a peer
 * @sport: UDP source port
 * Context: BH disabled.  Return: a counted dst, or ERR_PTR.
 */
struct dst_entry *nhca_route(struct net *net, struct nhca_av *av, u16 sport);

/* what an skb for @dst keeps free before the bytes behind the UDP header */
unsigned int nhca_headroom(const struct dst_entry *dst);

/**
 * nhca_push_headers - put the headers of UDP and IP before @skb, but for lengths and checksums
 * @idents: IPv4 identifications to set aside
 */
void nhca_push_headers(struct sk_buff *skb, struct nhca_av *av, u16 sport, unsigned int idents);

/**
 * nhca_headers - make an empty skb one for @dst, in which the headers of IP and UDP stand
 * @skb: takes over @dst, or NULL where there was no memory for it: then @dst is released
 * @idents: as nhca_push_headers()
 * Return: @skb.
 */
struct sk_buff *nhca_headers(struct sk_buff *skb, struct nhca_av *av, struct dst_entry *dst,
			     u16 sport, unsigned int idents);

/**
 * nhca_skb - a new skb with room for @room bytes, and nhca_headers() in it
 * Context: BH disabled.  Return: the skb, or NULL; then @dst is released.
 */
struct sk_buff *nhca_skb(struct nhca_av *av, struct dst_entry *dst, u16 sport,
			 unsigned int room, unsigned int idents);

/**
 * nhca_icrc_head - ICRC over the headers of one packet of @skb, all that is before its payload
 * @skb: with nhca_headers()
 * @hdr: BTH and extended headers, @hdr_len bytes
 * @udp_len: bytes behind the UDP header
 * @index: the packet's place in a batch
 */
u32 nhca_icrc_head(const struct sk_buff *skb, const u8 *hdr, unsigned int hdr_len,
		   unsigned int udp_len, unsigned int index);

/* does the netdev, or software below us, add UDP checksums? */
static inline bool nhca_can_sum(const struct dst_entry *dst, bool v4)
{
	return can_checksum_protocol(dst->dev->features, htons(v4 ? ETH_P_IP : ETH_P_IPV6));
}

/* have the UDP checksum added below us; lengths are set */
void nhca_sum_below(struct sk_buff *skb, const struct nhca_av *av);

/* set the UDP checksum: @csum is of what lies behind the UDP header, where the length is set */
void nhca_sum_here(struct sk_buff *skb, const struct nhca_av *av, __wsum csum);

/**
 * nhca_send - give an skb to the stack
 * @dev:     the device
 * @who:     for the counters
 * @av:      where to
 * @flow:    is charged
 * @skb:     complete but for what the stack adds below UDP
 * @packets: in it
 * @payload: bytes of payload in it
 * @zcopied: of these, bytes by reference; the caller puts the reference afterwards
 * Context: BH disabled.
 */
void nhca_send(struct nhca_dev *dev, const struct nhca_who *who, struct nhca_av *av,
	       struct nhca_flow *flow, struct sk_buff *skb, u32 packets, u32 payload, u32 zcopied);

/* module unload, after the last packet: give back the pages; process */
void nhca_xmit_exit(void);

#endif /* NHCA_NET_XMIT_H */
