// SPDX-License-Identifier: GPL-2.0
/*
 * Regions of a disk (nhcadv_direct_reg_file()): content, memory, errors, deregistration.  Both ends
 * are in this process; verbs_test.h describes the printed results.
 *
 *   direct DISK BAD-DISK ROUNDS [PART-OF-A-NAME]
 *
 * The program overwrites DISK and BAD-DISK.  BAD-DISK cannot read the 4 KiB at 1 MiB.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sys/mman.h>

#include "direct_disk.h"

/* A peer reads at random places through a pool of 256 KiB.  READs are up to 4 MiB long. */
static bool peer_reads(struct pair *p)
{
	struct nhcadv_direct_info info;
	struct region r = {};

	if (!region_open(&r, good_disk, POOL) || !disk_fill(r.fd, 0, r.size, 1) ||
	    !make_pair(p, (struct pair_opts){ .size = BUF }))
		return false;
	for (unsigned int i = 0; i < rounds; i++) {
		uint32_t len = some_len(BUF);
		uint64_t off = rnd(r.size - len);

		memset(p->a.buf, 0x5a, len);
		if (!read_ends(p, off, r.mr->rkey, len, IBV_WC_SUCCESS, "READ") ||
		    !same(p->a.buf, off, len, 1))
			return false;
	}
	if (!read_ends(p, r.size - 1, r.mr->rkey, 1, IBV_WC_SUCCESS, "READ of the last byte") ||
	    !same(p->a.buf, r.size - 1, 1, 1))
		return false;
	VERB(nhcadv_direct_query(r.mr, &info));
	REQUIRE(info.read_bytes && info.reads && !info.errors, "wrong counters");
	REQUIRE(info.blocks == POOL && info.blocks_most <= POOL, "%u blocks were in use",
		info.blocks_most);
	return region_close(&r);
}

/* WRITEs and SENDs of this end take their bytes from the disk. */
static bool own_sends(struct pair *p)
{
	struct region r = {};

	if (!region_open(&r, good_disk, POOL) || !disk_fill(r.fd, 0, r.size, 2) ||
	    !make_pair(p, (struct pair_opts){ .size = BUF }))
		return false;
	for (unsigned int i = 0; i < rounds; i++) {
		uint32_t len = some_len(BUF);
		uint64_t off = rnd(r.size - len);
		struct ibv_sge sge = { .addr = off, .length = len, .lkey = r.mr->lkey };
		struct ibv_send_wr wr = { .opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1 };
		struct completion c;

		memset(p->b.buf, 0x5a, len);
		if (i % 2) {
			if (!write_ends(p, &sge, 1, IBV_WC_SUCCESS, "WRITE"))
				return false;
		} else if (!post_recv(p, 7, 0, BUF) ||
			   !request_ends(p, &wr, IBV_WC_SUCCESS, "SEND") ||
			   !wait_for(p->b.cq, 7, IBV_WC_RECV, &c)) {
			return false;
		}
		if (!same(p->b.buf, off, len, 2))
			return false;
	}
	return region_close(&r);
}

/* One message gathers from several regions and from memory, as a RAID controller would send it. */
static bool gathers(struct pair *p)
{
	struct region r = {}, s = {};
	struct ibv_sge sge[4];
	uint32_t at = 0;

	if (!region_open(&r, good_disk, POOL) || !region_open(&s, bad_disk, POOL) ||
	    !disk_fill(r.fd, 0, 8 * MIB, 3) || !disk_fill(s.fd, 4 * MIB, 2 * MIB, 4) ||
	    !make_pair(p, (struct pair_opts){ .size = BUF, .sge = 4 }))
		return false;
	fill(p->a.buf, 1000, 5);
	sge[0] = (struct ibv_sge){ 5000, 3000, r.mr->lkey };
	sge[1] = (struct ibv_sge){ 4 * MIB + 77, 70000, s.mr->lkey };
	sge[2] = sge_of(&p->a, 0, 1000);
	sge[3] = (struct ibv_sge){ 5 * MIB, 1, r.mr->lkey };
	if (!write_ends(p, sge, 4, IBV_WC_SUCCESS, "WRITE of four pieces") ||
	    !same(p->b.buf, 5000, 3000, 3) || !same(p->b.buf + 3000, 4 * MIB + 77, 70000, 4))
		return false;
	at = 73000;
	REQUIRE(!memcmp(p->b.buf + at, p->a.buf, 1000), "the piece of memory is wrong");
	return same(p->b.buf + at + 1000, 5 * MIB, 1, 3) && region_close(&r) && region_close(&s);
}

/* A READ gets what was on the disk when the READ began, not what an earlier READ has read. */
static bool no_cache(struct pair *p)
{
	struct region r = {};

	if (!region_open(&r, good_disk, POOL) ||
	    !make_pair(p, (struct pair_opts){ .size = BUF }))
		return false;
	for (unsigned int i = 0; i < 50; i++)
		if (!disk_fill(r.fd, 0, 64 * PAGE, i) ||
		    !read_ends(p, 100, r.mr->rkey, 60 * PAGE, IBV_WC_SUCCESS, "READ") ||
		    !same(p->a.buf, 100, 60 * PAGE, i))
			return false;
	return region_close(&r);
}

/* ---- what is refused ---- */

static bool no_region(struct nhcadv_direct_file_attr attr, int want, const char *what)
{
	struct ibv_mr *mr;
	int got;

	errno = 0;
	mr = nhcadv_direct_reg_file(dev.pd, &attr);
	got = errno;
	if (mr) {
		ibv_dereg_mr(mr);
		return fail("%s: the registration succeeded", what);
	}
	REQUIRE(got == want, "%s: %s instead of %s", what, strerror(got), strerror(want));
	return true;
}

static bool bad_files(struct nhcadv_direct_file_attr attr)
{
	struct nhcadv_direct_file_attr a = attr;
	int fds[2], file;
	bool good;

	a.fd = -1;
	if (!no_region(a, EBADF, "no file"))
		return false;
	a.fd = open(good_disk, O_WRONLY);
	if (!no_region(a, EBADF, "a file that is open for writing"))
		return false;
	close(a.fd);
	a.fd = open(good_disk, O_RDONLY);
	a.access |= LW;
	if (!no_region(a, EBADF, "writing to a file that is open for reading"))
		return false;
	close(a.fd);
	a.fd = open(good_disk, O_RDWR | O_APPEND);
	if (!no_region(a, EPERM, "writing to a file that is open for appending"))
		return false;
	close(a.fd);
	a.access = attr.access;
	a.fd = open(good_disk, O_PATH);
	if (!no_region(a, EBADF, "O_PATH"))
		return false;
	close(a.fd);
	a.fd = open("/", O_RDONLY | O_DIRECTORY);
	if (!no_region(a, EINVAL, "a directory"))
		return false;
	close(a.fd);
	REQUIRE(!pipe(fds), "pipe: %m");
	a.fd = fds[0];
	if (!no_region(a, EINVAL, "a pipe"))
		return false;
	close(fds[0]);
	close(fds[1]);
	a.fd = dev.ctx->cmd_fd;
	if (!no_region(a, EINVAL, "the device file of verbs"))
		return false;
	file = memfd_create("direct", 0);
	REQUIRE(file >= 0 && !ftruncate(file, MIB), "memfd: %m");
	a.fd = file;
	a.length = MIB;
	good = no_region(a, EOPNOTSUPP, "a file without direct I/O");
	close(file);
	return good;
}

static bool arguments(struct pair *p)
{
	struct region r = {};
	struct nhcadv_direct_file_attr attr = {}, a;
	struct nhcadv_direct_info info;

	if (!region_open(&r, good_disk, POOL) || !make_pair(p, (struct pair_opts){}))
		return false;
	attr = (struct nhcadv_direct_file_attr){ .pool = r.pool, .fd = r.fd, .length = MIB,
						 .access = RR };
	if (!bad_files(attr))
		return false;
	a = attr;
	a.offset = 100;
	if (!no_region(a, EINVAL, "an offset that is not aligned"))
		return false;
	a = attr;
	a.length = MIB + 1;
	if (!no_region(a, EINVAL, "a length that is not aligned"))
		return false;
	a = attr;
	a.length = 0;
	if (!no_region(a, EINVAL, "no bytes"))
		return false;
	a = attr;
	a.offset = r.size;
	if (!no_region(a, EINVAL, "the end of the disk"))
		return false;
	a = attr;
	a.offset = r.size - 512;
	a.length = 1024;
	if (!no_region(a, EINVAL, "past the end of the disk"))
		return false;
	a = attr;
	a.offset = -512ULL;
	if (!no_region(a, EINVAL, "an offset near 2^64"))
		return false;
	a = attr;
	a.length = -512ULL;
	if (!no_region(a, EINVAL, "a length near 2^64"))
		return false;
	a = attr;
	a.iova = 512;
	if (!no_region(a, EINVAL, "an iova inside a page"))
		return false;
	a = attr;
	a.iova = -4096ULL;
	if (!no_region(a, EINVAL, "an iova that wraps"))
		return false;
	a = attr;
	a.flags = 2;
	if (!no_region(a, EINVAL, "a flag"))
		return false;
	a = attr;
	a.access = RR | RW;
	if (!no_region(a, EINVAL, "a remote right to write without the local one"))
		return false;
	a = attr;
	a.access = RR | LW | IBV_ACCESS_REMOTE_ATOMIC;
	if (!no_region(a, EOPNOTSUPP, "atomics"))
		return false;
	a = attr;
	a.flags = NHCADV_DIRECT_SYNC;
	if (!no_region(a, EINVAL, "SYNC without a right to write"))
		return false;
	a = attr;
	a.access = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_ON_DEMAND;
	if (!no_region(a, EOPNOTSUPP, "on demand"))
		return false;
	REQUIRE(!pool_make(63) && errno == EINVAL, "a pool of 63 blocks: %m");
	REQUIRE(!pool_make(UINT32_MAX) && errno == EINVAL, "a pool of 2^32 - 1 blocks: %m");
	REQUIRE(nhcadv_direct_free_pool(r.pool) == EBUSY, "a pool in use was freed");
	REQUIRE(nhcadv_direct_query(p->a.mr, &info) == EINVAL, "query of another region");
	REQUIRE(ibv_rereg_mr(r.mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, RR),
		"ibv_rereg_mr() succeeded");
	return region_close(&r);
}

/*
 * A region without rights to write refuses WRITEs, atomics and the results of this side's READs.
 * READs beyond its end, or with another key, fail as well.
 */
static bool rights(struct pair *p)
{
	struct region r = {};
	struct ibv_sge sge;
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1 };

	if (!region_open(&r, good_disk, POOL) || !make_pair(p, (struct pair_opts){}))
		return false;
	sge = sge_of(&p->a, 0, 100);
	wr.opcode = IBV_WR_RDMA_WRITE;
	wr.wr.rdma.rkey = r.mr->rkey;
	if (!request_ends(p, &wr, IBV_WC_REM_ACCESS_ERR, "WRITE to a disk"))
		return false;
	wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
	sge.length = 8;
	wr.wr.atomic.remote_addr = 0;
	wr.wr.atomic.rkey = r.mr->rkey;
	if (!request_ends(p, &wr, IBV_WC_REM_ACCESS_ERR, "atomic on a disk"))
		return false;
	if (!read_ends(p, r.size - 99, r.mr->rkey, 100, IBV_WC_REM_ACCESS_ERR, "past the end") ||
	    !read_ends(p, 0, r.mr->rkey + 1, 100, IBV_WC_REM_ACCESS_ERR, "another key"))
		return false;
	/* the result of a READ must not go to a region without local write access */
	sge = (struct ibv_sge){ 0, 100, r.mr->lkey };
	wr.opcode = IBV_WR_RDMA_READ;
	wr.wr.rdma.remote_addr = (uintptr_t)p->b.buf;
	wr.wr.rdma.rkey = p->b.mr->rkey;
	return request_ends(p, &wr, IBV_WC_LOC_PROT_ERR, "READ into a disk") && region_close(&r);
}

/* ---- errors ---- */

/* A bad block fails the operations that need the block, and no other operations. */
static bool bad_block(struct pair *p)
{
	struct nhcadv_direct_info info;
	struct region r = {};
	struct ibv_sge sge;

	if (!region_open(&r, bad_disk, POOL) || !disk_fill(r.fd, 0, BAD_AT, 6) ||
	    !disk_fill(r.fd, BAD_AT + PAGE, MIB, 6) ||
	    !make_pair(p, (struct pair_opts){ .size = BUF }))
		return false;
	for (unsigned int i = 0; i < 34; i++) {
		uint64_t off = BAD_AT - i * PAGE;

		if (!read_ends(p, off, r.mr->rkey, 34 * PAGE, IBV_WC_REM_OP_ERR,
			       "READ of a bad block"))
			return false;
		sge = (struct ibv_sge){ off, 34 * PAGE, r.mr->lkey };
		if (!write_ends(p, &sge, 1, IBV_WC_LOC_QP_OP_ERR, "WRITE of a bad block"))
			return false;
	}
	VERB(nhcadv_direct_query(r.mr, &info));
	REQUIRE(info.errors && info.last_error == EIO, "errors %lu, last %u",
		(unsigned long)info.errors, info.last_error);
	if (!read_ends(p, 0, r.mr->rkey, BAD_AT, IBV_WC_SUCCESS, "READ up to the bad block") ||
	    !same(p->a.buf, 0, BAD_AT, 6) ||
	    !read_ends(p, BAD_AT + PAGE, r.mr->rkey, MIB, IBV_WC_SUCCESS, "READ after it") ||
	    !same(p->a.buf, BAD_AT + PAGE, MIB, 6))
		return false;
	return region_close(&r);
}

/* ---- deregistration ---- */

struct dereg {
	struct ibv_mr *mr;
	unsigned int us;
	int ret;
};

static void *dereg_later(void *arg)
{
	struct dereg *d = arg;

	usleep(d->us);
	d->ret = ibv_dereg_mr(d->mr);
	return NULL;
}

/* If a region is deregistered in the middle of a READ, no byte arrives afterwards. */
static bool dereg_in_read(struct pair *p)
{
	static uint8_t before[BUF];
	struct region r = {};

	if (!region_open(&r, good_disk, POOL) || !disk_fill(r.fd, 0, 8 * MIB, 8) ||
	    !make_pair(p, (struct pair_opts){ .size = BUF }))
		return false;
	for (unsigned int i = 0; i < rounds / 4; i++) {
		struct ibv_sge sge = sge_of(&p->a, 0, BUF);
		struct ibv_send_wr *bad, wr = {
			.opcode = IBV_WR_RDMA_READ, .sg_list = &sge, .num_sge = 1,
			.send_flags = IBV_SEND_SIGNALED, .wr.rdma = { 0, r.mr->rkey },
		};
		struct dereg d = { .mr = r.mr, .us = rnd(3000) };
		struct completion c;
		pthread_t t;

		memset(p->a.buf, 0x5a, BUF);
		VERB(pthread_create(&t, NULL, dereg_later, &d));
		VERB(ibv_post_send(p->a.qp, &wr, &bad));
		pthread_join(t, NULL);
		REQUIRE(!d.ret, "ibv_dereg_mr: %s", strerror(d.ret));
		REQUIRE(wait_any(p->a.cq, &c), "the READ does not end");
		REQUIRE(c.status == IBV_WC_SUCCESS || c.status == IBV_WC_REM_ACCESS_ERR,
			"READ: %s", ibv_wc_status_str(c.status));
		/* packets that were in flight have arrived when the READ has ended */
		memcpy(before, p->a.buf, BUF);
		for (uint32_t j = 0; j < BUF; j++)
			REQUIRE(before[j] == 0x5a || before[j] == byte_at(j, 8),
				"byte %u is neither old nor of the disk", j);
		usleep(1000);
		REQUIRE(!memcmp(before, p->a.buf, BUF), "bytes arrived after the end");
		if (c.status != IBV_WC_SUCCESS && !reconnect(p))
			return false;
		r.mr = reg(r.pool, r.fd, 0, r.size, 0);
		REQUIRE(r.mr, "nhcadv_direct_reg_file: %m");
	}
	return region_close(&r);
}

/* The process may close the file while the region exists. */
static bool closed_file(struct pair *p)
{
	struct region r = {};

	if (!region_open(&r, good_disk, POOL) || !disk_fill(r.fd, 0, MIB, 9) ||
	    !make_pair(p, (struct pair_opts){ .size = BUF }))
		return false;
	close(r.fd);
	r.fd = -1;
	return read_ends(p, 5, r.mr->rkey, 99999, IBV_WC_SUCCESS, "READ of a closed file") &&
	       same(p->a.buf, 5, 99999, 9) && region_close(&r);
}

static bool left_open(struct pair *p)
{
	struct region r = {};

	/* the end of the process frees region and pool */
	return region_open(&r, good_disk, POOL) && make_pair(p, (struct pair_opts){}) &&
	       read_ends(p, 0, r.mr->rkey, 100, IBV_WC_SUCCESS, "READ");
}

static const struct test tests[] = {
	{ "peers read the disk", peer_reads, false },
	{ "own WRITEs and SENDs send the disk", own_sends, false },
	{ "a message gathers from disks and memory", gathers, false },
	{ "an operation gets no byte that was read before it began", no_cache, false },
	{ "bad arguments have their errno", arguments, false },
	{ "a region is for reading, within its range", rights, false },
	{ "a bad block fails the operations that need it", bad_block, false },
	{ "a region ends in the middle of READs", dereg_in_read, false },
	{ "the file may be closed", closed_file, false },
	{ "the process may end with regions", left_open, false },
};

int main(int argc, char **argv)
{
	if (argc < 4)
		return 2;
	good_disk = argv[1];
	bad_disk = argv[2];
	rounds = atoi(argv[3]);
	return run_tests(tests, sizeof(tests) / sizeof(*tests), argc > 4 ? argv[4] : NULL);
}
