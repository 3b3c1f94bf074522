// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* verbs_test.h describes these functions. */
#include "verbs_test.h"

unsigned int wait_s = 30;
struct device dev;
char reason[256];
bool skipped;

bool fail(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(reason, sizeof(reason), fmt, args);
	va_end(args);
	return false;
}

bool missing(const char *what)
{
	skipped = !dev.nhca;
	return fail("%s is missing", what);
}

uint64_t clock_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

void fill(uint8_t *p, size_t len, uint32_t seed)
{
	for (size_t i = 0; i < len; i++)
		p[i] = (uint8_t)((i * 2654435761u >> 13) ^ (i >> 3) ^ seed * 31);
}

bool filled(const uint8_t *p, size_t len, uint32_t seed)
{
	for (size_t i = 0; i < len; i++)
		if (p[i] != (uint8_t)((i * 2654435761u >> 13) ^ (i >> 3) ^ seed * 31))
			return fail("byte %zu of %zu is wrong", i, len);
	return true;
}

long counter(const char *name)
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

bool async_event(int type, int ms)
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

bool cq_event(struct ibv_comp_channel *channel, int ms)
{
	struct pollfd fd = { .fd = channel->fd, .events = POLLIN };
	struct ibv_cq *cq;
	void *context;

	if (poll(&fd, 1, ms) <= 0 || ibv_get_cq_event(channel, &cq, &context))
		return false;
	ibv_ack_cq_events(cq, 1);
	return true;
}

bool poll_one(struct ibv_cq_ex *cq, struct completion *c)
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

bool wait_any(struct ibv_cq_ex *cq, struct completion *c)
{
	uint64_t end = clock_ns(CLOCK_MONOTONIC) + wait_s * 1000000000ULL;

	while (!poll_one(cq, c)) {
		REQUIRE(clock_ns(CLOCK_MONOTONIC) < end, "no completion within %u s", wait_s);
		usleep(50);
	}
	return true;
}

bool wait_for(struct ibv_cq_ex *cq, uint64_t wr_id, enum ibv_wc_opcode opcode,
	      struct completion *c)
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

struct ibv_sge sge_of(const struct end *e, size_t off, uint32_t len)
{
	return (struct ibv_sge){ (uintptr_t)e->buf + off, len, e->mr->lkey };
}

bool post_recv(struct pair *p, uint64_t wr_id, size_t off, uint32_t len)
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

bool post_send(struct pair *p, uint64_t wr_id, size_t off, uint32_t len, unsigned int flags)
{
	struct ibv_sge sge = sge_of(&p->a, off, len);
	struct ibv_send_wr wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1,
				  .opcode = IBV_WR_SEND, .send_flags = flags };
	struct ibv_send_wr *bad;

	VERB(ibv_post_send(p->a.qp, &wr, &bad));
	return true;
}

bool modify(struct ibv_qp *qp, enum ibv_qp_state state, uint32_t peer)
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

bool connect_pair(struct pair *p)
{
	return modify(p->a.qp, IBV_QPS_INIT, 0) && modify(p->b.qp, IBV_QPS_INIT, 0) &&
	       modify(p->a.qp, IBV_QPS_RTR, p->b.qp->qp_num) &&
	       modify(p->b.qp, IBV_QPS_RTR, p->a.qp->qp_num) &&
	       modify(p->a.qp, IBV_QPS_RTS, 0) && modify(p->b.qp, IBV_QPS_RTS, 0);
}

bool reconnect(struct pair *p)
{
	struct completion c;

	if (!modify(p->a.qp, IBV_QPS_RESET, 0) || !modify(p->b.qp, IBV_QPS_RESET, 0))
		return false;
	while (poll_one(p->a.cq, &c) || poll_one(p->b.cq, &c))
		;
	return connect_pair(p);
}

bool request_ends(struct pair *p, struct ibv_send_wr *wr, enum ibv_wc_status want,
		  const char *what)
{
	struct ibv_send_wr *bad;
	struct completion c;

	wr->send_flags |= IBV_SEND_SIGNALED;
	VERB(ibv_post_send(p->a.qp, wr, &bad));
	if (!wait_any(p->a.cq, &c))
		return fail("%s: no completion", what);
	REQUIRE(c.status == want, "%s: %s instead of %s", what, ibv_wc_status_str(c.status),
		ibv_wc_status_str(want));
	return want == IBV_WC_SUCCESS || reconnect(p);
}

struct ibv_cq_ex *make_cq(int cqe, struct ibv_comp_channel *channel, uint64_t more)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = cqe, .channel = channel,
		.wc_flags = IBV_WC_STANDARD_FLAGS | (dev.stamps ? STAMPS : 0) | more,
		.comp_mask = dev.domain ? IBV_CQ_INIT_ATTR_MASK_PD : 0,
		.parent_domain = dev.domain,
	};

	return ibv_create_cq_ex(dev.ctx, &attr);
}

bool make_end(struct pair *p, struct end *e, const struct pair_opts *o, bool receiver)
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

bool make_pair(struct pair *p, struct pair_opts o)
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

bool end_free(struct end *e)
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

bool pair_free(struct pair *p)
{
	async_event(-1, 0);
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

bool find_gid(void)
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

bool device_open(void)
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

int run_tests(const struct test *tests, size_t count, const char *only)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (!device_open()) {
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
			async_event(-1, 0);
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
