// SPDX-License-Identifier: GPL-2.0
/*
 * The send engine: a channel's turn, in which it takes work requests out of its FIFO and makes
 * packets of the transfers that are under way, its own writes and its peers' reads alike.
 *
 * A packet says all that is needed to place its bytes, so that transfers take turns and nothing
 * waits for an acknowledgment.  What cannot leave now, for want of memory or a route, counts as
 * lost on the wire.
 */
#include <linux/slab.h>

#include "engine.h"

void nhca_send_hdr(const struct nhca_channel *ch, struct nhca_hdr *h, u8 opcode, u32 qpn)
{
	memset(h, 0, sizeof(*h));
	h->opcode = opcode;
	h->info = nhca_opinfo(opcode);
	h->migreq = true;
	h->pkey = NHCA_DEFAULT_PKEY;
	h->qpn = qpn & NHCA_QPN_MASK;
	/* who has a channel is nhca, and takes packets without an ICRC */
	h->caps = NHCA_CAP_PRESENT;
	if (!nhca_insists_icrc())
		h->caps |= NHCA_CAP_NO_ICRC_OK | NHCA_CAP_NO_ICRC;
}

static void send_done(struct nhca_channel *ch, struct nhca_sending *s, enum ib_wc_status status)
{
	list_del(&s->list);
	nhca_av_put(s->av);
	if (s->answer)
		kfree(s);
	else
		nhca_fetch_done(ch, s, status);
}

void nhca_send_end(struct nhca_channel *ch, struct nhca_sending *s, enum ib_wc_status status)
{
	/* answers are copies, and success says that the packets are made: a notice will follow */
	if (s->answer || status == IB_WC_SUCCESS || nhca_zcopy_released(ch->flow, s->zcopy)) {
		send_done(ch, s, status);
		return;
	}
	s->status = status;
	list_move_tail(&s->list, &ch->ended);
}

/*
 * What waited for packets to be released.  A release of what still waits kicks the channel.
 * Return: true: there may be more to do, or room for more writes.
 */
static bool send_released(struct nhca_channel *ch)
{
	struct nhca_sending *s, *next;
	bool more = false;

	list_for_each_entry_safe(s, next, &ch->ended, list) {
		if (!nhca_zcopy_released(ch->flow, s->zcopy))
			break;
		send_done(ch, s, s->status);
		more = true;
	}
	return nhca_notice_complete(ch) || more;
}

/**
 * enum send_rest - what is still to be done of a transfer
 * @SEND_NOTHING: it was cancelled, or its rCxt was released
 * @SEND_PACKETS: send them
 * @SEND_NO_MORE: the peer says that all is in place
 */
enum send_rest {
	SEND_NOTHING,
	SEND_PACKETS,
	SEND_NO_MORE,
};

static enum send_rest send_rest(struct nhca_channel *ch, const struct nhca_sending *s)
{
	spinlock_t *lock = nhca_rcxt_lock(ch->rd, &s->local);
	enum send_rest rest = SEND_NOTHING;
	struct nhca_rcxt *rc;

	spin_lock_bh(lock);
	if (!nhca_rcxt_find(&ch->rd->pool, ch->qpn, &s->local, &rc) &&
	    nhca_rcxt_sends(rc, s->rx.tid))
		rest = rc->noticed ? SEND_NO_MORE : SEND_PACKETS;
	spin_unlock_bh(lock);
	return rest;
}

/*
 * No packet is to follow, or @refused: memory protection stood in the way.  That is no error if
 * nothing of the transfer is wanted any more: it was cancelled, its rCxt was released, or the peer
 * has said that all is in place; then the memory was free to go.
 * Return: how it has ended.
 */
static enum ib_wc_status send_over(struct nhca_channel *ch, const struct nhca_sending *s,
				   bool refused)
{
	spinlock_t *lock = nhca_rcxt_lock(ch->rd, &s->local);
	enum ib_wc_status status = IB_WC_WR_FLUSH_ERR;
	struct nhca_rcxt *rc;
	bool noticed = false;

	spin_lock_bh(lock);
	if (!nhca_rcxt_find(&ch->rd->pool, ch->qpn, &s->local, &rc) &&
	    nhca_rcxt_sends(rc, s->rx.tid)) {
		if (refused && !rc->noticed) {
			nhca_rcxt_end(&ch->rd->pool, rc, NHCA_RCXT_VIOLATED);
			status = IB_WC_LOC_PROT_ERR;
		} else {
			if (!s->answer)
				rc->zcopy = s->zcopy;
			noticed = nhca_rcxt_sent(rc, s->rx.tid);
			if (noticed && !s->answer)
				nhca_notice_wait(ch, rc);
			status = IB_WC_SUCCESS;
		}
	}
	spin_unlock_bh(lock);
	if (noticed && s->answer)
		nhca_notice_answered(ch, &s->local, &s->rx, s->qpn);
	return status;
}

/* What the next packet of the transfer is, and those behind it up to @bytes. */
static void send_prepare(struct nhca_channel *ch, const struct nhca_sending *s, u32 bytes,
			 struct nhca_tx *tx, struct nhca_hdr *h, struct nhca_iter *it)
{
	u32 off = s->next * s->rx.segment;

	nhca_send_hdr(ch, h, s->answer ? NHCA_RX_READ_DATA : NHCA_RX_WRITE, s->qpn);
	h->psn = ch->psn;
	h->rx = s->rx;
	h->rx.offset = off;
	h->rx.length = nhca_rcxt_packet_len(s->rx.total, s->rx.segment, off);
	h->rx.pvo = s->to + off;
	nhca_iter_pvo(it, ch->job, s->from + off, bytes,
		      s->answer ? IB_ACCESS_REMOTE_READ : 0);
	*tx = (struct nhca_tx) {
		.burst = ch->burst,
		.dev = ch->dev,
		.who = ch->who,
		.av = s->av,
		.flow = ch->flow,
		.sport = s->sport,
		.hdr = h,
		.it = bytes ? it : NULL,
		.payload = h->rx.length,
		/* a peer that asks for bytes must not keep their pages after they are closed */
		.copy = s->copy || s->answer,
		.sum = h->caps & NHCA_CAP_NO_ICRC,
	};
}

/*
 * As many packets at once as are alike: of a full segment each.
 * Return: how many were sent, which may be none.
 */
static u32 send_run(struct nhca_channel *ch, const struct nhca_sending *s, u32 max)
{
	u32 off = s->next * s->rx.segment;
	struct nhca_iter it;
	struct nhca_hdr h;
	struct nhca_tx tx;
	u32 count;

	count = min3(max, s->left, (s->rx.total - off) / s->rx.segment);
	if (count < 2 || s->copy || s->rx.segment <= NHCA_COPY_BREAK)
		return 0;
	send_prepare(ch, s, count * s->rx.segment, &tx, &h, &it);
	if (!(h.caps & NHCA_CAP_NO_ICRC))
		return 0;
	return nhca_burst_run(&tx, count);
}

/* Return: 0: a packet was sent, or is lost; -EACCES. */
static int send_one(struct nhca_channel *ch, const struct nhca_sending *s)
{
	u32 len = nhca_rcxt_packet_len(s->rx.total, s->rx.segment, s->next * s->rx.segment);
	struct nhca_iter it;
	struct nhca_hdr h;
	struct nhca_tx tx;

	send_prepare(ch, s, len, &tx, &h, &it);
	return nhca_xmit(&tx) == -EACCES ? -EACCES : 0;
}

/* What a peer wants to read, it may not: of the next packet of the answer. */
static void send_violated(struct nhca_channel *ch, const struct nhca_sending *s)
{
	u32 off = s->next * s->rx.segment;
	u32 len = nhca_rcxt_packet_len(s->rx.total, s->rx.segment, off);
	/* as what asked for it came */
	struct nhca_rxeth x = {
		.src_channel = s->qpn,
		.src_key = s->rx.key,
		.src_rcxt = s->rx.rcxt,
		.key = lower_32_bits(ch->key),
		.job = s->rx.job,
		.rcxt = s->local,
		.tid = s->rx.tid,
		.total = s->rx.total,
		.segment = s->rx.segment,
		.pvo = s->from,
	};
	enum nhca_channel_counter why;

	why = nhca_recv_pvo(ch, s->from + off, len, IB_ACCESS_REMOTE_READ);
	nhca_recv_drop(ch, &x, why);
	nhca_channel_violated(ch, &x, &s->local, s->from + off, why);
}

/* A write's bytes are not the job's: the program's own error.  A read's: its peer's. */
static void send_refused(struct nhca_channel *ch, struct nhca_sending *s)
{
	enum ib_wc_status status = send_over(ch, s, true);
	bool answer = s->answer;

	if (status == IB_WC_LOC_PROT_ERR && answer)
		send_violated(ch, s);
	nhca_send_end(ch, s, status);
	if (status == IB_WC_LOC_PROT_ERR && !answer)
		nhca_channel_set_error(ch, NHCA_CH_ERR_LOCAL_PVO);
}

/* packets go together as long as they go the same way */
static void send_way(struct nhca_channel *ch, const struct nhca_sending *s)
{
	if (ch->burst->av != s->av)
		nhca_burst_flush(ch->burst);
}

/* @n packets of a transfer were sent, or are lost. */
static void send_count(struct nhca_channel *ch, const struct nhca_sending *s, u32 n)
{
	u32 off = s->next * s->rx.segment;

	nhca_channel_count(ch, NHCA_CH_SENT_PACKETS, n);
	nhca_channel_count(ch, NHCA_CH_SENT_BYTES,
			   nhca_rcxt_packet_len(s->rx.total, n * s->rx.segment, off));
}

/* The next packets of a transfer.  Return: how many; 0 if the channel has to wait. */
static u32 send_stretch(struct nhca_channel *ch, struct nhca_sending *s, u32 max)
{
	u32 sent, n;

	send_way(ch, s);
	for (sent = 0; sent < max && s->left; sent += n) {
		if (nhca_flow_blocked(ch->flow, s->answer))
			break;
		n = send_run(ch, s, max - sent);
		if (!n) {
			if (send_one(ch, s)) {
				send_refused(ch, s);
				return sent + 1;
			}
			n = 1;
		}
		s->zcopy = nhca_zcopy_seq(ch->flow);
		send_count(ch, s, n);
		ch->psn = (ch->psn + n) & NHCA_PSN_MASK;
		s->next += n;
		s->left -= n;
	}
	if (!s->left) {
		send_over(ch, s, false);
		nhca_send_end(ch, s, IB_WC_SUCCESS);
	}
	return sent;
}

/*
 * One stretch of the transfer that is next, of @left shares and of one packet at least.
 * Return: shares that were sent; 0: there is none; -EAGAIN: the channel waits for room in the
 * stack.
 */
static int send_next(struct nhca_channel *ch, u32 left)
{
	struct nhca_sending *s = list_first_entry_or_null(&ch->sending, struct nhca_sending, list);
	u32 share, sent;

	if (!s)
		return 0;
	switch (send_rest(ch, s)) {
	case SEND_NOTHING:
		nhca_send_end(ch, s, IB_WC_WR_FLUSH_ERR);
		return 1;
	case SEND_NO_MORE:
		nhca_send_end(ch, s, send_over(ch, s, false));
		return 1;
	default:
		break;
	}
	list_move_tail(&s->list, &ch->sending);
	/* @s may be gone after its last packet */
	share = nhca_send_shares(min_t(u32, s->rx.segment, s->rx.total));
	sent = send_stretch(ch, s, clamp_t(u32, left / share, 1, NHCA_CH_STRETCH));
	return sent ? sent * share : -EAGAIN;
}

void nhca_send_sweep(struct nhca_channel *ch, const struct nhca_rcxt_id *id)
{
	struct nhca_sending *s, *next;

	/* answers that nobody wants any more end in their turn, without a packet */
	list_for_each_entry_safe(s, next, &ch->order, order)
		if (s->local.index == id->index && !s->status &&
		    send_rest(ch, s) == SEND_NOTHING)
			nhca_send_end(ch, s, IB_WC_WR_FLUSH_ERR);
}

static void send_asked(struct nhca_channel *ch)
{
	if (list_empty_careful(&ch->asked))
		return;
	spin_lock_bh(&ch->lock);
	list_splice_tail_init(&ch->asked, &ch->sending);
	spin_unlock_bh(&ch->lock);
}

/* Work requests wait for room in the stack, and behind a packet whose bytes are being fetched. */
static enum nhca_fetched send_fetch(struct nhca_channel *ch)
{
	if (nhca_flow_blocked(ch->flow, false) || nhca_fault_waiting(ch->fault))
		return NHCA_FETCHED_NONE;
	return nhca_fetch_next(ch);
}

/*
 * A work request, a stretch of a transfer, and so on: neither a long transfer nor many small
 * messages keep the others waiting (reference: packet mode and RDMA interleaved).
 */
static bool send_pass(struct nhca_channel *ch, int *left)
{
	enum nhca_fetched taken;
	int sent;

	while (*left > 0) {
		if (nhca_channel_failed(ch))
			return true;
		send_asked(ch);
		taken = send_fetch(ch);
		/* also without a packet: a program can post as fast as this takes */
		if (taken != NHCA_FETCHED_NONE)
			(*left)--;
		sent = send_next(ch, max(*left, 1));
		if (sent < 0)
			return false;
		*left -= sent;
		if (taken == NHCA_FETCHED_NONE && !sent)
			return false;
	}
	return true;
}

/* The channel has failed: nothing of what is under way is sent any more. */
static bool send_forget(struct nhca_channel *ch)
{
	struct nhca_sending *s;
	u32 n;

	send_asked(ch);
	/* peers may have asked for very many reads */
	for (n = 0; n < NHCA_CH_FORGET; n++) {
		s = list_first_entry_or_null(&ch->sending, struct nhca_sending, list);
		if (!s)
			break;
		nhca_send_end(ch, s, IB_WC_WR_FLUSH_ERR);
	}
	if (n == NHCA_CH_FORGET)
		return true;
	/* a cancel may be among what is flushed; a release kicks the channel */
	return nhca_zcopy_released(ch->flow, nhca_zcopy_seq(ch->flow)) && nhca_fetch_flush(ch);
}

bool nhca_send_quantum(struct nhca_channel *ch, u32 *budget)
{
	/* not what is left of the budget: the last in line would always get less than its due */
	int quantum = min(READ_ONCE(ch->quantum), NHCA_CH_PASS), left = quantum;
	struct nhca_burst burst = {};
	bool more;
	u32 used;

	/* first, so that writes have room */
	send_released(ch);
	if (nhca_channel_failed(ch)) {
		/* costs as much as packets would */
		left = 0;
		more = send_forget(ch);
	} else {
		ch->burst = &burst;
		more = send_pass(ch, &left);
		ch->burst = NULL;
		nhca_burst_flush(&burst);
	}
	/* what waits from now on asks to be kicked */
	more |= send_released(ch);
	used = max(quantum - left, 1);
	*budget -= min(used, *budget);
	return more;
}
