// SPDX-License-Identifier: GPL-2.0
/*
 * late_reads: after a completion with any status, a reset, a destroy or a deregistration, the
 * device reads no byte of the buffer any more.
 *
 * One process has two devices, whose packets travel between their netdevs.  Each queue pair (lane)
 * sends messages whose bytes have the top bit clear.  The messages end in one of many ways.  As
 * soon as the verb or the completion returns a buffer to its owner, the owner fills it with bytes
 * that have the top bit set.  Then the test searches the peer's memory and every frame that the
 * peer's netdev received for bytes that were never posted.  With -x the owner overwrites its
 * buffers too early, which the test must detect.  Options: see usage() in late_capture.c.
 */
#define _GNU_SOURCE
#include "late_reads.h"
#include "late_channels.h"

#define LANES		8
#define MSGS		4
#define SGES		3
#define QKEY		0x11111111
#define GRH		40

static const enum ibv_qp_type lane_types[LANES] = {
	IBV_QPT_RC, IBV_QPT_RC, IBV_QPT_RC, IBV_QPT_RC, IBV_QPT_RC, IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD
};

struct message {
	uint32_t at, length;	/* offset and length in the lane's memory */
	enum ibv_wr_opcode opcode;
	uint8_t fill;
	bool returned;
};

struct lane {
	enum ibv_qp_type type;
	enum ending ending;
	struct ibv_qp *a, *b;		/* QPs of the sender and of its peer */
	struct ibv_cq *acq, *bcq;
	struct ibv_ah *ah;
	struct ibv_mr *out_mr, *in_mr;
	struct ibv_mw *mw;
	uint8_t *out, *in;		/* in: slots of receives, then slots of WRITEs and READs */
	struct message messages[MSGS];
	uint32_t receives, received;
};

static struct lane lanes[LANES];

/* ---- creation ---- */

static struct ibv_qp *lane_qp(struct lane *l, int which)
{
	struct ibv_cq *cq = which ? l->bcq : l->acq;
	struct ibv_qp_init_attr init = {
		.qp_type = l->type, .send_cq = cq, .recv_cq = cq,
		.cap = { .max_send_wr = 2 * MSGS, .max_recv_wr = 2 * MSGS, .max_send_sge = SGES,
			 .max_recv_sge = 1 },
	};
	struct ibv_qp *qp = ibv_create_qp(side_select(which)->pd, &init);

	must(qp);
	return qp;
}

static void lane_reg(struct lane *l)
{
	must(l->out_mr = ibv_reg_mr(sides[0].pd, l->out, MSGS * SLOT, IBV_ACCESS_LOCAL_WRITE |
				    IBV_ACCESS_REMOTE_READ | IBV_ACCESS_MW_BIND));
}

static void lane_make(struct lane *l, enum ibv_qp_type type)
{
	l->type = type;
	l->out = pages(MSGS * SLOT);
	l->in = pages(2 * MSGS * SLOT);
	must(l->acq = ibv_create_cq(sides[0].context, 4 * MSGS, NULL, NULL, 0));
	must(l->bcq = ibv_create_cq(sides[1].context, 4 * MSGS, NULL, NULL, 0));
	must(l->mw = ibv_alloc_mw(sides[0].pd, IBV_MW_TYPE_2));
	must(l->in_mr = ibv_reg_mr(sides[1].pd, l->in, 2 * MSGS * SLOT, IBV_ACCESS_LOCAL_WRITE |
				   IBV_ACCESS_REMOTE_WRITE));
	if (type == IBV_QPT_UD) {
		struct ibv_ah_attr attr = { .is_global = 1, .port_num = 1, .grh = {
			.dgid = sides[1].hello.gid, .sgid_index = sides[0].gid_index,
			.hop_limit = 64 } };

		must(l->ah = ibv_create_ah(sides[0].pd, &attr));
	}
}

static void modify(struct ibv_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state };

	verb(ibv_modify_qp(qp, &attr, IBV_QP_STATE));
}

/* Connect one end; @dest may be a QPN that does not exist. */
static void connect_half(struct ibv_qp *qp, int which, const struct lane *l, uint32_t dest,
			 uint32_t rq_psn, uint32_t sq_psn)
{
	bool hopeless = l->ending == RETRY;
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY,
		.qp_access_flags = l->type == IBV_QPT_RC ? REMOTE_ACCESS : IBV_ACCESS_REMOTE_WRITE,
		.dest_qp_num = dest, .rq_psn = rq_psn, .sq_psn = sq_psn,
		.max_dest_rd_atomic = 4, .max_rd_atomic = 4, .min_rnr_timer = 1,
		.timeout = hopeless ? 10 : opt.timeout, .retry_cnt = hopeless ? 1 : 7,
		.rnr_retry = l->ending == RNR ? 0 : 7 };
	bool rc = l->type == IBV_QPT_RC, ud = l->type == IBV_QPT_UD;

	side_select(which);
	attr.path_mtu = mine.mtu;
	attr.ah_attr = (struct ibv_ah_attr){ .is_global = 1, .port_num = 1, .grh = {
		.dgid = theirs.gid, .sgid_index = gid_index, .hop_limit = 64 } };
	verb(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
			   (ud ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS)));
	attr.qp_state = IBV_QPS_RTR;
	verb(ibv_modify_qp(qp, &attr, IBV_QP_STATE |
			   (ud ? 0 : IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN) |
			   (rc ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0)));
	attr.qp_state = IBV_QPS_RTS;
	verb(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN |
			   (rc ? IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				 IBV_QP_MAX_QP_RD_ATOMIC : 0)));
}

/*
 * Connect both ends.  The ACKs of a lane that ends with RETRY go to a QPN that does not exist, so
 * the sender gives up messages that the peer has received.
 */
static void lane_connect(struct lane *l)
{
	uint32_t ab = rnd() & 0xffffff, ba = rnd() & 0xffffff;

	if (!l->a)
		l->a = lane_qp(l, 0);
	if (!l->b)
		l->b = lane_qp(l, 1);
	connect_half(l->b, 1, l, l->ending == RETRY ? 0xfffffe : l->a->qp_num, ab, ba);
	connect_half(l->a, 0, l, l->b->qp_num, ba, ab);
}

/* ---- posting ---- */

static void post_receives(struct lane *l)
{
	struct ibv_recv_wr *bad;
	uint32_t i;

	for (i = 0; i < MSGS; i++) {
		struct ibv_sge sge = { (uintptr_t)l->in + i * SLOT, SLOT, l->in_mr->lkey };
		struct ibv_recv_wr wr = { .wr_id = i, .sg_list = &sge, .num_sge = 1 };

		verb(ibv_post_recv(l->b, &wr, &bad));
	}
	l->receives = MSGS;
}

/* Choose the opcode, address and length of a message. */
static void message_draw(struct lane *l, uint32_t i)
{
	static const enum ibv_wr_opcode opcodes[] = {
		IBV_WR_SEND, IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM
	};
	struct message *m = &l->messages[i];
	uint32_t longest = l->type == IBV_QPT_UD ? 1024 : LONGEST;
	/*
	 * bytes of a copied message cannot be late, so send few short RC messages, which the driver
	 * copies; it copies all messages of UC and UD
	 */
	uint32_t shortest = l->type == IBV_QPT_RC && rnd() % 16 ? COPIED + 1 : SHORTEST;

	*m = (struct message){ .at = i * SLOT + rnd() % 4096, .fill = 1 + rnd() % 0x7f,
			       .opcode = opcodes[rnd() % 4] };
	/* half of the messages are at most 4 KiB longer than the shortest */
	m->length = shortest + rnd() % (rnd() % 2 ? 4096 : longest) % (longest - shortest + 1);
	if (l->ending == RNR || l->type == IBV_QPT_UD)
		m->opcode = opcodes[rnd() % 2];
	if (l->ending == ACCESS)
		m->opcode = opcodes[2 + rnd() % 2];
	memset(l->out + m->at, m->fill, m->length);
}

static void message_post(struct lane *l, uint32_t i)
{
	const struct message *m = &l->messages[i];
	struct ibv_sge sge[SGES];
	struct ibv_send_wr wr = { .wr_id = i, .sg_list = sge, .num_sge = 1 + rnd() % SGES,
				  .opcode = m->opcode, .send_flags = IBV_SEND_SIGNALED,
				  .imm_data = htobe32(m->fill) }, *bad;
	uint32_t done = 0, step;
	int k;

	for (k = 0; k < wr.num_sge; k++) {
		step = k == wr.num_sge - 1 ? m->length - done : (m->length - done) / 3;
		sge[k] = (struct ibv_sge){ (uintptr_t)l->out + m->at + done, step,
					   l->out_mr->lkey };
		done += step;
	}
	wr.wr.rdma.remote_addr = (uintptr_t)l->in + (MSGS + i) * SLOT;
	wr.wr.rdma.rkey = l->ending == ACCESS && i ? l->in_mr->rkey ^ 0x100 : l->in_mr->rkey;
	if (l->type == IBV_QPT_UD) {
		wr.wr.ud.ah = l->ah;
		wr.wr.ud.remote_qpn = l->b->qp_num;
		wr.wr.ud.remote_qkey = QKEY;
	}
	verb(ibv_post_send(l->a, &wr, &bad));
}

static void window_bind(struct lane *l)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED,
		.bind_mw = { .mw = l->mw, .rkey = ibv_inc_rkey(l->mw->rkey), .bind_info = {
			.mr = l->out_mr, .addr = (uintptr_t)l->out, .length = MSGS * SLOT,
			.mw_access_flags = IBV_ACCESS_REMOTE_READ } } }, *bad;

	verb(ibv_post_send(l->a, &wr, &bad));
	wait_success(l->acq, "IBV_WR_BIND_MW");
	l->mw->rkey = wr.bind_mw.rkey;
}

/* The peer READs a buffer, whose key the owner will close during the READ. */
static void read_post(struct lane *l, uint32_t i)
{
	const struct message *m = &l->messages[i];
	struct ibv_sge sge = { (uintptr_t)l->in + (MSGS + i) * SLOT, m->length, l->in_mr->lkey };
	struct ibv_send_wr wr = { .wr_id = 100 + i, .sg_list = &sge, .num_sge = 1,
		.opcode = IBV_WR_RDMA_READ, .wr.rdma = { (uintptr_t)l->out + m->at,
		l->ending == READ_WINDOW ? l->mw->rkey : l->out_mr->rkey } }, *bad;

	verb(ibv_post_send(l->b, &wr, &bad));
}

static void lane_begin(struct lane *l)
{
	uint32_t i;

	do {
		l->ending = rnd() % ENDINGS;
	} while (l->type != IBV_QPT_RC && l->ending > DEREG);
	memset(l->in, 0, 2 * MSGS * SLOT);
	lane_connect(l);
	for (i = 0; i < MSGS; i++)
		message_draw(l, i);
	if (l->ending == READ_WINDOW)
		window_bind(l);
	if (l->ending == READ_DEREG || l->ending == READ_WINDOW) {
		for (i = 0; i < MSGS; i++)
			read_post(l, i);
		return;
	}
	if (l->ending != RNR)
		post_receives(l);
	for (i = 0; i < MSGS; i++) {
		message_post(l, i);
		if (opt.early)
			overwrite(l->out + l->messages[i].at, l->messages[i].length, l->ending);
	}
}

/* ---- endings ---- */

static void message_returned(struct lane *l, uint32_t i)
{
	struct message *m = &l->messages[i];

	if (m->returned)
		return;
	m->returned = true;
	overwrite(l->out + m->at, m->length, l->ending);
}

static void all_returned(struct lane *l)
{
	uint32_t i;

	for (i = 0; i < MSGS; i++)
		message_returned(l, i);
}

/* Each completion returns its buffer, with any status. */
static void lane_complete(struct lane *l)
{
	struct ibv_wc wc;
	uint32_t i;

	for (i = 0; i < MSGS; i++) {
		wc = wait_wc(l->acq, ending_names[l->ending]);
		must(wc.wr_id < MSGS);
		message_returned(l, wc.wr_id);
		if (l->ending == SUCCESS && wc.status && !opt.early)
			die("%s: %s", ending_names[l->ending], ibv_wc_status_str(wc.status));
	}
}

static void window_close(struct lane *l)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_LOCAL_INV, .send_flags = IBV_SEND_SIGNALED,
				  .invalidate_rkey = l->mw->rkey }, *bad;

	verb(ibv_post_send(l->a, &wr, &bad));
	wait_success(l->acq, "IBV_WR_LOCAL_INV");
}

static void lane_end(struct lane *l)
{
	uint64_t until = now_ns() + rnd() % 300000;

	while (rnd() % 2 && now_ns() < until)
		;
	switch (l->ending) {
	case FLUSH:
		modify(l->a, IBV_QPS_ERR);
		lane_complete(l);
		break;
	case RESET:
		modify(l->a, IBV_QPS_RESET);
		all_returned(l);
		break;
	case DESTROY:
		verb(ibv_destroy_qp(l->a));
		l->a = NULL;
		all_returned(l);
		break;
	case DEREG:
	case READ_DEREG:
		verb(ibv_dereg_mr(l->out_mr));
		all_returned(l);
		lane_reg(l);
		break;
	case READ_WINDOW:
		window_close(l);
		all_returned(l);
		break;
	default:
		lane_complete(l);
	}
	/* packets in flight may find a receive now */
	if (l->ending == RNR)
		post_receives(l);
}

/* ---- checks ---- */

static void lane_check(struct lane *l)
{
	uint32_t skip = l->type == IBV_QPT_UD ? GRH : 0, i, length;
	const uint8_t *p;
	struct ibv_wc wc;

	while (ibv_poll_cq(l->bcq, 1, &wc) == 1) {
		if (wc.status || !(wc.opcode & IBV_WC_RECV))
			continue;
		seen.completed++;
		if (wc.opcode != IBV_WC_RECV)
			continue;
		p = l->in + wc.wr_id * SLOT + skip;
		length = wc.byte_len - skip;
		if (differs(p, length, p[0]) >= 0 ||
		    (wc.wc_flags & IBV_WC_WITH_IMM && be32toh(wc.imm_data) != p[0]))
			seen.torn++;
	}
	for (i = 0; i < 2 * MSGS; i++)
		late_at_peer(count_poison(l->in + i * SLOT + skip, SLOT - skip), l->ending);
}

static void lane_again(struct lane *l)
{
	struct ibv_wc wc;

	if (l->a)
		modify(l->a, IBV_QPS_RESET);
	modify(l->b, IBV_QPS_RESET);
	while (ibv_poll_cq(l->acq, 1, &wc) == 1 || ibv_poll_cq(l->bcq, 1, &wc) == 1)
		;
}

static void batch(void)
{
	bool ended[LANES];
	uint32_t i;

	for (i = 0; i < LANES; i++) {
		lane_begin(&lanes[i]);
		ended[i] = rnd() % 2;
		if (ended[i])
			lane_end(&lanes[i]);
	}
	if (opt.channels)
		channels_batch();
	for (i = 0; i < LANES; i++)
		if (!ended[i])
			lane_end(&lanes[i]);
	usleep(opt.settle_ms * 1000);
	for (i = 0; i < LANES; i++) {
		lane_check(&lanes[i]);
		lane_again(&lanes[i]);
	}
	if (opt.channels)
		channels_check();
}

static int verdict(double seconds)
{
	const char *bad = NULL;
	int i;

	printf("# %" PRIu64 " overwrites of %" PRIu64 " bytes in %.1f s, %" PRIu64
	       " messages completed by the peer, %" PRIu64 " torn, %" PRIu64
	       " bytes late at the peer\n", seen.overwrites, seen.bytes, seconds, seen.completed,
	       seen.torn, seen.late_peer);
	if (opt.capture)
		printf("# capture: %" PRIu64 " frames of %" PRIu64 " bytes, %" PRIu64 " not kept, %"
		       PRIu64 " with bytes that were never posted\n", capture.frames, capture.bytes,
		       capture.lost, capture.late);
	for (i = 0; i < ALL_ENDINGS; i++)
		if (seen.late_by_ending[i] || seen.frames_by_ending[i])
			printf("# %s: %" PRIu64 " overwrites, %" PRIu64 " bytes late at the peer, in %"
			       PRIu64 " frames\n", ending_names[i], seen.by_ending[i],
			       seen.late_by_ending[i], seen.frames_by_ending[i]);
	if (opt.early && !seen.late_peer)
		bad = "buffers were overwritten too early, and the test did not detect it";
	else if (!opt.early && seen.late_peer)
		bad = "the peer has bytes that were never posted";
	else if (!opt.early && capture.late)
		bad = "frames had bytes that were never posted";
	else if (!opt.early && seen.torn)
		bad = "the peer completed messages with wrong bytes";
	else if (!seen.completed)
		bad = "the peer completed nothing";
	else if (opt.capture && !capture.frames)
		bad = "no packet travelled";
	if (bad)
		printf("late_reads: %s\n", bad);
	return !!bad;
}

int main(int argc, char **argv)
{
	uint64_t begun;
	uint32_t i;

	program = "late_reads";
	setvbuf(stdout, NULL, _IOLBF, 0);
	parse(argc, argv);
	printf("# seed %" PRIu64 "\n", rnd_state);
	side_open(&sides[0]);
	side_open(&sides[1]);
	for (i = 0; i < LANES; i++) {
		lane_make(&lanes[i], lane_types[i]);
		lane_reg(&lanes[i]);
	}
	if (opt.channels)
		channels_make();
	capture_begin();
	begun = now_ns();
	while (seen.overwrites < opt.overwrites)
		batch();
	capture_end();
	return verdict((now_ns() - begun) / 1e9);
}
