// SPDX-License-Identifier: GPL-2.0
/*
 * Packets that leave together.
 *
 * Only towards a peer that verifies UDP checksums, because GSO gives every packet one, and only
 * through a netdev that takes batches as they are, or one that takes no fragments at all: then
 * packets are whole skbs (linear.c), with copied payload.  In between, with fragments and without
 * UDP GSO, the stack would segment the batch in software, which costs more than packets that are
 * built alone.
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
 * struct nhca_piece - bytes of a packet that lie together in a page
 * @page: with a reference
 * @off:  where in it
 * @len:  bytes
 */
struct nhca_piece {
	struct page *page;
	u32 off;
	u32 len;
};

/**
 * struct nhca_pieces - a packet, before it is added
 * @p:    pieces, in their order
 * @n:    how many
 * @crc:  so far
 * @icrc: the packet has one
 * @zcopied: bytes that are in pages of a consumer
 */
struct nhca_pieces {
	struct nhca_piece p[NHCA_PIECES];
	u32 n;
	u32 crc;
	u32 zcopied;
	bool icrc;
};

/* Return: room for @len bytes, at most a page, as the next piece, or NULL. */
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

/* BTH and extended headers into @p. */
static void nhca_piece_header(struct nhca_pieces *ps, const struct nhca_tx *tx, u8 *p)
{
	const struct nhca_burst *b = tx->burst;
	u32 len = nhca_hdr_encode(tx->hdr, p);

	if (ps->icrc)
		ps->crc = nhca_icrc_head(b->skb, p, len, nhca_tx_bytes(tx), b->packets);
}

/*
 * Packets after which a reference serves no further batch.  A request completes when its reference
 * is released: with few packets it does not wait for many of later requests.
 */
#define NHCA_BURST_COVERED	16

/* Return: true if @seg, which @it just gave, may be sent by reference; then the batch has one. */
static bool nhca_burst_references(struct nhca_burst *b, const struct nhca_tx *tx,
				  const struct nhca_iter *it, const struct nhca_seg *seg)
{
	if (is_vmalloc_addr(seg->addr) || !sendpage_ok(nhca_seg_page(seg)) ||
	    !nhca_iter_zcopy(it))
		return false;
	if (!b->zcopy) {
		b->zcopy = nhca_zcopy_new(tx->flow);
		b->covered = 0;
	}
	return b->zcopy;
}

/* The next bytes of the payload, by reference. */
static void nhca_piece_pages(struct nhca_pieces *ps, const struct nhca_seg *seg)
{
	struct page *page = nhca_seg_page(seg);
	u32 left = seg->len;
	u32 off = offset_in_page(seg->addr);
	u32 n;

	ps->zcopied += left;
	for (; left; left -= n, off = 0, page++) {
		n = min_t(u32, left, PAGE_SIZE - off);
		get_page(page);
		ps->p[ps->n++] = (struct nhca_piece) { page, off, n };
	}
}

/* @len bytes of payload, copied.  Return: 0 or an error of the source, or -ENOMEM. */
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
 * The payload by reference, as far as it may and there are pieces for it: some are kept for what
 * has to be copied, and one for the tail.  Return: bytes that are left, or an error.
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
		/* a piece of at most a page may lie on two */
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
		if (nhca_burst_references(b, tx, it, &seg)) {
			nhca_piece_pages(ps, &seg);
			continue;
		}
		p = nhca_piece_new(ps, seg.len);
		if (!p)
			return -ENOMEM;
		memcpy(p, seg.addr, seg.len);
	}
	return left;
}

/* Context: live section.  Return: 0, or as nhca_xmit(); then nothing is held. */
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

/* @bytes were added to @last, which is or was the last skb of the batch. */
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

/* From here on fragments go to @skb. */
static void nhca_burst_behind(struct nhca_burst *b, struct sk_buff *skb)
{
	b->last = skb;
}

/* Return: is there room for fragments now, in an skb behind the others? */
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
 * Return: true if there is room for @n fragments, @pages among them; these are not in the first skb
 * if the netdev takes others behind it (enum nhca_build_how).
 */
static inline bool nhca_burst_room(struct nhca_burst *b, u32 n, bool pages)
{
	if (pages && b->lists && b->last == b->skb)
		return nhca_burst_more(b);
	return skb_shinfo(b->last)->nr_frags + n <= MAX_SKB_FRAGS || nhca_burst_more(b);
}

/*
 * Return: true if @piece follows the last fragment of @info in the same page.  Unlike
 * skb_can_coalesce(), this is for skbs that carry a reference as well: it is one for the whole skb.
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

/* One piece more; there is room.  Its reference goes to the skb.  The caller adds up lengths. */
static void nhca_burst_piece(struct nhca_burst *b, const struct nhca_piece *piece)
{
	struct skb_shared_info *info = skb_shinfo(b->last);

	/* the tail of one packet and the header of the next lie together */
	if (nhca_piece_follows(info, piece)) {
		skb_frag_size_add(&info->frags[info->nr_frags - 1], piece->len);
		put_page(piece->page);
	} else {
		skb_fill_page_desc(b->last, info->nr_frags, piece->page, piece->off, piece->len);
	}
}

/* The pieces' references go to the skb. */
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

/* May the stack have batches for this way? */
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
	/* here the skb itself will have a reference, which serves its charge and no other's */
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

/* Forget the skb, in which there is no packet. */
static void nhca_burst_cancel(struct nhca_burst *b)
{
	kfree_skb(b->skb);
	b->skb = NULL;
	nhca_burst_put_zcopy(b);
}

/* Send what waits, and keep a reference that may serve the next batch. */
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
	/* as in every batch, also where the stack will set the first one's own again */
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
		if (err == -EAGAIN)
			err = nhca_iter_fault(&it, tx->ahead, tx->fault);
		nhca_live_exit();

		if (!err)
			break;
		if (!b->packets)
			nhca_burst_cancel(b);
		/* as the first one of another batch there is room for it */
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
 * The payload of a packet of a run, by reference.  Pages after the first, with which the region has
 * learnt that it is lent, come at a fifth of the cost.
 * Return: false if not all of it can be lent; then @ps is empty.
 */
static bool nhca_run_payload(struct nhca_burst *b, struct nhca_pieces *ps,
			     const struct nhca_tx *tx, bool first)
{
	struct nhca_iter *it = tx->it;
	u32 left = tx->payload;
	struct nhca_seg seg __uninitialized;
	struct page *page;

	for (ps->n = 0; left; left -= seg.len, first = false) {
		/* two pages, and the header and the tail */
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
		    !nhca_burst_references(b, tx, it, &seg))
			goto drop;
		nhca_piece_pages(ps, &seg);
	}
	return true;

drop:
	nhca_pieces_drop(ps);
	return false;
}

/*
 * The same by a copy.
 * Return: false if there is no memory, or something is wrong with the source: who sends the packet
 * alone hears what.
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

/* A piece of a run, which does not lie together with what came before; there is room. */
static void nhca_run_piece(struct nhca_burst *b, const struct nhca_piece *piece)
{
	struct skb_shared_info *info = skb_shinfo(b->last);

	__skb_fill_page_desc_noacc(info, info->nr_frags++, piece->page, piece->off, piece->len);
}

/* The QP's mark and the header that follow the payload of the packet before. */
static void nhca_run_between(u8 *p, const u8 *between, u32 len)
{
	const u64 *from = (const u64 *)between;
	u64 *to = (u64 *)p;

	/* a QP's are two words, for which a copy of any length would be a long way */
	if (len == 2 * sizeof(u64)) {
		put_unaligned(get_unaligned(from), to);
		put_unaligned(get_unaligned(from + 1), to + 1);
	} else {
		memcpy(p, between, len);
	}
}

/*
 * Context: live section.  Between the payloads of two packets there are the QP's mark and
 * headers that follow from those before the first; for all packets they lie together.
 */
static u32 nhca_run_gather(struct nhca_burst *b, struct nhca_tx *tx, u32 count)
{
	u32 len = NHCA_ICRC_LEN + tx->hdr->info->hdr_len;
	u8 between[NHCA_ICRC_LEN + NHCA_HDRS_MAX] __uninitialized;
	/* no payload is before the first header, so that no mark is, either */
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
		/* a header before it, a mark behind the last one */
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
	/* one each, and one for the mark behind the last payload */
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
 * Behind a longer packet, the first of a WRITE, there is room for one of a run.  But if all of
 * them and the last of the message fit a batch of their own, these are no more batches, and it is
 * one run.
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
	/* behind longer ones there is room for one */
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
