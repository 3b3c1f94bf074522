// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * FLUSH and ATOMIC WRITE (IBTA A19) on the device named by $RDMA_DEV.  Both ends are in this
 * process: end a is the requester, end b has the memory.
 *
 *   placing [PART-OF-A-NAME]	run the tests whose names contain the argument (all)
 */
#include "verbs_test.h"

#define FLUSH_OPS	(IBV_QP_EX_WITH_FLUSH | IBV_QP_EX_WITH_ATOMIC_WRITE | \
			 IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_LOCAL_INV)
#define FLUSH_ACCESS	(ACCESS | IBV_ACCESS_FLUSH_GLOBAL)
/* a queue pair can have the right to flush persistently; of regions only those of files can */
#define QP_ACCESS	(FLUSH_ACCESS | IBV_ACCESS_FLUSH_PERSISTENT)
#define RAN_OUT		0x0102030405060708ULL

/* Set the rights of b's queue pair, which a reset has cleared. */
static bool allow(struct pair *p, int access)
{
	struct ibv_qp_attr attr = { .qp_access_flags = access };

	VERB(ibv_modify_qp(p->b.qp, &attr, IBV_QP_ACCESS_FLAGS));
	return true;
}

/* An RDMA core without FLUSH refuses to register memory for FLUSH; then the test is skipped. */
static bool core_knows(void)
{
	uint8_t bytes[8];
	struct ibv_mr *mr = ibv_reg_mr(dev.pd, bytes, sizeof(bytes),
				       IBV_ACCESS_FLUSH_GLOBAL);

	if (!mr) {
		skipped = errno == EINVAL || errno == EOPNOTSUPP;
		return fail("ibv_reg_mr with IBV_ACCESS_FLUSH_GLOBAL: %m");
	}
	VERB(ibv_dereg_mr(mr));
	return true;
}

static bool make(struct pair *p, size_t size)
{
	if (!core_knows())
		return false;
	if (!make_pair(p, (struct pair_opts){ .more_ops = FLUSH_OPS, .size = size,
					      .more_access = IBV_ACCESS_FLUSH_GLOBAL |
							     IBV_ACCESS_MW_BIND }))
		return false;
	return allow(p, QP_ACCESS);
}

static bool write_word(struct pair *p, uint64_t id, uint32_t rkey, uint64_t at, uint64_t word)
{
	struct ibv_qp_ex *x = p->a.qpx;

	ibv_wr_start(x);
	x->wr_id = id;
	x->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_atomic_write(x, rkey, at, &word);
	VERB(ibv_wr_complete(x));
	return true;
}

static bool flush(struct pair *p, uint64_t id, uint32_t rkey, uint64_t at, size_t len,
		  uint8_t type, uint8_t level)
{
	struct ibv_qp_ex *x = p->a.qpx;

	ibv_wr_start(x);
	x->wr_id = id;
	x->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_flush(x, rkey, at, len, type, level);
	VERB(ibv_wr_complete(x));
	return true;
}

/* Wait for the posted request, which must complete with @want.  Reconnect after an error. */
static bool ends(struct pair *p, bool posted, enum ibv_wc_status want, const char *what)
{
	struct completion c;

	if (!posted || !wait_any(p->a.cq, &c))
		return false;
	REQUIRE(c.status == want, "%s: %s instead of %s", what, ibv_wc_status_str(c.status),
		ibv_wc_status_str(want));
	if (want == IBV_WC_SUCCESS)
		return true;
	return reconnect(p) && allow(p, QP_ACCESS);
}

static bool words(struct pair *p)
{
	struct completion c;
	uint64_t base, word;

	if (!make(p, 0))
		return false;
	base = (uintptr_t)p->b.buf;
	for (uint64_t i = 0; i < 64; i++) {
		word = RAN_OUT + i;
		if (!write_word(p, i, p->b.mr->rkey, base + 24 * i + 8, word) ||
		    !wait_for(p->a.cq, i, IBV_WC_ATOMIC_WRITE, &c))
			return false;
		REQUIRE(!memcmp(p->b.buf + 24 * i + 8, &word, 8), "word %lu was not written",
			(unsigned long)i);
	}
	for (int i = 0; i < 64 * 24; i++)
		REQUIRE(i % 24 >= 8 && i % 24 < 16 ? true : p->b.buf[i] == 0xee,
			"byte %d outside of the words was written", i);
	return true;
}

/* When the word of an ATOMIC WRITE is visible, all data written before it must also be visible. */
static bool word_behind_data(struct pair *p)
{
	const size_t size = 1 << 20;
	volatile uint64_t *flag;
	struct completion c;
	uint64_t end;

	if (!make(p, size + 8))
		return false;
	flag = (uint64_t *)(p->b.buf + size);
	for (uint64_t i = 1; i <= 8; i++) {
		struct ibv_qp_ex *x = p->a.qpx;

		fill(p->a.buf, size, i);
		ibv_wr_start(x);
		x->wr_id = i;
		x->wr_flags = 0;
		ibv_wr_rdma_write(x, p->b.mr->rkey, (uintptr_t)p->b.buf);
		ibv_wr_set_sge(x, p->a.mr->lkey, (uintptr_t)p->a.buf, size);
		x->wr_flags = IBV_SEND_SIGNALED;
		ibv_wr_atomic_write(x, p->b.mr->rkey, (uintptr_t)flag, &i);
		VERB(ibv_wr_complete(x));
		end = clock_ns(CLOCK_MONOTONIC) + wait_s * 1000000000ULL;
		while (*flag != i)
			REQUIRE(clock_ns(CLOCK_MONOTONIC) < end, "the word has not arrived");
		if (!filled(p->b.buf, size, i))
			return false;
		if (!wait_for(p->a.cq, i, IBV_WC_ATOMIC_WRITE, &c))
			return false;
	}
	return true;
}

static bool words_refused(struct pair *p)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_ATOMIC_WRITE, .num_sge = 1 };
	struct ibv_mr *read_only;
	struct ibv_sge sge;
	uint64_t base;
	uint32_t rkey;

	if (!make(p, 0))
		return false;
	base = (uintptr_t)p->b.buf;
	rkey = p->b.mr->rkey;
	read_only = ibv_reg_mr(dev.pd, p->b.buf, 4096, IBV_ACCESS_REMOTE_READ);
	REQUIRE(read_only, "ibv_reg_mr: %m");
	if (!ends(p, write_word(p, 1, rkey, base + 4, 1), IBV_WC_REM_INV_REQ_ERR, "unaligned") ||
	    !ends(p, write_word(p, 2, rkey, base + p->size, 1), IBV_WC_REM_ACCESS_ERR, "past it") ||
	    !ends(p, write_word(p, 3, read_only->rkey, base, 1), IBV_WC_REM_ACCESS_ERR,
		  "a read-only region") ||
	    !ends(p, write_word(p, 4, rkey ^ 1, base, 1), IBV_WC_REM_ACCESS_ERR, "wrong key") ||
	    !allow(p, ACCESS & ~IBV_ACCESS_REMOTE_WRITE) ||
	    !ends(p, write_word(p, 5, rkey, base, 1), IBV_WC_REM_INV_REQ_ERR, "a read-only QP"))
		return false;
	if (dev.nhca) {
		sge = sge_of(&p->a, 0, 4);
		wr.sg_list = &sge;
		wr.wr.rdma.remote_addr = base;
		wr.wr.rdma.rkey = rkey;
		if (!request_ends(p, &wr, IBV_WC_LOC_LEN_ERR, "four bytes"))
			return false;
	}
	for (int i = 0; i < 4096; i++)
		REQUIRE(p->b.buf[i] == 0xee, "byte %d was written", i);
	VERB(ibv_dereg_mr(read_only));
	return true;
}

static bool flushes(struct pair *p)
{
	struct completion c;
	uint64_t base;

	if (!make(p, 0))
		return false;
	base = (uintptr_t)p->b.buf;
	for (uint64_t i = 1; i <= 16; i++) {
		struct ibv_qp_ex *x = p->a.qpx;

		fill(p->a.buf, 30000, i);
		ibv_wr_start(x);
		x->wr_flags = 0;
		ibv_wr_rdma_write(x, p->b.mr->rkey, base);
		ibv_wr_set_sge(x, p->a.mr->lkey, (uintptr_t)p->a.buf, 30000);
		x->wr_id = i;
		x->wr_flags = IBV_SEND_SIGNALED;
		ibv_wr_flush(x, p->b.mr->rkey, i & 1 ? base : 0, i & 1 ? 30000 : 0, IBV_FLUSH_GLOBAL,
			     i & 1 ? IBV_FLUSH_RANGE : IBV_FLUSH_MR);
		VERB(ibv_wr_complete(x));
		if (!wait_for(p->a.cq, i, IBV_WC_FLUSH, &c) || !filled(p->b.buf, 30000, i))
			return false;
	}
	return ends(p, flush(p, 17, p->b.mr->rkey, base, 0, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE),
		    IBV_WC_SUCCESS, "of no bytes");
}

static bool flushes_refused(struct pair *p)
{
	struct ibv_mr *plain;
	uint64_t base;
	uint32_t rkey;

	if (!make(p, 0))
		return false;
	base = (uintptr_t)p->b.buf;
	rkey = p->b.mr->rkey;
	plain = ibv_reg_mr(dev.pd, p->b.buf, 4096, ACCESS);
	REQUIRE(plain, "ibv_reg_mr: %m");
	if (!ends(p, flush(p, 1, plain->rkey, base, 8, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE),
		  IBV_WC_REM_ACCESS_ERR, "a region without the right") ||
	    !ends(p, flush(p, 2, plain->rkey, 0, 0, IBV_FLUSH_GLOBAL, IBV_FLUSH_MR),
		  IBV_WC_REM_ACCESS_ERR, "all of a region without the right") ||
	    !ends(p, flush(p, 3, rkey, base + p->size - 4, 8, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE),
		  IBV_WC_REM_ACCESS_ERR, "past the end") ||
	    !ends(p, flush(p, 4, rkey, base, 8, IBV_FLUSH_PERSISTENT, IBV_FLUSH_RANGE),
		  IBV_WC_REM_ACCESS_ERR, "persistent") ||
	    !ends(p, flush(p, 5, rkey ^ 1, base, 8, IBV_FLUSH_GLOBAL, IBV_FLUSH_MR),
		  IBV_WC_REM_ACCESS_ERR, "wrong key"))
		return false;
	if (dev.nhca &&
	    (!ends(p, flush(p, 6, rkey, base, 8, 0, IBV_FLUSH_RANGE), IBV_WC_LOC_QP_OP_ERR,
		   "without a placement type") ||
	     !ends(p, flush(p, 7, rkey, base, 8, IBV_FLUSH_GLOBAL, 2), IBV_WC_LOC_QP_OP_ERR,
		   "with an unknown selectivity") ||
	     !allow(p, ACCESS) ||
	     !ends(p, flush(p, 8, rkey, base, 8, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE),
		   IBV_WC_REM_INV_REQ_ERR, "a QP without the right")))
		return false;
	VERB(ibv_dereg_mr(plain));
	return true;
}

/* The key of a deregistered region or of an invalidated window must give no access. */
static bool closed_keys(struct pair *p)
{
	struct ibv_mw_bind_info info;
	struct completion c;
	struct ibv_qp_ex *x;
	struct ibv_mw *mw;
	uint32_t rkey;
	uint64_t base;

	if (!make(p, 0))
		return false;
	base = (uintptr_t)p->b.buf;
	mw = ibv_alloc_mw(dev.pd, IBV_MW_TYPE_2);
	REQUIRE(mw, "ibv_alloc_mw: %m");
	info = (struct ibv_mw_bind_info){ p->b.mr, base, 4096, IBV_ACCESS_REMOTE_WRITE };
	rkey = ibv_inc_rkey(mw->rkey);
	x = p->b.qpx;
	ibv_wr_start(x);
	x->wr_id = 1;
	x->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_bind_mw(x, mw, rkey, &info);
	VERB(ibv_wr_complete(x));
	if (!wait_for(p->b.cq, 1, IBV_WC_BIND_MW, &c) ||
	    !ends(p, write_word(p, 2, rkey, base, RAN_OUT), IBV_WC_SUCCESS, "open window"))
		return false;
	REQUIRE(*(uint64_t *)p->b.buf == RAN_OUT, "no word was written through the window");
	ibv_wr_start(x);
	x->wr_id = 3;
	ibv_wr_local_inv(x, rkey);
	VERB(ibv_wr_complete(x));
	if (!wait_for(p->b.cq, 3, IBV_WC_LOCAL_INV, &c))
		return false;
	memset(p->b.buf, 0xee, 4096);
	if (!ends(p, write_word(p, 4, rkey, base, 1), IBV_WC_REM_ACCESS_ERR, "closed window"))
		return false;
	VERB(ibv_dealloc_mw(mw));
	rkey = p->b.mr->rkey;
	VERB(ibv_dereg_mr(p->b.mr));
	p->b.mr = NULL;
	if (!ends(p, write_word(p, 5, rkey, base, 1), IBV_WC_REM_ACCESS_ERR, "old region") ||
	    !ends(p, flush(p, 6, rkey, base, 8, IBV_FLUSH_GLOBAL, IBV_FLUSH_MR),
		  IBV_WC_REM_ACCESS_ERR, "flush of an old region"))
		return false;
	for (int i = 0; i < 4096; i++)
		REQUIRE(p->b.buf[i] == 0xee, "byte %d was written through a closed key", i);
	return true;
}

static const struct test tests[] = {
	{ "ATOMIC WRITE: writes a word, and no byte beside it", words, false },
	{ "ATOMIC WRITE: visible after the data before it", word_behind_data, false },
	{ "ATOMIC WRITE: refused", words_refused, true },
	{ "FLUSH: ranges and regions, after their data", flushes, false },
	{ "FLUSH: refused", flushes_refused, true },
	{ "FLUSH and ATOMIC WRITE: closed keys", closed_keys, true },
};

int main(int argc, char **argv)
{
	return run_tests(tests, sizeof(tests) / sizeof(tests[0]), argc > 1 ? argv[1] : NULL);
}
