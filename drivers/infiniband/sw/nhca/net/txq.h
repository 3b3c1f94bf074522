/* SPDX-License-Identifier: GPL-2.0 */
/* Private to flow.c and txq.c: the packet counts of flows, of devices, and of users of a device. */
#ifndef NHCA_NET_TXQ_H
#define NHCA_NET_TXQ_H

#include <linux/atomic.h>
#include <linux/bits.h>
#include <linux/list.h>
#include <linux/refcount.h>
#include <linux/spinlock.h>
#include <linux/timer.h>

#include "../bh.h"
#include "zcopy.h"

/* a flow with fewer packets in the stack need not wait behind the flows of nhca_txq.waiting */
#define NHCA_FLOW_FEW		16
/* packets of one device in the stack at which its flows pause; at half of them the flows resume */
#define NHCA_TXQ_HIGH		256
/* parts of nhca_flow.inflight: number of packets, number of stuck packets, and a CPU */
#define NHCA_FLOW_COUNT		GENMASK_ULL(23, 0)
#define NHCA_FLOW_STUCK_SHIFT	24
#define NHCA_FLOW_CPU_SHIFT	48

/**
 * struct nhca_txq - packets of one device, or of one user of a device, in the network stack
 * @ref:      references: one of the device or user; in the count of a device also one of each flow
 *            and of each user's count, and one of @age while @aging; one of @rest while @resting
 * @rcu:      frees the struct after a grace period, because the functions of @rest and @age, which
 *            run in softirq, may drop the last reference
 * @inflight: number of packets in the stack that are not stuck
 * @high:     value of @inflight at which flows pause
 * @low:      value of @inflight at which waiting flows resume
 * @lock:     irqsave; protects @waiting, @wakes, @resting, @active, @nactive, @aging
 * @waiting:  flows that wait until @inflight falls, in the order of their arrival: with requests to
 *            send [0], with responses to send [1]
 * @wakes:    number of flows woken so far; wraps
 * @passed:   number of times that a flow has bypassed the waiting flows since a flow was woken; a
 *            hint, without a lock
 * @rest:     wakes the remaining flows when the stack holds no packet
 * @resting:  @rest is queued or runs
 * @device:   in the count of a user: the count of the device, with a reference; in the count of a
 *            device: NULL
 * @active:   flows that may have packets in @inflight; no references. Only devices use this member
 *            and the next ones
 * @nactive:  number of flows in @active
 * @released: number of packets freed so far; wraps; a hint, without a lock
 * @age:      finds packets that are stuck
 * @aging:    @age is pending or runs
 */
struct nhca_txq {
	refcount_t ref;
	struct rcu_head rcu;
	atomic_t inflight;
	int high;
	int low;
	/* protects the lists, and the state of @rest and @age */
	spinlock_t lock;
	struct list_head waiting[2];
	u32 wakes;
	u32 passed;
	struct nhca_bh rest;
	bool resting;
	struct nhca_txq *device;
	struct list_head active;
	unsigned int nactive;
	u32 released;
	struct timer_list age;
	bool aging;
};

/**
 * struct nhca_flow - packets of one QP or channel in the network stack
 * @rcu:      frees the struct after a grace period
 * @ref:      references: the QP or channel, each zero-copy reference, and each charged skb without
 *            a zero-copy reference
 * @inflight: packets in the stack (NHCA_FLOW_COUNT); how many of them are stuck, so that @txq and
 *            @share do not count them; and the CPU by which XPS selects the transmit queue of all
 *            these packets, see nhca_flow_add()
 * @blocked:  the flow waits to be kicked when @inflight falls to NHCA_FLOW_LOW
 * @moved:    since nhca_txq.age examined the flow, a packet was freed or the flow was listed
 * @held:     the transmit queue does not change, even if @inflight counts no packets: see
 *            nhca_flow_queue_hold(); written under nhca_sq.lock, READ_ONCE()
 * @listed:   the flow is in nhca_txq.active; written under nhca_txq.lock, READ_ONCE()
 * @txq:      packet count of the device
 * @user:     user of the flow, with a reference; NULL: no limits of a user apply
 * @share:    packet count of @user in the device; NULL: the device's count alone limits the flow
 * @wait:     entries in lists of nhca_txq.waiting: [0] of @txq, [1] of @share; the second index is
 *            that of nhca_txq.waiting; under nhca_txq.lock; an entry is empty if the flow is not in
 *            that list
 * @active:   entry in nhca_txq.active
 * @since:    jiffies when nhca_txq.age last found @moved set; under nhca_txq.lock
 * @base:     nhca_txq.released at that time; under nhca_txq.lock
 * @pages:    zero-copy references of the flow
 * @kick:     runs requester and responder of the QP, or the channel; NULL after nhca_flow_stop()
 * @arg:      argument of @kick
 *
 * The flow outlives its QP or channel until the last packet is freed.
 */
struct nhca_flow {
	struct rcu_head rcu;
	refcount_t ref;
	atomic64_t inflight;
	int blocked;
	bool moved;
	bool held;
	bool listed;
	struct nhca_txq *txq;
	struct nhca_user *user;
	struct nhca_txq *share;
	struct list_head wait[2][2];
	struct list_head active;
	unsigned long since;
	u32 base;
	struct nhca_pageref_queue pages;
	void (*kick)(void *arg);
	void *arg;
};

/* Return: number of packets in the stack. @inflight: value of nhca_flow.inflight */
static inline u32 nhca_flow_count(s64 inflight)
{
	return inflight & NHCA_FLOW_COUNT;
}

/* Return: number of packets that are stuck. @inflight: value of nhca_flow.inflight */
static inline u32 nhca_flow_stuck(s64 inflight)
{
	return (u64)inflight >> NHCA_FLOW_STUCK_SHIFT & NHCA_FLOW_COUNT;
}

/*
 * Return: true if a flow waits that has to send before a flow with a response (@answer) or with a
 * request. Responses are sent before requests.
 */
static inline bool nhca_txq_waiting(const struct nhca_txq *q, bool answer)
{
	return !list_empty_careful(&q->waiting[true]) ||
	       (!answer && !list_empty_careful(&q->waiting[false]));
}

/* ---- flow.c ---- */

/*
 * Increment and decrement the number for which nhca_flow_drain() waits at module unload.
 * Context: any.
 */
void nhca_flows_get(void);
void nhca_flows_put(void);

/* The function of nhca_txq.rest: wake flows that still wait when the stack holds no packet. */
void nhca_txq_rest(struct nhca_bh *bh);

/**
 * nhca_flow_release_count - stop counting packets of a flow for its user and its device
 * @flow:    the flow
 * @packets: number of packets
 *
 * The function wakes flows that wait. nhca_flow.inflight does not change.
 * Context: RCU read side.
 */
void nhca_flow_release_count(struct nhca_flow *flow, unsigned int packets);

/* ---- txq.c ---- */

/**
 * nhca_flow_list - add a flow to nhca_txq.active of its device
 * nhca_flow_unlist - remove a flow that has no reference any more from this list
 * @flow: the flow
 * Context: any.
 */
void nhca_flow_list(struct nhca_flow *flow);
void nhca_flow_unlist(struct nhca_flow *flow);

/**
 * nhca_txq_age_start - start the timer that finds stuck packets of a device, unless it runs
 * @q: the device's count
 *
 * The timer stops when nhca_txq.active is empty, because the device counts no packet any more.
 * Context: any.
 */
void nhca_txq_age_start(struct nhca_txq *q);

#endif /* NHCA_NET_TXQ_H */
