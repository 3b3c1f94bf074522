// SPDX-License-Identifier: GPL-2.0
/* This file decodes and verifies the packets of a received batch, and copies their payload. */
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/moduleparam.h>
#include <linux/udp.h>
#include <net/dsfield.h>
#include <net/inet_ecn.h>
#include <net/ip.h>

#include "recv.h"
#include "../memory/memory.h"
#include "../observe/stub.h"
#include "../observe/trace.h"
#include "../wire/compat.h"
#include "../wire/icrc.h"
#include "../wire/psn.h"

/* AckReq bit in byte 8 of the BTH */
#define NHCA_RX_ACKREQ	0x80

static bool nhca_insist_icrc;
module_param_named(insist_icrc, nhca_insist_icrc, bool, 0644);
MODULE_PARM_DESC(insist_icrc, "Y: send and require an ICRC in every packet; N: two nhca devices may use the UDP checksum instead (default N)");

void nhca_rx_refused(struct nhca_dev *dev, const struct nhca_hdr *h, enum nhca_counter why)
{
	nhca_dev_count(dev, why);
	trace_nhca_packet_refused(&dev->ibdev, h, why);
}

struct nhca_dev *nhca_rx_dev(const struct nhca_rx *rx)
{
	if (rx->ip.mcast)
		return nhca_net_dev(rx->ip.nn, rx->ip.iif);
	return nhca_addr_find(rx->ip.nn, &rx->ip.daddr, rx->ip.iif);
}

void nhca_rx_refuse(const struct nhca_rx *rx, const struct nhca_hdr *h, enum nhca_counter why)
{
	struct nhca_dev *dev = nhca_rx_dev(rx);

	if (dev)
		nhca_rx_refused(dev, h, why);
}

/*
 * Return: the interface on which @skb arrived; lo for a packet of this host. A VRF puts its own
 * index into skb_iif; sdif is then the index of the netdev below the VRF. A packet that this host
 * has sent in a VRF arrives on the VRF itself, so that sdif is the index of the VRF.
 */
static int nhca_skb_iif(struct sk_buff *skb, bool v4)
{
	int sdif = v4 ? inet_sdif(skb) : inet6_sdif(skb);

	if (likely(!sdif))
		return skb->skb_iif;
	return sdif == skb->skb_iif ? LOOPBACK_IFINDEX : sdif;
}

bool nhca_rx_begin(struct nhca_rx *rx)
{
	struct sk_buff *skb = rx->skb;

	rx->ip.hdr = skb_network_header(skb);
	rx->ip.iif = nhca_skb_iif(skb, ip_hdr(skb)->version == 4);
	if (ip_hdr(skb)->version == 4) {
		const struct iphdr *iph = ip_hdr(skb);

		rx->ip.v4 = true;
		rx->ip.mcast = ipv4_is_multicast(iph->daddr);
		rx->ce = (iph->tos & INET_ECN_MASK) == INET_ECN_CE;
		ipv6_addr_set_v4mapped(iph->saddr, &rx->ip.saddr);
		ipv6_addr_set_v4mapped(iph->daddr, &rx->ip.daddr);
		/* the ICRC is not defined for a header with options */
		if (iph->ihl != sizeof(*iph) / 4)
			return false;
	} else {
		const struct ipv6hdr *ip6h = ipv6_hdr(skb);

		rx->ip.v4 = false;
		rx->ip.mcast = ipv6_addr_is_multicast(&ip6h->daddr);
		rx->ce = (ipv6_get_dsfield(ip6h) & INET_ECN_MASK) == INET_ECN_CE;
		rx->ip.saddr = ip6h->saddr;
		rx->ip.daddr = ip6h->daddr;
		/*
		 * The stack has stored the interface of the address in IP6CB. In a copy
		 * (nhca_rx_copy_of()) IP6CB is 0, and skb_iif is already right.
		 */
		if (rx->ip.iif == LOOPBACK_IFINDEX && nhca_addr_is_link(&ip6h->daddr))
			rx->ip.iif = IP6CB(skb)->iif ?: LOOPBACK_IFINDEX;
		if (ip6h->nexthdr != IPPROTO_UDP)
			return false;
	}
	nhca_cursor_init(&rx->at, skb);
	return true;
}

/*
 * Return: the packet's headers, in the skb if they are contiguous, otherwise copied to @buf. In a
 * batch that was built from fragments, the headers are contiguous, but the payload is elsewhere.
 * @avail: maximum number of bytes to return; on return the number of bytes available
 */
static const u8 *nhca_rx_headers(struct nhca_rx *rx, unsigned int *avail, u8 *buf)
{
	const struct nhca_opinfo *info;
	const u8 *p;
	u32 len;

	p = nhca_cursor_at(&rx->at, rx->udp_off, &len);
	if (likely(p)) {
		if (len >= *avail)
			return p;
		info = nhca_opinfo(p[0]);
		if (info && len >= info->hdr_len) {
			*avail = len;
			return p;
		}
	}
	return skb_copy_bits(rx->skb, rx->udp_off, buf, *avail) ? NULL : buf;
}

/*
 * Return: true if the BTH at @p has @psn and otherwise equals @bth, except for the AckReq bit.
 * @bth: the first NHCA_ALIKE_LEN bytes of a BTH.
 */
static bool nhca_rx_bth_alike(const u8 *bth, const u8 *p, u32 psn)
{
	return !memcmp(p, bth, 8) && !((p[8] ^ bth[8]) & ~NHCA_RX_ACKREQ) &&
	       get_unaligned_be24(p + NHCA_ALIKE_LEN) == psn;
}

/*
 * Return: true if the BTH at @p differs from that of the previous packet only in the PSN, which is
 * the next one, and in AckReq. The caller compares the lengths of the packets.
 */
static bool nhca_rx_alike(const struct nhca_rx *rx, const u8 *p)
{
	return nhca_rx_bth_alike(rx->alike.bth, p, nhca_psn_add(rx->hdr.psn, 1));
}

/* Set @rx to the packet at @rx->udp_off, for whose BTH @p nhca_rx_alike() has returned true. */
static void nhca_rx_step(struct nhca_rx *rx, const u8 *p)
{
	rx->hdr.psn = nhca_psn_add(rx->hdr.psn, 1);
	rx->hdr.ackreq = p[8] & NHCA_RX_ACKREQ;
	rx->off = rx->udp_off + NHCA_BTH_LEN;
}

enum nhca_rx_kind nhca_rx_decode(struct nhca_rx *rx, u32 udp_len)
{
	static const enum nhca_counter why[] = {
		[NHCA_DECODE_SHORT] = NHCA_CNT_RX_TOO_SHORT,
		[NHCA_DECODE_OPCODE] = NHCA_CNT_RX_BAD_OPCODE,
		[NHCA_DECODE_VERSION] = NHCA_CNT_RX_BAD_VERSION,
		[NHCA_DECODE_LENGTH] = NHCA_CNT_RX_BAD_LENGTH,
	};
	unsigned int avail = min_t(u32, udp_len, NHCA_HDRS_MAX);
	u8 buf[NHCA_HDRS_MAX];
	enum nhca_decode_err err;
	const u8 *p;

	p = nhca_rx_headers(rx, &avail, buf);
	if (!p)
		return NHCA_RX_BAD;
	if (rx->alike.set && udp_len == rx->alike.udp_len && avail >= NHCA_BTH_LEN &&
	    nhca_rx_alike(rx, p)) {
		nhca_rx_step(rx, p);
		return NHCA_RX_ALIKE;
	}

	rx->alike.set = false;
	rx->udp_len = udp_len;
	err = nhca_hdr_decode(&rx->hdr, p, avail, rx->udp_len);
	if (err) {
		nhca_rx_refuse(rx, err == NHCA_DECODE_LENGTH ? &rx->hdr : NULL, why[err]);
		return NHCA_RX_BAD;
	}
	rx->off = rx->udp_off + rx->hdr.info->hdr_len;
	rx->payload = nhca_hdr_payload(&rx->hdr, rx->udp_len);
	/* the next packet will be compared with this one */
	if (rx->hdr.info->hdr_len == NHCA_BTH_LEN) {
		rx->alike.set = true;
		rx->alike.udp_len = udp_len;
		memcpy(rx->alike.bth, p, sizeof(rx->alike.bth));
	}
	if (rx->hdr.info->flags & NHCA_OPF_RXETH)
		rx->rxeth = p != buf ? p + NHCA_BTH_LEN : NULL;
	return NHCA_RX_NEW;
}

/*
 * Copy the packet's IP and UDP headers to @buf, as they were on the wire, except that a packet of a
 * batch gets the checksums of the batch, which the ICRC does not cover.
 * @id: how much the packet's IPv4 identification exceeds that of the first packet of the batch
 * Return: length of the headers in bytes.
 */
static unsigned int nhca_rx_outer(const struct nhca_rx *rx, u16 id, u8 *buf)
{
	unsigned int ip_len = rx->ip.v4 ? sizeof(struct iphdr) : sizeof(struct ipv6hdr);
	struct udphdr *uh = (struct udphdr *)(buf + ip_len);

	memcpy(buf, rx->ip.hdr, ip_len);
	memcpy(uh, udp_hdr(rx->skb), sizeof(*uh));

	/* A batch has the headers of its first packet, but the lengths of the whole batch. */
	if (skb_is_gso(rx->skb)) {
		uh->len = htons(sizeof(*uh) + rx->udp_len);
		if (rx->ip.v4) {
			struct iphdr *iph = (struct iphdr *)buf;

			iph->tot_len = htons(ip_len + sizeof(*uh) + rx->udp_len);
			iph->id = htons(ntohs(iph->id) + id);
		} else {
			((struct ipv6hdr *)buf)->payload_len = uh->len;
		}
	}
	return ip_len + sizeof(*uh);
}

/* Return: the ICRC over the IP and UDP headers and the BTH; nhca_rx_icrc_ok() continues it. */
static u32 nhca_rx_icrc_start(const struct nhca_rx *rx, u16 id)
{
	u8 buf[sizeof(struct ipv6hdr) + sizeof(struct udphdr) + NHCA_BTH_LEN];
	unsigned int len = nhca_rx_outer(rx, id, buf);

	skb_copy_bits(rx->skb, rx->udp_off, buf + len, NHCA_BTH_LEN);
	return rx->ip.v4 ? nhca_icrc_start4(buf) : nhca_icrc_start6(buf);
}

static bool nhca_rx_icrc_ok(const struct nhca_rx *rx, u16 id)
{
	u32 end = rx->udp_off + rx->udp_len - NHCA_ICRC_LEN;
	u32 off = rx->udp_off + NHCA_BTH_LEN;
	struct nhca_cursor at = rx->at;
	const u8 *data;
	__le32 icrc;
	u32 crc, n;

	crc = nhca_rx_icrc_start(rx, id);
	for (; off < end; off += n) {
		data = nhca_cursor_at(&at, off, &n);
		if (!data)
			return false;
		n = min(n, end - off);
		crc = nhca_icrc_more(crc, data, n);
	}
	if (skb_copy_bits(rx->skb, end, &icrc, sizeof(icrc)))
		return false;
	return icrc == nhca_icrc_finish(crc);
}

struct sk_buff *nhca_rx_copy_of(struct nhca_rx *rx, u32 len)
{
	unsigned int ip_len = rx->ip.v4 ? sizeof(struct iphdr) : sizeof(struct ipv6hdr);
	struct sk_buff *skb;
	u16 id = 0;

	skb = alloc_skb(ip_len + sizeof(struct udphdr) + len, GFP_ATOMIC | __GFP_NOWARN);
	if (!skb)
		return NULL;
	rx->udp_len = len;
	if (rx->ip.v4 && skb_is_gso(rx->skb) && !nhca_rx_icrc_ok(rx, 0))
		id = rx->index;
	skb_reset_network_header(skb);
	skb_set_transport_header(skb, ip_len);
	nhca_rx_outer(rx, id, skb_put(skb, ip_len + sizeof(struct udphdr)));
	skb_pull(skb, ip_len + sizeof(struct udphdr));
	if (skb_copy_bits(rx->skb, rx->udp_off, skb_put(skb, len), len)) {
		kfree_skb(skb);
		return NULL;
	}
	skb->skb_iif = rx->ip.iif;
	skb->ip_summed = rx->skb->ip_summed;
	return skb;
}

/* Return: true if the packet has a UDP checksum, which then needs no further check. */
static bool nhca_rx_sum_ok(const struct nhca_rx *rx)
{
	/*
	 * A UDP checksum that is not 0 was verified by the netdev or the stack, or else by
	 * nhca_sk_drain(). A packet that has not left this host (CHECKSUM_PARTIAL) has only the
	 * pseudo-header sum in its checksum field. This sum is never 0, and the bytes of such a
	 * packet have not left memory.
	 */
	return udp_hdr(rx->skb)->check;
}

bool nhca_insists_icrc(void)
{
	return READ_ONCE(nhca_insist_icrc);
}

/* Return: true if the packet may be accepted without an ICRC. */
static bool nhca_rx_no_icrc_ok(const struct nhca_rx *rx)
{
	const u8 bits = NHCA_CAP_NO_ICRC | NHCA_CAP_FOREIGN;

	return (rx->hdr.caps & bits) == NHCA_CAP_NO_ICRC && !nhca_insists_icrc() &&
	       nhca_rx_sum_ok(rx);
}

/*
 * The ICRC does not cover NHCA_CAP_NO_ICRC. If the network sets this bit in a packet that has an
 * ICRC but no UDP checksum, the ICRC stays valid, so the packet is accepted by its ICRC.
 */
bool nhca_rx_intact(struct nhca_rx *rx, bool no_icrc)
{
	rx->alike.no_icrc = no_icrc && nhca_rx_no_icrc_ok(rx);
	if (rx->alike.no_icrc)
		return true;
	rx->ip.id = rx->index;
	if (nhca_rx_icrc_ok(rx, rx->ip.id))
		return true;
	/*
	 * GRO also joins packets with the same IPv4 identification, because the identification has
	 * no meaning in packets with DF (RFC 6864). So the packet may have been sent with the
	 * identification of the first packet.
	 */
	rx->ip.id = 0;
	return rx->ip.v4 && rx->index && nhca_rx_icrc_ok(rx, 0);
}

/* Read the four bytes in the place of the ICRC. Return: 0; -EFAULT: the skb has fewer bytes. */
static int nhca_rx_tail(const struct nhca_rx *rx, void *tail)
{
	return skb_copy_bits(rx->skb, rx->udp_off + rx->udp_len - NHCA_ICRC_LEN, tail,
			     NHCA_ICRC_LEN);
}

bool nhca_rx_acks(const struct nhca_rx *rx, u32 *psn)
{
	__be32 tail;

	if (!(rx->hdr.caps & NHCA_CAP_ACKS) || !rx->alike.no_icrc || nhca_rx_tail(rx, &tail))
		return false;
	*psn = be32_to_cpu(tail) & NHCA_PSN_MASK;
	return true;
}

bool nhca_rx_mark(const struct nhca_rx *rx, __le32 *mark)
{
	u8 summed = rx->skb->ip_summed;

	/* a packet from a wire has one of these values, because its checksum was verified */
	if (summed == CHECKSUM_UNNECESSARY || summed == CHECKSUM_COMPLETE)
		return false;
	return rx->alike.no_icrc && !(rx->hdr.caps & NHCA_CAP_ACKS) && !nhca_rx_tail(rx, mark);
}

/*
 * Copy a whole page.
 * Return: false, after copying nothing, if @data is not an aligned page, or the destination does
 * not continue with a whole page.
 */
static __always_inline bool nhca_rx_copy_page(const u8 *data, u32 len, struct nhca_iter *it)
{
	struct page *page;

	if (len < PAGE_SIZE || !PAGE_ALIGNED(data))
		return false;
	page = nhca_iter_page(it);
	if (!page)
		return false;
	copy_page(page_address(page), (void *)data);
	return true;
}

/* Copy @len bytes at offset @off of the skb. */
static int nhca_rx_copy_at(struct nhca_rx *rx, u32 off, u32 len, struct nhca_iter *it)
{
	const u8 *data;
	u32 n;
	int err;

	for (; len; off += n, len -= n) {
		data = nhca_cursor_at(&rx->at, off, &n);
		if (!data)
			return -EFAULT;
		n = min(n, len);
		if (nhca_rx_copy_page(data, n, it)) {
			n = PAGE_SIZE;
			continue;
		}
		err = nhca_iter_write(it, data, n);
		if (err)
			return err;
	}
	return 0;
}

int nhca_rx_copy(struct nhca_rx *rx, struct nhca_iter *it)
{
	NHCA_STUB(nhca_rx_copy, rx, it);
	/* skip the tail of the previous packet and the headers of this one */
	nhca_cursor_skip(&rx->at, rx->off);
	return nhca_rx_copy_at(rx, rx->off, rx->payload, it);
}

const u8 *nhca_rx_whole(struct nhca_rx *rx, u32 off, u32 len, u32 unit, u8 *buf, u32 *n)
{
	const u8 *data;

	NHCA_STUB(nhca_rx_whole, rx, off, len, unit, buf, n);
	data = nhca_cursor_at(&rx->at, rx->off + off, n);
	if (data && *n >= unit) {
		*n = round_down(min(*n, len), unit);
		return data;
	}
	*n = unit;
	return skb_copy_bits(rx->skb, rx->off + off, buf, unit) ? NULL : buf;
}

int nhca_rx_read(const struct nhca_rx *rx, void *to, u32 len)
{
	return skb_copy_bits(rx->skb, rx->off, to, len);
}

/*
 * Copy the next packets of the batch, which have one whole page each. Stop after a packet with
 * AckReq, and before the first packet that is not like the previous one, or whose page cannot be
 * copied as a whole. The values that all packets share are read once. Return: number of packets.
 */
static u32 nhca_rx_pages_alike(struct nhca_rx *rx, u32 max, struct nhca_iter *it)
{
	const u64 bth = get_unaligned((const u64 *)rx->alike.bth);
	const u8 flags = rx->alike.bth[8] & ~NHCA_RX_ACKREQ;
	const u32 len = rx->udp_len, end = rx->skb->len - len;
	u32 next = rx->udp_off + len, psn = rx->hdr.psn;
	bool ackreq = rx->hdr.ackreq;
	const u8 *p, *data;
	u32 n, avail;

	for (n = 0; n < max && !ackreq && next <= end; n++, next += len) {
		p = nhca_cursor_at(&rx->at, next, &avail);
		if (!p || avail < NHCA_BTH_LEN || get_unaligned((const u64 *)p) != bth ||
		    (p[8] & ~NHCA_RX_ACKREQ) != flags ||
		    get_unaligned_be24(p + NHCA_ALIKE_LEN) != nhca_psn_add(psn, 1))
			break;
		data = nhca_cursor_at(&rx->at, next + NHCA_BTH_LEN, &avail);
		if (!data || !nhca_rx_copy_page(data, avail, it))
			break;
		psn = nhca_psn_add(psn, 1);
		ackreq = p[8] & NHCA_RX_ACKREQ;
	}
	if (n) {
		rx->udp_off = next - len;
		rx->off = rx->udp_off + NHCA_BTH_LEN;
		rx->index += n;
		rx->hdr.psn = psn;
		rx->hdr.ackreq = ackreq;
	}
	return n;
}

/*
 * Copy the next packet of the batch, if it is like the previous packet, which must have no AckReq.
 * Return: false if the packet was not copied.
 */
static bool nhca_rx_one_alike(struct nhca_rx *rx, struct nhca_iter *it)
{
	u32 next = rx->udp_off + rx->udp_len, avail;
	const u8 *p;

	if (rx->hdr.ackreq || next + rx->udp_len > rx->skb->len)
		return false;
	p = nhca_cursor_at(&rx->at, next, &avail);
	if (!p || avail < NHCA_BTH_LEN || !nhca_rx_alike(rx, p) ||
	    nhca_rx_copy_at(rx, next + NHCA_BTH_LEN, rx->payload, it))
		return false;
	rx->udp_off = next;
	rx->index++;
	nhca_rx_step(rx, p);
	return true;
}

u32 nhca_rx_copy_alike(struct nhca_rx *rx, u32 max, struct nhca_iter *it)
{
	u32 n = 0;

	if (!rx->alike.set || !rx->alike.no_icrc)
		return 0;
	/* the tail of each of these packets is an acknowledgment, which the caller has to read */
	if (rx->hdr.caps & NHCA_CAP_ACKS)
		return 0;
	while (n < max && nhca_rx_one_alike(rx, it)) {
		/* the first copy has checked the key, so that nhca_iter_page() can return pages */
		if (!n++ && rx->payload == PAGE_SIZE)
			n += nhca_rx_pages_alike(rx, max - n, it);
	}
	return n;
}

u32 nhca_rx_run(const struct nhca_rx *rx, u32 max)
{
	const u32 len = rx->hdr.info->hdr_len;
	/* bytes of headers after the RXETH: equal in all packets of a transfer */
	const u32 more = len - NHCA_BTH_LEN - NHCA_RXETH_LEN;
	struct nhca_cursor at = rx->at;
	u32 n, next, avail;
	const u8 *p;

	/*
	 * the comparison needs contiguous headers of @rx, and packets with an ICRC must be
	 * verified one by one
	 */
	if (!rx->rxeth || !nhca_rx_no_icrc_ok(rx))
		return 0;
	for (n = 0; n < max; n++) {
		next = rx->udp_off + (n + 1) * rx->udp_len;
		if (next + rx->udp_len > rx->skb->len)
			break;
		nhca_cursor_skip(&at, next);
		p = nhca_cursor_at(&at, next, &avail);
		if (!p || avail < len ||
		    !nhca_rx_bth_alike(rx->rxeth - NHCA_BTH_LEN, p,
				       nhca_psn_add(rx->hdr.psn, n + 1)) ||
		    !nhca_rxeth_stepped(&rx->hdr.rx, n + 1, rx->rxeth, p + NHCA_BTH_LEN) ||
		    memcmp(rx->rxeth + NHCA_RXETH_LEN, p + len - more, more))
			break;
	}
	return n;
}

void nhca_rx_next(struct nhca_rx *rx)
{
	rx->udp_off += rx->udp_len;
	rx->off += rx->udp_len;
	rx->index++;
	rx->rxeth = NULL;
	rx->hdr.psn = nhca_psn_add(rx->hdr.psn, 1);
	rx->hdr.rx.offset += rx->hdr.rx.segment;
	rx->hdr.rx.pvo += rx->hdr.rx.segment;
}
