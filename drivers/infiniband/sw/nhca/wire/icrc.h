/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The invariant CRC of RoCEv2 (IBTA A17.3.3): a CRC-32 over eight bytes of 0xff, the IP and UDP
 * headers, the BTH, the extended headers, the payload and the pad.  In fields that routers may
 * change, all bits count as ones.
 */
#ifndef NHCA_WIRE_ICRC_H
#define NHCA_WIRE_ICRC_H

#include <linux/types.h>

/**
 * nhca_icrc_start4 - begin the ICRC of an IPv4 packet: IP header, UDP header and BTH
 * @iph: 20 bytes of IP header without options, 8 bytes of UDP header, 12 bytes of BTH, as on the
 *       wire
 *
 * TOS, TTL and header checksum of IPv4, the UDP checksum and byte 4 of the BTH (FECN, BECN and six
 * reserved bits) count as ones.
 * Context: any.
 * Return: running CRC for nhca_icrc_more().
 */
u32 nhca_icrc_start4(const void *iph);

/**
 * nhca_icrc_start6 - begin the ICRC of an IPv6 packet: IP header, UDP header and BTH
 * @iph: 40 bytes of IP header without extension headers, 8 bytes of UDP header, 12 bytes of BTH, as
 *       on the wire
 *
 * Traffic class, flow label and hop limit of IPv6, the UDP checksum and byte 4 of the BTH count as
 * ones.
 * Context: any.
 * Return: running CRC for nhca_icrc_more().
 */
u32 nhca_icrc_start6(const void *iph);

/**
 * nhca_icrc_more - continue an ICRC with bytes of extended headers, payload or pad
 * @crc: running CRC
 * @p:   the bytes
 * @len: number of bytes
 * Context: any.
 * Return: the new running CRC.
 */
u32 nhca_icrc_more(u32 crc, const void *p, unsigned int len);

/**
 * nhca_icrc_finish - end an ICRC
 * @crc: running CRC
 * Context: any.
 * Return: the ICRC, in the byte order in which it is stored after the pad.
 */
__le32 nhca_icrc_finish(u32 crc);

/**
 * nhca_icrc_init - find the fastest CRC-32 that the kernel has, when the module is loaded
 * Context: process, sleeps.
 * Return: 0.
 */
int nhca_icrc_init(void);

/**
 * nhca_icrc_exit - release what nhca_icrc_init() has found, when the module is unloaded
 * Context: process, sleeps; no ICRC is computed any more.
 */
void nhca_icrc_exit(void);

#endif /* NHCA_WIRE_ICRC_H */
