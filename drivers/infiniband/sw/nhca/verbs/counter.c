// SPDX-License-Identifier: GPL-2.0
/*
 * The rdma counters, to which queue pairs can be bound (`rdma statistic qp').  A queue pair counts
 * either in its rdma counter or in the counters of its device, never in both: the core adds both to
 * show the counters of a port.
 */
#include <linux/percpu.h>
#include <linux/rcupdate.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_counter.h>

#include "objects.h"
#include "verbs.h"
#include "../transport/qp.h"

/*
 * nhca_dev.stats stores plain pointers.  On x86, per-CPU pointers may be in another address space
 * of the compiler, so the conversion needs casts.
 */
static void *counters_entry(struct nhca_counters __percpu *counters)
{
	return (void *)(__force unsigned long)counters;
}

static struct nhca_counters __percpu *entry_counters(void *entry)
{
	return (struct nhca_counters __percpu __force *)(unsigned long)entry;
}

/*
 * Let @ibqp count in @counters.  When this function returns, the QP no longer writes to the
 * counters that it used before.
 */
static void nhca_qp_count_in(struct ib_qp *ibqp, struct nhca_counters __percpu *counters)
{
	WRITE_ONCE(to_nhca_qp(ibqp)->who.counters, counters);
	/* Wait for callers of nhca_count_add(), which have BHs disabled or are RCU readers. */
	synchronize_rcu_expedited();
}

struct rdma_hw_stats *nhca_counter_alloc_stats(struct rdma_counter *counter)
{
	return nhca_alloc_hw_stats(counter->device, counter->port);
}

void nhca_counter_init(struct rdma_counter *counter)
{
	/* nhca_counter_begin() allocates the memory when the first queue pair is bound. */
}

/*
 * Allocate memory and number for a counter that gets its first queue pair.
 * Return: 0; -ENOMEM: no memory; -EBUSY: all numbers are in use.
 */
static int nhca_counter_begin(struct nhca_dev *dev, struct rdma_counter *counter)
{
	struct nhca_counters __percpu *counters;
	int err;

	counters = alloc_percpu_gfp(struct nhca_counters, GFP_KERNEL_ACCOUNT);
	if (!counters)
		return -ENOMEM;
	err = xa_alloc(&dev->stats, &counter->id, counters_entry(counters), xa_limit_31b,
		       GFP_KERNEL_ACCOUNT);
	if (err) {
		counter->id = 0;
		free_percpu(counters);
	}
	return err;
}

#ifdef NHCA_OLD_COUNTER
int nhca_counter_bind_qp(struct rdma_counter *counter, struct ib_qp *ibqp)
#else
int nhca_counter_bind_qp(struct rdma_counter *counter, struct ib_qp *ibqp, u32 port)
#endif
{
	struct nhca_dev *dev = to_nhca_dev(ibqp->device);
	struct nhca_qp *qp = to_nhca_qp(ibqp);
	int err = 0;

	/* The core locks only @counter: a concurrent request may bind the QP to another counter. */
	mutex_lock(&qp->modify);
	if (ibqp->counter)
		err = -EBUSY;
	else if (!counter->id)
		err = nhca_counter_begin(dev, counter);
	if (!err) {
		nhca_qp_count_in(ibqp, entry_counters(xa_load(&dev->stats, counter->id)));
		ibqp->counter = counter;
	}
	mutex_unlock(&qp->modify);
	return err;
}

#ifdef NHCA_OLD_COUNTER
int nhca_counter_unbind_qp(struct ib_qp *ibqp)
#else
int nhca_counter_unbind_qp(struct ib_qp *ibqp, u32 port)
#endif
{
	nhca_qp_count_in(ibqp, to_nhca_dev(ibqp->device)->counters);
	ibqp->counter = NULL;
	return 0;
}

int nhca_counter_dealloc(struct rdma_counter *counter)
{
	struct nhca_dev *dev = to_nhca_dev(counter->device);

	struct nhca_counters __percpu *counters;

	/*
	 * No QP counts in these counters any more, and readers hold the lock.  So only this
	 * function accesses the counters after the erase.
	 */
	xa_lock(&dev->stats);
	counters = entry_counters(__xa_erase(&dev->stats, counter->id));
	if (counters)
		nhca_counters_add(counters, dev->ended->v);
	xa_unlock(&dev->stats);
	free_percpu(counters);
	return 0;
}

void nhca_port_counters(struct nhca_dev *dev, u64 *values)
{
	unsigned long id;
	void *entry;

	xa_lock(&dev->stats);
	memcpy(values, dev->ended->v, sizeof(dev->ended->v));
	nhca_counters_add(dev->counters, values);
	xa_for_each(&dev->stats, id, entry)
		nhca_counters_add(entry_counters(entry), values);
	xa_unlock(&dev->stats);
}

int nhca_counter_update_stats(struct rdma_counter *counter)
{
	struct nhca_dev *dev = to_nhca_dev(counter->device);
	struct nhca_counters __percpu *counters;

	xa_lock(&dev->stats);
	counters = entry_counters(xa_load(&dev->stats, counter->id));
	if (counters)
		nhca_counters_sum(counters, counter->stats->value);
	xa_unlock(&dev->stats);
	return counters ? 0 : -ENOENT;
}
