// SPDX-License-Identifier: GPL-2.0
/* Ordered accumulates of a channel. */
#include "begin.h"
#include "ordered.h"

/* Return: true if the accumulate is in progress.  Its rCxt may have been released. */
static bool ordered_busy(struct nhca_channel *ch, const struct nhca_ordered *o)
{
	struct nhca_rcxt *rc;
	bool busy;

	if (!o->tid)
		return false;
	rc = nhca_begin_lock(ch, &o->local);
	busy = rc && nhca_rcxt_in_order(rc, o->tid);
	nhca_begin_unlock(ch, &o->local);
	return busy;
}

/* Return: true if an ordered accumulate that is earlier than ch->wqe waits for the same peer. */
static bool ordered_behind(const struct nhca_channel *ch)
{
	const struct nhca_sending *s;

	list_for_each_entry(s, &ch->waiting, list) {
		if (s == ch->retry)
			break;
		if (s->ordered && s->qpn == ch->wqe->chan.remote_qpn &&
		    s->rx.key == lower_32_bits(ch->wqe->chan.remote_key))
			return true;
	}
	return false;
}

struct nhca_ordered *nhca_ordered_may(struct nhca_channel *ch)
{
	u32 key = lower_32_bits(ch->wqe->chan.remote_key), i;
	struct nhca_ordered *o, *unused = NULL;

	if (ordered_behind(ch))
		return NULL;
	for (i = 0; i < NHCA_CH_ORDERED; i++) {
		o = &ch->ordered[i];
		if (!ordered_busy(ch, o))
			unused = o;
		else if (o->qpn == ch->wqe->chan.remote_qpn && o->key == key)
			return NULL;
	}
	return unused;
}

void nhca_ordered_set(struct nhca_channel *ch, struct nhca_ordered *o)
{
	*o = (struct nhca_ordered) {
		.qpn = ch->wqe->chan.remote_qpn,
		.key = lower_32_bits(ch->wqe->chan.remote_key),
		.local = nhca_rcxt_id_of(ch->wqe->chan.local_rcxt),
		.tid = ch->wqe->rcxt[0].tid,
	};
}

bool nhca_ordered_unbegun(const struct nhca_channel *ch, const struct nhca_rcxt_id *id)
{
	const struct nhca_rcxt_wr *wr = &ch->wqe->rcxt[0];
	const struct nhca_sending *s;

	if (ch->wqe->opcode != NHCA_WR_CH_ACCUMULATE || !(wr->flags & NHCA_RCXT_WR_RETRANSMIT))
		return false;
	list_for_each_entry(s, &ch->waiting, list)
		if (s->behind && s->local.index == id->index && s->rx.tid == wr->tid)
			return true;
	return false;
}

bool nhca_ordered_full(const struct nhca_channel *ch)
{
	const struct nhca_sending *s;
	u32 n = 0;

	if (ch->retry || ch->wqe->opcode != NHCA_WR_CH_ACCUMULATE ||
	    !(ch->wqe->rcxt[0].flags & NHCA_RCXT_WR_ORDERED))
		return false;
	list_for_each_entry(s, &ch->waiting, list)
		n += s->ordered;
	return n >= NHCA_MAX_ORDERED;
}
