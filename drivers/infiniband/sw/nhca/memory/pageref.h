/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Page references: packets in the network stack refer to pages of a consumer.
 *
 * net/zcopy.c begins and ends the references.  This code only lists the references, so that a
 * deregistration can wait for all references of its device.  Each flow, that is the packets of one
 * QP or channel (net/flow.c), has a queue of its references in the order of transmission.  So a
 * completion can wait for the references of its request.
 */
#ifndef NHCA_PAGEREF_H
#define NHCA_PAGEREF_H

#include <linux/list.h>
#include <linux/spinlock.h>
#include <linux/types.h>

#include "../user.h"

struct nhca_txq;

/**
 * nhca_pageref_owner_init - record that the calling process owns pages
 * nhca_pageref_owner_exit - release the record, for which no wait is in progress
 * @owner: the record
 * Context: process.
 */
void nhca_pageref_owner_init(struct nhca_pageref_owner *owner);
void nhca_pageref_owner_exit(struct nhca_pageref_owner *owner);

/**
 * struct nhca_pageref - a reference to pages of a consumer
 * @list: in nhca_pageref_queue.list until the pages are released
 * @seq:  position in the queue, counting up
 * @gen:  generation in which the reference began; see nhca_pageref_wait()
 */
struct nhca_pageref {
	struct list_head list;
	u32 seq;
	u64 gen;
};

/**
 * struct nhca_pageref_queue - the references of a flow that are not released
 * @lock:   irqsave; protects @list, @seq and @waits
 * @list:   struct nhca_pageref, oldest first
 * @seq:    nhca_pageref.seq of the newest reference
 * @waits:  a completion waits, so the next release of a reference must kick the flow
 * @node:   in the list of the queues of all flows; RCU readers
 * @domain: device of the flow
 */
struct nhca_pageref_queue {
	/* protects list, seq, waits */
	spinlock_t lock;
	struct list_head list;
	u32 seq;
	bool waits;
	struct list_head node;
	struct nhca_txq *domain;
};

/**
 * nhca_pageref_queue_add - initialize the queue of a flow
 * nhca_pageref_queue_del - remove an empty queue; the caller frees it after an RCU grace period
 * @q:      the queue
 * @domain: device of the flow
 * Context: any.
 */
void nhca_pageref_queue_add(struct nhca_pageref_queue *q, struct nhca_txq *domain);
void nhca_pageref_queue_del(struct nhca_pageref_queue *q);

/**
 * nhca_pageref_begin - begin a reference
 * @q:   queue of the flow; the flow's requester, responder or send engine calls this function
 * @ref: the reference
 * Context: BH disabled, live section; before the first page is added to an skb.
 */
void nhca_pageref_begin(struct nhca_pageref_queue *q, struct nhca_pageref *ref);

/**
 * nhca_pageref_end - release a reference: no skb has its pages any more
 * @q:   queue of the flow
 * @ref: the reference
 * Context: any.
 * Return: true if the caller must kick the flow, because nhca_pageref_released() has returned false
 * since the last kick.
 */
bool nhca_pageref_end(struct nhca_pageref_queue *q, struct nhca_pageref *ref);

/**
 * nhca_pageref_released - check whether all references of a flow up to a number are released
 * @q:   queue of the flow; if one of these references is left, the next nhca_pageref_end() of @q
 *       requests a kick
 * @seq: the number
 * Context: any.
 * Return: true if they are released.
 */
bool nhca_pageref_released(struct nhca_pageref_queue *q, u32 seq);

/**
 * nhca_pageref_wait_queue - wait until the references of a flow that exist now are released
 * @q:     queue of the flow
 * @owner: as nhca_pageref_wait()
 * Context: process, sleeps.
 * Return: false if the wait has timed out because the owner has died.
 */
bool nhca_pageref_wait_queue(struct nhca_pageref_queue *q, struct nhca_pageref_owner *owner);

/**
 * nhca_pageref_wait - wait until the references of a device that exist now are released
 * @domain: the device; NULL: all devices
 * @owner:  the process that owns the pages; NULL: a kernel consumer owns them
 *
 * Later references need no wait, because the caller has closed the keys that lead to the pages, and
 * has waited for live sections.
 *
 * As long as the owner could reuse the memory there is no time limit, even if another task waits,
 * such as a kernel thread or an administrator's program that removes the device.  A process that
 * waits for its own pages can be killed.  After the death of the owner the waits last at most one
 * second in all.  After that time the packets still have references to the pages, but nobody writes
 * to these pages, because their owner is dead.  There are two exceptions: memory that the owner has
 * shared with other processes, and memory that another process has registered in the context of the
 * owner (ibv_import_device()).
 *
 * Context: process, sleeps.
 * Return: false if the wait has timed out because the owner has died.
 */
bool nhca_pageref_wait(struct nhca_txq *domain, struct nhca_pageref_owner *owner);

#endif /* NHCA_PAGEREF_H */
