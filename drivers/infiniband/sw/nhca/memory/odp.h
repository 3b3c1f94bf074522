/* SPDX-License-Identifier: GPL-2.0 */
/*
 * On-demand paging: regions of user memory that is not pinned.  A page has a TCE from its fault
 * until the kernel takes the page away.
 */
#ifndef NHCA_ODP_H
#define NHCA_ODP_H

#include <linux/types.h>

#include "memory.h"

struct nhca_faultq;
struct nhca_odp;

/**
 * enum nhca_odp_mode - purpose of a fault
 * @NHCA_ODP_READ: make pages readable
 * @NHCA_ODP_WRITE: make pages readable and writable
 * @NHCA_ODP_PRESENT: set the TCEs of pages that the process has now, and fault in no other pages
 */
enum nhca_odp_mode {
	NHCA_ODP_READ,
	NHCA_ODP_WRITE,
	NHCA_ODP_PRESENT,
};

#ifdef CONFIG_INFINIBAND_ON_DEMAND_PAGING

/**
 * nhca_odp_fault - make pages present
 * @odp:  memory of the region; the caller holds a reference
 * @off:  offset in the region
 * @len:  bytes; those after the end of the region are ignored
 * @mode: purpose
 *
 * The kernel may take the pages away again at any time.
 * Context: process, sleeps as long as the page faults take.
 * Return: number of bytes from @off on that were handled, at least 1; -EFAULT: @len is 0, @off is
 * outside the region, no memory is mapped at this address of the process, the process has exited,
 * or the memory does not permit this access or is that of a PCI device; -EBUSY: the kernel has
 * changed the page tables during each attempt, for HMM_RANGE_DEFAULT_TIMEOUT ms; -EINTR: a signal
 * is pending; -ENOENT: the region was deregistered during the fault; -ENOMEM: no memory, or
 * nhca_range_alloc() has failed with -EDQUOT or -ENOSPC.
 */
s64 nhca_odp_fault(struct nhca_odp *odp, u64 off, u64 len, enum nhca_odp_mode mode);

/**
 * nhca_odp_get - take a reference, because the region may be deregistered during a fault
 * @odp: memory of the region
 * Context: any.
 * Return: @odp.
 */
struct nhca_odp *nhca_odp_get(struct nhca_odp *odp);

/**
 * nhca_odp_put - release a reference; the last one frees @odp
 * @odp: memory of the region
 * Context: process, sleeps.
 */
void nhca_odp_put(struct nhca_odp *odp);

/**
 * nhca_odp_start - get the address of a region's first byte
 * @odp: memory of the region
 * Context: any.
 * Return: the address in the process.
 */
u64 nhca_odp_start(const struct nhca_odp *odp);

/**
 * nhca_odp_rights - let later faults follow the new rights of a region
 * @odp:    memory of the region
 * @access: enum ib_access_flags
 *
 * The TCEs of present pages do not change: a TCE with more rights than the key gives no access,
 * because each access needs the right of the key as well.
 * Context: any; the key is closed.
 */
void nhca_odp_rights(struct nhca_odp *odp, int access);

/**
 * nhca_odp_owner - give the TCEs of a region to another protection domain
 * @odp: memory of the region
 * @pd:  protection domain
 * Context: process, sleeps.
 */
void nhca_odp_owner(struct nhca_odp *odp, struct ib_pd *pd);

/* maximum number of prefetches of one region that have not ended */
#define NHCA_ODP_PREFETCHES	64

/**
 * nhca_odp_prefetch_begin - count one more prefetch of a region
 * @odp: memory of the region
 * Context: any.
 * Return: false if NHCA_ODP_PREFETCHES are counted already.
 */
bool nhca_odp_prefetch_begin(struct nhca_odp *odp);

/**
 * nhca_odp_prefetch_end - undo the count of nhca_odp_prefetch_begin()
 * @odp: memory of the region
 * Context: any.
 */
void nhca_odp_prefetch_end(struct nhca_odp *odp);

/**
 * nhca_odp_faultq - get the queue for the page faults of a region's process
 * @odp: memory of the region
 * Context: any.
 * Return: the queue; valid as long as @odp.
 */
struct nhca_faultq *nhca_odp_faultq(const struct nhca_odp *odp);

/**
 * nhca_odp_id - get a number that no other region has or had
 * @odp: memory of the region
 * Context: any.
 * Return: the number, not 0.
 */
u64 nhca_odp_id(const struct nhca_odp *odp);

/**
 * nhca_fault_request - let a worker fault in bytes for which the owner of @f waits
 * @f:    state of the owner
 * @odp:  memory of the region
 * @off:  offset in the region
 * @len:  bytes; at most 1 MiB of them are faulted in
 * @mode: purpose
 * Context: live section.
 * Return: as nhca_iter_fault().
 */
int nhca_fault_request(struct nhca_fault *f, struct nhca_odp *odp, u64 off, u64 len,
		       enum nhca_odp_mode mode);

/**
 * nhca_fault_queue - queue a prefetch; its result is not reported
 * @odp:  memory of the region
 * @off:  offset in the region
 * @len:  bytes
 * @mode: purpose
 * Context: process, sleeps.
 * Return: 0; -ENOMEM: no memory; -EAGAIN: NHCA_ODP_PREFETCHES prefetches have not ended yet.
 */
int nhca_fault_queue(struct nhca_odp *odp, u64 off, u64 len, enum nhca_odp_mode mode);

/**
 * nhca_fault_init - allocate the workqueues when the module is loaded (memory/fault.c)
 * Context: process, sleeps.
 * Return: 0; -ENOMEM: no memory.
 */
int nhca_fault_init(void);

/**
 * nhca_fault_exit - destroy the workqueues when the module is unloaded
 * Context: process, sleeps.
 */
void nhca_fault_exit(void);

/*
 * nhca_fault_wq: faults for which a QP or channel waits, and odp_reap(); nhca_prefetch_wq:
 * prefetches
 */
extern struct workqueue_struct *nhca_fault_wq;
extern struct workqueue_struct *nhca_prefetch_wq;

#else

static inline u64 nhca_odp_start(const struct nhca_odp *odp) { return 0; }
static inline void nhca_odp_rights(struct nhca_odp *odp, int access) { }
static inline void nhca_odp_owner(struct nhca_odp *odp, struct ib_pd *pd) { }
static inline int nhca_fault_init(void) { return 0; }
static inline void nhca_fault_exit(void) { }

#endif

#endif /* NHCA_ODP_H */
