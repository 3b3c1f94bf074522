// SPDX-License-Identifier: GPL-2.0
/*
 * Accumulates of several senders into the memory of one target, on a network that loses, repeats
 * and reorders packets.
 *
 *	accumulate -d DEVICE -g GID-INDEX -p TCP-PORT -s SENDERS [-b BYTES] [-f FORGED] [-k]
 *		[-t ROUNDS [-r PERCENT]]
 *	accumulate -d DEVICE -g GID-INDEX -p TCP-PORT HOST
 *
 * The first form is the target, which tells the senders what to do: -b: length of the vector of
 * ones; -f: number of forged packets of each kind; -k: kill the last sender in the middle; -t: only
 * compare the speed with that of writes and a program that adds, by the median of ROUNDS; -r: time
 * that write, notice and add must take at least, in percent of the time of an accumulate (120).
 * The second form is a sender.
 */
#include <getopt.h>
#include <math.h>
#include <sched.h>
#include <signal.h>

#define RCXTS	4
#define MEMORY	(16u << 20)
#define SEND_WR	64
#include "channels.h"
#include "forged.h"

#define SENDERS		8		/* at most */
#define LANES		3		/* transfers at a time; rCxt LANES is for forged packets */
#define CHUNK		(4u << 20)	/* bytes of a transfer, at most */
#define SMALL		(192u << 10)	/* bytes of the vectors that models check */
#define ASK_MS		30		/* see patience() */
#define GIVE_UP_S	300
#define ORDERED		12		/* accumulates that must be applied in order */
#define SPEED		(64u << 20)
#define ROUNDS		7		/* at most */

enum what { ADD = 1, ADD_ORDERED, ADD_RANGES, FORGE, DIE, WRITE_IT, QUIT };

/*
 * Message with which the target tells a sender what to do.  The sender answers with a byte when it
 * is done.  WRITE_IT: op is the type of the elements.
 */
struct order {
	uint32_t what, op, type, ones, count, chunk;
	uint64_t at, bytes, seed;
};

static const uint32_t sizes[] = { 0, 4, 8, 4, 8, 4, 8, 2 };
static const char * const ops[] = { "", "sum", "min", "max", "prod", "or", "and", "xor" };
static const char * const types[] = { "", "i32", "i64", "u32", "u64", "f32", "f64", "bf16" };

static bool possible(uint32_t op, uint32_t type)
{
	return op <= NHCADV_ACC_PROD || type < NHCADV_ACC_F32;
}

/* ---- elements ---- */

static float of_bf16(uint16_t x)
{
	uint32_t bits = (uint32_t)x << 16;
	float f;

	memcpy(&f, &bits, 4);
	return f;
}

static uint16_t to_bf16(float f)
{
	uint32_t bits;

	memcpy(&bits, &f, 4);
	if (isnan(f))
		return bits >> 16 | 0x40;
	return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}

/* Element @k of the vector of @seed.  Floating-point numbers are moderate, and never NaN. */
static void element(void *p, uint32_t type, uint64_t seed, uint64_t k)
{
	uint64_t r = mix(seed * 0x9e3779b97f4a7c15ULL + k);
	double d = ldexp((double)(int64_t)r, (int)(r >> 7 & 15) - 70);
	float f = d;
	uint16_t b;

	switch (type) {
	case NHCADV_ACC_F32:
		memcpy(p, &f, 4);
		break;
	case NHCADV_ACC_F64:
		memcpy(p, &d, 8);
		break;
	case NHCADV_ACC_BF16:
		b = to_bf16(f);
		memcpy(p, &b, 2);
		break;
	default:
		memcpy(p, &r, sizes[type]);
	}
}

static void one(void *p, uint32_t type)
{
	double d = 1;
	float f = 1;
	uint16_t b = to_bf16(1);
	uint64_t i = 1;

	memcpy(p, type == NHCADV_ACC_F32 ? (void *)&f : type == NHCADV_ACC_F64 ? (void *)&d :
	       type == NHCADV_ACC_BF16 ? (void *)&b : (void *)&i, sizes[type]);
}

static void fill(uint8_t *p, uint32_t type, uint64_t bytes, uint64_t seed, bool ones)
{
	uint64_t k;

	for (k = 0; k < bytes / sizes[type]; k++)
		if (ones)
			one(p + k * sizes[type], type);
		else
			element(p + k * sizes[type], type, seed, k);
}

/* Combine an element as the target must. */
static void combine(uint8_t *to, const uint8_t *from, uint32_t op, uint32_t type)
{
	uint64_t a = 0, b = 0, x;
	uint16_t half[2];
	double d[2], e;
	float f[2], g;
	bool less;

	memcpy(&a, to, sizes[type]);
	memcpy(&b, from, sizes[type]);
	if (type < NHCADV_ACC_F32) {
		less = type == NHCADV_ACC_I32 ? (int32_t)a < (int32_t)b :
		       type == NHCADV_ACC_I64 ? (int64_t)a < (int64_t)b : a < b;
		x = op == NHCADV_ACC_SUM ? a + b : op == NHCADV_ACC_PROD ? a * b :
		    op == NHCADV_ACC_MIN ? (less ? a : b) : op == NHCADV_ACC_MAX ? (less ? b : a) :
		    op == NHCADV_ACC_OR ? a | b : op == NHCADV_ACC_AND ? a & b : a ^ b;
		memcpy(to, &x, sizes[type]);
	} else if (type == NHCADV_ACC_F64) {
		memcpy(d, &a, 8);
		memcpy(d + 1, &b, 8);
		e = op == NHCADV_ACC_SUM ? d[0] + d[1] : op == NHCADV_ACC_PROD ? d[0] * d[1] :
		    (d[0] < d[1]) == (op == NHCADV_ACC_MIN) ? d[0] : d[1];
		memcpy(to, &e, 8);
	} else {
		memcpy(f, &a, 4);
		memcpy(f + 1, &b, 4);
		memcpy(half, &a, 2);
		memcpy(half + 1, &b, 2);
		if (type == NHCADV_ACC_BF16) {
			f[0] = of_bf16(half[0]);
			f[1] = of_bf16(half[1]);
		}
		g = op == NHCADV_ACC_SUM ? f[0] + f[1] : op == NHCADV_ACC_PROD ? f[0] * f[1] :
		    (f[0] < f[1]) == (op == NHCADV_ACC_MIN) ? f[0] : f[1];
		half[0] = to_bf16(g);
		memcpy(to, type == NHCADV_ACC_F32 ? (void *)&g : (void *)half, sizes[type]);
	}
}

/* ---- a sender ---- */

struct lane {
	struct nhcadv_transfer t;
	uint32_t op, type, flags;
	bool busy;
	uint64_t ask;
};

static struct channel c;
static struct lane lanes[LANES];
static uint64_t probes, repeats;

static uint32_t segment_of(uint32_t type)
{
	uint32_t segment = c.here.segment < c.there.segment ? c.here.segment : c.there.segment;

	return type ? (segment - NHCADV_ACCUMULATE_HEADER) / 8 * 8 : segment;
}

/* Retransmit a part.  If the send FIFO is full, the status of the next probe repeats this. */
static void again(const struct lane *l, uint32_t offset, uint32_t length)
{
	int error;

	start(&c, l->t.tid, 0);
	if (l->type)
		nhcadv_wr_accumulate_again(c.dv, &c.peer, &l->t, l->op, l->type, offset, length);
	else
		nhcadv_wr_retransmit(c.dv, &c.peer, &l->t, offset, length);
	error = ibv_wr_complete(c.qpx);
	must(!error || error == ENOMEM);
	repeats++;
}

/* Return: nanoseconds without a completion until the next probe of a transfer. */
static uint64_t patience(uint32_t bytes)
{
	return ASK_MS * 1000000ULL + bytes * 30ULL;
}

static void begin(struct lane *l, uint32_t i, const struct order *o, uint64_t from, uint64_t at,
		  uint32_t bytes)
{
	int error;

	l->op = o->op;
	l->type = o->type;
	l->t = transfer(&c, i, 0, bytes, NHCADV_NOTIFY_INITIATOR | NHCADV_NOTIFY_TARGET);
	l->t.local_pvo = c.here.pvo + from;
	l->t.remote_pvo = c.there.pvo + at;
	l->t.cookie = l->t.tid;
	l->t.segment = segment_of(o->type);
	/* the send FIFO may still be full of repetitions */
	do {
		start(&c, l->t.tid, 0);
		if (l->type)
			nhcadv_wr_accumulate(c.dv, &c.peer, &l->t, l->op, l->type, l->flags);
		else
			nhcadv_wr_write(c.dv, &c.peer, &l->t);
		error = ibv_wr_complete(c.qpx);
	} while (error == ENOMEM);
	verb(error);
	l->busy = true;
	l->ask = now_ns() + patience(bytes);
}

static struct lane *lane_of(uint32_t tid)
{
	uint32_t i;

	for (i = 0; i < LANES; i++)
		if (lanes[i].busy && lanes[i].t.tid == tid)
			return &lanes[i];
	return NULL;
}

static void repeat_missing(const struct lane *l, const struct nhcadv_frame *f)
{
	uint32_t n = l->t.total ? (l->t.total - 1) / l->t.segment + 1 : 1, first, end;

	for (first = 0; first < n; first = end) {
		end = first + 1;
		if (nhcadv_frame_has(f, first))
			continue;
		while (end < n && !nhcadv_frame_has(f, end))
			end++;
		again(l, first * l->t.segment,
		      (end == n ? l->t.total : end * l->t.segment) - first * l->t.segment);
	}
}

static void look(void)
{
	const struct nhcadv_frame *f;
	struct lane *l;
	struct done d;
	uint32_t i;

	while (poll_done(c.scq, &d)) {
		if (d.status || d.kind != NHCADV_WC_WRITE)
			die("tid %u: completion %#x: %s", d.tid, d.kind,
			    ibv_wc_status_str(d.status));
		l = lane_of(d.tid);
		/* NULL: a status has said before that the transfer is complete */
		if (l)
			l->busy = false;
	}
	while (poll_done(c.rcq, &d)) {
		must(d.kind == NHCADV_WC_FRAME && (f = nhcadv_frame(c.qp, d.frame)));
		must(f->kind == NHCADV_FRAME_STATUS);
		l = lane_of(f->tid);
		if (l && f->status == NHCADV_TRANSFER_COMPLETE)
			l->busy = false;
		else if (l && f->status == NHCADV_TRANSFER_NONE)
			again(l, 0, l->t.total);
		else if (l && f->status == NHCADV_TRANSFER_PARTIAL)
			repeat_missing(l, f);
		else if (l)
			die("tid %u: status %u", f->tid, f->status);
		verb(nhcadv_release_frame(c.qp, d.frame));
	}
	for (i = 0; i < LANES; i++) {
		if (!lanes[i].busy || now_ns() < lanes[i].ask)
			continue;
		start(&c, 0, 0);
		nhcadv_wr_probe(c.dv, &c.peer, &lanes[i].t, 0);
		/* ENOMEM: the send FIFO is full */
		if (!ibv_wr_complete(c.qpx))
			probes++;
		lanes[i].ask = now_ns() + patience(lanes[i].t.total);
	}
}

static bool any_busy(void)
{
	uint32_t i;

	for (i = 0; i < LANES; i++)
		if (lanes[i].busy)
			return true;
	return false;
}

static void settle(void)
{
	uint64_t end = now_ns() + GIVE_UP_S * 1000000000ULL;

	while (any_busy()) {
		look();
		sched_yield();
		if (now_ns() > end)
			die("an accumulate does not complete");
	}
}

/* Return: a lane that is not busy. */
static uint32_t idle_lane(void)
{
	uint64_t end = now_ns() + GIVE_UP_S * 1000000000ULL;
	uint32_t i;

	for (;;) {
		for (i = 0; i < LANES; i++)
			if (!lanes[i].busy)
				return i;
		look();
		sched_yield();
		if (now_ns() > end)
			die("no accumulate completes");
	}
}

/* Accumulate a vector, whose source is repeated if it is longer than the memory. */
static void add(const struct order *o)
{
	uint32_t size = o->type ? sizes[o->type] : 8, chunk = o->chunk, bytes, i;
	uint64_t done;

	chunk = chunk / size * size;
	for (done = 0; done < o->bytes; done += bytes) {
		bytes = o->bytes - done < chunk ? o->bytes - done : chunk;
		i = idle_lane();
		begin(&lanes[i], i, o, done % MEMORY + bytes > MEMORY ? 0 : done % MEMORY,
		      o->at + done, bytes);
	}
	settle();
}

/* Post accumulates of the same range, which must be applied in the order of posting. */
static void add_ordered(const struct order *o)
{
	uint32_t k, i;

	for (i = 0; i < LANES; i++)
		lanes[i].flags = NHCADV_ACC_ORDERED;
	for (k = 0; k < o->count; k++) {
		fill(c.buf + k * o->bytes, o->type, o->bytes, o->seed + k, false);
		i = idle_lane();
		begin(&lanes[i], i, o, k * o->bytes, o->at, o->bytes);
	}
	settle();
	for (i = 0; i < LANES; i++)
		lanes[i].flags = 0;
}

/* Range @k of a sender: bytes from *@at on, of the vector of SMALL bytes */
static uint32_t range(uint64_t seed, uint32_t k, uint32_t size, uint64_t *at)
{
	uint64_t r = mix(seed + k);
	uint32_t bytes;

	*at = r % SMALL / size * size;
	bytes = (r >> 24) % (SMALL - *at) / size * size;
	return r >> 60 ? bytes % 20000 / size * size : bytes;
}

static void add_ranges(const struct order *o)
{
	uint32_t k, i, bytes;
	uint64_t at;

	for (k = 0; k < o->count; k++) {
		bytes = range(o->seed, k, sizes[o->type], &at);
		i = idle_lane();
		begin(&lanes[i], i, o, k % 8 * SMALL, o->at + at, bytes);
	}
	settle();
}

/* ---- forged packets ---- */

/* Write a packet that adds 999 to the word at @pvo.  Return: its bytes. */
static uint32_t forge(uint8_t *p, uint32_t tid, uint64_t pvo)
{
	const struct forged f = {
		.opcode = 0xcb, .to = &c.there, .from = &c.here, .to_rcxt = c.there.rcxts[LANES],
		.from_rcxt = c.here.rcxts[LANES], .pvo = pvo, .tid = tid, .total = 8, .length = 8,
		.segment = 64, .more = NHCADV_ACCUMULATE_HEADER + 8,
	};
	uint8_t *more = p + FORGED_BTH + FORGED_RXETH;
	uint64_t value = htole64(999);
	uint32_t size = forged_packet(p, &f);

	more[0] = NHCADV_ACC_SUM;
	more[1] = NHCADV_ACC_U64;
	memcpy(more + NHCADV_ACCUMULATE_HEADER, &value, 8);
	return size;
}

/* Send @o->count packets of each kind.  One packet is valid, and adds 999 once. */
static void forge_all(const struct order *o)
{
	uint64_t pvo = c.there.pvo + o->at;
	uint32_t i, k, size, tid = 1000;
	uint8_t p[FORGED_MAX], *x = p + FORGED_BTH;
	int fd = forged_socket(&theirs.gid);

	/* the valid packet, and repetitions of it */
	for (i = 0; i < o->count; i++) {
		size = forge(p, tid, pvo);
		forged_send(fd, p, size);
		if (i % 64 == 63)
			usleep(200);
	}
	for (i = 0; i < o->count; i++)
		for (k = 0; k < 10; k++) {
			/* k = 0: a stale tid; the others would be valid without one error */
			size = forge(p, k ? ++tid : 999, pvo);
			switch (k) {
			case 1 ... 4: /* key, job, rCxt */
				x[(k - 1) * 4 + rnd() % 4] ^= 1 << rnd() % 8;
				break;
			case 5: /* the key of the PVO: 17 bits */
				x[32 + rnd() % 2] ^= 1 << rnd() % 8;
				break;
			case 6: /* an operation that does not exist */
				x[64] = i % 2 ? 0 : 8 + rnd() % 248;
				break;
			case 7: /* a type that does not exist */
				x[65] = i % 2 ? 0 : 8 + rnd() % 248;
				break;
			case 8: /* not aligned */
				x[39] += 1 + rnd() % 7;
				break;
			case 9: /* bytes beyond the region */
				x[35] ^= 1 << rnd() % 8;
				break;
			}
			forged_send(fd, p, size);
			if (i % 8 == 7 && !k)
				usleep(200);
		}
	close(fd);
	usleep(300000);
}

static void refuse(const char *what, int want)
{
	int got = ibv_wr_complete(c.qpx);

	if (got != want)
		die("%s: %s instead of %s", what, strerror(got), strerror(want));
}

/* The provider refuses wrong arguments, and the channel stays usable. */
static void refused(void)
{
	struct nhcadv_transfer t = transfer(&c, 0, 0, 4096, NHCADV_NOTIFY_INITIATOR), u;
	uint32_t k;

	t.segment = segment_of(NHCADV_ACC_U64);
	for (k = 0; k < 9; k++) {
		u = t;
		if (k == 4)
			u.total -= 4;
		if (k == 5)
			u.remote_pvo += 2;
		if (k == 6)
			u.segment -= 4;
		if (k == 7)
			u.notify = NHCADV_NOTIFY_TARGET;
		start(&c, 0, 0);
		nhcadv_wr_accumulate(c.dv, &c.peer, &u, k == 0 ? 0 : k == 1 ? 8 : k == 2 ? 5 : 1,
				     k == 2 ? NHCADV_ACC_F64 : k == 3 ? 8 : NHCADV_ACC_U64,
				     k == 8 ? 2 : k == 7 ? NHCADV_ACC_ORDERED : 0);
		refuse("a wrong argument", EINVAL);
	}
	start(&c, 0, 0);
	nhcadv_wr_accumulate_again(c.dv, &c.peer, &t, NHCADV_ACC_SUM, NHCADV_ACC_U64, 4, 8);
	refuse("a wrong offset", EINVAL);
	if (channel_info(&c).state != IBV_QPS_RTS)
		die("the channel has failed");
}

static void send_all(void)
{
	struct order o;
	uint32_t k;
	char ok = 1;

	refused();
	for (;;) {
		hear(&o, sizeof(o));
		switch (o.what) {
		case ADD:
		case WRITE_IT:
			fill(c.buf, o.what == ADD ? o.type : o.op,
			     o.bytes < MEMORY ? o.bytes : MEMORY, o.seed, o.ones);
			tell(&ok, 1);
			hear(&ok, 1);
			add(&o);
			break;
		case ADD_ORDERED:
			add_ordered(&o);
			break;
		case ADD_RANGES:
			for (k = 0; k < 8; k++)
				fill(c.buf + k * SMALL, o.type, SMALL, o.seed * 8 + k, false);
			add_ranges(&o);
			break;
		case FORGE:
			forge_all(&o);
			break;
		case DIE:
			fill(c.buf, o.type, MEMORY, 0, true);
			begin(&lanes[0], 0, &o, 0, o.at, CHUNK);
			begin(&lanes[1], 1, &o, 0, o.at + CHUNK, CHUNK);
			usleep(o.count);
			raise(SIGKILL);
			break;
		case QUIT:
			return;
		}
		tell(&ok, 1);
	}
}

/* ---- the target ---- */

static struct link {
	struct channel c;
	int sock;
	struct hello hello;
} links[SENDERS];
static uint32_t senders = 2;
static uint8_t *vector, *model;
static uint64_t room;		/* bytes of the vector */
static struct nhcadv_job_mem *mem;

static void order(uint32_t i, const struct order *o)
{
	sock = links[i].sock;
	tell(o, sizeof(*o));
}

static void done(uint32_t i)
{
	char ok;

	sock = links[i].sock;
	hear(&ok, 1);
}

/* Drop the completions of the accumulates: NHCADV_WC_REMOTE_WRITE.  Return: their number. */
static uint32_t drain(uint32_t i)
{
	uint32_t n = 0;
	struct done d;

	while (poll_done(links[i].c.rcq, &d)) {
		if (d.status || d.kind != NHCADV_WC_REMOTE_WRITE)
			die("sender %u: completion %#x: %s", i, d.kind,
			    ibv_wc_status_str(d.status));
		n++;
	}
	return n;
}

static void let_go(uint32_t i)
{
	char ok = 1;

	sock = links[i].sock;
	tell(&ok, 1);
}

/* Let senders @first to @end - 1 add their vectors at the same time. */
static void all_add(struct order *o, uint32_t first, uint32_t end)
{
	uint32_t i;

	o->what = ADD;
	o->chunk = CHUNK;
	for (i = first; i < end; i++) {
		o->seed = 100 + i;
		order(i, o);
	}
	for (i = first; i < end; i++)
		done(i);
	for (i = first; i < end; i++)
		let_go(i);
	for (i = first; i < end; i++) {
		done(i);
		drain(i);
	}
}

static void must_be_model(uint64_t bytes, uint32_t size, const char *what, uint32_t op,
			  uint32_t type)
{
	uint64_t k;

	for (k = 0; k < bytes; k += size)
		if (memcmp(vector + k, model + k, size))
			die("%s, %s of %s: element %" PRIu64 " is wrong", what, ops[op],
			    types[type], k / size);
	if (differs(vector + bytes, 4096, 0) >= 0)
		die("%s: bytes after the vector have changed", what);
}

static void test_ones(uint32_t type, uint64_t bytes)
{
	struct order o = { .op = NHCADV_ACC_SUM, .type = type, .ones = 1, .bytes = bytes };
	uint8_t want[8] = {}, single[8];
	uint64_t began = now_ns();
	uint32_t i;
	uint64_t k;

	one(single, type);
	for (i = 0; i < senders; i++)
		combine(want, single, NHCADV_ACC_SUM, type);
	memset(vector, 0, bytes + 4096);
	all_add(&o, 0, senders);
	for (k = 0; k < bytes; k += sizes[type])
		if (memcmp(vector + k, want, sizes[type]))
			die("ones of %s: element %" PRIu64 " is not %u", types[type],
			    k / sizes[type], senders);
	if (differs(vector + bytes, 4096, 0) >= 0)
		die("ones of %s: bytes after the vector have changed", types[type]);
	ktap_ok("%u senders of %" PRIu64 " MiB of ones (%s): each element is %u", senders,
		bytes >> 20, types[type], senders);
	printf("# %.1f s\n", (now_ns() - began) / 1e9);
}

static void test_model(void)
{
	uint32_t op, type, i, n, size, kinds = 0;
	struct order o = { .bytes = SMALL };
	uint8_t from[8];
	uint64_t k;

	for (op = NHCADV_ACC_SUM; op <= NHCADV_ACC_XOR; op++)
		for (type = NHCADV_ACC_I32; type <= NHCADV_ACC_BF16; type++) {
			if (!possible(op, type))
				continue;
			size = sizes[type];
			o.op = op;
			o.type = type;
			/* sums and products of floating-point numbers depend on the order */
			n = type >= NHCADV_ACC_F32 &&
			    (op == NHCADV_ACC_SUM || op == NHCADV_ACC_PROD) ? 1 : senders;
			fill(vector, type, SMALL, 7, false);
			memcpy(model, vector, SMALL);
			memset(vector + SMALL, 0, 4096);
			for (i = 0; i < n; i++)
				for (k = 0; k < SMALL / size; k++) {
					element(from, type, 100 + i, k);
					combine(model + k * size, from, op, type);
				}
			all_add(&o, 0, n);
			must_be_model(SMALL, size, "a vector", op, type);
			kinds++;
		}
	ktap_ok("%u operations and types agree with a model", kinds);
}

static void test_ordered(uint32_t type)
{
	struct order o = { .what = ADD_ORDERED, .op = NHCADV_ACC_SUM, .type = type,
			   .bytes = 65536, .count = ORDERED, .seed = 300 };
	uint32_t k;
	uint64_t i;
	uint8_t from[8];

	memset(vector, 0, 65536 + 4096);
	memset(model, 0, 65536);
	for (k = 0; k < ORDERED; k++)
		for (i = 0; i < 65536 / sizes[type]; i++) {
			element(from, type, 300 + k, i);
			combine(model + i * sizes[type], from, NHCADV_ACC_SUM, type);
		}
	order(0, &o);
	done(0);
	drain(0);
	must_be_model(65536, sizes[type], "ordered accumulates", NHCADV_ACC_SUM, type);
	ktap_ok("%u ordered accumulates of %s are applied in the order of posting", ORDERED,
		types[type]);
}

static void test_ranges(uint32_t op, uint32_t type, uint32_t count)
{
	struct order o = { .what = ADD_RANGES, .op = op, .type = type, .count = count };
	uint32_t size = sizes[type], i, k, bytes;
	static uint8_t source[8][SMALL];
	uint64_t at, b;

	fill(vector, type, SMALL, 9, false);
	memcpy(model, vector, SMALL);
	memset(vector + SMALL, 0, 4096);
	for (i = 0; i < senders; i++) {
		for (k = 0; k < 8; k++)
			fill(source[k], type, SMALL, (500 + i) * 8 + k, false);
		for (k = 0; k < count; k++) {
			bytes = range(500 + i, k, size, &at);
			for (b = 0; b < bytes; b += size)
				combine(model + at + b, source[k % 8] + b, op, type);
		}
		o.seed = 500 + i;
		order(i, &o);
	}
	for (i = 0; i < senders; i++) {
		done(i);
		drain(i);
	}
	must_be_model(SMALL, size, "overlapping ranges", op, type);
	ktap_ok("%u senders accumulate (%s of %s) into %u overlapping ranges each", senders, ops[op],
		types[type], count);
}

static uint64_t dropped(void)
{
	struct nhcadv_channel_info info = channel_info(&links[0].c);
	uint64_t sum = 0;
	uint32_t i;

	for (i = NHCADV_DROP_FIFO; i < NHCADV_CHANNEL_COUNTERS; i++)
		sum += info.counters[i];
	return sum;
}

static void test_forged(uint32_t count)
{
	struct order o = { .what = FORGE, .at = 4096, .count = count };
	uint64_t was, value = 999;

	memset(vector, 0, SMALL);
	was = dropped();
	order(0, &o);
	done(0);
	/* 999 was added once: by the first copy of the valid packet */
	if (memcmp(vector + 4096, &value, 8) || differs(vector, 4096, 0) >= 0 ||
	    differs(vector + 4104, SMALL - 4104, 0) >= 0)
		die("forged packets have changed the vector");
	if (poll_done(links[0].c.rcq, &(struct done){}))
		die("a completion after forged packets");
	was = dropped() - was;
	if (!was)
		die("no forged packet was counted");
	ktap_ok("%u replays, and %u packets with one error: nothing changes", count - 1, 10 * count);
	printf("# %" PRIu64 " drops of the channel\n", was);
}

/* The last sender is killed: each of its packets was applied as a whole or not at all. */
static void test_killed(void)
{
	struct order o = { .what = DIE, .op = NHCADV_ACC_SUM, .type = NHCADV_ACC_I64,
			   .count = 2000, .bytes = 2 * CHUNK, .ones = 1 };
	uint64_t all = senders, fewer = senders - 1, words = 2 * CHUNK / 8, k, got, applied = 0;
	uint32_t packet;

	memset(vector, 0, 2 * CHUNK + 4096);
	order(senders - 1, &o);
	all_add(&o, 0, senders - 1);
	/* packets of the killed sender may still be in the network */
	usleep(500000);
	c = links[senders - 1].c;
	packet = segment_of(NHCADV_ACC_I64) / 8;
	for (k = 0; k < words; k++) {
		memcpy(&got, vector + k * 8, 8);
		if (got != all && got != fewer)
			die("word %" PRIu64 " is %" PRIu64, k, got);
		applied += got == all;
		if (k % (CHUNK / 8) % packet && memcmp(vector + k * 8, vector + k * 8 - 8, 8))
			die("word %" PRIu64 ": a packet was applied in part", k);
	}
	senders--;
	ktap_ok("a sender is killed: each of its packets was applied as a whole or not at all");
	printf("# %" PRIu64 " of %" PRIu64 " words have its ones\n", applied, words);
}

/* ---- speed ---- */

/* Wait for a completion; sender and target may have only one CPU. */
static struct done next_done(struct ibv_cq_ex *cq)
{
	uint64_t end = now_ns() + GIVE_UP_S * 1000000000ULL;
	struct done d;

	while (!poll_done(cq, &d)) {
		if (now_ns() > end)
			die("no accumulate arrives");
		sched_yield();
	}
	return d;
}

static double run_once(uint32_t what, uint32_t type, bool late)
{
	struct order o = { .what = what, .op = what == ADD ? NHCADV_ACC_SUM : type,
			   .type = what == ADD ? type : 0, .ones = 1, .bytes = SPEED,
			   .chunk = MEMORY, .at = what == ADD ? 0 : SPEED };
	uint64_t began, added = 0, k;
	uint8_t *scratch = vector + SPEED;
	struct done d;

	memset(vector, 0, SPEED);
	order(0, &o);
	done(0);
	began = now_ns();
	let_go(0);
	/* one transfer of 16 MiB after another; the program adds what has arrived */
	for (k = 0; k < SPEED / MEMORY; k++) {
		d = next_done(links[0].c.rcq);
		must(!d.status && d.kind == NHCADV_WC_REMOTE_WRITE);
		added += d.byte_len;
		if (what == ADD || (late && added < SPEED))
			continue;
		uint64_t from = late ? 0 : k * MEMORY, n = late ? SPEED : MEMORY, i;

		if (type == NHCADV_ACC_F32)
			for (i = from / 4; i < (from + n) / 4; i++)
				((float *)vector)[i] += ((float *)scratch)[i];
		else
			for (i = from / 8; i < (from + n) / 8; i++)
				((int64_t *)vector)[i] += ((int64_t *)scratch)[i];
	}
	began = now_ns() - began;
	done(0);
	return began / 1e6;
}

static int by_value(const void *a, const void *b)
{
	return (*(const double *)a > *(const double *)b) - (*(const double *)a < *(const double *)b);
}

static double median(uint32_t what, uint32_t type, bool late, uint32_t rounds)
{
	double ms[ROUNDS];
	uint32_t i;

	run_once(what, type, late);
	for (i = 0; i < rounds; i++)
		ms[i] = run_once(what, type, late);
	qsort(ms, rounds, sizeof(ms[0]), by_value);
	return ms[rounds / 2];
}

static void test_speed(uint32_t rounds, uint32_t percent)
{
	static const uint32_t which[] = { NHCADV_ACC_I64, NHCADV_ACC_F32 };
	double sum, late, soon;
	uint32_t i;

	for (i = 0; i < 2; i++) {
		sum = median(ADD, which[i], false, rounds);
		late = median(WRITE_IT, which[i], true, rounds);
		soon = median(WRITE_IT, which[i], false, rounds);
		printf("# 64 MiB, sum of %s: accumulate %.1f ms; write, notice and add %.1f ms (%.2f x); "
		       "add each 16 MiB as they arrive %.1f ms (%.2f x)\n",
		       types[which[i]], sum, late, late / sum, soon, soon / sum);
		if (which[i] == NHCADV_ACC_I64 && late < percent / 100.0 * sum)
			die("an accumulate takes %.1f ms, write and add %.1f ms", sum, late);
	}
	ktap_ok("64 MiB of i64: write, notice and add take at least %u %% of the time of an accumulate",
		percent);
}

static void target_open(void)
{
	struct sockaddr_in6 at = { .sin6_family = AF_INET6, .sin6_port = htons(atoi(peer_port)) };
	int listener = socket(AF_INET6, SOCK_STREAM, 0), one = 1;
	uint32_t i;

	vector = pages(room);
	model = pages(SMALL + 4096);
	must(mem = nhcadv_reg_job_mem(context, job, vector, room,
				      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				      IBV_ACCESS_REMOTE_ATOMIC));
	must(listener >= 0);
	must(!setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)));
	must(!bind(listener, (struct sockaddr *)&at, sizeof(at)) && !listen(listener, SENDERS));
	for (i = 0; i < senders; i++) {
		struct link *l = &links[i];

		must((l->sock = accept(listener, NULL, NULL)) >= 0);
		sock = l->sock;
		setsockopt(sock, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
		say_hello();
		channel_make(&l->c, job, 0);
		verb(nhcadv_acquire_rcxts(l->c.qp, l->c.here.rcxts, RCXTS));
		l->c.here.pvo = mem->pvo;
		channel_meet(&l->c);
	}
	close(listener);
}

static int target_run(uint64_t bytes, uint32_t forged, bool killed, uint32_t rounds,
		      uint32_t percent)
{
	struct order quit = { .what = QUIT };
	uint32_t i, all = senders;

	room = (bytes > 2 * CHUNK ? bytes : 2 * CHUNK) + 4096;
	if (rounds)
		room = 2 * SPEED;
	target_open();
	if (rounds) {
		test_speed(rounds, percent);
	} else {
		test_ones(NHCADV_ACC_I64, bytes);
		if (bytes <= 64u << 20)
			for (i = NHCADV_ACC_I32; i <= NHCADV_ACC_BF16; i++)
				test_ones(i, 1u << 20);
		test_model();
		test_ordered(NHCADV_ACC_F32);
		test_ordered(NHCADV_ACC_F64);
		test_ordered(NHCADV_ACC_BF16);
		test_ranges(NHCADV_ACC_SUM, NHCADV_ACC_U64, 40);
		test_ranges(NHCADV_ACC_MAX, NHCADV_ACC_F32, 40);
		test_ranges(NHCADV_ACC_XOR, NHCADV_ACC_I32, 40);
		if (forged)
			test_forged(forged);
		if (killed)
			test_killed();
	}
	for (i = 0; i < senders; i++)
		order(i, &quit);
	for (i = 0; i < all; i++)
		channel_close(&links[i].c);
	verb(nhcadv_dereg_job_mem(mem));
	return ktap_end();
}

int main(int argc, char **argv)
{
	bool target = false, killed = false;
	struct nhcadv_device_attr attr;
	uint64_t bytes = 8u << 20;
	uint32_t forged = 0, rounds = 0, percent = 120;
	int letter, ret = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	program = "accumulate";
	job = 4730;
	channel_sizes = (struct channel_sizes){ RCXTS, MEMORY, SEND_WR, 0 };
	while ((letter = getopt(argc, argv, "d:g:p:s:b:f:kt:r:")) != -1)
		switch (letter) {
		case 's':
			target = true;
			senders = strtoul(optarg, NULL, 0);
			must(senders >= 1 && senders <= SENDERS);
			break;
		case 'b':
			bytes = strtoull(optarg, NULL, 0);
			break;
		case 'f':
			forged = strtoul(optarg, NULL, 0);
			break;
		case 'k':
			killed = true;
			break;
		case 't':
			rounds = strtoul(optarg, NULL, 0);
			must(rounds >= 1 && rounds <= ROUNDS);
			break;
		case 'r':
			percent = strtoul(optarg, NULL, 0);
			break;
		default:
			if (peer_option(letter))
				break;
			fputs("usage: accumulate [-d DEVICE] [-g GID-INDEX] [-p TCP-PORT] -s SENDERS "
			      "[-b BYTES] [-f FORGED] [-k] [-t ROUNDS [-r PERCENT]] | HOST\n", stderr);
			return 2;
		}
	peer_host = argv[optind];
	open_device();
	verb(nhcadv_query_device(context, &attr));
	if (!(attr.caps & NHCADV_DEVICE_ACCUMULATE))
		die("the device has no accumulates");
	if (target) {
		ret = target_run(bytes, forged, killed, rounds, percent);
	} else {
		must(peer_host);
		sock_open();
		say_hello();
		channel_open(&c, 256);
		channel_meet(&c);
		send_all();
		channel_close(&c);
		printf("# %" PRIu64 " probes, %" PRIu64 " repetitions\n", probes, repeats);
	}
	verb(ibv_dealloc_pd(pd));
	verb(ibv_close_device(context));
	return ret;
}
