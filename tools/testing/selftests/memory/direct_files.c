// SPDX-License-Identifier: GPL-2.0
/*
 * Regions of files whose file system or other users change the file.  Both ends are in this
 * process; verbs_test.h describes the printed results.
 *
 *   direct_files MODE FILE NUMBER
 *
 *   truncate	FILE is truncated NUMBER times while it is written: without, and then with holes
 *   truncate-blocks	the same, only without holes
 *   full	FILE has room for its first MiB only
 *   works, reads	FILE can be registered and written, or read
 *   swapped	FILE becomes a swap file
 *   not-written, not-read, not-opened (for writing), not-appended
 *		FILE is refused with errno NUMBER
 *
 * Modes that write overwrite FILE, which must have at least 4 MiB.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/stat.h>

#include "direct_disk.h"

#define WRITES		8
#define WRITTEN		(2 * MIB)

/* Post WRITEs of end a to the first WRITTEN bytes of the region. */
static bool post_writes(struct pair *p, struct region *r)
{
	const uint32_t len = WRITTEN / WRITES;
	struct ibv_send_wr *bad, wr[WRITES];
	struct ibv_sge sge[WRITES];

	for (unsigned int i = 0; i < WRITES; i++) {
		sge[i] = sge_of(&p->a, i * len, len);
		wr[i] = (struct ibv_send_wr){
			.wr_id = i, .opcode = IBV_WR_RDMA_WRITE, .sg_list = &sge[i], .num_sge = 1,
			.next = i + 1 < WRITES ? &wr[i + 1] : NULL,
			.send_flags = IBV_SEND_SIGNALED,
			.wr.rdma = { i * len, r->mr->rkey },
		};
	}
	VERB(ibv_post_send(p->a.qp, wr, &bad));
	return true;
}

static bool writes_end(struct pair *p)
{
	struct completion c;

	for (unsigned int i = 0; i < WRITES; i++) {
		REQUIRE(wait_any(p->a.cq, &c), "WRITE %u does not end", i);
		REQUIRE(!c.status, "WRITE %u: %s", i, ibv_wc_status_str(c.status));
	}
	return true;
}

static bool size_is(struct region *r, uint64_t size)
{
	struct stat st;

	REQUIRE(!fstat(r->fd, &st), "fstat: %m");
	REQUIRE((uint64_t)st.st_size == size, "the file has %lu bytes, not %lu",
		(unsigned long)st.st_size, (unsigned long)size);
	return true;
}

/*
 * The file is truncated while WRITEs are on their way to the disk.  When the truncation has
 * returned, the file has its new length, and keeps this length.
 */
static bool truncate_in_write(struct pair *p, bool holes)
{
	struct region r = {};

	if (!region_open_write(&r, good_disk, POOL, 0) ||
	    !make_pair(p, (struct pair_opts){ .size = BUF }))
		return false;
	fill(p->a.buf, WRITTEN, 1);
	for (unsigned int i = 0; i < rounds; i++) {
		uint64_t cut = rnd(WRITTEN);
		int ret;

		if (i % 3)
			cut &= ~(PAGE - 1);
		/* the previous round has truncated the file, so it has holes: fill them */
		if (!holes)
			REQUIRE(pwrite(r.fd, p->a.buf, WRITTEN, 0) == (ssize_t)WRITTEN,
				"pwrite: %m");
		if (!post_writes(p, &r))
			return false;
		usleep(rnd(8000));
		REQUIRE(!ftruncate(r.fd, cut), "ftruncate: %m");
		if (!size_is(&r, cut) || !writes_end(p))
			return false;
		ret = nhcadv_direct_sync(r.mr);
		REQUIRE(!ret || ret == EIO, "nhcadv_direct_sync: %s", strerror(ret));
		if (!size_is(&r, cut))
			return false;
		REQUIRE(!ftruncate(r.fd, r.size), "ftruncate: %m");
	}
	return region_close(&r);
}

static bool truncate_blocks(struct pair *p)
{
	return truncate_in_write(p, false);
}

static bool truncate_holes(struct pair *p)
{
	return truncate_in_write(p, true);
}

/* ---- a disk or file system without room ---- */

/* offset in the region at which there is no room: only its first MiB has blocks */
#define HOLE	(2 * MIB)
/* bytes of a WRITE for which a full file system has no room, though it may have some blocks left */
#define MUCH	(2 * MIB - PAGE)

static bool wr_ends(struct pair *p, struct region *r, uint64_t off, uint32_t len,
		    enum ibv_wc_status want, const char *what)
{
	struct ibv_sge sge = sge_of(&p->a, 0, len);
	struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_WRITE, .sg_list = &sge, .num_sge = 1,
				  .wr.rdma = { off, r->mr->rkey } };

	return request_ends(p, &wr, want, what);
}

static bool begin(struct pair *p, struct region *r, unsigned int flags)
{
	return region_open_write(r, good_disk, POOL, flags) &&
	       make_pair(p, (struct pair_opts){ .size = BUF });
}

/* With SYNC, a WRITE that needs new blocks fails (ENOSPC); WRITEs to existing blocks succeed. */
static bool full_sync(struct pair *p)
{
	struct nhcadv_direct_info info;
	struct region r = {};

	if (!begin(p, &r, NHCADV_DIRECT_SYNC))
		return false;
	fill(p->a.buf, MUCH, 5);
	if (!wr_ends(p, &r, 0, MIB, IBV_WC_SUCCESS, "WRITE where there is room") ||
	    !wr_ends(p, &r, HOLE, MUCH, IBV_WC_REM_OP_ERR, "WRITE without room"))
		return false;
	VERB(nhcadv_direct_query(r.mr, &info));
	REQUIRE(info.errors && info.last_error == ENOSPC, "the error is %s",
		strerror(info.last_error));
	REQUIRE(!info.lost && !info.dirty, "%lu blocks are lost", (unsigned long)info.lost);
	return wr_ends(p, &r, 100, 5000, IBV_WC_SUCCESS, "WRITE where there is room") &&
	       region_close(&r);
}

/* Without SYNC, blocks for which there is no room are lost, and the next flush returns an error. */
static bool full_late(struct pair *p)
{
	struct nhcadv_direct_info info;
	struct region r = {};
	int ret;

	if (!begin(p, &r, 0))
		return false;
	fill(p->a.buf, MUCH, 6);
	if (!wr_ends(p, &r, HOLE, MUCH, IBV_WC_SUCCESS, "WRITE without room"))
		return false;
	ret = nhcadv_direct_sync(r.mr);
	REQUIRE(ret == ENOSPC, "nhcadv_direct_sync: %s", strerror(ret));
	VERB(nhcadv_direct_query(r.mr, &info));
	REQUIRE(info.lost && info.last_error == ENOSPC && !info.dirty, "%lu blocks are lost: %s",
		(unsigned long)info.lost, strerror(info.last_error));
	if (!wr_ends(p, &r, 0, MIB, IBV_WC_SUCCESS, "WRITE where there is room"))
		return false;
	VERB(nhcadv_direct_sync(r.mr));
	return region_close(&r);
}

/* ---- files that can be registered, or not ---- */

/* The bytes of WRITEs are in the file, and READs return them. */
static bool works(struct pair *p)
{
	static uint8_t found[MIB] __attribute__((aligned(4096)));
	struct region r = {};

	if (!begin(p, &r, NHCADV_DIRECT_SYNC))
		return false;
	fill(p->a.buf, MIB, 8);
	if (!wr_ends(p, &r, HOLE, MIB, IBV_WC_SUCCESS, "WRITE"))
		return false;
	REQUIRE(pread(r.fd, found, MIB, HOLE) == (ssize_t)MIB, "pread: %m");
	REQUIRE(filled(found, MIB, 8), "the file has other bytes");
	memset(p->a.buf, 0, MIB);
	if (!read_ends(p, HOLE, r.mr->rkey, MIB, IBV_WC_SUCCESS, "READ"))
		return false;
	REQUIRE(filled(p->a.buf, MIB, 8), "the READ gets other bytes");
	return region_close(&r);
}

static bool reads(struct pair *p)
{
	struct region r = {};

	return region_open(&r, good_disk, POOL) &&
	       make_pair(p, (struct pair_opts){ .size = BUF }) &&
	       read_ends(p, 100, r.mr->rkey, MIB, IBV_WC_SUCCESS, "READ") && region_close(&r);
}

static int refused_with, open_flags, refused_access;

static bool refused(struct pair *p)
{
	struct nhcadv_direct_file_attr attr = { .length = PAGE, .access = refused_access };
	struct ibv_mr *mr;
	int got;

	(void)p;
	attr.pool = pool_make(POOL);
	attr.fd = open(good_disk, open_flags);
	REQUIRE(attr.pool && attr.fd >= 0, "%s: %m", good_disk);
	errno = 0;
	mr = nhcadv_direct_reg_file(dev.pd, &attr);
	got = errno;
	if (mr)
		ibv_dereg_mr(mr);
	VERB(nhcadv_direct_free_pool(attr.pool));
	close(attr.fd);
	REQUIRE(!mr && got == refused_with, "errno %d (%s), not %d", got, strerror(got),
		refused_with);
	return true;
}

/* The file becomes a swap file: WRITEs fail until swapoff. */
static bool swapped(struct pair *p)
{
	struct nhcadv_direct_info info;
	struct region r = {};
	char command[300];

	if (!begin(p, &r, NHCADV_DIRECT_SYNC))
		return false;
	snprintf(command, sizeof(command), "swapon %s", good_disk);
	REQUIRE(!system(command), "%s failed", command);
	if (!wr_ends(p, &r, HOLE, 10000, IBV_WC_REM_OP_ERR, "WRITE to a swap file"))
		return false;
	VERB(nhcadv_direct_query(r.mr, &info));
	REQUIRE(info.last_error == ETXTBSY, "the error is %s", strerror(info.last_error));
	snprintf(command, sizeof(command), "swapoff %s", good_disk);
	REQUIRE(!system(command), "%s failed", command);
	return wr_ends(p, &r, HOLE, 10000, IBV_WC_SUCCESS, "WRITE after swapoff") &&
	       region_close(&r);
}

static const struct test truncate_tests[] = {
	{ "a truncation in the middle of WRITEs is not undone", truncate_blocks, false },
	{ "nor that of a file with holes", truncate_holes, false },
};

static const struct test full_tests[] = {
	{ "a WRITE without room fails", full_sync, false },
	{ "a block without room is lost, and the flush says so", full_late, false },
};

static const struct test works_tests[] = { { "it is written and read", works, false } };
static const struct test reads_tests[] = { { "it is read", reads, false } };
static const struct test refused_tests[] = { { "it is refused with its errno", refused, false } };
static const struct test swapped_tests[] = { { "a swap file is not written", swapped, false } };

static const struct mode {
	const char *name;
	const struct test *tests;
	size_t count;
	int flags, access;
} modes[] = {
	{ "truncate", truncate_tests, 2, 0, 0 },
	{ "truncate-blocks", truncate_tests, 1, 0, 0 },
	{ "full", full_tests, 2, 0, 0 },
	{ "works", works_tests, 1, 0, 0 },
	{ "reads", reads_tests, 1, 0, 0 },
	{ "swapped", swapped_tests, 1, 0, 0 },
	{ "not-written", refused_tests, 1, O_RDWR, RR | LW | RW },
	{ "not-read", refused_tests, 1, O_RDONLY, RR },
	{ "not-opened", refused_tests, 1, O_RDONLY, RR | LW | RW },
	{ "not-appended", refused_tests, 1, O_RDWR | O_APPEND, RR | LW | RW },
};

int main(int argc, char **argv)
{
	if (argc < 4)
		return 2;
	good_disk = argv[2];
	rounds = refused_with = atoi(argv[3]);
	for (size_t i = 0; i < sizeof(modes) / sizeof(*modes); i++)
		if (!strcmp(argv[1], modes[i].name)) {
			open_flags = modes[i].flags;
			refused_access = modes[i].access;
			return run_tests(modes[i].tests, modes[i].count, NULL);
		}
	return 2;
}
