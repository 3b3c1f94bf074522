// SPDX-License-Identifier: GPL-2.0
/*
 * Memory that is not pinned pages of the process: device memory, on-demand paging and dma-bufs; and
 * pinned regions whose addresses get other pages.  Both ends are in this process; verbs_test.h
 * describes the printed results.
 *
 *   dm_odp [PART-OF-A-NAME]	run the tests whose names contain the argument (all)
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <linux/dma-buf.h>
#include <linux/udmabuf.h>

#include "dm_odp.h"

/* ---- on-demand paging ---- */

/* A buffer at each end, and a region for each, or one region for both */
struct sides {
	uint8_t *a, *b;
	size_t size;
	struct ibv_mr *amr, *bmr;
};

static bool sides_make(struct sides *s, size_t size, bool implicit)
{
	s->size = size;
	s->a = anonymous(size);
	s->b = anonymous(size);
	REQUIRE(s->a && s->b, "no memory");
	if (implicit) {
		s->amr = ibv_reg_mr(dev.pd, NULL, SIZE_MAX, ACCESS | OD);
		s->bmr = s->amr;
	} else {
		s->amr = ibv_reg_mr(dev.pd, s->a, size, ACCESS | OD);
		s->bmr = ibv_reg_mr(dev.pd, s->b, size, ACCESS | OD);
	}
	REQUIRE(s->amr && s->bmr, "ibv_reg_mr: %m");
	return true;
}

static bool sides_free(struct sides *s)
{
	VERB(ibv_dereg_mr(s->amr));
	if (s->bmr != s->amr)
		VERB(ibv_dereg_mr(s->bmr));
	munmap(s->a, s->size);
	munmap(s->b, s->size);
	return true;
}

/*
 * Do every operation, each time with pages that are not present at one end or at both.
 * @len: bytes of each operation that is no atomic.
 */
static bool every_operation(struct pair *p, struct sides *s, uint32_t len)
{
	struct at a = at(s->a + 24, s->amr), b = at(s->b + 40, s->bmr);
	static uint32_t seed;

	fill(s->a + 24, len, ++seed);
	madvise(s->b, s->size, MADV_DONTNEED);
	if (!rdma(p, IBV_WR_RDMA_WRITE, a, b, len, "write") || !filled(s->b + 40, len, seed))
		return false;
	madvise(s->a, s->size, MADV_DONTNEED);
	fill(s->b + 40, len, ++seed);
	if (!rdma(p, IBV_WR_RDMA_READ, a, b, len, "read") || !filled(s->a + 24, len, seed))
		return false;
	madvise(s->b, s->size, MADV_DONTNEED);
	fill(s->a + 24, len, ++seed);
	if (!message(p, a, b, len) || !filled(s->b + 40, len, seed))
		return false;
	madvise(s->a, s->size, MADV_DONTNEED);
	madvise(s->b, s->size, MADV_DONTNEED);
	/* pages that were not present have zeros */
	s->b[40] = 1;
	if (!message(p, a, b, len))
		return false;
	REQUIRE(!s->b[40] && !s->b[40 + len - 1], "a page that was not present was not zero");
	madvise(s->a, s->size, MADV_DONTNEED);
	madvise(s->b, s->size, MADV_DONTNEED);
	if (!atomic(p, IBV_WR_ATOMIC_FETCH_AND_ADD, a, b, 5, 0))
		return false;
	madvise(s->a, s->size, MADV_DONTNEED);
	if (!atomic(p, IBV_WR_ATOMIC_CMP_AND_SWP, a, b, 5, 9))
		return false;
	REQUIRE(*(uint64_t *)(s->a + 24) == 5 && *(uint64_t *)(s->b + 40) == 9,
		"atomics made %lu and left %lu", (unsigned long)*(uint64_t *)(s->a + 24),
		(unsigned long)*(uint64_t *)(s->b + 40));
	return true;
}

static bool odp_operations(struct pair *p, bool implicit)
{
	static const uint32_t len[] = { 8, 1000, 4096, 10000, 300000, 3000000 };
	struct sides s;

	if (!odp_there() || !make_pair(p, (struct pair_opts){}) ||
	    !sides_make(&s, 4 << 20, implicit))
		return false;
	for (size_t i = 0; i < sizeof(len) / sizeof(*len); i++)
		if (!every_operation(p, &s, len[i]))
			return false;
	return sides_free(&s);
}

static bool odp_explicit(struct pair *p)
{
	return odp_operations(p, false);
}

static bool odp_implicit(struct pair *p)
{
	return odp_operations(p, true);
}

/* A process changes the mappings of an on-demand region: later operations use the new pages. */
static bool odp_changes(struct pair *p)
{
	const size_t size = 64 * PAGE;
	uint8_t *buf, *other, *moved;
	struct ibv_mr *mr, *all;
	struct at local, there;
	int status;
	pid_t pid;

	if (!odp_there() || !make_pair(p, (struct pair_opts){ .size = size }))
		return false;
	local = at(p->a.buf, p->a.mr);
	buf = anonymous(size);
	REQUIRE(buf, "no memory");
	mr = ibv_reg_mr(dev.pd, buf, size, ACCESS | OD);
	all = ibv_reg_mr(dev.pd, NULL, SIZE_MAX, ACCESS | OD);
	REQUIRE(mr && all, "ibv_reg_mr: %m");
	there = at(buf, mr);

	/* map other memory at the same address */
	fill(p->a.buf, size, 1);
	if (!rdma(p, IBV_WR_RDMA_WRITE, local, there, size, "write") || !filled(buf, size, 1))
		return false;
	REQUIRE(mmap(buf, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
		     -1, 0) == buf, "mmap: %m");
	REQUIRE(!buf[0] && !buf[size - 1], "new memory is not zero");
	fill(p->a.buf, size, 2);
	if (!rdma(p, IBV_WR_RDMA_WRITE, local, there, size, "write to new memory") ||
	    !filled(buf, size, 2))
		return false;

	/* after a fork the child keeps its pages, and later writes go only to the parent's pages */
	pid = fork();
	REQUIRE(pid >= 0, "fork: %m");
	if (!pid) {
		sleep(1);
		_exit(!filled(buf, size, 2));
	}
	fill(p->a.buf, size, 3);
	if (!rdma(p, IBV_WR_RDMA_WRITE, local, there, size, "write after fork") ||
	    !filled(buf, size, 3))
		return false;
	REQUIRE(waitpid(pid, &status, 0) == pid && !status, "the child's memory was written");

	/* page out to swap, if there is any, and in again */
	madvise(buf, size, MADV_PAGEOUT);
	memset(p->a.buf, 0, size);
	if (!rdma(p, IBV_WR_RDMA_READ, local, there, size, "read of memory that was paged out") ||
	    !filled(p->a.buf, size, 3))
		return false;

	/* move the memory away: the region keeps its addresses, which have no memory then */
	other = anonymous(size);
	REQUIRE(other, "no memory");
	moved = mremap(buf, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, other);
	REQUIRE(moved == other, "mremap: %m");
	if (!rdma_ends(p, IBV_WR_RDMA_WRITE, local, there, 1, IBV_WC_REM_ACCESS_ERR,
		       "a write to unmapped memory"))
		return false;
	if (!rdma_ends(p, IBV_WR_RDMA_READ, local, there, 1, IBV_WC_REM_ACCESS_ERR,
		       "a read of unmapped memory"))
		return false;
	if (!rdma_ends(p, IBV_WR_RDMA_WRITE, there, at(p->b.buf, p->b.mr), 1, IBV_WC_LOC_PROT_ERR,
		       "a write from unmapped memory"))
		return false;
	if (!rdma_ends(p, IBV_WR_RDMA_READ, there, at(p->b.buf, p->b.mr), 1, IBV_WC_LOC_PROT_ERR,
		       "a read into unmapped memory"))
		return false;
	fill(p->a.buf, size, 4);
	if (!rdma(p, IBV_WR_RDMA_WRITE, local, at(moved, all), size, "write to the new address") ||
	    !filled(moved, size, 4))
		return false;

	/* a read-only mapping must not be written */
	mprotect(moved, size, PROT_READ);
	if (!rdma_ends(p, IBV_WR_RDMA_WRITE, local, at(moved, all), 1, IBV_WC_REM_ACCESS_ERR,
		       "a write to read-only memory"))
		return false;
	memset(p->a.buf, 0, size);
	if (!rdma(p, IBV_WR_RDMA_READ, local, at(moved, all), size, "read of read-only memory") ||
	    !filled(p->a.buf, size, 4))
		return false;
	VERB(ibv_dereg_mr(mr));
	VERB(ibv_dereg_mr(all));
	munmap(moved, size);
	return true;
}

/* Bytes that were written to mapped pages of a file must reach the file. */
static bool odp_file(struct pair *p)
{
	const size_t size = 32 * PAGE;
	char name[] = "/var/tmp/dm_odp.XXXXXX";
	uint8_t *map, *out = malloc(size);
	struct ibv_mr *mr;
	int fd;

	if (!odp_there() || !make_pair(p, (struct pair_opts){ .size = size }))
		return false;
	fd = mkstemp(name);
	REQUIRE(fd >= 0 && out, "%s: %m", name);
	unlink(name);
	REQUIRE(!ftruncate(fd, size), "ftruncate: %m");
	map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	REQUIRE(map != MAP_FAILED, "mmap: %m");
	mr = ibv_reg_mr(dev.pd, map, size, ACCESS | OD);
	REQUIRE(mr, "ibv_reg_mr: %m");
	for (int round = 1; round < 5; round++) {
		fill(p->a.buf, size, round);
		if (!rdma(p, IBV_WR_RDMA_WRITE, at(p->a.buf, p->a.mr), at(map, mr), size, "write"))
			return false;
		/* write the pages to the file and drop them from memory */
		fsync(fd);
		madvise(map, size, MADV_PAGEOUT);
		posix_fadvise(fd, 0, size, POSIX_FADV_DONTNEED);
		REQUIRE(pread(fd, out, size, 0) == (ssize_t)size, "pread: %m");
		if (!filled(out, size, round))
			return false;
	}
	VERB(ibv_dereg_mr(mr));
	munmap(map, size);
	close(fd);
	free(out);
	return true;
}

static bool advise(struct ibv_pd *pd, enum ib_uverbs_advise_mr_advice advice, uint32_t flags,
		   struct at what, uint32_t len, uint32_t lkey, int want)
{
	struct ibv_sge sge = { what.addr, len, lkey };
	int got = ibv_advise_mr(pd, advice, flags, &sge, 1);

	REQUIRE(got == want, "advice %d of %u bytes: %s instead of %s", advice, len, strerror(got),
		strerror(want));
	return true;
}

static bool in_memory(const uint8_t *p, size_t size)
{
	unsigned char *there = calloc(1, size / PAGE);
	bool all = !mincore((void *)p, size, there);

	for (size_t i = 0; i < size / PAGE; i++)
		all &= there[i] & 1;
	free(there);
	return all;
}

static bool odp_prefetch(struct pair *p)
{
	struct ibv_pd *pd = ibv_alloc_pd(dev.ctx);
	const size_t size = 1 << 20;
	struct ibv_mr *mr, *ro, *all;
	uint8_t *buf;
	struct at b;

	if (!odp_there() || !make_pair(p, (struct pair_opts){}))
		return false;
	REQUIRE(pd, "ibv_alloc_pd: %m");
	buf = anonymous(size);
	REQUIRE(buf, "no memory");
	mr = ibv_reg_mr(dev.pd, buf, size, ACCESS | OD);
	ro = ibv_reg_mr(dev.pd, buf, size, OD);
	all = ibv_reg_mr(dev.pd, NULL, SIZE_MAX, ACCESS | OD);
	REQUIRE(mr && ro && all, "ibv_reg_mr: %m");
	b = at(buf, mr);

	if (!advise(dev.pd, PREFETCH_PRESENT, FLUSH, b, size, mr->lkey, 0))
		return false;
	REQUIRE(!in_memory(buf, size), "PREFETCH_NO_FAULT has faulted pages in");
	if (!advise(dev.pd, PREFETCH_WRITE, FLUSH, b, size, mr->lkey, 0))
		return false;
	REQUIRE(in_memory(buf, size), "prefetched pages are not present");
	madvise(buf, size, MADV_DONTNEED);
	if (!advise(dev.pd, PREFETCH, FLUSH, b, size, all->lkey, 0) ||
	    !advise(dev.pd, PREFETCH, 0, b, size, ro->lkey, 0) ||
	    !advise(dev.pd, PREFETCH_WRITE, 0, b, size, all->lkey, 0) ||
	    !advise(dev.pd, PREFETCH_PRESENT, 0, b, size, mr->lkey, 0))
		return false;

	/* the errnos that ibv_advise_mr(3) lists */
	if (!advise(dev.pd, PREFETCH, FLUSH, b, 8, p->a.mr->lkey, EINVAL) ||
	    !advise(dev.pd, PREFETCH, FLUSH, b, 8, mr->lkey ^ 1, ENOENT) ||
	    !advise(dev.pd, PREFETCH, FLUSH, b, size + 1, mr->lkey, EFAULT) ||
	    !advise(dev.pd, PREFETCH_WRITE, FLUSH, b, 8, ro->lkey, EPERM) ||
	    !advise(pd, PREFETCH, FLUSH, b, 8, mr->lkey, EPERM) ||
	    !advise(dev.pd, PREFETCH, FLUSH, at(NULL, all), 8, all->lkey, EFAULT))
		return false;
	VERB(ibv_dereg_mr(mr));
	VERB(ibv_dereg_mr(ro));
	VERB(ibv_dereg_mr(all));
	VERB(ibv_dealloc_pd(pd));
	munmap(buf, size);
	return true;
}

/* A region larger than the machine's memory, of which few pages are used, must pin no page. */
static bool odp_big(struct pair *p)
{
	struct ibv_mr *mr;
	long pinned, rss;
	uint8_t *big;
	uint64_t off;

	if (!odp_there() || !make_pair(p, (struct pair_opts){}))
		return false;
	pinned = pinned_kb();
	big = anonymous(BIG);
	REQUIRE(big, "no %lu GiB of address space: %m", BIG >> 30);
	mr = ibv_reg_mr(dev.pd, big, BIG, ACCESS | OD);
	REQUIRE(mr, "ibv_reg_mr: %m");
	for (uint64_t i = 0; i < 200; i++) {
		off = i == 199 ? BIG - 3000 : i * (BIG / 200) + i * 1111;
		fill(p->a.buf, 3000, i);
		if (!rdma(p, IBV_WR_RDMA_WRITE, at(p->a.buf, p->a.mr), at(big + off, mr), 3000,
			  "write") || !filled(big + off, 3000, i))
			return false;
	}
	REQUIRE(pinned_kb() == pinned, "pages are pinned");
	rss = status_kb("VmRSS:");
	REQUIRE(rss < 500000, "%ld kB for 200 pages", rss);
	if (!rdma_ends(p, IBV_WR_RDMA_WRITE, at(p->a.buf, p->a.mr), at(big + BIG - 1, mr), 2,
		       IBV_WC_REM_ACCESS_ERR, "a write past the end"))
		return false;
	VERB(ibv_dereg_mr(mr));
	munmap(big, BIG);
	return true;
}

static bool odp_arguments(struct pair *p)
{
	uint8_t *buf = anonymous(2 * PAGE);
	struct ibv_mr *mr;

	(void)p;
	if (!odp_there())
		return false;
	REQUIRE(buf, "no memory");
	REQUIRE(!ibv_reg_mr_iova(dev.pd, NULL, SIZE_MAX, PAGE, LW | OD),
		"an implicit region that does not begin at 0");
	REQUIRE(!ibv_reg_mr(dev.pd, NULL, SIZE_MAX, LW), "all memory, pinned");
	/* rdma_rxe also accepts such a region; only requests without bytes can use it */
	mr = ibv_reg_mr(dev.pd, buf, 0, LW | OD);
	REQUIRE(mr && !ibv_dereg_mr(mr), "a region of no bytes is refused");
	REQUIRE(!ibv_reg_mr(dev.pd, buf, SIZE_MAX - PAGE, LW | OD), "past the last address");
	REQUIRE(!ibv_reg_mr(dev.pd, (void *)(UINTPTR_MAX << 48), PAGE, LW | OD),
		"a region of kernel memory");
	REQUIRE(!ibv_reg_mr(dev.pd, buf, PAGE, IBV_ACCESS_REMOTE_WRITE | OD),
		"remote without local write");
	/* memory need not be mapped when it is registered */
	munmap(buf, 2 * PAGE);
	mr = ibv_reg_mr(dev.pd, buf, 2 * PAGE, ACCESS | OD);
	REQUIRE(mr, "ibv_reg_mr: %m");
	VERB(ibv_dereg_mr(mr));
	return true;
}

/* Change @mr as ibv_rereg_mr() does.  Return: 0 or the errno. */
static int change(struct ibv_mr *mr, int flags, struct ibv_pd *pd, int access)
{
	errno = 0;
	return ibv_rereg_mr(mr, flags, pd, NULL, 0, access) ? errno : 0;
}

/*
 * The rights and the domain of an on-demand region change, and its keys stay.  A region that
 * becomes pinned, or on demand, is a new region at the same addresses.
 */
static bool odp_rereg(struct pair *p)
{
	const int rights = IBV_REREG_MR_CHANGE_ACCESS, domain = IBV_REREG_MR_CHANGE_PD;
	struct ibv_pd *pd = ibv_alloc_pd(dev.ctx);
	const size_t size = 8 * PAGE;
	struct ibv_mr *mr, *all;
	struct at local, b;
	uint32_t key, all_key;
	uint8_t *buf;
	long pinned;

	if (!odp_there() || !make_pair(p, (struct pair_opts){ .size = size }))
		return false;
	buf = anonymous(size);
	REQUIRE(pd && buf, "no memory");
	local = at(p->a.buf, p->a.mr);
	mr = ibv_reg_mr(dev.pd, buf, size, IBV_ACCESS_REMOTE_READ | OD);
	all = ibv_reg_mr(dev.pd, NULL, SIZE_MAX, ACCESS | OD);
	REQUIRE(mr && all, "ibv_reg_mr: %m");
	b = at(buf, mr);
	key = mr->rkey;
	all_key = all->rkey;

	REQUIRE(!change(mr, rights, NULL, ACCESS | OD), "more rights: %m");
	fill(p->a.buf, size, 1);
	if (!rdma(p, IBV_WR_RDMA_WRITE, local, b, size, "write") || !filled(buf, size, 1))
		return false;
	REQUIRE(!change(mr, rights, NULL, IBV_ACCESS_REMOTE_READ | OD), "fewer rights: %m");
	REQUIRE(!change(all, rights, NULL, IBV_ACCESS_REMOTE_READ | OD), "implicit: %m");
	if (!rdma_ends(p, IBV_WR_RDMA_WRITE, local, b, 1, IBV_WC_REM_ACCESS_ERR,
		       "a write without the right") ||
	    !rdma_ends(p, IBV_WR_RDMA_WRITE, local, at(buf, all), 1, IBV_WC_REM_ACCESS_ERR,
		       "a write without the right, implicit") ||
	    !rdma(p, IBV_WR_RDMA_READ, local, at(buf, all), size, "read, implicit") ||
	    !filled(p->a.buf, size, 1))
		return false;
	REQUIRE(!change(mr, domain, pd, 0), "domain: %m");
	if (!rdma_ends(p, IBV_WR_RDMA_READ, local, b, 1, IBV_WC_REM_ACCESS_ERR,
		       "a read from another domain"))
		return false;
	REQUIRE(ibv_dealloc_pd(pd) == EBUSY, "a domain with a region was deallocated");
	REQUIRE(!change(mr, domain | rights, dev.pd, ACCESS | OD), "domain and rights: %m");
	VERB(ibv_dealloc_pd(pd));
	madvise(buf, size, MADV_DONTNEED);
	fill(p->a.buf, size, 2);
	if (!rdma(p, IBV_WR_RDMA_WRITE, local, b, size, "write, back") || !filled(buf, size, 2))
		return false;
	REQUIRE(mr->rkey == key && all->rkey == all_key, "a key has changed");

	/* make the region pinned, and on-demand again; an implicit region cannot become pinned */
	REQUIRE(change(all, rights, NULL, LW) == EOPNOTSUPP, "all memory, pinned: %m");
	pinned = pinned_kb();
	REQUIRE(!change(mr, rights, NULL, ACCESS), "pinned: %m");
	REQUIRE(pinned_kb() == pinned + (long)(size >> 10), "pages are not pinned");
	if (!rdma(p, IBV_WR_RDMA_READ, local, b, size, "read, pinned") ||
	    !filled(p->a.buf, size, 2))
		return false;
	REQUIRE(!change(mr, rights, NULL, ACCESS | OD), "on demand: %m");
	REQUIRE(pinned_kb() == pinned, "pages are still pinned");
	madvise(buf, size, MADV_DONTNEED);
	fill(p->a.buf, size, 3);
	if (!rdma(p, IBV_WR_RDMA_WRITE, local, b, size, "write, on demand again") ||
	    !filled(buf, size, 3))
		return false;
	VERB(ibv_dereg_mr(mr));
	VERB(ibv_dereg_mr(all));
	munmap(buf, size);
	return true;
}

/* Datagrams for pages that are not present may be lost: on average at most 5 until one arrives. */
static bool odp_datagrams(struct pair *p)
{
	struct ibv_ah_attr ah = { .is_global = 1, .port_num = 1,
				  .grh = { .dgid = dev.gid, .sgid_index = dev.gid_index,
					   .hop_limit = 64 } };
	struct ibv_recv_wr rwr = { .wr_id = 5, .num_sge = 1 }, *bad_recv;
	struct ibv_send_wr wr = { .wr_id = 6, .opcode = IBV_WR_SEND, .num_sge = 1,
				  .send_flags = IBV_SEND_SIGNALED }, *bad;
	const uint32_t len = 1024;
	struct completion c;
	struct ibv_sge in, out;
	struct sides s;
	int tries, lost = 0;

	if (!odp_there() || !make_pair(p, (struct pair_opts){ .type = IBV_QPT_UD }) ||
	    !sides_make(&s, 4 * PAGE, false))
		return false;
	p->ah = ibv_create_ah(dev.pd, &ah);
	REQUIRE(p->ah, "ibv_create_ah: %m");
	wr.wr.ud.ah = p->ah;
	wr.wr.ud.remote_qpn = p->b.qp->qp_num;
	wr.wr.ud.remote_qkey = QKEY;
	out = (struct ibv_sge){ (uintptr_t)s.a + PAGE - 100, len, s.amr->lkey };
	in = (struct ibv_sge){ (uintptr_t)s.b + PAGE - 200, len + GRH, s.bmr->lkey };
	wr.sg_list = &out;
	rwr.sg_list = &in;
	for (int round = 0; round < 20; round++) {
		madvise(s.b, s.size, MADV_DONTNEED);
		VERB(ibv_post_recv(p->b.qp, &rwr, &bad_recv));
		for (tries = 0; tries < 50; tries++) {
			if (round % 2)
				madvise(s.a, s.size, MADV_DONTNEED);
			else
				fill(s.a + PAGE - 100, len, round);
			VERB(ibv_post_send(p->a.qp, &wr, &bad));
			if (!wait_for(p->a.cq, 6, IBV_WC_SEND, &c))
				return false;
			usleep(2000);
			if (poll_one(p->b.cq, &c))
				break;
			lost++;
		}
		REQUIRE(tries < 50, "no datagram arrived");
		REQUIRE(c.status == IBV_WC_SUCCESS && c.byte_len == len + GRH, "%s, %u bytes",
			ibv_wc_status_str(c.status), c.byte_len);
		if (round % 2 == 0 && !filled(s.b + PAGE - 200 + GRH, len, round))
			return false;
	}
	REQUIRE(lost <= 100, "%d datagrams were lost until 20 arrived", lost);
	return sides_free(&s);
}

/* ---- traffic while memory changes ---- */

static atomic_bool storm_over;

static void *storm(void *arg)
{
	struct sides *s = arg;
	unsigned int i = 0;
	pid_t pid;

	while (!storm_over) {
		/* none of these calls changes bytes in memory */
		madvise(s->a, s->size, MADV_PAGEOUT);
		madvise(s->b, s->size, MADV_PAGEOUT);
		mprotect(s->b, s->size, PROT_READ | PROT_WRITE | PROT_EXEC);
		mprotect(s->b, s->size, PROT_READ | PROT_WRITE);
		if (i++ % 16 == 0) {
			pid = fork();
			if (!pid)
				_exit(0);
			if (pid > 0)
				waitpid(pid, NULL, 0);
		}
		usleep(2000);
	}
	return NULL;
}

static bool odp_storm(struct pair *p)
{
	uint64_t end = clock_ns(CLOCK_MONOTONIC) + 10 * 1000000000ULL;
	pthread_t thread;
	bool good = true;
	struct sides s;
	uint32_t n = 0;

	if (!odp_there() || !make_pair(p, (struct pair_opts){}) || !sides_make(&s, 1 << 20, false))
		return false;
	REQUIRE(!pthread_create(&thread, NULL, storm, &s), "no thread");
	while (good && clock_ns(CLOCK_MONOTONIC) < end) {
		size_t off = n * 7919 % (s.size - 20000);

		fill(s.a + off, 20000, ++n);
		if (n % 4 == 1)
			good = message(p, at(s.a + off, s.amr), at(s.b + off, s.bmr), 20000);
		else
			good = rdma(p, IBV_WR_RDMA_WRITE, at(s.a + off, s.amr),
				    at(s.b + off, s.bmr), 20000, "write");
		if (!good || !filled(s.b + off, 20000, n)) {
			good = false;
			break;
		}
		fill(s.b + off, 20000, ++n);
		good = rdma(p, IBV_WR_RDMA_READ, at(s.a + off, s.amr), at(s.b + off, s.bmr), 20000,
			    "read") && filled(s.a + off, 20000, n);
	}
	storm_over = true;
	pthread_join(thread, NULL);
	if (!good)
		return false;
	printf("# %u operations\n", n);
	/* the number of operations depends on the machine, so check only that there were some */
	REQUIRE(n > 2, "only %u operations", n);
	return sides_free(&s);
}

/* ---- dma-bufs ---- */

/*
 * Make a dma-buf of pages of a memfd, which is mapped at *@map.  Return: its descriptor, or -1 if
 * the kernel has no udmabuf.
 */
static int dmabuf_make(size_t size, uint8_t **map)
{
	int mem = memfd_create("dm_odp", MFD_ALLOW_SEALING), udmabuf, fd;
	struct udmabuf_create create = { .memfd = mem, .flags = UDMABUF_FLAGS_CLOEXEC,
					 .size = size };

	if (mem < 0 || ftruncate(mem, size) || fcntl(mem, F_ADD_SEALS, F_SEAL_SHRINK))
		return -1;
	*map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, mem, 0);
	udmabuf = open("/dev/udmabuf", O_RDWR);
	fd = udmabuf < 0 || *map == MAP_FAILED ? -1 : ioctl(udmabuf, UDMABUF_CREATE, &create);
	close(udmabuf);
	close(mem);
	return fd;
}

/* Return: true if `rdma resource' shows a region of @kind. */
static bool shown(const char *kind)
{
	char command[256];

	snprintf(command, sizeof(command),
		 "rdma -j -dd resource show mr dev %s | grep -Eq '\"drv_kind\": *\"%s\"'",
		 ibv_get_device_name(dev.pd->context->device), kind);
	return !system(command);
}

static bool dmabuf(struct pair *p)
{
	const size_t size = 64 * PAGE;
	struct ibv_mr *mr;
	struct at local;
	uint8_t *map;
	int fd;

	if (!make_pair(p, (struct pair_opts){ .size = size }))
		return false;
	local = at(p->a.buf, p->a.mr);
	fd = dmabuf_make(size, &map);
	if (fd < 0) {
		skipped = true;
		return fail("the kernel has no udmabuf");
	}
	REQUIRE(!ibv_reg_dmabuf_mr(dev.pd, 0, size + 1, 0, fd, ACCESS), "beyond its end");
	REQUIRE(!ibv_reg_dmabuf_mr(dev.pd, 0, 0, 0, fd, ACCESS), "no bytes");
	REQUIRE(!ibv_reg_dmabuf_mr(dev.pd, 0, size, 0, 0, ACCESS), "not a dma-buf");
	mr = ibv_reg_dmabuf_mr(dev.pd, PAGE + 100, 50 * PAGE, 0x10000 + 100, fd, ACCESS);
	if (!mr && errno == EOPNOTSUPP)
		return missing("ibv_reg_dmabuf_mr");
	REQUIRE(mr, "ibv_reg_dmabuf_mr: %m");
	/* the region keeps the dma-buf after its descriptor is closed */
	close(fd);

	fill(p->a.buf, 50 * PAGE, 1);
	if (!rdma(p, IBV_WR_RDMA_WRITE, local, (struct at){ 0x10000 + 100, mr }, 50 * PAGE,
		  "write to a dma-buf") || !filled(map + PAGE + 100, 50 * PAGE, 1))
		return false;
	fill(map + PAGE + 100, 50 * PAGE, 2);
	if (!rdma(p, IBV_WR_RDMA_READ, local, (struct at){ 0x10000 + 100, mr }, 50 * PAGE,
		  "read from a dma-buf") || !filled(p->a.buf, 50 * PAGE, 2))
		return false;
	if (!message(p, (struct at){ 0x10000 + 100, mr }, at(p->b.buf, p->b.mr), 9999) ||
	    !filled(p->b.buf, 9999, 2))
		return false;
	if (!rdma_ends(p, IBV_WR_RDMA_WRITE, local, (struct at){ 0x10000 + 99, mr }, 2,
		       IBV_WC_REM_ACCESS_ERR, "a write before the region"))
		return false;
	REQUIRE(shown("linear"), "rdma resource does not show the region");
	VERB(ibv_dereg_mr(mr));
	munmap(map, size);
	return true;
}

/* ---- pinned pages whose addresses get other pages ---- */

enum remap { REMAP_UNMAP, REMAP_DISCARD, REMAP_MOVE, REMAPS };

/* Map other pages at the same addresses, in the way @how. */
static bool remap(uint8_t *buf, size_t size, enum remap how)
{
	uint8_t *other;

	switch (how) {
	case REMAP_UNMAP:
		VERB(munmap(buf, size));
		REQUIRE(mmap(buf, size, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == buf, "mmap: %m");
		return true;
	case REMAP_DISCARD:
		VERB(madvise(buf, size, MADV_DONTNEED));
		return true;
	default:
		other = anonymous(size);
		REQUIRE(other, "no memory");
		REQUIRE(mremap(other, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, buf) == buf,
			"mremap: %m");
		return true;
	}
}

/*
 * A region that is registered after its addresses got other pages uses the new pages, at both ends
 * of an operation.  An older region keeps the pages that it has pinned.
 */
static bool mapped_anew(struct pair *p, size_t size, enum remap how)
{
	uint8_t *buf = anonymous(size), *mine = anonymous(size);
	struct ibv_mr *before, *after, *own;

	REQUIRE(buf && mine, "no memory");
	before = ibv_reg_mr(dev.pd, buf, size, ACCESS);
	own = ibv_reg_mr(dev.pd, mine, size, ACCESS);
	REQUIRE(before && own, "ibv_reg_mr: %m");
	fill(buf, size, 1);
	if (!remap(buf, size, how))
		return false;
	after = ibv_reg_mr(dev.pd, buf, size, ACCESS);
	REQUIRE(after, "ibv_reg_mr: %m");
	fill(buf, size, 2);

	if (!rdma(p, IBV_WR_RDMA_READ, at(mine, own), at(buf, before), size, "READ of old pages") ||
	    !filled(mine, size, 1) ||
	    !rdma(p, IBV_WR_RDMA_READ, at(mine, own), at(buf, after), size, "READ of new pages") ||
	    !filled(mine, size, 2) ||
	    !rdma(p, IBV_WR_RDMA_WRITE, at(buf, before), at(mine, own), size, "WRITE of old pages") ||
	    !filled(mine, size, 1))
		return false;
	fill(mine, size, 3);
	if (!rdma(p, IBV_WR_RDMA_WRITE, at(mine, own), at(buf, before), size, "WRITE to old pages") ||
	    !filled(buf, size, 2) || !message(p, at(mine, own), at(buf, after), size) ||
	    !filled(buf, size, 3))
		return false;
	/* deregistration of the old region must not affect the new one at the same addresses */
	VERB(ibv_dereg_mr(before));
	fill(mine, size, 4);
	if (!rdma(p, IBV_WR_RDMA_WRITE, at(mine, own), at(buf, after), size, "WRITE to new pages") ||
	    !filled(buf, size, 4))
		return false;
	VERB(ibv_dereg_mr(after));
	VERB(ibv_dereg_mr(own));
	munmap(buf, size);
	munmap(mine, size);
	return true;
}

static bool pinned_remapped(struct pair *p)
{
	static const size_t sizes[] = { PAGE, 5 * PAGE, 5UL << 20 };

	if (!make_pair(p, (struct pair_opts){}))
		return false;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		for (enum remap how = 0; how < REMAPS; how++)
			for (int round = 0; round < (sizes[i] < 1 << 20 ? 10 : 2); round++)
				if (!mapped_anew(p, sizes[i], how))
					return false;
	return true;
}

static const struct test tests[] = {
	{ "dm: copy", dm_copy, false },
	{ "dm: regions, atomics", dm_region, false },
	{ "dm: the limit", dm_limit, false },
	{ "dm: memory that is mapped counts", dm_mapped, false },
	{ "pinned: addresses get other pages, which a new region uses", pinned_remapped, true },
	{ "odp: arguments", odp_arguments, false },
	{ "odp: explicit", odp_explicit, false },
	{ "odp: implicit", odp_implicit, true },
	{ "odp: memory changes", odp_changes, true },
	{ "odp: pages of a file", odp_file, true },
	{ "odp: prefetch", odp_prefetch, true },
	{ "odp: rights and domain change", odp_rereg, true },
	{ "odp: 64 GiB", odp_big, true },
	{ "odp: datagrams", odp_datagrams, true },
	{ "odp: memory changes under traffic", odp_storm, true },
	{ "dma-buf", dmabuf, true },
};

int main(int argc, char **argv)
{
	return run_tests(tests, sizeof(tests) / sizeof(*tests), argc > 1 ? argv[1] : NULL);
}
