// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Channels, through nhcadv.h: the client writes to the server, reads from it and sends packets to
 * it, and both check the results.  Requests that must be refused are refused.  Both ends may be on
 * one host.
 *
 *   channel [-d DEVICE] [-g GID-INDEX] [-p TCP-PORT] [-j JOB] [HOST]
 *
 * The client names the HOST of the server.
 */
#include "channel_shared.h"

#define FRAMES	16
#define LONGER	1000003

struct channel ch;
bool client;
uint32_t step;
static char packet_bytes[NHCADV_FRAME_DATA];

void clear(void)
{
	memset(ch.buf, 0, MEMORY);
	meet(++step);
}

/* Return: a transfer with the client as the local end; the client sends it to the server. */
struct nhcadv_transfer agree(uint32_t i, uint32_t total, uint32_t notify)
{
	struct nhcadv_transfer t;

	if (client) {
		t = transfer(&ch, i, OFF, total, notify);
		tell(&t, sizeof(t));
	} else {
		hear(&t, sizeof(t));
	}
	return t;
}

uint32_t packets_of(const struct nhcadv_transfer *t)
{
	return (t->total + t->segment - 1) / t->segment;
}

/*
 * Wait for the completion of a write.  Its packets may be lost in a full queue of the network, so
 * retransmit all of them each second.
 */
static void wait_written(const struct nhcadv_transfer *t, uint64_t wr_id, const char *what)
{
	uint64_t end = now_ns() + patience_s() * 1000000000ULL, again = now_ns() + 1000000000;
	struct done d;

	while (!poll_done(ch.scq, &d)) {
		if (now_ns() > end)
			die("%s: no completion within %u s", what, patience_s());
		if (now_ns() < again)
			continue;
		printf("# %s: sent again\n", what);
		start(&ch, wr_id, 0);
		nhcadv_wr_retransmit(ch.dv, &ch.peer, t, 0, t->total);
		verb(ibv_wr_complete(ch.qpx));
		again = now_ns() + 1000000000;
	}
	if (d.kind != NHCADV_WC_WRITE || d.status || d.wr_id != wr_id || d.rcxt != t->local_rcxt ||
	    d.tid != t->tid)
		die("%s: completion %#x of %" PRIu64 ", tid %u", what, d.kind, d.wr_id, d.tid);
}

/* Make a write that must succeed, with notice to both ends, and check its bytes. */
void write_goes(uint32_t i, uint32_t total, const char *what)
{
	struct nhcadv_transfer t;

	clear();
	t = agree(i, total, NHCADV_NOTIFY_INITIATOR | NHCADV_NOTIFY_TARGET);
	if (client) {
		paint(ch.buf + OFF, total, t.tid);
		post_write(&ch, &ch.peer, &t, 77, 0);
		wait_written(&t, 77, what);
	} else {
		struct done d = expect(ch.rcq, NHCADV_WC_REMOTE_WRITE, t.cookie, what);

		if (d.rcxt != t.remote_rcxt || d.tid != t.tid || d.src != ch.there.qpn)
			die("%s: rCxt %#" PRIx64 ", tid %u, from %#x", what, d.rcxt, d.tid, d.src);
		check_painted(ch.buf + OFF, total, t.tid, what);
	}
	meet(++step);
}

/* ---- packets and transfers that must succeed ---- */

static void packets(void)
{
	uint32_t most = ch.here.segment < ch.there.segment ? ch.here.segment : ch.there.segment;
	const struct nhcadv_frame *f;
	uint32_t a, b, c;

	if (most > NHCADV_FRAME_DATA)
		most = NHCADV_FRAME_DATA;
	if (client) {
		struct ibv_mr *mr = ibv_reg_mr(pd, packet_bytes, sizeof(packet_bytes), 0);
		struct ibv_sge sges[2];

		must(mr);
		paint((uint8_t *)packet_bytes, sizeof(packet_bytes), 1);
		post_packet(&ch, packet_bytes, 100, 1, 0);
		meet(++step);
		/* gather the longest packet from two places */
		sges[0] = (struct ibv_sge){ (uintptr_t)packet_bytes, 3, mr->lkey };
		sges[1] = (struct ibv_sge){ (uintptr_t)packet_bytes + 3, most - 3, mr->lkey };
		start(&ch, 5, IBV_SEND_SIGNALED);
		nhcadv_wr_packet(ch.dv, &ch.peer, 2);
		ibv_wr_set_sge_list(ch.qpx, 2, sges);
		verb(ibv_wr_complete(ch.qpx));
		expect(ch.scq, NHCADV_WC_LOCAL, 5, "long packet");
		meet(++step);
		post_packet(&ch, NULL, 0, 3, IBV_SEND_SIGNALED);
		expect(ch.scq, NHCADV_WC_LOCAL, 0, "empty packet");
		meet(++step);
		meet(++step);
		verb(ibv_dereg_mr(mr));
		return;
	}
	f = expect_frame(&ch, 1, &a, "packet");
	if (f->kind != NHCADV_FRAME_PACKET || f->length != 100)
		die("packet: kind %u, %u bytes", f->kind, f->length);
	for (c = 0; c < 100; c++)
		if (f->data[c] != pattern(1, c))
			die("packet: byte %u is wrong", c);
	meet(++step);
	f = expect_frame(&ch, 2, &b, "long packet");
	for (c = 0; c < most; c++)
		if (f->length != most || f->data[c] != pattern(1, c))
			die("long packet: byte %u is wrong, or %u bytes", c, f->length);
	meet(++step);
	if (expect_frame(&ch, 3, &c, "empty packet")->length)
		die("empty packet: it is not empty");
	meet(++step);
	/* release frames out of order; each can be released only once */
	verb(nhcadv_release_frame(ch.qp, b));
	verb(nhcadv_release_frame(ch.qp, c));
	if (nhcadv_release_frame(ch.qp, b) != EINVAL)
		die("a frame can be released twice");
	verb(nhcadv_release_frame(ch.qp, a));
	if (nhcadv_release_frame(ch.qp, a) != EINVAL || nhcadv_release_frame(ch.qp, c + 1) != EINVAL)
		die("a frame that does not exist can be released");
	meet(++step);
}

static bool event_within(int ms)
{
	struct pollfd fd = { .fd = ch.events->fd, .events = POLLIN };
	struct ibv_cq *cq;
	void *cq_context;

	if (poll(&fd, 1, ms) != 1)
		return false;
	verb(ibv_get_cq_event(ch.events, &cq, &cq_context));
	ibv_ack_cq_events(cq, 1);
	return true;
}

/*
 * On a CQ armed for solicited completions, recv_threshold 3 lets every third frame raise an event.
 * A frame whose sender requests it (IBV_SEND_SOLICITED) also raises one.
 */
static void thresholds(void)
{
	struct nhcadv_channel_attr attr = { .recv_threshold = 3, .quantum = 2 };
	uint32_t i, index, events = 0;

	if (!client) {
		verb(nhcadv_modify_channel(ch.qp, &attr, NHCADV_CHANNEL_RECV_THRESHOLD |
					   NHCADV_CHANNEL_QUANTUM));
		if (channel_info(&ch).recv_threshold != 3 || channel_info(&ch).quantum != 2)
			die("thresholds are not what they were set to");
		if (nhcadv_modify_channel(ch.qp, &attr, 1u << 31) != EINVAL)
			die("an unknown attribute can be modified");
		attr.quantum = 1000;
		verb(nhcadv_modify_channel(ch.qp, &attr, NHCADV_CHANNEL_QUANTUM));
		if (channel_info(&ch).quantum != 256)
			die("a quantum of 1000 is used as %u", channel_info(&ch).quantum);
		attr.quantum = 0;
		verb(nhcadv_modify_channel(ch.qp, &attr, NHCADV_CHANNEL_QUANTUM));
		if (channel_info(&ch).quantum != 64)
			die("the default quantum is %u", channel_info(&ch).quantum);
	}
	for (i = 0; i < 6; i++) {
		if (!client)
			verb(ibv_req_notify_cq(ibv_cq_ex_to_cq(ch.rcq), 1));
		meet(++step);
		if (client) {
			post_packet(&ch, "x", 1, i, 0);
			continue;
		}
		expect_frame(&ch, i, &index, "packet of a threshold");
		verb(nhcadv_release_frame(ch.qp, index));
		events += event_within(QUIET_MS);
	}
	if (!client && events != 2)
		die("%u events of %u completions with a threshold of 3", events, i);
	if (!client) {
		attr.recv_threshold = 0;
		verb(nhcadv_modify_channel(ch.qp, &attr, NHCADV_CHANNEL_RECV_THRESHOLD));
		verb(ibv_req_notify_cq(ibv_cq_ex_to_cq(ch.rcq), 1));
	}
	meet(++step);
	if (client) {
		post_packet(&ch, "y", 1, 9, IBV_SEND_SOLICITED);
	} else {
		expect_frame(&ch, 9, &index, "solicited packet");
		verb(nhcadv_release_frame(ch.qp, index));
		if (!event_within(patience_s() * 1000))
			die("a solicited packet raises no event");
	}
	meet(++step);
}

static void full_fifo(void)
{
	struct nhcadv_channel_info before = channel_info(&ch);
	uint32_t i, index[FRAMES], more = 3;

	meet(++step);
	if (client) {
		for (i = 0; i < FRAMES + more; i++) {
			post_packet(&ch, &i, sizeof(i), 0, IBV_SEND_SIGNALED);
			expect(ch.scq, NHCADV_WC_LOCAL, 0, "packet to a FIFO");
		}
		meet(++step);
		post_packet(&ch, &i, sizeof(i), 55, 0);
	} else {
		for (i = 0; i < FRAMES; i++)
			expect_frame(&ch, 0, &index[i], "packet in a full FIFO");
		wait_count(&ch, &before, NHCADV_DROP_FIFO, NHCADV_DROP_FIFO, more, "full FIFO");
		expect_nothing(ch.rcq, 0, "full FIFO");
		for (i = 0; i < FRAMES; i++)
			verb(nhcadv_release_frame(ch.qp, index[i]));
		meet(++step);
		expect_frame(&ch, 55, index, "packet after the FIFO was full");
		verb(nhcadv_release_frame(ch.qp, index[0]));
	}
	meet(++step);
}

/*
 * A write without notice to the initiator, whose bytes the driver copies, because no notice says
 * when the client may change them.
 */
static void write_copied(uint32_t total, const char *what)
{
	struct nhcadv_transfer t;

	clear();
	t = agree(2, total, NHCADV_NOTIFY_TARGET);
	if (client) {
		paint(ch.buf + OFF, total, t.tid);
		post_write(&ch, &ch.peer, &t, 78, 0);
	} else {
		expect_transfer(ch.rcq, NHCADV_WC_REMOTE_WRITE, t.cookie, t.remote_rcxt, t.tid, what);
		check_painted(ch.buf + OFF, total, t.tid, what);
	}
	meet(++step);
}

static void writes(void)
{
	write_goes(0, LONGER, "write");
	write_goes(1, 1, "write of a byte");
	write_goes(1, 0, "write of nothing");
	write_copied(61440, "copied write of 60 KiB");
	write_copied(LENGTH, "copied write");
}

static void reads(void)
{
	uint32_t sizes[] = { LENGTH, 1, 0 }, i;
	struct nhcadv_transfer t;

	for (i = 0; i < 3; i++) {
		clear();
		if (client) {
			meet(++step);
			t = transfer(&ch, 2, OFF, sizes[i],
				     NHCADV_NOTIFY_INITIATOR | NHCADV_NOTIFY_TARGET);
			start(&ch, 78, IBV_SEND_SIGNALED);
			nhcadv_wr_read(ch.dv, &ch.peer, &t);
			verb(ibv_wr_complete(ch.qpx));
			expect_both(ch.scq, 78, NHCADV_WC_READ, 78, t.local_rcxt, t.tid, "read");
			check_painted(ch.buf + OFF, sizes[i], 7, "read");
		} else {
			paint(ch.buf + OFF, sizes[i], 7);
			meet(++step);
			if (expect(ch.rcq, NHCADV_WC_REMOTE_READ, 0xc00c1e02, "read").rcxt !=
			    ch.here.rcxts[2])
				die("read: the completion names another rCxt");
		}
		meet(++step);
	}
}

/* ibv_poll_cq() shows fewer fields than the extended functions, but enough to work with. */
static void plain_poll(void)
{
	struct nhcadv_transfer t = agree(0, 5000, NHCADV_NOTIFY_TARGET);
	struct ibv_wc wc;

	if (client) {
		post_write(&ch, &ch.peer, &t, 1, 0);
	} else {
		wc = wait_wc(ibv_cq_ex_to_cq(ch.rcq), "plain poll");
		if (wc.status || (int)wc.opcode != NHCADV_WC_REMOTE_WRITE || wc.wr_id != t.cookie ||
		    wc.qp_num != ch.qp->qp_num || wc.src_qp != ch.there.qpn ||
		    wc.invalidated_rkey != t.tid)
			die("plain poll: opcode %#x, status %u", wc.opcode, wc.status);
	}
	meet(++step);
}

/* The slots of unsignaled work requests are freed without a completion. */
static void silent(void)
{
	uint32_t i, full = 0;

	if (client) {
		for (i = 0; i < 8 * SEND_WR; i++) {
			struct nhcadv_transfer t = transfer(&ch, 3, OFF, 0, 0);
			uint64_t end = now_ns() + patience_s() * 1000000000ULL;
			int ret;

			do {
				start(&ch, i, 0);
				nhcadv_wr_write(ch.dv, &ch.peer, &t);
				ret = ibv_wr_complete(ch.qpx);
				full += ret == ENOMEM;
			} while (ret == ENOMEM && now_ns() < end);
			verb(ret);
		}
		expect_nothing(ch.scq, QUIET_MS, "silent writes");
		printf("# %u writes, the send FIFO was full %u times\n", i, full);
	}
	meet(++step);
	if (!client)
		expect_nothing(ch.rcq, 0, "silent writes");
}

/* ---- retransmission ---- */

void expect_status(struct channel *c, const struct nhcadv_transfer *t, uint32_t offset,
		   enum nhcadv_transfer_status status, uint32_t from, uint32_t to)
{
	uint32_t i, first = offset / t->segment, index;
	const struct nhcadv_frame *f;

	post_probe(c, t, 0, offset);
	f = expect_frame(c, t->cookie, &index, "status");
	if (f->kind != NHCADV_FRAME_STATUS || f->status != status || f->rcxt != t->local_rcxt ||
	    f->src_rcxt != t->remote_rcxt || f->tid != t->tid)
		die("status: kind %u, status %u instead of %u, tid %u instead of %u", f->kind,
		    f->status, status, f->tid, t->tid);
	if (status == NHCADV_TRANSFER_PARTIAL)
		for (i = first; i < packets_of(t) && i < first + 8u * f->length; i++)
			if (nhcadv_frame_has(f, i) != (i >= from && i < to))
				die("status: packet %u of %u-%u: %d", i, from, to,
				    nhcadv_frame_has(f, i));
	if (status == NHCADV_TRANSFER_PARTIAL && f->received != to - from)
		die("status: %u packets have arrived instead of %u", f->received, to - from);
	verb(nhcadv_release_frame(c->qp, index));
}

/*
 * Return: true if the target has at least @have packets.  Probe repeatedly for at most @ns, because
 * a probe may arrive before packets that were sent earlier.
 */
bool have_within(const struct nhcadv_transfer *t, uint32_t have, uint64_t ns)
{
	uint64_t end = now_ns() + ns;
	const struct nhcadv_frame *f;
	uint32_t index, now;

	do {
		post_probe(&ch, t, 0, 0);
		f = expect_frame(&ch, t->cookie, &index, "status");
		now = f->received;
		verb(nhcadv_release_frame(ch.qp, index));
	} while (now < have && now_ns() < end);
	return now >= have;
}

/*
 * Callers send a third of the packets of a transfer.  With the largest MTUs a transfer has too few
 * packets for this.  So make the packets smaller if the transfer has fewer than 12.
 */
void dozen(struct nhcadv_transfer *t)
{
	if (packets_of(t) < 12)
		t->segment = t->total / 12 & ~3u;
}

void resend_part(const struct nhcadv_transfer *t, uint64_t wr_id, uint32_t offset, uint32_t length,
		 unsigned int flags)
{
	start(&ch, wr_id, flags);
	nhcadv_wr_retransmit(ch.dv, &ch.peer, t, offset, length);
	verb(ibv_wr_complete(ch.qpx));
}

/*
 * The first attempt has a wrong channel key, so its packets are dropped.  Then send the write in
 * parts.
 */
static void resend(void)
{
	struct nhcadv_channel_info before = channel_info(&ch);
	struct nhcadv_transfer t;
	struct nhcadv_peer wrong;
	uint32_t count, third;

	clear();
	t = agree(0, LENGTH, NHCADV_NOTIFY_INITIATOR | NHCADV_NOTIFY_TARGET);
	dozen(&t);
	count = packets_of(&t);
	third = count / 3;
	if (client) {
		paint(ch.buf + OFF, t.total, 8);
		wrong = ch.peer;
		wrong.key ^= 1;
		post_write(&ch, &wrong, &t, 30, IBV_SEND_SIGNALED);
		expect(ch.scq, NHCADV_WC_LOCAL, 30, "write with a wrong key");
		meet(++step);
		expect_status(&ch, &t, 0, NHCADV_TRANSFER_NONE, 0, 0);
		resend_part(&t, 31, third * t.segment, third * t.segment, 0);
		if (!have_within(&t, third, patience_s() * 1000000000ULL))
			die("status: a third of the packets has not arrived");
		expect_status(&ch, &t, 0, NHCADV_TRANSFER_PARTIAL, third, 2 * third);
		expect_status(&ch, &t, (third + 1) * t.segment, NHCADV_TRANSFER_PARTIAL, third,
			      2 * third);
		expect_nothing(ch.scq, 0, "a third of a transfer");
		/* send the first and the last third, and two packets that have arrived already */
		start(&ch, 32, 0);
		nhcadv_wr_retransmit(ch.dv, &ch.peer, &t, 2 * third * t.segment,
				  t.total - 2 * third * t.segment);
		ch.qpx->wr_id = 33;
		nhcadv_wr_retransmit(ch.dv, &ch.peer, &t, 0, (third + 2) * t.segment);
		verb(ibv_wr_complete(ch.qpx));
		expect_transfer(ch.scq, NHCADV_WC_WRITE, 30, t.local_rcxt, t.tid, "resent write");
		expect_status(&ch, &t, 0, NHCADV_TRANSFER_COMPLETE, 0, 0);
	} else {
		wait_count(&ch, &before, NHCADV_DROP_KEY, NHCADV_DROP_KEY, count, "wrong key");
		meet(++step);
		expect_transfer(ch.rcq, NHCADV_WC_REMOTE_WRITE, t.cookie, t.remote_rcxt, t.tid,
				"resent write");
		check_painted(ch.buf + OFF, t.total, 8, "resent write");
	}
	meet(++step);
	expect_nothing(ch.scq, 0, "a resent write completes once");
	expect_nothing(ch.rcq, 0, "a resent write completes once");
}

/*
 * A transfer completes in the middle of a retransmission, because the target lacked only its first
 * packet.  After the completion the program may free the memory, although the retransmission has
 * not sent its last packets.
 */
static void complete_amid_resend(void)
{
	struct nhcadv_job_mem *mem;
	struct nhcadv_transfer t;
	struct nhcadv_peer wrong;
	uint8_t *buf;

	clear();
	t = agree(1, MEMORY, NHCADV_NOTIFY_INITIATOR);
	if (client) {
		buf = pages(MEMORY);
		must(mem = nhcadv_reg_job_mem(context, job, buf, MEMORY, 0));
		t.local_pvo = mem->pvo;
		t.remote_pvo = ch.there.pvo;
		/* use the largest number of packets that a transfer may have */
		t.segment = MEMORY / 16384;
		wrong = ch.peer;
		wrong.key ^= 1;
		post_write(&ch, &wrong, &t, 34, IBV_SEND_SIGNALED);
		expect(ch.scq, NHCADV_WC_LOCAL, 34, "write with a wrong key");
		/* send all but the first packet, and then the whole transfer */
		do {
			resend_part(&t, 35, t.segment, t.total - t.segment, IBV_SEND_SIGNALED);
			/* the slots for the next probes are free only after this completion */
			expect(ch.scq, NHCADV_WC_LOCAL, 35, "all but the first packet");
		} while (!have_within(&t, packets_of(&t) - 1, 1000000000));
		resend_part(&t, 36, 0, t.total, IBV_SEND_SIGNALED);
		expect_both(ch.scq, 36, NHCADV_WC_WRITE, 34, t.local_rcxt, t.tid,
			    "write that is complete");
		verb(nhcadv_dereg_job_mem(mem));
		free(buf);
		if (channel_info(&ch).reason)
			die("rest of a write that is complete: reason %u", channel_info(&ch).reason);
	}
	meet(++step);
}

/*
 * Cancel at the target, which then drops packets with this tid or a lower one.  Then cancel at the
 * initiator, while packets are in flight.
 */
static void cancel(void)
{
	struct nhcadv_channel_info before = channel_info(&ch);
	struct nhcadv_transfer t;

	clear();
	t = agree(1, 5000, NHCADV_NOTIFY_INITIATOR | NHCADV_NOTIFY_TARGET);
	if (!client) {
		start(&ch, 40, IBV_SEND_SIGNALED);
		nhcadv_wr_cancel(ch.dv, t.remote_rcxt, t.tid);
		verb(ibv_wr_complete(ch.qpx));
		expect(ch.scq, NHCADV_WC_LOCAL, 40, "cancel");
	}
	meet(++step);
	if (client) {
		paint(ch.buf + OFF, t.total, 9);
		post_write(&ch, &ch.peer, &t, 41, 0);
	} else {
		wait_count(&ch, &before, NHCADV_DROP_STALE, NHCADV_DROP_STALE, packets_of(&t),
			   "write to a cancelled rCxt");
		expect_nothing(ch.rcq, 0, "write to a cancelled rCxt");
		if (differs(ch.buf, MEMORY, 0) >= 0)
			die("a cancelled write has changed memory");
	}
	meet(++step);
	if (client)
		expect_nothing(ch.scq, 0, "write to a cancelled rCxt");
	write_goes(1, 5000, "write with a higher tid");

	if (client) {
		struct done d;

		t = transfer(&ch, 1, 0, MEMORY, NHCADV_NOTIFY_INITIATOR);
		start(&ch, 42, 0);
		nhcadv_wr_write(ch.dv, &ch.peer, &t);
		ch.qpx->wr_id = 43;
		ch.qpx->wr_flags = IBV_SEND_SIGNALED;
		nhcadv_wr_cancel(ch.dv, t.local_rcxt, t.tid);
		verb(ibv_wr_complete(ch.qpx));
		d = wait_done(ch.scq, "cancel in flight");
		if (d.kind == NHCADV_WC_WRITE)
			d = wait_done(ch.scq, "cancel in flight");
		if (d.kind != NHCADV_WC_LOCAL || d.wr_id != 43 || d.status)
			die("cancel in flight: completion %#x of %" PRIu64, d.kind, d.wr_id);
		expect_nothing(ch.scq, QUIET_MS, "after a cancel");
	}
	/* packets in flight must have arrived before the memory is cleared */
	meet(++step);
	write_goes(1, 5000, "write after a cancel");
}

/* ---- closing and recovery ---- */

/* Close one channel while packets for it arrive, and one while it has outstanding work requests. */
static void close_in_use(void)
{
	uint32_t i, n, rounds = 20;
	struct channel c;

	for (i = 0; i < rounds; i++) {
		channel_open(&c, FRAMES);
		channel_meet(&c);
		if (client) {
			for (n = 0; n < RCXTS; n++) {
				struct nhcadv_transfer t = transfer(&c, n, 0, MEMORY, 0);

				post_write(&c, &c.peer, &t, n, 0);
			}
			post_packet(&c, "z", 1, 1, 0);
		} else {
			usleep(rnd() % 5000);
		}
		/* the client has outstanding work requests, the server receives packets */
		channel_close(&c);
		meet(++step);
	}
	write_goes(0, LONGER, "write after other channels were closed");
}

static void recover(void)
{
	struct nhcadv_channel_info info;
	uint32_t was = channel_info(&ch).recoveries, count = 0;
	struct address old = ch.here;
	struct nhcadv_transfer t;

	meet(++step);
	if (!client) {
		verb(nhcadv_recover(context, &count));
		wait_event(IBV_EVENT_QP_FATAL, "recovery");
		info = channel_info(&ch);
		if (count == was || info.recoveries != count || info.state != IBV_QPS_ERR ||
		    info.reason != NHCADV_ERR_RECOVERED || info.rcxts)
			die("recovery %u after %u: state %u, reason %u, %u rCxts", count, was,
			    info.state, info.reason, info.rcxts);
		if (nhcadv_acquire_rcxts(ch.qp, ch.here.rcxts, 1) != EIO)
			die("a channel in the error state acquires rCxts");
		start(&ch, 70, 0);
		nhcadv_wr_packet(ch.dv, &ch.peer, 0);
		verb(ibv_wr_complete(ch.qpx));
		if (wait_done(ch.scq, "recovered").status != IBV_WC_WR_FLUSH_ERR)
			die("a recovered channel does not flush");
	}
	meet(++step);
	channel_close(&ch);
	channel_open(&ch, FRAMES);
	channel_meet(&ch);
	write_goes(0, LONGER, "write after a recovery");

	/* a packet with an rCxt from before the recovery must be dropped by the new channel */
	if (!client)
		tell(&old, sizeof(old));
	else
		hear(&old, sizeof(old));
	t = small();
	t.remote_rcxt = old.rcxts[3];
	refused(&t, NHCADV_DROP_RCXT_KEY, NHCADV_DROP_NO_RCXT, "rCxt from before the recovery");
}

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {
	{ "packets into the receive FIFO, in place, released in any order", packets },
	{ "thresholds select the completions that raise an event", thresholds },
	{ "a full receive FIFO drops packets and counts them", full_fifo },
	{ "a full receive CQ does not lose frames permanently", full_cq },
	{ "writes, with notice to both", writes },
	{ "reads, with notice to both", reads },
	{ "ibv_poll_cq() on channels", plain_poll },
	{ "slots of unsignaled work requests are freed", silent },
	{ "probe of a transfer, retransmission of a part", resend },
	{ "memory of a completed write may be freed during a resend", complete_amid_resend },
	{ "cancel of a later transfer and of one in flight", cancel },
	{ "fences of later, active and completed transfers", fences },
	{ "wrong rCxts and PVOs: no byte is written, and the owner gets an event", violations },
	{ "jobs cannot access each other", other_jobs },
	{ "invalid requests are refused", bad_requests },
	{ "another user's job is refused", other_users },
	{ "channels are closed while in use", close_in_use },
	{ "recovery", recover },
};

int main(int argc, char **argv)
{
	struct nhcadv_device_attr attr = {};
	unsigned int i;
	int letter;

	setvbuf(stdout, NULL, _IOLBF, 0);
	program = "channel";
	job = 4711;
	while ((letter = getopt(argc, argv, "d:g:p:j:")) != -1)
		switch (letter) {
		case 'j':
			job = strtoul(optarg, NULL, 0);
			break;
		default:
			if (peer_option(letter))
				break;
			fputs("usage: channel [-d DEVICE] [-g GID-INDEX] [-p TCP-PORT] [-j JOB] [HOST]\n",
			      stderr);
			return 2;
		}
	peer_host = argv[optind];
	client = peer_host;
	open_device();
	sock_open();
	say_hello();
	verb(nhcadv_query_device(context, &attr));
	if (!(attr.caps & NHCADV_DEVICE_CHANNELS))
		die("the kernel driver has no channels");
	fcntl(context->async_fd, F_SETFL, fcntl(context->async_fd, F_GETFL) | O_NONBLOCK);

	channel_open(&ch, FRAMES);
	channel_meet(&ch);
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		cases[i].run();
		expect_nothing(ch.scq, 0, cases[i].name);
		expect_nothing(ch.rcq, 0, cases[i].name);
		/* the next case must not send before the checks above */
		meet(++step);
		ktap_ok("%s", cases[i].name);
	}
	channel_close(&ch);
	verb(ibv_dealloc_pd(pd));
	verb(ibv_close_device(context));
	return ktap_end();
}
