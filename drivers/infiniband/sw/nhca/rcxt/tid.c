// SPDX-License-Identifier: GPL-2.0
/*
 * The tid rules of an rCxt, and the bitmap of a transfer.  half.c has the rules of half transfers.
 */
#include <linux/bitmap.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "tid.h"

/* ---- the bitmap ---- */

static long map_size(u32 packets)
{
	return BITS_TO_LONGS(packets) * sizeof(unsigned long);
}

/*
 * Return: the record of the rCxt's user, or NULL.  The channel has a reference to the record, at
 * least until the rCxt is released, which frees the bitmap.
 */
static struct nhca_user *user_of(struct nhca_rcxt_pool *pool, const struct nhca_rcxt *rc)
{
	return rc->uid == NHCA_RCXT_NO_USER ? NULL : nhca_user_find(pool->users, rc->uid);
}

static void map_uncharge(struct nhca_rcxt_pool *pool, struct nhca_user *user, long size)
{
	if (user)
		atomic_long_sub(size, &user->rcxt_maps);
	atomic_long_sub(size, &pool->map_bytes);
}

static unsigned long *map_alloc(struct nhca_rcxt_pool *pool, const struct nhca_rcxt *rc,
				u32 packets)
{
	struct nhca_user *user = user_of(pool, rc);
	long size = map_size(packets);
	unsigned long *map;

	if (nhca_share_charge(pool->map_limit, user ? &user->rcxt_maps : NULL, &pool->map_bytes,
			      size))
		return NULL;
	/* the caller has made a memory cgroup active, which __GFP_ACCOUNT charges */
	map = kzalloc(size, GFP_ATOMIC | __GFP_NOWARN | __GFP_ACCOUNT);
	if (!map)
		map_uncharge(pool, user, size);
	return map;
}

static void map_free(struct nhca_rcxt_pool *pool, struct nhca_rcxt *rc)
{
	if (!rc->map_kept)
		return;
	kfree(rc->map);
	map_uncharge(pool, user_of(pool, rc), map_size(nhca_rcxt_packets_of(rc)));
	rc->map_kept = false;
}

/* ---- begin and end of a transfer ---- */

void nhca_rcxt_end(struct nhca_rcxt_pool *pool, struct nhca_rcxt *rc, enum nhca_rcxt_state state)
{
	map_free(pool, rc);
	rc->state = state;
}

void nhca_rcxt_start(struct nhca_rcxt *rc, enum nhca_rcxt_state state, u32 tid, u32 total,
		     u32 segment, u8 notify)
{
	rc->state = state;
	rc->tid = tid;
	rc->total = total;
	rc->segment = segment;
	rc->notify = notify;
	rc->noticed = false;
	rc->half = false;
	rc->program = false;
	rc->ordered = false;
	rc->own_write = state == NHCA_RCXT_SENDING || state == NHCA_RCXT_WAITING;
}

/*
 * Begin a transfer that receives payload.
 * Return: false if there is no memory for the bitmap, or a limit for bitmaps would be exceeded; in
 * this case the rCxt is unchanged.
 */
static bool begin_receive(struct nhca_rcxt_pool *pool, struct nhca_rcxt *rc,
			  enum nhca_rcxt_state state, u32 tid, u32 total, u32 segment, u8 notify,
			  u64 pvo, bool half)
{
	u32 packets = nhca_rcxt_packets(total, segment);
	unsigned long *map = NULL;

	if (packets > NHCA_RCXT_FEW) {
		map = map_alloc(pool, rc, packets);
		if (!map)
			return false;
	}
	map_free(pool, rc);
	nhca_rcxt_start(rc, state, tid, total, segment, notify);
	rc->missing = packets;
	rc->pvo = pvo;
	rc->half = half;
	rc->map_kept = !!map;
	if (map)
		rc->map = map;
	else
		memset(rc->bits, 0, sizeof(rc->bits));
	return true;
}

/* ---- payload ---- */

static enum nhca_rcxt_verdict payload_equal(const struct nhca_rcxt *rc, const struct nhca_rxeth *x,
					    bool read)
{
	switch (rc->state) {
	case NHCA_RCXT_READING:
	case NHCA_RCXT_RECEIVING:
		break;
	case NHCA_RCXT_DONE:
		return NHCA_RCXT_DUPLICATE;
	case NHCA_RCXT_VIOLATED:
		return NHCA_RCXT_DEAD;
	case NHCA_RCXT_IDLE:
		return NHCA_RCXT_STALE;
	default:
		return NHCA_RCXT_BUSY;
	}
	if (rc->state != (read ? NHCA_RCXT_READING : NHCA_RCXT_RECEIVING) ||
	    (!read && (x->notify ^ rc->notify) & NHCA_RX_NOTIFY_THIRD) || x->half != rc->half ||
	    (!rc->half && x->pvo - x->offset != rc->pvo) ||
	    (!read && (x->op != rc->op || x->type != rc->type)) ||
	    !nhca_rcxt_sizes_agree(rc, x->total, x->segment))
		return NHCA_RCXT_MISMATCH;
	/* repeated packets that get no frame could forever delay the work request that waits */
	return rc->half && rc->wanted ? NHCA_RCXT_BUSY : NHCA_RCXT_ACCEPT;
}

static enum nhca_rcxt_verdict payload_higher(struct nhca_rcxt_pool *pool, struct nhca_rcxt *rc,
					     const struct nhca_rxeth *x, bool read)
{
	if (read)
		return NHCA_RCXT_UNSOLICITED;
	if (rc->wanted)
		return NHCA_RCXT_BUSY;
	switch (rc->state) {
	case NHCA_RCXT_SENDING:
	case NHCA_RCXT_WAITING:
	case NHCA_RCXT_RELEASING:
	case NHCA_RCXT_READING:
	case NHCA_RCXT_ANSWERING:
	case NHCA_RCXT_MOVING:
	case NHCA_RCXT_FORWARDING:
		return NHCA_RCXT_BUSY;
	}
	/* a CPU that still copies for the earlier transfer could overwrite bytes of the new one */
	if (rc->copies)
		return NHCA_RCXT_WAIT;
	if (!begin_receive(pool, rc, NHCA_RCXT_RECEIVING, x->tid, x->total, x->segment, x->notify,
			   x->pvo - x->offset, x->half))
		return NHCA_RCXT_NO_MAP;
	rc->op = x->op;
	rc->type = x->type;
	return NHCA_RCXT_ACCEPT;
}

enum nhca_rcxt_verdict nhca_rcxt_payload(struct nhca_rcxt_pool *pool, struct nhca_rcxt *rc,
					 const struct nhca_rxeth *x, bool read)
{
	enum nhca_rcxt_verdict verdict;

	if (x->tid < rc->tid)
		return NHCA_RCXT_STALE;
	if (x->tid == rc->tid)
		verdict = payload_equal(rc, x, read);
	else
		verdict = payload_higher(pool, rc, x, read);
	if (verdict)
		return verdict;

	if (__test_and_set_bit(x->offset / rc->segment, nhca_rcxt_map(rc)))
		return NHCA_RCXT_DUPLICATE;
	rc->missing--;
	rc->copies++;
	return NHCA_RCXT_ACCEPT;
}

u32 nhca_rcxt_run(struct nhca_rcxt *rc, const struct nhca_rxeth *x, u32 n)
{
	u32 first = x->offset / rc->segment + 1, i;

	for (i = 0; i < n; i++)
		if (__test_and_set_bit(first + i, nhca_rcxt_map(rc)))
			break;
	rc->missing -= i;
	return i;
}

bool nhca_rcxt_copied(struct nhca_rcxt_pool *pool, struct nhca_rcxt *rc, bool ok)
{
	rc->copies--;
	/* the transfer was canceled, or memory protection refused another packet */
	if (rc->state != NHCA_RCXT_READING && rc->state != NHCA_RCXT_RECEIVING)
		return false;
	if (!ok) {
		nhca_rcxt_end(pool, rc, NHCA_RCXT_VIOLATED);
		return false;
	}
	if (rc->missing || rc->copies)
		return false;
	nhca_rcxt_end(pool, rc, NHCA_RCXT_DONE);
	return true;
}

/* ---- requests, notices, probes ---- */

enum nhca_rcxt_verdict nhca_rcxt_may_request(const struct nhca_rcxt *rc,
					     const struct nhca_rxeth *x)
{
	switch (rc->state) {
	case NHCA_RCXT_SENDING:
	case NHCA_RCXT_WAITING:
	case NHCA_RCXT_RELEASING:
	case NHCA_RCXT_READING:
	case NHCA_RCXT_RECEIVING:
	case NHCA_RCXT_ANSWERING:
	case NHCA_RCXT_MOVING:
	case NHCA_RCXT_FORWARDING:
		return NHCA_RCXT_BUSY;
	}
	if (rc->copies || rc->wanted)
		return NHCA_RCXT_BUSY;
	return x->tid <= rc->tid ? NHCA_RCXT_STALE : NHCA_RCXT_ACCEPT;
}

enum nhca_rcxt_verdict nhca_rcxt_request(struct nhca_rcxt *rc, const struct nhca_rxeth *x)
{
	enum nhca_rcxt_verdict verdict = nhca_rcxt_may_request(rc, x);

	if (verdict)
		return verdict;
	nhca_rcxt_start(rc, NHCA_RCXT_ANSWERING, x->tid, x->total, x->segment, x->notify);
	rc->answers = true;
	return NHCA_RCXT_ACCEPT;
}

enum nhca_rcxt_verdict nhca_rcxt_challenge(const struct nhca_rcxt *rc, const struct nhca_rxeth *x)
{
	if (x->tid < rc->tid)
		return NHCA_RCXT_STALE;
	if (x->tid > rc->tid)
		return NHCA_RCXT_UNSOLICITED;
	if (rc->state == NHCA_RCXT_DONE)
		return NHCA_RCXT_DUPLICATE;
	if (rc->state != NHCA_RCXT_READING || rc->program || rc->half)
		return NHCA_RCXT_UNSOLICITED;
	if (x->reply_pvo != rc->pvo || !nhca_rcxt_sizes_agree(rc, x->total, x->segment))
		return NHCA_RCXT_MISMATCH;
	return NHCA_RCXT_ACCEPT;
}

enum nhca_rcxt_verdict nhca_rcxt_third_may(const struct nhca_rcxt *rc, const struct nhca_rxeth *x)
{
	bool sent = rc->state == NHCA_RCXT_FORWARDED;

	if (x->tid != rc->tid || (!sent && rc->state != NHCA_RCXT_FORWARDING))
		return nhca_rcxt_may_request(rc, x);
	if (x->pvo != rc->pvo || !nhca_rcxt_sizes_agree(rc, x->total, x->segment))
		return NHCA_RCXT_MISMATCH;
	if (x->number <= rc->number)
		return NHCA_RCXT_DUPLICATE;
	if (rc->wanted)
		return NHCA_RCXT_BUSY;
	return sent || rc->parts < NHCA_RCXT_PARTS ? NHCA_RCXT_ACCEPT : NHCA_RCXT_BUSY;
}

enum nhca_rcxt_verdict nhca_rcxt_third_request(struct nhca_rcxt *rc, const struct nhca_rxeth *x)
{
	enum nhca_rcxt_verdict verdict = nhca_rcxt_third_may(rc, x);

	if (verdict)
		return verdict;
	if (rc->state != NHCA_RCXT_FORWARDING || x->tid != rc->tid) {
		/* the notice goes to the manager, so this rCxt waits for none */
		nhca_rcxt_start(rc, NHCA_RCXT_FORWARDING, x->tid, x->total, x->segment, 0);
		rc->parts = 0;
	}
	rc->parts++;
	rc->number = x->number;
	rc->pvo = x->pvo;
	rc->answers = true;
	return NHCA_RCXT_ACCEPT;
}

enum nhca_rcxt_verdict nhca_rcxt_third_challenge(const struct nhca_rcxt *rc,
						 const struct nhca_rxeth *x, u64 digest)
{
	if (x->tid < rc->tid)
		return NHCA_RCXT_STALE;
	if (x->tid > rc->tid)
		return NHCA_RCXT_UNSOLICITED;
	if (rc->state == NHCA_RCXT_DONE)
		return NHCA_RCXT_DUPLICATE;
	if (rc->state != NHCA_RCXT_MOVING)
		return NHCA_RCXT_UNSOLICITED;
	if (digest != rc->digest || x->number != rc->number ||
	    !nhca_rcxt_sizes_agree(rc, x->total, x->segment))
		return NHCA_RCXT_MISMATCH;
	return NHCA_RCXT_ACCEPT;
}

/* Apply the tid rules to the notice of a target, for the manager's rCxt. */
static enum nhca_rcxt_verdict notice_moved(struct nhca_rcxt *rc, const struct nhca_rxeth *x)
{
	if (!(x->notify & NHCA_RX_NOTIFY_THIRD))
		return NHCA_RCXT_UNSOLICITED;
	if (!nhca_rcxt_sizes_agree(rc, x->total, x->segment) ||
	    !nhca_rcxt_id_equal(&rc->target, &x->src_rcxt))
		return NHCA_RCXT_MISMATCH;
	rc->noticed = true;
	rc->noticed_by = x->src_channel;
	rc->state = NHCA_RCXT_DONE;
	return NHCA_RCXT_ACCEPT;
}

enum nhca_rcxt_verdict nhca_rcxt_notice(struct nhca_rcxt *rc, const struct nhca_rxeth *x)
{
	u8 wanted = NHCA_RX_NOTIFY_INITIATOR;

	if (x->tid < rc->tid)
		return NHCA_RCXT_STALE;
	if (x->tid > rc->tid)
		return NHCA_RCXT_UNSOLICITED;
	switch (rc->state) {
	case NHCA_RCXT_ANSWERING:
	case NHCA_RCXT_ANSWERED:
		wanted = NHCA_RX_NOTIFY_TARGET;
		break;
	case NHCA_RCXT_SENDING:
	case NHCA_RCXT_WAITING:
	case NHCA_RCXT_RELEASING:
		break;
	case NHCA_RCXT_MOVING:
		return notice_moved(rc, x);
	case NHCA_RCXT_DONE:
		return NHCA_RCXT_DUPLICATE;
	default:
		return NHCA_RCXT_UNSOLICITED;
	}
	if (!(rc->notify & wanted))
		return NHCA_RCXT_UNSOLICITED;
	if (!nhca_rcxt_sizes_agree(rc, x->total, x->segment))
		return NHCA_RCXT_MISMATCH;
	if (rc->noticed)
		return NHCA_RCXT_DUPLICATE;
	if (rc->ordered && !nhca_rcxt_id_equal(&rc->target, &x->src_rcxt))
		return NHCA_RCXT_MISMATCH;
	rc->noticed = true;
	/* a half-receive read has rc->parts in the place of rc->noticed_by */
	if (wanted == NHCA_RX_NOTIFY_INITIATOR)
		rc->noticed_by = x->src_channel;
	switch (rc->state) {
	case NHCA_RCXT_SENDING:
	case NHCA_RCXT_ANSWERING:
		/* the send engine still sends packets, although the peer does not need them */
		return NHCA_RCXT_LATER;
	case NHCA_RCXT_WAITING:
		rc->state = NHCA_RCXT_RELEASING;
		break;
	default:
		/* ANSWERED: packets have a copy of the payload, and refer to no pages */
		rc->state = NHCA_RCXT_DONE;
	}
	return NHCA_RCXT_ACCEPT;
}

enum nhca_rx_status nhca_rcxt_status(struct nhca_rcxt *rc, const struct nhca_rxeth *x, u8 *map,
				     u32 room, u32 *len, u32 *have)
{
	u32 packets, first, last, bit;

	*len = 0;
	*have = 0;
	if (x->tid != rc->tid || !nhca_rcxt_sizes_agree(rc, x->total, x->segment))
		return NHCA_RX_ST_NONE;
	packets = nhca_rcxt_packets_of(rc);
	switch (rc->state) {
	case NHCA_RCXT_DONE:
		*have = packets;
		return NHCA_RX_ST_DONE;
	case NHCA_RCXT_VIOLATED:
		return NHCA_RX_ST_VIOLATED;
	case NHCA_RCXT_READING:
	case NHCA_RCXT_RECEIVING:
		break;
	default:
		return NHCA_RX_ST_NONE;
	}

	first = x->offset / rc->segment;
	*len = min(room, DIV_ROUND_UP(packets - first, 8));
	*have = packets - rc->missing;
	last = min(packets, first + *len * 8);
	memset(map, 0, *len);
	bit = first;
	for_each_set_bit_from(bit, nhca_rcxt_map(rc), last)
		map[(bit - first) / 8] |= 1 << (bit - first) % 8;
	return NHCA_RX_ST_PARTIAL;
}

enum nhca_rcxt_verdict nhca_rcxt_fence(struct nhca_rcxt_pool *pool, struct nhca_rcxt *rc,
				       const struct nhca_rxeth *x, enum nhca_rx_status *status,
				       u32 *have)
{
	*have = 0;
	if (!x->tid || x->tid < rc->tid)
		return NHCA_RCXT_STALE;
	if (x->tid == rc->tid && rc->state == NHCA_RCXT_DONE) {
		*status = NHCA_RX_ST_DONE;
		*have = nhca_rcxt_packets_of(rc);
		return NHCA_RCXT_ACCEPT;
	}
	switch (rc->state) {
	case NHCA_RCXT_SENDING:
	case NHCA_RCXT_WAITING:
	case NHCA_RCXT_RELEASING:
	case NHCA_RCXT_READING:
	case NHCA_RCXT_MOVING:
		return NHCA_RCXT_BUSY;
	}
	nhca_rcxt_end(pool, rc, NHCA_RCXT_IDLE);
	rc->tid = x->tid;
	*status = NHCA_RX_ST_FENCED;
	return nhca_rcxt_no_copies(rc) && !rc->making ? NHCA_RCXT_ACCEPT : NHCA_RCXT_WAIT;
}

/* ---- the channel's own work ---- */

int nhca_rcxt_may_begin(const struct nhca_rcxt *rc, u32 tid, u32 total, u32 segment)
{
	if (tid <= rc->tid || !nhca_rcxt_sizes_ok(total, segment))
		return -EINVAL;
	if (rc->state == NHCA_RCXT_SENDING || rc->state == NHCA_RCXT_RELEASING ||
	    rc->state == NHCA_RCXT_ANSWERING || rc->state == NHCA_RCXT_FORWARDING)
		return -EBUSY;
	return rc->copies ? -EAGAIN : 0;
}

int nhca_rcxt_begin_write(struct nhca_rcxt_pool *pool, struct nhca_rcxt *rc, u32 tid, u32 total,
			  u32 segment, u8 notify, u64 cookie)
{
	int err = nhca_rcxt_may_begin(rc, tid, total, segment);

	if (err)
		return err;
	map_free(pool, rc);
	nhca_rcxt_start(rc, NHCA_RCXT_SENDING, tid, total, segment, notify);
	rc->wrote = true;
	rc->cookie = cookie;
	return 0;
}

int nhca_rcxt_begin_again(struct nhca_rcxt *rc, u32 tid, u32 total, u32 segment)
{
	if (tid != rc->tid || !nhca_rcxt_sizes_agree(rc, total, segment))
		return -EINVAL;
	switch (rc->state) {
	case NHCA_RCXT_WAITING:
		rc->state = NHCA_RCXT_SENDING;
		/*
		 * Set for a half-send write too: the packets of its work requests are copies, but
		 * packets that are retransmitted from job memory may refer to pages.
		 */
		rc->wrote = true;
		return 0;
	case NHCA_RCXT_SENDING:
	case NHCA_RCXT_RELEASING:
		return -EBUSY;
	case NHCA_RCXT_DONE:
		return -EALREADY;
	default:
		return -EINVAL;
	}
}

int nhca_rcxt_begin_read(struct nhca_rcxt_pool *pool, struct nhca_rcxt *rc, u32 tid, u32 total,
			 u32 segment, u8 notify, u64 pvo, u64 cookie)
{
	int err = nhca_rcxt_may_begin(rc, tid, total, segment);

	if (err)
		return err;
	if (!begin_receive(pool, rc, NHCA_RCXT_READING, tid, total, segment, notify, pvo, false))
		return -ENOMEM;
	rc->cookie = cookie;
	return 0;
}

int nhca_rcxt_begin_move(struct nhca_rcxt_pool *pool, struct nhca_rcxt *rc, struct nhca_rxeth *x,
			 u64 digest, u64 cookie)
{
	int err = nhca_rcxt_may_begin(rc, x->tid, x->total, x->segment);

	if (err)
		return err;
	map_free(pool, rc);
	nhca_rcxt_start(rc, NHCA_RCXT_MOVING, x->tid, x->total, x->segment, x->notify);
	x->number = 0;
	rc->number = 0;
	rc->target = x->target_rcxt;
	rc->digest = digest;
	rc->cookie = cookie;
	return 0;
}

int nhca_rcxt_move_again(struct nhca_rcxt *rc, struct nhca_rxeth *x, u64 digest)
{
	if (x->tid != rc->tid || !nhca_rcxt_sizes_agree(rc, x->total, x->segment))
		return -EINVAL;
	if (rc->state == NHCA_RCXT_DONE)
		return -EALREADY;
	if (rc->state != NHCA_RCXT_MOVING || upper_32_bits(rc->digest ^ digest) ||
	    rc->number == U32_MAX)
		return -EINVAL;
	rc->digest = digest;
	x->number = ++rc->number;
	return 0;
}

bool nhca_rcxt_sent(struct nhca_rcxt *rc, u32 tid)
{
	bool answer = rc->state == NHCA_RCXT_ANSWERING;
	u8 wanted = answer ? NHCA_RX_NOTIFY_TARGET : NHCA_RX_NOTIFY_INITIATOR;

	if (!nhca_rcxt_sends(rc, tid))
		return false;
	if (rc->state == NHCA_RCXT_FORWARDING) {
		if (!--rc->parts)
			rc->state = NHCA_RCXT_FORWARDED;
		return false;
	}
	/* half-receive read: packets of another part, which the reader has requested, are left */
	if (answer && rc->half && --rc->parts)
		return false;
	if (rc->noticed)
		rc->state = answer ? NHCA_RCXT_DONE : NHCA_RCXT_RELEASING;
	else if (rc->notify & wanted || (answer && rc->half))
		rc->state = answer ? NHCA_RCXT_ANSWERED : NHCA_RCXT_WAITING;
	else
		rc->state = NHCA_RCXT_IDLE;
	return rc->noticed;
}

int nhca_rcxt_cancel(struct nhca_rcxt_pool *pool, struct nhca_rcxt *rc, u32 tid)
{
	if (tid < rc->tid)
		return -EINVAL;
	if (tid == rc->tid && rc->state == NHCA_RCXT_DONE)
		return -EALREADY;
	if (rc->state == NHCA_RCXT_RELEASING)
		return -EBUSY;
	nhca_rcxt_end(pool, rc, NHCA_RCXT_IDLE);
	rc->tid = tid;
	return 0;
}
