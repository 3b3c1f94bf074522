// SPDX-License-Identifier: GPL-2.0
/*
 * Pages on loan to the network stack.
 */
#include <linux/srcu.h>

#include "../compat.h"
#include "lend.h"

/*
 * Two epochs of per-CPU counters: a reader is a packet from when it is built until the
 * stack frees it, on whatever CPU.  The kernel has that, as sleepable RCU's.
 */
DEFINE_STATIC_SRCU(nhca_loans);

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

void nhca_lend_wait(void)
{
	synchronize_srcu_expedited(&nhca_loans);
}
