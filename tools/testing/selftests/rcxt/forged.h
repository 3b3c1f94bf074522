/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Packets of channels that a program builds itself, byte by byte (Documentation/rcxt.rst), and sends
 * from a UDP socket.  They have a UDP checksum instead of an ICRC.
 */
#ifndef FORGED_H
#define FORGED_H

#include "channels.h"

#define FORGED_BTH	12
#define FORGED_RXETH	64
#define FORGED_ICRC	4		/* place of the ICRC */
#define FORGED_MAX	256		/* bytes of a packet, at most */

/* What a packet says; rCxts are those of nhcadv_acquire_rcxts() */
struct forged {
	uint8_t opcode, flags;		/* flags: t, a and ntf of the RXETH */
	const struct address *to, *from;
	uint64_t to_rcxt, from_rcxt, pvo;
	uint32_t tid, total, length, segment;
	uint32_t more;			/* bytes after the RXETH: further headers and payload */
};

void be32(uint8_t *p, uint32_t v);
void be64(uint8_t *p, uint64_t v);

/* Write a packet of channels of @job to @p; the bytes after the RXETH are 0.  Return: its bytes. */
uint32_t forged_packet(uint8_t *p, const struct forged *f);

/* Return: a UDP socket for packets to the device at @gid, an IPv4-mapped address. */
int forged_socket(const union ibv_gid *gid);

/* Send a packet of forged_packet(), or wait a moment if the socket has no room. */
void forged_send(int fd, const uint8_t *p, uint32_t size);

#endif /* FORGED_H */
