// SPDX-License-Identifier: GPL-2.0
/*
 * rcxt_forge: sends invalid rCxt packets at a high rate.
 *
 *   rcxt_forge -a ADDRESS -q QPN -k KEY -j JOB -r INDEX -K KEY -t TID -v PVO [options] [KIND...]
 *
 * The template is a valid packet of a write that a channel at ADDRESS would accept. The template
 * has the channel's QPN and key, the job, index and key of an rCxt, the PVO of the first of -l
 * bytes that may be written there, a transfer of -T bytes in packets of -s bytes, and the highest
 * tid that the rCxt has accepted. Each kind of packet, except the valid one, has a wrong value, a
 * wrong length or no valid token, or consists of random values. Without KINDs, all kinds except the
 * valid one are sent. The packets have the format of Documentation/rcxt.rst. All packets have a
 * correct ICRC, with -c also a UDP checksum, or with -b the capability bits that say that the UDP
 * checksum replaces the ICRC. So the receiver drops them only because of the forged field.
 *
 * Prints "KIND PACKETS" for each kind, then "# tid N", the highest tid used, and the rate.
 */
#define _GNU_SOURCE
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "roce_out.h"

#define RXETH		64
#define BEHIND		8
#define MAX_PAYLOAD	(MAX_PACKET - BTH - RXETH - BEHIND)
#define MAX_TRANSFER	(1u << 24)
#define MAX_PACKETS	16384u
#define MAX_SEGMENT	0xfffcu
#define STICKY		16	/* consecutive packets of one opcode, which may be a batch */
#define CAPS_NO_ICRC	0x0d	/* capability bits of a packet of nhca that has no ICRC */

enum code { PACKET, WRITE, READ_REQUEST, READ_DATA, NOTICE, PROBE, STATUS, FENCE, HALF_WRITE,
	    HALF_REQUEST, FRAMES_REQUEST, FRAMES_DATA, FRAMES_CHALLENGE, CODES };

static const uint8_t opcode_of[CODES] = {
	0xc0, 0xc1, 0xc2, 0xc3, 0xc4, 0xc5, 0xc6, 0xc7, 0xcc, 0xcd, 0xce, 0xcf, 0xde,
};

#define READ_CHALLENGE	0xd2
#define MAX_FRAME	1984
#define C(code)		(1u << (code))
#define ANY		(C(CODES) - 1)
#define OF_RCXT		(ANY & ~C(PACKET))
#define TO_FRAMES	(C(HALF_WRITE) | C(FRAMES_DATA))
#define OF_FRAMES	(C(FRAMES_REQUEST) | C(FRAMES_CHALLENGE))
#define OF_HALF		(TO_FRAMES | OF_FRAMES | C(HALF_REQUEST))
#define OF_READS	(C(READ_REQUEST) | C(FRAMES_REQUEST))

enum kind { GOOD, CHANNEL_KEY, JOB, RCXT_INDEX, RCXT_KEY, TID, UNASKED, PVO_KEY, PVO_TABLE,
	    PVO_RANGE, UNVOUCHED, REPEATED, NUMBER, SIZES, LENGTHS, RANDOM_RXETH, RANDOM_BYTES,
	    KINDS };

/* Name of each kind, and the opcodes that it applies to */
static const struct {
	const char *name;
	unsigned int codes;
} kinds[KINDS] = {
	[GOOD] = { "good", C(WRITE) },
	[CHANNEL_KEY] = { "channel-key", ANY },
	[JOB] = { "job", ANY },
	[RCXT_INDEX] = { "rcxt-index", OF_RCXT },
	[RCXT_KEY] = { "rcxt-key", OF_RCXT },
	[TID] = { "tid", C(WRITE) | C(READ_REQUEST) | C(READ_DATA) | C(FENCE) | OF_HALF },
	[UNASKED] = { "unasked", C(READ_DATA) | C(NOTICE) | C(FRAMES_DATA) | C(FRAMES_CHALLENGE) },
	[PVO_KEY] = { "pvo-key", C(WRITE) | OF_READS },
	[PVO_TABLE] = { "pvo-table", C(WRITE) | OF_READS },
	[PVO_RANGE] = { "pvo-range", C(WRITE) | OF_READS },
	[UNVOUCHED] = { "unvouched", OF_READS },
	[REPEATED] = { "repeated", C(WRITE) | C(READ_REQUEST) | C(READ_DATA) | C(NOTICE) | OF_HALF },
	[NUMBER] = { "number", OF_FRAMES },
	[SIZES] = { "sizes", OF_FRAMES | TO_FRAMES },
	[LENGTHS] = { "lengths", C(WRITE) | OF_HALF },
	[RANDOM_RXETH] = { "random-rxeth", ANY },
	[RANDOM_BYTES] = { "random-bytes", ANY },
};

/* Fields of a packet; fill() copies the template and replaces some of them */
struct packet {
	uint32_t qpn, job, rcxt, rcxt_key, tid, total, segment;
	uint64_t key, pvo;
	enum code code;
	uint32_t offset, length, payload;
	uint32_t notify, src_channel, src_key, src_rcxt, src_rcxt_key;
	uint64_t cookie, behind, token;
	uint32_t part, number;
	unsigned int pad;
};

static struct packet template = { .total = 4096, .segment = 64, .notify = 2 };
static uint64_t region;			/* bytes at template.pvo that may be written */
static uint32_t highest_tid;
static uint32_t port, opcodes = ANY;
static uint64_t state = 1, count = 1000;

/* ---- random numbers ---- */

static uint64_t rnd(void)
{
	/* splitmix64 */
	uint64_t z = state += 0x9e3779b97f4a7c15ULL;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
	return z ^ z >> 31;
}

static uint32_t below(uint32_t limit)
{
	return (rnd() >> 32) * limit >> 32;
}

static void rnd_fill(uint8_t *p, size_t size)
{
	uint64_t word;

	for (; size >= sizeof(word); p += sizeof(word), size -= sizeof(word)) {
		word = rnd();
		memcpy(p, &word, sizeof(word));
	}
	word = rnd();
	memcpy(p, &word, size);
}

/*
 * Return: a number of @bits bits that is not @right: random; @right with one bit inverted; at most
 * 32 away from @right; or @right with its upper half changed by at most 8.
 */
static uint32_t wrong(uint32_t right, unsigned int bits)
{
	uint32_t mask = bits < 32 ? (1u << bits) - 1 : ~0u, value;

	do {
		switch (below(4)) {
		case 0:
			value = rnd();
			break;
		case 1:
			value = right ^ 1u << below(bits);
			break;
		case 2:
			value = right + below(65) - 32;
			break;
		default:
			value = right + ((below(17) - 8) << bits / 2);
		}
		value &= mask;
	} while (value == right);
	return value;
}

/* ---- packets ---- */

/* Fill in a valid packet of the template's transfer, or of its channel and rCxt. */
static void fill(struct packet *x, enum code code)
{
	uint32_t packets = template.total ? (template.total - 1) / template.segment + 1 : 1;

	*x = template;
	x->code = code;
	x->src_channel = below(1 << 24);
	x->src_key = rnd();
	x->src_rcxt = below(100000);
	x->src_rcxt_key = rnd();
	x->cookie = rnd();
	switch (code) {
	case PACKET:
		x->length = 4 * below(64);
		x->total = x->length;
		x->segment = 0;
		/* the upper half of the key is in the place of the rCxt's index */
		x->rcxt = x->key >> 32;
		x->rcxt_key = 0;
		x->tid = 0;
		x->pvo = 0;
		break;
	case WRITE:
	case READ_DATA:
		x->offset = below(packets) * x->segment;
		x->length = x->total - x->offset < x->segment ? x->total - x->offset : x->segment;
		x->pvo += x->offset;
		break;
	case HALF_WRITE:
	case FRAMES_DATA:
		x->offset = below(packets) * x->segment;
		x->length = x->total - x->offset < x->segment ? x->total - x->offset : x->segment;
		x->pvo = x->offset;
		break;
	case FRAMES_REQUEST:
	case FRAMES_CHALLENGE:
		x->part = x->total;
		break;
	case READ_REQUEST:
	case HALF_REQUEST:
		x->behind = rnd();
		break;
	case PROBE:
		x->offset = below(packets) * x->segment;
		break;
	case FENCE:
		break;
	default:
		x->behind = packets;
	}
	x->payload = x->length;
	x->pad = -x->payload & 3;
}

static uint64_t pvo_with(uint64_t pvo, unsigned int shift, unsigned int bits)
{
	uint64_t mask = ((1ULL << bits) - 1) << shift;

	return (pvo & ~mask) | (uint64_t)wrong((pvo & mask) >> shift, bits) << shift;
}

/* Return: the PVO of @length bytes of which at least one is outside of the region. */
static uint64_t beyond(uint32_t length)
{
	const uint64_t mask = (1ULL << 42) - 1;
	uint64_t end = template.pvo + region, offset;

	switch (below(3)) {
	case 0:
		return end - length + 1 + below(length);
	case 1:
		offset = template.pvo - 1 - below(length);
		break;
	default:
		offset = end + (rnd() & (mask >> below(42)));
	}
	/* keep the key and the table */
	offset &= mask;
	if (offset - (template.pvo & mask) < region)
		offset = end & mask;
	return (template.pvo & ~mask) | offset;
}

/*
 * Break one rule of lengths: change length, total, segment, offset or payload. For packets that go
 * into frames, this may also be the rule that the PVO is the offset.
 */
static void misfit(struct packet *x)
{
	uint32_t packets = (x->total - 1) / x->segment + 1;
	bool frame = C(x->code) & TO_FRAMES;

	switch (below(frame ? 10 : 8)) {
	case 0:
		x->length = wrong(x->length, 16);
		break;
	case 1:
		x->total = MAX_TRANSFER + 1 + below(~0u - MAX_TRANSFER);
		x->segment = MAX_SEGMENT;
		x->offset = 0;
		break;
	case 2:
		x->segment = below(2) ? below(64) : x->segment + 1 + below(3);
		break;
	case 3:
		x->offset += 1 + below(x->segment - 1);
		break;
	case 4:
		x->offset = (packets + below(1 << 16)) * x->segment;
		x->pvo = frame ? x->offset : template.pvo + x->offset;
		break;
	case 5:
		x->payload = below(MAX_PAYLOAD / 4) * 4;
		x->pad = 0;
		if (x->payload == x->length)
			x->payload += 4;
		break;
	case 6:
		/* length and payload agree with each other, but not with total and segment */
		x->length += below(2) && x->length ? -1 : 4;
		x->payload = x->length;
		x->pad = -x->payload & 3;
		break;
	case 7:
		x->segment = 64;
		x->total = 64 * MAX_PACKETS + 1 + below(MAX_TRANSFER - 64 * MAX_PACKETS);
		x->offset = below(MAX_PACKETS) * 64;
		break;
	case 8:
		/* the packet fits into a frame, but a packet of @segment bytes does not */
		x->segment = MAX_FRAME + 4 + 4 * below(1000);
		x->total = x->length;
		x->offset = 0;
		x->pvo = 0;
		break;
	default:
		x->pvo = below(2) ? template.pvo + x->offset : wrong(x->offset, 24);
	}
}

/* Break one rule of lengths in a request or challenge of a half transfer. */
static void misfit_request(struct packet *x)
{
	switch (below(C(x->code) & OF_FRAMES ? 9 : 5)) {
	case 0:
		x->total = MAX_TRANSFER + 1 + below(~0u - MAX_TRANSFER);
		x->segment = MAX_FRAME;
		x->part = x->total;
		break;
	case 1:
		x->segment = below(2) ? below(64) : x->segment + 1 + below(3);
		break;
	case 2:
		x->offset = below(2) ? 1 + below(x->segment - 1) :
				       x->total + below(1 << 16) * x->segment;
		if (C(x->code) & OF_FRAMES && x->offset < x->total)
			x->part = x->total - x->offset;
		break;
	case 3:
		x->length = 1 + below(0xffff);
		break;
	case 4:
		x->payload = 4 + below(50) * 4;
		x->length = below(2) * x->payload;
		break;
	case 5:
		x->part = 0;
		break;
	case 6:
		x->part = x->total + 1 + below(~0u - x->total);
		break;
	case 7:
		x->part = x->segment * below(x->total / x->segment) + 1 + below(x->segment - 1);
		if (x->part >= x->total)
			x->part = 1;
		break;
	default:
		x->segment = MAX_FRAME + 4 + 4 * below(1000);
	}
}

/* Change total, segment, or the PVO of a request to another valid value. */
static void missize(struct packet *x)
{
	uint32_t total = x->total, segment = x->segment;
	int what = below(x->code == FRAMES_REQUEST ? 3 : 2);

	if (what == 2) {
		x->pvo += 1 + below(64);
		return;
	}
	do
		if (what)
			x->total = 1 + below(2 * total);
		else
			x->segment = 64 + 4 * below(200);
	while (x->total == total && x->segment == segment);
	if (x->offset >= x->total || x->offset % x->segment)
		x->offset = 0;
	x->part = x->total;
	if (C(x->code) & TO_FRAMES) {
		x->length = x->total - x->offset < x->segment ? x->total - x->offset : x->segment;
		x->pvo = x->offset;
		x->payload = x->length;
		x->pad = -x->payload & 3;
	}
}

static void forge(struct packet *x, enum kind kind, enum code code)
{
	fill(x, code);
	switch (kind) {
	case CHANNEL_KEY:
		if (code == PACKET && below(2))
			x->rcxt = wrong(x->rcxt, 32);
		else
			x->key = wrong(x->key, 32);
		break;
	case JOB:
		x->job = wrong(x->job, 32);
		break;
	case RCXT_INDEX:
		x->rcxt = wrong(x->rcxt, 32);
		break;
	case RCXT_KEY:
		x->rcxt_key = wrong(x->rcxt_key, 32);
		break;
	case TID:
		/* a tid lower than the highest one; 0 is never valid */
		x->tid = below(x->tid);
		break;
	case UNASKED:
		/* a higher tid: the receiver has requested no transfer that could have it */
		x->tid += 1 + below(1000);
		break;
	case PVO_KEY:
		x->pvo = pvo_with(x->pvo, 47, 17);
		break;
	case PVO_TABLE:
		x->pvo = pvo_with(x->pvo, 42, 5);
		break;
	case PVO_RANGE:
		x->pvo = beyond(x->length ?: x->total);
		break;
	case NUMBER:
		/*
		 * request: a number that the rCxt has accepted before; challenge: not the number of
		 * the rCxt's own request
		 */
		x->number = code == FRAMES_REQUEST ? below(template.number + 1) :
						     wrong(template.number, 32);
		break;
	case SIZES:
		if (code == FRAMES_REQUEST)
			x->number += 1 + below(1000);
		missize(x);
		break;
	case LENGTHS:
		if (code == WRITE || C(code) & TO_FRAMES)
			misfit(x);
		else
			misfit_request(x);
		break;
	case RANDOM_RXETH:
		x->key = rnd();
		x->job = rnd();
		x->rcxt = below(2) ? below(200000) : rnd();
		x->rcxt_key = rnd();
		x->tid = rnd();
		if (!(C(code) & TO_FRAMES))
			x->pvo = rnd();
		break;
	default:
		break;
	}
	/* with a tid that is not above all accepted ones, the request would get no challenge */
	if (kind == UNVOUCHED) {
		x->token = below(2) ? rnd() : 0;
		x->tid = ++highest_tid;
	}
	/*
	 * use a new tid each time, because the target drops further packets of a refused or
	 * complete transfer
	 */
	if (kind == GOOD || kind == PVO_KEY || kind == PVO_TABLE || kind == PVO_RANGE)
		x->tid = ++highest_tid;
}

static uint8_t *put32(uint8_t *p, uint32_t value)
{
	value = htobe32(value);
	memcpy(p, &value, sizeof(value));
	return p + sizeof(value);
}

static uint8_t *put64(uint8_t *p, uint64_t value)
{
	return put32(put32(p, value >> 32), value);
}

static uint8_t *put_bth(uint8_t *p, uint32_t code, const struct packet *x)
{
	static uint32_t psn;

	p = put32(p, code << 24 | x->pad << 20 | 0xffff);
	p = put32(p, (uint32_t)(no_icrc ? CAPS_NO_ICRC : 0) << 24 | x->qpn);
	return put32(p, psn++ & 0xffffff);
}

/* Return: bytes from BTH to pad. */
static size_t encode(const struct packet *x, uint8_t *begin)
{
	uint8_t *p = put_bth(begin, opcode_of[x->code], x);

	p = put32(p, x->key);
	p = put32(p, x->job);
	p = put32(p, x->rcxt);
	p = put32(p, x->rcxt_key);
	p = put32(p, x->tid);
	p = put32(p, x->total);
	p = put32(p, x->offset);
	p = put32(p, x->length << 16 | x->segment);
	p = put64(p, x->pvo);
	p = put32(p, x->notify << 24 | x->src_channel);
	p = put32(p, x->src_key);
	p = put32(p, x->src_rcxt);
	p = put32(p, x->src_rcxt_key);
	p = put64(p, x->cookie);
	if (x->code == READ_REQUEST || x->code == HALF_REQUEST || x->code == STATUS)
		p = put64(p, x->behind);
	if (C(x->code) & OF_FRAMES)
		p = put32(put32(p, x->part), x->number);
	if (x->code == READ_REQUEST || x->code == HALF_REQUEST || x->code == PROBE ||
	    x->code == FENCE || C(x->code) & OF_FRAMES)
		p = put64(p, x->token);
	rnd_fill(p, x->payload);
	memset(p + x->payload, 0, x->pad);
	return p + x->payload + x->pad - begin;
}

static size_t random_bytes(uint8_t *begin)
{
	struct packet x = { .qpn = template.qpn, .pad = below(4) };
	size_t size = 4 * below(64) + (below(8) ? 0 : below(4));

	rnd_fill(put_bth(begin, opcode_of[0] + below(32), &x), size);
	return BTH + size;
}

/* ---- sending ---- */

static void send_kind(enum kind kind)
{
	unsigned int codes = kinds[kind].codes & opcodes;
	enum code code = WRITE;
	struct packet x;
	uint8_t *place;
	uint64_t i;

	if (!codes)
		errx(2, "%s: none of these opcodes has this kind", kinds[kind].name);
	for (i = 0; i < count; i++) {
		if (i % STICKY == 0)
			do
				code = below(CODES);
			while (!(codes & C(code)));
		place = room();
		if (kind == RANDOM_BYTES) {
			post(place, random_bytes(place));
			continue;
		}
		forge(&x, kind, code);
		post(place, encode(&x, place));
	}
	flush();
	printf("%s %" PRIu64 "\n", kinds[kind].name, count);
}

/* ---- a token for this host's address ---- */

static uint64_t get64(const uint8_t *p)
{
	uint64_t value;

	memcpy(&value, p, sizeof(value));
	return be64toh(value);
}

/* Send a valid read request, and print the token from the challenge. */
static void token_get(void)
{
	struct timeval wait = { .tv_sec = 5 };
	uint8_t packet[256], *bth;
	struct packet x;
	int raw = socket(peer.ss_family, SOCK_RAW, IPPROTO_UDP);
	ssize_t size;

	if (raw < 0 || setsockopt(raw, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait)))
		err(1, "raw socket");
	fill(&x, READ_REQUEST);
	x.tid = highest_tid + 1;
	bth = room();
	post(bth, encode(&x, bth));
	flush();
	for (;;) {
		size = recv(raw, packet, sizeof(packet), 0);
		if (size < 0)
			err(1, "no challenge");
		bth = packet + (peer.ss_family == AF_INET ? 4 * (packet[0] & 15) : 0) + 8;
		if (size >= bth - packet + BTH + RXETH + 16 && *bth == READ_CHALLENGE &&
		    get64(bth + BTH + 56) == x.cookie)
			break;
	}
	if (size != bth - packet + BTH + RXETH + 16 + ICRC)
		errx(1, "a challenge of %zd bytes", size);
	printf("# token %" PRIu64 "\n", get64(bth + BTH + RXETH + 8));
	close(raw);
}

/* ---- the command line ---- */

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static void usage(void)
{
	unsigned int kind;

	fputs("usage: rcxt_forge -a ADDRESS -q QPN [options] [KIND...]\n"
	      "  -k KEY -j JOB       of the channel\n"
	      "  -r INDEX -K KEY     of its rCxt\n"
	      "  -t TID              the highest tid that the rCxt has seen\n"
	      "  -v PVO -l BYTES     the memory that may be written\n"
	      "  -T BYTES -s BYTES   of the transfer, of each packet (4096, 64)\n"
	      "  -n PACKETS          of each kind (1000)\n"
	      "  -b                  no ICRC: only a UDP checksum\n"
	      "  -c                  an ICRC, and a UDP checksum\n"
	      "  -g PACKETS          packets of one UDP GSO batch; with -b\n"
	      "  -x TOKEN            for the address of this host\n"
	      "  -X                  get a token, and print \"# token TOKEN\"\n"
	      "  -o MASK             of opcodes, bits 0 to 12: c0 to c7, cc to cf, de (all)\n"
	      "  -N NUMBER           of the latest request of a half-receive read (0)\n"
	      "  -p PORT -R SEED     source port (any), of the random numbers (1)\n"
	      "kinds:", stderr);
	for (kind = 0; kind < KINDS; kind++)
		fprintf(stderr, " %s", kinds[kind].name);
	fputs("\n", stderr);
	exit(2);
}

static enum kind kind_named(const char *name)
{
	unsigned int kind;

	for (kind = 0; kind < KINDS; kind++)
		if (!strcmp(kinds[kind].name, name))
			return kind;
	usage();
	return KINDS;
}

/* Set the field that belongs to the option @letter to the number @text. */
static bool option(int letter, const char *text)
{
	static const struct {
		char letter;
		uint32_t *field;
	} fields[] = {
		{ 'q', &template.qpn }, { 'j', &template.job },
		{ 'r', &template.rcxt }, { 'K', &template.rcxt_key }, { 't', &template.tid },
		{ 'T', &template.total }, { 's', &template.segment }, { 'g', &joined },
		{ 'p', &port }, { 'o', &opcodes }, { 'N', &template.number },
	};
	static const struct {
		char letter;
		uint64_t *field;
	} long_fields[] = {
		{ 'k', &template.key }, { 'x', &template.token }, { 'v', &template.pvo },
		{ 'l', &region }, { 'n', &count }, { 'R', &state },
	};
	uint64_t value = text ? strtoull(text, NULL, 0) : 0;
	size_t i;

	for (i = 0; i < sizeof(fields) / sizeof(*fields); i++)
		if (fields[i].letter == letter)
			*fields[i].field = value;
	for (i = 0; i < sizeof(long_fields) / sizeof(*long_fields); i++)
		if (long_fields[i].letter == letter)
			*long_fields[i].field = value;
	/* getopt() has printed an error for an unknown letter */
	return letter != '?';
}

int main(int argc, char **argv)
{
	const char *address = NULL;
	uint64_t all = 0;
	bool get = false;
	int letter, i;
	double begun, seconds;

	while ((letter = getopt(argc, argv, "a:q:k:j:r:K:t:v:l:T:s:n:bcg:p:R:o:x:XN:")) != -1)
		if (letter == 'a')
			address = optarg;
		else if (letter == 'b')
			no_icrc = true;
		else if (letter == 'c')
			summed = true;
		else if (letter == 'X')
			get = true;
		else if (!option(letter, optarg))
			usage();
	if (!address || template.qpn - 2 > 0xfffffd || !template.total ||
	    template.total > MAX_TRANSFER || template.segment < 64 || template.segment % 4 ||
	    template.segment > MAX_PAYLOAD - 4 || template.total > template.segment * MAX_PACKETS ||
	    !joined || joined > MAX_JOINED || (joined > 1 && !no_icrc))
		usage();
	if (!region)
		region = template.total;
	highest_tid = template.tid;
	setvbuf(stdout, NULL, _IOLBF, 0);
	mark = rnd();
	out_open(address, port);
	if (get) {
		token_get();
		return 0;
	}
	begun = now();
	for (i = optind; i < argc; i++, all += count)
		send_kind(kind_named(argv[i]));
	if (optind == argc)
		for (i = GOOD + 1; i < KINDS; i++, all += count)
			send_kind(i);
	seconds = now() - begun;
	printf("# tid %u\n# %" PRIu64 " packets in %.1f s, %.0f a second\n", highest_tid, all,
	       seconds, all / seconds);
	return 0;
}
