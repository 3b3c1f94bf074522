// SPDX-License-Identifier: GPL-2.0
/* A part of direct.c and direct_write.c: disks, their regions and their content. */
#define _GNU_SOURCE
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <linux/fs.h>

#include "direct_disk.h"

const char *good_disk, *bad_disk;
unsigned int rounds;
static uint64_t rnd_state = 88172645463325252ULL;

uint32_t rnd(uint32_t below)
{
	rnd_state ^= rnd_state << 13;
	rnd_state ^= rnd_state >> 7;
	rnd_state ^= rnd_state << 17;
	return rnd_state % below;
}

/* ---- disks ---- */

/* Return: the aligned 8 bytes around @off of a disk that was filled with @seed. */
static uint64_t word_at(uint64_t off, uint64_t seed)
{
	uint64_t z = off / 8 * 0x9e3779b97f4a7c15ULL + seed;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	return z ^ (z >> 27);
}

uint8_t byte_at(uint64_t off, uint64_t seed)
{
	return word_at(off, seed) >> off % 8 * 8;
}

bool disk_fill(int fd, uint64_t from, uint64_t len, uint64_t seed)
{
	uint64_t *buf;

	REQUIRE(!posix_memalign((void **)&buf, PAGE, MIB), "no memory");
	for (uint64_t off = from; off < from + len; off += MIB) {
		uint64_t n = len - (off - from) < MIB ? len - (off - from) : MIB;

		for (uint64_t i = 0; i < n / 8; i++)
			buf[i] = word_at(off + 8 * i, seed);
		REQUIRE(pwrite(fd, buf, n, off) == (ssize_t)n, "pwrite at %lu: %m",
			(unsigned long)off);
	}
	free(buf);
	return true;
}

bool same(const uint8_t *p, uint64_t off, uint32_t len, uint64_t seed)
{
	for (uint32_t i = 0; i < len; i++)
		REQUIRE(p[i] == byte_at(off + i, seed), "byte %u of %u at %lu is wrong", i, len,
			(unsigned long)off);
	return true;
}

struct ibv_mr *reg(struct nhcadv_direct_pool *pool, int fd, uint64_t offset, uint64_t length,
		   uint64_t iova)
{
	struct nhcadv_direct_file_attr attr = {
		.pool = pool, .fd = fd, .offset = offset, .length = length, .iova = iova,
		.access = RR,
	};

	errno = 0;
	return nhcadv_direct_reg_file(dev.pd, &attr);
}

struct ibv_mr *reg_write(struct region *r, unsigned int flags)
{
	struct nhcadv_direct_file_attr attr = {
		.pool = r->pool, .fd = r->fd, .length = r->size, .flags = flags,
		.access = RR | LW | RW | IBV_ACCESS_MW_BIND | FLUSHES,
	};

	errno = 0;
	return nhcadv_direct_reg_file(dev.pd, &attr);
}

struct nhcadv_direct_pool *pool_make(uint32_t blocks)
{
	struct nhcadv_direct_pool_init_attr attr = { .blocks = blocks };

	errno = 0;
	return nhcadv_direct_alloc_pool(dev.ctx, &attr);
}

/* Open a disk and make a pool for it. */
static bool region_prepare(struct region *r, const char *disk, uint32_t blocks)
{
	struct stat st;

	r->fd = open(disk, O_RDWR | O_DIRECT);
	REQUIRE(r->fd >= 0, "%s: %m", disk);
	REQUIRE(!fstat(r->fd, &st), "fstat: %m");
	r->size = st.st_size;
	REQUIRE(S_ISREG(st.st_mode) || !ioctl(r->fd, BLKGETSIZE64, &r->size), "size of %s: %m",
		disk);
	r->pool = pool_make(blocks);
	REQUIRE(r->pool, "nhcadv_direct_alloc_pool: %m");
	return true;
}

bool region_open(struct region *r, const char *disk, uint32_t blocks)
{
	if (!region_prepare(r, disk, blocks))
		return false;
	r->mr = reg(r->pool, r->fd, 0, r->size, 0);
	REQUIRE(r->mr, "nhcadv_direct_reg_file: %m");
	return true;
}

bool region_open_write(struct region *r, const char *disk, uint32_t blocks, unsigned int flags)
{
	if (!region_prepare(r, disk, blocks))
		return false;
	r->mr = reg_write(r, flags);
	REQUIRE(r->mr, "nhcadv_direct_reg_file for writing: %m");
	return true;
}

bool region_close(struct region *r)
{
	if (r->mr)
		VERB(ibv_dereg_mr(r->mr));
	VERB(nhcadv_direct_free_pool(r->pool));
	close(r->fd);
	return true;
}

/* ---- operations ---- */

bool read_ends(struct pair *p, uint64_t remote, uint32_t rkey, uint32_t len,
	       enum ibv_wc_status want, const char *what)
{
	struct ibv_sge sge = sge_of(&p->a, 0, len);
	struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_READ, .sg_list = &sge, .num_sge = 1,
				  .wr.rdma = { remote, rkey } };

	return request_ends(p, &wr, want, what);
}

bool write_ends(struct pair *p, struct ibv_sge *sge, int num, enum ibv_wc_status want,
		const char *what)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_WRITE, .sg_list = sge, .num_sge = num,
				  .wr.rdma = { (uintptr_t)p->b.buf, p->b.mr->rkey } };

	return request_ends(p, &wr, want, what);
}

uint32_t some_len(uint32_t most)
{
	switch (rnd(4)) {
	case 0:
		return 1 + rnd(200);
	case 1:
		return 1 + rnd(9000);
	case 2:
		return PAGE * (1 + rnd(32));
	default:
		return 1 + rnd(most);
	}
}
