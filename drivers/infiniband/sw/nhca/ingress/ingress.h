/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The receive paths: the network stack calls ingress/, which calls transport/ or rcxt/.  main.c
 * gives the functions of this header to net/, which stores them where the stack finds them.
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
 * What one CPU processes of a socket before other bottom halves run, in units of nhca_rx_cost():
 * one for each packet, or for each 4 KiB. This is about as much as net.core.netdev_budget of the
 * stack (300 packets), and about 1 MiB at most.
 */
#define NHCA_RX_BUDGET	256

/**
 * nhca_sk_data_ready - process received packets; sk_data_ready of the sockets
 * @sk: the socket
 *
 * It processes packets up to NHCA_RX_BUDGET, unless another CPU already does. nhca_sock.rest
 * continues with packets that are left.
 * Context: RCU read side; BH disabled or process.
 */
void nhca_sk_data_ready(struct sock *sk);

/**
 * nhca_rx_batch - process the packets of a batch
 * @nn:     namespace in which it arrived
 * @skb:    the batch; the caller keeps it
 * @late:   fault injection has already examined the packets
 * @pos:    the packet to begin with; on return the first one that was not processed
 * @budget: number of copies of multicast packets; all copies of a packet are subtracted, so it may
 *          become negative
 * Context: softirq.
 * Return: true if all packets have been processed.
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
 * @nn:  the namespace in which it arrived
 * @skb: the packet, which stays the caller's
 * Context: softirq. The function takes the RCU read lock.
 */
void nhca_rx_late(struct nhca_net *nn, struct sk_buff *skb);

/**
 * nhca_delayq_timer - process the packets of a delay queue that are due; timer of the delay queues
 * @timer: timer of a delay queue (net/faults.c)
 * Context: softirq.
 * Return: HRTIMER_NORESTART.
 */
enum hrtimer_restart nhca_delayq_timer(struct hrtimer *timer);

/* ---- frame.c ---- */

/**
 * nhca_frame_hook - give a received frame to the raw packet QPs whose rules it matches
 * @rules: the rules of a device, struct nhca_steer_rule
 * @skb:   the frame
 * @state: unused
 *
 * The netfilter hook of nhca_steer_create().
 * Context: softirq, RCU read side.
 * Return: NF_STOLEN if a rule has consumed the frame, otherwise NF_ACCEPT.
 */
unsigned int nhca_frame_hook(void *rules, struct sk_buff *skb, const struct nf_hook_state *state);

#endif /* NHCA_INGRESS_H */
