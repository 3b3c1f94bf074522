// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * All rCxts of a device are in use at the same time, over many channels.  Each gets the first of
 * two packets of a write, after which no transfer may be complete.  Then the second packets arrive,
 * and each transfer must complete once.  At the end each rCxt has a bitmap, as for transfers of
 * many packets.
 *
 *   many_rcxts [-d DEVICE] [-g GID-INDEX] [-p TCP-PORT] [-n RCXTS] [HOST]
 *
 * The client is the initiator.
 */
#include <getopt.h>

#include "channels.h"

#define CHANNELS	64
#define SEGMENT		64u
#define TOTAL		(2 * SEGMENT)
#define PACKETS		65u		/* more than the bits in an rCxt */
#define FRAMES		16
#define WR		256
#define QUIET_NS	500000000ULL

struct one {
	struct channel c;		/* all channels share two CQs */
	uint64_t *rcxts, *theirs;
	uint32_t count, first;
};

struct word {
	uint32_t qpn, key, count, reserved;
	uint64_t pvo;
};

static struct one ones[CHANNELS];
static uint32_t total = 100000;
static struct ibv_cq_ex *scq, *rcq;
static struct nhcadv_job_mem *mem;
static uint64_t their_pvo, posted, parts_again;
static uint8_t *buf;
static uint8_t *completed;	/* how often the transfer of each rCxt has completed */
static uint32_t complete;

/* ---- creation ---- */

static void acquire(struct one *o)
{
	struct nhcadv_device_attr attr = {};
	uint32_t i, n;

	verb(nhcadv_query_device(context, &attr));
	must(o->rcxts = calloc(o->count, sizeof(*o->rcxts)));
	must(o->theirs = calloc(o->count, sizeof(*o->theirs)));
	for (i = 0; i < o->count; i += n) {
		n = o->count - i < attr.max_rcxts ? o->count - i : attr.max_rcxts;
		verb(nhcadv_acquire_rcxts(o->c.qp, o->rcxts + i, n));
	}
}

static void make_one(struct one *o)
{
	struct ibv_qp_init_attr_ex init = {
		.qp_type = IBV_QPT_DRIVER, .send_cq = ibv_cq_ex_to_cq(scq),
		.recv_cq = ibv_cq_ex_to_cq(rcq),
		.cap = { .max_send_wr = WR }, .comp_mask = IBV_QP_INIT_ATTR_PD, .pd = pd,
	};
	struct nhcadv_channel_init_attr attr = { .job = job, .frames = FRAMES };

	must(o->c.qp = nhcadv_create_channel(context, &init, &attr));
	must(o->c.qpx = ibv_qp_to_qp_ex(o->c.qp));
	must(o->c.dv = nhcadv_qp_ex_from_ibv_qp_ex(o->c.qpx));
	o->c.scq = scq;
	o->c.rcq = rcq;
	acquire(o);
}

static void make_all(void)
{
	struct ibv_cq_init_attr_ex attr = { .cqe = total, .wc_flags = IBV_WC_EX_WITH_BYTE_LEN };
	uint32_t i, first = 0;

	must(scq = ibv_create_cq_ex(context, &attr));
	must(rcq = ibv_create_cq_ex(context, &attr));
	for (i = 0; i < CHANNELS; i++) {
		ones[i].first = first;
		ones[i].count = total / CHANNELS + (i < total % CHANNELS);
		first += ones[i].count;
		make_one(&ones[i]);
	}
	must(completed = calloc(total, 1));
	buf = pages(total * TOTAL);
	must(mem = nhcadv_reg_job_mem(context, job, buf, total * TOTAL, IBV_ACCESS_LOCAL_WRITE |
				      IBV_ACCESS_REMOTE_WRITE));
	if (peer_host)
		paint(buf, total * TOTAL, 1);
}

/* The server sends the client the numbers of a channel and the address of its memory. */
static void meet_one(struct one *o)
{
	struct ibv_ah_attr attr = { .is_global = 1, .port_num = 1,
		.grh = { .dgid = theirs.gid, .sgid_index = gid_index, .hop_limit = 64 } };
	struct word word = { .qpn = o->c.qp->qp_num, .key = channel_info(&o->c).key,
			     .count = o->count, .pvo = mem->pvo };

	must(o->c.peer.ah = ibv_create_ah(pd, &attr));
	if (!peer_host) {
		tell(&word, sizeof(word));
		tell(o->rcxts, o->count * sizeof(*o->rcxts));
		return;
	}
	hear(&word, sizeof(word));
	if (word.count != o->count)
		die("the other side has %u rCxts in a channel, not %u", word.count, o->count);
	hear(o->theirs, o->count * sizeof(*o->theirs));
	o->c.peer.qpn = word.qpn;
	o->c.peer.key = word.key;
	their_pvo = word.pvo;
}

/* A further rCxt must be refused, because all are in use. */
static void all_taken(void)
{
	uint32_t i, have = 0;
	uint64_t id;

	for (i = 0; i < CHANNELS; i++)
		have += channel_info(&ones[i].c).rcxts;
	if (have != total)
		die("the channels have %u rCxts, not %u", have, total);
	if (nhcadv_acquire_rcxts(ones[0].c.qp, &id, 1) != ENOSPC)
		die("%u rCxts are not all rCxts of the device", total);
}

/* ---- transfers, numbered over all channels ---- */

static struct one *one_of(uint32_t n)
{
	uint32_t i = CHANNELS - 1;

	while (ones[i].first > n)
		i--;
	return &ones[i];
}

static struct nhcadv_transfer nth(const struct one *o, uint32_t n)
{
	return (struct nhcadv_transfer){
		.local_rcxt = o->rcxts[n - o->first], .remote_rcxt = o->theirs[n - o->first],
		.local_pvo = mem->pvo + n * TOTAL, .remote_pvo = their_pvo + n * TOTAL,
		.cookie = n, .tid = 1, .total = TOTAL, .segment = SEGMENT,
		.notify = NHCADV_NOTIFY_INITIATOR | NHCADV_NOTIFY_TARGET,
	};
}

static void poll_all(struct ibv_cq_ex *cq, enum nhcadv_wc_kind kind)
{
	struct done d;

	while (poll_done(cq, &d)) {
		if (d.status || d.kind != kind || d.tid != 1 || d.wr_id >= total)
			die("completion %#x of %" PRIu64 ", tid %u: %s", d.kind, d.wr_id, d.tid,
			    ibv_wc_status_str(d.status));
		if (completed[d.wr_id]++)
			die("transfer %" PRIu64 " completes twice", d.wr_id);
		complete++;
	}
}

enum what { WRITE_LOST, PART_0, PART_1, READ_LOST };

static void post(uint32_t n, enum what what)
{
	struct one *o = one_of(n);
	struct nhcadv_transfer t = nth(o, n);
	struct nhcadv_peer lost = o->c.peer;
	uint64_t end = now_ns() + patience_s() * 1000000000ULL;
	int ret;

	lost.key ^= 1;
	do {
		start(&o->c, n, 0);
		if (what == WRITE_LOST) {
			nhcadv_wr_write(o->c.dv, &lost, &t);
		} else if (what == READ_LOST) {
			t.tid = 2;
			t.total = PACKETS * SEGMENT;
			t.local_pvo = mem->pvo;
			nhcadv_wr_read(o->c.dv, &lost, &t);
		} else {
			nhcadv_wr_retransmit(o->c.dv, &o->c.peer, &t,
					  what == PART_0 ? 0 : SEGMENT, SEGMENT);
		}
		ret = ibv_wr_complete(o->c.qpx);
		poll_all(scq, NHCADV_WC_WRITE);
		if (ret == ENOMEM)
			usleep(20);
	} while (ret == ENOMEM && now_ns() < end);
	verb(ret);
	posted++;
}

/*
 * On the server.  Return: true if this part of transfer @n has arrived.  While the first part is
 * awaited, no byte of the second part may have arrived.
 */
static bool part_is_here(uint32_t n, enum what part)
{
	const uint8_t *p = buf + n * TOTAL, *q = p + (part == PART_0 ? 0 : SEGMENT);
	uint32_t i, at = q - buf;

	if (part == PART_0 && differs(p + SEGMENT, SEGMENT, 0) >= 0)
		die("a packet that was not sent is in the memory of transfer %u", n);
	for (i = 0; i < SEGMENT; i++)
		if (q[i] != pattern(1, at + i))
			return false;
	return true;
}

/*
 * On the server: wait for a part of all transfers, until no part has arrived for QUIET_NS.  Return:
 * the number of transfers whose part is missing; @which: the numbers of these transfers.
 */
static uint32_t missing_parts(uint32_t *which, enum what part)
{
	uint64_t quiet = now_ns() + QUIET_NS;
	uint32_t n, missing, before = total;

	do {
		missing = 0;
		for (n = 0; n < total; n++)
			if (!part_is_here(n, part))
				which[missing++] = n;
		if (missing < before)
			quiet = now_ns() + QUIET_NS;
		before = missing;
		poll_all(rcq, NHCADV_WC_REMOTE_WRITE);
	} while (missing && now_ns() < quiet);
	return missing;
}

/* Send a part of every transfer, and send it again where it was lost. */
static void bring(enum what part)
{
	uint32_t *which = calloc(total, sizeof(*which)), count = total, i;

	must(which);
	if (peer_host)
		for (i = 0; i < total; i++)
			post(i, part);
	for (;;) {
		meet(part);
		if (!peer_host) {
			count = missing_parts(which, part);
			tell(&count, sizeof(count));
			tell(which, count * sizeof(*which));
		} else {
			hear(&count, sizeof(count));
			hear(which, count * sizeof(*which));
			for (i = 0; i < count; i++)
				post(which[i], part);
			parts_again += count;
		}
		if (!count)
			break;
	}
	free(which);
}

/* Probe a transfer: a lost notice is not sent again, but the target answers a probe. */
static void ask(uint32_t n)
{
	struct one *o = one_of(n);
	struct nhcadv_transfer t = nth(o, n);
	const struct nhcadv_frame *f;
	struct done d;

	start(&o->c, n, 0);
	nhcadv_wr_probe(o->c.dv, &o->c.peer, &t, 0);
	verb(ibv_wr_complete(o->c.qpx));
	d = wait_done(rcq, "status");
	must(f = nhcadv_frame(o->c.qp, d.frame));
	if (d.kind != NHCADV_WC_FRAME || f->status != NHCADV_TRANSFER_COMPLETE)
		die("transfer %u: status %u instead of complete", n, f->status);
	verb(nhcadv_release_frame(o->c.qp, d.frame));
}

static void all_complete(void)
{
	uint64_t end = now_ns() + 1000000000ULL;
	uint32_t n, asked = 0;

	while (complete < total && now_ns() < end)
		poll_all(peer_host ? scq : rcq, peer_host ? NHCADV_WC_WRITE : NHCADV_WC_REMOTE_WRITE);
	if (!peer_host && complete != total)
		die("%u of %u transfers are complete at the target", complete, total);
	for (n = 0; peer_host && n < total; n++)
		if (!completed[n]) {
			ask(n);
			asked++;
		}
	if (peer_host)
		printf("# %u transfers on %u channels complete, each once; %" PRIu64
		       " packets sent again, %u notices lost\n", total, CHANNELS, parts_again,
		       asked);
}

/* ---- bitmaps ---- */

/*
 * Return: number of objects in use in the slab caches that may contain the bitmaps of PACKETS
 * packets: kmalloc-16 and, if bitmaps are charged to a cgroup, kmalloc-cg-16.
 */
static uint64_t bitmaps(void)
{
	FILE *f = fopen("/proc/slabinfo", "r");
	unsigned long objects;
	char line[512], name[64];
	uint64_t all = 0;

	must(f);
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "%63s %lu", name, &objects) == 2 &&
		    !strncmp(name, "kmalloc-", 8) && !strcmp(name + strlen(name) - 3, "-16") &&
		    !strstr(name, "dma") && !strstr(name, "rcl"))
			all += objects;
	fclose(f);
	return all;
}

static void all_with_bitmaps(void)
{
	uint64_t before = bitmaps(), then, after, sent[CHANNELS];
	uint32_t i, n;

	for (i = 0; i < CHANNELS; i++)
		sent[i] = channel_info(&ones[i].c).counters[NHCADV_SENT_PACKETS];
	for (n = 0; n < total; n++)
		post(n, READ_LOST);
	/* a channel executes its requests one after the other, so wait for the request of the last */
	for (i = 0; i < CHANNELS; i++) {
		uint64_t end = now_ns() + patience_s() * 1000000000ULL;

		while (channel_info(&ones[i].c).counters[NHCADV_SENT_PACKETS] - sent[i] <
		       ones[i].count)
			if (now_ns() < end)
				usleep(1000);
			else
				die("channel %u has not requested all its reads", i);
	}
	then = bitmaps();
	for (i = 0; i < CHANNELS; i++) {
		uint32_t at, some;

		for (at = 0; at < ones[i].count; at += some) {
			some = ones[i].count - at < 1000 ? ones[i].count - at : 1000;
			verb(nhcadv_release_rcxts(ones[i].c.qp, ones[i].rcxts + at, some));
		}
	}
	after = bitmaps();
	printf("# bitmaps of transfers of %u packets: %" PRIu64 " objects of 16 bytes more, %" PRIu64
	       " after release\n", PACKETS, then - before, after > before ? after - before : 0);
	if (then < before + total * 9ULL / 10)
		die("%u rCxts that wait for %u packets have %" PRId64 " bitmaps", total,
		    PACKETS, (int64_t)(then - before));
	if (after > before + total / 20)
		die("%" PRIu64 " bitmaps are left after the rCxts were released", after - before);
}

int main(int argc, char **argv)
{
	uint32_t i, n;
	int letter;

	setvbuf(stdout, NULL, _IOLBF, 0);
	program = "many_rcxts";
	job = 4713;
	while ((letter = getopt(argc, argv, "d:g:p:n:")) != -1)
		switch (letter) {
		case 'n':
			total = atoi(optarg);
			break;
		default:
			if (peer_option(letter))
				break;
			fputs("usage: many_rcxts [-d DEVICE] [-g GID-INDEX] [-p TCP-PORT] [-n RCXTS] "
			      "[HOST]\n", stderr);
			return 2;
		}
	peer_host = argv[optind];
	open_device();
	sock_open();
	say_hello();
	make_all();
	for (i = 0; i < CHANNELS; i++)
		meet_one(&ones[i]);
	all_taken();
	for (n = 0; peer_host && n < total; n++)
		post(n, WRITE_LOST);
	bring(PART_0);
	if (complete)
		die("%u transfers are complete of which only half has arrived", complete);
	printf("# %u transfers on %u channels are in progress\n", total, CHANNELS);
	bring(PART_1);
	all_complete();
	meet(100);
	if (peer_host)
		all_with_bitmaps();
	for (i = 0; i < CHANNELS; i++) {
		verb(ibv_destroy_qp(ones[i].c.qp));
		verb(ibv_destroy_ah(ones[i].c.peer.ah));
	}
	verb(nhcadv_dereg_job_mem(mem));
	verb(ibv_destroy_cq(ibv_cq_ex_to_cq(scq)));
	verb(ibv_destroy_cq(ibv_cq_ex_to_cq(rcq)));
	verb(ibv_dealloc_pd(pd));
	verb(ibv_close_device(context));
	meet(101);
	return 0;
}
