// SPDX-License-Identifier: GPL-2.0
/*
 * Batches for netdevs that support no fragments (NETIF_F_SG).
 *
 * The stack would linearize an skb with fragments. For this the stack would allocate memory (most
 * kernels clear it), copy the packet, and compute the checksum. So this file builds each packet as
 * a linear skb. The memory of the skbs comes from chunks that are used in turn (frags.c), and one
 * loop copies the payload and computes the checksum. The packets after the first are in the
 * frag_list of the first, in the form that GRO gives to packets that are to be forwarded
 * (SKB_GSO_FRAGLIST): each packet has its own headers, and the length of its skb counts only the
 * bytes after the UDP header. The list passes IP output and the queueing discipline as one skb, and
 * the stack segments the list without a copy.
 */
#include <linux/skbuff.h>
#include <linux/udp.h>
#include <net/checksum.h>

#include "net.h"
#include "burst.h"
#include "frags.h"
#include "linear.h"
#include "xmit.h"
#include "../memory/memory.h"
#include "../wire/icrc.h"

struct sk_buff *nhca_linear_head(const struct nhca_tx *tx, struct dst_entry *dst, u32 bytes)
{
	struct sk_buff *skb = nhca_frag_skb(nhca_headroom(dst) + bytes);

	return nhca_headers(skb, tx->av, dst, tx->sport, NHCA_BURST_PACKETS);
}

/* Return: the skb for packet @index of the batch; NULL: no memory. */
static struct sk_buff *nhca_linear_skb(const struct nhca_burst *b, const struct nhca_tx *tx,
				       u32 index, u32 bytes)
{
	unsigned int headroom = nhca_headroom(skb_dst(b->skb));
	struct sk_buff *skb;

	if (!index)
		return b->skb;
	skb = nhca_frag_skb(headroom + bytes);
	if (!skb)
		return NULL;
	skb_reserve(skb, headroom);
	/* reserve no IPv4 identification: GSO counts from the identification of the first packet */
	nhca_push_headers(skb, tx->av, tx->sport, 0);
	skb_pull(skb, skb->len);
	return skb;
}

int nhca_linear_payload(u8 *p, const struct nhca_tx *tx, struct nhca_iter *it,
			struct nhca_sums *sums)
{
	__wsum sum;
	int err;

	if (sums->sum) {
		err = nhca_iter_read_sum(it, p, tx->payload, &sum);
		if (err)
			return err;
		sums->csum = csum_block_add(sums->csum, sum, sums->off);
		if (sums->icrc)
			sums->crc = nhca_icrc_more(sums->crc, p, tx->payload);
		sums->off += tx->payload;
	} else if (tx->payload) {
		err = nhca_iter_read(it, p, tx->payload);
		if (err)
			return err;
		nhca_sums_more(sums, p, tx->payload);
	}
	nhca_sums_tail(sums, tx->hdr, p + tx->payload);
	return 0;
}

/*
 * Write payload, pad and ICRC of a packet, and its UDP length and checksum.
 * @p: the encoded headers in @skb; the memory after them has room for payload, pad and ICRC
 * @crc: running ICRC over these headers, if the packet has an ICRC
 */
static int nhca_linear_fill(struct sk_buff *skb, const struct nhca_tx *tx, struct nhca_iter *it,
			    u8 *p, u32 crc)
{
	u32 hdr_len = tx->hdr->info->hdr_len;
	struct nhca_sums sums = {
		.crc = crc,
		.csum = csum_partial(p, hdr_len, 0),
		.off = hdr_len,
		.icrc = !(tx->hdr->caps & NHCA_CAP_NO_ICRC),
		.sum = true,
	};
	int err = nhca_linear_payload(p + hdr_len, tx, it, &sums);

	if (err)
		return err;
	udp_hdr(skb)->len = htons(sizeof(struct udphdr) + nhca_tx_bytes(tx));
	nhca_sum_sw(skb, tx->av, sums.csum);
	return 0;
}

/* Add a packet to the batch. The skb of the first packet is @b->skb. */
static void nhca_linear_append(struct nhca_burst *b, struct sk_buff *skb, u32 bytes)
{
	b->len += bytes;
	if (skb == b->skb)
		return;
	if (b->last == b->skb)
		skb_shinfo(b->skb)->frag_list = skb;
	else
		b->last->next = skb;
	b->last = skb;
	b->skb->len += bytes;
	b->skb->data_len += bytes;
	b->skb->truesize += skb->truesize;
}

/* Free the skb of a packet after an error, unless it is @b->skb, which the caller frees. */
static void nhca_linear_drop(const struct nhca_burst *b, struct sk_buff *skb)
{
	if (skb != b->skb)
		kfree_skb(skb);
}

int nhca_linear_add(struct nhca_burst *b, struct nhca_tx *tx, struct nhca_iter *it)
{
	u32 bytes = nhca_tx_bytes(tx);
	struct sk_buff *skb = nhca_linear_skb(b, tx, b->packets, bytes);
	u32 hdr_len, crc = 0;
	int err;
	u8 *p;

	if (!skb)
		return -ENOMEM;
	p = skb_put(skb, bytes);
	hdr_len = nhca_hdr_encode(tx->hdr, p);
	if (!(tx->hdr->caps & NHCA_CAP_NO_ICRC))
		crc = nhca_icrc_head(b->skb, p, hdr_len, bytes, b->packets);
	err = nhca_linear_fill(skb, tx, it, p, crc);
	if (err)
		nhca_linear_drop(b, skb);
	else
		nhca_linear_append(b, skb, bytes);
	return err;
}

u32 nhca_linear_run(struct nhca_burst *b, struct nhca_tx *tx, u32 count)
{
	u32 bytes = nhca_tx_bytes(tx);
	u8 hdr[NHCA_HDRS_MAX] __uninitialized;
	u32 hdr_len = nhca_hdr_encode(tx->hdr, hdr);
	struct sk_buff *skb;
	u32 n;
	u8 *p;

	for (n = 0; n < count; n++) {
		skb = nhca_linear_skb(b, tx, b->packets + n, bytes);
		if (!skb)
			break;
		p = skb_put_data(skb, hdr, hdr_len);
		nhca_hdr_step(tx->hdr, n, p);
		skb_put(skb, bytes - hdr_len);
		if (nhca_linear_fill(skb, tx, tx->it, p, 0)) {
			nhca_linear_drop(b, skb);
			break;
		}
		nhca_linear_append(b, skb, bytes);
	}
	return n;
}

void nhca_linear_sums(struct sk_buff *skb)
{
	if (skb_is_gso(skb))
		skb_shinfo(skb)->gso_type |= SKB_GSO_FRAGLIST;
	/* all checksums are complete */
	skb->ip_summed = CHECKSUM_UNNECESSARY;
}
