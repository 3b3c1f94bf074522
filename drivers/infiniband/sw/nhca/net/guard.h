/* SPDX-License-Identifier: GPL-2.0 */
/* The netfilter hook for RoCEv2 packets that sockets of this host send; see guard.c. */
#ifndef NHCA_NET_GUARD_H
#define NHCA_NET_GUARD_H

struct net;
struct nf_hook_state;
struct sk_buff;

/**
 * nhca_guard_open - let only privileged sockets of a namespace send packets to the RoCEv2 port
 * @net: the namespace, which gets its first nhca device
 *
 * In a kernel without netfilter, the function does nothing.
 * Context: process, sleeps.
 * Return: 0 or an error of nf_register_net_hooks().
 */
int nhca_guard_open(struct net *net);

/**
 * nhca_guard_close - undo nhca_guard_open()
 * @net: the namespace
 * Context: process, sleeps.
 */
void nhca_guard_close(struct net *net);

/**
 * nhca_guard_hook - decide about a packet that the host sends; the function of the netfilter hook
 * @priv:  not used
 * @skb:   an IPv4 or IPv6 packet, not fragmented yet
 * @state: has the family and the namespace
 * Context: BH or process, RCU read side.
 * Return: NF_DROP for a UDP packet to the RoCEv2 port from a socket that a program without
 * CAP_NET_RAW has opened, so that the system call fails with EPERM; otherwise NF_ACCEPT.
 */
unsigned int nhca_guard_hook(void *priv, struct sk_buff *skb, const struct nf_hook_state *state);

#endif /* NHCA_NET_GUARD_H */
