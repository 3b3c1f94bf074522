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
 * Context: process, sleeps; as long as the stack keeps a packet.
 */
void nhca_lend_wait(void);

#endif /* NHCA_LEND_H */
