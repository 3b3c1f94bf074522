// SPDX-License-Identifier: GPL-2.0
/*
 * Piggybacked ACKs: a reply carries the acknowledgment.  Both ends are in this process and
 * communicate by packets.  verbs_test.h describes the printed results.
 *
 *   piggyback [PART-OF-A-NAME]	run the tests whose names contain the argument (all)
 *   piggyback lost		piggyback.sh makes the network lose packets
 *   piggyback none NAME	no ACK may be piggybacked; NAME is printed
 */
#include "verbs_test.h"

#define TRIES	5
#define WARMERS	50	/* maximum number of tries: on a busy machine a reply may be late */
#define MANY	64
#define LEN	64
/* quick replies that are enough for both ends of a new pair to let ACKs wait for replies */
#define WARM	24
/* quick replies after which ACKs that waited in vain for a reply have no effect any more */
#define FORGIVING	4096

/* ---- counters of the device ---- */

static long rides(void)
{
	return counter("acks_with_requests");
}

/* Return: the number of retransmissions that a timer has caused. */
static long timers(void)
{
	return counter("early_retransmits") + counter("local_ack_timeout_err");
}

/* ---- requests: replies must be quick, so these functions spin ---- */

/* Wait for the next completion, which must be of @opcode and successful. */
static bool next(struct ibv_cq_ex *cq, enum ibv_wc_opcode opcode)
{
	uint64_t end = clock_ns(CLOCK_MONOTONIC) + wait_s * 1000000000ULL;
	struct completion c;

	while (!poll_one(cq, &c))
		REQUIRE(clock_ns(CLOCK_MONOTONIC) < end, "no completion within %u s", wait_s);
	REQUIRE(c.status == IBV_WC_SUCCESS, "opcode %d: %s", c.opcode, ibv_wc_status_str(c.status));
	REQUIRE(c.opcode == opcode, "opcode %d instead of %d", c.opcode, opcode);
	return true;
}

/* Wait for the completions of a SEND and of a receive of the peer's next message, in any order. */
static bool sent_and_received(struct ibv_cq_ex *cq)
{
	uint64_t end = clock_ns(CLOCK_MONOTONIC) + wait_s * 1000000000ULL;
	int opcodes = 0;
	struct completion c;

	for (int i = 0; i < 2; i++) {
		while (!poll_one(cq, &c))
			REQUIRE(clock_ns(CLOCK_MONOTONIC) < end, "%d of 2 completions within %d s", i,
				wait_s);
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

/* a sends and b replies, @rounds times.  At the end everything is acknowledged. */
static bool talk(struct pair *p, int rounds)
{
	for (int i = 0; i < rounds; i++) {
		fill(p->a.buf, LEN, i);
		if (!receives(&p->a) || !receives(&p->b) || !sends(&p->a))
			return false;
		/*
		 * b's SEND of the previous round also completes: a's SEND carries its ACK, or
		 * follows it
		 */
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
 * Make a new pair, both ends of which let ACKs wait for replies.  If the machine stalls, a reply
 * may be late, but not in all WARMERS tries.
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
		/*
		 * the last reply of talk() gets no reply, so its ACK waits in vain, and end a now
		 * needs more quick replies
		 */
		before = rides();
		if (!talk(p, 2 * WARM))
			return false;
		if (rides() - before >= WARM)
			return true;
	}
	return fail("no ACK is piggybacked");
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
		/* ACKs before enough quick replies, and the last ACK, are not piggybacked */
		if (sent <= 3 * MANY && rode >= MANY)
			return true;
	}
	return fail("%ld packets for %d SENDs and as many replies; %ld piggybacked ACKs", sent,
		    MANY, rode);
}

/*
 * a sends and b receives, but does not reply, so b's ACK waits for a reply.  @waits: false if the
 * ACK has arrived already, because the machine has stalled and the wait has ended.
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

/* Without a reply, the ACK of a SEND is sent soon, and for a while the next ACKs do not wait. */
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
		/*
		 * b's next ACKs must not wait.  a may still let its ACKs wait, but b sends nothing
		 * here that a would acknowledge, so no ACK at all may be piggybacked.
		 */
		rode = rides();
		for (int n = 0; n < 4; n++)
			if (!receives(&p->b) || !sends(&p->a) || !next(p->b.cq, IBV_WC_RECV) ||
			    !next(p->a.cq, IBV_WC_SEND))
				return false;
		REQUIRE(rides() == rode, "%ld ACKs were piggybacked", rides() - rode);
		return true;
	}
	return fail("no ACK waited without a timer in %d tries", TRIES);
}

/* Let an ACK of b wait in vain: b does not reply.  @waits: as for unanswered(). */
static bool in_vain(struct pair *p, bool *waits)
{
	return unanswered(p, waits) && (!*waits || next(p->a.cq, IBV_WC_SEND));
}

/*
 * Each wait in vain doubles the number of quick replies after which ACKs of an end wait again, and
 * 256 quick replies halve it.  After FORGIVING quick replies it must have its initial value.
 */
static bool forgiven(struct pair *p)
{
	long rode = 0;
	bool waits;

	/*
	 * on a debug kernel one reply in a hundred is late, so there are never FORGIVING quick
	 * replies in a row
	 */
	if (getenv("SLOWER") && atoi(getenv("SLOWER")) > 1) {
		skipped = true;
		return fail("replies are late too often on this kernel");
	}
	for (int i = 0; i < WARMERS; i++) {
		if (!warm(p))
			return false;
		/* let ACKs of b wait in vain several times */
		for (int needed = WARM; needed <= 32 * WARM; needed *= 2)
			if (!talk(p, needed) || !in_vain(p, &waits))
				return false;
		if (!talk(p, FORGIVING) || !in_vain(p, &waits))
			return false;
		rode = rides();
		if (!talk(p, 2 * MANY))
			return false;
		rode = rides() - rode;
		/* if only end a piggybacked ACKs, at most 2 * MANY ACKs would be piggybacked */
		if (waits && rode > 3 * MANY)
			return true;
	}
	return fail("%ld ACKs were piggybacked on %d SENDs and as many replies", rode, 2 * MANY);
}

/*
 * b's queue pair is destroyed, reset or moved to error before b has replied.  It must acknowledge
 * what it has received.
 */
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
	return fail("no ACK waited without a timer in %d tries", TRIES);
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

/*
 * b gets no completion of a WRITE, so the ACK of a WRITE does not wait for a reply.  Only the ACKs
 * of b's SENDs may be piggybacked, on a's WRITEs.
 */
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
	REQUIRE(rode <= MANY, "%ld ACKs were piggybacked on %d WRITEs", rode, MANY);
	return next(p->b.cq, IBV_WC_SEND);
}

/* For `piggyback lost': piggyback.sh makes the network lose packets. */
static bool lost(struct pair *p)
{
	long rode;

	if (!warm(p))
		return false;
	rode = rides();
	if (!talk(p, 4 * MANY))
		return false;
	REQUIRE(rides() > rode, "no ACK is piggybacked");
	return true;
}

/*
 * For `piggyback none': no ACK may be piggybacked, because this host injects faults, or because it
 * requires the ICRC. A piggybacked ACK takes the place of the ICRC.
 */
static bool none(struct pair *p)
{
	long before = rides();

	if (!make_pair(p, (struct pair_opts){}) || !talk(p, 4 * MANY))
		return false;
	REQUIRE(rides() == before, "%ld ACKs were piggybacked", rides() - before);
	return true;
}

static const struct test tests[] = {
	{ "a reply carries the acknowledgment", together, false },
	{ "no reply comes", no_reply, false },
	{ "ACKs are piggybacked again after many replies", forgiven, false },
	{ "a queue pair is destroyed instead of replying", destroyed, false },
	{ "a queue pair goes to error instead of replying", in_error, false },
	{ "a queue pair is reset instead of replying", reset, false },
	{ "a WRITE is acknowledged immediately", write_and_send, false },
};

static const struct test with_loss[] = {
	{ "requests that carry an ACK are lost", lost, false },
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
