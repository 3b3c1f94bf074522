// SPDX-License-Identifier: GPL-2.0
/*
 * Batches: several packets that enter the network stack as one skb.
 *
 * A batch needs a peer that verifies UDP checksums, because GSO adds one to every packet. The
 * netdev must support UDP GSO, or no fragments (NETIF_F_SG) at all: then each packet of the batch
 * is a linear skb with a copied payload (linear.c). With fragments but without UDP GSO the stack
 * would segment a batch in software, which costs more than single packets.
 */
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/mm.h>
#include <linux/udp.h>

#include "net.h"
#include "burst.h"
#include "frags.h"
#include "linear.h"
#include "xmit.h"
#include "../memory/memory.h"
#include "../observe/inject.h"
#include "../observe/stub.h"
#include "../observe/trace.h"
#include "../wire/compat.h"
#include "../wire/icrc.h"

/**
 * struct nhca_pieces - a packet that is not yet part of the batch
 * @p:    pieces, in the order of the packet
 * @n:    number of pieces
 * @crc:  running ICRC over the pieces
 * @zcopied: payload bytes that refer to pages of a consumer
 * @icrc: the packet has an ICRC
 */
struct nhca_pieces {
	struct nhca_piece p[NHCA_PIECES];
	u32 n;
	u32 crc;
	u32 zcopied;
	bool icrc;
};

/* Return: the next piece of @ps, with @len bytes, at most a page; or NULL. */
static void *nhca_piece_new(struct nhca_pieces *ps, u32 len)
{
	struct nhca_piece *piece = &ps->p[ps->n];
	void *p;

	if (WARN_ON_ONCE(ps->n == NHCA_PIECES))
		return NULL;
	p = nhca_frag_get(len, &piece->page, &piece->off);
	if (p) {
		piece->len = len;
		ps->n++;
	}
	return p;
}

static void nhca_pieces_drop(struct nhca_pieces *ps)
{
	while (ps->n)
		put_page(ps->p[--ps->n].page);
}

static void nhca_pieces_crc(struct nhca_pieces *ps, const void *p, u32 len)
{
	if (ps->icrc)
		ps->crc = nhca_icrc_more(ps->crc, p, len);
}

/* Write BTH and extended headers to @p, and begin the ICRC if the packet has one. */
static void nhca_piece_header(struct nhca_pieces *ps, const struct nhca_tx *tx, u8 *p)
{
	const struct nhca_burst *b = tx->burst;
	u32 len = nhca_hdr_encode(tx->hdr, p);

	if (ps->icrc)
		ps->crc = nhca_icrc_head(b->skb, p, len, nhca_tx_bytes(tx), b->packets);
}

/*
 * Packets after which a zero-copy reference is not used for further batches. A work request
 * completes when its reference is released, so a request of a few packets does not wait for many
 * packets of later requests.
 */
#define NHCA_BURST_COVERED	16

/* Add the bytes of @seg, the last one of @it, by page reference. Return: false: copy them. */
static bool nhca_piece_pages(struct nhca_burst *b, struct nhca_pieces *ps, const struct nhca_tx *tx,
			     const struct nhca_iter *it, const struct nhca_seg *seg)
{
	u32 n;

	/* for a reference that begins now */
	if (!b->zcopy)
		b->covered = 0;
	n = nhca_zcopy_pages(&b->zcopy, tx->flow, it, seg, &ps->p[ps->n]);
	if (!n)
		return false;
	ps->n += n;
	ps->zcopied += seg->len;
	return true;
}

/* Copy @len bytes of payload. Return: 0, -ENOMEM, or as nhca_iter_read(). */
static int nhca_pieces_copy(struct nhca_pieces *ps, struct nhca_iter *it, u32 len)
{
	void *p;
	u32 n;
	int err;

	for (; len; len -= n) {
		n = min_t(u32, len, PAGE_SIZE);
		p = nhca_piece_new(ps, n);
		if (!p)
			return -ENOMEM;
		err = nhca_iter_read(it, p, n);
		if (err)
			return err;
		nhca_pieces_crc(ps, p, n);
	}
	return 0;
}

/*
 * Add the payload by page reference as long as the remaining pieces suffice for it. Pieces are kept
 * for the bytes that must be copied, and one for the tail. Return: bytes of payload that are left
 * to copy, or a negative error.
 */
static int nhca_pieces_reference(struct nhca_pieces *ps, struct nhca_tx *tx, struct nhca_iter *it)
{
	struct nhca_burst *b = tx->burst;
	u32 left = tx->payload;
	struct nhca_iter before __uninitialized;
	struct nhca_seg seg __uninitialized;
	bool tight;
	void *p;
	int err;

	while (left) {
		/*
		 * up to PAGE_SIZE contiguous bytes may cross a page boundary, and then take two
		 * pieces
		 */
		tight = !nhca_frags_fit(ps->n, 2, left, NHCA_PIECES);
		if (tight)
			before = *it;
		err = nhca_iter_next(it, min_t(u32, left, PAGE_SIZE), &seg);
		if (err)
			return err;
		if (tight && !nhca_frags_fit(ps->n, nhca_pages_of(seg.addr, seg.len),
					     left - seg.len, NHCA_PIECES)) {
			*it = before;
			return left;
		}
		left -= seg.len;
		nhca_pieces_crc(ps, seg.addr, seg.len);
		if (nhca_piece_pages(b, ps, tx, it, &seg))
			continue;
		p = nhca_piece_new(ps, seg.len);
		if (!p)
			return -ENOMEM;
		memcpy(p, seg.addr, seg.len);
	}
	return left;
}

/*
 * Collect the pieces of a packet. Context: live section. Return: 0, or an error as nhca_xmit();
 * then @ps has no pieces.
 */
static int nhca_pieces_gather(struct nhca_pieces *ps, struct nhca_tx *tx, struct nhca_iter *it)
{
	u32 tail_len = tx->hdr->pad + NHCA_ICRC_LEN;
	u32 hdr_len = tx->hdr->info->hdr_len;
	int left = tx->payload;
	int err = -ENOMEM;
	u8 *p;

	ps->n = 0;
	ps->zcopied = 0;
	ps->icrc = !(tx->hdr->caps & NHCA_CAP_NO_ICRC);

	if (tx->payload <= NHCA_COPY_BREAK) {
		p = nhca_piece_new(ps, hdr_len + tx->payload + tail_len);
		if (!p)
			return -ENOMEM;
		nhca_piece_header(ps, tx, p);
		err = left ? nhca_iter_read(it, p + hdr_len, left) : 0;
		if (err)
			goto drop;
		nhca_pieces_crc(ps, p + hdr_len, left);
		nhca_tail_encode(tx->hdr, ps->crc, p + hdr_len + left);
		return 0;
	}

	p = nhca_piece_new(ps, hdr_len);
	if (!p)
		return -ENOMEM;
	nhca_piece_header(ps, tx, p);
	if (!tx->copy) {
		left = nhca_pieces_reference(ps, tx, it);
		if (left < 0) {
			err = left;
			goto drop;
		}
	}
	err = nhca_pieces_copy(ps, it, left);
	if (err)
		goto drop;
	p = nhca_piece_new(ps, tail_len);
	if (!p) {
		err = -ENOMEM;
		goto drop;
	}
	nhca_tail_encode(tx->hdr, ps->crc, p);
	return 0;

drop:
	nhca_pieces_drop(ps);
	return err;
}

/* Account @bytes that were added to @last, which is or was the last skb of the batch. */
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

/* Append an empty skb to the frag_list. Return: false if there is no memory, or no frag_list. */
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
 * Return: true if there is room for @n fragments. @pages: some of them are consumer pages, which
 * only skbs of the frag_list have if the netdev supports one (enum nhca_build_how).
 */
static inline bool nhca_burst_room(struct nhca_burst *b, u32 n, bool pages)
{
	if (pages && b->lists && b->last == b->skb)
		return nhca_burst_more(b);
	return skb_shinfo(b->last)->nr_frags + n <= MAX_SKB_FRAGS || nhca_burst_more(b);
}

/*
 * Return: true if @piece follows the last fragment of @info in the same page. skb_can_coalesce()
 * refuses skbs with a zero-copy reference. Here such an skb is allowed, because the reference is
 * valid for all fragments of the skb.
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

/* Add a piece, for which there is room, with its page reference. The caller updates the lengths. */
static void nhca_burst_piece(struct nhca_burst *b, const struct nhca_piece *piece)
{
	struct skb_shared_info *info = skb_shinfo(b->last);

	/* the tail of one packet and the header of the next are often adjacent */
	if (nhca_piece_follows(info, piece)) {
		skb_frag_size_add(&info->frags[info->nr_frags - 1], piece->len);
		put_page(piece->page);
	} else {
		skb_fill_page_desc(b->last, info->nr_frags, piece->page, piece->off, piece->len);
	}
}

/* Add the pieces of a packet to the batch. The skb takes over their page references. */
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

/* Return: true if the stack can take batches for @dst without segmenting them in software. */
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
	/* without a frag_list the reference also stores the charge of this skb, and of no other */
	if (!b->lists)
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

/* Free the skb of the batch, which has no packet. */
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
		nhca_linear_seal(skb);
	else
		nhca_sum_below(skb, b->av);
	nhca_send(b->dev, b->who, b->av, b->flow, skb, b->packets, b->payload, b->zcopied);
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

/*
 * Collect the payload of one packet of a run by page reference. nhca_iter_zcopy() records for the
 * first page that the region is sent by reference. The next ones need only nhca_iter_page(), at a
 * fifth of the cost.
 * Return: false if a part cannot be sent by reference; then @ps is empty.
 */
static bool nhca_run_payload(struct nhca_burst *b, struct nhca_pieces *ps,
			     const struct nhca_tx *tx, bool first)
{
	struct nhca_iter *it = tx->it;
	u32 left = tx->payload;
	struct nhca_seg seg __uninitialized;
	struct page *page;

	for (ps->n = 0; left; left -= seg.len, first = false) {
		/* up to two pieces for these bytes, one for the header, one for the mark */
		if (ps->n + 4 > NHCA_PIECES)
			goto drop;
		page = first || left < PAGE_SIZE ? NULL : nhca_iter_page(it);
		if (page) {
			if (!sendpage_ok(page))
				goto drop;
			get_page(page);
			seg.len = PAGE_SIZE;
			ps->p[ps->n++] = (struct nhca_piece) { page, 0, PAGE_SIZE };
			continue;
		}
		if (nhca_iter_next(it, min_t(u32, left, PAGE_SIZE), &seg) ||
		    !nhca_piece_pages(b, ps, tx, it, &seg))
			goto drop;
	}
	return true;

drop:
	nhca_pieces_drop(ps);
	return false;
}

/*
 * Like nhca_run_payload(), by a copy. Return: false without memory or after an error of the source.
 * The caller then sends the packet alone, and nhca_xmit() returns the error.
 */
static bool nhca_run_copy(struct nhca_pieces *ps, struct nhca_iter *it, u32 len)
{
	ps->n = 0;
	ps->icrc = false;
	if (!nhca_pieces_copy(ps, it, len))
		return true;
	nhca_pieces_drop(ps);
	return false;
}

/* Add a piece of a run, for which there is room. It is never adjacent to the last fragment. */
static void nhca_run_piece(struct nhca_burst *b, const struct nhca_piece *piece)
{
	struct skb_shared_info *info = skb_shinfo(b->last);

	__skb_fill_page_desc_noacc(info, info->nr_frags++, piece->page, piece->off, piece->len);
}

/* Write the mark of the previous packet and the header of the next one to @p. */
static void nhca_run_between(u8 *p, const u8 *between, u32 len)
{
	const u64 *from = (const u64 *)between;
	u64 *to = (u64 *)p;

	/* for a QP these are 16 bytes: two stores cost less than memcpy() of a variable length */
	if (len == 2 * sizeof(u64)) {
		put_unaligned(get_unaligned(from), to);
		put_unaligned(get_unaligned(from + 1), to + 1);
	} else {
		memcpy(p, between, len);
	}
}

/*
 * Add up to @count packets of a run. Between two payloads lie the mark of one packet and the header
 * of the next; one page holds these bytes for the whole run.
 * Context: live section. Return: number of packets added.
 */
static u32 nhca_run_gather(struct nhca_burst *b, struct nhca_tx *tx, u32 count)
{
	u32 len = NHCA_ICRC_LEN + tx->hdr->info->hdr_len;
	u8 between[NHCA_ICRC_LEN + NHCA_HDRS_MAX] __uninitialized;
	/* no payload precedes the first header, so no mark does */
	u32 skip = NHCA_ICRC_LEN;
	struct sk_buff *last = b->last;
	struct nhca_piece hdr, mark;
	struct nhca_pieces ps __uninitialized;
	u32 n, i, bytes = 0;
	bool there;
	u8 *p;

	count = min_t(u32, count, PAGE_SIZE / len);
	p = nhca_frag_get(count * len, &hdr.page, &hdr.off);
	if (!p)
		return 0;
	mark = (struct nhca_piece) { hdr.page, hdr.off, NHCA_ICRC_LEN };
	memcpy(between, &tx->hdr->mark, NHCA_ICRC_LEN);
	nhca_hdr_encode(tx->hdr, between + NHCA_ICRC_LEN);
	for (n = 0; n < count; n++) {
		if (tx->copy)
			there = nhca_run_copy(&ps, tx->it, tx->payload);
		else
			there = nhca_run_payload(b, &ps, tx, !n);
		if (!there)
			break;
		/* one fragment for the header, and one for the mark after the last packet */
		if (!nhca_burst_room(b, ps.n + 2, !tx->copy)) {
			nhca_pieces_drop(&ps);
			break;
		}
		if (!n || b->last != last) {
			nhca_burst_grow(b, last, bytes);
			last = b->last;
			bytes = 0;
			if (!tx->copy)
				nhca_zcopy_attach(last, b->zcopy);
		}
		nhca_run_between(p, between, len);
		nhca_hdr_step(tx->hdr, n, p + NHCA_ICRC_LEN);
		hdr.off += skip;
		hdr.len = len - skip;
		nhca_run_piece(b, &hdr);
		for (i = 0; i < ps.n; i++)
			nhca_run_piece(b, &ps.p[i]);
		bytes += hdr.len + tx->payload;
		hdr.off += hdr.len;
		p += len;
		skip = 0;
	}
	if (!n) {
		put_page(hdr.page);
		return 0;
	}
	/* each header has a page reference, and so has the mark after the last packet */
	folio_ref_add(page_folio(hdr.page), n);
	nhca_run_piece(b, &mark);
	nhca_burst_grow(b, last, bytes + NHCA_ICRC_LEN);
	b->len += n * nhca_tx_bytes(tx);
	if (!tx->copy)
		tx->zcopied = n * tx->payload;
	b->zcopied += tx->zcopied;
	return n;
}

/*
 * A packet that is shorter than those of the batch, as after the first packet of a WRITE, ends the
 * batch. Return: true if the batch should be sent first, because the run and the last packet of the
 * message fit into one further batch: the number of batches is the same, and the run is not split.
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
	/* a shorter packet ends the batch, so only one fits */
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
