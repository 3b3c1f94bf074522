// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Reliable messages: the peers that a pass serves.
 *
 * A pass serves the peers whose state has changed (nhcadv_msg_ep.ready), and those whose timers
 * have expired (nhcadv_msg_ep.heap).  An idle peer costs nothing.  Peers share the send FIFOs by
 * round robin: a turn is up to PEER_QUANTUM transfers.  A peer that finds no free slot waits in
 * nhcadv_msg_ep.starved, and is served first when slots are free.
 */
#include <errno.h>
#include <stdlib.h>

#include "msg.h"

/* Minimum time between two runs of the timers of a peer that waits for a free slot */
#define STARVED_PAUSE	(MS / 10)
#define MOVES_WAKE	8		/* moves that wake when their target is served */

/* ---- the heap ---- */

static void heap_put(struct nhcadv_msg_ep *ep, uint32_t i, struct msg_peer *peer)
{
	ep->heap[i] = peer;
	peer->heap = i;
}

static void heap_up(struct nhcadv_msg_ep *ep, struct msg_peer *peer)
{
	uint32_t i = peer->heap, parent;

	for (; i; i = parent) {
		parent = (i - 1) / 2;
		if (ep->heap[parent]->due <= peer->due)
			break;
		heap_put(ep, i, ep->heap[parent]);
	}
	heap_put(ep, i, peer);
}

static void heap_down(struct nhcadv_msg_ep *ep, struct msg_peer *peer)
{
	uint32_t i = peer->heap, child;

	while ((child = 2 * i + 1) < ep->num_peers) {
		if (child + 1 < ep->num_peers && ep->heap[child + 1]->due < ep->heap[child]->due)
			child++;
		if (peer->due <= ep->heap[child]->due)
			break;
		heap_put(ep, i, ep->heap[child]);
		i = child;
	}
	heap_put(ep, i, peer);
}

static void set_peer_due(struct msg_peer *peer, uint64_t due)
{
	uint64_t before = peer->due;

	peer->due = due;
	if (due < before)
		heap_up(peer->ep, peer);
	else if (due > before)
		heap_down(peer->ep, peer);
}

/* ---- the table of peers ---- */

static struct list_head *bucket_of(struct nhcadv_msg_ep *ep, uint64_t id)
{
	return &ep->buckets[(id ^ id >> 32) % MSG_BUCKETS];
}

struct msg_peer *msg_peer_find(struct nhcadv_msg_ep *ep, uint64_t id)
{
	struct msg_peer *peer;

	list_for_each(bucket_of(ep, id), peer, bucket)
		if (peer->id == id)
			return peer;
	return NULL;
}

int msg_peer_add(struct nhcadv_msg_ep *ep, struct msg_peer *peer)
{
	uint32_t room = ep->heap_room ? 2 * ep->heap_room : 16;
	struct msg_peer **heap;

	if (ep->num_peers == ep->heap_room) {
		heap = realloc(ep->heap, room * sizeof(heap[0]));
		if (!heap)
			return ENOMEM;
		ep->heap = heap;
		ep->heap_room = room;
	}
	list_add_tail(&ep->peers, &peer->node);
	list_add_tail(bucket_of(ep, peer->id), &peer->bucket);
	peer->due = NEVER;
	heap_put(ep, ep->num_peers++, peer);
	msg_peer_ready(peer);
	return 0;
}

void msg_peer_remove(struct msg_peer *peer)
{
	struct nhcadv_msg_ep *ep = peer->ep;
	struct msg_peer *last = ep->heap[--ep->num_peers];
	uint32_t i = peer->heap;

	if (last != peer) {
		heap_put(ep, i, last);
		heap_up(ep, last);
		heap_down(ep, last);
	}
	list_del(&peer->node);
	list_del(&peer->bucket);
	if (peer->ready || peer->starved)
		list_del(&peer->work);
}

/* ---- turns ---- */

void msg_peer_by(struct msg_peer *peer, uint64_t when)
{
	if (when < peer->due)
		set_peer_due(peer, when);
}

void msg_peer_ready(struct msg_peer *peer)
{
	if (peer->ready || peer->starved)
		return;
	peer->ready = true;
	list_add_tail(&peer->ep->ready, &peer->work);
}

static void serve(struct msg_peer *peer)
{
	struct nhcadv_msg_ep *ep = peer->ep;
	enum msg_pumped pumped;

	peer->ready = false;
	list_del(&peer->work);
	msg_moves_wake(peer, MOVES_WAKE);
	pumped = msg_pump(peer);
	set_peer_due(peer, msg_peer_timers(peer));
	/* Moves also wait for another peer, whose changes do not make this one ready. */
	if (!list_empty(&peer->moves) || !list_empty(&peer->awaiting))
		msg_peer_by(peer, ep->now + MOVES_PAUSE);
	/* If the timers have made the peer ready again, it is on the ready list already. */
	if (pumped == MSG_PUMP_DONE)
		return;
	/* The timers may have put the peer on the ready list again: take it off first. */
	if (peer->ready)
		list_del(&peer->work);
	peer->ready = pumped == MSG_PUMP_QUANTUM;
	peer->starved = pumped == MSG_PUMP_STARVED;
	list_add_tail(peer->ready ? &ep->ready : &ep->starved, &peer->work);
}

/* If ports have free slots, serve the peers that wait for them before all others. */
static void feed_starved(struct nhcadv_msg_ep *ep)
{
	struct msg_peer *peer;
	bool freed = false;
	uint32_t i;

	for (i = 0; i < ep->num_ports; i++) {
		freed |= ep->ports[i]->freed;
		ep->ports[i]->freed = false;
	}
	if (!freed)
		return;
	/* Move the last peer first, so that the peers keep their order at the head of the list. */
	while (!list_empty(&ep->starved)) {
		peer = container_of(ep->starved.n.prev, struct msg_peer, work);
		list_del(&peer->work);
		peer->starved = false;
		peer->ready = true;
		list_add(&ep->ready, &peer->work);
	}
}

void msg_serve(struct nhcadv_msg_ep *ep)
{
	struct msg_peer *peer;

	feed_starved(ep);
	while (ep->num_peers && ep->heap[0]->due <= ep->now) {
		peer = ep->heap[0];
		if (peer->starved) {
			/* The peer waits for a slot, but its timers run. */
			set_peer_due(peer, max(msg_peer_timers(peer), ep->now + STARVED_PAUSE));
			continue;
		}
		set_peer_due(peer, NEVER);
		msg_peer_ready(peer);
	}
	while ((peer = list_top(&ep->ready, struct msg_peer, work)))
		serve(peer);
}

uint64_t msg_next_due(const struct nhcadv_msg_ep *ep)
{
	if (!list_empty(&ep->ready))
		return ep->now;
	return ep->num_peers ? ep->heap[0]->due : NEVER;
}
