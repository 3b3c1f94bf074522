/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Payload of accumulates, which is combined with elements in memory.  Private to rcxt/ and its
 * tests.
 *
 * Each packet is applied at most once: nhca_rcxt_payload() or nhca_rcxt_run() has set the packet's
 * bit in the rCxt, and no bit is cleared while the rCxt receives this transfer.  Each packet is
 * applied as a whole or not at all: access to all its bytes in memory is checked before the first
 * element changes.
 */
#ifndef NHCA_RCXT_ACCUMULATE_H
#define NHCA_RCXT_ACCUMULATE_H

#include "engine.h"

/* the rights that the memory must have */
#define NHCA_ACCUMULATE_ACCESS	(IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_ATOMIC)

/**
 * nhca_accumulate_lock - find the lock of the elements of a page
 * @addr: any byte of the page, in the direct map
 * Context: any.
 * Return: the lock, which the CPU that applies a packet to the page holds.
 */
spinlock_t *nhca_accumulate_lock(const void *addr);

/**
 * nhca_accumulate - combine the payload of packets with the elements that their PVOs name
 * @ch:  the channel
 * @rx:  the first packet; on return the last packet that was applied, or the packet that memory
 *       protection refused
 * @run: number of packets that follow @rx in the batch
 *
 * Other CPUs may apply packets to the same elements at the same time: each element is changed under
 * a lock.  The operation is not atomic with respect to stores of programs, writes of peers or
 * atomics of QPs.
 * Context: softirq, RCU read side, no lock held; not in a live section.
 * Return: NHCA_CH_COUNTERS on success; otherwise the counter for the packet that was refused, of
 * which no element was changed.
 */
enum nhca_channel_counter nhca_accumulate(struct nhca_channel *ch, struct nhca_rx *rx, u32 run);

#endif /* NHCA_RCXT_ACCUMULATE_H */
