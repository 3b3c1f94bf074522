/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Private to the net room: charging packets to a flow.
 */
#ifndef NHCA_NET_FLOW_H
#define NHCA_NET_FLOW_H

/* packets that one skb can be charged with */
#define NHCA_FLOW_BATCH		64

struct nhca_flow;
struct nhca_zcopy_queue;
struct sk_buff;

/**
 * nhca_flow_charge - count packets against a flow until their skb is freed or orphaned
 *
 * The packets take the transmit queue of those of the flow that the stack holds.  Without any, the
 * queue is that of this CPU.
 *
 * @flow:    the flow
 * @skb:     without a destructor; if its own fragments are consumer pages, no other skb that was
 *           charged has the same zero-copy reference
 * @packets: in @skb, 1 to NHCA_FLOW_BATCH
 * Context: any.
 */
void nhca_flow_charge(struct nhca_flow *flow, struct sk_buff *skb, unsigned int packets);

/**
 * nhca_flow_sender - the CPU by which XPS chooses the transmit queue of the flow's packets
 * @flow: the flow; with no packets in the stack, this is the CPU of the last ones
 * Context: any.
 */
unsigned int nhca_flow_sender(const struct nhca_flow *flow);

/**
 * nhca_flow_cpu - the CPU that a flow without packets in the stack begins with
 * Context: any.  Return: the current one; KUnit has others.
 */
unsigned int nhca_flow_cpu(void);

/* a reference on the flow itself, and back; any context */
void nhca_flow_get(struct nhca_flow *flow);
void nhca_flow_put(struct nhca_flow *flow);

/* the flow's zero-copy references; any context */
struct nhca_zcopy_queue *nhca_flow_zcopy(struct nhca_flow *flow);

/* kick the flow's owner; RCU read side, so that who closed the flow can wait for it */
void nhca_flow_run(struct nhca_flow *flow);

/* wait until no flow exists: every QP is gone and every packet given back; process */
void nhca_flow_drain(void);

#endif /* NHCA_NET_FLOW_H */
