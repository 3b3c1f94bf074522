/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A position in a batch, which is an skb with linear bytes, fragments and a frag_list. Packets are
 * read in order, so the cursor need not search from the beginning of the skb for each packet.
 */
#ifndef NHCA_NET_CURSOR_H
#define NHCA_NET_CURSOR_H

#include <linux/skbuff.h>

/**
 * struct nhca_cursor - a position in an skb: the piece (contiguous bytes) that was last read
 * @head:  the skb
 * @skb:   @head, or the skb of its frag_list that contains the piece
 * @next:  the fragment of @skb after the piece
 * @end:   the end of the fragments of @skb
 * @start: offset of the piece in @head, in bytes
 * @data:  the piece
 * @len:   length of the piece in bytes
 *
 * A cursor may be copied. The fields are private.
 */
struct nhca_cursor {
	const struct sk_buff *head;
	const struct sk_buff *skb;
	const skb_frag_t *next;
	const skb_frag_t *end;
	u32 start;
	const u8 *data;
	u32 len;
};

/**
 * nhca_cursor_init - set a cursor to the first byte of an skb
 * @c:   the cursor
 * @skb: the skb, which must exist as long as the cursor is used
 * Context: any.
 */
void nhca_cursor_init(struct nhca_cursor *c, const struct sk_buff *skb);

/**
 * nhca_cursor_step - move a cursor to the next fragment of its skb
 * @c: the cursor; @c->next must be before @c->end
 * Context: any.
 */
static inline void nhca_cursor_step(struct nhca_cursor *c)
{
	c->start += c->len;
	/*
	 * Every page has a kernel address, because the driver depends on INFINIBAND_VIRT_DMA, which
	 * excludes HIGHMEM.
	 */
	c->data = skb_frag_address(c->next);
	c->len = skb_frag_size(c->next);
	c->next++;
}

/**
 * nhca_cursor_seek - the slow path of nhca_cursor_at()
 * @c:   the cursor
 * @off: offset in the skb, in bytes; not in the piece of @c
 * @len: set to the number of contiguous bytes
 * Context: any.
 * Return: as nhca_cursor_at().
 */
const u8 *nhca_cursor_seek(struct nhca_cursor *c, u32 off, u32 *len);

/**
 * nhca_cursor_at - find the contiguous bytes at an offset of the skb
 * @c:   the cursor
 * @off: offset in the skb, in bytes
 * @len: set to the number of contiguous bytes, at least one
 *
 * The cost grows with the number of pieces between the last position and @off. If @off is before
 * the piece of @c, the search begins at the front of the skb.
 * Context: any.
 * Return: the bytes, or NULL if @off is not in the skb.
 */
static inline const u8 *nhca_cursor_at(struct nhca_cursor *c, u32 off, u32 *len)
{
	/* if @off is before the piece, the difference wraps and exceeds the length of any piece */
	u32 in = off - c->start;

	if (in >= c->len) {
		if (off < c->start || c->next == c->end)
			return nhca_cursor_seek(c, off, len);
		nhca_cursor_step(c);
		in = off - c->start;
		if (in >= c->len)
			return nhca_cursor_seek(c, off, len);
	}
	*len = c->len - in;
	return c->data + in;
}

/**
 * nhca_cursor_skip - move a cursor to an offset, but not beyond the last fragment of @c->skb
 * @c:   the cursor
 * @off: offset in @c->head, in bytes; if @off is before the piece, the cursor does not move
 *
 * To skip several fragments this function is faster than nhca_cursor_at().
 * Context: any.
 */
static inline void nhca_cursor_skip(struct nhca_cursor *c, u32 off)
{
	while (off >= c->start && off - c->start >= c->len && c->next < c->end)
		nhca_cursor_step(c);
}

#endif /* NHCA_NET_CURSOR_H */
