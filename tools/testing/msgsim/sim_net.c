// SPDX-License-Identifier: GPL-2.0
/* The simulated clock, its events, random numbers, and the links between devices. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "sim.h"
#include "../../../userspace/libnhcamsg/msg_port.h"

struct event {
	uint64_t when, order, number;
	sim_function *function;
	void *arg;
};

struct sim sim;
static struct event *heap;
static uint64_t heap_count, heap_room, orders;
static struct sim_link links[64][64], plain;

uint64_t msg_clock(void)
{
	struct timespec t;

	if (!sim.real_clock)
		return sim.now;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * UINT64_C(1000000000) + t.tv_nsec;
}

uint64_t msg_random(void)
{
	return sim_random();
}

/* The generator is SplitMix64. */
uint64_t sim_random(void)
{
	uint64_t z = sim.rng += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

uint64_t sim_below(uint64_t n)
{
	return n ? sim_random() % n : 0;
}

bool sim_chance(uint32_t ppm)
{
	return ppm && sim_below(1000000) < ppm;
}

/* ---- events ---- */

static bool earlier(const struct event *a, const struct event *b)
{
	return a->when != b->when ? a->when < b->when : a->order < b->order;
}

static void swap(uint64_t a, uint64_t b)
{
	struct event e = heap[a];

	heap[a] = heap[b];
	heap[b] = e;
}

void sim_at(uint64_t when, sim_function *function, void *arg, uint64_t number)
{
	uint64_t i;

	if (heap_count == heap_room) {
		heap_room = heap_room ? 2 * heap_room : 1024;
		heap = realloc(heap, heap_room * sizeof(*heap));
	}
	i = heap_count++;
	heap[i] = (struct event){
		.when = when < sim.now ? sim.now : when, .order = orders++, .number = number,
		.function = function, .arg = arg,
	};
	for (; i && earlier(&heap[i], &heap[(i - 1) / 2]); i = (i - 1) / 2)
		swap(i, (i - 1) / 2);
}

static struct event pop(void)
{
	struct event e = heap[0];
	uint64_t i = 0, child;

	heap[0] = heap[--heap_count];
	while ((child = 2 * i + 1) < heap_count) {
		if (child + 1 < heap_count && earlier(&heap[child + 1], &heap[child]))
			child++;
		if (!earlier(&heap[child], &heap[i]))
			break;
		swap(i, child);
		i = child;
	}
	return e;
}

void sim_forget(void *arg)
{
	uint64_t i;

	for (i = 0; i < heap_count; i++)
		if (heap[i].arg == arg)
			heap[i].function = NULL;
}

uint64_t sim_next_event(void)
{
	return heap_count ? heap[0].when : UINT64_MAX;
}

void sim_run(uint64_t until)
{
	struct event e;

	while (heap_count && heap[0].when <= until) {
		e = pop();
		sim.now = e.when;
		if (e.function)
			e.function(e.arg, e.number);
	}
	if (sim.now < until)
		sim.now = until;
}

/* ---- devices, links ---- */

void sim_packet_free(struct sim_packet *p)
{
	if (p->zcopy)
		sim_zcopy_put(p->zcopy);
	free(p);
}

static void packet_arrives(void *arg, uint64_t number)
{
	(void)number;
	sim_deliver(arg);
}

void sim_reset(uint64_t seed)
{
	struct event e;
	uint32_t i;

	while (heap_count) {
		e = pop();
		if (e.function == packet_arrives)
			sim_packet_free(e.arg);
	}
	for (i = 0; i < sim.num_devices; i++) {
		free(sim.devices[i]->rcxts);
		free(sim.devices[i]->free_ring);
		free(sim.devices[i]);
	}
	sim_verbs_reset();
	memset(&sim, 0, sizeof(sim));
	memset(links, 0, sizeof(links));
	orders = 0;
	sim.rng = seed;
	/* Start 1 to 2 s after 0, because CLOCK_MONOTONIC is never 0. */
	sim.now = 1000 * SIM_MS + sim_below(1000 * SIM_MS);
	plain = (struct sim_link){ .delay = 10000 };
}

struct sim_device *sim_device_new(uint32_t host, uint32_t mtu, uint32_t rcxts)
{
	struct sim_device *dev = calloc(1, sizeof(*dev));
	uint32_t i;

	dev->context.device = (void *)dev;
	dev->host = host;
	dev->index = sim.num_devices;
	dev->gid.raw[0] = 0xfd;
	dev->gid.raw[14] = (dev->index + 1) >> 8;
	dev->gid.raw[15] = dev->index + 1;
	dev->mtu = mtu;
	dev->up = true;
	dev->fences = true;
	dev->moves = true;
	dev->parts = true;
	/* 205/256 ns per byte are 10 Gb/s. */
	dev->ns_per_byte_256 = 205;
	dev->num_rcxts = rcxts;
	dev->rcxts = calloc(rcxts, sizeof(*dev->rcxts));
	dev->free_ring = calloc(rcxts, sizeof(*dev->free_ring));
	dev->free_count = rcxts;
	for (i = 0; i < rcxts; i++) {
		dev->rcxts[i].index = i;
		dev->rcxts[i].key = sim_random();
		dev->free_ring[i] = i;
	}
	list_head_init(&dev->channels);
	sim.devices[sim.num_devices++] = dev;
	for (i = 0; i < sim.num_devices && sim.num_devices <= 64; i++) {
		links[dev->index][i] = plain;
		links[i][dev->index] = plain;
	}
	return dev;
}

void sim_device_set_v4(struct sim_device *dev)
{
	dev->gid.raw[0] = 0;
	dev->gid.raw[10] = 0xff;
	dev->gid.raw[11] = 0xff;
	dev->gid.raw[12] = 10;
}

struct sim_link *sim_link(const struct sim_device *from, const struct sim_device *to)
{
	return from->index < 64 && to->index < 64 ? &links[from->index][to->index] : &plain;
}

struct sim_device *sim_device_find(const union ibv_gid *gid)
{
	uint32_t index = gid->raw[14] << 8 | gid->raw[15];
	struct sim_device *dev;

	if (!index || index > sim.num_devices)
		return NULL;
	dev = sim.devices[index - 1];
	return memcmp(gid, &dev->gid, sizeof(*gid)) ? NULL : dev;
}

struct sim_packet *sim_packet_new(enum sim_kind kind, uint32_t length)
{
	struct sim_packet *p = calloc(1, sizeof(*p) + length);

	p->kind = kind;
	p->length = length;
	return p;
}

static uint32_t wire_size(const struct sim_packet *p)
{
	return 128 + p->length;
}

static void launch(const struct sim_link *link, struct sim_packet *p, uint64_t when)
{
	when += link->delay + sim_below(link->jitter + 1);
	if (sim_chance(link->late_ppm))
		when += sim_below(link->late + 1);
	sim_at(when, packet_arrives, p, 0);
}

uint64_t sim_send(struct sim_device *dev, struct sim_packet *p)
{
	struct sim_device *to = sim_device_find(&p->to);
	uint32_t size = wire_size(p);
	struct sim_packet *copy;
	struct sim_link *link;

	sim.packets++;
	p->from = dev->gid;
	if (dev->busy_until < sim.now)
		dev->busy_until = sim.now;
	dev->busy_until += size * dev->ns_per_byte_256 / 256;
	link = to ? sim_link(dev, to) : NULL;
	if (!link || link->black || !dev->up || size > dev->mtu || size > to->mtu ||
	    sim_chance(link->loss_ppm) || (sim.tap && sim.tap(p))) {
		sim.lost++;
		sim_packet_free(p);
		return dev->busy_until;
	}
	if (sim_chance(link->dup_ppm)) {
		copy = sim_packet_new(p->kind, p->length);
		memcpy(copy, p, sizeof(*p) + p->length);
		if (copy->zcopy)
			copy->zcopy->refs++;
		launch(link, copy, dev->busy_until);
	}
	launch(link, p, dev->busy_until);
	return dev->busy_until;
}

void sim_deliver(struct sim_packet *p)
{
	struct sim_device *to = sim_device_find(&p->to);
	struct sim_channel *ch = sim_channel_find(p->qpn);

	if (to && to->up && ch && ch->dev == to)
		sim_channel_rx(ch, p);
	sim_packet_free(p);
}
