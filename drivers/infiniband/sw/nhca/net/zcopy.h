/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Zero-copy references: consumer pages that packets carry.
 *
 * A reference is a ubuf_info, as of MSG_ZEROCOPY: the stack hands it on when it clones or segments
 * an skb, and drops it when the last fragment is gone or was copied.  The skb's destructor, which
 * the stack calls early (skb_orphan()), says nothing about pages.  A flow keeps its references in
 * the order of transmission, so that a completion can wait for those of its request, and a device
 * is the domain that a deregistration waits for.
 *
 * Sends of a QP complete, channel writes are noticed, cancelled and flushed, and QPs, channels,
 * rCxts, regions and job memory are given up, when the references are released.
 */
#ifndef NHCA_NET_ZCOPY_H
#define NHCA_NET_ZCOPY_H

#include <linux/list.h>
#include <linux/skbuff.h>
#include <linux/spinlock.h>

struct nhca_flow;
struct nhca_txq;

/**
 * struct nhca_zcopy - one reference: the consumer pages of one batch or of a few small ones
 * @uarg:    counts the builder and the skbs that carry the pages
 * @ref:     one for all that @uarg counts, and one for the charge of an skb whose own fragments
 *           are such pages (flow.c)
 * @flow:    whose; counted
 * @packets: charged to @flow by that skb
 * @seq:     position in @flow, counting up
 * @gen:     generation in which the reference began; see nhca_zcopy_wait()
 * @list:    in nhca_zcopy_queue.list, until the pages are released
 */
struct nhca_zcopy {
	struct ubuf_info uarg;
	refcount_t ref;
	struct nhca_flow *flow;
	u32 packets;
	u32 seq;
	u64 gen;
	struct list_head list;
};

/**
 * struct nhca_zcopy_queue - the references of a flow that are not released
 * @lock:   irqsave; protects the fields below it
 * @list:   struct nhca_zcopy, oldest first
 * @seq:    of the newest reference; written by the flow's send engine only
 * @waits:  a completion waits: kick the flow at the next release
 * @node:   among those of all flows; RCU
 * @domain: the flow's device
 */
struct nhca_zcopy_queue {
	/* list, seq, waits */
	spinlock_t lock;
	struct list_head list;
	u32 seq;
	bool waits;
	struct list_head node;
	struct nhca_txq *domain;
};

/**
 * nhca_zcopy_queue_add - begin a flow's queue
 * nhca_zcopy_queue_del - end it: it is empty, and its memory stays for an RCU grace period
 * Context: any.
 */
void nhca_zcopy_queue_add(struct nhca_zcopy_queue *q, struct nhca_txq *domain);
void nhca_zcopy_queue_del(struct nhca_zcopy_queue *q);

/**
 * nhca_zcopy_new - begin a reference
 * @flow: its send engine is the only one that begins references
 * Context: BH disabled, live section; before the first page is added.
 * Return: the reference, the builder's; NULL if there is no memory: then the payload is copied.
 */
struct nhca_zcopy *nhca_zcopy_new(struct nhca_flow *flow);

/**
 * nhca_zcopy_attach - have an skb carry pages of a reference
 * @skb: among its fragments are such pages, and none of another reference
 * Context: any; the caller has a reference.
 */
static inline void nhca_zcopy_attach(struct sk_buff *skb, struct nhca_zcopy *z)
{
	skb_zcopy_set(skb, &z->uarg, NULL);
}

/**
 * nhca_zcopy_of - reference of the consumer pages among an skb's own fragments
 * @skb: of this driver
 * Context: any.  Return: the reference, the skb's; NULL if there are no such pages.
 */
static inline struct nhca_zcopy *nhca_zcopy_of(struct sk_buff *skb)
{
	struct ubuf_info *uarg = skb_zcopy(skb);

	return uarg ? container_of(uarg, struct nhca_zcopy, uarg) : NULL;
}

/* the builder is done with the reference; NULL is fine; any context */
void nhca_zcopy_put(struct nhca_zcopy *z);

/* drop one of @z->ref; any context */
void nhca_zcopy_unref(struct nhca_zcopy *z);

/**
 * nhca_zcopy_seq - number of the newest reference of a flow
 * Context: the flow's send engine.
 */
u32 nhca_zcopy_seq(const struct nhca_flow *flow);

/**
 * nhca_zcopy_released - are all references up to @seq released?
 * @flow: if they are not, it is kicked at the next release
 * Context: any.
 */
bool nhca_zcopy_released(struct nhca_flow *flow, u32 seq);

/**
 * nhca_zcopy_wait_flow - wait until a flow has no reference
 * @flow: its send engine begins none any more
 * @dying: as nhca_zcopy_wait()
 *
 * As nhca_zcopy_wait().
 * Context: process, sleeps.  Return: false if it was given up.
 */
bool nhca_zcopy_wait_flow(struct nhca_flow *flow, unsigned long *dying);

/**
 * nhca_zcopy_wait - wait until the references that a device has now are released
 * @domain: the device; NULL: all devices
 * @dying:  the process that owns the pages: jiffies up to which all its waits together last when it
 *          dies, 0 before the first of them; NULL: a kernel consumer owns them
 *
 * Later references are not waited for: the caller has closed the keys that lead to the pages, and
 * has waited for live sections.
 *
 * There is no time limit while somebody is there who could reuse the memory: a kernel consumer
 * waits, and so does a process, which can be killed.  A process that dies, and cleanup after one in
 * a kernel thread, waits for at most a second in all: the packets' references keep the pages then,
 * and nobody writes to them any more, because their owner is gone.
 *
 * Context: process, sleeps.  Return: false if it was given up.
 */
bool nhca_zcopy_wait(struct nhca_txq *domain, unsigned long *dying);

#endif /* NHCA_NET_ZCOPY_H */
