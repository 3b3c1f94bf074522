/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Functions that charge the memory cgroup of a user from softirqs and workers, which do not run as
 * this user.
 *
 * In process context a verb only needs GFP_KERNEL_ACCOUNT.  In a softirq __GFP_ACCOUNT alone
 * charges no memory cgroup.  So an object for which softirqs or workers allocate memory has a
 * reference to the memory cgroup of the process that made the object.  The allocations are charged
 * to this memory cgroup.
 */
#ifndef NHCA_MEMCG_H
#define NHCA_MEMCG_H

#include <linux/memcontrol.h>
#include <linux/sched.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

/**
 * nhca_memcg_get - get the memory cgroup to which later allocations for an object are charged
 * @user: true if a process makes the object; false for the kernel, which is not charged
 * Context: process.
 * Return: a counted reference, for nhca_memcg_put(); NULL: no memory cgroup.
 */
static inline struct mem_cgroup *nhca_memcg_get(bool user)
{
	return user ? get_mem_cgroup_from_mm(current->mm) : NULL;
}

/**
 * nhca_memcg_put - release a reference of nhca_memcg_get()
 * @memcg: the memory cgroup or NULL
 * Context: any.
 */
static inline void nhca_memcg_put(struct mem_cgroup *memcg)
{
	mem_cgroup_put(memcg);
}

/**
 * nhca_memcg_kmalloc - kmalloc() charged to a memory cgroup
 * @memcg: the memory cgroup; NULL: no charge
 * @size:  bytes
 * @gfp:   as for kmalloc(), without __GFP_ACCOUNT
 *
 * At the limit of @memcg, GFP_NOWAIT fails.  GFP_ATOMIC succeeds and charges beyond the limit, as
 * every charge with __GFP_HIGH.  The next allocation of the memory cgroup's processes that can wait
 * must then reclaim memory.
 * Context: as @gfp says; softirq with GFP_ATOMIC or GFP_NOWAIT.
 * Return: memory, for kfree(); NULL: out of memory, or @memcg is at its limit.
 */
static inline void *nhca_memcg_kmalloc(struct mem_cgroup *memcg, size_t size, gfp_t gfp)
{
	struct mem_cgroup *old;
	void *p;

	if (!memcg)
		return kmalloc(size, gfp);
	old = set_active_memcg(memcg);
	p = kmalloc(size, gfp | __GFP_ACCOUNT);
	set_active_memcg(old);
	return p;
}

/**
 * nhca_memcg_kzalloc - nhca_memcg_kmalloc() of zeroed memory
 * @memcg: as for nhca_memcg_kmalloc()
 * @size:  bytes
 * @gfp:   as for nhca_memcg_kmalloc()
 * Context: as nhca_memcg_kmalloc().
 * Return: as nhca_memcg_kmalloc().
 */
static inline void *nhca_memcg_kzalloc(struct mem_cgroup *memcg, size_t size, gfp_t gfp)
{
	return nhca_memcg_kmalloc(memcg, size, gfp | __GFP_ZERO);
}

#endif /* NHCA_MEMCG_H */
