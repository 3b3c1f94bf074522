// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * nhcadv_write DEVICE [GID-INDEX]: write 1 MiB from one channel to another of the same device.
 * Both ends get a completion.  If the writing end does not get its completion in time, the program
 * probes and retransmits.
 *
 *	cc -o nhcadv_write nhcadv_write.c example.c -lnhca -libverbs
 */
#include <err.h>
#include <stdio.h>
#include <string.h>

#include "example.h"

#define LENGTH	(1u << 20)
#define TIMEOUT_MS 200	/* milliseconds without a completion before a probe */
#define TRIES	50	/* completions and timeouts before the program gives up */

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
		kind = wait_kind(from, TIMEOUT_MS, &index);
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
		probe(from, peer, t);
	}
	errx(1, "the transfer did not complete in time, check the network");
}

int main(int argc, char **argv)
{
	struct end_attr attr = {
		.work_requests = 16, .frames = 16, .rcxts = 1, .length = LENGTH,
		.access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE,
	};
	struct nhcadv_transfer transfer;
	struct nhcadv_peer peer;
	struct device device;
	unsigned char *bytes;
	struct end a, b;
	uint32_t frame, i;

	open_device(&device, argc, argv, 0);
	create_end(&a, &device, &attr);
	create_end(&b, &device, &attr);
	peer = peer_of(&b, &device);

	for (bytes = a.bytes, i = 0; i < LENGTH; i++)
		bytes[i] = i * 7 ^ i >> 11;
	transfer = (struct nhcadv_transfer){
		.local_rcxt = a.rcxts[0], .remote_rcxt = b.rcxts[0],
		.local_pvo = a.mem->pvo, .remote_pvo = b.mem->pvo,
		.cookie = 4711, .tid = 1, .total = LENGTH, .segment = a.info.segment,
		.notify = NHCADV_NOTIFY_INITIATOR | NHCADV_NOTIFY_TARGET,
	};
	transmit(&a, &peer, &transfer);
	if (wait_kind(&b, TIMEOUT_MS, &frame) != NHCADV_WC_REMOTE_WRITE)
		errx(1, "the target got no completion of the write");
	if (memcmp(a.bytes, b.bytes, LENGTH))
		errx(1, "the target has other bytes than the source");
	printf("%u bytes from channel %#x to channel %#x\n", LENGTH, a.qp->qp_num, b.qp->qp_num);

	destroy_end(&a);
	destroy_end(&b);
	close_device(&device);
	return 0;
}
