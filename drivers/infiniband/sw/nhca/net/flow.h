/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Private to net/: the charge of packets to a flow, which counts the packets of one QP or channel
 * in the network stack.
 */
#ifndef NHCA_NET_FLOW_H
#define NHCA_NET_FLOW_H

/* maximum number of packets that one skb is charged for */
#define NHCA_FLOW_BATCH		64

struct nhca_flow;
struct nhca_pageref_queue;
struct sk_buff;

/**
 * nhca_flow_charge - count packets against a flow until their skb is freed or orphaned
 * @flow:    the flow
 * @skb:     an skb without a destructor. If its own fragments (not those of its frag_list) refer to
 *           consumer pages, no other skb may be charged with the same zero-copy reference
 * @packets: number of packets in @skb, 1 to NHCA_FLOW_BATCH
 *
 * If the stack already holds packets of @flow, XPS selects the transmit queue of the new packets by
 * the same CPU as before. Otherwise XPS selects the queue by the current CPU.
 * Context: any.
 */
void nhca_flow_charge(struct nhca_flow *flow, struct sk_buff *skb, unsigned int packets);

/**
 * nhca_flow_sender - get the CPU by which XPS selects the transmit queue of a flow
 * @flow: the flow
 * Context: any.
 * Return: the CPU; if the stack holds no packet of @flow, the CPU of the last packets.
 */
unsigned int nhca_flow_sender(const struct nhca_flow *flow);

/**
 * nhca_flow_cpu - get the CPU for a flow that has no packets in the stack
 * Context: any.
 * Return: the current CPU. KUnit tests replace this function.
 */
unsigned int nhca_flow_cpu(void);

/**
 * nhca_flow_get - take a reference to a flow
 * nhca_flow_put - drop a reference; the last one frees the flow after a grace period
 * @flow: the flow
 * Context: any.
 */
void nhca_flow_get(struct nhca_flow *flow);
void nhca_flow_put(struct nhca_flow *flow);

/**
 * nhca_flow_pagerefs - get the zero-copy references of a flow
 * @flow: the flow
 * Context: any.
 * Return: the queue of its references, which exists as long as @flow.
 */
struct nhca_pageref_queue *nhca_flow_pagerefs(struct nhca_flow *flow);

/**
 * nhca_flow_run - kick the owner of a flow
 * @flow: the flow; nothing happens after nhca_flow_stop()
 * Context: RCU read side, so that the owner can wait for the end of kicks by a grace period.
 */
void nhca_flow_run(struct nhca_flow *flow);

/**
 * nhca_flow_drain - wait until no flow exists
 *
 * The function returns after all QPs and channels are destroyed and the stack has freed all their
 * packets.
 * Context: process, sleeps.
 */
void nhca_flow_drain(void);

#endif /* NHCA_NET_FLOW_H */
