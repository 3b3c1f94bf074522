// SPDX-License-Identifier: GPL-2.0
/*
 * greedy: one user takes of one kind of resource as many as the device gives out, and keeps them.
 *
 *   greedy DEVICE rcxts|cqs JOB [BOUND]
 *
 * Prints "KIND: N taken, then ERROR" and holds them until SIGTERM.  With BOUND it takes that many
 * and ends: status 0 if it got them.
 */
#include <signal.h>

#define SEND_WR		16
#define RCXTS		4
#define MEMORY		(1u << 20)
#include "channels.h"

#define MOST		1024	/* rCxts in one call */
#define CQ_ENTRIES	65536	/* of 64 bytes: 4 MiB */
#define CQS		64

static uint64_t bound = ~0ULL;

static struct channel *channel_new(void)
{
	struct channel *c = calloc(1, sizeof(*c));

	must(c);
	channel_make(c, job, 0);
	return c;
}

/* Fewer at a time, down to one, and then with one more channel, until a new channel gets none. */
static uint64_t take_rcxts(int *error)
{
	static uint64_t ids[MOST];
	struct channel *c = channel_new();
	uint64_t taken = 0;
	uint32_t step = MOST, n;
	bool got = false;

	while (taken < bound) {
		n = step < bound - taken ? step : bound - taken;
		*error = nhcadv_acquire_rcxts(c->qp, ids, n);
		if (!*error) {
			taken += n;
			got = true;
		} else if (step > 1) {
			step /= 2;
		} else if (got) {
			c = channel_new();
			step = MOST;
			got = false;
		} else {
			break;
		}
	}
	return taken;
}

static uint64_t take_cqs(int *error)
{
	uint64_t taken;

	for (taken = 0; taken < CQS && taken < bound; taken++)
		if (!ibv_create_cq(context, CQ_ENTRIES, NULL, NULL, 0)) {
			*error = errno;
			break;
		}
	return taken;
}

int main(int argc, char **argv)
{
	uint64_t taken;
	int error = 0;
	sigset_t set;

	program = "greedy";
	if (argc < 4) {
		fprintf(stderr, "usage: greedy DEVICE rcxts|cqs JOB [BOUND]\n");
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	device_name = argv[1];
	job = atoi(argv[3]);
	if (argc > 4)
		bound = strtoull(argv[4], NULL, 0);
	open_device();
	taken = strcmp(argv[2], "rcxts") ? take_cqs(&error) : take_rcxts(&error);
	printf("%s: %" PRIu64 " taken, then %s\n", argv[2], taken, strerror(error));
	if (argc > 4)
		return taken < bound;
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigwaitinfo(&set, NULL);
	return 0;
}
