/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Completion queues: the ring, its arming and its overflow.
 */
#ifndef NHCA_CQ_H
#define NHCA_CQ_H

#include <linux/hrtimer.h>

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
 * @kept:   kinds of completions, of the same two, that are due and that moderation keeps back
 * @arm:    hdr->arm, as last read
 * @answered: hdr->arm that the last event answered
 * @told:   the consumer's index at the last event, if there was anything for it to poll
 * @solicited: @prod behind the last completion that counts as solicited
 * @gathered: number of completions that came since the last event
 * @count, @period_us: moderation: the event waits until so many have been gathered (0: any
 *          number), but no longer than that; no moderation if @period_us is 0
 * @timer:  runs for @period_us; takes @lock; ends with nhca_cq_stop()
 * @overflown: an entry was lost; IB_EVENT_CQ_ERR was raised; stays so
 * @user:   user space consumes
 * @word:   its consumer may arm it by hdr->arm
 * @stamps: completions have their time
 * @dying:  being destroyed: no more events
 */
struct nhca_cq {
	struct ib_cq ibcq;
	spinlock_t lock;	/* irqsave; all below */
	struct nhca_ring ring;
	u32 prod;
	u32 cons;
	u32 arm;
	u32 answered;
	u32 told;
	u32 solicited;
	u8 armed;
	u8 kept;
	u16 count;
	u16 period_us;
	u32 gathered;
	struct hrtimer timer;
	bool overflown;
	bool user;
	bool word;
	bool stamps;
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
 * nhca_cq_moderate - raise fewer completion events
 * @cq: the CQ
 * @count: completions that an event waits for; 0: however many come in the period
 * @period_us: microseconds that it waits at most; 0: no moderation
 *
 * As adapters do it.  Events for solicited and unsuccessful completions do not wait, nor does a
 * consumer that polls: completions are there at once.
 * Calls comp_handler with the CQ's lock released.
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
 * Calls comp_handler and event_handler with the CQ's lock released.
 * Context: any; callers may hold a QP's send or receive lock.
 * Return: 0, or -ENOSPC if the CQ is full: the caller moves its QP to error
 * (IBTA 11.6.3.1: CQ overrun affects the QPs that use it).
 */
int nhca_cq_post(struct nhca_cq *cq, struct nhca_cqe *cqe, bool solicited);

/**
 * nhca_cq_arm - have the next completion raise the event
 * @cq: the CQ
 * @kind: IB_CQ_SOLICITED or IB_CQ_NEXT_COMP; if the consumer arms by hdr->arm, that says it
 *
 * For a user CQ the event is raised at once if it has entries, not polled yet, that would have
 * raised it.  Adapters do so, and programs count on it that poll first and arm then.  If it is
 * armed in the ring, not as long as its consumer has not polled since the last event: who arms
 * first and polls then finds all that there is, and who leaves some asks again (NHCA_RING_F_ARM).
 * Kernel consumers have IB_CQ_REPORT_MISSED_EVENTS.
 *
 * Calls comp_handler with the CQ's lock released.
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
void nhca_cq_look(struct nhca_cq *cq, struct nhca_res_cq *res);

#endif /* NHCA_CQ_H */
