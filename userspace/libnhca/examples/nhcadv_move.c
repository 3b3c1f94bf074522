// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * nhcadv_move DEVICE [GID-INDEX]: a third-party transfer of 1 MiB.  A manager lets a source write
 * into the memory of a target.  Here all three are channels of the same device; usually they are on
 * three hosts, and exchange what struct end has by other means.  If the manager does not get its
 * completion in time, it probes the target, and requests the missing parts again.
 *
 *	cc -o nhcadv_move nhcadv_move.c example.c -lnhca -libverbs
 */
#include <err.h>
#include <stdio.h>
#include <string.h>

#include "example.h"

#define LENGTH	(1u << 20)
#define TIMEOUT_MS 200	/* milliseconds without a completion before a probe */
#define TRIES	50	/* completions and timeouts before the program gives up */

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
		kind = wait_kind(manager, TIMEOUT_MS, &index);
		if (kind == NHCADV_WC_MOVE)
			return;
		if (kind == NHCADV_WC_FRAME) {
			done = look_at(manager, source, target, t, nhcadv_frame(manager->qp, index));
			check(nhcadv_release_frame(manager->qp, index), "nhcadv_release_frame");
			if (done)
				return;
			continue;
		}
		probe(manager, &target->peer, &at_target);
	}
	errx(1, "the transfer did not complete in time, check the network");
}

int main(int argc, char **argv)
{
	struct end_attr attr = {
		.work_requests = 16, .frames = 16, .rcxts = 1, .length = LENGTH,
		.access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE,
	};
	struct end manager, source, target;
	struct nhcadv_transfer transfer;
	struct nhcadv_peer from;
	struct nhcadv_target to;
	struct device device;
	unsigned char *bytes;
	uint32_t frame, i;

	open_device(&device, argc, argv, NHCADV_DEVICE_MOVE);
	create_end(&manager, &device, &attr);
	create_end(&source, &device, &attr);
	create_end(&target, &device, &attr);
	for (bytes = source.bytes, i = 0; i < LENGTH; i++)
		bytes[i] = i * 7 ^ i >> 11;

	/* the program of the source */
	check(nhcadv_allow_target(source.qp, device.ah), "nhcadv_allow_target");

	/* the program of the manager */
	from = peer_of(&source, &device);
	to = (struct nhcadv_target){
		.peer = peer_of(&target, &device), .rcxt = target.rcxts[0], .pvo = target.mem->pvo,
	};
	transfer = (struct nhcadv_transfer){
		.local_rcxt = manager.rcxts[0], .remote_rcxt = source.rcxts[0],
		.remote_pvo = source.mem->pvo, .cookie = 4711, .tid = 1, .total = LENGTH,
		.segment = source.info.segment - NHCADV_MOVE_HEADER,
		.notify = NHCADV_NOTIFY_INITIATOR | NHCADV_NOTIFY_TARGET,
	};
	move(&manager, &from, &to, &transfer);
	if (wait_kind(&target, TIMEOUT_MS, &frame) != NHCADV_WC_REMOTE_WRITE)
		errx(1, "the target got no completion");
	if (memcmp(source.bytes, target.bytes, LENGTH))
		errx(1, "the target has other bytes than the source");
	printf("%u bytes from channel %#x to channel %#x\n", LENGTH, source.qp->qp_num,
	       target.qp->qp_num);

	check(nhcadv_revoke_target(source.qp, device.ah), "nhcadv_revoke_target");
	destroy_end(&manager);
	destroy_end(&source);
	destroy_end(&target);
	close_device(&device);
	return 0;
}
