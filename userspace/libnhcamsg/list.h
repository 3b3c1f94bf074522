/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Circular doubly linked lists.  A struct that can be in a list has a member of type
 * struct list_node.  The macros take the name of this member, and return pointers to the struct.
 */
#ifndef NHCA_MSG_LIST_H
#define NHCA_MSG_LIST_H

#include <stdbool.h>
#include <stddef.h>

#include "util.h"

/**
 * struct list_node - a node of a list
 * @next: next node, or the list head
 * @prev: previous node, or the list head
 */
struct list_node {
	struct list_node *next;
	struct list_node *prev;
};

/**
 * struct list_head - a list
 * @n: @n.next is the first node, and @n.prev the last; both are @n if the list is empty
 */
struct list_head {
	struct list_node n;
};

static inline void list_head_init(struct list_head *h)
{
	h->n.next = &h->n;
	h->n.prev = &h->n;
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

/**
 * list_add - insert a node at the start of a list
 * @h: the list
 * @n: the node
 */
static inline void list_add(struct list_head *h, struct list_node *n)
{
	list_insert_(n, &h->n, h->n.next);
}

/**
 * list_add_tail - insert a node at the end of a list
 * @h: the list
 * @n: the node
 */
static inline void list_add_tail(struct list_head *h, struct list_node *n)
{
	list_insert_(n, h->n.prev, &h->n);
}

/**
 * list_del - remove a node from its list; a second list_del() of the node crashes
 * @n: the node
 */
static inline void list_del(struct list_node *n)
{
	n->prev->next = n->next;
	n->next->prev = n->prev;
	n->next = NULL;
	n->prev = NULL;
}

static inline struct list_node *list_pop_(struct list_head *h)
{
	struct list_node *n = h->n.next;

	if (list_empty(h))
		return NULL;
	list_del(n);
	return n;
}

/**
 * list_top - get the first struct of a list
 * @h:      the list
 * @type:   type of the structs
 * @member: member of type struct list_node
 * Return: the first struct; NULL: the list is empty.
 */
#define list_top(h, type, member)						\
	(list_empty(h) ? NULL : container_of((h)->n.next, type, member))

/**
 * list_pop - remove the first struct of a list
 * @h:      the list
 * @type:   type of the structs
 * @member: member of type struct list_node
 * Return: the struct; NULL: the list is empty.
 */
#define list_pop(h, type, member) ({						\
	struct list_node *n_ = list_pop_(h);					\
	n_ ? container_of(n_, type, member) : NULL; })

/**
 * list_for_each - loop over all structs of a list; the body must not remove @i
 * @h:      the list
 * @i:      pointer to the struct, set for each run of the body
 * @member: member of type struct list_node
 */
#define list_for_each(h, i, member)						\
	for (i = container_of((h)->n.next, __typeof__(*i), member);		\
	     &i->member != &(h)->n;						\
	     i = container_of(i->member.next, __typeof__(*i), member))

/**
 * list_for_each_safe - loop over all structs of a list; the body may remove @i
 * @h:         the list
 * @i:         pointer to the struct, set for each run of the body
 * @following: pointer to the next struct, for the macro
 * @member:    member of type struct list_node
 */
#define list_for_each_safe(h, i, following, member)				\
	for (i = container_of((h)->n.next, __typeof__(*i), member),		\
	     following = container_of(i->member.next, __typeof__(*i), member);	\
	     &i->member != &(h)->n;						\
	     i = following,							\
	     following = container_of(i->member.next, __typeof__(*i), member))

#endif /* NHCA_MSG_LIST_H */
