// SPDX-License-Identifier: GPL-2.0
/* Received packets: from the UDP sockets of net/, batch by batch, to transport/ or rcxt/. */
#include <linux/sizes.h>
#include <linux/udp.h>
#include <net/udp.h>

#include "ingress.h"
#include "../net/faults.h"
#include "../net/recv.h"
#include "../net/sockets.h"
#include "../rcxt/rcxt.h"
#include "../transport/rx.h"
#include "../wire/compat.h"

static void nhca_rx_packet(struct nhca_batch *b, u32 len)
{
	enum nhca_rx_kind kind = nhca_rx_decode(&b->rx, len);

	if (kind == NHCA_RX_ALIKE) {
		nhca_transport_again(b);
	} else if (kind == NHCA_RX_NEW && (b->rx.hdr.info->flags & NHCA_OPF_RXETH)) {
		/* release the lock of the previous packet's QP: this packet is for a channel */
		nhca_transport_rx_end(b);
		nhca_channel_rx(&b->rx);
	} else if (kind == NHCA_RX_NEW) {
		nhca_transport_rx(b);
	}
}

/* Like nhca_rx_packet(), for a packet that fault injection has not examined yet. */
static void nhca_rx_packet_faults(struct nhca_batch *b, u32 len)
{
	struct nhca_rx *rx = &b->rx;
	struct sk_buff_head later;
	struct nhca_fault_hit s = {};
	struct nhca_dev *dev;
	struct sk_buff *skb;
	u8 bth[NHCA_BTH_LEN];
	u32 qpn;

	dev = nhca_rx_dev(rx);
	if (!dev || !nhca_inject_at(dev, NHCA_AT_PACKETS) || len <= NHCA_BTH_LEN ||
	    skb_copy_bits(rx->skb, rx->udp_off, bth, NHCA_BTH_LEN)) {
		nhca_rx_packet(b, len);
		return;
	}
	qpn = get_unaligned_be24(bth + 5);
	__skb_queue_head_init(&later);
	/* do not use the results of the previous packet's checks for this packet */
	rx->alike.set = false;
	nhca_faults_rx(dev, qpn, bth[0], &s);
	if (s.kind == NHCA_FAULT_DROP)
		return;
	if (s.kind != NHCA_FAULT_NONE) {
		skb = nhca_rx_copy_of(rx, len);
		if (skb)
			nhca_faults_rx_copy(dev, qpn, &s, skb, &later);
	}
	if (s.kind == NHCA_FAULT_NONE || s.kind == NHCA_FAULT_DUPLICATE) {
		nhca_rx_packet(b, len);
		nhca_faults_rx_passed(dev, qpn, &later);
	}
	if (skb_queue_empty(&later))
		return;
	/*
	 * release the QP's lock that this batch holds: each copy is received as a separate batch,
	 * which may take the same lock
	 */
	nhca_transport_rx_end(b);
	while ((skb = __skb_dequeue(&later))) {
		nhca_rx_late(rx->ip.nn, skb);
		consume_skb(skb);
	}
}

bool nhca_rx_batch(struct nhca_net *nn, struct sk_buff *skb, bool late, struct nhca_rx_pos *pos,
		   int *budget)
{
	struct nhca_batch b = {
		.rx = { .ip.nn = nn, .skb = skb, .udp_off = pos->off, .index = pos->index },
		.budget = *budget,
	};
	struct nhca_rx *rx = &b.rx;
	u32 seg = skb_is_gso(skb) ? skb_shinfo(skb)->gso_size : skb->len;

	/* protects the QPs and addresses that are looked up */
	rcu_read_lock();
	if (!nhca_rx_begin(rx)) {
		nhca_rx_refuse(rx, NULL, NHCA_CNT_RX_BAD_LENGTH);
		rcu_read_unlock();
		return true;
	}
	if (!skb->len)
		nhca_rx_refuse(rx, NULL, NHCA_CNT_RX_TOO_SHORT);

	for (; rx->udp_off < skb->len; rx->udp_off += seg, rx->index++) {
		/*
		 * each copy of a multicast packet, and each packet that a QP has sent, uses one
		 * unit of the budget
		 */
		if (b.spent && unlikely(b.spent >= *budget))
			break;
		if (static_branch_unlikely(&nhca_inject_key) && !late)
			nhca_rx_packet_faults(&b, min(seg, skb->len - rx->udp_off));
		else
			nhca_rx_packet(&b, min(seg, skb->len - rx->udp_off));
	}
	nhca_transport_rx_end(&b);
	rcu_read_unlock();
	pos->off = rx->udp_off;
	pos->index = rx->index;
	*budget -= b.spent;
	return rx->udp_off >= skb->len;
}

void nhca_rx_late(struct nhca_net *nn, struct sk_buff *skb)
{
	struct nhca_rx_pos pos = {};
	int budget = INT_MAX;

	nhca_rx_batch(nn, skb, true, &pos, &budget);
}

enum hrtimer_restart nhca_delayq_timer(struct hrtimer *timer)
{
	struct sk_buff_head later;
	struct nhca_net *nn;
	struct sk_buff *skb;

	__skb_queue_head_init(&later);
	nn = nhca_delayq_due(timer, &later);
	while ((skb = __skb_dequeue(&later))) {
		nhca_rx_late(nn, skb);
		consume_skb(skb);
	}
	return HRTIMER_NORESTART;
}

/* ---- sockets ---- */

/*
 * Return: true if both queues of the socket are empty. The check takes no lock: a CPU that adds a
 * packet concurrently calls nhca_sk_data_ready() afterwards.
 */
static bool nhca_sk_empty(const struct sock *sk)
{
	return skb_queue_empty_lockless(&udp_sk(sk)->reader_queue) &&
	       skb_queue_empty_lockless(&sk->sk_receive_queue);
}

/*
 * Return: the cost of a batch: its number of packets, or its length in units of 4 KiB, whichever is
 * greater. The length counts because packets of channels may be long.
 */
static int nhca_rx_cost(const struct sk_buff *skb)
{
	u32 packets = 1;

	/* compute the number, because some network drivers do not set gso_segs */
	if (skb_is_gso(skb))
		packets = DIV_ROUND_UP(skb->len, skb_shinfo(skb)->gso_size);
	return max3(packets, skb->len / SZ_4K, 1U);
}

/* Process the packets of @ns->part, as many as the budget allows. */
static void nhca_sk_batch(struct nhca_sock *ns, int *budget)
{
	struct sk_buff *skb = ns->part;

	if (likely(nhca_rx_batch(ns->nn, skb, false, &ns->pos, budget))) {
		ns->part = NULL;
		consume_skb(skb);
	}
}

/*
 * Process batches until the queue is empty or the budget is used up.
 * Return: false if the budget is used up and packets may be left.
 */
static bool nhca_sk_drain(struct nhca_sock *ns, int *budget)
{
	struct sock *sk = ns->sock->sk;
	struct sk_buff *skb;
	int off, err;

	while (ns->part || !nhca_sk_empty(sk) || sk->sk_err) {
		if (*budget <= 0)
			return false;
		if (unlikely(ns->part)) {
			nhca_sk_batch(ns, budget);
			continue;
		}
		off = 0;
		err = 0;
		skb = __skb_recv_udp(sk, MSG_DONTWAIT, &off, &err);
		if (!skb) {
			/* __skb_recv_udp() reports an ICMP error once, before the queued packets */
			if (err && err != -EAGAIN) {
				--*budget;
				continue;
			}
			return true;
		}
		*budget -= nhca_rx_cost(skb);
		/* verify the UDP checksum, unless the netdev or the stack has verified it */
		if (unlikely(udp_lib_checksum_complete(skb))) {
			consume_skb(skb);
			continue;
		}
		ns->part = skb;
		ns->pos = (struct nhca_rx_pos) {};
		nhca_sk_batch(ns, budget);
	}
	return true;
}

/*
 * Return: budget of nhca_sk_data_ready() now. Only the CPU that processes the packets of the socket
 * may call this function.
 */
static int nhca_sk_budget(struct nhca_sock *ns)
{
	u32 now = jiffies;

	if (ns->since != now) {
		ns->since = now;
		ns->left = NHCA_RX_JIFFY;
	}
	return min(ns->left, NHCA_RX_BUDGET);
}

/*
 * Process the packets of a socket. The callers are the CPU that has raised nhca_sock.ready from 0
 * to 1, and nhca_sock.rest. If the budget is used up, nhca_sock.ready stays above 0, so that only
 * nhca_sock.rest continues.
 */
static void nhca_sk_process(struct nhca_sock *ns, int budget)
{
	bool empty;
	int before;

	do {
		/*
		 * Reset the count of calls, because this drain finds all packets that are in the
		 * queue now.  Under overload no drain empties the queue, and a count of all calls
		 * would wrap.
		 */
		if (atomic_read(&ns->ready) != 1)
			atomic_xchg(&ns->ready, 1);
		before = budget;
		empty = nhca_sk_drain(ns, &budget);
		ns->left -= before - budget;
		if (!empty) {
			nhca_bh_queue(&ns->rest);
			return;
		}
	} while (atomic_dec_return(&ns->ready));
}

void nhca_sk_rest(struct nhca_bh *bh)
{
	nhca_sk_process(container_of(bh, struct nhca_sock, rest), NHCA_RX_BUDGET);
}

/*
 * The stack calls this function on any CPU after it has queued a packet. Only one CPU at a time
 * processes the packets of a socket, so packets of a QP keep their order. Other CPUs leave their
 * packets to that CPU.
 */
void nhca_sk_data_ready(struct sock *sk)
{
	struct nhca_sock *ns = rcu_dereference_sk_user_data(sk);

	if (!ns || atomic_inc_return(&ns->ready) != 1)
		return;

	local_bh_disable();
	nhca_sk_process(ns, nhca_sk_budget(ns));
	local_bh_enable();
}
