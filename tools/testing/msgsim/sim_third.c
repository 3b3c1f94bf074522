// SPDX-License-Identifier: GPL-2.0
/*
 * Third-party transfers: models of nhca_rcxt_begin_move(), nhca_rcxt_third_request() and of third.c
 * of drivers/infiniband/sw/nhca/rcxt.  There are no tokens.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"

#define PARTS	64	/* requests of a transfer at a time */

bool sim_third_allowed(const struct sim_channel *ch, const union ibv_gid *gid)
{
	uint32_t i;

	for (i = 0; i < ch->num_targets; i++)
		if (!memcmp(&ch->targets[i], gid, sizeof(*gid)))
			return true;
	return false;
}

/* Begin a move, or repeat a part.  Return: 0 or an errno */
static int begin(struct sim_channel *ch, const struct sim_wqe *w, uint32_t *number)
{
	struct sim_rcxt *rc = sim_rcxt_find(ch, w->t.local_rcxt);

	if (!rc)
		return ENOENT;
	if (w->op == WQE_MOVE_AGAIN) {
		if (w->t.tid != rc->tid)
			return EINVAL;
		if (rc->state == RC_DONE)
			return EALREADY;
		if (rc->state != RC_MOVING)
			return EINVAL;
		*number = ++rc->number;
		return 0;
	}
	/* in these states the driver would wait, but the library then begins no transfer */
	if (w->t.tid <= rc->tid || rc->state == RC_SENDING || rc->state == RC_RELEASING ||
	    rc->state == RC_ANSWERING || rc->state == RC_FORWARDING)
		return EINVAL;
	sim_rcxt_begin(rc, RC_MOVING, w->t.tid, w->t.total, w->t.segment, w->t.notify, 0);
	rc->cookie = w->wr_id;
	rc->target = w->target_rcxt;
	rc->number = 0;
	*number = 0;
	return 0;
}

/* Return: 0 or the errno of the completion */
int sim_third_take(struct sim_channel *ch, const struct sim_wqe *w)
{
	struct sim_packet *p;
	uint32_t number;
	int err = begin(ch, w, &number);

	if (err)
		return err;
	p = sim_packet_new(SIM_THIRD_REQUEST, 0);
	p->to = sim_ah_find(w->ah_id)->gid;
	p->qpn = w->qpn;
	p->key = w->key;
	p->job = ch->job;
	p->src_qpn = ch->qpx.qp_base.qp_num;
	p->src_key = ch->key;
	p->cookie = w->t.cookie;
	p->rcxt = w->t.remote_rcxt;
	p->src_rcxt = w->t.local_rcxt;
	p->tid = w->t.tid;
	p->total = w->t.total;
	p->segment = w->t.segment;
	p->offset = w->offset;
	p->part = w->length;
	p->number = number;
	p->pvo = w->t.remote_pvo;
	p->reply_pvo = w->target_pvo;
	p->gid = sim_ah_find(w->target_ah)->gid;
	p->target_qpn = w->target_qpn;
	p->target_key = w->target_key;
	p->target_rcxt = w->target_rcxt;
	sim_send(ch->dev, p);
	return 0;
}

bool sim_third_notice(struct sim_channel *ch, struct sim_rcxt *rc, const struct sim_packet *x)
{
	if (rc->state != RC_MOVING || x->tid != rc->tid || x->src_rcxt != rc->target ||
	    x->total != rc->total || x->segment != rc->segment)
		return false;
	rc->state = RC_DONE;
	sim_complete(ch, false, (struct ibv_wc){
		.wr_id = rc->cookie, .opcode = NHCADV_WC_MOVE, .byte_len = rc->total,
		.invalidated_rkey = rc->tid,
	});
	return true;
}

void sim_third_tell(struct sim_channel *ch, const struct sim_packet *head, uint64_t rcxt,
		    uint8_t status)
{
	struct sim_packet *p = sim_packet_new(SIM_STATUS, 0);

	p->to = head->gid;
	p->qpn = head->src_qpn;
	p->key = head->src_key;
	p->job = head->job;
	p->rcxt = head->src_rcxt;
	p->src_rcxt = rcxt;
	p->src_qpn = ch->qpx.qp_base.qp_num;
	p->src_key = ch->key;
	p->tid = head->tid;
	p->total = head->total;
	p->segment = head->segment;
	p->cookie = head->cookie;
	p->status = status;
	sim_send(ch->dev, p);
}

static bool admit(const struct sim_rcxt *rc, const struct sim_packet *x)
{
	if (x->tid == rc->tid && (rc->state == RC_FORWARDING || rc->state == RC_FORWARDED))
		return x->number > rc->number && x->pvo == rc->pvo && x->total == rc->total &&
		       x->segment == rc->segment &&
		       (rc->state == RC_FORWARDED || rc->parts < PARTS);
	return !sim_rcxt_busy(rc) && rc->state != RC_SINKING && x->tid > rc->tid;
}

void sim_third_request(struct sim_channel *ch, const struct sim_packet *x)
{
	struct sim_rcxt *rc = sim_rcxt_find(ch, x->rcxt);
	struct sim_sending *s;
	struct sim_packet head = *x;

	if (!ch->dev->moves || !rc || !admit(rc, x)) {
		sim_drop(ch, rc ? NHCADV_DROP_STALE : NHCADV_DROP_NO_RCXT);
		return;
	}
	head.kind = SIM_THIRD_WRITE;
	head.gid = x->from;
	head.to = x->gid;
	head.qpn = x->target_qpn;
	head.key = x->target_key;
	head.rcxt = x->target_rcxt;
	if (x->segment + NHCADV_MOVE_HEADER > sim_segment(ch->dev)) {
		sim_third_tell(ch, &head, x->rcxt, NHCADV_TRANSFER_TOO_LONG);
		return;
	}
	if (!sim_third_allowed(ch, &x->gid)) {
		sim_third_tell(ch, &head, x->rcxt, NHCADV_TRANSFER_FORBIDDEN);
		return;
	}
	if (rc->state != RC_FORWARDING || rc->tid != x->tid) {
		sim_rcxt_begin(rc, RC_FORWARDING, x->tid, x->total, x->segment, 0, x->pvo);
		rc->parts = 0;
	}
	rc->parts++;
	rc->number = x->number;
	s = calloc(1, sizeof(*s));
	s->answer = true;
	s->local = x->rcxt;
	s->from = x->pvo;
	s->to = x->reply_pvo;
	s->next = x->offset / x->segment;
	s->left = sim_packets(x->part, x->segment);
	s->head = head;
	list_add_tail(&ch->sending, &s->node);
	sim_channel_kick(ch);
}
