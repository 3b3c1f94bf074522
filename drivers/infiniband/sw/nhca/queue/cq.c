// SPDX-License-Identifier: GPL-2.0
/*
 * Completion queues: posting of completions, completion events, moderation and overflow.
 */
#include <linux/hrtimer.h>
#include <linux/ktime.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/sched.h>
#include <linux/wait_bit.h>

#include "../compat.h"
#include "../observe/inject.h"
#include "arm.h"
#include "cq.h"

/* CQs of nhca_cq_serve_xrc(), of all devices; nhca_cq_stop() takes the mutex to remove a CQ */
static LIST_HEAD(xrc_cqs);
static DEFINE_MUTEX(xrc_mutex);

/* nhca_arm_age() runs each time this number of entries was produced; a power of two below 2^31 */
#define NHCA_CQ_AGE	BIT(29)

/* Return: the index of the oldest unpolled entry.  User space may have stored any value. */
static u32 cq_cons(const struct nhca_cq *cq)
{
	lockdep_assert_held(&cq->lock);
	/* Pairs with the consumer's store release of hdr->cons, after its reads of the entries. */
	return cq->user ? smp_load_acquire(&cq->ring.hdr->cons) : cq->cons;
}

/* Return: true if @index is after @cons; both are modulo 2^32. */
static bool cq_ahead(u32 index, u32 cons)
{
	return (s32)(index - cons) > 0;
}

/* Return: the indices for the functions of arm.h.  Indices of user space are read only once. */
static struct nhca_arm_ring cq_arm_ring(const struct nhca_cq *cq)
{
	struct nhca_arm_ring ring = { .prod = cq->prod };

	if (cq->arm_in_ring)
		ring.seq = READ_ONCE(cq->ring.hdr->arm_seq);
	ring.cons = cq_cons(cq) + cq->gap_len;
	return ring;
}

/* Publish arm.last_event_cons and arm.seq_acked, which describe the last event, in the ring. */
static void cq_publish(struct nhca_cq *cq)
{
	lockdep_assert_held(&cq->lock);
	if (!cq->arm_in_ring)
		return;
	WRITE_ONCE(cq->ring.hdr->last_event_cons, cq->arm.last_event_cons);
	WRITE_ONCE(cq->ring.hdr->arm_seq_acked, cq->arm.seq_acked);
}

/*
 * Do what a function of arm.h has requested by its return value @todo.
 * Return: true if the caller must call cq_raise() after it has released the lock.
 */
static bool cq_do(struct nhca_cq *cq, enum nhca_arm_todo todo)
{
	lockdep_assert_held(&cq->lock);
	switch (todo) {
	case NHCA_ARM_NOTHING:
		break;
	case NHCA_ARM_RAISE:
		cq_publish(cq);
		return true;
	case NHCA_ARM_TIMER:
		if (!hrtimer_is_queued(&cq->timer))
			hrtimer_start(&cq->timer, ns_to_ktime(cq->arm.period_us * NSEC_PER_USEC),
				      HRTIMER_MODE_REL_SOFT);
		break;
	case NHCA_ARM_BH:
		nhca_bh_queue(&cq->event);
		break;
	}
	return false;
}

/* Allow the consumer to arm the CQ in @ring, which is the CQ's ring, or becomes its ring. */
static void cq_enable_arm(const struct nhca_cq *cq, struct nhca_ring *ring)
{
	lockdep_assert_held(&cq->lock);
	if (!cq->arm_in_ring)
		return;
	ring->hdr->last_event_cons = cq->arm.last_event_cons;
	ring->hdr->arm_seq_acked = cq->arm.seq_acked;
	ring->hdr->arm_seq = READ_ONCE(cq->ring.hdr->arm_seq);
	ring->hdr->flags |= NHCA_RING_F_ARM_SEQ;
}

void nhca_cq_dump(struct nhca_cq *cq, struct nhca_res_cq *res)
{
	struct nhca_arm_ring ring;
	unsigned long flags;
	u8 armed;

	*res = (struct nhca_res_cq) { .size = sizeof(*res) };
	spin_lock_irqsave(&cq->lock, flags);
	/* `rdma resource' may find a CQ that is being destroyed, and has no ring any more */
	if (cq->arm.stopped)
		goto out;
	ring = cq_arm_ring(cq);
	armed = nhca_arm_kinds(&cq->arm, ring.seq);
	*res = (struct nhca_res_cq) {
		.size = sizeof(*res),
		.entries = nhca_ring_entries(&cq->ring),
		.produced = cq->prod,
		.armed = armed & IB_CQ_NEXT_COMP ? 1 : armed ? 2 : 0,
		.overrun = cq->overrun,
	};
	/* A hostile consumer may have stored any index. */
	res->unpolled = min(ring.prod - ring.cons, res->entries);
out:
	spin_unlock_irqrestore(&cq->lock, flags);
}

static void cq_raise(struct nhca_cq *cq)
{
	if (cq->ibcq.comp_handler)
		cq->ibcq.comp_handler(&cq->ibcq, cq->ibcq.cq_context);
}

static void cq_overrun(struct nhca_cq *cq)
{
	struct ib_event event = {
		.device = cq->ibcq.device,
		.element.cq = &cq->ibcq,
		.event = IB_EVENT_CQ_ERR,
	};

	if (cq->ibcq.event_handler)
		cq->ibcq.event_handler(&event, cq->ibcq.cq_context);
}

/* Raise the deferred event, if it is still due. */
static void cq_raise_deferred(struct nhca_cq *cq)
{
	unsigned long flags;
	bool fire;

	spin_lock_irqsave(&cq->lock, flags);
	fire = cq_do(cq, nhca_arm_late(&cq->arm, cq_arm_ring(cq)));
	spin_unlock_irqrestore(&cq->lock, flags);
	if (fire)
		cq_raise(cq);
}

/*
 * The function of nhca_cq.event.  Only this function calls the handlers of a kernel consumer.  The
 * handlers must not be called from the call chain of a verb such as post_send, nor by two CPUs at a
 * time (Documentation/infiniband/core_locking.rst).  Bottom-half work runs on one CPU at a time.
 */
static void cq_event(struct nhca_bh *bh)
{
	struct nhca_cq *cq = container_of(bh, struct nhca_cq, event);

	if (test_and_clear_bit(0, &cq->overrun_due))
		cq_overrun(cq);
	cq_raise_deferred(cq);
}

/* The moderation period is over: raise the deferred event, for a kernel consumer in cq_event(). */
static enum hrtimer_restart cq_period_over(struct hrtimer *timer)
{
	struct nhca_cq *cq = container_of(timer, struct nhca_cq, timer);

	if (cq->user)
		cq_raise_deferred(cq);
	else
		nhca_bh_queue(&cq->event);
	return HRTIMER_NORESTART;
}

void nhca_cq_init(struct nhca_cq *cq, bool user)
{
	mutex_init(&cq->resize);
	INIT_LIST_HEAD(&cq->xrc);
	spin_lock_init(&cq->lock);
	cq->user = user;
	nhca_arm_init(&cq->arm, user, 0);
	hrtimer_setup(&cq->timer, cq_period_over, CLOCK_MONOTONIC, HRTIMER_MODE_REL_SOFT);
	nhca_bh_init(&cq->event, cq_event);
}

void nhca_cq_stop(struct nhca_cq *cq)
{
	spin_lock_irq(&cq->lock);
	nhca_arm_stop(&cq->arm);
	spin_unlock_irq(&cq->lock);
	hrtimer_cancel(&cq->timer);
	nhca_bh_kill(&cq->event);
	/* no SRQ uses the CQ any more, so nhca_cq_serve_xrc() does not add the CQ now */
	if (!list_empty(&cq->xrc)) {
		mutex_lock(&xrc_mutex);
		list_del_init(&cq->xrc);
		mutex_unlock(&xrc_mutex);
	}
}

void nhca_cq_moderate(struct nhca_cq *cq, u16 count, u16 period_us)
{
	enum nhca_arm_todo todo;
	unsigned long flags;
	bool fire;

	spin_lock_irqsave(&cq->lock, flags);
	todo = nhca_arm_moderate(&cq->arm, cq_arm_ring(cq), count, period_us);
	/*
	 * The timer may run for the old period, even if no event is deferred now.  If this takes
	 * longer than the new period, cq_do() starts the timer again, now or for a later event.
	 */
	if (hrtimer_is_queued(&cq->timer) &&
	    hrtimer_get_remaining(&cq->timer) > ns_to_ktime(cq->arm.period_us * NSEC_PER_USEC))
		hrtimer_try_to_cancel(&cq->timer);
	fire = cq_do(cq, todo);
	spin_unlock_irqrestore(&cq->lock, flags);
	if (fire)
		cq_raise(cq);
}

static bool cq_full(struct nhca_cq *cq, const struct nhca_cqe *cqe)
{
	struct nhca_fault_hit s __uninitialized;

	lockdep_assert_held(&cq->lock);
	/*
	 * With an impossible consumer index the ring counts as full.  So a hostile consumer only
	 * loses its own completions.
	 */
	if (unlikely(cq->prod - cq_cons(cq) >= nhca_ring_entries(&cq->ring)))
		return true;
	return nhca_inject(to_nhca_dev(cq->ibcq.device), NHCA_AT_CQE, cqe->qp_num, 0, &s);
}

/* Add an entry to the ring, which is not full. */
static void cq_produce(struct nhca_cq *cq, const struct nhca_cqe *cqe)
{
	struct nhca_cqe *slot = nhca_ring_slot(&cq->ring, cq->prod);

	lockdep_assert_held(&cq->lock);
	*slot = *cqe;
	cq->prod++;
	/* Pairs with the consumer's load acquire of hdr->prod: the consumer then sees the entry. */
	smp_store_release(&cq->ring.hdr->prod, cq->prod);
	if (cq->arm_in_ring) {
		/*
		 * Pairs with the full barrier of a consumer that stores arm_seq and then loads
		 * prod: the consumer sees this entry, or cq_arm_ring() sees this arm_seq.
		 */
		smp_mb();
	}
	if (unlikely(!(cq->prod % NHCA_CQ_AGE))) {
		nhca_arm_age(&cq->arm, cq->prod, nhca_ring_entries(&cq->ring));
		cq_publish(cq);
	}
}

int nhca_cq_post(struct nhca_cq *cq, struct nhca_cqe *cqe, bool solicited)
{
	u8 kind = IB_CQ_NEXT_COMP;
	unsigned long flags;
	bool fire;

	/* an unsuccessful completion counts as solicited (IBTA 11.4.2.2) */
	if (solicited || cqe->status != IB_WC_SUCCESS)
		kind |= IB_CQ_SOLICITED;
	cqe->timestamp = cq->timestamps ? ktime_get_raw_ns() : 0;
	if (cq->user)
		cqe->kernel = 0;

	spin_lock_irqsave(&cq->lock, flags);
	if (unlikely(cq_full(cq, cqe))) {
		fire = !cq->overrun && !cq->arm.stopped;
		cq->overrun = true;
		spin_unlock_irqrestore(&cq->lock, flags);
		if (fire && cq->user) {
			cq_overrun(cq);
		} else if (fire) {
			set_bit(0, &cq->overrun_due);
			nhca_bh_queue(&cq->event);
		}
		return -ENOSPC;
	}

	cq_produce(cq, cqe);
	fire = cq_do(cq, nhca_arm_completion(&cq->arm, cq_arm_ring(cq), kind));
	spin_unlock_irqrestore(&cq->lock, flags);

	if (fire)
		cq_raise(cq);
	return 0;
}

bool nhca_cq_arm(struct nhca_cq *cq, u8 kind)
{
	struct nhca_arm_ring ring;
	unsigned long flags;
	bool fire;

	spin_lock_irqsave(&cq->lock, flags);
	ring = cq_arm_ring(cq);
	fire = cq_do(cq, nhca_arm_request(&cq->arm, ring, kind));
	spin_unlock_irqrestore(&cq->lock, flags);

	if (fire)
		cq_raise(cq);
	return ring.prod != ring.cons;
}

void nhca_cq_enable_arm(struct nhca_cq *cq)
{
	spin_lock_irq(&cq->lock);
	cq_enable_arm(cq, &cq->ring);
	spin_unlock_irq(&cq->lock);
}

void nhca_cq_move_start(struct nhca_cq *cq, struct nhca_cq_move *m, struct nhca_ring *ring)
{
	unsigned long flags;

	m->ring = ring;
	spin_lock_irqsave(&cq->lock, flags);
	m->done = cq_cons(cq);
	m->compactions = cq->compactions;
	spin_unlock_irqrestore(&cq->lock, flags);
}

/*
 * Copy entries @m->done to @end - 1.  The copy needs no lock: the kernel changes unpolled entries
 * only in nhca_cq_forget_qp(), and nhca_cq_move_step() then copies all entries again.
 */
static void cq_move_copy(const struct nhca_cq *cq, struct nhca_cq_move *m, u32 end)
{
	for (; m->done != end; m->done++)
		memcpy(nhca_ring_slot(m->ring, m->done), nhca_ring_slot(&cq->ring, m->done),
		       sizeof(struct nhca_cqe));
}

/* Copy the remaining entries, at most NHCA_CQ_STEP, and exchange the rings. */
static void cq_move_end(struct nhca_cq *cq, struct nhca_cq_move *m, u32 cons)
{
	lockdep_assert_held(&cq->lock);
	cq_move_copy(cq, m, cq->prod);
	m->ring->hdr->cons = cons;
	m->ring->hdr->prod = cq->prod;
	cq_enable_arm(cq, m->ring);
	swap(cq->ring, *m->ring);
	cq->ibcq.cqe = nhca_ring_entries(&cq->ring);
}

int nhca_cq_move_step(struct nhca_cq *cq, struct nhca_cq_move *m)
{
	u32 room = min(nhca_ring_entries(m->ring), nhca_ring_entries(&cq->ring));
	unsigned long flags;
	u32 cons, end;
	int err;

	spin_lock_irqsave(&cq->lock, flags);
	cons = cq_cons(cq);
	end = cq->prod;
	/* Restart if entries have moved, or the consumer has polled entries that are not copied. */
	if (m->compactions != cq->compactions || cq_ahead(cons, m->done)) {
		m->compactions = cq->compactions;
		m->done = cons;
	}
	err = end - cons > room || end - m->done > room ? -EINVAL : -EAGAIN;
	if (err == -EAGAIN && end - m->done <= NHCA_CQ_STEP) {
		cq_move_end(cq, m, cons);
		err = 0;
	}
	spin_unlock_irqrestore(&cq->lock, flags);

	if (err == -EAGAIN) {
		cq_move_copy(cq, m, end);
		cond_resched();
	}
	return err;
}

struct nhca_cqe *nhca_cq_next(struct nhca_cq *cq)
{
	lockdep_assert_held(&cq->lock);
	if (unlikely(cq->gap_len) && cq->cons == cq->gap) {
		cq->cons += cq->gap_len;
		cq->gap_len = 0;
	}
	if (cq->cons == cq->prod)
		return NULL;
	return nhca_ring_slot(&cq->ring, cq->cons++);
}

/*
 * Process the entries from the newest to the oldest.  The index of an entry that stays increases by
 * the number of newer entries that were removed.  So entries that QPs add between two steps do not
 * move, and the oldest entries, which a consumer may poll between two steps, move last.
 */
bool nhca_cq_forget_step(struct nhca_cq *cq, struct ib_qp *ibqp)
{
	struct nhca_cqe *from, *to;
	u32 n;

	lockdep_assert_held(&cq->lock);
	cq->compactions++;
	/* a consumer may have polled all entries before the gap, and skipped the gap */
	for (n = 0; n < NHCA_CQ_STEP && cq_ahead(cq->gap, cq->cons); n++) {
		from = nhca_ring_slot(&cq->ring, --cq->gap);
		to = nhca_ring_slot(&cq->ring, cq->gap + cq->gap_len);
		if (from->kernel == (uintptr_t)ibqp)
			cq->gap_len++;
		else if (to != from)
			*to = *from;
	}
	if (cq_ahead(cq->gap, cq->cons))
		return true;
	cq->cons += cq->gap_len;
	cq->gap_len = 0;
	nhca_ring_release(&cq->ring, cq->cons);
	return false;
}

void nhca_cq_forget_qp(struct nhca_cq *cq, struct ib_qp *ibqp)
{
	unsigned long flags;

	if (cq->user)
		return;

	spin_lock_irqsave(&cq->lock, flags);
	while (cq->forgets) {
		spin_unlock_irqrestore(&cq->lock, flags);
		wait_var_event(&cq->forgets, !READ_ONCE(cq->forgets));
		spin_lock_irqsave(&cq->lock, flags);
	}
	cq->forgets = true;
	cq->gap = cq->prod;
	while (nhca_cq_forget_step(cq, ibqp)) {
		spin_unlock_irqrestore(&cq->lock, flags);
		cond_resched();
		spin_lock_irqsave(&cq->lock, flags);
	}
	WRITE_ONCE(cq->forgets, false);
	spin_unlock_irqrestore(&cq->lock, flags);
	/* Pairs with the barrier of a waiter that enters the wait queue, then reads cq->forgets. */
	smp_mb();
	wake_up_var(&cq->forgets);
}

void nhca_cq_serve_xrc(struct nhca_cq *cq)
{
	mutex_lock(&xrc_mutex);
	if (list_empty(&cq->xrc))
		list_add_tail(&cq->xrc, &xrc_cqs);
	mutex_unlock(&xrc_mutex);
}

void nhca_cq_forget_xrc(struct ib_qp *ibqp)
{
	struct nhca_cq *cq;

	mutex_lock(&xrc_mutex);
	list_for_each_entry(cq, &xrc_cqs, xrc)
		if (cq->ibcq.device == ibqp->device)
			nhca_cq_forget_qp(cq, ibqp);
	mutex_unlock(&xrc_mutex);
}
