/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Pages on loan to the network stack: payload that rides by reference is read after
 * the live section that found it.  A packet that carries such payload holds a loan
 * until the stack frees it; closing a region that was lent waits for the loans that
 * were out.
 *
 * The stack tells by the skb's destructor.  It calls that early where it hands a packet
 * to another namespace or to this host itself (veth, loopback): there the reference on
 * the page keeps the memory, but the loan is over when the packet changes hands.
 */
#ifndef NHCA_LEND_H
#define NHCA_LEND_H

#include <linux/types.h>

/**
 * nhca_lend - begin a loan
 * Context: live section, any CPU.  Return: the loan, 0 or 1.
 */
int nhca_lend(void);

/* the packet is gone; any context */
void nhca_lend_return(int loan);

/**
 * nhca_lend_wait - wait until every loan that is out has come back
 * Later ones are not waited for.  Keys that lead to the pages have been closed.
 *
 * A netdev whose transmit queue stands still keeps packets for ever, and no process may
 * live on for that: after a second the wait is given up, and until something has come
 * back the next ones are a jiffy long.  The packets' references keep the pages then;
 * what leaves late is data of requests that their owner posted and did not wait for.
 *
 * Context: process, sleeps.  Return: false if it was given up.
 */
bool nhca_lend_wait(void);

/* module init; process context.  Return: 0 or -ENOMEM. */
int nhca_lend_init(void);

/* module exit, behind the last packet; process context, sleeps */
void nhca_lend_exit(void);

#endif /* NHCA_LEND_H */
