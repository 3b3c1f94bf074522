// SPDX-License-Identifier: GPL-2.0
/*
 * Transmit back-pressure: the packets in the network stack, counted for each QP or channel (its
 * flow), for each user of a device, and for each device. A flow with too many packets pauses, and
 * the skb destructor later kicks the owner of the flow. Queues stay short, so a timeout means a
 * loss and not a delay in the queues of this host.
 *
 * The packets of a flow to one peer take the same transmit queue while the stack holds them, so
 * that they keep their order. But a queueing discipline (fq, for example) or a netdev may orphan a
 * packet before it sends the packet. The count does not include orphaned packets, so the queue
 * could change too early. Therefore the requester of an RC or XRC QP holds the queue
 * (nhca_flow_queue_hold()) until the peer has acknowledged all packets. For all other packets, only
 * the count keeps the queue: the requester of a READ requests missing responses again, UD and
 * channels need no order, and a UC requester does not know when its packets have arrived.
 */
#include <linux/log2.h>
#include <linux/slab.h>
#include <linux/smp.h>
#include <linux/wait.h>

#include "../bh.h"
#include "../observe/stub.h"
#include "net.h"
#include "flow.h"
#include "txq.h"
#include "zcopy.h"

/* packets of one flow in the stack at which the flow pauses, and at which it resumes */
#define NHCA_FLOW_HIGH		64
#define NHCA_FLOW_LOW		32
/*
 * The last NHCA_TXQ_RESERVE packets below a device's limit (nhca_txq.high) are reserved for users
 * with fewer than NHCA_TXQ_LITTLE packets in the stack, and for flows without a user's share.
 * nhca_share_ok() reserves the same parts of pools.
 */
#define NHCA_TXQ_RESERVE	(NHCA_TXQ_HIGH / 8)
#define NHCA_TXQ_LITTLE		(NHCA_TXQ_HIGH / 16)
/*
 * number of times that a packet or a run of packets may bypass the waiting flows; after that
 * number, one flow of each list is woken as soon as nhca_txq.inflight is below nhca_txq.high
 */
#define NHCA_TXQ_PASSED		16
/*
 * Maximum number of flows of a struct nhca_txq that one freed skb wakes while the stack holds other
 * packets, and how many of these flows may have responses to send. Responses are sent first because
 * the peer's ACK timer for a READ already runs, while a request that was not sent has no timer.
 */
#define NHCA_TXQ_WAKE		4
#define NHCA_TXQ_WAKE_ANSWERS	3
/* maximum number of flows woken at a time, with interrupts disabled, when no packet is left */
#define NHCA_TXQ_WAKE_MAX	64

/*
 * Number of flows, plus one for each nhca_txq.rest that is queued and each nhca_txq.age that was
 * started. The module is unloaded only when this number is 0, after the stack has freed all
 * packets.
 */
static atomic_t nhca_flows = ATOMIC_INIT(0);
static DECLARE_WAIT_QUEUE_HEAD(nhca_flows_gone);

struct nhca_flow *nhca_flow_create(struct nhca_txq *q, void (*kick)(void *arg), void *arg)
{
	struct nhca_flow *flow;
	int i;

	/*
	 * slab aligns an object of 2^n bytes to 2^n, so the low address bits are 0, and
	 * nhca_flow_charge() can use these bits
	 */
	BUILD_BUG_ON(sizeof(*flow) < NHCA_FLOW_BATCH);
	flow = kzalloc(roundup_pow_of_two(sizeof(*flow)), GFP_KERNEL_ACCOUNT);
	if (!flow)
		return NULL;
	refcount_set(&flow->ref, 1);
	for (i = 0; i < 2; i++) {
		INIT_LIST_HEAD(&flow->wait[i][false]);
		INIT_LIST_HEAD(&flow->wait[i][true]);
	}
	INIT_LIST_HEAD(&flow->active);
	refcount_inc(&q->ref);
	flow->txq = q;
	nhca_pageref_queue_init(&flow->pages);
	flow->kick = kick;
	flow->arg = arg;
	atomic_inc(&nhca_flows);
	return flow;
}

void nhca_flows_get(void)
{
	atomic_inc(&nhca_flows);
}

void nhca_flows_put(void)
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
	nhca_flow_unlist(flow);
	WARN_ON(!list_empty(&flow->pages.list));
	nhca_user_put(flow->user);
	nhca_txq_put(flow->txq);
	kfree_rcu(flow, rcu);
	nhca_flows_put();
}

void nhca_flow_stop(struct nhca_flow *flow)
{
	WRITE_ONCE(flow->kick, NULL);
}

/* Return: first index of nhca_flow.wait for the lists of @q. */
static int nhca_txq_level(const struct nhca_txq *q)
{
	return !!q->device;
}

/* Remove a flow from the waiting lists of @q, or do nothing if @q is NULL. */
static void nhca_txq_leave(struct nhca_txq *q, struct nhca_flow *flow)
{
	unsigned long flags;

	if (!q)
		return;
	spin_lock_irqsave(&q->lock, flags);
	list_del_init(&flow->wait[nhca_txq_level(q)][false]);
	list_del_init(&flow->wait[nhca_txq_level(q)][true]);
	spin_unlock_irqrestore(&q->lock, flags);
}

void nhca_flow_close(struct nhca_flow *flow)
{
	nhca_flow_stop(flow);
	nhca_txq_leave(flow->txq, flow);
	nhca_txq_leave(flow->share, flow);
	nhca_flow_put(flow);
}

unsigned int nhca_flow_inflight(const struct nhca_flow *flow)
{
	return nhca_flow_count(atomic64_read(&flow->inflight));
}

unsigned int nhca_flow_sender(const struct nhca_flow *flow)
{
	return (u64)atomic64_read(&flow->inflight) >> NHCA_FLOW_CPU_SHIFT;
}

bool nhca_flow_queued(const struct nhca_flow *flow, u32 *wakes)
{
	u32 now = READ_ONCE(flow->txq->wakes);
	bool moved;

	if (flow->share)
		now += READ_ONCE(flow->share->wakes);
	moved = now != *wakes;
	*wakes = now;
	return moved && (!list_empty_careful(&flow->wait[0][false]) ||
			 !list_empty_careful(&flow->wait[1][false]));
}

/*
 * Return: the value of @q->inflight at which @flow pauses. A user with NHCA_TXQ_LITTLE or more
 * packets in the stack leaves the last NHCA_TXQ_RESERVE packets of the device to other users.
 */
static int nhca_txq_room(const struct nhca_txq *q, const struct nhca_flow *flow)
{
	if (!flow->share || q == flow->share ||
	    atomic_read(&flow->share->inflight) < NHCA_TXQ_LITTLE)
		return q->high;
	return q->high - NHCA_TXQ_RESERVE;
}

/*
 * Return: true if @flow may send now. While flows wait that have to send first
 * (nhca_txq_waiting()), @flow may bypass them only if it does not wait itself and has few packets
 * in the stack. So a short message does not wait for long ones.
 * Flows with more packets may not bypass the waiting flows: they would keep @q->inflight above
 * @q->low, so the waiting flows would rarely resume.
 */
static bool nhca_txq_open(struct nhca_txq *q, const struct nhca_flow *flow, bool answer)
{
	if (unlikely(atomic_read(&q->inflight) >= nhca_txq_room(q, flow)))
		return false;
	if (likely(!nhca_txq_waiting(q, answer)))
		return true;
	if (!list_empty_careful(&flow->wait[nhca_txq_level(q)][answer]) ||
	    nhca_flow_inflight(flow) >= NHCA_FLOW_FEW)
		return false;
	WRITE_ONCE(q->passed, READ_ONCE(q->passed) + 1);
	return true;
}

/* Put @flow into a list of @q. Return: true if the flow waits; false if it may send now. */
static bool nhca_txq_wait(struct nhca_txq *q, struct nhca_flow *flow, bool answer)
{
	struct list_head *entry = &flow->wait[nhca_txq_level(q)][answer];
	unsigned long flags;
	bool blocked;

	spin_lock_irqsave(&q->lock, flags);
	if (list_empty(entry))
		list_add_tail(entry, &q->waiting[answer]);
	/*
	 * Full barrier between the list and the read of @q->inflight. It pairs with
	 * atomic_sub_return() in nhca_txq_release(), which reads the lists afterwards.
	 */
	smp_mb();
	blocked = atomic_read(&q->inflight) > q->low;
	if (!blocked)
		list_del_init(entry);
	spin_unlock_irqrestore(&q->lock, flags);
	if (blocked)
		nhca_txq_age_start(flow->txq);
	return blocked;
}

static bool nhca_txq_blocked(struct nhca_txq *q, struct nhca_flow *flow, bool answer)
{
	return unlikely(!nhca_txq_open(q, flow, answer)) && nhca_txq_wait(q, flow, answer);
}

bool nhca_flow_blocked(struct nhca_flow *flow, bool answer)
{
	if (unlikely(nhca_flow_inflight(flow) >= NHCA_FLOW_HIGH)) {
		WRITE_ONCE(flow->blocked, 1);
		/*
		 * Full barrier between @blocked and the read of @inflight. It pairs with
		 * atomic64_sub_return() in nhca_flow_uncharge(), which reads @blocked afterwards.
		 */
		smp_mb();
		if (nhca_flow_inflight(flow) > NHCA_FLOW_LOW)
			return true;
		WRITE_ONCE(flow->blocked, 0);
	}
	if (flow->share && nhca_txq_blocked(flow->share, flow, answer))
		return true;
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
	int level = nhca_txq_level(q);
	struct nhca_flow *flow, *next;
	unsigned int n = 0;

	lockdep_assert_held(&q->lock);
	list_for_each_entry_safe(flow, next, &q->waiting[answer], wait[level][answer]) {
		if (n == max)
			break;
		n++;
		list_del_init(&flow->wait[level][answer]);
		WRITE_ONCE(q->wakes, q->wakes + 1);
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

void nhca_txq_rest(struct nhca_bh *bh)
{
	struct nhca_txq *q = container_of(bh, struct nhca_txq, rest);
	unsigned long flags;
	bool more;

	spin_lock_irqsave(&q->lock, flags);
	/* if a woken flow has sent packets, the release of the last packet wakes the other flows */
	more = atomic_read(&q->inflight) <= 0 && !nhca_txq_wake_all(q);
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
 * Return: true if a waiting flow may be woken with @left packets in the stack. Up to @q->low
 * packets, a flow may always be woken. Between @q->low and @q->high packets, a flow may be woken if
 * other flows have bypassed the lists NHCA_TXQ_PASSED times: many flows with few packets, which
 * bypass the lists, could otherwise keep the device above @q->low.
 */
static bool nhca_txq_moves(const struct nhca_txq *q, int left)
{
	return left <= q->low ||
	       (left < q->high && READ_ONCE(q->passed) >= NHCA_TXQ_PASSED);
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
	if (left > q->low) {
		nhca_txq_wake(q, true, 1);
		nhca_txq_wake(q, false, 1);
	} else if (left > 0) {
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

void nhca_flow_release_count(struct nhca_flow *flow, unsigned int packets)
{
	if (flow->share)
		nhca_txq_release(flow->share, packets);
	nhca_txq_release(flow->txq, packets);
}

/*
 * Subtract @packets, which were freed, from the flow's number of stuck packets (txq.c), as far as
 * possible. Return: number of freed packets that were not stuck, so that device and user still
 * count them.
 */
static unsigned int nhca_flow_unstick(struct nhca_flow *flow, unsigned int packets)
{
	s64 old = atomic64_read(&flow->inflight);
	u64 stuck;

	do {
		stuck = min(packets, nhca_flow_stuck(old));
	} while (!atomic64_try_cmpxchg(&flow->inflight, &old,
				       old - (stuck << NHCA_FLOW_STUCK_SHIFT)));
	return packets - stuck;
}

/* End the charge of @packets, and wake flows that wait for this flow, its user or its device. */
static void nhca_flow_uncharge(struct nhca_flow *flow, unsigned int packets)
{
	s64 left;

	rcu_read_lock();
	WRITE_ONCE(flow->moved, true);
	left = atomic64_sub_return(packets, &flow->inflight);
	if (nhca_flow_count(left) <= NHCA_FLOW_LOW && READ_ONCE(flow->blocked) &&
	    xchg(&flow->blocked, 0))
		nhca_flow_run(flow);
	if (unlikely(nhca_flow_stuck(left)))
		packets = nhca_flow_unstick(flow, packets);
	if (likely(packets)) {
		WRITE_ONCE(flow->txq->released, READ_ONCE(flow->txq->released) + packets);
		nhca_flow_release_count(flow, packets);
	}
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
 * Destructor of an skb with consumer pages among its own fragments. destructor_arg is the address
 * of the zero-copy reference, and also of its first member, the ubuf_info.
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
 * another queue might overtake the packets in flight.
 * @held: the flow keeps its CPU even if it has no packets in the stack (nhca_flow_queue_hold())
 * Return: the CPU.
 */
static unsigned int nhca_flow_add(struct nhca_flow *flow, unsigned int packets, bool held)
{
	s64 old = atomic64_read(&flow->inflight);
	unsigned int cpu;
	u64 new;

	BUILD_BUG_ON(CONFIG_NR_CPUS > U16_MAX);
	do {
		if (held || nhca_flow_count(old))
			cpu = (u64)old >> NHCA_FLOW_CPU_SHIFT;
		else
			cpu = nhca_flow_cpu();
		new = (u64)cpu << NHCA_FLOW_CPU_SHIFT |
		      (old & (BIT_ULL(NHCA_FLOW_CPU_SHIFT) - 1));
	} while (!atomic64_try_cmpxchg(&flow->inflight, &old, new + packets));
	return cpu;
}

void nhca_flow_queue_hold(struct nhca_flow *flow)
{
	nhca_flow_add(flow, 0, false);
	WRITE_ONCE(flow->held, true);
}

void nhca_flow_queue_release(struct nhca_flow *flow)
{
	WRITE_ONCE(flow->held, false);
}

/*
 * Let XPS select the transmit queue by @cpu, on the netdev and on the netdevs below. Without XPS
 * the stack selects the queue by addresses and ports, which are equal in all packets of a flow to
 * one peer.
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
	nhca_skb_set_sender(skb, nhca_flow_add(flow, packets, READ_ONCE(flow->held)));
	atomic_add(packets, &flow->txq->inflight);
	if (flow->share)
		atomic_add(packets, &flow->share->inflight);
	if (unlikely(!READ_ONCE(flow->listed)))
		nhca_flow_list(flow);
}

void nhca_flow_drain(void)
{
	wait_event(nhca_flows_gone, !atomic_read(&nhca_flows));
	/*
	 * The skb destructor that woke this thread may still run code of the module, in softirq or
	 * in a task. synchronize_rcu_tasks() also waits for a task that was preempted in this code.
	 */
	synchronize_rcu();
	synchronize_rcu_tasks();
}
