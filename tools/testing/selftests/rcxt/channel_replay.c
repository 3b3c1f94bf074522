// SPDX-License-Identifier: GPL-2.0
/*
 * Packets of channels are recorded, and both hosts send them again when they are stale.  No byte
 * may be written, and counters must show why.  The client writes to the server, reads from it and
 * sends packets to it, also by half transfers.  Each host records all packets, and replays its own.
 *
 *   channel_replay -d DEVICE -g GID-INDEX -n NETDEV -f FOLDER [HOST]
 *   channel_replay ... -a [HOST]		second run, after the module was reloaded
 */
#include <arpa/inet.h>
#include <getopt.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#define RCXTS	7
#define MEMORY	(4u << 20)
#define SEND_WR	16
#include "channels.h"
#include "channel_watch.h"

#define FRAMES		64
#define STRIDE		(256u << 10)
#define COUNT(a)	((int)(sizeof(a) / sizeof((a)[0])))
#define BOTH		(NHCADV_NOTIFY_INITIATOR | NHCADV_NOTIFY_TARGET)
#define OTHER_USER	65534
#define FORGED		200

#define PART		1024	/* payload bytes of each packet of a half transfer */

/*
 * TO_FRAMES and FROM_MEMORY: half-receive write and read, whose packets go into frames of the server
 * or of the client.  ASK: half-send read, which the server's program answers
 */
enum what { PACKET, WRITE, READ, PROBE, TO_FRAMES, FROM_MEMORY, ASK };

/* Operations of the client during the recording; a probe queries the write before it. */
static const struct operation {
	enum what what;
	uint32_t rcxt, total, notify;
} operations[] = {
	{ WRITE, 0, 200000, BOTH },
	{ PROBE, 0, 0, 0 },
	{ PACKET, 0, 100, 0 },
	{ WRITE, 0, 1, NHCADV_NOTIFY_INITIATOR },
	{ WRITE, 0, 0, BOTH },
	{ WRITE, 1, 1000, NHCADV_NOTIFY_TARGET },
	{ WRITE, 1, 150000, NHCADV_NOTIFY_INITIATOR },
	{ PROBE, 1, 0, 0 },
	{ READ, 2, 100000, BOTH },
	{ PACKET, 0, 0, 0 },
	{ READ, 2, 5, NHCADV_NOTIFY_INITIATOR },
	{ WRITE, 3, 30000, BOTH },
	{ READ, 3, 64000, BOTH },
	{ TO_FRAMES, 4, 5000, BOTH },
	{ TO_FRAMES, 4, 20000, BOTH },
	{ FROM_MEMORY, 5, 3000, BOTH },
	{ FROM_MEMORY, 5, 30000, BOTH },
	{ ASK, 6, 1, NHCADV_NOTIFY_INITIATOR },
	{ ASK, 6, 7000, BOTH },
	{ PACKET, 0, 200, 0 },
};

/* How the other side must count the packets of one side when they are replayed */
struct account {
	uint64_t sent, frames, answers;
	struct drops drops;
};

/* Data for the second run, after the module was reloaded; a file for each side */
struct legacy {
	struct address there;
	uint64_t sent;
	uint32_t qpn;
};

static struct channel ch;
static const char *netdev = "eth0", *folder = ".";
static bool client, afterwards;
static uint32_t step, seed;
static struct account accounts[2];		/* index 0: sent by the client; 1: by the server */
static uint8_t bytes[200];

static void say(const char *what)
{
	expect_nothing(ch.scq, 0, what);
	meet(++step);
	if (client)
		ktap_ok("%s", what);
}

static void open_channel(void)
{
	channel_make(&ch, job, FRAMES);
	must(ch.mem = memory_register(job));
	verb(nhcadv_acquire_rcxts(ch.qp, ch.here.rcxts, RCXTS));
	ch.here.pvo = ch.mem->pvo;
	channel_meet(&ch);
}

/* ---- recording ---- */

static int record_begin(const char *name, FILE **said)
{
	char file[256], line[128] = "";
	int ends[2], pid;

	snprintf(file, sizeof(file), "%s/%s", folder, name);
	must(!pipe(ends));
	pid = fork();
	must(pid >= 0);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(ends[1], 1);
		execlp("rcxt_replay", "rcxt_replay", "record", netdev, file, NULL);
		_exit(127);
	}
	close(ends[1]);
	must(*said = fdopen(ends[0], "r"));
	if (!fgets(line, sizeof(line), *said) || strcmp(line, "recording\n"))
		die("rcxt_replay does not record: %s", line);
	return pid;
}

static void record_end(int pid, FILE *said)
{
	int status;

	/* packets that were posted must have left */
	usleep(QUIET_US);
	must(!kill(pid, SIGINT) && waitpid(pid, &status, 0) == pid);
	fclose(said);
	if (status)
		die("rcxt_replay record ended with %#x", status);
}

static uint64_t replay(const char *name)
{
	char command[512], mac[32];

	netdev_mac(netdev, mac, sizeof(mac));
	snprintf(command, sizeof(command), "rcxt_replay replay %s %s/%s %s", netdev, folder, name,
		 mac);
	return thrown(command, "%" SCNu64 " packets replayed");
}

/* ---- the run ---- */

static uint32_t packets_of(const struct nhcadv_transfer *t)
{
	return t->total ? (t->total - 1) / t->segment + 1 : 1;
}

static bool is_transfer(enum what what)
{
	return what != PACKET && what != PROBE;
}

static bool is_last(int number)
{
	int i;

	for (i = number + 1; i < COUNT(operations); i++)
		if (is_transfer(operations[i].what) &&
		    operations[i].rcxt == operations[number].rcxt)
			return false;
	return true;
}

/* Count what a replay causes: an rCxt stores only its last tid, so earlier transfers are stale. */
static void account(int number, const struct nhcadv_transfer *t)
{
	const struct operation *o = &operations[number];
	struct account *mine = &accounts[0], *theirs = &accounts[1];
	int again = is_last(number) ? NHCADV_DROP_DUPLICATE : NHCADV_DROP_STALE;

	switch (o->what) {
	case PACKET:
		mine->sent++;
		mine->frames++;
		break;
	case PROBE:
		mine->sent++;
		mine->answers++;
		theirs->sent++;
		theirs->frames++;
		break;
	case WRITE:
	case TO_FRAMES:
		mine->sent += packets_of(t);
		mine->drops.channel[again] += packets_of(t);
		if (o->notify & NHCADV_NOTIFY_INITIATOR) {
			theirs->sent++;
			theirs->drops.channel[again]++;
		}
		break;
	case READ:
	case FROM_MEMORY:
	case ASK:
		mine->sent++;
		mine->drops.channel[NHCADV_DROP_STALE]++;
		theirs->sent += packets_of(t);
		theirs->drops.channel[again] += packets_of(t);
		if (o->notify & NHCADV_NOTIFY_TARGET) {
			mine->sent++;
			mine->drops.channel[again]++;
		}
		break;
	}
}

static void take_frame(const char *what)
{
	struct done d = wait_done(ch.rcq, what);

	if (d.kind != NHCADV_WC_FRAME)
		die("%s: completion %#x instead of a frame", what, d.kind);
	verb(nhcadv_release_frame(ch.qp, d.frame));
}

static void take_frames(uint32_t count, const char *what)
{
	while (count--)
		take_frame(what);
}

static bool writes(enum what what)
{
	return what == WRITE || what == TO_FRAMES;
}

static void initiate(const struct operation *o, const struct nhcadv_transfer *t)
{
	switch (o->what) {
	case PACKET:
		post_packet(&ch, bytes, o->total, 0, IBV_SEND_SIGNALED);
		expect(ch.scq, NHCADV_WC_LOCAL, 0, "packet");
		break;
	case PROBE:
		post_probe(&ch, t, 0, 0);
		take_frame("status");
		break;
	case WRITE:
		post_write(&ch, &ch.peer, t, 1, IBV_SEND_SIGNALED);
		break;
	case READ:
		start(&ch, 1, IBV_SEND_SIGNALED);
		nhcadv_wr_read(ch.dv, &ch.peer, t);
		verb(ibv_wr_complete(ch.qpx));
		break;
	case TO_FRAMES:
		start(&ch, 1, IBV_SEND_SIGNALED);
		nhcadv_wr_write_frames(ch.dv, &ch.peer, t);
		verb(ibv_wr_complete(ch.qpx));
		break;
	case FROM_MEMORY:
		start(&ch, 1, IBV_SEND_SIGNALED);
		nhcadv_wr_read_frames(ch.dv, &ch.peer, t, t->total);
		verb(ibv_wr_complete(ch.qpx));
		take_frames(packets_of(t), "half-receive read");
		break;
	case ASK:
		start(&ch, 1, IBV_SEND_SIGNALED);
		nhcadv_wr_ask(ch.dv, &ch.peer, t);
		verb(ibv_wr_complete(ch.qpx));
		break;
	}
	if (!is_transfer(o->what))
		return;
	if (o->notify & NHCADV_NOTIFY_INITIATOR)
		expect_both(ch.scq, 1, writes(o->what) ? NHCADV_WC_WRITE : NHCADV_WC_READ, 1,
			    t->local_rcxt, t->tid, "transfer");
	else
		expect(ch.scq, NHCADV_WC_LOCAL, 1, "transfer");
}

/* Take the request of a half-send read, and send all packets of the answer. */
static void answer(const struct nhcadv_transfer *asked)
{
	struct nhcadv_transfer t = *asked;
	struct done d = wait_done(ch.rcq, "request");
	const struct nhcadv_frame *frame = nhcadv_frame(ch.qp, d.frame);
	struct ibv_data_buf buf;
	uint32_t offset;

	if (d.kind != NHCADV_WC_FRAME || !frame || frame->kind != NHCADV_FRAME_REQUEST)
		die("no request");
	t.remote_pvo = nhcadv_frame_request(frame).reply_pvo;
	t.local_pvo = 0;
	t.notify = 0;
	verb(nhcadv_release_frame(ch.qp, d.frame));
	for (offset = 0; offset < t.total; offset += t.segment) {
		buf.addr = memory + offset;
		buf.length = t.total - offset < t.segment ? t.total - offset : t.segment;
		start(&ch, 1, 0);
		nhcadv_wr_answer(ch.dv, &ch.peer, &t, offset, 1, &buf);
		verb(ibv_wr_complete(ch.qpx));
	}
}

/* The server's part of an operation */
static void respond(const struct operation *o, const struct nhcadv_transfer *t)
{
	if (o->what == PACKET)
		take_frame("packet");
	if (o->what == TO_FRAMES)
		take_frames(packets_of(t), "half-receive write");
	if (o->what == ASK)
		answer(t);
	if (is_transfer(o->what) && o->notify & NHCADV_NOTIFY_TARGET)
		expect(ch.rcq, writes(o->what) ? NHCADV_WC_REMOTE_WRITE : NHCADV_WC_REMOTE_READ,
		       t->cookie, "transfer");
}

/* The first read may be challenged: one packet more from each side, which is stale in a replay. */
static void account_challenge(struct drops *right, const struct drops *before)
{
	uint64_t mine = drops_now(&ch, before).channel[NHCADV_CHALLENGED], theirs;
	int i;

	exchange(&mine, &theirs, sizeof(mine));
	if ((client ? theirs : mine) > 1 || (client ? mine : theirs))
		die("challenges: %" PRIu64 ", %" PRIu64, mine, theirs);
	right->channel[NHCADV_CHALLENGED] = mine;
	for (i = 0; i < 2; i++) {
		accounts[i].sent += mine + theirs;
		accounts[i].drops.channel[NHCADV_DROP_STALE] += mine + theirs;
	}
}

static void run(void)
{
	struct drops before, right = {};
	struct nhcadv_transfer t = {};
	uint64_t sent;
	FILE *said;
	int i, pid;

	memory_paint(client);
	before = drops_now(&ch, NULL);
	pid = record_begin("run", &said);
	meet(++step);
	for (i = 0; i < COUNT(operations); i++) {
		const struct operation *o = &operations[i];

		if (is_transfer(o->what))
			t = transfer(&ch, o->rcxt, i % 11 * STRIDE, o->total, o->notify);
		if (o->what >= TO_FRAMES)
			t.segment = PART;
		if (o->what == TO_FRAMES)
			t.remote_pvo = 0;
		if (o->what == FROM_MEMORY)
			t.local_pvo = 0;
		account(i, &t);
		if (client)
			initiate(o, &t);
		else
			respond(o, &t);
		meet(++step);
	}
	record_end(pid, said);
	/* no packet was dropped, and only the packets counted above were sent */
	account_challenge(&right, &before);
	drops_are(&ch, &before, &right, "the run");
	sent = channel_info(&ch).counters[NHCADV_SENT_PACKETS];
	if (sent != accounts[!client].sent)
		die("%" PRIu64 " packets, not %" PRIu64, sent, accounts[!client].sent);
	say("a run is recorded: writes, reads, packets, probes, half transfers");
}

/* ---- replays ---- */

/* Each side replays its packets.  @expected: by sender, the counts of the other side's channel */
static void again(struct channel *c, const struct account *expected, const char *what)
{
	struct drops before;
	uint64_t sent, i;
	int sender;

	for (sender = 0; sender < 2; sender++) {
		const struct account *e = &expected[sender];

		memory_paint(++seed);
		before = drops_now(c, NULL);
		meet(++step);
		if (client == !sender) {
			sent = replay("run");
			if (sent != e->sent)
				die("%s: %" PRIu64 " packets were replayed, %" PRIu64 " sent", what,
				    sent, e->sent);
			for (i = 0; i < e->answers; i++)
				take_frame(what);
		} else {
			drops_are(c, &before, &e->drops, what);
			for (i = 0; i < e->frames; i++)
				take_frame(what);
		}
		meet(++step);
		if (c) {
			expect_nothing(c->scq, 0, what);
			expect_nothing(c->rcq, 0, what);
		}
		memory_same(seed, 0, 0, what);
	}
	meet(++step);
	if (client)
		ktap_ok("replayed %s: no byte is written", what);
}

/* A replay is dropped for reason @why, except packets of packet mode if @packets is true. */
static void again_all(struct channel *c, enum nhcadv_channel_counter why, bool packets,
		      const char *what)
{
	struct account all[2] = {};
	int i;

	for (i = 0; i < 2; i++) {
		all[i].sent = accounts[i].sent;
		/* the frames that the client gets are statuses, which need an rCxt */
		all[i].frames = packets && !i ? accounts[i].frames : 0;
		if (c)
			all[i].drops.channel[why] = all[i].sent - all[i].frames;
		else
			all[i].drops.device[NO_QP] = all[i].sent;
	}
	again(c, all, what);
}

static void rcxts_change_hands(void)
{
	uint64_t *ids = NULL, old[RCXTS];
	uint32_t count = 0, i, k;
	struct channel other;

	memcpy(old, ch.here.rcxts, sizeof(old));
	verb(nhcadv_release_rcxts(ch.qp, ch.here.rcxts, RCXTS));
	again_all(&ch, NHCADV_DROP_NO_RCXT, true, "after release of the rCxts");

	/* acquire all rCxts of the device, so that the recorded ones are among them */
	channel_make(&other, job, FRAMES);
	do
		must(ids = reallocarray(ids, ++count, sizeof(*ids)));
	while (!nhcadv_acquire_rcxts(other.qp, &ids[count - 1], 1));
	for (i = 0, k = 0; i < count - 1; i++)
		k += (uint32_t)ids[i] == (uint32_t)old[0];
	if (k != 1)
		die("an rCxt is not in the pool after its release");
	again_all(&ch, NHCADV_DROP_NO_RCXT, true, "while another channel has the rCxts");
	for (i = NHCADV_SENT_PACKETS; i < DROPS; i++)
		if (channel_info(&other).counters[i])
			die("a packet reached the channel that has the rCxts now: counter %u", i);

	/* acquire the same rCxts again; no tid was used on them in the meantime */
	for (i = 0; i < count - 1; i++)
		for (k = 0; k < RCXTS; k++)
			if ((uint32_t)ids[i] == (uint32_t)old[k]) {
				verb(nhcadv_release_rcxts(other.qp, &ids[i], 1));
				verb(nhcadv_acquire_rcxts(ch.qp, &ch.here.rcxts[k], 1));
				if ((uint32_t)ch.here.rcxts[k] != (uint32_t)old[k] ||
				    ch.here.rcxts[k] == old[k])
					die("rCxt %#" PRIx64 " came back as %#" PRIx64, old[k],
					    ch.here.rcxts[k]);
			}
	again_all(&ch, NHCADV_DROP_RCXT_KEY, true, "after another channel had the rCxts");
	channel_close(&other);
	free(ids);
	channel_meet(&ch);
}

/* ---- too late ---- */

/* If @on, the server's host drops RoCE packets.  nftables is not used, since it may be missing. */
static void deaf(bool on)
{
	int ret;

	if (on)
		ret = system("ip rule add pref 20 lookup local && ip rule del pref 0 && "
			     "ip rule add pref 10 ipproto udp dport 4791 blackhole");
	else
		ret = system("ip rule add pref 0 lookup local && ip rule del pref 10 && "
			     "ip rule del pref 20");
	if (ret)
		die("ip rule: status %#x", ret);
}

/* Record a write at its sender.  The write does not arrive. */
static struct nhcadv_transfer lose(const char *name)
{
	struct nhcadv_transfer t = transfer(&ch, 1, 5 * STRIDE + 12, 70001, BOTH);
	uint64_t came = channel_info(&ch).counters[NHCADV_RECEIVED_PACKETS];
	FILE *said = NULL;
	int pid = 0;

	memory_paint(77);
	if (client)
		pid = record_begin(name, &said);
	else
		deaf(true);
	meet(++step);
	if (client) {
		post_write(&ch, &ch.peer, &t, 3, IBV_SEND_SIGNALED);
		expect(ch.scq, NHCADV_WC_LOCAL, 3, "write that is lost");
		record_end(pid, said);
	}
	meet(++step);
	if (!client)
		deaf(false);
	meet(++step);
	if (channel_info(&ch).counters[NHCADV_RECEIVED_PACKETS] != came)
		die("a packet has arrived that should be lost");
	return t;
}

/* A control: a replay of a write that was lost succeeds. */
static void late(void)
{
	struct nhcadv_transfer t = lose("late");
	struct drops before, right = {};
	uint32_t at = 5 * STRIDE + 12, i;

	memory_paint(++seed);
	before = drops_now(&ch, NULL);
	meet(++step);
	if (client) {
		/* the record must have all packets that were sent */
		if (replay("late") != packets_of(&t))
			die("other packets were recorded than were sent");
		expect_transfer(ch.scq, NHCADV_WC_WRITE, 3, t.local_rcxt, t.tid, "late write");
	} else {
		expect(ch.rcq, NHCADV_WC_REMOTE_WRITE, t.cookie, "late write");
		memory_same(seed, at, t.total, "late write");
		for (i = 0; i < t.total; i++)
			if (memory[GUARD + at + i] != pattern(77, GUARD + at + i))
				die("late write: byte %u is wrong", i);
		drops_are(&ch, &before, &right, "late write");
	}
	meet(++step);
	memory_paint(++seed);
	meet(++step);
	if (client) {
		replay("late");
	} else {
		right.channel[NHCADV_DROP_DUPLICATE] = packets_of(&t);
		drops_are(&ch, &before, &right, "late write, again");
		expect_nothing(ch.rcq, 0, "late write, again");
	}
	memory_same(seed, 0, 0, "late write, again");
	say("late packets are accepted, once");
}

/* Another user's process registers the same pages, until owner_ends(). */
static pid_t owner_begins(void)
{
	struct nhcadv_job_mem *mem;
	char byte = 0;
	int ends[2];
	pid_t pid;

	must(!pipe(ends));
	fflush(stdout);
	pid = fork();
	must(pid >= 0);
	if (pid) {
		must(read(ends[0], &byte, 1) == 1);
		close(ends[0]);
		close(ends[1]);
		return pid;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	must(!setgid(OTHER_USER) && !setuid(OTHER_USER));
	must(context = ibv_open_device(context->device));
	must(mem = memory_register(job + 1));
	printf("# PVO %#" PRIx64 ", and of the new owner %#" PRIx64 "\n", ch.here.pvo, mem->pvo);
	must(write(ends[1], &byte, 1) == 1);
	pause();
	_exit(0);
}

static void owner_ends(pid_t pid)
{
	int status;

	must(!kill(pid, SIGTERM) && waitpid(pid, &status, 0) == pid);
	if (!WIFSIGNALED(status))
		die("the new owner ended with %#x", status);
}

/*
 * Replay packets that never arrived, after the memory was registered again: by a process of another
 * user if @other_user is true, otherwise by this process.
 */
static void memory_changes_hands(bool other_user)
{
	const char *what = other_user ? "after another user registered the memory" :
					"after the memory was registered again";
	struct nhcadv_transfer t = lose("late");
	struct drops before, right = {};
	struct nhcadv_channel_info info;
	pid_t pid = 0;

	memory_paint(++seed);
	if (!client) {
		verb(nhcadv_dereg_job_mem(ch.mem));
		ch.mem = NULL;
		if (other_user) {
			pid = owner_begins();
		} else {
			must(ch.mem = memory_register(job));
			printf("# PVO %#" PRIx64 ", and after registering again %#" PRIx64 "\n",
			       ch.here.pvo, ch.mem->pvo);
		}
	}
	before = drops_now(&ch, NULL);
	meet(++step);
	if (client) {
		replay("late");
	} else {
		/* the first packet aborts the transfer */
		right.channel[NHCADV_DROP_PVO_KEY] = 1;
		right.channel[NHCADV_DROP_ABORTED] = packets_of(&t) - 1;
		drops_are(&ch, &before, &right, what);
		wait_event(IBV_EVENT_QP_ACCESS_ERR, what);
		info = channel_info(&ch);
		if (info.violation != NHCADV_DROP_PVO_KEY || info.violation_tid != t.tid)
			die("%s: violation %u of tid %u", what, info.violation, info.violation_tid);
		expect_nothing(ch.rcq, 0, what);
	}
	meet(++step);
	memory_same(seed, 0, 0, what);
	if (pid)
		owner_ends(pid);
	if (!client && !ch.mem)
		must(ch.mem = memory_register(job));
	ch.here.pvo = ch.mem->pvo;
	channel_meet(&ch);
	say(what);
}

/* ---- recovery and close ---- */

static void recover(void)
{
	verb(nhcadv_recover(context, NULL));
	wait_event(IBV_EVENT_QP_FATAL, "recovery");
	again_all(&ch, NHCADV_DROP_ERROR, false, "after a recovery");
}

static void legacy_file(struct legacy *l, const char *mode)
{
	char path[256];
	FILE *file;

	snprintf(path, sizeof(path), "%s/legacy", folder);
	must(file = fopen(path, mode));
	must((*mode == 'r' ? fread(l, sizeof(*l), 1, file) : fwrite(l, sizeof(*l), 1, file)) == 1);
	must(!fclose(file));
}

/*
 * Replay after the channel is closed, first while another user's process has registered the same
 * pages, then while this process has a new channel.
 */
static void ended(void)
{
	uint32_t old = ch.here.qpn;
	pid_t pid;

	channel_close(&ch);
	pid = owner_begins();
	again_all(NULL, 0, false, "after the channel was closed and its pages had a new owner");
	owner_ends(pid);

	open_channel();
	printf("# channel %#x, before %#x\n", ch.here.qpn, old);
	again_all(ch.here.qpn == old ? &ch : NULL, NHCADV_DROP_KEY, false,
		  "while there is a new channel");
}

/*
 * The client forges packets that are right, except that with @old_rcxt or @old_pvo the rCxt or PVO
 * is from before the reload.
 */
static uint64_t forge(const struct legacy *l, bool old_rcxt, bool old_pvo)
{
	uint64_t rcxt = (old_rcxt ? l->there : ch.there).rcxts[0];
	char address[INET6_ADDRSTRLEN], command[512];

	inet_ntop(AF_INET, theirs.gid.raw + 12, address, sizeof(address));
	snprintf(command, sizeof(command),
		 "rcxt_forge -a %s -q %u -k %" PRIu64 " -j %u -r %u -K %u -t %u -v %" PRIu64
		 " -l %u -n %u -b good", address, ch.there.qpn, ch.there.key, job, (uint32_t)rcxt,
		 (uint32_t)(rcxt >> 32), ch.tid, (old_pvo ? l->there : ch.there).pvo, REGION,
		 FORGED);
	ch.tid += FORGED;
	return thrown(command, "good %" SCNu64);
}

static void module_reloaded(void)
{
	static const char * const what[] = { "an rCxt from before the reload",
		"a PVO from before the reload", "current numbers" };
	struct drops before, now, right = {};
	struct legacy l;
	uint64_t came;
	int i;

	legacy_file(&l, "r");
	accounts[!client].sent = l.sent;
	exchange(&l.sent, &accounts[client].sent, sizeof(l.sent));
	open_channel();
	/*
	 * the new channel may have the QPN of the old one, but not its key, so it drops the replay
	 */
	again_all(ch.here.qpn == l.qpn ? &ch : NULL, NHCADV_DROP_KEY, false,
		  "after the module was reloaded");

	for (i = 0; i < 3; i++) {
		memory_paint(++seed);
		before = drops_now(&ch, NULL);
		came = channel_info(&ch).counters[NHCADV_RECEIVED_PACKETS];
		meet(++step);
		if (client) {
			forge(&l, i == 0, i == 1);
		} else if (i < 2) {
			now = drops_wait(&ch, &before, FORGED, what[i]);
			if (now.channel[i ? NHCADV_DROP_PVO_KEY : NHCADV_DROP_NO_RCXT] +
			    now.channel[NHCADV_DROP_RCXT_KEY] != FORGED)
				die("%s: dropped for another reason", what[i]);
		}
		meet(++step);
		if (i < 2) {
			memory_same(seed, 0, 0, what[i]);
		} else if (!client) {
			/* a control: nothing is old */
			drops_are(&ch, &before, &right, what[i]);
			if (channel_info(&ch).counters[NHCADV_RECEIVED_PACKETS] - came != FORGED)
				die("%s: it has not arrived", what[i]);
			memory_same(seed, 0, REGION, what[i]);
			if (!memory_changed(seed, 4096))
				die("%s: it has not been written", what[i]);
		}
		say(what[i]);
	}
}

int main(int argc, char **argv)
{
	struct legacy l;
	int letter;

	setvbuf(stdout, NULL, _IOLBF, 0);
	program = "channel_replay";
	job = 4711;
	channel_sizes.inline_data = PART + NHCADV_PART_HEADER;
	while ((letter = getopt(argc, argv, "d:g:p:n:f:a")) != -1)
		switch (letter) {
		case 'n':
			netdev = optarg;
			break;
		case 'f':
			folder = optarg;
			break;
		case 'a':
			afterwards = true;
			break;
		default:
			if (peer_option(letter))
				break;
			fputs("usage: channel_replay [-d DEVICE] [-g GID-INDEX] [-p TCP-PORT] [-n NETDEV]\n"
			      "                      [-f FOLDER] [-a] [HOST]\n", stderr);
			return 2;
		}
	peer_host = argv[optind];
	client = peer_host;
	seed = client ? 1000 : 2000;
	open_device();
	sock_open();
	say_hello();
	fcntl(context->async_fd, F_SETFL, fcntl(context->async_fd, F_GETFL) | O_NONBLOCK);
	memory_make();

	if (afterwards) {
		module_reloaded();
	} else {
		open_channel();
		run();
		l = (struct legacy){ ch.there, accounts[!client].sent, ch.here.qpn };
		legacy_file(&l, "w");
		again(&ch, accounts, "immediately");
		late();
		memory_changes_hands(true);
		memory_changes_hands(false);
		rcxts_change_hands();
		recover();
		ended();
	}
	channel_close(&ch);
	verb(ibv_dealloc_pd(pd));
	verb(ibv_close_device(context));
	return ktap_end();
}
