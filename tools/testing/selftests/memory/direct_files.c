// SPDX-License-Identifier: GPL-2.0
/*
 * Regions of files whose file system or other users change the file.  Both ends are in this process;
 * verbs_test.h describes the printed results.
 *
 *   direct_files FILE ROUNDS [PART-OF-A-NAME]
 *
 * FILE has at least 4 MiB and is overwritten.
 */
#define _GNU_SOURCE
#include <sys/stat.h>

#include "direct_disk.h"

#define WRITES		8
#define WRITTEN		(2 * MIB)

/* a posts WRITEs of the first WRITTEN bytes of the region. */
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
		/* after the truncation before, the file has holes */
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

static const struct test tests[] = {
	{ "a truncation in the middle of WRITEs is not undone", truncate_blocks, false },
	{ "nor that of a file with holes", truncate_holes, false },
};

int main(int argc, char **argv)
{
	if (argc < 3)
		return 2;
	good_disk = argv[1];
	rounds = atoi(argv[2]);
	return run_tests(tests, sizeof(tests) / sizeof(*tests), argc > 3 ? argv[3] : NULL);
}
