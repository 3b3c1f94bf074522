/* SPDX-License-Identifier: GPL-2.0 */
/* The functions of recv.c by which ingress/ reads the packets of a batch one by one. */
#ifndef NHCA_NET_RECV_H
#define NHCA_NET_RECV_H

#include "net.h"

/**
 * nhca_rx_begin - read the IP header of a batch
 * @rx: the caller has set ip.nn, skb and udp_off; the function sets ce, at and the other members of
 *      @rx->ip
 * Context: softirq.
 * Return: false if the header has IPv4 options or IPv6 extensions: the batch must be dropped.
 */
bool nhca_rx_begin(struct nhca_rx *rx);

/**
 * nhca_rx_dev - find the device of a packet: by the destination address, or by the interface if
 * this address is multicast
 * @rx: the packet, after nhca_rx_begin()
 * Context: RCU read side.
 * Return: the device, or NULL.
 */
struct nhca_dev *nhca_rx_dev(const struct nhca_rx *rx);

/**
 * nhca_rx_refuse - count and trace a dropped packet, if nhca_rx_dev() finds its device
 * @rx:  the packet
 * @h:   its headers, or NULL
 * @why: counter for the reason
 * Context: softirq, RCU read side.
 */
void nhca_rx_refuse(const struct nhca_rx *rx, const struct nhca_hdr *h, enum nhca_counter why);

/**
 * enum nhca_rx_kind - result of nhca_rx_decode()
 * @NHCA_RX_BAD:   the headers are wrong, and nhca_rx_refuse() was called; or the skb has fewer
 *                 bytes than the packet
 * @NHCA_RX_NEW:   the packet is decoded
 * @NHCA_RX_ALIKE: as @NHCA_RX_NEW; the packet differs from the previous one only in PSN and AckReq
 */
enum nhca_rx_kind {
	NHCA_RX_BAD,
	NHCA_RX_NEW,
	NHCA_RX_ALIKE,
};

/**
 * nhca_rx_decode - read the headers of a packet of a batch
 * @rx:      udp_off and index are those of the packet; all other members are those of the previous
 *           packet of the batch
 * @udp_len: length of the packet's UDP payload in bytes
 * Context: softirq, RCU read side.
 * Return: enum nhca_rx_kind.
 */
enum nhca_rx_kind nhca_rx_decode(struct nhca_rx *rx, u32 udp_len);

/**
 * nhca_rx_copy_of - copy a packet of a batch, with all its headers, to a separate skb
 * @rx:  the batch, with @udp_off and @index of the packet
 * @len: length of the packet's UDP payload in bytes
 *
 * The data begins after the UDP header, as in skbs from the sockets.
 * Context: softirq.
 * Return: the skb, or NULL if there is no memory.
 */
struct sk_buff *nhca_rx_copy_of(struct nhca_rx *rx, u32 len);

#endif /* NHCA_NET_RECV_H */
