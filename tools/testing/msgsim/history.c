// SPDX-License-Identifier: GPL-2.0
/*
 * A random history.  Some nodes send, write, read, cancel, disconnect and connect.  Links lose,
 * delay and duplicate packets.  Devices change their MTU, recover and lose their link.  In the end
 * all faults are removed, and all messages must complete within HEAL_MS.
 */
#include <stdlib.h>

#include "world.h"

/* Milliseconds of simulated time for the remaining messages after all faults are removed */
#define HEAL_MS		30000

static const uint32_t mtus[] = { 1280, 1500, 1500, 2000, 4200, 9000 };

static uint32_t pick(const uint32_t *from, uint32_t num)
{
	return from[sim_below(num)];
}

struct sim_device *any_device(void)
{
	struct node *node = &world.nodes[sim_below(world.num_nodes)];

	return node->devices[sim_below(node->num_devices)];
}

void mess_link(struct sim_link *link)
{
	link->delay = 1000 + sim_below(sim_chance(200000) ? 20 * SIM_MS : 100000);
	link->jitter = sim_chance(300000) ? sim_below(link->delay) : 0;
	link->loss_ppm = sim_chance(600000) ? sim_below(150000) : 0;
	link->dup_ppm = sim_chance(300000) ? sim_below(100000) : 0;
	link->late_ppm = sim_chance(300000) ? sim_below(100000) : 0;
	link->late = sim_below(sim_chance(100000) ? 400 * SIM_MS : SIM_MS);
	link->black = sim_chance(50000);
}

void mess_links(void)
{
	uint32_t a, b;

	for (a = 0; a < sim.num_devices; a++)
		for (b = 0; b < sim.num_devices; b++)
			if (a != b)
				mess_link(sim_link(sim.devices[a], sim.devices[b]));
}

void heal(void)
{
	uint32_t a, b, i;

	for (a = 0; a < sim.num_devices; a++) {
		sim.devices[a]->up = true;
		for (b = 0; b < sim.num_devices; b++)
			*sim_link(sim.devices[a], sim.devices[b]) = (struct sim_link){
				.delay = 1000 + sim_below(100000),
			};
	}
	for (i = 0; i < world.num_nodes; i++) {
		world.nodes[i].asleep_until = 0;
		world.nodes[i].hold = 0;
	}
}

void connect_event(void *arg, uint64_t number)
{
	struct node *node = arg;

	if (!world.failed && !node->peers[number].msg)
		node_connect(node->number, number);
}

static void disconnect_event(void *arg, uint64_t number)
{
	struct node *node = arg;
	struct node *other = &world.nodes[number];

	node_disconnect(node->number, number);
	if (other->peers[node->number].msg)
		return;
	sim_at(sim.now + sim_below(SIM_MS), connect_event, node, number);
	sim_at(sim.now + sim_below(SIM_MS), connect_event, other, node->number);
}

/* Both sides disconnect and connect within 3 ms, so old packets may still be in flight. */
void reconnect(uint32_t a, uint32_t b)
{
	if (!world.nodes[a].peers[b].msg || !world.nodes[b].peers[a].msg)
		return;
	sim_at(sim.now, disconnect_event, &world.nodes[a], b);
	sim_at(sim.now + sim_below(2 * SIM_MS), disconnect_event, &world.nodes[b], a);
}

static uint32_t length_of(enum op_kind kind, uint32_t most)
{
	if (kind == OP_SEND)
		return 8 + sim_below(sim_chance(300000) ? NHCADV_MSG_MAX_SEND - 7 : 56);
	if (sim_chance(100000))
		return 0;
	return sim_below(sim_chance(500000) && most > 2000 ? 2000 : most + 1);
}

static void some_messages(void)
{
	uint32_t a = sim_below(world.num_nodes), b = sim_below(world.num_nodes), n, kind;
	struct op *op;

	if (a == b)
		return;
	for (n = 1 + sim_below(sim_chance(200000) ? 40 : 6); n; n--) {
		kind = sim_below(3);
		if (kind != OP_SEND && sim_chance(20000))
			op = post_closed(kind, a, b, 1 + sim_below(world.nodes[a].slot_size));
		else
			op = post(kind, a, b, length_of(kind, world.nodes[a].slot_size),
				  kind == OP_WRITE && sim_chance(500000));
		if (op && sim_chance(30000))
			cancel(op);
	}
}

void set_mtu(struct sim_device *dev)
{
	dev->mtu = pick(mtus, sizeof(mtus) / sizeof(mtus[0]));
}

static void something(bool calm)
{
	uint32_t what = sim_below(calm ? 60 : 100);
	struct sim_device *dev = any_device();
	struct node *node = &world.nodes[sim_below(world.num_nodes)];

	if (what < 55)
		some_messages();
	else if (what < 60 && world.num_ops)
		cancel(&world.ops[sim_below(world.num_ops)]);
	else if (what < 68)
		mess_link(sim_link(dev, any_device()));
	else if (what < 72)
		dev->up = !dev->up;
	else if (what < 75)
		set_mtu(dev);
	else if (what < 77)
		sim_recover(dev);
	else if (what < 82)
		reconnect(sim_below(world.num_nodes), node->number);
	else if (what < 88)
		node->asleep_until = sim.now + sim_below(sim_chance(100000) ? 800 * SIM_MS :
							 20 * SIM_MS);
	else if (what < 92)
		node->hold = sim_below(8);
	else if (what < 95)
		sim_link(dev, any_device())->black = sim_chance(500000);
}

void history(uint64_t seed)
{
	struct world_attr attr;
	uint32_t a, b, steps, i;
	bool calm;

	sim.rng = seed;
	attr = (struct world_attr){
		.nodes = 2 + (sim_chance(300000) ? sim_below(3) : 0),
		.paths = 1 + sim_below(3), .lanes = 1 + sim_below(sim_chance(300000) ? 24 : 6), .packets = 1 + sim_below(8),
		.frames = 16 << sim_below(5), .queue = 1 + sim_below(sim_chance(500000) ? 6 : 64),
		.dead_ms = 5 + sim_below(60), .old_ppm = sim_chance(500000) ? 500000 : 0, .mtu = 1500,
		.rcxts = sim_chance(200000) ? 40 + sim_below(100) : 512, .slots = 16,
		.slot_size = 1 << (10 + sim_below(6)),
		.buffers = sim_chance(500000) ? 500000 : 0,
	};
	world_open(seed, &attr);
	for (i = 0; i < world.num_nodes; i++) {
		world.nodes[i].least = 1000 + sim_below(sim_chance(200000) ? SIM_MS : 20000);
		node_start(&world.nodes[i]);
	}
	for (i = 0; i < sim.num_devices; i++)
		if (sim_chance(500000))
			set_mtu(sim.devices[i]);
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
		/* Sometimes wait until the library releases unused rCxts (IDLE_PAUSE, 1 s). */
		sim_run(sim.now + sim_below(sim_chance(100000) ? sim_chance(100000) ? 3000 * SIM_MS :
					    40 * SIM_MS : SIM_MS));
	}
	heal();
	if (!run_until_done(HEAL_MS) && !world.failed) {
		for (i = 0; i < world.num_ops; i++)
			if (!world.ops[i].done && !world.ops[i].dropped)
				break;
		fail("%lu messages are not done %u ms after the last fault, the first is %u: kind %u, node %u to %u, %u bytes%s",
		     (unsigned long)world.open_ops, HEAL_MS, i + 1, world.ops[i].kind,
		     world.ops[i].from, world.ops[i].to, world.ops[i].length,
		     world.ops[i].closed ? ", closed" : "");
	}
	world_close();
}
