// SPDX-License-Identifier: GPL-2.0
/*
 * The receive engine: places the payload of packets in memory or in frames of the receive FIFO.
 * Several CPUs may process packets of one channel, and of one rCxt, concurrently.
 *
 * Documentation/rcxt.rst lists the checks in their order.  A packet that fails a check is dropped
 * and gets no answer (reference US 8,023,417: memory protection model), with two exceptions: a
 * request or probe without a valid token may get a challenge, and a third-party request that the
 * source refuses may get a status.  If an nhca device has the packet's destination address, the
 * drop is counted and traced.
 */
#include "../memory/memcg.h"
#include "accumulate.h"
#include "notice.h"
#include "third.h"
#include "../observe/inject.h"
#include "../observe/trace.h"
#include "../observe/trace_channel.h"
#include "../wire/psn.h"

void nhca_recv_drop(struct nhca_channel *ch, const struct nhca_rxeth *x,
		    enum nhca_channel_counter why)
{
	nhca_channel_count(ch, why, 1);
	trace_nhca_channel_drop(ch->qpn, x, why);
}

/*
 * Count packets that have arrived for the channel, in the counters of the device, and trace them.
 * @packets: number of packets, all of the same length; @rx is the last of them
 */
static void recv_came(const struct nhca_channel *ch, const struct nhca_rx *rx, u32 packets)
{
	nhca_count_add(ch->who, NHCA_CNT_RCVD_PKTS, packets);
	nhca_count_add(ch->who, NHCA_CNT_RCVD_BYTES, packets * rx->payload);
	trace_nhca_packet_received(ch->who, &rx->hdr, nhca_psn_add(rx->hdr.psn, 1 - packets),
				   rx->hdr.rx.src_channel, packets, rx->payload);
}

/* Count packets that recv_admit() has accepted, in the counters of the channel. */
static void recv_admitted(struct nhca_channel *ch, const struct nhca_rx *rx, u32 packets)
{
	nhca_channel_count(ch, NHCA_CH_RECEIVED_PACKETS, packets);
	nhca_channel_count(ch, NHCA_CH_RECEIVED_BYTES, packets * rx->payload);
}

/* Return: the counter of packets whose lookup of the rCxt has failed with @lookup. */
static enum nhca_channel_counter no_rcxt(enum nhca_rcxt_lookup lookup)
{
	return lookup == NHCA_RCXT_OLD_KEY ? NHCA_CH_DROP_RCXT_KEY : NHCA_CH_DROP_NO_RCXT;
}

/* Return: the counter of packets that the tid rules refuse with @verdict. */
static enum nhca_channel_counter refused(enum nhca_rcxt_verdict verdict)
{
	switch (verdict) {
	case NHCA_RCXT_STALE:
		return NHCA_CH_DROP_STALE;
	case NHCA_RCXT_DUPLICATE:
		return NHCA_CH_DROP_DUPLICATE;
	case NHCA_RCXT_DEAD:
		return NHCA_CH_DROP_ABORTED;
	case NHCA_RCXT_UNSOLICITED:
		return NHCA_CH_DROP_UNSOLICITED;
	case NHCA_RCXT_MISMATCH:
		return NHCA_CH_DROP_MISMATCH;
	case NHCA_RCXT_NO_MAP:
		return NHCA_CH_DROP_NO_MEMORY;
	default:
		return NHCA_CH_DROP_BUSY;
	}
}

bool nhca_recv_refused(struct nhca_channel *ch, const struct nhca_rxeth *x,
		       enum nhca_rcxt_lookup lookup, enum nhca_rcxt_verdict verdict)
{
	if (!lookup && !verdict)
		return false;
	nhca_recv_drop(ch, x, lookup ? no_rcxt(lookup) : refused(verdict));
	return true;
}

enum nhca_channel_counter nhca_recv_pvo(struct nhca_channel *ch, u64 pvo, u32 len, int access)
{
	enum nhca_pvo_verdict verdict;
	struct nhca_job_mem *mem;

	nhca_live_enter();
	verdict = nhca_pvo_check(ch->job, pvo, len, access, &mem);
	nhca_live_exit();
	switch (verdict) {
	case NHCA_PVO_KEY:
		return NHCA_CH_DROP_PVO_KEY;
	case NHCA_PVO_JOB:
		return NHCA_CH_DROP_PVO_JOB;
	case NHCA_PVO_RANGE:
		return NHCA_CH_DROP_PVO_RANGE;
	case NHCA_PVO_ACCESS:
		return NHCA_CH_DROP_PVO_ACCESS;
	default:
		/* NHCA_PVO_PAGE; or NHCA_PVO_OK: the PVO is now valid, or the skb was too short */
		return NHCA_CH_DROP_PVO_PAGE;
	}
}

/* ---- payload of writes and reads ---- */

/*
 * Copy the payload of a packet, and of the @run packets that follow it in the batch, to the memory
 * that the packet's PVO names.  On return @rx is the last packet that was copied, or the packet
 * that memory protection refused.
 * Return: NHCA_CH_COUNTERS on success; otherwise the counter for the packet that was refused.
 */
static enum nhca_channel_counter recv_place(struct nhca_channel *ch, struct nhca_rx *rx, u32 run,
					    int access)
{
	struct nhca_iter it;
	int err;

	if (!rx->payload)
		return NHCA_CH_COUNTERS;
	nhca_iter_pvo(&it, ch->job, rx->hdr.rx.pvo, (run + 1) * rx->payload, access);
	nhca_live_enter();
	for (;;) {
		err = nhca_rx_copy(rx, &it);
		if (err || !run--)
			break;
		nhca_rx_next(rx);
	}
	nhca_live_exit();
	return err ? nhca_recv_pvo(ch, rx->hdr.rx.pvo, rx->payload, access) : NHCA_CH_COUNTERS;
}

/*
 * Call recv_place() for each packet separately, after it has failed for all packets together: the
 * first packets may be within the region even if the last one is not.
 */
static enum nhca_channel_counter recv_place_each(struct nhca_channel *ch, struct nhca_rx *rx,
						 u32 run, int access)
{
	enum nhca_channel_counter why;

	for (;;) {
		why = recv_place(ch, rx, 0, access);
		if (why != NHCA_CH_COUNTERS || !run--)
			return why;
		nhca_rx_next(rx);
	}
}

/* Return: number of packets that follow @rx in the batch and can be copied together with @rx. */
static u32 recv_run(const struct nhca_channel *ch, const struct nhca_rx *rx)
{
	const struct nhca_rxeth *x = &rx->hdr.rx;

	/* rules of fault injection apply to each packet separately */
	if (x->length != x->segment || nhca_inject_at(ch->dev, NHCA_AT_PACKETS))
		return 0;
	return nhca_rx_run(rx, (x->total - x->offset) / x->segment - 1);
}

/*
 * A transfer is complete: post the completion of this channel, and send the notice to the peer, as
 * rc->notify demands.  @rc is a copy of the rCxt.
 */
static void recv_complete(struct nhca_channel *ch, const struct nhca_rx *rx,
			  const struct nhca_rcxt *rc, bool read)
{
	const struct nhca_rxeth *x = &rx->hdr.rx;
	u8 here = read ? NHCA_RX_NOTIFY_INITIATOR : NHCA_RX_NOTIFY_TARGET;
	struct nhca_cqe cqe = {
		.wr_id = read ? rc->cookie : x->cookie,
		.opcode = read ? NHCA_WC_CH_READ : NHCA_WC_CH_REMOTE_WRITE,
		.byte_len = rc->total,
		.src_qp = x->src_channel,
		.chan = {
			.rcxt_index = x->rcxt.index,
			.rcxt_key = x->rcxt.key,
			.tid = rc->tid,
		},
	};

	if (rc->notify & here)
		nhca_channel_complete(ch, !read, &cqe, false);
	if (rc->notify & ~here)
		nhca_reply_notice(ch, rx);
}

/*
 * Apply the tid rules to payload.
 * @run: number of packets that follow in the batch; set to the number that the rCxt accepts
 * Return: the rCxt, which counts a copy, so that it cannot be released; NULL: the packet was
 * dropped.
 */
static struct nhca_rcxt *recv_accept(struct nhca_channel *ch, const struct nhca_rxeth *x,
				     bool read, u32 *run)
{
	struct nhca_rcxt_pool *pool = &ch->rd->pool;
	spinlock_t *lock = nhca_rcxt_lock(ch->rd, &x->rcxt);
	enum nhca_rcxt_verdict verdict;
	enum nhca_rcxt_lookup lookup;
	struct mem_cgroup *old;
	struct nhca_rcxt *rc;

	for (;;) {
		spin_lock(lock);
		lookup = nhca_rcxt_find(pool, ch->qpn, &x->rcxt, &rc);
		/* a transfer that begins may need a bitmap, which is charged to ch->memcg */
		old = set_active_memcg(ch->memcg);
		verdict = lookup ? NHCA_RCXT_ACCEPT : nhca_rcxt_payload(pool, rc, x, read);
		set_active_memcg(old);
		if (!lookup && !verdict)
			*run = nhca_rcxt_run(rc, x, *run);
		spin_unlock(lock);
		/*
		 * With PREEMPT_RT, this task may have preempted the task that copies.  Then the
		 * loop would never end.  So with PREEMPT_RT the packet is dropped.
		 */
		if (verdict != NHCA_RCXT_WAIT || IS_ENABLED(CONFIG_PREEMPT_RT))
			break;
		/* another CPU copies payload of the earlier transfer, one batch at most */
		cpu_relax();
	}
	return nhca_recv_refused(ch, x, lookup, verdict) ? NULL : rc;
}

/*
 * Place the payload of a packet, and of the @run packets that follow it in the batch.
 * Return: as recv_place().
 */
static enum nhca_channel_counter recv_place_run(struct nhca_channel *ch, struct nhca_rx *rx,
						u32 run, bool read)
{
	int access = read ? IB_ACCESS_LOCAL_WRITE : IB_ACCESS_REMOTE_WRITE;
	enum nhca_channel_counter why;
	u16 first = rx->index;

	if (rx->hdr.rx.op)
		return nhca_accumulate(ch, rx, run);
	why = recv_place(ch, rx, run, access);
	if (why == NHCA_CH_COUNTERS || !run)
		return why;
	/* @rx is now the packet that was refused */
	return recv_place_each(ch, rx, run - (rx->index - first), access);
}

static void recv_payload(struct nhca_channel *ch, struct nhca_rx *rx, bool read)
{
	const struct nhca_rxeth *x = &rx->hdr.rx;
	spinlock_t *lock = nhca_rcxt_lock(ch->rd, &x->rcxt);
	enum nhca_channel_counter why;
	struct nhca_rcxt *rc, copy;
	u32 run = recv_run(ch, rx);
	u16 first = rx->index;
	bool complete, kick;

	rc = recv_accept(ch, x, read, &run);
	if (!rc)
		return;

	why = recv_place_run(ch, rx, run, read);
	run = rx->index - first;
	if (run) {
		recv_came(ch, rx, run);
		recv_admitted(ch, rx, run);
	}

	/* @rc is valid: rc->copies is not 0, so the rCxt cannot be released */
	spin_lock(lock);
	complete = nhca_rcxt_copied(&ch->rd->pool, rc, why == NHCA_CH_COUNTERS);
	if (complete)
		copy = *rc;
	kick = nhca_rcxt_awaited(rc);
	spin_unlock(lock);
	if (unlikely(kick))
		nhca_drr_ready(ch, true);

	if (why != NHCA_CH_COUNTERS) {
		nhca_recv_drop(ch, x, why);
		nhca_channel_violated(ch, x, &x->rcxt, x->pvo, why);
	} else if (complete) {
		recv_complete(ch, rx, &copy, read);
	}
}

/*
 * Place payload of a third-party transfer.  recv_payload() sends the notice to the source address
 * in @rx, so the function stores the manager's address there during the call.
 */
static void recv_third(struct nhca_channel *ch, struct nhca_rx *rx)
{
	struct in6_addr source = rx->ip.saddr;

	if (!nhca_third_manager_ok(ch, rx)) {
		nhca_recv_drop(ch, &rx->hdr.rx, NHCA_CH_DROP_MANAGER);
		return;
	}
	memcpy(&rx->ip.saddr, rx->hdr.rx.gid, sizeof(rx->ip.saddr));
	recv_payload(ch, rx, false);
	/* other packets of the batch share this IP header, and may have other managers */
	rx->ip.saddr = source;
}

/* ---- the receive FIFO ---- */

/* Return: a slot for the caller to fill; NULL if the FIFO is full, or the channel has no FIFO. */
static struct nhca_frame *recv_frame(struct nhca_channel *ch, u32 *index)
{
	struct nhca_fifo *fifo = &ch->fifo;
	bool taken;

	if (!fifo->ring.hdr)
		return NULL;
	spin_lock(&ch->lock);
	taken = nhca_fifo_take(fifo, index);
	spin_unlock(&ch->lock);
	return taken ? nhca_ring_slot(&fifo->ring, *index) : NULL;
}

static enum nhca_frame_kind frame_kind(u8 opcode)
{
	switch (opcode) {
	case NHCA_RX_STATUS:
		return NHCA_FRAME_STATUS;
	case NHCA_RX_HALF_WRITE:
		return NHCA_FRAME_WRITE;
	case NHCA_RX_HALF_REQUEST:
		return NHCA_FRAME_REQUEST;
	case NHCA_RX_FRAMES_DATA:
		return NHCA_FRAME_READ;
	default:
		return NHCA_FRAME_PACKET;
	}
}

/* Fill in the data of a frame.  Return: number of bytes. */
static u32 frame_data(const struct nhca_rx *rx, u8 *data)
{
	const struct nhca_rxeth *x = &rx->hdr.rx;
	const struct nhca_frame_request request = {
		.remote_pvo = x->pvo,
		.reply_pvo = x->reply_pvo,
	};

	if (rx->hdr.opcode == NHCA_RX_HALF_REQUEST) {
		memcpy(data, &request, sizeof(request));
		return sizeof(request);
	}
	/* nhca_rxeth_fits() has checked that packet and frame have at least x->length bytes */
	skb_copy_bits(rx->skb, rx->off, data, x->length);
	return x->length;
}

/*
 * Put a packet into a frame, and post the completion of the frame.
 * Return: false if the program gets no frame: the FIFO is full, or the completion was lost.
 */
static bool recv_fifo(struct nhca_channel *ch, struct nhca_rx *rx)
{
	const struct nhca_rxeth *x = &rx->hdr.rx;
	enum nhca_frame_kind kind = frame_kind(rx->hdr.opcode);
	struct nhca_rcxt_id rcxt = {}, src_rcxt = {};
	struct nhca_cqe cqe = {
		.wr_id = x->cookie,
		.opcode = NHCA_WC_CH_FRAME,
		.src_qp = x->src_channel,
		.chan.tid = x->tid,
	};
	u64 src_key = x->src_key;
	struct nhca_frame *frame;
	u32 index;

	frame = recv_frame(ch, &index);
	if (!frame) {
		nhca_recv_drop(ch, x, NHCA_CH_DROP_FIFO);
		return false;
	}
	if (kind == NHCA_FRAME_PACKET) {
		src_key |= (u64)x->src_rcxt.index << 32;
	} else {
		rcxt = x->rcxt;
		src_rcxt = x->src_rcxt;
	}
	frame->kind = kind;
	frame->status = x->status;
	frame->src_key = src_key;
	frame->src_rcxt = nhca_rcxt_id64(&src_rcxt);
	frame->rcxt = nhca_rcxt_id64(&rcxt);
	frame->tid = x->tid;
	frame->total = x->total;
	frame->offset = x->offset;
	frame->segment = x->segment;
	frame->reserved = 0;
	frame->cookie = x->cookie;
	frame->received = x->have;
	frame->src_channel = x->src_channel;
	cqe.byte_len = frame_data(rx, frame->data);
	frame->length = cqe.byte_len;
	/* pairs with the program's load-acquire of seq: the frame is visible before seq changes */
	smp_store_release(&frame->seq, index + 1);

	cqe.chan.frame = index;
	cqe.chan.rcxt_index = rcxt.index;
	cqe.chan.rcxt_key = rcxt.key;
	if (nhca_channel_complete(ch, true, &cqe, rx->hdr.solicited))
		return true;
	/* the completion was lost, so the program does not know the frame: reuse the slot */
	spin_lock(&ch->lock);
	nhca_fifo_untake(&ch->fifo, index);
	spin_unlock(&ch->lock);
	return false;
}

/*
 * Put payload of a half-receive write or read into a frame.  The bit of the packet stays set only
 * if the program gets the frame.
 */
static void recv_half(struct nhca_channel *ch, struct nhca_rx *rx, bool read)
{
	const struct nhca_rxeth *x = &rx->hdr.rx;
	spinlock_t *lock = nhca_rcxt_lock(ch->rd, &x->rcxt);
	bool complete = false, framed, kick;
	struct nhca_rcxt *rc, copy;
	u32 run = 0;

	rc = recv_accept(ch, x, read, &run);
	if (!rc)
		return;
	framed = recv_fifo(ch, rx);
	/* @rc is valid: rc->copies is not 0, so the rCxt cannot be released */
	spin_lock(lock);
	if (framed)
		complete = nhca_rcxt_copied(&ch->rd->pool, rc, true);
	else
		nhca_rcxt_not_framed(rc, x);
	if (complete)
		copy = *rc;
	kick = nhca_rcxt_awaited(rc);
	spin_unlock(lock);
	if (unlikely(kick))
		nhca_drr_ready(ch, true);
	if (complete)
		recv_complete(ch, rx, &copy, read);
}

/*
 * Put the request of a half-send read into a frame, for the program to answer.  If the program gets
 * no frame, the request counts as not received.
 */
static void recv_ask(struct nhca_channel *ch, struct nhca_rx *rx)
{
	const struct nhca_rxeth *x = &rx->hdr.rx;
	spinlock_t *lock = nhca_rcxt_lock(ch->rd, &x->rcxt);
	enum nhca_rcxt_verdict verdict = NHCA_RCXT_ACCEPT;
	enum nhca_rcxt_lookup lookup;
	struct nhca_rcxt *rc;

	spin_lock(lock);
	lookup = nhca_rcxt_find(&ch->rd->pool, ch->qpn, &x->rcxt, &rc);
	if (!lookup)
		verdict = nhca_rcxt_ask(rc, x);
	spin_unlock(lock);
	if (nhca_recv_refused(ch, x, lookup, verdict) || recv_fifo(ch, rx))
		return;
	spin_lock(lock);
	/* the channel may have released the rCxt meanwhile */
	if (!nhca_rcxt_find(&ch->rd->pool, ch->qpn, &x->rcxt, &rc))
		nhca_rcxt_not_asked(rc, x);
	spin_unlock(lock);
}

/*
 * Put a status into a frame.  Drop the status if the channel does not own the rCxt any more, or if
 * nhca_notice_early() returns true.
 */
static void recv_status(struct nhca_channel *ch, struct nhca_rx *rx)
{
	const struct nhca_rxeth *x = &rx->hdr.rx;
	spinlock_t *lock = nhca_rcxt_lock(ch->rd, &x->rcxt);
	enum nhca_rcxt_verdict verdict = NHCA_RCXT_ACCEPT;
	enum nhca_rcxt_lookup lookup;
	struct nhca_rcxt *rc;
	bool ordered = false;

	spin_lock(lock);
	lookup = nhca_rcxt_find(&ch->rd->pool, ch->qpn, &x->rcxt, &rc);
	if (!lookup && nhca_notice_early(ch, rc, x))
		verdict = NHCA_RCXT_BUSY;
	if (!lookup && !verdict && nhca_rcxt_status_in_order(rc, x)) {
		ordered = true;
		rc->ordered = false;
	}
	spin_unlock(lock);
	/* the status replaces a notice that was lost: the next ordered accumulate may begin */
	if (ordered)
		nhca_drr_ready(ch, true);
	if (!nhca_recv_refused(ch, x, lookup, verdict))
		recv_fifo(ch, rx);
}

/* ---- checks that do not need an rCxt ---- */

/*
 * A packet that names an rCxt contains the lower 32 bits of the channel's key, and the rCxt's key
 * of 32 bits.  A packet of packet mode contains all 64 bits of the channel's key; the upper 32 bits
 * are in the field rcxt.index.
 */
static bool recv_key_ok(const struct nhca_channel *ch, const struct nhca_hdr *h)
{
	return h->rx.key == lower_32_bits(ch->key) &&
	       (h->opcode != NHCA_RX_PACKET || h->rx.rcxt.index == upper_32_bits(ch->key));
}

/* Return: true if the channel accepts the packet; false: the function has counted the drop. */
static bool recv_admit(struct nhca_channel *ch, struct nhca_rx *rx)
{
	const struct nhca_rxeth *x = &rx->hdr.rx;

	if (rx->ip.mcast || !nhca_addr_is(ch->dev, &rx->ip)) {
		nhca_rx_refused(ch->dev, &rx->hdr, NHCA_CNT_RX_BAD_ADDR);
		return false;
	}
	/* after the check of the address: a packet to another address does not count as received */
	recv_came(ch, rx, 1);
	if (!nhca_rx_intact(rx, true)) {
		nhca_rx_refused(ch->dev, &rx->hdr, NHCA_CNT_RX_BAD_ICRC);
		return false;
	}
	if (nhca_channel_failed(ch)) {
		nhca_recv_drop(ch, x, NHCA_CH_DROP_ERROR);
		return false;
	}
	if (!recv_key_ok(ch, &rx->hdr)) {
		nhca_recv_drop(ch, x, NHCA_CH_DROP_KEY);
		return false;
	}
	if (x->job != ch->job->key.id) {
		nhca_recv_drop(ch, x, NHCA_CH_DROP_JOB);
		return false;
	}
	return true;
}

void nhca_channel_rx(struct nhca_rx *rx)
{
	struct nhca_channel *ch = nhca_channel_find(rx->hdr.qpn);
	struct nhca_dev *dev;

	/* A packet reaches only channels of the network namespace in which it arrived. */
	if (!ch || ch->dev->nn != rx->ip.nn) {
		dev = nhca_addr_find(rx->ip.nn, &rx->ip.daddr, rx->ip.iif);
		if (dev)
			nhca_rx_refused(dev, &rx->hdr, NHCA_CNT_RX_NO_QP);
		return;
	}
	if (!recv_admit(ch, rx))
		return;
	recv_admitted(ch, rx, 1);

	switch (rx->hdr.opcode) {
	case NHCA_RX_PACKET:
		recv_fifo(ch, rx);
		break;
	case NHCA_RX_WRITE:
	case NHCA_RX_ACCUMULATE:
		recv_payload(ch, rx, false);
		break;
	case NHCA_RX_READ_DATA:
		recv_payload(ch, rx, true);
		break;
	case NHCA_RX_THIRD_WRITE:
		recv_third(ch, rx);
		break;
	case NHCA_RX_HALF_WRITE:
		recv_half(ch, rx, false);
		break;
	case NHCA_RX_FRAMES_DATA:
		recv_half(ch, rx, true);
		break;
	case NHCA_RX_HALF_REQUEST:
		recv_ask(ch, rx);
		break;
	case NHCA_RX_NOTICE:
		nhca_notice_rx(ch, rx);
		break;
	case NHCA_RX_STATUS:
		recv_status(ch, rx);
		break;
	case NHCA_RX_READ_REQUEST:
	case NHCA_RX_FRAMES_REQUEST:
		nhca_reply_read(ch, rx);
		break;
	case NHCA_RX_PROBE:
		nhca_reply_probe(ch, rx);
		break;
	case NHCA_RX_FENCE:
		nhca_reply_fence(ch, rx);
		break;
	case NHCA_RX_THIRD_REQUEST:
		nhca_reply_third(ch, rx);
		break;
	case NHCA_RX_READ_CHALLENGE:
	case NHCA_RX_THIRD_CHALLENGE:
	case NHCA_RX_PROBE_CHALLENGE:
	case NHCA_RX_FRAMES_CHALLENGE:
		nhca_reply_challenge(ch, rx);
		break;
	}
}
