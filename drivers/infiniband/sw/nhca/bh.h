/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Bottom-half work: a function that is due soon, in softirq context, but may not run where that is
 * found out.  It is an item of the kernel's BH workqueue; kernels before 6.9 have none, and there
 * it is a tasklet.
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
 * @tasklet, @work: how the kernel knows it
 * @fn: what runs; never on two CPUs at a time
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
 * nhca_bh_init - make bottom-half work that is not queued
 * @bh: the work
 * @fn: called in softirq context
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
 * nhca_bh_queue - have it run once more, on this CPU
 * @bh: the work; if it is queued already, it runs once; it may queue itself
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
 * nhca_bh_kill - wait until it neither runs nor is queued
 * @bh: the work; nobody else queues it any more
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
