// SPDX-License-Identifier: GPL-2.0
/*
 * Transmit back-pressure: the packets in the network stack, counted for each QP or channel (its
 * flow) and for each device. A flow with too many packets pauses, and the skb destructor kicks its
 * owner later. Queues stay short, so a timeout means a loss and not a delay in the queues of this
 * host. All packets that a flow has in the stack take the same transmit queue.
 */
#include <linux/log2.h>
#include <linux/slab.h>
#include <linux/smp.h>
#include <linux/wait.h>

#include "../bh.h"
#include "../observe/stub.h"
#include "net.h"
#include "flow.h"
#include "zcopy.h"

/* packets of one flow in the stack at which the flow pauses, and at which it resumes */
#define NHCA_FLOW_HIGH		64
#define NHCA_FLOW_LOW		32
/* a flow with fewer packets in the stack need not queue after the flows that wait for the device */
#define NHCA_FLOW_FEW		16
/* packets of one device in the stack at which its flows pause, and at which waiting flows resume */
#define NHCA_TXQ_HIGH		256
#define NHCA_TXQ_LOW		128
/*
 * number of packets that may bypass the waiting flows; after that number, one flow of each list is
 * woken as soon as the stack holds fewer than NHCA_TXQ_HIGH packets of the device
 */
#define NHCA_TXQ_PASSED		16
/*
 * Maximum number of flows that one freed skb wakes, and how many of them may have responses to
 * send. Responses are sent first because the peer's ACK timer for a READ already runs, while a
 * request that was not sent has no timer.
 */
#define NHCA_TXQ_WAKE		4
#define NHCA_TXQ_WAKE_ANSWERS	3
/* maximum number of flows woken at a time, with interrupts disabled, after the last packet */
#define NHCA_TXQ_WAKE_MAX	64

/**
 * struct nhca_txq - packets of one device in the network stack
 * @ref:      references: the device, its flows, and @rest while it is queued
 * @rcu:      frees the struct after a grace period, because @rest may drop the last reference
 * @inflight: packets in the stack
 * @lock:     irqsave; protects @waiting, @turns, @resting
 * @waiting:  flows that wait until @inflight falls, in the order of their arrival: with requests to
 *            send [0], with responses to send [1]
 * @turns:    number of flows woken so far; wraps
 * @passed:   packets that bypassed the waiting flows since a flow was woken; a hint, without a lock
 * @rest:     wakes the remaining flows when the stack holds no packet
 * @resting:  @rest is queued or runs
 */
struct nhca_txq {
	refcount_t ref;
	struct rcu_head rcu;
	atomic_t inflight;
	/* protects the lists of waiting flows */
	spinlock_t lock;
	struct list_head waiting[2];
	u32 turns;
	u32 passed;
	struct nhca_bh rest;
	bool resting;
};

/**
 * struct nhca_flow - packets of one QP or channel in the network stack
 * @rcu:      frees the struct after a grace period
 * @ref:      references: the QP or channel, each charged skb, and each zero-copy reference
 * @inflight: lower half: packets in the stack; upper half: the CPU by which XPS selects the
 *            transmit queue of all these packets, see nhca_flow_add()
 * @blocked:  the flow waits to be kicked when @inflight falls
 * @txq:      packet count of the device
 * @wait:     entries in the lists of nhca_txq.waiting, by the same index; under nhca_txq.lock; an
 *            entry is empty if the flow is not in that list
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
	struct nhca_txq *txq;
	struct list_head wait[2];
	struct nhca_pageref_queue pages;
	void (*kick)(void *arg);
	void *arg;
};

/*
 * Number of flows, and of struct nhca_txq whose @rest is queued. The module is unloaded only when
 * this number is 0, after the stack has freed all packets.
 */
static atomic_t nhca_flows = ATOMIC_INIT(0);
static DECLARE_WAIT_QUEUE_HEAD(nhca_flows_gone);

static void nhca_txq_rest(struct nhca_bh *bh);

struct nhca_txq *nhca_txq_create(void)
{
	struct nhca_txq *q = kzalloc(sizeof(*q), GFP_KERNEL);

	if (!q)
		return NULL;
	refcount_set(&q->ref, 1);
	spin_lock_init(&q->lock);
	INIT_LIST_HEAD(&q->waiting[false]);
	INIT_LIST_HEAD(&q->waiting[true]);
	nhca_bh_init(&q->rest, nhca_txq_rest);
	return q;
}

void nhca_txq_put(struct nhca_txq *q)
{
	if (q && refcount_dec_and_test(&q->ref))
		kfree_rcu(q, rcu);
}

struct nhca_flow *nhca_flow_create(struct nhca_txq *q, void (*kick)(void *arg), void *arg)
{
	struct nhca_flow *flow;

	/*
	 * slab aligns an object of 2^n bytes to 2^n; nhca_flow_charge() uses the low address bits
	 */
	BUILD_BUG_ON(sizeof(*flow) < NHCA_FLOW_BATCH);
	flow = kzalloc(roundup_pow_of_two(sizeof(*flow)), GFP_KERNEL_ACCOUNT);
	if (!flow)
		return NULL;
	refcount_set(&flow->ref, 1);
	INIT_LIST_HEAD(&flow->wait[false]);
	INIT_LIST_HEAD(&flow->wait[true]);
	refcount_inc(&q->ref);
	flow->txq = q;
	nhca_pageref_queue_add(&flow->pages, q);
	flow->kick = kick;
	flow->arg = arg;
	atomic_inc(&nhca_flows);
	return flow;
}

static void nhca_flows_put(void)
{
	if (atomic_dec_and_test(&nhca_flows))
		wake_up(&nhca_flows_gone);
}

void nhca_flow_get(struct nhca_flow *flow)
{
	refcount_inc(&flow->ref);
}

struct nhca_pageref_queue *nhca_flow_pagerefs(struct nhca_flow *flow)
{
	return &flow->pages;
}

void nhca_flow_put(struct nhca_flow *flow)
{
	if (!refcount_dec_and_test(&flow->ref))
		return;
	nhca_pageref_queue_del(&flow->pages);
	nhca_txq_put(flow->txq);
	kfree_rcu(flow, rcu);
	nhca_flows_put();
}

void nhca_flow_stop(struct nhca_flow *flow)
{
	WRITE_ONCE(flow->kick, NULL);
}

void nhca_flow_close(struct nhca_flow *flow)
{
	unsigned long flags;

	nhca_flow_stop(flow);
	spin_lock_irqsave(&flow->txq->lock, flags);
	list_del_init(&flow->wait[false]);
	list_del_init(&flow->wait[true]);
	spin_unlock_irqrestore(&flow->txq->lock, flags);
	nhca_flow_put(flow);
}

unsigned int nhca_flow_inflight(const struct nhca_flow *flow)
{
	return lower_32_bits(atomic64_read(&flow->inflight));
}

unsigned int nhca_flow_sender(const struct nhca_flow *flow)
{
	return upper_32_bits(atomic64_read(&flow->inflight));
}

bool nhca_flow_in_line(const struct nhca_flow *flow, u32 *turns)
{
	u32 now = READ_ONCE(flow->txq->turns);
	bool moved = now != *turns;

	*turns = now;
	return moved && !list_empty_careful(&flow->wait[false]);
}

/* Return: true if a waiting flow has to send first. Responses are sent before requests. */
static bool nhca_txq_waiting(const struct nhca_txq *q, bool answer)
{
	return !list_empty_careful(&q->waiting[true]) ||
	       (!answer && !list_empty_careful(&q->waiting[false]));
}

/*
 * Return: true if @flow may send now. While flows wait, @flow may bypass them only if it does not
 * wait itself and has few packets in the stack. So a short message does not wait for long ones.
 * Flows with more packets may not bypass the waiting flows: they would keep the device above
 * NHCA_TXQ_LOW, so the waiting flows would rarely resume.
 */
static bool nhca_txq_open(struct nhca_txq *q, const struct nhca_flow *flow, bool answer)
{
	if (unlikely(atomic_read(&q->inflight) >= NHCA_TXQ_HIGH))
		return false;
	if (likely(!nhca_txq_waiting(q, answer)))
		return true;
	if (!list_empty_careful(&flow->wait[answer]) ||
	    nhca_flow_inflight(flow) >= NHCA_FLOW_FEW)
		return false;
	WRITE_ONCE(q->passed, READ_ONCE(q->passed) + 1);
	return true;
}

static bool nhca_txq_blocked(struct nhca_txq *q, struct nhca_flow *flow, bool answer)
{
	unsigned long flags;
	bool blocked;

	if (likely(nhca_txq_open(q, flow, answer)))
		return false;

	spin_lock_irqsave(&q->lock, flags);
	if (list_empty(&flow->wait[answer]))
		list_add_tail(&flow->wait[answer], &q->waiting[answer]);
	/*
	 * Full barrier. It pairs with atomic_sub_return() in nhca_txq_release(), which then reads
	 * the lists.
	 */
	smp_mb();
	blocked = atomic_read(&q->inflight) > NHCA_TXQ_LOW;
	if (!blocked)
		list_del_init(&flow->wait[answer]);
	spin_unlock_irqrestore(&q->lock, flags);
	return blocked;
}

bool nhca_flow_blocked(struct nhca_flow *flow, bool answer)
{
	if (unlikely(nhca_flow_inflight(flow) >= NHCA_FLOW_HIGH)) {
		WRITE_ONCE(flow->blocked, 1);
		/*
		 * Full barrier. It pairs with atomic64_sub_return() in nhca_flow_uncharge(), which
		 * then reads flow->blocked.
		 */
		smp_mb();
		if (nhca_flow_inflight(flow) > NHCA_FLOW_LOW)
			return true;
		WRITE_ONCE(flow->blocked, 0);
	}
	return nhca_txq_blocked(flow->txq, flow, answer);
}

void nhca_flow_run(struct nhca_flow *flow)
{
	void (*kick)(void *arg) = READ_ONCE(flow->kick);

	if (kick)
		kick(flow->arg);
}

/* Wake at most @max waiting flows. @q->lock is held. Return: number of woken flows. */
static unsigned int nhca_txq_wake(struct nhca_txq *q, bool answer, unsigned int max)
{
	struct nhca_flow *flow, *next;
	unsigned int n = 0;

	lockdep_assert_held(&q->lock);
	list_for_each_entry_safe(flow, next, &q->waiting[answer], wait[answer]) {
		if (n == max)
			break;
		n++;
		list_del_init(&flow->wait[answer]);
		WRITE_ONCE(q->turns, q->turns + 1);
		nhca_flow_run(flow);
	}
	return n;
}

/*
 * Wake up to NHCA_TXQ_WAKE_MAX flows because the stack holds no packet, so no destructor would wake
 * them later. @q->lock is held.
 * Return: false if flows are left, which nhca_txq.rest must wake.
 */
static bool nhca_txq_wake_all(struct nhca_txq *q)
{
	unsigned int n = nhca_txq_wake(q, true, NHCA_TXQ_WAKE_MAX);

	nhca_txq_wake(q, false, NHCA_TXQ_WAKE_MAX - n);
	return list_empty(&q->waiting[true]) && list_empty(&q->waiting[false]);
}

static void nhca_txq_rest(struct nhca_bh *bh)
{
	struct nhca_txq *q = container_of(bh, struct nhca_txq, rest);
	unsigned long flags;
	bool more;

	spin_lock_irqsave(&q->lock, flags);
	/* if a woken flow has sent packets, the last of these wakes the other flows */
	more = !atomic_read(&q->inflight) && !nhca_txq_wake_all(q);
	q->resting = more;
	spin_unlock_irqrestore(&q->lock, flags);
	if (more) {
		nhca_bh_queue(&q->rest);
		return;
	}
	nhca_txq_put(q);
	nhca_flows_put();
}

/*
 * Return: true if a waiting flow may be woken with @left packets in the stack. Up to NHCA_TXQ_LOW
 * packets, a flow may always be woken. Between NHCA_TXQ_LOW and NHCA_TXQ_HIGH packets, a flow may
 * be woken if NHCA_TXQ_PASSED packets have bypassed the lists: many flows with few packets, which
 * bypass the lists, could otherwise keep the device above NHCA_TXQ_LOW.
 */
static bool nhca_txq_moves(const struct nhca_txq *q, int left)
{
	return left <= NHCA_TXQ_LOW ||
	       (left < NHCA_TXQ_HIGH && READ_ONCE(q->passed) >= NHCA_TXQ_PASSED);
}

static void nhca_txq_release(struct nhca_txq *q, unsigned int packets)
{
	int left = atomic_sub_return(packets, &q->inflight);
	unsigned long flags;
	unsigned int n;

	if (!nhca_txq_moves(q, left) || (list_empty_careful(&q->waiting[true]) &&
					 list_empty_careful(&q->waiting[false])))
		return;

	spin_lock_irqsave(&q->lock, flags);
	WRITE_ONCE(q->passed, 0);
	if (left > NHCA_TXQ_LOW) {
		nhca_txq_wake(q, true, 1);
		nhca_txq_wake(q, false, 1);
	} else if (left) {
		n = nhca_txq_wake(q, true, NHCA_TXQ_WAKE_ANSWERS);
		nhca_txq_wake(q, false, NHCA_TXQ_WAKE - n);
	} else if (!nhca_txq_wake_all(q) && !q->resting) {
		q->resting = true;
		refcount_inc(&q->ref);
		atomic_inc(&nhca_flows);
		nhca_bh_queue(&q->rest);
	}
	spin_unlock_irqrestore(&q->lock, flags);
}

/* End the charge of @packets, and wake the flows that waited for this. */
static void nhca_flow_uncharge(struct nhca_flow *flow, unsigned int packets)
{
	rcu_read_lock();
	if (lower_32_bits(atomic64_sub_return(packets, &flow->inflight)) <= NHCA_FLOW_LOW &&
	    READ_ONCE(flow->blocked) && xchg(&flow->blocked, 0))
		nhca_flow_run(flow);
	nhca_txq_release(flow->txq, packets);
	rcu_read_unlock();
}

/*
 * Destructor of an skb that has no consumer pages among its own fragments. destructor_arg is the
 * address of the flow, plus the number of packets minus one in the low bits, which are 0 in the
 * address.
 */
#define NHCA_FLOW_PACKETS	(NHCA_FLOW_BATCH - 1UL)

static void nhca_flow_release(struct sk_buff *skb)
{
	unsigned long arg = (unsigned long)skb_shinfo(skb)->destructor_arg;
	struct nhca_flow *flow = (void *)(arg & ~NHCA_FLOW_PACKETS);

	nhca_flow_uncharge(flow, (arg & NHCA_FLOW_PACKETS) + 1);
	nhca_flow_put(flow);
}

/*
 * Destructor of an skb with consumer pages among its own fragments. destructor_arg is the zero-copy
 * reference, whose ubuf_info comes first.
 */
static void nhca_flow_release_zcopy(struct sk_buff *skb)
{
	struct nhca_zcopy *z = skb_shinfo(skb)->destructor_arg;

	nhca_flow_uncharge(z->flow, z->packets);
	nhca_zcopy_unref(z);
}

unsigned int nhca_flow_cpu(void)
{
	NHCA_STUB(nhca_flow_cpu);
	return raw_smp_processor_id();
}

/*
 * Count packets that enter the stack. If the flow has no packets there, the current CPU selects the
 * transmit queue, as in the stack itself. Otherwise the flow keeps its CPU, because packets in
 * another queue might overtake those in flight.
 * Return: the CPU.
 */
static unsigned int nhca_flow_add(struct nhca_flow *flow, unsigned int packets)
{
	s64 old = atomic64_read(&flow->inflight);
	unsigned int cpu;

	do {
		cpu = lower_32_bits(old) ? upper_32_bits(old) : nhca_flow_cpu();
	} while (!atomic64_try_cmpxchg(&flow->inflight, &old,
				       (u64)cpu << 32 | (lower_32_bits(old) + packets)));
	return cpu;
}

/*
 * Let XPS select the transmit queue by @cpu, on the netdev and on those below it. Without XPS the
 * stack selects the queue by addresses and ports, which all packets of a flow share.
 */
static void nhca_skb_set_sender(struct sk_buff *skb, unsigned int cpu)
{
#ifdef CONFIG_XPS
	skb->sender_cpu = cpu + 1;
#endif
}

void nhca_flow_charge(struct nhca_flow *flow, struct sk_buff *skb, unsigned int packets)
{
	struct nhca_zcopy *z = nhca_zcopy_of(skb);

	if (z) {
		/* the zero-copy reference holds a reference to the flow */
		refcount_inc(&z->ref);
		z->packets = packets;
		skb->destructor = nhca_flow_release_zcopy;
	} else {
		if (WARN_ON_ONCE(packets > NHCA_FLOW_BATCH))
			packets = NHCA_FLOW_BATCH;
		refcount_inc(&flow->ref);
		skb_shinfo(skb)->destructor_arg = (void *)((unsigned long)flow | (packets - 1));
		skb->destructor = nhca_flow_release;
	}
	nhca_skb_set_sender(skb, nhca_flow_add(flow, packets));
	atomic_add(packets, &flow->txq->inflight);
}

void nhca_flow_drain(void)
{
	wait_event(nhca_flows_gone, !atomic_read(&nhca_flows));
	/*
	 * The destructor that woke this thread may still run code of the module: in a softirq, or
	 * in a task that was preempted there, when a process has read or dropped the packet.
	 */
	synchronize_rcu();
	synchronize_rcu_tasks();
}
