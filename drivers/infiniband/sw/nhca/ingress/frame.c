// SPDX-License-Identifier: GPL-2.0
/* Received frames: from the netfilter hook of net/steering.c to raw packet QPs. */
#include <linux/if_vlan.h>
#include <linux/netdevice.h>
#include <linux/netfilter.h>
#include <linux/rculist.h>

#include "../compat.h"
#ifndef NHCA_OLD_GSO
#include <net/gso.h>
#endif

#include "ingress.h"
#include "../net/steering.h"
#include "../transport/rx.h"

/*
 * Give a frame, as it was on the wire, to the QP, which copies the frame. The function consumes
 * @skb.
 */
static void nhca_frame_deliver(struct nhca_qp *qp, struct sk_buff *skb)
{
	nhca_raw_rx(qp, skb);
	consume_skb(skb);
}

/*
 * Restore the frame as it was on the wire and give it to the QP: insert the VLAN tag, segment a GRO
 * batch, complete the checksum. A raw packet QP receives the frames of the wire, not the results of
 * offloads. The function consumes @skb.
 */
static void nhca_frame_restore(struct nhca_qp *qp, struct sk_buff *skb)
{
	struct sk_buff *segs, *next;

	skb = skb_share_check(skb, GFP_ATOMIC);
	if (!skb)
		goto lost;
	skb_push(skb, skb->data - skb_mac_header(skb));
	if (skb_vlan_tag_present(skb)) {
		skb = __vlan_hwaccel_push_inside(skb);
		if (!skb)
			goto lost;
	}
	if (!skb_is_gso(skb)) {
		if (skb->ip_summed == CHECKSUM_PARTIAL && skb_checksum_help(skb))
			goto drop;
		nhca_frame_deliver(qp, skb);
		return;
	}
	segs = skb_gso_segment(skb, 0);
	if (IS_ERR_OR_NULL(segs))
		goto drop;
	consume_skb(skb);
	skb_list_walk_safe(segs, skb, next) {
		skb_mark_not_on_list(skb);
		nhca_frame_deliver(qp, skb);
	}
	return;

drop:
	kfree_skb(skb);
lost:
	nhca_count(&qp->who, NHCA_CNT_RX_NO_BUFFER);
}

unsigned int nhca_frame_hook(void *rules, struct sk_buff *skb, const struct nf_hook_state *state)
{
	struct nhca_steer_rule *rule;
	struct nhca_steer_key key;
	struct sk_buff *copy;

	nhca_steer_parse(skb, &key);
	list_for_each_entry_rcu(rule, (struct list_head *)rules, list) {
		if (!nhca_steer_fits(rule, &key))
			continue;
		if (!rule->copy) {
			nhca_frame_restore(rule->qp, skb);
			return NF_STOLEN;
		}
		copy = skb_clone(skb, GFP_ATOMIC);
		if (copy)
			nhca_frame_restore(rule->qp, copy);
		else
			nhca_count(&rule->qp->who, NHCA_CNT_RX_NO_BUFFER);
	}
	return NF_ACCEPT;
}
