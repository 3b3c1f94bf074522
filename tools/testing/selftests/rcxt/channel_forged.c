// SPDX-License-Identifier: GPL-2.0
/*
 * Forged packets: the server has a channel and memory.  The client, on another host, knows their
 * numbers and keys, and runs rcxt_forge to send packets with one wrong field.  No byte may be
 * written, the right counter must rise by the number of packets, and the channel must still work.
 * If the wrong field is a PVO, the owner must get an event.
 *
 *   channel_forged -d DEVICE -g GID-INDEX [-p TCP-PORT] [-c COUNT] [HOST]
 *   channel_forged ... -r MILLIONS [HOST]	random packets, until MILLIONS have arrived
 *   channel_forged ... -h MILLIONS [HOST]	packets of half transfers with one wrong field, until
 *						MILLIONS of each opcode have arrived
 *
 * -c: packets of each kind (500).
 */
#include <arpa/inet.h>
#include <getopt.h>

#include "channels.h"
#include "channel_watch.h"

#define FRAMES		64
#define BOTH		(NHCADV_NOTIFY_INITIATOR | NHCADV_NOTIFY_TARGET)
#define TOTAL		4096	/* bytes of each forged transfer */
#define SEGMENT		64	/* payload bytes of each packet of a transfer: TOTAL / FRAMES */
#define CLIENT_SEED	0x10000000	/* pattern of the client's memory; the server counts seeds from 1 */
#define STEP		200000	/* random packets between two checks */
#define COUNT(a)	((int)(sizeof(a) / sizeof((a)[0])))
/* opcodes, as bits of option -o of rcxt_forge; 8 to 12: half transfers (0xcc to 0xcf, 0xde) */
#define WRITES		(1u << 1)
#define READS		(1u << 2)
#define HALF_WRITE	(1u << 8)
#define HALF_REQUEST	(1u << 9)
#define FRAMES_REQUEST	(1u << 10)
#define FRAMES_DATA	(1u << 11)
#define FRAMES_CHALLENGE (1u << 12)
#define HALF		(HALF_WRITE | HALF_REQUEST | FRAMES_REQUEST | FRAMES_DATA | FRAMES_CHALLENGE)
#define CHUNK		20000	/* packets between two checks of one kind and opcode */
#define DROP(name)	(1u << NHCADV_DROP_##name)
#define CHALLENGED	(1u << NHCADV_CHALLENGED)

/*
 * State of the server's rCxt when the forged packets arrive. WRITTEN: it has received a write.
 * ANSWERED: it has sent all payload of a half-receive read, which the client has requested by two
 * requests. READING: it waits for the payload of a half-receive read that the server has posted.
 */
enum state { WRITTEN, ANSWERED, READING };

/*
 * A kind of packets of rcxt_forge, and what must happen to each packet of this kind: the channel
 * accepts it (@lands), drops it for a reason in @why, or answers it with a challenge (CHALLENGED in
 * @why). If @why is 0 and @lands is false, the device drops the packet before it reaches a channel,
 * and counts it as @device.
 */
static const struct kind {
	const char *name;
	uint32_t opcodes;	/* mask of opcodes for rcxt_forge; 0: all */
	uint32_t why;		/* mask of the counters, one of which each packet increments */
	uint32_t told;		/* NHCADV_DROP_*: the violation that the owner gets an event for */
	enum device_drop device;
	bool lands, answers;
	enum state state;	/* state of the server's rCxt when the packets arrive */
} kinds[] = {
	{ "good", .lands = true },
	{ "channel-key", .why = DROP(KEY) },
	{ "job", .why = DROP(JOB) },
	{ "rcxt-index", .why = DROP(NO_RCXT) },
	{ "rcxt-key", .why = DROP(RCXT_KEY) },
	{ "tid", .why = DROP(STALE) },
	{ "unasked", .why = DROP(UNSOLICITED) },
	/* random bits may name another region, but never this region at the right place */
	{ "pvo-key", WRITES, .why = DROP(PVO_KEY) | DROP(PVO_JOB) | DROP(PVO_RANGE),
	  .told = NHCADV_DROP_PVO_KEY },
	{ "pvo-table", WRITES, .why = DROP(PVO_KEY), .told = NHCADV_DROP_PVO_KEY },
	{ "pvo-range", WRITES, .why = DROP(PVO_RANGE), .told = NHCADV_DROP_PVO_RANGE },
	/*
	 * the channel answers each packet with a challenge, which has no payload, so no byte of
	 * memory is sent
	 */
	{ "unvouched", .why = CHALLENGED, .answers = true },
	/* a read keeps the rCxt busy until the send engine has checked the PVO */
	{ "pvo-key", READS, .why = DROP(PVO_KEY) | DROP(PVO_JOB) | DROP(PVO_RANGE) | DROP(BUSY),
	  .told = NHCADV_DROP_PVO_KEY },
	{ "pvo-table", READS, .why = DROP(PVO_KEY) | DROP(BUSY), .told = NHCADV_DROP_PVO_KEY },
	{ "pvo-range", READS, .why = DROP(PVO_RANGE) | DROP(BUSY),
	  .told = NHCADV_DROP_PVO_RANGE, .answers = true },
	{ "pvo-key", FRAMES_REQUEST, .told = NHCADV_DROP_PVO_KEY,
	  .why = DROP(PVO_KEY) | DROP(PVO_JOB) | DROP(PVO_RANGE) | DROP(BUSY) },
	{ "pvo-table", FRAMES_REQUEST, .why = DROP(PVO_KEY) | DROP(BUSY),
	  .told = NHCADV_DROP_PVO_KEY },
	{ "pvo-range", FRAMES_REQUEST, .why = DROP(PVO_RANGE) | DROP(BUSY),
	  .told = NHCADV_DROP_PVO_RANGE, .answers = true },
	{ "repeated", .why = DROP(DUPLICATE) | DROP(STALE) },
	{ "repeated", HALF, .state = ANSWERED,
	  .why = DROP(BUSY) | DROP(STALE) | DROP(DUPLICATE) | DROP(UNSOLICITED) },
	{ "number", FRAMES_REQUEST, .state = ANSWERED, .why = DROP(DUPLICATE) },
	{ "sizes", FRAMES_REQUEST, .state = ANSWERED, .why = DROP(MISMATCH) },
	{ "repeated", HALF_WRITE | HALF_REQUEST | FRAMES_REQUEST, .state = READING,
	  .why = DROP(BUSY) | DROP(MISMATCH) },
	{ "number", FRAMES_CHALLENGE, .state = READING, .why = DROP(MISMATCH) },
	{ "sizes", FRAMES_DATA | FRAMES_CHALLENGE, .state = READING, .why = DROP(MISMATCH) },
	{ "lengths", .device = BAD_LENGTH },
	{ "random-rxeth", .why = DROP(KEY) },
};

/*
 * How packets are sent: with ICRC; with ICRC and UDP checksum; with UDP checksum only; in batches
 */
static const char * const ways[] = { "", "-c", "-b", "-b -g 16" };

static struct channel ch;
static bool client;
static uint32_t step, seed = 1, count = 500;
static uint32_t others;			/* number of another job */
static uint32_t latest;			/* number of the latest half-receive read request */
static struct nhcadv_job_mem *readable, *others_mem;
static struct {
	uint64_t readable, others;	/* PVOs of these two registrations */
} more;

/* ---- the attacker ---- */

static uint64_t forge(const char *kind, uint32_t opcodes, const char *way, uint64_t pvo,
		      uint64_t number, uint64_t token, const char *said)
{
	uint64_t rcxt = ch.there.rcxts[0];
	char address[INET6_ADDRSTRLEN], command[512];
	bool v4 = IN6_IS_ADDR_V4MAPPED((struct in6_addr *)(void *)theirs.gid.raw);
	static uint64_t random = 1;

	inet_ntop(v4 ? AF_INET : AF_INET6, theirs.gid.raw + (v4 ? 12 : 0), address,
		  sizeof(address));
	snprintf(command, sizeof(command),
		 "rcxt_forge -a %s -q %u -k %" PRIu64 " -j %u -r %u -K %u -t %u -v %" PRIu64
		 " -l %u -T %u -N %u -n %" PRIu64 " -R %" PRIu64 " -x %" PRIu64 " -o %u %s %s",
		 address, ch.there.qpn, ch.there.key, job, (uint32_t)rcxt, (uint32_t)(rcxt >> 32),
		 ch.tid, pvo, REGION, TOTAL, latest, number, random++, token,
		 opcodes ?: 127 | HALF, way, kind);
	return thrown(command, said);
}

/* ---- the target ---- */

/* Make a write of the client that must succeed, whatever was sent before. */
static void goes(const char *what)
{
	struct nhcadv_transfer t;
	uint32_t at = GUARD + 5000, size = 30000, i;

	seed++;
	memory_paint(client ? CLIENT_SEED : seed);
	exchange(&ch.tid, &i, sizeof(i));
	/* the attacker's tids count as well: continue after the highest */
	ch.tid = ch.tid > i ? ch.tid : i;
	t = transfer(&ch, 0, 5000, size, BOTH);
	meet(++step);
	if (client) {
		post_write(&ch, &ch.peer, &t, 9, 0);
		expect_transfer(ch.scq, NHCADV_WC_WRITE, 9, t.local_rcxt, t.tid, what);
	} else {
		expect_transfer(ch.rcq, NHCADV_WC_REMOTE_WRITE, t.cookie, t.local_rcxt, t.tid, what);
		memory_same(seed, 5000, size, what);
		for (i = at; i < at + size; i++)
			if (memory[i] != pattern(CLIENT_SEED, i))
				die("%s: byte %u is wrong", what, i);
	}
	meet(++step);
}

/*
 * Post a half-receive read of the peer's first TOTAL bytes. Its first request is for @length bytes.
 * If @offset is not 0, request @length bytes from @offset on, of the read that was posted before.
 */
static void read_frames(const struct nhcadv_peer *peer, uint64_t wr_id, uint32_t offset,
			uint32_t length)
{
	struct nhcadv_transfer t = {
		.local_rcxt = ch.here.rcxts[0], .remote_rcxt = ch.there.rcxts[0], .tid = ch.tid,
		.total = TOTAL, .segment = SEGMENT, .remote_pvo = ch.there.pvo,
		.notify = NHCADV_NOTIFY_INITIATOR, .cookie = wr_id,
	};

	start(&ch, wr_id, 0);
	if (offset)
		nhcadv_wr_read_frames_again(ch.dv, peer, &t, offset, length);
	else
		nhcadv_wr_read_frames(ch.dv, peer, &t, length);
	verb(ibv_wr_complete(ch.qpx));
}

/* Wait for @count frames of the half-receive read, and release them. */
static void frames(uint32_t count, const char *what)
{
	struct done d;

	while (count--) {
		d = wait_done(ch.rcq, what);
		if (d.status || d.kind != NHCADV_WC_FRAME ||
		    nhcadv_release_frame(ch.qp, d.frame))
			die("%s: no frame", what);
	}
}

/* Bring the server's rCxt into a state. The transfer of the state has the next tid. */
static void state_begin(enum state state, const char *what)
{
	struct nhcadv_peer nobody = ch.peer;
	const uint32_t half = TOTAL / 2;

	latest = state == ANSWERED;
	if (state == WRITTEN)
		return;
	ch.tid++;
	nobody.key ^= 1;
	if (state == ANSWERED && client) {
		read_frames(&ch.peer, 10, 0, half);
		frames(half / SEGMENT, what);
		read_frames(&ch.peer, 11, half, TOTAL - half);
		frames(half / SEGMENT, what);
		expect_transfer(ch.scq, NHCADV_WC_READ, 10, ch.here.rcxts[0], ch.tid, what);
	} else if (state == READING && !client) {
		/* because of a wrong key the client drops the request, so the read waits */
		read_frames(&nobody, 12, 0, TOTAL);
	}
	meet(++step);
}

/* If the server's rCxt waits for a read, cancel the read, so that the client can write again. */
static void state_end(enum state state, const char *what)
{
	if (state != READING)
		return;
	if (!client) {
		start(&ch, 13, IBV_SEND_SIGNALED);
		nhcadv_wr_cancel(ch.dv, ch.here.rcxts[0], ch.tid);
		verb(ibv_wr_complete(ch.qpx));
		expect(ch.scq, NHCADV_WC_LOCAL, 13, what);
	}
	meet(++step);
}

static void told(uint32_t why, const char *what)
{
	struct nhcadv_channel_info info;

	wait_event(IBV_EVENT_QP_ACCESS_ERR, what);
	info = channel_info(&ch);
	/* random bits may have caused another violation later */
	if (!info.violation || info.violation_rcxt != ch.here.rcxts[0])
		die("%s: violation %u (%u) of rCxt %#" PRIx64, what, info.violation, why,
		    info.violation_rcxt);
	if (info.state != IBV_QPS_RTS)
		die("%s: the channel is in error, reason %u", what, info.reason);
}

/*
 * Wait until packets were dropped since @before, and none for the last QUIET_US.
 * Return: the packets dropped, by reason.
 */
static struct drops drops_quiet(const struct drops *before)
{
	uint64_t last = 0, mark;
	struct drops now;

	do {
		mark = last;
		usleep(QUIET_US);
		now = drops_now(&ch, before);
		last = drops_sum(&now);
	} while (last != mark || !last);
	return now;
}

/*
 * Check that the counters rose by `count` in total, for allowed reasons only.
 * @lossy: packets may have been lost, so the counters may have risen by any number
 * Return: number of packets that were dropped.
 */
static uint64_t judged(const struct kind *k, const struct drops *before,
		       const struct nhcadv_channel_info *was, bool lossy, const char *what)
{
	struct nhcadv_channel_info info;
	uint64_t right = 0, all;
	struct drops now;
	int i;

	if (k->lands)
		wait_count(&ch, was, NHCADV_RECEIVED_PACKETS, NHCADV_RECEIVED_PACKETS, count, what);
	now = lossy ? drops_quiet(before) :
		      drops_wait(&ch, before, k->lands ? 0 : count, what);
	all = drops_sum(&now);
	for (i = NHCADV_DROP_FIFO; i < DROPS; i++)
		if (k->why & 1u << i)
			right += now.channel[i];
	if (!k->why && !k->lands)
		right = now.device[k->device];
	if (right != all)
		die("%s: dropped for another reason", what);
	/* some packets may be dropped because the rCxt is busy, but not all of them */
	if (k->told && !now.channel[k->told])
		die("%s: counter %s has not changed", what, drop_names[k->told]);
	if (k->told)
		told(k->told, what);
	info = channel_info(&ch);
	if (!k->answers && info.counters[NHCADV_SENT_PACKETS] != was->counters[NHCADV_SENT_PACKETS])
		die("%s: it was answered", what);
	if (k->why == CHALLENGED &&
	    (info.counters[NHCADV_SENT_PACKETS] - was->counters[NHCADV_SENT_PACKETS] != all ||
	     info.counters[NHCADV_SENT_BYTES] != was->counters[NHCADV_SENT_BYTES]))
		die("%s: %" PRIu64 " packets with %" PRIu64 " bytes have left", what,
		    info.counters[NHCADV_SENT_PACKETS] - was->counters[NHCADV_SENT_PACKETS],
		    info.counters[NHCADV_SENT_BYTES] - was->counters[NHCADV_SENT_BYTES]);
	if (k->lands && !memory_changed(seed, TOTAL))
		die("%s: it has not been written", what);
	memory_same(seed, 0, k->lands ? TOTAL : 0, what);
	return all;
}

static const char *const state_names[] = { "", ", while a read is answered", ", while a read waits" };

/*
 * The client sends @number packets of a kind, and the server checks its counters.
 * @opcodes: mask of opcodes for rcxt_forge
 * @lossy:   the network may lose some of the packets
 * Return: at the server, the number of packets that were dropped; at the client, 0.
 */
static uint64_t some(const struct kind *k, uint32_t opcodes, const char *way, uint64_t pvo,
		     uint64_t number, bool lossy, const char *what)
{
	struct nhcadv_channel_info was;
	uint64_t token = 0, came = 0;
	struct drops before;

	/* forge() passes the tid of the last transfer on the rCxt, so make a good transfer first */
	goes(what);
	memory_paint(++seed);
	state_begin(k->state, what);
	/* forged requests need a token: the attacker gets one for its own address */
	if (client && opcodes & (READS | FRAMES_REQUEST) && k->state != READING)
		token = forge("-X", 0, way, pvo, 1, 0, "# token %" SCNu64);
	meet(++step);
	was = channel_info(&ch);
	before = drops_now(&ch, NULL);
	meet(++step);
	if (client)
		ch.tid = forge(k->name, opcodes, way, pvo, number, token, "# tid %" SCNu64);
	else
		came = judged(k, &before, &was, lossy, what);
	meet(++step);
	expect_nothing(ch.scq, 0, what);
	expect_nothing(ch.rcq, 0, what);
	state_end(k->state, what);
	return came;
}

static void one(const struct kind *k, const char *way, uint64_t pvo, const char *name)
{
	char what[128];

	snprintf(what, sizeof(what), "%s%s%s, %s", name,
		 k->opcodes == READS ? " of a read" :
		 k->opcodes == FRAMES_REQUEST && !k->state ? " of a half-receive read" : "",
		 state_names[k->state], *way ? way : "ICRC");
	some(k, k->opcodes, way, pvo, count, false, what);
	if (client)
		ktap_ok("%s: %s", what, k->lands ? "a control" : "no byte written");
}

/* Packets with one fault: the memory belongs to another job, or does not grant the right */
static void others_memory(const char *way)
{
	static const struct kind of_job = { "good", .why = DROP(PVO_JOB),
					    .told = NHCADV_DROP_PVO_JOB };
	static const struct kind of_access = { "good", .why = DROP(PVO_ACCESS),
					       .told = NHCADV_DROP_PVO_ACCESS };

	one(&of_job, way, more.others, "memory of another job");
	one(&of_access, way, more.readable, "memory without write access");
}

/* ---- millions of random packets ---- */

static void millions(uint64_t wanted)
{
	static const char * const random_kinds[] = { "random-rxeth", "random-bytes" };
	uint64_t came = 0, sent = 0, last = 0, begun = now_ns(), mark;
	struct drops before = drops_now(&ch, NULL), now;
	double seconds;
	int kind;

	goes("before the random packets");
	memory_paint(++seed);
	meet(++step);
	for (kind = 0; came < wanted; kind ^= 1) {
		if (client)
			ch.tid = forge(random_kinds[kind], 0, "-b -g 32", ch.there.pvo, STEP, 0,
				       "# tid %" SCNu64);
		sent += STEP;
		meet(++step);
		if (!client) {
			/* some packets may be lost in the network: wait until no more arrive */
			do {
				mark = last;
				usleep(QUIET_US / 10);
				now = drops_now(&ch, &before);
				last = drops_sum(&now);
			} while (last != mark);
			came = last;
			tell(&came, sizeof(came));
			memory_same(seed, 0, 0, "random packets");
			expect_nothing(ch.rcq, 0, "random packets");
		} else {
			hear(&came, sizeof(came));
		}
	}
	seconds = (now_ns() - begun) / 1e9;
	if (!client) {
		drops_print(&now, "random packets");
		if (now.device[BAD_ICRC])
			die("random packets were dropped for their ICRC, which they do not have");
	}
	goes("after the random packets");
	if (client) {
		ktap_ok("random packets");
		printf("# %" PRIu64 " arrived of %" PRIu64 " in %.0f s\n", came, sent, seconds);
	}
}

/* ---- millions of packets of half transfers ---- */

/* Return: mask of the opcodes of half transfers that rcxt_forge can forge with this kind. */
static uint32_t half_opcodes(const struct kind *k)
{
	static const struct {
		const char *name;
		uint32_t opcodes;
	} all[] = {
		{ "good", 0 }, { "random-rxeth", 0 }, { "unvouched", FRAMES_REQUEST },
		{ "unasked", FRAMES_DATA | FRAMES_CHALLENGE },
	};
	int i;

	for (i = 0; i < COUNT(all); i++)
		if (!strcmp(k->name, all[i].name))
			return all[i].opcodes;
	return (k->opcodes ?: HALF) & HALF;
}

/* Send packets of one opcode, the same number of each kind, until @wanted were dropped. */
static void half_opcode(uint32_t opcode, uint32_t number, uint64_t wanted)
{
	uint64_t came, sum = 0, all = 0, share;
	int i, fitting = 0;
	char what[128];

	for (i = 0; i < COUNT(kinds); i++)
		fitting += !!(half_opcodes(&kinds[i]) & opcode);
	share = wanted / fitting + 1;
	for (i = 0; i < COUNT(kinds); i++) {
		if (!(half_opcodes(&kinds[i]) & opcode))
			continue;
		snprintf(what, sizeof(what), "%s of opcode %#x%s", kinds[i].name, number,
			 state_names[kinds[i].state]);
		for (came = 0; came < share; ) {
			sum = some(&kinds[i], opcode, "-b -g 16", ch.there.pvo, CHUNK, true, what);
			if (client)
				hear(&sum, sizeof(sum));
			else
				tell(&sum, sizeof(sum));
			came += sum;
		}
		all += came;
		if (client)
			ktap_ok("%s: no byte written, no frame, no completion", what);
		else
			printf("# %s: %" PRIu64 " dropped\n", what, came);
	}
	if (client)
		printf("# %" PRIu64 " packets of opcode %#x were dropped\n", all, number);
}

static void half_millions(uint64_t wanted)
{
	static const uint32_t numbers[] = { 0xcc, 0xcd, 0xce, 0xcf, 0xde };
	int i;

	for (i = 0; i < COUNT(numbers); i++)
		half_opcode(HALF_WRITE << i, numbers[i], wanted);
}

int main(int argc, char **argv)
{
	uint64_t random = 0, half = 0;
	int letter, i, way;

	setvbuf(stdout, NULL, _IOLBF, 0);
	program = "channel_forged";
	job = 4711;
	others = 815;
	while ((letter = getopt(argc, argv, "d:g:p:c:r:h:")) != -1)
		switch (letter) {
		case 'c':
			count = atoi(optarg);
			break;
		case 'r':
			random = atof(optarg) * 1000000;
			break;
		case 'h':
			half = atof(optarg) * 1000000;
			break;
		default:
			if (peer_option(letter))
				break;
			fputs("usage: channel_forged [-d DEVICE] [-g GID-INDEX] [-p TCP-PORT] [-c COUNT]\n"
			      "                      [-r MILLIONS] [-h MILLIONS] [HOST]\n", stderr);
			return 2;
		}
	peer_host = argv[optind];
	client = peer_host;
	open_device();
	sock_open();
	say_hello();
	fcntl(context->async_fd, F_SETFL, fcntl(context->async_fd, F_GETFL) | O_NONBLOCK);
	memory_make();
	channel_make(&ch, job, FRAMES);
	must(ch.mem = memory_register(job));
	/* the channel has only one rCxt, so any other index is not the channel's */
	verb(nhcadv_acquire_rcxts(ch.qp, ch.here.rcxts, 1));
	ch.here.pvo = ch.mem->pvo;
	channel_meet(&ch);
	/*
	 * these two registrations cover the same pages as ch.mem, but do not let the channel's peer
	 * write
	 */
	must(others_mem = memory_register(others));
	must(readable = nhcadv_reg_job_mem(context, job, memory + GUARD, REGION,
					   IBV_ACCESS_REMOTE_READ));
	more.readable = readable->pvo;
	more.others = others_mem->pvo;
	tell(&more, sizeof(more));
	hear(&more, sizeof(more));

	if (random)
		millions(random);
	if (half)
		half_millions(half);
	for (way = 0; !random && !half && way < COUNT(ways); way++) {
		for (i = 0; i < COUNT(kinds); i++)
			one(&kinds[i], ways[way], ch.there.pvo, kinds[i].name);
		others_memory(ways[way]);
	}
	goes("in the end");
	if (client)
		ktap_ok("a transfer succeeds at the end");
	verb(nhcadv_dereg_job_mem(others_mem));
	verb(nhcadv_dereg_job_mem(readable));
	channel_close(&ch);
	verb(ibv_dealloc_pd(pd));
	verb(ibv_close_device(context));
	return ktap_end();
}
