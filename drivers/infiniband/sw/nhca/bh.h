/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Bottom-half work: a function that runs in softirq context soon after it was queued, and does what
 * the queuing context must not do itself.  The work is an item of the kernel's BH workqueue, or a
 * tasklet on kernels before 6.9, which do not have this workqueue.
 */
#ifndef NHCA_BH_H
#define NHCA_BH_H

#include "compat.h"
#ifdef NHCA_OLD_BH
#include <linux/interrupt.h>
#else
#include <linux/workqueue.h>
#endif

/**
 * struct nhca_bh - bottom-half work
 * @tasklet: the kernel's object before Linux 6.9
 * @work: the kernel's object since Linux 6.9
 * @fn: the function to run; it never runs on two CPUs at a time
 */
struct nhca_bh {
#ifdef NHCA_OLD_BH
	struct tasklet_struct tasklet;
#else
	struct work_struct work;
#endif
	void (*fn)(struct nhca_bh *bh);
};

#ifdef NHCA_OLD_BH
static inline void nhca_bh_run(struct tasklet_struct *t)
{
	struct nhca_bh *bh = from_tasklet(bh, t, tasklet);

	bh->fn(bh);
}
#else
static inline void nhca_bh_run(struct work_struct *work)
{
	struct nhca_bh *bh = container_of(work, struct nhca_bh, work);

	bh->fn(bh);
}
#endif

/**
 * nhca_bh_init - initialize bottom-half work
 * @bh: the work
 * @fn: the function to run, in softirq context
 * Context: any.
 */
static inline void nhca_bh_init(struct nhca_bh *bh, void (*fn)(struct nhca_bh *bh))
{
	bh->fn = fn;
#ifdef NHCA_OLD_BH
	tasklet_setup(&bh->tasklet, nhca_bh_run);
#else
	INIT_WORK(&bh->work, nhca_bh_run);
#endif
}

/**
 * nhca_bh_queue - queue bottom-half work
 * @bh: the work.  If it is already queued, it runs only once.  Its function may queue it again.
 *
 * The work runs on this CPU.  If another CPU is running its function, the BH workqueue runs the
 * work there instead, when that run has ended.
 * Context: any, also with interrupts disabled.
 */
static inline void nhca_bh_queue(struct nhca_bh *bh)
{
#ifdef NHCA_OLD_BH
	tasklet_schedule(&bh->tasklet);
#else
	queue_work(system_bh_wq, &bh->work);
#endif
}

/**
 * nhca_bh_kill - wait until bottom-half work is neither queued nor running
 * @bh: the work; the caller ensures that no code queues the work from now on
 * Context: process, sleeps.
 */
static inline void nhca_bh_kill(struct nhca_bh *bh)
{
#ifdef NHCA_OLD_BH
	tasklet_kill(&bh->tasklet);
#else
	cancel_work_sync(&bh->work);
#endif
}

#endif /* NHCA_BH_H */
