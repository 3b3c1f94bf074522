// SPDX-License-Identifier: GPL-2.0
/* A part of raw.c: Ethernet frames, and rules that each match one field of them. */
#define _GNU_SOURCE
#include "raw_frame.h"

static void put16(uint8_t *p, uint16_t v)
{
	p[0] = v >> 8;
	p[1] = v;
}

static void put32(uint8_t *p, uint32_t v)
{
	put16(p, v >> 16);
	put16(p + 2, v);
}

static uint16_t get16(const uint8_t *p)
{
	return p[0] << 8 | p[1];
}

static uint32_t frame_sum(const uint8_t *p, size_t len, uint32_t sum)
{
	for (size_t i = 0; i + 1 < len; i += 2)
		sum += get16(p + i);
	return len & 1 ? sum + (p[len - 1] << 8) : sum;
}

static uint16_t frame_fold(uint32_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

/* Return: a frame of EtherType TYPE; @len: bytes, including the Ethernet header. */
struct frame frame_plain(const uint8_t *dmac, const uint8_t *smac, size_t len, uint32_t seed)
{
	struct frame f = { .len = len };

	memcpy(f.bytes, dmac, ETH_ALEN);
	memcpy(f.bytes + ETH_ALEN, smac, ETH_ALEN);
	put16(f.bytes + 12, TYPE);
	for (size_t i = ETH_HLEN; i < len; i++)
		f.bytes[i] = i * 7 + seed * 31;
	return f;
}

/* Insert a VLAN tag. */
void frame_tag(struct frame *f, uint16_t tci)
{
	memmove(f->bytes + 16, f->bytes + 12, f->len - 12);
	put16(f->bytes + 12, VLAN_TYPE);
	put16(f->bytes + 14, tci);
	f->len += 4;
}

bool frame_is_ours(const struct frame *f)
{
	size_t at = get16(f->bytes + 12) == VLAN_TYPE ? 16 : 12;

	return f->len >= at + 2 && get16(f->bytes + at) == TYPE;
}

static size_t frame_ip4(uint8_t *p, const struct fields *x, size_t payload)
{
	p[0] = 0x45;
	p[1] = x->tos;
	put16(p + 2, 20 + payload);
	p[8] = x->ttl ?: 64;
	p[9] = x->proto ?: IPPROTO_UDP;
	put32(p + 12, 0x0a620000 | (x->src ?: 2));
	put32(p + 16, 0x0a620000 | (x->dst ?: 1));
	put16(p + 10, ~frame_fold(frame_sum(p, 20, 0)));
	return 20;
}

static size_t frame_ip6(uint8_t *p, const struct fields *x, size_t payload)
{
	put32(p, 6u << 28 | x->tos << 20 | x->label);
	put16(p + 4, payload);
	p[6] = x->proto ?: IPPROTO_UDP;
	p[7] = x->ttl ?: 64;
	p[8] = 0xfd;
	p[23] = x->src ?: 2;
	p[24] = 0xfd;
	p[39] = x->dst ?: 1;
	return 40;
}

/*
 * Return: a frame with an IP packet.  The 40 bytes after the IP header are valid only as UDP over
 * IPv4.
 */
static struct frame frame_ip(const struct fields *x)
{
	struct frame f = frame_plain(x->dmac, x->smac, ETH_HLEN, 0);
	size_t payload = 40;
	uint8_t *p = f.bytes + ETH_HLEN;

	put16(f.bytes + 12, x->v6 ? ETH_P_IPV6 : ETH_P_IP);
	p += x->v6 ? frame_ip6(p, x, payload) : frame_ip4(p, x, payload);
	put16(p, x->sport ?: 1234);
	put16(p + 2, x->dport ?: 5678);
	put16(p + 4, payload);
	for (size_t i = 8; i < payload; i++)
		p[i] = i * 3;
	f.len = p + payload - f.bytes;
	if (x->vlan)
		frame_tag(&f, x->vlan);
	return f;
}

/* Return: a datagram that the host accepts; it has no UDP checksum. */
struct frame frame_udp4(const struct fields *x)
{
	return frame_ip(x);
}

/* Return: true if a frame with UDP over IPv4 has both checksums, and they are correct. */
bool udp4_sums_hold(const uint8_t *bytes, size_t len)
{
	const uint8_t *ip = bytes + ETH_HLEN, *udp = ip + 20;
	size_t udp_len = len - ETH_HLEN - 20;
	uint32_t sum;

	if (get16(ip + 2) != len - ETH_HLEN || get16(udp + 4) != udp_len || !get16(udp + 6) ||
	    frame_fold(frame_sum(ip, 20, 0)) != 0xffff)
		return false;
	sum = frame_sum(ip + 12, 8, IPPROTO_UDP + udp_len);
	return frame_fold(frame_sum(udp, udp_len, sum)) == 0xffff;
}

/* ---- a rule for each field ---- */

const char *field_name(int field)
{
	static const char * const names[FIELDS] = {
		"destination MAC", "source MAC", "EtherType", "VLAN", "IPv4 source",
		"IPv4 destination", "IPv4 protocol", "TOS", "TTL", "IPv6 source",
		"IPv6 destination", "flow label", "next header", "traffic class", "hop limit",
		"UDP source port", "UDP destination port", "TCP destination port",
	};

	return names[field];
}

/* Return: a frame that matches the rule for @field or, if @other is true, does not. */
struct frame field_frame(int field, bool other, const uint8_t *dmac, const uint8_t *smac)
{
	static const uint8_t mac[2][ETH_ALEN] = { { 2, 9, 9, 9, 9, 1 }, { 2, 9, 9, 9, 9, 2 } };
	struct fields x = { .dmac = dmac, .smac = smac };
	uint8_t n = other ? 78 : 77;

	x.v6 = field >= SRC6 && field <= HOPS6;
	switch ((enum field)field) {
	case DMAC:
		x.dmac = mac[other];
		break;
	case SMAC:
		x.smac = mac[other];
		break;
	case ETHERTYPE:
		x.v6 = other;
		break;
	case VLAN:
		/* the rule ignores the priority */
		x.vlan = 0x6000 | n;
		break;
	case SRC4:
	case SRC6:
		x.src = n;
		break;
	case DST4:
	case DST6:
		x.dst = n;
		break;
	case PROTO4:
	case NEXT6:
		x.proto = n;
		break;
	case TOS4:
	case CLASS6:
		x.tos = n;
		break;
	case TTL4:
	case HOPS6:
		x.ttl = n;
		break;
	case LABEL6:
		x.label = 0x12300 | n;
		break;
	case UDP_SRC:
		x.sport = n;
		break;
	case UDP_DST:
		x.dport = n;
		break;
	case TCP_DST:
		/* a UDP packet to the same port must not match */
		x.dport = 77;
		x.proto = other ? IPPROTO_UDP : IPPROTO_TCP;
		break;
	default:
		break;
	}
	return frame_ip(&x);
}

/* Write the specification for a field to @to.  Return: its size. */
size_t field_spec(int field, uint8_t *to)
{
	struct ibv_flow_spec_eth eth = { .type = IBV_FLOW_SPEC_ETH, .size = sizeof(eth) };
	struct ibv_flow_spec_ipv4_ext ip4 = { .type = IBV_FLOW_SPEC_IPV4_EXT, .size = sizeof(ip4) };
	struct ibv_flow_spec_ipv6 ip6 = { .type = IBV_FLOW_SPEC_IPV6, .size = sizeof(ip6) };
	struct ibv_flow_spec_tcp_udp ports = { .type = IBV_FLOW_SPEC_UDP, .size = sizeof(ports) };
	static const uint8_t mac[ETH_ALEN] = { 2, 9, 9, 9, 9, 1 };

	switch ((enum field)field) {
	case DMAC:
		memcpy(eth.val.dst_mac, mac, ETH_ALEN);
		memset(eth.mask.dst_mac, 0xff, ETH_ALEN);
		break;
	case SMAC:
		memcpy(eth.val.src_mac, mac, ETH_ALEN);
		memset(eth.mask.src_mac, 0xff, ETH_ALEN);
		break;
	case ETHERTYPE:
		eth.val.ether_type = htons(ETH_P_IP);
		eth.mask.ether_type = 0xffff;
		break;
	case VLAN:
		eth.val.vlan_tag = htons(77);
		eth.mask.vlan_tag = htons(0x0fff);
		break;
	case SRC4:
		ip4.val.src_ip = htonl(77);
		ip4.mask.src_ip = htonl(0xff);
		break;
	case DST4:
		ip4.val.dst_ip = htonl(77);
		ip4.mask.dst_ip = htonl(0xff);
		break;
	case PROTO4:
		ip4.val.proto = 77;
		ip4.mask.proto = 0xff;
		break;
	case TOS4:
		ip4.val.tos = 77;
		ip4.mask.tos = 0xff;
		break;
	case TTL4:
		ip4.val.ttl = 77;
		ip4.mask.ttl = 0xff;
		break;
	case SRC6:
		ip6.val.src_ip[15] = 77;
		ip6.mask.src_ip[15] = 0xff;
		break;
	case DST6:
		ip6.val.dst_ip[15] = 77;
		ip6.mask.dst_ip[15] = 0xff;
		break;
	case LABEL6:
		ip6.val.flow_label = htonl(0x12300 | 77);
		ip6.mask.flow_label = htonl(0xfffff);
		break;
	case NEXT6:
		ip6.val.next_hdr = 77;
		ip6.mask.next_hdr = 0xff;
		break;
	case CLASS6:
		ip6.val.traffic_class = 77;
		ip6.mask.traffic_class = 0xff;
		break;
	case HOPS6:
		ip6.val.hop_limit = 77;
		ip6.mask.hop_limit = 0xff;
		break;
	case UDP_SRC:
		ports.val.src_port = htons(77);
		ports.mask.src_port = 0xffff;
		break;
	case UDP_DST:
		ports.val.dst_port = htons(77);
		ports.mask.dst_port = 0xffff;
		break;
	case TCP_DST:
		ports.type = IBV_FLOW_SPEC_TCP;
		ports.val.dst_port = htons(77);
		ports.mask.dst_port = 0xffff;
		break;
	default:
		break;
	}
	if (field <= VLAN) {
		memcpy(to, &eth, sizeof(eth));
		return sizeof(eth);
	}
	if (field <= TTL4) {
		memcpy(to, &ip4, sizeof(ip4));
		return sizeof(ip4);
	}
	if (field <= HOPS6) {
		memcpy(to, &ip6, sizeof(ip6));
		return sizeof(ip6);
	}
	memcpy(to, &ports, sizeof(ports));
	return sizeof(ports);
}
