/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The live-task view and the snapshot view: who touches registered memory now,
 * and waiting until all who did have let go (reference: snapshot interface).
 *
 * A live section is the short stretch of code between looking at a key and the
 * last byte that moves by it: the copy of a packet, or of the 64 KiB at most that a batch
 * has or that are moved at once between queue pairs of one host.  It is a leaf: inside it
 * nothing sleeps, no lock of another room is taken and no packet leaves.  That is
 * why an invalidation can wait for the sections of other CPUs where it stands, in
 * softirq, too: nobody in a section ever waits for anybody.
 *
 * With PREEMPT_RT a section may be preempted, allocate memory and take locks that sleep there, as
 * packet builders do.  Each CPU then has a lock that its section holds, and whoever waits for the
 * section waits for the lock, which has the section inherit its priority.
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
 * struct nhca_live - one CPU's entry in the live-task view
 * @seq:   odd while the CPU is in a section; written by that CPU only
 * @depth: sections nest (a test's around the code's own); that CPU only
 * @view:  this CPU's snapshot view: one word for each CPU, what its @seq was when the
 *         snapshot was taken; 0 once it has let go; owned by this CPU; unused with PREEMPT_RT
 * @lock:  PREEMPT_RT: held by the section
 * @owner: PREEMPT_RT: the task in the section; written with @lock held
 */
struct nhca_live {
	u32 seq;
	u32 depth;
	u32 *view;
#ifdef CONFIG_PREEMPT_RT
	spinlock_t lock;	/* the section */
	struct task_struct *owner;
#endif
} ____cacheline_aligned_in_smp;

DECLARE_PER_CPU_SHARED_ALIGNED(struct nhca_live, nhca_live);

/* a lock taken in a section and held across nhca_live_wait() is a deadlock: lockdep sees it */
extern struct lockdep_map nhca_live_map;

#ifdef CONFIG_PREEMPT_RT
static inline struct nhca_live *nhca_live_pin(void)
{
	struct nhca_live *l;

	migrate_disable();
	l = this_cpu_ptr(&nhca_live);
	/* only this task makes itself the owner, or ceases to be it */
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
 * nhca_live_enter - begin to touch memory
 * Context: BH disabled; not in hard interrupts.  Disables preemption, or migration with PREEMPT_RT.
 *
 * Whoever closed a key before this began is seen by every look at that key in the
 * section: pairs with the barrier in nhca_live_wait().
 */
static inline void nhca_live_enter(void)
{
	struct nhca_live *l;

	lock_map_acquire_read(&nhca_live_map);
	l = nhca_live_pin();
	if (!l->depth++) {
		/* release: this value, too, tells others that the section before has ended */
		smp_store_release(&l->seq, l->seq + 1);
		/* the section is announced before it looks at any key */
		smp_mb();
	}
}

/* The section's last byte has moved when others see that it has ended. */
static inline void nhca_live_exit(void)
{
	struct nhca_live *l = this_cpu_ptr(&nhca_live);

	if (!--l->depth)
		/* pairs with the acquires of nhca_live_snapshot() and nhca_live_left() */
		smp_store_release(&l->seq, l->seq + 1);
	nhca_live_unpin(l);
	lock_map_release(&nhca_live_map);
}

/**
 * nhca_live_wait - take a snapshot of the live tasks and wait until it is empty
 *
 * What was written before the call (a key's valid bit) is seen by every section
 * that begins after the snapshot; every section that had begun has ended on
 * return.  Sections that begin later are not waited for, and none is ever held up.
 * Takes as long as the longest of them: a copy of 64 KiB.
 * Context: process or softirq, any lock that no section takes; not in a section.
 */
void nhca_live_wait(void);

/**
 * nhca_live_snapshot - take a snapshot; nhca_live_wait() and tests
 * @view: one word for each possible CPU, of the caller's
 * @but:  a CPU that is left out, or -1
 * Return: how many CPUs are in a section.
 */
unsigned int nhca_live_snapshot(u32 *view, int but);

/**
 * nhca_live_left - clear from a snapshot who has let go
 * Return: how many are left; 0: the snapshot is empty.
 */
unsigned int nhca_live_left(u32 *view);

/* module load: -ENOMEM; unload */
int nhca_live_init(void);
void nhca_live_exit_module(void);

#endif /* NHCA_LIVE_H */
