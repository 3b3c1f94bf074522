// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * XRC on the device named by $RDMA_DEV: one initiator, one target, and SRQs in one process and in
 * several.
 *
 *   xrc [PART-OF-A-NAME]		run the tests whose names contain the argument (all)
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "verbs_test.h"

#define SLOTS		16
#define SLOT		65536

/* An SRQ in its own protection domain, and the buffers of its receives */
struct sink {
	struct ibv_pd *pd;
	struct ibv_cq_ex *cq;
	struct ibv_srq *srq;
	uint32_t srqn;
	uint8_t *buf;
	struct ibv_mr *mr;
};

/* An initiator with memory, and its target */
struct way {
	int fd;
	struct ibv_xrcd *xrcd;
	struct ibv_qp *ini, *tgt;
	struct ibv_qp_ex *x;
	struct ibv_cq_ex *cq;
	uint8_t *buf;
	struct ibv_mr *mr;
};

static struct ibv_xrcd *open_domain(struct ibv_context *ctx, int fd)
{
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = fd, .oflags = O_CREAT,
	};

	return ibv_open_xrcd(ctx, &attr);
}

static bool post(struct sink *s, uint64_t slot)
{
	struct ibv_sge sge = { (uintptr_t)s->buf + slot * SLOT, SLOT, s->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = slot, .sg_list = &sge, .num_sge = 1 }, *bad;

	VERB(ibv_post_srq_recv(s->srq, &wr, &bad));
	return true;
}

/* Make an SRQ with receives in the first @slots slots. */
static bool make_sink(struct sink *s, struct ibv_xrcd *xrcd, int slots)
{
	struct ibv_srq_init_attr_ex attr = {
		.attr = { .max_wr = SLOTS, .max_sge = 2 }, .srq_type = IBV_SRQT_XRC, .xrcd = xrcd,
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
	};

	s->pd = ibv_alloc_pd(dev.ctx);
	s->cq = make_cq(256, NULL, 0);
	REQUIRE(s->pd && s->cq, "a PD or a CQ: %m");
	attr.pd = s->pd;
	attr.cq = ibv_cq_ex_to_cq(s->cq);
	s->srq = ibv_create_srq_ex(dev.ctx, &attr);
	REQUIRE(s->srq, "ibv_create_srq_ex: %m");
	VERB(ibv_get_srq_num(s->srq, &s->srqn));
	REQUIRE(!posix_memalign((void **)&s->buf, 4096, SLOTS * SLOT), "no memory");
	memset(s->buf, 0xee, SLOTS * SLOT);
	s->mr = ibv_reg_mr(s->pd, s->buf, SLOTS * SLOT, ACCESS);
	REQUIRE(s->mr, "ibv_reg_mr: %m");
	for (int i = 0; i < slots; i++)
		if (!post(s, i))
			return false;
	return true;
}

static bool free_sink(struct sink *s)
{
	if (s->srq)
		VERB(ibv_destroy_srq(s->srq));
	VERB(ibv_destroy_cq(ibv_cq_ex_to_cq(s->cq)));
	VERB(ibv_dereg_mr(s->mr));
	VERB(ibv_dealloc_pd(s->pd));
	free(s->buf);
	return true;
}

static bool to(struct ibv_qp *qp, enum ibv_qp_state state, uint32_t peer)
{
	struct ibv_qp_attr attr = {
		.qp_state = state, .port_num = 1, .qp_access_flags = ACCESS,
		.path_mtu = dev.port.active_mtu, .dest_qp_num = peer, .rq_psn = 0xffffe0,
		.sq_psn = 0xffffe0, .max_dest_rd_atomic = 8, .max_rd_atomic = 8,
		.min_rnr_timer = 1, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7,
		.ah_attr = { .is_global = 1, .port_num = 1, .grh = { .dgid = dev.gid,
			     .sgid_index = dev.gid_index, .hop_limit = 64 } },
	};
	bool ini = qp->qp_type == IBV_QPT_XRC_SEND;
	int mask = IBV_QP_STATE;

	if (state == IBV_QPS_INIT)
		mask |= IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
	if (state == IBV_QPS_RTR)
		mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			(ini ? 0 : IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	if (state == IBV_QPS_RTS)
		mask |= IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			IBV_QP_MAX_QP_RD_ATOMIC;
	VERB(ibv_modify_qp(qp, &attr, mask));
	return true;
}

static bool connect_way(struct way *w)
{
	struct completion c;

	if (!to(w->ini, IBV_QPS_RESET, 0) || !to(w->tgt, IBV_QPS_RESET, 0))
		return false;
	while (poll_one(w->cq, &c))
		;
	return to(w->tgt, IBV_QPS_INIT, 0) && to(w->tgt, IBV_QPS_RTR, w->ini->qp_num) &&
	       to(w->ini, IBV_QPS_INIT, 0) && to(w->ini, IBV_QPS_RTR, w->tgt->qp_num) &&
	       to(w->ini, IBV_QPS_RTS, 0);
}

static bool make_way(struct way *w)
{
	struct ibv_qp_init_attr_ex ini = {
		.qp_type = IBV_QPT_XRC_SEND, .pd = dev.pd, .send_ops_flags = RC_OPS,
		.cap = { .max_send_wr = 64, .max_send_sge = 2 },
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
	}, tgt = { .qp_type = IBV_QPT_XRC_RECV, .comp_mask = IBV_QP_INIT_ATTR_XRCD };

	w->fd = memfd_create("xrc", 0);
	REQUIRE(w->fd >= 0, "memfd_create: %m");
	w->xrcd = open_domain(dev.ctx, w->fd);
	if (!w->xrcd)
		return missing("ibv_open_xrcd");
	w->cq = make_cq(256, NULL, 0);
	REQUIRE(w->cq, "ibv_create_cq_ex: %m");
	ini.send_cq = ibv_cq_ex_to_cq(w->cq);
	tgt.xrcd = w->xrcd;
	w->tgt = ibv_create_qp_ex(dev.ctx, &tgt);
	REQUIRE(w->tgt, "ibv_create_qp_ex of a target: %m");
	w->ini = ibv_create_qp_ex(dev.ctx, &ini);
	REQUIRE(w->ini, "ibv_create_qp_ex of an initiator: %m");
	w->x = ibv_qp_to_qp_ex(w->ini);
	REQUIRE(!posix_memalign((void **)&w->buf, 4096, SLOT), "no memory");
	w->mr = ibv_reg_mr(dev.pd, w->buf, SLOT, ACCESS);
	REQUIRE(w->x && w->mr, "the initiator: %m");
	return connect_way(w);
}

static bool free_way(struct way *w)
{
	VERB(ibv_destroy_qp(w->ini));
	if (w->tgt)
		VERB(ibv_destroy_qp(w->tgt));
	VERB(ibv_destroy_cq(ibv_cq_ex_to_cq(w->cq)));
	VERB(ibv_dereg_mr(w->mr));
	free(w->buf);
	VERB(ibv_close_xrcd(w->xrcd));
	close(w->fd);
	return true;
}

/* Post one request of the initiator to SRQ @srqn; @build selects the operation. */
#define REQUEST(w, id, srqn, len, build) do {			\
	struct ibv_qp_ex *x = (w)->x;				\
	ibv_wr_start(x);					\
	x->wr_id = (id);					\
	x->wr_flags = IBV_SEND_SIGNALED;			\
	build;							\
	ibv_wr_set_xrc_srqn(x, srqn);				\
	ibv_wr_set_sge(x, (w)->mr->lkey, (uintptr_t)(w)->buf, len);	\
	VERB(ibv_wr_complete(x));				\
} while (0)

static bool ended(struct way *w, enum ibv_wc_status want, const char *what)
{
	struct completion c;

	if (!wait_any(w->cq, &c))
		return fail("%s: no completion", what);
	REQUIRE(c.status == want, "%s: %s instead of %s", what, ibv_wc_status_str(c.status),
		ibv_wc_status_str(want));
	return want == IBV_WC_SUCCESS || connect_way(w);
}

static bool send_to(struct way *w, uint32_t srqn, uint32_t len, uint32_t seed)
{
	fill(w->buf, len, seed);
	REQUEST(w, seed, srqn, len, ibv_wr_send_imm(x, htonl(seed)));
	return ended(w, IBV_WC_SUCCESS, "SEND");
}

static bool received(struct sink *s, const struct way *w, uint64_t slot, uint32_t len, uint32_t seed)
{
	struct completion c;

	if (!wait_for(s->cq, slot, IBV_WC_RECV, &c))
		return false;
	REQUIRE(c.byte_len == len && ntohl(c.imm) == seed && c.qp_num == w->tgt->qp_num,
		"slot %lu: %u bytes, immediate %u, QP %u", (unsigned long)slot, c.byte_len,
		ntohl(c.imm), c.qp_num);
	return filled(s->buf + slot * SLOT, len, seed);
}

/* Each SRQ gets its messages, in its own memory and CQ. */
static bool two_srqs(struct pair *p)
{
	struct sink s[2] = {};
	struct way w = {};
	struct completion c;

	(void)p;
	if (!make_way(&w) || !make_sink(&s[0], w.xrcd, SLOTS) || !make_sink(&s[1], w.xrcd, SLOTS))
		return false;
	for (uint32_t i = 0; i < 2 * SLOTS; i++) {
		uint32_t len = i % 3 ? 1 + 4000 * (i % 16) : i;

		if (!send_to(&w, s[i % 2].srqn, len, i) ||
		    !received(&s[i % 2], &w, i / 2, len, i))
			return false;
		REQUIRE(!poll_one(s[!(i % 2)].cq, &c), "the other SRQ has got something");
	}
	return free_sink(&s[0]) && free_sink(&s[1]) && free_way(&w);
}

static bool remote_memory(struct pair *p)
{
	struct sink s[2] = {};
	struct completion c;
	struct way w = {};
	uint64_t at, *word;
	uint32_t rkey;

	(void)p;
	if (!make_way(&w) || !make_sink(&s[0], w.xrcd, 2) || !make_sink(&s[1], w.xrcd, 0))
		return false;
	at = (uintptr_t)s[0].buf + 4 * SLOT;
	word = (uint64_t *)(s[0].buf + 4 * SLOT);
	rkey = s[0].mr->rkey;
	fill(w.buf, 50000, 7);
	REQUEST(&w, 1, s[0].srqn, 50000, ibv_wr_rdma_write(x, rkey, at));
	if (!ended(&w, IBV_WC_SUCCESS, "WRITE") || !filled(s[0].buf + 4 * SLOT, 50000, 7))
		return false;
	fill(w.buf, 5000, 8);
	REQUEST(&w, 2, s[0].srqn, 5000, ibv_wr_rdma_write_imm(x, rkey, at, htonl(9)));
	if (!ended(&w, IBV_WC_SUCCESS, "WRITE with immediate") ||
	    !wait_for(s[0].cq, 0, IBV_WC_RECV_RDMA_WITH_IMM, &c) ||
	    !filled(s[0].buf + 4 * SLOT, 5000, 8))
		return false;
	for (uint32_t len = 8; len <= 40000; len *= 5000) {
		fill(s[0].buf + 4 * SLOT, len, len);
		memset(w.buf, 0, SLOT);
		REQUEST(&w, 3, s[0].srqn, len, ibv_wr_rdma_read(x, rkey, at));
		if (!ended(&w, IBV_WC_SUCCESS, "READ") || !filled(w.buf, len, len))
			return false;
	}
	*word = 5;
	REQUEST(&w, 4, s[0].srqn, 8, ibv_wr_atomic_fetch_add(x, rkey, at, 37));
	if (!ended(&w, IBV_WC_SUCCESS, "FETCH_ADD"))
		return false;
	REQUIRE(*word == 42 && *(uint64_t *)w.buf == 5, "5 + 37 is %lu", (unsigned long)*word);
	REQUEST(&w, 5, s[0].srqn, 8, ibv_wr_atomic_cmp_swp(x, rkey, at, 42, 1));
	if (!ended(&w, IBV_WC_SUCCESS, "CMP_SWAP"))
		return false;
	REQUIRE(*word == 1, "42 was not swapped");

	/* the protection domain is that of the SRQ that the request names */
	memset(s[0].buf, 0xee, SLOTS * SLOT);
	REQUEST(&w, 6, s[1].srqn, 8, ibv_wr_rdma_write(x, rkey, at));
	if (!ended(&w, IBV_WC_REM_ACCESS_ERR, "WRITE with another SRQ's domain"))
		return false;
	REQUEST(&w, 7, s[1].srqn, 8, ibv_wr_rdma_read(x, rkey, at));
	if (!ended(&w, IBV_WC_REM_ACCESS_ERR, "READ with another SRQ's domain"))
		return false;
	REQUEST(&w, 8, s[1].srqn, 8, ibv_wr_atomic_fetch_add(x, rkey, at, 1));
	if (!ended(&w, IBV_WC_REM_ACCESS_ERR, "FETCH_ADD with another SRQ's domain"))
		return false;

	/* the key of a deregistered region gives XRC requests no access */
	VERB(ibv_dereg_mr(s[0].mr));
	REQUEST(&w, 9, s[0].srqn, 8, ibv_wr_rdma_write(x, rkey, at));
	if (!ended(&w, IBV_WC_REM_ACCESS_ERR, "WRITE to a deregistered region"))
		return false;
	for (int i = 0; i < SLOTS * SLOT; i++)
		REQUIRE(s[0].buf[i] == 0xee, "byte %d was written", i);
	s[0].mr = ibv_reg_mr(s[0].pd, s[0].buf, SLOT, ACCESS);
	REQUIRE(s[0].mr, "ibv_reg_mr: %m");
	return free_sink(&s[0]) && free_sink(&s[1]) && free_way(&w);
}

static bool numbers_refused(struct pair *p)
{
	struct ibv_srq_init_attr plain = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct sink mine = {}, other = {};
	struct way w = {}, v = {};
	struct ibv_srq *srq;
	uint32_t srqn;

	(void)p;
	if (!make_way(&w) || !make_way(&v) || !make_sink(&mine, w.xrcd, 4) ||
	    !make_sink(&other, v.xrcd, 4))
		return false;
	srq = ibv_create_srq(dev.pd, &plain);
	REQUIRE(srq, "ibv_create_srq: %m");
	REQUEST(&w, 1, other.srqn, 8, ibv_wr_send(x));
	if (!ended(&w, IBV_WC_REM_INV_REQ_ERR, "an SRQ of another XRC domain"))
		return false;
	/* libnhca returns a number for each SRQ, even for one that is not for XRC */
	if (dev.nhca && !ibv_get_srq_num(srq, &srqn)) {
		REQUEST(&w, 2, srqn, 8, ibv_wr_send(x));
		if (!ended(&w, IBV_WC_REM_INV_REQ_ERR, "an SRQ that is not for XRC"))
			return false;
	}
	REQUEST(&w, 3, 0xffffff, 8, ibv_wr_send(x));
	if (!ended(&w, IBV_WC_REM_INV_REQ_ERR, "no SRQ"))
		return false;
	if (!send_to(&w, mine.srqn, 100, 1) || !received(&mine, &w, 0, 100, 1))
		return false;
	VERB(ibv_destroy_srq(mine.srq));
	srqn = mine.srqn;
	mine.srq = NULL;
	REQUEST(&w, 4, srqn, 8, ibv_wr_send(x));
	if (!ended(&w, IBV_WC_REM_INV_REQ_ERR, "a destroyed SRQ"))
		return false;
	VERB(ibv_destroy_srq(srq));
	return free_sink(&mine) && free_sink(&other) && free_way(&w) && free_way(&v);
}

/* ---- several processes ---- */

/* Data that parent and child share */
struct shared {
	volatile uint32_t srqn;
	volatile uint32_t got;
	volatile bool bad;
	char why[sizeof(reason)];
};

/* Run a process with an SRQ in the XRC domain. It opens the target QP @tgt, unless @tgt is 0. */
static void child(struct shared *sh, int fd, uint32_t tgt)
{
	struct ibv_qp_open_attr attr = {
		.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE,
		.qp_num = tgt, .qp_type = IBV_QPT_XRC_RECV,
	};
	struct sink s = {};
	struct completion c;
	uint64_t slot = 0;

	if (!device_open())
		goto bad;
	attr.xrcd = open_domain(dev.ctx, fd);
	if (!attr.xrcd || !make_sink(&s, attr.xrcd, SLOTS))
		goto bad;
	if (tgt && !ibv_open_qp(dev.ctx, &attr)) {
		fail("ibv_open_qp: %m");
		goto bad;
	}
	sh->srqn = s.srqn;
	for (;; slot = (slot + 1) % SLOTS) {
		if (!wait_for(s.cq, slot, IBV_WC_RECV, &c) ||
		    !filled(s.buf + slot * SLOT, c.byte_len, ntohl(c.imm)) || !post(&s, slot))
			goto bad;
		sh->got++;
	}
bad:
	snprintf(sh->why, sizeof(sh->why), "%s", reason);
	sh->bad = true;
	_exit(1);
}

static bool settled(struct shared *sh, volatile uint32_t *what, uint32_t want, bool any)
{
	uint64_t end = clock_ns(CLOCK_MONOTONIC) + wait_s * 1000000000ULL;

	while (any ? !*what : *what != want) {
		REQUIRE(!sh->bad, "child: %s", sh->why);
		REQUIRE(clock_ns(CLOCK_MONOTONIC) < end, "child: %u instead of %u", *what, want);
		usleep(200);
	}
	return true;
}

static bool processes(struct pair *p)
{
	const int children = 3, rounds = 30;
	struct shared *sh = mmap(NULL, children * sizeof(*sh), PROT_READ | PROT_WRITE,
				 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct way w = {};
	pid_t pid[3];

	(void)p;
	REQUIRE(sh != MAP_FAILED, "mmap: %m");
	if (!make_way(&w))
		return false;
	for (int i = 0; i < children; i++) {
		pid[i] = fork();
		if (!pid[i])
			child(&sh[i], w.fd, i ? 0 : w.tgt->qp_num);
		if (!settled(&sh[i], &sh[i].srqn, 0, true))
			return false;
	}
	for (int i = 0; i < children * rounds; i++)
		if (!send_to(&w, sh[i % children].srqn, 1 + (i * 1777) % 60000, i))
			return false;
	for (int i = 0; i < children; i++)
		if (!settled(&sh[i], &sh[i].got, rounds, false))
			return false;

	/*
	 * one process is killed: requests to its SRQ are refused, and the SRQs of the other
	 * processes still work
	 */
	kill(pid[2], SIGKILL);
	waitpid(pid[2], NULL, 0);
	REQUEST(&w, 1, sh[2].srqn, 8, ibv_wr_send_imm(x, 0));
	if (!ended(&w, IBV_WC_REM_INV_REQ_ERR, "the SRQ of a dead process"))
		return false;

	/* destroy the target QP: it remains, because another process has opened it */
	VERB(ibv_destroy_qp(w.tgt));
	w.tgt = NULL;
	for (int i = 0; i < 2 * rounds; i++)
		if (!send_to(&w, sh[i % 2].srqn, 1 + (i * 1777) % 60000, i))
			return false;
	for (int i = 0; i < 2; i++)
		if (!settled(&sh[i], &sh[i].got, 2 * rounds, false))
			return false;
	for (int i = 0; i < 2; i++) {
		kill(pid[i], SIGKILL);
		waitpid(pid[i], NULL, 0);
	}
	munmap(sh, children * sizeof(*sh));
	return free_way(&w);
}

static const struct test tests[] = {
	{ "XRC: two SRQs with one target", two_srqs, false },
	{ "XRC: WRITE, READ, atomics, in the protection domain of the SRQ", remote_memory, false },
	{ "XRC: invalid SRQ numbers are refused", numbers_refused, false },
	{ "XRC: SRQs of three processes, one killed, the target closed", processes, false },
};

int main(int argc, char **argv)
{
	return run_tests(tests, sizeof(tests) / sizeof(tests[0]), argc > 1 ? argv[1] : NULL);
}
