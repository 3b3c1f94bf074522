// SPDX-License-Identifier: GPL-2.0
/*
 * Copies of packets that must wait before they are executed.
 *
 * The buffer in which a packet arrived is not charged to a user.  The buffer may hold 64 KiB of
 * other packets, and a network driver may need the buffer again.  A packet that waits is therefore
 * copied to memory that is charged to its receiver, and the buffer can be freed.
 */
#include <linux/ip.h>
#include <linux/ipv6.h>

#include "../memory/memcg.h"
#include "net.h"

/* maximum payload in bytes that the copy has in its linear part; a longer payload is in pages */
#define NHCA_COPY_LINEAR	512

/* Return: an skb with room for @len bytes, and for @paged more in pages; NULL: no memory. */
static struct sk_buff *copy_alloc(u32 len, u32 paged, struct mem_cgroup *memcg, gfp_t gfp)
{
	struct mem_cgroup *old;
	struct sk_buff *skb;
	int err;

	if (!memcg)
		return alloc_skb_with_frags(len, paged, 0, &err, gfp);
	old = set_active_memcg(memcg);
	skb = alloc_skb_with_frags(len, paged, 0, &err, gfp | __GFP_ACCOUNT);
	set_active_memcg(old);
	return skb;
}

/* Copy the payload of @rx to offset @to of @skb.  Return: 0; -EFAULT: @rx has too few bytes. */
static int copy_payload(const struct nhca_rx *rx, struct sk_buff *skb, u32 to)
{
	struct nhca_cursor at = rx->at;
	u32 done, n;
	const u8 *data;

	for (done = 0; done < rx->payload; done += n) {
		data = nhca_cursor_at(&at, rx->off + done, &n);
		if (!data)
			return -EFAULT;
		n = min(n, rx->payload - done);
		if (skb_store_bits(skb, to + done, data, n))
			return -EFAULT;
	}
	return 0;
}

int nhca_rx_copy_deferred(const struct nhca_rx *rx, struct nhca_rx *copy, struct mem_cgroup *memcg,
			  gfp_t gfp)
{
	u32 paged = rx->payload > NHCA_COPY_LINEAR ? rx->payload : 0;
	struct sk_buff *skb;
	u32 ip_len = 0;

	/* ip.hdr is NULL for a frame to a raw packet QP, because its receiver needs no IP header */
	if (rx->ip.hdr)
		ip_len = rx->ip.v4 ? sizeof(struct iphdr) : sizeof(struct ipv6hdr);
	skb = copy_alloc(ip_len + rx->payload - paged, paged, memcg, gfp);
	if (!skb)
		return -ENOMEM;
	memcpy(skb_put(skb, ip_len + rx->payload - paged), rx->ip.hdr, ip_len);
	skb->data_len = paged;
	skb->len += paged;
	if (copy_payload(rx, skb, ip_len)) {
		kfree_skb(skb);
		return -EFAULT;
	}

	*copy = *rx;
	copy->skb = skb;
	copy->off = ip_len;
	/* the copy is alone in its skb, so no following packets are executed with it */
	copy->alike.set = false;
	copy->udp_off = 0;
	copy->udp_len = skb->len;
	copy->index = 0;
	copy->rxeth = NULL;
	if (rx->ip.hdr)
		copy->ip.hdr = skb->data;
	nhca_cursor_init(&copy->at, skb);
	return 0;
}
