/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Receive work queues: the receive queue of a QP or of an SRQ.
 */
#ifndef NHCA_RWQ_H
#define NHCA_RWQ_H

#include "ring.h"

/**
 * struct nhca_rwr - a receive work request that the kernel has copied and checked
 * @wr_id:   wr_id for the completion
 * @length:  sum of the SGEs' lengths in bytes, at most U32_MAX
 * @num_sge: number of elements, at most max_sge of the queue
 * @clock:   nhca_trace_clock() when the request was fetched for a message; 0: the trace event was
 *           not enabled, or the request was fetched to be flushed
 * @sge:     copies of the elements; their L_Keys are checked when data is placed
 */
struct nhca_rwr {
	u64 wr_id;
	u32 length;
	u32 num_sge;
	u64 clock;
	struct nhca_sge sge[];
};

/**
 * struct nhca_rwq - a receive ring and the kernel's indices
 * @ring:    ring of struct nhca_recv_wqe
 * @lock:    irqsave; protects @ring, @cons and @prod, and the posting of kernel consumers
 * @cons:    number of entries fetched, modulo 2^32
 * @prod:    kernel consumers: number of entries posted, modulo 2^32
 * @max_wr:  granted number of entries
 * @max_sge: granted maximum number of elements of an entry
 */
struct nhca_rwq {
	struct nhca_ring ring;
	spinlock_t lock;	/* irqsave; @ring, @cons, @prod */
	u32 cons;
	u32 prod;
	u32 max_wr;
	u32 max_sge;
};

/**
 * nhca_rwq_init - initialize a receive queue
 * @q: filled in; @q->max_wr and @q->max_sge are set to the granted values
 * @max_wr: number of requests; rounded up to a power of two
 * @max_sge: maximum number of elements of a request
 * @user: as for nhca_ring_alloc()
 * Context: process, may sleep.
 * Return: 0; -EINVAL: @max_sge exceeds NHCA_MAX_SGE; errors of nhca_ring_alloc().
 */
int nhca_rwq_init(struct nhca_rwq *q, u32 max_wr, u32 max_sge, struct nhca_ring_user *user);

/**
 * nhca_rwq_free - free the ring of a receive queue
 * @q: from nhca_rwq_init(), or zeroed
 * Context: process, may sleep.
 */
void nhca_rwq_free(struct nhca_rwq *q);

/**
 * nhca_rwq_fetch - copy out and check the next receive request
 * @q: the queue
 * @rwr: filled in; has room for @q->max_sge elements
 *
 * Context: any; takes @q->lock.
 * Return: 0; -ENOENT: no request is posted; -EPROTO: user space has stored an impossible producer
 * index; -EINVAL: the request has more than @q->max_sge elements, or an element is longer than
 * NHCA_MAX_MSG_SIZE.  With -EINVAL the request was consumed, and the function has set @rwr->wr_id.
 */
int nhca_rwq_fetch(struct nhca_rwq *q, struct nhca_rwr *rwr);

/**
 * nhca_rwq_post - post a receive request of a kernel consumer
 * @q: the queue
 * @wr: the request; the function does not post the requests that follow in the list
 * Context: any; takes @q->lock.
 * Return: 0; -ENOMEM: the queue is full; -EINVAL: @wr has more than @q->max_sge elements, or a
 * negative number of them.
 */
int nhca_rwq_post(struct nhca_rwq *q, const struct ib_recv_wr *wr);

/**
 * nhca_rwq_drop - discard all posted requests without completions
 * @q: the queue of a QP that changes to RESET
 *
 * The function also clears NHCA_RING_F_NEED_DOORBELL.
 * Context: any; takes @q->lock.
 */
void nhca_rwq_drop(struct nhca_rwq *q);

/**
 * nhca_rwq_level - count the requests that are posted and not fetched
 * @q: the queue
 * Context: any; takes @q->lock.
 * Return: the number; 0 if user space has stored an impossible producer index.
 */
u32 nhca_rwq_level(struct nhca_rwq *q);

/**
 * struct nhca_rwq_move - state of a move of a receive queue to another ring
 * @ring: the new ring, empty; after the last step, the old ring
 * @done: entries before this index have been copied to the new ring
 * @budget: number of entries that may still be copied
 */
struct nhca_rwq_move {
	struct nhca_ring *ring;
	u32 done;
	u32 budget;
};

/* Maximum number of requests that are copied with the queue's lock held and interrupts off */
#define NHCA_RWQ_STEP	64
/*
 * Maximum number of times that a move copies a whole ring.  Usually a move copies each entry only
 * once, also entries that are posted during the move.
 */
#define NHCA_RWQ_COPIES	16

/**
 * nhca_rwq_move_start - begin to move the posted requests of a queue to another ring
 * @q:    the queue
 * @m:    filled in
 * @ring: the new ring, empty, with the same stride
 *
 * Producer and consumer index keep their values.  User space does not post during the move: the
 * provider holds its SRQ lock from before the command until it has mapped the new ring.
 * Context: process.
 */
void nhca_rwq_move_start(struct nhca_rwq *q, struct nhca_rwq_move *m, struct nhca_ring *ring);

/**
 * nhca_rwq_move_step - copy requests to the new ring, and exchange the rings in the last step
 * @q: the queue
 * @m: from nhca_rwq_move_start()
 *
 * Only the last step copies requests with the queue's lock held, at most NHCA_RWQ_STEP.  During the
 * other steps, QPs may fetch requests and a kernel consumer may post.
 * Context: process; one move of a queue at a time: the caller has held nhca_srq.resize since before
 * nhca_rwq_move_start().
 * Return: 0: the queue has the new ring; -EAGAIN: the caller has to call the function again;
 * -EINVAL: the new ring is too small for the posted requests, or user space has stored an
 * impossible producer index; -EBUSY: @m->budget is used up, because user space has changed its
 * producer index again and again.
 */
int nhca_rwq_move_step(struct nhca_rwq *q, struct nhca_rwq_move *m);

#endif /* NHCA_RWQ_H */
