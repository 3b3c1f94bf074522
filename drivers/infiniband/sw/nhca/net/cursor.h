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
 * @frag:  the piece is this fragment of @skb; -1: its linear bytes
 * @start: offset of the piece in @head
 * @data:  the piece
 * @len:   its length
 *
 * May be copied.  Fields are private.
 */
struct nhca_cursor {
	const struct sk_buff *head;
	const struct sk_buff *skb;
	int frag;
	u32 start;
	const u8 *data;
	u32 len;
};

/* begin at the front of @skb, which has to stay until the cursor is done; any context */
void nhca_cursor_init(struct nhca_cursor *c, const struct sk_buff *skb);

/**
 * nhca_cursor_at - bytes from offset @off of the skb that lie together
 * @len: how many, at least one
 * Costs the pieces between the last place and this one; one further back begins at the front.
 * Context: any.  Return: the bytes, or NULL behind the skb's end.
 */
const u8 *nhca_cursor_at(struct nhca_cursor *c, u32 off, u32 *len);

#endif /* NHCA_NET_CURSOR_H */
