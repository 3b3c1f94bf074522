/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The GRH: 40 bytes before the payload of a UD message in the receive buffer (IBTA A17.4.5.1).
 */
#ifndef NHCA_WIRE_GRH_H
#define NHCA_WIRE_GRH_H

#include <linux/types.h>
#include <linux/ip.h>
#include <linux/ipv6.h>

/**
 * nhca_grh_fill4 - write the GRH of an IPv4 packet: 20 bytes of zeros, then the IPv4 header
 * @grh: room for NHCA_GRH_LEN bytes
 * @iph: IPv4 header; options are not written
 * Context: any.
 */
void nhca_grh_fill4(u8 *grh, const struct iphdr *iph);

/**
 * nhca_grh_fill6 - write the GRH of an IPv6 packet: the IPv6 header, which has the layout of a GRH
 * @grh:  room for NHCA_GRH_LEN bytes
 * @ip6h: IPv6 header
 * Context: any.
 */
void nhca_grh_fill6(u8 *grh, const struct ipv6hdr *ip6h);

#endif /* NHCA_WIRE_GRH_H */
