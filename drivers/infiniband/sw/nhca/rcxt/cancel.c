// SPDX-License-Identifier: GPL-2.0
/*
 * State of the cancels of a channel.  A cancel that waits is in nhca_channel.waiting, so that later
 * work requests pass it, and its state is in its struct nhca_sending.  If the list is full, the
 * cancel stays in the send FIFO, and its state is in the channel.  One state is enough, because
 * only one cancel can be the next entry of the FIFO.
 */
#include "begin.h"
#include "cancel.h"

int nhca_cancel_begin(struct nhca_channel *ch, const struct nhca_rcxt_id *id, u32 tid)
{
	struct nhca_rcxt *rc = nhca_begin_lock(ch, id);
	int err = -ENOENT;

	if (rc) {
		err = nhca_rcxt_cancel(&ch->rd->pool, rc, tid);
		nhca_rcxt_await(rc);
	}
	nhca_begin_unlock(ch, id);
	return err;
}

void nhca_cancel_record(struct nhca_channel *ch)
{
	u32 zcopy = nhca_zcopy_seq(ch->flow);

	if (ch->retry) {
		ch->retry->cancelling = true;
		ch->retry->zcopy = zcopy;
		return;
	}
	ch->cancelling = true;
	ch->cancel_index = ch->fetched;
	ch->cancel_zcopy = zcopy;
}

bool nhca_cancel_begun(const struct nhca_channel *ch)
{
	if (ch->retry)
		return ch->retry->cancelling;
	return ch->cancelling && ch->cancel_index == ch->fetched;
}

bool nhca_cancel_copying(struct nhca_channel *ch, const struct nhca_rcxt_id *id)
{
	struct nhca_rcxt *rc = nhca_begin_lock(ch, id);
	bool copying = rc && rc->awaited;

	nhca_begin_unlock(ch, id);
	return copying;
}

bool nhca_cancel_released(struct nhca_channel *ch)
{
	return nhca_zcopy_released(ch->flow, ch->retry ? ch->retry->zcopy : ch->cancel_zcopy);
}

void nhca_cancel_end(struct nhca_channel *ch)
{
	if (!ch->retry)
		ch->cancelling = false;
}
