// SPDX-License-Identifier: GPL-2.0
/*
 * Loss of power: what a FLUSH has made durable is in the log of dm-log-writes.
 *
 *   direct_power run DISK NAME COUNT PLACEMENT	on the log-writes device NAME: COUNT times write
 *		a part of the region of DISK (NAME or a file on it), flush as PLACEMENT says
 *		(persistent or global), and put a mark into the log
 *   direct_power check LOG COUNT	replay the log into memory; at each mark the image of the
 *		disk must have the bytes of all earlier WRITEs
 *   direct_power lacks LOG COUNT	the same; at some marks bytes must be missing
 *   direct_power replay LOG DISK MARK	write the log up to a mark to another disk
 *   direct_power compare FILE MARK	the file must have the bytes of all WRITEs before the mark
 *
 * Both ends are in this process; verbs_test.h describes the printed results.
 */
#define _GNU_SOURCE
#include <endian.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <linux/dm-ioctl.h>

#include "direct_disk.h"

#define AREA		MIB
#define MOST		(16 * 1024)

static unsigned int count;
static const char *device, *log_path;
static uint8_t shadow[AREA], image[AREA] __attribute__((aligned(4096)));

/* ---- the WRITEs: number @n is the same in each run of the program ---- */

static uint64_t mix(uint64_t z)
{
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

static uint32_t write_len(unsigned int n)
{
	uint64_t h = mix(n * 2 + 1);

	/* parts of blocks and whole blocks */
	return h % 3 ? 1 + (h >> 8) % MOST : PAGE * (1 + (h >> 8) % 4);
}

static uint64_t write_off(unsigned int n)
{
	uint64_t h = mix(n * 2 + 2);
	uint64_t off = h % (AREA - write_len(n));

	return mix(n * 2 + 1) % 3 ? off : off & ~(PAGE - 1);
}

static void write_fill(uint8_t *p, unsigned int n)
{
	for (uint32_t i = 0; i < write_len(n); i++)
		p[i] = mix(n) + i * 7 + (i >> 8);
}

/* Do in @shadow what WRITE @n does. */
static void shadow_write(unsigned int n)
{
	write_fill(shadow + write_off(n), n);
}

/* ---- run ---- */

static uint8_t placement;

/* Do what `dmsetup message` does, without a process for each mark. */
static bool mark(const char *text, unsigned int n)
{
	static int control = -1;
	struct {
		struct dm_ioctl head;
		uint64_t sector;
		char text[64];
	} request = {
		.head = {
			.version = { DM_VERSION_MAJOR, 0, 0 },
			.data_size = sizeof(request),
			.data_start = sizeof(request.head),
		},
	};

	if (control < 0)
		control = open("/dev/mapper/control", O_RDWR);
	snprintf(request.head.name, sizeof(request.head.name), "%s", device);
	snprintf(request.text, sizeof(request.text), "mark %s%u", text, n);
	REQUIRE(control >= 0 && !ioctl(control, DM_TARGET_MSG, &request), "mark %u: %m", n);
	return true;
}

static bool write_and_flush(struct pair *p, struct region *r, unsigned int n)
{
	struct ibv_sge sge = sge_of(&p->a, 0, write_len(n));
	struct ibv_qp_ex *x = p->a.qpx;
	struct completion c;

	write_fill(p->a.buf, n);
	ibv_wr_start(x);
	x->wr_id = 1;
	x->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_rdma_write(x, r->mr->rkey, write_off(n));
	ibv_wr_set_sge(x, sge.lkey, sge.addr, sge.length);
	VERB(ibv_wr_complete(x));
	REQUIRE(wait_any(p->a.cq, &c) && !c.status, "WRITE %u: %s", n,
		ibv_wc_status_str(c.status));
	ibv_wr_start(x);
	x->wr_id = 2;
	x->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_flush(x, r->mr->rkey, write_off(n), write_len(n), placement, IBV_FLUSH_RANGE);
	VERB(ibv_wr_complete(x));
	REQUIRE(wait_any(p->a.cq, &c) && !c.status, "FLUSH %u: %s", n,
		ibv_wc_status_str(c.status));
	return true;
}

static bool run(struct pair *p)
{
	struct ibv_qp_attr attr = { .qp_access_flags = RR | LW | RW | FLUSHES };
	struct region r = {};

	if (!region_open_write(&r, good_disk, POOL, 0) ||
	    !make_pair(p, (struct pair_opts){ .size = BUF, .more_ops = IBV_QP_EX_WITH_FLUSH }))
		return false;
	VERB(ibv_modify_qp(p->b.qp, &attr, IBV_QP_ACCESS_FLAGS));
	for (unsigned int n = 0; n < count; n++)
		if (!write_and_flush(p, &r, n) || !mark("flush", n))
			return false;
	return region_close(&r);
}

/* ---- the log: drivers/md/dm-log-writes.c ---- */

#define LOG_MAGIC	0x6a736677736872ULL
#define LOG_DISCARD	4
#define LOG_MARK	8

struct log_super {
	uint64_t magic, version, entries;
	uint32_t sector;
} __attribute__((packed));

struct log_entry {
	uint64_t sector, sectors, flags, bytes;
};

struct log {
	int fd;
	uint64_t left, at;
	uint32_t unit;
};

static bool log_open(struct log *l)
{
	uint8_t buf[PAGE];
	struct log_super s;

	l->fd = open(log_path, O_RDONLY);
	REQUIRE(l->fd >= 0 && pread(l->fd, buf, PAGE, 0) == PAGE, "%s: %m", log_path);
	memcpy(&s, buf, sizeof(s));
	REQUIRE(le64toh(s.magic) == LOG_MAGIC && le64toh(s.version) == 1, "%s has no log",
		log_path);
	l->left = le64toh(s.entries);
	l->unit = le32toh(s.sector);
	l->at = l->unit;
	return true;
}

/* Read the next entry.  @name: set to the text of a mark.  Return: false at the end or an error. */
static bool log_next(struct log *l, struct log_entry *e, char *name, size_t size)
{
	uint8_t buf[PAGE];

	if (!l->left)
		return false;
	l->left--;
	REQUIRE(pread(l->fd, buf, l->unit, l->at) == (ssize_t)l->unit, "log at %lu: %m",
		(unsigned long)l->at);
	memcpy(e, buf, sizeof(*e));
	e->sector = le64toh(e->sector);
	e->sectors = le64toh(e->sectors);
	e->flags = le64toh(e->flags);
	e->bytes = le64toh(e->bytes);
	*name = 0;
	if (e->flags & LOG_MARK)
		snprintf(name, size, "%.*s", (int)e->bytes, (char *)buf + sizeof(*e));
	l->at += l->unit;
	return true;
}

/* Skip the data of an entry.  Return: its offset in the log. */
static uint64_t log_data(struct log *l, const struct log_entry *e)
{
	uint64_t at = l->at;

	if (!(e->flags & LOG_DISCARD))
		l->at += e->sectors * l->unit;
	return at;
}

/* Copy the data of an entry into the image, which has the first bytes of the disk. */
static bool image_write(struct log *l, const struct log_entry *e)
{
	uint64_t from = e->sector * l->unit, len = e->sectors * l->unit, at = log_data(l, e);

	if (from >= AREA || !len)
		return true;
	len = len < AREA - from ? len : AREA - from;
	if (e->flags & LOG_DISCARD)
		memset(image + from, 0, len);
	else
		REQUIRE(pread(l->fd, image + from, len, at) == (ssize_t)len, "log data: %m");
	return true;
}

/* Return: number of marks at which the image lacks bytes; -1: an error. */
static int missing_marks(unsigned int *marks)
{
	struct log_entry e;
	struct log l = {};
	char name[64];
	int bad = 0;

	if (!log_open(&l))
		return -1;
	*marks = 0;
	while (log_next(&l, &e, name, sizeof(name))) {
		if (!image_write(&l, &e))
			return -1;
		if (strncmp(name, "flush", 5))
			continue;
		if (strtoul(name + 5, NULL, 10) != *marks)
			return fail("mark %s follows %u", name, *marks) - 1;
		shadow_write((*marks)++);
		bad += memcmp(image, shadow, AREA) != 0;
	}
	close(l.fd);
	return bad;
}

static bool check(struct pair *p)
{
	unsigned int marks;
	int bad = missing_marks(&marks);

	(void)p;
	if (bad < 0)
		return false;
	printf("# %u FLUSHes replayed, bytes are missing after %d\n", marks, bad);
	REQUIRE(marks == count, "the log has %u marks", marks);
	REQUIRE(!bad, "bytes are missing after %d of %u FLUSHes", bad, marks);
	return true;
}

/* Without durable FLUSHes bytes must be missing, or the check could not find an error. */
static bool lacks(struct pair *p)
{
	unsigned int marks;
	int bad = missing_marks(&marks);

	(void)p;
	if (bad < 0)
		return false;
	printf("# %u marks, bytes are missing after %d\n", marks, bad);
	REQUIRE(marks == count && bad > 0, "no bytes are missing at %u marks", marks);
	return true;
}

static bool replay(struct pair *p)
{
	int fd = open(good_disk, O_RDWR);
	struct log_entry e;
	struct log l = {};
	char name[64], want[64];
	uint8_t *buf;

	(void)p;
	snprintf(want, sizeof(want), "flush%u", count);
	REQUIRE(fd >= 0, "%s: %m", good_disk);
	if (!log_open(&l))
		return false;
	while (log_next(&l, &e, name, sizeof(name))) {
		uint64_t len = e.sectors * l.unit, at = log_data(&l, &e);

		if (!strcmp(name, want)) {
			REQUIRE(!fsync(fd), "fsync: %m");
			close(fd);
			return true;
		}
		if (!len || e.flags & LOG_DISCARD)
			continue;
		buf = malloc(len);
		REQUIRE(buf && pread(l.fd, buf, len, at) == (ssize_t)len &&
			pwrite(fd, buf, len, e.sector * l.unit) == (ssize_t)len, "replay: %m");
		free(buf);
	}
	return fail("the log has no mark %s", want);
}

static bool compare(struct pair *p)
{
	int fd = open(good_disk, O_RDONLY);

	(void)p;
	for (unsigned int n = 0; n <= count; n++)
		shadow_write(n);
	REQUIRE(fd >= 0 && pread(fd, image, AREA, 0) == (ssize_t)AREA, "%s: %m", good_disk);
	close(fd);
	for (unsigned int i = 0; i < AREA; i++)
		REQUIRE(image[i] == shadow[i], "byte %u is wrong after mark %u", i, count);
	return true;
}

static const struct test run_test = { "WRITEs and FLUSHes complete", run, false };
static const struct test check_test = { "after each FLUSH the log has its bytes", check, false };
static const struct test lacks_test = { "without it bytes are missing", lacks, false };
static const struct test replay_test = { "the log is replayed", replay, false };
static const struct test compare_test = { "the file has all flushed bytes", compare, false };

int main(int argc, char **argv)
{
	if (argc < 4)
		return 2;
	if (!strcmp(argv[1], "run") && argc > 5) {
		good_disk = argv[2];
		device = argv[3];
		count = atoi(argv[4]);
		placement = strcmp(argv[5], "global") ? IBV_FLUSH_PERSISTENT : IBV_FLUSH_GLOBAL;
		return run_tests(&run_test, 1, NULL);
	}
	log_path = argv[2];
	count = atoi(argv[argc - 1]);
	good_disk = !strcmp(argv[1], "compare") ? argv[2] : argv[3];
	if (!strcmp(argv[1], "check"))
		return run_tests(&check_test, 1, NULL);
	if (!strcmp(argv[1], "lacks"))
		return run_tests(&lacks_test, 1, NULL);
	if (!strcmp(argv[1], "replay"))
		return run_tests(&replay_test, 1, NULL);
	return strcmp(argv[1], "compare") ? 2 : run_tests(&compare_test, 1, NULL);
}
