// SPDX-License-Identifier: GPL-2.0
/*
 * Notices: a notice says that a peer has placed all bytes of a transfer.  The transfer is a write
 * that this channel has sent, a read that this channel has answered, or a third-party transfer that
 * it manages.
 *
 * A notice completes a write, and then the program may reuse the buffer of the write.  So the write
 * may complete only when no packet refers to its pages any more.  But when the notice arrives, the
 * network stack may still hold packets that were retransmitted or delayed (Documentation/rcxt.rst,
 * "Buffers").  Then the rCxt of the write waits in nhca_channel.noticed until these packets are
 * freed, and the write completes in the channel's next turn.
 */
#include "notice.h"

static struct nhca_rcxt *noticed_entry(struct nhca_channel *ch, u32 index)
{
	return &ch->rd->pool.rcxts[index];
}

static void noticed_add(struct nhca_channel *ch, struct nhca_rcxt *rc)
{
	u32 index = nhca_rcxt_index(&ch->rd->pool, rc);

	spin_lock_bh(&ch->lock);
	rc->noticed_next = NHCA_RCXT_NONE;
	rc->noticed_prev = ch->noticed.last;
	if (ch->noticed.last != NHCA_RCXT_NONE)
		noticed_entry(ch, ch->noticed.last)->noticed_next = index;
	else
		WRITE_ONCE(ch->noticed.first, index);
	ch->noticed.last = index;
	spin_unlock_bh(&ch->lock);
}

static void noticed_remove(struct nhca_channel *ch, struct nhca_rcxt *rc)
{
	spin_lock_bh(&ch->lock);
	if (rc->noticed_next != NHCA_RCXT_NONE)
		noticed_entry(ch, rc->noticed_next)->noticed_prev = rc->noticed_prev;
	else
		ch->noticed.last = rc->noticed_prev;
	if (rc->noticed_prev != NHCA_RCXT_NONE)
		noticed_entry(ch, rc->noticed_prev)->noticed_next = rc->noticed_next;
	else
		WRITE_ONCE(ch->noticed.first, rc->noticed_next);
	spin_unlock_bh(&ch->lock);
}

/*
 * Get the id of the first rCxt in nhca_channel.noticed.  The rCxt may be released before the caller
 * takes the rCxt's lock.  Return: false if the list is empty.
 */
static bool noticed_first(struct nhca_channel *ch, struct nhca_rcxt_id *id)
{
	if (READ_ONCE(ch->noticed.first) == NHCA_RCXT_NONE)
		return false;
	spin_lock_bh(&ch->lock);
	id->index = ch->noticed.first;
	if (id->index != NHCA_RCXT_NONE)
		id->key = noticed_entry(ch, id->index)->key;
	spin_unlock_bh(&ch->lock);
	return id->index != NHCA_RCXT_NONE;
}

static void notice_cqe(struct nhca_cqe *cqe, const struct nhca_rcxt *rc,
		       const struct nhca_rcxt_id *id, enum nhca_channel_wc opcode)
{
	*cqe = (struct nhca_cqe) {
		.wr_id = rc->cookie,
		.opcode = opcode,
		.byte_len = rc->total,
		.src_qp = rc->noticed_by,
		.chan = {
			.rcxt_index = id->index,
			.rcxt_key = id->key,
			.tid = rc->tid,
		},
	};
}

void nhca_notice_wait(struct nhca_channel *ch, struct nhca_rcxt *rc)
{
	noticed_add(ch, rc);
}

void nhca_notice_forget(struct nhca_channel *ch, struct nhca_rcxt *rc)
{
	if (rc->state == NHCA_RCXT_RELEASING)
		noticed_remove(ch, rc);
}

/*
 * Return: true if no packet refers to the pages of a write.  Packets of a half-send write have a
 * copy of their payload.
 */
static bool write_released(struct nhca_channel *ch, const struct nhca_rcxt *rc)
{
	return !rc->wrote || nhca_zcopy_released(ch->flow, rc->zcopy);
}

/*
 * End a write whose notice has arrived and whose packets were all sent.
 * Return: true if no packet refers to the pages of the write: the caller must post the completion.
 * Otherwise the function has put the rCxt on nhca_channel.noticed.
 */
static bool notice_released(struct nhca_channel *ch, struct nhca_rcxt *rc)
{
	if (write_released(ch, rc)) {
		nhca_rcxt_released(rc);
		return true;
	}
	noticed_add(ch, rc);
	/* a release may have kicked the channel before the rCxt was in the list: check again */
	if (nhca_zcopy_released(ch->flow, rc->zcopy))
		nhca_drr_ready(ch, true);
	return false;
}

void nhca_notice_answered(struct nhca_channel *ch, const struct nhca_rcxt_id *local,
			  const struct nhca_rxeth *x, u32 reader)
{
	struct nhca_cqe cqe = {
		.wr_id = x->cookie,
		.opcode = NHCA_WC_CH_REMOTE_READ,
		.byte_len = x->total,
		.src_qp = reader,
		.chan = {
			.rcxt_index = local->index,
			.rcxt_key = local->key,
			.tid = x->tid,
		},
	};

	nhca_channel_complete(ch, true, &cqe, false);
}

void nhca_notice_rx(struct nhca_channel *ch, const struct nhca_rx *rx)
{
	const struct nhca_rxeth *x = &rx->hdr.rx;
	spinlock_t *lock = nhca_rcxt_lock(ch->rd, &x->rcxt);
	enum nhca_rcxt_verdict verdict = NHCA_RCXT_ACCEPT;
	enum nhca_rcxt_lookup lookup;
	bool answered = false, moved = false, written = false, ordered = false;
	struct nhca_rcxt *rc;
	struct nhca_cqe cqe;

	spin_lock(lock);
	lookup = nhca_rcxt_find(&ch->rd->pool, ch->qpn, &x->rcxt, &rc);
	if (!lookup) {
		answered = rc->state == NHCA_RCXT_ANSWERED;
		moved = rc->state == NHCA_RCXT_MOVING;
		verdict = nhca_rcxt_notice(rc, x);
		ordered = rc->ordered && (!verdict || verdict == NHCA_RCXT_LATER);
	}
	if (!lookup && !verdict && !answered) {
		/* a manager sends no payload, so no packet refers to pages of the program */
		written = moved || notice_released(ch, rc);
		notice_cqe(&cqe, rc, &x->rcxt, moved ? NHCA_WC_CH_MOVE : NHCA_WC_CH_WRITE);
	}
	spin_unlock(lock);
	/* the next ordered accumulate may begin */
	if (ordered)
		nhca_drr_ready(ch, true);
	/* the send engine still sends packets of the transfer; send_over() will use the notice */
	if (verdict == NHCA_RCXT_LATER)
		return;
	if (nhca_recv_refused(ch, x, lookup, verdict))
		return;
	if (answered)
		nhca_notice_answered(ch, &x->rcxt, x, x->src_channel);
	else if (written)
		nhca_channel_complete(ch, false, &cqe, false);
}

bool nhca_notice_early(struct nhca_channel *ch, const struct nhca_rcxt *rc,
		       const struct nhca_rxeth *x)
{
	nhca_rcxt_assert_held(ch->rd, rc);
	if (x->status != NHCA_RX_ST_DONE || x->tid != rc->tid)
		return false;
	switch (rc->state) {
	case NHCA_RCXT_SENDING:
		return true;
	case NHCA_RCXT_WAITING:
	case NHCA_RCXT_RELEASING:
		return !write_released(ch, rc);
	default:
		return false;
	}
}

/*
 * Complete the write on @id, the first rCxt in nhca_channel.noticed.
 * Return: false if packets still refer to the pages of the write.
 */
static bool notice_complete(struct nhca_channel *ch, const struct nhca_rcxt_id *id)
{
	spinlock_t *lock = nhca_rcxt_lock(ch->rd, id);
	struct nhca_rcxt *rc;
	struct nhca_cqe cqe;
	bool there, released;

	spin_lock_bh(lock);
	/* the rCxt may have been released since noticed_first() */
	there = !nhca_rcxt_find(&ch->rd->pool, ch->qpn, id, &rc) &&
		rc->state == NHCA_RCXT_RELEASING;
	released = there && nhca_zcopy_released(ch->flow, rc->zcopy);
	if (released) {
		noticed_remove(ch, rc);
		nhca_rcxt_released(rc);
		notice_cqe(&cqe, rc, id, NHCA_WC_CH_WRITE);
	}
	spin_unlock_bh(lock);
	if (released)
		nhca_channel_complete(ch, false, &cqe, false);
	return released || !there;
}

bool nhca_notice_complete(struct nhca_channel *ch, u32 *cost)
{
	struct nhca_rcxt_id id;
	u32 n;

	for (n = 0; n < NHCA_CH_FORGET; n++, ++*cost)
		if (!noticed_first(ch, &id) || !notice_complete(ch, &id))
			return false;
	return true;
}
