/* SPDX-License-Identifier: GPL-2.0 */
/* The part of ccan/list.h of rdma-core that libnhca uses */
#ifndef MSGSIM_LIST_H
#define MSGSIM_LIST_H

#include <stdbool.h>
#include <stddef.h>

#include "container_of.h"

struct list_node {
	struct list_node *next, *prev;
};

struct list_head {
	struct list_node n;
};

static inline void list_node_init(struct list_node *n)
{
	n->next = n;
	n->prev = n;
}

static inline void list_head_init(struct list_head *h)
{
	list_node_init(&h->n);
}

static inline bool list_empty(const struct list_head *h)
{
	return h->n.next == &h->n;
}

static inline void list_insert_(struct list_node *n, struct list_node *prev, struct list_node *next)
{
	n->prev = prev;
	n->next = next;
	prev->next = n;
	next->prev = n;
}

static inline void list_add(struct list_head *h, struct list_node *n)
{
	list_insert_(n, &h->n, h->n.next);
}

static inline void list_add_tail(struct list_head *h, struct list_node *n)
{
	list_insert_(n, h->n.prev, &h->n);
}

static inline void list_del(struct list_node *n)
{
	n->prev->next = n->next;
	n->next->prev = n->prev;
	/* A second list_del() then crashes. */
	n->next = NULL;
	n->prev = NULL;
}

static inline void list_del_init(struct list_node *n)
{
	list_del(n);
	list_node_init(n);
}

static inline struct list_node *list_pop_(struct list_head *h)
{
	struct list_node *n = h->n.next;

	if (list_empty(h))
		return NULL;
	list_del(n);
	return n;
}

#define list_entry(n, type, member) container_of(n, type, member)
#define list_top(h, type, member)						\
	(list_empty(h) ? NULL : list_entry((h)->n.next, type, member))
#define list_pop(h, type, member) ({						\
	struct list_node *n_ = list_pop_(h);					\
	n_ ? list_entry(n_, type, member) : NULL; })

#define list_for_each(h, i, member)						\
	for (i = list_entry((h)->n.next, __typeof__(*i), member);		\
	     &i->member != &(h)->n;						\
	     i = list_entry(i->member.next, __typeof__(*i), member))

#define list_for_each_safe(h, i, nxt, member)					\
	for (i = list_entry((h)->n.next, __typeof__(*i), member),		\
	     nxt = list_entry(i->member.next, __typeof__(*i), member);		\
	     &i->member != &(h)->n;						\
	     i = nxt, nxt = list_entry(i->member.next, __typeof__(*i), member))

#endif /* MSGSIM_LIST_H */
