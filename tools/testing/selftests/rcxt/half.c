// SPDX-License-Identifier: GPL-2.0
/*
 * Half transfers between two hosts, on a network that loses, repeats and reorders packets.
 *
 *	half -d DEVICE -g GID-INDEX -p TCP-PORT [-n TRANSFERS] [HOST]
 *
 * With HOST, the program is the initiator: it writes from scattered buffers (half-send), writes to
 * frames (half-receive), reads what the target's program gathers (half-send), and reads memory of
 * the target into frames (half-receive).  The other one is the target.  Both check each byte, and
 * that each packet has exactly one frame and each transfer one completion.
 */
#include <getopt.h>

#define RCXTS	2
#define MEMORY	(2u << 20)
#define SEND_WR	64
#include "channels.h"

#define FRAMES		64
#define MOST		64		/* packets of a transfer */
#define OVERLOAD	(10 * FRAMES)	/* packets of a transfer at a target that reads slowly */
#define PIECES		9		/* buffers of a packet */
#define ASK_MS		20		/* time without a completion until the next probe */
#define GIVE_UP_S	120
#define NAME		0xfeedfacecafe0000	/* plus tid: names the bytes of a read */
#define AT		64		/* offset of the bytes in the memory of both ends */

enum what { PARTS = 1, TO_FRAMES, ASK, FROM_MEMORY, QUIT };

/* Data about a transfer, which the initiator sends to the target before each one */
struct order {
	uint32_t what, tid, total, segment, slow;
};

static struct channel c;
static uint64_t probes, repeats, asks, lost_notices;
static uint32_t ended_by_status;	/* last tid that a status has reported as complete */
static bool got[OVERLOAD];		/* packets of the transfer that have had a frame */

static uint32_t packets(const struct nhcadv_transfer *t)
{
	return t->total ? (t->total - 1) / t->segment + 1 : 1;
}

static uint32_t length_at(const struct nhcadv_transfer *t, uint32_t offset)
{
	return t->total - offset < t->segment ? t->total - offset : t->segment;
}

/* ---- the end that reads frames ---- */

/* Check a frame of the transfer, which must be the first one of its packet. */
static void check_frame(const struct order *o, uint32_t index)
{
	const struct nhcadv_frame *f = nhcadv_frame(c.qp, index);
	uint32_t kind = o->what == TO_FRAMES ? NHCADV_FRAME_WRITE : NHCADV_FRAME_READ;
	uint32_t packet, i;

	must(f);
	if (f->kind != kind || f->tid != o->tid || f->total != o->total ||
	    f->segment != o->segment || f->offset % o->segment || f->cookie != o->tid ||
	    f->rcxt != c.here.rcxts[0] || f->src_rcxt != c.there.rcxts[0] ||
	    f->src_channel != c.there.qpn || f->src_key != (uint32_t)c.there.key)
		die("tid %u: a frame of kind %u, tid %u, offset %u of %u", o->tid, f->kind, f->tid,
		    f->offset, f->total);
	packet = f->offset / o->segment;
	if (packet >= OVERLOAD || got[packet])
		die("tid %u: packet %u has a second frame", o->tid, packet);
	got[packet] = true;
	i = o->total - f->offset;
	if (f->length != (i < o->segment ? i : o->segment))
		die("tid %u: packet %u has %u bytes", o->tid, packet, f->length);
	for (i = 0; i < f->length; i++)
		if (f->data[i] != pattern(o->tid, f->offset + i))
			die("tid %u: byte %u is wrong", o->tid, f->offset + i);
	verb(nhcadv_release_frame(c.qp, index));
}

/* ---- the end that sends ---- */

static void put_part(const struct nhcadv_transfer *t, enum what what, uint32_t offset,
		     const struct ibv_data_buf *bufs)
{
	start(&c, t->tid, 0);
	if (what == ASK)
		nhcadv_wr_answer(c.dv, &c.peer, t, offset, PIECES, bufs);
	else
		nhcadv_wr_part(c.dv, &c.peer, t, offset, PIECES, bufs);
}

/* Post the packet at @offset.  Its bytes lie in PIECES buffers of random lengths, some empty. */
static void post_part(const struct nhcadv_transfer *t, enum what what, uint32_t offset)
{
	static uint8_t scattered[PIECES][2048];
	struct ibv_data_buf bufs[PIECES];
	uint32_t left = length_at(t, offset), from = AT + offset, i;
	int error;

	for (i = 0; i < PIECES; i++) {
		bufs[i].addr = scattered[PIECES - 1 - i];
		bufs[i].length = i == PIECES - 1 ? left : rnd() % (left + 1);
		memcpy(bufs[i].addr, c.buf + from, bufs[i].length);
		from += bufs[i].length;
		left -= bufs[i].length;
	}
	put_part(t, what, offset, bufs);
	/* the bytes are in the work request, so the program may change its buffers */
	memset(scattered, 0xee, sizeof(scattered));
	while ((error = ibv_wr_complete(c.qpx)) == ENOMEM) {
		from = AT + offset;
		for (i = 0; i < PIECES; i++) {
			memcpy(bufs[i].addr, c.buf + from, bufs[i].length);
			from += bufs[i].length;
		}
		put_part(t, what, offset, bufs);
		memset(scattered, 0xee, sizeof(scattered));
	}
	verb(error);
}

/* Send packets @first to @end - 1 of the transfer. */
static void post_range(const struct nhcadv_transfer *t, enum what what, uint32_t first,
		       uint32_t end, bool again)
{
	uint32_t offset = first * t->segment, i;

	if (what != TO_FRAMES) {
		/* from the last to the first packet */
		for (i = end; i-- > first;)
			post_part(t, what, i * t->segment);
		return;
	}
	start(&c, t->tid, 0);
	if (again)
		nhcadv_wr_frames_again(c.dv, &c.peer, t, offset,
				       (end == packets(t) ? t->total : end * t->segment) - offset);
	else
		nhcadv_wr_write_frames(c.dv, &c.peer, t);
	verb(ibv_wr_complete(c.qpx));
}

/* Send the packets again that a status does not report; at most @most of them. */
static void post_missing(const struct nhcadv_transfer *t, enum what what,
			 const struct nhcadv_frame *status, uint32_t most)
{
	uint32_t first = 0, end, n = packets(t);

	while (first < n && most) {
		if (nhcadv_frame_has(status, first)) {
			first++;
			continue;
		}
		for (end = first + 1; end < n && end - first < most; end++)
			if (nhcadv_frame_has(status, end))
				break;
		post_range(t, what, first, end, true);
		repeats += end - first;
		most -= end - first;
		first = end;
	}
}

/* ---- the initiator ---- */

/* Return: true if the transfer of @t has its completion, or a status says that it is complete. */
static bool look(const struct nhcadv_transfer *t, enum what what, uint32_t most)
{
	const struct nhcadv_frame *frame;
	bool complete = false;
	struct done d;

	while (poll_done(c.scq, &d)) {
		if (d.status)
			die("tid %u: completion %#x: %s", t->tid, d.kind,
			    ibv_wc_status_str(d.status));
		/* a status has already reported the transfer of this late notice as complete */
		if (d.kind == NHCADV_WC_WRITE && d.tid == ended_by_status) {
			ended_by_status = 0;
			continue;
		}
		if (d.kind != NHCADV_WC_WRITE || d.wr_id != t->tid || d.tid != t->tid)
			die("tid %u: completion %#x of tid %u", t->tid, d.kind, d.tid);
		return true;
	}
	while (!complete && poll_done(c.rcq, &d)) {
		if (d.kind != NHCADV_WC_FRAME)
			die("tid %u: completion %#x", t->tid, d.kind);
		must(frame = nhcadv_frame(c.qp, d.frame));
		if (frame->kind != NHCADV_FRAME_STATUS)
			die("tid %u: frame of kind %u", t->tid, frame->kind);
		if (frame->tid == t->tid && frame->status == NHCADV_TRANSFER_COMPLETE) {
			complete = true;
			ended_by_status = t->tid;
			lost_notices++;
		} else if (frame->tid == t->tid && frame->status == NHCADV_TRANSFER_NONE) {
			post_range(t, what, 0, packets(t), what != PARTS);
		} else if (frame->tid == t->tid) {
			post_missing(t, what, frame, most);
		}
		verb(nhcadv_release_frame(c.qp, d.frame));
	}
	return complete;
}

static void transfer_goes(enum what what, uint32_t total, uint32_t slow)
{
	struct nhcadv_transfer t = transfer(&c, 0, AT, total, NHCADV_NOTIFY_INITIATOR |
					    NHCADV_NOTIFY_TARGET);
	struct order order = { .what = what, .tid = t.tid, .slow = slow };
	uint64_t end = now_ns() + GIVE_UP_S * 1000000000ULL, ask = 0;
	char ok;

	if (what == TO_FRAMES)
		t.remote_pvo = 0;
	else
		t.local_pvo = 0;
	if (slow) {
		t.total = OVERLOAD * t.segment - 5;
		must(AT + t.total <= MEMORY);
	}
	t.cookie = t.tid;
	order.total = t.total;
	order.segment = t.segment;
	paint(c.buf + AT, t.total, t.tid);
	tell(&order, sizeof(order));
	hear(&ok, 1);
	post_range(&t, what, 0, packets(&t), false);
	while (!look(&t, what, slow ? FRAMES / 2 : packets(&t))) {
		if (now_ns() > end)
			die("tid %u: %u bytes do not arrive", t.tid, t.total);
		if (!ask)
			ask = now_ns() + ASK_MS * 1000000ULL;
		if (now_ns() < ask)
			continue;
		post_probe(&c, &t, 0, 0);
		probes++;
		ask = now_ns() + ASK_MS * 1000000ULL;
	}
	/*
	 * a status may have replaced a late notice: cancel, so that no notice of this tid comes any
	 * more
	 */
	start(&c, 0, 0);
	nhcadv_wr_cancel(c.dv, t.local_rcxt, t.tid);
	verb(ibv_wr_complete(c.qpx));
	hear(&ok, 1);
}

static void post_ask(const struct nhcadv_transfer *t, bool again)
{
	int error;

	/* the send FIFO may still be full of the messages of flood() */
	do {
		start(&c, t->tid, 0);
		if (again)
			nhcadv_wr_ask_again(c.dv, &c.peer, t);
		else
			nhcadv_wr_ask(c.dv, &c.peer, t);
		error = ibv_wr_complete(c.qpx);
	} while (error == ENOMEM);
	verb(error);
}

/* Fill the FIFO of the target, which does not read: send twice as many messages as it can hold. */
static void flood(void)
{
	uint32_t i;
	int error;

	for (i = 0; i < 2 * FRAMES; i++)
		do {
			start(&c, 0, 0);
			nhcadv_wr_packet(c.dv, &c.peer, 0);
			error = ibv_wr_complete(c.qpx);
			must(!error || error == ENOMEM);
		} while (error);
}

/* Return: true if the read of @t has its completion. */
static bool has_read(const struct nhcadv_transfer *t)
{
	struct done d;

	if (!poll_done(c.scq, &d))
		return false;
	/* the notice of the last write came later than the status */
	if (d.kind == NHCADV_WC_WRITE && d.tid == ended_by_status)
		return false;
	if (d.status || d.kind != NHCADV_WC_READ || d.wr_id != t->tid || d.tid != t->tid ||
	    d.byte_len != t->total)
		die("tid %u: completion %#x of tid %u, %u bytes: %s", t->tid, d.kind, d.tid,
		    d.byte_len, ibv_wc_status_str(d.status));
	return true;
}

/* Make a half-send read: the target's program gathers the bytes.  @full: first fill its FIFO. */
static void ask_goes(uint32_t total, bool full)
{
	struct nhcadv_transfer t = transfer(&c, 0, AT, total, NHCADV_NOTIFY_INITIATOR |
					    NHCADV_NOTIFY_TARGET);
	struct order order = { .what = ASK, .tid = t.tid, .total = total, .segment = t.segment,
			       .slow = full };
	uint64_t end = now_ns() + GIVE_UP_S * 1000000000ULL, ask;
	char ok;

	t.cookie = t.tid;
	t.remote_pvo = NAME + t.tid;
	memset(c.buf, 0, MEMORY);
	tell(&order, sizeof(order));
	hear(&ok, 1);
	if (full)
		flood();
	post_ask(&t, false);
	ask = now_ns() + ASK_MS * 1000000ULL;
	while (!has_read(&t)) {
		if (now_ns() > end)
			die("tid %u: %u bytes do not come", t.tid, total);
		if (now_ns() < ask)
			continue;
		post_ask(&t, true);
		asks++;
		ask = now_ns() + ASK_MS * 1000000ULL;
	}
	check_painted(c.buf + AT, total, t.tid, "a read that the program answers");
	hear(&ok, 1);
	expect_nothing(c.scq, 0, "after a read");
}

/* Request packets @first to @end - 1 of a read to frames. */
static void post_request(const struct nhcadv_transfer *t, uint32_t first, uint32_t end, bool again)
{
	uint32_t offset = first * t->segment;
	uint32_t length = (end == packets(t) ? t->total : end * t->segment) - offset;

	start(&c, t->tid, 0);
	if (again)
		nhcadv_wr_read_frames_again(c.dv, &c.peer, t, offset, length);
	else
		nhcadv_wr_read_frames(c.dv, &c.peer, t, length);
	verb(ibv_wr_complete(c.qpx));
}

/* Request the first packets that are missing, at most @most of them. */
static void request_missing(const struct nhcadv_transfer *t, uint32_t most)
{
	uint32_t first = 0, end, n = packets(t);

	while (first < n && got[first])
		first++;
	if (first == n)
		return;
	for (end = first + 1; end < n && end - first < most && !got[end];)
		end++;
	post_request(t, first, end, true);
	repeats += end - first;
}

/*
 * Read memory of the target into frames.  @slow: the read has ten times as many packets as the
 * FIFO; the first request is for all of them, and this end reads slowly.
 */
static void read_goes(uint32_t total, bool slow)
{
	struct nhcadv_transfer t = transfer(&c, 0, AT, total, NHCADV_NOTIFY_INITIATOR |
					    NHCADV_NOTIFY_TARGET);
	struct order order = { .what = FROM_MEMORY, .tid = t.tid, .slow = slow };
	uint64_t end = now_ns() + GIVE_UP_S * 1000000000ULL, ask;
	uint32_t frames = 0, most = FRAMES / 2;
	bool complete = false;
	struct done d;
	char ok;

	if (slow)
		t.total = OVERLOAD * t.segment - 5;
	t.local_pvo = 0;
	t.cookie = t.tid;
	order.total = t.total;
	order.segment = t.segment;
	memset(c.buf, 0, MEMORY);
	memset(got, 0, sizeof(got));
	tell(&order, sizeof(order));
	hear(&ok, 1);
	post_request(&t, 0, slow || packets(&t) < most ? packets(&t) : most, false);
	ask = now_ns() + ASK_MS * 1000000ULL;
	while (!complete || frames < packets(&t)) {
		if (now_ns() > end)
			die("tid %u: %u packets of %u bytes came", t.tid, frames, t.total);
		if (poll_done(c.rcq, &d)) {
			if (d.status || d.kind != NHCADV_WC_FRAME)
				die("tid %u: completion %#x", t.tid, d.kind);
			/* an answer to a probe of an earlier transfer */
			if (nhcadv_frame(c.qp, d.frame)->kind == NHCADV_FRAME_STATUS) {
				verb(nhcadv_release_frame(c.qp, d.frame));
				continue;
			}
			check_frame(&order, d.frame);
			if (slow && ++frames % 8 == 0)
				usleep(2000);
			else if (!slow && ++frames % most == 0)
				ask = 0;
			continue;
		}
		if (!complete && has_read(&t)) {
			complete = true;
			continue;
		}
		if (now_ns() < ask)
			continue;
		request_missing(&t, most);
		ask = now_ns() + ASK_MS * 1000000ULL;
	}
	if (differs(c.buf, MEMORY, 0) >= 0)
		die("tid %u: a read to frames has written memory", t.tid);
	hear(&ok, 1);
	expect_nothing(c.scq, 0, "after a read to frames");
}

static void refuse(const char *what, int want)
{
	int got = ibv_wr_complete(c.qpx);

	if (got != want)
		die("%s: %s instead of %s", what, strerror(got), strerror(want));
}

/* The provider refuses wrong arguments, and the channel stays usable. */
static void test_arguments(void)
{
	struct nhcadv_transfer t = transfer(&c, 1, AT, 3 * 64 + 1, NHCADV_NOTIFY_INITIATOR);
	static uint8_t bytes[4096];
	struct ibv_data_buf buf = { .addr = bytes, .length = 64 };

	t.segment = 64;
	start(&c, 0, 0);
	nhcadv_wr_part(c.dv, &c.peer, &t, 4, 1, &buf);
	refuse("a part inside a packet", EINVAL);
	start(&c, 0, 0);
	nhcadv_wr_part(c.dv, &c.peer, &t, 4 * 64, 1, &buf);
	refuse("a part at the end", EINVAL);
	start(&c, 0, 0);
	nhcadv_wr_part(c.dv, &c.peer, &t, 3 * 64, 1, &buf);
	refuse("a part that is too long", EINVAL);
	buf.length = 63;
	start(&c, 0, 0);
	nhcadv_wr_part(c.dv, &c.peer, &t, 0, 1, &buf);
	refuse("a part that is too short", EINVAL);
	buf.length = 64;
	t.notify = NHCADV_NOTIFY_TARGET;
	start(&c, 0, 0);
	nhcadv_wr_part(c.dv, &c.peer, &t, 0, 1, &buf);
	refuse("a part without a notice", EINVAL);
	t.notify = NHCADV_NOTIFY_INITIATOR;
	t.segment = 4096;
	t.total = 4096;
	buf.length = 4096;
	start(&c, 0, 0);
	nhcadv_wr_part(c.dv, &c.peer, &t, 0, 1, &buf);
	refuse("a part that has no room", EINVAL);
	start(&c, 0, 0);
	nhcadv_wr_write_frames(c.dv, &c.peer, &t);
	refuse("frames with a PVO", EINVAL);
	t.remote_pvo = 0;
	start(&c, 0, 0);
	nhcadv_wr_write_frames(c.dv, &c.peer, &t);
	refuse("frames with a long segment", EINVAL);
	t.segment = 64;
	t.total = 64;
	buf.length = 64;
	start(&c, 0, 0);
	nhcadv_wr_answer(c.dv, &c.peer, &t, 0, 1, &buf);
	refuse("an answer that notifies", EINVAL);
	t.local_pvo = AT;
	start(&c, 0, 0);
	nhcadv_wr_read_frames(c.dv, &c.peer, &t, 64);
	refuse("a read to frames with a PVO", EINVAL);
	t.local_pvo = 0;
	t.total = 256;
	start(&c, 0, 0);
	nhcadv_wr_read_frames(c.dv, &c.peer, &t, 65);
	refuse("a read of a part of a packet", EINVAL);
	start(&c, 0, 0);
	nhcadv_wr_read_frames_again(c.dv, &c.peer, &t, 192, 128);
	refuse("a read beyond the end", EINVAL);
	t.segment = 0;
	start(&c, 0, 0);
	nhcadv_wr_ask_again(c.dv, &c.peer, &t);
	refuse("a repeated request without a segment", EINVAL);
	if (channel_info(&c).state != IBV_QPS_RTS)
		die("the channel is in the error state");
	ktap_ok("wrong arguments are refused");
}

static void initiate(uint32_t transfers)
{
	uint32_t segment = c.here.segment < c.there.segment ? c.here.segment : c.there.segment, i;
	struct order quit = { .what = QUIT };

	test_arguments();
	for (i = 0; i < transfers; i++)
		transfer_goes(PARTS, i % 16 ? rnd() % (MOST * segment) : 0, 0);
	ktap_ok("writes from scattered buffers arrive");
	for (i = 0; i < transfers; i++)
		transfer_goes(TO_FRAMES, i % 16 ? rnd() % (MOST * segment) : 0, 0);
	ktap_ok("each packet of a write gets exactly one frame");
	for (i = 0; i < 3; i++)
		transfer_goes(TO_FRAMES, 0, 1);
	ktap_ok("a write of ten times the FIFO arrives at a target that reads slowly");
	for (i = 0; i < transfers; i++)
		ask_goes(i % 16 ? rnd() % (MOST * segment) : 0, false);
	ktap_ok("reads get the bytes that the program of the peer gathers, for one request each");
	for (i = 0; i < 3; i++)
		ask_goes(rnd() % (MOST * segment), true);
	ktap_ok("a request that finds the FIFO full is accepted later");
	for (i = 0; i < transfers; i++)
		read_goes(i % 16 ? rnd() % (MOST * segment) : 0, false);
	ktap_ok("each packet of a read gets exactly one frame");
	for (i = 0; i < 3; i++)
		read_goes(0, true);
	ktap_ok("a read of ten times the FIFO arrives at a reader that is slow");
	tell(&quit, sizeof(quit));
	printf("# %u transfers of each form, %" PRIu64 " probes, %" PRIu64 " packets and %" PRIu64
	       " requests repeated, %" PRIu64 " notices lost\n", transfers, probes, repeats, asks,
	       lost_notices);
}

/* ---- the target ---- */

/* Begin to answer the request in frame @f.  Return: the transfer. */
static struct nhcadv_transfer take_request(const struct order *o, const struct nhcadv_frame *f)
{
	struct nhcadv_request request = nhcadv_frame_request(f);
	struct nhcadv_transfer t = {
		.local_rcxt = f->rcxt, .remote_rcxt = f->src_rcxt, .tid = f->tid,
		.total = f->total, .segment = f->segment, .remote_pvo = request.reply_pvo,
	};

	if (f->tid != o->tid || f->total != o->total || f->segment != o->segment || f->offset ||
	    f->length != sizeof(request) || f->cookie != o->tid ||
	    f->rcxt != c.here.rcxts[0] || f->src_rcxt != c.there.rcxts[0] ||
	    f->src_channel != c.there.qpn || f->src_key != (uint32_t)c.there.key ||
	    request.remote_pvo != NAME + o->tid || request.reply_pvo != c.there.pvo + AT)
		die("tid %u: a request of tid %u, %u bytes in %u", o->tid, f->tid, f->total,
		    f->segment);
	post_range(&t, ASK, 0, packets(&t), false);
	return t;
}

/* Answer one request, and check that no second one comes. */
static void answer_goes(const struct order *o)
{
	uint64_t end = now_ns() + GIVE_UP_S * 1000000000ULL, ask = 0;
	struct nhcadv_transfer t = {};
	const struct nhcadv_frame *f;
	bool complete = false;
	struct done d;

	if (o->slow)
		usleep(50000);
	while (!complete) {
		if (now_ns() > end)
			die("tid %u: the answer does not arrive", o->tid);
		if (t.tid && now_ns() > ask) {
			if (ask)
				post_probe(&c, &t, 0, 0);
			ask = now_ns() + ASK_MS * 1000000ULL;
		}
		if (!poll_done(c.rcq, &d))
			continue;
		if (d.status)
			die("tid %u: %s", o->tid, ibv_wc_status_str(d.status));
		if (d.kind == NHCADV_WC_REMOTE_READ) {
			complete = d.tid == o->tid && d.byte_len == o->total;
			/* the notice came later than the status */
			if (!complete && d.tid != ended_by_status)
				die("tid %u: notice of tid %u", o->tid, d.tid);
			continue;
		}
		if (d.kind != NHCADV_WC_FRAME)
			die("tid %u: completion %#x", o->tid, d.kind);
		must(f = nhcadv_frame(c.qp, d.frame));
		if (f->kind == NHCADV_FRAME_REQUEST) {
			if (t.tid)
				die("tid %u: a second request", o->tid);
			t = take_request(o, f);
		} else if (f->kind == NHCADV_FRAME_STATUS && t.tid && f->tid == t.tid) {
			complete = f->status == NHCADV_TRANSFER_COMPLETE;
			if (complete)
				ended_by_status = t.tid;
			else if (f->status == NHCADV_TRANSFER_PARTIAL)
				post_missing(&t, ASK, f, packets(&t));
		} else if (f->kind != NHCADV_FRAME_STATUS &&
			   (f->kind != NHCADV_FRAME_PACKET || !o->slow)) {
			die("tid %u: a frame of kind %u", o->tid, f->kind);
		}
		verb(nhcadv_release_frame(c.qp, d.frame));
	}
	/* cancel the transfer, so that no late notice of this tid comes any more */
	start(&c, 0, 0);
	nhcadv_wr_cancel(c.dv, t.local_rcxt, t.tid);
	verb(ibv_wr_complete(c.qpx));
	memset(c.buf + AT, 0, o->total);
}

/*
 * The target's kernel answers the half-receive read.  Wait for its end, and check that the program
 * gets no request.  The notice may be lost, so probe the reader as well.
 */
static void wait_reader(const struct order *o)
{
	struct nhcadv_transfer t = transfer(&c, 0, AT, o->total, 0);
	uint64_t end = now_ns() + GIVE_UP_S * 1000000000ULL;
	uint64_t ask = now_ns() + 5 * ASK_MS * 1000000ULL;
	const struct nhcadv_frame *f;
	bool complete = false;
	struct done d;

	t.tid = o->tid;
	t.segment = o->segment;
	while (!complete) {
		if (now_ns() > end)
			die("tid %u: the read does not end", o->tid);
		if (now_ns() > ask) {
			post_probe(&c, &t, 0, 0);
			ask = now_ns() + ASK_MS * 1000000ULL;
		}
		if (!poll_done(c.rcq, &d))
			continue;
		if (d.status)
			die("tid %u: %s", o->tid, ibv_wc_status_str(d.status));
		if (d.kind == NHCADV_WC_REMOTE_READ) {
			complete = d.tid == o->tid && d.byte_len == o->total;
			if (!complete && d.tid != ended_by_status)
				die("tid %u: notice of tid %u", o->tid, d.tid);
			continue;
		}
		must(d.kind == NHCADV_WC_FRAME);
		must(f = nhcadv_frame(c.qp, d.frame));
		/* also messages of flood() that the network has delayed */
		must(f->kind == NHCADV_FRAME_STATUS || f->kind == NHCADV_FRAME_PACKET);
		if (f->kind == NHCADV_FRAME_STATUS && f->tid == o->tid &&
		    f->status == NHCADV_TRANSFER_COMPLETE) {
			complete = true;
			ended_by_status = o->tid;
		}
		verb(nhcadv_release_frame(c.qp, d.frame));
	}
	start(&c, 0, 0);
	nhcadv_wr_cancel(c.dv, t.local_rcxt, t.tid);
	verb(ibv_wr_complete(c.qpx));
	memset(c.buf + AT, 0, o->total);
}

static void serve(void)
{
	uint32_t frames, want;
	uint64_t full;
	struct order o;
	struct done d;
	char ok = 1;

	for (;;) {
		hear(&o, sizeof(o));
		if (o.what == QUIT)
			return;
		memset(got, 0, sizeof(got));
		full = channel_info(&c).counters[NHCADV_DROP_FIFO];
		if (o.what == ASK || o.what == FROM_MEMORY)
			paint(c.buf + AT, o.total, o.tid);
		tell(&ok, 1);
		if (o.what == FROM_MEMORY) {
			wait_reader(&o);
			tell(&ok, 1);
			continue;
		}
		if (o.what == ASK) {
			answer_goes(&o);
			tell(&ok, 1);
			continue;
		}
		frames = 0;
		want = o.what == PARTS ? 0 : o.total ? (o.total - 1) / o.segment + 1 : 1;
		do {
			if (o.slow && frames % 8 == 0)
				usleep(2000);
			d = wait_done(c.rcq, "a half transfer");
			if (d.status)
				die("tid %u: %s", o.tid, ibv_wc_status_str(d.status));
			if (d.kind == NHCADV_WC_FRAME) {
				check_frame(&o, d.frame);
				frames++;
			}
		} while (d.kind == NHCADV_WC_FRAME);
		if (d.kind != NHCADV_WC_REMOTE_WRITE || d.tid != o.tid || d.byte_len != o.total)
			die("tid %u: completion %#x of tid %u", o.tid, d.kind, d.tid);
		if (frames != want)
			die("tid %u: %u frames of %u packets", o.tid, frames, want);
		if (o.slow && channel_info(&c).counters[NHCADV_DROP_FIFO] == full)
			die("tid %u: the FIFO was never full", o.tid);
		if (o.what == PARTS) {
			check_painted(c.buf + AT, o.total, o.tid, "a write from scattered buffers");
			memset(c.buf + AT, 0, o.total);
		}
		if (differs(c.buf, MEMORY, 0) >= 0)
			die("tid %u: bytes beside those of the write were written", o.tid);
		expect_nothing(c.rcq, 0, "after a transfer");
		tell(&ok, 1);
	}
}

int main(int argc, char **argv)
{
	struct nhcadv_device_attr attr;
	uint32_t transfers = 100;
	int letter;

	setvbuf(stdout, NULL, _IOLBF, 0);
	program = "half";
	job = 4729;
	channel_sizes = (struct channel_sizes){ RCXTS, MEMORY, SEND_WR, 1984 };
	cq_entries = 4096;
	while ((letter = getopt(argc, argv, "d:g:p:n:")) != -1)
		switch (letter) {
		case 'n':
			transfers = strtoul(optarg, NULL, 0);
			break;
		default:
			if (peer_option(letter))
				break;
			fputs("usage: half [-d DEVICE] [-g GID-INDEX] [-p TCP-PORT] [-n TRANSFERS] "
			      "[HOST]\n", stderr);
			return 2;
		}
	peer_host = argv[optind];
	open_device();
	sock_open();
	say_hello();
	verb(nhcadv_query_device(context, &attr));
	if (!(attr.caps & NHCADV_DEVICE_PART) || !(attr.caps & NHCADV_DEVICE_FRAMES) ||
	    !(attr.caps & NHCADV_DEVICE_ASK) || !(attr.caps & NHCADV_DEVICE_READ_FRAMES))
		die("the device has no half transfers");
	rnd_state = 0x4a1f;
	channel_open(&c, FRAMES);
	channel_meet(&c);
	/*
	 * a packet must fit into a frame, and into a slot of the send FIFO, in both kinds of half
	 * transfer
	 */
	if (c.here.segment > 1944)
		c.here.segment = 1944;
	if (peer_host)
		initiate(transfers);
	else
		serve();
	channel_close(&c);
	verb(ibv_dealloc_pd(pd));
	verb(ibv_close_device(context));
	if (!peer_host) {
		printf("# the target has checked all bytes\n");
		return 0;
	}
	return ktap_end();
}
