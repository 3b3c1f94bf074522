/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Flow steering: which frames that come in by a device's netdev go to a raw packet QP instead
 * of to the host.  A device without rules costs its netdev nothing.
 */
#ifndef NHCA_NET_STEER_H
#define NHCA_NET_STEER_H

#include <linux/in6.h>
#include <linux/if_ether.h>
#include <linux/types.h>

struct net_device;
struct nhca_dev;
struct nhca_flow;
struct nhca_iter;
struct nhca_fault;
struct nhca_qp;
struct nhca_steer;
struct nhca_who;
struct sk_buff;

/**
 * struct nhca_steer_key - what of a frame a rule can look at; as a mask: at which bits of it
 * @dmac, @smac: Ethernet
 * @type:  EtherType behind a VLAN tag
 * @vlan:  TCI of the outer tag, or 0
 * @src, @dst: IPv6, or IPv4 in the last four bytes
 * @sport, @dport: TCP or UDP, of a first fragment
 * @label: IPv6 flow label
 * @proto: of IPv4, or behind IPv6's extension headers
 * @tos:   IPv4 TOS, IPv6 traffic class
 * @ttl:   IPv4 TTL, IPv6 hop limit
 * @flags: IPv4: enum ib_ipv4_flags
 */
struct nhca_steer_key {
	u8 dmac[ETH_ALEN];
	u8 smac[ETH_ALEN];
	__be16 type;
	__be16 vlan;
	struct in6_addr src;
	struct in6_addr dst;
	__be16 sport;
	__be16 dport;
	__be32 label;
	u8 proto;
	u8 tos;
	u8 ttl;
	u8 flags;
};

/**
 * struct nhca_steer_rule - frames whose @key is the same in the bits of @mask are for @qp
 * @key, @mask: bits of @key that @mask has not are 0
 * @priority: lower ones are asked first; among equals the older one
 * @copy: what matches is looked at by the rules behind this one, and the host, too
 * @qp:   a raw packet QP that outlives the rule
 */
struct nhca_steer_rule {
	struct list_head list;
	struct rcu_head rcu;
	struct nhca_steer_key key;
	struct nhca_steer_key mask;
	u16 priority;
	bool copy;
	struct nhca_qp *qp;
};

/* without a rule; process; NULL without memory */
struct nhca_steer *nhca_steer_create(struct net_device *ndev);

/* there is no rule any more; NULL is fine; process */
void nhca_steer_destroy(struct nhca_steer *steer);

/**
 * nhca_steer_stop - the netdev leaves, or its namespace does: no frame is looked at any more
 * Rules stay until they are deleted, and mean nothing.
 * Context: process, RTNL held.
 */
void nhca_steer_stop(struct nhca_steer *steer);

/**
 * nhca_steer_add - frames that come from now on
 * @rule: from kzalloc(), filled in; owned by the table until nhca_steer_del()
 * Context: process.
 * Return: 0; -EOPNOTSUPP: a kernel without CONFIG_NETFILTER_INGRESS; -ENODEV: the netdev leaves;
 * -ENOMEM: none, or there are 1,024 rules.
 */
int nhca_steer_add(struct nhca_steer *steer, struct nhca_steer_rule *rule);

/* no frame goes by @rule any more when this returns; frees it; process */
void nhca_steer_del(struct nhca_steer *steer, struct nhca_steer_rule *rule);

/* insert where its priority says: the table's lock held, or nobody else knows the list */
void nhca_steer_insert(struct list_head *rules, struct nhca_steer_rule *rule);

/**
 * nhca_steer_parse - what rules can look at
 * @skb: with its MAC and network headers set, at whichever its data begins
 * @key: what the frame does not have is 0
 * Context: any.
 */
void nhca_steer_parse(const struct sk_buff *skb, struct nhca_steer_key *key);

/* do the two agree in the bits of the rule's mask?  Any context. */
bool nhca_steer_fits(const struct nhca_steer_rule *rule, const struct nhca_steer_key *key);

/**
 * nhca_frame_send - send a frame as it is
 * @who, @flow: whose, and on whose account
 * @it:   where its @len bytes come from, Ethernet header first
 * @fault: where to wait for them
 *
 * What a rule of the device asks for goes to its QP: a frame to one address instead of, others
 * besides, to the wire, as between the functions of an adapter with a switch in it.
 * Context: BH disabled, RCU read side; not in a live section.
 * Return: as nhca_xmit(); -EMSGSIZE: longer than the MTU, without a VLAN tag.
 */
int nhca_frame_send(struct nhca_dev *dev, const struct nhca_who *who, struct nhca_flow *flow,
		    struct nhca_iter *it, u32 len, struct nhca_fault *fault);

#endif /* NHCA_NET_STEER_H */
