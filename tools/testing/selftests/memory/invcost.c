// SPDX-License-Identifier: GPL-2.0
/*
 * invcost: measures the cost of an invalidation.
 *
 *   invcost -m idle -q N        with N idle queue pairs in the same protection domain
 *   invcost -m stream -t S      a stream of WRITEs through one key, while another CPU binds and
 *                               invalidates another key without pause; phases of S seconds (0.3)
 *
 * Both ends are in this process.  idle prints the median nanoseconds of LOCAL_INV, of a bind that
 * closes a type 1 window, and of ibv_dereg_mr().  stream prints bytes per second with and without
 * the binds of the other key, in alternate phases, and the longest pause of each.
 */
#define _GNU_SOURCE
#include <getopt.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>

#include "peers.h"

#define TIMES		500
#define PIECE		65536
#define DEPTH		16
#define PHASES		41	/* many short phases, because other work may disturb some */

static struct ibv_cq *cq, *stream_cq;
static struct ibv_qp *qp, *from, *to;
static uint8_t *memory;
static struct ibv_mr *mr;
static struct ibv_mw *mw;
static volatile bool stop;
static volatile int disturb;
static volatile uint64_t binds;

static struct ibv_qp *loop_qp(struct ibv_cq *which)
{
	struct ibv_qp *new = qp_make(IBV_QPT_RC, which, which, DEPTH, 1);

	qp_init(new);
	return new;
}

static void prepare(void)
{
	cq = ibv_create_cq(context, 64, NULL, NULL, 0);
	stream_cq = ibv_create_cq(context, 64, NULL, NULL, 0);
	must(cq && stream_cq);
	qp = loop_qp(cq);
	qp_connect(qp, qp->qp_num, 1, 1);
	memory = pages(2 * PIECE);
	mr = ibv_reg_mr(pd, memory, 2 * PIECE, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
			IBV_ACCESS_MW_BIND);
	must(mr);
	mw = ibv_alloc_mw(pd, IBV_MW_TYPE_2);
	if (!mw)
		die("ibv_alloc_mw: %s", strerror(errno));
}

static void open_window(void)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED,
		.bind_mw = { .mw = mw, .rkey = ibv_inc_rkey(mw->rkey), .bind_info = {
			.mr = mr, .addr = (uintptr_t)memory, .length = 4096,
			.mw_access_flags = IBV_ACCESS_REMOTE_WRITE } } }, *bad;

	verb(ibv_post_send(qp, &wr, &bad));
	wait_success(cq, "IBV_WR_BIND_MW");
	mw->rkey = wr.bind_mw.rkey;
}

static void close_window(void)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_LOCAL_INV, .send_flags = IBV_SEND_SIGNALED,
				  .invalidate_rkey = mw->rkey }, *bad;

	verb(ibv_post_send(qp, &wr, &bad));
	wait_success(cq, "IBV_WR_LOCAL_INV");
}

static void bind_type1(struct ibv_mw *window, bool open)
{
	struct ibv_mw_bind bind = { .send_flags = IBV_SEND_SIGNALED, .bind_info = {
		.mr = mr, .addr = open ? (uintptr_t)memory : 0, .length = open ? 4096 : 0,
		.mw_access_flags = open ? IBV_ACCESS_REMOTE_WRITE : 0 } };

	verb(ibv_bind_mw(qp, window, &bind));
	wait_success(cq, "ibv_bind_mw");
}

/* ---- idle queue pairs ---- */

static int by_size(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static uint64_t median(uint64_t *ns)
{
	qsort(ns, TIMES, sizeof(*ns), by_size);
	return ns[TIMES / 2];
}

/* Connect queue pairs with the smallest rings.  They share one receive queue. */
static uint32_t make_idle(uint32_t count)
{
	struct ibv_srq_init_attr srq_init = { .attr = { .max_wr = 1, .max_sge = 1 } };
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC, .send_cq = cq, .recv_cq = cq,
					 .cap = { .max_send_wr = 1, .max_send_sge = 1 } };
	struct ibv_qp *idle;
	uint32_t made;

	init.srq = ibv_create_srq(pd, &srq_init);
	must(init.srq);
	for (made = 0; made < count; made++) {
		idle = ibv_create_qp(pd, &init);
		if (!idle) {
			printf("# %u idle queue pairs: %s\n", made, strerror(errno));
			break;
		}
		qp_init(idle);
		qp_connect(idle, idle->qp_num, 1, 1);
	}
	return made;
}

static void idle(uint32_t count)
{
	struct ibv_mw *type1 = ibv_alloc_mw(pd, IBV_MW_TYPE_1);
	uint64_t inv[TIMES], unbind[TIMES], dereg[TIMES], t;
	struct ibv_mr *small;
	uint32_t made;
	int i;

	must(type1);
	made = make_idle(count);
	for (i = 0; i < TIMES; i++) {
		open_window();
		t = now_ns();
		close_window();
		inv[i] = now_ns() - t;
		bind_type1(type1, true);
		t = now_ns();
		bind_type1(type1, false);
		unbind[i] = now_ns() - t;
		small = ibv_reg_mr(pd, memory, 4096, IBV_ACCESS_LOCAL_WRITE);
		must(small);
		t = now_ns();
		verb(ibv_dereg_mr(small));
		dereg[i] = now_ns() - t;
	}
	printf("qps %u\nlocal_inv_ns %" PRIu64 "\nunbind_ns %" PRIu64 "\ndereg_ns %" PRIu64 "\n",
	       made, median(inv), median(unbind), median(dereg));
}

/* ---- a stream and binds ---- */

static void on_cpu(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

/* Keep this CPU busy in the kernel in all phases, so that only the binds make a difference. */
static void *binder(void *unused)
{
	on_cpu(1);
	while (!stop) {
		if (disturb) {
			open_window();
			close_window();
			binds += 2;
		} else {
			syscall(SYS_getppid);
		}
	}
	return unused;
}

static void post_piece(void)
{
	struct ibv_sge sge = { (uintptr_t)memory, PIECE, mr->lkey };
	struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_WRITE, .sg_list = &sge, .num_sge = 1,
				  .send_flags = IBV_SEND_SIGNALED,
				  .wr.rdma = { (uintptr_t)memory + PIECE, mr->rkey } }, *bad;

	verb(ibv_post_send(from, &wr, &bad));
}

struct phase {
	double rate;
	uint64_t pause, binds;
};

static struct phase run_phase(double seconds)
{
	uint64_t begun = now_ns(), last = begun, now = begun, done = 0, first = binds;
	struct phase p = {};
	struct ibv_wc wc;

	while (now - begun < seconds * 1e9) {
		if (ibv_poll_cq(stream_cq, 1, &wc) == 1) {
			if (wc.status)
				die("stream: %s", ibv_wc_status_str(wc.status));
			post_piece();
			done++;
			now = now_ns();
			if (now - last > p.pause)
				p.pause = now - last;
			last = now;
		} else {
			now = now_ns();
		}
	}
	p.rate = (double)done * PIECE / ((now - begun) / 1e9);
	p.binds = binds - first;
	return p;
}

static double middle(double *v)
{
	int i, k;
	double t;

	for (i = 1; i < PHASES; i++)
		for (k = i; k && v[k] < v[k - 1]; k--) {
			t = v[k];
			v[k] = v[k - 1];
			v[k - 1] = t;
		}
	return v[PHASES / 2];
}

static void stream(double seconds)
{
	double calm[PHASES], busy[PHASES], part[PHASES];
	uint64_t calm_pause = 0, busy_pause = 0, all = 0;
	struct phase p;
	pthread_t thread;
	int i;

	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		die("-m stream needs two CPUs");
	on_cpu(0);
	from = loop_qp(stream_cq);
	to = loop_qp(stream_cq);
	qp_connect(from, to->qp_num, 1, 1);
	qp_connect(to, from->qp_num, 1, 1);
	must(!pthread_create(&thread, NULL, binder, NULL));
	for (i = 0; i < DEPTH; i++)
		post_piece();
	run_phase(seconds);
	for (i = 0; i < PHASES; i++) {
		disturb = 0;
		p = run_phase(seconds);
		calm[i] = p.rate;
		calm_pause = p.pause > calm_pause ? p.pause : calm_pause;
		disturb = 1;
		p = run_phase(seconds);
		busy[i] = p.rate;
		busy_pause = p.pause > busy_pause ? p.pause : busy_pause;
		all += p.binds;
		part[i] = busy[i] / calm[i];
	}
	stop = true;
	pthread_join(thread, NULL);
	if (!all)
		die("no bind in %d phases", PHASES);
	printf("part %.3f\n", middle(part));
	printf("calm_rate %.0f\nbusy_rate %.0f\n", middle(calm), middle(busy));
	printf("calm_pause_ns %" PRIu64 "\nbusy_pause_ns %" PRIu64 "\nbind_ns %.0f\n", calm_pause,
	       busy_pause, seconds * PHASES * 1e9 / all);
}

int main(int argc, char **argv)
{
	bool streams = false;
	uint32_t count = 1;
	double seconds = 0.3;
	int letter;

	program = "invcost";
	setvbuf(stdout, NULL, _IOLBF, 0);
	while ((letter = getopt(argc, argv, "d:g:m:q:t:")) != -1)
		switch (letter) {
		case 'm':
			streams = !strcmp(optarg, "stream");
			break;
		case 'q':
			count = strtoul(optarg, NULL, 0);
			break;
		case 't':
			seconds = atof(optarg);
			break;
		default:
			if (peer_option(letter))
				break;
			return 2;
		}
	open_device();
	prepare();
	if (streams)
		stream(seconds);
	else
		idle(count);
	return 0;
}
