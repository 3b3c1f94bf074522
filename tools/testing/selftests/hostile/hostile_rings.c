// SPDX-License-Identifier: GPL-2.0
/*
 * Attacks of a hostile process on the rings that it shares with the kernel.
 *
 *   hostile_rings DEVICE GID_INDEX [SEEDS]
 *
 * attack.h says how attacks run and what they print.
 */
#define _GNU_SOURCE
#include <pthread.h>

#include "attack.h"

/* ---- the send queue ---- */

static void sq_random_entries(void)
{
	struct end a, b;
	int t, round;

	for (t = 0; t < COUNT(types); t++) {
		pair_make(&a, &b, types[t]);
		for (round = 0; round < 4; round++) {
			connect_ends(&a, &b);
			rnd_fill(slot(&a.sqr, 0), (size_t)a.sqr.entries * a.sqr.stride);
			store(&a.sqr.hdr->prod,
			      load(&a.sqr.hdr->cons) + 1 + rnd() % a.sqr.entries);
			ring_sq(&a);
			wait_broken(&a, "random send requests");
			drain(&a);
		}
		pair_destroy(&a, &b);
	}
}

static void sq_random_all(void)
{
	struct end a, b;
	int t, round;

	for (t = 0; t < COUNT(types); t++) {
		pair_make(&a, &b, types[t]);
		for (round = 0; round < 4; round++) {
			connect_ends(&a, &b);
			rnd_fill(a.sqr.hdr, a.sqr.size);
			ring_sq(&a);
			wait_broken(&a, "random header and send requests");
			drain(&a);
		}
		pair_destroy(&a, &b);
	}
}

static void sq_indices(void)
{
	struct end a, b;
	uint32_t ahead[] = { 0, 0, 1000, 0x7fffffff, 0x80000000, 0x80000001, 0xfffffffe };
	int t, i;

	for (t = 0; t < COUNT(types); t++) {
		pair_make(&a, &b, types[t]);
		ahead[0] = -1;
		ahead[1] = a.sqr.entries + 1;
		for (i = 0; i < COUNT(ahead); i++) {
			connect_ends(&a, &b);
			/*
			 * post a valid request first: ahead[0] then takes the producer index back
			 * to before this request
			 */
			good_wqe(&a, &b, 1);
			publish(&a);
			store(&a.sqr.hdr->prod, load(&a.sqr.hdr->prod) + ahead[i]);
			ring_sq(&a);
			/*
			 * ahead[0] gives a valid index if the request has not completed: then the
			 * QP need not enter the error state
			 */
			if (i || load(&a.sqr.hdr->cons) == load(&a.sqr.hdr->prod) + 1)
				wait_broken(&a, "producer index out of range");
			/* forge fields that only the kernel writes: the kernel must not use them */
			store(&a.sqr.hdr->cons, rnd());
			store(&a.sqr.hdr->flags, rnd());
			ring_sq(&a);
			drain(&a);
		}
		pair_destroy(&a, &b);
	}
}

/* ---- the receive queues ---- */

static void send_one(struct end *from, struct end *to)
{
	post_send(from, 1, IBV_WR_SEND, from->buf, 64, to);
}

static void rq_random_entries(void)
{
	struct end a, b;
	int t, round;

	for (t = 0; t < COUNT(types); t++) {
		pair_make(&a, &b, types[t]);
		for (round = 0; round < 4; round++) {
			connect_ends(&a, &b);
			rnd_fill(slot(&a.rqr, 0), (size_t)a.rqr.entries * a.rqr.stride);
			store(&a.rqr.hdr->prod,
			      load(&a.rqr.hdr->cons) + 1 + rnd() % a.rqr.entries);
			send_one(&b, &a);
			wait_broken(&a, "random receive requests");
			drain(&a);
			drain(&b);
		}
		pair_destroy(&a, &b);
	}
}

static void rq_indices(void)
{
	static const uint32_t ahead[] = { 0x7fffffff, 0x80000000, 0xfffffffe, 0xffffffff };
	struct end a, b;
	int t, i;

	for (t = 0; t < COUNT(types); t++) {
		pair_make(&a, &b, types[t]);
		for (i = -1; i < COUNT(ahead); i++) {
			connect_ends(&a, &b);
			store(&a.rqr.hdr->prod, load(&a.rqr.hdr->prod) +
			      (i < 0 ? a.rqr.entries + 1 : ahead[i]));
			send_one(&b, &a);
			wait_broken(&a, "producer index of the RQ out of range");
			drain(&a);
			drain(&b);
		}
		pair_destroy(&a, &b);
	}
}

static void srq_broken(void)
{
	struct end a, b;
	int round;

	for (round = 0; round < 2; round++) {
		end_make(&a, IBV_QPT_RC, true, 4 * DEPTH);
		end_make(&b, IBV_QPT_RC, false, 4 * DEPTH);
		connect_ends(&a, &b);
		if (round)
			rnd_fill(a.srqr.hdr, a.srqr.size);
		else
			store(&a.srqr.hdr->prod, load(&a.srqr.hdr->cons) + a.srqr.entries + 1);
		send_one(&b, &a);
		wait_broken(&a, "broken SRQ");
		if (!saw_event(&a, IBV_EVENT_SRQ_ERR))
			die("no IBV_EVENT_SRQ_ERR");
		pair_destroy(&a, &b);
	}
}

/* ---- the completion queue ---- */

static void cq_indices(void)
{
	static const uint32_t behind[] = { 0x7fffffff, 0x80000000, 0xffffffff };
	struct end a, b;
	int i;

	/*
	 * a consumer index that is higher than the producer index, or lower by more than the ring's
	 * length
	 */
	for (i = 0; i < COUNT(behind); i++) {
		pair_make(&a, &b, IBV_QPT_RC);
		store(&a.cqr.hdr->cons, load(&a.cqr.hdr->prod) - behind[i]);
		good_wqe(&a, &b, 1);
		publish(&a);
		wait_broken(&a, "consumer index of the CQ out of range");
		if (!saw_event(&a, IBV_EVENT_CQ_ERR))
			die("no IBV_EVENT_CQ_ERR");
		pair_destroy(&a, &b);
	}
}

static void cq_overrun(void)
{
	double until = now() + PATIENCE;
	struct end a, b;
	uint32_t i, n;

	end_make(&a, IBV_QPT_RC, false, 8);
	end_make(&b, IBV_QPT_RC, false, 8);
	connect_ends(&a, &b);
	n = a.cqr.entries - (load(&a.cqr.hdr->prod) - load(&a.cqr.hdr->cons));
	for (i = 0; i <= n; i++) {
		good_wqe(&a, &b, i);
		publish(&a);
		while (i < n && load(&a.sqr.hdr->cons) != load(&a.sqr.hdr->prod))
			if (now() > until)
				die("request %u of %u is not done", i, n);
		if (i < n && broken(end_state(&a)))
			die("in error after %u completions of %u", i + 1, n);
	}
	wait_broken(&a, "CQ overrun");
	if (!saw_event(&a, IBV_EVENT_CQ_ERR))
		die("no IBV_EVENT_CQ_ERR");
	pair_destroy(&a, &b);
}

/*
 * The kernel must post completions at the right place, whatever user space writes into the CQ,
 * except an invalid consumer index.
 */
static void cq_random(void)
{
	uint32_t cons, prod;
	struct end a, b;
	int i;

	pair_make(&a, &b, IBV_QPT_RC);
	for (i = 0; i < 50; i++) {
		cons = load(&a.cqr.hdr->cons);
		prod = load(&a.cqr.hdr->prod);
		rnd_fill(a.cqr.hdr, a.cqr.size);
		store(&a.cqr.hdr->cons, cons);
		good_wqe(&a, &b, 1000 + i);
		publish(&a);
		while (load(&a.cqr.hdr->prod) != prod + 1)
			usleep(100);
		if (((struct nhca_cqe *)slot(&a.cqr, prod))->wr_id != 1000u + i)
			die("completion %d is not where it belongs", i);
		drain(&a);
	}
	pair_destroy(&a, &b);
}

/* ---- mappings ---- */

static void *map_ring(struct end *e, size_t size, int prot, int flags, uint64_t offset)
{
	return mmap(NULL, size, prot, flags, e->ctx->cmd_fd, offset);
}

/*
 * Unmap a ring in this process, while the kernel uses the memory.  The provider reads the CQs of a
 * QP when the QP is destroyed, so map zeros in place of the ring.
 */
static void unmap_ring(struct ring *r)
{
	munmap(r->hdr, r->size);
	must(mmap(r->hdr, r->size, PROT_READ | PROT_WRITE,
		  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == r->hdr);
}

static void unmapped(void)
{
	static const enum ibv_qp_type connected[] = { IBV_QPT_RC, IBV_QPT_UC };
	struct nhca_ring_hdr *sq, *cq;
	uint32_t done, i, completions;
	struct end a, b;
	double until;
	int t;

	for (t = 0; t < COUNT(connected); t++) {
		pair_make(&a, &b, connected[t]);
		done = load(&a.sqr.hdr->cons);
		completions = load(&a.cqr.hdr->prod);
		for (i = 0; i < DEPTH; i++) {
			good_wqe(&a, &b, i)->sge[0].length = REGION;
			store(&a.sqr.hdr->prod, load(&a.sqr.hdr->prod) + 1);
		}
		ring_sq(&a);
		unmap_ring(&a.sqr);
		unmap_ring(&a.rqr);
		unmap_ring(&a.cqr);
		unmap_ring(&b.sqr);
		unmap_ring(&b.rqr);
		unmap_ring(&b.cqr);
		munmap(a.buf, REGION);
		ring_sq(&a);

		/* the kernel must execute the requests: check through another mapping */
		sq = map_ring(&a, a.sqr.size, PROT_READ, MAP_SHARED, a.sqr.offset);
		cq = map_ring(&a, a.cqr.size, PROT_READ, MAP_SHARED, a.cqr.offset);
		must(sq != MAP_FAILED && cq != MAP_FAILED);
		until = now() + 3 * PATIENCE;
		while (load(&sq->cons) - done < DEPTH) {
			if (now() > until)
				die("%u of %u requests are done", load(&sq->cons) - done, DEPTH);
			usleep(1000);
		}
		if (load(&cq->prod) - completions != DEPTH)
			die("%u completions of %u", load(&cq->prod) - completions, DEPTH);
		munmap(sq, a.sqr.size);
		munmap(cq, a.cqr.size);
		end_destroy(&a);
		end_destroy(&b);
	}
}

static void mappings(void)
{
	const int rw = PROT_READ | PROT_WRITE;
	struct nhca_ring_hdr *kept;
	uint64_t offset, i;
	struct end a, b;
	size_t size;

	pair_make(&a, &b, IBV_QPT_RC);
	size = a.sqr.size;
	offset = a.sqr.offset;
	if (map_ring(&a, size, rw, MAP_PRIVATE, offset) != MAP_FAILED)
		die("a private mapping is allowed");
	if (map_ring(&a, size + 4096, rw, MAP_SHARED, offset) != MAP_FAILED ||
	    map_ring(&a, 4096, rw, MAP_SHARED, offset) != MAP_FAILED)
		die("a mapping of another size is allowed");
	if (map_ring(&a, size, rw, MAP_SHARED, offset + 4096) != MAP_FAILED)
		die("a mapping from the middle is allowed");
	/* random offsets; ignore the results, because an offset may be that of a ring of b */
	for (i = 0; i < 1000; i++)
		map_ring(&b, 4096 * (rnd() % 20), rw, MAP_SHARED, rnd() & 0xfffffff000);
	kept = map_ring(&a, size, rw, MAP_SHARED, offset);
	must(kept != MAP_FAILED);
	if (mremap(kept, size, size + 4096, MREMAP_MAYMOVE) != MAP_FAILED)
		die("a mapping can grow");

	/* a mapping that outlives its QP must not reach other memory */
	must(!ibv_destroy_qp(a.qp));
	a.qp = NULL;
	rnd_fill(kept, size);
	if (map_ring(&a, size, rw, MAP_SHARED, offset) != MAP_FAILED)
		die("the ring of a destroyed QP can be mapped");
	rnd_fill(kept, size);
	pair_destroy(&a, &b);
	rnd_fill(kept, size);
	munmap(kept, size);
}

/* ---- writes while the kernel reads ---- */

struct scribbler {
	struct end *a;
	double busy;
	volatile bool stop;
};

static void *scribble(void *arg)
{
	struct scribbler *s = arg;
	struct ring *rings[] = { &s->a->sqr, &s->a->rqr, &s->a->cqr };
	uint64_t z = seed_state ^ 0x5555;
	struct ring *r;
	uint32_t *word;

	while (!s->stop) {
		z = z * 6364136223846793005ULL + 1442695040888963407ULL;
		r = rings[(z >> 60) % 3];
		/* write to the header as often as to all slots */
		word = (uint32_t *)r->hdr + (z & 1 ? (z >> 20) % 64 : (z >> 20) % (r->size / 4));
		*word = z & 2 ? z >> 32 : *word + (z >> 33) % 5 - 2;
	}
	return NULL;
}

static void scribble_for(double seconds)
{
	struct scribbler s = {};
	double until = now() + seconds;
	pthread_t thread;
	struct end a, b;

	pair_make(&a, &b, types[rnd() % COUNT(types)]);
	s.a = &a;
	must(!pthread_create(&thread, NULL, scribble, &s));
	while (now() < until) {
		/* ignore errors: scribble() may cause one before the pair is connected */
		if (broken(end_state(&a)) || broken(end_state(&b)))
			bring_up(&a, &b, true);
		good_wqe(&a, &b, 1);
		publish(&a);
		if (load(&b.sqr.hdr->prod) - load(&b.sqr.hdr->cons) < DEPTH) {
			good_wqe(&b, &a, 1)->opcode = NHCA_WR_SEND;
			publish(&b);
		}
		drain(&b);
		saw_event(&a, 0);
	}
	s.stop = true;
	pthread_join(thread, NULL);
	pair_destroy(&a, &b);
}

static void scribbled(void)
{
	scribble_for(1.0);
}

/*
 * Keep the rings full, so that a doorbell whose work has no bound would not return.  Stop after
 * four times the allowed time, so that the test fails in this case and does not hang.
 */
static void *produce(void *arg)
{
	struct scribbler *s = arg;
	double until = now() + 4 * s->busy;

	while (!s->stop && now() < until) {
		store(&s->a->sqr.hdr->prod, load(&s->a->sqr.hdr->cons) + s->a->sqr.entries);
		store(&s->a->rqr.hdr->prod, load(&s->a->rqr.hdr->cons) + s->a->rqr.entries);
		drain(s->a);
	}
	return NULL;
}

/*
 * Return: seconds for which a doorbell may keep the kernel busy: 32 times the longest time for
 * 1,024 requests, but at least PATIENCE / 2, because an emulated CPU may stall for this time.
 */
static double allowed(struct end *a)
{
	double begun, longest = PATIENCE / 2 / 32;
	int n;

	for (n = 0; n < 4; n++) {
		store(&a->sqr.hdr->prod, load(&a->sqr.hdr->prod) + 1024);
		store(&a->rqr.hdr->prod, load(&a->rqr.hdr->cons) + a->rqr.entries);
		begun = now();
		ring_sq(a);
		if (now() - begun > longest)
			longest = now() - begun;
		drain(a);
	}
	return 32 * longest;
}

static void endless(void)
{
	static const enum ibv_qp_state states[] = { IBV_QPS_RTS, IBV_QPS_ERR };
	struct scribbler s = {};
	double begun, longest;
	pthread_t thread;
	struct end a, b;
	uint32_t slots;
	int t, i, n;

	/* stop the bystander, so that the producer and the doorbell have a CPU each */
	if (shared->bystander)
		kill(shared->bystander, SIGSTOP);
	/* use long queues, so that they do not become empty while the producer does not run */
	depth = 32768;
	for (t = 0; t < COUNT(types); t++) {
		for (i = 0; i < COUNT(states); i++) {
			pair_make(&a, &b, types[t]);
			for (slots = 0; slots < a.sqr.entries; slots++) {
				memcpy(slot(&a.sqr, slots), good_wqe(&a, &b, slots), a.sqr.stride);
				((struct nhca_send_wqe *)slot(&a.sqr, slots))->num_sge = 0;
			}
			s = (struct scribbler){ .a = &a, .busy = allowed(&a) };
			must(!pthread_create(&thread, NULL, produce, &s));
			usleep(10000);
			longest = 0;
			for (n = 0; n < 20; n++) {
				begun = now();
				if (!n && states[i] == IBV_QPS_ERR)
					end_modify(&a, IBV_QPS_ERR, 0, false);
				else
					ring_sq(&a);
				if (now() - begun > longest)
					longest = now() - begun;
			}
			s.stop = true;
			pthread_join(thread, NULL);
			if (longest > s.busy)
				die("QP type %d, state %d: the kernel was busy for %.1f s", types[t],
				    states[i], longest);
			pair_destroy(&a, &b);
		}
	}
}

static void *killer(void *arg)
{
	usleep(100000 + (uintptr_t)arg % 500000);
	kill(getpid(), SIGKILL);
	return NULL;
}

static void killed(void)
{
	pthread_t thread;

	must(!pthread_create(&thread, NULL, killer, (void *)(uintptr_t)rnd()));
	scribble_for(60);
}

/* ---- running ---- */

static const struct attack attacks[] = {
	{ .name = "indices of the SQ out of range", .run = sq_indices },
	{ .name = "SQ entries of random bytes", .run = sq_random_entries, .seeded = true },
	{ .name = "SQ of random bytes, with the header", .run = sq_random_all, .seeded = true },
	{ .name = "indices of the RQ out of range", .run = rq_indices },
	{ .name = "RQ entries of random bytes", .run = rq_random_entries, .seeded = true },
	{ .name = "broken SRQ", .run = srq_broken },
	{ .name = "indices of the CQ out of range", .run = cq_indices },
	{ .name = "CQ overrun", .run = cq_overrun },
	{ .name = "CQ of random bytes", .run = cq_random },
	{ .name = "rings unmapped under traffic", .run = unmapped },
	{ .name = "invalid mappings are refused", .run = mappings },
	{ .name = "random writes into rings in use", .run = scribbled, .seeded = true },
	{ .name = "a producer that never stops", .run = endless },
	{ .name = "killed amid random writes", .run = killed, .seeded = true, .signal = SIGKILL },
};

int main(int argc, char **argv)
{
	return attacks_main(argc, argv, attacks, COUNT(attacks));
}
