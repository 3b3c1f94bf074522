// SPDX-License-Identifier: GPL-2.0
/*
 * Many peers of one endpoint (hub), all on one device.  The hub writes to each peer, and each peer
 * sends to the hub.  Every message must complete once, with the right bytes.  Afterwards an idle
 * peer must hold only IDLE_RCXTS rCxts.
 *
 *   many_peers -d DEV -g GID [-n PEERS (2000)]
 */
#include <getopt.h>
#include <sys/resource.h>

#include <infiniband/nhcadv_msg.h>

#include "peers.h"

#define JOB		0x6d7067
#define LENGTH		4096u
#define FDS		8		/* file descriptors of an endpoint, at most */
#define POLLS		10000u
#define IDLE_RCXTS	8u		/* rCxts of a path: 4 for the transfers of each side */

struct one {
	struct nhcadv_msg_ep *ep;
	struct nhcadv_msg_peer *to_hub, *from_hub;
	uint32_t written, sent, received;
};

static struct one *ones;
static uint32_t count = 2000, left;
static struct nhcadv_msg_ep *hub;
static struct nhcadv_msg_mem *mem;
static uint8_t *area;

/* ---- creation ---- */

static void allow_files(void)
{
	struct rlimit most = { .rlim_cur = FDS * (count + 8), .rlim_max = FDS * (count + 8) };

	if (setrlimit(RLIMIT_NOFILE, &most))
		die("%u open files are not allowed: %s", FDS * (count + 8), strerror(errno));
}

static struct nhcadv_msg_ep *ep_make(uint32_t frames)
{
	const struct nhcadv_msg_path path = { .context = context, .gid_index = gid_index };
	const struct nhcadv_msg_ep_attr attr = {
		.paths = &path, .num_paths = 1, .job = JOB, .frames = frames, .queue = 4,
		.dead_ms = 5000,
	};

	return nhcadv_msg_create_ep(&attr);
}

static struct nhcadv_msg_peer *connect_to(struct nhcadv_msg_ep *from, struct nhcadv_msg_ep *to,
					  void *arg)
{
	uint8_t bytes[NHCADV_MSG_MAX_ADDRESS];
	size_t size = sizeof(bytes);

	verb(nhcadv_msg_ep_address(to, bytes, &size));
	return nhcadv_msg_connect(from, bytes, size, arg);
}

static void make_all(void)
{
	uint32_t i;

	must(hub = ep_make(1024));
	must(mem = nhcadv_msg_reg_mem(hub, area, 2ul * count * LENGTH, IBV_ACCESS_LOCAL_WRITE |
				      IBV_ACCESS_REMOTE_WRITE));
	for (i = 0; i < count; i++) {
		ones[i].ep = ep_make(16);
		if (!ones[i].ep)
			die("endpoint %u of %u: %s", i + 1, count, strerror(errno));
		ones[i].from_hub = connect_to(hub, ones[i].ep, &ones[i]);
		ones[i].to_hub = connect_to(ones[i].ep, hub, NULL);
		if (!ones[i].from_hub || !ones[i].to_hub)
			die("peer %u of %u does not connect: %s", i + 1, count, strerror(errno));
	}
}

/* ---- messages ---- */

static void once(uint32_t *done, uint32_t i, const char *what)
{
	if ((*done)++)
		die("%s %u completed twice", what, i);
	left--;
}

static void hub_polls(void)
{
	struct nhcadv_msg_completion wc[64];
	struct one *one;
	int k, n;

	n = nhcadv_msg_poll(hub, wc, 64);
	for (k = 0; k < n; k++) {
		one = wc[k].context;
		if (wc[k].status || (wc[k].kind != NHCADV_MSG_WRITE && wc[k].kind != NHCADV_MSG_RECEIVED))
			die("peer %zu: kind %u, status %d", one - ones, wc[k].kind, wc[k].status);
		if (wc[k].kind == NHCADV_MSG_WRITE) {
			once(&one->written, one - ones, "write");
			continue;
		}
		if (wc[k].length != sizeof(uint32_t) ||
		    *(const uint32_t *)wc[k].data != (uint32_t)(one - ones))
			die("the send of peer %zu has other bytes", one - ones);
		once(&one->received, one - ones, "received send");
		nhcadv_msg_release(hub, wc[k].data);
	}
}

static void one_polls(struct one *one)
{
	struct nhcadv_msg_completion wc;

	while (nhcadv_msg_poll(one->ep, &wc, 1)) {
		if (wc.status || wc.kind != NHCADV_MSG_SEND)
			die("at peer %zu: kind %u, status %d", one - ones, wc.kind, wc.status);
		once(&one->sent, one - ones, "send");
	}
}

static void poll_all(void)
{
	uint32_t i;

	for (i = 0; i < count; i++) {
		one_polls(&ones[i]);
		if (i % 16 == 0)
			hub_polls();
	}
}

static void move_all(void)
{
	uint64_t end = now_ns() + patience_s() * 1000000000ull;
	uint32_t i;

	for (i = 0; i < count; i++) {
		memset(area + i * LENGTH, 1 + i % 255, LENGTH);
		verb(nhcadv_msg_write(ones[i].from_hub, mem, i * (uint64_t)LENGTH,
				      mem->pvo + (count + i) * (uint64_t)LENGTH, LENGTH, i, 0));
		verb(nhcadv_msg_send(ones[i].to_hub, &i, sizeof(i), i, 0));
	}
	for (left = 3 * count; left;) {
		poll_all();
		if (now_ns() > end)
			die("%u of %u messages have not completed", left, 3 * count);
	}
	if (memcmp(area, area + count * (size_t)LENGTH, count * (size_t)LENGTH))
		die("bytes are wrong");
}

/* The library releases rCxts that were unused for a second, but keeps IDLE_RCXTS of each path. */
static void expect_idle(void)
{
	uint64_t end = now_ns() + patience_s() * 1000000000ull;
	struct nhcadv_msg_stats stats;
	uint32_t i, all;

	do {
		poll_all();
		for (i = 0, all = 0; i < count; i++) {
			verb(nhcadv_msg_query(ones[i].from_hub, 0, &stats));
			all += stats.rcxts;
		}
		if (now_ns() > end)
			die("%u rCxts for %u idle peers", all, count);
	} while (all != IDLE_RCXTS * count);
}

static uint64_t poll_ns(struct nhcadv_msg_ep *ep)
{
	struct nhcadv_msg_completion wc;
	uint64_t begun = now_ns();
	uint32_t i;

	for (i = 0; i < POLLS; i++)
		if (nhcadv_msg_poll(ep, &wc, 1))
			die("a completion of kind %u when all is done", wc.kind);
	return (now_ns() - begun) / POLLS;
}

static void unmake(void)
{
	uint32_t i;

	for (i = 0; i < count; i++)
		verb(nhcadv_msg_destroy_ep(ones[i].ep));
	verb(nhcadv_msg_dereg_mem(mem));
	verb(nhcadv_msg_destroy_ep(hub));
}

int main(int argc, char **argv)
{
	uint64_t begun;
	int c;

	program = "many_peers";
	while ((c = getopt(argc, argv, "d:g:n:")) != -1) {
		if (c == 'n')
			count = atoi(optarg);
		else if (!peer_option(c))
			die("usage: many_peers -d DEV -g GID [-n PEERS]");
	}
	allow_files();
	must(ones = calloc(count, sizeof(*ones)));
	area = pages(2ul * count * LENGTH);
	open_device();
	begun = now_ns();
	make_all();
	move_all();
	printf("# %u peers: connected, and written to, after %.1f s\n", count,
	       (now_ns() - begun) / 1e9);
	expect_idle();
	printf("# a poll with one idle peer: %" PRIu64 " ns, with all of them: %" PRIu64 " ns\n",
	       poll_ns(ones[0].ep), poll_ns(hub));
	unmake();
	ktap_ok("many_peers");
	return ktap_end();
}
