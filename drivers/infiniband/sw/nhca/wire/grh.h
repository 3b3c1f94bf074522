/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The 40 bytes in front of a UD message's payload (IBTA Annex A17.4.5.1).
 */
#ifndef NHCA_WIRE_GRH_H
#define NHCA_WIRE_GRH_H

#include <linux/types.h>
#include <linux/ip.h>
#include <linux/ipv6.h>

/**
 * nhca_grh_fill4 - IPv4: twenty zero bytes, then the IPv4 header
 * nhca_grh_fill6 - IPv6: the IPv6 header, which has a GRH's layout
 * @grh: 40 bytes
 */
void nhca_grh_fill4(u8 *grh, const struct iphdr *iph);
void nhca_grh_fill6(u8 *grh, const struct ipv6hdr *ip6h);

#endif /* NHCA_WIRE_GRH_H */
