// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * nhcadv_accumulate DEVICE [GID-INDEX]: the sum of the gradients of several workers, which the
 * adapter of one host computes as the packets arrive.  The program of this host does nothing until
 * all accumulates are complete.  Here the workers and the host are channels of the same device;
 * usually they are on several hosts, and exchange QPNs, keys, rCxts and PVOs by other means.  A
 * worker that does not get its completion in time probes the host, and sends the missing packets
 * again.
 *
 *	cc -o nhcadv_accumulate nhcadv_accumulate.c example.c -lnhca -libverbs
 */
#include <err.h>
#include <stdio.h>
#include <unistd.h>

#include "example.h"

#define WORKERS	3
#define NUMBERS	100000
#define LENGTH	(NUMBERS * (uint32_t)sizeof(float))
#define SEGMENT	1024u
#define PACKETS	((LENGTH + SEGMENT - 1) / SEGMENT)
#define TIMEOUT_MS 100	/* milliseconds without a completion before a probe */
#define TRIES	500	/* timeouts before the program gives up */

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
		probe(worker, peer, t);
	}
}

int main(int argc, char **argv)
{
	struct end_attr attr = {
		.work_requests = 512, .frames = 16, .rcxts = WORKERS, .length = LENGTH,
		.access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
			  IBV_ACCESS_REMOTE_ATOMIC,
	};
	struct end host, worker[WORKERS];
	struct nhcadv_transfer t[WORKERS];
	struct nhcadv_peer peer;
	struct device device;
	uint32_t w, i;
	float *vector;

	open_device(&device, argc, argv, NHCADV_DEVICE_ACCUMULATE);
	create_end(&host, &device, &attr);
	peer = peer_of(&host, &device);

	/* the memory of the workers needs no right: channels may always send from job memory */
	attr.access = 0;
	attr.rcxts = 1;
	for (w = 0; w < WORKERS; w++) {
		create_end(&worker[w], &device, &attr);
		for (vector = worker[w].bytes, i = 0; i < NUMBERS; i++)
			vector[i] = (w + 1) * (float)i;
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
	for (vector = host.bytes, i = 0; i < NUMBERS; i++)
		if (vector[i] != 6 * (float)i)
			errx(1, "number %u is %f", i, vector[i]);
	printf("the sum of %u vectors of %u numbers is right\n", WORKERS, NUMBERS);

	for (w = 0; w < WORKERS; w++)
		destroy_end(&worker[w]);
	destroy_end(&host);
	close_device(&device);
	return 0;
}
