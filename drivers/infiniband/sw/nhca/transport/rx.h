/* SPDX-License-Identifier: GPL-2.0 */
/* Packets and frames that arrive: interface of transport/ to ingress/, and multicast groups. */
#ifndef NHCA_TRANSPORT_RX_H
#define NHCA_TRANSPORT_RX_H

#include "qp.h"

/* ---- interface to ingress/udp.c ---- */

/**
 * struct nhca_batch - a batch of packets that is being received
 * @rx:     the current packet; the caller decodes it
 * @budget: the caller interrupts the batch when @spent has reached this number
 * @spent:  number of copies of multicast packets, plus the budget that QPs have used, so far
 * @qp:     QP whose lock was taken last.  The members @qp to @acked are private to rx.c, and 0 at
 *          the beginning of a batch
 * @held:   lock of @qp that is still held for the next packet, or NULL
 * @gen:    generation of @qp when @held was taken
 * @passed: the previous packet passed the checks, so nhca_transport_again() need not repeat them
 * @marked: a packet for @qp had an ECN mark
 * @acks:   a packet for @qp carried an acknowledgment (NHCA_CAP_ACKS)
 * @acked:  PSN of the last acknowledgment that a packet for @qp carried
 */
struct nhca_batch {
	struct nhca_rx rx;
	int budget, spent;
	struct nhca_qp *qp;
	/* a lock of @qp, or NULL */
	spinlock_t *held;
	u32 gen;
	bool passed;
	bool marked;
	bool acks;
	u32 acked;
};

/**
 * nhca_transport_rx - deliver a packet that the caller has decoded
 * @b: the batch; @b->rx is the packet
 *
 * The function finds and checks the QP, verifies that the packet is intact, and gives the packet to
 * requester or responder.  When the function returns, a lock of the QP may still be held, for the
 * next packets of the batch.
 * Context: BH disabled, RCU read side.
 */
void nhca_transport_rx(struct nhca_batch *b);

/**
 * nhca_transport_again - deliver a packet that differs from the one before only in PSN and AckReq
 * @b: as for nhca_transport_rx()
 * Context: as nhca_transport_rx().
 */
void nhca_transport_again(struct nhca_batch *b);

/**
 * nhca_transport_rx_end - end a batch: send the responses that are due, and release the lock
 * @b: the batch
 * Context: as nhca_transport_rx(), in the same RCU read side.
 */
void nhca_transport_rx_end(struct nhca_batch *b);

/* ---- interface to ingress/frame.c: raw.c ---- */

/**
 * nhca_raw_rx - deliver an Ethernet frame to a raw packet QP
 * @qp:  the raw packet QP
 * @skb: begins with the Ethernet header; the caller keeps its reference
 * Context: softirq, RCU read side.
 */
void nhca_raw_rx(struct nhca_qp *qp, struct sk_buff *skb);

/* ---- multicast: mcast.c ---- */

/**
 * nhca_mcast_attach - attach a UD QP to a multicast group
 * nhca_mcast_detach - detach a UD QP from a multicast group
 * @qp:   the QP
 * @mgid: the group, IPv4-mapped or IPv6
 *
 * The netdev joins the group when the first QP of the device is attached to it, and leaves the
 * group when the last one is detached.
 * Context: process, takes RTNL.
 * Return: attach: 0, also if the QP is attached already; -EDQUOT: more than the user's share of the
 * device's groups, or of the group's QPs; -ENOMEM: no memory, or the device has NHCA_MAX_MCAST_GRP
 * groups or the group NHCA_MAX_MCAST_QP QPs; -ENODEV: an IPv4 group, and the netdev has no IPv4;
 * -EAFNOSUPPORT: an IPv6 group, and the kernel has no IPv6; errors of ipv6_dev_mc_inc().  detach:
 * 0; -EINVAL: not attached.
 */
int nhca_mcast_attach(struct nhca_qp *qp, const struct in6_addr *mgid);
int nhca_mcast_detach(struct nhca_qp *qp, const struct in6_addr *mgid);

/**
 * nhca_mcast_deliver - call @fn for each UD QP that is attached to the multicast group @mgid
 * @dev:  the device that received the packet
 * @mgid: the group, IPv4-mapped or IPv6
 * @b:    the batch; @b->rx is the packet
 * @fn:   called with @b for each QP
 * Context: RCU read side.
 * Return: number of calls of @fn, at most NHCA_MAX_MCAST_QP.
 */
u32 nhca_mcast_deliver(struct nhca_dev *dev, const struct in6_addr *mgid, struct nhca_batch *b,
		       void (*fn)(struct nhca_qp *qp, struct nhca_batch *b));

/* detach a QP that is being destroyed from all groups; process, takes RTNL if there are any */
void nhca_mcast_detach_all(struct nhca_qp *qp);

#endif /* NHCA_TRANSPORT_RX_H */
