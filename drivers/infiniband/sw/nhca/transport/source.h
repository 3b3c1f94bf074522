/* SPDX-License-Identifier: GPL-2.0 */
/* What a responder executes: a packet, or a step of the same-host path. */
#ifndef NHCA_SOURCE_H
#define NHCA_SOURCE_H

#include "../memory/memory.h"
#include "../net/net.h"

/**
 * struct nhca_source - a packet, or a step of the same-host path
 * @hdr:  headers; for a step of a connected QP only the fields that nhca_message_hdr() fills in
 * @ip:   datagram: IP header
 * @len:  bytes of payload
 * @rx:   the packet; NULL for a step
 * @from: source of the payload of a step
 * @err:  error of @from, or 0
 *
 * A step may stand for several packets.  A step cannot be deferred: where it would have to wait,
 * the requester sends packets instead.
 */
struct nhca_source {
	const struct nhca_hdr *hdr;
	const struct nhca_ip *ip;
	u32 len;
	struct nhca_rx *rx;
	struct nhca_iter *from;
	int err;
};

static inline struct nhca_source nhca_source_packet(struct nhca_rx *rx)
{
	return (struct nhca_source) {
		.hdr = &rx->hdr,
		.ip = &rx->ip,
		.len = rx->payload,
		.rx = rx,
	};
}

/* Copy the payload to @it.  Live section.  Return: 0, or as nhca_rx_copy() or nhca_iter_copy() */
static inline int nhca_source_copy(struct nhca_source *src, struct nhca_iter *it)
{
	if (src->rx)
		return nhca_rx_copy(src->rx, it);
	return nhca_iter_copy(it, src->from, src->len, &src->err);
}

#endif /* NHCA_SOURCE_H */
