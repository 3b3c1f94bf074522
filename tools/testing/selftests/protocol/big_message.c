// SPDX-License-Identifier: GPL-2.0
/*
 * The largest message, 2^31 bytes, between two queue pairs of this process.
 *
 *   big_message [PART-OF-A-NAME]	run the tests whose names contain the argument (all)
 *
 * Each end has 2^31 bytes of address space on 8 MiB of memory: one piece that is mapped 1021 times,
 * and three separate pieces at the beginning, in the middle and at the end, in which misplaced
 * bytes would show.
 */
#define _GNU_SOURCE
#include <sys/mman.h>

#include "verbs_test.h"

#define MESSAGE		(1UL << 31)
#define PIECE		(2UL << 20)
#define COPIES		(MESSAGE / PIECE)
#define GUARD		4096UL
#define GUARD_BYTE	0xa5

/* pieces of the file, in order; the guard follows LAST */
enum { COMMON, FIRST, MIDDLE, LAST, PIECES };

struct area {
	uint8_t *file;		/* all pieces and the guard, each mapped once */
	uint8_t *base;		/* MESSAGE bytes, then the guard */
	struct ibv_mr *mr;
};

static struct area from, to;

static bool area_make(struct area *area)
{
	int fd = memfd_create("message", 0), piece;
	off_t size = PIECES * PIECE + GUARD;

	REQUIRE(fd >= 0 && !ftruncate(fd, size), "memfd_create: %m");
	area->file = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	area->base = mmap(NULL, MESSAGE + GUARD, PROT_NONE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	REQUIRE(area->file != MAP_FAILED && area->base != MAP_FAILED, "mmap: %m");
	memset(area->file + PIECES * PIECE, GUARD_BYTE, GUARD);
	for (size_t i = 0; i <= COPIES; i++) {
		piece = i == COPIES ? PIECES : i == 0 ? FIRST : i == COPIES / 2 ? MIDDLE :
			i == COPIES - 1 ? LAST : COMMON;
		REQUIRE(mmap(area->base + i * PIECE, i == COPIES ? GUARD : PIECE,
			     PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, piece * PIECE) !=
			MAP_FAILED, "mmap of piece %zu: %m", i);
	}
	close(fd);
	area->mr = ibv_reg_mr(dev.pd, area->base, MESSAGE + GUARD, ACCESS);
	REQUIRE(area->mr, "ibv_reg_mr of 2^31 bytes: %m");
	return true;
}

static bool prepare(struct pair *p)
{
	if (!from.file && (!area_make(&from) || !area_make(&to)))
		return false;
	return make_pair(p, (struct pair_opts){});
}

static void contents(struct area *area, uint32_t seed)
{
	for (int piece = 0; piece < PIECES; piece++)
		if (seed)
			fill(area->file + piece * PIECE, PIECE, seed + piece);
		else
			memset(area->file + piece * PIECE, 0, PIECE);
}

static bool arrived(struct area *area, uint32_t seed)
{
	for (int piece = 0; piece < PIECES; piece++)
		if (!filled(area->file + piece * PIECE, PIECE, seed + piece))
			return false;
	for (size_t i = 0; i < GUARD; i++)
		REQUIRE(area->file[PIECES * PIECE + i] == GUARD_BYTE, "byte 2^31 + %zu is written", i);
	return true;
}

static bool post(struct pair *p, enum ibv_wr_opcode opcode, struct area *local, struct area *remote,
		 uint32_t more)
{
	struct ibv_sge sge[2] = { { (uintptr_t)local->base, MESSAGE, local->mr->lkey },
				  { (uintptr_t)local->base + MESSAGE, more, local->mr->lkey } };
	struct ibv_send_wr wr = {
		.wr_id = 1, .sg_list = sge, .num_sge = more ? 2 : 1, .opcode = opcode,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { (uintptr_t)remote->base, remote->mr->rkey },
	}, *bad;

	VERB(ibv_post_send(p->a.qp, &wr, &bad));
	return true;
}

static bool write_all(struct pair *p)
{
	struct completion c;

	if (!prepare(p))
		return false;
	contents(&from, 10);
	contents(&to, 0);
	return post(p, IBV_WR_RDMA_WRITE, &from, &to, 0) &&
	       wait_for(p->a.cq, 1, IBV_WC_RDMA_WRITE, &c) && arrived(&to, 10);
}

static bool read_all(struct pair *p)
{
	struct completion c;

	if (!prepare(p))
		return false;
	contents(&from, 20);
	contents(&to, 0);
	if (!post(p, IBV_WR_RDMA_READ, &to, &from, 0) ||
	    !wait_for(p->a.cq, 1, IBV_WC_RDMA_READ, &c))
		return false;
	REQUIRE(c.byte_len == MESSAGE, "the completion says %u bytes", c.byte_len);
	return arrived(&to, 20);
}

static bool send_all(struct pair *p)
{
	struct ibv_recv_wr wr = { .wr_id = 2, .num_sge = 1 }, *bad;
	struct completion c;
	struct ibv_sge sge;

	if (!prepare(p))
		return false;
	contents(&from, 30);
	contents(&to, 0);
	sge = (struct ibv_sge){ (uintptr_t)to.base, MESSAGE, to.mr->lkey };
	wr.sg_list = &sge;
	VERB(ibv_post_recv(p->b.qp, &wr, &bad));
	if (!post(p, IBV_WR_SEND, &from, &to, 0) || !wait_for(p->b.cq, 2, IBV_WC_RECV, &c))
		return false;
	REQUIRE(c.byte_len == MESSAGE, "the completion says %u bytes", c.byte_len);
	return wait_for(p->a.cq, 1, IBV_WC_SEND, &c) && arrived(&to, 30);
}

/* IBTA 11.6.2: a message longer than the port's maximum is a local error of the requester. */
static bool too_long(struct pair *p)
{
	struct completion c;

	if (!prepare(p))
		return false;
	contents(&to, 40);
	if (!post(p, IBV_WR_RDMA_WRITE, &from, &to, 1) || !wait_any(p->a.cq, &c))
		return false;
	REQUIRE(c.status == IBV_WC_LOC_LEN_ERR, "%s", ibv_wc_status_str(c.status));
	return arrived(&to, 40);
}

static const struct test tests[] = {
	{ "one WRITE of 2^31 bytes", write_all, false },
	{ "one READ of 2^31 bytes", read_all, false },
	{ "one SEND of 2^31 bytes", send_all, false },
	{ "2^31 + 1 bytes are refused", too_long, true },
};

int main(int argc, char **argv)
{
	/* an emulated guest needs minutes for a message of 2^31 bytes */
	wait_s = 900;
	return run_tests(tests, sizeof(tests) / sizeof(tests[0]), argc > 1 ? argv[1] : NULL);
}
