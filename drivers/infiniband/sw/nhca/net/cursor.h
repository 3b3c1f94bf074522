/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A place in a batch: an skb of linear bytes, fragments and further skbs behind it, read from
 * the front to the back without looking from the beginning for each packet.
 */
#ifndef NHCA_NET_CURSOR_H
#define NHCA_NET_CURSOR_H

#include <linux/skbuff.h>

/**
 * struct nhca_cursor - a piece of an skb, bytes that lie together
 * @head:  the skb
 * @skb:   @head, or the one of its frag_list, that has the piece
 * @next:  the fragment of @skb behind the piece
 * @end:   behind the last one
 * @start: offset of the piece in @head
 * @data:  the piece
 * @len:   its length
 *
 * May be copied.  Fields are private.
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

/* begin at the front of @skb, which has to stay until the cursor is done; any context */
void nhca_cursor_init(struct nhca_cursor *c, const struct sk_buff *skb);

/* go to the next fragment, which there is */
static inline void nhca_cursor_step(struct nhca_cursor *c)
{
	c->start += c->len;
	/* no highmem: a device has no DMA addresses but these */
	c->data = skb_frag_address(c->next);
	c->len = skb_frag_size(c->next);
	c->next++;
}

/* nhca_cursor_at() where @off is neither in this piece nor in the fragment behind it */
const u8 *nhca_cursor_seek(struct nhca_cursor *c, u32 off, u32 *len);

/**
 * nhca_cursor_at - bytes from offset @off of the skb that lie together
 * @len: how many, at least one
 * Costs the pieces between the last place and this one; one further back begins at the front.
 * Context: any.  Return: the bytes, or NULL behind the skb's end.
 */
static inline const u8 *nhca_cursor_at(struct nhca_cursor *c, u32 off, u32 *len)
{
	/* of what lies before the piece, more than any piece has */
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

/*
 * Go on towards @off, if it is ahead, in the same skb: nhca_cursor_at() is made for the next piece.
 * Context: any.
 */
static inline void nhca_cursor_skip(struct nhca_cursor *c, u32 off)
{
	while (off >= c->start && off - c->start >= c->len && c->next < c->end)
		nhca_cursor_step(c);
}

#endif /* NHCA_NET_CURSOR_H */
