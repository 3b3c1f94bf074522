// SPDX-License-Identifier: GPL-2.0
/*
 * Many queue pairs of a peer read a disk (nhcadv_direct_reg_file()).
 *
 *   server: direct_far [-d DEVICE] [-g GID-INDEX] [-p PORT] -n QPS -m MIB -b BLOCKS -f DISK
 *   client: direct_far [-d DEVICE] [-g GID-INDEX] [-p PORT] -n QPS -m MIB -b BLOCKS HOST
 *
 * The server fills DISK.  Each queue pair of the client reads MIB of it, with several READs at a
 * time, and the client compares all bytes.  The server's process sleeps until the client has read
 * everything.  Then it prints how much CPU time and how many context switches it had.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/resource.h>

#include <infiniband/nhcadv_direct.h>

#include "peers.h"

#define MIB	(1UL << 20)
#define CHUNK	(128UL << 10)
#define DEPTH	4
#define QPS	64

struct offer {
	uint64_t size;
	uint32_t rkey;
	uint32_t pad;
};

static const char *disk;
static uint32_t nqps = 1, blocks = 256;
static uint64_t size = MIB;
static struct ibv_cq *cq;
static struct ibv_qp *qp[QPS];

/* Each word of a page depends on its offset on the disk. */
static void page_fill(uint64_t *p, uint64_t off)
{
	for (unsigned int i = 0; i < 512; i++)
		p[i] = mix(off + 8 * i);
}

static void disk_fill(int fd)
{
	uint64_t *buf = pages(MIB);

	for (uint64_t off = 0; off < size; off += MIB) {
		for (uint64_t i = 0; i < MIB; i += 4096)
			page_fill(buf + i / 8, off + i);
		must(pwrite(fd, buf, MIB, off) == (ssize_t)MIB);
	}
	must(!fsync(fd));
}

static void qps_connect(void)
{
	uint32_t ours[QPS] = {}, other[QPS];

	for (uint32_t i = 0; i < nqps; i++) {
		qp[i] = qp_make(IBV_QPT_RC, cq, cq, DEPTH, 1);
		qp_init(qp[i]);
		ours[i] = qp[i]->qp_num;
	}
	exchange(ours, other, sizeof(ours));
	for (uint32_t i = 0; i < nqps; i++)
		qp_connect(qp[i], other[i], 1, 1);
}

static long cached_kb(void)
{
	char line[128];
	long kb = 0;
	FILE *f = fopen("/proc/meminfo", "r");

	must(f);
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "Cached: %ld kB", &kb) == 1)
			break;
	fclose(f);
	return kb;
}

static void serve(void)
{
	struct nhcadv_direct_pool_init_attr init = { .blocks = blocks };
	struct nhcadv_direct_file_attr attr = { .access = IBV_ACCESS_REMOTE_READ };
	struct nhcadv_direct_info info;
	struct rusage before, after;
	struct offer offer = {};
	struct ibv_mr *mr;
	long cached, us;

	attr.fd = open(disk, O_RDWR | O_DIRECT);
	must(attr.fd >= 0);
	disk_fill(attr.fd);
	attr.pool = nhcadv_direct_alloc_pool(context, &init);
	must(attr.pool);
	attr.length = size;
	mr = nhcadv_direct_reg_file(pd, &attr);
	must(mr);
	offer.size = size;
	offer.rkey = mr->rkey;
	qps_connect();
	tell(&offer, sizeof(offer));
	meet(1);
	cached = cached_kb();
	getrusage(RUSAGE_SELF, &before);
	/* the process sleeps here until the client has read everything */
	meet(2);
	getrusage(RUSAGE_SELF, &after);
	us = (after.ru_utime.tv_sec - before.ru_utime.tv_sec) * 1000000L +
	     after.ru_utime.tv_usec - before.ru_utime.tv_usec +
	     (after.ru_stime.tv_sec - before.ru_stime.tv_sec) * 1000000L +
	     after.ru_stime.tv_usec - before.ru_stime.tv_usec;
	verb(nhcadv_direct_query(mr, &info));
	printf("# %lu reads of the disk, %lu MiB, %lu refills, at most %u of %u blocks\n",
	       (unsigned long)info.reads, (unsigned long)(info.read_bytes / MIB),
	       (unsigned long)info.refills, info.blocks_most, info.blocks);
	printf("# the process: %ld us, %ld switches; page cache: %+ld KiB\n", us,
	       after.ru_nvcsw - before.ru_nvcsw, cached_kb() - cached);
	if (info.errors)
		die("%lu errors of the disk", (unsigned long)info.errors);
	if (info.blocks_most > blocks)
		die("%u blocks were in use", info.blocks_most);
	/* the wait itself is one switch; allow two more */
	if (after.ru_nvcsw - before.ru_nvcsw > 3)
		die("%ld context switches", after.ru_nvcsw - before.ru_nvcsw);
	verb(ibv_dereg_mr(mr));
	verb(nhcadv_direct_free_pool(attr.pool));
}

static void post(uint32_t i, uint64_t off, uint8_t *to, const struct ibv_mr *mr, uint32_t rkey)
{
	struct ibv_sge sge = { (uintptr_t)to, CHUNK, mr->lkey };
	struct ibv_send_wr *bad, wr = {
		.wr_id = (uint64_t)i << 32 | off / CHUNK, .opcode = IBV_WR_RDMA_READ,
		.sg_list = &sge, .num_sge = 1, .send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { off, rkey },
	};

	verb(ibv_post_send(qp[i], &wr, &bad));
}

/* Compare a chunk, and overwrite it, so that bytes of an earlier READ do not pass. */
static void check(uint8_t *p, uint64_t off)
{
	uint64_t page[512];

	for (uint64_t i = 0; i < CHUNK; i += 4096) {
		page_fill(page, off + i);
		if (memcmp(p + i, page, 4096))
			die("page %lu is wrong", (unsigned long)((off + i) / 4096));
	}
	memset(p, 0x5a, CHUNK);
}

static void fetch(void)
{
	uint64_t each = size / CHUNK, left = each * nqps, t;
	uint64_t next[QPS];
	uint8_t *buf = pages(nqps * DEPTH * CHUNK);
	struct ibv_mr *mr;
	struct offer offer;
	uint32_t i, j;

	mr = ibv_reg_mr(pd, buf, nqps * DEPTH * CHUNK, IBV_ACCESS_LOCAL_WRITE);
	must(mr);
	qps_connect();
	hear(&offer, sizeof(offer));
	must(offer.size == size);
	meet(1);
	t = now_ns();
	for (i = 0; i < nqps; i++)
		for (j = 0, next[i] = 0; j < DEPTH && next[i] < each; j++)
			post(i, next[i]++ * CHUNK, buf + (i * DEPTH + j) * CHUNK, mr, offer.rkey);
	for (; left; left--) {
		struct ibv_wc wc = wait_wc(cq, "READ");
		uint64_t index = wc.wr_id & UINT32_MAX;
		uint8_t *to;

		i = wc.wr_id >> 32;
		if (wc.status)
			die("READ: %s", ibv_wc_status_str(wc.status));
		/* READs of a queue pair complete in order, so each uses the slot index % DEPTH */
		to = buf + (i * DEPTH + index % DEPTH) * CHUNK;
		check(to, index * CHUNK);
		if (next[i] < each)
			post(i, next[i]++ * CHUNK, to, mr, offer.rkey);
	}
	t = now_ns() - t;
	printf("# %lu MiB in %lu ms\n", (unsigned long)(each * nqps * CHUNK / MIB),
	       (unsigned long)(t / 1000000));
	meet(2);
}

int main(int argc, char **argv)
{
	int letter;

	program = "direct_far";
	setvbuf(stdout, NULL, _IOLBF, 0);
	while ((letter = getopt(argc, argv, "d:g:p:n:m:b:f:")) != -1)
		switch (letter) {
		case 'n':
			nqps = atoi(optarg);
			break;
		case 'm':
			size = strtoull(optarg, NULL, 0) * MIB;
			break;
		case 'b':
			blocks = atoi(optarg);
			break;
		case 'f':
			disk = optarg;
			break;
		default:
			if (!peer_option(letter))
				return 2;
		}
	peer_host = optind < argc ? argv[optind] : NULL;
	must(nqps && nqps <= QPS && (peer_host ? !disk : !!disk));
	sock_open();
	open_device();
	cq = ibv_create_cq(context, QPS * DEPTH, NULL, NULL, 0);
	must(cq);
	say_hello();
	if (disk)
		serve();
	else
		fetch();
	return 0;
}
