/* SPDX-License-Identifier: GPL-2.0 */
/* What direct.c and direct_write.c share. */
#ifndef DIRECT_DISK_H
#define DIRECT_DISK_H

#include <infiniband/nhcadv_direct.h>

#include "verbs_test.h"

#define RR		IBV_ACCESS_REMOTE_READ
#define LW		IBV_ACCESS_LOCAL_WRITE
#define RW		IBV_ACCESS_REMOTE_WRITE
#define FLUSHES		(IBV_ACCESS_FLUSH_GLOBAL | IBV_ACCESS_FLUSH_PERSISTENT)
#define PAGE		4096UL
#define MIB		(1UL << 20)
#define BAD_AT		MIB
#define POOL		64
#define BUF		(4 * MIB)

/* A disk, its pool and its region */
struct region {
	int fd;
	uint64_t size;
	struct nhcadv_direct_pool *pool;
	struct ibv_mr *mr;
};

/* Paths of the disks; bad_disk fails I/O to its 4 KiB at BAD_AT.  Number of rounds of a test */
extern const char *good_disk, *bad_disk;
extern unsigned int rounds;

uint32_t rnd(uint32_t below);

/* The byte at @off of a disk that was filled with @seed. */
uint8_t byte_at(uint64_t off, uint64_t seed);
bool disk_fill(int fd, uint64_t from, uint64_t len, uint64_t seed);
bool same(const uint8_t *p, uint64_t off, uint32_t len, uint64_t seed);

/* reg() registers a part of a file for reading, reg_write() all of @r for reading and writing. */
struct ibv_mr *reg(struct nhcadv_direct_pool *pool, int fd, uint64_t offset, uint64_t length,
		   uint64_t iova);
struct ibv_mr *reg_write(struct region *r, unsigned int flags);
struct nhcadv_direct_pool *pool_make(uint32_t blocks);

bool region_open(struct region *r, const char *disk, uint32_t blocks);
bool region_open_write(struct region *r, const char *disk, uint32_t blocks, unsigned int flags);
bool region_close(struct region *r);

/* End a READs @len bytes of the region @rkey into its buffer. The READ must complete with @want. */
bool read_ends(struct pair *p, uint64_t remote, uint32_t rkey, uint32_t len,
	       enum ibv_wc_status want, const char *what);

/* End a WRITEs @num SGEs to end b's memory. The WRITE must complete with @want. */
bool write_ends(struct pair *p, struct ibv_sge *sge, int num, enum ibv_wc_status want,
		const char *what);

/* A random length up to @most, often a short one. */
uint32_t some_len(uint32_t most);

#endif /* DIRECT_DISK_H */
