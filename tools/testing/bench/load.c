// SPDX-License-Identifier: GPL-2.0
/*
 * load: sends a stream or a ping-pong of messages, for the benchmark.
 *
 *   load -d DEV -g GID [options]		the passive end
 *   load -d DEV -g GID [options] HOST		the active end; prints the result as JSON
 *
 *   -m stream|pingpong|alone|idle  stream: one message after another (default); pingpong: each
 *			 message is answered; alone: a ping-pong between two queue pairs of
 *			 one process, without another end; idle: create the queue pairs, wait
 *			 for a line on standard input
 *   -t rc|uc|ud	 type of the queue pairs (rc); messages of uc and ud are SENDs
 *   -o write|read|send	 operation of a message (write); a ping-pong uses SENDs
 *   -s BYTES -n COUNT	 size of a message, number of messages (64 KiB, 1000)
 *   -q QPS -k DEPTH	 queue pairs, used in turn; messages outstanding on each (1, 32)
 *   -l LIST		 work requests of one post, of which the last is signaled (1)
 *   -c EVERY		 signal the last request of every n-th post, like -Q of perftest (1)
 *   -w COUNT		 messages before the measurement begins (a tenth of -n, plus -l)
 *   -f FILE		 the passive end lets WRITE and READ access a region of this file or disk;
 *			 with -y a WRITE ends when its bytes are on the disk
 *   -b			 poll for completions; without it, sleep until a completion event
 *   -p PORT		 TCP port at which the ends meet
 *   -P			 the passive end also sets marks for a profile; useful only if each end
 *			 has its own host
 *
 * Both ends need the same options.  The passive end returns credit for each quarter of its receive
 * queue, so that the sender never overruns it and no RNR NAK is measured.  SENDs of UC and UD have
 * no ACKs, so a stream ends only after credit messages show that its SENDs have arrived
 * (all_came()).
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <getopt.h>
#include <sched.h>

#include <infiniband/nhcadv_direct.h>

#include "connect.h"
#include "profile.h"

#define QPS_MAX		1024
#define LIST_MAX	64
#define RECEIVES	256		/* receives of each queue pair that gets SENDs */
#define CREDIT		(RECEIVES / 4)	/* receives that one credit message covers */
#define SLOTS		16		/* messages use this many slots of the memory in turn */

enum op { WRITE, READ, SEND };

static const char * const op_names[] = { "write", "read", "send" };

static struct options {
	enum op op;
	enum ibv_qp_type type;
	bool pingpong, alone, idle, polls, both_mark, sync;
	const char *file;
	uint32_t size, count, warm, qps, depth, list, every;
} o = { .op = WRITE, .type = IBV_QPT_RC, .size = 65536, .count = 1000, .warm = UINT32_MAX, .qps = 1,
	.depth = 32, .list = 1, .every = 1 };
static const char *type_name = "rc";

/* The data that the other end needs about a queue pair and the memory */
struct address {
	uint32_t qpn, rkey;
	uint64_t va;
};

static struct ibv_comp_channel *channel;
static struct ibv_cq *send_cq, *recv_cq;
static struct ibv_qp *qps[QPS_MAX];
static struct address remote[QPS_MAX];
static uint32_t receives;	/* number of receives of each queue pair */
static uint32_t outstanding[QPS_MAX], silent[QPS_MAX], credit[QPS_MAX], owed[QPS_MAX], done_of[QPS_MAX];
static double jain;		/* fairness of the queue pairs halfway through the stream */
static uint8_t *memory;
static struct ibv_mr *mr;

/* ---- completions ---- */

/* Sleep until a completion event; both CQs use the same completion channel. */
static void doze(void)
{
	struct ibv_cq *which;
	void *context;

	must(!ibv_get_cq_event(channel, &which, &context));
	ibv_ack_cq_events(which, 1);
	verb(ibv_req_notify_cq(which, 0));
}

/* Return: the number of completions taken from both CQs, from 1 to @room. */
static int wait_any(struct ibv_wc *wc, int room)
{
	uint64_t end = now_ns() + patience_s() * 1000000000ULL;
	uint32_t spins = 0;
	int n, i;

	for (;;) {
		n = ibv_poll_cq(recv_cq, room, wc);
		must(n >= 0);
		if (n < room) {
			i = ibv_poll_cq(send_cq, room - n, wc + n);
			must(i >= 0);
			n += i;
		}
		if (n)
			break;
		if (!o.polls)
			doze();
		else if (++spins % 4096 == 0 && now_ns() > end)
			die("no completion within %u s", patience_s());
	}
	for (i = 0; i < n; i++)
		if (wc[i].status)
			die("%s: %s", op_names[o.op], ibv_wc_status_str(wc[i].status));
	return n;
}

/* ---- posting ---- */

static uint8_t *slot(uint32_t number)
{
	return memory + (size_t)(number % SLOTS) * o.size;
}

static void post_receives(uint32_t q, uint32_t count)
{
	struct ibv_sge sge = { (uintptr_t)memory, o.size + GRH, mr->lkey };
	struct ibv_recv_wr wr[LIST_MAX], *bad;
	uint32_t n, i;

	for (; count; count -= n) {
		n = count < LIST_MAX ? count : LIST_MAX;
		for (i = 0; i < n; i++)
			wr[i] = (struct ibv_recv_wr){ .wr_id = q, .sg_list = &sge, .num_sge = 1,
						      .next = i + 1 < n ? &wr[i + 1] : NULL };
		verb(ibv_post_recv(qps[q], wr, &bad));
	}
}

/* Set the destination of a work request on queue pair @q; @at: offset in the peer's memory. */
static void aim(struct ibv_send_wr *wr, uint32_t q, uint64_t at)
{
	if (o.type == IBV_QPT_UD) {
		wr->wr.ud.ah = peer_ah;
		wr->wr.ud.remote_qpn = remote[q].qpn;
		wr->wr.ud.remote_qkey = QKEY;
	} else {
		wr->wr.rdma.remote_addr = remote[q].va + at;
		wr->wr.rdma.rkey = remote[q].rkey;
	}
}

/*
 * Post @count messages on queue pair @q. The completion of a signaled request also stands for the
 * unsignaled requests before it.
 */
static void post_list(uint32_t q, uint32_t count, uint32_t number, bool signaled)
{
	static const enum ibv_wr_opcode opcodes[] = { IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ,
						      IBV_WR_SEND };
	struct ibv_send_wr wr[LIST_MAX], *bad;
	struct ibv_sge sge[LIST_MAX];
	uint32_t i;

	silent[q] += count;
	for (i = 0; i < count; i++) {
		sge[i] = (struct ibv_sge){ (uintptr_t)slot(number + i), o.size, mr->lkey };
		wr[i] = (struct ibv_send_wr){
			.wr_id = (uint64_t)silent[q] << 32 | q, .sg_list = &sge[i], .num_sge = 1,
			.opcode = opcodes[o.op], .next = i + 1 < count ? &wr[i + 1] : NULL,
			.send_flags = i + 1 < count || !signaled ? 0 : IBV_SEND_SIGNALED,
		};
		aim(&wr[i], q, slot(number + i) - memory);
	}
	verb(ibv_post_send(qps[q], wr, &bad));
	if (signaled)
		silent[q] = 0;
}

/*
 * Return: true if a post of @count messages must be signaled.  The last posts of a stream are
 * signaled, because no later completion would stand for them.  @left: number of messages to post
 * after this post.
 */
static bool is_signaled(uint32_t q, uint32_t count, uint32_t left)
{
	return silent[q] + count >= o.every * o.list || left < o.every * o.list * o.qps;
}

/* ---- streams ---- */

/* Return: Jain's index: 1 if all queue pairs have equal shares, 1 / QPs if one has all. */
static double fairness(void)
{
	double sum = 0, squares = 0;
	uint32_t q;

	for (q = 0; q < o.qps; q++) {
		sum += done_of[q];
		squares += (double)done_of[q] * done_of[q];
	}
	return squares ? sum * sum / squares / o.qps : 0;
}

/*
 * Return: true for RC. For UC and UD: true if credit messages show that the peer has received all
 * SENDs, except the last ones of each queue pair if they are too few for a credit message.
 */
static bool all_came(void)
{
	uint32_t q;

	if (o.type == IBV_QPT_RC)
		return true;
	for (q = 0; q < o.qps && credit[q] > RECEIVES - CREDIT; q++)
		;
	return q == o.qps;
}

/* The active end: send @count messages on all queue pairs in turn. */
static void stream(uint32_t count)
{
	uint32_t posted = 0, done = 0, q = 0, idle = 0, n;
	struct ibv_wc wc[64];
	int got, i;

	memset(done_of, 0, sizeof(done_of));
	jain = 0;
	while (done < count || !all_came()) {
		/* post on queue pairs that have room, until none has room or all is posted */
		for (idle = 0; posted < count && idle < o.qps; q = (q + 1) % o.qps) {
			n = count - posted < o.list ? count - posted : o.list;
			if (outstanding[q] + n > o.depth || (o.op == SEND && credit[q] < n)) {
				idle++;
				continue;
			}
			idle = 0;
			post_list(q, n, posted, is_signaled(q, n, count - posted - n));
			outstanding[q] += n;
			credit[q] -= o.op == SEND ? n : 0;
			posted += n;
		}
		got = wait_any(wc, 64);
		for (i = 0; i < got; i++) {
			n = wc[i].wr_id >> 32;
			if (wc[i].opcode & IBV_WC_RECV) {
				credit[wc[i].wr_id] += CREDIT;
				post_receives(wc[i].wr_id, 1);
			} else {
				outstanding[(uint32_t)wc[i].wr_id] -= n;
				done_of[(uint32_t)wc[i].wr_id] += n;
				done += n;
			}
		}
		if (!jain && done >= count / 2)
			jain = fairness();
	}
}

static void give_credit(uint32_t q)
{
	struct ibv_send_wr wr = { .wr_id = q, .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED }, *bad;

	aim(&wr, q, 0);
	post_receives(q, CREDIT);
	verb(ibv_post_send(qps[q], &wr, &bad));
	owed[q] = 0;
}

/* The passive end of SENDs: receive @count messages. */
static void sink(uint32_t count)
{
	struct ibv_wc wc[64];
	uint32_t done = 0;
	int got, i;

	while (done < count) {
		got = wait_any(wc, 64);
		for (i = 0; i < got; i++) {
			if (!(wc[i].opcode & IBV_WC_RECV))
				continue;
			done++;
			if (++owed[wc[i].wr_id] == CREDIT)
				give_credit(wc[i].wr_id);
		}
	}
}

static void print_stream(uint64_t ns)
{
	printf("{\"mode\": \"stream\", \"type\": \"%s\", \"op\": \"%s\", \"size\": %u, "
	       "\"qps\": %u, \"list\": %u, \"polls\": %s, \"messages\": %u, \"ns\": %" PRIu64 ", "
	       "\"ns_per_message\": %.1f, \"MiB_per_s\": %.2f, \"jain\": %.3f}\n",
	       type_name, op_names[o.op], o.size, o.qps, o.list, o.polls ? "true" : "false", o.count,
	       ns, (double)ns / o.count, (double)o.size * o.count / 1048576 / (ns / 1e9), jain);
}

static void stream_run(void)
{
	struct sched_param param = {};
	uint64_t begun;

	/* a batch task does not preempt the other end for each message if both share a CPU */
	sched_setscheduler(0, SCHED_BATCH, &param);

	if (!peer_host) {
		if (o.op == SEND)
			sink(o.warm);
		meet(2);
		if (o.both_mark)
			profile_begin();
		if (o.op == SEND)
			sink(o.count);
		meet(3);
		if (o.both_mark)
			profile_end();
		return;
	}
	stream(o.warm);
	meet(2);
	profile_begin();
	begun = now_ns();
	stream(o.count);
	begun = now_ns() - begun;
	profile_end();
	print_stream(begun);
	meet(3);
}

/* ---- ping-pong ---- */

static void await_receive(void)
{
	struct ibv_wc wc[4];
	bool there = false;
	int got, i;

	while (!there) {
		got = wait_any(wc, 4);
		for (i = 0; i < got; i++)
			if (wc[i].opcode & IBV_WC_RECV) {
				post_receives(wc[i].wr_id, 1);
				there = true;
			}
	}
}

static int by_size(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void pingpong_run(void)
{
	uint64_t *ns = calloc(o.count, sizeof(*ns)), begun;
	bool begins = peer_host || o.alone;
	bool marks = begins || o.both_mark;
	uint32_t i;

	must(ns);
	for (i = 0; i < o.warm + o.count; i++) {
		if (i == o.warm && marks)
			profile_begin();
		begun = now_ns();
		if (begins)
			post_list(0, 1, 0, true);
		await_receive();
		if (!peer_host)
			post_list(o.alone, 1, 0, true);
		if (o.alone)
			await_receive();
		if (begins && i >= o.warm)
			ns[i - o.warm] = (now_ns() - begun) / 2;
	}
	if (marks)
		profile_end();
	if (begins) {
		qsort(ns, o.count, sizeof(*ns), by_size);
		printf("{\"mode\": \"pingpong\", \"type\": \"%s\", \"op\": \"send\", \"size\": %u, "
		       "\"qps\": 1, \"polls\": %s, \"messages\": %u, \"p50_ns\": %" PRIu64
		       ", \"p99_ns\": %" PRIu64 ", \"p999_ns\": %" PRIu64 "}\n", type_name, o.size,
		       o.polls ? "true" : "false", o.count,
		       ns[o.count / 2], ns[o.count - 1 - o.count / 100],
		       ns[o.count - 1 - o.count / 1000]);
	}
	if (!o.alone)
		meet(3);
	free(ns);
}

/* ---- both ends ---- */

/* Return: address and key of the memory, or with -f at the passive end of a region of the file. */
static struct address target(void)
{
	struct nhcadv_direct_pool_init_attr pool = { .blocks = 256 };
	struct nhcadv_direct_file_attr attr = {
		.length = (size_t)SLOTS * o.size, .flags = o.sync ? NHCADV_DIRECT_SYNC : 0,
		.access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ,
	};
	struct ibv_mr *disk;

	if (!o.file || peer_host)
		return (struct address){ .rkey = mr->rkey, .va = (uintptr_t)memory };
	attr.fd = open(o.file, O_RDWR);
	attr.pool = nhcadv_direct_alloc_pool(context, &pool);
	if (attr.fd < 0 || !attr.pool)
		die("cannot open %s or make a pool: %s", o.file, strerror(errno));
	disk = nhcadv_direct_reg_file(pd, &attr);
	must(disk);
	return (struct address){ .rkey = disk->rkey };
}

static void prepare(void)
{
	struct address mine_at[QPS_MAX], place;
	uint32_t q;

	channel = ibv_create_comp_channel(context);
	must(channel);
	send_cq = ibv_create_cq(context, o.qps * (o.depth + 8) + 64, NULL, channel, 0);
	receives = o.op == SEND || o.idle ? RECEIVES : 1;
	recv_cq = ibv_create_cq(context, o.qps * receives + 64, NULL, channel, 0);
	if (!send_cq || !recv_cq)
		die("cannot create a CQ: %s", strerror(errno));
	verb(ibv_req_notify_cq(send_cq, 0));
	verb(ibv_req_notify_cq(recv_cq, 0));
	memory = pages((size_t)SLOTS * o.size + GRH);
	mr = ibv_reg_mr(pd, memory, (size_t)SLOTS * o.size + GRH,
			IBV_ACCESS_LOCAL_WRITE | REMOTE_ACCESS);
	must(mr);
	place = target();
	for (q = 0; q < o.qps; q++) {
		qps[q] = qp_make(o.type, send_cq, recv_cq, o.depth + 8, receives);
		end_init(qps[q]);
		mine_at[q] = place;
		mine_at[q].qpn = qps[q]->qp_num;
		credit[q] = receives;
	}
	if (o.alone) {
		remote[0] = mine_at[1];
		remote[1] = mine_at[0];
	} else {
		say_hello();
		exchange(mine_at, remote, o.qps * sizeof(mine_at[0]));
		if (is_iwarp())
			iwarp_meet();
	}
	for (q = 0; q < o.qps; q++) {
		post_receives(q, receives);
		end_connect(qps[q], remote[q].qpn);
	}
	if (!o.alone)
		meet(1);
}

static int one_of(const char *name, const char * const *names, int count)
{
	int i;

	for (i = 0; i < count; i++)
		if (!strcmp(name, names[i]))
			return i;
	fprintf(stderr, "load: unknown value: %s\n", name);
	exit(2);
}

static void mode_set(const char *name)
{
	static const char * const modes[] = { "stream", "pingpong", "alone", "idle" };
	int mode = one_of(name, modes, 4);

	o.pingpong = mode == 1 || mode == 2;
	o.alone = mode == 2;
	o.idle = mode == 3;
}

static void type_set(const char *name)
{
	static const char * const types[] = { "rc", "uc", "ud" };
	static const enum ibv_qp_type values[] = { IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD };

	o.type = values[one_of(name, types, 3)];
	type_name = name;
}

int main(int argc, char **argv)
{
	int letter;

	program = "load";
	setvbuf(stdout, NULL, _IOLBF, 0);
	while ((letter = getopt(argc, argv, "bc:d:f:g:k:l:m:n:o:p:Pq:s:t:w:y")) != -1)
		switch (letter) {
		case 'b':
			o.polls = true;
			break;
		case 'c':
			o.every = strtoul(optarg, NULL, 0);
			break;
		case 'f':
			o.file = optarg;
			break;
		case 'k':
			o.depth = strtoul(optarg, NULL, 0);
			break;
		case 'l':
			o.list = strtoul(optarg, NULL, 0);
			break;
		case 'm':
			mode_set(optarg);
			break;
		case 'n':
			o.count = strtoul(optarg, NULL, 0);
			break;
		case 'o':
			o.op = one_of(optarg, op_names, 3);
			break;
		case 'P':
			o.both_mark = true;
			break;
		case 'q':
			o.qps = strtoul(optarg, NULL, 0);
			break;
		case 's':
			o.size = strtoul(optarg, NULL, 0);
			break;
		case 't':
			type_set(optarg);
			break;
		case 'w':
			o.warm = strtoul(optarg, NULL, 0);
			break;
		case 'y':
			o.sync = true;
			break;
		default:
			if (peer_option(letter))
				break;
			return 2;
		}
	peer_host = argv[optind];
	if (o.pingpong || o.type != IBV_QPT_RC)
		o.op = SEND;
	if (o.alone)
		o.qps = 2;
	if (o.warm == UINT32_MAX)
		o.warm = o.count / 10 + o.list;
	if (!o.size || !o.count || !o.qps || o.qps > QPS_MAX || !o.list || o.list > LIST_MAX ||
	    !o.every || o.every > o.depth / o.list) {
		fprintf(stderr, "load: -q takes 1 to %d, -l takes 1 to %d, and -c times -l is at most -k\n",
			QPS_MAX, LIST_MAX);
		return 2;
	}
	mine.seed = mix(o.size) ^ mix(o.count + 1) ^ mix(o.qps + 2) ^ mix(o.op + 3);
	open_device();
	if (o.alone && is_iwarp())
		die("-m alone does not work with iWARP, which needs two ends");
	if (!o.alone)
		sock_open();
	prepare();
	if (o.idle) {
		puts("ready");
		getchar();
	} else if (o.pingpong) {
		pingpong_run();
	} else {
		stream_run();
	}
	return 0;
}
