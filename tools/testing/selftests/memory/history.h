/* SPDX-License-Identifier: GPL-2.0 */
/* A part of history.c: the commands and replies between owner and peer, and the peer. */
#ifndef HISTORY_H
#define HISTORY_H

#include <getopt.h>
#include <signal.h>
#include <sys/wait.h>

#include "peers.h"
#include "proc.h"

#define SIZE	(64 * 1024)	/* bytes of an owner's memory */

enum kind { REG, DEREG, REREG, ALLOC, FREE, BIND, INV, SEND_INV, WRITE, READ, ADD, KINDS,
	    CONNECT, BYE };

struct command {
	uint32_t kind, key, len, qpn, psn, peer_psn;
	uint64_t addr, seed;
};

struct reply {
	uint32_t status, unused;
	uint64_t hash;		/* READ: of its bytes; FETCH_ADD: the returned value */
};

void pattern(uint8_t *at, uint64_t len, uint64_t seed);
uint64_t hash(const uint8_t *at, uint64_t len);
int serve(void);

#endif /* HISTORY_H */
