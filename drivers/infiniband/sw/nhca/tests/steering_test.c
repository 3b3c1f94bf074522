// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit: flow steering: how a flow becomes a rule, which frames match the rule, and the order of
 * rules.
 */
#include <kunit/test.h>
#include <linux/etherdevice.h>
#include <linux/if_vlan.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/skbuff.h>
#include <linux/udp.h>
#include <rdma/ib_verbs.h>

#include "../net/rss.h"
#include "../verbs/objects.h"

static const u8 steer_dmac[ETH_ALEN] = { 2, 0, 0, 0, 0, 1 };
static const u8 steer_smac[ETH_ALEN] = { 2, 0, 0, 0, 0, 2 };

/*
 * Return: a frame with an Ethernet header and, if @tci is not 0, a VLAN tag after the addresses.
 * The data of the skb begins at the Ethernet header.
 */
static struct sk_buff *steer_eth(struct kunit *test, u16 type, u16 tci)
{
	struct sk_buff *skb = alloc_skb(256, GFP_KERNEL);
	struct vlan_hdr *vh;
	struct ethhdr *eth;

	KUNIT_ASSERT_NOT_NULL(test, skb);
	eth = skb_put_zero(skb, sizeof(*eth));
	ether_addr_copy(eth->h_dest, steer_dmac);
	ether_addr_copy(eth->h_source, steer_smac);
	eth->h_proto = htons(tci ? ETH_P_8021Q : type);
	skb_reset_mac_header(skb);
	skb_set_network_header(skb, sizeof(*eth));
	skb->protocol = eth->h_proto;
	if (tci) {
		vh = skb_put(skb, sizeof(*vh));
		vh->h_vlan_TCI = htons(tci);
		vh->h_vlan_encapsulated_proto = htons(type);
	}
	return skb;
}

static void steer_ports(struct sk_buff *skb)
{
	struct udphdr *uh = skb_put_zero(skb, sizeof(*uh));

	uh->source = htons(1000);
	uh->dest = htons(2000);
}

static struct sk_buff *steer_udp4(struct kunit *test, u16 tci, u16 frag_off)
{
	struct sk_buff *skb = steer_eth(test, ETH_P_IP, tci);
	struct iphdr *iph = skb_put_zero(skb, sizeof(*iph));

	*iph = (struct iphdr) {
		.version = 4, .ihl = 5, .tos = 0x2e, .ttl = 17, .protocol = IPPROTO_UDP,
		.frag_off = htons(frag_off), .saddr = htonl(0x0a000001), .daddr = htonl(0x0a000002),
	};
	steer_ports(skb);
	return skb;
}

/* @extended: a hop-by-hop extension header is before the UDP header */
static struct sk_buff *steer_udp6(struct kunit *test, bool extended)
{
	struct sk_buff *skb = steer_eth(test, ETH_P_IPV6, 0);
	struct ipv6hdr *ip6h = skb_put_zero(skb, sizeof(*ip6h));
	u8 *ext;

	*(__be32 *)ip6h = htonl(0x6ab12345);
	ip6h->nexthdr = extended ? NEXTHDR_HOP : NEXTHDR_UDP;
	ip6h->hop_limit = 33;
	ip6h->saddr.s6_addr[15] = 1;
	ip6h->daddr.s6_addr[15] = 2;
	if (extended) {
		ext = skb_put_zero(skb, 8);
		ext[0] = NEXTHDR_UDP;
		/* PadN option */
		ext[2] = 1;
		ext[3] = 4;
	}
	steer_ports(skb);
	return skb;
}

/*
 * All fields of an IPv4 frame are parsed. Of a fragmented datagram, only the first fragment has
 * ports.
 */
static void steer_parse_ip4_test(struct kunit *test)
{
	struct nhca_steer_key key;
	struct sk_buff *skb;

	skb = steer_udp4(test, 0, IP_DF);
	nhca_steer_parse(skb, &key);
	KUNIT_EXPECT_MEMEQ(test, key.dmac, steer_dmac, ETH_ALEN);
	KUNIT_EXPECT_MEMEQ(test, key.smac, steer_smac, ETH_ALEN);
	KUNIT_EXPECT_EQ(test, ntohs(key.type), ETH_P_IP);
	KUNIT_EXPECT_EQ(test, key.vlan, 0);
	KUNIT_EXPECT_EQ(test, ntohl(key.src.s6_addr32[3]), 0x0a000001);
	KUNIT_EXPECT_EQ(test, ntohl(key.dst.s6_addr32[3]), 0x0a000002);
	KUNIT_EXPECT_EQ(test, key.proto, IPPROTO_UDP);
	KUNIT_EXPECT_EQ(test, key.tos, 0x2e);
	KUNIT_EXPECT_EQ(test, key.ttl, 17);
	KUNIT_EXPECT_EQ(test, key.flags, IB_IPV4_DONT_FRAG);
	KUNIT_EXPECT_EQ(test, ntohs(key.sport), 1000);
	KUNIT_EXPECT_EQ(test, ntohs(key.dport), 2000);
	kfree_skb(skb);

	/* the first fragment of a datagram has ports, a fragment with an offset has none */
	skb = steer_udp4(test, 0, IP_MF);
	nhca_steer_parse(skb, &key);
	KUNIT_EXPECT_EQ(test, key.flags, IB_IPV4_MORE_FRAG);
	KUNIT_EXPECT_EQ(test, ntohs(key.dport), 2000);
	kfree_skb(skb);
	skb = steer_udp4(test, 0, 100);
	nhca_steer_parse(skb, &key);
	KUNIT_EXPECT_EQ(test, key.dport, 0);
	kfree_skb(skb);
}

/* A frame gives the same key whether its VLAN tag is in the frame or in the metadata of the skb. */
static void steer_parse_vlan_test(struct kunit *test)
{
	struct nhca_steer_key in, beside;
	struct sk_buff *skb;

	skb = steer_udp4(test, 0x6123, 0);
	nhca_steer_parse(skb, &in);
	KUNIT_EXPECT_EQ(test, ntohs(in.vlan), 0x6123);
	KUNIT_EXPECT_EQ(test, ntohs(in.type), ETH_P_IP);
	KUNIT_EXPECT_EQ(test, ntohs(in.dport), 2000);
	kfree_skb(skb);

	skb = steer_udp4(test, 0, 0);
	__vlan_hwaccel_put_tag(skb, htons(ETH_P_8021Q), 0x6123);
	/* the data of a received skb begins after the Ethernet header */
	skb_pull(skb, ETH_HLEN);
	nhca_steer_parse(skb, &beside);
	KUNIT_EXPECT_MEMEQ(test, &beside, &in, sizeof(in));
	kfree_skb(skb);
}

/* All fields of an IPv6 frame are parsed. The ports are also found behind an extension header. */
static void steer_parse_ip6_test(struct kunit *test)
{
	struct nhca_steer_key key;
	struct sk_buff *skb;
	int extended;

	for (extended = 0; extended < 2; extended++) {
		skb = steer_udp6(test, extended);
		nhca_steer_parse(skb, &key);
		KUNIT_EXPECT_EQ(test, ntohs(key.type), ETH_P_IPV6);
		KUNIT_EXPECT_EQ(test, key.src.s6_addr[15], 1);
		KUNIT_EXPECT_EQ(test, key.dst.s6_addr[15], 2);
		KUNIT_EXPECT_EQ(test, key.tos, 0xab);
		KUNIT_EXPECT_EQ(test, ntohl(key.label), 0x12345);
		KUNIT_EXPECT_EQ(test, key.ttl, 33);
		KUNIT_EXPECT_EQ(test, key.proto, IPPROTO_UDP);
		KUNIT_EXPECT_EQ(test, ntohs(key.sport), 1000);
		KUNIT_EXPECT_EQ(test, ntohs(key.dport), 2000);
		kfree_skb(skb);
	}
}

/*
 * If a frame ends early, the fields that are missing are 0. Nothing behind the end of the frame is
 * read.
 */
static void steer_parse_short_test(struct kunit *test)
{
	struct nhca_steer_key key;
	struct sk_buff *skb;
	unsigned int len;
	int v6;

	for (v6 = 0; v6 < 2; v6++) {
		skb = v6 ? steer_udp6(test, true) : steer_udp4(test, 5, 0);
		for (len = skb->len - 5; len >= ETH_HLEN; len--) {
			skb_trim(skb, len);
			nhca_steer_parse(skb, &key);
			KUNIT_EXPECT_EQ(test, key.dport, 0);
			KUNIT_EXPECT_MEMEQ(test, key.dmac, steer_dmac, ETH_ALEN);
		}
		kfree_skb(skb);
	}
}

/**
 * union steer_attr - a flow with up to three specifications, as the RDMA core passes it
 * @attr:  the head
 * @bytes: the head and the specifications behind it; the size of each specification is in the
 *         specification
 */
union steer_attr {
	struct ib_flow_attr attr;
	u8 bytes[sizeof(struct ib_flow_attr) + 3 * sizeof(union ib_flow_spec)];
};

static void steer_spec(union steer_attr *a, const void *spec, size_t size)
{
	size_t at = sizeof(a->attr);
	int i;

	for (i = 0; i < a->attr.num_of_specs; i++)
		at += ((union ib_flow_spec *)(a->bytes + at))->size;
	memcpy(a->bytes + at, spec, size);
	a->attr.num_of_specs++;
}

static const struct ib_flow_spec_eth steer_spec_eth = {
	.type = IB_FLOW_SPEC_ETH, .size = sizeof(steer_spec_eth),
	.val.dst_mac = { 2, 0, 0, 0, 0, 1 }, .val.vlan_tag = htons(0xf123),
	.mask.dst_mac = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff }, .mask.vlan_tag = htons(0x0fff),
};

static const struct ib_flow_spec_ipv4 steer_spec_ip4 = {
	.type = IB_FLOW_SPEC_IPV4, .size = sizeof(steer_spec_ip4),
	.val.dst_ip = htonl(0x0a0000ff), .mask.dst_ip = htonl(0xffffff00),
};

static const struct ib_flow_spec_tcp_udp steer_spec_udp = {
	.type = IB_FLOW_SPEC_UDP, .size = sizeof(steer_spec_udp),
	.val.dst_port = htons(2000), .mask.dst_port = htons(0xffff),
};

static bool steer_is_for(const struct nhca_steer_rule *rule, struct sk_buff *skb)
{
	struct nhca_steer_key key;

	nhca_steer_parse(skb, &key);
	kfree_skb(skb);
	return nhca_steer_fits(rule, &key);
}

/*
 * A frame matches a rule if it agrees with all specifications in the bits that their masks select.
 */
static void steer_rule_fits_test(struct kunit *test)
{
	struct nhca_steer_rule rule = {};
	union steer_attr a = { .attr.priority = 7, .attr.flags = IB_FLOW_ATTR_FLAGS_DONT_TRAP };

	steer_spec(&a, &steer_spec_eth, sizeof(steer_spec_eth));
	steer_spec(&a, &steer_spec_ip4, sizeof(steer_spec_ip4));
	steer_spec(&a, &steer_spec_udp, sizeof(steer_spec_udp));
	KUNIT_ASSERT_EQ(test, nhca_spec_rule(&a.attr, &rule), 0);
	KUNIT_EXPECT_EQ(test, rule.priority, 7);
	KUNIT_EXPECT_TRUE(test, rule.copy);
	KUNIT_EXPECT_TRUE(test, steer_is_for(&rule, steer_udp4(test, 0x6123, 0)));
	KUNIT_EXPECT_TRUE(test, steer_is_for(&rule, steer_udp4(test, 0x0123, 0)));
	KUNIT_EXPECT_FALSE(test, steer_is_for(&rule, steer_udp4(test, 0x6124, 0)));
	KUNIT_EXPECT_FALSE(test, steer_is_for(&rule, steer_udp4(test, 0, 0)));
	KUNIT_EXPECT_FALSE(test, steer_is_for(&rule, steer_udp4(test, 0x6123, 100)));
	KUNIT_EXPECT_FALSE(test, steer_is_for(&rule, steer_udp6(test, false)));
}

/* A rule without specifications matches all frames. */
static void steer_rule_all_test(struct kunit *test)
{
	struct nhca_steer_rule rule = {};
	union steer_attr a = {};

	KUNIT_ASSERT_EQ(test, nhca_spec_rule(&a.attr, &rule), 0);
	KUNIT_EXPECT_FALSE(test, rule.copy);
	KUNIT_EXPECT_TRUE(test, steer_is_for(&rule, steer_udp4(test, 0, 0)));
	KUNIT_EXPECT_TRUE(test, steer_is_for(&rule, steer_udp6(test, false)));
	KUNIT_EXPECT_TRUE(test, steer_is_for(&rule, steer_eth(test, ETH_P_ARP, 9)));
}

static int steer_rule_err(union steer_attr *a)
{
	struct nhca_steer_rule rule = {};

	return nhca_spec_rule(&a->attr, &rule);
}

/*
 * A rule that no frame can match is refused, and so is a rule with a specification, type or flag
 * that nhca does not support.
 */
static void steer_rule_refused_test(struct kunit *test)
{
	static const struct ib_flow_spec_ipv6 ip6 = {
		.type = IB_FLOW_SPEC_IPV6, .size = sizeof(ip6),
	};
	static const struct ib_flow_spec_ipv4 tcp4 = {
		.type = IB_FLOW_SPEC_IPV4, .size = sizeof(tcp4),
		.val.proto = IPPROTO_TCP, .mask.proto = 0xff,
	};
	static const struct ib_flow_spec_action_drop drop = {
		.type = IB_FLOW_SPEC_ACTION_DROP, .size = sizeof(drop),
	};
	union steer_attr a = {};

	steer_spec(&a, &ip6, sizeof(ip6));
	KUNIT_EXPECT_EQ(test, steer_rule_err(&a), 0);
	steer_spec(&a, &steer_spec_ip4, sizeof(steer_spec_ip4));
	KUNIT_EXPECT_EQ(test, steer_rule_err(&a), -EINVAL);

	memset(&a, 0, sizeof(a));
	steer_spec(&a, &tcp4, sizeof(tcp4));
	steer_spec(&a, &steer_spec_udp, sizeof(steer_spec_udp));
	KUNIT_EXPECT_EQ(test, steer_rule_err(&a), -EINVAL);

	memset(&a, 0, sizeof(a));
	steer_spec(&a, &drop, sizeof(drop));
	KUNIT_EXPECT_EQ(test, steer_rule_err(&a), -EOPNOTSUPP);

	memset(&a, 0, sizeof(a));
	a.attr.type = IB_FLOW_ATTR_SNIFFER;
	KUNIT_EXPECT_EQ(test, steer_rule_err(&a), -EOPNOTSUPP);
	a.attr.type = IB_FLOW_ATTR_NORMAL;
	a.attr.flags = IB_FLOW_ATTR_FLAGS_EGRESS;
	KUNIT_EXPECT_EQ(test, steer_rule_err(&a), -EOPNOTSUPP);
}

/*
 * Rules are ordered by priority, lowest number first. Rules of equal priority are ordered by age,
 * oldest first.
 */
static void steer_order_test(struct kunit *test)
{
	static const u16 given[] = { 5, 0, 9, 5, 0xffff, 0, 9 };
	static const u8 order[] = { 1, 5, 0, 3, 2, 6, 4 };
	struct nhca_steer_rule rules[ARRAY_SIZE(given)] = {};
	struct nhca_steer_rule *rule;
	LIST_HEAD(list);
	int i;

	for (i = 0; i < ARRAY_SIZE(given); i++) {
		rules[i].priority = given[i];
		nhca_steer_insert(&list, &rules[i]);
	}
	i = 0;
	list_for_each_entry(rule, &list, list)
		KUNIT_EXPECT_PTR_EQ(test, rule, &rules[order[i++]]);
	KUNIT_EXPECT_EQ(test, i, ARRAY_SIZE(given));
}

/* key and hashes that Microsoft published as "Verifying the RSS Hash Calculation" */
static const u8 steer_rss_key[NHCA_RSS_KEY] = {
	0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3,
	0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3,
	0x80, 0x30, 0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa,
};

/* The RSS hash of IPv4 packets has the published values. */
static void steer_rss_hash_test(struct kunit *test)
{
	struct nhca_steer_key what = {
		.type = htons(ETH_P_IP), .proto = IPPROTO_TCP,
		.src.s6_addr32[3] = htonl(0x420995bb), .sport = htons(2794),
		.dst.s6_addr32[3] = htonl(0xa18e6450), .dport = htons(1766),
	};
	const u32 addrs = NHCA_RSS_SRC_IPV4 | NHCA_RSS_DST_IPV4;
	const u32 tcp = NHCA_RSS_SRC_PORT_TCP | NHCA_RSS_DST_PORT_TCP;
	const u32 udp = NHCA_RSS_SRC_PORT_UDP | NHCA_RSS_DST_PORT_UDP;

	KUNIT_EXPECT_EQ(test, nhca_rss_hash(steer_rss_key, addrs, &what), 0x323e8fc2);
	KUNIT_EXPECT_EQ(test, nhca_rss_hash(steer_rss_key, addrs | tcp, &what), 0x51ccc178);
	/* the packet is a TCP packet, so the flags for UDP ports add no ports to the hash */
	KUNIT_EXPECT_EQ(test, nhca_rss_hash(steer_rss_key, addrs | udp, &what), 0x323e8fc2);
	KUNIT_EXPECT_EQ(test, nhca_rss_hash(steer_rss_key, 0, &what), 0);
}

/* The RSS hash of IPv6 packets has the published values. */
static void steer_rss_hash6_test(struct kunit *test)
{
	static const struct in6_addr src = { .s6_addr = {
		0x3f, 0xfe, 0x05, 0x01, 0x00, 0x08, 0, 0,
		0x02, 0x60, 0x97, 0xff, 0xfe, 0x40, 0xef, 0xab } };
	static const struct in6_addr dst = { .s6_addr = { 0xff, 0x02, [15] = 1 } };
	static const struct in6_addr src1 = { .s6_addr = {
		0x3f, 0xfe, 0x25, 0x01, 0x02, 0x00, 0x1f, 0xff, 0, 0, 0, 0, 0, 0, 0, 7 } };
	static const struct in6_addr dst1 = { .s6_addr = {
		0x3f, 0xfe, 0x25, 0x01, 0x02, 0x00, 0x00, 0x03, 0, 0, 0, 0, 0, 0, 0, 1 } };
	struct nhca_steer_key what = {
		.type = htons(ETH_P_IPV6), .proto = IPPROTO_TCP, .src = src1, .dst = dst1,
		.sport = htons(2794), .dport = htons(1766),
	};
	const u32 addrs = NHCA_RSS_SRC_IPV6 | NHCA_RSS_DST_IPV6;
	const u32 tcp = NHCA_RSS_SRC_PORT_TCP | NHCA_RSS_DST_PORT_TCP;

	KUNIT_EXPECT_EQ(test, nhca_rss_hash(steer_rss_key, addrs, &what), 0x2cc18cd5);
	KUNIT_EXPECT_EQ(test, nhca_rss_hash(steer_rss_key, addrs | tcp, &what), 0x40207d3d);
	what.src = src;
	what.dst = dst;
	what.sport = htons(14230);
	what.dport = htons(4739);
	KUNIT_EXPECT_EQ(test, nhca_rss_hash(steer_rss_key, addrs, &what), 0x0f0c461c);
	KUNIT_EXPECT_EQ(test, nhca_rss_hash(steer_rss_key, addrs | tcp, &what), 0xdde51bbf);
}

static struct kunit_case steer_cases[] = {
	KUNIT_CASE(steer_parse_ip4_test),
	KUNIT_CASE(steer_parse_vlan_test),
	KUNIT_CASE(steer_parse_ip6_test),
	KUNIT_CASE(steer_parse_short_test),
	KUNIT_CASE(steer_rule_fits_test),
	KUNIT_CASE(steer_rule_all_test),
	KUNIT_CASE(steer_rule_refused_test),
	KUNIT_CASE(steer_order_test),
	KUNIT_CASE(steer_rss_hash_test),
	KUNIT_CASE(steer_rss_hash6_test),
	{}
};

static struct kunit_suite steer_suite = {
	.name = "nhca_steer",
	.test_cases = steer_cases,
};

kunit_test_suite(steer_suite);
