// SPDX-License-Identifier: GPL-2.0
/* Accumulates: the payload of packets is combined with elements in memory. */
#include <linux/hash.h>

#include "../observe/stub.h"
#include "../wire/element.h"
#include "accumulate.h"

/* maximum number of pages that contain the elements of a packet */
#define ACCUMULATE_PAGES	(NHCA_RCXT_MAX_SEGMENT / PAGE_SIZE + 2)
#define ACCUMULATE_LOCK_BITS	8
#define ACCUMULATE_LOCKS	BIT(ACCUMULATE_LOCK_BITS)
/* maximum bytes of an element */
#define ACCUMULATE_ELEMENT	8

/*
 * Each of these locks protects the elements of many pages while a packet is applied to them.  Job
 * memory is in the direct map, so the lock of a page does not depend on the region, channel or
 * device that a packet uses.  A CPU holds at most one of these locks at a time.
 */
static struct {
	spinlock_t lock;	/* elements of pages with this hash */
} ____cacheline_aligned_in_smp element_locks[ACCUMULATE_LOCKS] = {
	[0 ... ACCUMULATE_LOCKS - 1] = { .lock = __SPIN_LOCK_UNLOCKED(element_locks.lock) },
};

spinlock_t *nhca_accumulate_lock(const void *addr)
{
	return &element_locks[hash_long((unsigned long)addr >> PAGE_SHIFT,
					ACCUMULATE_LOCK_BITS)].lock;
}

/*
 * Find all bytes in memory that a packet is applied to, and check access to them.
 * Return: number of segments, each in one page; -EACCES: memory protection refuses a byte;
 * -EFAULT: the skb has fewer bytes than the payload.
 */
static int accumulate_find(struct nhca_channel *ch, const struct nhca_rx *rx, struct nhca_seg *segs)
{
	struct nhca_iter it;
	u32 left;
	int n, err;

	if (rx->off + rx->payload > rx->skb->len)
		return -EFAULT;
	nhca_iter_pvo(&it, ch->job, rx->hdr.rx.pvo, rx->payload, NHCA_ACCUMULATE_ACCESS);
	for (n = 0, left = rx->payload; left; left -= segs[n++].len) {
		err = nhca_iter_next(&it, left, &segs[n]);
		if (err)
			return err;
	}
	return n;
}

/*
 * Apply the payload from @off on to the bytes of one page.  The elements in memory are aligned; the
 * payload may have any alignment, and two fragments of the skb may each have a part of an element.
 */
static void accumulate_page(struct nhca_rx *rx, u32 off, const struct nhca_seg *seg)
{
	const struct nhca_rxeth *x = &rx->hdr.rx;
	u32 size = nhca_element_size(x->op, x->type), done, n;
	spinlock_t *lock = nhca_accumulate_lock(seg->addr);
	u8 buf[ACCUMULATE_ELEMENT];
	const u8 *from;

	spin_lock(lock);
	for (done = 0; done < seg->len; done += n) {
		from = nhca_rx_whole(rx, off + done, seg->len - done, size, buf, &n);
		/* accumulate_find() has checked that the skb has these bytes */
		if (WARN_ON_ONCE(!from))
			break;
		nhca_element_combine(x->op, x->type, seg->addr + done, from, n);
	}
	spin_unlock(lock);
}

/* Apply one packet.  Return: 0, or an error of accumulate_find(): no element has changed. */
static int accumulate_one(struct nhca_channel *ch, struct nhca_rx *rx)
{
	struct nhca_seg segs[ACCUMULATE_PAGES];
	u32 off = 0;
	int n, i;

	if (!rx->payload)
		return 0;
	/* one live section for each packet, because combining takes longer than copying */
	nhca_live_enter();
	n = accumulate_find(ch, rx, segs);
	for (i = 0; i < n; i++) {
		accumulate_page(rx, off, &segs[i]);
		off += segs[i].len;
	}
	nhca_live_exit();
	return min(n, 0);
}

enum nhca_channel_counter nhca_accumulate(struct nhca_channel *ch, struct nhca_rx *rx, u32 run)
{
	NHCA_STUB(nhca_accumulate, ch, rx, run);
	for (;;) {
		if (accumulate_one(ch, rx))
			return nhca_recv_pvo(ch, rx->hdr.rx.pvo, rx->payload,
					     NHCA_ACCUMULATE_ACCESS);
		if (!run--)
			return NHCA_CH_COUNTERS;
		nhca_rx_next(rx);
	}
}
