// SPDX-License-Identifier: GPL-2.0
/*
 * The commands of the simulator.  The script "run" builds it and runs all of them.
 *
 *	msgsim cases [NAME]	run the scenarios whose names contain NAME; print a KTAP
 *				report
 *	msgsim histories SECONDS COUNT FIRST
 *				run random histories with seeds from FIRST on; stop after COUNT
 *				histories, SECONDS seconds, or 5 failures
 *	msgsim seed SEED	run the random history of one seed
 *	msgsim poll		measure the time of a poll with 1 and with 1,000 idle peers, and
 *				with 20 and with 20,000 waiting moves
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ktap.h"
#include "msg.h"
#include "world.h"

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static void run_list(const struct scenario *s, const char *only)
{
	for (; s->name; s++) {
		if (only && !strstr(s->name, only))
			continue;
		s->run(1);
		if (world.failed)
			ktap_notok(world.failure, "%s", s->name);
		else
			ktap_ok("%s", s->name);
	}
}

static int run_cases(const char *only)
{
	run_list(cases, only);
	run_list(move_cases, only);
	run_list(error_cases, only);
	run_list(grant_cases, only);
	run_list(buffer_cases, only);
	return ktap_end();
}

static int run_histories(double most, uint64_t count, uint64_t first)
{
	uint64_t n, completions = 0, failed = 0;
	double begun = seconds();
	const char *name = MSG_LAST_TID > 3 ? "random histories" :
					      "random histories when tids are used up";
	char why[64];

	for (n = 0; n < count && seconds() - begun < most && failed < 5; n++) {
		/* every third history has moves */
		if ((first + n) % 3)
			history(first + n);
		else
			moves_history(first + n);
		completions += world.completions;
		if (!world.failed)
			continue;
		failed++;
		printf("# seed %lu: %s\n", (unsigned long)(first + n), world.failure);
		fflush(stdout);
	}
	printf("# %lu histories from seed %lu on, %lu messages, %.0f s\n", (unsigned long)n,
	       (unsigned long)first, (unsigned long)completions, seconds() - begun);
	snprintf(why, sizeof(why), "%lu fail; msgsim seed N repeats one", (unsigned long)failed);
	if (failed)
		ktap_notok(why, "%s", name);
	else
		ktap_ok("%s", name);
	return ktap_end();
}

/*
 * Return: time of a poll of an endpoint with @peers connected and idle peers, in nanoseconds. The
 * result is the minimum of the means of 20 batches, because other programs disturb the measurement.
 */
static double poll_time(uint32_t peers)
{
	struct world_attr attr = {
		.nodes = peers + 1, .paths = 1, .lanes = 1, .packets = 8, .frames = 16, .queue = 4,
		.dead_ms = 500, .mtu = 1500, .rcxts = 2 * peers + 16, .slots = 1, .slot_size = 4096,
	};
	struct nhcadv_msg_completion wc;
	double best = 1e9, begun;
	uint32_t batch, i;

	world_open(1, &attr);
	for (i = 0; i <= peers; i++) {
		world.nodes[i].most = 10 * SIM_MS;
		node_start(&world.nodes[i]);
	}
	for (i = 1; i <= peers; i++) {
		node_connect(0, i);
		node_connect(i, 0);
	}
	run_ms(2000);
	for (i = 1; i <= peers; i++)
		post(OP_SEND, 0, i, 8, false);
	if (!run_until_done(5000))
		fail("sends to newly connected peers did not complete");
	for (batch = 0; batch < 20; batch++) {
		begun = seconds();
		for (i = 0; i < 10000; i++) {
			sim.now += 100;
			nhcadv_msg_poll(world.nodes[0].ep, &wc, 1);
		}
		if ((seconds() - begun) / 10000 < best)
			best = (seconds() - begun) / 10000;
	}
	world_close();
	return best * 1e9;
}

/*
 * Return: time, in nanoseconds, of a poll of an endpoint with @moves moves that wait for a lane of
 * their target. The endpoint polls each millisecond. The result is the minimum of the means of 5
 * batches.
 */
static double wait_time(uint32_t moves)
{
	struct world_attr attr = {
		.nodes = 3, .paths = 1, .lanes = 2, .packets = 8, .frames = 64, .queue = 4,
		.dead_ms = 100000, .mtu = 1500, .rcxts = 64, .slots = 2, .slot_size = 4096,
	};
	struct nhcadv_msg_completion wc;
	double best = 1e9, begun;
	uint32_t batch, i;

	world_open(1, &attr);
	for (i = 0; i < 3; i++)
		node_start(&world.nodes[i]);
	for (i = 1; i < 3; i++) {
		node_connect(0, i);
		node_connect(i, 0);
	}
	run_ms(100);
	/* The requests do not arrive, so all lanes of the target stay busy. */
	for (i = 1; i < 3; i++)
		sim_link(world.nodes[0].devices[0], world.nodes[i].devices[0])->black = true;
	for (i = 0; i < moves; i++)
		if (nhcadv_msg_move(world.nodes[0].ep, world.nodes[0].peers[1].msg,
				    world.nodes[1].mem->pvo, world.nodes[0].peers[2].msg,
				    world.nodes[2].mem->pvo, 4, 0, 0))
			fail("a move is not posted");
	for (batch = 0; batch < 5; batch++) {
		begun = seconds();
		for (i = 0; i < 400; i++) {
			sim.now += SIM_MS;
			nhcadv_msg_poll(world.nodes[0].ep, &wc, 1);
		}
		if ((seconds() - begun) / 400 < best)
			best = (seconds() - begun) / 400;
	}
	world_close();
	return best * 1e9;
}

static void run_waits(void)
{
	const char *name = "a poll with 20,000 waiting moves takes as long as with 20";
	double few = wait_time(20), many;
	bool failed = world.failed;

	many = wait_time(20000);
	printf("# %.0f ns with 20 waiting moves, %.0f ns with 20,000\n", few, many);
	failed |= world.failed;
	if (!failed && many <= 3 * few + 500)
		ktap_ok("%s", name);
	else
		ktap_notok(failed ? world.failure : "it does not", "%s", name);
}

static int run_poll(void)
{
	const char *name = "a poll with 1,000 idle peers takes at most 500 ns";
	double one = poll_time(1), many;
	bool failed = world.failed;

	many = poll_time(1000);
	printf("# %.0f ns with 1 peer, %.0f ns with 1,000\n", one, many);
	failed |= world.failed;
	if (!failed && many <= 500)
		ktap_ok("%s", name);
	else
		ktap_notok(failed ? world.failure : "it does not", "%s", name);
	run_waits();
	return ktap_end();
}

int main(int argc, char **argv)
{
	if (argc >= 2 && !strcmp(argv[1], "cases"))
		return run_cases(argc > 2 ? argv[2] : NULL);
	if (argc == 2 && !strcmp(argv[1], "poll"))
		return run_poll();
	if (argc == 5 && !strcmp(argv[1], "histories"))
		return run_histories(atof(argv[2]), strtoull(argv[3], NULL, 0),
				     strtoull(argv[4], NULL, 0));
	if (argc == 3 && !strcmp(argv[1], "seed"))
		return run_histories(1e9, 1, strtoull(argv[2], NULL, 0));
	fprintf(stderr, "usage: msgsim cases [NAME] | histories SECONDS COUNT FIRST | seed SEED | poll\n");
	return 2;
}
