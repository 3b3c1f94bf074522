// SPDX-License-Identifier: GPL-2.0
/*
 * verify_xfer: moves messages over N queue pairs and checks every byte.
 *
 *   server: verify_xfer [options]          client: verify_xfer [options] HOST
 *
 * The two sides meet on a TCP socket and work in rounds. Both sides prepare their memory. The
 * client (with -b both sides) posts up to a window of messages on each QP. Every byte of every
 * message that arrives is compared with a pattern that depends on its QP, number and offset. The
 * test also checks lengths, immediate values, results of atomics, and guard bytes after messages.
 * Sizes, numbers of SGEs, inlining, signaling and operations vary, unless an option fixes them.
 *
 * RC: all messages must arrive, once and in order.  UC and UD: messages may be lost or duplicated,
 * but those that are delivered must be right, and at least one must be delivered.  Options: xfer.h.
 */
#include <poll.h>
#include <sched.h>

#include "xfer.h"

#define SGES		3
#define QKEY		0x22334455
#define IDLE		0.5	/* seconds without a message until missing ones count as lost */

/* ---- queue pairs ---- */

static void open_device(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_port_attr port;
	struct ibv_device_attr attr;
	int i;

	must(list);
	for (i = 0; list[i]; i++)
		if (!opt.device || !strcmp(ibv_get_device_name(list[i]), opt.device))
			break;
	if (!list[i])
		die("no RDMA device %s", opt.device ? opt.device : "at all");
	must((context = ibv_open_device(list[i])));
	ibv_free_device_list(list);
	must(!ibv_query_port(context, 1, &port));
	must(!ibv_query_device(context, &attr));
	must(!ibv_query_gid(context, 1, opt.gid, &mine.gid));
	mine.mtu = opt.mtu ? (uint32_t)opt.mtu : port.active_mtu;
	mine.rd_atomic = attr.max_qp_rd_atom < 16 ? attr.max_qp_rd_atom : 16;
	must((pd = ibv_alloc_pd(context)));
}

static void agree(void)
{
	active = opt.host || opt.both;
	passive = !opt.host || opt.both;
	mine.qps = opt.qps;
	mine.messages = opt.messages;
	mine.window = opt.window;
	mine.size = opt.size;
	mine.type = opt.type;
	mine.op = opt.op;
	mine.both = opt.both;
	mine.fixed = opt.fixed;
	slots = opt.window * (opt.type == IBV_QPT_RC ? 1 : 2);
	stride = (opt.size + (opt.type == IBV_QPT_UD ? GRH : 0) + GUARD + 63) & ~63u;
	make_memory();
	exchange(&mine, &theirs, sizeof(mine));
	if (memcmp(&mine, &theirs, offsetof(struct hello, mtu)))
		die("the other side was started with other options");
	if (theirs.mtu < mine.mtu)
		mine.mtu = theirs.mtu;
	if (theirs.rd_atomic < mine.rd_atomic)
		mine.rd_atomic = theirs.rd_atomic;
	if (opt.type == IBV_QPT_UD && opt.size > 128u << mine.mtu)
		die("a datagram of %u bytes does not fit an MTU of %u", opt.size, 128u << mine.mtu);
}

static void make_qps(void)
{
	/* room for the receives and sends of a whole round, on either side */
	uint32_t entries = opt.qps * (opt.window + slots) + 1, q;
	struct ibv_qp_init_attr init = {
		.qp_type = opt.type,
		.cap = { .max_send_wr = opt.window, .max_recv_wr = slots,
			 .max_send_sge = SGES, .max_recv_sge = 2, .max_inline_data = INLINE },
	};

	if (opt.events)
		must((channel = ibv_create_comp_channel(context)));
	cq = ibv_create_cq(context, entries, NULL, channel, 0);
	if (!cq)
		die("cannot create a CQ of %u entries: %s", entries, strerror(errno));
	if (channel)
		must(!ibv_req_notify_cq(cq, 0));
	init.send_cq = cq;
	init.recv_cq = cq;
	must((flows = calloc(opt.qps, sizeof(*flows))));
	srandom(getpid() ^ time(NULL));
	for (q = 0; q < opt.qps; q++) {
		flows[q].qp = ibv_create_qp(pd, &init);
		if (!flows[q].qp)
			die("cannot create QP %u: %s", q, strerror(errno));
		flows[q].psn = random() & 0xffffff;
	}
}

static void modify(uint32_t q, struct ibv_qp_attr *attr, int mask)
{
	int error = ibv_modify_qp(flows[q].qp, attr, mask);

	if (error)
		die("QP %u to state %d: %s", q, attr->qp_state, strerror(error));
}

static void connect_qp(uint32_t q)
{
	struct ibv_ah_attr path = { .is_global = 1, .port_num = 1,
		.grh = { .dgid = theirs.gid, .sgid_index = opt.gid, .hop_limit = 64 } };
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	struct flow *flow = &flows[q];
	int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;

	if (opt.type == IBV_QPT_UD) {
		attr.qkey = QKEY;
		mask |= IBV_QP_QKEY;
	} else {
		attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
		if (opt.type == IBV_QPT_RC)
			attr.qp_access_flags |= IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
		mask |= IBV_QP_ACCESS_FLAGS;
	}
	modify(q, &attr, mask);

	attr = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTR, .ah_attr = path,
		.path_mtu = mine.mtu, .dest_qp_num = flow->peer_qpn, .rq_psn = flow->peer_psn,
		.max_dest_rd_atomic = mine.rd_atomic, .min_rnr_timer = 12 };
	mask = IBV_QP_STATE;
	if (opt.type != IBV_QPT_UD)
		mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	if (opt.type == IBV_QPT_RC)
		mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	modify(q, &attr, mask);

	attr = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS, .sq_psn = flow->psn,
		.timeout = opt.timeout, .retry_cnt = opt.retry, .rnr_retry = 7,
		.max_rd_atomic = mine.rd_atomic };
	mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
	if (opt.type == IBV_QPT_RC)
		mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			IBV_QP_MAX_QP_RD_ATOMIC;
	modify(q, &attr, mask);
	if (opt.type == IBV_QPT_UD)
		must((flow->ah = ibv_create_ah(pd, &path)));
}

static void connect_all(void)
{
	struct hello_qp ours, other;
	uint32_t q;

	for (q = 0; q < opt.qps; q++) {
		ours = (struct hello_qp){ flows[q].qp->qp_num, flows[q].psn };
		exchange(&ours, &other, sizeof(ours));
		flows[q].peer_qpn = other.qpn;
		flows[q].peer_psn = other.psn;
		connect_qp(q);
	}
}

/* ---- one round ---- */

/* Cut @size bytes into up to @parts pieces.  Return: the number of SGEs. */
static int cut(struct ibv_sge *sge, const struct area *area, uint64_t at, uint32_t size, int parts)
{
	uint32_t done = 0, step;
	int i;

	/* some devices take an SGE of 0 bytes as 2^31 bytes */
	if (!size)
		return 0;
	if (size < 9)
		parts = 1;
	for (i = 0; i < parts; i++) {
		step = i == parts - 1 ? size - done : (size - done) / 3;
		sge[i].addr = (uintptr_t)area->base + at + done;
		sge[i].length = step;
		sge[i].lkey = area->mr->lkey;
		done += step;
	}
	return parts;
}

static void post_receive(uint32_t q, uint32_t slot)
{
	struct ibv_sge sge[2];
	struct ibv_recv_wr wr = { .wr_id = (uint64_t)q << 32 | slot, .sg_list = sge }, *bad;
	uint32_t room = stride - GUARD;
	int error;

	wr.num_sge = cut(sge, &in, place(q, slot), room, opt.type == IBV_QPT_UD ? 1 : 1 + slot % 2);
	memset(in.base + place(q, slot) + room, GUARD_BYTE, GUARD);
	error = ibv_post_recv(flows[q].qp, &wr, &bad);
	if (error)
		die("QP %u: ibv_post_recv: %s", q, strerror(error));
	flows[q].posted++;
}

static void prepare_passive(uint32_t q)
{
	struct flow *flow = &flows[q];
	uint32_t k, slot, size;
	uint8_t *at;

	for (k = round_first; k < round_first + round_count; k++) {
		slot = k % opt.window;
		size = size_of(!opt.host, q, k);
		switch (op_of(k)) {
		case READ:
			fill(out.base + place(q, slot), seed(!opt.host, q, k), size);
			break;
		case ATOMIC:
			flow->peer_sum += addend(q, k);
			break;
		default:
			at = in.base + place(q, slot);
			if (opt.type != IBV_QPT_RC && op_of(k) == SEND)
				break;
			memset(at, 0, size);
			memset(at + size, GUARD_BYTE, GUARD);
		}
		if (takes_receive(k)) {
			flow->receives++;
			if (opt.type == IBV_QPT_RC)
				post_receive(q, slot);
		}
	}
	/* only once: a receive that was used is posted again when it completes */
	if (opt.type != IBV_QPT_RC && takes_receive(round_first))
		while (round_first == 0 && flow->posted < slots)
			post_receive(q, flow->posted);
}

static void prepare_active(uint32_t q)
{
	uint32_t k, slot, size;
	uint8_t *at;

	for (k = round_first; k < round_first + round_count; k++) {
		slot = k % opt.window;
		size = size_of(opt.host, q, k);
		if (op_of(k) == READ) {
			at = got.base + place(q, slot);
			memset(at, 0, size);
			memset(at + size, GUARD_BYTE, GUARD);
		} else if (op_of(k) != ATOMIC) {
			fill(from.base + place(q, slot), seed(opt.host, q, k), size);
		}
	}
}

static void post_one(uint32_t q, uint32_t k)
{
	uint32_t slot = k % opt.window, size = size_of(opt.host, q, k);
	struct flow *flow = &flows[q];
	struct ibv_sge sge[SGES];
	struct ibv_send_wr wr = { .wr_id = 1ULL << 63 | (uint64_t)q << 32 | k, .sg_list = sge,
				  .imm_data = htobe32(k) }, *bad;
	int error;

	switch (op_of(k)) {
	case SEND:
		/* the immediate value identifies an unreliable message to the receiver */
		wr.opcode = opt.type != IBV_QPT_RC || k & 8 ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND;
		break;
	case WRITE:
	case WRITE_IMM:
		wr.opcode = op_of(k) == WRITE ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_WRITE_WITH_IMM;
		wr.wr.rdma.remote_addr = theirs.in_addr + place(q, slot);
		wr.wr.rdma.rkey = theirs.in_rkey;
		break;
	case READ:
		wr.opcode = IBV_WR_RDMA_READ;
		wr.wr.rdma.remote_addr = theirs.out_addr + place(q, slot);
		wr.wr.rdma.rkey = theirs.out_rkey;
		break;
	default:
		wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
		wr.wr.atomic.remote_addr = theirs.counter_addr + q * 8;
		wr.wr.atomic.rkey = theirs.counter_rkey;
		wr.wr.atomic.compare_add = addend(q, k);
		if (k & 16) {
			/* add by a compare-and-swap that expects the right value */
			wr.opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
			wr.wr.atomic.compare_add = flow->sum;
			wr.wr.atomic.swap = flow->sum + addend(q, k);
		}
		flow->sum += addend(q, k);
	}
	if (opt.type == IBV_QPT_UD) {
		wr.wr.ud.ah = flow->ah;
		wr.wr.ud.remote_qpn = flow->peer_qpn;
		wr.wr.ud.remote_qkey = QKEY;
	}
	if (op_of(k) == ATOMIC)
		wr.num_sge = cut(sge, &fetched, ((uint64_t)q * opt.window + slot) * 8, 8, 1);
	else
		wr.num_sge = cut(sge, op_of(k) == READ ? &got : &from, place(q, slot), size,
				 opt.fixed ? 1 : 1 + k % SGES);
	if (size <= INLINE && op_of(k) < READ && k % 3)
		wr.send_flags |= IBV_SEND_INLINE;
	/* not every request is signaled, but the last of a round is */
	if (k % 4 == 3 || k == round_first + round_count - 1) {
		wr.send_flags |= IBV_SEND_SIGNALED;
		flow->signals++;
	}
	error = ibv_post_send(flow->qp, &wr, &bad);
	if (error)
		die("QP %u message %u: ibv_post_send: %s", q, k, strerror(error));
}

/*
 * A receive completed: check the bytes of UC and UD immediately; those of RC are checked at the end
 * of the round.
 */
static void receive_done(uint32_t q, uint32_t slot, const struct ibv_wc *wc)
{
	struct flow *flow = &flows[q];
	uint32_t k, size, index, skip = opt.type == IBV_QPT_UD ? GRH : 0;
	uint8_t *at;

	flow->posted--;
	flow->received++;
	if (opt.type == IBV_QPT_RC) {
		/*
		 * Completions are in order, so this is message number `received' of the messages
		 * that take a receive.
		 */
		for (k = round_first, index = flow->received; ; k++)
			if (takes_receive(k) && !--index)
				break;
		if (k >= round_first + round_count || slot != k % opt.window)
			die("QP %u: a receive completed out of order (slot %u, message %u)",
			    q, slot, k);
	} else {
		k = be32toh(wc->imm_data);
	}
	if (wc->wc_flags & IBV_WC_WITH_IMM ? be32toh(wc->imm_data) != k :
	    opt.type != IBV_QPT_RC || op_of(k) == WRITE_IMM || k & 8)
		die("QP %u message %u: wrong immediate %u", q, k, be32toh(wc->imm_data));
	if (k >= round_first + round_count)
		die("QP %u: message %u arrived before it was sent", q, k);
	if (wc->opcode != (op_of(k) == SEND ? IBV_WC_RECV : IBV_WC_RECV_RDMA_WITH_IMM))
		die("QP %u message %u: completion opcode %d", q, k, wc->opcode);
	size = size_of(!opt.host, q, k);
	if (wc->byte_len != size + skip)
		die("QP %u message %u: %u bytes of %u", q, k, wc->byte_len, size + skip);
	if (opt.type == IBV_QPT_RC)
		return;
	at = in.base + place(q, op_of(k) == SEND ? slot : k % opt.window) + skip;
	/* the bytes of a WRITE of an earlier round may have been overwritten by a later WRITE */
	if (op_of(k) == SEND || k >= round_first)
		check(op_names[op_of(k)], q, k, at, seed(!opt.host, q, k), size);
	check_guard("receive", q, k, in.base + place(q, slot) + stride - GUARD);
	delivered++;
	post_receive(q, slot);
}

static bool take_completions(void)
{
	struct ibv_wc wc[16];
	uint32_t q;
	int count = ibv_poll_cq(cq, 16, wc), i;

	if (count < 0)
		die("ibv_poll_cq: %s", strerror(errno));
	for (i = 0; i < count; i++) {
		q = wc[i].wr_id << 1 >> 33;
		if (wc[i].status != IBV_WC_SUCCESS)
			die("QP %u %s %u: completion status %d (%s), vendor error %u", q,
			    wc[i].wr_id >> 63 ? "message" : "receive", (uint32_t)wc[i].wr_id,
			    wc[i].status, ibv_wc_status_str(wc[i].status), wc[i].vendor_err);
		if (q >= opt.qps || wc[i].qp_num != flows[q].qp->qp_num)
			die("a completion of an unknown QP: wr_id %" PRIx64 ", QP number %u",
			    (uint64_t)wc[i].wr_id, wc[i].qp_num);
		if (wc[i].wr_id >> 63)
			flows[q].signalled++;
		else
			receive_done(q, wc[i].wr_id, &wc[i]);
	}
	return count > 0;
}

static void await_event(int milliseconds)
{
	struct pollfd ready = { .fd = channel->fd, .events = POLLIN };
	struct ibv_cq *which;
	void *unused;

	if (poll(&ready, 1, milliseconds) != 1)
		return;
	must(!ibv_get_cq_event(channel, &which, &unused));
	ibv_ack_cq_events(which, 1);
	must(!ibv_req_notify_cq(cq, 0));
}

static bool sends_missing(const struct flow *flow)
{
	return flow->signalled < flow->signals;
}

static bool receives_missing(const struct flow *flow)
{
	return flow->received < flow->receives;
}

/*
 * Poll until @missing is false for all flows, or, if @may_lack is true, until @patience seconds
 * have passed without a completion.
 */
static void await(const char *what, bool (*missing)(const struct flow *flow), double patience,
		  bool may_lack)
{
	double quiet = now();
	uint32_t q = 0;

	while (1) {
		while (q < opt.qps && !missing(&flows[q]))
			q++;
		if (q == opt.qps)
			return;
		if (take_completions()) {
			quiet = now();
			continue;
		}
		if (now() - quiet > patience) {
			if (may_lack)
				return;
			die("QP %u: no %s for %.0f s (%u of %u sends, %u of %u receives)", q, what,
			    patience, flows[q].signalled, flows[q].signals, flows[q].received,
			    flows[q].receives);
		}
		if (channel)
			await_event(100);
		else
			sched_yield();
	}
}

/* IBTA 10.3.1.5: requests that have begun complete, later ones wait. */
static void drain(void)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1 };
	struct ibv_async_event event;
	uint32_t q, events = 0;

	for (q = 0; q < opt.qps; q++)
		modify(q, &attr, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY);
	for (; events < opt.qps; ibv_ack_async_event(&event)) {
		must(!ibv_get_async_event(context, &event));
		events += event.event_type == IBV_EVENT_SQ_DRAINED;
	}
	/* count sends only, because receives may complete while queues are drained */
	for (q = 0; q < opt.qps; q++)
		flows[q].before_drain = flows[q].signals;
}

/*
 * Check that no request that was posted after drain() has completed, and move all QPs to RTS, so
 * that these requests can complete.
 */
static void drained_go_on(void)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTS };
	double quiet = now();
	uint32_t q;

	while (now() - quiet < 0.1)
		take_completions();
	for (q = 0; q < opt.qps; q++) {
		if (flows[q].signalled > flows[q].before_drain)
			die("QP %u: %u completions in SQD, of %u requests posted before", q,
			    flows[q].signalled, flows[q].before_drain);
		drains++;
		modify(q, &attr, IBV_QP_STATE);
	}
}

static void verify_passive(uint32_t q)
{
	struct flow *flow = &flows[q];
	uint64_t value;
	uint32_t k, size;
	uint8_t *at;

	for (k = round_first; k < round_first + round_count; k++) {
		size = size_of(!opt.host, q, k);
		at = in.base + place(q, k % opt.window);
		if (opt.type != IBV_QPT_RC) {
			if (op_of(k) == WRITE)
				check_partial(q, k, at, size);
		} else if (op_of(k) < READ) {
			check(op_names[op_of(k)], q, k, at, seed(!opt.host, q, k), size);
			check_guard(op_names[op_of(k)], q, k, at + size);
			delivered++;
		} else {
			delivered++;
		}
	}
	if (counters.base) {
		memcpy(&value, counters.base + q * 8, 8);
		if (value != flow->peer_sum)
			die("atomic: QP %u: the counter is %" PRIx64 ", not %" PRIx64
			    " (an operation was lost or done twice)", q, value, flow->peer_sum);
	}
}

static void verify_active(uint32_t q, uint64_t sum)
{
	uint64_t value;
	uint32_t k, size;
	uint8_t *at;

	for (k = round_first; k < round_first + round_count; k++) {
		if (op_of(k) == READ) {
			size = size_of(opt.host, q, k);
			at = got.base + place(q, k % opt.window);
			check("read", q, k, at, seed(opt.host, q, k), size);
			check_guard("read", q, k, at + size);
		} else if (op_of(k) == ATOMIC) {
			memcpy(&value, fetched.base + ((size_t)q * opt.window + k % opt.window) * 8,
			       8);
			if (value != sum)
				die("atomic: QP %u message %u: got %" PRIx64 ", not %" PRIx64,
				    q, k, value, sum);
			sum += addend(q, k);
		} else {
			sent += size_of(opt.host, q, k);
		}
	}
}

static double one_round(uint32_t step, uint64_t *sums)
{
	bool reliable = opt.type == IBV_QPT_RC;
	double begun, spent;
	uint32_t q, k;

	for (q = 0; q < opt.qps; q++) {
		flows[q].signals = 0;
		flows[q].signalled = 0;
		flows[q].receives = 0;
		flows[q].received = 0;
		sums[q] = flows[q].sum;
		if (passive)
			prepare_passive(q);
		if (active)
			prepare_active(q);
	}
	meet(step);
	begun = now();
	/* post message by message over all QPs, so that all QPs are busy at the same time */
	if (active)
		for (k = round_first; k < round_first + round_count; k++) {
			if (opt.drain && k == round_first + round_count / 2)
				drain();
			for (q = 0; q < opt.qps; q++)
				post_one(q, k);
		}
	if (opt.drain && active)
		drained_go_on();
	await("completion", sends_missing, opt.patience, false);
	if (passive)
		await("message", receives_missing, reliable ? opt.patience : IDLE, !reliable);
	meet(step + 1);
	spent = now() - begun;
	/* wait for messages of the other side; after IDLE s without one, the rest are lost */
	if (passive && !reliable)
		await("message", receives_missing, IDLE, true);
	for (q = 0; q < opt.qps; q++) {
		if (passive)
			verify_passive(q);
		if (active)
			verify_active(q, sums[q]);
	}
	return spent;
}

/* Return: true if another round follows; the client decides. */
static bool more(uint32_t sent, double begun)
{
	uint32_t ours, other;

	ours = sent < opt.messages || (opt.linger && now() - begun < opt.linger);
	exchange(&ours, &other, sizeof(ours));
	return opt.host ? ours : other;
}

int main(int argc, char **argv)
{
	double begun, spent = 0;
	uint64_t *sums;
	uint32_t step = 2;

	parse(argc, argv);
	sock_open();
	open_device();
	agree();
	make_qps();
	connect_all();
	meet(1);

	must((sums = calloc(opt.qps, sizeof(*sums))));
	begun = now();
	while (more(round_first, begun)) {
		round_count = opt.window;
		if (!opt.linger && opt.messages - round_first < opt.window)
			round_count = opt.messages - round_first;
		spent += one_round(step, sums);
		round_first += round_count;
		step += 2;
	}
	if (opt.type != IBV_QPT_RC && passive) {
		if (takes_receive(0))
			lost = (uint64_t)round_first * opt.qps > delivered ?
			       (uint64_t)round_first * opt.qps - delivered : 0;
		if (!delivered)
			die("nothing was delivered");
	}
	printf("verify_xfer: %u QPs, %u messages each, %" PRIu64 " bytes verified here", opt.qps,
	       round_first, moved);
	if (passive)
		printf(", %" PRIu64 " messages delivered, %" PRIu64 " lost", delivered, lost);
	if (drains)
		printf(", %u drains", drains);
	/* each byte is counted once: sent by this side, or checked here */
	if (moved + sent && spent > 0)
		printf(", %.2f MiB/s", (moved + sent) / spent / 1048576);
	putchar('\n');
	return 0;
}
