// SPDX-License-Identifier: GPL-2.0
/*
 * Acknowledgments that leave with a reply: both ends in this process, by packets.  See
 * verbs_test.h for the results that it prints.
 */
#include "verbs_test.h"

#define TRIES	5
#define WARMERS	50	/* pairs to try, as a reply may be late where the machine has others to serve */
#define MANY	64
#define LEN	64
/* replies at once after which acknowledgments surely wait for them */
#define WARM	24
/* and after which it does not matter how many waited in vain before */
#define FORGIVING	4096

/* ---- what the device has counted ---- */

static long rides(void)
{
	return counter("acks_with_requests");
}

/* Packets that were sent again because a timer said so */
static long timers(void)
{
	return counter("early_retransmits") + counter("local_ack_timeout_err");
}

/* ---- requests: who replies does so at once, so nobody sleeps here ---- */

/* The next completion, of @opcode and with success */
static bool next(struct ibv_cq_ex *cq, enum ibv_wc_opcode opcode)
{
	uint64_t end = now_ns(CLOCK_MONOTONIC) + WAIT_S * 1000000000ULL;
	struct completion c;

	while (!poll_one(cq, &c))
		REQUIRE(now_ns(CLOCK_MONOTONIC) < end, "no completion within %d s", WAIT_S);
	REQUIRE(c.status == IBV_WC_SUCCESS, "opcode %d: %s", c.opcode, ibv_wc_status_str(c.status));
	REQUIRE(c.opcode == opcode, "opcode %d instead of %d", c.opcode, opcode);
	return true;
}

/* Both completions of an end whose SEND is acknowledged by what it receives, in either order */
static bool sent_and_received(struct ibv_cq_ex *cq)
{
	uint64_t end = now_ns(CLOCK_MONOTONIC) + WAIT_S * 1000000000ULL;
	int opcodes = 0;
	struct completion c;

	for (int i = 0; i < 2; i++) {
		while (!poll_one(cq, &c))
			REQUIRE(now_ns(CLOCK_MONOTONIC) < end, "%d of 2 completions within %d s", i,
				WAIT_S);
		REQUIRE(c.status == IBV_WC_SUCCESS, "opcode %d: %s", c.opcode,
			ibv_wc_status_str(c.status));
		opcodes += c.opcode;
	}
	REQUIRE(opcodes == IBV_WC_SEND + IBV_WC_RECV, "not a SEND and a receive");
	return true;
}

static bool receives(struct end *e)
{
	struct ibv_sge sge = sge_of(e, LEN, LEN);
	struct ibv_recv_wr *bad, wr = { .sg_list = &sge, .num_sge = 1 };

	VERB(ibv_post_recv(e->qp, &wr, &bad));
	return true;
}

static bool sends(struct end *e)
{
	struct ibv_sge sge = sge_of(e, 0, LEN);
	struct ibv_send_wr *bad, wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
					.send_flags = IBV_SEND_SIGNALED };

	VERB(ibv_post_send(e->qp, &wr, &bad));
	return true;
}

static bool writes(struct end *e, const struct end *to)
{
	struct ibv_sge sge = sge_of(e, 0, LEN);
	struct ibv_send_wr *bad, wr = { .sg_list = &sge, .num_sge = 1,
					.opcode = IBV_WR_RDMA_WRITE,
					.send_flags = IBV_SEND_SIGNALED,
					.wr.rdma = { (uintptr_t)to->buf, to->mr->rkey } };

	VERB(ibv_post_send(e->qp, &wr, &bad));
	return true;
}

/* a sends, b answers, @rounds times; then all is acknowledged. */
static bool talk(struct pair *p, int rounds)
{
	for (int i = 0; i < rounds; i++) {
		fill(p->a.buf, LEN, i);
		if (!receives(&p->a) || !receives(&p->b) || !sends(&p->a))
			return false;
		/* with it comes the acknowledgment of b's SEND of the last round */
		if (!(i ? sent_and_received(p->b.cq) : next(p->b.cq, IBV_WC_RECV)) ||
		    !filled(p->b.buf + LEN, LEN, i))
			return false;
		memcpy(p->b.buf, p->b.buf + LEN, LEN);
		if (!sends(&p->b) || !sent_and_received(p->a.cq) ||
		    !filled(p->a.buf + LEN, LEN, i))
			return false;
	}
	return next(p->b.cq, IBV_WC_SEND);
}

/*
 * A new pair of which each end's acknowledgments wait for replies.  On a machine that stands still
 * now and then a reply may be late, but not each time.
 */
static bool warm(struct pair *p)
{
	long before;

	for (int i = 0; i < WARMERS; i++) {
		if (p->a.qp && !pair_free(p))
			return false;
		*p = (struct pair){};
		if (!make_pair(p, (struct pair_opts){}))
			return false;
		if (!talk(p, WARM))
			return false;
		/* the last reply of talk() has none: it counts as one that did not come */
		before = rides();
		if (!talk(p, 2 * WARM))
			return false;
		if (rides() - before >= WARM)
			return true;
	}
	return fail("no acknowledgment rides");
}

static bool together(struct pair *p)
{
	long sent = 0, rode = 0;

	for (int i = 0; i < WARMERS; i++) {
		if (!warm(p))
			return false;
		sent = counter("sent_pkts");
		rode = rides();
		if (!talk(p, MANY))
			return false;
		sent = counter("sent_pkts") - sent;
		rode = rides() - rode;
		/* a few at the start, and the last one, go alone */
		if (sent <= 3 * MANY && rode >= MANY)
			return true;
	}
	return fail("%ld packets for %d SENDs and as many replies; %ld acknowledgments rode", sent,
		    MANY, rode);
}

/*
 * a sends and b has it, but no reply: its acknowledgment waits, or, where the machine stood still,
 * has waited: then @waits is false.
 */
static bool unanswered(struct pair *p, bool *waits)
{
	struct completion c;

	if (!receives(&p->b) || !sends(&p->a) || !next(p->b.cq, IBV_WC_RECV))
		return false;
	*waits = !poll_one(p->a.cq, &c);
	REQUIRE(*waits || c.status == IBV_WC_SUCCESS, "SEND: %s", ibv_wc_status_str(c.status));
	return true;
}

/* The SEND is acknowledged soon, and for a while the following ones at once. */
static bool no_reply(struct pair *p)
{
	long again, rode;
	bool waits;

	for (int i = 0; i < TRIES; i++) {
		if (!warm(p))
			return false;
		again = timers();
		if (!unanswered(p, &waits) || (waits && !next(p->a.cq, IBV_WC_SEND)))
			return false;
		if (!waits || timers() != again)
			continue;
		/* the other end's own acknowledgments may ride: a does not know */
		rode = rides();
		for (int n = 0; n < 4; n++)
			if (!receives(&p->b) || !sends(&p->a) || !next(p->b.cq, IBV_WC_RECV) ||
			    !next(p->a.cq, IBV_WC_SEND))
				return false;
		REQUIRE(rides() == rode, "%ld acknowledgments rode on nothing", rides() - rode);
		return true;
	}
	return fail("it did not wait, or a timer had it sent again, %d times", TRIES);
}

/* b does not reply, and what a waits for in vain has it wait less often. */
static bool in_vain(struct pair *p, bool *waits)
{
	return unanswered(p, waits) && (!*waits || next(p->a.cq, IBV_WC_SEND));
}

/* So it has after a few times, but not for ever: many replies at once are as good as none late. */
static bool forgiven(struct pair *p)
{
	long rode = 0;
	bool waits;

	/* one reply in a hundred is late on a kernel that watches itself, and that is too many */
	if (getenv("SLOWER") && atoi(getenv("SLOWER")) > 1) {
		skipped = true;
		return fail("replies come late too often");
	}
	for (int i = 0; i < WARMERS; i++) {
		if (!warm(p))
			return false;
		/* each time more replies are needed before one waits */
		for (int needed = WARM; needed <= 32 * WARM; needed *= 2)
			if (!talk(p, needed) || !in_vain(p, &waits))
				return false;
		if (!talk(p, FORGIVING) || !in_vain(p, &waits))
			return false;
		rode = rides();
		if (!talk(p, 2 * MANY))
			return false;
		rode = rides() - rode;
		/* one end's would be half of them */
		if (waits && rode > 3 * MANY)
			return true;
	}
	return fail("%ld acknowledgments rode with %d SENDs and as many replies", rode, 2 * MANY);
}

/* b is gone before it has replied: what it has received is acknowledged. */
static bool closes(struct pair *p, enum ibv_qp_state how)
{
	bool waits;
	long again;

	for (int i = 0; i < TRIES; i++) {
		if (!warm(p))
			return false;
		again = timers();
		if (!unanswered(p, &waits))
			return false;
		if (!waits)
			continue;
		if (how == IBV_QPS_UNKNOWN) {
			VERB(ibv_destroy_qp(p->b.qp));
			p->b.qp = NULL;
		} else if (!modify(p->b.qp, how, 0)) {
			return false;
		}
		if (!next(p->a.cq, IBV_WC_SEND))
			return false;
		if (timers() == again)
			return true;
	}
	return fail("it did not wait, or a timer had it sent again, %d times", TRIES);
}

static bool destroyed(struct pair *p)
{
	return closes(p, IBV_QPS_UNKNOWN);
}

static bool in_error(struct pair *p)
{
	return closes(p, IBV_QPS_ERR);
}

static bool reset(struct pair *p)
{
	return closes(p, IBV_QPS_RESET);
}

/* Nobody hears of a WRITE, so nobody replies to it: only b's SENDs are acknowledged by a's WRITEs. */
static bool write_and_send(struct pair *p)
{
	long rode;

	if (!warm(p))
		return false;
	rode = rides();
	for (int i = 0; i < MANY; i++) {
		if (!receives(&p->a) || !writes(&p->a, &p->b))
			return false;
		if (i && !next(p->b.cq, IBV_WC_SEND))
			return false;
		if (!next(p->a.cq, IBV_WC_RDMA_WRITE) || !sends(&p->b) ||
		    !next(p->a.cq, IBV_WC_RECV))
			return false;
	}
	rode = rides() - rode;
	REQUIRE(rode <= MANY, "%ld acknowledgments rode with %d WRITEs", rode, MANY);
	return next(p->b.cq, IBV_WC_SEND);
}

/* piggyback lost: packets are lost, by what piggyback.sh has done */
static bool lost(struct pair *p)
{
	long rode;

	if (!warm(p))
		return false;
	rode = rides();
	if (!talk(p, 4 * MANY))
		return false;
	REQUIRE(rides() > rode, "no acknowledgment rides");
	return true;
}

/* piggyback none: this host insists on the ICRC, whose place it would be, or has faults injected */
static bool none(struct pair *p)
{
	long before = rides();

	if (!make_pair(p, (struct pair_opts){}) || !talk(p, 4 * MANY))
		return false;
	REQUIRE(rides() == before, "%ld acknowledgments rode", rides() - before);
	return true;
}

static const struct test tests[] = {
	{ "an acknowledgment leaves with the reply", together, false },
	{ "a reply that does not come", no_reply, false },
	{ "acknowledgments ride again after many replies", forgiven, false },
	{ "a queue pair that is destroyed instead of replying", destroyed, false },
	{ "a queue pair that goes to error instead of replying", in_error, false },
	{ "a queue pair that is reset instead of replying", reset, false },
	{ "a WRITE is acknowledged at once", write_and_send, false },
};

static const struct test with_loss[] = {
	{ "requests that carry an acknowledgment and are lost", lost, false },
};

static struct test without[] = {
	{ NULL, none, false },
};

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "lost"))
		return run_tests(with_loss, 1, NULL);
	if (argc > 2 && !strcmp(argv[1], "none")) {
		without[0].name = argv[2];
		return run_tests(without, 1, NULL);
	}
	return run_tests(tests, sizeof(tests) / sizeof(tests[0]), argv[1]);
}
