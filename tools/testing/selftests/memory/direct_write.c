// SPDX-License-Identifier: GPL-2.0
/*
 * Writes to regions of a disk (nhcadv_direct_reg_file()): content, order, what is acknowledged,
 * errors, deregistration.  Both ends are in this process; verbs_test.h describes the printed
 * results.
 *
 *   direct_write DISK BAD-DISK ROUNDS [PART-OF-A-NAME]	DISK may be a file
 *   direct_write DISK BAD-DISK 0 [sync]	write until the process is killed or a WRITE fails
 *
 * The program overwrites DISK and BAD-DISK.  BAD-DISK cannot write the 4 KiB at 1 MiB.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sys/stat.h>

#include "direct_disk.h"

#define AREA		(8 * MIB)
#define SYNC		NHCADV_DIRECT_SYNC

/* what the first AREA bytes of the disk should be */
static uint8_t shadow[AREA], found[AREA] __attribute__((aligned(4096)));

static void make_data(uint8_t *p, uint32_t len)
{
	static uint32_t seed;

	fill(p, len, ++seed);
}

/* Compare the disk with @shadow. */
static bool disk_has(int fd, uint64_t from, uint64_t len)
{
	uint64_t first = from & ~(PAGE - 1), end = (from + len + PAGE - 1) & ~(PAGE - 1);

	REQUIRE(pread(fd, found + first, end - first, first) == (ssize_t)(end - first),
		"pread at %lu: %m", (unsigned long)first);
	for (uint64_t i = from; i < from + len; i++)
		REQUIRE(found[i] == shadow[i], "byte %lu of the disk is wrong (%02x, not %02x)",
			(unsigned long)i, found[i], shadow[i]);
	return true;
}

static bool disk_clear(int fd)
{
	memset(shadow, 0, AREA);
	REQUIRE(pwrite(fd, memset(found, 0, AREA), AREA, 0) == AREA, "pwrite: %m");
	return true;
}

/* End a WRITEs to the region. The WRITE must complete with @want. */
static bool peer_writes(struct pair *p, struct region *r, uint64_t off, uint32_t len,
			enum ibv_wc_status want, const char *what)
{
	struct ibv_sge sge = sge_of(&p->a, 0, len);
	struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_WRITE, .sg_list = &sge, .num_sge = 1,
				  .wr.rdma = { off, r->mr->rkey } };

	return request_ends(p, &wr, want, what);
}

/* End a READs from end b's memory into the region. */
static bool own_read(struct pair *p, struct ibv_sge *sge, int num, enum ibv_wc_status want,
		     const char *what)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_READ, .sg_list = sge, .num_sge = num,
				  .wr.rdma = { (uintptr_t)p->b.buf, p->b.mr->rkey } };

	return request_ends(p, &wr, want, what);
}

static bool begin(struct pair *p, struct region *r, unsigned int flags)
{
	return region_open_write(r, good_disk, POOL, flags) && disk_clear(r->fd) &&
	       make_pair(p, (struct pair_opts){ .size = BUF, .sge = 4 });
}

/* SYNC: when a WRITE has completed, its bytes are on the disk, and no other bytes have changed. */
static bool sync_writes(struct pair *p)
{
	struct nhcadv_direct_info info;
	struct region r = {};

	if (!begin(p, &r, SYNC))
		return false;
	for (unsigned int i = 0; i < rounds / 2; i++) {
		uint32_t len = some_len(MIB);
		uint64_t off = rnd(AREA - len);

		make_data(p->a.buf, len);
		memcpy(shadow + off, p->a.buf, len);
		if (!peer_writes(p, &r, off, len, IBV_WC_SUCCESS, "WRITE") ||
		    !disk_has(r.fd, off, len))
			return false;
	}
	VERB(nhcadv_direct_query(r.mr, &info));
	REQUIRE(info.writes && info.write_bytes && info.edges && !info.errors && !info.dirty,
		"wrong counters");
	REQUIRE(info.blocks_most <= POOL, "%u blocks were in use", info.blocks_most);
	return disk_has(r.fd, 0, AREA) && region_close(&r);
}

/*
 * Without SYNC: a READ after a WRITE returns the bytes of the WRITE, and the disk has all bytes at
 * the end.
 */
static bool late_writes(struct pair *p)
{
	struct region r = {};
	int fd;

	if (!begin(p, &r, 0))
		return false;
	for (unsigned int i = 0; i < rounds / 2; i++) {
		uint32_t len = some_len(MIB);
		uint64_t off = rnd(AREA - len);

		make_data(p->a.buf, len);
		memcpy(shadow + off, p->a.buf, len);
		if (!peer_writes(p, &r, off, len, IBV_WC_SUCCESS, "WRITE"))
			return false;
		if (i % 2)
			continue;
		memset(p->a.buf, 0, len);
		if (!read_ends(p, off, r.mr->rkey, len, IBV_WC_SUCCESS, "READ after WRITE"))
			return false;
		REQUIRE(!memcmp(p->a.buf, shadow + off, len), "a READ does not see the WRITE");
	}
	fd = dup(r.fd);
	if (!region_close(&r) || !disk_has(fd, 0, AREA))
		return false;
	close(fd);
	return true;
}

/* READs and receives of this process write bytes of a peer's memory to the disk. */
static bool sinks(struct pair *p, unsigned int flags)
{
	struct region r = {};
	struct completion c;

	if (!begin(p, &r, flags))
		return false;
	for (unsigned int i = 0; i < rounds / 5; i++) {
		uint32_t len = some_len(MIB);
		uint64_t off = rnd(AREA - len);
		struct ibv_sge sge = { .addr = off, .length = len, .lkey = r.mr->lkey };
		struct ibv_recv_wr *bad, recv = { .wr_id = 9, .sg_list = &sge, .num_sge = 1 };

		if (i % 2) {
			make_data(p->b.buf, len);
			memcpy(shadow + off, p->b.buf, len);
			if (!own_read(p, &sge, 1, IBV_WC_SUCCESS, "READ into the disk"))
				return false;
		} else {
			make_data(p->a.buf, len);
			memcpy(shadow + off, p->a.buf, len);
			VERB(ibv_post_recv(p->b.qp, &recv, &bad));
			if (!post_send(p, 5, 0, len, IBV_SEND_SIGNALED) ||
			    !wait_for(p->b.cq, 9, IBV_WC_RECV, &c) ||
			    !wait_for(p->a.cq, 5, IBV_WC_SEND, &c))
				return false;
			REQUIRE(c.byte_len == len || c.opcode == IBV_WC_SEND, "wrong length");
		}
		if (flags && !disk_has(r.fd, off, len))
			return false;
	}
	VERB(ibv_dereg_mr(r.mr));
	r.mr = NULL;
	return disk_has(r.fd, 0, AREA) && region_close(&r);
}

static bool sync_sinks(struct pair *p)
{
	return sinks(p, SYNC);
}

static bool late_sinks(struct pair *p)
{
	return sinks(p, 0);
}

/* One READ scatters to several places, some of them in one block, and to memory. */
static bool scatters(struct pair *p)
{
	struct region r = {};
	struct ibv_sge sge[4];

	if (!begin(p, &r, SYNC))
		return false;
	make_data(p->b.buf, 100000);
	sge[0] = (struct ibv_sge){ 100, 5000, r.mr->lkey };
	sge[1] = (struct ibv_sge){ 50, 20, r.mr->lkey };
	sge[2] = sge_of(&p->a, 0, 1000);
	sge[3] = (struct ibv_sge){ 80, 30, r.mr->lkey };
	memcpy(shadow + 100, p->b.buf, 5000);
	memcpy(shadow + 50, p->b.buf + 5000, 20);
	memcpy(shadow + 80, p->b.buf + 6020, 30);
	if (!own_read(p, sge, 4, IBV_WC_SUCCESS, "READ to four places"))
		return false;
	REQUIRE(!memcmp(p->a.buf, p->b.buf + 5020, 1000), "the piece of memory is wrong");
	return disk_has(r.fd, 0, AREA) && region_close(&r);
}

/* ---- several queue pairs ---- */

#define WRITERS		4
#define STRIPE		900

/* One of the writers, which writes every WRITERS-th stripe of STRIPE bytes */
struct writer {
	struct pair pair;
	struct region *r;
	unsigned int which;
	unsigned int rounds;
	uint64_t random;
	bool ok;
	char why[256];
};

static void *writer_run(void *arg)
{
	struct writer *w = arg;
	struct pair *p = &w->pair;

	w->ok = true;
	for (unsigned int i = 0; w->ok && i < w->rounds; i++) {
		struct ibv_send_wr *bad, wr[8] = {};
		struct ibv_sge sge[8];
		struct completion c;

		for (unsigned int k = 0; k < 8; k++) {
			uint64_t at;

			w->random = w->random * 6364136223846793005ULL + 1442695040888963407ULL;
			/* use few blocks, so that the writers write to parts of the same blocks */
			at = ((w->random >> 33) % 40 * WRITERS + w->which) * STRIPE;
			sge[k] = sge_of(&p->a, k * STRIPE, STRIPE);
			memset(p->a.buf + k * STRIPE, w->random >> 40, STRIPE);
			wr[k] = (struct ibv_send_wr){
				.wr_id = k, .opcode = IBV_WR_RDMA_WRITE, .sg_list = &sge[k],
				.num_sge = 1, .next = k < 7 ? &wr[k + 1] : NULL,
				.send_flags = k < 7 ? 0 : IBV_SEND_SIGNALED,
				.wr.rdma = { at, w->r->mr->rkey },
			};
			memcpy(shadow + at, p->a.buf + k * STRIPE, STRIPE);
		}
		w->ok = !ibv_post_send(p->a.qp, wr, &bad) && wait_any(p->a.cq, &c) &&
			c.status == IBV_WC_SUCCESS;
		if (!w->ok)
			snprintf(w->why, sizeof(w->why), "a WRITE of writer %u failed", w->which);
	}
	return NULL;
}

/* Queue pairs that write parts of the same blocks do not lose each other's bytes. */
static bool writers(struct pair *p, unsigned int flags)
{
	static struct writer w[WRITERS];
	struct region r = {};
	pthread_t t[WRITERS];
	bool ok = true;
	int fd;

	if (!region_open_write(&r, good_disk, POOL, flags) || !disk_clear(r.fd))
		return false;
	for (unsigned int i = 0; i < WRITERS; i++) {
		w[i] = (struct writer){ .r = &r, .which = i, .rounds = rounds / 8,
					.random = i * 77 + 1 };
		if (!make_pair(&w[i].pair, (struct pair_opts){ .size = 8 * STRIPE, .wr = 16 }))
			return false;
	}
	for (unsigned int i = 0; i < WRITERS; i++)
		VERB(pthread_create(&t[i], NULL, writer_run, &w[i]));
	for (unsigned int i = 0; i < WRITERS; i++)
		pthread_join(t[i], NULL);
	for (unsigned int i = 0; i < WRITERS; i++) {
		if (!w[i].ok)
			ok = fail("%s", w[i].why);
		if (!pair_free(&w[i].pair))
			ok = false;
	}
	ok = ok && make_pair(p, (struct pair_opts){ .size = MIB }) &&
	     read_ends(p, 0, r.mr->rkey, 40 * WRITERS * STRIPE, IBV_WC_SUCCESS, "READ");
	if (ok && memcmp(p->a.buf, shadow, 40 * WRITERS * STRIPE))
		ok = fail("a READ does not see all WRITEs");
	fd = dup(r.fd);
	ok = region_close(&r) && ok && disk_has(fd, 0, MIB);
	close(fd);
	return ok;
}

static bool sync_writers(struct pair *p)
{
	return writers(p, SYNC);
}

static bool late_writers(struct pair *p)
{
	return writers(p, 0);
}

/* ---- rights and errors ---- */

static bool rights(struct pair *p)
{
	struct region r = {}, s = {};
	struct nhcadv_direct_file_attr attr;
	struct ibv_sge sge;
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1 };

	if (!begin(p, &r, 0) || !region_open(&s, good_disk, POOL))
		return false;
	/* a region that only this side may write */
	VERB(ibv_dereg_mr(s.mr));
	attr = (struct nhcadv_direct_file_attr){ .pool = s.pool, .fd = r.fd, .length = MIB,
						 .access = RR | LW };
	s.mr = nhcadv_direct_reg_file(dev.pd, &attr);
	REQUIRE(s.mr, "nhcadv_direct_reg_file: %m");
	make_data(p->a.buf, 100);
	if (!peer_writes(p, &s, 0, 100, IBV_WC_REM_ACCESS_ERR, "WRITE without the right") ||
	    !peer_writes(p, &r, r.size - 50, 100, IBV_WC_REM_ACCESS_ERR, "WRITE past the end"))
		return false;
	make_data(p->b.buf, 100);
	memcpy(shadow + 300, p->b.buf, 100);
	sge = (struct ibv_sge){ 300, 100, s.mr->lkey };
	if (!own_read(p, &sge, 1, IBV_WC_SUCCESS, "READ with the local right"))
		return false;
	/* atomics, and their results, do not go to disks */
	sge = sge_of(&p->a, 0, 8);
	wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
	wr.wr.atomic.remote_addr = 0;
	wr.wr.atomic.rkey = r.mr->rkey;
	if (!request_ends(p, &wr, IBV_WC_REM_ACCESS_ERR, "atomic on a disk"))
		return false;
	sge = (struct ibv_sge){ 0, 8, r.mr->lkey };
	wr.wr.atomic.remote_addr = (uintptr_t)p->b.buf;
	wr.wr.atomic.rkey = p->b.mr->rkey;
	if (!request_ends(p, &wr, IBV_WC_LOC_PROT_ERR, "result of an atomic to a disk"))
		return false;
	VERB(ibv_dereg_mr(s.mr));
	s.mr = NULL;
	return disk_has(r.fd, 0, AREA) && region_close(&r) && region_close(&s);
}

/* A bad block fails the SYNC operations that need the block, and no other operations. */
static bool bad_block(struct pair *p)
{
	struct nhcadv_direct_info info;
	struct region r = {};
	uint64_t errors = 0;

	if (!region_open_write(&r, bad_disk, POOL, SYNC) ||
	    !make_pair(p, (struct pair_opts){ .size = BUF }))
		return false;
	for (unsigned int i = 0; i < 34; i++) {
		make_data(p->a.buf, 34 * PAGE);
		if (!peer_writes(p, &r, BAD_AT - i * PAGE, 34 * PAGE, IBV_WC_REM_OP_ERR,
				 "WRITE of a bad block"))
			return false;
		VERB(nhcadv_direct_query(r.mr, &info));
		REQUIRE(info.errors > errors && info.last_error == EIO, "no error was counted");
		REQUIRE(info.last_error_offset == BAD_AT, "the error is at %lu",
			(unsigned long)info.last_error_offset);
		errors = info.errors;
	}
	/* a WRITE of a part of a sector first reads the sector, which fails */
	if (!peer_writes(p, &r, BAD_AT + 10, 100, IBV_WC_REM_OP_ERR, "WRITE inside a bad block"))
		return false;
	make_data(p->a.buf, BAD_AT);
	memcpy(shadow, p->a.buf, BAD_AT);
	if (!peer_writes(p, &r, 0, BAD_AT, IBV_WC_SUCCESS, "WRITE up to the bad block") ||
	    !disk_has(r.fd, 0, BAD_AT) ||
	    !peer_writes(p, &r, BAD_AT + PAGE, MIB, IBV_WC_SUCCESS, "WRITE after it"))
		return false;
	VERB(nhcadv_direct_query(r.mr, &info));
	REQUIRE(!info.lost && !info.dirty && info.blocks_used <= info.blocks, "wrong counters");
	return region_close(&r);
}

/* Without SYNC a block that cannot be written is lost, and counted. */
static bool lost_block(struct pair *p)
{
	struct nhcadv_direct_info info;
	struct region r = {};

	if (!region_open_write(&r, bad_disk, POOL, 0) ||
	    !make_pair(p, (struct pair_opts){ .size = BUF }))
		return false;
	make_data(p->a.buf, 32 * PAGE);
	memcpy(shadow + BAD_AT - 16 * PAGE, p->a.buf, 32 * PAGE);
	if (!peer_writes(p, &r, BAD_AT - 16 * PAGE, 32 * PAGE, IBV_WC_SUCCESS, "WRITE"))
		return false;
	for (unsigned int i = 0; i < 1000; i++) {
		VERB(nhcadv_direct_query(r.mr, &info));
		if (!info.dirty)
			break;
		usleep(1000);
	}
	REQUIRE(info.lost == 1 && info.last_error == EIO && info.last_error_offset == BAD_AT,
		"%lu blocks are lost", (unsigned long)info.lost);
	/* all other blocks of the WRITE were written, also those of the same I/O request */
	return disk_has(r.fd, BAD_AT - 16 * PAGE, 16 * PAGE) &&
	       disk_has(r.fd, BAD_AT + PAGE, 15 * PAGE) && region_close(&r);
}

/* ---- flushes ---- */

/* Allow end a to send FLUSHes to end b. */
static bool allow_flush(struct pair *p)
{
	struct ibv_qp_attr attr = { .qp_access_flags = RR | LW | RW | FLUSHES };

	VERB(ibv_modify_qp(p->b.qp, &attr, IBV_QP_ACCESS_FLAGS));
	return true;
}

static bool flush(struct pair *p, uint32_t rkey, uint64_t at, size_t len, uint8_t type,
		  enum ibv_wc_status want, const char *what)
{
	struct ibv_qp_ex *x = p->a.qpx;
	struct completion c;

	ibv_wr_start(x);
	x->wr_id = 3;
	x->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_flush(x, rkey, at, len, type, IBV_FLUSH_RANGE);
	VERB(ibv_wr_complete(x));
	REQUIRE(wait_any(p->a.cq, &c), "%s: no completion", what);
	REQUIRE(c.status == want, "%s: %s", what, ibv_wc_status_str(c.status));
	return want == IBV_WC_SUCCESS || (reconnect(p) && allow_flush(p));
}

static bool begin_flush(struct pair *p, struct region *r, const char *disk)
{
	return region_open_write(r, disk, POOL, 0) &&
	       make_pair(p, (struct pair_opts){ .size = BUF,
						.more_ops = IBV_QP_EX_WITH_FLUSH }) &&
	       allow_flush(p);
}

/* When a FLUSH has completed, the bytes of earlier WRITEs are on the disk. */
static bool flushes(struct pair *p)
{
	struct nhcadv_direct_info info;
	struct ibv_mr *mr;
	struct region r = {};

	if (!begin_flush(p, &r, good_disk) || !disk_clear(r.fd))
		return false;
	for (unsigned int i = 0; i < rounds / 4; i++) {
		uint32_t len = some_len(MIB);
		uint64_t off = rnd(AREA - len);

		make_data(p->a.buf, len);
		memcpy(shadow + off, p->a.buf, len);
		if (!peer_writes(p, &r, off, len, IBV_WC_SUCCESS, "WRITE"))
			return false;
		if (i % 4 == 3) {
			VERB(nhcadv_direct_sync(r.mr));
		} else if (!flush(p, r.mr->rkey, off, len, i % 2 ? IBV_FLUSH_PERSISTENT :
				  IBV_FLUSH_GLOBAL, IBV_WC_SUCCESS, "FLUSH")) {
			return false;
		}
		if (!disk_has(r.fd, off, len))
			return false;
	}
	VERB(nhcadv_direct_query(r.mr, &info));
	REQUIRE(info.flushes >= rounds / 4 && !info.dirty, "%lu flushes, %u blocks are dirty",
		(unsigned long)info.flushes, info.dirty);
	REQUIRE(nhcadv_direct_sync(p->a.mr) == EINVAL, "sync of another region");
	/* a region without the right to flush */
	mr = reg(r.pool, r.fd, 0, MIB, 0);
	REQUIRE(mr, "nhcadv_direct_reg_file: %m");
	if (!flush(p, mr->rkey, 0, 8, IBV_FLUSH_PERSISTENT, IBV_WC_REM_ACCESS_ERR,
		   "FLUSH without the right"))
		return false;
	VERB(ibv_dereg_mr(mr));
	return region_close(&r);
}

/* A block that is lost fails the next flush, and only this one. */
static bool flush_errors(struct pair *p)
{
	struct region r = {};
	int ret;

	if (!begin_flush(p, &r, bad_disk))
		return false;
	make_data(p->a.buf, 100000);
	if (!peer_writes(p, &r, BAD_AT - 50000, 100000, IBV_WC_SUCCESS, "WRITE") ||
	    !flush(p, r.mr->rkey, 0, 8, IBV_FLUSH_GLOBAL, IBV_WC_REM_OP_ERR,
		   "FLUSH after a lost block") ||
	    !flush(p, r.mr->rkey, 0, 8, IBV_FLUSH_PERSISTENT, IBV_WC_SUCCESS, "the next FLUSH") ||
	    !peer_writes(p, &r, BAD_AT - 50000, 100000, IBV_WC_SUCCESS, "WRITE"))
		return false;
	ret = nhcadv_direct_sync(r.mr);
	REQUIRE(ret == EIO, "sync after a lost block: %s", strerror(ret));
	VERB(nhcadv_direct_sync(r.mr));
	return region_close(&r);
}

/* WRITEs beyond the end of a truncated file fail, and do not make the file longer. */
static bool shorter_file(struct pair *p)
{
	struct region r = {};
	struct stat st;
	uint64_t size;

	if (!begin(p, &r, SYNC))
		return false;
	size = r.size;
	REQUIRE(!ftruncate(r.fd, AREA / 2), "ftruncate: %m");
	make_data(p->a.buf, MIB);
	if (!peer_writes(p, &r, AREA / 2, PAGE, IBV_WC_REM_OP_ERR, "WRITE after the end") ||
	    !peer_writes(p, &r, AREA / 2 + 100, 100, IBV_WC_REM_OP_ERR, "part after the end") ||
	    !peer_writes(p, &r, AREA / 2 - PAGE, 2 * PAGE, IBV_WC_REM_OP_ERR, "WRITE at the end"))
		return false;
	REQUIRE(!fstat(r.fd, &st) && st.st_size == AREA / 2, "the file has %lu bytes",
		(unsigned long)st.st_size);
	memcpy(shadow + 100, p->a.buf, MIB);
	if (!peer_writes(p, &r, 100, MIB, IBV_WC_SUCCESS, "WRITE before the end") ||
	    !disk_has(r.fd, 0, AREA / 2 - PAGE))
		return false;
	REQUIRE(!ftruncate(r.fd, size), "ftruncate: %m");
	return region_close(&r);
}

/* ---- the end of a region or window ---- */

struct closer {
	struct region *r;
	unsigned int us;
	int ret;
};

static void *dereg_later(void *arg)
{
	struct closer *d = arg;

	usleep(d->us);
	d->ret = ibv_dereg_mr(d->r->mr);
	return NULL;
}

/*
 * A region is deregistered in the middle of WRITEs.  Afterwards no byte reaches the disk.  The disk
 * has all bytes that were acknowledged, and each other byte is new or old.
 */
static bool dereg_in_write(struct pair *p)
{
	struct region r = {};

	if (!begin(p, &r, 0))
		return false;
	for (unsigned int i = 0; i < rounds / 8; i++) {
		uint32_t len = 100000 + rnd(500000), acked = 0;
		uint64_t off = rnd(PAGE);
		struct ibv_send_wr *bad, wr[8] = {};
		struct ibv_sge sge[8];
		struct closer d = { .r = &r, .us = rnd(4000) };
		struct completion c;
		pthread_t t;

		make_data(p->a.buf, len);
		for (unsigned int k = 0; k < 8; k++) {
			sge[k] = sge_of(&p->a, k * (len / 8), len / 8);
			wr[k] = (struct ibv_send_wr){
				.wr_id = k, .opcode = IBV_WR_RDMA_WRITE, .sg_list = &sge[k],
				.num_sge = 1, .next = k < 7 ? &wr[k + 1] : NULL,
				.send_flags = IBV_SEND_SIGNALED,
				.wr.rdma = { off + k * (len / 8), r.mr->rkey },
			};
		}
		VERB(pthread_create(&t, NULL, dereg_later, &d));
		VERB(ibv_post_send(p->a.qp, wr, &bad));
		pthread_join(t, NULL);
		REQUIRE(!d.ret, "ibv_dereg_mr: %s", strerror(d.ret));
		REQUIRE(pread(r.fd, found, MIB, 0) == (ssize_t)MIB, "pread: %m");
		for (unsigned int k = 0; k < 8; k++) {
			REQUIRE(wait_any(p->a.cq, &c), "WRITE %u does not end", k);
			REQUIRE(c.status == IBV_WC_SUCCESS || c.status == IBV_WC_REM_ACCESS_ERR ||
				c.status == IBV_WC_WR_FLUSH_ERR, "WRITE: %s",
				ibv_wc_status_str(c.status));
			if (c.status == IBV_WC_SUCCESS && acked == k)
				acked = k + 1;
		}
		for (uint32_t j = 0; j < len / 8 * 8; j++) {
			bool is_new = found[off + j] == p->a.buf[j];

			REQUIRE(is_new || (j / (len / 8) >= acked &&
					   found[off + j] == shadow[off + j]),
				"byte %u of %u is wrong after %u acknowledged WRITEs", j, len,
				acked);
		}
		memcpy(shadow, found, MIB);
		usleep(2000);
		if (!disk_has(r.fd, 0, MIB))
			return false;
		if (acked < 8 && !reconnect(p))
			return false;
		r.mr = reg_write(&r, 0);
		REQUIRE(r.mr, "nhcadv_direct_reg_file: %m");
	}
	return region_close(&r);
}

/* A window of the region is closed: afterwards no byte goes through it. */
static bool window(struct pair *p)
{
	struct region r = {};
	struct ibv_mw_bind_info to;
	struct ibv_mw *mw;

	if (!region_open_write(&r, good_disk, POOL, SYNC) || !disk_clear(r.fd) ||
	    !make_pair(p, (struct pair_opts){ .size = BUF, .more_ops = IBV_QP_EX_WITH_BIND_MW }))
		return false;
	mw = ibv_alloc_mw(dev.pd, IBV_MW_TYPE_1);
	REQUIRE(mw, "ibv_alloc_mw: %m");
	for (unsigned int i = 0; i < rounds / 16; i++) {
		struct ibv_mw_bind bind = { .wr_id = 77, .send_flags = IBV_SEND_SIGNALED };
		uint32_t len = 300000, rkey;
		struct ibv_sge sge = sge_of(&p->a, 0, len);
		struct ibv_send_wr *bad, wr = {
			.wr_id = 1, .opcode = IBV_WR_RDMA_WRITE, .sg_list = &sge, .num_sge = 1,
			.send_flags = IBV_SEND_SIGNALED,
		};
		struct completion c;

		to = (struct ibv_mw_bind_info){ r.mr, 10, len, RW };
		bind.bind_info = to;
		VERB(ibv_bind_mw(p->b.qp, mw, &bind));
		REQUIRE(wait_any(p->b.cq, &c) && c.status == IBV_WC_SUCCESS, "bind failed");
		rkey = mw->rkey;
		make_data(p->a.buf, len);
		wr.wr.rdma.remote_addr = 10;
		wr.wr.rdma.rkey = rkey;
		VERB(ibv_post_send(p->a.qp, &wr, &bad));
		usleep(rnd(3000));
		/* a bind of no bytes closes the key */
		bind.bind_info.length = 0;
		VERB(ibv_bind_mw(p->b.qp, mw, &bind));
		REQUIRE(wait_any(p->b.cq, &c) && (c.status == IBV_WC_SUCCESS ||
						  c.status == IBV_WC_WR_FLUSH_ERR),
			"unbind: %s", ibv_wc_status_str(c.status));
		REQUIRE(wait_any(p->a.cq, &c), "the WRITE does not end");
		REQUIRE(c.status == IBV_WC_SUCCESS || c.status == IBV_WC_REM_ACCESS_ERR,
			"WRITE: %s", ibv_wc_status_str(c.status));
		/* after the deregistration no write to the disk is in progress */
		VERB(ibv_dealloc_mw(mw));
		VERB(ibv_dereg_mr(r.mr));
		REQUIRE(pread(r.fd, found, MIB, 0) == (ssize_t)MIB, "pread: %m");
		for (uint32_t j = 0; j < len; j++) {
			bool is_new = found[10 + j] == p->a.buf[j];

			REQUIRE(is_new || (c.status && found[10 + j] == shadow[10 + j]),
				"byte %u is neither old nor new", j);
		}
		memcpy(shadow, found, MIB);
		usleep(1000);
		if (!disk_has(r.fd, 0, MIB) || (c.status && !reconnect(p)))
			return false;
		r.mr = reg_write(&r, SYNC);
		mw = ibv_alloc_mw(dev.pd, IBV_MW_TYPE_1);
		REQUIRE(r.mr && mw, "region or window: %m");
	}
	VERB(ibv_dealloc_mw(mw));
	return region_close(&r);
}

/* The process ends with acknowledged bytes that are not on the disk yet. */
static bool left_open(struct pair *p)
{
	struct region r = {};

	if (!begin(p, &r, 0))
		return false;
	make_data(p->a.buf, MIB);
	return peer_writes(p, &r, 5, MIB, IBV_WC_SUCCESS, "WRITE");
}

/* Write until the process is killed, or a WRITE fails. */
static int write_for_ever(unsigned int flags)
{
	static struct pair pair;
	struct region r = {};

	if (!device_open() || !begin(&pair, &r, flags))
		return 1;
	puts("writing");
	fflush(stdout);
	for (;;) {
		uint32_t len = some_len(MIB);

		if (!peer_writes(&pair, &r, rnd(AREA - len), len, IBV_WC_SUCCESS, "WRITE")) {
			puts(reason);
			ibv_dereg_mr(r.mr);
			return 3;
		}
	}
}

static const struct test tests[] = {
	{ "an acknowledged WRITE is on the disk", sync_writes, false },
	{ "WRITEs reach the disk, and READs see them", late_writes, false },
	{ "own READs and receives go to the disk", late_sinks, false },
	{ "own READs and receives end when the disk has them", sync_sinks, false },
	{ "a READ scatters to disk and memory", scatters, false },
	{ "queue pairs write parts of the same blocks", late_writers, false },
	{ "queue pairs write parts of the same blocks with SYNC", sync_writers, false },
	{ "a region is for writing as its rights say", rights, false },
	{ "a bad block fails the WRITEs that need it", bad_block, false },
	{ "a block that cannot be written is counted as lost", lost_block, false },
	{ "flushed bytes are on the disk", flushes, false },
	{ "a lost block fails the next flush", flush_errors, false },
	{ "a region ends in the middle of WRITEs", dereg_in_write, false },
	{ "a window is closed in the middle of WRITEs", window, false },
	{ "the process may end with bytes to write", left_open, false },
};

/* for a DISK that is a file */
static const struct test file_tests[] = {
	{ "an acknowledged WRITE is in the file", sync_writes, false },
	{ "WRITEs reach the file, and READs see them", late_writes, false },
	{ "own READs and receives end when the file has them", sync_sinks, false },
	{ "queue pairs write parts of the same blocks of a file", late_writers, false },
	{ "flushed bytes are in the file", flushes, false },
	{ "a file that has become shorter does not grow", shorter_file, false },
	{ "a region of a file ends in the middle of WRITEs", dereg_in_write, false },
};

int main(int argc, char **argv)
{
	struct stat st;

	if (argc < 4)
		return 2;
	good_disk = argv[1];
	bad_disk = argv[2];
	rounds = atoi(argv[3]);
	if (!rounds)
		return write_for_ever(argc > 4 ? SYNC : 0);
	if (!stat(good_disk, &st) && S_ISREG(st.st_mode))
		return run_tests(file_tests, sizeof(file_tests) / sizeof(*file_tests),
				 argc > 4 ? argv[4] : NULL);
	return run_tests(tests, sizeof(tests) / sizeof(*tests), argc > 4 ? argv[4] : NULL);
}
