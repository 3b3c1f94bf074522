// SPDX-License-Identifier: GPL-2.0
/*
 * Zero-copy references of packets to the payload of writes, and notices that wait for their
 * release: a model of net/zcopy.c and rcxt/notice.c of drivers/infiniband/sw/nhca.
 */
#include <stdlib.h>

#include "sim.h"

struct sim_zcopy *sim_zcopy_new(struct sim_channel *ch, const uint8_t *bytes, uint32_t length)
{
	struct sim_zcopy *z = calloc(1, sizeof(*z));

	*z = (struct sim_zcopy){
		.ch = ch, .refs = 1, .length = length, .seq = ++ch->zcopy_seq, .bytes = bytes,
	};
	list_add_tail(&ch->zcopies, &z->node);
	return z;
}

bool sim_zcopy_released(struct sim_channel *ch, uint64_t seq)
{
	struct sim_zcopy *z = list_top(&ch->zcopies, struct sim_zcopy, node);

	if (!z || z->seq > seq)
		return true;
	ch->zcopy_waits = true;
	return false;
}

void sim_zcopy_wait(struct sim_channel *ch)
{
	struct sim_zcopy *z;

	while ((z = list_pop(&ch->zcopies, struct sim_zcopy, node)))
		z->ch = NULL;
}

void sim_zcopy_put(struct sim_zcopy *z)
{
	struct sim_channel *ch = z->ch;

	if (--z->refs)
		return;
	if (ch) {
		list_del(&z->node);
		if (ch->zcopy_waits)
			sim_channel_kick(ch);
		ch->zcopy_waits = false;
	}
	free(z);
}

bool sim_zcopy_of(const uint8_t *bytes, uint32_t length)
{
	struct sim_channel *ch;
	struct sim_zcopy *z;
	uint32_t i;

	for (i = 0; i < sim.num_devices; i++)
		list_for_each(&sim.devices[i]->channels, ch, node)
			list_for_each(&ch->zcopies, z, node)
				if (z->bytes < bytes + length && bytes < z->bytes + z->length)
					return true;
	return false;
}

/* ---- notices ---- */

/* Complete a write in RC_RELEASING.  Return: false if packets still refer to its memory. */
static bool notice_complete(struct sim_channel *ch, struct sim_rcxt *rc)
{
	if (!sim_zcopy_released(ch, rc->zcopy))
		return false;
	rc->state = RC_DONE;
	sim_complete(ch, false, (struct ibv_wc){
		.wr_id = rc->cookie, .opcode = NHCADV_WC_WRITE, .byte_len = rc->total,
		.invalidated_rkey = rc->tid,
	});
	return true;
}

void sim_notice_wait(struct sim_channel *ch, struct sim_rcxt *rc)
{
	rc->state = RC_RELEASING;
	if (!notice_complete(ch, rc))
		ch->releasing++;
}

void sim_notice_complete(struct sim_channel *ch)
{
	struct sim_rcxt *rc = ch->dev->rcxts, *end = rc + ch->dev->num_rcxts;
	uint32_t left = 0;

	for (; ch->releasing && rc < end; rc++)
		if (rc->owner == ch && rc->state == RC_RELEASING && !notice_complete(ch, rc))
			left++;
	ch->releasing = left;
}

/* Model of nhca_notice_early() */
bool sim_notice_early(struct sim_channel *ch, const struct sim_rcxt *rc,
		      const struct sim_packet *x)
{
	if (x->status != NHCADV_TRANSFER_COMPLETE || x->tid != rc->tid)
		return false;
	return rc->state == RC_SENDING ||
	       ((rc->state == RC_WAITING || rc->state == RC_RELEASING) &&
		!sim_zcopy_released(ch, rc->zcopy));
}
