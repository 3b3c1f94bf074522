// SPDX-License-Identifier: GPL-2.0
/*
 * Tests when a requester requests acknowledgments.  Both ends are in this process and communicate
 * by packets.  verbs_test.h describes the printed results.
 *
 *   acks [PART-OF-A-NAME]		run the tests whose names contain the argument (all)
 *   acks lost			only the test that needs a fault set by acks.sh
 */
#include "verbs_test.h"

#define TRIES	5
#define MANY	64
#define SHORT	64
#define LONG	2000	/* two packets with an MTU of 1024 */
#define WINDOW	(16 * 1024)	/* bytes that a new queue pair may have unacknowledged (cwnd) */

/* ---- counters of the device ---- */

/* Return: the number of retransmissions that a timer has caused. */
static long timers(void)
{
	return counter("early_retransmits") + counter("local_ack_timeout_err");
}

/* ---- requests ---- */

/* Post a WRITE from a to b, which uses no receive of b. */
static bool write_to(struct pair *p, uint64_t wr_id, size_t off, uint32_t len, int flags)
{
	struct ibv_sge sge = sge_of(&p->a, off, len);
	struct ibv_send_wr wr = {
		.wr_id = wr_id, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
		.send_flags = flags,
		.wr.rdma = { (uintptr_t)p->b.buf + off, p->b.mr->rkey },
	};
	struct ibv_send_wr *bad;

	VERB(ibv_post_send(p->a.qp, &wr, &bad));
	return true;
}

/*
 * Post MANY requests of which only the last is signaled, and wait for the last.
 * @sent: packets of both ends; @again: packets sent twice.
 */
static bool silent_ones(struct pair *p, long *sent, long *again)
{
	struct completion c;

	*again = counter("retransmit_pkts");
	*sent = counter("sent_pkts");
	for (int i = 0; i < MANY; i++)
		if (!write_to(p, i, i * SHORT, SHORT, i + 1 < MANY ? 0 : IBV_SEND_SIGNALED))
			return false;
	if (!wait_for(p->a.cq, MANY - 1, IBV_WC_RDMA_WRITE, &c))
		return false;
	*sent = counter("sent_pkts") - *sent;
	*again = counter("retransmit_pkts") - *again;
	return true;
}

/*
 * MANY requests may cause MANY / 2 acknowledgments at most.  Try several times: in a try in which
 * the machine stalls, a timer may also request an acknowledgment.
 */
static bool together(struct pair *p)
{
	long sent, again;

	if (!make_pair(p, (struct pair_opts){ .wr = 4 * MANY }))
		return false;
	for (int i = 0; i < TRIES; i++) {
		fill(p->a.buf, MANY * SHORT, i);
		if (!silent_ones(p, &sent, &again) || !filled(p->b.buf, MANY * SHORT, i))
			return false;
		REQUIRE(sent > MANY, "%ld packets: the test needs a path that uses packets", sent);
		if (sent <= MANY + MANY / 2 && !again)
			return true;
	}
	return fail("%ld packets for %d requests, %ld of them sent twice", sent, MANY, again);
}

/* Each request follows the completion of the previous one, so each needs an acknowledgment. */
static bool each(struct pair *p)
{
	struct completion c;
	long before, sent;

	if (!make_pair(p, (struct pair_opts){}))
		return false;
	before = counter("sent_pkts");
	for (int i = 0; i < MANY; i++)
		if (!write_to(p, i, 0, SHORT, IBV_SEND_SIGNALED) ||
		    !wait_for(p->a.cq, i, IBV_WC_RDMA_WRITE, &c))
			return false;
	sent = counter("sent_pkts") - before;
	REQUIRE(sent >= 2 * MANY, "%ld packets for %d requests", sent, MANY);
	return true;
}

/*
 * Post an unsignaled WRITE and call @waits, which waits for an operation that needs the WRITE to be
 * acknowledged.  The operation must end before a timer expires.  Try several times, each time with
 * a new pair, because a timer may expire first if the machine stalls.
 */
static bool by_no_timer(struct pair *p, struct pair_opts opts, bool (*waits)(struct pair *p))
{
	long before;

	for (int i = 0; i < TRIES; i++) {
		if (i && !pair_free(p))
			return false;
		*p = (struct pair){};
		if (!make_pair(p, opts))
			return false;
		before = timers();
		if (!write_to(p, 1, 0, LONG, 0) || !waits(p))
			return false;
		if (timers() == before)
			return true;
	}
	return fail("the operation ended only after a timer had expired, in all %d tries", TRIES);
}

static bool bind_waits(struct pair *p)
{
	struct ibv_mw *mw = ibv_alloc_mw(dev.pd, IBV_MW_TYPE_2);
	struct ibv_send_wr *bad, wr = { .wr_id = 2, .opcode = IBV_WR_BIND_MW,
					.send_flags = IBV_SEND_SIGNALED };
	struct completion c;

	REQUIRE(mw, "ibv_alloc_mw: %m");
	wr.bind_mw.mw = mw;
	wr.bind_mw.rkey = ibv_inc_rkey(mw->rkey);
	wr.bind_mw.bind_info = (struct ibv_mw_bind_info){
		.mr = p->a.mr, .addr = (uintptr_t)p->a.buf, .length = 100,
		.mw_access_flags = IBV_ACCESS_REMOTE_READ,
	};
	VERB(ibv_post_send(p->a.qp, &wr, &bad));
	if (!wait_for(p->a.cq, 2, IBV_WC_BIND_MW, &c))
		return false;
	VERB(ibv_dealloc_mw(mw));
	return true;
}

static bool local(struct pair *p)
{
	return by_no_timer(p, (struct pair_opts){ .more_access = IBV_ACCESS_MW_BIND }, bind_waits);
}

/*
 * Repeated binds after unsignaled WRITEs may cause one retransmission at most, not one for each
 * bind.
 */
static bool binds(struct pair *p)
{
	long again = 0;

	if (!make_pair(p, (struct pair_opts){ .more_access = IBV_ACCESS_MW_BIND }))
		return false;
	for (int i = 0; i < TRIES; i++) {
		again = counter("retransmit_pkts");
		for (int n = 0; n < MANY / 4; n++)
			if (!write_to(p, 1, 0, LONG, 0) || !bind_waits(p))
				return false;
		again = counter("retransmit_pkts") - again;
		if (again <= 1)
			return true;
	}
	return fail("%ld packets were sent twice for %d binds", again, MANY / 4);
}

static bool read_waits(struct pair *p)
{
	struct ibv_sge sge = sge_of(&p->a, 0, WINDOW);
	struct ibv_send_wr wr = { .wr_id = 2, .sg_list = &sge, .num_sge = 1,
				  .opcode = IBV_WR_RDMA_READ,
				  .wr.rdma = { (uintptr_t)p->b.buf, p->b.mr->rkey } };

	return request_ends(p, &wr, IBV_WC_SUCCESS, "READ");
}

static bool window(struct pair *p)
{
	return by_no_timer(p, (struct pair_opts){}, read_waits);
}

static bool error_waits(struct pair *p)
{
	struct ibv_sge sge = sge_of(&p->a, 0, 8);
	struct ibv_send_wr wr = { .wr_id = 2, .sg_list = &sge, .num_sge = 1,
				  .opcode = IBV_WR_RDMA_WRITE,
				  .wr.rdma = { (uintptr_t)p->b.buf, p->b.mr->rkey } };

	sge.lkey ^= 0xff;
	return request_ends(p, &wr, IBV_WC_LOC_PROT_ERR, "WRITE with an unknown L_Key");
}

static bool error(struct pair *p)
{
	return by_no_timer(p, (struct pair_opts){}, error_waits);
}

static bool drain_waits(struct pair *p)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1 };

	VERB(ibv_modify_qp(p->a.qp, &attr, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY));
	REQUIRE(async_event(IBV_EVENT_SQ_DRAINED, 5000), "no IBV_EVENT_SQ_DRAINED");
	return true;
}

static bool drain(struct pair *p)
{
	return by_no_timer(p, (struct pair_opts){}, drain_waits);
}

/*
 * The only packet of an unsignaled request is lost, by a fault that acks.sh has set. The requester
 * must send the packet again, although no consumer waits for the request.
 */
static bool lost(struct pair *p)
{
	uint64_t end = clock_ns(CLOCK_MONOTONIC) + wait_s * 1000000000ULL;

	if (!make_pair(p, (struct pair_opts){}))
		return false;
	fill(p->a.buf, SHORT, 3);
	if (!write_to(p, 1, 0, SHORT, 0))
		return false;
	while (memcmp(p->a.buf, p->b.buf, SHORT)) {
		REQUIRE(clock_ns(CLOCK_MONOTONIC) < end, "the WRITE has not arrived in %u s",
			wait_s);
		usleep(1000);
	}
	return true;
}

static const struct test tests[] = {
	{ "unsignaled requests are acknowledged together", together, false },
	{ "signaled requests are acknowledged one by one", each, false },
	{ "a bind after an unsignaled request", local, false },
	{ "repeated binds after unsignaled requests", binds, false },
	{ "a READ that has to wait for room in the window", window, false },
	{ "a local error after an unsignaled request", error, false },
	{ "SQD: the send queue drains after an unsignaled request", drain, false },
};

static const struct test with_loss[] = {
	{ "an unsignaled request whose only packet is lost", lost, false },
};

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "lost"))
		return run_tests(with_loss, 1, NULL);
	return run_tests(tests, sizeof(tests) / sizeof(tests[0]), argv[1]);
}
