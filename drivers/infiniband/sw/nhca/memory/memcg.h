/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Charging a user's memory cgroup from where the user is not: softirqs and workers.
 *
 * In process context a verb allocates with GFP_KERNEL_ACCOUNT, and that is all.  In a softirq
 * __GFP_ACCOUNT alone charges nobody.  An object that lets peers or engines allocate for it keeps
 * the memory cgroup of whoever made it, and the allocation is done on its account.
 */
#ifndef NHCA_MEMCG_H
#define NHCA_MEMCG_H

#include <linux/memcontrol.h>
#include <linux/sched.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

/**
 * nhca_memcg_get - the memory cgroup that what an object will need is charged to
 * @user: a process makes the object; else the kernel, which is not charged
 * Context: process.
 * Return: counted, for nhca_memcg_put(); NULL: nobody.
 */
static inline struct mem_cgroup *nhca_memcg_get(bool user)
{
	return user ? get_mem_cgroup_from_mm(current->mm) : NULL;
}

/* takes NULL; any context */
static inline void nhca_memcg_put(struct mem_cgroup *memcg)
{
	mem_cgroup_put(memcg);
}

/**
 * nhca_memcg_kmalloc - kmalloc() charged to @memcg
 * @memcg: NULL: nobody is charged
 * @size: bytes
 * @gfp: how
 * GFP_ATOMIC also charges beyond the limit of @memcg, as the kernel does for whoever cannot wait.
 * The next allocation of its processes that can wait has to make room.  GFP_NOWAIT fails there.
 * Context: as @gfp says; softirq with GFP_ATOMIC or GFP_NOWAIT.
 * Return: memory, for kfree(); NULL: there is none, or @memcg is at its limit.
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

/* nhca_memcg_kmalloc(), zeroed */
static inline void *nhca_memcg_kzalloc(struct mem_cgroup *memcg, size_t size, gfp_t gfp)
{
	return nhca_memcg_kmalloc(memcg, size, gfp | __GFP_ZERO);
}

#endif /* NHCA_MEMCG_H */
