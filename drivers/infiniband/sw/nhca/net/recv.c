// SPDX-License-Identifier: GPL-2.0
/* Received packets: from the UDP sockets, batch by batch, to the transport. */
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/moduleparam.h>
#include <linux/sizes.h>
#include <linux/udp.h>
#include <net/dsfield.h>
#include <net/inet_ecn.h>
#include <net/udp.h>

#include "net.h"
#include "faults.h"
#include "sockets.h"
#include "xmit.h"
#include "../memory/memory.h"
#include "../observe/trace.h"
#include "../rcxt/rcxt.h"
#include "../transport/qp.h"
#include "../wire/compat.h"
#include "../wire/icrc.h"
#include "../wire/psn.h"

/* AckReq bit in byte 8 of the BTH */
#define NHCA_RX_ACKREQ	0x80

static bool nhca_insist_icrc;
module_param_named(insist_icrc, nhca_insist_icrc, bool, 0644);
MODULE_PARM_DESC(insist_icrc, "Send and require an ICRC also between two nhca devices (default N)");

void nhca_rx_refused(struct nhca_dev *dev, const struct nhca_hdr *h, enum nhca_counter why)
{
	nhca_dev_count(dev, why);
	trace_nhca_packet_refused(&dev->ibdev, h, why);
}

/* Like nhca_rx_refused(), but looks the device up by destination address. @h may be NULL. */
static void nhca_rx_refuse(struct nhca_rx *rx, const struct nhca_hdr *h, enum nhca_counter why)
{
	struct nhca_dev *dev = rx->dev;

	if (!dev)
		dev = rx->mcast ? nhca_net_dev(rx->nn, rx->iif) :
				  nhca_addr_find(rx->nn, &rx->daddr, rx->iif);
	if (dev)
		nhca_rx_refused(dev, h, why);
}

/* Return: false if no RoCE sender builds such an IP header. */
static bool nhca_rx_addresses(struct nhca_rx *rx)
{
	const struct sk_buff *skb = rx->skb;

	rx->iph = skb_network_header(skb);
	rx->iif = skb->skb_iif;
	if (ip_hdr(skb)->version == 4) {
		const struct iphdr *iph = ip_hdr(skb);

		/* the ICRC is not defined for a header with options */
		if (iph->ihl != sizeof(*iph) / 4)
			return false;
		rx->v4 = true;
		rx->mcast = ipv4_is_multicast(iph->daddr);
		rx->ce = (iph->tos & INET_ECN_MASK) == INET_ECN_CE;
		ipv6_addr_set_v4mapped(iph->saddr, &rx->saddr);
		ipv6_addr_set_v4mapped(iph->daddr, &rx->daddr);
	} else {
		const struct ipv6hdr *ip6h = ipv6_hdr(skb);

		if (ip6h->nexthdr != IPPROTO_UDP)
			return false;
		rx->v4 = false;
		rx->mcast = ipv6_addr_is_multicast(&ip6h->daddr);
		rx->ce = (ipv6_get_dsfield(ip6h) & INET_ECN_MASK) == INET_ECN_CE;
		rx->saddr = ip6h->saddr;
		rx->daddr = ip6h->daddr;
	}
	return true;
}

/*
 * Return: the packet's headers, in the skb if they are contiguous, otherwise copied to @buf. In a
 * batch that was built from fragments the headers are contiguous, but not with the payload.
 * @avail: number of bytes wanted; on return the number of bytes available
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

/* Return: true if the BTH at @p continues the previous packet. The caller compares the lengths. */
static bool nhca_rx_alike(const struct nhca_rx *rx, const u8 *p)
{
	return nhca_rx_bth_alike(rx->alike.bth, p, nhca_psn_add(rx->hdr.psn, 1));
}

/* Set @rx to the packet at @udp_off, whose BTH @p has passed nhca_rx_alike(). */
static void nhca_rx_step(struct nhca_rx *rx, const u8 *p)
{
	rx->hdr.psn = nhca_psn_add(rx->hdr.psn, 1);
	rx->hdr.ackreq = p[8] & NHCA_RX_ACKREQ;
	rx->off = rx->udp_off + NHCA_BTH_LEN;
}

static void nhca_rx_packet(struct nhca_rx *rx, u32 udp_len)
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
		return;
	if (rx->alike.set && udp_len == rx->alike.udp_len && avail >= NHCA_BTH_LEN &&
	    nhca_rx_alike(rx, p)) {
		nhca_rx_step(rx, p);
		nhca_transport_again(rx);
		return;
	}

	rx->dev = NULL;
	rx->alike.set = false;
	rx->udp_len = udp_len;
	err = nhca_hdr_decode(&rx->hdr, p, avail, rx->udp_len);
	if (err) {
		nhca_rx_refuse(rx, err == NHCA_DECODE_LENGTH ? &rx->hdr : NULL, why[err]);
		return;
	}
	rx->off = rx->udp_off + rx->hdr.info->hdr_len;
	rx->payload = nhca_hdr_payload(&rx->hdr, rx->udp_len);
	/* the next packet is compared with this one */
	if (rx->hdr.info->hdr_len == NHCA_BTH_LEN) {
		rx->alike.set = true;
		rx->alike.passed = false;
		rx->alike.udp_len = udp_len;
		memcpy(rx->alike.bth, p, sizeof(rx->alike.bth));
	}
	if (rx->hdr.info->flags & NHCA_OPF_RXETH) {
		/* release the lock of a QP: the packet is for a channel */
		nhca_transport_rx_end(rx);
		rx->rxeth = p != buf ? p + NHCA_BTH_LEN : NULL;
		nhca_channel_rx(rx);
	} else {
		nhca_transport_rx(rx);
	}
}

/*
 * Copy the packet's IP and UDP headers to @buf, as they were on the wire.
 * @id: how much the packet's IPv4 identification exceeds that of the first packet of the batch
 * Return: their length in bytes.
 */
static unsigned int nhca_rx_outer(const struct nhca_rx *rx, u16 id, u8 *buf)
{
	unsigned int ip_len = rx->v4 ? sizeof(struct iphdr) : sizeof(struct ipv6hdr);
	struct udphdr *uh = (struct udphdr *)(buf + ip_len);

	memcpy(buf, rx->iph, ip_len);
	memcpy(uh, udp_hdr(rx->skb), sizeof(*uh));

	/* A batch has the headers of its first packet, but its own lengths. */
	if (skb_is_gso(rx->skb)) {
		uh->len = htons(sizeof(*uh) + rx->udp_len);
		if (rx->v4) {
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
	return rx->v4 ? nhca_icrc_start4(buf) : nhca_icrc_start6(buf);
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

/*
 * Copy the packet of @len bytes at @udp_off to an skb of its own, with the headers as they were on
 * the wire. The data begins after the UDP header, as in skbs from the sockets. Return: the skb, or
 * NULL without memory.
 */
static struct sk_buff *nhca_rx_copy_of(struct nhca_rx *rx, u32 len)
{
	unsigned int ip_len = rx->v4 ? sizeof(struct iphdr) : sizeof(struct ipv6hdr);
	struct sk_buff *skb;
	u16 id = 0;

	skb = alloc_skb(ip_len + sizeof(struct udphdr) + len, GFP_ATOMIC | __GFP_NOWARN);
	if (!skb)
		return NULL;
	rx->udp_len = len;
	if (rx->v4 && skb_is_gso(rx->skb) && !nhca_rx_icrc_ok(rx, 0))
		id = rx->index;
	skb_reset_network_header(skb);
	skb_set_transport_header(skb, ip_len);
	nhca_rx_outer(rx, id, skb_put(skb, ip_len + sizeof(struct udphdr)));
	skb_pull(skb, ip_len + sizeof(struct udphdr));
	if (skb_copy_bits(rx->skb, rx->udp_off, skb_put(skb, len), len)) {
		kfree_skb(skb);
		return NULL;
	}
	skb->skb_iif = rx->iif;
	skb->ip_summed = rx->skb->ip_summed;
	return skb;
}

/* As nhca_rx_packet(), for a packet that fault injection has not examined yet. */
static void nhca_rx_packet_faults(struct nhca_rx *rx, u32 len)
{
	struct sk_buff_head later;
	struct nhca_fault_hit s = {};
	struct nhca_dev *dev;
	struct sk_buff *skb;
	u8 bth[NHCA_BTH_LEN];
	u32 qpn;

	dev = rx->mcast ? nhca_net_dev(rx->nn, rx->iif) :
			  nhca_addr_find(rx->nn, &rx->daddr, rx->iif);
	if (!dev || !nhca_inject_at(dev, NHCA_AT_PACKETS) || len <= NHCA_BTH_LEN ||
	    skb_copy_bits(rx->skb, rx->udp_off, bth, NHCA_BTH_LEN)) {
		nhca_rx_packet(rx, len);
		return;
	}
	qpn = get_unaligned_be24(bth + 5);
	__skb_queue_head_init(&later);
	/* the checks of the previous packet do not apply to this one */
	rx->alike.set = false;
	nhca_faults_rx(dev, qpn, bth[0], &s);
	if (s.kind == NHCA_FAULT_DROP)
		return;
	if (s.kind != NHCA_FAULT_NONE) {
		skb = nhca_rx_copy_of(rx, len);
		if (skb)
			nhca_faults_rx_copy(dev, qpn, &s, skb, &later);
	}
	if (s.kind == NHCA_FAULT_NONE || s.kind == NHCA_FAULT_DUPLICATE) {
		nhca_rx_packet(rx, len);
		nhca_faults_rx_passed(dev, qpn, &later);
	}
	if (skb_queue_empty(&later))
		return;
	/* the copies are batches of their own, so no lock may stay held */
	nhca_transport_rx_end(rx);
	while ((skb = __skb_dequeue(&later))) {
		nhca_rx_late(rx->nn, skb);
		consume_skb(skb);
	}
}

bool nhca_rx_batch(struct nhca_net *nn, struct sk_buff *skb, bool late, struct nhca_rx_pos *pos,
		   int *budget)
{
	struct nhca_rx rx = { .nn = nn, .skb = skb, .udp_off = pos->off, .index = pos->index };
	u32 seg = skb_is_gso(skb) ? skb_shinfo(skb)->gso_size : skb->len;

	if (!nhca_rx_addresses(&rx)) {
		nhca_rx_refuse(&rx, NULL, NHCA_CNT_RX_BAD_LENGTH);
		return true;
	}
	if (!skb->len)
		nhca_rx_refuse(&rx, NULL, NHCA_CNT_RX_TOO_SHORT);

	nhca_cursor_init(&rx.at, skb);
	/* protects QPs and addresses */
	rcu_read_lock();
	for (; rx.udp_off < skb->len; rx.udp_off += seg, rx.index++) {
		/* a copy of a multicast packet costs as much as a packet, and a batch has many */
		if (unlikely(rx.copies) && (int)rx.copies >= *budget)
			break;
		if (static_branch_unlikely(&nhca_inject_key) && !late)
			nhca_rx_packet_faults(&rx, min(seg, skb->len - rx.udp_off));
		else
			nhca_rx_packet(&rx, min(seg, skb->len - rx.udp_off));
	}
	nhca_transport_rx_end(&rx);
	rcu_read_unlock();
	pos->off = rx.udp_off;
	pos->index = rx.index;
	*budget -= rx.copies;
	return rx.udp_off >= skb->len;
}

void nhca_rx_late(struct nhca_net *nn, struct sk_buff *skb)
{
	struct nhca_rx_pos pos = {};
	int budget = INT_MAX;

	nhca_rx_batch(nn, skb, true, &pos, &budget);
}

/*
 * Return: true if both queues of the socket are empty. The check takes no lock: a CPU that adds a
 * packet concurrently calls nhca_sk_data_ready() afterwards.
 */
static bool nhca_sk_empty(const struct sock *sk)
{
	return skb_queue_empty_lockless(&udp_sk(sk)->reader_queue) &&
	       skb_queue_empty_lockless(&sk->sk_receive_queue);
}

/*
 * Return: the cost of a batch: its number of packets, or its length in units of 4 KiB if that is
 * more, because packets of channels may be long.
 */
static int nhca_rx_cost(const struct sk_buff *skb)
{
	u32 packets = 1;

	/* some devices do not set gso_segs */
	if (skb_is_gso(skb))
		packets = DIV_ROUND_UP(skb->len, skb_shinfo(skb)->gso_size);
	return max3(packets, skb->len / SZ_4K, 1U);
}

/* Receive @ns->part, as far as the budget lasts. */
static void nhca_sk_batch(struct nhca_sock *ns, int *budget)
{
	struct sk_buff *skb = ns->part;

	if (likely(nhca_rx_batch(ns->nn, skb, false, &ns->pos, budget))) {
		ns->part = NULL;
		consume_skb(skb);
	}
}

/*
 * Process batches until the queue is empty or the budget is used up.
 * Return: false if the budget is used up and packets may be left.
 */
static bool nhca_sk_drain(struct nhca_sock *ns, int *budget)
{
	struct sock *sk = ns->sock->sk;
	struct sk_buff *skb;
	int off, err;

	while (ns->part || !nhca_sk_empty(sk) || sk->sk_err) {
		if (*budget <= 0)
			return false;
		if (unlikely(ns->part)) {
			nhca_sk_batch(ns, budget);
			continue;
		}
		off = 0;
		err = 0;
		skb = __skb_recv_udp(sk, MSG_DONTWAIT, &off, &err);
		if (!skb) {
			/* an ICMP error is reported once, before the queued packets */
			if (err && err != -EAGAIN) {
				--*budget;
				continue;
			}
			return true;
		}
		*budget -= nhca_rx_cost(skb);
		/* verify the UDP checksum if neither the netdev nor the stack has done so */
		if (unlikely(udp_lib_checksum_complete(skb))) {
			consume_skb(skb);
			continue;
		}
		ns->part = skb;
		ns->pos = (struct nhca_rx_pos) {};
		nhca_sk_batch(ns, budget);
	}
	return true;
}

/*
 * Process the packets of a socket. The CPU that raised nhca_sock.ready from 0 calls this. If the
 * budget is used up, ready stays above 0, so that only nhca_sock.rest continues.
 */
static void nhca_sk_take(struct nhca_sock *ns)
{
	int budget = NHCA_RX_BUDGET;
	int seen;

	do {
		seen = atomic_read(&ns->ready);
		if (!nhca_sk_drain(ns, &budget)) {
			nhca_bh_queue(&ns->rest);
			return;
		}
	} while (atomic_sub_return(seen, &ns->ready));
}

void nhca_sk_rest(struct nhca_bh *bh)
{
	nhca_sk_take(container_of(bh, struct nhca_sock, rest));
}

/*
 * The stack calls this on any CPU after it has queued a packet. Only one CPU processes packets at a
 * time, so packets of a flow keep their order. Other CPUs leave their packets to it.
 */
void nhca_sk_data_ready(struct sock *sk)
{
	struct nhca_sock *ns = rcu_dereference_sk_user_data(sk);

	if (!ns || atomic_inc_return(&ns->ready) != 1)
		return;

	local_bh_disable();
	nhca_sk_take(ns);
	local_bh_enable();
}

/* Return: true if the packet has a UDP checksum that is valid, or comes from this host. */
static bool nhca_rx_sum_ok(const struct nhca_rx *rx)
{
	/*
	 * The stack verified a checksum when it dequeued the packet. A packet of this host only has
	 * the sum of its addresses as checksum, which is never 0. Its bytes have not left memory.
	 */
	return udp_hdr(rx->skb)->check;
}

bool nhca_insists_icrc(void)
{
	return READ_ONCE(nhca_insist_icrc);
}

/* Return: true if the packet may be accepted without an ICRC. */
static bool nhca_rx_is_bare(const struct nhca_rx *rx)
{
	const u8 bits = NHCA_CAP_NO_ICRC | NHCA_CAP_FOREIGN;

	return (rx->hdr.caps & bits) == NHCA_CAP_NO_ICRC && !nhca_insists_icrc() &&
	       nhca_rx_sum_ok(rx);
}

/*
 * The ICRC does not cover NHCA_CAP_NO_ICRC. A network that sets this bit in a packet has therefore
 * not invalidated the packet, and its ICRC is accepted too.
 */
bool nhca_rx_intact(struct nhca_rx *rx, bool bare)
{
	rx->alike.bare = bare && nhca_rx_is_bare(rx);
	if (rx->alike.bare)
		return true;
	if (nhca_rx_icrc_ok(rx, rx->index))
		return true;
	/*
	 * GRO also joins packets with the same identification (RFC 6864: with DF it has no meaning)
	 */
	return rx->v4 && rx->index && nhca_rx_icrc_ok(rx, 0);
}

/* Read the four bytes of the packet in the place of the ICRC. Return: 0 or -EFAULT. */
static int nhca_rx_tail(const struct nhca_rx *rx, void *tail)
{
	return skb_copy_bits(rx->skb, rx->udp_off + rx->udp_len - NHCA_ICRC_LEN, tail,
			     NHCA_ICRC_LEN);
}

bool nhca_rx_acks(const struct nhca_rx *rx, u32 *psn)
{
	__be32 tail;

	if (!(rx->hdr.caps & NHCA_CAP_ACKS) || !rx->alike.bare || nhca_rx_tail(rx, &tail))
		return false;
	*psn = be32_to_cpu(tail) & NHCA_PSN_MASK;
	return true;
}

bool nhca_rx_mark(const struct nhca_rx *rx, __le32 *mark)
{
	u8 summed = rx->skb->ip_summed;

	/* a NIC has verified the checksum, so the packet has been on a wire */
	if (summed == CHECKSUM_UNNECESSARY || summed == CHECKSUM_COMPLETE)
		return false;
	return rx->alike.bare && !(rx->hdr.caps & NHCA_CAP_ACKS) && !nhca_rx_tail(rx, mark);
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
	if (rx->src)
		return nhca_iter_copy(it, rx->src, rx->payload, &rx->src_err);
	/* skip the tail of the previous packet and the headers of this one */
	nhca_cursor_skip(&rx->at, rx->off);
	return nhca_rx_copy_at(rx, rx->off, rx->payload, it);
}

int nhca_rx_read(const struct nhca_rx *rx, void *to, u32 len)
{
	return skb_copy_bits(rx->skb, rx->off, to, len);
}

u32 nhca_rx_copy_alike(struct nhca_rx *rx, u32 max, struct nhca_iter *it)
{
	bool page = rx->payload == PAGE_SIZE;
	u32 n, next, avail;
	const u8 *p, *data;

	if (!rx->alike.set || !rx->alike.bare)
		return 0;
	for (n = 0; n < max && !rx->hdr.ackreq; n++) {
		next = rx->udp_off + rx->udp_len;
		if (next + rx->udp_len > rx->skb->len)
			break;
		p = nhca_cursor_at(&rx->at, next, &avail);
		if (!p || avail < NHCA_BTH_LEN || !nhca_rx_alike(rx, p))
			break;
		/*
		 * Copy a whole page here. nhca_rx_copy_at() would do it too, for one more call per
		 * packet.
		 */
		data = page ? nhca_cursor_at(&rx->at, next + NHCA_BTH_LEN, &avail) : NULL;
		if (!(data && nhca_rx_copy_page(data, avail, it)) &&
		    nhca_rx_copy_at(rx, next + NHCA_BTH_LEN, rx->payload, it))
			break;
		rx->udp_off = next;
		rx->index++;
		nhca_rx_step(rx, p);
	}
	return n;
}

u32 nhca_rx_run(const struct nhca_rx *rx, u32 max)
{
	const u32 len = NHCA_BTH_LEN + NHCA_RXETH_LEN;
	struct nhca_cursor at = rx->at;
	u32 n, next, avail;
	const u8 *p;

	/* packets with an ICRC must be verified one by one */
	if (!rx->rxeth || !nhca_rx_is_bare(rx))
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
		    !nhca_rxeth_stepped(&rx->hdr.rx, n + 1, rx->rxeth, p + NHCA_BTH_LEN))
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
