/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Private to the net room: the UDP sockets of a namespace.
 */
#ifndef NHCA_NET_SOCKETS_H
#define NHCA_NET_SOCKETS_H

#include <linux/atomic.h>
#include <linux/net.h>
#include <net/sock.h>

#include "../bh.h"

struct nhca_net;

/**
 * struct nhca_sock - one UDP socket on the RoCEv2 port; sk_user_data points here
 * @nn:    its namespace
 * @sock:  the socket
 * @ready: calls of nhca_sk_data_ready() that nobody has answered (recv.c)
 * @rest:  goes on with what a CPU has left when its budget was used up
 */
struct nhca_sock {
	struct nhca_net *nn;
	struct socket *sock;
	atomic_t ready;
	struct nhca_bh rest;
} ____cacheline_aligned_in_smp;

/*
 * What one CPU takes from a socket before other bottom halves have their turn, counted by
 * nhca_rx_cost(): as much as the stack's own net.core.netdev_budget, about, and at most 1 MiB.
 */
#define NHCA_RX_BUDGET	256

/**
 * nhca_sk_data_ready - sk_data_ready of the sockets, in recv.c
 * @sk: the socket
 * Takes NHCA_RX_BUDGET from the queue, unless another CPU is doing that.  What is left then is
 * taken by nhca_sock.rest.
 * Context: RCU read side; BH disabled or process.
 */
void nhca_sk_data_ready(struct sock *sk);

/**
 * nhca_sk_rest - nhca_sock.rest, in recv.c
 * @bh: of a struct nhca_sock
 * Context: softirq.
 */
void nhca_sk_rest(struct nhca_bh *bh);

#endif /* NHCA_NET_SOCKETS_H */
