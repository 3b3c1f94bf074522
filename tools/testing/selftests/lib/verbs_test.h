/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Common code of test programs on plain libibverbs: a list of tests, whose results are a KTAP
 * report, and a pair of queue pairs on one device, with both ends in this process.  $RDMA_DEV names
 * the device.
 */
#ifndef VERBS_TEST_H
#define VERBS_TEST_H

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "ktap.h"

#ifndef WAIT_S
#define WAIT_S		30	/* bound of each wait; no operation takes that long */
#endif
#define QKEY		0x11111111
#define ACCESS		(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | \
			 IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)
#define RC_OPS		(IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | \
			 IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM | \
			 IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | \
			 IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD)
#define UC_OPS		(IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | UD_OPS)
#define UD_OPS		(IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM)
#define STAMPS		(IBV_WC_EX_WITH_COMPLETION_TIMESTAMP | \
			 IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)

/* The device; filled in by open_device() */
struct device {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_pd *domain;	/* parent domain for CQs, then @pd is the same; or NULL */
	struct ibv_device_attr_ex attr;
	struct ibv_port_attr port;
	union ibv_gid gid;
	int gid_index;
	bool ipv4;
	bool nhca;		/* for nhca a missing feature is a failure, not a skip */
	bool stamps;		/* its CQEs have timestamps */
};

/* One end: a queue pair, its CQ and memory */
struct end {
	struct ibv_cq_ex *cq;
	struct ibv_qp *qp;
	struct ibv_qp_ex *qpx;
	struct ibv_qp_cap cap;
	uint8_t *buf;
	struct ibv_mr *mr;
};

/* Objects that make_pair() creates; pair_free() destroys those that exist */
struct pair {
	struct end a, b;
	struct ibv_comp_channel *channel;	/* of b's CQ */
	struct ibv_srq *srq;			/* of b */
	struct ibv_ah *ah;
	size_t size;
};

/* Options of make_pair(); zero selects a default */
struct pair_opts {
	enum ibv_qp_type type;
	size_t size;		/* bytes of memory at each end */
	int cqe;
	int wr;
	int sge;
	int inline_data;
	int srq_wr;
	uint64_t more_ops;	/* IBV_QP_EX_WITH_*, besides those of the type */
	int more_access;	/* of the memory */
	bool channel;
	bool unconnected;
};

struct completion {
	uint64_t wr_id;
	enum ibv_wc_status status;
	enum ibv_wc_opcode opcode;
	unsigned int flags;
	uint32_t byte_len;
	uint32_t imm;
	uint32_t qp_num;
	uint32_t src_qp;
	uint8_t sl;
	uint64_t stamp;
	uint64_t wall;
};

static struct device dev;
static char reason[256];
static bool skipped;

/* Store the reason of a failure: `return fail(...)` */
__attribute__((format(printf, 1, 2), unused))
static bool fail(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(reason, sizeof(reason), fmt, args);
	va_end(args);
	return false;
}

#define REQUIRE(cond, ...) do {		\
	if (!(cond))			\
		return fail(__VA_ARGS__);	\
} while (0)

/* Fail the test if a verb does not return 0 but an errno, or -1 with errno */
#define VERB(call) do {								\
	int verb_ret = (call);							\
	if (verb_ret)								\
		return fail("%s: %s", #call, strerror(verb_ret > 0 ? verb_ret : errno)); \
} while (0)

/* A feature that other devices may lack: `return missing(...)` */
__attribute__((unused)) static bool missing(const char *what)
{
	skipped = !dev.nhca;
	return fail("%s is missing", what);
}

__attribute__((unused)) static uint64_t now_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

/* Write a pattern that differs by byte and by @seed, so that a misplaced byte shows. */
__attribute__((unused)) static void fill(uint8_t *p, size_t len, uint32_t seed)
{
	for (size_t i = 0; i < len; i++)
		p[i] = (uint8_t)((i * 2654435761u >> 13) ^ (i >> 3) ^ seed * 31);
}

__attribute__((unused)) static bool filled(const uint8_t *p, size_t len, uint32_t seed)
{
	for (size_t i = 0; i < len; i++)
		if (p[i] != (uint8_t)((i * 2654435761u >> 13) ^ (i >> 3) ^ seed * 31))
			return fail("byte %zu of %zu is wrong", i, len);
	return true;
}

/* Return: the value of one of the device's hw_counters, or -1 if it does not exist. */
__attribute__((unused)) static long counter(const char *name)
{
	char path[256];
	long n = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/1/hw_counters/%s",
		 getenv("RDMA_DEV"), name);
	/* the RDMA core caches counters for 10 ms */
	usleep(20000);
	f = fopen(path, "r");
	if (f && fscanf(f, "%ld", &n) != 1)
		n = -1;
	if (f)
		fclose(f);
	return n;
}

/* Return: the number after @name at the start of a line of the file, or -1 without such a line. */
__attribute__((unused)) static long proc_number(const char *path, const char *name)
{
	FILE *f = fopen(path, "r");
	char line[256];
	long n = -1;

	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, name, strlen(name)))
			n = atol(line + strlen(name));
	if (f)
		fclose(f);
	return n;
}

/* Return: a number of /proc/self/status, such as "VmPin:", in KiB. */
__attribute__((unused)) static long status_kb(const char *name)
{
	return proc_number("/proc/self/status", name);
}

/*
 * Return: KiB that this process has pinned.  The kernel counts a ring that was unmapped after its
 * destruction up to a twentieth of a second longer, so the number is read until it stays the same.
 */
__attribute__((unused)) static long pinned_kb(void)
{
	long kb = status_kb("VmPin:"), last;

	do {
		last = kb;
		usleep(200000);
		kb = status_kb("VmPin:");
	} while (kb != last);
	return kb;
}

/*
 * Read and acknowledge asynchronous events until one of @type; type -1 reads all that are there.
 * @ms: the longest wait for each event.
 */
__attribute__((unused)) static bool wait_event(int type, int ms)
{
	struct pollfd fd = { .fd = dev.ctx->async_fd, .events = POLLIN };
	struct ibv_async_event event;
	bool seen = false;

	while (!seen && poll(&fd, 1, ms) > 0 && !ibv_get_async_event(dev.ctx, &event)) {
		seen = (int)event.event_type == type;
		ibv_ack_async_event(&event);
	}
	return seen;
}

/* Return: true if the completion channel gets an event within @ms. */
__attribute__((unused)) static bool cq_event(struct ibv_comp_channel *channel, int ms)
{
	struct pollfd fd = { .fd = channel->fd, .events = POLLIN };
	struct ibv_cq *cq;
	void *context;

	if (poll(&fd, 1, ms) <= 0 || ibv_get_cq_event(channel, &cq, &context))
		return false;
	ibv_ack_cq_events(cq, 1);
	return true;
}

/* Return: true if there was a completion; it is copied to @c. */
__attribute__((unused)) static bool poll_one(struct ibv_cq_ex *cq, struct completion *c)
{
	struct ibv_poll_cq_attr attr = {};

	if (ibv_start_poll(cq, &attr))
		return false;
	*c = (struct completion){
		.wr_id = cq->wr_id,
		.status = cq->status,
		.opcode = ibv_wc_read_opcode(cq),
		.flags = ibv_wc_read_wc_flags(cq),
		.byte_len = ibv_wc_read_byte_len(cq),
		.imm = ibv_wc_read_imm_data(cq),
		.qp_num = ibv_wc_read_qp_num(cq),
		.src_qp = ibv_wc_read_src_qp(cq),
		.sl = ibv_wc_read_sl(cq),
	};
	if (dev.stamps) {
		c->stamp = ibv_wc_read_completion_ts(cq);
		c->wall = ibv_wc_read_completion_wallclock_ns(cq);
	}
	ibv_end_poll(cq);
	return true;
}

__attribute__((unused)) static bool wait_any(struct ibv_cq_ex *cq, struct completion *c)
{
	uint64_t end = now_ns(CLOCK_MONOTONIC) + WAIT_S * 1000000000ULL;

	while (!poll_one(cq, c)) {
		REQUIRE(now_ns(CLOCK_MONOTONIC) < end, "no completion within %d s", WAIT_S);
		usleep(50);
	}
	return true;
}

/* Wait for the next completion, which must be that of @wr_id and successful. */
__attribute__((unused)) static bool wait_for(struct ibv_cq_ex *cq, uint64_t wr_id,
					     enum ibv_wc_opcode opcode, struct completion *c)
{
	if (!wait_any(cq, c))
		return false;
	REQUIRE(c->status == IBV_WC_SUCCESS, "request %lu: %s", (unsigned long)c->wr_id,
		ibv_wc_status_str(c->status));
	REQUIRE(c->wr_id == wr_id, "completion of request %lu instead of %lu",
		(unsigned long)c->wr_id, (unsigned long)wr_id);
	REQUIRE(c->opcode == opcode, "request %lu: opcode %d instead of %d", (unsigned long)wr_id,
		c->opcode, opcode);
	return true;
}

__attribute__((unused)) static struct ibv_sge sge_of(const struct end *e, size_t off, uint32_t len)
{
	return (struct ibv_sge){ (uintptr_t)e->buf + off, len, e->mr->lkey };
}

__attribute__((unused)) static bool post_recv(struct pair *p, uint64_t wr_id, size_t off,
					      uint32_t len)
{
	struct ibv_sge sge = sge_of(&p->b, off, len);
	struct ibv_recv_wr wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1 };
	struct ibv_recv_wr *bad;

	if (p->srq)
		VERB(ibv_post_srq_recv(p->srq, &wr, &bad));
	else
		VERB(ibv_post_recv(p->b.qp, &wr, &bad));
	return true;
}

/* Post a SEND from a to b; @flags are IBV_SEND_*. */
__attribute__((unused)) static bool post_send(struct pair *p, uint64_t wr_id, size_t off,
					      uint32_t len, unsigned int flags)
{
	struct ibv_sge sge = sge_of(&p->a, off, len);
	struct ibv_send_wr wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1,
				  .opcode = IBV_WR_SEND, .send_flags = flags };
	struct ibv_send_wr *bad;

	VERB(ibv_post_send(p->a.qp, &wr, &bad));
	return true;
}

__attribute__((unused)) static bool modify(struct ibv_qp *qp, enum ibv_qp_state state,
					   uint32_t peer)
{
	struct ibv_qp_attr attr = {
		.qp_state = state, .port_num = 1, .qkey = QKEY, .qp_access_flags = ACCESS,
		.path_mtu = dev.port.active_mtu, .dest_qp_num = peer, .rq_psn = 0xfffff0,
		.sq_psn = 0xfffff0, .max_dest_rd_atomic = 8, .max_rd_atomic = 8,
		.min_rnr_timer = 1, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7,
		.ah_attr = { .is_global = 1, .port_num = 1, .grh = { .dgid = dev.gid,
			     .sgid_index = dev.gid_index, .hop_limit = 64 } },
	};
	bool rc = qp->qp_type == IBV_QPT_RC, ud = qp->qp_type == IBV_QPT_UD;
	int mask = IBV_QP_STATE;

	if (state == IBV_QPS_INIT)
		mask |= IBV_QP_PKEY_INDEX | IBV_QP_PORT | (ud ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS);
	if (state == IBV_QPS_RTR && !ud)
		mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	if (state == IBV_QPS_RTR && rc)
		mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	if (state == IBV_QPS_RTS)
		mask |= IBV_QP_SQ_PSN;
	if (state == IBV_QPS_RTS && rc)
		mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			IBV_QP_MAX_QP_RD_ATOMIC;
	VERB(ibv_modify_qp(qp, &attr, mask));
	return true;
}

__attribute__((unused)) static bool connect_pair(struct pair *p)
{
	return modify(p->a.qp, IBV_QPS_INIT, 0) && modify(p->b.qp, IBV_QPS_INIT, 0) &&
	       modify(p->a.qp, IBV_QPS_RTR, p->b.qp->qp_num) &&
	       modify(p->b.qp, IBV_QPS_RTR, p->a.qp->qp_num) &&
	       modify(p->a.qp, IBV_QPS_RTS, 0) && modify(p->b.qp, IBV_QPS_RTS, 0);
}

/* Move both queue pairs to RESET, empty their CQs, and connect them again. */
__attribute__((unused)) static bool reconnect(struct pair *p)
{
	struct completion c;

	if (!modify(p->a.qp, IBV_QPS_RESET, 0) || !modify(p->b.qp, IBV_QPS_RESET, 0))
		return false;
	while (poll_one(p->a.cq, &c) || poll_one(p->b.cq, &c))
		;
	return connect_pair(p);
}

/* Post a request on a, which must complete with status @want.  After an error, reconnect. */
__attribute__((unused)) static bool request_ends(struct pair *p, struct ibv_send_wr *wr,
						 enum ibv_wc_status want, const char *what)
{
	struct ibv_send_wr *bad;
	struct completion c;

	wr->send_flags = IBV_SEND_SIGNALED;
	VERB(ibv_post_send(p->a.qp, wr, &bad));
	if (!wait_any(p->a.cq, &c))
		return fail("%s: no completion", what);
	REQUIRE(c.status == want, "%s: %s instead of %s", what, ibv_wc_status_str(c.status),
		ibv_wc_status_str(want));
	return want == IBV_WC_SUCCESS || reconnect(p);
}

__attribute__((unused)) static struct ibv_cq_ex *make_cq(int cqe, struct ibv_comp_channel *channel,
							 uint64_t more)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = cqe, .channel = channel,
		.wc_flags = IBV_WC_STANDARD_FLAGS | (dev.stamps ? STAMPS : 0) | more,
		.comp_mask = dev.domain ? IBV_CQ_INIT_ATTR_MASK_PD : 0,
		.parent_domain = dev.domain,
	};

	return ibv_create_cq_ex(dev.ctx, &attr);
}

__attribute__((unused)) static bool make_end(struct pair *p, struct end *e,
					     const struct pair_opts *o, bool receiver)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = o->type ?: IBV_QPT_RC,
		.cap = { .max_send_wr = o->wr ?: 64, .max_recv_wr = o->wr ?: 64,
			 .max_send_sge = o->sge ?: 4, .max_recv_sge = o->sge ?: 4,
			 .max_inline_data = o->inline_data },
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = dev.pd,
	};

	attr.send_ops_flags = attr.qp_type == IBV_QPT_RC ? RC_OPS :
			      attr.qp_type == IBV_QPT_UC ? UC_OPS : UD_OPS;
	attr.send_ops_flags |= o->more_ops;
	e->cq = make_cq(o->cqe ?: 256, receiver ? p->channel : NULL, 0);
	REQUIRE(e->cq, "ibv_create_cq_ex: %m");
	attr.send_cq = attr.recv_cq = ibv_cq_ex_to_cq(e->cq);
	if (receiver && p->srq) {
		attr.srq = p->srq;
		attr.cap.max_recv_wr = attr.cap.max_recv_sge = 0;
	}
	e->qp = ibv_create_qp_ex(dev.ctx, &attr);
	REQUIRE(e->qp, "ibv_create_qp_ex: %m");
	e->qpx = ibv_qp_to_qp_ex(e->qp);
	REQUIRE(e->qpx, "ibv_qp_to_qp_ex gives nothing");
	e->cap = attr.cap;
	REQUIRE(!posix_memalign((void **)&e->buf, 4096, p->size), "no memory");
	memset(e->buf, 0xee, p->size);
	e->mr = ibv_reg_mr(dev.pd, e->buf, p->size, ACCESS | o->more_access);
	REQUIRE(e->mr, "ibv_reg_mr: %m");
	return true;
}

__attribute__((unused)) static bool make_pair(struct pair *p, struct pair_opts o)
{
	p->size = o.size ?: 65536;
	if (o.channel) {
		p->channel = ibv_create_comp_channel(dev.ctx);
		REQUIRE(p->channel, "ibv_create_comp_channel: %m");
	}
	if (o.srq_wr) {
		struct ibv_srq_init_attr attr = { .attr = { .max_wr = o.srq_wr, .max_sge = 4 } };

		p->srq = ibv_create_srq(dev.pd, &attr);
		REQUIRE(p->srq, "ibv_create_srq: %m");
	}
	return make_end(p, &p->a, &o, false) && make_end(p, &p->b, &o, true) &&
	       (o.unconnected || connect_pair(p));
}

__attribute__((unused)) static bool end_free(struct end *e)
{
	if (e->qp)
		VERB(ibv_destroy_qp(e->qp));
	if (e->cq)
		VERB(ibv_destroy_cq(ibv_cq_ex_to_cq(e->cq)));
	if (e->mr)
		VERB(ibv_dereg_mr(e->mr));
	free(e->buf);
	return true;
}

__attribute__((unused)) static bool pair_free(struct pair *p)
{
	wait_event(-1, 0);
	if (p->ah)
		VERB(ibv_destroy_ah(p->ah));
	if (!end_free(&p->a) || !end_free(&p->b))
		return false;
	if (p->srq)
		VERB(ibv_destroy_srq(p->srq));
	if (p->channel)
		VERB(ibv_destroy_comp_channel(p->channel));
	return true;
}

/* Find a RoCEv2 GID; one of an IPv4 address is preferred. */
static bool find_gid(void)
{
	static const uint8_t mapped[12] = { [10] = 0xff, 0xff };
	struct ibv_gid_entry entry;
	bool found = false;

	for (int i = 0; i < dev.port.gid_tbl_len; i++) {
		if (ibv_query_gid_ex(dev.ctx, 1, i, &entry, 0) ||
		    entry.gid_type != IBV_GID_TYPE_ROCE_V2)
			continue;
		dev.ipv4 = !memcmp(entry.gid.raw, mapped, sizeof(mapped));
		if (!found || dev.ipv4) {
			dev.gid = entry.gid;
			dev.gid_index = i;
		}
		found = true;
		if (dev.ipv4)
			break;
	}
	return found;
}

__attribute__((unused)) static bool open_device(void)
{
	const char *name = getenv("RDMA_DEV");
	struct ibv_device **list = ibv_get_device_list(NULL), **d;
	struct ibv_cq_ex *cq;

	REQUIRE(name, "RDMA_DEV is not set");
	REQUIRE(list, "ibv_get_device_list: %m");
	for (d = list; *d && strcmp(ibv_get_device_name(*d), name); d++)
		;
	REQUIRE(*d, "libibverbs knows no device %s", name);
	dev.ctx = ibv_open_device(*d);
	REQUIRE(dev.ctx, "ibv_open_device: %m");
	ibv_free_device_list(list);
	dev.nhca = !strncmp(name, "nhca", 4);
	dev.pd = ibv_alloc_pd(dev.ctx);
	REQUIRE(dev.pd, "ibv_alloc_pd: %m");
	VERB(ibv_query_device_ex(dev.ctx, NULL, &dev.attr));
	VERB(ibv_query_port(dev.ctx, 1, &dev.port));
	REQUIRE(find_gid(), "%s has no RoCEv2 GID", name);
	cq = make_cq(1, NULL, STAMPS);
	dev.stamps = cq;
	if (cq)
		VERB(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)));
	return true;
}

/* @loose: other devices are known to fail the test, so their failure counts as a skip. */
struct test {
	const char *name;
	bool (*run)(struct pair *p);
	bool loose;
};

/*
 * Run the tests whose name contains @only, or all if it is NULL.  Return: the exit status of the
 * program.
 */
__attribute__((unused)) static int run_tests(const struct test *tests, size_t count,
					     const char *only)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (!open_device()) {
		ktap_notok(reason, "device");
		return ktap_end();
	}
	for (size_t i = 0; i < count; i++) {
		struct pair pair = {};
		bool good;

		if (only && !strstr(tests[i].name, only))
			continue;
		skipped = tests[i].loose && !dev.nhca;
		good = tests[i].run(&pair);
		if (good)
			good = pair_free(&pair);
		else
			wait_event(-1, 0);
		if (good)
			ktap_ok("%s", tests[i].name);
		else if (skipped)
			ktap_skip(reason, "%s", tests[i].name);
		else
			ktap_notok(reason, "%s", tests[i].name);
		/* objects that a failed test has left are freed when the process ends */
	}
	return ktap_end();
}

#endif /* VERBS_TEST_H */
