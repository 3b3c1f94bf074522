// SPDX-License-Identifier: GPL-2.0
/*
 * The tid rules of half transfers, in which only one end uses job memory (Documentation/rcxt.rst,
 * "Half transfers").  tid.c has all rules that half transfers share with other transfers.
 */
#include <linux/bitops.h>

#include "tid.h"

void nhca_rcxt_not_framed(struct nhca_rcxt *rc, const struct nhca_rxeth *x)
{
	rc->copies--;
	/* during the copy, no other transfer can begin, but the transfer of @x may be canceled */
	if ((rc->state != NHCA_RCXT_RECEIVING && rc->state != NHCA_RCXT_READING) ||
	    rc->tid != x->tid)
		return;
	__clear_bit(x->offset / rc->segment, nhca_rcxt_map(rc));
	rc->missing++;
}

enum nhca_rcxt_verdict nhca_rcxt_ask(struct nhca_rcxt *rc, const struct nhca_rxeth *x)
{
	enum nhca_rcxt_verdict verdict = nhca_rcxt_may_request(rc, x);

	if (verdict)
		return verdict;
	/* the engine has no packet to send, because each work request of the program sends one */
	nhca_rcxt_start(rc, NHCA_RCXT_ANSWERED, x->tid, x->total, x->segment, x->notify);
	rc->program = true;
	rc->answers = true;
	return NHCA_RCXT_ACCEPT;
}

void nhca_rcxt_not_asked(struct nhca_rcxt *rc, const struct nhca_rxeth *x)
{
	/* the channel, or a peer, may have begun another transfer since, or canceled this one */
	if (rc->state != NHCA_RCXT_ANSWERED || !rc->program || rc->tid != x->tid)
		return;
	rc->state = NHCA_RCXT_IDLE;
	rc->tid--;
}

int nhca_rcxt_begin_part(struct nhca_rcxt_pool *pool, struct nhca_rcxt *rc, u32 tid, u32 total,
			 u32 segment, u8 notify, u64 cookie, u32 zcopy)
{
	int err;

	if (tid == rc->tid) {
		if (!nhca_rcxt_sizes_agree(rc, total, segment))
			return -EINVAL;
		switch (rc->state) {
		case NHCA_RCXT_SENDING:
		case NHCA_RCXT_WAITING:
			return 0;
		case NHCA_RCXT_RELEASING:
			return -EALREADY;
		case NHCA_RCXT_DONE:
			/* -EINVAL: the complete transfer was not a write of this channel */
			return rc->own_write ? -EALREADY : -EINVAL;
		default:
			return -EINVAL;
		}
	}
	err = nhca_rcxt_may_begin(rc, tid, total, segment);
	if (err)
		return err;
	nhca_rcxt_end(pool, rc, NHCA_RCXT_WAITING);
	/* the engine has no packet to send, because each work request sends one */
	nhca_rcxt_start(rc, NHCA_RCXT_WAITING, tid, total, segment, notify);
	rc->zcopy = zcopy;
	rc->answers = true;
	rc->cookie = cookie;
	return 0;
}

int nhca_rcxt_begin_answer(const struct nhca_rcxt *rc, struct nhca_rxeth *x)
{
	if (x->tid != rc->tid || !nhca_rcxt_sizes_agree(rc, x->total, x->segment))
		return -EINVAL;
	if (!rc->program)
		return -EINVAL;
	if (rc->state == NHCA_RCXT_DONE)
		return -EALREADY;
	if (rc->state != NHCA_RCXT_ANSWERED)
		return -EINVAL;
	x->notify = rc->notify;
	return 0;
}

int nhca_rcxt_begin_ask(struct nhca_rcxt_pool *pool, struct nhca_rcxt *rc, u32 tid, u32 total,
			u32 segment, u8 notify, u64 pvo, u64 cookie)
{
	int err = nhca_rcxt_begin_read(pool, rc, tid, total, segment, notify, pvo, cookie);

	if (!err)
		rc->program = true;
	return err;
}

int nhca_rcxt_ask_again(const struct nhca_rcxt *rc, u32 tid, u32 total, u32 segment, u64 pvo)
{
	if (tid != rc->tid || !nhca_rcxt_sizes_agree(rc, total, segment))
		return -EINVAL;
	if (!rc->program)
		return -EINVAL;
	if (rc->state == NHCA_RCXT_DONE)
		return -EALREADY;
	return rc->state == NHCA_RCXT_READING && rc->pvo == pvo ? 0 : -EINVAL;
}

/* ---- half-receive reads ---- */

/* Return: true if the request repeats the half-receive read that the rCxt answers. */
static bool frames_repeated(const struct nhca_rcxt *rc, const struct nhca_rxeth *x)
{
	return x->tid == rc->tid && rc->half &&
	       (rc->state == NHCA_RCXT_ANSWERING || rc->state == NHCA_RCXT_ANSWERED);
}

enum nhca_rcxt_verdict nhca_rcxt_frames_may(const struct nhca_rcxt *rc, const struct nhca_rxeth *x)
{
	if (!frames_repeated(rc, x))
		return nhca_rcxt_may_request(rc, x);
	if (x->pvo != rc->pvo || !nhca_rcxt_sizes_agree(rc, x->total, x->segment))
		return NHCA_RCXT_MISMATCH;
	/* the reader has all packets, or has sent this or a later request before */
	if (rc->noticed || x->number <= rc->number)
		return NHCA_RCXT_DUPLICATE;
	if (rc->wanted)
		return NHCA_RCXT_BUSY;
	return rc->state == NHCA_RCXT_ANSWERED || rc->parts < NHCA_RCXT_PARTS ?
	       NHCA_RCXT_ACCEPT : NHCA_RCXT_BUSY;
}

enum nhca_rcxt_verdict nhca_rcxt_frames_request(struct nhca_rcxt *rc, const struct nhca_rxeth *x)
{
	enum nhca_rcxt_verdict verdict = nhca_rcxt_frames_may(rc, x);

	if (verdict)
		return verdict;
	if (!frames_repeated(rc, x) || rc->state == NHCA_RCXT_ANSWERED) {
		nhca_rcxt_start(rc, NHCA_RCXT_ANSWERING, x->tid, x->total, x->segment, x->notify);
		rc->half = true;
		rc->pvo = x->pvo;
		rc->parts = 0;
	}
	rc->parts++;
	rc->number = x->number;
	rc->answers = true;
	return NHCA_RCXT_ACCEPT;
}

enum nhca_rcxt_verdict nhca_rcxt_frames_challenge(const struct nhca_rcxt *rc,
						  const struct nhca_rxeth *x)
{
	if (x->tid < rc->tid)
		return NHCA_RCXT_STALE;
	if (x->tid > rc->tid)
		return NHCA_RCXT_UNSOLICITED;
	if (rc->state == NHCA_RCXT_DONE)
		return NHCA_RCXT_DUPLICATE;
	if (rc->state != NHCA_RCXT_READING || !rc->half)
		return NHCA_RCXT_UNSOLICITED;
	if (x->number != rc->asked || !nhca_rcxt_sizes_agree(rc, x->total, x->segment))
		return NHCA_RCXT_MISMATCH;
	return NHCA_RCXT_ACCEPT;
}

int nhca_rcxt_begin_frames(struct nhca_rcxt_pool *pool, struct nhca_rcxt *rc,
			   const struct nhca_rxeth *x, u64 cookie)
{
	int err = nhca_rcxt_begin_read(pool, rc, x->tid, x->total, x->segment, x->notify, 0,
				       cookie);

	if (err)
		return err;
	rc->half = true;
	rc->asked = x->number;
	return 0;
}

int nhca_rcxt_frames_again(struct nhca_rcxt *rc, struct nhca_rxeth *x)
{
	if (x->tid != rc->tid || !nhca_rcxt_sizes_agree(rc, x->total, x->segment))
		return -EINVAL;
	if (rc->state == NHCA_RCXT_DONE)
		return -EALREADY;
	if (rc->state != NHCA_RCXT_READING || !rc->half || rc->asked == U32_MAX)
		return -EINVAL;
	x->number = ++rc->asked;
	return 0;
}
