// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * nhcadv_write DEVICE [GID-INDEX]: write 1 MiB from one channel to another of the same device.
 * Both ends get a completion.  If the writing end does not get its completion in time, the program
 * probes and retransmits.
 *
 *	cc -o nhcadv_write nhcadv_write.c -lnhca -libverbs
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
				      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
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

/* Retransmit the packets that a status does not report; one work request per contiguous range. */
static void send_missing(struct end *from, const struct nhcadv_peer *peer,
			 const struct nhcadv_transfer *t, const struct nhcadv_frame *status)
{
	uint32_t packets = (t->total + t->segment - 1) / t->segment;
	uint32_t first = 0, next, offset, length;

	while (first < packets) {
		if (nhcadv_frame_has(status, first)) {
			first++;
			continue;
		}
		for (next = first; next < packets && !nhcadv_frame_has(status, next); next++)
			;
		offset = first * t->segment;
		length = (next < packets ? next * t->segment : t->total) - offset;
		ibv_wr_start(from->qpx);
		from->qpx->wr_flags = 0;
		nhcadv_wr_retransmit(from->dv, peer, t, offset, length);
		/* The send FIFO is full: the next probe finds the other missing packets. */
		if (ibv_wr_complete(from->qpx))
			return;
		first = next;
	}
}

static void transmit(struct end *from, const struct nhcadv_peer *peer,
		     const struct nhcadv_transfer *t)
{
	const struct nhcadv_frame *frame;
	uint32_t index;
	int kind, tries;

	ibv_wr_start(from->qpx);
	from->qpx->wr_id = 1;
	from->qpx->wr_flags = 0;
	nhcadv_wr_write(from->dv, peer, t);
	check(ibv_wr_complete(from->qpx), "write");

	for (tries = 0; tries < TRIES; tries++) {
		kind = wait_kind(from, &index);
		if (kind == NHCADV_WC_WRITE)
			return;
		if (kind == NHCADV_WC_FRAME) {
			frame = nhcadv_frame(from->qp, index);
			if (frame->kind == NHCADV_FRAME_STATUS && frame->tid == t->tid) {
				/*
				 * All bytes are in place, but the notice for the completion was
				 * lost.
				 */
				if (frame->status == NHCADV_TRANSFER_COMPLETE)
					return;
				send_missing(from, peer, t, frame);
			}
			check(nhcadv_release_frame(from->qp, index), "nhcadv_release_frame");
			continue;
		}
		ibv_wr_start(from->qpx);
		nhcadv_wr_probe(from->dv, peer, t, 0);
		check(ibv_wr_complete(from->qpx), "probe");
	}
	errx(1, "the transfer did not complete in time, check the network");
}

int main(int argc, char **argv)
{
	struct ibv_ah_attr ah_attr = { .is_global = 1, .port_num = 1, .grh.hop_limit = 64 };
	struct nhcadv_transfer transfer;
	struct ibv_context *context;
	struct nhcadv_peer peer;
	struct end a, b;
	struct ibv_pd *pd;
	uint32_t frame, i, job = getpid();

	if (argc < 2)
		errx(2, "usage: nhcadv_write DEVICE [GID-INDEX]");
	context = open_device(argv[1]);
	ah_attr.grh.sgid_index = argc > 2 ? atoi(argv[2]) : 0;
	check(ibv_query_gid(context, 1, ah_attr.grh.sgid_index, &ah_attr.grh.dgid), "ibv_query_gid");
	pd = ibv_alloc_pd(context);
	if (!pd)
		err(1, "ibv_alloc_pd");

	make(&a, context, pd, job);
	make(&b, context, pd, job);
	peer = (struct nhcadv_peer){
		.ah = ibv_create_ah(pd, &ah_attr), .qpn = b.qp->qp_num, .key = b.info.key,
	};
	if (!peer.ah)
		err(1, "ibv_create_ah");

	for (i = 0; i < LENGTH; i++)
		a.bytes[i] = i * 7 ^ i >> 11;
	transfer = (struct nhcadv_transfer){
		.local_rcxt = a.rcxt, .remote_rcxt = b.rcxt,
		.local_pvo = a.mem->pvo, .remote_pvo = b.mem->pvo,
		.cookie = 4711, .tid = 1, .total = LENGTH, .segment = a.info.segment,
		.notify = NHCADV_NOTIFY_INITIATOR | NHCADV_NOTIFY_TARGET,
	};
	transmit(&a, &peer, &transfer);
	if (wait_kind(&b, &frame) != NHCADV_WC_REMOTE_WRITE)
		errx(1, "the target got no completion of the write");
	if (memcmp(a.bytes, b.bytes, LENGTH))
		errx(1, "the target has other bytes than the source");
	printf("%u bytes from channel %#x to channel %#x\n", LENGTH, a.qp->qp_num, b.qp->qp_num);

	check(ibv_destroy_ah(peer.ah), "ibv_destroy_ah");
	unmake(&a);
	unmake(&b);
	check(ibv_dealloc_pd(pd), "ibv_dealloc_pd");
	check(ibv_close_device(context), "ibv_close_device");
	return 0;
}
