// SPDX-License-Identifier: GPL-2.0
/* Scenarios of writes from buffers that are neither registered nor contiguous. */
#include <errno.h>

#include "world.h"

static struct world_attr two_paths(void)
{
	return (struct world_attr){
		.nodes = 2, .paths = 2, .lanes = 4, .packets = 64, .frames = 1024, .queue = 64,
		.dead_ms = 20, .mtu = 1500, .rcxts = 4096, .slots = 32, .slot_size = 262144,
		.buffers = 1000000,
	};
}

static void open_two(uint64_t seed, const struct world_attr *attr)
{
	uint32_t i;

	world_open(seed, attr);
	for (i = 0; i < 2; i++)
		node_start(&world.nodes[i]);
	node_connect(0, 1);
	node_connect(1, 0);
	run_ms(50);
}

static void expect(int err, int wanted, const char *what)
{
	if (err != wanted)
		fail("%s: errno %d instead of %d", what, err, wanted);
}

static void refused(uint64_t seed)
{
	struct world_attr attr = two_paths();
	struct nhcadv_msg_peer *peer;
	struct iovec iov[3] = {};
	static uint8_t byte;
	uint64_t pvo;

	open_two(seed, &attr);
	peer = world.nodes[0].peers[1].msg;
	pvo = world.nodes[1].mem->pvo;
	iov[0] = iov[2] = (struct iovec){ .iov_base = &byte, .iov_len = INT64_MAX / 2 + 1 };
	expect(nhcadv_msg_write_iov(peer, iov, 3, pvo, 1, 0), EINVAL, "too many bytes");
	expect(nhcadv_msg_write_iov(peer, iov, NHCADV_MSG_MAX_IOV + 1, pvo, 1, 0), EINVAL,
	       "too many buffers");
	expect(nhcadv_msg_write_iov(peer, iov, 1, pvo, 1, 2), EINVAL, "an unknown flag");
	world_close();
	attr.old_parts_ppm = 1000000;
	open_two(seed, &attr);
	expect(nhcadv_msg_write_iov(world.nodes[0].peers[1].msg, iov, 0, 0, 1, 0), EOPNOTSUPP,
	       "a device without half-send writes");
	world_close();
}

/* A transfer of 64 packets does not fit beside others into the send FIFO, so writes take turns. */
static void many(uint64_t seed)
{
	struct world_attr attr = two_paths();
	uint32_t i;

	open_two(seed, &attr);
	for (i = 0; i < 60; i++) {
		post(OP_WRITE, 0, 1, i % 7 ? sim_below(attr.slot_size) : i, i % 2);
		post(OP_WRITE, 1, 0, sim_below(5000), false);
		post(OP_SEND, 0, 1, 100, false);
		run_ms(1);
	}
	if (!run_until_done(3000))
		fail("%lu messages are not done", (unsigned long)world.open_ops);
	world_close();
}

/* Packets are lost, a path dies, the MTU falls below the segment, and a channel is recovered. */
static void faults(uint64_t seed)
{
	struct world_attr attr = two_paths();
	struct op *op;
	uint32_t i;

	open_two(seed, &attr);
	for (i = 0; i < 4; i++)
		sim_link(world.nodes[i / 2].devices[i % 2],
			 world.nodes[!(i / 2)].devices[i % 2])->loss_ppm = 100000;
	for (i = 0; i < 100; i++) {
		op = post(OP_WRITE, 0, 1, sim_below(attr.slot_size), i % 2);
		if (op && i % 10 == 5)
			cancel(op);
		if (i == 20)
			world.nodes[0].devices[0]->mtu = 1300;
		if (i == 40)
			sim_recover(world.nodes[0].devices[1]);
		if (i == 60)
			sim_link(world.nodes[0].devices[0], world.nodes[1].devices[0])->black = true;
		if (i == 80)
			sim_recover(world.nodes[1].devices[1]);
		run_ms(3);
	}
	heal();
	if (!run_until_done(8000))
		fail("%lu messages are not done", (unsigned long)world.open_ops);
	world_close();
}

/*
 * The MTU falls while the packets of a transfer are being sent.  The later packets are too long, so
 * the bytes are written by another transfer, which overtakes the earlier packets: the peer must
 * refuse these when they arrive after the completion.
 */
static void too_long(uint64_t seed)
{
	struct world_attr attr = two_paths();
	struct sim_device *dev;
	struct sim_link *link;

	attr.paths = 1;
	open_two(seed, &attr);
	dev = world.nodes[0].devices[0];
	link = sim_link(dev, world.nodes[1].devices[0]);
	link->delay = 30 * SIM_MS;
	dev->ns_per_byte_256 = 8192;
	post(OP_WRITE, 0, 1, 40000, false);
	sim_run(sim.now + SIM_MS / 2);
	dev->mtu = 1300;
	link->delay = SIM_MS / 100;
	if (!run_until_done(3000))
		fail("the write is not done");
	run_ms(100);
	world_close();
}

const struct scenario buffer_cases[] = {
	{ "wrong writes from buffers are refused", refused },
	{ "writes from buffers take turns, with each other and with sends", many },
	{ "writes from buffers survive loss, dead paths, smaller MTUs and recoveries", faults },
	{ "late packets of a write from buffers are refused after the MTU has fallen", too_long },
	{}
};
