// SPDX-License-Identifier: GPL-2.0
/*
 * Fetch work requests from the send FIFO, check and execute them.  Each attempt to execute a
 * work request uses a new copy of it, because user space may change the FIFO at any time.
 *
 * A malformed work request is an error of the program and puts the channel into the error state.
 * If the rCxt refuses a work request, for example because the tid is not higher than that of the
 * latest transfer, the work request completes in error and the channel continues, because the
 * latest transfer may be one that a peer has begun.
 */
#include "../observe/trace.h"
#include "begin.h"
#include "cancel.h"
#include "check.h"
#include "ordered.h"
#include "third.h"

/* Advance the consumer index to the oldest work request that is in progress or waits. */
static void fetch_release(struct nhca_channel *ch)
{
	/* do not search ch->sending, because a peer can make that list long with read requests */
	struct nhca_sending *s = list_first_entry_or_null(&ch->order, struct nhca_sending, order);
	u32 oldest = s ? s->index : ch->fetched;

	if (oldest == ch->cons)
		return;
	ch->cons = oldest;
	nhca_ring_release(&ch->sq, oldest);
}

static void fetch_complete(struct nhca_channel *ch, u64 wr_id, bool signaled,
			   enum ib_wc_status status, int err, const struct nhca_rcxt_id *id,
			   u32 tid)
{
	struct nhca_cqe cqe = {
		.wr_id = wr_id,
		.status = status,
		.opcode = NHCA_WC_CH_LOCAL,
		.vendor_err = -err,
		.chan = {
			.rcxt_index = id->index,
			.rcxt_key = id->key,
			.tid = tid,
		},
	};

	/* release the slot first, so that a program that polls the completion can post again */
	fetch_release(ch);
	if (signaled)
		nhca_channel_complete(ch, false, &cqe, false);
}

void nhca_fetch_done(struct nhca_channel *ch, struct nhca_sending *s, enum ib_wc_status status)
{
	/* an unsignaled write that was canceled, or whose rCxt was released, has no completion */
	bool cancelled = status == IB_WC_WR_FLUSH_ERR && !nhca_channel_failed(ch);

	trace_nhca_wqe_completed(ch->who, s->rx.op ? NHCA_WR_CH_ACCUMULATE : NHCA_WR_CH_WRITE,
				 s->wr_id, status, s->rx.total, s->clock);
	list_del(&s->order);
	list_add(&s->list, &ch->free);
	fetch_complete(ch, s->wr_id, s->signaled || (status && !cancelled), status, 0, &s->local,
		       s->rx.tid);
}

/* Trace that the work request in ch->wqe has begun.  Each work request is traced only once. */
static void fetch_trace(const struct nhca_channel *ch)
{
	const struct nhca_send_wqe *wqe = ch->wqe;

	if (trace_nhca_wqe_started_enabled())
		trace_nhca_wqe_started(ch->who, wqe->opcode, wqe->wr_id,
				       nhca_check_bytes(wqe), 0, 0);
}

/* The work request of ch->retry, or else that at ch->fetched, ends and needs no slot any more. */
static void fetch_consume(struct nhca_channel *ch)
{
	struct nhca_sending *s = ch->retry;

	if (!s) {
		ch->fetched++;
		return;
	}
	list_del(&s->order);
	list_move(&s->list, &ch->free);
	ch->num_waiting--;
	ch->retry = NULL;
}

/* Complete the work request in ch->wqe; the vendor_err of the completion is -@err. */
static enum nhca_fetched fetch_end(struct nhca_channel *ch, enum ib_wc_status status, int err)
{
	const struct nhca_send_wqe *wqe = ch->wqe;
	bool rcxt = wqe->opcode != NHCA_WR_CH_PACKET;
	struct nhca_rcxt_id id = {};

	if (rcxt)
		id = nhca_rcxt_id_of(wqe->chan.local_rcxt);
	/* if the work request has waited, the rCxt still refuses peers (nhca_rcxt_want()) */
	if (rcxt && err)
		nhca_begin_failed(ch, &id);
	fetch_consume(ch);
	fetch_trace(ch);
	if (trace_nhca_wqe_completed_enabled())
		trace_nhca_wqe_completed(ch->who, wqe->opcode, wqe->wr_id, status,
					 nhca_check_bytes(wqe), ch->clock);
	fetch_complete(ch, wqe->wr_id, status || wqe->flags & NHCA_SEND_SIGNALED, status, err, &id,
		       rcxt ? wqe->rcxt[0].tid : 0);
	return NHCA_FETCHED_DONE;
}

/* Complete ch->wqe after an error of the program, and put the channel into the error state. */
static enum nhca_fetched fetch_fail(struct nhca_channel *ch, enum ib_wc_status status,
				    enum nhca_channel_error why)
{
	fetch_consume(ch);
	trace_nhca_wqe_completed(ch->who, ch->wqe->opcode, ch->wqe->wr_id, status, 0, 0);
	/* the CQE has no rCxt and tid, because those of the work request may be invalid */
	fetch_complete(ch, ch->wqe->wr_id, true, status, 0, &(struct nhca_rcxt_id) {}, 0);
	nhca_channel_set_error(ch, why);
	return NHCA_FETCHED_DONE;
}

/* Return: the peer's AV, protected by RCU; NULL: ah_id names no unicast AV of the channel's PD. */
static struct nhca_av *fetch_av(struct nhca_channel *ch)
{
	struct nhca_av *av = xa_load(&ch->dev->ah_ids, ch->wqe->chan.ah_id);

	return av && av->pd == ch->key_user.pd && !av->mcast ? av : NULL;
}

/* ---- execution of the work request in ch->wqe, which was checked before ---- */

/* Fill in the fields of the RXETH that all packets of the work request have in common. */
static void fetch_rxeth(const struct nhca_channel *ch, struct nhca_rxeth *x)
{
	const struct nhca_send_wqe *wqe = ch->wqe;

	*x = (struct nhca_rxeth) {
		.key = lower_32_bits(wqe->chan.remote_key),
		.job = ch->job->key.id,
		.src_channel = ch->qpn,
		.src_key = lower_32_bits(ch->key),
		.cookie = wqe->chan.cookie,
	};
	if (wqe->opcode == NHCA_WR_CH_PACKET) {
		x->rcxt.index = upper_32_bits(wqe->chan.remote_key);
		x->src_rcxt.index = upper_32_bits(ch->key);
		return;
	}
	x->rcxt = nhca_rcxt_id_of(wqe->chan.remote_rcxt);
	x->src_rcxt = nhca_rcxt_id_of(wqe->chan.local_rcxt);
	x->tid = wqe->rcxt[0].tid;
	x->total = wqe->rcxt[0].total;
	x->segment = wqe->rcxt[0].segment;
	x->notify = wqe->rcxt[0].notify;
	if (wqe->opcode == NHCA_WR_CH_ACCUMULATE) {
		x->op = wqe->rcxt[0].op;
		x->type = wqe->rcxt[0].type;
	}
}

/* Send the packet of a work request that sends only one.  Return: as nhca_xmit(). */
static int fetch_xmit(struct nhca_channel *ch, struct nhca_av *av, struct nhca_hdr *h,
		      struct nhca_iter *it)
{
	struct nhca_tx tx;
	int err;

	nhca_channel_tx(ch, &tx, av, h, it);
	tx.burst = ch->burst;
	tx.fault = ch->fault;
	if (ch->burst->av != av)
		nhca_burst_flush(ch->burst);
	h->psn = ch->psn;
	err = nhca_xmit(&tx);
	if (!err) {
		ch->psn = (ch->psn + 1) & NHCA_PSN_MASK;
		nhca_channel_count(ch, NHCA_CH_SENT_PACKETS, 1);
		nhca_channel_count(ch, NHCA_CH_SENT_BYTES, h->rx.length);
	}
	return err;
}

static enum nhca_fetched fetch_packet(struct nhca_channel *ch, struct nhca_av *av)
{
	const struct nhca_send_wqe *wqe = ch->wqe;
	u64 length = nhca_check_length(wqe);
	struct nhca_iter it;
	struct nhca_hdr h;

	if (length > NHCA_RX_MAX_PACKET)
		return fetch_fail(ch, IB_WC_LOC_LEN_ERR, NHCA_CH_ERR_WQE);
	if (length > nhca_channel_segment(ch->dev))
		return fetch_end(ch, IB_WC_LOC_LEN_ERR, -EMSGSIZE);

	nhca_send_hdr(ch, &h, NHCA_RX_PACKET, wqe->chan.remote_qpn);
	fetch_rxeth(ch, &h.rx);
	h.solicited = wqe->flags & NHCA_SEND_SOLICITED;
	h.rx.total = length;
	h.rx.length = length;
	if (wqe->flags & NHCA_SEND_INLINE)
		nhca_iter_bytes(&it, wqe->data);
	else
		nhca_iter_sges(&it, &ch->key_user, wqe->sge, wqe->num_sge, 0, length, 0);
	switch (fetch_xmit(ch, av, &h, length ? &it : NULL)) {
	case -EAGAIN:
		/* the end of the page fault kicks the channel, and the entry is fetched again */
		return NHCA_FETCHED_NONE;
	case -EACCES:
	case -ENODATA:
		return fetch_fail(ch, IB_WC_LOC_PROT_ERR, NHCA_CH_ERR_LOCAL_PVO);
	default:
		fetch_end(ch, IB_WC_SUCCESS, 0);
		return NHCA_FETCHED_PACKET;
	}
}

/*
 * Find an earlier work request that waits to begin on the rCxt, and for which ch->wqe must wait.
 * Cancels, probes, fences and retransmissions pass an accumulate that waits for an earlier ordered
 * one, because they may end this wait.  Return: the work request, or NULL.
 */
static const struct nhca_sending *fetch_behind(const struct nhca_channel *ch,
					       const struct nhca_rcxt_id *id)
{
	u8 opcode = ch->wqe->opcode;
	bool pass = opcode == NHCA_WR_CH_CANCEL || opcode == NHCA_WR_CH_PROBE ||
		    opcode == NHCA_WR_CH_FENCE ||
		    ch->wqe->rcxt[0].flags & NHCA_RCXT_WR_RETRANSMIT;
	const struct nhca_sending *s;

	list_for_each_entry(s, &ch->waiting, list) {
		if (s == ch->retry)
			return NULL;
		if (s->local.index == id->index && !s->cancelling && !(pass && s->behind))
			return s;
	}
	return NULL;
}

/*
 * Put the work request in ch->wqe on ch->waiting, so that later work requests pass it.
 * @behind: an ordered accumulate, which waits for an earlier one
 * Return: NHCA_FETCHED_DONE: the work request was put on the list, or ended by nhca_ordered_full();
 * NHCA_FETCHED_NONE: it stays where it is, because it is on the list already, or because the list
 * or ch->writes has no room.
 */
static enum nhca_fetched fetch_wait(struct nhca_channel *ch, bool behind)
{
	const struct nhca_send_wqe *wqe = ch->wqe;
	struct nhca_sending *s;

	if (nhca_ordered_full(ch))
		return fetch_end(ch, IB_WC_LOC_QP_OP_ERR, -EBUSY);
	if (ch->retry || ch->num_waiting == NHCA_CH_WAITING)
		return NHCA_FETCHED_NONE;
	s = list_first_entry_or_null(&ch->free, struct nhca_sending, list);
	if (!s)
		return NHCA_FETCHED_NONE;
	*s = (struct nhca_sending) {
		.list = s->list,
		.index = ch->fetched,
		.local = nhca_rcxt_id_of(wqe->chan.local_rcxt),
		.waits = wqe->opcode,
		.cancelling = wqe->opcode == NHCA_WR_CH_CANCEL && nhca_cancel_begun(ch),
		.zcopy = ch->cancel_zcopy,
		.ordered = wqe->opcode == NHCA_WR_CH_ACCUMULATE &&
			   wqe->rcxt[0].flags & NHCA_RCXT_WR_ORDERED,
		.behind = behind,
		.qpn = wqe->chan.remote_qpn,
		.rx.key = lower_32_bits(wqe->chan.remote_key),
		.rx.tid = wqe->rcxt[0].tid,
	};
	nhca_cancel_end(ch);
	ch->fetched++;
	list_move_tail(&s->list, &ch->waiting);
	list_add_tail(&s->order, &ch->order);
	ch->num_waiting++;
	return NHCA_FETCHED_DONE;
}

/* Let the ordered accumulate in ch->wqe wait, because nhca_ordered_may() has returned NULL. */
static enum nhca_fetched fetch_in_order(struct nhca_channel *ch, const struct nhca_rcxt_id *id)
{
	if (!ch->retry)
		return fetch_wait(ch, true);
	/* if the accumulate has waited for its rCxt, let peers use the rCxt meanwhile */
	if (!ch->retry->behind)
		nhca_begin_failed(ch, id);
	ch->retry->behind = true;
	return NHCA_FETCHED_NONE;
}

/* End or defer the work request in ch->wqe, because the rCxt has refused it with @err. */
static enum nhca_fetched fetch_late(struct nhca_channel *ch, int err)
{
	switch (err) {
	case -EAGAIN:
	case -EBUSY:
		/*
		 * nhca_fetch_next() tries again.  The wait ends when a turn has sent the packets of
		 * the rCxt, or with a kick: pages were released, or (-EAGAIN) no CPU copies payload
		 * any more.  Until then, peers begin no transfer on the rCxt (nhca_rcxt_want()).
		 */
		return fetch_wait(ch, false);
	case -EALREADY:
		/* the transfer is complete: there is nothing to retransmit or cancel */
		return fetch_end(ch, IB_WC_SUCCESS, err);
	case -ENOMEM:
		return fetch_end(ch, IB_WC_GENERAL_ERR, err);
	default:
		return fetch_end(ch, IB_WC_LOC_QP_OP_ERR, err);
	}
}

static enum nhca_fetched fetch_write(struct nhca_channel *ch, struct nhca_av *av,
				     const struct nhca_rcxt_id *id)
{
	const struct nhca_send_wqe *wqe = ch->wqe;
	const struct nhca_rcxt_wr *wr = &wqe->rcxt[0];
	struct nhca_ordered *o = NULL;
	struct nhca_sending *s;
	int err;

	if (wr->flags & NHCA_RCXT_WR_ORDERED) {
		o = nhca_ordered_may(ch);
		if (!o)
			return fetch_in_order(ch, id);
		if (ch->retry)
			ch->retry->behind = false;
	}
	s = ch->retry ?: list_first_entry_or_null(&ch->free, struct nhca_sending, list);
	if (!s)
		return NHCA_FETCHED_NONE;
	if (!refcount_inc_not_zero(&av->ref))
		return fetch_fail(ch, IB_WC_LOC_QP_OP_ERR, NHCA_CH_ERR_WQE);
	err = nhca_begin(ch, id, NULL);
	if (err) {
		nhca_av_put(av);
		return fetch_late(ch, err);
	}
	if (o)
		nhca_ordered_set(ch, o);
	fetch_trace(ch);
	*s = (struct nhca_sending) {
		.list = s->list,
		.order = s->order,
		.clock = ch->clock,
		/* without a notice, the program may reuse the memory when all packets are sent */
		.copy = !(wr->notify & NHCA_NOTIFY_INITIATOR),
		.half = wr->flags & NHCA_RCXT_WR_FRAMES,
		.signaled = wqe->flags & NHCA_SEND_SIGNALED,
		.wr_id = wqe->wr_id,
		.index = ch->retry ? s->index : ch->fetched,
		.av = av,
		.sport = nhca_udp_sport(av->flow_label, ch->qpn,
					wqe->chan.remote_qpn & NHCA_QPN_MASK),
		.local = *id,
		.from = wr->local_pvo,
		.to = wr->remote_pvo,
		.next = wr->offset / wr->segment,
		.left = nhca_rcxt_packets(wr->length, wr->segment),
		.zcopy = nhca_zcopy_seq(ch->flow),
		.qpn = wqe->chan.remote_qpn,
	};
	fetch_rxeth(ch, &s->rx);
	list_move_tail(&s->list, &ch->sending);
	if (ch->retry) {
		ch->num_waiting--;
	} else {
		ch->fetched++;
		list_add_tail(&s->order, &ch->order);
	}
	return NHCA_FETCHED_DONE;
}

/*
 * Send one packet of a half-send write, or one that answers a half-send read.  The work request
 * contains the payload.
 */
static enum nhca_fetched fetch_part(struct nhca_channel *ch, struct nhca_av *av,
				    const struct nhca_rcxt_id *id)
{
	const struct nhca_rcxt_wr *wr = &ch->wqe->rcxt[0];
	bool answer = wr->flags & NHCA_RCXT_WR_PROGRAM;
	struct nhca_iter it;
	struct nhca_hdr h;
	int err;

	nhca_send_hdr(ch, &h, answer ? NHCA_RX_READ_DATA : NHCA_RX_WRITE,
		      ch->wqe->chan.remote_qpn);
	fetch_rxeth(ch, &h.rx);
	err = nhca_begin(ch, id, &h.rx);
	if (err)
		return fetch_late(ch, err);
	h.rx.offset = wr->offset;
	h.rx.length = wr->length;
	h.rx.pvo = wr->remote_pvo + wr->offset;
	nhca_iter_bytes(&it, (const u8 *)(wr + 1));
	fetch_xmit(ch, av, &h, wr->length ? &it : NULL);
	fetch_end(ch, IB_WC_SUCCESS, 0);
	return NHCA_FETCHED_PACKET;
}

/* Return: the kind of request of a read. */
static u8 fetch_request(u8 flags)
{
	if (flags & NHCA_RCXT_WR_PROGRAM)
		return NHCA_RX_HALF_REQUEST;
	return flags & NHCA_RCXT_WR_FRAMES ? NHCA_RX_FRAMES_REQUEST : NHCA_RX_READ_REQUEST;
}

/* Send a read request, which the peer's adapter answers (half-send read: the peer's program). */
static enum nhca_fetched fetch_read(struct nhca_channel *ch, struct nhca_av *av,
				    const struct nhca_rcxt_id *id)
{
	const struct nhca_rcxt_wr *wr = &ch->wqe->rcxt[0];
	u8 opcode = fetch_request(wr->flags);
	struct nhca_hdr h;
	int err;

	nhca_send_hdr(ch, &h, opcode, ch->wqe->chan.remote_qpn);
	fetch_rxeth(ch, &h.rx);
	err = nhca_begin(ch, id, &h.rx);
	if (err)
		return fetch_late(ch, err);
	h.rx.pvo = wr->remote_pvo;
	h.rx.reply_pvo = wr->local_pvo;
	if (opcode == NHCA_RX_FRAMES_REQUEST) {
		h.rx.offset = wr->offset;
		h.rx.part = wr->length;
	}
	/* the peer's adapter does not answer a half-send read, so its request needs no token */
	if (opcode != NHCA_RX_HALF_REQUEST)
		h.rx.token = nhca_token_known(&ch->rd->tokens, &av->daddr, &av->saddr);
	fetch_xmit(ch, av, &h, NULL);
	fetch_end(ch, IB_WC_SUCCESS, 0);
	return NHCA_FETCHED_PACKET;
}

/* Begin a third-party transfer, or repeat a part of it: send a request to the source. */
static enum nhca_fetched fetch_move(struct nhca_channel *ch, struct nhca_av *av,
				    const struct nhca_rcxt_id *id)
{
	struct nhca_hdr h;
	int err;

	nhca_send_hdr(ch, &h, NHCA_RX_THIRD_REQUEST, ch->wqe->chan.remote_qpn);
	fetch_rxeth(ch, &h.rx);
	err = nhca_third_target(ch, av, &h.rx);
	if (err == -EINVAL)
		return fetch_fail(ch, IB_WC_LOC_QP_OP_ERR, NHCA_CH_ERR_WQE);
	if (err)
		return fetch_late(ch, err);
	err = nhca_begin_move(ch, id, &h.rx);
	if (err)
		return fetch_late(ch, err);
	h.rx.token = nhca_token_known(&ch->rd->tokens, &av->daddr, &av->saddr);
	fetch_xmit(ch, av, &h, NULL);
	fetch_end(ch, IB_WC_SUCCESS, 0);
	return NHCA_FETCHED_PACKET;
}

/* Send a probe or a fence, which the peer answers with a status. */
static enum nhca_fetched fetch_ask(struct nhca_channel *ch, struct nhca_av *av,
				   const struct nhca_rcxt_id *id)
{
	const struct nhca_send_wqe *wqe = ch->wqe;
	bool fence = wqe->opcode == NHCA_WR_CH_FENCE;
	struct nhca_hdr h;

	/* the status will name this rCxt, so the channel must own it */
	if (!nhca_begin_owned(ch, id))
		return fetch_late(ch, -ENOENT);
	nhca_send_hdr(ch, &h, fence ? NHCA_RX_FENCE : NHCA_RX_PROBE, wqe->chan.remote_qpn);
	fetch_rxeth(ch, &h.rx);
	if (fence) {
		/* a fence uses only the tid, but the peer's nhca_rxeth_fits() also checks sizes */
		h.rx.total = 0;
		h.rx.segment = NHCA_RCXT_MIN_SEGMENT;
		h.rx.notify = 0;
	} else {
		h.rx.offset = wqe->rcxt[0].offset;
		h.rx.token = nhca_token_known(&ch->rd->tokens, &av->daddr, &av->saddr);
	}
	fetch_xmit(ch, av, &h, NULL);
	fetch_end(ch, IB_WC_SUCCESS, 0);
	return NHCA_FETCHED_PACKET;
}

/*
 * Execute a cancel.  The program may reuse its buffer when the cancel completes.  So the cancel
 * waits for the end of copies to the buffer, and for the release of all zero-copy references that
 * the channel had when the cancel began.  If ch->waiting has room, later work requests, also for
 * the same rCxt, pass the cancel.
 */
static enum nhca_fetched fetch_cancel(struct nhca_channel *ch, const struct nhca_rcxt_id *id)
{
	int err;

	if (!nhca_cancel_begun(ch)) {
		err = nhca_cancel_begin(ch, id, ch->wqe->rcxt[0].tid);
		if (err)
			return fetch_late(ch, err);
		/* send the batch, which may contain packets of the transfer */
		nhca_burst_flush(ch->burst);
		nhca_send_sweep(ch, id);
		nhca_cancel_record(ch);
	}
	/* the end of the copies or the next release kicks the channel, which then tries again */
	if (nhca_cancel_copying(ch, id) || !nhca_cancel_released(ch))
		return fetch_wait(ch, false);
	nhca_cancel_end(ch);
	return fetch_end(ch, IB_WC_SUCCESS, 0);
}

/*
 * Before a cancel is flushed, cancel its transfer, because the program may reuse the buffer of a
 * read when the cancel completes.  A receive engine that has begun before the error state was set
 * could still place bytes, so the flush of the cancel waits for copies.
 * Return: false if a CPU copies payload for the rCxt; the end of the copies kicks the channel.
 */
static bool fetch_flush_cancel(struct nhca_channel *ch, const struct nhca_rcxt_id *id, u32 tid)
{
	if (!nhca_cancel_begun(ch)) {
		/* the completion does not report whether the rCxt refuses the cancel */
		nhca_cancel_begin(ch, id, tid);
		nhca_cancel_record(ch);
	}
	if (nhca_cancel_copying(ch, id))
		return false;
	nhca_cancel_end(ch);
	return true;
}

/* Return: true if the packets are too long, or too many, for the netdev's current MTU. */
static bool fetch_too_long(const struct nhca_channel *ch)
{
	const struct nhca_rcxt_wr *wr = &ch->wqe->rcxt[0];
	u32 more = ch->wqe->opcode == NHCA_WR_CH_ACCUMULATE ? NHCA_ACCUMULATE_HEADER : 0;

	return (ch->wqe->opcode != NHCA_WR_CH_MOVE &&
		wr->segment + more > nhca_channel_segment(ch->dev)) ||
	       nhca_check_too_short(ch, wr);
}

static enum nhca_fetched fetch_execute(struct nhca_channel *ch)
{
	const struct nhca_sending *before = NULL;
	struct nhca_send_wqe *wqe = ch->wqe;
	struct nhca_rcxt_id id = nhca_rcxt_id_of(wqe->chan.local_rcxt);
	struct nhca_av *av;

	if (wqe->opcode != NHCA_WR_CH_PACKET && !nhca_check_rcxt(ch, wqe->opcode, &wqe->rcxt[0]))
		return fetch_fail(ch, IB_WC_LOC_QP_OP_ERR, NHCA_CH_ERR_WQE);
	if (nhca_ordered_unbegun(ch, &id))
		return fetch_end(ch, IB_WC_SUCCESS, -EALREADY);
	if (wqe->opcode != NHCA_WR_CH_PACKET)
		before = fetch_behind(ch, &id);
	/* in the FIFO, ch->wqe would delay work requests that may end the wait of @before */
	if (before && before->behind && !ch->retry)
		return fetch_end(ch, IB_WC_LOC_QP_OP_ERR, -EBUSY);
	/* @before must begin first; a cancel waits in ch->waiting, so that others pass it */
	if (before)
		return wqe->opcode == NHCA_WR_CH_CANCEL ? fetch_wait(ch, false) : NHCA_FETCHED_NONE;
	if (wqe->opcode == NHCA_WR_CH_CANCEL)
		return fetch_cancel(ch, &id);
	av = fetch_av(ch);
	if (!av)
		return fetch_fail(ch, IB_WC_LOC_QP_OP_ERR, NHCA_CH_ERR_WQE);
	if (wqe->opcode == NHCA_WR_CH_PACKET)
		return fetch_packet(ch, av);
	if (wqe->opcode == NHCA_WR_CH_PROBE || wqe->opcode == NHCA_WR_CH_FENCE)
		return fetch_ask(ch, av, &id);
	if (fetch_too_long(ch))
		return fetch_end(ch, IB_WC_LOC_LEN_ERR, -EMSGSIZE);
	if (wqe->opcode == NHCA_WR_CH_MOVE)
		return fetch_move(ch, av, &id);
	if (wqe->opcode == NHCA_WR_CH_WRITE || wqe->opcode == NHCA_WR_CH_ACCUMULATE)
		return fetch_write(ch, av, &id);
	if (wqe->opcode == NHCA_WR_CH_PART)
		return fetch_part(ch, av, &id);
	return fetch_read(ch, av, &id);
}

/* Return: number of entries that were not fetched yet; -EPROTO: impossible producer index. */
static int fetch_waiting(const struct nhca_channel *ch)
{
	/* ch->cons may be less than ch->fetched, because the entry at ch->cons is not complete */
	int n = nhca_ring_produced(&ch->sq, ch->cons) - (int)(ch->fetched - ch->cons);

	return n < 0 ? -EPROTO : n;
}

/* Copy the work request at an index of the FIFO to ch->wqe, check and execute it. */
static enum nhca_fetched fetch_slot(struct nhca_channel *ch, u32 index)
{
	const struct nhca_send_wqe *slot = nhca_ring_slot(&ch->sq, index);
	const struct nhca_sending *s = ch->retry;
	struct nhca_send_wqe *wqe = ch->wqe;

	ch->clock = nhca_trace_clock();
	memcpy(wqe, slot, sizeof(*wqe));
	/* the compiler must not read the slot again: user space may change it at any time */
	barrier();
	if (!nhca_check_header(ch, wqe))
		return fetch_fail(ch, IB_WC_LOC_QP_OP_ERR, NHCA_CH_ERR_WQE);
	memcpy(wqe->data, slot->data, nhca_check_rest(wqe));
	barrier();
	/* the work request has waited, and the program has changed it in the FIFO: an error */
	if (s && (wqe->opcode != s->waits || wqe->rcxt[0].tid != s->rx.tid ||
		  wqe->chan.local_rcxt != nhca_rcxt_id64(&s->local)))
		return fetch_fail(ch, IB_WC_LOC_QP_OP_ERR, NHCA_CH_ERR_WQE);
	return fetch_execute(ch);
}

/* Execute one work request of ch->waiting.  Return: NHCA_FETCHED_NONE: all must wait longer. */
static enum nhca_fetched fetch_again(struct nhca_channel *ch)
{
	enum nhca_fetched done;
	struct nhca_sending *s;

	list_for_each_entry(s, &ch->waiting, list) {
		ch->retry = s;
		done = fetch_slot(ch, s->index);
		ch->retry = NULL;
		/* the work request has left the list, so this loop must end */
		if (done != NHCA_FETCHED_NONE)
			return done;
	}
	return NHCA_FETCHED_NONE;
}

enum nhca_fetched nhca_fetch_next(struct nhca_channel *ch)
{
	enum nhca_fetched done = fetch_again(ch);
	int n;

	if (done != NHCA_FETCHED_NONE)
		return done;
	n = fetch_waiting(ch);
	if (n < 0) {
		nhca_count(ch->who, NHCA_CNT_BAD_RING);
		nhca_channel_set_error(ch, NHCA_CH_ERR_RING);
		return NHCA_FETCHED_NONE;
	}
	return n ? fetch_slot(ch, ch->fetched) : NHCA_FETCHED_NONE;
}

/* Complete the work request at an index of the FIFO without executing it. */
static void fetch_flush(struct nhca_channel *ch, u32 index)
{
	const struct nhca_send_wqe *slot = nhca_ring_slot(&ch->sq, index);
	u64 wr_id = READ_ONCE(slot->wr_id);

	fetch_consume(ch);
	trace_nhca_wqe_completed(ch->who, READ_ONCE(slot->opcode), wr_id, IB_WC_WR_FLUSH_ERR, 0, 0);
	fetch_complete(ch, wr_id, true, IB_WC_WR_FLUSH_ERR, 0, &(struct nhca_rcxt_id) {}, 0);
}

/* Flush ch->retry, or else the next entry.  Return: false if none is left, or a cancel waits. */
static bool fetch_flush_next(struct nhca_channel *ch)
{
	const struct nhca_sending *s = ch->retry;
	const struct nhca_send_wqe *slot;
	struct nhca_rcxt_id id;

	if (s) {
		if (s->waits == NHCA_WR_CH_CANCEL && !fetch_flush_cancel(ch, &s->local, s->rx.tid))
			return false;
		fetch_flush(ch, s->index);
		return true;
	}
	/* the FIFO is empty, or its producer index is impossible */
	if (fetch_waiting(ch) <= 0)
		return false;
	slot = nhca_ring_slot(&ch->sq, ch->fetched);
	id = nhca_rcxt_id_of(READ_ONCE(slot->chan.local_rcxt));
	if (READ_ONCE(slot->opcode) == NHCA_WR_CH_CANCEL &&
	    !fetch_flush_cancel(ch, &id, READ_ONCE(slot->rcxt[0].tid)))
		return false;
	fetch_flush(ch, ch->fetched);
	return true;
}

u32 nhca_fetch_flush(struct nhca_channel *ch, u32 max)
{
	u32 n;

	for (n = 0; n < max; n++) {
		ch->retry = list_first_entry_or_null(&ch->waiting, struct nhca_sending, list);
		if (!fetch_flush_next(ch))
			break;
	}
	ch->retry = NULL;
	return n;
}
