// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Channels share a device fairly (deficit round robin).  All channels always have writes to send.
 * The test counts the packets that each sends in the same time.  No host needs to receive these
 * packets: the writes request no notice, so their work requests complete when they are sent.
 *
 *   channel_drr [-d DEVICE] [-g GID-INDEX] [-a ADDRESS-OF-NOBODY]
 *
 * -a: send to this IPv4 address, over a slow netdev.
 */
#include <arpa/inet.h>
#include <getopt.h>

#include "channels.h"

#define FRAMES		16
#define LARGEST		(16u << 20)
#define MANY		16
#define WINDOW		60000	/* packets of all channels together */
#define SLOW_WINDOW	15000	/* packets on a slow link: takes some seconds */

static struct channel from[MANY], to[MANY];
static struct nhcadv_job_mem *mem;	/* source and target of all writes */
static uint8_t *buf;
static const char *nowhere;	/* the address of -a, or NULL */

static void open_one(uint32_t i, uint32_t quantum)
{
	struct ibv_ah_attr attr = { .is_global = 1, .port_num = 1,
		.grh = { .dgid = theirs.gid, .sgid_index = gid_index, .hop_limit = 64 } };
	struct nhcadv_channel_attr change = { .quantum = quantum };

	channel_make(&from[i], job, FRAMES);
	channel_make(&to[i], job, FRAMES);
	verb(nhcadv_acquire_rcxts(from[i].qp, from[i].here.rcxts, RCXTS));
	verb(nhcadv_acquire_rcxts(to[i].qp, to[i].here.rcxts, RCXTS));
	verb(nhcadv_modify_channel(from[i].qp, &change, NHCADV_CHANNEL_QUANTUM));
	from[i].here.pvo = mem->pvo;
	to[i].here.pvo = mem->pvo;
	from[i].there = to[i].here;
	from[i].peer = (struct nhcadv_peer){ .qpn = to[i].here.qpn, .key = to[i].here.key };
	must(from[i].peer.ah = ibv_create_ah(pd, &attr));
}

static void open_all(uint32_t n, uint32_t first, uint32_t others)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		open_one(i, i ? others : first);
}

static void close_all(uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n; i++) {
		channel_close(&from[i]);
		channel_close(&to[i]);
	}
}

static void post(struct channel *c, uint32_t i)
{
	struct nhcadv_transfer t = transfer(c, i, 0, LARGEST, 0);

	post_write(c, &c->peer, &t, i, IBV_SEND_SIGNALED);
}

/*
 * Post a write for each completed one. Handle at most RCXTS completions of each channel: if engines
 * and program share a CPU, the doorbell may send the write before it returns, so the loop would not
 * end.
 * Return: true if each channel still had writes to send.
 */
static bool feed(uint32_t n)
{
	bool none_dry = true;
	uint32_t i, k;
	struct done d;

	for (i = 0; i < n; i++) {
		for (k = 0; k < RCXTS && poll_done(from[i].scq, &d); k++) {
			if (d.status)
				die("a write fails: %s", ibv_wc_status_str(d.status));
			post(&from[i], d.wr_id);
		}
		none_dry &= k < RCXTS;
	}
	return none_dry;
}

static uint64_t sent(struct channel *c)
{
	return channel_info(c).counters[NHCADV_SENT_PACKETS];
}

/*
 * Count the packets of each channel while all channels together send a window of packets.  If a
 * channel had no write to send meanwhile, because the program did not run for a while, the counts
 * say nothing about shares: begin again.
 */
static void measure(uint32_t n, uint64_t *got)
{
	uint64_t begin[MANY], all, end = now_ns() + patience_s() * 1000000000ULL;
	uint64_t window = nowhere ? SLOW_WINDOW : WINDOW;
	bool none_dry;
	uint32_t i;

	for (i = 0; i < n * RCXTS; i++)
		post(&from[i / RCXTS], i % RCXTS);
	do {
		/*
		 * feed all channels before the first count, because the first channels have sent
		 * writes while the others had none
		 */
		feed(n);
		for (i = 0; i < n; i++)
			begin[i] = sent(&from[i]);
		do {
			none_dry = feed(n);
			for (i = 0, all = 0; i < n; i++) {
				got[i] = sent(&from[i]) - begin[i];
				all += got[i];
			}
			if (now_ns() > end)
				die("%" PRIu64 " packets in %u s", all, patience_s());
		} while (none_dry && all < window);
	} while (!none_dry || !feed(n));
}

static void quanta(void)
{
	uint64_t got[MANY];
	double ratio;

	open_all(2, 64, 8);
	measure(2, got);
	ratio = (double)got[0] / got[1];
	printf("# quanta of 64 and 8 packets: %" PRIu64 " and %" PRIu64 " packets, 1 to %.2f\n",
	       got[0], got[1], ratio);
	/*
	 * on a slow link, each channel sends until it reaches the limit of packets in the stack;
	 * this limit is the same for all channels, so the quanta have no effect
	 */
	if (!nowhere && (ratio < 4 || ratio > 16))
		die("quanta of 8 to 1 give shares of %.2f to 1", ratio);
	close_all(2);
}

static void equal(void)
{
	uint64_t got[MANY];
	double sum = 0, squares = 0, jain;
	uint32_t i;

	open_all(MANY, 16, 16);
	measure(MANY, got);
	for (i = 0; i < MANY; i++) {
		sum += got[i];
		squares += (double)got[i] * got[i];
	}
	jain = sum * sum / (MANY * squares);
	printf("# %u channels: Jain's index %.4f\n", MANY, jain);
	if (jain < 0.9)
		die("%u channels have shares with Jain's index %.3f", MANY, jain);
	close_all(MANY);
}

/* A packet posted after writes of 16 MiB leaves soon, not after they have been sent. */
static void packet_amid(void)
{
	struct nhcadv_transfer t;
	uint64_t before, after, whole;
	struct done d;
	uint32_t i;

	/* without a slow link, all writes may have been sent before the packet is posted */
	if (!nowhere)
		return;
	open_all(1, 0, 0);
	for (i = 0; i < RCXTS; i++) {
		t = transfer(&from[0], i, 0, LARGEST, 0);
		post_write(&from[0], &from[0].peer, &t, i + 1, IBV_SEND_SIGNALED);
	}
	whole = RCXTS * ((LARGEST + t.segment - 1) / t.segment);
	before = sent(&from[0]);
	post_packet(&from[0], "p", 1, 1, IBV_SEND_SIGNALED);
	d = wait_done(from[0].scq, "packet after writes");
	after = sent(&from[0]);
	printf("# a packet after %u writes of 16 MiB, posted when %" PRIu64 " of their %" PRIu64
	       " packets were sent, had left at %" PRIu64 "\n", RCXTS, before, whole,
	       after);
	if (d.wr_id)
		die("packet after writes: write %" PRIu64 " completed before it", d.wr_id);
	if (after - before > whole / 8)
		die("packet after writes: it has waited for %" PRIu64 " packets", after - before);
	close_all(1);
}

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {
	{ "a packet does not wait for the long writes before it", packet_amid },
	{ "many channels have equal shares", equal },
	{ "shares are in proportion to quanta", quanta },
};

int main(int argc, char **argv)
{
	unsigned int i;
	int letter;

	setvbuf(stdout, NULL, _IOLBF, 0);
	program = "channel_drr";
	job = 4715;
	while ((letter = getopt(argc, argv, "a:d:g:")) != -1)
		switch (letter) {
		case 'a':
			nowhere = optarg;
			break;
		default:
			if (peer_option(letter))
				break;
			fputs("usage: channel_drr [-d DEVICE] [-g GID-INDEX] [-a ADDRESS-OF-NOBODY]\n", stderr);
			return 2;
		}
	open_device();
	if (nowhere) {
		memset(&theirs.gid, 0, sizeof(theirs.gid));
		memset(theirs.gid.raw + 10, 0xff, 2);
		must(inet_pton(AF_INET, nowhere, theirs.gid.raw + 12) == 1);
	}
	buf = pages(LARGEST);
	must(mem = nhcadv_reg_job_mem(context, job, buf, LARGEST, IBV_ACCESS_LOCAL_WRITE |
				      IBV_ACCESS_REMOTE_WRITE));
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		cases[i].run();
		ktap_ok("%s", cases[i].name);
	}
	verb(nhcadv_dereg_job_mem(mem));
	verb(ibv_dealloc_pd(pd));
	verb(ibv_close_device(context));
	return ktap_end();
}
