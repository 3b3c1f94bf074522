// SPDX-License-Identifier: GPL-2.0
/* dm_odp.h describes these functions. */
#define _GNU_SOURCE
#include "dm_odp.h"

/* ---- helpers ---- */

struct at at(const void *addr, const struct ibv_mr *mr)
{
	return (struct at){ (uintptr_t)addr, mr };
}

bool rdma_ends(struct pair *p, enum ibv_wr_opcode opcode, struct at local, struct at remote,
	       uint32_t len, enum ibv_wc_status want, const char *what)
{
	struct ibv_sge sge = { local.addr, len, local.mr->lkey };
	struct ibv_send_wr wr = { .opcode = opcode, .sg_list = &sge, .num_sge = 1,
				  .wr.rdma = { remote.addr, remote.mr->rkey } };

	return request_ends(p, &wr, want, what);
}

bool rdma(struct pair *p, enum ibv_wr_opcode opcode, struct at local, struct at remote,
	  uint32_t len, const char *what)
{
	return rdma_ends(p, opcode, local, remote, len, IBV_WC_SUCCESS, what);
}

/* The old value at @remote is written to @local. */
bool atomic(struct pair *p, enum ibv_wr_opcode opcode, struct at local, struct at remote,
	    uint64_t compare_add, uint64_t swap)
{
	struct ibv_sge sge = { local.addr, 8, local.mr->lkey };
	struct ibv_send_wr wr = { .opcode = opcode, .sg_list = &sge, .num_sge = 1,
				  .wr.atomic = { remote.addr, compare_add, swap,
						 remote.mr->rkey } };

	return request_ends(p, &wr, IBV_WC_SUCCESS, "atomic");
}

bool message(struct pair *p, struct at from, struct at to, uint32_t len)
{
	struct ibv_sge sge = { to.addr, len, to.mr->lkey };
	struct ibv_recv_wr rwr = { .wr_id = 7, .sg_list = &sge, .num_sge = 1 };
	struct ibv_recv_wr *bad;
	struct completion c;

	VERB(ibv_post_recv(p->b.qp, &rwr, &bad));
	if (!rdma(p, IBV_WR_SEND, from, to, len, "send"))
		return false;
	if (!wait_for(p->b.cq, 7, IBV_WC_RECV, &c))
		return false;
	REQUIRE(c.byte_len == len, "%u bytes received instead of %u", c.byte_len, len);
	return true;
}

uint8_t *anonymous(size_t size)
{
	uint8_t *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

bool odp_there(void)
{
	const struct ibv_odp_caps *caps = &dev.attr.odp_caps;
	const uint32_t rc = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV | IBV_ODP_SUPPORT_WRITE |
			    IBV_ODP_SUPPORT_READ | IBV_ODP_SUPPORT_ATOMIC;

	if (!(caps->general_caps & IBV_ODP_SUPPORT))
		return missing("on-demand paging");
	if (!(caps->general_caps & IBV_ODP_SUPPORT_IMPLICIT))
		return missing("implicit on-demand paging");
	if ((caps->per_transport_caps.rc_odp_caps & rc) != rc)
		return missing("an on-demand operation of RC");
	return true;
}

/* ---- device memory ---- */

static struct ibv_dm *dm_make(size_t length)
{
	struct ibv_alloc_dm_attr attr = { .length = length };

	return ibv_alloc_dm(dev.ctx, &attr);
}

static bool dm_there(void)
{
	return dev.attr.max_dm_size ? true : missing("device memory");
}

bool dm_copy(struct pair *p)
{
	struct ibv_alloc_dm_attr odd = { .length = 4096, .comp_mask = 1 };
	struct ibv_alloc_dm_attr far = { .length = 4096, .log_align_req = 40 };
	uint8_t in[10000], out[10000];
	struct ibv_dm *dm;

	(void)p;
	if (!dm_there())
		return false;
	REQUIRE(!ibv_alloc_dm(dev.ctx, &odd), "an unknown mask was accepted");
	REQUIRE(!ibv_alloc_dm(dev.ctx, &far), "an alignment of 2^40 was accepted");
	REQUIRE(!dm_make(0), "0 bytes were allocated");
	REQUIRE(!dm_make(dev.attr.max_dm_size + 1), "more than max_dm_size was allocated");
	dm = dm_make(10000);
	REQUIRE(dm, "ibv_alloc_dm: %m");

	VERB(ibv_memcpy_from_dm(out, dm, 0, sizeof(out)));
	for (size_t i = 0; i < sizeof(out); i++)
		REQUIRE(!out[i], "byte %zu is not zero at first", i);
	fill(in, sizeof(in), 1);
	VERB(ibv_memcpy_to_dm(dm, 0, in, sizeof(in)));
	VERB(ibv_memcpy_to_dm(dm, 400, in, 8));
	memcpy(in + 400, in, 8);
	VERB(ibv_memcpy_from_dm(out, dm, 0, sizeof(out)));
	REQUIRE(!memcmp(in, out, sizeof(in)), "other bytes were read than written");
	REQUIRE(ibv_memcpy_to_dm(dm, 4, in, 10000) == EFAULT, "copied beyond the end");
	REQUIRE(ibv_memcpy_to_dm(dm, 2, in, 8) == EINVAL, "copied to an unaligned offset");
	REQUIRE(ibv_memcpy_from_dm(out, dm, 0, 3) == EINVAL, "copied an unaligned length");
	REQUIRE(ibv_memcpy_from_dm(out, dm, 10004, 0) == EFAULT, "copied from beyond the end");
	REQUIRE(ibv_memcpy_to_dm(dm, UINT64_MAX - 3, in, 8) == EFAULT, "copied around the end");
	VERB(ibv_free_dm(dm));
	return true;
}

bool dm_region(struct pair *p)
{
	const int access = ACCESS | IBV_ACCESS_ZERO_BASED;
	struct at buf, zero = {}, there;
	uint8_t out[6000];
	struct ibv_mr *mr, *one;
	struct ibv_dm *dm;
	uint64_t *old;

	if (!dm_there())
		return false;
	if (!make_pair(p, (struct pair_opts){}))
		return false;
	dm = dm_make(20000);
	REQUIRE(dm, "ibv_alloc_dm: %m");
	mr = ibv_reg_dm_mr(dev.pd, dm, 100, 6000, access);
	REQUIRE(mr, "ibv_reg_dm_mr: %m");
	REQUIRE(!ibv_reg_dm_mr(dev.pd, dm, 0, 20001, access), "a region beyond the end");
	REQUIRE(!ibv_reg_dm_mr(dev.pd, dm, 0, 100, ACCESS), "a region that is not zero based");
	REQUIRE(ibv_free_dm(dm) == EBUSY, "device memory with a region can be freed");
	buf = at(p->a.buf, p->a.mr);
	zero.mr = mr;

	/* WRITE to, READ from, and SEND from and to device memory */
	fill(p->a.buf, 6000, 2);
	if (!rdma(p, IBV_WR_RDMA_WRITE, buf, zero, 6000, "write to device memory"))
		return false;
	VERB(ibv_memcpy_from_dm(out, dm, 100, 6000));
	if (!filled(out, 6000, 2))
		return false;
	memset(p->a.buf, 0, 6000);
	if (!rdma(p, IBV_WR_RDMA_READ, buf, zero, 6000, "read from device memory") ||
	    !filled(p->a.buf, 6000, 2))
		return false;
	fill(out, 6000, 3);
	VERB(ibv_memcpy_to_dm(dm, 100, out, 6000));
	if (!message(p, zero, at(p->b.buf, p->b.mr), 6000) || !filled(p->b.buf, 6000, 3))
		return false;
	fill(p->a.buf, 6000, 4);
	if (!message(p, buf, zero, 6000))
		return false;
	VERB(ibv_memcpy_from_dm(out, dm, 100, 6000));
	if (!filled(out, 6000, 4))
		return false;

	/* an atomic must be aligned to 8 bytes of the memory; @mr begins at byte 100 */
	one = ibv_reg_dm_mr(dev.pd, dm, 8192, 16, access);
	REQUIRE(one, "ibv_reg_dm_mr: %m");
	there = (struct at){ 8, one };
	old = (uint64_t *)p->a.buf;
	*old = 40;
	VERB(ibv_memcpy_to_dm(dm, 8200, old, 8));
	if (!atomic(p, IBV_WR_ATOMIC_FETCH_AND_ADD, buf, there, 2, 0))
		return false;
	REQUIRE(*old == 40, "fetch and add fetched %lu", (unsigned long)*old);
	if (!atomic(p, IBV_WR_ATOMIC_CMP_AND_SWP, buf, there, 42, 77))
		return false;
	REQUIRE(*old == 42, "compare and swap fetched %lu", (unsigned long)*old);
	VERB(ibv_memcpy_from_dm(old, dm, 8200, 8));
	REQUIRE(*old == 77, "compare and swap left %lu", (unsigned long)*old);

	/* no byte outside of the region can be reached */
	if (!rdma_ends(p, IBV_WR_RDMA_WRITE, buf, (struct at){ 5999, mr }, 2,
		       IBV_WC_REM_ACCESS_ERR, "a write beyond the region"))
		return false;
	VERB(ibv_dereg_mr(one));
	REQUIRE(ibv_free_dm(dm) == EBUSY, "device memory with a region can be freed");
	VERB(ibv_dereg_mr(mr));
	VERB(ibv_free_dm(dm));
	return true;
}

/* Device memory counts as used as long as a process has it mapped, also after it was freed. */
bool dm_mapped(struct pair *p)
{
	struct ibv_dm *dm;
	uint64_t word = 1;
	pid_t pid;

	(void)p;
	if (!dm_there())
		return false;
	dm = dm_make(dev.attr.max_dm_size);
	REQUIRE(dm, "ibv_alloc_dm: %m");
	VERB(ibv_memcpy_to_dm(dm, 0, &word, sizeof(word)));
	/* a child inherits the mapping */
	pid = fork();
	REQUIRE(pid >= 0, "fork: %m");
	if (!pid)
		for (;;)
			pause();
	VERB(ibv_free_dm(dm));
	dm = dm_make(1);
	if (!dm) {
		usleep(500000);
		dm = dm_make(1);
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	REQUIRE(!dm, "memory that a process has mapped was given to another");
	dm = dm_make(dev.attr.max_dm_size);
	REQUIRE(dm, "memory that is mapped no more is not there: %m");
	VERB(ibv_free_dm(dm));
	return true;
}

bool dm_limit(struct pair *p)
{
	const size_t piece = dev.attr.max_dm_size / 8;
	struct ibv_dm *dm[16], *rest;
	int n;

	(void)p;
	if (!dm_there())
		return false;
	for (int round = 0; round < 3; round++) {
		for (n = 0; n < 16; n++) {
			dm[n] = dm_make(piece);
			if (!dm[n])
				break;
		}
		REQUIRE(n == 8, "%d pieces of an eighth were allocated, not 8", n);
		REQUIRE(errno == ENOMEM, "the last failed with: %m");
		VERB(ibv_free_dm(dm[--n]));
		rest = dm_make(piece);
		REQUIRE(rest, "freed memory cannot be allocated");
		VERB(ibv_free_dm(rest));
		while (n)
			VERB(ibv_free_dm(dm[--n]));
	}
	return true;
}
