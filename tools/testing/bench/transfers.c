// SPDX-License-Identifier: GPL-2.0
/*
 * transfers: sends a stream of rCxt datagrams, for the benchmark.
 *
 *   transfers -d DEV -g GID [options]		the passive end
 *   transfers -d DEV -g GID [options] HOST	the active end; prints the result as JSON
 *
 *   -o write|read	operation of a transfer (write)
 *   -s BYTES -n COUNT	size of a transfer, number of transfers (1 MiB, 100)
 *   -k DEPTH		outstanding transfers, each on its own rCxt (8)
 *   -w COUNT		transfers before the measurement begins (DEPTH)
 *   -p PORT		TCP port at which the ends meet
 *
 * Both ends need the same options.  The program fails if a packet is lost, because a transfer
 * that lacks a packet never completes.
 */
#define _GNU_SOURCE
#include <getopt.h>

#define RCXTS		64
#define MEMORY		(64u << 20)
#define SEND_WR		256
#include "channels.h"
#include "profile.h"

static struct options {
	bool read;
	uint32_t size, count, warm, depth;
} o = { .size = 1 << 20, .count = 100, .warm = UINT32_MAX, .depth = 8 };

static struct channel ch;
static uint32_t tids[RCXTS];

static void post(uint32_t i)
{
	struct nhcadv_transfer t = transfer(&ch, i, i * (MEMORY / RCXTS), o.size,
					    NHCADV_NOTIFY_INITIATOR);

	t.tid = ++tids[i];
	start(&ch, i, 0);
	if (o.read)
		nhcadv_wr_read(ch.dv, &ch.peer, &t);
	else
		nhcadv_wr_write(ch.dv, &ch.peer, &t);
	verb(ibv_wr_complete(ch.qpx));
}

/* Return: the next completion; sleeps until there is one. */
static struct done next_done(void)
{
	struct pollfd fd = { .fd = ch.events->fd, .events = POLLIN };
	struct ibv_cq *cq = ibv_cq_ex_to_cq(ch.scq), *which;
	struct done d;
	void *arg;

	while (!poll_done(ch.scq, &d)) {
		verb(ibv_req_notify_cq(cq, 0));
		if (poll_done(ch.scq, &d))
			break;
		if (poll(&fd, 1, patience_s() * 1000) != 1)
			die("no completion within %u s", patience_s());
		must(!ibv_get_cq_event(ch.events, &which, &arg));
		ibv_ack_cq_events(which, 1);
	}
	if (d.status)
		die("transfer: %s", ibv_wc_status_str(d.status));
	return d;
}

/*
 * Post a new transfer for each completion, so that o.depth transfers are outstanding both when the
 * clock starts and when it stops.
 */
static void run(void)
{
	uint64_t begin = 0, took;
	uint32_t i;

	for (i = 0; i < o.depth; i++)
		post(i);
	for (i = 0; i < o.warm + o.count; i++) {
		if (i == o.warm) {
			profile_begin();
			begin = now_ns();
		}
		post(next_done().wr_id);
	}
	took = now_ns() - begin;
	profile_end();
	for (i = 0; i < o.depth; i++)
		next_done();
	printf("{\"mode\": \"stream\", \"op\": \"rcxt-%s\", \"size\": %u, \"count\": %u, \"depth\": %u, "
	       "\"MiB_per_s\": %.2f, \"ns_per_message\": %.1f}\n", o.read ? "read" : "write",
	       o.size, o.count, o.depth, (double)o.size * o.count / took * 1e9 / (1 << 20),
	       (double)took / o.count);
}

int main(int argc, char **argv)
{
	int letter;

	program = "transfers";
	job = 4712;
	setvbuf(stdout, NULL, _IOLBF, 0);
	while ((letter = getopt(argc, argv, "d:g:k:n:o:p:s:w:")) != -1)
		switch (letter) {
		case 'k':
			o.depth = strtoul(optarg, NULL, 0);
			break;
		case 'n':
			o.count = strtoul(optarg, NULL, 0);
			break;
		case 'o':
			o.read = !strcmp(optarg, "read");
			break;
		case 's':
			o.size = strtoul(optarg, NULL, 0);
			break;
		case 'w':
			o.warm = strtoul(optarg, NULL, 0);
			break;
		default:
			if (peer_option(letter))
				break;
			return 2;
		}
	peer_host = argv[optind];
	if (o.warm == UINT32_MAX)
		o.warm = o.depth;
	channel_sizes = (struct channel_sizes){ RCXTS, MEMORY, SEND_WR, 0 };
	if (!o.depth || o.depth > RCXTS || o.size > MEMORY / RCXTS) {
		fprintf(stderr, "transfers: -k takes 1 to %d, -s at most %d\n", RCXTS,
			MEMORY / RCXTS);
		return 2;
	}
	open_device();
	sock_open();
	say_hello();
	channel_open(&ch, 0);
	channel_meet(&ch);
	meet(1);
	if (peer_host)
		run();
	meet(2);
	channel_close(&ch);
	return 0;
}
