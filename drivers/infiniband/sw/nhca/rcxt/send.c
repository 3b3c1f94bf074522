// SPDX-License-Identifier: GPL-2.0
/*
 * The send engine of a channel.  In a turn of the channel the engine fetches work requests from the
 * send FIFO, and makes packets of the transfers in progress: writes that the channel has fetched,
 * and answers to read and third-party requests of peers.
 *
 * Each packet contains all that the receiver needs to place the packet's bytes.  So packets of
 * several transfers may be interleaved.  The engine waits for no acknowledgment, but begins an
 * ordered accumulate only when the earlier one is complete.  A packet that is not sent, because
 * there is no memory, no route or no link, is treated as lost.
 */
#include <linux/slab.h>

#include "notice.h"
#include "third.h"

void nhca_send_hdr(const struct nhca_channel *ch, struct nhca_hdr *h, u8 opcode, u32 qpn)
{
	memset(h, 0, sizeof(*h));
	h->opcode = opcode;
	h->info = nhca_opinfo(opcode);
	h->migreq = true;
	h->pkey = NHCA_DEFAULT_PKEY;
	h->qpn = qpn & NHCA_QPN_MASK;
	/* the peer is nhca, and accepts packets without ICRC if its insist_icrc is N (default) */
	h->caps = NHCA_CAP_PRESENT;
	if (!nhca_insists_icrc())
		h->caps |= NHCA_CAP_NO_ICRC_OK | NHCA_CAP_NO_ICRC;
}

static void send_done(struct nhca_channel *ch, struct nhca_sending *s, enum ib_wc_status status)
{
	list_del(&s->list);
	nhca_av_put(s->av);
	nhca_av_put(s->manager);
	if (s->answer)
		kfree(s);
	else
		nhca_fetch_done(ch, s, status);
}

void nhca_send_end(struct nhca_channel *ch, struct nhca_sending *s, enum ib_wc_status status)
{
	/*
	 * Only a write that failed or was canceled has to wait until no packet refers to its pages.
	 * Packets of answers have a copy of the payload.  After success, either the payload was
	 * copied, or the program may not reuse the memory before NHCA_WC_CH_WRITE.
	 */
	if (s->answer || status == IB_WC_SUCCESS || nhca_zcopy_released(ch->flow, s->zcopy)) {
		send_done(ch, s, status);
		return;
	}
	s->status = status;
	list_move_tail(&s->list, &ch->ended);
}

/*
 * Complete writes in ch->ended, and writes whose notice has arrived, if no packet refers to their
 * pages.  If a write still has to wait, the next release of pages kicks the channel.
 * @cost: increased by the number of writes.
 * Return: true if there may be more writes to complete, or if elements of ch->writes became free.
 */
static bool send_released(struct nhca_channel *ch, u32 *cost)
{
	struct nhca_sending *s, *next;
	bool more = false;

	list_for_each_entry_safe(s, next, &ch->ended, list) {
		if (!nhca_zcopy_released(ch->flow, s->zcopy))
			break;
		send_done(ch, s, s->status);
		more = true;
		++*cost;
	}
	return nhca_notice_complete(ch, cost) || more;
}

/**
 * enum send_state - what the send engine has to do for a transfer in progress
 * @SEND_CANCELED: end the transfer, which was canceled or replaced, or whose rCxt was released
 * @SEND_PACKETS: send the next packets of the transfer
 * @SEND_PLACED: end the transfer, because a notice of the peer says that all bytes are placed
 */
enum send_state {
	SEND_CANCELED,
	SEND_PACKETS,
	SEND_PLACED,
};

static enum send_state send_state(struct nhca_channel *ch, const struct nhca_sending *s)
{
	spinlock_t *lock = nhca_rcxt_lock(ch->rd, &s->local);
	enum send_state state = SEND_CANCELED;
	struct nhca_rcxt *rc;

	spin_lock_bh(lock);
	if (!nhca_rcxt_find(&ch->rd->pool, ch->qpn, &s->local, &rc) &&
	    nhca_rcxt_sends(rc, s->rx.tid))
		state = rc->noticed ? SEND_PLACED : SEND_PACKETS;
	spin_unlock_bh(lock);
	return state;
}

/*
 * Record the end of a transfer in its rCxt.
 * @refused: true: memory protection has refused the next packet.  The refusal is no error if the
 * transfer was canceled or replaced, its rCxt was released, or its notice has arrived: in these
 * cases the program may have closed the memory.  false: all packets were sent, or the notice has
 * arrived.
 * Return: completion status: IB_WC_SUCCESS; IB_WC_LOC_PROT_ERR: @refused is an error;
 * IB_WC_WR_FLUSH_ERR: the transfer was canceled or replaced, or its rCxt was released.
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

static u8 send_opcode(const struct nhca_sending *s)
{
	if (s->manager)
		return NHCA_RX_THIRD_WRITE;
	if (s->answer)
		return s->half ? NHCA_RX_FRAMES_DATA : NHCA_RX_READ_DATA;
	if (s->rx.op)
		return NHCA_RX_ACCUMULATE;
	return s->half ? NHCA_RX_HALF_WRITE : NHCA_RX_WRITE;
}

/* Fill in @tx, @h and @it for the next packets of a transfer, which have @bytes payload bytes. */
static void send_prepare(struct nhca_channel *ch, const struct nhca_sending *s, u32 bytes,
			 struct nhca_tx *tx, struct nhca_hdr *h, struct nhca_iter *it)
{
	u32 off = s->next * s->rx.segment;

	nhca_send_hdr(ch, h, send_opcode(s), s->qpn);
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
		/* copy answers: references for reads of peers would delay the closing of memory */
		.copy = s->copy || s->answer,
		.sum = h->caps & NHCA_CAP_NO_ICRC,
	};
}

/*
 * Add up to @max packets of a transfer to the batch in one call.  All of them have a whole segment
 * of payload, because nhca_burst_run() adds only packets of the same length.
 * Return: number of packets added; 0 if the caller has to send the next packet by send_one().
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

/*
 * Send the next packet of a transfer.
 * Return: 0: the packet was sent, or is treated as lost; -EACCES: memory protection refused its
 * payload.
 */
static int send_one(struct nhca_channel *ch, const struct nhca_sending *s)
{
	u32 len = nhca_rcxt_packet_len(s->rx.total, s->rx.segment, s->next * s->rx.segment);
	struct nhca_iter it;
	struct nhca_hdr h;
	struct nhca_tx tx;

	send_prepare(ch, s, len, &tx, &h, &it);
	return nhca_xmit(&tx) == -EACCES ? -EACCES : 0;
}

/*
 * Report that memory protection refused the payload of the next packet of a peer's read, or of a
 * third-party transfer that this channel sends.
 */
static void send_violated(struct nhca_channel *ch, const struct nhca_sending *s)
{
	u32 off = s->next * s->rx.segment;
	u32 len = nhca_rcxt_packet_len(s->rx.total, s->rx.segment, off);
	/* the fields of the peer's request that are still known */
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

	if (s->manager) {
		x.src_channel = s->rx.src_channel;
		x.src_key = s->rx.src_key;
		x.src_rcxt = s->rx.src_rcxt;
		nhca_third_tell(ch, s, NHCA_RX_ST_VIOLATED);
	}
	why = nhca_recv_pvo(ch, s->from + off, len, IB_ACCESS_REMOTE_READ);
	nhca_recv_drop(ch, &x, why);
	nhca_channel_violated(ch, &x, &s->local, s->from + off, why);
}

/*
 * End a transfer whose payload memory protection refused.  A refused write is an error of the
 * program and puts the channel into the error state.  A refused read or third-party transfer is an
 * error of the peer, and is reported as a violation.
 */
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

/* Send the batch if its address vector is not that of @s: a batch has only one address vector. */
static void send_flush_av(struct nhca_channel *ch, const struct nhca_sending *s)
{
	if (ch->burst->av != s->av)
		nhca_burst_flush(ch->burst);
}

/* Count the next @n packets of a transfer as sent, even if some could not be sent. */
static void send_count(struct nhca_channel *ch, const struct nhca_sending *s, u32 n)
{
	u32 off = s->next * s->rx.segment;

	nhca_channel_count(ch, NHCA_CH_SENT_PACKETS, n);
	nhca_channel_count(ch, NHCA_CH_SENT_BYTES,
			   nhca_rcxt_packet_len(s->rx.total, n * s->rx.segment, off));
}

/*
 * Send up to @max packets of a transfer.
 * Return: number of packets, including a packet that memory protection refused; 0 if the channel
 * has to wait because the network stack holds too many packets of the channel, its user or device.
 */
static u32 send_stretch(struct nhca_channel *ch, struct nhca_sending *s, u32 max)
{
	u32 sent, n;

	send_flush_av(ch, s);
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
 * Send packets of the first transfer in ch->sending: as many as cost at most @left units
 * (NHCA_CH_SHARE), but at least one packet and at most NHCA_CH_STRETCH.
 * Return: cost of the packets, or 1 for a transfer that ended without a packet; 0: there is no
 * transfer; -EAGAIN: the channel waits until the network stack holds fewer packets.
 */
static int send_next(struct nhca_channel *ch, u32 left)
{
	struct nhca_sending *s = list_first_entry_or_null(&ch->sending, struct nhca_sending, list);
	struct nhca_rcxt_id third;
	u32 share, sent;
	bool making;

	if (!s)
		return 0;
	switch (send_state(ch, s)) {
	case SEND_CANCELED:
		nhca_send_end(ch, s, IB_WC_WR_FLUSH_ERR);
		return 1;
	case SEND_PLACED:
		nhca_send_end(ch, s, send_over(ch, s, false));
		return 1;
	default:
		break;
	}
	making = s->manager;
	third = s->local;
	if (making && !nhca_third_begin(ch, s)) {
		nhca_send_end(ch, s, IB_WC_WR_FLUSH_ERR);
		return 1;
	}
	list_move_tail(&s->list, &ch->sending);
	/* send_stretch() may free @s: compute the cost of a packet first */
	share = nhca_send_shares(min_t(u32, s->rx.segment, s->rx.total));
	sent = send_stretch(ch, s, clamp_t(u32, left / share, 1, NHCA_CH_STRETCH));
	if (making)
		nhca_third_end(ch, &third);
	return sent ? sent * share : -EAGAIN;
}

void nhca_send_sweep(struct nhca_channel *ch, const struct nhca_rcxt_id *id)
{
	struct nhca_sending *s, *next;

	/* ch->order has no answers: send_next() ends canceled answers without a packet */
	list_for_each_entry_safe(s, next, &ch->order, order)
		if (s->local.index == id->index && !s->status && !s->waits &&
		    send_state(ch, s) == SEND_CANCELED)
			nhca_send_end(ch, s, IB_WC_WR_FLUSH_ERR);
}

static void send_requested(struct nhca_channel *ch)
{
	if (list_empty_careful(&ch->requested))
		return;
	spin_lock_bh(&ch->lock);
	list_splice_tail_init(&ch->requested, &ch->sending);
	spin_unlock_bh(&ch->lock);
}

/*
 * Fetch a work request, unless the network stack holds too many packets of the channel, its user or
 * device, or an earlier work request waits for a page fault.
 */
static enum nhca_fetched send_fetch(struct nhca_channel *ch)
{
	if (nhca_flow_blocked(ch->flow, false) || nhca_fault_waiting(ch->fault))
		return NHCA_FETCHED_NONE;
	return nhca_fetch_next(ch);
}

/*
 * Execute work requests and send packets of transfers alternately, until the cost has reached @left
 * units.  So neither long transfers nor many small messages hold up the others (reference
 * US 8,023,417: packet mode and RDMA interleaved).
 * Return: true if there may be more to do; false if a later doorbell, packet or kick will call
 * nhca_drr_ready() when there is more to do.
 */
static bool send_pass(struct nhca_channel *ch, int *left)
{
	enum nhca_fetched taken;
	int sent;

	while (*left > 0) {
		if (nhca_channel_failed(ch))
			return true;
		send_requested(ch);
		taken = send_fetch(ch);
		/* a fetch costs a unit, because a program can post as fast as this loop runs */
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

/*
 * End transfers and flush work requests of a channel in the error state, at most NHCA_CH_FORGET in
 * a turn: peers may have requested very many reads, and user space may post as fast as this loop
 * flushes.
 * Return: number of transfers and work requests that were ended.  If it is NHCA_CH_FORGET, more may
 * be left.  If it is less, but work requests are left that have to wait, the end of the wait calls
 * nhca_drr_ready().
 */
static u32 send_forget(struct nhca_channel *ch)
{
	struct nhca_sending *s;
	u32 n;

	send_requested(ch);
	for (n = 0; n < NHCA_CH_FORGET; n++) {
		s = list_first_entry_or_null(&ch->sending, struct nhca_sending, list);
		if (!s)
			break;
		nhca_send_end(ch, s, IB_WC_WR_FLUSH_ERR);
	}
	/*
	 * When a cancel is flushed, the program may reuse the buffer.  So flush only after all
	 * zero-copy references are released.  Until then, each release kicks the channel.
	 * nhca_fetch_flush() also waits for copies to the buffer of a read.
	 */
	if (n < NHCA_CH_FORGET && nhca_zcopy_released(ch->flow, nhca_zcopy_seq(ch->flow)))
		n += nhca_fetch_flush(ch, NHCA_CH_FORGET - n);
	return n;
}

bool nhca_send_quantum(struct nhca_channel *ch, u32 *budget)
{
	/*
	 * The rest of the budget does not limit the turn: otherwise the last channel of each pass
	 * would send less than its quantum.
	 */
	int quantum = READ_ONCE(ch->quantum), left = quantum;
	struct nhca_burst burst = {};
	u32 used, ended, cost = 0;
	bool more;

	/* first, because this call may free elements of ch->writes that the turn needs */
	send_released(ch, &cost);
	if (nhca_channel_failed(ch)) {
		/*
		 * Each transfer or work request that was ended costs a unit.  The quantum does not
		 * limit their number, because user space chooses the quantum.
		 */
		ended = send_forget(ch);
		more = ended == NHCA_CH_FORGET;
		left = quantum - (int)ended;
	} else {
		ch->burst = &burst;
		more = send_pass(ch, &left);
		ch->burst = NULL;
		nhca_burst_flush(&burst);
	}
	/* complete writes that have ended in this turn */
	more |= send_released(ch, &cost);
	used = max(quantum - left + (int)cost, 1);
	*budget -= min(used, *budget);
	return more;
}
