// SPDX-License-Identifier: GPL-2.0
/* The pool and states of rCxts: a model of pool.c and tid.c in drivers/infiniband/sw/nhca/rcxt. */
#include <errno.h>
#include <string.h>

#include "sim.h"

static uint64_t id_of(const struct sim_rcxt *rc)
{
	return (uint64_t)rc->index << 32 | rc->key;
}

struct sim_rcxt *sim_rcxt_find(struct sim_channel *ch, uint64_t id)
{
	struct sim_rcxt *rc = id >> 32 < ch->dev->num_rcxts ? &ch->dev->rcxts[id >> 32] : NULL;

	return rc && rc->owner == ch && rc->key == (uint32_t)id ? rc : NULL;
}

int sim_rcxts_acquire(struct sim_channel *ch, uint64_t *ids, uint32_t count)
{
	struct sim_device *dev = ch->dev;
	struct sim_rcxt *rc;
	uint32_t i;

	if (ch->reason)
		return EIO;
	if (count > dev->free_count)
		return ENOSPC;
	for (i = 0; i < count; i++) {
		rc = &dev->rcxts[dev->free_ring[dev->free_first]];
		dev->free_first = (dev->free_first + 1) % dev->num_rcxts;
		dev->free_count--;
		*rc = (struct sim_rcxt){ .owner = ch, .index = rc->index, .key = rc->key + 1 };
		ids[i] = id_of(rc);
	}
	return 0;
}

static void give_back(struct sim_device *dev, struct sim_rcxt *rc)
{
	rc->owner = NULL;
	rc->state = RC_IDLE;
	dev->free_ring[(dev->free_first + dev->free_count++) % dev->num_rcxts] = rc->index;
}

int sim_rcxts_release(struct sim_channel *ch, const uint64_t *ids, uint32_t count)
{
	uint32_t i;

	for (i = 0; i < count; i++)
		if (!sim_rcxt_find(ch, ids[i]))
			return ENOENT;
	for (i = 0; i < count; i++)
		give_back(ch->dev, sim_rcxt_find(ch, ids[i]));
	sim_zcopy_wait(ch);
	sim_channel_kick(ch);
	return 0;
}

void sim_rcxts_release_all(struct sim_channel *ch)
{
	uint32_t i;

	for (i = 0; i < ch->dev->num_rcxts; i++)
		if (ch->dev->rcxts[i].owner == ch)
			give_back(ch->dev, &ch->dev->rcxts[i]);
}

void sim_recover(struct sim_device *dev)
{
	struct sim_channel *ch;
	uint32_t i;

	list_for_each(&dev->channels, ch, node) {
		sim_channel_fail(ch, NHCADV_ERR_RECOVERED);
		sim_rcxts_release_all(ch);
	}
	for (i = 0; i < dev->num_rcxts; i++)
		dev->rcxts[i].key += 0x10000;
	dev->recoveries++;
}

uint32_t sim_packets(uint32_t total, uint32_t segment)
{
	return total ? (total + segment - 1) / segment : 1;
}

void sim_rcxt_begin(struct sim_rcxt *rc, enum sim_rcxt_state state, uint32_t tid, uint32_t total,
		  uint32_t segment, uint8_t notify, uint64_t pvo)
{
	rc->state = state;
	rc->tid = tid;
	rc->total = total;
	rc->segment = segment;
	rc->notify = notify;
	rc->noticed = false;
	rc->zcopy = 0;
	rc->missing = sim_packets(total, segment);
	rc->pvo = pvo;
	memset(rc->map, 0, sizeof(rc->map));
}

bool sim_rcxt_busy(const struct sim_rcxt *rc)
{
	return rc->state == RC_SENDING || rc->state == RC_WAITING || rc->state == RC_RELEASING ||
	       rc->state == RC_READING || rc->state == RC_ANSWERING || rc->state == RC_MOVING ||
	       rc->state == RC_FORWARDING;
}

bool sim_rcxt_sends(const struct sim_rcxt *rc, uint32_t tid)
{
	return rc->tid == tid && (rc->state == RC_SENDING || rc->state == RC_ANSWERING ||
				  rc->state == RC_FORWARDING);
}

int sim_rcxt_begin_part(struct sim_channel *ch, const struct sim_wqe *w)
{
	struct sim_rcxt *rc = sim_rcxt_find(ch, w->t.local_rcxt);

	if (!rc)
		return ENOENT;
	if (w->t.tid == rc->tid) {
		if (w->t.total != rc->total || w->t.segment != rc->segment)
			return EINVAL;
		if (rc->state == RC_RELEASING || rc->state == RC_DONE)
			return EALREADY;
		return rc->state == RC_SENDING || rc->state == RC_WAITING ? 0 : EINVAL;
	}
	if (w->t.tid < rc->tid)
		return EINVAL;
	if (rc->state == RC_SENDING || rc->state == RC_RELEASING || rc->state == RC_ANSWERING ||
	    rc->state == RC_FORWARDING)
		return EBUSY;
	sim_rcxt_begin(rc, RC_WAITING, w->t.tid, w->t.total, w->t.segment, w->t.notify, 0);
	rc->cookie = w->wr_id;
	rc->zcopy = ch->zcopy_seq;
	return 0;
}
