/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Endpoints on simulated hosts, the messages that they post, and the checks of each message.  A
 * message must complete exactly once, within bounded time, with the right status and bytes.  A
 * write must not complete while packets refer to its bytes.  Sends must arrive in order.  Nothing
 * may be written to the memory of a message after its completion.
 */
#ifndef MSGSIM_WORLD_H
#define MSGSIM_WORLD_H

#include <stdnoreturn.h>

#include "sim.h"

#define NODES		2048
#define JOB		7
#define SLOTS_MAX	64

enum op_kind { OP_WRITE, OP_READ, OP_SEND };

/**
 * struct op - a message that was posted
 * @id:     from 1 on
 * @seed:   seed of its bytes
 * @posted: time of the post
 * @from:   number of the node that has posted it
 * @to:     number of the other node
 * @epoch:  peer.epoch of the node that posted it
 * @index:  number of a send in its epoch
 * @local:  slot at @from, or -1
 * @remote: slot at @to, or -1
 * @notify: NHCADV_MSG_NOTIFY
 * @closed: memory protection of the peer must refuse it
 * @cancelled: cancel() was called
 * @done:   it has completed, with @status
 * @told:   the program of the peer got the completion of the send or of the notice
 * @dropped: its peer was disconnected before it completed
 */
struct op {
	uint64_t id, seed, posted;
	enum op_kind kind;
	uint32_t from, to, epoch, index, length;
	int local, remote;
	bool notify, closed;
	bool cancelled, done, told, dropped;
	int status;
};

/* A part of the memory of a node.  The bytes of a frozen slot must not change. */
struct slot {
	uint8_t *bytes;
	bool used, frozen;
	uint64_t seed;			/* seed of the bytes of a frozen slot */
};

/* State of the connection of a node to another node */
struct peer {
	struct nhcadv_msg_peer *msg;	/* NULL: not connected */
	uint32_t epoch;			/* number of connections so far */
	uint32_t sends;			/* sends posted in this epoch */
	uint32_t expected;		/* index of the next send to receive */
	uint64_t *send_ids;		/* ids of the sends of this epoch, by index */
	uint32_t send_room;
	bool unreachable;
};

struct node {
	uint32_t number, num_devices, num_slots, slot_size;
	struct sim_device *devices[NHCADV_MSG_MAX_PATHS];
	struct nhcadv_msg_ep *ep;
	struct nhcadv_msg_mem *mem, *shut;	/* @shut: peers have no access */
	uint8_t *memory, *shut_memory;
	struct slot slots[SLOTS_MAX];
	struct peer *peers;		/* by number of the other node */
	uint64_t pause, least, most;	/* time between polls: current, minimum, maximum */
	uint64_t packets;		/* sim.packets at the last poll */
	uint64_t asleep_until;		/* the node does not poll before this time */
	uint32_t hold;			/* maximum number of unreleased received sends */
	struct held {
		void *data;
		uint64_t op;
	} held[64];
	uint32_t num_held;
	bool polling;
};

struct world_attr {
	uint32_t nodes, paths, lanes, packets, frames, queue, dead_ms, mtu, rcxts, slots, slot_size;
	uint32_t odd_queue;		/* if not 0: queue of nodes with an odd number */
	uint32_t first_rcxts;		/* if not 0: rcxts of the devices of node 0 */
	uint32_t old_ppm;		/* devices per million that do not support fences */
	uint32_t old_moves_ppm;		/* devices per million that do not support moves */
	uint32_t old_parts_ppm;		/* devices per million that do not support half-send writes */
	uint8_t v4[3], no_moves[3];	/* nodes 0 to 2: masks of devices with an IPv4 address, and
					 * of devices that do not support moves
					 */
	bool real_clock;		/* sim.real_clock */
	bool no_exchange;		/* no node_exchange() after NHCADV_MSG_UNREACHABLE */
	uint32_t buffers;		/* writes per million that are nhcadv_msg_write_iov() */
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
	uint32_t buffers;
} world;

/** fail - record a failure of the scenario; only the first one is kept */
__attribute__((format(printf, 1, 2))) void fail(const char *format, ...);

/** world_open - reset the simulation, and create the nodes */
void world_open(uint64_t seed, const struct world_attr *attr);
/** world_close - disconnect and free everything, with the final checks */
void world_close(void);

/** node_connect - let node @a connect to node @b, but not the other way round */
void node_connect(uint32_t a, uint32_t b);
void node_disconnect(uint32_t a, uint32_t b);
/** node_exchange - exchange addresses, as programs do after NHCADV_MSG_UNREACHABLE */
void node_exchange(uint32_t a, uint32_t b);
/** node_poll_once - poll until there are no more completions */
void node_poll_once(struct node *node);
/** node_start - let the node poll from now on while the simulation runs */
void node_start(struct node *node);

/**
 * post - post a message
 * Return: the operation; NULL: there was no room, or @from is not connected to @to
 */
struct op *post(enum op_kind kind, uint32_t from, uint32_t to, uint32_t length, bool notify);
/** post_closed - like post(), for memory of @to that refuses the access of peers */
struct op *post_closed(enum op_kind kind, uint32_t from, uint32_t to, uint32_t length);
/** cancel - cancel a message; does nothing after its completion */
void cancel(struct op *op);
struct op *op_find(uint64_t id);

/** run_ms - run the simulation for @ms milliseconds */
void run_ms(uint64_t ms);
/** run_until_done - run up to @ms milliseconds; Return: true if all messages are done */
bool run_until_done(uint64_t ms);

/**
 * take_slot - occupy a free slot, and fill it with bytes of @seed, unless @seed is 0
 * Return: its number, or -1
 */
int take_slot(struct node *node, uint64_t seed, uint32_t length);
/** freeze - free a slot, and change its bytes; from now on any access to the slot is an error */
void freeze(const struct node *node, int number);
/** differs - Return: index of the first byte that is not that of @seed, or -1 */
int64_t differs(const uint8_t *bytes, uint32_t length, uint64_t seed);
void address_of(uint32_t a, uint8_t *bytes, size_t *size);

struct scenario {
	const char *name;
	void (*run)(uint64_t seed);
};

/* ---- moves.c ---- */

/**
 * moves_dropped - @a has disconnected from @b
 * Moves of manager @a from @b get no completion, and its moves to @b may be cancelled.
 */
void moves_dropped(uint32_t a, uint32_t b);
/** move_completed - check NHCADV_MSG_MOVED */
void move_completed(struct node *node, const struct nhcadv_msg_completion *wc);
extern const struct scenario move_cases[];
/** moves_history - run a random history of moves, writes and reads between three nodes */
void moves_history(uint64_t seed);

/* ---- errors.c, grants.c, buffers.c ---- */

extern const struct scenario error_cases[];
extern const struct scenario grant_cases[];
extern const struct scenario buffer_cases[];

/* ---- cases.c, history.c ---- */

extern const struct scenario cases[];
void history(uint64_t seed);
struct sim_device *any_device(void);
void mess_link(struct sim_link *link);
void mess_links(void);
/** heal - remove all faults */
void heal(void);
/** reconnect - let both nodes disconnect and connect again */
void reconnect(uint32_t a, uint32_t b);
void connect_event(void *arg, uint64_t number);
/** set_mtu - set a random MTU */
void set_mtu(struct sim_device *dev);

#endif /* MSGSIM_WORLD_H */
