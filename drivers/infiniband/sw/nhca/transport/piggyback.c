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
#define NHCA_PIGGYBACK_SHIFT		10
/*
 * A reply comes at once within a quarter of a millisecond, and where the way is slower within the
 * time of a round trip, but never later than this.
 */
#define NHCA_PIGGYBACK_SOON		250U
#define NHCA_PIGGYBACK_LATE		2000U
/* replies at once before acknowledgments wait for them: at first, and at most */
#define NHCA_PIGGYBACK_FIRST		8U
#define NHCA_PIGGYBACK_MAX		0x8000U
/* replies at once after which an acknowledgment that has waited in vain is forgiven */
#define NHCA_PIGGYBACK_FORGIVEN	256
/* a peer that has sent more PSNs wants to hear of them: its first window has no more */
#define NHCA_PIGGYBACK_PSNS		16
/* nhca_piggyback.pending, beside the PSN */
#define NHCA_PIGGYBACK_PENDING		BIT(31)

/* never 0 */
static u32 nhca_piggyback_clock(void)
{
	return (u32)(local_clock() >> NHCA_PIGGYBACK_SHIFT) | 1;
}

/* Return: how long a reply may take that comes at once, by the clock. */
static u32 nhca_piggyback_soon(const struct nhca_qp *qp)
{
	/* acknowledgments of ours may be waiting for replies, too */
	u32 us = READ_ONCE(qp->sq.times->rtt) >> 3;

	return clamp(us, NHCA_PIGGYBACK_SOON, NHCA_PIGGYBACK_LATE);
}

/*
 * What is counted is written by both engines, each under its own lock: a count that is lost then
 * has an acknowledgment wait a reply later, or leave one sooner.
 */
static void nhca_piggyback_late(struct nhca_piggyback *piggyback, bool waited)
{
	WRITE_ONCE(piggyback->quick, 0);
	if (!waited)
		return;
	WRITE_ONCE(piggyback->needed, min(READ_ONCE(piggyback->needed) * 2, NHCA_PIGGYBACK_MAX));
	WRITE_ONCE(piggyback->good, 0);
}

/* A reply came at once. */
static void nhca_piggyback_quick(struct nhca_piggyback *piggyback)
{
	if (READ_ONCE(piggyback->quick) < NHCA_PIGGYBACK_MAX)
		WRITE_ONCE(piggyback->quick, READ_ONCE(piggyback->quick) + 1);
	WRITE_ONCE(piggyback->good, READ_ONCE(piggyback->good) + 1);
	if (READ_ONCE(piggyback->good) < NHCA_PIGGYBACK_FORGIVEN)
		return;
	WRITE_ONCE(piggyback->needed, max(READ_ONCE(piggyback->needed) / 2, NHCA_PIGGYBACK_FIRST));
	WRITE_ONCE(piggyback->good, 0);
}

void nhca_piggyback_reset(struct nhca_piggyback *piggyback)
{
	atomic_set(&piggyback->pending, 0);
	WRITE_ONCE(piggyback->asked, 0);
	WRITE_ONCE(piggyback->quick, 0);
	WRITE_ONCE(piggyback->needed, NHCA_PIGGYBACK_FIRST);
	WRITE_ONCE(piggyback->good, 0);
}

/* ---- the receive engine ---- */

/* Requests up to the expected PSN are to be acknowledged.  Return: how many PSNs that is. */
static u32 nhca_piggyback_count(struct nhca_piggyback *piggyback, u32 psn)
{
	/* what was owed has left with a request */
	if (!atomic_read(&piggyback->pending))
		piggyback->base = piggyback->last;
	piggyback->last = psn;
	return nhca_psn_add(psn, -piggyback->base);
}

bool nhca_piggyback_waits(struct nhca_qp *qp, bool hopes)
{
	struct nhca_piggyback *piggyback = qp->piggyback;
	u32 now = nhca_piggyback_clock();
	u32 asked = READ_ONCE(piggyback->asked);
	u32 psns = nhca_piggyback_count(piggyback, qp->rq.psn);

	/*
	 * Who sends the next request before the last one is acknowledged does not wait for that: a
	 * reply is looked for after the last one.
	 */
	if (asked && now - asked > nhca_piggyback_soon(qp) && !atomic_read(&piggyback->pending))
		nhca_piggyback_late(piggyback, false);
	WRITE_ONCE(piggyback->asked, now);
	/* what fault injection does to packets shall not depend on how fast a consumer is */
	if (!hopes || psns > NHCA_PIGGYBACK_PSNS ||
	    READ_ONCE(piggyback->quick) < READ_ONCE(piggyback->needed) ||
	    !(nhca_notice(qp) & NHCA_CAP_NO_ICRC) || nhca_inject_at(qp->dev, NHCA_AT_PACKETS)) {
		nhca_piggyback_drop(qp);
		return false;
	}
	atomic_set(&piggyback->pending, NHCA_PIGGYBACK_PENDING | nhca_psn_add(qp->rq.psn, -1));
	if (!timer_pending(&piggyback->timer))
		mod_timer(&piggyback->timer, jiffies + 1);
	return true;
}

void nhca_piggyback_drop(struct nhca_qp *qp)
{
	struct nhca_piggyback *piggyback = qp->piggyback;

	if (atomic_read(&piggyback->pending))
		atomic_set(&piggyback->pending, 0);
	piggyback->last = qp->rq.psn;
}

void nhca_piggyback_settle(struct nhca_qp *qp)
{
	atomic_t *pending = &qp->piggyback->pending;
	int owed = atomic_read(pending) ? atomic_xchg(pending, 0) : 0;

	if (owed)
		nhca_resp_alone(qp, owed & NHCA_PSN_MASK);
}

void nhca_piggyback_timer(struct timer_list *t)
{
	struct nhca_piggyback *piggyback = timer_container_of(piggyback, t, timer);
	struct nhca_qp *qp = piggyback->qp;
	u32 asked;

	spin_lock(&qp->rq.lock);
	rcu_read_lock();
	if (atomic_read(&piggyback->pending)) {
		asked = READ_ONCE(piggyback->asked);
		if (asked && nhca_piggyback_clock() - asked <= nhca_piggyback_soon(qp)) {
			mod_timer(&piggyback->timer, jiffies + 1);
		} else {
			nhca_piggyback_late(piggyback, asked);
			nhca_piggyback_settle(qp);
		}
	}
	rcu_read_unlock();
	spin_unlock(&qp->rq.lock);
}

/* ---- the send engine ---- */

void nhca_piggyback_begin(struct nhca_qp *qp, struct nhca_hdr *h)
{
	struct nhca_piggyback *piggyback = qp->piggyback;
	int owed;

	if (!atomic_read(&piggyback->pending) || !(h->caps & NHCA_CAP_NO_ICRC))
		return;
	owed = atomic_xchg(&piggyback->pending, 0);
	if (!owed)
		return;
	h->caps |= NHCA_CAP_ACKS;
	h->acks = owed & NHCA_PSN_MASK;
}

void nhca_piggyback_end(struct nhca_qp *qp, const struct nhca_hdr *h, int err)
{
	struct nhca_piggyback *piggyback = qp->piggyback;
	bool rode = h->caps & NHCA_CAP_ACKS;
	u32 asked = READ_ONCE(piggyback->asked);

	if (err) {
		/* to the next one, if nothing newer is owed; the timer may have found nothing */
		if (rode &&
		    !atomic_cmpxchg(&piggyback->pending, 0, NHCA_PIGGYBACK_PENDING | h->acks) &&
		    !timer_pending(&piggyback->timer))
			mod_timer(&piggyback->timer, jiffies + 1);
		return;
	}
	if (rode)
		nhca_count(&qp->who, NHCA_CNT_ACKS_RIDING);
	if (!asked)
		return;
	WRITE_ONCE(piggyback->asked, 0);
	if (nhca_piggyback_clock() - asked > nhca_piggyback_soon(qp))
		nhca_piggyback_late(piggyback, rode);
	else
		nhca_piggyback_quick(piggyback);
}
