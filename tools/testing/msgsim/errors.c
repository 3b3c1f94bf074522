// SPDX-License-Identifier: GPL-2.0
/*
 * Scenarios of verbs that fail.  After ENOMEM the call can be repeated.  EIO is no error: the
 * device was removed.
 */
#include <errno.h>

#include "world.h"

static const struct world_attr two_paths = {
	.nodes = 2, .paths = 2, .lanes = 4, .packets = 8, .frames = 1024, .queue = 64,
	.dead_ms = 100, .mtu = 1500, .rcxts = 4096, .slots = 32, .slot_size = 16384,
};

static struct nhcadv_msg_mem *reg(uint8_t *bytes, uint32_t length)
{
	struct nhcadv_msg_mem *mem = nhcadv_msg_reg_mem(world.nodes[0].ep, bytes, length,
							IBV_ACCESS_LOCAL_WRITE);

	if (!mem)
		fail("memory is not registered");
	return mem;
}

static void dereg_mem(uint64_t seed)
{
	static uint8_t bytes[4096];
	struct nhcadv_msg_mem *mem;
	uint64_t pvo;

	world_open(seed, &two_paths);
	mem = reg(bytes, sizeof(bytes));
	pvo = mem->pvo;
	sim.dereg_err = ENOMEM;
	if (nhcadv_msg_dereg_mem(mem) != ENOMEM)
		fail("an error of a deregistration is not reported");
	else if (!sim_memory_at(0, JOB, pvo, 1, 0))
		fail("memory is deregistered in spite of an error");
	else if (nhcadv_msg_dereg_mem(mem))
		fail("the second deregistration fails");
	if (sim_memory_at(0, JOB, pvo, 1, 0))
		fail("memory is still registered");
	/* a deregistration fails with EIO because the first device was removed: this is no error */
	mem = reg(bytes, sizeof(bytes));
	pvo = mem->pvo;
	sim.dereg_err = EIO;
	if (nhcadv_msg_dereg_mem(mem))
		fail("a deregistration fails after the removal of a device");
	if (sim_memory_at(0, JOB, pvo, 1, 0))
		fail("memory is still registered on the other device");
	world_close();
}

/* Return: another endpoint on the devices of node 0 */
static struct nhcadv_msg_ep *endpoint(void)
{
	struct nhcadv_msg_path paths[] = {
		{ .context = &world.nodes[0].devices[0]->context },
		{ .context = &world.nodes[0].devices[1]->context },
	};
	struct nhcadv_msg_ep_attr attr = { .paths = paths, .num_paths = 2, .job = JOB };
	struct nhcadv_msg_ep *ep = nhcadv_msg_create_ep(&attr);

	if (!ep)
		fail("there is no endpoint");
	return ep;
}

/*
 * The registration of memory fails on the second device, and then the memory cannot be closed on
 * the first device.  The endpoint is destroyed only after the memory was closed.
 */
static void reg_mem(uint64_t seed)
{
	static uint8_t bytes[4096];
	struct nhcadv_msg_ep *ep;
	uint32_t before;

	world_open(seed, &two_paths);
	before = sim_memories();
	ep = endpoint();
	sim.open_err = EMFILE;
	sim.dereg_err = ENOMEM;
	if (nhcadv_msg_reg_mem(ep, bytes, sizeof(bytes), IBV_ACCESS_LOCAL_WRITE) || errno != EMFILE)
		fail("memory is registered on one of two devices");
	if (sim.dereg_err)
		fail("the memory on the first device was not closed");
	sim.dereg_err = ENOMEM;
	if (nhcadv_msg_destroy_ep(ep) != ENOMEM)
		fail("an endpoint is destroyed although memory is registered");
	else if (nhcadv_msg_destroy_ep(ep))
		fail("an endpoint cannot be destroyed");
	if (sim_memories() != before)
		fail("memory is still registered");
	world_close();
}

static void destroy_ep(uint64_t seed)
{
	struct nhcadv_msg_ep *ep;

	world_open(seed, &two_paths);
	ep = endpoint();
	sim.destroy_err = ENOMEM;
	if (nhcadv_msg_destroy_ep(ep) != ENOMEM)
		fail("a channel that was not closed is not reported");
	else if (nhcadv_msg_destroy_ep(ep))
		fail("an endpoint cannot be destroyed");
	ep = endpoint();
	sim.destroy_err = EIO;
	if (nhcadv_msg_destroy_ep(ep))
		fail("an endpoint cannot be destroyed after the removal of a device");
	world_close();
}

/* A failed channel is closed in a later pass if the kernel does not close it in the first pass. */
static void close_again(uint64_t seed)
{
	uint32_t i;

	world_open(seed, &two_paths);
	for (i = 0; i < 2; i++)
		node_start(&world.nodes[i]);
	node_connect(0, 1);
	node_connect(1, 0);
	run_ms(50);
	sim.destroy_err = ENOMEM;
	sim_recover(world.nodes[0].devices[0]);
	for (i = 0; i < 20; i++)
		post(OP_WRITE, 0, 1, 10000, false);
	if (!run_until_done(3000))
		fail("%lu messages are not done", (unsigned long)world.open_ops);
	if (sim.destroy_err)
		fail("the failed channel was not closed");
	world_close();
}

const struct scenario error_cases[] = {
	{ "a failed deregistration of memory can be repeated", dereg_mem },
	{ "memory that a failed registration has left is closed with the endpoint", reg_mem },
	{ "a failed destruction of an endpoint can be repeated", destroy_ep },
	{ "a failed channel that was not closed is closed later", close_again },
	{}
};
