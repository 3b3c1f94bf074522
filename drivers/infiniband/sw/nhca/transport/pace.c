// SPDX-License-Identifier: GPL-2.0
/*
 * Rate limits: a QP sends requests no faster than the rate that its consumer has set.  At this rate
 * each packet takes a time that is proportional to its payload.  nhca_pace.busy is the time at
 * which all packets sent so far would have left at this rate.  If this time is more than
 * NHCA_PACE_AHEAD from now, the next packet waits, until the time is only half of NHCA_PACE_AHEAD
 * from now; then a timer kicks the QP.
 */
#include <linux/hrtimer.h>
#include <linux/math64.h>
#include <linux/slab.h>

#include "engine.h"

/*
 * time in ns by which a packet may be sent too early, because a short wait is not worth a timer
 */
#define NHCA_PACE_AHEAD		(2 * NSEC_PER_MSEC)

/**
 * struct nhca_pace - rate limit of a QP
 * @timer: runs while a packet waits
 * @qp:    the queue pair
 * @kbps:  thousands of bits a second; 0: no limit
 * @busy:  ktime in ns at which all packets sent so far would have left at the rate limit
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

	lockdep_assert_held(&qp->sq.lock);
	if (likely(!nhca_is_paced(qp)))
		return false;
	now = ktime_get_ns();
	if (pace->busy <= now + NHCA_PACE_AHEAD)
		return false;
	hrtimer_start(&pace->timer, ns_to_ktime(pace->busy - now - NHCA_PACE_AHEAD / 2),
		      HRTIMER_MODE_REL_SOFT);
	return true;
}

bool nhca_pace_active(const struct nhca_qp *qp)
{
	return qp->sq.pace && hrtimer_active(&qp->sq.pace->timer);
}

void nhca_pace_sent(struct nhca_qp *qp, u32 bytes)
{
	struct nhca_pace *pace = qp->sq.pace;

	lockdep_assert_held(&qp->sq.lock);
	if (likely(!nhca_is_paced(qp)))
		return;
	/* kbps is the number of bits in a millisecond */
	pace->busy = max(pace->busy, ktime_get_ns()) +
		     div_u64((u64)bytes * 8 * NSEC_PER_MSEC, pace->kbps);
}
