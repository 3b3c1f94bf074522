// SPDX-License-Identifier: GPL-2.0
/* Sending of one packet: route, headers, payload by page reference or copy, ICRC and checksum. */
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/percpu.h>
#include <linux/udp.h>
#include <net/ip.h>
#include <net/ip6_checksum.h>
#include <net/ip6_route.h>
#include <net/ipv6.h>
#include <net/l3mdev.h>
#include <net/route.h>
#include <net/udp.h>

#include "net.h"
#include "burst.h"
#include "faults.h"
#include "flow.h"
#include "frags.h"
#include "linear.h"
#include "pieces.h"
#include "xmit.h"
#include "../memory/memory.h"
#include "../observe/stub.h"
#include "../observe/trace.h"
#include "../wire/icrc.h"

#define NHCA_DEFAULT_TTL	64
/* maximum bytes of pad and ICRC after the payload */
#define NHCA_TAIL_MAX		(3 + NHCA_ICRC_LEN)

static_assert(NHCA_BURST_PACKETS <= NHCA_FLOW_BATCH);

/*
 * Return: the ifindex of the VRF of @ndev; 0: @ndev is in no VRF.  The routes to local addresses of
 * a VRF go through the VRF's netdev, as the routes to other local addresses go through lo.
 */
static int nhca_vrf_of(struct net_device *ndev)
{
	return ndev ? l3mdev_master_ifindex_rcu(ndev) : 0;
}

bool nhca_route_fits(const struct nhca_av *av, const struct dst_entry *dst)
{
	u8 type;

	if (av->v4) {
		type = container_of(dst, const struct rtable, dst)->rt_type;
		return av->mcast ? type == RTN_MULTICAST :
				   type == RTN_UNICAST || type == RTN_LOCAL;
	}
#if IS_ENABLED(CONFIG_IPV6)
	return ipv6_addr_is_multicast(&av->daddr) ? av->mcast :
						    !ipv6_anycast_destination(dst, &av->daddr);
#else
	return false;
#endif
}

static struct dst_entry *nhca_route4(struct net *net, struct nhca_av *av, u16 sport)
{
	struct flowi4 fl = {
		.daddr = av->daddr.s6_addr32[3],
		.saddr = av->saddr.s6_addr32[3],
		.flowi4_proto = IPPROTO_UDP,
		.fl4_sport = htons(sport),
		.fl4_dport = htons(NHCA_ROCE_UDP_PORT),
	};
	struct net_device *ndev;
	struct rtable *rt;
	__be32 saddr;

	rt = dst_cache_get_ip4(&av->cache, &saddr);
	if (rt)
		return &rt->dst;

	/* all local addresses, on whatever netdev, are reached through lo or through the VRF */
	ndev = dev_get_by_index_rcu(net, av->ifindex);
	if (inet_addr_type_dev_table(net, ndev, fl.daddr) == RTN_LOCAL)
		fl.flowi4_oif = nhca_vrf_of(ndev);
	else
		fl.flowi4_oif = av->ifindex;

	rt = ip_route_output_flow(net, &fl, NULL);
	if (IS_ERR(rt))
		return ERR_CAST(rt);
	if (!nhca_route_fits(av, &rt->dst)) {
		ip_rt_put(rt);
		return ERR_PTR(-EACCES);
	}
	dst_cache_set_ip4(&av->cache, &rt->dst, fl.saddr);
	return &rt->dst;
}

#if IS_ENABLED(CONFIG_IPV6)
static struct dst_entry *nhca_route6(struct net *net, struct nhca_av *av, u16 sport)
{
	struct flowi6 fl = {
		.daddr = av->daddr,
		.saddr = av->saddr,
		.flowi6_proto = IPPROTO_UDP,
		.fl6_sport = htons(sport),
		.fl6_dport = htons(NHCA_ROCE_UDP_PORT),
	};
	struct net_device *ndev;
	struct dst_entry *dst;
	struct in6_addr saddr;

	dst = dst_cache_get_ip6(&av->cache, &saddr);
	if (dst)
		return dst;

	ndev = dev_get_by_index_rcu(net, av->ifindex);
	if (!(ipv6_addr_type(&fl.daddr) & (IPV6_ADDR_LINKLOCAL | IPV6_ADDR_MULTICAST)) &&
	    ipv6_chk_addr_and_flags(net, &fl.daddr, ndev, true, 0, IFA_F_TENTATIVE))
		fl.flowi6_oif = nhca_vrf_of(ndev);
	else
		fl.flowi6_oif = av->ifindex;

	dst = ip6_dst_lookup_flow(net, NULL, &fl, NULL);
	if (IS_ERR(dst))
		return dst;
	if (!nhca_route_fits(av, dst)) {
		dst_release(dst);
		return ERR_PTR(-EACCES);
	}
	dst_cache_set_ip6(&av->cache, dst, &fl.saddr);
	return dst;
}
#else
static struct dst_entry *nhca_route6(struct net *net, struct nhca_av *av, u16 sport)
{
	return ERR_PTR(-EAFNOSUPPORT);
}
#endif

struct dst_entry *nhca_route(struct net *net, struct nhca_av *av, u16 sport)
{
	return av->v4 ? nhca_route4(net, av, sport) : nhca_route6(net, av, sport);
}

/* Return: the skb that gets the fragments of the packet; NULL: no memory. */
static struct sk_buff *nhca_build_in(struct sk_buff *skb, enum nhca_build_how how)
{
	struct sk_buff *in;

	if (how != NHCA_BUILD_LIST)
		return skb;
	in = nhca_frag_skb(0);
	skb_shinfo(skb)->frag_list = in;
	return in;
}

/* Add payload and tail as fragments. Return: 0 or an error as nhca_xmit(). */
static int nhca_build_frags(struct sk_buff *skb, struct nhca_tx *tx, struct nhca_sums *sums,
			    enum nhca_build_how how, struct nhca_zcopy **z)
{
	struct sk_buff *in = nhca_build_in(skb, how);
	struct nhca_pieces ps __uninitialized;
	u32 i;
	int err;

	if (!in)
		return -ENOMEM;
	ps.n = 0;
	ps.max = NHCA_PIECES_ALONE;
	ps.zcopied = 0;
	ps.zcopy = z;
	ps.sums = *sums;
	err = nhca_pieces_payload(&ps, tx, tx->it);
	if (err)
		return err;
	*sums = ps.sums;
	for (i = 0; i < ps.n; i++)
		skb_add_rx_frag(in, i, ps.p[i].page, ps.p[i].off, ps.p[i].len, ps.p[i].len);
	if (ps.zcopied)
		nhca_zcopy_attach(in, *z);
	tx->zcopied = ps.zcopied;
	if (in != skb) {
		skb->len += in->len;
		skb->data_len += in->len;
		skb->truesize += in->truesize;
	}
	return 0;
}

/* Fill in the fields that the address vector determines: all but length, ID and checksum. */
static void nhca_fill_ip4(struct iphdr *iph, const struct nhca_av *av)
{
	*iph = (struct iphdr) {
		.version = 4,
		.ihl = sizeof(*iph) / 4,
		.tos = av->tclass,
		.frag_off = htons(IP_DF),
		.ttl = av->hop_limit ?: NHCA_DEFAULT_TTL,
		.protocol = IPPROTO_UDP,
		.saddr = av->saddr.s6_addr32[3],
		.daddr = av->daddr.s6_addr32[3],
	};
}

static void nhca_fill_ip6(struct ipv6hdr *ip6h, const struct nhca_av *av)
{
	ip6_flow_hdr(ip6h, av->tclass, htonl(av->flow_label & 0xfffff));
	ip6h->payload_len = 0;
	ip6h->nexthdr = IPPROTO_UDP;
	ip6h->hop_limit = av->hop_limit ?: NHCA_DEFAULT_TTL;
	ip6h->saddr = av->saddr;
	ip6h->daddr = av->daddr;
}

void nhca_av_header(const struct nhca_av *av, u32 len, void *p)
{
	struct ipv6hdr *ip6h = p;
	struct iphdr *iph = p;

	len += sizeof(struct udphdr);
	if (av->v4) {
		nhca_fill_ip4(iph, av);
		iph->tot_len = htons(sizeof(*iph) + len);
		ip_send_check(iph);
	} else {
		nhca_fill_ip6(ip6h, av);
		ip6h->payload_len = htons(len);
	}
}

static void nhca_push_ip4(struct sk_buff *skb, struct nhca_av *av, unsigned int idents)
{
	struct iphdr *iph = skb_push(skb, sizeof(*iph));
	u16 ident = READ_ONCE(av->ident);

	skb_reset_network_header(skb);
	nhca_fill_ip4(iph, av);
	/*
	 * The stack must not choose the identification, because the ICRC covers it. Packets that
	 * are never fragmented may have any value, even one that another CPU uses at the same time
	 * (RFC 6864).
	 */
	iph->id = htons(ident);
	WRITE_ONCE(av->ident, ident + idents);
}

static void nhca_push_ip6(struct sk_buff *skb, const struct nhca_av *av)
{
	struct ipv6hdr *ip6h = skb_push(skb, sizeof(*ip6h));

	skb_reset_network_header(skb);
	nhca_fill_ip6(ip6h, av);
}

unsigned int nhca_headroom(const struct dst_entry *dst)
{
	return LL_RESERVED_SPACE(dst->dev) + dst->header_len + sizeof(struct ipv6hdr) +
	       sizeof(struct udphdr);
}

void nhca_push_headers(struct sk_buff *skb, struct nhca_av *av, u16 sport, unsigned int idents)
{
	struct udphdr *uh = skb_push(skb, sizeof(*uh));

	skb_reset_transport_header(skb);
	uh->source = htons(sport);
	uh->dest = htons(NHCA_ROCE_UDP_PORT);
	uh->len = 0;
	uh->check = 0;
	if (av->v4)
		nhca_push_ip4(skb, av, idents);
	else
		nhca_push_ip6(skb, av);
}

struct sk_buff *nhca_headers(struct sk_buff *skb, struct nhca_av *av, struct dst_entry *dst,
			     u16 sport, unsigned int idents)
{
	if (!skb) {
		dst_release(dst);
		return NULL;
	}
	skb_reserve(skb, nhca_headroom(dst));
	skb_dst_set(skb, dst);
	nhca_push_headers(skb, av, sport, idents);
	/* in an AH made from a completion, the SL (NHCA_SL_*) is an IP version, not a priority */
	if (!(av->sl & NHCA_SL_ROCE_V2))
		skb->priority = av->sl;
	return skb;
}

struct sk_buff *nhca_skb(struct nhca_av *av, struct dst_entry *dst, u16 sport,
			 unsigned int room, unsigned int idents)
{
	struct sk_buff *skb = nhca_frag_skb(nhca_headroom(dst) + room);

	return nhca_headers(skb, av, dst, sport, idents);
}

u32 nhca_icrc_head(const struct sk_buff *skb, const u8 *hdr, unsigned int hdr_len,
		   unsigned int udp_len, unsigned int index)
{
	unsigned int ip_len = skb_network_header_len(skb);
	u8 buf[sizeof(struct ipv6hdr) + sizeof(struct udphdr) + NHCA_BTH_LEN];
	struct udphdr *uh = (struct udphdr *)(buf + ip_len);
	u32 crc;

	memcpy(buf, skb_network_header(skb), ip_len + sizeof(*uh));
	memcpy(uh + 1, hdr, NHCA_BTH_LEN);
	uh->len = htons(sizeof(*uh) + udp_len);
	if (ip_len == sizeof(struct iphdr)) {
		struct iphdr *iph = (struct iphdr *)buf;

		/* use the length and the identification that ip_local_out() and GSO will set */
		iph->tot_len = htons(ip_len + sizeof(*uh) + udp_len);
		iph->id = htons(ntohs(iph->id) + index);
		crc = nhca_icrc_start4(buf);
	} else {
		((struct ipv6hdr *)buf)->payload_len = uh->len;
		crc = nhca_icrc_start6(buf);
	}
	return nhca_icrc_more(crc, hdr + NHCA_BTH_LEN, hdr_len - NHCA_BTH_LEN);
}

void nhca_sum_partial(struct sk_buff *skb, const struct nhca_av *av)
{
	struct udphdr *uh = udp_hdr(skb);
	unsigned int len = ntohs(uh->len);

	uh->check = av->v4 ? ~udp_v4_check(len, av->saddr.s6_addr32[3], av->daddr.s6_addr32[3], 0) :
			     ~udp_v6_check(len, &av->saddr, &av->daddr, 0);
	skb->csum_start = skb_transport_header(skb) - skb->head;
	skb->csum_offset = offsetof(struct udphdr, check);
	skb->ip_summed = CHECKSUM_PARTIAL;
}

void nhca_sum_sw(struct sk_buff *skb, const struct nhca_av *av, __wsum csum)
{
	struct udphdr *uh = udp_hdr(skb);
	unsigned int len = ntohs(uh->len);

	csum = csum_partial(uh, sizeof(*uh), csum);
	if (av->v4)
		uh->check = udp_v4_check(len, av->saddr.s6_addr32[3], av->daddr.s6_addr32[3], csum);
	else
		uh->check = udp_v6_check(len, &av->saddr, &av->daddr, csum);
	if (!uh->check)
		uh->check = CSUM_MANGLED_0;
}

int nhca_build(struct sk_buff *skb, struct nhca_tx *tx, struct nhca_sums *sums,
	       enum nhca_build_how how, struct nhca_zcopy **z)
{
	unsigned int hdr_len = tx->hdr->info->hdr_len;
	void *p = skb_put(skb, hdr_len);

	nhca_hdr_encode(tx->hdr, p);
	if (sums->icrc)
		sums->crc = nhca_icrc_head(skb, p, hdr_len, nhca_tx_bytes(tx), 0);
	if (sums->sum)
		sums->csum = csum_partial(p, hdr_len, 0);
	sums->off = hdr_len;
	if (how != NHCA_BUILD_LINEAR)
		return nhca_build_frags(skb, tx, sums, how, z);
	p = skb_put(skb, tx->payload + tx->hdr->pad + NHCA_ICRC_LEN);
	return nhca_linear_payload(p, tx, tx->it, sums);
}

void nhca_send(struct nhca_dev *dev, const struct nhca_who *who, struct nhca_av *av,
	       struct nhca_flow *flow, struct sk_buff *skb, u32 packets, u32 payload, u32 zcopied)
{
	struct net *net;
	int err;

	NHCA_STUB(nhca_send, dev, who, av, flow, skb, packets, payload, zcopied);
	net = nhca_net_ns(dev->nn);
	nhca_flow_charge(flow, skb, packets);
	nhca_count_add(who, NHCA_CNT_SENT_PKTS, packets);
	nhca_count_add(who, NHCA_CNT_SENT_BYTES, payload);
	if (unlikely(av->mcast))
		nhca_count_add(who, NHCA_CNT_SENT_MCAST_PKTS, packets);
	nhca_count_add(who, NHCA_CNT_SENT_ZCOPY_BYTES, zcopied);
	nhca_count_add(who, NHCA_CNT_SENT_COPIED_BYTES, payload - zcopied);

	if (av->v4)
		err = ip_local_out(net, NULL, skb);
	else
		err = ip6_local_out(net, NULL, skb);
	if (unlikely(net_xmit_eval(err)))
		nhca_count(who, NHCA_CNT_SEND_ERR);
}

/* Send one packet as one skb. @faults: the device has a rule that may inject faults. */
static int nhca_xmit_alone(struct nhca_tx *tx, bool faults)
{
	struct net *net = nhca_net_ns(tx->dev->nn);
	unsigned int hdr_len = tx->hdr->info->hdr_len;
	struct nhca_sums sums = { .icrc = !(tx->hdr->caps & NHCA_CAP_NO_ICRC) };
	struct dst_entry *dst;
	struct sk_buff *skb;
	enum nhca_build_how how = NHCA_BUILD_FRAGS;
	struct nhca_zcopy *z = NULL;
	int err;

	if (unlikely(!netif_running(tx->dev->netdev)) || (faults && nhca_inject_down(tx->dev)))
		return -ENETDOWN;
	dst = nhca_route(net, tx->av, tx->sport);
	if (IS_ERR(dst)) {
		nhca_count(tx->who, NHCA_CNT_NO_ROUTE);
		return -EHOSTUNREACH;
	}
	sums.sum = tx->sum && !nhca_can_sum(dst, tx->av->v4);
	/* copy short payloads; without NETIF_F_SG the stack would linearize skbs with fragments */
	if (tx->payload <= NHCA_COPY_BREAK || !(dst->dev->features & NETIF_F_SG))
		how = NHCA_BUILD_LINEAR;
	else if (!tx->copy && nhca_takes_list(dst->dev))
		how = NHCA_BUILD_LIST;
	if (how == NHCA_BUILD_LINEAR)
		hdr_len += tx->payload + NHCA_TAIL_MAX;
	skb = nhca_skb(tx->av, dst, tx->sport, hdr_len, 1);
	if (!skb)
		return -ENOMEM;

	nhca_live_enter();
	err = nhca_live_exit_fault(nhca_build(skb, tx, &sums, how, &z), tx->it, tx->ahead,
				   tx->fault);
	if (err) {
		kfree_skb(skb);
		nhca_zcopy_put(z);
		return err;
	}

	udp_hdr(skb)->len = htons(skb->len - skb_network_header_len(skb));
	if (sums.sum)
		nhca_sum_sw(skb, tx->av, sums.csum);
	else if (tx->sum)
		nhca_sum_partial(skb, tx->av);
	if (faults)
		nhca_faults_tx(tx, skb);
	else
		nhca_send(tx->dev, tx->who, tx->av, tx->flow, skb, 1, tx->payload, tx->zcopied);
	nhca_zcopy_put(z);
	return 0;
}

static int nhca_xmit_packet(struct nhca_tx *tx)
{
	bool faults = nhca_inject_at(tx->dev, NHCA_AT_PACKETS);
	int err;

	/* packets that are delayed, duplicated or damaged must not refer to consumer pages */
	if (faults)
		tx->copy = true;
	if (tx->burst) {
		if (tx->sum && !faults) {
			err = nhca_burst_add(tx);
			if (err != -EOPNOTSUPP)
				return err;
		}
		/* send the earlier packets before this one */
		nhca_burst_flush(tx->burst);
	}
	return nhca_xmit_alone(tx, faults);
}

int nhca_xmit(struct nhca_tx *tx)
{
	int err;

	NHCA_STUB(nhca_xmit, tx);
	tx->hdr->info = nhca_opinfo(tx->hdr->opcode);
	tx->hdr->pad = -tx->payload & 3;
	if (unlikely(nhca_tx_bytes(tx) > NHCA_PACKET_BYTES))
		return -EMSGSIZE;
	err = nhca_xmit_packet(tx);
	if (!err)
		trace_nhca_packet_sent(tx->who, tx->hdr, tx->hdr->psn, tx->hdr->qpn, 1,
				       tx->payload);
	return err;
}

void nhca_xmit_exit(void)
{
	nhca_frags_exit();
}
