/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Jobs and their memory, which channel packets read and write (reference: protection model,
 * node-global TCE tables).
 *
 * Memory is registered once on a host, for a job, and is named by PVO.  Every device of the host
 * reaches this memory through the same tables, for every channel of that job and for no other
 * channel.  A channel checks PVOs in the live section in which the bytes move, and has no R_Key
 * reference (rkm.h) between live sections.  So the code that closes a region has nothing to revoke:
 * it removes the region from the table of regions, and waits for the live sections that have begun
 * before, and for the packets that refer to pages of the region.
 */
#ifndef NHCA_JOB_H
#define NHCA_JOB_H

#include <linux/rhashtable-types.h>
#include <linux/refcount.h>
#include <linux/uidgid.h>

#include "pageref.h"
#include "tce.h"

struct ib_umem;
struct net;
struct nhca_dev;
struct nhca_user;

/**
 * struct nhca_job_key - what identifies a job on this host
 * @net_cookie: identifies the network namespace of the devices' netdevs.  The job needs no
 *              reference on the namespace, because no other namespace ever has this cookie.
 * @id:         the job number in packets; never 0
 * @pad:        0
 */
struct nhca_job_key {
	u64 net_cookie;
	u32 id;
	u32 pad;
};

/**
 * struct nhca_job - a job on this host
 * @node:       entry in the table of jobs (memory/job.c)
 * @users:      number of channels and regions that use the job; protected by job_lock
 * @key:        namespace and number
 * @uid:        the user who owns the job; a kuid, so that root of a user namespace is not root of
 *              the host
 * @user:       record in nhca_host_users that the job's regions are charged to; counted reference;
 *              NULL: none, because the process that created the job had CAP_SYS_RESOURCE
 * @rcu:        frees the struct after a grace period
 *
 * While the job is in use, all members except @node and @users are constant.
 */
struct nhca_job {
	struct rhash_head node;
	unsigned int users;
	struct nhca_job_key key;
	kuid_t uid;
	struct nhca_user *user;
	struct rcu_head rcu;
};

/**
 * nhca_job_get - use a job for a channel or for memory
 * @net: namespace of the device's netdev; only devices of one namespace share a job
 * @id:  the job number, not 0
 *
 * A job number belongs to the effective uid of the process that first uses it, until all channels
 * and regions have released the job.  No capability gives access to the job of another uid: a
 * program that may configure the network must not read memory that others have registered.
 * Context: process, sleeps.
 * Return: the job, for nhca_job_put(); ERR_PTR: -EINVAL: @id is 0; -EPERM: the job belongs to
 * another uid; -ENOMEM: no memory.
 */
struct nhca_job *nhca_job_get(struct net *net, u32 id);

/**
 * nhca_job_put - release a job
 * @job: the job or NULL
 * Context: process, sleeps.
 */
void nhca_job_put(struct nhca_job *job);

/**
 * struct nhca_job_mem - a region of job memory
 * @job:     its job; counted reference
 * @ref:     number of handles of processes, on one device or several
 * @pvo:     PVO of the first byte
 * @length:  bytes; other bytes of the same pages cannot be accessed
 * @access:  IB_ACCESS_LOCAL_WRITE (READs of the job may place data here), _REMOTE_READ,
 *           _REMOTE_WRITE, _REMOTE_ATOMIC (with _REMOTE_WRITE: peers may accumulate); WRITEs and
 *           accumulates of the job may always send from here
 * @pagerefs: counts the references of packets to pages of the region (pageref.h); owned; NULL: no
 *           packet has had a reference yet
 * @tces:    range of its TCEs; owned
 * @umem:    pins user pages; owned; NULL: the caller of nhca_job_mem_pages() keeps the pages
 * @owner:   the process that has registered @umem; counted
 * @dev:     device through which @umem was pinned; struct nhca_dev stays allocated, even if the
 *           device is unregistered
 */
struct nhca_job_mem {
	struct nhca_job *job;
	refcount_t ref;
	u64 pvo;
	u64 length;
	int access;
	struct nhca_pageref_region *pagerefs;
	struct nhca_range tces;
	struct ib_umem *umem;
	struct nhca_pageref_owner *owner;
	struct nhca_dev *dev;
};

/**
 * nhca_job_mem_user - register memory of the calling process
 * @dev:    the device
 * @job:    the job; the region takes a reference to it
 * @start:  first address
 * @length: bytes, at least 1
 * @access: as in struct nhca_job_mem; _REMOTE_WRITE and _REMOTE_ATOMIC require _LOCAL_WRITE
 * Context: process, sleeps.
 * Return: the region, open and with one handle; ERR_PTR: -EINVAL: @length is 0, the range wraps or
 * exceeds the address space, or @access is not as described above; -EDQUOT: the user already has
 * its share of the host's regions; -ENOMEM: no memory, or the host already has NHCA_MAX_JOB_MEM
 * regions; or an error of ib_umem_get_va(), nhca_range_alloc() or nhca_map_sgt().
 */
struct nhca_job_mem *nhca_job_mem_user(struct nhca_dev *dev, struct nhca_job *job, u64 start,
				       u64 length, int access);

/**
 * nhca_job_mem_pages - register pages of the kernel
 * @job:    the job; the region takes a reference to it
 * @pages:  the pages; the caller keeps them until the region is freed
 * @npages: number of pages
 * @offset: offset of the region's first byte in the first page
 * @length: bytes, inside the pages, at least 1
 * @access: as for nhca_job_mem_user()
 * Context: process, sleeps.
 * Return: as nhca_job_mem_user(); -EINVAL also if the bytes are not inside the pages.
 */
struct nhca_job_mem *nhca_job_mem_pages(struct nhca_job *job, struct page **pages, u64 npages,
					u32 offset, u64 length, int access);

/**
 * nhca_job_mem_open - get another handle of a region, so that the region outlives the first handle
 * @job: must be the region's job
 * @pvo: PVO of the region's first byte
 * Context: process, sleeps.
 * Return: the region; ERR_PTR: -ENOENT: no region of @job begins at @pvo.
 */
struct nhca_job_mem *nhca_job_mem_open(struct nhca_job *job, u64 pvo);

/**
 * nhca_job_mem_put - release a handle of a region
 * @mem: the region
 *
 * The release of the last handle closes and frees the region.  When the function returns, no byte
 * moves to or from the region any more, on any CPU, through any device.  No packet refers to pages
 * of the region, unless the wait for packets has timed out (nhca_pageref_wait()).
 * Context: process, sleeps.
 */
void nhca_job_mem_put(struct nhca_job_mem *mem);

/**
 * enum nhca_pvo_verdict - result of the check of a PVO
 * @NHCA_PVO_OK: the access is granted
 * @NHCA_PVO_KEY: no region of any job has this key and table
 * @NHCA_PVO_JOB: the region belongs to another job
 * @NHCA_PVO_RANGE: some bytes are outside the region
 * @NHCA_PVO_ACCESS: the region does not grant the right
 * @NHCA_PVO_PAGE: some byte has no TCE with this key and the right
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
 * nhca_pvo_check - check that a channel may move bytes of job memory
 * @job:    the job of the channel
 * @pvo:    the first byte
 * @len:    number of bytes; if 0, the function checks nothing, and sets @mem to NULL
 * @access: 0: the job reads the bytes; IB_ACCESS_LOCAL_WRITE: the job writes them; a remote right:
 *          a peer accesses them
 * @mem:    set to the region, or to NULL after an error; valid until the end of the live section
 *
 * The function checks key, table, job, range and rights of the region, then the TCE of every page.
 * Context: the live section in which the bytes move.
 * Return: NHCA_PVO_OK, or the first check that failed.
 */
enum nhca_pvo_verdict nhca_pvo_check(const struct nhca_job *job, u64 pvo, u32 len, int access,
				     struct nhca_job_mem **mem);

/**
 * nhca_job_init - set up the table of jobs when the module is loaded
 * Context: process.
 * Return: 0, or an error of rhashtable_init().
 */
int nhca_job_init(void);

/**
 * nhca_job_exit - free the tables when the module is unloaded; warns if a job or region is left
 * Context: process.
 */
void nhca_job_exit(void);

#endif /* NHCA_JOB_H */
