// SPDX-License-Identifier: GPL-2.0
/*
 * Piggybacked ACKs on RC: a request carries an acknowledgment, if both ends are nhca.
 *
 * If a program replies to each SEND with a request, this request can carry the ACK of the SEND,
 * which saves a packet and its way through two network stacks.  But the ACK has to wait for the
 * request, and the completion of the SEND at the peer waits as well.  So an ACK waits only after
 * several consecutive quick replies (TCP delays ACKs in a similar way).  After a reply that is late
 * or missing, ACKs leave immediately again.  If an ACK has waited for this reply, the next ACK
 * waits only after twice as many consecutive quick replies.  After NHCA_PIGGYBACK_HALVE quick
 * replies the required number is halved.
 */
#include <linux/sched/clock.h>

#include "../observe/inject.h"
#include "../observe/stub.h"
#include "engine.h"

/* shift from ns to units of the clock: a unit is 1,024 ns */
#define NHCA_PIGGYBACK_SHIFT		10
/*
 * A reply is quick if it is sent within the round-trip time after the request.  A round-trip time
 * below 250 units of the clock counts as 250 units, one above 2,000 units as 2,000 units.
 */
#define NHCA_PIGGYBACK_RTT_MIN		250U
#define NHCA_PIGGYBACK_RTT_MAX		2000U
/* initial and maximum number of consecutive quick replies that must precede a waiting ACK */
#define NHCA_PIGGYBACK_FIRST		8U
#define NHCA_PIGGYBACK_MAX		0x8000U
/* number of quick replies after which nhca_piggyback.needed is halved */
#define NHCA_PIGGYBACK_HALVE	256
/* maximum number of PSNs that a waiting ACK covers: the peer's initial window */
#define NHCA_PIGGYBACK_PSNS		16
/* flag in nhca_piggyback.pending, beside the PSN */
#define NHCA_PIGGYBACK_PENDING		BIT(31)

u32 nhca_piggyback_clock(void)
{
	NHCA_STUB(nhca_piggyback_clock);
	return (u32)(local_clock() >> NHCA_PIGGYBACK_SHIFT) | 1;
}

/* Return: the longest time of a quick reply, in units of the clock. */
static u32 nhca_piggyback_rtt(const struct nhca_qp *qp)
{
	/*
	 * round-trip time in microseconds (nearly units of the clock), including the time for which
	 * the peer's ACKs waited for replies
	 */
	u32 us = READ_ONCE(qp->sq.rtx->rtt) >> 3;

	return clamp(us, NHCA_PIGGYBACK_RTT_MIN, NHCA_PIGGYBACK_RTT_MAX);
}

/*
 * Count a late or missing reply.  @waited: an ACK waited for the reply.
 *
 * Requester and responder write the counts under different locks.  A lost update is harmless: it
 * only changes the number of replies after which ACKs begin to wait, or stop waiting.
 */
static void nhca_piggyback_late(struct nhca_piggyback *piggyback, bool waited)
{
	WRITE_ONCE(piggyback->quick, 0);
	if (!waited)
		return;
	WRITE_ONCE(piggyback->needed, min(READ_ONCE(piggyback->needed) * 2, NHCA_PIGGYBACK_MAX));
	WRITE_ONCE(piggyback->good, 0);
}

static void nhca_piggyback_quick(struct nhca_piggyback *piggyback)
{
	if (READ_ONCE(piggyback->quick) < NHCA_PIGGYBACK_MAX)
		WRITE_ONCE(piggyback->quick, READ_ONCE(piggyback->quick) + 1);
	WRITE_ONCE(piggyback->good, READ_ONCE(piggyback->good) + 1);
	if (READ_ONCE(piggyback->good) < NHCA_PIGGYBACK_HALVE)
		return;
	WRITE_ONCE(piggyback->needed, max(READ_ONCE(piggyback->needed) / 2, NHCA_PIGGYBACK_FIRST));
	WRITE_ONCE(piggyback->good, 0);
}

void nhca_piggyback_reset(struct nhca_piggyback *piggyback)
{
	atomic_set(&piggyback->pending, 0);
	WRITE_ONCE(piggyback->req_at, 0);
	WRITE_ONCE(piggyback->quick, 0);
	WRITE_ONCE(piggyback->needed, NHCA_PIGGYBACK_FIRST);
	WRITE_ONCE(piggyback->good, 0);
}

/* ---- the responder ---- */

/* Return: number of PSNs before @psn, the expected PSN, that no ACK has covered. */
static u32 nhca_piggyback_count(struct nhca_piggyback *piggyback, u32 psn)
{
	/* no ACK waits, so the previous ACK was sent, and covers the PSNs before @last */
	if (!atomic_read(&piggyback->pending))
		piggyback->base = piggyback->last;
	piggyback->last = psn;
	return nhca_psn_add(psn, -piggyback->base);
}

bool nhca_piggyback_waits(struct nhca_qp *qp, bool may_reply)
{
	struct nhca_piggyback *piggyback = qp->piggyback;
	u32 now = nhca_piggyback_clock();
	u32 req_at = READ_ONCE(piggyback->req_at);
	u32 psns = nhca_piggyback_count(piggyback, qp->rq.psn);

	lockdep_assert_held(&qp->rq.lock);
	/* the previous request got no quick reply; nhca_piggyback_timer() counts if an ACK waits */
	if (req_at && now - req_at > nhca_piggyback_rtt(qp) && !atomic_read(&piggyback->pending))
		nhca_piggyback_late(piggyback, false);
	/*
	 * The time until the reply counts from the newest request, because a peer that sends a
	 * request before its previous one is acknowledged does not wait for an ACK.
	 */
	WRITE_ONCE(piggyback->req_at, now);
	/* with fault injection no ACK waits, so that the packets do not depend on reply times */
	if (!may_reply || psns > NHCA_PIGGYBACK_PSNS ||
	    READ_ONCE(piggyback->quick) < READ_ONCE(piggyback->needed) ||
	    !(nhca_caps(qp) & NHCA_CAP_NO_ICRC) || nhca_inject_at(qp->dev, NHCA_AT_PACKETS)) {
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

	lockdep_assert_held(&qp->rq.lock);
	if (atomic_read(&piggyback->pending))
		atomic_set(&piggyback->pending, 0);
	piggyback->last = qp->rq.psn;
}

void nhca_piggyback_flush(struct nhca_qp *qp)
{
	atomic_t *pending = &qp->piggyback->pending;
	int ack = atomic_read(pending) ? atomic_xchg(pending, 0) : 0;

	lockdep_assert_held(&qp->rq.lock);
	if (ack)
		nhca_resp_pure_ack(qp, ack & NHCA_PSN_MASK);
}

void nhca_piggyback_timer(struct timer_list *t)
{
	struct nhca_piggyback *piggyback = timer_container_of(piggyback, t, timer);
	struct nhca_qp *qp = piggyback->qp;
	u32 req_at;

	spin_lock(&qp->rq.lock);
	rcu_read_lock();
	if (atomic_read(&piggyback->pending)) {
		req_at = READ_ONCE(piggyback->req_at);
		if (req_at && nhca_piggyback_clock() - req_at <= nhca_piggyback_rtt(qp)) {
			mod_timer(&piggyback->timer, jiffies + 1);
		} else {
			nhca_piggyback_late(piggyback, req_at);
			nhca_piggyback_flush(qp);
		}
	}
	rcu_read_unlock();
	spin_unlock(&qp->rq.lock);
}

/* ---- the requester ---- */

void nhca_piggyback_begin(struct nhca_qp *qp, struct nhca_hdr *h)
{
	struct nhca_piggyback *piggyback = qp->piggyback;
	int ack;

	lockdep_assert_held(&qp->sq.lock);
	if (!atomic_read(&piggyback->pending) || !(h->caps & NHCA_CAP_NO_ICRC))
		return;
	ack = atomic_xchg(&piggyback->pending, 0);
	if (!ack)
		return;
	h->caps |= NHCA_CAP_ACKS;
	h->acks = ack & NHCA_PSN_MASK;
}

void nhca_piggyback_end(struct nhca_qp *qp, const struct nhca_hdr *h, int err)
{
	struct nhca_piggyback *piggyback = qp->piggyback;
	bool carried = h->caps & NHCA_CAP_ACKS;
	u32 req_at = READ_ONCE(piggyback->req_at);

	lockdep_assert_held(&qp->sq.lock);
	if (err) {
		/*
		 * This request was not sent, so the next request carries the ACK, unless a newer
		 * ACK waits.  Start the timer again, because it may have expired while no ACK
		 * waited.
		 */
		if (carried &&
		    !atomic_cmpxchg(&piggyback->pending, 0, NHCA_PIGGYBACK_PENDING | h->acks) &&
		    !timer_pending(&piggyback->timer))
			mod_timer(&piggyback->timer, jiffies + 1);
		return;
	}
	if (carried)
		nhca_count(&qp->who, NHCA_CNT_ACKS_PIGGYBACKED);
	if (!req_at)
		return;
	WRITE_ONCE(piggyback->req_at, 0);
	if (nhca_piggyback_clock() - req_at > nhca_piggyback_rtt(qp))
		nhca_piggyback_late(piggyback, carried);
	else
		nhca_piggyback_quick(piggyback);
}
