// SPDX-License-Identifier: GPL-2.0
/*
 * hostile_user: random calls, and random writes into rings, by processes without privileges.
 *
 *   hostile_user DEVICE GID_INDEX BYSTANDERS_DEVICE BYSTANDERS_GID_INDEX SECONDS [SEED]
 *
 * One hostile process after the other makes queue pairs and a channel on DEVICE.  Each process then
 * acts in an order drawn from its seed: it posts requests with random fields, writes anywhere into
 * the mapped rings, posts channel work requests of any size, changes states, and makes and destroys
 * objects.  Every second process is killed after a random time of up to 1 s.  The results of the
 * calls do not matter.  The bystander, on its own device, moves data and checks each byte.
 */
#include "attack.h"

#include <infiniband/nhcadv.h>

#define STEPS		400
#define BIG		(1 << 20)
#define RCXTS		8
#define CHANNEL_WR	32
#define SHOWN		5	/* number of early ends of processes whose reasons are printed */

static struct end ends[2];
static struct {
	struct ibv_qp *qp;
	struct ibv_qp_ex *qpx;
	struct nhcadv_qp_ex *dv;
	struct ibv_cq_ex *cq;
	struct nhcadv_job_mem *mem;
	struct nhcadv_peer peer;
	char *buf;
	uint64_t rcxts[RCXTS];
	uint32_t tid;
} chan;
static struct map maps[256];
static int nmaps;
/* has the first failure of the current hostile process; @shared has that of the bystander */
static struct shared *words;

/* ---- numbers that programs get wrong ---- */

static uint64_t wild(void)
{
	static const uint64_t usual[] = {
		0, 1, 4095, 4096, 4097, 32767, 32768, 65535, 65536, 1 << 20, 1 << 24,
		0x7fffffff, 0x80000000, 0xffffffff, 0x7fffffffffffffff, ~0ULL,
	};

	return rnd() % 2 ? usual[rnd() % COUNT(usual)] : rnd() >> rnd() % 64;
}

/* ---- the channel; the process continues without objects that cannot be created ---- */

static void channel_make(void)
{
	struct ibv_cq_init_attr_ex cq = { .cqe = 128, .wc_flags = IBV_WC_EX_WITH_BYTE_LEN };
	struct ibv_qp_init_attr_ex init = {
		.qp_type = IBV_QPT_DRIVER, .cap = { .max_send_wr = CHANNEL_WR, .max_send_sge = 2,
		.max_inline_data = 64 }, .comp_mask = IBV_QP_INIT_ATTR_PD, .pd = ends[0].pd,
	};
	struct nhcadv_channel_init_attr attr = { .job = 5000 + rnd() % 4, .frames = 8,
						 .quantum = wild() };
	struct ibv_ah_attr ah = { .is_global = 1, .port_num = 1, .grh = {
		.dgid = ends[0].gid, .sgid_index = gid_index, .hop_limit = 64 } };
	struct nhcadv_channel_info info = {};
	uint32_t job = attr.job;

	chan.cq = ibv_create_cq_ex(ends[0].ctx, &cq);
	if (!chan.cq)
		return;
	init.send_cq = ibv_cq_ex_to_cq(chan.cq);
	init.recv_cq = init.send_cq;
	chan.qp = nhcadv_create_channel(ends[0].ctx, &init, &attr);
	if (!chan.qp)
		return;
	chan.qpx = ibv_qp_to_qp_ex(chan.qp);
	chan.dv = nhcadv_qp_ex_from_ibv_qp_ex(chan.qpx);
	chan.buf = mmap(NULL, BIG, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	must(chan.buf != MAP_FAILED);
	memset(chan.buf, 0x5a, BIG);
	chan.mem = nhcadv_reg_job_mem(ends[0].ctx, job, chan.buf, BIG, IBV_ACCESS_LOCAL_WRITE |
				      IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE);
	nhcadv_acquire_rcxts(chan.qp, chan.rcxts, RCXTS);
	nhcadv_query_channel(chan.qp, &info);
	/* the channel sends to itself */
	chan.peer = (struct nhcadv_peer){ ibv_create_ah(ends[0].pd, &ah), chan.qp->qp_num,
					  info.key };
}

/* ---- one step each ---- */

/* Ring a doorbell; its result does not matter. */
static void step_ring(struct end *e, uint32_t object, uint32_t method, uint32_t handle)
{
	struct {
		struct ib_uverbs_ioctl_hdr hdr;
		struct ib_uverbs_attr handle;
	} cmd = {
		.hdr = { .length = sizeof(cmd), .object_id = object, .method_id = method,
			 .num_attrs = 1, .driver_id = NHCA_RDMA_DRIVER_ID },
		.handle = { .attr_id = NHCA_ATTR_QP_SEND_DOORBELL_HANDLE,
			    .flags = UVERBS_ATTR_F_MANDATORY, .data = handle },
	};

	if (ioctl(e->ctx->cmd_fd, RDMA_VERBS_IOCTL, &cmd))
		errno = 0;
}

static void step_scribble(void)
{
	const struct map *m = &maps[rnd() % nmaps];
	uint64_t *p = (uint64_t *)m->start, at = rnd() % (m->size / 8);

	/* the header half of the time, and any bytes of the mapping otherwise */
	if (rnd() % 2)
		at = rnd() % (NHCA_RING_HDR_SIZE / 8);
	if (rnd() % 2)
		p[at] ^= 1ULL << rnd() % 64;
	else
		p[at] = wild();
}

/* Post a valid request after random changes of its opcode, its length, and up to two words. */
static void step_request(void)
{
	struct end *a = &ends[rnd() % 2], *b = &ends[rnd() % 2];
	struct nhca_send_wqe *wqe = good_wqe(a, b, rnd());
	uint32_t wrong = rnd() % 3, at;

	if (a->type != IBV_QPT_UD && rnd() % 2)
		wqe->opcode = rnd() % 16;
	wqe->sge[0].length = rnd() % 4 ? 1 + rnd() % REGION : wild();
	while (wrong--) {
		at = rnd() % (a->sqr.stride / 8);
		((uint64_t *)wqe)[at] = rnd() % 2 ? wild() : ((uint64_t *)wqe)[at] ^ 1ULL << rnd() % 64;
	}
	store(&a->sqr.hdr->prod, load(&a->sqr.hdr->prod) + 1);
	step_ring(a, UVERBS_OBJECT_QP, NHCA_METHOD_QP_SEND_DOORBELL, a->qp->handle);
}

/* Call a random method of the driver on a QP, SRQ or WQ, with a valid or a random handle. */
static void step_doorbell(void)
{
	static const uint32_t objects[] = { UVERBS_OBJECT_QP, UVERBS_OBJECT_SRQ, UVERBS_OBJECT_WQ };

	step_ring(&ends[rnd() % 2], objects[rnd() % COUNT(objects)],
		  NHCA_METHOD_QP_SEND_DOORBELL + rnd() % 8,
		  rnd() % 4 ? ends[0].qp->handle : rnd() % 64);
}

/* Post a channel work request, mostly valid, of any size, in packets of any size. */
static void step_channel(void)
{
	struct nhcadv_transfer t = {
		.local_rcxt = chan.rcxts[rnd() % RCXTS], .remote_rcxt = chan.rcxts[rnd() % RCXTS],
		.tid = ++chan.tid, .total = rnd() % 4 ? rnd() % BIG : wild(),
		.segment = rnd() % 2 ? 0 : 4 * (rnd() % 16384), .notify = rnd() % 4,
	};
	uint64_t room = rnd() % 4 ? BIG - (t.total < BIG ? t.total : 0) : BIG;

	if (!chan.dv || !chan.mem || !chan.peer.ah)
		return;
	t.local_pvo = chan.mem->pvo + (room ? rnd() % room : 0);
	t.remote_pvo = chan.mem->pvo + (room ? rnd() % room : 0);
	if (rnd() % 16 == 0)
		t.remote_pvo = wild();
	ibv_wr_start(chan.qpx);
	chan.qpx->wr_id = rnd();
	chan.qpx->wr_flags = rnd() % 2 ? IBV_SEND_SIGNALED : 0;
	switch (rnd() % 8) {
	case 0 ... 3:
		nhcadv_wr_write(chan.dv, &chan.peer, &t);
		break;
	case 4 ... 5:
		nhcadv_wr_read(chan.dv, &chan.peer, &t);
		break;
	case 6:
		nhcadv_wr_cancel(chan.dv, t.local_rcxt, t.tid - rnd() % 4);
		break;
	default:
		nhcadv_wr_probe(chan.dv, &chan.peer, &t, wild());
	}
	if (rnd() % 16 == 0)
		step_scribble();
	ibv_wr_complete(chan.qpx);
}

static void step_receive(void)
{
	struct end *e = &ends[rnd() % 2];
	struct ibv_sge sge = { (uintptr_t)e->buf, rnd() % 4 ? REGION : wild(), e->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = rnd(), .sg_list = &sge, .num_sge = rnd() % 2 }, *bad;

	ibv_post_recv(e->qp, &wr, &bad);
}

static void step_state(void)
{
	static const enum ibv_qp_state states[] = { IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR,
						    IBV_QPS_RTS, IBV_QPS_SQD, IBV_QPS_ERR };

	if (rnd() % 2)
		bring_up(&ends[0], &ends[1], true);
	else
		end_modify(&ends[rnd() % 2], states[rnd() % COUNT(states)],
			   rnd() % 2 ? ends[rnd() % 2].qp->qp_num : wild(), true);
}

static void step_region(void)
{
	struct end *e = &ends[rnd() % 2];
	struct ibv_mr *mr = ibv_reg_mr(e->pd, e->buf + rnd() % 4096, rnd() % 4 ? 4096 : wild(),
				       rnd() % 128);

	if (mr && rnd() % 8)
		ibv_dereg_mr(mr);
}

/* Release rCxts or deregister memory of the channel while transfers use them. */
static void step_channel_memory(void)
{
	if (!chan.mem || !chan.qp)
		return;
	if (rnd() % 2) {
		nhcadv_release_rcxts(chan.qp, chan.rcxts, RCXTS);
		nhcadv_acquire_rcxts(chan.qp, chan.rcxts, RCXTS);
		return;
	}
	nhcadv_dereg_job_mem(chan.mem);
	chan.mem = nhcadv_reg_job_mem(ends[0].ctx, 5000 + rnd() % 4, chan.buf, BIG, IBV_ACCESS_LOCAL_WRITE |
				      IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE);
}

static void step_queue(void)
{
	struct end *e = &ends[rnd() % 2];
	struct ibv_qp_init_attr init = { .qp_type = types[rnd() % COUNT(types)],
		.send_cq = e->cq, .recv_cq = ends[rnd() % 2].cq,
		.cap = { wild() % 2048, wild() % 2048, wild() % 40, wild() % 40, wild() % 1024 } };
	struct ibv_cq *cq = ibv_create_cq(e->ctx, 1 + wild() % 4096, NULL, NULL, 0);
	struct ibv_qp *qp = ibv_create_qp(e->pd, &init);

	if (qp)
		ibv_destroy_qp(qp);
	if (cq) {
		ibv_resize_cq(cq, 1 + wild() % 8192);
		ibv_destroy_cq(cq);
	}
	ibv_req_notify_cq(e->cq, rnd() % 2);
}

static void step_drain(void)
{
	/* step_scribble() may have written any value into the consumer indices: correct them */
	drain(&ends[0]);
	drain(&ends[1]);
}

static void (* const steps[])(void) = {
	step_scribble, step_request, step_request, step_request, step_doorbell, step_channel,
	step_channel, step_channel, step_receive, step_state, step_region, step_channel_memory,
	step_queue, step_drain,
};

__attribute__((noreturn))
static void hostile(uint32_t seed)
{
	enum ibv_qp_type type;
	uint32_t i;

	shared = words;
	seed_state = seed * 1000003ULL;
	alarm(60);
	type = types[rnd() % COUNT(types)];
	pair_make(&ends[0], &ends[1], type);
	channel_make();
	nmaps = maps_read(maps, COUNT(maps));
	for (i = 0; i < STEPS; i++)
		steps[rnd() % COUNT(steps)]();
	_exit(0);
}

int main(int argc, char **argv)
{
	uint32_t seed, first, whole = 0, unmade = 0, killed = 0;
	const char *why = NULL;
	double begun, until;
	pid_t pid;
	int status;

	if (argc < 6) {
		fprintf(stderr, "see the top of hostile_user.c\n");
		return 2;
	}
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		      -1, 0);
	if (shared == MAP_FAILED)
		return 2;
	words = mmap(NULL, sizeof(*words), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (words == MAP_FAILED)
		return 2;
	device_name = argv[3];
	gid_index = atoi(argv[4]);
	bystander_start();

	device_name = argv[1];
	gid_index = atoi(argv[2]);
	first = argc > 6 ? strtoul(argv[6], NULL, 0) : (unsigned long)time(NULL) % 1000000;
	printf("# first seed %u\n", first);
	begun = now();
	until = begun + atoi(argv[5]);
	for (seed = first; now() < until && !why; seed++) {
		fflush(stdout);
		pid = fork();
		if (!pid)
			hostile(seed);
		if (seed % 2) {
			seed_state = seed;
			usleep(rnd() % 1000000);
			kill(pid, SIGKILL);
		}
		waitpid(pid, &status, 0);
		if (WIFSIGNALED(status))
			killed++;
		else if (WEXITSTATUS(status) && unmade++ < SHOWN)
			printf("# seed %u: %s\n", seed, words->why);
		else if (!WEXITSTATUS(status))
			whole++;
		words->why[0] = 0;
		why = bystander_ended();
		if (why)
			printf("# the bystander ended during seed %u, after %.0f s\n", seed,
			       now() - begun);
	}
	printf("# seeds %u to %u: %u processes to the end, %u killed or crashed, %u stopped by an error\n",
	       first, seed - 1, whole, killed, unmade);
	verdict("hostile processes", whole ? NULL : "no process ran to its end");
	verdict("bystander: still moves data", why ?: undisturbed());
	bystander_stop();
	return ktap_end();
}
