// SPDX-License-Identifier: GPL-2.0
/* ends.h describes these functions. */
#define _GNU_SOURCE
#include "ends.h"

const char *device_name;
int gid_index;
uint32_t depth = DEPTH;

/* ---- messages ---- */

struct shared *shared;

void die(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	if (!shared->why[0])
		vsnprintf(shared->why, sizeof(shared->why), format, args);
	va_end(args);
	_exit(1);
}

double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

uint64_t seed_state;

uint64_t rnd(void)
{
	/* splitmix64: the same seed gives the same numbers */
	uint64_t z = seed_state += 0x9e3779b97f4a7c15ULL;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
	return z ^ z >> 31;
}

void rnd_fill(void *where, size_t bytes)
{
	uint64_t *p = where;

	for (; bytes >= 8; bytes -= 8)
		*p++ = rnd();
}

/* ---- finding rings ---- */

int maps_read(struct map *maps, int room)
{
	FILE *f = fopen("/proc/self/maps", "r");
	unsigned long start, end;
	uint64_t offset;
	char line[512];
	int n = 0;

	must(f);
	while (fgets(line, sizeof(line), f)) {
		if (!strstr(line, "/uverbs") || n == room)
			continue;
		must(sscanf(line, "%lx-%lx %*s %" SCNx64, &start, &end, &offset) == 3);
		maps[n++] = (struct map){ (char *)start, end - start, offset };
	}
	fclose(f);
	return n;
}

/* Find mappings that are not in @before.  Return: how many there are. */
static int maps_new(const struct map *before, int nbefore, struct map *fresh, int room)
{
	struct map all[256];
	int n = maps_read(all, 256), found = 0, i, j;

	for (i = 0; i < n; i++) {
		for (j = 0; j < nbefore && before[j].start != all[i].start; j++)
			;
		if (j == nbefore && found < room)
			fresh[found++] = all[i];
	}
	return found;
}

char *slot(const struct ring *r, uint32_t index)
{
	return (char *)r->hdr + NHCA_RING_HDR_SIZE + (size_t)(index & (r->entries - 1)) * r->stride;
}

/* Find the ring whose slots 0 and 1 have the wr_ids MAGIC + @tag and MAGIC + @tag + 1. */
static bool ring_find(struct ring *r, const struct map *maps, int n, unsigned int tag)
{
	uint64_t *p, *end;
	int i;

	for (i = 0; i < n; i++) {
		p = (uint64_t *)(maps[i].start + NHCA_RING_HDR_SIZE);
		end = (uint64_t *)(maps[i].start + maps[i].size);
		if (*p != MAGIC + tag)
			continue;
		r->hdr = (void *)maps[i].start;
		r->size = maps[i].size;
		r->offset = maps[i].offset;
		for (r->stride = 8; p + r->stride / 8 < end; r->stride += 8)
			if (p[r->stride / 8] == MAGIC + tag + 1)
				break;
		r->entries = 1;
		while (NHCA_RING_HDR_SIZE + 2ULL * r->entries * r->stride <= r->size)
			r->entries *= 2;
		return p + r->stride / 8 < end;
	}
	return false;
}

uint32_t load(const __u32 *p)
{
	return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}

void store(__u32 *p, uint32_t v)
{
	__atomic_store_n(p, v, __ATOMIC_RELEASE);
}

/* ---- endpoints ---- */

static struct ibv_context *device_open(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx;
	int i;

	must(list);
	for (i = 0; list[i] && strcmp(ibv_get_device_name(list[i]), device_name); i++)
		;
	must(list[i]);
	ctx = ibv_open_device(list[i]);
	must(ctx);
	ibv_free_device_list(list);
	must(!fcntl(ctx->async_fd, F_SETFL, O_NONBLOCK));
	return ctx;
}

void end_modify(struct end *e, enum ibv_qp_state state, uint32_t dest, bool unchecked)
{
	struct ibv_qp_attr a = { .qp_state = state, .port_num = 1, .qkey = QKEY };
	int mask = IBV_QP_STATE, err;

	if (state == IBV_QPS_INIT) {
		a.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
				    IBV_ACCESS_REMOTE_ATOMIC;
		mask |= IBV_QP_PKEY_INDEX | IBV_QP_PORT;
		if (e->type == IBV_QPT_UC)
			a.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
		mask |= e->type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS;
	} else if (state == IBV_QPS_RTR && e->type != IBV_QPT_UD) {
		a.path_mtu = e->mtu;
		a.dest_qp_num = dest;
		a.ah_attr.is_global = 1;
		a.ah_attr.port_num = 1;
		a.ah_attr.grh.dgid = e->gid;
		a.ah_attr.grh.sgid_index = gid_index;
		a.ah_attr.grh.hop_limit = 64;
		mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
		if (e->type == IBV_QPT_RC) {
			a.max_dest_rd_atomic = 4;
			a.min_rnr_timer = 1;
			mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
		}
	} else if (state == IBV_QPS_RTS) {
		mask |= IBV_QP_SQ_PSN;
		if (e->type == IBV_QPT_RC) {
			a.timeout = e->patient ? 17 : 10;
			a.retry_cnt = e->patient ? 7 : 2;
			a.rnr_retry = e->patient ? 7 : 2;
			a.max_rd_atomic = 4;
			mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				IBV_QP_MAX_QP_RD_ATOMIC;
		}
	}
	err = ibv_modify_qp(e->qp, &a, mask);
	if (err && !unchecked)
		die("QP to state %d: %s", state, strerror(err));
}

enum ibv_qp_state end_state(struct end *e)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr a;

	must(!ibv_query_qp(e->qp, &a, IBV_QP_STATE, &init));
	return a.qp_state;
}

/* @unchecked: ignore errors, because an attack may cause them */
void bring_up(struct end *a, struct end *b, bool unchecked)
{
	static const enum ibv_qp_state states[] = { IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR,
						    IBV_QPS_RTS };
	int i;

	for (i = 0; i < 4; i++) {
		end_modify(a, states[i], b->qp->qp_num, unchecked);
		end_modify(b, states[i], a->qp->qp_num, unchecked);
	}
}

void connect_ends(struct end *a, struct end *b)
{
	bring_up(a, b, false);
}

void post_recv(struct end *e, uint64_t wr_id, void *addr, uint32_t length)
{
	struct ibv_sge sge = { (uintptr_t)addr, length, e->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1 }, *bad;

	must(!(e->srq ? ibv_post_srq_recv(e->srq, &wr, &bad) : ibv_post_recv(e->qp, &wr, &bad)));
}

void post_send(struct end *e, uint64_t wr_id, enum ibv_wr_opcode op, void *addr, uint32_t length,
	       struct end *to)
{
	struct ibv_sge sge = { (uintptr_t)addr, length, e->mr->lkey };
	struct ibv_send_wr wr = {
		.wr_id = wr_id, .sg_list = &sge, .num_sge = 1, .opcode = op,
		.send_flags = IBV_SEND_SIGNALED,
	}, *bad;

	if (e->type == IBV_QPT_UD) {
		wr.wr.ud.ah = e->ah;
		wr.wr.ud.remote_qpn = to->qp->qp_num;
		wr.wr.ud.remote_qkey = QKEY;
	} else {
		wr.wr.rdma.remote_addr = (uintptr_t)to->buf;
		wr.wr.rdma.rkey = to->mr->rkey;
	}
	must(!ibv_post_send(e->qp, &wr, &bad));
}

static void find_rings(struct end *e, const struct map *maps, int n)
{
	struct ibv_wc wc;
	double until = now() + PATIENCE;
	int done = 0, want = e->srq ? 2 : 4;

	/*
	 * A QP in the error state completes requests with an error and leaves their slots
	 * unchanged, so ring_find() finds the wr_ids.
	 */
	end_modify(e, IBV_QPS_INIT, 0, false);
	end_modify(e, IBV_QPS_ERR, 0, false);
	post_recv(e, MAGIC + 16, e->buf, 64);
	post_recv(e, MAGIC + 17, e->buf, 64);
	post_send(e, MAGIC, IBV_WR_SEND, e->buf, 64, e);
	post_send(e, MAGIC + 1, IBV_WR_SEND, e->buf, 64, e);
	must(ring_find(&e->sqr, maps, n, 0));
	must(ring_find(e->srq ? &e->srqr : &e->rqr, maps, n, 16));
	if (e->type == IBV_QPT_UD)
		e->ah_id = ((struct nhca_send_wqe *)slot(&e->sqr, 0))->ud.ah_id;
	while (done < want) {
		done += ibv_poll_cq(e->cq, 1, &wc);
		if (now() > until)
			die("%d of %d requests of a QP in error were flushed", done, want);
	}
	end_modify(e, IBV_QPS_RESET, 0, false);
}

void end_make(struct end *e, enum ibv_qp_type type, bool with_srq, int cqes)
{
	struct ibv_srq_init_attr srq_init = { .attr = { .max_wr = DEPTH, .max_sge = SGES } };
	struct ibv_qp_init_attr init = {
		.qp_type = type,
		.sq_sig_all = 0,
		.cap = { depth, depth, SGES, SGES, INLINE },
	};
	struct map before[256], fresh[8];
	struct ibv_port_attr port;
	int n, found;

	memset(e, 0, sizeof(*e));
	e->type = type;
	e->ctx = device_open();
	must(!ibv_query_port(e->ctx, 1, &port));
	e->mtu = port.active_mtu;
	must(!ibv_query_gid(e->ctx, 1, gid_index, &e->gid));
	e->block = mmap(NULL, REGION + 2 * FENCE, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	must(e->block != MAP_FAILED);
	memset(e->block, FENCE_BYTE, REGION + 2 * FENCE);
	e->buf = e->block + FENCE;
	must(e->pd = ibv_alloc_pd(e->ctx));
	must(e->mr = ibv_reg_mr(e->pd, e->buf, REGION, IBV_ACCESS_LOCAL_WRITE |
				IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
				IBV_ACCESS_REMOTE_ATOMIC));
	must(e->channel = ibv_create_comp_channel(e->ctx));

	n = maps_read(before, 256);
	must(e->cq = ibv_create_cq(e->ctx, cqes, NULL, e->channel, 0));
	found = maps_new(before, n, fresh, 8);
	if (found != 1)
		die("%d mappings appeared with a CQ", found);
	e->cqr = (struct ring){ (void *)fresh[0].start, fresh[0].size, fresh[0].offset,
				sizeof(struct nhca_cqe), e->cq->cqe };

	n = maps_read(before, 256);
	if (with_srq)
		must(e->srq = ibv_create_srq(e->pd, &srq_init));
	init.send_cq = e->cq;
	init.recv_cq = e->cq;
	init.srq = e->srq;
	must(e->qp = ibv_create_qp(e->pd, &init));
	e->cap = init.cap;
	if (type == IBV_QPT_UD) {
		struct ibv_ah_attr ah = {
			.is_global = 1, .port_num = 1,
			.grh = { .dgid = e->gid, .sgid_index = gid_index, .hop_limit = 64 },
		};

		must(e->ah = ibv_create_ah(e->pd, &ah));
	}
	found = maps_new(before, n, fresh, 8);
	if (found != 2)
		die("%d mappings appeared with a QP", found);
	find_rings(e, fresh, found);
}

void end_destroy(struct end *e)
{
	if (e->qp)
		must(!ibv_destroy_qp(e->qp));
	if (e->srq)
		must(!ibv_destroy_srq(e->srq));
	must(!ibv_destroy_cq(e->cq));
	must(!ibv_destroy_comp_channel(e->channel));
	if (e->ah)
		must(!ibv_destroy_ah(e->ah));
	must(!ibv_dereg_mr(e->mr));
	must(!ibv_dealloc_pd(e->pd));
	must(!ibv_close_device(e->ctx));
	munmap(e->block, REGION + 2 * FENCE);
}

void fences_hold(const struct end *e)
{
	int i;

	for (i = 0; i < FENCE; i++)
		if ((uint8_t)e->block[i] != FENCE_BYTE ||
		    (uint8_t)e->buf[REGION + i] != FENCE_BYTE)
			die("memory outside of the region was written");
}

/* Ring the send doorbell without the provider. */
void ring_sq(struct end *e)
{
	struct {
		struct ib_uverbs_ioctl_hdr hdr;
		struct ib_uverbs_attr handle;
	} cmd = {
		.hdr = { .length = sizeof(cmd), .object_id = UVERBS_OBJECT_QP,
			 .method_id = NHCA_METHOD_QP_SEND_DOORBELL, .num_attrs = 1,
			 .driver_id = NHCA_RDMA_DRIVER_ID },
		.handle = { .attr_id = NHCA_ATTR_QP_SEND_DOORBELL_HANDLE,
			    .flags = UVERBS_ATTR_F_MANDATORY, .data = e->qp->handle },
	};

	if (ioctl(e->ctx->cmd_fd, RDMA_VERBS_IOCTL, &cmd))
		die("doorbell: %s", strerror(errno));
}

bool broken(enum ibv_qp_state state)
{
	return state == IBV_QPS_ERR || state == IBV_QPS_SQE;
}

void wait_broken(struct end *e, const char *what)
{
	double until = now() + PATIENCE;

	while (!broken(end_state(e))) {
		if (now() > until)
			die("%s: the QP is in state %d, not in error", what, end_state(e));
		usleep(1000);
	}
}

/* Discard all completions without the provider, whose state may be wrong during an attack. */
void drain(struct end *e)
{
	store(&e->cqr.hdr->cons, load(&e->cqr.hdr->prod));
}

/* Return: true if an event of @type was raised.  Reads and acknowledges all pending events. */
bool saw_event(struct end *e, enum ibv_event_type type)
{
	struct ibv_async_event event;
	bool seen = false;

	while (!ibv_get_async_event(e->ctx, &event)) {
		seen |= event.event_type == type;
		ibv_ack_async_event(&event);
	}
	return seen;
}
