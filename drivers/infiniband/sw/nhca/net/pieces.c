// SPDX-License-Identifier: GPL-2.0
/* The pieces of a packet: headers, payload by page reference or copy, pad and ICRC. */
#include <linux/mm.h>

#include "net.h"
#include "burst.h"
#include "frags.h"
#include "pieces.h"
#include "xmit.h"
#include "../memory/memory.h"

/* Allocate a piece of @len bytes, at most a page. Return: the bytes; NULL if there is no memory. */
static void *nhca_piece_new(struct nhca_pieces *ps, u32 len)
{
	struct nhca_piece *piece = &ps->p[ps->n];
	void *p;

	if (WARN_ON_ONCE(ps->n == ps->max))
		return NULL;
	p = nhca_frag_get(len, &piece->page, &piece->off);
	if (p) {
		piece->len = len;
		ps->n++;
	}
	return p;
}

void nhca_pieces_drop(struct nhca_pieces *ps)
{
	while (ps->n)
		put_page(ps->p[--ps->n].page);
}

/*
 * Return: true if @ps has room for @more pieces, and then for the rest of the packet: @left bytes
 * of payload and the tail. A copy of payload takes a piece for each PAGE_SIZE, and the tail takes
 * one piece.
 */
static bool nhca_pieces_fit(const struct nhca_pieces *ps, u32 more, u32 left)
{
	return ps->n + more + DIV_ROUND_UP(left, (u32)PAGE_SIZE) + 1 <= ps->max;
}

/* Return: number of pages on which the bytes of @seg lie. */
static u32 nhca_seg_pages(const struct nhca_seg *seg)
{
	return DIV_ROUND_UP(offset_in_page(seg->addr) + seg->len, (u32)PAGE_SIZE);
}

/* Write BTH and extended headers to @p, and begin the ICRC if the packet has one. */
static void nhca_piece_header(struct nhca_pieces *ps, const struct nhca_tx *tx, u8 *p)
{
	const struct nhca_burst *b = tx->burst;
	u32 len = nhca_hdr_encode(tx->hdr, p);

	if (ps->sums.icrc)
		ps->sums.crc = nhca_icrc_head(b->skb, p, len, nhca_tx_bytes(tx), b->packets);
}

/*
 * Add the bytes of @seg, which @it returned last, by page reference. Return: false: the caller must
 * copy the bytes.
 */
static bool nhca_piece_pages(struct nhca_pieces *ps, const struct nhca_tx *tx,
			     const struct nhca_iter *it, const struct nhca_seg *seg)
{
	u32 n = nhca_zcopy_pages(ps->zcopy, tx->flow, it, seg, &ps->p[ps->n]);

	if (!n)
		return false;
	ps->n += n;
	ps->zcopied += seg->len;
	return true;
}

/* Copy @len bytes of payload. Return: 0; -ENOMEM: no memory; or as nhca_iter_read(). */
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
		nhca_sums_more(&ps->sums, p, n);
	}
	return 0;
}

/*
 * Add payload by page reference as long as enough pieces remain for the rest of the packet: a piece
 * for each page of a copy of the remaining payload, and one for pad and ICRC. Bytes for which
 * nhca_zcopy_pages() returns 0 are copied. Return: number of bytes of payload that are left to
 * copy, or a negative error.
 */
static int nhca_pieces_reference(struct nhca_pieces *ps, const struct nhca_tx *tx,
				 struct nhca_iter *it)
{
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
		tight = !nhca_pieces_fit(ps, 2, left);
		if (tight)
			before = *it;
		err = nhca_iter_next(it, min_t(u32, left, PAGE_SIZE), &seg);
		if (err)
			return err;
		if (tight && !nhca_pieces_fit(ps, nhca_seg_pages(&seg), left - seg.len)) {
			*it = before;
			return left;
		}
		left -= seg.len;
		nhca_sums_more(&ps->sums, seg.addr, seg.len);
		if (nhca_piece_pages(ps, tx, it, &seg))
			continue;
		p = nhca_piece_new(ps, seg.len);
		if (!p)
			return -ENOMEM;
		memcpy(p, seg.addr, seg.len);
	}
	return left;
}

int nhca_pieces_payload(struct nhca_pieces *ps, const struct nhca_tx *tx, struct nhca_iter *it)
{
	int left = tx->copy ? tx->payload : nhca_pieces_reference(ps, tx, it);
	int err = left < 0 ? left : nhca_pieces_copy(ps, it, left);
	u8 *p;

	if (!err) {
		p = nhca_piece_new(ps, tx->hdr->pad + NHCA_ICRC_LEN);
		if (p) {
			nhca_sums_tail(&ps->sums, tx->hdr, p);
			return 0;
		}
		err = -ENOMEM;
	}
	nhca_pieces_drop(ps);
	return err;
}

static void nhca_pieces_begin(struct nhca_pieces *ps, const struct nhca_tx *tx, bool icrc)
{
	ps->n = 0;
	ps->max = NHCA_PIECES;
	ps->zcopied = 0;
	ps->zcopy = &tx->burst->zcopy;
	ps->sums = (struct nhca_sums) { .icrc = icrc };
}

/* Collect a packet in one piece, with a copy of the payload. */
static int nhca_pieces_one(struct nhca_pieces *ps, const struct nhca_tx *tx, struct nhca_iter *it)
{
	u32 hdr_len = tx->hdr->info->hdr_len;
	u8 *p = nhca_piece_new(ps, nhca_tx_bytes(tx));
	int err;

	if (!p)
		return -ENOMEM;
	nhca_piece_header(ps, tx, p);
	p += hdr_len;
	if (tx->payload) {
		err = nhca_iter_read(it, p, tx->payload);
		if (err) {
			nhca_pieces_drop(ps);
			return err;
		}
		nhca_sums_more(&ps->sums, p, tx->payload);
	}
	nhca_sums_tail(&ps->sums, tx->hdr, p + tx->payload);
	return 0;
}

int nhca_pieces_gather(struct nhca_pieces *ps, struct nhca_tx *tx, struct nhca_iter *it)
{
	u8 *p;

	nhca_pieces_begin(ps, tx, !(tx->hdr->caps & NHCA_CAP_NO_ICRC));
	if (tx->payload <= NHCA_COPY_BREAK || (tx->copy && nhca_tx_bytes(tx) <= PAGE_SIZE))
		return nhca_pieces_one(ps, tx, it);
	p = nhca_piece_new(ps, tx->hdr->info->hdr_len);
	if (!p)
		return -ENOMEM;
	nhca_piece_header(ps, tx, p);
	return nhca_pieces_payload(ps, tx, it);
}

/*
 * Collect the payload of one packet of a run by page reference. For the first page of the run
 * nhca_piece_pages() records in the region that packets refer to its pages. For the next whole
 * pages nhca_iter_page() is sufficient, which is faster than nhca_iter_next(). Return: false if a
 * part of the payload cannot be sent by page reference.
 */
static bool nhca_pieces_run_pages(struct nhca_pieces *ps, const struct nhca_tx *tx, bool first)
{
	struct nhca_iter *it = tx->it;
	u32 left = tx->payload;
	struct nhca_seg seg __uninitialized;
	struct page *page;

	for (; left; left -= seg.len, first = false) {
		/* up to two pieces for these bytes, one for the header, one for the mark */
		if (ps->n + 4 > ps->max)
			return false;
		page = first || left < PAGE_SIZE ? NULL : nhca_iter_page(it);
		if (page) {
			if (!sendpage_ok(page))
				return false;
			get_page(page);
			seg.len = PAGE_SIZE;
			ps->p[ps->n++] = (struct nhca_piece) { page, 0, PAGE_SIZE };
			continue;
		}
		if (nhca_iter_next(it, min_t(u32, left, PAGE_SIZE), &seg) ||
		    !nhca_piece_pages(ps, tx, it, &seg))
			return false;
	}
	return true;
}

bool nhca_pieces_run(struct nhca_pieces *ps, const struct nhca_tx *tx, bool first)
{
	nhca_pieces_begin(ps, tx, false);
	if (tx->copy ? !nhca_pieces_copy(ps, tx->it, tx->payload) :
		       nhca_pieces_run_pages(ps, tx, first))
		return true;
	nhca_pieces_drop(ps);
	return false;
}
