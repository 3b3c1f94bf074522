// SPDX-License-Identifier: GPL-2.0
/*
 * greedy: one user takes of one kind of resource as many as the device gives out, and keeps them.
 *
 *   greedy DEVICE KIND JOB [BOUND]
 *
 * KIND: rcxts; cqs: CQs of 4 MiB; qps: QPs with the longest queues; dm: KiB of device memory;
 * groups: multicast groups.
 *
 * Prints "KIND: N taken, then ERROR" and holds them until SIGTERM.  With BOUND it takes that many
 * and ends: status 0 if it got them.
 */
#include <signal.h>

#define SEND_WR		16
#define RCXTS		4
#define MEMORY		(1u << 20)
#include "channels.h"

#define MOST		1024	/* rCxts in one call */
#define CQ_ENTRIES	65536	/* of 64 bytes: 4 MiB */
#define CQS		64
#define QPS		64

static uint64_t bound = ~0ULL;

static struct channel *channel_new(void)
{
	struct channel *c = calloc(1, sizeof(*c));

	must(c);
	channel_make(c, job, 0);
	return c;
}

/* Fewer at a time, down to one, and then with one more channel, until a new channel gets none. */
static uint64_t take_rcxts(int *error)
{
	static uint64_t ids[MOST];
	struct channel *c = channel_new();
	uint64_t taken = 0;
	uint32_t step = MOST, n;
	bool got = false;

	while (taken < bound) {
		n = step < bound - taken ? step : bound - taken;
		*error = nhcadv_acquire_rcxts(c->qp, ids, n);
		if (!*error) {
			taken += n;
			got = true;
		} else if (step > 1) {
			step /= 2;
		} else if (got) {
			c = channel_new();
			step = MOST;
			got = false;
		} else {
			break;
		}
	}
	return taken;
}

static uint64_t take_cqs(int *error)
{
	uint64_t taken;

	for (taken = 0; taken < CQS && taken < bound; taken++)
		if (!ibv_create_cq(context, CQ_ENTRIES, NULL, NULL, 0)) {
			*error = errno;
			break;
		}
	return taken;
}

/* A UD QP, or the largest RC QP there is */
static struct ibv_qp *qp_new(struct ibv_cq *cq, enum ibv_qp_type type)
{
	uint32_t depth = type == IBV_QPT_UD ? 1 : device.max_qp_wr;
	struct ibv_qp_init_attr init = { .send_cq = cq, .recv_cq = cq, .qp_type = type,
		.cap = { .max_send_wr = depth, .max_recv_wr = depth, .max_send_sge = 1,
			 .max_recv_sge = 1 } };

	return ibv_create_qp(pd, &init);
}

static uint64_t take_qps(int *error)
{
	struct ibv_cq *cq = ibv_create_cq(context, 16, NULL, NULL, 0);
	uint64_t taken;

	must(cq);
	for (taken = 0; taken < QPS && taken < bound; taken++)
		if (!qp_new(cq, IBV_QPT_RC)) {
			*error = errno;
			break;
		}
	return taken;
}

/* Fewer bytes at a time, down to a page */
static uint64_t take_dm(int *error)
{
	struct ibv_alloc_dm_attr attr = { .length = 1 << 20 };
	uint64_t taken = 0;

	while (taken < bound && attr.length >= 4096) {
		if (ibv_alloc_dm(context, &attr)) {
			taken += attr.length >> 10;
		} else {
			*error = errno;
			attr.length /= 2;
		}
	}
	return taken;
}

/* Each user has groups of its own. */
static uint64_t take_groups(int *error)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = 1 };
	union ibv_gid gid = { .raw = { 0xff, 0x0e } };
	struct ibv_cq *cq = ibv_create_cq(context, 16, NULL, NULL, 0);
	struct ibv_qp *qp;
	uint64_t taken;

	must(cq && (qp = qp_new(cq, IBV_QPT_UD)));
	verb(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY));
	for (taken = 0; taken < bound; taken++) {
		memcpy(gid.raw + 8, &job, sizeof(job));
		gid.raw[14] = taken >> 8;
		gid.raw[15] = taken;
		*error = ibv_attach_mcast(qp, &gid, 0);
		if (*error)
			break;
	}
	return taken;
}

static const struct {
	const char *name;
	uint64_t (*take)(int *error);
} kinds[] = {
	{ "rcxts", take_rcxts }, { "cqs", take_cqs }, { "qps", take_qps }, { "dm", take_dm },
	{ "groups", take_groups },
};

int main(int argc, char **argv)
{
	uint64_t taken = 0;
	int error = 0;
	sigset_t set;
	unsigned int i;

	program = "greedy";
	if (argc < 4) {
		fprintf(stderr, "usage: greedy DEVICE rcxts|cqs|qps|dm|groups JOB [BOUND]\n");
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	device_name = argv[1];
	job = atoi(argv[3]);
	if (argc > 4)
		bound = strtoull(argv[4], NULL, 0);
	open_device();
	for (i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if (!strcmp(argv[2], kinds[i].name))
			taken = kinds[i].take(&error);
	printf("%s: %" PRIu64 " taken, then %s\n", argv[2], taken, strerror(error));
	if (argc > 4)
		return taken < bound;
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigwaitinfo(&set, NULL);
	return 0;
}
