// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* A part of windows.c: refused operations, and the end of windows. */
#define _GNU_SOURCE
#include "windows_shared.h"

/* A bind of which one value is invalid, and the kind of region that the bind names */
struct bad_bind {
	const char *what;
	enum { ANY, NO_BIND_RIGHT, NO_LOCAL_WRITE, ZERO_REGION, OTHER_PD, GONE } region;
	int64_t off;		/* offset from the beginning of the region */
	uint64_t len;
	int access;
	bool only_2;
};

#define SIZE	4096ull		/* bytes of a region of bad_region() */

static const struct bad_bind bad_binds[] = {
	{ "region without the right", NO_BIND_RIGHT, 0, 64, READ, false },
	{ "write without local write", NO_LOCAL_WRITE, 0, 64, WRITE, false },
	{ "atomics without local write", NO_LOCAL_WRITE, 0, 64, ATOMIC, false },
	{ "zero-based region", ZERO_REGION, 0, 64, READ, false },
	{ "region of another domain", OTHER_PD, 0, 64, READ, true },
	{ "deregistered region", GONE, 0, 64, READ, false },
	{ "before the region", ANY, -1, 64, READ, false },
	{ "after the region", ANY, SIZE, 1, READ, false },
	{ "over the region's end", ANY, 1, SIZE, READ, false },
	{ "longer than the region", ANY, 0, SIZE + 1, READ, false },
	{ "an end that wraps", ANY, 1, UINT64_MAX, READ, false },
	{ "an end at 2^64", ANY, 0, -4096ull, READ, false },
	{ "bind right", ANY, 0, 64, READ | IBV_ACCESS_MW_BIND, false },
	{ "on-demand right", ANY, 0, 64, READ | IBV_ACCESS_ON_DEMAND, false },
	{ "zero-based over the region's end", ANY, 1, SIZE, READ | IBV_ACCESS_ZERO_BASED, true },
	{ "no bytes", ANY, 0, 0, READ, true },
};

static struct ibv_mr *bad_region(struct pair *p, int kind, struct ibv_pd *other)
{
	int access = BINDABLE | REMOTE;

	if (kind == NO_BIND_RIGHT)
		access &= ~IBV_ACCESS_MW_BIND;
	if (kind == NO_LOCAL_WRITE)
		access = IBV_ACCESS_MW_BIND | READ;
	if (kind == ZERO_REGION)
		access |= IBV_ACCESS_ZERO_BASED;
	return ibv_reg_mr(kind == OTHER_PD ? other : dev.pd, p->b.buf + 2 * AT, SIZE, access);
}

static bool bind_refused(struct pair *p, struct ibv_mw *mw, const struct bad_bind *bad,
			 struct ibv_pd *other)
{
	struct ibv_mr *mr = bad_region(p, bad->region, other), gone;
	struct ibv_mw_bind first = { .wr_id = 100, .send_flags = IBV_SEND_SIGNALED };
	uint64_t addr = bad->region == ZERO_REGION ? 0 : (uintptr_t)p->b.buf + 2 * AT;
	struct completion c;
	uint32_t old = mw->rkey;

	REQUIRE(mr, "ibv_reg_mr: %m");
	if (bad->region == GONE) {
		gone = *mr;
		VERB(ibv_dereg_mr(mr));
		mr = &gone;
	}
	first.bind_info = info(mr, addr + bad->off, bad->len, bad->access);
	if (mw->type == IBV_MW_TYPE_1)
		VERB(ibv_bind_mw(p->b.qp, mw, &first));
	else if (!post_bind(&p->b, mw, ibv_inc_rkey(old), first.bind_info))
		return false;
	mw->rkey = old;
	if (!status_is(p->b.cq, 100, IBV_WC_MW_BIND_ERR, &c) || !again(p))
		return false;
	if (bad->region != GONE)
		VERB(ibv_dereg_mr(mr));
	return true;
}

bool binds_refused(struct pair *p)
{
	struct ibv_pd *other = ibv_alloc_pd(dev.ctx);
	uint64_t va;

	if (!make(p))
		return false;
	va = (uintptr_t)p->b.buf + AT;
	REQUIRE(other, "ibv_alloc_pd: %m");
	for (int i = 0; i < 2; i++) {
		struct ibv_mw *mw = new_window(both[i]);
		struct completion c;

		/*
		 * Bind a type 1 window, which must stay bound when the next binds are refused. A
		 * type 2 window stays unbound, because a second bind would always be refused.
		 */
		if (!mw || (!i && !bind_to(p, mw, AT, 64, REMOTE)))
			return false;
		for (size_t j = 0; j < sizeof(bad_binds) / sizeof(bad_binds[0]); j++) {
			const struct bad_bind *bad = &bad_binds[j];

			if (bad->only_2 && !i)
				continue;
			if (!bind_refused(p, mw, bad, other) ||
			    (!i ? !works(p, mw->rkey, va, AT, 64) : !shut(p, mw->rkey, 2 * AT))) {
				char why[sizeof(reason)];

				memcpy(why, reason, sizeof(why));
				return fail("type %d, %s: %.200s", i + 1, bad->what, why);
			}
		}
		if (i) {
			/* a bound window must refuse a bind, by the same QP and by another */
			if (!bind_to(p, mw, AT, 64, REMOTE))
				return false;
			for (int j = 0; j < 2; j++) {
				struct end *e = j == 1 ? &p->a : &p->b;

				if (!post_bind(e, mw, ibv_inc_rkey(mw->rkey),
					       info(p->b.mr, va, 64, REMOTE)) ||
				    !status_is(e->cq, 100, IBV_WC_MW_BIND_ERR, &c) || !again(p) ||
				    !works(p, mw->rkey, va, AT, 64))
					return false;
			}
			if (!close_window(p, mw))
				return false;
		}
		VERB(ibv_dealloc_mw(mw));
	}
	VERB(ibv_dealloc_pd(other));
	return true;
}

/* Binds that the library must refuse before it posts them */
bool not_posted(struct pair *p)
{
	struct ibv_mw *one = new_window(IBV_MW_TYPE_1), *two = new_window(IBV_MW_TYPE_2);
	struct ibv_pd *other = ibv_alloc_pd(dev.ctx);
	struct ibv_mw_bind req = { .wr_id = 100, .send_flags = IBV_SEND_SIGNALED };
	struct ibv_send_wr wr = { .opcode = IBV_WR_BIND_MW }, *bad;
	struct pair ud = {};
	struct ibv_mr *mr;
	uint32_t key;
	bool good;

	if (!one || !two || !make(p))
		return false;
	REQUIRE(other, "ibv_alloc_pd: %m");
	key = one->rkey;
	req.bind_info = info(p->b.mr, (uintptr_t)p->b.buf, 64, READ | IBV_ACCESS_ZERO_BASED);
	REQUIRE(ibv_bind_mw(p->b.qp, one, &req) == EINVAL, "type 1, zero-based");
	req.bind_info.mw_access_flags = READ;
	REQUIRE(ibv_bind_mw(p->b.qp, two, &req) == EINVAL, "type 2 by ibv_bind_mw");
	req.bind_info.mr = NULL;
	REQUIRE(ibv_bind_mw(p->b.qp, one, &req) == EINVAL, "no region, but bytes");
	mr = ibv_reg_mr(other, p->b.buf, 4096, BINDABLE);
	REQUIRE(mr, "ibv_reg_mr: %m");
	req.bind_info.mr = mr;
	REQUIRE(ibv_bind_mw(p->b.qp, one, &req) == EPERM, "a region of another domain");
	VERB(ibv_dereg_mr(mr));
	req.bind_info.mr = p->b.mr;
	wr.bind_mw.mw = one;
	wr.bind_mw.rkey = ibv_inc_rkey(one->rkey);
	wr.bind_mw.bind_info = req.bind_info;
	REQUIRE(ibv_post_send(p->b.qp, &wr, &bad) == EINVAL && bad == &wr,
		"type 1 by a work request");
	wr.bind_mw.mw = NULL;
	REQUIRE(ibv_post_send(p->b.qp, &wr, &bad) == EINVAL, "no window");

	good = make_pair(&ud, (struct pair_opts){ .type = IBV_QPT_UD });
	if (!good)
		return false;
	REQUIRE(ibv_bind_mw(ud.b.qp, one, &req) == EINVAL, "on UD");
	wr.opcode = IBV_WR_LOCAL_INV;
	REQUIRE(ibv_post_send(ud.b.qp, &wr, &bad) == EINVAL, "LOCAL_INV on UD");
	wr.opcode = IBV_WR_SEND_WITH_INV;
	REQUIRE(ibv_post_send(ud.b.qp, &wr, &bad) == EINVAL, "SEND_WITH_INV on UD");
	REQUIRE(one->rkey == key, "a refused bind has changed the key");
	errno = 0;
	REQUIRE(!ibv_alloc_mw(dev.pd, 3) && errno, "a window of type 3");
	VERB(ibv_dealloc_mw(one));
	VERB(ibv_dealloc_mw(two));
	VERB(ibv_dealloc_pd(other));
	return pair_free(&ud);
}

bool invs_refused(struct pair *p)
{
	struct ibv_mw *one = new_window(IBV_MW_TYPE_1), *two = new_window(IBV_MW_TYPE_2);
	struct completion c;
	uint64_t va;

	if (!one || !two || !make(p) || !bind_to(p, one, AT, 64, REMOTE) ||
	    !bind_to(p, two, AT, 64, REMOTE))
		return false;
	va = (uintptr_t)p->b.buf + AT;
	/* the last invalidation is posted on a QP that has not bound the window */
	for (int i = 0; i < 5; i++) {
		uint32_t keys[] = { one->rkey, p->b.mr->rkey, 0, two->rkey ^ 1, two->rkey };
		struct end *e = i == 4 ? &p->a : &p->b;

		if (!post_inv(e, keys[i]) ||
		    !status_is(e->cq, 101, IBV_WC_MW_BIND_ERR, &c) || !again(p) ||
		    !works(p, one->rkey, va, AT, 64) || !works(p, two->rkey, va, AT, 64))
			return fail("key %d: %.200s", i, strdup(reason));
	}
	/* a second invalidation of the same window fails */
	if (!close_window(p, two) || !post_inv(&p->b, two->rkey) ||
	    !status_is(p->b.cq, 101, IBV_WC_MW_BIND_ERR, &c) || !again(p))
		return false;
	VERB(ibv_dealloc_mw(one));
	VERB(ibv_dealloc_mw(two));
	return true;
}

bool on_uc(struct pair *p)
{
	struct ibv_mw *one = new_window(IBV_MW_TYPE_1), *two = new_window(IBV_MW_TYPE_2);
	struct completion c;

	if (!one || !two ||
	    !make_pair(p, (struct pair_opts){ .type = IBV_QPT_UC,
					      .more_access = IBV_ACCESS_MW_BIND,
					      .more_ops = IBV_QP_EX_WITH_BIND_MW |
							  IBV_QP_EX_WITH_LOCAL_INV }))
		return false;
	for (int i = 0; i < 2; i++) {
		struct ibv_mw *mw = i ? two : one;
		uint64_t end = clock_ns(CLOCK_MONOTONIC) + 5000000000ULL;
		volatile uint8_t *byte = p->b.buf + AT + 63;

		*byte = 0;
		fill(p->a.buf, 64, 1);
		if (!bind_to(p, mw, AT, 64, WRITE) ||
		    !access_remote(p, WRITE, mw->rkey, (uintptr_t)p->b.buf + AT, 64) ||
		    !wait_for(p->a.cq, 200, IBV_WC_RDMA_WRITE, &c))
			return false;
		while (*byte != p->a.buf[63] && clock_ns(CLOCK_MONOTONIC) < end)
			usleep(1000);
		if (!filled(p->b.buf + AT, 64, 1) || !close_window(p, mw))
			return false;
		memset(p->b.buf + AT, 7, 64);
		/* UC drops the packet at the responder, and the requester gets no error */
		if (!access_remote(p, WRITE, mw->rkey, (uintptr_t)p->b.buf + AT, 64) ||
		    !wait_for(p->a.cq, 200, IBV_WC_RDMA_WRITE, &c))
			return false;
		usleep(100000);
		REQUIRE(p->b.buf[AT] == 7 && *byte == 7, "a closed window was written through");
		VERB(ibv_dealloc_mw(mw));
	}
	return true;
}

/*
 * A type 1 window gives access to any QP of the protection domain, a type 2 window only to the QP
 * that bound it.
 */
bool who_may(struct pair *p)
{
	struct ibv_mw *one = new_window(IBV_MW_TYPE_1), *two = new_window(IBV_MW_TYPE_2);
	struct ibv_pd *mine = dev.pd;
	struct pair sibling = {}, stranger = {};
	uint8_t *buf;
	uint64_t va;
	bool good;

	if (!one || !two || !make(p) || !make(&sibling) || !bind_to(p, one, AT, 64, REMOTE) ||
	    !bind_to(p, two, AT, 64, REMOTE))
		return false;
	dev.pd = ibv_alloc_pd(dev.ctx);
	REQUIRE(dev.pd, "ibv_alloc_pd: %m");
	good = make(&stranger);
	if (!good)
		return false;
	va = (uintptr_t)p->b.buf + AT;
	/* works() and refuses() check the memory of their pair: use that of the windows */
	buf = sibling.b.buf;
	sibling.b.buf = p->b.buf;
	if (!works(p, one->rkey, va, AT, 64) || !works(p, two->rkey, va, AT, 64) ||
	    !works(&sibling, one->rkey, va, AT, 64) || !refuses(&sibling, READ, two->rkey, va, 8) ||
	    !refuses(&stranger, READ, one->rkey, va, 8) ||
	    !refuses(&stranger, WRITE, two->rkey, va, 8))
		return false;
	/*
	 * a QP of another domain must not bind the window; another QP of the same domain may, if
	 * the window is of type 1
	 */
	if (!bind_window(&sibling.b, one, info(p->b.mr, va, 8, REMOTE)) ||
	    !works(p, one->rkey, va, AT, 8))
		return false;
	{
		struct ibv_mw_bind req = { .wr_id = 100, .send_flags = IBV_SEND_SIGNALED,
					   .bind_info = info(p->b.mr, va, 8, REMOTE) };
		uint32_t old = one->rkey;
		struct completion c;

		VERB(ibv_bind_mw(stranger.b.qp, one, &req));
		one->rkey = old;
		if (!status_is(stranger.b.cq, 100, IBV_WC_MW_BIND_ERR, &c) ||
		    !works(p, one->rkey, va, AT, 8))
			return false;
	}
	sibling.b.buf = buf;
	if (!pair_free(&stranger) || !pair_free(&sibling))
		return false;
	VERB(ibv_dealloc_pd(dev.pd));
	dev.pd = mine;
	VERB(ibv_dealloc_mw(one));
	VERB(ibv_dealloc_mw(two));
	return true;
}

bool region_stays(struct pair *p)
{
	if (!make(p))
		return false;
	for (int i = 0; i < 2; i++) {
		struct ibv_mw *mw = new_window(both[i]);
		struct ibv_mr *mr = ibv_reg_mr(dev.pd, p->b.buf, 8192, BINDABLE);
		struct ibv_pd *other = ibv_alloc_pd(dev.ctx);
		uint64_t va = (uintptr_t)p->b.buf + AT;

		REQUIRE(mw && mr && other, "objects: %m");
		if (!bind_window(&p->b, mw, info(mr, va, 64, REMOTE)))
			return false;
		REQUIRE(ibv_dereg_mr(mr) == EBUSY, "deregistered");
		REQUIRE(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
				     BINDABLE | READ), "rights changed");
		REQUIRE(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, other, NULL, 0, 0),
			"domain changed");
		REQUIRE(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, p->b.buf + AT, 64,
				     0), "translation changed");
		if (!works(p, mw->rkey, va, AT, 64) || !close_window(p, mw))
			return false;
		VERB(ibv_dereg_mr(mr));
		VERB(ibv_dealloc_mw(mw));
		VERB(ibv_dealloc_pd(other));
	}
	return true;
}

/* Kill a process that has bound windows, while its peer writes through one of them. */
static bool killed(void)
{
	struct pair p = {};
	int pipe_fd[2], status;
	pid_t child;
	char byte;

	REQUIRE(!pipe(pipe_fd), "pipe: %m");
	child = fork();
	REQUIRE(child >= 0, "fork: %m");
	if (!child) {
		struct ibv_mw *one, *two;
		struct completion c;

		close(pipe_fd[0]);
		/* the child needs its own context */
		if (!device_open() || !make(&p))
			_exit(1);
		one = new_window(IBV_MW_TYPE_1);
		two = new_window(IBV_MW_TYPE_2);
		if (!one || !two || !bind_to(&p, one, 0, p.size, REMOTE) ||
		    !bind_to(&p, two, 0, p.size, REMOTE) || write(pipe_fd[1], "", 1) != 1)
			_exit(1);
		for (;;)
			if (!access_remote(&p, WRITE, two->rkey, (uintptr_t)p.b.buf, p.size) ||
			    !wait_for(p.a.cq, 200, IBV_WC_RDMA_WRITE, &c))
				_exit(1);
	}
	close(pipe_fd[1]);
	REQUIRE(read(pipe_fd[0], &byte, 1) == 1, "the child did not begin");
	close(pipe_fd[0]);
	usleep(20000);
	kill(child, SIGKILL);
	REQUIRE(waitpid(child, &status, 0) == child && WIFSIGNALED(status), "status %x", status);
	return true;
}

bool ends(struct pair *p)
{
	struct ibv_mw *mw[3];
	uint64_t va;
	struct ibv_mr *mr;
	struct ibv_pd *pd = ibv_alloc_pd(dev.ctx);
	struct ibv_mw *alone;
	struct pair other = {};
	uint32_t key;

	if (!make(p) || !make(&other))
		return false;
	va = (uintptr_t)p->b.buf + AT;
	mr = ibv_reg_mr(dev.pd, p->b.buf, 8192, BINDABLE);
	REQUIRE(mr && pd, "ibv_reg_mr, ibv_alloc_pd: %m");
	/* a protection domain with windows cannot be deallocated */
	alone = ibv_alloc_mw(pd, IBV_MW_TYPE_2);
	REQUIRE(alone, "ibv_alloc_mw: %m");
	REQUIRE(ibv_dealloc_pd(pd) == EBUSY, "a domain with a window can be deallocated");
	VERB(ibv_dealloc_mw(alone));
	VERB(ibv_dealloc_pd(pd));

	/* deallocate a window */
	for (int i = 0; i < 3; i++) {
		mw[i] = new_window(both[i > 0]);
		if (!mw[i])
			return false;
	}
	if (!bind_window(&p->b, mw[0], info(mr, va, 64, REMOTE)) ||
	    !bind_window(&p->b, mw[1], info(mr, va, 64, REMOTE)) ||
	    !bind_window(&other.b, mw[2], info(mr, va, 64, REMOTE)))
		return false;
	key = mw[1]->rkey;
	VERB(ibv_dealloc_mw(mw[1]));
	if (!shut(p, key, AT))
		return false;
	/* destroy the QP of mw[2], which then releases the region; the type 1 window stays bound */
	if (!end_free(&other.b))
		return false;
	memset(&other.b, 0, sizeof(other.b));
	if (!works(p, mw[0]->rkey, va, AT, 64))
		return false;
	REQUIRE(ibv_dereg_mr(mr) == EBUSY, "deregistered under a type 1 window");
	if (!close_window(p, mw[0]))
		return false;
	VERB(ibv_dereg_mr(mr));
	/* another QP may bind mw[2] now */
	mw[2]->rkey = ibv_inc_rkey(mw[2]->rkey);
	if (!bind_to(p, mw[2], AT, 64, REMOTE) || !works(p, mw[2]->rkey, va, AT, 64))
		return false;
	VERB(ibv_dealloc_mw(mw[0]));
	VERB(ibv_dealloc_mw(mw[2]));
	return pair_free(&other) && killed() && killed();
}

/* A bind takes effect before requests that follow it; an unsignaled bind has no completion. */
bool in_order(struct pair *p)
{
	struct ibv_mw *one = new_window(IBV_MW_TYPE_1);
	struct ibv_mw_bind req = { .wr_id = 999 };
	struct completion c;

	if (!one || !make(p))
		return false;
	for (int i = 0; i < 500; i++) {
		uint32_t *said = (uint32_t *)p->a.buf;
		struct ibv_sge from = { (uintptr_t)p->a.buf, 4, p->a.mr->lkey };
		struct ibv_sge to = { (uintptr_t)p->a.buf + 64, 4, p->a.mr->lkey };
		struct ibv_recv_wr recv = { .wr_id = 400, .sg_list = &to, .num_sge = 1 }, *bad_recv;
		struct ibv_send_wr send = { .wr_id = 401, .sg_list = &from, .num_sge = 1,
			.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED }, *bad_send;

		VERB(ibv_post_recv(p->a.qp, &recv, &bad_recv));
		req.bind_info = info(p->b.mr, (uintptr_t)p->b.buf + AT + 8 * (i % 100), 8, REMOTE);
		VERB(ibv_bind_mw(p->b.qp, one, &req));
		*said = one->rkey;
		VERB(ibv_post_send(p->b.qp, &send, &bad_send));
		if (!wait_for(p->a.cq, 400, IBV_WC_RECV, &c) ||
		    !works(p, *(uint32_t *)(p->a.buf + 64), req.bind_info.addr,
			   AT + 8 * (i % 100), 8) ||
		    !wait_for(p->b.cq, 401, IBV_WC_SEND, &c))
			return false;
	}
	REQUIRE(!poll_one(p->b.cq, &c), "a completion of an unsignaled request");
	VERB(ibv_dealloc_mw(one));
	return true;
}

/*
 * A long message, posted by another thread, because a post may return only when all bytes have
 * moved.
 */
struct long_write {
	struct pair *p;
	uint32_t rkey, len;
	bool posted;
};

static void *write_long(void *arg)
{
	struct long_write *w = arg;

	w->posted = access_remote(w->p, WRITE, w->rkey, (uintptr_t)w->p->b.buf, w->len);
	return NULL;
}

/* The owner closes the window during a long message, and then the memory must not change. */
bool promise(struct pair *p)
{
	const uint32_t len = 1 << 20;
	unsigned int amid = 0;

	if (!make_pair(p, (struct pair_opts){ .more_ops = MW_OPS, .size = len,
					      .more_access = IBV_ACCESS_MW_BIND }))
		return false;
	/*
	 * the number of interrupted messages is random, and small on one CPU: continue until 20
	 * messages were interrupted
	 */
	for (int i = 0; i < 300 || (amid < 20 && i < 6000); i++) {
		struct ibv_mw *mw = new_window(both[i % 2]);
		struct long_write write = { .p = p, .len = len };
		struct completion c;
		pthread_t writer;

		if (!mw || !bind_to(p, mw, 0, len, REMOTE))
			return false;
		write.rkey = mw->rkey;
		memset(p->a.buf, i | 1, len);
		memset(p->b.buf, 0, len);
		if (pthread_create(&writer, NULL, write_long, &write))
			return fail("no thread");
		for (uint64_t end = clock_ns(CLOCK_MONOTONIC) + rand() % 1000000;
		     clock_ns(CLOCK_MONOTONIC) < end;)
			;
		if (!close_window(p, mw))
			return false;
		memset(p->b.buf, 0xfe, len);
		pthread_join(writer, NULL);
		if (!write.posted || !wait_any(p->a.cq, &c))
			return false;
		REQUIRE(c.status == IBV_WC_SUCCESS || c.status == IBV_WC_REM_ACCESS_ERR, "%s",
			ibv_wc_status_str(c.status));
		amid += c.status != IBV_WC_SUCCESS;
		for (uint32_t j = 0; j < len; j++)
			REQUIRE(p->b.buf[j] == 0xfe, "round %d: byte %u was written", i, j);
		if (c.status != IBV_WC_SUCCESS && !again(p))
			return false;
		VERB(ibv_dealloc_mw(mw));
	}
	REQUIRE(amid >= 20, "only %u messages were interrupted", amid);
	return true;
}

bool many(struct pair *p)
{
	enum { COUNT = 5000 };
	static struct ibv_mw *mw[COUNT];

	if (!make(p))
		return false;
	for (int i = 0; i < COUNT; i++) {
		mw[i] = new_window(both[i % 2]);
		if (!mw[i] || !bind_to(p, mw[i], AT + i, 8, REMOTE))
			return false;
	}
	for (int i = 0; i < COUNT; i += 97)
		if (!access_remote(p, READ, mw[i]->rkey, (uintptr_t)p->b.buf + AT + i, 8) ||
		    !status_is(p->a.cq, 200, IBV_WC_SUCCESS, &(struct completion){}))
			return false;
	/* the type 2 windows are closed together with their QP */
	VERB(ibv_destroy_qp(p->b.qp));
	p->b.qp = NULL;
	for (int i = 0; i < COUNT; i++)
		VERB(ibv_dealloc_mw(mw[i]));
	return true;
}
