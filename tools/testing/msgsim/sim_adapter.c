// SPDX-License-Identifier: GPL-2.0
/*
 * The adapter: channels, rCxts, tid rules, FIFOs and errors. The adapter models tid.c, recv.c,
 * reply.c, fetch.c and send.c of drivers/infiniband/sw/nhca/rcxt.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"

#define QUANTUM		64	/* packets and work requests of a turn */
#define STRETCH		16	/* packets of a transfer before the next transfer */
#define MAX_PACKET	1984u
#define BACKLOG_NS	50000	/* transmission time of the packets that the stack may queue */
static struct sim_channel *channels[8192];
static uint32_t next_qpn = 16;

struct sim_channel *sim_channel_find(uint32_t qpn)
{
	struct sim_channel *ch = channels[qpn % 8192];

	return ch && ch->qpx.qp_base.qp_num == qpn ? ch : NULL;
}

void sim_channel_show(struct sim_channel *ch)
{
	do
		next_qpn = next_qpn < 0xfffff0 ? next_qpn + 1 : 16;
	while (channels[next_qpn % 8192]);
	ch->qpx.qp_base.qp_num = next_qpn;
	channels[next_qpn % 8192] = ch;
	list_add_tail(&ch->dev->channels, &ch->node);
}

void sim_channel_hide(struct sim_channel *ch)
{
	channels[ch->qpx.qp_base.qp_num % 8192] = NULL;
	list_del(&ch->node);
}

uint32_t sim_segment(const struct sim_device *dev)
{
	uint32_t room = dev->mtu > 128 + 64 ? dev->mtu - 128 : 64;

	if (room > 65532)
		room = 65532;
	return room >= 4096 ? room / 4096 * 4096 : room / 4 * 4;
}

void sim_drop(struct sim_channel *ch, enum nhcadv_channel_counter why)
{
	ch->drops[why]++;
}

void sim_channel_fail(struct sim_channel *ch, uint32_t why)
{
	if (ch->reason)
		return;
	ch->reason = why;
	if (why != NHCADV_ERR_RECOVERED && why != NHCADV_ERR_DEVICE)
		ch->dev->channel_errors++;
	sim_channel_kick(ch);
}

/* ---- completions ---- */

void sim_complete(struct sim_channel *ch, bool recv, struct ibv_wc wc)
{
	wc.qp_num = ch->qpx.qp_base.qp_num;
	sim_cq_add(ch, recv ? ch->rcq : ch->scq, &wc);
}

static void take_release(struct sim_channel *ch)
{
	struct sim_sending *s;
	uint32_t oldest = ch->taken;

	list_for_each(&ch->sending, s, node)
		if (!s->answer && (int32_t)(s->index - oldest) < 0)
			oldest = s->index;
	ch->cons = oldest;
}

static void take_complete(struct sim_channel *ch, uint64_t wr_id, enum ibv_wc_status status,
			  int err)
{
	take_release(ch);
	sim_complete(ch, false, (struct ibv_wc){
		.wr_id = wr_id, .status = status, .opcode = NHCADV_WC_LOCAL, .vendor_err = err,
	});
}

/* ---- receive ---- */

static void answer(struct sim_channel *ch, const struct sim_packet *x, struct sim_packet *p)
{
	p->to = x->from;
	p->qpn = x->src_qpn;
	p->key = x->src_key;
	p->job = x->job;
	p->rcxt = x->src_rcxt;
	p->src_rcxt = x->rcxt;
	p->src_qpn = ch->qpx.qp_base.qp_num;
	p->src_key = ch->key;
	p->tid = x->tid;
	p->total = x->total;
	p->segment = x->segment;
	p->notify = x->notify;
	p->cookie = x->cookie;
	sim_send(ch->dev, p);
}

static void recv_payload(struct sim_channel *ch, const struct sim_packet *x, bool read)
{
	struct sim_rcxt *rc = sim_rcxt_find(ch, x->rcxt);
	struct sim_packet *notice, manager;
	uint32_t number;
	uint8_t *bytes;

	if (!rc) {
		sim_drop(ch, NHCADV_DROP_NO_RCXT);
		return;
	}
	if (x->tid < rc->tid) {
		sim_drop(ch, NHCADV_DROP_STALE);
		return;
	}
	if (x->tid > rc->tid) {
		if (read || sim_rcxt_busy(rc)) {
			sim_drop(ch, read ? NHCADV_DROP_UNSOLICITED : NHCADV_DROP_BUSY);
			return;
		}
		sim_rcxt_begin(rc, RC_SINKING, x->tid, x->total, x->segment, x->notify, x->pvo - x->offset);
	}
	if (rc->state != (read ? RC_READING : RC_SINKING)) {
		sim_drop(ch, rc->state == RC_DONE ? NHCADV_DROP_DUPLICATE :
		     rc->state == RC_VIOLATED ? NHCADV_DROP_ABORTED : NHCADV_DROP_BUSY);
		return;
	}
	if (x->pvo - x->offset != rc->pvo || x->total != rc->total || x->segment != rc->segment) {
		sim_drop(ch, NHCADV_DROP_MISMATCH);
		return;
	}
	number = x->offset / x->segment;
	if (rc->map[number / 64] >> number % 64 & 1) {
		sim_drop(ch, NHCADV_DROP_DUPLICATE);
		return;
	}
	rc->map[number / 64] |= UINT64_C(1) << number % 64;
	rc->missing--;
	bytes = sim_memory_at(ch->dev->host, ch->job, x->pvo, x->length,
			      read ? IBV_ACCESS_LOCAL_WRITE : IBV_ACCESS_REMOTE_WRITE);
	if (x->length && !bytes) {
		sim_drop(ch, NHCADV_DROP_PVO_KEY);
		rc->state = RC_VIOLATED;
		return;
	}
	if (x->length)
		memcpy(bytes, x->data, x->length);
	if (rc->missing)
		return;
	rc->state = RC_DONE;
	if (read) {
		sim_complete(ch, false, (struct ibv_wc){
			.wr_id = rc->cookie, .opcode = NHCADV_WC_READ, .byte_len = rc->total,
			.invalidated_rkey = rc->tid,
		});
		return;
	}
	notice = sim_packet_new(SIM_NOTICE, 0);
	notice->have = sim_packets(x->total, x->segment);
	if (x->kind == SIM_THIRD_WRITE) {
		manager = *x;
		manager.from = x->gid;
		x = &manager;
	}
	answer(ch, x, notice);
}

static void recv_notice(struct sim_channel *ch, const struct sim_packet *x)
{
	struct sim_rcxt *rc = sim_rcxt_find(ch, x->rcxt);

	if (rc && sim_third_notice(ch, rc, x))
		return;
	if (!rc || x->tid != rc->tid || (rc->state != RC_SENDING && rc->state != RC_WAITING) ||
	    rc->noticed || x->total != rc->total || x->segment != rc->segment) {
		sim_drop(ch, rc ? NHCADV_DROP_UNSOLICITED : NHCADV_DROP_NO_RCXT);
		return;
	}
	rc->noticed = true;
	if (rc->state == RC_WAITING)
		sim_notice_wait(ch, rc);
}

/* ---- frames ---- */

static void recv_fifo(struct sim_channel *ch, const struct sim_packet *x)
{
	struct nhcadv_frame *frame;

	if (ch->frame_prod - ch->frame_cons >= ch->num_frames) {
		sim_drop(ch, NHCADV_DROP_FIFO);
		return;
	}
	frame = &ch->frames[ch->frame_prod % ch->num_frames];
	*frame = (struct nhcadv_frame){
		.kind = x->kind == SIM_STATUS ? NHCADV_FRAME_STATUS :
			x->kind == SIM_HALF_WRITE ? NHCADV_FRAME_WRITE : NHCADV_FRAME_PACKET,
		.status = x->status, .length = x->length, .src_channel = x->src_qpn,
		.src_key = x->src_key, .src_rcxt = x->src_rcxt, .rcxt = x->rcxt, .tid = x->tid,
		.total = x->total, .offset = x->offset, .segment = x->segment,
		.cookie = x->cookie, .received = x->have,
	};
	memcpy(frame->data, x->data, x->length);
	frame->seq = ++ch->frame_prod;
	sim_complete(ch, true, (struct ibv_wc){
		.wr_id = x->cookie, .opcode = NHCADV_WC_FRAME, .byte_len = x->length,
		.invalidated_rkey = ch->frame_prod - 1,
	});
}

static void status_of(const struct sim_rcxt *rc, const struct sim_packet *x, struct sim_packet *p)
{
	uint32_t packets, i;

	p->status = NHCADV_TRANSFER_NONE;
	if (x->tid != rc->tid || x->total != rc->total || x->segment != rc->segment)
		return;
	packets = sim_packets(rc->total, rc->segment);
	if (rc->state == RC_DONE) {
		p->status = NHCADV_TRANSFER_COMPLETE;
		p->have = packets;
	} else if (rc->state == RC_VIOLATED) {
		p->status = NHCADV_TRANSFER_PROT_ERR;
	} else if (rc->state == RC_READING || rc->state == RC_SINKING) {
		p->status = NHCADV_TRANSFER_PARTIAL;
		p->have = packets - rc->missing;
		p->length = (packets + 7) / 8;
		for (i = 0; i < packets; i++)
			if (rc->map[i / 64] >> i % 64 & 1)
				p->data[i / 8] |= 1 << i % 8;
	}
}

static void answer_probe(struct sim_channel *ch, const struct sim_packet *x)
{
	struct sim_rcxt *rc = sim_rcxt_find(ch, x->rcxt);
	struct sim_packet *p;

	if (!rc) {
		sim_drop(ch, NHCADV_DROP_NO_RCXT);
		return;
	}
	p = sim_packet_new(SIM_STATUS, 32);
	p->length = 0;
	status_of(rc, x, p);
	answer(ch, x, p);
}

/* Model of nhca_rcxt_fence() */
static void answer_fence(struct sim_channel *ch, const struct sim_packet *x)
{
	struct sim_rcxt *rc = sim_rcxt_find(ch, x->rcxt);
	struct sim_packet *p;

	if (!ch->dev->fences || !rc || !x->tid || x->tid < rc->tid || rc->state == RC_SENDING ||
	    rc->state == RC_WAITING || rc->state == RC_RELEASING || rc->state == RC_READING ||
	    rc->state == RC_MOVING) {
		sim_drop(ch, rc ? NHCADV_DROP_STALE : NHCADV_DROP_NO_RCXT);
		return;
	}
	p = sim_packet_new(SIM_STATUS, 0);
	p->status = NHCADV_TRANSFER_FENCED;
	if (x->tid == rc->tid && rc->state == RC_DONE) {
		p->status = NHCADV_TRANSFER_COMPLETE;
		p->have = sim_packets(rc->total, rc->segment);
	} else {
		rc->state = RC_IDLE;
		rc->tid = x->tid;
	}
	answer(ch, x, p);
}

static void answer_read(struct sim_channel *ch, const struct sim_packet *x)
{
	struct sim_rcxt *rc = sim_rcxt_find(ch, x->rcxt);
	struct sim_sending *s;

	if (x->segment > sim_segment(ch->dev)) {
		sim_drop(ch, NHCADV_DROP_SEGMENT);
		return;
	}
	if (!rc || sim_rcxt_busy(rc) || rc->state == RC_SINKING || x->tid <= rc->tid) {
		sim_drop(ch, rc ? NHCADV_DROP_BUSY : NHCADV_DROP_NO_RCXT);
		return;
	}
	sim_rcxt_begin(rc, RC_ANSWERING, x->tid, x->total, x->segment, x->notify, 0);
	s = calloc(1, sizeof(*s));
	s->answer = true;
	s->local = x->rcxt;
	s->from = x->pvo;
	s->to = x->reply_pvo;
	s->left = sim_packets(x->total, x->segment);
	s->head = (struct sim_packet){
		.kind = SIM_READ_DATA, .to = x->from, .qpn = x->src_qpn, .key = x->src_key,
		.job = x->job, .rcxt = x->src_rcxt, .src_rcxt = x->rcxt, .tid = x->tid,
		.total = x->total, .segment = x->segment, .notify = x->notify,
		.cookie = x->cookie, .src_qpn = ch->qpx.qp_base.qp_num, .src_key = ch->key,
	};
	list_add_tail(&ch->sending, &s->node);
	sim_channel_kick(ch);
}

void sim_channel_rx(struct sim_channel *ch, const struct sim_packet *x)
{
	struct sim_rcxt *rc;

	if (ch->reason || x->key != ch->key || x->job != ch->job) {
		sim_drop(ch, ch->reason ? NHCADV_DROP_ERROR : NHCADV_DROP_KEY);
		return;
	}
	switch (x->kind) {
	case SIM_PACKET:
	case SIM_HALF_WRITE:	/* only forged ones */
		recv_fifo(ch, x);
		break;
	case SIM_THIRD_REQUEST:
		sim_third_request(ch, x);
		break;
	case SIM_THIRD_WRITE:
	case SIM_WRITE:
	case SIM_READ_DATA:
		recv_payload(ch, x, x->kind == SIM_READ_DATA);
		break;
	case SIM_NOTICE:
		recv_notice(ch, x);
		break;
	case SIM_STATUS:
		rc = sim_rcxt_find(ch, x->rcxt);
		if (rc && !sim_notice_early(ch, rc, x))
			recv_fifo(ch, x);
		else
			sim_drop(ch, rc ? NHCADV_DROP_BUSY : NHCADV_DROP_NO_RCXT);
		break;
	case SIM_READ_REQUEST:
		answer_read(ch, x);
		break;
	case SIM_PROBE:
		answer_probe(ch, x);
		break;
	case SIM_FENCE:
		answer_fence(ch, x);
		break;
	default:
		break;
	}
}

/* ---- send ---- */

static void send_end(struct sim_channel *ch, struct sim_sending *s, enum ibv_wc_status status)
{
	list_del(&s->node);
	if (!s->answer)
		take_complete(ch, s->wr_id, status, 0);
	free(s);
}

/* End a transfer whose last packet was sent. */
static void send_over(struct sim_channel *ch, struct sim_sending *s, struct sim_rcxt *rc)
{
	if (rc->state == RC_FORWARDING) {
		if (!--rc->parts)
			rc->state = RC_FORWARDED;
	} else if (s->answer) {
		rc->state = rc->notify & NHCADV_NOTIFY_TARGET ? RC_ANSWERED : RC_IDLE;
	} else {
		rc->zcopy = s->zcopy;
		rc->state = rc->notify & NHCADV_NOTIFY_INITIATOR ? RC_WAITING : RC_IDLE;
		if (rc->noticed)
			sim_notice_wait(ch, rc);
	}
	send_end(ch, s, IBV_WC_SUCCESS);
}

/* Return: number of packets sent, plus 1 after an error; at most @most */
static uint32_t send_stretch(struct sim_channel *ch, struct sim_sending *s, uint32_t most)
{
	struct sim_rcxt *rc = sim_rcxt_find(ch, s->local);
	uint32_t sent, off, length;
	struct sim_packet *p;
	uint8_t *bytes;

	if (!rc || !sim_rcxt_sends(rc, s->head.tid)) {
		send_end(ch, s, IBV_WC_WR_FLUSH_ERR);
		return 1;
	}
	if (s->head.kind == SIM_THIRD_WRITE && !sim_third_allowed(ch, &s->head.to)) {
		rc->state = RC_IDLE;
		sim_third_tell(ch, &s->head, s->local, NHCADV_TRANSFER_FORBIDDEN);
		send_end(ch, s, IBV_WC_WR_FLUSH_ERR);
		return 1;
	}
	list_del(&s->node);
	list_add_tail(&ch->sending, &s->node);
	for (sent = 0; sent < most && s->left; sent++) {
		off = s->next * s->head.segment;
		length = s->head.total - off < s->head.segment ? s->head.total - off :
			 s->head.segment;
		bytes = length ? sim_memory_at(ch->dev->host, ch->job, s->from + off, length,
					       s->answer ? IBV_ACCESS_REMOTE_READ : 0) : NULL;
		if (length && !bytes) {
			if (!s->answer && !rc->noticed)
				sim_channel_fail(ch, NHCADV_ERR_LOCAL_PVO);
			rc->state = RC_VIOLATED;
			if (s->head.kind == SIM_THIRD_WRITE)
				sim_third_tell(ch, &s->head, s->local,
					       NHCADV_TRANSFER_PROT_ERR);
			send_end(ch, s, IBV_WC_LOC_PROT_ERR);
			return sent + 1;
		}
		p = sim_packet_new(s->head.kind, length);
		*p = s->head;
		p->offset = off;
		p->length = length;
		p->pvo = s->to + off;
		if (length)
			memcpy(p->data, bytes, length);
		if (length && s->head.kind == SIM_THIRD_WRITE && sim.reads)
			sim.reads(bytes, length);
		if (length && !s->answer)
			p->zcopy = sim_zcopy_new(ch, bytes, length);
		s->zcopy = ch->zcopy_seq;
		sim_send(ch->dev, p);
		s->next++;
		s->left--;
	}
	if (!s->left)
		send_over(ch, s, rc);
	return sent;
}

/* ---- work requests ---- */

static void xmit(struct sim_channel *ch, const struct sim_wqe *w, enum sim_kind kind,
		 const void *data, uint32_t length)
{
	struct sim_packet *p = sim_packet_new(kind, length);

	p->to = sim_ah_find(w->ah_id)->gid;
	p->qpn = w->qpn;
	p->key = w->key;
	p->job = ch->job;
	p->src_qpn = ch->qpx.qp_base.qp_num;
	p->src_key = ch->key;
	p->cookie = w->t.cookie;
	p->total = length;
	if (kind != SIM_PACKET) {
		p->rcxt = w->t.remote_rcxt;
		p->src_rcxt = w->t.local_rcxt;
		p->tid = w->t.tid;
		p->total = w->t.total;
		p->segment = w->t.segment;
		p->notify = w->t.notify;
		p->pvo = kind == SIM_READ_REQUEST ? w->t.remote_pvo :
			 kind == SIM_WRITE ? w->t.remote_pvo + w->offset : 0;
		p->offset = kind == SIM_WRITE ? w->offset : 0;
		p->reply_pvo = kind == SIM_READ_REQUEST ? w->t.local_pvo : 0;
	}
	if (length)
		memcpy(p->data, data, length);
	sim_send(ch->dev, p);
}

/* Return: 0, EBUSY (the rCxt is in use: try again later), or the errno of the completion */
static int take_begin(struct sim_channel *ch, const struct sim_wqe *w)
{
	struct sim_rcxt *rc = sim_rcxt_find(ch, w->t.local_rcxt);

	if (!rc)
		return ENOENT;
	if (w->op == WQE_AGAIN) {
		if (w->t.tid != rc->tid || w->t.total != rc->total || w->t.segment != rc->segment)
			return EINVAL;
		if (rc->state == RC_WAITING)
			rc->state = RC_SENDING;
		else
			return rc->state == RC_SENDING || rc->state == RC_RELEASING ? EBUSY :
			       rc->state == RC_DONE ? EALREADY : EINVAL;
		return 0;
	}
	if (w->t.tid <= rc->tid)
		return EINVAL;
	if (rc->state == RC_SENDING || rc->state == RC_RELEASING || rc->state == RC_ANSWERING ||
	    rc->state == RC_FORWARDING)
		return EBUSY;
	sim_rcxt_begin(rc, w->op == WQE_READ ? RC_READING : RC_SENDING, w->t.tid, w->t.total,
	      w->t.segment, w->t.notify, w->t.local_pvo);
	rc->cookie = w->wr_id;
	return 0;
}

static int take_cancel_begin(struct sim_channel *ch, const struct sim_wqe *w)
{
	struct sim_rcxt *rc = sim_rcxt_find(ch, w->t.local_rcxt);
	struct sim_sending *s, *next;

	if (!rc)
		return ENOENT;
	if (w->t.tid < rc->tid)
		return EINVAL;
	if (w->t.tid == rc->tid && rc->state == RC_DONE)
		return EALREADY;
	if (rc->state == RC_RELEASING)
		return EBUSY;
	rc->state = RC_IDLE;
	rc->tid = w->t.tid;
	list_for_each_safe(&ch->sending, s, next, node)
		if (s->local >> 32 == rc->index && !sim_rcxt_sends(rc, s->head.tid))
			send_end(ch, s, IBV_WC_WR_FLUSH_ERR);
	return 0;
}

/* Return: 0, EBUSY (packets still refer to the memory), or the errno of the completion */
static int take_cancel(struct sim_channel *ch, const struct sim_wqe *w)
{
	int err;

	if (!ch->cancelling) {
		err = take_cancel_begin(ch, w);
		if (err)
			return err;
		ch->cancelling = true;
		ch->cancel_zcopy = ch->zcopy_seq;
	}
	if (!sim_zcopy_released(ch, ch->cancel_zcopy))
		return EBUSY;
	ch->cancelling = false;
	return 0;
}

static void take_end(struct sim_channel *ch, const struct sim_wqe *w, int err)
{
	enum ibv_wc_status status = IBV_WC_LOC_QP_OP_ERR;

	ch->taken++;
	if (!err || err == EALREADY)
		status = IBV_WC_SUCCESS;
	else if (err == EMSGSIZE)
		status = IBV_WC_LOC_LEN_ERR;
	take_complete(ch, w->wr_id, status, err);
}

static void take_fail(struct sim_channel *ch, const struct sim_wqe *w)
{
	ch->taken++;
	take_complete(ch, w->wr_id, IBV_WC_LOC_QP_OP_ERR, 0);
	sim_channel_fail(ch, NHCADV_ERR_WQE);
}

static void take_write(struct sim_channel *ch, const struct sim_wqe *w)
{
	struct sim_sending *s = calloc(1, sizeof(*s));

	s->wr_id = w->wr_id;
	s->index = ch->taken++;
	s->local = w->t.local_rcxt;
	s->from = w->t.local_pvo;
	s->to = w->t.remote_pvo;
	s->next = w->offset / w->t.segment;
	s->left = sim_packets(w->length, w->t.segment);
	s->head = (struct sim_packet){
		.kind = SIM_WRITE, .to = sim_ah_find(w->ah_id)->gid, .qpn = w->qpn, .key = w->key,
		.job = ch->job, .rcxt = w->t.remote_rcxt, .src_rcxt = w->t.local_rcxt,
		.tid = w->t.tid, .total = w->t.total, .segment = w->t.segment,
		.notify = w->t.notify, .cookie = w->t.cookie,
		.src_qpn = ch->qpx.qp_base.qp_num, .src_key = ch->key,
	};
	list_add_tail(&ch->sending, &s->node);
}

/* Start the next work request.  Return: false if there is none, or it has to wait. */
static bool take_next(struct sim_channel *ch)
{
	const struct sim_wqe *w;
	int err = 0;

	if (ch->taken == ch->posted)
		return false;
	w = &ch->wqes[ch->taken % ch->entries];
	if (w->op == WQE_CANCEL) {
		err = take_cancel(ch, w);
		if (err == EBUSY)
			return false;
		take_end(ch, w, err);
		return true;
	}
	if (!sim_ah_find(w->ah_id) || sim_ah_find(w->ah_id)->gid.raw[0] == 0xff) {
		take_fail(ch, w);
		return true;
	}
	if (w->op == WQE_PACKET) {
		if (w->length > sim_segment(ch->dev))
			err = EMSGSIZE;
		else
			xmit(ch, w, SIM_PACKET, w->data, w->length);
		take_end(ch, w, err);
		return true;
	}
	if (w->t.segment % 4 || w->t.segment < 64 ||
	    (w->op != WQE_PROBE && w->op != WQE_FENCE && (!w->t.tid || sim_packets(w->t.total, w->t.segment) > 256))) {
		take_fail(ch, w);
		return true;
	}
	if (w->op == WQE_PROBE || w->op == WQE_FENCE) {
		if (sim_rcxt_find(ch, w->t.local_rcxt))
			xmit(ch, w, w->op == WQE_FENCE ? SIM_FENCE : SIM_PROBE, NULL, 0);
		else
			err = ENOENT;
		take_end(ch, w, err);
		return true;
	}
	if (w->op == WQE_MOVE || w->op == WQE_MOVE_AGAIN) {
		take_end(ch, w, sim_third_take(ch, w));
		return true;
	}
	err = w->t.segment > sim_segment(ch->dev) ? EMSGSIZE :
	      w->op == WQE_PART ? sim_rcxt_begin_part(ch, w) : take_begin(ch, w);
	if (err == EBUSY)
		return false;
	if (err) {
		take_end(ch, w, err);
	} else if (w->op == WQE_READ || w->op == WQE_PART) {
		xmit(ch, w, w->op == WQE_PART ? SIM_WRITE : SIM_READ_REQUEST, w->data, w->length);
		take_end(ch, w, 0);
	} else {
		take_write(ch, w);
	}
	return true;
}

static void flush(struct sim_channel *ch)
{
	struct sim_sending *s, *next;

	list_for_each_safe(&ch->sending, s, next, node)
		send_end(ch, s, IBV_WC_WR_FLUSH_ERR);
	/* a work request may be a cancel, which completes only after all references are released */
	if (!sim_zcopy_released(ch, ch->zcopy_seq))
		return;
	while (ch->taken != ch->posted) {
		ch->taken++;
		take_complete(ch, ch->wqes[(ch->taken - 1) % ch->entries].wr_id,
			      IBV_WC_WR_FLUSH_ERR, 0);
	}
}

static void turn(void *arg, uint64_t number)
{
	struct sim_channel *ch = arg;
	struct sim_sending *s;
	int left = QUANTUM;
	bool taken;

	(void)number;
	ch->turn_pending = false;
	sim_notice_complete(ch);
	if (ch->reason) {
		flush(ch);
		return;
	}
	while (left > 0) {
		if (ch->dev->busy_until > sim.now + BACKLOG_NS) {
			ch->turn_pending = true;
			sim_at(ch->dev->busy_until - BACKLOG_NS / 2, turn, ch, 0);
			return;
		}
		taken = take_next(ch);
		left -= taken;
		s = list_top(&ch->sending, struct sim_sending, node);
		if (s)
			left -= send_stretch(ch, s, STRETCH);
		else if (!taken)
			return;
		if (ch->reason)
			break;
	}
	sim_channel_kick(ch);
}

void sim_channel_kick(struct sim_channel *ch)
{
	if (ch->turn_pending)
		return;
	ch->turn_pending = true;
	sim_at(sim.now + 500, turn, ch, 0);
}
