// SPDX-License-Identifier: GPL-2.0
/*
 * Batches: several packets that enter the network stack as one skb.
 *
 * GSO adds a UDP checksum to every packet, so batches are sent only to peers that verify UDP
 * checksums (nhca_tx.sum). The netdev must support UDP GSO and checksums, or no fragments (no
 * NETIF_F_SG) at all. On a netdev without fragments each packet of the batch is a linear skb with a
 * copied payload (linear.c). For a netdev with fragments but without UDP GSO the stack would
 * segment a batch in software, which costs more than single packets.
 */
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/mm.h>
#include <linux/udp.h>

#include "net.h"
#include "burst.h"
#include "frags.h"
#include "linear.h"
#include "pieces.h"
#include "xmit.h"
#include "../memory/memory.h"
#include "../observe/inject.h"
#include "../observe/stub.h"
#include "../observe/trace.h"
#include "../wire/compat.h"
#include "../wire/icrc.h"

/*
 * Number of packets after which a zero-copy reference is not used for further batches. A work
 * request completes only when its reference is released. With this limit a request of a few packets
 * does not wait for many packets of later requests.
 */
#define NHCA_BURST_COVERED	16

/* Add @bytes, which are in fragments of @last, to the lengths of @last and of the batch's skb. */
static void nhca_burst_grow(struct nhca_burst *b, struct sk_buff *last, u32 bytes)
{
	b->skb->len += bytes;
	b->skb->data_len += bytes;
	b->skb->truesize += bytes;
	if (last == b->skb)
		return;
	last->len += bytes;
	last->data_len += bytes;
	last->truesize += bytes;
}

/* Add further fragments to @skb from now on. */
static void nhca_burst_behind(struct nhca_burst *b, struct sk_buff *skb)
{
	b->last = skb;
}

/*
 * Append an empty skb to the frag_list. Return: false if there is no memory, or if the netdev
 * supports no frag_list.
 */
static bool nhca_burst_more(struct nhca_burst *b)
{
	struct sk_buff *more;

	if (!b->lists)
		return false;
	more = nhca_frag_skb(0);
	if (!more)
		return false;
	if (b->last == b->skb)
		skb_shinfo(b->skb)->frag_list = more;
	else
		b->last->next = more;
	b->skb->truesize += more->truesize;
	nhca_burst_behind(b, more);
	return true;
}

/*
 * Make room for @n fragments, if necessary in another skb of the frag_list. @pages: some of the
 * fragments are consumer pages. If the netdev supports a frag_list, consumer pages are only in skbs
 * of this list (enum nhca_build_how). Return: false if there is no room.
 */
static inline bool nhca_burst_room(struct nhca_burst *b, u32 n, bool pages)
{
	if (pages && b->lists && b->last == b->skb)
		return nhca_burst_more(b);
	return skb_shinfo(b->last)->nr_frags + n <= MAX_SKB_FRAGS || nhca_burst_more(b);
}

/*
 * Return: true if @piece begins where the last fragment of @info ends, in the same page.
 * skb_can_coalesce() refuses skbs with a zero-copy reference. This function allows such skbs,
 * because the reference is valid for all fragments of the skb.
 */
static bool nhca_piece_follows(const struct skb_shared_info *info, const struct nhca_piece *piece)
{
	const skb_frag_t *last;

	if (!info->nr_frags)
		return false;
	last = &info->frags[info->nr_frags - 1];
	return skb_frag_page(last) == piece->page &&
	       skb_frag_off(last) + skb_frag_size(last) == piece->off;
}

/* Add a piece, for which there is room. The skb takes over the piece's reference on the page. */
static void nhca_burst_piece(struct nhca_burst *b, const struct nhca_piece *piece)
{
	struct skb_shared_info *info = skb_shinfo(b->last);

	/* the ICRC of one packet and the header of the next are often adjacent in memory */
	if (nhca_piece_follows(info, piece)) {
		skb_frag_size_add(&info->frags[info->nr_frags - 1], piece->len);
		put_page(piece->page);
	} else {
		skb_fill_page_desc(b->last, info->nr_frags, piece->page, piece->off, piece->len);
	}
}

/* Add the pieces of a packet to the batch. The skb takes over their references on the pages. */
static void nhca_burst_append(struct nhca_burst *b, const struct nhca_pieces *ps)
{
	u32 bytes = 0, i;

	for (i = 0; i < ps->n; i++) {
		nhca_burst_piece(b, &ps->p[i]);
		bytes += ps->p[i].len;
	}
	if (ps->zcopied)
		nhca_zcopy_attach(b->last, b->zcopy);
	nhca_burst_grow(b, b->last, bytes);
	b->len += bytes;
	b->zcopied += ps->zcopied;
}

int nhca_pieces_add(struct nhca_burst *b, struct nhca_tx *tx, struct nhca_iter *it)
{
	struct nhca_pieces ps __uninitialized;
	int err = nhca_pieces_gather(&ps, tx, it);

	if (err)
		return err;
	if (!nhca_burst_room(b, ps.n, ps.zcopied)) {
		nhca_pieces_drop(&ps);
		return b->packets ? -ENOSPC : -ENOMEM;
	}
	nhca_burst_append(b, &ps);
	tx->zcopied = ps.zcopied;
	return 0;
}

/*
 * Return: true if a batch for @dst costs less than single packets: the netdev supports UDP GSO and
 * checksums, or no fragments (linear.c). Packets through IPsec (dst->header_len) are sent alone.
 */
static bool nhca_burst_may(const struct nhca_av *av, const struct dst_entry *dst)
{
	netdev_features_t features = dst->dev->features;

	if (dst->header_len)
		return false;
	return !(features & NETIF_F_SG) ||
	       ((features & NETIF_F_GSO_UDP_L4) && nhca_can_sum(dst, av->v4));
}

static void nhca_burst_put_zcopy(struct nhca_burst *b)
{
	nhca_zcopy_put(b->zcopy);
	b->zcopy = NULL;
	b->covered = 0;
}

static int nhca_burst_begin(struct nhca_burst *b, struct nhca_tx *tx)
{
	struct dst_entry *dst;

	if (unlikely(!netif_running(tx->dev->netdev)))
		return -ENETDOWN;
	dst = nhca_route(nhca_net_ns(tx->dev->nn), tx->av, tx->sport);
	if (IS_ERR(dst)) {
		nhca_count(tx->who, NHCA_CNT_NO_ROUTE);
		return -EHOSTUNREACH;
	}
	if (!nhca_burst_may(tx->av, dst)) {
		dst_release(dst);
		b->alone = true;
		return -EOPNOTSUPP;
	}
	b->lists = nhca_takes_list(dst->dev);
	b->linear = !(dst->dev->features & NETIF_F_SG);
	if (b->linear)
		b->skb = nhca_linear_head(tx, dst, nhca_tx_bytes(tx));
	else
		b->skb = nhca_skb(tx->av, dst, tx->sport, 0, NHCA_BURST_PACKETS);
	if (!b->skb)
		return -ENOMEM;
	nhca_burst_behind(b, b->skb);
	/*
	 * Begin a new zero-copy reference if there is no frag_list: then consumer pages are in the
	 * batch's own fragments, and a reference can store the charge of only one such skb. Also
	 * begin a new reference if the old one has little room for other regions.
	 */
	if (!b->lists || nhca_zcopy_regions(b->zcopy) > NHCA_PAGEREF_REGIONS / 2)
		nhca_burst_put_zcopy(b);
	b->dev = tx->dev;
	b->who = tx->who;
	b->av = tx->av;
	b->flow = tx->flow;
	b->seg = nhca_tx_bytes(tx);
	b->len = 0;
	b->packets = 0;
	b->payload = 0;
	b->zcopied = 0;
	b->ended = false;
	return 0;
}

static bool nhca_burst_takes(const struct nhca_burst *b, u32 bytes)
{
	return !b->ended && bytes <= b->seg && b->packets < NHCA_BURST_PACKETS &&
	       b->len + bytes <= NHCA_PACKET_BYTES;
}

/* Free the skb of a batch that has no packet. */
static void nhca_burst_cancel(struct nhca_burst *b)
{
	kfree_skb(b->skb);
	b->skb = NULL;
	nhca_burst_put_zcopy(b);
}

/* Send the batch. Keep the zero-copy reference if further batches may use it. */
static void nhca_burst_send(struct nhca_burst *b)
{
	struct sk_buff *skb = b->skb;
	struct skb_shared_info *info;

	if (!skb)
		return;
	b->skb = NULL;
	if (b->packets > 1) {
		info = skb_shinfo(skb);
		info->gso_type = SKB_GSO_UDP_L4;
		info->gso_size = b->seg;
		info->gso_segs = b->packets;
	}
	/* the length of the whole batch; GSO later sets the length of each packet */
	udp_hdr(skb)->len = htons(sizeof(struct udphdr) + b->len);
	if (b->linear)
		nhca_linear_sums(skb);
	else
		nhca_sum_partial(skb, b->av);
	nhca_send(b->dev, b->who, b->av, b->flow, skb, b->packets, b->payload, b->zcopied);
	if (b->zcopy)
		b->covered += b->packets;
	if (!b->lists || b->covered >= NHCA_BURST_COVERED)
		nhca_burst_put_zcopy(b);
}

int nhca_burst_add(struct nhca_tx *tx)
{
	struct nhca_burst *b = tx->burst;
	u32 bytes = nhca_tx_bytes(tx);
	struct nhca_iter it __uninitialized;
	int err;

	if (b->alone || tx->payload > NHCA_BURST_PAYLOAD)
		return -EOPNOTSUPP;
	for (;;) {
		if (b->skb && !nhca_burst_takes(b, bytes))
			nhca_burst_send(b);
		if (!b->skb) {
			err = nhca_burst_begin(b, tx);
			if (err)
				return err;
		}

		if (tx->it)
			it = *tx->it;
		nhca_live_enter();
		err = b->linear ? nhca_linear_add(b, tx, &it) : nhca_pieces_add(b, tx, &it);
		err = nhca_live_exit_fault(err, &it, tx->ahead, tx->fault);

		if (!err)
			break;
		if (!b->packets)
			nhca_burst_cancel(b);
		/* -ENOSPC: the packet fits as the first one of a new batch */
		if (err != -ENOSPC || WARN_ON_ONCE(!b->skb))
			return err;
		nhca_burst_send(b);
	}
	b->packets++;
	b->payload += tx->payload;
	b->ended = bytes < b->seg;
	return 0;
}

/**
 * struct nhca_run - a run (nhca_burst_run()) that is being added to a batch
 * @between: mark of a packet (in place of the ICRC), and header of the next packet
 * @len:     bytes of @between
 * @skip:    bytes of @between to omit: the mark before the first header, because no packet of the
 *           run ends there
 * @p:       memory for the next copy of @between
 * @page:    page of @p; one page holds all copies for the run
 * @off:     offset of @p in @page
 * @mark:    offset in @page of the omitted mark, which becomes the mark of the last packet
 * @n:       packets that were added
 * @bytes:   bytes in fragments of the last skb that its length does not include yet
 */
struct nhca_run {
	u8 between[NHCA_ICRC_LEN + NHCA_HDRS_MAX];
	u32 len;
	u32 skip;
	u8 *p;
	struct page *page;
	u32 off;
	u32 mark;
	u32 n;
	u32 bytes;
};

/*
 * Prepare a run of at most @count packets. The function lowers @count to the number of copies of
 * nhca_run.between that fit a page.
 * Return: false if there is no memory.
 */
static bool nhca_run_begin(struct nhca_run *run, const struct nhca_tx *tx, u32 *count)
{
	run->len = NHCA_ICRC_LEN + tx->hdr->info->hdr_len;
	*count = min_t(u32, *count, PAGE_SIZE / run->len);
	run->p = nhca_frag_get(*count * run->len, &run->page, &run->off);
	if (!run->p)
		return false;
	memcpy(run->between, &tx->hdr->mark, NHCA_ICRC_LEN);
	nhca_hdr_encode(tx->hdr, run->between + NHCA_ICRC_LEN);
	run->mark = run->off;
	run->skip = NHCA_ICRC_LEN;
	run->n = 0;
	run->bytes = 0;
	return true;
}

/*
 * Make room for @n fragments, one of which is for the mark after the last packet. @pages: the
 * packets refer to consumer pages, so each skb that gets packets also gets the zero-copy reference.
 * Return: false if there is no room.
 */
static bool nhca_run_room(struct nhca_burst *b, struct nhca_run *run, u32 n, bool pages)
{
	struct sk_buff *last = b->last;

	if (!nhca_burst_room(b, n, pages))
		return false;
	if (run->n && b->last == last)
		return true;
	nhca_burst_grow(b, last, run->bytes);
	run->bytes = 0;
	if (pages)
		nhca_zcopy_attach(b->last, b->zcopy);
	return true;
}

/* Write the mark of the previous packet and the header of the next one. */
static __always_inline void nhca_run_between(struct nhca_run *run, struct nhca_hdr *hdr)
{
	const u64 *from = (const u64 *)run->between;
	u64 *to = (u64 *)run->p;

	/* mark and BTH have 16 bytes: two stores cost less than memcpy() of a variable length */
	if (run->len == 2 * sizeof(u64)) {
		put_unaligned(get_unaligned(from), to);
		put_unaligned(get_unaligned(from + 1), to + 1);
	} else {
		memcpy(run->p, run->between, run->len);
	}
	nhca_hdr_step(hdr, run->n, run->p + NHCA_ICRC_LEN);
}

/*
 * Add mark and header as fragment @i. In memory, they never directly follow the bytes of the
 * previous fragment, so they always are a separate fragment.
 */
static __always_inline void nhca_run_header(struct nhca_run *run, struct nhca_hdr *hdr,
					    struct skb_shared_info *info, u32 i)
{
	nhca_run_between(run, hdr);
	__skb_fill_page_desc_noacc(info, i, run->page, run->off + run->skip, run->len - run->skip);
	run->bytes += run->len - run->skip;
	run->skip = 0;
	run->p += run->len;
	run->off += run->len;
	run->n++;
}

/*
 * Add the next packet of a run. Return: false if the packet could not be added. In this case the
 * caller of nhca_burst_run() sends the packet by nhca_xmit(), which returns the error if there is
 * one.
 */
static bool nhca_run_packet(struct nhca_burst *b, struct nhca_run *run, struct nhca_tx *tx)
{
	struct nhca_pieces ps __uninitialized;
	struct skb_shared_info *info;
	u32 i;

	if (!nhca_pieces_run(&ps, tx, !run->n))
		return false;
	if (!nhca_run_room(b, run, ps.n + 2, !tx->copy)) {
		nhca_pieces_drop(&ps);
		return false;
	}
	info = skb_shinfo(b->last);
	nhca_run_header(run, tx->hdr, info, info->nr_frags++);
	for (i = 0; i < ps.n; i++)
		__skb_fill_page_desc_noacc(info, info->nr_frags++, ps.p[i].page, ps.p[i].off,
					   ps.p[i].len);
	run->bytes += tx->payload;
	return true;
}

/*
 * Add packets of a run, of one whole page each, as long as the last skb has room. The batch has a
 * zero-copy reference. Return: false if the run ends because the next page must not be in a
 * fragment.
 */
static bool nhca_run_pages(struct nhca_burst *b, struct nhca_run *run, struct nhca_tx *tx,
			   u32 count)
{
	struct skb_shared_info *info = skb_shinfo(b->last);
	u32 i = info->nr_frags, first = run->n;
	struct page *page;
	bool ok = true;

	/* two fragments for a packet, and one for the mark after the last packet */
	while (run->n < count && i + 3 <= MAX_SKB_FRAGS) {
		page = nhca_iter_page(tx->it);
		if (!page)
			break;
		ok = sendpage_ok(page);
		if (!ok)
			break;
		get_page(page);
		nhca_run_header(run, tx->hdr, info, i++);
		__skb_fill_page_desc_noacc(info, i++, page, 0, PAGE_SIZE);
	}
	info->nr_frags = i;
	run->bytes += (run->n - first) * PAGE_SIZE;
	return ok;
}

/*
 * Add up to @count packets of a run. Between two payloads are the mark of the first packet and the
 * header of the second packet.
 * Context: live section. Return: number of packets added.
 */
static u32 nhca_run_gather(struct nhca_burst *b, struct nhca_tx *tx, u32 count)
{
	bool pages = tx->payload == PAGE_SIZE && !tx->copy;
	struct nhca_run run __uninitialized;
	struct skb_shared_info *info;

	if (!nhca_run_begin(&run, tx, &count))
		return 0;
	while (run.n < count && nhca_run_packet(b, &run, tx))
		if (pages && !nhca_run_pages(b, &run, tx, count))
			break;
	if (!run.n) {
		put_page(run.page);
		return 0;
	}
	/*
	 * run.n headers and the mark after the last packet need a reference each; nhca_frag_get()
	 * has taken one of these references
	 */
	folio_ref_add(page_folio(run.page), run.n);
	info = skb_shinfo(b->last);
	__skb_fill_page_desc_noacc(info, info->nr_frags++, run.page, run.mark, NHCA_ICRC_LEN);
	nhca_burst_grow(b, b->last, run.bytes + NHCA_ICRC_LEN);
	b->len += run.n * nhca_tx_bytes(tx);
	if (!tx->copy)
		tx->zcopied = run.n * tx->payload;
	b->zcopied += tx->zcopied;
	return run.n;
}

/*
 * A packet that is shorter than the first one of the batch ends the batch. The first packet of a
 * WRITE has an RETH, so the next packets are shorter. Return: true if the batch should be sent
 * before the run, because the run and the last packet of the message fit into one further batch.
 * If the first packet of the run were added to this batch, it would end the batch, and the other
 * packets of the run would still need a further batch.
 */
static bool nhca_run_fits(const struct nhca_burst *b, u32 bytes, u32 count)
{
	return bytes < b->seg && count < min_t(u32, NHCA_BURST_PACKETS, NHCA_PACKET_BYTES / bytes);
}

u32 nhca_burst_run(struct nhca_tx *tx, u32 count)
{
	struct nhca_burst *b = tx->burst;
	u32 bytes, n;

	NHCA_STUB(nhca_burst_run, tx, count);
	tx->hdr->info = nhca_opinfo(tx->hdr->opcode);
	bytes = nhca_tx_bytes(tx);
	if (b->alone || tx->payload > NHCA_BURST_PAYLOAD || bytes > NHCA_PACKET_BYTES ||
	    nhca_inject_at(tx->dev, NHCA_AT_PACKETS))
		return 0;
	if (b->skb && (!nhca_burst_takes(b, bytes) || nhca_run_fits(b, bytes, count)))
		nhca_burst_send(b);
	if (!b->skb && nhca_burst_begin(b, tx))
		return 0;
	count = min3(count, NHCA_BURST_PACKETS - b->packets, (NHCA_PACKET_BYTES - b->len) / bytes);
	/* a shorter packet ends the batch, so only one packet fits */
	if (bytes < b->seg)
		count = 1;

	nhca_live_enter();
	n = b->linear ? nhca_linear_run(b, tx, count) : nhca_run_gather(b, tx, count);
	nhca_live_exit();

	if (!n && !b->packets)
		nhca_burst_cancel(b);
	b->packets += n;
	b->payload += n * tx->payload;
	b->ended = n && bytes < b->seg;
	if (n)
		trace_nhca_packet_sent(tx->who, tx->hdr, tx->hdr->psn, tx->hdr->qpn, n,
				       tx->payload);
	return n;
}

void nhca_burst_flush(struct nhca_burst *b)
{
	nhca_burst_send(b);
	nhca_burst_put_zcopy(b);
}
