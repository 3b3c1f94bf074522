/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Private to the net room: the UDP sockets of a namespace.
 */
#ifndef NHCA_NET_SOCKETS_H
#define NHCA_NET_SOCKETS_H

#include <linux/atomic.h>
#include <linux/net.h>
#include <net/sock.h>

struct nhca_net;

/**
 * struct nhca_sock - one UDP socket on the RoCEv2 port; sk_user_data points here
 * @nn:    its namespace
 * @sock:  the socket
 * @ready: calls of nhca_sk_data_ready() that nobody has answered (recv.c)
 */
struct nhca_sock {
	struct nhca_net *nn;
	struct socket *sock;
	atomic_t ready;
} ____cacheline_aligned_in_smp;

/**
 * nhca_sk_data_ready - sk_data_ready of the sockets, in recv.c
 * Context: RCU read side; BH disabled or process.
 */
void nhca_sk_data_ready(struct sock *sk);

#endif /* NHCA_NET_SOCKETS_H */
