/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Receive work queues: the RQ of a QP, or an SRQ.
 */
#ifndef NHCA_RWQ_H
#define NHCA_RWQ_H

#include "ring.h"

/**
 * struct nhca_rwr - a receive work request that the kernel has copied and checked
 * @wr_id:   for the completion
 * @length:  sum of the SGEs' lengths, bytes (saturates at U32_MAX)
 * @num_sge: at most the queue's max_sge
 * @clock:   its taker's: when it was taken
 * @sge:     the copy; keys are checked when used
 */
struct nhca_rwr {
	u64 wr_id;
	u32 length;
	u32 num_sge;
	u64 clock;
	struct nhca_sge sge[];
};

/**
 * struct nhca_rwq - receive ring and the kernel's place in it
 * @ring:    of struct nhca_recv_wqe
 * @lock:    irqsave; @cons, and for kernel rings producing
 * @cons:    entries taken
 * @prod:    kernel rings only: entries posted
 * @max_wr, @max_sge: as granted to the owner
 */
struct nhca_rwq {
	struct nhca_ring ring;
	spinlock_t lock;	/* irqsave; @cons, @prod */
	u32 cons;
	u32 prod;
	u32 max_wr;
	u32 max_sge;
};

/**
 * nhca_rwq_init - allocate the ring for @max_wr requests of @max_sge elements
 * @user: see nhca_ring_alloc()
 * Context: process.  Return: 0 or -errno.  *@max_wr and *@max_sge are set to
 * what was granted (entries may be more).
 */
int nhca_rwq_init(struct nhca_rwq *q, u32 max_wr, u32 max_sge, struct nhca_ring_user *user);
void nhca_rwq_free(struct nhca_rwq *q);

/**
 * nhca_rwq_fetch - copy out and check the next receive request
 * @q: the queue
 * @rwr: room for @q->max_sge elements
 *
 * Return: 0, -ENOENT if nothing is posted, -EPROTO if user space broke the
 * ring's rules, -EINVAL if the entry is bad (it is consumed; @rwr->wr_id is
 * valid).
 * Context: any; takes @q->lock.
 */
int nhca_rwq_fetch(struct nhca_rwq *q, struct nhca_rwr *rwr);

/**
 * nhca_rwq_post - post for a kernel consumer
 * Context: any; takes @q->lock.
 * Return: 0; -ENOMEM if full; -EINVAL for too many elements.
 */
int nhca_rwq_post(struct nhca_rwq *q, const struct ib_recv_wr *wr);

/* forget all that is posted, in silence: a QP goes to RESET; any context */
void nhca_rwq_drop(struct nhca_rwq *q);

/* number of requests that are posted and not taken; a hostile ring counts as 0 */
u32 nhca_rwq_level(struct nhca_rwq *q);

#endif /* NHCA_RWQ_H */
