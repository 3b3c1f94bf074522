/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Jobs and their memory: what rCxt datagrams read and write (reference: protection model,
 * node-global TCE tables).
 *
 * Memory is registered to a job, once a host, and named by PVO.  Every device of the host reaches
 * it through the same tables, for every channel of that job, and for none of another.  A packet's
 * PVO is looked at for that packet alone: nothing is held from one packet to the next, so closing
 * a region is taking it out of the table and waiting for the live sections of the moment.
 */
#ifndef NHCA_JOB_H
#define NHCA_JOB_H

#include <linux/list.h>
#include <linux/refcount.h>
#include <linux/uidgid.h>

#include "tce.h"

struct ib_umem;
struct net;
struct nhca_dev;

/**
 * struct nhca_job - a job on this host
 * @list:  in the table of jobs, under its lock
 * @users: channels and regions; under the same lock
 * @net_cookie: of the namespace of their devices' netdevs, which is not held: it may go, and
 *         takes its devices along
 * @id:    as in packets; never 0
 * @uid:   the user who has it, as the kernel counts users: a user namespace's root is not the
 *         host's
 *
 * Constant but for @list and @users while somebody uses it.
 */
struct nhca_job {
	struct list_head list;
	unsigned int users;
	u64 net_cookie;
	u32 id;
	kuid_t uid;
};

/**
 * nhca_job_get - use a job: for a channel, or for memory
 * @net: namespace of the device's netdev: what can meet on a wire
 * @id:  not 0
 *
 * The id belongs to the user who uses it first, until nobody uses it any more.  There is no
 * capability that opens somebody else's job: who may configure the network may not read what
 * others have registered.
 * Context: process, sleeps; the effective user of the caller counts.
 * Return: the job: end with nhca_job_put().  ERR_PTR: -EINVAL (id 0), -EPERM (another user's),
 * -ENOMEM.
 */
struct nhca_job *nhca_job_get(struct net *net, u32 id);

/* Use it no longer; NULL is fine.  Context: process, sleeps. */
void nhca_job_put(struct nhca_job *job);

/**
 * struct nhca_job_mem - a region of job memory
 * @job:    whose; used
 * @ref:    handles on it (open file descriptors, over one device or several)
 * @pvo:    of its first byte
 * @length: bytes; what is before and behind them in the same pages is not reached
 * @access: IB_ACCESS_LOCAL_WRITE (the job's own reads go there), _REMOTE_READ, _REMOTE_WRITE;
 *          the job's own writes may always come from there
 * @zcopied:   pages of it have gone to the network stack by reference (net/zcopy.h)
 * @tces:   its range; owned
 * @umem:   pins user pages; owned; NULL: the caller of nhca_job_mem_pages() holds the pages
 * @dev:    that @umem was pinned through; kept in memory, not in use
 */
struct nhca_job_mem {
	struct nhca_job *job;
	refcount_t ref;
	u64 pvo;
	u64 length;
	int access;
	bool zcopied;
	struct nhca_range tces;
	struct ib_umem *umem;
	struct nhca_dev *dev;
};

/**
 * nhca_job_mem_user - register memory of the calling process
 * @job:    the region uses it from now on, too
 * @access: of struct nhca_job_mem; _REMOTE_WRITE wants _LOCAL_WRITE, too
 * Context: process, sleeps.
 * Return: the region with one handle, open; ERR_PTR: -EINVAL (length 0, wraps, other rights), as
 * ib_umem_get() and nhca_range_alloc().
 */
struct nhca_job_mem *nhca_job_mem_user(struct nhca_dev *dev, struct nhca_job *job, u64 start,
				       u64 length, int access);

/**
 * nhca_job_mem_pages - register pages of the kernel's
 * @offset: of the region's first byte in the first page
 * @length: bytes, inside the pages
 * Context: process, sleeps.  Return: as nhca_job_mem_user().
 */
struct nhca_job_mem *nhca_job_mem_pages(struct nhca_job *job, struct page **pages, u64 npages,
					u32 offset, u64 length, int access);

/**
 * nhca_job_mem_open - another handle on a region, so that it outlives the device over which
 * it was registered
 * @job: must be the region's
 * @pvo: of its first byte
 * Context: process, sleeps.  Return: the region; ERR_PTR: -ENOENT.
 */
struct nhca_job_mem *nhca_job_mem_open(struct nhca_job *job, u64 pvo);

/**
 * nhca_job_mem_put - give a handle back.  With the last one the promise: when this returns no
 * byte moves to or from the region any more, on any CPU, through any device, and the stack has
 * given its pages back (within the limits that nhca_zcopy_wait() names).
 * Context: process, sleeps.
 */
void nhca_job_mem_put(struct nhca_job_mem *mem);

/**
 * enum nhca_pvo_verdict - what is wrong with a PVO
 * @NHCA_PVO_KEY:    no region of any job has this key in this table
 * @NHCA_PVO_JOB:    it is another job's
 * @NHCA_PVO_RANGE:  not all bytes lie in the region
 * @NHCA_PVO_ACCESS: it grants less
 * @NHCA_PVO_PAGE:   there is no page; the region is being closed
 */
enum nhca_pvo_verdict {
	NHCA_PVO_OK = 0,
	NHCA_PVO_KEY,
	NHCA_PVO_JOB,
	NHCA_PVO_RANGE,
	NHCA_PVO_ACCESS,
	NHCA_PVO_PAGE,
};

/**
 * nhca_pvo_check - may a channel of @job move these bytes?
 * @len: of one packet; 0: nothing is looked at and @mem is NULL
 * @access: 0: the job reads them itself; IB_ACCESS_LOCAL_WRITE: it writes them; a remote right:
 *       its peer does
 * @mem: the region, good until the end of the live section
 *
 * Key, table, job, range and rights of the region first, then the TCE of every page.
 * Context: live section: the one in which the bytes move.
 */
enum nhca_pvo_verdict nhca_pvo_check(const struct nhca_job *job, u64 pvo, u32 len, int access,
				     struct nhca_job_mem **mem);

/* module unload: every job and region has been given back */
void nhca_job_exit(void);

#endif /* NHCA_JOB_H */
