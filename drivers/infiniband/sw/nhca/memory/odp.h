/* SPDX-License-Identifier: GPL-2.0 */
/*
 * On-demand paging: regions over user memory that is not pinned.  A page is translated
 * to after somebody wanted it, and until the kernel takes it away.
 */
#ifndef NHCA_ODP_H
#define NHCA_ODP_H

#include <linux/types.h>

#include "memory.h"

struct nhca_odp;

/**
 * enum nhca_odp_mode - what a fault shall achieve
 * @NHCA_ODP_READ:    pages can be read
 * @NHCA_ODP_WRITE:   and written
 * @NHCA_ODP_PRESENT: pages that the process has at the moment are translated to, others
 *                    not
 */
enum nhca_odp_mode {
	NHCA_ODP_READ,
	NHCA_ODP_WRITE,
	NHCA_ODP_PRESENT,
};

#ifdef CONFIG_INFINIBAND_ON_DEMAND_PAGING

/**
 * nhca_odp_seg - nhca_mr_seg() of an on-demand region
 * Return: 0; -EAGAIN if the page is not translated to, or not for writing.
 */
int nhca_odp_seg(struct nhca_odp *odp, u64 off, u32 max, bool write, struct nhca_seg *seg);

/**
 * nhca_odp_fault - make pages present
 * @off, @len: bytes of the region; what lies behind its end is left out
 * They may be gone again at any time.
 * Context: process, sleeps as long as the page fault takes; the caller counts @odp.
 * Return: bytes from @off on that were dealt with, at least 1; -EFAULT: no memory
 * there, or not with these rights; -ENOMEM; -ENOSPC; -EBUSY: the memory is being
 * changed all the time; -EINTR; -ENOENT: the region was deregistered meanwhile.
 */
s64 nhca_odp_fault(struct nhca_odp *odp, u64 off, u64 len, enum nhca_odp_mode mode);

/* counted, as a fault may outlast the region; to put sleeps, to get is for any context */
struct nhca_odp *nhca_odp_get(struct nhca_odp *odp);
void nhca_odp_put(struct nhca_odp *odp);

/**
 * nhca_odp_close - the region is being deregistered: faults under way, and those that are queued,
 * end within a few pages
 * Nobody waits for them: they hold what they need.  Takes NULL.
 * Context: any.
 */
void nhca_odp_close(struct nhca_odp *odp);

/* prefetches of a region that may be queued at a time */
#define NHCA_ODP_PREFETCHES	64

/**
 * nhca_odp_prefetch_begin - one prefetch more; nhca_odp_prefetch_end() when it is over
 * Context: any.  Return: false if there are NHCA_ODP_PREFETCHES.
 */
bool nhca_odp_prefetch_begin(struct nhca_odp *odp);
void nhca_odp_prefetch_end(struct nhca_odp *odp);

/* a number that no other region has or had */
u64 nhca_odp_id(const struct nhca_odp *odp);

/**
 * nhca_fault_queue - let a worker fault something in; nobody waits for it
 * Context: process.
 * Return: 0; -ENOMEM; -EAGAIN: NHCA_ODP_PREFETCHES of this region are queued.
 */
int nhca_fault_queue(struct nhca_odp *odp, u64 off, u64 len, enum nhca_odp_mode mode);

/* module load and unload (memory/fault.c) */
int nhca_fault_init(void);
void nhca_fault_exit(void);
/* the workers' queues: what an engine waits for, and what nobody does */
extern struct workqueue_struct *nhca_fault_wq;
extern struct workqueue_struct *nhca_prefetch_wq;

#else

static inline int nhca_odp_seg(struct nhca_odp *odp, u64 off, u32 max, bool write,
			       struct nhca_seg *seg)
{
	return -EACCES;
}

static inline void nhca_odp_close(struct nhca_odp *odp) { }
static inline void nhca_odp_put(struct nhca_odp *odp) { }
static inline int nhca_fault_init(void) { return 0; }
static inline void nhca_fault_exit(void) { }

#endif

#endif /* NHCA_ODP_H */
