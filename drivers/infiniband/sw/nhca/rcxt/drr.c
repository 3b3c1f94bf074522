// SPDX-License-Identifier: GPL-2.0
/*
 * Deficit round robin: channels of a device that have something to send wait in a list.  The first
 * channel sends up to its quantum, and is then put at the end of the list if it has more to send
 * (reference US 8,023,417: round robin with quantum k).  A thread that rings a doorbell serves the
 * list for one pass (NHCA_CH_PASS).  The bottom half nhca_rcxt_dev.engine does the same.  So
 * several CPUs may serve a device at a time.  But only one CPU serves a channel, because a channel
 * is off the list during its turn.
 */
#include "engine.h"

void nhca_drr_ready(struct nhca_channel *ch, bool schedule)
{
	struct nhca_rcxt_dev *rd = ch->rd;
	unsigned long flags;

	spin_lock_irqsave(&rd->ready_lock, flags);
	switch (ch->drr) {
	case NHCA_DRR_IDLE:
		ch->drr = NHCA_DRR_READY;
		list_add_tail(&ch->ready, &rd->ready);
		break;
	case NHCA_DRR_RUNNING:
		ch->drr = NHCA_DRR_AGAIN;
		break;
	case NHCA_DRR_CLOSED:
		schedule = false;
		break;
	default:
		break;
	}
	spin_unlock_irqrestore(&rd->ready_lock, flags);
	if (schedule)
		nhca_bh_queue(&rd->engine);
}

void nhca_drr_close(struct nhca_channel *ch)
{
	struct nhca_rcxt_dev *rd = ch->rd;
	unsigned long flags;

	spin_lock_irqsave(&rd->ready_lock, flags);
	ch->drr = NHCA_DRR_CLOSED;
	list_del_init(&ch->ready);
	spin_unlock_irqrestore(&rd->ready_lock, flags);
}

/* Return: the first channel of the list, whose turn the caller has until drr_end(); or NULL. */
static struct nhca_channel *drr_begin(struct nhca_rcxt_dev *rd)
{
	struct nhca_channel *ch;
	unsigned long flags;

	spin_lock_irqsave(&rd->ready_lock, flags);
	ch = list_first_entry_or_null(&rd->ready, struct nhca_channel, ready);
	if (ch) {
		list_del_init(&ch->ready);
		ch->drr = NHCA_DRR_RUNNING;
	}
	spin_unlock_irqrestore(&rd->ready_lock, flags);
	return ch;
}

/* End a channel's turn. @more: the channel can send more, and no event calls nhca_drr_ready(). */
static void drr_end(struct nhca_channel *ch, bool more)
{
	struct nhca_rcxt_dev *rd = ch->rd;
	unsigned long flags;

	spin_lock_irqsave(&rd->ready_lock, flags);
	if (ch->drr == NHCA_DRR_AGAIN || (ch->drr == NHCA_DRR_RUNNING && more)) {
		ch->drr = NHCA_DRR_READY;
		list_add_tail(&ch->ready, &rd->ready);
	} else if (ch->drr == NHCA_DRR_RUNNING) {
		ch->drr = NHCA_DRR_IDLE;
	}
	spin_unlock_irqrestore(&rd->ready_lock, flags);
}

void nhca_drr_run(struct nhca_rcxt_dev *rd)
{
	struct nhca_channel *ch;
	u32 budget = NHCA_CH_PASS;

	while (budget) {
		ch = drr_begin(rd);
		if (!ch)
			return;
		drr_end(ch, nhca_send_quantum(ch, &budget));
	}
	nhca_bh_queue(&rd->engine);
}

void nhca_channel_doorbell(struct nhca_channel *ch)
{
	nhca_drr_ready(ch, false);
	local_bh_disable();
	rcu_read_lock();
	nhca_drr_run(ch->rd);
	rcu_read_unlock();
	local_bh_enable();
}
