// SPDX-License-Identifier: GPL-2.0
/*
 * Pages on loan to the network stack.
 */
#include <linux/atomic.h>
#include <linux/jiffies.h>
#include <linux/srcu.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "../compat.h"
#include "lend.h"

/*
 * Two epochs of per-CPU counters: a reader is a packet from when it is built until the
 * stack frees it, on whatever CPU.  The kernel has that, as sleepable RCU's.
 */
DEFINE_STATIC_SRCU(nhca_loans);

/* jiffies that a packet has to leave, unless its netdev does not send */
#define NHCA_LEND_PATIENCE	HZ

int nhca_lend(void)
	__acquires(&nhca_loans)
{
	return srcu_down_read(&nhca_loans);
}

void nhca_lend_return(int loan)
	__releases(&nhca_loans)
{
	srcu_up_read(&nhca_loans, loan);
}

/*
 * Who waits takes a ticket, and a work item gives back all tickets that were taken
 * before it began: a wait that can be given up, which synchronize_srcu() has not.
 */
static atomic_t nhca_lend_taken = ATOMIC_INIT(0);
static int nhca_lend_returned;
static DECLARE_WAIT_QUEUE_HEAD(nhca_lend_waiters);
/* a work item of it may sleep for as long as a netdev does not send */
static struct workqueue_struct *nhca_lend_wq;
/* the last one who waited gave up, and nothing has come back since */
static bool nhca_lend_stuck;

static void nhca_lend_sync(struct work_struct *work)
{
	int ticket = atomic_read_acquire(&nhca_lend_taken);

	synchronize_srcu_expedited(&nhca_loans);
	WRITE_ONCE(nhca_lend_stuck, false);
	/* whoever sees it sees what the packets' owners did before */
	smp_store_release(&nhca_lend_returned, ticket);
	wake_up_all(&nhca_lend_waiters);
}

static DECLARE_WORK(nhca_lend_work, nhca_lend_sync);

static bool nhca_lend_is_back(int ticket)
{
	/* pairs with nhca_lend_sync() */
	return smp_load_acquire(&nhca_lend_returned) - ticket >= 0;
}

bool nhca_lend_wait(void)
{
	unsigned long patience = READ_ONCE(nhca_lend_stuck) ? 1 : NHCA_LEND_PATIENCE;
	/* ordered before the work's look: queue_work() is a barrier where the work waits */
	int ticket = atomic_inc_return(&nhca_lend_taken);

	queue_work(nhca_lend_wq, &nhca_lend_work);
	if (wait_event_timeout(nhca_lend_waiters, nhca_lend_is_back(ticket), patience))
		return true;
	WRITE_ONCE(nhca_lend_stuck, true);
	return false;
}

int nhca_lend_init(void)
{
	nhca_lend_wq = alloc_workqueue("nhca_lend", WQ_UNBOUND, 1);
	return nhca_lend_wq ? 0 : -ENOMEM;
}

void nhca_lend_exit(void)
{
	destroy_workqueue(nhca_lend_wq);
}
