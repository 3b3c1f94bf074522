// SPDX-License-Identifier: GPL-2.0
/*
 * Packets in: from the UDP sockets, batch by batch, to the transport room.
 */
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/udp.h>
#include <net/dsfield.h>
#include <net/inet_ecn.h>
#include <net/udp.h>

#include "net.h"
#include "sockets.h"
#include "../memory/memory.h"
#include "../transport/qp.h"
#include "../wire/icrc.h"

static void nhca_rx_count(struct nhca_rx *rx, enum nhca_counter which)
{
	struct nhca_dev *dev = rx->dev;

	if (!dev)
		dev = rx->mcast ? nhca_net_dev(rx->nn, rx->iif) :
				  nhca_addr_find(rx->nn, &rx->daddr, rx->iif);
	if (dev)
		nhca_count(dev, which);
}

/* Return: false if no RoCE sender makes such an IP header. */
static bool nhca_rx_addresses(struct nhca_rx *rx)
{
	const struct sk_buff *skb = rx->skb;

	rx->iph = skb_network_header(skb);
	rx->iif = skb->skb_iif;
	if (ip_hdr(skb)->version == 4) {
		const struct iphdr *iph = ip_hdr(skb);

		/* the ICRC is not defined with options */
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

static void nhca_rx_packet(struct nhca_rx *rx)
{
	static const enum nhca_counter why[] = {
		[NHCA_DECODE_SHORT] = NHCA_CNT_RX_TOO_SHORT,
		[NHCA_DECODE_OPCODE] = NHCA_CNT_RX_BAD_OPCODE,
		[NHCA_DECODE_VERSION] = NHCA_CNT_RX_BAD_VERSION,
		[NHCA_DECODE_LENGTH] = NHCA_CNT_RX_BAD_LENGTH,
	};
	unsigned int avail = min_t(u32, rx->udp_len, NHCA_HDRS_MAX);
	u8 buf[NHCA_HDRS_MAX];
	enum nhca_decode_err err;
	const u8 *p;

	rx->dev = NULL;
	p = skb_header_pointer(rx->skb, rx->udp_off, avail, buf);
	if (!p)
		return;

	err = nhca_hdr_decode(&rx->hdr, p, avail, rx->udp_len);
	if (err) {
		nhca_rx_count(rx, why[err]);
		return;
	}
	rx->off = rx->udp_off + rx->hdr.info->hdr_len;
	rx->payload = nhca_hdr_payload(&rx->hdr, rx->udp_len);
	nhca_transport_rx(rx);
}

static void nhca_rx_batch(struct nhca_net *nn, struct sk_buff *skb)
{
	struct nhca_rx rx = { .nn = nn, .skb = skb };
	u32 seg = skb_is_gso(skb) ? skb_shinfo(skb)->gso_size : skb->len;
	u32 off;

	if (!nhca_rx_addresses(&rx)) {
		nhca_rx_count(&rx, NHCA_CNT_RX_BAD_LENGTH);
		return;
	}
	if (!skb->len)
		nhca_rx_count(&rx, NHCA_CNT_RX_TOO_SHORT);

	/* of QPs and addresses */
	rcu_read_lock();
	for (off = 0; off < skb->len; off += seg, rx.index++) {
		rx.udp_off = off;
		rx.udp_len = min(seg, skb->len - off);
		nhca_rx_packet(&rx);
	}
	rcu_read_unlock();
}

static void nhca_sk_drain(struct sock *sk, struct nhca_net *nn)
{
	struct sk_buff *skb;
	int off, err;

	for (;;) {
		off = 0;
		err = 0;
		skb = __skb_recv_udp(sk, MSG_DONTWAIT, &off, &err);
		if (!skb) {
			/* an ICMP error is reported once, before what is queued */
			if (err && err != -EAGAIN)
				continue;
			return;
		}
		/* nobody has looked at the UDP checksum of what came without one */
		if (likely(!udp_lib_checksum_complete(skb)))
			nhca_rx_batch(nn, skb);
		consume_skb(skb);
	}
}

/*
 * Called by the stack for each packet that it has queued, on any CPU.  One CPU
 * drains at a time, so that a flow's packets keep their order; others leave
 * their packets to it.
 */
void nhca_sk_data_ready(struct sock *sk)
{
	struct nhca_sock *ns = rcu_dereference_sk_user_data(sk);
	int seen;

	if (!ns || atomic_inc_return(&ns->ready) != 1)
		return;

	local_bh_disable();
	do {
		seen = atomic_read(&ns->ready);
		nhca_sk_drain(sk, ns->nn);
	} while (atomic_sub_return(seen, &ns->ready));
	local_bh_enable();
}

/* the packet's IP, UDP and base headers as they were on the wire, together */
static u32 nhca_rx_icrc_start(const struct nhca_rx *rx)
{
	unsigned int ip_len = rx->v4 ? sizeof(struct iphdr) : sizeof(struct ipv6hdr);
	u8 buf[sizeof(struct ipv6hdr) + sizeof(struct udphdr) + NHCA_BTH_LEN];
	struct udphdr *uh = (struct udphdr *)(buf + ip_len);

	memcpy(buf, rx->iph, ip_len);
	memcpy(uh, udp_hdr(rx->skb), sizeof(*uh));
	skb_copy_bits(rx->skb, rx->udp_off, uh + 1, NHCA_BTH_LEN);

	/* a batch has the headers of its first packet, and lengths of its own */
	if (skb_is_gso(rx->skb)) {
		uh->len = htons(sizeof(*uh) + rx->udp_len);
		if (rx->v4) {
			struct iphdr *iph = (struct iphdr *)buf;

			iph->tot_len = htons(ip_len + sizeof(*uh) + rx->udp_len);
			iph->id = htons(ntohs(iph->id) + rx->index);
		} else {
			((struct ipv6hdr *)buf)->payload_len = uh->len;
		}
	}
	return rx->v4 ? nhca_icrc_start4(buf) : nhca_icrc_start6(buf);
}

/*
 * The next run of bytes of a sequence that ends after @len: skb_seq_read() gives
 * whole buffers, also beyond the end that it was told.
 */
static unsigned int nhca_seq_read(struct skb_seq_state *st, unsigned int done,
				  unsigned int len, const u8 **data)
{
	if (done == len) {
		skb_abort_seq_read(st);
		return 0;
	}
	return min(skb_seq_read(done, data, st), len - done);
}

bool nhca_rx_icrc_ok(const struct nhca_rx *rx)
{
	u32 end = rx->udp_off + rx->udp_len - NHCA_ICRC_LEN;
	u32 begin = rx->udp_off + NHCA_BTH_LEN;
	struct skb_seq_state st;
	unsigned int done = 0;
	unsigned int n;
	const u8 *data;
	__le32 icrc;
	u32 crc;

	crc = nhca_rx_icrc_start(rx);
	skb_prepare_seq_read(rx->skb, begin, end, &st);
	while ((n = nhca_seq_read(&st, done, end - begin, &data)) != 0) {
		crc = nhca_icrc_more(crc, data, n);
		done += n;
	}
	if (skb_copy_bits(rx->skb, end, &icrc, sizeof(icrc)))
		return false;
	return icrc == nhca_icrc_finish(crc);
}

int nhca_rx_copy(const struct nhca_rx *rx, u32 from, u32 len, struct nhca_iter *it)
{
	struct skb_seq_state st;
	unsigned int done = 0;
	unsigned int n;
	const u8 *data;
	int err;

	if (!len)
		return 0;

	skb_prepare_seq_read(rx->skb, rx->off + from, rx->off + from + len, &st);
	while ((n = nhca_seq_read(&st, done, len, &data)) != 0) {
		err = nhca_iter_write(it, data, n);
		if (err) {
			skb_abort_seq_read(&st);
			return err;
		}
		done += n;
	}
	return done == len ? 0 : -EFAULT;
}
