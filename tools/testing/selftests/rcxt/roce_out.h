/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Sends RoCEv2 packets from a UDP socket at a high rate: many in one system call, or as UDP GSO
 * batches.  The packets have a correct ICRC, with or without a UDP checksum.  If the variable
 * no_icrc is true, they have a mark in the place of the ICRC, and a UDP checksum
 * (Documentation/wire.rst). Call room() and post() for each packet, and flush() at the end.
 */
#ifndef ROCE_OUT_H
#define ROCE_OUT_H

#include <arpa/inet.h>
#include <endian.h>
#include <err.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/udp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PORT		"4791"
#define BTH		12
#define ICRC		4
#define MAX_PACKET	1364	/* BTH to pad; fits into any MTU of 1500 or more */
#define MESSAGES	32
#define MAX_JOINED	40

extern bool no_icrc;		/* packets have no ICRC */
extern uint32_t mark;		/* value in the place of the ICRC */
extern bool summed;		/* a UDP checksum beside the ICRC, so that GRO may merge packets */
extern uint32_t joined;	/* packets of a GSO batch, at most MAX_JOINED; needs no_icrc */
extern struct sockaddr_storage peer;

void out_open(const char *address, uint16_t port);
void flush(void);
uint8_t *room(void);
void post(uint8_t *packet, size_t size);

#endif /* ROCE_OUT_H */
