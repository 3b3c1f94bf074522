/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Completion queues: the ring, completion events and overflow.
 */
#ifndef NHCA_CQ_H
#define NHCA_CQ_H

#include <linux/hrtimer.h>
#include <linux/mutex.h>

#include "../bh.h"
#include "../nhca.h"
#include "arm.h"
#include "ring.h"

/**
 * struct nhca_cq - a completion queue
 * @ibcq:   the RDMA core's part
 * @owner:  user to whom the CQ is charged; NULL: to no user; constant
 * @resize: serializes moves to another ring, because the RDMA core lets two threads resize a CQ
 * @lock:   irqsave; protects the members below it, except @overrun_due and constants
 * @ring:   ring of struct nhca_cqe.  A kernel consumer's ring is not mapped, and nhca_cqe.kernel of
 *          its entries is a pointer to struct ib_qp.
 * @prod:   number of entries produced, modulo 2^32; hdr->prod is a copy for the consumer
 * @cons:   kernel consumers: number of entries polled, modulo 2^32
 * @gap:    kernel consumers, while nhca_cq_forget_qp() runs: index of the first unused slot.  The
 *          entries that stay have moved to higher indices, and nhca_cq_next() skips these slots
 * @gap_len: number of unused slots from @gap on; 0 while nhca_cq_forget_qp() does not run
 * @forgets: a call of nhca_cq_forget_qp() is in progress; other calls wait until it ends
 * @xrc:    kernel consumers: entry in the list of nhca_cq_serve_xrc(), which a mutex in cq.c
 *          protects
 * @arm:    kinds of completions for which the CQ is armed, and its deferred event
 * @timer:  moderation timer, expires after @arm.period_us; nhca_cq_stop() cancels the timer
 * @compactions: number of steps of nhca_cq_forget_qp(), which may move entries inside the ring
 * @event:  bottom-half work that calls the handlers of a kernel consumer; nhca_cq_stop() cancels
 *          the work
 * @overrun_due: bit 0: @event has to raise IB_EVENT_CQ_ERR; atomic bit operations
 * @overrun: an entry was lost; IB_EVENT_CQ_ERR is raised only for the first one; never cleared
 * @user:   user space owns the consumer index; constant
 * @arm_in_ring: the consumer may arm the CQ by hdr->arm_seq (NHCA_RING_F_ARM_SEQ); constant
 * @timestamps: completions have a timestamp; constant
 */
struct nhca_cq {
	struct ib_cq ibcq;
	struct nhca_user *owner;
	struct mutex resize;	/* one move at a time */
	struct list_head xrc;
	spinlock_t lock;	/* irqsave; all below */
	struct nhca_ring ring;
	u32 prod;
	u32 cons;
	u32 gap;
	u32 gap_len;
	bool forgets;
	struct nhca_arm arm;
	struct hrtimer timer;
	u32 compactions;
	struct nhca_bh event;
	unsigned long overrun_due;
	bool overrun;
	bool user;
	bool arm_in_ring;
	bool timestamps;
};

static inline struct nhca_cq *to_nhca_cq(struct ib_cq *ibcq)
{
	return container_of(ibcq, struct nhca_cq, ibcq);
}

/**
 * nhca_cq_init - initialize locks, arming, timer and bottom-half work of a CQ
 * @cq: zeroed, except for the RDMA core's part
 * @user: true: user space owns the consumer index; false: a kernel consumer's CQ
 * Context: any.
 */
void nhca_cq_init(struct nhca_cq *cq, bool user);

/**
 * nhca_cq_stop - stop the events of a CQ
 * @cq: the CQ, to which no QP posts any more; no event is raised after the function returns
 * Context: process, sleeps.
 */
void nhca_cq_stop(struct nhca_cq *cq);

/**
 * nhca_cq_enable_arm - allow the consumer of a new CQ to arm the CQ in the ring
 * @cq: the CQ, with its ring; if @cq->arm_in_ring is false, the function does nothing
 * Context: process.
 */
void nhca_cq_enable_arm(struct nhca_cq *cq);

/**
 * struct nhca_cq_move - state of a move of a CQ to another ring
 * @ring:  the new ring; after the last step, the old ring
 * @done:  entries before this index have been copied to the new ring
 * @compactions: nhca_cq.compactions when the copy began or was restarted
 */
struct nhca_cq_move {
	struct nhca_ring *ring;
	u32 done;
	u32 compactions;
};

/* Maximum number of entries that are copied or moved with the CQ's lock held and interrupts off */
#define NHCA_CQ_STEP	64

/**
 * nhca_cq_move_start - begin to move the entries of a CQ to another ring
 * @cq:   the CQ
 * @m:    filled in
 * @ring: the new ring, empty
 *
 * Producer and consumer index keep their values.  User space does not poll during the move: the
 * provider holds its CQ lock from before the command until it has mapped the new ring.
 * Context: process.
 */
void nhca_cq_move_start(struct nhca_cq *cq, struct nhca_cq_move *m, struct nhca_ring *ring);

/**
 * nhca_cq_move_step - copy entries to the new ring, and exchange the rings in the last step
 * @cq: the CQ
 * @m:  from nhca_cq_move_start()
 *
 * Only the last step copies entries with the CQ's lock held, at most NHCA_CQ_STEP.  During the
 * other steps, QPs may post completions and a kernel consumer may poll.
 * Context: process; nhca_cq.resize has been held since before nhca_cq_move_start().
 * Return: 0: the CQ has the new ring; -EAGAIN: the caller has to call the function again; -EINVAL:
 * the new ring is too small for the unpolled entries, or user space has stored an impossible
 * consumer index.
 */
int nhca_cq_move_step(struct nhca_cq *cq, struct nhca_cq_move *m);

/**
 * nhca_cq_moderate - set the moderation of completion events
 * @cq: the CQ
 * @count: number of completions that an event waits for; 0: the event waits for @period_us; 1: no
 *         moderation
 * @period_us: maximum time that an event waits, also one that is deferred now, in microseconds;
 *         0: no moderation
 *
 * As on adapters, moderation defers events only: a consumer that polls finds each completion
 * immediately.  Events of solicited and unsuccessful completions are not deferred.
 * If a deferred event of a user CQ is due now, the function calls comp_handler with the CQ's lock
 * released.
 * Context: any.
 */
void nhca_cq_moderate(struct nhca_cq *cq, u16 count, u16 period_us);

/**
 * nhca_cq_post - add a completion, and raise the event if the CQ is armed for it
 * @cq: the CQ
 * @cqe: the completion.  The caller has set @cqe->kernel to the struct ib_qp; for a user CQ the
 *       function clears it.  The function sets @cqe->timestamp: 0 if the CQ has no timestamps.
 * @solicited: the completion is solicited; unsuccessful ones count as solicited in any case
 *
 * User CQ: the function calls comp_handler and event_handler with the CQ's lock released; the
 * handlers of uverbs only wake up readers of a file.  Kernel CQ: bottom-half work calls the
 * handlers.
 * Context: any; callers may hold a QP's send or receive lock.
 * Return: 0; -ENOSPC: the CQ is full and the completion is lost.  A QP must then change to the
 * error state (IBTA 11.6.3.1: a CQ overrun affects the QPs that use the CQ); a channel only counts
 * the loss.
 */
int nhca_cq_post(struct nhca_cq *cq, struct nhca_cqe *cqe, bool solicited);

/**
 * nhca_cq_arm - request an event for the next completion
 * @cq: the CQ
 * @kind: IB_CQ_SOLICITED or IB_CQ_NEXT_COMP; ignored if the consumer has armed by hdr->arm_seq
 *
 * If a user CQ has unpolled entries of this kind, the event is raised as for new entries: without
 * moderation, immediately.  Adapters behave in the same way, because some programs poll first and
 * arm afterwards.  There is one exception: the consumer has armed in the ring and has not polled
 * since the last event.  Such a consumer polls after it has armed, and sends this command again if
 * it leaves entries unpolled (NHCA_RING_F_ARM_SEQ).  For unpolled entries of a kernel consumer's
 * CQ no event is raised: kernel consumers use IB_CQ_REPORT_MISSED_EVENTS.
 *
 * The function calls comp_handler of a user CQ with the CQ's lock released.
 * Context: any.
 * Return: true if the CQ has unpolled entries.
 */
bool nhca_cq_arm(struct nhca_cq *cq, u8 kind);

/**
 * nhca_cq_forget_qp - remove the completions of a QP that is being destroyed
 * @cq: the CQ; for a user CQ, the function does nothing
 * @ibqp: the QP, which posts no completions any more
 *
 * After the destruction of the QP, no wc->qp that a kernel consumer polls may point to it.  While
 * the function runs, other QPs may post to the CQ and its consumer may poll, because the lock is
 * held for at most NHCA_CQ_STEP entries at a time; these polls may still return completions of
 * @ibqp.
 * Context: process, sleeps.
 */
void nhca_cq_forget_qp(struct nhca_cq *cq, struct ib_qp *ibqp);

/**
 * nhca_cq_serve_xrc - record that XRC targets post to a CQ, as the CQ of their SRQs
 * @cq: a kernel consumer's CQ; nhca_cq_stop() ends the record
 *
 * An XRC target has no CQ, and its completions are in the CQs of all SRQs that its requests have
 * named.  An SRQ may be destroyed before the QP, but its CQ and the completions there stay.
 * Context: process, sleeps.
 */
void nhca_cq_serve_xrc(struct nhca_cq *cq);

/**
 * nhca_cq_forget_xrc - call nhca_cq_forget_qp() for each CQ to which an XRC target may have posted
 * @ibqp: the QP of a kernel consumer, which posts no completions any more
 * Context: process, sleeps.
 */
void nhca_cq_forget_xrc(struct ib_qp *ibqp);

/**
 * nhca_cq_forget_step - perform one step of nhca_cq_forget_qp()
 * @cq: the CQ; before the first step the caller sets @cq->gap to @cq->prod
 * @ibqp: the QP
 * Context: CQ's lock held; the steps for one QP must end before those for another QP begin.
 * Return: true if the caller must perform another step.
 */
bool nhca_cq_forget_step(struct nhca_cq *cq, struct ib_qp *ibqp) __must_hold(&cq->lock);

/**
 * nhca_cq_next - poll an entry of a kernel consumer's CQ
 * @cq: the CQ
 * Context: CQ's lock held.
 * Return: the entry, or NULL if all entries have been polled.
 */
struct nhca_cqe *nhca_cq_next(struct nhca_cq *cq) __must_hold(&cq->lock);

/**
 * nhca_cq_dump - copy the state of a CQ for `rdma resource'
 * @cq: the CQ; after nhca_cq_stop() its state is all 0
 * @res: filled in
 * Context: any.
 */
void nhca_cq_dump(struct nhca_cq *cq, struct nhca_res_cq *res);

#endif /* NHCA_CQ_H */
