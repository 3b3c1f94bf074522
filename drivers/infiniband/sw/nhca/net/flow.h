/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Private to the net room: charging packets to a flow.
 */
#ifndef NHCA_NET_FLOW_H
#define NHCA_NET_FLOW_H

struct nhca_flow;
struct sk_buff;

/*
 * count the @packets of @skb against @flow until it is freed or orphaned; any context
 * @loan: of its pages (memory/lend.h), returned then; -1 if there is none
 */
void nhca_flow_charge(struct nhca_flow *flow, struct sk_buff *skb, int loan, unsigned int packets);

/* wait until no flow exists: every QP is gone and every packet given back; process */
void nhca_flow_drain(void);

#endif /* NHCA_NET_FLOW_H */
