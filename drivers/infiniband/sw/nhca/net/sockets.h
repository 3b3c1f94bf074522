/* SPDX-License-Identifier: GPL-2.0 */
/* Private to the net room: the UDP sockets of a namespace. */
#ifndef NHCA_NET_SOCKETS_H
#define NHCA_NET_SOCKETS_H

#include <linux/atomic.h>
#include <linux/net.h>
#include <net/sock.h>

#include "../bh.h"

struct nhca_net;
struct sk_buff;

/**
 * struct nhca_rx_pos - position in a batch
 * @off:   offset of the packet's BTH
 * @index: number of packets before it
 */
struct nhca_rx_pos {
	u32 off;
	u16 index;
};

/**
 * struct nhca_sock - one UDP socket on the RoCEv2 port; its sk_user_data points here
 * @nn:    its namespace
 * @sock:  the socket
 * @ready: number of nhca_sk_data_ready() calls whose packets are not processed yet (recv.c)
 * @rest:  continues after a CPU has used up its budget
 * @part:  a batch of which only some packets have been processed, or NULL; only for the CPU that
 *         processes the socket's packets
 * @pos:   where @part continues
 */
struct nhca_sock {
	struct nhca_net *nn;
	struct socket *sock;
	atomic_t ready;
	struct nhca_bh rest;
	struct sk_buff *part;
	struct nhca_rx_pos pos;
} ____cacheline_aligned_in_smp;

/*
 * What one CPU processes of a socket before other bottom halves run, in units of nhca_rx_cost():
 * one for each packet, or for each 4 KiB. This is about as much as net.core.netdev_budget of the
 * stack (300 packets), and about 1 MiB at most.
 */
#define NHCA_RX_BUDGET	256

/**
 * nhca_sk_data_ready - process received packets; sk_data_ready of the sockets, in recv.c
 * @sk: the socket
 *
 * It processes packets up to NHCA_RX_BUDGET, unless another CPU already does. nhca_sock.rest
 * continues with packets that are left.
 * Context: RCU read side; BH disabled or process.
 */
void nhca_sk_data_ready(struct sock *sk);

/**
 * nhca_rx_batch - process the packets of a batch; in recv.c
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
 * nhca_sk_rest - process the packets that nhca_sk_data_ready() has left; in recv.c
 * @bh: nhca_sock.rest
 * Context: softirq.
 */
void nhca_sk_rest(struct nhca_bh *bh);

#endif /* NHCA_NET_SOCKETS_H */
