/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The invariant CRC of RoCEv2 (IBTA Annex A17.3.3): CRC-32 over eight bytes of
 * ones, the IP, UDP and BTH headers with what routers may change set to ones,
 * the extended headers, the payload and the pad.
 */
#ifndef NHCA_WIRE_ICRC_H
#define NHCA_WIRE_ICRC_H

#include <linux/types.h>

/**
 * nhca_icrc_start4 - CRC over the masked headers, IPv4 without options
 * nhca_icrc_start6 - CRC over the masked headers, IPv6 without extensions
 * @iph: the 20 (40) bytes of the IP header followed by the 8 of the UDP
 *       header followed by the 12 of the BTH, as they go on the wire
 *
 * IPv4: TOS, TTL and header checksum are masked; IPv6: traffic class, flow
 * label and hop limit; UDP: checksum; BTH: byte 4 (FECN, BECN and the six
 * reserved bits).
 * Return: running CRC for nhca_icrc_more().
 */
u32 nhca_icrc_start4(const void *iph);
u32 nhca_icrc_start6(const void *iph);

/**
 * nhca_icrc_more - go on over @len bytes of extended header, payload or pad
 */
u32 nhca_icrc_more(u32 crc, const void *p, unsigned int len);

/**
 * nhca_icrc_finish - the value as the four bytes behind the pad hold it
 */
__le32 nhca_icrc_finish(u32 crc);

/*
 * Module load: find the fastest CRC-32 that the kernel has.  Unload.
 */
int nhca_icrc_init(void);
void nhca_icrc_exit(void);

#endif /* NHCA_WIRE_ICRC_H */
