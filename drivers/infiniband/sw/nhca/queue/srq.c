// SPDX-License-Identifier: GPL-2.0
/*
 * Shared receive queues: events of an SRQ.
 */
#include "cq.h"
#include "srq.h"

static void srq_raise(struct nhca_srq *srq, enum ib_event_type type)
{
	struct ib_event event = {
		.device = srq->ibsrq.device,
		.element.srq = &srq->ibsrq,
		.event = type,
	};

	srq->ibsrq.event_handler(&event, srq->ibsrq.srq_context);
}

/* The function of nhca_srq.event: raise the events of a kernel consumer's SRQ. */
static void srq_raise_pending(struct nhca_bh *bh)
{
	struct nhca_srq *srq = container_of(bh, struct nhca_srq, event);
	unsigned long events = atomic_xchg(&srq->events, 0);
	unsigned int type;

	for_each_set_bit(type, &events, 32)
		srq_raise(srq, type);
}

void nhca_srq_init(struct nhca_srq *srq)
{
	static atomic64_t serials;

	mutex_init(&srq->resize);
	srq->serial = (u64)atomic64_inc_return(&serials) << NHCA_SRQN_BITS;
	nhca_bh_init(&srq->event, srq_raise_pending);
	if (!srq->user && srq->ibsrq.srq_type == IB_SRQT_XRC)
		nhca_cq_serve_xrc(to_nhca_cq(srq->ibsrq.ext.cq));
}

void nhca_srq_stop(struct nhca_srq *srq)
{
	nhca_bh_kill(&srq->event);
	mutex_destroy(&srq->resize);
}

static void srq_event(struct nhca_srq *srq, enum ib_event_type type)
{
	BUILD_BUG_ON(IB_EVENT_SRQ_ERR >= 32 || IB_EVENT_SRQ_LIMIT_REACHED >= 32);

	if (!srq->ibsrq.event_handler)
		return;
	if (srq->user) {
		srq_raise(srq, type);
		return;
	}
	atomic_or(BIT(type), &srq->events);
	nhca_bh_queue(&srq->event);
}

/* Return: true if the limit event is due; the function has then disarmed the event. */
static bool srq_below_limit(struct nhca_srq *srq)
{
	unsigned long flags;
	bool due = false;
	int n;

	/* The common case: the limit is not armed. */
	if (!READ_ONCE(srq->limit))
		return false;

	spin_lock_irqsave(&srq->wq.lock, flags);
	n = nhca_ring_produced(&srq->wq.ring, srq->wq.cons);
	if (n >= 0 && (u32)n < srq->limit) {
		WRITE_ONCE(srq->limit, 0);
		due = true;
	}
	spin_unlock_irqrestore(&srq->wq.lock, flags);
	return due;
}

/* Record that user space has stored an impossible index.  Return: true for the first such index. */
static bool srq_breaks(struct nhca_srq *srq)
{
	unsigned long flags;
	bool first;

	spin_lock_irqsave(&srq->wq.lock, flags);
	first = !srq->broken;
	srq->broken = true;
	spin_unlock_irqrestore(&srq->wq.lock, flags);
	return first;
}

void nhca_srq_dump(struct nhca_srq *srq, struct nhca_res_srq *res)
{
	*res = (struct nhca_res_srq) {
		.size = sizeof(*res),
		.max_wr = srq->wq.max_wr,
		.posted = nhca_rwq_level(&srq->wq),
		.limit = READ_ONCE(srq->limit),
		.error = READ_ONCE(srq->broken),
	};
}

int nhca_srq_fetch(struct nhca_srq *srq, struct nhca_rwr *rwr)
{
	int err = nhca_rwq_fetch(&srq->wq, rwr);

	if (unlikely(err == -EPROTO)) {
		if (srq_breaks(srq))
			srq_event(srq, IB_EVENT_SRQ_ERR);
	} else if (srq_below_limit(srq)) {
		srq_event(srq, IB_EVENT_SRQ_LIMIT_REACHED);
	}
	return err;
}
