// SPDX-License-Identifier: GPL-2.0
/*
 * round_trips: prints the 99th percentile of round trips: a SEND of 64 bytes from one QP of this
 * process to another, and a READ of 64 bytes back.  $RDMA_DEV names the device.
 *
 * Prints "p99 NANOSECONDS".  The best of several runs counts, because other work of the machine
 * makes a run slower, and never faster.
 */
#include "verbs_test.h"

#define BYTES	64
#define ROUNDS	1000
#define RUNS	5

static int later(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static uint64_t ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

static bool round_trip(struct pair *p)
{
	struct ibv_sge from = { (uintptr_t)p->a.buf, BYTES, p->a.mr->lkey };
	struct ibv_sge to = { (uintptr_t)p->b.buf, BYTES, p->b.mr->lkey };
	struct ibv_recv_wr recv = { .wr_id = 7, .sg_list = &to, .num_sge = 1 }, *bad;
	struct ibv_send_wr send = { .opcode = IBV_WR_SEND, .sg_list = &from, .num_sge = 1 };
	struct ibv_send_wr read = { .opcode = IBV_WR_RDMA_READ, .sg_list = &from, .num_sge = 1,
				    .wr.rdma = { to.addr, p->b.mr->rkey } };
	struct completion c;

	VERB(ibv_post_recv(p->b.qp, &recv, &bad));
	return request_ends(p, &send, IBV_WC_SUCCESS, "send") &&
	       wait_for(p->b.cq, 7, IBV_WC_RECV, &c) &&
	       request_ends(p, &read, IBV_WC_SUCCESS, "read");
}

static bool measure(struct pair *p)
{
	static uint64_t took[ROUNDS];
	uint64_t best = UINT64_MAX;
	int run, i;

	if (!make_pair(p, (struct pair_opts){ .size = 4096 }))
		return false;
	for (run = 0; run < RUNS; run++) {
		for (i = 0; i < ROUNDS; i++) {
			took[i] = ns();
			if (!round_trip(p))
				return false;
			took[i] = ns() - took[i];
		}
		qsort(took, ROUNDS, sizeof(*took), later);
		if (took[ROUNDS * 99 / 100] < best)
			best = took[ROUNDS * 99 / 100];
	}
	printf("p99 %llu\n", (unsigned long long)best);
	return true;
}

int main(int argc, char **argv)
{
	static const struct test tests[] = { { "round trips", measure, false } };

	(void)argc;
	(void)argv;
	return run_tests(tests, 1, NULL);
}
