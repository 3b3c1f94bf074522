// SPDX-License-Identifier: GPL-2.0
/*
 * Effects of each kind of injected fault on a program.  Both ends are in this process.
 * verbs_test.h describes the printed results.
 *
 *   fault [PART-OF-A-NAME]	run the tests whose names contain the argument (all)
 *   fault trace		traffic whose packets are always the same; fault.sh checks them
 *   fault regions		registers five regions
 */
#include "verbs_test.h"

#define LEN		3000	/* three packets with an MTU of 1024 */

/* ---- rules ---- */

/* The file that nhca-fault reads and writes; direct access takes less time. */
static FILE *faults(const char *mode)
{
	char path[256];

	snprintf(path, sizeof(path), "/sys/kernel/debug/nhca/%s/faults", getenv("RDMA_DEV"));
	return fopen(path, mode);
}

static bool command(const char *words)
{
	FILE *f = faults("w");
	bool good;

	REQUIRE(f, "no file of faults: %m");
	good = write(fileno(f), words, strlen(words)) == (ssize_t)strlen(words);
	if (!good)
		fail("%s: %m", words);
	fclose(f);
	return good;
}

static bool no_rules(void)
{
	return command("clear");
}

/* Replace all rules by this one. */
__attribute__((format(printf, 1, 2)))
static bool rule(const char *format, ...)
{
	char words[256] = "add ";
	va_list args;

	va_start(args, format);
	vsnprintf(words + 4, sizeof(words) - 4, format, args);
	va_end(args);
	return no_rules() && command(words);
}

/* Return: how often the only rule has applied, or -1 without a rule. */
static long hits(void)
{
	FILE *f = faults("r");
	char line[512];
	long n = -1;

	if (f && fgets(line, sizeof(line), f) && strstr(line, ": hit "))
		n = atol(strstr(line, ": hit ") + 6);
	if (f)
		fclose(f);
	return n;
}

/* ---- traffic ---- */

/*
 * Reset and reconnect the pair, with a local ACK timeout of 4.096 us << @timeout, @retries retries
 * and two RNR retries.
 */
static bool patience(struct pair *p, uint8_t timeout, uint8_t retries)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS, .sq_psn = 0xfffff0, .timeout = timeout, .retry_cnt = retries,
		.rnr_retry = 2, .max_rd_atomic = 8,
	};
	struct ibv_qp *qps[] = { p->a.qp, p->b.qp };
	struct completion c;

	for (int i = 0; i < 2; i++)
		if (!modify(qps[i], IBV_QPS_RESET, 0))
			return false;
	while (poll_one(p->a.cq, &c) || poll_one(p->b.cq, &c))
		;
	async_event(-1, 0);
	for (int i = 0; i < 2; i++) {
		if (!modify(qps[i], IBV_QPS_INIT, 0) ||
		    !modify(qps[i], IBV_QPS_RTR, qps[!i]->qp_num))
			return false;
		VERB(ibv_modify_qp(qps[i], &attr, IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT |
				   IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC));
	}
	return true;
}

/* Reset and reconnect the pair, with a timeout of 1 ms, two retries and two RNR retries. */
static bool impatient(struct pair *p)
{
	return patience(p, 8, 2);
}

static bool impatient_pair(struct pair *p)
{
	return make_pair(p, (struct pair_opts){}) && impatient(p);
}

/* Post one request on a, which must complete with status @want. */
static bool rdma(struct pair *p, enum ibv_wr_opcode opcode, uint32_t len, enum ibv_wc_status want)
{
	struct ibv_sge sge = sge_of(&p->a, 0, len);
	struct ibv_send_wr wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = opcode, .send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { (uintptr_t)p->b.buf, p->b.mr->rkey },
	};
	struct ibv_send_wr *bad;
	struct completion c;

	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = (uintptr_t)p->b.buf;
		wr.wr.atomic.rkey = p->b.mr->rkey;
		wr.wr.atomic.compare_add = 1;
	}
	VERB(ibv_post_send(p->a.qp, &wr, &bad));
	if (!wait_any(p->a.cq, &c))
		return false;
	REQUIRE(c.status == want, "%s instead of %s", ibv_wc_status_str(c.status),
		ibv_wc_status_str(want));
	return true;
}

static bool write_arrives(struct pair *p, uint32_t len, uint32_t seed)
{
	fill(p->a.buf, len, seed);
	memset(p->b.buf, 0, len);
	return rdma(p, IBV_WR_RDMA_WRITE, len, IBV_WC_SUCCESS) && filled(p->b.buf, len, seed);
}

static bool send_arrives(struct pair *p, uint32_t len, uint32_t seed)
{
	struct completion c;

	fill(p->a.buf, len, seed);
	return post_recv(p, seed, 0, len) && rdma(p, IBV_WR_SEND, len, IBV_WC_SUCCESS) &&
	       wait_for(p->b.cq, seed, IBV_WC_RECV, &c) && filled(p->b.buf, len, seed);
}

static bool state_is(struct ibv_qp *qp, enum ibv_qp_state want)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	/* the event may come before the new state is visible to a query */
	for (int i = 0; i < 100; i++) {
		VERB(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init));
		if (attr.qp_state == want)
			return true;
		usleep(1000);
	}
	return fail("QP state %d instead of %d", attr.qp_state, want);
}

/* ---- packets ---- */

static bool lost_for_good(struct pair *p)
{
	/* rules that apply once for each transmission of a WRITE of @len bytes */
	static const struct { const char *text; uint32_t len; } rules[] = {
		{ "drop", 40 }, { "drop opcode write", 40 },
		{ "drop receive opcode rc_rdma_write_last", LEN },
		{ "drop send opcode acknowledge", 40 }, { "drop receive opcode response", 40 },
		{ "corrupt opcode write", 40 }, { "corrupt receive opcode write", 40 },
	};

	if (!impatient_pair(p))
		return false;
	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
		if (!rule("%s", rules[i].text))
			return false;
		if (!rdma(p, IBV_WR_RDMA_WRITE, rules[i].len, IBV_WC_RETRY_EXC_ERR))
			return fail("%s: %s", rules[i].text, strdup(reason));
		/* the first transmission and both retries; probes may add transmissions */
		REQUIRE(hits() >= 3, "%s: hit %ld times", rules[i].text, hits());
		if (!no_rules() || !impatient(p) || !write_arrives(p, LEN, i))
			return false;
	}
	return true;
}

/*
 * IBTA 9.7.6.1.3: a peer that does not answer is reported after at most four local ACK timeouts for
 * each try. Probes, which a connection sends after it has measured its round trip, do not extend
 * this time.
 */
static bool lost_in_time(struct pair *p)
{
	static const struct { uint8_t timeout, retries; } rows[] = {
		{ 14, 7 }, { 16, 2 }, { 17, 1 }, { 17, 0 },
	};
	uint64_t begun, took, unit;

	if (!make_pair(p, (struct pair_opts){}))
		return false;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		unit = (4096ULL << rows[i].timeout) * (rows[i].retries + 1);
		if (!patience(p, rows[i].timeout, rows[i].retries) ||
		    !write_arrives(p, LEN, i) || !rule("drop opcode write"))
			return false;
		begun = clock_ns(CLOCK_MONOTONIC);
		if (!rdma(p, IBV_WR_RDMA_WRITE, LEN, IBV_WC_RETRY_EXC_ERR) || !no_rules())
			return false;
		took = clock_ns(CLOCK_MONOTONIC) - begun;
		printf("# timeout %u, retry_cnt %u: %.2f s, bound %.2f s\n", rows[i].timeout,
		       rows[i].retries, took / 1e9, 4 * unit / 1e9);
		REQUIRE(took >= unit && took <= 4 * unit, "timeout %u, retry_cnt %u: %.2f s",
			rows[i].timeout, rows[i].retries, took / 1e9);
	}
	return true;
}

static bool lost_once(struct pair *p)
{
	/*
	 * The rule for responses is used with a message of one packet. With several packets, a
	 * later ACK could acknowledge the same packets as the lost ACK.
	 */
	static const struct { const char *text; uint32_t len; } rules[] = {
		{ "drop times 1", LEN }, { "drop receive times 1", LEN },
		{ "drop receive opcode response times 1", 40 }, { "drop every 2 times 2", LEN },
		{ "corrupt times 1", LEN }, { "corrupt receive times 1", LEN },
		{ "corrupt every 2 seed 3 times 2", LEN },
		{ "corrupt receive opcode rdma_write_middle times 1", LEN },
	};
	long before;

	if (!make_pair(p, (struct pair_opts){}))
		return false;
	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
		before = counter("retransmit_pkts");
		if (!rule("%s", rules[i].text) || !write_arrives(p, rules[i].len, i))
			return fail("%s: %s", rules[i].text, strdup(reason));
		REQUIRE(hits() >= 1, "%s: hit %ld times", rules[i].text, hits());
		REQUIRE(counter("retransmit_pkts") > before, "%s: nothing was retransmitted",
			rules[i].text);
	}
	return no_rules();
}

static bool damaged_is_noticed(struct pair *p)
{
	long before = counter("rx_icrc_encapsulated");

	/* 64 seeds hit different bits of headers, payload and ICRC */
	if (!make_pair(p, (struct pair_opts){}) || !patience(p, 12, 7))
		return false;
	for (int i = 0; i < 64; i++)
		if (!rule("corrupt receive times 1 seed %d", i) || !write_arrives(p, 40, i) ||
		    hits() != 1)
			return fail("seed %d: %s", i, strdup(reason));
	REQUIRE(counter("rx_icrc_encapsulated") == before + 64, "%ld of 64 were detected",
		counter("rx_icrc_encapsulated") - before);
	return no_rules();
}

static bool twice(struct pair *p)
{
	static const char * const ways[] = { "send", "receive" };
	struct completion c;
	long before;

	if (!make_pair(p, (struct pair_opts){}))
		return false;
	for (int way = 0; way < 2; way++) {
		before = counter("duplicate_request");
		if (!rule("duplicate %s opcode send", ways[way]))
			return false;
		for (int i = 0; i < 20; i++)
			if (!send_arrives(p, LEN, i))
				return false;
		REQUIRE(hits() >= 60, "%s: hit %ld times", ways[way], hits());
		REQUIRE(counter("duplicate_request") >= before + 60, "%s: %ld duplicates", ways[way],
			counter("duplicate_request") - before);
		REQUIRE(!poll_one(p->b.cq, &c), "%s: received twice", ways[way]);
	}
	return no_rules();
}

static bool overtaken(struct pair *p)
{
	static const char * const ways[] = { "send", "receive" };
	long before;

	if (!make_pair(p, (struct pair_opts){}))
		return false;
	for (int way = 0; way < 2; way++) {
		before = counter("out_of_seq_request");
		if (!rule("reorder 2 %s opcode rdma_write_middle every 5", ways[way]) ||
		    !write_arrives(p, 30000, way))
			return false;
		REQUIRE(hits() >= 5, "%s: hit %ld times", ways[way], hits());
		REQUIRE(counter("out_of_seq_request") > before, "%s: none out of order", ways[way]);
		/* no packet follows, so the reordered packet is sent or received after 20 ms */
		if (!rule("reorder 64 %s opcode rdma_write_only times 1", ways[way]) ||
		    !write_arrives(p, 100, 9))
			return false;
		REQUIRE(hits() == 1, "%s: hit %ld times", ways[way], hits());
	}
	return no_rules();
}

/* A datagram is not retransmitted, so if it arrives, it was delayed and not lost. */
static bool late(struct pair *p)
{
	static const char * const ways[] = { "send", "receive" };
	struct ibv_sge sge;
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED }, *bad;
	struct ibv_ah_attr attr = {
		.is_global = 1, .port_num = 1,
		.grh = { .dgid = dev.gid, .sgid_index = dev.gid_index, .hop_limit = 64 },
	};
	struct completion c;
	uint64_t begin;

	if (!make_pair(p, (struct pair_opts){ .type = IBV_QPT_UD }))
		return false;
	p->ah = ibv_create_ah(dev.pd, &attr);
	REQUIRE(p->ah, "ibv_create_ah: %m");
	sge = sge_of(&p->a, 0, 100);
	wr.wr.ud.ah = p->ah;
	wr.wr.ud.remote_qpn = p->b.qp->qp_num;
	wr.wr.ud.remote_qkey = QKEY;
	for (int way = 0; way < 2; way++) {
		if (!rule("delay 200 %s opcode ud_send_only", ways[way]) ||
		    !post_recv(p, 1, 0, 1000))
			return false;
		begin = clock_ns(CLOCK_MONOTONIC);
		VERB(ibv_post_send(p->a.qp, &wr, &bad));
		if (!wait_any(p->a.cq, &c) || !wait_any(p->b.cq, &c))
			return false;
		REQUIRE(c.status == IBV_WC_SUCCESS && c.byte_len == 140, "%s: %s, %u bytes",
			ways[way], ibv_wc_status_str(c.status), c.byte_len);
		REQUIRE(clock_ns(CLOCK_MONOTONIC) - begin >= 200000000, "%s: after %lu ns", ways[way],
			(unsigned long)(clock_ns(CLOCK_MONOTONIC) - begin));
	}
	return no_rules();
}

/* ---- answers ---- */

static bool refused(struct pair *p)
{
	static const struct {
		const char *nak;
		enum ibv_wc_status status;
		enum ibv_event_type event;
	} naks[] = {
		{ "invalid", IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR },
		{ "access", IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR },
		{ "operational", IBV_WC_REM_OP_ERR, IBV_EVENT_QP_FATAL },
	};
	static const enum ibv_wr_opcode ops[] = {
		IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD,
	};

	if (!impatient_pair(p))
		return false;
	for (int i = 0; i < 3; i++) {
		for (int op = 0; op < 3; op++) {
			/* the fault hits the second request */
			if (!rule("nak %s opcode request every 2 times 1", naks[i].nak) ||
			    !rdma(p, ops[op], 8, IBV_WC_SUCCESS) ||
			    !rdma(p, ops[op], 8, naks[i].status))
				return fail("%s: %s", naks[i].nak, strdup(reason));
			REQUIRE(async_event(naks[i].event, 5000), "%s: no event", naks[i].nak);
			if (!state_is(p->a.qp, IBV_QPS_ERR) || !state_is(p->b.qp, IBV_QPS_ERR) ||
			    !impatient(p))
				return false;
		}
	}
	return no_rules();
}

/*
 * A READ is followed by a WRITE that is refused.  The READ response is lost, and a responder in the
 * error state cannot repeat it. So the READ completes with the error of the WRITE's NAK.
 */
static bool answer_and_refusal_lost(struct pair *p)
{
	struct ibv_sge sge = sge_of(&p->a, 0, 8);
	struct ibv_send_wr wr[2] = {
		{ .wr_id = 1, .next = &wr[1], .opcode = IBV_WR_RDMA_READ },
		{ .wr_id = 2, .opcode = IBV_WR_RDMA_WRITE },
	};
	struct ibv_send_wr *bad;
	struct completion c;

	for (int i = 0; i < 2; i++) {
		wr[i].sg_list = &sge;
		wr[i].num_sge = 1;
		wr[i].send_flags = IBV_SEND_SIGNALED;
		wr[i].wr.rdma.remote_addr = (uintptr_t)p->b.buf;
		wr[i].wr.rdma.rkey = p->b.mr->rkey;
	}
	if (!rule("nak access opcode write times 1") ||
	    !command("add drop send opcode read_response times 1"))
		return false;
	VERB(ibv_post_send(p->a.qp, wr, &bad));
	if (!wait_any(p->a.cq, &c))
		return false;
	REQUIRE(c.wr_id == 1 && c.status == IBV_WC_REM_ACCESS_ERR, "READ without a response: %s",
		ibv_wc_status_str(c.status));
	if (!wait_any(p->a.cq, &c))
		return false;
	REQUIRE(c.wr_id == 2 && c.status == IBV_WC_WR_FLUSH_ERR, "the WRITE after it: %s",
		ibv_wc_status_str(c.status));
	return true;
}

/*
 * The NAK of a responder is lost. The responder, which is in the error state, must repeat the NAK
 * when the requester retransmits. Otherwise the requester would not get the reason.
 */
static bool refusal_lost(struct pair *p)
{
	static const struct {
		const char *nak;
		enum ibv_wc_status status;
	} naks[] = {
		{ "invalid", IBV_WC_REM_INV_REQ_ERR }, { "access", IBV_WC_REM_ACCESS_ERR },
		{ "operational", IBV_WC_REM_OP_ERR },
	};
	static const struct {
		enum ibv_wr_opcode opcode;
		uint32_t len;
	} ops[] = {
		{ IBV_WR_RDMA_WRITE, LEN }, { IBV_WR_RDMA_READ, LEN }, { IBV_WR_SEND, 8 },
		{ IBV_WR_ATOMIC_FETCH_AND_ADD, 8 },
	};

	if (!impatient_pair(p))
		return false;
	for (int i = 0; i < 3; i++) {
		for (size_t op = 0; op < sizeof(ops) / sizeof(ops[0]); op++) {
			if (!rule("nak %s opcode request times 1", naks[i].nak) ||
			    !command("add drop send opcode acknowledge times 2") ||
			    !rdma(p, ops[op].opcode, ops[op].len, naks[i].status))
				return fail("%s, opcode %d: %s", naks[i].nak, ops[op].opcode,
					    strdup(reason));
			if (!state_is(p->a.qp, IBV_QPS_ERR) || !state_is(p->b.qp, IBV_QPS_ERR) ||
			    !impatient(p))
				return false;
		}
	}
	if (!answer_and_refusal_lost(p) || !impatient(p))
		return false;
	/* a QP that its owner has moved to the error state sends no NAK */
	if (!no_rules() || !modify(p->b.qp, IBV_QPS_ERR, 0) ||
	    !rdma(p, IBV_WR_RDMA_WRITE, LEN, IBV_WC_RETRY_EXC_ERR))
		return false;
	/* the QP does not repeat a NAK from before its reset */
	return impatient(p) && write_arrives(p, LEN, 1) && modify(p->b.qp, IBV_QPS_ERR, 0) &&
	       rdma(p, IBV_WR_RDMA_WRITE, LEN, IBV_WC_RETRY_EXC_ERR);
}

static bool out_of_sequence(struct pair *p)
{
	long before = counter("rcvd_seq_err");

	if (!impatient_pair(p) || !rule("nak sequence opcode rdma_write_middle times 2") ||
	    !write_arrives(p, LEN, 1))
		return false;
	REQUIRE(counter("rcvd_seq_err") == before + 2, "%ld NAKs",
		counter("rcvd_seq_err") - before);
	return rule("nak sequence") && rdma(p, IBV_WR_RDMA_WRITE, LEN, IBV_WC_RETRY_EXC_ERR) &&
	       no_rules();
}

static bool not_ready(struct pair *p)
{
	long before = counter("rcvd_rnr_err");

	if (!impatient_pair(p) || !rule("rnr times 2") || !send_arrives(p, LEN, 1))
		return false;
	REQUIRE(counter("rcvd_rnr_err") == before + 2, "%ld RNR NAKs",
		counter("rcvd_rnr_err") - before);
	/* a WRITE needs no receive */
	if (!rule("rnr") || !write_arrives(p, LEN, 2))
		return false;
	REQUIRE(!hits(), "the rule has applied to a WRITE");
	return post_recv(p, 1, 0, LEN) && rdma(p, IBV_WR_SEND, LEN, IBV_WC_RNR_RETRY_EXC_ERR) &&
	       no_rules();
}

/* ---- faults of CQs, links and registrations ---- */

static bool no_room(struct pair *p)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = { .wr_id = 5, .sg_list = &sge, .num_sge = 1,
				  .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED };
	struct ibv_send_wr *bad;
	struct completion c;

	if (!impatient_pair(p) || !rule("cq qp %u every 2 times 1", p->a.qp->qp_num) ||
	    !write_arrives(p, LEN, 1))
		return false;
	sge = sge_of(&p->a, 0, 8);
	wr.wr.rdma.remote_addr = (uintptr_t)p->b.buf;
	wr.wr.rdma.rkey = p->b.mr->rkey;
	VERB(ibv_post_send(p->a.qp, &wr, &bad));
	REQUIRE(async_event(IBV_EVENT_CQ_ERR, 5000), "no IBV_EVENT_CQ_ERR");
	REQUIRE(async_event(IBV_EVENT_QP_FATAL, 5000), "no IBV_EVENT_QP_FATAL");
	REQUIRE(!poll_one(p->a.cq, &c), "a completion of request %lu", (unsigned long)c.wr_id);
	return state_is(p->a.qp, IBV_QPS_ERR) && state_is(p->b.qp, IBV_QPS_RTS) && no_rules();
}

static bool link_flap(struct pair *p)
{
	struct ibv_port_attr port;

	if (!make_pair(p, (struct pair_opts){}))
		return false;
	async_event(-1, 0);
	if (!rule("link 500 now"))
		return false;
	REQUIRE(async_event(IBV_EVENT_PORT_ERR, 5000), "no IBV_EVENT_PORT_ERR");
	VERB(ibv_query_port(dev.ctx, 1, &port));
	REQUIRE(port.state == IBV_PORT_DOWN, "port state %d", port.state);
	REQUIRE(async_event(IBV_EVENT_PORT_ACTIVE, 5000), "no IBV_EVENT_PORT_ACTIVE");
	VERB(ibv_query_port(dev.ctx, 1, &port));
	REQUIRE(port.state == IBV_PORT_ACTIVE, "port state %d", port.state);
	REQUIRE(hits() == -1, "a rule is left");
	if (!write_arrives(p, LEN, 1))
		return false;

	/*
	 * the second packet takes the link down; its message must complete when the link is up
	 * again
	 */
	if (!rule("link 100 opcode write every 2 times 1") || !write_arrives(p, LEN, 2))
		return false;
	REQUIRE(async_event(IBV_EVENT_PORT_ERR, 5000), "no IBV_EVENT_PORT_ERR by a packet");
	REQUIRE(async_event(IBV_EVENT_PORT_ACTIVE, 5000), "no IBV_EVENT_PORT_ACTIVE by a packet");
	/* the link stays down until the requester has used up its retries */
	if (!impatient(p) || !rule("link 3000 opcode write times 1") ||
	    !rdma(p, IBV_WR_RDMA_WRITE, LEN, IBV_WC_RETRY_EXC_ERR))
		return false;
	REQUIRE(async_event(IBV_EVENT_PORT_ACTIVE, 10000), "the link stays down");
	return no_rules();
}

static bool no_region(struct pair *p)
{
	static const struct {
		const char *name;
		int number;
	} errors[] = { { "ENOMEM", ENOMEM }, { "EFAULT", EFAULT }, { "EAGAIN", EAGAIN } };
	static char buf[4096];
	struct ibv_mr *mr;

	(void)p;
	for (int i = 0; i < 3; i++) {
		if (!rule("mr %s every 3", errors[i].name))
			return false;
		for (int n = 1; n <= 7; n++) {
			errno = 0;
			mr = ibv_reg_mr(dev.pd, buf, sizeof(buf), IBV_ACCESS_LOCAL_WRITE);
			REQUIRE(!mr == !(n % 3) && (mr || errno == errors[i].number),
				"%s: registration %d: %m", errors[i].name, n);
			if (mr)
				VERB(ibv_dereg_mr(mr));
		}
	}
	return no_rules();
}

/* ---- which QPs and opcodes a rule hits ---- */

static bool for_one_only(struct pair *p)
{
	struct pair other = {};
	bool good;

	if (!impatient_pair(p) || !make_pair(&other, (struct pair_opts){}))
		return false;
	good = rule("drop qp %u opcode write", p->a.qp->qp_num) &&
	       write_arrives(&other, LEN, 1) && !hits() &&
	       rdma(p, IBV_WR_RDMA_READ, LEN, IBV_WC_SUCCESS) &&
	       rdma(p, IBV_WR_ATOMIC_FETCH_AND_ADD, 8, IBV_WC_SUCCESS) &&
	       send_arrives(p, LEN, 2) && !hits() &&
	       rdma(p, IBV_WR_RDMA_WRITE, LEN, IBV_WC_RETRY_EXC_ERR) && no_rules();
	return pair_free(&other) && good;
}

static bool not_past_the_rules(struct pair *p)
{
	long before;

	if (!make_pair(p, (struct pair_opts){ .size = 1 << 20 }))
		return false;
	for (int i = 0; i < 8; i++)
		if (!write_arrives(p, 1000000, i))
			return false;
	before = counter("same_host_bytes");
	REQUIRE(before > 1000000, "the same-host path is not open");
	if (!rule("drop receive qp %u opcode rdma_write_middle every 400", p->b.qp->qp_num) ||
	    !write_arrives(p, 1000000, 9))
		return false;
	REQUIRE(hits() >= 2, "hit %ld times", hits());
	REQUIRE(counter("same_host_bytes") == before, "bytes moved without packets");
	if (!no_rules() || !write_arrives(p, 1000000, 10))
		return false;
	REQUIRE(counter("same_host_bytes") > before, "the same-host path stays closed");
	return true;
}

/* ---- the trace ---- */

/* One request at a time, so that only the faults decide which packets are sent, and when. */
static bool trace(struct pair *p)
{
	if (!make_pair(p, (struct pair_opts){}))
		return false;
	for (int i = 0; i < 40; i++) {
		if (!write_arrives(p, LEN, i) || !send_arrives(p, 100 * i, i) ||
		    !rdma(p, IBV_WR_RDMA_READ, LEN, IBV_WC_SUCCESS) ||
		    !rdma(p, IBV_WR_ATOMIC_FETCH_AND_ADD, 8, IBV_WC_SUCCESS))
			return fail("round %d: %s", i, strdup(reason));
	}
	return true;
}

/* Print how many of five registrations fail. */
static bool regions(struct pair *p)
{
	static char buf[4096];
	int failed = 0;

	(void)p;
	for (int i = 0; i < 5; i++)
		failed += !ibv_reg_mr(dev.pd, buf, sizeof(buf), IBV_ACCESS_LOCAL_WRITE);
	printf("# %d failed\n", failed);
	return true;
}

int main(int argc, char **argv)
{
	static const struct test traces[] = { { "trace", trace, false } };
	static const struct test registrations[] = { { "regions", regions, false } };
	static const struct test tests[] = {
		{ "lost permanently: retry exceeded", lost_for_good, false },
		{ "lost permanently: the error comes in time", lost_in_time, false },
		{ "lost once: retransmitted", lost_once, false },
		{ "every corrupted bit is detected", damaged_is_noticed, false },
		{ "duplicates: executed once", twice, false },
		{ "reordered: arrives in order", overtaken, false },
		{ "delayed: arrives late", late, false },
		{ "NAKs: statuses, events and states", refused, false },
		{ "NAK lost: repeated on request", refusal_lost, false },
		{ "NAK of a sequence error: sent again, or retry exceeded", out_of_sequence, false },
		{ "RNR NAK: retransmitted, or RNR retry exceeded", not_ready, false },
		{ "CQ overflow: events, and the QP goes to error", no_room, false },
		{ "link flap: events and port states", link_flap, false },
		{ "registration: the errno of the rule", no_region, false },
		{ "one QP and one opcode only", for_one_only, false },
		{ "the same-host path obeys the rules", not_past_the_rules, false },
	};

	if (argc > 1 && !strcmp(argv[1], "trace"))
		return run_tests(traces, 1, NULL);
	if (argc > 1 && !strcmp(argv[1], "regions"))
		return run_tests(registrations, 1, NULL);
	return run_tests(tests, sizeof(tests) / sizeof(tests[0]), argc > 1 ? argv[1] : NULL);
}
