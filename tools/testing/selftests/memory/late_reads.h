/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A part of late_reads.c: options, the two devices, the capture, and counts for both kinds of
 * traffic.
 */
#ifndef LATE_READS_H
#define LATE_READS_H

#include <fcntl.h>
#include <getopt.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <pthread.h>
#include <sched.h>

#include "peers.h"

#define LONGEST		65536
#define SHORTEST	257
#define SLOT		(LONGEST + 8192)	/* a message may begin anywhere in its first page */
#define POISON		0x80			/* plus the ending; posted bytes are below it */
#define POISON_RUN	32			/* equal bytes; no header has such a run */
#define TOP_BITS	0x8080808080808080ULL
#define FRAME_ROOM	(72 * 1024)

/* One of the two devices; index 0 is the sender's */
struct side {
	const char *name;
	int gid_index;
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct hello hello;
};

static struct {
	uint64_t overwrites;	/* buffers to overwrite in total */
	uint32_t settle_ms;	/* from the last overwrite of a batch to the check, in ms */
	uint32_t timeout;	/* local ACK timeout (exponent) of RC that succeeds */
	const char *capture;	/* NETNS:NETDEV, or NULL */
	bool early;		/* overwrite before the completion */
	bool channels;
} opt = { .overwrites = 1000, .settle_ms = 20, .timeout = 14, .channels = true };

static struct side sides[2];

static struct {
	uint64_t overwrites, bytes;
	uint64_t completed;	/* messages whose receive completed at the peer */
	uint64_t late_peer;	/* bytes in the peer's memory that were never posted */
	uint64_t torn;		/* messages that completed at the peer with wrong bytes */
	uint64_t by_ending[32], late_by_ending[32], frames_by_ending[32];
} seen;

/* Select the device that the functions of peers.h use. */
static struct side *side_select(int which)
{
	struct side *s = &sides[which];

	context = s->context;
	pd = s->pd;
	gid_index = s->gid_index;
	mine = s->hello;
	theirs = sides[!which].hello;
	if (theirs.mtu < mine.mtu)
		mine.mtu = theirs.mtu;
	return s;
}

static void side_open(struct side *s)
{
	device_name = s->name;
	gid_index = s->gid_index;
	open_device();
	s->context = context;
	s->pd = pd;
	s->hello = mine;
}

/* Return: the number of bytes that have the top bit set. */
static uint64_t count_poison(const uint8_t *p, size_t size)
{
	uint64_t word, found = 0;
	size_t i;

	for (i = 0; i + 8 <= size; i += 8) {
		memcpy(&word, p + i, 8);
		if (word & TOP_BITS)
			found += __builtin_popcountll(word & TOP_BITS);
	}
	for (; i < size; i++)
		found += p[i] >> 7;
	return found;
}

/* The buffer is returned to its owner, which overwrites it. */
static void overwrite(uint8_t *p, uint32_t length, int ending)
{
	memset(p, POISON | ending, length);
	seen.overwrites++;
	seen.bytes += length;
	seen.by_ending[ending]++;
}

static void late_at_peer(uint64_t bytes, int ending)
{
	seen.late_peer += bytes;
	seen.late_by_ending[ending] += bytes;
}

/* ---- the capture: every frame that the peer's netdev receives ---- */

static struct {
	pthread_t thread;
	int fd;
	uint64_t frames, bytes, late, lost;
	bool ready, stop;
} capture;

static void capture_open(void)
{
	int fd, room = 64 << 20;
	char space[128], path[160], *netdev;
	struct sockaddr_ll at = { .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL) };
	struct timeval wait = { .tv_usec = 100000 };

	snprintf(space, sizeof(space), "%s", opt.capture);
	netdev = strchr(space, ':');
	must(netdev);
	*netdev++ = 0;
	snprintf(path, sizeof(path), "/run/netns/%s", space);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	must(fd >= 0);
	/* this changes the network namespace of this thread only */
	must(!setns(fd, CLONE_NEWNET));
	close(fd);
	capture.fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	must(capture.fd >= 0);
	must(!setsockopt(capture.fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room)));
	must(!setsockopt(capture.fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait)));
	at.sll_ifindex = if_nametoindex(netdev);
	must(at.sll_ifindex);
	must(!bind(capture.fd, (struct sockaddr *)&at, sizeof(at)));
}

/* Return: true if the frame has a run of equal bytes with the top bit set: bytes of the owner. */
static bool frame_is_late(const uint8_t *frame, size_t size)
{
	size_t i;

	for (i = 0; i + POISON_RUN <= size; i += POISON_RUN / 2)
		if (frame[i] & POISON && !memcmp(frame + i, frame + i + 1, POISON_RUN - 1)) {
			seen.frames_by_ending[frame[i] % 32]++;
			return true;
		}
	return false;
}

static void *capture_run(void *arg)
{
	static uint8_t frame[FRAME_ROOM];
	struct tpacket_stats lost;
	socklen_t size = sizeof(lost);
	struct sockaddr_ll from;
	socklen_t from_size;
	ssize_t n;

	(void)arg;
	capture_open();
	__atomic_store_n(&capture.ready, true, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&capture.stop, __ATOMIC_ACQUIRE)) {
		from_size = sizeof(from);
		n = recvfrom(capture.fd, frame, sizeof(frame), 0, (struct sockaddr *)&from, &from_size);
		if (n <= 0 || from.sll_pkttype == PACKET_OUTGOING)
			continue;
		capture.frames++;
		capture.bytes += n;
		capture.late += frame_is_late(frame, n);
	}
	must(!getsockopt(capture.fd, SOL_PACKET, PACKET_STATISTICS, &lost, &size));
	capture.lost = lost.tp_drops;
	close(capture.fd);
	return NULL;
}

static void capture_begin(void)
{
	if (!opt.capture)
		return;
	must(!pthread_create(&capture.thread, NULL, capture_run, NULL));
	while (!__atomic_load_n(&capture.ready, __ATOMIC_ACQUIRE))
		usleep(1000);
}

static void capture_end(void)
{
	if (!opt.capture)
		return;
	__atomic_store_n(&capture.stop, true, __ATOMIC_RELEASE);
	pthread_join(capture.thread, NULL);
}

/* ---- options ---- */

__attribute__((noreturn))
static void usage(int status)
{
	fputs("usage: late_reads -d DEVICE -g GID-INDEX -D DEVICE -G GID-INDEX [options]\n"
	      "  -d, -g      of the sender\n"
	      "  -D, -G      of its peer\n"
	      "  -n N        buffers to overwrite (1000)\n"
	      "  -w MS       from the last overwrite to the check of the peer's memory (20)\n"
	      "  -T EXPONENT local ACK timeout of connections that are to succeed (14)\n"
	      "  -c NS:IF    check every frame that netdev IF of network namespace NS receives\n"
	      "  -r SEED     of the random numbers\n"
	      "  -q          queue pairs only, no channels\n"
	      "  -x          overwrite too early, which the test must detect\n",
	      status ? stderr : stdout);
	exit(status);
}

static void parse(int argc, char **argv)
{
	int letter;

	while ((letter = getopt(argc, argv, "d:g:D:G:n:w:T:c:r:qxh")) != -1)
		switch (letter) {
		case 'd':
			sides[0].name = optarg;
			break;
		case 'g':
			sides[0].gid_index = atoi(optarg);
			break;
		case 'D':
			sides[1].name = optarg;
			break;
		case 'G':
			sides[1].gid_index = atoi(optarg);
			break;
		case 'n':
			opt.overwrites = strtoull(optarg, NULL, 0);
			break;
		case 'w':
			opt.settle_ms = atoi(optarg);
			break;
		case 'T':
			opt.timeout = atoi(optarg);
			break;
		case 'c':
			opt.capture = optarg;
			break;
		case 'r':
			rnd_state = strtoull(optarg, NULL, 0);
			break;
		case 'q':
			opt.channels = false;
			break;
		case 'x':
			opt.early = true;
			break;
		default:
			usage(letter == 'h' ? 0 : 2);
		}
	if (optind < argc || !sides[0].name || !sides[1].name)
		usage(2);
}

#endif /* LATE_READS_H */
