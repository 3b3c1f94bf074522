// SPDX-License-Identifier: GPL-2.0
/* How the work requests of a channel begin transfers on the channel's own rCxts. */
#include "../memory/memcg.h"
#include "begin.h"
#include "third.h"

struct nhca_rcxt *nhca_begin_lock(struct nhca_channel *ch, const struct nhca_rcxt_id *id)
	__acquires(nhca_rcxt_lock(ch->rd, id))
{
	struct nhca_rcxt *rc;

	spin_lock_bh(nhca_rcxt_lock(ch->rd, id));
	nhca_rcxt_find(&ch->rd->pool, ch->qpn, id, &rc);
	return rc;
}

void nhca_begin_unlock(struct nhca_channel *ch, const struct nhca_rcxt_id *id)
	__releases(nhca_rcxt_lock(ch->rd, id))
{
	spin_unlock_bh(nhca_rcxt_lock(ch->rd, id));
}

/* Begin the read of ch->wqe, or begin to repeat its request.  @x: RXETH of the request. */
static int begin_read(struct nhca_channel *ch, struct nhca_rcxt *rc, struct nhca_rxeth *x)
{
	const struct nhca_rcxt_wr *wr = &ch->wqe->rcxt[0];
	struct nhca_rcxt_pool *pool = &ch->rd->pool;
	u64 cookie = ch->wqe->wr_id;
	bool again = wr->flags & NHCA_RCXT_WR_RETRANSMIT;

	if (wr->flags & NHCA_RCXT_WR_FRAMES)
		return again ? nhca_rcxt_frames_again(rc, x) :
			       nhca_rcxt_begin_frames(pool, rc, x, cookie);
	if (again)
		return nhca_rcxt_ask_again(rc, wr->tid, wr->total, wr->segment, wr->local_pvo);
	if (wr->flags & NHCA_RCXT_WR_PROGRAM)
		return nhca_rcxt_begin_ask(pool, rc, wr->tid, wr->total, wr->segment, wr->notify,
					   wr->local_pvo, cookie);
	return nhca_rcxt_begin_read(pool, rc, wr->tid, wr->total, wr->segment, wr->notify,
				    wr->local_pvo, cookie);
}

int nhca_begin(struct nhca_channel *ch, const struct nhca_rcxt_id *id, struct nhca_rxeth *x)
{
	const struct nhca_rcxt_wr *wr = &ch->wqe->rcxt[0];
	struct nhca_rcxt_pool *pool = &ch->rd->pool;
	u64 cookie = ch->wqe->wr_id;
	struct nhca_rcxt_id target;
	struct mem_cgroup *old;
	struct nhca_rcxt *rc;
	int err;

	/* a read may allocate a bitmap, which is charged to ch->memcg */
	old = set_active_memcg(ch->memcg);
	rc = nhca_begin_lock(ch, id);
	if (!rc)
		err = -ENOENT;
	else if (ch->wqe->opcode == NHCA_WR_CH_READ)
		err = begin_read(ch, rc, x);
	else if (wr->flags & NHCA_RCXT_WR_RETRANSMIT)
		err = nhca_rcxt_begin_again(rc, wr->tid, wr->total, wr->segment);
	else if (ch->wqe->opcode == NHCA_WR_CH_WRITE || ch->wqe->opcode == NHCA_WR_CH_ACCUMULATE)
		err = nhca_rcxt_begin_write(pool, rc, wr->tid, wr->total, wr->segment, wr->notify,
					    cookie);
	else if (wr->flags & NHCA_RCXT_WR_PROGRAM)
		err = nhca_rcxt_begin_answer(rc, x);
	else
		err = nhca_rcxt_begin_part(pool, rc, wr->tid, wr->total, wr->segment, wr->notify,
					   cookie, nhca_zcopy_seq(ch->flow));
	if (!err && wr->flags & NHCA_RCXT_WR_ORDERED) {
		target = nhca_rcxt_id_of(ch->wqe->chan.remote_rcxt);
		nhca_rcxt_set_ordered(rc, &target);
	}
	if (rc)
		nhca_rcxt_want(rc, err);
	nhca_begin_unlock(ch, id);
	set_active_memcg(old);
	return err;
}

int nhca_begin_move(struct nhca_channel *ch, const struct nhca_rcxt_id *id, struct nhca_rxeth *x)
{
	u64 digest = nhca_third_digest(ch, x, false);
	struct nhca_rcxt *rc = nhca_begin_lock(ch, id);
	int err;

	if (!rc)
		err = -ENOENT;
	else if (ch->wqe->rcxt[0].flags & NHCA_RCXT_WR_RETRANSMIT)
		err = nhca_rcxt_move_again(rc, x, digest);
	else
		err = nhca_rcxt_begin_move(&ch->rd->pool, rc, x, digest, ch->wqe->wr_id);
	if (rc)
		nhca_rcxt_want(rc, err);
	nhca_begin_unlock(ch, id);
	return err;
}

void nhca_begin_failed(struct nhca_channel *ch, const struct nhca_rcxt_id *id)
{
	struct nhca_rcxt *rc = nhca_begin_lock(ch, id);

	if (rc)
		rc->wanted = false;
	nhca_begin_unlock(ch, id);
}

bool nhca_begin_owned(struct nhca_channel *ch, const struct nhca_rcxt_id *id)
{
	bool owned = nhca_begin_lock(ch, id);

	nhca_begin_unlock(ch, id);
	return owned;
}
