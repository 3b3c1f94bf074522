// SPDX-License-Identifier: GPL-2.0
/*
 * Moves: a manager moves bytes between slots of two other nodes.  Each move must complete exactly
 * once, with the right bytes at the target.  After its completion no byte is written at the target,
 * and none is read at the source.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "moves.h"

#define HEAL_MS		30000
#define MOVES		4096

static struct move moves[MOVES];
static uint32_t num_moves, open_moves;
/* Number of the node that allows no target when it is the source; UINT32_MAX: none */
static uint32_t forbids;
/* No pair of paths can work, although all nodes have devices that support moves. */
bool moves_impossible;

/* Id of the first move: ids of other messages are lower. */
#define MOVE_ID	(UINT64_C(1) << 40)

/* A source must not read a slot that no move uses. */
static void check_read(const uint8_t *bytes, uint32_t length)
{
	struct node *node;
	uint32_t i, s;

	(void)length;
	for (i = 0; i < world.num_nodes; i++) {
		node = &world.nodes[i];
		for (s = 0; s < node->num_slots; s++)
			if (bytes >= node->slots[s].bytes &&
			    bytes < node->slots[s].bytes + node->slot_size &&
			    node->slots[s].frozen)
				fail("a source reads slot %u of node %u after the move", s, i);
	}
}

static void begin(void)
{
	num_moves = 0;
	open_moves = 0;
	forbids = UINT32_MAX;
	moves_impossible = false;
	sim.reads = check_read;
}

void allow_all(void)
{
	uint8_t bytes[NHCADV_MSG_MAX_ADDRESS];
	uint32_t a, b;
	size_t size;

	for (a = 0; a < world.num_nodes; a++)
		for (b = 0; b < world.num_nodes; b++) {
			address_of(b, bytes, &size);
			if (a != forbids)
				nhcadv_msg_allow_target(world.nodes[a].ep, bytes, size);
		}
}

static bool supported(uint32_t number)
{
	const struct node *node = &world.nodes[number];
	uint32_t i;

	for (i = 0; i < node->num_devices; i++)
		if (!node->devices[i]->moves || !node->devices[i]->fences)
			return false;
	return true;
}

struct move *post_move(uint32_t manager, uint32_t from, uint32_t to, uint32_t length,
			      bool closed)
{
	struct node *a = &world.nodes[from], *b = &world.nodes[to], *m = &world.nodes[manager];
	struct move *v = &moves[num_moves];
	uint64_t to_pvo;
	int err;

	if (num_moves == MOVES || !m->peers[from].msg || !m->peers[to].msg)
		return NULL;
	*v = (struct move){
		.manager = manager, .from = from, .to = to, .length = length,
		.seed = sim_random() | 1, .closed = closed, .source = -1, .target = -1,
	};
	v->source = take_slot(a, v->seed, length);
	if (v->source < 0)
		return NULL;
	if (!closed) {
		v->target = take_slot(b, 0, length);
		if (v->target < 0) {
			freeze(a, v->source);
			return NULL;
		}
		memset(b->slots[v->target].bytes, 0, b->slot_size);
	}
	to_pvo = closed ? b->shut->pvo : b->mem->pvo + v->target * (uint64_t)b->slot_size;
	err = nhcadv_msg_move(m->ep, m->peers[from].msg,
			      a->mem->pvo + v->source * (uint64_t)a->slot_size, m->peers[to].msg,
			      to_pvo, length, MOVE_ID + num_moves, 0);
	if (err) {
		freeze(a, v->source);
		if (v->target >= 0)
			freeze(b, v->target);
		if (err != EOPNOTSUPP || supported(manager))
			fail("nhcadv_msg_move() fails");
		return NULL;
	}
	num_moves++;
	open_moves++;
	return v;
}

void cancel_move(struct move *v)
{
	struct peer *peer = &world.nodes[v->manager].peers[v->from];

	if (v->done || v->dropped || !peer->msg)
		return;
	/* ENOENT: the move has failed, and completes when source and target are fenced */
	if (!nhcadv_msg_cancel(peer->msg, MOVE_ID + (v - moves)))
		v->cancelled = true;
}

static void check_status(const struct move *v, int status)
{
	bool all = supported(v->manager) && supported(v->from) && supported(v->to);

	switch (status) {
	case 0:
		if (v->closed && v->length)
			fail("a move to closed memory completes");
		if (!v->closed && differs(world.nodes[v->to].slots[v->target].bytes, v->length,
					  v->seed) >= 0)
			fail("a move of %u bytes has placed wrong bytes", v->length);
		break;
	case ECANCELED:
		if (!v->cancelled)
			fail("a move was cancelled by nobody");
		break;
	case EACCES:
		if (!v->closed)
			fail("memory protection refuses a move");
		break;
	case EPERM:
		if (v->from != forbids)
			fail("a source refuses an allowed target");
		break;
	case EOPNOTSUPP:
		if (all && !moves_impossible)
			fail("a move is not supported");
		break;
	default:
		fail("a move completes with %s", strerror(status));
	}
}

void move_completed(struct node *node, const struct nhcadv_msg_completion *wc)
{
	struct move *v = &moves[(wc->id - MOVE_ID) % MOVES];

	if (wc->id - MOVE_ID >= num_moves || v->done || v->dropped || v->manager != node->number) {
		fail("completion %lx of no move, or the second one", (unsigned long)wc->id);
		return;
	}
	v->done = true;
	v->status = wc->status;
	open_moves--;
	world.completions++;
	check_status(v, wc->status);
	freeze(&world.nodes[v->from], v->source);
	if (v->target >= 0 && (!v->lost || v->refuses || !v->status)) {
		freeze(&world.nodes[v->to], v->target);
		v->target = -1;
	}
}

void moves_dropped(uint32_t a, uint32_t b)
{
	struct move *v;

	for (v = moves; v < moves + num_moves; v++) {
		if (v->to == a && v->manager == b) {
			v->refuses = true;
			if (v->done && v->target >= 0)
				freeze(&world.nodes[a], v->target);
			if (v->done)
				v->target = -1;
		}
		if (v->done || v->dropped || v->manager != a)
			continue;
		if (v->from == b) {
			v->dropped = true;
			open_moves--;
		} else if (v->to == b) {
			v->cancelled = true;
			v->lost = true;
		}
	}
}

bool run_moves(uint64_t ms)
{
	uint64_t end = sim.now + ms * SIM_MS;

	while ((open_moves || world.open_ops) && sim.now < end && !world.failed)
		sim_run(sim_next_event() < end ? sim_next_event() : end);
	return !open_moves && !world.open_ops;
}

/* ---- random histories ---- */

static uint32_t length_of(uint32_t most)
{
	if (sim_chance(100000))
		return 0;
	return sim_below(sim_chance(500000) && most > 3000 ? 3000 : most + 1);
}

static void some_moves(void)
{
	uint32_t m = sim_below(world.num_nodes), a = sim_below(world.num_nodes), n, b;
	struct move *v;

	for (n = 1 + sim_below(sim_chance(200000) ? 12 : 4); n; n--) {
		b = sim_below(world.num_nodes);
		if (m == a || m == b)
			continue;
		v = post_move(m, a, b, length_of(world.nodes[a].slot_size), sim_chance(20000));
		if (v && sim_chance(50000))
			cancel_move(v);
	}
}

static void something(bool calm)
{
	uint32_t what = sim_below(calm ? 60 : 100), a, b;
	struct sim_device *dev = any_device();

	a = sim_below(world.num_nodes);
	b = sim_below(world.num_nodes);
	if (what < 45)
		some_moves();
	else if (what < 55 && a != b)
		post(sim_chance(500000) ? OP_WRITE : OP_READ, a, b,
		     length_of(world.nodes[a].slot_size), false);
	else if (what < 60 && num_moves)
		cancel_move(&moves[sim_below(num_moves)]);
	else if (what < 68)
		mess_link(sim_link(dev, any_device()));
	else if (what < 72)
		dev->up = !dev->up;
	else if (what < 75)
		set_mtu(dev);
	else if (what < 77)
		sim_recover(dev);
	else if (what < 82 && a != b)
		reconnect(a, b);
	else if (what < 88)
		world.nodes[a].asleep_until = sim.now + sim_below(20 * SIM_MS);
	else if (what < 95)
		sim_link(dev, any_device())->black = sim_chance(500000);
}

void moves_history(uint64_t seed)
{
	struct world_attr attr;
	uint32_t a, b, steps, i;
	bool calm;

	sim.rng = seed;
	attr = (struct world_attr){
		.nodes = 3, .paths = 1 + sim_below(3),
		.lanes = 2 + sim_below(sim_chance(300000) ? 24 : 6), .packets = 1 + sim_below(8),
		.frames = 64 << sim_below(4), .queue = 16, .dead_ms = 5 + sim_below(60),
		.old_moves_ppm = sim_chance(200000) ? 300000 : 0, .mtu = 1500, .rcxts = 512,
		.slots = 16, .slot_size = 1 << (10 + sim_below(6)),
	};
	world_open(seed, &attr);
	begin();
	for (i = 0; i < world.num_nodes; i++) {
		world.nodes[i].least = 1000 + sim_below(20000);
		node_start(&world.nodes[i]);
	}
	allow_all();
	calm = sim_chance(100000);
	if (!calm)
		mess_links();
	for (a = 0; a < world.num_nodes; a++)
		for (b = 0; b < world.num_nodes; b++)
			if (a != b)
				sim_at(sim.now + sim_below(SIM_MS), connect_event,
				       &world.nodes[a], b);
	for (steps = 5 + sim_below(60); steps && !world.failed; steps--) {
		something(calm);
		sim_run(sim.now + sim_below(sim_chance(100000) ? 40 * SIM_MS : SIM_MS));
	}
	heal();
	if (!run_moves(HEAL_MS) && !world.failed) {
		for (i = 0; i < num_moves; i++)
			if (!moves[i].done && !moves[i].dropped)
				break;
		fail("%u moves and %lu messages are not done %u ms after the last fault; move %u of %u, node %u to %u by %u, %u bytes",
		     open_moves, (unsigned long)world.open_ops, HEAL_MS, i, num_moves,
		     moves[i].from, moves[i].to, moves[i].manager, moves[i].length);
	}
	world_close();
	sim.reads = NULL;
}

/* ---- scenarios ---- */

struct world_attr three_nodes(uint32_t paths, uint32_t old_moves_ppm)
{
	return (struct world_attr){
		.nodes = 3, .paths = paths, .lanes = 8, .packets = 16, .frames = 256, .queue = 16,
		.dead_ms = 40, .mtu = 1500, .rcxts = 512, .slots = 16, .slot_size = 1 << 18,
		.old_moves_ppm = old_moves_ppm,
	};
}

void open_nodes(const struct world_attr *attr, uint64_t seed)
{
	uint32_t a, b;

	world_open(seed, attr);
	begin();
	for (a = 0; a < 3; a++)
		node_start(&world.nodes[a]);
	for (a = 0; a < 3; a++)
		for (b = 0; b < 3; b++)
			if (a != b)
				node_connect(a, b);
	run_ms(20);
}

static void open_three(uint64_t seed, uint32_t paths, uint32_t old_moves_ppm)
{
	struct world_attr attr = three_nodes(paths, old_moves_ppm);

	open_nodes(&attr, seed);
}

void finish(uint64_t ms)
{
	if (!run_moves(ms))
		fail("%u moves are not done after %lu ms", open_moves, (unsigned long)ms);
	world_close();
	sim.reads = NULL;
}

static void lossy(uint64_t seed)
{
	uint32_t a, b, i;

	open_three(seed, 1, 0);
	allow_all();
	for (a = 0; a < sim.num_devices; a++)
		for (b = 0; b < sim.num_devices; b++)
			sim_link(sim.devices[a], sim.devices[b])->loss_ppm = 50000;
	for (i = 0; i < 200; i++) {
		post_move(2, 0, 1, i == 3 ? 1 << 18 : i % 7 ? i * 97 : 0, false);
		run_moves(2000);
	}
	finish(5000);
}

/* The programs of source and target do not poll during the moves. */
static void asleep(uint64_t seed)
{
	uint32_t i;

	open_three(seed, 1, 0);
	allow_all();
	post_move(2, 0, 1, 1000, false);
	run_moves(1000);
	sim_link(world.nodes[0].devices[0], world.nodes[1].devices[0])->loss_ppm = 50000;
	world.nodes[0].asleep_until = UINT64_MAX;
	world.nodes[1].asleep_until = UINT64_MAX;
	for (i = 0; i < 12; i++)
		post_move(2, 0, 1, 20000 * i, false);
	if (!run_moves(5000))
		fail("moves wait for sleeping programs");
	world.nodes[0].asleep_until = 0;
	world.nodes[1].asleep_until = 0;
	finish(1000);
}

static void refused(uint64_t seed)
{
	struct move *v;

	open_three(seed, 1, 0);
	forbids = 0;
	allow_all();
	v = post_move(2, 0, 1, 5000, false);
	run_moves(2000);
	if (v && (!v->done || v->status != EPERM))
		fail("a forbidden move completes with %d", v->status);
	finish(1000);
}

/* A manager without support cannot post moves. */
static void unsupported(uint64_t seed)
{
	open_three(seed, 1, 1000000);
	if (nhcadv_msg_move(world.nodes[2].ep, world.nodes[2].peers[0].msg, 0,
			    world.nodes[2].peers[1].msg, 0, 1, 1, 0) != EOPNOTSUPP)
		fail("a move without support can be posted");
	finish(100);
}

/* In the middle of moves a path of the target fails, and later a path of the source. */
static void path_dies(uint64_t seed)
{
	uint32_t i;

	open_three(seed, 2, 0);
	allow_all();
	for (i = 0; i < 10; i++)
		post_move(2, 0, 1, 1 << 17, false);
	sim_run(sim.now + SIM_MS / 4);
	world.nodes[1].devices[0]->up = false;
	if (!run_moves(3000))
		fail("moves wait for a dead path");
	for (i = 0; i < 10; i++)
		post_move(2, 0, 1, 1 << 17, false);
	sim_run(sim.now + SIM_MS / 4);
	world.nodes[1].devices[0]->up = true;
	world.nodes[0].devices[1]->up = false;
	if (!run_moves(3000))
		fail("moves wait for a dead path of the source");
	world.nodes[0].devices[1]->up = true;
	finish(3000);
}

static void recovered(uint64_t seed)
{
	uint32_t i, n;

	open_three(seed, 1, 0);
	allow_all();
	for (n = 0; n < 3; n++) {
		for (i = 0; i < 5; i++)
			post_move(2, 0, 1, 1 << 17, false);
		sim_run(sim.now + SIM_MS / 4);
		sim_recover(world.nodes[n].devices[0]);
		if (!run_moves(5000))
			fail("moves do not survive a recovery of node %u", n);
	}
	finish(3000);
}

/* ---- targets ---- */

/* A source must be able to revoke a target to which it has no route any more. */
static void revoked(uint64_t seed)
{
	uint8_t bytes[NHCADV_MSG_MAX_ADDRESS];
	struct sim_link *link;
	struct move *v;
	size_t size;

	open_three(seed, 1, 0);
	allow_all();
	link = sim_link(world.nodes[0].devices[0], world.nodes[1].devices[0]);
	link->no_route = true;
	address_of(1, bytes, &size);
	if (nhcadv_msg_revoke_target(world.nodes[0].ep, bytes, size))
		fail("a target without a route cannot be revoked");
	forbids = 0;
	v = post_move(2, 0, 1, 5000, false);
	run_moves(2000);
	if (v && (!v->done || v->status != EPERM))
		fail("a move to a revoked target completes with %d", v->status);
	link->no_route = false;
	finish(1000);
}

/* A target without a route costs few address handles. Moves to it work when a route exists. */
static void no_route(uint64_t seed)
{
	uint8_t bytes[NHCADV_MSG_MAX_ADDRESS];
	struct sim_link *link;
	uint64_t calls;
	size_t size;

	open_three(seed, 1, 0);
	link = sim_link(world.nodes[0].devices[0], world.nodes[1].devices[0]);
	link->no_route = true;
	allow_all();
	run_ms(100);
	calls = sim.ah_calls;
	run_ms(1000);
	if (sim.ah_calls - calls > 10)
		fail("%lu address handles in a second for a target without a route",
		     (unsigned long)(sim.ah_calls - calls));
	/* An IPv6 device cannot reach an IPv4 address: ::ffff:10.0.0.1 */
	address_of(1, bytes, &size);
	memset(bytes + 24, 0, 16);
	bytes[34] = 0xff;
	bytes[35] = 0xff;
	bytes[36] = 10;
	bytes[39] = 1;
	calls = sim.ah_calls;
	if (nhcadv_msg_allow_target(world.nodes[1].ep, bytes, size))
		fail("an IPv4 address is not allowed");
	if (sim.ah_calls != calls)
		fail("an IPv6 device tries an IPv4 address");
	link->no_route = false;
	run_ms(2000);
	post_move(2, 0, 1, 5000, false);
	finish(1000);
}

/* ---- rails ---- */

static void split_rails(void)
{
	struct sim_link *link;
	uint32_t a, b;

	for (a = 0; a < sim.num_devices; a++)
		for (b = 0; b < sim.num_devices; b++) {
			link = sim_link(sim.devices[a], sim.devices[b]);
			link->no_route = sim.devices[a]->index % 2 != sim.devices[b]->index % 2;
			link->black = link->no_route;
		}
}

/*
 * The first devices of all nodes are on one network (rail), the second devices on another. A move
 * must use two devices of the same rail.
 */
static void rails(uint64_t seed)
{
	uint32_t i;

	open_three(seed, 2, 0);
	split_rails();
	allow_all();
	for (i = 0; i < 15; i++)
		post_move(2, 0, 1, 1 << 17, false);
	if (!run_moves(500))
		fail("moves pair routes of different rails");
	/* one dead path of the target: only the pair of the other rail works */
	world.nodes[1].devices[0]->up = false;
	for (i = 0; i < 15; i++)
		post_move(2, 0, 1, 1 << 17, false);
	if (!run_moves(3000))
		fail("moves wait for a dead rail");
	world.nodes[1].devices[0]->up = true;
	finish(3000);
}

/*
 * Device 0 of the source has no route to the target, so only device 1 allows the target. Moves must
 * use device 1, and fail with EPERM when device 1 also refuses.
 */
static void another_pair(uint64_t seed)
{
	uint8_t bytes[NHCADV_MSG_MAX_ADDRESS];
	struct move *v;
	size_t size;
	uint32_t i;

	open_three(seed, 2, 0);
	for (i = 0; i < 2; i++)
		sim_link(world.nodes[0].devices[0], world.nodes[1].devices[i])->no_route = true;
	allow_all();
	for (i = 0; i < 10; i++)
		post_move(2, 0, 1, 1 << 17, false);
	if (!run_moves(3000))
		fail("a refusal of one pair of paths stops a move");
	/* Now both devices refuse. */
	address_of(1, bytes, &size);
	if (nhcadv_msg_revoke_target(world.nodes[0].ep, bytes, size))
		fail("a target cannot be revoked");
	forbids = 0;
	v = post_move(2, 0, 1, 1 << 17, false);
	run_moves(2000);
	if (v && (!v->done || v->status != EPERM))
		fail("a move that all pairs refuse completes with %d", v->status);
	finish(1000);
}

/* ---- late bytes, repetitions ---- */

/*
 * The manager disconnects from the source while packets of a move are in flight. These packets must
 * not be placed at the target when they arrive.
 */
static void disconnected(uint64_t seed)
{
	struct sim_link *link;
	struct move *v;
	uint32_t i;

	open_three(seed, 1, 0);
	allow_all();
	link = sim_link(world.nodes[0].devices[0], world.nodes[1].devices[0]);
	link->delay = 50 * SIM_MS;
	v = post_move(2, 0, 1, 20000, false);
	run_ms(2);
	node_disconnect(2, 0);
	run_ms(20);
	freeze(&world.nodes[1], v->target);
	run_ms(100);
	/* The lane of the target must work for other transfers. */
	for (i = 0; i < 10; i++)
		post(OP_WRITE, 2, 1, 3000, false);
	node_connect(2, 0);
	finish(1000);
}

static uint64_t payload;

static bool count_payload(struct sim_packet *p)
{
	payload += p->kind == SIM_THIRD_WRITE;
	return false;
}

/*
 * The source needs longer for a transfer than the manager waits before its first probe. The source
 * is @factor times as slow as the other nodes, and may send at most @most packets for a move of 97
 * packets.
 */
static void slow_by(uint64_t seed, uint32_t factor, uint64_t most)
{
	uint32_t i;

	open_three(seed, 1, 0);
	allow_all();
	for (i = 0; i < 20; i++) {
		post_move(2, 0, 1, 1000, false);
		run_moves(100);
	}
	world.nodes[0].devices[0]->ns_per_byte_256 *= factor;
	sim.tap = count_payload;
	payload = 0;
	post_move(2, 0, 1, 1 << 17, false);
	run_moves(5000);
	sim.tap = NULL;
	if (payload > most)
		fail("the source sends %lu packets instead of 91", (unsigned long)payload);
	finish(1000);
}

static void slow_source(uint64_t seed)
{
	slow_by(seed, 100, 100);
}

static void very_slow_source(uint64_t seed)
{
	slow_by(seed, 1000, 100);
}

const struct scenario move_cases[] = {
	{ "moves at 5 % loss", lossy },
	{ "moves while the programs of source and target sleep", asleep },
	{ "a source refuses a target that it has not allowed", refused },
	{ "moves need support", unsupported },
	{ "a move fails if no pair of paths can work", move_families },
	{ "moves go on when a path dies", path_dies },
	{ "moves go on after recoveries", recovered },
	{ "a target without a route can be revoked", revoked },
	{ "a target without a route is tried again with a delay", no_route },
	{ "moves stay on their rails", rails },
	{ "a move uses another pair of paths after a refusal", another_pair },
	{ "late bytes of a disconnected source are refused", disconnected },
	{ "requests are not repeated while the source sends", slow_source },
	{ "requests are not repeated while a very slow source sends", very_slow_source },
	{}
};
