// SPDX-License-Identifier: GPL-2.0
/*
 * Third-party transfers between three hosts: the manager moves bytes from the source to the target
 * while the programs of source and target are stopped.
 *
 *	third -d DEVICE -g GID-INDEX -p TCP-PORT -i NETDEV [-n MOVES] [-f FORGED] manager
 *	third -d DEVICE -g GID-INDEX -p TCP-PORT -i NETDEV -t ROUNDS manager
 *	third -d DEVICE -g GID-INDEX -p TCP-PORT source|target MANAGER
 *
 * With -t, the manager only compares times: see compare().
 * The manager prints a KTAP report.
 */
#include <getopt.h>
#include <signal.h>
#include <sys/wait.h>

#define RCXTS	8
#define MEMORY	(17u << 20)
#define SEND_WR	256
#include "channels.h"
#include "forged.h"

#define JOB		0x7417d
#define MOST		(16u << 20)
#define PHASE		64		/* moves between two checks of all bytes */
#define FLIGHTS		4		/* moves at a time, each on its own rCxt */
#define ASK_MS		60		/* time without completion or answer until the next probe */
#define GIVE_UP_S	240

enum role { MANAGER, SOURCE, TARGET };

/* Addresses of a node: each node sends its own to the manager, and gets those of the target */
struct about {
	union ibv_gid gid;
	struct address at;
};

struct span {
	uint32_t from, to, length;
};

/*
 * A command of the manager: 'a' allow the target, 'r' revoke it, 'v' verify the spans, 'n' only
 * return counters, 'q' quit
 */
struct command {
	uint32_t what, count;
	struct span spans[PHASE];
};

struct node {
	int fd, stop_fd;
	struct about about;
	struct nhcadv_peer peer;
};

static struct channel c;
static struct node nodes[3];

/* ---- sockets ---- */

static void put(int fd, const void *p, size_t size)
{
	ssize_t n;

	for (; size; size -= n, p = (const char *)p + n) {
		n = write(fd, p, size);
		if (n <= 0)
			die("write: %s", strerror(errno));
	}
}

static bool get(int fd, void *p, size_t size)
{
	ssize_t n;

	for (; size; size -= n, p = (char *)p + n) {
		n = read(fd, p, size);
		if (n <= 0)
			return false;
	}
	return true;
}

static int call(const char *host)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_family = AF_INET }, *info;
	int fd, tries;

	must(!getaddrinfo(host, peer_port, &hints, &info));
	for (tries = 0; tries < 300; tries++) {
		must((fd = socket(AF_INET, SOCK_STREAM, 0)) >= 0);
		if (!connect(fd, info->ai_addr, info->ai_addrlen))
			return fd;
		close(fd);
		usleep(100000);
	}
	die("the manager does not listen");
}

static uint64_t word(uint32_t i)
{
	return mix(0x7417d00000000ull + i);
}

static void paint_words(uint8_t *p, uint32_t size)
{
	uint64_t *w = (uint64_t *)p;
	uint32_t i;

	for (i = 0; i < size / 8; i++)
		w[i] = word(i);
}

static void open_channel(void)
{
	channel_sizes = (struct channel_sizes){ RCXTS, MEMORY, SEND_WR, 0 };
	job = JOB;
	open_device();
	channel_open(&c, 512);
}

static struct nhcadv_peer peer_of(const struct about *about)
{
	struct ibv_ah_attr attr = { .is_global = 1, .port_num = 1,
		.grh = { .dgid = about->gid, .sgid_index = gid_index, .hop_limit = 64 } };
	struct nhcadv_peer peer = { .qpn = about->at.qpn, .key = about->at.key };

	must(peer.ah = ibv_create_ah(pd, &attr));
	return peer;
}

/* ---- source and target ---- */

/* A child that stops and continues its parent: a stopped process cannot continue itself. */
static void stopper(int fd)
{
	char what;

	while (get(fd, &what, 1)) {
		kill(getppid(), what == 's' ? SIGSTOP : SIGCONT);
		put(fd, &what, 1);
	}
	kill(getppid(), SIGCONT);
	_exit(0);
}

static void verify(const struct command *cmd, const uint8_t *source)
{
	const struct span *s;
	uint32_t i;

	for (i = 0; i < cmd->count; i++) {
		s = &cmd->spans[i];
		if (memcmp(c.buf + s->to, source + s->from, s->length))
			die("move %u of %u bytes: wrong bytes at the target", i, s->length);
		memset(c.buf + s->to, 0, s->length);
	}
	if (differs(c.buf, MEMORY, 0) >= 0)
		die("bytes beside those of the moves were written");
}

static int serve(enum role role, const char *manager)
{
	static struct command cmd;
	struct about about = {}, target;
	uint8_t *source = NULL;
	int fd, stop_fd;
	char one = role;

	stop_fd = call(manager);
	put(stop_fd, &one, 1);
	if (!fork())
		stopper(stop_fd);
	close(stop_fd);
	fd = call(manager);
	one = role + 10;
	put(fd, &one, 1);
	open_channel();
	source = pages(MEMORY);
	paint_words(source, MEMORY);
	if (role == SOURCE)
		memcpy(c.buf, source, MEMORY);
	about.gid = mine.gid;
	about.at = c.here;
	put(fd, &about, sizeof(about));
	must(get(fd, &target, sizeof(target)));
	/* before command 'a', the manager tests that moves to the target are refused */
	while (get(fd, &cmd, sizeof(cmd)) && cmd.what != 'q') {
		struct nhcadv_peer peer;
		uint64_t counters[2];

		switch (cmd.what) {
		case 'a':
			peer = peer_of(&target);
			verb(nhcadv_allow_target(c.qp, peer.ah));
			verb(ibv_destroy_ah(peer.ah));
			break;
		case 'r':
			peer = peer_of(&target);
			verb(nhcadv_revoke_target(c.qp, peer.ah));
			verb(ibv_destroy_ah(peer.ah));
			break;
		case 'v':
			verify(&cmd, source);
			break;
		}
		counters[0] = channel_info(&c).counters[NHCADV_SENT_PACKETS];
		counters[1] = channel_info(&c).counters[NHCADV_RECEIVED_BYTES];
		put(fd, counters, sizeof(counters));
	}
	put(fd, &one, 1);
	channel_close(&c);
	return 0;
}

/* ---- the manager ---- */

static void order(enum role role, uint32_t what, const struct span *spans, uint32_t count,
		  uint64_t *counters)
{
	static struct command cmd;
	uint64_t answer[2];

	memset(&cmd, 0, sizeof(cmd));
	cmd.what = what;
	cmd.count = count;
	if (count)
		memcpy(cmd.spans, spans, count * sizeof(*spans));
	put(nodes[role].fd, &cmd, sizeof(cmd));
	if (!get(nodes[role].fd, answer, sizeof(answer)))
		die("the program of the %s has failed", role == SOURCE ? "source" : "target");
	if (counters)
		memcpy(counters, answer, sizeof(answer));
}

static void halt(char what)
{
	enum role role;

	for (role = SOURCE; role <= TARGET; role++) {
		put(nodes[role].stop_fd, &what, 1);
		must(get(nodes[role].stop_fd, &what, 1));
	}
}

static void gather(void)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(atoi(peer_port)) };
	int listener = socket(AF_INET, SOCK_STREAM, 0), on = 1, i, fd;
	enum role role;
	char who;

	must(listener >= 0);
	must(!setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)));
	must(!bind(listener, (struct sockaddr *)&at, sizeof(at)) && !listen(listener, 4));
	for (i = 0; i < 4; i++) {
		must((fd = accept(listener, NULL, NULL)) >= 0);
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
		must(get(fd, &who, 1));
		if (who < 10)
			nodes[(int)who].stop_fd = fd;
		else
			nodes[who - 10].fd = fd;
	}
	for (role = SOURCE; role <= TARGET; role++) {
		must(get(nodes[role].fd, &nodes[role].about, sizeof(struct about)));
		nodes[role].peer = peer_of(&nodes[role].about);
	}
	for (role = SOURCE; role <= TARGET; role++)
		put(nodes[role].fd, &nodes[TARGET].about, sizeof(struct about));
}

static uint32_t segment(void)
{
	uint32_t a = nodes[SOURCE].about.at.segment, b = nodes[TARGET].about.at.segment;

	return (a < b ? a : b) - NHCADV_MOVE_HEADER;
}

/* A move in flight on rCxt @i of the three ends */
struct flight {
	bool busy;
	uint32_t i, tid, missing;
	uint64_t asked;			/* time of the last request, probe or answer, ns */
	uint32_t offset;		/* offset of the next probe */
	struct span span;
	uint32_t completions;
};

static struct flight flights[FLIGHTS];
static uint64_t probes, repeats, lost_notices;

static struct nhcadv_transfer transfer_of(const struct flight *f)
{
	return (struct nhcadv_transfer){
		.local_rcxt = c.here.rcxts[f->i],
		.remote_rcxt = nodes[SOURCE].about.at.rcxts[f->i],
		.remote_pvo = nodes[SOURCE].about.at.pvo + f->span.from,
		.cookie = f->i, .tid = f->tid, .total = f->span.length,
		.segment = segment(), .notify = NHCADV_NOTIFY_INITIATOR,
	};
}

static struct nhcadv_target target_of(const struct flight *f)
{
	return (struct nhcadv_target){
		.peer = nodes[TARGET].peer, .rcxt = nodes[TARGET].about.at.rcxts[f->i],
		.pvo = nodes[TARGET].about.at.pvo + f->span.to,
	};
}

static void request(struct flight *f)
{
	struct nhcadv_transfer t = transfer_of(f);
	struct nhcadv_target to = target_of(f);

	start(&c, f->i, 0);
	nhcadv_wr_move(c.dv, &nodes[SOURCE].peer, &to, &t);
	verb(ibv_wr_complete(c.qpx));
	f->asked = now_ns();
	f->offset = 0;
}

static void begin(struct flight *f, const struct span *span)
{
	f->busy = true;
	f->tid = ++c.tid;
	f->span = *span;
	f->completions = 0;
	request(f);
}

static void probe(struct flight *f)
{
	struct nhcadv_transfer t = transfer_of(f);

	t.remote_rcxt = nodes[TARGET].about.at.rcxts[f->i];
	start(&c, f->i, 0);
	nhcadv_wr_probe(c.dv, &nodes[TARGET].peer, &t, f->offset);
	verb(ibv_wr_complete(c.qpx));
	f->asked = now_ns();
	probes++;
}

/* Request the packets that a status does not report.  Return: true if some are missing. */
static bool repeat(struct flight *f, const struct nhcadv_frame *status)
{
	struct nhcadv_transfer t = transfer_of(f);
	struct nhcadv_target to = target_of(f);
	uint32_t packets = (t.total + t.segment - 1) / t.segment, first = status->offset / t.segment;
	uint32_t end = first + 8 * status->length, next, offset, length, n = 0;

	if (status->status == NHCADV_TRANSFER_NONE || !packets) {
		first = 0;
		end = packets ? packets : 1;
		packets = end;
	}
	if (end > packets)
		end = packets;
	for (; first < end && n < 60; first = next) {
		next = first + 1;
		if (nhcadv_frame_has(status, first))
			continue;
		while (next < end && !nhcadv_frame_has(status, next))
			next++;
		offset = first * t.segment;
		length = (next < packets ? next * t.segment : t.total) - offset;
		start(&c, f->i, 0);
		nhcadv_wr_move_again(c.dv, &nodes[SOURCE].peer, &to, &t, offset, length);
		if (ibv_wr_complete(c.qpx))
			return true;
		n++;
		repeats++;
	}
	/* no packet of this bitmap is missing: the next probe begins after the bitmap, or at 0 */
	if (!n)
		f->offset = end < packets ? end * t.segment : 0;
	return n;
}

static void frame_came(uint32_t index)
{
	const struct nhcadv_frame *frame = nhcadv_frame(c.qp, index);
	struct flight *f;

	must(frame);
	f = &flights[frame->cookie % FLIGHTS];
	if (frame->kind == NHCADV_FRAME_STATUS && f->busy && frame->tid == f->tid) {
		f->asked = now_ns();
		switch (frame->status) {
		case NHCADV_TRANSFER_COMPLETE:
			lost_notices++;
			f->busy = false;
			break;
		case NHCADV_TRANSFER_PARTIAL:
		case NHCADV_TRANSFER_NONE:
			if (!repeat(f, frame))
				probe(f);
			break;
		default:
			die("a move ends with status %u", frame->status);
		}
	}
	verb(nhcadv_release_frame(c.qp, index));
}

/* Return: false if there is no completion. */
static bool step(void)
{
	struct flight *f;
	struct done d;

	if (poll_done(c.scq, &d)) {
		if (d.status)
			die("completion %#x: %s", d.kind, ibv_wc_status_str(d.status));
		f = &flights[d.wr_id % FLIGHTS];
		if (d.kind == NHCADV_WC_MOVE && d.tid == f->tid) {
			if (f->completions++ || d.byte_len != f->span.length)
				die("%u completions of a move, %u bytes", f->completions, d.byte_len);
			f->busy = false;
		}
		return true;
	}
	if (poll_done(c.rcq, &d)) {
		if (d.kind != NHCADV_WC_FRAME)
			die("completion %#x at the manager", d.kind);
		frame_came(d.frame);
		return true;
	}
	return false;
}

static void move_all(const struct span *spans, uint32_t count)
{
	uint64_t end = now_ns() + GIVE_UP_S * 1000000000ULL;
	uint32_t next = 0, busy, i;

	do {
		for (i = 0, busy = 0; i < FLIGHTS; i++) {
			flights[i].i = i;
			if (!flights[i].busy && next < count)
				begin(&flights[i], &spans[next++]);
			else if (flights[i].busy && now_ns() - flights[i].asked > ASK_MS * 1000000ULL)
				probe(&flights[i]);
			busy += flights[i].busy;
		}
		if (!step())
			usleep(200);
		if (now_ns() > end)
			die("moves do not complete: tid %u of %u bytes", flights[0].tid,
			    flights[0].span.length);
	} while (busy || next < count);
}

/* Choose a phase of moves to disjoint places.  Return: their number. */
static uint32_t choose(struct span *spans, uint32_t most, uint32_t phase)
{
	const uint32_t sizes[] = { MOST, 0, 1, segment(), segment() + 1, 65 * segment(), 1 << 20 };
	uint32_t at = 64, n, length;

	for (n = 0; n < most && n < PHASE; n++) {
		length = n < 7 && phase % 4 == 0 ? sizes[n] : n % 16 ? rnd() % 20000 : rnd() % 400000;
		if (at + length + 64 > MEMORY)
			length = n ? (MEMORY - 64 > at ? rnd() % 64 : 0) : length;
		if (at + length + 64 > MEMORY)
			break;
		spans[n] = (struct span){ (uint32_t)(rnd() % (MEMORY - length + 1)), at, length };
		at += length + rnd() % 64 + 1;
	}
	return n;
}

static uint64_t link_bytes(const char *netdev)
{
	const char *names[] = { "rx_bytes", "tx_bytes" };
	unsigned long long n, sum = 0;
	char path[128];
	FILE *file;
	int i;

	for (i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "/sys/class/net/%s/statistics/%s", netdev, names[i]);
		must(file = fopen(path, "r"));
		must(fscanf(file, "%llu", &n) == 1);
		fclose(file);
		sum += n;
	}
	return sum;
}

/* ---- forged packets ---- */

/*
 * Write a packet between the first rCxts of two ends: BTH, RXETH, and @more bytes of further
 * headers.  No challenge answers the packet.  Return: its bytes.
 */
static uint32_t forge(uint8_t *p, uint8_t opcode, const struct address *to,
		      const struct address *from, uint32_t tid, uint32_t total, uint64_t pvo,
		      uint32_t more)
{
	const struct forged f = {
		.opcode = opcode, .flags = 0x0c /* t, a */, .to = to, .from = from,
		.to_rcxt = to->rcxts[0], .from_rcxt = from->rcxts[0], .pvo = pvo, .tid = tid,
		.total = total, .segment = segment(), .more = more,
	};

	return forged_packet(p, &f);
}

/*
 * Send forged packets: requests to the source, payload to the target, and notices to the manager.
 * Each lacks a valid token, has a wrong bit or an old tid, or belongs to no transfer.  @n: number
 * of each kind.
 */
static void forge_all(uint32_t n)
{
	const struct address *source = &nodes[SOURCE].about.at, *target = &nodes[TARGET].about.at;
	/* offsets of RXETH fields in which any inverted bit makes the packet invalid */
	static const uint8_t fields[] = { 0, 4, 8, 12 };
	int fds[] = { forged_socket(&nodes[SOURCE].about.gid),
		      forged_socket(&nodes[TARGET].about.gid), forged_socket(&mine.gid) };
	uint32_t i, size;
	uint8_t p[FORGED_MAX], *x = p + FORGED_BTH;

	for (i = 0; i < n; i++) {
		uint32_t at = fields[rnd() % 4], flip = rnd() % 32;

		/* a request: higher tid, all keys, no valid token; every second has a wrong bit */
		size = forge(p, 0xc8, source, &c.here, c.tid + 1 + i % 1000, 4 << 20, source->pvo, 56);
		be64(x + 64, target->pvo);
		be64(x + 72, rnd());
		memcpy(x + 80, nodes[TARGET].about.gid.raw, 16);
		be32(x + 96, target->qpn);
		be32(x + 100, target->key);
		be32(x + 104, target->rcxts[0]);
		be32(x + 108, target->rcxts[0] >> 32);
		be32(x + 112, 4 << 20);
		if (i % 2)
			x[at + rnd() % 4] ^= 1 << rnd() % 8;
		forged_send(fds[0], p, size);

		/* payload of no bytes with a wrong key, job, rCxt or tid */
		size = forge(p, 0xc9, target, &c.here, i % 5 ? c.tid + 1000 : 1, 0, target->pvo, 16);
		memcpy(x + 64, mine.gid.raw, 16);
		if (i % 5)
			x[at + flip / 8] ^= 1 << flip % 8;
		forged_send(fds[1], p, size);

		/* a notice of a transfer that does not exist; every second has a wrong bit */
		size = forge(p, 0xc4, &c.here, target, c.tid + 1, 0, 0, 0);
		if (i % 2)
			x[at + rnd() % 4] ^= 1 << rnd() % 8;
		forged_send(fds[2], p, size);
		if (i % 64 == 63)
			usleep(200);
	}
	for (i = 0; i < 3; i++)
		close(fds[i]);
	usleep(300000);
}

static void test_forged(uint32_t n)
{
	uint64_t before[2], after[2], target_before[2], target_after[2];
	struct nhcadv_channel_info was = channel_info(&c), now;
	struct done d;

	order(SOURCE, 'n', NULL, 0, before);
	order(TARGET, 'n', NULL, 0, target_before);
	forge_all(n);
	order(SOURCE, 'n', NULL, 0, after);
	order(TARGET, 'v', NULL, 0, target_after);
	now = channel_info(&c);
	if (after[0] != before[0])
		die("the source has sent %" PRIu64 " packets", after[0] - before[0]);
	if (target_after[0] != target_before[0])
		die("the target has sent %" PRIu64 " packets", target_after[0] - target_before[0]);
	while (poll_done(c.scq, &d))
		if (d.kind != NHCADV_WC_LOCAL)
			die("completion %#x after forged packets", d.kind);
	if (poll_done(c.rcq, &d))
		die("completion %#x after forged packets", d.kind);
	if (now.counters[NHCADV_SENT_PACKETS] != was.counters[NHCADV_SENT_PACKETS])
		die("the manager has answered forged packets");
	ktap_ok("%u forged requests, payloads and notices each: nothing is sent, placed or completed", n);
}

/* ---- tests ---- */

static void test_forbidden(void)
{
	const struct span span = { 0, 64, 1 << 20 };
	struct flight *f = &flights[0];
	uint64_t end = now_ns() + patience_s() * 1000000000ULL;
	struct nhcadv_transfer t;
	struct nhcadv_target to;
	bool told = false;
	struct done d;

	f->i = 0;
	begin(f, &span);
	t = transfer_of(f);
	to = target_of(f);
	while (!told) {
		if (now_ns() > end)
			die("the manager is not told that the target is not allowed");
		/* repeat the request: it, a challenge or the status may have been lost */
		if (now_ns() - f->asked > 5 * ASK_MS * 1000000ULL) {
			start(&c, f->i, 0);
			nhcadv_wr_move_again(c.dv, &nodes[SOURCE].peer, &to, &t, 0, t.total);
			verb(ibv_wr_complete(c.qpx));
			f->asked = now_ns();
		}
		while (poll_done(c.scq, &d))
			if (d.kind == NHCADV_WC_MOVE)
				die("a forbidden move has completed");
		if (poll_done(c.rcq, &d)) {
			const struct nhcadv_frame *frame = nhcadv_frame(c.qp, d.frame);

			must(d.kind == NHCADV_WC_FRAME && frame);
			if (frame->status != NHCADV_TRANSFER_FORBIDDEN || frame->tid != f->tid)
				die("status %u", frame->status);
			told = true;
			verb(nhcadv_release_frame(c.qp, d.frame));
		}
	}
	f->busy = false;
	/* release the frames of answers to repeated requests */
	usleep(100000);
	while (poll_done(c.rcq, &d))
		verb(nhcadv_release_frame(c.qp, d.frame));
	order(TARGET, 'v', NULL, 0, NULL);
	ktap_ok("a source refuses a target that its program has not allowed, and tells the manager");
}

static void test_moves(uint32_t moves, const char *netdev)
{
	static struct span spans[PHASE];
	uint64_t bytes = 0, link = 0, before;
	uint32_t done = 0, phase = 0, n, i;

	while (done < moves) {
		n = choose(spans, moves - done, phase++);
		halt('s');
		before = link_bytes(netdev);
		move_all(spans, n);
		link += link_bytes(netdev) - before;
		halt('c');
		for (i = 0; i < n; i++)
			bytes += spans[i].length;
		order(TARGET, 'v', spans, n, NULL);
		done += n;
	}
	ktap_ok("%u moves with the programs of source and target stopped: each byte is right", moves);
	printf("# %" PRIu64 " bytes moved, %" PRIu64 " on the link of the manager (%.2f %%), %" PRIu64
	       " probes, %" PRIu64 " repeated requests, %" PRIu64 " lost notices\n", bytes, link,
	       100.0 * link / bytes, probes, repeats, lost_notices);
	if (link * 50 < bytes)
		ktap_ok("the link of the manager carries less than 2 %% of the bytes");
	else
		ktap_notok("it carries more",
			   "the link of the manager carries less than 2 %% of the bytes");
}

/* Write or read between the manager and one node, without losses. */
static void relay(enum role with, bool write, uint32_t at, uint32_t length)
{
	struct nhcadv_transfer t = {
		.local_rcxt = c.here.rcxts[7], .remote_rcxt = nodes[with].about.at.rcxts[7],
		.local_pvo = c.here.pvo + at, .remote_pvo = nodes[with].about.at.pvo + at,
		.tid = ++c.tid, .total = length, .segment = segment(),
		.notify = NHCADV_NOTIFY_INITIATOR,
	};
	struct done d;

	start(&c, 7, 0);
	if (write)
		nhcadv_wr_write(c.dv, &nodes[with].peer, &t);
	else
		nhcadv_wr_read(c.dv, &nodes[with].peer, &t);
	verb(ibv_wr_complete(c.qpx));
	do
		d = wait_done(c.scq, "relay");
	while (d.kind == NHCADV_WC_LOCAL || d.tid != t.tid);
}

/*
 * Compare the time of a move with that of a read and a write through the manager, without losses.
 */
static void compare(uint32_t rounds)
{
	const struct span span = { 64, 64, 4 << 20 };
	uint64_t began, moved = 0, relayed = 0;
	uint32_t i;

	for (i = 0; i < rounds; i++) {
		began = now_ns();
		move_all(&span, 1);
		moved += now_ns() - began;
		began = now_ns();
		relay(SOURCE, false, span.from, span.length);
		relay(TARGET, true, span.to, span.length);
		relayed += now_ns() - began;
	}
	order(TARGET, 'v', &span, 1, NULL);
	printf("# %u x 4 MiB: move %.1f ms, read and write through the manager %.1f ms (%.2f)\n",
	       rounds, moved / 1e6 / rounds, relayed / 1e6 / rounds, (double)moved / relayed);
}

static int manage(uint32_t moves, uint32_t forged, const char *netdev)
{
	struct nhcadv_device_attr attr;

	open_channel();
	verb(nhcadv_query_device(context, &attr));
	if (!(attr.caps & NHCADV_DEVICE_MOVE))
		die("the device has no NHCADV_DEVICE_MOVE");
	gather();
	rnd_state = 0x7417d;
	test_forbidden();
	order(SOURCE, 'a', NULL, 0, NULL);
	test_moves(moves, netdev);
	if (forged)
		test_forged(forged);
	order(SOURCE, 'r', NULL, 0, NULL);
	test_forbidden();
	return 0;
}

int main(int argc, char **argv)
{
	uint32_t moves = 100, forged = 0, rounds = 0;
	const char *netdev = NULL;
	int letter, ret;

	program = "third";
	while ((letter = getopt(argc, argv, "d:g:p:n:f:i:t:")) != -1) {
		if (peer_option(letter))
			continue;
		switch (letter) {
		case 'n':
			moves = strtoul(optarg, NULL, 0);
			break;
		case 'f':
			forged = strtoul(optarg, NULL, 0);
			break;
		case 'i':
			netdev = optarg;
			break;
		case 't':
			rounds = strtoul(optarg, NULL, 0);
			break;
		default:
			return 2;
		}
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc - optind == 2)
		return serve(!strcmp(argv[optind], "source") ? SOURCE : TARGET, argv[optind + 1]);
	if (argc - optind != 1 || !netdev)
		return 2;
	if (rounds) {
		open_channel();
		gather();
		order(SOURCE, 'a', NULL, 0, NULL);
		compare(rounds);
		ret = 0;
	} else {
		ret = manage(moves, forged, netdev);
	}
	channel_close(&c);
	return ret ? ret : ktap_end();
}
