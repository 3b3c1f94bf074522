/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Endpoints on simulated hosts, the messages that they post, and what must hold of each: it completes
 * exactly once, with the right status and bytes, in order if it is a send, not before it is done,
 * within bounded time, and nothing is written to its memory afterwards.
 */
#ifndef MSGSIM_WORLD_H
#define MSGSIM_WORLD_H

#include <stdnoreturn.h>

#include "sim.h"

#define NODES		2048
#define JOB		7
#define SLOTS_MAX	64

enum op_kind { OP_WRITE, OP_READ, OP_SEND };

struct op {
	uint64_t id, seed, posted;
	enum op_kind kind;
	uint32_t from, to, epoch, index, length;
	int local, remote;		/* slots, or -1 */
	bool notify, closed;		/* closed: the peer's memory is not open to it */
	bool cancelled, done, told, dropped;
	int status;
};

/* A piece of a node's memory; of @frozen ones the bytes must stay what they are. */
struct slot {
	uint8_t *bytes;
	bool used, frozen;
	uint64_t seed;
};

/* How a node is with another one */
struct peer {
	struct nhcadv_msg_peer *msg;
	uint32_t epoch;			/* connections until now */
	uint32_t sends;			/* posted in this epoch */
	uint32_t expected;		/* index of the send that comes next */
	uint64_t *send_ids;
	uint32_t send_room;
	bool unreachable;
};

struct node {
	uint32_t number, num_devices, num_slots, slot_size;
	struct sim_device *devices[NHCADV_MSG_MAX_PATHS];
	struct nhcadv_msg_ep *ep;
	struct nhcadv_msg_mem *mem, *shut;	/* @shut: open to nobody else */
	uint8_t *memory, *shut_memory;
	struct slot slots[SLOTS_MAX];
	struct peer *peers;		/* by number of the node */
	uint64_t pause, least, most;	/* between polls */
	uint64_t packets;
	uint64_t asleep_until;
	uint32_t hold;			/* received sends that are kept, at most */
	struct held {
		void *data;
		uint64_t op;
	} held[64];
	uint32_t num_held;
	bool polling;
};

struct world_attr {
	uint32_t nodes, paths, lanes, packets, frames, queue, dead_ms, mtu, rcxts, slots, slot_size;
	uint32_t odd_queue;		/* of nodes with an odd number, if not 0 */
	uint32_t first_rcxts;		/* of node 0's devices, if not 0 */
	uint32_t old_ppm;		/* of a million adapters, those that do not know fences */
	bool real_clock;
	bool no_exchange;		/* nobody carries addresses when a peer is unreachable */
};

extern struct world {
	struct node *nodes;
	uint32_t num_nodes;
	struct op *ops;
	uint64_t num_ops, room_ops, open_ops;
	uint64_t completions;
	char failure[512];
	bool failed;
	uint64_t seed;
	bool no_exchange;
} world;

/* The first failure of a scenario counts. */
__attribute__((format(printf, 1, 2))) void fail(const char *format, ...);

void world_open(uint64_t seed, const struct world_attr *attr);
/* Checks what must hold at the end, and takes all apart. */
void world_close(void);

void node_connect(uint32_t a, uint32_t b);
void node_disconnect(uint32_t a, uint32_t b);
/* What the program does with UNREACHABLE: addresses go another way. */
void node_exchange(uint32_t a, uint32_t b);
void node_poll_once(struct node *node);
/* The node polls by itself while the simulation runs. */
void node_start(struct node *node);

/* Return: the operation, or NULL: not posted. */
struct op *post(enum op_kind kind, uint32_t from, uint32_t to, uint32_t length, bool notify);
struct op *post_closed(enum op_kind kind, uint32_t from, uint32_t to, uint32_t length);
void cancel(struct op *op);
struct op *op_find(uint64_t id);

void run_ms(uint64_t ms);
/* Until all operations are done, or @ms are over.  Return: whether they are. */
bool run_until_done(uint64_t ms);

/* ---- cases.c, history.c ---- */

struct scenario {
	const char *name;
	void (*run)(uint64_t seed);
};

extern const struct scenario cases[];
void history(uint64_t seed);

#endif /* MSGSIM_WORLD_H */
