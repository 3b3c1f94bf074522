// SPDX-License-Identifier: GPL-2.0
/*
 * Flow steering: creation of rules that direct frames to raw packet QPs.  ingress/frame.c applies
 * the rules.
 */
#include <linux/slab.h>

#include "objects.h"
#include "../net/steering.h"
#include "../transport/qp.h"

/**
 * struct nhca_ib_flow - a flow
 * @ibflow: the RDMA core's part
 * @rule:   the steering rule; nhca_dev.steer owns it
 */
struct nhca_ib_flow {
	struct ib_flow ibflow;
	struct nhca_steer_rule *rule;
};

/*
 * Let a rule require that a field has the value @val in the bits of @val_mask.
 * @key:  the field in the key of the rule
 * @mask: the field in the mask of the rule
 * @size: bytes of the field
 * Return: 0; -EINVAL: the rule already requires the other value of one of these bits.
 */
static int nhca_spec_want(void *key, void *mask, const void *val, const void *val_mask,
			  size_t size)
{
	const u8 *v = val, *vm = val_mask;
	u8 *k = key, *m = mask;

	for (; size; size--, k++, m++, v++, vm++) {
		/* No frame can have both values. */
		if ((*k ^ *v) & *m & *vm)
			return -EINVAL;
		*k |= *v & *vm;
		*m |= *vm;
	}
	return 0;
}

static int nhca_spec_eth(struct nhca_steer_rule *rule, const struct ib_flow_spec_eth *spec)
{
	const struct ib_flow_eth_filter *v = &spec->val, *vm = &spec->mask;
	struct nhca_steer_key *k = &rule->key, *m = &rule->mask;

	return nhca_spec_want(k->dmac, m->dmac, v->dst_mac, vm->dst_mac, sizeof(k->dmac)) ?:
	       nhca_spec_want(k->smac, m->smac, v->src_mac, vm->src_mac, sizeof(k->smac)) ?:
	       nhca_spec_want(&k->type, &m->type, &v->ether_type, &vm->ether_type,
			      sizeof(k->type)) ?:
	       nhca_spec_want(&k->vlan, &m->vlan, &v->vlan_tag, &vm->vlan_tag, sizeof(k->vlan));
}

static int nhca_spec_type(struct nhca_steer_rule *rule, u16 type)
{
	const __be16 all = htons(0xffff);
	__be16 val = htons(type);

	return nhca_spec_want(&rule->key.type, &rule->mask.type, &val, &all, sizeof(val));
}

static int nhca_spec_proto(struct nhca_steer_rule *rule, u8 proto)
{
	const u8 all = 0xff;

	return nhca_spec_want(&rule->key.proto, &rule->mask.proto, &proto, &all, sizeof(proto));
}

static int nhca_spec_ip4(struct nhca_steer_rule *rule, const struct ib_flow_spec_ipv4 *spec)
{
	const struct ib_flow_ipv4_filter *v = &spec->val, *vm = &spec->mask;
	struct nhca_steer_key *k = &rule->key, *m = &rule->mask;

	return nhca_spec_type(rule, ETH_P_IP) ?:
	       nhca_spec_want(&k->src.s6_addr32[3], &m->src.s6_addr32[3], &v->src_ip, &vm->src_ip,
			      sizeof(v->src_ip)) ?:
	       nhca_spec_want(&k->dst.s6_addr32[3], &m->dst.s6_addr32[3], &v->dst_ip, &vm->dst_ip,
			      sizeof(v->dst_ip)) ?:
	       nhca_spec_want(&k->proto, &m->proto, &v->proto, &vm->proto, sizeof(k->proto)) ?:
	       nhca_spec_want(&k->tos, &m->tos, &v->tos, &vm->tos, sizeof(k->tos)) ?:
	       nhca_spec_want(&k->ttl, &m->ttl, &v->ttl, &vm->ttl, sizeof(k->ttl)) ?:
	       nhca_spec_want(&k->flags, &m->flags, &v->flags, &vm->flags, sizeof(k->flags));
}

static int nhca_spec_ip6(struct nhca_steer_rule *rule, const struct ib_flow_spec_ipv6 *spec)
{
	const struct ib_flow_ipv6_filter *v = &spec->val, *vm = &spec->mask;
	struct nhca_steer_key *k = &rule->key, *m = &rule->mask;

	return nhca_spec_type(rule, ETH_P_IPV6) ?:
	       nhca_spec_want(&k->src, &m->src, v->src_ip, vm->src_ip, sizeof(k->src)) ?:
	       nhca_spec_want(&k->dst, &m->dst, v->dst_ip, vm->dst_ip, sizeof(k->dst)) ?:
	       nhca_spec_want(&k->label, &m->label, &v->flow_label, &vm->flow_label,
			      sizeof(k->label)) ?:
	       nhca_spec_want(&k->proto, &m->proto, &v->next_hdr, &vm->next_hdr,
			      sizeof(k->proto)) ?:
	       nhca_spec_want(&k->tos, &m->tos, &v->traffic_class, &vm->traffic_class,
			      sizeof(k->tos)) ?:
	       nhca_spec_want(&k->ttl, &m->ttl, &v->hop_limit, &vm->hop_limit, sizeof(k->ttl));
}

static int nhca_spec_ports(struct nhca_steer_rule *rule, const struct ib_flow_spec_tcp_udp *spec)
{
	const struct ib_flow_tcp_udp_filter *v = &spec->val, *vm = &spec->mask;
	struct nhca_steer_key *k = &rule->key, *m = &rule->mask;

	return nhca_spec_proto(rule, spec->type == IB_FLOW_SPEC_TCP ? IPPROTO_TCP : IPPROTO_UDP) ?:
	       nhca_spec_want(&k->sport, &m->sport, &v->src_port, &vm->src_port,
			      sizeof(k->sport)) ?:
	       nhca_spec_want(&k->dport, &m->dport, &v->dst_port, &vm->dst_port, sizeof(k->dport));
}

static int nhca_spec_add(struct nhca_steer_rule *rule, const union ib_flow_spec *spec)
{
	switch (spec->type) {
	case IB_FLOW_SPEC_ETH:
		return nhca_spec_eth(rule, &spec->eth);
	case IB_FLOW_SPEC_IPV4:
		return nhca_spec_ip4(rule, &spec->ipv4);
	case IB_FLOW_SPEC_IPV6:
		return nhca_spec_ip6(rule, &spec->ipv6);
	case IB_FLOW_SPEC_TCP:
	case IB_FLOW_SPEC_UDP:
		return nhca_spec_ports(rule, &spec->tcp_udp);
	default:
		return -EOPNOTSUPP;
	}
}

int nhca_spec_rule(const struct ib_flow_attr *attr, struct nhca_steer_rule *rule)
{
	const void *spec = attr + 1;
	unsigned int i;
	int err;

	/*
	 * The driver supports no sniffer rules and no default rules.  A default rule is for frames
	 * that the host does not use, and the driver cannot determine which frames these are.
	 */
	if (attr->type != IB_FLOW_ATTR_NORMAL || (attr->flags & ~IB_FLOW_ATTR_FLAGS_DONT_TRAP))
		return -EOPNOTSUPP;
	rule->priority = attr->priority;
	rule->copy = attr->flags & IB_FLOW_ATTR_FLAGS_DONT_TRAP;
	for (i = 0; i < attr->num_of_specs; i++) {
		err = nhca_spec_add(rule, spec);
		if (err)
			return err;
		spec += ((const union ib_flow_spec *)spec)->size;
	}
	return 0;
}

struct ib_flow *nhca_create_flow(struct ib_qp *ibqp, struct ib_flow_attr *attr,
				 struct ib_udata *udata)
{
	struct nhca_steer_rule *rule;
	struct nhca_ib_flow *flow;
	int err;

	/* The core also allows flows of UD QPs, which the driver does not support. */
	if (ibqp->qp_type != IB_QPT_RAW_PACKET)
		return ERR_PTR(-EOPNOTSUPP);
	if (udata && udata->inlen && !ib_is_udata_cleared(udata, 0, udata->inlen))
		return ERR_PTR(-EOPNOTSUPP);

	err = -ENOMEM;
	flow = kzalloc(sizeof(*flow), GFP_KERNEL_ACCOUNT);
	rule = kzalloc(sizeof(*rule), GFP_KERNEL_ACCOUNT);
	if (!flow || !rule)
		goto err_free;
	err = nhca_spec_rule(attr, rule);
	if (err)
		goto err_free;
	rule->qp = to_nhca_qp(ibqp);
	flow->rule = rule;
	err = nhca_obj_get(rule->qp->dev, rule->qp->owner, NHCA_POOL_RULES);
	if (err)
		goto err_free;
	err = nhca_steer_add(rule->qp->dev->steer, rule);
	if (err)
		goto err_give;
	return &flow->ibflow;

err_give:
	nhca_obj_put(rule->qp->dev, rule->qp->owner, NHCA_POOL_RULES);
err_free:
	kfree(rule);
	kfree(flow);
	return ERR_PTR(err);
}

int nhca_destroy_flow(struct ib_flow *ibflow)
{
	struct nhca_ib_flow *flow = container_of(ibflow, struct nhca_ib_flow, ibflow);
	struct nhca_qp *qp = flow->rule->qp;

	nhca_steer_del(qp->dev->steer, flow->rule);
	nhca_obj_put(qp->dev, qp->owner, NHCA_POOL_RULES);
	kfree(flow);
	return 0;
}
