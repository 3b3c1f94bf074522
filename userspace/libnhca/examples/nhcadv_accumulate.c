// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * nhcadv_accumulate DEVICE [GID-INDEX]: the sum of the gradients of several workers, which the
 * adapter of one host computes as the packets arrive.  The program of this host does nothing until
 * all accumulates are complete.  Here the workers and the host are channels of the same device;
 * usually they are on several hosts, and exchange QPNs, keys, rCxts and PVOs by other means.  A
 * worker that does not get its completion in time probes the host, and sends the missing packets
 * again.
 *
 *	cc -o nhcadv_accumulate nhcadv_accumulate.c -lnhca -libverbs
 */
#include <err.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <infiniband/nhcadv.h>

#define WORKERS	3
#define NUMBERS	100000
#define LENGTH	(NUMBERS * (uint32_t)sizeof(float))
#define SEGMENT	1024u
#define PACKETS	((LENGTH + SEGMENT - 1) / SEGMENT)
#define TIMEOUT_MS 100	/* milliseconds without a completion before a probe */
#define TRIES	500	/* timeouts before the program gives up */

struct end {
	struct ibv_cq_ex *cq;
	struct ibv_qp *qp;
	struct ibv_qp_ex *qpx;
	struct nhcadv_qp_ex *dv;
	struct nhcadv_channel_info info;
	struct nhcadv_job_mem *mem;
	uint64_t rcxts[WORKERS];
	float *vector;
};

static void check(int error, const char *what)
{
	if (error) {
		errno = error;
		err(1, "%s", what);
	}
}

static struct ibv_context *open_device(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct nhcadv_device_attr attr;
	struct ibv_context *context = NULL;
	int i;

	for (i = 0; list && list[i]; i++)
		if (!strcmp(ibv_get_device_name(list[i]), name) && nhcadv_is_supported(list[i]))
			context = ibv_open_device(list[i]);
	if (!context)
		errx(1, "%s: no such nhca device", name);
	ibv_free_device_list(list);
	check(nhcadv_query_device(context, &attr), "nhcadv_query_device");
	if (!(attr.caps & NHCADV_DEVICE_ACCUMULATE))
		errx(1, "%s: the driver has no accumulates", name);
	return context;
}

/* @rcxts: number of rCxts: one for each peer */
static void make(struct end *end, struct ibv_context *context, struct ibv_pd *pd, uint32_t job,
		 uint32_t rcxts)
{
	struct ibv_cq_init_attr_ex cq_attr = { .cqe = 256 };
	struct nhcadv_channel_init_attr attr = { .job = job, .frames = 16 };
	struct ibv_qp_init_attr_ex init = {
		.qp_type = IBV_QPT_DRIVER, .cap = { .max_send_wr = 512 },
		.comp_mask = IBV_QP_INIT_ATTR_PD, .pd = pd,
	};

	end->cq = ibv_create_cq_ex(context, &cq_attr);
	if (!end->cq)
		err(1, "ibv_create_cq_ex");
	init.send_cq = init.recv_cq = ibv_cq_ex_to_cq(end->cq);
	end->qp = nhcadv_create_channel(context, &init, &attr);
	if (!end->qp)
		err(1, "nhcadv_create_channel");
	end->qpx = ibv_qp_to_qp_ex(end->qp);
	end->dv = nhcadv_qp_ex_from_ibv_qp_ex(end->qpx);
	check(nhcadv_query_channel(end->qp, &end->info), "nhcadv_query_channel");
	check(nhcadv_acquire_rcxts(end->qp, end->rcxts, rcxts), "nhcadv_acquire_rcxts");

	end->vector = calloc(1, LENGTH);
	if (!end->vector)
		err(1, "calloc");
	/* the memory of the workers needs no right: channels may always send from job memory */
	end->mem = nhcadv_reg_job_mem(context, job, end->vector, LENGTH,
				      rcxts == 1 ? 0 : IBV_ACCESS_LOCAL_WRITE |
				      IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC);
	if (!end->mem)
		err(1, "nhcadv_reg_job_mem");
}

static void unmake(struct end *end)
{
	check(ibv_destroy_qp(end->qp), "ibv_destroy_qp");
	check(ibv_destroy_cq(ibv_cq_ex_to_cq(end->cq)), "ibv_destroy_cq");
	check(nhcadv_dereg_job_mem(end->mem), "nhcadv_dereg_job_mem");
	free(end->vector);
}

/* Return: enum nhcadv_wc_kind of the next completion, or -1 if there is none. */
static int poll_kind(struct end *end, uint32_t *frame)
{
	struct nhcadv_cq *dv = nhcadv_cq_from_ibv_cq_ex(end->cq);
	struct ibv_poll_cq_attr attr = {};
	int kind, ret;

	ret = ibv_start_poll(end->cq, &attr);
	if (ret == ENOENT)
		return -1;
	check(ret, "ibv_start_poll");
	if (end->cq->status)
		errx(1, "completion: %s", ibv_wc_status_str(end->cq->status));
	kind = nhcadv_wc_read_kind(dv);
	*frame = nhcadv_wc_read_frame(dv);
	ibv_end_poll(end->cq);
	return kind;
}

static void send_again(struct end *worker, const struct nhcadv_peer *peer,
		       const struct nhcadv_transfer *t, uint32_t first, uint32_t end)
{
	uint32_t offset = first * SEGMENT;

	ibv_wr_start(worker->qpx);
	worker->qpx->wr_flags = 0;
	nhcadv_wr_accumulate_again(worker->dv, peer, t, NHCADV_ACC_SUM, NHCADV_ACC_F32, offset,
				   (end == PACKETS ? LENGTH : end * SEGMENT) - offset);
	check(ibv_wr_complete(worker->qpx), "a repetition");
}

/* Return: true if the status says that the accumulate is complete; otherwise retransmit. */
static bool look_at(struct end *worker, const struct nhcadv_peer *peer,
		    const struct nhcadv_transfer *t, const struct nhcadv_frame *status)
{
	uint32_t first, end;

	if (status->kind != NHCADV_FRAME_STATUS || status->tid != t->tid)
		return false;
	if (status->status == NHCADV_TRANSFER_COMPLETE)
		return true;
	if (status->status == NHCADV_TRANSFER_PROT_ERR)
		errx(1, "memory protection has refused the accumulate");
	for (first = 0; first < PACKETS; first = end) {
		end = first + 1;
		if (nhcadv_frame_has(status, first))
			continue;
		while (end < PACKETS && !nhcadv_frame_has(status, end))
			end++;
		send_again(worker, peer, t, first, end);
	}
	return false;
}

/* Wait until all elements of a worker were added exactly once. */
static void finish(struct end *worker, const struct nhcadv_peer *peer,
		   const struct nhcadv_transfer *t)
{
	bool complete = false;
	uint32_t frame;
	int kind, ms = 0, tries = 0;

	while (!complete) {
		kind = poll_kind(worker, &frame);
		if (kind == NHCADV_WC_WRITE)
			return;
		if (kind == NHCADV_WC_FRAME) {
			complete = look_at(worker, peer, t, nhcadv_frame(worker->qp, frame));
			check(nhcadv_release_frame(worker->qp, frame), "nhcadv_release_frame");
			continue;
		}
		usleep(1000);
		if (++ms % TIMEOUT_MS)
			continue;
		if (++tries > TRIES)
			errx(1, "the host does not answer");
		ibv_wr_start(worker->qpx);
		worker->qpx->wr_flags = 0;
		nhcadv_wr_probe(worker->dv, peer, t, 0);
		check(ibv_wr_complete(worker->qpx), "probe");
	}
}

int main(int argc, char **argv)
{
	struct ibv_ah_attr ah_attr = { .is_global = 1, .port_num = 1, .grh.hop_limit = 64 };
	struct nhcadv_transfer t[WORKERS];
	struct ibv_context *context;
	struct nhcadv_peer peer;
	struct end host, worker[WORKERS];
	struct ibv_pd *pd;
	uint32_t job = getpid(), w, i;

	if (argc < 2)
		errx(2, "usage: nhcadv_accumulate DEVICE [GID-INDEX]");
	context = open_device(argv[1]);
	pd = ibv_alloc_pd(context);
	if (!pd)
		err(1, "ibv_alloc_pd");
	make(&host, context, pd, job, WORKERS);
	ah_attr.grh.sgid_index = argc > 2 ? atoi(argv[2]) : 0;
	check(ibv_query_gid(context, 1, ah_attr.grh.sgid_index, &ah_attr.grh.dgid),
	      "ibv_query_gid");
	peer = (struct nhcadv_peer){ .qpn = host.qp->qp_num, .key = host.info.key };
	peer.ah = ibv_create_ah(pd, &ah_attr);
	if (!peer.ah)
		err(1, "ibv_create_ah");

	for (w = 0; w < WORKERS; w++) {
		make(&worker[w], context, pd, job, 1);
		for (i = 0; i < NUMBERS; i++)
			worker[w].vector[i] = (w + 1) * (float)i;
		t[w] = (struct nhcadv_transfer){
			.local_rcxt = worker[w].rcxts[0], .remote_rcxt = host.rcxts[w],
			.local_pvo = worker[w].mem->pvo, .remote_pvo = host.mem->pvo,
			.tid = 1, .total = LENGTH, .segment = SEGMENT,
			.notify = NHCADV_NOTIFY_INITIATOR,
		};
		ibv_wr_start(worker[w].qpx);
		worker[w].qpx->wr_flags = 0;
		nhcadv_wr_accumulate(worker[w].dv, &peer, &t[w], NHCADV_ACC_SUM, NHCADV_ACC_F32, 0);
		check(ibv_wr_complete(worker[w].qpx), "nhcadv_wr_accumulate");
	}
	for (w = 0; w < WORKERS; w++)
		finish(&worker[w], &peer, &t[w]);
	for (i = 0; i < NUMBERS; i++)
		if (host.vector[i] != 6 * (float)i)
			errx(1, "number %u is %f", i, host.vector[i]);
	printf("the sum of %u vectors of %u numbers is right\n", WORKERS, NUMBERS);

	for (w = 0; w < WORKERS; w++)
		unmake(&worker[w]);
	unmake(&host);
	check(ibv_destroy_ah(peer.ah), "ibv_destroy_ah");
	check(ibv_dealloc_pd(pd), "ibv_dealloc_pd");
	check(ibv_close_device(context), "ibv_close_device");
	return 0;
}
