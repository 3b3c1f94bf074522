/* SPDX-License-Identifier: GPL-2.0 */
/* A part of dm_odp.c: operations between two QPs, and tests of device memory. */
#ifndef DM_ODP_H
#define DM_ODP_H

#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "verbs_test.h"

#define PAGE		4096UL
#define BIG		(64UL << 30)
#define GRH		40
#define LW		IBV_ACCESS_LOCAL_WRITE
#define OD		IBV_ACCESS_ON_DEMAND
#define PREFETCH	IBV_ADVISE_MR_ADVICE_PREFETCH
#define PREFETCH_WRITE	IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE
#define PREFETCH_PRESENT IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT
#define FLUSH		IBV_ADVISE_MR_FLAG_FLUSH

#ifndef MADV_PAGEOUT
#define MADV_PAGEOUT 21
#endif

/* An address in a region, of either end */
struct at {
	uint64_t addr;
	const struct ibv_mr *mr;
};

struct at at(const void *addr, const struct ibv_mr *mr);
bool rdma_ends(struct pair *p, enum ibv_wr_opcode opcode, struct at local, struct at remote,
	       uint32_t len, enum ibv_wc_status want, const char *what);
bool rdma(struct pair *p, enum ibv_wr_opcode opcode, struct at local, struct at remote,
	  uint32_t len, const char *what);
bool atomic(struct pair *p, enum ibv_wr_opcode opcode, struct at local, struct at remote,
	    uint64_t compare_add, uint64_t swap);
bool message(struct pair *p, struct at from, struct at to, uint32_t len);
uint8_t *anonymous(size_t size);
bool odp_there(void);
bool dm_copy(struct pair *p);
bool dm_region(struct pair *p);
bool dm_mapped(struct pair *p);
bool dm_limit(struct pair *p);

#endif /* DM_ODP_H */
