/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Limits for the workers that fault in on-demand pages, and the work that waits because of them.
 *
 * A page fault may take very long: a FUSE or NFS server may never answer, and the reclaim of a full
 * memory cgroup may take minutes.  The worker sleeps until the fault ends, and the workqueues have
 * a limited number of workers for the whole host.  So each process and each user may have only a
 * part of these workers at a time.  Further work of the process or user waits in struct
 * nhca_faultq, and does not delay the work of others.
 */
#ifndef NHCA_FAULTQ_H
#define NHCA_FAULTQ_H

#include <linux/list.h>
#include <linux/types.h>
#include <linux/workqueue.h>

struct mm_struct;
struct nhca_user;

/* maximum number of workers for which QPs and channels wait: of an address space, of a user */
#define NHCA_FAULTQ_MM			16u
#define NHCA_FAULTQ_USER		32u
/* maximum number of workers that prefetch: of an address space, of a user, of the host */
#define NHCA_FAULTQ_PREFETCH_MM		1u
#define NHCA_FAULTQ_PREFETCH_USER	2u
#define NHCA_FAULTQ_PREFETCHES		32u

/**
 * enum nhca_faultq_kind - kinds of work; each kind has its own workqueue
 * @NHCA_FAULTQ_AWAITED:  nhca_fault_wq: a QP or channel waits for the page
 * @NHCA_FAULTQ_PREFETCH: nhca_prefetch_wq: nobody waits
 * @NHCA_FAULTQ_KINDS:    number of kinds
 */
enum nhca_faultq_kind {
	NHCA_FAULTQ_AWAITED,
	NHCA_FAULTQ_PREFETCH,
	NHCA_FAULTQ_KINDS,
};

/**
 * struct nhca_faultq_work - work to be done by a worker
 * @work: the work; the caller initializes it, and its function must call nhca_faultq_end()
 * @list: private
 */
struct nhca_faultq_work {
	struct work_struct work;
	struct list_head list;
};

/* the work of one address space */
struct nhca_faultq;

/**
 * nhca_faultq_get - find or make the queue of an address space
 * @mm:  the address space, which exists until nhca_faultq_put(); only its address is used
 * @user: record in nhca_host_users of the user who is charged; NULL: nobody, so only the limits
 *       of an address space apply.  If the queue already exists, its user does not change.
 * Context: process, sleeps.
 * Return: the queue with a counted reference; NULL: out of memory.
 */
struct nhca_faultq *nhca_faultq_get(struct mm_struct *mm, struct nhca_user *user);

/**
 * nhca_faultq_get_current - nhca_faultq_get() for the calling process and its user
 * Context: process with an address space, sleeps.
 * Return: as nhca_faultq_get().
 */
struct nhca_faultq *nhca_faultq_get_current(void);

/**
 * nhca_faultq_put - release a reference
 * @q: the queue; work that was added to it has called nhca_faultq_end() before the last reference
 *     is released
 * Context: process, sleeps.
 */
void nhca_faultq_put(struct nhca_faultq *q);

/**
 * nhca_faultq_add - queue work for a worker, now or when the limits permit it
 * @q:    the queue
 * @kind: kind of the work
 * @w:    the work
 * Context: any, also a live section; not in hard interrupts.
 */
void nhca_faultq_add(struct nhca_faultq *q, enum nhca_faultq_kind kind,
		     struct nhca_faultq_work *w);

/**
 * nhca_faultq_end - account for the end of work, and queue work that has waited for this end
 * @q:    the queue
 * @kind: kind of the work that ends
 * Context: the function of the work.
 */
void nhca_faultq_end(struct nhca_faultq *q, enum nhca_faultq_kind kind);

#endif /* NHCA_FAULTQ_H */
