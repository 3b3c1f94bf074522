// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Parent domains whose allocators supply the memory of rings (ibv_alloc_parent_domain).  Both ends
 * are in this process, on the device named by $RDMA_DEV.
 *
 *   allocators [PART-OF-A-NAME]	run the tests whose names contain the argument (all)
 */
#define _GNU_SOURCE
#include <sys/mman.h>
#include <sys/wait.h>

#include <infiniband/nhcadv.h>

#include "verbs_test.h"

#define BLOCKS		32
#define MARK		0x1122334455667788ULL

/* Memory that the allocator has supplied */
struct block {
	uint8_t *p;
	size_t size;
	uint64_t type;
	bool live;
};

static struct block blocks[BLOCKS];
static int given, live;
static bool odd;		/* the provider has called alloc or free with wrong arguments */
static int refuse_at = -1;	/* number of the call that gets no memory; -1: none */
static void *answer;		/* returned instead of new memory, unless NULL */
static int cookie;
static struct ibv_pd *real_pd;

static void *ring_alloc(struct ibv_pd *pd, void *context, size_t size, size_t alignment,
			uint64_t type)
{
	struct block *b = &blocks[given];

	odd |= pd != dev.domain || context != &cookie || !size || size % 4096 ||
	       alignment != 4096 || type >> 32 != NHCADV_RES_TYPE_SQ >> 32;
	if (given == refuse_at)
		return NULL;
	if (answer == IBV_ALLOCATOR_USE_DEFAULT || given == BLOCKS)
		return IBV_ALLOCATOR_USE_DEFAULT;
	*b = (struct block){ .p = answer, .size = size, .type = type, .live = true };
	if (!answer) {
		b->p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		/* not zeros, so that the test finds a header that the kernel has not cleared */
		memset(b->p, 0xa5, size);
	}
	given++;
	live++;
	return b->p;
}

static void ring_free(struct ibv_pd *pd, void *context, void *ptr, uint64_t type)
{
	int i;

	for (i = 0; i < given && (blocks[i].p != ptr || !blocks[i].live); i++)
		;
	odd |= pd != dev.domain || context != &cookie || i == given ||
	       blocks[i].type != type;
	if (i == given)
		return;
	if (!answer)
		munmap(ptr, blocks[i].size);
	blocks[i].live = false;
	live--;
}

static bool domain_begin(void)
{
	struct ibv_parent_domain_init_attr attr = {
		.pd = dev.pd, .alloc = ring_alloc, .free = ring_free, .pd_context = &cookie,
		.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS |
			     IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT,
	};

	given = live = 0;
	odd = false;
	refuse_at = -1;
	answer = NULL;
	real_pd = dev.pd;
	dev.domain = ibv_alloc_parent_domain(dev.ctx, &attr);
	if (!dev.domain)
		return missing("ibv_alloc_parent_domain");
	dev.pd = dev.domain;
	return true;
}

static bool domain_end(void)
{
	struct ibv_pd *domain = dev.domain;

	dev.domain = NULL;
	dev.pd = real_pd;
	REQUIRE(!odd, "an allocator was called with wrong arguments");
	REQUIRE(!live, "%d blocks were not freed", live);
	VERB(ibv_dealloc_pd(domain));
	return true;
}

static int count(uint64_t type, bool alive)
{
	int i, n = 0;

	for (i = 0; i < given; i++)
		n += blocks[i].type == type && (blocks[i].live || !alive);
	return n;
}

/* Return: true if a block of @type that was not freed contains @value. */
static bool holds(uint64_t type, uint64_t value)
{
	size_t at;
	int i;

	for (i = 0; i < given; i++)
		for (at = 0; blocks[i].live && blocks[i].type == type && at < blocks[i].size;
		     at += 8)
			if (*(volatile uint64_t *)(blocks[i].p + at) == value)
				return true;
	return false;
}

static size_t bytes_given(void)
{
	size_t sum = 0;
	int i;

	for (i = 0; i < given; i++)
		sum += blocks[i].live ? blocks[i].size : 0;
	return sum;
}

/* Return: bytes that this process has pinned. */
static long pinned(void)
{
	return pinned_kb() * 1024;
}

/* Return: pages that the whole host has pinned. */
static long pinned_pages(void)
{
	/* reading this file adds up the counters of all CPUs */
	proc_number("/proc/sys/vm/stat_refresh", "");
	return proc_number("/proc/vmstat", "nr_foll_pin_acquired") -
	       proc_number("/proc/vmstat", "nr_foll_pin_released");
}

static bool exchange(struct pair *p, uint64_t wr_id, uint32_t seed)
{
	struct completion c;

	fill(p->a.buf, 3000, seed);
	return post_recv(p, wr_id, 0, 4096) && post_send(p, wr_id, 0, 3000, IBV_SEND_SIGNALED) &&
	       wait_for(p->b.cq, wr_id, IBV_WC_RECV, &c) &&
	       wait_for(p->a.cq, wr_id, IBV_WC_SEND, &c) && filled(p->b.buf, 3000, seed);
}

/*
 * Destroy the pair and the parent domain, and check that no memory is left pinned or allocated.
 * @before: bytes that were pinned before the test
 */
static bool all_end(struct pair *p, long before)
{
	if (!pair_free(p))
		return false;
	memset(p, 0, sizeof(*p));
	REQUIRE(pinned() == before, "%ld bytes are pinned, %ld were", pinned(), before);
	return domain_end();
}

static bool rings_lie_there(struct pair *p)
{
	long before = pinned();
	int i;

	if (!domain_begin() || !make_pair(p, (struct pair_opts){ .srq_wr = 20, .inline_data = 100 }))
		return false;
	REQUIRE(count(NHCADV_RES_TYPE_CQ, true) == 2 && count(NHCADV_RES_TYPE_SQ, true) == 2 &&
		count(NHCADV_RES_TYPE_RQ, true) == 1 && count(NHCADV_RES_TYPE_SRQ, true) == 1,
		"%d blocks, of CQs %d, SQs %d, RQs %d, SRQs %d", given,
		count(NHCADV_RES_TYPE_CQ, true), count(NHCADV_RES_TYPE_SQ, true),
		count(NHCADV_RES_TYPE_RQ, true), count(NHCADV_RES_TYPE_SRQ, true));
	REQUIRE(pinned() - before == (long)(bytes_given() + 2 * p->size),
		"%ld bytes more are pinned than before, %zu were given out and 2 * %zu registered",
		pinned() - before, bytes_given(), p->size);
	if (!exchange(p, MARK, 1))
		return false;
	REQUIRE(holds(NHCADV_RES_TYPE_SQ, MARK), "the send request is in other memory");
	REQUIRE(holds(NHCADV_RES_TYPE_SRQ, MARK), "the receive request is in other memory");
	REQUIRE(holds(NHCADV_RES_TYPE_CQ, MARK), "the completions are in other memory");
	/* use every slot of a's SQ, of the SRQ and of both CQs several times */
	for (i = 0; i < 1000; i++)
		if (!exchange(p, i, i))
			return false;
	return all_end(p, before);
}

static bool resized(struct pair *p)
{
	struct ibv_srq_attr attr = { .max_wr = 300 };
	long before = pinned();
	int i;

	if (!domain_begin() || !make_pair(p, (struct pair_opts){ .srq_wr = 20, .cqe = 30 }))
		return false;
	for (i = 0; i < 10; i++)
		if (!post_recv(p, i, 0, 4096))
			return false;
	VERB(ibv_modify_srq(p->srq, &attr, IBV_SRQ_MAX_WR));
	VERB(ibv_resize_cq(ibv_cq_ex_to_cq(p->b.cq), 1000));
	REQUIRE(count(NHCADV_RES_TYPE_SRQ, false) == 2 && count(NHCADV_RES_TYPE_SRQ, true) == 1 &&
		count(NHCADV_RES_TYPE_CQ, false) == 3 && count(NHCADV_RES_TYPE_CQ, true) == 2,
		"the new ring has no memory of the allocator, or the old memory was not freed");
	for (i = 0; i < 10; i++) {
		struct completion c;

		if (!post_send(p, 100 + i, 0, 64, IBV_SEND_SIGNALED) ||
		    !wait_for(p->b.cq, i, IBV_WC_RECV, &c) ||
		    !wait_for(p->a.cq, 100 + i, IBV_WC_SEND, &c))
			return false;
	}
	if (!exchange(p, MARK, 7))
		return false;
	REQUIRE(holds(NHCADV_RES_TYPE_SRQ, MARK) && holds(NHCADV_RES_TYPE_CQ, MARK),
		"the resized rings do not use the new memory");
	/* a resize without memory must leave the CQ as it is */
	refuse_at = given;
	REQUIRE(ibv_resize_cq(ibv_cq_ex_to_cq(p->b.cq), 2000) == ENOMEM, "resized without memory");
	refuse_at = -1;
	if (!exchange(p, 5, 8))
		return false;
	return all_end(p, before);
}

static bool default_memory(struct pair *p)
{
	long before = pinned();

	if (!domain_begin())
		return false;
	answer = IBV_ALLOCATOR_USE_DEFAULT;
	if (!make_pair(p, (struct pair_opts){ .srq_wr = 20 }))
		return false;
	/* rings in kernel memory also count as pinned memory of the process */
	REQUIRE(!given && pinned() - before > (long)(2 * p->size), "%ld bytes are pinned",
		pinned() - before);
	return exchange(p, MARK, 3) && all_end(p, before);
}

/* The allocator refuses memory for each ring in turn: send queue, receive queue, CQ and SRQ. */
static bool no_memory(struct pair *p)
{
	struct ibv_srq_init_attr srq = { .attr = { .max_wr = 10, .max_sge = 1 } };
	struct ibv_qp_init_attr qp = { .qp_type = IBV_QPT_RC, .cap = { 8, 8, 1, 1, 0 } };
	long before = pinned();
	int i;

	if (!domain_begin())
		return false;
	p->a.cq = make_cq(10, NULL, 0);
	REQUIRE(p->a.cq && given == 1, "ibv_create_cq_ex: %m");
	qp.send_cq = qp.recv_cq = ibv_cq_ex_to_cq(p->a.cq);
	for (i = 0; i < 2; i++) {
		refuse_at = given + i;
		REQUIRE(!ibv_create_qp(dev.pd, &qp) && errno == ENOMEM, "queue %d: %m", i);
		REQUIRE(live == 1, "%d blocks are in use", live);
	}
	refuse_at = given;
	REQUIRE(!make_cq(10, NULL, 0) && errno == ENOMEM, "CQ: %m");
	REQUIRE(!ibv_create_srq(dev.pd, &srq) && errno == ENOMEM, "SRQ: %m");
	return all_end(p, before);
}

/*
 * The allocator returns memory that no ring can use.  The provider must give it back and fail with
 * @err.
 */
static bool refused_as(void *memory, int err, const char *what)
{
	struct ibv_srq_init_attr srq = { .attr = { .max_wr = 10, .max_sge = 1 } };

	answer = memory;
	errno = 0;
	REQUIRE(!make_cq(10, NULL, 0) && errno == err, "%s, CQ: %m", what);
	errno = 0;
	REQUIRE(!ibv_create_srq(dev.pd, &srq) && errno == err, "%s, SRQ: %m", what);
	REQUIRE(!live && !odd, "%s: the memory was not freed", what);
	return true;
}

static bool bad_memory(struct pair *p)
{
	struct ibv_parent_domain_init_attr half = {
		.pd = dev.pd, .alloc = ring_alloc,
		.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS,
	};
	uint8_t *page = mmap(NULL, 65536, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	long before = pinned();

	REQUIRE(!ibv_alloc_parent_domain(dev.ctx, &half) && errno == EINVAL, "no free: %m");
	if (!domain_begin() || !refused_as(page + 64, EINVAL, "not aligned") ||
	    !refused_as((void *)-4096L, EINVAL, "at the end of the address space") ||
	    !refused_as(page, EFAULT, "read-only"))
		return false;
	munmap(page, 65536);
	return refused_as(page, EFAULT, "not mapped") && all_end(p, before);
}

/*
 * The process unmaps the memory of its rings.  The pages stay pinned, and other queue pairs must
 * still work.
 */
static bool taken_away(struct pair *p)
{
	long before = pinned();
	struct pair other = {};
	int i;

	if (!make_pair(&other, (struct pair_opts){}) || !domain_begin() ||
	    !make_pair(p, (struct pair_opts){ .srq_wr = 20 }) || !exchange(p, 1, 1))
		return false;
	if (!post_recv(p, 2, 0, 4096))
		return false;
	for (i = 0; i < given; i++) {
		/*
		 * map other memory there, because pair_free() below makes the provider read the CQ,
		 * and ring_free() unmaps each ring
		 */
		REQUIRE(mmap(blocks[i].p, blocks[i].size, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == blocks[i].p,
			"mmap: %m");
	}
	/* the process cannot access the rings of @p any more; another pair must still work */
	for (i = 0; i < 100; i++)
		if (!exchange(&other, i, i))
			return false;
	if (!pair_free(&other))
		return false;
	return all_end(p, before);
}

static bool work_queue(struct pair *p)
{
	struct ibv_wq_init_attr attr = { .wq_type = IBV_WQT_RQ, .max_wr = 10, .max_sge = 2 };
	long before = pinned();
	struct ibv_wq *wq;

	if (!domain_begin())
		return false;
	p->a.cq = make_cq(10, NULL, 0);
	REQUIRE(p->a.cq, "ibv_create_cq_ex: %m");
	attr.cq = ibv_cq_ex_to_cq(p->a.cq);
	attr.pd = dev.pd;
	wq = ibv_create_wq(dev.ctx, &attr);
	if (!wq)
		return missing("ibv_create_wq");
	REQUIRE(count(NHCADV_RES_TYPE_WQ, true) == 1, "%d blocks of work queues",
		count(NHCADV_RES_TYPE_WQ, true));
	VERB(ibv_destroy_wq(wq));
	return all_end(p, before);
}

/* A process that ends without destroying its objects leaves no page pinned. */
static bool process_ends(struct pair *p)
{
	long before = pinned_pages();
	int status, i;
	pid_t pid = fork();

	REQUIRE(pid >= 0, "fork: %m");
	if (!pid)
		_exit(!device_open() || !domain_begin() ||
		      !make_pair(p, (struct pair_opts){ .srq_wr = 20 }) || !exchange(p, 1, 1));
	REQUIRE(waitpid(pid, &status, 0) == pid && !status, "the process failed before its end");
	for (i = 0; i < 50 && pinned_pages() != before; i++)
		usleep(100000);
	REQUIRE(pinned_pages() == before, "%ld pages are pinned, %ld were", pinned_pages(), before);
	return true;
}

static const struct test tests[] = {
	{ "allocators: rings lie in their memory", rings_lie_there, true },
	{ "allocators: a resize moves a ring to new memory", resized, true },
	{ "allocators: IBV_ALLOCATOR_USE_DEFAULT", default_memory, true },
	{ "allocators: no memory", no_memory, true },
	{ "allocators: memory that no ring can use", bad_memory, true },
	{ "allocators: the process unmaps the memory of its rings", taken_away, true },
	{ "allocators: work queues", work_queue, true },
	{ "allocators: a process ends without destroying its objects", process_ends, true },
};

int main(int argc, char **argv)
{
	return run_tests(tests, sizeof(tests) / sizeof(tests[0]), argc > 1 ? argv[1] : NULL);
}
