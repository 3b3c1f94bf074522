// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * A part of channel.c: fences.  The server's program takes no part in them; it only checks the
 * results.
 */
#include "channel_shared.h"

static void post_fence(const struct nhcadv_transfer *t, uint32_t tid, uint64_t wr_id)
{
	start(&ch, wr_id, 0);
	nhcadv_wr_fence(ch.dv, &ch.peer, t->remote_rcxt, t->local_rcxt, tid);
	verb(ibv_wr_complete(ch.qpx));
}

/* Return: true if there is a completion within a second.  The caller releases its frame. */
static bool answered(struct done *d)
{
	uint64_t end = now_ns() + 1000000000;

	do {
		if (poll_done(ch.rcq, d))
			return true;
	} while (now_ns() < end);
	return false;
}

/*
 * Send fences until one is answered: packets may be lost, and the target does not answer while a
 * CPU copies payload of the transfer.
 */
static void fence(const struct nhcadv_transfer *t, enum nhcadv_transfer_status status,
		  uint32_t have, const char *what)
{
	uint64_t end = now_ns() + patience_s() * 1000000000ULL;
	const struct nhcadv_frame *f;
	struct done d;

	do {
		if (now_ns() > end)
			die("%s: no answer", what);
		post_fence(t, t->tid, 81);
	} while (!answered(&d));
	f = nhcadv_frame(ch.qp, d.frame);
	if (d.kind != NHCADV_WC_FRAME || !f || f->kind != NHCADV_FRAME_STATUS)
		die("%s: completion %#x", what, d.kind);
	if (f->status != status || f->received != have || f->tid != t->tid || f->cookie != 81 ||
	    f->rcxt != t->local_rcxt || f->src_rcxt != t->remote_rcxt || f->length)
		die("%s: status %u instead of %u, %u packets instead of %u, tid %u", what,
		    f->status, status, f->received, have, f->tid);
	verb(nhcadv_release_frame(ch.qp, d.frame));
}

/*
 * Purpose: after a fence no byte of the transfer is written, neither of packets in flight nor of
 * packets that are sent later.
 */
void fences(void)
{
	struct nhcadv_channel_info before = channel_info(&ch);
	struct nhcadv_transfer t;
	uint32_t third;

	clear();
	t = agree(1, LENGTH, NHCADV_NOTIFY_INITIATOR | NHCADV_NOTIFY_TARGET);
	if (client) {
		fence(&t, NHCADV_TRANSFER_FENCED, 0, "fence of a later transfer");
		fence(&t, NHCADV_TRANSFER_FENCED, 0, "the same fence");
		paint(ch.buf + OFF, t.total, 9);
		post_write(&ch, &ch.peer, &t, 82, 0);
	} else {
		wait_count(&ch, &before, NHCADV_DROP_STALE, NHCADV_DROP_STALE, packets_of(&t),
			   "write that was fenced");
		expect_nothing(ch.rcq, 0, "write that was fenced");
		if (differs(ch.buf, MEMORY, 0) >= 0)
			die("a fenced write has changed memory");
		if (channel_info(&ch).counters[NHCADV_FENCED] - before.counters[NHCADV_FENCED] < 2)
			die("fences are not counted");
	}
	meet(++step);
	if (client)
		expect_nothing(ch.scq, 0, "write that was fenced");

	/* fence a transfer of which a third has arrived */
	before = channel_info(&ch);
	meet(++step);
	t = agree(1, LENGTH, NHCADV_NOTIFY_INITIATOR | NHCADV_NOTIFY_TARGET);
	dozen(&t);
	third = packets_of(&t) / 3;
	if (client) {
		struct nhcadv_peer wrong = ch.peer;

		wrong.key ^= 1;
		post_write(&ch, &wrong, &t, 83, IBV_SEND_SIGNALED);
		expect(ch.scq, NHCADV_WC_LOCAL, 83, "write with a wrong key");
		resend_part(&t, 84, 0, third * t.segment, 0);
		if (!have_within(&t, third, patience_s() * 1000000000ULL))
			die("fence: a third of the packets has not arrived");
		fence(&t, NHCADV_TRANSFER_FENCED, 0, "fence of a third");
		resend_part(&t, 85, third * t.segment, t.total - third * t.segment, 0);
	} else {
		wait_count(&ch, &before, NHCADV_DROP_STALE, NHCADV_DROP_STALE,
			   packets_of(&t) - third, "write that was fenced after a third");
		expect_nothing(ch.rcq, 0, "write that was fenced after a third");
	}
	meet(++step);
	if (client)
		expect_nothing(ch.scq, 0, "write that was fenced after a third");

	/* fence a completed transfer, then send a fence with a lower tid, which must be dropped */
	write_goes(1, LENGTH, "write with a higher tid than the fence");
	before = channel_info(&ch);
	/* the server must read the counter before the client sends the fence with the lower tid */
	meet(++step);
	t = agree(1, LENGTH, 0);
	t.tid--;
	if (client) {
		fence(&t, NHCADV_TRANSFER_COMPLETE, packets_of(&t), "fence of a complete one");
		post_fence(&t, t.tid - 1, 86);
	} else {
		wait_count(&ch, &before, NHCADV_DROP_STALE, NHCADV_DROP_STALE, 1,
			   "fence of a lower tid");
	}
	meet(++step);
	write_goes(1, LENGTH, "write after fences");
}
