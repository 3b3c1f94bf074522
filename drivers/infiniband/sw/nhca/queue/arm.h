/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Arming of a CQ: which completions raise an event, and when.  The state table is in arm.c.
 *
 * The functions change only struct nhca_arm.  The caller passes a copy of the ring's indices, and
 * the functions return what the caller has to do.
 */
#ifndef NHCA_ARM_H
#define NHCA_ARM_H

#include <linux/types.h>
#include <rdma/nhca-abi.h>

/**
 * struct nhca_arm - kinds of completions for which a CQ is armed, and its deferred event
 * @armed:  kind for which a command has armed the CQ: 0, IB_CQ_SOLICITED or IB_CQ_NEXT_COMP
 * @deferred: kinds of completions whose event waits for the moderation timer or for the bottom
 *          half: a mask of IB_CQ_SOLICITED and IB_CQ_NEXT_COMP
 * @by_bh:  the bottom half raises the events, and only while entries are unpolled (kernel
 *          consumers); constant
 * @stopped: the CQ is being destroyed and raises no more events
 * @count:  moderation: the event waits for this number of completions, or for @period_us, whichever
 *          comes first; 0: the event waits for @period_us
 * @period_us: moderation: maximum time that the event waits, in microseconds; 0: no moderation
 * @mod_count: moderation: completions since the last event, or since the last request that found
 *          all entries polled
 * @solicited: producer index after the last completion that counts as solicited
 * @seq_acked: arm_seq of the ring that the last event acknowledged; published in the ring
 * @last_event_cons: consumer index at the last event; if the consumer had polled all entries then,
 *          an index that the consumer cannot have; published in the ring
 *
 * The lock of the CQ protects all members.
 */
struct nhca_arm {
	u8 armed;
	u8 deferred;
	bool by_bh;
	bool stopped;
	u16 count;
	u16 period_us;
	u32 mod_count;
	u32 solicited;
	u32 seq_acked;
	u32 last_event_cons;
};

/**
 * struct nhca_arm_ring - copy of the indices of a CQ's ring
 * @prod: number of entries produced, modulo 2^32
 * @cons: number of entries polled, modulo 2^32.  User space may have stored any value.
 * @seq:  arm_seq of the ring.  User space may have stored any value.  0: the consumer has never
 *        armed the CQ in the ring, or the CQ cannot be armed in the ring.
 */
struct nhca_arm_ring {
	u32 prod;
	u32 cons;
	u32 seq;
};

/**
 * enum nhca_arm_todo - what the caller has to do
 * @NHCA_ARM_NOTHING: nothing
 * @NHCA_ARM_RAISE: publish the state in the ring, release the CQ's lock and raise the event
 * @NHCA_ARM_TIMER: start the timer with nhca_arm.period_us, unless it is running; call
 *                  nhca_arm_late() when the timer expires
 * @NHCA_ARM_BH: queue the bottom half, which must call nhca_arm_late()
 */
enum nhca_arm_todo {
	NHCA_ARM_NOTHING,
	NHCA_ARM_RAISE,
	NHCA_ARM_TIMER,
	NHCA_ARM_BH,
};

/**
 * nhca_arm_init - set the state of a new CQ, which is not armed
 * @arm: filled in
 * @user: true: user space consumes the entries, so events need no bottom half
 * @start: index of the first entry
 * Context: any.
 */
void nhca_arm_init(struct nhca_arm *arm, bool user, u32 start);

/**
 * nhca_arm_kinds - get the kinds of completions for which a CQ is armed, by command or in its ring
 * @arm: the state
 * @seq: as nhca_arm_ring.seq
 * Context: any; CQ's lock held.
 * Return: a mask of enum ib_cq_notify_flags; a completion of one of these kinds raises the event.
 */
static inline u8 nhca_arm_kinds(const struct nhca_arm *arm, u32 seq)
{
	return arm->armed | (seq != arm->seq_acked ? seq & NHCA_ARM_MASK : 0);
}

/**
 * nhca_arm_decide - decide about the event of completions that are already in the ring
 * @arm: the state
 * @ring: indices that include the completions
 * @kind: kinds of the completions, a mask of enum ib_cq_notify_flags
 * Context: any; CQ's lock held.
 * Return: what the caller has to do.
 */
enum nhca_arm_todo nhca_arm_decide(struct nhca_arm *arm, struct nhca_arm_ring ring, u8 kind);

/**
 * nhca_arm_completion - decide about the event of a completion that the caller has just added
 * @arm: the state
 * @ring: indices that include the completion; the caller has read @ring.seq after a full barrier
 *        that follows its store of the producer index
 * @kind: kinds of the completion, a mask of enum ib_cq_notify_flags
 *
 * The function is inline, so that most completions, for which the CQ is not armed, need no call.
 * Context: any; CQ's lock held.
 * Return: what the caller has to do.
 */
static inline enum nhca_arm_todo nhca_arm_completion(struct nhca_arm *arm,
						     struct nhca_arm_ring ring, u8 kind)
{
	if (kind & NHCA_ARM_SOLICITED)
		arm->solicited = ring.prod;
	arm->mod_count++;
	if (likely(!(nhca_arm_kinds(arm, ring.seq) & kind)))
		return NHCA_ARM_NOTHING;
	return nhca_arm_decide(arm, ring, kind);
}

/**
 * nhca_arm_request - process the command that requests an event
 * @arm: the state
 * @ring: indices at the time of the command
 * @kind: IB_CQ_SOLICITED or IB_CQ_NEXT_COMP; ignored if the consumer has armed in the ring
 *
 * The function treats unpolled entries of a user CQ like completions that are added now, so without
 * moderation their event is raised immediately.  There is one exception: the consumer has armed in
 * the ring and has not polled since the last event.  Such a consumer polls after it has armed, and
 * sends the command again if it leaves entries unpolled.
 * Context: any; CQ's lock held.
 * Return: what the caller has to do.
 */
enum nhca_arm_todo nhca_arm_request(struct nhca_arm *arm, struct nhca_arm_ring ring, u8 kind);

/**
 * nhca_arm_late - raise the deferred event, if it is still due
 * @arm: the state
 * @ring: indices at the end of the period, or when the bottom half runs
 *
 * User space gets the event even if it has already polled all entries, because it may be waiting
 * for the event.  If a kernel consumer has polled all entries, its CQ stays armed and raises no
 * event: the consumer may have destroyed its last QP, and may be stopping the work that its handler
 * would start again.
 * Context: any; CQ's lock held.
 * Return: NHCA_ARM_RAISE or NHCA_ARM_NOTHING.
 */
enum nhca_arm_todo nhca_arm_late(struct nhca_arm *arm, struct nhca_arm_ring ring);

/**
 * nhca_arm_moderate - set the moderation of events
 * @arm: the state
 * @ring: indices at the time of the command
 * @count: number of completions that an event waits for; 0: the event waits for @period_us; 1: no
 *         moderation
 * @period_us: maximum time that an event waits, in microseconds; 0: no moderation
 * Context: any; CQ's lock held.
 * Return: what the caller has to do; an event that was deferred with the old values may be due.
 */
enum nhca_arm_todo nhca_arm_moderate(struct nhca_arm *arm, struct nhca_arm_ring ring, u16 count,
				     u16 period_us);

/**
 * nhca_arm_age - increase last_event_cons and solicited, if more than @entries before @prod
 * @arm: the state
 * @prod: producer index
 * @entries: size of the ring
 *
 * The indices wrap.  Without this function, an old index would be taken for a current one after
 * 2^31 (@arm->solicited) or 2^32 entries (@arm->last_event_cons).
 * Context: any; CQ's lock held; called at least once in 2^31 entries.
 */
void nhca_arm_age(struct nhca_arm *arm, u32 prod, u32 entries);

/**
 * nhca_arm_stop - disable all further events of the CQ
 * @arm: the state
 * Context: any; CQ's lock held.
 */
void nhca_arm_stop(struct nhca_arm *arm);

#endif /* NHCA_ARM_H */
