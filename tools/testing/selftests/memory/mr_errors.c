// SPDX-License-Identifier: GPL-2.0
/*
 * Wrong and unusual arguments of memory regions: the errno of ibv_reg_mr() and ibv_rereg_mr(), and
 * the completion status of operations through a key that does not fit (IBTA 9.9.2, 10.6.3,
 * 11.6.2).  Both ends are in this process; verbs_test.h describes the printed results.
 *
 *   mr_errors [PART-OF-A-NAME]	run the tests whose names contain the argument (all)
 */
#define _GNU_SOURCE
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "verbs_test.h"

#define LW	IBV_ACCESS_LOCAL_WRITE
#define RW	IBV_ACCESS_REMOTE_WRITE
#define RR	IBV_ACCESS_REMOTE_READ
#define RA	IBV_ACCESS_REMOTE_ATOMIC
#define PAGE	4096UL

/* value of bytes that no operation has written */
#define BYTE	0x5a

/* ---- helpers ---- */

static bool rdma(struct pair *p, enum ibv_wr_opcode opcode, uint32_t len, uint64_t remote,
		 uint32_t rkey, enum ibv_wc_status want, const char *what)
{
	struct ibv_sge sge = sge_of(&p->a, 0, len);
	struct ibv_send_wr wr = { .opcode = opcode, .sg_list = &sge, .num_sge = 1,
				  .wr.rdma = { remote, rkey } };

	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = remote;
		wr.wr.atomic.rkey = rkey;
		wr.wr.atomic.compare_add = 1;
	}
	return request_ends(p, &wr, want, what);
}

static bool writes(struct pair *p, uint32_t len, const void *remote, uint32_t rkey, bool may,
		   const char *what)
{
	return rdma(p, IBV_WR_RDMA_WRITE, len, (uintptr_t)remote, rkey,
		    may ? IBV_WC_SUCCESS : IBV_WC_REM_ACCESS_ERR, what);
}

static uint8_t *anonymous(size_t size)
{
	uint8_t *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return NULL;
	memset(p, BYTE, size);
	return p;
}

static bool untouched(const uint8_t *p, size_t len)
{
	for (size_t i = 0; i < len; i++)
		REQUIRE(p[i] == BYTE, "byte %zu of %zu was written", i, len);
	return true;
}

/* Registration must fail with errno @want. */
static bool no_mr(void *addr, size_t len, uint64_t iova, int access, int want, const char *what)
{
	struct ibv_mr *mr;
	int got;

	errno = 0;
	mr = ibv_reg_mr_iova(dev.pd, addr, len, iova, access);
	got = errno;
	if (mr) {
		ibv_dereg_mr(mr);
		return fail("%s: the registration succeeded", what);
	}
	REQUIRE(got == want, "%s: %s instead of %s", what, strerror(got), strerror(want));
	return true;
}

/* ---- ranges ---- */

static bool wrapping(struct pair *p)
{
	uint8_t *buf = anonymous(2 * PAGE);
	long pinned = pinned_kb();

	(void)p;
	REQUIRE(buf, "no memory");
	if (!no_mr((void *)-PAGE, 2 * PAGE, -PAGE, LW, EINVAL, "a length past the end") ||
	    !no_mr((void *)(-PAGE + 1), PAGE - 1, -PAGE + 1, LW, EINVAL, "up to the end") ||
	    !no_mr(buf, -PAGE, (uintptr_t)buf, LW, EINVAL, "almost 2^64") ||
	    !no_mr(buf, SIZE_MAX, (uintptr_t)buf, LW, EINVAL, "2^64 - 1 bytes"))
		return false;
	if (dev.nhca && !no_mr(buf, 2 * PAGE, -PAGE, LW, EINVAL, "an iova past the end"))
		return false;
	REQUIRE(pinned_kb() == pinned, "pages are still pinned");
	return true;
}

static bool zero_length(struct pair *p)
{
	uint8_t *buf = anonymous(PAGE);
	struct ibv_mr *mr;

	REQUIRE(buf, "no memory");
	/* other devices refuse a region of no bytes at a page boundary: they would pin no page */
	if (dev.nhca) {
		mr = ibv_reg_mr(dev.pd, buf, 0, LW | RW);
		REQUIRE(mr, "no bytes at a page: %m");
		VERB(ibv_dereg_mr(mr));
	}
	mr = ibv_reg_mr(dev.pd, buf + 8, 0, LW | RW);
	REQUIRE(mr, "no bytes in a page: %m");
	if (!make_pair(p, (struct pair_opts){}) ||
	    !rdma(p, IBV_WR_RDMA_WRITE, 0, (uintptr_t)buf + 8, mr->rkey, IBV_WC_SUCCESS,
		  "WRITE of no bytes to a region of no bytes") ||
	    !writes(p, 1, buf + 8, mr->rkey, false, "WRITE of a byte to a region of no bytes") ||
	    !untouched(buf, PAGE))
		return false;
	VERB(ibv_dereg_mr(mr));
	pair_free(p);
	/* IBTA C9-88, C9-89: an operation of no bytes needs no key */
	return make_pair(p, (struct pair_opts){}) &&
	       rdma(p, IBV_WR_RDMA_WRITE, 0, 0, 0x12345678, IBV_WC_SUCCESS, "WRITE of no bytes") &&
	       rdma(p, IBV_WR_RDMA_READ, 0, 0, 0x12345678, IBV_WC_SUCCESS, "READ of no bytes");
}

static bool too_long(struct pair *p)
{
	uint64_t max = dev.attr.orig_attr.max_mr_size;
	uint8_t *buf = anonymous(PAGE);
	long pinned = pinned_kb();
	struct ibv_mr *mr;

	(void)p;
	REQUIRE(buf, "no memory");
	REQUIRE(max >= 1ULL << 32, "max_mr_size %lu", (unsigned long)max);
	if (max < 1ULL << 63) {
		errno = 0;
		mr = ibv_reg_mr(dev.pd, buf, max + 1, LW);
		/* the errno depends on the limit that the kernel checks first */
		REQUIRE(!mr && (errno == EINVAL || errno == ENOMEM || errno == EFAULT),
			"%lu bytes: %m", (unsigned long)max + 1);
	}
	errno = 0;
	mr = ibv_reg_mr(dev.pd, buf, 1ULL << 47, LW);
	REQUIRE(!mr && (errno == EINVAL || errno == ENOMEM || errno == EFAULT), "2^47 bytes: %m");
	REQUIRE(pinned_kb() == pinned, "pages are still pinned");
	return true;
}

static bool not_there(struct pair *p)
{
	uint8_t *buf = anonymous(8 * PAGE);
	long pinned = pinned_kb();
	struct ibv_mr *mr;

	(void)p;
	REQUIRE(buf && !munmap(buf + 4 * PAGE, PAGE), "no memory");
	if (!no_mr(buf, 8 * PAGE, (uintptr_t)buf, LW, EFAULT, "a hole") ||
	    !no_mr(buf + 4 * PAGE, 1, (uintptr_t)buf + 4 * PAGE, LW, EFAULT, "a byte of a hole") ||
	    !no_mr((void *)0xffff888000000000UL, PAGE, 0xffff888000000000UL, LW, EFAULT,
		   "memory of the kernel") ||
	    !no_mr(NULL, PAGE, 0, LW, EFAULT, "NULL"))
		return false;
	REQUIRE(!mprotect(buf, PAGE, PROT_READ), "mprotect: %m");
	if (!no_mr(buf, PAGE, (uintptr_t)buf, LW, EFAULT, "write access to a read-only page"))
		return false;
	mr = ibv_reg_mr(dev.pd, buf, PAGE, RR);
	REQUIRE(mr, "read access to a read-only page: %m");
	VERB(ibv_dereg_mr(mr));
	REQUIRE(!mprotect(buf, PAGE, PROT_NONE), "mprotect: %m");
	if (!no_mr(buf, PAGE, (uintptr_t)buf, RR, EFAULT, "read access to PROT_NONE"))
		return false;
	REQUIRE(pinned_kb() == pinned, "pages are still pinned");
	return true;
}

/* A region may begin and end at any byte.  The bytes around it are not accessible. */
static bool unaligned(struct pair *p)
{
	static const struct { uint32_t at, len; } ranges[] = {
		{ 1, 1 }, { 4095, 2 }, { 3, 5000 }, { 4096, 4095 }, { 4097, 4096 }, { 8191, 1 },
	};
	uint8_t *buf = anonymous(4 * PAGE);

	REQUIRE(buf, "no memory");
	if (!make_pair(p, (struct pair_opts){}))
		return false;
	memset(p->a.buf, 1, p->size);
	for (unsigned int i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
		uint32_t len = ranges[i].len;
		uint8_t *at = buf + ranges[i].at;
		struct ibv_mr *mr = ibv_reg_mr(dev.pd, at, len, LW | RW | RR);

		REQUIRE(mr, "%u bytes at %u: %m", len, ranges[i].at);
		if (!writes(p, len + 1, at, mr->rkey, false, "a byte more") ||
		    !writes(p, 1, at - 1, mr->rkey, false, "the byte before it") ||
		    !writes(p, 1, at + len, mr->rkey, false, "the byte after it") ||
		    !writes(p, 2, (void *)-1UL, mr->rkey, false, "past the last address") ||
		    !rdma(p, IBV_WR_RDMA_READ, len + 1, (uintptr_t)at, mr->rkey,
			  IBV_WC_REM_ACCESS_ERR, "READ of a byte more") ||
		    !untouched(buf, 4 * PAGE))
			return false;
		memset(p->a.buf, 1, p->size);
		if (!writes(p, len, at, mr->rkey, true, "all of it"))
			return false;
		for (uint32_t k = 0; k < len; k++)
			REQUIRE(at[k] == 1, "byte %u of %u was not written", k, len);
		memset(at, BYTE, len);
		if (!untouched(buf, 4 * PAGE))
			return false;
		VERB(ibv_dereg_mr(mr));
	}
	return true;
}

static bool overlapping(struct pair *p)
{
	uint8_t *buf = anonymous(4 * PAGE);
	struct ibv_mr *mr[3];

	REQUIRE(buf, "no memory");
	if (!make_pair(p, (struct pair_opts){}))
		return false;
	mr[0] = ibv_reg_mr(dev.pd, buf, 3 * PAGE, LW | RW);
	mr[1] = ibv_reg_mr(dev.pd, buf + 100, 3 * PAGE, LW | RW);
	mr[2] = ibv_reg_mr(dev.pd, buf, 3 * PAGE, LW | RW);
	REQUIRE(mr[0] && mr[1] && mr[2], "ibv_reg_mr: %m");
	REQUIRE(mr[0]->rkey != mr[1]->rkey && mr[0]->rkey != mr[2]->rkey,
		"two regions have the same key");
	for (int i = 0; i < 3; i++) {
		fill(p->a.buf, PAGE, i);
		if (!writes(p, PAGE, buf + PAGE, mr[i]->rkey, true, "WRITE through one of three") ||
		    !filled(buf + PAGE, PAGE, i))
			return false;
	}
	/* when one region is deregistered, the pages of the others remain */
	VERB(ibv_dereg_mr(mr[0]));
	fill(p->a.buf, PAGE, 5);
	if (!writes(p, PAGE, buf + PAGE, mr[0]->rkey, false, "an old key") ||
	    !writes(p, PAGE, buf + PAGE, mr[2]->rkey, true, "one of two") ||
	    !filled(buf + PAGE, PAGE, 5))
		return false;
	VERB(ibv_dereg_mr(mr[1]));
	VERB(ibv_dereg_mr(mr[2]));
	return true;
}

static bool iovas(struct pair *p)
{
	uint8_t *buf = anonymous(2 * PAGE);
	struct ibv_mr *mr;

	REQUIRE(buf, "no memory");
	if (!no_mr(buf, PAGE, (uintptr_t)buf + 1, LW, EINVAL, "iova at another place in the page") ||
	    !make_pair(p, (struct pair_opts){}))
		return false;
	mr = ibv_reg_mr_iova(dev.pd, buf, PAGE, 0, LW | RW);
	REQUIRE(mr, "iova 0: %m");
	fill(p->a.buf, 100, 3);
	if (!writes(p, 100, (void *)(PAGE - 100), mr->rkey, true, "the end, from 0") ||
	    !filled(buf + PAGE - 100, 100, 3) ||
	    !writes(p, 100, (void *)(PAGE - 99), mr->rkey, false, "past the end, from 0") ||
	    !writes(p, 100, buf, mr->rkey, false, "the virtual address, not the iova") ||
	    !untouched(buf + PAGE, PAGE))
		return false;
	VERB(ibv_dereg_mr(mr));
	return true;
}

/* ---- rights ---- */

static bool bad_rights(struct pair *p)
{
	uint8_t *buf = anonymous(PAGE);

	(void)p;
	REQUIRE(buf, "no memory");
	/* IBTA 10.6.3.1: remote write or atomic access requires local write access */
	return no_mr(buf, PAGE, (uintptr_t)buf, RW, EINVAL, "remote without local write") &&
	       no_mr(buf, PAGE, (uintptr_t)buf, RA, EINVAL, "remote atomics without local write") &&
	       no_mr(buf, PAGE, (uintptr_t)buf, RW | RA | RR, EINVAL, "all but local write") &&
	       no_mr(buf, PAGE, (uintptr_t)buf, LW | 1 << 18, EINVAL, "an unknown right");
}

/* IBV_ACCESS_HUGETLB is accepted for pages of any size, also when rights are changed. */
static bool huge_hint(struct pair *p)
{
	uint8_t *buf = anonymous(PAGE);
	struct ibv_mr *mr;

	if (!dev.nhca)
		return missing("IBV_ACCESS_HUGETLB without on-demand paging");
	if (!make_pair(p, (struct pair_opts){}))
		return false;
	REQUIRE(buf, "no memory");
	mr = ibv_reg_mr(dev.pd, buf, PAGE, LW | RW | IBV_ACCESS_HUGETLB);
	REQUIRE(mr, "IBV_ACCESS_HUGETLB: %m");
	fill(p->a.buf, 100, 4);
	if (!writes(p, 100, buf, mr->rkey, true, "huge pages") || !filled(buf, 100, 4))
		return false;
	VERB(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, LW | IBV_ACCESS_HUGETLB));
	if (!writes(p, 100, buf, mr->rkey, false, "without remote write"))
		return false;
	VERB(ibv_dereg_mr(mr));
	return true;
}

static bool each_right(struct pair *p)
{
	static const struct {
		enum ibv_wr_opcode opcode;
		uint32_t len;
		int needs;
	} ops[] = {
		{ IBV_WR_RDMA_WRITE, 64, RW }, { IBV_WR_RDMA_READ, 64, RR },
		{ IBV_WR_ATOMIC_FETCH_AND_ADD, 8, RA },
		{ IBV_WR_RDMA_WRITE, 20000, RW }, { IBV_WR_RDMA_READ, 20000, RR },
	};
	uint8_t *buf = anonymous(8 * PAGE);
	char what[64];

	REQUIRE(buf, "no memory");
	if (!make_pair(p, (struct pair_opts){}))
		return false;
	for (int rights = 0; rights < 8; rights++) {
		int access = LW | (rights & 1 ? RW : 0) | (rights & 2 ? RR : 0) |
			     (rights & 4 ? RA : 0);
		struct ibv_mr *mr = ibv_reg_mr(dev.pd, buf, 8 * PAGE, access);

		REQUIRE(mr, "rights %x: %m", access);
		for (unsigned int i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
			bool may = access & ops[i].needs;

			snprintf(what, sizeof(what), "opcode %d with rights %x", ops[i].opcode,
				 access);
			if (!rdma(p, ops[i].opcode, ops[i].len, (uintptr_t)buf, mr->rkey,
				  may ? IBV_WC_SUCCESS : IBV_WC_REM_ACCESS_ERR, what))
				return false;
		}
		VERB(ibv_dereg_mr(mr));
	}
	/* other devices refuse to post a misaligned atomic */
	return !dev.nhca || rdma(p, IBV_WR_ATOMIC_FETCH_AND_ADD, 8, (uintptr_t)p->b.buf + 4,
				 p->b.mr->rkey, IBV_WC_REM_INV_REQ_ERR, "a misaligned atomic");
}

static bool local_keys(struct pair *p)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1 };
	uint8_t *buf = anonymous(2 * PAGE);
	struct ibv_mr *mr, *other;
	struct ibv_pd *pd;

	REQUIRE(buf, "no memory");
	if (!make_pair(p, (struct pair_opts){}))
		return false;
	pd = ibv_alloc_pd(dev.ctx);
	REQUIRE(pd, "ibv_alloc_pd: %m");
	mr = ibv_reg_mr(dev.pd, buf, PAGE, RR);
	other = ibv_reg_mr(pd, buf, PAGE, LW | RW | RR);
	REQUIRE(mr && other, "ibv_reg_mr: %m");
	wr.opcode = IBV_WR_RDMA_WRITE;
	wr.wr.rdma.remote_addr = (uintptr_t)p->b.buf;
	wr.wr.rdma.rkey = p->b.mr->rkey;
	sge = (struct ibv_sge){ (uintptr_t)buf, PAGE, mr->lkey ^ 0x100 << 4 };
	if (!request_ends(p, &wr, IBV_WC_LOC_PROT_ERR, "an unknown L_Key"))
		return false;
	sge = (struct ibv_sge){ (uintptr_t)buf, PAGE, mr->lkey ^ 1 };
	if (!request_ends(p, &wr, IBV_WC_LOC_PROT_ERR, "another variant of an L_Key"))
		return false;
	sge = (struct ibv_sge){ (uintptr_t)buf, PAGE, other->lkey };
	if (!request_ends(p, &wr, IBV_WC_LOC_PROT_ERR, "an L_Key of another domain"))
		return false;
	sge = (struct ibv_sge){ (uintptr_t)buf + 1, PAGE, mr->lkey };
	if (!request_ends(p, &wr, IBV_WC_LOC_PROT_ERR, "a byte more than the region"))
		return false;
	sge = (struct ibv_sge){ -8UL, 64, mr->lkey };
	if (!request_ends(p, &wr, IBV_WC_LOC_PROT_ERR, "past the last address"))
		return false;
	for (int i = 0; i < 256; i++)
		REQUIRE(p->b.buf[i] == 0xee, "bytes of a refused request arrived");
	wr.opcode = IBV_WR_RDMA_READ;
	sge = (struct ibv_sge){ (uintptr_t)buf, PAGE, mr->lkey };
	if (!request_ends(p, &wr, IBV_WC_LOC_PROT_ERR, "READ into a region without write access") ||
	    !untouched(buf, 2 * PAGE))
		return false;
	VERB(ibv_dereg_mr(mr));
	VERB(ibv_dereg_mr(other));
	VERB(ibv_dealloc_pd(pd));
	return true;
}

/* A wrong receive: local protection error at the receiver, remote operation error at the sender. */
static bool bad_receives(struct pair *p)
{
	uint8_t *buf = anonymous(2 * PAGE);
	struct ibv_sge sge = { (uintptr_t)buf, PAGE, 0 }, from;
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;
	struct ibv_send_wr send = { .opcode = IBV_WR_SEND, .sg_list = &from, .num_sge = 1,
				    .send_flags = IBV_SEND_SIGNALED }, *bad_send;
	struct completion c;
	struct ibv_mr *mr;

	REQUIRE(buf, "no memory");
	if (!make_pair(p, (struct pair_opts){}))
		return false;
	mr = ibv_reg_mr(dev.pd, buf, PAGE, RR);
	REQUIRE(mr, "ibv_reg_mr: %m");
	from = sge_of(&p->a, 0, 100);
	for (int i = 0; i < 3; i++) {
		sge.lkey = i == 1 ? mr->lkey ^ 0x1000 : mr->lkey;
		sge.length = i == 2 ? 2 * PAGE : PAGE;
		VERB(ibv_post_recv(p->b.qp, &wr, &bad));
		VERB(ibv_post_send(p->a.qp, &send, &bad_send));
		if (!wait_any(p->b.cq, &c))
			return false;
		REQUIRE(c.status == IBV_WC_LOC_PROT_ERR, "case %d: receiver: %s", i,
			ibv_wc_status_str(c.status));
		if (!wait_any(p->a.cq, &c))
			return false;
		REQUIRE(c.status == IBV_WC_REM_OP_ERR, "case %d: sender: %s", i,
			ibv_wc_status_str(c.status));
		if (!reconnect(p) || !untouched(buf, 2 * PAGE))
			return false;
	}
	VERB(ibv_dereg_mr(mr));
	return true;
}

static bool wrong_domain(struct pair *p)
{
	struct ibv_pd *pd = ibv_alloc_pd(dev.ctx);
	uint8_t *buf = anonymous(PAGE);
	struct ibv_mr *mr;

	REQUIRE(pd && buf, "ibv_alloc_pd: %m");
	if (!make_pair(p, (struct pair_opts){}))
		return false;
	mr = ibv_reg_mr(pd, buf, PAGE, ACCESS);
	REQUIRE(mr, "ibv_reg_mr: %m");
	if (!writes(p, 64, buf, mr->rkey, false, "WRITE") ||
	    !rdma(p, IBV_WR_RDMA_READ, 64, (uintptr_t)buf, mr->rkey, IBV_WC_REM_ACCESS_ERR,
		  "READ") ||
	    !rdma(p, IBV_WR_ATOMIC_FETCH_AND_ADD, 8, (uintptr_t)buf, mr->rkey,
		  IBV_WC_REM_ACCESS_ERR, "FETCH_ADD") ||
	    !untouched(buf, PAGE))
		return false;
	REQUIRE(ibv_dealloc_pd(pd) == EBUSY, "a domain with a region was deallocated");
	VERB(ibv_dereg_mr(mr));
	VERB(ibv_dealloc_pd(pd));
	return true;
}

/* ---- re-registration ---- */

static bool rereg_fails(struct ibv_mr *mr, int flags, void *addr, size_t len, int access, int want,
			const char *what)
{
	int ret;

	errno = 0;
	ret = ibv_rereg_mr(mr, flags, dev.pd, addr, len, access);
	REQUIRE(ret, "%s: it succeeded", what);
	REQUIRE(errno == want, "%s: %m instead of %s", what, strerror(want));
	return true;
}

static bool can_rereg(void)
{
	uint8_t *buf = anonymous(PAGE);
	struct ibv_mr *mr = ibv_reg_mr(dev.pd, buf, PAGE, LW);
	bool can = mr && !ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, dev.pd, NULL, 0, LW | RR);

	if (mr)
		ibv_dereg_mr(mr);
	return can;
}

static bool widening(struct pair *p)
{
	const int change = IBV_REREG_MR_CHANGE_ACCESS;
	uint8_t *buf = anonymous(4 * PAGE);
	struct ibv_mr *mr;

	if (!can_rereg())
		return missing("ibv_rereg_mr");
	REQUIRE(buf && !mprotect(buf, PAGE, PROT_READ), "no memory");
	if (!make_pair(p, (struct pair_opts){}))
		return false;
	/* pages that the process itself may not write must not become writable */
	mr = ibv_reg_mr(dev.pd, buf, PAGE, RR);
	REQUIRE(mr, "ibv_reg_mr: %m");
	if (!rereg_fails(mr, change, NULL, 0, LW | RW, EFAULT, "writing read-only pages") ||
	    !rereg_fails(mr, change, NULL, 0, RW, EINVAL, "remote without local write") ||
	    !rereg_fails(mr, change, NULL, 0, 1 << 18, EINVAL, "an unknown right") ||
	    !writes(p, 64, buf, mr->rkey, false, "after the refused widening") ||
	    !rdma(p, IBV_WR_RDMA_READ, 64, (uintptr_t)buf, mr->rkey, IBV_WC_SUCCESS,
		  "the old right after the refused widening"))
		return false;
	VERB(ibv_dereg_mr(mr));
	/*
	 * pages that the process may write, but that are pinned only for reading, can become
	 * writable
	 */
	mr = ibv_reg_mr(dev.pd, buf + PAGE, 2 * PAGE, RR);
	REQUIRE(mr, "ibv_reg_mr: %m");
	VERB(ibv_rereg_mr(mr, change, dev.pd, NULL, 0, LW | RW));
	fill(p->a.buf, 64, 4);
	if (!writes(p, 64, buf + PAGE, mr->rkey, true, "after the widening") ||
	    !filled(buf + PAGE, 64, 4) ||
	    !rdma(p, IBV_WR_RDMA_READ, 64, (uintptr_t)buf + PAGE, mr->rkey, IBV_WC_REM_ACCESS_ERR,
		  "READ without the right"))
		return false;
	VERB(ibv_rereg_mr(mr, change, dev.pd, NULL, 0, LW));
	if (!writes(p, 64, buf + PAGE, mr->rkey, false, "after the narrowing"))
		return false;
	VERB(ibv_dereg_mr(mr));
	return true;
}

static bool rereg_ranges(struct pair *p)
{
	const int change = IBV_REREG_MR_CHANGE_TRANSLATION;
	uint8_t *buf = anonymous(8 * PAGE);
	struct ibv_mr *mr;
	uint32_t old;
	long pinned;

	if (!can_rereg())
		return missing("ibv_rereg_mr");
	REQUIRE(buf && !munmap(buf + 6 * PAGE, PAGE), "no memory");
	if (!make_pair(p, (struct pair_opts){}))
		return false;
	pinned = pinned_kb();
	mr = ibv_reg_mr(dev.pd, buf, PAGE, LW | RW);
	REQUIRE(mr, "ibv_reg_mr: %m");
	if (!rereg_fails(mr, change, (void *)-PAGE, 2 * PAGE, 0, EINVAL, "a range past the end") ||
	    !rereg_fails(mr, change, buf, 8 * PAGE, 0, EFAULT, "a range with a hole") ||
	    !rereg_fails(mr, change, buf, 0, 0, EINVAL, "no bytes") ||
	    !rereg_fails(mr, 0, NULL, 0, 0, EINVAL, "nothing to change") ||
	    !rereg_fails(mr, 1 << 6, NULL, 0, 0, EINVAL, "an unknown change") ||
	    !writes(p, 64, buf, mr->rkey, true, "the old range after refusals"))
		return false;
	old = mr->rkey;
	memset(buf, BYTE, PAGE);
	VERB(ibv_rereg_mr(mr, change, dev.pd, buf + 2 * PAGE + 5, PAGE, 0));
	if (!writes(p, PAGE, buf + 2 * PAGE + 5, mr->rkey, true, "the new range") ||
	    !writes(p, 64, buf, mr->rkey, false, "the old range") ||
	    (old != mr->rkey && !writes(p, 64, buf, old, false, "the old key")) ||
	    !untouched(buf, 2 * PAGE))
		return false;
	VERB(ibv_dereg_mr(mr));
	REQUIRE(pinned_kb() == pinned, "pages are still pinned");
	return true;
}

static bool rereg_domain(struct pair *p)
{
	struct ibv_pd *pd = ibv_alloc_pd(dev.ctx);
	uint8_t *buf = anonymous(PAGE);
	struct ibv_mr *mr;

	if (!can_rereg())
		return missing("ibv_rereg_mr");
	REQUIRE(pd && buf, "ibv_alloc_pd: %m");
	if (!make_pair(p, (struct pair_opts){}))
		return false;
	mr = ibv_reg_mr(dev.pd, buf, PAGE, LW | RW);
	REQUIRE(mr, "ibv_reg_mr: %m");
	VERB(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, pd, NULL, 0, 0));
	if (!writes(p, 64, buf, mr->rkey, false, "a QP of the old domain") ||
	    !untouched(buf, PAGE))
		return false;
	REQUIRE(ibv_dealloc_pd(pd) == EBUSY, "the new domain was deallocated");
	VERB(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD | IBV_REREG_MR_CHANGE_ACCESS, dev.pd, NULL, 0,
			  LW | RW | RR));
	VERB(ibv_dealloc_pd(pd));
	if (!writes(p, 64, buf, mr->rkey, true, "back in its domain"))
		return false;
	VERB(ibv_dereg_mr(mr));
	return true;
}

/* ---- a window keeps its region ---- */

static bool bound_region(struct pair *p)
{
	struct ibv_mw_bind bind = { .send_flags = IBV_SEND_SIGNALED };
	struct completion c;
	struct ibv_mr *mr;
	struct ibv_mw *mw;
	uint8_t *buf = anonymous(2 * PAGE);
	int ret;

	REQUIRE(buf, "no memory");
	if (!make_pair(p, (struct pair_opts){}))
		return false;
	mw = ibv_alloc_mw(dev.pd, IBV_MW_TYPE_1);
	if (!mw)
		return missing("a type 1 window");
	mr = ibv_reg_mr(dev.pd, buf, 2 * PAGE, LW | IBV_ACCESS_MW_BIND);
	REQUIRE(mr, "ibv_reg_mr: %m");
	bind.bind_info = (struct ibv_mw_bind_info){ mr, (uintptr_t)buf, PAGE, RW };
	VERB(ibv_bind_mw(p->b.qp, mw, &bind));
	if (!wait_for(p->b.cq, 0, IBV_WC_BIND_MW, &c))
		return false;
	ret = ibv_dereg_mr(mr);
	/* IBTA 10.6.7.2.6: a region with a bound window cannot be deregistered */
	REQUIRE(ret == EBUSY || (ret == -1 && errno == EBUSY) || (!dev.nhca && ret),
		"a region with a window: %s", ret ? strerror(ret) : "it was deregistered");
	if (can_rereg() && !rereg_fails(mr, IBV_REREG_MR_CHANGE_TRANSLATION, buf + PAGE, PAGE, 0,
					EBUSY, "another range under a window"))
		return false;
	fill(p->a.buf, PAGE, 6);
	if (!writes(p, PAGE, buf, mw->rkey, true, "through the window") || !filled(buf, PAGE, 6) ||
	    !writes(p, 64, buf, mr->rkey, false, "through the region, which has no right"))
		return false;
	VERB(ibv_dealloc_mw(mw));
	if (!writes(p, 64, buf, mw->rkey, false, "through a deallocated window"))
		return false;
	VERB(ibv_dereg_mr(mr));
	return true;
}

/* ---- RLIMIT_MEMLOCK ---- */

static bool locked_child(void)
{
	struct rlimit limit = { 64 * PAGE, 64 * PAGE };
	uint8_t *buf = anonymous(128 * PAGE);
	struct ibv_mr *mr;

	REQUIRE(buf, "no memory");
	REQUIRE(!setrlimit(RLIMIT_MEMLOCK, &limit) && !setuid(65534), "setrlimit, setuid: %m");
	if (!device_open() ||
	    !no_mr(buf, 100 * PAGE, (uintptr_t)buf, LW, ENOMEM, "more than RLIMIT_MEMLOCK"))
		return false;
	/* the charge is returned exactly, so the same amount can be registered repeatedly */
	for (int i = 0; i < 200; i++) {
		mr = ibv_reg_mr(dev.pd, buf + i, 32 * PAGE, i % 2 ? LW : 0);
		REQUIRE(mr, "registration %d: %m", i);
		if (!no_mr(buf, 64 * PAGE, (uintptr_t)buf, LW, ENOMEM, "too much with another"))
			return false;
		VERB(ibv_dereg_mr(mr));
	}
	return true;
}

static bool memlock(struct pair *p)
{
	int status;
	pid_t pid;

	(void)p;
	fflush(stdout);
	pid = fork();
	REQUIRE(pid >= 0, "fork: %m");
	if (!pid) {
		bool good = locked_child();

		if (!good)
			printf("# %s\n", reason);
		fflush(stdout);
		_exit(!good);
	}
	waitpid(pid, &status, 0);
	REQUIRE(!status, "the unprivileged process failed");
	return true;
}

static const struct test tests[] = {
	{ "ranges that wrap: EINVAL", wrapping, false },
	{ "zero length: registered; operations of no bytes need no key", zero_length, false },
	{ "too long: refused, no page stays pinned", too_long, false },
	{ "memory that is not mapped, or not writable: EFAULT", not_there, false },
	{ "regions begin and end at any byte", unaligned, false },
	{ "overlapping regions are independent", overlapping, false },
	{ "iova", iovas, true },
	{ "impossible rights: EINVAL", bad_rights, false },
	{ "IBV_ACCESS_HUGETLB", huge_hint, false },
	{ "each right opens one operation", each_right, false },
	{ "wrong L_Keys: local protection error", local_keys, true },
	{ "wrong receives: local protection, remote operation error", bad_receives, true },
	{ "another domain: remote access error", wrong_domain, false },
	{ "re-registration: wider rights only for writable memory", widening, true },
	{ "re-registration: ranges", rereg_ranges, true },
	{ "re-registration: domains", rereg_domain, true },
	{ "a region with a window: EBUSY", bound_region, true },
	{ "RLIMIT_MEMLOCK: ENOMEM, the charge is returned exactly", memlock, true },
};

int main(int argc, char **argv)
{
	return run_tests(tests, sizeof(tests) / sizeof(tests[0]), argc > 1 ? argv[1] : NULL);
}
