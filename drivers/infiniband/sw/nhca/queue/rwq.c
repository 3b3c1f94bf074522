// SPDX-License-Identifier: GPL-2.0
/*
 * Receive work queues: posting by kernel consumers, and fetching of posted requests.
 */
#include <linux/string.h>

#include "../nhca.h"
#include "rwq.h"

int nhca_rwq_init(struct nhca_rwq *q, u32 max_wr, u32 max_sge, struct nhca_ring_user *user)
{
	int err;

	if (max_sge > NHCA_MAX_SGE)
		return -EINVAL;

	memset(q, 0, sizeof(*q));
	spin_lock_init(&q->lock);
	err = nhca_ring_alloc(&q->ring, max(max_wr, 1U), nhca_recv_stride(max_sge), user);
	if (err)
		return err;
	q->max_wr = nhca_ring_entries(&q->ring);
	q->max_sge = max_sge;
	return 0;
}

void nhca_rwq_free(struct nhca_rwq *q)
{
	struct nhca_ring ring = q->ring;

	/* a queue without a ring was not initialized */
	if (!ring.hdr)
		return;
	/* nhca_rwq_level() may still be called, and must find no ring or a whole one */
	spin_lock_irq(&q->lock);
	memset(&q->ring, 0, sizeof(q->ring));
	spin_unlock_irq(&q->lock);
	nhca_ring_free(&ring);
}

/*
 * Check the element lengths of a copied request and store their sum.
 * Return: 0; -EINVAL: an element is longer than NHCA_MAX_MSG_SIZE.
 */
static int rwr_check(struct nhca_rwr *rwr)
{
	u64 sum = 0;
	u32 i;

	for (i = 0; i < rwr->num_sge; i++) {
		if (rwr->sge[i].length > NHCA_MAX_MSG_SIZE)
			return -EINVAL;
		sum += rwr->sge[i].length;
	}
	rwr->length = min_t(u64, sum, U32_MAX);
	return 0;
}

int nhca_rwq_fetch(struct nhca_rwq *q, struct nhca_rwr *rwr)
{
	const struct nhca_recv_wqe *wqe;
	unsigned long flags;
	u32 num_sge;
	int n;

	rwr->length = 0;
	rwr->num_sge = 0;

	spin_lock_irqsave(&q->lock, flags);
	n = nhca_ring_produced(&q->ring, q->cons);
	if (unlikely(n <= 0)) {
		spin_unlock_irqrestore(&q->lock, flags);
		return n ? -EPROTO : -ENOENT;
	}

	/* User space may change the entry at any time, so each field is read once. */
	wqe = nhca_ring_slot(&q->ring, q->cons);
	rwr->wr_id = READ_ONCE(wqe->wr_id);
	num_sge = READ_ONCE(wqe->num_sge);
	if (likely(num_sge <= q->max_sge)) {
		nhca_sges_copy(rwr->sge, wqe->sge, num_sge);
		rwr->num_sge = num_sge;
	}
	nhca_ring_release(&q->ring, ++q->cons);
	spin_unlock_irqrestore(&q->lock, flags);

	if (unlikely(num_sge > q->max_sge))
		return -EINVAL;
	return rwr_check(rwr);
}

int nhca_rwq_post(struct nhca_rwq *q, const struct ib_recv_wr *wr)
{
	struct nhca_recv_wqe *wqe;
	unsigned long flags;
	int err = 0, i;

	if (wr->num_sge < 0 || wr->num_sge > q->max_sge)
		return -EINVAL;

	spin_lock_irqsave(&q->lock, flags);
	if (q->prod - q->cons >= nhca_ring_entries(&q->ring)) {
		err = -ENOMEM;
		goto out;
	}
	wqe = nhca_ring_slot(&q->ring, q->prod);
	wqe->wr_id = wr->wr_id;
	wqe->num_sge = wr->num_sge;
	wqe->reserved = 0;
	for (i = 0; i < wr->num_sge; i++) {
		wqe->sge[i].addr = wr->sg_list[i].addr;
		wqe->sge[i].length = wr->sg_list[i].length;
		wqe->sge[i].lkey = wr->sg_list[i].lkey;
	}
	/* Pairs with the load acquire of hdr->prod in nhca_ring_produced(). */
	smp_store_release(&q->ring.hdr->prod, ++q->prod);
out:
	spin_unlock_irqrestore(&q->lock, flags);
	return err;
}

void nhca_rwq_drop(struct nhca_rwq *q)
{
	unsigned long flags;

	spin_lock_irqsave(&q->lock, flags);
	WRITE_ONCE(q->ring.hdr->flags, 0);
	q->cons = READ_ONCE(q->ring.hdr->prod);
	nhca_ring_release(&q->ring, q->cons);
	spin_unlock_irqrestore(&q->lock, flags);
}

void nhca_rwq_move_start(struct nhca_rwq *q, struct nhca_rwq_move *m, struct nhca_ring *ring)
{
	unsigned long flags;

	m->ring = ring;
	m->budget = NHCA_RWQ_COPIES * nhca_ring_entries(&q->ring) + NHCA_RWQ_COPIES * NHCA_RWQ_STEP;
	spin_lock_irqsave(&q->lock, flags);
	m->done = q->cons;
	spin_unlock_irqrestore(&q->lock, flags);
}

/*
 * Copy requests @m->done to @end - 1.  The copy needs no lock: a kernel consumer changes a posted
 * entry only after a QP has fetched the entry, and the copy of a fetched entry is not used.  User
 * space may change entries at any time; nhca_rwq_fetch() checks them later.
 */
static void rwq_move_copy(const struct nhca_rwq *q, struct nhca_rwq_move *m, u32 end)
{
	m->budget -= min(end - m->done, m->budget);
	for (; m->done != end; m->done++)
		memcpy(nhca_ring_slot(m->ring, m->done), nhca_ring_slot(&q->ring, m->done),
		       q->ring.stride);
}

/* Copy the remaining requests, at most NHCA_RWQ_STEP, and exchange the rings. */
static void rwq_move_end(struct nhca_rwq *q, struct nhca_rwq_move *m, u32 end)
{
	lockdep_assert_held(&q->lock);
	rwq_move_copy(q, m, end);
	m->ring->hdr->cons = q->cons;
	m->ring->hdr->prod = end;
	swap(q->ring, *m->ring);
	q->max_wr = nhca_ring_entries(&q->ring);
}

int nhca_rwq_move_step(struct nhca_rwq *q, struct nhca_rwq_move *m)
{
	unsigned long flags;
	u32 end;
	int err;
	int n;

	spin_lock_irqsave(&q->lock, flags);
	n = nhca_ring_produced(&q->ring, q->cons);
	end = q->cons + n;
	err = n < 0 || n > nhca_ring_entries(m->ring) ? -EINVAL : -EAGAIN;
	/* Restart if QPs have fetched requests that are not copied, or user space set prod back. */
	if (err == -EAGAIN && end - m->done > (u32)n)
		m->done = q->cons;
	if (err == -EAGAIN && end - m->done <= NHCA_RWQ_STEP) {
		rwq_move_end(q, m, end);
		err = 0;
	}
	spin_unlock_irqrestore(&q->lock, flags);

	if (err == -EAGAIN && !m->budget)
		return -EBUSY;
	if (err == -EAGAIN) {
		rwq_move_copy(q, m, end);
		cond_resched();
	}
	return err;
}

u32 nhca_rwq_level(struct nhca_rwq *q)
{
	unsigned long flags;
	int n = 0;

	spin_lock_irqsave(&q->lock, flags);
	/* `rdma resource' may find an SRQ that is being destroyed */
	if (q->ring.hdr)
		n = nhca_ring_produced(&q->ring, q->cons);
	spin_unlock_irqrestore(&q->lock, flags);
	return max(n, 0);
}
