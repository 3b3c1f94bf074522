// SPDX-License-Identifier: GPL-2.0
/*
 * Completion queues: posting of completions, completion events, moderation and overflow.
 */
#include <linux/hrtimer.h>
#include <linux/ktime.h>
#include <linux/sched.h>
#include <linux/wait_bit.h>

#include "../compat.h"
#include "../observe/inject.h"
#include "cq.h"

/* cq_clamp() runs each time this number of entries was produced: a power of two, below 2^31 */
#define NHCA_CQ_CLAMP	BIT(29)

static_assert(NHCA_ARM_SOLICITED == (u32)IB_CQ_SOLICITED &&
	      NHCA_ARM_NEXT_COMP == (u32)IB_CQ_NEXT_COMP &&
	      NHCA_ARM_MASK == (u32)IB_CQ_SOLICITED_MASK);

/*
 * Return: number of slots in use.  User space may have stored any consumer index, so callers
 * compare the number with the size of the ring.
 */
static u32 cq_used(const struct nhca_cq *cq)
{
	/* Pairs with the consumer's store release of hdr->cons, after its reads of the entries. */
	u32 cons = cq->user ? smp_load_acquire(&cq->ring.hdr->cons) : cq->cons;

	return cq->prod - cons;
}

/* Return: number of entries that wait to be polled. */
static u32 cq_waiting(const struct nhca_cq *cq)
{
	return cq_used(cq) - cq->gap_len;
}

/* Return: true if @index is after @cons; both are modulo 2^32. */
static bool cq_ahead(u32 index, u32 cons)
{
	return (s32)(index - cons) > 0;
}

void nhca_cq_give(const struct nhca_cq *cq, struct nhca_ring *ring)
{
	if (!cq->arm_in_ring)
		return;
	ring->hdr->last_event_cons = cq->last_event_cons;
	ring->hdr->arm_seq_acked = cq->arm_seq_acked;
	ring->hdr->arm_seq = READ_ONCE(cq->ring.hdr->arm_seq);
	ring->hdr->flags |= NHCA_RING_F_ARM_SEQ;
}

/* Return: what the CQ is armed for, a mask of enum ib_cq_notify_flags. */
static u8 cq_armed(struct nhca_cq *cq)
{
	if (!cq->arm_in_ring)
		return cq->armed;
	/* User space may have stored any value; read it once. */
	cq->arm_seq = READ_ONCE(cq->ring.hdr->arm_seq);
	return cq->armed | (cq->arm_seq != cq->arm_seq_acked ? cq->arm_seq & NHCA_ARM_MASK : 0);
}

void nhca_cq_dump(struct nhca_cq *cq, struct nhca_res_cq *res)
{
	unsigned long flags;
	u8 armed;

	spin_lock_irqsave(&cq->lock, flags);
	armed = cq_armed(cq);
	*res = (struct nhca_res_cq) {
		.size = sizeof(*res),
		.entries = nhca_ring_entries(&cq->ring),
		.produced = cq->prod,
		.armed = armed & IB_CQ_NEXT_COMP ? 1 : armed ? 2 : 0,
		.overrun = cq->overrun,
	};
	/* A hostile consumer may have stored any index. */
	res->unpolled = min(cq_waiting(cq), res->entries);
	spin_unlock_irqrestore(&cq->lock, flags);
}

/*
 * Moderation never defers the event of a solicited or unsuccessful completion.
 * Return: true if moderation defers the event; the timer runs then.
 */
static bool cq_moderated(struct nhca_cq *cq, u8 kind)
{
	if (likely(!cq->period_us) || kind & IB_CQ_SOLICITED)
		return false;
	if (cq->count && cq->mod_count >= cq->count)
		return false;
	if (!hrtimer_is_queued(&cq->timer))
		hrtimer_start(&cq->timer, ns_to_ktime(cq->period_us * NSEC_PER_USEC),
			      HRTIMER_MODE_REL_SOFT);
	return true;
}

/* Record, here and in the ring, that the last event was raised at consumer index @cons. */
static void cq_set_event_cons(struct nhca_cq *cq, u32 cons)
{
	cq->last_event_cons = cons;
	if (cq->arm_in_ring)
		WRITE_ONCE(cq->ring.hdr->last_event_cons, cons);
}

/* Disarm the CQ: acknowledge the arm_seq that cq_armed() has read.  The caller raises the event. */
static void cq_event_raised(struct nhca_cq *cq)
{
	u32 used = cq_used(cq);

	cq->armed = 0;
	cq->deferred = 0;
	cq->mod_count = 0;
	/*
	 * If the consumer has polled everything, store an index that it can never be at, so that
	 * the next arm is not suppressed.
	 */
	cq_set_event_cons(cq, cq->prod - used - !used);
	if (!cq->arm_in_ring)
		return;
	cq->arm_seq_acked = cq->arm_seq;
	WRITE_ONCE(cq->ring.hdr->arm_seq_acked, cq->arm_seq_acked);
}

/*
 * Move old stored indices forward, so that the consumer index, which wraps, does not reach them
 * again.  Must run at least once in 2^31 entries.
 */
static void cq_clamp(struct nhca_cq *cq)
{
	u32 entries = nhca_ring_entries(&cq->ring);

	if (cq->prod - cq->last_event_cons > entries)
		cq_set_event_cons(cq, cq->prod - entries - 1);
	if (cq->prod - cq->solicited > entries)
		cq->solicited = cq->prod - entries;
}

/*
 * Decide about the event for new completions.
 * @kind: kinds of these completions, a mask of enum ib_cq_notify_flags
 * Return: true if the CQ was disarmed, and the caller must raise the event after it has released
 * the lock.
 */
static bool cq_event_due(struct nhca_cq *cq, u8 kind)
{
	if (!(cq_armed(cq) & kind) || cq->dying)
		return false;
	if (cq_moderated(cq, kind)) {
		cq->deferred |= kind;
		return false;
	}
	if (!cq->user) {
		/* The CQ stays armed until cq_event() raises the event. */
		cq->deferred |= kind;
		nhca_bh_queue(&cq->event);
		return false;
	}
	cq_event_raised(cq);
	return true;
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

/*
 * Raise the deferred event if the CQ is still armed for it.  User space gets the event even if it
 * has polled all entries meanwhile, because it may wait for the event.  If a kernel consumer has
 * polled all entries, its CQ stays armed and raises no event: after the consumer has destroyed its
 * last QP, it may have stopped the work that its handler starts.
 */
static void cq_raise_deferred(struct nhca_cq *cq)
{
	unsigned long flags;
	bool fire;

	spin_lock_irqsave(&cq->lock, flags);
	fire = (cq_armed(cq) & cq->deferred) && !cq->dying && (cq->user || cq_waiting(cq));
	if (fire)
		cq_event_raised(cq);
	else if (!cq->user)
		cq->deferred = 0;
	spin_unlock_irqrestore(&cq->lock, flags);
	if (fire)
		cq_raise(cq);
}

/*
 * The function of nhca_cq.event.  Only this function calls the handlers of a kernel consumer.  They
 * must not be called from the call chain of a verb such as post_send, nor by two CPUs at a time
 * (Documentation/infiniband/core_locking.rst).  Bottom-half work runs on one CPU at a time.
 */
static void cq_event(struct nhca_bh *bh)
{
	struct nhca_cq *cq = container_of(bh, struct nhca_cq, event);

	if (test_and_clear_bit(0, &cq->overrun_due))
		cq_overrun(cq);
	cq_raise_deferred(cq);
}

/* The moderation period is over: raise the deferred event. */
static enum hrtimer_restart cq_period_over(struct hrtimer *timer)
{
	struct nhca_cq *cq = container_of(timer, struct nhca_cq, timer);

	if (cq->user)
		cq_raise_deferred(cq);
	else
		nhca_bh_queue(&cq->event);
	return HRTIMER_NORESTART;
}

void nhca_cq_init(struct nhca_cq *cq)
{
	spin_lock_init(&cq->lock);
	/* An index that the consumer, which begins at 0, is not at. */
	cq->last_event_cons = U32_MAX;
	hrtimer_setup(&cq->timer, cq_period_over, CLOCK_MONOTONIC, HRTIMER_MODE_REL_SOFT);
	nhca_bh_init(&cq->event, cq_event);
}

void nhca_cq_stop(struct nhca_cq *cq)
{
	spin_lock_irq(&cq->lock);
	cq->dying = true;
	spin_unlock_irq(&cq->lock);
	hrtimer_cancel(&cq->timer);
	nhca_bh_kill(&cq->event);
}

void nhca_cq_moderate(struct nhca_cq *cq, u16 count, u16 period_us)
{
	unsigned long flags;
	bool fire;

	spin_lock_irqsave(&cq->lock, flags);
	/* An event that waits for one completion is not deferred. */
	cq->period_us = count == 1 ? 0 : period_us;
	cq->count = count;
	/* An event that was deferred with the old values may be due now. */
	fire = cq_event_due(cq, cq->deferred);
	spin_unlock_irqrestore(&cq->lock, flags);
	if (fire)
		cq_raise(cq);
}

static bool cq_full(struct nhca_cq *cq, const struct nhca_cqe *cqe)
{
	struct nhca_fault_hit s __uninitialized;

	/*
	 * An impossible consumer index makes the ring look full, so a hostile
	 * consumer loses its own completions only.
	 */
	if (unlikely(cq_used(cq) >= nhca_ring_entries(&cq->ring)))
		return true;
	return nhca_inject(to_nhca_dev(cq->ibcq.device), NHCA_AT_CQE, cqe->qp_num, 0, &s);
}

int nhca_cq_post(struct nhca_cq *cq, struct nhca_cqe *cqe, bool solicited)
{
	u8 kind = IB_CQ_NEXT_COMP;
	struct nhca_cqe *slot;
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
		fire = !cq->overrun && !cq->dying;
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

	slot = nhca_ring_slot(&cq->ring, cq->prod);
	*slot = *cqe;
	cq->prod++;
	/* Pairs with the consumer's load acquire of hdr->prod: it then sees the entry. */
	smp_store_release(&cq->ring.hdr->prod, cq->prod);
	if (cq->arm_in_ring) {
		/*
		 * Pairs with the full barrier of a consumer that stores arm_seq and then loads
		 * prod: it sees this entry, or cq_armed() sees its arm_seq.
		 */
		smp_mb();
	}
	if (kind & IB_CQ_SOLICITED)
		cq->solicited = cq->prod;
	if (unlikely(!(cq->prod % NHCA_CQ_CLAMP)))
		cq_clamp(cq);
	cq->mod_count++;
	fire = cq_event_due(cq, kind);
	spin_unlock_irqrestore(&cq->lock, flags);

	if (fire)
		cq_raise(cq);
	return 0;
}

/*
 * @in_ring: the consumer arms the CQ by hdr->arm_seq.  If it has not polled since the last event,
 *           it polls after it has armed, and needs no event for the entries that are there.
 * Return: kinds of unpolled completions for which an arm has to raise an event.
 */
static u8 cq_unseen(const struct nhca_cq *cq, bool in_ring)
{
	u32 used = cq_used(cq);
	u32 cons = cq->prod - used;

	if (!used || (in_ring && cons == cq->last_event_cons))
		return 0;
	return IB_CQ_NEXT_COMP | (cq_ahead(cq->solicited, cons) ? IB_CQ_SOLICITED : 0);
}

bool nhca_cq_arm(struct nhca_cq *cq, u8 kind)
{
	unsigned long flags;
	bool waiting, fire, in_ring;

	spin_lock_irqsave(&cq->lock, flags);
	in_ring = cq->arm_in_ring && READ_ONCE(cq->ring.hdr->arm_seq);
	/* IBTA 11.4.2.2: a request for any completion overrides one for solicited completions. */
	if (!in_ring && cq->armed != IB_CQ_NEXT_COMP)
		cq->armed = kind;
	waiting = cq_waiting(cq);
	if (!waiting) {
		cq->deferred = 0;
		cq->mod_count = 0;
	}
	fire = cq->user && cq_event_due(cq, cq_unseen(cq, in_ring));
	spin_unlock_irqrestore(&cq->lock, flags);

	if (fire)
		cq_raise(cq);
	return waiting;
}

/* Return: the index of the oldest unpolled entry.  User space may have stored any value. */
static u32 cq_cons(const struct nhca_cq *cq)
{
	return cq->user ? READ_ONCE(cq->ring.hdr->cons) : cq->cons;
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
 * Copy entries @m->done to @end - 1.  They need no lock: only nhca_cq_forget_qp() changes posted
 * entries, and nhca_cq_move_step() then copies them again.
 */
static void cq_move_copy(const struct nhca_cq *cq, struct nhca_cq_move *m, u32 end)
{
	for (; m->done != end; m->done++)
		memcpy(nhca_ring_slot(m->ring, m->done), nhca_ring_slot(&cq->ring, m->done),
		       sizeof(struct nhca_cqe));
}

/* Copy the last entries, at most NHCA_CQ_STEP, and exchange the rings. */
static void cq_move_end(struct nhca_cq *cq, struct nhca_cq_move *m, u32 cons)
{
	lockdep_assert_held(&cq->lock);
	cq_move_copy(cq, m, cq->prod);
	m->ring->hdr->cons = cons;
	m->ring->hdr->prod = cq->prod;
	nhca_cq_give(cq, m->ring);
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
 * From the newest entry to the oldest, those that stay move towards the newest, over those that go:
 * so entries that others add, and what a consumer polls, do not move meanwhile.
 */
bool nhca_cq_forget_step(struct nhca_cq *cq, struct ib_qp *ibqp)
{
	struct nhca_cqe *from, *to;
	u32 n;

	lockdep_assert_held(&cq->lock);
	cq->compactions++;
	/* a consumer may have polled all that is left, and passed over the gap */
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
	/* Pairs with the barrier of a waiter that has queued itself and then reads cq->forgets. */
	smp_mb();
	wake_up_var(&cq->forgets);
}
