// SPDX-License-Identifier: GPL-2.0
/*
 * A disk hangs while regions of it are in use.  Both ends are in this process; verbs_test.h
 * describes the printed results.
 *
 *   direct_hung NAME GOOD-DISK	dmsetup suspends and resumes NAME, a device of the device mapper
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include "direct_disk.h"

#define SYNC	NHCADV_DIRECT_SYNC

static const char *name;
static char hung_disk[128];

static bool dmsetup(const char *what)
{
	char command[200];

	snprintf(command, sizeof(command), "dmsetup %s %s", what, name);
	REQUIRE(!system(command), "%s failed", command);
	return true;
}

struct closer {
	struct ibv_mr *mr;
	atomic_bool ended;
	int ret;
};

static void *close_region(void *arg)
{
	struct closer *c = arg;

	c->ret = ibv_dereg_mr(c->mr);
	c->ended = true;
	return NULL;
}

static bool wr_post(struct pair *p, struct region *r, uint64_t off, uint32_t len)
{
	struct ibv_sge sge = sge_of(&p->a, 0, len);
	struct ibv_send_wr *bad, wr = { .opcode = IBV_WR_RDMA_WRITE, .sg_list = &sge, .num_sge = 1,
					.send_flags = IBV_SEND_SIGNALED,
					.wr.rdma = { off, r->mr->rkey } };

	VERB(ibv_post_send(p->a.qp, &wr, &bad));
	return true;
}

/* WRITE, flush and READ a region of the good disk, and deregister it. */
static bool good_works(struct pair *p)
{
	struct region r = {};
	struct completion c;

	if (!region_open_write(&r, good_disk, POOL, 0))
		return false;
	fill(p->a.buf, MIB, 3);
	if (!wr_post(p, &r, 4096, MIB))
		return false;
	REQUIRE(wait_any(p->a.cq, &c) && !c.status, "WRITE of the good disk");
	VERB(nhcadv_direct_sync(r.mr));
	memset(p->a.buf, 0, MIB);
	if (!read_ends(p, 4096, r.mr->rkey, MIB, IBV_WC_SUCCESS, "READ of the good disk"))
		return false;
	REQUIRE(filled(p->a.buf, MIB, 3), "wrong bytes");
	return region_close(&r);
}

/*
 * While the disk hangs, regions of another disk and pool work, and can be deregistered.  The
 * deregistration of the hung disk's region ends when this disk works again.  The disk then has all
 * acknowledged bytes.
 */
static bool hangs(struct pair *p, unsigned int flags)
{
	struct pair other = {};
	struct region r = {};
	struct closer closer = {};
	struct completion c;
	struct timespec from, to;
	pthread_t t;
	uint8_t *found;

	if (!region_open_write(&r, hung_disk, POOL, flags) ||
	    !make_pair(p, (struct pair_opts){ .size = BUF }) ||
	    !make_pair(&other, (struct pair_opts){ .size = BUF }) || !dmsetup("suspend --noflush"))
		return false;
	fill(p->a.buf, 100000, flags + 7);
	if (!wr_post(p, &r, 0, 100000))
		goto resume;
	usleep(200000);
	if (!flags && (!wait_any(p->a.cq, &c) || c.status)) {
		fail("a WRITE that waits for no disk fails");
		goto resume;
	}
	closer.mr = r.mr;
	if (pthread_create(&t, NULL, close_region, &closer))
		goto resume;
	clock_gettime(CLOCK_MONOTONIC, &from);
	for (unsigned int i = 0; i < 5; i++)
		if (!good_works(&other))
			goto resume;
	clock_gettime(CLOCK_MONOTONIC, &to);
	if (to.tv_sec - from.tv_sec > 20) {
		fail("another pool takes %ld s", (long)(to.tv_sec - from.tv_sec));
		goto resume;
	}
	sleep(2);
	if (closer.ended) {
		fail("ibv_dereg_mr() did not wait for the disk");
		goto resume;
	}
	if (!dmsetup("resume"))
		return false;
	pthread_join(t, NULL);
	REQUIRE(!closer.ret, "ibv_dereg_mr: %s", strerror(closer.ret));
	r.mr = NULL;
	/* with SYNC, the WRITE may fail: its region was deregistered before the WRITE ended */
	if (flags)
		REQUIRE(wait_any(p->a.cq, &c) && (!c.status || c.status == IBV_WC_REM_ACCESS_ERR),
			"WRITE: %s", ibv_wc_status_str(c.status));
	REQUIRE(!posix_memalign((void **)&found, PAGE, 102400) &&
		pread(r.fd, found, 102400, 0) == 102400, "pread: %m");
	REQUIRE(c.status || filled(found, 100000, flags + 7), "what was acknowledged is lost");
	free(found);
	return pair_free(&other) && region_close(&r);
resume:
	dmsetup("resume");
	return false;
}

static bool hangs_late(struct pair *p)
{
	return hangs(p, 0);
}

static bool hangs_sync(struct pair *p)
{
	return hangs(p, SYNC);
}

/* A process that waits for a flush can be killed, although the flush goes on. */
static bool kill_sync(struct pair *p)
{
	struct region r = {};
	struct completion c;
	int status, ret;
	pid_t pid;

	if (!region_open_write(&r, hung_disk, POOL, 0) ||
	    !make_pair(p, (struct pair_opts){ .size = BUF }) || !dmsetup("suspend --noflush"))
		return false;
	if (!wr_post(p, &r, 0, 100000) || !wait_any(p->a.cq, &c) || c.status) {
		dmsetup("resume");
		return fail("WRITE");
	}
	pid = fork();
	if (!pid)
		_exit(nhcadv_direct_sync(r.mr));
	usleep(300000);
	kill(pid, SIGKILL);
	for (unsigned int i = 0; i < 50; i++) {
		ret = waitpid(pid, &status, WNOHANG);
		if (ret)
			break;
		usleep(100000);
	}
	if (!dmsetup("resume"))
		return false;
	if (!ret)
		waitpid(pid, &status, 0);
	REQUIRE(ret == pid && WIFSIGNALED(status), "it was not killed: status %#x", status);
	return region_close(&r);
}

#define MANY	600

static void *sync_region(void *mr)
{
	return (void *)(intptr_t)nhcadv_direct_sync(mr);
}

/* MANY flushes hang at the same time.  Regions of another disk must still work. */
static bool many_hang(struct pair *p)
{
	static pthread_t thread[MANY];
	struct ibv_mr *mr[MANY];
	struct region r = {};
	unsigned int n = 0;
	void *ret;
	bool good;

	if (!region_open_write(&r, hung_disk, POOL, 0) ||
	    !make_pair(p, (struct pair_opts){ .size = BUF }))
		return false;
	for (unsigned int i = 0; i < MANY; i++) {
		mr[i] = reg_write(&r, 0);
		REQUIRE(mr[i], "region %u: %m", i);
	}
	if (!dmsetup("suspend --noflush"))
		return false;
	while (n < MANY && !pthread_create(&thread[n], NULL, sync_region, mr[n]))
		n++;
	sleep(3);
	good = good_works(p);
	if (!dmsetup("resume"))
		return false;
	for (unsigned int i = 0; i < n; i++) {
		pthread_join(thread[i], &ret);
		good &= !ret || fail("nhcadv_direct_sync: %s", strerror((intptr_t)ret));
	}
	for (unsigned int i = 0; i < MANY; i++)
		VERB(ibv_dereg_mr(mr[i]));
	REQUIRE(n == MANY, "only %u threads", n);
	return good && region_close(&r);
}

static const struct test tests[] = {
	{ "only the region of a disk that hangs waits", hangs_late, false },
	{ "only the SYNC region of a disk that hangs waits", hangs_sync, false },
	{ "a process that waits for a flush can be killed", kill_sync, false },
	{ "600 flushes that hang do not stop another pool", many_hang, false },
};

int main(int argc, char **argv)
{
	if (argc < 3)
		return 2;
	name = argv[1];
	snprintf(hung_disk, sizeof(hung_disk), "/dev/mapper/%s", name);
	good_disk = argv[2];
	return run_tests(tests, sizeof(tests) / sizeof(*tests), argc > 3 ? argv[3] : NULL);
}
