// SPDX-License-Identifier: GPL-2.0
/* A part of verify_xfer.c: options, contents of messages, memory, and the TCP socket. */
#include "xfer.h"

const char * const op_names[OPS] = {
	"send", "write", "write_imm", "read", "atomic", "mixed"
};

struct options opt = {
	.port = "18600", .type = IBV_QPT_RC, .op = MIXED, .retry = 7, .timeout = 14,
	.patience = 60, .qps = 1, .messages = 100, .window = 16, .size = 65536,
};

struct ibv_context *context;
struct ibv_pd *pd;
struct ibv_cq *cq;
struct ibv_comp_channel *channel;
struct area in, out, from, got, counters, fetched;
struct hello mine, theirs;
struct flow *flows;
uint32_t slots, stride;
static int sock = -1;
bool active, passive;
uint64_t delivered, lost, moved, sent;
uint32_t round_first, round_count, drains;

void die(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fprintf(stderr, "verify_xfer %s: ", opt.host ? "client" : "server");
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	va_end(args);
	exit(1);
}

double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

/* ---- contents of message k of flow q, the same on both sides ---- */

static uint64_t mix(uint64_t z)
{
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
	return z ^ z >> 31;
}

/* @from_client distinguishes the two directions if both sides send. */
uint64_t seed(bool from_client, uint32_t q, uint32_t k)
{
	return mix(((uint64_t)q << 32 | k) * 2 + from_client + 0x9e3779b97f4a7c15ULL);
}

uint32_t size_of(bool from_client, uint32_t q, uint32_t k)
{
	uint64_t dice = seed(from_client, q, k);

	if (opt.fixed || k % 4 == 0)
		return opt.size;
	/* every fourth message is short enough to be inline */
	return k % 4 == 1 ? dice % (opt.size < INLINE ? opt.size + 1 : INLINE + 1) :
			    dice % (opt.size + 1);
}

enum op op_of(uint32_t k)
{
	return opt.op == MIXED ? (enum op)(k % MIXED) : opt.op;
}

uint64_t addend(uint32_t q, uint32_t k)
{
	return mix(q ^ ((uint64_t)k << 40)) | 1;
}

bool takes_receive(uint32_t k)
{
	return op_of(k) == SEND || op_of(k) == WRITE_IMM;
}

static uint64_t word(uint64_t base, uint32_t index)
{
	return htole64(base ^ (index + 1) * 0x9e3779b97f4a7c15ULL);
}

void fill(uint8_t *at, uint64_t base, uint32_t size)
{
	uint64_t value;
	uint32_t i;

	for (i = 0; i < size / 8; i++) {
		value = word(base, i);
		memcpy(at + i * 8, &value, 8);
	}
	value = word(base, i);
	memcpy(at + i * 8, &value, size % 8);
}

void check(const char *what, uint32_t q, uint32_t k, const uint8_t *at, uint64_t base,
	   uint32_t size)
{
	uint64_t value;
	uint32_t i, part;

	for (i = 0; i * 8 < size; i++) {
		value = word(base, i);
		part = size - i * 8 < 8 ? size - i * 8 : 8;
		if (!memcmp(at + i * 8, &value, part))
			continue;
		for (part = 0; at[i * 8 + part] == ((uint8_t *)&value)[part]; part++)
			;
		die("%s: QP %u message %u: byte %u of %u is %02x, not %02x", what, q, k,
		    i * 8 + part, size, at[i * 8 + part], ((uint8_t *)&value)[part]);
	}
	moved += size;
}

void check_guard(const char *what, uint32_t q, uint32_t k, const uint8_t *at)
{
	int i;

	for (i = 0; i < GUARD; i++)
		if (at[i] != GUARD_BYTE)
			die("%s: QP %u message %u: byte %d after its end was written (%02x)",
			    what, q, k, i, at[i]);
}

/* Return: true if bytes @from to @end - 1 of a word are those of @expected. */
static bool same_bytes(const uint8_t *at, uint32_t from, uint32_t end, uint64_t expected)
{
	return !memcmp(at + from, (uint8_t *)&expected + from, end - from);
}

/*
 * Find the source of bytes @from to @part - 1 of word @i in the slot of message @k. The source is
 * message @k, no message (zeros), or an earlier message of the slot that reaches into the word.
 * @part: bytes of the word that belong to the message
 * Return: the end of the bytes that come from one message; @from if they come from none.
 */
static uint32_t one_source(uint32_t q, uint32_t k, uint32_t i, const uint8_t *at, uint32_t from,
			   uint32_t part)
{
	uint32_t reached = from, end;

	if (same_bytes(at, from, part, word(seed(!opt.host, q, k), i)) ||
	    same_bytes(at, from, part, 0))
		return part;
	while (k >= opt.window) {
		k -= opt.window;
		end = size_of(!opt.host, q, k);
		if (end <= i * 8 + reached)
			continue;
		end = end - i * 8 < part ? end - i * 8 : part;
		if (same_bytes(at, from, end, word(seed(!opt.host, q, k), i)))
			reached = end;
	}
	return reached;
}

/*
 * Check the target memory of a UC WRITE, which has no completion on this side. Any part of the
 * message may be missing, and a packet of an earlier round may arrive late, but no other byte may
 * be there. A late message may end within a word, and the rest of this word may have another
 * source. So one_source() finds the sources of a word piece by piece.
 */
void check_partial(uint32_t q, uint32_t k, const uint8_t *at, uint32_t size)
{
	uint32_t i, part, from, reached;
	bool whole = true;

	for (i = 0; i * 8 < size; i++, at += 8) {
		part = size - i * 8 < 8 ? size - i * 8 : 8;
		if (same_bytes(at, 0, part, word(seed(!opt.host, q, k), i)))
			continue;
		whole = false;
		for (from = 0; from < part; from = reached) {
			reached = one_source(q, k, i, at, from, part);
			if (reached == from)
				die("write: QP %u message %u: word %u of %u bytes is neither new nor old",
				    q, k, i, size);
		}
	}
	if (whole)
		moved += size;
	*(whole ? &delivered : &lost) += 1;
}

/* ---- memory ---- */

static void area_make(struct area *area, size_t size, int access)
{
	void *base;

	must(!posix_memalign(&base, 4096, size));
	memset(base, 0, size);
	area->base = base;
	area->mr = ibv_reg_mr(pd, base, size, access);
	if (!area->mr)
		die("cannot register %zu bytes: %s", size, strerror(errno));
}

uint64_t place(uint32_t q, uint32_t slot)
{
	return ((uint64_t)q * slots + slot) * stride;
}

static bool uses(enum op op)
{
	return opt.op == op || opt.op == MIXED;
}

void make_memory(void)
{
	size_t all = (size_t)opt.qps * slots * stride;
	int access = IBV_ACCESS_LOCAL_WRITE;

	if (active && (uses(SEND) || uses(WRITE) || uses(WRITE_IMM)))
		area_make(&from, all, 0);
	if (active && uses(READ))
		area_make(&got, all, access);
	if (active && uses(ATOMIC))
		area_make(&fetched, (size_t)opt.qps * opt.window * 8, access);
	if (passive && (uses(SEND) || uses(WRITE) || uses(WRITE_IMM))) {
		area_make(&in, all, access | IBV_ACCESS_REMOTE_WRITE);
		mine.in_addr = (uintptr_t)in.base;
		mine.in_rkey = in.mr->rkey;
	}
	if (passive && uses(READ)) {
		area_make(&out, all, IBV_ACCESS_REMOTE_READ);
		mine.out_addr = (uintptr_t)out.base;
		mine.out_rkey = out.mr->rkey;
	}
	if (passive && uses(ATOMIC)) {
		area_make(&counters, (size_t)opt.qps * 8, access | IBV_ACCESS_REMOTE_ATOMIC);
		mine.counter_addr = (uintptr_t)counters.base;
		mine.counter_rkey = counters.mr->rkey;
	}
}

/* ---- the TCP socket ---- */

void sock_open(void)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM,
				  .ai_family = opt.host ? AF_UNSPEC : AF_INET6,
				  .ai_flags = opt.host ? 0 : AI_PASSIVE };
	/* the other side may be busy with its part of a round */
	struct timeval patience = { .tv_sec = opt.patience * 5 };
	struct addrinfo *list;
	double end = now() + 10;
	int one = 1, error, listener;

	error = getaddrinfo(opt.host, opt.port, &hints, &list);
	if (error)
		die("%s: %s", opt.host, gai_strerror(error));
	if (opt.host) {
		do {
			must((sock = socket(list->ai_family, SOCK_STREAM, 0)) >= 0);
			error = connect(sock, list->ai_addr, list->ai_addrlen);
			if (error) {
				close(sock);
				usleep(100000);
			}
		} while (error && now() < end);
		if (error)
			die("cannot connect to %s: %s", opt.host, strerror(errno));
	} else {
		must((listener = socket(list->ai_family, SOCK_STREAM, 0)) >= 0);
		must(!setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)));
		must(!bind(listener, list->ai_addr, list->ai_addrlen));
		must(!listen(listener, 1));
		must((sock = accept(listener, NULL, NULL)) >= 0);
		close(listener);
	}
	freeaddrinfo(list);
	setsockopt(sock, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	must(!setsockopt(sock, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)));
}

void exchange(const void *ours, void *other, size_t size)
{
	size_t done = 0;
	ssize_t step;

	/* @size must be small enough for the socket buffers of both sides */
	if (write(sock, ours, size) != (ssize_t)size)
		die("the other side is gone");
	while (done < size) {
		step = read(sock, (char *)other + done, size - done);
		if (step < 0)
			die("no data from the other side: %s", strerror(errno));
		if (!step)
			die("the other side is gone");
		done += step;
	}
}

void meet(uint32_t where)
{
	uint32_t other;

	exchange(&where, &other, sizeof(where));
	if (other != where)
		die("at step %u, the other side at %u", where, other);
}

/* ---- options ---- */

static const char usage_text[] =
	"usage: verify_xfer [options] [HOST]\n"
	"  -d DEVICE  -g GID-INDEX  -p TCP-PORT\n"
	"  -t rc|uc|ud         transport (rc)\n"
	"  -m send|write|write_imm|read|atomic|mixed   operations (mixed: all of them in turn)\n"
	"  -s BYTES            largest message (65536); sizes vary below it\n"
	"  -f                  every message has that size, and one SGE\n"
	"  -n N                messages on each QP (100)\n"
	"  -q N                queue pairs (1)\n"
	"  -w N                outstanding messages of each QP (16)\n"
	"  -b                  both sides send\n"
	"  -e                  completion events instead of polling\n"
	"  -D                  drain: this side's send queues enter SQD and RTS in each round\n"
	"  -M BYTES            path MTU\n"
	"  -T TIMEOUT  -r RETRIES   local ACK timeout (14) and retry count (7)\n"
	"  -P SECONDS          fail after so long without progress (60)\n"
	"  -L SECONDS          continue with new rounds for so long, in spite of -n\n";

__attribute__((noreturn))
static void usage(int status)
{
	fputs(usage_text, status ? stderr : stdout);
	exit(status);
}

void parse(int argc, char **argv)
{
	int letter, i;

	while ((letter = getopt(argc, argv, "d:g:p:t:m:s:fn:q:w:beDM:T:r:P:L:h")) != -1)
		switch (letter) {
		case 'd':
			opt.device = optarg;
			break;
		case 'g':
			opt.gid = atoi(optarg);
			break;
		case 'p':
			opt.port = optarg;
			break;
		case 't':
			opt.type = !strcmp(optarg, "ud") ? IBV_QPT_UD :
				   !strcmp(optarg, "uc") ? IBV_QPT_UC : IBV_QPT_RC;
			if (opt.type == IBV_QPT_RC && strcmp(optarg, "rc"))
				usage(2);
			break;
		case 'm':
			for (i = 0; i < OPS && strcmp(optarg, op_names[i]); i++)
				;
			if (i == OPS)
				usage(2);
			opt.op = i;
			break;
		case 's':
			opt.size = strtoul(optarg, NULL, 0);
			break;
		case 'f':
			opt.fixed = true;
			break;
		case 'n':
			opt.messages = atoi(optarg);
			break;
		case 'q':
			opt.qps = atoi(optarg);
			break;
		case 'w':
			opt.window = atoi(optarg);
			break;
		case 'b':
			opt.both = true;
			break;
		case 'e':
			opt.events = true;
			break;
		case 'D':
			opt.drain = true;
			break;
		case 'M':
			opt.mtu = __builtin_ctz(atoi(optarg) | 1 << 30) - 7;
			break;
		case 'T':
			opt.timeout = atoi(optarg);
			break;
		case 'r':
			opt.retry = atoi(optarg);
			break;
		case 'P':
			opt.patience = atoi(optarg);
			break;
		case 'L':
			opt.linger = atoi(optarg);
			break;
		case 'h':
			usage(0);
		default:
			usage(2);
		}
	if (optind < argc)
		opt.host = argv[optind++];
	if (optind < argc || !opt.qps || !opt.messages || !opt.window || opt.size > 1u << 30)
		usage(2);
	if (opt.type == IBV_QPT_UD && opt.op != SEND)
		die("UD supports only -m send");
	if (opt.type == IBV_QPT_UC && opt.op >= READ)
		die("UC supports only -m send, write and write_imm");
}
