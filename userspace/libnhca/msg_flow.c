// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Reliable messages: how long things take on a route, and how much may be under way.
 *
 * Time: smoothed, with its mean deviation, as for TCP (RFC 6298), of transfers that went through at
 * once, and of probes: each of those has a number of its own, so that no answer is taken for
 * another's.  Order: by how much what came after all had been overtaken, at most, of late; what
 * is later than that after something that was sent behind it is thought to be lost.
 *
 * Window: bytes that are thought to be under way.  While it is in the way it grows by what is
 * done, until more is lost than chance takes (one packet in eight), or all of it: then it shrinks,
 * and from then on grows by one transfer for each window that is done.  Less than that is random loss, as far
 * as can be known, and is only sent again: being slower would not make it less.
 *
 * A slow link with a deep queue loses nothing, and takes what the window lets it, for seconds: what waits in
 * line looks lost, and is asked for once more.  So the window does not grow while things take more than
 * QUEUE longer than the fastest did, as in LEDBAT (RFC 6817), and shrinks to what it was in the beginning if it is
 * more than that: not further, as a way may have become longer.
 */
#include <ccan/minmax.h>
#include "msg.h"

#define FIRST_OVERDUE	(50 * MS)
#define LEAST_MARGIN	(MS / 5)
#define MOST_OVERDUE	(1000 * MS)
#define MOST_DOUBLINGS	10
#define CHANCE		8	/* one packet of so many */
#define ENOUGH		1024	/* packets, to judge from */
#define FORGET		256	/* transfers, how far they overtook each other */
#define FIRST_STEPS	8
#define LEAST_STEPS	2
#define QUEUE		(100 * MS)

void msg_flow_init(struct msg_flow *flow, uint64_t step, uint64_t limit)
{
	*flow = (struct msg_flow){
		.step = step, .limit = limit, .starting = true,
		.window = min(FIRST_STEPS * step, limit),
	};
}

void msg_flow_sample(struct msg_flow *flow, uint64_t rtt)
{
	uint64_t off;

	flow->fastest = flow->srtt ? min(flow->fastest, rtt) : rtt;
	if (!flow->srtt) {
		flow->srtt = max_t(uint64_t, rtt, 1);
		flow->rttvar = rtt / 2;
		return;
	}
	off = rtt > flow->srtt ? rtt - flow->srtt : flow->srtt - rtt;
	flow->rttvar += off / 4;
	flow->rttvar -= flow->rttvar / 4;
	flow->srtt += rtt / 8;
	flow->srtt -= flow->srtt / 8;
}

void msg_flow_at_least(struct msg_flow *flow, uint64_t time)
{
	if (time > flow->srtt)
		msg_flow_sample(flow, time);
}

uint64_t msg_spread(uint64_t time)
{
	return time + msg_random() % (time / 2 + 1);
}

uint64_t msg_flow_overdue(const struct msg_flow *flow, unsigned int tries)
{
	unsigned int doublings = min_t(unsigned int, tries, MOST_DOUBLINGS);
	uint64_t time = FIRST_OVERDUE;

	if (flow->srtt)
		time = flow->srtt + max(4 * flow->rttvar, LEAST_MARGIN);
	time = min(time << doublings, MOST_OVERDUE);
	return tries ? msg_spread(time) : time;
}

uint64_t msg_flow_reordering(const struct msg_flow *flow)
{
	return max(flow->srtt / 4, flow->extent + flow->extent / 4);
}

void msg_flow_reordered(struct msg_flow *flow, uint64_t extent)
{
	flow->extent = max(flow->extent - flow->extent / FORGET, extent);
}

bool msg_flow_has_room(const struct msg_flow *flow, uint32_t bytes)
{
	/* A transfer alone may be larger than a window. */
	return !flow->inflight || flow->inflight + bytes <= flow->window;
}

bool msg_flow_may_send(struct msg_flow *flow, uint32_t bytes)
{
	flow->limited = !msg_flow_has_room(flow, bytes);
	return !flow->limited;
}

static void shrink(struct msg_flow *flow, unsigned int num, unsigned int den)
{
	flow->window = max(flow->window * num / den, LEAST_STEPS * flow->step);
	flow->starting = false;
}

void msg_flow_sent(struct msg_flow *flow, uint32_t packets)
{
	flow->sent += packets;
	if (flow->sent < ENOUGH)
		return;
	if (flow->lost * CHANCE > flow->sent)
		shrink(flow, 3, 4);
	flow->sent = 0;
	flow->lost = 0;
}

/* How much longer than the fastest do things take? */
static uint64_t waits(const struct msg_flow *flow)
{
	return flow->srtt > flow->fastest ? flow->srtt - flow->fastest : 0;
}

/* Once for each window that is done */
static void shorten_queue(struct msg_flow *flow, uint64_t bytes)
{
	uint64_t first = FIRST_STEPS * flow->step;

	flow->queued += bytes;
	if (flow->queued < flow->window || waits(flow) < 2 * QUEUE || flow->window <= first)
		return;
	flow->queued = 0;
	shrink(flow, 3, 4);
	flow->window = max(flow->window, first);
}

void msg_flow_done(struct msg_flow *flow, uint64_t bytes)
{
	if (waits(flow) > QUEUE) {
		shorten_queue(flow, bytes);
		return;
	}
	if (!flow->limited)
		return;
	flow->window += flow->starting ? bytes : flow->step * bytes / flow->window;
	flow->window = min(flow->window, flow->limit);
}

void msg_flow_lost(struct msg_flow *flow, uint32_t packets)
{
	flow->lost += packets;
}

void msg_flow_silent(struct msg_flow *flow, uint64_t now)
{
	if (now < flow->shrunk)
		return;
	flow->shrunk = now + 2 * msg_flow_overdue(flow, 0);
	shrink(flow, 1, 2);
}
