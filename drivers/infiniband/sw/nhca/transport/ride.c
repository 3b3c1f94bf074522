// SPDX-License-Identifier: GPL-2.0
/*
 * Acknowledgments that ride on requests.
 *
 * A program that answers a SEND with a request of its own makes the acknowledgment of the SEND
 * a packet that nobody needs: between nhca ends the answer can carry it, and its way through two
 * stacks is saved.  For that it has to wait, and whoever waits for the completion of the SEND with
 * it.  So it does only while replies have come at once, many times in a row, as with TCP's
 * delayed acknowledgments: the first that does not come, or comes late, has all leave at once
 * again, and twice as many replies have to come at once before another one waits, until many have.
 */
#include <linux/sched/clock.h>

#include "../observe/inject.h"
#include "engine.h"

/* units of the clock: 1,024 ns */
#define NHCA_RIDE_SHIFT		10
/*
 * A reply comes at once within a quarter of a millisecond, and where the way is slower within the
 * time of a round trip, but never later than this.
 */
#define NHCA_RIDE_SOON		250U
#define NHCA_RIDE_LATE		2000U
/* replies at once before acknowledgments wait for them: at first, and at most */
#define NHCA_RIDE_FIRST		8U
#define NHCA_RIDE_MAX		0x8000U
/* replies at once after which an acknowledgment that has waited in vain is forgiven */
#define NHCA_RIDE_FORGIVEN	256
/* a peer that has sent more PSNs wants to hear of them: its first window has no more */
#define NHCA_RIDE_PSNS		16
/* nhca_ride.owed, beside the PSN */
#define NHCA_RIDE_OWED		BIT(31)

/* never 0 */
static u32 nhca_ride_clock(void)
{
	return (u32)(local_clock() >> NHCA_RIDE_SHIFT) | 1;
}

/* Return: how long a reply may take that comes at once, by the clock. */
static u32 nhca_ride_soon(const struct nhca_qp *qp)
{
	/* acknowledgments of ours may be waiting for replies, too */
	u32 us = READ_ONCE(qp->sq.times->rtt) >> 3;

	return clamp(us, NHCA_RIDE_SOON, NHCA_RIDE_LATE);
}

/*
 * What is counted is written by both engines, each under its own lock: a count that is lost then
 * has an acknowledgment wait a reply later, or leave one sooner.
 */
static void nhca_ride_late(struct nhca_ride *ride, bool waited)
{
	WRITE_ONCE(ride->quick, 0);
	if (!waited)
		return;
	WRITE_ONCE(ride->needed, min(READ_ONCE(ride->needed) * 2, NHCA_RIDE_MAX));
	WRITE_ONCE(ride->good, 0);
}

/* A reply came at once. */
static void nhca_ride_quick(struct nhca_ride *ride)
{
	if (READ_ONCE(ride->quick) < NHCA_RIDE_MAX)
		WRITE_ONCE(ride->quick, READ_ONCE(ride->quick) + 1);
	WRITE_ONCE(ride->good, READ_ONCE(ride->good) + 1);
	if (READ_ONCE(ride->good) < NHCA_RIDE_FORGIVEN)
		return;
	WRITE_ONCE(ride->needed, max(READ_ONCE(ride->needed) / 2, NHCA_RIDE_FIRST));
	WRITE_ONCE(ride->good, 0);
}

void nhca_ride_reset(struct nhca_ride *ride)
{
	atomic_set(&ride->owed, 0);
	WRITE_ONCE(ride->asked, 0);
	WRITE_ONCE(ride->quick, 0);
	WRITE_ONCE(ride->needed, NHCA_RIDE_FIRST);
	WRITE_ONCE(ride->good, 0);
}

/* ---- the receive engine ---- */

/* Requests up to the expected PSN are to be acknowledged.  Return: how many PSNs that is. */
static u32 nhca_ride_count(struct nhca_ride *ride, u32 psn)
{
	/* what was owed has left with a request */
	if (!atomic_read(&ride->owed))
		ride->base = ride->last;
	ride->last = psn;
	return nhca_psn_add(psn, -ride->base);
}

bool nhca_ride_waits(struct nhca_qp *qp, bool hopes)
{
	struct nhca_ride *ride = qp->ride;
	u32 now = nhca_ride_clock();
	u32 asked = READ_ONCE(ride->asked);
	u32 psns = nhca_ride_count(ride, qp->rq.psn);

	/*
	 * Who sends the next request before the last one is acknowledged does not wait for that: a
	 * reply is looked for after the last one.
	 */
	if (asked && now - asked > nhca_ride_soon(qp) && !atomic_read(&ride->owed))
		nhca_ride_late(ride, false);
	WRITE_ONCE(ride->asked, now);
	/* what fault injection does to packets shall not depend on how fast a consumer is */
	if (!hopes || psns > NHCA_RIDE_PSNS || READ_ONCE(ride->quick) < READ_ONCE(ride->needed) ||
	    !(nhca_notice(qp) & NHCA_NOTICE_BARE) || nhca_inject_at(qp->dev, NHCA_AT_PACKETS)) {
		nhca_ride_drop(qp);
		return false;
	}
	atomic_set(&ride->owed, NHCA_RIDE_OWED | nhca_psn_add(qp->rq.psn, -1));
	if (!timer_pending(&ride->timer))
		mod_timer(&ride->timer, jiffies + 1);
	return true;
}

void nhca_ride_drop(struct nhca_qp *qp)
{
	struct nhca_ride *ride = qp->ride;

	if (atomic_read(&ride->owed))
		atomic_set(&ride->owed, 0);
	ride->last = qp->rq.psn;
}

void nhca_ride_settle(struct nhca_qp *qp)
{
	int owed = atomic_read(&qp->ride->owed) ? atomic_xchg(&qp->ride->owed, 0) : 0;

	if (owed)
		nhca_answer_alone(qp, owed & NHCA_PSN_MASK);
}

void nhca_ride_timer(struct timer_list *t)
{
	struct nhca_ride *ride = timer_container_of(ride, t, timer);
	struct nhca_qp *qp = ride->qp;
	u32 asked;

	spin_lock(&qp->rq.lock);
	rcu_read_lock();
	if (atomic_read(&ride->owed)) {
		asked = READ_ONCE(ride->asked);
		if (asked && nhca_ride_clock() - asked <= nhca_ride_soon(qp)) {
			mod_timer(&ride->timer, jiffies + 1);
		} else {
			nhca_ride_late(ride, asked);
			nhca_ride_settle(qp);
		}
	}
	rcu_read_unlock();
	spin_unlock(&qp->rq.lock);
}

/* ---- the send engine ---- */

void nhca_ride_begin(struct nhca_qp *qp, struct nhca_hdr *h)
{
	struct nhca_ride *ride = qp->ride;
	int owed;

	if (!atomic_read(&ride->owed) || !(h->notice & NHCA_NOTICE_BARE))
		return;
	owed = atomic_xchg(&ride->owed, 0);
	if (!owed)
		return;
	h->notice |= NHCA_NOTICE_ACKS;
	h->acks = owed & NHCA_PSN_MASK;
}

void nhca_ride_end(struct nhca_qp *qp, const struct nhca_hdr *h, int err)
{
	struct nhca_ride *ride = qp->ride;
	bool rode = h->notice & NHCA_NOTICE_ACKS;
	u32 asked = READ_ONCE(ride->asked);

	if (err) {
		/* to the next one, if nothing newer is owed; the timer may have found nothing */
		if (rode && !atomic_cmpxchg(&ride->owed, 0, NHCA_RIDE_OWED | h->acks) &&
		    !timer_pending(&ride->timer))
			mod_timer(&ride->timer, jiffies + 1);
		return;
	}
	if (rode)
		nhca_count(&qp->who, NHCA_CNT_ACKS_RIDING);
	if (!asked)
		return;
	WRITE_ONCE(ride->asked, 0);
	if (nhca_ride_clock() - asked > nhca_ride_soon(qp))
		nhca_ride_late(ride, rode);
	else
		nhca_ride_quick(ride);
}
