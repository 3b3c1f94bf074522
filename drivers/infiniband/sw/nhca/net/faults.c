// SPDX-License-Identifier: GPL-2.0
/*
 * Injected faults of packets that are sent and received. While a device has a rule for packets,
 * each packet is sent as a separate skb, and a received packet that a fault affects is copied to a
 * separate skb. Packets to be delayed or overtaken wait in the delay queue of their device.
 */
#include <linux/hrtimer.h>
#include <linux/ip.h>
#include <linux/slab.h>
#include <linux/udp.h>
#include <net/ip.h>
#include <net/ipv6.h>

#include "net.h"
#include "faults.h"
#include "xmit.h"

/* maximum number of packets in the delay queue of a device; further packets are dropped */
#define NHCA_DELAYQ_MAX		4096
/* maximum delay of a packet that waits for later packets to overtake it (NHCA_FAULT_REORDER) */
#define NHCA_REORDER_NS		(20 * NSEC_PER_MSEC)

/**
 * struct nhca_delayq - delay queue of a device
 * @dev:   the device
 * @lock:  BH disabled; protects @delayed
 * @delayed: the packets, in the order of their arrival; their cb is a struct nhca_delayed
 * @timer: expires when the first packet is due
 */
struct nhca_delayq {
	struct nhca_dev *dev;
	/* BH disabled; protects @delayed */
	spinlock_t lock;
	struct sk_buff_head delayed;
	struct hrtimer timer;
};

/*
 * struct nhca_delayed - the cb of a packet in the delay queue
 * @due:    ktime at which the packet leaves the queue
 * @qpn:    QP that sends or receives the packet
 * @behind: number of packets of this QP that must still overtake the packet. The packet leaves the
 * queue after the last of them, but not later than @due; 0: the packet leaves the queue at @due
 * @in:     the packet was received; otherwise it is to be sent
 */
struct nhca_delayed {
	ktime_t due;
	u32 qpn;
	u32 behind;
	bool in;
};

static struct nhca_delayed *delayed_of(struct sk_buff *skb)
{
	BUILD_BUG_ON(sizeof(struct nhca_delayed) > sizeof(skb->cb));

	return (struct nhca_delayed *)skb->cb;
}

/* Start the timer for the packet that is due first. @l->lock is held. */
static void delayq_arm(struct nhca_delayq *l)
{
	ktime_t first = KTIME_MAX;
	struct sk_buff *skb;

	lockdep_assert_held(&l->lock);
	skb_queue_walk(&l->delayed, skb)
		first = min(first, delayed_of(skb)->due);
	if (first != KTIME_MAX)
		hrtimer_start(&l->timer, first, HRTIMER_MODE_ABS_SOFT);
}

static void delayq_add(struct nhca_dev *dev, struct sk_buff *skb, u32 qpn, bool in,
		       const struct nhca_fault_hit *s)
{
	struct nhca_delayq *l = dev->delayq;
	struct nhca_delayed *h = delayed_of(skb);
	bool reorder = s->kind == NHCA_FAULT_REORDER;

	h->due = ktime_add_ns(ktime_get(), reorder ? NHCA_REORDER_NS :
						     (u64)s->arg * NSEC_PER_MSEC);
	h->qpn = qpn;
	h->behind = reorder ? s->arg : 0;
	h->in = in;
	spin_lock(&l->lock);
	if (skb_queue_len(&l->delayed) < NHCA_DELAYQ_MAX) {
		__skb_queue_tail(&l->delayed, skb);
		skb = NULL;
	}
	delayq_arm(l);
	spin_unlock(&l->lock);
	kfree_skb(skb);
}

/*
 * A packet of @qpn was received (@in) or sent, so it has overtaken the delayed packets of this QP.
 * Move to @later each delayed packet that no further packet must overtake.
 */
static void delayq_passed(struct nhca_dev *dev, u32 qpn, bool in, struct sk_buff_head *later)
{
	struct nhca_delayq *l = dev->delayq;
	struct sk_buff *skb, *next;
	struct nhca_delayed *h;

	spin_lock(&l->lock);
	skb_queue_walk_safe(&l->delayed, skb, next) {
		h = delayed_of(skb);
		if (h->qpn != qpn || h->in != in || !h->behind || --h->behind)
			continue;
		__skb_unlink(skb, &l->delayed);
		__skb_queue_tail(later, skb);
	}
	spin_unlock(&l->lock);
}

/* ---- transmit ---- */

static void faults_out(struct nhca_dev *dev, struct sk_buff *skb)
{
	struct net *net = nhca_net_ns(dev->nn);
	int err;

	/* the IP layer uses the cb from here on */
	memset(skb->cb, 0, sizeof(skb->cb));
	nhca_dev_count(dev, NHCA_CNT_SENT_PKTS);
	if (ip_hdr(skb)->version == 4)
		err = ip_local_out(net, NULL, skb);
	else
		err = ip6_local_out(net, NULL, skb);
	if (unlikely(net_xmit_eval(err)))
		nhca_dev_count(dev, NHCA_CNT_SEND_ERR);
}

/*
 * Invert one bit of the @len bytes at @p, after the BTH, because the ICRC covers all bits there.
 * The caller must own the bytes.
 */
static void faults_flip(u8 *p, u32 len, u32 dice)
{
	u32 bit = dice % ((len - NHCA_BTH_LEN) * 8);

	p[NHCA_BTH_LEN + bit / 8] ^= BIT(bit % 8);
}

/*
 * Damage the packet after its checksum was computed, like a bit error on the wire. Return: false if
 * there is no memory for a linear skb.
 */
static bool faults_corrupt(struct sk_buff *skb, u32 dice)
{
	u32 off = skb_transport_offset(skb) + sizeof(struct udphdr);

	if ((skb->ip_summed == CHECKSUM_PARTIAL && skb_checksum_help(skb)) || skb_linearize(skb))
		return false;
	faults_flip(skb->data + off, skb->len - off, dice);
	return true;
}

void nhca_faults_tx(const struct nhca_tx *tx, struct sk_buff *skb)
{
	struct nhca_dev *dev = tx->dev;
	struct sk_buff_head later;
	struct nhca_fault_hit s;
	struct sk_buff *copy;

	__skb_queue_head_init(&later);
	switch (nhca_inject_eval(dev, NHCA_AT_SEND, tx->who->qpn, tx->hdr->opcode, &s)) {
	case NHCA_FAULT_DROP:
	case NHCA_FAULT_LINK:
		kfree_skb(skb);
		return;
	case NHCA_FAULT_DELAY:
	case NHCA_FAULT_REORDER:
		delayq_add(dev, skb, tx->who->qpn, false, &s);
		return;
	case NHCA_FAULT_CORRUPT:
		if (!faults_corrupt(skb, s.dice)) {
			kfree_skb(skb);
			return;
		}
		break;
	case NHCA_FAULT_DUPLICATE:
		copy = pskb_copy(skb, GFP_ATOMIC | __GFP_NOWARN);
		if (copy)
			__skb_queue_tail(&later, copy);
		break;
	default:
		break;
	}
	nhca_send(dev, tx->who, tx->av, tx->flow, skb, 1, tx->payload, 0);
	delayq_passed(dev, tx->who->qpn, false, &later);
	while ((skb = __skb_dequeue(&later)))
		faults_out(dev, skb);
}

/* ---- receive ---- */

void nhca_faults_rx(struct nhca_dev *dev, u32 qpn, u8 opcode, struct nhca_fault_hit *s)
{
	if (nhca_inject_down(dev))
		s->kind = NHCA_FAULT_DROP;
	else
		nhca_inject_eval(dev, NHCA_AT_RECEIVE, qpn, opcode, s);
}

void nhca_faults_rx_copy(struct nhca_dev *dev, u32 qpn, const struct nhca_fault_hit *s,
			 struct sk_buff *skb, struct sk_buff_head *later)
{
	switch (s->kind) {
	case NHCA_FAULT_DELAY:
	case NHCA_FAULT_REORDER:
		delayq_add(dev, skb, qpn, true, s);
		return;
	case NHCA_FAULT_CORRUPT:
		faults_flip(skb->data, skb->len, s->dice);
		/*
		 * The UDP checksum was verified when the packet was read from the socket. Set it to
		 * 0 (none), so that only the ICRC can prove that the packet is intact.
		 */
		udp_hdr(skb)->check = 0;
		break;
	default:
		break;
	}
	__skb_queue_tail(later, skb);
}

void nhca_faults_rx_passed(struct nhca_dev *dev, u32 qpn, struct sk_buff_head *later)
{
	delayq_passed(dev, qpn, true, later);
}

/* ---- the delay queue ---- */

struct nhca_net *nhca_delayq_due(struct hrtimer *timer, struct sk_buff_head *later)
{
	struct nhca_delayq *l = container_of(timer, struct nhca_delayq, timer);
	struct sk_buff *skb, *next;
	struct sk_buff_head due;
	ktime_t now = ktime_get();

	__skb_queue_head_init(&due);
	spin_lock(&l->lock);
	skb_queue_walk_safe(&l->delayed, skb, next) {
		if (delayed_of(skb)->due > now)
			continue;
		__skb_unlink(skb, &l->delayed);
		__skb_queue_tail(&due, skb);
	}
	delayq_arm(l);
	spin_unlock(&l->lock);

	rcu_read_lock();
	while ((skb = __skb_dequeue(&due))) {
		if (delayed_of(skb)->in)
			__skb_queue_tail(later, skb);
		else
			faults_out(l->dev, skb);
	}
	rcu_read_unlock();
	return l->dev->nn;
}

int nhca_delayq_create(struct nhca_dev *dev, enum hrtimer_restart (*timer)(struct hrtimer *timer))
{
	struct nhca_delayq *l = kzalloc(sizeof(*l), GFP_KERNEL);

	if (!l)
		return -ENOMEM;
	l->dev = dev;
	spin_lock_init(&l->lock);
	__skb_queue_head_init(&l->delayed);
	hrtimer_setup(&l->timer, timer, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_SOFT);
	dev->delayq = l;
	return 0;
}

void nhca_delayq_destroy(struct nhca_dev *dev)
{
	struct nhca_delayq *l = dev->delayq;

	if (!l)
		return;
	hrtimer_cancel(&l->timer);
	__skb_queue_purge(&l->delayed);
	kfree(l);
}
