// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * nhcadv_move DEVICE [GID-INDEX]: a third-party transfer of 1 MiB.  A manager lets a source write
 * into the memory of a target.  Here all three are channels of the same device; usually they are on
 * three hosts, and exchange what struct end has by other means.  If the manager does not get its
 * completion in time, it probes the target, and requests the missing parts again.
 *
 *	cc -o nhcadv_move nhcadv_move.c -lnhca -libverbs
 */
#include <err.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <infiniband/nhcadv.h>

#define LENGTH	(1u << 20)
#define TIMEOUT_MS 200	/* milliseconds without a completion before a probe */
#define TRIES	50	/* completions and timeouts before the program gives up */

struct end {
	struct ibv_cq_ex *cq;
	struct ibv_qp *qp;
	struct ibv_qp_ex *qpx;
	struct nhcadv_qp_ex *dv;
	struct nhcadv_channel_info info;
	struct nhcadv_job_mem *mem;
	uint64_t rcxt;
	unsigned char *bytes;
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
	struct ibv_context *context = NULL;
	int i;

	for (i = 0; list && list[i]; i++)
		if (!strcmp(ibv_get_device_name(list[i]), name) && nhcadv_is_supported(list[i]))
			context = ibv_open_device(list[i]);
	if (!context)
		errx(1, "%s: no such nhca device", name);
	ibv_free_device_list(list);
	return context;
}

static void make(struct end *end, struct ibv_context *context, struct ibv_pd *pd, uint32_t job)
{
	struct ibv_cq_init_attr_ex cq_attr = { .cqe = 64 };
	struct nhcadv_channel_init_attr attr = { .job = job, .frames = 16 };
	struct ibv_qp_init_attr_ex init = {
		.qp_type = IBV_QPT_DRIVER, .cap = { .max_send_wr = 16 },
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
	check(nhcadv_acquire_rcxts(end->qp, &end->rcxt, 1), "nhcadv_acquire_rcxts");

	end->bytes = calloc(1, LENGTH);
	if (!end->bytes)
		err(1, "calloc");
	end->mem = nhcadv_reg_job_mem(context, job, end->bytes, LENGTH,
				      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
				      IBV_ACCESS_REMOTE_WRITE);
	if (!end->mem)
		err(1, "nhcadv_reg_job_mem");
}

static void unmake(struct end *end)
{
	check(ibv_destroy_qp(end->qp), "ibv_destroy_qp");
	check(ibv_destroy_cq(ibv_cq_ex_to_cq(end->cq)), "ibv_destroy_cq");
	check(nhcadv_dereg_job_mem(end->mem), "nhcadv_dereg_job_mem");
	free(end->bytes);
}

/*
 * Wait TIMEOUT_MS for the next completion.  The caller must release the frame of NHCADV_WC_FRAME.
 * Return: enum nhcadv_wc_kind, or -1 if there is no completion in time.
 */
static int wait_kind(struct end *end, uint32_t *frame)
{
	struct nhcadv_cq *dv = nhcadv_cq_from_ibv_cq_ex(end->cq);
	struct ibv_poll_cq_attr attr = {};
	int tries, kind, ret;

	for (tries = 0; tries < TIMEOUT_MS; tries++) {
		ret = ibv_start_poll(end->cq, &attr);
		if (ret == ENOENT) {
			poll(NULL, 0, 1);
			continue;
		}
		check(ret, "ibv_start_poll");
		if (end->cq->status)
			errx(1, "completion: %s", ibv_wc_status_str(end->cq->status));
		kind = nhcadv_wc_read_kind(dv);
		*frame = nhcadv_wc_read_frame(dv);
		ibv_end_poll(end->cq);
		return kind;
	}
	return -1;
}

/* Request the packets again that a status does not report; one request per contiguous range. */
static void move_missing(struct end *manager, const struct nhcadv_peer *source,
			 const struct nhcadv_target *target, const struct nhcadv_transfer *t,
			 const struct nhcadv_frame *status)
{
	uint32_t packets = (t->total + t->segment - 1) / t->segment;
	uint32_t first, next, offset, length;

	for (first = 0; first < packets; first = next) {
		next = first + 1;
		if (nhcadv_frame_has(status, first))
			continue;
		while (next < packets && !nhcadv_frame_has(status, next))
			next++;
		offset = first * t->segment;
		length = (next < packets ? next * t->segment : t->total) - offset;
		ibv_wr_start(manager->qpx);
		manager->qpx->wr_flags = 0;
		nhcadv_wr_move_again(manager->dv, source, target, t, offset, length);
		/* The send FIFO is full: the next probe finds the rest. */
		if (ibv_wr_complete(manager->qpx))
			return;
	}
}

/* Return: true if the transfer is complete. */
static bool look_at(struct end *manager, const struct nhcadv_peer *source,
		    const struct nhcadv_target *target, const struct nhcadv_transfer *t,
		    const struct nhcadv_frame *status)
{
	if (status->kind != NHCADV_FRAME_STATUS || status->tid != t->tid)
		return false;
	switch (status->status) {
	case NHCADV_TRANSFER_COMPLETE:
		/* All bytes are in place, but the notice for the completion was lost. */
		return true;
	case NHCADV_TRANSFER_FORBIDDEN:
		errx(1, "the source has not allowed the target");
	case NHCADV_TRANSFER_PROT_ERR:
		errx(1, "memory protection has refused the transfer");
	default:
		move_missing(manager, source, target, t, status);
		return false;
	}
}

static void move(struct end *manager, const struct nhcadv_peer *source,
		 const struct nhcadv_target *target, const struct nhcadv_transfer *t)
{
	/* A probe names the rCxt of the target. */
	struct nhcadv_transfer at_target = *t;
	uint32_t index;
	int kind, tries;
	bool done;

	at_target.remote_rcxt = target->rcxt;
	ibv_wr_start(manager->qpx);
	manager->qpx->wr_id = 1;
	manager->qpx->wr_flags = 0;
	nhcadv_wr_move(manager->dv, source, target, t);
	check(ibv_wr_complete(manager->qpx), "move");

	for (tries = 0; tries < TRIES; tries++) {
		kind = wait_kind(manager, &index);
		if (kind == NHCADV_WC_MOVE)
			return;
		if (kind == NHCADV_WC_FRAME) {
			done = look_at(manager, source, target, t, nhcadv_frame(manager->qp, index));
			check(nhcadv_release_frame(manager->qp, index), "nhcadv_release_frame");
			if (done)
				return;
			continue;
		}
		ibv_wr_start(manager->qpx);
		nhcadv_wr_probe(manager->dv, &target->peer, &at_target, 0);
		check(ibv_wr_complete(manager->qpx), "probe");
	}
	errx(1, "the transfer did not complete in time, check the network");
}

int main(int argc, char **argv)
{
	struct ibv_ah_attr ah_attr = { .is_global = 1, .port_num = 1, .grh.hop_limit = 64 };
	struct end manager, source, target;
	struct nhcadv_transfer transfer;
	struct nhcadv_device_attr attr;
	struct ibv_context *context;
	struct nhcadv_peer from;
	struct nhcadv_target to;
	struct ibv_ah *ah;
	struct ibv_pd *pd;
	uint32_t frame, i, job = getpid();

	if (argc < 2)
		errx(2, "usage: nhcadv_move DEVICE [GID-INDEX]");
	context = open_device(argv[1]);
	check(nhcadv_query_device(context, &attr), "nhcadv_query_device");
	if (!(attr.caps & NHCADV_DEVICE_MOVE))
		errx(1, "%s: the driver has no third-party transfers", argv[1]);
	ah_attr.grh.sgid_index = argc > 2 ? atoi(argv[2]) : 0;
	check(ibv_query_gid(context, 1, ah_attr.grh.sgid_index, &ah_attr.grh.dgid), "ibv_query_gid");
	pd = ibv_alloc_pd(context);
	if (!pd)
		err(1, "ibv_alloc_pd");
	ah = ibv_create_ah(pd, &ah_attr);
	if (!ah)
		err(1, "ibv_create_ah");

	make(&manager, context, pd, job);
	make(&source, context, pd, job);
	make(&target, context, pd, job);
	for (i = 0; i < LENGTH; i++)
		source.bytes[i] = i * 7 ^ i >> 11;

	/* the program of the source */
	check(nhcadv_allow_target(source.qp, ah), "nhcadv_allow_target");

	/* the program of the manager */
	from = (struct nhcadv_peer){ .ah = ah, .qpn = source.qp->qp_num, .key = source.info.key };
	to = (struct nhcadv_target){
		.peer = { .ah = ah, .qpn = target.qp->qp_num, .key = target.info.key },
		.rcxt = target.rcxt, .pvo = target.mem->pvo,
	};
	transfer = (struct nhcadv_transfer){
		.local_rcxt = manager.rcxt, .remote_rcxt = source.rcxt,
		.remote_pvo = source.mem->pvo, .cookie = 4711, .tid = 1, .total = LENGTH,
		.segment = source.info.segment - NHCADV_MOVE_HEADER,
		.notify = NHCADV_NOTIFY_INITIATOR | NHCADV_NOTIFY_TARGET,
	};
	move(&manager, &from, &to, &transfer);
	if (wait_kind(&target, &frame) != NHCADV_WC_REMOTE_WRITE)
		errx(1, "the target got no completion");
	if (memcmp(source.bytes, target.bytes, LENGTH))
		errx(1, "the target has other bytes than the source");
	printf("%u bytes from channel %#x to channel %#x\n", LENGTH, source.qp->qp_num,
	       target.qp->qp_num);

	check(nhcadv_revoke_target(source.qp, ah), "nhcadv_revoke_target");
	unmake(&manager);
	unmake(&source);
	unmake(&target);
	check(ibv_destroy_ah(ah), "ibv_destroy_ah");
	check(ibv_dealloc_pd(pd), "ibv_dealloc_pd");
	check(ibv_close_device(context), "ibv_close_device");
	return 0;
}
