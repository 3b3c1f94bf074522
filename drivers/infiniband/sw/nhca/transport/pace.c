// SPDX-License-Identifier: GPL-2.0
/*
 * Rate limits of queue pairs: what a QP sends as a requester leaves no faster than its consumer
 * wants.  Each packet takes its time at that rate; a packet that comes too early for those before
 * it waits, and a timer kicks the QP.
 */
#include <linux/hrtimer.h>
#include <linux/math64.h>
#include <linux/slab.h>

#include "engine.h"

/* how far ahead of its rate a QP may be: a timer is not worth less */
#define NHCA_PACE_AHEAD		(2 * NSEC_PER_MSEC)

/**
 * struct nhca_pace - the rate of a QP
 * @timer: running while a packet waits
 * @qp:    whose
 * @kbps:  thousands of bits a second; 0: no limit
 * @busy:  until when, in ns, what was sent takes at that rate
 */
struct nhca_pace {
	struct hrtimer timer;
	struct nhca_qp *qp;
	u32 kbps;
	u64 busy;
};

static enum hrtimer_restart nhca_pace_over(struct hrtimer *timer)
{
	struct nhca_pace *pace = container_of(timer, struct nhca_pace, timer);

	nhca_bh_queue(&pace->qp->kick);
	return HRTIMER_NORESTART;
}

struct nhca_pace *nhca_pace_alloc(struct nhca_qp *qp)
{
	struct nhca_pace *pace = kzalloc(sizeof(*pace), GFP_KERNEL_ACCOUNT);

	if (!pace)
		return NULL;
	pace->qp = qp;
	hrtimer_setup(&pace->timer, nhca_pace_over, CLOCK_MONOTONIC, HRTIMER_MODE_REL_SOFT);
	return pace;
}

void nhca_pace_free(struct nhca_pace *pace)
{
	if (pace)
		hrtimer_cancel(&pace->timer);
	kfree(pace);
}

void nhca_pace_set(struct nhca_pace *pace, u32 kbps)
{
	if (pace)
		pace->kbps = kbps;
}

u32 nhca_pace_rate(const struct nhca_qp *qp)
{
	return qp->sq.pace ? qp->sq.pace->kbps : 0;
}

bool nhca_pace_waits(struct nhca_qp *qp)
{
	struct nhca_pace *pace = qp->sq.pace;
	u64 now;

	if (likely(!pace || !pace->kbps))
		return false;
	now = ktime_get_ns();
	if (pace->busy <= now + NHCA_PACE_AHEAD)
		return false;
	hrtimer_start(&pace->timer, ns_to_ktime(pace->busy - now - NHCA_PACE_AHEAD / 2),
		      HRTIMER_MODE_REL_SOFT);
	return true;
}

bool nhca_pace_holds(const struct nhca_qp *qp)
{
	return qp->sq.pace && hrtimer_active(&qp->sq.pace->timer);
}

void nhca_pace_sent(struct nhca_qp *qp, u32 bytes)
{
	struct nhca_pace *pace = qp->sq.pace;

	if (likely(!pace || !pace->kbps))
		return;
	/* 8 bits of a byte, 10^6 ns for a thousandth of a second */
	pace->busy = max(pace->busy, ktime_get_ns()) +
		     div_u64((u64)bytes * 8 * NSEC_PER_MSEC, pace->kbps);
}
