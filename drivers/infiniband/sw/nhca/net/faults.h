/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Private to the net room: what fault injection does to packets.
 */
#ifndef NHCA_NET_FAULTS_H
#define NHCA_NET_FAULTS_H

#include <linux/skbuff.h>

#include "../observe/inject.h"

struct nhca_net;
struct nhca_tx;

/**
 * nhca_faults_tx - send a packet, or do to it what the device's rules say
 * @skb: built, alone, with no consumer page in it; is given away
 * Context: BH disabled.
 */
void nhca_faults_tx(const struct nhca_tx *tx, struct sk_buff *skb);

/**
 * nhca_faults_rx - what is to become of a packet that arrived
 * @dev:    that it came for
 * @qpn:    that it names
 * @opcode: BTH
 * @s:      NHCA_FAULT_NONE: nothing is wrong with it; NHCA_FAULT_DROP: it is lost; else it
 *          takes a copy, for nhca_faults_rx_copy()
 * Context: softirq.
 */
void nhca_faults_rx(struct nhca_dev *dev, u32 qpn, u8 opcode, struct nhca_fault_hit *s);

/**
 * nhca_faults_rx_copy - do what @s says to the copy of an arrived packet
 * @skb:   from nhca_rx_copy_of(), is given away
 * @later: gets it if it comes in behind those before it; else it comes in when its time is there
 * Context: softirq.
 */
void nhca_faults_rx_copy(struct nhca_dev *dev, u32 qpn, const struct nhca_fault_hit *s,
			 struct sk_buff *skb, struct sk_buff_head *later);

/**
 * nhca_faults_rx_passed - a packet has come in: those that were to come behind it go to @later
 * Context: softirq.
 */
void nhca_faults_rx_passed(struct nhca_dev *dev, u32 qpn, struct sk_buff_head *later);

/* in recv.c: a packet that was held back comes in now; softirq; the skb stays the caller's */
void nhca_rx_late(struct nhca_net *nn, struct sk_buff *skb);

#endif /* NHCA_NET_FAULTS_H */
