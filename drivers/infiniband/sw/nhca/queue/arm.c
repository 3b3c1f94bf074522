// SPDX-License-Identifier: GPL-2.0
/*
 * Arming of a CQ: which completions raise an event, and when.
 *
 * A CQ is armed by a command (nhca_arm.armed), or by a value of arm_seq in its ring that no event
 * has acknowledged yet (nhca_arm_ring.seq).  Both ways of arming have the same effect.  States:
 *
 *   state     armed for                event
 *   IDLE      nothing                  none
 *   SOL       solicited completions    none
 *   NEXT      any completion           none
 *   SOL_DUE   solicited completions    waits for the bottom half
 *   NEXT_DUE  any completion           waits for the bottom half or the moderation timer
 *   STOPPED   -                        none; the CQ stays in this state
 *
 * Event that is raised or deferred, and next state:
 *
 *             completion             request with nothing  request with unpolled  nhca_arm_late()
 *                                    unpolled, for         entries, for
 *             plain      solicited   SOL       NEXT        SOL        NEXT
 *   IDLE      IDLE       IDLE        SOL       NEXT        SOL *      NEXT *         IDLE
 *   SOL       SOL        event       SOL       NEXT        SOL *      NEXT *         SOL
 *   NEXT      event +    event       NEXT      NEXT        NEXT *     NEXT *         NEXT
 *   SOL_DUE   SOL_DUE    event       SOL       NEXT        SOL_DUE    NEXT_DUE       event, IDLE #
 *   NEXT_DUE  event +    event       NEXT      NEXT        NEXT_DUE * NEXT_DUE *     event, IDLE #
 *
 *   event  user CQ, and nhca_arm_late() of each CQ: NHCA_ARM_RAISE, to IDLE.  Otherwise, for a
 *          kernel consumer: NHCA_ARM_BH, to SOL_DUE or NEXT_DUE.
 *   +      moderation may defer it: NHCA_ARM_TIMER, to NEXT_DUE
 *   *      user CQ: then as for a completion of the kinds of the unpolled entries, see arm_unseen()
 *   #      kernel consumer that has polled all entries: to SOL or NEXT, no event
 *
 * nhca_arm_moderate() repeats the decision about an event that waits.
 *
 * The callers of the functions are: a QP or channel that posts a completion (a QP also holds its
 * own lock); the consumer, by ib_req_notify_cq() or a command; the timer or the bottom half, for
 * nhca_arm_late(); nhca_modify_cq(); and nhca_destroy_cq().  All of these hold the lock of the CQ.
 * User space stores arm_seq without a lock; the store takes effect when a caller reads arm_seq.
 */
#include <linux/kernel.h>
#include <rdma/ib_verbs.h>

#include "arm.h"

static_assert(NHCA_ARM_SOLICITED == (u32)IB_CQ_SOLICITED &&
	      NHCA_ARM_NEXT_COMP == (u32)IB_CQ_NEXT_COMP &&
	      NHCA_ARM_MASK == (u32)IB_CQ_SOLICITED_MASK);

void nhca_arm_init(struct nhca_arm *arm, bool user, u32 start)
{
	*arm = (struct nhca_arm) {
		.by_bh = !user,
		.solicited = start,
		/* The consumer is not at this index, so arm_unseen() suppresses no event. */
		.last_event_cons = start - 1,
	};
}

/* Moderation never defers the event of a solicited or unsuccessful completion. */
static bool arm_moderated(const struct nhca_arm *arm, u8 kind)
{
	if (likely(!arm->period_us) || kind & IB_CQ_SOLICITED)
		return false;
	return !arm->count || arm->mod_count < arm->count;
}

/* Disarm the CQ, because the caller raises the event; the event acknowledges @ring.seq. */
static enum nhca_arm_todo arm_raise(struct nhca_arm *arm, struct nhca_arm_ring ring)
{
	arm->armed = 0;
	arm->deferred = 0;
	arm->mod_count = 0;
	arm->seq_acked = ring.seq;
	/*
	 * If the consumer has polled everything, store an index that the consumer can never have,
	 * so that arm_unseen() does not suppress the event of the next request.
	 */
	arm->last_event_cons = ring.cons - (ring.cons == ring.prod);
	return NHCA_ARM_RAISE;
}

enum nhca_arm_todo nhca_arm_decide(struct nhca_arm *arm, struct nhca_arm_ring ring, u8 kind)
{
	if (!(nhca_arm_kinds(arm, ring.seq) & kind) || arm->stopped)
		return NHCA_ARM_NOTHING;
	if (arm_moderated(arm, kind)) {
		arm->deferred |= kind;
		return NHCA_ARM_TIMER;
	}
	if (arm->by_bh) {
		/* The CQ stays armed until the bottom half raises the event. */
		arm->deferred |= kind;
		return NHCA_ARM_BH;
	}
	return arm_raise(arm, ring);
}

/*
 * A consumer that arms in the ring, and has not polled since the last event, polls after it has
 * armed.  So it needs no event for the entries that are in the ring now.
 * Return: kinds of unpolled completions for which a request has to raise an event.
 */
static u8 arm_unseen(const struct nhca_arm *arm, struct nhca_arm_ring ring)
{
	if (ring.seq && ring.cons == arm->last_event_cons)
		return 0;
	return IB_CQ_NEXT_COMP | ((s32)(arm->solicited - ring.cons) > 0 ? IB_CQ_SOLICITED : 0);
}

enum nhca_arm_todo nhca_arm_request(struct nhca_arm *arm, struct nhca_arm_ring ring, u8 kind)
{
	/* IBTA 11.4.2.2: IB_CQ_SOLICITED does not replace an earlier IB_CQ_NEXT_COMP. */
	if (!ring.seq && arm->armed != IB_CQ_NEXT_COMP)
		arm->armed = kind;
	if (ring.prod == ring.cons) {
		arm->deferred = 0;
		arm->mod_count = 0;
		return NHCA_ARM_NOTHING;
	}
	/* Kernel consumers find unpolled entries by IB_CQ_REPORT_MISSED_EVENTS. */
	if (arm->by_bh)
		return NHCA_ARM_NOTHING;
	return nhca_arm_decide(arm, ring, arm_unseen(arm, ring));
}

enum nhca_arm_todo nhca_arm_late(struct nhca_arm *arm, struct nhca_arm_ring ring)
{
	bool due = nhca_arm_kinds(arm, ring.seq) & arm->deferred;

	if (due && !arm->stopped && (!arm->by_bh || ring.prod != ring.cons))
		return arm_raise(arm, ring);
	if (arm->by_bh)
		arm->deferred = 0;
	return NHCA_ARM_NOTHING;
}

enum nhca_arm_todo nhca_arm_moderate(struct nhca_arm *arm, struct nhca_arm_ring ring, u16 count,
				     u16 period_us)
{
	/* @count 1: each completion is enough for an event, so no event is deferred. */
	arm->period_us = count == 1 ? 0 : period_us;
	arm->count = count;
	return nhca_arm_decide(arm, ring, arm->deferred);
}

void nhca_arm_age(struct nhca_arm *arm, u32 prod, u32 entries)
{
	if (prod - arm->last_event_cons > entries)
		arm->last_event_cons = prod - entries - 1;
	if (prod - arm->solicited > entries)
		arm->solicited = prod - entries;
}

void nhca_arm_stop(struct nhca_arm *arm)
{
	arm->stopped = true;
}
