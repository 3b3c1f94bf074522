// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Reliable messages: the API of endpoints.  Functions of the API take the lock of the endpoint
 * where threads share data.  The library starts no thread: it makes progress in calls of the
 * program, mostly polls and waits.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "msg.h"

#define DEFAULT_LANES	64
#define DEFAULT_PACKETS	64
#define DEFAULT_FRAMES	1024
#define DEFAULT_QUEUE	1024
#define DEFAULT_DEAD_MS	500
#define CHECK_PERIOD	(1000 * MS)	/* time between two port_check(), or two port_open() */
#define EVENTS		32		/* maximum number of events of one port_poll() */
/* Budget of events of one port in a pass, so that other ports and the lanes are served */
#define PASS_EVENTS	256

/* ---- completions ---- */

int msg_reserve(struct nhcadv_msg_ep *ep)
{
	struct nhcadv_msg_completion *ring;
	uint32_t room = ep->done_room ? 2 * ep->done_room : 64, i;

	if (ep->done_count + ep->done_reserved < ep->done_room) {
		ep->done_reserved++;
		return 0;
	}
	ring = calloc(room, sizeof(*ring));
	if (!ring)
		return ENOMEM;
	for (i = 0; i < ep->done_count; i++)
		ring[i] = ep->done[(ep->done_first + i) % ep->done_room];
	free(ep->done);
	ep->done = ring;
	ep->done_room = room;
	ep->done_first = 0;
	ep->done_reserved++;
	return 0;
}

void msg_complete(struct msg_peer *peer, enum nhcadv_msg_kind kind, int status, uint64_t id,
		  uint64_t length, uint64_t pvo, void *data)
{
	struct nhcadv_msg_ep *ep = peer->ep;

	ep->done[(ep->done_first + ep->done_count++) % ep->done_room] =
		(struct nhcadv_msg_completion){
			.kind = kind, .status = status, .id = id,
			.peer = container_of(peer, struct nhcadv_msg_peer, peer),
			.context = peer->context, .length = length, .pvo = pvo, .data = data,
		};
	ep->done_reserved--;
}

static int take(struct nhcadv_msg_ep *ep, struct nhcadv_msg_completion *wc, int num)
{
	int n;

	for (n = 0; n < num && ep->done_count; n++, ep->done_count--) {
		wc[n] = ep->done[ep->done_first];
		ep->done_first = (ep->done_first + 1) % ep->done_room;
	}
	return n;
}

static void data_free(void *data)
{
	if (data)
		free(container_of(data, struct msg_in, data[0]));
}

/* Drop the completions of a peer that is being disconnected. */
static void forget(struct nhcadv_msg_ep *ep, const struct nhcadv_msg_peer *peer)
{
	struct nhcadv_msg_completion *c;
	uint32_t i, left = 0;

	for (i = 0; i < ep->done_count; i++) {
		c = &ep->done[(ep->done_first + i) % ep->done_room];
		if (c->peer == peer)
			data_free(c->data);
		else
			ep->done[(ep->done_first + left++) % ep->done_room] = *c;
	}
	ep->done_count = left;
}

/* ---- a pass ---- */

static void status_came(struct nhcadv_msg_ep *ep, const struct nhcadv_frame *frame)
{
	uint32_t slot = msg_name_slot(frame->cookie), lane = msg_name_lane(frame->cookie);
	struct msg_route *route = slot < ep->num_routes ? ep->routes[slot] : NULL;

	if (!route || lane >= ep->lanes)
		return;
	/*
	 * A fence may have been sent over another route, with a local rCxt of that route.  So do
	 * not compare frame->rcxt with the rCxt of the lane.
	 */
	if (msg_name_what(frame->cookie) == WHAT_FENCE) {
		msg_peer_ready(route->peer);
		msg_lane_fence_status(route, &route->lanes[lane], frame);
		return;
	}
	if (frame->rcxt != route->lanes[lane].local_rcxt)
		return;
	msg_peer_ready(route->peer);
	switch (msg_name_what(frame->cookie)) {
	case WHAT_PING:
		msg_route_confirmed(route);
		break;
	case WHAT_TRANSFER:
	case WHAT_AGAIN:
		/* the source of a move has refused a request */
		if (route->lanes[lane].state == LANE_MOVE)
			msg_move_status(route, &route->lanes[lane], frame);
		break;
	case WHAT_PROBE:
	case WHAT_SOURCE:
		if (route->lanes[lane].nonce &&
		    route->lanes[lane].nonce == msg_name_number(frame->cookie)) {
			if (route->lanes[lane].partner)
				msg_move_status(route, &route->lanes[lane], frame);
			else
				msg_lane_status(route, &route->lanes[lane], frame);
		}
		break;
	default:
		break;
	}
}

static void event_came(struct nhcadv_msg_ep *ep, const struct port_event *event)
{
	uint32_t slot = msg_name_slot(event->wr_id), index = msg_name_lane(event->wr_id);
	enum msg_what what = msg_name_what(event->wr_id);
	uint32_t number = msg_name_number(event->wr_id);
	struct msg_route *route;
	struct msg_lane *lane;

	if (event->kind == PORT_FRAME) {
		/*
		 * Ignore frames of half transfers: this library does not use them, and their
		 * packets name only the lower half of the channel key.
		 */
		if (event->frame->kind == NHCADV_FRAME_STATUS)
			status_came(ep, event->frame);
		else if (event->frame->kind == NHCADV_FRAME_PACKET)
			msg_frame_came(ep, event->frame);
		return;
	}
	route = slot < ep->num_routes ? ep->routes[slot] : NULL;
	/* Ignore the event if the peer was disconnected, or the work request belongs to no lane. */
	if (!route || index >= ep->lanes || what == WHAT_PACKET || what == WHAT_PING ||
	    what == WHAT_FENCE)
		return;
	lane = &route->lanes[index];
	msg_peer_ready(route->peer);
	if (event->kind == PORT_MOVE)
		msg_move_complete(route, lane, number);
	else if (event->kind != PORT_POSTED)
		msg_lane_complete(route, lane, number, event->kind == PORT_READ);
	else if (what == WHAT_REFUSE)
		msg_route_refused(route, index, number);
	else
		msg_lane_posted(route, lane, event->wr_id, event->status);
}

/* Return: 0, or an errno: the port stays open and broken, and the next pass tries again */
static int port_lose(struct nhcadv_msg_ep *ep, struct msg_port *port)
{
	struct msg_peer *peer;
	int err;

	err = port_close(port);
	if (err)
		return err;
	port->retry = ep->now;
	list_for_each(&ep->peers, peer, node) {
		msg_peer_lost_port(peer, port);
		msg_peer_ready(peer);
	}
	return 0;
}

int msg_ports_close_broken(struct nhcadv_msg_ep *ep)
{
	int err, first = 0;
	uint32_t i;

	for (i = 0; i < ep->num_ports; i++) {
		if (!ep->ports[i]->open || !ep->ports[i]->broken)
			continue;
		err = port_lose(ep, ep->ports[i]);
		first = first ? first : err;
	}
	return first;
}

/* The channel was created again, or the MTU has changed: send grants to all peers. */
static void port_changed(struct nhcadv_msg_ep *ep)
{
	struct msg_peer *peer;

	list_for_each(&ep->peers, peer, node)
		msg_peer_ready(peer);
}

static void port_events(struct nhcadv_msg_ep *ep, struct msg_port *port)
{
	struct port_event events[EVENTS];
	int i, n, total = 0;

	do {
		n = port_poll(port, events, EVENTS);
		for (i = 0; i < n; i++) {
			event_came(ep, &events[i]);
			if (events[i].frame)
				port_frame_done(port, &events[i]);
		}
		total += n;
	} while (n && total < PASS_EVENTS);
}

static void port_pass(struct nhcadv_msg_ep *ep, struct msg_port *port)
{
	if (port->open) {
		port_events(ep, port);
		if (ep->now - port->checked >= CHECK_PERIOD)
			port_check(port);
		if (port->broken)
			port_lose(ep, port);
	}
	/*
	 * Open the channel in the same pass in which it was lost: a program that gets
	 * NHCADV_MSG_UNREACHABLE then finds the new channel in nhcadv_msg_ep_address().
	 */
	if (!port->open && ep->now >= port->retry) {
		port->checked = ep->now;
		if (port_open(port)) {
			port->retry = ep->now + CHECK_PERIOD;
		} else {
			port_changed(ep);
			ep->targets_due = 0;
		}
	}
	/* port_check() may also have been called by a route. */
	if (port->info.segment != port->announced) {
		port->announced = port->info.segment;
		port_changed(ep);
	}
}

/* A pass: make progress on all ports and peers.  Return: time of the next pass. */
static uint64_t pass(struct nhcadv_msg_ep *ep)
{
	uint64_t next;
	uint32_t i;

	ep->now = msg_clock();
	for (i = 0; i < ep->num_ports; i++)
		port_pass(ep, ep->ports[i]);
	/* A channel allows its targets before peers get its grants. */
	next = msg_targets_apply(ep);
	msg_serve(ep);
	for (i = 0; i < ep->num_ports; i++)
		port_flush(ep->ports[i]);
	next = min(next, ep->now + CHECK_PERIOD);
	return min(msg_next_due(ep), next);
}

/* ---- the lock, and sleeping threads ---- */

static void set_timer(struct nhcadv_msg_ep *ep, uint64_t when)
{
	/* A time of 0 would disarm the timer, so it becomes 1 ns. */
	struct itimerspec t = {
		.it_value = { .tv_sec = when / 1000000000, .tv_nsec = when % 1000000000 + !when },
	};

	ep->timer_at = when;
	timerfd_settime(ep->timer, TFD_TIMER_ABSTIME, &t, NULL);
}

void msg_ep_lock(struct nhcadv_msg_ep *ep)
{
	pthread_mutex_lock(&ep->lock);
}

/*
 * Other threads sleep on file descriptors.  This thread may have consumed the event that would have
 * woken another thread.  Therefore this function makes ep->wake readable if there is work or a
 * completion, and sets ep->timer if a timer of a peer is earlier.
 */
void msg_ep_unlock(struct nhcadv_msg_ep *ep)
{
	bool asleep = ep->sleepers || ep->armed;
	bool wake = asleep && (ep->done_count || !list_empty(&ep->ready));
	uint64_t count = 1;

	if (wake && !ep->woken)
		ep->woken = write(ep->wake, &count, sizeof(count)) == sizeof(count);
	else if (!wake && ep->woken)
		ep->woken = read(ep->wake, &count, sizeof(count)) != sizeof(count);
	if (asleep && msg_next_due(ep) < ep->timer_at)
		set_timer(ep, msg_next_due(ep));
	pthread_mutex_unlock(&ep->lock);
}

int nhcadv_msg_poll(struct nhcadv_msg_ep *ep, struct nhcadv_msg_completion *wc, int num)
{
	int n;

	msg_ep_lock(ep);
	ep->armed = false;
	pass(ep);
	n = take(ep, wc, num);
	msg_ep_unlock(ep);
	return n;
}

void nhcadv_msg_release(struct nhcadv_msg_ep *ep, void *data)
{
	struct msg_in *in = container_of(data, struct msg_in, data[0]);
	struct msg_peer *peer;

	msg_ep_lock(ep);
	peer = msg_peer_find(ep, in->from);
	/* Ignore a send of an earlier connection to the same peer. */
	if (peer && peer->session == in->session)
		msg_stream_released(peer);
	msg_ep_unlock(ep);
	free(in);
}

/* ---- sleep ---- */

/*
 * Arm all ports and the timer.  A pass handles the events that came before the ports were armed.
 * Context: the caller holds the lock.
 * Return: true if there is no completion, so that the caller may sleep.
 */
static bool arm(struct nhcadv_msg_ep *ep)
{
	uint64_t next;
	uint32_t i;

	for (i = 0; i < ep->num_ports; i++) {
		port_disarm(ep->ports[i]);
		port_arm(ep->ports[i]);
	}
	next = pass(ep);
	if (ep->done_count)
		return false;
	set_timer(ep, next);
	return true;
}

int nhcadv_msg_arm(struct nhcadv_msg_ep *ep)
{
	int err;

	msg_ep_lock(ep);
	ep->armed = arm(ep);
	err = ep->armed ? 0 : EAGAIN;
	msg_ep_unlock(ep);
	return err;
}

int nhcadv_msg_fd(struct nhcadv_msg_ep *ep)
{
	return ep->epoll;
}

int nhcadv_msg_wait(struct nhcadv_msg_ep *ep, int timeout_ms)
{
	uint64_t end = timeout_ms < 0 ? NEVER : msg_clock() + timeout_ms * MS, now;
	struct epoll_event events[NHCADV_MSG_MAX_PATHS + 2];
	bool asleep;
	int err = 0;

	for (;;) {
		msg_ep_lock(ep);
		pass(ep);
		asleep = !ep->done_count && arm(ep);
		now = msg_clock();
		if (!asleep || now >= end) {
			msg_ep_unlock(ep);
			return asleep ? ETIMEDOUT : 0;
		}
		ep->sleepers++;
		msg_ep_unlock(ep);
		if (epoll_wait(ep->epoll, events, NHCADV_MSG_MAX_PATHS + 2,
			       end == NEVER ? -1 : (int)((end - now + MS - 1) / MS)) < 0 &&
		    errno != EINTR)
			err = errno;
		msg_ep_lock(ep);
		ep->sleepers--;
		msg_ep_unlock(ep);
		if (err)
			return err;
	}
}

/* ---- endpoints ---- */

static uint32_t or_default(uint32_t value, uint32_t fallback)
{
	return value ? value : fallback;
}

static int watch(struct nhcadv_msg_ep *ep, int fd)
{
	struct epoll_event event = { .events = EPOLLIN };

	return epoll_ctl(ep->epoll, EPOLL_CTL_ADD, fd, &event) ? errno : 0;
}

static int ep_open(struct nhcadv_msg_ep *ep, const struct nhcadv_msg_ep_attr *attr)
{
	struct msg_port *port;
	uint32_t i;
	int err;

	ep->epoll = epoll_create1(EPOLL_CLOEXEC);
	ep->timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	ep->wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (ep->epoll < 0 || ep->timer < 0 || ep->wake < 0)
		return errno;
	err = watch(ep, ep->timer);
	if (!err)
		err = watch(ep, ep->wake);
	for (i = 0; i < attr->num_paths && !err; i++) {
		port = port_create(&attr->paths[i], ep->job,
				   or_default(attr->frames, DEFAULT_FRAMES));
		if (!port)
			return errno;
		ep->contexts[i] = attr->paths[i].context;
		ep->ports[ep->num_ports++] = port;
		err = port_open(port);
		if (!err)
			err = watch(ep, port_fd(port));
	}
	return err;
}

static void ep_free(struct nhcadv_msg_ep *ep)
{
	uint32_t i;

	/* Free the targets first, because their address handles belong to the ports. */
	msg_targets_free(ep);
	for (i = 0; i < ep->num_ports; i++) {
		port_close(ep->ports[i]);
		port_destroy(ep->ports[i]);
	}
	if (ep->timer >= 0)
		close(ep->timer);
	if (ep->wake >= 0)
		close(ep->wake);
	if (ep->epoll >= 0)
		close(ep->epoll);
	pthread_mutex_destroy(&ep->lock);
	free(ep->routes);
	free(ep->heap);
	free(ep->done);
	free(ep);
}

struct nhcadv_msg_ep *nhcadv_msg_create_ep(const struct nhcadv_msg_ep_attr *attr)
{
	struct nhcadv_msg_ep *ep;
	int err, i;

	if (attr->comp_mask || attr->reserved || !attr->num_paths ||
	    attr->num_paths > NHCADV_MSG_MAX_PATHS || !attr->job ||
	    attr->lanes > MSG_MAX_LANES || attr->packets > MSG_MAX_PACKETS) {
		errno = EINVAL;
		return NULL;
	}
	ep = calloc(1, sizeof(*ep));
	if (!ep)
		return NULL;
	pthread_mutex_init(&ep->lock, NULL);
	ep->epoll = -1;
	ep->timer = -1;
	ep->wake = -1;
	ep->timer_at = NEVER;
	ep->id = msg_random();
	ep->now = msg_clock();
	ep->job = attr->job;
	ep->lanes = or_default(attr->lanes, DEFAULT_LANES);
	ep->packets = or_default(attr->packets, DEFAULT_PACKETS);
	ep->queue = or_default(attr->queue, DEFAULT_QUEUE);
	ep->dead = or_default(attr->dead_ms, DEFAULT_DEAD_MS) * MS;
	list_head_init(&ep->peers);
	list_head_init(&ep->ready);
	list_head_init(&ep->starved);
	for (i = 0; i < MSG_BUCKETS; i++)
		list_head_init(&ep->buckets[i]);
	list_head_init(&ep->mems);
	list_head_init(&ep->unclosed);
	list_head_init(&ep->targets);
	err = ep_open(ep, attr);
	if (err) {
		ep_free(ep);
		errno = err;
		return NULL;
	}
	return ep;
}

int nhcadv_msg_destroy_ep(struct nhcadv_msg_ep *ep)
{
	struct msg_peer *peer;
	uint32_t i;
	int err;

	if (!list_empty(&ep->mems))
		return EBUSY;
	while ((peer = list_top(&ep->peers, struct msg_peer, node)))
		nhcadv_msg_disconnect(container_of(peer, struct nhcadv_msg_peer, peer));
	for (i = 0; i < ep->num_ports; i++) {
		err = port_close(ep->ports[i]);
		if (err)
			return err;
	}
	err = msg_mems_close(ep);
	if (err)
		return err;
	ep_free(ep);
	return 0;
}

int nhcadv_msg_ep_address(struct nhcadv_msg_ep *ep, void *bytes, size_t *size)
{
	struct msg_address address = { .id = ep->id, .job = ep->job };
	uint32_t i;
	int err;

	msg_ep_lock(ep);
	address.num_paths = ep->num_ports;
	for (i = 0; i < ep->num_ports; i++) {
		address.paths[i].gid = ep->ports[i]->gid;
		address.paths[i].qpn = ep->ports[i]->info.qpn;
		address.paths[i].key = ep->ports[i]->info.key;
		address.paths[i].segment = ep->ports[i]->info.segment;
	}
	err = msg_address_pack(&address, bytes, size);
	msg_ep_unlock(ep);
	return err;
}

struct nhcadv_msg_peer *nhcadv_msg_connect(struct nhcadv_msg_ep *ep, const void *bytes,
					   size_t size, void *context)
{
	struct msg_address address;
	struct msg_peer *peer = NULL;
	int err;

	err = msg_address_unpack(&address, bytes, size);
	msg_ep_lock(ep);
	if (!err && address.job != ep->job)
		err = EINVAL;
	if (!err && msg_peer_find(ep, address.id))
		err = EEXIST;
	if (!err) {
		ep->now = msg_clock();
		peer = msg_peer_new(ep, &address, context);
		err = errno;
	}
	if (peer)
		pass(ep);
	msg_ep_unlock(ep);
	if (!peer) {
		errno = err;
		return NULL;
	}
	return container_of(peer, struct nhcadv_msg_peer, peer);
}

int nhcadv_msg_reconnect(struct nhcadv_msg_peer *pub, const void *bytes, size_t size)
{
	struct nhcadv_msg_ep *ep = pub->peer.ep;
	struct msg_address address;
	int err;

	err = msg_address_unpack(&address, bytes, size);
	msg_ep_lock(ep);
	if (!err && (address.id != pub->peer.id || address.job != ep->job))
		err = EINVAL;
	if (!err) {
		msg_peer_move(&pub->peer, &address);
		msg_peer_ready(&pub->peer);
		pass(ep);
	}
	msg_ep_unlock(ep);
	return err;
}

int nhcadv_msg_disconnect(struct nhcadv_msg_peer *pub)
{
	struct nhcadv_msg_ep *ep = pub->peer.ep;
	int err;

	msg_ep_lock(ep);
	ep->now = msg_clock();
	msg_moves_forget(&pub->peer);
	msg_peer_remove(&pub->peer);
	ep->done_reserved -= msg_peer_reserved(&pub->peer);
	forget(ep, pub);
	msg_peer_free(&pub->peer);
	/*
	 * After the return the program may reuse its buffers.  If the kernel has refused to release
	 * the rCxts of a broken channel, it has not waited for packets that refer to the buffers.
	 * port_close() waits for these packets.
	 */
	err = msg_ports_close_broken(ep);
	msg_ep_unlock(ep);
	return err;
}

int nhcadv_msg_query(struct nhcadv_msg_peer *pub, uint32_t path, struct nhcadv_msg_stats *stats)
{
	struct msg_peer *peer = &pub->peer;
	struct msg_route *route;

	if (path >= peer->num_routes)
		return EINVAL;
	msg_ep_lock(peer->ep);
	route = peer->routes[path];
	*stats = route->stats;
	stats->alive = route->alive;
	stats->rcxts = route->held + route->given;
	stats->srtt_ns = route->cc.srtt;
	stats->window = route->cc.window;
	msg_ep_unlock(peer->ep);
	return 0;
}
