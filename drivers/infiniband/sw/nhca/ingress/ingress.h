/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The receive paths: the kernel calls ingress/, which calls transport/ or rcxt/.  main.c passes
 * four functions of this header to net/, which registers them with the kernel: for sk_data_ready
 * and the bottom half of the UDP sockets, for the netfilter hook, and for the timers of delay
 * queues.
 */
#ifndef NHCA_INGRESS_H
#define NHCA_INGRESS_H

#include <linux/hrtimer.h>
#include <linux/types.h>

struct nf_hook_state;
struct nhca_bh;
struct nhca_net;
struct nhca_rx_pos;
struct sk_buff;
struct sock;

/* ---- udp.c ---- */

/*
 * A CPU that has used up this budget for packets of a socket lets other bottom halves run. The cost
 * of a batch (nhca_rx_cost()) is its number of packets, or its length in units of 4 KiB, whichever
 * is greater. So the budget is 256 packets, near net.core.netdev_budget (300), or 1 MiB.
 * Copies of multicast packets, and packets that requesters and responders send, cost 1 each.
 */
#define NHCA_RX_BUDGET	256
/*
 * If the packets of a socket have cost more than this in one jiffy, nhca_sk_data_ready() leaves
 * further packets to nhca_sock.rest, which pauses for other work. The limit is needed because the
 * stack may call nhca_sk_data_ready() for 64 packets without a pause, and each call may use a whole
 * budget.
 */
#define NHCA_RX_JIFFY	(8 * NHCA_RX_BUDGET)

/**
 * nhca_sk_data_ready - process received packets; sk_data_ready of the sockets
 * @sk: the socket
 *
 * The function processes packets up to NHCA_RX_BUDGET, unless another CPU already processes packets
 * of the socket. nhca_sock.rest continues with packets that are left.
 * Context: RCU read side; BH disabled or process.
 */
void nhca_sk_data_ready(struct sock *sk);

/**
 * nhca_rx_batch - process the packets of a batch
 * @nn:     namespace in which the batch arrived
 * @skb:    the batch; the caller still owns it afterwards
 * @late:   fault injection has already examined the packets
 * @pos:    position of the first packet to process; on return, of the first that was not processed
 * @budget: maximum number of copies of multicast packets, and of packets that requesters and
 *          responders send; on return reduced by their number, and negative if the last packet has
 *          exceeded it
 * Context: BH disabled. The function takes the RCU read lock.
 * Return: true if no packet of the batch is left.
 */
bool nhca_rx_batch(struct nhca_net *nn, struct sk_buff *skb, bool late, struct nhca_rx_pos *pos,
		   int *budget);

/**
 * nhca_sk_rest - process the packets that nhca_sk_data_ready() has left
 * @bh: nhca_sock.rest
 * Context: softirq.
 */
void nhca_sk_rest(struct nhca_bh *bh);

/**
 * nhca_rx_late - process a packet that fault injection delayed or copied
 * @nn:  the namespace in which the packet arrived
 * @skb: the packet; the caller still owns it afterwards
 * Context: BH disabled. The function takes the RCU read lock.
 */
void nhca_rx_late(struct nhca_net *nn, struct sk_buff *skb);

/**
 * nhca_delayq_timer - process the packets of a delay queue that are due
 * @timer: timer of the delay queue (net/faults.c), which calls this function
 * Context: softirq.
 * Return: HRTIMER_NORESTART.
 */
enum hrtimer_restart nhca_delayq_timer(struct hrtimer *timer);

/* ---- frame.c ---- */

/**
 * nhca_frame_hook - give a received frame to raw packet QPs that have a matching rule
 * @rules: the rules of a device, struct nhca_steer_rule
 * @skb:   the frame
 * @state: unused
 *
 * net/steering.c uses this function for its netfilter hook; see nhca_steer_create().
 * Context: softirq, RCU read side.
 * Return: NF_STOLEN if a QP gets the frame itself; NF_ACCEPT if QPs get only copies, or nothing.
 */
unsigned int nhca_frame_hook(void *rules, struct sk_buff *skb, const struct nf_hook_state *state);

#endif /* NHCA_INGRESS_H */
