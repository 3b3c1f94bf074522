/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Completion queues: the ring, its arming and its overflow.
 */
#ifndef NHCA_CQ_H
#define NHCA_CQ_H

#include <linux/hrtimer.h>

#include "../bh.h"
#include "../nhca.h"
#include "ring.h"

/**
 * struct nhca_cq - a completion queue
 * @ibcq:   the core's part
 * @lock:   irqsave; protects everything below and the producing of entries
 * @ring:   of struct nhca_cqe; for kernel consumers not mapped, and
 *          nhca_cqe.kernel then holds the struct ib_qp pointer
 * @prod:   entries produced; the truth of which hdr->prod is the copy
 * @cons:   kernel consumers only: entries polled
 * @armed:  0, or IB_CQ_SOLICITED / IB_CQ_NEXT_COMP
 * @deferred: kinds of completions, of the same two, whose event moderation, or @event, defers
 * @arm_seq: hdr->arm_seq, as last read
 * @arm_seq_acked: hdr->arm_seq that the last event acknowledged
 * @last_event_cons: the consumer index at the last event, if there were entries to poll
 * @solicited: @prod after the last completion that counts as solicited
 * @mod_count: number of completions since the last event
 * @count, @period_us: moderation: the event waits for @count completions (0: any number), but
 *          no longer than @period_us microseconds; no moderation if @period_us is 0
 * @timer:  runs for @period_us; takes @lock; ends with nhca_cq_stop()
 * @compactions: how often entries moved inside the ring (nhca_cq_forget_qp())
 * @event:  calls the handlers of a kernel consumer; ends with nhca_cq_stop()
 * @overrun_due: bit 0: @event has IB_EVENT_CQ_ERR to raise
 * @overrun: an entry was lost; IB_EVENT_CQ_ERR was raised; stays so
 * @user:   user space consumes
 * @arm_in_ring: the consumer may arm it by hdr->arm_seq (NHCA_RING_F_ARM_SEQ)
 * @timestamps: completions carry a timestamp
 * @dying:  being destroyed: no more events
 */
struct nhca_cq {
	struct ib_cq ibcq;
	spinlock_t lock;	/* irqsave; all below */
	struct nhca_ring ring;
	u32 prod;
	u32 cons;
	u32 arm_seq;
	u32 arm_seq_acked;
	u32 last_event_cons;
	u32 solicited;
	u8 armed;
	u8 deferred;
	u16 count;
	u16 period_us;
	u32 mod_count;
	struct hrtimer timer;
	u32 compactions;
	struct nhca_bh event;
	unsigned long overrun_due;
	bool overrun;
	bool user;
	bool arm_in_ring;
	bool timestamps;
	bool dying;
};

static inline struct nhca_cq *to_nhca_cq(struct ib_cq *ibcq)
{
	return container_of(ibcq, struct nhca_cq, ibcq);
}

/**
 * nhca_cq_init - a CQ of zeros gets its lock and timer
 * Context: any.
 */
void nhca_cq_init(struct nhca_cq *cq);

/**
 * nhca_cq_stop - no event from here on
 * For a CQ that nobody posts to any more.
 * Context: process, sleeps.
 */
void nhca_cq_stop(struct nhca_cq *cq);

/**
 * nhca_cq_give - let the consumer of a ring arm its CQ there, if it has events
 * @cq: the CQ
 * @ring: its ring, or the one that takes that one's place and is armed as it is
 * Context: any; with the CQ's lock, if others know of the CQ.
 */
void nhca_cq_give(const struct nhca_cq *cq, struct nhca_ring *ring);

/**
 * struct nhca_cq_move - a CQ is on its way to another ring
 * @ring:  the new ring; from the last step on the old one
 * @done:  entries before this index are in the new ring
 * @compactions: of the CQ, when the move began or began again
 */
struct nhca_cq_move {
	struct nhca_ring *ring;
	u32 done;
	u32 compactions;
};

/* entries that are copied with the CQ's lock held, and so with interrupts off, at most */
#define NHCA_CQ_STEP	64

/**
 * nhca_cq_move_start - begin to move the entries of a CQ to another ring
 * @m:    filled in
 * @ring: the new ring, empty
 *
 * Indices go on where they are.  A user consumer does not poll meanwhile: the provider holds its
 * CQ lock from before the command until it has mapped the new ring.
 * Context: process.
 */
void nhca_cq_move_start(struct nhca_cq *cq, struct nhca_cq_move *m, struct nhca_ring *ring);

/**
 * nhca_cq_move_step - copy what is there; put the new ring in place if nearly nothing is left
 *
 * Only that last rest is copied with the CQ's lock held: engines post, and a kernel consumer
 * polls, while the bulk is copied.
 * Context: process; one at a time for a CQ.
 * Return: 0: the CQ has the new ring; -EAGAIN: there is more; -EINVAL: the new ring is too small
 * for what waits, or user space made its index nonsense.
 */
int nhca_cq_move_step(struct nhca_cq *cq, struct nhca_cq_move *m);

/**
 * nhca_cq_moderate - raise fewer completion events
 * @cq: the CQ
 * @count: completions that an event waits for; 0: however many come in the period
 * @period_us: microseconds that it waits at most; 0: no moderation
 *
 * As adapters do it.  Events for solicited and unsuccessful completions do not wait, nor does a
 * consumer that polls: completions are there at once.
 * User CQs: calls comp_handler with the CQ's lock released.
 * Context: any.
 */
void nhca_cq_moderate(struct nhca_cq *cq, u16 count, u16 period_us);

/**
 * nhca_cq_post - add a completion and raise the event if the CQ is armed for it
 * @cq: the CQ
 * @cqe: the completion; @cqe->kernel holds the ib_qp pointer (cleared for user
 *       rings) and @cqe->timestamp is set here, to 0 if the CQ has none
 * @solicited: the completion counts as solicited (or is an error)
 *
 * User CQs: calls comp_handler and event_handler with the CQ's lock released: those of uverbs only
 * wake whoever reads its file.  Kernel CQs: bottom-half work calls them.
 * Context: any; callers may hold a QP's send or receive lock.
 * Return: 0, or -ENOSPC if the CQ is full: the caller moves its QP to error
 * (IBTA 11.6.3.1: CQ overrun affects the QPs that use it).
 */
int nhca_cq_post(struct nhca_cq *cq, struct nhca_cqe *cqe, bool solicited);

/**
 * nhca_cq_arm - have the next completion raise the event
 * @cq: the CQ
 * @kind: IB_CQ_SOLICITED or IB_CQ_NEXT_COMP; if the consumer arms by hdr->arm_seq, that says it
 *
 * For a user CQ the event is raised immediately if the CQ has unpolled entries that would have
 * raised it, as adapters do: programs rely on it that poll first and arm then.  If the CQ is armed
 * in the ring and its consumer has not polled since the last event, no event is raised: a consumer
 * that arms and then polls finds all entries, and one that leaves entries rings the doorbell
 * (NHCA_RING_F_ARM_SEQ).
 * Kernel consumers have IB_CQ_REPORT_MISSED_EVENTS.
 *
 * User CQs: calls comp_handler with the CQ's lock released.
 * Context: any.
 * Return: whether entries wait to be polled.
 */
bool nhca_cq_arm(struct nhca_cq *cq, u8 kind);

/**
 * nhca_cq_forget_qp - remove the completions of a QP that is being destroyed
 * from a kernel consumer's CQ, so that no wc->qp dangles; nothing for user CQs
 * Context: any.
 */
void nhca_cq_forget_qp(struct nhca_cq *cq, struct ib_qp *ibqp);

/* what there is to be seen of it; any context */
void nhca_cq_dump(struct nhca_cq *cq, struct nhca_res_cq *res);

#endif /* NHCA_CQ_H */
