// SPDX-License-Identifier: GPL-2.0
/*
 * Flow steering: the rules of a device, and a netfilter hook at the ingress of the netdev, before
 * bridges, VLANs and protocols. The hook is registered only while the device has a rule.
 * ingress/frame.c has the function of the hook. This file also sends the frames of raw packet QPs.
 */
#include <linux/etherdevice.h>
#include <linux/if_vlan.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/netdevice.h>
#include <linux/netfilter.h>
#include <linux/netfilter_netdev.h>
#include <linux/rculist.h>
#include <linux/rtnetlink.h>
#include <linux/slab.h>
#include <net/dsfield.h>
#include <net/ipv6.h>
#include <rdma/ib_verbs.h>

#include "net.h"
#include "flow.h"
#include "steering.h"
#include "../memory/memory.h"
#include "../observe/inject.h"
#include "../observe/stub.h"

/**
 * struct nhca_steer - the steering rules of a device
 * @lock:    serializes changes of @rules and of the hook
 * @rules:   sorted by priority; RCU readers
 * @count:   number of rules
 * @ndev:    netdev of the device
 * @hook:    registered while @net is not NULL; nhca_steer_create() gets the function of the hook
 * @net:     namespace in which @hook is registered
 * @stopped: @ndev is being removed, or leaves its namespace; written with @lock held, RCU readers
 */
struct nhca_steer {
	/* serializes changes of the rules and of the hook */
	struct mutex lock;
	struct list_head rules;
	unsigned int count;
	struct net_device *ndev;
#ifdef CONFIG_NETFILTER_INGRESS
	struct nf_hook_ops hook;
#endif
	struct net *net;
	bool stopped;
};

/* ---- fields of a frame ---- */

static void nhca_steer_parse_ports(const struct sk_buff *skb, int off, struct nhca_steer_key *key)
{
	const __be16 *p;
	__be16 buf[2];

	if (key->proto != IPPROTO_TCP && key->proto != IPPROTO_UDP)
		return;
	p = skb_header_pointer(skb, off, sizeof(buf), buf);
	if (!p)
		return;
	key->sport = p[0];
	key->dport = p[1];
}

static void nhca_steer_parse_ip4(const struct sk_buff *skb, int off, struct nhca_steer_key *key)
{
	const struct iphdr *iph;
	struct iphdr buf;

	iph = skb_header_pointer(skb, off, sizeof(buf), &buf);
	if (!iph || iph->version != 4 || iph->ihl < sizeof(buf) / 4)
		return;
	key->src.s6_addr32[3] = iph->saddr;
	key->dst.s6_addr32[3] = iph->daddr;
	key->proto = iph->protocol;
	key->tos = iph->tos;
	key->ttl = iph->ttl;
	if (iph->frag_off & htons(IP_DF))
		key->flags |= IB_IPV4_DONT_FRAG;
	if (iph->frag_off & htons(IP_MF))
		key->flags |= IB_IPV4_MORE_FRAG;
	if (!(iph->frag_off & htons(IP_OFFSET)))
		nhca_steer_parse_ports(skb, off + iph->ihl * 4, key);
}

static void nhca_steer_parse_ip6(const struct sk_buff *skb, int off, struct nhca_steer_key *key)
{
	const struct ipv6hdr *ip6h;
	struct ipv6hdr buf;
	__be16 frag = 0;

	ip6h = skb_header_pointer(skb, off, sizeof(buf), &buf);
	if (!ip6h || ip6h->version != 6)
		return;
	key->src = ip6h->saddr;
	key->dst = ip6h->daddr;
	key->tos = ipv6_get_dsfield(ip6h);
	key->ttl = ip6h->hop_limit;
	key->label = ip6_flowlabel(ip6h);
	key->proto = ip6h->nexthdr;
	off = ipv6_skip_exthdr(skb, off + sizeof(*ip6h), &key->proto, &frag);
	if (off >= 0 && !(frag & htons(IP6_OFFSET)))
		nhca_steer_parse_ports(skb, off, key);
}

void nhca_steer_parse(const struct sk_buff *skb, struct nhca_steer_key *key)
{
	int off = skb_network_offset(skb);
	const struct vlan_hdr *vh;
	struct vlan_hdr buf;

	memset(key, 0, sizeof(*key));
	ether_addr_copy(key->dmac, eth_hdr(skb)->h_dest);
	ether_addr_copy(key->smac, eth_hdr(skb)->h_source);
	key->type = skb->protocol;
	if (skb_vlan_tag_present(skb)) {
		key->vlan = htons(skb_vlan_tag_get(skb));
	} else if (eth_type_vlan(key->type)) {
		vh = skb_header_pointer(skb, off, sizeof(buf), &buf);
		if (!vh)
			return;
		key->vlan = vh->h_vlan_TCI;
		key->type = vh->h_vlan_encapsulated_proto;
		off += VLAN_HLEN;
	}
	if (key->type == htons(ETH_P_IP))
		nhca_steer_parse_ip4(skb, off, key);
	else if (key->type == htons(ETH_P_IPV6))
		nhca_steer_parse_ip6(skb, off, key);
}

bool nhca_steer_fits(const struct nhca_steer_rule *rule, const struct nhca_steer_key *key)
{
	const u32 *mask = (const u32 *)&rule->mask;
	const u32 *want = (const u32 *)&rule->key;
	const u32 *have = (const u32 *)key;
	unsigned int i;

	BUILD_BUG_ON(sizeof(*key) % sizeof(u32));
	for (i = 0; i < sizeof(*key) / sizeof(u32); i++)
		if ((have[i] ^ want[i]) & mask[i])
			return false;
	return true;
}

/* ---- the hook ---- */

#ifdef CONFIG_NETFILTER_INGRESS
static int nhca_steer_hook_add(struct nhca_steer *steer)
{
	struct net *net = dev_net(steer->ndev);
	int err;

	steer->hook.dev = steer->ndev;
	steer->hook.priv = &steer->rules;
	steer->hook.pf = NFPROTO_NETDEV;
	steer->hook.hooknum = NF_NETDEV_INGRESS;
	steer->hook.priority = INT_MIN;
	err = nf_register_net_hook(net, &steer->hook);
	if (!err)
		steer->net = net;
	return err;
}

static void nhca_steer_hook_del(struct nhca_steer *steer)
{
	if (!steer->net)
		return;
	nf_unregister_net_hook(steer->net, &steer->hook);
	steer->net = NULL;
}
#else
static int nhca_steer_hook_add(struct nhca_steer *steer)
{
	return -EOPNOTSUPP;
}

static void nhca_steer_hook_del(struct nhca_steer *steer)
{
}
#endif

/* ---- rules ---- */

struct nhca_steer *nhca_steer_create(struct net_device *ndev, nhca_steer_fn *hook)
{
	struct nhca_steer *steer = kzalloc(sizeof(*steer), GFP_KERNEL);

	if (!steer)
		return NULL;
	mutex_init(&steer->lock);
	INIT_LIST_HEAD(&steer->rules);
	steer->ndev = ndev;
#ifdef CONFIG_NETFILTER_INGRESS
	steer->hook.hook = hook;
#endif
	return steer;
}

void nhca_steer_destroy(struct nhca_steer *steer)
{
	if (!steer)
		return;
	WARN_ON(!list_empty(&steer->rules) || steer->net);
	mutex_destroy(&steer->lock);
	kfree(steer);
}

void nhca_steer_stop(struct nhca_steer *steer)
{
	ASSERT_RTNL();
	mutex_lock(&steer->lock);
	WRITE_ONCE(steer->stopped, true);
	nhca_steer_hook_del(steer);
	mutex_unlock(&steer->lock);
	/* wait for calls of nhca_frame_send() that have not seen @stopped */
	synchronize_net();
}

void nhca_steer_insert(struct list_head *rules, struct nhca_steer_rule *rule)
{
	struct nhca_steer_rule *other;

	list_for_each_entry(other, rules, list)
		if (other->priority > rule->priority)
			break;
	list_add_tail_rcu(&rule->list, &other->list);
}

int nhca_steer_add(struct nhca_steer *steer, struct nhca_steer_rule *rule)
{
	int err = 0;

	mutex_lock(&steer->lock);
	if (steer->stopped)
		err = -ENODEV;
	else if (steer->count == NHCA_MAX_STEER_RULES)
		err = -ENOMEM;
	else if (!steer->net)
		err = nhca_steer_hook_add(steer);
	if (!err) {
		nhca_steer_insert(&steer->rules, rule);
		steer->count++;
	}
	mutex_unlock(&steer->lock);
	return err;
}

void nhca_steer_del(struct nhca_steer *steer, struct nhca_steer_rule *rule)
{
	mutex_lock(&steer->lock);
	list_del_rcu(&rule->list);
	if (!--steer->count)
		nhca_steer_hook_del(steer);
	mutex_unlock(&steer->lock);
	/* wait until the hook no longer uses the rule and its QP */
	synchronize_rcu();
	kfree(rule);
}

/* ---- frames to send ---- */

/*
 * Return: true if a rule matches a frame that is to be sent. @keep: set to true if one of the
 * matching rules does not copy. In this case a unicast frame is not sent to the wire.
 */
static bool nhca_steer_wants(const struct nhca_steer *steer, const struct sk_buff *skb, bool *keep)
{
	struct nhca_steer_rule *rule;
	struct nhca_steer_key key;
	bool wanted = false;

	if (likely(list_empty_careful(&steer->rules)))
		return false;
	nhca_steer_parse(skb, &key);
	list_for_each_entry_rcu(rule, &steer->rules, list) {
		if (!nhca_steer_fits(rule, &key))
			continue;
		wanted = true;
		*keep = !rule->copy;
		if (*keep)
			break;
	}
	return wanted;
}

/*
 * Loop the frame back as if it had arrived from the wire. Only QPs of steering rules may get the
 * frame: PACKET_OTHERHOST makes the host's protocols drop the frame. The function consumes @skb.
 */
static void nhca_frame_loop(struct sk_buff *skb)
{
	skb->protocol = eth_type_trans(skb, skb->dev);
	skb->pkt_type = PACKET_OTHERHOST;
	netif_rx(skb);
}

int nhca_frame_send(struct nhca_dev *dev, const struct nhca_who *who, struct nhca_flow *flow,
		    struct nhca_iter *it, u32 len, struct nhca_fault *fault)
{
	struct net_device *ndev = dev->netdev;
	bool keep = false;
	struct sk_buff *skb, *loop;
	int err;

	NHCA_STUB(nhca_frame_send, dev, who, flow, it, len, fault);
	/* after nhca_steer_stop(), the netdev may be running in another namespace */
	if (unlikely(READ_ONCE(dev->steer->stopped)) || unlikely(!netif_running(ndev)) ||
	    nhca_inject_down(dev))
		return -ENETDOWN;
	skb = alloc_skb(LL_RESERVED_SPACE(ndev) + len + ndev->needed_tailroom,
			GFP_ATOMIC | __GFP_NOWARN);
	if (!skb)
		return -ENOMEM;
	skb_reserve(skb, LL_RESERVED_SPACE(ndev));

	nhca_live_enter();
	err = nhca_live_exit_fault(nhca_iter_read(it, skb_put(skb, len), len), it, 0, fault);
	if (err) {
		kfree_skb(skb);
		return err;
	}

	skb->dev = ndev;
	skb_reset_mac_header(skb);
	skb_set_network_header(skb, ETH_HLEN);
	skb->protocol = eth_hdr(skb)->h_proto;
	/* transport/sq_fetch.c allows 4 bytes more than the MTU, which only a VLAN tag may use */
	if (len > ETH_HLEN + READ_ONCE(ndev->mtu) && !eth_type_vlan(skb->protocol)) {
		kfree_skb(skb);
		return -EMSGSIZE;
	}
	nhca_flow_charge(flow, skb, 1);
	nhca_count_add(who, NHCA_CNT_SENT_PKTS, 1);
	nhca_count_add(who, NHCA_CNT_SENT_BYTES, len);

	if (nhca_steer_wants(dev->steer, skb, &keep)) {
		if (keep && !is_multicast_ether_addr(eth_hdr(skb)->h_dest)) {
			nhca_frame_loop(skb);
			return 0;
		}
		loop = skb_copy(skb, GFP_ATOMIC);
		if (loop)
			nhca_frame_loop(loop);
	}
	/* store the result first: net_xmit_eval() is a macro that evaluates its argument twice */
	err = dev_queue_xmit(skb);
	if (unlikely(net_xmit_eval(err)))
		nhca_count(who, NHCA_CNT_SEND_ERR);
	return 0;
}
