/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Private to net/: ICRC, UDP checksum and tail of a packet.  The tail of a packet is its pad and
 * ICRC, or its pad and the four bytes in place of the ICRC.
 */
#ifndef NHCA_NET_SUMS_H
#define NHCA_NET_SUMS_H

#include <linux/string.h>
#include <net/checksum.h>

#include "../wire/bth.h"
#include "../wire/icrc.h"

/* Return: the four bytes that take the place of a missing ICRC, in wire order. */
static inline __le32 nhca_no_icrc_tail(const struct nhca_hdr *h)
{
	return h->caps & NHCA_CAP_ACKS ? (__force __le32)cpu_to_be32(h->acks) : h->mark;
}

/* Write the tail of a packet to @p. @crc: running ICRC over all bytes before the tail. */
static inline void nhca_tail_encode(const struct nhca_hdr *h, u32 crc, u8 *p)
{
	__le32 icrc = nhca_no_icrc_tail(h);

	memset(p, 0, h->pad);
	if (!(h->caps & NHCA_CAP_NO_ICRC))
		icrc = nhca_icrc_finish(nhca_icrc_more(crc, p, h->pad));
	memcpy(p + h->pad, &icrc, sizeof(icrc));
}

/**
 * struct nhca_sums - ICRC and UDP checksum of a packet while it is built
 * @crc:  running ICRC
 * @csum: running UDP checksum over the first @off bytes after the UDP header
 * @off:  number of bytes so far
 * @icrc: the packet gets an ICRC
 * @sum:  the checksum is computed here, in software
 */
struct nhca_sums {
	u32 crc;
	__wsum csum;
	u32 off;
	bool icrc;
	bool sum;
};

/**
 * nhca_sums_more - continue ICRC and checksum over further bytes of the payload
 * @sums: ICRC and checksum
 * @p:    the bytes
 * @len:  number of bytes
 * Context: any.
 */
static inline void nhca_sums_more(struct nhca_sums *sums, const void *p, u32 len)
{
	if (sums->icrc)
		sums->crc = nhca_icrc_more(sums->crc, p, len);
	if (sums->sum)
		sums->csum = csum_block_add(sums->csum, csum_partial(p, len, 0), sums->off);
	sums->off += len;
}

/**
 * nhca_sums_tail - write the tail of a packet, and add the tail to the checksum
 * @sums: ICRC and checksum over all bytes before the tail
 * @h:    header of the packet
 * @p:    room for @h->pad + NHCA_ICRC_LEN bytes
 * Context: any.
 */
static inline void nhca_sums_tail(struct nhca_sums *sums, const struct nhca_hdr *h, u8 *p)
{
	u32 len = h->pad + NHCA_ICRC_LEN;

	nhca_tail_encode(h, sums->crc, p);
	if (sums->sum)
		sums->csum = csum_block_add(sums->csum, csum_partial(p, len, 0), sums->off);
}

#endif /* NHCA_NET_SUMS_H */
