/* SPDX-License-Identifier: GPL-2.0 */
/* Injected faults of packets, and the queue of delayed packets. */
#ifndef NHCA_NET_FAULTS_H
#define NHCA_NET_FAULTS_H

#include <linux/hrtimer.h>
#include <linux/skbuff.h>

#include "../observe/inject.h"

struct nhca_dev;
struct nhca_net;
struct nhca_tx;

/**
 * nhca_faults_tx - send a packet, or inject the fault that the rules of the device select
 * @tx:  the packet's queue pair, address and flow
 * @skb: the complete packet, alone, without consumer pages; this function consumes it
 * Context: BH disabled, RCU read side.
 */
void nhca_faults_tx(const struct nhca_tx *tx, struct sk_buff *skb);

/**
 * nhca_faults_rx - let the rules of a device decide about a packet that arrived
 * @dev:    device that has the destination address
 * @qpn:    destination QP in the BTH
 * @opcode: BTH opcode
 * @s:      the decision. NHCA_FAULT_NONE: process the packet. NHCA_FAULT_DROP: drop the packet. Any
 *          other kind: copy the packet and call nhca_faults_rx_copy(); after NHCA_FAULT_DUPLICATE,
 *          also process the packet itself
 * Context: softirq.
 */
void nhca_faults_rx(struct nhca_dev *dev, u32 qpn, u8 opcode, struct nhca_fault_hit *s);

/**
 * nhca_faults_rx_copy - inject a fault into the copy of a packet that arrived
 * @dev:   the device
 * @qpn:   destination QP in the BTH
 * @s:     the decision of nhca_faults_rx()
 * @skb:   the copy, which this function consumes
 * @later: the copy is appended here if it is to be processed after the current packet; otherwise it
 *         waits in the delay queue
 * Context: softirq.
 */
void nhca_faults_rx_copy(struct nhca_dev *dev, u32 qpn, const struct nhca_fault_hit *s,
			 struct sk_buff *skb, struct sk_buff_head *later);

/**
 * nhca_faults_rx_passed - let a packet that was processed overtake packets of the delay queue
 * @dev:   the device
 * @qpn:   destination QP in the BTH
 * @later: gets the packets of the delay queue that no further packet must overtake
 * Context: softirq.
 */
void nhca_faults_rx_passed(struct nhca_dev *dev, u32 qpn, struct sk_buff_head *later);

/**
 * nhca_delayq_create - create the delay queue of a device
 * nhca_delayq_destroy - free the queue and its packets, when no packet is sent or received any more
 * @dev:   the device; @dev->delayq is the queue
 * @timer: nhca_delayq_timer(); the kernel's timer calls this function in softirq when packets are
 *         due, and the function calls nhca_delayq_due()
 * Context: process.
 * Return: nhca_delayq_create(): 0; -ENOMEM: no memory.
 */
int nhca_delayq_create(struct nhca_dev *dev, enum hrtimer_restart (*timer)(struct hrtimer *timer));
void nhca_delayq_destroy(struct nhca_dev *dev);

/**
 * nhca_delayq_due - remove the packets that are due from a delay queue, and send the outgoing ones
 * @timer: the timer of nhca_delayq_create(), which has expired; if packets are left in the queue,
 *         the function starts it again
 * @later: gets the incoming packets
 * Context: softirq.
 * Return: the namespace in which the packets arrived.
 */
struct nhca_net *nhca_delayq_due(struct hrtimer *timer, struct sk_buff_head *later);

#endif /* NHCA_NET_FAULTS_H */
