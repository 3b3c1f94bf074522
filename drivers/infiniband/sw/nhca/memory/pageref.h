/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Page references: packets in the network stack refer to pages of a consumer.
 *
 * net/zcopy.c begins and ends the references.  pageref.c counts them, so that other code can wait
 * for their release.  Each region counts the references to its own pages, because a deregistration
 * waits for them.  Each flow, that is the packets of one QP or channel (net/flow.c), has a queue of
 * its references in the order of transmission.  So a completion can wait for the references of its
 * request.
 */
#ifndef NHCA_PAGEREF_H
#define NHCA_PAGEREF_H

#include <linux/atomic.h>
#include <linux/cache.h>
#include <linux/list.h>
#include <linux/spinlock.h>
#include <linux/types.h>

#include "../user.h"

struct nhca_dev;

/* maximum number of regions whose pages one reference covers */
#define NHCA_PAGEREF_REGIONS	4

/**
 * struct nhca_pageref_region - the references to the pages of one region
 * @count: number of references, plus 1 while the region exists
 *
 * The first reference allocates the struct.  Each struct has its own cache line, so that CPUs that
 * send from different regions do not write to the same cache line.
 */
struct nhca_pageref_region {
	atomic_t count;
} ____cacheline_aligned;

/**
 * struct nhca_pageref - a reference to pages of a consumer
 * @list:    in nhca_pageref_queue.list until the pages are released
 * @seq:     position in the queue, counting up
 * @n:       number of elements of @regions
 * @regions: the regions of the pages; each counts the reference
 */
struct nhca_pageref {
	struct list_head list;
	u32 seq;
	u32 n;
	struct nhca_pageref_region *regions[NHCA_PAGEREF_REGIONS];
};

/**
 * struct nhca_pageref_queue - the references of a flow that are not released
 * @lock:    irqsave; protects the other members
 * @list:    struct nhca_pageref, oldest first
 * @seq:     nhca_pageref.seq of the newest reference
 * @waits:   a completion waits: kick the flow at the next release
 * @waiters: number of tasks in nhca_pageref_wait_queue()
 */
struct nhca_pageref_queue {
	/* protects the other members */
	spinlock_t lock;
	struct list_head list;
	u32 seq;
	bool waits;
	u32 waiters;
};

/**
 * nhca_pageref_owner_get - find or make the record of the calling process
 * @mm: its address space
 *
 * All contexts and regions of a process have one record, and thus one limit for their waits.  There
 * are two exceptions, in which each call makes a new record: there is no memory to store the
 * record, or a process that shares the address space (CLONE_VM) has stored one before.
 * Context: process, sleeps.
 * Return: a counted reference; NULL: no memory.
 */
struct nhca_pageref_owner *nhca_pageref_owner_get(struct mm_struct *mm);

/**
 * nhca_pageref_owner_hold - take another reference
 * @owner: the record or NULL; the caller prevents the release of the last reference
 * Context: any.
 * Return: @owner.
 */
static inline struct nhca_pageref_owner *nhca_pageref_owner_hold(struct nhca_pageref_owner *owner)
{
	if (owner)
		refcount_inc(&owner->ref);
	return owner;
}

/**
 * nhca_pageref_owner_put - release a reference
 * @owner: the record or NULL; all waits of the caller that have used the record have ended
 * Context: process, sleeps.
 */
void nhca_pageref_owner_put(struct nhca_pageref_owner *owner);

/**
 * nhca_pageref_queue_init - initialize the queue of a flow
 * @q: the queue
 * Context: any.
 */
void nhca_pageref_queue_init(struct nhca_pageref_queue *q);

/**
 * nhca_pageref_begin - begin a reference
 * @q:   queue of the flow; the flow's requester, responder or send engine calls this function
 * @ref: the reference
 * Context: BH disabled, live section; before the first page is added to an skb.
 */
void nhca_pageref_begin(struct nhca_pageref_queue *q, struct nhca_pageref *ref);

/**
 * nhca_pageref_add - let a reference cover pages of a region
 * @ref:    a reference that is not released
 * @region: the region's pointer to its count
 * Context: live section in which the region's key was checked.
 * Return: false if @ref covers NHCA_PAGEREF_REGIONS other regions already, or if there is no
 * memory: the caller must copy the bytes.
 */
bool nhca_pageref_add(struct nhca_pageref *ref, struct nhca_pageref_region **region);

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
 * @dev:   device of the flow
 * @owner: as nhca_pageref_wait()
 * Context: process, sleeps.
 * Return: true: the references are released; false: the time limit of nhca_pageref_wait() has ended
 * the wait.
 */
bool nhca_pageref_wait_queue(struct nhca_pageref_queue *q, struct nhca_dev *dev,
			     struct nhca_pageref_owner *owner);

/**
 * nhca_pageref_wait - wait until the references to a region's pages are released; put @region
 * @region: earlier value of the region's pointer to its count; the pointer is NULL now.  The caller
 *          has closed the keys that lead to the pages, and has waited for live sections.  NULL:
 *          there were no references
 * @dev:    device of the region
 * @owner:  the process that owns the pages; NULL: a kernel consumer owns them
 *
 * If @owner is NULL, the wait has no time limit and cannot be killed.  Otherwise a process waits
 * without a time limit until it is killed, because it could reuse the memory.  A task that was
 * killed or exits, and a kernel thread, wait with a time limit.
 *
 * After the death of the owner, the limit is one second for all waits of these tasks together.
 * After that time the packets still hold references to the pages, and nobody writes to these pages,
 * because their owner is gone.  There are two exceptions, in which another process may still write:
 * memory that the owner shares with other processes, and memory that another process has registered
 * in the owner's context (ibv_import_device()).
 *
 * While the owner still runs, a kernel thread that removes the device, or a task of another process
 * that was killed or exits, waits at most NHCA_PAGEREF_REMOVAL for all objects of the device
 * together.  Without this limit, a process could prevent the removal of a network namespace by
 * packets that a netdev in another namespace does not send.
 *
 * Context: process, sleeps.
 * Return: true: the references are released; false: a time limit has ended the wait.
 */
bool nhca_pageref_wait(struct nhca_pageref_region *region, struct nhca_dev *dev,
		       struct nhca_pageref_owner *owner);

/* limit in jiffies, after the death of an owner, for all waits for its references together */
#define NHCA_PAGEREF_DYING	HZ
/*
 * limit in jiffies for the waits of a device's removal: far above the time in which a netdev sends
 * its queue.  The kernel also waits 10 s before it reports that a netdev is still in use.
 */
#define NHCA_PAGEREF_REMOVAL	(10 * HZ)

#endif /* NHCA_PAGEREF_H */
