/* SPDX-License-Identifier: GPL-2.0 */
/* A part of revocation.c: options, data of both sides, and control messages. */
#ifndef REVOCATION_H
#define REVOCATION_H

#include <getopt.h>

#include "peers.h"

#define SLOTS		4	/* outstanding messages of a lane */
#define AROUND		4096	/* bytes on each side of a window, by which it may shift */
#define TOP		0x80
#define CONTROL		0xffffffu
#define SHOWN		5

enum mode { MW1, MW2, SEND_INV, DEREG, REREG, MODES };

struct options {
	enum mode mode;
	uint32_t modes;		/* bit mask of the modes to test */
	bool writes, reads, early, all_cpus;
	uint32_t rounds, size, lanes;
};

enum state { OPEN, CLOSED, CHECKED, DONE };

enum kind { GO, READY, STOP };

struct message {
	uint32_t kind, lane, key, size, round;
	uint32_t fill;		/* GO, if the peer reads: the value of every byte */
	uint32_t completed;	/* READY: messages that completed in this round */
	uint64_t addr;
};

/* Counts of each side */
struct totals {
	uint64_t rounds, bytes, messages, middle, refused, torn;
	uint64_t wrong_status, seen, flushed;
	uint64_t spurious;	/* errors of the peer while the key was open */
};

struct lane {
	struct ibv_qp *qp;
	uint32_t peer_qpn, round;
	uint8_t *buf;
	/* members that only the owner uses */
	struct ibv_mr *mr;
	struct ibv_mw *mw;
	uint8_t *half, *start;
	uint32_t key, number;
	uint8_t fill, first;
	enum state state;
	/* memory of the next key, if the bind that closed the last key has opened the next one */
	uint8_t *next_half, *next_start;
	bool moving;		/* the owner need not wait until the first bytes arrive */
	uint64_t due;
	/* members that only the peer uses */
	struct message go;
	uint32_t posted, completed, flying, inv_at;
	bool error;
	struct ibv_mr *slots;
};

extern struct options opt;
extern struct lane *lanes;
extern uint64_t span;	/* a key is invalidated after a random time below this, ns */
extern struct ibv_qp *control, *spare;
extern struct ibv_cq *control_cq, *work_cq, *inv_cq;
extern uint8_t *inbox;
extern struct ibv_mr *inbox_mr;
extern struct totals ours, other;
extern size_t half_size;
extern uint32_t done_lanes, shown;
extern bool stopped;

/*
 * The provider of rdma_rxe needs a region even for a bind of no bytes, and reports an invalidation
 * with the kernel's flag instead of the verbs' flag.
 */
extern bool rxe;

void parse(int argc, char **argv);
uint32_t psn(bool of_owner, uint32_t lane, uint32_t round);
void violation(const char *what, uint32_t l, long at, uint8_t byte);
void post_inbox(uint32_t i);
void say(const struct message *m);
bool next_message(struct message *m);
int verdict(double seconds);

#endif /* REVOCATION_H */
