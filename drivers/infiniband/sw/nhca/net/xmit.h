/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Private to the net room: what a packet alone and a batch have in common.
 */
#ifndef NHCA_NET_XMIT_H
#define NHCA_NET_XMIT_H

#include <linux/netdevice.h>
#include <linux/skbuff.h>
#include <net/dst.h>

#include "../wire/bth.h"

struct nhca_av;
struct nhca_dev;
struct nhca_flow;
struct nhca_who;

/*
 * What packets without an ICRC have in its place, so that those from this host are known here:
 * random, and constant while the module is loaded.  The page begins with it.
 */
extern __le32 nhca_host_mark;
extern struct page *nhca_mark_page;

/* What a packet without an ICRC has in its place, as it lies in the packet */
static inline __le32 nhca_bare_tail(const struct nhca_hdr *h)
{
	return h->notice & NHCA_NOTICE_ACKS ? (__force __le32)cpu_to_be32(h->acks) :
					      nhca_host_mark;
}

/**
 * nhca_route - the way to a peer
 * @sport: UDP source port
 * Context: BH disabled.  Return: a counted dst, or ERR_PTR.
 */
struct dst_entry *nhca_route(struct net *net, struct nhca_av *av, u16 sport);

/**
 * nhca_headers - a new skb for @dst with room for @room bytes, in which the headers of IP and UDP
 * stand but for lengths and checksums
 * @idents: IPv4 identifications to set aside
 * Context: BH disabled.  Return: the skb, which has taken over @dst, or NULL.
 */
struct sk_buff *nhca_headers(struct nhca_av *av, struct dst_entry *dst, u16 sport,
			     unsigned int room, unsigned int idents);

/**
 * nhca_icrc_head - ICRC over the headers of one packet of @skb up to its BTH's end
 * @skb: from nhca_headers()
 * @index: the packet's place in a batch
 * @udp_len: bytes behind the UDP header
 */
u32 nhca_icrc_head(const struct sk_buff *skb, const u8 *bth, unsigned int udp_len,
		   unsigned int index);

/* does the netdev, or software below us, add UDP checksums? */
static inline bool nhca_can_sum(const struct dst_entry *dst, bool v4)
{
	return can_checksum_protocol(dst->dev->features, htons(v4 ? ETH_P_IP : ETH_P_IPV6));
}

/* have the UDP checksum added below us; lengths are set */
void nhca_sum_below(struct sk_buff *skb, const struct nhca_av *av);

/**
 * nhca_send - give an skb of @packets packets with @payload bytes to the stack
 * Context: BH disabled.
 */
void nhca_send(struct nhca_dev *dev, const struct nhca_who *who, struct nhca_av *av,
	       struct nhca_flow *flow, struct sk_buff *skb, int loan, u32 packets, u32 payload);

/* module load; process.  Return: 0 or -ENOMEM. */
int nhca_xmit_init(void);

/* module unload, after the last packet: give back the pages; process */
void nhca_xmit_exit(void);

#endif /* NHCA_NET_XMIT_H */
