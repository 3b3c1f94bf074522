// SPDX-License-Identifier: GPL-2.0
/* Nodes, messages and their checks; see world.h. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "world.h"

struct world world;

void fail(const char *format, ...)
{
	va_list args;
	int n;

	if (world.failed)
		return;
	world.failed = true;
	n = snprintf(world.failure, sizeof(world.failure), "at %.3f ms: ", sim.now / 1e6);
	va_start(args, format);
	vsnprintf(world.failure + n, sizeof(world.failure) - n, format, args);
	va_end(args);
}

/* ---- bytes ---- */

static uint8_t byte_of(uint64_t seed, uint64_t i)
{
	uint64_t z = (seed + (i >> 3)) * UINT64_C(0x9e3779b97f4a7c15);

	z ^= z >> 29;
	return z >> (i & 7) * 8;
}

static void fill(uint8_t *bytes, uint32_t length, uint64_t seed)
{
	uint32_t i;

	for (i = 0; i < length; i++)
		bytes[i] = byte_of(seed, i);
}

/* Return: index of the first wrong byte, or -1 */
int64_t differs(const uint8_t *bytes, uint32_t length, uint64_t seed)
{
	uint32_t i;

	for (i = 0; i < length; i++)
		if (bytes[i] != byte_of(seed, i))
			return i;
	return -1;
}

void freeze(const struct node *node, int number)
{
	struct slot *slot = (struct slot *)&node->slots[number];

	slot->used = false;
	slot->frozen = true;
	slot->seed = sim_random();
	fill(slot->bytes, node->slot_size, slot->seed);
}

static void check_frozen(const struct node *node, int number)
{
	const struct slot *slot = &node->slots[number];
	int64_t at;

	if (!slot->frozen)
		return;
	at = differs(slot->bytes, node->slot_size, slot->seed);
	if (at >= 0)
		fail("byte %ld of slot %d of node %u was written while no message used the slot",
		     (long)at, number, node->number);
}

int take_slot(struct node *node, uint64_t seed, uint32_t length)
{
	uint32_t first = sim_below(node->num_slots), i, number;

	for (i = 0; i < node->num_slots; i++) {
		number = (first + i) % node->num_slots;
		if (node->slots[number].used)
			continue;
		check_frozen(node, number);
		node->slots[number].used = true;
		node->slots[number].frozen = false;
		if (seed)
			fill(node->slots[number].bytes, length, seed);
		return number;
	}
	return -1;
}

/* ---- operations ---- */

struct op *op_find(uint64_t id)
{
	return id && id <= world.num_ops ? &world.ops[id - 1] : NULL;
}

static struct op *op_new(void)
{
	struct op *op;

	if (world.num_ops == world.room_ops) {
		world.room_ops = world.room_ops ? 2 * world.room_ops : 256;
		world.ops = realloc(world.ops, world.room_ops * sizeof(*op));
	}
	op = &world.ops[world.num_ops++];
	*op = (struct op){ .id = world.num_ops, .local = -1, .remote = -1 };
	return op;
}

static void op_undo(struct node *from, struct node *to, struct op *op)
{
	if (op->local >= 0)
		from->slots[op->local].used = false;
	if (op->remote >= 0)
		to->slots[op->remote].used = false;
	world.num_ops--;
}

static void send_bytes(const struct op *op, uint8_t *bytes)
{
	fill(bytes, op->length, op->seed);
	if (op->length >= sizeof(op->id))
		memcpy(bytes, &op->id, sizeof(op->id));
}

static int post_send(struct node *from, struct op *op)
{
	struct peer *peer = &from->peers[op->to];
	uint8_t bytes[NHCADV_MSG_MAX_SEND];
	int err;

	send_bytes(op, bytes);
	err = nhcadv_msg_send(peer->msg, bytes, op->length, op->id, 0);
	if (err)
		return err;
	op->index = peer->sends++;
	if (op->index >= peer->send_room) {
		peer->send_room = peer->send_room ? 2 * peer->send_room : 64;
		peer->send_ids = realloc(peer->send_ids, peer->send_room * sizeof(uint64_t));
	}
	peer->send_ids[op->index] = op->id;
	return 0;
}

/*
 * Write from buffers that are parts of a slot: of a few bytes, of up to a packet, or long.  The
 * list of the buffers is freed before the write completes.
 */
static int write_iov(struct nhcadv_msg_peer *peer, uint8_t *bytes, const struct op *op,
		     uint64_t remote, uint32_t flags)
{
	uint32_t most = sim_chance(300000) ? 16 : sim_chance(500000) ? 2000 : 65536;
	uint32_t count = 0, left = op->length, length;
	struct iovec *iov = calloc(op->length + 8, sizeof(*iov));
	int err;

	while (left) {
		length = sim_below(most) + !sim_chance(100000);
		length = length < left ? length : left;
		iov[count++] = (struct iovec){ .iov_base = bytes, .iov_len = length };
		bytes += length;
		left -= length;
		if (count == op->length + 7) {
			iov[count++] = (struct iovec){ .iov_base = bytes, .iov_len = left };
			left = 0;
		}
	}
	err = nhcadv_msg_write_iov(peer, iov, count, remote, op->id, flags);
	free(iov);
	return err;
}

static struct op *post_what(enum op_kind kind, uint32_t a, uint32_t b, uint32_t length, bool notify,
			    bool closed)
{
	struct node *from = &world.nodes[a], *to = &world.nodes[b];
	struct nhcadv_msg_peer *peer = from->peers[b].msg;
	struct op *op;
	uint64_t remote, offset;
	int err;

	if (!peer)
		return NULL;
	op = op_new();
	op->kind = kind;
	op->from = a;
	op->to = b;
	op->epoch = from->peers[b].epoch;
	op->length = length;
	op->seed = sim_random() | 1;
	op->posted = sim.now;
	op->notify = notify;
	op->closed = closed;
	if (kind == OP_SEND) {
		err = post_send(from, op);
	} else {
		op->local = take_slot(from, kind == OP_WRITE ? op->seed : sim_random(), length);
		if (!closed)
			op->remote = take_slot(to, kind == OP_READ ? op->seed : sim_random(), length);
		if (op->local < 0 || (!closed && op->remote < 0)) {
			op_undo(from, to, op);
			return NULL;
		}
		offset = op->local * (uint64_t)from->slot_size;
		remote = closed ? to->shut->pvo :
			 to->mem->pvo + op->remote * (uint64_t)to->slot_size;
		if (kind == OP_WRITE && world.buffers && sim_chance(world.buffers))
			err = write_iov(peer, from->slots[op->local].bytes, op, remote,
					notify ? NHCADV_MSG_NOTIFY : 0);
		else if (kind == OP_WRITE)
			err = nhcadv_msg_write(peer, from->mem, offset, remote, length, op->id,
					       notify ? NHCADV_MSG_NOTIFY : 0);
		else
			err = nhcadv_msg_read(peer, from->mem, offset, remote, length, op->id, 0);
	}
	if (err) {
		if (err != EAGAIN)
			fail("posting message %lu: %s", (unsigned long)op->id, strerror(err));
		op_undo(from, to, op);
		return NULL;
	}
	world.open_ops++;
	return op;
}

struct op *post(enum op_kind kind, uint32_t from, uint32_t to, uint32_t length, bool notify)
{
	return post_what(kind, from, to, length, notify, false);
}

struct op *post_closed(enum op_kind kind, uint32_t from, uint32_t to, uint32_t length)
{
	return post_what(kind, from, to, length, false, true);
}

void cancel(struct op *op)
{
	struct nhcadv_msg_peer *peer = world.nodes[op->from].peers[op->to].msg;
	int err;

	if (op->done || op->dropped || !peer)
		return;
	op->cancelled = true;
	err = nhcadv_msg_cancel(peer, op->id);
	if (err && err != EALREADY && err != ENOENT)
		fail("cancelling message %lu: %s", (unsigned long)op->id, strerror(err));
}

static void check_bytes(struct op *op)
{
	struct node *from = &world.nodes[op->from], *to = &world.nodes[op->to];
	const uint8_t *bytes;
	int64_t at;

	if (op->kind == OP_SEND)
		return;
	bytes = op->kind == OP_READ ? from->slots[op->local].bytes : to->slots[op->remote].bytes;
	at = differs(bytes, op->length, op->seed);
	if (at >= 0)
		fail("%s %lu is complete, but byte %ld of %u is wrong",
		     op->kind == OP_READ ? "read" : "write", (unsigned long)op->id, (long)at, op->length);
}

static void op_completed(struct node *node, const struct nhcadv_msg_completion *wc)
{
	static const enum op_kind kinds[] = { OP_WRITE, OP_READ, OP_SEND };
	struct op *op = op_find(wc->id);
	unsigned long id = wc->id;

	world.completions++;
	/* write_uncounted() posts messages with the id 0, which the scenario counts itself. */
	if (!wc->id)
		return;
	if (!op || op->from != node->number || op->kind != kinds[wc->kind]) {
		fail("a completion of message %lu, which does not exist", id);
		return;
	}
	if (op->done || op->dropped) {
		fail("message %lu completes %s", id, op->done ? "twice" : "after disconnect");
		return;
	}
	op->done = true;
	op->status = wc->status;
	world.open_ops--;
	if (wc->status == ECANCELED ? !op->cancelled : wc->status == EACCES ? !op->closed :
	    wc->status || (op->closed && op->length))
		fail("message %lu completes with status %d", id, wc->status);
	if (!wc->status) {
		if (wc->length != op->length)
			fail("message %lu completes with %lu of %u bytes", id,
			     (unsigned long)wc->length, op->length);
		if (!op->closed)
			check_bytes(op);
	}
	if (op->kind == OP_WRITE && op->local >= 0 &&
	    sim_zcopy_of(node->slots[op->local].bytes, op->length))
		fail("write %lu is complete, but packets still refer to its bytes", id);
	if (op->local >= 0)
		freeze(node, op->local);
	if (op->remote >= 0)
		freeze(&world.nodes[op->to], op->remote);
}

static void check_received(const struct op *op, const void *data)
{
	uint8_t bytes[NHCADV_MSG_MAX_SEND];

	send_bytes(op, bytes);
	if (memcmp(data, bytes, op->length))
		fail("send %lu has arrived with wrong bytes", (unsigned long)op->id);
}

static void release(struct node *node, uint32_t i)
{
	check_received(op_find(node->held[i].op), node->held[i].data);
	nhcadv_msg_release(node->ep, node->held[i].data);
	node->held[i] = node->held[--node->num_held];
}

static void op_received(struct node *node, const struct nhcadv_msg_completion *wc)
{
	struct op *op = op_find(wc->id);
	unsigned long id = wc->id;
	struct peer *there, *here;

	if (!op || op->to != node->number || op->kind != OP_SEND ||
	    wc->context != &world.nodes[op->from]) {
		fail("send %lu is received, which does not exist", id);
		nhcadv_msg_release(node->ep, wc->data);
		return;
	}
	here = &node->peers[op->from];
	there = &world.nodes[op->from].peers[op->to];
	if (op->told)
		fail("send %lu is received twice", id);
	if (op->epoch != here->epoch)
		fail("send %lu of an earlier connection is received", id);
	op->told = true;
	/* A cancelled send may never arrive: skip its index. */
	while (here->epoch == there->epoch && here->expected < op->index &&
	       op_find(there->send_ids[here->expected])->cancelled)
		here->expected++;
	if (here->expected != op->index)
		fail("send %u is received, but send %u is next", op->index, here->expected);
	here->expected = op->index + 1;
	if (wc->length != op->length)
		fail("send %lu is received with %lu bytes", id, (unsigned long)wc->length);
	else
		check_received(op, wc->data);
	node->held[node->num_held++] = (struct held){ .data = wc->data, .op = wc->id };
	while (node->num_held > node->hold || node->num_held == 64)
		release(node, sim_below(node->num_held));
}

static void op_written(struct node *node, const struct nhcadv_msg_completion *wc)
{
	struct op *op = op_find(wc->id);

	if (!op || op->to != node->number || op->kind != OP_WRITE || !op->notify || op->told ||
	    op->epoch != node->peers[op->from].epoch) {
		fail("an unexpected notice of write %lu", (unsigned long)wc->id);
		return;
	}
	op->told = true;
	if (wc->length != op->length)
		fail("the notice of write %lu has a wrong length", (unsigned long)wc->id);
	if (!op->done && !op->dropped)
		check_bytes(op);
}

/* ---- nodes ---- */

/*
 * Exchange the addresses again if the peer is still unreachable, because a channel may have been
 * created after the last exchange.
 */
static void exchange_event(void *arg, uint64_t number)
{
	struct node *node = arg;

	if (!node->peers[number].msg || !node->peers[number].unreachable)
		return;
	node_exchange(node->number, number);
	sim_at(sim.now + 200 * SIM_MS, exchange_event, node, number);
}

static void came(struct node *node, const struct nhcadv_msg_completion *wc)
{
	struct node *other = wc->context;

	switch (wc->kind) {
	case NHCADV_MSG_WRITE:
	case NHCADV_MSG_READ:
	case NHCADV_MSG_SEND:
		op_completed(node, wc);
		break;
	case NHCADV_MSG_MOVED:
		move_completed(node, wc);
		break;
	case NHCADV_MSG_RECEIVED:
		op_received(node, wc);
		break;
	case NHCADV_MSG_WRITTEN:
		op_written(node, wc);
		break;
	case NHCADV_MSG_UNREACHABLE:
	case NHCADV_MSG_REACHABLE:
		if (node->peers[other->number].unreachable == (wc->kind == NHCADV_MSG_UNREACHABLE))
			fail("node %u is reported twice as %sreachable", other->number,
			     wc->kind == NHCADV_MSG_UNREACHABLE ? "un" : "");
		node->peers[other->number].unreachable = wc->kind == NHCADV_MSG_UNREACHABLE;
		if (wc->kind == NHCADV_MSG_UNREACHABLE && !world.no_exchange)
			sim_at(sim.now + sim_below(20 * SIM_MS), exchange_event, node,
			       other->number);
		break;
	default:
		fail("completion of kind %u", wc->kind);
	}
}

static int poll_some(struct node *node)
{
	struct nhcadv_msg_completion wc[16];
	int i, n;

	n = nhcadv_msg_poll(node->ep, wc, 16);
	for (i = 0; i < n; i++)
		came(node, &wc[i]);
	return n;
}

void node_poll_once(struct node *node)
{
	while (poll_some(node))
		;
}

static void poll_event(void *arg, uint64_t number)
{
	struct node *node = arg;
	int n = 0;

	(void)number;
	if (sim.now >= node->asleep_until) {
		n = poll_some(node);
		if (node->num_held > node->hold && sim_chance(300000))
			release(node, sim_below(node->num_held));
	}
	if (n || node->packets != sim.packets)
		node->pause = node->least;
	else if (node->pause < node->most)
		node->pause *= 2;
	node->packets = sim.packets;
	sim_at(sim.now + node->pause / 2 + sim_below(node->pause), poll_event, node, 0);
}

void node_start(struct node *node)
{
	if (node->polling)
		return;
	node->polling = true;
	node->pause = node->least;
	sim_at(sim.now + sim_below(node->pause), poll_event, node, 0);
}

void address_of(uint32_t a, uint8_t *bytes, size_t *size)
{
	*size = NHCADV_MSG_MAX_ADDRESS;
	if (nhcadv_msg_ep_address(world.nodes[a].ep, bytes, size))
		fail("no address of node %u", a);
}

void node_connect(uint32_t a, uint32_t b)
{
	struct peer *peer = &world.nodes[a].peers[b];
	uint8_t bytes[NHCADV_MSG_MAX_ADDRESS];
	size_t size;

	address_of(b, bytes, &size);
	peer->msg = nhcadv_msg_connect(world.nodes[a].ep, bytes, size, &world.nodes[b]);
	if (!peer->msg)
		fail("node %u does not connect to %u: %s", a, b, strerror(errno));
	peer->epoch++;
	peer->sends = 0;
	peer->expected = 0;
	peer->unreachable = false;
}

void node_exchange(uint32_t a, uint32_t b)
{
	uint8_t bytes[NHCADV_MSG_MAX_ADDRESS];
	size_t size;

	address_of(a, bytes, &size);
	if (world.nodes[b].peers[a].msg)
		nhcadv_msg_reconnect(world.nodes[b].peers[a].msg, bytes, size);
	address_of(b, bytes, &size);
	if (world.nodes[a].peers[b].msg)
		nhcadv_msg_reconnect(world.nodes[a].peers[b].msg, bytes, size);
}

/*
 * When the peer has also disconnected, no byte of an abandoned write may be placed any more. So
 * from then on the bytes of its slot must not change.
 */
static void settle(struct op *op)
{
	if (op->remote >= 0 && !world.nodes[op->to].peers[op->from].msg) {
		freeze(&world.nodes[op->to], op->remote);
		op->remote = -1;
	}
}

void node_disconnect(uint32_t a, uint32_t b)
{
	struct node *node = &world.nodes[a];
	struct op *op;

	if (!node->peers[b].msg)
		return;
	moves_dropped(a, b);
	if (nhcadv_msg_disconnect(node->peers[b].msg))
		fail("node %u does not disconnect", a);
	node->peers[b].msg = NULL;
	for (op = world.ops; op < world.ops + world.num_ops; op++) {
		if (op->from == a && op->to == b && !op->done && !op->dropped) {
			op->dropped = true;
			world.open_ops--;
			if (op->kind == OP_WRITE && op->local >= 0 &&
			    sim_zcopy_of(node->slots[op->local].bytes, op->length))
				fail("write %lu is dropped, but packets still refer to its bytes",
				     (unsigned long)op->id);
			if (op->local >= 0)
				freeze(node, op->local);
			op->local = -1;
			settle(op);
		} else if (op->from == b && op->to == a && op->dropped) {
			settle(op);
		}
	}
}

/* ---- worlds ---- */

static void node_open(struct node *node, uint32_t number, const struct world_attr *attr)
{
	struct nhcadv_msg_path paths[NHCADV_MSG_MAX_PATHS] = {};
	struct nhcadv_msg_ep_attr ep = {
		.paths = paths, .num_paths = attr->paths, .job = JOB, .lanes = attr->lanes,
		.packets = attr->packets, .frames = attr->frames,
		.queue = number % 2 && attr->odd_queue ? attr->odd_queue : attr->queue,
		.dead_ms = attr->dead_ms,
	};
	const unsigned int all = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				 IBV_ACCESS_REMOTE_READ;
	uint32_t rcxts = !number && attr->first_rcxts ? attr->first_rcxts : attr->rcxts, i;

	node->number = number;
	node->num_devices = attr->paths;
	node->num_slots = attr->slots;
	node->slot_size = attr->slot_size;
	node->least = 4000;
	node->most = SIM_MS;
	for (i = 0; i < attr->paths; i++) {
		node->devices[i] = sim_device_new(number, attr->mtu, rcxts);
		node->devices[i]->fences = !sim_chance(attr->old_ppm);
		node->devices[i]->parts = !sim_chance(attr->old_parts_ppm);
		node->devices[i]->moves = !sim_chance(attr->old_moves_ppm) &&
			!(number < 3 && attr->no_moves[number] & 1 << i);
		if (number < 3 && attr->v4[number] & 1 << i)
			sim_device_set_v4(node->devices[i]);
		paths[i].context = &node->devices[i]->context;
	}
	node->peers = calloc(attr->nodes, sizeof(*node->peers));
	node->ep = nhcadv_msg_create_ep(&ep);
	if (!node->ep) {
		fprintf(stderr, "no endpoint: %s\n", strerror(errno));
		exit(2);
	}
	node->memory = calloc(attr->slots + 1, attr->slot_size);
	node->shut_memory = calloc(1, attr->slot_size);
	node->mem = nhcadv_msg_reg_mem(node->ep, node->memory,
				       (size_t)attr->slots * attr->slot_size, all);
	node->shut = nhcadv_msg_reg_mem(node->ep, node->shut_memory, attr->slot_size,
					IBV_ACCESS_LOCAL_WRITE);
	for (i = 0; i < attr->slots; i++)
		node->slots[i].bytes = node->memory + i * (size_t)attr->slot_size;
}

void world_open(uint64_t seed, const struct world_attr *attr)
{
	uint32_t i;

	sim_reset(seed);
	memset(&world, 0, sizeof(world));
	world.seed = seed;
	world.no_exchange = attr->no_exchange;
	world.buffers = attr->buffers;
	sim.real_clock = attr->real_clock;
	world.num_nodes = attr->nodes;
	world.nodes = calloc(attr->nodes, sizeof(*world.nodes));
	for (i = 0; i < attr->nodes; i++)
		node_open(&world.nodes[i], i, attr);
}

static void node_close(struct node *node)
{
	uint32_t i;

	while (node->num_held)
		release(node, 0);
	sim_forget(node);
	for (i = 0; i < node->num_slots; i++)
		check_frozen(node, i);
	for (i = 0; i < node->slot_size; i++)
		if (node->shut_memory[i])
			fail("memory without remote access was written");
	for (i = 0; i < node->num_devices; i++) {
		if (node->devices[i]->cq_overflows)
			fail("%u completions did not fit a CQ", node->devices[i]->cq_overflows);
		if (node->devices[i]->ring_overflows)
			fail("the send FIFO overflowed %u times", node->devices[i]->ring_overflows);
		if (node->devices[i]->channel_errors)
			fail("%u channels have failed", node->devices[i]->channel_errors);
	}
	if (nhcadv_msg_dereg_mem(node->mem) || nhcadv_msg_dereg_mem(node->shut))
		fail("deregistration fails after all peers are disconnected");
	if (nhcadv_msg_destroy_ep(node->ep))
		fail("nhcadv_msg_destroy_ep() fails");
	for (i = 0; i < node->num_devices; i++)
		if (node->devices[i]->free_count != node->devices[i]->num_rcxts)
			fail("%u rCxts were not released",
			     node->devices[i]->num_rcxts - node->devices[i]->free_count);
	free(node->memory);
	free(node->shut_memory);
}

void world_close(void)
{
	struct op *op;
	uint32_t i, n;

	/* Poll received messages that have not been polled yet. */
	for (i = 0; i < world.num_nodes; i++)
		node_poll_once(&world.nodes[i]);
	for (op = world.ops; op < world.ops + world.num_ops; op++)
		if ((op->kind == OP_SEND || op->notify) && op->done && !op->status && !op->told &&
		    op->epoch == world.nodes[op->to].peers[op->from].epoch &&
		    world.nodes[op->to].peers[op->from].msg)
			fail("message %lu is complete, but was never received",
			     (unsigned long)op->id);
	for (i = 0; i < world.num_nodes; i++)
		for (n = 0; n < world.num_nodes; n++)
			node_disconnect(i, n);
	for (i = 0; i < world.num_nodes; i++)
		node_close(&world.nodes[i]);
	for (i = 0; i < world.num_nodes; i++) {
		for (n = 0; n < world.num_nodes; n++)
			free(world.nodes[i].peers[n].send_ids);
		free(world.nodes[i].peers);
	}
	free(world.nodes);
	free(world.ops);
	world.ops = NULL;
	world.nodes = NULL;
}

void run_ms(uint64_t ms)
{
	sim_run(sim.now + ms * SIM_MS);
}

bool run_until_done(uint64_t ms)
{
	uint64_t end = sim.now + ms * SIM_MS;

	while (world.open_ops && sim.now < end && !world.failed)
		sim_run(sim_next_event() < end ? sim_next_event() : end);
	return !world.open_ops;
}
