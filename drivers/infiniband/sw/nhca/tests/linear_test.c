// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit: batches for a netdev without NETIF_F_SG. The stack segments a batch into the packets that
 * were added to it, with the right headers, PSNs, identifications and checksums.
 */
#include <kunit/test.h>
#include <linux/if_ether.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/udp.h>
#include <net/dst_metadata.h>
#include <net/ip.h>
#include <net/ip6_checksum.h>

#include "../compat.h"
#ifndef NHCA_OLD_GSO
#include <net/gso.h>
#endif
#include "../memory/memory.h"
#include "../net/burst.h"
#include "../net/linear.h"
#include "../net/net.h"
#include "../net/xmit.h"
#include "../wire/icrc.h"

/* payload of all packets but the last, and of the last packet, which needs padding */
#define MTU		1024
#define LAST		13
#define RUN		4
#define FIRST_PSN	(NHCA_PSN_MASK - 1)
/* IPv4 identifications wrap within the batch */
#define FIRST_IDENT	0xfffd

/**
 * struct fixture - objects that a batch needs
 * @md:    a route through the loopback netdev; it is in no routing table
 * @av:    address vector of the packets
 * @hdr:   headers of the current packet
 * @tx:    the current packet
 * @it:    source of the packet's payload
 * @b:     the batch
 * @bytes: payload of all packets, contiguous
 */
struct fixture {
	struct metadata_dst *md;
	struct nhca_av av;
	struct nhca_hdr hdr;
	struct nhca_tx tx;
	struct nhca_iter it;
	struct nhca_burst b;
	u8 *bytes;
};

static int fixture_init(struct kunit *test)
{
	struct fixture *f = kunit_kzalloc(test, sizeof(*f), GFP_KERNEL);
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, f);
	f->bytes = kunit_kzalloc(test, (RUN + 2) * MTU, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, f->bytes);
	for (i = 0; i < (RUN + 2) * MTU; i++)
		f->bytes[i] = i * 7 + i / 256;
	f->md = metadata_dst_alloc(0, METADATA_IP_TUNNEL, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, f->md);
	f->md->dst.dev = init_net.loopback_dev;
	f->tx.av = &f->av;
	f->tx.sport = 0xc123;
	f->tx.hdr = &f->hdr;
	f->tx.it = &f->it;
	f->tx.sum = true;
	f->hdr.qpn = 0x123;
	f->hdr.pkey = 0xffff;
	test->priv = f;
	return 0;
}

static void fixture_exit(struct kunit *test)
{
	struct fixture *f = test->priv;

	if (!f || !f->md)
		return;
	/*
	 * clear the netdev before the release, because the route holds no reference to the netdev
	 */
	f->md->dst.dev = NULL;
	dst_release(&f->md->dst);
}

static void address(struct fixture *f, bool v4)
{
	f->av.v4 = v4;
	f->av.ident = FIRST_IDENT;
	if (v4) {
		ipv6_addr_set_v4mapped(htonl(0x0a000001), &f->av.saddr);
		ipv6_addr_set_v4mapped(htonl(0x0a000002), &f->av.daddr);
	} else {
		f->av.saddr = (struct in6_addr) { { { 0xfd, [15] = 1 } } };
		f->av.daddr = (struct in6_addr) { { { 0xfd, [15] = 2 } } };
	}
}

/* Set the next packet to number @n, with @payload bytes from offset @at of @f->bytes. */
static void packet(struct fixture *f, u8 opcode, u32 n, u32 at, u32 payload)
{
	f->hdr.opcode = opcode;
	f->hdr.info = nhca_opinfo(opcode);
	f->hdr.psn = (FIRST_PSN + n) & NHCA_PSN_MASK;
	f->hdr.pad = -payload & 3;
	f->tx.payload = payload;
	nhca_iter_bytes(&f->it, f->bytes + at);
}

static void begin(struct kunit *test, struct fixture *f)
{
	f->b = (struct nhca_burst) { .av = &f->av, .linear = true };
	f->b.seg = nhca_tx_bytes(&f->tx);
	dst_hold(&f->md->dst);
	f->b.skb = nhca_linear_head(&f->tx, &f->md->dst, f->b.seg);
	f->b.last = f->b.skb;
	KUNIT_ASSERT_NOT_NULL(test, f->b.skb);
}

/*
 * Do what nhca_burst_flush() and the stack do before a netdev gets the packets. Return: the
 * packets.
 */
static struct sk_buff *stack(struct fixture *f)
{
	struct sk_buff *skb = f->b.skb, *segs;

	skb_shinfo(skb)->gso_type = SKB_GSO_UDP_L4;
	skb_shinfo(skb)->gso_size = f->b.seg;
	skb_shinfo(skb)->gso_segs = f->b.packets;
	udp_hdr(skb)->len = htons(sizeof(struct udphdr) + f->b.len);
	nhca_linear_sums(skb);
	if (f->av.v4) {
		skb->protocol = htons(ETH_P_IP);
		ip_hdr(skb)->tot_len = htons(skb->len);
		ip_send_check(ip_hdr(skb));
	} else {
		skb->protocol = htons(ETH_P_IPV6);
		ipv6_hdr(skb)->payload_len = htons(skb->len - sizeof(struct ipv6hdr));
	}
	skb->dev = init_net.loopback_dev;
	memset(skb_push(skb, ETH_HLEN), 0xee, ETH_HLEN);
	skb_reset_mac_header(skb);
	segs = skb_gso_segment(skb, 0);
	kfree_skb(skb);
	return segs;
}

static void expect_headers(struct kunit *test, const struct fixture *f, const u8 *p, u32 n,
			   u32 bytes)
{
	const struct udphdr *uh;
	__wsum sum;

	if (f->av.v4) {
		const struct iphdr *iph = (const struct iphdr *)p;

		uh = (const struct udphdr *)(iph + 1);
		sum = csum_partial(uh, sizeof(*uh) + bytes, 0);
		KUNIT_EXPECT_EQ(test, ntohs(iph->tot_len), sizeof(*iph) + sizeof(*uh) + bytes);
		KUNIT_EXPECT_EQ(test, ntohs(iph->id), (u16)(FIRST_IDENT + n));
		KUNIT_EXPECT_EQ(test, ip_fast_csum(iph, iph->ihl), 0);
		KUNIT_EXPECT_EQ(test, csum_tcpudp_magic(iph->saddr, iph->daddr, sizeof(*uh) + bytes,
							IPPROTO_UDP, sum), 0);
	} else {
		const struct ipv6hdr *ip6h = (const struct ipv6hdr *)p;

		uh = (const struct udphdr *)(ip6h + 1);
		sum = csum_partial(uh, sizeof(*uh) + bytes, 0);
		KUNIT_EXPECT_EQ(test, ntohs(ip6h->payload_len), sizeof(*uh) + bytes);
		KUNIT_EXPECT_EQ(test, csum_ipv6_magic(&ip6h->saddr, &ip6h->daddr,
						      sizeof(*uh) + bytes, IPPROTO_UDP, sum), 0);
	}
	KUNIT_EXPECT_EQ(test, ntohs(uh->source), 0xc123);
	KUNIT_EXPECT_EQ(test, ntohs(uh->dest), NHCA_ROCE_UDP_PORT);
	KUNIT_EXPECT_EQ(test, ntohs(uh->len), sizeof(*uh) + bytes);
	KUNIT_EXPECT_NE(test, uh->check, 0);
}

/* Return: the ICRC of the packet whose IP header is @p, with @bytes after its UDP header. */
static __le32 icrc_of(const struct fixture *f, const u8 *p, u32 bytes)
{
	u32 to_bth = (f->av.v4 ? sizeof(struct iphdr) : sizeof(struct ipv6hdr)) +
		     sizeof(struct udphdr);
	u32 crc = f->av.v4 ? nhca_icrc_start4(p) : nhca_icrc_start6(p);

	return nhca_icrc_finish(nhca_icrc_more(crc, p + to_bth + NHCA_BTH_LEN,
					       bytes - NHCA_BTH_LEN - NHCA_ICRC_LEN));
}

/* Expect that @skb is packet @n, with @payload bytes from offset @at of @f->bytes. */
static void expect_packet(struct kunit *test, const struct fixture *f, const struct sk_buff *skb,
			  u32 n, u32 at, u32 payload)
{
	u32 outer = ETH_HLEN + sizeof(struct udphdr) +
		    (f->av.v4 ? sizeof(struct iphdr) : sizeof(struct ipv6hdr));
	u32 bytes = NHCA_BTH_LEN + payload + (-payload & 3) + NHCA_ICRC_LEN;
	const u8 *p = skb->data + ETH_HLEN, *bth = skb->data + outer;
	struct nhca_hdr h;
	__le32 tail;

	KUNIT_ASSERT_FALSE(test, skb_is_nonlinear(skb));
	KUNIT_ASSERT_EQ(test, skb->len, outer + bytes);
	KUNIT_EXPECT_PTR_EQ(test, skb_mac_header(skb), skb->data);
	KUNIT_EXPECT_NULL(test, memchr_inv(skb->data, 0xee, ETH_HLEN));
	expect_headers(test, f, p, n, bytes);

	KUNIT_ASSERT_EQ(test, nhca_hdr_decode(&h, bth, bytes, bytes), 0);
	KUNIT_EXPECT_EQ(test, h.psn, (FIRST_PSN + n) & NHCA_PSN_MASK);
	KUNIT_EXPECT_EQ(test, h.qpn, f->hdr.qpn);
	KUNIT_EXPECT_EQ(test, h.pad, -payload & 3);
	KUNIT_EXPECT_EQ(test, memcmp(bth + NHCA_BTH_LEN, f->bytes + at, payload), 0);
	KUNIT_EXPECT_NULL(test, memchr_inv(bth + NHCA_BTH_LEN + payload, 0, -payload & 3));
	memcpy(&tail, bth + bytes - NHCA_ICRC_LEN, sizeof(tail));
	if (f->hdr.caps & NHCA_CAP_NO_ICRC)
		KUNIT_EXPECT_EQ(test, (__force u32)tail, (__force u32)f->hdr.mark);
	else
		KUNIT_EXPECT_EQ(test, (__force u32)tail, (__force u32)icrc_of(f, p, bytes));
}

/*
 * Add RUN packets, in one run if they have no ICRC, else one by one, and then a shorter packet.
 * Expect that each packet leaves the stack as it was added.
 */
static void batch(struct kunit *test, bool v4, bool no_icrc)
{
	struct fixture *f = test->priv;
	struct sk_buff *segs, *skb;
	u32 n, taken = 0;
	int err = 0;

	address(f, v4);
	f->hdr.caps = no_icrc ? NHCA_CAP_NO_ICRC : 0;
	local_bh_disable();
	packet(f, NHCA_OP_SEND_MIDDLE, 0, 0, MTU);
	begin(test, f);
	nhca_live_enter();
	if (no_icrc) {
		taken = nhca_linear_run(&f->b, &f->tx, RUN);
		f->b.packets = taken;
	}
	for (; taken < RUN && !err; taken++) {
		packet(f, NHCA_OP_SEND_MIDDLE, taken, taken * MTU, MTU);
		err = nhca_linear_add(&f->b, &f->tx, &f->it);
		f->b.packets++;
	}
	packet(f, NHCA_OP_SEND_LAST, RUN, RUN * MTU, LAST);
	if (!err)
		err = nhca_linear_add(&f->b, &f->tx, &f->it);
	f->b.packets++;
	nhca_live_exit();
	KUNIT_EXPECT_EQ(test, err, 0);
	KUNIT_EXPECT_EQ(test, f->b.len, f->b.skb->len - skb_network_header_len(f->b.skb) -
					sizeof(struct udphdr));
	segs = stack(f);
	local_bh_enable();

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, segs);
	for (skb = segs, n = 0; skb; skb = skb->next, n++)
		expect_packet(test, f, skb, n, n * MTU, n < RUN ? MTU : LAST);
	KUNIT_EXPECT_EQ(test, n, RUN + 1);
	kfree_skb_list(segs);
}

/* Packets without an ICRC over IPv4 leave the stack as they were added. */
static void bare4_test(struct kunit *test)
{
	batch(test, true, true);
}

/* Packets with an ICRC over IPv4 leave the stack as they were added. */
static void icrc4_test(struct kunit *test)
{
	batch(test, true, false);
}

/* Packets without an ICRC over IPv6 leave the stack as they were added. */
static void bare6_test(struct kunit *test)
{
	batch(test, false, true);
}

/* Packets with an ICRC over IPv6 leave the stack as they were added. */
static void icrc6_test(struct kunit *test)
{
	batch(test, false, false);
}

/*
 * If the source of a packet cannot be read, the batch stays as it was before the packet, and its
 * earlier packets can be sent.
 */
static void refused_test(struct kunit *test)
{
	struct fixture *f = test->priv;
	struct nhca_key_user nobody = {};
	struct nhca_sge sge = { .addr = 0, .length = MTU, .lkey = 1 };
	struct sk_buff *segs;
	u32 len;

	address(f, true);
	f->hdr.caps = NHCA_CAP_NO_ICRC;
	local_bh_disable();
	packet(f, NHCA_OP_SEND_MIDDLE, 0, 0, MTU);
	begin(test, f);
	nhca_live_enter();
	f->b.packets = nhca_linear_run(&f->b, &f->tx, 2);
	len = f->b.skb->len;
	packet(f, NHCA_OP_SEND_MIDDLE, 2, 0, MTU);
	nhca_iter_sges(&f->it, &nobody, &sge, 1, 0, U32_MAX, 0);
	KUNIT_EXPECT_EQ(test, nhca_linear_run(&f->b, &f->tx, 2), 0);
	nhca_iter_sges(&f->it, &nobody, &sge, 1, 0, U32_MAX, 0);
	KUNIT_EXPECT_EQ(test, nhca_linear_add(&f->b, &f->tx, &f->it), -EACCES);
	nhca_live_exit();
	KUNIT_EXPECT_EQ(test, f->b.skb->len, len);
	segs = stack(f);
	local_bh_enable();

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, segs);
	KUNIT_ASSERT_NOT_NULL(test, segs->next);
	expect_packet(test, f, segs, 0, 0, MTU);
	expect_packet(test, f, segs->next, 1, MTU, MTU);
	KUNIT_EXPECT_NULL(test, segs->next->next);
	kfree_skb_list(segs);
}

static struct kunit_case linear_cases[] = {
	KUNIT_CASE(bare4_test),
	KUNIT_CASE(icrc4_test),
#if IS_ENABLED(CONFIG_IPV6)
	KUNIT_CASE(bare6_test),
	KUNIT_CASE(icrc6_test),
#endif
	KUNIT_CASE(refused_test),
	{}
};

static struct kunit_suite linear_suite = {
	.name = "nhca_linear",
	.init = fixture_init,
	.exit = fixture_exit,
	.test_cases = linear_cases,
};

kunit_test_suite(linear_suite);
