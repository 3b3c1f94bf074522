/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Flow steering selects the frames arriving on a device's netdev that go to a raw packet QP, in
 * place of the host or as copies. It costs the netdev nothing while the device has no rule.
 */
#ifndef NHCA_NET_STEERING_H
#define NHCA_NET_STEERING_H

#include <linux/in6.h>
#include <linux/if_ether.h>
#include <linux/types.h>

struct net_device;
struct nf_hook_state;
struct nhca_dev;
struct nhca_flow;
struct nhca_iter;
struct nhca_fault;
struct nhca_qp;
struct nhca_steer;
struct nhca_who;
struct sk_buff;

/**
 * struct nhca_steer_key - fields of a frame that a rule can match; also a mask of their bits
 * @dmac:  Ethernet destination
 * @smac:  Ethernet source
 * @type:  EtherType; if there is a VLAN tag, the EtherType after it
 * @vlan:  TCI of the outer VLAN tag, or 0
 * @src:   source address: IPv6, or IPv4 in the last four bytes
 * @dst:   destination address: IPv6, or IPv4 in the last four bytes
 * @sport: TCP or UDP source port; 0 in a fragment that is not the first one
 * @dport: TCP or UDP destination port; 0 in a fragment that is not the first one
 * @label: IPv6 flow label
 * @proto: protocol of IPv4; IPv6: protocol after the extension headers
 * @tos:   IPv4 TOS or IPv6 traffic class
 * @ttl:   IPv4 TTL or IPv6 hop limit
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
 * struct nhca_steer_rule - steers matching frames to a QP
 * @list: in nhca_steer.rules
 * @key:  values that a frame must have in the bits of @mask; other bits are 0
 * @mask: bits to compare
 * @priority: rules are tried in ascending order of this value; among equal values, the oldest first
 * @copy: the QP gets a copy; further rules and the host also get the frame
 * @qp:   a raw packet QP that outlives the rule
 */
struct nhca_steer_rule {
	struct list_head list;
	struct nhca_steer_key key;
	struct nhca_steer_key mask;
	u16 priority;
	bool copy;
	struct nhca_qp *qp;
};

/* The function of the netfilter hook. @rules: list of struct nhca_steer_rule, read under RCU. */
typedef unsigned int nhca_steer_fn(void *rules, struct sk_buff *skb,
				   const struct nf_hook_state *state);

/**
 * nhca_steer_create - create the empty rule table of a device
 * @ndev: netdev of the device
 * @hook: called with each frame that arrives while the table has rules; nhca_frame_hook()
 * Context: process.
 * Return: the table, or NULL if there is no memory.
 */
struct nhca_steer *nhca_steer_create(struct net_device *ndev, nhca_steer_fn *hook);

/**
 * nhca_steer_destroy - free a rule table
 * @steer: the table, without rules and after nhca_steer_stop(); or NULL
 * Context: process.
 */
void nhca_steer_destroy(struct nhca_steer *steer);

/**
 * nhca_steer_stop - remove the hook because the netdev is removed or leaves its namespace
 * @steer: the table. Its rules stay until they are deleted, but no arriving frame is compared with
 *         them any more
 *
 * Queue pairs may exist for some time after the call. When the function returns, none of them sends
 * a frame any more, neither to the wire nor to a QP.
 * Context: process, sleeps, RTNL held.
 */
void nhca_steer_stop(struct nhca_steer *steer);

/**
 * nhca_steer_add - add a rule, which matches the frames that arrive from now on
 * @steer: the table
 * @rule:  from kzalloc(), filled in; on success the table owns @rule until nhca_steer_del()
 * Context: process.
 * Return: 0; -EOPNOTSUPP: the kernel has no CONFIG_NETFILTER_INGRESS; -ENODEV: nhca_steer_stop()
 * was called; -ENOMEM: no memory, or the table has NHCA_MAX_STEER_RULES rules already; or another
 * error of nf_register_net_hook().
 */
int nhca_steer_add(struct nhca_steer *steer, struct nhca_steer_rule *rule);

/**
 * nhca_steer_del - delete a rule and free it
 * @steer: the table
 * @rule:  the rule; no frame uses it when the function returns
 * Context: process, sleeps.
 */
void nhca_steer_del(struct nhca_steer *steer, struct nhca_steer_rule *rule);

/**
 * nhca_steer_insert - insert a rule at the position of its priority
 * @rules: the list; nhca_steer.lock is held, or no other thread uses the list
 * @rule:  the rule
 * Context: any.
 */
void nhca_steer_insert(struct list_head *rules, struct nhca_steer_rule *rule);

/**
 * nhca_steer_parse - extract the fields that rules can match
 * @skb: the frame, with MAC and network headers set; its data may begin at either header
 * @key: filled in; fields that the frame does not have are 0
 * Context: any.
 */
void nhca_steer_parse(const struct sk_buff *skb, struct nhca_steer_key *key);

/**
 * nhca_steer_fits - check whether a frame matches a rule
 * @rule: the rule
 * @key:  fields of the frame
 * Context: any.
 * Return: true if frame and rule have the same values in the bits of the rule's mask.
 */
bool nhca_steer_fits(const struct nhca_steer_rule *rule, const struct nhca_steer_key *key);

/**
 * nhca_frame_send - send the frame of a raw packet QP without changes
 * @dev:   the device
 * @who:   the QP, for counters
 * @flow:  flow that the frame is charged to
 * @it:    source of the frame, which begins with the Ethernet header
 * @len:   bytes of the frame
 * @fault: state of a wait for bytes that are not in memory; NULL: do not wait, but return an error
 *
 * A frame that matches rules of the device goes to the QPs of these rules, as between the PCI
 * functions of an adapter with an embedded switch. If one of these rules does not copy, a unicast
 * frame is not sent to the wire. All other frames are sent to the wire.
 * Context: BH disabled, RCU read side; not in a live section.
 * Return: as nhca_xmit(); -ENETDOWN also after nhca_steer_stop(); -EMSGSIZE if the payload of a
 * frame without a VLAN tag is longer than the MTU.
 */
int nhca_frame_send(struct nhca_dev *dev, const struct nhca_who *who, struct nhca_flow *flow,
		    struct nhca_iter *it, u32 len, struct nhca_fault *fault);

#endif /* NHCA_NET_STEERING_H */
