// SPDX-License-Identifier: GPL-2.0
/* late_reads.h describes these functions. */
#define _GNU_SOURCE
#include "late_reads.h"

struct options opt = { .overwrites = 1000, .settle_ms = 20, .timeout = 14, .channels = true };
struct side sides[2];
struct seen seen;

/* Select the device that the functions of peers.h use. */
struct side *side_select(int which)
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

void side_open(struct side *s)
{
	device_name = s->name;
	gid_index = s->gid_index;
	open_device();
	s->context = context;
	s->pd = pd;
	s->hello = mine;
}

/* Return: the number of bytes that have the top bit set. */
uint64_t count_poison(const uint8_t *p, size_t size)
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

/* Fill a buffer with bytes of its owner, which have the top bit set. */
void overwrite(uint8_t *p, uint32_t length, int ending)
{
	memset(p, POISON | ending, length);
	seen.overwrites++;
	seen.bytes += length;
	seen.by_ending[ending]++;
}

void late_at_peer(uint64_t bytes, int ending)
{
	seen.late_peer += bytes;
	seen.late_by_ending[ending] += bytes;
}

/* ---- the capture: every frame that the peer's netdev receives ---- */

struct capture capture;

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

void capture_begin(void)
{
	if (!opt.capture)
		return;
	must(!pthread_create(&capture.thread, NULL, capture_run, NULL));
	while (!__atomic_load_n(&capture.ready, __ATOMIC_ACQUIRE))
		usleep(1000);
}

void capture_end(void)
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

void parse(int argc, char **argv)
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
