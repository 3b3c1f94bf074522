// SPDX-License-Identifier: GPL-2.0
/*
 * The live-task view and the snapshot view (live.h).
 *
 * A wait cannot miss a section, even on CPUs that reorder memory accesses.  The reason, for two
 * variables (seq and valid) and two CPUs:
 *
 *	a section			a CPU that waits
 *	---------			----------------
 *	seq = odd			valid = false
 *	smp_mb()			smp_mb()
 *	read valid			read seq
 *	move bytes
 *	seq = even (release)		seq has changed (acquire)
 *
 * Because of the full barriers, at least one of the two CPUs reads the new value of the other.
 * Either the snapshot contains the section and the wait includes it, or the section reads that the
 * key is closed.
 *
 * The waiting CPU sees the end of a section by a changed seq.  The end of the section or the start
 * of a later one has stored the new value, with release, after the last byte of the section.  The
 * waiting CPU reads the value with acquire.  So code after nhca_live_wait() sees all bytes that the
 * section moved.  The same is true for a section that ended just before the snapshot read seq.
 *
 * The snapshot also reads the seq of offline CPUs.  Such a seq is even: preemption or migration is
 * disabled in a section, so a section ends on its CPU before the CPU goes offline.  So CPU hotplug
 * needs no code here.
 */
#include <linux/bottom_half.h>
#include <linux/bug.h>
#include <linux/cpumask.h>
#include <linux/kernel.h>
#include <linux/slab.h>

#include "../observe/stub.h"
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

	/*
	 * The caller's write that closed the key comes before the reads of seq.  Pairs with the
	 * barrier in nhca_live_enter().
	 */
	smp_mb();
	for_each_possible_cpu(cpu) {
		u32 seq = 0;

		if (cpu != but)
			/*
			 * Acquire, so that the caller also sees the bytes of a section that has
			 * just ended.
			 */
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
/* Wait for the section of @l, if there is one.  A section releases the lock of @l at its end. */
static void live_wait_cpu(struct nhca_live *l)
{
	/* acquire, so that the caller also sees the bytes of a section that has just ended */
	if (!(smp_load_acquire(&l->seq) & 1))
		return;
	/* a wait for this task's own section would never end */
	if (WARN_ON_ONCE(READ_ONCE(l->owner) == current))
		return;
	spin_lock(&l->lock);
	spin_unlock(&l->lock);
}

void nhca_live_wait(void)
{
	int cpu;

	NHCA_STUB(nhca_live_wait);
	/*
	 * The caller's write that closed the key comes before the reads of seq.  Pairs with the
	 * barrier in nhca_live_enter().
	 */
	smp_mb();
	/* tell lockdep that this function waits for sections */
	lock_map_acquire(&nhca_live_map);
	/* include this CPU, because this task may have preempted a section of another task */
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

	NHCA_STUB(nhca_live_wait);
	/* a softirq of this CPU may also wait for sections, and would use the same view */
	local_bh_disable();
	preempt_disable();
	/* tell lockdep that this function waits for sections */
	lock_map_acquire(&nhca_live_map);

	/* the snapshot leaves out this CPU, because a wait for its own section would never end */
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
	/* the views of two CPUs do not share a cache line */
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
