// SPDX-License-Identifier: GPL-2.0
/*
 * The live-task view and the snapshot view.
 *
 * Why it is right, on CPUs that reorder, too.  Two variables and two CPUs:
 *
 *	a section			who waits
 *	---------			---------
 *	seq = odd			valid = false
 *	smp_mb()			smp_mb()
 *	look at valid			look at seq
 *	move bytes
 *	seq = even (release)		seq has changed (acquire)
 *
 * The full barriers make it impossible that both look too early: either the snapshot
 * has the section, and waits for it, or the section sees that the key is closed.
 * Whatever value tells the waiting CPU that a section has ended, that of its end or that
 * of the beginning of a later one, was stored with release after the section's last
 * byte, and is read with acquire: all that the section did is seen by those behind
 * nhca_live_wait().  That holds for the snapshot's own look, which may find a section
 * that has just ended.
 *
 * All possible CPUs are looked at: one that is offline has an even seq, because nobody
 * leaves a CPU inside a section, where preemption is off, or migration.  So there is nothing to do
 * when CPUs come and go.
 */
#include <linux/bottom_half.h>
#include <linux/bug.h>
#include <linux/cpumask.h>
#include <linux/kernel.h>
#include <linux/slab.h>

#include "live.h"

DEFINE_PER_CPU_SHARED_ALIGNED(struct nhca_live, nhca_live);

#ifdef CONFIG_DEBUG_LOCK_ALLOC
static struct lock_class_key live_map_key;
struct lockdep_map nhca_live_map = STATIC_LOCKDEP_MAP_INIT("nhca_live", &live_map_key);
#endif

unsigned int nhca_live_snapshot(u32 *view, int but)
{
	unsigned int live = 0;
	int cpu;

	/* what the caller has closed is closed before we look; pairs with nhca_live_enter() */
	smp_mb();
	for_each_possible_cpu(cpu) {
		u32 seq = 0;

		if (cpu != but)
			/* as in nhca_live_left(): a section may have ended just now */
			seq = smp_load_acquire(per_cpu_ptr(&nhca_live.seq, cpu));
		view[cpu] = seq & 1 ? seq : 0;
		live += seq & 1;
	}
	return live;
}

unsigned int nhca_live_left(u32 *view)
{
	unsigned int live = 0;
	int cpu;

	for_each_possible_cpu(cpu) {
		if (!view[cpu])
			continue;
		/* pairs with the releases of nhca_live_exit() and nhca_live_enter() */
		if (smp_load_acquire(per_cpu_ptr(&nhca_live.seq, cpu)) == view[cpu])
			live++;
		else
			view[cpu] = 0;
	}
	return live;
}

#ifdef CONFIG_PREEMPT_RT
/* Wait for the section that @l is in, if any.  Its lock is free when it has ended. */
static void live_wait_cpu(struct nhca_live *l)
{
	/* as in nhca_live_left(): a section may have ended just now */
	if (!(smp_load_acquire(&l->seq) & 1))
		return;
	/* our own section would never end */
	if (WARN_ON_ONCE(READ_ONCE(l->owner) == current))
		return;
	spin_lock(&l->lock);
	spin_unlock(&l->lock);
}

void nhca_live_wait(void)
{
	int cpu;

	/* what the caller has closed is closed before we look; pairs with nhca_live_enter() */
	smp_mb();
	/* tells lockdep that whoever is in a section holds us up */
	lock_map_acquire(&nhca_live_map);
	/* this one as well: its section may have been preempted by us */
	for_each_possible_cpu(cpu)
		live_wait_cpu(per_cpu_ptr(&nhca_live, cpu));
	lock_map_release(&nhca_live_map);
}

static void live_init_lock(struct nhca_live *l)
{
	spin_lock_init(&l->lock);
}
#else
void nhca_live_wait(void)
{
	u32 *view;

	/* a softirq on this CPU may wait as well, and the view is the CPU's */
	local_bh_disable();
	preempt_disable();
	/* tells lockdep that whoever is in a section holds us up */
	lock_map_acquire(&nhca_live_map);

	/* our own section would never end */
	WARN_ON_ONCE(this_cpu_read(nhca_live.depth));
	view = this_cpu_read(nhca_live.view);
	if (nhca_live_snapshot(view, smp_processor_id()))
		while (nhca_live_left(view))
			cpu_relax();

	lock_map_release(&nhca_live_map);
	preempt_enable();
	local_bh_enable();
}

static void live_init_lock(struct nhca_live *l)
{
}
#endif

int nhca_live_init(void)
{
	/* views of two CPUs do not share a cache line */
	size_t size = L1_CACHE_ALIGN(nr_cpu_ids * sizeof(u32));
	int cpu;

	for_each_possible_cpu(cpu) {
		u32 *view = kzalloc(size, GFP_KERNEL);

		live_init_lock(per_cpu_ptr(&nhca_live, cpu));
		if (!view) {
			nhca_live_exit_module();
			return -ENOMEM;
		}
		per_cpu(nhca_live.view, cpu) = view;
	}
	return 0;
}

void nhca_live_exit_module(void)
{
	int cpu;

	for_each_possible_cpu(cpu) {
		kfree(per_cpu(nhca_live.view, cpu));
		per_cpu(nhca_live.view, cpu) = NULL;
	}
}
