// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Memory windows through libibverbs, on the device named by $RDMA_DEV.  End b has the memory and
 * the windows, end a is the peer that uses their keys. $MW_TYPE is the expected kind of type 2
 * windows, 2A or 2B; it begins the name of each result.
 *
 *   windows [PART-OF-A-NAME]	run the tests whose names contain the argument (all)
 */
#define _GNU_SOURCE
#include "windows_shared.h"

enum ibv_mw_type both[] = { IBV_MW_TYPE_1, IBV_MW_TYPE_2 };

bool make(struct pair *p)
{
	return make_pair(p, (struct pair_opts){ .more_ops = MW_OPS,
						.more_access = IBV_ACCESS_MW_BIND });
}

/* After an error, reset and reconnect both ends, as applications do. */
bool again(struct pair *p)
{
	struct completion c;

	if (!modify(p->a.qp, IBV_QPS_RESET, 0) || !modify(p->b.qp, IBV_QPS_RESET, 0))
		return false;
	while (poll_one(p->a.cq, &c) || poll_one(p->b.cq, &c))
		;
	return connect_pair(p);
}

/* The next completion must be that of @wr_id, with @status. */
bool status_is(struct ibv_cq_ex *cq, uint64_t wr_id, enum ibv_wc_status status,
	       struct completion *c)
{
	if (!wait_any(cq, c))
		return false;
	REQUIRE(c->wr_id == wr_id, "completion of %lu instead of %lu", (unsigned long)c->wr_id,
		(unsigned long)wr_id);
	REQUIRE(c->status == status, "%s instead of %s", ibv_wc_status_str(c->status),
		ibv_wc_status_str(status));
	return true;
}

/* ---- actions of the owner, posted at end b or at @e ---- */

struct ibv_mw_bind_info info(struct ibv_mr *mr, uint64_t addr, uint64_t len, int access)
{
	return (struct ibv_mw_bind_info){ mr, addr, len, access };
}

static bool post(struct end *e, struct ibv_send_wr wr)
{
	struct ibv_send_wr *bad;

	wr.send_flags |= IBV_SEND_SIGNALED;
	VERB(ibv_post_send(e->qp, &wr, &bad));
	return true;
}

/* Bind a type 2 window by a work request.  The caller must store @key in mw->rkey. */
bool post_bind(struct end *e, struct ibv_mw *mw, uint32_t key, struct ibv_mw_bind_info to)
{
	return post(e, (struct ibv_send_wr){ .wr_id = 100, .opcode = IBV_WR_BIND_MW, .bind_mw = {
			.mw = mw, .rkey = key, .bind_info = to } });
}

/* Bind a window of either type.  The bind must succeed; then mw->rkey is the new key. */
bool bind_window(struct end *e, struct ibv_mw *mw, struct ibv_mw_bind_info to)
{
	struct ibv_mw_bind first = { .wr_id = 100, .send_flags = IBV_SEND_SIGNALED,
				     .bind_info = to };
	uint32_t key = ibv_inc_rkey(mw->rkey);
	struct completion c;

	if (mw->type == IBV_MW_TYPE_1)
		VERB(ibv_bind_mw(e->qp, mw, &first));
	else if (!post_bind(e, mw, key, to))
		return false;
	if (!wait_for(e->cq, 100, IBV_WC_BIND_MW, &c))
		return false;
	mw->rkey = key;
	return true;
}

bool bind_to(struct pair *p, struct ibv_mw *mw, size_t off, size_t len, int access)
{
	return bind_window(&p->b, mw, info(p->b.mr, (uintptr_t)p->b.buf + off, len, access));
}

bool post_inv(struct end *e, uint32_t key)
{
	return post(e, (struct ibv_send_wr){ .wr_id = 101, .opcode = IBV_WR_LOCAL_INV,
					     .invalidate_rkey = key });
}

/* Close a window of either type. */
bool close_window(struct pair *p, struct ibv_mw *mw)
{
	struct completion c;

	if (mw->type == IBV_MW_TYPE_1)
		return bind_window(&p->b, mw, info(NULL, 0, 0, 0));
	return post_inv(&p->b, mw->rkey) && wait_for(p->b.cq, 101, IBV_WC_LOCAL_INV, &c);
}

struct ibv_mw *new_window(enum ibv_mw_type type)
{
	struct ibv_mw *mw = ibv_alloc_mw(dev.pd, type);

	if (!mw)
		fail("ibv_alloc_mw: %m");
	return mw;
}

/* ---- accesses of the peer, through @key at address @va ---- */

bool access_remote(struct pair *p, int how, uint32_t key, uint64_t va, uint32_t len)
{
	struct ibv_sge sge = sge_of(&p->a, 0, how == ATOMIC ? 8 : len);
	struct ibv_send_wr wr = { .wr_id = 200, .sg_list = &sge, .num_sge = 1 };

	if (how == ATOMIC) {
		wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
		wr.wr.atomic.remote_addr = va;
		wr.wr.atomic.rkey = key;
		wr.wr.atomic.compare_add = 1;
	} else {
		wr.opcode = how == READ ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE;
		wr.wr.rdma.remote_addr = va;
		wr.wr.rdma.rkey = key;
	}
	return post(&p->a, wr);
}

/* All three kinds of access must succeed, and reach b's memory at offset @off. */
bool works(struct pair *p, uint32_t key, uint64_t va, size_t off, uint32_t len)
{
	struct completion c;
	uint64_t *word = (uint64_t *)(p->b.buf + off);

	fill(p->a.buf, len, 1);
	memset(p->b.buf + off, 0, len);
	if (!access_remote(p, WRITE, key, va, len) ||
	    !wait_for(p->a.cq, 200, IBV_WC_RDMA_WRITE, &c) || !filled(p->b.buf + off, len, 1))
		return false;
	fill(p->b.buf + off, len, 2);
	if (!access_remote(p, READ, key, va, len) ||
	    !wait_for(p->a.cq, 200, IBV_WC_RDMA_READ, &c) || !filled(p->a.buf, len, 2))
		return false;
	*word = 41;
	if (!access_remote(p, ATOMIC, key, va, 8) ||
	    !wait_for(p->a.cq, 200, IBV_WC_FETCH_ADD, &c))
		return false;
	REQUIRE(*word == 42, "fetch and add left %lu", (unsigned long)*word);
	return true;
}

static uint64_t sum(const struct pair *p)
{
	const uint64_t *word = (const uint64_t *)p->b.buf;
	uint64_t sum = 0;

	for (size_t i = 0; i < p->size / 8; i++)
		sum = sum * 31 + word[i];
	return sum;
}

bool refuses(struct pair *p, int how, uint32_t key, uint64_t va, uint32_t len)
{
	uint64_t before = sum(p);
	struct completion c;

	if (!access_remote(p, how, key, va, len) ||
	    !status_is(p->a.cq, 200, IBV_WC_REM_ACCESS_ERR, &c))
		return false;
	REQUIRE(sum(p) == before, "the access was refused, but memory has changed");
	return again(p);
}

bool shut(struct pair *p, uint32_t key, size_t off)
{
	uint64_t va = (uintptr_t)p->b.buf + off;

	return refuses(p, WRITE, key, va, 8) && refuses(p, READ, key, va, 8) &&
	       refuses(p, ATOMIC, key, va, 8);
}

/* ---- tests ---- */

static bool capabilities(struct pair *p)
{
	struct ibv_device_attr *attr = &dev.attr.orig_attr;
	const char *type = getenv("MW_TYPE");
	unsigned int a = attr->device_cap_flags & IBV_DEVICE_MEM_WINDOW_TYPE_2A;
	unsigned int b = attr->device_cap_flags & IBV_DEVICE_MEM_WINDOW_TYPE_2B;

	(void)p;
	REQUIRE(attr->device_cap_flags & IBV_DEVICE_MEM_WINDOW, "no IBV_DEVICE_MEM_WINDOW");
	REQUIRE(attr->max_mw > 0, "max_mw %d", attr->max_mw);
	REQUIRE(!strcmp(type, "2A") ? a && !b : b && !a, "flags %x", attr->device_cap_flags);
	return true;
}

static bool open_and_close(struct pair *p)
{
	uint64_t va;

	if (!make(p))
		return false;
	va = (uintptr_t)p->b.buf + AT;
	for (int i = 0; i < 2; i++) {
		struct ibv_mw *mw = new_window(both[i]);
		uint32_t first, second;

		if (!mw)
			return false;
		first = mw->rkey;
		if (!shut(p, first, AT) || !bind_to(p, mw, AT, 8192, REMOTE) ||
		    !works(p, mw->rkey, va, AT, 8192) || !shut(p, first, AT) ||
		    !refuses(p, WRITE, mw->rkey, va - 1, 8) ||
		    !refuses(p, READ, mw->rkey, va + 1, 8192) ||
		    !refuses(p, ATOMIC, mw->rkey, va + 8192, 8) ||
		    !works(p, mw->rkey, va, AT, 8192))
			return false;
		second = mw->rkey;
		if (!close_window(p, mw) || !shut(p, second, AT) || !shut(p, mw->rkey, AT))
			return false;
		/* bind the window again, to another place */
		if (!bind_to(p, mw, 0, 64, REMOTE) ||
		    !works(p, mw->rkey, (uintptr_t)p->b.buf, 0, 64) ||
		    !shut(p, mw->rkey, AT) || !shut(p, second, AT) || !close_window(p, mw))
			return false;
		VERB(ibv_dealloc_mw(mw));
	}
	return true;
}

static bool move_and_shrink(struct pair *p)
{
	struct ibv_mw *mw = new_window(IBV_MW_TYPE_1);
	struct ibv_mr *other;
	uint32_t old;

	if (!mw || !make(p))
		return false;
	other = ibv_reg_mr(dev.pd, p->b.buf + AT, 4096, BINDABLE);
	REQUIRE(other, "ibv_reg_mr: %m");
	if (!bind_to(p, mw, AT, 8192, REMOTE))
		return false;
	old = mw->rkey;
	if (!bind_to(p, mw, AT, 64, REMOTE) || !shut(p, old, AT) ||
	    !works(p, mw->rkey, (uintptr_t)p->b.buf + AT, AT, 64) || !shut(p, mw->rkey, AT + 64))
		return false;
	old = mw->rkey;
	if (!bind_to(p, mw, 2 * AT, 64, REMOTE) || !shut(p, old, AT) || !shut(p, mw->rkey, AT) ||
	    !works(p, mw->rkey, (uintptr_t)p->b.buf + 2 * AT, 2 * AT, 64))
		return false;
	old = mw->rkey;
	/* bind to another region, which releases the first one */
	if (!bind_window(&p->b, mw, info(other, (uintptr_t)p->b.buf + AT, 64, REMOTE)) ||
	    !shut(p, old, 2 * AT) || !works(p, mw->rkey, (uintptr_t)p->b.buf + AT, AT, 64))
		return false;
	REQUIRE(ibv_dereg_mr(other) == EBUSY, "a region with a window is deregistered: %m");
	if (!bind_to(p, mw, AT, 64, REMOTE))
		return false;
	VERB(ibv_dereg_mr(other));
	VERB(ibv_dealloc_mw(mw));
	return true;
}

static bool rights(struct pair *p)
{
	static const int each[] = { READ, WRITE, ATOMIC };
	struct completion c;

	if (!make(p))
		return false;
	for (int i = 0; i < 2; i++) {
		struct ibv_mw *mw = new_window(both[i]);

		if (!mw)
			return false;
		for (int set = 0; set < 8; set++) {
			int access = set & 1 ? READ : 0;

			access |= (set & 2 ? WRITE : 0) | (set & 4 ? ATOMIC : 0);
			if (!bind_to(p, mw, AT, 64, access))
				return false;
			for (int j = 0; j < 3; j++) {
				uint64_t va = (uintptr_t)p->b.buf + AT;

				if (!(access & each[j])) {
					if (!refuses(p, each[j], mw->rkey, va, 8))
						return false;
				} else if (!access_remote(p, each[j], mw->rkey, va, 8) ||
					   !status_is(p->a.cq, 200, IBV_WC_SUCCESS, &c)) {
					return false;
				}
			}
			if (mw->type == IBV_MW_TYPE_2 && !close_window(p, mw))
				return false;
		}
		VERB(ibv_dealloc_mw(mw));
	}
	return true;
}

static bool zero_based(struct pair *p)
{
	struct ibv_mw *mw = new_window(IBV_MW_TYPE_2);

	if (!mw || !make(p) || !bind_to(p, mw, AT, 64, REMOTE | IBV_ACCESS_ZERO_BASED) ||
	    !works(p, mw->rkey, 0, AT, 64) || !refuses(p, READ, mw->rkey, 1, 64) ||
	    !shut(p, mw->rkey, AT) || !close_window(p, mw) || !refuses(p, READ, mw->rkey, 0, 8))
		return false;
	VERB(ibv_dealloc_mw(mw));
	return true;
}

/* Send a message from end a to end b that invalidates @key. */
static bool send_inv(struct pair *p, uint32_t key)
{
	struct ibv_sge sge = sge_of(&p->a, 0, 100);

	fill(p->a.buf, 100, 3);
	return post_recv(p, 300, 0, 4096) &&
	       post(&p->a, (struct ibv_send_wr){ .wr_id = 201, .sg_list = &sge, .num_sge = 1,
			.opcode = IBV_WR_SEND_WITH_INV, .invalidate_rkey = key });
}

static bool invalidated(struct pair *p, uint32_t key)
{
	struct completion c;

	if (!wait_for(p->b.cq, 300, IBV_WC_RECV, &c))
		return false;
	REQUIRE(c.flags & IBV_WC_WITH_INV && !(c.flags & IBV_WC_WITH_IMM), "flags %x", c.flags);
	/*
	 * c.imm has the invalidated R_Key: ibv_wc_read_invalidated_rkey() calls the same function
	 * of the provider as ibv_wc_read_imm_data()
	 */
	REQUIRE(c.imm == key, "key %x instead of %x", c.imm, key);
	REQUIRE(c.byte_len == 100, "%u bytes", c.byte_len);
	return filled(p->b.buf, 100, 3) && wait_for(p->a.cq, 201, IBV_WC_SEND, &c);
}

static bool remote_invalidate(struct pair *p)
{
	struct ibv_mw *mw = new_window(IBV_MW_TYPE_2), *other = new_window(IBV_MW_TYPE_2);
	uint32_t old;

	if (!mw || !other || !make(p) || !bind_to(p, mw, AT, 64, REMOTE) ||
	    !bind_to(p, other, AT, 64, REMOTE))
		return false;
	old = mw->rkey;
	if (!send_inv(p, old) || !invalidated(p, old) || !shut(p, old, AT) ||
	    !works(p, other->rkey, (uintptr_t)p->b.buf + AT, AT, 64) ||
	    !bind_to(p, mw, AT, 64, REMOTE) || !shut(p, old, AT) ||
	    !works(p, mw->rkey, (uintptr_t)p->b.buf + AT, AT, 64))
		return false;
	VERB(ibv_dealloc_mw(mw));
	VERB(ibv_dealloc_mw(other));
	return true;
}

/* A peer's invalidation of any of keys[] must fail.  Window one and the region must still work. */
static bool remote_refused(struct pair *p)
{
	struct ibv_mw *one = new_window(IBV_MW_TYPE_1), *two = new_window(IBV_MW_TYPE_2);
	struct ibv_mw *unbound = new_window(IBV_MW_TYPE_2);
	struct completion c;
	uint64_t va;

	if (!one || !two || !unbound || !make(p) || !bind_to(p, one, AT, 64, REMOTE) ||
	    /* bound by end a's QP */
	    !bind_window(&p->a, two, info(p->b.mr, (uintptr_t)p->b.buf + AT, 64, REMOTE)))
		return false;
	va = (uintptr_t)p->b.buf + AT;
	for (int i = 0; i < 5; i++) {
		uint32_t keys[] = { one->rkey, two->rkey, unbound->rkey, p->b.mr->rkey,
				    one->rkey ^ 0x100000 };

		if (!send_inv(p, keys[i]) ||
		    !status_is(p->a.cq, 201, IBV_WC_REM_ACCESS_ERR, &c) ||
		    !wait_any(p->b.cq, &c))
			return false;
		REQUIRE(c.wr_id == 300 && c.status != IBV_WC_SUCCESS, "key %d: received", i);
		if (!again(p) || !works(p, one->rkey, va, AT, 64) ||
		    !works(p, p->b.mr->rkey, va, AT, 64))
			return false;
	}
	VERB(ibv_dealloc_mw(one));
	VERB(ibv_dealloc_mw(two));
	VERB(ibv_dealloc_mw(unbound));
	return true;
}

static bool by_qp_ex(struct pair *p)
{
	struct ibv_mw *mw = new_window(IBV_MW_TYPE_2), *one = new_window(IBV_MW_TYPE_1);
	struct ibv_mw_bind_info to;
	struct ibv_qp_ex *x;
	struct completion c;
	uint32_t key;

	if (!mw || !one || !make(p))
		return false;
	to = info(p->b.mr, (uintptr_t)p->b.buf + AT, 64, REMOTE);
	key = ibv_inc_rkey(mw->rkey);
	x = p->b.qpx;
	ibv_wr_start(x);
	x->wr_id = 1;
	x->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_bind_mw(x, mw, key, &to);
	x->wr_id = 2;
	ibv_wr_local_inv(x, key);
	x->wr_id = 3;
	/* do not use mw->rkey: the provider may or may not have stored the new key there */
	ibv_wr_bind_mw(x, mw, ibv_inc_rkey(key), &to);
	VERB(ibv_wr_complete(x));
	if (!wait_for(p->b.cq, 1, IBV_WC_BIND_MW, &c) ||
	    !wait_for(p->b.cq, 2, IBV_WC_LOCAL_INV, &c) ||
	    !wait_for(p->b.cq, 3, IBV_WC_BIND_MW, &c) || !shut(p, key, AT))
		return false;
	key = ibv_inc_rkey(key);
	if (!works(p, key, (uintptr_t)p->b.buf + AT, AT, 64) || !post_recv(p, 300, 0, 4096))
		return false;
	fill(p->a.buf, 100, 3);
	x = p->a.qpx;
	ibv_wr_start(x);
	x->wr_id = 201;
	x->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_send_inv(x, key);
	ibv_wr_set_sge(x, p->a.mr->lkey, (uintptr_t)p->a.buf, 100);
	VERB(ibv_wr_complete(x));
	if (!invalidated(p, key) || !shut(p, key, AT))
		return false;
	ibv_wr_start(x);
	ibv_wr_bind_mw(x, one, ibv_inc_rkey(one->rkey), &to);
	REQUIRE(ibv_wr_complete(x) == EINVAL, "a type 1 window can be bound by a work request");
	VERB(ibv_dealloc_mw(one));
	VERB(ibv_dealloc_mw(mw));
	return true;
}

static const struct test tests[] = {
	{ "capabilities", capabilities, true },
	{ "bind, use, close", open_and_close, true },
	{ "type 1: shrink, move, change of region", move_and_shrink, true },
	{ "each set of rights", rights, true },
	{ "type 2, zero-based", zero_based, true },
	{ "send with invalidate", remote_invalidate, true },
	{ "send with invalidate is refused", remote_refused, true },
	{ "through ibv_qp_ex", by_qp_ex, true },
	{ "binds are refused", binds_refused, true },
	{ "binds are refused before they are posted", not_posted, true },
	{ "local invalidates are refused", invs_refused, true },
	{ "UC: bind and invalidate", on_uc, true },
	{ "which QP may use them", who_may, true },
	{ "a region with a window cannot change", region_stays, true },
	{ "windows end when they, their QP or their process end", ends, true },
	{ "unsignaled binds, in order with sends", in_order, true },
	{ "closed during a message: no byte is written afterwards", promise, true },
	{ "5,000 windows", many, true },
};

int main(int argc, char **argv)
{
	static struct test named[sizeof(tests) / sizeof(tests[0])];
	const size_t count = sizeof(tests) / sizeof(tests[0]);
	const char *type = getenv("MW_TYPE");

	if (!type) {
		fprintf(stderr, "MW_TYPE is not set\n");
		return 2;
	}
	for (size_t i = 0; i < count; i++) {
		char *name = NULL;

		if (asprintf(&name, "%s: %s", type, tests[i].name) < 0)
			return 2;
		named[i] = tests[i];
		named[i].name = name;
	}
	return run_tests(named, count, argc > 1 ? argv[1] : NULL);
}
