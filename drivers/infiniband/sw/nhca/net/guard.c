// SPDX-License-Identifier: GPL-2.0
/*
 * Only programs with CAP_NET_RAW may send RoCEv2 packets through UDP sockets.
 *
 * A receiver recognizes a connection by addresses, QPN and PSN. A UDP socket sends with the address
 * of its host, so without this hook any program could inject packets into connections of this host
 * that belong to other users or to the kernel. Verbs allow a program only packets of its own QPs,
 * and demand CAP_NET_RAW for raw packets and for privileged Q_Keys. So this hook demands
 * CAP_NET_RAW for packets to the RoCEv2 port.
 */
#include <linux/capability.h>
#include <linux/file.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/netfilter.h>
#include <linux/netfilter_ipv4.h>
#include <linux/netfilter_ipv6.h>
#include <linux/udp.h>
#include <net/net_namespace.h>
#include <net/sock.h>

#include "../wire/bth.h"
#include "guard.h"

#ifdef CONFIG_NETFILTER

static bool guard_is_roce(const struct sk_buff *skb, const struct sock *sk, u8 family)
{
	struct udphdr copy __uninitialized;
	const struct udphdr *uh;
	bool udp;

	if (family == NFPROTO_IPV4)
		udp = ip_hdr(skb)->protocol == IPPROTO_UDP;
	else
		/* extension headers may come before the UDP header, so also check the socket */
		udp = ipv6_hdr(skb)->nexthdr == IPPROTO_UDP || sk->sk_protocol == IPPROTO_UDP;
	if (!udp)
		return false;
	uh = skb_header_pointer(skb, skb_transport_offset(skb), sizeof(copy), &copy);
	return !uh || uh->dest == htons(NHCA_ROCE_UDP_PORT);
}

/* Return: true if the program that opened the socket has CAP_NET_RAW in the namespace. */
static bool guard_is_privileged(struct sock *sk, const struct net *net)
{
	const struct socket *sock;
	bool privileged = false;

	/* sock_orphan() also takes the lock, so the socket and its file exist until the unlock */
	read_lock_bh(&sk->sk_callback_lock);
	sock = sk->sk_socket;
	if (sock && sock->file)
		privileged = file_ns_capable(sock->file, net->user_ns, CAP_NET_RAW);
	read_unlock_bh(&sk->sk_callback_lock);
	return privileged;
}

unsigned int nhca_guard_hook(void *priv, struct sk_buff *skb, const struct nf_hook_state *state)
{
	struct sock *sk = skb->sk;

	/*
	 * packets of nhca have no socket; packets of tunnels and rdma_rxe have a kernel socket; a
	 * socket that is not a full one belongs to TCP
	 */
	if (likely(!sk) || !sk_fullsock(sk) || sk->sk_kern_sock)
		return NF_ACCEPT;
	if (!guard_is_roce(skb, sk, state->pf) || guard_is_privileged(sk, state->net))
		return NF_ACCEPT;
	return NF_DROP;
}

/* runs after the hooks of nftables and iptables, whose rules may change the destination port */
static const struct nf_hook_ops nhca_guard_ops[] = {
	{
		.hook = nhca_guard_hook,
		.pf = NFPROTO_IPV4,
		.hooknum = NF_INET_LOCAL_OUT,
		.priority = NF_IP_PRI_LAST,
	},
	{
		.hook = nhca_guard_hook,
		.pf = NFPROTO_IPV6,
		.hooknum = NF_INET_LOCAL_OUT,
		.priority = NF_IP6_PRI_LAST,
	},
};

int nhca_guard_open(struct net *net)
{
	return nf_register_net_hooks(net, nhca_guard_ops, ARRAY_SIZE(nhca_guard_ops));
}

void nhca_guard_close(struct net *net)
{
	nf_unregister_net_hooks(net, nhca_guard_ops, ARRAY_SIZE(nhca_guard_ops));
}

#else

int nhca_guard_open(struct net *net)
{
	return 0;
}

void nhca_guard_close(struct net *net)
{
}

#endif
