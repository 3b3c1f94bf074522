// SPDX-License-Identifier: GPL-2.0
/* Cursors: a cursor is a position in a batch. */
#include "cursor.h"

static void nhca_cursor_linear(struct nhca_cursor *c)
{
	const struct skb_shared_info *info = skb_shinfo(c->skb);

	c->next = info->frags;
	c->end = info->frags + info->nr_frags;
	c->data = c->skb->data;
	c->len = skb_headlen(c->skb);
}

void nhca_cursor_init(struct nhca_cursor *c, const struct sk_buff *skb)
{
	c->head = skb;
	c->skb = skb;
	c->start = 0;
	nhca_cursor_linear(c);
}

/* Move to the next piece. Return: false at the end of the skb. */
static bool nhca_cursor_next(struct nhca_cursor *c)
{
	const struct sk_buff *next;

	if (c->next < c->end) {
		nhca_cursor_step(c);
		return true;
	}
	next = c->skb == c->head ? skb_shinfo(c->skb)->frag_list : c->skb->next;
	if (!next)
		return false;
	c->start += c->len;
	c->skb = next;
	nhca_cursor_linear(c);
	return true;
}

const u8 *nhca_cursor_seek(struct nhca_cursor *c, u32 off, u32 *len)
{
	if (unlikely(off < c->start))
		nhca_cursor_init(c, c->head);
	while (off - c->start >= c->len)
		if (!nhca_cursor_next(c))
			return NULL;
	*len = c->len - (off - c->start);
	return c->data + (off - c->start);
}
