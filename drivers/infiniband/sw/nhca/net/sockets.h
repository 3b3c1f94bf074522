/* SPDX-License-Identifier: GPL-2.0 */
/* The UDP sockets of a namespace; for net/ and ingress/. */
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
 * @index: number of packets before this packet
 */
struct nhca_rx_pos {
	u32 off;
	u16 index;
};

/**
 * struct nhca_sock - one UDP socket on the RoCEv2 port; its sk_user_data points here
 * @nn:    its namespace
 * @sock:  the socket
 * @ready: 0: no CPU processes the packets of the socket; otherwise 1 plus the number of calls of
 *         nhca_sk_data_ready() since the CPU that processes the packets last began to read the
 *         queue
 * @rest:  bottom half that continues to receive after a CPU has used up its budget
 * @part:  a batch of which only some packets have been processed, or NULL; used only by the CPU
 *         that processes the socket's packets
 * @pos:   where @part continues
 * @since: lower 32 bits of the jiffies that @left is for; used only by the same CPU as @part
 * @left:  budget that is left for this jiffy, at first NHCA_RX_JIFFY (ingress/ingress.h); used only
 *         by the same CPU as @part
 */
struct nhca_sock {
	struct nhca_net *nn;
	struct socket *sock;
	atomic_t ready;
	struct nhca_bh rest;
	struct sk_buff *part;
	struct nhca_rx_pos pos;
	u32 since;
	int left;
} ____cacheline_aligned_in_smp;

#endif /* NHCA_NET_SOCKETS_H */
