// SPDX-License-Identifier: GPL-2.0
/*
 * One packet out: route, headers, payload by reference or copy, ICRC, and into
 * the stack.
 */
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/percpu.h>
#include <linux/udp.h>
#include <net/ip.h>
#include <net/ip6_route.h>
#include <net/ipv6.h>
#include <net/route.h>

#include "net.h"
#include "flow.h"
#include "xmit.h"
#include "../memory/lend.h"
#include "../memory/memory.h"
#include "../wire/icrc.h"

#define NHCA_DEFAULT_TTL	64
/* pad and ICRC behind the payload */
#define NHCA_TAIL_MAX		(3 + NHCA_ICRC_LEN)

/*
 * Where copied payloads and the few bytes behind a referenced payload live:
 * pages shared by many packets, one run per CPU.  Used with BH disabled.
 */
static DEFINE_PER_CPU(struct page_frag, nhca_tx_frag);

static struct dst_entry *nhca_route4(struct net *net, struct nhca_av *av, u16 sport)
{
	struct flowi4 fl = {
		.daddr = av->daddr.s6_addr32[3],
		.saddr = av->saddr.s6_addr32[3],
		.flowi4_proto = IPPROTO_UDP,
		.fl4_sport = htons(sport),
		.fl4_dport = htons(NHCA_ROCE_UDP_PORT),
	};
	struct rtable *rt;
	__be32 saddr;

	rt = dst_cache_get_ip4(&av->cache, &saddr);
	if (rt)
		return &rt->dst;

	/* a device of this host is reached through lo, whatever its netdev */
	if (inet_addr_type(net, fl.daddr) != RTN_LOCAL)
		fl.flowi4_oif = av->ifindex;

	rt = ip_route_output_flow(net, &fl, NULL);
	if (IS_ERR(rt))
		return ERR_CAST(rt);
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
	struct dst_entry *dst;
	struct in6_addr saddr;

	dst = dst_cache_get_ip6(&av->cache, &saddr);
	if (dst)
		return dst;

	if ((ipv6_addr_type(&fl.daddr) & (IPV6_ADDR_LINKLOCAL | IPV6_ADDR_MULTICAST)) ||
	    !ipv6_chk_addr(net, &fl.daddr, NULL, 0))
		fl.flowi6_oif = av->ifindex;

	dst = ip6_dst_lookup_flow(net, NULL, &fl, NULL);
	if (IS_ERR(dst))
		return dst;
	dst_cache_set_ip6(&av->cache, dst, &fl.saddr);
	return dst;
}
#else
static struct dst_entry *nhca_route6(struct net *net, struct nhca_av *av, u16 sport)
{
	return ERR_PTR(-EAFNOSUPPORT);
}
#endif

/* Context: BH disabled.  Return: room for @len (at most a page) bytes, or NULL. */
static void *nhca_frag_get(unsigned int len, struct page **page, unsigned int *off)
{
	struct page_frag *pf = this_cpu_ptr(&nhca_tx_frag);
	void *p;

	if (!skb_page_frag_refill(len, pf, GFP_ATOMIC))
		return NULL;
	*page = pf->page;
	*off = pf->offset;
	p = page_address(pf->page) + pf->offset;
	get_page(pf->page);
	pf->offset += ALIGN(len, 8);
	return p;
}

static void nhca_add_frag(struct sk_buff *skb, struct page *page, u32 off, u32 len)
{
	skb_add_rx_frag(skb, skb_shinfo(skb)->nr_frags, page, off, len, len);
}

/*
 * Bytes that lie together, by reference: a fragment for each page, so that each page
 * carries its own.
 */
static void nhca_add_lent(struct sk_buff *skb, const struct nhca_seg *seg)
{
	struct page *page = seg->page;
	u32 left = seg->len;
	u32 off = seg->off;
	u32 n;

	for (; left; left -= n, off = 0, page++) {
		n = min_t(u32, left, PAGE_SIZE - off);
		get_page(page);
		nhca_add_frag(skb, page, off, n);
	}
}

/*
 * Add payload by reference and run the CRC over it.  Pages that may not carry a
 * reference (slab, or memory that can be taken away at once) and payloads in more
 * pieces than an skb holds are copied into a fragment of our own, from there on.
 */
static int nhca_add_payload(struct sk_buff *skb, struct nhca_tx *tx, u32 *crc, int *loan)
{
	u32 left = tx->payload;
	struct nhca_seg seg;
	unsigned int off;
	struct page *page;
	void *p;
	int err;

	while (left) {
		/*
		 * a piece of at most a page may need two fragments; one each for the
		 * copied rest and for the tail stay free
		 */
		if (tx->copy || skb_shinfo(skb)->nr_frags >= MAX_SKB_FRAGS - 3)
			break;

		err = nhca_iter_next(tx->it, min_t(u32, left, PAGE_SIZE), &seg);
		if (err)
			return err;
		left -= seg.len;

		if (sendpage_ok(seg.page) && nhca_iter_lend(tx->it)) {
			if (*loan < 0)
				*loan = nhca_lend();
			nhca_add_lent(skb, &seg);
			*crc = nhca_icrc_more(*crc, nhca_seg_addr(&seg), seg.len);
			continue;
		}
		p = nhca_frag_get(seg.len, &page, &off);
		if (!p)
			return -ENOMEM;
		memcpy(p, nhca_seg_addr(&seg), seg.len);
		nhca_add_frag(skb, page, off, seg.len);
		*crc = nhca_icrc_more(*crc, p, seg.len);
	}
	/* what lies in a consumer's page may change after the CRC and before the wire */
	skb_shinfo(skb)->flags |= SKBFL_SHARED_FRAG;

	if (left) {
		p = nhca_frag_get(left, &page, &off);
		if (!p)
			return -ENOMEM;
		nhca_add_frag(skb, page, off, left);
		err = nhca_iter_read(tx->it, p, left);
		if (err)
			return err;
		*crc = nhca_icrc_more(*crc, p, left);
	}
	return 0;
}

static void nhca_push_ip4(struct sk_buff *skb, const struct nhca_av *av, struct net *net)
{
	struct iphdr *iph = skb_push(skb, sizeof(*iph));

	skb_reset_network_header(skb);
	iph->version = 4;
	iph->ihl = sizeof(*iph) / 4;
	iph->tos = av->tclass;
	iph->tot_len = 0;
	iph->frag_off = htons(IP_DF);
	iph->ttl = av->hop_limit ?: NHCA_DEFAULT_TTL;
	iph->protocol = IPPROTO_UDP;
	iph->check = 0;
	iph->saddr = av->saddr.s6_addr32[3];
	iph->daddr = av->daddr.s6_addr32[3];
	/* chosen here, not by the stack: it is under the ICRC */
	__ip_select_ident(net, iph, 1);
}

static void nhca_push_ip6(struct sk_buff *skb, const struct nhca_av *av)
{
	struct ipv6hdr *ip6h = skb_push(skb, sizeof(*ip6h));

	skb_reset_network_header(skb);
	ip6_flow_hdr(ip6h, av->tclass, htonl(av->flow_label & 0xfffff));
	ip6h->payload_len = 0;
	ip6h->nexthdr = IPPROTO_UDP;
	ip6h->hop_limit = av->hop_limit ?: NHCA_DEFAULT_TTL;
	ip6h->saddr = av->saddr;
	ip6h->daddr = av->daddr;
}

/*
 * Headers into a fresh skb whose data will be @udp_len bytes of UDP payload.
 * Return: the BTH; *@crc covers everything up to the end of the BTH.
 */
static u8 *nhca_build_headers(struct sk_buff *skb, struct nhca_tx *tx, struct net *net,
			      unsigned int udp_len, u32 *crc)
{
	struct nhca_av *av = tx->av;
	unsigned int hdr_len = tx->hdr->info->hdr_len;
	struct udphdr *uh;
	u8 *bth;

	bth = skb_put(skb, hdr_len);
	nhca_hdr_encode(tx->hdr, bth);

	uh = skb_push(skb, sizeof(*uh));
	skb_reset_transport_header(skb);
	uh->source = htons(tx->sport);
	uh->dest = htons(NHCA_ROCE_UDP_PORT);
	uh->len = htons(sizeof(*uh) + udp_len);
	uh->check = 0;

	if (av->v4) {
		nhca_push_ip4(skb, av, net);
		/* as ip_local_out() will set it */
		ip_hdr(skb)->tot_len = htons(sizeof(struct iphdr) + sizeof(*uh) + udp_len);
		*crc = nhca_icrc_start4(skb->data);
	} else {
		nhca_push_ip6(skb, av);
		ipv6_hdr(skb)->payload_len = htons(sizeof(*uh) + udp_len);
		*crc = nhca_icrc_start6(skb->data);
	}
	*crc = nhca_icrc_more(*crc, bth + NHCA_BTH_LEN, hdr_len - NHCA_BTH_LEN);
	return bth;
}

/* Context: live section: here the payload is read, or lent. */
static int nhca_build(struct sk_buff *skb, struct nhca_tx *tx, struct net *net, bool linear,
		      int *loan)
{
	unsigned int tail_len = tx->hdr->pad + NHCA_ICRC_LEN;
	unsigned int udp_len = tx->hdr->info->hdr_len + tx->payload + tail_len;
	unsigned int off;
	struct page *page;
	__le32 icrc;
	void *tail;
	void *p;
	u32 crc;
	int err;

	nhca_build_headers(skb, tx, net, udp_len, &crc);

	if (linear) {
		if (tx->payload) {
			p = skb_put(skb, tx->payload);
			err = nhca_iter_read(tx->it, p, tx->payload);
			if (err)
				return err;
			crc = nhca_icrc_more(crc, p, tx->payload);
		}
		tail = skb_put(skb, tail_len);
	} else {
		err = nhca_add_payload(skb, tx, &crc, loan);
		if (err)
			return err;
		tail = nhca_frag_get(tail_len, &page, &off);
		if (!tail)
			return -ENOMEM;
		nhca_add_frag(skb, page, off, tail_len);
	}

	memset(tail, 0, tx->hdr->pad);
	crc = nhca_icrc_more(crc, tail, tx->hdr->pad);
	icrc = nhca_icrc_finish(crc);
	memcpy(tail + tx->hdr->pad, &icrc, sizeof(icrc));
	return 0;
}

int nhca_xmit(struct nhca_tx *tx)
{
	struct net *net = nhca_net_ns(tx->dev->nn);
	struct nhca_av *av = tx->av;
	bool linear = tx->payload <= NHCA_COPY_BREAK;
	unsigned int headroom, room;
	struct dst_entry *dst;
	struct sk_buff *skb;
	int loan = -1;
	int err;

	if (unlikely(!netif_running(tx->dev->netdev)))
		return -ENETDOWN;

	tx->hdr->info = nhca_opinfo(tx->hdr->opcode);
	tx->hdr->pad = -tx->payload & 3;

	dst = av->v4 ? nhca_route4(net, av, tx->sport) : nhca_route6(net, av, tx->sport);
	if (IS_ERR(dst)) {
		nhca_count(tx->dev, NHCA_CNT_NO_ROUTE);
		return -EHOSTUNREACH;
	}

	headroom = LL_RESERVED_SPACE(dst->dev) + dst->header_len +
		   sizeof(struct ipv6hdr) + sizeof(struct udphdr);
	room = tx->hdr->info->hdr_len;
	if (linear)
		room += tx->payload + NHCA_TAIL_MAX;

	skb = alloc_skb(headroom + room, GFP_ATOMIC | __GFP_NOWARN);
	if (!skb) {
		dst_release(dst);
		return -ENOMEM;
	}
	skb_reserve(skb, headroom);
	skb_dst_set(skb, dst);

	nhca_live_enter();
	err = nhca_build(skb, tx, net, linear, &loan);
	if (err == -EAGAIN)
		err = nhca_iter_fault(tx->it, tx->ahead, tx->fault);
	nhca_live_exit();
	if (err) {
		if (loan >= 0)
			nhca_lend_return(loan);
		kfree_skb(skb);
		return err;
	}

	skb->priority = av->sl;
	nhca_flow_charge(tx->flow, skb, loan);
	nhca_count(tx->dev, NHCA_CNT_SENT_PKTS);
	nhca_count_add(tx->dev, NHCA_CNT_SENT_BYTES, tx->payload);

	if (av->v4)
		err = ip_local_out(net, NULL, skb);
	else
		err = ip6_local_out(net, NULL, skb);
	if (unlikely(net_xmit_eval(err)))
		nhca_count(tx->dev, NHCA_CNT_SEND_ERR);
	return 0;
}

void nhca_xmit_exit(void)
{
	struct page_frag *pf;
	int cpu;

	for_each_possible_cpu(cpu) {
		pf = per_cpu_ptr(&nhca_tx_frag, cpu);
		if (pf->page)
			put_page(pf->page);
		pf->page = NULL;
	}
}
