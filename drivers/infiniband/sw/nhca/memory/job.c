// SPDX-License-Identifier: GPL-2.0
/*
 * Jobs, their memory, and the check of a PVO.
 *
 * The index of a region in the table of regions is its name: the upper 22 bits of its PVO, which
 * are key and table number.  So no two regions of jobs have the same name at the same time.
 */
#include <linux/cred.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/rhashtable.h>
#include <linux/slab.h>
#include <linux/xarray.h>
#include <net/net_namespace.h>
#include <rdma/ib_umem.h>

#include "../nhca.h"
#include "job.h"
#include "live.h"
#include "map.h"

/* protects the table of jobs, nhca_job.users, and the removal of a region with its last handle */
static DEFINE_MUTEX(job_lock);
/* struct nhca_job by nhca_job.key; its hash is secret, so that nobody can choose colliding keys */
static struct rhashtable jobs;

static const struct rhashtable_params job_params = {
	.key_len = sizeof(struct nhca_job_key),
	.key_offset = offsetof(struct nhca_job, key),
	.head_offset = offsetof(struct nhca_job, node),
	.automatic_shrinking = true,
};

static_assert(2 * NHCA_MAX_JOB_MEM == NHCA_TCE_KEYS);

/*
 * struct nhca_job_mem by nhca_pvo_name(); read in live sections, or under job_lock.  A region is
 * removed under job_lock; its name is reserved, and the region stored, without job_lock.
 */
static DEFINE_XARRAY_FLAGS(job_mems, XA_FLAGS_ACCOUNT);

/* ---- jobs ---- */

static struct nhca_job *job_new(const struct nhca_job_key *key)
{
	struct nhca_job *job = kzalloc(sizeof(*job), GFP_KERNEL_ACCOUNT);

	if (!job)
		return NULL;
	job->key = *key;
	job->uid = current_euid();
	job->user = nhca_user_get_current(&nhca_host_users);
	if (!IS_ERR(job->user))
		return job;
	kfree(job);
	return NULL;
}

static void job_free(struct nhca_job *job)
{
	if (!job)
		return;
	nhca_user_put(job->user);
	/* a resize of the table may still read the job */
	kfree_rcu(job, rcu);
}

/*
 * Return: a job in the table, counted; NULL: there is none; ERR_PTR(-EPERM): another uid owns the
 * job.
 */
static struct nhca_job *job_find(const struct nhca_job_key *key)
{
	struct nhca_job *job = rhashtable_lookup_fast(&jobs, key, job_params);

	lockdep_assert_held(&job_lock);
	if (!job)
		return NULL;
	if (!uid_eq(job->uid, current_euid()))
		return ERR_PTR(-EPERM);
	job->users++;
	return job;
}

struct nhca_job *nhca_job_get(struct net *net, u32 id)
{
	const struct nhca_job_key key = { .net_cookie = net->net_cookie, .id = id };
	struct nhca_job *job, *made;

	if (!id)
		return ERR_PTR(-EINVAL);
	mutex_lock(&job_lock);
	job = job_find(&key);
	mutex_unlock(&job_lock);
	if (job)
		return job;

	/* without the lock, because an allocation may take long if a memory cgroup is full */
	made = job_new(&key);
	if (!made)
		return ERR_PTR(-ENOMEM);
	mutex_lock(&job_lock);
	job = job_find(&key);
	if (!job && rhashtable_insert_fast(&jobs, &made->node, job_params)) {
		job = ERR_PTR(-ENOMEM);
	} else if (!job) {
		swap(job, made);
		job->users = 1;
	}
	mutex_unlock(&job_lock);
	job_free(made);
	return job;
}

/* Count another user of a job that the caller already uses.  The uid was checked before. */
static void job_share(struct nhca_job *job)
{
	mutex_lock(&job_lock);
	job->users++;
	mutex_unlock(&job_lock);
}

void nhca_job_put(struct nhca_job *job)
{
	bool last;

	if (!job)
		return;
	mutex_lock(&job_lock);
	last = !--job->users;
	if (last)
		rhashtable_remove_fast(&jobs, &job->node, job_params);
	mutex_unlock(&job_lock);
	if (last)
		job_free(job);
}

/* ---- regions ---- */

/*
 * Give the region a name that no other region of a job has: if the name is in use, the range gets
 * another key.  The caller sets the TCEs afterwards, because TCEs contain the key.  The name gives
 * no access before mem_show().
 */
static int mem_name(struct nhca_job_mem *mem, u64 offset)
{
	u32 tries;
	int err;

	for (tries = 0; tries < NHCA_TCE_KEYS; tries++) {
		mem->pvo = nhca_range_pvo(&mem->tces) + offset;
		/* a reserved slot: xa_insert() finds it taken, but xa_load() finds nothing in it */
		err = xa_insert(&job_mems, nhca_pvo_name(mem->pvo), NULL, GFP_KERNEL_ACCOUNT);
		if (err != -EBUSY)
			return err;
		nhca_range_rekey(&mem->tces);
	}
	return -ENOSPC;
}

/*
 * Accept only rights that job memory has.  Remote write and remote atomic require local write (IBTA
 * 10.6.3.1).
 */
static bool rights_ok(int access)
{
	const int write = IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_ATOMIC;

	if (access & ~(write | IB_ACCESS_REMOTE_READ | IB_ACCESS_LOCAL_WRITE))
		return false;
	return !(access & write) || access & IB_ACCESS_LOCAL_WRITE;
}

/* Allocate a region of @job with a range for its bytes.  Lookups find it only after mem_show(). */
static struct nhca_job_mem *mem_new(struct nhca_job *job, unsigned int shift, u64 offset,
				    u64 length, int access)
{
	const struct nhca_owner owner = {
		.kind = NHCA_OWNER_JOB,
		.id = (uintptr_t)job,
		.user = job->user,
	};
	struct nhca_job_mem *mem = kzalloc(sizeof(*mem), GFP_KERNEL_ACCOUNT);
	int err;

	if (!mem)
		return ERR_PTR(-ENOMEM);
	err = nhca_pool_charge(&nhca_host_users, job->user, NHCA_POOL_JOB_MEM, 1);
	if (err)
		goto err_free;
	err = nhca_range_alloc(&mem->tces, shift, (offset + length + BIT_ULL(shift) - 1) >> shift,
			       &owner);
	if (err)
		goto err_give;
	err = mem_name(mem, offset);
	if (err)
		goto err_range;
	refcount_set(&mem->ref, 1);
	mem->length = length;
	mem->access = access;
	mem->job = job;
	job_share(job);
	return mem;

err_range:
	nhca_range_free(&mem->tces);
err_give:
	nhca_pool_uncharge(&nhca_host_users, job->user, NHCA_POOL_JOB_MEM, 1);
err_free:
	kfree(mem);
	return ERR_PTR(err);
}

/* Free a region that lookups no longer find.  First wait for the live sections that found it. */
static void mem_free(struct nhca_job_mem *mem)
{
	nhca_live_wait();
	nhca_pageref_wait(mem->pagerefs, mem->dev, mem->owner);
	nhca_range_free(&mem->tces);
	nhca_pageref_owner_put(mem->owner);
	ib_umem_release(mem->umem);
	if (mem->dev)
		put_device(&mem->dev->ibdev.dev);
	nhca_pool_uncharge(&nhca_host_users, mem->job->user, NHCA_POOL_JOB_MEM, 1);
	nhca_job_put(mem->job);
	kfree(mem);
}

/* Let lookups find a complete region.  mem_name() has reserved its slot in the table. */
static void mem_show(struct nhca_job_mem *mem)
{
	xa_store(&job_mems, nhca_pvo_name(mem->pvo), mem, GFP_KERNEL);
}

struct nhca_job_mem *nhca_job_mem_pages(struct nhca_job *job, struct page **pages, u64 npages,
					u32 offset, u64 length, int access)
{
	u64 flags = NHCA_TCE_READ | (ib_access_writable(access) ? NHCA_TCE_WRITE : 0);
	struct nhca_job_mem *mem;
	u64 i;

	if (!rights_ok(access) || !length || offset >= PAGE_SIZE ||
	    length > npages * PAGE_SIZE - offset)
		return ERR_PTR(-EINVAL);
	mem = mem_new(job, PAGE_SHIFT, offset, length, access);
	if (IS_ERR(mem))
		return mem;
	for (i = 0; i < mem->tces.count; i++)
		nhca_range_set(&mem->tces, i, page_to_pfn(pages[i]), flags);
	mem_show(mem);
	return mem;
}

struct nhca_job_mem *nhca_job_mem_user(struct nhca_dev *dev, struct nhca_job *job, u64 start,
				       u64 length, int access)
{
	struct nhca_job_mem *mem;
	struct ib_umem *umem;
	unsigned int shift;
	int err;

	if (!rights_ok(access) || !length || start + length - 1 < start ||
	    start != (unsigned long)start || length != (size_t)length)
		return ERR_PTR(-EINVAL);
	umem = ib_umem_get_va(&dev->ibdev, start, length, access);
	if (IS_ERR(umem))
		return ERR_CAST(umem);
	shift = nhca_map_shift(umem);
	mem = mem_new(job, shift, start & (BIT_ULL(shift) - 1), length, access);
	if (IS_ERR(mem)) {
		ib_umem_release(umem);
		return mem;
	}
	/* ib_umem_release() uses the device, which may be unregistered then: keep its memory */
	get_device(&dev->ibdev.dev);
	mem->dev = dev;
	mem->umem = umem;
	mem->owner = nhca_pageref_owner_get(current->mm);
	err = -ENOMEM;
	if (mem->owner)
		err = nhca_map_sgt(&mem->tces, &umem->sgt_append.sgt, start, length,
				   umem->writable);
	if (err) {
		nhca_job_mem_put(mem);
		return ERR_PTR(err);
	}
	mem_show(mem);
	return mem;
}

struct nhca_job_mem *nhca_job_mem_open(struct nhca_job *job, u64 pvo)
{
	struct nhca_job_mem *mem;

	mutex_lock(&job_lock);
	mem = xa_load(&job_mems, nhca_pvo_name(pvo));
	if (!mem || mem->job != job || mem->pvo != pvo || !refcount_inc_not_zero(&mem->ref))
		mem = ERR_PTR(-ENOENT);
	mutex_unlock(&job_lock);
	return mem;
}

void nhca_job_mem_put(struct nhca_job_mem *mem)
{
	bool last;

	/*
	 * The lock excludes nhca_job_mem_open(), which finds the region until it is out of the
	 * table.
	 */
	mutex_lock(&job_lock);
	last = refcount_dec_and_test(&mem->ref);
	if (last)
		xa_erase(&job_mems, nhca_pvo_name(mem->pvo));
	mutex_unlock(&job_lock);
	if (last)
		mem_free(mem);
}

/* ---- the check for packets ---- */

enum nhca_pvo_verdict nhca_pvo_check(const struct nhca_job *job, u64 pvo, u32 len, int access,
				     struct nhca_job_mem **found)
{
	u64 want = NHCA_TCE_READ | (ib_access_writable(access) ? NHCA_TCE_WRITE : 0);
	struct nhca_job_mem *mem;
	u64 off;

	*found = NULL;
	if (!len)
		return NHCA_PVO_OK;
	mem = xa_load(&job_mems, nhca_pvo_name(pvo));
	if (!mem)
		return NHCA_PVO_KEY;
	if (mem->job != job)
		return NHCA_PVO_JOB;
	/* key and table are equal, so the difference is an offset in bytes */
	off = pvo - mem->pvo;
	if (pvo < mem->pvo || off >= mem->length || len > mem->length - off)
		return NHCA_PVO_RANGE;
	if (access & ~mem->access)
		return NHCA_PVO_ACCESS;
	if (!nhca_tce_all(pvo, len, want))
		return NHCA_PVO_PAGE;
	*found = mem;
	return NHCA_PVO_OK;
}

int nhca_job_init(void)
{
	return rhashtable_init(&jobs, &job_params);
}

void nhca_job_exit(void)
{
	WARN_ON(atomic_read(&jobs.nelems));
	rhashtable_destroy(&jobs);
	WARN_ON(!xa_empty(&job_mems));
	xa_destroy(&job_mems);
}
