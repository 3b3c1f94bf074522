// SPDX-License-Identifier: GPL-2.0
/*
 * Two jobs of two users, each with a process on each side.  Both sides may be one host.  Each pair
 * of processes has channels, rCxts and memory.  The second job knows all numbers and keys of the
 * first one, and must reach neither its channel nor its memory.
 *
 *   channel_jobs -d DEVICE -g GID-INDEX [HOST]
 *
 *   side        first job	second job
 *   server      VICTIM		ACCOMPLICE: has a channel that accepts the intruder's packets
 *   client      FRIEND		INTRUDER
 */
#include <getopt.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>

#include "channels.h"
#include "channel_watch.h"

#define FRAMES		16
#define AT		4099		/* offset in the region; not aligned to anything */
#define LENGTH		5000
#define FIRST_USER	1001
#define FIRST_JOB	4711
#define BOTH		(NHCADV_NOTIFY_INITIATOR | NHCADV_NOTIFY_TARGET)

/* Shared by both processes of a side */
static struct {
	uint32_t steps[2];
	struct address here, there;	/* both ends of the first job's channel */
} *shared;

static struct channel ch;
static bool client, second;		/* of this process: its side, and its job */
static uint32_t step, seed;

/* Wait until both processes of this end have reached this step. */
static void together(void)
{
	uint64_t end = now_ns() + patience_s() * 1000000000ULL;

	__atomic_add_fetch(&shared->steps[second], 1, __ATOMIC_SEQ_CST);
	while (__atomic_load_n(&shared->steps[!second], __ATOMIC_SEQ_CST) <
	       shared->steps[second]) {
		if (now_ns() > end)
			die("the other process of this end does not reach step %u",
			    shared->steps[second]);
		sched_yield();
	}
}

/* Wait until all four processes have reached this step. */
static void everybody(void)
{
	together();
	meet(++step);
	together();
}

static void say(const char *what)
{
	everybody();
	if (client && second)
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

/* ---- local checks ---- */

/*
 * On each host a job number belongs to the user who used it first.  Another user's process must not
 * open channels or memory of the job.
 */
static void doors(void)
{
	struct ibv_cq *cq = ibv_cq_ex_to_cq(ch.scq);

	if (second) {
		if (make_qp(cq, cq, FIRST_JOB, 0) || errno != EPERM)
			die("a channel of another user's job: %m");
		if (memory_register(FIRST_JOB) || errno != EPERM)
			die("memory for another user's job: %m");
		if (nhcadv_open_job_mem(context, FIRST_JOB, shared->here.pvo) || errno != EPERM)
			die("another user's memory, as its job: %m");
		if (nhcadv_open_job_mem(context, job, shared->here.pvo) || errno != ENOENT)
			die("another user's memory, as the own job: %m");
		if (nhcadv_release_rcxts(ch.qp, shared->here.rcxts, 1) != ENOENT)
			die("another user's rCxts can be released");
	}
	say("another user's job, its memory and rCxts are not opened");
}

/* ---- by packets ---- */

/* Actions of the intruder, which knows all that the friend knows */
enum act { ACT_WRITE, ACT_READ, ACT_PACKET, ACT_PROBE };

static struct nhcadv_transfer knows_all(uint32_t tid)
{
	return (struct nhcadv_transfer){
		.local_rcxt = ch.here.rcxts[0], .remote_rcxt = shared->there.rcxts[0],
		.local_pvo = ch.here.pvo + AT, .remote_pvo = shared->there.pvo + AT,
		.cookie = 0xbad, .tid = tid, .total = LENGTH, .segment = 1024, .notify = BOTH,
	};
}

static void act(enum act what, const struct nhcadv_peer *peer, const struct nhcadv_transfer *t)
{
	start(&ch, 5, IBV_SEND_SIGNALED);
	switch (what) {
	case ACT_WRITE:
		nhcadv_wr_write(ch.dv, peer, t);
		break;
	case ACT_READ:
		nhcadv_wr_read(ch.dv, peer, t);
		break;
	case ACT_PACKET:
		nhcadv_wr_packet(ch.dv, peer, 0);
		ibv_wr_set_inline_data(ch.qpx, "intruder", 8);
		break;
	case ACT_PROBE:
		nhcadv_wr_probe(ch.dv, peer, t, 0);
		break;
	}
	verb(ibv_wr_complete(ch.qpx));
}

/*
 * The intruder acts on the channel of @peer.  There, @packets packets must be dropped for reason
 * @why, and no memory may change.  If @why is not NHCADV_DROP_JOB, only the first packet is dropped
 * for reason @why, and the others because it has aborted the transfer.  @target: this process owns
 * that channel.
 */
static void refused(enum act what, const struct nhcadv_peer *peer, const struct nhcadv_transfer *t,
		    bool target, enum nhcadv_channel_counter why, uint32_t packets,
		    const char *name)
{
	struct drops before = drops_now(&ch, NULL), right = {};
	uint64_t sent = channel_info(&ch).counters[NHCADV_SENT_PACKETS];

	memory_paint(++seed);
	everybody();
	if (client && second) {
		act(what, peer, t);
		expect(ch.scq, NHCADV_WC_LOCAL, 5, name);
	}
	if (target) {
		right.channel[why] = why == NHCADV_DROP_JOB ? packets : 1;
		right.channel[NHCADV_DROP_ABORTED] = why == NHCADV_DROP_JOB ? 0 : packets - 1;
		drops_are(&ch, &before, &right, name);
		if (channel_info(&ch).counters[NHCADV_SENT_PACKETS] != sent)
			die("%s: it was answered", name);
		if (why != NHCADV_DROP_JOB) {
			wait_event(IBV_EVENT_QP_ACCESS_ERR, name);
			if (channel_info(&ch).violation != why)
				die("%s: violation %u", name, channel_info(&ch).violation);
		}
	}
	everybody();
	expect_nothing(ch.scq, 0, name);
	expect_nothing(ch.rcq, 0, name);
	memory_same(seed, 0, 0, name);
	say(name);
}

/* Act on the victim's channel, which belongs to another job. */
static void to_the_victim(void)
{
	static const struct {
		enum act what;
		uint32_t packets;
		const char *name;
	} acts[] = {
		{ ACT_WRITE, (LENGTH + 1023) / 1024, "another job writes to a channel" },
		{ ACT_READ, 1, "another job reads from a channel" },
		{ ACT_PACKET, 1, "another job sends a packet to a channel" },
		{ ACT_PROBE, 1, "another job probes a channel" },
	};
	struct nhcadv_peer peer = { ch.peer.ah, shared->there.qpn, shared->there.key };
	struct nhcadv_transfer t;
	uint32_t i;

	for (i = 0; i < sizeof(acts) / sizeof(*acts); i++) {
		t = knows_all(++ch.tid);
		refused(acts[i].what, &peer, &t, !client && !second, NHCADV_DROP_JOB,
			acts[i].packets, acts[i].name);
	}
}

/*
 * A control: the intruder reads memory of its own job, and succeeds.  The server has then verified
 * the intruder's address, so it does not challenge the later reads.
 */
static void own_read(void)
{
	struct nhcadv_transfer t = transfer(&ch, 1, AT, LENGTH, BOTH);
	static const char name[] = "a job's channel reads its own job's memory";

	if (second && client) {
		act(ACT_READ, &ch.peer, &t);
		expect_both(ch.scq, 5, NHCADV_WC_READ, 5, t.local_rcxt, t.tid, name);
	} else if (second) {
		expect(ch.rcq, NHCADV_WC_REMOTE_READ, t.cookie, name);
	}
	say(name);
}

/*
 * Act on a channel of the intruder's own job on the victim's host, with a PVO of another job's
 * memory.
 */
static void to_the_accomplice(void)
{
	struct nhcadv_transfer t = knows_all(++ch.tid);

	t.remote_rcxt = ch.there.rcxts[0];
	refused(ACT_WRITE, &ch.peer, &t, !client && second, NHCADV_DROP_PVO_JOB,
		(LENGTH + 1023) / 1024, "a job's channel writes to another job's memory");
	t.tid = ++ch.tid;
	refused(ACT_READ, &ch.peer, &t, !client && second, NHCADV_DROP_PVO_JOB, 1,
		"a job's channel reads another job's memory");
}

/*
 * Use another job's memory as the local buffer.  A write puts the intruder's channel into the error
 * state, and the response to a read is dropped as a violation.
 */
static void own_side(void)
{
	static const char * const names[] = {
		"another job's memory is not a source", "another job's memory is not a target",
	};
	struct nhcadv_transfer t;
	enum ibv_wc_status status;
	uint32_t i;

	for (i = 0; i < 2; i++) {
		memory_paint(++seed);
		everybody();
		t = transfer(&ch, 1, AT, LENGTH, BOTH);
		if (client && second) {
			t.local_pvo = shared->here.pvo + AT;
			act(i ? ACT_READ : ACT_WRITE, &ch.peer, &t);
			if (!i) {
				status = wait_done(ch.scq, names[i]).status;
				if (status != IBV_WC_LOC_PROT_ERR)
					die("%s: %s", names[i], ibv_wc_status_str(status));
				wait_event(IBV_EVENT_QP_FATAL, names[i]);
			} else {
				wait_done(ch.scq, names[i]);
				wait_event(IBV_EVENT_QP_ACCESS_ERR, names[i]);
				if (channel_info(&ch).violation != NHCADV_DROP_PVO_JOB)
					die("%s: violation %u", names[i], channel_info(&ch).violation);
			}
		}
		usleep(QUIET_US);
		everybody();
		expect_nothing(ch.scq, 0, names[i]);
		expect_nothing(ch.rcq, 0, names[i]);
		memory_same(seed, 0, 0, names[i]);
		if (second && !i) {
			channel_close(&ch);
			open_channel();
		}
		say(names[i]);
	}
}

/* A control: the friend uses the same numbers, and succeeds. */
static void friends(void)
{
	struct nhcadv_transfer t = transfer(&ch, 0, AT, LENGTH, BOTH);
	uint32_t i;

	t.segment = 1024;
	memory_paint(client ? 7 : ++seed);
	everybody();
	if (!second && client) {
		post_write(&ch, &ch.peer, &t, 6, 0);
		expect_transfer(ch.scq, NHCADV_WC_WRITE, 6, t.local_rcxt, t.tid, "the job's own");
	} else if (!second) {
		expect_transfer(ch.rcq, NHCADV_WC_REMOTE_WRITE, t.cookie, t.local_rcxt, t.tid,
				"the job's own");
		memory_same(seed, AT, LENGTH, "the job's own");
		for (i = GUARD + AT; i < GUARD + AT + LENGTH; i++)
			if (memory[i] != pattern(7, i))
				die("the job's own: byte %u is wrong", i);
	}
	everybody();
	if (second)
		memory_same(client ? 7 : seed, 0, 0, "the job's own");
	say("the job's own channel writes to its memory");
}

static void process(void)
{
	must(!setgid(FIRST_USER + second) && !setuid(FIRST_USER + second));
	job = FIRST_JOB + second;
	/* a different pattern for each process */
	seed = 1000 * (1 + client + 2 * second);
	/* each pair of processes has its own TCP connection */
	peer_port = second ? "18831" : "18830";
	open_device();
	sock_open();
	say_hello();
	fcntl(context->async_fd, F_SETFL, fcntl(context->async_fd, F_GETFL) | O_NONBLOCK);
	memory_make();
	open_channel();
	if (!second) {
		shared->here = ch.here;
		shared->there = ch.there;
	}
	everybody();
	doors();
	to_the_victim();
	own_read();
	to_the_accomplice();
	own_side();
	ch.tid += 100;
	friends();
	channel_close(&ch);
	verb(ibv_dealloc_pd(pd));
	verb(ibv_close_device(context));
}

int main(int argc, char **argv)
{
	int letter, status;
	pid_t pids[2];

	setvbuf(stdout, NULL, _IOLBF, 0);
	program = "channel_jobs";
	while ((letter = getopt(argc, argv, "d:g:")) != -1)
		switch (letter) {
		default:
			if (peer_option(letter))
				break;
			fputs("usage: channel_jobs [-d DEVICE] [-g GID-INDEX] [HOST]\n", stderr);
			return 2;
		}
	peer_host = argv[optind];
	client = peer_host;
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		      -1, 0);
	must(shared != MAP_FAILED);
	for (letter = 0; letter < 2; letter++) {
		pids[letter] = fork();
		must(pids[letter] >= 0);
		if (!pids[letter]) {
			second = letter;
			process();
			/* only the process of the intruder prints the plan */
			return client && second ? ktap_end() : 0;
		}
	}
	for (letter = 0; letter < 2; letter++) {
		must(wait(&status) > 0);
		if (status)
			break;
	}
	if (letter == 2)
		return 0;
	/* the other process waits for the failed one */
	kill(pids[0], SIGKILL);
	kill(pids[1], SIGKILL);
	return 1;
}
