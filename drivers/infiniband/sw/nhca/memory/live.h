/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The live-task view and the snapshot view (reference: snapshot interface).  The live-task view
 * shows which CPUs access registered memory now.  The code that closes a key takes a snapshot of
 * this view, and waits until the accesses of these CPUs have ended.
 *
 * A live section is the code between the check of a key and the last byte that moves by this key.
 * A section lasts as long as the copy of a packet, of a batch (at most 64 KiB), or of 32 KiB
 * between queue pairs of one host.  No packet is sent in a section, and without PREEMPT_RT nothing
 * sleeps.  A section takes only the few locks that Documentation/internals.rst lists, and no code
 * holds one of these locks while it waits for sections.  So a section never waits for an
 * invalidation, and an invalidation can busy-wait for the sections of other CPUs, even in softirq.
 *
 * Packet builders allocate pages and take spinlocks in a section.  With PREEMPT_RT page allocation
 * and spinlocks may sleep, so a section may be preempted.  Therefore a section then also holds a
 * lock of its CPU.  A task that waits for the section takes this lock, so the section inherits the
 * priority of the task.
 */
#ifndef NHCA_LIVE_H
#define NHCA_LIVE_H

#include <linux/cache.h>
#include <linux/lockdep.h>
#include <linux/percpu.h>
#include <linux/preempt.h>
#include <linux/sched.h>
#include <linux/spinlock.h>

/**
 * struct nhca_live - the entry of one CPU in the live-task view
 * @seq:   odd while the CPU is in a section; only this CPU writes @seq
 * @depth: number of nested sections (a test may have one around the driver's); only this CPU uses
 *         @depth
 * @view:  snapshot view of this CPU: for each CPU its @seq at the time of the snapshot, or 0 if
 *         that CPU was in no section or its section has ended; used only by this CPU; unused with
 *         PREEMPT_RT
 * @lock:  PREEMPT_RT: held while the CPU is in a section
 * @owner: PREEMPT_RT: the task in the section; written with @lock held
 */
struct nhca_live {
	u32 seq;
	u32 depth;
	u32 *view;
#ifdef CONFIG_PREEMPT_RT
	spinlock_t lock;	/* held while the CPU is in a section */
	struct task_struct *owner;
#endif
} ____cacheline_aligned_in_smp;

DECLARE_PER_CPU_SHARED_ALIGNED(struct nhca_live, nhca_live);

/*
 * By this map lockdep finds a possible deadlock: a lock that is taken in a section, and that is
 * also held during a call of nhca_live_wait().
 */
extern struct lockdep_map nhca_live_map;

#ifdef CONFIG_PREEMPT_RT
static inline struct nhca_live *nhca_live_pin(void)
{
	struct nhca_live *l;

	migrate_disable();
	l = this_cpu_ptr(&nhca_live);
	/* only this task stores and clears itself as the owner, so the read needs no lock */
	if (READ_ONCE(l->owner) != current) {
		spin_lock(&l->lock);
		WRITE_ONCE(l->owner, current);
		/* for sparse: released in nhca_live_unpin() */
		__release(&l->lock);
	}
	return l;
}

static inline void nhca_live_unpin(struct nhca_live *l)
{
	if (!l->depth) {
		__acquire(&l->lock);
		WRITE_ONCE(l->owner, NULL);
		spin_unlock(&l->lock);
	}
	migrate_enable();
}
#else
static inline struct nhca_live *nhca_live_pin(void)
{
	preempt_disable();
	return this_cpu_ptr(&nhca_live);
}

static inline void nhca_live_unpin(struct nhca_live *l)
{
	preempt_enable();
}
#endif

/**
 * nhca_live_enter - begin a live section
 *
 * If a key was closed before the section began, the section reads that the key is closed, because
 * the barrier here pairs with that in nhca_live_snapshot() (PREEMPT_RT: in nhca_live_wait()).
 * Sections nest.
 * Context: BH disabled; not in hard interrupts.  Disables preemption, or migration with PREEMPT_RT.
 */
static inline void nhca_live_enter(void)
{
	struct nhca_live *l;

	lock_map_acquire_read(&nhca_live_map);
	l = nhca_live_pin();
	if (!l->depth++) {
		/*
		 * Release, because a waiting CPU may see the end of the previous section by this
		 * value.
		 */
		smp_store_release(&l->seq, l->seq + 1);
		/*
		 * Announce the section before it reads any key; pairs with nhca_live_snapshot() and
		 * nhca_live_wait().
		 */
		smp_mb();
	}
}

/**
 * nhca_live_exit - end a live section
 *
 * A CPU that sees the end also sees all bytes that the section moved.
 * Context: in a live section, on the CPU where it began.
 */
static inline void nhca_live_exit(void)
{
	struct nhca_live *l = this_cpu_ptr(&nhca_live);

	if (!--l->depth)
		/*
		 * pairs with the acquires of nhca_live_snapshot() and nhca_live_left(), and with
		 * that of live_wait_cpu() (PREEMPT_RT)
		 */
		smp_store_release(&l->seq, l->seq + 1);
	nhca_live_unpin(l);
	lock_map_release(&nhca_live_map);
}

/**
 * nhca_live_wait - take a snapshot of the live sections and wait until all of them have ended
 *
 * Every section that begins after the snapshot sees the writes that the caller made before the
 * call, for example to the valid bit of a key.  When the function returns, every section that had
 * begun before the snapshot has ended.  The function does not wait for later sections, with one
 * exception: with PREEMPT_RT a later section may take the lock of its CPU before the function does.
 * No section waits for the function.
 * The wait takes at most as long as the longest section, which copies at most 64 KiB.
 * Context: process or softirq; not in a live section.  The caller may hold any lock that no section
 * takes.
 */
void nhca_live_wait(void);

/**
 * nhca_live_snapshot - take a snapshot, for nhca_live_wait() and tests
 * @view: memory of the caller with one word for each possible CPU, filled in
 * @but:  a CPU to leave out, or -1
 * Context: any.
 * Return: number of CPUs that are in a section.
 */
unsigned int nhca_live_snapshot(u32 *view, int but);

/**
 * nhca_live_left - remove the sections that have ended from a snapshot
 * @view: the snapshot
 * Context: any.
 * Return: number of sections left; 0: the snapshot is empty.
 */
unsigned int nhca_live_left(u32 *view);

/**
 * nhca_live_init - allocate the snapshot views when the module is loaded
 * Context: process, sleeps.
 * Return: 0; -ENOMEM: no memory.
 */
int nhca_live_init(void);

/**
 * nhca_live_exit_module - free the snapshot views when the module is unloaded
 * Context: process.
 */
void nhca_live_exit_module(void);

#endif /* NHCA_LIVE_H */
