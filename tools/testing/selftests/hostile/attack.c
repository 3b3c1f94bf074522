// SPDX-License-Identifier: GPL-2.0
/* attack.h describes these functions. */
#define _GNU_SOURCE
#include "attack.h"

const enum ibv_qp_type types[3] = { IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD };

void pair_make(struct end *a, struct end *b, enum ibv_qp_type type)
{
	end_make(a, type, false, 4 * DEPTH);
	end_make(b, type, false, 4 * DEPTH);
	connect_ends(a, b);
}

void pair_destroy(struct end *a, struct end *b)
{
	fences_hold(a);
	fences_hold(b);
	end_destroy(a);
	end_destroy(b);
}

/* Write a valid request into the next slot of @a's send queue; publish() makes it visible. */
struct nhca_send_wqe *good_wqe(struct end *a, struct end *b, uint64_t wr_id)
{
	struct nhca_send_wqe *wqe = (void *)slot(&a->sqr, load(&a->sqr.hdr->prod));

	memset(wqe, 0, a->sqr.stride);
	wqe->wr_id = wr_id;
	wqe->flags = NHCA_SEND_SIGNALED;
	wqe->num_sge = 1;
	wqe->sge[0] = (struct nhca_sge){ (uintptr_t)a->buf, 64, a->mr->lkey };
	if (a->type == IBV_QPT_UD) {
		wqe->opcode = NHCA_WR_SEND;
		wqe->ud.ah_id = a->ah_id;
		wqe->ud.remote_qpn = b->qp->qp_num;
		wqe->ud.remote_qkey = QKEY;
	} else {
		wqe->opcode = NHCA_WR_RDMA_WRITE;
		wqe->rdma.remote_addr = (uintptr_t)b->buf;
		wqe->rdma.rkey = b->mr->rkey;
	}
	return wqe;
}

void publish(struct end *a)
{
	store(&a->sqr.hdr->prod, load(&a->sqr.hdr->prod) + 1);
	ring_sq(a);
}

/* ---- the bystander: a pair of queue pairs in another process ---- */

static struct end a, b;

/*
 * Polls a second, measured while the bystander runs alone. A busy host may give the whole guest
 * little CPU time for minutes, and the bystander then also polls less often. So a completion is
 * late only after 3 * PATIENCE seconds and after as many polls as the bystander makes in this time
 * when it runs alone.
 */
static double poll_rate;

static void poll_rate_measure(void)
{
	double begun = now(), seconds;
	uint64_t polls = 0;
	struct ibv_wc wc;

	do {
		must(!ibv_poll_cq(a.cq, 1, &wc));
		polls++;
		seconds = now() - begun;
	} while (seconds < 0.5);
	poll_rate = polls / seconds;
}

/* Print what the driver shows about the bystander's queue pairs. */
static void qps_print(void)
{
	char command[80];

	snprintf(command, sizeof(command), "rdma -dd resource show qp pid %d | sed 's/^/# /'",
		 getpid());
	if (system(command))
		printf("# rdma resource show qp: failed\n");
}

__attribute__((noreturn))
static void no_completion(uint64_t wr_id, double seconds, uint64_t polls)
{
	qps_print();
	die("no completion of request %" PRIu64 " for %.1f s and %" PRIu64
	    " polls, %.0f polls a second alone; requester in state %d, responder in state %d",
	    wr_id, seconds, polls, poll_rate, end_state(&a), end_state(&b));
}

static void await(struct end *e, uint64_t wr_id)
{
	double begun = now(), waited;
	volatile double *longest;
	uint64_t polls = 0;
	struct ibv_wc wc;
	int n;

	do {
		n = ibv_poll_cq(e->cq, 1, &wc);
		must(n >= 0);
		polls++;
		waited = now() - begun;
		if (!n && waited > 3 * PATIENCE && polls > 3 * PATIENCE * poll_rate)
			no_completion(wr_id, waited, polls);
	} while (!n);
	if (wc.status || wc.wr_id != wr_id)
		die("completion of %" PRIu64 ": %s", wr_id, ibv_wc_status_str(wc.status));

	longest = shared->rounds < ALONE_ROUNDS ? &shared->longest_alone : &shared->longest;
	if (waited > *longest)
		*longest = waited;
}

__attribute__((noreturn))
static void bystander(void)
{
	uint32_t length, i;

	seed_state = 4711;
	pair_make(&a, &b, IBV_QPT_RC);
	/* use long timeouts, because attacks leave little CPU time for the bystander */
	a.patient = true;
	b.patient = true;
	connect_ends(&a, &b);
	poll_rate_measure();
	while (!shared->stop) {
		length = 8 + rnd() % (REGION - 8);
		rnd_fill(a.buf, length);
		memset(b.buf, 0, length);
		post_recv(&b, 1, b.buf, REGION);
		post_send(&a, 2, IBV_WR_SEND, a.buf, length, &b);
		await(&a, 2);
		await(&b, 1);
		for (i = 0; i < length; i++)
			if (a.buf[i] != b.buf[i])
				die("byte %u of %u is wrong", i, length);
		fences_hold(&a);
		fences_hold(&b);
		shared->rounds++;
	}
	pair_destroy(&a, &b);
	_exit(0);
}

/* ---- running ---- */

struct judge judge;

void verdict(const char *name, const char *why)
{
	if (why)
		ktap_notok(why, "%s", name);
	else
		ktap_ok("%s", name);
}

void bystander_start(void)
{
	const char *why;

	fflush(stdout);
	judge.bystander = fork();
	if (!judge.bystander)
		bystander();
	shared->bystander = judge.bystander;
	do
		why = undisturbed();
	while (!why && shared->rounds < ALONE_ROUNDS);
	verdict("bystander: moves data before the attacks", why);
}

const char *bystander_ended(void)
{
	if (!judge.bystander ||
	    waitpid(judge.bystander, NULL, WNOHANG) != judge.bystander)
		return NULL;
	judge.bystander = 0;
	snprintf(judge.why, sizeof(judge.why), "the bystander ended: %s", shared->why);
	return judge.why;
}

void bystander_stop(void)
{
	int status;

	printf("# bystander: %" PRIu64 " rounds; the longest wait was %.1f ms alone, then %.1f ms\n",
	       shared->rounds, 1000 * shared->longest_alone, 1000 * shared->longest);
	if (!judge.bystander)
		return;
	shared->stop = true;
	waitpid(judge.bystander, &status, 0);
	verdict("bystander: every byte was correct",
		WIFEXITED(status) && !WEXITSTATUS(status) ? NULL : shared->why);
}

/*
 * Return: NULL if the bystander still moves data, or if its end was returned before; otherwise a
 * description of the failure.  The bystander itself decides when a completion takes too long, and
 * ends then.  The limit here is for a bystander that hangs in a call.
 */
const char *undisturbed(void)
{
	uint64_t before = shared->rounds;
	double until = now() + 60 * PATIENCE;
	const char *why = NULL;

	while (judge.bystander && !why && shared->rounds < before + 2) {
		why = bystander_ended();
		if (now() > until)
			why = "the bystander makes no progress";
		usleep(1000);
	}
	return why;
}

/* Run one attack with one seed.  Return: NULL, or a description of the failure. */
const char *attack(const struct attack *a, unsigned int seed)
{
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		seed_state = seed * 1000003ULL;
		alarm(180);
		a->run();
		_exit(0);
	}
	waitpid(pid, &status, 0);
	/* continue the bystander, which an attack may have stopped to have all CPUs for itself */
	if (judge.bystander)
		kill(judge.bystander, SIGCONT);
	if (WIFSIGNALED(status) && WTERMSIG(status) != a->signal) {
		snprintf(judge.why, sizeof(judge.why), "seed %u: ended by signal %d", seed,
			 WTERMSIG(status));
		return judge.why;
	}
	if (WIFEXITED(status) && WEXITSTATUS(status)) {
		snprintf(judge.why, sizeof(judge.why), "seed %u: %s", seed, shared->why);
		shared->why[0] = 0;
		return judge.why;
	}
	return undisturbed();
}

int attacks_main(int argc, char **argv, const struct attack *attacks, int n)
{
	unsigned int seeds, seed;
	const char *why;
	int i;

	if (argc < 3) {
		fprintf(stderr, "usage: %s DEVICE GID_INDEX [SEEDS]\n", argv[0]);
		return 2;
	}
	device_name = argv[1];
	gid_index = atoi(argv[2]);
	seeds = argc > 3 ? atoi(argv[3]) : 20;

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		return 2;

	bystander_start();
	for (i = 0; i < n; i++) {
		why = NULL;
		for (seed = 1; seed <= (attacks[i].seeded ? seeds : 1) && !why; seed++)
			why = attack(&attacks[i], seed);
		verdict(attacks[i].name, why);
	}

	bystander_stop();
	return ktap_end();
}
