// SPDX-License-Identifier: GPL-2.0
/*
 * Reliable messages from one node to the other (sends: in both directions).  Each must complete
 * exactly once, at both ends if both get a completion, with the right bytes.  Prints the speed.
 *
 *	msg_xfer -d DEV[,DEV...] -g GID[,GID...] [options]		server
 *	msg_xfer -d DEV[,DEV...] -g GID[,GID...] [options] HOST		client
 *
 *	-o OP	write, read, or send (write)
 *	-n N	bytes in all, K, M or G may follow (64M); send: messages
 *	-s N	bytes of each message (1M)
 *	-w N	messages outstanding (8)
 *	-b N	write from N buffers of the same size, which are neither registered nor contiguous
 *	-f	fast: check bytes at the end, not for each message; measure from the completion of
 *		the first window
 *	-j	print the speed as JSON, for the benchmark
 *	-e	sleep when there is nothing to do
 *	-p PORT	TCP port at which the ends meet
 *	-P N	fail if nothing happens for N seconds (60)
 *	-R N	this end recovers the (last) device after N messages
 *	-X N:COMMAND
 *		this end starts the command after N messages
 *	-C	cancel every third message immediately after its post
 */
#include <getopt.h>

#include <infiniband/nhcadv_msg.h>

#include "peers.h"

#define JOB		0x6d7367
#define LINGER_NS	300000000
#define ODD		0x9e3779b97f4a7c15ULL

enum op { WRITE, READ, SEND };

static struct {
	enum op op;
	uint64_t bytes, size;
	uint32_t window, patience, buffers;
	uint64_t recover_after, start_after;
	const char *command;
	bool fast, events, cancel, json;
} opt = { .bytes = 64 << 20, .size = 1 << 20, .window = 8, .patience = 60 };

static struct ibv_context *contexts[NHCADV_MSG_MAX_PATHS];
static uint32_t num_paths;
static struct nhcadv_msg_ep *ep;
static struct nhcadv_msg_peer *peer;
static struct nhcadv_msg_mem *mem;
static uint64_t *area, their_pvo, messages;
static uint64_t *loose;		/* the buffers of -b, in reverse order */
/* State of message k at this end */
static struct message {
	uint8_t done, told, wanted;
} *state;
static uint64_t done, told, cancelled, counted, last_news, start_ns;
static bool client, over;

/* ---- bytes ---- */

/* Return: word @i of the sequence that begins with @base. */
static uint64_t word(uint64_t base, uint64_t i)
{
	return (base + i) * ODD;
}

static void fill(uint64_t *p, uint64_t bytes, uint64_t base)
{
	uint64_t i;

	for (i = 0; i < bytes / 8; i++)
		p[i] = word(base, i);
}

static void check(const uint64_t *p, uint64_t bytes, uint64_t base, const char *what, uint64_t k)
{
	uint64_t i, wrong = 0;

	for (i = 0; i < bytes / 8; i++)
		wrong |= p[i] ^ word(base, i);
	if (!wrong)
		return;
	for (i = 0; p[i] == word(base, i); i++)
		;
	die("%s %" PRIu64 ": byte %" PRIu64 " of %" PRIu64 " is wrong", what, k, i * 8, bytes);
}

static uint64_t *slot(uint64_t k)
{
	return area + k % opt.window * opt.size / 8;
}

/* A read begins anywhere in the server's memory, which is one sequence of words. */
static uint64_t read_from(uint64_t k)
{
	return opt.window > 1 ? mix(k) % ((opt.window - 1) * opt.size / 8) : 0;
}

static uint64_t base_of(uint64_t k)
{
	return opt.fast ? k % opt.window << 40 : (k + 1) << 40;
}

/* ---- both sides ---- */

static void once(uint8_t *count, uint64_t k, const char *what)
{
	if (k >= messages)
		die("%s of message %" PRIu64 ", which does not exist", what, k);
	if ((*count)++)
		die("%s of message %" PRIu64 " came twice", what, k);
}

/*
 * A message on the TCP socket: a new address when no path works, or @over when the sender has
 * completed everything.
 */
struct word {
	uint64_t over, size;
	uint8_t bytes[NHCADV_MSG_MAX_ADDRESS];
};

static void say_where(void)
{
	struct word word = { .size = sizeof(word.bytes) };

	verb(nhcadv_msg_ep_address(ep, word.bytes, &word.size));
	tell(&word, sizeof(word));
}

static void listen_some(void)
{
	static uint64_t next;
	struct word word;
	ssize_t n;

	/* after the message with @over, only meet() may read from the socket */
	if (over || now_ns() < next)
		return;
	next = now_ns() + 10000000;
	n = recv(sock, &word, 1, MSG_DONTWAIT | MSG_PEEK);
	if (!n)
		die("the other side is gone");
	if (n < 0)
		return;
	hear(&word, sizeof(word));
	if (word.over)
		over = true;
	else
		verb(nhcadv_msg_reconnect(peer, word.bytes, word.size));
}

/* Return: true if the completion is only about paths. */
static bool about_paths(const struct nhcadv_msg_completion *wc)
{
	if (wc->kind != NHCADV_MSG_UNREACHABLE && wc->kind != NHCADV_MSG_REACHABLE)
		return false;
	printf("# %s: the other side is %sreachable\n", client ? "client" : "server",
	       wc->kind == NHCADV_MSG_REACHABLE ? "" : "un");
	if (wc->kind == NHCADV_MSG_UNREACHABLE)
		say_where();
	return true;
}

/* Return: the number of completions. */
static int poll_some(struct nhcadv_msg_completion *wc, int num)
{
	int n;

	listen_some();
	if (opt.events)
		nhcadv_msg_wait(ep, 20);
	n = nhcadv_msg_poll(ep, wc, num);
	if (n)
		last_news = now_ns();
	else if (now_ns() - last_news > opt.patience * 1000000000ULL)
		die("no progress for %u s; %" PRIu64 " completed, %" PRIu64 " reported of %" PRIu64,
		    opt.patience, done, told, messages);
	return n;
}

/* @count messages have completed: recover the device or start the command, if it is time for it. */
static void in_between(uint64_t count)
{
	uint32_t recoveries;

	if (count && count == opt.recover_after) {
		verb(nhcadv_recover(contexts[num_paths - 1], &recoveries));
		printf("# %s: recovered after %" PRIu64 " messages\n",
		       client ? "client" : "server", count);
		opt.recover_after = 0;
	}
	if (count && count == opt.start_after) {
		if (!fork()) {
			execl("/bin/sh", "sh", "-c", opt.command, NULL);
			_exit(127);
		}
		printf("# %s: %s\n", client ? "client" : "server", opt.command);
		opt.start_after = 0;
	}
}

/* ---- writes and reads ---- */

/* @make: the buffers need bytes */
static void post_buffers(uint64_t k, bool make)
{
	uint64_t *bytes = loose + k % opt.window * opt.size / 8, words = opt.size / 8 / opt.buffers;
	struct iovec iov[opt.buffers];
	uint32_t i;

	for (i = 0; i < opt.buffers; i++) {
		iov[i].iov_base = bytes + (opt.buffers - 1 - i) * words;
		iov[i].iov_len = 8 * words;
		if (make)
			fill(iov[i].iov_base, 8 * words, base_of(k) + i * words);
	}
	verb(nhcadv_msg_write_iov(peer, iov, opt.buffers, their_pvo + k % opt.window * opt.size, k,
				  opt.fast ? 0 : NHCADV_MSG_NOTIFY));
}

static void post(uint64_t k)
{
	uint64_t at = k % opt.window * opt.size;

	if (opt.buffers) {
		post_buffers(k, !opt.fast || k < opt.window);
	} else if (opt.op == READ) {
		if (!opt.fast)
			memset(slot(k), 0xee, opt.size);
		verb(nhcadv_msg_read(peer, mem, at, their_pvo + 8 * read_from(k), opt.size, k, 0));
	} else {
		if (!opt.fast)
			fill(slot(k), opt.size, base_of(k));
		verb(nhcadv_msg_write(peer, mem, at, their_pvo + at, opt.size, k,
				      opt.fast ? 0 : NHCADV_MSG_NOTIFY));
	}
	if (opt.cancel && k % 3 == 0)
		verb(nhcadv_msg_cancel(peer, k));
}

static void client_done(const struct nhcadv_msg_completion *wc)
{
	uint64_t k = wc->id;

	once(&state[k < messages ? k : 0].done, k, "completion");
	done++;
	in_between(done);
	if (opt.fast && done == opt.window && messages > opt.window) {
		start_ns = now_ns();
		counted = messages - done;
	}
	if (wc->status == ECANCELED && opt.cancel && k % 3 == 0) {
		cancelled++;
		/* the server sends no reply for a cancelled message */
		state[k].told = 1;
		told++;
		return;
	}
	if (wc->status || wc->length != opt.size)
		die("message %" PRIu64 ": %s, %" PRIu64 " bytes", k, strerror(wc->status), wc->length);
	if (opt.op == READ && !opt.fast)
		check(slot(k), opt.size, read_from(k), "read", k);
	if (opt.op == READ || opt.fast) {
		state[k].told = 1;
		told++;
	}
}

static void client_run(void)
{
	struct nhcadv_msg_completion wc[16];
	uint64_t posted = 0, first = 0, k;
	int i, n;

	while (first < messages) {
		/* a slot is free when its message has completed and the server has checked it */
		while (first < posted && state[first].done && state[first].told)
			first++;
		while (posted < messages && posted < first + opt.window)
			post(posted++);
		n = poll_some(wc, 16);
		for (i = 0; i < n; i++) {
			switch (wc[i].kind) {
			case NHCADV_MSG_WRITE:
			case NHCADV_MSG_READ:
				client_done(&wc[i]);
				break;
			case NHCADV_MSG_RECEIVED:
				k = wc[i].id;
				once(&state[k < messages ? k : 0].told, k, "the server's reply");
				told++;
				nhcadv_msg_release(ep, wc[i].data);
				break;
			default:
				if (!about_paths(&wc[i]))
					die("completion of kind %u", wc[i].kind);
			}
		}
	}
}

static void server_told(const struct nhcadv_msg_completion *wc)
{
	uint64_t k = wc->id;

	if (wc->kind == NHCADV_MSG_SEND) {
		once(&state[k < messages ? k : 0].done, k, "completion of the reply");
		done++;
		return;
	}
	if (wc->kind != NHCADV_MSG_WRITTEN) {
		if (!about_paths(wc))
			die("completion of kind %u", wc->kind);
		return;
	}
	once(&state[k < messages ? k : 0].told, k, "notice");
	told++;
	if (wc->length != opt.size || wc->pvo != mem->pvo + k % opt.window * opt.size)
		die("notice of message %" PRIu64 ": %" PRIu64 " bytes", k, wc->length);
	check(slot(k), opt.size, base_of(k), "write", k);
	verb(nhcadv_msg_send(peer, NULL, 0, k, 0));
	in_between(told);
}

static void server_run(void)
{
	struct nhcadv_msg_completion wc[16];
	int i, n;

	while (!over) {
		n = poll_some(wc, 16);
		for (i = 0; i < n; i++)
			server_told(&wc[i]);
		/* reads and writes without a notice give no completion at the server */
		if (opt.op == READ || opt.fast)
			last_news = now_ns();
		if (opt.op == READ && now_ns() > start_ns + 100000000)
			in_between(opt.recover_after + opt.start_after);
	}
}

/* ---- sends, in both directions ---- */

static uint32_t send_size(uint64_t k)
{
	return mix(k) % (NHCADV_MSG_MAX_SEND / 8 + 1) * 8;
}

static void send_run(void)
{
	struct nhcadv_msg_completion wc[16];
	uint64_t bytes[NHCADV_MSG_MAX_SEND / 8], posted = 0, k;
	int i, n, err;

	while (done < messages || told < messages) {
		while (posted < messages) {
			fill(bytes, send_size(posted), base_of(posted));
			err = nhcadv_msg_send(peer, bytes, send_size(posted), posted, 0);
			if (err == EAGAIN)
				break;
			verb(err);
			posted++;
		}
		n = poll_some(wc, 16);
		for (i = 0; i < n; i++) {
			k = wc[i].id;
			if (wc[i].kind == NHCADV_MSG_SEND) {
				once(&state[k < messages ? k : 0].done, k, "completion");
				if (wc[i].status || wc[i].length != send_size(k))
					die("send %" PRIu64 ": %s", k, strerror(wc[i].status));
				done++;
				in_between(done);
			} else if (wc[i].kind == NHCADV_MSG_RECEIVED) {
				if (k != told)
					die("send %" PRIu64 " arrives before send %" PRIu64 "", k,
					    told);
				if (wc[i].length != send_size(k))
					die("send %" PRIu64 " has %" PRIu64 " bytes", k, wc[i].length);
				check(wc[i].data, wc[i].length, base_of(k), "send", k);
				nhcadv_msg_release(ep, wc[i].data);
				told++;
			} else if (!about_paths(&wc[i])) {
				die("completion of kind %u", wc[i].kind);
			}
		}
	}
}

/*
 * Check that no unexpected completion comes, and serve the other side until it has completed
 * everything.
 */
static void linger(void)
{
	uint64_t end = now_ns() + LINGER_NS;
	struct nhcadv_msg_completion wc;

	while (now_ns() < end || !over)
		if (poll_some(&wc, 1) && !about_paths(&wc)) {
			if (wc.kind != NHCADV_MSG_SEND || client || opt.op != WRITE)
				die("a completion of kind %u, id %" PRIu64 ", when all was done", wc.kind,
				    wc.id);
			server_told(&wc);
		}
}

/* ---- beginning and end ---- */

static uint64_t number(const char *text)
{
	char *end;
	uint64_t n = strtoull(text, &end, 0);

	switch (*end) {
	case 'G':
		return n << 30;
	case 'M':
		return n << 20;
	case 'K':
		return n << 10;
	default:
		return n;
	}
}

static void open_ep(char *devices, char *gids)
{
	struct nhcadv_msg_path paths[NHCADV_MSG_MAX_PATHS] = {};
	struct nhcadv_msg_ep_attr attr = { .paths = paths, .job = JOB };
	struct ibv_device **list = ibv_get_device_list(NULL);
	char *dev, *gid, *more_devices, *more_gids;
	int i;

	must(list);
	dev = strtok_r(devices, ",", &more_devices);
	gid = strtok_r(gids, ",", &more_gids);
	while (dev && gid && num_paths < NHCADV_MSG_MAX_PATHS) {
		for (i = 0; list[i] && strcmp(ibv_get_device_name(list[i]), dev); i++)
			;
		if (!list[i])
			die("no RDMA device %s", dev);
		contexts[num_paths] = ibv_open_device(list[i]);
		must(contexts[num_paths]);
		paths[num_paths].context = contexts[num_paths];
		paths[num_paths].gid_index = atoi(gid);
		num_paths++;
		dev = strtok_r(NULL, ",", &more_devices);
		gid = strtok_r(NULL, ",", &more_gids);
	}
	ibv_free_device_list(list);
	attr.num_paths = num_paths;
	must(ep = nhcadv_msg_create_ep(&attr));
}

static void meet_peer(void)
{
	uint8_t ours[NHCADV_MSG_MAX_ADDRESS] = {}, others[NHCADV_MSG_MAX_ADDRESS];
	size_t size = sizeof(ours);
	uint64_t sizes[2];

	verb(nhcadv_msg_ep_address(ep, ours, &size));
	sizes[0] = size;
	exchange(&sizes[0], &sizes[1], sizeof(sizes[0]));
	exchange(ours, others, sizeof(ours));
	must(peer = nhcadv_msg_connect(ep, others, sizes[1], NULL));
	exchange(&mem->pvo, &their_pvo, sizeof(their_pvo));
}

static void options(int argc, char **argv, char **devices, char **gids)
{
	int c;

	while ((c = getopt(argc, argv, "d:g:p:o:n:s:w:b:R:X:P:fjeC")) != -1) {
		switch (c) {
		case 'd': *devices = optarg; break;
		case 'g': *gids = optarg; break;
		case 'p': peer_port = optarg; break;
		case 'o':
			opt.op = !strcmp(optarg, "read") ? READ : !strcmp(optarg, "send") ? SEND : WRITE;
			break;
		case 'n': opt.bytes = number(optarg); break;
		case 's': opt.size = number(optarg); break;
		case 'w': opt.window = number(optarg); break;
		case 'b': opt.buffers = number(optarg); break;
		case 'R': opt.recover_after = number(optarg); break;
		case 'X':
			opt.start_after = number(optarg);
			opt.command = strchr(optarg, ':') ? strchr(optarg, ':') + 1 : "true";
			break;
		case 'P': opt.patience = number(optarg); break;
		case 'f': opt.fast = true; break;
		case 'j': opt.json = true; break;
		case 'e': opt.events = true; break;
		case 'C': opt.cancel = true; break;
		default: exit(2);
		}
	}
	peer_host = argv[optind];
	client = peer_host;
	messages = opt.op == SEND ? opt.bytes : opt.bytes / opt.size;
	counted = messages;
	if (!*devices || !*gids || opt.size % 8 || !opt.window || !messages ||
	    (opt.buffers && (opt.op != WRITE || opt.size % (8 * opt.buffers))))
		die("missing or wrong options; see the top of msg_xfer.c");
}

static void print_result(uint64_t ns)
{
	static const char * const ops[] = { "write", "read", "send" };
	static const char * const names[] = { "written", "read", "sent" };
	uint64_t bytes = opt.op == SEND ? 0 : counted * opt.size;

	if (opt.json)
		printf("{\"mode\": \"stream\", \"op\": \"msg-%s\", \"size\": %" PRIu64
		       ", \"count\": %" PRIu64 ", \"depth\": %u, \"MiB_per_s\": %.2f, "
		       "\"ns_per_message\": %.1f}\n", ops[opt.op], opt.size, counted, opt.window,
		       bytes * 1e9 / ns / (1 << 20), (double)ns / counted);
	else
		printf("msg_xfer: %" PRIu64 " messages %s, %" PRIu64 " cancelled, %.3f s, %.2f MB/s\n",
		       messages, names[opt.op], cancelled, ns / 1e9, bytes * 1e3 / ns);
}

static void print_stats(void)
{
	struct nhcadv_msg_stats s;
	uint32_t i;

	for (i = 0; !nhcadv_msg_query(peer, i, &s); i++)
		printf("msg_xfer: path %u: %s, %" PRIu64 " transfers, %" PRIu64 " packets, %" PRIu64
		       " resent, %" PRIu64 " redriven, %" PRIu64 " probes, %" PRIu64
		       " deaths, %.3f ms, window %" PRIu64 " KiB\n", i,
		       s.alive ? "alive" : "dead", s.transfers, s.packets, s.resent, s.redriven,
		       s.probes, s.deaths, s.srtt_ns / 1e6, s.window >> 10);
}

int main(int argc, char **argv)
{
	char *devices = NULL, *gids = NULL;
	struct word finished = { .over = 1 };
	uint64_t bytes, k;

	program = "msg_xfer";
	options(argc, argv, &devices, &gids);
	must(state = calloc(messages, sizeof(*state)));
	bytes = opt.window * opt.size;
	area = pages(bytes);
	loose = opt.buffers ? pages(bytes) : NULL;
	open_ep(devices, gids);
	must(mem = nhcadv_msg_reg_mem(ep, area, bytes, IBV_ACCESS_LOCAL_WRITE |
				      IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE));
	if (opt.op == READ && !client)
		fill(area, bytes, 0);
	for (k = 0; opt.op == WRITE && opt.fast && client && k < opt.window; k++)
		fill(slot(k), opt.size, base_of(k));
	sock_open();
	meet_peer();

	last_news = now_ns();
	start_ns = last_news;
	if (opt.op == SEND)
		send_run();
	else if (client)
		client_run();
	else
		server_run();
	start_ns = now_ns() - start_ns;
	tell(&finished, sizeof(finished));
	linger();
	if (opt.op == WRITE && opt.fast && !client)
		for (k = 0; k < opt.window && k < messages; k++)
			check(slot(k), opt.size, base_of(k), "write", k);
	if (opt.op == READ && opt.fast && client)
		for (k = messages > opt.window ? messages - opt.window : 0; k < messages; k++)
			check(slot(k), opt.size, read_from(k), "read", k);
	if (opt.op == WRITE && !opt.fast && !opt.cancel && told != messages)
		die("%" PRIu64 " of %" PRIu64 " messages were reported", told, messages);
	meet(1);
	if (client)
		print_result(start_ns);
	print_stats();
	/* all transfers have completed, so the memory is not in use any more */
	verb(nhcadv_msg_dereg_mem(mem));
	verb(nhcadv_msg_destroy_ep(ep));
	while (num_paths)
		verb(ibv_close_device(contexts[--num_paths]));
	return 0;
}
