// SPDX-License-Identifier: GPL-2.0
/*
 * reg_cache: the cache of registrations never returns a registration of other pages.
 *
 *   reg_cache [PART-OF-A-NAME]	run the tests whose names contain the argument (all)
 *
 * Most tests change the memory of this process between two WRITEs from it, and compare what arrives
 * at the other end.  $ROUNDS: rounds of the main test.  $WORKING_SET: MiB of the test with a small
 * limit of pinned memory.
 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <infiniband/nhcadv.h>

#include "verbs_test.h"

#define SIZE		(64 * 1024)
#define MIB		(1024 * 1024UL)
#define BUFFERS		100
#define REUSES		20
#define THREADS		4

static unsigned long number(const char *name, unsigned long usual)
{
	const char *value = getenv(name);

	return value ? strtoul(value, NULL, 0) : usual;
}

/* Map memory at @at, or anywhere if it is NULL.  Return: the address; NULL: error. */
static uint8_t *map(void *at, size_t size, int flags, int fd)
{
	void *p = mmap(at, size, PROT_READ | PROT_WRITE, flags | (at ? MAP_FIXED : 0), fd, 0);

	return p == MAP_FAILED ? NULL : p;
}

static uint8_t *map_anon(void *at, size_t size)
{
	return map(at, size, MAP_PRIVATE | MAP_ANONYMOUS, -1);
}

/* Write from memory that is registered with @lkey to the start of b's buffer. */
static bool write_lkey(struct pair *p, uint8_t *from, uint32_t len, uint32_t lkey)
{
	struct ibv_sge sge = { .addr = (uintptr_t)from, .length = len, .lkey = lkey };
	struct ibv_send_wr wr = {
		.wr_id = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
		.sg_list = &sge,
		.num_sge = 1,
		.wr.rdma = { .remote_addr = (uintptr_t)p->b.buf, .rkey = p->b.mr->rkey },
	};
	struct ibv_send_wr *bad;
	struct completion c;

	VERB(ibv_post_send(p->a.qp, &wr, &bad));
	return wait_for(p->a.cq, 1, IBV_WC_RDMA_WRITE, &c);
}

static bool write_cached(struct pair *p, uint8_t *from, uint32_t len)
{
	struct nhcadv_cached_mr *cached = nhcadv_reg_cached(dev.pd, from, len, 0);
	bool good;

	REQUIRE(cached, "nhcadv_reg_cached: %m");
	good = write_lkey(p, from, len, cached->lkey);
	VERB(nhcadv_release_cached(cached));
	return good;
}

/* WRITE from memory that the cache registers.  The other end must get the pattern @seed. */
static bool writes_right(struct pair *p, uint8_t *from, uint32_t len, uint32_t seed,
			 const char *after)
{
	if (!write_cached(p, from, len))
		return false;
	REQUIRE(filled(p->b.buf, len, seed), "wrong bytes after %s", after);
	return true;
}

static bool info(struct nhcadv_reg_cache_info *i)
{
	VERB(nhcadv_query_reg_cache(dev.pd, i));
	return true;
}

static bool settings(uint64_t max_bytes, uint32_t idle_ms, uint32_t fragment)
{
	struct nhcadv_reg_cache_attr attr = {
		.max_bytes = max_bytes, .idle_ms = idle_ms, .fragment = fragment,
	};

	VERB(nhcadv_set_reg_cache(dev.pd, &attr));
	return true;
}

static bool has_cache(void)
{
	struct nhcadv_device_attr attr;

	REQUIRE(!nhcadv_query_device(dev.ctx, &attr), "nhcadv_query_device");
	REQUIRE(attr.caps & NHCADV_DEVICE_REG_CACHE, "no NHCADV_DEVICE_REG_CACHE");
	return true;
}

/* Drop the registrations that earlier tests have left in the cache. */
static bool empty(void)
{
	return settings(0, 5000, 16 * MIB) && settings(1024 * MIB, 5000, 16 * MIB);
}

static bool begin(struct pair *p, size_t size)
{
	return has_cache() && make_pair(p, (struct pair_opts){ .type = IBV_QPT_RC, .size = size,
					.more_ops = 0 }) && empty();
}

/*
 * A region without the cache ignores munmap(): after other pages are mapped at its address, a WRITE
 * through it still sends the old bytes.  So the other tests would detect such a registration.
 */
static bool ignored_word(struct pair *p)
{
	uint8_t *m = map_anon(NULL, SIZE);
	struct ibv_mr *mr;
	bool good;

	if (!begin(p, SIZE))
		return false;
	REQUIRE(m, "mmap: %m");
	fill(m, SIZE, 1);
	mr = ibv_reg_mr(dev.pd, m, SIZE, 0);
	REQUIRE(mr, "ibv_reg_mr: %m");
	munmap(m, SIZE);
	REQUIRE(map_anon(m, SIZE) == m, "mmap: %m");
	fill(m, SIZE, 2);
	good = write_lkey(p, m, SIZE, mr->lkey);
	REQUIRE(good && filled(p->b.buf, SIZE, 1), "the old bytes have not arrived");
	VERB(ibv_dereg_mr(mr));
	munmap(m, SIZE);
	return true;
}

static bool rounds(struct pair *p)
{
	unsigned long n = number("ROUNDS", 2000), i;
	struct nhcadv_reg_cache_info before, after;
	uint8_t *m = map_anon(NULL, SIZE);
	uint64_t start;

	if (!begin(p, SIZE) || !info(&before))
		return false;
	REQUIRE(m, "mmap: %m");
	start = clock_ns(CLOCK_MONOTONIC);
	for (i = 0; i < n; i++) {
		fill(m, SIZE, i);
		/* the second write finds the registration of the first one */
		if (!writes_right(p, m, SIZE, i, "munmap and mmap") ||
		    !writes_right(p, m, SIZE, i, "a hit"))
			return false;
		munmap(m, SIZE);
		REQUIRE(map_anon(m, SIZE) == m, "mmap: %m");
	}
	if (!info(&after))
		return false;
	printf("# %lu rounds: %.1f us each, %" PRIu64 " registrations, %" PRIu64 " hits\n", n,
	       (clock_ns(CLOCK_MONOTONIC) - start) / 1e3 / n,
	       after.registrations - before.registrations, after.hits - before.hits);
	REQUIRE(after.changed - before.changed >= n - 1, "%" PRIu64 " changes in %lu rounds",
		after.changed - before.changed, n);
	REQUIRE(after.hits - before.hits >= n * 9 / 10, "%" PRIu64 " hits in %lu rounds",
		after.hits - before.hits, n);
	munmap(m, SIZE);
	return true;
}

/* Change memory in many ways, each time after a WRITE, so that a registration exists. */
static bool changes(struct pair *p)
{
	int fd = memfd_create("reg_cache", 0);
	uint8_t *m, *other, *shared;

	if (!begin(p, SIZE))
		return false;
	m = map_anon(NULL, SIZE);
	other = map_anon(NULL, SIZE);
	REQUIRE(m && other && fd >= 0, "memory: %m");

	fill(m, SIZE, 1);
	if (!writes_right(p, m, SIZE, 1, "nothing"))
		return false;
	REQUIRE(!madvise(m, SIZE, MADV_DONTNEED), "MADV_DONTNEED: %m");
	fill(m, SIZE, 2);
	if (!writes_right(p, m, SIZE, 2, "MADV_DONTNEED"))
		return false;
	REQUIRE(!madvise(m, SIZE, MADV_FREE), "MADV_FREE: %m");
	fill(m, SIZE, 3);
	if (!writes_right(p, m, SIZE, 3, "MADV_FREE"))
		return false;
	fill(other, SIZE, 4);
	REQUIRE(mremap(other, SIZE, SIZE, MREMAP_MAYMOVE | MREMAP_FIXED, m) == m, "mremap: %m");
	if (!writes_right(p, m, SIZE, 4, "mremap over it"))
		return false;
	other = mremap(m, SIZE, SIZE, MREMAP_MAYMOVE | MREMAP_FIXED, other);
	REQUIRE(other != MAP_FAILED && map_anon(m, SIZE) == m, "mremap: %m");
	fill(m, SIZE, 5);
	if (!writes_right(p, m, SIZE, 5, "mremap away"))
		return false;
	REQUIRE(map_anon(m, 4096) == m, "mmap: %m");
	fill(m, SIZE, 6);
	if (!writes_right(p, m, SIZE, 6, "mmap over a page"))
		return false;
	REQUIRE(!mprotect(m, SIZE, PROT_NONE), "mprotect: %m");
	REQUIRE(!nhcadv_reg_cached(dev.pd, m, SIZE, 0) && errno == EFAULT,
		"memory without a right was registered");
	REQUIRE(!mprotect(m, SIZE, PROT_READ | PROT_WRITE), "mprotect: %m");
	fill(m, SIZE, 7);
	if (!writes_right(p, m, SIZE, 7, "mprotect"))
		return false;

	REQUIRE(!ftruncate(fd, SIZE), "ftruncate: %m");
	shared = map(NULL, SIZE, MAP_SHARED, fd);
	REQUIRE(shared, "mmap: %m");
	fill(shared, SIZE, 8);
	if (!writes_right(p, shared, SIZE, 8, "a mapping of a file"))
		return false;
	REQUIRE(!ftruncate(fd, 0) && !ftruncate(fd, SIZE), "ftruncate: %m");
	fill(shared, SIZE, 9);
	if (!writes_right(p, shared, SIZE, 9, "truncation"))
		return false;
	REQUIRE(!fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, SIZE),
		"fallocate: %m");
	fill(shared, SIZE, 10);
	if (!writes_right(p, shared, SIZE, 10, "a hole"))
		return false;
	REQUIRE(!madvise(shared, SIZE, MADV_REMOVE), "MADV_REMOVE: %m");
	fill(shared, SIZE, 11);
	if (!writes_right(p, shared, SIZE, 11, "MADV_REMOVE"))
		return false;
	munmap(shared, SIZE);
	munmap(other, SIZE);
	munmap(m, SIZE);
	close(fd);
	return true;
}

/*
 * The parent's registrations stay right when both processes write to the memory.  The child, which
 * has other pages, does not use the parent's registrations.
 */
static bool forks(struct pair *p)
{
	struct nhcadv_reg_cache_info before, after;
	struct nhcadv_cached_mr *cached, *child;
	uint8_t *m = map_anon(NULL, SIZE);
	int status, i;
	pid_t pid;

	if (!begin(p, SIZE))
		return false;
	REQUIRE(m, "mmap: %m");
	fill(m, SIZE, 1);
	if (!writes_right(p, m, SIZE, 1, "nothing") || !info(&before))
		return false;
	cached = nhcadv_reg_cached(dev.pd, m, SIZE, 0);
	REQUIRE(cached, "nhcadv_reg_cached: %m");
	for (i = 2; i < 12; i++) {
		pid = fork();
		REQUIRE(pid >= 0, "fork: %m");
		if (!pid) {
			memset(m, 0xee, SIZE);
			child = nhcadv_reg_cached(dev.pd, m, SIZE, 0);
			_exit(!child || child == cached || child->mr == cached->mr ||
			      nhcadv_release_cached(child) || nhcadv_release_cached(cached) ||
			      nhcadv_query_reg_cache(dev.pd, &after) != EOPNOTSUPP);
		}
		fill(m, SIZE, i);
		REQUIRE(waitpid(pid, &status, 0) == pid && !status, "child: status %d", status);
		if (!write_lkey(p, m, SIZE, cached->lkey))
			return false;
		REQUIRE(filled(p->b.buf, SIZE, i), "wrong bytes after fork");
		if (!writes_right(p, m, SIZE, i, "fork"))
			return false;
	}
	VERB(nhcadv_release_cached(cached));
	if (!info(&after))
		return false;
	printf("# 10 forks: %" PRIu64 " registrations\n",
	       after.registrations - before.registrations);
	REQUIRE(after.registrations == before.registrations, "fork has cost registrations");
	munmap(m, SIZE);
	return true;
}

/* Buffers that are near each other must share registrations.  Print what a cache hit costs. */
static bool reuse(struct pair *p)
{
	struct nhcadv_reg_cache_info before, after;
	uint64_t start, known, cached_ns, look;
	uint8_t *all = map_anon(NULL, 64 * MIB), *m;
	struct nhcadv_cached_mr *c;
	struct ibv_mr *mr;
	int i, j;

	if (!begin(p, SIZE) || !info(&before))
		return false;
	REQUIRE(all, "mmap: %m");
	/* in the middle of memory of the program, as buffers of an allocator are */
	m = (uint8_t *)(((uintptr_t)all + 32 * MIB) & ~(16 * MIB - 1));
	fill(m, BUFFERS * SIZE, 3);
	mr = ibv_reg_mr(dev.pd, m, BUFFERS * SIZE, 0);
	REQUIRE(mr, "ibv_reg_mr: %m");
	for (j = 0, start = clock_ns(CLOCK_MONOTONIC); j < REUSES; j++)
		for (i = 0; i < BUFFERS; i++)
			if (!write_lkey(p, m + i * SIZE, SIZE, mr->lkey))
				return false;
	known = clock_ns(CLOCK_MONOTONIC) - start;
	VERB(ibv_dereg_mr(mr));
	for (i = 0; i < BUFFERS; i++)
		if (!write_cached(p, m + i * SIZE, SIZE))
			return false;
	for (j = 0, start = clock_ns(CLOCK_MONOTONIC); j < REUSES; j++)
		for (i = 0; i < BUFFERS; i++)
			if (!write_cached(p, m + i * SIZE, SIZE))
				return false;
	cached_ns = clock_ns(CLOCK_MONOTONIC) - start;
	for (i = 0, start = clock_ns(CLOCK_MONOTONIC); i < BUFFERS * REUSES; i++) {
		c = nhcadv_reg_cached(dev.pd, m + i % BUFFERS * SIZE, SIZE, 0);
		REQUIRE(c && !nhcadv_release_cached(c), "a hit: %m");
	}
	look = clock_ns(CLOCK_MONOTONIC) - start;
	if (!info(&after))
		return false;
	printf("# %d buffers, %d writes: %" PRIu64 " registrations, %.3f of the time with a region\n",
	       BUFFERS, BUFFERS * REUSES, after.registrations - before.registrations,
	       (double)cached_ns / known);
	printf("# a hit and its release: %.0f ns\n", (double)look / (BUFFERS * REUSES));
	REQUIRE(after.registrations - before.registrations <= 10, "%" PRIu64 " registrations",
		after.registrations - before.registrations);
	munmap(all, 64 * MIB);
	return true;
}

/* With a limit of pinned memory that is less than the working set, all writes must succeed. */
static bool small_limit(struct pair *p)
{
	unsigned long mib = number("WORKING_SET", 160), i, round;
	struct nhcadv_reg_cache_info i1;
	uint8_t *m = map_anon(NULL, mib * MIB);

	if (!begin(p, MIB))
		return false;
	REQUIRE(m, "mmap: %m");
	madvise(m, mib * MIB, MADV_NOHUGEPAGE);
	/* no limit of the cache, only that of the kernel (the script has set RLIMIT_MEMLOCK) */
	if (!settings(UINT64_MAX, 5000, 16 * MIB))
		return false;
	for (round = 0; round < 2; round++)
		for (i = 0; i < mib; i++) {
			fill(m + i * MIB, MIB, i + round);
			if (!writes_right(p, m + i * MIB, MIB, i + round, "an eviction"))
				return false;
		}
	if (!info(&i1))
		return false;
	printf("# %lu MiB with RLIMIT_MEMLOCK: %" PRIu64 " evicted, %" PRIu64 " KiB registered\n",
	       mib, i1.evicted, i1.bytes >> 10);
	REQUIRE(i1.evicted, "nothing was evicted: is RLIMIT_MEMLOCK set?");
	munmap(m, mib * MIB);
	return true;
}

/* After the idle time, unused registrations must be unpinned, and those in use must stay. */
static bool idle(struct pair *p)
{
	struct nhcadv_reg_cache_info i;
	struct nhcadv_cached_mr *used;
	uint8_t *m = map_anon(NULL, 4 * SIZE);
	long before;

	if (!begin(p, SIZE))
		return false;
	REQUIRE(m, "mmap: %m");
	before = pinned_kb();
	if (!settings(1024 * MIB, 1000, 0))
		return false;
	fill(m, SIZE, 1);
	used = nhcadv_reg_cached(dev.pd, m + 2 * SIZE, SIZE, IBV_ACCESS_LOCAL_WRITE);
	REQUIRE(used, "nhcadv_reg_cached: %m");
	if (!writes_right(p, m, SIZE, 1, "nothing") || !info(&i))
		return false;
	REQUIRE(i.bytes == 2 * SIZE && i.idle_bytes == SIZE, "%" PRIu64 " bytes", i.bytes);
	REQUIRE(pinned_kb() >= before + 2 * SIZE / 1024, "%ld KiB pinned", pinned_kb());
	usleep(2500000);
	if (!info(&i))
		return false;
	REQUIRE(i.bytes == SIZE && i.expired, "%" PRIu64 " bytes after 2.5 s", i.bytes);
	VERB(nhcadv_release_cached(used));
	usleep(2500000);
	if (!info(&i))
		return false;
	REQUIRE(!i.bytes && pinned_kb() <= before, "%" PRIu64 " bytes, %ld KiB pinned, %ld before",
		i.bytes, pinned_kb(), before);

	/* unmapped memory is unpinned before the idle time is over */
	if (!settings(1024 * MIB, 4000, 0) || !writes_right(p, m, SIZE, 1, "the idle time"))
		return false;
	munmap(m, 4 * SIZE);
	usleep(1500000);
	REQUIRE(pinned_kb() <= before, "unmapped memory is pinned: %ld KiB", pinned_kb());
	return true;
}

static bool arguments(struct pair *p)
{
	struct nhcadv_reg_cache_attr bad = { .idle_ms = 1, .fragment = 3 * MIB };
	uint8_t *m = map_anon(NULL, SIZE);
	struct nhcadv_cached_mr *a, *b;
	struct ibv_pd *pd;

	if (!begin(p, SIZE))
		return false;
	REQUIRE(m, "mmap: %m");
	REQUIRE(!nhcadv_reg_cached(dev.pd, m, 0, 0) && errno == EINVAL, "length 0");
	REQUIRE(!nhcadv_reg_cached(dev.pd, m, SIZE, IBV_ACCESS_LOCAL_WRITE |
				   IBV_ACCESS_REMOTE_WRITE) && errno == EINVAL, "a remote right");
	REQUIRE(nhcadv_set_reg_cache(dev.pd, &bad) == EINVAL, "a bad fragment");
	bad.fragment = 0;
	bad.idle_ms = 0;
	REQUIRE(nhcadv_set_reg_cache(dev.pd, &bad) == EINVAL, "a bad time");

	/* local write access needs another registration, because the first one lacks this right */
	a = nhcadv_reg_cached(dev.pd, m, SIZE / 2, 0);
	b = nhcadv_reg_cached(dev.pd, m, SIZE / 2, IBV_ACCESS_LOCAL_WRITE);
	REQUIRE(a && b && a != b, "rights");
	VERB(nhcadv_release_cached(a));
	VERB(nhcadv_release_cached(b));

	/*
	 * a PD with a registration in use cannot be deallocated; deallocation of a PD deregisters
	 * its idle registrations
	 */
	pd = ibv_alloc_pd(dev.ctx);
	REQUIRE(pd, "ibv_alloc_pd: %m");
	a = nhcadv_reg_cached(pd, m, SIZE, IBV_ACCESS_LOCAL_WRITE);
	REQUIRE(a, "nhcadv_reg_cached: %m");
	REQUIRE(ibv_dealloc_pd(pd) == EBUSY, "the domain of a registration in use was freed");
	VERB(nhcadv_release_cached(a));
	VERB(ibv_dealloc_pd(pd));
	munmap(m, SIZE);
	return true;
}

/* Return: the number of device mappings of this process. Each cache maps the words of its watches. */
static int device_maps(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[512];
	int n = 0;

	while (maps && fgets(line, sizeof(line), maps))
		n += strstr(line, "infiniband") != NULL;
	if (maps)
		fclose(maps);
	return n;
}

/*
 * The program gives back an imported PD while it uses two registrations of the PD's cache, and has
 * used a third. The registrations in use stay valid. The release of the last one frees the cache.
 */
static bool imported(struct pair *p)
{
	struct ibv_context *ctx = ibv_import_device(dup(dev.ctx->cmd_fd));
	uint8_t *m = map_anon(NULL, 4 * SIZE);
	struct nhcadv_cached_mr *a, *b, *c;
	struct ibv_pd *pd;
	int before, with;

	if (!begin(p, SIZE))
		return false;
	REQUIRE(ctx && m, "ibv_import_device, mmap: %m");
	fill(m, SIZE, 1);
	before = device_maps();
	pd = ibv_import_pd(ctx, dev.pd->handle);
	REQUIRE(pd, "ibv_import_pd: %m");
	a = nhcadv_reg_cached(pd, m, SIZE, 0);
	b = nhcadv_reg_cached(pd, m, SIZE, IBV_ACCESS_LOCAL_WRITE);
	c = nhcadv_reg_cached(pd, m + 2 * SIZE, SIZE, 0);
	REQUIRE(a && b && c, "nhcadv_reg_cached: %m");
	VERB(nhcadv_release_cached(c));
	with = device_maps();
	REQUIRE(with > before, "%d mappings of the device, %d without a cache", with, before);
	ibv_unimport_pd(pd);
	REQUIRE(device_maps() == with, "the watches of registrations in use have ended");
	if (!write_lkey(p, m, SIZE, a->lkey))
		return false;
	REQUIRE(filled(p->b.buf, SIZE, 1), "wrong bytes after ibv_unimport_pd()");
	VERB(nhcadv_release_cached(a));
	VERB(nhcadv_release_cached(b));
	with = device_maps();
	REQUIRE(with == before, "the cache was not freed: %d mappings, %d before", with, before);

	/* nothing is in use, so ibv_unimport_pd() itself frees the cache */
	pd = ibv_import_pd(ctx, dev.pd->handle);
	REQUIRE(pd, "ibv_import_pd: %m");
	a = nhcadv_reg_cached(pd, m, SIZE, 0);
	REQUIRE(a, "nhcadv_reg_cached: %m");
	VERB(nhcadv_release_cached(a));
	ibv_unimport_pd(pd);
	with = device_maps();
	REQUIRE(with == before, "the idle cache was not freed: %d, %d before", with, before);
	VERB(ibv_close_device(ctx));
	munmap(m, 4 * SIZE);
	return true;
}

struct worker {
	pthread_t thread;
	unsigned long rounds;
	unsigned int seed;
	bool failed;
};

/* Repeatedly map new memory at one address, register it twice, and release the registrations. */
static void *work(void *arg)
{
	struct worker *w = arg;
	struct nhcadv_cached_mr *c, *d;
	uint8_t *m = NULL;
	unsigned long i;

	for (i = 0; i < w->rounds && !w->failed; i++) {
		m = map_anon(m, SIZE);
		c = m ? nhcadv_reg_cached(dev.pd, m, SIZE, IBV_ACCESS_LOCAL_WRITE) : NULL;
		d = m ? nhcadv_reg_cached(dev.pd, m + 4096, SIZE / 2, 0) : NULL;
		w->failed = !c || !d || nhcadv_release_cached(c) || nhcadv_release_cached(d);
	}
	if (m)
		munmap(m, SIZE);
	return NULL;
}

static bool threads(struct pair *p)
{
	struct worker workers[THREADS] = {};
	struct nhcadv_reg_cache_info i;
	int t;

	if (!begin(p, SIZE))
		return false;
	for (t = 0; t < THREADS; t++) {
		workers[t].rounds = number("ROUNDS", 2000) / 8;
		REQUIRE(!pthread_create(&workers[t].thread, NULL, work, &workers[t]), "a thread");
	}
	for (t = 0; t < THREADS; t++)
		pthread_join(workers[t].thread, NULL);
	for (t = 0; t < THREADS; t++)
		REQUIRE(!workers[t].failed, "thread %d has failed", t);
	if (!empty() || !info(&i))
		return false;
	REQUIRE(!i.bytes && !i.entries, "%u registrations are left", i.entries);
	return true;
}

static const struct test tests[] = {
	{ "a kept registration without the word gives old bytes", ignored_word, false },
	{ "mmap, write, munmap at one address", rounds, false },
	{ "each change of memory is noticed", changes, false },
	{ "fork", forks, false },
	{ "buffers share registrations", reuse, false },
	{ "a working set above RLIMIT_MEMLOCK", small_limit, false },
	{ "idle memory is not pinned", idle, false },
	{ "rights, settings, and the end of a domain", arguments, false },
	{ "a domain that was imported", imported, false },
	{ "threads", threads, false },
};

int main(int argc, char **argv)
{
	return run_tests(tests, sizeof(tests) / sizeof(tests[0]), argc > 1 ? argv[1] : NULL);
}
